//! The flags of `plimsoll weed`: those of `plimsoll s3` where they make sense, and SeaweedFS's.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use plimsoll_dialects::warp;
use plimsoll_workload::plan::spec::{SeaweedAssign, SeaweedUpload};

use super::requests::DataArgs;
use super::s3::LoadArgs;
use super::{ByteSize, Duration, OutputArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum WeedCommand {
    /// Write new files
    Write(WriteArgs),
    /// Read files, or ranges of them, chosen at random
    Read(ReadArgs),
    /// Remove files, one or many with each call
    Delete(RemoveArgs),
    /// Read the properties of files chosen at random
    Stat(StatArgs),
    /// List everything under a prefix, all pages; only of a filer
    List(ListingArgs),
    /// Read, stat, write and remove, mixed by weight
    Mixed(MixedArgs),
}

impl WeedCommand {
    pub(crate) fn common(&self) -> &CommonArgs {
        match self {
            Self::Write(args) => &args.common,
            Self::Read(args) => &args.common,
            Self::Delete(args) => &args.common,
            Self::Stat(args) => &args.common,
            Self::List(args) => &args.common,
            Self::Mixed(args) => &args.common,
        }
    }
}

/// Where the cluster is, and how files are written to it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Masters, comma separated, each HOST:PORT or HOST:PORT.GRPCPORT; the leader is found among
    /// them
    #[arg(long, env = "PLIMSOLL_MASTER", default_value = "localhost:9333", value_name = "MASTERS")]
    pub(crate) master: String,
    /// Filers instead of masters, comma separated, each HOST[:PORT]; sessions take them in turn.
    /// Files have paths then
    #[arg(long, env = "PLIMSOLL_FILER", value_name = "FILERS")]
    pub(crate) filer: Option<String>,
    /// With --filer: the directory in which the run makes one of its own
    /// [default: /plimsoll-bench]
    #[arg(long, value_name = "PATH")]
    pub(crate) directory: Option<String>,
    /// Collection that is written to. Files in it that this run did not write are never touched.
    /// With --filer the filer's own choice, if this is not given
    #[arg(long, default_value = "plimsoll", value_name = "NAME")]
    pub(crate) collection: String,
    /// Replication, such as 001 (number of extra copies): in other data centers, on other racks, on
    /// other servers of the rack [default: the master's]
    #[arg(long, value_name = "XYZ")]
    pub(crate) replication: Option<String>,
    /// Time to live of what is written, in whole minutes, hours or days, such as 30m or 7d
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<Duration>,
    /// Type of disk [default: hdd]
    #[arg(long, value_name = "TYPE")]
    pub(crate) disk: Option<String>,
    /// Data center in which files are to be
    #[arg(long, value_name = "NAME")]
    pub(crate) data_center: Option<String>,
    /// Rack on which files are to be
    #[arg(long, value_name = "NAME")]
    pub(crate) rack: Option<String>,
    /// Sync each file to disk before the upload is acknowledged (fsync)
    #[arg(long)]
    pub(crate) fsync: bool,
    /// How file ids are asked for
    #[arg(long, value_enum, default_value_t = AssignArg::Call)]
    pub(crate) assign: AssignArg,
    /// Ids that a worker asks for at once; its next writes take one each
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) ids_per_assign: u32,
    /// How content goes to a volume server
    #[arg(long, value_enum, default_value_t = UploadArg::Form)]
    pub(crate) upload: UploadArg,
    /// Preallocate this many volumes, so that no figure includes volume growth
    #[arg(long, value_name = "N")]
    pub(crate) grow: Option<u32>,
    /// Create the collection (with --filer: the directory) if it does not exist. It stays, as
    /// SeaweedFS removes neither without what others may write there meanwhile
    #[arg(long)]
    pub(crate) create_bucket: bool,
    /// Drop the collection at the end, if this run made it and nobody else wrote to it
    #[arg(long, conflicts_with = "keep_data")]
    pub(crate) drop_collection: bool,
    /// The cluster's security.toml: keys of tokens, and TLS
    #[arg(long, value_name = "FILE")]
    pub(crate) security: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AssignArg {
    /// A call of gRPC each
    Call,
    /// One stream of gRPC for each worker
    Stream,
    /// HTTP
    Http,
}

impl From<AssignArg> for SeaweedAssign {
    fn from(arg: AssignArg) -> Self {
        match arg {
            AssignArg::Call => Self::Call,
            AssignArg::Stream => Self::Stream,
            AssignArg::Http => Self::Http,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UploadArg {
    /// A form of one part (POST), as weed sends it
    Form,
    /// As it is (PUT)
    Put,
}

impl From<UploadArg> for SeaweedUpload {
    fn from(arg: UploadArg) -> Self {
        match arg {
            UploadArg::Form => Self::Form,
            UploadArg::Put => Self::Put,
        }
    }
}

/// What every `weed` command takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// Size: SIZE, MIN,MAX (log-uniform) or SIZE:WEIGHT,... (KB is 1000, KiB and k are 1024)
    #[arg(
        long = "obj.size",
        default_value = "1KiB",
        value_name = "SIZE",
        help_heading = "Objects"
    )]
    pub(crate) obj_size: String,
    /// Random sizes: log-uniform from 1/256 of --obj.size up to it, or between MIN,MAX
    #[arg(long = "obj.randsize", help_heading = "Objects")]
    pub(crate) randsize: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// With --filer: put this before the run's own directory, which is plimsoll/<run>/; with
    /// --list-existing: list below it
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "PREFIX",
        help_heading = "Objects"
    )]
    pub(crate) prefix: String,
    /// Keep the files that the run wrote
    #[arg(long, alias = "noclear", help_heading = "Objects")]
    pub(crate) keep_data: bool,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
    /// Print the equivalent workload file (YAML) and exit
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Taking files that are there instead of writing some.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListArgs {
    /// Use the files that this list names, one id a line as weed benchmark writes them, instead of
    /// writing some; what is read of them is checked against the checksum that the server states.
    /// With --filer one path below --directory a line
    #[arg(long, value_name = "FILE", help_heading = "Objects")]
    pub(crate) list: Option<PathBuf>,
    /// With --filer: use the files that are there below --prefix instead of writing some; what is
    /// read of them is checked likewise
    #[arg(long, conflicts_with = "list", help_heading = "Objects")]
    pub(crate) list_existing: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Files to write before [default: 10000]; with --list or --list-existing at most this many
    /// [default: all]
    #[arg(long, value_name = "N", help_heading = "Objects")]
    pub(crate) objects: Option<u64>,
    /// Read random ranges: log-uniform lengths from 1/256 of the file up to all of it
    #[arg(long, help_heading = "Objects")]
    pub(crate) range: bool,
    /// Read ranges of this length at random offsets (KB is 1000, KiB and k are 1024)
    #[arg(long, value_name = "SIZE", help_heading = "Objects")]
    pub(crate) range_size: Option<ByteSize>,
    #[command(flatten)]
    pub(crate) listed: ListArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Files to write and remove [default: 25000]; with --list or --list-existing at most this many
    /// [default: all]
    #[arg(long, value_name = "N", help_heading = "Objects")]
    pub(crate) objects: Option<u64>,
    /// Files per call, 1 to 1000; more than 1 go by gRPC to each volume server (BatchDelete), and
    /// one after the other to a filer, which has no call for many
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Objects")]
    pub(crate) batch: u32,
    #[command(flatten)]
    pub(crate) listed: ListArgs,
    /// With --list or --list-existing: yes, remove files that this run did not write; without it
    /// the run says how many they are, and ends
    #[arg(long, help_heading = "Objects")]
    pub(crate) yes: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Files to write before [default: 10000]; with --list or --list-existing at most this many
    /// [default: all]
    #[arg(long, value_name = "N", help_heading = "Objects")]
    pub(crate) objects: Option<u64>,
    #[command(flatten)]
    pub(crate) listed: ListArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ListingArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Files to write and list
    #[arg(long, default_value_t = 10_000, value_name = "N", help_heading = "Objects")]
    pub(crate) objects: u64,
    /// Entries to ask for per page, 1 to 5000
    #[arg(long, default_value_t = warp::MAX_KEYS, value_name = "N", help_heading = "Objects")]
    pub(crate) max_keys: u32,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct MixedArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Files to write before
    #[arg(long, default_value_t = 10_000, value_name = "N", help_heading = "Objects")]
    pub(crate) objects: u64,
    /// Weight of reads
    #[arg(long, default_value_t = 45, value_name = "N", help_heading = "Objects")]
    pub(crate) get_distrib: u32,
    /// Weight of stats
    #[arg(long, default_value_t = 30, value_name = "N", help_heading = "Objects")]
    pub(crate) stat_distrib: u32,
    /// Weight of writes
    #[arg(long, default_value_t = 15, value_name = "N", help_heading = "Objects")]
    pub(crate) put_distrib: u32,
    /// Weight of removals; at most that of writes
    #[arg(long, default_value_t = 10, value_name = "N", help_heading = "Objects")]
    pub(crate) delete_distrib: u32,
}
