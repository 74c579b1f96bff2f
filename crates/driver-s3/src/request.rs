//! The requests this driver makes, rendered and signed into one reused buffer.

use std::io::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_http::Proxies;
use plimsoll_model::{Secret, WallTime};

use crate::addressing::{Address, Target};
use crate::checksum;
use crate::digests::{PayloadDigests, PayloadHash};
use crate::encode;
use crate::headers::{Header, OptionHeaders};
use crate::redaction::Redaction;
use crate::s3_request::{PutHow, S3Request};
use crate::sigv2::SignerV2;
use crate::sigv4::{Dated, HeadWriter, Signer, Signing, Stamp};
use crate::{Checksum, Credentials, Keys, S3Config, SharedKeys, Signature};

pub(crate) const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// Renders requests for one target.
pub(crate) struct Requests {
    target: Arc<Target>,
    writer: HeadWriter,
    /// Which of the keys' generations is signed with.
    keys: Option<(SharedKeys, u64)>,
    session_token: Option<Secret>,
    /// Hides the secrets of the keys that are signed with.
    redaction: Rc<Redaction>,
    /// Who asks the proxies on the way.
    proxy_secrets: Vec<Secret>,
    /// Signs forms, with Signature V4 whatever signs heads; `None` without a key.
    form_signer: Option<Box<Signer>>,
    signature: Signature,
    path: Vec<u8>,
    query: Vec<u8>,
    /// For values made of numbers.
    value: Vec<u8>,
}

impl Requests {
    pub(crate) fn new(config: &S3Config, target: Arc<Target>) -> Self {
        let keys = match &config.credentials {
            Credentials::Anonymous => None,
            Credentials::Keys(keys) => Some((keys.clone(), 0)),
        };
        let mut requests = Self {
            target,
            writer: HeadWriter::new(Signing::Anonymous),
            keys,
            session_token: None,
            redaction: Rc::default(),
            proxy_secrets: config.proxies.as_ref().map(Proxies::secrets).unwrap_or_default(),
            form_signer: None,
            signature: config.options.signature,
            path: Vec::new(),
            query: Vec::new(),
            value: Vec::new(),
        };
        requests.take_keys();
        requests
    }

    /// Returns what to look at when a store denies what was asked.
    #[cold]
    pub(crate) fn whom_to_check(&self) -> String {
        let Some((keys, _)) = &self.keys else {
            return "it was sent without keys: give `access_key` and `secret_key`".to_owned();
        };
        let (_, keys) = keys.current();
        let named = || "`access_key`, `secret_key`".to_owned();
        let keys = keys.source.as_ref().map_or_else(named, |from| format!("the keys from {from}"));
        format!("check {keys} and what they may do")
    }

    /// Makes ready to sign with the keys that hold now.
    #[cold]
    fn take_keys(&mut self) {
        let customer_key = self.target.headers.customer_key();
        let customer_key = customer_key.map(|text| Secret::from(text.to_owned()));
        let others = customer_key.into_iter().chain(self.proxy_secrets.clone());
        let Some((shared, generation)) = &mut self.keys else {
            return self.redaction.hide(others);
        };
        let keys;
        (*generation, keys) = shared.current();
        let Keys { access_key, secret_key, session_token, .. } = &*keys;
        let signer = || Box::new(Signer::new(access_key, secret_key, &self.target.region, "s3"));
        self.writer.sign_by(match self.signature {
            Signature::V4 => Signing::V4(signer()),
            Signature::V2 => Signing::V2(Box::new(SignerV2::new(access_key, secret_key.expose()))),
        });
        self.form_signer = Some(signer());
        self.session_token.clone_from(session_token);
        self.redaction.hide(shared.secrets().into_iter().chain(others));
    }

    /// Makes ready to sign with the keys that hold now, where they were replaced.
    #[inline]
    pub(crate) fn follow_keys(&mut self) {
        if let Some((shared, generation)) = &self.keys
            && shared.generation() != *generation
        {
            self.take_keys();
        }
    }

    /// Renders the head of `call` to an address at a time; [`Self::head`] then holds it.
    pub(crate) fn render(
        &mut self,
        call: &S3Request<'_>,
        digests: &PayloadDigests,
        address: &Address,
        now: WallTime,
    ) {
        self.follow_keys();
        self.render_path(&address.path_prefix, call);
        self.query.clear();
        call.push_query(&mut self.query);
        self.writer.begin(call.method(), &address.host_bucket, &self.path, &self.query);
        let chunked = match digests.hash {
            PayloadHash::Trailing(checksum) => Some(checksum),
            _ => None,
        };
        if let Some(len) = call.content_length() {
            let wire_len = chunked.map_or(len, |checksum| checksum::encoded_len(len, checksum));
            self.value.clear();
            write!(self.value, "{wire_len}").expect("writing to memory does not fail");
            self.writer.plain_header("content-length", &self.value);
        }
        self.writer.plain_header("user-agent", USER_AGENT.as_bytes());
        if chunked.is_some() {
            self.writer.signed_header("content-encoding", b"aws-chunked");
        }
        if let Some(md5) = &digests.md5 {
            self.writer.signed_header("content-md5", md5);
        }
        if let Some(content_type) = call.content_type() {
            self.writer.signed_header("content-type", content_type);
        }
        if let S3Request::Form { .. } = call {
            // The form brings its own signature.
            self.writer.plain_header("host", address.host_header.as_bytes());
            self.writer.finish_unsigned();
            return;
        }
        let dated = self.writer.advance(now);
        if let Dated::Http(date) = &dated {
            self.writer.signed_header("date", date);
        }
        self.writer.signed_header("host", address.host_header.as_bytes());
        if self.target.headers.if_none_match && call.makes_object() {
            self.writer.signed_header("if-none-match", b"*");
        }
        if let S3Request::Get { range: Some(range), .. } = call {
            self.value.clear();
            let last = range.offset + range.len - 1;
            write!(self.value, "bytes={}-{last}", range.offset)
                .expect("writing to memory does not fail");
            self.writer.signed_header("range", &self.value);
        }
        self.render_amz(call, digests, &dated);
        self.writer.finish(digests.hash.as_bytes());
    }

    /// Renders the headers of S3's own, from `x-amz-a` to `x-minio-z`.
    fn render_amz(&mut self, call: &S3Request<'_>, digests: &PayloadDigests, dated: &Dated) {
        let options: &OptionHeaders = &self.target.headers;
        let mut amz =
            Ascending { writer: &mut self.writer, options: options.of(call.header_set()) };
        match call {
            S3Request::Retain { .. } | S3Request::DeleteMany { bypass: true, .. } => {
                amz.push("x-amz-bypass-governance-retention", b"true");
            }
            S3Request::CreateBucket { lock: true, .. } => {
                amz.push("x-amz-bucket-object-lock-enabled", b"true");
            }
            _ => {}
        }
        if let Some(checksum) = options.checksum {
            match call {
                S3Request::CreateUpload { .. } => {
                    amz.push("x-amz-checksum-algorithm", checksum.algorithm().as_bytes());
                    amz.push("x-amz-checksum-type", checksum.kind().as_bytes());
                }
                S3Request::CompleteUpload { .. } => {
                    amz.push("x-amz-checksum-type", checksum.kind().as_bytes());
                }
                _ => {}
            }
        }
        let chunked = matches!(digests.hash, PayloadHash::Trailing(_));
        if chunked || matches!(dated, Dated::Amz(_)) {
            amz.push("x-amz-content-sha256", digests.hash.as_bytes());
        }
        if let Dated::Amz(stamp) = dated {
            amz.push("x-amz-date", stamp);
        }
        if let (true, Some(len)) = (chunked, call.content_length()) {
            self.value.clear();
            write!(self.value, "{len}").expect("writing to memory does not fail");
            amz.push("x-amz-decoded-content-length", &self.value);
        }
        if let (Some(token), false) = (&self.session_token, matches!(dated, Dated::Nowhere)) {
            amz.push("x-amz-security-token", token.expose().as_bytes());
        }
        if let PayloadHash::Trailing(checksum) = digests.hash {
            amz.push("x-amz-trailer", checksum.header().as_bytes());
        }
        if let S3Request::Put { how: PutHow::Append(offset), .. } = call {
            self.value.clear();
            write!(self.value, "{offset}").expect("writing to memory does not fail");
            amz.push("x-amz-write-offset-bytes", &self.value);
        }
        if let S3Request::GetMember { .. } = call {
            amz.push("x-minio-extract", b"true");
        }
        amz.finish();
    }

    /// Returns the head rendered last.
    pub(crate) fn head(&self) -> &[u8] {
        self.writer.head()
    }

    /// Makes ready to sign a form at a time, and returns the signer and the time as the form states
    /// it; `None` where forms are not signed.
    pub(crate) fn form_signer(&mut self, now: WallTime) -> Option<(&Signer, Stamp)> {
        let stamp = self.form_signer.as_mut()?.advance(now);
        self.form_signer.as_deref().map(|signer| (signer, stamp))
    }

    /// Returns what hides the secrets of these requests, whatever keys they are signed with later.
    pub(crate) fn redaction(&self) -> Rc<Redaction> {
        Rc::clone(&self.redaction)
    }

    /// Returns the token of a temporary key.
    pub(crate) fn session_token(&self) -> Option<&str> {
        self.session_token.as_ref().map(Secret::expose)
    }

    fn render_path(&mut self, prefix: &str, call: &S3Request<'_>) {
        self.path.clear();
        self.path.extend_from_slice(prefix.as_bytes());
        match call.key() {
            Some(key) => {
                self.path.push(b'/');
                encode::push_path(&mut self.path, key);
            }
            None if prefix.is_empty() => self.path.push(b'/'),
            None => {}
        }
        if let S3Request::GetMember { member, .. } = call {
            self.path.push(b'/');
            encode::push_path(&mut self.path, member);
        }
    }
}

/// Adds headers in ascending order and puts those of the options in between.
struct Ascending<'a> {
    writer: &'a mut HeadWriter,
    options: &'a [Header],
}

impl Ascending<'_> {
    fn push(&mut self, name: &str, value: &[u8]) {
        while let [(before, text), rest @ ..] = self.options
            && before.as_str() < name
        {
            self.writer.signed_header(before, text.as_bytes());
            self.options = rest;
        }
        self.writer.signed_header(name, value);
    }

    fn finish(self) {
        for (name, value) in self.options {
            self.writer.signed_header(name, value.as_bytes());
        }
    }
}

/// Appends the body of a multi-object delete that answers only what failed; each object is a key
/// and, where one version of it is meant, that.
pub(crate) fn push_delete_body<'k>(
    out: &mut Vec<u8>,
    objects: impl Iterator<Item = (&'k str, Option<&'k str>)>,
) {
    out.extend_from_slice(
        b"<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>",
    );
    for (key, version) in objects {
        out.extend_from_slice(b"<Object><Key>");
        encode::push_xml_text(out, key);
        out.extend_from_slice(b"</Key>");
        if let Some(version) = version {
            out.extend_from_slice(b"<VersionId>");
            encode::push_xml_text(out, version);
            out.extend_from_slice(b"</VersionId>");
        }
        out.extend_from_slice(b"</Object>");
    }
    out.extend_from_slice(b"</Delete>");
}

/// Appends the body that sets until when an object may not be removed by those who have no leave to
/// lift that.
pub(crate) fn push_retention_body(out: &mut Vec<u8>, until: WallTime) {
    let (year, month, day, hour, minute, second) = until.civil();
    write!(
        out,
        "<Retention xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Mode>GOVERNANCE</Mode>\
         <RetainUntilDate>{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z\
         </RetainUntilDate></Retention>"
    )
    .expect("writing to memory does not fail");
}

/// Appends the body that names the parts of an upload, 1, 2, ... in order. A tag is the ETag,
/// a blank, and its checksum where it has one.
pub(crate) fn push_parts_body(out: &mut Vec<u8>, parts: &[String], checksum: Option<Checksum>) {
    out.extend_from_slice(
        b"<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
    );
    for (tag, number) in parts.iter().zip(1..) {
        let (etag, value) = tag.split_once(' ').unwrap_or((tag, ""));
        write!(out, "<Part><PartNumber>{number}</PartNumber><ETag>")
            .expect("writing to memory does not fail");
        encode::push_xml_text(out, etag);
        out.extend_from_slice(b"</ETag>");
        if let (Some(checksum), false) = (checksum, value.is_empty()) {
            let name = checksum.algorithm();
            write!(out, "<Checksum{name}>{value}</Checksum{name}>")
                .expect("writing to memory does not fail");
        }
        out.extend_from_slice(b"</Part>");
    }
    out.extend_from_slice(b"</CompleteMultipartUpload>");
}

/// The body that has the bucket keep versions.
pub(crate) const VERSIONING_BODY: &[u8] = b"<VersioningConfiguration \
    xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Status>Enabled</Status>\
    </VersioningConfiguration>";

/// Returns the body of a request to make a bucket in a region other than the default.
pub(crate) fn location_body(region: &str) -> Vec<u8> {
    let mut out = b"<CreateBucketConfiguration \
        xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><LocationConstraint>"
        .to_vec();
    encode::push_xml_text(&mut out, region);
    out.extend_from_slice(b"</LocationConstraint></CreateBucketConfiguration>");
    out
}

#[cfg(test)]
mod tests;
