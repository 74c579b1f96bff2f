//! The flags of everything that reads a record: warp's names.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum};
use plimsoll_analysis::compare::Margin;
use plimsoll_dialects::warp;
use plimsoll_model::OpKind;
use plimsoll_results::Asked;
use plimsoll_workload::plan::SloSpec;

use super::cosbench::CosbenchArgs;
use super::export_trace::TraceArgs;
use super::file::{FioArgs, MdtestArgs};
use super::s3_benchmark::S3BenchmarkArgs;
use super::weed_benchmark::WeedBenchmarkArgs;
use super::{Duration, PrintArgs};

/// Which figures are taken from a record.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Analysis")]
pub(crate) struct AnalysisArgs {
    /// Length of a segment [default: the first of 1s, 5s, 15s, 1m, 5m, 15m, 1h, 3h that gives at
    /// most 400]
    #[arg(long = "analyze.dur", value_name = "DURATION")]
    pub(crate) dur: Option<Duration>,
    /// Only this kind of operation, such as get; the measured span stays that of all
    #[arg(long = "analyze.op", value_name = "KIND")]
    pub(crate) op: Option<String>,
    /// Only this endpoint; the measured span stays that of all
    #[arg(long = "analyze.host", value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Skip this much at the beginning of the stage
    #[arg(long = "analyze.skip", value_name = "DURATION")]
    pub(crate) skip: Option<Duration>,
    /// Take at most this many operations, in the order of the record
    #[arg(long = "analyze.limit", value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Leave out this many operations, in the order of the record
    #[arg(long = "analyze.offset", default_value_t = 0, value_name = "N")]
    pub(crate) offset: u64,
    /// Print all figures, not only those of one screen: hosts, clients, sizes, all percentiles,
    /// fastest, median and slowest, TTFB, errors over time, the evidence of the verdict
    #[arg(long = "analyze.v", short = 'v', visible_alias = "verbose")]
    pub(crate) details: bool,
    /// Measure over the whole stage, including ramp-up and ramp-down of the workers
    #[arg(long)]
    pub(crate) full_span: bool,
    /// Take figures from the end of the warm-up on, as MSER-5 finds it; refuses where more than
    /// half would be left out
    #[arg(long, conflicts_with_all = ["full_span", "skip", "limit", "offset"])]
    pub(crate) steady: bool,
    /// Tell of a brown-out wherever the 99th percentile of the latency is above that, such as
    /// p99<=20ms [default: five times the usual]; of a search for a load line, tell the line by
    /// these conditions instead of its own. Can be given several times
    #[arg(long, value_name = "CONDITION")]
    pub(crate) slo: Vec<SloSpec>,
    /// The stage to analyse, such as prepare [default: what was measured]
    #[arg(long, value_name = "NAME")]
    pub(crate) stage: Option<String>,
    /// The job to analyse, where a stage has several [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) job: Option<String>,
}

impl AnalysisArgs {
    /// Returns the flags given that need every operation, where there are only sums.
    pub(crate) fn needing_operations(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("--analyze.dur", self.dur.is_some()),
            ("--analyze.host", self.host.is_some()),
            ("--analyze.skip", self.skip.is_some()),
            ("--analyze.limit", self.limit.is_some()),
            ("--analyze.offset", self.offset > 0),
            ("--full-span", self.full_span),
            ("--steady", self.steady),
            ("--slo", !self.slo.is_empty()),
            ("--stage", self.stage.is_some()),
            ("--job", self.job.is_some()),
        ];
        given(flags)
    }

    /// Returns the flags given that warp does not have.
    pub(crate) fn unknown_to_warp(&self) -> impl Iterator<Item = &'static str> {
        given([
            ("--full-span", self.full_span),
            ("--steady", self.steady),
            ("--slo", !self.slo.is_empty()),
            ("--stage", self.stage.is_some()),
            ("--job", self.job.is_some()),
        ])
    }

    /// Returns what is asked of a record.
    pub(crate) fn asked(&self) -> Result<Asked> {
        Ok(Asked {
            segment: self.dur.map(|dur| dur.0),
            kind: self.kind()?,
            host: self.host.clone(),
            skip: self.skip.map(|skip| skip.0).unwrap_or_default(),
            limit: self.limit,
            offset: self.offset,
            full_span: self.full_span,
            steady: self.steady,
            slo: self.slo.clone(),
            stage: self.stage.clone(),
            job: self.job.clone(),
            details: self.details,
            ..Asked::default()
        })
    }

    /// Returns the kind that was asked for.
    pub(crate) fn kind(&self) -> Result<Option<OpKind>> {
        let Some(name) = &self.op else { return Ok(None) };
        let kind = OpKind::from_name(&name.to_uppercase());
        let known = || OpKind::ALL.map(|kind| kind.name().to_lowercase()).join(", ");
        kind.map(Some).ok_or_else(|| anyhow!("--analyze.op {name}: choose one of {}", known()))
    }
}

/// Returns the names of those that were given.
fn given<const N: usize>(flags: [(&'static str, bool); N]) -> impl Iterator<Item = &'static str> {
    flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag)
}

#[derive(Args, Debug)]
pub(crate) struct AnalyzeArgs {
    /// Run directories, warp's raw files (.csv.zst), `-` for the standard input; warp's aggregated
    /// files (.json.zst) are printed as by `plimsoll as warp analyze`
    #[arg(required = true, value_name = "RUN|FILE")]
    pub(crate) records: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    /// Write every segment to this file: warp's columns separated by tabs, by commas for .csv, as
    /// Parquet for .parquet; `-` for the standard output
    #[arg(long = "analyze.out", value_name = "FILE", help_heading = "Analysis")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite the --analyze.out file if it exists
    #[arg(long, help_heading = "Analysis")]
    pub(crate) overwrite: bool,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) print: PrintArgs,
}

impl AnalyzeArgs {
    /// Returns the flags given that cannot be followed where there are only warp's sums.
    pub(crate) fn needing_operations(&self) -> impl Iterator<Item = &'static str> {
        let own = given([
            ("--json", self.print.json),
            ("--analyze.v", self.analysis.details),
            ("--analyze.out", self.out.is_some()),
        ]);
        self.analysis.needing_operations().chain(own)
    }
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Baseline run, or a directory of runs
    #[arg(required_unless_present = "check_gates", value_name = "BEFORE")]
    pub(crate) before: Option<PathBuf>,
    /// Candidate runs, or a directory of runs
    #[arg(required_unless_present = "check_gates", value_name = "AFTER")]
    pub(crate) after: Vec<PathBuf>,
    /// One more baseline run; can be given several times
    #[arg(long = "before", value_name = "RUN")]
    pub(crate) more_before: Vec<PathBuf>,
    /// Exit with 1 if this is violated, with 3 if the runs cannot decide: p99<=+5%, get.rate>=-3%,
    /// errors<=0.1%
    #[arg(long = "gate", value_name = "RULE")]
    pub(crate) gates: Vec<String>,
    /// Only check that each --gate can be read, before there are runs; exit with 2 otherwise
    #[arg(
        long,
        requires = "gates",
        conflicts_with_all = ["before", "after", "more_before", "junit", "json", "markdown"]
    )]
    pub(crate) check_gates: bool,
    /// Equivalence margin: a change is `same` if its 95 % interval lies within ± this, in percent
    /// of the baseline mean
    #[arg(long, default_value_t, value_name = "PERCENT")]
    pub(crate) margin: Margin,
    /// Print the comparison as Markdown, for a pull request
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(crate) markdown: bool,
    /// Write the gates as JUnit XML; `-` for the standard output, and the comparison goes to the
    /// standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Overwrite the --junit file if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) print: PrintArgs,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    /// The runs of the clients: run directories or raw files of warp's
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Directory for the merged run
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) print: PrintArgs,
}

/// A format to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// warp's raw file, zstd-compressed
    Warp,
    /// Comma separated values
    Csv,
    /// One JSON object a line
    Jsonl,
    /// HdrHistogram's log: latencies of each second, stage and kind, in nanoseconds
    Hlog,
    /// A trace for ui.perfetto.dev and Chrome: a slice for each operation
    Trace,
    /// Figures for github-action-benchmark, of which more is better (customBiggerIsBetter)
    GithubBigger,
    /// Figures for it of which less is better (customSmallerIsBetter)
    GithubSmaller,
    /// Figures in the Bencher Metric Format
    Bencher,
    /// OpenMetrics with times, for Prometheus and Grafana: counters of each kind, second by second
    Openmetrics,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The run directory
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The file to write; `-` for the standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The format [default: by the ending of the file: .csv.zst, .csv, .jsonl, .om, .hlog,
    /// .trace.json]
    #[arg(long, value_enum)]
    pub(crate) format: Option<ExportFormat>,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The run directory or raw file of warp's
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Candidate runs: the page then compares them with RUN, as `plimsoll compare` does
    #[arg(value_name = "AFTER")]
    pub(crate) after: Vec<PathBuf>,
    /// One more baseline run; can be given several times
    #[arg(long = "before", value_name = "RUN", requires = "after")]
    pub(crate) more_before: Vec<PathBuf>,
    /// The file to write; `-` for the standard output
    #[arg(long, short, value_name = "FILE.html")]
    pub(crate) output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
}

/// The tools whose flags are understood.
#[derive(Debug, Subcommand)]
pub(crate) enum AsCommand {
    /// MinIO warp
    #[command(subcommand)]
    Warp(WarpCommand),
    /// fio, with its text and JSON output
    Fio(Box<FioArgs>),
    /// mdtest, with its table
    Mdtest(Box<MdtestArgs>),
    /// Wasabi's s3-benchmark, the fork with LIST2 and LISTver, with its lines
    S3Benchmark(Box<S3BenchmarkArgs>),
    /// COSBench's workload files, with its summary and its archive
    Cosbench(Box<CosbenchArgs>),
    /// SeaweedFS's own `weed benchmark`, with its lines and its list of file ids
    #[command(alias = "weed")]
    WeedBenchmark(Box<WeedBenchmarkArgs>),
}

/// The commands of warp's that are understood.
#[derive(Debug, Subcommand)]
pub(crate) enum WarpCommand {
    /// Show the figures of files as warp does
    #[command(args_override_self = true)]
    Analyze(Box<WarpAnalyzeArgs>),
    /// Compare two runs or files
    #[command(args_override_self = true)]
    Cmp(Box<WarpCmpArgs>),
    /// Make one raw file of the raw files of several clients
    #[command(args_override_self = true)]
    Merge(Box<WarpMergeArgs>),
    /// Any benchmark of warp's, or `run FILE.yml`, with warp's own flags; --explain shows what they
    /// come to
    #[command(external_subcommand)]
    Benchmark(Vec<String>),
}

#[derive(Args, Debug)]
pub(crate) struct WarpAnalyzeArgs {
    /// Raw (.csv.zst) and aggregated files (.json.zst) of warp's, run directories, `-` for the
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    /// Write every segment of raw files to this file, as tab-separated text; `-` for the standard
    /// output
    #[arg(long = "analyze.out", value_name = "FILE", help_heading = "Analysis")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shared: WarpArgs,
}

#[derive(Args, Debug)]
pub(crate) struct WarpCmpArgs {
    /// The run or file before
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,
    /// The run or file after
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    #[command(flatten)]
    pub(crate) shared: WarpArgs,
}

#[derive(Args, Debug)]
pub(crate) struct WarpMergeArgs {
    /// Raw files of warp's (.csv.zst)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The file to write, to which .csv.zst is added [default: warp-merge-<date>[<time>]]
    #[arg(long, value_name = "NAME")]
    pub(crate) benchdata: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shared: WarpArgs,
}

/// The flags that all commands of warp's have.
#[derive(Args, Debug)]
pub(crate) struct WarpArgs {
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) print: PrintArgs,
    /// Print the report of `warp analyze --full`, which heeds every flag of the analysis
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    idle: WarpIdleArgs,
}

/// The flags of warp's that do nothing here, a sentence on each that was given.
#[derive(Debug)]
struct WarpIdleArgs(Vec<String>);

impl Args for WarpIdleArgs {
    fn augment_args(command: Command) -> Command {
        command.args(warp::idle_flags().map(|(name, is_switch, _)| {
            let action = if is_switch { ArgAction::SetTrue } else { ArgAction::Set };
            Arg::new(name).long(name).hide(true).action(action)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WarpIdleArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        let idle = warp::idle_flags().filter(|(name, ..)| given(name));
        Ok(Self(idle.map(|(name, _, why)| format!("--{name} has no effect: {why}")).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl WarpArgs {
    /// Returns a sentence on each flag given that does nothing.
    pub(crate) fn idle(&self) -> &[String] {
        &self.idle.0
    }
}
