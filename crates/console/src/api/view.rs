//! Runs as the API shows them.

use std::collections::BTreeMap;

use super::doc::{
    FileDoc, JobDoc, LogLineDoc, OverviewDoc, RunDoc, RunFullDoc, StageDoc, StageShortDoc,
    StateAtDoc,
};
use super::{files, reports};
use crate::console::Console;
use crate::facts::{Facts, JobProgress, StagePlan, StageProgress, StageState};
use crate::state::{Number, State};
use crate::store::{Entry, Filter, Remark, Store, StoreError};

/// More that run or wait are not shown at once.
const ACTIVE_MAX: usize = 200;
/// So many that ended last are shown beside.
const RECENT_MAX: i64 = 10;

/// Returns a run in short.
pub(super) fn short(console: &Console, entry: &Entry, order: Option<u64>) -> RunDoc {
    let running = console.running(entry.number);
    let stages = running.as_ref().map(|running| running.watch.stages()).unwrap_or_default();
    let goes_on =
        |stage: &&StageProgress| matches!(stage.state, StageState::Running | StageState::Sleeping);
    let stage = stages.iter().find(goes_on).map(|stage| {
        let facts = running.as_ref().map(|running| running.watch.facts());
        let name = facts.and_then(|facts| facts.stages.get(stage.number - 1));
        StageShortDoc {
            number: stage.number,
            name: name.map(|plan| plan.name.clone()).unwrap_or_default(),
            state: stage.state,
        }
    });
    let sum = |count: fn(&StageProgress) -> u64, kept: Option<i64>| match stages.is_empty() {
        true => kept,
        false => i64::try_from(stages.iter().map(count).sum::<u64>()).ok(),
    };
    RunDoc {
        id: entry.number.to_string(),
        name: entry.name.clone(),
        kind: entry.kind,
        state: entry.state,
        user: entry.user.clone(),
        submitted_at_ms: entry.submitted_ms,
        began_at_ms: entry.started_ms,
        ended_at_ms: entry.ended_ms,
        order,
        stages_count: entry.stages_count,
        stage,
        progress: running.and_then(|running| running.watch.progress()),
        ops: entry.operations.clone(),
        ops_count: sum(|stage| stage.ops_count, entry.ops_count),
        ops_failed_count: sum(|stage| stage.ops_failed_count, entry.ops_failed_count),
        bytes_count: sum(|stage| stage.bytes_count, entry.bytes_count),
        has_record: reports::has_report(console, entry),
        error: entry.error.clone(),
        archive_error: entry.archive_error.clone(),
    }
}

/// Returns what runs and what waits, in the order of their turns.
pub(super) fn active(console: &Console) -> Result<Vec<RunDoc>, StoreError> {
    let mut order = 0;
    let entries = console.store().active()?;
    let doc = |entry: &Entry| {
        let order = (entry.state == State::Queued).then(|| {
            order += 1;
            order
        });
        short(console, entry, order)
    };
    Ok(entries.iter().take(ACTIVE_MAX).map(doc).collect())
}

/// Returns what is going on.
pub(super) fn overview(console: &Console) -> Result<OverviewDoc, StoreError> {
    let over: Vec<State> = State::ALL.into_iter().filter(|state| state.is_over()).collect();
    let filter = Filter { states: over, limit: RECENT_MAX, ..Filter::default() };
    let (recent, _) = console.store().list(&filter)?;
    let mut counts: BTreeMap<&'static str, i64> =
        State::ALL.iter().map(|state| (state.name(), 0)).collect();
    counts.extend(console.store().counts()?.iter().map(|(state, count)| (state.name(), *count)));
    Ok(OverviewDoc {
        time_ms: console.now_ms(),
        agents: console.agents(),
        active: active(console)?,
        recent: recent.iter().map(|entry| short(console, entry, None)).collect(),
        counts,
    })
}

/// Returns the place of a run in the queue, while it waits.
fn order_of(store: &Store, entry: &Entry) -> Result<Option<u64>, StoreError> {
    if entry.state != State::Queued {
        return Ok(None);
    }
    let active = store.active()?;
    let mut queued = active.iter().filter(|entry| entry.state == State::Queued);
    let at = queued.position(|other| other.number == entry.number);
    Ok(at.map(|at| at as u64 + 1))
}

/// Returns a run with all that is known of it.
pub(super) fn full(
    console: &Console,
    number: Number,
    with_files: bool,
) -> Result<RunFullDoc, StoreError> {
    let store = console.store();
    let entry = store.entry(number)?;
    let source = store.source(number)?;
    let states = store.changes(number)?;
    let states =
        states.iter().map(|change| StateAtDoc { state: change.state, at_ms: change.at_ms });
    let remarks = store.remarks(number)?;
    let of_level = |level: &str| {
        let of = remarks.iter().filter(|remark| remark.level == level);
        of.map(|remark| remark.text.clone()).collect::<Vec<_>>()
    };
    let running = console.running(number);
    let progress = match &running {
        Some(running) => running.watch.stages(),
        None => store.kept_progress(number)?,
    };
    let agents = running.as_ref().and_then(|running| running.watch.last());
    let agents = agents.map(|told| told.tick.parts.iter().map(|part| part.name.clone()).collect());
    let agents: Vec<String> = agents.unwrap_or_default();
    let files = match with_files {
        true => files::list(&entry).into_iter().map(|file| file.doc()).collect::<Vec<FileDoc>>(),
        false => Vec::new(),
    };
    let order = order_of(store, &entry)?;
    let Facts { description, touches, targets, corrections, notes, .. } = source.facts.clone();
    Ok(RunFullDoc {
        run: short(console, &entry, order),
        description,
        states: states.collect(),
        stages: stages(&source.facts, &progress, entry.state, &agents),
        notes,
        warnings: of_level("warning"),
        corrections: if with_files { corrections } else { Vec::new() },
        touches,
        targets,
        files,
        has_workload: true,
        agents,
        resubmitted_from: entry.resubmitted_from.map(|from| from.to_string()),
    })
}

fn stages(
    facts: &Facts,
    progress: &[StageProgress],
    state: State,
    agents: &[String],
) -> Vec<StageDoc> {
    let unknown = StageProgress {
        state: match state {
            State::Queued | State::Running => StageState::Waiting,
            State::Cancelled => StageState::Cancelled,
            _ => StageState::Aborted,
        },
        ..StageProgress::default()
    };
    // Bound: `take`, by the stages that there are.
    let planned = facts.stages.iter().map(Some).chain(std::iter::repeat(None));
    let count = facts.stages.len().max(progress.len());
    let stage = |(index, plan): (usize, Option<&StagePlan>)| {
        let other = StagePlan { name: "stage".to_owned(), ..StagePlan::default() };
        stage_doc(
            index + 1,
            plan.unwrap_or(&other),
            progress.get(index).unwrap_or(&unknown),
            agents,
        )
    };
    planned.take(count).enumerate().map(stage).collect()
}

fn stage_doc(
    number: usize,
    plan: &StagePlan,
    progress: &StageProgress,
    agents: &[String],
) -> StageDoc {
    // Of a stage that is waited for nothing is counted yet; what one job did is what its stage did.
    let only = JobProgress {
        ops_count: progress.ops_count,
        ops_failed_count: progress.ops_failed_count,
        bytes_count: progress.bytes_count,
        error: progress.error.clone(),
    };
    let counted = |index: usize| match (plan.jobs.len(), &*progress.jobs) {
        (1, []) => Some(&only),
        (_, jobs) => jobs.get(index),
    };
    let job = |(index, job): (usize, &crate::facts::JobPlan)| JobDoc {
        number: index + 1,
        name: job.name.clone(),
        state: progress.state,
        workers_count: job.workers_count,
        agents: job.agent.clone().map_or_else(|| agents.to_vec(), |agent| vec![agent]),
        work: job.work.clone(),
        began_at_ms: progress.began_at_ms,
        ended_at_ms: progress.ended_at_ms,
        ops_count: counted(index).map(|of| of.ops_count),
        ops_failed_count: counted(index).map(|of| of.ops_failed_count),
        bytes_count: counted(index).map(|of| of.bytes_count),
        error: counted(index).and_then(|of| of.error.clone()),
    };
    let state = |(state, at_ms): &(StageState, i64)| StateAtDoc { state: *state, at_ms: *at_ms };
    StageDoc {
        number,
        id: plan.id_as(number),
        name: plan.name.clone(),
        state: progress.state,
        prepares: plan.prepares,
        delay_ns: plan.delay_ns,
        began_at_ms: progress.began_at_ms,
        ended_at_ms: progress.ended_at_ms,
        planned_ns: plan.planned_ns,
        states: progress.states.iter().map(state).collect(),
        error: progress.error.clone(),
        jobs: plan.jobs.iter().enumerate().map(job).collect(),
    }
}

/// Returns a remark as a line of the log.
pub(super) fn log_line(seq: i64, remark: &Remark) -> LogLineDoc {
    let level = match &*remark.level {
        "warning" | "error" => remark.level.clone(),
        _ => "info".to_owned(),
    };
    LogLineDoc { seq, at_ms: remark.at_ms, level, agent: None, text: remark.text.clone() }
}
