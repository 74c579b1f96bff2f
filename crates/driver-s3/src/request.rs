//! The requests this driver makes, rendered and signed into one reused buffer.

use std::io::Write as _;
use std::sync::Arc;

use plimsoll_driver::ByteRange;
use plimsoll_model::WallTime;

use crate::addressing::Target;
use crate::digests::PayloadDigests;
use crate::encode;
use crate::sigv4::{HeadWriter, Signer};
use crate::{Credentials, S3Config};

const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// One request.
#[derive(Clone, Copy)]
pub(crate) enum Call<'a> {
    Put { key: &'a str, size: u64 },
    Get { key: &'a str, range: Option<ByteRange> },
    Stat { key: &'a str },
    Delete { key: &'a str },
    DeleteMany { body_len: usize },
    List(Page<'a>),
    HeadBucket,
    CreateBucket { body_len: usize },
}

/// One page of a listing.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) page_size: u32,
    /// Whether the listing follows `/` down.
    pub(crate) recursive: bool,
    /// Where the page before ended.
    pub(crate) token: Option<&'a str>,
}

impl Call<'_> {
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Put { .. } | Self::CreateBucket { .. } => "PUT",
            Self::Get { .. } | Self::List(_) => "GET",
            Self::Stat { .. } | Self::HeadBucket => "HEAD",
            Self::Delete { .. } => "DELETE",
            Self::DeleteMany { .. } => "POST",
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Self::Put { key, .. }
            | Self::Get { key, .. }
            | Self::Stat { key }
            | Self::Delete { key } => Some(key),
            Self::DeleteMany { .. }
            | Self::List(_)
            | Self::HeadBucket
            | Self::CreateBucket { .. } => None,
        }
    }

    fn content_length(&self) -> Option<u64> {
        match self {
            Self::Put { size, .. } => Some(*size),
            Self::DeleteMany { body_len } | Self::CreateBucket { body_len } => {
                Some(*body_len as u64)
            }
            _ => None,
        }
    }

    fn content_type(&self) -> Option<&'static [u8]> {
        match self {
            Self::Put { .. } => Some(b"application/octet-stream"),
            Self::DeleteMany { .. } => Some(b"application/xml"),
            Self::CreateBucket { body_len } if *body_len > 0 => Some(b"application/xml"),
            _ => None,
        }
    }
}

/// Renders requests for one target.
pub(crate) struct Requests {
    target: Arc<Target>,
    writer: HeadWriter,
    session_token: Option<String>,
    path: Vec<u8>,
    query: Vec<u8>,
    /// For values made of numbers.
    value: Vec<u8>,
}

impl Requests {
    pub(crate) fn new(config: &S3Config, target: Arc<Target>) -> Self {
        let (signer, session_token) = match &config.credentials {
            Credentials::Anonymous => (None, None),
            Credentials::Keys { access_key, secret_key, session_token } => {
                let signer = Signer::new(access_key, secret_key, &target.region, "s3");
                (Some(signer), session_token.clone())
            }
        };
        let writer = HeadWriter::new(signer);
        let (path, query, value) = (Vec::new(), Vec::new(), Vec::new());
        Self { target, writer, session_token, path, query, value }
    }

    /// Renders the head of `call` to an endpoint at a time; [`Self::head`] then holds it.
    pub(crate) fn render(
        &mut self,
        call: &Call<'_>,
        digests: &PayloadDigests,
        endpoint: usize,
        now: WallTime,
    ) {
        let target = self.target.clone();
        let address = &target.addresses[endpoint];
        self.render_path(&address.path_prefix, call.key());
        self.render_query(call);
        self.writer.begin(call.method(), &self.path, &self.query);
        if let Some(len) = call.content_length() {
            self.value.clear();
            write!(self.value, "{len}").expect("writing to memory does not fail");
            self.writer.plain_header("content-length", &self.value);
        }
        self.writer.plain_header("user-agent", USER_AGENT.as_bytes());
        if let Some(md5) = &digests.md5 {
            self.writer.signed_header("content-md5", md5);
        }
        if let Some(content_type) = call.content_type() {
            self.writer.signed_header("content-type", content_type);
        }
        self.writer.signed_header("host", address.host_header.as_bytes());
        if let Call::Get { range: Some(range), .. } = call {
            self.value.clear();
            let last = range.offset + range.len - 1;
            write!(self.value, "bytes={}-{last}", range.offset)
                .expect("writing to memory does not fail");
            self.writer.signed_header("range", &self.value);
        }
        let payload = digests.hash.as_bytes();
        if let Some(stamp) = self.writer.advance(now) {
            self.writer.signed_header("x-amz-content-sha256", payload);
            self.writer.signed_header("x-amz-date", &stamp);
            if let Some(token) = &self.session_token {
                self.writer.signed_header("x-amz-security-token", token.as_bytes());
            }
        }
        self.writer.finish(payload);
    }

    /// Returns the head rendered last.
    pub(crate) fn head(&self) -> &[u8] {
        self.writer.head()
    }

    fn render_path(&mut self, prefix: &str, key: Option<&str>) {
        self.path.clear();
        self.path.extend_from_slice(prefix.as_bytes());
        match key {
            Some(key) => {
                self.path.push(b'/');
                encode::push_path(&mut self.path, key);
            }
            None if prefix.is_empty() => self.path.push(b'/'),
            None => {}
        }
    }

    /// Renders the query with its parameters in ascending order, as the signature wants them.
    fn render_query(&mut self, call: &Call<'_>) {
        let query = &mut self.query;
        query.clear();
        match call {
            Call::DeleteMany { .. } => query.extend_from_slice(b"delete="),
            Call::List(page) => {
                if let Some(token) = page.token {
                    query.extend_from_slice(b"continuation-token=");
                    encode::push_query(query, token);
                    query.push(b'&');
                }
                if !page.recursive {
                    query.extend_from_slice(b"delimiter=%2F&");
                }
                write!(query, "encoding-type=url&list-type=2&max-keys={}&prefix=", page.page_size)
                    .expect("writing to memory does not fail");
                encode::push_query(query, page.prefix);
            }
            _ => {}
        }
    }
}

/// Appends the body of a multi-object delete that answers only what failed.
pub(crate) fn push_delete_body<'k>(out: &mut Vec<u8>, keys: impl Iterator<Item = &'k str>) {
    out.extend_from_slice(
        b"<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>",
    );
    for key in keys {
        out.extend_from_slice(b"<Object><Key>");
        push_xml_text(out, key);
        out.extend_from_slice(b"</Key></Object>");
    }
    out.extend_from_slice(b"</Delete>");
}

/// Returns the body of a request to make a bucket in a region other than the default.
pub(crate) fn location_body(region: &str) -> Vec<u8> {
    let mut out = b"<CreateBucketConfiguration \
        xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><LocationConstraint>"
        .to_vec();
    push_xml_text(&mut out, region);
    out.extend_from_slice(b"</LocationConstraint></CreateBucketConfiguration>");
    out
}

/// Appends text as XML, control characters as references so that no parser normalises them. (Those
/// that XML 1.0 cannot hold in any form make strict servers refuse the request.)
fn push_xml_text(out: &mut Vec<u8>, text: &str) {
    for &byte in text.as_bytes() {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            0..0x20 | 0x7f => {
                write!(out, "&#x{byte:X};").expect("writing to memory does not fail");
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests;
