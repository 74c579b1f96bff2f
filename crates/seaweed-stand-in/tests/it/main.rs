//! The stand-in for SeaweedFS as plain HTTP sees it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]
#![expect(clippy::disallowed_methods, reason = "what takes time is timed")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use plimsoll_oracle::Script;
use plimsoll_seaweed_stand_in::{Assigned, SeaweedStandIn, Site, StandInConfig, StandInError};
use serde_json::Value;

/// Longer than anything takes that happens at all.
const LONG: Duration = Duration::from_secs(20);

/// Makes one request, and returns the status, the head and the body.
fn ask(server: &str, method: &str, path: &str, body: &str) -> (u16, String, String) {
    let kind = if body.is_empty() { "" } else { "Content-Type: image/bench\r\n" };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{kind}Content-Length: {}\r\n\
         \r\n{body}",
        body.len()
    );
    let mut socket = TcpStream::connect(http_of(server)).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
}

/// Returns `host:port` of `host:port.grpcport`.
fn http_of(server: &str) -> &str {
    server.rsplit_once('.').unwrap().0
}

fn json(answer: &(u16, String, String)) -> Value {
    serde_json::from_str(&answer.2).unwrap_or_else(|_| panic!("{answer:?}"))
}

fn scripted(section: &str, servers: usize) -> StandInConfig {
    let yaml = format!(
        "schema: plimsoll.oracle/1\nservice: {{time: {{constant: 1us}}}}\nseaweed: {{{section}}}\n"
    );
    StandInConfig {
        masters: 2,
        volume_servers: vec![Site::default(); servers],
        script: Some(Script::from_yaml(&yaml).unwrap()),
        ..StandInConfig::default()
    }
}

#[test]
fn a_file_is_assigned_written_read_and_removed() {
    let oracle = SeaweedStandIn::start(StandInConfig::default()).unwrap();
    let master = oracle.masters().remove(0);
    let assigned = ask(&master, "GET", "/dir/assign?collection=a&count=2", "");
    let assigned = json(&assigned);
    assert_eq!(assigned["count"], 2);
    let (server, fid) = (&oracle.volume_servers()[0], assigned["fid"].as_str().unwrap());
    assert_eq!(assigned["url"], http_of(server));
    let path = format!("/{fid}_1");
    let written = ask(server, "PUT", &path, "0123456789");
    assert_eq!(written.0, 201);
    // The figures of SeaweedFS 4.48 for the same bytes.
    let name = format!("{fid}_1");
    let expected =
        format!(r#"{{"name":"{name}","size":10,"eTag":"280c069e","mime":"image/bench"}}"#);
    assert_eq!(written.2, expected);
    assert!(written.1.contains("etag: \"280c069e\""), "{}", written.1);
    assert_eq!(ask(server, "PUT", &path, "0123456789").0, 204);
    let read = ask(server, "GET", &path, "");
    assert_eq!((read.0, read.2.as_str()), (200, "0123456789"));
    for path in ["/1,0100000000", "/999,0100000000"] {
        assert_eq!(ask(server, "GET", path, "").0, 404, "{path}");
    }
    assert_eq!(ask(server, "GET", "/nonsense", "").0, 400);
    let nowhere = ask(server, "PUT", "/999,0100000000", "x");
    assert_eq!(nowhere.0, 500);
    assert!(nowhere.2.contains("volume 999 not found on"), "{}", nowhere.2);
    let removed = ask(server, "DELETE", &path, "");
    assert_eq!((removed.0, json(&removed)["size"].as_u64()), (202, Some(35 + fid.len() as u64)));
    assert_eq!(ask(server, "DELETE", &path, "").2, r#"{"size":0}"#);
}

#[test]
fn masters_tell_what_is_there_and_drop_one_collection_only() {
    let oracle = SeaweedStandIn::start(StandInConfig { volumes_max: 8, ..scripted("", 2) });
    let oracle = oracle.unwrap();
    let master = oracle.masters().remove(0);
    let get = |path: &str| ask(&master, "GET", path, "");
    oracle.put_file("theirs", "one").unwrap();
    let grown = get("/vol/grow?count=3&collection=mine&replication=001");
    assert_eq!(json(&grown)["count"], 6, "copies are counted");
    let refused = get("/vol/grow?count=10&collection=mine");
    assert_eq!(refused.0, 406);
    assert!(refused.2.contains("only 9 volumes left, not enough for 10"), "{}", refused.2);
    let status = json(&get("/dir/status"));
    let nodes = &status["Topology"]["DataCenters"][0]["Racks"][0]["DataNodes"];
    assert_eq!((nodes.as_array().unwrap().len(), &status["Topology"]["Max"]), (2, &16.into()));
    let found = json(&get("/dir/lookup?volumeId=2"));
    assert_eq!(found["locations"].as_array().unwrap().len(), 2);
    assert_eq!(get("/dir/lookup?volumeId=999").0, 404);
    assert_eq!(json(&get("/collection/info?collection=theirs"))["FileCount"], 1);
    assert_eq!(get("/col/delete?collection=nobodys").0, 400);
    assert_eq!(get("/col/delete?collection=mine").0, 204);
    assert_eq!(get("/collection/info?collection=mine").0, 400);
    assert_eq!(oracle.files("theirs").len(), 1);
    assert_eq!(get("/dir/assign?collection=b&replication=009").0, 406);
    assert_eq!(oracle.ledger().assigns_count(Assigned::Full), 1);
}

#[test]
fn what_is_to_happen_by_time_happens() {
    let is_there = |server: &str| TcpStream::connect(http_of(server)).is_ok();
    // On a busy machine the whole stretch may pass before anybody looks; then the next one is
    // longer.
    let seen_away = [500, 5_000, 50_000].into_iter().find_map(|lasting_ms| {
        let section = format!(
            "leaders: [{{at: 5ms, master: 1}}], \
             away: [{{server: 1, from: 20ms, lasting: {lasting_ms}ms}}]"
        );
        let oracle = SeaweedStandIn::start(scripted(&section, 2)).unwrap();
        let servers = oracle.volume_servers();
        let started = Instant::now();
        while is_there(&servers[1]) {
            if started.elapsed() > Duration::from_millis(20 + lasting_ms) {
                return None;
            }
        }
        Some((oracle, servers, started + Duration::from_millis(20 + lasting_ms)))
    });
    let (oracle, servers, back) = seen_away.expect("the server was never away");
    assert!(is_there(&servers[0]));
    while !is_there(&servers[1]) {
        assert!(Instant::now() < back + LONG, "the server does not come back");
    }
    let masters = oracle.masters();
    let leads = |master: &str| json(&ask(master, "GET", "/cluster/status", ""));
    assert_eq!(leads(&masters[0])["Leader"], masters[1]);
    assert_eq!(leads(&masters[0])["IsLeader"], Value::Null);
    assert_eq!(leads(&masters[1])["IsLeader"], true);
    assert_eq!(leads(&masters[1])["Peers"][0], masters[0]);
}

#[test]
fn servers_that_are_not_there_cannot_be_scripted() {
    for (section, expected) in [
        (
            "leaders: [{at: 1s, master: 2}]",
            "seaweed.leaders[0].master: there is no master 2; they count from 0",
        ),
        (
            "away: [{server: 1, from: 1s, lasting: 1s}]",
            "seaweed.away[0].server: there is no volume server 1; they count from 0",
        ),
    ] {
        let error = SeaweedStandIn::start(scripted(section, 1)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let none = StandInConfig { masters: 0, ..StandInConfig::default() };
    let error = SeaweedStandIn::start(none).unwrap_err();
    assert!(matches!(error, StandInError::NoServers));
}
