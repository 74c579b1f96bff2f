//! The files of one volume server.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum};

/// Which file, on whichever server: its volume and its key.
pub(crate) type FileKey = (u32, u64);

/// How many files are looked at for another one to be taken for the one asked for.
const NEIGHBOURS_MAX: usize = 16;

/// A file as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) cookie: u32,
    pub(crate) name: String,
    pub(crate) mime: String,
    pub(crate) content: Bytes,
    /// The CRC-32C of the content.
    pub(crate) crc: u32,
}

impl Stored {
    pub(crate) fn new(cookie: u32, name: String, mime: String, content: Bytes) -> Self {
        let crc = crc_of(&content);
        Self { cookie, name, mime, content, crc }
    }

    /// Returns how many bytes SeaweedFS says that it removes: the content, the length of it and of
    /// name and type, flags and a date.
    pub(crate) fn needle_size(&self) -> usize {
        let name = if self.name.is_empty() { 0 } else { 1 + self.name.len() };
        let mime = if self.mime.is_empty() { 0 } else { 1 + self.mime.len() };
        4 + self.content.len() + 1 + name + mime + 5
    }
}

/// Returns the CRC-32C of content, which is the ETag of SeaweedFS.
pub(crate) fn crc_of(content: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, content) as u32
}

/// A file as it is, and as it was before its last change.
#[derive(Debug, Default)]
struct Slot {
    now: Option<Arc<Stored>>,
    before: Option<Arc<Stored>>,
}

/// The files of one volume server.
#[derive(Debug, Default)]
pub(crate) struct Files {
    slots: BTreeMap<FileKey, Slot>,
    /// Whether what was before is kept.
    remembers: bool,
}

impl Files {
    pub(crate) fn new(remembers: bool) -> Self {
        Self { slots: BTreeMap::new(), remembers }
    }

    /// Returns a file.
    pub(crate) fn get(&self, key: FileKey) -> Option<&Arc<Stored>> {
        self.slots.get(&key)?.now.as_ref()
    }

    /// Returns a file as it was before its last change; `None` where nothing is known of it.
    pub(crate) fn before(&self, key: FileKey) -> Option<Option<&Arc<Stored>>> {
        self.slots.get(&key).filter(|_| self.remembers).map(|slot| slot.before.as_ref())
    }

    /// Writes a file, or removes it; returns what was there.
    pub(crate) fn write(&mut self, key: FileKey, file: Option<Arc<Stored>>) -> Option<Arc<Stored>> {
        if file.is_none() && !self.remembers {
            return self.slots.remove(&key)?.now;
        }
        let slot = self.slots.entry(key).or_default();
        let before = std::mem::replace(&mut slot.now, file);
        if self.remembers {
            slot.before.clone_from(&before);
        }
        before
    }

    /// Returns another file of at least `len` bytes, one of the next behind that of `key`.
    pub(crate) fn neighbour(&self, key: FileKey, len: usize) -> Option<&Arc<Stored>> {
        let behind = self.slots.range((key.0, key.1 + 1)..);
        let all = behind.chain(self.slots.range(..key)).take(NEIGHBOURS_MAX);
        let mut there = all.filter_map(|(_, slot)| slot.now.as_ref());
        there.find(|file| file.content.len() >= len)
    }

    /// Forgets a volume; returns how many files were in it.
    pub(crate) fn drop_volume(&mut self, volume: u32) -> u64 {
        let before = self.of_volume(volume).count() as u64;
        self.slots.retain(|(of, _), _| *of != volume);
        before
    }

    /// Returns the files of a volume.
    pub(crate) fn of_volume(&self, volume: u32) -> impl Iterator<Item = (u64, &Arc<Stored>)> {
        let slots = self.slots.range((volume, 0)..=(volume, u64::MAX));
        slots.filter_map(|((_, key), slot)| Some((*key, slot.now.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &'static str) -> Option<Arc<Stored>> {
        let content = Bytes::from_static(text.as_bytes());
        Some(Arc::new(Stored::new(7, String::new(), String::new(), content)))
    }

    #[test]
    fn what_was_before_is_kept_where_it_is_wanted() {
        for remembers in [true, false] {
            let mut files = Files::new(remembers);
            assert_eq!(files.before((1, 1)), None);
            assert_eq!(files.write((1, 1), file("first")), None);
            assert_eq!(files.before((1, 1)), remembers.then_some(None));
            assert_eq!(files.write((1, 1), file("second")), file("first"));
            assert_eq!(files.write((1, 1), None), file("second"));
            assert_eq!(files.get((1, 1)), None);
            let before = files.before((1, 1)).map(|before| before.cloned());
            assert_eq!(before, remembers.then(|| file("second")));
        }
    }

    #[test]
    fn volumes_are_apart() {
        let mut files = Files::new(true);
        for (key, text) in [((1, 1), "a"), ((1, 9), "bbbb"), ((2, 1), "cc"), ((2, 2), "dd")] {
            files.write(key, file(text));
        }
        files.write((2, 2), None);
        let neighbour = |key, len| files.neighbour(key, len).map(|file| file.content.clone());
        assert_eq!(neighbour((1, 1), 1).as_deref(), Some(&b"bbbb"[..]));
        assert_eq!(neighbour((1, 9), 2).as_deref(), Some(&b"cc"[..]));
        assert_eq!(neighbour((2, 1), 3).as_deref(), Some(&b"bbbb"[..]));
        assert_eq!(neighbour((1, 9), 5), None);
        assert_eq!(files.of_volume(2).map(|(key, _)| key).collect::<Vec<_>>(), [1]);
        assert_eq!((files.drop_volume(1), files.get((1, 1))), (2, None));
        // As SeaweedFS 4.48 answered, of a file with the name 7,0ae81f1c22 and a type.
        let content = Bytes::from_static(b"0123456789");
        let name = "7,0ae81f1c22".to_owned();
        let stored = Stored::new(0, name, "image/bench".to_owned(), content);
        assert_eq!((stored.needle_size(), stored.crc), (45, 0x280c_069e));
    }
}
