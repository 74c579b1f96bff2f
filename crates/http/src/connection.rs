//! One connection, plain or TLS, as something to be polled.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop::unconstrained;
use tokio_rustls::client::TlsStream;

use crate::seen;

/// How much is received at once below TLS: four records. rustls asks for 4 KiB at a time, which
/// would be a system call each.
const RECEIVED_BYTES_MAX: usize = 64 << 10;

/// TLS over a socket.
pub(crate) type Tls = TlsStream<BufReader<TcpStream>>;

/// Returns a socket to speak TLS over.
pub(crate) fn below_tls(tcp: TcpStream) -> BufReader<TcpStream> {
    BufReader::with_capacity(RECEIVED_BYTES_MAX, tcp)
}

/// What was dialled.
pub(crate) enum Dialled {
    Plain(TcpStream),
    Tls(Box<Tls>),
    /// TLS within the TLS that a proxy is spoken to in.
    Nested(Box<TlsStream<Tls>>),
}

/// An open connection of the runtime's.
pub(crate) struct Connection(pub(crate) Dialled);

impl Connection {
    pub(crate) fn is_tls(&self) -> bool {
        !matches!(self.0, Dialled::Plain(_))
    }

    /// Returns the socket below.
    pub(crate) fn tcp(&self) -> &TcpStream {
        match &self.0 {
            Dialled::Plain(tcp) => tcp,
            Dialled::Tls(tls) => tls.get_ref().0.get_ref(),
            Dialled::Nested(tls) => tls.get_ref().0.get_ref().0.get_ref(),
        }
    }

    /// Reads into `buffer`; tokio spares the system call where it knows that nothing is there.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Dialled::Plain(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Dialled::Tls(tls) => Pin::new(tls).poll_read(cx, buffer),
            Dialled::Nested(tls) => Pin::new(tls).poll_read(cx, buffer),
        }
    }

    /// Writes `first`, then `second`, with one system call, and returns how many bytes were taken.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        first: &[u8],
        second: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Dialled::Plain(tcp) => write_both(Pin::new(tcp), cx, first, second),
            Dialled::Tls(tls) => write_both(Pin::new(&mut **tls), cx, first, second),
            Dialled::Nested(tls) => write_both(Pin::new(&mut **tls), cx, first, second),
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Dialled::Plain(_) => Poll::Ready(Ok(())),
            Dialled::Tls(tls) => Pin::new(tls).poll_flush(cx),
            Dialled::Nested(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    /// Tells whether an idle connection can no longer be used: the server closed it, or sent what
    /// nobody asked for.
    ///
    /// Costs no system call while the runtime has seen no event on the socket, and nothing of the
    /// task's share in it: without any left, tokio reads nothing and a closed one looks open.
    pub(crate) async fn is_stale(&mut self) -> bool {
        let look = std::future::poll_fn(|cx| {
            let mut byte = [0];
            // TLS reads over session tickets here, so that only real content counts.
            let read = self.poll_read(cx, &mut ReadBuf::new(&mut byte));
            Poll::Ready(read.is_ready())
        });
        unconstrained(look).await
    }
}

impl Drop for Connection {
    /// What the kernel knows of the connection goes with it.
    fn drop(&mut self) {
        seen::closed(self.tcp().as_fd());
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Self::poll_read(self.get_mut(), cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Self::poll_write(self.get_mut(), cx, bytes, &[])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Dialled::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, pieces),
            Dialled::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, pieces),
            Dialled::Nested(tls) => Pin::new(tls).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Self::poll_flush(self.get_mut(), cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Dialled::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Dialled::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
            Dialled::Nested(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

fn write_both(
    stream: Pin<&mut impl AsyncWrite>,
    cx: &mut Context<'_>,
    first: &[u8],
    second: &[u8],
) -> Poll<io::Result<usize>> {
    match (first, second) {
        (only, []) | ([], only) => stream.poll_write(cx, only),
        _ => stream.poll_write_vectored(cx, &[IoSlice::new(first), IoSlice::new(second)]),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio::task::coop::{consume_budget, has_budget_remaining};

    use super::*;

    #[test]
    fn a_closed_connection_is_stale_however_much_its_task_has_done() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (tcp, other) = tokio::join!(TcpStream::connect(address), listener.accept());
            let mut connection = Connection(Dialled::Plain(tcp.unwrap()));
            assert!(!connection.is_stale().await);
            drop(other);
            connection.tcp().readable().await.unwrap();
            while has_budget_remaining() {
                consume_budget().await;
            }
            assert!(connection.is_stale().await);
        });
    }
}
