//! The checked plan of a run on files: which worker does what, on which files.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_model::WorkerId;
use schemars::Schema;

use super::blocks::Blocks;
use super::fill::FillPlan;
use super::names::{Names, NamesPlan};
use super::spec::{
    BlocksSpec, FileJobSpec, FileWorkSpec, FilesSpec, FillSpec, NameActSpec, NamesSpec, TreeSpec,
};
use super::stream::{FileStream, Source};
use super::table::{FileTable, TableBuilder, size_of, trimmed};
use super::{check, greatest_common};
use crate::{InvalidWorkload, Random};

const STREAM_DOMAIN: u64 = 0x6669_6c65_0000;

/// What a run on files will do, checked.
pub struct FilePlan {
    /// The run as written.
    pub spec: FilesSpec,
    /// The files whose blocks are read or written.
    pub table: Arc<FileTable>,
    run: Arc<str>,
    stages: Vec<StagePlan>,
}

struct StagePlan {
    /// The first worker of each job, and how many there are in all.
    firsts: Vec<u32>,
    jobs: Vec<JobPlan>,
    layouts: Vec<JobLayout>,
}

/// What a job's spec does not say of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobLayout {
    /// By which name its files are made and for how many clones, where not by its own.
    pub(crate) files_of: Option<(String, u32)>,
    /// Whether what is read is checked.
    pub(crate) verify: bool,
    /// After how many operations of all clones together it ends.
    pub(crate) ops_in_all: Option<u64>,
    /// After how many bytes of all clones together it ends.
    pub(crate) bytes_in_all: Option<u64>,
}

enum JobPlan {
    Fill(Arc<FillPlan>),
    /// The files of the clones: clone c has the list of number c modulo their count.
    Blocks(Vec<Arc<[u32]>>),
    Names(Box<NamesPlan>),
}

impl FilesSpec {
    /// Returns the spec as YAML.
    pub fn to_yaml(&self) -> String {
        serde_saphyr::to_string(self).expect("a spec holds nothing that YAML cannot")
    }

    /// Reads a spec from YAML; the error says where and what.
    pub fn from_yaml(text: &str) -> Result<Self, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns the JSON schema of the spec.
    pub fn json_schema() -> Schema {
        schemars::schema_for!(Self)
    }

    /// Says what of the spec makes no sense, if anything does.
    pub fn check(&self) -> Result<(), InvalidWorkload> {
        check::spec(self)
    }

    /// Returns the plan for the run of that id if the spec is sound.
    pub fn validate(&self, run: &str) -> Result<FilePlan, InvalidWorkload> {
        check::spec(self)?;
        let layout = JobLayout { verify: self.verify, ..JobLayout::default() };
        let of_stage = |stage: &super::FileStageSpec| vec![layout.clone(); stage.jobs.len()];
        self.lay_out(run, self.stages.iter().map(of_stage).collect())
    }

    /// Returns the plan for the run of that id; what the spec does not say stands in `layouts`, by
    /// stage and job. The spec was checked.
    pub(crate) fn lay_out(
        &self,
        run: &str,
        layouts: Vec<Vec<JobLayout>>,
    ) -> Result<FilePlan, InvalidWorkload> {
        let mut table = TableBuilder::new(run, self.seed);
        let run: Arc<str> = Arc::from(run);
        let mut stages = Vec::with_capacity(self.stages.len());
        let verify = layouts.iter().flatten().any(|layout| layout.verify);
        for ((index, stage), layouts) in self.stages.iter().enumerate().zip(layouts) {
            let mut firsts = vec![0];
            let mut jobs = Vec::with_capacity(stage.jobs.len());
            for (job_index, job) in stage.jobs.iter().enumerate() {
                let place = check::Place { stage: index, job: job_index };
                jobs.push(match &job.work {
                    FileWorkSpec::Fill(fill) => plan_fill(&mut table, place, job, fill)?,
                    FileWorkSpec::Blocks(blocks) => {
                        plan_blocks(&mut table, place, (job, &layouts[job_index]), blocks)?
                    }
                    FileWorkSpec::Names(names) => {
                        JobPlan::Names(Box::new(self.plan_names(index, job, names, &run)))
                    }
                });
                firsts.push(firsts[job_index] + job.clones);
            }
            stages.push(StagePlan { firsts, jobs, layouts });
        }
        let table = Arc::new(table.finish(verify));
        Ok(FilePlan { spec: self.clone(), table, run, stages })
    }

    /// Returns the names that stages have, first to last.
    fn names_of<'a>(&'a self, tree: &'a TreeSpec) -> impl Iterator<Item = (usize, &'a NamesSpec)> {
        let jobs = |(index, stage): (usize, &'a super::FileStageSpec)| {
            stage.jobs.iter().map(move |job| (index, job))
        };
        self.stages.iter().enumerate().flat_map(jobs).filter_map(move |(stage, job)| {
            match &job.work {
                FileWorkSpec::Names(names) if names.tree == *tree => Some((stage, names)),
                _ => None,
            }
        })
    }

    fn plan_names(
        &self,
        stage: usize,
        job: &FileJobSpec,
        names: &NamesSpec,
        run: &Arc<str>,
    ) -> NamesPlan {
        let tree = &names.tree;
        let mut shifts = self.names_of(tree).map(|(_, names)| names.shift);
        let tree_ahead = if tree.per_clone { shifts.find(|shift| *shift > 0) } else { None };
        let mut written = None;
        for (_, names) in self.names_of(tree).take_while(|(other, _)| *other < stage) {
            match names.act {
                NameActSpec::Create { bytes, .. } => written = Some(bytes),
                // Which file has which name is not followed up.
                NameActSpec::Rename | NameActSpec::Remove => written = None,
                _ => {}
            }
        }
        NamesPlan {
            spec: names.clone(),
            clones: job.clones,
            tree_ahead: tree_ahead.unwrap_or(0),
            written,
            run: Arc::clone(run),
        }
    }
}

fn plan_fill(
    table: &mut TableBuilder<'_>,
    place: check::Place,
    job: &FileJobSpec,
    fill: &FillSpec,
) -> Result<JobPlan, InvalidWorkload> {
    let mut files = Vec::new();
    for of in fill.files.iter().filter(|of| !of.files.existing) {
        let lists = table.add(&of.job, of.clones, &of.files);
        let lists = lists.map_err(|reason| place.invalid("work.fill.files", reason))?;
        for file in lists.into_iter().flatten() {
            let draft = table.draft(file);
            if draft.filled.is_none() {
                draft.filled = Some(place.stage);
                draft.common = greatest_common(draft.common, u64::from(fill.block_bytes));
                files.push(file);
            }
        }
    }
    let mut sizes = Vec::with_capacity(files.len());
    for file in files {
        let draft = table.draft(file);
        if fill.direct && !draft.size.is_multiple_of(check::SECTOR_BYTES) {
            let reason = format!(
                "`{}` of {} bytes is no multiple of {}, which `direct` needs",
                draft.path,
                draft.size,
                check::SECTOR_BYTES
            );
            return Err(place.invalid("work.fill.direct", reason));
        }
        sizes.push((file, draft.size));
    }
    Ok(JobPlan::Fill(Arc::new(FillPlan::new(&sizes, fill.block_bytes, job.clones))))
}

fn plan_blocks(
    table: &mut TableBuilder<'_>,
    place: check::Place,
    (job, layout): (&FileJobSpec, &JobLayout),
    blocks: &BlocksSpec,
) -> Result<JobPlan, InvalidWorkload> {
    let own = || (job.name.clone(), job.clones);
    let (name, clones) = layout.files_of.clone().unwrap_or_else(own);
    let lists = table.add(&name, clones, &blocks.files);
    let lists = lists.map_err(|reason| place.invalid("work.blocks.files", reason))?;
    for &file in lists.iter().flatten() {
        let draft = table.draft(file);
        draft.common = greatest_common(draft.common, blocks.common());
        if blocks.reads() {
            let first = draft.read.map_or(place.stage, |(first, _)| first);
            draft.read = Some((first, place.stage));
        }
        if blocks.writes() {
            draft.written_first.get_or_insert(place.stage);
        }
    }
    Ok(JobPlan::Blocks(lists.into_iter().map(Arc::from).collect()))
}

impl FilePlan {
    /// Returns how many workers a stage has: the clones of all of its jobs.
    pub fn workers(&self, stage: usize) -> u32 {
        *self.stages[stage].firsts.last().expect("it begins with 0")
    }

    /// Returns which job of the stage a worker does, and as which clone of it.
    pub fn job_of(&self, stage: usize, worker: WorkerId) -> (usize, u32) {
        let firsts = &self.stages[stage].firsts;
        let job = firsts.partition_point(|first| *first <= worker.0) - 1;
        assert!(job + 1 < firsts.len(), "the stage has no worker {}", worker.0);
        (job, worker.0 - firsts[job])
    }

    /// Returns the job that a worker does.
    pub fn job(&self, stage: usize, worker: WorkerId) -> &FileJobSpec {
        &self.spec.stages[stage].jobs[self.job_of(stage, worker).0]
    }

    /// Returns how large a buffer each operation of a worker needs.
    pub fn buffer_bytes(&self, stage: usize, worker: WorkerId) -> usize {
        let bytes = match &self.job(stage, worker).work {
            FileWorkSpec::Fill(fill) => u64::from(fill.block_bytes),
            FileWorkSpec::Blocks(blocks) => blocks.largest(),
            FileWorkSpec::Names(names) => match names.act {
                NameActSpec::Create { bytes, .. } | NameActSpec::Open { bytes } => bytes.into(),
                _ => 0,
            },
        };
        bytes as usize
    }

    /// Returns every `<directory>/plimsoll/<run>` of the run, each once.
    pub fn run_directories(&self) -> Vec<String> {
        let mut found = BTreeSet::new();
        for job in self.spec.stages.iter().flat_map(|stage| &stage.jobs) {
            let mut add = |directories: &[String]| {
                let of = |each: &String| self.run_directory(each);
                found.extend(directories.iter().map(of));
            };
            match &job.work {
                FileWorkSpec::Fill(fill) => {
                    fill.files.iter().filter(|of| !of.files.existing).for_each(|of| {
                        add(&of.files.directories);
                    });
                }
                FileWorkSpec::Blocks(blocks) if blocks.files.existing => {}
                FileWorkSpec::Blocks(blocks) => add(&blocks.files.directories),
                FileWorkSpec::Names(names) => add(&names.tree.directories),
            }
        }
        found.into_iter().collect()
    }

    fn run_directory(&self, directory: &str) -> String {
        format!("{}/plimsoll/{}", trimmed(directory), self.run)
    }

    /// Returns the directories that have to be there before a stage begins, each once: those of its
    /// files, and the one that each of its trees lies in.
    pub fn directories_before(&self, stage: usize) -> Vec<String> {
        let mut found = BTreeSet::new();
        for (job, plan) in self.spec.stages[stage].jobs.iter().zip(&self.stages[stage].jobs) {
            if let (FileWorkSpec::Names(names), _) = (&job.work, plan) {
                let tree = &names.tree;
                let top = |each: &String| format!("{}/{}", self.run_directory(each), tree.name);
                found.extend(tree.directories.iter().map(top));
            }
            for &file in plan.lists().iter().flat_map(|list| list.iter()) {
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
        let (job, clone) = self.job_of(stage, worker);
        let lists = self.stages[stage].jobs[job].lists();
        if lists.is_empty() { &[] } else { &lists[clone as usize % lists.len()] }
    }

    /// Returns the operations of a worker, a function of the seed, the stage and the worker.
    pub fn stream(&self, stage: usize, worker: WorkerId) -> FileStream {
        let (job_index, clone) = self.job_of(stage, worker);
        let job = &self.spec.stages[stage].jobs[job_index];
        let files = self.files_of(stage, worker);
        let plan = &self.stages[stage].jobs[job_index];
        let layout = &self.stages[stage].layouts[job_index];
        let seed = match &job.work {
            FileWorkSpec::Blocks(blocks) => blocks.seed.unwrap_or(self.spec.seed),
            _ => self.spec.seed,
        };
        let mut random = Random::new(seed, STREAM_DOMAIN + stage as u64, u64::from(worker.0));
        let otherwise = random.next_u64();
        let source = match (plan, &job.work) {
            (JobPlan::Fill(fill), _) => Source::Fill(Arc::clone(fill), fill.begin(clone)),
            (JobPlan::Blocks(_), FileWorkSpec::Blocks(blocks)) => {
                let size = |&file: &u32| {
                    let entry = self.table.entry(file);
                    (file, size_of(self.spec.seed, entry.key_hash, blocks.files.size_bytes))
                };
                let sizes: Vec<(u32, u64)> = files.iter().map(size).collect();
                Source::Blocks(Box::new(Blocks::new(blocks, &sizes, random)))
            }
            (JobPlan::Names(names), _) => {
                Source::Names(Box::new(Names::new(names, clone, &mut random)))
            }
            (JobPlan::Blocks(_), _) => unreachable!("the plan was made for this work"),
        };
        let share = |all: u64| {
            let clones = u64::from(job.clones);
            all / clones + u64::from(u64::from(clone) < all % clones)
        };
        let limits = (
            layout.ops_in_all.map(share).or(job.ops_max),
            layout.bytes_in_all.map(share).or(job.bytes_max),
        );
        FileStream::new((&self.table, files), layout.verify, (job, limits), source, otherwise)
    }
}

impl JobPlan {
    fn lists(&self) -> &[Arc<[u32]>] {
        match self {
            Self::Fill(fill) => &fill.lists,
            Self::Blocks(lists) => lists,
            Self::Names(_) => &[],
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
