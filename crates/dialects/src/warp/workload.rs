//! What a benchmark of warp's does, as a workload: of a line of warp's, and of `plimsoll s3`, which
//! has the same flags with the same defaults, and a few more.

use std::time::Duration;

use plimsoll_workload::plan::WorkloadFile;
use plimsoll_workload::{
    ActivitySpec, ArrivalLaw, ExistingSpec, GeneratorSpec, InvalidWorkload, KeysSpec,
    MAX_IN_FLIGHT_DEFAULT, MeasureSpec, ObjectsSpec, OpWeightSpec, PacingSpec, PickSpec, RangeSpec,
    SPEC_SCHEMA, SizeDist, SizeSpec, SteadySpec, WorkloadSpec,
};

use super::command::WarpBenchmark::{self, *};
use super::error::WarpArgError;

/// Workers where nothing else is said.
pub const CONCURRENT: u32 = 20;
/// Objects of one call that deletes.
pub const BATCH: u32 = 100;
/// Entries of one page of a listing.
pub const MAX_KEYS: u32 = 100;
/// Versions of an object whose retention is set.
pub const VERSIONS: u32 = 5;
/// Parts of the object of `multipart`.
pub const PARTS: u32 = 200;
/// Members of an archive.
pub const MEMBERS: u32 = 50;
/// Names of one content.
pub const COPIES: u32 = 100;
/// The weights of GET, STAT, PUT and DELETE.
pub const WEIGHTS: [u32; 4] = [45, 30, 15, 10];

/// How many large objects there are, and how large.
const OBJECTS: u64 = 2_500;
const OBJECTS_EMBEDDED: u64 = 500;
const SIZE: &str = "10MiB";
const SIZE_EMBEDDED: &str = "1MiB";
/// For how long retention is set.
const HOLD: Duration = Duration::from_secs(24 * 60 * 60);
/// What the weights are of.
const MIXED: [&str; 4] = ["GET", "STAT", "PUT", "DELETE"];
const DURATION: Duration = Duration::from_secs(300);
const DURATION_EMBEDDED: Duration = Duration::from_secs(10);
/// Of `--autoterm`.
const STEADY_WINDOW: Duration = Duration::from_secs(15);
const STEADY_PERCENT: f64 = 7.5;
/// The smallest part but the last (S3's limit).
const PART_BYTES_MIN: u64 = 5 << 20;
/// Parts of one upload, and how many of them are on their way at once.
const UPLOAD_PARTS: u32 = 100;
const UPLOAD_PARTS_EMBEDDED: u32 = 10;
const PARTS_AT_ONCE: u32 = 20;
/// After so many parts a new object is begun (S3's limit).
const APPENDS_MAX: u32 = 10_000;

/// What a benchmark is asked to do. What is `None` is as in warp, or smaller on the embedded store,
/// whose memory asks for that.
#[derive(Clone, Debug, Default)]
pub struct WarpWorkload {
    /// Which benchmark.
    pub benchmark: WarpBenchmark,
    /// Whether it runs on the embedded store.
    pub is_embedded: bool,
    /// Workers, or streams of an open loop.
    pub concurrent: Option<u32>,
    /// How long to measure.
    pub duration: Option<Duration>,
    /// Whether to end when the throughput is steady,
    pub autoterm: bool,
    /// for so long,
    pub autoterm_window: Option<Duration>,
    /// to so many percent.
    pub autoterm_percent: Option<f64>,
    /// Rules that end it when all of them hold.
    pub until: Vec<String>,
    /// At most so many operations a second; 0 for no limit.
    pub rps_limit: f64,
    /// The schedule of an open loop,
    pub rate: Option<String>,
    /// the law of its arrivals,
    pub arrivals: Option<String>,
    /// and how many of its operations may be under way.
    pub max_in_flight: Option<u32>,
    /// Whether content that is read is not checked.
    pub no_verify: bool,
    /// What comes before the run's own prefix.
    pub prefix: String,
    /// Whether workers have no prefixes of their own.
    pub no_prefix: bool,
    /// How many objects there are, or files of an archive.
    pub objects: Option<u64>,
    /// How large they are.
    pub size: Option<Sizes>,
    /// Whether sizes are drawn up to the one that is given.
    pub random_size: bool,
    /// The size of a part.
    pub part_size: Option<u64>,
    /// What objects hold.
    pub generator: GeneratorSpec,
    /// To which part of itself that can be compressed.
    pub compress_ratio: Option<f64>,
    /// One block in so many is no copy.
    pub dedupe_ratio: Option<f64>,
    /// Which object is read.
    pub pick: Option<String>,
    /// Versions of each object.
    pub versions: Option<u32>,
    /// Which part of an object is read.
    pub range: Option<RangeSpec>,
    /// Whether objects are taken that are there, and none is uploaded before,
    pub list_existing: bool,
    /// without those behind a `/`.
    pub list_flat: bool,
    /// Whether uploads are HTML forms.
    pub post: bool,
    /// Objects of one call that deletes.
    pub batch: Option<u32>,
    /// Entries of one page of a listing.
    pub max_keys: Option<u32>,
    /// The weights of GET, STAT, PUT and DELETE.
    pub weights: Option<[u32; 4]>,
    /// For how long retention is set.
    pub hold: Option<Duration>,
    /// Parts of an object.
    pub parts: Option<u32>,
    /// How many of them are on their way at once.
    pub parts_at_once: Option<u32>,
    /// Members of an archive.
    pub members: Option<u32>,
    /// Whether archives are compressed.
    pub compress: bool,
    /// Names of one content.
    pub copies: Option<u32>,
}

/// How large objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// As written: `SIZE`, `MIN,MAX` or `SIZE:WEIGHT,...`.
    Written(String),
    /// One of these each.
    List(Vec<u64>),
}

/// What a benchmark does besides what all have in common.
struct Work {
    operations: Vec<(&'static str, u32)>,
    activity: ActivitySpec,
    objects: u64,
}

impl Work {
    fn on(operation: &'static str, objects: u64) -> Self {
        let activity = ActivitySpec::Operations;
        Self { operations: vec![(operation, 1)], activity, objects }
    }

    fn special(activity: ActivitySpec, objects: u64) -> Self {
        Self { operations: Vec::new(), activity, objects }
    }
}

impl WarpBenchmark {
    /// Returns how many objects there are where nothing else is said.
    pub const fn objects(self) -> u64 {
        match self {
            Get | Mixed => OBJECTS,
            Versioned => 250,
            Delete | Retention => 25_000,
            List | Stat | Zip => 10_000,
            Put | Multipart | MultipartPut | Append | Snowball | Fanout => 0,
        }
    }

    /// Returns how large they are where nothing else is said, or the parts of them.
    pub const fn size(self) -> &'static str {
        match self {
            Get | Put | Mixed | Versioned | Append => SIZE,
            Delete | Retention => "1KiB",
            List | Stat => "1KB",
            Zip => "10KiB",
            Snowball => "512KiB",
            Fanout => "1MiB",
            Multipart | MultipartPut => "5MiB",
        }
    }

    fn has_parts(self) -> bool {
        matches!(self, Multipart | MultipartPut)
    }
}

impl WarpWorkload {
    /// Returns the workload, if it is sound.
    pub fn workload(&self, seed: u64) -> Result<WorkloadFile, WarpArgError> {
        let spec = self.spec(seed)?;
        WorkloadFile::try_from(&spec).map_err(|refused| WarpArgError::Form(refused.to_string()))
    }

    /// Returns it in version 1 of the language, whose fields the flags are about, if it is sound.
    pub fn spec(&self, seed: u64) -> Result<WorkloadSpec, WarpArgError> {
        let benchmark = self.benchmark;
        let work = self.work();
        let size = self.sizes()?;
        let default = if self.is_embedded { DURATION_EMBEDDED } else { DURATION };
        let existing = self.existing();
        let spec = WorkloadSpec {
            schema: SPEC_SCHEMA.to_owned(),
            name: format!("s3-{}", benchmark.name()),
            seed,
            concurrency: self.concurrent.unwrap_or(CONCURRENT),
            keys: KeysSpec { prefix: self.prefix.clone(), per_worker: !self.no_prefix },
            objects: ObjectsSpec {
                count: if existing.is_some() { 0 } else { work.objects },
                size,
                versions: match benchmark {
                    Retention => self.versions.unwrap_or(VERSIONS),
                    _ => self.versions.unwrap_or(1),
                },
                existing,
                generator: self.generator.clone(),
                compress_ratio: self.compress_ratio,
                dedupe_ratio: self.dedupe_ratio,
            },
            measure: MeasureSpec {
                pick: self.pick()?,
                post: self.post,
                part_bytes_min: benchmark.has_parts().then_some(PART_BYTES_MIN),
                operations: work
                    .operations
                    .into_iter()
                    .map(|(op, weight)| OpWeightSpec { op: op.to_owned(), weight })
                    .collect(),
                activity: work.activity,
                range: self.range.clone(),
                delete_batch: (benchmark == Delete).then(|| self.batch.unwrap_or(BATCH)),
                list_page_size: (benchmark == List).then(|| self.max_keys.unwrap_or(MAX_KEYS)),
                duration_ns: ns("--duration", self.duration.unwrap_or(default))?,
                steady: self.steady()?,
                until: self.until.clone(),
                ..MeasureSpec::default()
            },
            pacing: self.pacing()?,
            verify: !self.no_verify,
        };
        spec.check().map_err(|refused| in_flags(&refused, benchmark))?;
        Ok(spec)
    }

    fn work(&self) -> Work {
        let default = match self.benchmark.objects() {
            OBJECTS if self.is_embedded => OBJECTS_EMBEDDED,
            objects => objects,
        };
        let objects = || self.objects.unwrap_or(default);
        let mixed = || MIXED.into_iter().zip(self.weights.unwrap_or(WEIGHTS)).collect();
        match self.benchmark {
            Get => Work::on("GET", objects()),
            Put => Work::on("PUT", 0),
            Delete => Work::on("DELETE", objects()),
            List => Work::on("LIST", objects()),
            Stat => Work::on("STAT", objects()),
            Mixed => Work { operations: mixed(), ..Work::on("", objects()) },
            Versioned => {
                let work = Work::special(ActivitySpec::Versioned, objects());
                Work { operations: mixed(), ..work }
            }
            Retention => {
                let hold_ns = self.hold.unwrap_or(HOLD).as_nanos() as u64;
                Work::special(ActivitySpec::Retention { hold_ns }, objects())
            }
            Multipart => {
                let parts = self.parts.unwrap_or(PARTS).into();
                Work::special(ActivitySpec::Multipart, parts)
            }
            MultipartPut => {
                // Memory asks for objects that are complete before it is full.
                let default = if self.is_embedded { UPLOAD_PARTS_EMBEDDED } else { UPLOAD_PARTS };
                let parts = self.parts.unwrap_or(default);
                let at_once = self.parts_at_once.unwrap_or(PARTS_AT_ONCE.min(parts));
                let activity = ActivitySpec::MultipartPut { parts, part_concurrency: at_once };
                Work::special(activity, 0)
            }
            Append => Work::special(ActivitySpec::Append { parts: APPENDS_MAX }, 0),
            Zip => Work::special(ActivitySpec::Zip, objects()),
            Snowball => {
                let (members, compress) = (self.members.unwrap_or(MEMBERS), self.compress);
                Work::special(ActivitySpec::Snowball { members, compress }, 0)
            }
            Fanout => {
                let copies = self.copies.unwrap_or(COPIES);
                Work::special(ActivitySpec::Fanout { copies }, 0)
            }
        }
    }

    fn existing(&self) -> Option<ExistingSpec> {
        self.list_existing.then(|| ExistingSpec {
            limit: self.objects.filter(|limit| *limit > 0),
            recursive: !self.list_flat,
            // That they may go is what the word means; the run itself asks for consent.
            destroys: self.benchmark == Delete,
        })
    }

    /// Returns how large objects are, or parts where those are what operations move.
    fn sizes(&self) -> Result<SizeSpec, WarpArgError> {
        if let (true, Some(part)) = (self.benchmark.has_parts(), self.part_size) {
            return Ok(SizeSpec::FixedBytes(part));
        }
        let written = match &self.size {
            Some(Sizes::List(sizes)) => return Ok(SizeSpec::List(sizes.clone())),
            Some(Sizes::Written(text)) => text,
            None if self.is_embedded && self.benchmark.size() == SIZE => SIZE_EMBEDDED,
            None => self.benchmark.size(),
        };
        let sizes = SizeDist::parse(written, self.random_size);
        Ok(SizeSpec::from(&sizes.map_err(|error| refuse("--obj.size", error))?))
    }

    fn pick(&self) -> Result<PickSpec, WarpArgError> {
        let Some(law) = self.pick.as_deref() else { return Ok(PickSpec::Uniform) };
        match (law, law.strip_prefix("zipf:").map(str::parse)) {
            ("uniform", _) => Ok(PickSpec::Uniform),
            ("sequential", _) => Ok(PickSpec::Sequential),
            (_, Some(Ok(theta))) => Ok(PickSpec::Zipf { theta }),
            _ => refused(format!("--pick {law}: choose uniform, zipf:THETA or sequential")),
        }
    }

    fn pacing(&self) -> Result<PacingSpec, WarpArgError> {
        let Some(rate) = self.rate.clone() else {
            let given = [
                ("--arrivals", self.arrivals.is_some()),
                ("--max-in-flight", self.max_in_flight.is_some()),
            ];
            if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
                return refused(format!("{flag} does nothing without --rate; add it"));
            }
            return Ok(match self.rps_limit {
                0.0 => PacingSpec::Closed,
                ops_per_sec => PacingSpec::Capped { ops_per_sec },
            });
        };
        if self.rps_limit != 0.0 {
            let text =
                "--rate is a schedule and --rps-limit a cap on a closed loop; give one of them";
            return refused(text.to_owned());
        }
        Ok(PacingSpec::Open {
            rate,
            arrivals: self.arrivals.clone().unwrap_or_else(|| ArrivalLaw::Constant.to_string()),
            max_in_flight: self.max_in_flight.unwrap_or(MAX_IN_FLIGHT_DEFAULT),
        })
    }

    fn steady(&self) -> Result<Option<SteadySpec>, WarpArgError> {
        let (window, percent) = (self.autoterm_window, self.autoterm_percent);
        let given = [("--autoterm.dur", window.is_some()), ("--autoterm.pct", percent.is_some())];
        if !self.autoterm {
            return match given.into_iter().find(|(_, given)| *given) {
                Some((flag, _)) => {
                    refused(format!("{flag} does nothing without --autoterm; add it"))
                }
                None => Ok(None),
            };
        }
        Ok(Some(SteadySpec {
            window_ns: ns("--autoterm.dur", window.unwrap_or(STEADY_WINDOW))?,
            percent: percent.unwrap_or(STEADY_PERCENT),
        }))
    }
}

fn ns(flag: &str, time: Duration) -> Result<u64, WarpArgError> {
    u64::try_from(time.as_nanos()).map_err(|_| WarpArgError::Form(format!("{flag} is too long")))
}

fn refuse(flag: &str, why: impl std::fmt::Display) -> WarpArgError {
    WarpArgError::Form(format!("{flag}: {why}"))
}

fn refused<T>(text: String) -> Result<T, WarpArgError> {
    Err(WarpArgError::Form(text))
}

/// Puts a refusal of the spec into the words of the flags.
fn in_flags(refused: &InvalidWorkload, benchmark: WarpBenchmark) -> WarpArgError {
    let flag = match &*refused.field {
        "objects.size" if benchmark.has_parts() => "--part.size",
        "objects.count" if benchmark.has_parts() => "--parts",
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
    refuse(flag, &refused.reason)
}
