//! Why a record cannot be read, or not asked so.

use std::io;
use std::path::PathBuf;

use plimsoll_foreign::warp::WarpError;
use plimsoll_record::RecordError;

/// Why operations cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// What is wrong with the record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// What is wrong with a file of warp's.
    #[error("{}", path.display())]
    Warp {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: WarpError,
    },
    /// A file that cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A time in the record that cannot be.
    #[error(
        "an operation of stage `{stage}` ends at {end_ns} ns of the run, long after all others; \
         the record is damaged"
    )]
    LateEnd {
        /// The stage.
        stage: String,
        /// When the operation ended, by the run's clock.
        end_ns: u64,
    },
    /// A place that cannot be read.
    #[error("cannot read {place}")]
    Place {
        /// Which.
        place: String,
        /// Why not.
        source: io::Error,
    },
}

/// What can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedFor {
    /// A stage.
    Stage,
    /// A job.
    Job,
    /// A kind of operation.
    Kind,
    /// An address.
    Endpoint,
    /// So many operations at most.
    Limit,
    /// Operations that are left out at the beginning.
    Offset,
    /// The steady part.
    Steady,
    /// What is to be kept.
    Slo,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The record cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The record cannot give what was asked for.
    #[error("{reason}")]
    Asked {
        /// What that was.
        field: AskedFor,
        /// The sentence.
        reason: String,
    },
    /// The runs of one side of a comparison did not do the same.
    #[error(
        "{first} and {last} are on one side, but they are runs of different workloads: `{name}` is \
         {} and {}; name runs of one workload a side",
        values.0, values.1
    )]
    MixedSide {
        /// The first run of the side.
        first: String,
        /// The one that differs from it.
        last: String,
        /// The first parameter in which they differ.
        name: String,
        /// What it is of each.
        values: (String, String),
    },
    /// There is nothing to report.
    #[error("{0}")]
    Nothing(String),
}

impl From<RecordError> for ResultsError {
    fn from(error: RecordError) -> Self {
        Self::Read(error.into())
    }
}

/// Why operations are not written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// They cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// They cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}
