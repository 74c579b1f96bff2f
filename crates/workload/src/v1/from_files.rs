//! Runs on files of version 1 as workloads of today's language.

use std::collections::BTreeMap;
use std::time::Duration;

use super::files::{
    self, BlockOrderSpec, BlockSizesSpec, CapSpec, FileJobSpec, FilePacingSpec, FileStageSpec,
    FileWorkSpec, FilesSpec, JobFilesSpec, NameActSpec, SpanSpec,
};
use super::from_objects::open;
use crate::ArrivalLaw;
use crate::plan::spec::{
    Arrivals, BlockLaw, BlockOrder, BlockSizes, BlocksSpec, CappedEach, CreateNames, DealSpec,
    FileSet, FillSpec, InterfaceSpec, JobSpec, Limit, ListedSet, MakeTree, NamesSpec, OpenNames,
    PacingSpec, PathSet, RemoveNames, RemoveTree, RenameNames, SetSpec, Share, Shares, StatNames,
    SyncSpec, ThinkSpec, TreeSet, WorkSpec, WorkStage, WorkloadFile,
};
use crate::plan::{
    Cap, FieldPath, FilesIn, InvalidField, OnFiles, Percent, Size, SizeRange, Time, TimeRange,
};

type Converted<T> = Result<T, InvalidField>;

/// The fields of version 1 that a workload of today's language comes from.
#[derive(Default)]
pub(super) struct Origins {
    /// The field of the files or the tree of each set, by the set's name.
    pub(super) sets: BTreeMap<String, String>,
    /// Whether a stage was put first.
    pub(super) prepares: bool,
}

impl TryFrom<&FilesSpec> for WorkloadFile {
    /// The field of version 1 whose text says nothing that could be converted: what version 1
    /// refuses too.
    type Error = InvalidField;

    fn try_from(spec: &FilesSpec) -> Converted<Self> {
        Ok(convert(spec)?.0)
    }
}

/// Returns what a run comes to, and what of it comes from where.
pub(super) fn convert(spec: &FilesSpec) -> Converted<(WorkloadFile, Origins)> {
    let mut to = Conversion::default();
    for (index, stage) in spec.stages.iter().enumerate() {
        to.stage(&FieldPath::root().field("stages").index(index), stage)?;
    }
    let Conversion { on_files, mut origins } = to;
    origins.prepares = on_files.prepares();
    let file = on_files.workload(&spec.name, Some(spec.seed));
    Ok((WorkloadFile { verify: spec.verify, ..file }, origins))
}

/// A run while it is converted.
#[derive(Default)]
struct Conversion {
    on_files: OnFiles,
    origins: Origins,
}

impl Conversion {
    /// Returns files or names for a set. As each label is another, the set is called by that of the
    /// field which it was made for first.
    fn files_in(&mut self, at: &FieldPath, directories: &[String], set: SetSpec) -> FilesIn {
        let word = if matches!(set, SetSpec::Tree(_)) { "t" } else { "f" };
        let label = format!("{word}{}", self.origins.sets.len() + 1);
        self.origins.sets.insert(label.clone(), at.to_string());
        FilesIn { label, directories: directories.to_vec(), set }
    }

    /// Returns the files of a job.
    fn files(&mut self, at: &FieldPath, job: &str, clones: u32, files: &JobFilesSpec) -> FilesIn {
        let JobFilesSpec { names, name_format, .. } = files;
        let size = SizeRange { min: files.size_bytes.min, max: files.size_bytes.max };
        if files.existing {
            let (paths, touch) = (names.clone(), files.destroys);
            let set = PathSet { on: None, paths, size, touch };
            return self.files_in(at, &[], SetSpec::Paths(set));
        }
        // Names that do not tell jobs or clones apart are the same for all of them.
        let is_own = name_format.contains("$jobnum") || files.directories.len() > 1;
        let set = match names.is_empty() {
            false => SetSpec::Listed(ListedSet { on: None, names: names.clone(), size }),
            true => SetSpec::Files(FileSet {
                on: None,
                files: files.count,
                size,
                name: name_format.clone(),
                workers: (is_own && clones > 1).then_some(clones),
                job: name_format.contains("$jobname").then(|| job.to_owned()),
            }),
        };
        self.files_in(at, &files.directories, set)
    }

    fn stage(&mut self, at: &FieldPath, stage: &FileStageSpec) -> Converted<()> {
        let mut jobs = Vec::with_capacity(stage.jobs.len());
        for (index, job) in stage.jobs.iter().enumerate() {
            jobs.push(self.job(&at.field("jobs").index(index), job)?);
        }
        self.on_files.stage(WorkStage {
            prepares: stage.prepares,
            iteration: stage.iteration,
            drop_caches: stage.drop_caches,
            end_on_failure: stage.end_on_failure,
            ..WorkStage::of(&stage.name, jobs)
        });
        Ok(())
    }

    fn job(&mut self, at: &FieldPath, job: &FileJobSpec) -> Converted<JobSpec> {
        let time = |ns: u64| Time(Duration::from_nanos(ns));
        let shift = if let FileWorkSpec::Names(names) = &job.work { names.shift } else { 0 };
        Ok(JobSpec {
            name: Some(job.name.clone()),
            depth: job.depth,
            pacing: pacing(at, &job.pacing)?,
            duration: job.duration_ns.map(time),
            ops: job.ops_max.map(|each| Limit::Each { each }),
            bytes: job.bytes_max.map(|each| Limit::Each { each: Size(each) }),
            ramp: time(job.ramp_ns),
            start_delay: TimeRange {
                min: Duration::from_nanos(job.start_delay_ns.min),
                max: Duration::from_nanos(job.start_delay_ns.max),
            },
            think: job.think.map(|think| ThinkSpec {
                pause: time(think.pause_ns),
                spin: time(think.spin_ns),
                every: think.every_ops,
            }),
            group: Some(job.group),
            interface: job.interface.map(InterfaceSpec),
            deal: DealSpec { shift, ..DealSpec::default() },
            ..JobSpec::of(job.clones, self.work(&at.field("work"), job))
        })
    }

    fn work(&mut self, at: &FieldPath, job: &FileJobSpec) -> WorkSpec {
        match &job.work {
            FileWorkSpec::Fill(fill) => {
                let own = fill.files.iter().enumerate().filter(|(_, of)| !of.files.existing);
                let all: Vec<FilesIn> = own
                    .map(|(index, of)| {
                        let at = at.field("fill.files").index(index).field("files");
                        self.files(&at, &of.job, of.clones, &of.files)
                    })
                    .collect();
                let (block, direct) = (Size(fill.block_bytes.into()), fill.direct);
                WorkSpec::Fill(FillSpec { block, direct, ..self.on_files.fill(&all) })
            }
            FileWorkSpec::Blocks(blocks) => {
                let at = at.field("blocks.files");
                let files = self.files(&at, &job.name, job.clones, &blocks.files);
                self.on_files.blocks(&files, convert_blocks(blocks))
            }
            FileWorkSpec::Names(names) => {
                let tree = TreeSet { on: None, tree: names.tree.shape() };
                let (at, set) = (at.field("names.tree"), SetSpec::Tree(tree));
                let tree = self.files_in(&at, &names.tree.directories, set);
                self.on_files.names(&tree, |set| convert_names(set, names))
            }
        }
    }
}

fn pacing(at: &FieldPath, pacing: &FilePacingSpec) -> Converted<PacingSpec> {
    let cap = |cap: &CapSpec| match *cap {
        CapSpec::OpsPerSec(rate) => Cap::OpsPerSec(rate),
        CapSpec::BytesPerSec(rate) => Cap::BytesPerSec(rate),
    };
    Ok(match pacing {
        FilePacingSpec::Closed => PacingSpec::Closed,
        FilePacingSpec::Capped { read, write, poisson } => PacingSpec::CappedEach(CappedEach {
            read: read.as_ref().map(cap),
            write: write.as_ref().map(cap),
            arrivals: Arrivals(if *poisson { ArrivalLaw::Poisson } else { ArrivalLaw::Constant }),
        }),
        FilePacingSpec::Open { rate, arrivals, max_in_flight } => {
            let open = open(rate, arrivals, *max_in_flight);
            PacingSpec::Open(open.map_err(|InvalidField { path, reason }| {
                at.field(&path.to_string()).refuse(reason)
            })?)
        }
    })
}

fn block_sizes(sizes: &BlockSizesSpec) -> BlockSizes {
    match sizes {
        BlockSizesSpec::FixedBytes(size) => BlockSizes::Fixed(Size(*size)),
        BlockSizesSpec::RangeBytes(SpanSpec { min, max }) => {
            BlockSizes::Drawn(BlockLaw::Range(SizeRange { min: *min, max: *max }))
        }
        BlockSizesSpec::Shares(shares) => {
            let drawn = shares.iter().filter(|share| share.weight > 0);
            let share = |share: &files::BlockShareSpec| Share {
                value: Size(share.size_bytes),
                weight: share.weight.into(),
            };
            BlockSizes::Drawn(BlockLaw::Shares(Shares(drawn.map(share).collect())))
        }
    }
}

fn convert_blocks(blocks: &files::BlocksSpec) -> BlocksSpec {
    let (read, write) = (block_sizes(&blocks.read_blocks), block_sizes(&blocks.write_blocks));
    BlocksSpec {
        order: match blocks.order {
            BlockOrderSpec::Sequential => BlockOrder::Sequential,
            BlockOrderSpec::EachOnce => BlockOrder::EachOnce,
            BlockOrderSpec::Uniform => BlockOrder::Uniform,
            BlockOrderSpec::Zipf { theta } => BlockOrder::Zipf(theta),
            BlockOrderSpec::Pareto { h } => BlockOrder::Pareto(h),
            BlockOrderSpec::Normal { deviation_percent } => {
                BlockOrder::Normal(Percent(deviation_percent))
            }
        },
        repeats: Some(blocks.repeats),
        seed: blocks.seed,
        direct: blocks.direct,
        sync: SyncSpec(blocks.sync),
        fsync_every: blocks.fsync_every,
        fdatasync_every: blocks.fdatasync_every,
        end_fsync: blocks.end_fsync,
        invalidates: blocks.invalidates,
        ..BlocksSpec::mixed(blocks.read_percent, read, write)
    }
}

fn convert_names(set: String, names: &files::NamesSpec) -> NamesSpec {
    let shuffled = names.shuffled;
    match names.act {
        NameActSpec::MakeTree => NamesSpec::MakeTree(MakeTree { make_tree: set }),
        NameActSpec::Create { bytes, fsync } => {
            let bytes = Size(bytes.into());
            NamesSpec::Create(CreateNames { create: set, bytes, fsync, shuffled })
        }
        NameActSpec::Stat => NamesSpec::Stat(StatNames { stat: set, shuffled }),
        NameActSpec::Open { bytes } => {
            NamesSpec::Open(OpenNames { open: set, bytes: Size(bytes.into()), shuffled })
        }
        NameActSpec::Rename => NamesSpec::Rename(RenameNames { rename: set }),
        NameActSpec::Remove => NamesSpec::Remove(RemoveNames { remove: set, shuffled }),
        NameActSpec::RemoveTree => NamesSpec::RemoveTree(RemoveTree { remove_tree: set }),
    }
}
