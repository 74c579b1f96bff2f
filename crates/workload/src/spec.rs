//! The workload as written: YAML or what a command line was lowered to, versioned, and its
//! validation.

mod activity;
mod objects;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{OpKind, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Activity, ArrivalLaw, ExistingObject, InvalidWorkload, KeyLayout, Metric, Mix, OpenLoop,
    Pacing, Population, Precision, RangeRule, RateProfile, StopRule, Verify, Workload,
};
pub(crate) use activity::PARTS_MAX;
pub use activity::{ActivitySpec, PickSpec};
pub use objects::{DataFileSpec, ExistingSpec, GeneratorSpec, ObjectsSpec, SizeBarSpec, SizeSpec};

/// The schema's name and version.
pub const SPEC_SCHEMA: &str = "plimsoll.workload/1";

/// The most objects one delete call takes (S3's limit).
const BATCH_MAX: u32 = 1_000;
/// The most entries one page of a listing has (warp's bound; S3 itself gives at most 1,000).
const PAGE_SIZE_MAX: u32 = 5_000;
/// The most operations a closed loop may have under way; each needs a session of its own.
const CONCURRENCY_MAX: u32 = 100_000;
/// The most versions of objects that are kept track of one by one.
const TRACKED_MAX: u64 = 100_000_000;
/// The most operations an open loop may have under way; each needs a session of its own.
pub(crate) const MAX_IN_FLIGHT_MAX: u32 = 100_000;
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

/// What the measured stage does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureSpec {
    /// What kind of load it is.
    #[serde(default, skip_serializing_if = "ActivitySpec::is_operations")]
    pub activity: ActivitySpec,
    /// The operations; several kinds only of put, get, delete and stat. Only where the activity is
    /// `operations` or `versioned`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OpWeightSpec>,
    /// Which object a GET, STAT or RETENTION is about.
    #[serde(default, skip_serializing_if = "PickSpec::is_uniform")]
    pub pick: PickSpec,
    /// Whether a put is an HTML form (POST).
    #[serde(default, skip_serializing_if = "is_false")]
    pub post: bool,
    /// Refuses parts that are smaller, as the store would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_bytes_min: Option<u64>,
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

    /// Says what of the spec makes no sense, if anything does.
    pub fn check(&self) -> Result<(), InvalidWorkload> {
        self.validate("check", None).map(|_| ())
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
        if self.concurrency > CONCURRENCY_MAX {
            return invalid("concurrency", format!("must be at most {CONCURRENCY_MAX}"));
        }
        self.objects.check()?;
        if self.keys.prefix.split('/').any(|part| matches!(part, "." | "..")) {
            // Who takes a path apart on the way would look for another bucket.
            return invalid("keys.prefix", "must have no part that is `.` or `..`");
        }
        let special = self.lower_special()?;
        let activity = special.map_or_else(|| self.lower_activity(), Ok)?;
        self.check_count(&activity)?;
        self.check_tracked(&activity)?;
        let pick = self.lower_pick(&activity)?;
        let layout = KeyLayout::for_run(&self.keys.prefix, run, self.keys.per_worker);
        Self::check_names(&layout.base, &activity)?;
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
            layout,
            sizes: self.objects.size.lower(),
            data: self.objects.lower_data()?,
            population,
            versions: self.objects.versions,
            activity,
            pick,
            pacing: self.lower_pacing()?,
            duration: Duration::from_nanos(self.measure.duration_ns),
            stop_rules,
            verify,
        })
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
        let versioned = measure.activity == ActivitySpec::Versioned;
        self.check_versions(&mix, versioned)?;
        if measure.post && mix.weight(OpKind::Put) == 0 {
            return invalid("measure.post", "needs PUT among the operations");
        }
        if measure.part_bytes_min.is_some() {
            return invalid("measure.part_bytes_min", "needs an activity with parts");
        }
        let only = (mix.weights().len() == 1).then(|| mix.weights()[0].0);
        if measure.overwrite && (mix.weight(OpKind::Put) == 0 || mix.weight(OpKind::Delete) > 0) {
            // Overwriting adds no object, so a mix with DELETE would run out of them.
            return invalid("measure.overwrite", "needs PUT among the operations, and no DELETE");
        }
        match (only, measure.delete_batch) {
            (Some(OpKind::List | OpKind::Delete), _) if versioned => invalid(
                "measure.operations",
                "versioned is for GET, STAT and PUT, with DELETE or not",
            ),
            (Some(OpKind::List), _) => {
                let page_size = measure.list_page_size.unwrap_or(1_000);
                if !(1..=PAGE_SIZE_MAX).contains(&page_size) {
                    let reason = format!("must be 1 to {PAGE_SIZE_MAX}");
                    return invalid("measure.list_page_size", reason);
                }
                Ok(Activity::List { page_size })
            }
            (Some(OpKind::Delete), batch) => {
                if self.objects.existing.as_ref().is_some_and(|existing| !existing.destroys) {
                    let reason = "removing objects that exist destroys them and has to be allowed";
                    return invalid("objects.existing.destroys", reason);
                }
                let batch = batch.unwrap_or(1);
                if !(1..=BATCH_MAX).contains(&batch) {
                    return invalid("measure.delete_batch", format!("must be 1 to {BATCH_MAX}"));
                }
                Ok(Activity::Delete { batch })
            }
            _ => self.lower_mix(mix),
        }
    }

    /// Refuses versions where operations know none.
    fn check_versions(&self, mix: &Mix, versioned: bool) -> Result<(), InvalidWorkload> {
        let changes = mix.weight(OpKind::Put) > 0 || mix.weight(OpKind::Delete) > 0;
        if self.objects.versions > 1 && changes && !versioned {
            let reason = "more than 1 are for GET, STAT and LIST; PUT and DELETE beside them need \
                          measure.activity versioned";
            return invalid("objects.versions", reason);
        }
        let versions = versioned || self.objects.versions > 1;
        if versions && self.objects.existing.is_some() {
            let reason = "the versions of existing objects are not known";
            return invalid("objects.existing", reason);
        }
        if versioned && (self.measure.overwrite || self.measure.post) {
            let field = if self.measure.post { "measure.post" } else { "measure.overwrite" };
            return invalid(field, "says nothing where every PUT writes a version; leave it out");
        }
        Ok(())
    }

    fn lower_mix(&self, mix: Mix) -> Result<Activity, InvalidWorkload> {
        if mix.weight(OpKind::List) > 0 {
            return invalid("measure.operations", "LIST cannot be mixed with others");
        }
        let versioned = self.measure.activity == ActivitySpec::Versioned;
        if !versioned && mix.weight(OpKind::Delete) > mix.weight(OpKind::Put) {
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
        let MeasureSpec { overwrite, post, .. } = self.measure;
        let versioned = self.measure.activity == ActivitySpec::Versioned;
        Ok(Activity::Mix { mix, range, overwrite, post, versioned })
    }

    fn check_count(&self, activity: &Activity) -> Result<(), InvalidWorkload> {
        if self.objects.existing.is_some() {
            return Ok(());
        }
        let (count, workers) = (self.objects.count, u64::from(self.concurrency));
        let needs_objects = match activity {
            Activity::Mix { mix, overwrite, versioned, .. } => {
                let only_put = mix.weights().iter().all(|(kind, _)| *kind == OpKind::Put);
                *overwrite || *versioned || !only_put
            }
            Activity::List { .. } | Activity::Delete { .. } => true,
            _ => false,
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

    /// Refuses more than memory holds where each object, or each part under way, is kept track of.
    fn check_tracked(&self, activity: &Activity) -> Result<(), InvalidWorkload> {
        if let Activity::MultipartPut { part_concurrency, .. } = activity {
            let lanes = u64::from(self.concurrency) * u64::from(part_concurrency.get());
            if lanes > u64::from(CONCURRENCY_MAX) {
                let reason = format!(
                    "{} workers with {part_concurrency} parts each at a time are {lanes} at once; at \
                     most {CONCURRENCY_MAX}",
                    self.concurrency
                );
                return invalid("concurrency", reason);
            }
        }
        let Activity::Mix { mix, overwrite, versioned, .. } = activity else { return Ok(()) };
        let is_tracked = *overwrite || *versioned || mix.changes_population();
        let count = self.objects.count.saturating_mul(u64::from(self.objects.versions));
        if is_tracked && count > TRACKED_MAX {
            let reason = format!(
                "{count} are too many to keep track of one by one, as this workload does; at most \
                 {TRACKED_MAX}"
            );
            return invalid("objects.count", reason);
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
