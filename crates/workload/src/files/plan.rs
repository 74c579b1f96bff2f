//! The jobs on files of a plan, laid out for a run: which worker does what, on which files.

mod elsewhere;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub use elsewhere::{FileChanges, NamesThere};
use plimsoll_model::{Interface, OpKind, Seed, WorkerId};

use super::blocks::BlockStream;
use super::fill::{FillPlan, ToFill};
use super::greatest_common;
use super::names::{NameAct, Names, NamesPlan};
use super::present::{Inside, Present};
use super::replay::{self, Replay};
use super::stream::{FileStream, Source, Syncs};
use super::table::{FileTable, TableBuilder, size_of, trimmed};
use crate::Random;
use crate::plan::spec::SECTOR_BYTES;
use crate::plan::{
    Amount, Blocks, FieldPath, InvalidField, Job, Members, Placing, Plan, SetIndex, Stage, Tree,
    Work,
};
use crate::trace::{TraceDeal, TraceTimes};

const STREAM_DOMAIN: u64 = 0x6669_6c65_0000;

/// The jobs on files of a plan, laid out. Its stages have the numbers of the plan's, its workers
/// and jobs those among the ones on files.
pub struct FilePlan {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Fixes every choice.
    pub seed: Seed,
    /// Whether any of the jobs checks what it reads.
    pub verifies: bool,
    /// The files whose blocks are read or written.
    pub table: Arc<FileTable>,
    run: Arc<str>,
    stages: Vec<StagePlan>,
}

struct StagePlan {
    /// The first worker of each job, and how many there are in all.
    firsts: Vec<u32>,
    jobs: Vec<JobPlan>,
}

struct JobPlan {
    /// Its number in the plan's stage.
    index: usize,
    /// How its operations reach the kernel, where it says so.
    interface: Option<Interface>,
    layout: Layout,
}

enum Layout {
    Fill(Arc<FillPlan>),
    /// The files of the workers: worker w has the list of number w modulo their count.
    Blocks(Vec<Arc<[u32]>>),
    /// The same, and what each worker has of the trace.
    Replay(Vec<Arc<[u32]>>, Arc<TraceDeal>),
    Names(Box<NamesPlan>),
}

/// What is laid out so far.
struct Room<'a> {
    plan: &'a Plan,
    run: Arc<str>,
    table: TableBuilder<'a>,
    /// What is known of each tree, of its directories as of a tree without entries.
    trees: Vec<(Tree, Arc<Present>)>,
}

impl FilePlan {
    /// Lays the jobs on files out; `None` where there is none.
    pub(crate) fn of(
        plan: &Arc<Plan>,
        placing: &Placing<'_>,
    ) -> Result<Option<Self>, InvalidField> {
        let Placing { run, seed, .. } = *placing;
        let table = TableBuilder::new(run, seed.0);
        let mut room = Room { plan, run: Arc::from(run), table, trees: Vec::new() };
        let stages = plan.stages.iter().enumerate().map(|(index, stage)| room.stage(index, stage));
        let stages = stages.collect::<Result<Vec<_>, _>>()?;
        if stages.iter().all(|stage| stage.jobs.is_empty()) {
            return Ok(None);
        }
        let verifies = plan.jobs().any(|job| job.is_on_files(plan) && job.verify);
        let table = room.table.finish(verifies);
        let table = table.map_err(|reason| FieldPath::root().field("stages").refuse(reason))?;
        let (plan, table) = (Arc::clone(plan), Arc::new(table));
        Ok(Some(Self { plan, seed, verifies, table, run: room.run, stages }))
    }

    /// Returns how many workers a stage has: those of all of its jobs.
    pub fn workers(&self, stage: usize) -> u32 {
        *self.stages[stage].firsts.last().expect("it begins with 0")
    }

    /// Returns which job of the stage a worker does, and as which worker of it.
    pub fn job_of(&self, stage: usize, worker: WorkerId) -> (usize, u32) {
        let firsts = &self.stages[stage].firsts;
        let job = firsts.partition_point(|first| *first <= worker.0) - 1;
        assert!(job + 1 < firsts.len(), "the stage has no worker {}", worker.0);
        (job, worker.0 - firsts[job])
    }

    /// Returns the job that a worker does.
    pub fn job(&self, stage: usize, worker: WorkerId) -> &Job {
        let job = &self.stages[stage].jobs[self.job_of(stage, worker).0];
        &self.plan.stages[stage].jobs[job.index]
    }

    /// Returns the jobs of a stage, each with how its operations reach the kernel; `None`: by what
    /// is best.
    pub fn jobs(&self, stage: usize) -> impl Iterator<Item = (&Job, Option<Interface>)> {
        let jobs = self.stages[stage].jobs.iter();
        jobs.map(move |job| (&self.plan.stages[stage].jobs[job.index], job.interface))
    }

    /// Has each job that says how its operations reach the kernel do what comes of that.
    pub fn settle_interfaces(&mut self, mut settle: impl FnMut(Interface) -> Interface) {
        for job in self.stages.iter_mut().flat_map(|stage| &mut stage.jobs) {
            job.interface = job.interface.map(&mut settle);
        }
    }

    /// Returns the kinds of operation that are the result of a job.
    pub fn kinds_of(&self, job: &Job) -> Vec<OpKind> {
        match &job.work {
            Work::Blocks(blocks) => {
                let (read, write) = (blocks.reads(), blocks.writes());
                let kinds = [(read, OpKind::Read), (write, OpKind::Write)];
                kinds.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind).collect()
            }
            Work::Names { set, act, .. } => {
                vec![act.kind(self.plan.tree(*set).shape.of_directories)]
            }
            Work::Replay { set, .. } => self.plan.trace_of(*set).kinds(),
            _ => vec![OpKind::Write],
        }
    }

    /// Returns how large a buffer each operation of a worker needs.
    pub fn buffer_bytes(&self, stage: usize, worker: WorkerId) -> usize {
        let bytes = match &self.job(stage, worker).work {
            Work::Fill { block_bytes, .. } => u64::from(*block_bytes),
            Work::Blocks(blocks) => blocks.largest(),
            Work::Names { act, .. } => act.bytes().into(),
            Work::Replay { set, .. } => self.plan.trace_of(*set).largest(),
            _ => 0,
        };
        bytes as usize
    }

    /// Returns every `<directory>/plimsoll/<run>` of the run, each once.
    pub fn run_directories(&self) -> Vec<String> {
        let sets = self.plan.jobs().flat_map(|job| job.work.sets());
        let directories = |set: SetIndex| match &self.plan.set(set).members {
            // Those that were there before lie in none.
            Members::Files(files) => &*files.directories,
            Members::Tree(tree) => &*tree.directories,
            _ => &[],
        };
        let found: BTreeSet<String> =
            sets.flat_map(directories).map(|each| self.run_directory(each)).collect();
        found.into_iter().collect()
    }

    fn run_directory(&self, directory: &str) -> String {
        format!("{}/plimsoll/{}", trimmed(directory), self.run)
    }

    /// Returns the directories that have to be there before a stage begins, each once: those of its
    /// files, and the one that each of its trees lies in.
    pub fn directories_before(&self, stage: usize) -> Vec<String> {
        let mut found = BTreeSet::new();
        for layout in self.stages[stage].jobs.iter().map(|job| &job.layout) {
            if let Layout::Names(names) = layout {
                let Tree { directories, name, .. } = &names.tree;
                let top = |each: &String| format!("{}/{name}", self.run_directory(each));
                found.extend(directories.iter().map(top));
            }
            for &file in layout.lists().iter().flat_map(|list| list.iter()) {
                let entry = self.table.entry(file);
                let parent = entry.path.rsplit_once('/').map(|(parent, _)| parent);
                if let Some(parent) =
                    parent.filter(|parent| !entry.existing && !found.contains(*parent))
                {
                    found.insert(parent.to_owned());
                }
            }
        }
        found.into_iter().collect()
    }

    /// Returns the files of a worker by their numbers in the table; where it fills files, those
    /// that it has a piece of.
    pub fn files_of(&self, stage: usize, worker: WorkerId) -> &[u32] {
        let (job, number) = self.job_of(stage, worker);
        let lists = self.stages[stage].jobs[job].layout.lists();
        if lists.is_empty() { &[] } else { &lists[number as usize % lists.len()] }
    }

    /// Returns the instants at which a worker's operations are wanted, where a trace says it.
    pub fn times(&self, stage: usize, worker: WorkerId) -> Option<TraceTimes> {
        let (job, number) = self.job_of(stage, worker);
        let Work::Replay { speed, .. } = self.job(stage, worker).work else { return None };
        let Layout::Replay(_, deal) = &self.stages[stage].jobs[job].layout else { return None };
        Some(TraceTimes::new(deal.places(WorkerId(number)), speed))
    }

    /// Returns the operations of a worker, a function of the seed, the stage, the worker, and the
    /// number of a draw: a stage that is made again and again has others each time. See
    /// [`crate::objects::ObjectsJob::drawn_anew`].
    pub fn stream(&self, stage: usize, worker: WorkerId, draw: u8) -> FileStream {
        let (index, number) = self.job_of(stage, worker);
        let (job, files) = (self.job(stage, worker), self.files_of(stage, worker));
        let own_seed = match &job.work {
            Work::Blocks(blocks) => blocks.seed,
            _ => None,
        };
        let seed = own_seed.unwrap_or(self.seed.0);
        let own = u64::from(draw) << 32 | u64::from(worker.0);
        let mut random = Random::new(seed, STREAM_DOMAIN + stage as u64, own);
        let drawn = random.next_u64();
        let source = match (&self.stages[stage].jobs[index].layout, &job.work) {
            (Layout::Fill(fill), _) => {
                (Source::Fill(Arc::clone(fill), fill.begin(number)), Syncs::default())
            }
            (Layout::Blocks(_), Work::Blocks(blocks)) => {
                let range = self.plan.files(blocks.set).size;
                let size = |&file: &u32| {
                    (file, size_of(self.seed.0, self.table.entry(file).key_hash, range))
                };
                let sizes: Vec<(u32, u64)> = files.iter().map(size).collect();
                let stream = BlockStream::new(blocks, &sizes, random);
                (Source::Blocks(Box::new(stream)), Syncs::of(blocks, files))
            }
            (Layout::Replay(_, deal), _) => {
                let places = deal.places(WorkerId(number));
                let replay = Replay::new(places, files, job.workers.get());
                (Source::Replay(Box::new(replay)), Syncs::default())
            }
            (Layout::Names(names), _) => {
                let names = Names::new(names, number, &mut random);
                (Source::Names(Box::new(names)), Syncs::default())
            }
            (Layout::Blocks(_), _) => unreachable!("the plan was made for this work"),
        };
        let share = |most: Option<Amount>| {
            most.map_or(u64::MAX, |amount| amount.share(number, job.workers))
        };
        let limits = (share(job.ops_max), share(job.bytes_max));
        FileStream::new(&self.table, job.verify, limits, source, drawn)
    }
}

impl Layout {
    fn lists(&self) -> &[Arc<[u32]>] {
        match self {
            Self::Fill(fill) => &fill.lists,
            Self::Blocks(lists) | Self::Replay(lists, _) => lists,
            Self::Names(_) => &[],
        }
    }
}

impl Room<'_> {
    fn stage(&mut self, number: usize, stage: &Stage) -> Result<StagePlan, InvalidField> {
        let (mut firsts, mut jobs, mut workers) = (vec![0], Vec::new(), 0);
        for (index, job) in stage.jobs.iter().enumerate() {
            if !job.is_on_files(self.plan) {
                continue;
            }
            let layout = match &job.work {
                Work::Fill { sets, block_bytes, direct } => {
                    let at = job.path.field("work.fill");
                    let files = self.filled(&at, number, sets, *block_bytes)?;
                    if *direct {
                        self.check_direct(&at.field("direct"), &files)?;
                    }
                    let fill = FillPlan::new(&files, *block_bytes, job.workers.get());
                    Layout::Fill(Arc::new(fill))
                }
                Work::Blocks(blocks) => {
                    let at = job.path.field("work.blocks.on");
                    Layout::Blocks(self.blocks(&at, number, blocks)?)
                }
                Work::Replay { set, .. } => {
                    let at = job.path.field("work.replay.of");
                    let files = self.traced(&at, number, *set)?;
                    let deal = TraceDeal::new(self.plan.trace_of(*set), job.workers);
                    Layout::Replay(dealt(&files, job.workers.get()), deal)
                }
                Work::Names { set, act, shuffled } => {
                    let tree = self.plan.tree(*set);
                    let (tree_ahead, written) = self.known_of(tree, number);
                    let directories = self.present(&tree.without_entries());
                    Layout::Names(Box::new(NamesPlan {
                        tree: tree.clone(),
                        act: *act,
                        shift: job.deal.shift,
                        shuffled: *shuffled,
                        workers: job.workers.get(),
                        tree_ahead,
                        written,
                        run: Arc::clone(&self.run),
                        directories,
                        entries: self.present(tree),
                        inside: self.inside(tree),
                    }))
                }
                other => unreachable!("{other:?} is not work on files"),
            };
            workers += job.workers.get();
            firsts.push(workers);
            jobs.push(JobPlan { index, interface: job.interface, layout });
        }
        Ok(StagePlan { firsts, jobs })
    }

    /// Returns the files that a stage fills, with their sizes: those of the sets that no stage
    /// before has filled.
    fn filled(
        &mut self,
        at: &FieldPath,
        stage: usize,
        sets: &[SetIndex],
        block_bytes: u32,
    ) -> Result<ToFill, InvalidField> {
        let mut found: Vec<Vec<Vec<u32>>> = Vec::new();
        for set in sets {
            let lists = self.table.add(self.plan.files(*set));
            let mut lists = lists.map_err(|reason| at.refuse(reason))?;
            to_common(&mut lists);
            for list in &mut lists {
                list.retain(|&file| {
                    let draft = self.table.draft(file);
                    let is_new = draft.filled.is_none();
                    if is_new {
                        draft.filled = Some(stage);
                        draft.common = greatest_common(draft.common, u64::from(block_bytes));
                    }
                    is_new
                });
            }
            found.push(lists);
        }
        let mut to_fill = ToFill::default();
        for lists in found {
            // A file that stands in two sets has the larger size of the two.
            let mut sized = |list: Vec<u32>| -> Vec<(u32, u64)> {
                list.into_iter().map(|file| (file, self.table.draft(file).size)).collect()
            };
            let mut lists = lists.into_iter();
            to_fill.common.extend(lists.next().into_iter().flat_map(&mut sized));
            if lists.len() > 0 {
                to_fill.owned.push(lists.map(sized).collect());
            }
        }
        Ok(to_fill)
    }

    fn check_direct(&mut self, at: &FieldPath, files: &ToFill) -> Result<(), InvalidField> {
        match files.files().find(|(_, size)| !size.is_multiple_of(SECTOR_BYTES)) {
            None => Ok(()),
            Some((file, size)) => {
                let path = &self.table.draft(*file).path;
                Err(at.refuse(format!(
                    "`{path}` of {size} bytes is not a multiple of {SECTOR_BYTES}, which `direct` \
                     needs"
                )))
            }
        }
    }

    fn blocks(
        &mut self,
        at: &FieldPath,
        stage: usize,
        blocks: &Blocks,
    ) -> Result<Vec<Arc<[u32]>>, InvalidField> {
        let lists = self.table.add(self.plan.files(blocks.set));
        let lists = lists.map_err(|reason| at.refuse(reason))?;
        for &file in lists.iter().flatten() {
            let draft = self.table.draft(file);
            draft.common = greatest_common(draft.common, blocks.common());
            if blocks.reads() {
                let first = draft.read.map_or(stage, |(first, _)| first);
                draft.read = Some((first, stage));
            }
            if blocks.writes() {
                draft.written_first.get_or_insert(stage);
            }
        }
        Ok(lists.into_iter().map(Arc::from).collect())
    }

    /// Returns the files of a trace that a stage replays.
    fn traced(
        &mut self,
        at: &FieldPath,
        stage: usize,
        set: SetIndex,
    ) -> Result<Vec<u32>, InvalidField> {
        let lists = self.table.add(self.plan.files(set));
        let files = lists.map_err(|reason| at.refuse(reason))?.concat();
        let trace = self.plan.trace_of(set);
        let common = replay::common(&trace);
        let kinds = trace.kinds();
        for &file in &files {
            let draft = self.table.draft(file);
            draft.common = greatest_common(draft.common, common);
            // What is kept of versions is a byte for each common unit, which must not be a byte of
            // the file: then what is read is not checked.
            if kinds.contains(&OpKind::Read) && common >= SECTOR_BYTES {
                draft.read = Some((stage, stage));
            }
            if kinds.contains(&OpKind::Write) {
                draft.written_first.get_or_insert(stage);
            }
        }
        Ok(files)
    }

    /// Returns what is known of a tree.
    fn present(&mut self, tree: &Tree) -> Arc<Present> {
        if let Some((_, present)) = self.trees.iter().find(|(known, _)| known == tree) {
            return Arc::clone(present);
        }
        // Not all of them work on this tree; a place that is not used takes a few bytes.
        let on_names = self.plan.jobs().filter(|job| matches!(job.work, Work::Names { .. }));
        let workers = on_names.map(|job| job.workers.get()).max().unwrap_or(1);
        let present = Arc::new(Present::of(workers));
        self.trees.push((tree.clone(), Arc::clone(&present)));
        present
    }

    /// Returns what all lies in the directories of a tree.
    fn inside(&mut self, tree: &Tree) -> Arc<[Inside]> {
        let mut found: Vec<&Tree> = Vec::new();
        for set in self.plan.jobs().flat_map(|job| job.work.sets()) {
            let Members::Tree(other) = &self.plan.set(set).members else { continue };
            if other.without_entries() == tree.without_entries() && !found.contains(&other) {
                found.push(other);
            }
        }
        let inside = |tree: &Tree| Inside {
            shape: tree.shape.clone(),
            tree_ahead: self.known_of(tree, 0).0,
            entries: self.present(tree),
        };
        found.into_iter().map(inside).collect()
    }

    /// Returns by how many workers a tree's number is ahead of that of the names in it, and how
    /// many bytes each file holds when a stage begins, as far as the plan tells.
    fn known_of(&self, tree: &Tree, stage: usize) -> (u32, Option<u32>) {
        let of_stage = |(number, stage): (usize, &'_ Stage)| {
            let names = |job: &Job| match job.work {
                Work::Names { set, act, .. } => Some((number, set, act, job.deal.shift)),
                _ => None,
            };
            stage.jobs.iter().filter_map(names).collect::<Vec<_>>()
        };
        let stages = self.plan.stages.iter().enumerate();
        let (mut ahead, mut written) = (0, None);
        for (number, set, act, shift) in stages.flat_map(of_stage) {
            if self.plan.tree(set) != tree {
                continue;
            }
            if ahead == 0 && tree.shape.per_worker {
                ahead = shift;
            }
            match act {
                _ if number >= stage => {}
                NameAct::Create { bytes, .. } => written = Some(bytes),
                // Which file has which name is not followed up.
                NameAct::Rename | NameAct::Remove => written = None,
                _ => {}
            }
        }
        (ahead, written)
    }
}

/// Deals files to so many workers in turn.
fn dealt(files: &[u32], workers: u32) -> Vec<Arc<[u32]>> {
    let of_worker = |worker: u32| files.iter().skip(worker as usize).step_by(workers as usize);
    (0..workers).map(|worker| of_worker(worker).copied().collect()).collect()
}

/// Puts the files that are not one worker's alone into a list of their own before those of the
/// workers.
fn to_common(lists: &mut Vec<Vec<u32>>) {
    if lists.len() < 2 {
        return;
    }
    let mut owner_of: HashMap<u32, usize> = HashMap::new();
    let mut common = BTreeSet::new();
    for (owner, list) in lists.iter().enumerate() {
        for file in list {
            if *owner_of.entry(*file).or_insert(owner) != owner {
                common.insert(*file);
            }
        }
    }
    lists.iter_mut().for_each(|list| list.retain(|file| !common.contains(file)));
    lists.insert(0, common.into_iter().collect());
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
