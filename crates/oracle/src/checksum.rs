//! Checksums that S3 knows by name: of a content, of one that came in parts, and as they are
//! written.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, checksum_combine};
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
use s3s::dto;

/// How a checksum is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

/// A checksum of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) algorithm: Algorithm,
    value: Vec<u8>,
    /// How many parts' checksums it is the checksum of; `None`: it is that of the whole content.
    parts_count: Option<usize>,
}

/// A checksum in the making.
pub(crate) enum Summer {
    Crc32(Crc32),
    Crc32c(Crc32c),
    Crc64Nvme(Crc64Nvme),
    Sha1(Box<Sha1>),
    Sha256(Box<Sha256>),
}

impl Algorithm {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    /// Returns its name in S3.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }

    /// Returns the header that holds such a checksum.
    pub(crate) fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }

    /// Returns the one of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Returns the one whose header has that name.
    pub(crate) fn from_header(name: &str) -> Option<Self> {
        let name = name.trim();
        Self::ALL.into_iter().find(|algorithm| algorithm.header().eq_ignore_ascii_case(name))
    }

    /// Tells whether the checksum of a whole can be made of those of its parts.
    pub(crate) fn is_crc(self) -> bool {
        self.crc().is_some()
    }

    fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Self::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
            Self::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
            Self::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
            Self::Sha1 | Self::Sha256 => None,
        }
    }
}

impl Checksum {
    /// Returns the checksum of a content whose CRC-64/NVME is known.
    pub(crate) fn of_crc64(crc: [u8; 8]) -> Self {
        Self { algorithm: Algorithm::Crc64Nvme, value: crc.to_vec(), parts_count: None }
    }

    /// Returns the checksum of a content that is made of parts, given theirs and their sizes: that
    /// of the whole, or one of their checksums. `None` where it cannot be made so.
    pub(crate) fn of_parts(parts: &[(&Self, u64)], is_of_whole: bool) -> Option<Self> {
        let algorithm = parts.first()?.0.algorithm;
        if !is_of_whole {
            let mut summer = Summer::new(algorithm);
            parts.iter().for_each(|(part, _)| summer.update(&part.value));
            return Some(Self { parts_count: Some(parts.len()), ..summer.finish() });
        }
        let crc = algorithm.crc()?;
        let number =
            |part: &Self| part.value.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let whole = parts.iter().map(|(part, size)| (number(part), *size));
        let (sum, _) = whole.reduce(|(sum, before), (part, size)| {
            (checksum_combine(crc, sum, part, size), before + size)
        })?;
        let width = parts[0].0.value.len();
        let value = sum.to_be_bytes()[8 - width..].to_vec();
        Some(Self { algorithm, value, parts_count: None })
    }

    /// Tells whether it is that of the whole content.
    pub(crate) fn is_of_whole(&self) -> bool {
        self.parts_count.is_none()
    }

    /// Returns it in the fields of an answer.
    pub(crate) fn told(&self) -> dto::Checksum {
        let (text, mut told) = (Some(self.to_string()), dto::Checksum::default());
        match self.algorithm {
            Algorithm::Crc32 => told.checksum_crc32 = text,
            Algorithm::Crc32c => told.checksum_crc32c = text,
            Algorithm::Crc64Nvme => told.checksum_crc64nvme = text,
            Algorithm::Sha1 => told.checksum_sha1 = text,
            Algorithm::Sha256 => told.checksum_sha256 = text,
        }
        told.checksum_type = Some(self.kind());
        told
    }

    /// Returns what it is made of, in the words of S3.
    pub(crate) fn kind(&self) -> dto::ChecksumType {
        dto::ChecksumType::from_static(if self.is_of_whole() {
            dto::ChecksumType::FULL_OBJECT
        } else {
            dto::ChecksumType::COMPOSITE
        })
    }
}

impl fmt::Display for Checksum {
    /// Writes it in base64, and behind it of how many parts it is where it is of parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(&self.value))?;
        self.parts_count.map_or(Ok(()), |count| write!(f, "-{count}"))
    }
}

impl Summer {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Crc32 => Self::Crc32(Crc32::new()),
            Algorithm::Crc32c => Self::Crc32c(Crc32c::new()),
            Algorithm::Crc64Nvme => Self::Crc64Nvme(Crc64Nvme::new()),
            Algorithm::Sha1 => Self::Sha1(Box::new(Sha1::new())),
            Algorithm::Sha256 => Self::Sha256(Box::new(Sha256::new())),
        }
    }

    /// Takes in the next bytes of the content.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc32(sum) => sum.update(bytes),
            Self::Crc32c(sum) => sum.update(bytes),
            Self::Crc64Nvme(sum) => sum.update(bytes),
            Self::Sha1(sum) => sum.update(bytes),
            Self::Sha256(sum) => sum.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> Checksum {
        let (algorithm, value) = match self {
            Self::Crc32(sum) => (Algorithm::Crc32, sum.finalize().to_vec()),
            Self::Crc32c(sum) => (Algorithm::Crc32c, sum.finalize().to_vec()),
            Self::Crc64Nvme(sum) => (Algorithm::Crc64Nvme, sum.finalize().to_vec()),
            Self::Sha1(sum) => (Algorithm::Sha1, sum.finalize().to_vec()),
            Self::Sha256(sum) => (Algorithm::Sha256, sum.finalize().to_vec()),
        };
        Checksum { algorithm, value, parts_count: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(algorithm: Algorithm, content: &[u8]) -> Checksum {
        let mut summer = Summer::new(algorithm);
        content.chunks(4).for_each(|piece| summer.update(piece));
        summer.finish()
    }

    /// The check values of the catalogue of parametrised CRC algorithms, and `printf 123456789 |
    /// openssl dgst -binary`, in base64.
    #[test]
    fn checksums_are_those_of_the_catalogue() {
        for (algorithm, expected) in [
            (Algorithm::Crc32, "y/Q5Jg=="),
            (Algorithm::Crc32c, "4waSgw=="),
            (Algorithm::Crc64Nvme, "rosUhgp5mIg="),
            (Algorithm::Sha1, "98O8HYCOBHMq32eZZczDTKeuNEE="),
            (Algorithm::Sha256, "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
        ] {
            assert_eq!(sum(algorithm, b"123456789").to_string(), expected, "{algorithm:?}");
        }
    }

    #[test]
    fn the_crc_of_a_whole_is_made_of_those_of_its_parts() {
        for algorithm in [Algorithm::Crc32, Algorithm::Crc32c, Algorithm::Crc64Nvme] {
            let parts =
                [&b"1234"[..], b"", b"56789"].map(|part| (sum(algorithm, part), part.len()));
            let parts = parts.each_ref().map(|(sum, len)| (sum, *len as u64));
            let whole = Checksum::of_parts(&parts, true);
            assert_eq!(whole, Some(sum(algorithm, b"123456789")), "{algorithm:?}");
        }
        let sha = sum(Algorithm::Sha1, b"x");
        assert_eq!(Checksum::of_parts(&[(&sha, 1)], true), None);
    }

    /// S3's documentation: the checksum of the parts' checksums, then a dash and their number.
    #[test]
    fn a_checksum_of_parts_says_of_how_many() {
        let parts = [b"1", b"2"].map(|part| sum(Algorithm::Sha256, part));
        let both = parts.each_ref().map(|part| (part, 1));
        let composite = Checksum::of_parts(&both, false).unwrap();
        let bytes = [&parts[0].value[..], &parts[1].value].concat();
        let expected = format!("{}-2", sum(Algorithm::Sha256, &bytes));
        assert_eq!(composite.to_string(), expected);
        assert!(!composite.is_of_whole());
    }
}
