//! Checks work on blocks of files and on names.

use plimsoll_model::Bytes;

use super::{Checked, Context, at_least_one};
use crate::files::NameAct;
use crate::plan::checked::Members;
use crate::plan::path::FieldPath;
use crate::plan::spec::{
    BlockLaw, BlockOrder, BlockSizes, BlocksSpec, JobSpec, NamesSpec, SECTOR_BYTES,
};
use crate::plan::units::{Percent, Size, SizeRange};
use crate::plan::work::{Blocks, Work};
use plimsoll_model::Ability;

/// The largest block.
const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// The most shares of blocks of one operation.
const SHARES_MAX: usize = 10_000;

impl Context<'_> {
    /// Returns work on blocks, and what it needs.
    pub(super) fn blocks(
        &self,
        path: &FieldPath,
        spec: &BlocksSpec,
    ) -> Checked<(Work, Vec<Ability>)> {
        let at = path.field("on");
        let set = self.set_named(&at, &spec.on)?;
        let Members::Files(files) = self.members(set) else {
            return Err(at.refuse(format!("set `{}` does not consist of files", spec.on)));
        };
        let read_percent = read_percent(path, spec)?;
        let read_at = path.field("read.block");
        let write_at = path.field("write.block");
        let read = spec.read.as_ref().map(|read| &read.block);
        let write = spec.write.as_ref().map(|write| &write.block);
        let asked = [(&read_at, read), (&write_at, write)];
        let asked = || asked.iter().filter_map(|(at, sizes)| Some((at, (*sizes)?)));
        asked().try_for_each(|(at, of)| sizes(at, of, spec.direct))?;
        let size = files.size.min;
        if let Some((at, of)) = asked().find(|(_, of)| size < of.smallest()) {
            let (file, block) = (Bytes(size), Bytes(of.smallest()));
            return Err(at.refuse(format!("a file of {file} holds no block of {block}")));
        }
        for (field, every) in
            [("fsync_every", spec.fsync_every), ("fdatasync_every", spec.fdatasync_every)]
        {
            at_least_one(&path.field(field), every.unwrap_or(1))?;
        }
        order(&path.field("order"), spec.order)?;
        let unused = BlockSizes::Fixed(Size(SECTOR_BYTES));
        let blocks = Blocks {
            set,
            read_percent,
            read: read.or(write).unwrap_or(&unused).clone(),
            write: write.or(read).unwrap_or(&unused).clone(),
            order: spec.order,
            // What it is where nothing is said, the job knows.
            repeats: spec.repeats.unwrap_or_default(),
            seed: spec.seed,
            direct: spec.direct,
            sync: spec.sync.0,
            fsync_every: spec.fsync_every,
            fdatasync_every: spec.fdatasync_every,
            end_fsync: spec.end_fsync,
            invalidates: spec.invalidates,
        };
        Ok((Work::Blocks(Box::new(blocks)), vec![Ability::Blocks]))
    }

    /// Returns work on names, and what it needs.
    pub(super) fn names(
        &self,
        path: &FieldPath,
        spec: &NamesSpec,
        job: &JobSpec,
    ) -> Checked<(Work, Vec<Ability>)> {
        let bytes = |size: u64| size.min(u32::MAX.into()) as u32;
        let (field, name, act, shuffled, size) = match spec {
            NamesSpec::MakeTree(of) => ("make_tree", &of.make_tree, NameAct::MakeTree, false, 0),
            NamesSpec::Create(of) => {
                let act = NameAct::Create { bytes: bytes(of.bytes.0), fsync: of.fsync };
                ("create", &of.create, act, of.shuffled, of.bytes.0)
            }
            NamesSpec::Stat(of) => ("stat", &of.stat, NameAct::Stat, of.shuffled, 0),
            NamesSpec::Open(of) => {
                let act = NameAct::Open { bytes: bytes(of.bytes.0) };
                ("open", &of.open, act, of.shuffled, of.bytes.0)
            }
            NamesSpec::Rename(of) => ("rename", &of.rename, NameAct::Rename, false, 0),
            NamesSpec::Remove(of) => ("remove", &of.remove, NameAct::Remove, of.shuffled, 0),
            NamesSpec::RemoveTree(of) => {
                ("remove_tree", &of.remove_tree, NameAct::RemoveTree, false, 0)
            }
        };
        let at = path.field(field);
        let set = self.set_named(&at, name)?;
        let Members::Tree(tree) = self.members(set) else {
            return Err(at.refuse(format!("set `{name}` is not a tree")));
        };
        if size > BLOCK_BYTES_MAX {
            let (size, most) = (Bytes(size), Bytes(BLOCK_BYTES_MAX));
            return Err(path
                .field("bytes")
                .refuse(format!("{size} is out of range: 0B to {most}")));
        }
        let is_open = matches!(act, NameAct::Open { .. });
        if tree.shape.of_directories && (size > 0 || is_open) {
            return Err(at.refuse("directories hold no bytes and are not opened"));
        }
        if act == NameAct::Rename && tree.shape.shared_names && job.workers > 1 {
            return Err(at.refuse("workers cannot rename the same entries"));
        }
        Ok((Work::Names { set, act, shuffled }, vec![Ability::Names]))
    }
}

fn read_percent(path: &FieldPath, spec: &BlocksSpec) -> Checked<u32> {
    match (&spec.read, &spec.write) {
        (None, None) => Err(path.refuse("must have one of the fields read, write, or both")),
        (None, Some(_)) => Ok(0),
        (Some(read), None) => match read.percent {
            None => Ok(100),
            Some(_) => {
                let reason = "has no effect without writes; leave it out";
                Err(path.field("read.percent").refuse(reason))
            }
        },
        (Some(read), Some(_)) => {
            let Percent(percent) = read.percent.unwrap_or(Percent(50.0));
            match (1.0..=99.0).contains(&percent) && percent.fract() == 0.0 {
                true => Ok(percent as u32),
                false => {
                    let reason = format!("{percent}% is out of range: 1% to 99%, a whole number");
                    Err(path.field("read.percent").refuse(reason))
                }
            }
        }
    }
}

/// Refuses a block that cannot be read or written at once.
pub(super) fn block(path: &FieldPath, size: u64, direct: bool) -> Checked<()> {
    if !(1..=BLOCK_BYTES_MAX).contains(&size) {
        let (size, most) = (Bytes(size), Bytes(BLOCK_BYTES_MAX));
        return Err(path.refuse(format!("block size {size} is out of range: 1B to {most}")));
    }
    if direct && !size.is_multiple_of(SECTOR_BYTES) {
        let size = Bytes(size);
        let reason = format!(
            "block size {size} is not a multiple of {SECTOR_BYTES} bytes, which `direct` needs"
        );
        return Err(path.refuse(reason));
    }
    Ok(())
}

fn sizes(path: &FieldPath, sizes: &BlockSizes, direct: bool) -> Checked<()> {
    match sizes {
        BlockSizes::Fixed(size) => block(path, size.0, direct),
        BlockSizes::Drawn(BlockLaw::Range(SizeRange { min, max })) => {
            let at = path.field("range");
            if min > max {
                return Err(at.refuse("the smallest is above the largest"));
            }
            block(&at, *min, direct)?;
            block(&at, *max, direct)
        }
        BlockSizes::Drawn(BlockLaw::Shares(shares)) => {
            let at = path.field("shares");
            if !(1..=SHARES_MAX).contains(&shares.0.len()) {
                let count = shares.0.len();
                let reason = format!("{count} shares are out of range: 1 to {SHARES_MAX}");
                return Err(at.refuse(reason));
            }
            for (index, share) in shares.0.iter().enumerate() {
                block(&at.index(index), share.value.0, direct)?;
                super::in_range(&at.index(index), share.weight, u32::MAX)?;
            }
            Ok(())
        }
    }
}

/// Refuses an order that is no law.
fn order(path: &FieldPath, order: BlockOrder) -> Checked<()> {
    let (field, value, is_sound, range) = match order {
        BlockOrder::Sequential | BlockOrder::EachOnce | BlockOrder::Uniform => return Ok(()),
        BlockOrder::Zipf(theta) => {
            let is_sound = theta > 0.0 && theta.is_finite() && theta != 1.0;
            ("zipf", theta, is_sound, "above 0 and not 1")
        }
        BlockOrder::Pareto(h) => ("pareto", h, h > 0.0 && h < 1.0, "between 0 and 1"),
        BlockOrder::Normal(Percent(deviation)) => {
            let is_sound = deviation > 0.0 && deviation <= 100.0;
            ("normal", deviation, is_sound, "above 0% to 100%")
        }
    };
    match is_sound {
        true => Ok(()),
        false => Err(path.field(field).refuse(format!("{value} is out of range: {range}"))),
    }
}
