//! One connection on the ring: its socket, what the kernel receives into, and what it is to send.

use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Waker};

use plimsoll_model::{Moment, SharedClock};

use super::Sending;

/// What one receive through the ring takes at most: a head and a small object. What is larger is
/// read on from the socket.
pub(super) const ROOM_BYTES: usize = 4 << 10;

/// What came of the receive through the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// None is under way, and nothing lies there.
    Nothing,
    /// The same, but the last one was full, so that the socket may have more.
    MoreInSocket,
    /// The kernel has the room.
    UnderWay,
    /// Bytes lie in the room, from the one place to the other, since then.
    Bytes { from: usize, to: usize, at: Moment },
    /// The other side has closed the connection.
    End { at: Moment },
    /// The kernel refused.
    Failed { errno: i32 },
}

impl Received {
    /// Returns what `count` bytes that filled `room` or not leave behind.
    pub(super) fn after(count: usize, room: usize) -> Self {
        if count == room { Self::MoreInSocket } else { Self::Nothing }
    }

    /// Tells whether something is known that nobody was told yet.
    pub(super) fn is_known(self) -> bool {
        matches!(self, Self::Bytes { .. } | Self::End { .. } | Self::Failed { .. })
    }
}

/// One connection on the ring.
pub(super) struct Slot {
    tcp: TcpStream,
    clock: SharedClock,
    /// What the kernel receives into; on the heap, so that it stays where it is.
    room: Box<[u8]>,
    pub(super) received: Received,
    /// What is being sent, and how much of it the socket has taken.
    to_send: Vec<u8>,
    sent: usize,
    pub(super) sending: Sending,
    /// Whether the ring is to tell when the socket takes bytes again.
    pub(super) awaits_room: bool,
    /// Who waits for something to come.
    reader: Option<Waker>,
    /// Who waits for room to send.
    writer: Option<Waker>,
    /// How many entries the kernel has, or is to get, that name this slot.
    pub(super) under_way: u32,
    /// Whether nobody uses the connection any more.
    is_closing: bool,
}

impl Slot {
    pub(super) fn new(tcp: TcpStream, clock: SharedClock) -> Self {
        Self {
            tcp,
            clock,
            room: vec![0; ROOM_BYTES].into_boxed_slice(),
            received: Received::Nothing,
            to_send: Vec::new(),
            sent: 0,
            sending: Sending::Over,
            awaits_room: false,
            reader: None,
            writer: None,
            under_way: 0,
            is_closing: false,
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }

    /// Takes note that nobody uses the connection any more.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        (self.reader, self.writer) = (None, None);
        self.shut_down();
    }

    /// Has nothing more come or go over the socket, so that the kernel gives back what it has.
    pub(super) fn shut_down(&self) {
        // One that the other side has closed already is not connected any more.
        let _ = self.tcp.shutdown(std::net::Shutdown::Both);
    }

    /// Tells whether nobody has it any more, neither its stream nor the kernel.
    pub(super) fn is_left(&self) -> bool {
        self.is_closing && self.under_way == 0
    }

    /// Returns where the kernel may write.
    pub(super) fn room(&mut self) -> *mut u8 {
        self.room.as_mut_ptr()
    }

    /// Takes as much of what came as there is room for, and returns how much.
    pub(super) fn take(
        &mut self,
        (from, to, at): (usize, usize, Moment),
        room: &mut [u8],
    ) -> usize {
        let count = room.len().min(to - from);
        room[..count].copy_from_slice(&self.room[from..from + count]);
        let from = from + count;
        self.received = match from == to {
            true => Received::after(to, ROOM_BYTES),
            false => Received::Bytes { from, to, at },
        };
        count
    }

    /// Takes what is to be sent next; all that was before must have been.
    pub(super) fn fill(&mut self, bytes: &[u8]) {
        debug_assert_ne!(self.sending, Sending::UnderWay, "the kernel reads what is sent");
        self.to_send.clear();
        self.to_send.extend_from_slice(bytes);
        self.sent = 0;
        self.sending = Sending::UnderWay;
    }

    /// Returns what is still to be sent.
    pub(super) fn unsent(&self) -> &[u8] {
        &self.to_send[self.sent..]
    }

    /// Takes note of what the kernel says of a receive, and returns who waited for it.
    pub(super) fn came(&mut self, result: i32) -> Option<Waker> {
        let at = self.clock.now();
        self.received = match usize::try_from(result) {
            Ok(0) => Received::End { at },
            Ok(to) => Received::Bytes { from: 0, to, at },
            // Who waits for it tries again.
            Err(_) if -result == libc::EINTR => Received::Nothing,
            Err(_) => Received::Failed { errno: -result },
        };
        self.reader.take()
    }

    /// Takes note of what the kernel says of a send; returns whether there is more to send, and who
    /// is to be woken.
    pub(super) fn went(&mut self, result: i32) -> (bool, Option<Waker>) {
        let count = match usize::try_from(result) {
            Ok(count) => count,
            Err(_) if -result == libc::EINTR => 0,
            Err(_) => {
                self.sending = Sending::Failed { errno: -result };
                // The answer may never come; who waits for it should hear of it.
                return (false, self.writer.take().or_else(|| self.reader.take()));
            }
        };
        self.sent += count;
        if self.sent < self.to_send.len() {
            return (!self.is_closing, None);
        }
        self.sending = Sending::Over;
        (false, self.writer.take())
    }

    /// Takes note that the socket may take bytes again, and returns who waited for it.
    pub(super) fn has_room(&mut self) -> Option<Waker> {
        self.awaits_room = false;
        self.writer.take()
    }

    pub(super) fn wait_to_read(&mut self, cx: &Context<'_>) {
        wait(&mut self.reader, cx);
    }

    pub(super) fn wait_to_write(&mut self, cx: &Context<'_>) {
        wait(&mut self.writer, cx);
    }
}

fn wait(waiting: &mut Option<Waker>, cx: &Context<'_>) {
    match waiting {
        Some(waker) => waker.clone_from(cx.waker()),
        none => *none = Some(cx.waker().clone()),
    }
}
