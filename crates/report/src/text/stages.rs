//! The report for people: one block a stage, in the order in which they ran.

use std::time::Duration;

use plimsoll_analysis::{KindAnalysis, Times};
use plimsoll_model::{ErrorClass, OpKind};

use super::{brief, first_line, tables, title_tone};
use crate::format::{self, count, duration, known};
use crate::load_line::text as load_line;
use crate::report::{Report, RowReport, RowView, StageReport};
use crate::stage_words::{self as words, bytes_per_sec, ops_per_sec};
use crate::table::{Cell, Paint, Table, Tone, elided_apart, harmless, paragraph, toned, warning};
use crate::{ErrorSample, OpLogCheck, agents, verdict, weka, words as shared};

/// How many texts of one class of error are shown.
const MESSAGES_PER_CLASS_MAX: usize = 3;
/// How much of a text is shown.
const MESSAGE_CHARS_MAX: usize = 400;
/// How much of a row's name stands above its figures.
const ROW_NAME_CHARS_MAX: usize = 14;
/// What the times of an open loop are.
const FROM_INTENDED: &str = "latency is from the intended start, service from the real one";
/// The percentiles shown, in percent, with their names.
const PERCENTILES: [(f64, &str); 5] =
    [(50.0, "p50"), (99.0, "p99"), (99.5, "p99.5"), (99.9, "p99.9"), (99.95, "p99.95")];

/// Returns the report, one block a stage.
pub(super) fn render(report: &Report, width: usize, paint: Paint) -> String {
    let mut writer = Writer { report, width, paint, out: String::new() };
    writer.headline();
    writer.verdict();
    writer.origin();
    for stage in report.stages.iter().filter(|stage| stage.probe_of.is_none()) {
        writer.stage(stage);
    }
    for load_line in &report.load_lines {
        load_line::write(report, load_line, (width, paint), &mut writer.out);
    }
    if let Some(table) = agents::table(&report.agents) {
        writer.out.push('\n');
        table.write(paint, &mut writer.out);
    }
    if let Some(table) = weka::table(report) {
        writer.out.push('\n');
        writer.out.push_str(&table);
    }
    writer.remarks();
    writer.out
}

/// Returns the first line: what ran, and its figures where they are few.
pub(super) fn headline(report: &Report, width: usize, paint: Paint) -> String {
    let mut writer = Writer { report, width, paint, out: String::new() };
    writer.headline();
    writer.out
}

/// Builds the text part by part.
struct Writer<'a> {
    report: &'a Report,
    width: usize,
    paint: Paint,
    out: String,
}

impl Writer<'_> {
    /// Writes one named line.
    fn fact(&mut self, name: &str, text: &str) {
        paragraph(&format!("{name:<12}"), &harmless(text), self.width, &mut self.out);
    }

    fn toned(&mut self, tone: Tone, lead: &str, text: &str) {
        toned((tone, self.paint), lead, text, self.width, &mut self.out);
    }

    fn headline(&mut self) {
        let report = self.report;
        let title = format!("{}:", harmless(&report.title()));
        if let [first, more @ ..] = &report.load_lines[..] {
            let look = (self.width, self.paint);
            let title = (&*title, title_tone(report));
            load_line::headline(first, title, look, &mut self.out);
            let none = ("", Tone::Bold);
            let other = |of| load_line::headline(of, none, look, &mut self.out);
            more.iter().for_each(other);
            self.out.push('\n');
            return;
        }
        let mut parts = figures(report);
        if parts.is_empty() {
            parts = brief::headline_of_several(report);
        }
        let failed = report.failed_count();
        parts.push(format!("{} failed", count(failed)));
        let not_the_store = verdict::headline(report);
        parts.extend(not_the_store.map(str::to_owned));
        let partial = agents::partial(&report.agents);
        let is_bad = failed > 0 || not_the_store.is_some() || partial.is_some();
        parts.extend(partial);
        let tone = if is_bad { Tone::Bad } else { Tone::Good };
        let title = (&*title, title_tone(report));
        first_line(title, &parts, tone, (self.width, self.paint), &mut self.out);
    }

    fn verdict(&mut self) {
        let report = self.report;
        let line = verdict::line(report).filter(|_| report.load_lines.is_empty());
        if let Some(line) = line {
            let is_client = verdict::headline(report).is_some();
            let tone = if is_client { Tone::Bad } else { Tone::Plain };
            self.toned(tone, &format!("{:<12}", "verdict"), &line);
            self.out.push('\n');
        }
    }

    fn origin(&mut self) {
        let report = self.report;
        for target in &report.targets {
            self.fact("target", &words::target(target));
        }
        if let Some(agents) = agents::line(&report.agents) {
            self.fact("agents", &agents);
        }
        if let Some(machine) = &report.machine {
            self.fact("machine", machine);
        }
        if let Some(interface) = report.interface() {
            self.fact("interface", interface.name());
        }
        self.fact("began", &shared::began(report.started, report.utc_offset_seconds));
    }

    fn stage(&mut self, stage: &StageReport) {
        let name = self.paint.apply(Tone::Bold, &harmless(&words::name(stage)));
        if !self.report.shows(stage) {
            self.out.push_str(&format!("\n{name}\n"));
            let tone = if stage.failed_count() > 0 { Tone::Bad } else { Tone::Plain };
            self.toned(tone, "  ", &words::prepared(stage));
            self.errors(stage);
            return;
        }
        let ran = harmless(&words::ran(stage));
        let chars = words::name(stage).chars().count() + 3 + ran.chars().count();
        let between = if chars > self.width { "\n  " } else { " · " };
        self.out.push_str(&format!("\n{name}{between}{ran}\n"));
        let several = stage.rows.len() > 1;
        for row in &stage.rows {
            let lead = if several { format!("{}: ", harmless(&row.name)) } else { String::new() };
            let text = match row.is_on_files {
                true => words::work(row),
                false => shared::loop_model(&RowView { report: self.report, stage, row }),
            };
            let text = harmless(&text);
            if lead.chars().count() <= ROW_NAME_CHARS_MAX + 2 {
                paragraph(&format!("  {lead}"), &text, self.width, &mut self.out);
                continue;
            }
            // What follows a long name is set in a little.
            let mut lines = String::new();
            paragraph("    ", &(lead + &text), self.width, &mut lines);
            self.out.push_str(&lines[2..]);
        }
        verdict::write(stage, self.width, self.paint, &mut self.out);
        let told = words::schedules_told(stage);
        for warning in told.iter().filter_map(|told| told.warning.as_deref()) {
            self.toned(Tone::Bad, "", warning);
        }
        if stage.kinds().next().is_none() {
            self.toned(Tone::Warn, "  ", "no operation ended that counts");
        } else {
            self.operations(stage);
            self.latency(stage);
            self.done(stage);
        }
        for row in stage.rows.iter().filter(|row| row.is_on_files) {
            let view = RowView { report: self.report, stage, row };
            crate::detail::write(&view, self.width, self.paint, &mut self.out);
            for (name, text) in crate::ledger::lines(&view) {
                self.fact(name, &text);
            }
            for advice in &row.advice {
                warning(&advice.text, self.width, self.paint, &mut self.out);
            }
        }
        for row in stage.rows.iter().filter(|row| !row.is_on_files) {
            self.on_objects(stage, row);
        }
        for (name, text) in told.into_iter().flat_map(|told| told.facts) {
            self.fact(name, &text);
        }
        self.afterwards(stage);
        self.errors(stage);
    }

    /// Writes the tables of a row on objects, and what limits the trust in them.
    fn on_objects(&mut self, stage: &StageReport, row: &RowReport) {
        let view = RowView { report: self.report, stage, row };
        if stage.rows.len() > 1 {
            let name = self.paint.apply(Tone::Bold, &harmless(&row.name));
            self.out.push_str(&format!("\n  {name}\n"));
        }
        tables(view, self.width, self.paint, &mut self.out);
        self.fact("measured", &shared::span(&view));
        for advice in &row.advice {
            warning(&advice.text, self.width, self.paint, &mut self.out);
        }
    }

    /// Fills a table with what `add` adds for a kind under its label; below the row's name where
    /// there are several rows.
    fn table<'p>(
        &mut self,
        stage: &'p StageReport,
        heading: &[&str],
        shows: impl Fn(&RowReport, &KindAnalysis) -> bool,
        add: impl Fn(&mut Table, &str, &'p KindAnalysis),
    ) {
        let mut table = Table::new(heading);
        let several = stage.rows.len() > 1;
        let mut is_empty = true;
        let names: Vec<String> = stage.rows.iter().map(|row| harmless(&row.name)).collect();
        let names = stage.rows.iter().zip(elided_apart(&names, ROW_NAME_CHARS_MAX));
        for (row, name) in names.filter(|(row, _)| row.is_on_files) {
            let kinds = row.analysis.kinds.iter().filter(|kind| shows(row, kind));
            for (index, kind) in kinds.enumerate() {
                if several && index == 0 {
                    table.row(&name, Tone::Plain, []);
                }
                let indent = if several { "  " } else { "" };
                add(&mut table, &format!("{indent}{}", kind.kind.name()), kind);
                is_empty = false;
            }
        }
        if !is_empty {
            table.write(self.paint, &mut self.out);
        }
    }

    fn operations(&mut self, stage: &StageReport) {
        let heading = ["operations", "succeeded", "failed", "rate", "throughput"];
        self.table(
            stage,
            &heading,
            |_, _| true,
            |table, label, kind| {
                let failed = kind.figures.stage.failed.count();
                let tone = if failed > 0 { Tone::Bad } else { Tone::Plain };
                let cells = [
                    count(kind.figures.stage.ops_ok).into(),
                    Cell::new(count(failed), tone),
                    known(ops_per_sec(kind), |rate| words::rate(kind.kind, rate)).into(),
                    words::throughput_of(kind, bytes_per_sec(kind)).into(),
                ];
                table.row(label, Tone::Plain, cells);
            },
        );
    }

    fn latency(&mut self, stage: &StageReport) {
        let names = PERCENTILES.map(|(_, name)| name);
        let heading: Vec<&str> =
            ["latency", "average"].into_iter().chain(names).chain(["max"]).collect();
        let cells = |times: &Times| -> Vec<Cell> {
            let percentiles = PERCENTILES.map(|(percent, _)| times.percentile(percent));
            let all = [times.mean].into_iter().chain(percentiles).chain([times.max]);
            all.map(|time| known(time, duration).into()).collect()
        };
        let is_delayed = |kind: &KindAnalysis| kind.figures.service_time.is_some();
        self.table(
            stage,
            &heading,
            |_, kind| kind.figures.stage.ops_ok > 0,
            |table, label, kind| {
                table.row(label, Tone::Plain, cells(&kind.figures.latency));
                if is_delayed(kind) {
                    let indent = label.len() - label.trim_start().len();
                    let label = format!("{:indent$}service", "");
                    table.row(&label, Tone::Plain, cells(kind.figures.service()));
                }
            },
        );
        let mut on_files = stage.kinds().filter(|(row, _)| row.is_on_files);
        if on_files.any(|(_, kind)| is_delayed(kind)) {
            paragraph("  ", FROM_INTENDED, self.width, &mut self.out);
        }
    }

    /// Writes how far it was when the first worker was done, and the last.
    fn done(&mut self, stage: &StageReport) {
        let heading = ["done", "after", "operations", "rate", "throughput"];
        self.table(stage, moving(stage, &heading), words::shows_done, |table, label, kind| {
            for (which, done) in
                [("first", kind.figures.first_done), ("last", kind.figures.last_done)]
            {
                let Some(done) = done else { continue };
                let cells = [
                    duration(done.after),
                    count(done.ops),
                    known(done.ops_per_sec, |rate| words::rate(kind.kind, rate)),
                    words::throughput_of(kind, done.bytes_per_sec),
                ];
                table.row(&format!("{label} {which}"), Tone::Plain, cells.map(Cell::from));
            }
        });
    }

    /// Writes what else there is to know of a stage.
    fn afterwards(&mut self, stage: &StageReport) {
        if let Some(because) = &stage.ended_because {
            self.fact("ended early", because);
        }
        if let Some(cpu) = stage.cpu {
            let each = known(stage.cpu_per_op(), duration);
            self.fact("client CPU", &format!("{}, {each} per operation", duration(cpu)));
        }
        if let Some(text) = words::ramp(stage) {
            self.fact(words::ramp_name(stage), &text);
        }
        let active: u32 = stage.rows.iter().map(|row| row.analysis.workers_active).sum();
        let workers: u32 = stage.rows.iter().map(|row| row.analysis.workers_count).sum();
        // What is left out says nothing of a worker.
        if active < workers && !stage.is_part() {
            let idle = count(u64::from(workers - active));
            let of = format::plural(u64::from(workers), "worker");
            self.fact("idle", &format!("{idle} of {of} ended no operation that counts"));
        }
        for row in stage.rows.iter().filter(|row| row.served_by.len() > 1) {
            self.fact("served by", &row.served_by.join(", "));
        }
        if let Some(text) = words::unchecked(stage) {
            self.fact("unchecked", &text);
        }
        if let Some(text) = words::wrong(stage) {
            self.toned(Tone::Bad, &format!("{:<12}", "wrong"), &text);
        }
    }

    fn errors(&mut self, stage: &StageReport) {
        for kind in OpKind::ALL {
            for class in ErrorClass::ALL.into_iter().filter(|class| !class.is_ok()) {
                let of_kind = stage.kinds().filter(|(row, of)| row.is_on_files && of.kind == kind);
                let failed: u64 = of_kind.map(|(_, of)| of.figures.stage.failed.of(class)).sum();
                if failed > 0 {
                    let text = format!("{} {} {}", count(failed), kind.name(), class.name());
                    self.toned(Tone::Bad, "  ", &text);
                }
                if stage.rows.iter().any(|row| row.is_on_files) {
                    self.messages(stage, kind, class);
                }
            }
        }
    }

    /// Writes the first texts of one class; also of failures in a ramp, which no row counts.
    fn messages(&mut self, stage: &StageReport, kind: OpKind, class: ErrorClass) {
        let limits = (MESSAGES_PER_CLASS_MAX, MESSAGE_CHARS_MAX);
        let text = |error: &ErrorSample| harmless(&error.message);
        for text in shared::messages(&stage.errors, (kind, class), limits, text) {
            paragraph("    ", &text, self.width, &mut self.out);
        }
    }

    /// Writes what else there is to know of the run, the warnings, and where it lies.
    fn remarks(&mut self) {
        let report = self.report;
        self.out.push('\n');
        if let Some(check) = report.verification {
            self.fact("verified", &shared::verified(check));
        }
        if let Some((name, text)) = crate::read_back::line(report) {
            self.fact(name, &text);
        }
        if let Some(cleanup) = shared::cleaned(report) {
            self.fact("cleaned up", &cleanup);
        }
        if let Some(check) = report.op_log().filter(OpLogCheck::is_whole) {
            let rows = format::plural(check.rows, "row");
            self.fact("op log", &format!("{rows}, all that were counted"));
        }
        if let Some(seed) = report.seed {
            self.fact("seed", &seed.0.to_string());
        }
        self.fact("units", "1 MiB = 1,048,576 bytes; – is unknown or from too few samples");
        for (name, text) in crate::crimes::lines(report) {
            self.fact(name, text);
        }
        let warnings = warnings(report);
        if !(warnings.is_empty() && report.notes.is_empty()) {
            self.out.push('\n');
        }
        for text in &warnings {
            warning(text, self.width, self.paint, &mut self.out);
        }
        for note in &report.notes {
            paragraph("note: ", &harmless(note), self.width, &mut self.out);
        }
        if let Some(directory) = &report.run_directory {
            // Never broken, so that it can be copied.
            self.out.push_str(&format!("\nrun kept in {}\n", harmless(directory)));
        }
    }
}

/// Returns a heading without its last column, the throughput, where no content is moved.
fn moving<'a>(stage: &StageReport, heading: &'a [&'a str]) -> &'a [&'a str] {
    let moves = stage.kinds().any(|(_, kind)| kind.figures.stage.bytes > 0);
    &heading[..heading.len() - usize::from(!moves)]
}

/// Returns the figures of a run that has but one result of one kind.
fn figures(report: &Report) -> Vec<String> {
    let mut kinds = report.shown().flat_map(StageReport::kinds);
    let (Some((_, kind)), None) = (kinds.next(), kinds.next()) else { return Vec::new() };
    let mut parts: Vec<String> =
        ops_per_sec(kind).map(|rate| words::rate(kind.kind, rate)).into_iter().collect();
    if kind.figures.stage.bytes > 0 {
        parts.extend(bytes_per_sec(kind).map(words::throughput));
    }
    for (percent, name) in [(50.0, "p50"), (99.0, "p99")] {
        let time = kind.figures.latency.percentile(percent);
        parts.extend(time.map(|time| format!("{name} {}", duration(time))));
    }
    parts
}

/// Returns all warnings about a run.
pub(crate) fn warnings(report: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(shared::state_warning(report.state).map(str::to_owned));
    warnings.extend(crate::read_back::warning(report));
    warnings.extend(report.losses.iter().cloned());
    warnings.extend(report.advice.iter().cloned());
    warnings.extend(report.op_log().as_ref().and_then(shared::op_log_warning));
    warnings.extend(shared::recorder_warning(report.recorder_wait));
    warnings.extend(report.results().filter_map(short));
    warnings.extend(report.results().filter_map(seen_late));
    warnings
}

/// Returns that a stage was too short to tell much, if it was.
fn short(stage: &StageReport) -> Option<String> {
    const SHORTEST: Duration = Duration::from_millis(100);
    // That clients took turns makes figures of nobody's own time.
    if stage.clients_apart {
        return None;
    }
    let rows = stage.rows.iter().filter(|row| row.is_on_files && !row.analysis.is_part);
    let took = rows.filter_map(|row| Some((row.analysis.took()?, row)));
    let (longest, row) = took.max_by_key(|(took, _)| *took)?;
    (longest < SHORTEST).then(|| {
        let several = stage.rows.len() > 1;
        let row = if several { format!(", {}", row.name) } else { String::new() };
        let took = format::duration(longest);
        format!("{}{row} took {took} only: a longer run tells more", words::name(stage))
    })
}

/// Returns that the program was too busy to see when operations ended, if it was.
fn seen_late(stage: &StageReport) -> Option<String> {
    /// One in so many operations may be seen late.
    const ONE_IN: u64 = 100;
    let (late, gap) = (stage.uncertain_count?, stage.look_gap_max?);
    let ended = stage.ended_count();
    (late.saturating_mul(ONE_IN) > ended).then(|| {
        format!(
            "{}: {} of {} may have ended before half of their time was over, as this program was \
             busy with the content of others (for {} at most): their latency is its own speed \
             rather than the disk's. Lower `depth`, take more `threads` (up to one per core), or \
             do not verify what is read",
            words::name(stage),
            count(late),
            format::plural(ended, "operation"),
            format::duration(gap)
        )
    })
}

#[cfg(test)]
#[path = "stages_tests.rs"]
mod tests;
