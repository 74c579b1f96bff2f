//! Checks work on blocks of files and on names.

use plimsoll_model::Bytes;

use super::{Checked, Context, at_least_one};
use crate::files::{BlockOrderSpec, BlockShareSpec, BlockSizesSpec, NameActSpec, SpanSpec};
use crate::plan::checked::Members;
use crate::plan::path::FieldPath;
use crate::plan::spec::{BlockLaw, BlockOrder, BlockSizes, BlocksSpec, JobSpec, NamesSpec};
use crate::plan::units::{Percent, SizeRange};
use crate::plan::work::{Blocks, Work};
use plimsoll_model::Ability;

/// What the page cache can be passed by in multiples of.
const SECTOR_BYTES: u64 = 512;
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
        let read = spec.read.as_ref().map(|read| sizes(&read_at, &read.block, spec.direct));
        let write = spec.write.as_ref().map(|write| sizes(&write_at, &write.block, spec.direct));
        let (read, write) = (read.transpose()?, write.transpose()?);
        let smallest = files.spec.size_bytes.min;
        for (at, sizes) in [(&read_at, &read), (&write_at, &write)] {
            let unit = sizes.as_ref().map_or(0, BlockSizesSpec::smallest);
            if smallest < unit {
                let (file, block) = (Bytes(smallest), Bytes(unit));
                return Err(at.refuse(format!("a file of {file} holds no block of {block}")));
            }
        }
        for (field, every) in
            [("fsync_every", spec.fsync_every), ("fdatasync_every", spec.fdatasync_every)]
        {
            at_least_one(&path.field(field), every.unwrap_or(1))?;
        }
        let either = || read.clone().or_else(|| write.clone());
        let unused = BlockSizesSpec::FixedBytes(SECTOR_BYTES);
        let blocks = Blocks {
            set,
            read_percent,
            read: read.clone().or_else(either).unwrap_or(unused.clone()),
            write: write.clone().or_else(either).unwrap_or(unused),
            order: order(&path.field("order"), spec.order)?,
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
            NamesSpec::MakeTree(of) => {
                ("make_tree", &of.make_tree, NameActSpec::MakeTree, false, 0)
            }
            NamesSpec::Create(of) => {
                let act = NameActSpec::Create { bytes: bytes(of.bytes.0), fsync: of.fsync };
                ("create", &of.create, act, of.shuffled, of.bytes.0)
            }
            NamesSpec::Stat(of) => ("stat", &of.stat, NameActSpec::Stat, of.shuffled, 0),
            NamesSpec::Open(of) => {
                let act = NameActSpec::Open { bytes: bytes(of.bytes.0) };
                ("open", &of.open, act, of.shuffled, of.bytes.0)
            }
            NamesSpec::Rename(of) => ("rename", &of.rename, NameActSpec::Rename, false, 0),
            NamesSpec::Remove(of) => ("remove", &of.remove, NameActSpec::Remove, of.shuffled, 0),
            NamesSpec::RemoveTree(of) => {
                ("remove_tree", &of.remove_tree, NameActSpec::RemoveTree, false, 0)
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
        let is_open = matches!(act, NameActSpec::Open { .. });
        if tree.of_directories && (size > 0 || is_open) {
            return Err(at.refuse("directories hold no bytes and are not opened"));
        }
        if act == NameActSpec::Rename && tree.shared_names && job.workers > 1 {
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
                let reason = "says nothing without writes; leave it out";
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

fn sizes(path: &FieldPath, sizes: &BlockSizes, direct: bool) -> Checked<BlockSizesSpec> {
    match sizes {
        BlockSizes::Fixed(size) => {
            block(path, size.0, direct)?;
            Ok(BlockSizesSpec::FixedBytes(size.0))
        }
        BlockSizes::Drawn(BlockLaw::Range(SizeRange { min, max })) => {
            let at = path.field("range");
            if min > max {
                return Err(at.refuse("the smallest is above the largest"));
            }
            block(&at, *min, direct)?;
            block(&at, max - max % min, direct)?;
            Ok(BlockSizesSpec::RangeBytes(SpanSpec { min: *min, max: *max }))
        }
        BlockSizes::Drawn(BlockLaw::Shares(shares)) => {
            let at = path.field("shares");
            if !(1..=SHARES_MAX).contains(&shares.0.len()) {
                let count = shares.0.len();
                let reason = format!("{count} shares are out of range: 1 to {SHARES_MAX}");
                return Err(at.refuse(reason));
            }
            let mut found = Vec::with_capacity(shares.0.len());
            for (index, share) in shares.0.iter().enumerate() {
                let each = at.index(index);
                block(&each, share.value.0, direct)?;
                super::in_range(&each, share.weight, u32::MAX)?;
                let (size_bytes, weight) = (share.value.0, share.weight as u32);
                found.push(BlockShareSpec { size_bytes, weight });
            }
            Ok(BlockSizesSpec::Shares(found))
        }
    }
}

fn order(path: &FieldPath, order: BlockOrder) -> Checked<BlockOrderSpec> {
    let number = |field: &str, value: f64, sound: bool, range: &str| match sound {
        true => Ok(value),
        false => Err(path.field(field).refuse(format!("{value} is out of range: {range}"))),
    };
    Ok(match order {
        BlockOrder::Sequential => BlockOrderSpec::Sequential,
        BlockOrder::EachOnce => BlockOrderSpec::EachOnce,
        BlockOrder::Uniform => BlockOrderSpec::Uniform,
        BlockOrder::Zipf(theta) => {
            let sound = theta > 0.0 && theta.is_finite() && theta != 1.0;
            BlockOrderSpec::Zipf { theta: number("zipf", theta, sound, "above 0 and not 1")? }
        }
        BlockOrder::Pareto(h) => {
            let sound = h > 0.0 && h < 1.0;
            BlockOrderSpec::Pareto { h: number("pareto", h, sound, "between 0 and 1")? }
        }
        BlockOrder::Normal(Percent(deviation)) => {
            let sound = deviation > 0.0 && deviation <= 100.0;
            let deviation_percent = number("normal", deviation, sound, "above 0% to 100%")?;
            BlockOrderSpec::Normal { deviation_percent }
        }
    })
}
