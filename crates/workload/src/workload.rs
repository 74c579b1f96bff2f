//! The validated workload.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{ObjectId, OpKind, Seed, StageKind, WorkerId};

use crate::data::DataRule;
use crate::{KeyLayout, Keys, Pacing, Pick, SizeDist, StopRule};

/// What a run will do, checked.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What the run is called in its directory and report, such as `s3-get`.
    pub name: String,
    /// Fixes every choice.
    pub seed: Seed,
    /// How many workers issue operations, one at a time each.
    pub concurrency: NonZeroU32,
    /// Where the run's own objects lie.
    pub layout: KeyLayout,
    /// How large the run's own objects are, or what else one operation moves.
    pub sizes: SizeDist,
    /// What they hold.
    pub data: DataRule,
    /// What is there when the measured stage begins.
    pub population: Population,
    /// How many versions of each object of the population the prepare stage uploads.
    pub versions: u32,
    /// What the measured stage does.
    pub activity: Activity,
    /// Which object an operation that changes none is about.
    pub pick: Pick,
    /// When operations start.
    pub pacing: Pacing,
    /// When the measured stage ends, unless it runs out of work or a stop rule holds before.
    pub duration: Duration,
    /// The first of these to hold ends the measured stage.
    pub stop_rules: Vec<StopRule>,
    /// Whether content that is read is checked.
    pub verify: Verify,
}

/// What is there when the measured stage begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Population {
    /// The prepare stage uploads this many objects, shared evenly by the workers; may be 0.
    Uploaded(u64),
    /// Objects that were there before, which the run reads or was told to delete.
    Existing(Arc<[ExistingObject]>),
}

/// An object that was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingObject {
    /// Its key.
    pub key: String,
    /// Its size.
    pub size: u64,
}

/// What the measured stage does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Operations by weight, on objects chosen at random.
    Mix {
        /// The weights.
        mix: Mix,
        /// Which part of an object a GET reads.
        range: RangeRule,
        /// Whether a PUT overwrites an object of the worker's own instead of writing a new one.
        overwrite: bool,
        /// Whether a PUT is an HTML form, and so of the kind POST.
        post: bool,
        /// Whether a PUT writes another version of an object, and the others are about versions.
        versioned: bool,
    },
    /// Complete listings; each worker lists its own prefix.
    List {
        /// Entries per page.
        page_size: u32,
    },
    /// Deletes the whole population, `batch` objects a call, in seeded order.
    Delete {
        /// Objects per call.
        batch: u32,
    },
    /// Sets until when versions of the population may not be removed.
    Retention {
        /// For how long from then on.
        hold: Duration,
    },
    /// Reads parts of one object, whose parts are the population.
    Multipart {
        /// How many there are.
        parts: NonZeroU32,
        /// How large each is.
        part_bytes: u64,
    },
    /// Uploads objects in parts, one upload a worker.
    MultipartPut {
        /// How many of an object.
        parts: NonZeroU32,
        /// How large each is.
        part_bytes: u64,
        /// How many of an upload are under way at a time.
        part_concurrency: NonZeroU32,
    },
    /// Adds to objects of the worker's own.
    Append {
        /// After so many parts comes another object.
        parts: NonZeroU32,
    },
    /// Reads files of one zip archive; the files are the population.
    Zip,
    /// Uploads tar archives that the store takes apart.
    Snowball {
        /// Objects in an archive.
        members: NonZeroU32,
        /// Whether it is compressed.
        compress: bool,
    },
    /// Uploads contents that the store writes under several names.
    Fanout {
        /// How many.
        copies: NonZeroU32,
    },
}

impl Activity {
    /// Returns the kinds of operation that are its result; there may be others beside them, such as
    /// those that begin and complete an upload.
    pub fn kinds(&self) -> Vec<OpKind> {
        match self {
            Self::Mix { mix, post, .. } => {
                let sent = |(kind, _): &(OpKind, u32)| if *post { posted(*kind) } else { *kind };
                mix.weights().iter().map(sent).collect()
            }
            Self::List { .. } => vec![OpKind::List],
            Self::Delete { .. } => vec![OpKind::Delete],
            Self::Retention { .. } => vec![OpKind::Retention],
            Self::Multipart { .. } | Self::Zip => vec![OpKind::Get],
            Self::MultipartPut { .. } => vec![OpKind::PutPart],
            Self::Append { .. } => vec![OpKind::Append],
            Self::Snowball { .. } => vec![OpKind::Put],
            Self::Fanout { .. } => vec![OpKind::Post],
        }
    }

    /// Tells whether an operation of it moves content.
    pub fn moves_bytes(&self) -> bool {
        self.kinds().into_iter().any(OpKind::moves_bytes)
    }

    /// Tells whether it needs something that is there before.
    pub(crate) fn prepares(&self) -> bool {
        !matches!(
            self,
            Self::MultipartPut { .. }
                | Self::Append { .. }
                | Self::Snowball { .. }
                | Self::Fanout { .. }
        )
    }

    /// Tells whether its operations are about things chosen out of a population that stays as it
    /// is.
    pub(crate) fn picks(&self) -> bool {
        match self {
            Self::Mix { mix, .. } => {
                mix.weights().iter().all(|(kind, _)| matches!(kind, OpKind::Get | OpKind::Stat))
            }
            Self::Retention { .. } | Self::Multipart { .. } | Self::Zip => true,
            _ => false,
        }
    }
}

/// Returns the kind that is sent where a PUT is an HTML form.
pub(crate) const fn posted(kind: OpKind) -> OpKind {
    match kind {
        OpKind::Put => OpKind::Post,
        other => other,
    }
}

/// Operations with weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    weights: Vec<(OpKind, u32)>,
}

impl Mix {
    /// The kinds that a mix can ask for; other activities have kinds of their own.
    pub const KINDS: [OpKind; 5] =
        [OpKind::Put, OpKind::Get, OpKind::Delete, OpKind::List, OpKind::Stat];

    /// Returns the mix; kinds with weight 0 are left out. `None` when nothing is left or a kind
    /// stands twice.
    pub fn new(weights: impl IntoIterator<Item = (OpKind, u32)>) -> Option<Self> {
        let mut weights: Vec<_> = weights.into_iter().filter(|(_, weight)| *weight > 0).collect();
        weights.sort_unstable();
        let twice = weights.windows(2).any(|pair| pair[0].0 == pair[1].0);
        (!weights.is_empty() && !twice).then_some(Self { weights })
    }

    /// Returns the weight of `kind`.
    pub fn weight(&self, kind: OpKind) -> u32 {
        self.weights.iter().find(|(each, _)| *each == kind).map_or(0, |(_, weight)| *weight)
    }

    /// Returns the kinds with their weights.
    pub fn weights(&self) -> &[(OpKind, u32)] {
        &self.weights
    }

    /// Tells whether the population changes while it runs, so that each worker needs a share of its
    /// own.
    pub fn changes_population(&self) -> bool {
        self.weight(OpKind::Delete) > 0 || (self.weight(OpKind::Put) > 0 && self.weights.len() > 1)
    }

    /// Returns a deck of operations in which each kind stands as often as its weight says.
    pub fn deck(&self) -> Vec<OpKind> {
        let gcd = self.weights.iter().fold(0, |gcd, (_, weight)| greatest_common(gcd, *weight));
        let repeat =
            |&(kind, weight): &(OpKind, u32)| std::iter::repeat_n(kind, (weight / gcd) as usize);
        self.weights.iter().flat_map(repeat).collect()
    }
}

const fn greatest_common(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

/// Which part of an object a GET reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeRule {
    /// All of it.
    Whole,
    /// A log-uniform length from 1/256 of the size up to the size, at a random offset.
    Random,
    /// This many bytes at a random offset.
    Fixed(u64),
}

/// How content that is read is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Every byte.
    EveryByte,
    /// The length only, because the content is not known (objects that were there before).
    LengthOnly,
    /// Switched off; the length is still checked.
    Off,
    /// Neither the content nor the length is known.
    Nothing,
}

/// A workload that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidWorkload {
    /// The field of the spec, such as `objects.count`.
    pub field: Cow<'static, str>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for InvalidWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for InvalidWorkload {}

impl Workload {
    /// Returns how many objects there are when the measured stage begins.
    pub fn population_count(&self) -> u64 {
        match &self.population {
            Population::Uploaded(count) => *count,
            Population::Existing(objects) => objects.len() as u64,
        }
    }

    /// Tells whether operations are about versions by the store's own names, which those that write
    /// give.
    pub fn names_versions(&self) -> bool {
        self.versions > 1
            || matches!(
                self.activity,
                Activity::Retention { .. } | Activity::Mix { versioned: true, .. }
            )
    }

    /// Returns how many operations the prepare stage has.
    pub fn prepare_ops_count(&self) -> u64 {
        match (&self.population, &self.activity) {
            (Population::Existing(_), _) => 0,
            (Population::Uploaded(count), Activity::Multipart { .. }) => *count + 2,
            (Population::Uploaded(count), Activity::Zip) => (*count).min(1),
            (Population::Uploaded(count), _) => *count * u64::from(self.versions),
        }
    }

    /// Returns how many loops record operations, each one at a time: of each upload in parts there
    /// are several.
    pub fn lanes_count(&self, stage: StageKind) -> NonZeroU32 {
        match (stage, &self.activity) {
            (StageKind::Measure, Activity::MultipartPut { part_concurrency, .. }) => {
                self.concurrency.saturating_mul(*part_concurrency)
            }
            _ => self.concurrency,
        }
    }

    /// Returns the object that the whole population is part of: the archive, or the object whose
    /// parts are read.
    pub fn whole_id(&self) -> ObjectId {
        match self.activity {
            Activity::Multipart { .. } => ObjectId::new(WorkerId(0), 0),
            // The numbers up to the share of the first worker are those of the files.
            _ => ObjectId::new(WorkerId(0), self.share_of(WorkerId(0))),
        }
    }

    /// Returns how many objects of the population belong to `worker`: shares differ by one at most.
    pub fn share_of(&self, worker: WorkerId) -> u64 {
        let workers = u64::from(self.concurrency.get());
        let (each, rest) = (self.population_count() / workers, self.population_count() % workers);
        each + u64::from(u64::from(worker.0) < rest)
    }

    /// Returns the id of object `index` of the population.
    pub fn population_id(&self, index: u64) -> ObjectId {
        match &self.population {
            Population::Uploaded(_) => {
                let workers = u64::from(self.concurrency.get());
                ObjectId::new(WorkerId((index % workers) as u32), index / workers)
            }
            Population::Existing(_) => ObjectId::new(WorkerId(0), index),
        }
    }

    /// Returns object `number` of `worker`'s share of the population.
    pub fn share_id(&self, worker: WorkerId, number: u64) -> ObjectId {
        self.population_id(number * u64::from(self.concurrency.get()) + u64::from(worker.0))
    }

    /// Returns the keys of the population.
    pub fn keys(&self) -> Keys {
        match &self.population {
            Population::Existing(objects) => Keys::Existing(Arc::clone(objects)),
            Population::Uploaded(_) => {
                Keys::Generated { layout: self.layout.clone(), seed: self.seed.0 }
            }
        }
    }

    /// Returns the size of object `id`.
    pub fn size_of(&self, id: ObjectId) -> u64 {
        match &self.population {
            Population::Existing(objects) => objects[id.number() as usize].size,
            Population::Uploaded(_) => self.sizes.size(self.seed.0, id),
        }
    }
}
