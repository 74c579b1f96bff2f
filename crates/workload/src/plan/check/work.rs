//! Checks what jobs do.

use std::num::NonZeroU32;

use plimsoll_model::Bytes;

use super::sets::{part_size, sizes};
use super::{Checked, Context, in_range};
use crate::SizeDist;
use crate::plan::checked::{Members, SetIndex};
use crate::plan::path::FieldPath;
use crate::plan::spec::{
    AppendSpec, ArchiveKind, ArchiveSpec, BucketsSpec, Choice, FanoutSpec, FillSpec, GetPart,
    GetZip, JobSpec, OneOrMany, PartsSpec, PutParts, PutTar, RemoveSpec, RetentionSpec, Shares,
    WorkSpec,
};
use crate::plan::units::NumberRange;
use crate::plan::work::Work;
use crate::sizes::{PARTS_MAX, PUT_BYTES_MAX};
use plimsoll_model::Ability;

/// The most members of an archive, or copies of a content, that one operation writes.
const MEMBERS_MAX: u32 = 10_000;
/// The most parts of one upload that are under way at a time.
const AT_ONCE_MAX: u32 = 1_000;
/// Archives that are compressed are built in memory, one a worker: together at most this much.
const ARCHIVES_BYTES_MAX: f64 = (1u64 << 30) as f64;
/// A member of a tar archive is below this.
const TAR_BYTES_MAX: u64 = 8 << 30;

type Needed = (Work, Vec<Ability>);

impl Context<'_> {
    /// Returns the work, and what it needs of its target, each ability once.
    pub(super) fn work(&self, path: &FieldPath, job: &JobSpec) -> Checked<Needed> {
        let (work, mut needs) = match &job.work {
            WorkSpec::Objects(specs) => {
                let ops = self.mix(&path.field("objects"), specs)?;
                let needs = super::mix::needs(&ops);
                (Work::Objects(ops), needs)
            }
            WorkSpec::Parts(PartsSpec::Put(spec)) => self.put_parts(&path.field("parts"), spec)?,
            WorkSpec::Parts(PartsSpec::Get(spec)) => self.get_part(&path.field("parts"), spec)?,
            WorkSpec::Append(spec) => self.append(&path.field("append"), spec)?,
            WorkSpec::Archive(ArchiveSpec::GetFromZip(spec)) => {
                self.get_zip(&path.field("archive"), spec)?
            }
            WorkSpec::Archive(ArchiveSpec::PutTar(spec)) => {
                self.put_tar(&path.field("archive"), spec, job.workers)?
            }
            WorkSpec::Fanout(spec) => self.fanout(&path.field("fanout"), spec)?,
            WorkSpec::Retention(spec) => self.retention(&path.field("retention"), spec)?,
            WorkSpec::Blocks(spec) => self.blocks(&path.field("blocks"), spec)?,
            WorkSpec::Names(spec) => self.names(&path.field("names"), spec, job)?,
            WorkSpec::Fill(spec) => self.fill(&path.field("fill"), spec)?,
            WorkSpec::Remove(spec) => self.remove(&path.field("remove"), spec)?,
            WorkSpec::ReadBack(names) => self.read_back(&path.field("read_back"), names)?,
            WorkSpec::Buckets(spec) => self.buckets(&path.field("buckets"), spec)?,
            WorkSpec::Replay(spec) => self.replay(&path.field("replay"), spec)?,
        };
        needs.sort_unstable();
        needs.dedup();
        Ok((work, needs))
    }

    /// Returns the set of work on objects of the run's own.
    fn own_set(&self, path: &FieldPath, name: &str) -> Checked<SetIndex> {
        let set = self.set_named(path, name)?;
        match self.members(set) {
            Members::Objects(_) => Ok(set),
            _ => Err(path.refuse(format!("set `{name}` does not hold the run's own objects"))),
        }
    }

    /// Returns how large members of a set are, where the work itself cannot say it.
    fn own_sizes(&self, set: SetIndex) -> Checked<SizeDist> {
        let at = self.sets[set.0].path.field("size");
        match self.members(set) {
            Members::Objects(objects) if objects.sizes.is_none() => {
                Err(at.refuse("is missing; work that writes to the set needs to know it"))
            }
            _ => set_sizes(self, &at, set),
        }
    }

    fn put_parts(&self, path: &FieldPath, spec: &PutParts) -> Checked<Needed> {
        let set = self.own_set(&path.field("put"), &spec.put)?;
        let at = path.field("part");
        part_size(&at, spec.part)?;
        if let Some(least) = spec.part_min.filter(|least| spec.part < *least) {
            let (part, least) = (spec.part, least);
            return Err(
                at.refuse(format!("part size {part} is below what the target takes, {least}"))
            );
        }
        let parts = spec.parts.map(|parts| bounded(&path.field("parts"), parts, PARTS_MAX));
        let parts = parts.transpose()?;
        let at_once = bounded(&path.field("at_once"), spec.at_once, AT_ONCE_MAX)?;
        let known = self.members(set).bytes_max();
        match (parts, known) {
            (None, None) => {
                let reason = "is missing, and so is the size of the set; one of them is needed";
                return Err(path.field("parts").refuse(reason));
            }
            (None, Some(size)) if size.div_ceil(spec.part.0) > PARTS_MAX.into() => {
                let reason = format!(
                    "part size {} is too small: members of {} would need more than {PARTS_MAX} \
                     parts",
                    spec.part,
                    Bytes(size)
                );
                return Err(at.refuse(reason));
            }
            (Some(parts), _) if at_once > parts => {
                let reason = format!("{at_once} is above the {parts} parts of an upload");
                return Err(path.field("at_once").refuse(reason));
            }
            _ => {}
        }
        let work = Work::PutParts { set, parts, part_bytes: spec.part.0, at_once };
        Ok((work, vec![Ability::Parts]))
    }

    fn get_part(&self, path: &FieldPath, spec: &GetPart) -> Checked<Needed> {
        let at = path.field("get");
        let set = self.own_set(&at, &spec.get)?;
        let part = match self.members(set) {
            Members::Objects(objects) => objects.part_bytes,
            _ => None,
        };
        let Some(part_bytes) = part else {
            let reason = format!("set `{}` has no `part`, so its members have none", spec.get);
            return Err(at.refuse(reason));
        };
        let pick = choice(&path.field("pick"), &spec.pick)?;
        Ok((Work::GetPart { set, pick, part_bytes }, vec![Ability::Get, Ability::Parts]))
    }

    fn append(&self, path: &FieldPath, spec: &AppendSpec) -> Checked<Needed> {
        let set = self.own_set(&path.field("to"), &spec.to)?;
        let parts = bounded(&path.field("parts"), spec.parts, PARTS_MAX)?;
        let at = path.field("size");
        let sizes = match &spec.size {
            Some(size) => sizes(&at, size, PUT_BYTES_MAX)?,
            None => set_sizes(self, &at, set)?,
        };
        Ok((Work::Append { set, parts, sizes }, vec![Ability::Append]))
    }

    fn get_zip(&self, path: &FieldPath, spec: &GetZip) -> Checked<Needed> {
        let at = path.field("get_from_zip");
        let set = self.own_set(&at, &spec.get_from_zip)?;
        let is_zip = match self.members(set) {
            Members::Objects(objects) => objects.archive == Some(ArchiveKind::Zip),
            _ => false,
        };
        if !is_zip {
            let reason =
                format!("set `{}` is not an archive; it needs `archive: zip`", spec.get_from_zip);
            return Err(at.refuse(reason));
        }
        let pick = choice(&path.field("pick"), &spec.pick)?;
        Ok((Work::GetFromZip { set, pick }, vec![Ability::Zip]))
    }

    fn put_tar(&self, path: &FieldPath, spec: &PutTar, workers: u32) -> Checked<Needed> {
        let set = self.own_set(&path.field("put_tar"), &spec.put_tar)?;
        let members = bounded(&path.field("members"), spec.members, MEMBERS_MAX)?;
        let sizes = self.own_sizes(set)?;
        let bytes = sizes.mean() * f64::from(spec.members) * f64::from(workers);
        if spec.compress && bytes > ARCHIVES_BYTES_MAX {
            let reason = "archives that are compressed are built in memory, and those of all \
                          workers together come to more than 1 GiB";
            return Err(path.field("compress").refuse(reason));
        }
        if sizes.max() >= TAR_BYTES_MAX {
            let at = self.sets[set.0].path.field("size");
            return Err(at.refuse("a member of a tar archive is below 8 GiB"));
        }
        let work = Work::PutTar { set, members, compress: spec.compress };
        Ok((work, vec![Ability::Tar]))
    }

    fn fanout(&self, path: &FieldPath, spec: &FanoutSpec) -> Checked<Needed> {
        let set = self.own_set(&path.field("put"), &spec.put)?;
        let copies = bounded(&path.field("copies"), spec.copies, MEMBERS_MAX)?;
        self.own_sizes(set)?;
        Ok((Work::Fanout { set, copies }, vec![Ability::Fanout]))
    }

    fn retention(&self, path: &FieldPath, spec: &RetentionSpec) -> Checked<Needed> {
        let set = self.own_set(&path.field("of"), &spec.of)?;
        let pick = choice(&path.field("pick"), &spec.pick)?;
        match spec.hold.0.is_zero() {
            true => Err(path.field("hold").refuse("must be longer than 0s")),
            false => {
                let work = Work::Retention { set, hold: spec.hold.0, pick };
                Ok((work, vec![Ability::Versions, Ability::Retention]))
            }
        }
    }

    /// Returns sets, each once and of a kind that `allowed` knows the needs of.
    fn several(
        &self,
        path: &FieldPath,
        names: &OneOrMany<String>,
        allowed: impl Fn(&FieldPath, &str, &Members) -> Checked<Vec<Ability>>,
    ) -> Checked<(Vec<SetIndex>, Vec<Ability>)> {
        if names.is_empty() {
            return Err(path.refuse("there is no set"));
        }
        let (mut sets, mut needs) = (Vec::new(), Vec::new());
        for (index, name) in names.0.iter().enumerate() {
            let at = if names.0.len() == 1 { path.clone() } else { path.index(index) };
            let set = self.set_named(&at, name)?;
            if sets.contains(&set) {
                return Err(at.refuse(format!("set `{name}` appears twice")));
            }
            needs.extend(allowed(&at, name, self.members(set))?);
            sets.push(set);
        }
        Ok((sets, needs))
    }

    fn fill(&self, path: &FieldPath, spec: &FillSpec) -> Checked<Needed> {
        let allowed = |at: &FieldPath, name: &str, members: &Members| match members {
            Members::Objects(objects) if objects.count == 0 && objects.traced.is_none() => {
                Err(at.refuse(format!("set `{name}` has no count, so there is nothing to fill")))
            }
            Members::Objects(objects) => Ok(match (objects.part_bytes, objects.versions) {
                (Some(_), _) => vec![Ability::Parts],
                (None, 1) => vec![Ability::Put],
                (None, _) => vec![Ability::Put, Ability::Versions],
            }),
            Members::Named(named) if named.sizes.is_some() || named.files.is_some() => {
                Ok(vec![if named.part_bytes.is_some() { Ability::Parts } else { Ability::Put }])
            }
            Members::Named(_) => {
                Err(at.refuse(format!("set `{name}` has no size, which a fill needs to know")))
            }
            Members::Files(files) if !files.are_there() => Ok(vec![Ability::Blocks]),
            Members::Files(_) | Members::Existing(_) => {
                Err(at.refuse(format!("set `{name}` was there before and is not filled")))
            }
            Members::Tree(_) => Err(at.refuse(format!(
                "set `{name}` is a tree; make it by work on names (make_tree, create)"
            ))),
        };
        let in_map = spec.block.0 != 1 << 20 || spec.direct;
        let at = if in_map { path.field("sets") } else { path.clone() };
        let (sets, needs) = self.several(&at, &spec.sets, allowed)?;
        let in_parts = |set: &SetIndex| match self.members(*set) {
            Members::Objects(objects) => objects.part_bytes.map(|_| objects.count),
            _ => None,
        };
        // All parts of a set's only member are written by all workers of the job together.
        let odd = sets.iter().position(|set| in_parts(set) == Some(1));
        let is_as_first = |set: &SetIndex| in_parts(set).is_some() == in_parts(&sets[0]).is_some();
        let odd = odd.or_else(|| sets.iter().position(|set| !is_as_first(set)));
        if let Some(odd) = odd.filter(|_| sets.len() > 1) {
            return Err(at
                .index(odd)
                .refuse("sets whose members are uploaded in parts are filled by a separate job"));
        }
        super::blocks::block(&path.field("block"), spec.block.0, spec.direct)?;
        let block_bytes = spec.block.0 as u32;
        Ok((Work::Fill { sets, block_bytes, direct: spec.direct }, needs))
    }

    fn remove(&self, path: &FieldPath, spec: &RemoveSpec) -> Checked<Needed> {
        let batch = bounded(&path.field("batch"), spec.batch, super::mix::BATCH_MAX)?;
        let delete = if batch.get() > 1 { Ability::DeleteMany } else { Ability::Delete };
        let allowed = |at: &FieldPath, name: &str, members: &Members| match members {
            Members::Files(files) if files.are_there() => {
                Err(at.refuse(format!("set `{name}` was there before; its files are not removed")))
            }
            Members::Files(_) | Members::Tree(_) => Ok(vec![Ability::Names]),
            Members::Objects(_) | Members::Named(_) | Members::Existing(_) => Ok(vec![delete]),
        };
        let at = if spec.batch > 1 { path.field("sets") } else { path.clone() };
        let (sets, needs) = self.several(&at, &spec.sets, allowed)?;
        Ok((Work::Remove { sets, batch }, needs))
    }

    fn read_back(&self, path: &FieldPath, names: &OneOrMany<String>) -> Checked<Needed> {
        let allowed = |at: &FieldPath, name: &str, members: &Members| match members {
            // A member is then one content under one key, which this run knows.
            Members::Objects(objects) if objects.versions == 1 && objects.archive.is_none() => {
                Ok(vec![Ability::Get])
            }
            _ => Err(at.refuse(format!(
                "set `{name}` cannot be read back: only whole, unversioned objects of the run can"
            ))),
        };
        let (sets, needs) = self.several(path, names, allowed)?;
        Ok((Work::ReadBack(sets), needs))
    }

    fn buckets(&self, path: &FieldPath, spec: &BucketsSpec) -> Checked<Needed> {
        let allowed = |at: &FieldPath, name: &str, members: &Members| match members {
            Members::Named(named) if named.buckets.is_some() => Ok(vec![Ability::Buckets]),
            _ => Err(at.refuse(format!("set `{name}` names no buckets"))),
        };
        let (BucketsSpec::Make(names) | BucketsSpec::Remove(names)) = spec;
        let (field, is_make) = match spec {
            BucketsSpec::Make(_) => ("make", true),
            BucketsSpec::Remove(_) => ("remove", false),
        };
        let (sets, needs) = self.several(&path.field(field), names, allowed)?;
        let work = if is_make { Work::MakeBuckets(sets) } else { Work::RemoveBuckets(sets) };
        Ok((work, needs))
    }
}

/// Returns how large members of a set are that work writes.
pub(super) fn set_sizes(cx: &Context<'_>, path: &FieldPath, set: SetIndex) -> Checked<SizeDist> {
    let sizes = match cx.members(set) {
        Members::Objects(objects) => objects.sizes.as_ref(),
        Members::Named(named) => named.sizes.as_ref(),
        _ => None,
    };
    match sizes {
        Some(sizes) if sizes.max() > PUT_BYTES_MAX => {
            let most = Bytes(PUT_BYTES_MAX);
            Err(path.refuse(format!("members of more than {most} are only written in parts")))
        }
        Some(sizes) => Ok(sizes.clone()),
        None => {
            let name = &cx.sets[set.0].name;
            Err(path.refuse(format!("is missing, and set `{name}` has no size either")))
        }
    }
}

/// Returns the choice, where its numbers are sound.
pub(super) fn choice(path: &FieldPath, choice: &Choice) -> Checked<Choice> {
    match choice {
        Choice::Zipf(theta) if !(*theta > 0.0 && *theta <= 10.0 && *theta != 1.0) => {
            let reason = format!("{theta} is out of range: above 0, at most 10 and not 1");
            Err(path.field("zipf").refuse(reason))
        }
        Choice::Shares(shares) => {
            number_shares(&path.field("shares"), shares)?;
            Ok(choice.clone())
        }
        _ => Ok(choice.clone()),
    }
}

/// Refuses shares of numbers that mean nothing.
pub(super) fn number_shares(path: &FieldPath, shares: &Shares<NumberRange>) -> Checked<()> {
    if shares.0.is_empty() {
        return Err(path.refuse("there is none"));
    }
    let mut sum: u64 = 0;
    for (index, share) in shares.0.iter().enumerate() {
        let each = path.index(index);
        super::at_least_one(&each, share.weight)?;
        if share.value.from == 0 || share.value.from > share.value.to {
            return Err(each.refuse("numbers count from 1 on, the first not above the last"));
        }
        let total = sum.checked_add(share.weight);
        sum = total.ok_or_else(|| each.refuse("the weights are too large"))?;
    }
    Ok(())
}

pub(super) fn bounded(path: &FieldPath, value: u32, most: u32) -> Checked<NonZeroU32> {
    in_range(path, value.into(), most)?;
    Ok(NonZeroU32::new(value).expect("it was checked"))
}
