//! Requests of a thread that are ready at the same time, sent with one call of the kernel.
//!
//! A session hands its request, if that has no body, to the batch of its thread. When no session
//! can go on, a task of the thread's runtime sends what is there: through an `io_uring` where it is
//! several requests, by a call each where it is few. Everything else is done by the connection's
//! own calls: an answer is read when the runtime has found the socket ready, and the moment at
//! which the socket has taken the last byte of a body is that at which its own call returns.
//!
//! The kernel does not wait for a socket that takes nothing: it has answered for each request when
//! its call returns, so that no memory stays with it. What it did not take the session sends.

mod request;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use io_uring::types::Fd;
use io_uring::{IoUring, opcode};
use tokio::runtime::{Handle, Id, RuntimeFlavor};

use self::request::Request;
pub(crate) use self::request::Sending;
use crate::seen;

/// How long a request may be that waits for others; a longer one is written at once.
pub(crate) const SEND_BYTES_MAX: usize = 16 << 10;

/// From so many requests on the ring costs less than a call for each. Measured on Linux 6.18: of 8
/// connections, from 2 on costs more than from 4 on; with 4 connections it costs less than sockets.
pub(crate) const TOGETHER_MIN: usize = 4;

/// How many requests the kernel takes with one call.
const ENTRIES: usize = 512;

thread_local! {
    /// The batches of the thread, each with its runtime: as a rule one.
    static PRESENT: RefCell<Vec<(Id, Rc<Batch>)>> = const { RefCell::new(Vec::new()) };
    /// Why the kernel gave the thread no ring, so that it is not asked for each connection.
    static REFUSED: Cell<Option<i32>> = const { Cell::new(None) };
}

/// Tells why this machine has no `io_uring` that could send requests; `Ok` where it has one.
pub(crate) fn probe() -> io::Result<()> {
    ring().map(drop)
}

/// Returns a ring through which something went already: where only its making is allowed, it is
/// refused.
fn ring() -> io::Result<IoUring> {
    let mut ring = IoUring::builder()
        .setup_coop_taskrun()
        .setup_single_issuer()
        // One entry that is refused does not hold up those behind it.
        .setup_submit_all()
        .build(ENTRIES as u32)?;
    // SAFETY: the entry points to nothing.
    unsafe { ring.submission().push(&opcode::Nop::new().build()) }.map_err(io::Error::other)?;
    ring.submit_and_wait(1)?;
    ring.completion().for_each(drop);
    Ok(ring)
}

/// Returns the number of an error that the next try ends in, too: one descriptor more is there as
/// soon as a connection is closed.
fn lasting(error: &io::Error) -> Option<i32> {
    error.raw_os_error().filter(|errno| ![libc::EMFILE, libc::ENFILE].contains(errno))
}

/// What the connections of a runtime send together.
struct Batch {
    /// `None` as long as nobody has company, and when it failed: then there is a call for each
    /// request.
    ring: RefCell<Option<IoUring>>,
    /// What is to be sent, in the order in which it was made ready.
    waiting: RefCell<Vec<Rc<RefCell<Request>>>>,
    /// Wakes who sends it.
    sender: RefCell<Option<Waker>>,
    /// How many connections there are.
    connections: Cell<usize>,
    /// Whether its runtime still is there.
    is_driven: Arc<AtomicBool>,
}

impl Batch {
    /// Returns the batch of the calling runtime, which is made where there is none yet.
    fn present() -> io::Result<Rc<Self>> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        if let Some(present) = Self::of(runtime.id()) {
            return Ok(present);
        }
        // What is sent together must be what its own thread made ready.
        if runtime.runtime_flavor() != RuntimeFlavor::CurrentThread {
            return Err(io::Error::other("its runtime has several threads"));
        }
        let is_driven = Arc::new(AtomicBool::new(true));
        let batch = Rc::new(Self {
            ring: RefCell::default(),
            waiting: RefCell::default(),
            sender: RefCell::default(),
            connections: Cell::new(0),
            is_driven: Arc::clone(&is_driven),
        });
        let id = runtime.id();
        PRESENT.with_borrow_mut(|all| all.push((id, Rc::clone(&batch))));
        runtime.spawn(Sender { id, is_driven });
        Ok(batch)
    }

    fn of(runtime: Id) -> Option<Rc<Self>> {
        PRESENT.with_borrow(|all| {
            all.iter().find(|(id, _)| *id == runtime).map(|(_, batch)| Rc::clone(batch))
        })
    }

    /// Makes the ring, where there is none yet.
    fn have_ring(&self) -> io::Result<()> {
        let mut kept = self.ring.borrow_mut();
        if kept.is_none() {
            if let Some(errno) = REFUSED.get() {
                return Err(io::Error::from_raw_os_error(errno));
            }
            *kept = Some(ring().inspect_err(|error| REFUSED.set(lasting(error)))?);
        }
        Ok(())
    }

    /// Tells whether a request may meet so many here, itself among them, and somebody sends them.
    fn has_company(&self, least: usize) -> bool {
        self.connections.get() >= least
            && self.is_driven.load(Ordering::Relaxed)
            && self.ring.borrow().is_some()
    }

    fn add(&self, request: Rc<RefCell<Request>>) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.push(request);
        if waiting.len() == 1
            && let Some(sender) = &*self.sender.borrow()
        {
            sender.wake_by_ref();
        }
    }

    /// Sends what is there.
    fn send(&self) {
        let mut waiting = mem::take(&mut *self.waiting.borrow_mut());
        waiting.retain(|request| request.borrow().sending() == Sending::Waiting);
        for requests in waiting.chunks(ENTRIES) {
            self.send_some(requests);
        }
        waiting.clear();
        // Keeps the room that it took.
        *self.waiting.borrow_mut() = waiting;
    }

    fn send_some(&self, requests: &[Rc<RefCell<Request>>]) {
        let mut kept = self.ring.borrow_mut();
        if requests.iter().any(|request| requests.len() >= request.borrow().least())
            && let Some(ring) = &mut *kept
        {
            let Err(unsent) = send_through(ring, requests) else { return };
            // Before its memory: what the kernel did not take from it is never read.
            *kept = None;
            let (taken, unsent) = requests.split_at(requests.len() - unsent);
            taken.iter().for_each(|request| request.borrow_mut().lost());
            return unsent.iter().for_each(|request| request.borrow_mut().send_now());
        }
        requests.iter().for_each(|request| request.borrow_mut().send_now());
    }
}

/// Has the kernel send all requests; the error says how many of them, from the last on, it did not
/// take from a ring that is of no more use.
fn send_through(ring: &mut IoUring, requests: &[Rc<RefCell<Request>>]) -> Result<(), usize> {
    for (name, request) in requests.iter().enumerate() {
        let request = request.borrow();
        let (fd, bytes) = (Fd(request.socket()), request.unsent());
        let entry = opcode::Send::new(fd, bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
            .build()
            .user_data(name as u64);
        // SAFETY: the bytes are the request's, which stays as it is until the kernel has answered.
        unsafe { ring.submission().push(&entry) }.expect("a queue has room for a chunk");
    }
    let mut unanswered = requests.len();
    while unanswered > 0 {
        let (entered, mut sent) = (ring.submit_and_wait(unanswered), 0);
        for answer in ring.completion() {
            requests[answer.user_data() as usize].borrow_mut().went_by_ring(answer.result());
            sent += usize::from(answer.result() > 0);
            unanswered -= 1;
        }
        seen::over_ring(sent);
        if entered.is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            return Err(ring.submission().len());
        }
    }
    Ok(())
}

/// Sends what connections made ready when none of them can go on; a task of the thread's runtime.
struct Sender {
    /// Whose task it is.
    id: Id,
    /// Says so while it is there.
    is_driven: Arc<AtomicBool>,
}

impl Future for Sender {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(batch) = Batch::of(self.id) else { return Poll::Ready(()) };
        if batch.sender.borrow().is_none() {
            *batch.sender.borrow_mut() = Some(cx.waker().clone());
        }
        batch.send();
        Poll::Pending
    }
}

impl Drop for Sender {
    /// The runtime ends.
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

/// A connection's place in the batch of its thread.
pub(crate) struct Member {
    batch: Rc<Batch>,
    request: Rc<RefCell<Request>>,
}

impl Member {
    /// Takes part in the batch of the calling runtime, whose requests go through the ring from
    /// `least` on; the error says why there is none.
    pub(crate) fn new(socket: BorrowedFd<'_>, least: usize) -> io::Result<Self> {
        let batch = Batch::present()?;
        batch.connections.update(|count| count + 1);
        let request = Rc::new(RefCell::new(Request::new(socket.as_raw_fd(), least)));
        let member = Self { batch, request };
        if member.batch.connections.get() >= least {
            member.batch.have_ring()?;
        }
        Ok(member)
    }

    /// Takes a whole request that is to go out with the others of its thread; false where there are
    /// none that it could go out with.
    pub(crate) fn take(&self, cx: &Context<'_>, bytes: &[u8]) -> bool {
        let mut request = self.request.borrow_mut();
        if bytes.len() > SEND_BYTES_MAX || !self.batch.has_company(request.least()) {
            return false;
        }
        request.fill(cx, bytes);
        self.batch.add(Rc::clone(&self.request));
        true
    }

    /// Returns what became of what was taken last.
    pub(crate) fn sending(&self) -> Sending {
        self.request.borrow().sending()
    }

    /// Has `write` take what the batch could not send of the request, where there is such.
    pub(crate) fn poll_rest(&self, write: impl FnMut(&[u8]) -> Poll<io::Result<usize>>) {
        self.request.borrow_mut().poll_rest(write);
    }
}

impl Drop for Member {
    /// The socket is closed, and its number may soon be another one's.
    fn drop(&mut self) {
        self.request.borrow_mut().give_up();
        self.batch.connections.update(|count| count - 1);
    }
}

#[cfg(test)]
mod tests;
