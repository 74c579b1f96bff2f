//! The store of a run outside of what is measured: its bucket is made or surveyed, marked while the
//! run is under way, and left as it was found.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_driver::{Admin, DriverError, RootState};
use plimsoll_driver_s3::{Feature, S3Admin};
use plimsoll_model::{ErrorClass, RunId, WallTime};
use plimsoll_record::schema::{Cleanup, CleanupState};
use plimsoll_report::format;
use plimsoll_workload::{ActivitySpec, ExistingObject, KeyLayout, Workload, WorkloadSpec};

use crate::error::refused;
use crate::lease::{self, BucketLease};
use crate::{Cleaning, ConductError, Recording, Stop, Stopped};

/// How long is waited before cleaning is tried again.
const SWEEP_PAUSE: Duration = Duration::from_millis(50);

/// Administration of a run's store. A request to stop gives each step of it up.
pub struct StoreAdmin {
    runtime: tokio::runtime::Runtime,
    /// Speaks to the store.
    pub admin: S3Admin,
    stop: Stop,
    /// When the run began.
    now: WallTime,
    /// What everything that the run writes lies below, once it may write.
    base: Option<String>,
    /// Marks the run as under way, where it writes into a bucket that others see.
    lease: Option<BucketLease>,
    /// Whether what the run wrote stays.
    pub keeps_data: bool,
    /// How often cleaning is tried while the store sheds load or drops connections.
    pub tries_max: u32,
    /// How many objects were removed; unknown when a try failed that may have removed some.
    removed: Option<u64>,
}

/// Why not everything was removed.
enum NotSwept {
    Failed(DriverError),
    Stopped,
}

/// Carries out a step of administration.
macro_rules! step {
    ($admin:ident . $call:ident ( $($given:expr),* )) => {
        heed(&$admin.stop, &$admin.runtime, $admin.admin.$call($($given),*))
    };
}

impl StoreAdmin {
    /// Returns the administration of a run that began at `now`.
    pub fn new(admin: S3Admin, stop: Stop, now: WallTime) -> Result<Self, ConductError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ConductError::event_loop)?;
        let (base, lease) = (None, None);
        let (keeps_data, tries_max, removed) = (false, 1, Some(0));
        Ok(Self { runtime, admin, stop, now, base, lease, keeps_data, tries_max, removed })
    }

    /// Carries a step out, unless a request to stop gives it up.
    pub fn heed<T>(
        &self,
        step: impl Future<Output = Result<T, DriverError>>,
    ) -> Result<T, ConductError> {
        heed(&self.stop, &self.runtime, step)
    }

    /// Takes note that the run writes below `base`, and holds the mark that says so to others.
    pub fn owns(&mut self, base: &str, lease: Option<BucketLease>) {
        (self.base, self.lease) = (Some(base.to_owned()), lease);
    }

    /// Makes sure that the bucket is there, or finds in it what the workload wants to find, and
    /// lays the workload out.
    pub fn prepare(
        &mut self,
        spec: &WorkloadSpec,
        id: &RunId,
        bucket: &str,
    ) -> Result<Workload, ConductError> {
        let Some(existing) = &spec.objects.existing else {
            self.ensure_root(spec, id)?;
            return Ok(spec.validate(id.as_str(), None)?);
        };
        spec.validate(id.as_str(), Some(Vec::new()))?;
        // A bucket that is not there is not made: nothing would be in it.
        let found = step!(self.survey(&spec.keys.prefix, existing.limit, existing.recursive))?;
        if existing.destroys {
            self.refuse_living(found.iter().map(|found| &*found.key))?;
        }
        // An empty object has nothing to read.
        let objects: Vec<ExistingObject> = found
            .into_iter()
            .filter(|found| found.size > 0)
            .map(|found| ExistingObject { key: found.key, size: found.size })
            .collect();
        if objects.is_empty() {
            let prefix = &spec.keys.prefix;
            return refused(format!(
                "--list-existing: no object below `{prefix}` in bucket `{bucket}` (--prefix)"
            ));
        }
        Ok(spec.validate(id.as_str(), Some(objects))?)
    }

    /// Makes sure that the bucket is there and can do what the workload asks of it.
    fn ensure_root(&mut self, spec: &WorkloadSpec, id: &RunId) -> Result<(), ConductError> {
        let (activity, keys) = (&spec.measure.activity, &spec.keys);
        let base = KeyLayout::for_run(&keys.prefix, id.as_str(), keys.per_worker).base;
        let command = spec.name.replacen('-', " ", 1);
        let locks = matches!(activity, ActivitySpec::Retention { .. });
        let root = match locks {
            true => step!(self.ensure_root_with_lock())?,
            false => step!(self.ensure_root())?,
        };
        let keeps_versions = *activity == ActivitySpec::Versioned || spec.objects.versions > 1;
        if keeps_versions || locks {
            if !step!(self.probe(Feature::Versioning, &base))? {
                return refused(format!(
                    "{command}: the store keeps no versions, so there is nothing to measure"
                ));
            }
            if root == RootState::Existed && !step!(self.keeps_versions())? {
                // Once switched on it can never be undone, and others use the bucket.
                return refused(
                    "the bucket keeps no versions; name another --bucket, to be made with that, or \
                     switch them on yourself",
                );
            }
            step!(self.ensure_versioning())?;
        }
        let (feature, what) = match activity {
            ActivitySpec::Zip => (Feature::Zip, "does not read files out of zip archives"),
            ActivitySpec::Snowball { .. } => (Feature::Snowball, "does not take archives apart"),
            ActivitySpec::Fanout { .. } => {
                (Feature::Fanout, "does not write one content under several names")
            }
            ActivitySpec::Append { .. } => (Feature::Append, "does not add to objects"),
            _ => return Ok(()),
        };
        if !step!(self.probe(feature, &base))? {
            return refused(format!("{command}: the store {what}, so there is nothing to measure"));
        }
        Ok(())
    }

    /// Refuses to remove objects of a run that is under way.
    fn refuse_living<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k str>,
    ) -> Result<(), ConductError> {
        let runs: BTreeSet<&str> = keys.filter_map(lease::run_of).collect();
        for base in runs {
            let marked = lease::is_marked(&mut self.admin, base, self.now);
            if heed(&self.stop, &self.runtime, marked)? {
                return refused(format!(
                    "the run whose objects lie below `{base}/` is under way; leave it its objects"
                ));
            }
        }
        Ok(())
    }

    /// Removes what the run wrote so far.
    pub fn sweep(&mut self) -> Result<(), ConductError> {
        let Some(base) = self.base.clone() else { return Ok(()) };
        self.sweep_below(&base).map(|_| ()).map_err(|why| match why {
            NotSwept::Failed(error) => ConductError::Target(error),
            NotSwept::Stopped => ConductError::Stopped,
        })
    }

    /// Removes everything below `base`. A store that was just driven hard may get several tries.
    fn sweep_below(&mut self, base: &str) -> Result<(), NotSwept> {
        let mut tries = 1;
        loop {
            let sweep = self.admin.sweep(base);
            match self.stop.unless_stopped(&self.runtime, sweep) {
                Ok(Ok(removed)) => {
                    // How much a try removed before it failed is not told.
                    self.removed = self.removed.filter(|_| tries == 1).map(|sum| sum + removed);
                    return Ok(());
                }
                Ok(Err(error)) => {
                    let is_final = tries >= self.tries_max
                        || error.class == ErrorClass::Timeout
                        || !error.class.is_transient();
                    if is_final {
                        return Err(NotSwept::Failed(error));
                    }
                    self.stop.rest(SWEEP_PAUSE);
                }
                Err(Stopped) => return Err(NotSwept::Stopped),
            }
            tries += 1;
        }
    }

    /// Removes what the run wrote, and returns why not all of it is gone.
    fn clean_below(&mut self, base: &str, recording: &Recording) -> Option<(CleanupState, String)> {
        self.stop.begin_step();
        recording.observer.note("cleaning up; Ctrl-C leaves it to `plimsoll clean`");
        let removed_so_far = self.admin.removed_count();
        match self.sweep_below(base) {
            Ok(()) => {
                if let Some(removed) = self.removed {
                    recording.observer.note(&format!("removed {} objects", format::count(removed)));
                }
                None
            }
            Err(NotSwept::Failed(error)) => Some((CleanupState::Failed, error.to_string())),
            Err(NotSwept::Stopped) => {
                let so_far = format::count(removed_so_far.load(Ordering::Relaxed));
                Some((CleanupState::Pending, format!("stopped; {so_far} are")))
            }
        }
    }
}

impl Cleaning for StoreAdmin {
    fn clean(&mut self, recording: &Recording) -> (Cleanup, bool) {
        let started = recording.now();
        let mut left = None;
        let base = self.base.clone();
        let state = match &base {
            None => CleanupState::NotNeeded,
            Some(_) if self.keeps_data => CleanupState::Kept,
            Some(base) => {
                left = self.clean_below(base, recording);
                left.as_ref().map_or(CleanupState::Complete, |(state, _)| *state)
            }
        };
        if let (Some((_, why)), Some(base)) = (&left, &base) {
            let path = recording.directory.path().display();
            recording.observer.warn(&format!(
                "objects below `{base}` could not all be removed ({why}); `plimsoll clean {path}` \
                 finishes the job"
            ));
        }
        let removed = self.removed.filter(|_| state == CleanupState::Complete);
        if let (Some(_), None, Some(base)) = (self.lease.take(), &left, &base) {
            // What cannot be removed ends by itself.
            let _ = self.sweep_below(&lease::marks_of(base));
        }
        let took = recording.now().since(started).as_nanos() as u64;
        let took_ns = (state == CleanupState::Complete).then_some(took);
        (Cleanup { state, objects_removed_count: removed, took_ns }, left.is_none())
    }
}

/// Carries a step of administration out, unless a request to stop gives it up.
fn heed<T>(
    stop: &Stop,
    runtime: &tokio::runtime::Runtime,
    step: impl Future<Output = Result<T, DriverError>>,
) -> Result<T, ConductError> {
    match stop.unless_stopped(runtime, step) {
        Ok(done) => done.map_err(ConductError::Target),
        Err(Stopped) => Err(ConductError::StoppedBeforeMeasuring),
    }
}
