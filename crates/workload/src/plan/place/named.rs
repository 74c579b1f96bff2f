//! Lays out sets with names of the user's own, and tells what is known of those that anybody may
//! write at any time.

use std::sync::Arc;

use plimsoll_model::ObjectId;

use super::{BUCKETS_MAX, Laid, Room};
use crate::data::DataRule;
use crate::objects::{ObjectSet, SetBuckets, SharedSet};
use crate::plan::check::file_name;
use crate::plan::checked::{Job, Members, NamedObjects, Plan, SetIndex, TargetIndex};
use crate::plan::path::FieldPath;
use crate::plan::pattern::Pattern;
use crate::plan::spec::FilesOf;
use crate::plan::work::{Op, OpAct, Work};
use crate::{DataFileSpec, FileMember, Keys, SizeDist, Verify};

/// Names on a target, and what is written under them.
#[derive(Clone, Debug)]
pub(super) struct Names {
    target: TargetIndex,
    /// `None`: in the target's own bucket.
    buckets: Option<Pattern>,
    keys: Pattern,
    content: Content,
}

/// What members hold, as far as two of one name may differ.
#[derive(Clone, Debug, PartialEq)]
struct Content {
    /// `None`: it depends on the run.
    shared: Option<crate::plan::checked::SharedContent>,
    data: DataRule,
    data_files: Vec<DataFileSpec>,
    files: Option<FilesOf>,
}

/// Something that writes members of a set with names of the user's own.
struct Written {
    names: Names,
    /// How large they are; `None` where that is not known.
    sizes: Option<SizeDist>,
}

impl Names {
    fn of(target: TargetIndex, named: &NamedObjects) -> Self {
        let content = Content {
            shared: named.shared,
            data: named.data.clone(),
            data_files: named.data_files.clone(),
            files: named.files.clone(),
        };
        let (buckets, keys) = (named.buckets.clone(), named.keys.clone());
        Self { target, buckets, keys, content }
    }

    /// Tells whether no name of one is a name of the other.
    fn is_apart_from(&self, other: &Self) -> bool {
        let other_buckets = match (&self.buckets, &other.buckets) {
            (Some(a), Some(b)) => a.is_apart_from(b),
            _ => false,
        };
        // Keys of files are not those of their patterns.
        let is_of_files = self.content.files.is_some() || other.content.files.is_some();
        let other_keys = !is_of_files && self.keys.is_apart_from(&other.keys);
        self.target != other.target || other_buckets || other_keys
    }

    /// Tells whether all names of the other are among these, and hold the same.
    fn vouches_for(&self, other: &Self) -> bool {
        let has_buckets = match (&self.buckets, &other.buckets) {
            (Some(a), Some(b)) => a.covers(b),
            (None, None) => true,
            _ => false,
        };
        let is_same = self.target == other.target && self.content == other.content;
        is_same && has_buckets && self.keys.covers(&other.keys)
    }
}

/// Returns what a plan writes in sets with names of the user's own.
fn written(plan: &Plan) -> Vec<Written> {
    let named = |set: SetIndex| match &plan.set(set).members {
        Members::Named(named) => Some((plan.set(set).target, named)),
        _ => None,
    };
    let filled = |set: &SetIndex| {
        let (target, named) = named(*set)?;
        Some(Written { names: Names::of(target, named), sizes: named.sizes.clone() })
    };
    let put = |op: &Op| {
        let OpAct::Put { sizes, .. } = &op.act else { return None };
        let (target, named) = named(op.set)?;
        let mut names = Names::of(target, named);
        names.buckets = op.buckets.clone().or(names.buckets);
        names.keys = op.keys.clone().unwrap_or(names.keys);
        let sizes = named.files.is_none().then(|| sizes.clone());
        Some(Written { names, sizes })
    };
    let mut written = Vec::new();
    for job in plan.jobs() {
        match &job.work {
            Work::Fill { sets, .. } => written.extend(sets.iter().filter_map(filled)),
            Work::Objects(ops) => written.extend(ops.iter().filter_map(put)),
            _ => {}
        }
    }
    written
}

impl Room<'_> {
    /// Returns a set with names of the user's own.
    pub(super) fn named(&self, index: SetIndex, named: &NamedObjects) -> Laid<ObjectSet> {
        let set = self.plan.set(index);
        let buckets = match &named.buckets {
            None => SetBuckets::OfTarget,
            Some(pattern) => bucket_names(&set.path.field("named").field("bucket"), pattern)?,
        };
        let count = named.keys.count().saturating_mul(buckets.count().into());
        if count > ObjectId::NUMBER_MAX {
            let reason =
                format!("{count} names are more than the {} that fit", ObjectId::NUMBER_MAX);
            return Err(set.path.field("named").refuse(reason));
        }
        let keys = match &named.files {
            None => Keys::Named(named.keys.clone()),
            Some(FilesOf::These(files)) => Keys::Files(file_members(files)),
            Some(FilesOf::In(directory)) => {
                let reason = format!("the files in {directory} have not been listed yet");
                return Err(set.path.field("named").field("files").refuse(reason));
            }
        };
        let shared = named.shared.map(|shared| SharedSet {
            seed: shared.seed,
            hash_check: shared.hash_check,
            lengths: self.lengths(&Names::of(set.target, named), named.sizes.as_ref()),
            home: self.placing.buckets.get(set.target.0).cloned().unwrap_or_default(),
            part_bytes: named.part_bytes,
        });
        Ok(ObjectSet {
            seed: self.placing.seed.0,
            count,
            laws: vec![named.sizes.clone()],
            data: named.data.clone(),
            data_files: named.data_files.clone(),
            buckets,
            shared,
            ..ObjectSet::plain(&set.name, keys)
        })
    }

    /// Returns by which laws the run draws the lengths of what it writes under these names; none:
    /// any length may be right. Where it writes nothing, the set says it.
    fn lengths(&self, names: &Names, of_set: Option<&SizeDist>) -> Vec<SizeDist> {
        let written = written(self.plan);
        let mut lengths = Vec::new();
        let mut is_written = false;
        for written in &written {
            if written.names.is_apart_from(names) || written.names.content != names.content {
                continue;
            }
            is_written = true;
            match &written.sizes {
                None => return Vec::new(),
                Some(sizes) if !lengths.contains(sizes) => lengths.push(sizes.clone()),
                Some(_) => {}
            }
        }
        match is_written {
            true => lengths,
            false => of_set.cloned().into_iter().collect(),
        }
    }

    /// Returns the names of a set of the plan.
    pub(super) fn names(&self, index: SetIndex) -> Option<Names> {
        let set = self.plan.set(index);
        match &set.members {
            Members::Named(named) => Some(Names::of(set.target, named)),
            _ => None,
        }
    }

    /// Has an operation be about the set that its own names or sizes make.
    pub(super) fn named_op(&mut self, op: &mut Op, known: &mut Vec<Verify>) -> Laid<()> {
        let Members::Named(named) = &self.plan.set(op.set).members else { return Ok(()) };
        let mut named = named.clone();
        let set = Arc::clone(self.sets[op.set.0].as_ref().expect("a mix is on objects"));
        // Of a shared set each write draws its length, wherever that is said.
        let other_size = match &op.act {
            OpAct::Put { sizes, .. } if named.shared.is_none() => Some(sizes),
            _ => None,
        };
        let other_size = other_size.filter(|sizes| set.laws != [Some((*sizes).clone())]);
        let part_bytes = match op.act {
            OpAct::Put { part_bytes, .. } => part_bytes,
            _ => named.part_bytes,
        };
        let is_plain = op.buckets.is_none() && op.keys.is_none() && other_size.is_none();
        if is_plain && part_bytes == named.part_bytes {
            return Ok(());
        }
        named.keys = op.keys.take().unwrap_or(named.keys);
        named.buckets = op.buckets.take().or(named.buckets);
        named.sizes = other_size.cloned().or(named.sizes);
        named.part_bytes = part_bytes;
        if other_size.is_some() {
            known[op.set.0] = Verify::Nothing;
        }
        let part = self.named(op.set, &named)?;
        let target = self.targets[op.set.0];
        op.set = SetIndex(self.sets.len());
        self.sets.push(Some(Arc::new(part)));
        self.targets.push(target);
        self.names.push(Some(Names::of(target, &named)));
        known.push(Verify::Nothing);
        Ok(())
    }

    /// Takes note of what a job fills.
    pub(super) fn note_filled(&mut self, job: &Job) {
        let Work::Fill { sets, .. } = &job.work else { return };
        let is_shared = |set: &&SetIndex| self.is_shared(**set);
        let shared: Vec<SetIndex> = sets.iter().filter(is_shared).copied().collect();
        self.filled.extend(shared);
    }

    fn is_shared(&self, set: SetIndex) -> bool {
        self.sets[set.0].as_ref().is_some_and(|set| set.shared.is_some())
    }

    /// Returns what is known to a job of the content of each set, and by set the one that was
    /// filled and vouches for that.
    pub(super) fn known_to(
        &self,
        job: &Job,
        known: &[Verify],
    ) -> (Arc<[Verify]>, Arc<[Option<SetIndex>]>) {
        let vouches = |set: usize| self.vouches_for(SetIndex(set)).filter(|_| job.verify);
        let filled: Arc<[Option<SetIndex>]> = (0..self.sets.len()).map(vouches).collect();
        let of_set = |(set, known): (usize, &Verify)| match known {
            _ if self.is_shared(SetIndex(set)) => match filled[set] {
                _ if !job.verify => Verify::Nothing,
                Some(_) => Verify::EveryByte,
                None => Verify::IfOurs,
            },
            Verify::EveryByte | Verify::LengthOnly if !job.verify => Verify::Off,
            known => *known,
        };
        (known.iter().enumerate().map(of_set).collect(), filled)
    }

    /// Returns the set that was filled and whose names are all of a shared set's, where nothing
    /// else can be under them: whatever the run writes there is the same.
    fn vouches_for(&self, set: SetIndex) -> Option<SetIndex> {
        let names = self.names[set.0].as_ref().filter(|_| self.is_shared(set))?;
        let filled = self.filled.iter().find(|filled| {
            let of = self.names[filled.0].as_ref();
            of.is_some_and(|of| of.vouches_for(names))
        })?;
        let is_other = |written: &Written| {
            written.names.content != names.content && !written.names.is_apart_from(names)
        };
        (!written(self.plan).iter().any(is_other)).then_some(*filled)
    }
}

/// Returns the members that are files, one after the other.
fn file_members(files: &[DataFileSpec]) -> Arc<[FileMember]> {
    let mut end = 0;
    let member = |file: &DataFileSpec| {
        let key = file_name(&file.path).expect("it was checked").to_owned();
        let offset = end;
        end += file.bytes;
        FileMember { key, offset, bytes: file.bytes }
    };
    files.iter().map(member).collect()
}

fn bucket_names(path: &FieldPath, pattern: &Pattern) -> Laid<SetBuckets> {
    let count = pattern.count();
    if count > BUCKETS_MAX {
        return Err(path.refuse(format!("{count} buckets are out of range: 1 to {BUCKETS_MAX}")));
    }
    Ok(SetBuckets::Several((0..count).map(|index| pattern.name(index)).collect()))
}
