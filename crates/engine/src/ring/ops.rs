//! What is asked of a ring for each operation on files, and what its reply is worth.

use plimsoll_driver::{DriverError, Place, Request};
use plimsoll_model::{ErrorClass, ObjectId, OpKind, WorkerId, WrongKind};
use plimsoll_workload::data::{Generator, Wrong};
use plimsoll_workload::files::{BlockOp, FileOp, FilePlan, NameOp};
use plimsoll_workload::mix64;

use super::worker::FileWorker;

#[inline]
pub(super) fn falls_short(op: &FileOp, count: u64) -> bool {
    matches!(op, FileOp::Block(block) if count != u64::from(block.len))
}

#[cold]
pub(super) fn fell_short(
    plan: &FilePlan,
    op: &FileOp,
    count: u64,
) -> (Option<WrongKind>, DriverError) {
    let FileOp::Block(BlockOp { write, file, offset, len, .. }) = *op else {
        unreachable!("only blocks have a length")
    };
    let path = &plan.table.entry(file).path;
    if write {
        let text = format!("`{path}` took {count} of {len} bytes at {offset}");
        return (None, DriverError::new(ErrorClass::Io, text));
    }
    let text = format!("`{path}` gave {count} bytes instead of {len} at {offset}");
    (Some(WrongKind::Short), DriverError::new(ErrorClass::Truncated, text))
}

/// Tells whether what an operation gives is checked.
#[inline]
pub(super) fn is_checked(op: &FileOp, verifies: bool) -> bool {
    match op {
        FileOp::Block(block) => verifies && !block.write,
        FileOp::Name(name) => verifies && name.kind == OpKind::Open && name.bytes > 0,
        FileOp::Sync { .. } => false,
    }
}

/// Returns what is wrong with what was read.
#[inline]
pub(super) fn judge<'r>(
    worker: &FileWorker,
    op: &FileOp,
    count: u64,
    generator: &Generator,
    verifies: bool,
    buffer: impl FnOnce() -> &'r mut [u8],
) -> Option<Wrong> {
    if !is_checked(op, verifies) {
        return None;
    }
    match op {
        FileOp::Block(block) => worker.stream.check(block, generator, &buffer()[..count as usize]),
        FileOp::Name(name) => {
            worker.stream.check_name(name, generator, &buffer()[..count as usize])
        }
        FileOp::Sync { .. } => None,
    }
}

/// Returns the request for a name; its paths come to lie in the buffers.
pub(super) fn name_request<'p>(
    worker: &FileWorker,
    name: &NameOp,
    path: &'p mut Vec<u8>,
    new_path: &'p mut Vec<u8>,
) -> Request<'p> {
    let directory = worker.directory.expect("a worker on names has a directory");
    worker.stream.path(name, path);
    let path: &'p Vec<u8> = path;
    let place = Place { directory, name: c_name(path) };
    let len = name.bytes;
    match name.kind {
        OpKind::Create => Request::Create { place, len, sync: name.fsync },
        OpKind::Open => Request::Open { place, len },
        OpKind::Stat => Request::Stat { place },
        OpKind::Unlink => Request::Unlink { place },
        OpKind::Mkdir => Request::Mkdir { place },
        OpKind::Rmdir => Request::Rmdir { place },
        OpKind::Rename => {
            worker.stream.new_path(name, new_path);
            let new_path: &'p Vec<u8> = new_path;
            Request::Rename { from: place, to: Place { directory, name: c_name(new_path) } }
        }
        kind => unreachable!("{} is done to no name", kind.name()),
    }
}

fn c_name(path: &[u8]) -> &std::ffi::CStr {
    std::ffi::CStr::from_bytes_with_nul(path).expect("a stream ends its paths with a NUL")
}

/// Returns the kind of an operation, and of a block where it lies.
#[inline]
pub(super) fn describe(op: &FileOp) -> (OpKind, Option<ObjectId>) {
    /// Blocks are numbered in sectors.
    const SECTOR_BYTES: u64 = 512;
    match op {
        FileOp::Block(block) => {
            let kind = if block.write { OpKind::Write } else { OpKind::Read };
            let sector = (block.offset / SECTOR_BYTES) & ObjectId::NUMBER_MAX;
            (kind, Some(ObjectId::new(WorkerId(block.file), sector)))
        }
        FileOp::Sync { file, .. } => (OpKind::Sync, Some(ObjectId::new(WorkerId(*file), 0))),
        FileOp::Name(name) => (name.kind, None),
    }
}

/// Returns a hash of what is planned.
#[inline]
pub(super) fn fingerprint(op: &FileOp) -> u64 {
    let (kind, object) = describe(op);
    let what = match op {
        FileOp::Block(block) => u64::from(block.len),
        FileOp::Sync { data_only, .. } => u64::from(*data_only),
        FileOp::Name(name) => name.number(),
    };
    mix64(object.map_or(0, ObjectId::as_u64) ^ mix64(what ^ (kind as u64) << 56))
}
