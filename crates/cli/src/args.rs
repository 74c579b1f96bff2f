//! The command line as typed. What it means is worked out in `lower`.
#![allow(
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    rustdoc::broken_intra_doc_links,
    reason = "the comments are help texts for a terminal"
)]

mod analysis;
mod check;
pub(crate) mod console;
pub(crate) mod cosbench;
mod export_trace;
pub(crate) mod file;
pub(crate) mod fleet;
pub(crate) mod load_line;
pub(crate) mod outages;
mod prove;
pub(crate) mod replay;
pub(crate) mod requests;
mod run;
pub(crate) mod s3;
pub(crate) mod s3_benchmark;
pub(crate) mod scrape;
pub(crate) mod telemetry;
mod value;
pub(crate) mod weed;
pub(crate) mod weed_benchmark;

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::built;
use crate::secret::Secret;
use crate::ui::{LiveMode, Ui};
use clap::{ArgAction, Args, Parser, Subcommand};
use plimsoll_conduct::BucketGlob;
use plimsoll_conduct::output::Overwrite;
use serde::{Deserialize, Serialize};

pub(crate) use analysis::{
    AnalysisArgs, AnalyzeArgs, AsCommand, CompareArgs, ExportArgs, ExportFormat, MergeArgs,
    ReportArgs, WarpAnalyzeArgs, WarpCmpArgs, WarpCommand, WarpMergeArgs,
};
pub(crate) use check::CheckArgs;
pub(crate) use cosbench::CosbenchArgs;
pub(crate) use prove::ProveArgs;
pub(crate) use run::RunArgs;
pub(crate) use s3_benchmark::{S3BenchmarkArgs, SignatureArg};
pub(crate) use scrape::ScrapeArgs;
pub(crate) use telemetry::TelemetryArgs;
pub(crate) use value::{Age, ByteSize, Duration, Percent, TimeOfDay};
pub(crate) use weed_benchmark::{LabelsArg, WeedBenchmarkArgs};

/// Gives leave to change objects that no run wrote.
pub(crate) const YES: &str = "--yes";
/// Gives leave to change files and devices that no run wrote.
pub(crate) const DESTROYS: &str = "--i-know-this-destroys-data";

/// Returns whether a file that is there may be replaced.
pub(crate) fn overwrite(given: bool) -> Overwrite {
    Overwrite { given, flag: "--overwrite" }
}

/// Leave to change what lies in buckets that no run made.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TouchArgs {
    /// The same as --yes in buckets of these names alone; can be given several times. `*` stands
    /// for any letters, `?` for one. Buckets that a run of plimsoll made need no leave
    #[arg(long, value_name = "PATTERN")]
    pub(crate) touch: Vec<BucketGlob>,
}

/// Permission to send files.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AllowDirArgs {
    /// Allow content of files below this directory, and names in them, to be sent to a store; by
    /// default a workload that would send some is refused. Can be given several times
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_dir: Vec<PathBuf>,
}

/// A storage benchmark that can prove its own numbers.
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version = env!("PLIMSOLL_VERSION"),
    long_version = built::in_words(),
    max_term_width = 100,
    propagate_version = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Benchmark an S3 object store
    #[command(subcommand)]
    S3(Box<s3::S3Command>),
    /// Benchmark SeaweedFS over its native protocol
    #[command(subcommand)]
    Weed(Box<weed::WeedCommand>),
    /// Benchmark a file system: blocks, metadata, or WEKA's whole test suite
    #[command(subcommand)]
    File(Box<file::FileCommand>),
    /// Find the highest rate at which a store still meets its SLO (the load line)
    Loadline(Box<load_line::LoadLineArgs>),
    /// Run a workload file or a fio job file
    Run(Box<run::RunArgs>),
    /// Replay a trace: an access log, the record of a run, a fio iolog
    Replay(Box<replay::ReplayArgs>),
    /// Derive a workload file from a trace: mix, sizes, popularity, arrivals, and the error of each
    Fit(Box<replay::FitArgs>),
    /// Show the results of runs, and of warp's files
    Analyze(Box<AnalyzeArgs>),
    /// Compare runs and say which differences are real
    Compare(Box<CompareArgs>),
    /// Merge the runs of several clients into one, by stage and job
    Merge(Box<MergeArgs>),
    /// Write a run's operations, or its figures, in another format
    Export(ExportArgs),
    /// Write a run's report as one HTML file
    Report(Box<ReportArgs>),
    /// Run another tool's command line and print its output format
    #[command(subcommand)]
    As(AsCommand),
    /// Measure stores whose true results are known, and check the figures against them
    Prove(ProveArgs),
    /// Check a live store for consistency: no stale reads, lost writes or phantom listings
    Check(Box<CheckArgs>),
    /// Serve the embedded S3 store until Ctrl-C; it keeps everything in memory
    Oracle(OracleArgs),
    /// Drive many machines as one benchmark
    #[cfg(feature = "fleet")]
    #[command(subcommand)]
    Fleet(fleet::FleetCommand),
    /// Join a fleet as an agent, until Ctrl-C
    #[cfg(feature = "fleet")]
    Agent(Box<fleet::AgentArgs>),
    /// Serve a workload queue with a web console and an API, in place of COSBench's controller
    #[cfg(feature = "console")]
    Console(Box<console::ConsoleArgs>),
    /// Remove data that earlier runs left behind, for example after kill -9
    Clean(Box<CleanArgs>),
    /// Print a script that completes commands and flags in a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write a page for every command
    Man(ManArgs),
    /// Run the engine and the recorder against a driver that does nothing
    #[command(hide = true)]
    Null(NullArgs),
}

/// Who asks, wherever a store is spoken to.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CredentialArgs {
    /// Access key; without it the usual variables, profiles and services of Amazon speak for a
    /// store that --host names. Requests are not signed when there is none, or when it is given
    /// empty
    #[arg(long, env = "PLIMSOLL_ACCESS_KEY", hide_env_values = true, value_name = "KEY")]
    pub(crate) access_key: Option<Secret>,
    /// Secret key
    #[arg(long, env = "PLIMSOLL_SECRET_KEY", hide_env_values = true, value_name = "KEY")]
    pub(crate) secret_key: Option<Secret>,
    /// Session token of temporary credentials
    #[arg(long, env = "PLIMSOLL_SESSION_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) session_token: Option<Secret>,
}

/// How connections are encrypted. Agents are told of our own certificate apart from it.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TlsArgs {
    /// Accept any TLS certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Extra CA certificates (PEM) to trust
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Certificate (PEM) to show to stores that ask for one (mTLS), its issuers' behind it
    #[arg(long, env = CLIENT_CERT, hide_env_values = true, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) client_cert: Option<PathBuf>,
    /// Key of --client-cert (PEM, without a password) [default: in the same file]
    #[arg(long, env = CLIENT_KEY, hide_env_values = true, value_name = "FILE")]
    #[arg(requires = "client_cert")]
    #[serde(skip)]
    pub(crate) client_key: Option<PathBuf>,
}

/// The variables of `--client-cert` and `--client-key`.
pub(crate) const CLIENT_CERT: &str = "PLIMSOLL_CLIENT_CERT";
pub(crate) const CLIENT_KEY: &str = "PLIMSOLL_CLIENT_KEY";

#[derive(Args, Debug)]
pub(crate) struct OracleArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:9000", value_name = "ADDR:PORT")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,
    /// Also accept unsigned requests
    #[arg(long)]
    pub(crate) anonymous: bool,
    /// Threads that serve [default: one per core]
    #[arg(long, value_name = "N", value_parser = value::threads())]
    pub(crate) threads: Option<usize>,
    /// Capacity [default: half of the memory]
    #[arg(long, value_name = "SIZE")]
    pub(crate) capacity: Option<ByteSize>,
    /// Domain for virtual-hosted buckets
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) domain: Option<String>,
    /// Make every ETag the MD5 of the content, which costs about 1.5 ms of CPU per MiB written
    #[arg(long)]
    pub(crate) md5_etags: bool,
    /// Inject the delays, faults and wrong answers of this script into object operations
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Fix the random choices of the script [default: 0]
    #[arg(long, value_name = "N", requires = "script")]
    pub(crate) seed: Option<u64>,
    /// Write what the script really did to this file at the end, not to stdout
    #[arg(long, value_name = "FILE.json", requires = "script")]
    pub(crate) ledger: Option<PathBuf>,
    /// Overwrite the ledger if it exists
    #[arg(long, requires = "ledger")]
    pub(crate) overwrite: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CleanArgs {
    /// The run directory, whose record says bucket and, without --host, hosts, region and TLS; or
    /// http(s)://HOST[:PORT]/BUCKET, or a directory in which runs on files worked, to list what
    /// runs left there
    #[arg(value_name = "RUN|URL|DIR")]
    pub(crate) run: PathBuf,
    /// Of a bucket or directory: only what this run left
    #[arg(long = "run", value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Of a bucket: only what runs left that began longer ago than this, by the store's clock
    #[arg(long, value_name = "DURATION")]
    pub(crate) older_than: Option<Age>,
    /// Of a bucket: below this prefix, as the runs were given it
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PREFIX")]
    pub(crate) prefix: String,
    /// Yes, remove what is listed, or what the run left where its record says
    #[arg(long)]
    pub(crate) yes: bool,
    /// Of a run on SeaweedFS: the cluster's security.toml, if the run was given one
    #[arg(long, value_name = "FILE")]
    pub(crate) security: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: s3::StoreArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write one page per command into this directory [default: print the main page]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Write the pages as Markdown, for a site of documents
    #[arg(long, requires = "dir")]
    pub(crate) markdown: bool,
    /// Replace pages that exist
    #[arg(long, requires = "dir")]
    pub(crate) overwrite: bool,
}

#[derive(Args, Debug)]
pub(crate) struct NullArgs {
    /// How long to run
    #[arg(long, default_value = "5s", value_name = "DURATION")]
    pub(crate) duration: Duration,
    /// Workers
    #[arg(long, default_value_t = 32, value_name = "N")]
    pub(crate) concurrent: u32,
    /// Threads that drive them [default: one per core]
    #[arg(long, value_name = "N", value_parser = value::threads())]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What is printed.
#[derive(Args, Clone, Debug)]
pub(crate) struct PrintArgs {
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print without colours
    #[arg(long)]
    pub(crate) no_color: bool,
}

/// In which form a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
}

/// What is printed and kept of a run.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutputArgs {
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    /// Directory for the record of this run [default: plimsoll-<what>-<time>-<4 characters> here]
    #[arg(long, alias = "benchdata", value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
    /// How to show the run while it goes on
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    pub(crate) live: LiveMode,
    /// Print all figures, not only those of one screen: hosts, clients, sizes, all percentiles,
    /// fastest, median and slowest, TTFB, errors over time, the evidence of the verdict
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Measure over the whole stage, including ramp-up and ramp-down of the workers
    #[arg(long, action = ArgAction::SetTrue)]
    pub(crate) full_span: bool,
    /// Take figures from the end of the warm-up on, as MSER-5 finds it in each measured stage; says
    /// how much was left out, and refuses where that would be more than half
    #[arg(long, conflicts_with = "full_span")]
    pub(crate) steady: bool,
    /// Put what `plimsoll prove --certificate FILE` wrote into the record and the report
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    /// Exit with 3 where the client, not the store, was the limit of a measured stage
    #[arg(long, action = ArgAction::SetTrue)]
    pub(crate) fail_on_client_limit: bool,
    #[command(flatten)]
    pub(crate) outages: outages::OutageArgs,
    #[command(flatten)]
    pub(crate) telemetry: TelemetryArgs,
    #[command(flatten)]
    pub(crate) fleet: fleet::FleetArgs,
}

impl PrintArgs {
    /// Returns in which form the result is printed.
    pub(crate) fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }

    /// Returns the way to print it.
    pub(crate) fn ui(&self) -> Ui {
        Ui::new(self.quiet, self.no_color, LiveMode::Auto)
    }
}

impl OutputArgs {
    /// Returns the way to print what comes of a run, and to show it while it goes on.
    pub(crate) fn ui(&self) -> Ui {
        Ui::new(self.print.quiet, self.print.no_color, self.live)
    }
}

// Documents name every command and flag, those that a build may be without among them.
#[cfg(all(feature = "console", feature = "fleet"))]
#[cfg(test)]
mod document_tests;
#[cfg(all(feature = "console", feature = "fleet"))]
#[cfg(test)]
mod tests;
