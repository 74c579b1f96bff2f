//! Leave to change what lies in buckets that the user names: bucket by bucket, whose it is.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_report::format;
use plimsoll_workload::plan::{self, Members, Pattern, Placed, Plan, TargetIndex, Work};

use super::{Consent, what_in_buckets};
use crate::{ConductError, Observer, RunAdmin, Store, Target};

/// So many buckets are named one by one in a sentence.
const NAMED_MAX: usize = 20;

/// Buckets of a set that are looked up before a run begins.
const ASKED_MAX: usize = 32;

/// A bucket of a target.
type Bucket = (TargetIndex, String);

/// Why a bucket may be changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// The command line says so, by this flag.
    Said(String),
    /// A run of plimsoll made it.
    Marked,
    /// It is not there, and the workload makes it before.
    Promised,
    /// It is of this process alone.
    Own,
}

/// Why a bucket may not be changed.
#[derive(Clone, Copy)]
enum Foreign {
    /// No run of plimsoll made it.
    IsThere,
    /// It is not there, and the workload does not make it before.
    IsNotThere,
}

/// What stores tell of buckets, each asked once.
struct Known<'a> {
    targets: &'a [Target],
    admin: &'a RunAdmin,
    /// By bucket: whether a run made it; `None` where it is not there.
    told: BTreeMap<Bucket, Option<bool>>,
    /// By bucket: the first stage that makes it.
    made: BTreeMap<Bucket, usize>,
}

/// Asks for leave, and returns the buckets that may be changed only because the run makes them.
pub(super) fn ask(
    placed: &Placed,
    targets: &[Target],
    consent: &Consent,
    admin: &RunAdmin,
    observer: &dyn Observer,
) -> Result<BTreeSet<Bucket>, ConductError> {
    let plan = &placed.plan;
    let mut known = Known { targets, admin, told: BTreeMap::new(), made: made(plan, targets) };
    let (mut promised, mut told, mut refused) = (BTreeSet::new(), Vec::new(), Vec::new());
    for wanted in &plan.consents {
        if !matches!(plan.set(wanted.set).members, Members::Named(_)) {
            continue;
        }
        let Some(store) = targets[wanted.target.0].store() else { continue };
        let what = what_in_buckets(wanted);
        // By reason: the buckets that may be changed for it.
        let mut allowed: BTreeMap<Why, Vec<String>> = BTreeMap::new();
        let mut foreign = Vec::new();
        for bucket in buckets_of(wanted.buckets.as_ref(), store) {
            match known.judge(wanted, &bucket, store, consent)? {
                Ok(why) => {
                    if why == Why::Promised {
                        promised.insert((wanted.target, bucket.clone()));
                    }
                    allowed.entry(why).or_default().push(bucket);
                }
                Err(why) => foreign.push((bucket, why)),
            }
        }
        for (why, buckets) in allowed {
            if why != Why::Own {
                let place = place(store, &buckets, wanted.buckets.as_ref());
                told.push(format!("{what}{place} ({})", why.text()));
            }
        }
        if !foreign.is_empty() {
            refused.push((format!("{what}{}", names(store, &foreign)), foreign));
        }
    }
    if !refused.is_empty() {
        return Err(refusal(&refused, consent));
    }
    if !told.is_empty() {
        told.dedup();
        observer.note(&format!("this run is about to {}", told.join("; ")));
    }
    Ok(promised)
}

/// Returns existing buckets that no run of plimsoll made and that no permission covers.
pub(super) fn foreign(
    plan: &Plan,
    targets: &[Target],
    consent: &Consent,
    admin: &RunAdmin,
) -> Result<BTreeSet<String>, ConductError> {
    let mut known = Known { targets, admin, told: BTreeMap::new(), made: made(plan, targets) };
    let mut foreign = BTreeSet::new();
    for wanted in &plan.consents {
        let is_named = matches!(plan.set(wanted.set).members, Members::Named(_));
        let Some(store) = targets[wanted.target.0].store().filter(|_| is_named) else { continue };
        for bucket in buckets_of(wanted.buckets.as_ref(), store).take(ASKED_MAX) {
            if let Err(Foreign::IsThere) = known.judge(wanted, &bucket, store, consent)? {
                foreign.insert(bucket);
            }
        }
    }
    Ok(foreign)
}

/// Returns the buckets that stages make, each with the first that does.
fn made(plan: &Plan, targets: &[Target]) -> BTreeMap<Bucket, usize> {
    let mut made = BTreeMap::new();
    for (index, stage) in plan.stages.iter().enumerate() {
        for job in &stage.jobs {
            let Work::MakeBuckets(sets) = &job.work else { continue };
            let Some(store) = targets[job.target.0].store() else { continue };
            for set in sets {
                let Members::Named(named) = &plan.set(*set).members else { continue };
                for bucket in buckets_of(named.buckets.as_ref(), store) {
                    made.entry((job.target, bucket)).or_insert(index);
                }
            }
        }
    }
    made
}

/// Returns the names of buckets; without a pattern it is the store's own.
pub(crate) fn buckets_of<'a>(
    pattern: Option<&'a Pattern>,
    store: &'a Store,
) -> Box<dyn Iterator<Item = String> + 'a> {
    match pattern {
        Some(pattern) => Box::new((0..pattern.count()).map(|index| pattern.name(index))),
        None => Box::new(std::iter::once(store.bucket.clone())),
    }
}

impl Known<'_> {
    /// Tells why a bucket may be changed, or why not.
    fn judge(
        &mut self,
        wanted: &plan::Consent,
        bucket: &str,
        store: &Store,
        consent: &Consent,
    ) -> Result<Result<Why, Foreign>, ConductError> {
        // Nobody else sees it, or nothing is there.
        if store.admin.is_none() || !store.is_shared {
            return Ok(Ok(Why::Own));
        }
        if consent.given {
            return Ok(Ok(Why::Said(consent.flag.to_owned())));
        }
        if let Some(glob) = consent.touch.iter().find(|glob| glob.matches(bucket)) {
            return Ok(Ok(Why::Said(format!("--touch '{glob}'"))));
        }
        let key = (wanted.target, bucket.to_owned());
        let is_made_before = self.made.get(&key).is_some_and(|stage| *stage < wanted.stage);
        Ok(match self.told(key)? {
            Some(true) => Ok(Why::Marked),
            Some(false) => Err(Foreign::IsThere),
            None if is_made_before => Ok(Why::Promised),
            None => Err(Foreign::IsNotThere),
        })
    }

    /// Returns what the store tells of a bucket.
    fn told(&mut self, key: Bucket) -> Result<Option<bool>, ConductError> {
        if let Some(told) = self.told.get(&key) {
            return Ok(*told);
        }
        let store = self.targets[key.0.0].store();
        let told = self.admin.is_marked(store.and_then(|store| store.admin.as_ref()), &key.1)?;
        self.told.insert(key, told);
        Ok(told)
    }
}

impl Why {
    fn text(&self) -> String {
        match self {
            Self::Said(flag) => flag.clone(),
            Self::Marked => "made by a run of plimsoll".to_owned(),
            Self::Promised => "made by this run".to_owned(),
            Self::Own => "this process's own".to_owned(),
        }
    }
}

/// Returns buckets with their store: by their pattern where all of it are meant.
fn place(store: &Store, buckets: &[String], pattern: Option<&Pattern>) -> String {
    let on = format::hosts(&store.record.endpoints);
    let word = store.record.root_word();
    match pattern {
        Some(pattern) if pattern.count() == buckets.len() as u64 && buckets.len() > 1 => {
            format!("{} `{pattern}` on {on}", plural(word))
        }
        _ => format!("{} on {on}", listed(word, buckets.iter().map(String::as_str))),
    }
}

/// Returns buckets that may not be changed, with why not.
fn names(store: &Store, foreign: &[(String, Foreign)]) -> String {
    let of = |missing: bool| {
        let is_it =
            move |(_, why): &&(String, Foreign)| matches!(why, Foreign::IsNotThere) == missing;
        foreign.iter().filter(is_it).map(|(bucket, _)| &**bucket).collect::<Vec<_>>()
    };
    let (there, missing, word) = (of(false), of(true), store.record.root_word());
    let mut parts = Vec::new();
    if !there.is_empty() {
        let listed = listed(word, there.iter().copied());
        parts.push(format!("{listed}, which no run of plimsoll made"));
    }
    if !missing.is_empty() {
        let (listed, verb) = (listed(word, missing.iter().copied()), is_or_are(missing.len()));
        parts.push(format!("{listed}, which {verb} not there and which no stage before makes"));
    }
    parts.join(", and in ")
}

const fn is_or_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Returns names of buckets as a sentence has them.
pub(crate) fn listed<'n>(word: &str, names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let count = names.len();
    let shown: Vec<String> = names.take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
    let more = match count.saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let word = if count == 1 { word.to_owned() } else { plural(word) };
    format!("{word} {}{more}", shown.join(", "))
}

fn plural(word: &str) -> String {
    match word.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{word}s"),
    }
}

/// Returns the refusal that says what would be done, and what to add.
fn refusal(refused: &[(String, Vec<(String, Foreign)>)], consent: &Consent) -> ConductError {
    let mut what: Vec<&str> = refused.iter().map(|(what, _)| &**what).collect();
    what.dedup();
    let buckets: BTreeSet<&str> =
        refused.iter().flat_map(|(_, of)| of).map(|(bucket, _)| &**bucket).collect();
    let add = match buckets.len() > NAMED_MAX {
        true => format!("--touch '{}'", common(&buckets)),
        false => {
            let each = buckets.iter().map(|bucket| format!("--touch '{bucket}'"));
            each.collect::<Vec<_>>().join(" ")
        }
    };
    ConductError::NoLeaveIn { what: what.join("; "), add, flag: consent.flag }
}

/// Returns the closest pattern that all names match.
fn common(names: &BTreeSet<&str>) -> String {
    let first = names.first().copied().unwrap_or_default();
    let shared = |name: &&str| {
        first.chars().zip(name.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let length: usize = names.iter().map(shared).min().unwrap_or(0);
    format!("{}*", &first[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_have_one_pattern() {
        let of = |names: &[&str]| common(&names.iter().copied().collect());
        assert_eq!(of(&["c10", "c11", "c2"]), "c*");
        assert_eq!(of(&["a", "b"]), "*");
        assert_eq!(of(&["bäh1", "bäh2"]), "bäh*");
    }

    #[test]
    fn a_sentence_names_some_and_counts_the_others() {
        let names: Vec<String> = (1..=23).map(|number| format!("c{number}")).collect();
        let all = listed("bucket", names.iter().map(String::as_str));
        assert!(
            all.starts_with("buckets `c1`, `c2`, ") && all.ends_with("`c20` and 3 more"),
            "{all}"
        );
        assert_eq!(listed("bucket", ["x"].into_iter()), "bucket `x`");
    }
}
