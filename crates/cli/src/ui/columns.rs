//! The figures of a live screen in columns. Where there are too few columns for all of them, whole
//! ones are left out: no figure is cut.

use std::time::Duration;

use plimsoll_model::ByteRate;
use plimsoll_report::format;

use super::sample::Row;
use super::text::{Line, Style, cut};

/// Rows of one sort.
pub(super) struct Section<'a> {
    pub(super) title: String,
    pub(super) rows: &'a [Row],
}

/// A column of figures.
struct Column {
    title: &'static str,
    /// The higher, the sooner it is left out.
    spare: u8,
    text: fn(&Row) -> String,
}

const COLUMNS: [Column; 8] = [
    Column { title: "ops/s now", spare: 0, text: |row| rate(row.now) },
    Column { title: "average", spare: 2, text: |row| rate(row.mean) },
    Column { title: "bytes now", spare: 3, text: |row| byte_rate(row.bytes_now, row) },
    Column { title: "average", spare: 6, text: |row| byte_rate(row.bytes_mean, row) },
    Column { title: "p50", spare: 4, text: |row| latency(row.p50) },
    Column { title: "p99", spare: 1, text: |row| latency(row.p99) },
    Column {
        title: "in flight",
        spare: 5,
        text: |row| row.in_flight.map_or(String::new(), format::count),
    },
    Column { title: "failed", spare: 0, text: |row| format::count(row.failed) },
];
/// The column whose figures are red unless they are 0.
const FAILED: usize = COLUMNS.len() - 1;

/// Names are cut to so many columns, as their ends are seldom needed.
const NAME_MAX: usize = 28;
/// The past of a row is shown where there are so many columns for it, and in no more than that.
const PAST: (usize, usize) = (12, 60);
/// Bars of a past, from the lowest.
pub(super) const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn rate(rate: f64) -> String {
    format::count(rate.round() as u64)
}

/// Returns a rate of bytes; nothing of what moves none.
fn byte_rate(rate: f64, row: &Row) -> String {
    if row.bytes_mean > 0.0 { format::byte_rate(ByteRate(rate)) } else { "–".to_owned() }
}

fn latency(latency: Option<Duration>) -> String {
    latency.map_or_else(|| "–".to_owned(), format::duration)
}

/// Returns the lines of all sections, whose columns stand below each other, in `width` columns.
pub(super) fn table(sections: &[Section<'_>], width: usize) -> Vec<Line> {
    let rows = || sections.iter().flat_map(|section| section.rows);
    let has_bytes = rows().any(|row| row.bytes_mean > 0.0);
    let names = rows().map(|row| row.name.chars().count());
    let titles = sections.iter().map(|section| section.title.len());
    let name_width = names.chain(titles).max().unwrap_or(0).clamp(5, NAME_MAX);
    let column_width = |column: &Column| {
        let texts = rows().map(|row| (column.text)(row).chars().count());
        texts.chain([column.title.len()]).max().unwrap_or(0)
    };
    // An average belongs to what stands before it.
    let is_of_bytes = |index: &usize| matches!(index, 2 | 3);
    let kept = (0..COLUMNS.len()).filter(|index| has_bytes || !is_of_bytes(index));
    let mut shown: Vec<(usize, usize)> =
        kept.map(|index| (index, column_width(&COLUMNS[index]))).collect();
    let used = |shown: &[(usize, usize)]| {
        name_width + shown.iter().map(|(_, width)| width + 2).sum::<usize>()
    };
    while used(&shown) > width {
        let most = (0..shown.len()).max_by_key(|at| COLUMNS[shown[*at].0].spare);
        match most.filter(|_| shown.len() > 1) {
            Some(most) => drop(shown.remove(most)),
            None => break,
        }
    }
    let room = width.saturating_sub(used(&shown) + 2);
    let past = if room >= PAST.0 { room.min(PAST.1) } else { 0 };
    let layout = Shape { name_width, shown, past };
    let mut lines = Vec::new();
    for section in sections {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(layout.heading(&section.title));
        lines.extend(section.rows.iter().map(|row| layout.row(row)));
    }
    lines
}

/// Which columns are shown, and how wide they are.
struct Shape {
    name_width: usize,
    /// The index of each column, and its width.
    shown: Vec<(usize, usize)>,
    /// How many seconds of the past are shown.
    past: usize,
}

impl Shape {
    fn heading(&self, title: &str) -> Line {
        let mut text = format!("{:<1$}", title, self.name_width);
        for (index, width) in &self.shown {
            text.push_str(&format!("  {:>width$}", COLUMNS[*index].title));
        }
        Line::new(Style::Faint, text)
    }

    fn row(&self, row: &Row) -> Line {
        let name = cut(&row.name, self.name_width);
        let mut line = Line::new(Style::Strong, format!("{:<1$}", name, self.name_width));
        for (index, width) in &self.shown {
            let text = format!("  {:>width$}", (COLUMNS[*index].text)(row));
            let is_bad = *index == FAILED && row.failed > 0;
            line.0.push((if is_bad { Style::Bad } else { Style::Plain }, text));
        }
        if let Some(state) = row.state {
            let style = if state == "done" { Style::Faint } else { Style::Bad };
            line.0.push((style, format!("  {state}")));
        } else if self.past > 0 {
            line.0.push((Style::Bars, format!("  {}", bars(&row.past, self.past))));
        }
        line
    }
}

/// Returns the last of a past as bars, against the highest of them.
fn bars(past: &[u64], columns: usize) -> String {
    let past = &past[past.len().saturating_sub(columns)..];
    let highest = past.iter().copied().max().unwrap_or_default().max(1);
    let bar = |value: &u64| {
        let level = (*value as f64 / highest as f64 * (BARS.len() - 1) as f64).round();
        BARS[level as usize]
    };
    past.iter().map(bar).collect()
}
