//! The keyboard, read key by key, and the modes of the terminal that this takes.

use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The terminal's modes as they were found, to be put back.
static FOUND_MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// Whether nothing may touch the terminal, as the process is about to stop or to end.
static GIVEN_BACK: AtomicBool = AtomicBool::new(false);

/// Says whether the terminal is given back.
pub(super) fn give_back(is_given_back: bool) {
    GIVEN_BACK.store(is_given_back, Ordering::SeqCst);
}

/// Tells whether this process may touch the terminal of a stream: one in the background would be
/// stopped for it, or write over what the shell shows.
pub(super) fn may_touch(terminal: impl AsFd + IsTerminal) -> bool {
    let owner = rustix::termios::tcgetpgrp(&terminal);
    terminal.is_terminal()
        && !GIVEN_BACK.load(Ordering::SeqCst)
        && owner.is_ok_and(|owner| owner == rustix::process::getpgrp())
}

/// Tells whether there is a keyboard that may be read.
pub(super) fn is_in_foreground() -> bool {
    may_touch(std::io::stdin())
}

/// Puts the terminal's modes back as they were found.
pub(super) fn restore_modes() {
    let found = FOUND_MODES.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(modes) = found {
        // There is nobody to tell when the terminal is gone.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &modes);
    }
}

/// The keyboard. Signals still work, so that Ctrl-C stays Ctrl-C and Ctrl-Z stays Ctrl-Z.
pub(super) struct Keys;

impl Keys {
    pub(super) fn take() -> Self {
        read_key_by_key();
        Self
    }

    /// Tells whether `q` was pressed since it was asked last.
    pub(super) fn quit_pressed(&self) -> bool {
        // After it was suspended the modes are those of the shell.
        if !read_key_by_key() {
            return false;
        }
        let stdin = std::io::stdin();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        let mut quit = false;
        while poll(&mut waiting, Some(&at_once)).is_ok_and(|ready| ready > 0) {
            let mut key = [0];
            match stdin.lock().read(&mut key) {
                Ok(1) => quit |= matches!(key[0], b'q' | b'Q'),
                _ => break,
            }
        }
        quit
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore_modes();
    }
}

/// Has the terminal hand over each key at once and unseen, unless it does already. Returns whether
/// there is a keyboard to read.
fn read_key_by_key() -> bool {
    let mut kept = FOUND_MODES.lock().unwrap_or_else(PoisonError::into_inner);
    // Asked with the lock held, so that nobody gives the terminal back in between.
    if !is_in_foreground() {
        return false;
    }
    if kept.is_some() {
        return true;
    }
    let stdin = std::io::stdin();
    let Ok(found) = tcgetattr(&stdin) else { return false };
    let mut modes = found.clone();
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    let is_set = tcsetattr(&stdin, OptionalActions::Now, &modes).is_ok();
    *kept = is_set.then_some(found);
    is_set
}
