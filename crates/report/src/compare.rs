//! A comparison of runs for people: who is compared, parameters that differ, a table a kind, gates.

pub mod json;
pub mod junit;
pub mod trackers;

mod brief;
mod figure;
mod headline;
mod markdown;
pub(crate) mod page;

#[cfg(test)]
mod tests;

use plimsoll_analysis::compare::{
    Comparison, Difference, Doubt, Evidence, GateResult, KindComparison, Limit, Metric, Outcome,
    Presence, RUNS_MAX, Row, Verdict,
};
use plimsoll_model::OpKind;

use crate::format::plural;
use crate::format::{UNKNOWN, count, known};
use crate::table::{Cell, Paint, Table, Tone, elided_apart, harmless, paragraph, warning};
use crate::text::Look;

use figure::{figure, percent_signed, percent_spread, signed};
use headline::headline;

pub use brief::brief;
pub use markdown::markdown;

/// What is said where one side alone is an open loop.
const OPEN_ON_ONE_SIDE: &str = "one side is an open loop, whose latency is from the intended \
    start, waiting included; that of the other is not: these latencies cannot be compared";

/// What a comparison of one run a side ends with.
const NO_VERDICT: &str = "one run a side: not a verdict";

/// Returns why a figure that is known of several runs has no verdict.
fn too_few_runs(comparison: &Comparison) -> &'static str {
    /// So many runs a side give a verdict.
    const RUNS_MIN: usize = 3;
    match comparison.before.len().min(comparison.after.len()) {
        RUNS_MIN.. => "a figure without a verdict is known of fewer than 3 runs of a side",
        _ => "one or two runs on a side: too few for a verdict, 3 a side are needed",
    }
}

/// Returns by how much a figure changed in percent, with half of the width of its 95 % interval
/// where several runs a side tell one.
fn change_text(row: &Row) -> String {
    let change = known(row.percent, percent_signed);
    match row.verdict.evidence().and_then(|evidence| evidence.percent) {
        Some(range) => format!("{change} ± {}", percent_spread(range.half_width())),
        None => change,
    }
}

/// Returns a verdict, with how many runs would make one of what is unclear.
fn verdict_text(verdict: &Verdict) -> String {
    let (word, _) = word(verdict);
    match verdict {
        Verdict::Unclear(evidence) => format!("{word}: {}", headline::runs_needed(evidence)),
        _ => word.to_owned(),
    }
}

/// How many columns of 80 the name of a parameter takes at most.
const NAME_CHARS_MAX: usize = 24;

/// Builds the text part by part.
struct Writer<'a> {
    comparison: &'a Comparison,
    width: usize,
    paint: Paint,
    out: String,
}

/// Returns all figures of the comparison as text that ends with a line feed.
pub fn text(
    comparison: &Comparison,
    differences: &[Difference],
    gates: &[GateResult],
    look: &Look,
) -> String {
    let mut writer = Writer::begin(comparison, differences, look);
    let mut last = &None;
    for kind in &comparison.kinds {
        if kind.of != *last && kind.presence == Presence::Both {
            writer.place(&kind.of);
            last = &kind.of;
        }
        writer.kind(kind);
    }
    writer.presence();
    writer.warnings();
    writer.legend();
    writer.gates(gates);
    writer.out
}

impl<'a> Writer<'a> {
    /// Returns a text that has what every comparison begins with.
    fn begin(comparison: &'a Comparison, differences: &[Difference], look: &Look) -> Self {
        let mut writer = Self {
            comparison,
            width: usize::from(look.width.max(40)),
            paint: Paint { color: look.color },
            out: String::new(),
        };
        writer.headline();
        writer.sides();
        writer.parameters(differences);
        writer
    }

    /// Writes which runs were not measurements of the store, and what is to be known of records.
    fn warnings(&mut self) {
        for text in warnings(self.comparison) {
            warning(&harmless(&text), self.width, self.paint, &mut self.out);
        }
    }
}

/// Returns what is to be known of runs; what is said of several alike is said once.
fn warnings(comparison: &Comparison) -> Vec<String> {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for (run, sentence) in comparison.client_limits.iter().chain(&comparison.remarks) {
        match said.iter_mut().find(|(known, _)| known == sentence) {
            Some((_, runs)) => runs.push(run),
            None => said.push((sentence, vec![run])),
        }
    }
    let runs_count = comparison.before.len() + comparison.after.len();
    let text = |(sentence, runs): (&str, Vec<&str>)| match runs.len() {
        all if all == runs_count && all > 2 => format!("all {all} runs: {sentence}"),
        _ => format!("{}: {sentence}", runs.join(", ")),
    };
    said.into_iter().map(text).collect()
}

/// Returns what a kind is called; all kinds together are the total.
pub fn kind_name(kind: Option<OpKind>) -> &'static str {
    kind.map_or("total", OpKind::name)
}

/// Returns a kind with the stage and the job that did it, where a run has several.
pub(crate) fn place_name(of: Option<&str>, kind: Option<OpKind>) -> String {
    let name = kind_name(kind);
    of.map_or(name.to_owned(), |of| format!("{}: {name}", harmless(of)))
}

/// How much a table can say, by the runs there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Only the change.
    Change,
    /// The change and the noise within the runs.
    Noise,
    /// The change and a verdict.
    Verdict,
}

impl Depth {
    fn of<'r>(rows: impl Iterator<Item = &'r Row> + Clone) -> Self {
        let any = |of: fn(&Verdict) -> bool| rows.clone().any(|row| of(&row.verdict));
        if any(|verdict| verdict.evidence().is_some()) {
            Self::Verdict
        } else if any(|verdict| matches!(verdict, Verdict::OneRun { change_percent: Some(_), .. }))
        {
            Self::Noise
        } else {
            Self::Change
        }
    }

    /// Returns the headings after before, after and change.
    fn headings(self) -> &'static [&'static str] {
        match self {
            Self::Change => &["in %"],
            Self::Noise => &["in %", "noise in %"],
            Self::Verdict => &["in %", "effect", "least", "verdict"],
        }
    }

    /// Returns the headings after before and after, where only what decides is told.
    fn headings_short(self) -> &'static [&'static str] {
        match self {
            Self::Change | Self::Noise => self.headings(),
            Self::Verdict => &["in %", "verdict"],
        }
    }

    /// Returns the cells of a row below those.
    fn cells_short(self, row: &Row) -> Vec<Cell> {
        let mut cells = self.cells(row);
        if self == Self::Verdict {
            cells.drain(1..3);
        }
        cells
    }

    /// Returns the cells of a row below them.
    fn cells(self, row: &Row) -> Vec<Cell> {
        match self {
            Self::Change => vec![known(row.percent, percent_signed).into()],
            Self::Noise => {
                let noise = match row.verdict {
                    Verdict::OneRun { change_percent, .. } => change_percent,
                    _ => None,
                };
                let range = known(noise, |noise| {
                    let [low, high] = [noise.low, noise.high].map(percent_signed);
                    format!("{low} to {high}")
                });
                vec![known(row.percent, percent_signed).into(), range.into()]
            }
            Self::Verdict => verdict_cells(row),
        }
    }
}

/// Returns how many runs a side would tell of what is unclear.
fn runs_text(evidence: &Evidence) -> String {
    let runs = evidence.runs_needed.map(|runs| count(u64::from(runs)));
    runs.unwrap_or_else(|| format!("over {}", count(u64::from(RUNS_MAX))))
}

/// Returns a verdict in a word.
fn word(verdict: &Verdict) -> (&'static str, Tone) {
    match verdict {
        Verdict::Same(_) => ("same", Tone::Plain),
        Verdict::Unclear(_) => ("unclear", Tone::Warn),
        Verdict::Differs { better: true, .. } => ("better", Tone::Good),
        Verdict::Differs { better: false, .. } => ("worse", Tone::Bad),
        Verdict::ClientLimited(_) => ("client", Tone::Warn),
        Verdict::Unknown | Verdict::OneRun { .. } | Verdict::TooFewRuns => (UNKNOWN, Tone::Plain),
    }
}

fn verdict_cells(row: &Row) -> Vec<Cell> {
    let change = known(row.percent, percent_signed);
    let (word, tone) = word(&row.verdict);
    let evidence = row.verdict.evidence();
    let change = match evidence.and_then(|evidence| evidence.percent) {
        Some(interval) => format!("{change} ± {}", percent_spread(interval.half_width())),
        None => change,
    };
    let effect = evidence.and_then(|evidence| evidence.effect);
    let least = evidence.and_then(|evidence| evidence.detectable_percent);
    vec![
        Cell::new(change, tone),
        known(effect, percent_signed).into(),
        known(least, percent_spread).into(),
        Cell::new(word, tone),
    ]
}

impl Writer<'_> {
    fn fact(&mut self, name: &str, text: &str) {
        paragraph(&format!("{name:<12}"), &harmless(text), self.width, &mut self.out);
    }

    fn remark(&mut self, text: &str) {
        paragraph("", text, self.width, &mut self.out);
    }

    fn table(&mut self, table: &Table) {
        self.out.push('\n');
        table.write(self.paint, &mut self.out);
    }

    /// Writes what the comparison comes to.
    fn headline(&mut self) {
        let lines = headline(self.comparison);
        for line in &lines {
            let mut plain = String::new();
            paragraph("", &harmless(line), self.width, &mut plain);
            for line in plain.lines() {
                self.out.push_str(&self.paint.apply(Tone::Bold, line));
                self.out.push('\n');
            }
        }
        if !lines.is_empty() {
            self.out.push('\n');
        }
    }

    fn sides(&mut self) {
        for (name, runs) in [("before", &self.comparison.before), ("after", &self.comparison.after)]
        {
            let text = match runs.as_slice() {
                [only] => only.clone(),
                runs => format!("{}: {}", plural(runs.len() as u64, "run"), runs.join(", ")),
            };
            self.fact(name, &text);
        }
    }

    fn parameters(&mut self, differences: &[Difference]) {
        if differences.is_empty() {
            self.fact("parameters", "the same, as far as they are known");
            return;
        }
        let mut table = Table::new(&["parameters that differ", "before", "after"]);
        let room = self.width.saturating_sub(NAME_CHARS_MAX + 6) / 2;
        let names: Vec<String> = differences.iter().map(|of| harmless(&of.name)).collect();
        let names = elided_apart(&names, NAME_CHARS_MAX - 2);
        for (difference, name) in differences.iter().zip(names) {
            let values = [&difference.before, &difference.after].map(|values| {
                let text = if values.is_empty() { UNKNOWN.into() } else { values.join(", ") };
                harmless(&text)
            });
            let cells = elided_apart(&values, room).into_iter().map(Cell::from);
            table.row(&name, Tone::Plain, cells);
        }
        self.table(&table);
        if self.comparison.is_open_on_one_side {
            self.out.push('\n');
            self.remark(OPEN_ON_ONE_SIDE);
        }
    }

    /// Writes which stage and job the tables below are of.
    fn place(&mut self, of: &Option<String>) {
        self.out.push('\n');
        self.remark(&harmless(of.as_deref().unwrap_or_default()));
    }

    fn kind(&mut self, kind: &KindComparison) {
        if kind.presence != Presence::Both {
            return;
        }
        let depth = Depth::of(kind.rows.iter());
        let mut heading = vec![kind_name(kind.kind), "before", "after", "change"];
        heading.extend(depth.headings());
        let mut table = Table::new(&heading);
        let mut group = None;
        for row in kind.rows.iter().filter(|row| is_shown(row, kind)) {
            let (of, label) = label(row.metric);
            if of.is_some() && of != group {
                table.row(of.unwrap_or_default(), Tone::Plain, []);
            }
            group = of;
            let unit = row.metric.unit();
            let side = |mean| Cell::from(known(mean, |value| figure(unit, value)));
            let change = known(row.absolute, |change| signed(unit, change));
            let cells = [side(row.before.mean), side(row.after.mean), change.into()];
            table.row(label, Tone::Plain, cells.into_iter().chain(depth.cells(row)));
        }
        self.table(&table);
        self.unclear(kind);
    }

    /// Writes how many runs would tell of what is unclear.
    fn unclear(&mut self, kind: &KindComparison) {
        let told = kind.rows.iter().filter(|row| is_shown(row, kind)).filter_map(|row| {
            let Verdict::Unclear(evidence) = &row.verdict else { return None };
            Some(format!("{} {}", headline::name(row.metric), runs_text(evidence)))
        });
        let told: Vec<String> = told.collect();
        self.runs_needed(&told);
    }

    /// Writes of each unclear line how many runs would tell.
    fn runs_needed(&mut self, told: &[String]) {
        if !told.is_empty() {
            let text = format!("about so many runs a side would tell: {}", told.join(", "));
            paragraph("unclear: ", &text, self.width, &mut self.out);
        }
    }

    /// Writes which kinds there is nothing to compare with.
    fn presence(&mut self) {
        for (presence, side) in [(Presence::BeforeOnly, "before"), (Presence::AfterOnly, "after")] {
            let kinds = self.comparison.kinds.iter().filter(|kind| kind.presence == presence);
            let names: Vec<String> =
                kinds.map(|kind| place_name(kind.of.as_deref(), kind.kind)).collect();
            if !names.is_empty() {
                self.out.push('\n');
                self.remark(&format!("only {side}: {}", names.join(", ")));
            }
        }
    }

    /// Writes what to make of the tables.
    fn legend(&mut self) {
        let rows = self.comparison.kinds.iter().flat_map(|kind| &kind.rows);
        let verdicts: Vec<&Verdict> = rows.clone().map(|row| &row.verdict).collect();
        let any = |of: fn(&Verdict) -> bool| verdicts.iter().any(|verdict| of(verdict));
        let one_run = any(|verdict| matches!(verdict, Verdict::OneRun { .. }));
        let too_few = any(|verdict| matches!(verdict, Verdict::TooFewRuns));
        let judged = any(|verdict| verdict.evidence().is_some());
        self.out.push('\n');
        let of_segments = |row: &&Row| matches!(row.metric, Metric::Median | Metric::MedianObjects);
        if rows.clone().any(|row| of_segments(&row)) {
            self.remark(
                "fastest, median and slowest are segments; pt: percentage points; – is unknown",
            );
        } else if !verdicts.is_empty() {
            self.remark("pt: percentage points; – is unknown");
        }
        if one_run {
            self.out.push_str(&self.paint.apply(Tone::Warn, NO_VERDICT));
            self.out.push('\n');
            self.remark(
                "noise: where the change lies with 95 %, by what varies within the two runs. Runs \
                 vary more among themselves: 3 runs a side give a verdict",
            );
        }
        if too_few {
            let text = too_few_runs(self.comparison);
            self.out.push_str(&self.paint.apply(Tone::Warn, text));
            self.out.push('\n');
        }
        if judged {
            self.remark(
                "before and after are means of the runs; in % with its 95 % interval; effect: the \
                 change in standard deviations between runs; least: the smallest true change, in \
                 %, that so many runs show in 4 of 5 cases",
            );
            let margin = percent_spread(self.comparison.margin.percent());
            self.remark(&format!(
                "better, worse: the interval holds no 0; same: all of it lies within ± {margin} % \
                 (`margin`); unclear: neither; more runs decide. Each line is judged by itself: of \
                 20 without a true change, about one is called better or worse"
            ));
        }
    }

    fn gates(&mut self, gates: &[GateResult]) {
        if gates.is_empty() {
            return;
        }
        let on = |result: &GateResult| place_name(result.of.as_deref(), result.kind);
        let names: Vec<String> = gates.iter().map(on).collect();
        let table = |chars_max: usize| {
            let mut table = Table::new(&["gates", "on", "outcome", "found"]);
            for (result, on) in gates.iter().zip(elided_apart(&names, chars_max)) {
                let (word, tone) = outcome(result.outcome);
                let cells = [on.into(), Cell::new(word, tone), Cell::from(found(result))];
                table.row(&harmless(&result.gate), Tone::Plain, cells);
            }
            table
        };
        // Below, what is told of a gate has its whole name.
        let others = table(2).width() - 2;
        self.table(&table(self.width.saturating_sub(others).max(16)));
        for result in gates {
            if let Outcome::Inconclusive(doubt) = result.outcome {
                let on = place_name(result.of.as_deref(), result.kind);
                let lead = format!("{} {on}: ", harmless(&result.gate));
                self.remark(&(lead + doubt_text(doubt)));
            }
        }
    }
}

/// Tells whether a metric says something of a kind that another line does not.
fn is_shown(row: &Row, kind: &KindComparison) -> bool {
    match row.metric {
        Metric::Objects => {
            let rates = kind.row(Metric::Rate).map(|rate| (&rate.before, &rate.after));
            rates != Some((&row.before, &row.after))
        }
        Metric::FastestObjects | Metric::MedianObjects | Metric::SlowestObjects => {
            !kind.moves_bytes
        }
        _ => true,
    }
}

/// Returns the heading that a metric stands under, and its label.
fn label(metric: Metric) -> (Option<&'static str>, &'static str) {
    const LATENCY: Option<&str> = Some("latency");
    const TTFB: Option<&str> = Some("TTFB");
    match metric {
        Metric::LoadLine => (None, "load line, ops/s"),
        Metric::Capacity => (None, "capacity, ops/s"),
        Metric::Rate => (None, "ops/s"),
        Metric::Objects => (None, "obj/s"),
        Metric::Throughput => (None, "MiB/s"),
        Metric::Fastest | Metric::FastestObjects => (None, "  fastest"),
        Metric::Median | Metric::MedianObjects => (None, "  median"),
        Metric::Slowest | Metric::SlowestObjects => (None, "  slowest"),
        Metric::Mean => (LATENCY, "  mean"),
        Metric::P50 => (LATENCY, "  p50"),
        Metric::P90 => (LATENCY, "  p90"),
        Metric::P99 => (LATENCY, "  p99"),
        Metric::P99_9 => (LATENCY, "  p99.9"),
        Metric::Max => (LATENCY, "  max"),
        Metric::Min => (LATENCY, "  min"),
        Metric::StdDev => (LATENCY, "  std dev"),
        Metric::TtfbMean => (TTFB, "  mean"),
        Metric::TtfbP50 => (TTFB, "  p50"),
        Metric::TtfbP90 => (TTFB, "  p90"),
        Metric::TtfbP99 => (TTFB, "  p99"),
        Metric::TtfbMax => (TTFB, "  max"),
        Metric::TtfbMin => (TTFB, "  min"),
        Metric::TtfbStdDev => (TTFB, "  std dev"),
        Metric::Errors => (None, "errors"),
    }
}

fn outcome(outcome: Outcome) -> (&'static str, Tone) {
    match outcome {
        Outcome::Pass => ("pass", Tone::Good),
        Outcome::Worse => ("worse", Tone::Bad),
        Outcome::Inconclusive(_) => ("inconclusive", Tone::Warn),
    }
}

/// Returns what a gate was held against.
pub(crate) fn found(result: &GateResult) -> String {
    let Some(row) = &result.row else { return UNKNOWN.to_owned() };
    match result.limit {
        Limit::After(_) => known(row.after.mean, |mean| figure::with_unit(row.metric.unit(), mean)),
        Limit::ChangePercent(_) => {
            let spread = row.verdict.evidence().and_then(|evidence| evidence.percent);
            let spread = spread.map(|interval| percent_spread(interval.half_width()));
            let change = known(row.percent, percent_signed);
            match (row.percent, spread) {
                (None, _) => change,
                (_, None) => format!("{change} %"),
                (_, Some(spread)) => format!("{change} ± {spread} %"),
            }
        }
    }
}

/// Returns why a gate cannot be told.
pub(crate) fn doubt_text(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::OneRun => NO_VERDICT,
        Doubt::TooFewRuns => "one or two runs on a side: too few for a verdict",
        Doubt::Unknown => "the figure is unknown on a side",
        Doubt::Incomplete => "operations of a run are missing",
        Doubt::ClientLimited => "a client was the limit, so nothing is known of the store",
        Doubt::LimitInInterval => {
            "too noisy to decide: the limit lies within the interval of the change; more runs \
            decide, unless the change is about as large as the limit"
        }
        Doubt::RunsDisagree => "some runs keep the limit and some do not",
    }
}
