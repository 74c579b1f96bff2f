//! The objects of a scripted store: each as it is and, where lies need it, as it was before.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use foldhash::fast::FixedState;

/// The content of an object.
pub(super) type Bytes = Arc<[u8]>;

/// How many other objects are tried when one of the right size is looked for.
const NEIGHBOURS_MAX: usize = 16;

/// All objects.
#[derive(Debug)]
pub(super) struct Objects {
    /// Hashed the same way every time: no key is chosen by an adversary, and runs are alike.
    entries: HashMap<Arc<str>, Entry, FixedState>,
    /// The keys in order, of removed objects too where those are remembered.
    keys: BTreeSet<Arc<str>>,
    /// Whether the state before the last write is kept.
    remembers: bool,
}

#[derive(Debug, Default)]
struct Entry {
    current: Option<Bytes>,
    /// The state before the last write or delete.
    before: Option<Bytes>,
    /// Whether a write was acknowledged and lost since the last one that was kept.
    lost_write: bool,
}

impl Objects {
    pub(super) fn new(remembers: bool) -> Self {
        Self { entries: HashMap::default(), keys: BTreeSet::new(), remembers }
    }

    /// Returns the object as it is.
    pub(super) fn current(&self, key: &str) -> Option<&Bytes> {
        self.entries.get(key)?.current.as_ref()
    }

    /// Returns the state before the last write or delete, `None` if there was no such thing or it
    /// is not remembered.
    pub(super) fn before(&self, key: &str) -> Option<Option<&Bytes>> {
        let entry = self.entries.get(key).filter(|_| self.remembers)?;
        Some(entry.before.as_ref())
    }

    /// Returns the object as it is, and whether its last write was acknowledged and lost.
    pub(super) fn look_up(&self, key: &str) -> Option<(&Bytes, bool)> {
        let entry = self.entries.get(key)?;
        Some((entry.current.as_ref()?, entry.lost_write))
    }

    /// Puts an object in place, or removes it.
    pub(super) fn write(&mut self, key: &str, content: Option<Bytes>) {
        let Some(entry) = self.entries.get_mut(key) else {
            if content.is_some() {
                let key: Arc<str> = key.into();
                self.keys.insert(Arc::clone(&key));
                let entry = Entry { current: content, before: None, lost_write: false };
                self.entries.insert(key, entry);
            }
            return;
        };
        let replaced = mem::replace(&mut entry.current, content);
        entry.lost_write = false;
        if self.remembers {
            entry.before = replaced;
        }
        if entry.current.is_none() && entry.before.is_none() {
            self.entries.remove(key);
            self.keys.remove(key);
        }
    }

    /// Notes that a write was acknowledged and not done.
    pub(super) fn lose_write(&mut self, key: &str) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.lost_write = true;
        }
    }

    /// Returns what is there below `prefix`, in order, with its size.
    pub(super) fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        let keys = self.keys.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let below = keys.map(|key| &**key).take_while(move |key| key.starts_with(prefix));
        below.filter_map(|key| Some((key, self.current(key)?.len() as u64)))
    }

    /// Returns the key of an object below `prefix` that is not there: one that was removed, or else
    /// one that never was.
    pub(super) fn ghost(&self, prefix: &str, salt: u64) -> String {
        let keys = self.keys.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let mut below = keys.take_while(|key| key.starts_with(prefix));
        let removed = below.find(|key| self.current(key).is_none());
        removed.map_or_else(|| format!("{prefix}ghost-{salt:016x}"), |key| key.to_string())
    }

    /// Returns another object of at least `len_min` bytes, the next but few in order after `key`.
    pub(super) fn other(&self, key: &str, len_min: usize) -> Option<&[u8]> {
        let after = self.keys.range::<str, _>((Bound::Excluded(key), Bound::Unbounded));
        let all_round = after.chain(&self.keys).filter(|other| &***other != key);
        let contents = all_round.take(NEIGHBOURS_MAX).filter_map(|other| self.current(other));
        contents.map(|content| &content[..]).find(|content| content.len() >= len_min)
    }
}
