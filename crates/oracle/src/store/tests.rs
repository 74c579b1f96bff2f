//! The store by itself: what it holds, what it refuses, and that its books balance.

use std::thread;

use bytes::Bytes;

use super::*;

const T0: WallTime = WallTime::from_unix_ns(1_000);

fn store(capacity_bytes: u64) -> Store {
    let store = Store::new(capacity_bytes, false);
    store.create_bucket("b", T0, false).unwrap();
    store
}

fn put(store: &Store, key: &str, content: &[u8]) -> Result<(), StoreError> {
    let room = store.reserve(key, content.len() as u64, None)?;
    let tag = Tag::Md5([0; 16]);
    let content = Bytes::copy_from_slice(content).into();
    let version = VersionId::NULL;
    let object = Object { content, tag, modified: T0, attributes: None, part_ends: None, version };
    store.put("b", key, object, Condition::Always, room).map(drop)
}

fn delete(store: &Store, key: &str) -> Deleted {
    store.delete("b", key, Condition::Always, T0).unwrap()
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
    assert_eq!(store.create_bucket("b", T0, false), Err(StoreError::BucketExists));
    put(&store, "k", b"").unwrap();
    assert_eq!(store.delete_bucket("b"), Err(StoreError::BucketNotEmpty));
    delete(&store, "k");
    delete(&store, "k");
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
    let waiting = store.reserve("b", 100, None).unwrap();
    let full = Err(StoreError::Full { capacity_bytes: 2 * each });
    assert_eq!(put(&store, "c", b""), full, "uploads under way count");
    drop(waiting);
    put(&store, "b", &[2; 100]).unwrap();
    assert_eq!(put(&store, "a", &[3; 100]), full, "the old content stays until the new is in");
    assert_eq!(store.get("b", "a").unwrap().content.whole(), [1; 100].as_slice());
    delete(&store, "b");
    put(&store, "a", &[3; 50]).unwrap();
    let held = Holding { buckets_count: 1, objects_count: 1, bytes: each - 50 };
    assert_eq!(store.holding(), held);
    assert!(store.reserve("a", u64::MAX, None).is_err());
}

#[test]
fn content_that_several_share_counts_once_while_any_of_them_lives() {
    let own = OBJECT_OVERHEAD_BYTES + 1;
    let store = store(100 + 4 * own);
    put(&store, "a", &[1; 100]).unwrap();
    let copy = |to: &str| {
        let object = store.get("b", "a").unwrap();
        let room = store.reserve_copy(to, &object.content, None)?;
        store.put("b", to, object, Condition::Always, room).map(drop)
    };
    copy("c").unwrap();
    copy("d").unwrap();
    copy("d").unwrap();
    assert_eq!(store.holding().bytes, 100 + 3 * own);
    let taken = store.get("b", "a").unwrap();
    delete(&store, "a");
    assert_eq!(store.holding().bytes, 100 + 2 * own, "the others still hold it");
    put(&store, "d", b"other").unwrap();
    assert_eq!(store.holding().bytes, 105 + 2 * own);
    delete(&store, "c");
    assert_eq!(store.holding().bytes, 5 + own, "the last takes it along");
    // One that is copied while it is removed counts again, as a whole.
    let room = store.reserve_copy("e", &taken.content, None).unwrap();
    assert_eq!(store.holding().bytes, 105 + 2 * own);
    drop(room);
    assert_eq!(store.holding().bytes, 5 + own);
    delete(&store, "d");
    assert_eq!(store.holding().bytes, 0);
}

#[test]
fn what_is_added_stands_behind_what_was_there() {
    let store = store(1_000);
    let append = |offset, piece: &'static str| {
        let room = store.reserve("k", piece.len() as u64, None)?;
        let piece = Bytes::from_static(piece.as_bytes());
        let tag = Tag::of(&piece);
        let (content, version) = (piece.into(), VersionId::NULL);
        let object =
            Object { content, tag, modified: T0, attributes: None, part_ends: None, version };
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
    assert!(append(10, "full").is_ok() && store.reserve("k", 1_000, None).is_err());
    delete(&store, "k");
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
                        0 => drop(delete(store, &key)),
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
    store.create_bucket("b", T0, false).unwrap();
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
    delete(&store, "k");
    delete(&store, "k");
    assert_eq!(before("k"), Some(Some("three".into())));
    assert_eq!(store.removed_below("b", "").unwrap().1.content.whole(), "three");
    let held = OBJECT_OVERHEAD_BYTES + 1 + 5;
    assert_eq!(store.holding(), Holding { buckets_count: 1, objects_count: 0, bytes: held });
    store.lose_write("b", "k");
    assert!(store.lost_write("b", "k") && !store.lost_write("b", "other"));
    put(&store, "k", b"").unwrap();
    assert!(!store.lost_write("b", "k"));
    assert_eq!(before("k"), Some(None), "it was not there");
    delete(&store, "k");
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

/// Returns key, content (`None`: a mark of deletion), and whether it is the newest, of all
/// versions.
fn versions(store: &Store, limit: usize) -> Vec<(String, Option<String>, bool)> {
    let (mut lines, mut from, mut after) = (Vec::new(), String::new(), None);
    loop {
        let query = ListQuery { prefix: "", delimiter: "", from: &from, limit };
        let page = store.list_versions("b", &query, after).unwrap();
        assert!(page.versions.len() <= limit);
        lines.extend(page.versions.iter().map(|(key, version, is_newest)| {
            let text =
                |object: &Object| String::from_utf8(object.content.whole().to_vec()).unwrap();
            (key.to_string(), version.object().map(text), *is_newest)
        }));
        match page.next {
            None => return lines,
            Some((key, version)) => (from, after) = (key, Some(version.unwrap())),
        }
    }
}

#[test]
fn versions_are_kept_listed_and_removed_one_by_one_and_the_books_balance() {
    let store = store(u64::MAX);
    put(&store, "k", b"before").unwrap();
    store.set_versioning("b", Versioning::Enabled).unwrap();
    put(&store, "k", b"one").unwrap();
    let Deleted::Marked(marker) = delete(&store, "k") else { panic!("it is hidden, not removed") };
    assert_eq!(store.get("b", "k").unwrap_err(), StoreError::Hidden { version: marker });
    assert_eq!(everything(&store), [""; 0]);
    put(&store, "a", b"other").unwrap();
    put(&store, "k", b"two").unwrap();
    store.set_versioning("b", Versioning::Suspended).unwrap();
    put(&store, "k", b"null").unwrap();
    let line = |key: &str, content: Option<&str>, newest| {
        (key.to_owned(), content.map(str::to_owned), newest)
    };
    let expected = [
        line("a", Some("other"), true),
        line("k", Some("null"), true),
        line("k", Some("two"), false),
        line("k", None, false),
        line("k", Some("one"), false),
    ];
    for limit in 1..7 {
        assert_eq!(versions(&store, limit), expected, "`before` was the null version: {limit}");
    }
    let texts = [("a", 5), ("k", 4), ("k", 3), ("k", 0), ("k", 3)];
    let bytes = texts.iter().map(|(key, size)| overhead_bytes(key) + size).sum();
    let held = Holding { buckets_count: 1, objects_count: 4, bytes };
    assert_eq!(store.holding(), held);
    assert_eq!(store.delete_bucket("b"), Err(StoreError::BucketNotEmpty));

    let removal = |version| Removal { version, now: T0, bypass: false };
    let remove =
        |key, version| store.delete_version("b", key, removal(version), Condition::Always).unwrap();
    assert!(!remove("k", VersionId::NULL), "no mark of deletion");
    assert_eq!(store.get("b", "k").unwrap().content.whole(), "two");
    assert!(remove("k", marker));
    let two = store.get("b", "k").unwrap().version;
    assert!(!remove("k", two) && !remove("k", two));
    assert_eq!(store.get("b", "k").unwrap().content.whole(), "one");
    assert_eq!(delete(&store, "k"), Deleted::Marked(VersionId::NULL));
    assert_eq!(delete(&store, "k"), Deleted::Marked(VersionId::NULL), "in the place of the other");
    assert_eq!(everything(&store), ["a"]);
    for key in ["a", "k"] {
        let query = ListQuery { prefix: key, delimiter: "", from: "", limit: 9 };
        for (_, version, _) in store.list_versions("b", &query, None).unwrap().versions {
            remove(key, version.id());
        }
    }
    store.delete_bucket("b").unwrap();
    assert_eq!(store.holding(), Holding { buckets_count: 0, objects_count: 0, bytes: 0 });
}

#[test]
fn ten_thousand_versions_of_one_key_are_listed_and_removed() {
    const COUNT: usize = 10_000;
    let store = store(u64::MAX);
    store.set_versioning("b", Versioning::Enabled).unwrap();
    for index in 0..COUNT {
        put(&store, "k", index.to_string().as_bytes()).unwrap();
    }
    let found = versions(&store, 1000);
    let expected = (0..COUNT).rev().map(|index| Some(index.to_string()));
    assert!(found.iter().map(|(_, content, _)| content.clone()).eq(expected));
    // Page after page, as who empties a bucket goes on behind what is gone.
    let (mut from, mut after, mut removed_count) = (String::new(), None, 0);
    loop {
        let query = ListQuery { prefix: "", delimiter: "", from: &from, limit: 1000 };
        let page = store.list_versions("b", &query, after).unwrap();
        for (key, version, _) in page.versions {
            let removal = Removal { version: version.id(), now: T0, bypass: false };
            store.delete_version("b", &key, removal, Condition::Always).unwrap();
            removed_count += 1;
        }
        let Some((key, version)) = page.next else { break };
        (from, after) = (key, version);
    }
    assert_eq!(removed_count, COUNT);
    assert_eq!(store.holding().bytes, 0);
}

#[test]
fn a_mark_of_deletion_and_tags_need_room_too() {
    let store = store(600);
    store.set_versioning("b", Versioning::Enabled).unwrap();
    put(&store, "k", b"0123456789").unwrap();
    let tags = |len: usize| vec![("t".to_owned(), "v".repeat(len))];
    store.set_tags("b", "k", None, tags(200)).unwrap();
    let full = StoreError::Full { capacity_bytes: 600 };
    assert_eq!(store.set_tags("b", "k", None, tags(400)).unwrap_err(), full);
    assert_eq!(store.delete("b", "k", Condition::Always, T0).unwrap_err(), full);
    store.set_tags("b", "k", None, Vec::new()).unwrap();
    assert_eq!(store.holding().bytes, overhead_bytes("k") + 10);
    assert!(matches!(delete(&store, "k"), Deleted::Marked(_)));
}

#[test]
fn of_many_writers_on_one_condition_exactly_one_wins() {
    let store = store(u64::MAX);
    for round in 0..50 {
        let key = format!("k{}", round % 2);
        let held = store.get("b", &key).ok().map(|object| object.tag.to_string());
        let condition = held.as_deref().map_or(Condition::Absent, Condition::Is);
        let write = |writer: u8| {
            let content = Bytes::from(vec![writer, round]);
            let room = store.reserve(&key, 2, None).unwrap();
            let (tag, version) = (Tag::of(&content), VersionId::NULL);
            let (attributes, part_ends, content) = (None, None, content.into());
            let object = Object { content, tag, modified: T0, attributes, part_ends, version };
            store.put("b", &key, object, condition, room).is_ok()
        };
        let won = thread::scope(|scope| {
            let write = &write;
            let writers: Vec<_> = (0..8).map(|writer| scope.spawn(move || write(writer))).collect();
            writers.into_iter().filter_map(|writer| writer.join().unwrap().then_some(())).count()
        });
        assert_eq!(won, 1, "round {round}");
    }
}

#[test]
fn what_is_retained_or_held_stays_until_it_may_go() {
    let store = Store::new(u64::MAX, false);
    store.create_bucket("b", T0, true).unwrap();
    put(&store, "k", b"kept").unwrap();
    let version = store.get("b", "k").unwrap().version;
    let until = |mode, ns| Some(Retention { mode, until: WallTime::from_unix_ns(ns) });
    let retain = |retention, bypass| store.set_retention("b", "k", None, retention, (T0, bypass));
    let remove = |ns, bypass| {
        let removal = Removal { version, now: WallTime::from_unix_ns(ns), bypass };
        store.delete_version("b", "k", removal, Condition::Always)
    };
    let locked = Err(StoreError::Locked);
    retain(until(RetentionMode::Governance, 2_000), false).unwrap();
    assert_eq!((remove(1_999, false), retain(None, false)), (locked, Err(StoreError::Locked)));
    retain(None, true).unwrap();
    retain(until(RetentionMode::Compliance, 2_000), false).unwrap();
    assert_eq!((remove(1_999, true), retain(None, true)), (locked, Err(StoreError::Locked)));
    retain(until(RetentionMode::Compliance, 3_000), false).unwrap();
    store.set_legal_hold("b", "k", None, true).unwrap();
    assert_eq!(remove(3_001, true), locked);
    store.set_legal_hold("b", "k", None, false).unwrap();
    assert_eq!((remove(2_999, false), remove(3_001, false)), (locked, Ok(false)));
    let suspend = store.set_versioning("b", Versioning::Suspended);
    assert_eq!(suspend, Err(StoreError::LockNeedsVersions));
    assert_eq!(store.holding().bytes, 0);
}
