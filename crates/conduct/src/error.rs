//! Why a run cannot be begun, or cannot go on.

use std::io;
use std::path::PathBuf;

use plimsoll_driver::{DriverError, Lack, LackReason};
use plimsoll_driver_file::work_dir::WorkDirError;
use plimsoll_engine::{EngineError, OpSinkError};
use plimsoll_model::ErrorClass;
use plimsoll_record::RecordError;
use plimsoll_workload::plan::InvalidField;
use thiserror::Error;

/// Why what the caller had to do failed.
pub type CallerError = Box<dyn std::error::Error + Send + Sync>;

/// Why a run cannot be begun, or cannot go on.
#[derive(Debug, Error)]
pub enum ConductError {
    /// The workload cannot be carried out on this target or this machine.
    #[error("{0}")]
    Refused(String),
    /// The run would change what it did not write, and nobody gave leave.
    #[error("this run would {what}, which it did not write; add {flag} to allow it")]
    NoLeave {
        /// What it would do.
        what: String,
        /// Which flag gives leave.
        flag: &'static str,
    },
    /// The run would change what lies in buckets that no run of plimsoll made, and nobody gave
    /// leave.
    #[error("this run would {what}; add {add} to allow it ({flag} allows all that it says)")]
    NoLeaveIn {
        /// What it would do, and in which buckets.
        what: String,
        /// The flags that give leave to that and nothing else.
        add: String,
        /// Which flag gives leave to everything.
        flag: &'static str,
    },
    /// A set was to consist of objects that are there, and there is none.
    #[error("no object below `{prefix}` in {root}")]
    NothingFound {
        /// What their keys were to begin with.
        prefix: String,
        /// Where they were looked for: the bucket or the directory.
        root: String,
    },
    /// A target does not offer what the workload needs.
    #[error("{}", lacking(what, lack))]
    Lacks {
        /// What cannot be done.
        what: String,
        /// What is lacking.
        lack: Lack,
    },
    /// The workload cannot be, or not on these targets.
    #[error(transparent)]
    Plan(#[from] InvalidField),
    /// The store that stands in for a target in virtual time cannot do what the workload needs.
    #[error(transparent)]
    NotSimulated(InvalidField),
    /// The target refused a step of administration.
    #[error("{}", .0.message)]
    Target(DriverError),
    /// A stage failed after which the others mean nothing.
    #[error("{stage} failed: {failed_count} of {ops_count} operations; the first: {message}")]
    Stage {
        /// The stage.
        stage: String,
        /// The class of the first failure.
        class: ErrorClass,
        /// Operations tried.
        ops_count: u64,
        /// Of these, failed.
        failed_count: u64,
        /// What happened first.
        message: String,
    },
    /// Somebody ended the run before a stage of it had.
    #[error("the run was stopped before it began")]
    StoppedBefore,
    /// Somebody ended the run while its target was made ready.
    #[error("stopped before anything was measured")]
    StoppedBeforeMeasuring,
    /// Somebody ended the run while it prepared.
    #[error("stopped while preparing; nothing was measured")]
    StoppedWhilePreparing,
    /// Somebody gave a step up that only cleans.
    #[error("stopped")]
    Stopped,
    /// The record cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A stage could not be run.
    #[error(transparent)]
    Engine(EngineError),
    /// The run's own directories could not be made.
    #[error(transparent)]
    Directories(#[from] WorkDirError),
    /// A file cannot be read that the workload is made of.
    #[error("cannot read {}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An event loop or a thread could not be started.
    #[error("cannot start {what}")]
    Start {
        /// Which.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something of the run failed.
    #[error("{what}")]
    Of {
        /// Which.
        what: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What the caller had to do with the run failed.
    #[error(transparent)]
    Caller(Box<dyn std::error::Error + Send + Sync>),
}

/// Says what a target lacks.
fn lacking(what: &str, lack: &Lack) -> String {
    match &lack.why {
        LackReason::OfStore(why) => {
            format!("{what}: the store {why}, so there is nothing to measure")
        }
        LackReason::OfRoot(why) => why.clone(),
    }
}

impl ConductError {
    /// Returns why an event loop could not be started.
    pub(crate) fn event_loop(source: io::Error) -> Self {
        Self::Start { what: "the event loop", source }
    }
}

impl From<EngineError> for ConductError {
    fn from(error: EngineError) -> Self {
        match error {
            // The sink's own sentence says what to change; ours would only stand before it.
            EngineError::Sink(OpSinkError(source)) => Self::Caller(source),
            EngineError::Target(error) => Self::Target(error),
            other => Self::Engine(other),
        }
    }
}

/// Returns a refusal in these words.
pub(crate) fn refused<T>(reason: impl Into<String>) -> Result<T, ConductError> {
    Err(ConductError::Refused(reason.into()))
}
