//! What is sent to volume servers and what they answer, as it passes.

use crc_fast::{CrcAlgorithm, Digest};
use plimsoll_driver::{ByteRange, ContentSink, ContentSource, DriverError};
use plimsoll_http::{HeldRange, ResponseHead, ResponseSink};
use plimsoll_model::ErrorClass;

use crate::error;

/// How much of an answer that should be short is kept.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Content within its frame, with the checksum of what was handed out.
pub(crate) struct Upload<'a> {
    content: &'a mut dyn ContentSource,
    size: u64,
    before: &'static [u8],
    behind: &'static [u8],
    crc: Digest,
}

impl<'a> Upload<'a> {
    pub(crate) fn new(
        content: &'a mut dyn ContentSource,
        (before, behind): (&'static [u8], &'static [u8]),
    ) -> Self {
        let (size, crc) = (content.size(), Digest::new(CrcAlgorithm::Crc32Iscsi));
        Self { content, size, before, behind, crc }
    }

    /// Returns how many bytes it has, its frame included.
    pub(crate) fn len(&self) -> u64 {
        (self.before.len() + self.behind.len()) as u64 + self.size
    }

    /// Returns the CRC-32C of the content that was handed out.
    pub(crate) fn crc(&self) -> u32 {
        self.crc.finalize() as u32
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
                    self.crc.update(now);
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
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The CRC-32C of what is stored, as the server states it; of the stored bytes, which are
    /// compressed where it says so.
    pub(crate) etag: Option<u32>,
    /// Whether anything is stated about what is stored.
    pub(crate) states_etag: bool,
    pub(crate) content_length: Option<u64>,
    /// The token that a master sends along; empty for none.
    pub(crate) token: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Makes ready for the next exchange.
    pub(crate) fn expect(&mut self) -> &mut Self {
        self.status = 0;
        (self.etag, self.states_etag) = (None, false);
        self.content_length = None;
        self.token.clear();
        self.body.clear();
        self
    }

    /// Checks that what was stored is what was sent.
    pub(crate) fn check_stored(&self, crc: u32) -> Result<(), DriverError> {
        match self.etag {
            Some(etag) if etag == crc => Ok(()),
            Some(etag) => {
                let why = format!("stored was content of CRC-32C {etag:08x}, sent was {crc:08x}");
                Err(DriverError::with_status(ErrorClass::Corrupt, self.status, why))
            }
            None => {
                let why = "the answer does not say what was stored (ETag)";
                Err(error::of_success(self.status, why))
            }
        }
    }
}

impl ResponseSink for Answer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.expect();
        self.status = head.status;
        self.content_length = head.content_length;
        let etag = head.header("etag").map(|etag| etag.trim_matches('"'));
        self.states_etag = etag.is_some();
        let crc = |etag| u32::from_str_radix(etag, 16).ok();
        self.etag = etag.filter(|etag| etag.len() == 8).and_then(crc);
        let token = head.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let is_plain = |token: &&str| token.bytes().all(|byte| byte.is_ascii_graphic());
        token.filter(is_plain).unwrap_or_default().clone_into(&mut self.token);
    }

    fn body(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(ANSWER_BYTES_MAX - self.body.len());
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
    crc: Digest,
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
    ) -> Self {
        let crc = Digest::new(CrcAlgorithm::Crc32Iscsi);
        Self { answer, content, range, state: ContentState::None, crc }
    }

    /// Checks a whole file against the checksum of what was stored. The answer must state one; that
    /// of a file in chunks is another kind, which is passed over.
    pub(crate) fn check_read(&self) -> Result<(), DriverError> {
        let crc = self.crc.finalize() as u32;
        match self.answer.etag {
            Some(etag) if self.range.is_none() && etag != crc => {
                let why = format!("stored was content of CRC-32C {etag:08x}, read was {crc:08x}");
                Err(DriverError::with_status(ErrorClass::Corrupt, self.answer.status, why))
            }
            _ if self.range.is_none() && !self.answer.states_etag => {
                let why = "the answer does not say what is stored (ETag)";
                Err(error::of_success(self.answer.status, why))
            }
            _ => Ok(()),
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
            self.crc = Digest::new(CrcAlgorithm::Crc32Iscsi);
            self.content.restart();
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        match self.state {
            ContentState::Content { .. } => {
                if self.range.is_none() {
                    self.crc.update(bytes);
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

    #[test]
    fn content_stands_in_its_frame_whatever_the_pieces() {
        for (size, content) in [(9, "012345678"), (0, ""), (12, "012345678901")] {
            let whole = format!("<head>{content}<tail>");
            for piece in [1, 2, 5, 7, 40] {
                let mut source = Counted(size);
                let mut upload = Upload::new(&mut source, (b"<head>", b"<tail>"));
                assert_eq!(upload.len(), whole.len() as u64);
                let mut sent = vec![0; whole.len()];
                for (number, part) in sent.chunks_mut(piece).enumerate() {
                    upload.fill((number * piece) as u64, part);
                }
                assert_eq!(String::from_utf8(sent).unwrap(), whole);
                let crc = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, content.as_bytes());
                assert_eq!(upload.crc(), crc as u32);
            }
        }
        // The check value of CRC-32C (RFC 3720, B.4, and every catalogue): of "123456789".
        let crc = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, b"123456789");
        assert_eq!(crc as u32, 0xe306_9283);
    }
}
