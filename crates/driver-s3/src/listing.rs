//! Listings, page after page to the end: of objects, of versions, of unfinished uploads.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;

use plimsoll_driver::Completion;
use plimsoll_http::Body;

use crate::answer::DOCUMENT_BYTES_MAX;
use crate::connection::{FirstByte, Lease};
use crate::digests::PayloadDigests;
use crate::error;
use crate::s3_request::{MarkedPage, Page, S3Request};
use crate::session::S3Session;
use crate::xml::{Entry, Listed};

/// How much of a listing is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) page_size: u32,
    pub(crate) walk: Walk,
    /// The most entries to hand on.
    pub(crate) entries_max: Option<u64>,
    /// The most pages to read.
    pub(crate) pages_max: Option<NonZeroU32>,
}

impl<'a> Listing<'a> {
    /// Returns a listing to its end.
    pub(crate) const fn whole(prefix: &'a str, page_size: u32, walk: Walk) -> Self {
        Self { prefix, page_size, walk, entries_max: None, pages_max: None }
    }
}

/// What is listed, and how its pages follow one another.
#[derive(Clone, Copy)]
pub(crate) enum Walk {
    /// Objects by token; `recursive` follows `/` down.
    Objects { recursive: bool },
    /// Versions or uploads by markers.
    Marked(Listed),
}

/// The most pages that one listing follows; at 1,000 entries a page 10^9 entries.
const PAGES_COUNT_MAX: usize = 1_000_000;
/// The most pages without an entry that it follows in a row.
const EMPTY_PAGES_COUNT_MAX: usize = 1_000;

/// Sees to it that a listing comes to an end: a server may go on for ever, or in a circle.
#[derive(Default)]
struct Pages {
    /// Hashes of the places where pages ended, which bounds what is kept of each.
    places: HashSet<u64>,
    hashes: RandomState,
    empty_count: usize,
}

impl Pages {
    /// Takes note of a page that is followed by another one, which begins at `place`; an error says
    /// why the listing is not followed any further.
    fn follow(&mut self, place: (&str, &str), is_empty: bool) -> Result<(), String> {
        self.empty_count = if is_empty { self.empty_count + 1 } else { 0 };
        if self.empty_count > EMPTY_PAGES_COUNT_MAX {
            return Err(format!("the list has {} pages without an entry", self.empty_count));
        }
        if !self.places.insert(self.hashes.hash_one(place)) {
            return Err("the list repeats itself, so it has no end".to_owned());
        }
        if self.places.len() >= PAGES_COUNT_MAX {
            return Err(format!("the list goes on after {PAGES_COUNT_MAX} pages"));
        }
        Ok(())
    }
}

impl S3Session {
    /// Hands the entries of a listing to `take` until it wants no more, page after page to the end.
    pub(crate) async fn list(
        &mut self,
        lease: &Lease,
        listing: Listing<'_>,
        take: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Completion {
        // Where the page before ended: the token or the key, and the version or upload.
        let mut place = (String::new(), String::new());
        let mut pages = Pages::default();
        let mut taken = 0;
        let mut enough = false;
        let mut first_byte = None;
        let mut pages_left = listing.pages_max.map_or(u32::MAX, NonZeroU32::get);
        loop {
            let mut completion = self.list_page(lease, listing, &place.0, &place.1).await;
            first_byte = first_byte.or(completion.first_byte);
            completion.first_byte = first_byte;
            let taken_before = taken;
            if completion.result.is_ok() {
                let entries_max = listing.entries_max.unwrap_or(u64::MAX);
                let handed_on = self.page.for_each(|entry| {
                    enough = taken == entries_max || !take(entry);
                    taken += u64::from(!enough);
                    enough |= taken == entries_max;
                    !enough
                });
                if let Err(why) = handed_on {
                    completion.result = Err(error::of_document(&self.connection.answer, &why));
                }
            }
            completion.objects_count = u32::try_from(taken).unwrap_or(u32::MAX);
            pages_left -= 1;
            if completion.result.is_err() || !self.page.truncated || enough || pages_left == 0 {
                return completion;
            }
            let page = &mut self.page;
            let next = (page.next_token.as_str(), page.next_id.as_str());
            let followed = match next.0 {
                "" => Err("the list is truncated but has no continuation token".to_owned()),
                _ => pages.follow(next, taken == taken_before),
            };
            if let Err(why) = followed {
                completion.result = Err(error::of_document(&self.connection.answer, &why));
                return completion;
            }
            std::mem::swap(&mut place.0, &mut page.next_token);
            std::mem::swap(&mut place.1, &mut page.next_id);
        }
    }

    /// Gets one page into `self.page`.
    async fn list_page(
        &mut self,
        lease: &Lease,
        listing: Listing<'_>,
        token: &str,
        id_marker: &str,
    ) -> Completion {
        let Listing { prefix, page_size, walk, .. } = listing;
        let marked = MarkedPage { prefix, page_size, key_marker: token, id_marker };
        let (call, listed) = match walk {
            Walk::Objects { recursive } => {
                let token = (!token.is_empty()).then_some(token);
                (S3Request::List(Page { prefix, page_size, recursive, token }), Listed::Objects)
            }
            Walk::Marked(listed @ Listed::Uploads) => (S3Request::ListUploads(marked), listed),
            Walk::Marked(listed) => (S3Request::ListVersions(marked), listed),
        };
        let connection = &mut self.connection;
        let (digests, body) = (&PayloadDigests::NONE, Body::Empty);
        let outcome = connection.exchange(lease, &call, digests, body, DOCUMENT_BYTES_MAX).await;
        let mut completion = connection.complete(lease, &outcome, FirstByte::OfBody, &[200]);
        if completion.result.is_ok() {
            let parsed = match connection.answer.overflowed {
                true => Err(String::new()),
                false => self.page.parse(listed, &connection.answer.body),
            };
            if let Err(why) = parsed {
                completion.result = Err(error::of_document(&connection.answer, &why));
            }
        }
        completion
    }
}
