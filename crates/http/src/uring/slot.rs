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
#[derive(Clone, Copy, Debug)]
pub(super) enum Received {
    /// None is under way.
    Nothing,
    /// The kernel has the room.
    UnderWay,
    /// Bytes lie in the room, from the one place to the other, since then.
    Bytes { from: usize, to: usize, at: Moment },
    /// The other side has closed the connection.
    End { at: Moment },
    /// The kernel refused.
    Failed { errno: i32 },
}

/// One connection on the ring.
pub(super) struct Slot {
    tcp: TcpStream,
    clock: SharedClock,
    /// What the kernel receives into; on the heap, so that it stays where it is.
    room: Box<[u8; ROOM_BYTES]>,
    pub(super) received: Received,
    /// What is being sent, and how much of it the socket has taken.
    to_send: Vec<u8>,
    sent: usize,
    pub(super) sending: Sending,
    /// Who waits for something to come.
    pub(super) reader: Option<Waker>,
    /// Who waits for room to send.
    pub(super) writer: Option<Waker>,
    /// How many entries the kernel has, or is to get, that name this slot.
    pub(super) under_way: u32,
    /// Whether nobody uses the connection any more.
    pub(super) is_closing: bool,
}

impl Slot {
    pub(super) fn new(tcp: TcpStream, clock: SharedClock) -> Self {
        Self {
            tcp,
            clock,
            room: Box::new([0; ROOM_BYTES]),
            received: Received::Nothing,
            to_send: Vec::new(),
            sent: 0,
            sending: Sending::Nothing,
            reader: None,
            writer: None,
            under_way: 0,
            is_closing: false,
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }

    /// Has nothing more come or go over the socket, so that the kernel gives back what it has.
    pub(super) fn shut_down(&self) {
        // One that the other side has closed already is not connected any more.
        let _ = self.tcp.shutdown(std::net::Shutdown::Both);
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Returns where the kernel may write.
    pub(super) fn room(&mut self) -> *mut u8 {
        self.room.as_mut_ptr()
    }

    /// Takes as much of what came as there is room for; returns how much, and whether more of it
    /// may lie in the socket.
    pub(super) fn take(
        &mut self,
        (from, to, at): (usize, usize, Moment),
        room: &mut [u8],
    ) -> (usize, bool) {
        let count = room.len().min(to - from);
        room[..count].copy_from_slice(&self.room[from..from + count]);
        let from = from + count;
        self.received = match from == to {
            true => Received::Nothing,
            false => Received::Bytes { from, to, at },
        };
        (count, from == ROOM_BYTES)
    }

    /// Takes what is to be sent next; all that was before must have been.
    pub(super) fn fill(&mut self, first: &[u8], second: &[u8]) {
        self.to_send.clear();
        self.to_send.extend_from_slice(first);
        self.to_send.extend_from_slice(second);
        self.sent = 0;
        self.sending = Sending::UnderWay;
    }

    /// Returns what is still to be sent.
    pub(super) fn unsent(&self) -> &[u8] {
        &self.to_send[self.sent..]
    }

    /// Takes note of what the kernel says of a receive, and returns who waited for it.
    pub(super) fn came(&mut self, result: i32) -> Option<Waker> {
        let at = self.now();
        self.received = match usize::try_from(result) {
            Ok(0) => Received::End { at },
            Ok(to) => Received::Bytes { from: 0, to, at },
            Err(_) => Received::Failed { errno: -result },
        };
        self.reader.take()
    }

    /// Takes note of what the kernel says of a send; returns whether there is more to send, and who
    /// is to be woken.
    pub(super) fn went(&mut self, result: i32) -> (bool, Option<Waker>) {
        match usize::try_from(result) {
            Ok(count) if self.sent + count < self.to_send.len() => {
                self.sent += count;
                return (true, None);
            }
            Ok(_) => self.sending = Sending::Taken(self.now()),
            Err(_) => {
                self.sending = Sending::Failed { errno: -result };
                // The answer may never come; who waits for it should hear of it.
                return (false, self.writer.take().or_else(|| self.reader.take()));
            }
        }
        (false, self.writer.take())
    }

    pub(super) fn wait_to_read(&mut self, cx: &Context<'_>) {
        match &mut self.reader {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}
