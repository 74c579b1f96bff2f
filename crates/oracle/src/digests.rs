//! What is computed over the bytes of an upload: its ETag, and the digests the client asked to have
//! checked.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use s3s::dto::{PutObjectInput, UploadPartInput};

/// What makes the ETag of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The MD5 of its content.
    Md5([u8; 16]),
    /// The CRC-64/NVME of its content, and its size.
    Crc64 {
        /// The checksum.
        crc: [u8; 8],
        /// The size of the content.
        size_bytes: u64,
    },
    /// The CRC-64/NVME of its parts' tags as they are written, its size, and how many parts it has.
    Parts {
        /// The checksum.
        crc: [u8; 8],
        /// The size of the content.
        size_bytes: u64,
        /// How many parts it was uploaded in.
        parts_count: usize,
    },
}

impl Tag {
    /// Returns the tag of a content that nobody has sent a digest of.
    pub(crate) fn of(content: &[u8]) -> Self {
        let mut crc = Crc64Nvme::new();
        crc.update(content);
        Self::Crc64 { crc: crc.finalize(), size_bytes: content.len() as u64 }
    }

    /// Returns the tag of a content that came in parts with these tags.
    ///
    /// As with S3, whose ETag of such an object is an MD5 of MD5s, the content itself is not gone
    /// through once more.
    pub(crate) fn of_parts(parts: &[Self], size_bytes: u64) -> Self {
        let mut crc = Crc64Nvme::new();
        parts.iter().for_each(|tag| crc.update(tag.to_string().as_bytes()));
        Self::Parts { crc: crc.finalize(), size_bytes, parts_count: parts.len() }
    }
}

impl fmt::Display for Tag {
    /// Writes the ETag without quotes. A CRC has dashes, so that nobody takes it for an MD5.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Md5(md5) => write!(f, "{:032x}", u128::from_be_bytes(*md5)),
            Self::Crc64 { crc, size_bytes } => {
                write!(f, "crc64-{:016x}-{size_bytes}", u64::from_be_bytes(*crc))
            }
            Self::Parts { crc, size_bytes, parts_count } => {
                let crc = u64::from_be_bytes(*crc);
                write!(f, "crc64-{crc:016x}-{size_bytes}-{parts_count}")
            }
        }
    }
}

/// Digests of an upload in the making.
pub(crate) struct Digests {
    wanted: Claims,
    crc64nvme: Crc64Nvme,
    md5: Option<Md5>,
    others: ChecksumHasher,
}

/// What the client says the digests are, in base64.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    md5: Option<String>,
    crc32: Option<String>,
    crc32c: Option<String>,
    crc64nvme: Option<String>,
    sha1: Option<String>,
    sha256: Option<String>,
}

/// Both inputs have these fields, and no trait says so.
macro_rules! claims_from {
    ($($input:ty),*) => {$(
        impl From<&$input> for Claims {
            fn from(input: &$input) -> Self {
                Self {
                    md5: input.content_md5.clone(),
                    crc32: input.checksum_crc32.clone(),
                    crc32c: input.checksum_crc32c.clone(),
                    crc64nvme: input.checksum_crc64nvme.clone(),
                    sha1: input.checksum_sha1.clone(),
                    sha256: input.checksum_sha256.clone(),
                }
            }
        }
    )*};
}

claims_from!(PutObjectInput, UploadPartInput);

/// The name of a digest that is not what the client said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch(pub(crate) &'static str);

impl Digests {
    /// Returns the digests that are needed to check what the client claims.
    pub(crate) fn new(wanted: Claims) -> Self {
        let others = ChecksumHasher {
            crc32: wanted.crc32.is_some().then(Crc32::new),
            crc32c: wanted.crc32c.is_some().then(Crc32c::new),
            sha1: wanted.sha1.is_some().then(Sha1::new),
            sha256: wanted.sha256.is_some().then(Sha256::new),
            crc64nvme: None,
        };
        let md5 = wanted.md5.is_some().then(Md5::new);
        Self { wanted, crc64nvme: Crc64Nvme::new(), md5, others }
    }

    /// Takes in the next bytes of the content.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.crc64nvme.update(bytes);
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        self.others.update(bytes);
    }

    /// Checks what the client said of the content, and returns what its ETag is made of.
    pub(crate) fn finish(self, size_bytes: u64) -> Result<Tag, Mismatch> {
        let wanted = self.wanted;
        let crc = self.crc64nvme.finalize();
        let md5 = self.md5.map(Md5::finalize);
        let others = self.others.finalize();
        let crc64nvme = wanted.crc64nvme.is_some().then(|| STANDARD.encode(crc));
        let digests = [
            ("Content-MD5", wanted.md5, md5.map(|md5| STANDARD.encode(md5))),
            ("x-amz-checksum-crc64nvme", wanted.crc64nvme, crc64nvme),
            ("x-amz-checksum-crc32", wanted.crc32, others.checksum_crc32),
            ("x-amz-checksum-crc32c", wanted.crc32c, others.checksum_crc32c),
            ("x-amz-checksum-sha1", wanted.sha1, others.checksum_sha1),
            ("x-amz-checksum-sha256", wanted.sha256, others.checksum_sha256),
        ];
        match digests.into_iter().find(|(_, wanted, found)| wanted != found) {
            Some((name, ..)) => Err(Mismatch(name)),
            None => Ok(md5.map_or(Tag::Crc64 { crc, size_bytes }, Tag::Md5)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(input: &PutObjectInput, content: &[u8]) -> Result<String, Mismatch> {
        let mut digests = Digests::new(input.into());
        for piece in content.chunks(4) {
            digests.update(piece);
        }
        digests.finish(content.len() as u64).map(|tag| tag.to_string())
    }

    #[test]
    fn an_etag_is_md5_only_when_md5_was_sent() {
        // CRC-64/NVME's check value, from the catalogue of parametrised CRC algorithms.
        let plain = tag(&PutObjectInput::default(), b"123456789");
        assert_eq!(plain, Ok("crc64-ae8b14860a799888-9".to_owned()));
        // `printf 123456789 | openssl md5 -binary | base64`.
        let md5 = Some("JfnnlDI7RTiF9RgfG2JNCw==".to_owned());
        let with_md5 = PutObjectInput { content_md5: md5, ..PutObjectInput::default() };
        // `printf 123456789 | md5sum`.
        let expected = "25f9e794323b453885f5181f1b624d0b".to_owned();
        assert_eq!(tag(&with_md5, b"123456789"), Ok(expected));
        assert_eq!(tag(&with_md5, b"123456780"), Err(Mismatch("Content-MD5")));
    }

    #[test]
    fn an_etag_of_parts_tells_parts_from_a_whole() {
        let parts = ["ab", "cd"].map(|part| Tag::of(part.as_bytes()));
        let whole = Tag::of_parts(&parts, 4);
        assert!(whole.to_string().ends_with("-4-2"), "{whole}");
        let swapped = Tag::of_parts(&[parts[1], parts[0]], 4);
        assert_ne!(whole, swapped, "order matters");
    }

    #[test]
    fn every_checksum_sent_is_checked() {
        // CRC-32C's check value is E3069283.
        let crc32c = Some("4waSgw==".to_owned());
        let input = PutObjectInput { checksum_crc32c: crc32c, ..PutObjectInput::default() };
        assert!(tag(&input, b"123456789").is_ok());
        assert_eq!(tag(&input, b"12345678"), Err(Mismatch("x-amz-checksum-crc32c")));
        // And CRC-64/NVME's is AE8B14860A799888.
        let crc64nvme = Some("rosUhgp5mIg=".to_owned());
        let input = PutObjectInput { checksum_crc64nvme: crc64nvme, ..PutObjectInput::default() };
        assert!(tag(&input, b"123456789").is_ok());
        assert_eq!(tag(&input, b"123456780"), Err(Mismatch("x-amz-checksum-crc64nvme")));
        let sha1 = Some("AAAA".to_owned());
        let input = PutObjectInput { checksum_sha1: sha1, ..PutObjectInput::default() };
        assert_eq!(tag(&input, b"123456789"), Err(Mismatch("x-amz-checksum-sha1")));
    }
}
