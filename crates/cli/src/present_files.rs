//! The report on a run on files, from what its directory says: now, or read back.

mod narrowed;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use plimsoll_analysis::OpSource;
use plimsoll_analysis::phases::{PhaseAnalysis, PhaseQuestion, WorkerRow, phases};
use plimsoll_engine::start_delay;
use plimsoll_model::{
    Bytes, Interface, Moment, OpKind, OpRate, RunId, Seed, StageId, WallTime, WorkerId,
};
use plimsoll_record::schema::{self, CleanupState, Manifest, RunState as RecordedState};
use plimsoll_report::format;
use plimsoll_report::phases::{
    CacheState, FilesTarget, JobSchedule, PhaseReport, PhaseRow, PhasesReport,
};
use plimsoll_report::{OpLogCheck, RunState, ScheduleReport, Verification, VerificationMode};
use plimsoll_workload::RateProfile;
use plimsoll_workload::files::{
    BlockOrderSpec, BlockSizesSpec, BlocksSpec, FILES_SCHEMA, FileJobSpec, FilePacingSpec,
    FileStageSpec, FileWorkSpec, FilesSpec, JobFilesSpec, NameActSpec, NamesSpec,
};

use crate::args::AnalysisArgs;
use crate::present;
use crate::recorded::{Origin, Record};

/// How the workers of a stage are put into rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// One for the jobs of each group.
    Groups,
    /// One for each clone of each job.
    Clones,
}

/// What a row of a stage holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowJobs {
    /// The jobs by their index in the stage.
    pub(crate) jobs: Vec<usize>,
    /// The clone, where a row is one.
    pub(crate) clone: Option<u32>,
}

/// One stage of a run with its figures.
pub(crate) struct Phase {
    /// Its index.
    pub(crate) stage: usize,
    pub(crate) rows: Vec<RowJobs>,
    pub(crate) analysis: PhaseAnalysis,
}

/// Returns the workload of a run on files; `None` where it is another.
pub(crate) fn spec_of(manifest: &Manifest) -> Option<FilesSpec> {
    let is_ours = manifest.workload["schema"].as_str() == Some(FILES_SCHEMA);
    is_ours.then(|| serde_json::from_value(manifest.workload.clone()).ok()).flatten()
}

/// Returns the report on a run on files with the stages that are asked for; `None` where it is
/// another run.
pub(crate) fn of_record(record: &Record, asked: &AnalysisArgs) -> Result<Option<PhasesReport>> {
    let Origin::Run { directory, .. } = &record.origin else { return Ok(None) };
    let Some(found) = narrowed::Narrowed::of(record, asked)? else { return Ok(None) };
    let mut report = of_run(&found.manifest, directory.path(), &found.spec, found.phases)?;
    report.warnings.extend(record.losses.iter().cloned());
    Ok(Some(report))
}

/// Returns the figures of the one stage of a run on files that is asked for, or that there is;
/// `None` where it is another run.
pub(crate) fn stage_of_record(
    record: &Record,
    asked: &AnalysisArgs,
) -> Result<Option<PhaseAnalysis>> {
    narrowed::Narrowed::of(record, asked)?.map(narrowed::Narrowed::only).transpose()
}

/// Returns the figures of the stages that `rows` gives a way to lay out.
pub(crate) fn analyse<S: OpSource>(
    source: &S,
    manifest: &Manifest,
    spec: &FilesSpec,
    rows: impl Fn(usize) -> Rows,
) -> Result<Vec<Phase>>
where
    S::Error: std::error::Error + Send + Sync + 'static,
{
    analyse_changed(source, manifest, spec, rows, PhaseQuestion::WINDOW, |_, _| ())
}

/// Returns the same with windows of another length, and with another beginning of what counts:
/// `change` is handed the start of each stage and its workers.
fn analyse_changed<S: OpSource>(
    source: &S,
    manifest: &Manifest,
    spec: &FilesSpec,
    rows: impl Fn(usize) -> Rows,
    window: Duration,
    change: impl Fn(Moment, &mut [WorkerRow]),
) -> Result<Vec<Phase>>
where
    S::Error: std::error::Error + Send + Sync + 'static,
{
    let mut laid_out = Vec::new();
    for (stage, entry) in manifest.stages.iter().enumerate() {
        let (Some(started), Some(ended), Some(of)) =
            (entry.started_ns, entry.ended_ns, spec.stages.get(stage))
        else {
            continue;
        };
        let (jobs, mut workers) = lay_out(of, rows(stage), started, spec.seed);
        change(Moment::from_ns(started), &mut workers);
        laid_out.push((stage, (started, ended), jobs, workers));
    }
    let mut questions = Vec::new();
    for (stage, (started, ended), jobs, workers) in &laid_out {
        questions.push(PhaseQuestion {
            stage: StageId(*stage as u8),
            started: Moment::from_ns(*started),
            ended: Moment::from_ns(*ended),
            workers,
            rows_count: jobs.len(),
            window,
            client_of: &[],
        });
    }
    let answers = phases(source, &questions).context("cannot read the op log back")?;
    let phase = |((stage, _, rows, _), analysis)| Phase { stage, rows, analysis };
    Ok(laid_out.into_iter().zip(answers).map(phase).collect())
}

/// Returns the rows of a stage, and to which each worker belongs and from when on it counts.
fn lay_out(
    stage: &FileStageSpec,
    rows: Rows,
    started_ns: u64,
    seed: u64,
) -> (Vec<RowJobs>, Vec<WorkerRow>) {
    let mut laid: Vec<(u32, RowJobs)> = Vec::new();
    let mut workers = Vec::new();
    for (index, job) in stage.jobs.iter().enumerate() {
        for clone in 0..job.clones {
            let same = laid.iter().position(|(group, _)| *group == job.group);
            let row = match (rows, same) {
                (Rows::Groups, Some(row)) => {
                    if laid[row].1.jobs.last() != Some(&index) {
                        laid[row].1.jobs.push(index);
                    }
                    row
                }
                _ => {
                    let clone = (rows == Rows::Clones).then_some(clone);
                    laid.push((job.group, RowJobs { jobs: vec![index], clone }));
                    laid.len() - 1
                }
            };
            let worker = WorkerId(workers.len() as u32);
            let began = Moment::from_ns(started_ns).after(start_delay(job, seed, worker));
            let measured_from = began.after(Duration::from_nanos(job.ramp_ns));
            workers.push(WorkerRow { row: row as u32, measured_from });
        }
    }
    (laid.into_iter().map(|(_, row)| row).collect(), workers)
}

/// Returns the report on a run on files.
pub(crate) fn of_run(
    manifest: &Manifest,
    directory: &Path,
    spec: &FilesSpec,
    phases: Vec<Phase>,
) -> Result<PhasesReport> {
    // Of the run, also where only a later stage is asked for.
    let mut begun = manifest.stages.iter().filter(|stage| stage.ended_ns.is_some());
    let epoch_ns = begun.find_map(|stage| stage.started_ns).unwrap_or_default();
    let started = WallTime::from_unix_ns(manifest.started_unix_ns + epoch_ns);
    let entries = || manifest.stages.iter();
    let counted: Option<u64> = entries().map(|stage| stage.ops_count).sum();
    let rows = manifest.recorder.map(|recorder| recorder.rows_count);
    let mut interfaces: Vec<&String> = entries()
        .filter_map(|stage| stage.files.as_ref())
        .flat_map(|files| &files.interfaces)
        .collect();
    interfaces.sort_unstable();
    interfaces.dedup();
    let interface = match interfaces[..] {
        [one] => Interface::from_name(one),
        _ => None,
    };
    let verification = verification(manifest, spec, &phases);
    let reports = phases.into_iter().map(|phase| phase_report(manifest, spec, phase, epoch_ns));
    let phases: Vec<PhaseReport> = reports.collect::<Result<_>>()?;
    let target = manifest.target.files.clone().unwrap_or_default();
    Ok(PhasesReport {
        tool_version: Some(manifest.tool.version.clone()),
        run_id: Some(RunId::parse(&manifest.run_id).context("run.json: run_id")?),
        what: spec.name.replacen('-', " ", 1),
        command: present::typed_again(&manifest.command_line),
        target: FilesTarget {
            directory: manifest.target.endpoints.join(", "),
            file_system: target.file_system,
            device: target.device,
            free_bytes: target.free_bytes,
        },
        machine: machine_line(&manifest.machine),
        started,
        utc_offset_seconds: present::local_offset(started),
        state: run_state(manifest.state),
        seed: Some(Seed(manifest.seed)),
        interface,
        warnings: manifest.advice.clone(),
        notes: notes(manifest),
        phases,
        verification,
        op_log: rows.zip(counted).map(|(rows, counted)| OpLogCheck { rows, counted }),
        recorder_wait: manifest
            .recorder
            .map_or(Duration::ZERO, |recorder| Duration::from_nanos(recorder.wait_ns)),
        cleanup: cleaned(&manifest.cleanup),
        run_directory: Some(directory.display().to_string()),
    })
}

fn run_state(state: RecordedState) -> RunState {
    match state {
        RecordedState::Complete => RunState::Complete,
        RecordedState::Running => RunState::Killed,
        RecordedState::Interrupted => RunState::Interrupted,
        RecordedState::Failed => RunState::Failed,
    }
}

fn machine_line(machine: &schema::Machine) -> Option<String> {
    let cores = machine.cores_count.map(|cores| format!("{cores} cores"));
    let memory = machine.memory_bytes.map(|bytes| format!("{} memory", format::bytes(bytes)));
    let known = [
        machine.hostname.clone(),
        machine.kernel.clone(),
        machine.cpu_model.clone(),
        cores,
        memory,
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// Returns the remarks of the run and why caches were not dropped.
fn notes(manifest: &Manifest) -> Vec<String> {
    let mut notes = manifest.notes.clone();
    for stage in &manifest.stages {
        let why = stage.files.as_ref().and_then(|files| files.caches_reason.as_ref());
        if let Some(why) = why {
            let note = format!("caches were not dropped: {why}");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

fn cleaned(cleanup: &schema::Cleanup) -> Option<String> {
    match (cleanup.state, cleanup.objects_removed_count) {
        (CleanupState::Complete, Some(1)) => Some("1 file removed".to_owned()),
        (CleanupState::Complete, Some(count)) => Some(format!("{count} files removed")),
        (CleanupState::Kept, _) => Some("files kept".to_owned()),
        (CleanupState::Failed, _) => Some("not all files could be removed".to_owned()),
        _ => None,
    }
}

/// How reads were checked; `None` when nothing was read.
fn verification(manifest: &Manifest, spec: &FilesSpec, phases: &[Phase]) -> Option<Verification> {
    let is_read = |kind: OpKind| matches!(kind, OpKind::Read | OpKind::Open);
    let kinds = phases.iter().flat_map(|phase| &phase.analysis.rows).flat_map(|row| &row.kinds);
    let bytes: u64 = kinds.filter(|kind| is_read(kind.kind)).map(|kind| kind.bytes).sum();
    let of = |phase: &Phase| manifest.stages[phase.stage].files.as_ref()?.unverified_bytes;
    let unverified: Option<u64> = phases.iter().map(of).sum();
    // Records of before that was counted tell only of files that were there.
    let unverified = unverified.unwrap_or_else(|| if is_on_existing(spec) { bytes } else { 0 });
    // Of a ramp it has what no figure has.
    let checked = bytes.saturating_sub(unverified);
    let (mode, bytes, unverified_bytes) = match (spec.verify, unverified) {
        (false, _) => (VerificationMode::Off, bytes, 0),
        (true, 0) => (VerificationMode::EveryByte, bytes, 0),
        (true, _) if checked == 0 => (VerificationMode::LengthOnly, bytes, 0),
        (true, _) => (VerificationMode::Partial, checked, bytes - checked),
    };
    (bytes > 0).then_some(Verification { mode, bytes, unverified_bytes })
}

fn is_on_existing(spec: &FilesSpec) -> bool {
    let mut jobs = spec.stages.iter().flat_map(|stage| &stage.jobs);
    jobs.any(|job| matches!(&job.work, FileWorkSpec::Blocks(blocks) if blocks.files.existing))
}

fn phase_report(
    manifest: &Manifest,
    spec: &FilesSpec,
    phase: Phase,
    epoch_ns: u64,
) -> Result<PhaseReport> {
    let entry = &manifest.stages[phase.stage];
    let stage = &spec.stages[phase.stage];
    let (started, ended) = entry
        .started_ns
        .zip(entry.ended_ns)
        .ok_or_else(|| anyhow!("run.json: stage {} has no bounds", entry.name))?;
    let facts = entry.files.clone().unwrap_or_default();
    let served_by = served_by(manifest);
    let schedules = schedules(entry, stage, &phase.rows);
    let rows = phase.rows.iter().zip(phase.analysis.rows);
    let rows = rows.map(|(row, figures)| {
        let job = &stage.jobs[row.jobs[0]];
        let interface =
            facts.interfaces.get(row.jobs[0]).and_then(|name| Interface::from_name(name));
        let workers = row.jobs.iter().map(|job| stage.jobs[*job].clones).sum();
        PhaseRow {
            name: row_name(stage, row),
            workers: row.clone.map_or(workers, |_| 1),
            interface,
            caches: cache_state(&facts.caches),
            served_by: served_by.clone(),
            figures,
            ..described(job)
        }
    });
    Ok(PhaseReport {
        name: stage.name.clone(),
        iteration: stage.iteration,
        is_result: !stage.prepares,
        started_after: Duration::from_nanos(started.saturating_sub(epoch_ns)),
        took: Duration::from_nanos(ended.saturating_sub(started)),
        window: phase.analysis.window,
        rows: rows.collect(),
        // The kernel's threads that work for the program are counted by the process only.
        cpu: facts.usage.map(|used| Duration::from_nanos(used.user_ns + used.system_ns)),
        errors: present::first_errors(manifest, entry),
        wrong: entry.wrong.iter().map(|of| (of.kind.clone(), of.count)).collect(),
        schedules,
        look_gap_max: facts.look_gap_max_ns.map(Duration::from_nanos),
        uncertain_count: facts.uncertain_count,
    })
}

fn served_by(manifest: &Manifest) -> Vec<String> {
    let clients = present::clients(manifest);
    if clients.is_empty() {
        manifest.machine.hostname.clone().into_iter().collect()
    } else {
        clients
    }
}

fn row_name(stage: &FileStageSpec, row: &RowJobs) -> String {
    let names: Vec<&str> = row.jobs.iter().map(|job| stage.jobs[*job].name.as_str()).collect();
    let names = names.join(" + ");
    row.clone.map_or(names.clone(), |clone| format!("{names}.{clone}"))
}

fn cache_state(name: &str) -> CacheState {
    CacheState::ALL.into_iter().find(|state| state.name() == name).unwrap_or(CacheState::NotKnown)
}

/// Returns how each job with a schedule kept it.
fn schedules(entry: &schema::Stage, stage: &FileStageSpec, rows: &[RowJobs]) -> Vec<JobSchedule> {
    let of_jobs = entry.files.iter().flat_map(|files| &files.schedules);
    let mut of_jobs: Vec<(usize, &schema::Schedule)> =
        of_jobs.map(|of| (of.job_index as usize, &of.schedule)).collect();
    if let (true, Some(whole)) = (of_jobs.is_empty(), &entry.schedule) {
        // Older records, and those of several runs, have one for the whole stage.
        let is_open = |job: &FileJobSpec| matches!(job.pacing, FilePacingSpec::Open { .. });
        of_jobs.extend(stage.jobs.iter().position(is_open).map(|first| (first, whole)));
    }
    let report = |(index, kept): (usize, &schema::Schedule)| {
        let job = stage.jobs.get(index)?;
        let row = rows.iter().position(|row| row.jobs.contains(&index))?;
        let is_alone = rows[row].jobs.len() == 1 && rows[row].clone.is_none();
        let schedule = schedule(kept, job);
        Some(JobSchedule { job: job.name.clone(), row, is_alone, schedule })
    };
    of_jobs.into_iter().filter_map(report).collect()
}

fn schedule(kept: &schema::Schedule, job: &FileJobSpec) -> ScheduleReport {
    ScheduleReport {
        rate: kept.rate.clone(),
        rate_peak: kept.rate.parse::<RateProfile>().ok().map(|rate| OpRate(rate.peak())),
        arrivals: kept.arrivals.clone(),
        max_in_flight: kept.max_in_flight,
        lasted: job.duration_ns.map(Duration::from_nanos),
        offered_count: kept.offered_count,
        late_count: kept.late_count,
        skipped_count: kept.skipped_count,
        delay_max: kept.delay_max_ns.map(Duration::from_nanos),
    }
}

/// Returns what a row says of its job; what is known only of the run is left empty.
fn described(job: &FileJobSpec) -> PhaseRow {
    let empty = PhaseRow {
        name: String::new(),
        work: String::new(),
        block: None,
        workers: job.clones,
        depth: job.depth,
        direct: false,
        interface: None,
        caches: CacheState::NotKnown,
        files_count: None,
        file_size: None,
        duration: job.duration_ns.map(Duration::from_nanos),
        served_by: Vec::new(),
        figures: Default::default(),
    };
    match &job.work {
        FileWorkSpec::Fill(fill) => PhaseRow {
            work: "fill".to_owned(),
            block: Some(Bytes(u64::from(fill.block_bytes)).to_string()),
            direct: fill.direct,
            ..empty
        },
        FileWorkSpec::Blocks(blocks) => PhaseRow {
            work: work_of(blocks),
            block: Some(blocks_text(blocks)),
            direct: blocks.direct,
            files_count: Some(files_count(&blocks.files, job.clones)),
            file_size: Some(span_text(blocks.files.size_bytes.min, blocks.files.size_bytes.max)),
            ..empty
        },
        FileWorkSpec::Names(names) => PhaseRow {
            work: act_of(names).to_owned(),
            depth: 1,
            files_count: Some(names.names_count(job.clones)),
            ..empty
        },
    }
}

/// Returns what a job does to blocks, in fio's words.
pub(crate) fn work_of(blocks: &BlocksSpec) -> String {
    let random = blocks.order != BlockOrderSpec::Sequential;
    let name = match (blocks.read_percent, random) {
        (100, false) => "read",
        (100, true) => "randread",
        (0, false) => "write",
        (0, true) => "randwrite",
        (_, false) => "rw",
        (_, true) => "randrw",
    };
    match blocks.read_percent {
        0 | 100 => name.to_owned(),
        reads => format!("{name} {reads}/{}", 100 - reads),
    }
}

fn blocks_text(blocks: &BlocksSpec) -> String {
    let (reads, writes) = (sizes_text(&blocks.read_blocks), sizes_text(&blocks.write_blocks));
    match blocks.read_percent {
        100 => reads,
        0 => writes,
        _ if reads == writes => reads,
        _ => format!("{reads} / {writes}"),
    }
}

fn sizes_text(sizes: &BlockSizesSpec) -> String {
    match sizes {
        BlockSizesSpec::FixedBytes(bytes) => Bytes(*bytes).to_string(),
        BlockSizesSpec::RangeBytes(range) => span_text(range.min, range.max),
        BlockSizesSpec::Shares(shares) => {
            let sizes = || shares.iter().map(|share| share.size_bytes);
            span_text(sizes().min().unwrap_or_default(), sizes().max().unwrap_or_default())
        }
    }
}

fn span_text(min: u64, max: u64) -> String {
    if min == max { Bytes(min).to_string() } else { format!("{}–{}", Bytes(min), Bytes(max)) }
}

fn files_count(files: &JobFilesSpec, clones: u32) -> u64 {
    match files.names.len() {
        0 => u64::from(files.count) * u64::from(clones),
        names => names as u64,
    }
}

fn act_of(names: &NamesSpec) -> &'static str {
    match names.act {
        NameActSpec::MakeTree => "make tree",
        NameActSpec::Create { .. } => "create",
        NameActSpec::Stat => "stat",
        NameActSpec::Open { .. } => "open, read, close",
        NameActSpec::Rename => "rename",
        NameActSpec::Remove => "remove",
        NameActSpec::RemoveTree => "remove tree",
    }
}

/// Returns what is not as it should be; any of it makes the exit code 1.
pub(crate) fn flaws(report: &PhasesReport, max_error_rate: f64) -> Vec<String> {
    let mut flaws = Vec::new();
    for phase in &report.phases {
        let (ok, failed) = (phase.ops_ok(), phase.failed_count());
        if ok + failed == 0 {
            flaws.push(format!("{}: no operation ended, so there is no result", phase.name));
            continue;
        }
        let percent = failed as f64 / (ok + failed) as f64 * 100.0;
        if percent > max_error_rate {
            flaws.push(format!(
                "{}: {failed} of {} operations failed, more than --max-error-rate \
                 {max_error_rate}% allows",
                phase.name,
                ok + failed
            ));
        }
        for missed in phase.schedules.iter().filter(|of| !of.schedule.is_kept()) {
            let alone = phase.rows.len() == 1 && phase.schedules.len() == 1;
            let job = if alone { String::new() } else { format!(" by job {}", missed.job) };
            flaws.push(format!(
                "{}: SCHEDULE NOT KEPT{job}: more than 1 % of the operations were late or skipped, \
                 so this is not the load that was asked for",
                phase.name
            ));
        }
    }
    if report.op_log.is_some_and(|check| check.rows != check.counted) {
        let flaw = "the op log and the counters differ: this is a fault of plimsoll; please report \
                    it";
        flaws.push(flaw.to_owned());
    }
    flaws
}

#[cfg(test)]
#[path = "present_files_tests.rs"]
mod tests;
