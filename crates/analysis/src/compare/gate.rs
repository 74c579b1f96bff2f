//! Limits that a comparison must keep: `p99<=+5%`, `get.rate>=-3%`, `errors<=0.1%`.

use std::fmt;
use std::str::FromStr;

use plimsoll_model::{Bytes, OpKind, UnitError, parse_duration};
use plimsoll_stats::Interval;

use super::metric::{Direction, Metric, Unit};
use super::{Comparison, KindComparison, Presence, RUNS_MIN, Row, Verdict};

/// A limit on one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As it was written.
    text: String,
    /// Which operations it is about.
    scope: Scope,
    /// What is limited.
    metric: Metric,
    /// The limit.
    limit: Limit,
}

/// Which operations a gate is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Each kind by itself.
    EachKind,
    /// One kind.
    Kind(OpKind),
    /// All kinds together.
    Total,
}

/// How far a metric may go towards its worse side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The change, in percent of the mean before.
    ChangePercent(f64),
    /// The figure after, in the metric's unit.
    After(f64),
}

/// Why a text is no gate, or a gate does not fit the runs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GateError {
    /// There is no comparison in it.
    #[error("`gate` `{0}` has neither <= nor >=: write it like p99<=+5%")]
    NoComparison(String),
    /// It names no metric.
    #[error("`gate` `{gate}`: `{name}` is not a metric: take one of {}", metric_names())]
    UnknownMetric {
        /// The gate.
        gate: String,
        /// What it named.
        name: String,
    },
    /// It names no kind of operation.
    #[error("`gate` `{gate}`: `{name}` is not a kind of operation: take one of {}", kind_names())]
    UnknownKind {
        /// The gate.
        gate: String,
        /// What it named.
        name: String,
    },
    /// It limits the better side.
    #[error("`gate` `{gate}`: {} {} is better, so write {} before the limit",
        if *.wanted == ">=" { "more" } else { "less" }, metric.name(), .wanted)]
    WrongWay {
        /// The gate.
        gate: String,
        /// The metric.
        metric: Metric,
        /// The sign that makes sense.
        wanted: &'static str,
    },
    /// The limit cannot be read.
    #[error("`gate` `{gate}`: `{limit}` is not a limit for {}: {}",
        metric.name(), limit_forms(*metric))]
    BadLimit {
        /// The gate.
        gate: String,
        /// The limit.
        limit: String,
        /// The metric.
        metric: Metric,
    },
    /// No kind of operation in the runs is meant by it.
    #[error("`gate` `{gate}` is about no kind of operation in these runs; they hold {present}")]
    NoKind {
        /// The gate.
        gate: String,
        /// What the runs hold.
        present: String,
    },
}

fn metric_names() -> String {
    Metric::ALL.map(Metric::name).join(", ")
}

fn kind_names() -> String {
    OpKind::ALL.map(|kind| kind.name().to_ascii_lowercase()).join(", ") + ", total"
}

/// Returns how limits of a metric are written.
fn limit_forms(metric: Metric) -> String {
    let absolute = match metric.unit() {
        Unit::OpsPerSec | Unit::ObjectsPerSec => "1000/s",
        Unit::BytesPerSec => "500MiB/s",
        Unit::Nanoseconds => "20ms",
        Unit::Fraction => "0.1%",
    };
    let change = match metric.direction() {
        Direction::HigherIsBetter => "-5%",
        Direction::LowerIsBetter => "+5%",
    };
    format!("write {change} for the change against BEFORE, {absolute} for the figure of AFTER")
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let gate = text.trim().to_owned();
        let parts = ["<=", ">="].iter().find_map(|sign| Some((*sign, text.split_once(sign)?)));
        let Some((sign, (name, limit))) = parts else {
            return Err(GateError::NoComparison(gate));
        };
        let (scope, metric) = named(&gate, name.trim())?;
        let wanted = match metric.direction() {
            Direction::HigherIsBetter => ">=",
            Direction::LowerIsBetter => "<=",
        };
        if sign != wanted {
            return Err(GateError::WrongWay { gate, metric, wanted });
        }
        let limit = limit.trim();
        let Some(parsed) = parse_limit(metric, limit) else {
            return Err(GateError::BadLimit { gate, limit: limit.to_owned(), metric });
        };
        Ok(Self { text: gate, scope, metric, limit: parsed })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns which operations and which metric `name` is about: `p99.9`, `get.p99.9`.
fn named(gate: &str, name: &str) -> Result<(Scope, Metric), GateError> {
    let unknown_metric =
        |name: &str| GateError::UnknownMetric { gate: gate.to_owned(), name: name.to_owned() };
    if let Some(metric) = Metric::from_name(name) {
        return Ok((Scope::EachKind, metric));
    }
    let (kind, metric) = name.split_once('.').ok_or_else(|| unknown_metric(name))?;
    let scope = match OpKind::from_name(&kind.to_ascii_uppercase()) {
        Some(kind) => Scope::Kind(kind),
        None if kind.eq_ignore_ascii_case("total") => Scope::Total,
        None => {
            let (gate, name) = (gate.to_owned(), kind.to_owned());
            return Err(GateError::UnknownKind { gate, name });
        }
    };
    let metric = Metric::from_name(metric).ok_or_else(|| unknown_metric(metric))?;
    Ok((scope, metric))
}

fn parse_limit(metric: Metric, text: &str) -> Option<Limit> {
    let number = |text: &str| text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    let without = |endings: &[&str]| {
        let found = endings.iter().find_map(|ending| text.strip_suffix(ending));
        found.unwrap_or(text).trim().to_owned()
    };
    if text.starts_with(['+', '-']) {
        return number(text.strip_suffix('%')?).map(Limit::ChangePercent);
    }
    let known = |value: Result<f64, UnitError>| value.ok();
    let after = match metric.unit() {
        Unit::OpsPerSec => number(&without(&["ops/s", "/s"])),
        Unit::ObjectsPerSec => number(&without(&["obj/s", "/s"])),
        Unit::BytesPerSec => known(Bytes::parse(&without(&["/s"])).map(|bytes| bytes.0 as f64)),
        Unit::Nanoseconds => known(parse_duration(text).map(|time| time.as_nanos() as f64)),
        Unit::Fraction => number(text.strip_suffix('%')?).map(|percent| percent / 100.0),
    };
    after.map(Limit::After)
}

/// What a gate says about one kind of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct GateResult {
    /// The gate as it was written.
    pub gate: String,
    /// The stage and the job, where a run has several.
    pub of: Option<String>,
    /// The kind; `None` for all kinds together.
    pub kind: Option<OpKind>,
    /// Its limit.
    pub limit: Limit,
    /// The metric, before and after; `None` when it is unknown on both sides.
    pub row: Option<Row>,
    /// What came out.
    pub outcome: Outcome,
}

/// Whether a gate is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is.
    Pass,
    /// It is broken.
    Worse,
    /// It cannot be told.
    Inconclusive(Doubt),
}

/// Why a gate cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// There is one run a side.
    OneRun,
    /// A side has fewer than [`RUNS_MIN`] runs.
    TooFewRuns,
    /// The figure is unknown on a side.
    Unknown,
    /// It would be kept, but operations of a run are missing.
    Incomplete,
    /// A client was the limit of a run.
    ClientLimited,
    /// The limit lies inside the interval of the change.
    LimitInInterval,
    /// Some runs after keep the limit and some do not.
    RunsDisagree,
}

/// Returns what each gate says about each kind it is about.
pub fn judge(gates: &[Gate], comparison: &Comparison) -> Result<Vec<GateResult>, GateError> {
    let mut results = Vec::new();
    for gate in gates {
        let kinds: Vec<&KindComparison> = match gate.scope {
            Scope::Kind(kind) => comparison.of_kind(Some(kind)).collect(),
            Scope::Total => comparison.of_kind(None).collect(),
            Scope::EachKind => comparison.kinds.iter().filter(|of| of.kind.is_some()).collect(),
        };
        let meant = kinds.into_iter().filter(|kind| gate.fits(kind));
        let before = results.len();
        results.extend(meant.map(|kind| gate.judge(kind).unless_in_doubt(comparison)));
        if results.len() == before {
            return Err(GateError::NoKind { gate: gate.text.clone(), present: held(comparison) });
        }
    }
    Ok(results)
}

/// Returns the names of the kinds in the runs.
fn held(comparison: &Comparison) -> String {
    let mut names: Vec<&str> = Vec::new();
    for kind in comparison.kinds.iter().filter_map(|each| each.kind) {
        if !names.contains(&kind.name()) {
            names.push(kind.name());
        }
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Returns the exit code: 1 if a gate is broken, else 3 if one cannot be told, else 0.
pub fn exit_code(results: &[GateResult]) -> u8 {
    let any = |found: fn(&Outcome) -> bool| results.iter().any(|result| found(&result.outcome));
    if any(|outcome| matches!(outcome, Outcome::Worse)) {
        1
    } else if any(|outcome| matches!(outcome, Outcome::Inconclusive(_))) {
        3
    } else {
        0
    }
}

impl Gate {
    /// Tells whether the metric means something for a kind, in the unit of the limit.
    fn fits(&self, kind: &KindComparison) -> bool {
        let metric = self.metric.of_kind(kind.moves_bytes);
        let means_something = metric.unit() != Unit::BytesPerSec || kind.moves_bytes;
        let same_unit = metric.unit() == self.metric.unit();
        means_something && (same_unit || matches!(self.limit, Limit::ChangePercent(_)))
    }

    fn judge(&self, kind: &KindComparison) -> GateResult {
        let row = kind.row(self.metric.of_kind(kind.moves_bytes)).cloned();
        let outcome = match (&row, self.limit) {
            (None, _) => Outcome::Inconclusive(Doubt::Unknown),
            (Some(row), Limit::After(limit)) => after(row, limit),
            (Some(_), Limit::ChangePercent(_)) if kind.presence != Presence::Both => {
                Outcome::Inconclusive(Doubt::Unknown)
            }
            (Some(row), Limit::ChangePercent(percent)) => changed(row, percent),
        };
        let (gate, limit) = (self.text.clone(), self.limit);
        GateResult { gate, of: kind.of.clone(), kind: kind.kind, limit, row, outcome }
    }
}

impl GateResult {
    fn is_of_errors(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.metric == Metric::Errors)
    }

    /// Returns what is found where operations may be missing, so that nobody knows that the gate is
    /// kept, and where clients were the limit, so that nothing is known of the store.
    fn unless_in_doubt(self, comparison: &Comparison) -> Self {
        let doubt = match self.outcome {
            Outcome::Inconclusive(_) => return self,
            _ if !comparison.client_limits.is_empty() && !self.is_of_errors() => {
                Doubt::ClientLimited
            }
            Outcome::Pass if comparison.is_incomplete => Doubt::Incomplete,
            _ => return self,
        };
        Self { outcome: Outcome::Inconclusive(doubt), ..self }
    }
}

/// A limit on the figure itself is kept if every run after keeps it, and broken if none does.
fn after(row: &Row, limit: f64) -> Outcome {
    let keeps = |value: &&f64| match row.metric.direction() {
        Direction::HigherIsBetter => **value >= limit,
        Direction::LowerIsBetter => **value <= limit,
    };
    let runs = row.after.values.len();
    match row.after.values.iter().filter(keeps).count() {
        _ if runs == 0 => Outcome::Inconclusive(Doubt::Unknown),
        0 => Outcome::Worse,
        all if all == runs => Outcome::Pass,
        _ => Outcome::Inconclusive(Doubt::RunsDisagree),
    }
}

/// A limit on the change is kept if all of its 95 % interval keeps it, and broken if all breaks it.
fn changed(row: &Row, percent: f64) -> Outcome {
    let evidence = match &row.verdict {
        Verdict::Unknown => return Outcome::Inconclusive(Doubt::Unknown),
        Verdict::OneRun { .. } => return Outcome::Inconclusive(Doubt::OneRun),
        Verdict::TooFewRuns => return Outcome::Inconclusive(Doubt::TooFewRuns),
        Verdict::Same(evidence)
        | Verdict::Unclear(evidence)
        | Verdict::ClientLimited(evidence)
        | Verdict::Differs { evidence, .. } => evidence,
    };
    debug_assert!(row.before.values.len() >= RUNS_MIN);
    // In the metric's own unit, so that a limit on what was 0 before can be told too.
    let limit = percent / 100.0 * row.before.mean.unwrap_or_default();
    let Interval { low, high } = evidence.interval;
    let (keeps, breaks) = match row.metric.direction() {
        Direction::HigherIsBetter => (low >= limit, high < limit),
        Direction::LowerIsBetter => (high <= limit, low > limit),
    };
    match (keeps, breaks) {
        (true, _) => Outcome::Pass,
        (false, true) => Outcome::Worse,
        (false, false) => Outcome::Inconclusive(Doubt::LimitInInterval),
    }
}
