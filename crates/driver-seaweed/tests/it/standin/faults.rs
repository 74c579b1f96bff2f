//! Failures of volume servers: the class that the driver gives them.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_driver::{ByteRange, Operation, Session as _, Settled};
use plimsoll_model::{ErrorClass, Moment, OpKind};
use plimsoll_seaweed_stand_in::{Site, StandInConfig};

use super::{class_of, connect, delete, scripted, start, try_put};
use crate::support::{Client, Numbered};

#[test]
fn each_failure_has_its_class() {
    for (fault, class) in [
        ("slow_down: 1", ErrorClass::Throttled),
        ("status: {429: 1}", ErrorClass::Throttled),
        ("status: {500: 1}", ErrorClass::Server),
        ("status: {503: 1}", ErrorClass::Server),
        ("status: {401: 1}", ErrorClass::Denied),
        ("status: {400: 1}", ErrorClass::Client),
        ("status: {409: 1}", ErrorClass::Precondition),
        ("reset: 1", ErrorClass::Reset),
    ] {
        let stand_in = scripted(&format!("grace_count: 2\nfaults: {{all: {{{fault}}}}}"));
        let mut client = connect(&stand_in, |_| {});
        let names = [1, 2].map(|file| String::from(client.put(file, 100)));
        let put = try_put(&mut client, 3, 100);
        assert_eq!((class_of(&put), put.objects_count), (class, 0), "{fault}");
        let get = client.get(&names[0], None).0;
        assert_eq!((class_of(&get), get.bytes), (class, 0), "{fault}");
        let stat = client.run(Operation::Stat { key: "", version: Some(&names[0]) });
        assert_eq!(class_of(&stat), class, "{fault}");
        assert_eq!(class_of(&delete(&mut client, &names[0])), class, "{fault}");
        let done = client.run(Operation::Delete { keys: &names });
        assert_eq!((class_of(&done), done.objects_count), (class, 0), "{fault}");
        let ledger = stand_in.ledger();
        assert_eq!(ledger.operations.class_count(class), 5, "{fault}");
        assert_eq!(ledger.operations.count(OpKind::Delete, class), 2, "{fault}");
        assert_eq!(stand_in.files(super::COLLECTION).len(), 2);
    }
}

#[test]
fn ids_assigned_with_one_whose_write_failed_are_not_used() {
    let stand_in = scripted("grace_count: 1\nfaults: {put: {status: {500: 1}}}");
    let mut client = connect(&stand_in, |config| config.assign_count = 10);
    client.put(1, 100);
    for assigned in [10, 20] {
        assert_eq!(class_of(&try_put(&mut client, 2, 100)), ErrorClass::Server);
        assert_eq!(stand_in.ledger().ids_count(), assigned);
    }
}

#[test]
fn answers_that_are_cut_short_or_too_long_or_no_answers_are_told_apart() {
    let range = Some(ByteRange { offset: 10, len: 500 });
    for (fault, range, class) in [
        ("half_body", None, ErrorClass::Truncated),
        ("half_body", range, ErrorClass::Truncated),
        ("error_in_success", None, ErrorClass::Protocol),
        ("error_in_success", range, ErrorClass::Protocol),
        ("wrong_length", range, ErrorClass::Truncated),
    ] {
        let stand_in = scripted(&format!("faults: {{get: {{{fault}: 1}}}}"));
        let mut client = connect(&stand_in, |_| {});
        let name = client.put(1, 1_000);
        let done = client.get(&name, range).0;
        assert_eq!((class_of(&done), done.objects_count), (class, 0), "{fault} {range:?}");
        assert_eq!(stand_in.ledger().operations.count(OpKind::Get, class), 1, "{fault}");
    }
    // A file that is longer, with a checksum that fits: only who knows its length finds out.
    let stand_in = scripted("faults: {get: {wrong_length: 1}}");
    let mut client = connect(&stand_in, |_| {});
    let name = client.put(1, 1_000);
    let (done, content) = client.get(&name, None);
    assert_eq!(class_of(&done), ErrorClass::Ok);
    assert!(content.len() > 1_000 && done.bytes == content.len() as u64);
    assert_eq!(stand_in.ledger().operations.count(OpKind::Get, ErrorClass::Truncated), 1);
}

#[test]
fn of_many_operations_each_is_counted_once_and_in_its_class() {
    let stand_in = start(StandInConfig {
        volume_servers: vec![Site::default(); 2],
        script: super::script(
            "faults:
  all: {slow_down: 0.02, status: {500: 0.02, 503: 0.02, 401: 0.02}, reset: 0.02}
  get: {status: {404: 0.02}, half_body: 0.02, error_in_success: 0.02}
lies: {flipped: 0.02, zeroed: 0.02, wrong_tag: 0.02, lost_copy: 0.02, lost_write: 0.02}
seaweed: {assign: {full: 0.02, failed: 0.02}}",
        ),
        seed: 3,
        ..Default::default()
    });
    let mut client = connect(&stand_in, |config| config.replication = "001".to_owned());
    let mut seen: BTreeMap<(OpKind, ErrorClass), u64> = BTreeMap::new();
    let mut names: Vec<Box<str>> = Vec::new();
    for number in 0..2_000 {
        let name = names.get(number % names.len().max(1)).cloned();
        let (kind, done) = match (number % 4, &name) {
            (1, Some(name)) => (OpKind::Get, client.get(name, None).0),
            (2, Some(name)) => {
                let stat = Operation::Stat { key: "", version: Some(name) };
                (OpKind::Stat, client.run(stat))
            }
            (3, Some(name)) if number % 16 == 3 => (OpKind::Delete, delete(&mut client, name)),
            _ => (OpKind::Put, try_put(&mut client, number as u64, 300)),
        };
        *seen.entry((kind, class_of(&done))).or_default() += 1;
        names.extend(done.server_name);
        // What nobody knows of is asked to be removed, which is no operation of a run; it is left.
        assert!(done.end > Moment::EPOCH);
    }
    let ledger = stand_in.ledger().as_seen();
    for kind in [OpKind::Put, OpKind::Get, OpKind::Stat, OpKind::Delete] {
        for class in ErrorClass::ALL {
            let count = seen.get(&(kind, class)).copied().unwrap_or(0);
            assert_eq!(count, ledger.count(kind, class), "{kind:?} {class:?}");
        }
    }
    assert!(seen.len() > 20, "{seen:?}");
}

#[test]
fn what_is_never_answered_is_given_up_and_removed() {
    let stand_in = scripted("faults: {put: {silence: 1}}");
    let mut client = connect(&stand_in, |_| {});
    let mut content = Numbered { file: 1, size: 100 };
    let put = Operation::Put { key: "", content: &mut content };
    let Client { runtime, session, .. } = &mut client;
    runtime.block_on(async {
        let mut put = std::pin::pin!(session.execute(None, put));
        // Until it has arrived, after which nothing more comes.
        while stand_in.ledger().operations.operations_count(OpKind::Put) == 0 {
            tokio::select! {
                biased;
                done = &mut put => panic!("nobody answered {:?}", done.result),
                () = tokio::task::yield_now() => {}
            }
        }
    });
    assert_eq!(client.settle(), Settled { given_up_count: 1, ..Settled::default() });
    let operations = stand_in.ledger().operations;
    assert_eq!(operations.count(OpKind::Put, ErrorClass::Timeout), 1);
    assert_eq!(operations.count(OpKind::Delete, ErrorClass::Ok), 1);
}

#[test]
fn an_operation_takes_no_less_than_the_store_did() {
    let stand_in = scripted(
        "service: {time: {constant: 3ms}}
kinds: {get: {time: {constant: 8ms}, first_byte: {share: 0.5}}}
seaweed: {assign: {time: {constant: 5ms}}}",
    );
    let mut client = connect(&stand_in, |_| {});
    let took = |client: &mut Client, kind| {
        let before = client.clock.now();
        let name = match kind {
            OpKind::Put => try_put(client, 1, 100).server_name,
            _ => None,
        };
        (client.clock.now().since(before), name)
    };
    let (put, name) = took(&mut client, OpKind::Put);
    assert!(put >= Duration::from_millis(8), "{put:?}");
    let before = client.clock.now();
    let (get, _) = client.get(&name.unwrap(), None);
    let first = get.first_byte.unwrap().since(before);
    assert!(first >= Duration::from_millis(4), "{first:?}");
    assert!(get.end.since(before) >= Duration::from_millis(8));
}

#[test]
fn a_volume_server_that_is_away_comes_back_with_what_it_held() {
    let stand_in = start(StandInConfig::default());
    let mut client = connect(&stand_in, |_| {});
    let name = client.put(1, 100);
    stand_in.leave(0, false);
    for _ in 0..2 {
        // The first may find its connection closed.
        let class = class_of(&client.get(&name, None).0);
        assert!(matches!(class, ErrorClass::Connect | ErrorClass::Reset), "{class:?}");
    }
    assert_eq!(class_of(&client.get(&name, None).0), ErrorClass::Connect);
    // Nobody noticed, so files are still to be written there.
    let put = try_put(&mut client, 2, 100);
    assert_eq!((class_of(&put), put.server_name), (ErrorClass::Connect, None));
    stand_in.come_back(0);
    assert_eq!(class_of(&client.get(&name, None).0), ErrorClass::Ok);
    assert_eq!(client.settle().left_count, 0);
    // Masters that notice name it no more, and there is no other.
    stand_in.leave(0, true);
    let put = try_put(&mut client, 3, 100);
    assert_eq!(class_of(&put), ErrorClass::Growing);
    stand_in.come_back(0);
    client.put(4, 100);
    assert_eq!(stand_in.files(super::COLLECTION).len(), 2);
}

#[test]
fn a_write_whose_copies_cannot_be_made_fails() {
    let stand_in =
        start(StandInConfig { volume_servers: vec![Site::default(); 2], ..Default::default() });
    let mut client = connect(&stand_in, |config| config.replication = "001".to_owned());
    client.put(1, 100);
    stand_in.leave(1, false);
    let mut classes: Vec<ErrorClass> =
        (0..20).map(|file| class_of(&try_put(&mut client, file, 10))).collect();
    classes.sort_unstable();
    classes.dedup();
    // Those that are sent to the server that is there are refused by it.
    assert!(classes.contains(&ErrorClass::Server), "{classes:?}");
    assert!(!classes.contains(&ErrorClass::Ok), "{classes:?}");
    assert_eq!(stand_in.files(super::COLLECTION).len(), 1);
}
