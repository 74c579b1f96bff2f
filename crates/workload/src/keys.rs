//! Keys: a function of the run's base prefix, the seed and the object id.

use std::sync::Arc;

use plimsoll_model::{ObjectId, WorkerId};

use crate::mix64;
use crate::plan::Pattern;

/// An object that was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingObject {
    /// Its key.
    pub key: String,
    /// Its size, where it is known.
    pub size: Option<u64>,
}

/// A file that members hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMember {
    /// Its name, which is the key.
    pub key: String,
    /// Where it begins among the bytes of all files.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

/// Returns the file that a member is of.
pub(crate) fn file_of(files: &[FileMember], id: ObjectId) -> &FileMember {
    &files[(id.number() % files.len() as u64) as usize]
}

/// How many digits an object's number has in its key at least.
const NUMBER_DIGITS: usize = 8;

/// How the keys of objects that the run writes are laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    /// What every key begins with; ends in `/` and belongs to this run alone.
    pub base: String,
    /// Whether each worker has a prefix of its own below the base.
    pub per_worker: bool,
}

impl KeyLayout {
    /// Returns the layout for a run: `<prefix>/plimsoll/<run>/`.
    pub fn for_run(prefix: &str, run: &str, per_worker: bool) -> Self {
        let prefix = prefix.trim_end_matches('/');
        let separator = if prefix.is_empty() { "" } else { "/" };
        Self { base: format!("{prefix}{separator}plimsoll/{run}/"), per_worker }
    }
}

/// Turns object ids into keys.
#[derive(Clone, Debug)]
pub enum Keys {
    /// Keys of objects that the run writes.
    Generated {
        /// Their layout.
        layout: KeyLayout,
        /// The run's seed.
        seed: u64,
    },
    /// Keys of objects that were there before; the id's number is the index.
    Existing(Arc<[ExistingObject]>),
    /// Keys that are the user's own; of the id's number, what is left over by their count.
    Named(Pattern),
    /// Keys that are names of files; of the id's number in the same way.
    Files(Arc<[FileMember]>),
}

impl Keys {
    /// Tells whether they are names that the user gave.
    pub fn are_given(&self) -> bool {
        matches!(self, Self::Named(_) | Self::Files(_))
    }

    /// Replaces `key` by the key of `id`.
    pub fn write(&self, id: ObjectId, key: &mut String) {
        key.clear();
        match self {
            Self::Existing(objects) => key.push_str(&objects[id.number() as usize].key),
            Self::Named(keys) => keys.write(id.number() % keys.count(), key),
            Self::Files(files) => key.push_str(&file_of(files, id).key),
            Self::Generated { layout, seed } => {
                write_numbers(layout, *seed, id.owner(), key);
                push_digits(key, id.number(), NUMBER_DIGITS);
                key.push('.');
                push_hex(key, mix64(seed ^ mix64(id.as_u64())), 16);
                key.push_str(".rnd");
            }
        }
    }

    /// Returns what all generated keys begin with; empty for others.
    pub fn base(&self) -> &str {
        match self {
            Self::Generated { layout, .. } => &layout.base,
            Self::Existing(_) | Self::Named(_) | Self::Files(_) => "",
        }
    }

    /// Returns the prefix below which all generated objects of `owner` lie: its own, or the common
    /// one.
    pub fn prefix_of(&self, owner: WorkerId) -> String {
        let mut prefix = String::new();
        if let Self::Generated { layout, seed } = self {
            write_prefix(layout, *seed, owner, &mut prefix);
        }
        prefix
    }

    /// Returns what the keys of those generated objects of `owner` begin with, and no others, whose
    /// numbers are `number` without their last `open` digits. Numbers of more than eight digits are
    /// not told from those whose first eight they begin with.
    pub fn prefix_of_numbers(&self, owner: WorkerId, number: u64, open: u32) -> String {
        let mut prefix = String::new();
        if let Self::Generated { layout, seed } = self {
            write_numbers(layout, *seed, owner, &mut prefix);
            push_digits(&mut prefix, number, NUMBER_DIGITS - open as usize);
            if open == 0 {
                prefix.push('.');
            }
        }
        prefix
    }
}

/// Appends what stands before an object's number.
fn write_numbers(layout: &KeyLayout, seed: u64, owner: WorkerId, key: &mut String) {
    write_prefix(layout, seed, owner, key);
    if !layout.per_worker {
        push_digits(key, u64::from(owner.0), 5);
        key.push('.');
    }
}

fn write_prefix(layout: &KeyLayout, seed: u64, owner: WorkerId, key: &mut String) {
    key.push_str(&layout.base);
    if layout.per_worker {
        // Random first characters spread the workers over a store that partitions by prefix; the
        // number keeps two workers apart whatever the random part is.
        let random = mix64(seed ^ mix64(u64::from(owner.0) | 1 << 63)) as u16;
        push_hex(key, random.into(), 4);
        push_hex(key, owner.0.into(), 1);
        key.push('/');
    }
}

/// Appends `value` in decimal, with zeros in front up to `width` digits, at most 20.
pub(crate) fn push_digits(key: &mut String, mut value: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    while value > 0 || digits.len() - first < width {
        first -= 1;
        digits[first] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    push_ascii(key, &digits[first..]);
}

/// Appends `value` in hexadecimal, with zeros in front up to `width` digits.
fn push_hex(key: &mut String, value: u64, width: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    // All of them, as a loop of a known length is several times as fast.
    let digits: [u8; 16] = std::array::from_fn(|at| DIGITS[(value >> (60 - 4 * at) & 15) as usize]);
    let needed = (u64::BITS - value.leading_zeros()).div_ceil(4) as usize;
    push_ascii(key, &digits[digits.len() - needed.max(width)..]);
}

/// Appends characters at once, which is several times as fast as one by one.
fn push_ascii(key: &mut String, characters: &[u8]) {
    key.push_str(str::from_utf8(characters).expect("digits are ASCII"));
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn key(keys: &Keys, owner: u32, number: u64) -> String {
        let mut key = String::from("old");
        keys.write(ObjectId::new(WorkerId(owner), number), &mut key);
        key
    }

    #[test]
    fn keys_lie_below_the_runs_own_prefix() {
        for (prefix, base) in
            [("", "plimsoll/r1/"), ("a/b", "a/b/plimsoll/r1/"), ("a/", "a/plimsoll/r1/")]
        {
            for per_worker in [true, false] {
                let layout = KeyLayout::for_run(prefix, "r1", per_worker);
                assert_eq!(layout.base, base);
                let keys = Keys::Generated { layout, seed: 5 };
                let key = key(&keys, 3, 12);
                assert!(key.starts_with(&keys.prefix_of(WorkerId(3))), "{key}");
                assert!(key.starts_with(base) && key.ends_with(".rnd"), "{key}");
                assert!(key.contains("00000012."), "{key}");
            }
        }
    }

    #[test]
    fn no_two_objects_share_a_key() {
        for per_worker in [true, false] {
            let keys = Keys::Generated { layout: KeyLayout::for_run("", "r", per_worker), seed: 1 };
            let all: HashSet<String> = (0..40)
                .flat_map(|owner| (0..40).map(move |number| (owner, number)))
                .map(|(owner, number)| key(&keys, owner, number))
                .collect();
            assert_eq!(all.len(), 1_600);
        }
    }

    #[test]
    fn digits_are_padded_and_never_cut() {
        let mut text = String::new();
        push_digits(&mut text, 42, 5);
        push_digits(&mut text, 1_234_567, 3);
        push_hex(&mut text, 0xab, 16);
        assert_eq!(text, "00042123456700000000000000ab");
    }
}
