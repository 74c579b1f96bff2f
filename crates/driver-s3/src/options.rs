//! What requests ask of the target beyond reading and writing: encryption, checksums, storage
//! class, tags, conditions, parts and the kind of signature.

use std::fmt;

use crate::ConfigError;

/// The size of a part unless another one is asked for.
pub const PART_SIZE_DEFAULT: u64 = 16 << 20;
/// The smallest part that S3 takes anywhere but at the end of an upload.
pub const PART_SIZE_MIN: u64 = 5 << 20;
/// The most parts that an upload may have.
pub const PARTS_COUNT_MAX: u32 = 10_000;

/// The largest part that S3 takes.
const PART_SIZE_MAX: u64 = 5 << 30;
/// How many parts of one object are on their way at once unless another number is asked for.
const PART_CONCURRENCY_DEFAULT: u32 = 4;
/// More would be sockets without use.
const PART_CONCURRENCY_MAX: u32 = 1_000;
/// The most tags that S3 lets an object have.
const TAGS_COUNT_MAX: usize = 10;

/// What requests ask of the target beyond reading and writing. The default asks nothing.
#[derive(Clone, Debug)]
pub struct RequestOptions {
    /// How the target encrypts what is written.
    pub encryption: Encryption,
    /// Which checksum follows written content, for the target to check.
    pub checksum: Option<Checksum>,
    /// The storage class of what is written; `None` leaves it to the target.
    pub storage_class: Option<String>,
    /// Names and values of the tags of what is written.
    pub tags: Vec<(String, String)>,
    /// Names and values of the metadata of what is written, without `x-amz-meta-`.
    pub metadata: Vec<(String, String)>,
    /// Whether an object is written only where none is.
    pub if_none_match: bool,
    /// Objects larger than this are written in parts of this size; `None` writes each with one
    /// request.
    pub part_size: Option<u64>,
    /// How many parts of one object are on their way at once.
    pub part_concurrency: u32,
    /// Whether objects are written with one request whatever `part_size` says.
    pub disable_multipart: bool,
    /// How requests are signed.
    pub signature: Signature,
}

impl Default for RequestOptions {
    fn default() -> Self {
        Self {
            encryption: Encryption::None,
            checksum: None,
            storage_class: None,
            tags: Vec::new(),
            metadata: Vec::new(),
            if_none_match: false,
            part_size: None,
            part_concurrency: PART_CONCURRENCY_DEFAULT,
            disable_multipart: false,
            signature: Signature::V4,
        }
    }
}

/// How the target encrypts what is written. Its `Debug` form holds no key.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Encryption {
    /// As the target is set up.
    #[default]
    None,
    /// With a key that goes with every request (SSE-C); only with TLS.
    SseC {
        /// The key of AES-256.
        key: [u8; 32],
    },
    /// With a key of the target's own (SSE-S3).
    SseS3,
    /// With a key of the target's key service (SSE-KMS).
    SseKms {
        /// The key's name; `None` takes the service's default.
        key_id: Option<String>,
    },
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::SseC { .. } => f.write_str("SseC"),
            Self::SseS3 => f.write_str("SseS3"),
            Self::SseKms { key_id } => f.debug_struct("SseKms").field("key_id", key_id).finish(),
        }
    }
}

/// A checksum that S3 knows. Of an object in parts it is that of the parts' checksums, or, where
/// its name says so, that of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// CRC-32 (ISO-HDLC).
    Crc32,
    /// The same, of the whole object.
    Crc32FullObject,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// The same, of the whole object.
    Crc32cFullObject,
    /// CRC-64/NVME, always of the whole object.
    Crc64Nvme,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

impl Checksum {
    /// Every checksum.
    pub const ALL: [Self; 7] = [
        Self::Crc32,
        Self::Crc32FullObject,
        Self::Crc32c,
        Self::Crc32cFullObject,
        Self::Crc64Nvme,
        Self::Sha1,
        Self::Sha256,
    ];

    /// Returns the name used on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32FullObject => "CRC32-FO",
            Self::Crc32c => "CRC32C",
            Self::Crc32cFullObject => "CRC32C-FO",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }

    /// Returns the checksum of that name, in letters of either case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|checksum| checksum.name().eq_ignore_ascii_case(name))
    }

    /// Tells whether it is of the whole object also where that is written in parts.
    pub const fn is_full_object(self) -> bool {
        matches!(self, Self::Crc32FullObject | Self::Crc32cFullObject | Self::Crc64Nvme)
    }

    /// Returns what S3 calls the algorithm.
    pub(crate) const fn algorithm(self) -> &'static str {
        match self {
            Self::Crc32 | Self::Crc32FullObject => "CRC32",
            Self::Crc32c | Self::Crc32cFullObject => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }

    /// Returns the name of the header that holds its value.
    pub(crate) const fn header(self) -> &'static str {
        match self {
            Self::Crc32 | Self::Crc32FullObject => "x-amz-checksum-crc32",
            Self::Crc32c | Self::Crc32cFullObject => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }

    /// Returns what S3 says of the whole of an object in parts.
    pub(crate) const fn kind(self) -> &'static str {
        if self.is_full_object() { "FULL_OBJECT" } else { "COMPOSITE" }
    }
}

/// How requests are signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signature {
    /// With AWS Signature Version 4.
    #[default]
    V4,
    /// With AWS Signature Version 2, which only old servers need.
    V2,
}

impl RequestOptions {
    /// Returns how large the parts are in which an object of `size` bytes is written, or `None` if
    /// it is written with one request.
    pub fn part_size_of(&self, size: u64) -> Option<u64> {
        let wanted = self.part_size.filter(|part| !self.disable_multipart && size > *part)?;
        Some(wanted.max(size.div_ceil(PARTS_COUNT_MAX.into())))
    }

    /// Returns the first thing that cannot work.
    pub(crate) fn check(&self, settings: Settings) -> Result<(), ConfigError> {
        if matches!(self.encryption, Encryption::SseC { .. }) && !settings.tls {
            return Err(ConfigError::KeyInTheClear);
        }
        if self.checksum.is_some() {
            for (is_set, with) in [
                (settings.sign_payload, "`sha256_payload`"),
                (settings.content_md5, "`md5`"),
                (self.signature == Signature::V2, "`signature` S3V2"),
            ] {
                if is_set {
                    return Err(ConfigError::ChecksumWith(with));
                }
            }
        }
        if let Some(size) = self.part_size
            && !(1..=PART_SIZE_MAX).contains(&size)
        {
            return Err(ConfigError::PartSize(size));
        }
        if !(1..=PART_CONCURRENCY_MAX).contains(&self.part_concurrency) {
            return Err(ConfigError::PartConcurrency(self.part_concurrency));
        }
        self.check_texts()
    }

    fn check_texts(&self) -> Result<(), ConfigError> {
        let fits = |text: &str| {
            let plain = text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
            plain && !text.is_empty() && text.trim_matches(' ') == text && !text.contains("  ")
        };
        if self.storage_class.as_deref().is_some_and(|class| !fits(class)) {
            return Err(ConfigError::Text("`storage_class`"));
        }
        if let Encryption::SseKms { key_id: Some(key_id) } = &self.encryption
            && !fits(key_id)
        {
            return Err(ConfigError::Text("`sse_kms_key`"));
        }
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        for (name, value) in &self.metadata {
            let named = !name.is_empty() && name.bytes().all(is_token);
            if !named || !(value.is_empty() || fits(value)) {
                return Err(ConfigError::Text("`add_metadata`"));
            }
        }
        if self.tags.iter().any(|(name, _)| name.is_empty()) {
            return Err(ConfigError::Text("`tag`"));
        }
        if self.tags.len() > TAGS_COUNT_MAX {
            return Err(ConfigError::TooManyTags(self.tags.len(), TAGS_COUNT_MAX));
        }
        Ok(())
    }
}

/// What of the rest of the configuration the options must agree with.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) tls: bool,
    pub(crate) sign_payload: bool,
    pub(crate) content_md5: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Settings = Settings { tls: false, sign_payload: false, content_md5: false };

    #[test]
    fn what_cannot_work_is_refused() {
        let refused = |change: &dyn Fn(&mut RequestOptions, &mut Settings)| {
            let (mut options, mut settings) = (RequestOptions::default(), PLAIN);
            change(&mut options, &mut settings);
            options.check(settings).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refused(&|_, _| ()), "");
        let key = Encryption::SseC { key: [7; 32] };
        assert!(refused(&|o, _| o.encryption = key.clone()).contains("`tls`"));
        assert_eq!(refused(&|o, s| (o.encryption, s.tls) = (key.clone(), true)), "");
        let summed = |o: &mut RequestOptions| o.checksum = Some(Checksum::Sha1);
        assert_eq!(refused(&|o, _| summed(o)), "");
        for (flag, change) in [
            (
                "`sha256_payload`",
                (|_, s| s.sign_payload = true) as fn(&mut RequestOptions, &mut Settings),
            ),
            ("`md5`", |_, s| s.content_md5 = true),
            ("`signature` S3V2", |o, _| o.signature = Signature::V2),
        ] {
            let both = |o: &mut RequestOptions, s: &mut Settings| {
                summed(o);
                change(o, s);
            };
            assert!(refused(&both).contains(flag), "{flag}");
        }
        assert!(refused(&|o, _| o.part_size = Some(0)).contains("`part_size`"));
        assert!(refused(&|o, _| o.part_concurrency = 0).contains("`part_parallel`"));
        for (name, value) in [("", "v"), ("a b", "v"), ("a", "v\r\nx: y"), ("a", " v"), ("a", "é")]
        {
            let pair = vec![(name.to_owned(), value.to_owned())];
            let message = refused(&|o, _| o.metadata = pair.clone());
            assert!(message.contains("`add_metadata`"), "{name} {value}: {message}");
        }
        let tags = |count| vec![("é".to_owned(), String::new()); count];
        assert_eq!(refused(&|o, _| o.tags = tags(10)), "");
        assert!(refused(&|o, _| o.tags = tags(11)).contains("`tag`"));
    }

    #[test]
    fn parts_grow_where_there_would_be_too_many() {
        let mut options = RequestOptions::default();
        assert_eq!(options.part_size_of(u64::MAX), None);
        options.part_size = Some(PART_SIZE_DEFAULT);
        assert_eq!(options.part_size_of(PART_SIZE_DEFAULT), None);
        assert_eq!(options.part_size_of(PART_SIZE_DEFAULT + 1), Some(PART_SIZE_DEFAULT));
        // 10,000 parts of 16 MiB are 156.25 GiB.
        let full = PART_SIZE_DEFAULT * 10_000;
        assert_eq!(options.part_size_of(full), Some(PART_SIZE_DEFAULT));
        assert_eq!(options.part_size_of(full + 1), Some(PART_SIZE_DEFAULT + 1));
        options.disable_multipart = true;
        assert_eq!(options.part_size_of(full), None);
    }

    #[test]
    fn names_are_found_again_and_no_key_is_printed() {
        for checksum in Checksum::ALL {
            assert_eq!(Checksum::from_name(&checksum.name().to_lowercase()), Some(checksum));
        }
        assert_eq!(Checksum::from_name("MD4"), None);
        let text = format!("{:?}", Encryption::SseC { key: [119; 32] });
        assert_eq!(text, "SseC");
    }
}
