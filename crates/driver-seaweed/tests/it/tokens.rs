//! A SeaweedFS that wants tokens, asked with the keys of tokens and without.

use std::time::Duration;

use plimsoll_driver::{ByteRange, Operation};
use plimsoll_driver_seaweed::{AssignBy, FileId, SeaweedConfig, SigningKeys};
use plimsoll_model::ErrorClass;
use plimsoll_testkit::{LiveKind, live};

use crate::support::{Client, Numbered};

/// Longer than the token of a write is valid.
const TOKEN_LIFE: Duration = Duration::from_millis(2_100);

/// Returns the keys of the live server.
fn keys() -> Option<SigningKeys> {
    let keys = live(LiveKind::SeaweedJwt)?.token_keys.unwrap();
    let bytes = |key: String| Some(key.into_bytes());
    Some(SigningKeys { write: bytes(keys.write), read: bytes(keys.read) })
}

#[test]
fn every_operation_has_its_token_whoever_signs_it() {
    let Some(given) = keys() else { return };
    for assign_by in [AssignBy::Call, AssignBy::Stream, AssignBy::Http] {
        for (keys, assign_count) in [(given.clone(), 1), (SigningKeys::default(), 50)] {
            let change = |config: &mut SeaweedConfig| {
                (config.assign_by, config.assign_count) = (assign_by, assign_count);
                config.keys = keys;
            };
            let Some(mut cluster) = Client::live(LiveKind::SeaweedJwt, "tokens", change) else {
                return;
            };
            let names: Vec<String> = (0..8).map(|file| cluster.put(file, 2_000).into()).collect();
            for (file, name) in names.iter().enumerate() {
                let expected = Numbered { file: file as u64, size: 2_000 };
                let (done, content) = cluster.get(name, None);
                assert_eq!(done.result, Ok(()), "{assign_by:?} {assign_count}");
                assert!(content == expected.bytes(0, 2_000));
                let range = ByteRange { offset: 100, len: 50 };
                let (done, content) = cluster.get(name, Some(range));
                assert_eq!(done.result, Ok(()));
                assert!(content == expected.bytes(100, 50));
                let done = cluster.stat(name);
                assert_eq!((done.result, done.object_size), (Ok(()), Some(2_000)));
            }
            let (one_by_one, at_once) = names.split_at(4);
            for name in one_by_one {
                assert_eq!(cluster.delete(name).result, Ok(()));
            }
            let done = cluster.run(Operation::Delete { keys: at_once });
            assert_eq!((done.result, done.objects_count), (Ok(()), 4));
            for name in &names {
                let (done, _) = cluster.get(name, None);
                assert_eq!(done.result.unwrap_err().class, ErrorClass::NotFound);
            }
        }
    }
}

#[test]
fn ids_whose_token_has_ended_are_not_used() {
    let many = |config: &mut SeaweedConfig| config.assign_count = 50;
    let Some(mut cluster) = Client::live(LiveKind::SeaweedJwt, "ending", many) else { return };
    let name = cluster.put(0, 100);
    let first: FileId = name.parse().unwrap();
    let second: FileId = cluster.put(1, 100).parse().unwrap();
    assert_eq!(first.plus(1), Some(second), "the ids of one batch");
    let started = cluster.clock.now();
    while cluster.clock.now().since(started) < TOKEN_LIFE {
        assert_eq!(cluster.get(&name, None).0.result, Ok(()));
    }
    let third: FileId = cluster.put(2, 100).parse().unwrap();
    assert_ne!(second.plus(1), Some(third), "its token has ended");
    assert_eq!(cluster.get(&third.to_string(), None).0.result, Ok(()));
}

#[test]
fn wrong_keys_are_denied_in_a_clear_sentence() {
    let Some(given) = keys() else { return };
    let wrong = || Some(b"nobody's".to_vec());
    for keys in [
        SigningKeys { read: wrong(), ..given.clone() },
        SigningKeys { write: wrong(), ..given.clone() },
    ] {
        let (reads_fail, writes_fail) = (keys.read != given.read, keys.write != given.write);
        let change = |config: &mut SeaweedConfig| config.keys = keys;
        let Some(mut cluster) = Client::live(LiveKind::SeaweedJwt, "wrong", change) else {
            return;
        };
        let name = cluster.put(0, 100);
        for (result, fails) in [
            (cluster.get(&name, None).0.result, reads_fail),
            (cluster.stat(&name).result, reads_fail),
            (cluster.delete(&name).result, writes_fail),
        ] {
            let Err(error) = result else {
                assert!(!fails);
                continue;
            };
            assert!(fails, "{error}");
            assert_eq!((error.class, error.status), (ErrorClass::Denied, Some(401)));
            let start = "the server rejects the token: its keys are jwt.signing (writes)";
            assert!(error.message.starts_with(start), "{error}");
        }
    }
}
