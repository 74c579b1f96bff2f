//! Masters that take their time, refuse, change and leave: what the driver makes of it.

use plimsoll_driver::{Operation, Session as _, Settled};
use plimsoll_driver_seaweed::AssignBy;
use plimsoll_model::{ErrorClass, OpKind};
use plimsoll_seaweed_stand_in::{Assigned, StandInConfig};

use super::{class_of, connect, script, scripted, start, try_put};
use crate::support::{Client, Numbered};

const ALL: [AssignBy; 3] = [AssignBy::Call, AssignBy::Stream, AssignBy::Http];

#[test]
fn volumes_that_are_being_made_are_waited_for_between_operations() {
    for assign_by in ALL {
        let stand_in = scripted("seaweed: {growth: {assigns: 3}}");
        let mut client = connect(&stand_in, |config| config.assign_by = assign_by);
        let done = try_put(&mut client, 1, 100);
        assert_eq!(class_of(&done), ErrorClass::Growing, "{assign_by:?}");
        assert_eq!((done.server_name, done.bytes), (None, 0));
        assert_eq!(stand_in.ledger().assigns_count(Assigned::Growing), 1);
        // Two more are refused while it waits; what it was then given is used.
        assert_eq!(client.settle(), Settled::default());
        assert_eq!(stand_in.ledger().assigns_count(Assigned::Growing), 3);
        client.put(1, 100);
        let ledger = stand_in.ledger();
        assert_eq!(ledger.assigns_count(Assigned::Given), 1);
        assert_eq!(ledger.operations.count(OpKind::Put, ErrorClass::Ok), 1);
    }
}

#[test]
fn a_stream_of_ids_that_a_master_ends_in_good_order_is_begun_anew() {
    for stream_answers_max in [Some(1), Some(3)] {
        let stand_in = start(StandInConfig { stream_answers_max, ..Default::default() });
        let mut client = connect(&stand_in, |config| config.assign_by = AssignBy::Stream);
        for file in 0..8 {
            let done = try_put(&mut client, file, 100);
            assert_eq!(done.result, Ok(()), "file {file}, {stream_answers_max:?}");
        }
        let ledger = stand_in.ledger();
        assert_eq!(ledger.assigns_count(Assigned::Given), 8);
        assert_eq!(ledger.operations.count(OpKind::Put, ErrorClass::Ok), 8);
    }
    // One that gives none at all is not begun for ever.
    let none = StandInConfig { stream_answers_max: Some(0), ..Default::default() };
    let stand_in = start(none);
    let mut client = connect(&stand_in, |config| config.assign_by = AssignBy::Stream);
    let error = try_put(&mut client, 1, 100).result.unwrap_err();
    assert_eq!(error.class, ErrorClass::Protocol);
    assert!(error.message.ends_with("answered without a status"), "{error}");
}

#[test]
fn growth_by_time_ends() {
    let stand_in = scripted("seaweed: {growth: {lasting: 60ms}}");
    let mut client = connect(&stand_in, |_| {});
    assert_eq!(class_of(&try_put(&mut client, 1, 100)), ErrorClass::Growing);
    client.settle();
    client.put(1, 100);
    assert!(stand_in.ledger().assigns_count(Assigned::Growing) >= 1);
}

#[test]
fn refusals_have_their_classes_by_every_way_of_asking() {
    for assign_by in ALL {
        for (fault, ended, class, words) in [
            ("full", Assigned::Full, ErrorClass::Server, "no free volumes left"),
            ("failed", Assigned::Failed, ErrorClass::Server, "script"),
            ("growing", Assigned::Growing, ErrorClass::Growing, "volume growth in progress"),
        ] {
            let stand_in = scripted(&format!("seaweed: {{assign: {{{fault}: 1}}}}"));
            let mut client = connect(&stand_in, |config| config.assign_by = assign_by);
            let done = try_put(&mut client, 1, 100);
            let error = done.result.unwrap_err();
            assert_eq!(error.class, class, "{assign_by:?} {fault}: {error}");
            assert!(error.message.contains(words), "{error}");
            let ledger = stand_in.ledger();
            assert_eq!(ledger.assigns_count(ended), 1);
            assert_eq!(ledger.as_seen().count(OpKind::Put, class), 1);
            assert_eq!(ledger.operations.operations_count(OpKind::Put), 0);
        }
    }
}

#[test]
fn tokens_that_are_wrong_or_late_are_denied() {
    for assign_by in ALL {
        for (fault, ended) in
            [("expired_token", Assigned::ExpiredToken), ("wrong_token", Assigned::WrongToken)]
        {
            let stand_in = start(StandInConfig {
                script: script(&format!("seaweed: {{assign: {{{fault}: 1}}}}")),
                write_key: Some(b"write".to_vec()),
                ..Default::default()
            });
            let mut client = connect(&stand_in, |config| config.assign_by = assign_by);
            assert_eq!(class_of(&try_put(&mut client, 1, 100)), ErrorClass::Denied, "{fault}");
            let ledger = stand_in.ledger();
            assert_eq!(ledger.assigns_count(ended), 1);
            assert_eq!(ledger.operations.count(OpKind::Put, ErrorClass::Denied), 1);
            assert_eq!(ledger.copies_stored_count(), 0);
        }
    }
}

#[test]
fn a_master_that_never_answers_is_given_up() {
    for assign_by in ALL {
        let stand_in = scripted("seaweed: {assign: {silent: 1}}");
        let mut client = connect(&stand_in, |config| config.assign_by = assign_by);
        let mut content = Numbered { file: 1, size: 100 };
        let put = Operation::Put { key: "", content: &mut content };
        let Client { runtime, session, .. } = &mut client;
        runtime.block_on(async {
            let mut put = std::pin::pin!(session.execute(None, put));
            while stand_in.ledger().assigns_count(Assigned::Silent) == 0 {
                tokio::select! {
                    biased;
                    done = &mut put => panic!("nobody answered {:?}", done.result),
                    () = tokio::task::yield_now() => {}
                }
            }
        });
        assert_eq!(client.settle(), Settled::default(), "nothing was begun");
    }
}

#[test]
fn room_that_is_used_up_is_a_failure_of_the_store() {
    for assign_by in ALL {
        let stand_in = start(StandInConfig { volumes_max: 7, ..Default::default() });
        let other = |config: &mut plimsoll_driver_seaweed::SeaweedConfig| {
            config.assign_by = assign_by;
            config.collection = "another".to_owned();
        };
        connect(&stand_in, |config| config.assign_by = assign_by).put(1, 10);
        let error = try_put(&mut connect(&stand_in, other), 1, 10).result.unwrap_err();
        assert_eq!(error.class, ErrorClass::Server, "{assign_by:?}: {error}");
        assert_eq!(stand_in.ledger().assigns_count(Assigned::Full), 1);
    }
}

/// Writes until it succeeds, and returns the classes of the failures before.
fn put_at_last(client: &mut Client) -> Vec<ErrorClass> {
    let mut failures = Vec::new();
    for _ in 0..100_000 {
        match class_of(&try_put(client, 1, 100)) {
            ErrorClass::Ok => return failures,
            class => failures.push(class),
        }
        client.settle();
    }
    panic!("news of the leader come at last: {:?}", failures.last());
}

#[test]
fn a_new_leader_is_found() {
    for assign_by in ALL {
        let stand_in = start(StandInConfig {
            masters: 3,
            script: script("seaweed: {leaders: [{after_assigns: 2, master: 2}]}"),
            ..Default::default()
        });
        let mut client = connect(&stand_in, |config| config.assign_by = assign_by);
        let name = client.put(1, 100);
        client.put(2, 100);
        let failures = put_at_last(&mut client);
        // A master that does not lead passes on what it is asked by HTTP.
        assert!(failures.iter().all(|class| *class == ErrorClass::Server), "{failures:?}");
        assert_eq!(failures.is_empty(), assign_by == AssignBy::Http, "{assign_by:?}");
        assert_eq!(class_of(&client.get(&name, None).0), ErrorClass::Ok);
        let ledger = stand_in.ledger();
        assert_eq!(ledger.assigns_count(Assigned::NotLeader), failures.len() as u64);
        assert_eq!(ledger.assigns_count(Assigned::Given), 3);
    }
}

#[test]
fn who_asks_a_follower_is_told_the_leader() {
    let stand_in = start(StandInConfig { masters: 3, ..Default::default() });
    stand_in.lead(Some(1));
    let mut client = connect(&stand_in, |config| {
        config.masters.remove(1);
    });
    client.put(1, 100);
    assert_eq!(stand_in.ledger().assigns_count(Assigned::NotLeader), 0);
}

#[test]
fn without_a_leader_nothing_is_written_until_there_is_one() {
    for assign_by in ALL {
        let stand_in = start(StandInConfig { masters: 2, ..Default::default() });
        let mut client = connect(&stand_in, |config| config.assign_by = assign_by);
        let name = client.put(1, 100);
        stand_in.lead(None);
        assert_eq!(class_of(&try_put(&mut client, 2, 100)), ErrorClass::Server, "{assign_by:?}");
        // Where files are is known, so they are read.
        assert_eq!(class_of(&client.get(&name, None).0), ErrorClass::Ok);
        stand_in.lead(Some(1));
        put_at_last(&mut client);
    }
}
