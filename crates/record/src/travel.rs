//! The files of a run on their way from one machine to another.
#![expect(clippy::disallowed_methods, reason = "record owns the files of a run")]

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::directory::{
    MANIFEST_NAME, OPS_NAME, SUMMARY_NAME, TEMPORARY_SUFFIX, is_names_file, names_file,
};
use crate::folder::Folder;
use crate::lease::LOCK_NAME;
use crate::ops::{is_closed_part, is_part_file};
use crate::scraped::SCRAPED_NAME;
use crate::{RecordError, RunDirectory};

/// A file of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFile {
    /// Its name: what it is called below the directory of the run.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

impl RunDirectory {
    /// Returns the files of the record, without those of parts that are not complete.
    pub fn files(&self) -> Result<Vec<RunFile>, RecordError> {
        let failed = |source| RecordError::io("read", self.path(), source);
        let own = self.folder().names().map_err(failed)?;
        let mut names: Vec<String> = own.into_iter().filter(|name| is_top(name)).collect();
        let ops = self.ops()?;
        let parts = ops.names().map_err(failed)?;
        let parts = parts.into_iter().filter(|name| is_closed_part(name));
        names.extend(parts.map(|name| format!("{OPS_NAME}/{name}")));
        names.sort_unstable();
        let with_size = |name: String| {
            let file = self.open_file(&name)?;
            let size = file.metadata().map_err(failed)?.len();
            Ok(RunFile { name, size })
        };
        names.into_iter().map(with_size).collect()
    }

    /// Opens a file of the record to read it, by the name that [`Self::files`] gives it.
    pub fn open_file(&self, name: &str) -> Result<File, RecordError> {
        match name.split_once('/') {
            Some((OPS_NAME, part)) if is_closed_part(part) => self.ops()?.file(part),
            None if is_top(name) => self.folder().file(name),
            _ => Err(RecordError::damaged(self.path(), format!("`{name}` is not a file of a run"))),
        }
    }

    /// Adds the names that a target gave to another part of the run, if it gave any.
    pub fn append_names(&self, target: usize, part: &Self) -> Result<(), RecordError> {
        let mut source = match part.folder().file(&names_file(target)) {
            Ok(source) => source,
            Err(RecordError::Missing { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let copied = io::copy(&mut source, &mut self.open_names(target)?);
        let failed = |source| RecordError::io("write", &self.names_path(target), source);
        copied.map(drop).map_err(failed)
    }

    /// Moves the directory of the run; nothing may be there.
    pub fn move_to(self, place: &Path) -> Result<(), RecordError> {
        if place.symlink_metadata().is_ok() {
            return Err(RecordError::NotEmpty { path: place.to_path_buf() });
        }
        let moved = fs::rename(self.path(), place);
        moved.map_err(|source| RecordError::io("move", self.path(), source))
    }

    /// Removes a run whose record is kept elsewhere, with its directory if nothing else is in it.
    pub fn forget(self) -> Result<(), RecordError> {
        self.remove_files(true)
    }
}

/// Keeps the files of a run that come from elsewhere.
#[derive(Debug)]
pub struct Receiving<'a> {
    place: &'a Path,
}

impl<'a> Receiving<'a> {
    /// Begins to keep them in a directory that is made for them.
    pub fn begin(place: &'a Path) -> Result<Self, RecordError> {
        let made = fs::create_dir_all(place.join(OPS_NAME));
        made.map_err(|source| RecordError::io("make", place, source))?;
        Ok(Self { place })
    }

    /// Keeps one; `write` hands over what it holds. A name that no file of a run has is refused.
    pub fn keep<T, E: From<RecordError>>(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
    ) -> Result<T, E> {
        let is_part = |part: &str| is_closed_part(part);
        let is_good = match name.split_once('/') {
            Some((OPS_NAME, part)) => is_part(part),
            Some(_) => false,
            None => is_top(name),
        };
        if !is_good {
            let why = format!("`{name}` is not a file of a run");
            return Err(RecordError::damaged(self.place, why).into());
        }
        let path = self.place.join(name);
        let failed = |source: io::Error| RecordError::io("write", &path, source);
        let file = File::create(&path).map_err(failed)?;
        let mut file = BufWriter::with_capacity(1 << 18, file);
        let kept = write(&mut file)?;
        file.flush().map_err(failed)?;
        Ok(kept)
    }
}

/// Where records lie until they are part of another.
#[derive(Debug)]
pub struct Staging<'a>(&'a Path);

impl<'a> Staging<'a> {
    /// Makes the place, which must not be there.
    pub fn begin(place: &'a Path) -> Result<Self, RecordError> {
        fs::create_dir(place).map_err(|source| RecordError::io("make", place, source))?;
        Ok(Self(place))
    }

    /// Returns one that was left there.
    pub fn left(place: &'a Path) -> Self {
        Self(place)
    }

    /// Removes it with the records that were received in it; anything else stays.
    pub fn remove(self) -> Result<(), RecordError> {
        self.remove_records().map_err(|source| RecordError::io("remove", self.0, source))
    }

    /// Follows no link: the run directory may be somebody else's.
    fn remove_records(&self) -> io::Result<()> {
        let name = self.0.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let above = self.0.parent().filter(|above| !above.as_os_str().is_empty());
        let above = Folder::open(above.unwrap_or(Path::new(".")))?;
        let place = above.folder(name)?;
        for name in place.names()? {
            // What is no directory is none of ours.
            let Ok(record) = place.folder(&name) else { continue };
            remove_record(&record)?;
            place.remove_empty_folder(&name)?;
        }
        above.remove_empty_folder(name)
    }
}

/// Removes the files of a record from its directory.
pub(crate) fn remove_record(folder: &Folder) -> io::Result<()> {
    if let Ok(ops) = folder.folder(OPS_NAME) {
        let parts = ops.names()?.into_iter().filter(|name| is_part_file(name));
        parts.into_iter().try_for_each(|name| ops.remove(&name))?;
        folder.remove_empty_folder(OPS_NAME)?;
    }
    for name in folder.names()? {
        if is_top(name.strip_suffix(TEMPORARY_SUFFIX).unwrap_or(&name)) {
            folder.remove(&name)?;
        }
    }
    folder.remove(LOCK_NAME)
}

/// Tells whether a file that travels has that name in the directory of the run itself.
fn is_top(name: &str) -> bool {
    [MANIFEST_NAME, SUMMARY_NAME, SCRAPED_NAME].contains(&name) || is_names_file(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_run_travel() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("from/ops")).unwrap();
        let from = place.path().join("from");
        for name in ["run.json", "summary.json", "names-0.txt", "ops/part-000000.parquet"] {
            fs::write(from.join(name), name).unwrap();
        }
        // Neither what is not complete nor what is none of the run's.
        for name in ["ops/part-000001.parquet.open", "run.json.tmp", "notes.txt", "names-x.txt.tmp"]
        {
            fs::write(from.join(name), "x").unwrap();
        }
        let directory = RunDirectory::open(&from).unwrap();
        let files = directory.files().unwrap();
        let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
        assert_eq!(names, ["names-0.txt", "ops/part-000000.parquet", "run.json", "summary.json"]);
        let to = place.path().join("to");
        let receiving = Receiving::begin(&to).unwrap();
        for file in &files {
            let mut content = directory.open_file(&file.name).unwrap();
            let kept: Result<u64, RecordError> = receiving.keep(&file.name, |to| {
                io::copy(&mut content, to).map_err(|source| RecordError::io("copy", &from, source))
            });
            assert_eq!(kept.unwrap(), file.size);
            assert_eq!(fs::read_to_string(to.join(&file.name)).unwrap(), file.name);
        }
        for bad in ["../run.json", "ops/../run.json", "/etc/passwd", "ops/x", "a/b", "", ".lock"] {
            assert!(directory.open_file(bad).is_err(), "{bad}");
            let kept: Result<(), RecordError> = receiving.keep(bad, |_| Ok(()));
            assert!(kept.is_err(), "{bad}");
        }
        let whole = RunDirectory::open(&to).unwrap();
        whole.append_names(0, &directory).unwrap();
        whole.append_names(1, &directory).unwrap();
        assert_eq!(fs::read_to_string(to.join("names-0.txt")).unwrap(), "names-0.txtnames-0.txt");
        assert!(!to.join("names-1.txt").exists());
        let staging = place.path().join("staging");
        assert!(Staging::begin(&staging).is_ok() && Staging::begin(&staging).is_err());
        let moved = place.path().join("moved");
        assert!(whole.clone().move_to(&from).is_err());
        whole.move_to(&moved).unwrap();
        assert!(RunDirectory::open(&moved).is_ok() && !to.exists());
        directory.forget().unwrap();
        // What is none of the run's stays.
        assert!(from.join("notes.txt").exists() && !from.join("run.json").exists());
        assert!(!from.join("ops/part-000000.parquet").exists());
    }

    #[test]
    fn a_staging_place_loses_records_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let (staging, outside) = (place.path().join("staging"), place.path().join("outside"));
        let make = |path: &Path| {
            fs::create_dir_all(path.join("ops")).unwrap();
            for name in ["run.json", "names-0.txt", "ops/part-000000.parquet"] {
                fs::write(path.join(name), "x").unwrap();
            }
        };
        make(&outside.join("0"));
        fs::create_dir(&staging).unwrap();
        make(&staging.join("0"));
        make(&staging.join("1"));
        fs::write(staging.join("1/notes.txt"), "x").unwrap();
        std::os::unix::fs::symlink(outside.join("0"), staging.join("2")).unwrap();
        Staging::left(&staging).remove().unwrap();
        assert!(!staging.join("0").exists() && !staging.join("1/run.json").exists());
        assert!(staging.join("1/notes.txt").exists() && outside.join("0/run.json").exists());
        // Of a record that somebody else made, the staging place itself may lead elsewhere.
        std::os::unix::fs::symlink(&outside, place.path().join("link")).unwrap();
        assert!(Staging::left(&place.path().join("link")).remove().is_err());
        assert!(outside.join("0/run.json").exists());
        fs::remove_file(staging.join("1/notes.txt")).unwrap();
        fs::remove_file(staging.join("2")).unwrap();
        Staging::left(&staging).remove().unwrap();
        assert!(!staging.exists());
    }
}
