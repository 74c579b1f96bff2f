//! What an object holds: one piece, or several that came one after the other and are not copied
//! together.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use s3s::{Body, StdError};

/// The bytes of an object. A clone shares them.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// As most are.
    Whole(Bytes),
    /// Pieces of which none is empty, and their length together.
    Pieces(Arc<Vec<Bytes>>, usize),
}

impl Content {
    /// Returns these pieces in a row.
    pub(crate) fn of_pieces(pieces: impl Iterator<Item = Bytes>) -> Self {
        let mut pieces: Vec<Bytes> = pieces.filter(|piece| !piece.is_empty()).collect();
        match pieces.len() {
            0 | 1 => Self::Whole(pieces.pop().unwrap_or_default()),
            _ => {
                let len = pieces.iter().map(Bytes::len).sum();
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

    /// Adds a piece behind the others.
    pub(crate) fn push(&mut self, piece: Bytes) {
        match self {
            _ if piece.is_empty() => {}
            Self::Pieces(pieces, len) => {
                *len += piece.len();
                Arc::make_mut(pieces).push(piece);
            }
            Self::Whole(first) => *self = Self::of_pieces([mem::take(first), piece].into_iter()),
        }
    }

    /// Returns all bytes in one piece, copied where they are in several.
    pub(crate) fn whole(&self) -> Bytes {
        match self {
            Self::Whole(bytes) => bytes.clone(),
            Self::Pieces(pieces, _) => pieces.concat().into(),
        }
    }

    /// Returns the pieces in their order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let (whole, pieces) = match self {
            Self::Whole(bytes) => (Some(bytes), [].as_slice()),
            Self::Pieces(pieces, _) => (None, pieces.as_slice()),
        };
        whole.into_iter().chain(pieces).map(|piece| &piece[..])
    }

    /// Returns some of the bytes.
    pub(crate) fn slice(&self, span: Range<usize>) -> Self {
        let pieces = match self {
            Self::Whole(bytes) => return Self::Whole(bytes.slice(span)),
            Self::Pieces(pieces, len) => {
                debug_assert!(span.start <= span.end && span.end <= *len, "beyond the end");
                pieces
            }
        };
        let mut from = 0;
        let parts = pieces.iter().map(|piece| {
            let (start, end) = (from, from + piece.len());
            from = end;
            let cut = span.start.clamp(start, end)..span.end.clamp(start, end);
            piece.slice(cut.start - start..cut.end - start)
        });
        Self::of_pieces(parts)
    }

    /// Returns a body that holds the bytes.
    pub(crate) fn into_body(self) -> Body {
        match self {
            Self::Whole(bytes) => Body::from(bytes),
            Self::Pieces(pieces, _) => {
                let count = pieces.len();
                let frame = move |at: usize| Ok::<_, StdError>(Frame::data(pieces[at].clone()));
                Body::http_body_unsync(StreamBody::new(stream::iter((0..count).map(frame))))
            }
        }
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(bytes)
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
            let bytes = |piece: &Vec<u8>| Bytes::copy_from_slice(piece);
            let mut content = Content::of_pieces(first.iter().map(bytes));
            let before = content.clone();
            rest.iter().map(bytes).for_each(|piece| content.push(piece));
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
