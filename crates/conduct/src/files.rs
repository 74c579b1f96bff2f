//! The work of a run on files, from its plan to its stages: checks, directories, caches, and what
//! is removed again.

mod check;
mod limits;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_driver_file::caches::{drop_files, drop_machine};
use plimsoll_driver_file::in_use::Held;
use plimsoll_driver_file::work_dir::WorkDir;
use plimsoll_driver_file::{FilesDriver, available, best};
use plimsoll_engine::RingConfig;
use plimsoll_model::{CacheState, Interface, StageKind, TargetKind, WorkerId};
use plimsoll_record::schema::{
    self, Cleanup, CleanupState, FilesStage, ProcessUsage, StageJob, Target,
};
use plimsoll_report::format;
use plimsoll_workload::Share;
use plimsoll_workload::files::{FileChanges, FilePlan};
use plimsoll_workload::plan::{FileNames, Files, Job, Members, SetIndex, Stage, TargetIndex, Work};

use self::limits::check_counts;
use crate::crew::Agents;
use crate::{Cleaning, ConductError, FilesOn, FilesReady, Recording, machine};

/// Why caches are in use where they were to be dropped.
const NAMES_CACHED: &str = "cached names are only dropped with everything that the machine \
    has cached (`drop_machine_caches`)";

/// How a workload on files is run.
#[derive(Clone, Debug)]
pub struct FileSettings {
    /// How operations of jobs that do not say it reach the kernel; `None`: the best there is.
    pub interface: Option<Interface>,
    /// Threads that drive jobs whose interface does not block, at least 1.
    pub threads: usize,
    /// Whether all caches of the machine are emptied before stages that go through them.
    pub drop_machine_caches: bool,
    /// Whether what the run wrote stays.
    pub keeps_data: bool,
    /// Where the files may lie that the workload names.
    pub allowed: AllowedDirs,
    /// Which part of it is carried out here, where not all of it.
    pub part: Option<FilesPart>,
}

/// The part of a workload on files that one of several processes carries out.
#[derive(Clone, Copy, Debug)]
pub struct FilesPart {
    /// Which of the workers are its.
    pub share: Share,
    /// Its number, 0-based.
    pub number: usize,
    /// How many parts there are.
    pub count: usize,
}

/// A workload on files.
pub struct FilesRun {
    pub(crate) plan: FilePlan,
    settings: FileSettings,
    on: FilesOn,
    pub(crate) config: RingConfig,
    run: String,
    /// What is said of the run besides its figures.
    pub notes: Vec<String>,
    endpoints: String,
    /// The run's own directories.
    work_dirs: Vec<Arc<WorkDir>>,
    /// Files that are there.
    made: HashSet<u32>,
    /// What was there and is written; devices are claimed until the run is over.
    held: Arc<HashMap<PathBuf, Held>>,
    /// What the process had used, and how many bytes had not been verified, when the stage began.
    before: (ProcessUsage, u64),
}

impl FilesRun {
    /// Returns the files of the run of that name; refuses what cannot go well. Nothing is made yet.
    pub fn new(
        mut plan: FilePlan,
        run: &str,
        settings: FileSettings,
        on: FilesOn,
    ) -> Result<Self, ConductError> {
        let mut notes = Vec::new();
        let interface = match on {
            // What their machines offer they say themselves.
            FilesOn::Agents => best(),
            _ => settle_interfaces(&mut plan, &settings, &mut notes),
        };
        let config = RingConfig { threads: settings.threads, interface };
        check_counts(&plan, &config)?;
        let share = settings.part.map_or(Share::WHOLE, |part| part.share);
        let held = match on {
            FilesOn::Machine => check::check(&plan, &config, share, &settings.allowed)?,
            FilesOn::Null | FilesOn::Scripted(_) | FilesOn::Agents => HashMap::new(),
        };
        let mut files = Self {
            plan,
            settings,
            on,
            config,
            run: run.to_owned(),
            notes,
            endpoints: String::new(),
            work_dirs: Vec::new(),
            made: HashSet::new(),
            held: Arc::new(held),
            before: (ProcessUsage::default(), 0),
        };
        let is_on_files = |job: &&Job| job.is_on_files(&files.plan.plan);
        let targets: BTreeSet<TargetIndex> =
            files.plan.plan.jobs().filter(is_on_files).map(|job| job.target).collect();
        let endpoints = targets.iter().flat_map(|target| files.target(*target).endpoints);
        files.endpoints = endpoints.collect::<Vec<_>>().join(", ");
        Ok(files)
    }

    /// Returns what operations go to.
    pub(crate) const fn on(&self) -> &FilesOn {
        &self.on
    }

    /// Tells whether operations go to files of this machine.
    const fn is_real(&self) -> bool {
        matches!(self.on, FilesOn::Machine)
    }

    /// Returns which of the workers are here.
    fn share(&self) -> Share {
        self.settings.part.map_or(Share::WHOLE, |part| part.share)
    }

    /// Returns how errors name the files.
    pub(crate) fn endpoints(&self) -> &str {
        &self.endpoints
    }

    /// Returns what opens the files of this machine.
    pub(crate) fn driver(&self) -> FilesDriver {
        let driver = FilesDriver::new(&*self.endpoints).within(self.work_dirs.clone());
        driver.allowing(self.settings.allowed.clone()).holding(Arc::clone(&self.held))
    }

    /// Makes the run's own directories, one in each that it was given.
    pub fn make_directories(&mut self) -> Result<(), ConductError> {
        if !self.is_real() {
            return Ok(());
        }
        let number = self.settings.part.map(|part| part.number);
        for path in self.plan.run_directories() {
            let (allowed, directory) = (&self.settings.allowed, asked_directory(&path));
            let made = WorkDir::make(allowed, &directory, &self.run).and_then(|work_dir| {
                number.map_or(Ok(()), |number| work_dir.sign(number))?;
                Ok(work_dir)
            });
            match made {
                Ok(work_dir) => self.work_dirs.push(Arc::new(work_dir)),
                Err(error) => {
                    // What was made so far is empty.
                    for work_dir in self.work_dirs.drain(..) {
                        let _ = work_dir.sweep(&|| false);
                    }
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Returns the numbers of the parts whose files do not show here; all have made their
    /// directories.
    fn unseen(&self) -> Vec<usize> {
        let Some(FilesPart { count, .. }) = self.settings.part else { return Vec::new() };
        let shows = |part: &usize| self.work_dirs.iter().all(|work_dir| work_dir.shows(*part));
        (0..count).filter(|part| !shows(part)).collect()
    }

    /// Tells whether workers of one part work on what those of another one made.
    pub(crate) fn crosses(&self, shares: &[Share]) -> bool {
        self.plan.crosses(shares)
    }

    /// Returns what was changed by the workers that are here in a stage that has ended; `is_whole`
    /// tells of a job whether they did all that was theirs, and all of it well.
    pub(crate) fn changes(&self, stage: usize, is_whole: impl Fn(usize) -> bool) -> FileChanges {
        self.plan.changes(stage, self.share(), is_whole)
    }

    /// Tells whether workers of one part can have changed this in a stage.
    pub(crate) fn can_change(&self, stage: usize, changes: &FileChanges) -> bool {
        self.plan.can_change(stage, changes)
    }

    /// Takes note of what workers everywhere have changed; false where that means nothing.
    pub(crate) fn learn(&self, stage: usize, changes: &FileChanges) -> bool {
        self.plan.learn(stage, self.share(), changes)
    }

    /// Returns a target as the record has it.
    pub fn target(&self, index: TargetIndex) -> Target {
        match &self.on {
            FilesOn::Machine | FilesOn::Agents => {}
            FilesOn::Null => return Target::bare(TargetKind::Null, vec!["null".to_owned()]),
            FilesOn::Scripted(_) => {
                return Target::bare(TargetKind::Oracle, vec!["scripted files".to_owned()]);
            }
        }
        let (directories, existing) = self.places(index);
        let names: Vec<String> = directories.iter().cloned().chain(existing).collect();
        let first = names.first().filter(|_| self.is_real());
        let facts = first.and_then(|path| self.settings.allowed.probe(Path::new(path)).ok());
        let files = schema::FilesTarget {
            // Whoever cleans up later may do so from elsewhere.
            directories: directories.iter().map(|path| absolute(path)).collect(),
            file_system: facts.as_ref().map(|facts| facts.file_system.clone()),
            mount_point: facts.as_ref().and_then(|facts| {
                facts.mount_point.as_ref().map(|path| path.display().to_string())
            }),
            device: facts.as_ref().and_then(|facts| facts.device.clone()),
            size_bytes: facts.as_ref().map(|facts| facts.size_bytes),
            free_bytes: facts.as_ref().map(|facts| facts.free_bytes),
        };
        let prefix = (!files.directories.is_empty()).then(|| "plimsoll".to_owned());
        Target {
            files: Some(files),
            prefix,
            // One endpoint stands for all paths: blocks are told apart by their files.
            ..Target::bare(TargetKind::File, vec![names.join(", ")])
        }
    }

    /// Returns the directories of a target in which the run makes one of its own, and the files on
    /// it that were there before.
    fn places(&self, target: TargetIndex) -> (BTreeSet<String>, Vec<String>) {
        let plan = &self.plan.plan;
        let of_target = |set: &SetIndex| plan.set(*set).target == target;
        let plain = |directory: &String| match directory.trim_end_matches('/') {
            "" => "/".to_owned(),
            plain => plain.to_owned(),
        };
        let (mut directories, mut paths) = (BTreeSet::new(), HashSet::new());
        for set in plan.jobs().flat_map(|job| job.work.sets()).filter(of_target) {
            match &plan.set(set).members {
                Members::Files(Files { names: FileNames::Paths(of_set), .. }) => {
                    paths.extend(of_set.iter().map(String::as_str));
                }
                Members::Files(files) => directories.extend(files.directories.iter().map(plain)),
                Members::Tree(tree) => directories.extend(tree.directories.iter().map(plain)),
                _ => {}
            }
        }
        let table = &self.plan.table;
        let existing = (0..table.len() as u32).map(|file| &table.entry(file).path);
        let existing = existing.filter(|path| paths.contains(path.as_str())).cloned().collect();
        (directories, existing)
    }

    /// Makes directories and files that the stage needs, and drops caches where it asks for that.
    fn make_ready(&mut self, stage: usize) -> Result<(CacheState, Option<String>), ConductError> {
        let of: &Stage = &self.plan.plan.stages[stage];
        let jobs = || self.plan.jobs(stage).map(|(job, _)| job);
        let directories = self.plan.directories_before(stage);
        for path in directories.iter().map(Path::new) {
            work_dir_of(&self.work_dirs, path)?.make_directories([path])?;
        }
        let mut paths = Vec::new();
        for worker in self.plan.workers_in(stage, self.share()) {
            for file in self.plan.files_of(stage, worker) {
                let entry = self.plan.table.entry(*file);
                paths.push(PathBuf::from(&entry.path));
                if !entry.existing && self.made.insert(*file) {
                    let path = Path::new(&entry.path);
                    work_dir_of(&self.work_dirs, path)?.make_file(path, entry.size)?;
                }
            }
        }
        let invalidates = |job: &Job| match &job.work {
            Work::Blocks(blocks) => blocks.invalidates && !blocks.direct,
            _ => false,
        };
        let direct = jobs().next().is_some() && jobs().all(is_direct);
        paths.sort_unstable();
        paths.dedup();
        let mut places =
            directories.iter().map(Path::new).chain(paths.iter().map(PathBuf::as_path));
        let in_memory = places.next().and_then(|path| self.settings.allowed.probe(path).ok());
        if in_memory.is_some_and(|facts| facts.is_memory) {
            let why = "the file system lies in memory".to_owned();
            return Ok((CacheState::Cached, of.drop_caches.then_some(why)));
        }
        let kept = if direct { CacheState::Bypassed } else { CacheState::Cached };
        let of_machine =
            self.settings.drop_machine_caches && !direct && of.kind != StageKind::Prepare;
        if !of.drop_caches && !of_machine && !jobs().any(invalidates) {
            return Ok((kept, None));
        }
        let dropped = drop_files(&self.settings.allowed, &paths);
        let of_machine = if of_machine { drop_machine().map(|()| true) } else { Ok(false) };
        Ok(match (direct, of_machine) {
            (true, _) => (kept, None),
            (false, Ok(true)) => (CacheState::DroppedMachine, None),
            // Names and attributes have no pages of their own.
            (false, Ok(false)) if paths.is_empty() => {
                (kept, of.drop_caches.then(|| NAMES_CACHED.to_owned()))
            }
            (false, of_machine) => {
                let is_dropped = dropped.missed.is_none() && !paths.is_empty();
                let state = if is_dropped { CacheState::Dropped } else { kept };
                (state, dropped.missed.or(of_machine.err()))
            }
        })
    }

    /// Returns what is known of a stage before it begins, and has its jobs say how they reach the
    /// kernel.
    fn facts_of(
        &self,
        stage: usize,
        jobs: &mut [&mut StageJob],
        made: Option<(CacheState, Option<String>)>,
    ) -> FilesStage {
        for (entry, (job, interface)) in jobs.iter_mut().zip(self.plan.jobs(stage)) {
            entry.interface = match (&job.work, &self.on) {
                // Agents say it once they are ready.
                (_, FilesOn::Null | FilesOn::Scripted(_) | FilesOn::Agents) => None,
                (Work::Names { .. }, FilesOn::Machine) => Some(Interface::Psync),
                (_, FilesOn::Machine) => Some(interface.unwrap_or(self.config.interface)),
            };
        }
        let (caches, caches_reason) = made.unzip();
        FilesStage { caches, caches_reason: caches_reason.flatten(), ..FilesStage::default() }
    }
}

impl FilesRun {
    /// Makes a stage ready, and returns what is known of it before it begins; its jobs are told how
    /// they reach the kernel.
    pub(crate) fn begin_stage(
        &mut self,
        stage: usize,
        jobs: &mut [&mut StageJob],
    ) -> Result<FilesStage, ConductError> {
        let made = if self.is_real() { Some(self.make_ready(stage)?) } else { None };
        self.plan.expect_elsewhere(stage, self.share());
        let facts = self.facts_of(stage, jobs, made);
        self.before = (machine::usage(), self.plan.table.unverified_bytes());
        Ok(facts)
    }

    /// Returns what is told of a stage that was made ready.
    pub(crate) fn ready(&self, stage: &FilesStage, jobs: &[StageJob]) -> FilesReady {
        let interfaces = jobs.iter().map(|job| job.interface).collect();
        FilesReady { stage: stage.clone(), interfaces, unseen: self.unseen() }
    }

    /// Adds to the record of a stage that has ended what only its files know.
    pub(crate) fn note_end(&mut self, entry: &mut schema::Stage) {
        let (used, unverified) = &self.before;
        if let Some(files) = &mut entry.files {
            files.usage = Some(machine::usage_since(&machine::usage(), used));
            files.unverified_bytes = Some(self.plan.table.unverified_bytes() - unverified);
        }
        entry.note_unverified(entry.files.as_ref().and_then(|files| files.unverified_bytes));
    }

    /// Returns about how many operations a stage has that has no time of its own.
    pub(crate) fn ops_expected(&self, stage: usize) -> u64 {
        ops_expected(&self.plan, stage)
    }

    /// Tells whether there is anything that is to be removed.
    pub(crate) fn has_to_clean(&self) -> bool {
        !self.settings.keeps_data && (!self.work_dirs.is_empty() || self.is_agents())
    }

    /// Tells whether agents have files of the run, which they remove.
    fn is_agents(&self) -> bool {
        matches!(self.on, FilesOn::Agents) && !self.plan.run_directories().is_empty()
    }

    /// Removes what the run has made in its directories, until `is_stopped`, and returns how many
    /// files that were.
    pub fn sweep(&self, is_stopped: &(dyn Fn() -> bool + Sync)) -> Result<u64, ConductError> {
        let mut count = 0;
        for work_dir in &self.work_dirs {
            count += work_dir.sweep(is_stopped)?.files;
        }
        Ok(count)
    }
}

/// Removes the files of a run: those of this machine, or those that agents have.
pub(crate) struct FilesCleaner<'a> {
    pub(crate) files: &'a FilesRun,
    pub(crate) agents: Option<&'a mut (dyn Agents + 'static)>,
}

impl Cleaning for FilesCleaner<'_> {
    fn clean(&mut self, recording: &Recording) -> (Cleanup, bool) {
        let files = self.files;
        let begun = recording.now();
        let (mut state, mut removed) = (CleanupState::NotNeeded, None);
        if files.settings.keeps_data && (!files.work_dirs.is_empty() || files.is_agents()) {
            state = CleanupState::Kept;
        } else if let (true, Some(agents)) = (files.is_agents(), &mut self.agents) {
            return agents.clean_files(recording);
        } else if files.has_to_clean() {
            state = CleanupState::Complete;
            let mut count = 0;
            for work_dir in &files.work_dirs {
                let is_stopped = || recording.stop.is_step_stopped();
                match work_dir.sweep(&is_stopped) {
                    Ok(swept) => count += swept.files,
                    Err(error) => {
                        state = CleanupState::Failed;
                        let path = recording.directory.path().display();
                        let trouble = format!("{error}; `plimsoll clean {path}` finishes the job");
                        recording.observer.warn(&trouble);
                    }
                }
            }
            recording.observer.note(&format!("removed {} files", format::count(count)));
            removed = Some(count);
        }
        let took = recording.now().since(begun).as_nanos() as u64;
        let cleanup = Cleanup {
            state,
            objects_removed_count: removed,
            files_removed_count: removed,
            took_ns: removed.map(|_| took),
        };
        (cleanup, state != CleanupState::Failed)
    }
}

/// Gives every job an interface that the machine allows, and returns that of jobs without one.
fn settle_interfaces(
    plan: &mut FilePlan,
    settings: &FileSettings,
    notes: &mut Vec<String>,
) -> Interface {
    let asked = settings.interface;
    let mut told = HashSet::new();
    let mut settle = |interface: Interface| match available(interface) {
        Ok(()) => interface,
        Err(why) => {
            let instead = best();
            if told.insert(interface.name()) {
                notes.push(format!("{} instead of {}: {why}", instead.name(), interface.name()));
            }
            instead
        }
    };
    plan.settle_interfaces(&mut settle);
    asked.map_or_else(best, settle)
}

/// Returns the working directory in which a path lies.
fn work_dir_of<'y>(
    work_dirs: &'y [Arc<WorkDir>],
    path: &Path,
) -> Result<&'y WorkDir, ConductError> {
    let found = work_dirs.iter().find(|work_dir| path.starts_with(work_dir.path()));
    let outside = || format!("{} lies in no directory of the run", path.display());
    found.map(|found| &**found).ok_or_else(|| ConductError::Refused(outside()))
}

/// Returns the directory in which a run directory `<directory>/plimsoll/<run>` lies.
fn asked_directory(run_directory: &str) -> PathBuf {
    let path = Path::new(run_directory);
    path.ancestors()
        .nth(2)
        .filter(|path| !path.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

fn is_direct(job: &Job) -> bool {
    match &job.work {
        Work::Blocks(blocks) => blocks.direct,
        Work::Fill { direct, .. } => *direct,
        _ => false,
    }
}

/// Returns about how many operations a stage without a time has.
fn ops_expected(plan: &FilePlan, stage: usize) -> u64 {
    let workers = (0..plan.workers(stage)).map(WorkerId);
    let mut files: Vec<u32> =
        workers.flat_map(|worker| plan.files_of(stage, worker)).copied().collect();
    files.sort_unstable();
    files.dedup();
    let bytes: u64 = files.iter().map(|file| plan.table.entry(*file).size).sum();
    let of_job = |(job, _): (&Job, _)| match &job.work {
        Work::Names { set, act, .. } => {
            let shape = &plan.plan.tree(*set).shape;
            (0..job.workers.get()).map(|worker| shape.operations_count(*act, worker)).sum()
        }
        Work::Fill { block_bytes, .. } => bytes / u64::from(*block_bytes),
        _ => {
            let block = plan.buffer_bytes(stage, WorkerId(0)).max(1) as u64;
            job.ops_max.map_or(bytes / block, |ops| ops.total(job.workers))
        }
    };
    plan.jobs(stage).map(of_job).sum()
}
