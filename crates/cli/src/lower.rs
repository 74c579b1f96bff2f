//! What a command line means: flags to the workload as written, refusals in the words of the flags.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::{ConductError, input};
use plimsoll_driver::DriverError;
use plimsoll_driver_s3::PART_SIZE_MIN;
use plimsoll_engine::stop_time_min;
use plimsoll_model::{Bytes, ErrorClass, StageKind};
use plimsoll_workload::plan::{Plan, Stage, WorkloadFile};
use plimsoll_workload::{
    ActivitySpec, ArrivalLaw, DataFileSpec, ExistingSpec, GeneratorSpec, InvalidWorkload, KeysSpec,
    MAX_IN_FLIGHT_DEFAULT, MeasureSpec, ObjectsSpec, OpWeightSpec, PacingSpec, PickSpec, RangeSpec,
    SPEC_SCHEMA, SizeDist, SizeSpec, SteadySpec, StopRule, WorkloadSpec,
};

use crate::args::requests::DataArgs;
use crate::args::s3::{CommonArgs, ExistingArgs, LoadArgs, MixedArgs, S3Command};

/// What a file or a directory begins with on the command line.
const FILE_SCHEME: &str = "file:";

const DURATION_DEFAULT: std::time::Duration = std::time::Duration::from_secs(300);
const DURATION_EMBEDDED: std::time::Duration = std::time::Duration::from_secs(10);

/// warp's defaults of `--autoterm.dur` and `--autoterm.pct`.
const STEADY_WINDOW: std::time::Duration = std::time::Duration::from_secs(15);
const STEADY_PERCENT: f64 = 7.5;

/// Objects of `versioned` where nothing else is said.
const VERSIONED_OBJECTS: u64 = 250;
/// The size of a part where nothing else is said.
const PART_SIZE: &str = "5MiB";
/// After so many parts a new object is begun (S3's limit).
const APPENDS_MAX: u32 = 10_000;

/// What a command asks for besides what all commands share.
struct Job<'a> {
    name: &'static str,
    operations: Vec<(&'static str, u32)>,
    objects: u64,
    size: &'a str,
    existing: Option<ExistingSpec>,
    range: Option<RangeSpec>,
    delete_batch: Option<u32>,
    list_page_size: Option<u32>,
    activity: ActivitySpec,
    versions: u32,
    post: bool,
}

impl<'a> Job<'a> {
    fn new(name: &'static str, operation: &'static str, objects: u64, size: &'a str) -> Self {
        Self {
            name,
            operations: vec![(operation, 1)],
            objects,
            size,
            existing: None,
            range: None,
            delete_batch: None,
            list_page_size: None,
            activity: ActivitySpec::Operations,
            versions: 1,
            post: false,
        }
    }

    /// Returns a job that is more than operations on whole objects.
    fn special(name: &'static str, activity: ActivitySpec, objects: u64, size: &'a str) -> Self {
        let job = Self::new(name, "", objects, size);
        Self { operations: Vec::new(), activity, ..job }
    }

    fn existing(mut self, args: &ExistingArgs, limit: Option<u64>) -> Self {
        if args.list_existing {
            let limit = limit.filter(|limit| *limit > 0);
            let recursive = !args.list_flat;
            self.existing = Some(ExistingSpec { limit, recursive, destroys: false });
            self.objects = 0;
        }
        self
    }
}

/// Returns the workload that a command means. `embedded` tells whether it runs on the embedded
/// store, whose memory asks for smaller defaults.
pub(crate) fn workload(command: &S3Command, embedded: bool, seed: u64) -> Result<WorkloadFile> {
    Ok(WorkloadFile::try_from(&asked(command, embedded, seed)?)?)
}

/// Returns what a command asks for, with the fields that its flags are about.
fn asked(command: &S3Command, embedded: bool, seed: u64) -> Result<WorkloadSpec> {
    let large_objects = if embedded { 500 } else { 2_500 };
    let large_size = if embedded { "1MiB" } else { "10MiB" };
    let job = match command {
        S3Command::Get(args) => {
            let size = args.large.obj_size.as_deref().unwrap_or(large_size);
            let mut job = Job::new("s3-get", "GET", args.objects.unwrap_or(large_objects), size);
            job.versions = args.versions;
            job.range = match (args.range, args.range_size) {
                (_, Some(size)) => Some(RangeSpec::FixedBytes(size.0)),
                (true, None) => Some(RangeSpec::Random),
                (false, None) => None,
            };
            job.existing(&args.existing, args.objects)
        }
        S3Command::Put(args) => {
            let size = args.large.obj_size.as_deref().unwrap_or(large_size);
            Job { post: args.post, ..Job::new("s3-put", "PUT", 0, size) }
        }
        S3Command::Delete(args) => {
            let objects = args.objects.unwrap_or(25_000);
            let mut job = Job::new("s3-delete", "DELETE", objects, &args.obj_size);
            job.delete_batch = Some(args.batch);
            let mut job = job.existing(&args.existing, args.objects);
            // That they may go is what these words mean; the run itself asks for --yes.
            job.existing.iter_mut().for_each(|existing| existing.destroys = true);
            job
        }
        S3Command::List(args) => {
            let mut job = Job::new("s3-list", "LIST", args.objects, &args.obj_size);
            job.list_page_size = Some(args.max_keys);
            job.versions = args.versions;
            job
        }
        S3Command::Stat(args) => {
            let objects = args.objects.unwrap_or(10_000);
            let job = Job::new("s3-stat", "STAT", objects, &args.obj_size);
            Job { versions: args.versions, ..job }.existing(&args.existing, args.objects)
        }
        S3Command::Mixed(args) => {
            let size = args.large.obj_size.as_deref().unwrap_or(large_size);
            mixed("s3-mixed", args, args.objects.unwrap_or(large_objects), size)
        }
        S3Command::Versioned(args) => {
            let size = args.large.obj_size.as_deref().unwrap_or(large_size);
            let job = mixed("s3-versioned", args, args.objects.unwrap_or(VERSIONED_OBJECTS), size);
            Job { activity: ActivitySpec::Versioned, ..job }
        }
        special => special_job(special, large_size, embedded),
    };
    spec(job, command.common(), embedded, seed)
}

fn mixed<'a>(name: &'static str, args: &MixedArgs, objects: u64, size: &'a str) -> Job<'a> {
    let operations = vec![
        ("GET", args.get_distrib),
        ("STAT", args.stat_distrib),
        ("PUT", args.put_distrib),
        ("DELETE", args.delete_distrib),
    ];
    Job { operations, ..Job::new(name, "GET", objects, size) }
}

/// Returns the job of a command that is more than operations on whole objects.
fn special_job<'a>(command: &'a S3Command, large_size: &'a str, embedded: bool) -> Job<'a> {
    match command {
        S3Command::Retention(args) => {
            let hold_ns = args.hold.0.as_nanos() as u64;
            let activity = ActivitySpec::Retention { hold_ns };
            let job = Job::special("s3-retention", activity, args.objects, &args.obj_size);
            Job { versions: args.versions, ..job }
        }
        S3Command::Multipart(args) => {
            let (parts, activity) = (args.parts.into(), ActivitySpec::Multipart);
            Job::special("s3-multipart", activity, parts, PART_SIZE)
        }
        S3Command::MultipartPut(args) => {
            // Memory asks for objects that are complete before it is full.
            let parts = args.parts.unwrap_or(if embedded { 10 } else { 100 });
            let part_concurrency = args.part_concurrent.unwrap_or(20.min(parts));
            let activity = ActivitySpec::MultipartPut { parts, part_concurrency };
            Job::special("s3-multipart-put", activity, 0, PART_SIZE)
        }
        S3Command::Append(args) => {
            let size = args.large.obj_size.as_deref().unwrap_or(large_size);
            let activity = ActivitySpec::Append { parts: APPENDS_MAX };
            Job::special("s3-append", activity, 0, size)
        }
        S3Command::Zip(args) => {
            Job::special("s3-zip", ActivitySpec::Zip, args.files, &args.obj_size)
        }
        S3Command::Snowball(args) => {
            let (members, compress) = (args.objs_per, args.compress);
            let activity = ActivitySpec::Snowball { members, compress };
            Job::special("s3-snowball", activity, 0, &args.obj_size)
        }
        S3Command::Fanout(args) => {
            let activity = ActivitySpec::Fanout { copies: args.copies };
            Job::special("s3-fanout", activity, 0, &args.obj_size)
        }
        S3Command::Get(_)
        | S3Command::Put(_)
        | S3Command::Delete(_)
        | S3Command::List(_)
        | S3Command::Stat(_)
        | S3Command::Mixed(_)
        | S3Command::Versioned(_) => unreachable!("these are operations on whole objects"),
    }
}

fn spec(job: Job<'_>, common: &CommonArgs, embedded: bool, seed: u64) -> Result<WorkloadSpec> {
    let size = objects_size(&job, common)?;
    let has_parts =
        matches!(job.activity, ActivitySpec::Multipart | ActivitySpec::MultipartPut { .. });
    let default = if embedded { DURATION_EMBEDDED } else { DURATION_DEFAULT };
    let duration = common.load.duration.map_or(default, |duration| duration.0);
    let spec = WorkloadSpec {
        schema: SPEC_SCHEMA.to_owned(),
        name: job.name.to_owned(),
        seed,
        concurrency: common.load.concurrent,
        keys: KeysSpec {
            prefix: common.objects.prefix.clone(),
            per_worker: !common.objects.noprefix,
        },
        objects: ObjectsSpec {
            count: job.objects,
            size,
            versions: job.versions,
            existing: job.existing,
            generator: generator(&common.data)?,
            compress_ratio: common.data.data_compress,
            dedupe_ratio: common.data.data_dedupe,
        },
        measure: MeasureSpec {
            activity: job.activity,
            pick: pick(&common.data)?,
            post: job.post,
            part_bytes_min: has_parts.then_some(PART_SIZE_MIN),
            operations: job
                .operations
                .into_iter()
                .map(|(op, weight)| OpWeightSpec { op: op.to_owned(), weight })
                .collect(),
            range: job.range,
            delete_batch: job.delete_batch,
            list_page_size: job.list_page_size,
            duration_ns: u64::try_from(duration.as_nanos()).context("--duration is too long")?,
            steady: steady(&common.load)?,
            until: common.load.until.clone(),
            ..MeasureSpec::default()
        },
        pacing: pacing(&common.load)?,
        verify: !common.load.no_verify,
    };
    spec.check().map_err(|refused| match (&*refused.field, has_parts) {
        ("objects.size", true) => anyhow!("--part.size: {}", refused.reason),
        ("objects.count", true) => anyhow!("--parts: {}", refused.reason),
        _ => in_flags(refused),
    })?;
    Ok(spec)
}

/// Returns how large objects are, or parts where those are what operations move.
fn objects_size(job: &Job<'_>, common: &CommonArgs) -> Result<SizeSpec> {
    if let Some(path) = job.size.strip_prefix(FILE_SCHEME) {
        let text = input::read_given(Path::new(path))
            .with_context(|| format!("--obj.size: cannot read {path}"))?;
        let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty());
        let size = |word: &str| {
            let bytes = Bytes::parse(word).with_context(|| format!("--obj.size: {path}: {word}"));
            bytes.map(|bytes| bytes.0)
        };
        return Ok(SizeSpec::List(words.map(size).collect::<Result<_>>()?));
    }
    let is_part =
        matches!(job.activity, ActivitySpec::Multipart | ActivitySpec::MultipartPut { .. });
    if let (true, Some(part)) = (is_part, common.store.requests.part_size) {
        return Ok(SizeSpec::FixedBytes(part.0));
    }
    let sizes = SizeDist::parse(job.size, common.objects.randsize).context("--obj.size")?;
    Ok(SizeSpec::from(&sizes))
}

/// Returns what `--obj.generator` asks for.
fn generator(data: &DataArgs) -> Result<GeneratorSpec> {
    let Some(kind) = data.generator.as_deref() else { return Ok(GeneratorSpec::Random) };
    let Some(directory) = kind.strip_prefix(FILE_SCHEME) else {
        return match kind {
            "random" => Ok(GeneratorSpec::Random),
            "zero" => Ok(GeneratorSpec::Zero),
            "text" => Ok(GeneratorSpec::Text),
            _ => bail!("--obj.generator {kind}: choose random, zero, text or file:DIR"),
        };
    };
    let named = || format!("--obj.generator: cannot read {directory}");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(named)? {
        let entry = entry.with_context(named)?;
        let facts = entry.metadata().with_context(named)?;
        if facts.is_file() && facts.len() > 0 {
            let path = entry.path().display().to_string();
            files.push(DataFileSpec { path, bytes: facts.len() });
        }
    }
    if files.is_empty() {
        bail!("--obj.generator: {directory} holds no file with content");
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(GeneratorSpec::Files(files))
}

/// Returns what `--pick` asks for.
fn pick(data: &DataArgs) -> Result<PickSpec> {
    match data.pick.as_deref() {
        None | Some("uniform") => Ok(PickSpec::Uniform),
        Some("sequential") => Ok(PickSpec::Sequential),
        Some(law) => match law.strip_prefix("zipf:").map(str::parse) {
            Some(Ok(theta)) => Ok(PickSpec::Zipf { theta }),
            _ => bail!("--pick {law}: choose uniform, zipf:THETA or sequential"),
        },
    }
}

/// Returns what `--rate` and `--rps-limit` ask for.
fn pacing(load: &LoadArgs) -> Result<PacingSpec> {
    let Some(rate) = load.rate.clone() else {
        let given = [
            ("--arrivals", load.arrivals.is_some()),
            ("--max-in-flight", load.max_in_flight.is_some()),
        ];
        if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            bail!("{flag} does nothing without --rate; add it");
        }
        return Ok(match load.rps_limit {
            0.0 => PacingSpec::Closed,
            ops_per_sec => PacingSpec::Capped { ops_per_sec },
        });
    };
    if load.rps_limit != 0.0 {
        bail!("--rate is a schedule and --rps-limit a cap on a closed loop; give one of them");
    }
    Ok(PacingSpec::Open {
        rate,
        arrivals: load.arrivals.clone().unwrap_or_else(|| ArrivalLaw::Constant.to_string()),
        max_in_flight: load.max_in_flight.unwrap_or(MAX_IN_FLIGHT_DEFAULT),
    })
}

/// Returns what `--autoterm` asks for.
fn steady(load: &LoadArgs) -> Result<Option<SteadySpec>> {
    let (window, percent) = (load.autoterm_dur, load.autoterm_pct);
    let given = [("--autoterm.dur", window.is_some()), ("--autoterm.pct", percent.is_some())];
    if !load.autoterm {
        return match given.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => bail!("{flag} does nothing without --autoterm; add it"),
            None => Ok(None),
        };
    }
    let window = window.map_or(STEADY_WINDOW, |window| window.0);
    Ok(Some(SteadySpec {
        window_ns: u64::try_from(window.as_nanos()).context("--autoterm.dur is too long")?,
        percent: percent.map_or(STEADY_PERCENT, |percent| percent.0),
    }))
}

/// Returns a warning for each stop rule that cannot hold before the time is up.
pub(crate) fn late_stop_rules(plan: &Plan) -> Vec<String> {
    let is_measured = |stage: &&Stage| stage.kind == StageKind::Measure;
    let is_alone = plan.stages.iter().filter(is_measured).count() == 1;
    let mut warnings = Vec::new();
    for stage in plan.stages.iter().filter(is_measured) {
        let Some(time) = stage.duration_max() else { continue };
        for rule in stage.stop_rules.iter().filter(|rule| stop_time_min(rule) >= time) {
            let (what, advice) = match rule {
                StopRule::Steady { .. } => {
                    ("`steady` (--autoterm)", "lower its window or raise the duration")
                }
                StopRule::Until(_) => ("`until` (--until)", "raise the duration"),
            };
            let of = if is_alone { "this run".to_owned() } else { format!("stage {}", stage.name) };
            warnings.push(format!(
                "the stop rule {what} cannot end {of}: it needs more than {:.1} s of measuring, and there are \
                 {:.1} s; {advice}",
                stop_time_min(rule).as_secs_f64(),
                time.as_secs_f64(),
            ));
        }
    }
    warnings
}

/// Puts the error of a run into the words of the flags of `plimsoll s3`.
pub(crate) fn in_our_words(error: anyhow::Error) -> anyhow::Error {
    match error.downcast() {
        Ok(error) => in_our_flags(error),
        Err(other) => other,
    }
}

/// Adds to the error of a run what a user can change about it.
pub(crate) fn with_advice(error: ConductError) -> anyhow::Error {
    match error {
        ConductError::Target(error) => in_words(error),
        ConductError::Stage { class, .. } => anyhow!("{error}{}", advice_for(class)),
        other => other.into(),
    }
}

fn in_our_flags(error: ConductError) -> anyhow::Error {
    /// Fields that only a look at the store can refuse, and their flags.
    const FLAGS: [(&str, &str); 4] = [
        ("sets.objects.existing", "--list-existing"),
        ("stages[].jobs[].workers", "--concurrent"),
        ("sets.objects.count", "--objects"),
        ("sets.objects.size", "--obj.size"),
    ];
    match error {
        ConductError::NothingFound { .. } => anyhow!("--list-existing: {error} (--prefix)"),
        ConductError::Plan(refused) => {
            let of_field = |(field, _): &&(&str, &str)| refused.path.is_like(field);
            match FLAGS.iter().find(of_field) {
                Some((_, flag)) => anyhow!("{flag}: {}", refused.reason),
                None => ConductError::Plan(refused).into(),
            }
        }
        other => with_advice(other),
    }
}

/// Returns an error of a store with what a user can change about it.
pub(crate) fn in_words(error: DriverError) -> anyhow::Error {
    let told = error.message.contains("--");
    anyhow!("{}{}", error.message, if told { "" } else { advice_for(error.class) })
}

/// What a user can change about a failure of that class.
fn advice_for(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Connect | ErrorClass::Reset => " (check --host and --tls)",
        ErrorClass::Timeout => " (check --host; a store that is only slow may need --op-timeout)",
        ErrorClass::Denied => " (check --access-key, --secret-key and what they may do)",
        ErrorClass::NotFound => " (check --bucket)",
        ErrorClass::Throttled => " (lower --concurrent, or set --rps-limit or --retries)",
        _ => "",
    }
}

/// Puts a refusal of the spec into the words of the flags.
pub(crate) fn in_flags(refused: InvalidWorkload) -> anyhow::Error {
    let flag = match &*refused.field {
        "concurrency" => "--concurrent",
        "keys.prefix" => "--prefix",
        "objects.size" => "--obj.size",
        "objects.count" => "--objects",
        "objects.existing" => "--list-existing",
        "objects.existing.destroys" => "objects.existing.destroys in the workload file",
        "measure.operations" => "the --*-distrib flags",
        "measure.operations.delete" => "--delete-distrib",
        "measure.delete_batch" => "--batch",
        "measure.list_page_size" => "--max-keys",
        "measure.range" => "--range-size",
        "objects.versions" => "--versions",
        "objects.generator" => "--obj.generator",
        "objects.compress_ratio" => "--data.compress",
        "objects.dedupe_ratio" => "--data.dedupe",
        "measure.pick" | "measure.pick.zipf.theta" => "--pick",
        "measure.post" => "--post",
        "measure.activity.retention.hold_ns" => "--hold",
        "measure.activity.multipart_put.parts" => "--parts",
        "measure.activity.multipart_put.part_concurrency" => "--part.concurrent",
        "measure.activity.snowball.members" => "--objs.per",
        "measure.activity.fanout.copies" => "--copies",
        "pacing.open" => "--rate",
        "measure.duration_ns" => "--duration",
        "measure.steady.window_ns" => "--autoterm.dur",
        "measure.steady.percent" => "--autoterm.pct",
        "measure.until" => "--until",
        "pacing.capped" => "--rps-limit",
        "pacing.open.rate" => "--rate",
        "pacing.open.arrivals" => "--arrivals",
        "pacing.open.max_in_flight" => "--max-in-flight",
        field => field,
    };
    anyhow!("{flag}: {}", refused.reason)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn lowered(line: &str) -> Result<WorkloadSpec> {
        let words = ["plimsoll", "s3"].into_iter().chain(line.split_whitespace());
        let Command::S3(command) = Cli::try_parse_from(words)?.command else { unreachable!() };
        asked(&command, false, 1)
    }

    #[test]
    fn defaults_are_those_of_warp() {
        let figures = |line| {
            let spec = lowered(line).unwrap();
            (spec.objects.count, spec.objects.size, spec.concurrency, spec.measure.duration_ns)
        };
        let five_minutes = 300_000_000_000;
        let fixed = SizeSpec::FixedBytes;
        assert_eq!(figures("get"), (2_500, fixed(10 << 20), 20, five_minutes));
        assert_eq!(figures("put"), (0, fixed(10 << 20), 20, five_minutes));
        assert_eq!(figures("delete"), (25_000, fixed(1_024), 20, five_minutes));
        assert_eq!(figures("list"), (10_000, fixed(1_000), 20, five_minutes));
        assert_eq!(figures("stat"), (10_000, fixed(1_000), 20, five_minutes));
        assert_eq!(figures("mixed"), (2_500, fixed(10 << 20), 20, five_minutes));
        assert_eq!(lowered("delete").unwrap().measure.delete_batch, Some(100));
        assert_eq!(lowered("list").unwrap().measure.list_page_size, Some(100));
        let weights: Vec<_> =
            lowered("mixed").unwrap().measure.operations.iter().map(|op| op.weight).collect();
        assert_eq!(weights, [45, 30, 15, 10]);
    }

    #[test]
    fn refusals_name_the_flag() {
        for (line, start) in [
            ("get --obj.size 0", "--obj.size"),
            ("get --obj.size 9,5", "--obj.size"),
            ("get --objects 19", "--objects: 19 objects are too few for 20 workers"),
            ("get --range-size 0", "--range-size"),
            ("get --duration 0", "--duration"),
            ("get --concurrent 0", "--concurrent"),
            ("get --rps-limit=-1", "--rps-limit"),
            ("get --rate 0/s", "--rate: `0/s`: a rate must be above 0"),
            ("get --rate -5/s", "--rate: `-5/s`: a rate must be above 0"),
            ("get --rate 1000", "--rate: `1000` is no rate such as 1000/s"),
            ("get --rate 9/s --arrivals gauss", "--arrivals: `gauss` is no law of arrivals"),
            ("get --rate 9/s --max-in-flight 0", "--max-in-flight: must be 1 to 100000"),
            ("get --rate 9/s --rps-limit 9", "--rate is a schedule and --rps-limit a cap"),
            ("get --arrivals poisson", "--arrivals does nothing without --rate; add it"),
            ("get --max-in-flight 5", "--max-in-flight does nothing without --rate; add it"),
            ("get --autoterm --autoterm.dur 0", "--autoterm.dur: must be above 0"),
            ("get --autoterm --autoterm.pct 0", "--autoterm.pct: must be above 0"),
            ("get --autoterm.dur 5s", "--autoterm.dur does nothing without --autoterm"),
            ("get --autoterm.pct 5", "--autoterm.pct does nothing without --autoterm"),
            ("get --until ci(foo)<=5%", "--until: `ci(foo)<=5%`: there is no metric `foo`"),
            ("stat --until ci(throughput)<=5%", "--until: `ci(throughput)<=5%`: no content"),
            ("delete --objects 7999", "--objects: 7999 objects are too few"),
            ("delete --batch 1001", "--batch"),
            ("list --max-keys 5001", "--max-keys"),
            ("mixed --put-distrib 5", "--delete-distrib"),
        ] {
            let error = lowered(line).unwrap_err().to_string();
            assert!(error.starts_with(start), "{line}: {error}");
        }
    }

    #[test]
    fn a_rate_is_a_schedule() {
        assert_eq!(lowered("get").unwrap().pacing, PacingSpec::Closed);
        for command in ["get", "put", "delete", "list", "stat", "mixed"] {
            assert_eq!(
                lowered(&format!("{command} --rate 1k/s")).unwrap().pacing,
                PacingSpec::Open {
                    rate: "1k/s".to_owned(),
                    arrivals: "constant".to_owned(),
                    max_in_flight: 1_024,
                }
            );
        }
        assert_eq!(
            lowered("get --rate 5/s --arrivals poisson --max-in-flight 7").unwrap().pacing,
            PacingSpec::Open {
                rate: "5/s".to_owned(),
                arrivals: "poisson".to_owned(),
                max_in_flight: 7,
            }
        );
    }

    #[test]
    fn stop_rules_have_the_defaults_of_warp() {
        assert_eq!(lowered("get").unwrap().measure.steady, None);
        let steady = |line: &str| lowered(line).unwrap().measure.steady.unwrap();
        let defaults = SteadySpec { window_ns: 15_000_000_000, percent: 7.5 };
        for command in ["get", "put", "delete", "list", "stat", "mixed"] {
            assert_eq!(steady(&format!("{command} --autoterm")), defaults);
        }
        let asked = SteadySpec { window_ns: 5_000_000_000, percent: 10.0 };
        assert_eq!(steady("get --autoterm --autoterm.dur=5s --autoterm.pct=10"), asked);
        let two = lowered("get --until ci(p99)<=5% --until ci(rate)<=1%").unwrap();
        assert_eq!(two.measure.until, ["ci(p99)<=5%", "ci(rate)<=1%"]);
    }

    #[test]
    fn a_rule_that_cannot_hold_in_time_is_warned_of() {
        let warnings = |line: &str| {
            let file = WorkloadFile::try_from(&lowered(line).unwrap()).unwrap();
            late_stop_rules(&file.check().unwrap())
        };
        assert!(warnings("get --autoterm --until ci(p99)<=5%").is_empty());
        let late = warnings("get --autoterm --until ci(p99)<=5% --duration 10s");
        assert!(late[0].starts_with(
            "the stop rule `steady` (--autoterm) cannot end this run: it needs more than 53.6 s"
        ));
        assert!(late[1].starts_with(
            "the stop rule `until` (--until) cannot end this run: it needs more than 11.0 s"
        ));
    }

    #[test]
    fn existing_objects_are_not_uploaded() {
        let spec = lowered("stat --list-existing --list-flat --objects 5").unwrap();
        assert_eq!(
            spec.objects.existing,
            Some(ExistingSpec { limit: Some(5), recursive: false, destroys: false })
        );
        assert_eq!(spec.objects.count, 0);
        let all = lowered("get --list-existing").unwrap();
        assert_eq!(
            all.objects.existing,
            Some(ExistingSpec { limit: None, recursive: true, destroys: false })
        );
    }
}
