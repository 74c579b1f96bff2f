//! What is computed over the bytes of an upload: its ETag, and the digests the client asked to have
//! checked.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use s3s::crypto::{Checksum as _, Crc64Nvme, Md5};
use s3s::dto::{PutObjectInput, UploadPartInput};

use crate::checksum::{Algorithm, Checksum, Summer};

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
    /// The MD5 of its parts' MD5s, and how many parts it has: as Amazon S3 has it.
    Md5Parts {
        /// The digest.
        md5: [u8; 16],
        /// How many parts it was uploaded in.
        parts_count: usize,
    },
}

/// What ETags are made of where the client sends no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tagging {
    /// CRC-64/NVME.
    Crc64,
    /// MD5.
    Md5,
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
        let mut md5 = Md5::new();
        let all_md5 = parts.iter().all(|tag| match tag {
            Self::Md5(part) => {
                md5.update(part);
                true
            }
            _ => false,
        });
        let parts_count = parts.len();
        match all_md5 {
            true => Self::Md5Parts { md5: md5.finalize(), parts_count },
            false => Self::Parts { crc: crc_of(parts), size_bytes, parts_count },
        }
    }

    /// Returns the tag of a content that was added to one, given the tags of both.
    pub(crate) fn of_appended(held: Self, added: Self, size_bytes: u64) -> Self {
        let both = [held, added];
        Self::Parts { crc: crc_of(&both), size_bytes, parts_count: both.len() }
    }

    /// Returns the checksum of the content, where the tag is made of one.
    pub(crate) fn checksum(&self) -> Option<Checksum> {
        match self {
            Self::Crc64 { crc, .. } => Some(Checksum::of_crc64(*crc)),
            Self::Md5(_) | Self::Parts { .. } | Self::Md5Parts { .. } => None,
        }
    }
}

fn crc_of(tags: &[Tag]) -> [u8; 8] {
    let mut crc = Crc64Nvme::new();
    tags.iter().for_each(|tag| crc.update(tag.to_string().as_bytes()));
    crc.finalize()
}

impl fmt::Display for Tag {
    /// Writes the ETag without quotes. A CRC has dashes, so that nobody takes it for an MD5.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Md5(md5) => write!(f, "{:032x}", u128::from_be_bytes(*md5)),
            Self::Crc64 { crc, size_bytes } => {
                write!(f, "crc64-{:016x}-{size_bytes}", u64::from_be_bytes(*crc))
            }
            Self::Md5Parts { md5, parts_count } => {
                write!(f, "{:032x}-{parts_count}", u128::from_be_bytes(*md5))
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
    others: Vec<Summer>,
    /// The checksum to return where the client claims none.
    also: Option<Algorithm>,
}

/// What was computed of an upload.
#[derive(Debug)]
pub(crate) struct Digested {
    pub(crate) tag: Tag,
    /// The checksum that the client sent, or was asked to be computed.
    pub(crate) checksum: Option<Checksum>,
}

/// What the client says the digests are, in base64.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    md5: Option<String>,
    checksums: Vec<(Algorithm, String)>,
}

/// Returns the checksums that an input claims, each with its algorithm. Many inputs have these
/// fields, and no trait says so.
macro_rules! claimed_checksums {
    ($input:expr) => {{
        use $crate::checksum::Algorithm;
        let fields = [
            (Algorithm::Crc32, &$input.checksum_crc32),
            (Algorithm::Crc32c, &$input.checksum_crc32c),
            (Algorithm::Crc64Nvme, &$input.checksum_crc64nvme),
            (Algorithm::Sha1, &$input.checksum_sha1),
            (Algorithm::Sha256, &$input.checksum_sha256),
        ];
        fields.into_iter().filter_map(|(algorithm, value)| Some((algorithm, value.clone()?)))
    }};
}

pub(crate) use claimed_checksums;

macro_rules! claims_from {
    ($($input:ty),*) => {$(
        impl From<&$input> for Claims {
            fn from(input: &$input) -> Self {
                let checksums = claimed_checksums!(input).collect();
                Self { md5: input.content_md5.clone(), checksums }
            }
        }
    )*};
}

claims_from!(PutObjectInput, UploadPartInput);

/// The name of a digest that is not what the client said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch(pub(crate) &'static str);

impl Digests {
    /// Returns the digests that are needed to check what the client claims, and to make an ETag;
    /// `also` is a checksum that is needed besides, such as one that will be claimed at the end.
    pub(crate) fn new(wanted: Claims, tagging: Tagging, also: Option<Algorithm>) -> Self {
        let claimed = wanted.checksums.iter().map(|(algorithm, _)| *algorithm);
        let mut needed: Vec<Algorithm> = claimed.collect();
        if let Some(also) = also.filter(|also| !needed.contains(also)) {
            needed.push(also);
        }
        let others = needed.into_iter().filter(|algorithm| *algorithm != Algorithm::Crc64Nvme);
        let others = others.map(Summer::new).collect();
        let md5 = (wanted.md5.is_some() || tagging == Tagging::Md5).then(Md5::new);
        Self { wanted, crc64nvme: Crc64Nvme::new(), md5, others, also }
    }

    /// Returns what is computed of a content that is at hand.
    pub(crate) fn of<'b>(
        content: impl IntoIterator<Item = &'b [u8]>,
        tagging: Tagging,
        also: Option<Algorithm>,
    ) -> Digested {
        let mut digests = Self::new(Claims::default(), tagging, also);
        let mut size_bytes = 0;
        for piece in content {
            digests.update(piece);
            size_bytes += piece.len() as u64;
        }
        digests.finish(size_bytes).expect("nothing is claimed")
    }

    /// Takes in the next bytes of the content.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.crc64nvme.update(bytes);
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        self.others.iter_mut().for_each(|sum| sum.update(bytes));
    }

    /// Takes in what the client says a checksum is, behind the content.
    pub(crate) fn claim(&mut self, algorithm: Algorithm, value: &str) {
        self.wanted.checksums.push((algorithm, value.to_owned()));
    }

    /// Checks what the client said of the content, and returns what its ETag is made of.
    pub(crate) fn finish(self, size_bytes: u64) -> Result<Digested, Mismatch> {
        let Claims { md5: wanted_md5, checksums: wanted } = self.wanted;
        let crc = self.crc64nvme.finalize();
        let md5 = self.md5.map(Md5::finalize);
        if wanted_md5.is_some_and(|wanted| md5.is_none_or(|md5| STANDARD.encode(md5) != wanted)) {
            return Err(Mismatch("Content-MD5"));
        }
        let mut others: Vec<Checksum> = self.others.into_iter().map(Summer::finish).collect();
        let has_crc64 = |(algorithm, _): &(Algorithm, String)| *algorithm == Algorithm::Crc64Nvme;
        if self.also == Some(Algorithm::Crc64Nvme) || wanted.iter().any(has_crc64) {
            others.push(Checksum::of_crc64(crc));
        }
        let is_right = |(algorithm, value): &(Algorithm, String)| {
            let found = others.iter().find(|found| found.algorithm == *algorithm);
            found.is_some_and(|found| found.to_string() == *value)
        };
        if let Some((algorithm, _)) = wanted.iter().find(|claim| !is_right(claim)) {
            return Err(Mismatch(algorithm.header()));
        }
        let told = wanted.first().map(|(algorithm, _)| *algorithm).or(self.also);
        let at = others.iter().position(|found| Some(found.algorithm) == told);
        let checksum = at.map(|at| others.swap_remove(at));
        let tag = md5.map_or(Tag::Crc64 { crc, size_bytes }, Tag::Md5);
        Ok(Digested { tag, checksum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(input: &PutObjectInput, content: &[u8]) -> Result<String, Mismatch> {
        let mut digests = Digests::new(input.into(), Tagging::Crc64, None);
        for piece in content.chunks(4) {
            digests.update(piece);
        }
        digests.finish(content.len() as u64).map(|digested| digested.tag.to_string())
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

    /// `md5sum` of the parts, their binary digests together through `md5sum` again.
    #[test]
    fn an_etag_of_parts_with_md5_is_that_of_amazon() {
        let md5 = |content: &[u8]| Digests::of([content], Tagging::Md5, None).tag;
        let tag = Tag::of_parts(&[md5(b"ab"), md5(b"cd")], 4);
        assert_eq!(tag.to_string(), "e700b3f8d01367198b7ee8450c5bec97-2");
        let mixed = Tag::of_parts(&[md5(b"ab"), Tag::of(b"cd")], 4);
        assert!(mixed.to_string().starts_with("crc64-"), "{mixed}");
    }

    #[test]
    fn what_is_claimed_behind_the_content_is_checked_too() {
        let finish = |value: &str| {
            let mut digests =
                Digests::new(Claims::default(), Tagging::Crc64, Some(Algorithm::Crc32c));
            digests.update(b"123456789");
            digests.claim(Algorithm::Crc32c, value);
            digests.finish(9).map(|digested| digested.checksum.unwrap().to_string())
        };
        assert_eq!(finish("4waSgw=="), Ok("4waSgw==".to_owned()));
        assert_eq!(finish("4waSgg=="), Err(Mismatch("x-amz-checksum-crc32c")));
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
