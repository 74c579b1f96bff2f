//! The flags of `plimsoll check`.

use std::path::PathBuf;

use clap::Args;

use super::s3::{StoreArgs, TransportArg};
use super::{Duration, PrintArgs};

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The store and the bucket, http[s]://HOST[:PORT]/BUCKET, instead of --host, --tls and
    /// --bucket; or weed://MASTER:PORT[/COLLECTION][?replication=XYZ], or
    /// weed-filer://HOST[:PORT][/DIRECTORY]. Without either the embedded in-memory store is checked
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// With weed:// or weed-filer://: the cluster's security.toml, with keys of tokens, and TLS
    #[arg(long, value_name = "FILE")]
    pub(crate) security: Option<PathBuf>,
    /// End after this long [default: 30s; no limit with --ops]
    #[arg(long, value_name = "DURATION", help_heading = "Load")]
    pub(crate) duration: Option<Duration>,
    /// End after this many operations
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) ops: Option<u64>,
    /// Workers, each with one operation under way at a time
    #[arg(long, default_value_t = 16, value_name = "N", help_heading = "Load",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) concurrent: u32,
    /// Keys in use at one time; the fewer, the more operations meet at each
    #[arg(long, default_value_t = 16, value_name = "N", help_heading = "Load",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) keys: u32,
    /// Fixes what every worker asks for, though not what comes first [default: chosen anew]
    #[arg(long, value_name = "NUMBER", help_heading = "Load")]
    pub(crate) seed: Option<u64>,
    /// Threads that drive the workers [default: one per core; half of them on the embedded store]
    #[arg(long, value_name = "N", value_parser = super::value::threads(), help_heading = "Load")]
    pub(crate) threads: Option<usize>,
    /// Abort an operation after this long; whether a write took effect is then unknown
    #[arg(long, default_value = "10s", value_name = "DURATION", help_heading = "Load",
        value_parser = super::value::timeout)]
    pub(crate) op_timeout: Duration,
    /// What carries plain HTTP/1.1 to the store; TLS, HTTP/2 and what goes through a proxy take
    /// sockets
    #[arg(long, value_enum, default_value_t, value_name = "NAME", help_heading = "Load")]
    pub(crate) transport: TransportArg,
    /// How many violations are shown with their proof; all are counted
    #[arg(long, default_value_t = 10, value_name = "N", help_heading = "Output")]
    pub(crate) show: usize,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) print: PrintArgs,
}
