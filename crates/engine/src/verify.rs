//! Content given to and taken from a session: generated on writing, checked byte by byte on
//! reading.

mod guard;
mod shared;

use std::collections::HashSet;

use plimsoll_driver::{ContentSink, ContentSource, DriverError, EntrySink};
use plimsoll_model::ErrorClass;
use plimsoll_workload::data::{Content, Evidence, Received, Wrong};
use plimsoll_workload::hash_text;
use plimsoll_workload::objects::{Listed, ObjectSet};

pub(crate) use self::guard::Guard;
pub(crate) use self::shared::{Found, SharedSink};

/// Gives the content of one object, or of one part of it.
pub(crate) struct SourceContent<'a> {
    pub(crate) content: Content<'a>,
    /// Where in the object it begins.
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// What the object ends in instead, where it is guarded.
    pub(crate) guard: Option<Guard>,
}

impl ContentSource for SourceContent<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        self.content.fill(self.offset + offset, buffer);
        if let Some(guard) = &mut self.guard {
            guard.fill(&self.content, self.offset + offset, buffer);
        }
    }
}

/// Takes the content of one object or range and checks it.
pub(crate) struct CheckingSink<'a> {
    /// `None`: the bytes are counted only.
    content: Option<Content<'a>>,
    offset: u64,
    /// How many bytes are right; `None`: whatever comes, as nobody knows.
    expected_len: Option<u64>,
    received: u64,
    /// What is kept from the first wrong byte on; nothing is while all is right.
    evidence: Option<Evidence>,
}

impl<'a> CheckingSink<'a> {
    pub(crate) fn new(
        content: Option<Content<'a>>,
        offset: u64,
        expected_len: Option<u64>,
    ) -> Self {
        Self { content, offset, expected_len, received: 0, evidence: None }
    }

    /// Tells whether an error document came in the place of the content.
    pub(crate) fn is_error_document(&self) -> bool {
        let (Some(content), Some(evidence)) = (&self.content, &self.evidence) else { return false };
        // The first bytes of a document may be right by chance.
        let mut head = [0; 8];
        let right_len = (evidence.first_wrong() - self.offset) as usize;
        let Some(head) = head.get_mut(..right_len) else { return false };
        content.fill(self.offset, head);
        evidence.is_error_document(head)
    }

    /// Returns what is wrong with what came of `key`; the text is a whole sentence.
    pub(crate) fn judge(&self, key: &str) -> Option<Wrong> {
        let expected_len = self.expected_len.unwrap_or(self.received);
        let evidence = self.evidence.as_ref();
        let received = Received { offset: self.offset, expected_len, len: self.received, evidence };
        let wrong = match &self.content {
            Some(content) => content.diagnose(&received),
            None => received.wrong_length(),
        }?;
        let gave = |length: &Wrong| format!("`{key}` gave {}", length.text);
        let text = match evidence {
            Some(evidence) if !wrong.kind.is_length() => {
                let at = evidence.first_wrong();
                let length = received.wrong_length();
                let length =
                    length.map_or_else(String::new, |length| format!("; {}", gave(&length)));
                format!("byte {at} of `{key}` is wrong: {}{length}", wrong.text)
            }
            _ => gave(&wrong),
        };
        Some(Wrong { text, ..wrong })
    }
}

impl ContentSink for CheckingSink<'_> {
    fn restart(&mut self) {
        self.received = 0;
        self.evidence = None;
    }

    fn accept(&mut self, bytes: &[u8]) {
        let at = self.offset + self.received;
        self.received += bytes.len() as u64;
        if let Some(evidence) = &mut self.evidence {
            evidence.keep(bytes);
        } else if let Some(content) = &self.content
            && !content.matches(at, bytes)
            && let Some(wrong) = content.first_difference(at, bytes)
        {
            self.evidence = Some(Evidence::new(wrong, &bytes[(wrong - at) as usize..]));
        }
    }

    fn accept_unseen(&mut self) -> u64 {
        self.received = self.expected_len.unwrap_or(0);
        self.received
    }
}

/// Returns the error that wrong content is.
pub(crate) fn in_class(wrong: Wrong) -> DriverError {
    let class = if wrong.kind.is_length() { ErrorClass::Truncated } else { ErrorClass::Corrupt };
    DriverError::new(class, wrong.text)
}

/// Entries of a listing as a set: how many, and the sum of their names' hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EntrySet {
    count: u64,
    hash: u64,
}

impl EntrySet {
    fn add(&mut self, hash: u64) {
        self.count += 1;
        self.hash = self.hash.wrapping_add(hash);
    }
}

/// What a listing has to find, and the hashes of names that it may find besides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    certain: EntrySet,
    doubtful: HashSet<u64>,
}

impl Expected {
    pub(crate) fn new(set: &ObjectSet, listed: &Listed) -> Self {
        let mut key = String::new();
        let mut hash = |id| {
            set.keys.write(id, &mut key);
            hash_text(&key)
        };
        let mut certain = EntrySet::default();
        listed.certain.iter().for_each(|id| certain.add(hash(*id)));
        Self { certain, doubtful: listed.doubtful.iter().map(|id| hash(*id)).collect() }
    }
}

/// Takes the entries of a listing and checks them.
pub(crate) struct FoundEntries<'a> {
    /// `None`: it may hold anything.
    expected: Option<&'a Expected>,
    certain: EntrySet,
    doubtful_count: u64,
}

impl<'a> FoundEntries<'a> {
    pub(crate) fn new(expected: Option<&'a Expected>) -> Self {
        Self { expected, certain: EntrySet::default(), doubtful_count: 0 }
    }

    /// Returns what is wrong with the listing of a prefix that was to have at most so many entries.
    pub(crate) fn judge(&self, prefix: &str, entries_max: u64) -> Option<DriverError> {
        let expected = self.expected?;
        let (found, certain) = (self.certain.count, expected.certain.count);
        let is_whole = certain + expected.doubtful.len() as u64 <= entries_max;
        let all = found + self.doubtful_count;
        let is_right = match is_whole {
            true => self.certain == expected.certain,
            // Of what was cut off nobody knows which entries it were.
            false => (certain.min(entries_max)..=entries_max).contains(&all),
        };
        if is_right {
            return None;
        }
        let want = certain.min(entries_max);
        let message = match found == want {
            true => format!("the listing of `{prefix}` holds other keys than were written"),
            false => format!("the listing of `{prefix}` holds {found} entries instead of {want}"),
        };
        Some(DriverError::new(ErrorClass::Corrupt, message))
    }
}

impl EntrySink for FoundEntries<'_> {
    fn restart(&mut self) {
        (self.certain, self.doubtful_count) = (EntrySet::default(), 0);
    }

    fn entry(&mut self, key: &str, _size: u64) {
        let Some(expected) = self.expected else { return };
        let hash = hash_text(key);
        match expected.doubtful.contains(&hash) {
            true => self.doubtful_count += 1,
            false => self.certain.add(hash),
        }
    }

    fn accept_unseen(&mut self) -> u64 {
        self.certain = self.expected.map_or_else(EntrySet::default, |expected| expected.certain);
        self.certain.count
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::WrongKind;
    use plimsoll_workload::data::Generator;

    use super::*;

    #[test]
    fn a_wrong_byte_is_found_wherever_the_pieces_are_cut() {
        let generator = Generator::new(1);
        let content = generator.content(5, 0);
        let mut bytes = vec![0; 20_000];
        content.fill(300, &mut bytes);
        for cut in [1, 100, 9_999, 20_000] {
            let mut taken = CheckingSink::new(Some(content), 300, Some(20_000));
            bytes.chunks(cut).for_each(|piece| taken.accept(piece));
            assert_eq!(taken.judge("k"), None);
            bytes[12_345] ^= 0x40;
            taken.restart();
            bytes.chunks(cut).for_each(|piece| taken.accept(piece));
            let text = "byte 12645 of `k` is wrong: 1 flipped bit in 1 byte".to_owned();
            let wrong = Wrong { kind: WrongKind::Flipped, text };
            assert_eq!(taken.judge("k"), Some(wrong));
            bytes[12_345] ^= 0x40;
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_a_sentence() {
        let generator = Generator::new(1);
        let right = generator.content(hash_text("k"), 3);
        let older = generator.content(hash_text("k"), 2);
        let bytes = |content: Content<'_>, offset: u64, len: usize| {
            let mut bytes = vec![0; len];
            content.fill(offset, &mut bytes);
            bytes
        };
        let torn = [bytes(right, 0, 4_096), bytes(older, 4_096, 60_000 - 4_096)].concat();
        let long = [bytes(right, 0, 60_000), vec![b'x'; 9]].concat();
        for (given, kind, text) in [
            (
                torn,
                WrongKind::Torn,
                "byte 4096 of `k` is wrong: right up to here, then bytes of an older version \
                 (2 instead of 3)",
            ),
            (
                bytes(older, 0, 50_000),
                WrongKind::OldVersion,
                "byte 0 of `k` is wrong: bytes of an older version (2 instead of 3); `k` gave \
                 50000 bytes instead of 60000",
            ),
            (bytes(right, 0, 1), WrongKind::Short, "`k` gave 1 bytes instead of 60000"),
            (long, WrongKind::Long, "`k` gave 60009 bytes instead of 60000"),
        ] {
            for cut in [7, 16_384, 1 << 20] {
                let mut taken = CheckingSink::new(Some(right), 0, Some(60_000));
                given.chunks(cut).for_each(|piece| taken.accept(piece));
                let wrong = Wrong { kind, text: text.to_owned() };
                assert_eq!(taken.judge("k"), Some(wrong), "cut at {cut}");
            }
        }
    }

    #[test]
    fn content_that_is_not_checked_still_has_a_length() {
        let judged = |expected| {
            let mut taken = CheckingSink::new(None, 0, expected);
            taken.accept(&[0; 10]);
            taken.judge("k").map(|wrong| wrong.kind)
        };
        assert_eq!((judged(Some(10)), judged(None)), (None, None));
        assert_eq!(judged(Some(9)), Some(WrongKind::Long));
        assert_eq!(judged(Some(11)), Some(WrongKind::Short));
    }

    #[test]
    fn an_error_document_is_told_from_wrong_content() {
        let generator = Generator::new(1);
        let is_error = |body: &[u8]| {
            let mut taken = CheckingSink::new(Some(generator.content(5, 0)), 300, None);
            taken.accept(body);
            taken.is_error_document()
        };
        assert!(is_error(b"<Error><Code>InternalError</Code></Error>"));
        assert!(is_error(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>x</Code>"));
        assert!(!is_error(b"<?xml version=\"1.0\"?><ListBucketResult><Error>"));
        assert!(!is_error(b"<?xml"));
        assert!(!is_error(&[0; 100]));
        let mut right = [0; 64];
        generator.content(5, 0).fill(300, &mut right);
        assert!(!is_error(&right));
        // An object whose content begins with `<`, which one in 256 does.
        let key = (0..).find(|key| {
            let mut first = [0];
            generator.content(*key, 0).fill(0, &mut first);
            first == *b"<"
        });
        let mut taken = CheckingSink::new(Some(generator.content(key.unwrap(), 0)), 0, None);
        taken.accept(b"<Error><Code>InternalError</Code></Error>");
        assert!(taken.is_error_document());
    }

    /// Returns what is said of these entries where those of `certain` are there, and perhaps those
    /// of `doubtful`.
    fn said_of(keys: &[&str], certain: &[&str], doubtful: &[&str], max: u64) -> Option<String> {
        let mut expected = Expected::default();
        certain.iter().for_each(|key| expected.certain.add(hash_text(key)));
        expected.doubtful = doubtful.iter().map(|key| hash_text(key)).collect();
        let mut found = FoundEntries::new(Some(&expected));
        found.entry("of an attempt before", 0);
        found.restart();
        keys.iter().for_each(|key| found.entry(key, 0));
        found.judge("p/", max).map(|error| error.to_string())
    }

    #[test]
    fn an_omitted_or_strange_entry_makes_another_set() {
        let said_of = |keys: &[&str]| said_of(keys, &["a", "b", "c"], &[], 9);
        assert_eq!(said_of(&["a", "b", "c"]), None);
        assert_eq!(said_of(&["c", "a", "b"]), None);
        let two = said_of(&["a", "b"]).unwrap();
        assert!(two.ends_with("the listing of `p/` holds 2 entries instead of 3"), "{two}");
        let other = said_of(&["a", "b", "d"]).unwrap();
        assert!(other.ends_with("holds other keys than were written"), "{other}");
    }

    #[test]
    fn what_is_doubtful_may_be_listed_and_nothing_else_may() {
        let is_right = |keys: &[&str]| said_of(keys, &["a"], &["x", "y"], 9).is_none();
        assert!(is_right(&["a"]) && is_right(&["a", "x"]) && is_right(&["y", "x", "a"]));
        assert!(!is_right(&[]) && !is_right(&["b"]) && !is_right(&["a", "b"]));
        assert!(!is_right(&["a", "a"]) && !is_right(&["x"]));
        // Of a listing that is cut off after two entries only their number is known.
        let is_right = |keys: &[&str]| said_of(keys, &["a", "b"], &["x"], 2).is_none();
        assert!(is_right(&["a", "b"]) && is_right(&["x", "b"]));
        assert!(!is_right(&["a"]) && !is_right(&["a", "b", "x"]));
    }
}
