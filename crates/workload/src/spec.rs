//! The workload as written: YAML or what a command line was lowered to, versioned, and its
//! validation.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{ObjectId, OpKind, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Activity, ArrivalLaw, ExistingObject, InvalidWorkload, KeyLayout, Metric, Mix, OpenLoop,
    Pacing, Population, Precision, RangeRule, RateProfile, SizeBar, SizeDist, StopRule, Verify,
    Workload,
};

/// The schema's name and version.
pub const SPEC_SCHEMA: &str = "plimsoll.workload/1";

/// The most objects one delete call takes (S3's limit).
const BATCH_MAX: u32 = 1_000;
/// The most entries one page of a listing has (warp's bound; S3 itself gives at most 1,000).
const PAGE_SIZE_MAX: u32 = 5_000;
/// The largest object one PUT can write (S3's limit).
const PUT_BYTES_MAX: u64 = 5 << 30;
/// The most operations an open loop may have under way; each needs a session of its own.
const MAX_IN_FLIGHT_MAX: u32 = 100_000;
/// So many operations an open loop may have under way where nothing else is said.
pub const MAX_IN_FLIGHT_DEFAULT: u32 = 1_024;
/// A delete run needs this many batches per worker to be worth measuring (warp's bound).
const BATCHES_PER_WORKER_MIN: u64 = 4;

/// A workload as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// `plimsoll.workload/1`.
    pub schema: String,
    /// What the run is called, such as `s3-get`.
    pub name: String,
    /// Fixes every choice of the run.
    pub seed: u64,
    /// Workers, each with one operation under way at a time. In an open loop they do that while
    /// preparing; the measured stage has as many streams of operations, whose arrivals and objects
    /// are their own and of which each may have several operations under way.
    pub concurrency: u32,
    /// Where the run's own objects lie.
    pub keys: KeysSpec,
    /// What there is when the measured stage begins.
    pub objects: ObjectsSpec,
    /// What the measured stage does.
    pub measure: MeasureSpec,
    /// When operations start.
    pub pacing: PacingSpec,
    /// Whether every byte that is read is checked.
    pub verify: bool,
}

/// Where the run's own objects lie: `<prefix>/plimsoll/<run>/...`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeysSpec {
    /// What comes before `plimsoll/<run>/`; may be empty.
    pub prefix: String,
    /// Whether each worker has a prefix of its own.
    pub per_worker: bool,
}

/// What there is when the measured stage begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectsSpec {
    /// How many objects the prepare stage uploads.
    pub count: u64,
    /// How large they, and objects written later, are.
    pub size: SizeSpec,
    /// Instead of uploading, take what is already there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<ExistingSpec>,
}

/// Objects that were there before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExistingSpec {
    /// At most this many; all when absent.
    pub limit: Option<u64>,
    /// Whether to look below `/` too.
    pub recursive: bool,
}

/// How large objects are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum SizeSpec {
    /// All of one size.
    FixedBytes(u64),
    /// Every doubling between both ends is equally likely.
    LogUniform {
        /// The smallest size.
        min_bytes: u64,
        /// The largest size.
        max_bytes: u64,
    },
    /// A bar by weight, then evenly within the bar.
    Histogram(Vec<SizeBarSpec>),
}

/// One bar: sizes above the previous bar's up to this one's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeBarSpec {
    /// The largest size in the bar.
    pub up_to_bytes: u64,
    /// How often the bar is taken, relative to the others.
    pub weight: u64,
}

/// What the measured stage does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureSpec {
    /// The operations; several kinds only of put, get, delete and stat.
    pub operations: Vec<OpWeightSpec>,
    /// Which part of an object a get reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeSpec>,
    /// Whether a put writes the next version of an object of the worker's own instead of a new
    /// object. Where none is free of operations under way a new one is written after all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overwrite: bool,
    /// Objects per delete call, when delete is the only operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_batch: Option<u32>,
    /// Entries per page of a listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_page_size: Option<u32>,
    /// How long it lasts at most.
    pub duration_ns: u64,
    /// Ends it before that when the throughput is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadySpec>,
    /// Ends it before that when all of these rules hold, such as `ci(p99)<=5%`: the half width of
    /// the figure's 95 % confidence interval is at most 5 % of it. The figures are `rate`,
    /// `throughput`, and of the latency `mean`, `p50`, `p90`, `p99` and `p99.9`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<String>,
}

/// When the throughput counts as steady: of the range so far, cut into 25 equal parts, the last 7
/// are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadySpec {
    /// The last 7 parts together must be longer than this.
    pub window_ns: u64,
    /// By how much of the last part, in percent, the six before it may differ from it.
    pub percent: f64,
}

/// One kind of operation with its weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpWeightSpec {
    /// `PUT`, `GET`, `DELETE`, `LIST` or `STAT`.
    pub op: String,
    /// How often, relative to the others.
    pub weight: u32,
}

/// Which part of an object a get reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum RangeSpec {
    /// A log-uniform length at a random offset.
    Random,
    /// A fixed length at a random offset.
    FixedBytes(u64),
}

/// When operations start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum PacingSpec {
    /// The next one when the one before has ended.
    Closed,
    /// As closed, with a cap over all workers.
    Capped {
        /// The cap.
        ops_per_sec: f64,
    },
    /// On a schedule, whatever the store does.
    Open {
        /// Operations a second over all workers: `1000/s`, a ramp `100/s..5000/s over 2m`, or steps
        /// `100/s for 30s, 200/s for 30s, 400/s`. After the end of it its last rate holds.
        rate: String,
        /// How the arrivals lie about that rate: evenly (`constant`) or as a Poisson process
        /// (`poisson`).
        #[serde(default = "constant_arrivals")]
        arrivals: String,
        /// How many operations may be under way at once, over all workers.
        #[serde(default = "max_in_flight_default")]
        max_in_flight: u32,
    },
}

fn is_false(value: &bool) -> bool {
    !value
}

fn constant_arrivals() -> String {
    ArrivalLaw::Constant.to_string()
}

fn max_in_flight_default() -> u32 {
    MAX_IN_FLIGHT_DEFAULT
}

impl SizeSpec {
    fn lower(&self) -> SizeDist {
        match self {
            Self::FixedBytes(size) => SizeDist::Fixed(*size),
            Self::LogUniform { min_bytes, max_bytes } => {
                SizeDist::LogUniform { min: *min_bytes, max: *max_bytes }
            }
            Self::Histogram(bars) => {
                let mut bars: Vec<SizeBar> = bars
                    .iter()
                    .map(|bar| SizeBar { up_to: bar.up_to_bytes, weight: bar.weight })
                    .collect();
                bars.sort_by_key(|bar| bar.up_to);
                SizeDist::Histogram(bars)
            }
        }
    }
}

impl From<&SizeDist> for SizeSpec {
    fn from(dist: &SizeDist) -> Self {
        match dist {
            SizeDist::Fixed(size) => Self::FixedBytes(*size),
            SizeDist::LogUniform { min, max } => {
                Self::LogUniform { min_bytes: *min, max_bytes: *max }
            }
            SizeDist::Histogram(bars) => {
                let bar =
                    |bar: &SizeBar| SizeBarSpec { up_to_bytes: bar.up_to, weight: bar.weight };
                Self::Histogram(bars.iter().map(bar).collect())
            }
        }
    }
}

fn invalid<T>(field: &'static str, reason: impl Into<String>) -> Result<T, InvalidWorkload> {
    Err(InvalidWorkload { field: field.into(), reason: reason.into() })
}

impl MeasureSpec {
    fn lower_stop_rules(&self, moves_bytes: bool) -> Result<Vec<StopRule>, InvalidWorkload> {
        let mut rules = Vec::new();
        if let Some(steady) = &self.steady {
            if steady.window_ns == 0 {
                return invalid("measure.steady.window_ns", "must be above 0");
            }
            if !(steady.percent > 0.0 && steady.percent.is_finite()) {
                return invalid("measure.steady.percent", "must be above 0");
            }
            let window = Duration::from_nanos(steady.window_ns);
            rules.push(StopRule::Steady { window, percent: steady.percent });
        }
        let mut precisions = Vec::new();
        for text in &self.until {
            let rule: Precision = match text.parse() {
                Ok(rule) => rule,
                Err(reason) => return invalid("measure.until", reason),
            };
            if rule.metric == Metric::Throughput && !moves_bytes {
                let reason = format!("`{text}`: no content is moved; ask for ci(rate)");
                return invalid("measure.until", reason);
            }
            precisions.push(rule);
        }
        if !precisions.is_empty() {
            rules.push(StopRule::Until(precisions));
        }
        Ok(rules)
    }
}

impl WorkloadSpec {
    /// Returns the spec as YAML.
    pub fn to_yaml(&self) -> String {
        serde_saphyr::to_string(self).expect("a spec holds nothing that YAML cannot")
    }

    /// Reads a spec from YAML; the error says where and what.
    pub fn from_yaml(text: &str) -> Result<Self, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns the workload if the spec is sound. `existing` is what a survey found where the spec
    /// asks for one; pass an empty list to check everything else beforehand.
    pub fn validate(
        &self,
        run: &str,
        existing: Option<Vec<ExistingObject>>,
    ) -> Result<Workload, InvalidWorkload> {
        if self.schema != SPEC_SCHEMA {
            return invalid("schema", format!("`{}` is not {SPEC_SCHEMA}", self.schema));
        }
        let Some(concurrency) = NonZeroU32::new(self.concurrency) else {
            return invalid("concurrency", "must be at least 1");
        };
        if self.concurrency > ObjectId::OWNER_MAX {
            return invalid("concurrency", format!("must be at most {}", ObjectId::OWNER_MAX));
        }
        self.check_sizes()?;
        let activity = self.lower_activity()?;
        self.check_count(&activity)?;
        let stop_rules = self.measure.lower_stop_rules(activity.moves_bytes())?;
        if self.measure.duration_ns == 0 {
            return invalid("measure.duration_ns", "must be above 0");
        }
        let verify = match (self.verify, &self.objects.existing) {
            (false, _) => Verify::Off,
            (true, Some(_)) => Verify::LengthOnly,
            (true, None) => Verify::EveryByte,
        };
        let population = match existing {
            Some(objects) => Population::Existing(Arc::from(objects)),
            None => Population::Uploaded(self.objects.count),
        };
        Ok(Workload {
            name: self.name.clone(),
            seed: Seed(self.seed),
            concurrency,
            layout: KeyLayout::for_run(&self.keys.prefix, run, self.keys.per_worker),
            sizes: self.objects.size.lower(),
            population,
            activity,
            pacing: self.lower_pacing()?,
            duration: Duration::from_nanos(self.measure.duration_ns),
            stop_rules,
            verify,
        })
    }

    fn check_sizes(&self) -> Result<(), InvalidWorkload> {
        let sizes = match &self.objects.size {
            SizeSpec::FixedBytes(size) => vec![*size],
            SizeSpec::LogUniform { min_bytes, max_bytes } => {
                if min_bytes > max_bytes {
                    return invalid("objects.size", "the minimum is above the maximum");
                }
                vec![*min_bytes, *max_bytes]
            }
            SizeSpec::Histogram(bars) => {
                if bars.is_empty() || bars.iter().any(|bar| bar.weight == 0) {
                    return invalid("objects.size", "needs bars, each with a weight above 0");
                }
                bars.iter().map(|bar| bar.up_to_bytes).collect()
            }
        };
        if sizes.contains(&0) {
            return invalid("objects.size", "must be at least 1 byte");
        }
        if sizes.iter().any(|size| *size > PUT_BYTES_MAX) {
            return invalid("objects.size", "one PUT writes at most 5GiB");
        }
        Ok(())
    }

    fn lower_activity(&self) -> Result<Activity, InvalidWorkload> {
        let measure = &self.measure;
        let mut weights = Vec::new();
        for each in &measure.operations {
            let known = OpKind::from_name(&each.op).filter(|kind| Mix::KINDS.contains(kind));
            let Some(kind) = known else {
                return invalid("measure.operations", format!("`{}` is no operation", each.op));
            };
            weights.push((kind, each.weight));
        }
        let Some(mix) = Mix::new(weights) else {
            return invalid(
                "measure.operations",
                "needs one kind with a weight above 0, each once",
            );
        };
        let only = (mix.weights().len() == 1).then(|| mix.weights()[0].0);
        if measure.overwrite && (mix.weight(OpKind::Put) == 0 || mix.weight(OpKind::Delete) > 0) {
            // Overwriting adds no object, so a mix with DELETE would run out of them.
            return invalid("measure.overwrite", "needs PUT among the operations, and no DELETE");
        }
        match (only, measure.delete_batch) {
            (Some(OpKind::List), _) => {
                let page_size = measure.list_page_size.unwrap_or(1_000);
                if !(1..=PAGE_SIZE_MAX).contains(&page_size) {
                    let reason = format!("must be 1 to {PAGE_SIZE_MAX}");
                    return invalid("measure.list_page_size", reason);
                }
                Ok(Activity::List { page_size })
            }
            (Some(OpKind::Delete), batch) => {
                let batch = batch.unwrap_or(1);
                if !(1..=BATCH_MAX).contains(&batch) {
                    return invalid("measure.delete_batch", format!("must be 1 to {BATCH_MAX}"));
                }
                Ok(Activity::Delete { batch })
            }
            _ => self.lower_mix(mix),
        }
    }

    fn lower_mix(&self, mix: Mix) -> Result<Activity, InvalidWorkload> {
        if mix.weight(OpKind::List) > 0 {
            return invalid("measure.operations", "LIST cannot be mixed with others");
        }
        if mix.weight(OpKind::Delete) > mix.weight(OpKind::Put) {
            let reason = "the weight of DELETE must not be above the weight of PUT, \
                          or the objects would run out";
            return invalid("measure.operations.delete", reason);
        }
        let writes = mix.weight(OpKind::Put) > 0 || mix.weight(OpKind::Delete) > 0;
        if writes && self.objects.existing.is_some() {
            return invalid(
                "objects.existing",
                "PUT and DELETE cannot be mixed on existing objects",
            );
        }
        let range = match self.measure.range {
            None => RangeRule::Whole,
            Some(RangeSpec::Random) => RangeRule::Random,
            Some(RangeSpec::FixedBytes(0)) => {
                return invalid("measure.range", "must be at least 1 byte");
            }
            Some(RangeSpec::FixedBytes(len)) => RangeRule::Fixed(len),
        };
        Ok(Activity::Mix { mix, range, overwrite: self.measure.overwrite })
    }

    fn check_count(&self, activity: &Activity) -> Result<(), InvalidWorkload> {
        if self.objects.existing.is_some() {
            return Ok(());
        }
        let (count, workers) = (self.objects.count, u64::from(self.concurrency));
        let needs_objects = match activity {
            Activity::Mix { mix, overwrite, .. } => {
                *overwrite || mix.weights().iter().any(|(kind, _)| *kind != OpKind::Put)
            }
            Activity::List { .. } | Activity::Delete { .. } => true,
        };
        if needs_objects && count < workers {
            let reason =
                format!("{count} objects are too few for {workers} workers; each needs one");
            return invalid("objects.count", reason);
        }
        if let Activity::Delete { batch } = activity {
            let least = u64::from(*batch) * workers * BATCHES_PER_WORKER_MIN;
            if count < least {
                let reason = format!(
                    "{count} objects are too few: {workers} workers deleting {batch} at a time need \
                     {least}, four batches each"
                );
                return invalid("objects.count", reason);
            }
        }
        Ok(())
    }

    fn lower_pacing(&self) -> Result<Pacing, InvalidWorkload> {
        match &self.pacing {
            PacingSpec::Closed => Ok(Pacing::Closed),
            &PacingSpec::Capped { ops_per_sec } if ops_per_sec > 0.0 && ops_per_sec.is_finite() => {
                Ok(Pacing::Capped { ops_per_sec })
            }
            PacingSpec::Capped { .. } => invalid("pacing.capped", "the rate must be above 0"),
            PacingSpec::Open { rate, arrivals, max_in_flight } => {
                lower_open(rate, arrivals, *max_in_flight).map(Pacing::Open)
            }
        }
    }
}

pub(crate) fn lower_open(
    rate: &str,
    arrivals: &str,
    max_in_flight: u32,
) -> Result<OpenLoop, InvalidWorkload> {
    let refused =
        |field: &'static str| move |reason| InvalidWorkload { field: field.into(), reason };
    let profile: RateProfile = rate.parse().map_err(refused("pacing.open.rate"))?;
    let arrivals: ArrivalLaw = arrivals.parse().map_err(refused("pacing.open.arrivals"))?;
    let in_bounds = NonZeroU32::new(max_in_flight).filter(|max| max.get() <= MAX_IN_FLIGHT_MAX);
    let Some(max_in_flight) = in_bounds else {
        return invalid("pacing.open.max_in_flight", format!("must be 1 to {MAX_IN_FLIGHT_MAX}"));
    };
    Ok(OpenLoop { profile, arrivals, max_in_flight })
}

#[cfg(test)]
#[path = "spec_tests.rs"]
pub(crate) mod tests;
