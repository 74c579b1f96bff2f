//! Several runs, usually those of one client each, as one.

mod check;
mod error;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use plimsoll_model::{
    EndpointId, Moment, ObjectId, OpRecord, RunId, SeriesKey, StageId, WallTime, WorkerId,
};
use plimsoll_stats::{Sample, Timeline};
use serde_json::Value;

use self::check::check;
pub use self::error::MergeError;
use crate::RunDirectory;
use crate::ops::OpLogWriter;
use crate::schema::{
    Cleanup, CleanupState, ClockInfo, Machine, Manifest, MergedRun, Recorder, RunState, Schedule,
    Stage, StageKind, WrongCount,
};

/// The interval of a summary.
const INTERVAL_NS: u64 = 1_000_000_000;
/// How long a merged run may be. A wrong clock makes longer ones.
const DAYS_MAX: u64 = 32;
const DAY_NS: u64 = 86_400 * 1_000_000_000;
/// What stands where a text is needed and the parts differ.
const UNKNOWN: &str = "unknown";
/// The tool whose records come from elsewhere: it has no seed, and numbers objects by their names.
const FOREIGN_TOOL: &str = "warp";
/// Where the workload repeats the seed.
const WORKLOAD_SEED: &str = "seed";
/// Where the workload says in which version it is written.
const WORKLOAD_VERSION: &str = "schema";
/// What the parts differ in where one of them has no workload.
const WHOLE_WORKLOAD: &str = "all of it";
/// How many fields of the workload a note names.
const FIELDS_NAMED_MAX: usize = 8;

/// Reads every operation of a run.
pub type Scan<'a, E> = Box<dyn Fn(&mut dyn FnMut(&OpRecord)) -> Result<(), E> + 'a>;

/// A run that is to be merged with others.
pub struct MergePart<'a, E> {
    /// What is known about it; its stages say when it measured.
    pub manifest: Manifest,
    /// Which of its stages each stage number of its records belongs to, as an index into the
    /// manifest's list.
    pub stage_of: BTreeMap<StageId, usize>,
    /// How many worker numbers its records use.
    pub workers_count: u32,
    /// Reads its records.
    pub scan: Scan<'a, E>,
}

/// How the numbers of one part become those of the whole.
struct Shift {
    /// What is added to its moments.
    ns: u64,
    worker: u32,
    /// What is added to the owners of objects.
    owner: u32,
    endpoints: Vec<EndpointId>,
    stages: BTreeMap<StageId, StageId>,
}

impl Shift {
    fn apply(&self, op: &OpRecord) -> OpRecord {
        let moment = |at: Moment| Moment::from_ns(at.as_ns().saturating_add(self.ns));
        let object = op.object.and_then(|object| {
            let owner = object.owner().0 + self.owner;
            let valid = owner <= ObjectId::OWNER_MAX;
            valid.then(|| ObjectId::new(WorkerId(owner), object.number()))
        });
        // An endpoint that the manifest does not know is refused by the op log.
        let endpoint = self.endpoints.get(usize::from(op.endpoint.0)).copied();
        OpRecord {
            stage: self.stages[&op.stage],
            worker: WorkerId(op.worker.0 + self.worker),
            endpoint: endpoint.unwrap_or(EndpointId(u16::MAX)),
            object,
            intended: moment(op.intended),
            start: moment(op.start),
            first_byte: op.first_byte.map(moment),
            last_byte_sent: op.last_byte_sent.map(moment),
            end: moment(op.end),
            ..*op
        }
    }
}

/// Makes one run in `path` of several, whatever their order: workers get new numbers, moments are
/// moved to the earliest epoch by the wall clocks as recorded, and the measure stage lasts only
/// while all of them measured. If it fails, it leaves nothing behind.
pub fn merge<E: std::error::Error + 'static>(
    mut parts: Vec<MergePart<'_, E>>,
    path: &Path,
    run: &RunId,
    command_line: Vec<String>,
) -> Result<RunDirectory, MergeError<E>> {
    let manifest = plan(&mut parts, run, command_line)?;
    let is_new = !path.exists();
    let directory = RunDirectory::create(path, &manifest)?;
    match fill(&directory, &parts, run, manifest) {
        Ok(()) => Ok(directory),
        Err(error) => {
            // Why the merge failed matters more than what could not be removed.
            let _ = directory.remove_files(is_new);
            Err(error)
        }
    }
}

/// Puts the parts in order and returns the manifest of the whole as it begins, or why they cannot
/// be merged; nothing is written.
pub fn plan<E: std::error::Error + 'static>(
    parts: &mut [MergePart<'_, E>],
    run: &RunId,
    command_line: Vec<String>,
) -> Result<Manifest, MergeError<E>> {
    parts.sort_by(|a, b| a.manifest.run_id.cmp(&b.manifest.run_id));
    check(parts)?;
    manifest(parts, run, command_line)
}

/// Writes the op log, the summary and the manifest of the whole.
fn fill<E: std::error::Error + 'static>(
    directory: &RunDirectory,
    parts: &[MergePart<'_, E>],
    run: &RunId,
    mut manifest: Manifest,
) -> Result<(), MergeError<E>> {
    let epoch = WallTime::from_unix_ns(manifest.started_unix_ns);
    let mut log =
        OpLogWriter::new(directory, run, epoch, &manifest.target.endpoints).without_saving();
    let mut timeline: Timeline<SeriesKey> = Timeline::new(0, INTERVAL_NS);
    for (part, merged) in parts.iter().zip(&manifest.merged) {
        let shift = shift(part, merged, &manifest);
        // Time begins anew with each part, and a time line is quick only as long as it goes on.
        let mut own: Timeline<SeriesKey> = Timeline::new(0, INTERVAL_NS);
        let mut written = Ok(());
        let run_id = || part.manifest.run_id.clone();
        let scanned = (part.scan)(&mut |op| {
            if written.is_err() || !shift.stages.contains_key(&op.stage) {
                return;
            }
            if op.worker.0 >= part.workers_count {
                let (worker, count) = (op.worker.0, part.workers_count);
                written = Err(MergeError::WorkerBeyond { run_id: run_id(), worker, count });
                return;
            }
            let op = shift.apply(op);
            if op.end.as_ns() > DAYS_MAX * DAY_NS {
                written = Err(MergeError::TooLong {
                    run_id: run_id(),
                    ended: epoch.after(Duration::from_nanos(op.end.as_ns())),
                    days: op.end.as_ns() / DAY_NS,
                    limit: DAYS_MAX,
                });
                return;
            }
            own.record(series_of(&op), &sample(&op));
            written = log.append(&[op]).and_then(|()| log.tick(op.end)).map_err(Into::into);
        });
        scanned.map_err(|source| MergeError::Read { run_id: run_id(), source })?;
        written?;
        timeline.merge(&own);
    }
    let totals = log.finish()?;
    let wait_ns = parts.iter().filter_map(|part| Some(part.manifest.recorder?.wait_ns)).sum();
    manifest.recorder =
        Some(Recorder { rows_count: totals.rows, parts_count: totals.parts, wait_ns });
    manifest.state = state(parts);
    directory.write_summary(&mut timeline)?;
    directory.write_manifest(&manifest)?;
    Ok(())
}

fn series_of(op: &OpRecord) -> SeriesKey {
    SeriesKey { stage: op.stage, kind: op.kind, endpoint: op.endpoint }
}

fn sample(op: &OpRecord) -> Sample {
    Sample {
        start_ns: op.start.as_ns(),
        end_ns: op.end.as_ns(),
        latency_ns: op.latency().as_nanos() as u64,
        ttfb_ns: op.ttfb().map(|ttfb| ttfb.as_nanos() as u64),
        bytes: op.bytes,
        objects: u64::from(op.objects_count),
        outcome: op.outcome as u8,
    }
}

/// Returns when a part measured, in wall time.
fn measured<E: std::error::Error + 'static>(
    part: &MergePart<'_, E>,
) -> Result<(u64, u64), MergeError<E>> {
    let epoch = part.manifest.started_unix_ns;
    let stage = part.manifest.stages.iter().find(|stage| stage.kind == StageKind::Measure);
    stage
        .and_then(|stage| Some((epoch + stage.started_ns?, epoch + stage.ended_ns?)))
        .ok_or_else(|| MergeError::NothingMeasured { run_id: part.manifest.run_id.clone() })
}

fn state<E>(parts: &[MergePart<'_, E>]) -> RunState {
    let states = || parts.iter().map(|part| part.manifest.state);
    if states().all(|state| state == RunState::Complete) {
        RunState::Complete
    } else if states().any(|state| state == RunState::Failed) {
        RunState::Failed
    } else {
        RunState::Interrupted
    }
}

/// Returns the manifest of the whole; what the parts differ in is left unknown.
fn manifest<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
    run: &RunId,
    command_line: Vec<String>,
) -> Result<Manifest, MergeError<E>> {
    let manifests = || parts.iter().map(|part| &part.manifest);
    let epoch = manifests().map(|manifest| manifest.started_unix_ns).min().unwrap_or_default();
    let mut whole = parts[0].manifest.clone();
    whole.run_id = run.as_str().to_owned();
    whole.state = RunState::Running;
    whole.state_reason = manifests().find_map(|manifest| manifest.state_reason.clone());
    whole.command_line = command_line;
    whole.started_unix_ns = epoch;
    whole.started_at = WallTime::from_unix_ns(epoch).to_string();
    whole.recorder = None;
    let objects_removed_count = None;
    whole.cleanup =
        Cleanup { state: CleanupState::NotNeeded, objects_removed_count, took_ns: None };
    whole.target.endpoints = endpoints(parts)?;
    // Each part owned a prefix of its own, and cleans it itself.
    whole.target.prefix = None;
    whole.merged = merged(parts)?;
    whole.advice = Vec::new();
    whole.notes = distinct(manifests().flat_map(|manifest| &manifest.notes));
    whole.stages = stages(parts, epoch)?;
    whole.first_errors = Vec::new();
    for manifest in manifests() {
        let later = manifest.started_unix_ns - epoch;
        whole.first_errors.extend(manifest.first_errors.iter().cloned().map(|mut error| {
            error.at_ns = error.at_ns.map(|at| at + later);
            error
        }));
    }
    whole.first_errors.sort_by_key(|error| error.at_ns);
    leave_out_differences(parts, &mut whole);
    Ok(whole)
}

/// Makes unknown what the parts do not agree on, so that the whole does not claim what is true of
/// the first only, and notes what it is.
fn leave_out_differences<E>(parts: &[MergePart<'_, E>], whole: &mut Manifest) {
    let manifests = || parts.iter().map(|part| &part.manifest);
    let mut differing = Vec::new();
    macro_rules! unknown_where_different {
        ($($name:literal: $($field:ident).+ = $unknown:expr;)+) => {$(
            if manifests().any(|manifest| manifest.$($field).+ != whole.$($field).+) {
                whole.$($field).+ = $unknown;
                differing.push($name.to_owned());
            }
        )+};
    }
    unknown_where_different! {
        "tool": tool.name = UNKNOWN.to_owned();
        "tool version": tool.version = UNKNOWN.to_owned();
        "clock": clock = ClockInfo { source: UNKNOWN.to_owned(), resolution_ns: None };
        "machine": machine = Machine::default();
        "kind of target": target.kind = UNKNOWN.to_owned();
        "bucket": target.bucket = None;
        "region": target.region = None;
        "addressing": target.lookup = None;
        "TLS": target.tls = None;
        "payload signing": target.payload_signing = None;
        "virtual time": virtual_time = true;
        "certificate": certificate = None;
    }
    // The manifest has no place for an unknown seed; those of the parts stand under `merged`.
    if whole.merged.iter().any(|part| part.seed != whole.merged[0].seed) {
        differing.push("seed (each stands under `merged`)".to_owned());
    }
    differing.extend(unite_workloads(parts, whole));
    for stage in &mut whole.stages {
        let own = || manifests().flat_map(|manifest| &manifest.stages);
        let mut alike = own().filter(|each| each.kind == stage.kind);
        if alike.clone().any(|each| each.name != stage.name) {
            stage.name = match stage.kind {
                StageKind::Prepare => "prepare",
                StageKind::Measure => "measure",
                StageKind::Cleanup => "cleanup",
            }
            .to_owned();
        }
        if alike.clone().any(|each| each.ended_by != stage.ended_by) {
            stage.ended_by = None;
            differing.push(format!("what ended stage {}", stage.name));
        }
        if alike.any(|each| each.loop_model != stage.loop_model) {
            differing.push(format!("loop model of stage {}", stage.name));
        }
    }
    if !differing.is_empty() {
        whole.notes.push(format!(
            "the merged runs differ in {}; what run.json says of these is unknown, or true of one \
             run only",
            differing.join(", ")
        ));
    }
}

/// Leaves out the sections of the workload in which the parts differ, but for its seed, and returns
/// in what they do. What is left is no workload, so it has no version.
fn unite_workloads<E>(parts: &[MergePart<'_, E>], whole: &mut Manifest) -> Option<String> {
    let mut fields = BTreeSet::new();
    for part in parts {
        differences("", &part.manifest.workload, &whole.workload, &mut fields);
    }
    // It repeats the manifest's own.
    fields.remove(WORKLOAD_SEED);
    if fields.is_empty() {
        return None;
    }
    match &mut whole.workload {
        Value::Object(sections) if !fields.contains(WHOLE_WORKLOAD) => {
            let section = |field: &String| field.split('.').next().map(str::to_owned);
            let differing = fields.iter().filter_map(section);
            for name in differing.chain([WORKLOAD_VERSION.to_owned()]) {
                sections.insert(name, Value::Null);
            }
        }
        workload => *workload = Value::Null,
    }
    let more = fields.len().saturating_sub(FIELDS_NAMED_MAX);
    let mut names: Vec<String> = fields.into_iter().take(FIELDS_NAMED_MAX).collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    Some(format!("workload ({})", names.join(", ")))
}

/// Adds the names of the fields in which two documents differ.
fn differences(name: &str, a: &Value, b: &Value, fields: &mut BTreeSet<String>) {
    let (Value::Object(a_fields), Value::Object(b_fields)) = (a, b) else {
        if a != b {
            fields.insert(if name.is_empty() { WHOLE_WORKLOAD } else { name }.to_owned());
        }
        return;
    };
    for field in a_fields.keys().chain(b_fields.keys()) {
        let inner = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
        let of = |fields: &serde_json::Map<String, Value>| fields.get(field).cloned();
        let [a, b] = [of(a_fields), of(b_fields)].map(Option::unwrap_or_default);
        differences(&inner, &a, &b, fields);
    }
}

fn distinct<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for text in texts {
        if !seen.contains(text) {
            seen.push(text.clone());
        }
    }
    seen
}

/// Returns all endpoints: in the order of the parts where it is the same in all, otherwise sorted,
/// so that the order of the parts does not matter.
fn endpoints<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
) -> Result<Vec<String>, MergeError<E>> {
    let mut all = parts[0].manifest.target.endpoints.clone();
    if parts.iter().any(|part| part.manifest.target.endpoints != all) {
        all = parts.iter().flat_map(|part| part.manifest.target.endpoints.clone()).collect();
        all.sort();
        all.dedup();
    }
    if all.len() > usize::from(u16::MAX) {
        return Err(MergeError::TooMany { what: "endpoints", limit: u32::from(u16::MAX) });
    }
    Ok(all)
}

fn merged<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
) -> Result<Vec<MergedRun>, MergeError<E>> {
    let mut first = 0u32;
    let mut merged = Vec::new();
    for part in parts {
        let MergePart { manifest, workers_count, .. } = part;
        merged.push(MergedRun {
            run_id: manifest.run_id.clone(),
            hostname: manifest.machine.hostname.clone(),
            started_unix_ns: manifest.started_unix_ns,
            // Neither a foreign record nor one of several runs has one seed.
            seed: (manifest.tool.name != FOREIGN_TOOL && manifest.merged.is_empty())
                .then_some(manifest.seed),
            prefix: manifest.target.prefix.clone(),
            worker_index_first: first,
            workers_count: *workers_count,
        });
        let next = first.checked_add(*workers_count).filter(|next| *next <= ObjectId::OWNER_MAX);
        let limit = ObjectId::OWNER_MAX;
        first = next.ok_or(MergeError::TooMany { what: "workers", limit })?;
    }
    Ok(merged)
}

/// Returns the stages of the whole: each kind of stage once, preparing from the first beginning to
/// the last end, measuring only while all measured.
fn stages<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
    epoch: u64,
) -> Result<Vec<Stage>, MergeError<E>> {
    let mut stages = Vec::new();
    for kind in [StageKind::Prepare, StageKind::Measure, StageKind::Cleanup] {
        let own = || {
            parts.iter().flat_map(move |part| {
                let later = part.manifest.started_unix_ns - epoch;
                let stages = part.manifest.stages.iter().filter(move |stage| stage.kind == kind);
                stages.map(move |stage| (stage, later))
            })
        };
        let Some((first, _)) = own().next() else { continue };
        let sum = |of: fn(&Stage) -> Option<u64>| own().map(|(stage, _)| of(stage)).sum();
        let counts =
            |of: fn(&Stage) -> u32| own().map(|(stage, _)| of(stage)).fold(0, u32::saturating_add);
        let add =
            |of: fn(&Stage) -> u64| own().map(|(stage, _)| of(stage)).fold(0, u64::saturating_add);
        let started = || own().filter_map(|(stage, later)| Some(stage.started_ns? + later));
        let ended = || own().filter_map(|(stage, later)| Some(stage.ended_ns? + later));
        let (started_ns, ended_ns) = match kind {
            StageKind::Measure => overlap(parts, epoch)?,
            StageKind::Prepare | StageKind::Cleanup => (started().min(), ended().max()),
        };
        stages.push(Stage {
            index: stages.len() as u8,
            workers_count: counts(|stage| stage.workers_count),
            threads_count: counts(|stage| stage.threads_count),
            started_ns,
            ended_ns,
            // What one of them saw need not be true of all.
            ended_because: None,
            ops_count: sum(|stage| stage.ops_count),
            ops_failed_count: sum(|stage| stage.ops_failed_count),
            bytes: sum(|stage| stage.bytes),
            cpu_ns: sum(|stage| stage.cpu_ns),
            schedule: Schedule::sum(own().filter_map(|(stage, _)| stage.schedule.as_ref())),
            stream_hash: None,
            uploads_given_up_count: add(|stage| stage.uploads_given_up_count),
            uploads_left_count: add(|stage| stage.uploads_left_count),
            wrong: WrongCount::sum(own().flat_map(|(stage, _)| &stage.wrong)),
            ..first.clone()
        });
    }
    Ok(stages)
}

/// Returns when all parts measured.
fn overlap<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
    epoch: u64,
) -> Result<(Option<u64>, Option<u64>), MergeError<E>> {
    let mut latest: Option<(u64, &str)> = None;
    let mut earliest: Option<(u64, &str)> = None;
    for part in parts {
        let (started, ended) = measured(part)?;
        let run_id = part.manifest.run_id.as_str();
        latest = latest.max(Some((started, run_id)));
        earliest = Some(earliest.map_or((ended, run_id), |seen| seen.min((ended, run_id))));
    }
    let (Some((began, later)), Some((ended, earlier))) = (latest, earliest) else {
        return Err(MergeError::Alone);
    };
    if ended <= began {
        return Err(MergeError::NoOverlap {
            earlier: earlier.to_owned(),
            ended: WallTime::from_unix_ns(ended),
            later: later.to_owned(),
            began: WallTime::from_unix_ns(began),
        });
    }
    Ok((Some(began - epoch), Some(ended - epoch)))
}

fn shift<E>(part: &MergePart<'_, E>, merged: &MergedRun, whole: &Manifest) -> Shift {
    let place = |name: &String| {
        let position = whole.target.endpoints.iter().position(|each| each == name);
        EndpointId(position.expect("the whole has every part's endpoints") as u16)
    };
    let stage = |(own, index): (&StageId, &usize)| {
        let kind = part.manifest.stages.get(*index)?.kind;
        let stage = whole.stages.iter().find(|stage| stage.kind == kind)?;
        Some((*own, StageId(stage.index)))
    };
    Shift {
        ns: merged.started_unix_ns - whole.started_unix_ns,
        worker: merged.worker_index_first,
        // Objects of records made elsewhere are numbered by their names, whoever owns them.
        owner: match &*part.manifest.tool.name {
            FOREIGN_TOOL => 0,
            _ => merged.worker_index_first,
        },
        endpoints: part.manifest.target.endpoints.iter().map(place).collect(),
        stages: part.stage_of.iter().filter_map(stage).collect(),
    }
}
