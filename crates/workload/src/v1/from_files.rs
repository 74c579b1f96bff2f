//! Runs on files of version 1 as workloads of today's language.

use std::collections::BTreeSet;
use std::time::Duration;

use super::files::{
    self, BlockOrderSpec, BlockSizesSpec, CapSpec, FileJobSpec, FilePacingSpec, FileStageSpec,
    FileWorkSpec, FilesSpec, JobFilesSpec, NameActSpec, SpanSpec,
};
use super::from_objects::open;
use crate::ArrivalLaw;
use crate::plan::spec::{
    Arrivals, BlockLaw, BlockOrder, BlockSizes, BlocksSpec, CappedEach, CreateNames, DealSpec,
    FileSet, FilesTarget, FillSpec, InterfaceSpec, JobSpec, Limit, ListedSet, MakeTree,
    NAME_FORMAT, Named, NamesSpec, OneOrMany, OpenNames, PacingSpec, PathSet, ReadBlocks,
    RemoveNames, RemoveTree, RenameNames, SetSpec, Share, Shares, StageSpec, StatNames, SyncSpec,
    TargetSpec, Targets, ThinkSpec, TreeSet, WorkSpec, WorkStage, WorkloadFile, WriteBlocks,
};
use crate::plan::{Cap, FieldPath, InvalidField, Percent, Size, SizeRange, Time, TimeRange};

type Converted<T> = Result<T, InvalidField>;

/// Targets and sets that were made so far.
#[derive(Default)]
pub(super) struct Made {
    targets: Vec<Vec<String>>,
    sets: Vec<MadeSet>,
    /// Sets that come to the same paths as another, with that one before them.
    copies: Vec<(String, String)>,
    /// Files that stages so far have written.
    written: Vec<JobFilesSpec>,
    /// Sets that are read and that no stage before has written.
    unwritten: Vec<String>,
}

/// What stands first in a workload that reads files which nothing in it writes.
const PREPARE: &str = "prepare";

/// A set that was made.
struct MadeSet {
    name: String,
    of: SetOf,
    /// The field that it was made of.
    origin: String,
}

/// What a set was made of.
#[derive(Clone, PartialEq)]
enum SetOf {
    Files { job: String, clones: u32, files: JobFilesSpec },
    Tree(files::TreeSpec),
}

impl SetOf {
    /// Returns the files of a job.
    fn files(job: &str, clones: u32, files: &JobFilesSpec) -> Self {
        let mut files = files.clone();
        if !files.existing && files.names.is_empty() {
            // A name that does not tell jobs or clones apart is the same for all of them.
            let job = if files.name_format.contains("$jobname") { job } else { "" };
            let is_own = files.name_format.contains("$jobnum") || files.directories.len() > 1;
            let clones = if is_own { clones } else { 1 };
            return Self::Files { job: job.to_owned(), clones, files };
        }
        // Files that are listed are the same whoever uses them, and how names would be made says
        // nothing.
        (files.count, files.name_format) = (1, NAME_FORMAT.to_owned());
        Self::Files { job: String::new(), clones: 1, files }
    }
}

impl TryFrom<&FilesSpec> for WorkloadFile {
    /// The field of version 1 whose text says nothing that could be converted: what version 1
    /// refuses too.
    type Error = InvalidField;

    fn try_from(spec: &FilesSpec) -> Converted<Self> {
        Made::default().file(spec)
    }
}

impl Made {
    /// Returns the sets' names with the fields that they were made of.
    pub(super) fn sets(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sets.iter().map(|set| (&*set.name, &*set.origin))
    }

    /// Tells whether a stage was put first.
    pub(super) fn prepares(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Returns what a run comes to.
    pub(super) fn file(&mut self, spec: &FilesSpec) -> Converted<WorkloadFile> {
        let mut stages = Vec::with_capacity(spec.stages.len());
        for (index, stage) in spec.stages.iter().enumerate() {
            stages.push(self.stage(index, stage)?);
        }
        if self.prepares() {
            stages.insert(0, self.prepare());
        }
        stages.iter_mut().for_each(|stage| self.fill_copies(stage));
        let stages = stages.into_iter().map(StageSpec::Jobs).collect();
        let one = self.targets.len() == 1;
        let sets = self.sets.iter().map(|set| (set.name.clone(), self.set(&set.of, one)));
        let sets = sets.collect::<Named<SetSpec>>();
        let target = |directories: &Vec<String>| {
            TargetSpec::Files(FilesTarget { directory: OneOrMany(directories.clone()) })
        };
        let targets = match &*self.targets {
            [] => Targets::Given,
            [one] => Targets::One(target(one)),
            several => {
                let named = |(index, each)| (format!("files-{}", index + 1), target(each));
                Targets::Several(several.iter().enumerate().map(named).collect())
            }
        };
        let file = WorkloadFile::new(&spec.name, sets, stages);
        Ok(WorkloadFile { seed: Some(spec.seed), verify: spec.verify, targets, ..file })
    }

    /// Returns the number of the target of these directories.
    fn target(&mut self, directories: &[String]) -> usize {
        let known = self.targets.iter().position(|known| known == directories);
        known.unwrap_or_else(|| {
            self.targets.push(directories.to_vec());
            self.targets.len() - 1
        })
    }

    /// Returns the name of a set of that kind. `taken` are those that another job of the stage
    /// writes: as a member has one writer, the job gets a set of its own, which comes to the same
    /// paths.
    fn name(&mut self, of: SetOf, origin: String, taken: &BTreeSet<String>) -> String {
        let directories = match &of {
            SetOf::Files { files, .. } if files.existing => Vec::new(),
            SetOf::Files { files, .. } => files.directories.clone(),
            SetOf::Tree(tree) => tree.directories.clone(),
        };
        self.target(&directories);
        let mut known = self.sets.iter().filter(|known| known.of == of).map(|known| &known.name);
        if let Some(free) = known.clone().find(|name| !taken.contains(*name)) {
            return free.clone();
        }
        let first = known.next().cloned();
        let word = if matches!(of, SetOf::Tree(_)) { "t" } else { "f" };
        let name = format!("{word}{}", self.sets.len() + 1);
        self.sets.push(MadeSet { name: name.clone(), of, origin });
        self.copies.extend(first.map(|first| (first, name.clone())));
        name
    }

    fn set(&self, of: &SetOf, is_only_target: bool) -> SetSpec {
        let on = |directories: &[String]| {
            let index = self.targets.iter().position(|known| known == directories);
            let index = index.expect("a target was made for each set");
            (!is_only_target).then(|| format!("files-{}", index + 1))
        };
        let range = |SpanSpec { min, max }: SpanSpec| SizeRange { min, max };
        match of {
            SetOf::Tree(tree) => {
                SetSpec::Tree(TreeSet { on: on(&tree.directories), tree: tree.shape() })
            }
            SetOf::Files { files, .. } if files.existing => SetSpec::Paths(PathSet {
                on: on(&[]),
                paths: files.names.clone(),
                size: range(files.size_bytes),
                touch: files.destroys,
            }),
            SetOf::Files { files, .. } if !files.names.is_empty() => SetSpec::Listed(ListedSet {
                on: on(&files.directories),
                names: files.names.clone(),
                size: range(files.size_bytes),
            }),
            SetOf::Files { job, clones, files } => SetSpec::Files(FileSet {
                on: on(&files.directories),
                files: files.count,
                size: range(files.size_bytes),
                name: files.name_format.clone(),
                workers: (*clones > 1).then_some(*clones),
                job: (!job.is_empty()).then(|| job.clone()),
            }),
        }
    }

    /// Takes note of files that a job reads or writes.
    fn note(&mut self, set: &str, files: &JobFilesSpec, reads: bool) {
        let is_known = |known: &JobFilesSpec| {
            known.directories == files.directories
                && known.names == files.names
                && known.name_format == files.name_format
        };
        let is_written = files.existing || self.written.iter().any(is_known);
        if reads && !is_written {
            self.unwritten.push(set.to_owned());
        }
        if !is_written {
            self.written.push(files.clone());
        }
    }

    /// Returns the stage that writes what would be read without having been written: holes, which
    /// no disk is asked for.
    fn prepare(&self) -> WorkStage {
        let fill = FillSpec::of(self.unwritten.clone());
        let stage = WorkStage::of(PREPARE, vec![JobSpec::of(1, WorkSpec::Fill(fill))]);
        WorkStage { prepares: true, end_on_failure: true, ..stage }
    }

    /// Has a stage fill the copies of what it fills; files that are filled already are left out.
    fn fill_copies(&self, stage: &mut WorkStage) {
        for job in &mut stage.jobs {
            let WorkSpec::Fill(fill) = &mut job.work else { continue };
            for (first, copy) in &self.copies {
                if fill.sets.0.contains(first) && !fill.sets.0.contains(copy) {
                    fill.sets.0.push(copy.clone());
                }
            }
        }
    }

    fn stage(&mut self, number: usize, stage: &FileStageSpec) -> Converted<WorkStage> {
        let mut taken = BTreeSet::new();
        let mut jobs = Vec::with_capacity(stage.jobs.len());
        for (index, job) in stage.jobs.iter().enumerate() {
            let at = FieldPath::root().field("stages").index(number).field("jobs").index(index);
            jobs.push(self.job(&at, job, stage.jobs.len() == 1, &mut taken)?);
        }
        Ok(WorkStage {
            prepares: stage.prepares,
            iteration: stage.iteration,
            drop_caches: stage.drop_caches,
            end_on_failure: stage.end_on_failure,
            ..WorkStage::of(&stage.name, jobs)
        })
    }

    fn job(
        &mut self,
        at: &FieldPath,
        job: &FileJobSpec,
        is_alone: bool,
        taken: &mut BTreeSet<String>,
    ) -> Converted<JobSpec> {
        let time = |ns: u64| Time(Duration::from_nanos(ns));
        let mut deal = DealSpec::default();
        let work = match &job.work {
            FileWorkSpec::Fill(fill) => {
                let mut sets: Vec<String> = Vec::new();
                for (index, of) in fill.files.iter().enumerate() {
                    if of.files.existing {
                        continue;
                    }
                    let origin = format!("{at}.work.fill.files[{index}].files");
                    let set = SetOf::files(&of.job, of.clones, &of.files);
                    let name = self.name(set, origin, taken);
                    self.note(&name, &of.files, false);
                    if !sets.contains(&name) {
                        sets.push(name);
                    }
                }
                taken.extend(sets.iter().cloned());
                let block = Size(fill.block_bytes.into());
                WorkSpec::Fill(FillSpec { sets: OneOrMany(sets), block, direct: fill.direct })
            }
            FileWorkSpec::Blocks(blocks) => {
                let of = SetOf::files(&job.name, job.clones, &blocks.files);
                let nobody = BTreeSet::new();
                let origin = format!("{at}.work.blocks.files");
                let name = self.name(of, origin, if blocks.writes() { taken } else { &nobody });
                if blocks.writes() {
                    taken.insert(name.clone());
                }
                self.note(&name, &blocks.files, blocks.read_percent > 0);
                WorkSpec::Blocks(convert_blocks(&name, blocks))
            }
            FileWorkSpec::Names(names) => {
                deal.shift = names.shift;
                let writes = !matches!(names.act, NameActSpec::Stat | NameActSpec::Open { .. });
                let nobody = BTreeSet::new();
                let of = SetOf::Tree(names.tree.clone());
                let origin = format!("{at}.work.names.tree");
                let name = self.name(of, origin, if writes { taken } else { &nobody });
                if writes {
                    taken.insert(name.clone());
                }
                WorkSpec::Names(convert_names(name, names))
            }
        };
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
            group: (!is_alone).then_some(job.group),
            interface: job.interface.map(InterfaceSpec),
            deal,
            ..JobSpec::of(job.clones, work)
        })
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

fn convert_blocks(set: &str, blocks: &files::BlocksSpec) -> BlocksSpec {
    let percent = match blocks.read_percent {
        0 | 100 => None,
        percent => Some(Percent(percent.into())),
    };
    let read = ReadBlocks { block: block_sizes(&blocks.read_blocks), percent };
    let write = WriteBlocks { block: block_sizes(&blocks.write_blocks) };
    BlocksSpec {
        read: (blocks.read_percent > 0).then_some(read),
        write: blocks.writes().then_some(write),
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
        ..BlocksSpec::of(set)
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
