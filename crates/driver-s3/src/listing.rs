//! Listings, page after page to the end: of objects, of versions, of unfinished uploads.

use plimsoll_driver::Completion;
use plimsoll_http::Body;

use crate::answer::DOCUMENT_BYTES_MAX;
use crate::call::{Call, MarkedPage, Page};
use crate::digests::PayloadDigests;
use crate::error;
use crate::line::{FirstByte, Lease};
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
}

/// What is listed, and how its pages follow one another.
#[derive(Clone, Copy)]
pub(crate) enum Walk {
    /// Objects by token; `recursive` follows `/` down.
    Objects { recursive: bool },
    /// Versions or uploads by markers.
    Marked(Listed),
}

impl S3Session {
    pub(crate) async fn list(
        &mut self,
        lease: &Lease,
        listing: Listing<'_>,
        take: &mut dyn FnMut(Entry<'_>),
    ) -> Completion {
        // Where the page before ended: the token or the key, and the version or upload.
        let mut place = (String::new(), String::new());
        let mut taken = 0;
        let mut first_byte = None;
        loop {
            let mut completion = self.list_page(lease, listing, &place.0, &place.1).await;
            first_byte = first_byte.or(completion.first_byte);
            completion.first_byte = first_byte;
            if completion.result.is_ok() {
                let entries_max = listing.entries_max.unwrap_or(u64::MAX);
                let handed_on = self.page.for_each(|entry| {
                    if taken < entries_max {
                        take(entry);
                        taken += 1;
                    }
                    taken < entries_max
                });
                if let Err(why) = handed_on {
                    completion.result = Err(error::of_document(&self.line.answer, &why));
                }
            }
            completion.objects_count = u32::try_from(taken).unwrap_or(u32::MAX);
            let enough = listing.entries_max.is_some_and(|entries_max| taken >= entries_max);
            if completion.result.is_err() || !self.page.truncated || enough {
                return completion;
            }
            let page = &mut self.page;
            if page.next_token.is_empty()
                || (&page.next_token, &page.next_id) == (&place.0, &place.1)
            {
                let why = "the list is truncated but does not say how it goes on";
                completion.result = Err(error::of_document(&self.line.answer, why));
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
                (Call::List(Page { prefix, page_size, recursive, token }), Listed::Objects)
            }
            Walk::Marked(listed @ Listed::Uploads) => (Call::ListUploads(marked), listed),
            Walk::Marked(listed) => (Call::ListVersions(marked), listed),
        };
        let line = &mut self.line;
        let (digests, body) = (&PayloadDigests::NONE, Body::Empty);
        let outcome = line.exchange(lease, &call, digests, body, DOCUMENT_BYTES_MAX).await;
        let mut completion = line.complete(lease, &outcome, FirstByte::OfBody, &[200]);
        if completion.result.is_ok() {
            let parsed = match line.answer.overflowed {
                true => Err(String::new()),
                false => self.page.parse(listed, &line.answer.body),
            };
            if let Err(why) = parsed {
                completion.result = Err(error::of_document(&line.answer, &why));
            }
        }
        completion
    }
}
