//! Takes answers as they come in: whole ones that are read afterwards, and content that goes
//! straight on.

use plimsoll_driver::{ByteRange, ContentSink, DriverError};
use plimsoll_http::{ResponseHead, ResponseSink};
use plimsoll_model::ErrorClass;

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
            (200, Wanted::Range(range)) => match whole_is_range(head.content_length, range) {
                true => ContentState::Content { object_size: head.content_length },
                false => refused(200, "the answer to a ranged request is the whole object"),
            },
            (206, Wanted::Whole) => {
                refused(206, "the answer is a range where the whole object was asked for")
            }
            (206, Wanted::Range(range)) => check_range(head.header("content-range"), range),
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

fn whole_is_range(content_length: Option<u64>, range: ByteRange) -> bool {
    range.offset == 0 && content_length == Some(range.len)
}

/// Checks the Content-Range of a 206 against what was asked for.
fn check_range(header: Option<&str>, range: ByteRange) -> ContentState {
    let Some(header) = header else {
        return refused(206, "the answer is a range but does not say which");
    };
    let Some((first, last, size)) = parse_content_range(header) else {
        return refused(206, format!("`{}` is no content range", shown(header)));
    };
    let wanted_last = range.offset + range.len - 1;
    let mismatch = format!(
        "asked for bytes {}-{wanted_last}, the answer holds `{}`",
        range.offset,
        shown(header)
    );
    match (first == range.offset, last.cmp(&wanted_last)) {
        (true, std::cmp::Ordering::Equal) => ContentState::Content { object_size: size },
        // The object ends before the range does: the server is right and the object too short.
        (true, std::cmp::Ordering::Less) if size == Some(last + 1) => {
            ContentState::Refused(DriverError::with_status(ErrorClass::Truncated, 206, mismatch))
        }
        _ => refused(206, mismatch),
    }
}

/// Returns first byte, last byte and object size of `bytes FIRST-LAST/SIZE`, where the size may be
/// `*`.
fn parse_content_range(header: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, size) = header.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.trim().split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let size = if size == "*" { None } else { Some(size.parse().ok()?) };
    let in_order = first <= last && size.is_none_or(|size| last < size);
    in_order.then_some((first, last, size))
}

fn shown(header: &str) -> String {
    header.chars().take(80).filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read_strictly() {
        for (header, range) in [
            ("bytes 0-9/100", Some((0, 9, Some(100)))),
            ("bytes 5-5/*", Some((5, 5, None))),
            ("bytes 9-0/100", None),
            ("bytes 0-100/100", None),
            ("bytes */100", None),
            ("bytes 0-9", None),
            ("0-9/100", None),
            ("bytes -9/100", None),
        ] {
            assert_eq!(parse_content_range(header), range, "{header}");
        }
    }

    #[test]
    fn a_range_must_be_the_one_asked_for() {
        let range = ByteRange { offset: 10, len: 10 };
        let class = |header| match check_range(header, range) {
            ContentState::Content { object_size } => Ok(object_size),
            ContentState::Refused(error) => Err(error.class),
            ContentState::None => unreachable!("a 206 is content or refused"),
        };
        assert_eq!(class(Some("bytes 10-19/50")), Ok(Some(50)));
        assert_eq!(class(Some("bytes 10-19/*")), Ok(None));
        assert_eq!(class(Some("bytes 10-14/15")), Err(ErrorClass::Truncated));
        for wrong in
            [None, Some("bytes 10-14/50"), Some("bytes 0-9/50"), Some("bytes 10-20/50"), Some("x")]
        {
            assert_eq!(class(wrong), Err(ErrorClass::Protocol), "{wrong:?}");
        }
    }

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
