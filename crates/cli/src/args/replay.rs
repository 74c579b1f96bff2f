//! The flags of `plimsoll replay` and `plimsoll fit`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use plimsoll_workload::plan::spec::{TRACE_FORMATS, TraceOf};
use plimsoll_workload::plan::{Size, Time};

use super::s3::{ConductArgs, StoreArgs};
use super::{ByteSize, Duration, OutputArgs, PrintArgs};

/// Which trace it is, and how it is understood.
#[derive(Args, Clone, Debug)]
pub(crate) struct TraceArgs {
    /// The trace, compressed by zstd or not: an S3 access log, Ceph's operations or access log,
    /// MinIO's trace as JSON, a raw file of warp's, an iolog of fio's, an IBM object store trace,
    /// CSV with a header, or the directory of a run; `-` for the standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// What the trace is, where its content does not tell it
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(TRACE_FORMATS))]
    pub(crate) format: Option<String>,
    /// Take only what began within this time of the trace
    #[arg(long, value_name = "DURATION")]
    pub(crate) until: Option<Duration>,
    /// How large objects are whose sizes the trace does not tell [default: as the median of those
    /// that it tells; 64KiB where it tells none]
    #[arg(long, value_name = "SIZE")]
    pub(crate) unknown_size: Option<ByteSize>,
}

impl TraceArgs {
    /// Returns which trace it is.
    pub(crate) fn of(&self) -> TraceOf {
        TraceOf {
            file: self.file.display().to_string(),
            format: self.format.clone(),
            until: self.until.map(|until| Time(until.0)),
            unknown_size: self.unknown_size.map(|size| Size(size.0)),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    #[command(flatten, next_help_heading = "Trace")]
    pub(crate) trace: TraceArgs,
    /// Speed relative to the recording; 0.5 takes twice as long
    #[arg(long, default_value = "1", value_name = "FACTOR", value_parser = factor)]
    #[arg(help_heading = "Load")]
    pub(crate) speed: f64,
    /// Ignore instants: each worker begins an operation when its last one has ended. So it is for
    /// traces without instants
    #[arg(long, conflicts_with = "speed", help_heading = "Load")]
    pub(crate) closed: bool,
    /// Number of workers that share the objects; with --closed also the operations in flight
    #[arg(long, default_value_t = 32, value_name = "N", help_heading = "Load")]
    pub(crate) concurrent: u32,
    /// Maximum operations in flight; further ones wait and count as late
    #[arg(long, default_value_t = 1_024, value_name = "N", help_heading = "Load")]
    pub(crate) max_in_flight: u32,
    /// Of a trace on files: directory to work in; the run makes one of its own in it,
    /// plimsoll/<run>, and removes it again
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub(crate) dir: Option<String>,
    /// Ask no store: a driver that does nothing answers at once, to know what the replay costs by
    /// itself
    #[arg(long, conflicts_with_all = ["dir", "fleet"], help_heading = "Load")]
    pub(crate) null: bool,
    /// Do not check the content of what is read, only its length
    #[arg(long, help_heading = "Load")]
    pub(crate) no_verify: bool,
    /// Fixes contents and names [default: chosen anew, and recorded]
    #[arg(long, value_name = "NUMBER", help_heading = "Load")]
    pub(crate) seed: Option<u64>,
    /// Keep the data that the run wrote in the bucket or directory
    #[arg(long)]
    pub(crate) keep_data: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten, next_help_heading = "Load")]
    pub(crate) conduct: ConductArgs,
    /// Print the equivalent workload file (YAML) and exit
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Write the workload to this file [default: the standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// Reads a factor, such as `2`, `0.5` or `2x`.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').unwrap_or(text);
    number.parse().map_err(|_| format!("`{text}` is no factor: write 2, or 0.5"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_factor_with_or_without_an_x() {
        assert_eq!((factor("2"), factor("2x"), factor("0.5")), (Ok(2.0), Ok(2.0), Ok(0.5)));
        assert_eq!(factor("fast").unwrap_err(), "`fast` is no factor: write 2, or 0.5");
    }
}
