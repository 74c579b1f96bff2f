//! A ring over any of the three interfaces: which request goes which way.

use std::path::Path;
use std::time::Duration;

use plimsoll_driver::{DriverError, Handle, OpenMode, Reply, Request, Ring};
use plimsoll_model::Interface;

use crate::block::{Act, Block};
use crate::buffers::Slab;
use crate::libaio::Libaio;
use crate::open::OpenFiles;
use crate::uring::Uring;
use crate::{names, psync, trouble};

/// The most slots a ring may have: what the kernel's rings take at once.
pub const SLOTS_MAX: usize = 32_768;

/// So many submitted operations are sent without waiting for the next reaping. The kernel hands a
/// larger batch to the device only when it has prepared all of it, and a device that has nothing to
/// do meanwhile loses a sixth of its rate (measured on a virtio disk, 16 in flight).
pub(crate) const SENT_AT_ONCE: usize = 1;

/// A ring on real files. Dropping it waits for what is under way, as the kernel writes to its
/// buffers until then.
pub struct FilesRing {
    pub(crate) way: Way,
    pub(crate) files: OpenFiles,
    pub(crate) slab: Slab,
    /// What is handed out, once a ring of the kernel is broken, in the place of buffers that the
    /// kernel may still own: one for all, as nothing is read or written any more.
    spare: Option<Slab>,
    buffer_bytes: usize,
}

pub(crate) enum Way {
    Uring(Box<Uring>),
    Libaio(Box<Libaio>),
    Psync,
}

impl FilesRing {
    pub(crate) fn new(
        interface: Interface,
        slots: usize,
        buffer_bytes: usize,
        files: OpenFiles,
    ) -> Result<Self, DriverError> {
        assert!((1..=SLOTS_MAX).contains(&slots), "a ring has 1 to {SLOTS_MAX} slots");
        let slab = Slab::new(slots, buffer_bytes).map_err(|errno| {
            let what = format!("cannot get {slots} buffers of {buffer_bytes} bytes");
            trouble::failed(what, errno)
        })?;
        let way = match interface {
            Interface::IoUring => Way::Uring(Box::new(Uring::new(&slab)?)),
            Interface::Libaio => Way::Libaio(Box::new(Libaio::new(slots)?)),
            Interface::Psync => Way::Psync,
        };
        Ok(Self { way, files, slab, spare: None, buffer_bytes })
    }

    /// Returns a buffer in the place of one that the kernel may still own.
    #[cold]
    fn spare(&mut self, slot: usize) -> &mut [u8] {
        assert!(self.is_broken(), "the kernel is at the buffer of slot {slot}");
        let bytes = self.buffer_bytes;
        let make = || Slab::new(1, bytes).expect("the process has memory for one buffer");
        self.spare.get_or_insert_with(make).slot_mut(0)
    }

    #[cold]
    fn is_broken(&self) -> bool {
        matches!(&self.way, Way::Uring(uring) if uring.is_broken())
    }

    fn is_under_way(&self, slot: usize) -> bool {
        match &self.way {
            Way::Uring(uring) => uring.is_under_way(slot),
            Way::Libaio(libaio) => libaio.is_under_way(slot),
            Way::Psync => false,
        }
    }
}

impl Ring for FilesRing {
    fn open_file(&mut self, path: &Path, mode: OpenMode) -> Result<Handle, DriverError> {
        let (handle, is_new) = self.files.open(path, Some(mode))?;
        if let (true, Way::Uring(uring)) = (is_new, &mut self.way) {
            uring.register(handle, &self.files.get(handle).fd);
        }
        Ok(handle)
    }

    fn open_directory(&mut self, path: &Path) -> Result<Handle, DriverError> {
        self.files.open(path, None).map(|(handle, _)| handle)
    }

    #[inline]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        if self.is_under_way(slot) {
            return self.spare(slot);
        }
        self.slab.slot_mut(slot)
    }

    #[inline]
    fn submit(&mut self, slot: usize, request: &Request<'_>) -> Option<Reply> {
        let block = match *request {
            Request::Read { file, offset, len } => Block { act: Act::Read, file, offset, len },
            Request::Write { file, offset, len } => Block { act: Act::Write, file, offset, len },
            Request::Sync { file, data_only } => {
                Block { act: Act::Sync { data_only }, file, offset: 0, len: 0 }
            }
            _ => {
                assert!(!self.is_under_way(slot), "slot {slot} has an operation in flight");
                return Some(names::run(&self.files, request, self.slab.slot_mut(slot)));
            }
        };
        let file = self.files.get(block.file);
        if let Way::Psync = self.way {
            let buffer = &mut self.slab.slot_mut(slot)[..block.len as usize];
            return Some(psync::run(block, file, buffer));
        }
        let is_free = !self.is_under_way(slot) || self.is_broken();
        assert!(is_free, "slot {slot} has an operation in flight");
        let room = self.slab.room(slot, block.len);
        match &mut self.way {
            Way::Uring(uring) => uring.submit(slot, block, file, room),
            Way::Libaio(libaio) => libaio.submit(slot, block, file, room),
            Way::Psync => unreachable!("it has been done"),
        }
    }

    fn reap(&mut self, wait: Option<Duration>, replies: &mut Vec<(usize, Reply)>) {
        match &mut self.way {
            Way::Uring(uring) => uring.reap(&self.files, &self.slab, wait, replies),
            Way::Libaio(libaio) => libaio.reap(&self.files, &self.slab, wait, replies),
            Way::Psync => {}
        }
    }

    #[inline]
    fn look(&mut self, replies: &mut Vec<(usize, Reply)>) {
        match &mut self.way {
            Way::Uring(uring) => uring.look(&self.files, &self.slab, replies),
            Way::Libaio(libaio) => libaio.look(&self.files, &self.slab, replies),
            Way::Psync => {}
        }
    }
}

impl Drop for FilesRing {
    fn drop(&mut self) {
        let is_settled = match &mut self.way {
            Way::Uring(uring) => uring.settle(),
            Way::Libaio(libaio) => libaio.settle(),
            Way::Psync => true,
        };
        if !is_settled {
            self.slab.leak();
        }
    }
}
