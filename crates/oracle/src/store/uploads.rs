//! Uploads in parts that are under way: what has arrived of each, and how an object is made of it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_model::WallTime;

use super::{
    Attributes, Condition, Object, Room, Store, StoreError, VersionId, lock, object_bytes,
    overhead_bytes, read, write,
};
use crate::checksum::{Algorithm, Checksum};
use crate::content::{Content, Piece};
use crate::digests::Tag;
use crate::listing::first_text_after;

/// The least that every part but the last must hold, as in S3.
pub(crate) const PART_BYTES_MIN: usize = 5 << 20;

/// The highest number of a part, as in S3.
pub(crate) const PART_NUMBER_MAX: u32 = 10_000;

/// Uploads by key and then by when they began, which is the order of a listing.
pub(super) type Uploads = BTreeMap<(String, String), Arc<Upload>>;

/// Bucket, key and id of an upload.
pub(crate) type UploadKey<'a> = (&'a str, &'a str, &'a str);

/// How the checksum of an upload is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summing {
    pub(crate) algorithm: Algorithm,
    /// Whether it is that of the whole content, or one of the parts' checksums.
    pub(crate) is_of_whole: bool,
}

/// One upload that has begun.
pub(super) struct Upload {
    begun: WallTime,
    attributes: Option<Arc<Attributes>>,
    summing: Option<Summing>,
    /// `None` once it is complete or given up.
    parts: Mutex<Option<BTreeMap<u32, Part>>>,
}

/// One part as stored. A clone shares the content.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) content: Piece,
    pub(crate) tag: Tag,
    pub(crate) modified: WallTime,
    pub(crate) checksum: Option<Checksum>,
}

/// A part as the completion of an upload names it.
#[derive(Clone, Debug)]
pub(crate) struct NamedPart {
    pub(crate) number: u32,
    /// The ETag without quotes, where it is named.
    pub(crate) tag: Option<String>,
    /// The checksum in base64, where it is named.
    pub(crate) checksum: Option<(Algorithm, String)>,
}

/// One page of the uploads under way.
#[derive(Debug)]
pub(crate) struct UploadPage {
    /// Key, id, and when it began.
    pub(crate) uploads: Vec<(String, String, WallTime)>,
    pub(crate) is_truncated: bool,
}

/// One page of an upload's parts by number.
#[derive(Debug)]
pub(crate) struct PartPage {
    pub(crate) parts: Vec<(u32, Part)>,
    pub(crate) is_truncated: bool,
}

impl Upload {
    fn parts_of<T>(
        &self,
        then: impl FnOnce(&mut BTreeMap<u32, Part>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        then(lock(&self.parts).as_mut().ok_or(StoreError::NoSuchUpload)?)
    }

    /// Takes no more parts, and returns how many bytes are free by that; 0 when it had ended
    /// before.
    pub(super) fn end(&self, key: &str) -> u64 {
        let Some(parts) = lock(&self.parts).take() else { return 0 };
        let own_bytes = object_bytes(key, 0, self.attributes.as_deref());
        parts.values().map(|part| part.release(key)).sum::<u64>() + own_bytes
    }
}

impl Store {
    /// Begins an upload and returns its id.
    pub(crate) fn begin_upload(
        &self,
        bucket: &str,
        key: &str,
        begun: WallTime,
        attributes: Option<Arc<Attributes>>,
        summing: Option<Summing>,
    ) -> Result<String, StoreError> {
        /// Ids sort as their uploads began.
        static BEGUN_COUNT: AtomicU64 = AtomicU64::new(0);
        let room = self.reserve(key, 0, attributes.as_deref())?;
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let id = format!("upload-{:016x}", BEGUN_COUNT.fetch_add(1, Ordering::Relaxed));
        let parts = Mutex::new(Some(BTreeMap::new()));
        let upload = Upload { begun, attributes, summing, parts };
        write(&bucket.uploads).insert((key.to_owned(), id.clone()), Arc::new(upload));
        room.keep();
        Ok(id)
    }

    /// Returns how the checksum of an upload is made, or why nothing can be done with it.
    pub(crate) fn check_upload(
        &self,
        (bucket, key, id): UploadKey<'_>,
    ) -> Result<Option<Summing>, StoreError> {
        self.upload(bucket, key, id).map(|upload| upload.summing)
    }

    /// Stores a part in the place of one of the same number.
    pub(crate) fn put_part(
        &self,
        (bucket, key, id): UploadKey<'_>,
        number: u32,
        part: Part,
        room: Room<'_>,
    ) -> Result<(), StoreError> {
        let room = room.holding(&Content::Whole(part.content.clone()));
        assert_eq!(room.bytes, overhead_bytes(key));
        let upload = self.upload(bucket, key, id)?;
        let replaced = upload.parts_of(|parts| Ok(parts.insert(number, part)))?;
        room.keep();
        self.give_back_bytes(replaced.map_or(0, |part| part.release(key)));
        Ok(())
    }

    /// Tells why no object can be made of the parts that are named, if so.
    pub(crate) fn check_completion(
        &self,
        (bucket, key, id): UploadKey<'_>,
        named: &[NamedPart],
        condition: Condition<'_>,
    ) -> Result<(), StoreError> {
        self.upload(bucket, key, id)?.parts_of(|parts| check_named(parts, named))?;
        self.check_condition(bucket, key, condition)
    }

    /// Makes an object of the parts that are named, and returns its tag, its checksum, where it is
    /// to have one, and which version it is. `claimed` is what the checksum is said to be.
    pub(crate) fn complete_upload(
        &self,
        (bucket, key, id): UploadKey<'_>,
        named: &[NamedPart],
        claimed: Option<&(Algorithm, String)>,
        condition: Condition<'_>,
        modified: WallTime,
    ) -> Result<(Tag, Option<Checksum>, VersionId), StoreError> {
        // An upload that is refused goes on; one that somebody forestalls from here on is lost.
        self.check_condition(bucket, key, condition)?;
        let upload = self.upload(bucket, key, id)?;
        let (mut parts, checksum) = {
            let mut parts = lock(&upload.parts);
            let held = parts.as_ref().ok_or(StoreError::NoSuchUpload)?;
            check_named(held, named)?;
            let checksum = upload.summing.and_then(|summing| summed(held, named, summing));
            if claimed.is_some_and(|claimed| !is_claim_right(claimed, checksum.as_ref())) {
                return Err(StoreError::OtherChecksum);
            }
            (parts.take().expect("it was there"), checksum)
        };
        self.forget_upload(bucket, key, id);
        let is_named =
            |number: &u32| named.binary_search_by_key(number, |part| part.number).is_ok();
        let unnamed = parts.extract_if(.., |number, _| !is_named(number));
        let mut freed_bytes = unnamed.map(|(_, part)| part.release(key)).sum::<u64>();
        freed_bytes += parts.len() as u64 * overhead_bytes(key);
        let mut attributes = upload.attributes.clone();
        if checksum.is_some() {
            let attributes = attributes.get_or_insert_default();
            Arc::make_mut(attributes).checksum.clone_from(&checksum);
        }
        let object = joined(parts, modified, attributes);
        let tag = object.tag;
        // The upload's own room and that of the parts' contents become the object's.
        let content = Some(object.content.clone());
        let room = Room { store: self, bytes: object.own_bytes(key), content };
        self.give_back_bytes(freed_bytes);
        let version = self.put(bucket, key, object, condition, room)?;
        Ok((tag, checksum, version))
    }

    /// Gives an upload up.
    pub(crate) fn abort_upload(&self, (bucket, key, id): UploadKey<'_>) -> Result<(), StoreError> {
        let upload = self.upload(bucket, key, id)?;
        self.forget_upload(bucket, key, id);
        self.give_back_bytes(upload.end(key));
        Ok(())
    }

    /// Returns up to `limit` uploads of keys that start with `prefix`, those after one of a key, or
    /// without an id after all of that key.
    pub(crate) fn uploads(
        &self,
        bucket: &str,
        prefix: &str,
        (key, id): (&str, Option<&str>),
        limit: usize,
    ) -> Result<UploadPage, StoreError> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let from = match id {
            _ if key < prefix => Bound::Included((prefix.to_owned(), String::new())),
            Some(id) => Bound::Excluded((key.to_owned(), id.to_owned())),
            None => Bound::Included((first_text_after(key), String::new())),
        };
        let uploads = read(&bucket.uploads);
        let mut rest = uploads.range((from, Bound::Unbounded));
        let below = |((key, _), _): &(&(String, String), &Arc<Upload>)| key.starts_with(prefix);
        let page = rest.by_ref().take_while(below).take(limit);
        let page: Vec<_> =
            page.map(|((key, id), upload)| (key.clone(), id.clone(), upload.begun)).collect();
        let is_truncated = page.len() == limit && rest.next().is_some_and(|next| below(&next));
        Ok(UploadPage { uploads: page, is_truncated })
    }

    /// Returns up to `limit` parts of an upload, those after a number.
    pub(crate) fn parts(
        &self,
        (bucket, key, id): UploadKey<'_>,
        after: u32,
        limit: usize,
    ) -> Result<PartPage, StoreError> {
        self.upload(bucket, key, id)?.parts_of(|parts| {
            let mut rest = parts.range((Bound::Excluded(after), Bound::Unbounded));
            let page = rest.by_ref().take(limit);
            let parts = page.map(|(number, part)| (*number, part.clone())).collect();
            Ok(PartPage { parts, is_truncated: rest.next().is_some() })
        })
    }

    fn upload(&self, bucket: &str, key: &str, id: &str) -> Result<Arc<Upload>, StoreError> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let name = (key.to_owned(), id.to_owned());
        read(&bucket.uploads).get(&name).cloned().ok_or(StoreError::NoSuchUpload)
    }

    fn forget_upload(&self, bucket: &str, key: &str, id: &str) {
        if let Some(bucket) = read(&self.buckets).get(bucket) {
            write(&bucket.uploads).remove(&(key.to_owned(), id.to_owned()));
        }
    }
}

impl Part {
    /// Counts it as no longer stored, and returns how many bytes are free by that.
    fn release(&self, key: &str) -> u64 {
        self.content.release() + overhead_bytes(key)
    }
}

/// Tells whether the parts that are named make an object: there, in order, and large enough.
fn check_named(parts: &BTreeMap<u32, Part>, named: &[NamedPart]) -> Result<(), StoreError> {
    for (at, NamedPart { number, tag, checksum }) in named.iter().enumerate() {
        let number = *number;
        if at > 0 && named[at - 1].number >= number {
            return Err(StoreError::InvalidPartOrder { number });
        }
        let part = parts.get(&number).ok_or(StoreError::InvalidPart { number })?;
        let is_other_tag = tag.as_ref().is_some_and(|tag| *tag != part.tag.to_string());
        let is_other_sum = |claimed| !is_claim_right(claimed, part.checksum.as_ref());
        if is_other_tag || checksum.as_ref().is_some_and(is_other_sum) {
            return Err(StoreError::InvalidPart { number });
        }
        if at + 1 < named.len() && part.content.len() < PART_BYTES_MIN {
            return Err(StoreError::PartTooSmall { number });
        }
    }
    Ok(())
}

/// Tells whether a checksum is what its client says it is; one that is not kept is not known.
fn is_claim_right((algorithm, value): &(Algorithm, String), checksum: Option<&Checksum>) -> bool {
    let known = checksum.filter(|checksum| checksum.algorithm == *algorithm);
    known.is_none_or(|checksum| checksum.to_string() == *value)
}

/// Returns the checksum of the parts that are named, where all of them have one.
fn summed(parts: &BTreeMap<u32, Part>, named: &[NamedPart], summing: Summing) -> Option<Checksum> {
    let of = |named: &NamedPart| {
        let part = parts.get(&named.number)?;
        let checksum = part.checksum.as_ref()?;
        (checksum.algorithm == summing.algorithm).then_some((checksum, part.content.len() as u64))
    };
    let sums: Vec<(&Checksum, u64)> = named.iter().map(of).collect::<Option<_>>()?;
    Checksum::of_parts(&sums, summing.is_of_whole)
}

/// Returns the parts as one object.
fn joined(
    parts: BTreeMap<u32, Part>,
    modified: WallTime,
    attributes: Option<Arc<Attributes>>,
) -> Object {
    let tags: Vec<Tag> = parts.values().map(|part| part.tag).collect();
    let ends = parts.values().scan(0, |end, part| {
        *end += part.content.len();
        Some(*end)
    });
    let part_ends: Arc<[usize]> = ends.collect();
    let content = Content::of_pieces(parts.into_values().map(|part| part.content));
    let tag = Tag::of_parts(&tags, content.len() as u64);
    let part_ends = Some(part_ends);
    Object { content, tag, modified, attributes, part_ends, version: VersionId::NULL }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::Holding;
    use super::*;

    const T0: WallTime = WallTime::from_unix_ns(1_000);

    struct Fixture {
        store: Store,
    }

    impl Fixture {
        fn new() -> Self {
            let store = Store::new(1 << 30, false);
            store.create_bucket("b", T0, false).unwrap();
            Self { store }
        }

        fn begin(&self, key: &str) -> String {
            self.store.begin_upload("b", key, T0, None, None).unwrap()
        }

        fn put(&self, id: &str, number: u32, content: Vec<u8>) -> Result<String, StoreError> {
            let room = self.store.reserve("k", content.len() as u64, None)?;
            let tag = Tag::of(&content);
            let content = Bytes::from(content).into();
            let part = Part { content, tag, modified: T0, checksum: None };
            self.store.put_part(("b", "k", id), number, part, room)?;
            Ok(tag.to_string())
        }

        fn complete(&self, id: &str, numbers: &[u32]) -> Result<Tag, StoreError> {
            let named =
                numbers.iter().map(|&number| NamedPart { number, tag: None, checksum: None });
            let named: Vec<_> = named.collect();
            let always = Condition::Always;
            self.store.complete_upload(("b", "k", id), &named, None, always, T0).map(|done| done.0)
        }

        fn bytes(&self) -> u64 {
            self.store.holding().bytes
        }
    }

    #[test]
    fn an_object_is_the_parts_that_are_named_in_order() {
        let bench = Fixture::new();
        let id = bench.begin("k");
        bench.put(&id, 7, vec![7; PART_BYTES_MIN]).unwrap();
        bench.put(&id, 2, vec![1; 3]).unwrap();
        bench.put(&id, 2, vec![2; PART_BYTES_MIN + 1]).unwrap();
        bench.put(&id, 9, b"end".to_vec()).unwrap();
        bench.complete(&id, &[2, 9]).unwrap();
        let object = bench.store.get("b", "k").unwrap();
        let expected = [&vec![2; PART_BYTES_MIN + 1][..], b"end"].concat();
        assert!(object.content.whole() == expected);
        let ends = object.part_ends.unwrap();
        assert_eq!(ends[..], [PART_BYTES_MIN + 1, PART_BYTES_MIN + 4]);
        // As much as if it had been put as a whole, and nothing of the parts.
        let object_bytes = expected.len() as u64 + overhead_bytes("k");
        let holding = Holding { buckets_count: 1, objects_count: 1, bytes: object_bytes };
        assert_eq!(bench.store.holding(), holding);
        assert_eq!(bench.complete(&id, &[2, 9]), Err(StoreError::NoSuchUpload));
        assert_eq!(bench.put(&id, 1, vec![]), Err(StoreError::NoSuchUpload));
        assert_eq!(bench.bytes(), object_bytes);
    }

    #[test]
    fn what_makes_no_object_leaves_the_upload_as_it_was() {
        let bench = Fixture::new();
        let id = bench.begin("k");
        for number in [1, 2] {
            bench.put(&id, number, vec![0; 10]).unwrap();
        }
        let before = bench.bytes();
        for (numbers, error) in [
            (&[1, 2][..], StoreError::PartTooSmall { number: 1 }),
            (&[2, 1], StoreError::PartTooSmall { number: 2 }),
            (&[2, 2], StoreError::PartTooSmall { number: 2 }),
            (&[3], StoreError::InvalidPart { number: 3 }),
        ] {
            assert_eq!(bench.complete(&id, numbers), Err(error), "{numbers:?}");
        }
        bench.put(&id, 2, vec![0; PART_BYTES_MIN]).unwrap();
        let order = StoreError::InvalidPartOrder { number: 1 };
        assert_eq!(bench.complete(&id, &[2, 1]), Err(order));
        let named = [NamedPart { number: 1, tag: Some("another".to_owned()), checksum: None }];
        let always = Condition::Always;
        let wrong = bench.store.complete_upload(("b", "k", &id), &named, None, always, T0);
        assert_eq!(wrong.unwrap_err(), StoreError::InvalidPart { number: 1 });
        assert_eq!(bench.bytes(), before + PART_BYTES_MIN as u64 - 10);
        bench.complete(&id, &[1]).unwrap();
    }

    #[test]
    fn an_upload_that_is_given_up_gives_its_room_back() {
        let bench = Fixture::new();
        let id = bench.begin("k");
        bench.put(&id, 1, vec![0; 1000]).unwrap();
        assert_eq!(bench.bytes(), 1000 + 2 * overhead_bytes("k"));
        bench.store.abort_upload(("b", "k", &id)).unwrap();
        assert_eq!(bench.bytes(), 0);
        assert_eq!(bench.store.abort_upload(("b", "k", &id)), Err(StoreError::NoSuchUpload));
        let id = bench.begin("k");
        bench.put(&id, 1, vec![0; 1000]).unwrap();
        bench.store.delete_bucket("b").unwrap();
        assert_eq!(bench.bytes(), 0);
    }

    #[test]
    fn pages_show_every_upload_and_part_once() {
        let bench = Fixture::new();
        let ids = ["a", "k", "k", "kk", "z"].map(|key| (key.to_owned(), bench.begin(key)));
        let (mut after, mut seen) = ((String::new(), None), Vec::new());
        loop {
            let page = bench.store.uploads("b", "k", (&after.0, after.1.as_deref()), 2).unwrap();
            seen.extend(page.uploads.iter().map(|(key, id, _)| (key.clone(), id.clone())));
            if !page.is_truncated {
                break;
            }
            let (key, id) = seen.last().cloned().unwrap();
            after = (key, Some(id));
        }
        assert_eq!(seen, ids[1..4]);
        let beyond = bench.store.uploads("b", "", ("k", None), 9).unwrap();
        let keys: Vec<&str> = beyond.uploads.iter().map(|(key, ..)| &**key).collect();
        assert_eq!(keys, ["kk", "z"]);

        for number in 1..=3 {
            bench.put(&ids[1].1, number, vec![]).unwrap();
        }
        let page = |after| {
            let page = bench.store.parts(("b", "k", &ids[1].1), after, 2).unwrap();
            let numbers: Vec<u32> = page.parts.iter().map(|(number, _)| *number).collect();
            (numbers, page.is_truncated)
        };
        assert_eq!(page(0), (vec![1, 2], true));
        assert_eq!(page(2), (vec![3], false));
    }
}
