//! What every driver must do alike. A driver's own tests call [`check`]; a breach panics and names
//! itself.

use plimsoll_model::{ErrorClass, SharedClock};

use crate::{
    ByteRange, Completion, ContentSink, ContentSource, Driver, EntrySink, Operation, Session,
};

/// Content that any byte's place can be told from.
struct Pattern {
    size: u64,
}

fn pattern(at: u64) -> u8 {
    (at ^ (at >> 8).wrapping_mul(31) ^ (at >> 16).wrapping_mul(17)) as u8
}

impl ContentSource for Pattern {
    fn size(&self) -> u64 {
        self.size
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        for (at, byte) in (offset..).zip(buffer) {
            *byte = pattern(at);
        }
    }
}

#[derive(Default)]
struct Collected(Vec<u8>);

impl ContentSink for Collected {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

#[derive(Default)]
struct Entries(Vec<(String, u64)>);

impl EntrySink for Entries {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn entry(&mut self, key: &str, size: u64) {
        self.0.push((key.to_owned(), size));
    }
}

/// Names that have broken clients before: blanks, reserved and percent characters, several scripts,
/// doubled dots.
const ODD_NAMES: [&str; 8] = [
    "plain.rnd",
    "with blank and+plus",
    "a=b&c;d:e@f,g$h!i*j'k(l)",
    "100%25 ?#frag",
    "päivä/日本語/🚢",
    "quote\"and<angle>",
    "tilde~under_score-dash.",
    "..hidden/..rest",
];

/// Sizes around what buffers and blocks are made of.
const SIZES: [u64; 6] = [1, 63, 1_000, 8_193, 65_537, 1 << 20];

/// Checks one driver. Everything is written below `base`, which must be empty, and removed again.
pub async fn check<D: Driver>(driver: &D, clock: &SharedClock, base: &str) {
    assert!(!driver.endpoints().is_empty(), "a driver has at least one endpoint");
    let mut sessions = driver.open_sessions(clock, 2);
    assert_eq!(sessions.len(), 2, "as many sessions as asked for");
    let (mut other, mut session) = (sessions.pop().expect("two"), sessions.pop().expect("two"));
    contents_come_back(&mut session, base).await;
    ranges_are_exact(&mut session, base).await;
    odd_names_are_kept(&mut session, &mut other, base).await;
    what_is_missing_is_not_found(&mut session, base).await;
    listings_are_complete(&mut session, base).await;
}

fn succeeded(done: &Completion, what: &str) {
    assert!(done.result.is_ok(), "{what}: {:?}", done.result);
    let moments = done.last_byte_sent.into_iter().chain(done.first_byte);
    assert!(moments.into_iter().all(|at| at <= done.end), "{what}: a moment after the end");
}

async fn put<S: Session>(session: &mut S, key: &str, size: u64) {
    let done = session.execute(None, Operation::Put { key, content: &mut Pattern { size } }).await;
    succeeded(&done, &format!("put `{key}`"));
    assert_eq!((done.bytes, done.objects_count), (size, 1), "put `{key}`");
}

async fn get<S: Session>(session: &mut S, key: &str, range: Option<ByteRange>) -> Vec<u8> {
    let mut sink = Collected::default();
    let done =
        session.execute(None, Operation::Get { key, range, version: None, sink: &mut sink }).await;
    succeeded(&done, &format!("get `{key}` {range:?}"));
    assert_eq!((done.bytes, done.objects_count), (sink.0.len() as u64, 1), "get `{key}`");
    sink.0
}

async fn delete<S: Session>(session: &mut S, keys: &[String]) {
    let done = session.execute(None, Operation::Delete { keys }).await;
    succeeded(&done, "delete");
    assert_eq!(done.objects_count as usize, keys.len(), "delete counts its keys");
}

async fn list<S: Session>(session: &mut S, prefix: &str, page_size: u32) -> Vec<(String, u64)> {
    let mut entries = Entries::default();
    let done = session
        .execute(None, Operation::List { prefix, page_size, pages_max: None, sink: &mut entries })
        .await;
    succeeded(&done, &format!("list `{prefix}`"));
    assert_eq!(done.objects_count as usize, entries.0.len(), "list counts its entries");
    entries.0
}

async fn contents_come_back<S: Session>(session: &mut S, base: &str) {
    for size in SIZES {
        let key = format!("{base}size-{size}");
        put(session, &key, size).await;
        let expected: Vec<u8> = (0..size).map(pattern).collect();
        assert!(get(session, &key, None).await == expected, "{size} bytes come back as written");
        let done = session.execute(None, Operation::Stat { key: &key, version: None }).await;
        succeeded(&done, "stat");
        assert_eq!(done.object_size, Some(size), "stat tells the size");
        put(session, &key, 5).await;
        assert_eq!(get(session, &key, None).await.len(), 5, "a second put replaces the first");
        delete(session, &[key]).await;
    }
}

async fn ranges_are_exact<S: Session>(session: &mut S, base: &str) {
    let key = format!("{base}ranged");
    put(session, &key, 10_000).await;
    for (offset, len) in [(0, 1), (0, 10_000), (1, 9_998), (9_999, 1), (8_190, 5)] {
        let got = get(session, &key, Some(ByteRange { offset, len })).await;
        let expected: Vec<u8> = (offset..offset + len).map(pattern).collect();
        assert!(got == expected, "range {offset}+{len}");
    }
    let mut sink = Collected::default();
    let range = Some(ByteRange { offset: 10_000, len: 1 });
    let done = session
        .execute(None, Operation::Get { key: &key, range, version: None, sink: &mut sink })
        .await;
    assert!(done.result.is_err(), "a range beyond the object fails");
    assert!(sink.0.is_empty(), "a failed get gives no content");
    delete(session, &[key]).await;
}

async fn odd_names_are_kept<S: Session>(session: &mut S, other: &mut S, base: &str) {
    let keys: Vec<String> = ODD_NAMES.iter().map(|name| format!("{base}odd/{name}")).collect();
    for (key, size) in keys.iter().zip(1..) {
        put(session, key, size).await;
    }
    for (key, size) in keys.iter().zip(1..) {
        assert_eq!(get(other, key, None).await.len(), size, "another session reads `{key}`");
    }
    let listed = list(session, &format!("{base}odd/"), 3).await;
    let mut expected: Vec<(String, u64)> = keys.iter().cloned().zip(1..).collect();
    expected.sort();
    assert_eq!(listed, expected, "listed in byte order, names as written");
    delete(session, &keys).await;
    assert_eq!(list(session, &format!("{base}odd/"), 3).await, [], "deleted means gone");
}

/// Checks a driver whose buckets need not be made.
pub async fn check_buckets<D: Driver>(driver: &D, clock: &SharedClock) {
    let session = &mut driver.open_sessions(clock, 1).pop().expect("one session was asked for");
    for (bucket, size) in [(None, 1), (Some("a"), 2), (Some("b"), 3)] {
        let put = Operation::Put { key: "same", content: &mut Pattern { size } };
        succeeded(&session.execute(bucket, put).await, "put");
    }
    let keys = ["same".to_owned()];
    succeeded(&session.execute(Some("b"), Operation::Delete { keys: &keys }).await, "delete");
    for (bucket, size) in [(None, Some(1)), (Some("a"), Some(2)), (Some("b"), None)] {
        let stat = Operation::Stat { key: "same", version: None };
        assert_eq!(session.execute(bucket, stat).await.object_size, size, "{bucket:?}");
        let mut entries = Entries::default();
        let list =
            Operation::List { prefix: "", page_size: 10, pages_max: None, sink: &mut entries };
        succeeded(&session.execute(bucket, list).await, "list");
        let expected: Vec<(String, u64)> =
            size.into_iter().map(|size| ("same".to_owned(), size)).collect();
        if bucket.is_some() {
            assert_eq!(entries.0, expected, "a listing of {bucket:?} has its keys alone");
        }
    }
}

async fn what_is_missing_is_not_found<S: Session>(session: &mut S, base: &str) {
    let key = format!("{base}never written");
    let mut sink = Collected::default();
    let get = Operation::Get { key: &key, range: None, version: None, sink: &mut sink };
    let class = |done: Completion| done.result.expect_err("nothing is there").class;
    assert_eq!(class(session.execute(None, get).await), ErrorClass::NotFound, "get");
    let stat = Operation::Stat { key: &key, version: None };
    assert_eq!(class(session.execute(None, stat).await), ErrorClass::NotFound, "stat");
    delete(session, &[key]).await;
}

async fn listings_are_complete<S: Session>(session: &mut S, base: &str) {
    let prefix = format!("{base}listed/");
    let keys: Vec<String> = (0..25).map(|number| format!("{prefix}{number:03}")).collect();
    for key in &keys {
        put(session, key, 1).await;
    }
    put(session, &format!("{base}listed-not"), 1).await;
    for page_size in [1, 7, 25, 1_000] {
        let listed = list(session, &prefix, page_size).await;
        let names: Vec<&String> = listed.iter().map(|(key, _)| key).collect();
        assert_eq!(names, keys.iter().collect::<Vec<_>>(), "in pages of {page_size}");
    }
    delete(session, &keys).await;
    delete(session, &[format!("{base}listed-not")]).await;
}
