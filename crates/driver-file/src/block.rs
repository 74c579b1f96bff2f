//! A block or sync under way, whichever interface carries it: what is left of it, and what it came
//! to.

use plimsoll_driver::{DriverError, Handle, Reply};
use rustix::io::Errno;

use crate::open::{self, OpenFile};
use crate::trouble;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Read,
    Write,
    Sync { data_only: bool },
}

/// What is done with which part of which file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) act: Act,
    pub(crate) file: Handle,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// So often in a row the kernel may say that something would have to wait before that counts as a
/// failure; whoever waits for its end looks at nothing else meanwhile.
pub(crate) const AGAIN_MAX: u32 = 100_000;

/// A block and how far it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) block: Block,
    pub(crate) done: u32,
    /// How often in a row the kernel put it off.
    again: u32,
    /// Whether it has been taken and not been answered.
    pub(crate) is_under_way: bool,
}

impl Progress {
    /// A slot that has nothing to do.
    pub(crate) const IDLE: Self = Self {
        block: Block { act: Act::Sync { data_only: false }, file: Handle(0), offset: 0, len: 0 },
        done: 0,
        again: 0,
        is_under_way: false,
    };

    #[inline]
    pub(crate) fn new(block: Block) -> Self {
        Self { block, done: 0, again: 0, is_under_way: true }
    }

    /// Returns the part that is still to be done: its offset in the file, and its length.
    #[inline]
    pub(crate) fn rest(&self) -> (u64, u32) {
        (self.block.offset.wrapping_add(u64::from(self.done)), self.block.len - self.done)
    }

    /// Takes what a call on the rest came to; `None` asks for another call on what is left now.
    #[inline]
    pub(crate) fn advance(&mut self, result: Result<u32, Errno>, file: &OpenFile) -> Option<Reply> {
        let reply = match result {
            Ok(count) if count == self.block.len => Some(Ok(u64::from(count))),
            result => self.advance_slowly(result, file),
        };
        self.is_under_way = reply.is_none();
        reply
    }

    #[cold]
    fn advance_slowly(&mut self, result: Result<u32, Errno>, file: &OpenFile) -> Option<Reply> {
        match result {
            Err(Errno::INTR | Errno::AGAIN) if self.again < AGAIN_MAX => {
                self.again += 1;
                None
            }
            Err(errno) => Some(Err(self.failed(errno, file))),
            Ok(count) => {
                self.again = 0;
                self.done += count;
                let is_end_of_file = match self.block.act {
                    Act::Read => count == 0 || (file.is_direct && !self.done.is_multiple_of(512)),
                    Act::Write if count == 0 => {
                        return Some(Err(self.failed(Errno::IO, file)));
                    }
                    Act::Write | Act::Sync { .. } => false,
                };
                let is_over = is_end_of_file || self.done == self.block.len;
                is_over.then(|| Ok(u64::from(self.done)))
            }
        }
    }

    #[cold]
    pub(crate) fn failed(&self, errno: Errno, file: &OpenFile) -> DriverError {
        let path = file.path.display();
        let offset = self.block.offset;
        let what = match self.block.act {
            Act::Read => format!("cannot read block at {offset} of {path}"),
            Act::Write => format!("cannot write block at {offset} of {path}"),
            Act::Sync { .. } => format!("cannot sync {path}"),
        };
        let mut error = trouble::failed(what, errno);
        if errno == Errno::INVAL && file.is_direct {
            error.message.push_str(&open::alignment_advice(file));
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rustix::fs::{CWD, Mode, OFlags};

    use super::*;

    fn null() -> OpenFile {
        let path = PathBuf::from("/dev/null");
        let fd = rustix::fs::openat(CWD, &path, OFlags::RDONLY, Mode::empty()).unwrap();
        OpenFile { fd, path, is_direct: false }
    }

    #[test]
    fn what_is_put_off_for_ever_fails_in_the_end() {
        let block = Block { act: Act::Read, file: Handle(0), offset: 0, len: 8 };
        for errno in [Errno::AGAIN, Errno::INTR] {
            let (mut progress, file) = (Progress::new(block), null());
            // A part that came begins the count anew.
            for round in 0..AGAIN_MAX {
                assert_eq!(progress.advance(Err(errno), &file), None, "{round}");
            }
            assert_eq!(progress.advance(Ok(4), &file), None);
            for round in 0..AGAIN_MAX {
                assert_eq!(progress.advance(Err(errno), &file), None, "{round}");
            }
            let reply = progress.advance(Err(errno), &file).unwrap();
            let message = reply.unwrap_err().message;
            assert!(message.starts_with("cannot read block at 0 of /dev/null: "), "{message}");
            assert!(!progress.is_under_way);
        }
    }
}
