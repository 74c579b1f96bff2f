//! The flags of `plimsoll prove`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;

use plimsoll_proof::Rival;

use super::PrintArgs;
use super::s3::TransportArg;

#[derive(Args, Debug)]
pub(crate) struct ProveArgs {
    /// Which proofs: quantiles, stall, errors, bytes, merge, poisson, outages, replay, schedule,
    /// load-line, verdict; with --loopback quantiles, stall, errors, bytes, outages, seaweed,
    /// verdict, load-line; with --against also rivals
    /// [default: all but rivals]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Measure longer and search for more load lines, in about three times the time
    #[arg(long)]
    pub(crate) full: bool,
    /// Measure an S3 server on this machine over real sockets, which takes a minute and a half; a
    /// proof whose times a noisy machine spoils is skipped
    #[arg(long)]
    pub(crate) loopback: bool,
    /// The program that the proof `rivals` sets beside this one: `warp`, or `warp=PATH`; implies
    /// --loopback
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) against: Option<Rival>,
    /// With --loopback: what carries connections
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    pub(crate) transport: TransportArg,
    /// Fixes every choice
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
    /// Searches of each store that `load-line` makes, each with a seed of its own: of 100, which
    /// take minutes, 95 must be near [default: 3, with --full 5]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seeds: Option<NonZeroU32>,
    /// Also print each workload and script that was measured, for `run` and `oracle`
    #[arg(long, conflicts_with = "json")]
    pub(crate) explain: bool,
    /// Also write what was found to this file, which --certificate of a run puts into its record
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    /// Overwrite the --certificate file if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) print: PrintArgs,
    /// Print the claim, truths and measured figures of each proof
    #[arg(long, short, help_heading = "Output")]
    pub(crate) verbose: bool,
}
