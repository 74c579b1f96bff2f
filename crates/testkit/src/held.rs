//! What a thread holds of the heap, for tests of what must not grow. Each thread is counted by
//! itself, so that other tests may go on beside one that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// What this thread holds, and the most that it held since that was asked.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator with a count, to be the `#[global_allocator]` of a test binary.
#[derive(Debug)]
pub struct Counting;

/// Returns the most bytes that this thread held since this was asked before, less what others have
/// taken from it.
pub fn most_held() -> isize {
    let (now, most) = HELD.get();
    HELD.set((now, now));
    most
}

fn note(bytes: isize) {
    // A thread that ends frees more when its count is gone.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller's promises are those that the system's allocator wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: the place comes from that allocator.
        unsafe { System.dealloc(place, layout) }
    }
}
