//! The flags of `plimsoll file`, and of the other tools' command lines that work on files.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use plimsoll_model::{Interface, SyncMode};
use plimsoll_workload::plan::spec::BlockOrder;
use plimsoll_workload::plan::{Percent as Share, Rate};

use plimsoll_conduct::Consent;

use super::{ByteSize, DESTROYS, Duration, OutputArgs, Percent, value};

#[derive(Debug, Subcommand)]
pub(crate) enum FileCommand {
    /// Bytes a second: large blocks, one after the other
    Bandwidth(BlocksArgs),
    /// Operations a second: small blocks in random order, many in flight
    Iops(BlocksArgs),
    /// Time of one operation: small blocks in random order, one in flight
    Latency(BlocksArgs),
    /// Names: create, stat, open and remove files
    Metadata(MetadataArgs),
    /// Everything that WEKA's guide measures, in its order, with its table
    Suite(SuiteArgs),
}

impl FileCommand {
    /// Returns what all commands take.
    pub(crate) fn common(&self) -> &FileArgs {
        match self {
            Self::Bandwidth(args) | Self::Iops(args) | Self::Latency(args) => &args.common,
            Self::Metadata(args) => &args.common,
            Self::Suite(args) => &args.common,
        }
    }

    /// Returns whether leave is given to write to files that already exist.
    pub(crate) fn consent(&self) -> Consent {
        let given = match self {
            Self::Bandwidth(args) | Self::Iops(args) | Self::Latency(args) => {
                args.i_know_this_destroys_data
            }
            Self::Metadata(_) | Self::Suite(_) => false,
        };
        Consent::by(DESTROYS, given)
    }

    /// Returns the files that already exist and are worked on.
    pub(crate) fn on(&self) -> &[String] {
        match self {
            Self::Bandwidth(args) | Self::Iops(args) | Self::Latency(args) => &args.on,
            Self::Metadata(_) | Self::Suite(_) => &[],
        }
    }
}

/// Where the files lie and how a run on them is conducted.
#[derive(Args, Clone, Debug)]
pub(crate) struct FileArgs {
    /// Directory to work in; the run makes one of its own in it, plimsoll/<run>, and removes it
    /// again. Given several times, jobs take them in turn
    #[arg(long, required = true, value_name = "DIR", help_heading = "Files")]
    pub(crate) dir: Vec<String>,
    /// Keep the files that the run wrote
    #[arg(long, help_heading = "Files")]
    pub(crate) keep_data: bool,
    /// Do not check the bytes that are read
    #[arg(long, help_heading = "Load")]
    pub(crate) no_verify: bool,
    /// Seed of every random choice [default: a new one each time]
    #[arg(long, value_name = "NUMBER", help_heading = "Load")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) conduct: FileConductArgs,
    /// Print the equivalent workload file (YAML) and exit
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
}

/// How operations on files are carried out, whatever they are.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub(crate) struct FileConductArgs {
    /// How operations reach the kernel, where the job does not say it [default: io_uring, or the
    /// best that the machine allows]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) interface: Option<InterfaceArg>,
    /// Threads that drive jobs whose interface does not block [default: one per core]
    #[arg(long, value_name = "N", value_parser = value::threads())]
    pub(crate) threads: Option<usize>,
    /// Before each stage that goes through caches, empty all caches of the machine, not only of the
    /// stage's own files; slows down everything else that runs on it, and takes root
    #[arg(long)]
    pub(crate) drop_machine_caches: bool,
    /// Exit with 1 when more than this share of the operations failed
    #[arg(long, default_value = "0%", value_name = "PERCENT")]
    pub(crate) max_error_rate: Percent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InterfaceArg {
    /// Many operations with one call of the kernel's newest interface
    #[value(name = "io_uring")]
    IoUring,
    /// The kernel's older asynchronous calls
    Libaio,
    /// One blocking call each, and a thread for each job
    Psync,
}

impl From<InterfaceArg> for Interface {
    fn from(arg: InterfaceArg) -> Self {
        match arg {
            InterfaceArg::IoUring => Self::IoUring,
            InterfaceArg::Libaio => Self::Libaio,
            InterfaceArg::Psync => Self::Psync,
        }
    }
}

/// What is done to blocks.
#[derive(Args, Clone, Debug)]
pub(crate) struct BlocksArgs {
    #[command(flatten)]
    pub(crate) common: FileArgs,
    /// What is done; `both` reads first and then writes, as two phases
    #[arg(long, value_enum, default_value_t = OpArg::Both, help_heading = "Load")]
    pub(crate) op: OpArg,
    /// With --op mixed: how much of the operations is reads
    #[arg(long, default_value = "70%", value_name = "PERCENT", help_heading = "Load")]
    pub(crate) read_share: Percent,
    /// How long each phase lasts; without --duration it is 30s, or until --ops or --bytes are done
    #[arg(long, value_name = "DURATION", help_heading = "Load")]
    pub(crate) duration: Option<Duration>,
    /// Warm-up before measuring starts
    #[arg(long, default_value = "0s", value_name = "DURATION", help_heading = "Load")]
    pub(crate) ramp: Duration,
    /// End each job after this many operations
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) ops: Option<u64>,
    /// End each job after this many bytes
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    pub(crate) bytes: Option<ByteSize>,
    /// Jobs at once, each with files of its own [default: one per core; latency: 1]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) jobs: Option<u32>,
    /// Operations that each job keeps in flight [default: bandwidth 4, iops 16, latency 1]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) depth: Option<u32>,
    /// Block size [default: bandwidth 1MiB, others 4KiB]
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    pub(crate) block: Option<ByteSize>,
    /// Access pattern: sequential, random (each once in a pass), uniform, zipf:THETA, pareto:H,
    /// normal:PERCENT [default: bandwidth sequential, others random]
    #[arg(long, value_name = "ORDER", help_heading = "Load")]
    pub(crate) order: Option<OrderArg>,
    /// Operations a second over all jobs on a schedule, as of `plimsoll s3`: 1000/s, or a ramp or
    /// steps; latency then counts from when each was due
    #[arg(long, value_name = "RATE", help_heading = "Load")]
    pub(crate) rate: Option<String>,
    /// With --rate: evenly spaced (constant) or independent users (poisson)
    #[arg(long, default_value = "constant", value_name = "LAW", help_heading = "Load")]
    pub(crate) arrivals: String,
    /// With --rate: maximum operations in flight [default: 1024]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) max_in_flight: Option<u32>,
    /// Cap on the reads a second of each job, and on its writes, such as 500/s; waiting is not in
    /// the latency
    #[arg(long, value_name = "RATE", conflicts_with = "rate", help_heading = "Load")]
    pub(crate) rps_limit: Option<Rate>,
    /// Size of each file [default: 1GiB, or less where the free space asks for it]
    #[arg(long, value_name = "SIZE", help_heading = "Files")]
    pub(crate) file_size: Option<ByteSize>,
    /// Files of each job
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Files")]
    pub(crate) files: u32,
    /// Bypass the page cache (O_DIRECT): auto = where the file system supports it
    #[arg(long, value_enum, default_value_t = DirectArg::Auto, help_heading = "Files")]
    pub(crate) direct: DirectArg,
    /// Whether each write is durable when it returns (O_SYNC, O_DSYNC)
    #[arg(long, value_enum, default_value_t = SyncArg::Off, help_heading = "Files")]
    pub(crate) sync: SyncArg,
    /// An fsync after this many writes of a job
    #[arg(long, value_name = "N", help_heading = "Files")]
    pub(crate) fsync: Option<u32>,
    /// An fdatasync after this many writes of a job
    #[arg(long, value_name = "N", conflicts_with = "fsync", help_heading = "Files")]
    pub(crate) fdatasync: Option<u32>,
    /// An fsync of each file at the end
    #[arg(long, help_heading = "Files")]
    pub(crate) end_fsync: bool,
    /// Read this file or device as it is instead of files of the run; bytes are not checked. Given
    /// several times, each job has all of them
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    pub(crate) on: Vec<String>,
    /// With --on: yes, overwrite it
    #[arg(long, requires = "on", help_heading = "Files")]
    pub(crate) i_know_this_destroys_data: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OpArg {
    /// Only reads
    Read,
    /// Only writes
    Write,
    /// Reads, then writes
    Both,
    /// Reads and writes at once
    Mixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectArg {
    /// Where the file system allows it
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyncArg {
    /// No
    Off,
    /// Content and attributes (O_SYNC)
    Sync,
    /// Content (O_DSYNC)
    Dsync,
}

impl From<SyncArg> for SyncMode {
    fn from(arg: SyncArg) -> Self {
        match arg {
            SyncArg::Off => Self::Off,
            SyncArg::Sync => Self::Sync,
            SyncArg::Dsync => Self::Dsync,
        }
    }
}

/// Which block comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OrderArg(pub(crate) BlockOrder);

impl FromStr for OrderArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, parameter) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
        let number = || -> Result<f64, String> {
            let parameter = parameter.ok_or_else(|| format!("needs a number, as in {name}:1.1"))?;
            parameter.parse().map_err(|_| format!("`{parameter}` is not a number"))
        };
        let order = match name {
            "sequential" => BlockOrder::Sequential,
            "random" => BlockOrder::EachOnce,
            "uniform" => BlockOrder::Uniform,
            "zipf" => return Ok(Self(BlockOrder::Zipf(number()?))),
            "pareto" => return Ok(Self(BlockOrder::Pareto(number()?))),
            "normal" => return Ok(Self(BlockOrder::Normal(Share(number()?)))),
            _ => {
                return Err("choose sequential, random, uniform, zipf:THETA, pareto:H or \
                            normal:PERCENT"
                    .to_owned());
            }
        };
        match parameter {
            None => Ok(Self(order)),
            Some(_) => Err(format!("{name} takes no number")),
        }
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct MetadataArgs {
    #[command(flatten)]
    pub(crate) common: FileArgs,
    /// Workers at once [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) jobs: Option<u32>,
    /// Files that each worker makes
    #[arg(long, default_value_t = 10_000, value_name = "N", help_heading = "Files")]
    pub(crate) files: u64,
    /// Bytes written to each file, and read again
    #[arg(long, default_value = "0B", value_name = "SIZE", help_heading = "Files")]
    pub(crate) file_size: ByteSize,
    /// An fsync of each file before it is closed
    #[arg(long, help_heading = "Files")]
    pub(crate) fsync: bool,
    /// All workers in one directory instead of one each
    #[arg(long, help_heading = "Files")]
    pub(crate) shared_directory: bool,
    /// Repeat everything so often
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Load",
        value_parser = value::iterations())]
    pub(crate) iterations: u32,
    /// Do not have each phase done by another worker than made the files
    #[arg(long, help_heading = "Load")]
    pub(crate) no_shift: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SuiteArgs {
    #[command(flatten)]
    pub(crate) common: FileArgs,
    /// Part of the guide's file sizes, such as 1/1024; 1 is 32 files of 128 GiB and 192 of 4 GiB
    /// [default: what fits a tenth of the free space]
    #[arg(long, value_name = "FRACTION", help_heading = "Files")]
    pub(crate) scale: Option<ScaleArg>,
    /// How long each phase on blocks lasts [default: 300s at scale 1, else 30s]
    #[arg(long, value_name = "DURATION", help_heading = "Load")]
    pub(crate) duration: Option<Duration>,
    /// The most jobs at once [default: at scale 1 the guide's 192, else 16 per core]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) jobs: Option<u32>,
    /// Repetitions of the phases on names
    #[arg(long, default_value_t = 3, value_name = "N", help_heading = "Load",
        value_parser = value::iterations())]
    pub(crate) iterations: u32,
}

/// A part of the whole: `1/1024`, `0.5`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScaleArg(pub(crate) f64);

impl FromStr for ScaleArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let value = match text.split_once('/') {
            Some((over, under)) => {
                number(over).zip(number(under)).map(|(over, under)| over / under)
            }
            None => number(text),
        };
        let value = value.filter(|value| *value > 0.0 && *value <= 1.0);
        value.map(Self).ok_or_else(|| "not a part of the whole such as 1/1024 or 0.5".to_owned())
    }
}

/// How a job file of fio's is read and made to fit.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Job files of fio")]
pub(crate) struct JobFileArgs {
    /// Read numbers as fio does, where 1MiB is 1,000,000 and 2min is 2 microseconds
    #[arg(long)]
    pub(crate) fio_units: bool,
    /// Shrink files and amounts to this part, such as 1/1024
    #[arg(long, value_name = "FRACTION")]
    pub(crate) scale: Option<ScaleArg>,
    /// Shrink times to this part
    #[arg(long, value_name = "FRACTION")]
    pub(crate) scale_time: Option<ScaleArg>,
    /// Run at most this many clones of a job
    #[arg(long, value_name = "N")]
    pub(crate) jobs_max: Option<u32>,
    /// Yes, write to files and devices that were there before
    #[arg(long)]
    pub(crate) i_know_this_destroys_data: bool,
    /// Only these sections
    #[arg(long, value_name = "NAME")]
    pub(crate) section: Vec<String>,
    /// Work in this directory instead of those that the job file names [default: theirs, else here]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct FioArgs {
    /// fio's own options and job files; --client=FILE or --client=HOST has the agents of these
    /// names carry them out. plimsoll's flags come before them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FIO ARGS")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) reading: JobFileArgs,
    #[command(flatten)]
    pub(crate) conduct: FileConductArgs,
    /// Keep the files that the run wrote
    #[arg(long)]
    pub(crate) keep_data: bool,
    /// Print the equivalent workload file (YAML) and exit
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct MdtestArgs {
    /// mdtest's own options, also as `mpirun -np N mdtest ...`. plimsoll's flags come before them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "MDTEST ARGS")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) conduct: FileConductArgs,
    /// Write the whole run as one JSON object to this file, beside the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json_file: Option<PathBuf>,
    /// Print the equivalent workload file (YAML) and exit
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
}
