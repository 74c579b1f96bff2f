//! The buffers of a ring: one piece of memory outside of the heap, cut into slots.

use std::ptr::{self, NonNull};
use std::slice;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// What every slot is aligned to; no device asks for more.
pub(crate) const ALIGNMENT: usize = 4096;
/// From here on the memory may lie in huge pages, of this size.
const HUGE_PAGE: usize = 2 << 20;

/// Zeroed memory, as many slots as asked for, each aligned to [`ALIGNMENT`].
pub(crate) struct Slab {
    start: NonNull<u8>,
    slots: usize,
    /// From one slot to the next.
    stride: usize,
    /// How much of a slot may be used.
    buffer_bytes: usize,
}

impl Slab {
    pub(crate) fn new(slots: usize, buffer_bytes: usize) -> Result<Self, Errno> {
        let stride = buffer_bytes.max(1).checked_next_multiple_of(ALIGNMENT);
        let size = stride.and_then(|stride| stride.checked_mul(slots.max(1)));
        let (stride, size) = stride.zip(size).ok_or(Errno::NOMEM)?;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        // Advice only: without it everything works. A child must not share pages that the kernel
        // is writing to.
        // SAFETY: the range is the mapping just made; neither advice changes its content.
        let _ = unsafe { madvise(start, size, Advice::LinuxDontFork) };
        if size >= HUGE_PAGE {
            // SAFETY: as above.
            let _ = unsafe { madvise(start, size, Advice::LinuxHugepage) };
        }
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { start, slots, stride, buffer_bytes })
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Returns where a slot's buffer begins.
    #[inline]
    pub(crate) fn pointer(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.slots, "the ring has only {} slots", self.slots);
        // SAFETY: the mapping is `slots` times `stride` long, and `slot` is one of them.
        unsafe { self.start.as_ptr().add(slot * self.stride) }
    }

    /// Returns where `len` bytes of a slot's buffer begin.
    #[inline]
    pub(crate) fn room(&self, slot: usize, len: u32) -> *mut u8 {
        assert!(len as usize <= self.buffer_bytes, "the block is longer than the slot's buffer");
        self.pointer(slot)
    }

    /// Returns a slot's buffer. The caller knows that the kernel is not at it.
    #[inline]
    pub(crate) fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        let start = self.pointer(slot);
        // SAFETY: the slot lies within the mapping, is initialised (by zeros at least), and is
        // borrowed from nobody else while `self` is borrowed.
        unsafe { slice::from_raw_parts_mut(start, self.buffer_bytes) }
    }

    /// Gives the memory up without giving it back, as something may still write to it.
    pub(crate) fn leak(&mut self) {
        self.slots = 0;
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        if self.slots > 0 {
            // SAFETY: the mapping is ours, and whoever borrowed from it is gone.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.slots * self.stride) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_zeroed_and_apart() {
        let mut slab = Slab::new(3, 5000).unwrap();
        assert_eq!(slab.stride(), 8192);
        for slot in 0..3 {
            let buffer = slab.slot_mut(slot);
            assert_eq!(buffer.len(), 5000);
            assert_eq!(buffer.as_ptr().addr() % ALIGNMENT, 0);
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer.fill(slot as u8 + 1);
        }
        assert!(slab.slot_mut(1).iter().all(|byte| *byte == 2));
        assert_eq!(Slab::new(usize::MAX, 4096).err(), Some(Errno::NOMEM));
    }
}
