//! The report for people: the headline, where the figures come from, aligned tables, errors,
//! warnings.

mod brief;
mod loopback;
mod stages;

pub use loopback::loopback;
pub(crate) use stages::warnings;

use std::time::Duration;

use plimsoll_analysis::{Advice, Figures, SegmentRate, Times};
use plimsoll_model::{ErrorClass, Moment, OpKind};

use crate::format::{UNKNOWN, byte_rate, count, duration, known, object_rate, op_rate, percent};
use crate::report::RowView;
use crate::table::{Cell, Paint, Table, Tone, elided, harmless, paragraph, toned, warning};
use crate::words;
use crate::{Report, agents, stage_words, verdict};

/// How the text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns there are; tables need 80 for the largest figures.
    pub width: u16,
    /// Whether to mark text by colour; without, there is no control character but the line feed.
    pub color: bool,
}

/// How many texts of one class of error are shown.
const MESSAGES_PER_CLASS_MAX: usize = 3;
/// How much of a text is shown.
const MESSAGE_CHARS_MAX: usize = 400;

/// A set of operations with its name.
struct Row<'a> {
    name: &'static str,
    mix_percent: Option<f64>,
    figures: &'a Figures,
}

/// Builds the text part by part.
struct Writer<'a> {
    report: RowView<'a>,
    width: usize,
    paint: Paint,
    out: String,
}

/// Returns the report at a glance, as text that ends with a line feed: of a run of one stage a
/// screen of 24 lines.
pub fn brief(report: &Report, look: &Look) -> String {
    let width = usize::from(look.width.max(40));
    let paint = Paint { color: look.color };
    let headline = match report.only_row() {
        Some(row) => {
            let mut writer = Writer { report: row, width, paint, out: String::new() };
            writer.headline();
            writer.out
        }
        None => stages::headline(report, width, paint),
    };
    headline + &brief::body(report, width, paint)
}

/// Returns the report with all figures as text that ends with a line feed: one result on objects as
/// compactly as it can be, others stage by stage.
pub fn render(report: &Report, look: &Look) -> String {
    let width = usize::from(look.width.max(40));
    let paint = Paint { color: look.color };
    let scraped = crate::scraped::text(report, width, paint);
    let Some(report) = report.only_row() else {
        return stages::render(report, width, paint) + &scraped;
    };
    let mut writer = Writer { report, width, paint, out: String::new() };
    writer.headline();
    writer.schedule_not_kept();
    writer.verdict();
    writer.origin();
    writer.figures();
    writer.remarks();
    writer.out + &scraped
}

/// Returns how a title looks: that of a run without all of its agents as bad as what failed.
fn title_tone(report: &Report) -> Tone {
    if report.is_degraded() { Tone::Bad } else { Tone::Bold }
}

/// Writes a title and figures behind it, in lines of which none breaks a figure.
fn first_line(
    (title, title_tone): (&str, Tone),
    parts: &[String],
    tone: Tone,
    (width, paint): (usize, Paint),
    out: &mut String,
) {
    out.push_str(&paint.apply(title_tone, title));
    let mut used = title.chars().count();
    for (index, part) in parts.iter().enumerate() {
        let lead = if index == 0 { " " } else { " · " };
        used += lead.chars().count() + part.chars().count();
        if used > width {
            out.push_str("\n ");
            used = 2 + part.chars().count();
        } else if index > 0 {
            out.push_str(" ·");
        }
        out.push_str(&format!(" {}", paint.apply(tone, part)));
    }
    out.push_str("\n\n");
}

/// Writes the tables of one row.
fn tables(report: RowView<'_>, width: usize, paint: Paint, out: &mut String) {
    let mut writer = Writer { report, width, paint, out: std::mem::take(out) };
    writer.figures();
    *out = writer.out;
}

impl Writer<'_> {
    /// Writes all figures, if there are any.
    fn figures(&mut self) {
        if self.report.row.analysis.kinds.is_empty() {
            return;
        }
        self.operations();
        self.rates();
        self.times();
        crate::steps::write(&self.report.row.steps, self.paint, &mut self.out);
        self.hosts();
        self.errors();
        self.ledger();
        crate::detail::write(&self.report, self.width, self.paint, &mut self.out);
    }

    /// Returns the kinds, and their total when there are several.
    fn rows(&self) -> Vec<Row<'_>> {
        let analysis = &self.report.row.analysis;
        let kinds = analysis.kinds.iter().map(|kind| Row {
            name: kind.kind.name(),
            mix_percent: kind.mix_percent,
            figures: &kind.figures,
        });
        let mut rows: Vec<Row<'_>> = kinds.collect();
        if rows.len() > 1 {
            let mix_percent = (analysis.total.counts.started > 0).then_some(100.0);
            rows.push(Row { name: "total", mix_percent, figures: &analysis.total });
        }
        rows
    }

    fn headline(&mut self) {
        let (report, total) = (self.report, &self.report.row.analysis.total);
        let mut parts = Vec::new();
        if let Some(rates) = total.rates.filter(|_| !report.row.analysis.kinds.is_empty()) {
            parts.push(op_rate(rates.ops));
            let one_kind = report.row.analysis.kinds.len() == 1;
            if one_kind && rates.objects > rates.ops {
                parts.push(object_rate(rates.objects));
            }
            if total.moves_bytes {
                parts.push(byte_rate(rates.bytes));
            }
        }
        let latencies = stage_words::latencies(&report.row.analysis);
        parts.extend(latencies.map(|(name, value)| format!("{name} {}", duration(value))));
        let failed = total.stage.failed.count();
        parts.push(match report.row.analysis.error_rate() {
            None => "no operation ended".to_owned(),
            Some(rate) if failed > 0 => {
                format!("{} failed ({})", count(failed), percent(rate * 100.0))
            }
            Some(_) => "0 failed".to_owned(),
        });
        let not_the_store = verdict::headline(&report);
        parts.extend(not_the_store.map(str::to_owned));
        let partial = agents::partial(&report.agents);
        parts.extend(partial.clone());
        let title = format!("{}:", harmless(&report.title()));
        let is_bad = failed > 0 || total.stage.ops_ok == 0 || not_the_store.is_some();
        let tone = match is_bad || partial.is_some() {
            true => Tone::Bad,
            false if report.row.schedule_kept() => Tone::Good,
            false => Tone::Warn,
        };
        let title = (&*title, title_tone(&report));
        first_line(title, &parts, tone, (self.width, self.paint), &mut self.out);
    }

    /// Writes, where nobody can overlook it, that the load was not the one that was asked for.
    fn schedule_not_kept(&mut self) {
        let Some(text) = self.report.schedule_warning() else { return };
        toned((Tone::Bad, self.paint), "", &text, self.width, &mut self.out);
        self.out.push('\n');
    }

    /// Writes who was the limit.
    fn verdict(&mut self) {
        if self.report.stage.verdict.is_some() {
            verdict::write(self.report.stage, self.width, self.paint, &mut self.out);
            self.out.push('\n');
        }
    }

    /// Writes one named line.
    fn fact(&mut self, name: &str, text: &str) {
        paragraph(&format!("{name:<12}"), &harmless(text), self.width, &mut self.out);
    }

    /// Writes where the figures come from.
    fn origin(&mut self) {
        let report = self.report;
        self.fact("target", &report.target());
        if let Some(agents) = agents::line(&report.agents) {
            self.fact("agents", &agents);
        }
        self.fact("load", &words::loop_model(&report));
        for (name, text) in report.schedule_facts() {
            self.fact(name, &text);
        }
        self.fact("measured", &words::span(&report));
        let offset = report.utc_offset_seconds;
        self.fact("began", &words::began(report.began(), offset));
    }

    fn operations(&mut self) {
        let mut table =
            Table::new(&["operations", "mix", "succeeded", "failed", "error rate", "samples"]);
        for row in self.rows() {
            let stage = &row.figures.stage;
            let failed = stage.failed.count();
            let ended = stage.ops_ok + failed;
            let rate = (ended > 0).then(|| failed as f64 / ended as f64 * 100.0);
            let tone = if failed > 0 { Tone::Bad } else { Tone::Plain };
            let cells = [
                known(row.mix_percent, |mix| format!("{mix:.1} %")).into(),
                count(stage.ops_ok).into(),
                Cell::new(count(failed), tone),
                Cell::new(known(rate, percent), tone),
                count(row.figures.latency.samples).into(),
            ];
            table.row(row.name, Tone::Plain, cells);
        }
        self.table(&table);
        let throttled = self.report.row.analysis.advice.iter().find_map(|advice| match *advice {
            Advice::Throttled { count, share } => Some(words::throttled(count, share)),
            _ => None,
        });
        if let Some(text) = throttled {
            self.fact("  throttled", &text);
        }
        for (class, text) in words::wrong(&self.report) {
            self.fact(&format!("  {class}"), &text);
        }
        if let Some(text) = words::goodput(&self.report) {
            self.fact("  goodput", &text);
        }
    }

    fn table(&mut self, table: &Table) {
        self.out.push('\n');
        table.write(self.paint, &mut self.out);
    }

    fn rates(&mut self) {
        let analysis = &self.report.row.analysis;
        let segment = duration(analysis.segment).replace(".00", "");
        let of_segment = |name: &str| format!("{name} {segment}");
        let headings = ["fastest", "median", "slowest"].map(of_segment);
        let [fastest, median, slowest] = &headings;
        let mut table = Table::new(&["rate", "average", fastest, median, slowest]);
        for row in self.rows() {
            self.rate_rows(&row, &mut table);
        }
        self.table(&table);
    }

    /// Adds operations, objects where they differ, bytes where they move, and when it was.
    fn rate_rows(&self, row: &Row<'_>, table: &mut Table) {
        let figures = row.figures;
        let segments = figures.segments.map(|s| [s.fastest, s.median, s.slowest]);
        let cells = |text: &dyn Fn(&plimsoll_analysis::Rates) -> String| -> Vec<Cell> {
            let average = known(figures.rates, |rates| text(&rates));
            let each = |rate: SegmentRate| text(&rate.rates);
            let picked = segments.map_or([(); 3].map(|()| UNKNOWN.to_owned()), |s| s.map(each));
            std::iter::once(average).chain(picked).map(Cell::from).collect()
        };
        table.row(row.name, Tone::Plain, cells(&|rates| op_rate(rates.ops)));
        if figures.stage.objects != figures.stage.ops_ok {
            table.row("", Tone::Plain, cells(&|rates| object_rate(rates.objects)));
        }
        if figures.moves_bytes {
            table.row("", Tone::Plain, cells(&|rates| byte_rate(rates.bytes)));
        }
        let Some(segments) = segments else { return };
        let span = &self.report.row.analysis.span;
        let from = |moment: Moment| match moment.since(span.start) {
            Duration::ZERO => "from the start".to_owned(),
            offset => format!("from +{}", duration(offset)),
        };
        let over = format!("over {}", duration(span.length()));
        let picked = segments.map(|segment| from(segment.start));
        let cells = std::iter::once(over).chain(picked).map(|text| Cell::new(text, Tone::Dim));
        table.row("", Tone::Plain, cells);
    }

    fn times(&mut self) {
        let has_ttfb = |row: &Row<'_>| row.figures.ttfb.samples > 0;
        if self.rows().iter().any(|row| words::has_delays(row.figures)) {
            self.open_times();
        } else {
            self.times_table("latency", |figures| &figures.latency);
        }
        if self.rows().iter().any(has_ttfb) {
            self.times_table("TTFB", |figures| &figures.ttfb);
        }
        self.parts();
    }

    /// Writes the times of the parts that writes have.
    fn parts(&mut self) {
        let mut table = times_table("parts");
        for row in self.rows() {
            let Some(parts) = &row.figures.parts else { continue };
            add_times(&mut table, &format!("{} assign", row.name), &parts.assign);
            add_times(&mut table, "    upload", &parts.upload);
        }
        if self.rows().iter().any(|row| row.figures.parts.is_some()) {
            self.table(&table);
        }
    }

    /// Writes latency and service time beside each other, and the delay that lies between them.
    fn open_times(&mut self) {
        let mut table = Table::new(&["times", "p50", "p90", "p99", "p99.9", "max", "mean"]);
        for row in self.rows() {
            let delay = row.figures.schedule_delay.as_ref();
            let times = [
                (format!("{} latency", row.name), Some(&row.figures.latency)),
                ("    service".to_owned(), Some(row.figures.service())),
                ("    delay".to_owned(), delay),
            ];
            for (label, times) in times {
                let Some(times) = times else { continue };
                let &Times { p50, p90, p99, p99_9, max, mean, .. } = times;
                let cells = [p50, p90, p99, p99_9, max, mean];
                let cells = cells.map(|value| Cell::from(known(value, duration)));
                table.row(&label, Tone::Plain, cells);
            }
        }
        self.table(&table);
        paragraph("  ", words::OPEN_TIMES, self.width, &mut self.out);
    }

    fn times_table(&mut self, name: &str, of: impl Fn(&Figures) -> &Times) {
        let mut table = times_table(name);
        for row in self.rows() {
            add_times(&mut table, row.name, of(row.figures));
        }
        self.table(&table);
    }

    /// Writes what each host did, when there are several; all over the same span.
    fn hosts(&mut self) {
        let analysis = &self.report.row.analysis;
        if self.report.endpoints.len().max(analysis.endpoints.len()) < 2 {
            return;
        }
        let moves_bytes = analysis.total.moves_bytes;
        let mut heading = vec!["hosts", "failed", "rate"];
        heading.extend(moves_bytes.then_some("throughput"));
        heading.extend(["p50", "p99"]);
        let cells = |figures: &Figures| {
            let failed = figures.stage.failed.count();
            let tone = if failed > 0 { Tone::Bad } else { Tone::Plain };
            let mut cells = vec![Cell::new(count(failed), tone)];
            cells.push(known(figures.rates, |rates| op_rate(rates.ops)).into());
            if moves_bytes {
                cells.push(known(figures.rates, |rates| byte_rate(rates.bytes)).into());
            }
            let latency = [figures.latency.p50, figures.latency.p99];
            cells.extend(latency.map(|value| Cell::from(known(value, duration))));
            cells
        };
        let table = |name_chars_max: usize| {
            let mut table = Table::new(&heading);
            for at in &analysis.endpoints {
                let name = harmless(&self.report.endpoint(at.endpoint));
                table.row(&elided(&name, name_chars_max), Tone::Plain, cells(&at.figures));
            }
            table
        };
        let room = self.width.saturating_sub(2 + table(usize::MAX).width_right());
        let table = table(room.max(8));
        self.table(&table);
    }

    fn errors(&mut self) {
        let analysis = &self.report.row.analysis;
        if analysis.total.stage.failed.count() == 0 {
            return;
        }
        let heading = self.paint.apply(Tone::Bold, "errors of the whole stage");
        self.out.push_str(&format!("\n{heading}\n"));
        for kind in &analysis.kinds {
            for (class, failed) in kind.figures.stage.failed.classes() {
                let line = format!("  {} {} {}", count(failed), kind.kind.name(), class.name());
                self.out.push_str(&self.paint.apply(Tone::Bad, &line));
                self.out.push('\n');
                self.messages(kind.kind, class);
            }
        }
    }

    /// Writes when nothing succeeded, and when it took long.
    fn ledger(&mut self) {
        let lines = crate::ledger::lines(&self.report);
        if !lines.is_empty() {
            self.out.push('\n');
        }
        lines.iter().for_each(|(name, text)| self.fact(name, text));
    }

    /// Writes the first texts of one class.
    fn messages(&mut self, kind: OpKind, class: ErrorClass) {
        let report = self.report;
        let limits = (MESSAGES_PER_CLASS_MAX, MESSAGE_CHARS_MAX);
        let texts = words::messages(&report.stage.errors, (kind, class), limits, |error| {
            harmless(&words::said(&report, error))
        });
        for text in texts {
            paragraph("    ", &text, self.width, &mut self.out);
        }
    }

    /// Writes what else there is to know, the warnings, and where the run lies.
    fn remarks(&mut self) {
        let report = self.report;
        self.out.push('\n');
        for (name, text) in words::remarks(&report) {
            self.fact(name, &text);
        }
        self.fact("units", "1 MiB = 1,048,576 bytes; – is unknown or from too few samples");
        for (name, text) in crate::crimes::lines(&report) {
            self.fact(name, text);
        }
        self.warnings();
        for note in &report.notes {
            paragraph("note: ", &harmless(note), self.width, &mut self.out);
        }
        if let Some(directory) = &report.run_directory {
            // Never broken, so that it can be copied.
            self.out.push_str(&format!("\nrun kept in {}\n", harmless(directory)));
        }
    }

    fn warnings(&mut self) {
        let report = self.report;
        let warnings = words::warnings(&report, |_| true);
        if !(warnings.is_empty() && report.notes.is_empty()) {
            self.out.push('\n');
        }
        for text in &warnings {
            warning(text, self.width, self.paint, &mut self.out);
        }
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;

fn times_table(name: &str) -> Table {
    Table::new(&[name, "p50", "p90", "p99", "p99.9", "max", "mean ± deviation"])
}

fn add_times(table: &mut Table, name: &str, times: &Times) {
    let figures = [times.p50, times.p90, times.p99, times.p99_9, times.max];
    let figures = figures.map(|value| known(value, duration));
    let cells = figures.into_iter().chain([words::spread(times)]).map(Cell::from);
    table.row(name, Tone::Plain, cells);
}
