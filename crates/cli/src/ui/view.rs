//! Lays out what goes on, in whatever room there is.

use std::time::Duration;

use plimsoll_model::OpRate;
use plimsoll_report::format;

use super::columns::{BARS, Section, table};
use super::sample::{FailureRow, View, left_in_words};
use super::text::{Line, Style, cut};

/// What is written below all.
const KEYS: &str = "q ends this stage, Ctrl-C the run: both with a report";
/// Fewer columns than this hold no chart beside another.
const CHART_COLUMNS_MIN: usize = 36;
/// A chart is this many rows high where there is room, and never less than the second.
const CHART_ROWS: (usize, usize) = (24, 3);
/// So many lines of what was said are shown where something else needs the room.
const SAID_MIN: usize = 2;

/// Returns the rows of a screen of that size, with what was said last at its foot. They are cut to
/// the rows that there are: figures first, then what failed, then the past and what was said.
pub(super) fn frame(view: &View, said: &[String], width: usize, height: usize) -> Vec<Line> {
    let mut lines = head(view, width);
    lines.truncate(height);
    // The last row is for the keys.
    let mut left = height.saturating_sub(lines.len() + 1);
    let mut failures = failures(view, width);
    failures.truncate(left / 3);
    let kinds = view.kinds.len() + 1;
    let others = left.saturating_sub(kinds + failures.len());
    let min = CHART_ROWS.1 + 1;
    // Charts give way to addresses and agents, but not to all of them.
    let rest = others.saturating_sub(if others > 2 * min { min } else { 0 });
    let mut table = table(&sections(view, rest), width);
    table.truncate(left - failures.len());
    left -= table.len() + failures.len();
    let said_min = said.len().min(SAID_MIN);
    let charts = charts(view, width, left.saturating_sub(said_min).min(CHART_ROWS.0));
    let said = &said[said.len().saturating_sub(left - charts.len())..];
    lines.extend(table.into_iter().chain(charts).chain(failures));
    lines.extend(said.iter().map(|line| Line::new(Style::Faint, cut(line, width))));
    if lines.len() < height {
        lines.resize(height - 1, Line::default());
        lines.push(Line::new(Style::Faint, cut(KEYS, width)));
    }
    lines.iter_mut().for_each(|line| line.fit(width));
    lines
}

/// Returns the lines above the figures.
fn head(view: &View, width: usize) -> Vec<Line> {
    let mut words = vec![view.progress.clone()];
    words.extend(view.left.filter(|left| !left.is_zero()).map(left_in_words));
    let words = words.join(", ");
    let room = width.saturating_sub(words.chars().count() + 1).min(40);
    let filled = (view.share * room as f64) as usize;
    let bar = Line(vec![
        (Style::Bars, "━".repeat(filled)),
        (Style::Faint, "─".repeat(room - filled)),
        (Style::Plain, format!(" {words}")),
    ]);
    let mut lines = vec![Line::new(Style::Strong, cut(&view.doing, width)), bar];
    lines.extend(view.silent.clone().map(|silent| Line::new(Style::Bad, silent)));
    if let Some((offered, achieved)) = view.offered {
        let share = if offered > 0.0 { 100.0 * achieved / offered } else { 100.0 };
        let [offered, achieved] = [offered, achieved].map(|rate| format::op_rate(OpRate(rate)));
        let text = format!("offered {offered}, achieved {achieved}: {share:.0} %");
        lines.push(Line::new(Style::Plain, cut(&text, width)));
    }
    lines.push(Line::default());
    lines
}

/// Returns the sections of the table, of which those after the first have `rest` lines in all.
fn sections(view: &View, rest: usize) -> Vec<Section<'_>> {
    /// A blank line and a heading come before rows, of which one at least is shown.
    const LINES_MIN: usize = 3;
    let mut sections = vec![Section { title: "kind".to_owned(), rows: &view.kinds }];
    let others = [("agent", &view.agents), ("host", &view.hosts)];
    let others: Vec<_> = others.into_iter().filter(|(_, rows)| !rows.is_empty()).collect();
    let mut rest = rest;
    for (index, (name, rows)) in others.iter().enumerate() {
        if rest < LINES_MIN {
            break;
        }
        let later = LINES_MIN * (others.len() - index - 1);
        let room = (rest + 1).saturating_sub(later + LINES_MIN).max(1);
        let shown = rows.len().min(room);
        let of_all =
            if shown < rows.len() { format!(", {shown} of {}", rows.len()) } else { String::new() };
        sections.push(Section { title: format!("{name}{of_all}"), rows: &rows[..shown] });
        rest -= LINES_MIN - 1 + shown;
    }
    sections
}

fn failures(view: &View, width: usize) -> Vec<Line> {
    if view.failures.is_empty() {
        return Vec::new();
    }
    let counts = view.failures.iter().map(|row| format::count(row.count).len());
    let classes = view.failures.iter().map(|row| row.class.name().len());
    let (counts, classes) = (counts.max().unwrap_or(0), classes.max().unwrap_or(0));
    let line = |row: &FailureRow| {
        let count = format::count(row.count);
        let head = format!("{count:>counts$} {:<classes$}  ", row.class.name());
        let text = cut(&row.text, width.saturating_sub(head.chars().count()));
        Line(vec![(Style::Bad, head), (Style::Plain, text)])
    };
    let mut lines = vec![Line::default(), Line::new(Style::Faint, "failed, with the last text")];
    lines.extend(view.failures.iter().map(line));
    lines
}

/// Returns rate and p99 by second in `rows` rows, side by side where there is room; nothing where
/// there are too few rows.
fn charts(view: &View, width: usize, rows: usize) -> Vec<Line> {
    /// Between two charts.
    const GAP: &str = "  ";
    if rows < CHART_ROWS.1 {
        return Vec::new();
    }
    let is_wide = width >= 2 * CHART_COLUMNS_MIN;
    let left = if is_wide { (width - GAP.len()).div_ceil(2) } else { width };
    // A blank line comes before the title.
    let rates =
        chart("rate", &view.rates, left, rows - 1, |rate| format!("{} ops/s", format::count(rate)));
    let p99s = chart("p99", &view.p99s, width.saturating_sub(left + GAP.len()), rows - 1, |ns| {
        format::duration(Duration::from_nanos(ns))
    });
    let row = |(index, (rates, p99s)): (usize, (String, String))| {
        let text = if is_wide { format!("{rates:<left$}{GAP}{p99s}") } else { rates };
        Line::new(if index == 0 { Style::Faint } else { Style::Bars }, text)
    };
    let lines = rates.into_iter().zip(p99s).enumerate().map(row);
    std::iter::once(Line::default()).chain(lines).collect()
}

/// Returns the last of a past as a title and bars against the highest of them, in `rows` rows.
fn chart(
    name: &str,
    past: &[u64],
    columns: usize,
    rows: usize,
    in_words: impl Fn(u64) -> String,
) -> Vec<String> {
    let past = &past[past.len().saturating_sub(columns)..];
    let highest = past.iter().copied().max();
    let highest_in_words = highest.map(|highest| format!(", up to {}", in_words(highest)));
    let title = format!("{name} by second{}", highest_in_words.unwrap_or_default());
    let steps = (rows - 1) * BARS.len();
    // The product of the steps and nanoseconds may take more than 64 bits.
    let level = |value: u64| {
        u128::from(value) * steps as u128 / u128::from(highest.unwrap_or_default().max(1))
    };
    let row = |row: usize| {
        let below = row * BARS.len();
        let bar = |value: &u64| match (level(*value) as usize).saturating_sub(below) {
            0 => ' ',
            part => BARS[part.min(BARS.len()) - 1],
        };
        past.iter().map(bar).collect()
    };
    std::iter::once(cut(&title, columns)).chain((0..rows - 1).rev().map(row)).collect()
}
