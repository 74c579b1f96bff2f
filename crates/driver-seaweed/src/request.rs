//! Requests to volume servers and filers as bytes.

use std::io::Write as _;

use plimsoll_driver::ByteRange;

/// What parts the one file of a form from its frame; no content that is made here holds it.
macro_rules! boundary {
    () => {
        "plimsoll7d1c0e5b9a2f4c6e8d3b5a7f9c1e2d4b6a8c0e1f3d5b7a9c2e4f6d8b"
    };
}

const BOUNDARY: &str = boundary!();

/// The type of what is written, which is that of `weed benchmark`: nobody compresses it, where
/// `application/octet-stream` makes the server look at the content and decide by itself.
macro_rules! uncompressed {
    () => {
        "image/bench"
    };
}

pub(crate) const UNCOMPRESSED: &str = uncompressed!();

/// The frame of a form around its one file.
const FORM_HEAD: &str = concat!(
    "--",
    boundary!(),
    "\r\n",
    "Content-Disposition: form-data; name=\"file\"; filename=\".\"\r\n",
    "Content-Type: ",
    uncompressed!(),
    "\r\n\r\n"
);
const FORM_TAIL: &str = concat!("\r\n--", boundary!(), "--\r\n");

/// Returns the bytes around content of an upload.
pub(crate) const fn frame(is_form: bool) -> (&'static [u8], &'static [u8]) {
    match is_form {
        true => (FORM_HEAD.as_bytes(), FORM_TAIL.as_bytes()),
        false => (b"", b""),
    }
}

/// One request about one file.
pub(crate) struct FileRequest<'a> {
    pub(crate) method: &'static str,
    /// The path, with its leading `/`, in characters that need no escape.
    pub(crate) path: std::fmt::Arguments<'a>,
    /// The query, with its leading `?`; may be empty.
    pub(crate) query: &'a str,
    /// The name of the server.
    pub(crate) host: &'a str,
    /// The token; empty for none.
    pub(crate) token: &'a str,
}

/// What follows a head.
#[derive(Clone, Copy)]
pub(crate) enum Follows {
    Nothing,
    Form(u64),
    Bytes(u64),
    /// Nothing; a range is asked for.
    Range(ByteRange),
    /// Nothing; what is asked for is a document, not a page to look at.
    Document,
    /// No bytes, which is to be said.
    NoBytes,
}

impl FileRequest<'_> {
    /// Renders the head into `out`, which held the one before.
    pub(crate) fn render(&self, follows: Follows, out: &mut Vec<u8>) {
        out.clear();
        let Self { method, path, query, host, token } = self;
        let begun = write!(out, "{method} {path}{query} HTTP/1.1\r\nHost: {host}\r\n");
        begun.expect("memory takes everything");
        if !token.is_empty() {
            write!(out, "Authorization: Bearer {token}\r\n").expect("memory takes everything");
        }
        let written = match follows {
            Follows::Nothing => Ok(()),
            Follows::Form(len) => write!(
                out,
                "Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {len}\r\n"
            ),
            // Without a type, the server would take the bytes for a form.
            Follows::Bytes(len) => {
                write!(out, "Content-Type: {UNCOMPRESSED}\r\nContent-Length: {len}\r\n")
            }
            Follows::Range(range) => {
                let last = range.offset + range.len - 1;
                write!(out, "Range: bytes={}-{last}\r\n", range.offset)
            }
            Follows::Document => write!(out, "Accept: application/json\r\n"),
            Follows::NoBytes => write!(out, "Content-Length: 0\r\n"),
        };
        written.expect("memory takes everything");
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_and_the_head_name_one_boundary() {
        let (head, tail) = frame(true);
        let (head, tail) = (str::from_utf8(head).unwrap(), str::from_utf8(tail).unwrap());
        assert!(head.starts_with(&format!("--{BOUNDARY}\r\n")) && head.ends_with("\r\n\r\n"));
        assert_eq!(tail, format!("\r\n--{BOUNDARY}--\r\n"));
        assert!(BOUNDARY.len() <= 70, "RFC 2046, section 5.1.1");
    }

    #[test]
    fn heads_are_whole() {
        let request = FileRequest {
            method: "POST",
            path: format_args!("/3,01637037d6"),
            query: "?fsync=true",
            host: "v1:8080",
            token: "a.b.c",
        };
        let mut out = b"before".to_vec();
        request.render(Follows::Bytes(5), &mut out);
        let expected = "POST /3,01637037d6?fsync=true HTTP/1.1\r\nHost: v1:8080\r\nAuthorization: \
                        Bearer a.b.c\r\nContent-Type: image/bench\r\n\
                        Content-Length: 5\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let get = FileRequest { method: "GET", query: "", token: "", ..request };
        let mut out = Vec::new();
        get.render(Follows::Range(ByteRange { offset: 10, len: 5 }), &mut out);
        let expected = "GET /3,01637037d6 HTTP/1.1\r\nHost: v1:8080\r\nRange: bytes=10-14\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
