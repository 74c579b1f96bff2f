//! Takes answers as they come in: whole ones that are read afterwards, and content that goes
//! straight on.

use std::rc::Rc;

use plimsoll_driver::{ByteRange, ContentSink, Dates, DriverError};
use plimsoll_http::{HeldRange, ResponseHead, ResponseSink, parse_content_range};
use plimsoll_model::ErrorClass;

use crate::redaction::Redaction;

/// How much of an answer that should be empty or an error is kept.
pub(crate) const ERROR_BYTES_MAX: usize = 64 << 10;
/// How large one page of a listing, or the result of one multi-object delete, may be: 1000 keys of
/// 1024 bytes, each byte as `%XX`, come to 3 MiB; servers that give larger pages get some room.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 32 << 20;

/// An answer kept to be read when it is complete. Reused from exchange to exchange.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
    /// Whether its reason phrase says that load is shed. An answer to HEAD has no body that could:
    /// Amazon and Ceph say it here, MinIO nowhere.
    pub(crate) says_slow_down: bool,
    /// The region the server says the bucket is in; empty if it does not say.
    pub(crate) bucket_region: String,
    /// Where a redirect leads; empty if nowhere.
    pub(crate) location: String,
    /// As much of the body as is kept.
    pub(crate) body: Vec<u8>,
    /// Whether the body was larger than what is kept.
    pub(crate) overflowed: bool,
    pub(crate) body_bytes_max: usize,
    /// The header that names what came of the request, where one does.
    pub(crate) tag_header: Option<&'static str>,
    /// Its value in an answer of success; empty if there is none.
    pub(crate) tag: String,
    /// The dates in the response's headers, if the caller asked for them.
    pub(crate) dates: Option<Dates>,
    /// The `Server` header, if the caller asked for the dates.
    pub(crate) server: String,
    /// Hides the secrets of the request that it answers.
    pub(crate) redaction: Rc<Redaction>,
}

impl Answer {
    /// Makes ready for the next exchange; of its body at most `body_bytes_max` is kept, and the
    /// header `tag_header`.
    pub(crate) fn expect(
        &mut self,
        body_bytes_max: usize,
        tag_header: Option<&'static str>,
    ) -> &mut Self {
        self.body_bytes_max = body_bytes_max;
        self.tag_header = tag_header;
        self.clear();
        self
    }

    fn clear(&mut self) {
        self.status = 0;
        self.content_length = None;
        self.says_slow_down = false;
        self.bucket_region.clear();
        self.location.clear();
        self.body.clear();
        self.overflowed = false;
        self.tag.clear();
    }
}

impl ResponseSink for Answer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.clear();
        self.status = head.status;
        self.content_length = head.content_length;
        if let Some(dates) = &mut self.dates {
            head.header("date").unwrap_or_default().clone_into(&mut dates.now);
            head.header("last-modified").unwrap_or_default().clone_into(&mut dates.modified);
            head.header("server").unwrap_or_default().clone_into(&mut self.server);
        }
        if head.status >= 300 {
            self.says_slow_down = head.reason.eq_ignore_ascii_case("Slow Down");
            let text = |name| head.header(name).unwrap_or_default();
            text("x-amz-bucket-region").clone_into(&mut self.bucket_region);
            text("location").clone_into(&mut self.location);
        } else if let Some(name) = self.tag_header {
            head.header(name).unwrap_or_default().clone_into(&mut self.tag);
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(self.body_bytes_max - self.body.len());
        self.body.extend_from_slice(&bytes[..kept]);
        self.overflowed |= kept < bytes.len();
    }
}

/// The answer to a GET: content goes on to its sink, anything else is kept as an [`Answer`].
pub(crate) struct ContentAnswer<'a> {
    pub(crate) answer: &'a mut Answer,
    pub(crate) content: &'a mut dyn ContentSink,
    pub(crate) wanted: Wanted,
    pub(crate) state: ContentState,
}

/// What of an object is asked for.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    Whole,
    Range(ByteRange),
    /// One part of those it was uploaded in, wherever that lies.
    Part,
}

/// What became of the answer to a GET.
#[derive(Debug)]
pub(crate) enum ContentState {
    /// No content: an error, or nothing yet.
    None,
    /// The content asked for, of an object of this size if the answer says it.
    Content { object_size: Option<u64> },
    /// A success that is not what was asked for; its body is dropped.
    Refused(DriverError),
}

impl ResponseSink for ContentAnswer<'_> {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.answer.head(head);
        self.state = match (head.status, self.wanted) {
            (200, Wanted::Whole | Wanted::Part) => {
                ContentState::Content { object_size: head.content_length }
            }
            (200 | 206, Wanted::Range(range)) => {
                match HeldRange::of(head, range.offset, range.len) {
                    HeldRange::Asked { size: object_size } => ContentState::Content { object_size },
                    HeldRange::Short(why) => {
                        let truncated = ErrorClass::Truncated;
                        let why = self.answer.redaction.apply(&why);
                        let error = DriverError::with_status(truncated, head.status, why);
                        ContentState::Refused(error)
                    }
                    HeldRange::Other(why) => {
                        refused(head.status, self.answer.redaction.apply(&why))
                    }
                }
            }
            (206, Wanted::Whole) => {
                refused(206, "the answer is a range where the whole object was asked for")
            }
            (206, Wanted::Part) => {
                let range = head.header("content-range").and_then(parse_content_range);
                ContentState::Content { object_size: range.and_then(|(_, _, size)| size) }
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

fn refused(status: u16, message: impl Into<String>) -> ContentState {
    ContentState::Refused(DriverError::with_status(ErrorClass::Protocol, status, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_of_a_body_is_kept_than_expected() {
        let mut answer = Answer::default();
        answer.expect(5, None);
        answer.body(b"abc");
        assert!(!answer.overflowed);
        answer.body(b"def");
        answer.body(b"ghi");
        assert_eq!((answer.body.as_slice(), answer.overflowed), (&b"abcde"[..], true));
        assert!(answer.expect(5, None).body.is_empty());
    }
}
