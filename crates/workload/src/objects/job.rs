//! Work on objects that several workers do.

use std::num::NonZeroU32;
use std::sync::Arc;

use plimsoll_model::{ObjectId, OpKind, Seed, WorkerId};

use super::slices::Slice;
use super::source::UploadPlan;
use super::{Below, Members, ObjectSet, ObjectSource, Pages, PlannedOp};
use crate::plan::spec::DealSpec;
use crate::plan::{Op, OpAct, SetIndex, Work};
use crate::trace::{TraceDeal, TraceTimes};
use crate::{Permutation, Random};

const MEASURE_DOMAIN: u64 = 0x6d65_6173;
const DELETE_DOMAIN: u64 = 0x6465_6c65;

/// Part of the salt of a job that prepares: what warms a store up is not to read what is measured
/// in the same order, which a cache would answer.
pub(crate) const PREPARES: u64 = 1 << 31;
/// From this bit of the salt on there is the number of a draw. A run has at most 2^16 jobs, so that
/// none has it in its own.
const DRAW_SHIFT: u32 = 16;

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
    /// Every byte, and the length, where it begins as what the run writes; what begins in another
    /// way may be anybody's, and is counted only.
    IfOurs,
}

/// Work on objects that several workers do in a stage.
#[derive(Clone, Debug)]
pub struct ObjectsJob {
    /// Fixes every choice.
    pub seed: Seed,
    /// Tells the choices of jobs apart; 0 for the first that measures. See `PREPARES`.
    pub salt: u64,
    /// How many workers it has in all, whoever runs them.
    pub workers: NonZeroU32,
    /// Who owns the members that its first worker puts: workers of all jobs of a stage are
    /// numbered once.
    pub owner_first: u32,
    /// The sets of the workload by their numbers; `None` for those that hold no objects.
    pub sets: Arc<[Option<Arc<ObjectSet>>]>,
    /// Who is in each set when the stage begins.
    pub members: Arc<[Members]>,
    /// By operation of a mix that lists page by page: the pages when the stage begins.
    pub pages: Arc<[Option<Pages>]>,
    /// By set: what is known of the content that is read.
    pub known: Arc<[Verify]>,
    /// By set: the one that was filled by the run and has all of its members, so that nothing else
    /// can be in their place; `None` where that is not known.
    pub filled: Arc<[Option<SetIndex>]>,
    /// By set: whether no job of the stage changes who is in it.
    pub still: Arc<[bool]>,
    /// By operation of a mix, or of work that puts one kind of member: by which law of its set the
    /// size of what it puts is drawn.
    pub laws: Arc<[u16]>,
    /// By set: whether any work of the run is about its versions by the store's own names.
    pub versioned: Arc<[bool]>,
    /// Whether it is asked afterwards who is in the sets.
    pub keeps_members: bool,
    /// How members are dealt to workers.
    pub deal: DealSpec,
    /// What its workers have of the trace that it replays, if it does.
    pub traced: Option<Arc<TraceDeal>>,
    /// What is done.
    pub work: Work,
}

impl ObjectsJob {
    /// Returns the operations of a worker of it.
    pub fn source(self: &Arc<Self>, worker: WorkerId) -> ObjectSource {
        ObjectSource::new(self, worker)
    }

    /// Returns the job with choices of its own for each number, 0 being the job as it is: a stage
    /// that is made again and again, as a search does, is not to ask for what it asked for before.
    #[must_use]
    pub fn drawn_anew(&self, draw: u8) -> Self {
        Self { salt: self.salt | u64::from(draw) << DRAW_SHIFT, ..self.clone() }
    }

    /// Returns the job for a stage that begins with these members.
    #[must_use]
    pub fn with_members(&self, members: Arc<[Members]>) -> Self {
        let pages = |op: &Op| match op.act {
            OpAct::List { page, versions, by_page: true, .. } => {
                let set = self.set(op.set);
                Some(Pages::new(set, &members[op.set.0], (page.get(), versions)))
            }
            _ => None,
        };
        let pages = match &self.work {
            Work::Objects(ops) => ops.iter().map(pages).collect(),
            _ => Arc::default(),
        };
        Self { members, pages, ..self.clone() }.with_doubts()
    }

    /// Returns the job where what was not filled for certain may be anybody's.
    fn with_doubts(mut self) -> Self {
        let is_doubted = |set: usize| {
            let filled = self.filled.get(set).copied().flatten();
            let is_whole = filled.is_some_and(|by| self.members[by.0].doubtful().is_empty());
            let is_shared = self.sets[set].as_ref().is_some_and(|set| set.shared.is_some());
            is_shared && !is_whole
        };
        let known = |(set, known): (usize, &Verify)| match known {
            Verify::EveryByte if is_doubted(set) => Verify::IfOurs,
            known => *known,
        };
        self.known = self.known.iter().enumerate().map(known).collect();
        self
    }

    /// Returns the pages of what an operation of the mix lists, where it lists page by page.
    pub fn pages(&self, op: usize) -> Option<&Pages> {
        self.pages.get(op)?.as_ref()
    }

    /// Returns a set that it works on.
    pub fn set(&self, index: SetIndex) -> &ObjectSet {
        self.sets[index.0].as_deref().expect("work on objects has sets of objects")
    }

    /// Returns who is in a set when the stage begins.
    pub fn members(&self, index: SetIndex) -> &Members {
        &self.members[index.0]
    }

    /// Returns up to so many members of a set, spread over it, whose fate is known.
    pub fn sample(&self, index: SetIndex, most: u64) -> Vec<super::Held> {
        let (set, members) = self.population(index);
        let count = members.count(set);
        let places = (0..most.min(count)).map(|place| place * count / most.min(count));
        let held = places.map(|place| members.newest(set, place));
        held.filter(|held| members.doubtful().binary_search(&held.id).is_err()).collect()
    }

    /// Returns a set and who is in it.
    pub(super) fn population(&self, index: SetIndex) -> (&ObjectSet, &Members) {
        (self.set(index), self.members(index))
    }

    /// Returns the chance by which a worker chooses.
    pub(super) fn choices(&self, worker: WorkerId) -> Random {
        let domain = MEASURE_DOMAIN.wrapping_add(self.salt << 32);
        Random::new(self.seed.0, domain, u64::from(worker.0))
    }

    /// Returns who owns what a worker puts.
    pub(super) const fn owner(&self, worker: WorkerId) -> u32 {
        self.owner_first + worker.0
    }

    /// Returns the law of size of what operation `op` puts.
    pub(super) fn law_of(&self, op: usize) -> u16 {
        self.laws.get(op).copied().unwrap_or(0)
    }

    /// Returns the order in which all of a set are removed: names of a shared one as they come.
    pub fn removal_order(&self, index: SetIndex) -> RemovalOrder {
        let (set, members) = self.population(index);
        match set.shared {
            Some(_) => RemovalOrder::AsNamed,
            None => {
                let order = Permutation::new(self.seed.0 ^ DELETE_DOMAIN, members.count(set));
                RemovalOrder::Mixed(order)
            }
        }
    }

    /// Returns the member at a position of that order.
    pub fn removed(&self, index: SetIndex, order: &RemovalOrder, position: u64) -> ObjectId {
        let (set, members) = self.population(index);
        members.listed(set, order.at(position)).id
    }

    /// Returns how the content that is read of a set is checked.
    pub fn verify(&self, index: SetIndex) -> Verify {
        self.known[index.0]
    }

    /// Returns the prefix that operation `op` of the mix lists.
    pub fn listed_prefix(&self, index: SetIndex, op: usize, below: Below) -> String {
        match below {
            Below::Owner(owner) => self.set(index).keys.prefix_of(owner),
            Below::Page(page) => self.pages_of(op).prefix(self.set(index), page),
        }
    }

    /// Returns what operation `op` of the mix has to find below a prefix in that bucket, and what
    /// it may find; `None` where it may find others, or where members come and go.
    pub fn listed_below(
        &self,
        index: SetIndex,
        op: usize,
        (below, bucket): (Below, u32),
    ) -> Option<Listed> {
        let (set, members) = self.population(index);
        if !set.is_own() || !self.still[index.0] {
            return None;
        }
        let Work::Objects(ops) = &self.work else { return None };
        let OpAct::List { versions, .. } = ops[op].act else { return None };
        let own_prefix = |owner: WorkerId| set.keys.prefix_of(owner);
        let owner = match below {
            Below::Owner(owner) if own_prefix(owner) != own_prefix(WorkerId(owner.0 ^ 1)) => {
                Some(owner)
            }
            _ => None,
        };
        let is_below = |id: &ObjectId| match below {
            Below::Owner(_) => {
                owner.is_none_or(|owner| id.owner() == owner) && set.bucket_of(*id) == bucket
            }
            Below::Page(page) => self.pages_of(op).is_on(set, page, *id),
        };
        let doubtful = members.doubtful();
        let is_certain = |id: &ObjectId| doubtful.binary_search(id).is_err();
        let certain = match below {
            Below::Owner(_) => {
                members.entries(set, versions).filter(is_below).filter(is_certain).collect()
            }
            Below::Page(page) => {
                let held = self.pages_of(op).held(page).iter();
                held.map(|held| held.id).filter(is_certain).collect()
            }
        };
        Some(Listed { certain, doubtful: doubtful.iter().copied().filter(is_below).collect() })
    }

    fn pages_of(&self, op: usize) -> &Pages {
        self.pages(op).expect("the operation lists page by page")
    }

    /// Returns how it uploads in parts, where it does.
    pub fn upload(&self) -> Option<UploadPlan> {
        match &self.work {
            Work::PutParts { at_once, .. } => Some(UploadPlan::Each { at_once: *at_once }),
            Work::Fill { sets, .. } => {
                let set = self.set(sets[0]);
                set.part_bytes?;
                Some(match set.count {
                    1 => UploadPlan::Together,
                    _ => UploadPlan::Each { at_once: NonZeroU32::MIN },
                })
            }
            _ => None,
        }
    }

    /// Returns the size of a member that is uploaded in parts, and how many these are.
    pub fn upload_of(&self, index: SetIndex, id: ObjectId) -> (u64, u64) {
        let set = self.set(index);
        let of_size = |part_bytes: u64| {
            let size = set.size_of(id).expect("it was checked that the set has sizes");
            (size, size.div_ceil(part_bytes))
        };
        match &self.work {
            Work::PutParts { parts: Some(parts), part_bytes, .. } => {
                (u64::from(parts.get()) * part_bytes, parts.get().into())
            }
            Work::PutParts { part_bytes, .. } => of_size(*part_bytes),
            _ => of_size(set.part_bytes.expect("a fill in parts is of a set with parts")),
        }
    }

    /// Returns how many loops record operations, each one at a time: of each upload in parts there
    /// are several.
    pub fn loops_count(&self) -> NonZeroU32 {
        match self.upload() {
            Some(UploadPlan::Each { at_once }) => self.workers.saturating_mul(at_once),
            _ => self.workers,
        }
    }

    /// Returns the kinds of operation that are its result; there may be others beside them, such as
    /// those that begin and complete an upload.
    pub fn kinds(&self) -> Vec<OpKind> {
        let mut kinds: Vec<OpKind> = match &self.work {
            Work::Objects(ops) => ops.iter().map(|op| kind_of(&op.act)).collect(),
            Work::PutParts { .. } => vec![OpKind::PutPart],
            Work::GetPart { .. } | Work::GetFromZip { .. } => vec![OpKind::Get],
            Work::Append { .. } => vec![OpKind::Append],
            Work::Fanout { .. } => vec![OpKind::Post],
            Work::Retention { .. } => vec![OpKind::Retention],
            Work::Remove { .. } => vec![OpKind::Delete],
            Work::ReadBack(_) => vec![OpKind::Get],
            Work::Replay { .. } => {
                self.traced.as_ref().map_or(Vec::new(), |traced| traced.trace().kinds())
            }
            Work::Fill { .. } if self.upload().is_some() => vec![OpKind::PutPart],
            _ => vec![OpKind::Put],
        };
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Returns the id of the archive that a set is.
    pub fn archive_id(&self, index: SetIndex) -> ObjectId {
        super::source::zip_id(self.set(index))
    }

    /// Tells whether what the store calls what is written has to be known, as it is in a set whose
    /// members have versions.
    pub fn is_versioned(&self, index: SetIndex) -> bool {
        self.set(index).versions > 1 || self.versioned[index.0]
    }

    /// Returns the instants at which a worker's operations are wanted, where a trace says it.
    pub fn times(&self, worker: WorkerId) -> Option<TraceTimes> {
        let Work::Replay { speed, .. } = self.work else { return None };
        Some(TraceTimes::new(self.traced.as_ref()?.places(worker), speed))
    }

    /// Returns how many operations it has in all, where the work itself says it.
    pub fn ops_count(&self) -> Option<u64> {
        let of_set = |index: &SetIndex| {
            let (set, members) = self.population(*index);
            (set, members.count(set))
        };
        match &self.work {
            Work::Fill { sets, .. } => Some(sets.iter().map(|set| fill_ops(of_set(set).0)).sum()),
            Work::ReadBack(sets) => Some(sets.iter().map(|set| of_set(set).1).sum()),
            Work::Remove { sets, batch } => {
                Some(sets.iter().map(|set| self.removals(*set, batch.get().into())).sum())
            }
            Work::Replay { .. } => Some(self.traced.as_ref()?.trace().ops().len() as u64),
            Work::Objects(ops) => match &**ops {
                [op] => match op.act {
                    OpAct::Delete { batch, is_all: true, .. } => {
                        Some(of_set(&op.set).1.div_ceil(batch.get().into()))
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns how many operations remove all of a set, so many members with each.
    fn removals(&self, index: SetIndex, batch: u64) -> u64 {
        let (set, members) = self.population(index);
        let workers = self.workers.get();
        let of_worker = |worker: u32| {
            let slice = Slice::of(set, self.deal, (WorkerId(worker), workers))?;
            Some(slice.batches(batch))
        };
        let sliced: Option<u64> = (0..workers).map(of_worker).sum();
        sliced.unwrap_or_else(|| members.count(set).div_ceil(batch))
    }

    /// Returns the planned operation that removes what was put, at the end of its time.
    pub(super) fn removal(&self, set: SetIndex, id: ObjectId) -> PlannedOp {
        use super::{ObjectRef, Subject};
        let object = ObjectRef::newest(id, self.set(set).size_of(id), 0);
        PlannedOp { kind: OpKind::Delete, set, subject: Subject::Object(object, None) }
    }
}

/// In which order members of a set are removed.
#[derive(Clone, Copy, Debug)]
pub enum RemovalOrder {
    /// One after the other.
    AsNamed,
    /// In random order.
    Mixed(Permutation),
}

impl RemovalOrder {
    /// Returns the place in the set of what is removed at a position.
    pub fn at(&self, position: u64) -> u64 {
        match self {
            Self::AsNamed => position,
            Self::Mixed(order) => order.at(position),
        }
    }
}

/// What a listing finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// What it has to find, as often as it has to.
    pub certain: Vec<ObjectId>,
    /// What it may find: nobody knows whether it is there.
    pub doubtful: Vec<ObjectId>,
}

/// Returns the kind of operation that an act is.
pub(super) const fn kind_of(act: &OpAct) -> OpKind {
    match act {
        OpAct::Get { .. } => OpKind::Get,
        OpAct::Put { is_form: true, .. } => OpKind::Post,
        OpAct::Put { .. } => OpKind::Put,
        OpAct::Stat { .. } => OpKind::Stat,
        OpAct::Delete { .. } => OpKind::Delete,
        OpAct::List { .. } => OpKind::List,
    }
}

/// Returns how many operations fill a set.
fn fill_ops(set: &ObjectSet) -> u64 {
    match set.part_bytes {
        _ if set.is_zip => set.count.min(1),
        None => set.count * u64::from(set.versions),
        Some(part) => {
            let of = |index| set.size_of(set.id(index)).unwrap_or(0).div_ceil(part) + 2;
            (0..set.count).map(of).sum()
        }
    }
}
