//! Buckets and objects: writing, reading, ranges, deleting, capacity.

use plimsoll_oracle::OracleStats;

use crate::client::{Client, Payload, path};
use crate::{config, start};

#[test]
fn what_was_put_is_what_is_got() {
    let (oracle, client) = start(config());
    let headers = [("content-type", "text/x-ship"), ("x-amz-meta-line", "summer")];
    let put = client.request("PUT", "/bucket/ship", &headers, b"plimsoll");
    assert_eq!(put.status, 200);
    let etag = put.header("etag").unwrap();
    assert!(etag.starts_with("\"crc64-") && etag.ends_with("-8\""), "{etag}");

    for (method, body) in [("GET", b"plimsoll".as_slice()), ("HEAD", b"")] {
        let answer = client.request(method, "/bucket/ship", &[], b"");
        assert_eq!((answer.status, answer.body.as_slice()), (200, body), "{method}");
        for (name, value) in [
            ("content-length", "8"),
            ("content-type", "text/x-ship"),
            ("x-amz-meta-line", "summer"),
            ("accept-ranges", "bytes"),
            ("etag", etag),
        ] {
            assert_eq!(answer.header(name), Some(value), "{method} {name}");
        }
        assert!(answer.header("last-modified").is_some_and(|date| date.ends_with(" GMT")));
    }
    // Content, key, its type, metadata and 48 for its entry, and 256 for the rest.
    let held_bytes = 8 + 4 + 11 + (10 + 48) + 256;
    let stats = OracleStats { buckets_count: 1, objects_count: 1, held_bytes };
    assert_eq!(oracle.stats(), stats);

    assert_eq!(client.request("DELETE", "/bucket/ship", &[], b"").status, 204);
    assert_eq!(client.request("DELETE", "/bucket/ship", &[], b"").status, 204);
    let gone = client.request("GET", "/bucket/ship", &[], b"");
    assert_eq!(gone.error(), (404, "NoSuchKey".to_owned()));
    assert_eq!(client.request("HEAD", "/bucket/ship", &[], b"").status, 404);
    assert_eq!(oracle.stats(), OracleStats { objects_count: 0, held_bytes: 0, ..stats });
}

#[test]
fn objects_of_any_size_come_back_whole() {
    let (_oracle, client) = start(config());
    let client = Client { payload: Payload::Unsigned, ..client };
    for size in [0, 1, 1024, 65_536, 1_048_577, 10 << 20] {
        let content: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        assert_eq!(client.request("PUT", "/bucket/big", &[], &content).status, 200, "{size}");
        let got = client.request("GET", "/bucket/big", &[], b"");
        assert!(got.status == 200 && got.body == content, "{size}");
    }
}

#[test]
fn a_range_is_answered_as_rfc_9110_has_it() {
    let (_oracle, client) = start(config());
    client.request("PUT", "/bucket/digits", &[], b"0123456789");
    client.request("PUT", "/bucket/empty", &[], b"");
    for (range, body, content_range) in [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=2-5", "2345", "bytes 2-5/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=7-99", "789", "bytes 7-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=-99", "0123456789", "bytes 0-9/10"),
    ] {
        let answer = client.request("GET", "/bucket/digits", &[("range", range)], b"");
        assert_eq!((answer.status, answer.text()), (206, body), "{range}");
        assert_eq!(answer.header("content-range"), Some(content_range), "{range}");
    }
    for (key, range) in [
        ("digits", "bytes=10-"),
        ("digits", "bytes=10-11"),
        ("digits", "bytes=-0"),
        ("empty", "bytes=0-0"),
        ("empty", "bytes=-1"),
    ] {
        let answer = client.request("GET", &path("bucket", key), &[("range", range)], b"");
        assert_eq!(answer.error(), (416, "InvalidRange".to_owned()), "{key} {range}");
    }
}

#[test]
fn what_is_to_be_new_replaces_nothing() {
    let (oracle, client) = start(config());
    let new = [("if-none-match", "*")];
    assert_eq!(client.request("PUT", "/bucket/k", &new, b"first").status, 200);
    let held = oracle.stats();
    let again = client.request("PUT", "/bucket/k", &new, b"second");
    assert_eq!(again.error(), (412, "PreconditionFailed".to_owned()));
    // Nor does one that comes in parts, which can still be completed elsewise.
    let begun = client.request("POST", "/bucket/k?uploads=", &[], b"");
    let id = begun.elements("UploadId").remove(0);
    client.request("PUT", &format!("/bucket/k?partNumber=1&uploadId={id}"), &[], b"third");
    let parts = b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part>\
                  </CompleteMultipartUpload>";
    let target = format!("/bucket/k?uploadId={id}");
    let refused = client.request("POST", &target, &new, parts);
    assert_eq!(refused.error(), (412, "PreconditionFailed".to_owned()));
    assert_eq!(client.request("GET", "/bucket/k", &[], b"").text(), "first");
    assert_eq!(client.request("POST", &target, &[], parts).status, 200);
    assert_eq!(client.request("GET", "/bucket/k", &[], b"").text(), "third");
    assert_eq!(oracle.stats(), held, "as much as the first");
}

#[test]
fn what_is_added_at_the_end_is_read_with_the_rest() {
    let (oracle, client) = start(config());
    let append = |offset: &str, piece: &[u8]| {
        client.request("PUT", "/bucket/k", &[("x-amz-write-offset-bytes", offset)], piece)
    };
    for (offset, piece, size) in [("0", "first", "5"), ("5", ", second", "13"), ("13", "!", "14")] {
        let answer = append(offset, piece.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-amz-object-size"), Some(size));
    }
    for wrong in ["0", "13", "15"] {
        assert_eq!(append(wrong, b"x").error(), (400, "InvalidWriteOffset".to_owned()), "{wrong}");
    }
    let got = client.request("GET", "/bucket/k", &[], b"");
    assert_eq!((got.status, got.text()), (200, "first, second!"));
    let part = client.request("GET", "/bucket/k", &[("range", "bytes=3-8")], b"");
    assert_eq!((part.status, part.text()), (206, "st, se"));
    assert_eq!(oracle.stats().held_bytes, 14 + 1 + 256);
    // Who knows nothing of offsets writes it anew.
    assert_eq!(client.request("PUT", "/bucket/k", &[], b"new").status, 200);
    assert_eq!(oracle.stats().held_bytes, 3 + 1 + 256);
}

#[test]
fn a_body_that_is_not_what_was_said_is_not_stored() {
    let (oracle, client) = start(config());
    // `printf plimsoll | openssl md5 -binary | base64`; below `printf plimsoll | md5sum`.
    let md5 = [("content-md5", "KKlcFHFTzBcKJkykNttJ8A==")];
    let wrong = client.request("PUT", "/bucket/k", &md5, b"Plimsoll");
    assert_eq!(wrong.error(), (400, "BadDigest".to_owned()));
    let crc = [("x-amz-checksum-crc32c", "AAAAAA==")];
    let wrong = client.request("PUT", "/bucket/k", &crc, b"Plimsoll");
    assert_eq!(wrong.error(), (400, "BadDigest".to_owned()));
    let liar = Client { payload: Payload::SignedAs(b"Plimsoll"), ..client.clone() };
    let wrong = liar.request("PUT", "/bucket/k", &[], b"plimsoll");
    assert_eq!(wrong.error(), (400, "XAmzContentSHA256Mismatch".to_owned()));
    assert_eq!((oracle.stats().objects_count, oracle.stats().held_bytes), (0, 0));

    let right = client.request("PUT", "/bucket/k", &md5, b"plimsoll");
    assert_eq!(right.status, 200);
    assert_eq!(right.header("etag"), Some("\"28a95c147153cc170a264ca436db49f0\""));
}

#[test]
fn a_batch_is_deleted_and_told_unless_quiet() {
    let (oracle, client) = start(config());
    for key in ["a", "b & c", "d", "stays"] {
        client.request("PUT", &path("bucket", key), &[], b"x");
    }
    let batch = |quiet: &str, keys: &[&str]| {
        let objects: String =
            keys.iter().map(|key| format!("<Object><Key>{key}</Key></Object>")).collect();
        let body = format!("<Delete>{quiet}{objects}</Delete>");
        client.request("POST", "/bucket?delete=", &[], body.as_bytes())
    };
    let loud = batch("", &["a", "b &amp; c", "never was"]);
    assert_eq!(loud.status, 200);
    assert_eq!(loud.elements("Key"), ["a", "b & c", "never was"]);
    assert_eq!(loud.elements("Code"), [""; 0]);
    let quiet = batch("<Quiet>true</Quiet>", &["d"]);
    assert_eq!((quiet.status, quiet.elements("Key").len()), (200, 0));
    assert_eq!(oracle.stats().objects_count, 1);

    let thousand = vec!["stays"; 1000];
    assert_eq!(batch("", &thousand).status, 200);
    let malformed = (400, "MalformedXML".to_owned());
    assert_eq!(batch("", &vec!["x"; 1001]).error(), malformed);
    assert_eq!(batch("", &[]).error(), malformed);
    let no_xml = client.request("POST", "/bucket?delete=", &[], b"<Delete><Object>");
    assert_eq!(no_xml.error(), malformed);
}

#[test]
fn a_full_store_says_so_and_takes_more_after_a_delete() {
    let mut config = config();
    config.capacity_bytes = 9 << 20;
    let (_oracle, client) = start(config);
    let client = Client { payload: Payload::Unsigned, ..client };
    let content = vec![7; 8 << 20];
    assert_eq!(client.request("PUT", "/bucket/first", &[], &content).status, 200);
    let full = client.request("PUT", "/bucket/second", &[], &content);
    assert_eq!(full.error(), (507, "InsufficientStorage".to_owned()));
    assert_eq!(client.request("GET", "/bucket/second", &[], b"").status, 404);
    client.request("DELETE", "/bucket/first", &[], b"");
    assert_eq!(client.request("PUT", "/bucket/second", &[], &content).status, 200);
}

#[test]
fn buckets_come_and_go() {
    let (_oracle, client) = start(config());
    let again = client.request("PUT", "/bucket", &[], b"");
    assert_eq!(again.error(), (409, "BucketAlreadyOwnedByYou".to_owned()));
    assert_eq!(client.request("PUT", "/another", &[], b"").status, 200);
    assert_eq!(client.request("GET", "/", &[], b"").elements("Name"), ["another", "bucket"]);
    assert_eq!(client.request("HEAD", "/bucket", &[], b"").status, 200);
    assert_eq!(client.request("HEAD", "/nowhere", &[], b"").status, 404);
    let location = client.request("GET", "/bucket?location", &[], b"");
    assert_eq!(location.status, 200);
    assert!(location.text().contains("<LocationConstraint"), "{}", location.text());

    client.request("PUT", "/bucket/k", &[], b"x");
    let kept = client.request("DELETE", "/bucket", &[], b"");
    assert_eq!(kept.error(), (409, "BucketNotEmpty".to_owned()));
    assert_eq!(client.request("DELETE", "/another", &[], b"").status, 204);

    let nowhere = (404, "NoSuchBucket".to_owned());
    for (method, target) in [
        ("DELETE", "/nowhere"),
        ("GET", "/nowhere?location"),
        ("GET", "/nowhere?list-type=2"),
        ("GET", "/nowhere/k"),
        ("PUT", "/nowhere/k"),
        ("DELETE", "/nowhere/k"),
    ] {
        assert_eq!(client.request(method, target, &[], b"").error(), nowhere, "{method} {target}");
    }
}

#[test]
fn what_is_not_offered_is_refused_and_not_ignored() {
    let (_oracle, client) = start(config());
    client.request("PUT", "/bucket/k", &[], b"x");
    for (method, target, headers) in [
        ("PUT", "/bucket/k", [("if-none-match", "\"x\"")].as_slice()),
        ("PUT", "/bucket/k", &[("x-amz-acl", "public-read")]),
        ("DELETE", "/bucket/k", &[("x-amz-if-match-size", "1")]),
        ("PUT", "/bucket?policy", &[]),
        ("PUT", "/bucket?lifecycle", &[]),
    ] {
        let answer = client.request(method, target, headers, b"");
        assert_eq!(answer.error(), (501, "NotImplemented".to_owned()), "{method} {target}");
        assert_ne!(answer.elements("Message"), [""; 0], "it says what");
    }
}
