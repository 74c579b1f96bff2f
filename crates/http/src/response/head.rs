//! The head of an answer: its fields, and what they say about the body (RFC 9112, section 6.3).

use std::mem::MaybeUninit;

use super::chunked::ChunkedBody;
use super::{ParseError, ResponseSink, State};

/// The longest head that is taken.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// The most header fields that are taken.
pub const HEADERS_COUNT_MAX: usize = 100;

/// How the TLS records begin that a server may send unasked (RFC 8446, section 5.1).
const TLS_ALERT: u8 = 21;
const TLS_HANDSHAKE: u8 = 22;
const TLS_MAJOR: u8 = 3;

/// The head of an answer.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The status code.
    pub status: u16,
    /// The text behind it; empty if there is none.
    pub reason: &'a str,
    /// The header fields in the order received.
    pub headers: &'a [httparse::Header<'a>],
    /// What Content-Length states, where it stands (also for HEAD, where no body follows).
    pub content_length: Option<u64>,
}

impl ResponseHead<'_> {
    /// Returns the first field of that name (letters of either case) if its value is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = self.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(field.value).ok()
    }
}

/// What a final head says about the body and the connection.
pub(super) struct Framing {
    pub(super) status: u16,
    pub(super) keep_alive: bool,
    pub(super) body: State,
}

pub(super) enum HeadOutcome {
    Partial,
    Interim { len: usize },
    Final { len: usize, framing: Framing },
}

/// Parses the head at the start of `bytes`, at most [`HEAD_BYTES_MAX`], and shows a final one to
/// `sink`.
pub(super) fn parse(
    bytes: &[u8],
    method_is_head: bool,
    sink: &mut dyn ResponseSink,
) -> Result<HeadOutcome, ParseError> {
    // Left uninitialised: clearing 3 KiB for every answer would cost more than parsing it.
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_COUNT_MAX];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    let len = match parsed {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => {
            return Ok(HeadOutcome::Partial);
        }
        Ok(httparse::Status::Partial) => return Err(ParseError::HeadTooLong),
        Err(httparse::Error::TooManyHeaders) => return Err(ParseError::TooManyHeaders),
        // The first byte of a TLS record: the second one will tell.
        Err(_) if matches!(bytes, [TLS_ALERT | TLS_HANDSHAKE]) => return Ok(HeadOutcome::Partial),
        Err(_) if matches!(bytes, [TLS_ALERT | TLS_HANDSHAKE, TLS_MAJOR, ..]) => {
            return Err(ParseError::Tls);
        }
        Err(error) => return Err(ParseError::Head(error)),
    };
    let status = response.code.expect("a complete head has a status");
    match status {
        ..=99 | 101 => return Err(ParseError::Status(status)),
        100..=199 => return Ok(HeadOutcome::Interim { len }),
        _ => {}
    }
    let fields = Fields::of(response.headers)?;
    let version_minor = response.version.expect("a complete head has a version");
    let framing = fields.framing(status, version_minor, method_is_head)?;
    sink.head(&ResponseHead {
        status,
        reason: response.reason.unwrap_or_default(),
        headers: response.headers,
        content_length: fields.content_length,
    });
    Ok(HeadOutcome::Final { len, framing })
}

/// Returns what Content-Length states among the fields of an answer.
pub(crate) fn content_length(headers: &[httparse::Header<'_>]) -> Result<Option<u64>, ParseError> {
    Fields::of(headers).map(|fields| fields.content_length)
}

/// The header fields that decide over body and connection.
#[derive(Default)]
struct Fields {
    content_length: Option<u64>,
    transfer_encoding_count: u32,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn of(headers: &[httparse::Header<'_>]) -> Result<Self, ParseError> {
        let mut fields = Self::default();
        for header in headers {
            // The length is compared first because that settles it for nearly every field.
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    for option in list(header.value) {
                        fields.close |= option.eq_ignore_ascii_case(b"close");
                        fields.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    fields.add_content_length(header.value)?;
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    fields.transfer_encoding_count += 1;
                    fields.chunked = header.value.trim_ascii().eq_ignore_ascii_case(b"chunked");
                }
                _ => {}
            }
        }
        Ok(fields)
    }

    /// Adds a field's value; the same size may be stated several times (RFC 9112, section 6.3, rule
    /// 5).
    fn add_content_length(&mut self, value: &[u8]) -> Result<(), ParseError> {
        for text in list(value) {
            if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
                return Err(ParseError::ContentLength);
            }
            let text = std::str::from_utf8(text).map_err(|_| ParseError::ContentLength)?;
            let size = text.parse().map_err(|_| ParseError::ContentLength)?;
            if self.content_length.is_some_and(|stated| stated != size) {
                return Err(ParseError::ContentLengthConflict);
            }
            self.content_length = Some(size);
        }
        Ok(())
    }

    fn framing(
        &self,
        status: u16,
        version_minor: u8,
        method_is_head: bool,
    ) -> Result<Framing, ParseError> {
        let keep_alive = !self.close && (version_minor >= 1 || self.keep_alive);
        if method_is_head || matches!(status, 204 | 304) {
            return Ok(Framing { status, keep_alive, body: State::Complete });
        }
        let body = match (self.transfer_encoding_count, self.content_length) {
            (0, Some(0)) => State::Complete,
            (0, Some(left)) => State::Length { left },
            (0, None) => State::UntilClose,
            (_, Some(_)) => return Err(ParseError::LengthAndEncoding),
            (1, None) if self.chunked && version_minor >= 1 => State::Chunked(ChunkedBody::new()),
            (_, None) => return Err(ParseError::TransferEncoding),
        };
        let keep_alive = keep_alive && !matches!(body, State::UntilClose);
        Ok(Framing { status, keep_alive, body })
    }
}

/// Splits a field's value at its commas.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}
