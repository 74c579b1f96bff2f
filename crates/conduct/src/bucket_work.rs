//! Stages that make and remove buckets: the process that leads a run does it, one bucket after the
//! other, and no operation of it is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_driver::{Admin, DriverError, RootState, Step};
use plimsoll_engine::{JobOutcome, StageContext, StageOutcome};
use plimsoll_model::{EndReason, JobId, Moment, SharedClock};
use plimsoll_workload::plan::{self, Members, Placed, Plan, TargetIndex, Work};

use crate::consent::{buckets_of, listed};
use crate::error::refused;
use crate::{ConductError, Observer, Recording, Stop, Stopped, Store, Target};

/// Why not all of it was done.
enum NotDone {
    /// Somebody ended the stage.
    Stopped,
    /// A bucket could not be made or removed.
    Failed(ConductError),
}

impl From<ConductError> for NotDone {
    fn from(error: ConductError) -> Self {
        Self::Failed(error)
    }
}

/// What making and removing buckets needs to know of a run.
pub(crate) struct OnBuckets {
    /// The run that buckets are marked with.
    run: String,
    /// Buckets that may be changed only because the run makes them itself.
    promised: BTreeSet<(TargetIndex, String)>,
    stop: Stop,
    observer: Arc<dyn Observer>,
    /// How often a step is tried again where the store sheds load or drops connections.
    retries: u8,
}

/// What came of making and removing the buckets of a stage.
pub(crate) struct BucketsDone {
    began: Moment,
    ended: Moment,
    ended_by: EndReason,
    /// How many jobs it has.
    jobs: usize,
}

impl BucketsDone {
    /// Notes it in what came of the stage, of which no operation was a part.
    pub(crate) fn note(&self, outcome: &mut StageOutcome) {
        outcome.started = self.began;
        outcome.ended = outcome.ended.max(self.ended);
        outcome.ended_by = self.ended_by;
        let job = |job| JobOutcome {
            job: JobId(job as u8),
            ops_count: 0,
            failed_count: 0,
            measured_count: 0,
            measured_failed_count: 0,
            measured_bytes: 0,
            bytes: 0,
            measured: None,
            schedule: None,
            ended_by: self.ended_by,
            stream_hash: 0,
            server_names: None,
            changes: Vec::new(),
            unchecked: Default::default(),
        };
        outcome.jobs = (0..self.jobs).map(job).collect();
    }
}

/// A bucket that a job makes or removes.
struct Bucket<'a> {
    target: TargetIndex,
    store: &'a Store,
    name: String,
    is_made: bool,
}

/// Returns the buckets that the jobs of a stage make or remove, in order.
fn buckets<'a>(
    plan: &'a Plan,
    targets: &'a [Target],
    stage: &'a plan::Stage,
) -> impl Iterator<Item = Bucket<'a>> {
    stage.jobs.iter().flat_map(move |job| {
        let (sets, is_made) = match &job.work {
            Work::MakeBuckets(sets) => (&**sets, true),
            Work::RemoveBuckets(sets) => (&**sets, false),
            _ => (&[][..], false),
        };
        let store = targets[job.target.0].store();
        let of_set = move |set: &plan::SetIndex| match (&plan.set(*set).members, store) {
            (Members::Named(named), Some(store)) => {
                Some((named.buckets.as_ref(), store, job.target))
            }
            _ => None,
        };
        sets.iter().filter_map(of_set).flat_map(move |(pattern, store, target)| {
            buckets_of(pattern, store).map(move |name| Bucket { target, store, name, is_made })
        })
    })
}

/// Refuses names that can be those of no bucket, before anything is made.
pub(crate) fn check_names(
    placed: &Placed,
    targets: &[Target],
    clock: &SharedClock,
) -> Result<(), ConductError> {
    for stage in placed.plan.stages.iter().filter(|stage| stage.is_on_buckets()) {
        for bucket in buckets(&placed.plan, targets, stage) {
            let Some(admin) = &bucket.store.admin else { continue };
            admin(Some(&bucket.name), clock).map_err(|error| of_bucket(&bucket, error))?;
        }
    }
    Ok(())
}

impl OnBuckets {
    pub(crate) fn of(recording: &Recording, retries: u8) -> Self {
        Self {
            run: recording.manifest.run_id.clone(),
            promised: recording.promised().clone(),
            stop: recording.stop.clone(),
            observer: Arc::clone(&recording.observer),
            retries,
        }
    }

    /// Makes and removes the buckets of a stage, and returns what came of it and why not all of it
    /// was done.
    pub(crate) fn carry_out(
        &self,
        plan: &Plan,
        targets: &[Target],
        stage: &plan::Stage,
        context: &StageContext<'_>,
    ) -> (BucketsDone, Option<ConductError>) {
        let began = context.clock.now();
        let (ended_by, failed) = match self.work(plan, targets, stage, context.clock) {
            Ok(()) => (EndReason::OutOfWork, None),
            Err(NotDone::Stopped) => (EndReason::Stopped, None),
            Err(NotDone::Failed(error)) => (EndReason::Failure, Some(error)),
        };
        let (ended, jobs) = (context.clock.now(), stage.jobs.len());
        (BucketsDone { began, ended, ended_by, jobs }, failed)
    }

    fn work(
        &self,
        plan: &Plan,
        targets: &[Target],
        stage: &plan::Stage,
        clock: &SharedClock,
    ) -> Result<(), NotDone> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ConductError::event_loop)?;
        let mut created: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for bucket in buckets(plan, targets, stage) {
            // What nobody administers has no buckets.
            let Some(admin) = &bucket.store.admin else { continue };
            if self.stop.flag().is_set() {
                return Err(NotDone::Stopped);
            }
            let admin = admin(Some(&bucket.name), clock);
            let mut admin = admin.map_err(|error| of_bucket(&bucket, error))?;
            match bucket.is_made {
                true => {
                    if self.make(&bucket, &mut *admin, &runtime)? == RootState::Created {
                        let of_kind = created.entry(bucket.store.record.root_word());
                        of_kind.or_default().push(bucket.name.clone());
                    }
                }
                false => {
                    let was_there =
                        self.try_step(&runtime, &mut *admin, |it, _| it.remove_bucket());
                    was_there.map_err(|error| error.of(&bucket))?;
                }
            }
        }
        for (word, names) in created {
            let names = listed(word, names.iter().map(String::as_str));
            self.observer.note(&format!("created {names}"));
        }
        Ok(())
    }

    fn make(
        &self,
        bucket: &Bucket<'_>,
        admin: &mut dyn Admin,
        runtime: &tokio::runtime::Runtime,
    ) -> Result<RootState, NotDone> {
        let state = self.try_step(runtime, admin, |it, _| it.make_bucket());
        let state = state.map_err(|error| error.of(bucket))?;
        match state {
            RootState::Created => {
                let marked = self.try_step(runtime, admin, |it, run| it.mark(run));
                marked.map_err(|error| error.of(bucket))?;
            }
            RootState::Existed => {
                let key = (bucket.target, bucket.name.clone());
                if !self.promised.contains(&key) {
                    return Ok(state);
                }
                let told = self.try_step(runtime, admin, |it, _| it.is_marked());
                if told.map_err(|error| error.of(bucket))? != Some(true) {
                    let name = &bucket.name;
                    let word = bucket.store.record.root_word();
                    refused::<()>(format!(
                        "{word} `{name}` did not exist when the run began and exists now: \
                        somebody else made it; add --touch '{name}' to change what it holds"
                    ))?;
                }
            }
        }
        Ok(state)
    }

    /// Carries a step out, again where it may go well the next time.
    fn try_step<T>(
        &self,
        runtime: &tokio::runtime::Runtime,
        admin: &mut dyn Admin,
        mut step: impl for<'s> FnMut(&'s mut dyn Admin, &'s str) -> Step<'s, T>,
    ) -> Result<T, StepError> {
        let mut tries = 0;
        loop {
            let error = match self.stop.unless_stopped(runtime, step(admin, &self.run)) {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error,
                Err(Stopped) => return Err(StepError::Stopped),
            };
            if tries == self.retries || !error.class.is_transient() {
                return Err(StepError::Target(error));
            }
            tries += 1;
            self.stop.rest(Stop::REST_MAX);
        }
    }
}

/// Why a step was not done.
enum StepError {
    Stopped,
    Target(DriverError),
}

impl StepError {
    /// Returns why the stage ends, with the name of the bucket.
    fn of(self, bucket: &Bucket<'_>) -> NotDone {
        match self {
            Self::Stopped => NotDone::Stopped,
            Self::Target(error) => NotDone::Failed(of_bucket(bucket, ConductError::Target(error))),
        }
    }
}

/// Returns an error that names the bucket.
fn of_bucket(bucket: &Bucket<'_>, error: ConductError) -> ConductError {
    let word = bucket.store.record.root_word();
    let name = format!("`{}`", bucket.name);
    let verb = if bucket.is_made { "made" } else { "removed" };
    match error {
        ConductError::Target(error) if !error.message.contains(&name) => {
            let message = format!("{word} {name} cannot be {verb}: {}", error.message);
            ConductError::Target(DriverError { message, ..error })
        }
        other => other,
    }
}
