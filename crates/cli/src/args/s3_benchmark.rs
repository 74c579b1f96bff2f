//! The flags of `plimsoll as s3-benchmark` that are ours.

use std::fmt;

use clap::{Args, ValueEnum};

use super::{Duration, OutputArgs, Percent, TlsArgs};

#[derive(Args)]
pub(crate) struct S3BenchmarkArgs {
    /// s3-benchmark's own flags: -a -b -d -l -r -s -t -u -z. plimsoll's flags come before them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "S3-BENCHMARK ARGS")]
    pub(crate) words: Vec<String>,
    /// How requests are signed; s3-benchmark signs with S3V2
    #[arg(long, value_enum, ignore_case = true, default_value_t = SignatureArg::S3v4)]
    pub(crate) signature: SignatureArg,
    /// Compute and send the MD5 of each object; the time that takes is inside the latency
    #[arg(long)]
    pub(crate) md5: bool,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// Threads that drive the workers [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Abort an operation after this long
    #[arg(long, default_value = "2m", value_name = "DURATION",
        value_parser = super::value::timeout)]
    pub(crate) op_timeout: Duration,
    /// Exit with 1 when more than this share of the operations failed
    #[arg(long, default_value = "1%", value_name = "PERCENT")]
    pub(crate) max_error_rate: Percent,
    /// Seed of the random choices [default: a new one each time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print the equivalent workload and what was corrected, and exit
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
}

impl fmt::Debug for S3BenchmarkArgs {
    /// Leaves out the words, which hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3BenchmarkArgs").finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignatureArg {
    /// AWS Signature Version 4
    #[value(name = "S3V4")]
    S3v4,
    /// AWS Signature Version 2
    #[value(name = "S3V2")]
    S3v2,
}
