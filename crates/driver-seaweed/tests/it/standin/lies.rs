//! Lies of volume servers: where the driver finds them.

use plimsoll_driver::{ByteRange, Operation};
use plimsoll_model::{ErrorClass, OpKind};
use plimsoll_oracle::Lie;
use plimsoll_seaweed_stand_in::{Site, StandInConfig};

use super::{class_of, connect, delete, script, scripted, start, try_put};

#[test]
fn a_file_that_was_acknowledged_and_not_stored_is_missed_at_reading() {
    let stand_in = scripted("lies: {lost_write: 1}");
    let mut client = connect(&stand_in, |_| {});
    let done = try_put(&mut client, 1, 100);
    assert_eq!((class_of(&done), done.objects_count), (ErrorClass::Ok, 1));
    let name = done.server_name.unwrap();
    assert_eq!(class_of(&client.get(&name, None).0), ErrorClass::NotFound);
    let ledger = stand_in.ledger();
    assert_eq!(ledger.operations.lie_count(Lie::LostWrite), 1);
    assert_eq!(ledger.operations.count(OpKind::Put, ErrorClass::Ok), 1);
    assert_eq!(ledger.operations.count(OpKind::Get, ErrorClass::NotFound), 1);
    assert_eq!(ledger.copies_stored_count(), 0);
}

#[test]
fn a_delete_that_was_not_done_leaves_the_file() {
    let stand_in = scripted("grace_count: 2\nlies: {lost_write: 1}");
    let mut client = connect(&stand_in, |_| {});
    let names = [1, 2].map(|file| String::from(client.put(file, 100)));
    assert_eq!(class_of(&delete(&mut client, &names[0])), ErrorClass::Ok);
    let done = client.run(Operation::Delete { keys: &names });
    assert_eq!((class_of(&done), done.objects_count), (ErrorClass::Ok, 2));
    assert_eq!(stand_in.files(super::COLLECTION).len(), 2);
    assert_eq!(stand_in.ledger().operations.lie_count(Lie::LostWrite), 2);
}

#[test]
fn a_wrong_checksum_is_found_at_the_upload() {
    let stand_in = scripted("lies: {wrong_tag: 1}");
    for (assign_by, upload_by, assign_count) in super::WAYS {
        let mut client = connect(&stand_in, |config| {
            (config.assign_by, config.upload_by) = (assign_by, upload_by);
            config.assign_count = assign_count;
        });
        let done = try_put(&mut client, 1, 100);
        assert_eq!((class_of(&done), done.objects_count), (ErrorClass::Corrupt, 0));
        // It is there all the same, and is named so that it can be removed.
        let name = done.server_name.unwrap();
        assert_eq!(class_of(&client.get(&name, None).0), ErrorClass::Ok);
        assert_eq!(class_of(&delete(&mut client, &name)), ErrorClass::Ok);
    }
    let ledger = stand_in.ledger();
    assert_eq!(ledger.operations.lie_count(Lie::WrongTag), 6);
    assert_eq!(ledger.operations.count(OpKind::Put, ErrorClass::Corrupt), 6);
    assert!(stand_in.files(super::COLLECTION).is_empty());
}

#[test]
fn a_lost_copy_is_missed_by_who_reads_it() {
    let stand_in = start(StandInConfig {
        volume_servers: vec![Site::default(); 2],
        script: script("lies: {lost_copy: 1}"),
        ..Default::default()
    });
    let mut client = connect(&stand_in, |config| config.replication = "001".to_owned());
    let names: Vec<_> = (0..10).map(|file| client.put(file, 100)).collect();
    assert!(stand_in.copies(super::COLLECTION).values().all(|copies| *copies == 1));
    for name in &names {
        // Servers are read in turn.
        let mut classes = [0, 0].map(|_| class_of(&client.get(name, None).0));
        classes.sort_unstable();
        assert_eq!(classes, [ErrorClass::Ok, ErrorClass::NotFound]);
    }
    let ledger = stand_in.ledger();
    assert_eq!(ledger.operations.lie_count(Lie::LostCopy), 10);
    assert_eq!(ledger.operations.count(OpKind::Get, ErrorClass::NotFound), 10);
    assert_eq!(ledger.copies_stored_count(), 10);
    // One copy is no copy to be lost.
    let mut single = connect(&stand_in, |_| {});
    single.put(1, 10);
    assert_eq!(stand_in.ledger().operations.lie_count(Lie::LostCopy), 10);
}

#[test]
fn wrong_bytes_are_found_by_the_checksum_of_what_was_stored() {
    let lies = [Lie::OtherKey, Lie::Shifted, Lie::Zeroed, Lie::Torn, Lie::Flipped];
    for lie in lies {
        let stand_in = scripted(&format!("lies: {{{}: 1}}", lie.name()));
        let mut client = connect(&stand_in, |_| {});
        let names: Vec<_> = (1..4).map(|file| client.put(file, 1_000)).collect();
        for name in &names {
            let (done, content) = client.get(name, None);
            assert_eq!((class_of(&done), content.len()), (ErrorClass::Corrupt, 1_000));
            assert_eq!(done.objects_count, 0, "{}", lie.name());
        }
        // Of a range no checksum is stated: the content tells, and only its reader knows it.
        let range = ByteRange { offset: 100, len: 50 };
        let (done, content) = client.get(&names[0], Some(range));
        assert_eq!((class_of(&done), done.is_unchecked), (ErrorClass::Ok, true));
        assert!(content != stand_in.files(super::COLLECTION)[&*names[0]][100..150]);
        let ledger = stand_in.ledger();
        assert_eq!(ledger.operations.lie_count(lie), 4);
        assert_eq!(ledger.operations.count(OpKind::Get, ErrorClass::Corrupt), 4);
    }
}

#[test]
fn stale_reads_are_those_of_before_the_last_change() {
    let stand_in = scripted("lies: {stale_read: 1}");
    let mut client = connect(&stand_in, |_| {});
    let name = client.put(1, 100);
    assert_eq!(class_of(&client.get(&name, None).0), ErrorClass::NotFound);
    let stat = client.run(Operation::Stat { key: "", version: Some(&name) });
    assert_eq!(class_of(&stat), ErrorClass::NotFound);
    assert_eq!(class_of(&delete(&mut client, &name)), ErrorClass::Ok);
    let (done, content) = client.get(&name, None);
    assert_eq!((class_of(&done), content.len()), (ErrorClass::Ok, 100));
    let operations = stand_in.ledger().operations;
    assert_eq!(operations.lie_count(Lie::StaleRead), 3);
    assert_eq!(operations.count(OpKind::Get, ErrorClass::NotFound), 1);
}
