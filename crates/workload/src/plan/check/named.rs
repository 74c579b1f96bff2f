//! Checks sets with names of the user's own.

use super::sets::{content, part_size, sizes};
use super::{Checked, at_least_one};
use crate::plan::checked::{Members, NamedObjects, SharedContent};
use crate::plan::path::FieldPath;
use crate::plan::pattern::Pattern;
use crate::plan::spec::{CONTENT_SEED, ContentSpec, FilesOf, NamedSet, SizeSpec};
use crate::plan::units::Size;
use crate::sizes::{PARTS_MAX, PUT_BYTES_MAX};
use crate::{DataFileSpec, SizeDist};

/// Returns the members of a set with names of the user's own.
pub(super) fn named(path: &FieldPath, set: &NamedSet) -> Checked<Members> {
    if let Some(part) = set.part {
        part_size(&path.field("part"), part)?;
    }
    let keys = keys(&path.field("named"), set)?;
    let shared = shared(path, set)?;
    let (data, data_files) = match &set.named.files {
        Some(FilesOf::These(files)) => {
            let content_of = ContentSpec::Files(files.clone());
            content(&path.field("named"), &content_of)?
        }
        _ => content(&path.field("content"), &set.content)?,
    };
    Ok(Members::Named(NamedObjects {
        buckets: set.named.bucket.clone(),
        keys,
        sizes: set_sizes(path, set)?,
        data,
        data_files,
        files: set.named.files.clone(),
        part_bytes: set.part.map(|part| part.0),
        shared,
    }))
}

/// Returns how large members are. One may be empty.
fn set_sizes(path: &FieldPath, set: &NamedSet) -> Checked<Option<SizeDist>> {
    let most = set.part.map_or(PUT_BYTES_MAX, |part| part.0.saturating_mul(PARTS_MAX.into()));
    let of = |size: &SizeSpec| named_sizes(&path.field("size"), size, most);
    set.size.as_ref().map(of).transpose()
}

/// Returns sizes of which all may be nothing.
pub(super) fn named_sizes(path: &FieldPath, size: &SizeSpec, most: u64) -> Checked<SizeDist> {
    match size {
        SizeSpec::Fixed(Size(0)) => Ok(SizeDist::Fixed(0)),
        size => sizes(path, size, most),
    }
}

/// Returns the keys; of files their numbers.
fn keys(path: &FieldPath, set: &NamedSet) -> Checked<Pattern> {
    let files = match (&set.named.key, &set.named.files) {
        (Some(key), None) => return Ok(key.clone()),
        (None, Some(files)) => files,
        _ => return Err(path.refuse("must have exactly one of the fields key, files")),
    };
    let at = path.field("files");
    if set.size.is_some() || set.content != ContentSpec::Random {
        return Err(at.refuse("say how large members are and what they hold; leave out the rest"));
    }
    if !set.shared {
        return Err(at.refuse("are for a shared set; say `shared: true`"));
    }
    let count = match files {
        FilesOf::In(directory) if directory.is_empty() => {
            return Err(at.refuse("must not be empty"));
        }
        FilesOf::In(_) => 1,
        FilesOf::These(files) => {
            at_least_one(&at, files.len() as u64)?;
            let unnamed = |file: &DataFileSpec| file_name(&file.path).is_none();
            if let Some(index) = files.iter().position(unnamed) {
                return Err(at.index(index).field("path").refuse("names no file"));
            }
            files.len()
        }
    };
    Ok(format!("{{1..{count}}}").parse().expect("it is a range"))
}

/// Returns the last part of a path, which becomes a key.
pub(in crate::plan) fn file_name(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', std::path::MAIN_SEPARATOR]).next()?;
    (!matches!(name, "" | "." | "..")).then_some(name)
}

fn shared(path: &FieldPath, set: &NamedSet) -> Checked<Option<SharedContent>> {
    if set.shared {
        let (seed, hash_check) = (set.content_seed, set.hash_check);
        return Ok(Some(SharedContent { seed, hash_check }));
    }
    let of_shared = [
        ("content_seed", set.content_seed != CONTENT_SEED),
        ("hash_check", set.hash_check),
        ("part", set.part.is_some()),
    ];
    match of_shared.into_iter().find(|(_, is_said)| *is_said) {
        Some((field, _)) => Err(path.field(field).refuse("is for a shared set (`shared: true`)")),
        None => Ok(None),
    }
}
