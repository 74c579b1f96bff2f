//! The store by itself: what it holds, what it refuses, and that its books balance.

use std::thread;

use bytes::Bytes;

use super::*;

const T0: WallTime = WallTime::from_unix_ns(1_000);

fn store(capacity_bytes: u64) -> Store {
    let store = Store::new(capacity_bytes, false);
    store.create_bucket("b", T0).unwrap();
    store
}

fn put(store: &Store, key: &str, content: &[u8]) -> Result<(), StoreError> {
    let room = store.reserve(key, content.len() as u64)?;
    let tag = Tag::Md5([0; 16]);
    let content = Bytes::copy_from_slice(content).into();
    store.put(
        "b",
        key,
        Object { content, tag, modified: T0, attributes: None, part_ends: None },
        Condition::Always,
        room,
    )
}

fn everything(store: &Store) -> Vec<String> {
    let query = ListQuery { prefix: "", delimiter: "", from: "", limit: usize::MAX };
    let page = store.list("b", &query).unwrap();
    page.objects.into_iter().map(|(key, _)| key.to_string()).collect()
}

#[test]
fn the_last_put_is_what_is_read() {
    let store = store(u64::MAX);
    put(&store, "k", b"first").unwrap();
    put(&store, "k", b"second").unwrap();
    assert_eq!(store.get("b", "k").unwrap().content.whole(), "second");
    assert_eq!(store.get("b", "other").unwrap_err(), StoreError::NoSuchKey);
    assert_eq!(store.get("none", "k").unwrap_err(), StoreError::NoSuchBucket);
}

#[test]
fn a_bucket_goes_only_when_empty() {
    let store = store(u64::MAX);
    assert_eq!(store.create_bucket("b", T0), Err(StoreError::BucketExists));
    put(&store, "k", b"").unwrap();
    assert_eq!(store.delete_bucket("b"), Err(StoreError::BucketNotEmpty));
    store.delete("b", "k").unwrap();
    store.delete("b", "k").unwrap();
    store.delete_bucket("b").unwrap();
    assert_eq!(store.delete_bucket("b"), Err(StoreError::NoSuchBucket));
    assert_eq!(put(&store, "k", b""), Err(StoreError::NoSuchBucket));
    assert_eq!(store.holding(), Holding { buckets_count: 0, objects_count: 0, bytes: 0 });
}

#[test]
fn a_full_store_takes_again_what_was_given_back() {
    // Room for exactly two objects of 100 bytes under keys of one letter.
    let each = 100 + 1 + OBJECT_OVERHEAD_BYTES;
    let store = store(2 * each);
    put(&store, "a", &[1; 100]).unwrap();
    let waiting = store.reserve("b", 100).unwrap();
    let full = Err(StoreError::Full { capacity_bytes: 2 * each });
    assert_eq!(put(&store, "c", b""), full, "uploads under way count");
    drop(waiting);
    put(&store, "b", &[2; 100]).unwrap();
    assert_eq!(put(&store, "a", &[3; 100]), full, "the old content stays until the new is in");
    assert_eq!(store.get("b", "a").unwrap().content.whole(), [1; 100].as_slice());
    store.delete("b", "b").unwrap();
    put(&store, "a", &[3; 50]).unwrap();
    let held = Holding { buckets_count: 1, objects_count: 1, bytes: each - 50 };
    assert_eq!(store.holding(), held);
    assert!(store.reserve("a", u64::MAX).is_err());
}

#[test]
fn what_is_added_stands_behind_what_was_there() {
    let store = store(1_000);
    let append = |offset, piece: &'static str| {
        let room = store.reserve("k", piece.len() as u64)?;
        let piece = Bytes::from_static(piece.as_bytes());
        let tag = Tag::of(&piece);
        let object =
            Object { content: piece.into(), tag, modified: T0, attributes: None, part_ends: None };
        store.append("b", "k", offset, object, room).map(|(_, size)| size)
    };
    let wrong = Err(StoreError::WrongOffset { size_bytes: 0 });
    assert_eq!(append(1, "nothing to add to"), wrong);
    assert_eq!(append(0, "three"), Ok(5));
    let first = store.get("b", "k").unwrap();
    assert_eq!((append(5, ""), append(5, " four")), (Ok(5), Ok(10)));
    assert_eq!(append(5, "again"), Err(StoreError::WrongOffset { size_bytes: 10 }));
    let both = store.get("b", "k").unwrap();
    assert_eq!(both.content.whole(), "three four");
    assert_eq!(first.content.whole(), "three", "who reads it sees what it was");
    assert_ne!(first.tag, both.tag);
    let held = OBJECT_OVERHEAD_BYTES + 1 + 10;
    assert_eq!(store.holding(), Holding { buckets_count: 1, objects_count: 1, bytes: held });
    assert!(append(10, "full").is_ok() && store.reserve("k", 1_000).is_err());
    store.delete("b", "k").unwrap();
    assert_eq!(store.holding().bytes, 0);
}

#[test]
fn a_listing_has_objects_and_where_it_goes_on() {
    let store = store(u64::MAX);
    for key in ["a/1", "a/2", "b", "c"] {
        put(&store, key, key.as_bytes()).unwrap();
    }
    let query = ListQuery { prefix: "", delimiter: "/", from: "", limit: 2 };
    let page = store.list("b", &query).unwrap();
    assert_eq!(page.common_prefixes, ["a/"]);
    assert_eq!(page.objects.len(), 1);
    assert_eq!(page.objects[0].1.content.whole(), "b");
    assert_eq!(page.last.as_deref(), Some("b"));
    assert_eq!(page.next.as_deref(), Some("b\0"));
}

#[test]
fn map_index_and_books_agree_after_threads_fought_over_few_keys() {
    let store = store(u64::MAX);
    thread::scope(|scope| {
        for worker in 0..4_usize {
            let store = &store;
            scope.spawn(move || {
                for turn in 0..2_000_usize {
                    let key = format!("k{}", (turn * 7 + worker * 3) % 11);
                    match (turn + worker) % 3 {
                        0 => store.delete("b", &key).unwrap(),
                        _ => put(store, &key, &vec![0; turn % 50]).unwrap(),
                    }
                    assert!(everything(store).is_sorted());
                }
            });
        }
    });
    let keys = everything(&store);
    let contents: u64 = keys
        .iter()
        .map(|key| store.get("b", key).unwrap().content.len() as u64 + overhead_bytes(key))
        .sum();
    let objects_count = (0..11).filter(|i| store.get("b", &format!("k{i}")).is_ok()).count() as u64;
    assert_eq!(keys.len() as u64, objects_count);
    assert_eq!(store.holding(), Holding { buckets_count: 1, objects_count, bytes: contents });
}

#[test]
fn what_was_before_is_remembered_once_and_counts_as_held() {
    let store = Store::new(u64::MAX, true);
    store.create_bucket("b", T0).unwrap();
    let before = |key| {
        let before = store.earlier("b", key);
        before.map(|before| before.map(|object| object.content.whole()))
    };
    assert_eq!(before("k"), None);
    put(&store, "k", b"one").unwrap();
    assert_eq!(before("k"), Some(None));
    put(&store, "k", b"three").unwrap();
    assert_eq!(before("k"), Some(Some("one".into())));
    let held = 2 * (OBJECT_OVERHEAD_BYTES + 1) + 3 + 5;
    assert_eq!(store.holding(), Holding { buckets_count: 1, objects_count: 1, bytes: held });
    store.delete("b", "k").unwrap();
    store.delete("b", "k").unwrap();
    assert_eq!(before("k"), Some(Some("three".into())));
    assert_eq!(store.removed_below("b", "").unwrap().1.content.whole(), "three");
    let held = OBJECT_OVERHEAD_BYTES + 1 + 5;
    assert_eq!(store.holding(), Holding { buckets_count: 1, objects_count: 0, bytes: held });
    store.lose_write("b", "k");
    assert!(store.lost_write("b", "k") && !store.lost_write("b", "other"));
    put(&store, "k", b"").unwrap();
    assert!(!store.lost_write("b", "k"));
    assert_eq!(before("k"), Some(None), "it was not there");
    store.delete("b", "k").unwrap();
    store.delete_bucket("b").unwrap();
    assert_eq!(store.holding(), Holding { buckets_count: 0, objects_count: 0, bytes: 0 });
}

#[test]
fn the_neighbour_is_of_the_same_size_if_there_is_one() {
    let store = store(u64::MAX);
    put(&store, "k", b"aaaa").unwrap();
    assert!(store.neighbour("b", "k", 4).is_none());
    put(&store, "a", b"bb").unwrap();
    put(&store, "x", b"ccc").unwrap();
    assert_eq!(store.neighbour("b", "k", 4).unwrap().content.whole(), "ccc");
    put(&store, "y", b"dddd").unwrap();
    assert_eq!(store.neighbour("b", "k", 4).unwrap().content.whole(), "dddd");
    assert_eq!(store.neighbour("b", "k", 2).unwrap().content.whole(), "bb");
}
