//! A workload that was checked: numbers instead of texts, indices instead of names.

mod named;
mod traced;

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{Interface, Seed, StageKind};

use super::Pattern;
use super::path::FieldPath;
use super::rules::SloSpec;
use super::spec::{ArchiveKind, DealSpec, ExistingOf, KeysSpec, TargetSpec, TreeOf, WorkloadFile};
use super::units::{Cap, RateRange, SizeRange};
use super::work::Work;
use crate::data::DataRule;
use crate::{ArrivalLaw, DataFileSpec, Pacing, SizeDist, StopRule};
use plimsoll_model::Ability;

pub use named::{NamedObjects, SharedContent};
pub use traced::Traced;

/// The place of a target in a plan, 0-based.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetIndex(pub usize);

/// The place of a set in a plan, 0-based.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetIndex(pub usize);

/// What a run will do, checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the run is called.
    pub name: String,
    /// Fixes every choice; `None`: one is drawn when the run starts.
    pub seed: Option<Seed>,
    /// Where the load goes; at least one.
    pub targets: Vec<Target>,
    /// What there is.
    pub sets: Vec<Set>,
    /// What is done, in order: repeats and steps are stages of their own.
    pub stages: Vec<Stage>,
    /// What is done to what the run did not make; each needs leave when the run starts.
    pub consents: Vec<Consent>,
    /// The workload as written.
    pub file: WorkloadFile,
}

/// Where load goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// What the file calls it; empty where it does not.
    pub name: String,
    /// What it is; `None`: it is named when the run starts.
    pub spec: Option<TargetSpec>,
    /// Where it is described: the map of its own kind.
    pub path: FieldPath,
}

impl Target {
    /// Tells whether it names what is written to it by itself.
    pub fn names_members(&self) -> bool {
        self.spec.as_ref().is_some_and(TargetSpec::names_members)
    }

    /// Tells whether it is filers of a SeaweedFS.
    pub(crate) fn is_filer(&self) -> bool {
        matches!(&self.spec, Some(TargetSpec::Seaweedfs(seaweed)) if seaweed.is_filer())
    }

    /// Tells whether it states a checksum of what was there before.
    pub fn states_sums(&self) -> bool {
        self.spec.as_ref().is_some_and(TargetSpec::states_sums)
    }
}

/// A population.
#[derive(Clone, Debug)]
pub struct Set {
    /// What the file calls it.
    pub name: String,
    /// Where it lies.
    pub target: TargetIndex,
    /// Another target on which its members are seen, and what stands before their names there.
    pub also_on: Option<(TargetIndex, String)>,
    /// What it consists of.
    pub members: Members,
    /// Whether what the run did not make may be changed.
    pub touch: bool,
    /// Where it is described.
    pub path: FieldPath,
}

/// What a set consists of.
#[derive(Clone, Debug)]
pub enum Members {
    /// Objects of the run's own.
    Objects(Objects),
    /// Objects whose names are the user's own.
    Named(NamedObjects),
    /// Objects that were there before.
    Existing(ExistingOf),
    /// Files.
    Files(Files),
    /// Directories and the entries in them.
    Tree(Tree),
}

/// Objects of the run's own.
#[derive(Clone, Debug)]
pub struct Objects {
    /// How many a fill makes.
    pub count: u64,
    /// How large they are; `None` where the work says it.
    pub sizes: Option<SizeDist>,
    /// Has a fill upload them in parts of so many bytes.
    pub part_bytes: Option<u64>,
    /// How many versions of each a fill makes.
    pub versions: u32,
    /// Has a fill put all of them into one archive.
    pub archive: Option<ArchiveKind>,
    /// What they hold.
    pub data: DataRule,
    /// The files that their bytes come from, where they do.
    pub data_files: Vec<DataFileSpec>,
    /// How their keys are laid out.
    pub keys: KeysSpec,
    /// The trace whose objects they are, where they are of one.
    pub traced: Option<Traced>,
}

/// Files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Where those of the run's own lie; dealt to the workers in turn.
    pub directories: Vec<String>,
    /// How they are called.
    pub names: FileNames,
    /// How large each is; drawn from the range.
    pub size: SizeRange,
}

/// How files are called. Two that come to the same path are the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileNames {
    /// By a form in which `$jobname`, `$jobnum` and `$filenum` are replaced.
    Made {
        /// The form.
        format: String,
        /// What `$jobname` stands for.
        job: String,
        /// How many workers have files of their own: worker w has those of number w modulo this.
        workers: u32,
        /// How many files each of them has.
        count: u32,
    },
    /// By a list, which all workers share.
    Listed(Vec<String>),
    /// By whole paths: they were there before and are taken as they are.
    Paths(Vec<String>),
    /// By numbers: they are those of a trace.
    Traced(Traced),
}

/// Directories and the entries in them. Two trees that are alike are the same tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Where it lies; with several, worker w is in the one of number w modulo their count.
    pub directories: Vec<String>,
    /// The top directory's name.
    pub name: String,
    /// What it looks like; without a name, which stands above.
    pub shape: TreeOf,
}

impl Tree {
    /// Returns the tree of the same directories that has no entries: trees that differ in those
    /// alone share their directories.
    pub(crate) fn without_entries(&self) -> Self {
        let shape = TreeOf {
            entries: 0,
            leaves_only: false,
            shared_names: false,
            of_directories: false,
            ..self.shape.clone()
        };
        Self { shape, ..self.clone() }
    }
}

/// Jobs that run at once.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What it is called; of repeated stages the same each time.
    pub name: String,
    /// Whether its figures are a result.
    pub kind: StageKind,
    /// Whether it is left out where a target does not offer what its jobs need.
    pub if_offered: bool,
    /// Which repetition it is, 0-based.
    pub iteration: u32,
    /// Which step of a rate it is, 0-based, where it is one.
    pub step: Option<u32>,
    /// How long its jobs last at most.
    pub duration: Option<Duration>,
    /// After how many operations of all jobs it ends.
    pub ops_max: Option<u64>,
    /// The first of these to hold ends it.
    pub stop_rules: Vec<StopRule>,
    /// Whether what is cached of the run's own files is dropped before it.
    pub drop_caches: bool,
    /// Whether the first failed operation ends the whole run.
    pub end_on_failure: bool,
    /// Makes it the probe of a search.
    pub search: Option<Search>,
    /// What is done at once; nothing: a pause.
    pub jobs: Vec<Job>,
    /// How much of what is limited for all of its jobs each agent of a fleet has; `None`: as much
    /// as of all.
    pub weights: Option<Arc<[u32]>>,
    /// Where it is described.
    pub path: FieldPath,
}

/// The highest rate that meets all conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The job that has the rate, 0-based.
    pub job: usize,
    /// Between which rates it is looked for; `None`: a closed loop tells where to begin.
    pub rate: Option<RateRange>,
    /// What each probe is held against.
    pub slo: Vec<SloSpec>,
    /// How closely the rate is to be known, in percent.
    pub precision_percent: f64,
    /// How long all probes together last at most.
    pub budget: Duration,
    /// How arrivals lie about the rate.
    pub arrivals: ArrivalLaw,
    /// How many operations may be under way at once.
    pub max_in_flight: NonZeroU32,
}

/// Work that several workers do.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is called.
    pub name: String,
    /// Where it works.
    pub target: TargetIndex,
    /// How many workers it has.
    pub workers: NonZeroU32,
    /// The number of its first worker: the workers of all jobs of a stage are numbered once.
    pub worker_first: u32,
    /// How many operations each worker keeps in flight.
    pub depth: NonZeroU32,
    /// When operations start.
    pub pacing: JobPacing,
    /// How long it lasts at most, after its ramp.
    pub duration: Option<Duration>,
    /// After how many operations it ends.
    pub ops_max: Option<Amount>,
    /// After how many bytes it ends.
    pub bytes_max: Option<Amount>,
    /// How long it runs before what is measured begins.
    pub ramp: Duration,
    /// How long it goes on after that has ended.
    pub ramp_down: Duration,
    /// How long after the stage's start each worker begins; drawn from the range.
    pub start_delay: RangeInclusive<Duration>,
    /// Pauses between operations.
    pub think: Option<Think>,
    /// Whether every byte that is read is checked, as far as the run knows it.
    pub verify: bool,
    /// Jobs of one group are reported in one row; `None`: it has a row of its own.
    pub group: Option<u32>,
    /// Which agent does it; `None`: all share its workers.
    pub agent: Option<String>,
    /// How much of its workers each agent of a fleet has, in the order of their parts; `None`: as
    /// much as of all.
    pub weights: Option<Arc<[u32]>>,
    /// How operations on files reach the kernel; `None`: the first that the machine allows.
    pub interface: Option<Interface>,
    /// How members and sequential work are shared among workers.
    pub deal: DealSpec,
    /// The share of operations that may fail, in percent; `None`: no limit of the job's own.
    pub error_percent_max: Option<f64>,
    /// What is done.
    pub work: Work,
    /// What the target must offer for it, each once, in order.
    pub needs: Vec<Ability>,
    /// Where it is described.
    pub path: FieldPath,
}

impl Job {
    /// Returns how many workers it has, or operations under way where these are more.
    pub fn in_flight_max(&self) -> u64 {
        self.in_flight().max(self.workers.get().into())
    }

    /// Returns how many operations on objects it may have under way; each needs a session.
    pub(super) fn sessions(&self) -> u64 {
        if self.needs_files() { 0 } else { self.in_flight() }
    }

    /// Returns how many operations it may have under way.
    fn in_flight(&self) -> u64 {
        let workers = u64::from(self.workers.get());
        // A call on names blocks its worker, as every call does by this interface.
        let blocks = self.needs_files()
            && (matches!(self.work, Work::Names { .. })
                || self.interface == Some(Interface::Psync));
        match (&self.pacing, &self.work) {
            _ if blocks => workers,
            (JobPacing::Shared(Pacing::Open(open)), _) => open.max_in_flight.get().into(),
            (_, Work::PutParts { at_once, .. }) => {
                workers * u64::from(self.depth.max(*at_once).get())
            }
            _ => workers * u64::from(self.depth.get()),
        }
    }

    /// Tells whether its work is on files and on nothing else.
    pub(super) fn needs_files(&self) -> bool {
        self.needs.contains(&Ability::Blocks) || self.needs.contains(&Ability::Names)
    }
}

/// When the operations of a job start.
#[derive(Clone, Debug, PartialEq)]
pub enum JobPacing {
    /// In one way for all workers together.
    Shared(Pacing),
    /// In a closed loop, with caps on each worker.
    CappedEach {
        /// The cap on reads.
        read: Option<Cap>,
        /// The cap on writes.
        write: Option<Cap>,
        /// How the gaps are.
        arrivals: ArrivalLaw,
    },
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Over all workers of the job.
    All(u64),
    /// For each of them.
    Each(u64),
}

impl Amount {
    /// Returns what it comes to over `workers` workers.
    pub fn total(self, workers: NonZeroU32) -> u64 {
        match self {
            Self::All(amount) => amount,
            Self::Each(amount) => amount.saturating_mul(workers.get().into()),
        }
    }

    /// Returns what one worker, the one of that number out of so many, is given of it: a function
    /// of its number, so that it does not matter who runs which workers.
    pub fn share(self, worker: u32, workers: NonZeroU32) -> u64 {
        match self {
            Self::Each(amount) => amount,
            Self::All(amount) => {
                let workers = u64::from(workers.get());
                amount / workers + u64::from(u64::from(worker) < amount % workers)
            }
        }
    }
}

/// Pauses between the operations of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// How long a pause is, counted from the end of the last operation in flight.
    pub pause: Duration,
    /// How much of it is spent computing instead of sleeping.
    pub spin: Duration,
    /// After how many operations it comes.
    pub every_ops: NonZeroU32,
}

/// Something done to what the run did not make.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Consent {
    /// The set whose members it is done to.
    pub set: SetIndex,
    /// The target that they lie on.
    pub target: TargetIndex,
    /// What is done.
    pub change: Change,
    /// In which buckets it is done to names of the user's own; `None`: in the target's own.
    pub buckets: Option<Pattern>,
    /// To which keys of these it is done; `None` where it is done to no keys, or where the set
    /// tells which.
    pub keys: Option<Pattern>,
    /// The work that does it.
    pub path: FieldPath,
    /// The first stage in which that is done, 0-based.
    pub stage: usize,
}

/// What is done to something that the run did not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It is written or overwritten.
    Writes,
    /// It is removed.
    Removes,
    /// Its buckets are removed.
    Buckets,
}

impl Stage {
    /// Tells whether a job of it may be done before its time is up.
    pub fn may_end_early(&self, job: &Job) -> bool {
        self.ops_max.is_some()
            || !self.stop_rules.is_empty()
            || job.ops_max.is_some()
            || job.bytes_max.is_some()
            || job.work.is_finite()
    }

    /// Tells whether its jobs make or remove buckets, which the process does that leads the run.
    pub fn is_on_buckets(&self) -> bool {
        self.jobs.iter().any(|job| job.work.is_on_buckets())
    }

    /// Returns how many workers it has, or operations under way where these are more.
    pub fn in_flight_max(&self) -> u64 {
        self.jobs.iter().map(Job::in_flight_max).sum()
    }

    /// Returns how many connections it may have, or workers with files open where these are more.
    pub fn connections_max(&self) -> u64 {
        self.jobs.iter().map(|job| job.sessions().max(job.workers.get().into())).sum()
    }

    /// Returns how many workers all of its jobs have.
    pub fn workers(&self) -> u32 {
        self.jobs.iter().map(|job| job.workers.get()).sum()
    }

    /// Returns the longest time that it takes, ramps included, where it has one.
    pub fn duration_max(&self) -> Option<Duration> {
        let of_job = |job: &Job| {
            let time = [job.duration, self.duration].into_iter().flatten().min()?;
            Some(time + job.ramp + job.ramp_down + *job.start_delay.end())
        };
        if let Some(search) = &self.search {
            return Some(search.budget);
        }
        match self.jobs.is_empty() {
            true => self.duration,
            false => {
                let times: Option<Vec<Duration>> = self.jobs.iter().map(of_job).collect();
                times?.into_iter().max()
            }
        }
    }
}

impl Plan {
    /// Tells whether the target of a set names its members by itself; not of what laying out makes
    /// of names of the user's own.
    pub(crate) fn names_members(&self, set: SetIndex) -> bool {
        self.sets.get(set.0).is_some_and(|set| self.targets[set.target.0].names_members())
    }

    /// Tells whether members on a target are read and to be checked that were there before the run.
    pub fn checks_what_was_there(&self, target: TargetIndex) -> bool {
        let was_there = |set: &SetIndex| matches!(self.set(*set).members, Members::Existing(_));
        let mut jobs = self.jobs().filter(|job| job.target == target && job.verify);
        jobs.any(|job| job.work.sets().iter().any(was_there))
    }

    /// Returns the target of that number.
    pub fn target(&self, index: TargetIndex) -> &Target {
        &self.targets[index.0]
    }

    /// Returns the set of that number.
    pub fn set(&self, index: SetIndex) -> &Set {
        &self.sets[index.0]
    }

    /// Returns the files of a set of work on blocks.
    pub fn files(&self, set: SetIndex) -> &Files {
        match &self.set(set).members {
            Members::Files(files) => files,
            other => unreachable!("it was checked that {other:?} are files"),
        }
    }

    /// Returns the tree of a set of work on names.
    pub fn tree(&self, set: SetIndex) -> &Tree {
        match &self.set(set).members {
            Members::Tree(tree) => tree,
            other => unreachable!("it was checked that {other:?} are a tree"),
        }
    }

    /// Returns all jobs, stage after stage.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.stages.iter().flat_map(|stage| &stage.jobs)
    }

    /// Returns what a target must offer, each ability with the first job that needs it.
    pub fn needs(&self, target: TargetIndex) -> Vec<(Ability, FieldPath)> {
        let mut found: Vec<(Ability, FieldPath)> = Vec::new();
        let jobs = self.stages.iter().filter(|stage| !stage.if_offered);
        for job in jobs.flat_map(|stage| &stage.jobs).filter(|job| job.target == target) {
            for need in &job.needs {
                if found.iter().all(|(known, _)| known != need) {
                    found.push((*need, job.path.field("work")));
                }
            }
        }
        found
    }

    /// Returns what else a target may offer, each ability once: without it stages are left out.
    pub fn wishes(&self, target: TargetIndex) -> Vec<Ability> {
        let needs = self.needs(target);
        let stages = self.stages.iter().filter(|stage| stage.if_offered);
        let jobs = stages.flat_map(|stage| &stage.jobs).filter(|job| job.target == target);
        let mut wishes: Vec<Ability> = jobs.flat_map(|job| job.needs.iter().copied()).collect();
        wishes.retain(|wish| needs.iter().all(|(need, _)| need != wish));
        wishes.sort_unstable();
        wishes.dedup();
        wishes
    }
}

impl Files {
    /// Tells whether they were there before the run.
    pub fn are_there(&self) -> bool {
        matches!(self.names, FileNames::Paths(_))
    }

    /// Returns how many there are, of all workers.
    pub fn count(&self) -> u64 {
        match &self.names {
            FileNames::Made { workers, count, .. } => u64::from(*workers) * u64::from(*count),
            FileNames::Listed(names) | FileNames::Paths(names) => names.len() as u64,
            FileNames::Traced(traced) => traced.trace().made_first().len() as u64,
        }
    }
}

impl Members {
    /// Returns how many members a fill makes, and how many bytes they hold.
    pub fn amount(&self) -> (u64, f64) {
        if let Some(traced) = self.traced() {
            let trace = traced.trace();
            let sizes = trace.made_first();
            return (sizes.len() as u64, sizes.iter().map(|size| *size as f64).sum());
        }
        match self {
            Self::Objects(objects) => {
                let count = objects.count.saturating_mul(objects.versions.into());
                let mean = objects.sizes.as_ref().map_or(0.0, SizeDist::mean);
                (count, count as f64 * mean)
            }
            Self::Named(named) => {
                let buckets = named.buckets.as_ref().map_or(1, Pattern::count);
                let count = buckets.saturating_mul(named.keys.count());
                (count, count as f64 * named.sizes.as_ref().map_or(0.0, SizeDist::mean))
            }
            Self::Files(files) if !files.are_there() => {
                let mean = files.size.min as f64 / 2.0 + files.size.max as f64 / 2.0;
                (files.count(), files.count() as f64 * mean)
            }
            Self::Files(_) | Self::Existing(_) | Self::Tree(_) => (0, 0.0),
        }
    }

    /// Returns the largest size that a member has, where it is known.
    pub fn bytes_max(&self) -> Option<u64> {
        match self {
            Self::Objects(objects) => objects.sizes.as_ref().map(SizeDist::max),
            Self::Named(named) => named.sizes.as_ref().map(SizeDist::max),
            Self::Files(files) => Some(files.size.max),
            Self::Existing(_) | Self::Tree(_) => None,
        }
    }
}
