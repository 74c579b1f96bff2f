//! From a record to its reports: which stages, which filters, and what a foreign file tells about
//! itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use plimsoll_analysis::{Question, StageAnalysis, Survey, Window, measure};
use plimsoll_foreign::warp::aggregated::Aggregated;
use plimsoll_foreign::warp::raw::ScanEnd;
use plimsoll_model::{EndpointId, ErrorClass, OpKind, OpRate, WallTime};
use plimsoll_record::schema::{self, StageKind};
use plimsoll_report::{ErrorSample, LoopModel, RunReport, RunState};

use crate::args::AnalysisArgs;
use crate::present;
use crate::recorded::{Origin, Record, RecordStage, Source};

/// How many texts of one class of failure are kept.
const ERRORS_KEPT_PER_CLASS: usize = 3;

/// Returns a report on each stage that was asked for: the measured one of a run, each of a foreign
/// file.
pub(crate) fn reports(record: &Record, args: &AnalysisArgs) -> Result<Vec<RunReport>> {
    let stages = asked(record, args)?;
    stages.into_iter().map(|stage| report(record, stage, analysis(record, stage, args)?)).collect()
}

/// Returns the stages that were asked for.
pub(crate) fn asked<'a>(record: &'a Record, args: &AnalysisArgs) -> Result<Vec<&'a RecordStage>> {
    let path = record.path.display();
    if let Some(name) = &args.stage {
        let named = record.stages.iter().find(|stage| stage.name.eq_ignore_ascii_case(name));
        let names: Vec<&str> = record.stages.iter().map(|stage| &*stage.name).collect();
        return named.map(|stage| vec![stage]).ok_or_else(|| {
            anyhow!("--stage {name}: {path} has {}", or_nothing(&names.join(", ")))
        });
    }
    let all = matches!(record.origin, Origin::Warp { .. });
    let wanted = record.stages.iter().filter(|stage| all || stage.kind == StageKind::Measure);
    let kind = args.kind()?;
    let has_kind = |stage: &&RecordStage| {
        let mut seen = record.survey.stages(stage.stages).kinds().collect::<Vec<_>>().into_iter();
        kind.is_none_or(|kind| seen.any(|span| span.kind == kind))
    };
    let stages: Vec<_> = wanted.filter(has_kind).collect();
    match (stages.is_empty(), kind) {
        (false, _) => Ok(stages),
        (true, Some(kind)) => Err(absent(kind, &record.path)),
        (true, None) => {
            let names: Vec<&str> = record.stages.iter().map(|stage| &*stage.name).collect();
            bail!(
                "{path}: nothing was measured, so there is nothing to analyse; of its stages there \
                 is {} (--stage NAME shows one)",
                or_nothing(&names.join(", "))
            )
        }
    }
}

pub(crate) fn absent(kind: OpKind, path: &Path) -> anyhow::Error {
    anyhow!("--analyze.op {}: {} has no such operation", kind.name(), path.display())
}

/// Leaves only the kind that was asked for in an aggregated file.
pub(crate) fn narrow(file: &mut Aggregated, path: &Path, args: &AnalysisArgs) -> Result<()> {
    let Some(kind) = args.kind()? else { return Ok(()) };
    file.by_op_type.retain(|name, _| name == kind.name());
    if file.by_op_type.is_empty() { Err(absent(kind, path)) } else { Ok(()) }
}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}

/// Returns the figures of one stage.
pub(crate) fn analysis(
    record: &Record,
    stage: &RecordStage,
    args: &AnalysisArgs,
) -> Result<StageAnalysis> {
    let question = Question {
        stages: stage.stages,
        started: stage.started,
        ended: stage.ended,
        workers: stage.workers,
        segment: args.dur.map(|dur| dur.0),
        full_span: args.full_span,
        open: is_open(record, stage),
        skip: args.skip.map_or(Duration::ZERO, |skip| skip.0),
        kind: args.kind()?,
        endpoint: args.host.as_deref().map(|host| endpoint(record, host)).transpose()?,
        client_of: &record.client_of,
        details: args.details,
    };
    let questions = std::slice::from_ref(&question);
    let mut answers = if args.limit.is_none() && args.offset == 0 {
        measure(&record.source, &record.survey, questions)?
    } else {
        let (stages, offset, limit) = (stage.stages, args.offset, args.limit);
        let window = Window { source: &record.source, stages, offset, limit };
        measure(&window, &Survey::of(&window)?, questions)?
    };
    let answer = answers.pop().ok_or_else(|| anyhow!("one question has one answer"))?;
    let is_part = answer.is_part || args.limit.is_some() || args.offset > 0;
    Ok(StageAnalysis { is_part, ..answer })
}

/// Tells whether the operations of a stage came on a schedule.
fn is_open(record: &Record, stage: &RecordStage) -> bool {
    let Origin::Run { manifest, .. } = &record.origin else { return false };
    let open = |each: &&schema::Stage| each.loop_model == schema::LoopModel::Open;
    manifest.stages.iter().filter(open).any(|each| stage.is(each))
}

/// Returns the endpoint of that name, or of that host and port.
pub(crate) fn endpoint(record: &Record, host: &str) -> Result<EndpointId> {
    let without_scheme =
        |name: &str| name.split_once("://").map_or(name, |(_, rest)| rest).to_owned();
    let same = |name: &String| {
        name == host || without_scheme(name).trim_end_matches('/') == without_scheme(host)
    };
    let position = record.endpoints.iter().position(same);
    position.map(|position| EndpointId(position as u16)).ok_or_else(|| {
        let known = record.endpoints.join(", ");
        anyhow!("--analyze.host {host}: {} has {}", record.path.display(), or_nothing(&known))
    })
}

/// Returns the report on one stage.
pub(crate) fn report(
    record: &Record,
    stage: &RecordStage,
    analysis: StageAnalysis,
) -> Result<RunReport> {
    let mut report = match &record.origin {
        Origin::Run { directory, manifest } => {
            let own = |each: &&schema::Stage| stage.is(each);
            let index = manifest.stages.iter().find(own).map_or(0, |each| each.index);
            present::of_run(manifest, directory.path(), usize::from(index), analysis)?
        }
        Origin::Warp { end } => foreign(record, stage, end, analysis)?,
    };
    report.losses = record.losses.clone();
    Ok(report)
}

fn foreign(
    record: &Record,
    stage: &RecordStage,
    end: &ScanEnd,
    analysis: StageAnalysis,
) -> Result<RunReport> {
    let command = end.command_line.clone().unwrap_or_default();
    let words: Vec<&str> = command.split_whitespace().collect();
    let what = match words[..] {
        ["warp", benchmark, ..] if !benchmark.starts_with('-') => {
            format!("warp {benchmark}, {}", stage.name)
        }
        // Written by `plimsoll`, or by nobody who said so.
        _ => format!("warp {}", stage.name),
    };
    let target = record.endpoints.iter().filter(|name| !name.is_empty());
    let target: Vec<&str> = target.map(String::as_str).collect();
    let started = WallTime::from_unix_ns(analysis.started.as_ns());
    let failed = analysis.total.stage.failed.count() > 0;
    Ok(RunReport {
        tool_version: None,
        run_id: None,
        what,
        target: if target.is_empty() { "unknown".to_owned() } else { target.join(", ") },
        ended_because: None,
        endpoints: record.endpoints.clone(),
        clients: record.clients.clone(),
        utc_offset_seconds: end.utc_offset_seconds,
        foreign: Some("warp raw file".to_owned()),
        started,
        loop_model: loop_model(&words, stage),
        seed: None,
        concurrency: stage.workers,
        threads: None,
        prepare: None,
        cleanup: None,
        errors: if failed { first_errors(record, stage)? } else { Vec::new() },
        losses: Vec::new(),
        notes: Vec::new(),
        run_directory: None,
        state: RunState::Complete,
        op_log: None,
        verification: None,
        client_cpu: None,
        recorder_wait: Duration::ZERO,
        schedule: None,
        certificate: None,
        virtual_time: false,
        stream_hash: None,
        wrong: Vec::new(),
        command,
        analysis,
    })
}

/// Returns the loop model; warp's is closed, and capped only in what it measures.
fn loop_model(words: &[&str], stage: &RecordStage) -> LoopModel {
    let limit = words.iter().find_map(|word| word.strip_prefix("--rps-limit="));
    match limit.and_then(|limit| limit.parse::<f64>().ok()) {
        Some(rate) if rate > 0.0 && stage.kind == StageKind::Measure => {
            LoopModel::Capped { rate: OpRate(rate) }
        }
        _ => LoopModel::Closed,
    }
}

/// Reads the first texts of each kind and class of failure.
fn first_errors(record: &Record, stage: &RecordStage) -> Result<Vec<ErrorSample>> {
    let mut kept: BTreeMap<(OpKind, ErrorClass), Vec<ErrorSample>> = BTreeMap::new();
    let Source::Warp(file) = &record.source else { return Ok(Vec::new()) };
    file.scan_errors(&mut |op, error| {
        if op.outcome.is_ok() || !stage.stages.contains(op.stage) {
            return;
        }
        let of_class = kept.entry((op.kind, op.outcome)).or_default();
        if of_class.len() < ERRORS_KEPT_PER_CLASS {
            of_class.push(ErrorSample {
                class: op.outcome,
                kind: op.kind,
                endpoint: Some(op.endpoint),
                status: None,
                message: error.to_owned(),
            });
        }
    })?;
    Ok(kept.into_values().flatten().collect())
}
