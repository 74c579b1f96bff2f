//! `plimsoll merge` and `plimsoll as warp merge`: one run of the runs of several clients.
#![expect(clippy::disallowed_methods, reason = "cli writes the files it is asked for")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_analysis::OpSource;
use plimsoll_engine::RunClock;
use plimsoll_foreign::warp::raw::RawRow;
use plimsoll_model::{Moment, OpKind, OpRecord, RunId, StageId, WallTime};
use plimsoll_record::schema::{self, Manifest, StageKind};
use plimsoll_record::{MergePart, merge, plan};
use plimsoll_results::{Origin, ReadError, Record, RecordStage, Source, runs, typed_again};
use plimsoll_workload::{hash_text, mix64};

use crate::args::{MergeArgs, WarpMergeArgs};
use crate::commands::export::RawFile;
use crate::ui::Ui;
use crate::{manifest, said, shown};

/// What warp's raw files end in.
const RAW_ENDING: &str = ".csv.zst";

/// Merges, and prints the report of the whole.
pub(crate) fn run(args: &MergeArgs) -> Result<ExitCode> {
    let ui = Ui::new(&args.print);
    // What is wrong with it must be said before anything is written.
    let asked = args.analysis.asked()?;
    let records = opened(&runs(&args.runs)?)?;
    let (id, parts) = parts(&records)?;
    let command_line = said::command_line();
    let directory = merge(parts, &args.output, &id, command_line)?;
    let path = directory.path().display();
    let mut losses = Vec::new();
    for (record, path) in records.iter().map(|record| (record, record.path.display())) {
        losses.extend(record.losses.iter().map(|loss| format!("{path}: {loss}")));
    }
    let report = Record::of_run(&directory).and_then(|whole| shown::report(&whole, &asked));
    let mut report = report
        .map_err(|error| shown::in_flags(error, &args.analysis))
        .with_context(|| format!("the runs are merged into {path}, but it cannot be analysed"))?;
    report.losses.extend(losses);
    shown::print(&report, args.print.form(), &ui)?;
    Ok(ExitCode::SUCCESS)
}

/// Merges raw files of warp's into another.
pub(crate) fn as_warp(args: &WarpMergeArgs) -> Result<ExitCode> {
    let ui = Ui::new(&args.shared.print);
    args.shared.idle().for_each(|sentence| ui.warn(&sentence));
    for (flag, given) in [("--full", args.shared.full), ("--json", args.shared.print.json)] {
        if given {
            ui.warn(&format!("{flag} has no effect: merge keeps every operation and shows none"));
        }
    }
    let records = opened(&args.files)?;
    for record in &records {
        let path = record.path.display();
        if matches!(record.origin, Origin::Run { .. }) {
            bail!("{path} is a run of plimsoll's; `plimsoll export` turns it into a raw file");
        }
        record.losses.iter().for_each(|loss| ui.warn(&format!("{path}: {loss}")));
    }
    let (id, mut parts) = parts(&records)?;
    plan(&mut parts, &id, Vec::new())?;
    let path = raw_path(args.benchdata.as_deref());
    let failed = || format!("--benchdata: cannot write {}", path.display());
    let file = File::create_new(&path).with_context(failed)?;
    match write_raw(&records, file, &ui) {
        Ok(rows) => ui.note(&format!("written to {}, {rows} operations", path.display())),
        Err(error) => {
            // Why it failed matters more than what could not be removed.
            let _ = fs::remove_file(&path);
            return Err(error.context(failed()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns where warp would write to.
fn raw_path(benchdata: Option<&Path>) -> PathBuf {
    let name = match benchdata {
        Some(name) => name.as_os_str().to_owned(),
        None => jiff::Zoned::now().strftime("warp-merge-%Y-%m-%d[%H%M%S]").to_string().into(),
    };
    if name.to_string_lossy().ends_with(RAW_ENDING) {
        return name.into();
    }
    let mut name = name;
    name.push(RAW_ENDING);
    name.into()
}

/// A line of a raw file.
struct Line {
    op: OpRecord,
    /// Of which file.
    of: usize,
    object: Box<str>,
    error: Box<str>,
}

/// Writes all operations in the order of their starts, and returns how many. Workers of each file
/// are numbered behind those of the file before.
fn write_raw(records: &[Record], to: File, ui: &Ui) -> Result<usize> {
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
        thread_first = next.context("too many workers")?;
    }
    lines.sort_by_key(|line| (line.op.start, line.of));
    let mut raw = RawFile::new(to)?;
    for Line { op, of, object, error } in &lines {
        let (thread_first, names) = &files[*of];
        let worker = &names.workers[op.worker.0 as usize];
        raw.row(&RawRow {
            thread: thread_first + worker.thread,
            op: op.kind.name(),
            client_id: &names.clients[usize::from(worker.client)],
            objects: op.objects_count,
            bytes: op.bytes,
            endpoint: &names.endpoints[usize::from(op.endpoint.0)],
            file: object,
            error,
            start_unix_ns: op.start.as_ns(),
            first_byte: op.first_byte.map(Moment::as_ns),
            last_byte: op.last_byte_sent.map(Moment::as_ns),
            end_unix_ns: op.end.as_ns(),
        })?;
    }
    raw.finish(&command_lines(records), ui)?;
    Ok(lines.len())
}

/// Returns the files' command line if it is the same for all, else only that of the merge: readers
/// take the first one for that of the whole file.
fn command_lines(records: &[Record]) -> Vec<String> {
    let line = |record: &Record| match &record.origin {
        Origin::Warp { end } => end.command_line.clone(),
        Origin::Run { .. } => None,
    };
    let first = records.first().and_then(line);
    let same = records.iter().all(|record| line(record) == first);
    first.filter(|_| same).into_iter().chain([typed_again(&said::command_line())]).collect()
}

fn opened(paths: &[PathBuf]) -> Result<Vec<Record>> {
    paths.iter().map(|path| Ok(Record::open(path)?)).collect()
}

/// Returns the runs as parts of a whole, and a name for that.
fn parts(records: &[Record]) -> Result<(RunId, Vec<MergePart<'_, ReadError>>)> {
    let wall = RunClock::start().wall_epoch();
    let parts: Vec<_> = records.iter().map(part).collect::<Result<_>>()?;
    let ids: String = parts.iter().map(|part| part.manifest.run_id.as_str()).collect();
    Ok((RunId::new("merged", wall, mix64(hash_text(&ids))), parts))
}

fn part(record: &Record) -> Result<MergePart<'_, ReadError>> {
    let scan = Box::new(|visit: &mut dyn FnMut(&OpRecord)| record.source.scan(visit));
    match &record.origin {
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

fn workers_of_clients(record: &Record) -> Result<u32> {
    u32::try_from(record.client_of.len()).context("too many workers")
}

/// Returns a raw file of warp's as a part; its epoch is the start of its first operation.
fn foreign<'a>(
    record: &'a Record,
    scan: plimsoll_record::Scan<'a, ReadError>,
) -> Result<MergePart<'a, ReadError>> {
    let first = record.stages.iter().map(|stage| stage.started.as_ns()).min();
    let epoch = WallTime::from_unix_ns(first.context("the file holds no operation")?);
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
    let mut manifest = manifest::foreign(&id, epoch, record.endpoints.clone());
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
