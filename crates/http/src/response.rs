//! The sans-IO core: reads an answer from bytes, wherever they come from.
//!
//! This is the seam for transports. A transport calls [`ResponseParser::start`] when it sends a
//! request, feeds every slice it receives to [`ResponseParser::feed`] until that says `complete`,
//! and calls [`ResponseParser::finish`] if the connection ends before. Head and body go to a
//! [`ResponseSink`] at once, the body as slices of what was fed, never copied. Nothing here knows
//! sockets, time or memory of the transport, so one on io_uring can use it unchanged.

mod chunked;
mod head;
#[cfg(test)]
mod tests;

use chunked::ChunkedBody;
pub(crate) use head::content_length;
use head::{Framing, HeadOutcome};
pub use head::{HEAD_BYTES_MAX, HEADERS_COUNT_MAX, ResponseHead};

/// How many interim (1xx) answers may precede the final one.
pub const INTERIM_COUNT_MAX: u32 = 64;

/// Takes an answer as it comes in.
pub trait ResponseSink {
    /// Takes the head, once, before any body byte. Interim (1xx) answers are not shown.
    fn head(&mut self, head: &ResponseHead<'_>);

    /// Takes the next bytes of the body.
    fn body(&mut self, bytes: &[u8]);
}

/// How an answer breaks the rules of HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It starts like a TLS record.
    #[error("it speaks TLS")]
    Tls,
    /// The head cannot be parsed.
    #[error("its head cannot be parsed ({0})")]
    Head(httparse::Error),
    /// The head is longer than [`HEAD_BYTES_MAX`].
    #[error("its head is longer than {HEAD_BYTES_MAX} bytes")]
    HeadTooLong,
    /// The head has more fields than [`HEADERS_COUNT_MAX`].
    #[error("its head has more than {HEADERS_COUNT_MAX} fields")]
    TooManyHeaders,
    /// The status is below 100, or 101 though no other protocol was asked for.
    #[error("status {0} is unexpected here")]
    Status(u16),
    /// More interim answers than [`INTERIM_COUNT_MAX`].
    #[error("more than {INTERIM_COUNT_MAX} interim answers precede it")]
    TooManyInterims,
    /// Content-Length is no number.
    #[error("its Content-Length is not a number")]
    ContentLength,
    /// Content-Length states two different sizes.
    #[error("its Content-Length contradicts itself")]
    ContentLengthConflict,
    /// Both Content-Length and Transfer-Encoding.
    #[error("it has both Content-Length and Transfer-Encoding")]
    LengthAndEncoding,
    /// A Transfer-Encoding other than `chunked`, or one in HTTP/1.0.
    #[error("its Transfer-Encoding is not `chunked`")]
    TransferEncoding,
    /// A chunk's size is no hexadecimal number of at most 16 digits.
    #[error("a chunk size is invalid")]
    ChunkSize,
    /// A chunk's size line is too long.
    #[error("a chunk extension is too long")]
    ChunkLineTooLong,
    /// A chunk is not followed by CRLF.
    #[error("a chunk is longer than its size says")]
    ChunkEnd,
    /// The trailer fields after the last chunk are malformed.
    #[error("its trailer is invalid")]
    Trailer,
    /// The trailer fields are longer than [`HEAD_BYTES_MAX`].
    #[error("its trailer is longer than {HEAD_BYTES_MAX} bytes")]
    TrailerTooLong,
}

/// What became of the bytes that were fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// How many of them belong to this answer; less than all only when it is complete.
    pub consumed: usize,
    /// Whether the answer is complete.
    pub complete: bool,
}

/// What the end of the connection means for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is complete: a body without a stated length ends with the connection.
    Complete,
    /// Not one byte of it came.
    BeforeAnswer,
    /// It broke off in its head.
    InsideHead,
    /// It broke off in its body.
    InsideBody,
}

#[derive(Debug)]
enum State {
    Head,
    Length { left: u64 },
    Chunked(ChunkedBody),
    UntilClose,
    Complete,
}

/// Reads one answer after the other; see the module's documentation.
#[derive(Debug)]
pub struct ResponseParser {
    state: State,
    /// The part of a head that came so far, when it did not come whole.
    partial_head: Vec<u8>,
    method_is_head: bool,
    status: u16,
    keep_alive: bool,
    interim_count: u32,
    body_bytes: u64,
    body_bytes_stated: Option<u64>,
}

impl Default for ResponseParser {
    fn default() -> Self {
        Self::new()
    }
}

impl ResponseParser {
    /// Returns a parser that awaits the answer to a request other than HEAD.
    pub fn new() -> Self {
        Self {
            state: State::Head,
            partial_head: Vec::new(),
            method_is_head: false,
            status: 0,
            keep_alive: false,
            interim_count: 0,
            body_bytes: 0,
            body_bytes_stated: None,
        }
    }

    /// Awaits the next answer, forgetting what is left of the last one.
    pub fn start(&mut self, method_is_head: bool) {
        self.partial_head.clear();
        let partial_head = std::mem::take(&mut self.partial_head);
        *self = Self { partial_head, method_is_head, ..Self::new() };
    }

    /// Takes the next bytes received and hands what they mean to `sink`.
    ///
    /// After an error the parser must be started anew, with a new connection.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn ResponseSink) -> Result<Fed, ParseError> {
        let mut rest = bytes;
        loop {
            let used = match &mut self.state {
                State::Complete => {
                    return Ok(Fed { consumed: bytes.len() - rest.len(), complete: true });
                }
                _ if rest.is_empty() => {
                    return Ok(Fed { consumed: bytes.len(), complete: false });
                }
                State::Head => self.feed_head(rest, sink)?,
                State::Length { left } => {
                    let piece = first_bytes(rest, *left);
                    *left -= piece.len() as u64;
                    if *left == 0 {
                        self.state = State::Complete;
                    }
                    self.body_bytes += piece.len() as u64;
                    sink.body(piece);
                    piece.len()
                }
                State::UntilClose => {
                    self.body_bytes += rest.len() as u64;
                    sink.body(rest);
                    rest.len()
                }
                State::Chunked(body) => {
                    let step = body.feed(rest)?;
                    if !step.data.is_empty() {
                        self.body_bytes += step.data.len() as u64;
                        sink.body(step.data);
                    }
                    if step.complete {
                        self.state = State::Complete;
                    }
                    step.used
                }
            };
            rest = &rest[used..];
        }
    }

    /// Takes note that the connection ended and tells what that means.
    pub fn finish(&mut self) -> Ending {
        match self.state {
            State::UntilClose | State::Complete => {
                self.state = State::Complete;
                Ending::Complete
            }
            State::Head if self.partial_head.is_empty() => Ending::BeforeAnswer,
            State::Head => Ending::InsideHead,
            State::Length { .. } | State::Chunked(_) => Ending::InsideBody,
        }
    }

    /// Returns the final answer's status; 0 before its head is complete.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Tells whether the connection may carry another exchange after this answer.
    pub fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// Returns how many body bytes came.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Returns the size of the body as Content-Length states it.
    pub fn body_bytes_stated(&self) -> Option<u64> {
        self.body_bytes_stated
    }

    /// Returns how many interim answers came.
    pub fn interim_count(&self) -> u32 {
        self.interim_count
    }

    /// Tells whether any byte of the answer that is awaited came.
    pub fn has_begun(&self) -> bool {
        !matches!(self.state, State::Head) || !self.partial_head.is_empty()
    }

    /// Takes bytes of a head and returns how many of them belong to it.
    fn feed_head(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn ResponseSink,
    ) -> Result<usize, ParseError> {
        if self.partial_head.is_empty() {
            let window = first_bytes(bytes, HEAD_BYTES_MAX as u64);
            return match head::parse(window, self.method_is_head, sink)? {
                HeadOutcome::Partial => {
                    self.partial_head.extend_from_slice(window);
                    Ok(window.len())
                }
                HeadOutcome::Interim { len } => self.pass_interim(len),
                HeadOutcome::Final { len, framing } => Ok(self.begin_body(len, framing)),
            };
        }
        let mut gathered = std::mem::take(&mut self.partial_head);
        let len_before = gathered.len();
        let window = first_bytes(bytes, (HEAD_BYTES_MAX - len_before) as u64);
        gathered.extend_from_slice(window);
        let outcome = head::parse(&gathered, self.method_is_head, sink)?;
        if !matches!(outcome, HeadOutcome::Partial) {
            gathered.clear();
        }
        self.partial_head = gathered;
        // A head that was not whole before ends within the new bytes.
        match outcome {
            HeadOutcome::Partial => Ok(window.len()),
            HeadOutcome::Interim { len } => self.pass_interim(len - len_before),
            HeadOutcome::Final { len, framing } => Ok(self.begin_body(len - len_before, framing)),
        }
    }

    fn pass_interim(&mut self, used: usize) -> Result<usize, ParseError> {
        self.interim_count += 1;
        if self.interim_count > INTERIM_COUNT_MAX {
            return Err(ParseError::TooManyInterims);
        }
        Ok(used)
    }

    fn begin_body(&mut self, used: usize, framing: Framing) -> usize {
        self.status = framing.status;
        self.keep_alive = framing.keep_alive;
        self.state = framing.body;
        if let State::Length { left } = self.state {
            self.body_bytes_stated = Some(left);
        }
        used
    }
}

fn first_bytes(bytes: &[u8], count_max: u64) -> &[u8] {
    &bytes[..bytes.len().min(usize::try_from(count_max).unwrap_or(usize::MAX))]
}
