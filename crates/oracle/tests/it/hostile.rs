//! Input of who means no good: names, ranges, sizes, numbers, races.

use std::thread;

use crate::client::{Client, path};
use crate::{config, start};

#[test]
fn objects_by_hostile_names_are_objects_like_others() {
    let (oracle, client) = start(config());
    let names = ["..", "../../etc/passwd", "a//b", "//", "x\u{1}\u{7f}", "é\u{301}", "%2e", "?&#"];
    let names = names.map(str::to_owned).into_iter().chain(["k".repeat(1024)]);
    let names: Vec<String> = names.collect();
    for name in &names {
        let target = path("bucket", name);
        assert_eq!(client.request("PUT", &target, &[], name.as_bytes()).status, 200, "{name:?}");
        let got = client.request("GET", &target, &[], b"");
        assert_eq!((got.status, got.text()), (200, &**name), "{name:?}");
    }
    assert_eq!(oracle.stats().objects_count, names.len() as u64);
    let too_long = client.request("PUT", &path("bucket", &"k".repeat(1025)), &[], b"");
    assert_eq!(too_long.error(), (400, "KeyTooLongError".to_owned()));
    for bucket in ["a", "A-B", "a..b", "-ab", "127.0.0.1"] {
        let made = client.request("PUT", &format!("/{bucket}"), &[], b"");
        assert_eq!(made.status, 400, "{bucket}");
    }
}

#[test]
fn documents_that_are_too_long_are_the_clients_fault() {
    let (_oracle, client) = start(config());
    client.request("PUT", "/bucket/k", &[], b"");
    let long = vec![b' '; 21 << 20];
    for (method, target) in [("POST", "/bucket?delete="), ("PUT", "/bucket/k?tagging=")] {
        let refused = client.request(method, target, &[], &long).error();
        assert_eq!(refused, (400, "MaxMessageLengthExceeded".to_owned()), "{target}");
    }
    let tags = "<Tag><Key>k</Key><Value>v</Value></Tag>".repeat(100_000);
    let tags = format!("<Tagging><TagSet>{tags}</TagSet></Tagging>");
    let refused = client.request("PUT", "/bucket/k?tagging=", &[], tags.as_bytes());
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert_eq!(client.request("GET", "/bucket/k", &[], b"").status, 200);
}

#[test]
fn hostile_ranges_are_refused_or_read_as_http_has_them() {
    let (_oracle, client) = start(config());
    client.request("PUT", "/bucket/k", &[], b"0123456789");
    for range in [
        "bytes=18446744073709551615-",
        "bytes=9999999999999999999999-",
        "bytes=5-2",
        "bytes=--1",
        "bytes=0-1,3-4",
        "bytes=a-b",
        "lines=1-2",
    ] {
        let answer = client.request("GET", "/bucket/k", &[("range", range)], b"");
        assert!([200, 400, 416].contains(&answer.status), "{range}: {}", answer.status);
        assert!(answer.status != 200 || answer.body.len() == 10, "{range}: some and not all");
    }
    let begun = client.request("POST", "/bucket/k?uploads=", &[], b"");
    let id = begun.elements("UploadId").remove(0);
    for range in ["bytes=0-10", "bytes=5-", "bytes=-5", "bytes=0-18446744073709551615", "x"] {
        let target = format!("/bucket/k?partNumber=1&uploadId={id}");
        let headers = [("x-amz-copy-source", "/bucket/k"), ("x-amz-copy-source-range", range)];
        let answer = client.request("PUT", &target, &headers, b"");
        assert!(
            [400, 416].contains(&answer.status),
            "{range}: {} {}",
            answer.status,
            answer.text()
        );
    }
}

#[test]
fn of_writers_on_one_etag_one_wins_over_the_wire() {
    let (_oracle, client) = start(config());
    let first = client.request("PUT", "/bucket/k", &[], b"0");
    let etag = first.header("etag").unwrap().to_owned();
    let write = |client: &Client, writer: usize| {
        let headers = [("if-match", &*etag)];
        let content = format!("writer {writer}");
        client.request("PUT", "/bucket/k", &headers, content.as_bytes()).status
    };
    let mut statuses: Vec<u16> = thread::scope(|scope| {
        let write = &write;
        let (client, writers) = (&client, 0..8);
        let writers: Vec<_> =
            writers.map(|writer| scope.spawn(move || write(client, writer))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
}

#[test]
fn hostile_tags_and_metadata_are_refused() {
    let (oracle, client) = start(config());
    client.request("PUT", "/bucket/k", &[], b"x");
    let held = oracle.stats().held_bytes;
    let tag =
        |name: &str, value: &str| format!("<Tag><Key>{name}</Key><Value>{value}</Value></Tag>");
    let many: String = (0..100_000).map(|index| tag(&index.to_string(), "v")).collect();
    for tags in [tag("k", &"v".repeat(1 << 20)), tag(&"k".repeat(129), ""), many, tag("", "v")] {
        let body = format!("<Tagging><TagSet>{tags}</TagSet></Tagging>");
        let answer = client.request("PUT", "/bucket/k?tagging=", &[], body.as_bytes());
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    let large = "m".repeat(3000);
    let answer = client.request("PUT", "/bucket/k", &[("x-amz-meta-a", &large)], b"x");
    assert_eq!(answer.error(), (400, "MetadataTooLarge".to_owned()));
    assert_eq!(oracle.stats().held_bytes, held);
}

#[test]
fn a_copy_onto_itself_must_change_something() {
    let (oracle, client) = start(config());
    client.request("PUT", "/bucket/k", &[], b"content");
    let held = oracle.stats();
    let onto_itself = [("x-amz-copy-source", "/bucket/k")];
    let refused = client.request("PUT", "/bucket/k", &onto_itself, b"");
    assert_eq!(refused.error(), (400, "InvalidRequest".to_owned()));
    let replace = [("x-amz-copy-source", "/bucket/k"), ("x-amz-metadata-directive", "REPLACE")];
    assert_eq!(client.request("PUT", "/bucket/k", &replace, b"").status, 200);
    assert_eq!(client.request("GET", "/bucket/k", &[], b"").text(), "content");
    assert_eq!(oracle.stats(), held);
}
