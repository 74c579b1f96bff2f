//! AWS Signature Version 4 in the Authorization header.
//!
//! The caller adds headers in the order of their names, so the head and the canonical request are
//! written side by side and nothing is sorted or parsed. The signing key is cached per day, the
//! texts that hold the time per second.

use aws_lc_rs::{digest, hmac};
use plimsoll_model::{Secret, WallTime};

use crate::encode;
use crate::sigv2::{self, HttpDate, SignerV2};

const NS_PER_SECOND: u64 = 1_000_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// The time as SigV4 writes it: `20130524T000000Z`.
pub(crate) type Stamp = [u8; 16];

/// Signs for one key, region and service.
pub(crate) struct Signer {
    access_key: String,
    /// `AWS4` and the secret key.
    secret: Secret,
    region: String,
    service: &'static str,
    /// Days since 1970 for which `key` holds.
    day: Option<u64>,
    /// Seconds since 1970 for which the texts below hold.
    second: Option<u64>,
    key: hmac::Key,
    stamp: Stamp,
    /// The string to sign up to the hash, and room for the hash.
    to_sign: Vec<u8>,
    /// The value of the Authorization header up to the names of the signed headers.
    authorization: Vec<u8>,
}

impl Signer {
    pub(crate) fn new(
        access_key: &str,
        secret: &Secret,
        region: &str,
        service: &'static str,
    ) -> Self {
        Self {
            access_key: access_key.to_owned(),
            secret: Secret::from(format!("AWS4{}", secret.expose())),
            region: region.to_owned(),
            service,
            day: None,
            second: None,
            key: hmac::Key::new(hmac::HMAC_SHA256, b""),
            stamp: *b"00000000T000000Z",
            to_sign: Vec::new(),
            authorization: Vec::new(),
        }
    }

    /// Sets the time of the next signatures and returns its text.
    pub(crate) fn advance(&mut self, now: WallTime) -> Stamp {
        let second = now.as_unix_ns() / NS_PER_SECOND;
        if self.second != Some(second) {
            self.second = Some(second);
            self.render_time(now);
        }
        self.stamp
    }

    fn render_time(&mut self, now: WallTime) {
        let (year, month, day, hour, minute, second) = now.civil();
        let stamp = format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z");
        self.stamp = stamp.as_bytes().try_into().expect("a year has four digits until 2554");
        let date = &stamp[..8];
        let scope = format!("{date}/{}/{}/aws4_request", self.region, self.service);
        self.to_sign.clear();
        self.to_sign.extend_from_slice(format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n").as_bytes());
        self.authorization.clear();
        self.authorization.extend_from_slice(
            format!("AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders=", self.access_key)
                .as_bytes(),
        );
        let today = now.as_unix_ns() / NS_PER_SECOND / SECONDS_PER_DAY;
        if self.day != Some(today) {
            self.day = Some(today);
            self.key = signing_key(&self.secret, date, &self.region, self.service);
        }
    }

    /// Returns the signature of a form's policy, which is the policy in base 64.
    pub(crate) fn sign_policy(&self, policy: &str) -> [u8; 64] {
        assert!(self.second.is_some(), "the time is set before anything is signed");
        encode::hex(hmac::sign(&self.key, policy.as_bytes()).as_ref())
    }

    /// Returns the name of the key with its scope, as forms state it.
    pub(crate) fn credential(&self) -> String {
        let date = String::from_utf8_lossy(&self.stamp[..8]);
        format!("{}/{date}/{}/{}/aws4_request", self.access_key, self.region, self.service)
    }

    /// Returns the signature of a canonical request as hexadecimal digits.
    fn sign(&mut self, canonical: &[u8]) -> [u8; 64] {
        assert!(self.second.is_some(), "the time is set before anything is signed");
        let hash = digest::digest(&digest::SHA256, canonical);
        let prefix_len = self.to_sign.len();
        self.to_sign.extend_from_slice(&encode::hex(hash.as_ref()));
        let tag = hmac::sign(&self.key, &self.to_sign);
        self.to_sign.truncate(prefix_len);
        encode::hex(tag.as_ref())
    }
}

fn signing_key(secret: &Secret, date: &str, region: &str, service: &str) -> hmac::Key {
    let step = |key: &[u8], text: &str| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
    };
    let mut tag = step(secret.expose().as_bytes(), date);
    for text in [region, service, "aws4_request"] {
        tag = step(tag.as_ref(), text);
    }
    hmac::Key::new(hmac::HMAC_SHA256, tag.as_ref())
}

/// How heads are signed.
pub(crate) enum Signing {
    /// Not at all.
    Anonymous,
    V4(Box<Signer>),
    V2(Box<SignerV2>),
}

/// The time as a head states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dated {
    /// Nothing is signed.
    Nowhere,
    /// In `x-amz-date`.
    Amz(Stamp),
    /// In `date`.
    Http(HttpDate),
}

/// Writes the head of a request into a reused buffer, and signs it unless it is anonymous.
pub(crate) struct HeadWriter {
    signing: Signing,
    head: Vec<u8>,
    /// The canonical request that belongs to `head`; stays empty without Signature V4.
    canonical: Vec<u8>,
    /// The names of the signed headers, each followed by `;`.
    signed_names: Vec<u8>,
}

impl HeadWriter {
    /// Returns a writer that signs, or leaves heads anonymous.
    pub(crate) fn new(signing: Signing) -> Self {
        Self { signing, head: Vec::new(), canonical: Vec::new(), signed_names: Vec::new() }
    }

    /// Has heads be signed so from the next one on.
    pub(crate) fn sign_by(&mut self, signing: Signing) {
        self.signing = signing;
    }

    /// Begins a request. `path` and `query` are encoded, the query's parameters sorted and each
    /// with its `=`; `host_bucket` is the bucket where it stands in the host's name, else empty.
    pub(crate) fn begin(&mut self, method: &str, host_bucket: &str, path: &[u8], query: &[u8]) {
        self.head.clear();
        push(&mut self.head, &[method.as_bytes(), b" ", path]);
        if !query.is_empty() {
            push(&mut self.head, &[b"?", query]);
        }
        self.head.extend_from_slice(b" HTTP/1.1\r\n");
        self.canonical.clear();
        self.signed_names.clear();
        match &mut self.signing {
            Signing::Anonymous => {}
            Signing::V4(_) => {
                push(&mut self.canonical, &[method.as_bytes(), b"\n", path, b"\n", query, b"\n"]);
            }
            Signing::V2(signer) => signer.begin(method, host_bucket, path, query),
        }
    }

    /// Adds a header that is signed. Names are in lower case and come in ascending order.
    pub(crate) fn signed_header(&mut self, name: &str, value: &[u8]) {
        self.plain_header(name, value);
        match &mut self.signing {
            Signing::Anonymous => {}
            Signing::V4(_) => {
                debug_assert!(
                    last_name(&self.signed_names) < name.as_bytes(),
                    "{name} comes too late"
                );
                push(&mut self.canonical, &[name.as_bytes(), b":", value, b"\n"]);
                push(&mut self.signed_names, &[name.as_bytes(), b";"]);
            }
            Signing::V2(signer) => signer.header(name, value),
        }
    }

    /// Adds a header that is not signed.
    pub(crate) fn plain_header(&mut self, name: &str, value: &[u8]) {
        debug_assert!(!value.contains(&b'\n') && !value.contains(&b'\r'));
        push(&mut self.head, &[name.as_bytes(), b": ", value, b"\r\n"]);
    }

    /// Sets the time of the next signatures and returns how heads state it.
    pub(crate) fn advance(&mut self, now: WallTime) -> Dated {
        match &mut self.signing {
            Signing::Anonymous => Dated::Nowhere,
            Signing::V4(signer) => Dated::Amz(signer.advance(now)),
            Signing::V2(_) => Dated::Http(sigv2::http_date(now)),
        }
    }

    /// Ends the head with its signature. `payload` is the payload's hash in hexadecimal, or what
    /// stands for it.
    pub(crate) fn finish(&mut self, payload: &[u8]) {
        match &mut self.signing {
            Signing::Anonymous => {}
            Signing::V4(signer) => {
                self.signed_names.pop();
                push(&mut self.canonical, &[b"\n", &self.signed_names, b"\n", payload]);
                let signature = signer.sign(&self.canonical);
                push(
                    &mut self.head,
                    &[
                        b"authorization: ",
                        &signer.authorization,
                        &self.signed_names,
                        b", Signature=",
                        &signature,
                        b"\r\n",
                    ],
                );
            }
            Signing::V2(signer) => {
                let value = signer.sign();
                push(&mut self.head, &[b"authorization: ", value.as_bytes(), b"\r\n"]);
            }
        }
        self.finish_unsigned();
    }

    /// Ends the head without a signature.
    pub(crate) fn finish_unsigned(&mut self) {
        self.head.extend_from_slice(b"\r\n");
    }

    /// Returns the head as it goes over the wire.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }
}

fn push(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn last_name(names: &[u8]) -> &[u8] {
    names.rsplit(|b| *b == b';').nth(1).unwrap_or_default()
}

#[cfg(test)]
mod tests;
