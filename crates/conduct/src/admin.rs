//! The stores of a run outside of what is measured: buckets are made ready or surveyed, marked
//! while the run is still going on, and left as they were found.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_driver::{Admin, CreatedRoot, Driver, DriverError, Lack, LackReason};
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_model::{Ability, ErrorClass, SharedClock};
use plimsoll_record::schema::{Cleanup, CleanupState};
use plimsoll_report::format;
use plimsoll_workload::ExistingObject;
use plimsoll_workload::plan::{
    Change, Members, Placed, Plan, Set, SetIndex, TargetIndex, title_of,
};

use crate::lease::{self, BucketLease, Marked, Runner};
use crate::{
    AdminOf, Cleaning, ConductError, Observer, Recording, RunTime, Stop, Stopped, Target, input,
};

/// How long is waited before cleaning is tried again.
const SWEEP_PAUSE: Duration = Duration::from_millis(50);

/// How often a bucket is created that another run removes meanwhile.
const CREATIONS_MAX: u32 = 3;

/// What a scripted store does about what it was not made for; goes on after `the store`.
const UNKNOWN: &str = "in virtual time does not know it";

/// Administration of the stores of a run. A request to stop gives each step of it up.
pub struct RunAdmin {
    runtime: tokio::runtime::Runtime,
    stop: Stop,
    clock: SharedClock,
    /// What the run writes below, once it may write.
    roots: Vec<Root>,
    /// Marks the run as under way, where it writes into buckets that others see.
    lease: Option<BucketLease>,
    /// Who carries the run out.
    runner: Runner,
    /// Whether what the run wrote stays.
    pub keeps_data: bool,
    /// How often cleaning is tried while a store sheds load or drops connections.
    pub tries_max: u32,
    /// How many objects were removed; unknown when a try failed that may have removed some.
    removed: Option<u64>,
}

/// A bucket that the run writes into.
struct Root {
    admin: Box<dyn Admin>,
    /// What everything that the run writes there lies below.
    bases: Vec<String>,
    /// As sentences have it.
    name: String,
    /// Whether there are marks of the run.
    is_marked: bool,
}

/// The result of preparing a bucket.
enum RootReady {
    /// It lacks a required ability.
    Lacks(Lack),
    /// It can be used.
    Ready {
        /// The prefixes of the run's marks, each with the mark that was written.
        marks: Vec<(String, Option<String>)>,
        /// The optional abilities that it lacks.
        not_offered: Vec<Lack>,
    },
}

/// Why not everything was removed.
enum NotSwept {
    Failed(DriverError),
    Stopped,
}

impl RunAdmin {
    /// Returns the administration of a run with that time.
    pub fn new(stop: Stop, runner: Runner, time: &RunTime) -> Result<Self, ConductError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ConductError::event_loop)?;
        Ok(Self {
            runtime,
            stop,
            clock: Arc::clone(&time.clock),
            roots: Vec::new(),
            lease: None,
            runner,
            keeps_data: false,
            tries_max: 1,
            removed: Some(0),
        })
    }

    /// Carries a step out, unless a request to stop gives it up.
    fn heed<T>(
        &self,
        step: impl Future<Output = Result<T, DriverError>>,
    ) -> Result<T, ConductError> {
        match self.stop.unless_stopped(&self.runtime, step) {
            Ok(done) => done.map_err(ConductError::Target),
            Err(Stopped) => Err(ConductError::StoppedBeforeMeasuring),
        }
    }

    /// Finds what is there of each set that consists of objects that were there before. A bucket
    /// that is not there is not made: nothing would be in it.
    pub fn survey(
        &mut self,
        plan: &Plan,
        targets: &[Target],
        allowed: &AllowedDirs,
    ) -> Result<BTreeMap<SetIndex, Arc<[ExistingObject]>>, ConductError> {
        let mut found = BTreeMap::new();
        for (index, set) in plan.sets.iter().enumerate() {
            let Members::Existing(of) = &set.members else { continue };
            let Some(store) = targets[set.target.0].store() else { continue };
            let Some(admin) = &store.admin else { continue };
            let mut admin = admin(None, &self.clock)?;
            if let Some(list) = &of.list {
                let listed = listed(&*admin, Path::new(list), of.limit, allowed);
                let objects = listed.map_err(|why| set.path.field("existing.list").refuse(why))?;
                found.insert(SetIndex(index), objects);
                continue;
            }
            let listed = self.heed(admin.survey(&of.prefix, of.limit, of.recursive))?;
            let removes = |consent: &&plimsoll_workload::plan::Consent| {
                consent.set == SetIndex(index) && consent.change == Change::Removes
            };
            if plan.consents.iter().any(|consent| removes(&consent)) {
                self.refuse_living(&mut *admin, listed.iter().map(|found| &*found.key))?;
            }
            // An empty object has nothing to read.
            let objects: Arc<[ExistingObject]> = listed
                .into_iter()
                .filter(|found| found.size > 0)
                .map(|found| ExistingObject { key: found.key, size: Some(found.size) })
                .collect();
            if objects.is_empty() {
                let (prefix, root) = (of.prefix.clone(), store.root());
                return Err(ConductError::NothingFound { prefix, root });
            }
            found.insert(SetIndex(index), objects);
        }
        Ok(found)
    }

    /// Tells whether a run of plimsoll made a bucket; `None`: it is not there.
    pub(crate) fn is_marked(
        &self,
        admin: Option<&AdminOf>,
        bucket: &str,
    ) -> Result<Option<bool>, ConductError> {
        let Some(admin) = admin else { return Ok(None) };
        let mut admin = admin(Some(bucket), &self.clock)?;
        self.heed(admin.is_marked())
    }

    /// Refuses to remove objects of a run that is under way.
    fn refuse_living<'k>(
        &self,
        admin: &mut dyn Admin,
        keys: impl Iterator<Item = &'k str>,
    ) -> Result<(), ConductError> {
        let runs: BTreeSet<&str> = keys.filter_map(lease::run_of).collect();
        for base in runs {
            if self.heed(lease::is_marked(admin, base))? {
                return crate::error::refused(format!(
                    "the run whose objects lie below `{base}/` is still going on; leave its objects alone"
                ));
            }
        }
        Ok(())
    }

    /// Makes sure that each bucket that the run writes into is there and can do what the workload
    /// asks of it, and marks the run as under way there. Returns what is not offered of what only
    /// stages need that may be left out, with the target.
    pub fn make_ready(
        &mut self,
        placed: &Placed,
        targets: &[Target],
        time: &RunTime,
        observer: &Arc<dyn Observer>,
    ) -> Result<Vec<(TargetIndex, Lack)>, ConductError> {
        let (mut marked, mut lacks) = (Vec::new(), Vec::new());
        for (index, target) in targets.iter().enumerate() {
            let target_index = TargetIndex(index);
            let Some(store) = target.store() else { continue };
            let Some(admin_of) = &store.admin else {
                if let Some(offers) = store.driver.offers() {
                    let wishes = placed.plan.wishes(target_index).into_iter();
                    let unknown = wishes.filter(|wish| !offers.contains(wish));
                    let lack = |need| Lack { need, why: LackReason::OfStore(UNKNOWN) };
                    lacks.extend(unknown.map(|need| (target_index, lack(need))));
                }
                continue;
            };
            let bases = placed.bases(target_index);
            let needs = placed.plan.needs(target_index);
            let needs: Vec<_> = needs.iter().map(|(need, _)| *need).collect();
            let wishes = placed.plan.wishes(target_index);
            for bucket in placed.own_buckets(target_index) {
                let admin = admin_of(bucket.as_deref(), &self.clock)?;
                let name = store.record.root_name(bucket.as_deref().unwrap_or(&store.bucket));
                let name = format!("{} `{name}`", store.record.root_word());
                let mut root = Root { admin, bases: bases.clone(), name, is_marked: false };
                let marks_at = store.is_shared.then_some(time);
                let ready = self.make_root_ready(&mut root, (&needs, &wishes), marks_at);
                if !store.record.embedded && root.admin.has_created() {
                    observer.note(&format!("created {}", root.name));
                }
                self.roots.push(root);
                match ready? {
                    RootReady::Lacks(lack) => {
                        let what = title_of(&placed.plan.name);
                        return Err(ConductError::Lacks { what, lack });
                    }
                    RootReady::Ready { marks, not_offered } => {
                        lacks.extend(not_offered.into_iter().map(|lack| (target_index, lack)));
                        if store.is_shared {
                            let admin = Arc::clone(admin_of);
                            marked.push(Marked { admin, bucket, marks });
                        }
                    }
                }
            }
        }
        if !marked.is_empty() {
            self.lease = Some(BucketLease::hold(marked, self.runner, time, Arc::clone(observer))?);
        }
        Ok(lacks)
    }

    /// Prepares one bucket: checks the abilities that the workload requires and those that are
    /// optional. Writes the run's marks if `marks_at` is given.
    fn make_root_ready(
        &self,
        root: &mut Root,
        (needs, wishes): (&[Ability], &[Ability]),
        marks_at: Option<&RunTime>,
    ) -> Result<RootReady, ConductError> {
        let mut tries = 0;
        let marks = loop {
            if let Some(lack) = self.heed(root.admin.make_ready(needs, &root.bases[0]))? {
                return Ok(RootReady::Lacks(lack));
            }
            let Some(time) = marks_at else { break Vec::new() };
            match self.heed(lease::first_marks(&mut *root.admin, &root.bases, self.runner, time)) {
                Ok(marks) => {
                    root.is_marked = true;
                    break marks;
                }
                // The run that had created the bucket has just ended, and removed it as it was
                // empty. One that holds a mark is not removed any more.
                Err(ConductError::Target(error))
                    if error.class == ErrorClass::NotFound && tries < CREATIONS_MAX =>
                {
                    tries += 1;
                }
                // The thread that renews the marks reports that they are missing.
                Err(ConductError::Target(_)) => {
                    break root.bases.iter().map(|base| (lease::marks_of(base), None)).collect();
                }
                Err(stopped) => return Err(stopped),
            }
        };
        let mut not_offered = Vec::new();
        for wish in wishes {
            not_offered.extend(self.heed(root.admin.make_ready(&[*wish], &root.bases[0]))?);
        }
        root.is_marked = marks_at.is_some();
        Ok(RootReady::Ready { marks, not_offered })
    }

    /// Removes the buckets that this run created, where nobody else uses them.
    fn remove_created(&mut self, observer: &dyn Observer) {
        for root in &mut self.roots {
            let by = (&self.stop, &self.runtime);
            remove_created(&mut *root.admin, &root.name, by, observer);
        }
    }

    /// Abandons a run that cannot start: removes its marks and the buckets that it created.
    pub(crate) fn give_up(&mut self, observer: &dyn Observer) {
        self.stop.begin_step();
        self.remove_marks();
        self.remove_created(observer);
    }

    /// Removes everything below each base. A store that was just driven hard may get several tries.
    fn sweep_all(&mut self) -> Result<(), NotSwept> {
        let mut roots = std::mem::take(&mut self.roots);
        let mut swept = Ok(());
        for root in &mut roots {
            for base in &root.bases {
                // Each bucket is tried, whatever became of others, unless nobody waits any more.
                if matches!(swept, Err(NotSwept::Stopped)) {
                    break;
                }
                let this = self.sweep_below(&mut *root.admin, base);
                swept = match (swept, this) {
                    (Ok(()), this) => this,
                    (Err(_), Err(NotSwept::Stopped)) => Err(NotSwept::Stopped),
                    (failed, _) => failed,
                };
            }
        }
        self.roots = roots;
        swept
    }

    fn sweep_below(&mut self, admin: &mut dyn Admin, base: &str) -> Result<(), NotSwept> {
        let mut tries = 1;
        loop {
            match self.stop.unless_stopped(&self.runtime, admin.sweep(base)) {
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
    fn clean_roots(&mut self, recording: &Recording) -> Option<(CleanupState, String)> {
        let counts: Vec<_> = self.roots.iter().map(|root| root.admin.removed_count()).collect();
        match self.sweep_all() {
            Ok(()) => {
                if let Some(removed) = self.removed {
                    let what = format::plural(removed, recording.manifest.noun());
                    recording.observer.note(&format!("removed {what}"));
                }
                None
            }
            Err(NotSwept::Failed(error)) => Some((CleanupState::Failed, error.to_string())),
            Err(NotSwept::Stopped) => {
                let so_far = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
                let so_far = format::count(so_far);
                Some((CleanupState::Pending, format!("stopped; {so_far} are")))
            }
        }
    }

    /// Removes the run's marks; what cannot be removed ends by itself.
    fn remove_marks(&mut self) {
        drop(self.lease.take());
        let mut roots = std::mem::take(&mut self.roots);
        for root in roots.iter_mut().filter(|root| root.is_marked) {
            for base in &root.bases {
                let _ = self.sweep_below(&mut *root.admin, &lease::marks_of(base));
            }
        }
        self.roots = roots;
    }
}

impl RunAdmin {
    /// Tells whether there is anything that is to be removed.
    pub(crate) fn has_to_clean(&self) -> bool {
        !self.keeps_data && !self.roots.is_empty()
    }
}

impl Cleaning for RunAdmin {
    fn clean(&mut self, recording: &Recording) -> (Cleanup, bool) {
        let started = recording.now();
        let mut left = None;
        let state = match (self.roots.is_empty(), self.keeps_data) {
            (true, _) => CleanupState::NotNeeded,
            (false, true) => CleanupState::Kept,
            (false, false) => {
                left = self.clean_roots(recording);
                left.as_ref().map_or(CleanupState::Complete, |(state, _)| *state)
            }
        };
        let removed = self.removed.filter(|_| state == CleanupState::Complete);
        if let Some((_, why)) = &left {
            let path = recording.directory.path().display();
            let noun = recording.manifest.noun();
            let bases: BTreeSet<&str> =
                self.roots.iter().flat_map(|root| &root.bases).map(String::as_str).collect();
            let bases: Vec<String> = bases.iter().map(|base| format!("`{base}`")).collect();
            recording.observer.warn(&format!(
                "{noun}s below {} could not all be removed ({why}); `plimsoll clean {path}` \
                 finishes the job",
                bases.join(", ")
            ));
        } else {
            self.remove_marks();
            if state == CleanupState::Complete {
                self.remove_created(&*recording.observer);
            }
        }
        let took = recording.now().since(started).as_nanos() as u64;
        let took_ns = (state == CleanupState::Complete).then_some(took);
        let files_removed_count = None;
        let cleanup =
            Cleanup { state, objects_removed_count: removed, files_removed_count, took_ns };
        (cleanup, left.is_none())
    }
}

/// Removes a bucket that this run created if nobody else uses it, and reports the result.
pub fn remove_created(
    admin: &mut dyn Admin,
    name: &str,
    (stop, runtime): (&Stop, &tokio::runtime::Runtime),
    observer: &dyn Observer,
) {
    let why = match stop.unless_stopped(runtime, admin.remove_created()) {
        Ok(Ok(None)) => return,
        Ok(Ok(Some(CreatedRoot::Removed))) => {
            return observer.note(&format!("removed {name}, which this run created"));
        }
        Ok(Ok(Some(CreatedRoot::Stays(why)))) => why,
        Ok(Err(error)) => error.to_string(),
        Err(Stopped) => "stopped".to_owned(),
    };
    observer.note(&format!("{name}, which this run created, stays: {why}"));
}

/// Returns the objects that a file names.
fn listed(
    admin: &dyn Admin,
    path: &Path,
    limit: Option<u64>,
    allowed: &AllowedDirs,
) -> Result<Arc<[ExistingObject]>, String> {
    let shown = path.display();
    let text = input::read_text_allowed(allowed, path, input::LIST_BYTES_MAX);
    let text = text.map_err(|error| format!("cannot read {shown}: {error}"))?;
    if allowed.is_foreign() && text.lines().nth(input::FOREIGN_NAMES_MAX).is_some() {
        return Err(format!("{shown} has more than {} lines", input::FOREIGN_NAMES_MAX));
    }
    let lines = text.lines().map(str::trim).enumerate();
    let names = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let object = |(index, name): (usize, &str)| {
        let judged = admin.judge_name(name);
        judged.map_err(|why| format!("{shown}, line {}: {why}", index + 1))?;
        Ok::<_, String>(ExistingObject { key: name.to_owned(), size: None })
    };
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let objects: Arc<[_]> = names.take(limit).map(object).collect::<Result<_, _>>()?;
    match objects.is_empty() {
        true => Err(format!("{shown} names nothing")),
        false => Ok(objects),
    }
}

/// Refuses what stores do not offer that nobody administers, as those of virtual time: all
/// operations of such work would fail.
pub(crate) fn check_offers(plan: &Plan, targets: &[Target]) -> Result<(), ConductError> {
    for (index, target) in targets.iter().enumerate() {
        let target_index = TargetIndex(index);
        let Some(store) = target.store().filter(|store| store.admin.is_none()) else { continue };
        let was_there =
            |set: &&Set| set.target == target_index && matches!(set.members, Members::Existing(_));
        if let Some(set) = plan.sets.iter().find(was_there) {
            let why = "nothing was there before on a target that begins with the run, as one in \
                       virtual time does";
            return Err(ConductError::NotSimulated(set.path.refuse(why)));
        }
        let Some(offers) = store.driver.offers() else { continue };
        let needs = plan.needs(target_index);
        if let Some((need, path)) = needs.iter().find(|(need, _)| !offers.contains(need)) {
            let why = format!("a store in virtual time does not know `{}`", need.name());
            return Err(ConductError::NotSimulated(path.refuse(why)));
        }
    }
    Ok(())
}
