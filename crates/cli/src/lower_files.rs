//! What the flags of `plimsoll file` mean: stages of jobs on files.

use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use plimsoll_conduct::ConductError;
use plimsoll_dialects::{flag_of, schedule};
use plimsoll_model::{Bytes, Interface};
use plimsoll_workload::Share;
use plimsoll_workload::plan::spec::{
    BlockOrder, BlockSizes, BlocksSpec, CappedEach, CreateNames, DealSpec, FileSet, FillSpec,
    InterfaceSpec, JobSpec, Limit, MakeTree, NamesSpec, OpenNames, PacingSpec, PathSet,
    RemoveNames, RemoveTree, SetSpec, StatNames, SyncSpec, TreeOf, TreeSet, WorkSpec, WorkStage,
};
use plimsoll_workload::plan::{Cap, FilesIn, OnFiles, Rate, Size, SizeRange, Time, WorkloadFile};

use crate::args::file::{
    BlocksArgs, DirectArg, FileArgs, FileCommand, MetadataArgs, OpArg, SuiteArgs,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// How long a phase lasts where nothing else is said.
const DURATION_DEFAULT: Duration = Duration::from_secs(30);
/// How large a file is where nothing else is said and there is room.
const FILE_SIZE_DEFAULT: u64 = GIB;
/// The part of the free space that files take where nothing else is said.
const SPACE_SHARE: u64 = 10;
/// The most blocks that a worker has under way while it fills.
const FILL_DEPTH_MAX: u32 = 64;

/// What is known of where the files will lie.
#[derive(Clone, Debug)]
pub(crate) struct TargetFacts {
    pub(crate) cores: u32,
    /// What is free there; `None` where it is not known.
    pub(crate) free_bytes: Option<u64>,
    /// What blocks are multiples of where the page cache is passed by; `None` where it cannot be.
    pub(crate) direct_align: Option<u64>,
    /// The size of the smallest file that already exists and worked on.
    pub(crate) existing_bytes: Option<u64>,
    /// How much of the load each machine takes that has a part in it.
    pub(crate) weights: Vec<u32>,
}

impl TargetFacts {
    /// Returns how many machines take part.
    fn clients(&self) -> u32 {
        self.weights.iter().filter(|weight| **weight > 0).count().max(1) as u32
    }

    /// Returns by how many of so many jobs names are moved on from one phase to the next, so that
    /// no machine works on those that it worked on before.
    fn shift(&self, jobs: u32) -> u32 {
        let shares = Share::by_weight(&self.weights).unwrap_or_default();
        let jobs = NonZeroU32::new(jobs).unwrap_or(NonZeroU32::MIN);
        let largest = shares.iter().map(|share| share.of_workers(jobs).len()).max().unwrap_or(1);
        match self.clients() {
            1 => 1,
            _ => largest.max(1) as u32,
        }
    }
}

/// What a group of phases on blocks has in common.
#[derive(Clone)]
struct Phases {
    name: &'static str,
    files: FilesIn,
    jobs: u32,
    depth: u32,
    block: u64,
    order: BlockOrder,
    direct: bool,
    duration: Option<Duration>,
}

/// Returns the workload that a command means.
pub(crate) fn workload(
    command: &FileCommand,
    facts: &TargetFacts,
    seed: u64,
) -> Result<WorkloadFile> {
    let mut on_files = OnFiles::default();
    let to = &mut on_files;
    let name = match command {
        FileCommand::Bandwidth(args) => blocks(args, "throughput", facts, to).map(|()| "bandwidth"),
        FileCommand::Iops(args) => blocks(args, "iops", facts, to).map(|()| "iops"),
        FileCommand::Latency(args) => blocks(args, "latency", facts, to).map(|()| "latency"),
        FileCommand::Metadata(args) => metadata(args, facts, to).map(|()| "metadata"),
        FileCommand::Suite(args) => {
            suite(args, facts, to);
            Ok("suite")
        }
    }?;
    let file = on_files.workload(&format!("file-{name}"), Some(seed));
    let file = WorkloadFile { verify: !command.common().no_verify, ..file };
    file.check().map_err(ConductError::from)?;
    Ok(file)
}

fn blocks(
    args: &BlocksArgs,
    what: &'static str,
    facts: &TargetFacts,
    to: &mut OnFiles,
) -> Result<()> {
    let is_throughput = what == "throughput";
    let block = args.block.map_or(if is_throughput { MIB } else { 4 << 10 }, |size| size.0);
    let default_depth = match what {
        "throughput" => 4,
        "iops" => 16,
        _ => 1,
    };
    let jobs = args.jobs.unwrap_or(if what == "latency" { 1 } else { facts.cores });
    let default_order = if is_throughput { BlockOrder::Sequential } else { BlockOrder::EachOnce };
    let bounded = args.ops.is_some() || args.bytes.is_some();
    let phases = Phases {
        name: what,
        files: block_files(args, what, (jobs, block), facts)?,
        jobs,
        depth: args.depth.unwrap_or(default_depth),
        block,
        order: args.order.map_or(default_order, |order| order.0),
        direct: is_direct(args.direct, block, facts)?,
        duration: args
            .duration
            .map(|duration| duration.0)
            .or((!bounded).then_some(DURATION_DEFAULT)),
    };
    if args.rate.is_none() && args.max_in_flight.is_some() {
        bail!("--max-in-flight does nothing without --rate; add it");
    }
    let (writes, exist) = (args.op != OpArg::Read, !args.on.is_empty());
    if exist && writes && !args.i_know_this_destroys_data {
        bail!(
            "--on {}: writing there destroys what it holds; add --op read, or \
             --i-know-this-destroys-data",
            args.on[0]
        );
    }
    let directions: &[(&str, u32)] = match args.op {
        OpArg::Read => &[("read", 100)],
        OpArg::Write => &[("write", 0)],
        OpArg::Both => &[("read", 100), ("write", 0)],
        OpArg::Mixed => &[("mixed", args.read_share.0.round() as u32)],
    };
    if !exist && directions.iter().any(|(_, reads)| *reads > 0) {
        fill_stage("prepare", &phases, facts, to);
    }
    let pacing = pacing(args)?;
    for (name, read_percent) in directions {
        let work = BlocksSpec {
            sync: SyncSpec(args.sync.into()),
            fsync_every: args.fsync,
            fdatasync_every: args.fdatasync,
            end_fsync: args.end_fsync,
            ..phases.work(*read_percent)
        };
        let job = JobSpec {
            ramp: Time(args.ramp.0),
            ops: args.ops.map(|each| Limit::Each { each }),
            bytes: args.bytes.map(|bytes| Limit::Each { each: Size(bytes.0) }),
            pacing: pacing.clone(),
            ..phases.job(work, to)
        };
        phases.add(name, job, to);
    }
    Ok(())
}

fn pacing(args: &BlocksArgs) -> Result<PacingSpec> {
    if let Some(rate) = &args.rate {
        return schedule(rate, Some(&args.arrivals), args.max_in_flight)
            .map_err(|text| anyhow!(text));
    }
    Ok(args.rps_limit.map_or(PacingSpec::Closed, |Rate(rate)| {
        let cap = Some(Cap::OpsPerSec(rate));
        PacingSpec::CappedEach(CappedEach { read: cap, write: cap, arrivals: Default::default() })
    }))
}

/// Tells whether blocks bypass the page cache. A block that cannot is refused where the file system
/// could: the figures would be those of memory, and nobody asked for that.
fn is_direct(asked: DirectArg, block: u64, facts: &TargetFacts) -> Result<bool> {
    match (asked, facts.direct_align) {
        (DirectArg::On, _) => Ok(true),
        (DirectArg::Off, _) | (DirectArg::Auto, None) => Ok(false),
        (DirectArg::Auto, Some(align)) => match block.is_multiple_of(align.max(1)) {
            true => Ok(true),
            false => bail!(
                "--block: {} is not a multiple of {}, which bypassing the page cache needs; add \
                 --direct off to measure through it",
                Bytes(block),
                Bytes(align)
            ),
        },
    }
}

fn block_files(
    args: &BlocksArgs,
    name: &str,
    (jobs, block): (u32, u64),
    facts: &TargetFacts,
) -> Result<FilesIn> {
    let count = u64::from(jobs.max(1)) * u64::from(args.files.max(1));
    let room = facts.free_bytes.map_or(FILE_SIZE_DEFAULT, |free| free / SPACE_SHARE / count);
    let default = facts.existing_bytes.unwrap_or(room.min(FILE_SIZE_DEFAULT));
    let size = args.file_size.map_or(whole_blocks(default, block), |size| size.0);
    if size < block {
        let (file, block) = (Bytes(size), Bytes(block));
        bail!("--file-size: a file of {file} holds no block of {block}");
    }
    let size = SizeRange::of(size);
    if args.on.is_empty() {
        let format = "$jobname.$jobnum.$filenum";
        return Ok(own_files(&args.common, name, format, jobs, (args.files, size)));
    }
    let set =
        PathSet { on: None, paths: args.on.clone(), size, touch: args.i_know_this_destroys_data };
    let (label, directories) = (name.to_owned(), Vec::new());
    Ok(FilesIn { label, directories, set: SetSpec::Paths(set) })
}

/// Returns the largest number of whole blocks within `size`, at least one.
fn whole_blocks(size: u64, block: u64) -> u64 {
    (size / block.max(1)).max(1) * block.max(1)
}

fn own_files(
    args: &FileArgs,
    name: &str,
    format: &str,
    jobs: u32,
    (files, size): (u32, SizeRange),
) -> FilesIn {
    FilesIn {
        label: name.to_owned(),
        directories: args.dir.clone(),
        set: SetSpec::Files(FileSet {
            on: None,
            files,
            size,
            name: format.to_owned(),
            workers: (jobs > 1).then_some(jobs),
            job: None,
        }),
    }
}

/// Returns a stage before which caches are dropped.
fn stage(name: &str, jobs: Vec<JobSpec>) -> WorkStage {
    WorkStage { drop_caches: true, ..WorkStage::of(name, jobs) }
}

/// Adds the stage that fills the files of phases: each worker fills those that it works on, so that
/// they lie where it is. What is under way at once does not depend on how many workers there are.
fn fill_stage(name: &str, of: &Phases, facts: &TargetFacts, to: &mut OnFiles) {
    let fill = FillSpec { direct: of.direct, ..to.fill([&of.files]) };
    // That there must be some is said of the stage that is measured.
    let workers = of.jobs.max(1);
    let depth = facts.cores.saturating_mul(2).div_ceil(workers).clamp(2, FILL_DEPTH_MAX);
    let job = JobSpec { depth, ..JobSpec::of(workers, WorkSpec::Fill(fill)) };
    let stage = WorkStage::of(name, vec![job]);
    to.stage(WorkStage { prepares: true, end_on_failure: true, ..stage });
}

impl Phases {
    /// Returns what a phase does that reads so much of a hundred blocks and writes the others.
    fn work(&self, read_percent: u32) -> BlocksSpec {
        let block = BlockSizes::Fixed(Size(self.block));
        BlocksSpec {
            order: self.order,
            repeats: Some(true),
            direct: self.direct,
            invalidates: true,
            ..BlocksSpec::mixed(read_percent, block.clone(), block)
        }
    }

    fn job(&self, work: BlocksSpec, to: &mut OnFiles) -> JobSpec {
        JobSpec {
            name: Some(self.name.to_owned()),
            depth: self.depth,
            duration: self.duration.map(Time),
            ..JobSpec::of(self.jobs, to.blocks(&self.files, work))
        }
    }

    /// Adds the phase `direction-name`, such as `read-iops`.
    fn add(&self, direction: &str, job: JobSpec, to: &mut OnFiles) {
        to.stage(stage(&format!("{direction}-{}", self.name), vec![job]));
    }
}

fn metadata(args: &MetadataArgs, facts: &TargetFacts, to: &mut OnFiles) -> Result<()> {
    if args.shared_directory && args.common.dir.len() > 1 {
        bail!(
            "--dir: only separate trees for each job can lie in several directories; leave out \
             --shared-directory"
        );
    }
    let jobs = args.jobs.unwrap_or(facts.cores);
    let names = Names {
        args: &args.common,
        jobs,
        files: args.files,
        bytes: Size(args.file_size.0),
        fsync: args.fsync,
        per_worker: !args.shared_directory,
        shift: if args.no_shift { 0 } else { facts.shift(jobs) },
        opens: true,
    };
    (0..args.iterations.max(1)).for_each(|iteration| names.add(iteration, to));
    Ok(())
}

/// What the phases on names have in common.
struct Names<'a> {
    args: &'a FileArgs,
    jobs: u32,
    files: u64,
    bytes: Size,
    fsync: bool,
    per_worker: bool,
    /// By how many jobs each phase on files moves on from the one before.
    shift: u32,
    /// Whether files are also opened and read.
    opens: bool,
}

/// The phases on names in their order.
const NAMES_PHASES: [&str; 6] = ["tree", "create", "stat", "open", "delete", "tree-removal"];

impl Names<'_> {
    fn add(&self, iteration: u32, to: &mut OnFiles) {
        let tree = TreeOf {
            name: Some(format!("names.{iteration}")),
            depth: 0,
            branching: 1,
            entries: self.files,
            leaves_only: false,
            per_worker: self.per_worker,
            shared_names: false,
            of_directories: false,
        };
        let names = FilesIn {
            label: "names".to_owned(),
            directories: self.args.dir.clone(),
            set: SetSpec::Tree(TreeSet { on: None, tree }),
        };
        let mut step = 0;
        for phase in NAMES_PHASES.into_iter().filter(|phase| self.opens || *phase != "open") {
            let of_tree = phase.starts_with("tree");
            let shift = if of_tree { 0 } else { step % self.jobs.max(1) };
            step += if of_tree { 0 } else { self.shift };
            let job = JobSpec {
                interface: Some(InterfaceSpec(Interface::Psync)),
                deal: DealSpec { shift, ..DealSpec::default() },
                ..JobSpec::of(self.jobs, to.names(&names, |set| self.act(phase, set)))
            };
            to.stage(WorkStage { iteration, prepares: of_tree, ..stage(phase, vec![job]) });
        }
    }

    /// Returns what a phase does to the names of a set.
    fn act(&self, phase: &str, set: String) -> NamesSpec {
        let (bytes, fsync, shuffled) = (self.bytes, self.fsync, false);
        match phase {
            "tree" => NamesSpec::MakeTree(MakeTree { make_tree: set }),
            "create" => NamesSpec::Create(CreateNames { create: set, bytes, fsync, shuffled }),
            "stat" => NamesSpec::Stat(StatNames { stat: set, shuffled }),
            "open" => NamesSpec::Open(OpenNames { open: set, bytes, shuffled }),
            "delete" => NamesSpec::Remove(RemoveNames { remove: set, shuffled }),
            _ => NamesSpec::RemoveTree(RemoveTree { remove_tree: set }),
        }
    }
}

/// The guide's figures: jobs and file sizes of its throughput and IOPS tests.
const THROUGHPUT_JOBS: u32 = 32;
const THROUGHPUT_FILE: u64 = 128 * GIB;
const IOPS_JOBS: u32 = 192;
const IOPS_FILE: u64 = 4 * GIB;
const DURATION_SUITE: Duration = Duration::from_secs(300);
/// The guide's metadata test: ranks of one host, and files of each.
const RANKS: u32 = 136;
const RANK_FILES: f64 = 18_382.0;
const RANK_FILES_MIN: f64 = 100.0;
/// A scale of one over this still has all of the guide's files for each rank.
const NAMES_WHOLE: f64 = 8_192.0;

fn suite(args: &SuiteArgs, facts: &TargetFacts, to: &mut OnFiles) {
    // The guide's figures are those of one of its clients.
    let clients = facts.clients();
    let whole = f64::from(clients)
        * (f64::from(THROUGHPUT_JOBS) * THROUGHPUT_FILE as f64
            + f64::from(IOPS_JOBS) * IOPS_FILE as f64);
    let fits = facts.free_bytes.map_or(1.0, |free| (free / SPACE_SHARE) as f64 / whole);
    let scale = args.scale.map_or_else(|| 2f64.powf(fits.log2().floor()).min(1.0), |scale| scale.0);
    let is_whole = scale >= 1.0;
    let jobs_max =
        args.jobs.unwrap_or(if is_whole { IOPS_JOBS * clients } else { 16 * facts.cores });
    let duration = if is_whole { DURATION_SUITE } else { DURATION_DEFAULT };
    let duration = args.duration.map_or(duration, |duration| duration.0);
    let phases = |name, format: &str, file: u64, of: u32, block, order| {
        let jobs = of.min(jobs_max).max(1);
        // Fewer jobs have larger files: the amount of data is the guide's, scaled.
        let file = file as f64 * scale * f64::from(of) / f64::from(jobs);
        let size = SizeRange::of(whole_blocks(file as u64, MIB));
        Phases {
            name,
            files: own_files(&args.common, name, format, jobs, (1, size)),
            jobs,
            depth: 1,
            block,
            order,
            direct: facts.direct_align.is_some(),
            duration: Some(duration),
        }
    };
    let (sequential, random) = (BlockOrder::Sequential, BlockOrder::EachOnce);
    let bw = "$jobnum/$filenum/bw.$jobnum.$filenum";
    let iops = "$jobnum/$filenum/iops.$jobnum.$filenum";
    let (bw_jobs, iops_jobs) = (THROUGHPUT_JOBS * clients, IOPS_JOBS * clients);
    let throughput = phases("throughput", bw, THROUGHPUT_FILE, bw_jobs, MIB, sequential);
    let operations = phases("iops", iops, IOPS_FILE, iops_jobs, 4 << 10, random);
    let mut latency =
        Phases { name: "latency", jobs: clients.min(operations.jobs), ..operations.clone() };
    latency.files.label = "latency".to_owned();
    if let SetSpec::Files(files) = &mut latency.files.set {
        files.workers = (latency.jobs > 1).then_some(latency.jobs);
    }
    fill_stage("create-iops-files", &operations, facts, to);
    fill_stage("create-bw-files", &throughput, facts, to);
    for phases in [&throughput, &operations, &latency] {
        for (direction, read_percent) in [("read", 100), ("write", 0)] {
            let job = phases.job(phases.work(read_percent), to);
            phases.add(direction, job, to);
        }
    }
    let all = RANKS * clients;
    let ranks = all.min(if is_whole { all } else { 2 * facts.cores }).min(jobs_max.max(1));
    let names = Names {
        args: &args.common,
        jobs: ranks,
        // Names take little room, so that most of them fit where the guide's data does not.
        files: (RANK_FILES * (scale * NAMES_WHOLE).min(1.0)).max(RANK_FILES_MIN) as u64,
        bytes: Size(0),
        fsync: false,
        per_worker: true,
        shift: facts.shift(ranks),
        opens: false,
    };
    (0..args.iterations.max(1)).for_each(|iteration| names.add(iteration, to));
}

/// Returns the refusal of a workload in terms of the flags of `plimsoll file`.
pub(crate) fn in_flags(error: anyhow::Error) -> anyhow::Error {
    const FLAGS: [(&str, &str); 16] = [
        ("workers", "--jobs"),
        ("depth", "--depth"),
        ("ops", "--ops"),
        ("bytes", "--bytes"),
        ("duration", "--duration"),
        ("ramp", "--ramp"),
        ("block", "--block"),
        ("order", "--order"),
        ("open", "--rate"),
        ("max_in_flight", "--max-in-flight"),
        ("capped_each", "--rps-limit"),
        ("files", "--files"),
        ("entries", "--files"),
        ("size", "--file-size"),
        ("fdatasync_every", "--fdatasync"),
        ("fsync_every", "--fsync"),
    ];
    let Some(ConductError::Plan(refused)) = error.downcast_ref() else { return error };
    let flag = match refused.path.form() {
        form if form == "stages[]" => Some("--iterations"),
        form if form.ends_with("work.names.bytes") => Some("--file-size"),
        form if form.starts_with("targets") => Some("--dir"),
        _ => flag_of(&refused.path, &FLAGS),
    };
    match flag {
        Some(flag) => anyhow!("{flag}: {}", refused.reason),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_cannot_bypass_the_page_cache_is_refused_where_others_do() {
        let facts = |direct_align| TargetFacts {
            cores: 1,
            free_bytes: None,
            direct_align,
            existing_bytes: None,
            weights: vec![1],
        };
        let is = |asked, block, align| is_direct(asked, block, &facts(align)).ok();
        assert_eq!(is(DirectArg::Auto, 4_096, Some(512)), Some(true));
        assert_eq!(is(DirectArg::Auto, 4_000, Some(512)), None);
        assert_eq!(is(DirectArg::Off, 4_000, Some(512)), Some(false));
        assert_eq!(is(DirectArg::Auto, 4_000, None), Some(false), "none of them does there");
        let said = is_direct(DirectArg::Auto, 4_000, &facts(Some(512))).unwrap_err().to_string();
        assert!(said.starts_with("--block: 4000B is not a multiple of 512B"), "{said}");
        assert!(said.ends_with("add --direct off to measure through it"), "{said}");
    }
}
