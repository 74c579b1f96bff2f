//! The words in which a consistency check speaks of what was asked of a store and what it answered:
//! between the engine, which does it, and the analysis, which judges it.

use std::fmt;

use plimsoll_model::{ErrorClass, Moment, OpKind, WorkerId, WrongKind};

/// A key of a history by its number, 0-based. A number is never used for another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyNumber(pub u32);

impl fmt::Display for KeyNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k{:06}", self.0)
    }
}

/// What one PUT writes. No two PUTs of a history write the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId {
    /// The key that it is written to.
    pub key: KeyNumber,
    /// Who writes it.
    pub writer: WorkerId,
    /// Which one of that writer's it is, 0-based.
    pub number: u32,
}

impl ValueId {
    const WRITER_BITS: u32 = 12;
    const NUMBER_BITS: u32 = 32;
    /// How many keys a history may have.
    pub const KEYS_MAX: u32 = 1 << (64 - Self::WRITER_BITS - Self::NUMBER_BITS);
    /// How many workers a history may have.
    pub const WRITERS_MAX: u32 = 1 << Self::WRITER_BITS;

    /// Returns the value as one integer.
    pub const fn as_u64(self) -> u64 {
        debug_assert!(self.key.0 < Self::KEYS_MAX && self.writer.0 < Self::WRITERS_MAX);
        let who = (self.key.0 as u64) << Self::WRITER_BITS | self.writer.0 as u64;
        who << Self::NUMBER_BITS | self.number as u64
    }

    /// Returns the value that `as_u64` gave.
    pub const fn from_u64(raw: u64) -> Self {
        let who = (raw >> Self::NUMBER_BITS) as u32;
        Self {
            key: KeyNumber(who >> Self::WRITER_BITS),
            writer: WorkerId(who & (Self::WRITERS_MAX - 1)),
            number: raw as u32,
        }
    }
}

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:w{}#{}", self.key, self.writer.0, self.number)
    }
}

/// One operation as it is asked of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryOp {
    /// Writes a value of that many bytes.
    Put(ValueId, u64),
    /// Reads a key, whole or from an offset that many bytes.
    Get(KeyNumber, Option<(u64, u64)>),
    /// Reads a key's size.
    Stat(KeyNumber),
    /// Removes a key.
    Delete(KeyNumber),
    /// Lists all keys.
    List,
}

impl HistoryOp {
    /// Returns the kind.
    pub const fn kind(self) -> OpKind {
        match self {
            Self::Put(..) => OpKind::Put,
            Self::Get(..) => OpKind::Get,
            Self::Stat(_) => OpKind::Stat,
            Self::Delete(_) => OpKind::Delete,
            Self::List => OpKind::List,
        }
    }

    /// Returns the key, of which a listing has none of its own.
    pub const fn key(self) -> Option<KeyNumber> {
        match self {
            Self::Put(value, _) => Some(value.key),
            Self::Get(key, _) | Self::Stat(key) | Self::Delete(key) => Some(key),
            Self::List => None,
        }
    }
}

/// Content that is no value's, or not this key's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongContent {
    /// What it is instead.
    pub kind: WrongKind,
    /// The value of which there are traces in it.
    pub value: Option<ValueId>,
    /// The first wrong byte's offset in the object.
    pub at: u64,
}

/// What a store answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The PUT or the DELETE is done.
    Done,
    /// The GET gave this value, or the range of it.
    Value(ValueId),
    /// The GET gave wrong content.
    Wrong(WrongContent),
    /// The STAT found an object, of that size where it is stated.
    Present(Option<u64>),
    /// The GET or the STAT found nothing (404).
    Absent,
    /// The LIST gave these keys with their sizes, and these names that nobody wrote.
    Listed(Vec<(KeyNumber, u64)>, Vec<String>),
    /// The range was not in the object that was there: says nothing.
    OutOfRange,
    /// It failed: a PUT or DELETE may have been done, be done later, or never; the rest says
    /// nothing.
    Failed(ErrorClass),
}

/// Takes a history as it happens.
///
/// A worker has at most one operation under way. `begin` is called before the operation can have
/// any effect, and moments never decrease from one `begin` to the next.
pub trait Witness {
    /// Takes note of a new key, at which nothing was written yet.
    fn add_key(&mut self, key: KeyNumber);

    /// Takes note that nothing more will be asked of `key`; what is under way may still end.
    fn retire_key(&mut self, key: KeyNumber);

    /// Takes note that `worker` begins an operation.
    fn begin(&mut self, worker: WorkerId, op: HistoryOp, at: Moment);

    /// Takes note of how the operation of `worker` ended. Returns a key at which another look would
    /// tell more.
    fn end(&mut self, worker: WorkerId, answer: &Answer, at: Moment) -> Option<KeyNumber>;

    /// Returns how many PUTs and DELETEs of `key` may still take effect though they have failed.
    fn unsettled_count(&self, key: KeyNumber) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_integer() {
        for (key, writer, number) in [(0, 0, 0), (5, 7, 9), (0xf_ffff, 0xfff, u32::MAX)] {
            let value = ValueId { key: KeyNumber(key), writer: WorkerId(writer), number };
            assert_eq!(ValueId::from_u64(value.as_u64()), value);
        }
        let value = ValueId { key: KeyNumber(3), writer: WorkerId(2), number: 1 };
        assert_eq!(value.as_u64(), 3 << 44 | 2 << 32 | 1);
        assert_eq!(value.to_string(), "k000003:w2#1");
    }
}
