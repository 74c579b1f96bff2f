//! What the flags of `plimsoll file` mean: stages of jobs on files.

use anyhow::{Result, bail};
use plimsoll_model::Interface;
use plimsoll_workload::files::{
    BlockOrderSpec, BlockSizesSpec, BlocksSpec, CapSpec, FILES_SCHEMA, FileJobSpec, FilePacingSpec,
    FileStageSpec, FileWorkSpec, FilesSpec, FillFilesSpec, FillSpec, JobFilesSpec, NameActSpec,
    NamesSpec, SpanSpec, TreeSpec,
};
use plimsoll_workload::{InvalidWorkload, MAX_IN_FLIGHT_DEFAULT};

use crate::args::file::{
    BlocksArgs, DirectArg, FileArgs, FileCommand, MetadataArgs, OpArg, SuiteArgs,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Bytes of one write that fills a file.
const FILL_BLOCK: u32 = 1 << 20;
/// How long a phase lasts where nothing else is said.
const DURATION_DEFAULT: std::time::Duration = std::time::Duration::from_secs(30);
/// How large a file is where nothing else is said and there is room.
const FILE_SIZE_DEFAULT: u64 = GIB;
/// The part of the free space that files take where nothing else is said.
const SPACE_SHARE: u64 = 10;

/// What is known of where the files will lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    pub(crate) cores: u32,
    /// What is free there; `None` where it is not known.
    pub(crate) free_bytes: Option<u64>,
    /// What blocks are multiples of where the page cache is passed by; `None` where it cannot be.
    pub(crate) direct_align: Option<u64>,
    /// The size of the smallest file that is there already and worked on.
    pub(crate) existing_bytes: Option<u64>,
}

/// What a group of phases on blocks has in common.
struct Field<'a> {
    name: &'a str,
    files: JobFilesSpec,
    clones: u32,
    depth: u32,
    block: u64,
    order: BlockOrderSpec,
    direct: bool,
    duration: Option<std::time::Duration>,
}

/// Returns the workload that a command means.
pub(crate) fn workload(command: &FileCommand, ground: Ground, seed: u64) -> Result<FilesSpec> {
    let (name, stages) = match command {
        FileCommand::Bandwidth(args) => ("file-bandwidth", blocks(args, "throughput", ground)?),
        FileCommand::Iops(args) => ("file-iops", blocks(args, "iops", ground)?),
        FileCommand::Latency(args) => ("file-latency", blocks(args, "latency", ground)?),
        FileCommand::Metadata(args) => ("file-metadata", metadata(args, ground)?),
        FileCommand::Suite(args) => ("file-suite", suite(args, ground)),
    };
    Ok(FilesSpec {
        schema: FILES_SCHEMA.to_owned(),
        name: name.to_owned(),
        seed,
        verify: !command.common().no_verify,
        stages,
    })
}

fn blocks(args: &BlocksArgs, what: &str, ground: Ground) -> Result<Vec<FileStageSpec>> {
    let is_throughput = what == "throughput";
    let block = args.block.map_or(if is_throughput { MIB } else { 4 << 10 }, |size| size.0);
    let default_depth = match what {
        "throughput" => 4,
        "iops" => 16,
        _ => 1,
    };
    let clones = args.jobs.unwrap_or(if what == "latency" { 1 } else { ground.cores });
    let default_order =
        if is_throughput { BlockOrderSpec::Sequential } else { BlockOrderSpec::EachOnce };
    let bounded = args.ops.is_some() || args.bytes.is_some();
    let field = Field {
        name: what,
        files: block_files(args, clones, block, ground),
        clones,
        depth: args.depth.unwrap_or(default_depth),
        block,
        order: args.order.map_or(default_order, |order| order.0),
        direct: is_direct(args.direct, block, ground),
        duration: args
            .duration
            .map(|duration| duration.0)
            .or((!bounded).then_some(DURATION_DEFAULT)),
    };
    if args.rate.is_none() && args.max_in_flight.is_some() {
        bail!("--max-in-flight does nothing without --rate; add it");
    }
    let writes = args.op != OpArg::Read;
    if field.files.existing && writes && !args.i_know_this_destroys_data {
        bail!(
            "--on {}: writing there destroys what it holds; add --op read, or \
             --i-know-this-destroys-data",
            args.on[0]
        );
    }
    let phases: &[(&str, u32)] = match args.op {
        OpArg::Read => &[("read", 100)],
        OpArg::Write => &[("write", 0)],
        OpArg::Both => &[("read", 100), ("write", 0)],
        OpArg::Mixed => &[("mixed", args.read_share.0.round() as u32)],
    };
    let mut stages = Vec::new();
    if !field.files.existing && phases.iter().any(|(_, reads)| *reads > 0) {
        stages.push(fill_stage("prepare", &[&field], ground));
    }
    for (name, read_percent) in phases {
        let mut stage = block_stage(&field, name, *read_percent, stages.len() as u32);
        let job = &mut stage.jobs[0];
        job.ramp_ns = args.ramp.0.as_nanos() as u64;
        job.ops_max = args.ops;
        job.bytes_max = args.bytes.map(|bytes| bytes.0);
        job.pacing = pacing(args);
        if let FileWorkSpec::Blocks(blocks) = &mut job.work {
            blocks.sync = args.sync.into();
            blocks.fsync_every = args.fsync;
            blocks.fdatasync_every = args.fdatasync;
            blocks.end_fsync = args.end_fsync;
        }
        stages.push(stage);
    }
    Ok(stages)
}

fn pacing(args: &BlocksArgs) -> FilePacingSpec {
    if let Some(rate) = &args.rate {
        return FilePacingSpec::Open {
            rate: rate.clone(),
            arrivals: args.arrivals.clone(),
            max_in_flight: args.max_in_flight.unwrap_or(MAX_IN_FLIGHT_DEFAULT),
        };
    }
    match args.rps_limit {
        None => FilePacingSpec::Closed,
        Some(rate) => {
            let cap = Some(CapSpec::OpsPerSec(rate));
            FilePacingSpec::Capped { read: cap, write: cap, poisson: false }
        }
    }
}

fn is_direct(asked: DirectArg, block: u64, ground: Ground) -> bool {
    match asked {
        DirectArg::On => true,
        DirectArg::Off => false,
        DirectArg::Auto => {
            ground.direct_align.is_some_and(|align| block.is_multiple_of(align.max(1)))
        }
    }
}

fn block_files(args: &BlocksArgs, clones: u32, block: u64, ground: Ground) -> JobFilesSpec {
    let count = u64::from(clones.max(1)) * u64::from(args.files.max(1));
    let room = ground.free_bytes.map_or(FILE_SIZE_DEFAULT, |free| free / SPACE_SHARE / count);
    let default = ground.existing_bytes.unwrap_or(room.min(FILE_SIZE_DEFAULT));
    let default = whole_blocks(default, block);
    let size = args.file_size.map_or(default, |size| size.0);
    JobFilesSpec {
        names: args.on.clone(),
        count: args.files,
        existing: !args.on.is_empty(),
        destroys: args.i_know_this_destroys_data,
        ..own_files(&args.common, "$jobname.$jobnum.$filenum", size)
    }
}

/// Returns the largest number of whole blocks within `size`, at least one.
fn whole_blocks(size: u64, block: u64) -> u64 {
    (size / block.max(1)).max(1) * block
}

fn own_files(args: &FileArgs, name_format: &str, size: u64) -> JobFilesSpec {
    JobFilesSpec {
        directories: args.dir.clone(),
        names: Vec::new(),
        name_format: name_format.to_owned(),
        count: 1,
        size_bytes: SpanSpec::of(size),
        existing: false,
        destroys: false,
    }
}

/// Returns a stage before which caches are dropped.
fn stage(name: &str, jobs: Vec<FileJobSpec>) -> FileStageSpec {
    FileStageSpec { drop_caches: true, ..FileStageSpec::plain(name, jobs) }
}

fn fill_stage(name: &str, fields: &[&Field<'_>], ground: Ground) -> FileStageSpec {
    let files = |field: &&Field<'_>| FillFilesSpec {
        job: field.name.to_owned(),
        clones: field.clones,
        files: field.files.clone(),
    };
    let direct = fields.iter().all(|field| field.direct);
    let fill =
        FillSpec { files: fields.iter().map(files).collect(), block_bytes: FILL_BLOCK, direct };
    let fill = FileWorkSpec::Fill(fill);
    let job = FileJobSpec { depth: 2, ..FileJobSpec::plain(name, ground.cores, fill) };
    FileStageSpec {
        prepares: true,
        drop_caches: false,
        end_on_failure: true,
        ..stage(name, vec![job])
    }
}

/// Returns the phase `direction-field`, such as `read-iops`.
fn block_stage(field: &Field<'_>, direction: &str, read_percent: u32, group: u32) -> FileStageSpec {
    let size = BlockSizesSpec::FixedBytes(field.block);
    let blocks = BlocksSpec {
        files: field.files.clone(),
        read_percent,
        read_blocks: size.clone(),
        write_blocks: size,
        order: field.order,
        repeats: true,
        seed: None,
        direct: field.direct,
        sync: Default::default(),
        fsync_every: None,
        fdatasync_every: None,
        end_fsync: false,
        invalidates: true,
    };
    // The job's name is part of the names of its files, which phases share.
    let work = FileWorkSpec::Blocks(blocks);
    let job = FileJobSpec {
        group,
        depth: field.depth,
        duration_ns: field.duration.map(|duration| duration.as_nanos() as u64),
        ..FileJobSpec::plain(field.name, field.clones, work)
    };
    stage(&format!("{direction}-{}", field.name), vec![job])
}

fn metadata(args: &MetadataArgs, ground: Ground) -> Result<Vec<FileStageSpec>> {
    let Ok(bytes) = u32::try_from(args.file_size.0) else {
        bail!("--file-size: {} is too large; the limit is 4 GiB", args.file_size.0);
    };
    let names = Names {
        args: &args.common,
        clones: args.jobs.unwrap_or(ground.cores),
        files: args.files,
        bytes,
        fsync: args.fsync,
        per_clone: !args.shared_directory,
        shifts: !args.no_shift,
        opens: true,
    };
    Ok((0..args.iterations.max(1)).flat_map(|iteration| names.stages(iteration)).collect())
}

/// What the phases on names have in common.
struct Names<'a> {
    args: &'a FileArgs,
    clones: u32,
    files: u64,
    bytes: u32,
    fsync: bool,
    per_clone: bool,
    shifts: bool,
    /// Whether files are also opened and read.
    opens: bool,
}

impl Names<'_> {
    fn stages(&self, iteration: u32) -> Vec<FileStageSpec> {
        let tree = TreeSpec {
            directories: self.args.dir.clone(),
            name: format!("names.{iteration}"),
            depth: 0,
            branching: 1,
            entries_per_directory: self.files,
            leaves_only: false,
            per_clone: self.per_clone,
            shared_names: false,
            of_directories: false,
        };
        let create = NameActSpec::Create { bytes: self.bytes, fsync: self.fsync };
        let mut acts = vec![
            ("tree", NameActSpec::MakeTree),
            ("create", create),
            ("stat", NameActSpec::Stat),
            ("open", NameActSpec::Open { bytes: self.bytes }),
            ("delete", NameActSpec::Remove),
            ("tree-removal", NameActSpec::RemoveTree),
        ];
        acts.retain(|(name, _)| self.opens || *name != "open");
        let mut step = 0;
        let one = |(name, act): (&str, NameActSpec)| {
            let of_tree = matches!(act, NameActSpec::MakeTree | NameActSpec::RemoveTree);
            // Each phase on files moves on by one worker from the one before.
            let shift = if of_tree || !self.shifts { 0 } else { step % self.clones.max(1) };
            step += u32::from(!of_tree);
            let spec = NamesSpec { tree: tree.clone(), act, shift, shuffled: false };
            let job = FileJobSpec {
                interface: Some(Interface::Psync),
                ..FileJobSpec::plain(name, self.clones, FileWorkSpec::Names(spec))
            };
            FileStageSpec { iteration, prepares: of_tree, ..stage(name, vec![job]) }
        };
        acts.into_iter().map(one).collect()
    }
}

/// The guide's figures: jobs and file sizes of its throughput and IOPS tests.
const THROUGHPUT_JOBS: u32 = 32;
const THROUGHPUT_FILE: u64 = 128 * GIB;
const IOPS_JOBS: u32 = 192;
const IOPS_FILE: u64 = 4 * GIB;
const DURATION_SUITE: std::time::Duration = std::time::Duration::from_secs(300);
/// The guide's metadata test: ranks of one host, and files of each.
const RANKS: u32 = 136;
const RANK_FILES: f64 = 18_382.0;
const RANK_FILES_MIN: f64 = 100.0;
/// A scale of one over this still has all of the guide's files for each rank.
const NAMES_WHOLE: f64 = 8_192.0;

fn suite(args: &SuiteArgs, ground: Ground) -> Vec<FileStageSpec> {
    let whole = f64::from(THROUGHPUT_JOBS) * THROUGHPUT_FILE as f64
        + f64::from(IOPS_JOBS) * IOPS_FILE as f64;
    let fits = ground.free_bytes.map_or(1.0, |free| (free / SPACE_SHARE) as f64 / whole);
    let scale = args.scale.map_or_else(|| 2f64.powf(fits.log2().floor()).min(1.0), |scale| scale.0);
    let is_whole = scale >= 1.0;
    let jobs_max = args.jobs.unwrap_or(if is_whole { IOPS_JOBS } else { 16 * ground.cores });
    let duration = if is_whole { DURATION_SUITE } else { DURATION_DEFAULT };
    let duration = args.duration.map_or(duration, |duration| duration.0);
    let field = |name, format: &str, file: u64, jobs: u32, block, order| {
        let clones = jobs.min(jobs_max).max(1);
        // Fewer jobs have larger files: the amount of data is the guide's, scaled.
        let file = file as f64 * scale * f64::from(jobs) / f64::from(clones);
        Field {
            name,
            files: own_files(&args.common, format, whole_blocks(file as u64, MIB)),
            clones,
            depth: 1,
            block,
            order,
            direct: ground.direct_align.is_some(),
            duration: Some(duration),
        }
    };
    let (sequential, random) = (BlockOrderSpec::Sequential, BlockOrderSpec::EachOnce);
    let bw = "$jobnum/$filenum/bw.$jobnum.$filenum";
    let iops = "$jobnum/$filenum/iops.$jobnum.$filenum";
    let throughput = field("throughput", bw, THROUGHPUT_FILE, THROUGHPUT_JOBS, MIB, sequential);
    let operations = field("iops", iops, IOPS_FILE, IOPS_JOBS, 4 << 10, random);
    let latency = Field {
        name: "latency",
        clones: 1,
        files: operations.files.clone(),
        ..field("latency", iops, IOPS_FILE, IOPS_JOBS, 4 << 10, random)
    };
    let mut stages = vec![
        fill_stage("create-iops-files", &[&operations], ground),
        fill_stage("create-bw-files", &[&throughput], ground),
    ];
    for field in [&throughput, &operations, &latency] {
        for (direction, read_percent) in [("read", 100), ("write", 0)] {
            stages.push(block_stage(field, direction, read_percent, stages.len() as u32));
        }
    }
    let ranks = RANKS.min(if is_whole { RANKS } else { 2 * ground.cores }).min(jobs_max.max(1));
    let names = Names {
        args: &args.common,
        clones: ranks,
        // Names take little room, so that most of them fit where the guide's data does not.
        files: (RANK_FILES * (scale * NAMES_WHOLE).min(1.0)).max(RANK_FILES_MIN) as u64,
        bytes: 0,
        fsync: false,
        per_clone: true,
        shifts: true,
        opens: false,
    };
    stages.extend((0..args.iterations.max(1)).flat_map(|iteration| names.stages(iteration)));
    stages
}

/// Returns the refusal of a workload in terms of the flags of `plimsoll file`.
pub(crate) fn in_flags(error: anyhow::Error) -> anyhow::Error {
    /// The ends of fields' names, the longer ones first, and their flags.
    const FLAGS: [(&str, &str); 22] = [
        ("stages", "--iterations"),
        ("clones", "--jobs"),
        ("depth", "--depth"),
        ("ops_max", "--ops"),
        ("bytes_max", "--bytes"),
        ("duration_ns", "--duration"),
        ("ramp_ns", "--ramp"),
        ("read_blocks", "--block"),
        ("write_blocks", "--block"),
        ("order", "--order"),
        ("pacing.open.rate", "--rate"),
        ("pacing.open.arrivals", "--arrivals"),
        ("pacing.open.max_in_flight", "--max-in-flight"),
        ("pacing.capped.read", "--rps-limit"),
        ("pacing.capped.write", "--rps-limit"),
        ("files.count", "--files"),
        ("entries_per_directory", "--files"),
        ("size_bytes", "--file-size"),
        ("names.act", "--file-size"),
        ("directories", "--dir"),
        ("fdatasync_every", "--fdatasync"),
        ("fsync_every", "--fsync"),
    ];
    let Some(refused) = error.downcast_ref::<InvalidWorkload>() else { return error };
    match FLAGS.iter().find(|(field, _)| refused.field.ends_with(field)) {
        Some((_, flag)) => anyhow::anyhow!("{flag}: {}", refused.reason),
        None => error,
    }
}
