//! Connections on which a request has begun and does not go on.
//!
//! hyper's own limit counts from the end of the last request, so it would close connections that a
//! slow client merely keeps. Here the time runs from the first byte of a head.

#![expect(clippy::disallowed_methods, reason = "waits for the rest of a head")]

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::misbehave::Socket;

/// How long a head may take from its first byte, and a handshake of TLS.
pub(crate) const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Counts when requests came of what was read, and when they were answered: while it is odd, what
/// is read belongs to the body of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answering(Arc<AtomicU64>);

/// A request that is being answered; dropped when its body was read to the end.
pub(crate) struct Answered(Answering);

impl Answering {
    /// Counts a request.
    pub(crate) fn request(&self) -> Answered {
        self.0.fetch_add(1, Ordering::Relaxed);
        Answered(self.clone())
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A socket whose reads fail when a head takes too long.
pub(crate) struct LimitedHeads<S> {
    socket: S,
    time_max: Duration,
    answering: Answering,
    /// What was counted when this was last read.
    counted: u64,
    /// Whether bytes were read that no request has come of yet.
    has_begun: bool,
    /// Runs from when the rest of a head is first waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S: Socket> LimitedHeads<S> {
    /// Returns the socket, and what is to be told of requests.
    pub(crate) fn new(socket: S, time_max: Duration) -> (Self, Answering) {
        let answering = Answering::default();
        let (counted, has_begun, timer) = (0, false, None);
        let told = answering.clone();
        (Self { socket, time_max, answering, counted, has_begun, timer }, told)
    }
}

impl<S: Socket> AsyncRead for LimitedHeads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let counted = this.answering.count();
        if counted != this.counted {
            (this.counted, this.has_begun, this.timer) = (counted, false, None);
        }
        let filled = bytes.filled().len();
        let read = Pin::new(&mut this.socket).poll_read(cx, bytes);
        let is_answering = counted % 2 == 1;
        if read.is_ready() || is_answering {
            this.has_begun |= !is_answering && bytes.filled().len() > filled;
            return read;
        }
        if !this.has_begun {
            return Poll::Pending;
        }
        let time_max = this.time_max;
        let timer = this.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(time_max)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: Socket> AsyncWrite for LimitedHeads<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

impl<S: Socket> Socket for LimitedHeads<S> {
    fn tcp(&self) -> &TcpStream {
        self.socket.tcp()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream as StdTcpStream};

    use futures::FutureExt;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[test]
    fn a_head_has_its_time_and_a_connection_that_is_kept_has_all_of_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = StdTcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (socket, _) = listener.accept().unwrap();
            socket.set_nonblocking(true).unwrap();
            let socket = TcpStream::from_std(socket).unwrap();
            let (mut limited, answering) = LimitedHeads::new(socket, Duration::from_millis(1));
            let mut bytes = [0; 64];
            for _ in 0..2 {
                // Nothing has begun, whether or not there was a request before.
                assert!(limited.read(&mut bytes).now_or_never().is_none());
                assert!(limited.timer.is_none());
                client.write_all(b"a whole head").unwrap();
                assert_eq!(limited.read(&mut bytes).await.unwrap(), 12);
                drop(answering.request());
            }
            client.write_all(b"half a he").unwrap();
            assert_eq!(limited.read(&mut bytes).await.unwrap(), 9);
            let late = limited.read(&mut bytes).await.unwrap_err();
            assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        });
    }
}
