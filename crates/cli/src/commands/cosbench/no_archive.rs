//! Stands in for COSBench's archive in a build without the console, which keeps it.

use std::io;
use std::path::{Path, PathBuf};

use plimsoll_dialects::cosbench::Workload;
use plimsoll_dialects::cosbench::layout::Archive;

use crate::left_out::CONSOLE;

/// A directory of archives; there are none.
pub(super) enum ArchiveRoot {}

impl ArchiveRoot {
    pub(super) fn open(_: &Path) -> io::Result<Self> {
        Err(io::Error::other(CONSOLE.refusal()))
    }

    pub(super) fn next_id(&self) -> String {
        match *self {}
    }

    pub(super) fn keep(&self, _: &Archive, _: &Workload) -> io::Result<PathBuf> {
        match *self {}
    }
}
