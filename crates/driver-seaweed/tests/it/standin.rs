//! The driver against a stand-in for SeaweedFS whose every deed is known.

mod faults;
mod lies;
mod masters;

use plimsoll_driver::{
    Admin as _, ByteRange, Completion, CreatedRoot, Driver as _, Operation, RootState,
};
use plimsoll_driver_seaweed::{AssignBy, FileId, SeaweedConfig, SigningKeys, UploadBy};
use plimsoll_http::{AllowedHosts, NamedHosts, TlsConfig, TlsOptions};
use plimsoll_model::{Ability, ErrorClass, OpKind};
use plimsoll_oracle::Script;
use plimsoll_seaweed_stand_in::{SeaweedStandIn, Site, StandInConfig};

use crate::support::{Client, Numbered};

const COLLECTION: &str = "mine";

/// Returns what a script says that serves in a microsecond but for `rest`.
fn script(rest: &str) -> Option<Script> {
    let head = "schema: plimsoll.oracle/1\n";
    let service = match rest.contains("service:") && rest.starts_with("service:") {
        true => "",
        false => "service: {time: {constant: 1us}}\n",
    };
    Some(Script::from_yaml(&format!("{head}{service}{rest}\n")).unwrap())
}

fn start(config: StandInConfig) -> SeaweedStandIn {
    SeaweedStandIn::start(config).unwrap()
}

/// Starts one master and one volume server that a script rules.
pub(crate) fn scripted(rest: &str) -> SeaweedStandIn {
    start(StandInConfig { script: script(rest), seed: 7, ..Default::default() })
}

fn config_of(stand_in: &SeaweedStandIn) -> SeaweedConfig {
    let masters = stand_in.masters().iter().map(|master| master.parse().unwrap()).collect();
    SeaweedConfig { creates_collection: true, ..SeaweedConfig::new(masters, COLLECTION) }
}

pub(crate) fn connect(
    stand_in: &SeaweedStandIn,
    change: impl FnOnce(&mut SeaweedConfig),
) -> Client {
    let mut config = config_of(stand_in);
    change(&mut config);
    Client::open(config)
}

fn class_of(done: &Completion) -> ErrorClass {
    done.result.as_ref().map_or_else(|error| error.class, |()| ErrorClass::Ok)
}

/// Tries to write a file once.
fn try_put(client: &mut Client, file: u64, size: u64) -> Completion {
    let content = &mut Numbered { file, size };
    client.run(Operation::Put { key: "", content })
}

fn delete(client: &mut Client, name: &str) -> Completion {
    client.run(Operation::DeleteVersion { key: "", version: name })
}

const WAYS: [(AssignBy, UploadBy, u32); 6] = [
    (AssignBy::Call, UploadBy::Form, 1),
    (AssignBy::Call, UploadBy::Put, 3),
    (AssignBy::Stream, UploadBy::Form, 3),
    (AssignBy::Stream, UploadBy::Put, 1),
    (AssignBy::Http, UploadBy::Form, 1),
    (AssignBy::Http, UploadBy::Put, 4),
];

#[test]
fn files_are_written_read_and_removed_by_every_way_and_the_ledger_agrees() {
    for (assign_by, upload_by, assign_count) in WAYS {
        let stand_in = start(StandInConfig::default());
        let mut client = connect(&stand_in, |config| {
            (config.assign_by, config.upload_by) = (assign_by, upload_by);
            config.assign_count = assign_count;
        });
        let sizes = [(1, 0), (2, 1), (3, 1_024), (4, 1 << 20), (5, 300_001)];
        let mut names = Vec::new();
        for (file, size) in sizes {
            let name = client.put(file, size);
            let (done, content) = client.get(&name, None);
            assert_eq!(done.result, Ok(()), "{assign_by:?} {upload_by:?} {size}");
            assert_eq!((done.bytes, done.object_size), (size, Some(size)));
            assert!(content == Numbered { file, size }.bytes(0, size), "{name}");
            let stat = client.run(Operation::Stat { key: "", version: Some(&name) });
            assert_eq!((stat.result, stat.object_size), (Ok(()), Some(size)));
            assert_eq!(stand_in.files(COLLECTION)[&*name], content);
            names.push(name);
        }
        let range = ByteRange { offset: 250, len: 700 };
        let (done, content) = client.get(&names[4], Some(range));
        assert_eq!((done.result, done.object_size), (Ok(()), Some(300_001)));
        assert!(content == Numbered { file: 5, size: 300_001 }.bytes(250, 700));
        let beyond = ByteRange { offset: 1_000, len: 100 };
        assert_eq!(class_of(&client.get(&names[2], Some(beyond)).0), ErrorClass::Truncated);
        for name in &names {
            for _ in 0..2 {
                assert_eq!(class_of(&delete(&mut client, name)), ErrorClass::Ok);
            }
            assert_eq!(class_of(&client.get(name, None).0), ErrorClass::NotFound);
        }
        assert!(stand_in.files(COLLECTION).is_empty());
        let (ledger, all) = (stand_in.ledger(), sizes.iter().map(|(_, size)| size).sum::<u64>());
        let operations = &ledger.operations;
        assert_eq!(operations.count(OpKind::Put, ErrorClass::Ok), 5);
        assert_eq!(operations.content_bytes(OpKind::Put), all);
        assert_eq!(operations.count(OpKind::Stat, ErrorClass::Ok), 5);
        assert_eq!(operations.count(OpKind::Delete, ErrorClass::Ok), 10);
        assert_eq!(operations.count(OpKind::Get, ErrorClass::NotFound), 5);
        assert_eq!((ledger.copies_stored_count(), ledger.copies_removed_count()), (5, 5));
        assert_eq!(ledger.ids_count() % u64::from(assign_count), 0);
        assert!(ledger.ids_count() < 5 + u64::from(assign_count), "{}", ledger.ids_count());
    }
}

#[test]
fn no_server_is_connected_to_that_is_not_allowed() {
    let stand_in = start(StandInConfig::default());
    let open = |hosts: &str| {
        let allowed = AllowedHosts::only(NamedHosts::parse(hosts).unwrap(), "the list");
        Client::try_open(SeaweedConfig { allowed, ..config_of(&stand_in) })
    };
    let refused = |hosts: &str| open(hosts).err().unwrap().message;
    let mut client = open("127.0.0.1").unwrap();
    let name = client.put(1, 100);
    assert_eq!(client.get(&name, None).0.result, Ok(()));
    let endpoints = client.driver.endpoints();
    let [master, servers @ .., _later] = &endpoints[..] else { panic!("{endpoints:?}") };
    let none = refused("127.0.0.2");
    assert!(none.contains(&format!("does not allow load on {master} (the list)")), "{none}");
    // The servers that a master names are as little allowed by that as those that it names later.
    let unnamed = refused(master);
    assert!(unnamed.contains(&format!("does not allow load on {}", servers[0])), "{unnamed}");
    // Nor is whatever port it says is its port of gRPC.
    let mut client = open(&format!("{master},{}", servers.join(","))).unwrap();
    let done = try_put(&mut client, 2, 100);
    assert_eq!(class_of(&done), ErrorClass::Connect);
    assert!(done.result.unwrap_err().message.contains("does not allow load on 127.0.0.1:"));
}

#[test]
fn a_collection_is_created_only_as_it_was_asked_for() {
    let stand_in = start(StandInConfig::default());
    let opened = |creates_collection, drop_collection| {
        let config = SeaweedConfig { creates_collection, drop_collection, ..config_of(&stand_in) };
        let client = Client::open(config);
        let admin = client.driver.admin(&client.clock, None);
        (client, admin)
    };
    let (client, mut admin) = opened(false, false);
    for ready in [
        client.runtime.block_on(admin.ensure_root()).map(drop),
        client.runtime.block_on(admin.make_ready(&[Ability::Put], "")).map(drop),
    ] {
        let refused = ready.unwrap_err();
        assert_eq!((refused.class, refused.status), (ErrorClass::NotFound, Some(404)));
        let words = "collection `mine` does not exist; name one that does, or add `create_bucket`";
        assert_eq!(refused.message, words);
    }
    // Nothing was made by the looks at it.
    let (client, mut admin) = opened(true, false);
    assert_eq!(client.runtime.block_on(admin.ensure_root()), Ok(RootState::Created));
    assert!(admin.has_created());
    let left = client.runtime.block_on(admin.remove_created()).unwrap();
    assert!(matches!(left, Some(CreatedRoot::Stays(_))), "{left:?}");
    let (client, mut admin) = opened(false, true);
    assert_eq!(client.runtime.block_on(admin.ensure_root()), Ok(RootState::Existed));
    assert_eq!(client.runtime.block_on(admin.remove_created()), Ok(None));
}

#[test]
fn masters_that_are_to_speak_tls_are_not_asked_without_it() {
    let stand_in = start(StandInConfig::default());
    let tls = Some(TlsConfig::load(&TlsOptions::default()).unwrap());
    let open = |masters_are_plain| {
        let config = SeaweedConfig { tls: tls.clone(), masters_are_plain, ..config_of(&stand_in) };
        Client::try_open(config)
    };
    let refused = open(false).err().unwrap();
    assert_eq!(refused.class, ErrorClass::Connect, "{refused}");
    assert!(open(true).is_ok());
}

#[test]
fn tokens_are_asked_for_or_signed() {
    for knows_keys in [false, true] {
        for (assign_by, upload_by, assign_count) in WAYS {
            let key = |text: &str| Some(text.as_bytes().to_vec());
            let stand_in = start(StandInConfig {
                write_key: key("write"),
                read_key: key("read"),
                ..Default::default()
            });
            let mut client = connect(&stand_in, |config| {
                (config.assign_by, config.upload_by) = (assign_by, upload_by);
                config.assign_count = assign_count;
                if knows_keys {
                    config.keys = SigningKeys { write: key("write"), read: key("read") };
                }
            });
            let names: Vec<_> = (0..5).map(|file| client.put(file, 100)).collect();
            for name in &names {
                assert_eq!(class_of(&client.get(name, None).0), ErrorClass::Ok, "{assign_by:?}");
                let stat = client.run(Operation::Stat { key: "", version: Some(name) });
                assert_eq!(class_of(&stat), ErrorClass::Ok);
            }
            for name in &names {
                assert_eq!(class_of(&delete(&mut client, name)), ErrorClass::Ok);
            }
            assert!(stand_in.files(COLLECTION).is_empty());
            assert_eq!(stand_in.ledger().operations.class_count(ErrorClass::Denied), 0);
            // One lookup for each read and each delete, where the driver cannot sign by itself.
            assert!(knows_keys || stand_in.ledger().lookups_count() >= 15);
        }
    }
}

#[test]
fn a_wrong_key_is_denied() {
    let stand_in = start(StandInConfig { read_key: Some(b"read".to_vec()), ..Default::default() });
    let wrong = Some(b"another".to_vec());
    let mut client = connect(&stand_in, |config| config.keys.read = wrong);
    let name = client.put(1, 10);
    assert_eq!(class_of(&client.get(&name, None).0), ErrorClass::Denied);
    assert_eq!(stand_in.ledger().operations.count(OpKind::Get, ErrorClass::Denied), 1);
}

#[test]
fn copies_are_written_read_and_removed_on_all_their_servers() {
    let stand_in =
        start(StandInConfig { volume_servers: vec![Site::default(); 3], ..Default::default() });
    let mut client = connect(&stand_in, |config| config.replication = "001".to_owned());
    assert_eq!(client.driver.endpoints().len(), 1 + 3 + 1);
    let names: Vec<String> = (0..20).map(|file| client.put(file, 64).into()).collect();
    assert!(stand_in.copies(COLLECTION).values().all(|copies| *copies == 2));
    for name in names.iter().chain(&names) {
        assert_eq!(class_of(&client.get(name, None).0), ErrorClass::Ok);
    }
    assert_eq!(class_of(&delete(&mut client, &names[0])), ErrorClass::Ok);
    assert_eq!(stand_in.copies(COLLECTION).len(), 19);
    // A call to each server that has some of them.
    let done = client.run(Operation::Delete { keys: &names[1..11] });
    assert_eq!((class_of(&done), done.objects_count), (ErrorClass::Ok, 10));
    assert_eq!(stand_in.copies(COLLECTION).len(), 9);
    assert!(stand_in.copies(COLLECTION).values().all(|copies| *copies == 2));
    let ledger = stand_in.ledger();
    assert_eq!((ledger.copies_stored_count(), ledger.copies_removed_count()), (40, 22));
}

#[test]
fn files_of_others_stay() {
    let stand_in = start(StandInConfig::default());
    let theirs: Vec<String> =
        (0..5).map(|file| stand_in.put_file("theirs", vec![file; 10]).unwrap()).collect();
    let in_mine = stand_in.put_file(COLLECTION, "of another client").unwrap();
    let mut client = connect(&stand_in, |_| {});
    let mut names: Vec<String> = (0..30).map(|file| client.put(file, 64).into()).collect();
    // What is not there any more is gone.
    for _ in 0..2 {
        let done = client.run(Operation::Delete { keys: &names });
        assert_eq!((class_of(&done), done.objects_count), (ErrorClass::Ok, 30));
    }
    // On volumes that no server has nothing is removed, of one file as of many.
    names.push("999999,01637037d6".to_owned());
    let done = client.run(Operation::Delete { keys: &names });
    assert_eq!((class_of(&done), done.objects_count), (ErrorClass::NotFound, 30));
    // A guessed cookie removes nothing.
    let id: FileId = theirs[0].parse().unwrap();
    let guess = FileId { cookie: id.cookie ^ 1, ..id }.to_string();
    let keys = [guess.clone(), guess.clone()];
    assert_eq!(class_of(&delete(&mut client, &guess)), ErrorClass::Client);
    let done = client.run(Operation::Delete { keys: &keys });
    assert_eq!((class_of(&done), done.objects_count), (ErrorClass::Client, 0));
    assert_eq!(stand_in.files("theirs").len(), 5);
    assert_eq!(stand_in.files(COLLECTION).keys().collect::<Vec<_>>(), [&in_mine]);
    let (done, content) = client.get(&in_mine, None);
    assert_eq!((class_of(&done), &content[..]), (ErrorClass::Ok, &b"of another client"[..]));
    // What was there beforehand is in no ledger.
    assert_eq!(stand_in.ledger().copies_stored_count(), 30);
}
