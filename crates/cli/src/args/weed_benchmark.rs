//! The flags of `plimsoll as weed-benchmark` that are ours.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Duration, OutputArgs, Percent};

#[derive(Args, Debug)]
pub(crate) struct WeedBenchmarkArgs {
    /// The flags of weed benchmark: -master -c -n -size -list and so on, also with `weed` and
    /// `benchmark` before them. plimsoll's flags come before all of these
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WEED ARGS")]
    pub(crate) words: Vec<String>,
    /// Read -n different files instead of drawing each one
    #[arg(long)]
    pub(crate) distinct: bool,
    /// Remove at the end what was written, and write no list
    #[arg(long)]
    pub(crate) clean: bool,
    /// The cluster's security.toml [default: where weed looks for it: ., ~/.seaweedfs,
    /// /etc/seaweedfs]
    #[arg(long, value_name = "FILE")]
    pub(crate) security: Option<PathBuf>,
    /// Threads that drive the workers [default: -maxCpu, or one per core]
    #[arg(long, value_name = "N", value_parser = super::value::threads())]
    pub(crate) threads: Option<usize>,
    /// Abort an operation after this long
    #[arg(long, default_value = "2m", value_name = "DURATION",
        value_parser = super::value::timeout)]
    pub(crate) op_timeout: Duration,
    /// Exit with 1 when more than this share of the operations of a stage failed
    #[arg(long, default_value = "0%", value_name = "PERCENT")]
    pub(crate) max_error_rate: Percent,
    /// Seed of the random choices [default: a new one each time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print the equivalent workload and what was corrected, and exit
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
    /// How the label of completed requests is written
    #[arg(long, value_enum, default_value_t = LabelsArg::New, help_heading = "Output")]
    pub(crate) labels: LabelsArg,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabelsArg {
    /// `Completed requests:`
    New,
    /// `Complete requests:`, as older versions wrote
    Old,
}
