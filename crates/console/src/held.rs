//! Limits on what one user or address holds concurrently.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many places each key holds; a key that holds none is not kept.
pub(crate) struct Held<K>(Mutex<BTreeMap<K, usize>>);

/// A place of a key, given back when it is dropped.
pub(crate) struct Hold<K: Ord> {
    of: Arc<Held<K>>,
    key: K,
}

impl<K> Default for Held<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K> Held<K> {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.counts().is_empty()
    }
}

impl<K: Ord + Clone> Held<K> {
    /// Takes a place for a key, unless it holds `max` of them.
    pub(crate) fn take(self: &Arc<Self>, key: K, max: usize) -> Option<Hold<K>> {
        let mut counts = self.counts();
        if counts.get(&key).is_some_and(|count| *count >= max) {
            return None;
        }
        *counts.entry(key.clone()).or_default() += 1;
        Some(Hold { of: Arc::clone(self), key })
    }
}

impl<K: Ord> Drop for Hold<K> {
    fn drop(&mut self) {
        let mut counts = self.of.counts();
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}
