//! What every driver does, and what only a real Swift can show.

use std::sync::atomic::Ordering;

use plimsoll_driver::{
    Admin as _, Driver as _, FoundObject, Lack, RootState, Session as _, conformance,
};
use plimsoll_driver_swift::{SignIn, SwiftConfig};
use plimsoll_model::{Ability, ErrorClass};
use plimsoll_testkit::LiveKind;

use crate::support::{Client, Numbered, address, config, hidden};

#[test]
fn swift_is_driven_as_every_driver_whatever_way_content_goes() {
    for (container, chunked, checks_md5, segment) in [
        ("conformance", false, false, None),
        ("conformance in chunks", true, true, None),
        ("conformance-segments", false, false, Some(60_000)),
    ] {
        let change = |config: &mut SwiftConfig| {
            (config.chunked, config.checks_md5) = (chunked, checks_md5);
            (config.segment_bytes, config.has_segments) = (segment, segment.is_some());
        };
        let Some(mut client) = Client::live(container, change) else { return };
        client.runtime.block_on(conformance::check(&client.driver, &client.clock, "a run/"));
        // What was written over leaves its segments behind.
        let swept = client.runtime.block_on(client.admin.sweep("a run/")).unwrap();
        assert_eq!(swept > 0, segment.is_some());
        assert_eq!(client.keys(), [""; 0]);
    }
}

#[test]
fn buckets_are_containers() {
    let Some(client) = Client::live("own", |_| {}) else { return };
    for container in ["a", "b"] {
        let mut admin = client.driver.admin(&client.clock, Some(container)).unwrap();
        client.runtime.block_on(admin.ensure_root()).unwrap();
    }
    client.runtime.block_on(conformance::check_buckets(&client.driver, &client.clock));
    let mut session = client.driver.open_sessions(&client.clock, 1).pop().unwrap();
    let stat = plimsoll_driver::Operation::Stat { key: "k", version: None };
    let done = client.runtime.block_on(session.execute(Some("a/b"), stat));
    assert_eq!(done.result.unwrap_err().class, ErrorClass::Client);
}

#[test]
fn content_of_any_length_comes_back_and_its_sum_is_the_servers() {
    for chunked in [false, true] {
        let change = |config: &mut SwiftConfig| {
            (config.chunked, config.checks_md5) = (chunked, true);
        };
        let Some(mut client) = Client::live("lengths", change) else { return };
        for (file, size) in [(1, 0), (2, 1), (3, 65_536), (4, 9_000_001)] {
            let done = client.put("x/y", file, size);
            assert_eq!((done.result, done.bytes, done.objects_count), (Ok(()), size, 1));
            let (done, content) = client.get("x/y", None);
            assert_eq!((done.result, done.object_size), (Ok(()), Some(size)));
            assert!(content == Numbered { file, size }.bytes(0, size), "{size}");
            let done = client.stat("x/y");
            assert_eq!((done.result, done.object_size), (Ok(()), Some(size)));
        }
        assert_eq!(client.delete("x/y").result, Ok(()));
        assert_eq!(client.delete("x/y").result, Ok(()), "what is not there is removed");
        assert_eq!(client.stat("x/y").result.unwrap_err().class, ErrorClass::NotFound);
    }
}

#[test]
fn a_container_is_made_once_marked_listed_and_removed_only_when_empty() {
    let Some(mut config) = config(LiveKind::Swift, "made by a run") else { return };
    config.policy = "gold".to_owned();
    let mut client = Client::open(config.clone()).unwrap();
    let run = |client: &mut Client| client.runtime.block_on(client.admin.remove());
    run(&mut client).unwrap();
    let Client { runtime, admin, .. } = &mut client;
    assert_eq!(runtime.block_on(admin.exists()), Ok(false));
    assert_eq!(runtime.block_on(admin.is_marked()), Ok(None));
    assert_eq!(runtime.block_on(admin.make_bucket()), Ok(RootState::Created));
    assert_eq!(runtime.block_on(admin.is_marked()), Ok(Some(false)));
    assert_eq!(runtime.block_on(admin.mark("run-1")), Ok(()));
    assert_eq!(runtime.block_on(admin.make_bucket()), Ok(RootState::Existed));
    assert_eq!(runtime.block_on(admin.is_marked()), Ok(Some(true)));
    assert_eq!(runtime.block_on(admin.make()), Ok(RootState::Existed));
    assert_eq!(runtime.block_on(admin.ensure_root()), Ok(RootState::Existed));
    assert_eq!(runtime.block_on(admin.made_by()), Ok(Some("run-1".to_owned())));
    let listed = runtime.block_on(admin.containers("made by")).unwrap();
    assert_eq!(listed, ["made by a run"]);
    runtime.block_on(admin.put_mark("m")).unwrap();
    let error = runtime.block_on(admin.remove_bucket()).unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Precondition, Some(409)));
    assert_eq!(error.message, "container `made by a run` is not empty");
    runtime.block_on(admin.remove_mark("m")).unwrap();
    assert_eq!(runtime.block_on(admin.remove_bucket()), Ok(true));
    assert_eq!(runtime.block_on(admin.remove()), Ok(false));
    assert_eq!(runtime.block_on(admin.server_version()).as_deref(), Some("2.38.3"));

    config.policy = "no such policy".to_owned();
    let mut client = Client::open(config).unwrap();
    let error = client.runtime.block_on(client.admin.ensure_root()).unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Client, Some(400)));
    assert!(error.message.contains("policy") && error.message.contains("cannot be made"));
}

#[test]
fn a_sweep_removes_what_lies_below_its_prefix_and_nothing_else() {
    let Some(mut client) = Client::live("swept", |_| {}) else { return };
    for number in 0..40 {
        assert_eq!(client.put(&format!("run/{number}"), number, 3).result, Ok(()));
    }
    for other in ["run", "run.live/m", "runs/1", "other"] {
        assert_eq!(client.put(other, 1, 1).result, Ok(()));
    }
    let found = client.runtime.block_on(client.admin.survey("run", Some(2), false)).unwrap();
    let object = |key: &str| FoundObject { key: key.to_owned(), size: 1 };
    assert_eq!(found, [object("run")], "what lies below a `/` is passed over");
    assert_eq!(client.runtime.block_on(client.admin.sweep("run/")), Ok(40));
    assert_eq!(client.admin.removed_count().load(Ordering::Relaxed), 40);
    assert_eq!(client.keys(), ["other", "run", "run.live/m", "runs/1"]);
    assert_eq!(client.runtime.block_on(client.admin.sweep("run/")), Ok(0));
    let mut nobodys = client.driver.admin(&client.clock, Some("nobody's")).unwrap();
    assert_eq!(client.runtime.block_on(nobodys.sweep("run/")), Ok(0));
}

#[test]
fn a_page_may_not_be_larger_than_the_server_allows() {
    let Some(mut client) = Client::live("pages", |_| {}) else { return };
    let (done, _) = client.list("", 10_001);
    let error = done.result.unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Precondition, Some(412)));
    assert!(error.message.contains("10000"), "{error}");
}

#[test]
fn what_a_server_lacks_is_told() {
    let Some(mut client) = Client::live("needs", |_| {}) else { return };
    let mut ready =
        |needs: &[Ability]| client.runtime.block_on(client.admin.make_ready(needs, "p/")).unwrap();
    let offered = [Ability::Put, Ability::List, Ability::Parts, Ability::Buckets];
    assert_eq!(ready(&offered), None);
    assert!(matches!(ready(&[Ability::Versions]), Some(Lack { need: Ability::Versions, .. })));
}

#[test]
fn tokens_that_expire_are_renewed_and_wrong_keys_are_refused_without_being_shown() {
    let Some(mut config) = config(LiveKind::SwiftShort, "renewed") else { return };
    let mut client = Client::open(config.clone()).unwrap();
    client.runtime.block_on(client.admin.ensure_root()).unwrap();
    assert_eq!(client.put("k", 1, 100_000).result, Ok(()));
    // For longer than a token lives: nothing but the server's clock tells when it has expired.
    let begun = client.clock.now();
    let mut count = 0;
    while client.clock.now().since(begun).as_millis() < 3_000 {
        let (done, content) = client.get("k", None);
        assert_eq!((done.result, content.len()), (Ok(()), 100_000));
        assert_eq!(client.put("k", 1, 100_000).result, Ok(()));
        count += 1;
    }
    assert!(count > 3);
    let SignIn::V1 { key, .. } = &mut config.sign_in else { panic!("it signs in by version 1") };
    *key = hidden("hush, a wrong key");
    let error = Client::open(config).err().unwrap();
    assert_eq!((error.class, error.status), (ErrorClass::Denied, Some(401)));
    assert!(error.message.contains("sign-in was refused") && !error.message.contains("hush"));
}

#[test]
fn a_token_and_a_storage_url_are_enough() {
    let Some(mut config) = config(LiveKind::Swift, "by token") else { return };
    let SignIn::V1 { auth, .. } = config.sign_in.clone() else { panic!("version 1") };
    config.sign_in = SignIn::Known { token: Some(hidden("AUTH_tk0")) };
    let account = format!("http://{}:{}/v1/AUTH_test", auth.endpoint.host, auth.endpoint.port);
    config.storage = Some(address(&account));
    let mut client = Client::open(config).unwrap();
    let error = client.put("k", 1, 1).result.unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Denied, Some(401)));
    assert!(error.message.contains("the token that was given is not accepted"), "{error}");
    assert!(!format!("{:?}", client.driver).contains("AUTH_tk0"));
}
