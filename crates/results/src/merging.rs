//! The records of several clients as one: as parts of a merged run, or as one raw file of warp's.

use std::collections::BTreeMap;
use std::io::Write;

use plimsoll_analysis::OpSource;
use plimsoll_model::{Moment, OpKind, OpRecord, RunId, StageId, StageKind, TargetKind, WallTime};
use plimsoll_record::MergePart;
use plimsoll_record::schema::{
    self, Cleanup, CleanupState, ClockInfo, Machine, Manifest, RunSchema, RunState, Target, Tool,
};
use plimsoll_workload::{hash_text, mix64};
use serde_json::Value;

use crate::error::{ExportError, ReadError, ResultsError};
use crate::open::{Origin, Record, RecordStage, Source};
use crate::raw_file::{Around, RawFile};
use crate::report::typed_again;

const TOO_MANY_WORKERS: &str = "too many workers";

/// A line of a raw file.
struct Line {
    op: OpRecord,
    /// Of which file.
    of: usize,
    object: Box<str>,
    error: Box<str>,
}

/// A raw file as it was written.
#[derive(Clone, Copy, Debug)]
pub struct RawWritten {
    /// How many operations it holds.
    pub rows: usize,
    /// The highest number of a worker.
    pub worker_max: u32,
}

/// Writes the operations of raw files as one, in the order of their starts. Workers of each file
/// are numbered behind those of the file before. `command_line` is that of the merge.
pub fn write_raw(
    records: &[Record],
    to: impl Write,
    command_line: &[String],
) -> Result<RawWritten, ExportError> {
    let (mut lines, mut files) = (Vec::new(), Vec::new());
    let mut thread_first = 0u32;
    for (of, record) in records.iter().enumerate() {
        let Source::Warp(file) = &record.source else { continue };
        file.scan_texts(&mut |op, texts| {
            let (object, error) = (texts.file.into(), texts.error.into());
            lines.push(Line { op: *op, of, object, error });
        })?;
        let names = file.names().clone();
        let highest = names.workers.iter().map(|worker| worker.thread).max().unwrap_or_default();
        files.push((thread_first, names));
        let next = highest.checked_add(1).and_then(|count| thread_first.checked_add(count));
        thread_first = next.ok_or_else(|| std::io::Error::other(TOO_MANY_WORKERS))?;
    }
    lines.sort_by_key(|line| (line.op.start, line.of));
    let mut raw = RawFile::new(to)?;
    for Line { op, of, object, error } in &lines {
        let (thread_first, names) = &files[*of];
        let worker = &names.workers[op.worker.0 as usize];
        let around = Around {
            thread: thread_first + worker.thread,
            client_id: &names.clients[usize::from(worker.client)],
            endpoint: &names.endpoints[usize::from(op.endpoint.0)],
            file: object,
            error,
        };
        raw.row(op, &around)?;
    }
    let worker_max = raw.finish(&command_lines(records, command_line))?;
    Ok(RawWritten { rows: lines.len(), worker_max })
}

/// Returns the files' command line if it is the same for all, else only that of the merge: readers
/// take the first one for that of the whole file.
fn command_lines(records: &[Record], of_merge: &[String]) -> Vec<String> {
    let line = |record: &Record| match &record.origin {
        Origin::Warp { end } => end.command_line.clone(),
        Origin::Run { .. } => None,
    };
    let first = records.first().and_then(line);
    let same = records.iter().all(|record| line(record) == first);
    first.filter(|_| same).into_iter().chain([typed_again(of_merge)]).collect()
}

/// The runs as parts of a whole, and a name for that.
type Parts<'a> = (RunId, Vec<MergePart<'a, ReadError>>);

/// Returns the runs as parts of a whole that is made at a time of day.
pub fn parts(records: &[Record], wall: WallTime) -> Result<Parts<'_>, ResultsError> {
    let parts: Vec<_> = records.iter().map(part).collect::<Result<_, _>>()?;
    let ids: String = parts.iter().map(|part| part.manifest.run_id.as_str()).collect();
    Ok((RunId::new("merged", wall, mix64(hash_text(&ids))), parts))
}

fn part(record: &Record) -> Result<MergePart<'_, ReadError>, ResultsError> {
    let scan = Box::new(|visit: &mut dyn FnMut(&OpRecord)| record.source.scan(visit));
    match &record.origin {
        Origin::Run { manifest, .. } if manifest.stages.iter().any(|of| of.probe.is_some()) => {
            let id = &manifest.run_id;
            Err(ResultsError::Nothing(format!(
                "run {id} is a search for a load line, which chose its rates by itself: searches \
                 cannot be merged; let several machines search together (`--fleet`), or compare \
                 the lines (`plimsoll compare`)"
            )))
        }
        Origin::Run { manifest, .. } => {
            let manifest = Manifest::clone(manifest);
            let stage_of = (0..manifest.stages.len()).map(|at| (StageId(at as u8), at)).collect();
            let workers = manifest.stages.iter().map(|stage| stage.workers_count).max();
            // Of merged runs each keeps its numbers, whether it used them or not.
            let workers_count = workers.unwrap_or_default().max(workers_of_clients(record)?);
            Ok(MergePart { manifest, stage_of, workers_count, scan })
        }
        Origin::Warp { .. } => foreign(record, scan),
    }
}

fn workers_of_clients(record: &Record) -> Result<u32, ResultsError> {
    let count = u32::try_from(record.client_of.len());
    count.map_err(|_| ResultsError::Nothing(TOO_MANY_WORKERS.to_owned()))
}

/// Returns a raw file of warp's as a part; its epoch is the start of its first operation.
fn foreign<'a>(
    record: &'a Record,
    scan: plimsoll_record::Scan<'a, ReadError>,
) -> Result<MergePart<'a, ReadError>, ResultsError> {
    let first = record.stages.iter().map(|stage| stage.started.as_ns()).min();
    let empty = || ResultsError::Nothing("the file holds no operation".to_owned());
    let epoch = WallTime::from_unix_ns(first.ok_or_else(empty)?);
    let since = |at: Moment| at.as_ns() - epoch.as_unix_ns();
    // The first moments and the numbers of operations are as good as a name.
    let mut traits = String::new();
    for stage in &record.stages {
        let survey = record.survey.stages(stage.stages);
        for kind in survey.kinds() {
            traits += &format!("{:?}", (kind.started, kind.ended, kind.kind, kind.ops));
        }
    }
    let id = RunId::new("warp", epoch, hash_text(&traits));
    let mut manifest = manifest_of_warp(&id, epoch, record.endpoints.clone());
    let mut stage_of = BTreeMap::new();
    // What came before is cut by what happened to overlap, and is not measured, so it is one stage.
    let (measured, before): (Vec<_>, Vec<_>) =
        record.stages.iter().partition(|stage| stage.kind == StageKind::Measure);
    for (index, own) in [before, measured].iter().filter(|own| !own.is_empty()).enumerate() {
        let kinds = OpKind::ALL.into_iter().map(|kind| StageId(kind as u8));
        let is_own = |id: &StageId| own.iter().any(|stage| stage.stages.contains(*id));
        stage_of.extend(kinds.filter(is_own).map(|id| (id, index)));
        let names: Vec<&str> = own.iter().map(|stage| &*stage.name).collect();
        let begun = schema::Stage::begun(
            index as u8,
            own[0].kind,
            &names.join(", "),
            schema::LoopModel::Closed,
            (own.iter().map(|stage| stage.workers).max().unwrap_or_default(), 0),
        );
        let survey = |stage: &&RecordStage| record.survey.stages(stage.stages);
        let ops = |stage| survey(stage).kinds().map(|kind| kind.ops).sum::<u64>();
        let job = schema::StageJob::of(&begun.name, begun.workers_count, begun.loop_model);
        manifest.stages.push(schema::Stage {
            jobs: vec![job],
            started_ns: own.iter().map(|stage| since(stage.started)).min(),
            ended_ns: own.iter().map(|stage| since(stage.ended)).max(),
            ops_count: Some(own.iter().map(ops).sum()),
            ..begun
        });
    }
    let shifted = Box::new(move |visit: &mut dyn FnMut(&OpRecord)| {
        scan(&mut |op| visit(&op.before(epoch.as_unix_ns())))
    });
    let workers_count = workers_of_clients(record)?;
    Ok(MergePart { manifest, stage_of, workers_count, scan: shifted })
}
/// Returns the manifest of a record that another tool made.
fn manifest_of_warp(id: &RunId, epoch: WallTime, endpoints: Vec<String>) -> Manifest {
    Manifest {
        schema: RunSchema::V1,
        run_id: id.as_str().to_owned(),
        state: RunState::Complete,
        state_reason: None,
        tool: Tool {
            name: Some("warp".to_owned()),
            version: None,
            commit: None,
            profile: None,
            built_for: None,
        },
        command_line: Vec::new(),
        started_unix_ns: epoch.as_unix_ns(),
        started_at: epoch.to_string(),
        clock: ClockInfo {
            source: Some("wall clock, as recorded by warp".to_owned()),
            resolution_ns: None,
        },
        seed: 0,
        machine: Machine::default(),
        target: Target::bare(TargetKind::S3, endpoints),
        more_targets: Vec::new(),
        workload: Value::Null.into(),
        stages: Vec::new(),
        recorder: None,
        cleanup: Cleanup {
            state: CleanupState::NotNeeded,
            objects_removed_count: None,
            files_removed_count: None,
            took_ns: None,
        },
        advice: Vec::new(),
        notes: Vec::new(),
        first_errors: Vec::new(),
        merged: Vec::new(),
        receipt: None,
        agents: Vec::new(),
        events: Vec::new(),
        scraped: Vec::new(),
        virtual_time: false,
        certificate: None,
    }
}
