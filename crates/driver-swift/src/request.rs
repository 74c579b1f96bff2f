//! Requests as bytes: heads, paths, and content in chunks.

use std::io::Write as _;

use md5::{Digest as _, Md5};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_encode};
use plimsoll_driver::{ByteRange, ContentSource};

/// What stands before the token in the head of a request.
pub(crate) const TOKEN_HEADER: &str = "X-Auth-Token: ";

/// What needs an escape in a path: all that RFC 3986 does not call unreserved, but for `/`.
const IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// How much content one chunk holds.
const CHUNK_BYTES: u64 = 64 << 10;
/// What stands before such a chunk: its length in hexadecimal.
const CHUNK_HEAD: &str = "10000\r\n";
const CHUNK_TAIL: &str = "\r\n";
/// What ends a body in chunks.
const LAST_CHUNK: &str = "0\r\n\r\n";

/// Returns a text as it stands in a path, or in a query, where `/` needs no escape either.
pub(crate) fn encoded(text: &str) -> PercentEncode<'_> {
    percent_encode(text.as_bytes(), IN_PATH)
}

/// What follows a head, and what else it says.
#[derive(Clone, Copy)]
pub(crate) enum Follows<'a> {
    Nothing,
    /// Nothing; a range is asked for.
    Range(ByteRange),
    /// Nothing; what is asked for is a document.
    Document,
    /// So many bytes.
    Bytes(u64),
    /// Bytes in chunks.
    Chunks,
    /// So many bytes of JSON.
    Json(u64),
    /// No bytes, with these headers.
    Headers(&'a [(&'a str, &'a str)]),
}

/// One request about an account, a container or an object.
pub(crate) struct Head<'a> {
    pub(crate) method: &'static str,
    /// The path, with its leading `/`, in characters that need no escape.
    pub(crate) path: &'a str,
    /// The query, with its leading `?`; may be empty.
    pub(crate) query: &'a str,
    pub(crate) host: &'a str,
    /// The token; empty for none.
    pub(crate) token: &'a str,
}

impl Head<'_> {
    /// Renders the head into `out`, which held the one before.
    pub(crate) fn render(&self, follows: Follows<'_>, out: &mut Vec<u8>) {
        out.clear();
        let Self { method, path, query, host, token } = self;
        let path = if path.is_empty() { "/" } else { path };
        let mut write = |text: std::fmt::Arguments<'_>| {
            out.write_fmt(text).expect("memory takes everything");
        };
        write(format_args!("{method} {path}{query} HTTP/1.1\r\nHost: {host}\r\n"));
        if !token.is_empty() {
            write(format_args!("{TOKEN_HEADER}{token}\r\n"));
        }
        const OCTETS: &str = "Content-Type: application/octet-stream\r\n";
        match follows {
            Follows::Nothing => {}
            Follows::Range(ByteRange { offset, len }) => {
                write(format_args!("Range: bytes={offset}-{}\r\n", offset + len - 1));
            }
            Follows::Document => write(format_args!("Accept: application/json\r\n")),
            Follows::Bytes(len) => write(format_args!("{OCTETS}Content-Length: {len}\r\n")),
            Follows::Chunks => write(format_args!("{OCTETS}Transfer-Encoding: chunked\r\n")),
            Follows::Json(len) => write(format_args!(
                "Content-Type: application/json\r\nAccept: application/json\r\n\
                 Content-Length: {len}\r\n"
            )),
            Follows::Headers(headers) => {
                for (name, value) in headers {
                    write(format_args!("{name}: {value}\r\n"));
                }
                write(format_args!("Content-Length: 0\r\n"));
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Content on its way, within the frames of chunks where it has these, with its sum where that is
/// wanted.
pub(crate) struct Upload<'a> {
    content: &'a mut dyn ContentSource,
    size: u64,
    is_chunked: bool,
    sum: Option<Md5>,
}

impl<'a> Upload<'a> {
    pub(crate) fn new(content: &'a mut dyn ContentSource, is_chunked: bool, sums: bool) -> Self {
        let size = content.size();
        Self { content, size, is_chunked, sum: sums.then(Md5::new) }
    }

    /// Returns how many bytes of content it has.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns what its head says of it.
    pub(crate) fn follows(&self) -> Follows<'static> {
        if self.is_chunked { Follows::Chunks } else { Follows::Bytes(self.size) }
    }

    /// Returns how many bytes go over the wire.
    pub(crate) fn len(&self) -> u64 {
        if !self.is_chunked {
            return self.size;
        }
        let (whole, rest) = (self.size / CHUNK_BYTES, self.size % CHUNK_BYTES);
        let rest = if rest == 0 { 0 } else { chunk_head(rest).len() as u64 + rest + 2 };
        whole * chunk_len() + rest + LAST_CHUNK.len() as u64
    }

    /// Returns the sum of what was handed out, in hexadecimal, where one was wanted.
    pub(crate) fn sum(&self) -> Option<String> {
        let sum = self.sum.clone()?.finalize();
        Some(sum.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Fills `buffer` with what goes over the wire from `offset` on; called piece by piece, in
    /// order.
    pub(crate) fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        if !self.is_chunked {
            return self.take(offset, buffer);
        }
        let (mut offset, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            // What ends the body counts to the last chunk.
            let number = (offset / chunk_len()).min(self.size / CHUNK_BYTES);
            let within = offset - number * chunk_len();
            let size = (self.size - number * CHUNK_BYTES).min(CHUNK_BYTES);
            let len = match size {
                0 => copy(LAST_CHUNK, within, rest),
                CHUNK_BYTES => self.fill_chunk(CHUNK_HEAD, number, size, within, rest),
                // The last one with content, and what ends the body behind it.
                _ => {
                    let head = chunk_head(size);
                    let whole = head.len() as u64 + size + CHUNK_TAIL.len() as u64;
                    match within.checked_sub(whole) {
                        Some(behind) => copy(LAST_CHUNK, behind, rest),
                        None => self.fill_chunk(&head, number, size, within, rest),
                    }
                }
            };
            offset += len as u64;
            rest = &mut rest[len..];
        }
    }

    /// Fills a buffer with what stands `within` bytes behind the beginning of a chunk, as far as
    /// one piece of it goes.
    fn fill_chunk(
        &mut self,
        head: &str,
        number: u64,
        size: u64,
        within: u64,
        buffer: &mut [u8],
    ) -> usize {
        let Some(at) = within.checked_sub(head.len() as u64) else {
            return copy(head, within, buffer);
        };
        if at >= size {
            return copy(CHUNK_TAIL, at - size, buffer);
        }
        let len = (size - at).min(buffer.len() as u64) as usize;
        self.take(number * CHUNK_BYTES + at, &mut buffer[..len]);
        len
    }

    fn take(&mut self, offset: u64, buffer: &mut [u8]) {
        self.content.fill(offset, buffer);
        if let Some(sum) = &mut self.sum {
            sum.update(buffer);
        }
    }
}

const fn chunk_len() -> u64 {
    CHUNK_HEAD.len() as u64 + CHUNK_BYTES + CHUNK_TAIL.len() as u64
}

fn chunk_head(size: u64) -> String {
    format!("{size:x}\r\n")
}

/// Copies what of a text stands from there on, and returns how much fitted.
fn copy(text: &str, from: u64, buffer: &mut [u8]) -> usize {
    let text = &text.as_bytes()[from as usize..];
    let len = text.len().min(buffer.len());
    buffer[..len].copy_from_slice(&text[..len]);
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Letters(u64);

    impl ContentSource for Letters {
        fn size(&self) -> u64 {
            self.0
        }

        fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
            for (at, byte) in (offset..).zip(buffer) {
                *byte = b'a' + (at % 23) as u8;
            }
        }
    }

    /// Takes a body in chunks apart as RFC 9112, section 7.1, says.
    fn decoded(mut body: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        loop {
            let line = body.windows(2).position(|of| of == b"\r\n").unwrap();
            let size = usize::from_str_radix(str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
            body = &body[line + 2..];
            content.extend_from_slice(&body[..size]);
            assert_eq!(&body[size..size + 2], b"\r\n");
            body = &body[size + 2..];
            if size == 0 {
                assert!(body.is_empty());
                return content;
            }
        }
    }

    #[test]
    fn chunks_hold_the_content_however_they_are_taken() {
        for size in [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000] {
            let mut expected = vec![0; size as usize];
            Letters(size).fill(0, &mut expected);
            for piece in [1_000, 65_543, 1 << 18] {
                let mut content = Letters(size);
                let mut upload = Upload::new(&mut content, true, true);
                let mut sent = vec![0; upload.len() as usize];
                for (number, part) in sent.chunks_mut(piece).enumerate() {
                    upload.fill((number * piece) as u64, part);
                }
                assert!(decoded(&sent) == expected, "{size} in pieces of {piece}");
                let sum = Md5::digest(&expected);
                let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(upload.sum(), Some(sum));
            }
        }
    }

    #[test]
    fn heads_are_whole() {
        let head = Head { method: "PUT", path: "/v1/a/c", query: "?x=1", host: "h", token: "t" };
        let mut out = b"before".to_vec();
        head.render(Follows::Headers(&[("X-Storage-Policy", "gold")]), &mut out);
        let expected = "PUT /v1/a/c?x=1 HTTP/1.1\r\nHost: h\r\nX-Auth-Token: t\r\n\
                        X-Storage-Policy: gold\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        let head = Head { method: "GET", query: "", token: "", ..head };
        head.render(Follows::Range(ByteRange { offset: 10, len: 5 }), &mut out);
        let expected = "GET /v1/a/c HTTP/1.1\r\nHost: h\r\nRange: bytes=10-14\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn names_are_escaped_and_slashes_are_not() {
        let name = "a b/100%25 ?#ä~-._";
        assert_eq!(encoded(name).to_string(), "a%20b/100%2525%20%3F%23%C3%A4~-._");
    }
}
