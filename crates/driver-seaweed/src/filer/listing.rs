//! Listings: pages of directories, read one after the other to the end.

use std::borrow::Cow;
use std::num::NonZeroU32;

use plimsoll_driver::{Completion, DriverError};
use plimsoll_model::ErrorClass;
use serde::Deserialize;

use super::path;
use super::session::FilerSession;
use super::thread::TokenFor;
use super::walk::{Name, Next, Walk};
use crate::error;
use crate::request::Follows;

/// More than a page of any directory has; a large file's entry names all of its chunks.
const PAGE_BYTES_MAX: usize = 256 << 20;

/// The most pages that one listing reads; at 1,000 entries a page 10^9 entries.
const PAGES_COUNT_MAX: u32 = 1_000_000;

/// What tells directories in a file's mode, as Go writes it.
const MODE_DIRECTORY: u32 = 1 << 31;

/// How much of a listing is wanted.
#[derive(Clone, Copy)]
pub(super) struct Listing<'a> {
    pub(super) prefix: &'a str,
    pub(super) page_size: u32,
    pub(super) pages_max: Option<NonZeroU32>,
    pub(super) goes_down: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page<'a> {
    #[serde(borrow, default)]
    entries: Option<Vec<Entry<'a>>>,
    #[serde(borrow, default)]
    last_file_name: Cow<'a, str>,
    #[serde(default)]
    should_display_load_more: bool,
}

/// What a filer says of a file or a directory.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    full_path: Cow<'a, str>,
    #[serde(default)]
    mode: u32,
    #[serde(default)]
    file_size: u64,
}

impl Entry<'_> {
    pub(super) fn is_directory(&self) -> bool {
        self.mode & MODE_DIRECTORY != 0
    }

    fn named(self) -> Name {
        let name = self.full_path.rsplit('/').next().unwrap_or_default().to_owned();
        Name { name, is_directory: self.is_directory(), size: self.file_size }
    }
}

impl FilerSession {
    /// Hands the keys of a listing to `take` in their order until it wants no more.
    pub(super) async fn list(
        &mut self,
        bucket: Option<&str>,
        listing: Listing<'_>,
        take: &mut dyn FnMut(&str, u64) -> bool,
    ) -> Completion {
        let mut walk = Walk::below(listing.prefix, listing.goes_down);
        let mut done: Option<Completion> = None;
        let (mut taken, mut pages) = (0, 0);
        let pages_max = listing.pages_max.map_or(u32::MAX, NonZeroU32::get);
        loop {
            match walk.next() {
                Next::File(key, size) => {
                    if !take(&key, size) {
                        break;
                    }
                    taken += 1;
                }
                Next::Page if pages == pages_max => break,
                Next::Page => {
                    let mut page = self.read_page(bucket, &mut walk, listing.page_size).await;
                    pages += 1;
                    if page.result.is_ok() && pages > PAGES_COUNT_MAX {
                        let why = format!("the list goes on after {PAGES_COUNT_MAX} pages");
                        page.result = Err(DriverError::new(ErrorClass::Protocol, why));
                    }
                    page.first_byte = done.and_then(|before| before.first_byte).or(page.first_byte);
                    let has_failed = page.result.is_err();
                    done = Some(page);
                    if has_failed {
                        break;
                    }
                }
                Next::End => break,
            }
        }
        let done = done.unwrap_or_else(|| self.ended(Ok(())));
        Completion { objects_count: taken, ..done }
    }

    /// Reads the page that a walk asks for.
    async fn read_page(
        &mut self,
        bucket: Option<&str>,
        walk: &mut Walk,
        page_size: u32,
    ) -> Completion {
        let (base, wanted, last) = walk.place();
        if let Err(error) = self.set_directory(bucket, base) {
            return self.ended(Err(error));
        }
        let mut query = format!("/?limit={page_size}");
        if !last.is_empty() {
            query += &format!("&lastFileName={}", path::encoded(last));
        }
        // Only what stands before a character that means something in a pattern; the rest of what
        // is not wanted is passed over here.
        let plain = wanted.split(['*', '?', '[', '\\']).next().unwrap_or_default();
        if !plain.is_empty() {
            query += &format!("&namePattern={}*", path::encoded(plain));
        }
        self.begin("GET", &query, TokenFor::Read, Follows::Document);
        let mut done = self.wire.read(&mut self.client, self.host, PAGE_BYTES_MAX).await;
        match &done.result {
            // A directory that is not there, or is not there any more.
            Err(error) if error.class == ErrorClass::NotFound => done.result = Ok(()),
            Err(_) => return done,
            // A file of that name, which has nothing below it.
            Ok(()) if self.wire.answer.states_etag => {}
            Ok(()) => {
                let answer = &self.wire.answer;
                let taken = match serde_json::from_slice::<Page<'_>>(&answer.body) {
                    Err(error) => Err(format!("the list cannot be understood: {error}")),
                    Ok(page) => {
                        let names = page.entries.into_iter().flatten().map(Entry::named);
                        // A path such as `a/./b` made somebody a name that no key can hold.
                        let names = names.filter(|name| path::judge(&name.name).is_ok());
                        walk.take(names, &page.last_file_name, page.should_display_load_more)
                    }
                };
                done.result = taken.map_err(|why| error::of_success(answer.status, why));
                return done;
            }
        }
        let nothing = walk.take(std::iter::empty(), "", false);
        nothing.expect("a page that is the last one goes on nowhere");
        done
    }
}
