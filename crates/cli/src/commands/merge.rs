//! `plimsoll merge`: one run of the runs of several clients.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_analysis::OpSource;
use plimsoll_engine::RunClock;
use plimsoll_model::{OpKind, RunId, StageId, WallTime};
use plimsoll_record::schema::{self, Manifest};
use plimsoll_record::{MergePart, merge};
use plimsoll_workload::{hash_text, mix64};

use crate::args::MergeArgs;
use crate::recorded::{self, Origin, ReadError, Record};
use crate::ui::Ui;
use crate::{environment, examine, manifest, present, redact};

/// Merges, and prints the report of the whole.
pub(crate) fn run(args: &MergeArgs) -> Result<ExitCode> {
    let ui = Ui::new(&args.print);
    let records: Vec<Record> = recorded::runs(&args.runs)?
        .iter()
        .map(|path| recorded::open_record(path))
        .collect::<Result<_>>()?;
    let wall = RunClock::start().wall_epoch();
    let parts: Vec<_> = records.iter().map(part).collect::<Result<_>>()?;
    let ids: String = parts.iter().map(|part| part.manifest.run_id.as_str()).collect();
    let id = RunId::new("merged", wall, mix64(hash_text(&ids)));
    let command_line = redact::command_line(&environment::command_line());
    let directory = merge(parts, &args.output, &id, command_line)?;
    let record = recorded::open_record(directory.path())?;
    let Some(mut report) = examine::reports(&record, &args.analysis)?.pop() else {
        bail!("{}: nothing was measured", directory.path().display());
    };
    for (record, path) in records.iter().map(|record| (record, record.path.display())) {
        report.losses.extend(record.losses.iter().map(|loss| format!("{path}: {loss}")));
    }
    present::print(&report, args.print.form(), &ui)?;
    Ok(ExitCode::SUCCESS)
}

fn part(record: &Record) -> Result<MergePart<'_, ReadError>> {
    let scan =
        Box::new(|visit: &mut dyn FnMut(&plimsoll_model::OpRecord)| record.source.scan(visit));
    match &record.origin {
        Origin::Run { manifest, .. } => {
            let manifest = settled(manifest, record);
            let stage_of = (0..manifest.stages.len()).map(|at| (StageId(at as u8), at)).collect();
            let workers = manifest.stages.iter().map(|stage| stage.workers_count).max();
            let workers_count = workers.unwrap_or_default().max(active_workers(record));
            Ok(MergePart { manifest, stage_of, workers_count, scan })
        }
        Origin::Warp { .. } => foreign(record, scan),
    }
}

fn active_workers(record: &Record) -> u32 {
    let merged = u32::try_from(record.client_of.len()).unwrap_or(u32::MAX);
    let each = record.survey.each().map(|(_, stage)| stage.workers_count());
    each.max().unwrap_or_default().max(merged)
}

/// Returns the manifest, with the ends of stages that a killed run could not note.
fn settled(manifest: &Manifest, record: &Record) -> Manifest {
    let mut manifest = manifest.clone();
    for stage in &record.stages {
        let entry = manifest.stages.iter_mut().find(|entry| entry.name == stage.name);
        if let Some(entry) = entry {
            entry.started_ns = Some(stage.started.as_ns());
            entry.ended_ns = Some(stage.ended.as_ns());
        }
    }
    manifest
}

/// Returns a raw file of warp's as a part; its epoch is the start of its first operation.
fn foreign<'a>(
    record: &'a Record,
    scan: plimsoll_record::Scan<'a, ReadError>,
) -> Result<MergePart<'a, ReadError>> {
    let first = record.stages.iter().map(|stage| stage.started.as_ns()).min();
    let epoch = WallTime::from_unix_ns(first.context("the file holds no operation")?);
    let since = |at: plimsoll_model::Moment| at.as_ns() - epoch.as_unix_ns();
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
    for (index, stage) in record.stages.iter().enumerate() {
        let survey = record.survey.stages(stage.stages);
        let kinds = OpKind::ALL.into_iter().map(|kind| StageId(kind as u8));
        stage_of.extend(kinds.filter(|id| stage.stages.contains(*id)).map(|id| (id, index)));
        manifest.stages.push(schema::Stage {
            index: index as u8,
            kind: stage.kind,
            name: stage.name.clone(),
            loop_model: schema::LoopModel::Closed,
            workers_count: stage.workers,
            threads_count: 0,
            started_ns: Some(since(stage.started)),
            ended_ns: Some(since(stage.ended)),
            ended_by: None,
            ended_because: None,
            ops_count: Some(survey.kinds().map(|kind| kind.ops).sum()),
            ops_failed_count: None,
            bytes: None,
            cpu_ns: None,
        });
    }
    let shifted = Box::new(move |visit: &mut dyn FnMut(&plimsoll_model::OpRecord)| {
        scan(&mut |op| visit(&op.before(epoch.as_unix_ns())))
    });
    let workers_count = u32::try_from(record.client_of.len()).context("too many workers")?;
    Ok(MergePart { manifest, stage_of, workers_count, scan: shifted })
}
