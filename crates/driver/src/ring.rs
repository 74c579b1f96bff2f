//! The second seam: blocks of files and names in directories, submitted by slot and reaped in
//! batches, without tasks. What a file system is asked is known here, not how.

use std::ffi::CStr;
use std::path::Path;
use std::time::Duration;

use plimsoll_model::{Interface, Moment, SyncMode};

use crate::DriverError;

/// What an open file is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It is only read.
    Read,
    /// It is only written; made where it is not there.
    Write,
    /// Both; made where it is not there.
    ReadWrite,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpenMode {
    /// What it is used for.
    pub access: Access,
    /// Whether the page cache is passed by (`O_DIRECT`).
    pub direct: bool,
    /// Whether each write is on the medium when it returns.
    pub sync: SyncMode,
    /// Whether the kernel is told that blocks are read in no order (`POSIX_FADV_RANDOM`) instead of
    /// one after the other.
    pub random: bool,
}

/// An open file or directory of one ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub u32);

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The directory, opened by [`Ring::open_directory`].
    pub directory: Handle,
    /// The name, or a path below the directory.
    pub name: &'a CStr,
}

/// One operation. Content lies in the slot's buffer, from its first byte on.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// Reads a block into the buffer.
    Read {
        /// The file.
        file: Handle,
        /// The block's first byte.
        offset: u64,
        /// Its length.
        len: u32,
    },
    /// Writes a block from the buffer.
    Write {
        /// The file.
        file: Handle,
        /// The block's first byte.
        offset: u64,
        /// Its length.
        len: u32,
    },
    /// Has what was written put on the medium.
    Sync {
        /// The file.
        file: Handle,
        /// Whether attributes may wait (`fdatasync`).
        data_only: bool,
    },
    /// Makes a file, or opens the one of that name, writes `len` bytes of the buffer to it, closes
    /// it.
    Create {
        /// Where.
        place: Place<'a>,
        /// How many bytes.
        len: u32,
        /// Whether it is put on the medium before it is closed.
        sync: bool,
    },
    /// Opens a file, reads up to `len` bytes into the buffer, closes it.
    Open {
        /// Where.
        place: Place<'a>,
        /// How many bytes; 0 reads nothing.
        len: u32,
    },
    /// Reads the attributes of a file or directory.
    Stat {
        /// Where.
        place: Place<'a>,
    },
    /// Removes a file.
    Unlink {
        /// Where.
        place: Place<'a>,
    },
    /// Gives a file or directory another name.
    Rename {
        /// Its name.
        from: Place<'a>,
        /// Its name from then on.
        to: Place<'a>,
    },
    /// Makes a directory.
    Mkdir {
        /// Where.
        place: Place<'a>,
    },
    /// Removes a directory.
    Rmdir {
        /// Where.
        place: Place<'a>,
    },
}

/// What came of a request: bytes moved (of a STAT the file's size), or why it failed.
pub type Reply = Result<u64, DriverError>;

/// One thread's way to the files. Stays on the thread that made it.
pub trait Ring {
    /// Opens a file for as long as the ring lives. Opening one twice in the same mode gives the
    /// same handle.
    fn open_file(&mut self, path: &Path, mode: OpenMode) -> Result<Handle, DriverError>;

    /// Opens a directory for as long as the ring lives.
    fn open_directory(&mut self, path: &Path) -> Result<Handle, DriverError>;

    /// Returns the buffer of a slot that has nothing under way.
    fn buffer(&mut self, slot: usize) -> &mut [u8];

    /// Takes a request for a slot that has nothing under way. What is done at once is returned;
    /// anything else goes out with the next [`Ring::reap`] and is reaped later.
    ///
    /// Requests on names block and are always done at once.
    fn submit(&mut self, slot: usize, request: &Request<'_>) -> Option<Reply>;

    /// Sends what was submitted and appends what has ended to `replies`, by slot. With nothing
    /// ended it waits for the first, at most `wait` long; `None` waits for as long as it takes,
    /// zero not at all.
    ///
    /// Only called with something under way.
    fn reap(&mut self, wait: Option<Duration>, replies: &mut Vec<(usize, Reply)>);

    /// Appends what has ended by now to `replies`, by slot, without waiting: a look into memory,
    /// and a call of the kernel only where that says that there is something to be had.
    ///
    /// What ended is stamped when it is looked at, so this is called between any two slots'
    /// content.
    fn look(&mut self, replies: &mut Vec<(usize, Reply)>);

    /// Returns when the next operation under way ends, where that is known before it does: in
    /// virtual time.
    fn next_end(&self) -> Option<Moment> {
        None
    }
}

/// Makes rings. Shared by all threads.
pub trait RingDriver: Send + Sync {
    /// The ring type.
    type Ring: Ring;

    /// Returns a ring for the calling thread, with `slots` buffers of `buffer_bytes` each, aligned
    /// to 4 KiB.
    fn ring(
        &self,
        interface: Interface,
        slots: usize,
        buffer_bytes: usize,
    ) -> Result<Self::Ring, DriverError>;

    /// Returns the target's name as reports show it, at index 0.
    fn endpoints(&self) -> Vec<String>;
}

/// Makes rings that do nothing, at once: what remains is the cost of our own engine and recorder.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullRings;

/// A ring of [`NullRings`].
pub struct NullRing {
    buffers: Vec<Vec<u8>>,
}

impl RingDriver for NullRings {
    type Ring = NullRing;

    fn ring(
        &self,
        _interface: Interface,
        slots: usize,
        buffer_bytes: usize,
    ) -> Result<NullRing, DriverError> {
        Ok(NullRing { buffers: vec![vec![0; buffer_bytes]; slots] })
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["null".to_owned()]
    }
}

impl Ring for NullRing {
    fn open_file(&mut self, _path: &Path, _mode: OpenMode) -> Result<Handle, DriverError> {
        Ok(Handle(0))
    }

    fn open_directory(&mut self, _path: &Path) -> Result<Handle, DriverError> {
        Ok(Handle(0))
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        &mut self.buffers[slot]
    }

    fn submit(&mut self, _slot: usize, request: &Request<'_>) -> Option<Reply> {
        let bytes = match *request {
            Request::Read { len, .. }
            | Request::Write { len, .. }
            | Request::Create { len, .. }
            | Request::Open { len, .. } => len,
            _ => 0,
        };
        Some(Ok(u64::from(bytes)))
    }

    fn reap(&mut self, _wait: Option<Duration>, _replies: &mut Vec<(usize, Reply)>) {}

    fn look(&mut self, _replies: &mut Vec<(usize, Reply)>) {}
}
