//! Content given to and taken from a session: generated on writing, checked byte by byte on
//! reading.

use plimsoll_driver::{ContentSink, ContentSource, EntrySink};
use plimsoll_workload::data::Content;
use plimsoll_workload::hash_text;

/// Gives the content of one object.
pub(crate) struct Given<'a> {
    pub(crate) content: Content<'a>,
    pub(crate) size: u64,
}

impl ContentSource for Given<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        self.content.fill(offset, buffer);
    }
}

/// Takes the content of one object or range and checks it.
pub(crate) struct Taken<'a> {
    /// `None`: the bytes are counted only.
    pub(crate) content: Option<Content<'a>>,
    pub(crate) offset: u64,
    pub(crate) received: u64,
    pub(crate) first_wrong: Option<u64>,
}

impl<'a> Taken<'a> {
    pub(crate) fn new(content: Option<Content<'a>>, offset: u64) -> Self {
        Self { content, offset, received: 0, first_wrong: None }
    }
}

impl ContentSink for Taken<'_> {
    fn restart(&mut self) {
        self.received = 0;
        self.first_wrong = None;
    }

    fn accept(&mut self, bytes: &[u8]) {
        let at = self.offset + self.received;
        self.received += bytes.len() as u64;
        if let (Some(content), None) = (&self.content, self.first_wrong)
            && !content.matches(at, bytes)
        {
            self.first_wrong = content.first_difference(at, bytes);
        }
    }
}

/// The entries of a listing as a set: how many, and the sum of their names' hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntrySet {
    pub(crate) count: u64,
    hash: u64,
}

impl EntrySet {
    pub(crate) fn add(&mut self, key: &str) {
        self.count += 1;
        self.hash = self.hash.wrapping_add(hash_text(key));
    }
}

impl EntrySink for EntrySet {
    fn restart(&mut self) {
        *self = Self::default();
    }

    fn entry(&mut self, key: &str, _size: u64) {
        self.add(key);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_workload::data::Generator;

    use super::*;

    #[test]
    fn a_wrong_byte_is_found_wherever_the_pieces_are_cut() {
        let generator = Generator::new(1);
        let content = generator.content(5, 0);
        let mut bytes = vec![0; 20_000];
        content.fill(300, &mut bytes);
        for cut in [1, 100, 9_999, 20_000] {
            let mut taken = Taken::new(Some(content), 300);
            bytes.chunks(cut).for_each(|piece| taken.accept(piece));
            assert_eq!((taken.received, taken.first_wrong), (20_000, None));
            bytes[12_345] ^= 0x40;
            taken.restart();
            bytes.chunks(cut).for_each(|piece| taken.accept(piece));
            assert_eq!((taken.received, taken.first_wrong), (20_000, Some(300 + 12_345)));
            bytes[12_345] ^= 0x40;
        }
    }

    #[test]
    fn an_omitted_or_strange_entry_makes_another_set() {
        let set = |keys: &[&str]| {
            let mut set = EntrySet::default();
            keys.iter().for_each(|key| set.entry(key, 0));
            set
        };
        assert_eq!(set(&["a", "b", "c"]), set(&["c", "a", "b"]));
        assert_ne!(set(&["a", "b", "c"]), set(&["a", "b"]));
        assert_ne!(set(&["a", "b", "c"]), set(&["a", "b", "d"]));
    }
}
