//! What an object holds: one piece, or several that came one after the other and are not copied
//! together. A piece knows how many objects and parts are stored that hold it.

use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use s3s::{Body, StdError};

/// Bytes that came together. A clone shares them, and the count of who is stored with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    bytes: Bytes,
    /// How many stored objects and parts hold the piece; who only reads it does not count.
    holders_count: Arc<AtomicU64>,
}

/// The bytes of an object. A clone shares them.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// As most are.
    Whole(Piece),
    /// Pieces of which none is empty, and their length together.
    Pieces(Arc<Vec<Piece>>, usize),
}

impl Piece {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Counts one holder more, and returns how many bytes that adds to what is held.
    pub(crate) fn hold(&self) -> u64 {
        let before = self.holders_count.fetch_add(1, Ordering::Relaxed);
        if before == 0 { self.len() as u64 } else { 0 }
    }

    /// Counts one holder less, and returns how many bytes nobody holds any more.
    pub(crate) fn release(&self) -> u64 {
        let before = self.holders_count.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "released more often than held");
        if before == 1 { self.len() as u64 } else { 0 }
    }

    fn slice(&self, span: Range<usize>) -> Self {
        match span == (0..self.len()) {
            true => self.clone(),
            false => self.bytes.slice(span).into(),
        }
    }
}

impl From<Bytes> for Piece {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, holders_count: Arc::default() }
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Content {
    /// Returns these pieces in a row.
    pub(crate) fn of_pieces(pieces: impl Iterator<Item = Piece>) -> Self {
        let mut pieces: Vec<Piece> = pieces.filter(|piece| !piece.is_empty()).collect();
        match pieces.len() {
            0 | 1 => Self::Whole(pieces.pop().unwrap_or_default()),
            _ => {
                let len = pieces.iter().map(Piece::len).sum();
                Self::Pieces(Arc::new(pieces), len)
            }
        }
    }

    /// Returns how many bytes there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Pieces(_, len) => *len,
        }
    }

    /// Adds another content behind this one.
    pub(crate) fn push(&mut self, other: &Self) {
        for piece in other.held_pieces().filter(|piece| !piece.is_empty()).cloned() {
            match self {
                Self::Pieces(pieces, len) => {
                    *len += piece.len();
                    Arc::make_mut(pieces).push(piece);
                }
                Self::Whole(first) => {
                    *self = Self::of_pieces([mem::take(first), piece].into_iter());
                }
            }
        }
    }

    /// Counts one holder more of every piece, and returns how many bytes that adds to what is held.
    pub(crate) fn hold(&self) -> u64 {
        self.held_pieces().map(Piece::hold).sum()
    }

    /// Counts one holder less of every piece, and returns how many bytes nobody holds any more.
    pub(crate) fn release(&self) -> u64 {
        self.held_pieces().map(Piece::release).sum()
    }

    /// Returns all bytes in one piece, copied where they are in several.
    pub(crate) fn whole(&self) -> Bytes {
        match self {
            Self::Whole(piece) => piece.bytes.clone(),
            Self::Pieces(pieces, len) => {
                let mut whole = Vec::with_capacity(*len);
                pieces.iter().for_each(|piece| whole.extend_from_slice(piece.as_ref()));
                whole.into()
            }
        }
    }

    /// Returns all bytes as one piece: the one that there is, or a copy of those that there are.
    pub(crate) fn into_piece(self) -> Piece {
        match self {
            Self::Whole(piece) => piece,
            Self::Pieces(..) => self.whole().into(),
        }
    }

    /// Returns the pieces in their order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.held_pieces().map(Piece::as_ref)
    }

    fn held_pieces(&self) -> impl Iterator<Item = &Piece> {
        let (whole, pieces) = match self {
            Self::Whole(piece) => (Some(piece), [].as_slice()),
            Self::Pieces(pieces, _) => (None, pieces.as_slice()),
        };
        whole.into_iter().chain(pieces)
    }

    /// Returns some of the bytes.
    pub(crate) fn slice(&self, span: Range<usize>) -> Self {
        let pieces = match self {
            Self::Whole(piece) => return Self::Whole(piece.slice(span)),
            Self::Pieces(pieces, len) => {
                debug_assert!(span.start <= span.end && span.end <= *len, "beyond the end");
                pieces
            }
        };
        let mut from = 0;
        let parts = pieces.iter().filter_map(|piece| {
            let (start, end) = (from, from + piece.len());
            from = end;
            let cut = span.start.clamp(start, end)..span.end.clamp(start, end);
            (!cut.is_empty()).then(|| piece.slice(cut.start - start..cut.end - start))
        });
        Self::of_pieces(parts)
    }

    /// Returns a body that holds the bytes.
    pub(crate) fn into_body(self) -> Body {
        match self {
            Self::Whole(piece) => Body::from(piece.bytes),
            Self::Pieces(pieces, _) => {
                let count = pieces.len();
                let frame =
                    move |at: usize| Ok::<_, StdError>(Frame::data(pieces[at].bytes.clone()));
                Body::http_body_unsync(StreamBody::new(stream::iter((0..count).map(frame))))
            }
        }
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pieces_are_as_good_as_a_whole(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5), 0..6),
            ends in (0usize..30, 0usize..30),
            pushed in 0usize..7,
        ) {
            let whole = pieces.concat();
            let (first, rest) = pieces.split_at(pushed.min(pieces.len()));
            let bytes = |piece: &Vec<u8>| Piece::from(Bytes::copy_from_slice(piece));
            let mut content = Content::of_pieces(first.iter().map(bytes));
            let before = content.clone();
            rest.iter().map(bytes).for_each(|piece| content.push(&Content::Whole(piece)));
            prop_assert_eq!(content.len(), whole.len());
            prop_assert_eq!(content.whole(), whole.clone());
            prop_assert_eq!(before.whole(), first.concat(), "a clone stays as it was");
            let (a, b) = (ends.0.min(whole.len()), ends.1.min(whole.len()));
            let span = a.min(b)..a.max(b);
            let cut = content.slice(span.clone());
            prop_assert_eq!(cut.len(), span.len());
            prop_assert_eq!(cut.whole(), &whole[span]);
        }
    }
}
