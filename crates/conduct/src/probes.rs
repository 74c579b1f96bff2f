//! Stages that are probes of a search for a load line: which comes next, and what is counted of it.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_analysis::load_line::{LoadLineAsked, ProbeAsked, ProbeCounter, ProbeStage, Slo};
use plimsoll_engine::{OpSink, OpSinkError, PastSink, StageOutcome};
use plimsoll_model::{EndReason, JobId, Moment, OpRate, PackedOp, ProbeRole, per_sec};
use plimsoll_record::schema;
use plimsoll_report::format;
use plimsoll_stats::{LoadLineSearch, ProbeCounts, ProbePart, Step};
use plimsoll_workload::plan::{JobPacing, Plan, Search};
use plimsoll_workload::{OpenLoop, Pacing, RateProfile};

use crate::Done;
use crate::chosen::{Chosen, ChosenProbe};

/// A closed loop tells in so long where to begin; the first probe is at this part of its rate.
const GAUGE: Duration = Duration::from_secs(2);
const GAUGE_PART: f64 = 1.0 / 10.0;
/// What a closed loop in which nothing succeeded says of where to begin, in operations per second.
const RATE_FIRST: f64 = 1.0;

impl ChosenProbe {
    /// Returns what the record says of it; `search` is the stage of the plan.
    pub(crate) fn noted(&self, search: usize) -> schema::StageProbe {
        schema::StageProbe {
            search_index: search as u8,
            role: self.role,
            job_index: self.asked.job.0,
            lasts_ns: self.asked.lasts.as_nanos() as u64,
        }
    }

    /// Returns how many operations a second succeeded.
    fn achieved(&self, counts: &ProbeCounts) -> f64 {
        let counted_for = ProbeCounter::counted_for(self.asked.lasts);
        per_sec(counts.succeeded_count() as f64, counted_for).unwrap_or_default()
    }

    /// Returns what it has come to, in words.
    pub(crate) fn told(&self, outcome: &StageOutcome) -> Option<String> {
        let counts = outcome.probe.as_ref()?;
        if self.role.is_none() {
            return Some(format!(
                "a closed loop gave {}",
                format::op_rate(OpRate(self.achieved(counts)))
            ));
        }
        let missed = |(slo, parts): (&Slo, &Vec<ProbePart>)| {
            let percent = ProbePart::share_missed(parts) * 100.0;
            format!("{} missed {slo}", format::percent(percent))
        };
        let missed: Vec<String> = self.asked.slos.iter().zip(&counts.bounds).map(missed).collect();
        let grows = if counts.is_overloaded() { "; what waited grew" } else { "" };
        let disturbed = (1.0 - counts.clean_share()) * 100.0;
        let disturbed = match disturbed >= 1.0 {
            true => format!("; {} of it excluded: client disturbed", format::percent(disturbed)),
            false => String::new(),
        };
        Some(format!("{}{grows}{disturbed}", missed.join(", ")))
    }
}

/// Counts what is recorded of a probe, and hands it on.
pub(crate) struct Counting<'a> {
    sink: &'a mut dyn OpSink,
    probe: Option<&'a ChosenProbe>,
    counter: Option<ProbeCounter>,
}

impl<'a> Counting<'a> {
    pub(crate) fn new(sink: &'a mut dyn OpSink, probe: Option<&'a ChosenProbe>) -> Self {
        Self { sink, probe, counter: None }
    }

    /// Returns what was counted of a stage that came to this.
    pub(crate) fn finish(self, outcome: &StageOutcome) -> Option<ProbeCounts> {
        let job = self.probe?.asked.job;
        Some(self.counter?.finish(skipped(outcome, job), &outcome.disturbed.spans))
    }
}

impl OpSink for Counting<'_> {
    fn begun(&mut self, at: Moment) {
        self.counter = self.probe.map(|probe| ProbeCounter::new(probe.asked.clone(), at));
        self.sink.begun(at);
    }

    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        if let Some(counter) = &mut self.counter {
            ops.iter().for_each(|op| counter.add(&op.into()));
        }
        self.sink.append(ops)
    }

    fn tick(&mut self, now: Moment) -> Result<(), OpSinkError> {
        self.sink.tick(now)
    }

    fn past(&mut self) -> Option<&mut dyn PastSink> {
        self.sink.past()
    }
}

/// Returns how many operations of a job were due and never issued.
fn skipped(outcome: &StageOutcome, job: JobId) -> u64 {
    let schedule = outcome.jobs.iter().find(|of| of.job == job).and_then(|of| of.schedule);
    schedule.map_or(0, |schedule| schedule.skipped_count)
}

/// A search while it goes on: the stage that is searched, at one rate after the other.
pub(crate) struct Searching {
    /// Which stage of the plan it is, 0-based.
    stage: usize,
    job: JobId,
    asked: LoadLineAsked,
    /// Where the ramp begins, in operations per second; `None`: a closed loop tells.
    rate_first: Option<f64>,
    search: Option<LoadLineSearch>,
    /// The probe that goes on, with its rate.
    now: Option<(f64, ChosenProbe)>,
}

impl Searching {
    /// Begins the search that a stage of the plan is.
    pub(crate) fn new(stage: usize, search: &Search) -> Self {
        Self {
            stage,
            job: JobId(search.job as u8),
            asked: LoadLineAsked::of(search),
            rate_first: search.rate.map(|rate| rate.from),
            search: None,
            now: None,
        }
    }

    /// Returns the next probe; `None` ends the search.
    pub(crate) fn next(&mut self, plan: &Plan, last: Option<&Done>) -> Option<Chosen> {
        match (self.now.take(), last) {
            (Some((rate, probe)), Some(done)) => self.learn(rate, &probe, done)?,
            _ if self.rate_first.is_none() => return Some(self.gauge()),
            _ => {}
        }
        let rate_first = self.rate_first.unwrap_or(RATE_FIRST);
        let asked = &self.asked;
        let step = self.search.get_or_insert_with(|| asked.search(rate_first)).step();
        let Step::Probe { rate, seconds, role } = step else { return None };
        // No schedule is faster.
        let rate = in_four_figures(rate).min(RateProfile::MAX);
        let profile = RateProfile::constant(rate).expect("a search asks for positive rates");
        let JobPacing::Shared(Pacing::Open(open)) =
            &plan.stages[self.stage].jobs[usize::from(self.job.0)].pacing
        else {
            unreachable!("a search is of a job that is paced by arrivals");
        };
        let pacing = JobPacing::Shared(Pacing::Open(OpenLoop { profile, ..open.clone() }));
        let name = format!("{} {rate}/s", role.name());
        Some(self.chosen((name, pacing), Duration::from_secs_f64(seconds), Some((rate, role))))
    }

    /// Returns the closed loop that tells where to begin.
    fn gauge(&mut self) -> Chosen {
        let pacing = JobPacing::Shared(Pacing::Closed);
        self.chosen(("gauge".to_owned(), pacing), GAUGE, None)
    }

    fn chosen(
        &mut self,
        (name, pacing): (String, JobPacing),
        lasts: Duration,
        open: Option<(f64, ProbeRole)>,
    ) -> Chosen {
        let asked = ProbeAsked { slos: Arc::clone(&self.asked.slos), job: self.job, lasts };
        let probe = ChosenProbe { role: open.map(|(_, role)| role), asked };
        self.now = Some((open.map_or(0.0, |(rate, _)| rate), probe.clone()));
        Chosen {
            name: Some(name),
            pacing: Some((usize::from(self.job.0), pacing)),
            probe: Some(probe),
            ..Chosen::plain(self.stage)
        }
    }

    /// Takes in what a probe has come to; `None` where nothing further can be learnt.
    fn learn(&mut self, rate: f64, probe: &ChosenProbe, done: &Done) -> Option<()> {
        let counts = done.outcome.probe.as_ref()?;
        if done.outcome.ended_by != EndReason::Duration {
            return None;
        }
        if probe.role.is_none() {
            self.rate_first =
                Some(in_four_figures(probe.achieved(counts) * GAUGE_PART).max(RATE_FIRST));
            return Some(());
        }
        let stage = ProbeStage {
            stage: done.stage,
            rate: Some(rate),
            role: probe.role,
            job: probe.asked.job,
            started: done.outcome.started,
            ended: done.outcome.ended,
            lasts: probe.asked.lasts,
            skipped_count: skipped(&done.outcome, probe.asked.job),
            is_cut: false,
            // What was counted is without what was due then.
            disturbed: Vec::new(),
        };
        self.search.as_mut()?.add(stage.taken(counts)?);
        Some(())
    }
}

/// Rounds a rate, so that its name is all of it.
fn in_four_figures(rate: f64) -> f64 {
    let digits = rate.max(f64::MIN_POSITIVE).log10().floor() as i32;
    let unit = 10f64.powi(3 - digits);
    (rate * unit).round() / unit
}
