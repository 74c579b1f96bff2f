//! A standard output that whoever started this process has closed. Rust opens `/dev/null` in its
//! place before `main`, and a report that nobody can get would look like one that was written.

use std::sync::atomic::{AtomicBool, Ordering};

/// What is said then.
pub(super) const SENTENCE: &str = "cannot write to stdout, which is closed";

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The loader calls what is listed there before Rust looks at the standard descriptors.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = refuse_writes;

/// Tells whether the standard output was closed when this process began.
pub(super) fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

/// Puts what takes no byte where a standard output should be and is none, so that each writer fails
/// as it does on a full disk.
extern "C" fn refuse_writes() {
    // SAFETY: the calls take descriptors and a constant path, and no other thread is there yet.
    unsafe {
        if libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) != -1 {
            return;
        }
        WAS_CLOSED.store(true, Ordering::Relaxed);
        let full = libc::open(c"/dev/full".as_ptr(), libc::O_WRONLY);
        // It is the standard input where that is closed too, and Rust opens that again.
        if full >= 0 && full != libc::STDOUT_FILENO {
            libc::dup2(full, libc::STDOUT_FILENO);
            libc::close(full);
        }
    }
}
