//! What carries exchanges of HTTP/1.1: a connection of the runtime's, or one over the ring of its
//! thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use plimsoll_model::{Clock, Moment, SharedClock};
use tokio::io::ReadBuf;

use crate::connection::{Connection, Dialled};
use crate::uring::{Sending, Stream};
use crate::{Transport, seen};

/// An open connection that carries one exchange at a time.
pub(crate) enum Channel {
    Runtime(Connection),
    Ring(Stream),
}

impl Channel {
    /// Takes a new connection onto the ring of the thread, where it is plain and the transport
    /// wants that; the error says why there is none where there must be.
    pub(crate) fn new(
        dialled: Dialled,
        transport: Transport,
        clock: &SharedClock,
    ) -> io::Result<Self> {
        let tcp = match (dialled, transport) {
            (Dialled::Plain(tcp), Transport::Auto | Transport::IoUring) => tcp,
            (dialled, _) => return Ok(Self::Runtime(Connection(dialled))),
        };
        match Stream::new(tcp, clock) {
            Ok(stream) => {
                seen::over_ring();
                Ok(Self::Ring(stream))
            }
            Err((tcp, _)) if transport == Transport::Auto => {
                Ok(Self::Runtime(Connection(Dialled::Plain(tcp))))
            }
            Err((_, error)) => Err(error),
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        match self {
            Self::Runtime(connection) => connection.is_tls(),
            Self::Ring(_) => false,
        }
    }

    /// Returns the socket below.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Runtime(connection) => connection.tcp().as_fd(),
            Self::Ring(stream) => stream.as_fd(),
        }
    }

    /// Receives into `room` and returns how much, 0 where the other side closed the connection, and
    /// when it was there, before it was looked at.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
        clock: &dyn Clock,
    ) -> Poll<io::Result<(usize, Moment)>> {
        match self {
            Self::Runtime(connection) => {
                let mut buffer = ReadBuf::new(room);
                let read = ready!(connection.poll_read(cx, &mut buffer));
                let at = clock.now();
                Poll::Ready(read.map(|()| (buffer.filled().len(), at)))
            }
            Self::Ring(stream) => stream.poll_receive(cx, room, clock),
        }
    }

    /// Writes `first`, then `second`, with one system call, and returns how many bytes were taken.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        first: &[u8],
        second: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Runtime(connection) => connection.poll_write(cx, first, second),
            Self::Ring(stream) => stream.poll_send(cx, first, second),
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Runtime(connection) => connection.poll_flush(cx),
            Self::Ring(_) => Poll::Ready(Ok(())),
        }
    }

    /// Tells whether the socket has taken all that was written. Only of a request without a body
    /// that need not be so.
    pub(crate) fn has_taken_all(&self) -> bool {
        self.sending() == Sending::Over
    }

    /// Returns why what was written last could not be sent, where that was not known at once.
    pub(crate) fn send_error(&self) -> Option<io::Error> {
        match self.sending() {
            Sending::Failed { errno } => Some(io::Error::from_raw_os_error(errno)),
            Sending::Over | Sending::UnderWay => None,
        }
    }

    fn sending(&self) -> Sending {
        match self {
            Self::Runtime(_) => Sending::Over,
            Self::Ring(stream) => stream.sending(),
        }
    }

    /// Takes note that an exchange has ended and another one may follow.
    pub(crate) fn rest(&self) {
        if let Self::Ring(stream) = self {
            stream.await_answer();
        }
    }

    /// Tells whether an idle connection can no longer be used: the server closed it, or sent what
    /// nobody asked for.
    pub(crate) async fn is_stale(&mut self) -> bool {
        match self {
            Self::Runtime(connection) => connection.is_stale().await,
            Self::Ring(stream) => stream.has_something(),
        }
    }
}
