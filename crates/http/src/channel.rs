//! What carries exchanges of HTTP/1.1: a connection, whose requests go out by themselves or with
//! those of others of the thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use plimsoll_model::{Clock, Moment};
use tokio::io::ReadBuf;

use crate::Transport;
use crate::connection::{Connection, Dialled};
use crate::uring::{Member, Sending, TOGETHER_MIN};

/// An open connection that carries one exchange at a time.
pub(crate) struct Channel {
    /// Goes first, as long as its socket is open.
    member: Option<Member>,
    connection: Connection,
}

impl Channel {
    /// Has requests of a new connection go out with others of the thread, where it is plain and the
    /// transport wants that; the error says why they cannot where they must.
    pub(crate) fn new(dialled: Dialled, transport: Transport) -> io::Result<Self> {
        let member = match (&dialled, transport) {
            (_, Transport::Sockets) => None,
            (Dialled::Plain(tcp), Transport::Auto) => Member::new(tcp.as_fd(), TOGETHER_MIN).ok(),
            (Dialled::Plain(tcp), Transport::IoUring) => Some(Member::new(tcp.as_fd(), 1)?),
            (_, Transport::Auto) => None,
            (_, Transport::IoUring) => {
                return Err(io::Error::other("it carries plain HTTP/1.1 alone, not TLS"));
            }
        };
        Ok(Self { member, connection: Connection(dialled) })
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.connection.is_tls()
    }

    /// Returns the socket below.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.connection.tcp().as_fd()
    }

    /// Tells whether the socket has nothing to be read, neither bytes nor its end, whatever the
    /// runtime knows.
    pub(crate) fn is_silent(&self) -> bool {
        let (socket, mut byte) = (self.socket().as_raw_fd(), 0_u8);
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: the kernel writes at most the one byte.
        let count = unsafe { libc::recv(socket, (&raw mut byte).cast(), 1, flags) };
        count < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }

    /// Receives into `room` and returns how much, 0 where the other side closed the connection, and
    /// when it was there, before it was looked at.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
        clock: &dyn Clock,
    ) -> Poll<io::Result<(usize, Moment)>> {
        if let Some(member) = &self.member {
            member.poll_rest(|rest| self.connection.poll_write(cx, rest, &[]));
        }
        let mut buffer = ReadBuf::new(room);
        let read = ready!(self.connection.poll_read(cx, &mut buffer));
        let at = clock.now();
        Poll::Ready(read.map(|()| (buffer.filled().len(), at)))
    }

    /// Writes `first`, then `second`, with one system call, and returns how many bytes were taken;
    /// of a `first` without a `second`, [`Self::has_taken_all`] tells what became of it.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        first: &[u8],
        second: &[u8],
    ) -> Poll<io::Result<usize>> {
        let is_whole = second.is_empty();
        if is_whole && self.member.as_ref().is_some_and(|member| member.take(cx, first)) {
            return Poll::Ready(Ok(first.len()));
        }
        self.connection.poll_write(cx, first, second)
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.poll_flush(cx)
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
            Sending::Over | Sending::Waiting | Sending::Unfinished => None,
        }
    }

    fn sending(&self) -> Sending {
        self.member.as_ref().map_or(Sending::Over, Member::sending)
    }

    /// Tells whether an idle connection can no longer be used: the server closed it, or sent what
    /// nobody asked for.
    pub(crate) async fn is_stale(&mut self) -> bool {
        self.connection.is_stale().await
    }
}
