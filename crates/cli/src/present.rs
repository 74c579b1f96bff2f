//! The end of a run, now or read back: its report, its warnings and its exit code.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::{Timestamp, tz::TimeZone};
use plimsoll_analysis::{Question, StageAnalysis};
use plimsoll_conduct::{Recorded, Recording};
use plimsoll_model::{EndpointId, ErrorClass, OpKind, OpRate, RunId, Seed, StageKind, WallTime};
use plimsoll_record::OpLog;
use plimsoll_record::schema::{self, Manifest, RunState as RecordedState};
use plimsoll_report::proof::Certificate;
use plimsoll_report::text::Look;
use plimsoll_report::{
    CertificateLine, ErrorSample, LoopModel, OpLogCheck, RunReport, RunState, ScheduleReport,
    StageWork, Verification, VerificationMode, json, text,
};
use plimsoll_workload::plan::{Members, Plan};
use plimsoll_workload::{Pacing, RateProfile, plan};
use serde::Deserialize;
use serde_json::Value;

use crate::recorded::Source;
use crate::ui::Ui;

/// Ran, but something about the result is not as it should be.
const EXIT_NOT_GOOD: u8 = 1;

/// In which form a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
}

/// What is asked of a record.
#[derive(Clone, Copy, Default)]
pub(crate) struct Asked {
    pub(crate) full_span: bool,
    pub(crate) details: bool,
}

/// Reads the op log of a run back that has just measured, works the measured stage's figures out of
/// it and notes what they advise.
pub(crate) fn of_measured(
    recording: &mut Recording,
    recorded: &Recorded,
    asked: Asked,
    embedded: bool,
) -> Result<RunReport> {
    let done = recorded.stage(StageKind::Measure).context("nothing was measured")?;
    let log = Source::Log(OpLog::open(&recording.directory)?);
    let entry = &recording.manifest.stages[usize::from(done.stage.0)];
    let workers = entry.workers_count;
    let (started, ended) = (done.outcome.started, done.outcome.ended);
    let question = Question {
        full_span: asked.full_span,
        details: asked.details,
        open: entry.loop_model == schema::LoopModel::Open,
        ..Question::about(done.stage, started, ended, workers)
    };
    let analysis = plimsoll_analysis::analyze(&log, &question);
    let analysis = analysis.context("cannot read the op log back")?;
    let manifest = &mut recording.manifest;
    manifest.advice = advice_texts(&analysis);
    manifest.notes.extend(notes(manifest, embedded));
    recording.directory.write_manifest(manifest)?;
    of_run(manifest, recording.directory.path(), usize::from(done.stage.0), analysis)
}

/// Returns the advice of an analysis in words, for the manifest.
pub(crate) fn advice_texts(analysis: &StageAnalysis) -> Vec<String> {
    analysis.advice.iter().map(plimsoll_report::advice_text).collect()
}

/// Prints a report.
pub(crate) fn print(report: &RunReport, form: Form, ui: &Ui) -> Result<()> {
    print_all(std::slice::from_ref(report), form, ui)
}

/// Prints reports one after the other, or as one document.
pub(crate) fn print_all(reports: &[RunReport], form: Form, ui: &Ui) -> Result<()> {
    let look = Look { width: ui.width, color: ui.color };
    let texts = || reports.iter().map(|report| text::render(report, &look));
    ui.result(&match (form, reports) {
        (Form::Text, _) => texts().collect::<Vec<_>>().join("\n"),
        (Form::Json, [one]) => format!("{:#}\n", json::render(one)),
        (Form::Json, all) => format!("{:#}\n", all.iter().map(json::render).collect::<Value>()),
    })?;
    Ok(())
}

/// Warns of what is not as it should be, and tells whether there was nothing of the kind.
///
/// `max_error_rate` is in percent.
pub(crate) fn is_good(report: &RunReport, max_error_rate: f64, ui: &Ui) -> bool {
    let flaws = flaws(report, max_error_rate);
    flaws.iter().for_each(|flaw| ui.warn(flaw));
    flaws.is_empty()
}

/// Returns what is not as it should be; any of it makes the exit code 1.
pub(crate) fn flaws(report: &RunReport, max_error_rate: f64) -> Vec<String> {
    let mut flaws = Vec::new();
    match report.analysis.error_rate().map(|rate| rate * 100.0) {
        None => flaws.push("no operation ended while measuring, so there is no result".to_owned()),
        Some(percent) if percent > max_error_rate => flaws.push(format!(
            "{percent:.2} % of the operations failed, more than --max-error-rate \
             {max_error_rate}% allows"
        )),
        Some(_) => {}
    }
    if !report.schedule_kept() {
        let flaw = "SCHEDULE NOT KEPT: more than 1 % of the operations were late or skipped, so \
                    this is not the load that was asked for; the report says what to change";
        flaws.push(flaw.to_owned());
    }
    let differ = report.op_log.is_some_and(|check| check.rows != check.counted);
    if differ && report.losses.is_empty() {
        let flaw = "the op log and the counters differ: this is a fault of plimsoll; please report \
                    it";
        flaws.push(flaw.to_owned());
    }
    flaws
}

/// Returns the exit code of a command that ran.
pub(crate) fn exit_code(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::from(EXIT_NOT_GOOD) }
}

/// Returns a command line as it can be typed into a shell.
pub(crate) fn typed_again(words: &[String]) -> String {
    // Only a NUL cannot be quoted, and no command line has one.
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// Returns the report on one stage of a run, from what the run directory says.
pub(crate) fn of_run(
    manifest: &Manifest,
    directory: &Path,
    stage: usize,
    analysis: StageAnalysis,
) -> Result<RunReport> {
    let entry = manifest.stages.get(stage).context("run.json: the stage is missing")?;
    // A workload of another version tells less, and the figures are no worse for it.
    let plan = manifest.workload.plan();
    let planned = plan.as_ref().and_then(|plan| schema::stage_of_plan(plan, stage, entry));
    let target = &manifest.target;
    let bucket = target.bucket.as_ref().map_or(String::new(), |name| format!(", bucket {name}"));
    let totals = &analysis.total.stage;
    let rows = totals.ops_ok + totals.failed.count();
    let started = WallTime::from_unix_ns(manifest.started_unix_ns + analysis.started.as_ns());
    let prepare = manifest.stages.iter().find(|each| each.kind == schema::StageKind::Prepare);
    let alone = manifest.merged.is_empty();
    // What is known of the whole stage says nothing of a part of its operations.
    let whole = !analysis.is_part;
    Ok(RunReport {
        tool_version: Some(manifest.tool.version.clone()),
        run_id: Some(RunId::parse(&manifest.run_id).context("run.json: run_id")?),
        what: what(manifest, entry),
        command: typed_again(&manifest.command_line),
        target: format!("{}{bucket}", target.endpoints.join(", ")),
        ended_because: entry.ended_because.clone(),
        endpoints: target.endpoints.clone(),
        clients: clients(manifest),
        utc_offset_seconds: local_offset(started),
        foreign: None,
        started,
        loop_model: loop_model(planned, entry),
        seed: alone.then_some(Seed(manifest.seed)),
        concurrency: entry.workers_count,
        threads: Some(entry.threads_count),
        prepare: prepare
            .filter(|prepare| prepare.index != entry.index)
            .and_then(|prepare| prepared(prepare, plan.as_ref())),
        cleanup: cleaned(&manifest.cleanup),
        errors: first_errors(manifest, entry),
        losses: Vec::new(),
        notes: manifest.notes.clone(),
        run_directory: Some(directory.display().to_string()),
        state: match manifest.state {
            RecordedState::Complete => RunState::Complete,
            RecordedState::Running => RunState::Killed,
            RecordedState::Interrupted => RunState::Interrupted,
            RecordedState::Failed => RunState::Failed,
        },
        op_log: entry.ops_count.filter(|_| whole).map(|counted| OpLogCheck { rows, counted }),
        verification: verification(entry, &analysis),
        client_cpu: entry.cpu_ns.filter(|_| whole).map(Duration::from_nanos),
        recorder_wait: manifest
            .recorder
            .map_or(Duration::ZERO, |recorder| Duration::from_nanos(recorder.wait_ns)),
        schedule: entry
            .jobs
            .iter()
            .find_map(|job| job.schedule.as_ref())
            .map(|kept| schedule(kept, planned, &analysis)),
        certificate: manifest.certificate.as_ref().map(certificate),
        virtual_time: manifest.virtual_time,
        stream_hash: entry.stream_hash.clone(),
        wrong: match whole {
            true => entry.wrong.iter().map(|of| (of.kind.clone(), of.count)).collect(),
            false => Vec::new(),
        },
        analysis,
    })
}

/// Returns what ran, as the command names it.
fn what(manifest: &Manifest, stage: &schema::Stage) -> String {
    let what = what_ran(manifest, manifest.workload.name().unwrap_or("run"));
    let is_one_of_several = || {
        let measured = |each: &&schema::Stage| each.kind == schema::StageKind::Measure;
        manifest.stages.iter().filter(measured).count() > 1
    };
    match stage.kind {
        schema::StageKind::Measure if !is_one_of_several() => what,
        _ => format!("{what}, stage {}", stage.name),
    }
}

/// Returns the name of a workload as the command has it, and how many clients did it.
pub(crate) fn what_ran(manifest: &Manifest, name: &str) -> String {
    let name = name.replacen('-', " ", 1);
    match manifest.merged.len() {
        0 => name,
        parts => format!("{name} of {parts} clients"),
    }
}

pub(crate) fn clients(manifest: &Manifest) -> Vec<String> {
    let name = |part: &schema::MergedRun| match &part.hostname {
        Some(hostname) => format!("{hostname} ({})", part.run_id),
        None => part.run_id.clone(),
    };
    manifest.merged.iter().map(name).collect()
}

/// Returns how many seconds the local time of this machine was ahead of UTC at that moment.
pub(crate) fn local_offset(at: WallTime) -> Option<i32> {
    let at = Timestamp::from_nanosecond(i128::from(at.as_unix_ns())).ok()?;
    Some(TimeZone::system().to_offset(at).seconds())
}

fn loop_model(planned: Option<&plan::Stage>, stage: &schema::Stage) -> LoopModel {
    let pacing = planned.and_then(|stage| Some(&stage.jobs.first()?.pacing));
    match (stage.loop_model, pacing) {
        (schema::LoopModel::Open, _) => LoopModel::Open,
        (
            schema::LoopModel::Capped,
            Some(plan::JobPacing::Shared(Pacing::Capped { ops_per_sec })),
        ) => LoopModel::Capped { rate: OpRate(*ops_per_sec) },
        (schema::LoopModel::Closed | schema::LoopModel::Capped, _) => LoopModel::Closed,
    }
}

fn schedule(
    kept: &schema::Schedule,
    planned: Option<&plan::Stage>,
    analysis: &StageAnalysis,
) -> ScheduleReport {
    // Merged runs have their rates joined; all of them may have peaked at once.
    let rates = kept.rates().map(|rate| rate.parse::<RateProfile>());
    let peak: Option<f64> = rates.map(|rate| rate.ok().map(|rate| rate.peak())).sum();
    // Nothing arrives while the stage waits for its last operations.
    let stage = analysis.ended.since(analysis.started);
    let planned = planned.and_then(|stage| stage.duration);
    let lasted = planned.map_or(stage, |planned| stage.min(planned));
    ScheduleReport {
        rate: kept.rate.clone(),
        rate_peak: peak.map(OpRate),
        arrivals: kept.arrivals.clone(),
        max_in_flight: kept.max_in_flight,
        lasted: Some(lasted),
        offered_count: kept.offered_count,
        late_count: kept.late_count,
        skipped_count: kept.skipped_count,
        delay_max: kept.delay_max_ns.map(Duration::from_nanos),
    }
}

/// Returns what a certificate of `plimsoll prove` says.
fn certificate(certificate: &Value) -> CertificateLine {
    let read = Certificate::deserialize(certificate);
    read.as_ref().map(CertificateLine::from).unwrap_or_default()
}

fn prepared(stage: &schema::Stage, plan: Option<&Plan>) -> Option<StageWork> {
    let took = Duration::from_nanos(stage.ended_ns?.saturating_sub(stage.started_ns?));
    let in_parts = plan.and_then(uploads_in_parts);
    let done = stage.ops_count?.saturating_sub(stage.ops_failed_count?);
    let objects = in_parts.unwrap_or(done);
    Some(StageWork { objects, bytes: stage.bytes?, took })
}

/// Returns how many objects are made of parts, whose uploads are operations of their own.
fn uploads_in_parts(plan: &Plan) -> Option<u64> {
    let members = plan.sets.iter().map(|set| &set.members);
    members.into_iter().find_map(|members| match members {
        Members::Objects(objects) if objects.part_bytes.is_some() => Some(objects.count),
        _ => None,
    })
}

fn cleaned(cleanup: &schema::Cleanup) -> Option<StageWork> {
    let took = Duration::from_nanos(cleanup.took_ns?);
    Some(StageWork { objects: cleanup.objects_removed_count?, bytes: 0, took })
}

/// Returns the first errors of one stage.
pub(crate) fn first_errors(manifest: &Manifest, stage: &schema::Stage) -> Vec<ErrorSample> {
    let inside = |at: u64| {
        stage.started_ns.is_none_or(|started| at >= started)
            && stage.ended_ns.is_none_or(|ended| at <= ended)
    };
    // Older records leave it to the moment.
    let is_of_stage = |error: &&schema::FirstError| match error.stage_index {
        Some(index) => index == stage.index,
        None => error.at_ns.is_none_or(inside),
    };
    let of_stage = manifest.first_errors.iter().filter(is_of_stage);
    let endpoint = |name: &String| {
        let position = manifest.target.endpoints.iter().position(|each| each == name)?;
        Some(EndpointId(u16::try_from(position).ok()?))
    };
    let sample = |error: &schema::FirstError| {
        Some(ErrorSample {
            class: ErrorClass::from_name(&error.class)?,
            kind: OpKind::from_name(&error.kind)?,
            endpoint: error.endpoint.as_ref().and_then(endpoint),
            status: error.status,
            message: error.message.clone(),
        })
    };
    of_stage.filter_map(sample).collect()
}

/// How downloads were checked; `None` when nothing was downloaded.
fn verification(stage: &schema::Stage, analysis: &StageAnalysis) -> Option<Verification> {
    let get = analysis.kinds.iter().find(|kind| kind.kind == OpKind::Get)?;
    let mode = match stage.jobs.iter().find_map(|job| job.verification)? {
        schema::Verification::EveryByte => VerificationMode::EveryByte,
        schema::Verification::Partial => VerificationMode::Partial,
        schema::Verification::LengthOnly => VerificationMode::LengthOnly,
        schema::Verification::Off => VerificationMode::Off,
    };
    Some(Verification { mode, bytes: get.figures.stage.bytes, unverified_bytes: 0 })
}

/// Returns remarks on what the figures mean that depend on the workload.
pub(crate) fn notes(manifest: &Manifest, embedded: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if embedded {
        notes.push(
            "embedded in-memory store on the same cores: this measures plimsoll and the machine, \
             not a store you would use"
                .to_owned(),
        );
    }
    if let Some(signing) = &manifest.target.payload_signing
        && manifest.workload.plan().is_some_and(|plan| sends_content(&plan))
    {
        notes.push(format!("payload of uploads: {signing}"));
    }
    let count = |of: fn(&schema::Stage) -> u64| manifest.stages.iter().map(of).sum::<u64>();
    let given_up = count(|stage| stage.uploads_given_up_count);
    let left = count(|stage| stage.uploads_left_count);
    if given_up + left > 0 {
        notes.push(format!(
            "uploads in parts of failed operations, given up after them in the time of none: \
             {given_up}; left to the cleaning because that failed: {left}"
        ));
    }
    notes
}

/// Tells whether objects are sent with content.
fn sends_content(plan: &Plan) -> bool {
    plan.stages.iter().flat_map(|stage| &stage.jobs).any(|job| job.work.sends_content())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_typed_again() {
        let words = ["plimsoll", "s3", "get", "--rate", "1/s..9/s over 2m", "--host", "a{1...3}"];
        let words = words.map(str::to_owned);
        let line = typed_again(&words);
        assert_eq!(shlex::split(&line).unwrap(), words);
        assert!(line.starts_with("plimsoll s3 get --rate '1/s..9/s over 2m' --host "), "{line}");
    }
}
