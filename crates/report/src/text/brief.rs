//! The report at a glance: what ran, the figures of each kind, who was the limit, what to try next,
//! and where the run lies. One stage takes a screen of 24 lines.

use std::time::Duration;

use plimsoll_analysis::{Advice, ClassFailures, Figures};
use plimsoll_model::{ErrorClass, OpKind};

use crate::format::{UNKNOWN, count, duration, known, number, plural};
use crate::report::{Report, RowReport, RowView, StageReport};
use crate::table::{Cell, Paint, Table, Tone, elided_apart, harmless, paragraph, toned, warning};
use crate::{agents, ledger, stage_words, verdict, weka, words};

const MIB: f64 = (1u64 << 20) as f64;
/// How many stages of a run are told in its headline.
const HEADLINE_STAGES_MAX: usize = 2;
/// So many different texts of one class of failure are told, and so much of each.
const TEXTS_MAX: usize = 2;
const TEXT_CHARS_MAX: usize = 200;
/// How many addresses are named.
const ENDPOINTS_MAX: usize = 4;
/// No name is cut below so many characters.
const NAME_CHARS_MIN: usize = 8;

/// Returns the stages that are shown one by one: a load line says more than its probes do.
fn measured(report: &Report) -> impl Iterator<Item = &StageReport> {
    report.shown().filter(|stage| stage.probe_of.is_none())
}

/// Builds the text part by part.
struct Writer<'a> {
    report: &'a Report,
    width: usize,
    paint: Paint,
    out: String,
}

/// Returns what stands below the headline.
pub(super) fn body(report: &Report, width: usize, paint: Paint) -> String {
    let mut writer = Writer { report, width, paint, out: String::new() };
    writer.schedules_not_kept();
    writer.origin();
    writer.figures();
    for stage in &report.stages {
        writer.errors(stage);
    }
    for load_line in &report.load_lines {
        crate::load_line::text::write(report, load_line, (width, paint), &mut writer.out);
    }
    // Of an only stage the table above has all of it.
    if let Some(table) = weka::table(report).filter(|_| report.shown().nth(1).is_some()) {
        writer.out.push('\n');
        writer.out.push_str(&table);
    }
    writer.happened();
    writer.verdict();
    writer.remarks();
    writer.out
}

/// Returns the figures of a run with several results: of each of the first ones its rate and its
/// p99.
pub(super) fn headline_of_several(report: &Report) -> Vec<String> {
    let shown: Vec<&StageReport> = report.shown().collect();
    let told = shown.iter().take(HEADLINE_STAGES_MAX).filter_map(|stage| {
        let (_, first) = stage.kinds().next()?;
        let rate = stage_words::rate_of_rows(stage, first.kind);
        // Percentiles of rows cannot be put together.
        let only = stage.rows.first().filter(|_| stage.rows.len() == 1);
        let p99 = only.into_iter().flat_map(|row| stage_words::latencies(&row.analysis));
        let p99 = p99.filter(|(name, _)| name != "p50");
        let p99 = p99.map(|(name, time)| format!("{name} {}", duration(time)));
        let told: Vec<String> = rate.into_iter().chain(p99).collect();
        Some(format!("{} {}", harmless(&stage_words::name(stage)), told.join(", ")))
    });
    let mut told: Vec<String> = told.collect();
    let noun = if report.results().next().is_some() { "result" } else { "stage" };
    match shown.len() - told.len() {
        0 => {}
        all if told.is_empty() => told.push(plural(all as u64, noun)),
        more => told.push(format!("{more} more")),
    }
    told
}

impl Writer<'_> {
    fn fact(&mut self, name: &str, text: &str) {
        paragraph(&format!("{name:<12}"), &harmless(text), self.width, &mut self.out);
    }

    fn toned(&mut self, tone: Tone, lead: &str, text: &str) {
        toned((tone, self.paint), lead, text, self.width, &mut self.out);
    }

    /// Writes, where nobody can overlook it, that the load was not the one that was asked for.
    fn schedules_not_kept(&mut self) {
        let report = self.report;
        let schedules = measured(report);
        let schedules = schedules.flat_map(stage_words::schedules_told);
        let not_kept: Vec<String> = match report.only_row() {
            Some(row) => row.schedule_warning().into_iter().collect(),
            None => schedules.filter_map(|told| told.warning).collect(),
        };
        not_kept.iter().for_each(|text| self.toned(Tone::Bad, "", text));
        if !not_kept.is_empty() {
            self.out.push('\n');
        }
    }

    /// Writes what ran, and on what.
    fn origin(&mut self) {
        let report = self.report;
        for target in &report.targets {
            self.fact("target", &stage_words::target(target));
        }
        if let Some(agents) = agents::line(&report.agents) {
            self.fact("agents", &agents);
        }
        let mut shown = measured(report);
        if let (Some(stage), None) = (shown.next(), shown.next()) {
            self.load(stage);
        }
    }

    /// Writes the load of the only stage that is shown, and how long it was measured.
    fn load(&mut self, stage: &StageReport) {
        for row in &stage.rows {
            let view = RowView { report: self.report, stage, row };
            let lead = match &stage.rows[..] {
                [_] => String::new(),
                _ => format!("{}: ", row.name),
            };
            let load = match row.is_on_files {
                true => stage_words::work(row),
                false => words::loop_model(&view),
            };
            self.fact("load", &format!("{lead}{load}"));
        }
        let span = |row| words::span(&RowView { report: self.report, stage, row });
        let spans: Vec<String> = stage.rows.iter().map(span).collect();
        match &spans[..] {
            [] => self.fact("measured", &stage_words::ran(stage)),
            [first, others @ ..] if others.iter().all(|span| span == first) => {
                self.fact("measured", first);
            }
            _ => {
                for (row, span) in stage.rows.iter().zip(&spans) {
                    self.fact("measured", &format!("{}: {span}", row.name));
                }
            }
        }
        if let Some(because) = &stage.ended_because {
            self.fact("ended early", because);
        }
        for told in stage_words::schedules_told(stage) {
            // What was not kept stands above already.
            let facts = told.facts.into_iter();
            let is_news = |name: &str| name != "schedule" || told.warning.is_none();
            for (name, text) in facts.filter(|(name, _)| is_news(name)) {
                self.fact(name, &text);
            }
        }
    }

    /// Writes one table of all kinds of all stages that are shown.
    fn figures(&mut self) {
        let report = self.report;
        let shown = measured(report);
        let stages: Vec<&StageReport> = shown.collect();
        let all = || stages.iter().flat_map(|stage| stage.kinds());
        if stages.is_empty() {
            return;
        }
        if all().next().is_none() {
            self.out.push('\n');
            self.toned(Tone::Warn, "", "no operation ended that counts");
            return;
        }
        let moves = all().any(|(_, kind)| kind.figures.moves_bytes);
        let objects = all().any(|(row, kind)| {
            !row.is_on_files && kind.figures.stage.objects != kind.figures.stage.ops_ok
        });
        let columns = Columns { objects, moves };
        let heading = columns.heading("");
        let rows =
            || stages.iter().flat_map(|stage| stage.rows.iter().map(move |row| (stage, row)));
        let alone = stages.len() == 1;
        let names: Vec<String> = rows().map(|(stage, row)| row_name(stage, row, alone)).collect();
        let named = names.len() > 1;
        let table = |name_chars_max: usize| {
            let mut table = Table::new(&heading);
            for ((_, row), name) in rows().zip(elided_apart(&names, name_chars_max)) {
                columns.row(&mut table, row, named.then_some(name));
            }
            table
        };
        let room = self.width.saturating_sub(2 + table(NAME_CHARS_MIN).width_right());
        self.out.push('\n');
        table(room.max(NAME_CHARS_MIN)).write(self.paint, &mut self.out);
        if all()
            .any(|(_, kind)| kind.figures.stage.ops_ok > 0 && kind.figures.latency.p99_9.is_none())
        {
            self.toned(Tone::Dim, "  ", "– is from too few samples");
        }
        if let Some(partial) = agents::partial(&report.agents) {
            self.toned(Tone::Bad, "  ", &partial);
        }
        self.certainty(&stages);
        self.theory(&stages);
        self.open_loop(&stages);
        let rows = stages.iter().flat_map(|stage| &stage.rows);
        rows.for_each(|row| crate::steps::write(&row.steps, self.paint, &mut self.out));
        self.hosts(&stages);
    }

    /// Writes how well the p99 of the only row is known.
    fn certainty(&mut self, stages: &[&StageReport]) {
        let [StageReport { rows, .. }] = stages else { return };
        let [row] = &rows[..] else { return };
        let latency = &row.analysis.total.latency;
        if let Some((low, high)) = latency.p99_low.zip(latency.p99_high) {
            let of = if row.analysis.kinds.len() > 1 { " of all" } else { "" };
            let (low, high) = (duration(low), duration(high));
            let text =
                format!("95 % interval of p99{of}: {low} to {high}, if operations are independent");
            self.toned(Tone::Dim, "  ", &text);
        }
    }

    /// Writes what theory says of the only row, where the store is a queue.
    fn theory(&mut self, stages: &[&StageReport]) {
        let [StageReport { rows, .. }] = stages else { return };
        let [RowReport { theory: Some(theory), .. }] = &rows[..] else { return };
        let (p50, p99) = (duration(theory.latency_p50), duration(theory.latency_p99));
        let text = format!("by the formula of the queue that the store is: p50 {p50}, p99 {p99}");
        self.toned(Tone::Dim, "  ", &text);
    }

    /// Writes from which instant times count, where that is not the real start.
    fn open_loop(&mut self, stages: &[&StageReport]) {
        // Of an only stage the load says it.
        let mut kinds = stages.iter().filter(|_| stages.len() > 1).flat_map(|stage| stage.kinds());
        if kinds.any(|(_, kind)| words::has_delays(&kind.figures)) {
            let text = "latency from the intended start, waiting included";
            self.toned(Tone::Dim, "  ", text);
        }
    }

    /// Writes what each address did, where there are several.
    fn hosts(&mut self, stages: &[&StageReport]) {
        let [stage] = stages else { return };
        let [row] = &stage.rows[..] else { return };
        if row.analysis.endpoints.len() < 2 || row.is_on_files {
            return;
        }
        let columns = Columns { objects: false, moves: row.analysis.total.moves_bytes };
        let mut table = Table::new(&columns.heading("hosts"));
        let names = row.analysis.endpoints.iter();
        let names: Vec<String> =
            names.map(|at| harmless(&self.report.endpoint(at.endpoint))).collect();
        for (at, name) in row.analysis.endpoints.iter().zip(elided_apart(&names, 24)) {
            table.row(&name, Tone::Plain, columns.cells(&at.figures));
        }
        self.out.push('\n');
        table.write(self.paint, &mut self.out);
    }

    /// Writes what failed by its cause: each class once, with when, where and why.
    fn errors(&mut self, stage: &StageReport) {
        for row in &stage.rows {
            let ledger = row.analysis.ledger.as_ref();
            for class in ErrorClass::ALL.into_iter().filter(|class| !class.is_ok()) {
                let known = ledger.and_then(|of| {
                    of.failures_by_class.iter().find(|failures| failures.class == class)
                });
                self.class(RowView { report: self.report, stage, row }, class, known);
            }
        }
        if let Some(text) = stage_words::wrong(stage) {
            self.toned(Tone::Bad, "  wrong: ", &text);
        }
    }

    fn class(&mut self, view: RowView<'_>, class: ErrorClass, known: Option<&ClassFailures>) {
        let kinds = view.row.analysis.kinds.iter();
        let kinds = kinds.map(|kind| (kind.kind, kind.figures.stage.failed.of(class)));
        let kinds: Vec<(OpKind, u64)> = kinds.filter(|(_, failed)| *failed > 0).collect();
        let failed: u64 = kinds.iter().map(|(_, failed)| *failed).sum();
        if failed == 0 {
            return;
        }
        let each = |(kind, failed): &(OpKind, u64)| match kinds.len() {
            1 => kind.name().to_owned(),
            _ => format!("{} {}", count(*failed), kind.name()),
        };
        let each: Vec<String> = kinds.iter().map(each).collect();
        let mut text = format!("{} {} ({})", count(failed), class.name(), each.join(", "));
        let is_only = view.report.shows(view.stage) && view.report.shown().nth(1).is_none();
        if !is_only {
            text += &format!(" in {}", stage_words::name(view.stage));
        }
        if let Some(known) = known {
            let (first, last) =
                (ledger::offset(&view, known.first), ledger::offset(&view, known.last));
            text += &match known.first == known.last {
                true => format!(" at {first}"),
                false => format!(" from {first} to {last}"),
            };
            text += &places(&view, known);
        }
        self.out.push('\n');
        self.toned(Tone::Bad, "", &text);
        let mut texts: Vec<String> = Vec::new();
        for error in view.stage.errors.iter().filter(|error| error.class == class) {
            let text: String = error.message.chars().take(TEXT_CHARS_MAX).collect();
            if texts.len() < TEXTS_MAX && !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts.iter().for_each(|text| paragraph("  ", &harmless(text), self.width, &mut self.out));
    }

    /// Writes when nothing succeeded, when it took long, and what the user had done.
    fn happened(&mut self) {
        let report = self.report;
        let shown = measured(report);
        let rows = shown.flat_map(|stage| stage.rows.iter().map(move |row| (stage, row)));
        let mut lines = Vec::new();
        for (stage, row) in rows {
            let lead = match report.shown().nth(1) {
                Some(_) => format!("{}: ", stage_words::name(stage)),
                None => String::new(),
            };
            let told = ledger::lines(&RowView { report, stage, row });
            // Failures have their own block.
            let told = told.into_iter().filter(|(name, _)| *name != "failures");
            lines.extend(told.map(|(name, text)| (name, format!("{lead}{text}"))));
        }
        if !lines.is_empty() {
            self.out.push('\n');
        }
        lines.iter().for_each(|(name, text)| self.fact(name, text));
    }

    /// Writes who was the limit, how busy the client was, and what to try next.
    fn verdict(&mut self) {
        let report = self.report;
        let Some(verdict) = report.verdict.as_ref().filter(|_| report.load_lines.is_empty()) else {
            return;
        };
        let stage = verdict::stage(report);
        let share = stage.and_then(|stage| stage.cpu_share);
        let busy =
            share.map_or(String::new(), |share| format!("client {:.0} % busy: ", share * 100.0));
        self.out.push('\n');
        let tone = if verdict.is_client { Tone::Bad } else { Tone::Plain };
        let text = format!("{}{busy}{}", verdict::of_which(report), verdict.sentence);
        self.toned(tone, &format!("{:<12}", "verdict"), &text);
        if let Some(because) = stage.and_then(verdict::because) {
            self.fact("  because", because);
        }
        self.fact("  try next", &verdict.experiment);
    }

    /// Writes what may mislead, the warnings, and where the run lies.
    fn remarks(&mut self) {
        let report = self.report;
        self.out.push('\n');
        let first = report.shown().find_map(|stage| Some((stage, stage.rows.first()?)));
        if let Some((stage, row)) = first {
            let all = words::remarks(&RowView { report, stage, row });
            let told = ["verified", "time", "certificate"];
            let told = all.into_iter().filter(|(name, _)| told.contains(name));
            told.for_each(|(name, text)| self.fact(name, &text));
        }
        if let Some((name, text)) = crate::read_back::line(report) {
            self.fact(name, &text);
        }
        let crimes: Vec<&str> = report.crimes.iter().map(|of| &*of.text).collect();
        match crimes[..] {
            [] => {}
            [only] => self.fact("beware", only),
            // The gravest; -v tells all.
            [first, ..] => self.fact(&format!("beware 1/{}", crimes.len()), first),
        }
        let warnings = match report.only_row() {
            Some(row) => {
                words::warnings(&row, |advice| !matches!(advice, Advice::FewSamples { .. }))
            }
            None => super::warnings(report),
        };
        // Probes are short on purpose.
        let stages = measured(report);
        let alone = report.shown().nth(1).is_none();
        let rows = stages.flat_map(|stage| stage.rows.iter().map(move |row| (stage, row)));
        let of_rows = rows.filter(|_| report.only_row().is_none()).flat_map(|(stage, row)| {
            let advice = row.advice.iter().filter(|of| of.code != "few-samples");
            advice.map(move |of| format!("{}: {}", row_name(stage, row, alone), of.text))
        });
        for text in warnings.into_iter().chain(of_rows) {
            warning(&text, self.width, self.paint, &mut self.out);
        }
        match &report.run_directory {
            // Never broken, so that it can be copied.
            Some(directory) => {
                let directory = harmless(directory);
                self.out.push_str(&format!("run kept in {directory}; -v prints all figures\n"));
            }
            None => self.out.push_str("-v prints all figures\n"),
        }
    }
}

/// Returns what a row is called in a table of several; `alone`: all are of one stage.
fn row_name(stage: &StageReport, row: &RowReport, alone: bool) -> String {
    let name = stage_words::name(stage);
    harmless(&match &stage.rows[..] {
        [_] => name,
        _ if alone => row.name.clone(),
        _ => format!("{name}, {}", row.name),
    })
}

/// Returns at which addresses it failed, where there are several.
fn places(view: &RowView<'_>, known: &ClassFailures) -> String {
    if view.endpoints.len() < 2 || known.by_endpoint.is_empty() {
        return String::new();
    }
    let mut at = known.by_endpoint.clone();
    at.sort_by_key(|at| std::cmp::Reverse(at.count));
    let named = at.iter().take(ENDPOINTS_MAX);
    let named = named.map(|at| format!("{} ({})", view.endpoint(at.endpoint), count(at.count)));
    let named: Vec<String> = named.collect();
    let more = match at.len().saturating_sub(ENDPOINTS_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(", at {}{more}", named.join(", "))
}

/// Which columns a table of figures has besides those of all.
#[derive(Clone, Copy)]
struct Columns {
    objects: bool,
    moves: bool,
}

impl Columns {
    /// Returns what stands above the columns, `first` above the names.
    fn heading(self, first: &'static str) -> Vec<&'static str> {
        let mut heading = vec![first, "ops/s"];
        heading.extend(self.objects.then_some("obj/s"));
        heading.extend(self.moves.then_some("MiB/s"));
        heading.extend(["p50", "p99", "p99.9", "max", "failed"]);
        heading
    }

    /// Adds the kinds of a row, and their total where there are several; below its name.
    fn row(self, table: &mut Table, row: &RowReport, name: Option<String>) {
        let indent = if name.is_some() { "  " } else { "" };
        if let Some(name) = name {
            table.row(&name, Tone::Plain, []);
        }
        let analysis = &row.analysis;
        for kind in &analysis.kinds {
            let label = format!("{indent}{}", kind.kind.name());
            table.row(&label, Tone::Plain, self.cells(&kind.figures));
        }
        if analysis.kinds.len() > 1 {
            table.row(&format!("{indent}total"), Tone::Plain, self.cells(&analysis.total));
        }
    }

    fn cells(self, figures: &Figures) -> Vec<Cell> {
        let failed = figures.stage.failed.count();
        let tone = if failed > 0 { Tone::Bad } else { Tone::Plain };
        let rates = figures.rates;
        let mut cells = vec![Cell::from(known(rates, |rates| number(rates.ops.0)))];
        cells.extend(self.objects.then(|| known(rates, |of| number(of.objects.0)).into()));
        cells.extend(self.moves.then(|| match figures.moves_bytes && figures.stage.bytes > 0 {
            true => Cell::from(known(rates, |of| number(of.bytes.0 / MIB))),
            false => UNKNOWN.into(),
        }));
        let times = &figures.latency;
        let time = |value: Option<Duration>| Cell::from(known(value, duration));
        cells.extend([times.p50, times.p99, times.p99_9, times.max].map(time));
        cells.push(Cell::new(count(failed), tone));
        cells
    }
}
