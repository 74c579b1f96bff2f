//! What is read of members that anybody may have written: told apart by how it begins, and checked
//! where it is what the run writes.

use plimsoll_driver::ContentSink;
use plimsoll_model::WrongKind;
use plimsoll_workload::data::{Content, Wrong};
use plimsoll_workload::objects::SharedSet;

use super::CheckingSink;
use super::guard::{GUARD_BYTES, HeldBack};

/// So many bytes in a row are no chance.
const HEAD_BYTES: usize = 16;

/// Takes what is read of a member of a shared set, or a range of it, and checks it.
pub(crate) struct SharedSink<'a> {
    checked: CheckingSink<'a>,
    content: Content<'a>,
    shared: &'a SharedSet,
    /// Whether nothing but what the run writes can be there.
    is_certain: bool,
    /// The range that was asked for; `None`: all of it.
    range: Option<(u64, u64)>,
    begun: Begun,
    /// Where there may be a guard.
    held_back: Option<HeldBack>,
    received: u64,
    /// How long this member is, where it has a length of its own.
    length: Option<u64>,
}

/// How what came begins.
#[derive(Clone, Copy)]
enum Begun {
    /// Too little came to tell.
    Unknown { head: [u8; HEAD_BYTES], len: usize },
    /// As what the run writes.
    Ours,
    /// In another way.
    Foreign,
    /// Nothing was transferred.
    Unseen,
}

/// What came is.
pub(crate) enum Found {
    /// What the run writes, every byte, or what has a guard that is right.
    Right,
    /// Another's; it cannot be checked.
    Unchecked,
    /// Not what it should be.
    Wrong(Wrong),
}

impl<'a> SharedSink<'a> {
    pub(crate) fn new(
        content: Content<'a>,
        shared: &'a SharedSet,
        is_certain: bool,
        range: Option<(u64, u64)>,
    ) -> Self {
        let offset = range.map_or(0, |(offset, _)| offset);
        let mut sink = Self {
            checked: CheckingSink::new(Some(content), offset, None),
            content,
            shared,
            is_certain,
            range,
            begun: Begun::Foreign,
            held_back: None,
            received: 0,
            length: None,
        };
        sink.begin();
        sink
    }

    /// Takes note of how long this member is.
    pub(crate) fn has_length(&mut self, length: Option<u64>) {
        self.length = length;
    }

    fn begin(&mut self) {
        let hashes = self.shared.hash_check;
        self.begun = match self.is_certain {
            // Where in the object the guard stands is not known.
            _ if hashes && self.range.is_some() => Begun::Foreign,
            true => Begun::Ours,
            false => Begun::Unknown { head: [0; HEAD_BYTES], len: 0 },
        };
        // Another stage or an earlier run may have written a guard where this set has none.
        let may_end_in_guard = hashes || !self.is_certain;
        self.held_back = (may_end_in_guard && self.range.is_none()).then(|| HeldBack::new(hashes));
        self.received = 0;
    }

    /// Takes the next bytes before the guard.
    fn body(&mut self, bytes: &[u8]) {
        match &mut self.begun {
            Begun::Foreign | Begun::Unseen => {}
            Begun::Ours => self.checked.accept(bytes),
            Begun::Unknown { head, len } => {
                let fitting = bytes.len().min(HEAD_BYTES - *len);
                head[*len..*len + fitting].copy_from_slice(&bytes[..fitting]);
                *len += fitting;
                if *len == HEAD_BYTES {
                    self.decide();
                    self.body(&bytes[fitting..]);
                }
            }
        }
    }

    /// Tells by the first bytes whose it is.
    fn decide(&mut self) {
        let Begun::Unknown { head, len } = self.begun else { return };
        let head = &head[..len];
        // A few bytes are a chance, unless something in the workload writes as few.
        let tells = len == HEAD_BYTES
            || self.range.is_some()
            || self.shared.wrong_length(self.received).is_none();
        self.begun = match tells && self.content.matches(self.checked.offset, head) {
            true => Begun::Ours,
            false => Begun::Foreign,
        };
        self.body(head);
    }

    /// Tells whether an error document came in the place of the content.
    pub(crate) fn is_error_document(&self) -> bool {
        self.checked.is_error_document()
    }

    /// Returns what came of `key`, all of which has come.
    pub(crate) fn found(&mut self, key: &str) -> Found {
        let guard = self.held_back.take();
        let before = self.received.saturating_sub(GUARD_BYTES as u64);
        let is_right = guard.as_ref().and_then(|guard| guard.is_right(&self.content, before));
        if let (Some(guard), None) = (&guard, is_right) {
            self.body(guard.tail());
        }
        self.decide();
        let wrong = |kind, text: &str| {
            let text = format!("`{key}` does not hold what its guard says{text}");
            Found::Wrong(Wrong { kind, text })
        };
        match (self.begun, is_right) {
            (Begun::Foreign, Some(true)) => return Found::Right,
            (Begun::Foreign, Some(false)) => return wrong(WrongKind::Foreign, ""),
            (Begun::Foreign, None) => return Found::Unchecked,
            (Begun::Unseen, _) => return Found::Right,
            (Begun::Ours | Begun::Unknown { .. }, _) => {}
        }
        let guard_bytes = if is_right.is_some() { GUARD_BYTES as u64 } else { 0 };
        self.checked.expected_len = self.expected_len().map(|len| len.saturating_sub(guard_bytes));
        match (self.checked.judge(key), is_right) {
            (Some(wrong), _) => Found::Wrong(wrong),
            (None, Some(false)) => {
                wrong(WrongKind::Flipped, ", though every byte before it is right")
            }
            (None, _) => Found::Right,
        }
    }

    /// Returns how long what came should be; `None` where it is as long as it may be: what another
    /// stage or an earlier run wrote under the name may have another length.
    fn expected_len(&self) -> Option<u64> {
        let is_certain = self.is_certain;
        match self.range {
            None => self
                .length
                .or_else(|| is_certain.then(|| self.shared.wrong_length(self.received)).flatten()),
            Some((offset, len)) => {
                let least = || if is_certain { self.shared.least() } else { 0 };
                (self.length.unwrap_or_else(least) >= offset + len).then_some(len)
            }
        }
    }

    /// Returns whether it is too short or too long, where the driver knew that before.
    pub(crate) fn wrong_length(&mut self, key: &str) -> Option<WrongKind> {
        match self.found(key) {
            Found::Wrong(wrong) => Some(wrong.kind).filter(|kind| kind.is_length()),
            Found::Right | Found::Unchecked => None,
        }
    }
}

impl ContentSink for SharedSink<'_> {
    fn restart(&mut self) {
        self.checked.restart();
        self.begin();
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        match self.held_back.take() {
            None => self.body(bytes),
            Some(mut held_back) => {
                held_back.accept(bytes, |piece| self.body(piece));
                self.held_back = Some(held_back);
            }
        }
    }

    fn accept_unseen(&mut self) -> u64 {
        let only = self.length.or_else(|| self.shared.only_length());
        self.received = match self.range {
            Some((offset, len)) => only.map_or(len, |only| len.min(only.saturating_sub(offset))),
            None => only.unwrap_or(0),
        };
        (self.begun, self.held_back) = (Begun::Unseen, None);
        self.received
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
