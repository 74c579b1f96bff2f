//! An archive that is about to be written.

use plimsoll_driver::ContentSource;
use plimsoll_model::ObjectId;
use plimsoll_workload::archive::Archive;
use plimsoll_workload::data::Generator;
use plimsoll_workload::plan::Work;

/// zstd's fastest regular level.
const COMPRESS_LEVEL: i32 = 1;
/// Content is compressed in pieces of this size.
const COMPRESS_PIECE: usize = 128 << 10;

/// An archive that is about to be written, made before the time of the operation begins.
pub(super) struct Built {
    pub(super) id: ObjectId,
    pub(super) archive: Archive,
    /// What goes over the wire where it is compressed.
    pub(super) compressed: Option<Vec<u8>>,
    pub(super) members_count: u32,
    pub(super) members_bytes: u64,
}

impl Built {
    /// Returns how many objects and bytes count for writing it.
    pub(super) fn counts(&self, work: &Work) -> (u32, u64) {
        match work {
            Work::PutTar { .. } => (self.members_count, self.members_bytes),
            _ => (1, self.archive.size()),
        }
    }
}

/// Gives an archive.
pub(super) struct GivenArchive<'a> {
    pub(super) built: &'a Built,
    pub(super) generator: &'a Generator,
}

impl ContentSource for GivenArchive<'_> {
    fn size(&self) -> u64 {
        let compressed = self.built.compressed.as_ref().map(|bytes| bytes.len() as u64);
        compressed.unwrap_or_else(|| self.built.archive.size())
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        match &self.built.compressed {
            Some(bytes) => buffer.copy_from_slice(&bytes[offset as usize..][..buffer.len()]),
            None => self.built.archive.fill(self.generator, offset, buffer),
        }
    }
}

/// Returns the archive as a zstd stream.
pub(super) fn compress(archive: &Archive, generator: &Generator) -> Vec<u8> {
    use std::io::Write;
    const INTO_MEMORY: &str = "writing into memory does not fail";
    let mut encoder = zstd::Encoder::new(Vec::new(), COMPRESS_LEVEL).expect(INTO_MEMORY);
    let mut piece = vec![0; COMPRESS_PIECE];
    let mut at = 0;
    while at < archive.size() {
        let len = piece.len().min((archive.size() - at) as usize);
        archive.fill(generator, at, &mut piece[..len]);
        encoder.write_all(&piece[..len]).expect(INTO_MEMORY);
        at += len as u64;
    }
    encoder.finish().expect(INTO_MEMORY)
}

#[cfg(test)]
mod tests {
    use plimsoll_workload::archive::ArchiveMember;

    use super::*;

    #[test]
    fn a_compressed_archive_is_the_plain_one() {
        let generator = Generator::new(5);
        let member = |number: u32| ArchiveMember {
            name: number.to_string(),
            key: number.to_string(),
            size: 100_000,
        };
        let archive = Archive::tar(&[member(0), member(1), member(2)], 0);
        let mut plain = vec![0; archive.size() as usize];
        archive.fill(&generator, 0, &mut plain);
        let packed = compress(&archive, &generator);
        assert_eq!(zstd::decode_all(&*packed).unwrap(), plain);
    }
}
