//! The flags that say what of a run goes into a trace: those of the analysis, by its names.

use anyhow::Result;
use clap::Args;
use plimsoll_results::TraceAsked;

use super::{AnalysisArgs, Duration};

/// More operations than this no viewer shows well.
const LIMIT: u64 = 200_000;

/// What of a run goes into a trace.
#[derive(Args, Debug)]
#[command(next_help_heading = "Trace")]
pub(crate) struct TraceArgs {
    /// Only this stage, such as prepare [default: what was measured]
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    /// Only this kind of operation, such as get
    #[arg(long = "analyze.op", value_name = "KIND")]
    op: Option<String>,
    /// Only this endpoint
    #[arg(long = "analyze.host", value_name = "HOST")]
    host: Option<String>,
    /// Leave out what began within this much of the beginning of a stage
    #[arg(long = "analyze.skip", value_name = "DURATION")]
    skip: Option<Duration>,
    /// Take what began within this much after that [default: to the end of the stage]
    #[arg(long = "trace.dur", value_name = "DURATION")]
    dur: Option<Duration>,
    /// Leave out this many operations, in the order of the record
    #[arg(long = "analyze.offset", value_name = "N")]
    offset: Option<u64>,
    /// Take at most this many operations, in the order of the record [default: 200000]
    #[arg(long = "analyze.limit", value_name = "N")]
    limit: Option<u64>,
}

impl TraceArgs {
    /// Returns the flags given, which only a trace heeds.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("--stage", self.stage.is_some()),
            ("--analyze.op", self.op.is_some()),
            ("--analyze.host", self.host.is_some()),
            ("--analyze.skip", self.skip.is_some()),
            ("--trace.dur", self.dur.is_some()),
            ("--analyze.offset", self.offset.is_some()),
            ("--analyze.limit", self.limit.is_some()),
        ];
        flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// Returns the flags that an analysis has too, as messages name them.
    pub(crate) fn of_analysis(&self) -> AnalysisArgs {
        AnalysisArgs {
            stage: self.stage.clone(),
            op: self.op.clone(),
            host: self.host.clone(),
            ..AnalysisArgs::default()
        }
    }

    /// Returns what is asked of a run.
    pub(crate) fn asked(&self) -> Result<TraceAsked> {
        Ok(TraceAsked {
            stage: self.stage.clone(),
            kind: self.of_analysis().kind()?,
            host: self.host.clone(),
            skip: self.skip.map(|skip| skip.0).unwrap_or_default(),
            dur: self.dur.map(|dur| dur.0),
            offset: self.offset.unwrap_or_default(),
            limit: self.limit.unwrap_or(LIMIT),
        })
    }
}
