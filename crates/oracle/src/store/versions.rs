//! Listing all versions of all objects, marks of deletion too.

use std::iter::Peekable;
use std::sync::Arc;

use super::{Store, StoreError, Version, VersionId, read};
use crate::listing::{Entry, ListQuery, starting_at};

/// One page of versions.
#[derive(Debug, Default)]
pub(crate) struct VersionPage {
    /// Key, version, and whether it is the newest of its key.
    pub(crate) versions: Vec<(Arc<str>, Version, bool)>,
    pub(crate) common_prefixes: Vec<String>,
    /// The last key or common prefix shown, and the version where it was a key; absent on the last
    /// page.
    pub(crate) next: Option<(String, Option<VersionId>)>,
}

/// Keys of two ordered sets as those of one.
struct Merged<A: Iterator, B: Iterator>(Peekable<A>, Peekable<B>);

impl<'k, A, B> Iterator for Merged<A, B>
where
    A: Iterator<Item = &'k Arc<str>>,
    B: Iterator<Item = &'k Arc<str>>,
{
    type Item = &'k Arc<str>;

    fn next(&mut self) -> Option<&'k Arc<str>> {
        match (self.0.peek(), self.1.peek()) {
            (Some(a), Some(b)) if b < a => self.1.next(),
            (Some(_), _) => self.0.next(),
            (None, _) => self.1.next(),
        }
    }
}

impl Store {
    /// Returns one page of versions, each key's from the newest on. The first key of the page may
    /// have been shown up to `after`.
    ///
    /// A key that is changed while the page is made may be shown as it was or as it is.
    pub(crate) fn list_versions(
        &self,
        bucket: &str,
        query: &ListQuery<'_>,
        after: Option<VersionId>,
    ) -> Result<VersionPage, StoreError> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let mut page = VersionPage::default();
        if query.limit == 0 {
            return Ok(page);
        }
        // A key with nothing left to show takes no line of the page.
        let keys = {
            let (keys, hidden) = (read(&bucket.keys), read(&bucket.hidden));
            let query = ListQuery { limit: query.limit + 1, ..*query };
            query.page_of(|from| {
                Merged(starting_at(&keys, from).peekable(), starting_at(&hidden, from).peekable())
            })
        };
        let mut last = None;
        for entry in keys.entries {
            let left = query.limit - page.versions.len() - page.common_prefixes.len();
            if left == 0 {
                page.next = last;
                return Ok(page);
            }
            let key = match entry {
                Entry::CommonPrefix(prefix) => {
                    last = Some((prefix.clone(), None));
                    page.common_prefixes.push(prefix);
                    continue;
                }
                Entry::Key(key) => key,
            };
            let after = after.filter(|_| *key == *query.from);
            let (shown, is_cut) = bucket
                .look(&key, |entry| {
                    let mut versions = entry.rest_after(after);
                    let of = |(at, version): (usize, &Version)| (version.clone(), at == 0);
                    let shown: Vec<_> = versions.by_ref().take(left).map(of).collect();
                    (shown, versions.next().is_some())
                })
                .unwrap_or_default();
            last = shown.last().map(|(version, _)| (key.to_string(), Some(version.id()))).or(last);
            let lines = shown.into_iter().map(|(version, newest)| (key.clone(), version, newest));
            page.versions.extend(lines);
            if is_cut {
                page.next = last;
                return Ok(page);
            }
        }
        page.next = last.filter(|_| keys.next.is_some());
        Ok(page)
    }
}
