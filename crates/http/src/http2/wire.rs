//! What h2 reads from and writes to: our transport, watched.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use plimsoll_model::{Moment, SharedClock};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Connection;

/// How the TLS records begin that a server may send unasked (RFC 8446, section 5.1).
const TLS_ALERT: [u8; 2] = [21, 3];

/// What passes over a wire, as the exchange above it needs to know.
pub(super) struct Watch {
    clock: SharedClock,
    /// Whether the next read may pass. One at a time, so that its moment is known to what it
    /// brought.
    read_allowed: Cell<bool>,
    /// Whether a read was held back.
    holding: Cell<bool>,
    last_read: Cell<Moment>,
    first_words: Cell<Option<FirstWords>>,
    at_end: Cell<bool>,
    bytes_moved: Cell<u64>,
    /// Bytes of the last piece that h2 has not written.
    piece_left: Cell<u64>,
    /// Bytes of the request's body that were not written, those not made yet included.
    body_left: Cell<u64>,
    had_body: Cell<bool>,
    last_byte_sent: Cell<Option<Moment>>,
    /// The memory of the last piece, for the next one.
    spare: RefCell<Vec<u8>>,
}

/// What the server's first bytes look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstWords {
    HttpOne,
    Tls,
    Other,
}

impl FirstWords {
    fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"HTTP/1") {
            Self::HttpOne
        } else if bytes.starts_with(&TLS_ALERT) {
            Self::Tls
        } else {
            Self::Other
        }
    }
}

impl Watch {
    pub(super) fn new(clock: SharedClock) -> Self {
        Self {
            last_read: Cell::new(clock.now()),
            clock,
            read_allowed: Cell::new(false),
            holding: Cell::new(false),
            first_words: Cell::new(None),
            at_end: Cell::new(false),
            bytes_moved: Cell::new(0),
            piece_left: Cell::new(0),
            body_left: Cell::new(0),
            had_body: Cell::new(false),
            last_byte_sent: Cell::new(None),
            spare: RefCell::default(),
        }
    }

    /// Awaits the sending of a body of this size. Nothing of another one is left.
    pub(super) fn start(&self, body_len: u64) {
        self.piece_left.set(0);
        self.body_left.set(body_len);
        self.had_body.set(body_len > 0);
        self.last_byte_sent.set(None);
    }

    /// Lets one read pass.
    pub(super) fn allow_read(&self) {
        self.read_allowed.set(true);
        self.holding.set(false);
    }

    /// Tells whether there may be more to read, of which the runtime will not tell.
    pub(super) fn is_holding(&self) -> bool {
        self.holding.get()
    }

    pub(super) fn last_read(&self) -> Moment {
        self.last_read.get()
    }

    /// Returns what the connection began with; `None` while nothing came.
    pub(super) fn first_words(&self) -> Option<FirstWords> {
        self.first_words.get()
    }

    /// Tells whether the server closed its side in good order.
    pub(super) fn is_at_end(&self) -> bool {
        self.at_end.get()
    }

    /// Returns how many bytes went either way so far, frames included.
    pub(super) fn bytes_moved(&self) -> u64 {
        self.bytes_moved.get()
    }

    /// Tells whether the socket took all of the last piece.
    pub(super) fn is_piece_sent(&self) -> bool {
        self.piece_left.get() == 0
    }

    /// Tells whether the socket took all of the body.
    pub(super) fn is_body_sent(&self) -> bool {
        self.body_left.get() == 0
    }

    pub(super) fn last_byte_sent(&self) -> Option<Moment> {
        self.last_byte_sent.get()
    }

    /// Returns an empty buffer, one that served before where there is one.
    pub(super) fn spare_buffer(&self) -> Vec<u8> {
        let mut buffer = self.spare.take();
        buffer.clear();
        buffer
    }

    fn moved(&self, count: usize) {
        self.bytes_moved.set(self.bytes_moved.get() + count as u64);
    }
}

/// A part of a request's body on its way through h2.
pub(super) struct Piece {
    bytes: Vec<u8>,
    position: usize,
    watch: Rc<Watch>,
}

impl Piece {
    pub(super) fn new(bytes: Vec<u8>, watch: Rc<Watch>) -> Self {
        watch.piece_left.set(bytes.len() as u64);
        Self { bytes, position: 0, watch }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes[self.position..]
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.remaining(), "h2 writes what there is");
        self.position += count;
        for left in [&self.watch.piece_left, &self.watch.body_left] {
            left.set(left.get().saturating_sub(count as u64));
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.watch.spare.replace(std::mem::take(&mut self.bytes));
    }
}

/// A connection as h2 wants it.
pub(super) struct Wire {
    connection: Connection,
    watch: Rc<Watch>,
}

impl Wire {
    pub(super) fn new(connection: Connection, watch: Rc<Watch>) -> Self {
        Self { connection, watch }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { connection, watch } = self.get_mut();
        if !watch.read_allowed.get() {
            watch.holding.set(true);
            return Poll::Pending;
        }
        let filled_before = buffer.filled().len();
        let read = ready!(connection.poll_read(cx, buffer));
        watch.last_read.set(watch.clock.now());
        read?;
        watch.read_allowed.set(false);
        let bytes = &buffer.filled()[filled_before..];
        if bytes.is_empty() {
            watch.at_end.set(true);
        } else if watch.first_words.get().is_none() {
            watch.first_words.set(Some(FirstWords::of(bytes)));
        }
        watch.moved(bytes.len());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { connection, watch } = self.get_mut();
        let count = ready!(Pin::new(connection).poll_write_vectored(cx, slices))?;
        watch.moved(count);
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Asked for only when h2 has nothing left to write, so that a body of which no byte is left is
    /// with the socket then.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { connection, watch } = self.get_mut();
        ready!(connection.poll_flush(cx))?;
        if watch.had_body.get() && watch.is_body_sent() && watch.last_byte_sent.get().is_none() {
            watch.last_byte_sent.set(Some(watch.clock.now()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_shutdown(cx)
    }
}
