//! Consent to change what no run of plimsoll made: worked out from the checked workload and what
//! stores tell of their buckets, and asked for here alone.
//!
//! A workload that changes such things says so itself (`touch`), and whoever starts it says so
//! again on the command line. A file is never enough: it may have been written for another bucket.
//! Buckets that a run of plimsoll made need no leave: they carry its mark, or are made by the
//! workload itself before they are changed.

mod buckets;
mod glob;

use std::collections::BTreeSet;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use plimsoll_report::format;
use plimsoll_workload::Keys;
use plimsoll_workload::plan::{
    self, Change, FileNames, Files, Members, Placed, Plan, SetIndex, TargetIndex,
};

pub(crate) use self::buckets::{buckets_of, listed};
pub use self::glob::BucketGlob;
use crate::{ConductError, Observer, RunAdmin, RunTime, Runner, Stop, Target, Targets};

/// How long stores are asked whose buckets a plan would change, before it runs.
const ASKED_FOR: Duration = Duration::from_secs(10);

/// What the command line of this run gives leave to change.
#[derive(Clone, Debug)]
pub struct Consent {
    /// Whether leave is given to all that the workload says.
    pub given: bool,
    /// By which flag that is given, or would be.
    pub flag: &'static str,
    /// In which buckets leave is given besides.
    pub touch: Vec<BucketGlob>,
}

impl Consent {
    /// Returns the consent that this flag gives where it is there.
    pub fn by(flag: &'static str, given: bool) -> Self {
        Self { given, flag, touch: Vec::new() }
    }

    /// Adds leave to change what is in buckets of these names.
    #[must_use]
    pub fn touching(self, touch: Vec<BucketGlob>) -> Self {
        Self { touch, ..self }
    }
}

/// Leave to run: every record of a run begins with one.
pub struct Permit {
    promised: BTreeSet<(TargetIndex, String)>,
}

impl Permit {
    /// Returns leave to run a plan on these targets; `admin` asks stores whose a bucket is.
    pub fn for_plan(
        placed: &Placed,
        targets: &[Target],
        consent: &Consent,
        admin: &RunAdmin,
        observer: &dyn Observer,
    ) -> Result<Self, ConductError> {
        let mut asked = BTreeSet::new();
        for wanted in &placed.plan.consents {
            let set = placed.plan.set(wanted.set);
            let is_named = matches!(set.members, Members::Named(_));
            if !is_named && asked.insert((wanted.set, wanted.change)) {
                let what = what_is_done(placed, targets, wanted.set);
                ask(&what, consent, bucket_of(set, targets), observer)?;
            }
        }
        let promised = buckets::ask(placed, targets, consent, admin, observer)?;
        Ok(Self { promised })
    }

    /// Returns leave to run against a driver that touches nothing outside of this process.
    pub fn for_nothing_real() -> Self {
        Self { promised: BTreeSet::new() }
    }

    /// Returns the buckets that were not there, and that may be changed only because the run makes
    /// them itself.
    pub(crate) fn promised(&self) -> &BTreeSet<(TargetIndex, String)> {
        &self.promised
    }
}

/// Returns existing buckets that a plan would change, that no run of plimsoll made and that no
/// permission covers. A missing bucket may be made before the plan runs. Of many buckets only the
/// first are looked up, and a store that takes long to open or to answer is left alone.
pub fn foreign_buckets(
    plan: &Plan,
    open: impl FnOnce(Stop) -> Result<Targets, ConductError>,
    consent: &Consent,
    time: &RunTime,
) -> Result<BTreeSet<String>, ConductError> {
    let (stop, (over, is_over)) = (Stop::default(), channel::<()>());
    let admin = RunAdmin::new(stop.clone(), Runner::Process, time)?;
    let ended = stop.clone();
    thread::spawn(move || {
        if is_over.recv_timeout(ASKED_FOR) == Err(RecvTimeoutError::Timeout) {
            ended.request();
        }
    });
    let targets = open(stop);
    let foreign = targets.and_then(|on| buckets::foreign(plan, &on.all, consent, &admin));
    drop(over);
    foreign
}

/// Returns the bucket in which members of a set lie that were there before.
fn bucket_of<'t>(set: &plan::Set, targets: &'t [Target]) -> Option<&'t str> {
    let is_there = matches!(set.members, Members::Existing(_));
    let store = targets[set.target.0].store().filter(|_| is_there)?;
    Some(&*store.bucket).filter(|bucket| !bucket.is_empty())
}

fn ask(
    what: &str,
    consent: &Consent,
    bucket: Option<&str>,
    observer: &dyn Observer,
) -> Result<(), ConductError> {
    let globs = || consent.touch.iter();
    let touched = bucket.and_then(|bucket| globs().find(|glob| glob.matches(bucket)));
    let by = match (consent.given, touched) {
        (true, _) => consent.flag.to_owned(),
        (false, Some(glob)) => format!("--touch '{glob}'"),
        (false, None) => {
            return Err(ConductError::NoLeave { what: what.to_owned(), flag: consent.flag });
        }
    };
    observer.note(&format!("{by}: about to {what}, which this run did not write"));
    Ok(())
}

/// Says what is done to what the run did not make.
fn what_is_done(placed: &Placed, targets: &[Target], index: SetIndex) -> String {
    let set = placed.plan.set(index);
    let place = |prefix: &str| {
        let below = if prefix.is_empty() { String::new() } else { format!(" below `{prefix}`") };
        match targets[set.target.0].store() {
            Some(store) => {
                format!("{}{below} on {}", store.root(), format::hosts(&store.record.endpoints))
            }
            None => String::new(),
        }
    };
    match &set.members {
        Members::Files(Files { names: FileNames::Paths(paths), .. }) => {
            let names: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
            format!("overwrite {}", names.into_iter().collect::<Vec<_>>().join(", "))
        }
        Members::Existing(of) => {
            let (count, bytes) = amount(placed, index);
            let count = format::count(count);
            let bytes = bytes.map(|bytes| format!(" ({})", format::bytes(bytes)));
            let named = of.list.as_ref().map(|list| format!(" that {list} names"));
            let (bytes, named) = (bytes.unwrap_or_default(), named.unwrap_or_default());
            match targets[set.target.0].store() {
                Some(store) if store.record.has_collections() => {
                    let on = format::hosts(&store.record.endpoints);
                    format!("remove {count} files{named} from {on}")
                }
                Some(store) if store.record.has_directories() => {
                    format!("remove {count} files{bytes}{named} in {}", place(&of.prefix))
                }
                _ => format!("remove {count} objects{bytes}{named} in {}", place(&of.prefix)),
            }
        }
        Members::Named(_) | Members::Objects(_) | Members::Files(_) | Members::Tree(_) => {
            unreachable!("buckets are asked about apart, and what the run made needs no leave")
        }
    }
}

/// Says what is done in the buckets of a set of names of the user's own.
fn what_in_buckets(wanted: &plan::Consent) -> String {
    let objects = wanted.keys.as_ref().map(|keys| format!("objects `{keys}` in "));
    let objects = objects.unwrap_or_default();
    match wanted.change {
        Change::Writes => format!("write {objects}"),
        Change::Removes => format!("remove {objects}"),
        Change::Buckets => "remove ".to_owned(),
    }
}

/// Returns how many objects were found, and how many bytes they hold where that is known.
fn amount(placed: &Placed, set: SetIndex) -> (u64, Option<u64>) {
    match placed.sets[set.0].as_ref().map(|set| &set.keys) {
        Some(Keys::Existing(objects)) => {
            let known = objects.iter().map(|object| object.size);
            (objects.len() as u64, known.sum::<Option<u64>>())
        }
        _ => (0, None),
    }
}
