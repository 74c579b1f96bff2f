//! MinIO's archives: one file out of a zip archive, and tar archives that are taken apart into
//! objects.

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use plimsoll_model::WallTime;
use s3s::{S3Result, s3_error};
use tar::{Archive, EntryType};
use zstd::stream::read::Decoder;

use super::attributes::kept;
use super::writing::Place;
use super::{Backend, refusal};
use crate::clock::wall_time;
use crate::content::Content;
use crate::digests::{Digests, Tag};
use crate::store::{Attributes, Condition, Object, StoreError, VersionId};

/// The header by which a read asks for a file of an archive.
pub(super) const EXTRACT: &str = "x-minio-extract";

/// The metadata by which a write asks for its archive to be taken apart, and under which prefix.
const TAKE_APART: &str = "snowball-auto-extract";
const PREFIX: &str = "minio-snowball-prefix";

/// How an archive ends that files are read of, with what divides its name from theirs.
const ZIP: &str = ".zip/";

/// How many directories are kept; each names no more than 65,535 files.
const DIRECTORIES_MAX: usize = 8;

/// The longest key, as in S3.
pub(super) const KEY_BYTES_MAX: usize = 1024;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Splits a key into that of an archive and the name of a file in it.
pub(super) fn member_of(key: &str) -> Option<(&str, &str)> {
    let at = key.find(ZIP)? + ZIP.len();
    let (archive, member) = (&key[..at - 1], &key[at..]);
    (!member.is_empty()).then_some((archive, member))
}

/// Tells whether an archive is to be taken apart.
pub(super) fn is_to_be_taken_apart(attributes: Option<&Attributes>) -> bool {
    let metadata = attributes.and_then(|attributes| attributes.metadata.as_ref());
    metadata.and_then(|metadata| metadata.get(TAKE_APART)).is_some_and(|value| value == "true")
}

/// The directories of the archives that were read last, the latest at the end: they are read over
/// and over.
#[derive(Default)]
pub(crate) struct Zips {
    last: Mutex<VecDeque<(ArchiveId, Arc<Directory>)>>,
}

/// What tells an archive from others: its ETag and when it was written.
type ArchiveId = (Tag, WallTime);

/// Where the files of a zip archive are, by name.
type Directory = HashMap<String, ZipMember>;

#[derive(Clone, Copy)]
struct ZipMember {
    /// Where its own header begins.
    at: usize,
    size: usize,
    crc: u32,
    is_compressed: bool,
}

impl Zips {
    /// Returns a file of an archive as an object.
    pub(super) fn member(
        &self,
        archive: &Object,
        name: &str,
    ) -> S3Result<Result<Object, StoreError>> {
        let not_zip =
            || s3_error!(InvalidRequest, "the archive is no zip archive that can be read");
        let id = (archive.tag, archive.modified);
        let directory = self.directory(id, &archive.content).ok_or_else(not_zip)?;
        let Some(member) = directory.get(name) else { return Ok(Err(StoreError::NoSuchKey)) };
        super::not_offered(member.is_compressed, "compressed files of zip archives")?;
        let content = content_of(&archive.content, member).ok_or_else(not_zip)?;
        // Not that of the content: it would have to be gone through.
        let crc = (u64::from(member.crc) << 32 | content.len() as u64 & 0xffff_ffff).to_be_bytes();
        let tag = Tag::Parts { crc, size_bytes: content.len() as u64, parts_count: 1 };
        let version = archive.version;
        let (attributes, part_ends, modified) = (None, None, archive.modified);
        Ok(Ok(Object { content, tag, modified, attributes, part_ends, version }))
    }

    fn directory(&self, id: ArchiveId, archive: &Content) -> Option<Arc<Directory>> {
        let mut last = self.last.lock().expect("nobody panics while reading a directory");
        if let Some((_, directory)) = last.iter().find(|(of, _)| *of == id) {
            return Some(Arc::clone(directory));
        }
        let directory = Arc::new(read_directory(archive)?);
        if last.len() == DIRECTORIES_MAX {
            last.pop_front();
        }
        last.push_back((id, Arc::clone(&directory)));
        Some(directory)
    }
}

/// Reads the directory of a zip archive (APPNOTE.TXT of PKWARE, 4.3.12 and 4.3.16); archives that
/// need its extensions for large ones are not read.
fn read_directory(archive: &Content) -> Option<Directory> {
    const END_LEN: usize = 22;
    const COMMENT_MAX: usize = u16::MAX as usize;
    let from = archive.len().saturating_sub(END_LEN + COMMENT_MAX);
    let tail = archive.slice(from..archive.len()).whole();
    let end = memchr::memmem::rfind(&tail, b"PK\x05\x06")?;
    let count = u16_at(&tail, end + 10)?;
    let begin = u32_at(&tail, end + 16)? as usize;
    let end = begin.checked_add(u32_at(&tail, end + 12)? as usize)?;
    let archive = (end <= archive.len()).then(|| archive.slice(begin..end).whole())?;
    let (archive, mut at) = (&archive[..], 0_usize);
    let mut directory = Directory::new();
    for _ in 0..count {
        if archive.get(at..at.checked_add(4)?)? != b"PK\x01\x02" {
            return None;
        }
        let lens = [28, 30, 32].map(|field| u16_at(archive, at + field));
        let [name_len, extra_len, comment_len] = lens.map(|len| len.map(usize::from));
        let name = archive.get(at + 46..at + 46 + name_len?)?;
        let member = ZipMember {
            at: u32_at(archive, at + 42)? as usize,
            size: u32_at(archive, at + 20)? as usize,
            crc: u32_at(archive, at + 16)?,
            is_compressed: u16_at(archive, at + 10)? != 0,
        };
        directory.insert(String::from_utf8_lossy(name).into_owned(), member);
        at += 46 + name_len? + extra_len? + comment_len?;
    }
    Some(directory)
}

/// Returns the content of a file that is stored as it is (4.3.7).
fn content_of(archive: &Content, member: &ZipMember) -> Option<Content> {
    const HEADER_LEN: usize = 30;
    let header_end = member.at.checked_add(HEADER_LEN).filter(|end| *end <= archive.len())?;
    let header = archive.slice(member.at..header_end).whole();
    if !header.starts_with(b"PK\x03\x04") {
        return None;
    }
    let name_len = usize::from(u16_at(&header, 26)?);
    let extra_len = usize::from(u16_at(&header, 28)?);
    let begin = header_end + name_len + extra_len;
    let end = begin.checked_add(member.size)?;
    (end <= archive.len()).then(|| archive.slice(begin..end))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(field.try_into().expect("it has two bytes")))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(field.try_into().expect("it has four bytes")))
}

impl Backend {
    /// Stores the files of a tar archive under their names; the archive itself is not stored.
    pub(super) fn take_apart(
        &self,
        place: &Place<'_>,
        archive: Bytes,
        mut attributes: Attributes,
    ) -> S3Result<()> {
        let metadata = attributes.metadata.take().unwrap_or_default();
        let prefix = metadata.get(PREFIX).cloned().unwrap_or_default();
        let left: HashMap<_, _> =
            metadata.into_iter().filter(|(name, _)| name != TAKE_APART && name != PREFIX).collect();
        attributes.metadata = (!left.is_empty()).then_some(left);
        attributes.content_type = None;
        let take =
            |archive: &mut dyn Read| self.store_members(place, archive, &prefix, &attributes);
        if archive.starts_with(&GZIP_MAGIC) {
            return super::not_offered(true, "archives compressed by gzip");
        }
        if archive.starts_with(&ZSTD_MAGIC) {
            let decoder = Decoder::new(&archive[..]);
            return take(&mut decoder.map_err(not_tar)?);
        }
        take(&mut &archive[..])
    }

    fn store_members(
        &self,
        place: &Place<'_>,
        archive: &mut dyn Read,
        prefix: &str,
        attributes: &Attributes,
    ) -> S3Result<()> {
        let mut archive = Archive::new(archive);
        for entry in archive.entries().map_err(not_tar)? {
            let mut entry = entry.map_err(not_tar)?;
            if !matches!(entry.header().entry_type(), EntryType::Regular | EntryType::Continuous) {
                continue;
            }
            let name = String::from_utf8(entry.path_bytes().into_owned());
            let name = name.map_err(|_| s3_error!(InvalidArgument, "a name is not UTF-8"))?;
            let key = format!("{prefix}{name}");
            if key.is_empty() || key.len() > KEY_BYTES_MAX {
                return Err(s3_error!(KeyTooLongError, "a key has 1 to 1024 bytes"));
            }
            let size_bytes = entry.size();
            let place = Place { key: &key, condition: Condition::Always, ..*place };
            let mut attributes = Some(attributes.clone());
            let room = self.room(&place, size_bytes, &mut attributes).map_err(refusal)?;
            // Not more than is there, whatever the header says.
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(not_tar)?;
            if content.len() as u64 != size_bytes {
                return Err(s3_error!(InvalidRequest, "the archive ends within a file"));
            }
            let tag = Digests::of([&content[..]], self.tagging, None).tag;
            let object = Object {
                content: Bytes::from(content).into(),
                tag,
                modified: wall_time(),
                attributes: kept(attributes),
                part_ends: None,
                version: VersionId::NULL,
            };
            let put = self.store.put(place.bucket, &key, object, place.condition, room);
            put.map_err(refusal)?;
        }
        Ok(())
    }
}

fn not_tar(error: std::io::Error) -> s3s::S3Error {
    s3_error!(error, InvalidRequest, "the content is no tar archive that can be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_what_stands_behind_the_first_archive() {
        assert_eq!(member_of("a/b.zip/c/d.zip/e"), Some(("a/b.zip", "c/d.zip/e")));
        for key in ["a.zip", "a.zip/", "a/b", ""] {
            assert_eq!(member_of(key), None, "{key}");
        }
    }

    #[test]
    fn a_directory_that_lies_is_not_followed() {
        let content = |bytes: &[u8]| Content::from(Bytes::copy_from_slice(bytes));
        let read_directory = |bytes: &[u8]| read_directory(&content(bytes));
        let end = |count: u16, at: u32| {
            let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
            end.extend(count.to_le_bytes());
            end.extend(count.to_le_bytes());
            end.extend(0_u32.to_le_bytes());
            end.extend(at.to_le_bytes());
            end.extend([0; 2]);
            end
        };
        assert!(read_directory(&end(0, 0)).is_some_and(|directory| directory.is_empty()));
        assert!(read_directory(&end(1, u32::MAX)).is_none());
        assert!(read_directory(&end(1, 0)).is_none());
        assert!(read_directory(b"PK\x05\x06").is_none());
        assert!(read_directory(b"").is_none());
        let archive = content(b"PK\x03\x04 and not much more than that ....");
        for (at, size) in [(0, 1000), (1, 1), (usize::MAX, 1), (0, usize::MAX)] {
            let member = ZipMember { at, size, crc: 0, is_compressed: false };
            assert!(content_of(&archive, &member).is_none(), "{at} {size}");
        }
    }

    /// Returns an archive of one file that is stored as it is.
    fn zip_of(name: &str, content: &[u8]) -> Vec<u8> {
        let len = (content.len() as u32).to_le_bytes();
        let name_len = (name.len() as u16).to_le_bytes();
        let fields = [&[0; 4][..], &len, &len, &name_len, &[0; 2]].concat();
        let local = [&b"PK\x03\x04"[..], &[0; 10], &fields, name.as_bytes(), content].concat();
        let entry = [&b"PK\x01\x02"[..], &[0; 12], &fields, &[0; 14], name.as_bytes()].concat();
        let (size, at) = (entry.len() as u32, local.len() as u32);
        let end = [&b"PK\x05\x06"[..], &[0; 4], &[1, 0, 1, 0], &size.to_le_bytes()].concat();
        [local, entry, end, at.to_le_bytes().to_vec(), vec![0; 2]].concat()
    }

    #[test]
    fn a_member_is_read_in_place_and_is_that_of_the_archive_that_is_there() {
        let zips = Zips::default();
        let read = |zip: &[u8]| {
            // As it is after an upload in parts.
            let (first, rest) = zip.split_at(45);
            let pieces = [first, rest].map(|piece| Bytes::copy_from_slice(piece).into());
            let archive = Object {
                content: Content::of_pieces(pieces.into_iter()),
                tag: Tag::of(zip),
                modified: WallTime::from_unix_ns(0),
                attributes: None,
                part_ends: None,
                version: VersionId::NULL,
            };
            (zips.member(&archive, "dir/file").unwrap().unwrap().content, archive.content)
        };
        for content in [&[b'a'; 1000][..], &[b'b'; 999], &[b'a'; 1000]] {
            let (member, archive) = read(&zip_of("dir/file", content));
            assert!(member.whole() == content);
            let held: Vec<_> = archive.pieces().map(<[u8]>::as_ptr_range).collect();
            let is_shared = |piece: &[u8]| held.iter().any(|held| held.contains(&piece.as_ptr()));
            assert!(member.pieces().all(is_shared), "nothing is copied");
        }
        // Directories of archives that were read before make room.
        for size in 0..2 * DIRECTORIES_MAX {
            assert_eq!(read(&zip_of("dir/file", &vec![b'c'; size])).0.len(), size);
        }
        assert_eq!(zips.last.lock().unwrap().len(), DIRECTORIES_MAX);
    }
}
