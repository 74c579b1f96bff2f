//! Listings: pages of a container's names, or of an account's, one after the other to the end.

use std::borrow::Cow;
use std::num::NonZeroU32;

use plimsoll_driver::{Completion, DriverError};
use serde::Deserialize;

use crate::error;
use crate::large::is_segment;
use crate::request::encoded;
use crate::session::SwiftSession;

/// More than a page of any container has: at most 10,000 names of at most 1 KiB, each letter of
/// which may be escaped.
const PAGE_BYTES_MAX: usize = 96 << 20;
/// The most pages that one listing reads.
const PAGES_COUNT_MAX: u32 = 1_000_000;

/// How much of a listing is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) page_size: u32,
    pub(crate) pages_max: Option<NonZeroU32>,
    /// Whether what lies below a `/` behind the prefix counts.
    pub(crate) goes_down: bool,
    /// Whether segments of large objects count.
    pub(crate) has_segments: bool,
}

impl Default for Listing<'_> {
    fn default() -> Self {
        Self { prefix: "", page_size: 1, pages_max: None, goes_down: true, has_segments: false }
    }
}

/// An object or a container; what stands for everything below a `/` has another name.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    subdir: Option<Cow<'a, str>>,
    #[serde(default)]
    bytes: u64,
}

/// A version of an object, or the mark of its deletion.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) version_id: String,
}

impl SwiftSession {
    /// Returns the first page of the versions below a prefix, marks of deletion included, of a
    /// container that keeps them in itself.
    pub(crate) async fn versions(
        &mut self,
        container: &str,
        prefix: &str,
        page_size: u32,
    ) -> Result<Vec<Version>, DriverError> {
        self.set_container(Some(container))?;
        let listing = Listing { prefix, page_size, ..Listing::default() };
        let query = query_of(&listing, "") + "&versions=true";
        self.read(&query, PAGE_BYTES_MAX).await.result?;
        let answer = &self.wire.answer;
        if answer.body.is_empty() {
            return Ok(Vec::new());
        }
        serde_json::from_slice(&answer.body).map_err(|why| {
            let why = format!("the list of versions cannot be understood: {why}");
            error::of_success(answer.status, why)
        })
    }

    /// Hands the entries of a listing to `take` in their order until it wants no more. A page that
    /// is not full is the last one.
    pub(crate) async fn list(
        &mut self,
        bucket: Option<&str>,
        listing: Listing<'_>,
        take: &mut dyn FnMut(&str, u64) -> bool,
    ) -> Completion {
        if let Err(error) = self.set_container(bucket) {
            return self.ended(Err(error));
        }
        let pages_max = listing.pages_max.map_or(PAGES_COUNT_MAX, NonZeroU32::get);
        let (mut marker, mut taken, mut first_byte) = (String::new(), 0, None);
        let mut pages = 0;
        loop {
            let query = query_of(&listing, &marker);
            let mut done = self.read(&query, PAGE_BYTES_MAX).await;
            first_byte = first_byte.or(done.first_byte);
            pages += 1;
            let mut goes_on = false;
            if done.result.is_ok() {
                let answer = &self.wire.answer;
                let page = Page { listing: &listing, marker: &mut marker, taken: &mut taken };
                match page.read(&answer.body, take) {
                    Ok(more) => goes_on = more,
                    Err(why) => done.result = Err(error::of_success(answer.status, why)),
                }
            }
            if goes_on && pages == PAGES_COUNT_MAX {
                let why = format!("the list goes on after {PAGES_COUNT_MAX} pages");
                done.result = Err(error::of_success(self.wire.answer.status, why));
            }
            if !goes_on || pages == pages_max {
                return Completion { objects_count: taken, first_byte, ..done };
            }
        }
    }

    /// Lists the whole of what is asked for.
    pub(crate) async fn find(
        &mut self,
        bucket: Option<&str>,
        listing: Listing<'_>,
    ) -> Result<Vec<String>, DriverError> {
        let mut found = Vec::new();
        let mut take = |key: &str, _| {
            found.push(key.to_owned());
            true
        };
        self.list(bucket, listing, &mut take).await.result?;
        Ok(found)
    }
}

fn query_of(listing: &Listing<'_>, marker: &str) -> String {
    let mut query = format!("?format=json&limit={}", listing.page_size);
    if !listing.prefix.is_empty() {
        query += &format!("&prefix={}", encoded(listing.prefix));
    }
    if !listing.goes_down {
        query += "&delimiter=/";
    }
    if !marker.is_empty() {
        query += &format!("&marker={}", encoded(marker));
    }
    query
}

/// A page that is read, and what is known of those before.
struct Page<'a> {
    listing: &'a Listing<'a>,
    /// The last name so far.
    marker: &'a mut String,
    taken: &'a mut u32,
}

impl Page<'_> {
    /// Hands out the entries of a page, and tells whether there is another one.
    fn read(self, body: &[u8], take: &mut dyn FnMut(&str, u64) -> bool) -> Result<bool, String> {
        if body.is_empty() {
            return Ok(false);
        }
        let parsed = serde_json::from_slice::<Vec<Entry<'_>>>(body);
        let entries = parsed.map_err(|error| format!("the list cannot be understood: {error}"))?;
        let is_full = entries.len() >= self.listing.page_size as usize;
        let mut last = None;
        for entry in entries {
            let is_object = entry.name.is_some();
            let Some(name) = entry.name.or(entry.subdir) else {
                return Err("the list holds an entry without a name".to_owned());
            };
            let is_passed_over = !is_object || (is_segment(&name) && !self.listing.has_segments);
            if !is_passed_over {
                if !take(&name, entry.bytes) {
                    return Ok(false);
                }
                *self.taken += 1;
            }
            last = Some(name);
        }
        let Some(last) = last else { return Ok(false) };
        if *last <= **self.marker {
            return Err("the list repeats itself".to_owned());
        }
        *self.marker = last.into_owned();
        Ok(is_full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, page_size: u32, marker: &str) -> (Result<bool, String>, String, String) {
        let listing = Listing { page_size, ..Listing::default() };
        let (mut marker, mut taken, mut names) = (marker.to_owned(), 0, Vec::new());
        let page = Page { listing: &listing, marker: &mut marker, taken: &mut taken };
        let read = page.read(body.as_bytes(), &mut |name, size| {
            names.push(format!("{name} {size}"));
            true
        });
        assert_eq!(taken as usize, names.len());
        (read, names.join(", "), marker)
    }

    #[test]
    fn pages_say_names_and_sizes_and_go_on_where_they_are_full() {
        let body = r#"[{"name": "a", "bytes": 1, "hash": "x"}, {"subdir": "d/"},
            {"name": "p\u00e4 \"q\"", "bytes": 20}]"#;
        let names = "a 1, pä \"q\" 20".to_owned();
        assert_eq!(read(body, 3, ""), (Ok(true), names.clone(), "pä \"q\"".to_owned()));
        assert_eq!(read(body, 4, "A").0, Ok(false));
        assert_eq!(read("[]", 3, "x"), (Ok(false), String::new(), "x".to_owned()));
        assert_eq!(read("", 3, ""), (Ok(false), String::new(), String::new()));
    }

    #[test]
    fn segments_are_passed_over() {
        let body = r#"[{"name": "a", "bytes": 9},
            {"name": "a/plimsoll-segments/u/00000001", "bytes": 9}]"#;
        let (read, names, marker) = read(body, 2, "");
        assert_eq!((read, names.as_str()), (Ok(true), "a 9"));
        assert_eq!(marker, "a/plimsoll-segments/u/00000001");
    }

    #[test]
    fn pages_that_are_none_are_refused() {
        for body in ["<html>", "{}", r#"[{"bytes": 1}]"#, r#"[{"name": "a""#, r#"[{"name": 7}]"#] {
            assert!(read(body, 9, "").0.is_err(), "{body}");
        }
        let again = r#"[{"name": "a", "bytes": 1}]"#;
        let why = "the list repeats itself".to_owned();
        assert_eq!(read(again, 1, "a").0, Err(why));
    }

    #[test]
    fn queries_say_what_is_wanted() {
        let listing = Listing { prefix: "a b/", page_size: 7, ..Listing::default() };
        assert_eq!(query_of(&listing, ""), "?format=json&limit=7&prefix=a%20b/");
        let flat = Listing { goes_down: false, prefix: "", ..listing };
        assert_eq!(query_of(&flat, "x&y"), "?format=json&limit=7&delimiter=/&marker=x%26y");
    }
}
