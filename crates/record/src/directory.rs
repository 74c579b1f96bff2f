//! The directory of one run.
#![expect(clippy::disallowed_methods, reason = "record owns the files of a run")]

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_model::SeriesKey;
use plimsoll_stats::Timeline;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::lease::{LOCK_NAME, Lease};
use crate::schema::{RunSchema, Summary, SummarySchema};
use crate::{Manifest, RecordError, summary};

const MANIFEST_NAME: &str = "run.json";
const SUMMARY_NAME: &str = "summary.json";
const OPS_NAME: &str = "ops";

/// The directory of one run.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Of the run that is under way in it; `None` for one that is read.
    _lease: Option<Arc<Lease>>,
}

impl RunDirectory {
    /// Makes the directory, and those above it, for a new run; one that holds something is refused.
    ///
    /// The run is alive ([`crate::is_alive`]) until the last copy of what is returned is dropped.
    pub fn create(path: &Path, manifest: &Manifest) -> Result<Self, RecordError> {
        make_directory(path)?;
        let mut entries =
            fs::read_dir(path).map_err(|source| RecordError::io("read", path, source))?;
        if entries.next().is_some() {
            return Err(RecordError::NotEmpty { path: path.to_path_buf() });
        }
        let Some(lease) = Lease::try_take(path)? else {
            return Err(RecordError::NotEmpty { path: path.to_path_buf() });
        };
        let directory = Self { path: path.to_path_buf(), _lease: Some(Arc::new(lease)) };
        make_directory(&directory.ops_path())?;
        directory.write_manifest(manifest)?;
        Ok(directory)
    }

    /// Returns the run in the directory at `path`.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let directory = Self { path: path.to_path_buf(), _lease: None };
        match fs::metadata(directory.path.join(MANIFEST_NAME)) {
            Ok(_) => Ok(directory),
            Err(source) if is_absent(&source) => {
                Err(RecordError::NoRun { path: path.to_path_buf() })
            }
            Err(source) => Err(RecordError::io("open", path, source)),
        }
    }

    /// Removes the directory of a run that did nothing; only what [`Self::create`] made, and empty.
    pub fn discard(self) -> Result<(), RecordError> {
        let removed = fs::remove_dir(self.ops_path())
            .and_then(|()| fs::remove_file(self.path.join(MANIFEST_NAME)))
            .and_then(|()| remove_if_there(&self.path.join(LOCK_NAME)))
            .and_then(|()| fs::remove_dir(&self.path));
        removed.map_err(|source| RecordError::io("remove", &self.path, source))
    }

    /// Removes every file of a run that could not be written whole, and the directory too if
    /// `with_directory`.
    pub(crate) fn remove_files(&self, with_directory: bool) -> Result<(), RecordError> {
        let remove = || {
            fs::remove_dir_all(self.ops_path())?;
            for name in [MANIFEST_NAME, SUMMARY_NAME] {
                for name in [name.to_owned(), temporary_name(name)] {
                    remove_if_there(&self.path.join(name))?;
                }
            }
            remove_if_there(&self.path.join(LOCK_NAME))?;
            if with_directory { fs::remove_dir(&self.path) } else { Ok(()) }
        };
        remove().map_err(|source| RecordError::io("remove", &self.path, source))
    }

    /// Returns where the run lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file beside the record, such as what the server told of itself; returns its path.
    pub fn write_beside(&self, name: &str, content: &[u8]) -> Result<PathBuf, RecordError> {
        self.replace(name, |file| file.write_all(content))?;
        Ok(self.path.join(name))
    }

    /// Returns where the op log lies.
    pub fn ops_path(&self) -> PathBuf {
        self.path.join(OPS_NAME)
    }

    /// Writes the manifest in place of the one before; a reader sees the one or the other, also
    /// after a power cut.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), RecordError> {
        self.replace(MANIFEST_NAME, |file| {
            serde_json::to_writer_pretty(&mut *file, manifest)?;
            file.write_all(b"\n")
        })
    }

    /// Returns the manifest.
    pub fn read_manifest(&self) -> Result<Manifest, RecordError> {
        read(&self.path.join(MANIFEST_NAME), RunSchema::NAME)
    }

    /// Writes the time line as the run's summary, in place of one before.
    pub fn write_summary(&self, timeline: &mut Timeline<SeriesKey>) -> Result<(), RecordError> {
        timeline.close();
        self.replace(SUMMARY_NAME, |file| {
            summary::write(timeline, file)?;
            file.write_all(b"\n")
        })
    }

    /// Returns the time line that was written as the run's summary.
    pub fn read_summary(&self) -> Result<Timeline<SeriesKey>, RecordError> {
        let path = self.path.join(SUMMARY_NAME);
        let summary: Summary = read(&path, SummarySchema::NAME)?;
        summary::to_timeline(summary).map_err(|reason| RecordError::damaged(&path, reason))
    }

    /// Writes a file beside the one of that name, makes sure of it on the disk, and puts it in its
    /// place.
    fn replace(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), RecordError> {
        let temporary = self.path.join(temporary_name(name));
        let written = File::create(&temporary).and_then(|file| {
            let mut buffered = BufWriter::with_capacity(1 << 16, file);
            write(&mut buffered)?;
            buffered.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
        });
        written.map_err(|source| RecordError::io("write", &temporary, source))?;
        let path = self.path.join(name);
        fs::rename(&temporary, &path).map_err(|source| RecordError::io("write", &path, source))?;
        // The new name is safe only when the directory is.
        File::open(&self.path)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| RecordError::io("write", &self.path, source))
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn temporary_name(name: &str) -> String {
    format!("{name}.tmp")
}

fn make_directory(path: &Path) -> Result<(), RecordError> {
    fs::create_dir_all(path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            let in_the_way = path.ancestors().find(|path| path.exists()).unwrap_or(path);
            RecordError::NotADirectory { path: in_the_way.to_path_buf() }
        }
        _ => RecordError::io("make", path, source),
    })
}

fn is_absent(source: &io::Error) -> bool {
    matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The one field that every version of a document has.
#[derive(Deserialize)]
struct Versioned {
    schema: String,
}

/// Reads a document of the schema `supported`. Fields it does not know are passed over.
fn read<T: DeserializeOwned>(path: &Path, supported: &'static str) -> Result<T, RecordError> {
    let open = || {
        File::open(path).map(BufReader::new).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => RecordError::Missing { path: path.to_path_buf() },
            _ => RecordError::io("open", path, source),
        })
    };
    let failed = |source: serde_json::Error| match source.io_error_kind() {
        Some(_) => RecordError::io("read", path, source.into()),
        None => RecordError::damaged(path, source),
    };
    let Versioned { schema: found } = serde_json::from_reader(open()?).map_err(failed)?;
    if found != supported {
        return Err(RecordError::Version { path: path.to_path_buf(), found, supported });
    }
    serde_json::from_reader(open()?).map_err(failed)
}
