//! The files of a run: where they lie, how large they are, and what is known of their versions.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_model::ObjectId;

use super::versions::{Cells, Checked, Versions};
use crate::plan::{FileNames, Files, SizeRange};
use crate::{Random, hash_text};

const SIZE_DOMAIN: u64 = 0x6673_697a;
/// Sizes out of a range are so far apart where both of its ends are multiples of it, and else by
/// the largest half, quarter and so on of which they are: a file of a range that suits `O_DIRECT`
/// does.
const SIZE_STEP: u64 = 4_096;

/// Every file that a run reads or writes by blocks, each once.
pub struct FileTable {
    entries: Vec<FileEntry>,
    unverified_bytes: AtomicU64,
}

impl FileTable {
    /// Returns file number `file`.
    #[inline]
    pub fn entry(&self, file: u32) -> &FileEntry {
        &self.entries[file as usize]
    }

    /// Returns how many files there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tells whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns how many bytes were read, by streams that are gone, that could not be checked: what
    /// was there before the run, and what the run never wrote. Nothing where nothing is checked.
    pub fn unverified_bytes(&self) -> u64 {
        self.unverified_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add_unverified(&self, bytes: u64) {
        self.unverified_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// One file.
pub struct FileEntry {
    /// Where it lies.
    pub path: String,
    /// Its size; of several jobs that use it, the largest that one of them asks for.
    pub size: u64,
    /// Whether it was there before the run.
    pub existing: bool,
    /// What its content is made from: the hash of `plimsoll/<run>/<name>`, the name of a file that
    /// was there being its path.
    pub(super) key_hash: u64,
    pub(super) versions: Versions,
}

impl FileEntry {
    #[inline]
    pub(super) fn checked<'a>(&'a self, unverified: &'a Cell<u64>) -> Checked<'a> {
        let Self { path, existing, key_hash, versions, .. } = self;
        Checked { path, existing: *existing, key_hash: *key_hash, versions, unverified }
    }
}

/// Collects files and how they are used.
pub(super) struct TableBuilder<'a> {
    run: &'a str,
    seed: u64,
    by_path: HashMap<String, u32>,
    entries: Vec<Draft>,
}

/// A file as far as the stages so far tell.
pub(super) struct Draft {
    pub(super) path: String,
    key_hash: u64,
    pub(super) size: u64,
    pub(super) existing: bool,
    /// What the length of every block is a multiple of.
    pub(super) common: u64,
    /// The stage that fills it.
    pub(super) filled: Option<usize>,
    /// The first stage that writes blocks of it.
    pub(super) written_first: Option<usize>,
    /// The first and the last stage that reads blocks of it.
    pub(super) read: Option<(usize, usize)>,
}

impl Draft {
    /// Returns what has to be kept so that what is read can be checked.
    fn versions(&self) -> Result<Versions, String> {
        let Some((read_first, read_last)) = self.read else { return Ok(Versions::None) };
        let overwritten = self.written_first.is_some_and(|written| written <= read_last);
        let filled_meanwhile = self.filled.is_some_and(|filled| read_first <= filled);
        Ok(match self.filled {
            _ if overwritten || filled_meanwhile => {
                let cells = Cells::new(self.size, self.common).ok_or_else(|| {
                    format!(
                        "`{}` has {} bytes, and memory has no room to keep which version each \
                         part of it holds; use `--no-verify`, or smaller files and offsets",
                        self.path, self.size
                    )
                })?;
                Versions::Cells(cells)
            }
            Some(_) => Versions::Filled(self.size.into()),
            None => Versions::None,
        })
    }
}

impl<'a> TableBuilder<'a> {
    pub(super) fn new(run: &'a str, seed: u64) -> Self {
        Self { run, seed, by_path: HashMap::new(), entries: Vec::new() }
    }

    pub(super) fn draft(&mut self, file: u32) -> &mut Draft {
        &mut self.entries[file as usize]
    }

    /// Adds files; returns how often lists of files differ and each of them: worker w has list w
    /// modulo their count.
    pub(super) fn add(&mut self, files: &Files) -> Result<Vec<Vec<u32>>, String> {
        let (directories, size) = (&files.directories, files.size);
        if directories.is_empty() && !files.are_there() {
            return Err("there is no directory for the run's own files".to_owned());
        }
        match &files.names {
            FileNames::Paths(paths) => {
                let file = |path: &String| self.file(None, path, size);
                Ok(vec![paths.iter().map(file).collect::<Result<_, _>>()?])
            }
            FileNames::Listed(names) => {
                let file = |name: &String| self.file(Some(&directories[0]), name, size);
                Ok(vec![names.iter().map(file).collect::<Result<_, _>>()?])
            }
            FileNames::Traced(traced) => {
                let trace = traced.trace();
                let sizes = trace.made_first().iter().enumerate();
                let file = |(number, size): (usize, &u64)| {
                    let size = SizeRange { min: *size, max: *size };
                    self.file(Some(&directories[0]), &format!("traced.{number}"), size)
                };
                Ok(vec![sizes.map(file).collect::<Result<_, _>>()?])
            }
            FileNames::Made { format, job, workers, count } => (0..*workers)
                .map(|worker| {
                    let directory = &directories[worker as usize % directories.len()];
                    let form = format.replace("$jobname", job);
                    let form = form.replace("$jobnum", &worker.to_string());
                    (0..*count)
                        .map(|number| form.replace("$filenum", &number.to_string()))
                        .map(|name| self.file(Some(directory), &name, size))
                        .collect()
                })
                .collect(),
        }
    }

    /// Returns the number of a file; without a directory it was there before.
    fn file(
        &mut self,
        directory: Option<&str>,
        name: &str,
        size: SizeRange,
    ) -> Result<u32, String> {
        let name = match directory {
            Some(_) => below(name)?,
            None => name.to_owned(),
        };
        let key = format!("plimsoll/{}/{name}", self.run);
        let key_hash = hash_text(&key);
        let size = size_of(self.seed, key_hash, size);
        let path = match directory {
            Some(directory) => format!("{}/{key}", trimmed(directory)),
            None => name,
        };
        if let Some(&file) = self.by_path.get(&path) {
            let draft = self.draft(file);
            draft.size = draft.size.max(size);
            return Ok(file);
        }
        if self.entries.len() >= ObjectId::OWNER_MAX as usize {
            return Err(format!("more than {} files", ObjectId::OWNER_MAX));
        }
        let file = self.entries.len() as u32;
        self.by_path.insert(path.clone(), file);
        self.entries.push(Draft {
            path,
            key_hash,
            size,
            existing: directory.is_none(),
            common: 0,
            filled: None,
            written_first: None,
            read: None,
        });
        Ok(file)
    }

    /// Returns the table; without `verify` nothing is kept of versions.
    pub(super) fn finish(self, verify: bool) -> Result<FileTable, String> {
        let entry = |draft: Draft| {
            Ok(FileEntry {
                versions: if verify { draft.versions()? } else { Versions::None },
                path: draft.path,
                size: draft.size,
                existing: draft.existing,
                key_hash: draft.key_hash,
            })
        };
        let entries = self.entries.into_iter().map(entry).collect::<Result<_, String>>()?;
        Ok(FileTable { entries, unverified_bytes: AtomicU64::new(0) })
    }
}

/// Draws a file's size, of which all have the same chance, those of both ends too.
pub(super) fn size_of(seed: u64, key_hash: u64, span: SizeRange) -> u64 {
    if span.min >= span.max {
        return span.min;
    }
    let step = 1 << (span.min | span.max | SIZE_STEP).trailing_zeros();
    let steps = (span.max - span.min) / step;
    span.min + step * Random::new(seed, SIZE_DOMAIN, key_hash).below(steps + 1)
}

/// Returns a directory without the `/` at its end.
pub(super) fn trimmed(directory: &str) -> &str {
    match directory.trim_end_matches('/') {
        // The root, whose files begin with one `/`.
        "" => "",
        trimmed => trimmed,
    }
}

/// Returns a path below the run's directory in its shortest form.
pub(crate) fn below(name: &str) -> Result<String, String> {
    if name.starts_with('/') {
        return Err(format!("`{name}` is absolute; only files that exist are named so"));
    }
    let mut parts = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(format!("`{name}` leads out of the run's directory")),
            _ if part.contains('\0') => return Err(format!("`{name:?}` holds a zero byte")),
            part => parts.push(part),
        }
    }
    match parts.is_empty() {
        true => Err(format!("`{name}` names no file")),
        false => Ok(parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_too_large_to_be_checked_is_refused_with_its_size() {
        let draft = Draft {
            path: "/mnt/a/big".to_owned(),
            key_hash: 1,
            size: u64::MAX,
            existing: false,
            common: 512,
            filled: Some(0),
            written_first: Some(0),
            read: Some((1, 1)),
        };
        let builder = TableBuilder { entries: vec![draft], ..TableBuilder::new("r", 1) };
        let why = builder.finish(true).err().unwrap();
        let start = "`/mnt/a/big` has 18446744073709551615 bytes, and memory has no room";
        assert!(why.starts_with(start), "{why}");
    }
}
