//! An archive out of the report of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_analysis::{EndedInterval, Figures as Measured, KindAnalysis, KindDetails};
use plimsoll_model::{EndReason, Moment, OpKind, WallTime, per_sec};
use plimsoll_report::{Report, RowReport, RunState, StageReport};
use plimsoll_workload::plan::spec::{JobSpec, OpSpec, WorkSpec, WorkStage};

use super::{Archive, ArchivedStage, Figures, Metric, Snapshot, StateAt, WorkerMetric, histogram};
use crate::cosbench::lower::{Lowered, LoweredStage, StageRole};
use crate::cosbench::model::{Operation, Stage, Work, Workload};
use crate::cosbench::storage::without_secrets;

/// A workload that was run, and what came of it.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// What it came to.
    pub lowered: &'a Lowered,
    /// What came of that: in rows of jobs, with details and whole distributions, in segments as
    /// long as the interval of its works; `None` where nothing was recorded.
    pub report: Option<&'a Report>,
    /// The same in rows of workers, for tables of these.
    pub by_worker: Option<&'a Report>,
}

/// When and as what it was run.
#[derive(Clone, Copy)]
pub struct Ran<'a> {
    /// Its id: `w3`.
    pub id: &'a str,
    /// When it was handed in.
    pub submitted: WallTime,
    /// When it was over; `None` while it runs.
    pub stopped: Option<WallTime>,
    /// How it ended, where that is known better than the report says.
    pub state: Option<WorkloadState>,
    /// Returns a moment in local time, `yyyy-MM-dd HH:mm:ss`.
    pub local: &'a dyn Fn(WallTime) -> String,
}

/// In which state a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadState {
    /// It waits for those before it.
    Queuing,
    /// It runs.
    Processing,
    /// All is done, and not more failed than may.
    Finished,
    /// All is done, and more failed than may, or nothing was counted.
    Failed,
    /// It could not go on.
    Terminated,
    /// Somebody ended it.
    Cancelled,
}

impl WorkloadState {
    /// Returns its word, in small letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queuing => "queuing",
            Self::Processing => "processing",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Terminated => "terminated",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Returns what is archived of a workload.
pub fn from_results(results: &Results<'_>, ran: &Ran<'_>) -> Archive {
    let workload = results.workload;
    let nothing;
    let report = match results.report {
        Some(report) => report,
        None => {
            let of = Report::of(&workload.name, ran.submitted, Vec::new());
            nothing = Report { state: RunState::Interrupted, ..of };
            &nothing
        }
    };
    let taking = Taking { results, report, ran };
    let mut stages: Vec<ArchivedStage> = Vec::new();
    for (index, stage) in workload.stages.iter().enumerate() {
        stages.push(taking.stage(index, stage));
    }
    taking.cut_short(&mut stages);
    let failed = stages.iter().any(|stage| stage.state() == "failed");
    let counted = stages.iter().flat_map(|stage| &stage.metrics).any(|of| of.figures.ops > 0);
    let asks = stages.iter().flat_map(|stage| &stage.metrics).any(|of| of.figures.samples > 0);
    let state = ran.state.unwrap_or(match report.state {
        RunState::Complete if failed || asks && !counted => WorkloadState::Failed,
        RunState::Complete => WorkloadState::Finished,
        // Not all of its drivers came to the end.
        RunState::Degraded => WorkloadState::Failed,
        RunState::Interrupted => WorkloadState::Cancelled,
        RunState::Running => WorkloadState::Processing,
        RunState::Killed | RunState::Failed => WorkloadState::Terminated,
    });
    let local = |at| (ran.local)(at);
    let at = |state: &str, at| StateAt { state: state.to_owned(), at: local(at) };
    let mut states = vec![at("queuing", ran.submitted)];
    let began = (!report.stages.is_empty()).then_some(report.started);
    states.extend(began.map(|began| at("processing", began)));
    states.extend(ran.stopped.map(|stopped| at(state.name(), stopped)));
    Archive {
        id: ran.id.to_owned(),
        name: workload.name.clone(),
        submitted: local(ran.submitted),
        started: began.map(local),
        stopped: ran.stopped.map(local),
        op_info: workload.op_info().into_iter().map(str::to_owned).collect(),
        states,
        stages,
    }
}

/// What an archive is taken from.
struct Taking<'a> {
    results: &'a Results<'a>,
    report: &'a Report,
    ran: &'a Ran<'a>,
}

/// A stage of ours that was run.
struct RunStage<'a> {
    lowered: &'a LoweredStage,
    planned: &'a WorkStage,
    report: &'a StageReport,
    by_worker: Option<&'a StageReport>,
}

/// The time line of a stage on its way: from where each interval begins, how long it is, and what
/// ended in it by the place of its metric.
type SnapshotRows = BTreeMap<Moment, (Duration, Vec<(usize, Figures)>)>;

/// How many figures the rows of intervals in which nothing ended may have, of a stage: those of two
/// months in rows of 5 s of four metrics. More lie only between moments that are wrong.
const GAP_FIGURES_MAX: u64 = 4_000_000;

/// When a stage began and ended.
#[derive(Clone, Copy)]
struct Lasted {
    from: WallTime,
    to: WallTime,
}

impl<'a> Taking<'a> {
    /// Returns the stages of ours that a stage came to and that were run.
    fn run_stages(&self, index: usize) -> Vec<RunStage<'a>> {
        let (Results { lowered, by_worker, .. }, report) = (*self.results, self.report);
        let planned = lowered.stages.iter().zip(lowered.file.work_stages());
        let of_stage = planned.filter(|(lowered, _)| lowered.stage == index);
        let found = of_stage.filter_map(|(lowered, planned)| {
            let is_it = |stage: &&StageReport| Some(&stage.name) == planned.name.as_ref();
            let by_worker = by_worker.and_then(|report| report.stages.iter().find(is_it));
            let report = report.stages.iter().find(is_it)?;
            Some(RunStage { lowered, planned, report, by_worker })
        });
        found.collect()
    }

    /// Gives the stage in which a run was cut short the state that it ended in.
    fn cut_short(&self, stages: &mut [ArchivedStage]) {
        let state = match self.ran.state {
            Some(WorkloadState::Cancelled) => "cancelled",
            Some(WorkloadState::Terminated) => "terminated",
            Some(WorkloadState::Queuing | WorkloadState::Processing) => return,
            Some(WorkloadState::Finished | WorkloadState::Failed) => return,
            None => match self.report.state {
                RunState::Complete | RunState::Degraded | RunState::Running => return,
                RunState::Interrupted => "cancelled",
                RunState::Killed | RunState::Failed => "terminated",
            },
        };
        let has_begun = |of: &StateAt| of.state == "running" || of.state == "sleeping";
        let ran = |stage: &&mut ArchivedStage| stage.states.iter().any(has_begun);
        // What ended by itself was not cut short by what ended the run.
        let is_open = |last: &StageReport| last.ended_by.is_none_or(|by| by == EndReason::Stopped);
        let is_cut = state == "cancelled" || self.report.stages.last().is_some_and(is_open);
        if let Some(last) = stages.iter_mut().rfind(ran).filter(|_| is_cut) {
            let states = last.states.last_mut();
            states.into_iter().for_each(|of| state.clone_into(&mut of.state));
        }
    }

    fn stage(&self, index: usize, stage: &Stage) -> ArchivedStage {
        let run = self.run_stages(index);
        let mut archived = ArchivedStage {
            id: stage.id(index + 1),
            name: stage.name.clone(),
            ..ArchivedStage::default()
        };
        self.figures(&run, stage, &mut archived);
        archived.states = self.states((index, stage), &run, &archived);
        archived
    }

    /// Fills in what came of the works of a stage.
    fn figures(&self, run: &[RunStage<'_>], stage: &Stage, archived: &mut ArchivedStage) {
        let mut rows: SnapshotRows = BTreeMap::new();
        for RanWork { of, job, spec, work: work_index } in ran_works(run) {
            let work = &stage.works[work_index];
            let row = row_of(of.report, job, spec);
            for (kind, operations) in kinds(spec, work) {
                let metric = metric(work_index, work, &operations);
                let of_row = row.and_then(|row| kind.and_then(|kind| row.analysis.kind(kind)));
                let metric = match of_row {
                    Some(of) => measured(metric, of),
                    None => metric,
                };
                let place = archived.metrics.len();
                let details = row.and_then(|row| row.analysis.details.as_ref());
                let kind_details = |of: &&KindDetails| Some(of.kind) == kind;
                let series = details.and_then(|of| of.kinds.iter().find(kind_details));
                for interval in series.iter().flat_map(|of| &of.ended) {
                    let counted = (place, in_interval(interval));
                    rows.entry(interval.start)
                        .or_insert((interval.length, Vec::new()))
                        .1
                        .push(counted);
                }
                for client in details.iter().flat_map(|of| &of.clients) {
                    let name = self.report.clients.get(usize::from(client.client));
                    let own = client.kinds.iter().find(|of| Some(of.kind) == kind);
                    if let (Some(name), Some(own)) = (name, own) {
                        let figures = figures(&own.figures);
                        let metric = Metric { figures, latencies: None, ..metric.clone() };
                        archived.drivers.push((name.clone(), metric));
                    }
                }
                archived.metrics.push(metric);
            }
            archived.workers.extend(workers(of, job, spec, work));
        }
        let count = archived.metrics.len();
        let worked = run.iter().rfind(|run| run.lowered.role != StageRole::Pause);
        if let Some(last) = worked.filter(|_| rows.is_empty() && count > 0) {
            // A stage that issues no operations has one row, as there.
            rows.insert(self.ended(last.report), (Duration::ZERO, Vec::new()));
        }
        self.fill_gaps(&mut rows, count);
        for (version, (start, (length, of))) in rows.into_iter().enumerate() {
            // Bound: the operations of the works, which are in memory.
            let mut figures = vec![Figures::default(); count];
            of.into_iter().for_each(|(place, own)| figures[place] = own);
            let local = (self.ran.local)(self.wall(start).after(length));
            let time = local.rsplit(' ').next().unwrap_or_default().to_owned();
            archived.snapshots.push(Snapshot { time, figures, version: version as u64 });
        }
    }

    /// Adds rows of so many metrics between others for intervals in which nothing ended.
    fn fill_gaps(&self, rows: &mut SnapshotRows, metrics: usize) {
        let interval = Duration::from_secs(self.results.workload.interval_s().into());
        let interval_ns = (interval.as_nanos() as u64).max(1);
        let (Some(first), Some(last)) = (rows.keys().next(), rows.keys().next_back()) else {
            return;
        };
        let (mut start, last) = (first.as_ns(), last.as_ns());
        if ((last - start) / interval_ns).saturating_mul(metrics as u64) > GAP_FIGURES_MAX {
            return;
        }
        while start < last {
            rows.entry(Moment::from_ns(start)).or_insert((interval, Vec::new()));
            start += interval_ns;
        }
    }

    /// Returns when a stage had ended.
    fn ended(&self, stage: &StageReport) -> Moment {
        let ended = self.lasted(stage).to.as_unix_ns();
        Moment::from_ns(ended.saturating_sub(self.report.epoch.as_unix_ns()))
    }

    fn wall(&self, at: Moment) -> WallTime {
        self.report.epoch.after(Duration::from_nanos(at.as_ns()))
    }

    fn lasted(&self, stage: &StageReport) -> Lasted {
        let started = self.report.started.after(stage.started_after);
        let bounds = stage.rows.first().map(|row| (row.analysis.started, row.analysis.ended));
        match bounds {
            Some((from, to)) => Lasted { from: self.wall(from), to: self.wall(to) },
            None => Lasted { from: started, to: started.after(stage.took) },
        }
    }

    fn states(
        &self,
        (index, stage): (usize, &Stage),
        run: &[RunStage<'_>],
        archived: &ArchivedStage,
    ) -> Vec<StateAt> {
        let at = |state: &str, at| StateAt { state: state.to_owned(), at: (self.ran.local)(at) };
        let mut states = vec![at("waiting", self.ran.submitted)];
        let lasted: Vec<Lasted> = run.iter().map(|run| self.lasted(run.report)).collect();
        let (Some(first), Some(last)) = (lasted.first(), lasted.last()) else {
            let has_nothing_to_do =
                !self.results.lowered.stages.iter().any(|lowered| lowered.stage == index);
            if let Some(stopped) = self.ran.stopped {
                let state = match self.ran.state {
                    Some(WorkloadState::Cancelled) => "cancelled",
                    _ if has_nothing_to_do => "completed",
                    _ => "aborted",
                };
                states.push(at(state, stopped));
            }
            return states;
        };
        let is_pause = |run: &&RunStage<'_>| run.lowered.role == StageRole::Pause;
        if stage.is_delay() {
            states.push(at("sleeping", first.from));
        } else {
            for state in ["booting", "submitting", "authing", "launching", "running"] {
                states.push(at(state, first.from));
            }
            let worked = run.iter().zip(&lasted).rfind(|(run, _)| !is_pause(run));
            states.extend(worked.map(|(_, lasted)| at("closing", lasted.to)));
            let slept = run.iter().zip(&lasted).find(|(run, _)| is_pause(run));
            states.extend(slept.map(|(_, lasted)| at("sleeping", lasted.from)));
        }
        let none_left = |of: &Metric| of.figures.samples > 0 && of.figures.ops == 0;
        let has_failed = run.iter().flat_map(|run| &run.report.rows).any(is_over)
            || archived.metrics.iter().any(none_left);
        states.push(at(if has_failed { "failed" } else { "completed" }, last.to));
        states
    }
}

/// A work as it was run.
struct RanWork<'a> {
    of: &'a RunStage<'a>,
    job: usize,
    spec: &'a JobSpec,
    work: usize,
}

/// Returns the works of a stage in their order, each as the stage of ours runs it that is its own:
/// what only makes or removes the containers of another work is none.
fn ran_works<'a>(run: &'a [RunStage<'a>]) -> Vec<RanWork<'a>> {
    let mut found: BTreeMap<usize, RanWork<'a>> = BTreeMap::new();
    for of in run {
        let jobs = of.planned.jobs.iter().zip(&of.lowered.works).enumerate();
        for (job, (spec, &work)) in jobs {
            if of.lowered.role == StageRole::Main || !found.contains_key(&work) {
                found.insert(work, RanWork { of, job, spec, work });
            }
        }
    }
    found.into_values().collect()
}

/// Tells whether more of a row failed than may.
fn is_over(row: &RowReport) -> bool {
    row.error_rate.zip(row.error_rate_max).is_some_and(|(rate, max)| rate > max)
}

/// Returns the row of a job.
fn row_of<'a>(stage: &'a StageReport, job: usize, spec: &JobSpec) -> Option<&'a RowReport> {
    let by_place = stage.rows.iter().find(|row| row.jobs == [job]);
    by_place.or_else(|| stage.rows.iter().find(|row| Some(&row.name) == spec.name.as_ref()))
}

/// Returns the operations of a work by the kind that they are recorded as: several of one kind are
/// not told apart. Containers are made and removed without any.
fn kinds<'a>(spec: &JobSpec, work: &'a Work) -> Vec<(Option<OpKind>, Vec<&'a Operation>)> {
    let all = || work.operations.iter().collect();
    let ops = match &spec.work {
        WorkSpec::Objects(ops) => ops,
        WorkSpec::Fill(_) => return vec![(Some(OpKind::Put), all())],
        WorkSpec::Remove(_) => return vec![(Some(OpKind::Delete), all())],
        _ => return vec![(None, all())],
    };
    let mut found: Vec<(Option<OpKind>, Vec<&Operation>)> = Vec::new();
    for (op, operation) in ops.iter().zip(&work.operations) {
        let kind = Some(match op {
            OpSpec::Get(_) => OpKind::Get,
            OpSpec::Put(_) | OpSpec::Post(_) => OpKind::Put,
            OpSpec::Stat(_) => OpKind::Stat,
            OpSpec::Delete(_) => OpKind::Delete,
            OpSpec::List(_) => OpKind::List,
        });
        match found.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, operations)) => operations.push(operation),
            None => found.push((kind, vec![operation])),
        }
    }
    found
}

fn metric(work_index: usize, work: &Work, operations: &[&Operation]) -> Metric {
    let names: Vec<&str> = operations.iter().map(|of| of.name.as_str()).collect();
    let first = operations[0];
    Metric {
        work: work_index + 1,
        work_name: work.name.clone(),
        op_type: first.kind.clone(),
        sample_type: first.sample_type().to_owned(),
        op_name: names.join("+"),
        ratio: operations.iter().map(|of| of.ratio).sum(),
        config: without_secrets(first.config()),
        figures: Figures::default(),
        workers: work.workers,
        latencies: None,
    }
}

fn measured(metric: Metric, of: &KindAnalysis) -> Metric {
    let latencies = of.figures.service().histogram.as_deref().map(histogram::buckets);
    Metric { figures: figures(&of.figures), latencies, ..metric }
}

fn figures(of: &Measured) -> Figures {
    let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1_000.0);
    let response_ms = ms(of.service().mean);
    Figures {
        ops: of.stage.ops_ok,
        samples: of.stage.ended(),
        bytes: of.stage.bytes,
        response_ms,
        processing_ms: ms(of.ttfb.mean).or(response_ms),
        throughput: of.rates.map_or(0.0, |rates| rates.ops.0),
        bandwidth: of.rates.map_or(0.0, |rates| rates.bytes.0),
    }
}

fn in_interval(of: &EndedInterval) -> Figures {
    let per_second = |count: u64| per_sec(count as f64, of.length).unwrap_or_default();
    let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1_000.0);
    let response_ms = ms(of.service_time_mean);
    Figures {
        ops: of.ok,
        samples: of.ok + of.failed,
        bytes: of.bytes,
        response_ms,
        processing_ms: ms(of.ttfb_mean).or(response_ms),
        throughput: per_second(of.ok),
        bandwidth: per_second(of.bytes),
    }
}

/// Returns what each worker of a job did, where the rows of a stage are of workers.
fn workers(of: &RunStage<'_>, job: usize, spec: &JobSpec, work: &Work) -> Vec<WorkerMetric> {
    let rows = of.by_worker.iter().flat_map(|stage| &stage.rows);
    let rows = rows.filter(|row| row.worker.is_some() && row.jobs == [job]);
    let metrics = rows.flat_map(|row| {
        kinds(spec, work).into_iter().map(|(kind, operations)| {
            let of = kind.and_then(|kind| row.analysis.kind(kind));
            WorkerMetric {
                op_type: operations[0].kind.clone(),
                sample_type: operations[0].sample_type().to_owned(),
                figures: of.map(|of| figures(&of.figures)).unwrap_or_default(),
            }
        })
    });
    metrics.collect()
}
