//! Jobs that make, look at and remove files without reading or writing them.

use std::collections::HashMap;

use plimsoll_workload::plan::spec::{
    CreateNames, JobSpec, Limit, MakeTree, NamesSpec, RemoveNames, SetSpec, StatNames, TreeOf,
    TreeSet, WorkSpec,
};
use plimsoll_workload::plan::{FilesIn, Size};

use super::super::error::FioError;
use super::super::job::{Engine, Job};
use super::{Lowering, label, refuse};

/// The trees that the run has made for names so far, by where they lie.
pub(super) type Trees = HashMap<TreePlace, Tree>;
/// A tree's directories and its name.
type TreePlace = (Vec<String>, String);

/// The names of a tree.
pub(super) struct Tree {
    /// How many clones have a directory in it.
    clones: u32,
    /// How many files each of them has.
    files_count: u64,
    /// Whether its files are there.
    has_files: bool,
    section: String,
}

/// fio's engine makes files and leaves them empty.
fn create(set: String) -> NamesSpec {
    NamesSpec::Create(CreateNames { create: set, bytes: Size(0), fsync: false, shuffled: false })
}

fn make_tree(set: String) -> NamesSpec {
    NamesSpec::MakeTree(MakeTree { make_tree: set })
}

impl Lowering<'_> {
    /// Returns why a job on names cannot be run.
    pub(super) fn check_names(&mut self, job: &Job) -> Result<(), FioError> {
        let has_rates = [&job.rates.bytes_per_sec, &job.rates.ops_per_sec]
            .iter()
            .any(|rates| rates.read.is_some() || rates.write.is_some());
        let engine = job.queue.engine_written.as_deref().unwrap_or_default();
        let text = if job.files.create_only {
            "`create_only` fills files, and this engine works on their names; leave it out"
        } else if !job.files.names.is_empty() {
            "`filename` names each file; with this engine say how many by `nrfiles`"
        } else if job.timing.time_based {
            "`time_based` begins anew, and each file is made, looked at or removed once; leave it \
            out"
        } else if job.timing.loops > 1 {
            "`loops` begins anew, and each file is made, looked at or removed once; leave it out"
        } else if has_rates {
            "rates are those of reads and writes, and this engine does neither"
        } else {
            let option = format!("ioengine={engine}");
            let what = "each clone has its own directory, and files in it under Plimsoll's names";
            self.note(job, &option, what);
            return Ok(());
        };
        Err(refuse(job, format!("`ioengine={engine}`: {text}")))
    }

    /// Adds the stages that make the directories of jobs on names, and the files of those that do
    /// not make them.
    pub(super) fn prepare_names(&mut self, indices: &[usize]) -> Result<(), FioError> {
        let mut directories = Vec::new();
        let mut files = Vec::new();
        let mut changed: HashMap<TreePlace, bool> = HashMap::new();
        for &index in indices {
            let job = self.job(index);
            if !job.queue.engine.is_metadata() {
                continue;
            }
            let place = self.tree_place(job);
            let (clones, files_count) = (self.clones(job), u64::from(job.files.count));
            let creates = job.queue.engine == Engine::FileCreate;
            let changes = job.queue.engine != Engine::FileStat;
            if changed.get(&place).is_some_and(|&is_changed| is_changed || changes) {
                let text = "a job beside it works on the same files; let one wait for the other";
                return Err(refuse(job, text.to_owned()));
            }
            changed.insert(place.clone(), changes);
            let known = self.trees.get(&place);
            if let Some(known) = known
                && (known.clones < clones
                    || known.files_count != files_count
                    || (creates && known.has_files))
            {
                let text = format!(
                    "[{}] has made its files already: {} for each of {} clones",
                    known.section, known.files_count, known.clones
                );
                return Err(refuse(job, text));
            }
            let has_files = known.is_some_and(|known| known.has_files);
            if !creates && !has_files && !job.files.allow_file_create {
                let text = "`allow_file_create=0`: no section before it makes its files";
                return Err(refuse(job, text.to_owned()));
            }
            if known.is_none() {
                directories.push(index);
            }
            if !creates && !has_files {
                files.push(index);
            }
            let section = job.place.section.clone().unwrap_or_else(|| job.name.clone());
            let tree = Tree { clones, files_count, has_files, section };
            self.trees.entry(place).or_insert(tree).has_files |= !creates;
        }
        self.prepare_all("directories", directories, make_tree);
        self.prepare_all("files", files, create);
        Ok(())
    }

    fn prepare_all(&mut self, name: &str, indices: Vec<usize>, of: fn(String) -> NamesSpec) {
        if indices.is_empty() {
            return;
        }
        let works: Vec<WorkSpec> = indices.iter().map(|&index| self.names(index, of)).collect();
        let jobs = indices.iter().zip(works).map(|(&index, work)| self.plain_job(index, work));
        let jobs = jobs.collect();
        self.prepare(name, jobs, indices);
    }

    /// Returns what a job on names comes to.
    pub(super) fn name_job(&mut self, index: usize) -> JobSpec {
        let job = self.job(index);
        let work = match job.queue.engine {
            Engine::FileCreate => self.names(index, create),
            Engine::FileDelete => self
                .names(index, |remove| NamesSpec::Remove(RemoveNames { remove, shuffled: false })),
            _ => self.names(index, |stat| NamesSpec::Stat(StatNames { stat, shuffled: false })),
        };
        let ops = job.files.operations_max.map(|count| self.scale.count(count));
        let ops = ops.map(|each| Limit::Each { each });
        JobSpec { ops, ..self.timed_job(index, work) }
    }

    /// Takes into account what jobs on names have done.
    pub(super) fn names_done(&mut self, indices: &[usize]) {
        for &index in indices {
            let job = self.job(index);
            let place = self.tree_place(job);
            match (job.queue.engine, self.trees.get_mut(&place)) {
                (Engine::FileCreate, Some(tree)) => tree.has_files = true,
                (Engine::FileDelete, Some(tree)) => tree.has_files = false,
                _ => {}
            }
        }
    }

    /// Returns work on the directories of a job: one for each clone.
    fn names(&mut self, index: usize, of: impl Fn(String) -> NamesSpec) -> WorkSpec {
        let job = self.job(index);
        let (directories, name) = self.tree_place(job);
        let tree = TreeOf {
            name: Some(name.clone()),
            depth: 0,
            branching: 1,
            entries: u64::from(job.files.count),
            leaves_only: false,
            per_worker: true,
            shared_names: false,
            of_directories: false,
        };
        let set = SetSpec::Tree(TreeSet { on: None, tree });
        self.on_files.names(&FilesIn { label: name, directories, set }, of)
    }

    /// Returns where the directories of a job lie. Jobs whose files have the same paths for fio
    /// have the same ones.
    fn tree_place(&self, job: &Job) -> TreePlace {
        let name = job
            .files
            .name_format
            .replace("$jobnum", "")
            .replace("$filenum", "")
            .replace("$jobname", &job.name);
        (self.whole_paths(&job.files).directories, label(&name))
    }
}
