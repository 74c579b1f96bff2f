//! The flags of `plimsoll s3`: warp's names and defaults, and a few of our own.

use clap::{Args, Subcommand, ValueEnum};
use plimsoll_dialects::warp::{self, WarpBenchmark as Of};

use plimsoll_driver_s3::ProfileKinds;
use plimsoll_http::Transport;
use plimsoll_workload::plan::Rate;
use serde::{Deserialize, Serialize};

use super::requests::{DataArgs, RequestArgs};
use super::{CredentialArgs, Duration, OutputArgs, Percent, TimeOfDay, TlsArgs, TouchArgs, value};

/// The bucket where none is named.
const BUCKET: &str = "plimsoll";
/// Connection timeout where nobody says otherwise.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

#[derive(Debug, Subcommand)]
pub(crate) enum S3Command {
    /// Download objects, or ranges of them, chosen at random
    Get(GetArgs),
    /// Upload new objects
    Put(PutArgs),
    /// Delete objects, many per request
    Delete(DeleteArgs),
    /// List everything under a prefix, all pages
    List(ListArgs),
    /// Read the metadata (HEAD) of objects chosen at random
    Stat(StatArgs),
    /// Download, stat, upload and delete, mixed by weight
    Mixed(MixedArgs),
    /// The same mix on versioned objects
    Versioned(MixedArgs),
    /// Set object-lock retention dates; needs a bucket with object locking
    Retention(RetentionArgs),
    /// Download single parts of one multipart object
    Multipart(MultipartArgs),
    /// Upload objects in parts: create, parts and complete are separate operations
    MultipartPut(MultipartPutArgs),
    /// Append to objects (S3 Express)
    Append(AppendArgs),
    /// Download single files from a zip archive on the server (MinIO)
    Zip(ZipArgs),
    /// Upload tar archives that the server extracts (MinIO)
    Snowball(SnowballArgs),
    /// Upload one body that the server stores under several keys (MinIO)
    Fanout(FanoutArgs),
}

/// Where the store is and how it is spoken to. Agents are told it, but for who asks, which goes to
/// them apart from it.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// Hosts, comma separated, each [http[s]://]HOST[:PORT] (https:// means --tls; without a port
    /// 80, with --tls 443); {1...8} stands for a range; file:PATH has one a line. Without hosts the
    /// embedded in-memory store is used
    #[arg(long, env = "PLIMSOLL_HOST", value_name = "HOSTS")]
    pub(crate) host: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) credentials: CredentialArgs,
    /// Speak TLS
    #[arg(long, env = "PLIMSOLL_TLS")]
    pub(crate) tls: bool,
    #[command(flatten)]
    pub(crate) tls_trust: TlsArgs,
    /// Region that requests are signed for [default: from the host's name, else from the profile,
    /// else us-east-1]
    #[arg(long, env = "PLIMSOLL_REGION", value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Bucket. Objects that this run did not write are never touched
    #[arg(long, default_value = BUCKET, value_name = "BUCKET")]
    pub(crate) bucket: String,
    /// Create the bucket if it does not exist, and remove it at the end if nothing else is in it;
    /// the embedded store creates every bucket
    #[arg(long)]
    pub(crate) create_bucket: bool,
    /// Keep a bucket that the run created
    #[arg(long)]
    pub(crate) keep_bucket: bool,
    /// How the host of the next operation is chosen
    #[arg(long, value_enum, default_value_t = HostSelectArg::Weighed)]
    pub(crate) host_select: HostSelectArg,
    /// Bucket addressing style
    #[arg(long, value_enum, default_value_t = LookupArg::Auto)]
    pub(crate) lookup: LookupArg,
    /// Do not sign the payload of uploads; this is the default
    #[arg(long, conflicts_with = "sha256_payload")]
    pub(crate) disable_sha256_payload: bool,
    /// Compute and sign the SHA-256 of uploads
    #[arg(long)]
    pub(crate) sha256_payload: bool,
    /// Compute and send the MD5 of uploads
    #[arg(long)]
    pub(crate) md5: bool,
    /// Open a new connection for every request
    #[arg(long)]
    pub(crate) disable_http_keepalive: bool,
    /// Connection timeout
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    pub(crate) connect_timeout: Duration,
    #[command(flatten)]
    pub(crate) requests: RequestArgs,
}

impl StoreArgs {
    /// Returns those that say who asks and whom to trust, and nothing else.
    pub(crate) fn of(credentials: CredentialArgs, tls_trust: TlsArgs) -> Self {
        Self {
            host: None,
            credentials,
            tls: false,
            tls_trust,
            region: None,
            bucket: BUCKET.to_owned(),
            create_bucket: false,
            keep_bucket: false,
            host_select: HostSelectArg::Weighed,
            lookup: LookupArg::Auto,
            disable_sha256_payload: false,
            sha256_payload: false,
            md5: false,
            disable_http_keepalive: false,
            connect_timeout: Duration(CONNECT_TIMEOUT),
            requests: RequestArgs::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum HostSelectArg {
    /// The host with the fewest operations in flight, then the one idle for longest
    Weighed,
    /// Round robin
    Roundrobin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum LookupArg {
    /// dns at the large public providers, else path
    Auto,
    /// https://host/bucket/key
    Path,
    /// https://bucket.host/key
    Dns,
}

/// How the operations are carried out, whatever they are.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConductArgs {
    /// Threads that drive the workers [default: one per core; half of them on the embedded store]
    #[arg(long, value_name = "N", value_parser = value::threads())]
    pub(crate) threads: Option<usize>,
    /// Start measuring at this time of day, hh:mm or hh:mm:ss, in the machine's time zone
    #[arg(long, value_name = "TIME")]
    pub(crate) syncstart: Option<TimeOfDay>,
    /// Retries after a transient failure; counted, and part of the latency
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = value::retries())]
    pub(crate) retries: u8,
    /// Abort an operation after this long
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = value::timeout)]
    pub(crate) op_timeout: Duration,
    /// Exit with 1 when more than this share of the operations failed
    #[arg(long, default_value = "1%", value_name = "PERCENT")]
    pub(crate) max_error_rate: Percent,
    /// What carries plain HTTP/1.1 to stores; TLS, HTTP/2 and what goes through a proxy take
    /// sockets
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    pub(crate) transport: TransportArg,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum TransportArg {
    /// Requests that are ready together go out with one call of io_uring, where this machine has
    /// it; all others as over sockets
    #[default]
    Auto,
    /// Sockets: a system call for each send and each receive
    Sockets,
    /// Every request without a body goes through io_uring, also one that is alone
    #[value(name = "io_uring")]
    IoUring,
}

impl From<TransportArg> for Transport {
    fn from(arg: TransportArg) -> Self {
        match arg {
            TransportArg::Auto => Self::Auto,
            TransportArg::Sockets => Self::Sockets,
            TransportArg::IoUring => Self::IoUring,
        }
    }
}

/// What the server tells of itself.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerProfileArgs {
    /// Have MinIO profile itself while it is measured, a comma list of cpu, cpuio, mem, block,
    /// mutex, threads, trace; kept in the run directory as server-profiles.zip. Needs admin rights.
    /// The first host that can be reached is asked; it has all nodes of its deployment profiled
    #[arg(long, value_name = "KINDS", help_heading = "Telemetry")]
    pub(crate) serverprof: Option<ProfileKinds>,
}

/// What is done, how hard and for how long.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Workers, each with one operation in flight; with --rate they only prepare, and as many
    /// streams run, each with its own arrivals and objects. To compare numbers of workers, give
    /// --transport sockets as well: the default depends on how many connections a thread has
    #[arg(long, default_value_t = warp::CONCURRENT, value_name = "N")]
    pub(crate) concurrent: u32,
    /// How long to measure [default: 5m; 10s on the embedded store]
    #[arg(long, value_name = "DURATION")]
    pub(crate) duration: Option<Duration>,
    /// Stop early once throughput is steady: of the time so far in 25 equal slices, the last 7
    /// agree within --autoterm.pct
    #[arg(long)]
    pub(crate) autoterm: bool,
    /// With --autoterm: those 7 slices together must be longer than this [default: 15s]
    #[arg(long = "autoterm.dur", value_name = "DURATION")]
    pub(crate) autoterm_dur: Option<Duration>,
    /// With --autoterm: how far the last slice may differ from each of the six before it, in
    /// percent of its own throughput [default: 7.5%]
    #[arg(long = "autoterm.pct", value_name = "PERCENT")]
    pub(crate) autoterm_pct: Option<Percent>,
    /// Stop once a figure is precise enough: 'ci(p99)<=5%' asks for a 95 % confidence interval of
    /// at most ±5 %. Figures: rate, throughput, and of the latency mean, p50, p90, p99, p99.9. Can
    /// be given several times; all must hold
    #[arg(long, value_name = "RULE")]
    pub(crate) until: Vec<String>,
    /// Cap on operations a second over all workers, such as 500/s. A worker still waits for its
    /// previous operation (closed loop)
    #[arg(long, value_name = "RATE")]
    pub(crate) rps_limit: Option<Rate>,
    /// Start operations on a schedule, whatever the store does (an open loop): 1000/s, a ramp
    /// '100/s..5000/s over 2m' or steps '100/s for 30s, 200/s for 30s, 400/s', over all workers
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub(crate) rate: Option<String>,
    /// With --rate: evenly spaced (constant) or independent users (poisson) [default: constant]
    #[arg(long, value_name = "LAW")]
    pub(crate) arrivals: Option<String>,
    /// With --rate: maximum operations in flight; further ones wait and count as late [default:
    /// 1024]
    #[arg(long, value_name = "N")]
    pub(crate) max_in_flight: Option<u32>,
    /// Seed of every random choice [default: a new one, recorded with the run]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) conduct: ConductArgs,
    /// Do not check the content of downloads, only its length
    #[arg(long)]
    pub(crate) no_verify: bool,
}

/// Which objects, and what becomes of them.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Objects")]
pub(crate) struct ObjectArgs {
    /// Random sizes: log-uniform from 1/256 of --obj.size up to it, or between MIN,MAX
    #[arg(long = "obj.randsize")]
    pub(crate) randsize: bool,
    /// Prefix in front of the run's own, plimsoll/<run>/; with --list-existing: list under it
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PREFIX")]
    pub(crate) prefix: String,
    /// No prefix for each worker below the run's own
    #[arg(long)]
    pub(crate) noprefix: bool,
    /// Keep the objects that the run wrote
    #[arg(long)]
    pub(crate) noclear: bool,
    /// The same as --noclear
    #[arg(long)]
    pub(crate) keep_data: bool,
}

/// What every `s3` command takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) objects: ObjectArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) profile: ServerProfileArgs,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
    /// Print the equivalent workload file (YAML) and exit
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
}

/// Taking what is there instead of uploading.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Objects")]
pub(crate) struct ExistingArgs {
    /// Use existing objects under --prefix instead of uploading; their content is not checked
    #[arg(long)]
    pub(crate) list_existing: bool,
    /// With --list-existing, do not look below `/`
    #[arg(long, requires = "list_existing")]
    pub(crate) list_flat: bool,
}

/// The size of objects where large ones are the custom.
#[derive(Args, Clone, Debug)]
pub(crate) struct LargeSizeArgs {
    /// Size: SIZE, MIN,MAX (log-uniform) or SIZE:WEIGHT,... (KB is 1000, KiB and k are 1024)
    /// [default: 10MiB; 1MiB on the embedded store]
    #[arg(long = "obj.size", value_name = "SIZE", help_heading = "Objects")]
    pub(crate) obj_size: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Objects to upload [default: 2500; 500 on the embedded store]; with --list-existing at most
    /// this many [default: all]
    #[arg(long, value_name = "N", help_heading = "Objects")]
    pub(crate) objects: Option<u64>,
    #[command(flatten)]
    pub(crate) large: LargeSizeArgs,
    /// Read random ranges: log-uniform lengths from 1/256 of the object up to all of it
    #[arg(long, help_heading = "Objects")]
    pub(crate) range: bool,
    /// Read ranges of this length at random offsets (KB is 1000, KiB and k are 1024)
    #[arg(long, value_name = "SIZE", help_heading = "Objects")]
    pub(crate) range_size: Option<super::ByteSize>,
    #[command(flatten)]
    pub(crate) existing: ExistingArgs,
    /// Versions of each object to upload, of which one is read
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Objects")]
    pub(crate) versions: u32,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) large: LargeSizeArgs,
    /// Upload by HTML forms (POST)
    #[arg(long, help_heading = "Objects")]
    pub(crate) post: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Objects to upload and delete [default: 25000]; with --list-existing at most this many
    /// [default: all]
    #[arg(long, value_name = "N", help_heading = "Objects")]
    pub(crate) objects: Option<u64>,
    /// Size: SIZE, MIN,MAX (log-uniform) or SIZE:WEIGHT,... (KB is 1000, KiB and k are 1024)
    #[arg(
        long = "obj.size",
        default_value = Of::Delete.size(),
        value_name = "SIZE",
        help_heading = "Objects"
    )]
    pub(crate) obj_size: String,
    /// Objects per call, 1 to 1000
    #[arg(long, default_value_t = warp::BATCH, value_name = "N", help_heading = "Objects")]
    pub(crate) batch: u32,
    #[command(flatten)]
    pub(crate) existing: ExistingArgs,
    /// With --list-existing: yes, delete objects that this run did not write; without it the run
    /// says how many they are, and ends
    #[arg(long, help_heading = "Objects")]
    pub(crate) yes: bool,
    #[command(flatten, next_help_heading = "Objects")]
    pub(crate) touched: TouchArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Objects to upload and list
    #[arg(long, default_value_t = Of::List.objects(), value_name = "N", help_heading = "Objects")]
    pub(crate) objects: u64,
    /// Size: SIZE, MIN,MAX (log-uniform) or SIZE:WEIGHT,... (KB is 1000, KiB and k are 1024)
    #[arg(
        long = "obj.size",
        default_value = Of::List.size(),
        value_name = "SIZE",
        help_heading = "Objects"
    )]
    pub(crate) obj_size: String,
    /// Entries to ask for per page, 1 to 5000
    #[arg(long, default_value_t = warp::MAX_KEYS, value_name = "N", help_heading = "Objects")]
    pub(crate) max_keys: u32,
    /// Versions of each object to upload; with more than 1 versions are listed
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Objects")]
    pub(crate) versions: u32,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Objects to upload [default: 10000]; with --list-existing at most this many [default: all]
    #[arg(long, value_name = "N", help_heading = "Objects")]
    pub(crate) objects: Option<u64>,
    /// Size: SIZE, MIN,MAX (log-uniform) or SIZE:WEIGHT,... (KB is 1000, KiB and k are 1024)
    #[arg(
        long = "obj.size",
        default_value = Of::Stat.size(),
        value_name = "SIZE",
        help_heading = "Objects"
    )]
    pub(crate) obj_size: String,
    #[command(flatten)]
    pub(crate) existing: ExistingArgs,
    /// Versions of each object to upload, of which one is asked about
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Objects")]
    pub(crate) versions: u32,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct MixedArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Objects to upload before [default: 2500, versioned 250; 500 on the embedded store]
    #[arg(long, value_name = "N", help_heading = "Objects")]
    pub(crate) objects: Option<u64>,
    #[command(flatten)]
    pub(crate) large: LargeSizeArgs,
    /// Weight of GET
    #[arg(long, default_value_t = warp::WEIGHTS[0], value_name = "WEIGHT", help_heading = "Mix")]
    pub(crate) get_distrib: u32,
    /// Weight of STAT
    #[arg(long, default_value_t = warp::WEIGHTS[1], value_name = "WEIGHT", help_heading = "Mix")]
    pub(crate) stat_distrib: u32,
    /// Weight of PUT
    #[arg(long, default_value_t = warp::WEIGHTS[2], value_name = "WEIGHT", help_heading = "Mix")]
    pub(crate) put_distrib: u32,
    /// Weight of DELETE, at most that of PUT
    #[arg(long, default_value_t = warp::WEIGHTS[3], value_name = "WEIGHT", help_heading = "Mix")]
    pub(crate) delete_distrib: u32,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct RetentionArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Objects to upload
    #[arg(
        long,
        default_value_t = Of::Retention.objects(),
        value_name = "N",
        help_heading = "Objects"
    )]
    pub(crate) objects: u64,
    /// Versions of each
    #[arg(long, default_value_t = warp::VERSIONS, value_name = "N", help_heading = "Objects")]
    pub(crate) versions: u32,
    /// Size: SIZE, MIN,MAX (log-uniform) or SIZE:WEIGHT,... (KB is 1000, KiB and k are 1024)
    #[arg(
        long = "obj.size",
        default_value = Of::Retention.size(),
        value_name = "SIZE",
        help_heading = "Objects"
    )]
    pub(crate) obj_size: String,
    /// For how long from then on a version is kept
    #[arg(long, default_value = "24h", value_name = "DURATION", help_heading = "Objects")]
    pub(crate) hold: Duration,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct MultipartArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Parts of the object, 1 to 10000
    #[arg(long, default_value_t = warp::PARTS, value_name = "N", help_heading = "Objects")]
    pub(crate) parts: u32,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct MultipartPutArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Parts of each object, 1 to 10000 [default: 100; 10 on the embedded store]
    #[arg(long, value_name = "N", help_heading = "Objects")]
    pub(crate) parts: Option<u32>,
    /// Parts of each object uploaded in parallel, at most --parts [default: 20, or --parts where
    /// those are fewer]
    #[arg(long = "part.concurrent", value_name = "N", help_heading = "Objects")]
    pub(crate) part_concurrent: Option<u32>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct AppendArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) large: LargeSizeArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ZipArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Files in the archive
    #[arg(long, default_value_t = Of::Zip.objects(), value_name = "N", help_heading = "Objects")]
    pub(crate) files: u64,
    /// Size of a file: SIZE, MIN,MAX (log-uniform) or SIZE:WEIGHT,...
    #[arg(
        long = "obj.size",
        default_value = Of::Zip.size(),
        value_name = "SIZE",
        help_heading = "Objects"
    )]
    pub(crate) obj_size: String,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SnowballArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Objects in an archive
    #[arg(
        long = "objs.per",
        default_value_t = warp::MEMBERS,
        value_name = "N",
        help_heading = "Objects"
    )]
    pub(crate) objs_per: u32,
    /// Size of each: SIZE, MIN,MAX (log-uniform) or SIZE:WEIGHT,...
    #[arg(
        long = "obj.size",
        default_value = Of::Snowball.size(),
        value_name = "SIZE",
        help_heading = "Objects"
    )]
    pub(crate) obj_size: String,
    /// Compress archives with zstd
    #[arg(long, help_heading = "Objects")]
    pub(crate) compress: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct FanoutArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Names that each content is written under
    #[arg(long, default_value_t = warp::COPIES, value_name = "N", help_heading = "Objects")]
    pub(crate) copies: u32,
    /// Size: SIZE, MIN,MAX (log-uniform) or SIZE:WEIGHT,... (KB is 1000, KiB and k are 1024)
    #[arg(
        long = "obj.size",
        default_value = Of::Fanout.size(),
        value_name = "SIZE",
        help_heading = "Objects"
    )]
    pub(crate) obj_size: String,
}

impl S3Command {
    /// Returns what all commands take.
    pub(crate) fn common(&self) -> &CommonArgs {
        match self {
            Self::Get(args) => &args.common,
            Self::Put(args) => &args.common,
            Self::Delete(args) => &args.common,
            Self::List(args) => &args.common,
            Self::Stat(args) => &args.common,
            Self::Mixed(args) | Self::Versioned(args) => &args.common,
            Self::Retention(args) => &args.common,
            Self::Multipart(args) => &args.common,
            Self::MultipartPut(args) => &args.common,
            Self::Append(args) => &args.common,
            Self::Zip(args) => &args.common,
            Self::Snowball(args) => &args.common,
            Self::Fanout(args) => &args.common,
        }
    }
}
