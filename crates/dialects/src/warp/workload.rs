//! What a benchmark of warp's does, as a workload: of a line of warp's, and of `plimsoll s3`, which
//! has the same flags with the same defaults, and a few more.

use std::time::Duration;

use plimsoll_model::Bytes;
use plimsoll_workload::plan::spec::{
    AppendSpec, ArchiveKind, ArchiveSpec, Choice, ContentSpec, DeleteOp, ExistingOf, ExistingSet,
    FanoutSpec, FillSpec, GetOp, GetPart, GetZip, JobSpec, KeysSpec, ListOp, Named, ObjectSet,
    OpSpec, PacingSpec, PartsSpec, PickSpec, PostOp, PutAs, PutOp, PutParts, PutTar, RangeSpec,
    RetentionSpec, SetSpec, Share, Shares, SizeLaw, SizeSpec, StageSpec, StatOp, VersionPick,
    WorkSpec, WorkStage,
};
use plimsoll_workload::plan::{InvalidField, Rate, Size, SizeRange, Time, UntilSpec, WorkloadFile};
use plimsoll_workload::{SizeBar, SizeDist};

use super::command::WarpBenchmark::{self, *};
use crate::command_line::LineError;
use crate::{flag_of, schedule};

/// What the only set is called.
const SET: &str = "objects";
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
/// What weights are given by.
const DISTRIB: &str = "the --*-distrib flags";
/// What the weights are of.
const MIXED: [WarpBenchmark; 4] = [Get, Stat, Put, Delete];
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
/// So many parts an object has at most (S3's limit).
const PARTS_MAX: u32 = 10_000;

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
    /// At most so many operations a second.
    pub rps_limit: Option<Rate>,
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
    pub content: ContentSpec,
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
    /// without those behind a `/`,
    pub list_flat: bool,
    /// or those that this file names.
    pub list: Option<String>,
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
    pub fn workload(&self, seed: u64) -> Result<WorkloadFile, LineError> {
        let file = self.file(seed)?;
        file.judge().map_err(|refused| LineError::Form(self.in_flags(&refused)))?;
        Ok(file)
    }

    /// Returns a refusal of the workload in the words of the flags.
    pub fn in_flags(&self, refused: &InvalidField) -> String {
        let objects = match self.benchmark {
            Zip => "--files",
            Multipart => "--parts",
            _ => "--objects",
        };
        let size = if self.benchmark.has_parts() { "--part.size" } else { "--obj.size" };
        // What is wrong with how work uses its set is how many objects there are.
        let mut flags = vec![("count", objects), ("work", objects), ("size", size)];
        flags.extend(FLAGS);
        let flag = match flag_of(&refused.path, &flags) {
            Some(_) if refused.path.form().ends_with("work.objects") => DISTRIB,
            Some(flag) => flag,
            None => return refused.to_string(),
        };
        match self.count() {
            0 if flag == objects => format!("{flag}: must be at least 1"),
            _ => format!("{flag}: {}", refused.reason),
        }
    }

    fn file(&self, seed: u64) -> Result<WorkloadFile, LineError> {
        self.check()?;
        let sizes = self.sizes()?;
        let workers = self.concurrent.unwrap_or(CONCURRENT);
        let job =
            JobSpec { pacing: self.pacing()?, ..JobSpec::of(workers, self.work(sizes.max())?) };
        let default = if self.is_embedded { DURATION_EMBEDDED } else { DURATION };
        let measure = WorkStage {
            duration: Some(Time(self.duration.unwrap_or(default))),
            until: self.until()?,
            ..WorkStage::of("measure", vec![job])
        };
        let mut stages = Vec::new();
        if self.count() > 0 && !self.list_existing {
            let fill = WorkSpec::Fill(FillSpec::of(vec![SET.to_owned()]));
            let stage = WorkStage::of("prepare", vec![JobSpec::of(workers, fill)]);
            stages.push(StageSpec::Jobs(WorkStage { prepares: true, ..stage }));
        }
        stages.push(StageSpec::Jobs(measure));
        let sets: Named<SetSpec> = [(SET.to_owned(), self.set(&sizes)?)].into_iter().collect();
        let file = WorkloadFile::new(&format!("s3-{}", self.benchmark.name()), sets, stages);
        Ok(WorkloadFile { seed: Some(seed), verify: !self.no_verify, ..file })
    }

    /// Refuses what the workload itself would not, or not in words that say enough.
    fn check(&self) -> Result<(), LineError> {
        let [get, stat, put, delete] = self.weights.unwrap_or(WEIGHTS);
        if self.is_mix() && [get, stat, put] == [0; 3] {
            if delete == 0 {
                return Err(refuse(DISTRIB, "one kind needs a weight above 0"));
            }
            if self.benchmark == Versioned {
                let why = "versioned is for GET, STAT and PUT, with DELETE or not";
                return Err(refuse(DISTRIB, why));
            }
        }
        if self.benchmark == Mixed && delete > put && [get, stat, put] != [0; 3] {
            let why = "the weight of DELETE must not be above the weight of PUT, or the objects \
                       would run out";
            return Err(refuse("--delete-distrib", why));
        }
        let parts_max = u64::from(PARTS_MAX);
        if self.benchmark == Multipart && !(1..=parts_max).contains(&self.count()) {
            return Err(refuse("--parts", format!("must be 1 to {PARTS_MAX}")));
        }
        let part = self.part();
        if self.benchmark.has_parts() && part.0 < PART_BYTES_MIN {
            let least = Bytes(PART_BYTES_MIN);
            let why = format!("part size {part} is below what S3 takes, {least}");
            return Err(refuse("--part.size", why));
        }
        let picks = match self.benchmark {
            Get | Stat | Retention | Multipart | Zip => true,
            Mixed | Versioned => put == 0 && delete == 0,
            _ => false,
        };
        if self.picked()? != Choice::Uniform && !picks {
            let why = "zipf and sequential are for operations that leave the objects as they are, \
                       such as GET and STAT without PUT and DELETE";
            return Err(refuse("--pick", why));
        }
        Ok(())
    }

    fn is_mix(&self) -> bool {
        matches!(self.benchmark, Mixed | Versioned)
    }

    /// Returns how many objects are uploaded before; of `multipart` parts, of `zip` files.
    fn count(&self) -> u64 {
        let default = match self.benchmark.objects() {
            OBJECTS if self.is_embedded => OBJECTS_EMBEDDED,
            objects => objects,
        };
        match self.benchmark {
            Put | MultipartPut | Append | Snowball | Fanout => 0,
            Multipart => self.parts.unwrap_or(PARTS).into(),
            _ => self.objects.unwrap_or(default),
        }
    }

    fn part(&self) -> Size {
        Size(self.part_size.unwrap_or(PART_BYTES_MIN))
    }

    fn set(&self, sizes: &SizeDist) -> Result<SetSpec, LineError> {
        if self.list_existing {
            let limit = self.objects.filter(|limit| *limit > 0);
            let (prefix, recursive) = (self.prefix.clone(), !self.list_flat);
            // That they may go is what the word means; the run itself asks for consent.
            let touch = self.benchmark == Delete;
            let list = self.list.clone();
            let existing = ExistingOf { prefix, limit, recursive, list };
            return Ok(SetSpec::Existing(ExistingSet { on: None, existing, touch }));
        }
        let size = match self.benchmark {
            Multipart => Some(SizeSpec::Fixed(Size(self.part().0.saturating_mul(self.count())))),
            MultipartPut => None,
            _ => Some(size_spec(sizes)),
        };
        let is_one = self.benchmark == Multipart;
        let keys = KeysSpec { prefix: self.prefix.clone(), ..KeysSpec::default() };
        Ok(SetSpec::Objects(ObjectSet {
            part: is_one.then(|| self.part()),
            versions: self.versions(),
            archive: (self.benchmark == Zip).then_some(ArchiveKind::Zip),
            content: self.content()?,
            keys: KeysSpec { per_worker: !self.no_prefix, ..keys },
            ..ObjectSet::of(if is_one { 1 } else { self.count() }, size)
        }))
    }

    fn versions(&self) -> u32 {
        self.versions.unwrap_or(if self.benchmark == Retention { VERSIONS } else { 1 })
    }

    fn content(&self) -> Result<ContentSpec, LineError> {
        let (compress_ratio, dedupe_ratio) = (self.compress_ratio, self.dedupe_ratio);
        if self.content == ContentSpec::Random {
            return Ok(match (compress_ratio, dedupe_ratio) {
                (None, None) => ContentSpec::Random,
                _ => ContentSpec::Shaped { compress_ratio, dedupe_ratio },
            });
        }
        let given = [("--data.compress", compress_ratio), ("--data.dedupe", dedupe_ratio)];
        match given.iter().find(|(_, ratio)| ratio.is_some_and(|ratio| ratio != 1.0)) {
            Some((flag, _)) => {
                Err(refuse(flag, "needs random content; leave the generator at random"))
            }
            None => Ok(self.content.clone()),
        }
    }

    fn work(&self, largest: u64) -> Result<WorkSpec, LineError> {
        let (set, pick) = (SET.to_owned(), self.picked()?);
        Ok(match self.benchmark {
            Get | Put | Delete | List | Stat => {
                WorkSpec::Objects(vec![self.op(self.benchmark, 1, &pick, largest)])
            }
            Mixed | Versioned => {
                let weights = MIXED.into_iter().zip(self.weights.unwrap_or(WEIGHTS));
                let asked = weights.filter(|(_, weight)| *weight > 0);
                let op = |(of, weight)| self.op(of, weight, &pick, largest);
                WorkSpec::Objects(asked.map(op).collect())
            }
            Retention => {
                let hold = Time(self.hold.unwrap_or(HOLD));
                WorkSpec::Retention(RetentionSpec { of: set, hold, pick })
            }
            Multipart => WorkSpec::Parts(PartsSpec::Get(GetPart { get: set, pick })),
            MultipartPut => {
                // Memory asks for objects that are complete before it is full.
                let default = if self.is_embedded { UPLOAD_PARTS_EMBEDDED } else { UPLOAD_PARTS };
                let parts = self.parts.unwrap_or(default);
                WorkSpec::Parts(PartsSpec::Put(PutParts {
                    put: set,
                    parts: Some(parts),
                    part: self.part(),
                    at_once: self.parts_at_once.unwrap_or(PARTS_AT_ONCE.min(parts)),
                    part_min: Some(Size(PART_BYTES_MIN)),
                }))
            }
            Append => WorkSpec::Append(AppendSpec { to: set, parts: PARTS_MAX, size: None }),
            Zip => WorkSpec::Archive(ArchiveSpec::GetFromZip(GetZip { get_from_zip: set, pick })),
            Snowball => WorkSpec::Archive(ArchiveSpec::PutTar(PutTar {
                put_tar: set,
                members: self.members.unwrap_or(MEMBERS),
                compress: self.compress,
            })),
            Fanout => {
                let copies = self.copies.unwrap_or(COPIES);
                WorkSpec::Fanout(FanoutSpec { put: set, copies })
            }
        })
    }

    /// Returns one operation on whole objects. `largest` is the size of the largest object.
    fn op(&self, of: WarpBenchmark, weight: u32, pick: &Choice, largest: u64) -> OpSpec {
        let set = SET.to_owned();
        let is_versioned = self.benchmark == Versioned;
        let pick = (*pick != Choice::Uniform).then(|| PickSpec::Member(pick.clone()));
        let version = match is_versioned || self.versions() > 1 {
            true => VersionPick::Uniform,
            false => VersionPick::Newest,
        };
        match of {
            Get => {
                let range = self.range.clone().map(|range| match range {
                    // Of an object that has less, the whole is read.
                    RangeSpec::Fixed(Size(size)) if !self.list_existing => {
                        RangeSpec::Fixed(Size(size.min(largest)))
                    }
                    range => range,
                });
                OpSpec::Get(GetOp { get: set, weight, pick, range, version, ..GetOp::default() })
            }
            Stat => OpSpec::Stat(StatOp { stat: set, weight, pick, version, ..StatOp::default() }),
            Put if self.post => OpSpec::Post(PostOp { post: set, weight, ..PostOp::default() }),
            Put => {
                let put_as = is_versioned.then_some(PutAs::Version);
                OpSpec::Put(PutOp { put: set, weight, put_as, ..PutOp::default() })
            }
            Delete => {
                let is_mixed = self.benchmark != Delete;
                let batch = if is_mixed { 1 } else { self.batch.unwrap_or(BATCH) };
                let version = if is_versioned { version } else { VersionPick::Newest };
                OpSpec::Delete(DeleteOp {
                    delete: set,
                    weight,
                    batch,
                    version,
                    ..DeleteOp::default()
                })
            }
            _ => OpSpec::List(ListOp {
                list: set,
                weight,
                page: self.max_keys.unwrap_or(MAX_KEYS),
                versions: self.versions() > 1,
                ..ListOp::default()
            }),
        }
    }

    /// Returns how large objects are.
    fn sizes(&self) -> Result<SizeDist, LineError> {
        let written = match &self.size {
            Some(Sizes::List(sizes)) => return Ok(SizeDist::List(sizes.clone().into())),
            Some(Sizes::Written(text)) => text,
            None if self.is_embedded && self.benchmark.size() == SIZE => SIZE_EMBEDDED,
            None => self.benchmark.size(),
        };
        let sizes = SizeDist::parse(written, self.random_size);
        sizes.map_err(|error| refuse("--obj.size", error))
    }

    fn picked(&self) -> Result<Choice, LineError> {
        let Some(law) = self.pick.as_deref() else { return Ok(Choice::Uniform) };
        match (law, law.strip_prefix("zipf:").map(str::parse)) {
            ("uniform", _) => Ok(Choice::Uniform),
            ("sequential", _) => Ok(Choice::Sequential),
            (_, Some(Ok(theta))) => Ok(Choice::Zipf(theta)),
            _ => refused(format!("--pick {law}: choose uniform, zipf:THETA or sequential")),
        }
    }

    fn pacing(&self) -> Result<PacingSpec, LineError> {
        let Some(rate) = &self.rate else {
            let given = [
                ("--arrivals", self.arrivals.is_some()),
                ("--max-in-flight", self.max_in_flight.is_some()),
            ];
            if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
                return refused(format!("{flag} does nothing without --rate; add it"));
            }
            return Ok(self.rps_limit.map_or(PacingSpec::Closed, PacingSpec::Capped));
        };
        if self.rps_limit.is_some() {
            let text =
                "--rate is a schedule and --rps-limit a cap on a closed loop; give one of them";
            return refused(text.to_owned());
        }
        schedule(rate, self.arrivals.as_deref(), self.max_in_flight).map_err(LineError::Form)
    }

    fn until(&self) -> Result<Vec<UntilSpec>, LineError> {
        let (window, percent) = (self.autoterm_window, self.autoterm_percent);
        let given = [("--autoterm.dur", window.is_some()), ("--autoterm.pct", percent.is_some())];
        let mut rules = Vec::new();
        if self.autoterm {
            let window = window.unwrap_or(STEADY_WINDOW);
            let percent = percent.unwrap_or(STEADY_PERCENT);
            if window.is_zero() {
                return Err(refuse("--autoterm.dur", "must be above 0"));
            }
            if !(percent > 0.0 && percent.is_finite()) {
                return Err(refuse("--autoterm.pct", "must be above 0"));
            }
            rules.push(UntilSpec::Steady { window, percent });
        } else if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            return refused(format!("{flag} does nothing without --autoterm; add it"));
        }
        for rule in &self.until {
            let rule = rule.parse().map_err(|reason: String| refuse("--until", reason))?;
            rules.push(UntilSpec::Known(rule));
        }
        Ok(rules)
    }
}

fn size_spec(sizes: &SizeDist) -> SizeSpec {
    SizeSpec::Drawn(match sizes {
        SizeDist::Fixed(size) => return SizeSpec::Fixed(Size(*size)),
        SizeDist::LogUniform { min, max } => {
            SizeLaw::LogUniform(SizeRange { min: *min, max: *max })
        }
        SizeDist::Histogram(bars) => {
            let share = |bar: &SizeBar| Share { value: Size(bar.up_to), weight: bar.weight };
            SizeLaw::Histogram(Shares(bars.iter().map(share).collect()))
        }
        SizeDist::LogNormal { median, sigma } => {
            SizeLaw::Lognormal { median: Size(*median), sigma: *sigma }
        }
        SizeDist::List(sizes) => SizeLaw::List(sizes.iter().map(|size| Size(*size)).collect()),
        SizeDist::Steps { .. } => unreachable!("warp has no words for such sizes"),
    })
}

fn refuse(flag: &str, why: impl std::fmt::Display) -> LineError {
    LineError::Form(format!("{flag}: {why}"))
}

fn refused<T>(text: String) -> Result<T, LineError> {
    Err(LineError::Form(text))
}

/// The fields of a workload that mean the same of every benchmark, and their flags.
const FLAGS: [(&str, &str); 24] = [
    ("workers", "--concurrent"),
    ("prefix", "--prefix"),
    ("existing", "--list-existing"),
    ("version", "--list-existing"),
    ("part", "--part.size"),
    ("versions", "--versions"),
    ("compress_ratio", "--data.compress"),
    ("dedupe_ratio", "--data.dedupe"),
    ("content", "--obj.generator"),
    ("duration", "--duration"),
    ("until", "--until"),
    ("capped", "--rps-limit"),
    ("max_in_flight", "--max-in-flight"),
    ("open", "--rate"),
    ("batch", "--batch"),
    ("page", "--max-keys"),
    ("range", "--range-size"),
    ("pick", "--pick"),
    ("hold", "--hold"),
    ("parts", "--parts"),
    ("at_once", "--part.concurrent"),
    ("members", "--objs.per"),
    ("compress", "--compress"),
    ("copies", "--copies"),
];
