//! Why a proof cannot be made.

use std::error::Error;

use plimsoll_conduct::ConductError;
use plimsoll_record::RecordError;
use plimsoll_report::proof::Check;
use plimsoll_results::{ReadError, ResultsError};
use plimsoll_workload::plan::InvalidField;

pub(crate) type Result<T, E = ProofError> = std::result::Result<T, E>;

/// Why a proof cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProofError {
    /// No place for a record.
    #[error(transparent)]
    Place(#[from] plimsoll_conduct::output::NoTemporaryDirectory),
    /// It cannot be judged here.
    #[error("{reason}")]
    Skipped {
        reason: String,
        /// What was judged all the same, and holds.
        checks: Vec<Check>,
    },
    /// Something is not there without which it cannot go on.
    #[error("{0}")]
    Missing(String),
    #[error("{doing}")]
    Step { doing: String, source: Box<dyn Error + Send + Sync> },
    #[error(transparent)]
    Conduct(#[from] ConductError),
    #[error(transparent)]
    Results(#[from] ResultsError),
}

impl From<RecordError> for ProofError {
    fn from(error: RecordError) -> Self {
        ConductError::from(error).into()
    }
}

impl From<InvalidField> for ProofError {
    fn from(error: InvalidField) -> Self {
        ConductError::from(error).into()
    }
}

impl From<ReadError> for ProofError {
    fn from(error: ReadError) -> Self {
        ResultsError::from(error).into()
    }
}

/// Says of a failure what was being done, and of nothing what is missing.
pub(crate) trait Context<T> {
    fn context(self, doing: impl Into<String>) -> Result<T>;
}

impl<T> Context<T> for Option<T> {
    fn context(self, missing: impl Into<String>) -> Result<T> {
        self.ok_or_else(|| ProofError::Missing(missing.into()))
    }
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl Into<String>) -> Result<T> {
        self.map_err(|error| ProofError::Step { doing: doing.into(), source: error.into() })
    }
}
