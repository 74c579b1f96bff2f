//! Answers, as they pass.

use plimsoll_driver::{ByteRange, ContentSink, DriverError};
use plimsoll_http::{HeldRange, ResponseHead, ResponseSink, parse_content_range};
use plimsoll_model::ErrorClass;

use crate::error::{self, OF_SWIFT};

/// How much of an answer that should be short is kept.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 << 10;

/// An answer, kept to be read when it is complete.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
    /// Without its quotes; empty for none.
    pub(crate) etag: String,
    pub(crate) body: Vec<u8>,
    /// Whether Swift answered.
    is_of_swift: bool,
    /// Whether the body was larger than what is kept.
    pub(crate) overflowed: bool,
    body_bytes_max: usize,
    /// Further headers that are wanted, and what they hold.
    wanted: &'static [&'static str],
    headers: Vec<Option<String>>,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            status: 0,
            content_length: None,
            etag: String::new(),
            body: Vec::new(),
            is_of_swift: false,
            overflowed: false,
            body_bytes_max: ANSWER_BYTES_MAX,
            wanted: &[],
            headers: Vec::new(),
        }
    }
}

impl Answer {
    /// Makes ready for the next exchange: what may be kept of its body, and which headers are.
    pub(crate) fn expect(
        &mut self,
        body_bytes_max: usize,
        wanted: &'static [&'static str],
    ) -> &mut Self {
        (self.body_bytes_max, self.wanted) = (body_bytes_max, wanted);
        self.clear();
        self
    }

    /// Returns what a header holds that was wanted.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let at = self.wanted.iter().position(|wanted| *wanted == name)?;
        self.headers.get(at)?.as_deref()
    }

    /// Returns the body of a refusal, if Swift sent it.
    pub(crate) fn words(&self) -> &[u8] {
        if self.is_of_swift { &self.body } else { &[] }
    }

    fn clear(&mut self) {
        self.status = 0;
        self.content_length = None;
        self.etag.clear();
        self.body.clear();
        self.overflowed = false;
        self.headers.clear();
    }
}

impl ResponseSink for Answer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.clear();
        self.status = head.status;
        self.content_length = head.content_length;
        self.is_of_swift = OF_SWIFT.iter().any(|name| head.header(name).is_some());
        let etag = head.header("etag").unwrap_or_default().trim_matches('"');
        etag.clone_into(&mut self.etag);
        let wanted = self.wanted.iter();
        self.headers.extend(wanted.map(|name| head.header(name).map(str::to_owned)));
    }

    fn body(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(self.body_bytes_max - self.body.len());
        self.body.extend_from_slice(&bytes[..kept]);
        self.overflowed |= kept < bytes.len();
    }
}

/// What of an object is asked for.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    Whole,
    Range(ByteRange),
    /// One segment, wherever that lies.
    Segment,
}

/// What became of the answer to a read.
pub(crate) enum ContentState {
    /// No content: an error, or nothing yet.
    None,
    /// The content asked for, of an object of this size if the answer says it.
    Content { size: Option<u64> },
    /// A success that is not what was asked for; its body is dropped.
    Refused(DriverError),
}

/// The answer to a read: content goes on to its sink, anything else is kept.
pub(crate) struct ContentAnswer<'a> {
    pub(crate) answer: &'a mut Answer,
    pub(crate) content: &'a mut dyn ContentSink,
    pub(crate) wanted: Wanted,
    pub(crate) state: ContentState,
}

impl ResponseSink for ContentAnswer<'_> {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.answer.head(head);
        self.state = match (head.status, self.wanted) {
            (200, Wanted::Whole) => ContentState::Content { size: head.content_length },
            (200 | 206, Wanted::Range(range)) => {
                match HeldRange::of(head, range.offset, range.len) {
                    HeldRange::Asked { size } => ContentState::Content { size },
                    HeldRange::Short(why) => {
                        let truncated = ErrorClass::Truncated;
                        let error = DriverError::with_status(truncated, head.status, why);
                        ContentState::Refused(error)
                    }
                    HeldRange::Other(why) => {
                        ContentState::Refused(error::of_success(head.status, why))
                    }
                }
            }
            (206, Wanted::Whole) => {
                let why = "the answer is a range where the whole object was asked for";
                ContentState::Refused(error::of_success(206, why))
            }
            (206, Wanted::Segment) => {
                let range = head.header("content-range").and_then(parse_content_range);
                ContentState::Content { size: range.and_then(|(_, _, size)| size) }
            }
            (200, Wanted::Segment) => {
                let why = "the answer is the whole object where one segment was asked for: this \
                           server knows no `part-number`, or the object has no list of segments";
                ContentState::Refused(error::of_success(200, why))
            }
            _ => ContentState::None,
        };
        if matches!(self.state, ContentState::Content { .. }) {
            self.content.restart();
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        match self.state {
            ContentState::Content { .. } => self.content.accept(bytes),
            ContentState::None => self.answer.body(bytes),
            ContentState::Refused(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_of_a_body_is_kept_than_expected() {
        let mut answer = Answer::default();
        answer.expect(5, &[]);
        answer.body(b"abc");
        assert!(!answer.overflowed);
        answer.body(b"def");
        answer.body(b"ghi");
        assert_eq!((answer.body.as_slice(), answer.overflowed), (&b"abcde"[..], true));
        assert!(answer.expect(5, &[]).body.is_empty());
    }
}
