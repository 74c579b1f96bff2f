//! The flags of `plimsoll loadline`.

use clap::{Args, Subcommand};
use plimsoll_workload::plan::{RateRange, SloSpec};

use super::{Duration, Percent, RunArgs, file, s3, weed};

/// The name of the command.
pub(crate) const LOADLINE: &str = "loadline";
/// What the command looks for where nobody says a benchmark: one that needs no store.
pub(crate) const BENCHMARKS: [&str; 4] = ["s3", "weed", "file", "run"];

#[derive(Args, Debug)]
#[command(
    override_usage = "plimsoll loadline [BENCHMARK] [--slo CONDITION]... [OPTIONS]",
    after_help = "Without a benchmark it is `s3 get` of small objects. Without --host the store is \
                  a built-in queue of 4 servers, 1 ms each on average, whose line theory knows: it \
                  is searched in virtual time, then gets half of that load over loopback. That \
                  takes some ten seconds on any machine."
)]
pub(crate) struct LoadLineArgs {
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(subcommand)]
    pub(crate) of: LoadLineOf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoadLineOf {
    /// Of an S3 object store
    #[command(subcommand)]
    S3(Box<s3::S3Command>),
    /// Of SeaweedFS by its own protocol
    #[command(subcommand)]
    Weed(Box<weed::WeedCommand>),
    /// Of a file system
    #[command(subcommand)]
    File(Box<file::FileCommand>),
    /// Of a stage of a workload file
    Run(Box<RunArgs>),
}

/// What is looked for.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Load line")]
pub(crate) struct SearchArgs {
    /// Search in virtual time and nothing else: exact, repeatable, no socket is opened. Of `s3` on
    /// the built-in queue, of a workload file as `run --virtual` does
    #[arg(long = "virtual", global = true)]
    pub(crate) is_virtual: bool,
    /// Search in real time, also on the built-in queue: over loopback, so that the answer depends
    /// on the machine
    #[arg(long = "real", global = true, conflicts_with = "is_virtual")]
    pub(crate) is_real: bool,
    /// What is to be kept: a percentile of the latency, from when an operation was due to its end,
    /// or the share of operations that fail; of one kind of operation with its name before it
    /// (get.p99.9<=1s). Can be given several times; all must hold
    /// [default: p99<=20ms and errors<=0.1%]
    #[arg(long, global = true, value_name = "CONDITION")]
    pub(crate) slo: Vec<SloSpec>,
    /// How long all probes together may last, in virtual time where the search is; what is prepared
    /// and cleaned comes on top [default: 10m]
    #[arg(long, global = true, value_name = "DURATION")]
    pub(crate) budget: Option<Duration>,
    /// How well the line is to be known: half of its 95 % interval. The search ends when it is
    /// [default: 5%]
    #[arg(long, global = true, value_name = "PERCENT")]
    pub(crate) precision: Option<Percent>,
    /// Look between these rates, beginning with the lower one
    /// [default: a closed loop tells where to begin]
    #[arg(long, global = true, value_name = "RATE..RATE")]
    pub(crate) rates: Option<RateRange>,
    /// The stage of a workload file that is probed, where it has several that are results
    #[arg(long = "stage", global = true, value_name = "NAME")]
    pub(crate) of_stage: Option<String>,
    /// The job of it whose rate is looked for, where it has several; the others go on as they are
    #[arg(long = "job", global = true, value_name = "NAME")]
    pub(crate) of_job: Option<String>,
}
