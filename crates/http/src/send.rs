//! Sending a request: the head together with the first piece of the body, then the rest piece by
//! piece.

use std::io;
use std::task::{Context, Poll, ready};

use crate::Body;
use crate::channel::Channel;

/// How much of a body made piece by piece is made and sent at a time; measured with 1 MiB bodies:
/// 64 KiB costs more, 128 KiB not less.
const PIECE_BYTES_MAX: usize = 256 << 10;

enum Pieces<'a> {
    /// What is still to be sent.
    Bytes(&'a [u8]),
    Source {
        len: u64,
        fill: &'a mut dyn FnMut(u64, &mut [u8]),
        /// Holds the piece under way; what of it is unsent follows `piece_start`.
        piece: &'a mut Vec<u8>,
        piece_start: usize,
        /// Where in the body the next piece begins.
        offset: u64,
    },
}

/// Sends one request.
pub(crate) struct Sender<'a> {
    /// What is still to be sent of the head.
    head: &'a [u8],
    pieces: Pieces<'a>,
    had_body: bool,
    bytes_sent: u64,
    done: bool,
}

impl<'a> Sender<'a> {
    pub(crate) fn new<'r: 'a>(head: &'a [u8], body: Body<'r>, buffer: &'a mut Vec<u8>) -> Self {
        let (pieces, had_body) = match body {
            Body::Empty => (Pieces::Bytes(&[]), false),
            Body::Bytes(bytes) => (Pieces::Bytes(bytes), !bytes.is_empty()),
            Body::Source { len, fill } => {
                buffer.clear();
                let source = Pieces::Source { len, fill, piece: buffer, piece_start: 0, offset: 0 };
                (source, len > 0)
            }
        };
        Self { head, pieces, had_body, bytes_sent: 0, done: false }
    }

    /// Tells whether everything was handed to the socket.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Returns how many bytes of head and body were handed to the socket.
    pub(crate) fn bytes_sent(&self) -> u64 {
        self.bytes_sent
    }

    /// Tells whether the request has a body of at least one byte.
    pub(crate) fn had_body(&self) -> bool {
        self.had_body
    }

    /// Does one write; pending when the socket takes nothing.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        channel: &mut Channel,
    ) -> Poll<io::Result<()>> {
        let piece = self.pieces.next_piece();
        if !self.head.is_empty() || !piece.is_empty() {
            let count = ready!(channel.poll_write(cx, self.head, piece))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.bytes_sent += count as u64;
            let of_head = count.min(self.head.len());
            self.head = &self.head[of_head..];
            self.pieces.advance(count - of_head);
        }
        if self.head.is_empty() && self.pieces.is_empty() {
            ready!(channel.poll_flush(cx))?;
            self.done = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl Pieces<'_> {
    /// Returns what is to be sent next, making a new piece where the last one is used up.
    fn next_piece(&mut self) -> &[u8] {
        match self {
            Self::Bytes(rest) => rest,
            Self::Source { len, fill, piece, piece_start, offset } => {
                if *piece_start == piece.len() && offset < len {
                    let size = (*len - *offset).min(PIECE_BYTES_MAX as u64) as usize;
                    piece.resize(size, 0);
                    fill(*offset, piece);
                    *offset += size as u64;
                    *piece_start = 0;
                }
                &piece[*piece_start..]
            }
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Self::Bytes(rest) => *rest = &rest[count..],
            Self::Source { piece_start, .. } => *piece_start += count,
        }
    }

    /// Tells whether nothing is left to be sent.
    fn is_empty(&self) -> bool {
        match self {
            Self::Bytes(rest) => rest.is_empty(),
            Self::Source { len, piece, piece_start, offset, .. } => {
                *piece_start == piece.len() && offset == len
            }
        }
    }
}
