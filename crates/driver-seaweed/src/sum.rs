//! The checksums by which servers say what they hold: volume servers CRC-32C, filers MD5.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest};
use md5::{Digest as _, Md5};

/// A kind of checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumKind {
    /// Of volume servers: 8 digits.
    Crc32c,
    /// Of filers, as RFC 1864 and ETags have it: 32 digits.
    Md5,
}

impl SumKind {
    /// Returns how many hexadecimal digits it has.
    const fn digits(self) -> usize {
        match self {
            Self::Crc32c => 8,
            Self::Md5 => 32,
        }
    }

    /// Returns the sum of nothing yet.
    pub(crate) fn begin(self) -> Sum {
        match self {
            Self::Crc32c => Sum::Crc32c(Digest::new(CrcAlgorithm::Crc32Iscsi)),
            Self::Md5 => Sum::Md5(Md5::new()),
        }
    }
}

/// A checksum in the making.
#[expect(clippy::large_enum_variant, reason = "there is one for each operation, on the stack")]
pub(crate) enum Sum {
    Crc32c(Digest),
    Md5(Md5),
}

impl Sum {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc32c(crc) => crc.update(bytes),
            Self::Md5(md5) => md5.update(bytes),
        }
    }

    /// Returns the checksum of what it was given.
    pub(crate) fn value(&self) -> SumValue {
        match self {
            Self::Crc32c(crc) => SumValue { kind: SumKind::Crc32c, value: crc.finalize().into() },
            Self::Md5(md5) => SumValue::of_md5(md5.clone().finalize().into()),
        }
    }
}

/// A checksum, made here or stated by a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SumValue {
    pub(crate) kind: SumKind,
    value: u128,
}

impl SumValue {
    fn of_md5(md5: [u8; 16]) -> Self {
        Self { kind: SumKind::Md5, value: u128::from_be_bytes(md5) }
    }

    /// Reads an ETag without its quotes. That of a file in chunks may be another kind.
    pub(crate) fn of_etag(text: &str) -> Option<Self> {
        let kinds = [SumKind::Crc32c, SumKind::Md5].into_iter();
        let kind = kinds.clone().find(|kind| kind.digits() == text.len())?;
        let is_plain = text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let value = u128::from_str_radix(text, 16).ok().filter(|_| is_plain)?;
        Some(Self { kind, value })
    }

    /// Reads what stands in `Content-MD5`.
    pub(crate) fn of_content_md5(text: &str) -> Option<Self> {
        let md5 = STANDARD.decode(text).ok()?;
        md5.try_into().ok().map(Self::of_md5)
    }

    /// Returns its digits without its name.
    pub(crate) fn digits(self) -> impl fmt::Display {
        let width = self.kind.digits();
        let value = self.value;
        fmt::from_fn(move |f| write!(f, "{value:0width$x}"))
    }
}

impl fmt::Display for SumValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            SumKind::Crc32c => "CRC-32C",
            SumKind::Md5 => "MD5",
        };
        write!(f, "{name} {}", self.digits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_as_servers_write_them() {
        // The check value of CRC-32C (RFC 3720, B.4, and every catalogue), and of MD5 by `md5sum`
        // and `openssl md5 -binary | base64`.
        let crc = "e3069283";
        let md5 = "25f9e794323b453885f5181f1b624d0b";
        for (kind, etag) in [(SumKind::Crc32c, crc), (SumKind::Md5, md5)] {
            let mut sum = kind.begin();
            sum.update(b"1234");
            sum.update(b"56789");
            assert_eq!(SumValue::of_etag(etag), Some(sum.value()));
            assert_eq!(sum.value().digits().to_string(), etag);
        }
        let of_header = SumValue::of_content_md5("JfnnlDI7RTiF9RgfG2JNCw==");
        assert_eq!(of_header, SumValue::of_etag(md5));
        assert_eq!(of_header.unwrap().to_string(), format!("MD5 {md5}"));
        for other in ["", "e306928", "+e306928", &format!("{md5}-2"), "nonsense"] {
            assert_eq!(SumValue::of_etag(other), None, "{other}");
        }
        assert_eq!(SumValue::of_content_md5(""), None);
    }
}
