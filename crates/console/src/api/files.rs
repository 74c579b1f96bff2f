//! The files of a run: its archive and its record.
//!
//! A name is looked up in the list of what is there; it is never made a path.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::doc::FileDoc;
use crate::disk;
use crate::store::Entry;

/// What stands before the names of files of a record.
const RECORD: &str = "run/";

/// A file of a run.
pub(super) struct OfRun {
    pub(super) name: String,
    pub(super) path: PathBuf,
    size_bytes: u64,
}

impl OfRun {
    pub(super) fn doc(&self) -> FileDoc {
        FileDoc { name: self.name.clone(), size_bytes: self.size_bytes, about: about(&self.name) }
    }

    pub(super) fn open(&self) -> io::Result<(File, u64)> {
        disk::open_plain(&self.path)
    }
}

/// Returns the files of a run; what cannot be looked at is left out.
pub(super) fn list(entry: &Entry) -> Vec<OfRun> {
    let mut all = below(entry.archive_directory.as_deref(), "");
    all.extend(below(entry.run_directory.as_deref(), RECORD));
    all
}

/// Returns the file of that name.
pub(super) fn find(entry: &Entry, name: &str) -> Option<OfRun> {
    list(entry).into_iter().find(|file| file.name == name)
}

fn below(directory: Option<&str>, before: &str) -> Vec<OfRun> {
    let Some(directory) = directory.map(Path::new) else { return Vec::new() };
    let found = disk::files_below(directory).unwrap_or_default();
    let file = |found: disk::Found| OfRun {
        name: format!("{before}{}", found.name),
        path: directory.join(&found.name),
        size_bytes: found.size_bytes,
    };
    // Who holds the directory is nothing to be read.
    let is_shown = |found: &disk::Found| found.name != "lock";
    found.into_iter().filter(is_shown).map(file).collect()
}

fn about(name: &str) -> Option<String> {
    let text = match name {
        "workload-config.xml" | "workload.yaml" | "job.fio" => "the workload, without its secrets",
        "workload.log" => "what was said of it",
        "scripts.log" => "what its triggers wrote",
        "run/run.json" => "the manifest of its record",
        "run/summary.json" => "counts by second, histograms by minute",
        name if name.starts_with("run/ops/") => "every operation (Parquet)",
        name if name.ends_with("-rt-histogram.csv") => "latencies in steps of 10 ms (COSBench)",
        name if name.ends_with("-worker.csv") => "figures by worker (COSBench)",
        name if name.starts_with('s') && name.ends_with(".csv") => "its seconds (COSBench)",
        name if name.ends_with(".csv") => "final figures (COSBench)",
        _ => return None,
    };
    Some(text.to_owned())
}

/// Writes all files of a run as one tar archive.
pub(super) fn tar(entry: &Entry, to: impl io::Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(to);
    for file in list(entry) {
        // A file that is written to while it is read is cut at the length that it began with.
        let Ok((open, length)) = file.open() else { continue };
        let mut header = tar::Header::new_gnu();
        header.set_size(length);
        header.set_mode(0o644);
        let path = format!("{}/{}", entry.number, file.name);
        let padded = io::Read::take(io::Read::chain(open, io::repeat(0)), length);
        archive.append_data(&mut header, path, padded)?;
    }
    archive.finish()
}
