//! What makes no sense in a run on files, each refusal in one sentence.

use std::fmt::Display;

use plimsoll_model::ObjectId;

use super::greatest_common;
use super::spec::{
    BlockOrderSpec, BlockSizesSpec, BlocksSpec, CapSpec, FILES_SCHEMA, FileJobSpec, FilePacingSpec,
    FileStageSpec, FileWorkSpec, FilesSpec, FillSpec, JobFilesSpec, NameActSpec, NamesSpec,
    SpanSpec, ThinkSpec,
};
use super::table::below;
use crate::{InvalidWorkload, OpenLoop};

/// What the page cache can be passed by in multiples of.
pub(super) const SECTOR_BYTES: u64 = 512;
/// A stage's and a job's number are kept in one byte.
const STAGES_MAX: usize = 256;
const JOBS_MAX: usize = 256;
const CLONES_MAX: u32 = 1_000_000;
const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// The largest place of a sector in an object's number is below 2^40.
const FILE_BYTES_MAX: u64 = (ObjectId::NUMBER_MAX + 1) * SECTOR_BYTES;
/// More entries of a clone than this are a slip of the pen.
const ENTRIES_MAX: u64 = 1 << 40;

type Checked = Result<(), InvalidWorkload>;

impl BlockSizesSpec {
    /// Returns the smallest size.
    pub(crate) fn smallest(&self) -> u64 {
        match self {
            Self::FixedBytes(size) => *size,
            Self::RangeBytes(span) => span.min,
            Self::Shares(shares) => {
                let drawn = shares.iter().filter(|share| share.weight > 0);
                drawn.map(|share| share.size_bytes).min().unwrap_or(0)
            }
        }
    }

    /// Returns the largest size.
    fn largest(&self) -> u64 {
        match self {
            Self::FixedBytes(size) => *size,
            Self::RangeBytes(span) => span.max - span.max % span.min.max(1),
            Self::Shares(shares) => {
                let drawn = shares.iter().filter(|share| share.weight > 0);
                drawn.map(|share| share.size_bytes).max().unwrap_or(0)
            }
        }
    }

    /// Returns what every size is a multiple of.
    fn common(&self) -> u64 {
        match self {
            Self::FixedBytes(_) | Self::RangeBytes(_) => self.smallest(),
            Self::Shares(shares) => {
                let drawn = shares.iter().filter(|share| share.weight > 0);
                drawn.fold(0, |common, share| greatest_common(common, share.size_bytes))
            }
        }
    }
}

impl BlocksSpec {
    /// Tells whether blocks are read.
    pub(super) const fn reads(&self) -> bool {
        self.read_percent > 0
    }

    /// Tells whether blocks are written.
    pub const fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// Returns the sizes that are used.
    fn sizes(&self) -> impl Iterator<Item = (&'static str, &BlockSizesSpec)> {
        let reads = self.reads().then_some(("work.blocks.read_blocks", &self.read_blocks));
        let writes = self.writes().then_some(("work.blocks.write_blocks", &self.write_blocks));
        reads.into_iter().chain(writes)
    }

    /// Returns the size of the smallest block.
    pub(super) fn unit(&self) -> u64 {
        self.sizes().map(|(_, sizes)| sizes.smallest()).min().unwrap_or(0)
    }

    /// Returns the size of the largest block.
    pub(super) fn largest(&self) -> u64 {
        self.sizes().map(|(_, sizes)| sizes.largest()).max().unwrap_or(0)
    }

    /// Returns what the length of every block is a multiple of.
    pub(super) fn common(&self) -> u64 {
        self.sizes().fold(0, |common, (_, sizes)| greatest_common(common, sizes.common()))
    }
}

/// The place of a job in the spec.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) stage: usize,
    pub(super) job: usize,
}

impl Place {
    /// Returns the refusal of a field of the job.
    pub(super) fn invalid(self, field: &str, reason: impl Into<String>) -> InvalidWorkload {
        let field = format!("stages[{}].jobs[{}].{field}", self.stage, self.job);
        InvalidWorkload { field: field.into(), reason: reason.into() }
    }

    fn refuse<T: Into<String>>(self, if_so: bool, field: &str, reason: impl Fn() -> T) -> Checked {
        if if_so { Err(self.invalid(field, reason())) } else { Ok(()) }
    }

    fn at_least_one(self, field: &str, value: impl Into<u64>) -> Checked {
        self.refuse(value.into() == 0, field, || "must be at least 1")
    }

    fn at_most(
        self,
        field: &str,
        value: impl Into<u64>,
        most: impl Into<u64> + Display,
    ) -> Checked {
        let most_shown = most.to_string();
        self.refuse(value.into() > most.into(), field, || format!("must be at most {most_shown}"))
    }

    fn span(self, field: &str, span: SpanSpec) -> Checked {
        let SpanSpec { min, max } = span;
        self.refuse(min > max, field, || format!("the least, {min}, is above the most, {max}"))
    }
}

/// Refuses a spec that is not sound.
pub(super) fn spec(spec: &FilesSpec) -> Checked {
    let refuse = |field: String, reason: String| -> Checked {
        Err(InvalidWorkload { field: field.into(), reason })
    };
    if spec.schema != FILES_SCHEMA {
        return refuse("schema".into(), format!("`{}` is not {FILES_SCHEMA}", spec.schema));
    }
    if spec.stages.is_empty() {
        return refuse("stages".into(), "there is none".into());
    }
    if spec.stages.len() > STAGES_MAX {
        let reason = format!("{} are too many; at most {STAGES_MAX}", spec.stages.len());
        return refuse("stages".into(), reason);
    }
    for (index, stage) in spec.stages.iter().enumerate() {
        if let Err(reason) = check_stage(stage) {
            return refuse(format!("stages[{index}].jobs"), reason);
        }
        for (number, job) in stage.jobs.iter().enumerate() {
            check_job(Place { stage: index, job: number }, job)?;
        }
    }
    Ok(())
}

fn check_stage(stage: &FileStageSpec) -> Result<(), String> {
    let count = stage.jobs.len();
    if count == 0 {
        return Err("there is none".to_owned());
    }
    if count > JOBS_MAX {
        return Err(format!("{count} are too many; at most {JOBS_MAX} in one stage"));
    }
    let workers: u64 = stage.jobs.iter().map(|job| u64::from(job.clones)).sum();
    if workers > u64::from(ObjectId::OWNER_MAX) {
        return Err(format!(
            "{workers} clones in all are too many; at most {}",
            ObjectId::OWNER_MAX
        ));
    }
    Ok(())
}

fn check_job(at: Place, job: &FileJobSpec) -> Checked {
    at.at_least_one("clones", job.clones)?;
    at.at_most("clones", job.clones, CLONES_MAX)?;
    at.at_least_one("depth", job.depth)?;
    at.span("start_delay_ns", job.start_delay_ns)?;
    at.at_least_one("duration_ns", job.duration_ns.unwrap_or(1))?;
    at.at_least_one("ops_max", job.ops_max.unwrap_or(1))?;
    at.at_least_one("bytes_max", job.bytes_max.unwrap_or(1))?;
    check_pacing(at, &job.pacing)?;
    if let Some(ThinkSpec { pause_ns, spin_ns, every_ops }) = job.think {
        at.at_least_one("think.every_ops", every_ops)?;
        at.refuse(spin_ns > pause_ns, "think.spin_ns", || "must be at most `pause_ns`")?;
    }
    match &job.work {
        FileWorkSpec::Fill(fill) => check_fill(at, fill),
        FileWorkSpec::Blocks(blocks) => {
            let ends = job.duration_ns.or(job.ops_max).or(job.bytes_max).is_some();
            at.refuse(
                blocks.repeats && !ends,
                "work.blocks.repeats",
                || "without `duration_ns`, `ops_max` or `bytes_max` it never ends",
            )?;
            check_blocks(at, job.clones, blocks)
        }
        FileWorkSpec::Names(names) => check_names(at, job, names),
    }
}

fn check_pacing(at: Place, pacing: &FilePacingSpec) -> Checked {
    match pacing {
        FilePacingSpec::Closed => Ok(()),
        FilePacingSpec::Capped { read, write, .. } => {
            let is_bad = |cap: Option<CapSpec>| match cap {
                Some(CapSpec::BytesPerSec(rate) | CapSpec::OpsPerSec(rate)) => {
                    !(rate > 0.0 && rate.is_finite())
                }
                None => false,
            };
            at.refuse(is_bad(*read), "pacing.capped.read", || "the rate must be above 0")?;
            at.refuse(is_bad(*write), "pacing.capped.write", || "the rate must be above 0")?;
            at.refuse(read.is_none() && write.is_none(), "pacing.capped", || "there is no cap")
        }
        FilePacingSpec::Open { rate, arrivals, max_in_flight } => {
            let open = OpenLoop::parse(rate, arrivals, *max_in_flight);
            open.map(drop)
                .map_err(|(field, reason)| at.invalid(&format!("pacing.open.{field}"), reason))
        }
    }
}

fn check_files(at: Place, field: &str, clones: u32, files: &JobFilesSpec) -> Checked {
    let field = |name: &str| format!("{field}.{name}");
    at.span(&field("size_bytes"), files.size_bytes)?;
    at.at_most(&field("size_bytes"), files.size_bytes.max, FILE_BYTES_MAX)?;
    if files.existing {
        return at.refuse(
            files.names.is_empty(),
            &field("names"),
            || "files that exist have to be named",
        );
    }
    let no_directory =
        files.directories.is_empty() || files.directories.iter().any(String::is_empty);
    at.refuse(no_directory, &field("directories"), || "at least one is needed, none empty")?;
    for name in &files.names {
        below(name).map_err(|reason| at.invalid(&field("names"), reason))?;
    }
    if files.names.is_empty() {
        at.at_least_one(&field("count"), files.count)?;
        let count = u64::from(clones) * u64::from(files.count);
        at.refuse(count > u64::from(ObjectId::OWNER_MAX), &field("count"), || {
            format!("{count} files in all are too many; at most {}", ObjectId::OWNER_MAX)
        })?;
        below(&files.name_format).map_err(|reason| at.invalid(&field("name_format"), reason))?;
    }
    Ok(())
}

fn check_fill(at: Place, fill: &FillSpec) -> Checked {
    let block = u64::from(fill.block_bytes);
    check_block(at, "work.fill.block_bytes", block, fill.direct)?;
    for (index, of) in fill.files.iter().enumerate() {
        let field = format!("work.fill.files[{index}]");
        at.at_least_one(&format!("{field}.clones"), of.clones)?;
        at.at_most(&format!("{field}.clones"), of.clones, CLONES_MAX)?;
        check_files(at, &format!("{field}.files"), of.clones, &of.files)?;
    }
    Ok(())
}

fn check_block(at: Place, field: &str, size: u64, direct: bool) -> Checked {
    at.refuse(size == 0, field, || "a block needs at least one byte")?;
    at.refuse(size > BLOCK_BYTES_MAX, field, || {
        format!("a block of {size} bytes is too large; at most 1 GiB")
    })?;
    at.refuse(direct && !size.is_multiple_of(SECTOR_BYTES), field, || {
        format!("a block of {size} bytes is no multiple of {SECTOR_BYTES}, which `direct` needs")
    })
}

fn check_sizes(at: Place, field: &str, sizes: &BlockSizesSpec, direct: bool) -> Checked {
    match sizes {
        BlockSizesSpec::FixedBytes(size) => check_block(at, field, *size, direct),
        BlockSizesSpec::RangeBytes(span) => {
            at.span(field, *span)?;
            check_block(at, field, span.min, direct)?;
            check_block(at, field, sizes.largest(), direct)
        }
        BlockSizesSpec::Shares(shares) => {
            at.refuse(
                shares.iter().all(|share| share.weight == 0),
                field,
                || "there is no share with a weight above 0",
            )?;
            let mut drawn = shares.iter().filter(|share| share.weight > 0);
            drawn.try_for_each(|share| check_block(at, field, share.size_bytes, direct))
        }
    }
}

fn check_blocks(at: Place, clones: u32, blocks: &BlocksSpec) -> Checked {
    at.at_most("work.blocks.read_percent", blocks.read_percent, 100u32)?;
    check_files(at, "work.blocks.files", clones, &blocks.files)?;
    for (field, sizes) in blocks.sizes() {
        check_sizes(at, field, sizes, blocks.direct)?;
    }
    let (unit, size) = (blocks.unit(), blocks.files.size_bytes.min);
    at.refuse(size < unit, "work.blocks.files.size_bytes", || {
        format!("a file of {size} bytes holds no block of {unit}")
    })?;
    let JobFilesSpec { existing, destroys, .. } = blocks.files;
    at.refuse(
        blocks.writes() && existing && !destroys,
        "work.blocks.files.destroys",
        || "writing to files that exist destroys what is in them and has to be allowed",
    )?;
    at.at_least_one("work.blocks.fsync_every", blocks.fsync_every.unwrap_or(1))?;
    at.at_least_one("work.blocks.fdatasync_every", blocks.fdatasync_every.unwrap_or(1))?;
    check_order(at, blocks.order)
}

fn check_order(at: Place, order: BlockOrderSpec) -> Checked {
    let field = "work.blocks.order";
    match order {
        BlockOrderSpec::Sequential | BlockOrderSpec::EachOnce | BlockOrderSpec::Uniform => Ok(()),
        BlockOrderSpec::Zipf { theta } => {
            let sound = theta > 0.0 && theta.is_finite() && theta != 1.0;
            at.refuse(!sound, field, || format!("theta must be above 0 and not 1, not {theta}"))
        }
        BlockOrderSpec::Pareto { h } => {
            let sound = h > 0.0 && h < 1.0;
            at.refuse(!sound, field, || format!("h must be between 0 and 1, not {h}"))
        }
        BlockOrderSpec::Normal { deviation_percent: deviation } => {
            let sound = deviation > 0.0 && deviation <= 100.0;
            at.refuse(!sound, field, || {
                format!("the deviation must be above 0 and at most 100 percent, not {deviation}")
            })
        }
    }
}

fn check_names(at: Place, job: &FileJobSpec, names: &NamesSpec) -> Checked {
    let NamesSpec { tree, act, shift, shuffled } = names;
    let no_directory = tree.directories.is_empty() || tree.directories.iter().any(String::is_empty);
    let directories = "work.names.tree.directories";
    at.refuse(no_directory, directories, || "at least one is needed, none empty")?;
    at.refuse(
        tree.directories.len() > 1 && !tree.per_clone,
        directories,
        || "only trees of each clone's own can lie in several directories",
    )?;
    let name = below(&tree.name).map_err(|reason| at.invalid("work.names.tree.name", reason))?;
    at.refuse(name != tree.name, "work.names.tree.name", || {
        format!("`{}` has a shorter form, `{name}`", tree.name)
    })?;
    at.at_least_one("work.names.tree.branching", tree.branching)?;
    at.at_least_one("work.names.tree.entries_per_directory", tree.entries_per_directory)?;
    at.refuse(tree.directories_count().is_none(), "work.names.tree.depth", || {
        format!("{} levels of {} directories each are too many", tree.depth, tree.branching)
    })?;
    let entries = tree.entries_count().filter(|count| *count <= ENTRIES_MAX);
    at.refuse(entries.is_none(), "work.names.tree.entries_per_directory", || {
        format!("more than {ENTRIES_MAX} entries for each clone are too many")
    })?;
    at.refuse(*shift >= job.clones, "work.names.shift", || {
        format!("a shift of {shift} needs more than {} clones", job.clones)
    })?;
    let shared = tree.shared_names && tree.of_directories;
    at.refuse(shared, "work.names.tree.shared_names", || "only files can be shared")?;
    let field = "work.names.act";
    match act {
        NameActSpec::Create { bytes, .. } | NameActSpec::Open { bytes } => {
            let size = u64::from(*bytes);
            at.at_most(field, size, BLOCK_BYTES_MAX)?;
            let is_open = matches!(act, NameActSpec::Open { .. });
            at.refuse(
                tree.of_directories && (size > 0 || is_open),
                field,
                || "directories hold no bytes and are not opened",
            )
        }
        NameActSpec::Rename => {
            at.refuse(*shuffled, field, || "entries are renamed in order")?;
            at.refuse(
                tree.shared_names && job.clones > 1,
                field,
                || "clones cannot rename the same entries",
            )
        }
        NameActSpec::MakeTree | NameActSpec::RemoveTree => {
            at.refuse(*shuffled, field, || "the directories of a tree come in order")
        }
        NameActSpec::Stat | NameActSpec::Remove => Ok(()),
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
