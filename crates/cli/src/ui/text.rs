//! Lines of styled text, and the control sequences that show them on a terminal (ECMA-48).

use plimsoll_report::table::is_harmful;
use unicode_width::UnicodeWidthChar;

/// How a text stands out. Without colors its weight still does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Strong,
    /// Of words about figures.
    Faint,
    /// Of what went wrong.
    Bad,
    /// Of charts and progress.
    Bars,
}

impl Style {
    fn sequence(self, color: bool) -> &'static str {
        match (self, color) {
            (Self::Plain, _) | (Self::Bars, false) => "",
            (Self::Strong, _) | (Self::Bad, false) => "\x1b[1m",
            (Self::Faint, _) => "\x1b[2m",
            (Self::Bad, true) => "\x1b[1;31m",
            (Self::Bars, true) => "\x1b[36m",
        }
    }
}

/// A line: one text after the other, each in its style.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line(pub(super) Vec<(Style, String)>);

impl Line {
    pub(super) fn new(style: Style, text: impl Into<String>) -> Self {
        Self(vec![(style, text.into())])
    }

    fn columns(&self) -> usize {
        self.0.iter().map(|(_, text)| columns(text)).sum()
    }

    /// Drops what does not fit into `columns` columns.
    pub(super) fn fit(&mut self, columns: usize) {
        let mut room = columns;
        for (_, text) in &mut self.0 {
            let wanted = self::columns(text);
            *text = fitting(text, room);
            room = room.saturating_sub(wanted);
        }
    }
}

/// Returns the control sequences and texts that turn `before` into `after` on a terminal of
/// `columns` columns. Each row that differs is written whole.
pub(super) fn changes(before: &[Line], after: &[Line], columns: usize, color: bool) -> String {
    let mut out = String::new();
    for (row, line) in after.iter().enumerate().filter(|(row, line)| before.get(*row) != Some(line))
    {
        out.push_str(&format!("\x1b[{};1H", row + 1));
        for (style, text) in &line.0 {
            match style.sequence(color) {
                "" => out.push_str(text),
                sequence => out.extend([sequence, text, "\x1b[0m"]),
            }
        }
        // Behind the last column the cursor still stands on it, and would erase its character.
        if line.columns() < columns {
            out.push_str("\x1b[K");
        }
    }
    out
}

/// Returns a text in so many columns, with a sign where it was cut.
pub(super) fn cut(text: &str, columns: usize) -> String {
    match columns {
        0 => String::new(),
        _ if self::columns(text) <= columns => text.to_owned(),
        _ => format!("{}…", fitting(text, columns - 1)),
    }
}

/// Returns the start of a text that fits into so many columns. What moves a cursor is left out, as
/// stores and agents may have sent it.
pub(super) fn fitting(text: &str, columns: usize) -> String {
    let mut used = 0;
    let harmless = text.chars().filter(|c| !is_harmful(*c));
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    harmless.take_while(fits).collect()
}

/// Returns how many columns a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.chars().filter_map(UnicodeWidthChar::width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_that_changed_are_written() {
        let plain = |text: &str| Line::new(Style::Plain, text);
        let before = [plain("same"), plain("long ago"), plain("")];
        let after = [plain("same"), plain("now"), plain("full row")];
        assert_eq!(changes(&before, &after, 8, true), "\x1b[2;1Hnow\x1b[K\x1b[3;1Hfull row");
        assert_eq!(changes(&after, &after, 8, true), "");
        let all = "\x1b[1;1Hsame\x1b[K\x1b[2;1Hnow\x1b[K\x1b[3;1Hfull row";
        assert_eq!(changes(&[], &after, 8, true), all);
    }

    #[test]
    fn weight_is_shown_without_colors() {
        let styles = [Style::Plain, Style::Strong, Style::Faint, Style::Bad, Style::Bars];
        let line = Line(styles.map(|style| (style, "x".to_owned())).to_vec());
        let shown = |color| changes(&[], std::slice::from_ref(&line), 5, color);
        let colored = "x\x1b[1mx\x1b[0m\x1b[2mx\x1b[0m\x1b[1;31mx\x1b[0m\x1b[36mx\x1b[0m";
        assert_eq!(shown(true), format!("\x1b[1;1H{colored}"));
        let weight = "x\x1b[1mx\x1b[0m\x1b[2mx\x1b[0m\x1b[1mx\x1b[0mx";
        assert_eq!(shown(false), format!("\x1b[1;1H{weight}"));
    }

    #[test]
    fn a_line_fits_by_the_columns_of_its_characters_and_moves_no_cursor() {
        let fitted = |columns| {
            let mut line = Line::new(Style::Plain, "a\x1b[2J\t語");
            line.0.push((Style::Bad, "e\u{301}語".to_owned()));
            line.fit(columns);
            line.0.into_iter().map(|(_, text)| text).collect::<String>()
        };
        assert_eq!(fitted(9), "a[2J語e\u{301}語");
        assert_eq!(fitted(8), "a[2J語e\u{301}");
        assert_eq!(fitted(5), "a[2J");
        assert_eq!(fitted(0), "");
        let cuts = [0, 1, 2, 3, 4, 5, 6].map(|columns| cut("語語語", columns));
        assert_eq!(cuts, ["", "…", "…", "語…", "語…", "語語…", "語語語"]);
    }
}
