//! Jobs to stages: what a job file means on this machine, as a run on files of our own.
//!
//! The stages come in the order of waves and of what waits for what. Before a stage come those that
//! make what it needs; after one that asks for `verify` comes one that reads all back.

mod blocks;
mod files;
mod names;
mod scale;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::time::Duration;

use plimsoll_model::Interface;
use plimsoll_workload::plan::spec::{InterfaceSpec, JobSpec, WorkSpec, WorkStage};
use plimsoll_workload::plan::{OnFiles, WorkloadFile};

use self::files::{KnownFile, Placed};
use self::names::Trees;
use self::scale::Scale;
use super::error::{FioError, Problem};
use super::job::{Direction, Engine, Job, JobFile, note};
use crate::command_line::Note;

pub use self::files::paths_asked;

/// How many jobs a stage's name says before it counts the others.
const NAMED_JOBS_MAX: usize = 3;

/// The machine that jobs are lowered for, and how far they are scaled down for it.
pub struct Machine<'a> {
    /// Processors, each of which fills files.
    pub cores: u32,
    /// Where the program runs.
    pub default_directory: &'a str,
    /// Returns the size of a file, or of a device, that already exists.
    pub file_size: &'a dyn Fn(&str) -> Option<u64>,
    /// Returns whether a path is a device.
    pub is_device: &'a dyn Fn(&str) -> bool,
    /// Whether what already exists may be written to: `--i-know-this-destroys-data`.
    pub destroys: bool,
    /// The run's seed.
    pub seed: u64,
    /// What sizes of files and amounts to read and write are multiplied by. Blocks stay.
    pub size_scale: Option<f64>,
    /// What times are multiplied by.
    pub runtime_scale: Option<f64>,
    /// How many clones a job has at most.
    pub clones_max: Option<u32>,
    /// How many machines carry the jobs out, each of them all.
    pub clients: NonZeroU32,
}

/// The most clones of a job: fio's own limit is 4,096.
const JOB_CLONES_MAX: u64 = 10_000;
/// The most clones of all jobs, some of which may wait for others.
const CLONES_MAX: u64 = 100_000;
/// The most files that are read and written by blocks; each is kept track of by its path.
const FILES_MAX: u64 = 1_000_000;

impl Machine<'_> {
    /// Returns how many clones a job has on each machine.
    fn clones_each(&self, job: &Job) -> u32 {
        clones_each(job, self.clones_max)
    }
}

fn clones_each(job: &Job, max: Option<u32>) -> u32 {
    job.flow.numjobs.min(max.unwrap_or(u32::MAX)).max(1)
}

/// A job file as a run on files.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// The run.
    pub workload: WorkloadFile,
    /// What does not mean here what it means to fio: the notes of the job file, then those of what
    /// it comes to on this machine.
    pub notes: Vec<Note>,
    /// What the stages are in terms of the job file, in their order.
    pub stages: Vec<LoweredStage>,
    /// Whether nothing reaches a file and the instrument itself is measured.
    pub null: bool,
}

/// Which jobs of the job file a stage stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoweredStage {
    /// The index in `JobFile::jobs` of each job of the stage, in order; of a stage that fills
    /// files, of the jobs whose files they are. None of what is filled before everything else.
    pub jobs: Vec<usize>,
    /// Whether it reads back what those jobs have written.
    pub verifies: bool,
}

impl Lowered {
    /// Tells whether all jobs of a stage ask for one row of them together.
    pub fn is_grouped(&self, file: &JobFile, stage: usize) -> bool {
        let groups = |job: &usize| file.jobs[*job].flow.group_reporting;
        self.stages.get(stage).is_some_and(|stage| stage.jobs.iter().all(groups))
    }
}

/// Returns what the jobs of `file` come to on a machine.
pub fn lower(file: &JobFile, machine: &Machine<'_>) -> Result<Lowered, FioError> {
    let null = file.jobs.iter().any(|job| job.queue.engine == Engine::Null);
    if let Some(job) = file.jobs.iter().find(|job| null && job.queue.engine != Engine::Null) {
        let text = "`ioengine=null` measures the instrument: all jobs of a run take it or none";
        return Err(refuse(job, text.to_owned()));
    }
    let mut lowering = Lowering {
        file,
        machine,
        null,
        scale: Scale::new(file, machine),
        known: HashMap::new(),
        trees: Trees::new(),
        notes: file.notes.clone(),
        elapsed: Duration::ZERO,
        on_files: OnFiles::default(),
        stages: Vec::new(),
    };
    lowering.check_amounts()?;
    lowering.note_scale();
    for jobs in lowering.steps() {
        lowering.step(&jobs)?;
    }
    lowering.finish()
}

/// Returns the error that a job cannot be run.
fn refuse(job: &Job, text: String) -> FioError {
    FioError { place: job.place.clone(), problem: Problem::Job(text) }
}

/// Returns a factor as people write it: `1/1024`, or `0.3`.
fn part(factor: f64) -> String {
    let whole = (1.0 / factor).round();
    if whole > 1.0 && (factor * whole - 1.0).abs() < 1e-9 {
        format!("1/{whole}")
    } else {
        factor.to_string()
    }
}

/// A job file while its stages are made.
struct Lowering<'a> {
    file: &'a JobFile,
    machine: &'a Machine<'a>,
    null: bool,
    scale: Scale,
    /// The files of the run so far, by path.
    known: HashMap<String, KnownFile>,
    trees: Trees,
    notes: Vec<Note>,
    /// How long the run has lasted at least when the next step begins.
    elapsed: Duration,
    on_files: OnFiles,
    stages: Vec<LoweredStage>,
}

impl<'a> Lowering<'a> {
    fn job(&self, index: usize) -> &'a Job {
        &self.file.jobs[index]
    }

    /// Returns how many clones a job has on all machines together.
    fn clones(&self, job: &Job) -> u32 {
        self.machine.clones_each(job).saturating_mul(self.machine.clients.get())
    }

    /// Refuses more clones, or files that are kept track of by path, than any machine has use for.
    fn check_amounts(&self) -> Result<(), FioError> {
        let (mut all_clones, mut all_files) = (0_u64, 0_u64);
        for job in &self.file.jobs {
            let clones = u64::from(self.machine.clones_each(job));
            all_clones += clones;
            if clones > JOB_CLONES_MAX || all_clones > CLONES_MAX {
                let text = format!(
                    "`numjobs={clones}`: a job has at most {JOB_CLONES_MAX} clones, and all jobs \
                     together have at most {CLONES_MAX}"
                );
                return Err(refuse(job, text));
            }
            if !job.queue.engine.is_metadata() {
                let of_job = u64::from(self.clones(job)).saturating_mul(job.files.count.into());
                all_files = all_files.saturating_add(of_job);
            }
            if all_files > FILES_MAX {
                let text = format!("`nrfiles`: all jobs together have at most {FILES_MAX} files");
                return Err(refuse(job, text));
            }
        }
        Ok(())
    }

    fn note(&mut self, job: &Job, option: &str, what: &str) {
        let note = note(job.place.section.as_ref().unwrap_or(&job.name), option, what);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn note_scale(&mut self) {
        let Machine { size_scale, runtime_scale, clones_max, .. } = *self.machine;
        let parts: Vec<String> = [
            size_scale.map(|factor| format!("files and amounts are {} of theirs", part(factor))),
            runtime_scale.map(|factor| format!("times are {} of theirs", part(factor))),
            clones_max.map(|max| format!("a job has at most {max} clones")),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !parts.is_empty() {
            self.notes.push(note("global", "--scale", parts.join(", ")));
        }
    }

    /// Returns the jobs that run at once, one step after the other.
    fn steps(&mut self) -> Vec<Vec<usize>> {
        let jobs = &self.file.jobs;
        let mut places: Vec<(u32, u32)> = Vec::with_capacity(jobs.len());
        let mut steps: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate() {
            let wave = job.flow.wave;
            // What an earlier wave holds has ended anyhow.
            let awaited = job.flow.wait_for.map(|other| places[other]);
            let level = awaited.filter(|place| place.0 == wave).map_or(0, |place| place.1 + 1);
            places.push((wave, level));
            steps.entry((wave, level)).or_default().push(index);
        }
        for job in jobs {
            let Some(other) = job.flow.wait_for else { continue };
            if jobs[other].flow.wave == job.flow.wave && steps[&places[other]].len() > 1 {
                let option = format!("wait_for={}", jobs[other].name);
                self.note(job, &option, "it waits for all jobs that run beside that one too");
            }
        }
        steps.into_values().collect()
    }

    /// Adds the stages of jobs that run at once.
    fn step(&mut self, jobs: &[usize]) -> Result<(), FioError> {
        let (makes, runs): (Vec<usize>, Vec<usize>) =
            jobs.iter().partition(|&&index| self.job(index).files.create_only);
        let mut to_fill = Vec::new();
        let mut placed = HashMap::new();
        for &index in makes.iter().chain(&runs) {
            let job = self.job(index);
            if job.queue.engine.is_metadata() {
                self.check_names(job)?;
                continue;
            }
            let files = self.place(job)?;
            if files.are_of_all_clients {
                let option = format!("filename_format={}", job.files.name_format);
                let what = "clones of all clients share its files; in fio they share those of \
                            their client";
                self.note(job, &option, what);
            }
            if (job.files.create_only || job.fills_files()) && self.needs_filling(index, &files) {
                to_fill.push((index, files.clone()));
            }
            self.remember(job, &files);
            placed.insert(index, files);
        }
        self.fill(&to_fill);
        self.prepare_names(&runs)?;
        self.measure(&runs, &placed)?;
        self.read_back(&runs, &placed);
        for &index in &runs {
            if let Some(files) = placed.get(&index) {
                self.written(index, files);
            }
        }
        self.names_done(&runs);
        self.elapsed += jobs.iter().map(|&index| self.least_time(index)).max().unwrap_or_default();
        Ok(())
    }

    /// Returns how long a job lasts at least, from the start of its step.
    fn least_time(&self, index: usize) -> Duration {
        let job = self.job(index);
        let delay = self.scale.time(job.flow.start_delay.min).saturating_sub(self.elapsed);
        let timing = &job.timing;
        let runtime = timing.runtime.filter(|_| timing.time_based && !job.files.create_only);
        delay + runtime.map_or(Duration::ZERO, |time| self.scale.time(time + timing.ramp))
    }

    /// Adds the stage that fills files, if any are to be filled.
    fn fill(&mut self, jobs: &[(usize, Placed)]) {
        let Some(&(first, _)) = jobs.first() else { return };
        let name = match jobs {
            [_] if self.job(first).files.create_only => self.job(first).name.clone(),
            _ => "fill".to_owned(),
        };
        let files = jobs.iter().flat_map(|(_, placed)| &placed.parts).map(|part| &part.files);
        let fill = WorkSpec::Fill(self.on_files.fill(files));
        let job = JobSpec {
            name: Some(name.clone()),
            // The page cache takes what is written, so there is nothing to wait for.
            interface: Some(InterfaceSpec(Interface::Psync)),
            ..JobSpec::of(self.machine.cores.max(1), fill)
        };
        let indices: Vec<usize> = jobs.iter().map(|(index, _)| *index).collect();
        self.prepare(&name, vec![job], indices);
    }

    /// Adds a stage that makes what later ones need. Without that they mean nothing, so its first
    /// failure ends the run.
    fn prepare(&mut self, name: &str, jobs: Vec<JobSpec>, indices: Vec<usize>) {
        let stage = WorkStage { prepares: true, ..self.ending(name, jobs, true) };
        self.add(stage, indices, false);
    }

    /// Returns a stage whose first failure ends the run or not.
    fn ending(&self, name: &str, jobs: Vec<JobSpec>, end_on_failure: bool) -> WorkStage {
        let name = self.on_files.stage_name(name);
        WorkStage { end_on_failure, ..WorkStage::of(&name, jobs) }
    }

    fn add(&mut self, stage: WorkStage, jobs: Vec<usize>, verifies: bool) {
        self.on_files.stage(stage);
        self.stages.push(LoweredStage { jobs, verifies });
    }

    /// Adds the stage in which jobs do what they are for.
    fn measure(
        &mut self,
        indices: &[usize],
        placed: &HashMap<usize, Placed>,
    ) -> Result<(), FioError> {
        let mut jobs = Vec::new();
        let mut indices_of_jobs = Vec::new();
        for &index in indices {
            let specs = match placed.get(&index) {
                Some(files) => self.block_jobs(index, files)?,
                None => vec![self.name_job(index)],
            };
            indices_of_jobs.extend(specs.iter().map(|_| index));
            jobs.extend(specs);
        }
        let names: Vec<&str> = indices.iter().map(|&index| self.job(index).name.as_str()).collect();
        let name = match names.as_slice() {
            [] => return Ok(()),
            few if few.len() <= NAMED_JOBS_MAX => few.join("+"),
            many => format!("{}+{}", many[0], many.len() - 1),
        };
        self.note_ends(indices);
        let ends = indices.iter().any(|&index| ends_on_failure(self.job(index)));
        self.add(self.ending(&name, jobs, ends), indices_of_jobs, false);
        Ok(())
    }

    fn note_ends(&mut self, indices: &[usize]) {
        if indices.iter().all(|&index| ends_on_failure(self.job(index))) {
            return;
        }
        for &index in indices {
            let job = self.job(index);
            if ends_on_failure(job) {
                let option =
                    if job.flow.exitall_on_error { "exitall_on_error" } else { "verify_fatal" };
                self.note(job, option, "a failure of a job beside it ends the run too");
            }
        }
    }

    /// Adds the stage that reads back what jobs with `verify` have written.
    fn read_back(&mut self, indices: &[usize], placed: &HashMap<usize, Placed>) {
        let asks = |job: &Job| {
            job.verify.method.is_some()
                && job.verify.after_writing
                && job.pattern.direction != Direction::Read
                && job.writes()
        };
        let mut jobs = Vec::new();
        let mut indices_of_jobs = Vec::new();
        for &index in indices {
            let job = self.job(index);
            let Some(files) = placed.get(&index).filter(|_| asks(job) && !self.null) else {
                continue;
            };
            let specs = self.reading_jobs(index, files);
            indices_of_jobs.extend(specs.iter().map(|_| index));
            jobs.extend(specs);
            let option = format!("verify={}", job.verify.method.as_deref().unwrap_or_default());
            self.note(
                job,
                &option,
                "when the jobs beside it have ended too, a separate stage reads its files back \
                from end to end",
            );
        }
        let Some(&first) = indices_of_jobs.first() else { return };
        let name = format!("{}-verify", self.job(first).name);
        let ends = indices_of_jobs.iter().any(|&index| ends_on_failure(self.job(index)));
        self.add(self.ending(&name, jobs, ends), indices_of_jobs, true);
    }

    fn finish(self) -> Result<Lowered, FioError> {
        let Self { file, machine, null, notes, on_files, mut stages, .. } = self;
        if stages.is_empty() {
            let job = &file.jobs[0];
            return Err(refuse(job, "no job of the file has anything to do".to_owned()));
        }
        if on_files.prepares() {
            stages.insert(0, LoweredStage { jobs: Vec::new(), verifies: false });
        }
        let workload = on_files.workload(&run_name(&file.name), Some(machine.seed));
        // The null engine reads nothing that could be checked.
        let workload = WorkloadFile { verify: !null, ..workload };
        Ok(Lowered { workload, notes, stages, null })
    }
}

/// Returns whether the first failure of a job ends the run.
fn ends_on_failure(job: &Job) -> bool {
    job.flow.exitall_on_error || (job.verify.fatal && job.verify.method.is_some())
}

/// Returns a text as a name of files and sets.
fn label(text: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let name: String = text.chars().map(|c| if is_plain(&c) { c } else { '_' }).collect();
    match name.trim_matches(['.', '_', '-']) {
        "" => "files".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns what a run is called: the job file's name without its folder and its ending.
fn run_name(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    match name.trim_matches('-') {
        "" => "fio".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
