//! Why a run could not be kept or read back.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// Why a run could not be kept or read back; every variant names the file or directory it is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The directory for a new run holds something already.
    #[error("{} is not empty; choose a new directory for the run", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The place for a directory is taken by something else.
    #[error(
        "{} is in the way: it is not a directory; choose another run directory (`run_dir`)",
        path.display()
    )]
    NotADirectory {
        /// What is in the way.
        path: PathBuf,
    },
    /// The disk, or the user's share of it, is full.
    #[error(
        "no space left in {}; free some, or choose a run directory on another disk",
        path.display()
    )]
    Full {
        /// The directory that could not grow.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system takes no writes.
    #[error(
        "{} is on a read-only file system; choose a run directory elsewhere (`run_dir`)",
        path.display()
    )]
    ReadOnly {
        /// What could not be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The user may not do this here.
    #[error(
        "no permission to {doing} {}; change its permissions, or choose another run directory \
         (`run_dir`)",
        path.display()
    )]
    Denied {
        /// What was being done, as a verb.
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no run at that place.
    #[error("{} holds no run.json; name a run directory that plimsoll wrote", path.display())]
    NoRun {
        /// The directory.
        path: PathBuf,
    },
    /// A file that belongs to the run is not there.
    #[error("{} is missing; was it moved or deleted?", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Another failure of the system; its own words are the source.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done, as a verb.
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file was written by another major version of the format.
    #[error("{} has the schema `{found}`, and this version of plimsoll reads `{supported}`; \
             use the version of plimsoll that wrote it", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The schema it names.
        found: String,
        /// The schema that can be read.
        supported: &'static str,
    },
    /// A file has a form that was never released.
    #[error(
        "{} was written by a build of before the first release, whose form is not read any more; \
         measure again",
        path.display()
    )]
    BeforeRelease {
        /// The file.
        path: PathBuf,
    },
    /// A file holds what it cannot hold.
    #[error(
        "{} is damaged: {reason}; restore it from a copy, or leave it out of the analysis",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The encoder of the op log refused its input.
    #[error("cannot encode rows for {}", path.display())]
    Encode {
        /// The part that was being written.
        path: PathBuf,
        /// What the encoder said.
        source: ParquetError,
    },
    /// An operation went to an endpoint that the op log was not told of.
    #[error("an operation names endpoint {index}, but {} was opened with {count}", path.display())]
    UnknownEndpoint {
        /// The directory of the op log.
        path: PathBuf,
        /// The endpoint's index.
        index: u16,
        /// How many endpoints there are.
        count: usize,
    },
}

impl RecordError {
    /// Returns the error for a failure of the system while `doing` something to `path`.
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                let path = path.parent().map_or(path.clone(), Path::to_path_buf);
                Self::Full { path, source }
            }
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path, source },
            io::ErrorKind::PermissionDenied => Self::Denied { doing, path, source },
            _ => Self::Io { doing, path, source },
        }
    }

    /// Returns the error for a failure of the Parquet library while writing `path`.
    pub(crate) fn parquet_write(path: &Path, source: ParquetError) -> Self {
        match source {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(cause) => Self::io("write", path, *cause),
                Err(cause) => {
                    let source = ParquetError::External(cause);
                    Self::Encode { path: path.to_path_buf(), source }
                }
            },
            source => Self::Encode { path: path.to_path_buf(), source },
        }
    }

    /// Returns the error for a file whose content makes no sense.
    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Self {
        // It may quote the file, in which a line feed would begin what looks like our own line.
        let reason = reason.to_string().replace(char::is_control, " ");
        Self::Damaged { path: path.to_path_buf(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_damaged_file_says_is_one_line() {
        let told = RecordError::damaged(Path::new("r"), "unknown `a\nb\u{1b}c`").to_string();
        assert!(told.contains("unknown `a b c`"), "{told}");
    }

    #[test]
    fn what_the_system_refuses_names_the_path_and_the_way_out() {
        let path = Path::new("runs/a/run.json");
        let cases = [
            // 28 is ENOSPC and 122 EDQUOT on Linux.
            (io::Error::from_raw_os_error(28), "no space left in runs/a; free some, or"),
            (io::Error::from_raw_os_error(122), "no space left in runs/a; free some, or"),
            (io::ErrorKind::ReadOnlyFilesystem.into(), "runs/a/run.json is on a read-only"),
            (io::ErrorKind::PermissionDenied.into(), "no permission to write runs/a/run.json;"),
            (io::ErrorKind::Interrupted.into(), "cannot write runs/a/run.json"),
        ];
        for (source, start) in cases {
            let direct = RecordError::io("write", path, clone(&source));
            assert!(direct.to_string().starts_with(start), "{direct}");
            let wrapped = RecordError::parquet_write(path, ParquetError::from(source));
            assert_eq!(wrapped.to_string(), direct.to_string());
        }
    }

    fn clone(error: &io::Error) -> io::Error {
        error.raw_os_error().map_or(error.kind().into(), io::Error::from_raw_os_error)
    }
}
