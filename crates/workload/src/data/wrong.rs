//! What wrong content is: the kinds and how one is told from the other.

use std::cmp::Ordering;

use plimsoll_model::WrongKind;

use super::{BLOCK_BYTES, Content};

/// Bytes kept from the first wrong one on.
const HEAD_BYTES: usize = 16 << 10;
/// Bytes kept of the end, where it is further away.
const TAIL_BYTES: usize = 4 << 10;

/// How much of a document is looked at to tell whether it is one.
const DOCUMENT_HEAD_BYTES: usize = 256;

/// What is kept of a read from its first wrong byte on: the first bytes and the last.
#[derive(Clone, Debug)]
pub struct Evidence {
    first_wrong: u64,
    /// The head, then the tail. Without a gap between them as long as it is not full.
    kept: Vec<u8>,
    len: u64,
}

impl Evidence {
    /// Begins with `bytes`, of which the first, at `first_wrong` in the object, is wrong.
    pub fn new(first_wrong: u64, bytes: &[u8]) -> Self {
        let mut evidence = Self { first_wrong, kept: Vec::new(), len: 0 };
        evidence.keep(bytes);
        evidence
    }

    /// Takes the next bytes.
    pub fn keep(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        let free = HEAD_BYTES + TAIL_BYTES - self.kept.len();
        let (fitting, rest) = bytes.split_at(bytes.len().min(free));
        self.kept.extend_from_slice(fitting);
        let rest = &rest[rest.len().saturating_sub(TAIL_BYTES)..];
        if !rest.is_empty() {
            let tail = &mut self.kept[HEAD_BYTES..];
            tail.copy_within(rest.len().., 0);
            tail[TAIL_BYTES - rest.len()..].copy_from_slice(rest);
        }
    }

    /// Tells whether `before`, the right bytes before it, and the wrong ones begin as an error
    /// document of S3.
    pub fn is_error_document(&self, before: &[u8]) -> bool {
        let (wrong, _) = self.parts();
        let head = [before, &wrong[..wrong.len().min(DOCUMENT_HEAD_BYTES)]].concat();
        let text = head.strip_prefix(b"<?xml").map_or(&head[..], |rest| {
            let after = rest.windows(2).position(|pair| pair == b"?>").map_or(0, |at| at + 2);
            rest[after..].trim_ascii_start()
        });
        text.starts_with(b"<Error>")
    }

    /// Returns the place in the object of the first wrong byte.
    pub const fn first_wrong(&self) -> u64 {
        self.first_wrong
    }

    /// Returns the first bytes, and the last where they do not follow on the first.
    fn parts(&self) -> (&[u8], &[u8]) {
        if self.len == self.kept.len() as u64 {
            return (&self.kept, &[]);
        }
        self.kept.split_at(HEAD_BYTES)
    }
}

/// What was received.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Where in the object the read begins.
    pub offset: u64,
    /// Bytes asked for.
    pub expected_len: u64,
    /// Bytes that came.
    pub len: u64,
    /// What there is from the first wrong byte on; `None` when every byte was right.
    pub evidence: Option<&'a Evidence>,
}

impl Received<'_> {
    /// Returns what is wrong with the length; `None` when nothing is.
    pub fn wrong_length(&self) -> Option<Wrong> {
        let kind = match self.len.cmp(&self.expected_len) {
            Ordering::Less => WrongKind::Short,
            Ordering::Equal => return None,
            Ordering::Greater => WrongKind::Long,
        };
        let text = format!("{} bytes instead of {}", self.len, self.expected_len);
        Some(Wrong { kind, text })
    }
}

/// What is wrong with content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The kind.
    pub kind: WrongKind,
    /// What came instead, as the end of a sentence.
    pub text: String,
}

/// So many zeros in a row are no chance.
const ZEROS_MIN: usize = 4;
/// Bytes compared with each version, 20 in all: where there are as many, and at least.
const VERSION_BYTES: usize = 5;
const VERSION_BYTES_MIN: usize = 3;
const OLDER_VERSIONS: u64 = 16;
const NEWER_VERSIONS: u64 = 4;
/// Bytes searched for in the object, so far around.
const SAMPLE_BYTES: usize = 8;
const SHIFT_MAX: u64 = BLOCK_BYTES as u64;
/// Bytes that a source is looked for in.
const PROBE_BYTES: usize = 136;
/// A stretch of wrong bytes ends where so many right ones follow: less may be chance.
const RIGHT_BYTES_MIN: usize = 3;
/// A stretch that is no longer is a flip.
const FLIP_BYTES_MAX: usize = 4;

impl Content<'_> {
    /// Returns what is wrong with a read of this content; `None` when nothing is.
    pub fn diagnose(&self, received: &Received<'_>) -> Option<Wrong> {
        let end = received.offset + received.expected_len;
        let wrong = received.evidence.filter(|evidence| evidence.first_wrong < end);
        let Some(evidence) = wrong else { return received.wrong_length() };
        let (kind, text) = Case::new(*self, received, evidence).verdict();
        Some(Wrong { kind, text })
    }
}

/// Where bytes come from.
#[derive(Clone, Copy)]
enum Source<'a> {
    Zeros,
    /// Content, from so many bytes further on in its object.
    Content(Content<'a>, i64),
}

impl Source<'_> {
    /// Returns how many of the first bytes, read at `at`, come from here.
    fn agreement(self, at: u64, bytes: &[u8]) -> usize {
        match self {
            Self::Zeros => bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len()),
            Self::Content(content, shift) => {
                at.checked_add_signed(shift).map_or(0, |offset| content.agreement(offset, bytes))
            }
        }
    }

    fn explains(self, at: u64, bytes: &[u8]) -> bool {
        self.agreement(at, bytes) == bytes.len()
    }

    fn gives(self, at: u64, byte: u8) -> bool {
        self.explains(at, &[byte])
    }
}

/// One read with a wrong byte within the length asked for.
struct Case<'a> {
    right: Content<'a>,
    /// Where the read begins and ends.
    offset: u64,
    end: u64,
    /// The place of the first wrong byte.
    at: u64,
    /// From there on.
    head: &'a [u8],
    /// The last bytes, where `head` does not reach the end.
    tail: &'a [u8],
}

impl<'a> Case<'a> {
    fn new(right: Content<'a>, received: &Received<'_>, evidence: &'a Evidence) -> Self {
        let Received { offset, len, .. } = *received;
        let (head, tail) = evidence.parts();
        Self { right, offset, end: offset + len, at: evidence.first_wrong, head, tail }
    }

    /// Decides in the order that `docs/formats/data.md` gives.
    fn verdict(&self) -> (WrongKind, String) {
        let near = self.near_source(self.at, self.head);
        if near.is_none()
            && let Some(text) = self.flips()
        {
            return (WrongKind::Flipped, text);
        }
        let source = near.or_else(|| self.traced_source(self.at, self.head));
        let Some(source) = source else { return self.unknown_beginning() };
        let begin = self.begin_of(source);
        let from_start = begin == self.offset;
        let name = self.name(source);
        let Some(stop) = self.stop_of(source) else {
            return match from_start {
                true => (self.kind(source), name),
                false => (WrongKind::Torn, format!("right up to here, then {name}")),
            };
        };
        let last = self.last_source(stop);
        let right_again = last.is_some_and(|last| self.is_right(last));
        if right_again && matches!(source, Source::Zeros) {
            return (WrongKind::Zeroed, format!("{name}, and right again by its end"));
        }
        if from_start && !right_again {
            let left = self.end - stop;
            let last_is_shifted = last.is_some_and(|last| self.shift(last).is_some());
            if let Some(shift) = self.shift(source)
                && (last_is_shifted || left <= shift.unsigned_abs())
            {
                return (WrongKind::Shifted, name);
            }
            if let Some(last) = last.filter(|last| self.is_shifted_to_end(*last)) {
                return (WrongKind::Shifted, self.name(last));
            }
        }
        let before = if from_start { "" } else { "right at first, then " };
        let then = last.map_or_else(|| UNKNOWN.to_owned(), |last| self.name(last));
        (WrongKind::Torn, format!("{before}{name}, and {then} by its end"))
    }

    /// The verdict when nothing is known of the first wrong byte.
    fn unknown_beginning(&self) -> (WrongKind, String) {
        let last = self.last_source(self.at);
        let right_first = self.at >= self.offset + RIGHT_BYTES_MIN as u64;
        match last {
            Some(last) if self.is_right(last) => (WrongKind::Foreign, UNKNOWN.to_owned()),
            _ if right_first => (WrongKind::Torn, format!("right up to here, then {UNKNOWN}")),
            Some(last) if self.is_shifted_to_end(last) => (WrongKind::Shifted, self.name(last)),
            Some(last @ Source::Content(..)) => {
                (WrongKind::Torn, format!("{UNKNOWN}, and {} by its end", self.name(last)))
            }
            Some(Source::Zeros) | None => (WrongKind::Foreign, UNKNOWN.to_owned()),
        }
    }

    fn tail_at(&self) -> u64 {
        self.end - self.tail.len() as u64
    }

    /// Returns where the source of the first wrong byte begins: the right bytes before it may come
    /// from there as well.
    fn begin_of(&self, source: Source<'_>) -> u64 {
        let mut begin = self.at;
        let mut byte = [0];
        while begin > self.offset {
            self.right.fill(begin - 1, &mut byte);
            if !source.gives(begin - 1, byte[0]) {
                break;
            }
            begin -= 1;
        }
        begin
    }

    /// Returns where `source` stops, or else the tail begins when it stops in between; `None` when
    /// it goes on to the end.
    fn stop_of(&self, source: Source<'_>) -> Option<u64> {
        let agreement = source.agreement(self.at, self.head);
        if agreement < self.head.len() {
            return Some(self.at + agreement as u64);
        }
        let agreement = source.agreement(self.tail_at(), self.tail);
        (agreement < self.tail.len()).then(|| self.tail_at() + agreement as u64)
    }

    /// Returns the source of the last bytes, of which none is before `from`.
    fn last_source(&self, from: u64) -> Option<Source<'a>> {
        let last = if self.tail.is_empty() { self.head } else { self.tail };
        let last_at = self.end - last.len() as u64;
        let from = from.saturating_sub(last_at) as usize;
        // Where it begins is not known: the fewer bytes, the surer that they have one source.
        [PROBE_BYTES, PROBE_BYTES / 2, PROBE_BYTES / 4].into_iter().find_map(|len| {
            let from = from.max(last.len().saturating_sub(len));
            let (at, last) = (last_at + from as u64, &last[from..]);
            let explains = |source: &Source<'_>| source.explains(at, last);
            Some(Source::Content(self.right, 0))
                .filter(explains)
                .or_else(|| self.near_source(at, last).filter(explains))
                .or_else(|| self.traced_source(at, last).filter(explains))
        })
    }

    /// Returns the source of the first of `bytes` among those that need no tracing: zeros and the
    /// versions around.
    fn near_source(&self, at: u64, bytes: &[u8]) -> Option<Source<'a>> {
        let zeros = Source::Zeros.agreement(at, bytes);
        if zeros >= ZEROS_MIN || zeros as u64 == self.end - self.offset {
            return Some(Source::Zeros);
        }
        let own = self.right.version;
        let older = (0..own).rev().take(OLDER_VERSIONS as usize);
        let sample = &bytes[..bytes.len().min(VERSION_BYTES)];
        if sample.len() < VERSION_BYTES_MIN {
            return None;
        }
        older.chain(own + 1..=own + NEWER_VERSIONS).find_map(|version| {
            let source = Source::Content(Content { version, ..self.right }, 0);
            source.explains(at, sample).then_some(source)
        })
    }

    /// Returns the source of the first of `bytes`, traced by its block key, or, where there are
    /// too few bytes for that, searched for in the object around.
    fn traced_source(&self, at: u64, bytes: &[u8]) -> Option<Source<'a>> {
        let generator = self.right.generator;
        let probe = &bytes[..bytes.len().min(PROBE_BYTES)];
        if let Some(origin) = generator.trace(probe, 0) {
            let content = generator.content(origin.key_hash, origin.version);
            return Some(Source::Content(content, origin.offset.wrapping_sub(at) as i64));
        }
        let sample = bytes.get(..SAMPLE_BYTES)?;
        let from = at.saturating_sub(SHIFT_MAX);
        // Bound: twice `SHIFT_MAX`.
        let mut around = vec![0; (at - from + SHIFT_MAX) as usize];
        self.right.fill(from, &mut around);
        let found = around.windows(SAMPLE_BYTES).position(|place| place == sample)?;
        Some(Source::Content(self.right, (from + found as u64).wrapping_sub(at) as i64))
    }

    /// Returns by how much the same version of the same object is shifted here.
    fn shift(&self, source: Source<'_>) -> Option<i64> {
        match source {
            Source::Content(_, shift) if self.kind(source) == WrongKind::Shifted => Some(shift),
            Source::Content(..) | Source::Zeros => None,
        }
    }

    fn is_right(&self, source: Source<'_>) -> bool {
        self.shift(source) == Some(0)
    }

    /// Tells whether `last` is shifted by no less than what it leaves at the beginning.
    fn is_shifted_to_end(&self, last: Source<'_>) -> bool {
        let Some(shift) = self.shift(last).filter(|shift| *shift != 0) else { return false };
        let from = self.offset + shift.unsigned_abs();
        let part = |at: u64, bytes: &[u8]| {
            let skipped = from.saturating_sub(at).min(bytes.len() as u64);
            last.explains(at + skipped, &bytes[skipped as usize..])
        };
        from < self.end && part(self.at, self.head) && part(self.tail_at(), self.tail)
    }

    fn kind(&self, source: Source<'_>) -> WrongKind {
        match source {
            Source::Zeros => WrongKind::Zeroed,
            Source::Content(content, _) if content.object_word != self.right.object_word => {
                WrongKind::OtherObject
            }
            Source::Content(content, _) if content.version != self.right.version => {
                WrongKind::OldVersion
            }
            Source::Content(..) => WrongKind::Shifted,
        }
    }

    fn name(&self, source: Source<'_>) -> String {
        let Source::Content(content, shift) = source else { return "zeros".to_owned() };
        let way = if shift > 0 { "further on" } else { "further back" };
        let place = match shift {
            0 => String::new(),
            _ => format!(" from {} {way}", count(shift.unsigned_abs(), "byte")),
        };
        let (got, own) = (content.version, self.right.version);
        if self.is_right(source) {
            return "right bytes".to_owned();
        }
        match self.kind(source) {
            WrongKind::OtherObject => format!("bytes of another object of this run{place}"),
            WrongKind::OldVersion => {
                let age = if got < own { "an older" } else { "a newer" };
                format!("bytes of {age} version ({got} instead of {own}){place}")
            }
            _ => format!("bytes of the same object{place}"),
        }
    }

    /// Describes the wrong bytes when all of them are isolated.
    fn flips(&self) -> Option<String> {
        let mut found = Flips::default();
        found.add(&self.differences(self.at, self.head))?;
        found.add(&self.differences(self.tail_at(), self.tail))?;
        // In a few bytes all may be a flip; then only bits can tell.
        let isolated = found.bytes * 2 <= self.end - self.offset || found.bits <= found.bytes;
        let least = if self.tail.is_empty() { "" } else { "at least " };
        let (bits, bytes) = (count(found.bits, "flipped bit"), count(found.bytes, "byte"));
        isolated.then(|| format!("{least}{bits} in {bytes}"))
    }

    fn differences(&self, at: u64, bytes: &[u8]) -> Vec<u8> {
        let mut found = vec![0; bytes.len()];
        self.right.fill(at, &mut found);
        found.iter_mut().zip(bytes).for_each(|(found, byte)| *found ^= byte);
        found
    }
}

/// Bytes that belong to nothing.
const UNKNOWN: &str = "bytes that this run never wrote";

fn count(number: u64, unit: &str) -> String {
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

/// Wrong bytes and wrong bits in them.
#[derive(Default)]
struct Flips {
    bytes: u64,
    bits: u64,
}

impl Flips {
    /// Adds the differences of a piece; `None` when a stretch of them is no flip: it is longer than
    /// four bytes and has more than a wrong bit a byte.
    fn add(&mut self, differences: &[u8]) -> Option<()> {
        let mut rest = differences;
        while let Some(start) = rest.iter().position(|byte| *byte != 0) {
            rest = &rest[start..];
            let quiet = |window: &[u8]| window.iter().all(|byte| *byte == 0);
            let stop = rest.windows(RIGHT_BYTES_MIN).position(quiet).unwrap_or(rest.len());
            let (stretch, after) = rest.split_at(stop);
            let last = stretch.iter().rposition(|byte| *byte != 0);
            let stretch = &stretch[..=last.expect("it begins with a wrong byte")];
            let bytes = stretch.iter().filter(|byte| **byte != 0).count() as u64;
            let bits = stretch.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
            if stretch.len() > FLIP_BYTES_MAX && bits > stretch.len() as u64 {
                return None;
            }
            self.bytes += bytes;
            self.bits += bits;
            rest = after;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
