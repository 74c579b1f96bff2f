//! The directory of one run.
#![expect(clippy::disallowed_methods, reason = "record owns the files of a run")]

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_model::SeriesKey;
use plimsoll_stats::Timeline;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::folder::Folder;
use crate::lease::Lease;
use crate::schema::{Checked, RunSchema, Summary, SummarySchema};
use crate::seal::{Seal, Sealing, UNSEALED};
use crate::travel::remove_record;
use crate::{Manifest, RecordError, removal, summary};

/// What the files of names are called.
const NAMES_PREFIX: &str = "names-";
const NAMES_SUFFIX: &str = ".txt";
pub(crate) const MANIFEST_NAME: &str = "run.json";
pub(crate) const SUMMARY_NAME: &str = "summary.json";
pub(crate) const OPS_NAME: &str = "ops";
/// What is added to a name while the file is being written.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

/// How large a manifest that is read may be: that of tens of thousands of merged runs.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;
/// How large a summary that is read may be.
const SUMMARY_BYTES_MAX: u64 = 1 << 30;
/// How large a list of names that is read may be.
const NAMES_BYTES_MAX: u64 = 4 << 30;

/// The directory of one run.
///
/// It is held open: what is written and read is in the directory that was made or opened, even if
/// its path has come to lead elsewhere meanwhile.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    folder: Arc<Folder>,
    /// `None` if there was none when it was opened.
    ops: Option<Arc<Folder>>,
    /// Whether it did not exist before the run.
    is_created: bool,
    /// Of the run that is still going on in it; `None` for one that is read.
    _lease: Option<Arc<Lease>>,
}

/// A manifest as it was read.
#[derive(Clone, Debug)]
pub struct ReadManifest {
    /// What it says.
    pub manifest: Manifest,
    /// Whether it has a checksum, which fits. Somebody who edits the file takes it away.
    pub has_checksum: bool,
}

impl RunDirectory {
    /// Makes the directory, and those above it, for a new run; one that holds something is refused.
    ///
    /// The run is alive ([`crate::is_alive`]) until the last copy of what is returned is dropped.
    pub fn create(path: &Path, manifest: &Manifest) -> Result<Self, RecordError> {
        let is_created = path.symlink_metadata().is_err();
        make_directory(path)?;
        let opened = Folder::open(path);
        let folder = opened.map_err(|source| RecordError::io("open", path, source))?;
        let empty = folder.is_empty().map_err(|source| RecordError::io("read", path, source))?;
        let lease = if empty { Lease::try_take_in(&folder)? } else { None };
        let Some(lease) = lease else {
            return Err(RecordError::NotEmpty { path: path.to_path_buf() });
        };
        let ops = folder.make_folder(OPS_NAME);
        let ops = ops.map_err(|source| RecordError::io("make", &path.join(OPS_NAME), source))?;
        let directory = Self {
            folder: Arc::new(folder),
            ops: Some(Arc::new(ops)),
            is_created,
            _lease: Some(Arc::new(lease)),
        };
        directory.write_manifest(manifest)?;
        Ok(directory)
    }

    /// Returns the run in the directory at `path`.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let no_run = || RecordError::NoRun { path: path.to_path_buf() };
        let folder = match Folder::open(path) {
            Ok(folder) => Arc::new(folder),
            Err(source) if is_absent(&source) => return Err(no_run()),
            Err(source) => return Err(RecordError::io("open", path, source)),
        };
        match folder.file(MANIFEST_NAME) {
            Ok(_) => {}
            Err(RecordError::Missing { .. }) => return Err(no_run()),
            Err(error) => return Err(error),
        }
        let ops = folder.folder(OPS_NAME).ok().map(Arc::new);
        Ok(Self { folder, ops, is_created: false, _lease: None })
    }

    /// Removes the files of a run that did nothing or could not be written whole, and its directory
    /// if [`Self::create`] made it.
    pub fn discard(self) -> Result<(), RecordError> {
        let is_created = self.is_created;
        self.remove_files(is_created)
    }

    /// Removes the files of the run, and the directory if `with_directory` and nothing else is in
    /// it.
    pub(crate) fn remove_files(self, with_directory: bool) -> Result<(), RecordError> {
        let removed = remove_record(&self.folder).and_then(|()| match with_directory {
            true => removal::empty_directory(self.path()).map(drop),
            false => Ok(()),
        });
        removed.map_err(|source| RecordError::io("remove", self.path(), source))
    }

    /// Returns where the run lies.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns where the names stand that a target gave to what the run wrote, if that is what it
    /// is removed by: one a line, each before it was used. `target` is its place in the manifest.
    pub fn names_path(&self, target: usize) -> PathBuf {
        self.folder.path_of(&names_file(target))
    }

    /// Opens that list to read it and to add to it, and makes it if there is none.
    pub fn open_names(&self, target: usize) -> Result<File, RecordError> {
        let opened = self.folder.open_or_create(&names_file(target));
        opened.map_err(|source| RecordError::io("open", &self.names_path(target), source))
    }

    /// Returns what that list holds.
    pub fn read_names(&self, target: usize) -> Result<String, RecordError> {
        let content = self.folder.read(&names_file(target), NAMES_BYTES_MAX)?;
        String::from_utf8(content)
            .map_err(|_| RecordError::damaged(&self.names_path(target), "it is not UTF-8 text"))
    }

    /// Writes a file beside the record, such as what the server told of itself; returns its path.
    /// Nothing is left of one that could not be written to its end.
    pub fn write_beside(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, RecordError> {
        let replaced = self.replace(name, write, |_| Ok(()));
        if replaced.is_err() {
            // That failure is what there is to say, not that its remains cannot be removed.
            let _ = self.folder.remove(&temporary_name(name));
        }
        replaced.map(|()| self.folder.path_of(name))
    }

    /// Returns where the op log lies.
    pub fn ops_path(&self) -> PathBuf {
        self.folder.path_of(OPS_NAME)
    }

    /// Tells whether the op log holds anything.
    pub fn holds_operations(&self) -> bool {
        let names = self.ops().and_then(|ops| {
            ops.names().map_err(|source| RecordError::io("read", &self.ops_path(), source))
        });
        names.is_ok_and(|names| !names.is_empty())
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns the directory of the op log.
    pub(crate) fn ops(&self) -> Result<Arc<Folder>, RecordError> {
        if let Some(ops) = &self.ops {
            return Ok(Arc::clone(ops));
        }
        let opened = self.folder.folder(OPS_NAME).map(Arc::new);
        opened.map_err(|source| RecordError::io("read", &self.ops_path(), source))
    }

    /// Writes the manifest in place of the one before; a reader sees the one or the other, also
    /// after a power cut.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), RecordError> {
        let document = Checked { document: manifest, checksum: UNSEALED.to_owned() };
        let write = |file: &mut dyn Write| {
            serde_json::to_writer_pretty(&mut *file, &document)?;
            file.write_all(b"\n")
        };
        self.replace(MANIFEST_NAME, write, Sealing::seal)
    }

    /// Returns the manifest.
    pub fn read_manifest(&self) -> Result<Manifest, RecordError> {
        Ok(self.read_manifest_checked()?.manifest)
    }

    /// Returns the manifest, and whether its checksum vouches for it.
    pub fn read_manifest_checked(&self) -> Result<ReadManifest, RecordError> {
        let (manifest, has_checksum): (Manifest, bool) =
            read(&self.folder, MANIFEST_NAME, RunSchema::NAME, MANIFEST_BYTES_MAX)?;
        let path = self.folder.path_of(MANIFEST_NAME);
        let of_clients = manifest.merged.iter().filter_map(|run| run.workload.as_ref());
        // What clients have in common need not be a workload.
        let own = Some(&manifest.workload).filter(|_| manifest.merged.is_empty());
        if of_clients.chain(own).any(|workload| workload.is_of_before_release(has_checksum)) {
            return Err(RecordError::BeforeRelease { path });
        }
        manifest.check().map_err(|reason| RecordError::damaged(&path, reason))?;
        Ok(ReadManifest { manifest, has_checksum })
    }

    /// Returns the time line that was written as the run's summary.
    pub fn read_summary(&self) -> Result<Timeline<SeriesKey>, RecordError> {
        let (summary, _): (Summary, bool) =
            read(&self.folder, SUMMARY_NAME, SummarySchema::NAME, SUMMARY_BYTES_MAX)?;
        let path = self.folder.path_of(SUMMARY_NAME);
        summary::to_timeline(summary).map_err(|reason| RecordError::damaged(&path, reason))
    }

    /// Writes a file beside the one of that name, makes sure of it on the disk, and puts it in its
    /// place.
    pub(crate) fn replace(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        seal: impl FnOnce(&mut Sealing) -> io::Result<()>,
    ) -> Result<(), RecordError> {
        let temporary = temporary_name(name);
        // What a run that was killed left there is never written over, nor through.
        let created = self.folder.remove(&temporary).and_then(|()| self.folder.create(&temporary));
        let written = created.and_then(|file| {
            let mut buffered = BufWriter::with_capacity(1 << 16, Sealing::new(file));
            write(&mut buffered)?;
            let mut file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
            seal(&mut file)?;
            file.sync()
        });
        let failed =
            |name: &str, source| RecordError::io("write", &self.folder.path_of(name), source);
        written.map_err(|source| failed(&temporary, source))?;
        self.folder.rename(&temporary, name).map_err(|source| failed(name, source))?;
        // The new name is safe only when the directory is.
        self.folder.sync().map_err(|source| RecordError::io("write", self.path(), source))
    }
}

pub(crate) fn names_file(target: usize) -> String {
    format!("{NAMES_PREFIX}{target}{NAMES_SUFFIX}")
}

/// Tells whether a file of that name keeps names.
pub(crate) fn is_names_file(name: &str) -> bool {
    let number = name.strip_prefix(NAMES_PREFIX).and_then(|rest| rest.strip_suffix(NAMES_SUFFIX));
    number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn temporary_name(name: &str) -> String {
    format!("{name}{TEMPORARY_SUFFIX}")
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

/// Reads a document of the schema `supported`, and tells whether it has a checksum, which then
/// fits. Fields it does not know are passed over.
fn read<T: DeserializeOwned>(
    folder: &Folder,
    name: &str,
    supported: &'static str,
    bytes_max: u64,
) -> Result<(T, bool), RecordError> {
    let path = || folder.path_of(name);
    let content = folder.read(name, bytes_max)?;
    let seal = Seal::of(&content);
    if seal == Seal::Broken {
        let reason = format!(
            "{} (if it was changed on purpose, remove its field \"checksum\")",
            Seal::BROKEN
        );
        return Err(RecordError::damaged(&path(), reason));
    }
    let failed = |source: serde_json::Error| RecordError::damaged(&path(), source);
    let Versioned { schema: found } = serde_json::from_slice(&content).map_err(failed)?;
    if found != supported {
        let found = found.replace(char::is_control, " ");
        return Err(RecordError::Version { path: path(), found, supported });
    }
    match serde_json::from_slice(&content) {
        Ok(document) => Ok((document, seal == Seal::Holds)),
        // It is as it was written, but in a form that had the same number before the release.
        Err(_) if seal == Seal::Holds => Err(RecordError::BeforeRelease { path: path() }),
        Err(source) => Err(failed(source)),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{
        EndpointId, Moment, OpKind, OpRecord, RunId, SeriesKey, StageId, WallTime,
    };
    use plimsoll_stats::Sample;

    use super::*;
    use crate::folder::full_disk;
    use crate::{OpLog, OpLogWriter, SummaryWriter};

    /// Returns a run of which nothing is known.
    fn bare_run(path: &Path) -> RunDirectory {
        fs::create_dir(path.join(OPS_NAME)).unwrap();
        fs::write(path.join(MANIFEST_NAME), "{}").unwrap();
        RunDirectory::open(path).unwrap()
    }

    #[test]
    fn a_full_disk_is_named_and_what_was_there_stays() {
        let place = tempfile::tempdir().unwrap();
        let directory = bare_run(place.path());
        directory.write_beside("profiles.zip", |file| file.write_all(b"first")).unwrap();
        full_disk::simulate(true);
        let refused =
            directory.write_beside("profiles.zip", |file| file.write_all(b"second")).unwrap_err();
        full_disk::simulate(false);
        let expected = format!("no space left in {};", place.path().display());
        assert!(refused.to_string().starts_with(&expected), "{refused}");
        assert_eq!(fs::read(place.path().join("profiles.zip")).unwrap(), b"first");
    }

    #[test]
    fn a_full_disk_is_named_when_minutes_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let directory = bare_run(place.path());
        let key = SeriesKey { stage: StageId(0), kind: OpKind::Get, endpoint: EndpointId(0) };
        let minute = |minute: u64| {
            let end_ns = minute * 60_000_000_000;
            let mut timeline = Timeline::new(0, 1_000_000_000);
            let sample = Sample {
                start_ns: end_ns,
                end_ns,
                latency_ns: 5,
                ttfb_ns: None,
                bytes: 1,
                objects: 1,
                outcome: 0,
            };
            timeline.record(key, &sample);
            timeline.close();
            timeline
        };
        let mut writer = SummaryWriter::new(&directory);
        full_disk::simulate(true);
        let refused = writer.keep(&minute(0)).unwrap_err();
        full_disk::simulate(false);
        let expected = format!("no space left in {};", place.path().display());
        assert!(refused.to_string().starts_with(&expected), "{refused}");

        let mut writer = SummaryWriter::new(&directory);
        writer.keep(&minute(1)).unwrap();
        writer.write(&mut minute(2)).unwrap();
        let count = || {
            let totals = directory.read_summary().unwrap().totals();
            totals.iter().map(|(_, total)| total.cell.ended[0]).sum::<u64>()
        };
        assert_eq!(count(), 2);
    }

    #[test]
    fn a_full_disk_names_the_op_log_and_spares_what_is_closed() {
        let place = tempfile::tempdir().unwrap();
        let directory = bare_run(place.path());
        let (run, epoch) = (RunId::parse("full").unwrap(), WallTime::from_unix_ns(0));
        let mut writer = OpLogWriter::new(&directory, &run, epoch, &["http://a".to_owned()]);
        let op =
            |ns: u64| OpRecord::plain(OpKind::Stat, Moment::from_ns(ns), Moment::from_ns(ns + 1));
        let end_of_time = Moment::from_ns(u64::MAX);
        writer.append(&[op(1)]).unwrap();
        writer.tick(end_of_time).unwrap();
        full_disk::simulate(true);
        writer.append(&(2..100).map(op).collect::<Vec<_>>()).unwrap();
        let full = writer.tick(end_of_time).unwrap_err();
        full_disk::simulate(false);
        assert!(matches!(&full, RecordError::Full { path, .. } if *path == directory.ops_path()));
        assert!(full.to_string().contains("free some"), "{full}");
        // A writer that is used nevertheless begins a new part.
        writer.append(&[op(3)]).unwrap();
        assert_eq!(writer.finish().unwrap().rows, 2);
        fs::remove_file(place.path().join(MANIFEST_NAME)).unwrap();
        let mut ops = Vec::new();
        OpLog::salvage(&directory).unwrap().log.scan(&mut |op| ops.push(*op)).unwrap();
        assert_eq!(ops, [op(1), op(3)]);
    }
}
