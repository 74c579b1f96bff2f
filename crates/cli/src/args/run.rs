//! The flags of `plimsoll run`.

use std::path::PathBuf;

use clap::Args;

use super::file::{FileConductArgs, InterfaceArg, JobFileArgs};
use super::s3::{ConductArgs, ServerProfileArgs, StoreArgs};
use super::{AllowDirArgs, OutputArgs, TouchArgs, YES};
use plimsoll_conduct::Consent;

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The workload as YAML, such as --explain prints, a job file of fio's, or COSBench's XML; `-`
    /// for the standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Run in virtual time on scripted stores and files: exact, repeatable, no socket is opened
    #[arg(long = "virtual")]
    pub(crate) is_virtual: bool,
    /// With --virtual: what the store does [default: it serves everything in 1ms; in a search it is
    /// a queue of 4 servers, 1ms each on average]
    #[arg(long, value_name = "FILE", requires = "is_virtual")]
    pub(crate) script: Option<PathBuf>,
    /// Instead of the file's seed
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Keep the data that the run wrote in the bucket or directory
    #[arg(long)]
    pub(crate) keep_data: bool,
    /// Yes, remove or overwrite what no run of plimsoll wrote, where the file says `touch`;
    /// without it the run says what that would be, and ends
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) touched: TouchArgs,
    #[command(flatten)]
    pub(crate) sent: AllowDirArgs,
    /// Print the equivalent workload file (YAML) and exit
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
    /// Validate the file as a run would, without touching anything, and exit
    #[arg(long, conflicts_with = "explain", help_heading = "Output")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) reading: JobFileArgs,
    /// On files: how operations reach the kernel, where the job does not say it
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Load")]
    pub(crate) interface: Option<InterfaceArg>,
    /// On files: before each stage that goes through caches, empty all caches of the machine, not
    /// only of the stage's own files; slows down everything else that runs on it, and takes root
    #[arg(long, help_heading = "Load")]
    pub(crate) drop_machine_caches: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten, next_help_heading = "Load")]
    pub(crate) conduct: ConductArgs,
    #[command(flatten)]
    pub(crate) profile: ServerProfileArgs,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
}

impl RunArgs {
    /// Returns whether this command line gives leave to change what no run wrote.
    pub(crate) fn consent(&self) -> Consent {
        let given = self.yes || self.reading.i_know_this_destroys_data;
        Consent::by(YES, given).touching(self.touched.touch.clone())
    }

    /// Returns how operations on files are carried out.
    pub(crate) fn file_conduct(&self) -> FileConductArgs {
        FileConductArgs {
            interface: self.interface,
            threads: self.conduct.threads,
            drop_machine_caches: self.drop_machine_caches,
            max_error_rate: self.conduct.max_error_rate,
        }
    }
}
