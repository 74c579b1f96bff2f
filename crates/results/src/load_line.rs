//! The load lines that a run looked for, from its record.

use std::time::Duration;

use plimsoll_analysis::load_line::{
    CurvePoint, LoadLineAnalysis, LoadLineAsked, ProbeStage, find_load_line,
};
use plimsoll_analysis::verdict::LimitClass;
use plimsoll_model::{EndReason, JobId, Moment, StageId};
use plimsoll_record::schema::{Manifest, Stage};
use plimsoll_report::{
    LoadLineReport, Report, RunVerdict, StageReport, numbered_title, numbers_of_titles, stage_title,
};
use plimsoll_workload::plan::Search;

use crate::asked::Asked;
use crate::error::{AskedFor, ResultsError};
use crate::open::Record;
use crate::queue_theory;
use crate::standstills::disturbed;

/// A client that was busy for less than this share of its machine's time was not its own limit.
const CLIENT_BUSY: f64 = 0.5;

/// Probes up to this multiple of the line's rate show what gives way there.
const NEXT_ABOVE: f64 = 1.3;

impl Record {
    /// Returns the load lines, where the run looked for some and nothing but its whole is asked
    /// for.
    pub(crate) fn load_lines(
        &self,
        manifest: &Manifest,
        asked: &Asked,
        stages: &[(u8, StageReport)],
    ) -> Result<Vec<LoadLineReport>, ResultsError> {
        let is_whole = !asked.is_part() && asked.stage.is_none() && asked.job.is_none();
        let plan = manifest.workload.plan().filter(|_| is_whole);
        let Some(plan) = plan else { return Ok(Vec::new()) };
        let mut lines = Vec::new();
        let titles = plan.stages.iter().map(|stage| stage_title(&stage.name, stage.iteration));
        let titles: Vec<String> = titles.collect();
        let numbers = numbers_of_titles(&titles);
        for (index, stage) in plan.stages.iter().enumerate() {
            let Some(search) = &stage.search else { continue };
            let of_search = manifest.stages.iter().filter(|stage| {
                let probe = stage.probe.as_ref();
                probe.is_some_and(|probe| usize::from(probe.search_index) == index)
            });
            let ran_out = of_search.clone().next_back().and_then(ran_out);
            let probes: Vec<ProbeStage> = of_search.filter_map(probe).collect();
            let asked_again = Search { slo: asked.slo.clone(), ..search.clone() };
            let search = if asked.slo.is_empty() { search } else { &asked_again };
            let looked_for = LoadLineAsked::of(search);
            let found = find_load_line(&self.source, &looked_for, &probes)?;
            let name = numbered_title(&titles[index], numbers[index]);
            let verdict = verdict(&found, stages);
            let found = LoadLineReport::of(&name, &looked_for, &found, verdict);
            let because = ran_out.filter(|_| !found.is_refused());
            lines.push(LoadLineReport {
                no_line_because: found.no_line_because.clone().map(|of| because.unwrap_or(of)),
                search_index: index as u8,
                theory_ops_per_sec: queue_theory::line(&plan, stage, search),
                ..found
            });
        }
        Ok(lines)
    }
}

/// Refuses conditions by which nothing can be told: only load lines are told by any.
pub(crate) fn refuse_slo(report: &Report, asked: &Asked) -> Result<(), ResultsError> {
    let is_told = asked.slo.is_empty() || !report.load_lines.is_empty();
    if is_told || asked.latency_p99_max().is_some() {
        return Ok(());
    }
    let reason = "this is not a load-line search, and brown-outs are found by p99 of all \
                  operations, as p99<=20ms";
    Err(ResultsError::Asked { field: AskedFor::Slo, reason: reason.to_owned() })
}

/// Returns who was the limit of the probes that were too much, of those whose rates lie next above
/// the line, the lowest of them in any case: the client where it was that of more than half of
/// them, as what gave way there was not the store.
fn verdict(found: &LoadLineAnalysis, stages: &[(u8, StageReport)]) -> Option<RunVerdict> {
    let lowest = found.missed_min.unwrap_or(0.0);
    let most = found.line.map_or(f64::INFINITY, |line| (line.rate * NEXT_ABOVE).max(lowest));
    let is_next = |point: &&CurvePoint| {
        point.is_too_high == Some(true) && point.probe.rate.is_some_and(|rate| rate <= most)
    };
    let of_probe = |point: &CurvePoint| {
        let (_, stage) = stages.iter().find(|(index, _)| *index == point.probe.stage.0)?;
        let verdict = RunVerdict::of(stage)?;
        // What others did to the client's processors was taken out of the probe.
        let is_taken_out = verdict.class == LimitClass::ClientCpu
            && point.clean_share < 1.0
            && stage.cpu_share.is_some_and(|share| share < CLIENT_BUSY);
        Some(of_missed(verdict, is_taken_out))
    };
    let next = found.points.iter().filter(is_next);
    let verdicts: Vec<RunVerdict> = next.filter_map(of_probe).collect();
    let clients_count = verdicts.iter().filter(|of| of.is_client).count();
    let is_client = clients_count * 2 > verdicts.len();
    verdicts.into_iter().rev().find(|of| of.is_client == is_client)
}

/// Returns the verdict of a probe that was too much. All that was asked for was carried there, and
/// still a condition was missed: the time was the store's.
fn of_missed(verdict: RunVerdict, is_taken_out: bool) -> RunVerdict {
    if verdict.class != LimitClass::NotEnoughLoad && !is_taken_out {
        return verdict;
    }
    RunVerdict {
        is_client: false,
        class: LimitClass::Store,
        sentence: "the store was the limit: operations went out on time, and what was to be kept \
                   was missed"
            .to_owned(),
        experiment:
            "put the same load on it from two machines (--fleet): if the line stays, it is \
                     the store's"
                .to_owned(),
        ..verdict
    }
}

/// Returns why a search ended with a probe in which there was nothing left to do.
fn ran_out(stage: &Stage) -> Option<String> {
    (stage.ended_by == Some(EndReason::OutOfWork)).then(|| {
        format!(
            "there was nothing left to do in {}, which ended the search: give it more (`objects`)",
            stage.name
        )
    })
}

/// Returns a stage as a probe, if it was one and its end is known.
fn probe(stage: &Stage) -> Option<ProbeStage> {
    let probe = stage.probe.as_ref()?;
    let job = stage.jobs.get(usize::from(probe.job_index))?;
    let schedule = job.schedule.as_ref().filter(|_| probe.role.is_some());
    Some(ProbeStage {
        stage: StageId(stage.index),
        rate: schedule.and_then(|schedule| match &schedule.rates[..] {
            [rate] => Some(rate.peak()),
            _ => None,
        }),
        role: probe.role,
        job: JobId(probe.job_index),
        started: Moment::from_ns(stage.started_ns?),
        ended: Moment::from_ns(stage.ended_ns?),
        lasts: Duration::from_nanos(probe.lasts_ns),
        skipped_count: schedule.and_then(|schedule| schedule.skipped_count).unwrap_or(0),
        // The time is up when all that was due was issued.
        is_cut: stage.ended_by != Some(EndReason::Duration),
        disturbed: disturbed(stage),
    })
}
