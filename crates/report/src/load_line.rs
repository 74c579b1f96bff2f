//! The load line of a run whose stages are probes: the line, the curve, what gave way first.

mod plot;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use plimsoll_analysis::load_line::{CurvePoint, LoadLineAnalysis, LoadLineAsked};
use plimsoll_model::{OpRate, ProbeOutcome, ProbeRole};
use plimsoll_stats::{Basis, LoadLine};
use serde::Serialize;

use crate::RunVerdict;
use crate::format::{number, op_rate, percent, plural};

/// Less than this share of the time that is left out is not worth a line.
const EXCLUDED_MIN: f64 = 0.005;

/// The highest rate of Poisson arrivals at which a store keeps what was asked, and the curve that
/// shows it. What is not known is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadLineReport {
    /// Which stage of the workload is the search, 0-based, as `search_index` of its probes.
    pub search_index: u8,
    /// What the stage that was searched is called.
    pub name: String,
    /// What was to be kept, such as `p99<=20ms` and `errors<=0.1%`.
    pub slo: Vec<String>,
    /// How well the line was to be known: half the width of its interval over the rate, in percent.
    pub precision_percent: f64,
    /// How long all probes together were to last.
    pub budget_ns: u64,
    /// The line; null where none can be told.
    pub line: Option<LineFigure>,
    /// Why none can be told; null where one can.
    pub no_line_because: Option<String>,
    /// Who was the limit of the probes that were too much, next above the line; null where that was
    /// not looked at.
    pub verdict: Option<RunVerdict>,
    /// The line by theory, where the store is an embedded queue (M/M/c); null elsewhere.
    pub theory_ops_per_sec: Option<f64>,
    /// The highest rate that was offered and kept all that was asked.
    pub carried_ops_per_sec_max: Option<f64>,
    /// The lowest rate that was offered and did not.
    pub missed_ops_per_sec_min: Option<f64>,
    /// The rate at which operations succeeded in the probe that shows the highest one most surely:
    /// the one with the highest lower end of its 95 % interval, by its tenths.
    pub capacity_ops_per_sec: Option<f64>,
    /// Where more load begins to cost more than it gives; null from too few probes.
    pub knee: Option<KneeFigure>,
    /// What was found of a store that did not come back after an overload; null where it did.
    pub metastable: Option<MetastableFigure>,
    /// How often the search looked whether the store was back after an overload.
    pub descents_count: u64,
    /// The probes, in order of time.
    pub probes: Vec<ProbeFigure>,
}

/// The load line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineFigure {
    /// The highest rate that keeps all that was asked.
    pub ops_per_sec: f64,
    /// The interval that holds it.
    pub ops_per_sec_low: f64,
    /// See `ops_per_sec_low`.
    pub ops_per_sec_high: f64,
    /// `fit`: a curve through the probes gave it, and the interval holds the truth with a
    /// probability of 95 %; `between`: it lies between the highest rate that was carried, less 3 %,
    /// as a short probe may carry that by luck, and the lowest that was not.
    pub basis: String,
    /// What gives way first above it; null where that is not one of what was asked.
    pub gives_way: Option<String>,
    /// How many probes it rests on.
    pub probes_count: u64,
}

/// The probe with the highest achieved rate over mean latency, and its neighbours.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KneeFigure {
    /// The rate of that probe.
    pub ops_per_sec: f64,
    /// The next lower rate that was probed; 0 where there is none.
    pub ops_per_sec_low: f64,
    /// The next higher one.
    pub ops_per_sec_high: f64,
}

/// A store that did not come back.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetastableFigure {
    /// The rate that overloaded it.
    pub overloaded_at_ops_per_sec: f64,
    /// The rate, below one that it had carried before, at which it was not back.
    pub not_back_at_ops_per_sec: f64,
    /// The lower rate at which it was; null where it was at none.
    pub back_at_ops_per_sec: Option<f64>,
}

/// What came of one probe in the stretch that counts: all but its first tenth.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeFigure {
    /// The number of its stage in the record.
    pub stage_index: u8,
    /// What it was made for; null: a closed loop, to find out where to begin.
    pub role: Option<ProbeRole>,
    /// The rate that was offered; null for a closed loop.
    pub offered_ops_per_sec: Option<f64>,
    /// For how long operations were due.
    pub duration_ns: u64,
    /// How many operations were due in the stretch that counts.
    pub due_count: u64,
    /// How many of these failed.
    pub ops_failed_count: u64,
    /// How many operations ended there a second and succeeded; null of a probe that was cut.
    pub achieved_ops_per_sec: Option<f64>,
    /// The latency, from the intended start to the end, of those that were due there and succeeded.
    pub latency_ns_mean: Option<f64>,
    /// Its median; null from fewer than 2, as others from too few.
    pub latency_ns_p50: Option<u64>,
    /// Its 99th percentile, from 100 on.
    pub latency_ns_p99: Option<u64>,
    /// Its 99.9th percentile, from 1,000 on.
    pub latency_ns_p99_9: Option<u64>,
    /// Its outcome; null for a closed loop.
    pub outcome: Option<ProbeOutcome>,
    /// In what share of that stretch no client was disturbed, 0 to 1: latencies are of operations
    /// that were due then, and so is the outcome.
    pub undisturbed_share: f64,
}

impl LoadLineReport {
    /// Returns the report of what was found. Where the client was the limit of what was too much,
    /// no line is named although the probes give one: what gave way was not the store.
    pub fn of(
        name: &str,
        asked: &LoadLineAsked,
        found: &LoadLineAnalysis,
        verdict: Option<RunVerdict>,
    ) -> Self {
        let of_client = verdict.as_ref().filter(|verdict| verdict.is_client);
        let no_line_because = of_client.map(|verdict| {
            format!("the client, not the store, was the limit: {}", verdict.sentence)
        });
        let line = found.line.filter(|_| no_line_because.is_none());
        let line = line.map(|line| LineFigure::of(asked, &line));
        let is_client = verdict.as_ref().is_some_and(|verdict| verdict.is_client);
        let because = || no_line_because.unwrap_or_else(|| why_none(found, asked));
        let role = |point: &&CurvePoint| point.probe.role == Some(ProbeRole::Descent);
        Self {
            search_index: 0,
            name: name.to_owned(),
            slo: asked.slos.iter().map(ToString::to_string).collect(),
            precision_percent: asked.precision * 100.0,
            budget_ns: asked.budget.as_nanos() as u64,
            no_line_because: line.is_none().then(because),
            line,
            verdict,
            theory_ops_per_sec: None,
            carried_ops_per_sec_max: found.carried_max,
            missed_ops_per_sec_min: found.missed_min,
            capacity_ops_per_sec: found.capacity.filter(|rate| *rate > 0.0),
            knee: found.knee.map(|knee| KneeFigure {
                ops_per_sec: knee.rate,
                ops_per_sec_low: knee.low,
                ops_per_sec_high: knee.high,
            }),
            // Of what a client did to itself nothing is known of the store.
            metastable: found.metastable.filter(|_| !is_client).map(|of| MetastableFigure {
                overloaded_at_ops_per_sec: of.overloaded_at,
                not_back_at_ops_per_sec: of.not_back_at,
                back_at_ops_per_sec: of.back_at,
            }),
            descents_count: found.points.iter().filter(role).count() as u64,
            probes: found.points.iter().map(ProbeFigure::of).collect(),
        }
    }

    /// Tells whether no line is named because the client was the limit.
    pub fn is_refused(&self) -> bool {
        self.line.is_none() && self.verdict.as_ref().is_some_and(|verdict| verdict.is_client)
    }

    /// Returns what is found, as the headline says it.
    pub(crate) fn headline(&self) -> String {
        let kept = self.slo.join(", ");
        match (&self.line, self.carried_ops_per_sec_max) {
            (Some(line), _) => format!(
                "carries {} ({} to {}) with {kept}",
                op_rate(OpRate(line.ops_per_sec)),
                number(line.ops_per_sec_low),
                number(line.ops_per_sec_high),
            ),
            (None, Some(carried)) => {
                format!("no load line; carried at least {} with {kept}", op_rate(OpRate(carried)))
            }
            (None, None) => format!("no load line for {kept}"),
        }
    }

    /// Returns what theory says, and how far from it the line is.
    pub(crate) fn theory(&self) -> Option<String> {
        let theory = self.theory_ops_per_sec?;
        let off = self.line.as_ref().map(|line| (line.ops_per_sec / theory - 1.0) * 100.0);
        let off = off.map_or(String::new(), |off| format!("; the line found is {off:+.1} % off"));
        Some(format!(
            "{} by the formula of the queue that the store is{off}",
            op_rate(OpRate(theory))
        ))
    }

    /// Returns where the line comes from.
    pub(crate) fn basis(&self) -> Option<String> {
        let line = self.line.as_ref()?;
        let probes = plural(line.probes_count, "probe");
        let gives_way = line.gives_way.as_ref();
        let gives_way =
            gives_way.map_or(String::new(), |slo| format!("; above it {slo} gives way"));
        Some(match &*line.basis {
            "fit" => format!(
                "95 % interval {} to {} ops/s, fitted through {probes}{gives_way}",
                number(line.ops_per_sec_low),
                number(line.ops_per_sec_high),
            ),
            _ => format!(
                "between {} ops/s, 3 % below what was carried, and {}, which was not: the store \
                 falls off a cliff, so no curve is fitted{gives_way}",
                number(line.ops_per_sec_low),
                number(line.ops_per_sec_high),
            ),
        })
    }

    /// Returns what is said of the knee.
    pub(crate) fn knee_words(&self) -> Option<String> {
        let knee = self.knee.as_ref()?;
        Some(format!(
            "about {} (between {} and {}): above it latency grows faster than the rate",
            op_rate(OpRate(knee.ops_per_sec)),
            number(knee.ops_per_sec_low),
            number(knee.ops_per_sec_high),
        ))
    }

    /// Says whether the last look after each overload found the store back.
    fn recovered(&self) -> &'static str {
        let is_descent = |of: &ProbeFigure| of.role == Some(ProbeRole::Descent);
        let mut looks = self.probes.chunk_by(|a, b| is_descent(a) == is_descent(b));
        let is_back = |looks: &[ProbeFigure]| {
            !is_descent(&looks[0])
                || looks.last().is_some_and(|last| last.outcome == Some(ProbeOutcome::Kept))
        };
        match looks.all(is_back) {
            true => "after each overload the store recovered at a rate that it had carried before",
            false => "whether the store recovered from each overload was not seen",
        }
    }

    /// Says how much of the time of the probes is left out, as a client was disturbed.
    pub(crate) fn excluded(&self) -> Option<String> {
        let time = |of: &ProbeFigure| of.duration_ns as f64;
        let all: f64 = self.probes.iter().map(time).sum();
        let clean = |of: &ProbeFigure| time(of) * of.undisturbed_share;
        let left_out = 1.0 - self.probes.iter().map(clean).sum::<f64>() / all.max(1.0);
        let is_void = |of: &&ProbeFigure| of.outcome == Some(ProbeOutcome::Disturbed);
        let void = match self.probes.iter().filter(is_void).count() as u64 {
            0 => String::new(),
            count => format!(", with {} made again", plural(count, "probe")),
        };
        (left_out >= EXCLUDED_MIN).then(|| {
            let share = percent(left_out * 100.0);
            format!("{share} of the time{void}: the client was disturbed")
        })
    }

    /// Returns what is said of the store after an overload; none where it never was overloaded.
    pub(crate) fn recovery(&self) -> Option<String> {
        let rate = |rate: f64| op_rate(OpRate(rate));
        let Some(of) = &self.metastable else {
            return (self.descents_count > 0).then(|| self.recovered().to_owned());
        };
        let back = match of.back_at_ops_per_sec {
            Some(back) => format!("it came back at {}", rate(back)),
            None => "it did not recover at any rate that was tried".to_owned(),
        };
        Some(format!(
            "METASTABLE: overloaded at {} it did not come back at {}, which is below what it had \
             carried before; {back}",
            rate(of.overloaded_at_ops_per_sec),
            rate(of.not_back_at_ops_per_sec),
        ))
    }
}

/// Returns why the probes give no line.
fn why_none(found: &LoadLineAnalysis, asked: &LoadLineAsked) -> String {
    let open = || found.points.iter().filter(|point| point.probe.rate.is_some());
    if open().count() == 0 {
        return "the run ended before the first probe".to_owned();
    }
    if found.points.last().is_some_and(|point| point.probe.is_cut) {
        return "the search ended with a probe that was cut: fewer operations were due in it than \
                planned"
            .to_owned();
    }
    match (found.carried_max, found.missed_min) {
        (Some(carried), None) if carried >= asked.rate_max => format!(
            "everything asked for was kept up to {}, the highest rate allowed",
            op_rate(OpRate(carried))
        ),
        (Some(_), None) => "no rate was too high; a longer --budget goes further".to_owned(),
        (None, Some(missed)) => format!(
            "not even {} was carried; ask for less (--slo) or look lower (--rates)",
            op_rate(OpRate(missed))
        ),
        (_, _) => "the probes do not decide; a longer --budget allows more of them".to_owned(),
    }
}

impl LineFigure {
    fn of(asked: &LoadLineAsked, line: &LoadLine) -> Self {
        let bound = match line.basis {
            Basis::Fit(bound) => Some(bound),
            Basis::Between => None,
        };
        Self {
            ops_per_sec: line.rate,
            ops_per_sec_low: line.low,
            ops_per_sec_high: line.high,
            basis: if bound.is_some() { "fit" } else { "between" }.to_owned(),
            gives_way: bound.map(|bound| asked.slos[bound].to_string()),
            probes_count: line.probes_count as u64,
        }
    }
}

impl ProbeFigure {
    fn of(point: &CurvePoint) -> Self {
        let outcome = match point.is_too_high {
            _ if point.probe.is_cut => Some(ProbeOutcome::Cut),
            _ if point.is_disturbed => Some(ProbeOutcome::Disturbed),
            _ if point.is_overloaded => Some(ProbeOutcome::Overloaded),
            Some(_) if point.is_missed => Some(ProbeOutcome::Missed),
            Some(_) => Some(ProbeOutcome::Kept),
            None => None,
        };
        Self {
            stage_index: point.probe.stage.0,
            role: point.probe.role,
            offered_ops_per_sec: point.probe.rate,
            duration_ns: point.probe.lasts.as_nanos() as u64,
            due_count: point.due_count,
            ops_failed_count: point.failed_count,
            achieved_ops_per_sec: point.achieved_per_sec,
            latency_ns_mean: point.latency_ns_mean,
            latency_ns_p50: point.latency_ns[0],
            latency_ns_p99: point.latency_ns[1],
            latency_ns_p99_9: point.latency_ns[2],
            outcome,
            undisturbed_share: point.clean_share,
        }
    }

    /// Tells whether it is a point of the curve: not a closed loop, not one that looked whether the
    /// store was back, not one that was cut or whose client was disturbed.
    pub(crate) fn is_of_curve(&self) -> bool {
        let is_probe = !matches!(self.role, None | Some(ProbeRole::Descent));
        let shows = !matches!(self.outcome, Some(ProbeOutcome::Cut | ProbeOutcome::Disturbed));
        is_probe && shows && self.offered_ops_per_sec.is_some()
    }

    /// Returns what it is called in tables.
    pub(crate) fn name(&self) -> &'static str {
        self.role.map_or("gauge", ProbeRole::name)
    }
}
