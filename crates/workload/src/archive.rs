//! Archives made of generated content: what is where in a zip or tar archive, so that any piece of
//! it can be made at any time.
//!
//! Nothing is compressed here. A zip archive follows APPNOTE.TXT 6.3.10 without its extensions for
//! large ones, a tar archive the ustar format of POSIX.1-1988.

use crate::data::Generator;
use crate::hash_text;

/// Bytes that a tar archive is made of.
const TAR_BLOCK: usize = 512;
const TAR_NAME_MAX: usize = 100;
/// The longest beginning of a name in a tar archive.
pub(crate) const TAR_PREFIX_MAX: usize = 155;
/// Names are UTF-8.
const ZIP_FLAGS: u16 = 1 << 11;
/// Version 1.0 of the format knows all that is used.
const ZIP_VERSION: u16 = 10;
/// The first day that the format knows: 1 January 1980.
const ZIP_DATE: u16 = 1 << 5 | 1;
/// Made on a system with Unix's modes, a file that all may read.
const ZIP_MADE_BY: u16 = 3 << 8 | ZIP_VERSION;
const ZIP_MODE: u32 = 0o100_644 << 16;

/// One file of an archive. Its content is that of the object whose key is given, version 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveMember {
    /// Its name in the archive.
    pub name: String,
    /// The key of the object whose content it has.
    pub key: String,
    /// Its size.
    pub size: u64,
}

/// A piece of an archive that begins at `at`.
struct Piece {
    at: u64,
    what: What,
}

enum What {
    /// Bytes of the layout from here on.
    Fixed(usize),
    /// Content of the object whose key has this hash.
    Content(u64),
}

/// An archive: its layout, not its content.
pub struct Archive {
    fixed: Vec<u8>,
    pieces: Vec<Piece>,
    size: u64,
}

impl Archive {
    fn new() -> Self {
        Self { fixed: Vec::new(), pieces: Vec::new(), size: 0 }
    }

    /// Returns a tar archive of these files, last changed at `changed_s` (seconds since 1970).
    pub fn tar(members: &[ArchiveMember], changed_s: u64) -> Self {
        let mut archive = Self::new();
        for member in members {
            archive.push_fixed(&tar_header(member, changed_s));
            archive.push_content(member);
            let fill = (TAR_BLOCK - (member.size % TAR_BLOCK as u64) as usize) % TAR_BLOCK;
            archive.push_fixed(&[0; TAR_BLOCK][..fill]);
        }
        archive.push_fixed(&[0; 2 * TAR_BLOCK]);
        archive
    }

    /// Returns a zip archive of these files, none of which is compressed; their content is
    /// generated once for its checksums.
    pub fn zip(members: &[ArchiveMember], generator: &Generator) -> Self {
        let mut archive = Self::new();
        let mut directory = Vec::new();
        for member in members {
            let header = zip_header(member, content_crc(member, generator));
            directory.extend(b"PK\x01\x02");
            directory.extend(ZIP_MADE_BY.to_le_bytes());
            directory.extend(&header);
            // No comment, first disk, no text.
            directory.extend([0; 6]);
            directory.extend(ZIP_MODE.to_le_bytes());
            directory.extend((archive.size as u32).to_le_bytes());
            directory.extend(member.name.as_bytes());
            archive.push_fixed(&[b"PK\x03\x04", &header[..], member.name.as_bytes()].concat());
            archive.push_content(member);
        }
        let (count, at) = (members.len() as u16, archive.size as u32);
        let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
        end.extend(count.to_le_bytes());
        end.extend(count.to_le_bytes());
        end.extend((directory.len() as u32).to_le_bytes());
        end.extend(at.to_le_bytes());
        end.extend([0; 2]);
        archive.push_fixed(&directory);
        archive.push_fixed(&end);
        debug_assert!(archive.size < u64::from(u32::MAX), "the workload was checked");
        archive
    }

    /// Returns how large the archive is.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buffer` with the archive from `offset` on; it does not go beyond its end.
    pub fn fill(&self, generator: &Generator, offset: u64, buffer: &mut [u8]) {
        let mut at = offset;
        let mut rest = buffer;
        let mut index = self.pieces.partition_point(|piece| piece.at <= offset);
        while !rest.is_empty() {
            let piece = &self.pieces[index - 1];
            let end = self.pieces.get(index).map_or(self.size, |next| next.at);
            let len = rest.len().min((end - at) as usize);
            let (target, tail) = rest.split_at_mut(len);
            let within = at - piece.at;
            match piece.what {
                What::Fixed(from) => {
                    target.copy_from_slice(&self.fixed[from + within as usize..][..len]);
                }
                What::Content(hash) => generator.content(hash, 0).fill(within, target),
            }
            at += len as u64;
            rest = tail;
            index += 1;
        }
    }

    fn push_fixed(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.pieces.push(Piece { at: self.size, what: What::Fixed(self.fixed.len()) });
            self.fixed.extend_from_slice(bytes);
            self.size += bytes.len() as u64;
        }
    }

    fn push_content(&mut self, member: &ArchiveMember) {
        if member.size > 0 {
            let what = What::Content(hash_text(&member.key));
            self.pieces.push(Piece { at: self.size, what });
            self.size += member.size;
        }
    }
}

/// Returns the header of a file, 512 bytes.
fn tar_header(member: &ArchiveMember, changed_s: u64) -> [u8; TAR_BLOCK] {
    let name = member.name.as_bytes();
    // A long name is cut at a slash into a beginning of at most 155 bytes and a rest of at most
    // 100.
    let cut = if name.len() <= TAR_NAME_MAX {
        None
    } else {
        let from = name.len() - TAR_NAME_MAX - 1;
        name[from..].iter().position(|byte| *byte == b'/').map(|slash| from + slash)
    };
    let (prefix, name) = cut.map_or((&name[..0], name), |cut| (&name[..cut], &name[cut + 1..]));
    let mut header = [0; TAR_BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name[..name.len().min(TAR_NAME_MAX)]);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", member.size).as_bytes());
    put(136, format!("{changed_s:011o}\0").as_bytes());
    // The checksum is taken over a header with blanks in its place.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(329, b"0000000\0");
    put(337, b"0000000\0");
    put(345, prefix);
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Returns what the header of a file and its entry in the directory have in common.
fn zip_header(member: &ArchiveMember, crc: u32) -> Vec<u8> {
    let size = (member.size as u32).to_le_bytes();
    let mut header = Vec::with_capacity(26);
    header.extend(ZIP_VERSION.to_le_bytes());
    header.extend(ZIP_FLAGS.to_le_bytes());
    // Stored, at midnight.
    header.extend([0; 4]);
    header.extend(ZIP_DATE.to_le_bytes());
    header.extend(crc.to_le_bytes());
    header.extend(size);
    header.extend(size);
    header.extend((member.name.len() as u16).to_le_bytes());
    header.extend([0; 2]);
    header
}

fn content_crc(member: &ArchiveMember, generator: &Generator) -> u32 {
    let content = generator.content(hash_text(&member.key), 0);
    let mut crc = Crc32::default();
    // Bound: 64 KiB.
    let mut buffer = vec![0; member.size.min(64 << 10) as usize];
    let mut at = 0;
    while at < member.size {
        let len = buffer.len().min((member.size - at) as usize);
        content.fill(at, &mut buffer[..len]);
        crc.add(&buffer[..len]);
        at += len as u64;
    }
    crc.value()
}

/// The checksum of zip archives: CRC-32 of ISO 3309, its bits reversed.
struct Crc32(u32);

/// Tables for eight bytes at once (M. Kounavis, F. Berry: A systematic approach to building high
/// performance, software-based, CRC generators, 2005).
static CRC_TABLES: [[u32; 256]; 8] = crc_tables();

const fn crc_tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ ((crc & 1) * 0xedb8_8320);
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 255) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

impl Default for Crc32 {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl Crc32 {
    fn add(&mut self, bytes: &[u8]) {
        let (words, tail) = bytes.as_chunks::<8>();
        let mut crc = u64::from(self.0);
        for word in words {
            let word = (u64::from_le_bytes(*word) ^ crc).to_le_bytes();
            let look = |at: usize| CRC_TABLES[7 - at][usize::from(word[at])];
            crc = u64::from((0..8).fold(0, |crc, at| crc ^ look(at)));
        }
        let mut crc = crc as u32;
        for byte in tail {
            crc = crc >> 8 ^ CRC_TABLES[0][((crc ^ u32::from(*byte)) & 255) as usize];
        }
        self.0 = crc;
    }

    fn value(&self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(sizes: &[u64]) -> Vec<ArchiveMember> {
        let member = |(number, size): (usize, &u64)| ArchiveMember {
            name: format!("dir/päivä-{number}.rnd"),
            key: format!("base/{number}"),
            size: *size,
        };
        sizes.iter().enumerate().map(member).collect()
    }

    fn whole(archive: &Archive, generator: &Generator) -> Vec<u8> {
        let mut bytes = vec![0; archive.size() as usize];
        archive.fill(generator, 0, &mut bytes);
        bytes
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        // The check value of the catalogue of parametrised CRC algorithms, and the same with a cut.
        for cut in [0, 1, 5, 8, 9] {
            let mut crc = Crc32::default();
            crc.add(&b"123456789"[..cut]);
            crc.add(&b"123456789"[cut..]);
            assert_eq!(crc.value(), 0xcbf4_3926);
        }
    }

    #[test]
    fn any_piece_is_a_piece_of_the_whole() {
        let generator = Generator::new(3);
        let members = members(&[1, 0, 511, 512, 513, 100_000]);
        for archive in [Archive::tar(&members, 1_000), Archive::zip(&members, &generator)] {
            let whole = whole(&archive, &generator);
            for (from, len) in [(0, 1), (29, 700), (511, 2), (1_000, 5_000), (90_000, 12_000)] {
                let mut piece = vec![0; len];
                archive.fill(&generator, from as u64, &mut piece);
                assert_eq!(piece, whole[from..from + len]);
            }
            let mut last = [1];
            archive.fill(&generator, archive.size() - 1, &mut last);
            assert_eq!(last, [0]);
        }
    }

    #[test]
    fn a_tar_archive_has_headers_by_the_standard_and_whole_blocks() {
        let generator = Generator::new(3);
        let mut members = members(&[1_000, 5]);
        members[1].name = format!("{}/{}", "p".repeat(120), "n".repeat(90));
        let bytes = whole(&Archive::tar(&members, 0o1234), &generator);
        // Two headers, two blocks and one of content, two blocks at the end.
        assert_eq!(bytes.len(), 512 * (2 + 3 + 2));
        assert_eq!(&bytes[124..136], b"00000001750\0");
        assert_eq!(&bytes[136..148], b"00000001234\0");
        let second = &bytes[512 * 3..512 * 4];
        assert_eq!(&second[..90], "n".repeat(90).as_bytes());
        assert_eq!(&second[345..465], "p".repeat(120).as_bytes());
        for header in [&bytes[..512], second] {
            let blanked = [&header[..148], b"        ", &header[156..]].concat();
            let sum: u32 = blanked.iter().map(|byte| u32::from(*byte)).sum();
            assert_eq!(&header[148..156], format!("{sum:06o}\0 ").as_bytes());
        }
        let mut content = vec![0; 1_000];
        generator.content(hash_text("base/0"), 0).fill(0, &mut content);
        assert_eq!(bytes[512..1_512], content);
        assert_eq!(bytes[1_512..1_536], [0; 24]);
    }
}
