//! Plain TCP over `io_uring`: the connections of one thread share a ring.
//!
//! Each connection has a receive under way into a few kilobytes of its own, before the answer is
//! there, so that the kernel copies what comes without being asked again. Requests without a body
//! are sent through the ring as well: all that the sessions of a thread have made ready goes out
//! with one call of the kernel, when none of them can go on. A body is written, and what is longer
//! is read, as on any socket: there the copying is what costs, and the moment at which the socket
//! has taken the last byte of a body is that at which its own call returns.
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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use plimsoll_model::{Clock, Moment, SharedClock};
use tokio::io::unix::AsyncFd;
use tokio::net;
use tokio::runtime::{Handle, Id, RuntimeFlavor};

use crate::seen;

use self::ring::Ring;
use self::slot::{Received, Slot};

/// How long a request without a body may be that goes through the ring; a longer one is written at
/// once.
const SEND_BYTES_MAX: usize = 16 << 10;

thread_local! {
    /// The rings of the thread, each with its runtime: as a rule one.
    static PRESENT: RefCell<Vec<(Id, Rc<Shared>)>> = const { RefCell::new(Vec::new()) };
    /// Why the kernel gave the thread none, so that it is not asked for each connection.
    static REFUSED: Cell<Option<i32>> = const { Cell::new(None) };
}

/// Tells why this machine has no `io_uring` that could carry connections; `Ok` where it has one.
pub(crate) fn probe() -> io::Result<()> {
    Ring::new().map(drop)
}

/// The ring of a runtime and what belongs to it.
struct Shared {
    ring: RefCell<Ring>,
    /// Wakes who sends out what was made ready.
    driver: RefCell<Option<Waker>>,
    /// Whether its runtime still is there.
    is_driven: Arc<AtomicBool>,
}

impl Shared {
    /// Returns the ring of the calling runtime, which is made and driven where there is none yet.
    fn present() -> io::Result<Rc<Self>> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let id = runtime.id();
        let of = |all: &Vec<(Id, Rc<Self>)>| {
            all.iter().find(|(of, _)| *of == id).map(|(_, shared)| Rc::clone(shared))
        };
        if let Some(present) = PRESENT.with_borrow(of) {
            return Ok(present);
        }
        if let Some(errno) = REFUSED.get() {
            return Err(io::Error::from_raw_os_error(errno));
        }
        // What a ring sends out must be what its own thread made ready.
        if runtime.runtime_flavor() != RuntimeFlavor::CurrentThread {
            return Err(io::Error::other("its runtime has several threads"));
        }
        Self::make(&runtime).inspect_err(|error| REFUSED.set(error.raw_os_error()))
    }

    fn make(runtime: &Handle) -> io::Result<Rc<Self>> {
        let ring = Ring::new()?;
        // SAFETY: an owned descriptor names the same open file for as long as it lives.
        let watched = unsafe { AsyncFd::register(ring.descriptor()?) }?;
        let is_driven = Arc::new(AtomicBool::new(true));
        let shared = Rc::new(Self {
            ring: RefCell::new(ring),
            driver: RefCell::new(None),
            is_driven: Arc::clone(&is_driven),
        });
        let id = runtime.id();
        PRESENT.with_borrow_mut(|all| all.push((id, Rc::clone(&shared))));
        runtime.spawn(Driver { id, watched, is_driven });
        Ok(shared)
    }

    /// Has what was made ready sent out when nobody else can go on.
    fn call_driver(&self) {
        if let Some(waker) = self.driver.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Wakes who waited for what came.
    fn wake(&self) {
        // None of them finds the ring borrowed.
        let next = || self.ring.borrow_mut().woken.pop_front();
        while let Some(waker) = next() {
            waker.wake();
        }
    }

    /// Takes what came, without a call of the kernel.
    fn take_answers(&self) {
        if self.ring.borrow_mut().take_answers() {
            self.call_driver();
        }
        self.wake();
    }
}

/// Sends out what connections made ready and hands them what came; a task of the thread's runtime.
struct Driver {
    /// Whose task it is.
    id: Id,
    watched: AsyncFd<OwnedFd>,
    /// Says so while it is there.
    is_driven: Arc<AtomicBool>,
}

impl Driver {
    fn shared(&self) -> Option<Rc<Shared>> {
        let of = |all: &Vec<(Id, Rc<Shared>)>| {
            all.iter().find(|(id, _)| *id == self.id).map(|(_, shared)| Rc::clone(shared))
        };
        PRESENT.with_borrow(of)
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(shared) = self.shared() else { return Poll::Ready(()) };
        *shared.driver.borrow_mut() = Some(cx.waker().clone());
        loop {
            let went_out = shared.ring.borrow_mut().turn();
            shared.wake();
            if !went_out {
                // Others go on meanwhile.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match self.watched.poll_read_ready(cx) {
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
        self.is_driven.store(false, Ordering::Relaxed);
        // A thread that ends may have none any more.
        let gone = PRESENT.try_with(|present| {
            let mut all = present.borrow_mut();
            let at = all.iter().position(|(id, _)| *id == self.id);
            at.map(|at| all.swap_remove(at))
        });
        drop(gone);
    }
}

/// A connection over the ring of its thread.
pub(crate) struct Stream {
    shared: Rc<Shared>,
    /// Its place in the ring.
    place: usize,
    /// The socket, which its slot holds.
    socket: RawFd,
}

impl Stream {
    /// Takes a socket off the runtime onto the ring of the thread; gives it back, with the reason,
    /// where there is none.
    pub(crate) fn new(
        tcp: net::TcpStream,
        clock: &SharedClock,
    ) -> Result<Self, (net::TcpStream, io::Error)> {
        let shared = match Shared::present() {
            Ok(shared) => shared,
            Err(error) => return Err((tcp, error)),
        };
        let tcp = tcp.into_std().expect("a runtime gives up what it has");
        let socket = tcp.as_raw_fd();
        let place = shared.ring.borrow_mut().add(Slot::new(tcp, clock.clone()));
        let stream = Self { shared, place, socket };
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

    /// Receives into `room` and returns how much, 0 where the server closed the connection, and
    /// when: the moment at which the ring was found to have it, before anybody looked at it, or at
    /// which a read of what it had no room for returned.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
        clock: &dyn Clock,
    ) -> Poll<io::Result<(usize, Moment)>> {
        if self.received() == Received::UnderWay {
            self.shared.take_answers();
        }
        if self.received() == Received::MoreInSocket
            && let Some(received) = self.receive_now(room, clock)
        {
            return Poll::Ready(received);
        }
        let mut ring = self.shared.ring.borrow_mut();
        let slot = ring.slot(self.place);
        match slot.received {
            Received::Bytes { from, to, at } => {
                Poll::Ready(Ok((slot.take((from, to, at), room), at)))
            }
            Received::End { at } => Poll::Ready(Ok((0, at))),
            Received::Failed { errno } => Poll::Ready(Err(io::Error::from_raw_os_error(errno))),
            Received::Nothing | Received::MoreInSocket | Received::UnderWay => {
                if !self.shared.is_driven.load(Ordering::Relaxed) {
                    return Poll::Ready(Err(io::Error::other("its runtime has ended")));
                }
                slot.wait_to_read(cx);
                if ring.receive(self.place) {
                    drop(ring);
                    self.shared.call_driver();
                }
                Poll::Pending
            }
        }
    }

    /// Reads what the socket has; `None` where that is nothing. The kernel must not be receiving.
    fn receive_now(
        &self,
        room: &mut [u8],
        clock: &dyn Clock,
    ) -> Option<io::Result<(usize, Moment)>> {
        let read = ring::receive_now(self.as_fd(), room);
        let at = clock.now();
        let mut ring = self.shared.ring.borrow_mut();
        let slot = ring.slot(self.place);
        match read {
            Ok(0) => slot.received = Received::End { at },
            Ok(count) => slot.received = Received::after(count, room.len()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                slot.received = Received::Nothing;
                return None;
            }
            Err(_) => {}
        }
        Some(read.map(|count| (count, at)))
    }

    fn received(&self) -> Received {
        self.shared.ring.borrow_mut().slot(self.place).received
    }

    /// Tells whether anything came that was not received yet, or the connection was closed.
    pub(crate) fn has_something(&self) -> bool {
        if !self.received().is_known() {
            self.shared.ring.borrow_mut().look();
            self.shared.take_answers();
        }
        self.received().is_known()
    }

    /// Sends `first`, then `second`, and returns how many bytes were taken; of what goes through
    /// the ring, which is a `first` without a `second`, [`Self::sending`] tells what became of it.
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        first: &[u8],
        second: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut ring = self.shared.ring.borrow_mut();
        let slot = ring.slot(self.place);
        if slot.sending == Sending::UnderWay {
            slot.wait_to_write(cx);
            return Poll::Pending;
        }
        if second.is_empty() && first.len() <= SEND_BYTES_MAX {
            slot.fill(first);
            ring.send(self.place);
            drop(ring);
            self.shared.call_driver();
            return Poll::Ready(Ok(first.len()));
        }
        slot.sending = Sending::Over;
        match ring::send_now(slot.as_fd(), first, second) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                slot.wait_to_write(cx);
                if ring.await_room(self.place) {
                    drop(ring);
                    self.shared.call_driver();
                }
                Poll::Pending
            }
            sent => Poll::Ready(sent),
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
    /// The socket has taken all of them, or there were none.
    Over,
    /// The socket has not taken all of them.
    UnderWay,
    /// It was refused.
    Failed { errno: i32 },
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
