//! Plain TCP over `io_uring`: the connections of one thread share a ring.
//!
//! Each connection has a receive under way into a few kilobytes of its own, before the answer is
//! there, so that the kernel copies what comes without being asked again. Requests that are small
//! are sent through the ring as well: all that the sessions of a thread have made ready goes out
//! with one call of the kernel, when none of them can go on. What is larger is written and read as
//! on any socket; there the copying is what costs.
//!
//! The ring's descriptor is watched by the thread's tokio runtime like a socket, so that timers and
//! other sockets go on beside it.

mod ring;
mod slot;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use plimsoll_model::{Clock, Moment, SharedClock};
use tokio::io::unix::AsyncFd;
use tokio::net;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::seen;

use self::ring::Ring;
use self::slot::{Received, Slot};

/// What of a request goes through the ring at most; more is written at once.
const SEND_BYTES_MAX: usize = 16 << 10;

thread_local! {
    /// The ring of the thread's runtime.
    static PRESENT: RefCell<Option<Rc<Shared>>> = const { RefCell::new(None) };
    /// Whether the thread could not have one, and why it need not be tried again.
    static IS_REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Tells why this machine has no `io_uring` that could carry connections; `Ok` where it has one.
pub(crate) fn probe() -> io::Result<()> {
    Ring::new().map(drop)
}

/// The ring of a thread and what belongs to it.
struct Shared {
    ring: RefCell<Ring>,
    /// Wakes who sends out what was made ready.
    driver: RefCell<Option<Waker>>,
    /// Whether its runtime still is there.
    is_driven: Cell<bool>,
}

impl Shared {
    /// Returns the ring of the thread, made and driven by its runtime; `None` where there can be
    /// none.
    fn present() -> Option<Rc<Self>> {
        if let Some(present) = PRESENT.with_borrow(Clone::clone) {
            return Some(present);
        }
        if IS_REFUSED.get() {
            return None;
        }
        let made = Self::make();
        IS_REFUSED.set(made.is_none());
        made
    }

    fn make() -> Option<Rc<Self>> {
        let runtime = Handle::try_current().ok()?;
        // What it sends out must be what its own thread made ready.
        if runtime.runtime_flavor() != RuntimeFlavor::CurrentThread {
            return None;
        }
        let ring = Ring::new().ok()?;
        let watched = ring.descriptor().ok()?;
        // SAFETY: an owned descriptor names the same open file for as long as it lives.
        let watched = unsafe { AsyncFd::register(watched) }.ok()?;
        let shared = Rc::new(Self {
            ring: RefCell::new(ring),
            driver: RefCell::new(None),
            is_driven: Cell::new(true),
        });
        PRESENT.set(Some(Rc::clone(&shared)));
        runtime.spawn(Driver { watched, woken: Vec::new() });
        Some(shared)
    }

    /// Has what was made ready sent out when nobody else can go on.
    fn call_driver(&self) {
        if let Some(waker) = self.driver.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// Sends out what connections made ready and hands them what came; a task of the thread's runtime.
struct Driver {
    watched: AsyncFd<OwnedFd>,
    /// Who is to be woken; empty between two turns.
    woken: Vec<Waker>,
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(shared) = PRESENT.with_borrow(Clone::clone) else { return Poll::Ready(()) };
        *shared.driver.borrow_mut() = Some(cx.waker().clone());
        loop {
            let this = &mut *self;
            shared.ring.borrow_mut().turn(&mut this.woken);
            this.woken.drain(..).for_each(Waker::wake);
            match this.watched.poll_read_ready(cx) {
                // What came is taken in the next round.
                Poll::Ready(Ok(mut ready)) => ready.clear_ready(),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Drop for Driver {
    /// The runtime ends, and with it everything on its ring.
    fn drop(&mut self) {
        let present = PRESENT.try_with(|present| present.take()).ok().flatten();
        if let Some(shared) = present {
            shared.is_driven.set(false);
        }
    }
}

/// A connection over the ring of its thread.
pub(crate) struct Stream {
    shared: Rc<Shared>,
    /// Its place in the ring.
    place: usize,
    /// The socket, which its slot holds.
    socket: RawFd,
    /// Whether more may be there than the last receive had room for.
    may_have_more: bool,
}

impl Stream {
    /// Takes a socket off the runtime onto the ring of the thread; gives it back where there is
    /// none.
    pub(crate) fn new(tcp: net::TcpStream, clock: &SharedClock) -> Result<Self, net::TcpStream> {
        let Some(shared) = Shared::present() else { return Err(tcp) };
        let tcp = tcp.into_std().expect("a runtime gives up what it has");
        let socket = tcp.as_raw_fd();
        let place = shared.ring.borrow_mut().add(Slot::new(tcp, clock.clone()));
        let stream = Self { shared, place, socket, may_have_more: false };
        stream.await_answer();
        Ok(stream)
    }

    /// Begins to receive, if no receive is under way and nothing lies there. To be called when an
    /// exchange has ended, so that a connection that the server closes is known as such.
    pub(crate) fn await_answer(&self) {
        if self.shared.ring.borrow_mut().receive(self.place) {
            self.shared.call_driver();
        }
    }

    /// Receives into `room` and returns how much, 0 where the server closed the connection, and when
    /// it came.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
        clock: &dyn Clock,
    ) -> Poll<io::Result<(usize, Moment)>> {
        if self.may_have_more {
            match ring::receive_now(self.as_fd(), room) {
                Ok(count) => {
                    self.may_have_more = count == room.len();
                    return Poll::Ready(Ok((count, clock.now())));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            self.may_have_more = false;
        }
        if !self.shared.is_driven.get() {
            return Poll::Ready(Err(io::Error::other("its runtime has ended")));
        }
        let mut ring = self.shared.ring.borrow_mut();
        let slot = ring.slot(self.place);
        match slot.received {
            Received::Nothing | Received::UnderWay => {
                slot.wait_to_read(cx);
                if ring.receive(self.place) {
                    drop(ring);
                    self.shared.call_driver();
                }
                Poll::Pending
            }
            Received::Bytes { from, to, at } => {
                let (count, may_have_more) = slot.take((from, to, at), room);
                self.may_have_more = may_have_more;
                Poll::Ready(Ok((count, at)))
            }
            Received::End { at } => Poll::Ready(Ok((0, at))),
            Received::Failed { errno } => Poll::Ready(Err(io::Error::from_raw_os_error(errno))),
        }
    }

    /// Tells whether anything came that was not received yet, or the connection was closed.
    pub(crate) fn has_something(&self) -> bool {
        let mut ring = self.shared.ring.borrow_mut();
        !matches!(ring.slot(self.place).received, Received::Nothing | Received::UnderWay)
    }

    /// Sends `first`, then `second`, and returns how many bytes were taken; of what goes through
    /// the ring [`Self::sending`] tells what became of it.
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        first: &[u8],
        second: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut ring = self.shared.ring.borrow_mut();
        let slot = ring.slot(self.place);
        if !slot.sending.is_over() {
            slot.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = first.len() + second.len();
        if count <= SEND_BYTES_MAX {
            slot.fill(first, second);
            ring.send(self.place);
            drop(ring);
            self.shared.call_driver();
            return Poll::Ready(Ok(count));
        }
        match ring::send_now(slot.as_fd(), first, second) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                slot.writer = Some(cx.waker().clone());
                ring.await_room(self.place);
                drop(ring);
                self.shared.call_driver();
                Poll::Pending
            }
            sent => {
                slot.sending = Sending::Nothing;
                Poll::Ready(sent)
            }
        }
    }

    /// Returns what became of what was sent last through the ring.
    pub(crate) fn sending(&self) -> Sending {
        self.shared.ring.borrow_mut().slot(self.place).sending
    }
}

/// What became of bytes that were given to the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// There were none.
    Nothing,
    /// The socket has not taken all of them.
    UnderWay,
    /// The socket has taken the last of them by then.
    Taken(Moment),
    /// It was refused.
    Failed { errno: i32 },
}

impl Sending {
    fn is_over(self) -> bool {
        self != Self::UnderWay
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket stays open until this stream is dropped.
        unsafe { BorrowedFd::borrow_raw(self.socket) }
    }
}

impl Drop for Stream {
    /// What the kernel knows of the connection goes with it.
    fn drop(&mut self) {
        seen::closed(self.as_fd());
        self.shared.ring.borrow_mut().close(self.place);
    }
}

#[cfg(test)]
mod tests;
