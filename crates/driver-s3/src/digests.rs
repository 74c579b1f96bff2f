//! Digests of what is sent: SHA-256 for the signature, MD5 for Content-MD5, and whether a checksum
//! follows.

use aws_lc_rs::digest;
use md5::{Digest as _, Md5};
use plimsoll_driver::ContentSource;

use crate::{Checksum, encode};

/// How much content is read at a time for its digests; small enough to stay in the second-level
/// cache.
const PIECE_BYTES: usize = 64 << 10;

/// What stands for the payload where it is not signed.
const UNSIGNED: &[u8] = b"UNSIGNED-PAYLOAD";
/// What stands for the payload where it is not signed and a checksum follows it.
const TRAILING: &[u8] = b"STREAMING-UNSIGNED-PAYLOAD-TRAILER";
/// The SHA-256 of nothing.
pub(crate) const EMPTY_SHA256: &[u8] =
    b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// What the signature says of the payload.
#[derive(Clone, Copy)]
pub(crate) enum PayloadHash {
    /// There is no payload.
    Empty,
    /// It is not signed.
    Unsigned,
    /// It is not signed and goes in chunks, followed by this checksum.
    Trailing(Checksum),
    /// Its SHA-256 in hexadecimal.
    Sha256([u8; 64]),
}

impl PayloadHash {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Empty => EMPTY_SHA256,
            Self::Unsigned => UNSIGNED,
            Self::Trailing(_) => TRAILING,
            Self::Sha256(hex) => hex,
        }
    }
}

/// The digests that go with one payload.
#[derive(Clone, Copy)]
pub(crate) struct PayloadDigests {
    pub(crate) hash: PayloadHash,
    /// In base 64.
    pub(crate) md5: Option<[u8; 24]>,
}

impl PayloadDigests {
    /// The digests of no payload.
    pub(crate) const NONE: Self = Self { hash: PayloadHash::Empty, md5: None };

    /// Returns the digests of bytes at hand; the MD5 always, because S3 demands it where this is
    /// used.
    pub(crate) fn of_bytes(bytes: &[u8], sign_payload: bool) -> Self {
        let hash = if sign_payload {
            PayloadHash::Sha256(encode::hex(digest::digest(&digest::SHA256, bytes).as_ref()))
        } else {
            PayloadHash::Unsigned
        };
        Self { hash, md5: Some(encode::base64_md5(&Md5::digest(bytes).into())) }
    }

    /// Returns the wanted digests of content, reading all of it once if there are any.
    pub(crate) fn of_content(
        content: &mut dyn ContentSource,
        sign_payload: bool,
        content_md5: bool,
        piece: &mut Vec<u8>,
    ) -> Self {
        if !sign_payload && !content_md5 {
            return Self { hash: PayloadHash::Unsigned, md5: None };
        }
        let mut sha256 = sign_payload.then(|| digest::Context::new(&digest::SHA256));
        let mut md5 = content_md5.then(Md5::new);
        piece.resize(PIECE_BYTES, 0);
        let (mut offset, size) = (0, content.size());
        while offset < size {
            let len = (size - offset).min(PIECE_BYTES as u64);
            let filled = &mut piece[..len as usize];
            content.fill(offset, filled);
            if let Some(sha256) = &mut sha256 {
                sha256.update(filled);
            }
            if let Some(md5) = &mut md5 {
                md5.update(&*filled);
            }
            offset += len;
        }
        Self {
            hash: sha256.map_or(PayloadHash::Unsigned, |context| {
                PayloadHash::Sha256(encode::hex(context.finish().as_ref()))
            }),
            md5: md5.map(|md5| encode::base64_md5(&md5.finalize().into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Repeated(u64);

    impl ContentSource for Repeated {
        fn size(&self) -> u64 {
            self.0
        }

        fn fill(&mut self, _offset: u64, buffer: &mut [u8]) {
            buffer.fill(b'a');
        }
    }

    fn of(size: u64, sha: bool, md5: bool) -> (String, Option<String>) {
        let digests = PayloadDigests::of_content(&mut Repeated(size), sha, md5, &mut Vec::new());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (text(digests.hash.as_bytes()), digests.md5.map(|md5| text(&md5)))
    }

    #[test]
    fn content_digests_match_published_values() {
        // SHA-256 of a million `a`: FIPS 180-2, appendix B.3. The MD5 by `openssl md5`.
        let million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(of(1_000_000, true, false), (million.to_owned(), None));
        let md5 = Some("dwfWrk4CfHDuoqk1wilvIQ==".to_owned());
        assert_eq!(of(1_000_000, false, true), ("UNSIGNED-PAYLOAD".to_owned(), md5.clone()));
        assert_eq!(of(1_000_000, true, true), (million.to_owned(), md5));
        let empty = String::from_utf8(EMPTY_SHA256.to_vec()).unwrap();
        assert_eq!(of(0, true, true), (empty, Some("1B2M2Y8AsgTpgAmY7PhCfg==".to_owned())));
    }
}
