//! Checks the operations of a mix.

use std::num::NonZeroU32;

use super::named::named_sizes;
use super::sets::{part_size, sizes};
use super::work::{choice, set_sizes};
use super::{Checked, Context, at_least_one, in_range, is_label};
use crate::plan::checked::{Members, SetIndex};
use crate::plan::path::FieldPath;
use crate::plan::pattern::Pattern;
use crate::plan::spec::{
    Choice, DeleteOp, GetOp, LengthLaw, ListOp, OpSpec, PickSpec, PostOp, PutAs, PutOp, RangeSpec,
    SizeSpec, StatOp, VersionPick,
};
use crate::plan::units::{Size, SizeRange};
use crate::plan::work::{Length, Op, OpAct};
use crate::sizes::{PARTS_MAX, PUT_BYTES_MAX};
use plimsoll_model::Ability;
use plimsoll_model::Bytes;

/// The most objects one delete call takes (S3's limit).
pub(super) const BATCH_MAX: u32 = 1_000;
/// The most entries one page of a listing has (warp's bound; S3 itself gives at most 1,000).
const PAGE_SIZE_MAX: u32 = 5_000;
/// The most operations that one mix lists.
const OPS_MAX: usize = 1_000;
/// Each worker draws operations from a deck in which each stands as often as its weight says, in
/// lowest terms. The most that stand in one.
const DECK_MAX: u32 = 1 << 16;

impl Context<'_> {
    /// Returns the operations of a mix, and what they need.
    pub(super) fn mix(&self, path: &FieldPath, specs: &[OpSpec]) -> Checked<Vec<Op>> {
        if !(1..=OPS_MAX).contains(&specs.len()) {
            let count = specs.len();
            return Err(path.refuse(format!("{count} operations are out of range: 1 to {OPS_MAX}")));
        }
        let only_deletes = specs.iter().all(|spec| matches!(spec, OpSpec::Delete(_)));
        let mut ops = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let at = path.index(index);
            let op = match spec {
                OpSpec::Get(spec) => self.get(&at, spec)?,
                OpSpec::Put(spec) => self.put(&at, spec)?,
                OpSpec::Post(spec) => self.post(&at, spec)?,
                OpSpec::Stat(spec) => self.stat(&at, spec)?,
                OpSpec::Delete(spec) => self.delete(&at, spec, only_deletes)?,
                OpSpec::List(spec) => self.list(&at, spec)?,
            };
            at_least_one(&at.field("weight"), op.weight)?;
            if let Some(label) = &op.label {
                is_label(&at.field("name"), label)?;
            }
            ops.push(op);
        }
        self.check_balance(&ops)?;
        let weights = ops.iter().try_fold(0u32, |sum, op| sum.checked_add(op.weight));
        let weights = weights.ok_or_else(|| path.refuse("the weights are too large"))?;
        let deck = weights / Op::common_weight(&ops);
        if deck > DECK_MAX {
            return Err(path.refuse(format!(
                "the weights add up to {deck} in lowest terms; {DECK_MAX} are the most: round them"
            )));
        }
        Ok(ops)
    }

    /// Refuses a mix that removes more than it writes.
    fn check_balance(&self, ops: &[Op]) -> Checked<()> {
        for op in ops {
            let is_plain =
                matches!(op.act, OpAct::Delete { version: VersionPick::Newest, is_all: false, .. });
            let is_named = matches!(self.members(op.set), Members::Named(_));
            if !is_plain || is_named {
                continue;
            }
            let sum = |wanted: fn(&OpAct) -> bool| -> u64 {
                let of_set = ops.iter().filter(|each| each.set == op.set && wanted(&each.act));
                of_set.map(|each| u64::from(each.weight)).sum()
            };
            let removed = sum(|act| matches!(act, OpAct::Delete { .. }));
            let made =
                sum(|act| matches!(act, OpAct::Put { put_as: PutAs::New, remove_after: None, .. }));
            if removed > made {
                let reason = format!(
                    "{removed} of delete is above the {made} of new puts of set `{}`, which would \
                     run out",
                    self.sets[op.set.0].name
                );
                return Err(op.path.field("weight").refuse(reason));
            }
        }
        Ok(())
    }

    /// Returns the set of an operation on objects.
    fn object_set(&self, path: &FieldPath, name: &str) -> Checked<SetIndex> {
        let set = self.set_named(path, name)?;
        match self.members(set) {
            Members::Objects(objects) if objects.archive.is_some() => {
                Err(path.refuse(format!("set `{name}` is an archive, not single objects")))
            }
            Members::Objects(_) | Members::Named(_) | Members::Existing(_) => Ok(set),
            Members::Files(_) | Members::Tree(_) => {
                let reason = format!("set `{name}` is for work on blocks or names, not on objects");
                Err(path.refuse(reason))
            }
        }
    }

    /// Refuses other names than the set's where names are not the user's own.
    fn other_names(
        &self,
        path: &FieldPath,
        set: SetIndex,
        buckets: Option<&Pattern>,
        keys: Option<&Pattern>,
    ) -> Checked<()> {
        let is_named = matches!(self.members(set), Members::Named(_));
        let is_of_files =
            matches!(self.members(set), Members::Named(named) if named.files.is_some());
        if is_of_files && keys.is_some() {
            return Err(path.field("keys").refuse("the keys are names of files; leave it out"));
        }
        let given = [("buckets", buckets), ("keys", keys)];
        match given.into_iter().find(|(_, pattern)| pattern.is_some() && !is_named) {
            Some((field, _)) => {
                Err(path.field(field).refuse("is only for sets with user-given names"))
            }
            None => Ok(()),
        }
    }

    /// Returns the pick, where it suits the set.
    fn pick(&self, path: &FieldPath, set: SetIndex, pick: Option<&PickSpec>) -> Checked<PickSpec> {
        let path = path.field("pick");
        match pick {
            None => Ok(PickSpec::Member(Choice::Uniform)),
            Some(PickSpec::Member(law)) => choice(&path, law).map(PickSpec::Member),
            Some(PickSpec::InBucket { bucket, key }) => {
                let has_buckets = match self.members(set) {
                    Members::Objects(objects) => objects.keys.buckets.is_some(),
                    Members::Named(named) => named.buckets.is_some(),
                    _ => false,
                };
                if !has_buckets {
                    let name = &self.sets[set.0].name;
                    return Err(path.refuse(format!("set `{name}` has no buckets to pick from")));
                }
                Ok(PickSpec::InBucket {
                    bucket: choice(&path.field("bucket"), bucket)?,
                    key: choice(&path.field("key"), key)?,
                })
            }
        }
    }

    fn get(&self, path: &FieldPath, spec: &GetOp) -> Checked<Op> {
        let set = self.object_set(&path.field("get"), &spec.get)?;
        self.other_names(path, set, spec.buckets.as_ref(), spec.keys.as_ref())?;
        self.check_version(path, set, spec.version)?;
        let pick = self.pick(path, set, spec.pick.as_ref())?;
        let range = self.range(&path.field("range"), set, spec.range.as_ref())?;
        let act = OpAct::Get { pick, range, version: spec.version };
        Ok(op(path, set, spec.weight, &spec.name, act, &spec.buckets, &spec.keys))
    }

    fn check_version(&self, path: &FieldPath, set: SetIndex, pick: VersionPick) -> Checked<()> {
        match (self.members(set), pick) {
            (Members::Objects(_), _) | (_, VersionPick::Newest) => Ok(()),
            _ => {
                let reason = "versions are only known for the run's own objects";
                Err(path.field("version").refuse(reason))
            }
        }
    }

    fn range(&self, path: &FieldPath, set: SetIndex, range: Option<&RangeSpec>) -> Checked<Length> {
        let bounds = |path: &FieldPath, least: u64, most: u64| -> Checked<()> {
            if least == 0 {
                return Err(path.refuse("must be at least 1 byte"));
            }
            let largest = self.members(set).bytes_max();
            if let Some(largest) = largest.filter(|largest| *largest < most) {
                let (name, most) = (&self.sets[set.0].name, Bytes(most));
                let reason = format!(
                    "{most} is beyond the largest member of set `{name}`, which has {}",
                    Bytes(largest)
                );
                return Err(path.refuse(reason));
            }
            Ok(())
        };
        let is_listed = matches!(self.members(set), Members::Existing(of) if of.list.is_some());
        let is_unsized = match self.members(set) {
            Members::Named(named) if named.shared.is_some() => {
                !matches!(named.sizes, Some(crate::SizeDist::Fixed(_)))
            }
            Members::Named(named) => named.sizes.is_none(),
            _ => false,
        };
        match range {
            None => Ok(Length::Whole),
            Some(_) if is_listed => {
                Err(path.refuse("the sizes of listed members are unknown, so they are read whole"))
            }
            Some(RangeSpec::Within(within)) => {
                let (len, of) = (within.length.0, within.of.0);
                bounds(&path.field("length"), len, len)?;
                match len <= of {
                    true => Ok(Length::Within { len, of }),
                    false => Err(path.field("of").refuse("must be at least the length")),
                }
            }
            Some(_) if is_unsized => {
                let reason = "the sizes of the members are unknown; give the range by {length: \
                1MB, of: 10MB}";
                Err(path.refuse(reason))
            }
            Some(RangeSpec::Random) => Ok(Length::Random),
            Some(RangeSpec::Fixed(size)) => {
                bounds(path, size.0, size.0)?;
                Ok(Length::Fixed(size.0))
            }
            Some(RangeSpec::Drawn(law)) => {
                let (field, SizeRange { min, max }) = match law {
                    LengthLaw::Uniform(range) => ("uniform", *range),
                    LengthLaw::LogUniform(range) => ("log_uniform", *range),
                };
                bounds(&path.field(field), min, max)?;
                if min > max {
                    return Err(path.field(field).refuse("the smallest is above the largest"));
                }
                Ok(match law {
                    LengthLaw::Uniform(_) => Length::Uniform(min, max),
                    LengthLaw::LogUniform(_) => Length::LogUniform(min, max),
                })
            }
        }
    }

    fn put(&self, path: &FieldPath, spec: &PutOp) -> Checked<Op> {
        let set = self.object_set(&path.field("put"), &spec.put)?;
        self.other_names(path, set, spec.buckets.as_ref(), spec.keys.as_ref())?;
        let put_as = self.put_as(path, "put", set, spec.put_as)?;
        if put_as == PutAs::New && spec.pick.is_some() {
            return Err(path.field("pick").refuse("a new member is not picked; leave it out"));
        }
        let remove_after =
            super::stages::positive(&path.field("remove_after"), spec.remove_after.map(|at| at.0))?;
        if remove_after.is_some() && put_as != PutAs::New {
            return Err(path.field("remove_after").refuse("is only for new members"));
        }
        let part_bytes = self.put_part(&path.field("part"), set, spec.part)?;
        let act = OpAct::Put {
            put_as,
            pick: self.pick(path, set, spec.pick.as_ref())?,
            sizes: self.put_sizes(path, set, (spec.size.as_ref(), part_bytes))?,
            is_form: false,
            remove_after,
            part_bytes,
        };
        Ok(op(path, set, spec.weight, &spec.name, act, &spec.buckets, &spec.keys))
    }

    fn post(&self, path: &FieldPath, spec: &PostOp) -> Checked<Op> {
        let set = self.object_set(&path.field("post"), &spec.post)?;
        let put_as = self.put_as(path, "post", set, spec.put_as)?;
        let act = OpAct::Put {
            put_as,
            pick: PickSpec::Member(Choice::Uniform),
            sizes: self.put_sizes(path, set, (spec.size.as_ref(), None))?,
            is_form: true,
            remove_after: None,
            part_bytes: None,
        };
        Ok(op(path, set, spec.weight, &spec.name, act, &None, &None))
    }

    fn put_as(
        &self,
        path: &FieldPath,
        verb: &str,
        set: SetIndex,
        put_as: Option<PutAs>,
    ) -> Checked<PutAs> {
        match (self.members(set), put_as) {
            (Members::Existing(_), _) => {
                let reason = "existing objects are not written; put into one of the run's own sets";
                Err(path.field(verb).refuse(reason))
            }
            (Members::Named(_), None | Some(PutAs::Overwrite)) => Ok(PutAs::Overwrite),
            (Members::Named(_), Some(_)) => {
                let reason = "members of a set with user-given names are overwritten";
                Err(path.field("as").refuse(reason))
            }
            (_, Some(PutAs::Overwrite | PutAs::Version))
                if self.targets[self.sets[set.0].target.0].names_members() =>
            {
                let reason = "SeaweedFS names every write itself, so all are new";
                Err(path.field("as").refuse(reason))
            }
            (_, put_as) => Ok(put_as.unwrap_or(PutAs::New)),
        }
    }

    /// Returns how large a put's members are, which may be uploaded in parts of so many bytes.
    fn put_sizes(
        &self,
        path: &FieldPath,
        set: SetIndex,
        (size, part): (Option<&SizeSpec>, Option<u64>),
    ) -> Checked<crate::SizeDist> {
        let at = path.field("size");
        let most = part.map_or(PUT_BYTES_MAX, |part| part.saturating_mul(PARTS_MAX.into()));
        match (self.members(set), size) {
            (Members::Named(named), size) if named.files.is_some() => match size {
                Some(_) => Err(at.refuse("files are as large as they are; leave it out")),
                None => Ok(crate::SizeDist::Fixed(0)),
            },
            (Members::Named(_), Some(size)) => named_sizes(&at, size, most),
            (Members::Named(named), None) if part.is_some() && named.sizes.is_some() => {
                Ok(named.sizes.clone().expect("it has some"))
            }
            (_, Some(size)) => sizes(&at, size, most),
            (_, None) => set_sizes(self, &at, set),
        }
    }

    /// Returns in parts of how many bytes a put uploads.
    fn put_part(
        &self,
        path: &FieldPath,
        set: SetIndex,
        part: Option<Size>,
    ) -> Checked<Option<u64>> {
        let of_set = self.shared(set).and_then(|named| named.part_bytes);
        match part {
            None => Ok(of_set),
            Some(_) if self.shared(set).is_none() => {
                Err(path.refuse("is for a shared set; others have work of the kind `parts`"))
            }
            Some(part) => {
                part_size(path, part)?;
                Ok(Some(part.0))
            }
        }
    }

    fn stat(&self, path: &FieldPath, spec: &StatOp) -> Checked<Op> {
        let set = self.object_set(&path.field("stat"), &spec.stat)?;
        self.other_names(path, set, spec.buckets.as_ref(), spec.keys.as_ref())?;
        self.check_version(path, set, spec.version)?;
        let pick = self.pick(path, set, spec.pick.as_ref())?;
        let act = OpAct::Stat { pick, version: spec.version };
        Ok(op(path, set, spec.weight, &spec.name, act, &spec.buckets, &spec.keys))
    }

    fn delete(&self, path: &FieldPath, spec: &DeleteOp, only_deletes: bool) -> Checked<Op> {
        let set = self.object_set(&path.field("delete"), &spec.delete)?;
        self.other_names(path, set, spec.buckets.as_ref(), spec.keys.as_ref())?;
        self.check_version(path, set, spec.version)?;
        in_range(&path.field("batch"), spec.batch.into(), BATCH_MAX)?;
        if spec.batch > 1 && !only_deletes {
            return Err(path.field("batch").refuse("must be 1 beside other operations"));
        }
        let is_named = matches!(self.members(set), Members::Named(_));
        if spec.pick.is_some() && !is_named {
            let reason = "is only for sets with user-given names; others are removed each \
                          once";
            return Err(path.field("pick").refuse(reason));
        }
        if matches!(self.members(set), Members::Existing(_)) && !only_deletes {
            let reason = "existing objects are only removed all together, without other operations";
            return Err(path.field("delete").refuse(reason));
        }
        let act = OpAct::Delete {
            pick: self.pick(path, set, spec.pick.as_ref())?,
            batch: NonZeroU32::new(spec.batch).expect("it was checked"),
            version: spec.version,
            is_all: only_deletes
                && spec.pick.is_none()
                && spec.version == VersionPick::Newest
                && self.shared(set).is_none(),
        };
        Ok(op(path, set, spec.weight, &spec.name, act, &spec.buckets, &spec.keys))
    }

    fn list(&self, path: &FieldPath, spec: &ListOp) -> Checked<Op> {
        let set = self.object_set(&path.field("list"), &spec.list)?;
        in_range(&path.field("page"), spec.page.into(), PAGE_SIZE_MAX)?;
        if let Some(pages) = spec.pages {
            at_least_one(&path.field("pages"), pages)?;
        }
        if spec.by_page && !matches!(self.members(set), Members::Objects(_)) {
            let reason = "is only for the run's own objects, whose names have numbers";
            return Err(path.field("by_page").refuse(reason));
        }
        if spec.by_page && spec.pages.is_some() {
            let reason = "has no effect with by_page, which lists one page; leave it out";
            return Err(path.field("pages").refuse(reason));
        }
        let bucket = match self.pick(path, set, spec.pick.as_ref())? {
            _ if spec.pick.is_none() => None,
            PickSpec::InBucket { bucket, .. } if matches!(self.members(set), Members::Named(_)) => {
                Some(bucket)
            }
            _ => {
                let reason = "must say which bucket of a set with user-given names: \
                              {bucket: uniform}";
                return Err(path.field("pick").refuse(reason));
            }
        };
        self.other_names(path, set, spec.buckets.as_ref(), None)?;
        let is_plain = spec.pick.is_none() && spec.buckets.is_none() && !spec.versions;
        let is_named = matches!(self.members(set), Members::Named(_));
        if spec.account && !(is_plain && is_named) {
            let reason = "is only for sets with user-given names, without `pick`, `buckets` \
                          and `versions`";
            return Err(path.field("account").refuse(reason));
        }
        let act = OpAct::List {
            page: NonZeroU32::new(spec.page).expect("it was checked"),
            pages: spec.pages.and_then(NonZeroU32::new),
            versions: spec.versions,
            by_page: spec.by_page,
            account: spec.account,
            bucket,
        };
        Ok(op(path, set, spec.weight, &spec.name, act, &spec.buckets, &None))
    }
}

fn op(
    path: &FieldPath,
    set: SetIndex,
    weight: u32,
    label: &Option<String>,
    act: OpAct,
    buckets: &Option<Pattern>,
    keys: &Option<Pattern>,
) -> Op {
    let (label, buckets, keys) = (label.clone(), buckets.clone(), keys.clone());
    Op { set, weight, label, buckets, keys, act, path: path.clone() }
}

/// Returns what operations need of their target.
pub(super) fn needs(ops: &[Op]) -> Vec<Ability> {
    let mut needs = Vec::new();
    for op in ops {
        if op.act.is_by_name() {
            needs.push(Ability::Versions);
        }
        match &op.act {
            OpAct::Get { range, .. } => {
                needs.push(Ability::Get);
                if *range != Length::Whole {
                    needs.push(Ability::Ranges);
                }
            }
            OpAct::Put { put_as, is_form, remove_after, part_bytes, .. } => {
                if part_bytes.is_some() {
                    needs.push(Ability::Parts);
                }
                needs.push(if *is_form { Ability::Post } else { Ability::Put });
                if *put_as == PutAs::Version {
                    needs.push(Ability::Versions);
                }
                if remove_after.is_some() {
                    needs.push(Ability::Delete);
                }
            }
            OpAct::Stat { .. } => needs.push(Ability::Stat),
            OpAct::Delete { batch, .. } => needs.push(match batch.get() {
                1 => Ability::Delete,
                _ => Ability::DeleteMany,
            }),
            OpAct::List { account: true, .. } => needs.push(Ability::ListBuckets),
            OpAct::List { versions, .. } => {
                needs.push(Ability::List);
                if *versions {
                    needs.push(Ability::ListVersions);
                }
            }
        }
    }
    needs
}
