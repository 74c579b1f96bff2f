//! The script as it is seen on the wire, and its ledger beside what the client saw.

#![expect(clippy::disallowed_methods, reason = "what takes time is timed")]

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_model::{ErrorClass, OpKind};
use plimsoll_oracle::{Lie, Oracle, OracleConfig, OracleStats, Script, WRONG_LENGTH_EXTRA};

use crate::access::tls;
use crate::client::{Answer, Client, path};
use crate::{client, config, start};

const CONTENT: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const SERVICE: &str = "schema: plimsoll.oracle/1\nservice: {time: {constant: 10us}}\n";

fn scripted(more: &str) -> OracleConfig {
    let script = Script::from_yaml(&format!("{SERVICE}{more}\n"));
    OracleConfig { script: Some(script.unwrap()), seed: 7, ..config() }
}

/// What a connection gave until it ended, and how it ended.
struct Ending {
    bytes: Vec<u8>,
    error: Option<ErrorKind>,
}

/// Sends a request and reads until the connection ends, or nothing comes for a while.
fn until_the_end(client: &Client, method: &str, target: &str, body: &[u8]) -> Ending {
    let mut socket = TcpStream::connect(client.addr).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut request = client.head(method, target, &[], body).into_bytes();
    request.extend_from_slice(body);
    socket.write_all(&request).unwrap();
    let mut bytes = Vec::new();
    let error = socket.read_to_end(&mut bytes).err().map(|error| error.kind());
    Ending { bytes, error }
}

impl Ending {
    /// Returns the head and what came of the body.
    fn parts(&self) -> (String, &[u8]) {
        let head = self.bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        (String::from_utf8(self.bytes[..head].to_vec()).unwrap(), &self.bytes[head + 4..])
    }
}

fn get(client: &Client, key: &str) -> Answer {
    client.request("GET", &path("bucket", key), &[], b"")
}

fn put(client: &Client, key: &str, content: &[u8]) -> u16 {
    client.request("PUT", &path("bucket", key), &[], content).status
}

fn keys(client: &Client) -> Vec<String> {
    client.request("GET", "/bucket?list-type=2", &[], b"").elements("Key")
}

fn counts(oracle: &Oracle, kind: OpKind) -> BTreeMap<&'static str, u64> {
    let ledger = oracle.ledger().unwrap();
    let counts = ErrorClass::ALL.map(|class| (class.name(), ledger.count(kind, class)));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn an_error_status_is_answered_and_nothing_is_done() {
    let (oracle, client) = start(scripted("faults: {all: {slow_down: 1}}"));
    let slow_down = (503, "SlowDown".to_owned());
    for (method, target, body) in [
        ("PUT", "/bucket/k", CONTENT),
        ("GET", "/bucket/k", b""),
        ("DELETE", "/bucket/k", b""),
        ("GET", "/bucket?list-type=2", b""),
        ("POST", "/bucket?delete=", b"<Delete><Object><Key>k</Key></Object></Delete>"),
    ] {
        let answer = client.request(method, target, &[], body);
        assert_eq!(answer.error(), slow_down, "{method} {target}");
    }
    let head = client.request("HEAD", "/bucket/k", &[], b"");
    assert_eq!((head.status, head.body.len()), (503, 0));
    assert_eq!(oracle.stats(), OracleStats { buckets_count: 1, objects_count: 0, held_bytes: 0 });
    let ledger = oracle.ledger().unwrap();
    assert_eq!(ledger.class_count(ErrorClass::Throttled), 6);
    assert_eq!(ledger.count(OpKind::Delete, ErrorClass::Throttled), 2);
    // The bucket itself is no operation on objects.
    assert_eq!(client.request("HEAD", "/bucket", &[], b"").status, 200);
    assert_eq!(client.request("GET", "/bucket?location", &[], b"").status, 200);
    // Nor is a request of somebody unknown.
    assert_eq!(get(&Client { keys: None, ..client }, "k").status, 403);
    let operations = OpKind::ALL.map(|kind| ledger.operations_count(kind));
    assert_eq!(operations.iter().sum::<u64>(), 6);
}

#[test]
fn steps_of_an_upload_fail_by_themselves() {
    let (oracle, client) = start(scripted("faults: {put_part: {slow_down: 1}}"));
    let begun = client.request("POST", "/bucket/k?uploads=", &[], b"");
    let id = begun.elements("UploadId").remove(0);
    let held = oracle.stats().held_bytes;
    let part = client.request("PUT", &format!("/bucket/k?partNumber=1&uploadId={id}"), &[], b"x");
    assert_eq!(part.error(), (503, "SlowDown".to_owned()));
    assert_eq!(oracle.stats().held_bytes, held);
    let completion = b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part>\
                       </CompleteMultipartUpload>";
    let target = format!("/bucket/k?uploadId={id}");
    let complete = client.request("POST", &target, &[], completion);
    assert_eq!(complete.error(), (400, "InvalidPart".to_owned()));
    for status in [204, 404] {
        assert_eq!(client.request("DELETE", &target, &[], b"").status, status);
    }
    assert_eq!(counts(&oracle, OpKind::CreateUpload), [("ok", 1)].into());
    assert_eq!(counts(&oracle, OpKind::PutPart), [("throttled", 1)].into());
    assert_eq!(counts(&oracle, OpKind::CompleteUpload), [("client", 1)].into());
    assert_eq!(counts(&oracle, OpKind::AbortUpload), [("not-found", 1), ("ok", 1)].into());
}

#[test]
fn every_other_status_comes_with_its_code() {
    for (status, code) in [(500, "InternalError"), (403, "AccessDenied"), (429, "TooManyRequests")]
    {
        let (_oracle, client) =
            start(scripted(&format!("faults: {{all: {{status: {{{status}: 1}}}}}}")));
        assert_eq!(get(&client, "k").error(), (status, code.to_owned()));
    }
}

#[test]
fn a_reset_comes_before_any_byte() {
    let (oracle, client) = start(scripted("faults: {all: {reset: 1}}"));
    // More than the buffers of a socket hold.
    let large = vec![7; 8 << 20];
    for (method, target, body) in [
        ("GET", "/bucket/k", &b""[..]),
        ("PUT", "/bucket/k", CONTENT),
        ("PUT", "/bucket/k", &large),
    ] {
        let ending = until_the_end(&client, method, target, body);
        assert_eq!((ending.bytes.len(), ending.error), (0, Some(ErrorKind::ConnectionReset)));
    }
    assert_eq!(oracle.stats().objects_count, 0);
    assert_eq!(counts(&oracle, OpKind::Put), BTreeMap::from([("reset", 2)]));
}

#[test]
fn half_a_body_ends_in_good_order() {
    let (oracle, client) = start(scripted("faults: {get: {half_body: 1}, list: {half_body: 1}}"));
    assert_eq!(put(&client, "k", CONTENT), 200);
    let ending = until_the_end(&client, "GET", "/bucket/k", b"");
    let (head, body) = ending.parts();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("content-length: 36") && head.contains("etag: "), "{head}");
    assert_eq!((body, ending.error), (&CONTENT[..18], None));

    let large: Vec<u8> = (0..8 << 20).map(|index: u32| (index % 251) as u8).collect();
    assert_eq!(put(&client, "large", &large), 200);
    let ending = until_the_end(&client, "GET", "/bucket/large", b"");
    assert!(ending.parts().1 == &large[..4 << 20] && ending.error.is_none());

    let ending = until_the_end(&client, "GET", "/bucket?list-type=2", b"");
    let (head, body) = ending.parts();
    let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    assert_eq!((body.len(), ending.error), (length.parse::<usize>().unwrap() / 2, None));
    assert_eq!(counts(&oracle, OpKind::Get), BTreeMap::from([("truncated", 2)]));
    assert_eq!(counts(&oracle, OpKind::List), BTreeMap::from([("truncated", 1)]));
}

#[test]
fn a_wrong_length_is_longer_and_kept() {
    let (oracle, client) = start(scripted("faults: {get: {wrong_length: 1}}"));
    assert_eq!(put(&client, "k", CONTENT), 200);
    let mut socket = TcpStream::connect(client.addr).unwrap();
    for (headers, right, status) in
        [([].as_slice(), CONTENT, 200), (&[("range", "bytes=4-7")], &CONTENT[4..8], 206)]
    {
        // The connection goes on, as the answer is one that HTTP allows.
        let answer = client.converse(&mut socket, "GET", "/bucket/k", headers, b"");
        assert_eq!(answer.status, status);
        let extra = answer.body.strip_prefix(right).unwrap().len() as u64;
        assert!((1..=WRONG_LENGTH_EXTRA).contains(&extra), "{extra}");
    }
    assert_eq!(counts(&oracle, OpKind::Get), BTreeMap::from([("truncated", 2)]));
}

#[test]
fn an_error_hides_in_a_success() {
    let (oracle, client) = start(scripted("faults: {all: {error_in_success: 1}}"));
    for (method, target, body) in [
        ("PUT", "/bucket/k", CONTENT),
        ("GET", "/bucket/k", b""),
        ("DELETE", "/bucket/k", b""),
        ("GET", "/bucket?list-type=2", b""),
    ] {
        let answer = client.request(method, target, &[], body);
        assert_eq!(answer.error(), (200, "UnexpectedContent".to_owned()), "{method} {target}");
        assert_eq!(answer.header("content-type"), Some("application/xml"));
        assert_eq!(answer.header("etag"), None);
    }
    assert_eq!(oracle.stats().objects_count, 0);
    assert_eq!(oracle.ledger().unwrap().class_count(ErrorClass::Protocol), 4);
}

#[test]
fn silence_lasts_until_the_client_goes_away() {
    let (oracle, client) = start(scripted("faults: {all: {silence: 1}}"));
    let mut socket = TcpStream::connect(client.addr).unwrap();
    socket.write_all(client.head("GET", "/bucket/k", &[], b"").as_bytes()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    // On a busy machine the request comes late.
    for _ in 0..400 {
        let waiting = socket.read(&mut [0; 1]).unwrap_err();
        assert!(matches!(waiting.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waiting}");
        if !counts(&oracle, OpKind::Get).is_empty() {
            break;
        }
    }
    // Another connection is served meanwhile.
    assert_eq!(client.request("HEAD", "/bucket", &[], b"").status, 200);
    socket.shutdown(Shutdown::Write).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "the server lets go");
    assert_eq!(counts(&oracle, OpKind::Get), BTreeMap::from([("timeout", 1)]));
}

#[test]
fn an_answer_takes_its_time_to_the_first_and_to_the_last_byte() {
    let slow = "schema: plimsoll.oracle/1\n\
                service: {time: {constant: 10us}}\n\
                kinds: {get: {time: {constant: 60ms}, first_byte: {share: 0.5}}}\n";
    let config = OracleConfig { script: Some(Script::from_yaml(slow).unwrap()), ..config() };
    let (_oracle, client) = start(config);
    assert_eq!(put(&client, "k", CONTENT), 200);
    let mut socket = TcpStream::connect(client.addr).unwrap();
    let request = client.head("GET", "/bucket/k", &[], b"");
    let begin = Instant::now();
    socket.write_all(request.as_bytes()).unwrap();
    let mut byte = [0; 1];
    socket.read_exact(&mut byte).unwrap();
    let first = begin.elapsed();
    let mut rest = Vec::new();
    while !rest.ends_with(CONTENT) {
        socket.read_exact(&mut byte).unwrap();
        rest.push(byte[0]);
    }
    let last = begin.elapsed();
    // A busy machine makes both later, but the first not as late as the last.
    assert!(first >= Duration::from_millis(30), "{first:?}");
    assert!(last >= Duration::from_millis(60), "{last:?}");
    assert!(last - first >= Duration::from_millis(1), "{first:?} {last:?}");
}

/// Writes the objects lies are told about: each key has an older version and a neighbour.
fn prepare(client: &Client) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let content = |first: u8| (0..1000_u32).map(|at| (at % 241) as u8 ^ first).collect::<Vec<u8>>();
    let (older, latest, other) = (content(0x55), content(0), content(0xAA));
    for (key, bytes) in [("k", &older), ("k", &latest), ("l", &other)] {
        assert_eq!(put(client, key, bytes), 200);
    }
    (older, latest, other)
}

#[test]
fn wrong_bytes_are_told_whole_and_in_ranges() {
    for lie in ["other_key", "old_version", "shifted", "zeroed", "torn", "flipped"] {
        let (oracle, client) = start(scripted(&format!("lies: {{{lie}: 1}}")));
        let (older, latest, other) = prepare(&client);
        for (headers, span, status) in
            [([].as_slice(), 0..1000, 200), (&[("range", "bytes=100-299")], 100..300, 206)]
        {
            let answer = client.request("GET", "/bucket/k", headers, b"");
            let (told, right) = (&answer.body[..], &latest[span.clone()]);
            assert_eq!((answer.status, told.len()), (status, right.len()), "{lie}");
            assert_ne!(told, right, "{lie}");
            let same = told.iter().zip(right).take_while(|(a, b)| a == b).count();
            let is_so = match lie {
                "other_key" => told == &other[span.clone()],
                "old_version" => told == &older[span.clone()],
                "zeroed" => told.iter().all(|byte| *byte == 0),
                "torn" => same >= 50 && told[same..] == older[span.start + same..span.end],
                "flipped" => {
                    told[same + 1..] == right[same + 1..]
                        && (told[same] ^ right[same]).count_ones() == 1
                }
                _ => latest.repeat(3).windows(right.len()).any(|window| window == told),
            };
            assert!(is_so, "{lie} {span:?}");
            if status == 206 {
                assert_eq!(answer.header("content-range"), Some("bytes 100-299/1000"));
            }
        }
        let ledger = oracle.ledger().unwrap();
        assert_eq!(ledger.count(OpKind::Get, ErrorClass::Corrupt), 2, "{lie}");
        assert_eq!(ledger.count(OpKind::Put, ErrorClass::Ok), 3, "{lie}");
        // The object itself is what it was.
        assert_eq!(oracle.stats().objects_count, 2);
    }
}

#[test]
fn the_etag_of_a_lie_fits_what_is_sent() {
    let (_oracle, client) = start(scripted("lies: {flipped: 1}"));
    let (_, latest, _) = prepare(&client);
    let lie = get(&client, "k");
    assert_eq!(put(&client, "same", &lie.body), 200);
    let head = client.request("HEAD", "/bucket/same", &[], b"");
    assert_ne!(lie.body, latest);
    assert_eq!(lie.header("etag"), head.header("etag"));
}

#[test]
fn a_lie_without_its_stuff_is_not_told() {
    let (oracle, client) = start(scripted("lies: {old_version: 0.5, other_key: 0.5}"));
    assert_eq!(put(&client, "alone", CONTENT), 200);
    for _ in 0..20 {
        assert_eq!(get(&client, "alone").body, CONTENT);
    }
    assert_eq!(counts(&oracle, OpKind::Get), BTreeMap::from([("ok", 20)]));
    assert_eq!(oracle.ledger().unwrap().content_bytes(OpKind::Get), 20 * 36);
}

#[test]
fn a_lost_write_is_acknowledged() {
    let (oracle, client) = start(scripted("grace_count: 1\nlies: {lost_write: 1}"));
    assert_eq!(put(&client, "k", b"first"), 200);
    let lost = client.request("PUT", "/bucket/k", &[], b"later");
    assert!(lost.status == 200 && lost.header("etag").is_some());
    assert_eq!(get(&client, "k").text(), "first");
    assert_eq!(put(&client, "new", CONTENT), 200);
    assert_eq!(get(&client, "new").status, 404);
    assert_eq!(client.request("DELETE", "/bucket/k", &[], b"").status, 204);
    let batch = b"<Delete><Object><Key>k</Key></Object></Delete>";
    let answer = client.request("POST", "/bucket?delete=", &[], batch);
    assert_eq!((answer.status, answer.elements("Key")), (200, vec!["k".to_owned()]));
    assert_eq!(keys(&client), ["k"]);
    let ledger = oracle.ledger().unwrap();
    assert_eq!(ledger.lie_count(Lie::LostWrite), 4);
    assert_eq!(ledger.count(OpKind::Put, ErrorClass::Ok), 3);
    // A lost write shows when the object is read.
    assert_eq!(counts(&oracle, OpKind::Get), BTreeMap::from([("corrupt", 1), ("not-found", 1)]));
    // 5 of content, 1 of key, 256 for the rest.
    assert_eq!(oracle.stats(), OracleStats { buckets_count: 1, objects_count: 1, held_bytes: 262 });
}

#[test]
fn a_stale_read_is_of_the_state_before() {
    let (oracle, client) = start(scripted("lies: {stale_read: 1}"));
    assert_eq!(put(&client, "k", b"first"), 200);
    assert_eq!(get(&client, "k").error(), (404, "NoSuchKey".to_owned()));
    assert_eq!(client.request("HEAD", "/bucket/k", &[], b"").status, 404);
    assert_eq!(put(&client, "k", b"second"), 200);
    assert_eq!(get(&client, "k").text(), "first");
    let head = client.request("HEAD", "/bucket/k", &[], b"");
    assert_eq!(head.header("content-length"), Some("5"));
    let range = client.request("GET", "/bucket/k", &[("range", "bytes=1-2")], b"");
    assert_eq!((range.status, range.text()), (206, "ir"));
    assert_eq!(range.header("content-range"), Some("bytes 1-2/5"));
    assert_eq!(client.request("DELETE", "/bucket/k", &[], b"").status, 204);
    assert_eq!(get(&client, "k").text(), "second");
    assert_eq!(get(&client, "never").status, 404);
    assert_eq!(oracle.ledger().unwrap().lie_count(Lie::StaleRead), 6);
    let seen = BTreeMap::from([("corrupt", 2), ("not-found", 2), ("ok", 1)]);
    assert_eq!(counts(&oracle, OpKind::Get), seen);
}

#[test]
fn a_listing_leaves_one_out_or_adds_one() {
    let names = ["a", "b", "c/d", "c/e"];
    let (oracle, client) = start(scripted("lies: {list_omission: 1}"));
    assert_eq!(keys(&client), [""; 0], "there is nothing to leave out");
    names.iter().for_each(|name| assert_eq!(put(&client, name, b"x"), 200));
    let told = keys(&client);
    assert!(told.len() == 3 && told.iter().all(|key| names.contains(&&**key)), "{told:?}");
    assert_eq!(counts(&oracle, OpKind::List), BTreeMap::from([("corrupt", 1), ("ok", 1)]));

    let (oracle, client) = start(scripted("lies: {list_ghost: 1}"));
    let told = keys(&client);
    assert!(told.len() == 1 && told[0].starts_with("ghost-"), "{told:?}");
    names.iter().for_each(|name| assert_eq!(put(&client, name, b"x"), 200));
    let told = keys(&client);
    assert!(told.len() == 5 && told.is_sorted(), "{told:?}");
    // What was removed makes the better ghost.
    assert_eq!(client.request("DELETE", "/bucket/b", &[], b"").status, 204);
    assert_eq!(keys(&client), names);
    let page = client.request("GET", "/bucket?list-type=2&max-keys=2", &[], b"");
    assert_eq!((page.elements("Key").len(), page.elements("KeyCount")), (2, vec!["2".to_owned()]));
    assert_eq!(oracle.ledger().unwrap().lie_count(Lie::ListGhost), 4);
}

/// Returns how a right client classes what it sees of a read of `content`.
fn class_seen(client: &Client, content: &[u8]) -> &'static str {
    let ending = {
        let mut socket = TcpStream::connect(client.addr).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let head = client.head("GET", "/bucket/k", &[("connection", "close")], b"");
        socket.write_all(head.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let error = socket.read_to_end(&mut bytes).err().map(|error| error.kind());
        Ending { bytes, error }
    };
    match ending.error {
        Some(ErrorKind::ConnectionReset) => return "reset",
        Some(_) => return "timeout",
        None => {}
    }
    let (head, body) = ending.parts();
    let has = |text: &str| String::from_utf8_lossy(body).contains(text);
    match &head[9..12] {
        "200" if has("<Error>") => "protocol",
        "200" if body == content => "ok",
        "200" if body.len() == content.len() => "corrupt",
        "200" => "truncated",
        "503" if has("SlowDown") => "throttled",
        "500" => "server",
        "403" => "denied",
        other => panic!("{other} is in no script"),
    }
}

#[test]
fn the_ledger_counts_what_the_client_saw() {
    let script = "grace_count: 2\n\
                  lies: {flipped: 0.05, old_version: 0.05}\n\
                  faults:\n  get: {slow_down: 0.1, status: {500: 0.1, 403: 0.05}, reset: 0.1, \
                  half_body: 0.1, wrong_length: 0.1, error_in_success: 0.1, silence: 0.01}\n";
    let (oracle, client) = start(scripted(script));
    assert_eq!(put(&client, "k", &vec![1; 5000]), 200);
    assert_eq!(put(&client, "k", &vec![2; 5000]), 200);
    let mut seen = BTreeMap::new();
    for _ in 0..300 {
        *seen.entry(class_seen(&client, &[2; 5000])).or_insert(0) += 1;
    }
    assert_eq!(counts(&oracle, OpKind::Get), seen);
    assert_eq!(seen.len(), 9, "every class is there: {seen:?}");
    let good_bytes = oracle.ledger().unwrap().content_bytes(OpKind::Get);
    assert_eq!(good_bytes, seen["ok"] * 5000);
}

#[test]
fn without_a_script_there_is_no_ledger() {
    let (oracle, client) = start(config());
    assert_eq!(put(&client, "k", CONTENT), 200);
    assert!(oracle.ledger().is_none());
}

#[test]
fn a_connection_over_tls_misbehaves_too() {
    let (identity, open) = tls();
    for fault in ["half_body", "reset"] {
        let mut config = scripted(&format!("faults: {{get: {{{fault}: 1}}}}"));
        config.tls = Some(identity.clone());
        let oracle = Oracle::start(config).unwrap();
        let client = client(&oracle);
        let mut socket = open(&oracle);
        for (target, content) in [("/bucket", b"".as_slice()), ("/bucket/k", CONTENT)] {
            assert_eq!(client.converse(&mut socket, "PUT", target, &[], content).status, 200);
        }
        socket.write_all(client.head("GET", "/bucket/k", &[], b"").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let ended = socket.read_to_end(&mut bytes).map_err(|error| error.kind());
        if fault == "reset" {
            assert_eq!((ended, bytes.len()), (Err(ErrorKind::ConnectionReset), 0));
        } else {
            assert!(ended.is_ok() && bytes.ends_with(&CONTENT[..18]), "{ended:?}");
        }
    }
}
