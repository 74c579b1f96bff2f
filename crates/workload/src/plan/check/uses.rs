//! Checks how stages use sets over the course of a run: nothing is read before it is made, no two
//! jobs change the same members at once, and what the run did not make is touched only by consent.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU32;

use plimsoll_model::StageKind;

use super::{Checked, Context};
use crate::files::NameAct;
use crate::objects::TRACKED_MAX;
use crate::plan::checked::{Change, Consent, FileNames, Job, Members, SetIndex, Stage};
use crate::plan::path::{FieldPath, InvalidField};
use crate::plan::pattern::Pattern;
use crate::plan::spec::PutAs;
use crate::plan::work::{OpAct, Work};

/// A delete run needs this many batches per worker to be worth measuring (warp's bound).
const BATCHES_PER_WORKER_MIN: u64 = 4;

/// How work uses a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum UseKind {
    /// Reads members, which have to be there.
    Read,
    /// Makes new members of the workers' own.
    Grow,
    /// Writes or removes members that have to be there.
    Change { removes: bool },
    /// Makes members, whichever were there.
    Make,
    /// Removes all members.
    Clear,
    /// Makes or removes buckets.
    Buckets,
}

impl UseKind {
    /// Tells whether nobody else may write the members at the same time.
    pub(super) const fn is_exclusive(self) -> bool {
        matches!(self, Self::Change { .. } | Self::Make | Self::Clear)
    }

    const fn needs_members(self) -> bool {
        matches!(self, Self::Read | Self::Change { .. } | Self::Clear)
    }
}

/// A use of a set by a piece of work.
pub(in crate::plan) struct Use<'a> {
    pub(in crate::plan) set: SetIndex,
    pub(in crate::plan) kind: UseKind,
    /// Which operation of a mix it is, 0-based.
    op: Option<usize>,
    buckets: Option<&'a Pattern>,
    keys: Option<&'a Pattern>,
}

/// Returns how work uses its sets.
pub(in crate::plan) fn of(work: &Work) -> Vec<Use<'_>> {
    let plain =
        |set: SetIndex, kind: UseKind| Use { set, kind, op: None, buckets: None, keys: None };
    let all = |sets: &[SetIndex], kind: UseKind| -> Vec<Use<'_>> {
        sets.iter().map(|set| plain(*set, kind)).collect()
    };
    match work {
        Work::Objects(ops) => {
            let kind = |act: &OpAct| match act {
                OpAct::Get { .. } | OpAct::Stat { .. } | OpAct::List { .. } => UseKind::Read,
                OpAct::Put { put_as: PutAs::New, .. } => UseKind::Grow,
                OpAct::Put { .. } => UseKind::Change { removes: false },
                OpAct::Delete { .. } => UseKind::Change { removes: true },
            };
            ops.iter()
                .enumerate()
                .map(|(index, op)| {
                    let (buckets, keys) = (op.buckets.as_ref(), op.keys.as_ref());
                    Use { set: op.set, kind: kind(&op.act), op: Some(index), buckets, keys }
                })
                .collect()
        }
        Work::PutParts { set, .. }
        | Work::Append { set, .. }
        | Work::PutTar { set, .. }
        | Work::Fanout { set, .. }
        | Work::Replay { set, .. } => vec![plain(*set, UseKind::Grow)],
        Work::GetPart { set, .. } | Work::GetFromZip { set, .. } | Work::Retention { set, .. } => {
            vec![plain(*set, UseKind::Read)]
        }
        Work::Blocks(blocks) => match blocks.read_percent {
            0 => vec![plain(blocks.set, UseKind::Make)],
            100 => vec![plain(blocks.set, UseKind::Read)],
            _ => vec![plain(blocks.set, UseKind::Change { removes: false })],
        },
        Work::Names { set, act, .. } => vec![plain(
            *set,
            match act {
                NameAct::MakeTree | NameAct::Create { .. } => UseKind::Make,
                NameAct::Stat | NameAct::Open { .. } => UseKind::Read,
                NameAct::Rename => UseKind::Change { removes: false },
                NameAct::Remove | NameAct::RemoveTree => UseKind::Change { removes: true },
            },
        )],
        Work::Fill { sets, .. } => all(sets, UseKind::Make),
        Work::Remove { sets, .. } => all(sets, UseKind::Clear),
        Work::ReadBack(sets) => all(sets, UseKind::Read),
        Work::MakeBuckets(sets) | Work::RemoveBuckets(sets) => all(sets, UseKind::Buckets),
    }
}

impl Use<'_> {
    /// Returns where the use is written.
    fn path(&self, job: &Job) -> FieldPath {
        match (&job.work, self.op) {
            (Work::Objects(ops), Some(op)) => {
                let verb = match &ops[op].act {
                    OpAct::Get { .. } => "get",
                    OpAct::Put { is_form: true, .. } => "post",
                    OpAct::Put { .. } => "put",
                    OpAct::Stat { .. } => "stat",
                    OpAct::Delete { .. } => "delete",
                    OpAct::List { .. } => "list",
                };
                ops[op].path.field(verb)
            }
            _ => job.path.field("work").field(word(&job.work)),
        }
    }

    /// Tells whether both are about members that the other has nothing to do with.
    fn is_apart_from(&self, other: &Self, members: &Members) -> bool {
        let Members::Named(named) = members else { return false };
        let keys = |used: &Self| used.keys.unwrap_or(&named.keys).clone();
        let buckets = |used: &Self| used.buckets.or(named.buckets.as_ref()).cloned();
        let other_buckets = match (buckets(self), buckets(other)) {
            (Some(a), Some(b)) => a.is_apart_from(&b),
            _ => false,
        };
        other_buckets || keys(self).is_apart_from(&keys(other))
    }
}

/// Returns the field of a kind of work that names its set.
const fn word(work: &Work) -> &'static str {
    match work {
        Work::Objects(_) => "objects",
        Work::PutParts { .. } => "parts.put",
        Work::GetPart { .. } => "parts.get",
        Work::Append { .. } => "append.to",
        Work::GetFromZip { .. } => "archive.get_from_zip",
        Work::PutTar { .. } => "archive.put_tar",
        Work::Fanout { .. } => "fanout.put",
        Work::Retention { .. } => "retention.of",
        Work::Blocks(_) => "blocks.on",
        Work::Names { .. } => "names",
        Work::Fill { .. } => "fill",
        Work::Remove { .. } => "remove",
        Work::ReadBack(_) => "read_back",
        Work::MakeBuckets(_) => "buckets.make",
        Work::RemoveBuckets(_) => "buckets.remove",
        Work::Replay { .. } => "replay.of",
    }
}

/// What is known of a set at a moment of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It has no members.
    Empty,
    /// It has so many members, or versions of them.
    Filled(u64),
    /// It has members, how many is not known.
    Some,
}

/// Checks all stages and returns what they need consent for.
pub(super) fn check(cx: &Context<'_>, stages: &[Stage]) -> Checked<Vec<Consent>> {
    let mut known: Vec<Known> = cx
        .sets
        .iter()
        .map(|set| match &set.members {
            Members::Files(files) if files.are_there() => Known::Some,
            // Trees are checked by themselves.
            Members::Named(_) | Members::Existing(_) | Members::Tree(_) => Known::Some,
            _ => Known::Empty,
        })
        .collect();
    let mut within: BTreeMap<SetIndex, Vec<SetIndex>> = BTreeMap::new();
    let mut consents: Vec<Consent> = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        check_writers(cx, stage)?;
        for job in &stage.jobs {
            for used in of(&job.work) {
                check_use(cx, stage, job, &used, known[used.set.0])?;
                consents.extend(consent(cx, (index, job), &used)?);
            }
        }
        for used in stage.jobs.iter().flat_map(|job| of(&job.work)) {
            let now = &mut known[used.set.0];
            *now = match (used.kind, &cx.sets[used.set.0].members) {
                (UseKind::Make, Members::Objects(objects)) if *now == Known::Empty => {
                    Known::Filled(objects.count)
                }
                (UseKind::Make | UseKind::Grow, _) => Known::Some,
                (UseKind::Clear, Members::Named(_) | Members::Existing(_)) => Known::Some,
                (UseKind::Clear, _) => Known::Empty,
                _ => *now,
            };
            // Sets whose files are theirs too know what is known of it.
            for other in within.entry(used.set).or_insert_with(|| sets_within(cx, used.set)) {
                known[other.0] = known[used.set.0];
            }
        }
    }
    consents.sort();
    consents.dedup_by(|other, first| *other == Consent { stage: other.stage, ..first.clone() });
    Ok(consents)
}

/// Returns the other sets of files whose files all are files of a set.
fn sets_within(cx: &Context<'_>, of: SetIndex) -> Vec<SetIndex> {
    let Members::Files(made) = cx.members(of) else { return Vec::new() };
    let listed: HashSet<&String> = match &made.names {
        FileNames::Listed(names) | FileNames::Paths(names) => names.iter().collect(),
        _ => HashSet::new(),
    };
    let is_within = |index: &usize| {
        let set = &cx.sets[*index];
        let Members::Files(other) = &set.members else { return false };
        let is_same = match (&other.names, &made.names) {
            (
                FileNames::Made { format, job, workers, .. },
                FileNames::Made { format: of, job: of_job, workers: of_workers, .. },
            ) => {
                format == of
                    && (job == of_job || !of.contains("$jobname"))
                    && (workers <= of_workers || !of.contains("$jobnum"))
            }
            (FileNames::Listed(names), FileNames::Listed(of))
            | (FileNames::Paths(names), FileNames::Paths(of)) => {
                names == of || names.iter().all(|name| listed.contains(name))
            }
            _ => false,
        };
        *index != of.0 && is_same && set.target == cx.sets[of.0].target
    };
    (0..cx.sets.len()).filter(is_within).map(SetIndex).collect()
}

fn check_use(
    cx: &Context<'_>,
    stage: &Stage,
    job: &Job,
    used: &Use<'_>,
    known: Known,
) -> Checked<()> {
    let name = &cx.sets[used.set.0].name;
    let refuse =
        |reason: String| -> Result<(), InvalidField> { Err(used.path(job).refuse(reason)) };
    if used.kind.needs_members() && known == Known::Empty {
        return refuse(format!("set `{name}` has no members yet; no stage before makes them"));
    }
    let Known::Filled(count) = known else { return Ok(()) };
    let is_dealt = matches!(job.work, Work::Objects(_)) && stage.kind == StageKind::Measure;
    let workers = u64::from(job.workers.get());
    if is_dealt && used.kind.needs_members() && count < workers {
        return refuse(format!(
            "set `{name}` has {count} members, too few for {workers} workers; each needs one"
        ));
    }
    if let (Work::Objects(ops), Some(op)) = (&job.work, used.op)
        && let OpAct::Delete { batch, is_all: true, .. } = ops[op].act
    {
        let least = u64::from(NonZeroU32::get(batch)) * workers * BATCHES_PER_WORKER_MIN;
        if count < least {
            return refuse(format!(
                "set `{name}` has {count} members, too few: {workers} workers deleting {batch} at \
                 a time need {least}, four batches each"
            ));
        }
    }
    let versions = match cx.members(used.set) {
        Members::Objects(objects) => u64::from(objects.versions),
        _ => 1,
    };
    let tracked = count.saturating_mul(versions);
    let is_change = matches!(used.kind, UseKind::Change { .. });
    let is_all_once = matches!(
        (&job.work, used.op),
        (Work::Objects(ops), Some(op)) if matches!(ops[op].act, OpAct::Delete { is_all: true, .. })
    );
    if is_change && !is_all_once && is_dealt && tracked > TRACKED_MAX {
        return refuse(format!(
            "the {tracked} members of set `{name}` are too many to keep track of one by one, as \
             work that changes them does; at most {TRACKED_MAX}"
        ));
    }
    Ok(())
}

/// Refuses two jobs of a stage that write the same members.
fn check_writers(cx: &Context<'_>, stage: &Stage) -> Checked<()> {
    let mut seen: Vec<(&Job, Use<'_>)> = Vec::new();
    for job in &stage.jobs {
        for used in of(&job.work).into_iter().filter(|used| used.kind.is_exclusive()) {
            if cx.shared(used.set).is_some() {
                continue;
            }
            let members = cx.members(used.set);
            let clash = seen.iter().find(|(other, before)| {
                !std::ptr::eq(*other, job)
                    && before.set == used.set
                    && !before.is_apart_from(&used, members)
            });
            if let Some((other, _)) = clash {
                let reason = format!(
                    "job `{}` of the stage writes the same members of set `{}`; a member has one \
                     writer",
                    other.name, cx.sets[used.set.0].name
                );
                return Err(used.path(job).refuse(reason));
            }
            seen.push((job, used));
        }
    }
    Ok(())
}

/// Returns what a use needs consent for, where the file gives it.
fn consent(
    cx: &Context<'_>,
    (stage, job): (usize, &Job),
    used: &Use<'_>,
) -> Checked<Option<Consent>> {
    let set = &cx.sets[used.set.0];
    let is_foreign = match &set.members {
        Members::Named(_) | Members::Existing(_) => true,
        Members::Files(files) => files.are_there(),
        Members::Objects(_) | Members::Tree(_) => false,
    };
    let change = match used.kind {
        UseKind::Read => None,
        UseKind::Grow | UseKind::Make | UseKind::Change { removes: false } => Some(Change::Writes),
        UseKind::Change { removes: true } | UseKind::Clear => Some(Change::Removes),
        // One that is not there is nobody's, and one that is there is left as it is.
        UseKind::Buckets if matches!(job.work, Work::MakeBuckets(_)) => None,
        UseKind::Buckets => Some(Change::Buckets),
    };
    let Some(change) = change.filter(|_| is_foreign) else { return Ok(None) };
    let path = used.path(job);
    if !set.touch {
        let what = match change {
            Change::Writes => "writes",
            Change::Removes => "removes",
            Change::Buckets => "removes the buckets of",
        };
        let reason =
            format!("must be true: {path} {what} members of this set, which the run did not make");
        return Err(set.path.field("touch").refuse(reason));
    }
    let (buckets, keys) = match &set.members {
        Members::Named(named) => (
            used.buckets.or(named.buckets.as_ref()).cloned(),
            (change != Change::Buckets).then(|| used.keys.unwrap_or(&named.keys).clone()),
        ),
        _ => (None, None),
    };
    let (set, target) = (used.set, job.target);
    Ok(Some(Consent { set, target, change, buckets, keys, path, stage }))
}
