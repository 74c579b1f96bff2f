//! The kernel's ring: entries go in, what became of them comes out.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::task::Waker;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue};

use super::slot::{ROOM_BYTES, Received, Slot};

/// Entries that the kernel takes with one call.
const ENTRIES: u32 = 512;
/// Answers that the kernel has room for; beyond them it keeps them until it is called.
const ANSWERS: u32 = 4 * ENTRIES;

/// How long the end of a ring waits for the kernel to give back the memory of its connections.
const END_WAIT: Duration = Duration::from_millis(100);
const END_WAITS_MAX: u32 = 50;

/// What an entry asks for; kept in the low bits of what names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Receive = 0,
    Send = 1,
    AwaitRoom = 2,
}

const ACT_BITS: u32 = 2;

fn name(place: usize, act: Act) -> u64 {
    (place as u64) << ACT_BITS | act as u64
}

fn named(name: u64) -> (usize, Act) {
    let act = match name & ((1 << ACT_BITS) - 1) {
        0 => Act::Receive,
        1 => Act::Send,
        _ => Act::AwaitRoom,
    };
    ((name >> ACT_BITS) as usize, act)
}

/// A ring and its connections.
pub(super) struct Ring {
    ring: IoUring,
    /// By place; `None` is free.
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Entries that the kernel is to get when it has taken those before them.
    backlog: VecDeque<squeue::Entry>,
    /// Who is to be woken, in the order in which it came.
    pub(super) woken: VecDeque<Waker>,
}

impl Ring {
    /// Returns a ring through which something went already: where only its making is allowed, it
    /// is refused.
    pub(super) fn new() -> io::Result<Self> {
        Self::with_room(ENTRIES, ANSWERS)
    }

    pub(super) fn with_room(entries: u32, answers: u32) -> io::Result<Self> {
        let mut ring = IoUring::builder()
            // What comes is taken when this thread is in the kernel anyway.
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_single_issuer()
            // One entry that is refused does not hold up those behind it.
            .setup_submit_all()
            .setup_cqsize(answers)
            .build(entries)?;
        // SAFETY: the entry points to nothing.
        unsafe { ring.submission().push(&opcode::Nop::new().build()) }.map_err(io::Error::other)?;
        ring.submit_and_wait(1)?;
        ring.completion().for_each(drop);
        let (slots, free) = (Vec::new(), Vec::new());
        Ok(Self { ring, slots, free, backlog: VecDeque::new(), woken: VecDeque::new() })
    }

    /// Returns a descriptor that is ready when something came.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the ring is open.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }.try_clone_to_owned()
    }

    pub(super) fn add(&mut self, slot: Slot) -> usize {
        match self.free.pop() {
            Some(place) => {
                self.slots[place] = Some(slot);
                place
            }
            None => {
                self.slots.push(Some(slot));
                self.slots.len() - 1
            }
        }
    }

    pub(super) fn slot(&mut self, place: usize) -> &mut Slot {
        self.slots[place].as_mut().expect("a stream has a slot")
    }

    /// Begins to receive where nothing was received and no receive is under way; tells whether it
    /// did.
    pub(super) fn receive(&mut self, place: usize) -> bool {
        let slot = self.slot(place);
        if !matches!(slot.received, Received::Nothing | Received::MoreInSocket) {
            return false;
        }
        slot.received = Received::UnderWay;
        let (fd, room) = (Fd(slot.as_fd().as_raw_fd()), slot.room());
        let entry = opcode::Recv::new(fd, room, ROOM_BYTES as u32).build();
        self.push(place, Act::Receive, entry);
        true
    }

    /// Begins to send what the slot was filled with.
    pub(super) fn send(&mut self, place: usize) {
        let slot = self.slot(place);
        let fd = Fd(slot.as_fd().as_raw_fd());
        let bytes = slot.unsent();
        let entry = opcode::Send::new(fd, bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build();
        self.push(place, Act::Send, entry);
    }

    /// Wakes the writer when the socket takes bytes again; tells whether that is news to the ring.
    pub(super) fn await_room(&mut self, place: usize) -> bool {
        let slot = self.slot(place);
        if mem::replace(&mut slot.awaits_room, true) {
            return false;
        }
        let fd = Fd(slot.as_fd().as_raw_fd());
        let entry = opcode::PollAdd::new(fd, libc::POLLOUT as u32).build();
        self.push(place, Act::AwaitRoom, entry);
        true
    }

    fn push(&mut self, place: usize, act: Act, entry: squeue::Entry) {
        self.slot(place).under_way += 1;
        self.backlog.push_back(entry.user_data(name(place, act)));
        self.refill();
    }

    /// Puts as many entries before the kernel as there is room for.
    fn refill(&mut self) {
        let mut queue = self.ring.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: what the entry points to belongs to its slot, which is kept, where it is,
            // until the kernel has answered.
            if unsafe { queue.push(entry) }.is_err() {
                return;
            }
            self.backlog.pop_front();
        }
    }

    /// Calls the kernel, and returns how many of the entries it took.
    fn enter(&mut self, unsent: usize, flags: EnterFlags) -> io::Result<usize> {
        // SAFETY: there is no argument, and so many entries are there.
        unsafe {
            let submitter = self.ring.submitter();
            submitter.enter::<SubmitArgs<'_, '_>>(unsent as u32, 0, flags.bits(), None)
        }
    }

    /// Takes what came, sends out what was made ready, and takes what came of that. Tells whether
    /// all went out: the kernel may lack memory for now.
    pub(super) fn turn(&mut self) -> bool {
        loop {
            // First of all, so that no moment is later for what is sent meanwhile.
            self.take_answers();
            self.refill();
            let queue = self.ring.submission();
            let (unsent, keeps_answers) = (queue.len(), queue.taskrun() || queue.cq_overflow());
            drop(queue);
            if unsent == 0 && !keeps_answers {
                return true;
            }
            let flags = if keeps_answers { EnterFlags::GETEVENTS } else { EnterFlags::empty() };
            let taken = self.enter(unsent, flags).unwrap_or(0);
            self.take_answers();
            if taken < unsent {
                return false;
            }
            let overflows = self.ring.submission().cq_overflow();
            if self.backlog.is_empty() && self.ring.submission().is_empty() && !overflows {
                return true;
            }
        }
    }

    /// Has the kernel say what came that it has not said yet; it is not called if there is nothing.
    pub(super) fn look(&mut self) {
        if self.ring.submission().taskrun() {
            // It takes nothing, and so cannot lack anything.
            let _ = self.enter(0, EnterFlags::GETEVENTS);
        }
    }

    /// Takes the answers that are there; tells whether that made entries ready.
    pub(super) fn take_answers(&mut self) -> bool {
        let (mut unfinished, mut left) = (Vec::new(), Vec::new());
        for answer in self.ring.completion() {
            let (place, act) = named(answer.user_data());
            let slot = self.slots[place].as_mut().expect("the kernel answers for a slot in use");
            slot.under_way -= 1;
            let waker = match act {
                Act::Receive => slot.came(answer.result()),
                Act::AwaitRoom => slot.has_room(),
                Act::Send => {
                    let (has_more, waker) = slot.went(answer.result());
                    if has_more {
                        unfinished.push(place);
                    }
                    waker
                }
            };
            self.woken.extend(waker);
            if slot.is_left() {
                left.push(place);
            }
        }
        left.into_iter().for_each(|place| self.remove(place));
        unfinished.iter().for_each(|place| self.send(*place));
        !unfinished.is_empty()
    }

    /// Closes a connection, at the latest when the kernel has given back its memory.
    pub(super) fn close(&mut self, place: usize) {
        let slot = self.slot(place);
        if slot.under_way == 0 {
            return self.remove(place);
        }
        slot.close();
    }

    fn remove(&mut self, place: usize) {
        self.slots[place] = None;
        self.free.push(place);
    }

    fn is_idle(&self) -> bool {
        self.slots.iter().flatten().all(|slot| slot.under_way == 0)
    }

    /// Returns how many connections it has, those among them that are being closed.
    #[cfg(test)]
    pub(super) fn connections(&self) -> usize {
        self.slots.iter().flatten().count()
    }
}

impl Drop for Ring {
    /// The kernel may be at the memory of connections until it has answered for each.
    fn drop(&mut self) {
        self.slots.iter().flatten().for_each(Slot::shut_down);
        for _ in 0..END_WAITS_MAX {
            self.turn();
            if self.is_idle() {
                return;
            }
            let time = Timespec::from(END_WAIT);
            let args = SubmitArgs::new().timespec(&time);
            let flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
            // SAFETY: nothing is sent, and the argument lives through the call.
            let _ = unsafe { self.ring.submitter().enter(0, 1, flags.bits(), Some(&args)) };
        }
        // Memory that is lost is better than memory that changes.
        mem::forget(mem::take(&mut self.slots));
    }
}

/// Reads what is there; `WouldBlock` where nothing is.
pub(super) fn receive_now(socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `room.len()` bytes into it.
    let count = unsafe {
        libc::recv(socket.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT)
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Writes `first`, then `second`, as far as the socket takes them; `WouldBlock` where it takes
/// nothing.
pub(super) fn send_now(socket: BorrowedFd<'_>, first: &[u8], second: &[u8]) -> io::Result<usize> {
    let pieces = [IoSlice::new(first), IoSlice::new(second)];
    // SAFETY: all zeroes is a message without address and control data; a slice for writing has the
    // layout of the kernel's `iovec`.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = pieces.as_ptr().cast_mut().cast();
    message.msg_iovlen = pieces.len() as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the kernel only reads what the message points to.
    let count = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}
