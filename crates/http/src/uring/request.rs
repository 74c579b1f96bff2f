//! A request on its way out.

use std::io;
use std::os::fd::RawFd;
use std::task::{Context, Poll, Waker};

/// What became of a request that waits for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The socket has taken all of it, or there was none.
    Over,
    /// It is to be sent with the others.
    Waiting,
    /// The socket did not take all of it with the others.
    Unfinished,
    /// It was refused.
    Failed { errno: i32 },
}

/// The request of one connection.
pub(super) struct Request {
    socket: RawFd,
    bytes: Vec<u8>,
    /// How much of it the socket has taken.
    sent: usize,
    sending: Sending,
    /// Who waits for the answer.
    waker: Option<Waker>,
    /// From how many on requests go through the ring.
    least: usize,
}

impl Request {
    pub(super) fn new(socket: RawFd, least: usize) -> Self {
        let (bytes, sending) = (Vec::new(), Sending::Over);
        Self { socket, bytes, sent: 0, sending, waker: None, least }
    }

    pub(super) fn least(&self) -> usize {
        self.least
    }

    pub(super) fn socket(&self) -> RawFd {
        self.socket
    }

    pub(super) fn sending(&self) -> Sending {
        self.sending
    }

    /// Takes what is to be sent next; all that was before must have been.
    pub(super) fn fill(&mut self, cx: &Context<'_>, bytes: &[u8]) {
        debug_assert_eq!(self.sending, Sending::Over, "a connection has one request at a time");
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        (self.sent, self.sending) = (0, Sending::Waiting);
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Returns what is still to be sent.
    pub(super) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Sends it by itself.
    pub(super) fn send_now(&mut self) {
        let (bytes, flags) = (self.unsent(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
        // SAFETY: the kernel reads `bytes` and no more.
        let count = unsafe { libc::send(self.socket, bytes.as_ptr().cast(), bytes.len(), flags) };
        let errno = || io::Error::last_os_error().raw_os_error();
        self.went(usize::try_from(count).map_err(|_| errno().unwrap_or(libc::EIO)));
    }

    /// Takes note of what the ring says.
    pub(super) fn went_by_ring(&mut self, result: i32) {
        self.went(usize::try_from(result).map_err(|_| -result));
    }

    /// Takes note that nobody will say what became of it, if that is so.
    pub(super) fn lost(&mut self) {
        if self.sending == Sending::Waiting {
            self.went(Err(libc::EIO));
        }
    }

    fn went(&mut self, result: Result<usize, i32>) {
        self.sending = match result {
            Ok(count) => self.after(count),
            Err(libc::EINTR | libc::EAGAIN) => Sending::Unfinished,
            Err(errno) => Sending::Failed { errno },
        };
        // Who waits goes on with it, or hears that no answer may ever come.
        if self.sending != Sending::Over
            && let Some(waker) = &self.waker
        {
            waker.wake_by_ref();
        }
    }

    fn after(&mut self, count: usize) -> Sending {
        self.sent += count;
        if self.sent == self.bytes.len() { Sending::Over } else { Sending::Unfinished }
    }

    /// Has `write` take what could not be sent with the others, where there is such.
    pub(super) fn poll_rest(&mut self, mut write: impl FnMut(&[u8]) -> Poll<io::Result<usize>>) {
        while self.sending == Sending::Unfinished {
            self.sending = match write(self.unsent()) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => Sending::Failed { errno: libc::EPIPE },
                Poll::Ready(Ok(count)) => self.after(count),
                Poll::Ready(Err(error)) => {
                    Sending::Failed { errno: error.raw_os_error().unwrap_or(libc::EIO) }
                }
            };
        }
    }

    /// Takes note that its connection is no more.
    pub(super) fn give_up(&mut self) {
        (self.sending, self.waker) = (Sending::Over, None);
    }
}
