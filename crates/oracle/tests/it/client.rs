//! A client that signs with another's code, speaks HTTP by hand and remembers nothing.

#![expect(clippy::disallowed_methods, reason = "a signature carries the wall time")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What the signing rules leave as it is in a path.
const PATH_SAFE: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// Who asks, and how.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) addr: SocketAddr,
    /// Key id and secret; unsigned without.
    pub(crate) keys: Option<(&'static str, &'static str)>,
    /// How far the client's clock is ahead of the server's, in seconds.
    pub(crate) ahead_secs: i64,
    /// The Host header; the address without.
    pub(crate) host: Option<&'static str>,
    pub(crate) payload: Payload,
}

#[derive(Clone, Copy)]
pub(crate) enum Payload {
    Signed,
    /// Signed as if the body were this.
    SignedAs(&'static [u8]),
    Unsigned,
    /// In chunks, with a checksum behind them.
    Trailer,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn request(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut socket = TcpStream::connect(self.addr).unwrap();
        self.converse(&mut socket, method, target, headers, body)
    }

    pub(crate) fn converse(
        &self,
        socket: &mut (impl Read + Write),
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut request = self.head(method, target, headers, body).into_bytes();
        request.extend_from_slice(body);
        socket.write_all(&request).unwrap();
        read_answer(socket, method == "HEAD")
    }

    /// Returns the signed head of a request.
    pub(crate) fn head(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> String {
        let host = self.host.map_or_else(|| self.addr.to_string(), str::to_owned);
        let mut all = vec![("host".to_owned(), host.clone())];
        all.extend(headers.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        if let Some((key_id, secret)) = self.keys {
            let signed = self.signature(key_id, secret, method, &host, target, &all, body);
            all.extend(signed);
        }
        let length = body.len();
        let mut head = format!("{method} {target} HTTP/1.1\r\ncontent-length: {length}\r\n");
        for (name, value) in all {
            head += &format!("{name}: {value}\r\n");
        }
        head + "\r\n"
    }

    #[expect(clippy::too_many_arguments, reason = "a request has that many parts")]
    fn signature(
        &self,
        key_id: &str,
        secret: &str,
        method: &str,
        host: &str,
        target: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Vec<(String, String)> {
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let offset = Duration::from_secs(self.ahead_secs.unsigned_abs());
        let now = SystemTime::now();
        let time = if self.ahead_secs < 0 { now - offset } else { now + offset };
        let identity = Credentials::new(key_id, secret, None, None, "test").into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region("us-east-1")
            .name("s3")
            .time(time)
            .settings(settings)
            .build()
            .unwrap()
            .into();
        let body = match self.payload {
            Payload::Signed => SignableBody::Bytes(body),
            Payload::SignedAs(other) => SignableBody::Bytes(other),
            Payload::Unsigned => SignableBody::UnsignedPayload,
            Payload::Trailer => SignableBody::StreamingUnsignedPayloadTrailer,
        };
        let url = format!("http://{host}{target}");
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let request = SignableRequest::new(method, &url, headers, body).unwrap();
        let (instructions, _) = sign(request, &params).unwrap().into_parts();
        let added = instructions.headers();
        added.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Returns the unescaped text of every element of that name.
    pub(crate) fn elements(&self, name: &str) -> Vec<String> {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let tails = self.text().split(&open).skip(1);
        tails.map(|tail| unescape(tail.split_once(&close).unwrap().0)).collect()
    }

    /// Returns the status and the code of an error.
    pub(crate) fn error(&self) -> (u16, String) {
        (self.status, self.elements("Code").join(","))
    }
}

/// Returns the path of a key.
pub(crate) fn path(bucket: &str, key: &str) -> String {
    format!("/{bucket}/{}", utf8_percent_encode(key, &PATH_SAFE))
}

pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

fn unescape(text: &str) -> String {
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    named.iter().fold(text.to_owned(), |text, (escape, letter)| text.replace(escape, letter))
}

/// Reads one answer; that to HEAD has a length but no body.
pub(crate) fn read_answer(socket: &mut impl Read, headless: bool) -> Answer {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let count = socket.read(&mut piece).unwrap();
        assert!(count > 0, "the connection ended before the answer did: {bytes:?}");
        bytes.extend_from_slice(&piece[..count]);
        let Some(head_end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let mut answer = read_head(std::str::from_utf8(&bytes[..head_end]).unwrap());
        assert_eq!(answer.header("transfer-encoding"), None, "every answer has its length");
        let length = match headless {
            true => 0,
            false => answer.header("content-length").map_or(0, |length| length.parse().unwrap()),
        };
        let body = head_end + 4;
        if bytes.len() - body >= length {
            answer.body = bytes.split_off(body);
            assert_eq!(answer.body.len(), length);
            return answer;
        }
    }
}

fn read_head(head: &str) -> Answer {
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Answer { status, headers, body: Vec::new() }
}
