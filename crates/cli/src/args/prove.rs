//! The flags of `plimsoll prove`.

use std::path::PathBuf;

use clap::Args;

use super::PrintArgs;

#[derive(Args, Debug)]
pub(crate) struct ProveArgs {
    /// Which proofs: quantiles, stall, errors, bytes, merge, poisson, schedule [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// All proofs
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Fixes every choice
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
    /// Also write what was found to this file, which --certificate of a run puts into its record
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) print: PrintArgs,
}
