//! Aligned columns: the first to the left, the others to the right, two spaces between.

use unicode_width::UnicodeWidthStr;

/// How a piece of text stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As everything else.
    Plain,
    /// Of a heading.
    Bold,
    /// Of what matters less.
    Dim,
    /// Of what became better.
    Good,
    /// Of what needs a look.
    Warn,
    /// Of what is wrong.
    Bad,
}

/// Gives text its tone, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    /// Whether it does.
    pub color: bool,
}

impl Paint {
    /// Returns `text` in its tone, by the select-graphic-rendition codes of ECMA-48.
    pub fn apply(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Bold => 1,
            Tone::Dim => 2,
            Tone::Good => 32,
            Tone::Warn => 33,
            Tone::Bad => 31,
        };
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// One cell.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// Returns a text in its tone.
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    fn width(&self) -> usize {
        columns(&self.text)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// Writes a paragraph in a tone, its lead in front; control characters of the text move nothing.
pub(crate) fn toned(
    (tone, paint): (Tone, Paint),
    lead: &str,
    text: &str,
    width: usize,
    out: &mut String,
) {
    let mut lines = String::new();
    paragraph(lead, &harmless(text), width, &mut lines);
    out.extend(lines.lines().map(|line| paint.apply(tone, line) + "\n"));
}

/// Rows under a heading.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Returns a table that has its heading and no row yet.
    pub fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|text| Cell::new(*text, Tone::Bold)).collect()] }
    }

    /// Adds a row, its label set in by two.
    pub fn row(&mut self, label: &str, tone: Tone, cells: impl IntoIterator<Item = Cell>) {
        let label = Cell::new(format!("  {label}"), tone);
        self.rows.push(std::iter::once(label).chain(cells).collect());
    }

    /// Returns the width of the widest line.
    pub fn width(&self) -> usize {
        self.width_of(0) + self.width_right()
    }

    /// Returns the widths of all columns but the first, with the gaps.
    pub fn width_right(&self) -> usize {
        (1..self.columns()).map(|column| 2 + self.width_of(column)).sum()
    }

    fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn width_of(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max().unwrap_or(0)
    }

    /// Writes the table, one line a row.
    pub fn write(&self, paint: Paint, out: &mut String) {
        let widths: Vec<usize> = (0..self.columns()).map(|column| self.width_of(column)).collect();
        for row in &self.rows {
            let mut line = String::new();
            let mut pending = 0;
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = width - cell.width();
                let before = pending + if column == 0 { 0 } else { 2 + gap };
                pending = if column == 0 { gap } else { 0 };
                if cell.text.is_empty() {
                    pending += before;
                    continue;
                }
                line.extend(std::iter::repeat_n(' ', before));
                line.push_str(&paint.apply(cell.tone, &cell.text));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// Returns `text` with everything that would move a cursor or turn the direction of what is written
/// replaced by a space.
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { ' ' } else { c }).collect()
}

/// Tells whether a character moves a cursor, breaks a line, turns the direction of what is written
/// (Unicode Standard Annex 9), or is not seen at all.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
        )
}

/// Returns how many columns of a terminal a text takes: two for a wide character
/// (Unicode Standard Annex 11).
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Returns `text` cut in its middle to at most `width` characters.
pub fn elided(text: &str, width: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= width {
        return text.to_owned();
    }
    let keep = width.saturating_sub(1);
    let (head, tail) = (keep / 2, keep - keep / 2);
    let (head, tail) = (&chars[..head], &chars[chars.len() - tail..]);
    head.iter().chain(['…'].iter()).chain(tail).collect()
}

/// Returns texts cut to at most `width` characters each; those that would become the same are cut
/// before the place at which they differ.
pub(crate) fn elided_apart(texts: &[String], width: usize) -> Vec<String> {
    let cut: Vec<String> = texts.iter().map(|text| elided(text, width)).collect();
    let apart = |at: usize| {
        let same = |other: usize| cut[other] == cut[at] && texts[other] != texts[at];
        let others: Vec<usize> = (0..texts.len()).filter(|other| same(*other)).collect();
        if others.is_empty() {
            return cut[at].clone();
        }
        let shared = |other: &usize| {
            let pairs = texts[at].chars().zip(texts[*other].chars());
            pairs.take_while(|(a, b)| a == b).count()
        };
        let from = others.iter().map(shared).min().unwrap_or_default();
        let head: String = texts[at].chars().take(from.min(width / 3)).collect();
        let rest: String = texts[at].chars().skip(from.saturating_sub(1)).collect();
        let room = width.saturating_sub(head.chars().count() + 1);
        let tail: String = rest.chars().take(room).collect();
        format!("{head}…{tail}")
    };
    (0..texts.len()).map(apart).collect()
}

/// Writes a warning as a [`paragraph`] whose first word stands out.
pub(crate) fn warning(text: &str, width: usize, paint: Paint, out: &mut String) {
    let mut plain = String::new();
    paragraph("warning: ", &harmless(text), width, &mut plain);
    out.push_str(&plain.replacen("warning:", &paint.apply(Tone::Warn, "warning:"), 1));
}

/// Returns how many bytes of a text fit into so many columns.
fn fitting(text: &str, room: usize) -> usize {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    ends.take_while(|end| columns(&text[..*end]) <= room).last().unwrap_or(text.len())
}

/// Writes `text` after `lead` in lines of at most `width`, the later ones set in as far as the lead
/// is long.
///
/// A word longer than a line is broken.
pub fn paragraph(lead: &str, text: &str, width: usize, out: &mut String) {
    let indent = columns(lead);
    let room = width.saturating_sub(indent).max(20);
    let mut line = String::new();
    let mut lines = Vec::new();
    for word in text.split_whitespace() {
        let used = columns(&line);
        if used > 0 && used + 1 + columns(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        let mut rest = word;
        while columns(rest) > room {
            let (head, tail) = rest.split_at(fitting(rest, room));
            lines.push(head.to_owned());
            rest = tail;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(rest);
    }
    lines.push(line);
    for (index, line) in lines.iter().enumerate() {
        match index {
            0 => out.push_str(lead),
            _ => out.extend(std::iter::repeat_n(' ', indent)),
        }
        out.push_str(line);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_and_without_colour() {
        let mut table = Table::new(&["latency", "p50", "max"]);
        table.row("GET", Tone::Plain, ["1.00 ms".into(), Cell::new("33.0 ms", Tone::Bad)]);
        table.row("", Tone::Plain, ["".into(), "–".into()]);
        let (mut plain, mut colored) = (String::new(), String::new());
        table.write(Paint { color: false }, &mut plain);
        table.write(Paint { color: true }, &mut colored);
        let lines =
            ["latency      p50      max", "  GET    1.00 ms  33.0 ms", "                        –"];
        assert_eq!(plain.lines().collect::<Vec<_>>(), lines);
        assert_eq!(
            colored.replace("\x1b[1m", "").replace("\x1b[31m", "").replace("\x1b[0m", ""),
            plain
        );
        assert_eq!(table.width_right(), 18);
    }

    #[test]
    fn long_text_is_cut_or_broken_to_fit() {
        assert_eq!(elided("http://a.example:9000", 11), "http:…:9000");
        assert_eq!(elided("short", 11), "short");
        let names = ["work.objects.0.get.size", "work.objects.1.get.size", "work.other"];
        let names = names.map(str::to_owned);
        assert_eq!(elided(&names[0], 12), elided(&names[1], 12));
        let apart = elided_apart(&names, 12);
        assert_eq!(apart, ["work….0.get.", "work….1.get.", "work.other"]);
        let mut out = String::new();
        paragraph("note: ", "one two three four five aaaaaaaaaaaaaaaaaaaaaaaaa", 26, &mut out);
        assert_eq!(
            out,
            "note: one two three four\n      five\n      aaaaaaaaaaaaaaaaaaaa\n      aaaaa\n"
        );
        assert_eq!(harmless("a\x1b[2Jb\nc"), "a [2Jb c");
    }

    #[test]
    fn what_a_store_writes_neither_turns_lines_around_nor_breaks_columns() {
        assert_eq!(harmless("a\u{202e}b\u{2066}c\u{200b}d\u{feff}\x1b[31m"), "a b c d  [31m");
        // Two columns each, as terminals show them.
        let mut table = Table::new(&["", "n"]);
        table.row("東京", Tone::Plain, ["1".into()]);
        table.row("abcd", Tone::Plain, ["2".into()]);
        let mut text = String::new();
        table.write(Paint { color: false }, &mut text);
        let ends: Vec<usize> = text.lines().map(columns).collect();
        assert_eq!(ends, [9, 9, 9]);
        let mut text = String::new();
        paragraph("", &"東".repeat(25), 20, &mut text);
        assert_eq!(text.lines().map(columns).collect::<Vec<_>>(), [20, 20, 10]);
    }
}
