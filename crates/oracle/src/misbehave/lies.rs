//! Requests as the script rules them: what a right client must make of the truth, and what is told
//! in its place.

use std::ops::Range as Span;
use std::sync::Arc;

use bytes::Bytes;
use plimsoll_model::{ErrorClass, OpKind};
use s3s::S3Result;

use super::Ruling;
use crate::behaviour::spoil::{Source, class_of_content, spoil};
use crate::behaviour::{Lie, Request};
use crate::clock::wall_time;
use crate::digests::Tag;
use crate::extent::Extent;
use crate::listing::ListQuery;
use crate::store::{Object, ObjectPage, Store, StoreError, VersionId};

/// An object that is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) store: &'a Store,
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
    /// The version that is named; the newest otherwise.
    pub(crate) version: Option<VersionId>,
    pub(crate) extent: Extent,
}

/// What is under a key, or told to be.
pub(crate) type Found = Result<Object, StoreError>;

impl Ruling {
    /// Returns what a GET or HEAD is to be told it has found, where `found` is the truth.
    pub(crate) fn read(&self, kind: OpKind, wanted: &Wanted<'_>, found: Found) -> S3Result<Found> {
        let mut told = None;
        let lie = self.ask(&wanted.request(kind, &found), &mut |lie, salt| {
            let (tale, class) = wanted.tale(kind, &found, lie, salt)?;
            told = Some(tale);
            Some(class)
        })?;
        Ok(match lie {
            None => found,
            Some(_) => told.expect("a lie is told only after it was made ready"),
        })
    }

    /// Tells whether a write or delete is to be acknowledged and lost; a step of an upload in parts
    /// never is. `obstacle` is why it cannot be done, if so; `changes` tells whether it would
    /// change anything.
    pub(crate) fn loses(
        &self,
        kind: OpKind,
        key: &str,
        content_bytes: u64,
        obstacle: Option<StoreError>,
        changes: bool,
    ) -> S3Result<bool> {
        let honest = match obstacle {
            None => ErrorClass::Ok,
            Some(StoreError::Full { .. }) => ErrorClass::Server,
            Some(
                StoreError::KeyExists
                | StoreError::OtherTag
                | StoreError::NotModified
                | StoreError::LockNeedsVersions,
            ) => ErrorClass::Precondition,
            Some(StoreError::Locked) => ErrorClass::Denied,
            Some(StoreError::AppendToVersions) => ErrorClass::Server,
            Some(
                StoreError::InvalidPart { .. }
                | StoreError::InvalidPartOrder { .. }
                | StoreError::PartTooSmall { .. }
                | StoreError::WrongOffset { .. }
                | StoreError::NoLock
                | StoreError::NamedMarker { .. }
                | StoreError::OtherChecksum,
            ) => ErrorClass::Client,
            Some(_) => ErrorClass::NotFound,
        };
        let request = Request { kind, key, content_bytes, honest };
        let lie = self.ask(&request, &mut |lie, _| {
            (lie == Lie::LostWrite && changes).then_some(ErrorClass::Ok)
        })?;
        Ok(lie.is_some())
    }

    /// Returns the page that a LIST is to be told.
    pub(crate) fn page(
        &self,
        store: &Store,
        bucket: &str,
        query: &ListQuery<'_>,
    ) -> S3Result<Result<ObjectPage, StoreError>> {
        let page = store.list(bucket, query);
        let honest = if page.is_ok() { ErrorClass::Ok } else { ErrorClass::NotFound };
        let request = Request { kind: OpKind::List, key: query.prefix, content_bytes: 0, honest };
        let lie = self.ask(&request, &mut |lie, _| class_of_page(page.as_ref().ok(), lie))?;
        Ok(match lie {
            None => page,
            Some((lie, salt)) => {
                page.and_then(|page| told_page(store, bucket, query, page, (lie, salt)))
            }
        })
    }
}

/// Returns the class of error that a correct client reports for this lie about `page`, the true
/// page; `None` if the lie cannot be told.
pub(crate) fn class_of_page(page: Option<&ObjectPage>, lie: Lie) -> Option<ErrorClass> {
    let has_any = page.is_some_and(|page| !page.objects.is_empty());
    (lie == Lie::ListGhost || has_any).then_some(ErrorClass::Corrupt)
}

/// Returns `page`, the true page, with one entry missing or one too many.
pub(crate) fn told_page(
    store: &Store,
    bucket: &str,
    query: &ListQuery<'_>,
    mut page: ObjectPage,
    (lie, salt): (Lie, u64),
) -> Result<ObjectPage, StoreError> {
    if lie == Lie::ListOmission {
        page.objects.remove(salt as usize % page.objects.len());
        return Ok(page);
    }
    // The page must not grow beyond what was asked for.
    let query = ListQuery { limit: (query.limit - 1).max(1), ..*query };
    let ghost = ghost(store, bucket, &query, salt);
    let mut page = store.list(bucket, &query)?;
    let at = page.objects.partition_point(|(key, _)| *key < ghost.0);
    page.objects.insert(at, ghost);
    Ok(page)
}

impl<'a> Wanted<'a> {
    /// Returns what is asked for, where `found` is the truth.
    pub(crate) fn request(&self, kind: OpKind, found: &Found) -> Request<'a> {
        let span = found.as_ref().ok().and_then(|object| self.span_of(object));
        let honest = match (found, &span) {
            (Err(StoreError::NamedMarker { .. }), _) => ErrorClass::Client,
            (Err(_), _) => ErrorClass::NotFound,
            (Ok(_), None) => ErrorClass::Client,
            // A write that was acknowledged and lost shows as soon as the object is read.
            (Ok(_), Some(_)) if kind == OpKind::Get && self.is_lost() => ErrorClass::Corrupt,
            (Ok(_), Some(_)) => ErrorClass::Ok,
        };
        let content_bytes = match kind {
            OpKind::Get => span.map_or(0, |span| span.len() as u64),
            _ => 0,
        };
        Request { kind, key: self.key, content_bytes, honest }
    }

    /// Returns what a lie tells, and what a right client makes of it; `None` if it cannot be told
    /// or is the truth.
    pub(crate) fn tale(
        &self,
        kind: OpKind,
        found: &Found,
        lie: Lie,
        salt: u64,
    ) -> Option<(Found, ErrorClass)> {
        match lie {
            Lie::StaleRead => self.before(kind, found.as_ref().ok()),
            _ => {
                let object = found.as_ref().ok()?;
                self.spoiled(lie, salt, object, self.span_of(object)?)
            }
        }
    }

    /// Returns which bytes of an object are asked for, `None` if it has none of them.
    pub(crate) fn span_of(&self, object: &Object) -> Option<Span<usize>> {
        self.extent.span(object).ok()
    }

    fn is_lost(&self) -> bool {
        self.version.is_none() && self.store.lost_write(self.bucket, self.key)
    }

    /// Returns the state before the last change, and what a right client makes of it; `None` if it
    /// is not known or the same.
    fn before(&self, kind: OpKind, now: Option<&Object>) -> Option<(Found, ErrorClass)> {
        if self.version.is_some() {
            // One version never changes.
            return None;
        }
        let before = self.store.earlier(self.bucket, self.key)?;
        let class = match (&before, now) {
            (None, None) => return None,
            (None, Some(_)) => ErrorClass::NotFound,
            (Some(before), now) => match (self.span_of(before), now) {
                (None, _) => ErrorClass::Client,
                (Some(_), None) => ErrorClass::Ok,
                (Some(_), Some(now)) if kind != OpKind::Get => {
                    let differs = before.content.len() != now.content.len();
                    differs.then_some(ErrorClass::Corrupt)?
                }
                (Some(span), Some(now)) => {
                    let right = self.span_of(now)?;
                    class_of_content(&before.content.whole()[span], &now.content.whole()[right])?
                }
            },
        };
        Some((before.ok_or(StoreError::NoSuchKey), class))
    }

    /// Returns the object with wrong bytes in what is asked for. Its ETag is that of what is sent.
    fn spoiled(
        &self,
        lie: Lie,
        salt: u64,
        object: &Object,
        span: Span<usize>,
    ) -> Option<(Found, ErrorClass)> {
        let right = object.content.whole();
        let older = self.store.earlier(self.bucket, self.key).flatten();
        let older = older.map(|older| older.content.whole());
        let other = match lie {
            Lie::OtherKey | Lie::Torn => self.store.neighbour(self.bucket, self.key, right.len()),
            _ => None,
        };
        let other = other.map(|other| other.content.whole());
        let source = Source {
            object: &right,
            offset: span.start,
            len: span.len(),
            older: older.as_deref(),
            other: other.as_deref(),
        };
        let wrong = spoil(lie, salt, &source)?;
        let content: Bytes = match span.len() == right.len() {
            true => wrong.into(),
            false => [&right[..span.start], &wrong, &right[span.end..]].concat().into(),
        };
        let tag = Tag::of(&content);
        let content = content.into();
        Some((Ok(Object { content, tag, ..object.clone() }), ErrorClass::Corrupt))
    }
}

/// Returns a listed object that is not there: one that was removed, else one that never was.
fn ghost(store: &Store, bucket: &str, query: &ListQuery<'_>, salt: u64) -> (Arc<str>, Object) {
    let removed = store.removed_below(bucket, query.prefix);
    removed.filter(|(key, _)| query.common_prefix(key).is_none()).unwrap_or_else(|| {
        let key = format!("{}ghost-{salt:016x}", query.prefix);
        let content = Bytes::new();
        let tag = Tag::of(&content);
        (
            key.into(),
            Object {
                content: content.into(),
                tag,
                modified: wall_time(),
                attributes: None,
                part_ends: None,
                version: VersionId::NULL,
            },
        )
    })
}
