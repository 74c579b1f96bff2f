//! One page of a listing: which keys of an ordered set it shows, what it rolls up, where the next
//! one starts.

use std::collections::{BTreeSet, btree_set};
use std::ops::Bound;
use std::sync::Arc;

/// What a listing asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListQuery<'a> {
    /// Only keys that start with this.
    pub(crate) prefix: &'a str,
    /// Keys that share a text up to this, after the prefix, are one common prefix; empty: none.
    pub(crate) delimiter: &'a str,
    /// The smallest key that may be shown.
    pub(crate) from: &'a str,
    /// How many entries fit a page.
    pub(crate) limit: usize,
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A key.
    Key(Arc<str>),
    /// All keys that start with this.
    CommonPrefix(String),
}

/// One page of a listing, in order of UTF-8 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyPage {
    /// What the page shows.
    pub(crate) entries: Vec<Entry>,
    /// The `from` of the next page; absent on the last one.
    pub(crate) next: Option<String>,
}

impl ListQuery<'_> {
    /// Returns the first page of what the query asks of `keys`.
    pub(crate) fn page(&self, keys: &BTreeSet<Arc<str>>) -> KeyPage {
        self.page_of(|from| starting_at(keys, from))
    }

    /// Returns the first page of what the query asks of keys that come in order from where they are
    /// asked to start.
    pub(crate) fn page_of<'k, I>(&self, starting_at: impl Fn(&str) -> I) -> KeyPage
    where
        I: Iterator<Item = &'k Arc<str>>,
    {
        let mut page = KeyPage::default();
        if self.limit == 0 {
            return page;
        }
        let mut rest = starting_at(self.from.max(self.prefix));
        while let Some(key) = rest.next() {
            if !key.starts_with(self.prefix) {
                break;
            }
            if page.entries.len() == self.limit {
                page.next = page.entries.last().and_then(Entry::first_text_after);
                break;
            }
            let Some(common) = self.common_prefix(key) else {
                page.entries.push(Entry::Key(Arc::clone(key)));
                continue;
            };
            page.entries.push(Entry::CommonPrefix(common.to_owned()));
            match first_text_past(common) {
                Some(next) => rest = starting_at(&next),
                None => break,
            }
        }
        page
    }

    /// Returns the smallest key behind a marker: one that is itself a common prefix stands for all
    /// that it rolled up.
    pub(crate) fn behind(&self, marker: &str) -> String {
        if self.common_prefix(marker) == Some(marker) {
            return first_text_past(marker).unwrap_or_else(|| first_text_after(marker));
        }
        if marker.is_empty() { String::new() } else { first_text_after(marker) }
    }

    /// Returns the start of `key` that the delimiter rolls up, delimiter included.
    pub(crate) fn common_prefix<'k>(&self, key: &'k str) -> Option<&'k str> {
        if self.delimiter.is_empty() {
            return None;
        }
        let tail = key.strip_prefix(self.prefix)?;
        let at = tail.find(self.delimiter)?;
        Some(&key[..self.prefix.len() + at + self.delimiter.len()])
    }
}

impl Entry {
    /// Returns the key or the common prefix.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Key(key) => key,
            Self::CommonPrefix(prefix) => prefix,
        }
    }

    fn first_text_after(&self) -> Option<String> {
        match self {
            Self::Key(key) => Some(first_text_after(key)),
            Self::CommonPrefix(prefix) => first_text_past(prefix),
        }
    }
}

/// Returns the smallest text greater than `text`.
pub(crate) fn first_text_after(text: &str) -> String {
    format!("{text}\0")
}

/// Returns the smallest text greater than every text that starts with `prefix`, if there is any.
///
/// UTF-8 sorts as its code points do, so it is the prefix with its last character raised by one.
pub(crate) fn first_text_past(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        // The surrogates U+D800..=U+DFFF are no characters.
        let raised = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            _ => char::from_u32(u32::from(last) + 1),
        };
        if let Some(raised) = raised {
            text.push(raised);
            return Some(text);
        }
    }
    None
}

/// Returns the keys from the first that is not below `from`.
pub(crate) fn starting_at<'k>(
    keys: &'k BTreeSet<Arc<str>>,
    from: &str,
) -> btree_set::Range<'k, Arc<str>> {
    keys.range::<str, _>((Bound::Included(from), Bound::Unbounded))
}

#[cfg(test)]
mod tests;
