//! A run on files, from its plan to its record: checks, directories, stages, and what is removed
//! again.

mod check;
mod limits;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use plimsoll_driver::{NullRings, RingDriver};
use plimsoll_driver_file::caches::{drop_files, drop_machine};
use plimsoll_driver_file::facts::probe;
use plimsoll_driver_file::in_use::Held;
use plimsoll_driver_file::yard::{Yard, sweep};
use plimsoll_driver_file::{FilesDriver, available, best};
use plimsoll_engine::{
    EndReason, EngineError, OpSinkError, RingConfig, StageContext, StageOutcome, ring_threads,
    run_ring_stage,
};
use plimsoll_model::{Interface, RunId, StageId, StageKind, WorkerId};
use plimsoll_record::schema::{self, Cleanup, CleanupState, FilesStage, RunState, Target};
use plimsoll_record::{OpLogWriter, RunDirectory};
use plimsoll_report::format;
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::{FileJobSpec, FilePlan, FileStageSpec, FileWorkSpec, FilesSpec};
use plimsoll_workload::mix64;

use self::limits::check_counts;
pub(crate) use self::limits::pacing_of;
use crate::args::OutputArgs;
use crate::args::file::FileConductArgs;
use crate::consent::{Consent, Permit};
use crate::run_record::{LogSink, Recorded, RunRecord};
use crate::runner::{RunTime, directory_for};
use crate::signals::Interrupts;
use crate::telemetry::{RunFacts, Telemetry};
use crate::ui::{Goal, Ui, Watched};
use crate::{machine, manifest, present};

/// Why caches are in use where they were to be dropped.
const NAMES_CACHED: &str =
    "those of names only go with all that the machine has cached (--drop-machine-caches)";

/// How a run on files is conducted.
pub(crate) struct FileSettings<'a> {
    pub(crate) conduct: &'a FileConductArgs,
    pub(crate) output: &'a OutputArgs,
    /// Whether what the run wrote stays.
    pub(crate) keeps_data: bool,
    /// Whether it may change what no run wrote.
    pub(crate) consent: Consent,
    /// Whether nothing is asked of files: what remains is the cost of the instrument.
    pub(crate) null: bool,
    /// Remarks to be kept with the run.
    pub(crate) notes: Vec<String>,
}

/// Prints what is to be printed of a run that has ended, and tells whether all is as it should be.
pub(crate) type Show<'a> = &'a dyn Fn(&RunRecord) -> Result<bool>;

/// A run under way.
struct FilesRun<'a> {
    plan: FilePlan,
    settings: &'a FileSettings<'a>,
    config: RingConfig,
    record: RunRecord,
    /// Files that are there.
    made: HashSet<u32>,
    /// Claims on the devices that are written, until the run is over.
    _held: Vec<Held>,
}

/// Runs a workload on files, records it and has it shown.
pub(crate) fn run(
    spec: &FilesSpec,
    settings: &FileSettings<'_>,
    show: Show<'_>,
) -> Result<ExitCode> {
    let time = RunTime::machine();
    let ui = Ui::new(&settings.output.print);
    let certificate = manifest::certificate(settings.output.certificate.as_deref())?;
    let mut spec = spec.clone();
    let mut notes = settings.notes.clone();
    let interface = settle_interfaces(&mut spec, settings, &mut notes);
    let entropy = mix64(spec.seed ^ time.wall_epoch.as_unix_ns());
    let id = RunId::new(&spec.name, time.wall_epoch, entropy);
    let plan = spec.validate(id.as_str())?;
    let config = RingConfig {
        threads: settings.conduct.threads.unwrap_or_else(machine::cores).max(1),
        interface,
    };
    check_counts(&plan, &config)?;
    let (permit, held) = if settings.null {
        (Permit::for_nothing_real(), Vec::new())
    } else {
        let held = check::check(&plan, &config)?;
        (Permit::for_files(&plan, settings.consent, &ui)?, held)
    };
    let interrupts = Interrupts::listen()?;
    let target = target(&plan, settings);
    let workload = serde_json::to_value(&plan.spec).unwrap_or_default();
    let mut manifest = manifest::of_workload(&id, (workload, plan.spec.seed), target, &time);
    manifest.certificate = certificate;
    manifest.notes = notes;
    let facts = RunFacts {
        run_id: id.as_str(),
        what: &plan.spec.name,
        endpoints: &manifest.target.endpoints,
        time: &time,
        tls_ca: None,
        ui,
    };
    let telemetry = Telemetry::start(&settings.output.telemetry, &facts)?;
    let directory =
        RunDirectory::create(&directory_for(settings.output.run_dir.as_deref(), &id), &manifest)?;
    let yards = match make_yards(&plan, settings, &id) {
        Ok(yards) => yards,
        Err(error) => {
            // Nothing was measured, so the record holds nothing that anybody could want.
            directory.discard()?;
            return Err(error);
        }
    };
    let record =
        RunRecord { time, directory, manifest, ui, interrupts, telemetry, _permit: permit };
    let mut run = FilesRun { plan, settings, config, record, made: HashSet::new(), _held: held };
    let endpoints = run.record.manifest.target.endpoints.join(", ");
    run.record
        .ui
        .note(&format!("{} in {endpoints}, seed {}", run.plan.spec.name, run.plan.spec.seed));
    let done = if settings.null {
        run.stages(&NullRings, &yards)
    } else {
        run.stages(&FilesDriver::new(endpoints), &yards)
    };
    run.finish(done, &yards, show)
}

/// Gives every job an interface that the machine allows, and returns that of jobs without one.
fn settle_interfaces(
    spec: &mut FilesSpec,
    settings: &FileSettings<'_>,
    notes: &mut Vec<String>,
) -> Interface {
    let asked = settings.conduct.interface.map(Interface::from);
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
    for job in spec.stages.iter_mut().flat_map(|stage| &mut stage.jobs) {
        job.interface = job.interface.map(&mut settle);
    }
    asked.map_or_else(best, settle)
}

/// Returns the directory in which a yard was made.
fn asked_of(yard: &Yard) -> PathBuf {
    asked_directory(&yard.path().to_string_lossy())
}

/// Returns the yard in which a path lies.
fn yard_of<'y>(yards: &'y [Yard], path: &Path) -> Result<&'y Yard> {
    let found = yards.iter().find(|yard| path.starts_with(yard.path()));
    found.with_context(|| format!("{} lies in no directory of the run", path.display()))
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

fn target(plan: &FilePlan, settings: &FileSettings<'_>) -> Target {
    let directories: Vec<String> = plan
        .run_directories()
        .iter()
        .map(|path| asked_directory(path).display().to_string())
        .collect();
    if settings.null {
        return Target::bare("null", vec!["null".to_owned()]);
    }
    let existing = (0..plan.table.len() as u32).map(|file| plan.table.entry(file));
    let existing = existing.filter(|entry| entry.existing).map(|entry| entry.path.clone());
    let names: Vec<String> = directories.iter().cloned().chain(existing).collect();
    let facts = names.first().and_then(|path| probe(Path::new(path)).ok());
    let files = schema::FilesTarget {
        // Whoever cleans up later may do so from elsewhere.
        directories: directories.iter().map(|path| absolute(path)).collect(),
        file_system: facts.as_ref().map(|facts| facts.file_system.clone()),
        mount_point: facts
            .as_ref()
            .and_then(|facts| facts.mount_point.as_ref().map(|path| path.display().to_string())),
        device: facts.as_ref().and_then(|facts| facts.device.clone()),
        size_bytes: facts.as_ref().map(|facts| facts.size_bytes),
        free_bytes: facts.as_ref().map(|facts| facts.free_bytes),
    };
    let prefix = (!files.directories.is_empty()).then(|| "plimsoll".to_owned());
    Target {
        files: Some(files),
        prefix,
        // One endpoint stands for all paths: blocks are told apart by their files.
        ..Target::bare("file", vec![names.join(", ")])
    }
}

/// Makes the run's own directories, one in each that it was given.
fn make_yards(plan: &FilePlan, settings: &FileSettings<'_>, id: &RunId) -> Result<Vec<Yard>> {
    if settings.null {
        return Ok(Vec::new());
    }
    let mut yards: Vec<Yard> = Vec::new();
    for path in plan.run_directories() {
        match Yard::make(&asked_directory(&path), id.as_str()) {
            Ok(yard) => yards.push(yard),
            Err(error) => {
                // What was made so far is empty.
                for yard in &yards {
                    let _ = sweep(&asked_of(yard), id.as_str(), &|| false);
                }
                return Err(error.into());
            }
        }
    }
    Ok(yards)
}

impl FilesRun<'_> {
    /// Runs the stages until one ends the run.
    fn stages<D: RingDriver>(&mut self, driver: &D, yards: &[Yard]) -> Result<Recorded> {
        let run = RunId::parse(&self.record.manifest.run_id).context("the run's own id")?;
        let (epoch, endpoints) =
            (self.record.time.wall_epoch, &self.record.manifest.target.endpoints);
        let mut sink = LogSink(OpLogWriter::new(&self.record.directory, &run, epoch, endpoints));
        let generator = Arc::new(Generator::new(self.plan.spec.seed));
        let mut stages = Vec::new();
        let mut failed = None;
        for stage in 0..self.plan.spec.stages.len() {
            let outcome = self.stage(driver, stage, yards, &generator, &mut sink);
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            let spec = &self.plan.spec.stages[stage];
            let kind = kind_of(spec);
            let why = why_over(spec, &outcome);
            let stopped = outcome.ended_by == EndReason::Stopped;
            stages.push((StageId(stage as u8), kind, outcome));
            failed = why;
            if failed.is_some() || stopped {
                break;
            }
        }
        let is_prepare = |(_, kind, _): &(_, StageKind, _)| *kind == StageKind::Prepare;
        let is_stopped =
            |(_, _, outcome): &(_, _, StageOutcome)| outcome.ended_by == EndReason::Stopped;
        if failed.is_none()
            && stages.last().is_some_and(is_stopped)
            && stages.iter().all(is_prepare)
        {
            failed = Some(anyhow!("stopped while preparing; nothing was measured"));
        }
        let totals = sink.0.finish().context("cannot complete the op log")?;
        match failed {
            Some(error) => {
                let recorded = Recorded { stages, totals };
                self.record.settle(&recorded, RunState::Failed, Some(format!("{error:#}")))?;
                Err(error)
            }
            None => Ok(Recorded { stages, totals }),
        }
    }

    fn stage<D: RingDriver>(
        &mut self,
        driver: &D,
        stage: usize,
        yards: &[Yard],
        generator: &Arc<Generator>,
        sink: &mut LogSink,
    ) -> Result<StageOutcome> {
        let made = if self.settings.null { None } else { Some(self.make_ready(stage, yards)?) };
        let spec = &self.plan.spec.stages[stage];
        let threads = ring_threads(&self.plan, stage, &self.config);
        let workers = (self.plan.workers(stage), threads as u32);
        let kind = kind_of(spec);
        let (loop_model, schedules) = pacing_of(spec);
        let mut entry =
            schema::Stage::begun(stage as u8, kind.into(), &spec.name, loop_model, workers);
        entry.schedule = schema::Schedule::sum(schedules.iter().map(|of| &of.schedule));
        entry.files = Some(FilesStage { schedules, ..self.facts_of(spec, made) });
        self.record.manifest.stages.push(entry);
        self.record.directory.write_manifest(&self.record.manifest)?;
        let live = self.record.begin_counting(&spec.name, threads);
        let context = StageContext {
            clock: &self.record.time.clock,
            virtual_time: None,
            stop: self.record.interrupts.stop_flag(),
            live: &live,
            generator,
            wall_epoch: self.record.time.wall_epoch,
            tags: None,
        };
        let doing = match (stage, spec.iteration) {
            (0, _) => format!("{}; q or Ctrl-C ends the run early, with a report", spec.name),
            (_, 0) => spec.name.clone(),
            (_, iteration) => format!("{}, repetition {}", spec.name, iteration + 1),
        };
        let watched = Watched {
            name: &spec.name,
            doing: &doing,
            goal: goal(&self.plan, stage),
            live: &live,
            clock: &*self.record.time.clock,
        };
        let (before, unverified) = (machine::usage(), self.plan.table.unverified_bytes());
        let outcome = self.record.ui.watch(&watched, &self.record.interrupts, || {
            run_ring_stage(driver, (&self.plan, stage), &self.config, &context, sink)
        });
        let usage = machine::usage();
        let outcome = outcome.map_err(|error| match error {
            EngineError::Sink(OpSinkError(source)) => anyhow::Error::from_boxed(source),
            EngineError::Target(error) => anyhow!("{}", error.message),
            other => other.into(),
        })?;
        self.record.note_end(stage as u8, &outcome);
        if let Some(files) = &mut self.record.manifest.stages[stage].files {
            files.usage = Some(machine::usage_since(&usage, &before));
            files.unverified_bytes = Some(self.plan.table.unverified_bytes() - unverified);
        }
        self.record.directory.write_manifest(&self.record.manifest)?;
        Ok(outcome)
    }

    /// Makes directories and files that the stage needs, and drops caches where it asks for that.
    fn make_ready(&mut self, stage: usize, yards: &[Yard]) -> Result<(String, Option<String>)> {
        let spec = &self.plan.spec.stages[stage];
        let directories = self.plan.directories_before(stage);
        for path in directories.iter().map(Path::new) {
            yard_of(yards, path)?.make_directories([path])?;
        }
        let mut paths = Vec::new();
        for worker in (0..self.plan.workers(stage)).map(WorkerId) {
            for file in self.plan.files_of(stage, worker) {
                let entry = self.plan.table.entry(*file);
                paths.push(PathBuf::from(&entry.path));
                if !entry.existing && self.made.insert(*file) {
                    let path = Path::new(&entry.path);
                    yard_of(yards, path)?.make_file(path, entry.size)?;
                }
            }
        }
        let invalidates = |job: &FileJobSpec| match &job.work {
            FileWorkSpec::Blocks(blocks) => blocks.invalidates && !blocks.direct,
            FileWorkSpec::Fill(_) | FileWorkSpec::Names(_) => false,
        };
        let direct = !spec.jobs.is_empty() && spec.jobs.iter().all(is_direct);
        paths.sort_unstable();
        paths.dedup();
        let mut places =
            directories.iter().map(Path::new).chain(paths.iter().map(PathBuf::as_path));
        let in_memory = places.next().and_then(|path| probe(path).ok());
        if in_memory.is_some_and(|facts| facts.is_memory) {
            let why = "the file system lies in memory".to_owned();
            return Ok(("cached".to_owned(), spec.drop_caches.then_some(why)));
        }
        let kept = if direct { "bypassed" } else { "cached" };
        let of_machine = self.settings.conduct.drop_machine_caches && !direct && !spec.prepares;
        if !spec.drop_caches && !of_machine && !spec.jobs.iter().any(invalidates) {
            return Ok((kept.to_owned(), None));
        }
        let dropped = drop_files(&paths);
        let of_machine = if of_machine { drop_machine().map(|()| true) } else { Ok(false) };
        Ok(match (direct, of_machine) {
            (true, _) => (kept.to_owned(), None),
            (false, Ok(true)) => ("dropped-machine".to_owned(), None),
            // Names and attributes have no pages of their own.
            (false, Ok(false)) if paths.is_empty() => {
                (kept.to_owned(), spec.drop_caches.then(|| NAMES_CACHED.to_owned()))
            }
            (false, of_machine) => {
                let state =
                    if dropped.missed.is_none() && !paths.is_empty() { "dropped" } else { kept };
                (state.to_owned(), dropped.missed.or(of_machine.err()))
            }
        })
    }

    fn facts_of(&self, spec: &FileStageSpec, made: Option<(String, Option<String>)>) -> FilesStage {
        let interface = |job: &FileJobSpec| match (&job.work, made.is_some()) {
            (_, false) => "null".to_owned(),
            (FileWorkSpec::Names(_), true) => Interface::Psync.name().to_owned(),
            (_, true) => job.interface.unwrap_or(self.config.interface).name().to_owned(),
        };
        let interfaces = spec.jobs.iter().map(interface).collect();
        let (caches, caches_reason) = made.unwrap_or_else(|| ("unknown".to_owned(), None));
        let iteration = spec.iteration;
        FilesStage { iteration, interfaces, caches, caches_reason, ..FilesStage::default() }
    }

    /// Settles the record, has it shown and removes what the run wrote.
    fn finish(
        mut self,
        done: Result<Recorded>,
        yards: &[Yard],
        show: Show<'_>,
    ) -> Result<ExitCode> {
        // Cleaning may take long or never end, so the report is printed before it; and it is done
        // whatever the record and the report came to.
        let shown = done.and_then(|recorded| {
            self.record.settle_measured(&recorded)?;
            show(&self.record)
        });
        let is_clean = self.clean_up(yards);
        let written = self.record.directory.write_manifest(&self.record.manifest);
        // The disk may be what failed; the first error is the one to tell.
        let good = shown?;
        written?;
        Ok(present::exit_code(good && is_clean))
    }

    /// Removes what the run wrote, and tells whether nothing is left that should not be.
    fn clean_up(&mut self, yards: &[Yard]) -> bool {
        let begun = self.record.now();
        let (mut state, mut removed) = (CleanupState::NotNeeded, None);
        if self.settings.keeps_data && !yards.is_empty() {
            state = CleanupState::Kept;
        } else if !yards.is_empty() {
            self.record.interrupts.begin_step();
            self.record.ui.note("cleaning up; Ctrl-C leaves it to `plimsoll clean`");
            state = CleanupState::Complete;
            let mut count = 0;
            for yard in yards {
                let is_stopped = || self.record.interrupts.is_step_stopped();
                match sweep(&asked_of(yard), &self.record.manifest.run_id, &is_stopped) {
                    Ok(swept) => count += swept.files,
                    Err(error) => {
                        state = CleanupState::Failed;
                        let path = self.record.directory.path().display();
                        let trouble = format!("{error}; `plimsoll clean {path}` finishes the job");
                        self.record.ui.warn(&trouble);
                    }
                }
            }
            self.record.ui.note(&format!("removed {} files", format::count(count)));
            removed = Some(count);
        }
        let took = self.record.now().since(begun).as_nanos() as u64;
        self.record.manifest.cleanup =
            Cleanup { state, objects_removed_count: removed, took_ns: removed.map(|_| took) };
        state != CleanupState::Failed
    }
}

fn kind_of(spec: &FileStageSpec) -> StageKind {
    if spec.prepares { StageKind::Prepare } else { StageKind::Measure }
}

/// Returns why the run cannot go on after a stage.
fn why_over(spec: &FileStageSpec, outcome: &StageOutcome) -> Option<anyhow::Error> {
    let is_over =
        outcome.ended_by == EndReason::Failure || (spec.prepares && outcome.failed_count > 0);
    let first = outcome.errors.first().filter(|_| is_over)?;
    let (failed, ops) = (outcome.failed_count, outcome.ops_count);
    Some(anyhow!(
        "{} failed: {failed} of {ops} operations; the first: {}",
        spec.name,
        first.message
    ))
}

fn is_direct(job: &FileJobSpec) -> bool {
    match &job.work {
        FileWorkSpec::Blocks(blocks) => blocks.direct,
        FileWorkSpec::Fill(fill) => fill.direct,
        FileWorkSpec::Names(_) => false,
    }
}

/// Returns how far a stage has to go.
fn goal(plan: &FilePlan, stage: usize) -> Goal {
    let spec = &plan.spec.stages[stage];
    let lasts = |job: &FileJobSpec| {
        let end = job.duration_ns?.saturating_add(job.ramp_ns);
        Some(end.saturating_add(job.start_delay_ns.max))
    };
    let longest: Option<u64> =
        spec.jobs.iter().map(lasts).try_fold(0, |longest, each| Some(longest.max(each?)));
    match longest {
        Some(ns) if ns > 0 => Goal::Time(std::time::Duration::from_nanos(ns)),
        _ => Goal::Ops(ops_expected(plan, stage).max(1)),
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
    let of_job = |job: &FileJobSpec| match &job.work {
        FileWorkSpec::Names(names) => {
            (0..job.clones).map(|clone| names.operations_count(clone)).sum()
        }
        FileWorkSpec::Fill(fill) => bytes / u64::from(fill.block_bytes.max(1)),
        FileWorkSpec::Blocks(_) => {
            let block = plan.buffer_bytes(stage, WorkerId(0)).max(1) as u64;
            job.ops_max.map_or(bytes / block, |ops| ops * u64::from(job.clones))
        }
    };
    plan.spec.stages[stage].jobs.iter().map(of_job).sum()
}
