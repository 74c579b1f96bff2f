//! Ids, room and copies by hand.

use plimsoll_oracle::Script;
use std::net::Ipv4Addr;

use super::*;

fn state(servers: usize, volumes_max: usize, section: &str) -> State {
    let yaml = format!(
        "schema: plimsoll.oracle/1\nservice: {{time: {{constant: 1us}}}}\nseaweed: {{{section}}}\n"
    );
    let plan = Script::from_yaml(&yaml).unwrap().seaweed;
    let address = |number| Address {
        ip: Ipv4Addr::LOCALHOST.into(),
        http_port: 8_000 + number,
        grpc_port: 9_000 + number,
    };
    let servers = (0..servers as u16).map(|number| (address(number), Site::default()));
    let random = Random::new(1, 2, 0);
    State::new(
        vec![address(100)],
        servers.collect(),
        Assigning::new(plan, 0, 1),
        random,
        (volumes_max, false),
    )
}

fn ask(collection: &str, replication: &str) -> Ask {
    Ask {
        count: 2,
        collection: collection.to_owned(),
        replication: replication.to_owned(),
        ..Ask::default()
    }
}

fn file(cookie: u32) -> Stored {
    Stored::new(cookie, String::new(), String::new(), Bytes::from_static(b"content"))
}

fn ended(refused: Result<Given, Refusal>) -> Assigned {
    refused.map(|given| given.fid).unwrap_err().ended
}

#[test]
fn ids_are_given_once_and_spread_over_volumes() {
    let mut state = state(2, 20, "");
    let given: Vec<Given> =
        (0..200).map(|_| state.give(&ask("a", "001"), Moment::EPOCH).unwrap()).collect();
    let keys: Vec<u64> = given.iter().map(|given| given.fid.key).collect();
    assert!(keys.windows(2).all(|pair| pair[0] + 2 == pair[1]), "two at a time");
    let mut volumes: Vec<u32> = given.iter().map(|given| given.fid.volume).collect();
    volumes.sort_unstable();
    volumes.dedup();
    assert_eq!(volumes, [1, 2, 3, 4, 5, 6], "six of two copies");
    assert!(state.volumes.values().all(|volume| volume.servers.len() == 2));
    assert_eq!((state.counts.ids, state.room()), (400, 40 - 12));
}

#[test]
fn refusals_say_what_is_wrong() {
    let mut state = state(1, 8, "growth: {assigns: 2}");
    let now = Moment::EPOCH;
    assert_eq!(ended(state.give(&ask("a", "x"), now)), Assigned::Refused);
    let lasting = Ask { ttl: "3q".to_owned(), ..ask("a", "") };
    assert_eq!(ended(state.give(&lasting, now)), Assigned::Refused);
    for _ in 0..2 {
        assert_eq!(ended(state.give(&ask("a", ""), now)), Assigned::Growing);
    }
    assert!(state.give(&ask("a", ""), now).is_ok());
    // Seven of eight are taken; each collection grows by itself.
    for _ in 0..2 {
        assert_eq!(ended(state.give(&ask("b", ""), now)), Assigned::Growing);
    }
    assert!(state.give(&ask("b", ""), now).is_ok());
    for _ in 0..2 {
        assert_eq!(ended(state.give(&ask("c", ""), now)), Assigned::Growing);
    }
    assert_eq!(ended(state.give(&ask("c", ""), now)), Assigned::Full);
    state.servers[0].is_known = false;
    assert_eq!(ended(state.give(&ask("a", ""), now)), Assigned::NoServers);
    state.servers[0].is_known = true;
    assert!(state.drop_collection("a") && !state.drop_collection("a"));
    assert_eq!(ended(state.give(&ask("a", ""), now)), Assigned::Growing, "it is made anew");
}

#[test]
fn files_are_on_all_servers_of_their_volume_until_they_are_removed() {
    let mut state = state(3, 20, "");
    let given = state.give(&ask("a", "001"), Moment::EPOCH).unwrap();
    let (fid, key) = (given.fid, (given.fid.volume, given.fid.key));
    state.store(fid, file(fid.cookie), None);
    let servers = state.volumes[&fid.volume].servers.clone();
    assert!(servers.contains(&given.server));
    assert_eq!(state.files_of("a")[&fid.to_string()], (Bytes::from_static(b"content"), 2));
    let other = (0..3).find(|server| !servers.contains(server)).unwrap();
    assert_eq!(state.answering(servers[1], fid.volume), Some(servers[1]));
    assert_eq!(state.answering(other, fid.volume), Some(servers[0]), "it asks another one");
    assert_eq!(state.answering(other, 999), None);
    state.remove(fid, &servers[..1]);
    assert_eq!(state.files_of("a")[&fid.to_string()].1, 1);
    // What was written over it and lost is not what is there.
    let now = state.file(servers[1], key).cloned().unwrap();
    assert!(state.is_true(key, &now));
    let newer = Stored::new(fid.cookie, String::new(), String::new(), Bytes::from_static(b"newer"));
    state.lose(fid, newer);
    assert!(!state.is_true(key, &now));
    state.remove(fid, &servers);
    assert_eq!((state.counts.copies_stored, state.counts.copies_removed), (2, 2));
    assert!(state.files_of("a").is_empty());
}
