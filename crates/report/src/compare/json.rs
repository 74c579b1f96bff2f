//! A comparison for programs. The schema is `docs/formats/compare.schema.json`; unknown is null.

use plimsoll_analysis::compare::{
    Comparison, Difference, Direction, Doubt, Evidence, GateResult, KindComparison, Limit, Outcome,
    Presence, Row, Side, Unit, Verdict, exit_code,
};
use plimsoll_stats::Interval;
#[cfg(feature = "schema")]
use schemars::generate::SchemaSettings;
use serde::Serialize;

use super::headline::headline;
use super::{doubt_text, kind_name};

/// The name and version of the format; a field that changes its meaning gets a new one.
pub const SCHEMA: &str = "plimsoll.compare/1";

/// Returns the comparison as one JSON object.
pub fn json(
    comparison: &Comparison,
    differences: &[Difference],
    gates: &[GateResult],
) -> serde_json::Value {
    let document = Document {
        schema: SCHEMA,
        headline: headline(comparison),
        before: comparison.before.clone(),
        after: comparison.after.clone(),
        margin_percent: comparison.margin.percent(),
        parameters: differences.iter().map(ParameterOut::of).collect(),
        kinds: comparison.kinds.iter().map(KindOut::of).collect(),
        client_limits: comparison.client_limits.iter().map(SaidOfRun::of).collect(),
        warnings: comparison.remarks.iter().map(SaidOfRun::of).collect(),
        is_incomplete: comparison.is_incomplete,
        gates: gates.iter().map(GateOut::of).collect(),
        exit_code: (!gates.is_empty()).then(|| exit_code(gates)),
    };
    serde_json::to_value(document).expect("the document has text keys and finite numbers")
}

/// Returns the JSON Schema, as it stands in `docs/formats/compare.schema.json`.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Document>().to_value()
}

/// What changed between runs before and runs after.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "plimsoll.compare/1"))]
struct Document {
    /// Always `plimsoll.compare/1`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// What the comparison comes to, a sentence for each of at most two kinds; for people.
    headline: Vec<String>,
    /// The runs before.
    before: Vec<String>,
    /// The runs after.
    after: Vec<String>,
    /// A change whose 95 % interval holds 0 and lies within ± this, in percent of the mean before,
    /// is `same`; one whose interval is without 0 is `better` or `worse`, however small.
    margin_percent: f64,
    /// Parameters that differ.
    parameters: Vec<ParameterOut>,
    /// Each kind that occurred on a side, then all kinds together where there are several.
    kinds: Vec<KindOut>,
    /// The runs whose client was the limit: their figures are not a measurement of the store.
    client_limits: Vec<SaidOfRun>,
    /// What is to be known of the records of runs, such as that a part of one is damaged.
    warnings: Vec<SaidOfRun>,
    /// Whether operations of a run are missing; then no gate passes.
    is_incomplete: bool,
    /// Each gate on each kind it is about.
    gates: Vec<GateOut>,
    /// What the gates come to: 0 all pass, 1 one is broken, 3 one cannot be told; null without
    /// gates.
    exit_code: Option<u8>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SaidOfRun {
    /// The run, as in `before` or `after`.
    run: String,
    /// What is to be known of it, in one sentence.
    sentence: String,
}

impl SaidOfRun {
    fn of((run, sentence): &(String, String)) -> Self {
        Self { run: run.clone(), sentence: sentence.clone() }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Parameter"))]
struct ParameterOut {
    name: String,
    /// The values that occurred before, each once; empty when it was not given.
    before: Vec<String>,
    /// The values that occurred after, each once; empty when it was not given.
    after: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Kind"))]
struct KindOut {
    /// The stage and the job; null where each side has but one.
    of: Option<String>,
    /// Such as `GET`; `total` for all kinds together.
    kind: &'static str,
    /// `both`, `before` or `after`: on which sides it occurred.
    occurred: &'static str,
    /// Operations that ended, failed ones included, all runs together.
    ops_count_before: Option<u64>,
    ops_count_after: Option<u64>,
    /// Each metric that is known on a side.
    metrics: Vec<MetricOut>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Metric"))]
struct MetricOut {
    /// As in a gate, such as `p99`.
    metric: &'static str,
    /// `ops_per_sec`, `objects_per_sec`, `bytes_per_sec`, `ns`, or `fraction`, which is 0 to 1.
    unit: &'static str,
    /// `higher` or `lower`.
    better: &'static str,
    before: SideOut,
    after: SideOut,
    /// The mean after less the mean before, in the metric's unit.
    change: Option<f64>,
    /// The same in percent of the mean before; null also when that is 0.
    change_percent: Option<f64>,
    /// `better` or `worse` (0 is not in the 95 % interval), `same` (all of the interval lies
    /// within the margin) or `unclear` (neither), from three runs a side on; `one-run`,
    /// `too-few-runs` and `unknown` are no verdicts.
    verdict: &'static str,
    /// The 95 % interval of the change between runs; null without a verdict.
    change_interval: Option<IntervalOut>,
    /// In percent of the mean before. With one run a side, the interval by the noise within runs.
    change_percent_interval: Option<IntervalOut>,
    /// Hedges' g; null without a verdict and where no run deviates.
    effect: Option<f64>,
    /// The smallest true change, in the metric's unit, that so many runs show in 4 of 5 cases.
    detectable: Option<f64>,
    /// The same in percent of the mean before.
    detectable_percent: Option<f64>,
    /// Of an `unclear` change, how many runs on each side would tell in 4 of 5 cases if what was
    /// observed is the truth; null where that is more than 1,000, and of any other verdict.
    runs_needed: Option<u32>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Side"))]
struct SideOut {
    /// Of each run that knows it.
    values: Vec<f64>,
    mean: Option<f64>,
    /// The sample standard deviation between runs, from two on.
    std_dev: Option<f64>,
    /// With one run a side, the 95 % interval by the noise within the run.
    noise: Option<IntervalOut>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Interval"))]
struct IntervalOut {
    low: f64,
    high: f64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Gate"))]
struct GateOut {
    /// As it was written.
    gate: String,
    /// The stage and the job; null where each side has but one.
    of: Option<String>,
    /// Such as `GET`; `total` for all kinds together.
    kind: &'static str,
    /// The metric it was held against; null when it is unknown on both sides.
    metric: Option<&'static str>,
    /// The limit of the change in percent; null where the limit is of the figure after.
    limit_change_percent: Option<f64>,
    /// The limit of the figure after, in the metric's unit; null where it is of the change.
    limit_after: Option<f64>,
    /// `pass`, `worse` or `inconclusive`.
    outcome: &'static str,
    /// `one-run`, `too-few-runs`, `unknown`, `limit-in-interval` or `runs-disagree`; null unless
    /// inconclusive.
    reason: Option<&'static str>,
    /// The reason as text.
    reason_text: Option<&'static str>,
}

impl ParameterOut {
    fn of(difference: &Difference) -> Self {
        let Difference { name, before, after } = difference.clone();
        Self { name, before, after }
    }
}

impl KindOut {
    fn of(kind: &KindComparison) -> Self {
        Self {
            of: kind.of.clone(),
            kind: kind_name(kind.kind),
            occurred: match kind.presence {
                Presence::Both => "both",
                Presence::BeforeOnly => "before",
                Presence::AfterOnly => "after",
            },
            ops_count_before: kind.operations_before,
            ops_count_after: kind.operations_after,
            metrics: kind.rows.iter().map(MetricOut::of).collect(),
        }
    }
}

impl MetricOut {
    fn of(row: &Row) -> Self {
        let evidence = row.verdict.evidence();
        let (verdict, noise_before, noise_after, noise) = match row.verdict {
            Verdict::Unknown => ("unknown", None, None, None),
            Verdict::OneRun { before, after, change_percent } => {
                ("one-run", before, after, change_percent)
            }
            Verdict::TooFewRuns => ("too-few-runs", None, None, None),
            Verdict::Same(Evidence { percent, .. }) => ("same", None, None, percent),
            Verdict::Unclear(Evidence { percent, .. }) => ("unclear", None, None, percent),
            Verdict::ClientLimited(Evidence { percent, .. }) => {
                ("client-limited", None, None, percent)
            }
            Verdict::Differs { evidence: Evidence { percent, .. }, better: true } => {
                ("better", None, None, percent)
            }
            Verdict::Differs { evidence: Evidence { percent, .. }, better: false } => {
                ("worse", None, None, percent)
            }
        };
        Self {
            metric: row.metric.name(),
            unit: match row.metric.unit() {
                Unit::OpsPerSec => "ops_per_sec",
                Unit::ObjectsPerSec => "objects_per_sec",
                Unit::BytesPerSec => "bytes_per_sec",
                Unit::Nanoseconds => "ns",
                Unit::Fraction => "fraction",
            },
            better: match row.metric.direction() {
                Direction::HigherIsBetter => "higher",
                Direction::LowerIsBetter => "lower",
            },
            before: SideOut::of(&row.before, noise_before),
            after: SideOut::of(&row.after, noise_after),
            change: row.absolute,
            change_percent: row.percent,
            verdict,
            change_interval: evidence.map(|evidence| IntervalOut::of(evidence.interval)),
            change_percent_interval: noise.map(IntervalOut::of),
            effect: evidence.and_then(|evidence| evidence.effect),
            detectable: evidence.map(|evidence| evidence.detectable),
            detectable_percent: evidence.and_then(|evidence| evidence.detectable_percent),
            runs_needed: evidence.and_then(|evidence| evidence.runs_needed),
        }
    }
}

impl SideOut {
    fn of(side: &Side, noise: Option<Interval>) -> Self {
        let Side { values, mean, std_dev } = side.clone();
        Self { values, mean, std_dev, noise: noise.map(IntervalOut::of) }
    }
}

impl IntervalOut {
    fn of(Interval { low, high }: Interval) -> Self {
        Self { low, high }
    }
}

impl GateOut {
    fn of(result: &GateResult) -> Self {
        let (outcome, doubt) = match result.outcome {
            Outcome::Pass => ("pass", None),
            Outcome::Worse => ("worse", None),
            Outcome::Inconclusive(doubt) => ("inconclusive", Some(doubt)),
        };
        let (limit_change_percent, limit_after) = match result.limit {
            Limit::ChangePercent(percent) => (Some(percent), None),
            Limit::After(value) => (None, Some(value)),
        };
        Self {
            gate: result.gate.clone(),
            of: result.of.clone(),
            kind: kind_name(result.kind),
            metric: result.row.as_ref().map(|row| row.metric.name()),
            limit_change_percent,
            limit_after,
            outcome,
            reason: doubt.map(|doubt| match doubt {
                Doubt::OneRun => "one-run",
                Doubt::TooFewRuns => "too-few-runs",
                Doubt::Unknown => "unknown",
                Doubt::Incomplete => "incomplete",
                Doubt::ClientLimited => "client-limited",
                Doubt::LimitInInterval => "limit-in-interval",
                Doubt::RunsDisagree => "runs-disagree",
            }),
            reason_text: doubt.map(doubt_text),
        }
    }
}
