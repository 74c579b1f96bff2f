//! The figures of a set of operations, as values for reports and comparisons.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{ByteRate, ErrorClass, Moment, OpRate};
use serde::{Serialize, Serializer};

use crate::serial;
use crate::times::Times;

/// An operation that was issued later than this after its intended start is late.
pub const LATE_AFTER: Duration = Duration::from_millis(1);

/// How many operations failed, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures([u64; ErrorClass::ALL.len()]);

impl Failures {
    pub(crate) fn add(&mut self, class: ErrorClass) {
        debug_assert!(!class.is_ok());
        self.0[class as usize] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }

    /// Returns how many failed in all.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns how many failed with `class`.
    pub fn of(&self, class: ErrorClass) -> u64 {
        self.0[class as usize]
    }

    /// Returns the classes that occurred with their counts, in the order of [`ErrorClass::ALL`].
    pub fn classes(&self) -> impl Iterator<Item = (ErrorClass, u64)> + '_ {
        let all = ErrorClass::ALL.into_iter().map(|class| (class, self.of(class)));
        all.filter(|(_, count)| *count > 0)
    }
}

impl FromIterator<(ErrorClass, u64)> for Failures {
    fn from_iter<I: IntoIterator<Item = (ErrorClass, u64)>>(classes: I) -> Self {
        let mut failures = Self::default();
        classes.into_iter().for_each(|(class, count)| failures.0[class as usize] += count);
        failures
    }
}

/// How failures are written.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FailuresForm {
    /// How many failed.
    ops_failed_count: u64,
    /// The same by class; classes that did not occur are absent.
    failed_by_class: BTreeMap<&'static str, u64>,
}

impl Serialize for Failures {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let failed_by_class = self.classes().map(|(class, count)| (class.name(), count)).collect();
        FailuresForm { ops_failed_count: self.count(), failed_by_class }.serialize(to)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Failures {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Failures".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        FailuresForm::json_schema(generator)
    }
}

/// Operations as counted within the measured span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpanCounts {
    /// Started from the span's start on and before its end.
    #[serde(rename = "ops_started_count")]
    pub started: u64,
    /// Ended well after the span's start and not after its end.
    #[serde(rename = "ops_ok_count")]
    pub ok: u64,
    /// Failed after the span's start and not after its end.
    #[serde(flatten)]
    pub failed: Failures,
}

/// Operations of the whole stage but for those in ramps, nothing else trimmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageTotals {
    /// How many did what was asked.
    #[serde(rename = "ops_ok_count")]
    pub ops_ok: u64,
    /// How many failed.
    #[serde(flatten)]
    pub failed: Failures,
    /// Bytes moved by the successes.
    pub bytes: u64,
    /// Objects handled by the successes.
    #[serde(rename = "objects_count")]
    pub objects: u64,
    /// The longest latency of a success.
    #[serde(rename = "latency_ns_max", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub latency_max: Option<Duration>,
    /// The shortest service time of a success: those before all workers were at it, which waited
    /// for nobody, count here.
    #[serde(skip)]
    pub service_min: Option<Duration>,
    /// How many, failed ones included, were issued more than 1 ms after their intended start.
    #[serde(rename = "ops_late_count")]
    pub late: u64,
}

impl StageTotals {
    /// Returns how many operations ended.
    pub fn ended(&self) -> u64 {
        self.ops_ok + self.failed.count()
    }

    /// Returns which share of them failed.
    pub fn failed_share(&self) -> FailedShare {
        FailedShare { failed: self.failed.count(), ended: self.ended() }
    }
}

/// Operations that failed and all that ended, both over the same operations: those that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailedShare {
    /// How many failed.
    pub failed: u64,
    /// How many ended, failed ones included.
    pub ended: u64,
}

impl FailedShare {
    /// Returns the share, 0 to 1; `None` where none ended.
    pub fn rate(self) -> Option<f64> {
        (self.ended > 0).then(|| self.failed as f64 / self.ended as f64)
    }

    /// Returns the share without a part of its operations.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self { failed: self.failed - part.failed, ended: self.ended - part.ended }
    }
}

impl std::iter::Sum for FailedShare {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, each| Self {
            failed: sum.failed + each.failed,
            ended: sum.ended + each.ended,
        })
    }
}

/// What successes got done per second; an operation across a border counts with its share by time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// Operations.
    #[serde(rename = "ops_per_sec", serialize_with = "serial::op_rate")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub ops: OpRate,
    /// Objects handled.
    #[serde(rename = "objects_per_sec", serialize_with = "serial::op_rate")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub objects: OpRate,
    /// Bytes moved.
    #[serde(rename = "bytes_per_sec", serialize_with = "serial::byte_rate")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub bytes: ByteRate,
}

/// The rates of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentRate {
    /// Where the segment begins, since the run's epoch.
    #[serde(rename = "started_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start: Moment,
    /// Its rates.
    #[serde(flatten)]
    pub rates: Rates,
}

/// Three of the segments in the order of their rate: of bytes where bytes are moved, otherwise of
/// objects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentRates {
    /// The one with the highest rate.
    pub fastest: SegmentRate,
    /// The lower median.
    pub median: SegmentRate,
    /// The one with the lowest rate, 0 when nothing was done in it.
    pub slowest: SegmentRate,
}

/// How far a row was at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Done {
    /// From the stage's start to that moment.
    #[serde(rename = "after_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub after: Duration,
    /// Operations that had ended by then.
    #[serde(rename = "ops_ok_count")]
    pub ops: u64,
    /// Bytes that they had moved.
    pub bytes: u64,
    /// Operations by then, over the time from the beginning of the row's measuring to then.
    pub ops_per_sec: Option<f64>,
    /// Bytes over the same; null also for kinds that move none.
    pub bytes_per_sec: Option<f64>,
}

/// All figures of a set of operations: of one kind, of one endpoint, or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Whether bytes per second mean something here, because a kind among them moves object
    /// content.
    #[serde(skip)]
    pub moves_bytes: bool,
    /// Counts within the span.
    #[serde(rename = "span_counts")]
    pub counts: SpanCounts,
    /// Counts of the whole stage, without those in ramps.
    #[serde(rename = "stage_total")]
    pub stage: StageTotals,
    /// Averages over the span, of whole and right answers only (goodput): 0 when all failed; null
    /// when it has no length.
    pub rates: Option<Rates>,
    /// The fastest, median and slowest segment; null when the span holds no whole one.
    pub segments: Option<SegmentRates>,
    /// Intended start to end, of the successes that lie wholly inside the span.
    #[serde(rename = "latency_ns")]
    pub latency: Times,
    /// Start to end, of the same; null where that is the latency, as every operation started when
    /// it was intended to.
    #[serde(rename = "service_time_ns")]
    pub service_time: Option<Times>,
    /// Intended start to start, of the same; null but in an open loop.
    #[serde(rename = "schedule_delay_ns")]
    pub schedule_delay: Option<Times>,
    /// Time to first byte, of those of the same that have one.
    #[serde(rename = "ttfb_ns")]
    pub ttfb: Times,
    /// The parts of those of the same that have them; null where none has.
    #[serde(rename = "parts_ns")]
    pub parts: Option<Parts>,
    /// How far it was when the first of the row's workers had ended its last operation; null
    /// without such a worker.
    pub first_done: Option<Done>,
    /// How far it was when the last of them had: all of it, but for what ended in a ramp-down.
    pub last_done: Option<Done>,
}

/// The two parts of writes for which a target is first asked where their content goes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parts {
    /// Start until the target had told where the content goes; further attempts are in it.
    pub assign: Times,
    /// From then to the end.
    pub upload: Times,
}

impl Figures {
    /// Returns the times from start to end.
    pub fn service(&self) -> &Times {
        self.service_time.as_ref().unwrap_or(&self.latency)
    }
}
