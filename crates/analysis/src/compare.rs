//! What changed between runs before and runs after, and whether it is more than chance.
//!
//! One run a side shows a change and how much such a figure scatters within its run, never a
//! verdict; from three runs a side on the runs themselves are the sample.

mod figures;
mod gate;
mod metric;
mod noise;
mod parameters;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use plimsoll_model::OpKind;
use plimsoll_stats::{Interval, Welch, mean, runs_to_tell, std_dev};

pub use figures::{KindFigures, RunFigures};
pub use gate::{Doubt, Gate, GateError, GateResult, Limit, Outcome, exit_code, judge};
pub use metric::{Direction, Metric, Unit};
pub use parameters::{Difference, differing};

/// A verdict needs this many runs on each side.
pub const RUNS_MIN: usize = 3;

/// As many runs on a side are looked at, whether they would tell of an unclear change.
pub const RUNS_MAX: u32 = 1_000;

/// How large a change may be, in percent of the mean before, that is no change worth the name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin(f64);

/// A margin that is no percentage above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a margin is a percentage above 0, such as 5%")]
pub struct MarginError;

impl Margin {
    /// Returns it in percent.
    pub fn percent(self) -> f64 {
        self.0
    }
}

impl Default for Margin {
    fn default() -> Self {
        Self(5.0)
    }
}

impl FromStr for Margin {
    type Err = MarginError;

    fn from_str(text: &str) -> Result<Self, MarginError> {
        let percent = text.trim().trim_start_matches('±').trim_end_matches('%').trim();
        let percent = percent.parse::<f64>().ok();
        let percent = percent.filter(|percent| percent.is_finite() && *percent > 0.0);
        percent.map(Self).ok_or(MarginError)
    }
}

impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// The runs before against the runs after.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// How large a change may be that is none.
    pub margin: Margin,
    /// The names of the runs before.
    pub before: Vec<String>,
    /// The names of the runs after.
    pub after: Vec<String>,
    /// Each kind that occurred on either side, in the order of [`OpKind::ALL`], then all kinds
    /// together where there are several; of one stage and job after the other.
    pub kinds: Vec<KindComparison>,
    /// The runs whose client was the limit, before and after, so that they compare clients: each by
    /// its name with the sentence that says so.
    pub client_limits: Vec<(String, String)>,
    /// What is to be known of the records of runs, before and after: each sentence with the run's
    /// name.
    pub remarks: Vec<(String, String)>,
    /// Whether operations of a run are missing, so that no gate can be said to be kept.
    pub is_incomplete: bool,
    /// Whether one side alone has open loops, so that latencies count from different instants.
    pub is_open_on_one_side: bool,
}

/// One kind of operation before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct KindComparison {
    /// The stage and the job, where a run has several.
    pub of: Option<String>,
    /// The kind; `None` for all kinds together.
    pub kind: Option<OpKind>,
    /// On which sides it occurred.
    pub presence: Presence,
    /// Whether bytes per second mean something here.
    pub moves_bytes: bool,
    /// Operations that ended before, all runs together; `None` when unknown of one of them.
    pub operations_before: Option<u64>,
    /// Operations that ended after, all runs together; `None` when unknown of one of them.
    pub operations_after: Option<u64>,
    /// Each metric that is known on a side, in the order of [`Metric::ALL`]; of a search for a load
    /// line also the line that was not found.
    pub rows: Vec<Row>,
}

/// On which sides a kind occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Before and after.
    Both,
    /// Only before.
    BeforeOnly,
    /// Only after.
    AfterOnly,
}

/// One metric before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was measured.
    pub metric: Metric,
    /// Before.
    pub before: Side,
    /// After.
    pub after: Side,
    /// The mean after − the mean before, in the metric's unit.
    pub absolute: Option<f64>,
    /// The same in percent of the mean before; `None` also when that is 0.
    pub percent: Option<f64>,
    /// What to make of it.
    pub verdict: Verdict,
}

/// One metric over the runs of a side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// The figure of each run that knows it.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: Option<f64>,
    /// Their sample standard deviation, from two runs on.
    pub std_dev: Option<f64>,
}

/// What a change is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Unknown on a side.
    Unknown,
    /// One run a side: how much the figure scatters within its run, and no verdict.
    OneRun {
        /// 95 % interval of the figure before.
        before: Option<Interval>,
        /// 95 % interval of the figure after.
        after: Option<Interval>,
        /// 95 % interval of the change, in percent of the figure before.
        change_percent: Option<Interval>,
    },
    /// One side has one or two runs, too few for a verdict.
    TooFewRuns,
    /// Whatever difference there is, it is smaller than the margin.
    Same(Evidence),
    /// No difference may be there, and one beyond the margin may be: more runs tell.
    Unclear(Evidence),
    /// The sides differ.
    Differs {
        /// How much.
        evidence: Evidence,
        /// Whether the change is for the better.
        better: bool,
    },
    /// A client was the limit of a run, so that the change says nothing of the store.
    ClientLimited(Evidence),
}

/// How well a change between several runs a side is known; see [`Welch`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// 95 % interval of the change, in the metric's unit.
    pub interval: Interval,
    /// The same in percent of the mean before.
    pub percent: Option<Interval>,
    /// Hedges' g.
    pub effect: Option<f64>,
    /// The smallest true change that so many runs show in 4 of 5 cases, in the metric's unit.
    pub detectable: f64,
    /// The same in percent of the mean before.
    pub detectable_percent: Option<f64>,
    /// Of an unclear change: as many runs on each side would tell in 4 of 5 cases, if what was
    /// observed is the truth; see [`runs_to_tell`]. `None` if it would take more than [`RUNS_MAX`],
    /// and of any other verdict.
    pub runs_needed: Option<u32>,
}

impl Verdict {
    /// Returns what several runs a side tell.
    pub fn evidence(&self) -> Option<&Evidence> {
        match self {
            Self::Same(evidence)
            | Self::Unclear(evidence)
            | Self::Differs { evidence, .. }
            | Self::ClientLimited(evidence) => Some(evidence),
            Self::Unknown | Self::OneRun { .. } | Self::TooFewRuns => None,
        }
    }
}

impl Comparison {
    /// Takes back each verdict: these runs measured their clients.
    pub fn limit_by_clients(&mut self, runs: Vec<(String, String)>) {
        self.client_limits = runs;
        if self.client_limits.is_empty() {
            return;
        }
        let rows = self.kinds.iter_mut().flat_map(|kind| &mut kind.rows);
        // Whether operations fail is the store's, however busy the client is.
        for row in rows.filter(|row| row.metric != Metric::Errors) {
            if let Some(evidence) = row.verdict.evidence() {
                row.verdict = Verdict::ClientLimited(*evidence);
            }
        }
    }

    /// Returns the comparisons of one kind, or of all kinds together for `None`: one for each stage
    /// and job.
    ///
    /// Where there is but one kind, it is all kinds together.
    pub fn of_kind(&self, kind: Option<OpKind>) -> impl Iterator<Item = &KindComparison> {
        let is_only = |each: &KindComparison| {
            self.kinds.iter().filter(|other| other.of == each.of).count() == 1
        };
        self.kinds.iter().filter(move |each| each.kind == kind || kind.is_none() && is_only(each))
    }
}

impl KindComparison {
    /// Returns one metric; `None` when it is unknown on both sides.
    pub fn row(&self, metric: Metric) -> Option<&Row> {
        self.rows.iter().find(|row| row.metric == metric)
    }
}

/// Returns what changed from the runs before to the runs after, beyond the usual margin.
pub fn compare(before: &[RunFigures], after: &[RunFigures]) -> Comparison {
    compare_within(before, after, Margin::default())
}

/// Returns what changed from the runs before to the runs after.
pub fn compare_within(before: &[RunFigures], after: &[RunFigures], margin: Margin) -> Comparison {
    let names = |runs: &[RunFigures]| runs.iter().map(|run| run.name.clone()).collect();
    let all = || before.iter().chain(after).flat_map(|run| &run.kinds);
    let mut places: Vec<&Option<String>> = Vec::new();
    for figures in all() {
        if !places.contains(&&figures.of) {
            places.push(&figures.of);
        }
    }
    let mut kinds = Vec::new();
    for of in places {
        let own = all().filter(|figures| figures.of == *of);
        let mut own: Vec<Option<OpKind>> = own.map(|figures| figures.kind).collect();
        own.sort_by_key(|kind| kind.map_or(usize::MAX, |kind| kind as usize));
        own.dedup();
        kinds.extend(own.into_iter().map(|kind| {
            let side = |runs: &'_ [RunFigures]| -> Vec<KindFigures> {
                let is_own = |figures: &&KindFigures| figures.of == *of && figures.kind == kind;
                runs.iter().filter_map(|run| run.kinds.iter().find(is_own)).cloned().collect()
            };
            let compared = compare_kind(kind, &side(before), &side(after), margin);
            KindComparison { of: of.clone(), ..compared }
        }));
    }
    let (before, after) = (names(before), names(after));
    Comparison {
        margin,
        before,
        after,
        kinds,
        client_limits: Vec::new(),
        remarks: Vec::new(),
        is_incomplete: false,
        is_open_on_one_side: false,
    }
}

fn compare_kind(
    kind: Option<OpKind>,
    before: &[KindFigures],
    after: &[KindFigures],
    margin: Margin,
) -> KindComparison {
    let presence = match (before.is_empty(), after.is_empty()) {
        (_, true) => Presence::BeforeOnly,
        (true, false) => Presence::AfterOnly,
        (false, false) => Presence::Both,
    };
    let operations = |side: &[KindFigures]| side.iter().map(|figures| figures.operations).sum();
    let rows = Metric::ALL.into_iter().map(|metric| compare_metric(metric, before, after, margin));
    let is_search = before.iter().chain(after).any(|of| of.value(Metric::Capacity).is_some());
    let is_known = |row: &Row| row.before.mean.or(row.after.mean).is_some();
    // That no line was found is what was found.
    let is_told = |row: &Row| is_known(row) || is_search && row.metric == Metric::LoadLine;
    KindComparison {
        of: None,
        kind,
        presence,
        moves_bytes: before.iter().chain(after).any(|figures| figures.moves_bytes),
        operations_before: operations(before),
        operations_after: operations(after),
        rows: rows.filter(is_told).collect(),
    }
}

impl Side {
    fn of(metric: Metric, runs: &[KindFigures]) -> Self {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.value(metric)).collect();
        let (mean, std_dev) = (mean(&values), std_dev(&values));
        Self { values, mean, std_dev }
    }
}

fn compare_metric(
    metric: Metric,
    runs_before: &[KindFigures],
    runs_after: &[KindFigures],
    margin: Margin,
) -> Row {
    let (before, after) = (Side::of(metric, runs_before), Side::of(metric, runs_after));
    let absolute = before.mean.zip(after.mean).map(|(before, after)| after - before);
    // Percent of the mean before, which is taken as if it were known exactly.
    let base = before.mean.filter(|base| *base > 0.0);
    let per_cent = base.map(|base| 100.0 / base);
    let percent = absolute.zip(per_cent).map(|(change, per_cent)| change * per_cent);
    let verdict = match (before.values.len(), after.values.len()) {
        (0, _) | (_, 0) => Verdict::Unknown,
        (1, 1) => {
            let noise = |runs: &[KindFigures]| runs.iter().find_map(|run| run.noise(metric));
            let (noise_before, noise_after) = (noise(runs_before), noise(runs_after));
            let change = change(&before, &after, noise_before, noise_after);
            let change_percent = change.zip(per_cent).map(|(change, by)| change.scaled(by));
            Verdict::OneRun { before: noise_before, after: noise_after, change_percent }
        }
        (few, _) | (_, few) if few < RUNS_MIN => Verdict::TooFewRuns,
        _ => {
            let welch = Welch::compare(&before.values, &after.values);
            let welch = welch.expect("two runs a side are enough");
            let verdict = judged(metric, &welch, per_cent, margin);
            with_runs_needed(verdict, &before, &after, margin)
        }
    };
    Row { metric, before, after, absolute, percent, verdict }
}

/// Returns the interval of a change of which both ends are known to an interval.
///
/// With figures b and a and their intervals [b₁, b₂] and [a₁, a₂]: from a − b − √((a − a₁)² + (b₂ −
/// b)²) to a − b + √((a₂ − a)² + (b − b₁)²). Source: G. Y. Zou, A. Donner, *Construction of
/// Confidence Limits about Effect Measures: A General Approach*, Statistics in Medicine 27 (10),
/// 2008.
fn change(
    before: &Side,
    after: &Side,
    noise_before: Option<Interval>,
    noise_after: Option<Interval>,
) -> Option<Interval> {
    let (b, a) = (before.mean?, after.mean?);
    let (noise_b, noise_a) = (noise_before?, noise_after?);
    Some(Interval {
        low: a - b - (a - noise_a.low).hypot(noise_b.high - b),
        high: a - b + (noise_a.high - a).hypot(b - noise_b.low),
    })
}

/// Returns a verdict; an unclear one with how many runs would tell.
fn with_runs_needed(verdict: Verdict, before: &Side, after: &Side, margin: Margin) -> Verdict {
    let Verdict::Unclear(mut evidence) = verdict else { return verdict };
    let means = before.mean.zip(after.mean);
    let deviations = before.std_dev.zip(after.std_dev);
    evidence.runs_needed = means.zip(deviations).and_then(|((before, after), (first, last))| {
        let margin = (before > 0.0).then(|| before * margin.percent() / 100.0);
        runs_to_tell(after - before, [first, last], margin, RUNS_MAX)
    });
    Verdict::Unclear(evidence)
}

/// Returns the verdict on a difference, by its 95 % interval: one without 0 is a change, one within
/// the margin is none, and any other is neither shown nor ruled out.
///
/// That an interval lies within a margin is the test of equivalence by two one-sided tests, here at
/// 2.5 % each. Source: D. J. Schuirmann, *A Comparison of the Two One-Sided Tests Procedure and the
/// Power Approach for Assessing the Equivalence of Average Bioavailability*, Journal of
/// Pharmacokinetics and Biopharmaceutics 15 (6), 1987.
fn judged(metric: Metric, welch: &Welch, per_cent: Option<f64>, margin: Margin) -> Verdict {
    let evidence = Evidence {
        interval: welch.interval,
        percent: per_cent.map(|by| welch.interval.scaled(by)),
        effect: welch.effect,
        detectable: welch.detectable,
        detectable_percent: per_cent.map(|by| welch.detectable * by),
        runs_needed: None,
    };
    if welch.interval.contains(0.0) {
        // Of a figure that was 0 before, only 0 is within any percentage.
        let within = evidence.percent.unwrap_or(evidence.interval);
        let most = evidence.percent.map_or(0.0, |_| margin.percent());
        let is_within = -most <= within.low && within.high <= most;
        return if is_within { Verdict::Same(evidence) } else { Verdict::Unclear(evidence) };
    }
    let better = (welch.difference > 0.0) == (metric.direction() == Direction::HigherIsBetter);
    Verdict::Differs { evidence, better }
}
