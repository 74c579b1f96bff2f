//! The flags of `plimsoll as cosbench`.

use std::path::PathBuf;

use clap::Args;

use super::{AllowDirArgs, CredentialArgs, Duration, OutputArgs, TlsArgs, TouchArgs};

#[derive(Args, Debug)]
pub(crate) struct CosbenchArgs {
    /// The workload as COSBench's XML; `-` for the standard input
    #[arg(value_name = "FILE.xml")]
    pub(crate) file: PathBuf,
    /// Write COSBench's archive into this directory: the workload's own directory, its tables over
    /// all workloads, and the number of the last one
    #[arg(long, value_name = "DIR")]
    pub(crate) archive: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) touched: TouchArgs,
    #[command(flatten)]
    pub(crate) sent: AllowDirArgs,
    /// Write into and delete from every container that the workload names
    #[arg(long)]
    pub(crate) yes: bool,
    /// Seed of the random choices [default: a new one each time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Threads that drive the workers [default: one per core]
    #[arg(long, value_name = "N", value_parser = super::value::threads(), help_heading = "Load")]
    pub(crate) threads: Option<usize>,
    /// Abort an operation after this long; COSBench gives up only after its `timeout` without a
    /// byte, as this does besides
    #[arg(long, default_value = "1h", value_name = "DURATION",
        value_parser = super::value::timeout, help_heading = "Load")]
    pub(crate) op_timeout: Duration,
    /// Who asks a storage whose config names no keys
    #[command(flatten, next_help_heading = "Storage")]
    pub(crate) credentials: CredentialArgs,
    #[command(flatten, next_help_heading = "Storage")]
    pub(crate) tls: TlsArgs,
    /// Print the equivalent workload file with each corrected setting, and exit
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
    /// Validate the workload as a run would, without touching anything, and exit
    #[arg(long, conflicts_with = "explain", help_heading = "Output")]
    pub(crate) check: bool,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
}
