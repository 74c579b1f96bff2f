//! Finds out by trying what a server offers beyond what every S3 server does.

use std::num::NonZeroU32;

use plimsoll_driver::{
    Completion, ContentSink, ContentSource, DriverError, EntrySink, Operation, Session,
};

use plimsoll_model::ErrorClass;

use super::{S3Admin, is_refusal};
use crate::s3_request::Property;
use crate::session::BucketRequest;

/// What a server may offer or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Reads one file of a zip archive (MinIO's own).
    Zip,
    /// Writes one content under several keys with one call (MinIO's own).
    Fanout,
    /// Takes an archive apart into objects (MinIO's own, and that of S3 Snowball).
    Snowball,
    /// Adds to the end of an object (that of S3 Express).
    Append,
    /// Keeps versions.
    Versioning,
    /// Lists versions, be there several of an object or not.
    ListVersions,
    /// Retains objects; asked of the bucket, as S3 gives it to new buckets only.
    Lock,
    /// Makes an object of parts below 5 MiB.
    SmallParts,
}

/// What is written to try things out.
const PROBE_TEXT: &[u8] = b"plimsoll tries out what this server offers\n";

impl S3Admin {
    /// Tells whether the server offers `feature`. Most are tried out on objects below `prefix`,
    /// which must be the caller's own and are removed again.
    ///
    /// An error means that it could not be found out.
    pub async fn probe(&mut self, feature: Feature, prefix: &str) -> Result<bool, DriverError> {
        assert!(!prefix.is_empty(), "probing needs its own prefix");
        let key = format!("{prefix}plimsoll-probe");
        let offers = match feature {
            Feature::Zip => self.probe_zip(&format!("{key}.zip")).await,
            Feature::Fanout => self.probe_fanout(&key).await,
            Feature::Snowball => self.probe_snowball(&key).await,
            Feature::Append => self.probe_append(&key).await,
            Feature::SmallParts => self.probe_small_parts(&key).await,
            Feature::Versioning => return self.offers_versioning().await,
            Feature::ListVersions => return Ok(self.lists_versions(prefix).await),
            Feature::Lock => return self.has_lock().await,
        };
        let offers = match offers {
            Err(error) if is_refusal(&error) || is_something_else(feature, &error) => Ok(false),
            other => other,
        };
        let removed = self.remove_probes(&key).await;
        offers.and_then(|offers| removed.map(|()| offers))
    }

    async fn offers_versioning(&mut self) -> Result<bool, DriverError> {
        let call = BucketRequest::Get(Property::Versioning);
        match self.call(call).await {
            Ok(()) => Ok(true),
            Err(error) if is_refusal(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn lists_versions(&mut self, prefix: &str) -> bool {
        /// The store knows no such request (501), or not for a bucket (405).
        const NOT_OFFERED: [u16; 2] = [501, 405];
        let sink = &mut Kept::default();
        let list = Operation::ListVersions {
            prefix,
            page_size: 1,
            pages_max: Some(NonZeroU32::MIN),
            sink,
        };
        // What else goes wrong says nothing of what it offers.
        let status = self.run(list).await.err().and_then(|error| error.status);
        !status.is_some_and(|status| NOT_OFFERED.contains(&status))
    }

    async fn run(&mut self, operation: Operation<'_>) -> Result<Completion, DriverError> {
        let mut completion = self.session.execute(None, operation).await;
        std::mem::replace(&mut completion.result, Ok(()))?;
        Ok(completion)
    }

    async fn read(&mut self, key: &str) -> Result<Vec<u8>, DriverError> {
        let mut sink = Kept::default();
        self.run(Operation::Get { key, range: None, version: None, sink: &mut sink }).await?;
        Ok(sink.0)
    }

    async fn probe_zip(&mut self, key: &str) -> Result<bool, DriverError> {
        self.run(Operation::Put { key, content: &mut Bytes(zip_of_one()) }).await?;
        let mut sink = Kept::default();
        self.run(Operation::GetMember { key, member: "member", sink: &mut sink }).await?;
        Ok(sink.0 == PROBE_TEXT)
    }

    async fn probe_fanout(&mut self, key: &str) -> Result<bool, DriverError> {
        let keys = [format!("{key}.1"), format!("{key}.2")];
        self.run(Operation::Fanout { keys: &keys, content: &mut Bytes(PROBE_TEXT.to_vec()) })
            .await?;
        Ok(self.read(&keys[0]).await? == PROBE_TEXT && self.read(&keys[1]).await? == PROBE_TEXT)
    }

    async fn probe_snowball(&mut self, key: &str) -> Result<bool, DriverError> {
        let member = format!("{key}.member");
        let archive_key = format!("{key}.tar");
        let mut archive = Bytes(tar_of_one(&member));
        self.run(Operation::PutArchive { key: &archive_key, archive: &mut archive, members: 1 })
            .await?;
        Ok(self.read(&member).await? == PROBE_TEXT)
    }

    /// A server that does not know the header writes a new object and says nothing.
    async fn probe_append(&mut self, key: &str) -> Result<bool, DriverError> {
        let (begin, end) = PROBE_TEXT.split_at(10);
        self.run(Operation::Put { key, content: &mut Bytes(begin.to_vec()) }).await?;
        let content = &mut Bytes(end.to_vec());
        self.run(Operation::Append { key, offset: begin.len() as u64, content }).await?;
        Ok(self.read(key).await? == PROBE_TEXT)
    }

    async fn probe_small_parts(&mut self, key: &str) -> Result<bool, DriverError> {
        let created = self.run(Operation::CreateUpload { key }).await?;
        let upload = String::from(created.server_name.unwrap_or_default());
        let written = self.write_small_parts(key, &upload).await;
        if written.is_err() {
            self.run(Operation::AbortUpload { key, upload: &upload }).await?;
        }
        written?;
        Ok(self.read(key).await?.len() == 2)
    }

    async fn write_small_parts(&mut self, key: &str, upload: &str) -> Result<(), DriverError> {
        let mut parts = Vec::new();
        for number in [1, 2] {
            let content = &mut Bytes(vec![b'p']);
            let part = self.run(Operation::PutPart { key, upload, number, content }).await?;
            parts.push(String::from(part.server_name.unwrap_or_default()));
        }
        self.run(Operation::CompleteUpload { key, upload, parts: &parts }).await?;
        Ok(())
    }

    /// Removes what a probe may have written, versions too where there are any.
    async fn remove_probes(&mut self, key: &str) -> Result<(), DriverError> {
        self.sweep_all(key).await.map(|_| ())
    }
}

/// Tells whether the server answered as one that does not know what it was asked: it takes the form
/// of a fan-out for that of a single object and says nothing of copies, as SeaweedFS does.
fn is_something_else(feature: Feature, error: &DriverError) -> bool {
    let succeeded = error.status.is_some_and(|status| (200..300).contains(&status));
    feature == Feature::Fanout && succeeded && error.class == ErrorClass::Protocol
}

/// Content at hand.
struct Bytes(Vec<u8>);

impl ContentSource for Bytes {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
    }
}

/// Keeps what it is given.
#[derive(Default)]
struct Kept(Vec<u8>);

impl EntrySink for Kept {
    fn restart(&mut self) {}

    fn entry(&mut self, _key: &str, _size: u64) {}
}

impl ContentSink for Kept {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// Returns a zip archive with the text as its one file `member`, stored as it is (APPNOTE.TXT of
/// PKWARE, sections 4.3.7, 4.3.12 and 4.3.16).
fn zip_of_one() -> Vec<u8> {
    const NAME: &[u8] = b"member";
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, PROBE_TEXT) as u32;
    let size = PROBE_TEXT.len() as u32;
    // Version 2.0, no flags, stored, midnight of 1980-01-01, CRC and sizes, no extra field.
    let mut common = Vec::new();
    for half in [20_u16, 0, 0, 0, 0x21] {
        common.extend(half.to_le_bytes());
    }
    for word in [crc, size, size] {
        common.extend(word.to_le_bytes());
    }
    common.extend((NAME.len() as u16).to_le_bytes());
    common.extend(0_u16.to_le_bytes());

    let mut out = b"PK\x03\x04".to_vec();
    out.extend(&common);
    out.extend(NAME);
    out.extend(PROBE_TEXT);
    let directory_begin = out.len() as u32;
    out.extend(b"PK\x01\x02");
    out.extend(20_u16.to_le_bytes());
    out.extend(&common);
    // No comment, first disk, no attributes, the file at the very beginning.
    out.extend([0; 2 + 2 + 2 + 4 + 4]);
    out.extend(NAME);
    let directory_size = out.len() as u32 - directory_begin;
    out.extend(b"PK\x05\x06");
    for half in [0_u16, 0, 1, 1] {
        out.extend(half.to_le_bytes());
    }
    out.extend(directory_size.to_le_bytes());
    out.extend(directory_begin.to_le_bytes());
    out.extend(0_u16.to_le_bytes());
    out
}

/// Returns a tar archive with the text as its one file (POSIX.1-1988, ustar).
fn tar_of_one(name: &str) -> Vec<u8> {
    const BLOCK: usize = 512;
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    // A name that is too long for a probe is cut, and then not found: the answer stays true.
    put(0, &name.as_bytes()[..name.len().min(100)]);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", PROBE_TEXT.len()).as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut out = header.to_vec();
    out.extend(PROBE_TEXT);
    out.resize(4 * BLOCK, 0);
    out
}
