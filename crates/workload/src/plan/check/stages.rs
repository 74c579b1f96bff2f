//! Checks stages and expands them: repeats and steps become stages of their own.

use std::num::NonZeroU32;
use std::time::Duration;

use plimsoll_model::{ObjectId, StageKind};

use super::{Checked, Context, JOBS_MAX, STAGES_MAX, at_least_one, is_label};
use crate::plan::checked::{Job, Search, Stage};
use crate::plan::path::FieldPath;
use crate::plan::rules::UntilSpec;
use crate::plan::spec::{
    JobSpec, OpenSpec, PacingSpec, RateSpec, RepeatStage, SearchStage, StageSpec, Step, WorkSpec,
    WorkStage,
};
use crate::plan::units::{Rate, RateRange};
use crate::{MAX_IN_FLIGHT_MAX, Metric, RateProfile, StopRule};
use plimsoll_model::Ability;

/// The most operations on objects that a stage has under way; each needs a session of its own.
const SESSIONS_MAX: u64 = 100_000;

/// Where a stage stands among repetitions.
#[derive(Clone, Copy, Default)]
struct Round {
    /// Which repetition it is, 0-based.
    iteration: u32,
    /// Whether there are any.
    repeats: bool,
}

impl Context<'_> {
    /// Returns all stages in order.
    pub(super) fn stages(&self, path: &FieldPath) -> Checked<Vec<Stage>> {
        if self.file.stages.is_empty() {
            return Err(path.refuse("is empty; a workload needs a stage"));
        }
        let mut stages = Vec::new();
        self.add(path, &self.file.stages, Round::default(), &mut stages)?;
        Ok(stages)
    }

    fn add(
        &self,
        path: &FieldPath,
        specs: &[StageSpec],
        round: Round,
        stages: &mut Vec<Stage>,
    ) -> Checked<()> {
        for (index, spec) in specs.iter().enumerate() {
            let at = path.index(index);
            match spec {
                StageSpec::Jobs(stage) => self.work_stage(&at, index, stage, round, stages)?,
                StageSpec::Search(search) => {
                    stages.push(self.search_stage(&at, index, search, round)?);
                }
                StageSpec::Repeat(repeat) => self.repeat_stage(&at, repeat, round, stages)?,
            }
            if stages.len() > STAGES_MAX {
                let reason = format!("more than {STAGES_MAX} stages in all, repetitions included");
                return Err(at.refuse(reason));
            }
        }
        Ok(())
    }

    fn repeat_stage(
        &self,
        path: &FieldPath,
        RepeatStage { repeat }: &RepeatStage,
        round: Round,
        stages: &mut Vec<Stage>,
    ) -> Checked<()> {
        let at = path.field("repeat");
        super::in_range(&at.field("times"), repeat.times.into(), STAGES_MAX as u64)?;
        if repeat.stages.is_empty() {
            return Err(at.field("stages").refuse("is empty; there is nothing to repeat"));
        }
        for time in 0..repeat.times {
            let iteration = round.iteration.saturating_mul(repeat.times).saturating_add(time);
            let round = Round { iteration, repeats: true };
            self.add(&at.field("stages"), &repeat.stages, round, stages)?;
        }
        Ok(())
    }

    fn work_stage(
        &self,
        path: &FieldPath,
        index: usize,
        spec: &WorkStage,
        round: Round,
        stages: &mut Vec<Stage>,
    ) -> Checked<()> {
        let steps = spec.jobs.iter().enumerate().find_map(|(job, spec)| match &spec.pacing {
            PacingSpec::Open(OpenSpec { rate: RateSpec::Steps(steps), .. }) => Some((job, steps)),
            _ => None,
        });
        let Some((job, steps)) = steps else {
            stages.push(self.stage(path, index, spec, round)?);
            return Ok(());
        };
        let at = path.field("jobs").index(job).field("pacing.open.steps");
        if spec.jobs.len() > 1 {
            return Err(at.refuse("only a stage of one job can have steps"));
        }
        if spec.duration.is_some() || spec.jobs[0].duration.is_some() {
            let field = if spec.duration.is_some() {
                path.field("duration")
            } else {
                path.field("jobs").index(job).field("duration")
            };
            return Err(field.refuse("the steps say how long; leave it out"));
        }
        if steps.is_empty() || steps.len() > STAGES_MAX {
            let count = steps.len();
            return Err(at.refuse(format!("{count} steps are out of range: 1 to {STAGES_MAX}")));
        }
        for (number, Step { rate: Rate(rate), time }) in steps.iter().enumerate() {
            if time.0.is_zero() {
                return Err(at.index(number).refuse("must last longer than 0s"));
            }
            let mut step = spec.clone();
            step.duration = Some(*time);
            if let PacingSpec::Open(open) = &mut step.jobs[0].pacing {
                open.rate = RateSpec::Rate(constant(&at.index(number), *rate)?);
            }
            let mut stage = self.stage(path, index, &step, round)?;
            stage.step = Some(number as u32);
            stages.push(stage);
        }
        Ok(())
    }

    fn stage(
        &self,
        path: &FieldPath,
        index: usize,
        spec: &WorkStage,
        round: Round,
    ) -> Checked<Stage> {
        let name = stage_name(path, index, spec.name.as_deref(), spec.prepares)?;
        let duration = positive(&path.field("duration"), spec.duration.map(|time| time.0))?;
        if let Some(ops) = spec.ops {
            at_least_one(&path.field("ops"), ops)?;
        }
        if spec.jobs.is_empty() && duration.is_none() {
            let reason = "is empty; a stage without jobs is a pause and needs a duration";
            return Err(path.field("jobs").refuse(reason));
        }
        if spec.jobs.len() > JOBS_MAX {
            let count = spec.jobs.len();
            let reason = format!("{count} jobs are out of range: 1 to {JOBS_MAX} in one stage");
            return Err(path.field("jobs").refuse(reason));
        }
        let mut jobs: Vec<Job> = Vec::with_capacity(spec.jobs.len());
        let (mut workers, mut sessions) = (0, 0);
        for (number, job) in spec.jobs.iter().enumerate() {
            let at = path.field("jobs").index(number);
            let only = (spec.jobs.len() == 1).then_some(&*name);
            let label = job_name(&at.field("name"), job.name.as_deref().or(only))?;
            let bounded = duration.is_some() || spec.ops.is_some();
            let mut job = self.job(&at, label, job, workers as u32, bounded)?;
            if spec.drop_caches {
                self.drops_caches(path, &mut job)?;
            }
            workers += u64::from(job.workers.get());
            if workers > u64::from(ObjectId::OWNER_MAX) {
                let most = ObjectId::OWNER_MAX;
                let reason = format!("{workers} in one stage are out of range: 1 to {most}");
                return Err(at.field("workers").refuse(reason));
            }
            sessions += job.sessions();
            if sessions > SESSIONS_MAX {
                let reason =
                    format!("{sessions} operations in flight in one stage, {SESSIONS_MAX} at most");
                return Err(at.field("workers").refuse(reason));
            }
            jobs.push(job);
        }
        check_alone(&jobs)?;
        if spec.iteration > 0 && round.repeats {
            let reason = "has no effect within a repeat, which counts by itself; leave it out";
            return Err(path.field("iteration").refuse(reason));
        }
        let stop_rules = stop_rules(&path.field("until"), &spec.until, &jobs)?;
        Ok(Stage {
            name,
            kind: kind_of(spec),
            if_offered: spec.if_offered,
            iteration: round.iteration.max(spec.iteration),
            step: None,
            duration,
            ops_max: spec.ops,
            stop_rules,
            drop_caches: spec.drop_caches,
            end_on_failure: spec.end_on_failure,
            search: None,
            jobs,
            weights: None,
            path: path.clone(),
        })
    }

    /// Has a job need what drops caches before its stage.
    fn drops_caches(&self, path: &FieldPath, job: &mut Job) -> Checked<()> {
        let target = &self.targets[job.target.0];
        job.needs.push(Ability::DropCaches);
        match &target.spec {
            Some(spec) if !spec.offers(Ability::DropCaches) => {
                let (name, kind) = (&target.name, spec.kind());
                let reason =
                    format!("target `{name}` is of kind {kind}, whose caches cannot be dropped");
                Err(path.field("drop_caches").refuse(reason))
            }
            _ => Ok(()),
        }
    }

    fn search_stage(
        &self,
        path: &FieldPath,
        index: usize,
        SearchStage { name, search }: &SearchStage,
        round: Round,
    ) -> Checked<Stage> {
        let at = path.field("search");
        let inner = at.field("stage");
        if search.slo.is_empty() {
            return Err(at.field("slo").refuse("is empty; a search needs a condition"));
        }
        if !(search.precision.0 > 0.0 && search.precision.0 <= 100.0) {
            let reason = format!("{} is out of range: above 0% to 100%", search.precision);
            return Err(at.field("precision").refuse(reason));
        }
        let job = match &search.job {
            Some(name) => search.stage.jobs.iter().position(|job| job.name.as_ref() == Some(name)),
            None => (search.stage.jobs.len() == 1).then_some(0),
        };
        let Some(job) = job else {
            let reason = match &search.job {
                Some(name) => format!("there is no job `{name}` in the stage"),
                None => "is missing; the stage has not exactly one job".to_owned(),
            };
            return Err(at.field("job").refuse(reason));
        };
        check_searched(&inner.field("jobs").index(job), &search.stage.jobs[job])?;
        let says = [
            ("duration", search.stage.duration.is_some()),
            ("ops", search.stage.ops.is_some()),
            ("until", !search.stage.until.is_empty()),
        ];
        if let Some((field, _)) = says.into_iter().find(|(_, is_given)| *is_given) {
            let reason = "the search says how long each probe lasts; leave it out";
            return Err(inner.field(field).refuse(reason));
        }
        if search.stage.prepares {
            return Err(inner.field("prepares").refuse("a search is a result; leave it out"));
        }
        let budget = positive(&at.field("budget"), Some(search.budget.0))?.unwrap_or_default();
        let max_in_flight = in_flight(&at.field("max_in_flight"), search.max_in_flight)?;
        let mut spec = search.stage.clone();
        spec.duration = Some(search.budget);
        let rates = search.rate.unwrap_or(RateRange { from: 1.0, to: 1.0 });
        let lowest = constant(&at.field("rate"), rates.from)?;
        constant(&at.field("rate"), rates.to)?;
        let mut open = OpenSpec::of(RateSpec::Rate(lowest));
        (open.arrivals, open.max_in_flight) = (search.arrivals, search.max_in_flight);
        spec.jobs[job].pacing = PacingSpec::Open(open);
        spec.name = spec.name.or_else(|| name.clone());
        let mut stage = self.stage(&inner, index, &spec, round)?;
        stage.path = path.clone();
        stage.search = Some(Search {
            job,
            rate: search.rate,
            slo: search.slo.clone(),
            precision_percent: search.precision.0,
            budget,
            arrivals: search.arrivals.0,
            max_in_flight,
        });
        Ok(stage)
    }
}

/// Refuses of the job that a search gives its rate what would have a say in when its operations
/// start, or how many there are.
fn check_searched(at: &FieldPath, job: &JobSpec) -> Checked<()> {
    if let WorkSpec::Replay(_) = job.work {
        let reason = "a trace says when its operations start, so there is no rate to search for; \
        make a workload of it (`plimsoll fit`) and search with that";
        return Err(at.field("work").field("replay").refuse(reason));
    }
    if job.pacing != PacingSpec::Closed {
        let reason = "the search says the rate of this job; leave it out";
        return Err(at.field("pacing").refuse(reason));
    }
    let says = [
        ("duration", job.duration.is_some()),
        ("ops", job.ops.is_some()),
        ("bytes", job.bytes.is_some()),
        ("ramp", !job.ramp.0.is_zero()),
        ("ramp_down", !job.ramp_down.0.is_zero()),
        ("start_delay", !job.start_delay.is_zero()),
        ("think", job.think.is_some()),
    ];
    match says.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => {
            let reason = "the search says when operations of this job start; leave it out";
            Err(at.field(field).refuse(reason))
        }
        None => Ok(()),
    }
}

/// Refuses jobs that make or remove buckets beside others.
fn check_alone(jobs: &[Job]) -> Checked<()> {
    let on_buckets = jobs.iter().find(|job| job.work.is_on_buckets());
    match on_buckets.filter(|_| jobs.iter().any(|job| !job.work.is_on_buckets())) {
        None => Ok(()),
        Some(job) => Err(job
            .path
            .field("work")
            .refuse("makes or removes buckets beside other work; it needs its own stage")),
    }
}

/// Refuses to go on after a duration that there is none of.
fn check_ramp_down(job: &Job, of_stage: Option<Duration>) -> Checked<()> {
    match job.ramp_down.is_zero() || job.duration.or(of_stage).is_some() {
        true => Ok(()),
        false => {
            let reason = "goes on after a duration, and neither the job nor its stage has one";
            Err(job.path.field("ramp_down").refuse(reason))
        }
    }
}

/// Refuses a run without a result, and jobs of one stage whose results could not be told apart.
pub(super) fn check_results(path: &FieldPath, stages: &[Stage]) -> Checked<()> {
    for stage in stages {
        for (index, job) in stage.jobs.iter().enumerate() {
            check_ramp_down(job, stage.duration)?;
            let is_alike = |other: &Job| {
                other.name == job.name && (other.group.is_none() || other.group != job.group)
            };
            if stage.jobs[..index].iter().any(is_alike) {
                let reason = format!(
                    "`{}` is the name of another job of the stage; jobs of one name need one \
                     `group`",
                    job.name
                );
                return Err(job.path.field("name").refuse(reason));
            }
        }
    }
    match stages.iter().any(|stage| stage.kind == StageKind::Measure) {
        true => Ok(()),
        false => Err(path.refuse(
            "none of them has a result, as each only prepares or is a pause; a workload needs one \
             that measures",
        )),
    }
}

/// Returns what a stage is: of a pause there is no result.
fn kind_of(spec: &WorkStage) -> StageKind {
    match spec.prepares || spec.jobs.is_empty() {
        true => StageKind::Prepare,
        false => StageKind::Measure,
    }
}

/// Returns what a job is called.
fn job_name(at: &FieldPath, name: Option<&str>) -> Checked<String> {
    let Some(name) = name else {
        return Err(at.refuse("is missing; of several jobs in one stage each needs one"));
    };
    is_label(at, name)?;
    Ok(name.to_owned())
}

fn stage_name(
    path: &FieldPath,
    index: usize,
    name: Option<&str>,
    prepares: bool,
) -> Checked<String> {
    match (name, prepares) {
        (Some(name), _) => {
            is_label(&path.field("name"), name)?;
            Ok(name.to_owned())
        }
        (None, true) => Ok("prepare".to_owned()),
        (None, false) => Ok(format!("stage-{}", index + 1)),
    }
}

/// Refuses a time of nothing.
pub(super) fn positive(path: &FieldPath, time: Option<Duration>) -> Checked<Option<Duration>> {
    match time {
        Some(Duration::ZERO) => Err(path.refuse("must be longer than 0s")),
        time => Ok(time),
    }
}

/// Returns the rate as one that does not change.
fn constant(path: &FieldPath, rate: f64) -> Checked<RateProfile> {
    RateProfile::constant(rate).map_err(|reason| path.refuse(reason))
}

pub(super) fn in_flight(path: &FieldPath, value: u32) -> Checked<NonZeroU32> {
    match NonZeroU32::new(value).filter(|value| value.get() <= MAX_IN_FLIGHT_MAX) {
        Some(value) => Ok(value),
        None => Err(path.refuse(format!("{value} is out of range: 1 to {MAX_IN_FLIGHT_MAX}"))),
    }
}

fn stop_rules(path: &FieldPath, until: &[UntilSpec], jobs: &[Job]) -> Checked<Vec<StopRule>> {
    let moves_bytes = jobs.iter().any(|job| job.work.moves_bytes());
    let (mut steady, mut known) = (None, Vec::new());
    for (index, rule) in until.iter().enumerate() {
        let at = path.index(index);
        match *rule {
            UntilSpec::Steady { window, percent } if steady.is_none() => {
                steady = Some(StopRule::Steady { window, percent });
            }
            UntilSpec::Steady { .. } => return Err(at.refuse("`steady` appears twice")),
            UntilSpec::Known(rule) => {
                if rule.metric == Metric::Throughput && !moves_bytes {
                    let reason = format!("`{rule}`: no content is moved; ask for ci(rate)");
                    return Err(at.refuse(reason));
                }
                known.push(rule);
            }
        }
    }
    let known = (!known.is_empty()).then_some(StopRule::Until(known));
    Ok(steady.into_iter().chain(known).collect())
}
