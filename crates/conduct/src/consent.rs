//! Consent to change what no run of plimsoll made: worked out from the checked workload, and asked
//! for here alone.
//!
//! A workload that changes such things says so itself (`touch`), and whoever starts it says so
//! again on the command line. A file is never enough: it may have been written for another bucket.

use std::collections::BTreeSet;

use plimsoll_report::format;
use plimsoll_workload::Keys;
use plimsoll_workload::plan::{self, Change, FileNames, Files, Members, Placed, SetIndex};

use crate::{ConductError, Observer, Target};

/// Whether the command line of this run gives leave, and by which flag.
#[derive(Clone, Copy, Debug)]
pub struct Consent {
    /// Whether leave is given.
    pub given: bool,
    /// By which flag it is given, or would be.
    pub flag: &'static str,
}

/// Leave to run: every record of a run begins with one.
pub struct Permit(());

impl Permit {
    /// Returns leave to run a plan on these targets.
    pub fn for_plan(
        placed: &Placed,
        targets: &[Target],
        consent: Consent,
        observer: &dyn Observer,
    ) -> Result<Self, ConductError> {
        let mut asked = BTreeSet::new();
        for wanted in &placed.plan.consents {
            if asked.insert((wanted.set, wanted.change)) {
                let what = what_is_done(placed, targets, wanted);
                ask(&what, consent, observer)?;
            }
        }
        Ok(Self(()))
    }

    /// Returns leave to run against a driver that touches nothing outside of this process.
    pub fn for_nothing_real() -> Self {
        Self(())
    }
}

fn ask(
    what: &str,
    Consent { given, flag }: Consent,
    observer: &dyn Observer,
) -> Result<(), ConductError> {
    if !given {
        let what = what.to_owned();
        return Err(ConductError::NoLeave { what, flag });
    }
    observer.note(&format!("{flag}: about to {what}, which this run did not write"));
    Ok(())
}

/// Says what is done to what the run did not make.
fn what_is_done(placed: &Placed, targets: &[Target], wanted: &plan::Consent) -> String {
    let set = placed.plan.set(wanted.set);
    let place = |prefix: &str| {
        let below = if prefix.is_empty() { String::new() } else { format!(" below `{prefix}`") };
        match targets[set.target.0].store() {
            Some(store) => {
                format!("{}{below} on {}", store.root(), format::hosts(&store.record.endpoints))
            }
            None => String::new(),
        }
    };
    match (&set.members, wanted.change) {
        (Members::Files(Files { names: FileNames::Paths(paths), .. }), _) => {
            let names: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
            format!("overwrite {}", names.into_iter().collect::<Vec<_>>().join(", "))
        }
        (Members::Existing(of), _) => {
            let (count, bytes) = amount(placed, wanted.set);
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
        (Members::Named(named), change) => {
            let objects = format!("objects `{}`", named.keys);
            let buckets = match &named.buckets {
                Some(buckets) => format!("buckets `{buckets}`"),
                None => place(""),
            };
            match change {
                Change::Writes => format!("write {objects} in {buckets}"),
                Change::Removes => format!("remove {objects} in {buckets}"),
                Change::Buckets => format!("make or remove {buckets}"),
            }
        }
        (Members::Objects(_) | Members::Files(_) | Members::Tree(_), _) => {
            unreachable!("what the run made itself asks for no leave")
        }
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
