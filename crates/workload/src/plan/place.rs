//! Lays a checked plan out for one run: its own keys and buckets, what was found, who fills what.

mod named;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use plimsoll_model::{Seed, StageKind};

use self::named::Names;
use super::check::UseKind;
use super::checked::{Job, Members, Objects, Plan, SetIndex, Stage, TargetIndex, Traced};
use super::path::{FieldPath, InvalidField};
use super::rules::SloSpec;
use super::spec::{ArchiveKind, PutAs, VersionPick, WorkloadFile};
use super::work::{Op, OpAct, Work};
use crate::archive::TAR_PREFIX_MAX;
use crate::files::FilePlan;
use crate::objects::{
    Change, Members as Present, ObjectSet, ObjectsJob, PREPARES, SetBuckets, TRACKED_MAX,
};
use crate::trace::TraceDeal;
use crate::{ExistingObject, KeyLayout, Keys, SizeDist, Verify};

/// More buckets of one set than this are a slip of the pen.
pub(super) const BUCKETS_MAX: u64 = 100_000;

type Laid<T> = Result<T, InvalidField>;

/// What a plan is laid out for.
pub struct Placing<'a> {
    /// The run's id, part of every name of the run's own.
    pub run: &'a str,
    /// Fixes every choice.
    pub seed: Seed,
    /// By target: the bucket of sets that name none; empty where there are no buckets.
    pub buckets: &'a [String],
    /// By set: the objects that were found, of sets that consist of such.
    pub found: &'a BTreeMap<SetIndex, Arc<[ExistingObject]>>,
}

/// A plan, laid out for a run.
pub struct Placed {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Fixes every choice.
    pub seed: Seed,
    /// The sets that hold objects, by their numbers; after those of the plan come parts of them
    /// that operations name by patterns of their own.
    pub sets: Arc<[Option<Arc<ObjectSet>>]>,
    /// The target of each of them.
    pub targets: Vec<TargetIndex>,
    /// Who is in them before the first stage.
    pub members: Arc<[Present]>,
    /// The stages, as in the plan.
    pub stages: Vec<PlacedStage>,
    /// What is done to files; its stages have the numbers of the plan's.
    pub files: Option<FilePlan>,
}

/// The jobs of a stage, laid out.
#[derive(Clone, Debug, Default)]
pub struct PlacedStage {
    /// Those on objects.
    pub objects: Vec<PlacedJob>,
    /// Those on files, by their numbers in the plan's stage.
    pub files: Vec<usize>,
    /// The number of the first worker on files: workers of all jobs are numbered once, those on
    /// objects first.
    pub files_worker_first: u32,
}

/// A job on objects, laid out.
#[derive(Clone, Debug)]
pub struct PlacedJob {
    /// Its number in the plan's stage.
    pub job: usize,
    /// Where it works.
    pub target: TargetIndex,
    /// The number of its first loop: of uploads in parts a worker has several.
    pub worker_first: u32,
    /// Its work. Who is in the sets is as before the first stage; see
    /// [`ObjectsJob::with_members`].
    pub work: Arc<ObjectsJob>,
}

impl Plan {
    /// Returns the buckets of a target in which its sets lie, by pattern; `own` is the bucket of
    /// sets that name none.
    pub fn buckets_in_use(&self, target: TargetIndex, own: Option<&str>) -> Option<String> {
        let sets = self.sets.iter().filter(|set| set.target == target);
        let buckets = sets.filter_map(|set| match &set.members {
            Members::Named(named) if named.buckets.is_some() => {
                named.buckets.as_ref().map(ToString::to_string)
            }
            Members::Objects(objects) => {
                let numbers = objects.keys.buckets.map(|count| format!("{{1..{count}}}"));
                own.map(|own| format!("{own}{}", numbers.unwrap_or_default()))
            }
            _ => own.map(str::to_owned),
        });
        let buckets: BTreeSet<String> = buckets.collect();
        let listed = || buckets.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        if buckets.is_empty() { own.map(str::to_owned) } else { Some(listed()) }
    }
}

impl Placed {
    /// Refuses a search by a kind of operation that its job does not do: every probe would keep
    /// what is asked of it.
    fn check_slo(&self, (index, stage): (usize, &Stage)) -> Laid<()> {
        let Some(search) = &stage.search else { return Ok(()) };
        let on_objects = self.stages[index].objects.iter().find(|of| of.job == search.job);
        let kinds = match (on_objects, &self.files) {
            (Some(job), _) => job.work.kinds(),
            (None, Some(files)) => files.kinds_of(&stage.jobs[search.job]),
            (None, None) => return Ok(()),
        };
        let is_other = |slo: &&SloSpec| slo.kind.is_some_and(|kind| !kinds.contains(&kind));
        let Some(slo) = search.slo.iter().find(is_other) else { return Ok(()) };
        let kinds: Vec<String> = kinds.iter().map(|of| of.name().to_ascii_lowercase()).collect();
        Err(stage.path.field("search").field("slo").refuse(format!(
            "{slo}: the job whose rate is looked for does no such operation; it does {}",
            kinds.join(", ")
        )))
    }

    /// Returns who is in the sets after a stage in which all of this was changed; refuses more than
    /// can be kept track of.
    pub fn after(
        &self,
        members: &Arc<[Present]>,
        changes: Vec<(SetIndex, Change)>,
    ) -> Result<Arc<[Present]>, String> {
        let mut by_set: BTreeMap<SetIndex, Vec<Change>> = BTreeMap::new();
        for (set, change) in changes {
            by_set.entry(set).or_default().push(change);
        }
        let mut after = members.to_vec();
        for (index, changes) in by_set {
            let set = self.sets[index.0].as_ref().expect("objects were changed");
            let tracked = after[index.0].after(set, changes);
            after[index.0] = tracked.map_err(|count| {
                let name = &self.plan.sets[index.0].name;
                format!(
                    "the {count} members of set `{name}` are too many to keep track of one by one, \
                     as a later stage needs them; at most {TRACKED_MAX}"
                )
            })?;
        }
        Ok(after.into())
    }

    /// Tells whether one of many parts of a stage can have changed this about the sets by so many
    /// operations.
    pub fn can_change(
        &self,
        (stage, ops_max): (usize, u64),
        members: &[Present],
        changes: &[(SetIndex, Change)],
    ) -> bool {
        let mut by_set: BTreeMap<SetIndex, Vec<&Change>> = BTreeMap::new();
        changes.iter().for_each(|(set, change)| by_set.entry(*set).or_default().push(change));
        let fills_max = self.stages[stage].objects.len() as u64;
        by_set.into_iter().all(|(index, changes)| {
            let set = self.sets.get(index.0).and_then(Option::as_ref);
            set.is_some_and(|set| members[index.0].can_change(set, (fills_max, ops_max), &changes))
        })
    }

    /// Tells whether the store's own names of members of a set are kept.
    pub fn keeps_names(&self, set: SetIndex) -> bool {
        let mut jobs = self.stages.iter().flat_map(|stage| &stage.objects);
        jobs.next().is_some_and(|job| job.work.versioned.get(set.0) == Some(&true))
    }

    /// Returns what the keys of the run's own objects on a target begin with, each once, with
    /// the `/` at their end.
    pub fn bases(&self, target: TargetIndex) -> Vec<String> {
        let own = self.sets.iter().zip(&self.targets).filter(|(_, of)| **of == target);
        let mut bases: Vec<String> = own
            .filter_map(|(set, _)| Some(set.as_ref()?.base.clone()))
            .filter(|base| !base.is_empty())
            .collect();
        bases.sort_unstable();
        bases.dedup();
        bases
    }

    /// Returns the buckets that the run's own objects on a target lie in, each once; `None` is the
    /// target's own.
    pub fn own_buckets(&self, target: TargetIndex) -> Vec<Option<String>> {
        let own = self.sets.iter().zip(&self.targets).filter(|(_, of)| **of == target);
        let own = own.filter_map(|(set, _)| set.as_ref()).filter(|set| set.is_own());
        let mut buckets: Vec<Option<String>> = own
            .flat_map(|set| {
                (0..set.buckets.count()).map(|index| set.buckets.name(index).map(str::to_owned))
            })
            .collect();
        buckets.sort_unstable();
        buckets.dedup();
        buckets
    }
}

impl Job {
    /// Tells whether it works on files by their blocks or names.
    pub fn is_on_files(&self, plan: &Plan) -> bool {
        let of_files =
            |set: &SetIndex| matches!(plan.set(*set).members, Members::Files(_) | Members::Tree(_));
        match &self.work {
            Work::Blocks(_) | Work::Names { .. } => true,
            other => other.sets().iter().any(of_files),
        }
    }
}

impl Plan {
    /// Lays the plan out for a run. An error is about what no run can do with this target or these
    /// objects, as far as the workload itself shows it.
    pub fn place(self: &Arc<Self>, placing: &Placing<'_>) -> Laid<Placed> {
        let (sets, targets, names, filled) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let salts = [0, PREPARES];
        let mut room = Room { plan: self, placing, sets, targets, names, filled, salts };
        for index in 0..self.sets.len() {
            let set = room.set(SetIndex(index))?;
            room.sets.push(set);
            room.targets.push(self.sets[index].target);
            room.names.push(room.names(SetIndex(index)));
        }
        let mut known = room.known_before();
        let mut stages = Vec::with_capacity(self.stages.len());
        for stage in &self.stages {
            refuse_for_now(self, stage)?;
            stages.push(room.stage(stage, &mut known)?);
        }
        room.complete(&mut stages);
        let files = FilePlan::of(self, placing)?;
        let present = |set: &Option<Arc<ObjectSet>>| match set {
            Some(set) if !set.is_own() => Present::all(),
            _ => Present::default(),
        };
        let members = room.sets.iter().map(present).collect();
        let Room { sets, targets, .. } = room;
        let (plan, seed) = (Arc::clone(self), placing.seed);
        let placed = Placed { plan, seed, sets: sets.into(), targets, members, stages, files };
        self.stages.iter().enumerate().try_for_each(|at| placed.check_slo(at))?;
        Ok(placed)
    }
}

impl WorkloadFile {
    /// Refuses what a run would refuse before it looks at its targets.
    pub fn judge(&self) -> Laid<()> {
        let plan = Arc::new(self.check()?);
        let (buckets, found) = (vec![String::new(); plan.targets.len()], BTreeMap::new());
        let seed = plan.seed.unwrap_or(Seed(0));
        plan.place(&Placing { run: "check", seed, buckets: &buckets, found: &found }).map(drop)
    }
}

/// Refuses what the language says and no engine does yet.
fn refuse_for_now(plan: &Plan, stage: &Stage) -> Laid<()> {
    for job in &stage.jobs {
        let at = job.path.field("work");
        let what = match &job.work {
            Work::Remove { .. } if job.is_on_files(plan) => "removing files before the run ends",
            _ if plan.set(job.work.sets()[0]).target != job.target => {
                "work on members as another target shows them"
            }
            _ => continue,
        };
        return Err(at.refuse(format!("{what} cannot be run yet")));
    }
    Ok(())
}

/// What is laid out so far.
struct Room<'a> {
    plan: &'a Plan,
    placing: &'a Placing<'a>,
    sets: Vec<Option<Arc<ObjectSet>>>,
    targets: Vec<TargetIndex>,
    /// By set: its names, where they are the user's own.
    names: Vec<Option<Names>>,
    /// The shared sets that were filled in the stages so far.
    filled: Vec<SetIndex>,
    /// What tells the choices of the next job apart: of one that measures, and of another.
    salts: [u64; 2],
}

impl Room<'_> {
    fn set(&self, index: SetIndex) -> Laid<Option<Arc<ObjectSet>>> {
        let set = self.plan.set(index);
        let placed = match &set.members {
            Members::Objects(objects) => self.own(index, objects)?,
            Members::Named(named) => self.named(index, named)?,
            Members::Existing(_) => {
                let found = self.placing.found.get(&index).cloned().unwrap_or_default();
                let plain = ObjectSet::plain(&set.name, Keys::Existing(Arc::clone(&found)));
                ObjectSet { count: found.len() as u64, ..plain }
            }
            Members::Files(_) | Members::Tree(_) => return Ok(None),
        };
        Ok(Some(Arc::new(placed)))
    }

    fn own(&self, index: SetIndex, objects: &Objects) -> Laid<ObjectSet> {
        let set = self.plan.set(index);
        let Placing { run, seed, .. } = *self.placing;
        let mut layout = KeyLayout::for_run(&objects.keys.prefix, run, objects.keys.per_worker);
        let base = layout.base.clone();
        let is_own = |other: &super::checked::Set| matches!(other.members, Members::Objects(_));
        if self.plan.sets.iter().filter(|other| is_own(other)).count() > 1 {
            layout.base = format!("{}{}/", layout.base, set.name);
        }
        let buckets = match objects.keys.buckets {
            None => SetBuckets::OfTarget,
            Some(count) => {
                let bucket = self.placing.buckets.get(set.target.0).map_or("", |name| name);
                let names = (1..=count).map(|number| format!("{bucket}{number}"));
                SetBuckets::Several(names.collect())
            }
        };
        Ok(ObjectSet {
            // Sizes of the members of one set tell nothing of those of another.
            seed: seed.0 ^ (index.0 as u64) << 48,
            count: objects.count,
            owners: self.owners(index),
            versions: objects.versions,
            laws: vec![objects.sizes.clone()],
            data: objects.data.clone(),
            data_files: objects.data_files.clone(),
            base,
            buckets,
            part_bytes: objects.part_bytes,
            is_zip: objects.archive == Some(ArchiveKind::Zip),
            is_named: self.plan.names_members(index),
            trace: objects.traced.as_ref().map(Traced::trace),
            ..ObjectSet::plain(&set.name, Keys::Generated { layout, seed: seed.0 })
        })
    }

    /// Returns over how many owners a set is spread: the workers who fill it, or else those who
    /// work on it first.
    fn owners(&self, index: SetIndex) -> NonZeroU32 {
        let jobs = || self.plan.jobs().filter(move |job| job.work.sets().contains(&index));
        let fills = jobs().find(|job| matches!(job.work, Work::Fill { .. }));
        fills.or_else(|| jobs().next()).map_or(NonZeroU32::MIN, |job| job.workers)
    }

    /// Returns what is known of the content of each set before the first stage.
    fn known_before(&self) -> Vec<Verify> {
        let known = |set: &Option<Arc<ObjectSet>>| match set.as_ref().map(|set| &set.keys) {
            Some(Keys::Existing(found)) if found.iter().all(|object| object.size.is_some()) => {
                Verify::LengthOnly
            }
            Some(Keys::Existing(_)) => Verify::Nothing,
            Some(Keys::Named(_)) => Verify::Nothing,
            _ => Verify::EveryByte,
        };
        self.sets.iter().map(known).collect()
    }

    fn stage(&mut self, stage: &Stage, known: &mut Vec<Verify>) -> Laid<PlacedStage> {
        let mut placed = PlacedStage::default();
        let mut worker_first = 0;
        // What each job has, to which the sets of all jobs of the stage are added at the end.
        let mut jobs = Vec::new();
        if stage.is_on_buckets() {
            // No worker does it.
            return Ok(placed);
        }
        for (index, job) in stage.jobs.iter().enumerate() {
            if job.is_on_files(self.plan) {
                placed.files.push(index);
                continue;
            }
            let (work, laws) = self.work(job, known)?;
            let [measures, prepares] = &mut self.salts;
            let salt = if stage.kind == StageKind::Measure { measures } else { prepares };
            *salt += 1;
            jobs.push((index, job, work, laws, *salt - 1));
        }
        let changed: Vec<SetIndex> = stage
            .jobs
            .iter()
            .flat_map(|job| super::check::uses_of(&job.work))
            .filter(|used| used.kind != UseKind::Read)
            .map(|used| used.set)
            .collect();
        let still: Arc<[bool]> =
            (0..self.sets.len()).map(|set| !changed.contains(&SetIndex(set))).collect();
        for (index, job, work, laws, salt) in jobs {
            let (job_known, filled) = self.known_to(job, known);
            let traced = self.traced(&work, job.workers);
            let work = ObjectsJob {
                seed: self.placing.seed,
                salt,
                workers: job.workers,
                owner_first: worker_first,
                sets: self.sets.iter().cloned().collect(),
                members: Arc::default(),
                pages: Arc::default(),
                known: job_known,
                filled,
                still: Arc::clone(&still),
                laws,
                versioned: Arc::default(),
                keeps_members: true,
                deal: job.deal,
                traced,
                work,
            };
            let loops = work.loops_count().get();
            let target = job.target;
            let work = Arc::new(work);
            placed.objects.push(PlacedJob { job: index, target, worker_first, work });
            worker_first += loops;
        }
        placed.files_worker_first = worker_first;
        for job in &stage.jobs {
            self.learn(job, known);
            self.note_filled(job);
        }
        Ok(placed)
    }

    /// Deals the trace that work replays to its workers, if it replays one.
    fn traced(&self, work: &Work, workers: NonZeroU32) -> Option<Arc<TraceDeal>> {
        let Work::Replay { set, .. } = work else { return None };
        Some(TraceDeal::new(self.plan.trace_of(*set), workers))
    }

    /// Takes note of what is known of content after a job.
    fn learn(&self, job: &Job, known: &mut [Verify]) {
        let Work::Fill { sets, .. } = &job.work else { return };
        for set in sets {
            if known[set.0] == Verify::Nothing {
                known[set.0] = Verify::EveryByte;
            }
        }
    }

    /// Returns the work of a job in the sets as they are laid out, and the laws of the sizes that
    /// its operations put.
    fn work(&mut self, job: &Job, known: &mut Vec<Verify>) -> Laid<(Work, Arc<[u16]>)> {
        let mut laws = Vec::new();
        let work = match &job.work {
            Work::Objects(ops) => {
                check_versions(ops)?;
                let mut placed = ops.clone();
                for op in &mut placed {
                    laws.push(self.op(op, known)?);
                }
                Work::Objects(placed)
            }
            Work::PutTar { set, .. } => {
                self.check_names(*set)?;
                job.work.clone()
            }
            Work::PutParts { set, parts: Some(parts), part_bytes, .. } => {
                let sizes = SizeDist::Fixed(u64::from(parts.get()) * part_bytes);
                laws.push(self.law(*set, &sizes, &job.path.field("work"))?);
                job.work.clone()
            }
            other => other.clone(),
        };
        Ok((work, laws.into()))
    }

    /// Refuses a set whose names do not fit into a tar archive.
    fn check_names(&self, index: SetIndex) -> Laid<()> {
        let set = self.sets[index.0].as_ref().expect("archives are of objects");
        match &set.keys {
            // The worker's own prefix comes in between.
            Keys::Generated { layout, .. } if layout.base.len() + 16 > TAR_PREFIX_MAX => {
                let at = self.plan.set(index).path.field("keys.prefix");
                Err(at.refuse("is too long for the names in a tar archive"))
            }
            _ => Ok(()),
        }
    }

    /// Has an operation be about the set that its own names or sizes make, and returns the law of
    /// the size that it puts.
    fn op(&mut self, op: &mut Op, known: &mut Vec<Verify>) -> Laid<u16> {
        let set = Arc::clone(self.sets[op.set.0].as_ref().expect("a mix is on objects"));
        let sizes = match &op.act {
            OpAct::Put { sizes, .. } => Some(sizes),
            _ => None,
        };
        if set.is_own() {
            return sizes.map_or(Ok(0), |sizes| self.law(op.set, sizes, &op.path));
        }
        self.named_op(op, known).map(|()| 0)
    }

    /// Returns the law of a set by which these sizes are drawn.
    fn law(&mut self, index: SetIndex, sizes: &SizeDist, path: &FieldPath) -> Laid<u16> {
        let set = self.sets[index.0].as_mut().expect("a mix is on objects");
        let same = |law: &Option<SizeDist>| law.as_ref() == Some(sizes);
        if let Some(known) = set.laws.iter().position(same) {
            return Ok(known as u16);
        }
        if set.laws.len() == ObjectSet::LAWS_MAX {
            let most = ObjectSet::LAWS_MAX;
            return Err(path.refuse(format!("a set has at most {most} laws of size")));
        }
        let set = Arc::make_mut(set);
        if set.laws == [None] {
            set.laws.clear();
        }
        set.laws.push(Some(sizes.clone()));
        Ok(set.laws.len() as u16 - 1)
    }

    /// Tells whether any work is about versions of a set by the store's own names.
    fn is_versioned(&self, index: SetIndex) -> bool {
        let by_name = |op: &Op| {
            let writes = matches!(op.act, OpAct::Put { put_as: PutAs::Version, .. });
            op.set == index && (writes || op.act.is_by_name())
        };
        self.plan.names_members(index)
            || self.plan.jobs().any(|job| match &job.work {
                Work::Objects(ops) => ops.iter().any(by_name),
                Work::Retention { set, .. } => *set == index,
                _ => false,
            })
    }

    /// Gives all jobs all sets, and has the last stage that uses a set forget who is in it.
    fn complete(&self, stages: &mut [PlacedStage]) {
        let sets: Arc<[Option<Arc<ObjectSet>>]> = self.sets.iter().cloned().collect();
        let is_own = |set: &Option<Arc<ObjectSet>>| set.as_ref().is_none_or(|set| set.is_own());
        let members: Arc<[Present]> = sets
            .iter()
            .map(|set| if is_own(set) { Present::default() } else { Present::all() })
            .collect();
        let versioned: Arc<[bool]> =
            (0..sets.len()).map(|set| self.is_versioned(SetIndex(set))).collect();
        let mut used_later: Vec<SetIndex> = Vec::new();
        for (stage, of_plan) in stages.iter_mut().zip(&self.plan.stages).rev() {
            if of_plan.search.is_some() {
                // It comes again, as long as the search goes on.
                used_later.extend(stage.objects.iter().flat_map(|placed| placed.work.work.sets()));
            }
            for placed in &mut stage.objects {
                let work = Arc::make_mut(&mut placed.work);
                (work.sets, work.members) = (Arc::clone(&sets), Arc::clone(&members));
                work.versioned = Arc::clone(&versioned);
                work.keeps_members = work.work.sets().iter().any(|set| used_later.contains(set));
                let rest = std::iter::repeat_n(Verify::Nothing, sets.len() - work.known.len());
                work.known = work.known.iter().copied().chain(rest).collect();
                let rest = std::iter::repeat_n(None, sets.len() - work.filled.len());
                work.filled = work.filled.iter().copied().chain(rest).collect();
                let rest = std::iter::repeat_n(false, sets.len() - work.still.len());
                work.still = work.still.iter().copied().chain(rest).collect();
            }
            for placed in &stage.objects {
                used_later.extend(placed.work.work.sets());
                used_later.extend(placed.work.filled.iter().flatten());
            }
        }
    }
}

/// Refuses to read the newest version beside operations that put further ones: which one that is
/// depends on the moment.
fn check_versions(ops: &[Op]) -> Laid<()> {
    for op in ops {
        let puts = |other: &Op| {
            other.set == op.set && matches!(other.act, OpAct::Put { put_as: PutAs::Version, .. })
        };
        if op.act.version() == Some(VersionPick::Newest) && ops.iter().any(puts) {
            let reason = "must be `uniform` beside puts of further versions: which one is the \
                          newest would depend on the moment";
            return Err(op.path.field("version").refuse(reason));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "place_tests.rs"]
pub(crate) mod tests;
