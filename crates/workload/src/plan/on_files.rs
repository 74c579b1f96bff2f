//! Workloads on files while they are put together: which sets there are, who writes them, and what
//! must be written before it is read.

use std::collections::{BTreeMap, HashSet};
use std::mem;

use super::spec::{
    BlocksSpec, FileSet, FilesTarget, FillSpec, JobSpec, ListedSet, NamesSpec, OneOrMany, SetSpec,
    StageSpec, TargetSpec, Targets, WorkSpec, WorkStage, WorkloadFile,
};

/// What stands first in a workload that reads files which nothing in it writes.
const PREPARE: &str = "prepare";
/// So long is what a name of a set begins with at most.
const LABEL_MAX: usize = 100;

/// Files or names, and where they lie.
#[derive(Clone, Debug)]
pub struct FilesIn {
    /// What their set is called, where nothing else has that name.
    pub label: String,
    /// The directories of their target; of files that were there before there is none.
    pub directories: Vec<String>,
    /// Which they are.
    pub set: SetSpec,
}

impl PartialEq for FilesIn {
    fn eq(&self, other: &Self) -> bool {
        (&self.directories, &self.set) == (&other.directories, &other.set)
    }
}

impl FilesIn {
    /// Tells whether all of the others are among them.
    fn hold(&self, others: &Self) -> bool {
        let is_same = match (&self.set, &others.set) {
            (SetSpec::Files(FileSet { name, job, workers, .. }), SetSpec::Files(other)) => {
                (name, job) == (&other.name, &other.job) && *workers >= other.workers
            }
            (SetSpec::Listed(ListedSet { names, .. }), SetSpec::Listed(others)) => {
                let names: HashSet<&String> = names.iter().collect();
                others.names.iter().all(|name| names.contains(name))
            }
            _ => false,
        };
        is_same && self.directories == others.directories
    }
}

/// A workload on files that is put together, stage after stage.
#[derive(Debug, Default)]
pub struct OnFiles {
    targets: Vec<Vec<String>>,
    sets: Vec<(String, FilesIn)>,
    /// Sets that come to the same paths as another, with that one before them.
    copies: Vec<(String, String)>,
    /// Sets that jobs of the stage write which is put together.
    taken: Vec<String>,
    /// Files that jobs so far have written.
    written: Vec<FilesIn>,
    /// Sets that are read and that no job before has written.
    unwritten: Vec<String>,
    stages: Vec<WorkStage>,
}

impl OnFiles {
    /// Returns work on the blocks of these files.
    pub fn blocks(&mut self, files: &FilesIn, work: BlocksSpec) -> WorkSpec {
        let on = self.set(files, work.write.is_some());
        self.note(&on, files, work.read.is_some());
        WorkSpec::Blocks(BlocksSpec { on, ..work })
    }

    /// Returns the work on these names that `of` makes of their set.
    pub fn names(&mut self, names: &FilesIn, of: impl Fn(String) -> NamesSpec) -> WorkSpec {
        let writes = !matches!(of(String::new()), NamesSpec::Stat(_) | NamesSpec::Open(_));
        WorkSpec::Names(of(self.set(names, writes)))
    }

    /// Returns work that fills all of these files.
    pub fn fill<'a>(&mut self, all: impl IntoIterator<Item = &'a FilesIn>) -> FillSpec {
        let (mut sets, taken) = (Vec::new(), self.taken.clone());
        for files in all {
            let name = self.named(files, &taken);
            self.note(&name, files, false);
            if !sets.contains(&name) {
                sets.push(name);
            }
        }
        self.taken.extend(sets.iter().cloned());
        FillSpec::of(sets)
    }

    /// Adds a stage of jobs whose work was made since the one before.
    pub fn stage(&mut self, mut stage: WorkStage) {
        if let [only] = &mut *stage.jobs {
            only.group = None;
        }
        self.taken.clear();
        self.stages.push(stage);
    }

    /// Returns a name that no stage has: `name`, or with a number behind it.
    pub fn stage_name(&self, name: &str) -> String {
        let is_called = |stage: &WorkStage, name: &str| stage.name.as_deref() == Some(name);
        first_free(name, |name| !self.stages.iter().any(|stage| is_called(stage, name)))
    }

    /// Tells whether a stage will stand first that writes what is read without having been written.
    pub fn prepares(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Returns the workload.
    pub fn workload(mut self, name: &str, seed: Option<u64>) -> WorkloadFile {
        if self.prepares() {
            // Holes, which no disk is asked for.
            let fill = WorkSpec::Fill(FillSpec::of(self.unwritten.clone()));
            let stage = WorkStage::of(PREPARE, vec![JobSpec::of(1, fill)]);
            self.stages.insert(0, WorkStage { prepares: true, end_on_failure: true, ..stage });
        }
        self.fill_copies();
        self.part_fills();
        let Self { targets, sets, stages, .. } = self;
        let target = |number: usize| format!("files-{}", number + 1);
        let sets = sets.into_iter().map(|(name, FilesIn { directories, mut set, .. })| {
            let index = targets.iter().position(|known| *known == directories);
            *set.on_mut() = index.filter(|_| targets.len() > 1).map(target);
            (name, set)
        });
        let sets = sets.collect();
        let in_directory =
            |of: &Vec<String>| TargetSpec::Files(FilesTarget { directory: OneOrMany(of.clone()) });
        let several = targets.iter().enumerate().map(|(at, of)| (target(at), in_directory(of)));
        let targets = match &*targets {
            [one] => Targets::One(in_directory(one)),
            _ => Targets::Several(several.collect()),
        };
        let stages = stages.into_iter().map(StageSpec::Jobs).collect();
        WorkloadFile { seed, targets, ..WorkloadFile::new(name, sets, stages) }
    }

    /// Returns the name of a set for a job that writes it or not.
    fn set(&mut self, files: &FilesIn, writes: bool) -> String {
        let taken = if writes { self.taken.clone() } else { Vec::new() };
        let name = self.named(files, &taken);
        self.taken.extend(writes.then(|| name.clone()));
        name
    }

    /// Returns the name of a set of these files that is not taken. As a member has one writer, each
    /// writer of a stage has a set of its own, and they come to the same paths.
    fn named(&mut self, files: &FilesIn, taken: &[String]) -> String {
        if !self.targets.contains(&files.directories) {
            self.targets.push(files.directories.clone());
        }
        let mut known = self.sets.iter().filter(|(_, known)| known == files).map(|(name, _)| name);
        if let Some(free) = known.clone().find(|name| !taken.contains(name)) {
            return free.clone();
        }
        let first = known.next().cloned();
        let is_free = |name: &String| self.sets.iter().all(|(known, _)| known != name);
        let label: String = files.label.chars().take(LABEL_MAX).collect();
        let name = first_free(&label, is_free);
        self.sets.push((name.clone(), files.clone()));
        self.copies.extend(first.map(|first| (first, name.clone())));
        name
    }

    /// Takes note of files that a job reads or writes.
    fn note(&mut self, name: &str, files: &FilesIn, reads: bool) {
        let is_there = matches!(files.set, SetSpec::Paths(_));
        if is_there || self.written.iter().any(|written| written.hold(files)) {
            return;
        }
        if reads {
            self.unwritten.push(name.to_owned());
        }
        self.written.push(files.clone());
    }

    /// Has stages fill the copies of what they fill; files that are filled already are left out.
    fn fill_copies(&mut self) {
        for job in self.stages.iter_mut().flat_map(|stage| &mut stage.jobs) {
            let WorkSpec::Fill(FillSpec { sets: OneOrMany(sets), .. }) = &mut job.work else {
                continue;
            };
            for (first, copy) in &self.copies {
                if sets.contains(first) && !sets.contains(copy) {
                    sets.push(copy.clone());
                }
            }
        }
    }

    /// Has a job that fills sets of several targets fill those of the first, with a job for each
    /// other target behind the jobs of the stage, as a job uses one target. They share its
    /// workers and are reported in one row.
    fn part_fills(&mut self) {
        let target_of = |name: &String| {
            let (_, files) = self.sets.iter().find(|(known, _)| known == name)?;
            self.targets.iter().position(|known| *known == files.directories)
        };
        for stage in &mut self.stages {
            let mut others = Vec::new();
            for job in &mut stage.jobs {
                let WorkSpec::Fill(fill) = &mut job.work else { continue };
                let mut by_target: BTreeMap<_, Vec<String>> = BTreeMap::new();
                for name in mem::take(&mut fill.sets.0) {
                    by_target.entry(target_of(&name)).or_default().push(name);
                }
                let targets_count = by_target.len();
                let mut fills = by_target
                    .into_values()
                    .map(|sets| WorkSpec::Fill(FillSpec { sets: OneOrMany(sets), ..fill.clone() }));
                let Some(first) = fills.next() else { continue };
                let rest: Vec<WorkSpec> = fills.collect();
                job.work = first;
                if !rest.is_empty() {
                    job.workers = job.workers.div_ceil(targets_count as u32);
                    job.name = job.name.take().or_else(|| stage.name.clone());
                    job.group.get_or_insert(0);
                }
                others.extend(rest.into_iter().map(|work| JobSpec { work, ..job.clone() }));
            }
            stage.jobs.extend(others);
        }
    }
}

/// Returns a name that is free: `name`, or with a number behind it.
fn first_free(name: &str, is_free: impl Fn(&String) -> bool) -> String {
    let numbered = (2_usize..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(is_free).expect("numbers do not run out before names do")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Size;
    use crate::plan::spec::{BlockSizes, ReadBlocks};

    #[test]
    fn what_is_read_in_several_places_is_prepared_by_a_job_for_each() {
        let mut to = OnFiles::default();
        let mut job = |name: &str, directory: &str| {
            let names = vec![name.to_owned()];
            let size = "1MiB".parse().unwrap();
            let set = SetSpec::Listed(ListedSet { on: None, names, size });
            let directories = vec![directory.to_owned()];
            let files = FilesIn { label: name.to_owned(), directories, set };
            let read = Some(ReadBlocks { block: BlockSizes::Fixed(Size(4_096)), percent: None });
            let blocks = BlocksSpec { read, repeats: Some(false), ..BlocksSpec::of("") };
            JobSpec { name: Some(name.to_owned()), ..JobSpec::of(1, to.blocks(&files, blocks)) }
        };
        let jobs = vec![job("x", "/a"), job("y", "/b"), job("z", "/a")];
        to.stage(WorkStage::of("read", jobs));
        let file = to.workload("t", Some(7));
        let stages: Vec<&WorkStage> = file.work_stages().collect();
        let fill = |sets: &[&str]| {
            let sets = sets.iter().map(|&set| set.to_owned()).collect();
            let name = Some("prepare".to_owned());
            JobSpec { name, group: Some(0), ..JobSpec::of(1, WorkSpec::Fill(FillSpec::of(sets))) }
        };
        assert_eq!(stages[0].jobs, [fill(&["x", "z"]), fill(&["y"])]);
        assert_eq!(file.check().map(|plan| plan.stages.len()), Ok(2));
    }
}
