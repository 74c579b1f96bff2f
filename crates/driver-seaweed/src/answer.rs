//! What is sent to servers and what they answer, as it passes.

use plimsoll_driver::{ByteRange, ContentSink, ContentSource, Dates, DriverError};
use plimsoll_http::{HeldRange, ResponseHead, ResponseSink};
use plimsoll_model::ErrorClass;

use crate::error;
use crate::request::UNCOMPRESSED;
use crate::sum::{Sum, SumKind, SumValue};

/// How much of an answer that should be short is kept.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Content within its frame, with the checksum of what was handed out.
pub(crate) struct Upload<'a> {
    content: &'a mut dyn ContentSource,
    size: u64,
    before: &'static [u8],
    behind: &'static [u8],
    sum: Sum,
}

impl<'a> Upload<'a> {
    pub(crate) fn new(
        content: &'a mut dyn ContentSource,
        (before, behind): (&'static [u8], &'static [u8]),
        sum: SumKind,
    ) -> Self {
        let (size, sum) = (content.size(), sum.begin());
        Self { content, size, before, behind, sum }
    }

    /// Returns how many bytes of content it has.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns how many bytes it has, its frame included.
    pub(crate) fn len(&self) -> u64 {
        (self.before.len() + self.behind.len()) as u64 + self.size
    }

    /// Returns the checksum of the content that was handed out.
    pub(crate) fn sum(&self) -> SumValue {
        self.sum.value()
    }

    /// Fills `buffer` with the bytes from `offset` on; called piece by piece, in order.
    pub(crate) fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        let (mut offset, mut rest) = (offset, buffer);
        let content_at = self.before.len() as u64;
        let behind_at = content_at + self.size;
        while !rest.is_empty() {
            let part = match offset {
                _ if offset < content_at => &self.before[offset as usize..],
                _ if offset >= behind_at => &self.behind[(offset - behind_at) as usize..],
                _ => {
                    let len = (behind_at - offset).min(rest.len() as u64) as usize;
                    let (now, later) = rest.split_at_mut(len);
                    self.content.fill(offset - content_at, now);
                    self.sum.update(now);
                    (offset, rest) = (offset + len as u64, later);
                    continue;
                }
            };
            let len = part.len().min(rest.len());
            let (now, later) = rest.split_at_mut(len);
            now.copy_from_slice(&part[..len]);
            (offset, rest) = (offset + len as u64, later);
        }
    }
}

/// An answer, kept to be read when it is complete.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The checksum of what is stored, as the server states it; that of a volume server is of the
    /// stored bytes, which are compressed where it says so.
    pub(crate) stated: Option<SumValue>,
    /// Whether anything is stated about what is stored.
    pub(crate) states_etag: bool,
    /// Whether it may be stored compressed, so that a volume server's checksum may be of that form.
    may_be_compressed: bool,
    pub(crate) content_length: Option<u64>,
    /// The token that a master sends along; empty for none.
    pub(crate) token: String,
    /// Whether the server says that it is SeaweedFS.
    pub(crate) is_named: bool,
    /// The dates in the response's headers, if the caller asked for them.
    pub(crate) dates: Option<Dates>,
    pub(crate) body: Vec<u8>,
    body_bytes_max: usize,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            status: 0,
            stated: None,
            states_etag: false,
            may_be_compressed: false,
            content_length: None,
            token: String::new(),
            is_named: false,
            dates: None,
            body: Vec::new(),
            body_bytes_max: ANSWER_BYTES_MAX,
        }
    }
}

impl Answer {
    /// Makes ready for the next exchange.
    pub(crate) fn expect(&mut self) -> &mut Self {
        self.body_bytes_max = ANSWER_BYTES_MAX;
        self.clear();
        self
    }

    /// Makes ready for an answer that may be so long.
    pub(crate) fn expect_up_to(&mut self, bytes: usize) -> &mut Self {
        self.body_bytes_max = bytes;
        self.clear();
        self
    }

    fn clear(&mut self) {
        self.status = 0;
        (self.stated, self.states_etag) = (None, false);
        self.content_length = None;
        self.token.clear();
        self.body.clear();
    }

    /// Checks that what was stored is what was sent.
    pub(crate) fn check_stored(&self, sent: SumValue) -> Result<(), DriverError> {
        match self.stated.filter(|stated| stated.kind == sent.kind) {
            Some(stated) if stated == sent => Ok(()),
            Some(stated) => {
                let why = format!("stored was content of {stated}, sent was {}", sent.digits());
                Err(DriverError::with_status(ErrorClass::Corrupt, self.status, why))
            }
            None => {
                let by = match sent.kind {
                    SumKind::Crc32c => "ETag",
                    SumKind::Md5 => "Content-MD5",
                };
                let why = format!("the answer does not say what was stored ({by})");
                Err(error::of_success(self.status, why))
            }
        }
    }
}

impl ResponseSink for Answer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.clear();
        self.status = head.status;
        self.is_named = error::is_named(head);
        self.content_length = head.content_length;
        let etag = head.header("etag").map(|etag| etag.trim_matches('"'));
        self.states_etag = etag.is_some();
        self.may_be_compressed = head.header("content-type") != Some(UNCOMPRESSED);
        // A volume server repeats in the other header what it was sent there.
        let of_header = || head.header("content-md5").and_then(SumValue::of_content_md5);
        self.stated = etag.map_or_else(of_header, SumValue::of_etag);
        if head.header("x-file-store") == Some("chunked") {
            // It is the sum of the list of the chunks.
            self.stated = None;
        }
        let token = head.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let is_plain = |token: &&str| token.bytes().all(|byte| byte.is_ascii_graphic());
        token.filter(is_plain).unwrap_or_default().clone_into(&mut self.token);
        if let Some(dates) = &mut self.dates {
            head.header("date").unwrap_or_default().clone_into(&mut dates.now);
            head.header("last-modified").unwrap_or_default().clone_into(&mut dates.modified);
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(self.body_bytes_max - self.body.len());
        self.body.extend_from_slice(&bytes[..kept]);
    }
}

/// The answer to a read: content goes on to its sink, anything else is kept.
pub(crate) struct ContentAnswer<'a> {
    pub(crate) answer: &'a mut Answer,
    pub(crate) content: &'a mut dyn ContentSink,
    pub(crate) range: Option<ByteRange>,
    /// What became of it: no content, content of something of that size, or what nobody asked for.
    pub(crate) state: ContentState,
    /// What a whole file is summed up by; `None`: what is read is known by other means.
    kind: Option<SumKind>,
    /// The sum of what came; `None` of a range, which the sum of the file tells nothing of.
    sum: Option<Sum>,
}

/// What became of the answer to a read.
pub(crate) enum ContentState {
    /// No content: an error, or nothing yet.
    None,
    /// The content asked for, of a file of this size if the answer says it.
    Content { size: Option<u64> },
    /// A success that is not what was asked for; its body is dropped.
    Refused(DriverError),
}

impl<'a> ContentAnswer<'a> {
    pub(crate) fn new(
        answer: &'a mut Answer,
        content: &'a mut dyn ContentSink,
        range: Option<ByteRange>,
        sum: Option<SumKind>,
    ) -> Self {
        Self { answer, content, range, state: ContentState::None, kind: sum, sum: None }
    }

    /// Checks a whole file against the checksum of what was stored, and returns whether that could
    /// be done, or need not be. The answer must state one; that of a file in chunks is another
    /// kind. A volume server states that of the compressed form where it stored one, and does not
    /// say so.
    pub(crate) fn check_read(&self) -> Result<bool, DriverError> {
        let stated = self.answer.stated.filter(|stated| Some(stated.kind) == self.kind);
        match (stated, self.sum.as_ref().map(Sum::value)) {
            (Some(stated), Some(read)) if stated != read => {
                if stated.kind == SumKind::Crc32c && self.answer.may_be_compressed {
                    return Ok(false);
                }
                let why = format!("stored was content of {stated}, read was {}", read.digits());
                Err(DriverError::with_status(ErrorClass::Corrupt, self.answer.status, why))
            }
            _ if self.range.is_none() && !self.answer.states_etag => {
                let why = "the answer does not say what is stored (ETag)";
                Err(error::of_success(self.answer.status, why))
            }
            (stated, sum) => Ok(self.kind.is_none() || (stated.is_some() && sum.is_some())),
        }
    }
}

impl ResponseSink for ContentAnswer<'_> {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.answer.head(head);
        let refused = |class, why: String| {
            ContentState::Refused(DriverError::with_status(class, head.status, why))
        };
        self.state = match (head.status, self.range) {
            (200, None) => ContentState::Content { size: head.content_length },
            (206, None) => {
                let why = "the answer is a range where the whole file was asked for";
                refused(ErrorClass::Protocol, why.to_owned())
            }
            (200 | 206, Some(range)) => match HeldRange::of(head, range.offset, range.len) {
                HeldRange::Asked { size } => ContentState::Content { size },
                HeldRange::Short(why) => refused(ErrorClass::Truncated, why),
                HeldRange::Other(why) => refused(ErrorClass::Protocol, why),
            },
            _ => ContentState::None,
        };
        if matches!(self.state, ContentState::Content { .. }) {
            self.sum = self.kind.filter(|_| self.range.is_none()).map(SumKind::begin);
            self.content.restart();
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        match self.state {
            ContentState::Content { .. } => {
                if let Some(sum) = &mut self.sum {
                    sum.update(bytes);
                }
                self.content.accept(bytes);
            }
            ContentState::None => self.answer.body(bytes),
            ContentState::Refused(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_http::response::ResponseParser;

    use super::*;

    struct Counted(u64);

    impl ContentSource for Counted {
        fn size(&self) -> u64 {
            self.0
        }

        fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
            for (place, byte) in buffer.iter_mut().enumerate() {
                *byte = b'0' + ((offset + place as u64) % 10) as u8;
            }
        }
    }

    struct Dropped;

    impl ContentSink for Dropped {
        fn restart(&mut self) {}

        fn accept(&mut self, _: &[u8]) {}
    }

    #[test]
    fn what_the_sum_of_a_whole_file_tells_nothing_of_is_not_checked() {
        let range = Some(ByteRange { offset: 0, len: 9 });
        let read_of = |range: Option<ByteRange>, kind, mime: &str, etag: &str| {
            let (mut answer, mut content) = (Answer::default(), Dropped);
            let mut sink = ContentAnswer::new(&mut answer, &mut content, range, kind);
            let status = match range {
                None => "200 OK",
                Some(_) => "206 Partial Content\r\nContent-Range: bytes 0-8/20",
            };
            let text = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {mime}\r\nETag: \"{etag}\"\r\n\
                 Content-Length: 9\r\n\r\n123456789"
            );
            let mut parser = ResponseParser::new();
            parser.start(false);
            parser.feed(text.as_bytes(), &mut sink).unwrap();
            assert!(matches!(sink.state, ContentState::Content { .. }), "{text}");
            sink.check_read().map_err(|error| error.class)
        };
        let read = |kind, mime: &str, etag: &str| read_of(None, Some(kind), mime, etag);
        let (crc, other) = ("e3069283", "00000001");
        let crc32c = SumKind::Crc32c;
        assert_eq!(read(crc32c, UNCOMPRESSED, crc), Ok(true));
        assert_eq!(read(crc32c, UNCOMPRESSED, other), Err(ErrorClass::Corrupt));
        assert_eq!(read(crc32c, "text/plain", crc), Ok(true));
        assert_eq!(read(crc32c, "text/plain", other), Ok(false));
        // That of a filer is of the content, whatever is stored; that of chunks is of another kind.
        let md5 = "25f9e794323b453885f5181f1b624d00";
        assert_eq!(read(SumKind::Md5, "text/plain", md5), Err(ErrorClass::Corrupt));
        assert_eq!(read(SumKind::Md5, "text/plain", "25f9e794-2"), Ok(false));
        // A range is another thing than the file that the checksum is of.
        for (kind, etag) in [(crc32c, crc), (crc32c, other), (SumKind::Md5, md5)] {
            assert_eq!(read_of(range, Some(kind), UNCOMPRESSED, etag), Ok(false));
        }
        // Nothing is left unchecked where nothing is to be.
        for range in [None, range] {
            assert_eq!(read_of(range, None, UNCOMPRESSED, other), Ok(true));
        }
    }

    #[test]
    fn content_stands_in_its_frame_whatever_the_pieces() {
        let frame: (&[u8], &[u8]) = (b"<head>", b"<tail>");
        for (size, content) in [(9, "012345678"), (0, ""), (12, "012345678901")] {
            let whole = format!("<head>{content}<tail>");
            for piece in [1, 2, 5, 7, 40] {
                let mut source = Counted(size);
                let mut upload = Upload::new(&mut source, frame, SumKind::Crc32c);
                assert_eq!(upload.len(), whole.len() as u64);
                let mut sent = vec![0; whole.len()];
                for (number, part) in sent.chunks_mut(piece).enumerate() {
                    upload.fill((number * piece) as u64, part);
                }
                assert_eq!(String::from_utf8(sent).unwrap(), whole);
                let mut sum = SumKind::Crc32c.begin();
                sum.update(content.as_bytes());
                assert_eq!(upload.sum(), sum.value());
            }
        }
    }
}
