//! Workloads on objects of version 1 as ones of today's language.

use std::time::Duration;

use super::objects::{
    self as v1, ActivitySpec, GeneratorSpec, OpWeightSpec, SizeSpec as SizeV1, WorkloadSpec,
};
use crate::OpenLoop;
use crate::plan::spec::{
    AppendSpec, ArchiveKind, ArchiveSpec, Arrivals, Choice, ContentSpec, DeleteOp, ExistingOf,
    ExistingSet, FanoutSpec, FillSpec, GetOp, GetPart, GetZip, JobSpec, KeysSpec, LIST_PAGE,
    ListOp, Named, ObjectSet, OpSpec, OpenSpec, PacingSpec, PartsSpec, PickSpec, PostOp, PutAs,
    PutOp, PutParts, PutTar, RangeSpec, RateSpec, RetentionSpec, SetSpec, Share, Shares, SizeLaw,
    SizeSpec, StageSpec, StatOp, VersionPick, WorkSpec, WorkStage, WorkloadFile,
};
use crate::plan::{FieldPath, InvalidField, Profile, Rate, Size, SizeRange, Time, UntilSpec};

/// What the only set is called.
const SET: &str = "o";

type Converted<T> = Result<T, InvalidField>;

fn refuse<T>(field: &str, reason: String) -> Converted<T> {
    Err(FieldPath::root().field(field).refuse(reason))
}

impl TryFrom<&WorkloadSpec> for WorkloadFile {
    /// The field of version 1 whose text says nothing that could be converted, such as a rate that
    /// is none: what version 1 refuses too.
    type Error = InvalidField;

    fn try_from(spec: &WorkloadSpec) -> Converted<Self> {
        let measure = measure(spec)?;
        let mut sets = Named::default();
        sets.insert(SET, set(spec)?);
        let mut stages = Vec::new();
        if spec.objects.count > 0 && spec.objects.existing.is_none() {
            let fill =
                JobSpec::of(spec.concurrency, WorkSpec::Fill(FillSpec::of(vec![SET.into()])));
            let stage = WorkStage { prepares: true, ..WorkStage::of("prepare", vec![fill]) };
            stages.push(StageSpec::Jobs(stage));
        }
        stages.push(StageSpec::Jobs(measure));
        let file = Self::new(&spec.name, sets, stages);
        Ok(Self { seed: Some(spec.seed), verify: spec.verify, ..file })
    }
}

fn measure(spec: &WorkloadSpec) -> Converted<WorkStage> {
    let mut until = Vec::new();
    if let Some(steady) = &spec.measure.steady {
        let window = Duration::from_nanos(steady.window_ns);
        until.push(UntilSpec::Steady { window, percent: steady.percent });
    }
    for rule in &spec.measure.until {
        match rule.parse() {
            Ok(rule) => until.push(UntilSpec::Known(rule)),
            Err(reason) => return refuse("measure.until", reason),
        }
    }
    let job =
        JobSpec { pacing: pacing(&spec.pacing)?, ..JobSpec::of(spec.concurrency, work(spec)?) };
    let duration = Some(Time(Duration::from_nanos(spec.measure.duration_ns)));
    Ok(WorkStage { duration, until, ..WorkStage::of("measure", vec![job]) })
}

fn set(spec: &WorkloadSpec) -> Converted<SetSpec> {
    let objects = &spec.objects;
    let KeysSpec { buckets, .. } = KeysSpec::default();
    let v1::KeysSpec { prefix, per_worker } = spec.keys.clone();
    if let Some(existing) = &objects.existing {
        let v1::ExistingSpec { limit, recursive, destroys } = *existing;
        let existing = ExistingOf { limit, recursive, ..ExistingOf::below(prefix) };
        return Ok(SetSpec::Existing(ExistingSet { on: None, existing, touch: destroys }));
    }
    let mut set = ObjectSet::of(objects.count, Some(sizes(&objects.size)));
    match &spec.measure.activity {
        // Objects are counted in parts there, as there is one only.
        ActivitySpec::Multipart => {
            let part = part(spec)?;
            set.count = 1;
            set.part = Some(part);
            set.size = Some(SizeSpec::Fixed(Size(part.0.saturating_mul(objects.count))));
        }
        ActivitySpec::MultipartPut { .. } => set.size = None,
        ActivitySpec::Zip => set.archive = Some(ArchiveKind::Zip),
        _ => {}
    }
    set.versions = objects.versions;
    set.keys = KeysSpec { prefix, per_worker, buckets };
    set.content = match (&objects.generator, objects.compress_ratio, objects.dedupe_ratio) {
        (GeneratorSpec::Random, None, None) => ContentSpec::Random,
        (GeneratorSpec::Random, compress_ratio, dedupe_ratio) => {
            ContentSpec::Shaped { compress_ratio, dedupe_ratio }
        }
        (GeneratorSpec::Zero, ..) => ContentSpec::Zero,
        (GeneratorSpec::Text, ..) => ContentSpec::Text,
        (GeneratorSpec::Files(files), ..) => ContentSpec::Files(files.clone()),
    };
    Ok(SetSpec::Objects(set))
}

/// Returns how large a part is, which is what objects in parts are counted in.
fn part(spec: &WorkloadSpec) -> Converted<Size> {
    match (&spec.objects.size, spec.measure.part_bytes_min) {
        (SizeV1::FixedBytes(size), Some(least)) if *size < least => {
            let reason = format!("a part of {size} bytes is below the store's {least}");
            refuse("objects.size", reason)
        }
        (SizeV1::FixedBytes(size), _) => Ok(Size(*size)),
        _ => refuse("objects.size", "the parts of an object must be of one size".to_owned()),
    }
}

fn sizes(size: &SizeV1) -> SizeSpec {
    SizeSpec::Drawn(match size {
        SizeV1::FixedBytes(size) => return SizeSpec::Fixed(Size(*size)),
        SizeV1::LogUniform { min_bytes, max_bytes } => {
            SizeLaw::LogUniform(SizeRange { min: *min_bytes, max: *max_bytes })
        }
        SizeV1::Histogram(bars) => {
            let mut shares: Vec<Share<Size>> = bars
                .iter()
                .map(|bar| Share { value: Size(bar.up_to_bytes), weight: bar.weight })
                .collect();
            shares.sort_by_key(|share| share.value);
            SizeLaw::Histogram(Shares(shares))
        }
        SizeV1::Lognormal { median_bytes, sigma } => {
            SizeLaw::Lognormal { median: Size(*median_bytes), sigma: *sigma }
        }
        SizeV1::List(sizes) => SizeLaw::List(sizes.iter().map(|size| Size(*size)).collect()),
    })
}

fn pacing(pacing: &v1::PacingSpec) -> Converted<PacingSpec> {
    Ok(match pacing {
        v1::PacingSpec::Closed => PacingSpec::Closed,
        v1::PacingSpec::Capped { ops_per_sec } => PacingSpec::Capped(Rate(*ops_per_sec)),
        v1::PacingSpec::Open { rate, arrivals, max_in_flight } => {
            PacingSpec::Open(open(rate, arrivals, *max_in_flight)?)
        }
    })
}

/// Returns a schedule of version 1.
pub(super) fn open(rate: &str, arrivals: &str, max_in_flight: u32) -> Converted<OpenSpec> {
    match OpenLoop::parse(rate, arrivals, max_in_flight) {
        Ok(OpenLoop { profile, arrivals, .. }) => {
            let (rate, arrivals) = (RateSpec::Rate(Profile(profile)), Arrivals(arrivals));
            Ok(OpenSpec { rate, arrivals, max_in_flight })
        }
        Err((field, reason)) => refuse(&format!("pacing.open.{field}"), reason),
    }
}

fn choice(spec: &WorkloadSpec) -> Choice {
    match spec.measure.pick {
        v1::PickSpec::Uniform => Choice::Uniform,
        v1::PickSpec::Zipf { theta } => Choice::Zipf(theta),
        v1::PickSpec::Sequential => Choice::Sequential,
    }
}

fn work(spec: &WorkloadSpec) -> Converted<WorkSpec> {
    let set = || SET.to_owned();
    let pick = choice(spec);
    Ok(match &spec.measure.activity {
        ActivitySpec::Operations | ActivitySpec::Versioned => {
            let mut ops = Vec::new();
            for each in spec.measure.operations.iter().filter(|each| each.weight > 0) {
                ops.push(operation(spec, each)?);
            }
            WorkSpec::Objects(ops)
        }
        ActivitySpec::Retention { hold_ns } => {
            let hold = Time(Duration::from_nanos(*hold_ns));
            WorkSpec::Retention(RetentionSpec { of: set(), hold, pick })
        }
        ActivitySpec::Multipart => WorkSpec::Parts(PartsSpec::Get(GetPart { get: set(), pick })),
        ActivitySpec::MultipartPut { parts, part_concurrency } => {
            WorkSpec::Parts(PartsSpec::Put(PutParts {
                put: set(),
                parts: Some(*parts),
                part: part(spec)?,
                at_once: *part_concurrency,
                part_min: spec.measure.part_bytes_min.map(Size),
            }))
        }
        ActivitySpec::Append { parts } => {
            WorkSpec::Append(AppendSpec { to: set(), parts: *parts, size: None })
        }
        ActivitySpec::Zip => {
            WorkSpec::Archive(ArchiveSpec::GetFromZip(GetZip { get_from_zip: set(), pick }))
        }
        ActivitySpec::Snowball { members, compress } => {
            WorkSpec::Archive(ArchiveSpec::PutTar(PutTar {
                put_tar: set(),
                members: *members,
                compress: *compress,
            }))
        }
        ActivitySpec::Fanout { copies } => {
            WorkSpec::Fanout(FanoutSpec { put: set(), copies: *copies })
        }
    })
}

fn operation(spec: &WorkloadSpec, each: &OpWeightSpec) -> Converted<OpSpec> {
    let measure = &spec.measure;
    let weight = each.weight;
    let is_versioned = measure.activity == ActivitySpec::Versioned;
    // Beside others, version 1 deletes one at a time whatever is said.
    let is_alone = measure.operations.iter().filter(|each| each.weight > 0).count() == 1;
    let version = match is_versioned || spec.objects.versions > 1 {
        true => VersionPick::Uniform,
        false => VersionPick::Newest,
    };
    let pick = match choice(spec) {
        Choice::Uniform => None,
        choice => Some(PickSpec::Member(choice)),
    };
    let range = measure.range.as_ref().map(|range| match range {
        v1::RangeSpec::Random => RangeSpec::Random,
        // Version 1 reads the whole of an object that has less.
        v1::RangeSpec::FixedBytes(size) if spec.objects.existing.is_none() => {
            RangeSpec::Fixed(Size((*size).min(spec.objects.size.max())))
        }
        v1::RangeSpec::FixedBytes(size) => RangeSpec::Fixed(Size(*size)),
    });
    let put_as = match (is_versioned, measure.overwrite) {
        (true, _) => Some(PutAs::Version),
        (false, true) => Some(PutAs::Overwrite),
        (false, false) => None,
    };
    let (set, name, buckets, keys) = (SET.to_owned(), None, None, None);
    Ok(match &*each.op {
        "GET" => OpSpec::Get(GetOp { get: set, weight, pick, range, version, buckets, keys, name }),
        "STAT" => OpSpec::Stat(StatOp { stat: set, weight, pick, version, buckets, keys, name }),
        "PUT" if measure.post => {
            OpSpec::Post(PostOp { post: set, weight, put_as, size: None, name })
        }
        "PUT" => OpSpec::Put(PutOp {
            put: set,
            weight,
            pick: None,
            put_as,
            size: None,
            remove_after: None,
            part: None,
            buckets,
            keys,
            name,
        }),
        "DELETE" => OpSpec::Delete(DeleteOp {
            delete: set,
            weight,
            pick: None,
            batch: measure.delete_batch.filter(|_| is_alone).unwrap_or(1),
            version: if is_versioned { version } else { VersionPick::Newest },
            buckets,
            keys,
            name,
        }),
        "LIST" => OpSpec::List(ListOp {
            list: set,
            weight,
            page: measure.list_page_size.unwrap_or(LIST_PAGE),
            versions: spec.objects.versions > 1,
            buckets,
            name,
            ..ListOp::default()
        }),
        other => return refuse("measure.operations", format!("`{other}` is not an operation")),
    })
}
