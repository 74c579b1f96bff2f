//! Draws what goes on, in whatever room there is.

use std::time::Duration;

use plimsoll_model::OpRate;
use plimsoll_report::format;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::columns::{Section, table};
use super::sample::{FailureRow, View, left_in_words};

/// What is written below all.
const KEYS: &str = "q ends this stage, Ctrl-C the run: both with a report";
/// Fewer columns than this hold no chart beside another.
const CHART_COLUMNS_MIN: u16 = 36;
/// A chart is this many rows high where there is room, and never less than the second.
const CHART_ROWS: (u16, u16) = (24, 3);
/// So many lines of what was said are shown where something else needs the room.
const SAID_MIN: usize = 2;

/// How it is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) color: bool,
}

impl Look {
    fn colored(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// What went wrong.
    pub(super) fn bad(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Words about figures.
    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Bars.
    pub(super) fn bars(self) -> Style {
        self.colored(Color::Cyan)
    }
}

/// Draws a view, with what was said last at its foot.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, said: &[String], look: Look) {
    let area = frame.area();
    let width = usize::from(area.width);
    let blocks = Blocks::of(view, said.len(), width, usize::from(area.height), look);
    let heights = [
        blocks.head.len(),
        blocks.table.len(),
        blocks.chart_rows,
        blocks.failures.len(),
        blocks.said_count,
    ];
    let rows = heights.map(|height| Constraint::Length(height as u16));
    let [head, figures, charts, failures, notes, foot] =
        Layout::vertical(rows.into_iter().chain([Constraint::Fill(1)]).collect::<Vec<_>>())
            .areas(area);
    frame.render_widget(Paragraph::new(blocks.head), head);
    frame.render_widget(Paragraph::new(blocks.table), figures);
    draw_charts(frame, view, charts, look);
    frame.render_widget(Paragraph::new(blocks.failures), failures);
    let shown = &said[said.len() - blocks.said_count..];
    let shown: Vec<Line<'_>> =
        shown.iter().map(|line| Line::styled(cut(line, width), look.faint())).collect();
    frame.render_widget(Paragraph::new(shown), notes);
    if foot.height > 0 {
        let last = Rect { y: foot.bottom() - 1, height: 1, ..foot };
        frame.render_widget(Line::styled(cut(KEYS, width), look.faint()), last);
    }
}

/// What is shown, cut to the rows that there are: figures first, then what failed, then the past
/// and what was said.
struct Blocks<'a> {
    head: Vec<Line<'a>>,
    table: Vec<Line<'a>>,
    chart_rows: usize,
    failures: Vec<Line<'a>>,
    said_count: usize,
}

impl<'a> Blocks<'a> {
    fn of(view: &'a View, said: usize, width: usize, height: usize, look: Look) -> Self {
        let mut head = head(view, width, look);
        head.truncate(height);
        // The last row is for the keys.
        let mut left = height.saturating_sub(head.len() + 1);
        let mut failures = failures(view, width, look);
        failures.truncate(left / 3);
        let kinds = view.kinds.len() + 1;
        let others = left.saturating_sub(kinds + failures.len());
        let min = usize::from(CHART_ROWS.1) + 1;
        // Charts give way to addresses and agents, but not to all of them.
        let rest = others.saturating_sub(if others > 2 * min { min } else { 0 });
        let mut table = table(&sections(view, rest), width, look);
        table.truncate(left - failures.len());
        left -= table.len() + failures.len();
        let said_min = said.min(SAID_MIN);
        let chart = left.saturating_sub(said_min).min(usize::from(CHART_ROWS.0));
        let chart_rows = if chart >= usize::from(CHART_ROWS.1) { chart } else { 0 };
        let said_count = said.min(left - chart_rows);
        Self { head, table, chart_rows, failures, said_count }
    }
}

/// Returns the lines above the figures.
fn head<'a>(view: &'a View, width: usize, look: Look) -> Vec<Line<'a>> {
    let mut words = vec![view.progress.clone()];
    words.extend(view.left.filter(|left| !left.is_zero()).map(left_in_words));
    let words = words.join(", ");
    let room = width.saturating_sub(words.chars().count() + 1).min(40);
    let filled = (view.share * room as f64) as usize;
    let bar = Line::from(vec![
        Span::styled("━".repeat(filled), look.bars()),
        Span::styled("─".repeat(room - filled), look.faint()),
        Span::raw(format!(" {words}")),
    ]);
    let mut lines = vec![Line::styled(cut(&view.doing, width), look.strong()), bar];
    lines.extend(view.silent.clone().map(|silent| Line::styled(silent, look.bad())));
    if let Some((offered, achieved)) = view.offered {
        let share = if offered > 0.0 { 100.0 * achieved / offered } else { 100.0 };
        let [offered, achieved] = [offered, achieved].map(|rate| format::op_rate(OpRate(rate)));
        let text = format!("offered {offered}, achieved {achieved}: {share:.0} %");
        lines.push(Line::raw(cut(&text, width)));
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

fn failures<'a>(view: &'a View, width: usize, look: Look) -> Vec<Line<'a>> {
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
        Line::from(vec![Span::styled(head, look.bad()), Span::raw(text)])
    };
    let mut lines = vec![Line::default(), Line::styled("failed, with the last text", look.faint())];
    lines.extend(view.failures.iter().map(line));
    lines
}

/// Draws rate and p99 by second, side by side where there is room.
fn draw_charts(frame: &mut Frame<'_>, view: &View, area: Rect, look: Look) {
    if area.height < CHART_ROWS.1 {
        return;
    }
    let words = |name: &str, value: u64| match name {
        "p99" => format::duration(Duration::from_nanos(value)),
        _ => format!("{} ops/s", format::count(value)),
    };
    // A blank line and a title come before the bars.
    let [_, area] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let is_wide = area.width >= 2 * CHART_COLUMNS_MIN;
    let areas: Vec<Rect> = if is_wide {
        let halves = [Constraint::Fill(1), Constraint::Length(2), Constraint::Fill(1)];
        let [left, _, right] = Layout::horizontal(halves).areas(area);
        vec![left, right]
    } else {
        vec![area]
    };
    let charts = [("rate", &view.rates), ("p99", &view.p99s)];
    for (area, (name, past)) in areas.into_iter().zip(charts) {
        let past = &past[past.len().saturating_sub(usize::from(area.width))..];
        let highest = past.iter().copied().max().unwrap_or_default();
        let [title, bars] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        let text = match past {
            [] => format!("{name} by second"),
            _ => format!("{name} by second, up to {}", words(name, highest)),
        };
        frame
            .render_widget(Line::styled(cut(&text, usize::from(title.width)), look.faint()), title);
        let chart = Sparkline::default().data(past.to_vec()).max(highest.max(1));
        frame.render_widget(chart.style(look.bars()), bars);
    }
}

/// Returns a text in so many columns, with a sign where it was cut.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    if columns == 0 { kept } else { format!("{kept}…") }
}
