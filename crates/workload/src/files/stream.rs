//! The operations of one worker on files, in order, and the check of what they read.

use std::cell::Cell;
use std::sync::Arc;

use super::blocks::{BlockStream, Planned};
use super::fill::{FillPlan, FillState};
use super::names::{NameOp, Names};
use super::replay::{Replay, Traced};
use super::table::FileTable;
use super::versions::{Block, VERSION_MAX};
use crate::data::{Generator, Wrong};
use crate::plan::Blocks;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// On a block of a file.
    Block(BlockOp),
    /// Has what was written to a file put on the medium.
    Sync {
        /// The file's number in the table.
        file: u32,
        /// Whether attributes may wait.
        data_only: bool,
    },
    /// On a name.
    Name(NameOp),
}

/// Reads or writes a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockOp {
    /// Whether it writes.
    pub write: bool,
    /// The file's number in the table.
    pub file: u32,
    /// The block's first byte.
    pub offset: u64,
    /// Its length.
    pub len: u32,
    /// Of a read what its versions were when it was planned, of a write its version.
    seen: u64,
}

impl BlockOp {
    fn block(&self) -> Block {
        Block { offset: self.offset, len: self.len }
    }
}

/// The operations of one worker in one stage.
pub struct FileStream {
    table: Arc<FileTable>,
    verify: bool,
    source: Source,
    ops_left: u64,
    bytes_left: u64,
    /// The version of the next write for which nothing tells one.
    version: u16,
    syncs: Syncs,
    /// How many bytes were read that could not be checked; the table has them in the end.
    unverified: Cell<u64>,
}

impl Drop for FileStream {
    fn drop(&mut self) {
        self.table.add_unverified(self.unverified.get());
    }
}

/// Where operations come from.
pub(super) enum Source {
    Fill(Arc<FillPlan>, FillState),
    Blocks(Box<BlockStream>),
    Names(Box<Names>),
    Replay(Box<Replay>),
}

/// When a sync comes.
#[derive(Default)]
pub(super) struct Syncs {
    fsync_every: Option<u32>,
    fdatasync_every: Option<u32>,
    writes: u64,
    /// The one that comes next.
    due: Option<FileOp>,
    under_way: bool,
    /// Files that still get an `fsync` when nothing else is left to do, the last one first.
    at_end: Vec<u32>,
    ended: bool,
}

impl Syncs {
    /// Returns those of a job on these files.
    pub(super) fn of(blocks: &Blocks, files: &[u32]) -> Self {
        if !blocks.writes() {
            return Self::default();
        }
        let at_end = if blocks.end_fsync { files } else { &[] };
        Self {
            fsync_every: blocks.fsync_every,
            fdatasync_every: blocks.fdatasync_every,
            at_end: at_end.iter().rev().copied().collect(),
            ..Self::default()
        }
    }

    fn wrote(&mut self, file: u32) {
        self.writes += 1;
        let hits = |every: Option<u32>| {
            every.is_some_and(|every| self.writes.is_multiple_of(u64::from(every)))
        };
        // As in fio, an `fsync` makes an `fdatasync` at the same place needless.
        let data_only = match (hits(self.fsync_every), hits(self.fdatasync_every)) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => return,
        };
        self.due = Some(FileOp::Sync { file, data_only });
    }
}

impl FileStream {
    /// Returns the stream of so many operations and bytes at most; `drawn` says with which version
    /// writes begin that nothing tells one.
    pub(super) fn new(
        table: &Arc<FileTable>,
        verify: bool,
        (ops_left, bytes_left): (u64, u64),
        (source, syncs): (Source, Syncs),
        drawn: u64,
    ) -> Self {
        Self {
            table: Arc::clone(table),
            verify,
            source,
            ops_left,
            bytes_left,
            version: (drawn % u64::from(VERSION_MAX)) as u16 + 1,
            syncs,
            unverified: Cell::new(0),
        }
    }

    /// Returns the next operation; `None` when nothing is left to do, and where it [has to be
    /// asked again](Self::is_seeking).
    ///
    /// Each one has to be given to [`Self::completed`] in the end, also when it was never issued.
    #[inline]
    pub fn next_op(&mut self) -> Option<FileOp> {
        if let Some(sync) = self.syncs.due.take() {
            self.syncs.under_way = true;
            return Some(sync);
        }
        match self.next_work() {
            Some(op) => Some(op),
            None if self.is_seeking() => None,
            None => self.next_at_end(),
        }
    }

    /// Tells whether there may be more to do although nothing was returned: the search for it takes
    /// long.
    pub fn is_seeking(&self) -> bool {
        matches!(&self.source, Source::Names(names) if names.is_seeking())
    }

    #[inline]
    fn next_work(&mut self) -> Option<FileOp> {
        if self.syncs.ended || self.ops_left == 0 || self.bytes_left == 0 {
            return None;
        }
        let planned = match &mut self.source {
            Source::Blocks(blocks) => blocks.next()?,
            Source::Fill(plan, state) => {
                let (file, offset, len) = state.next(plan)?;
                Planned { write: true, file, offset, len }
            }
            Source::Names(names) => {
                let op = names.next()?;
                self.ops_left -= 1;
                return Some(FileOp::Name(op));
            }
            Source::Replay(replay) => match replay.next()? {
                Traced::Block(planned) => planned,
                Traced::Sync { file, data_only } => {
                    self.ops_left -= 1;
                    return Some(FileOp::Sync { file, data_only });
                }
            },
        };
        self.ops_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(planned.len));
        let Planned { write, file, offset, len } = planned;
        let block = Block { offset, len };
        let entry = self.table.entry(file);
        let seen = if write {
            self.version = self.version % VERSION_MAX + 1;
            self.syncs.wrote(file);
            entry.versions.plan_write(block, entry.size, self.version).into()
        } else {
            entry.versions.plan_read(block)
        };
        Some(FileOp::Block(BlockOp { write, file, offset, len, seen }))
    }

    fn next_at_end(&mut self) -> Option<FileOp> {
        self.syncs.ended = true;
        let file = self.syncs.at_end.pop()?;
        self.syncs.under_way = true;
        Some(FileOp::Sync { file, data_only: false })
    }

    /// Returns how many operations of the job's work are left, or `most` if they are more. None is
    /// taken.
    pub fn work_left(&self, most: u64) -> u64 {
        let (mut ops_left, mut bytes_left) = (self.ops_left, self.bytes_left);
        if self.syncs.ended {
            return 0;
        }
        let mut blocks = match &self.source {
            Source::Names(names) => return names.left(most.min(ops_left)),
            Source::Replay(replay) => return replay.left().min(most).min(ops_left),
            Source::Blocks(blocks) if blocks.repeats() && bytes_left > u64::MAX / 2 => {
                return most.min(ops_left);
            }
            Source::Blocks(blocks) => Ok(blocks.clone()),
            Source::Fill(plan, state) => Err((plan, *state)),
        };
        let mut left = 0;
        while left < most && ops_left > 0 && bytes_left > 0 {
            let len = match &mut blocks {
                Ok(blocks) => blocks.next().map(|planned| planned.len),
                Err((plan, state)) => state.next(plan).map(|(_, _, len)| len),
            };
            let Some(len) = len else { break };
            bytes_left = bytes_left.saturating_sub(u64::from(len));
            (ops_left, left) = (ops_left - 1, left + 1);
        }
        left
    }

    /// Has nothing come any more but what ends the job: the `fsync` of each file where it is asked
    /// for. For a job whose time is up.
    pub fn end(&mut self) {
        self.syncs.ended = true;
        self.syncs.due = None;
    }

    /// Tells whether the next operation may only start when none of the worker's is in flight: it
    /// is a sync, or a sync is under way.
    #[inline]
    pub fn must_drain(&self) -> bool {
        let Syncs { due, under_way, at_end, .. } = &self.syncs;
        due.is_some() || *under_way || (!at_end.is_empty() && self.is_at_end())
    }

    fn is_at_end(&self) -> bool {
        let limit = self.syncs.ended || self.ops_left == 0 || self.bytes_left == 0;
        limit || matches!(&self.source, Source::Blocks(blocks) if blocks.is_done())
    }

    /// Fills `buffer`, of which it takes as much as the block has, with the content of a write.
    #[inline]
    pub fn fill(&self, op: &BlockOp, generator: &Generator, buffer: &mut [u8]) {
        let content = generator.content(self.table.entry(op.file).key_hash, op.seen as u32);
        content.fill(op.offset, &mut buffer[..op.len as usize]);
    }

    /// Returns what is wrong with the bytes that a read gave, in a whole sentence; `bytes` are all
    /// that came, which may be fewer than asked for. To be called before [`Self::completed`].
    #[inline]
    pub fn check(&self, op: &BlockOp, generator: &Generator, bytes: &[u8]) -> Option<Wrong> {
        let checked = self.table.entry(op.file).checked(&self.unverified);
        checked.check(op.block(), op.seen, generator, bytes)
    }

    /// Takes note that an operation ended, as it should or not.
    #[inline]
    pub fn completed(&mut self, op: &FileOp, ok: bool) {
        match op {
            FileOp::Block(op) if op.write => {
                let entry = self.table.entry(op.file);
                entry.versions.end_write(op.block(), entry.size, op.seen as u16, ok);
            }
            FileOp::Name(op) if ok => self.names().succeeded(op),
            FileOp::Block(_) | FileOp::Name(_) => {}
            FileOp::Sync { .. } => self.syncs.under_way = false,
        }
    }

    fn names(&self) -> &Names {
        match &self.source {
            Source::Names(names) => names,
            _ => panic!("the worker has no names"),
        }
    }

    /// Returns the one directory that all names of this worker are relative to; `None` where it
    /// works on blocks.
    pub fn directory(&self) -> Option<&str> {
        match &self.source {
            Source::Names(names) => Some(names.directory()),
            _ => None,
        }
    }

    /// Replaces `path` by the path of the operation's name, which ends with a zero.
    #[inline]
    pub fn path(&self, op: &NameOp, path: &mut Vec<u8>) {
        self.names().path(op, path);
    }

    /// Replaces `path` by the name that a RENAME gives, which ends with a zero.
    pub fn new_path(&self, op: &NameOp, path: &mut Vec<u8>) {
        self.names().new_path(op, path);
    }

    /// Fills `buffer`, of which it takes as much as the operation writes, with the content of a
    /// file that is created.
    pub fn fill_name(&self, op: &NameOp, generator: &Generator, buffer: &mut [u8]) {
        self.names().fill(op, generator, buffer);
    }

    /// Returns what is wrong with the bytes that an OPEN read, in a whole sentence.
    pub fn check_name(&self, op: &NameOp, generator: &Generator, bytes: &[u8]) -> Option<Wrong> {
        let names = self.names();
        if self.verify && !names.knows_content() {
            self.unverified.set(self.unverified.get() + bytes.len() as u64);
        }
        names.check(op, self.verify.then_some(generator), bytes)
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
