//! The report on a run on files, from what its directory says: now, or read back.

mod narrowed;
mod rows;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use plimsoll_analysis::OpSource;
use plimsoll_analysis::phases::{PhaseAnalysis, PhaseQuestion, WorkerRow, phases};
use plimsoll_model::{Interface, Moment, OpKind, RunId, Seed, StageId, WallTime};
use plimsoll_record::schema::{self, CleanupState, Manifest, RunState as RecordedState};
use plimsoll_report::format;
use plimsoll_report::phases::{CacheState, FilesTarget, PhaseReport, PhaseRow, PhasesReport};
use plimsoll_report::{OpLogCheck, RunState, Verification, VerificationMode};
use plimsoll_results::{Clients, RowJobs, Rows, described, lay_out};

pub(crate) use self::narrowed::check_asked;
use self::rows::schedules;
use crate::args::AnalysisArgs;
use crate::present;
use crate::recorded::{Origin, Record};

/// One stage of a run with its figures.
pub(crate) struct Phase {
    /// Its index.
    pub(crate) stage: usize,
    pub(crate) rows: Vec<RowJobs>,
    pub(crate) analysis: PhaseAnalysis,
}

/// Returns the report on a run on files with the stages that are asked for; `None` where it is
/// another run.
pub(crate) fn of_record(record: &Record, asked: &AnalysisArgs) -> Result<Option<PhasesReport>> {
    let Origin::Run { directory, .. } = &record.origin else { return Ok(None) };
    let Some(found) = narrowed::Narrowed::of(record, asked)? else { return Ok(None) };
    let mut report = of_run(&found.manifest, directory.path(), &found.clients, found.phases)?;
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

/// Tells whether a run is on files.
pub(crate) fn is_on_files(manifest: &Manifest) -> bool {
    manifest.stages.iter().any(|stage| stage.files.is_some())
}

/// Returns the figures of the stages that `rows` gives a way to lay out.
pub(crate) fn analyse<S: OpSource>(
    source: &S,
    manifest: &Manifest,
    clients: &Clients,
    rows: impl Fn(usize) -> Rows,
) -> Result<Vec<Phase>>
where
    S::Error: std::error::Error + Send + Sync + 'static,
{
    analyse_changed(source, (manifest, clients), rows, PhaseQuestion::WINDOW, |_, _| ())
}

/// Returns the same with windows of another length, and with another beginning of what counts:
/// `change` is handed each worker and when its client began the stage.
fn analyse_changed<S: OpSource>(
    source: &S,
    (manifest, clients): (&Manifest, &Clients),
    rows: impl Fn(usize) -> Rows,
    window: Duration,
    change: impl Fn(Moment, &mut WorkerRow),
) -> Result<Vec<Phase>>
where
    S::Error: std::error::Error + Send + Sync + 'static,
{
    let mut laid_out = Vec::new();
    for (stage, entry) in manifest.stages.iter().enumerate() {
        let of_clients = clients.at(stage, entry);
        if let (Some(started), Some(ended), false) =
            (entry.started_ns, entry.ended_ns, of_clients.is_empty())
        {
            let (jobs, workers) = lay_out(entry, &of_clients, rows(stage), &change);
            laid_out.push((stage, (started, ended), jobs, workers));
        }
    }
    let client_of = clients.of_workers();
    let mut questions = Vec::new();
    for (stage, (started, ended), jobs, workers) in &laid_out {
        questions.push(PhaseQuestion {
            stage: StageId(*stage as u8),
            started: Moment::from_ns(*started),
            ended: Moment::from_ns(*ended),
            workers,
            rows_count: jobs.len(),
            window,
            client_of: &client_of,
        });
    }
    let answers = phases(source, &questions).context("cannot read the op log back")?;
    let phase = |((stage, _, rows, _), analysis)| Phase { stage, rows, analysis };
    Ok(laid_out.into_iter().zip(answers).map(phase).collect())
}

/// Returns the report on a run on files.
pub(crate) fn of_run(
    manifest: &Manifest,
    directory: &Path,
    clients: &Clients,
    phases: Vec<Phase>,
) -> Result<PhasesReport> {
    // Of the run, also where only a later stage is asked for.
    let mut begun = manifest.stages.iter().filter(|stage| stage.ended_ns.is_some());
    let epoch_ns = begun.find_map(|stage| stage.started_ns).unwrap_or_default();
    let started = WallTime::from_unix_ns(manifest.started_unix_ns + epoch_ns);
    let entries = || manifest.stages.iter();
    let counted: Option<u64> = entries().map(|stage| stage.ops_count).sum();
    let rows = manifest.recorder.map(|recorder| recorder.rows_count);
    let mut interfaces: Vec<&String> =
        entries().flat_map(|stage| &stage.jobs).filter_map(|job| job.interface.as_ref()).collect();
    interfaces.sort_unstable();
    interfaces.dedup();
    let interface = match interfaces[..] {
        [one] => Interface::from_name(one),
        _ => None,
    };
    let verification = verification(manifest, &phases);
    let reports = phases.into_iter().map(|phase| phase_report(manifest, clients, phase, epoch_ns));
    let phases: Vec<PhaseReport> = reports.collect::<Result<_>>()?;
    let target = manifest.target.files.clone().unwrap_or_default();
    Ok(PhasesReport {
        tool_version: Some(manifest.tool.version.clone()),
        run_id: Some(RunId::parse(&manifest.run_id).context("run.json: run_id")?),
        what: present::what_ran(manifest, manifest.workload.name().unwrap_or("run")),
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
        seed: manifest.merged.is_empty().then_some(Seed(manifest.seed)),
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
fn verification(manifest: &Manifest, phases: &[Phase]) -> Option<Verification> {
    let is_read = |kind: OpKind| matches!(kind, OpKind::Read | OpKind::Open);
    let kinds = phases.iter().flat_map(|phase| &phase.analysis.rows).flat_map(|row| &row.kinds);
    let bytes: u64 = kinds.filter(|kind| is_read(kind.kind)).map(|kind| kind.bytes).sum();
    let of = |phase: &Phase| manifest.stages[phase.stage].files.as_ref()?.unverified_bytes;
    let unverified: Option<u64> = phases.iter().map(of).sum();
    // Records of before that was counted tell only of files that were there.
    let jobs = || phases.iter().flat_map(|phase| &manifest.stages[phase.stage].jobs);
    let is = |mode: schema::Verification| jobs().any(|job| job.verification == Some(mode));
    let is_on_existing = is(schema::Verification::LengthOnly);
    let unverified = unverified.unwrap_or(if is_on_existing { bytes } else { 0 });
    // Of a ramp it has what no figure has.
    let checked = bytes.saturating_sub(unverified);
    let (mode, bytes, unverified_bytes) = match (!is(schema::Verification::Off), unverified) {
        (false, _) => (VerificationMode::Off, bytes, 0),
        (true, 0) => (VerificationMode::EveryByte, bytes, 0),
        (true, _) if checked == 0 => (VerificationMode::LengthOnly, bytes, 0),
        (true, _) => (VerificationMode::Partial, checked, bytes - checked),
    };
    (bytes > 0).then_some(Verification { mode, bytes, unverified_bytes })
}

fn phase_report(
    manifest: &Manifest,
    clients: &Clients,
    phase: Phase,
    epoch_ns: u64,
) -> Result<PhaseReport> {
    let entry = &manifest.stages[phase.stage];
    let of_clients = clients.at(phase.stage, entry);
    let (started, ended) = entry
        .started_ns
        .zip(entry.ended_ns)
        .ok_or_else(|| anyhow!("run.json: stage {} has no bounds", entry.name))?;
    let facts = entry.files.clone().unwrap_or_default();
    let served_by = served_by(manifest);
    let schedules = schedules(entry, &of_clients, &phase.rows);
    let rows = phase.rows.iter().zip(phase.analysis.rows).map(|(row, figures)| {
        let job = &entry.jobs[row.jobs[0]];
        let of = described(&of_clients, row);
        PhaseRow {
            name: row_name(entry, row),
            work: job.work.clone().unwrap_or_default(),
            block: of.block,
            workers: figures.workers_count,
            depth: of.depth,
            direct: of.direct,
            interface: job.interface.as_deref().and_then(Interface::from_name),
            files_count: of.files_count,
            file_size: of.file_size,
            duration: of.duration,
            caches: cache_state(&facts.caches),
            served_by: match manifest.merged.is_empty() {
                true => served_by.clone(),
                false => named(&served_by, &figures.clients),
            },
            figures,
        }
    });
    Ok(PhaseReport {
        name: entry.name.clone(),
        iteration: entry.iteration,
        is_result: entry.kind != schema::StageKind::Prepare,
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

/// Returns the names of these clients.
fn named(all: &[String], clients: &[u16]) -> Vec<String> {
    clients.iter().filter_map(|client| all.get(usize::from(*client)).cloned()).collect()
}

fn served_by(manifest: &Manifest) -> Vec<String> {
    let clients = present::clients(manifest);
    if clients.is_empty() {
        manifest.machine.hostname.clone().into_iter().collect()
    } else {
        clients
    }
}

fn row_name(stage: &schema::Stage, row: &RowJobs) -> String {
    let names: Vec<&str> = row.jobs.iter().map(|job| stage.jobs[*job].name.as_str()).collect();
    let names = names.join(" + ");
    row.worker.map_or(names.clone(), |worker| format!("{names}.{worker}"))
}

fn cache_state(name: &str) -> CacheState {
    CacheState::ALL.into_iter().find(|state| state.name() == name).unwrap_or(CacheState::NotKnown)
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
