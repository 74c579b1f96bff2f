//! What S3 has beyond plain objects, over the wire: versions, checksums behind the content,
//! archives, and a script that rules the newer calls too.

use plimsoll_oracle::{Oracle, OracleConfig, Script};

use crate::client::{Client, Payload};
use crate::{client, config, start};

const ENABLED: &[u8] =
    b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";

#[test]
fn a_mark_of_deletion_is_told_by_headers() {
    let (_oracle, client) = start(config());
    assert_eq!(client.request("PUT", "/bucket?versioning=", &[], ENABLED).status, 200);
    let first = client.request("PUT", "/bucket/k", &[], b"first");
    let first = first.header("x-amz-version-id").unwrap().to_owned();
    let gone = client.request("DELETE", "/bucket/k", &[], b"");
    assert_eq!((gone.status, gone.header("x-amz-delete-marker")), (204, Some("true")));
    let marker = gone.header("x-amz-version-id").unwrap();
    let hidden = client.request("GET", "/bucket/k", &[], b"");
    assert_eq!(hidden.error(), (404, "NoSuchKey".to_owned()));
    assert_eq!(hidden.header("x-amz-delete-marker"), Some("true"));
    let named = client.request("HEAD", &format!("/bucket/k?versionId={marker}"), &[], b"");
    assert_eq!((named.status, named.header("x-amz-version-id")), (405, Some(marker)));
    let old = client.request("GET", &format!("/bucket/k?versionId={first}"), &[], b"");
    assert_eq!((old.status, old.text()), (200, "first"));
    let never = client.request("GET", "/bucket/k?versionId=never", &[], b"");
    assert_eq!(never.error(), (400, "InvalidArgument".to_owned()));
    let bring_back = format!("/bucket/k?versionId={marker}");
    assert_eq!(client.request("DELETE", &bring_back, &[], b"").status, 204);
    assert_eq!(client.request("GET", "/bucket/k", &[], b"").text(), "first");
}

/// The body of `STREAMING-UNSIGNED-PAYLOAD-TRAILER`, in the S3 API reference's form.
fn chunked(content: &str, checksum: &str) -> String {
    format!("{:x}\r\n{content}\r\n0\r\nx-amz-checksum-crc32c:{checksum}\r\n\r\n", content.len())
}

#[test]
fn a_checksum_behind_the_content_is_checked_and_kept() {
    let mut open = config();
    open.anonymous = true;
    let (oracle, client) = start(open);
    let put = |checksum: &str| {
        let client = Client { payload: Payload::Trailer, ..client.clone() };
        let headers = [
            ("content-encoding", "aws-chunked"),
            ("x-amz-decoded-content-length", "9"),
            ("x-amz-trailer", "x-amz-checksum-crc32c"),
        ];
        client.request("PUT", "/bucket/k", &headers, chunked("123456789", checksum).as_bytes())
    };
    // CRC-32C's check value is E3069283.
    assert_eq!(put("AAAAAA==").error(), (400, "BadDigest".to_owned()));
    assert_eq!(oracle.stats().objects_count, 0);
    let right = put("4waSgw==");
    assert_eq!(right.status, 200, "{}", right.text());
    let mode = [("x-amz-checksum-mode", "ENABLED")];
    let head = client.request("HEAD", "/bucket/k", &mode, b"");
    assert_eq!(head.header("x-amz-checksum-crc32c"), Some("4waSgw=="));
    assert_eq!(head.header("content-encoding"), None, "that was only on the wire");
    // Nobody would take the chunks of who does not sign apart.
    let nobody = Client { keys: None, ..client };
    let headers = [("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")];
    let unsigned = nobody.request("PUT", "/bucket/k", &headers, chunked("1", "").as_bytes());
    assert_eq!(unsigned.error(), (501, "NotImplemented".to_owned()));
}

#[test]
fn archives_are_read_out_of_and_taken_apart() {
    let (oracle, client) = start(config());
    let mut tar = tar::Builder::new(Vec::new());
    let long = "d/".repeat(90) + "long";
    for (name, content) in [("a/one", &b"first"[..]), (&long, b"second")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, content).unwrap();
    }
    let tar = tar.into_inner().unwrap();
    let packed = zstd::stream::encode_all(&tar[..], 1).unwrap();
    let take_apart = [
        ("x-amz-meta-snowball-auto-extract", "true"),
        ("x-amz-meta-minio-snowball-prefix", "p/"),
        ("x-amz-meta-ship", "plimsoll"),
    ];
    for archive in [&tar, &packed] {
        assert_eq!(client.request("PUT", "/bucket/x.tar", &take_apart, archive).status, 200);
        let one = client.request("GET", "/bucket/p/a/one", &[], b"");
        assert_eq!((one.text(), one.header("x-amz-meta-ship")), ("first", Some("plimsoll")));
        assert_eq!(one.header("x-amz-meta-snowball-auto-extract"), None);
        let two = client.request("GET", &format!("/bucket/p/{long}"), &[], b"");
        assert_eq!(two.text(), "second");
        assert_eq!(client.request("HEAD", "/bucket/x.tar", &[], b"").status, 404);
        assert_eq!(oracle.stats().objects_count, 2);
    }
    let cut = client.request("PUT", "/bucket/x.tar", &take_apart, &tar[..700]);
    assert_eq!(cut.error().0, 400);
    let garbage = client.request("PUT", "/bucket/x.tar", &take_apart, &[b'x'; 2000]);
    assert_eq!(garbage.error().0, 400);

    let extract = [("x-minio-extract", "true")];
    client.request("PUT", "/bucket/no.zip", &[], b"not an archive");
    let no_zip = client.request("GET", "/bucket/no.zip/one", &extract, b"");
    assert_eq!(no_zip.error(), (400, "InvalidRequest".to_owned()));
    let nothing = client.request("GET", "/bucket/none.zip/one", &extract, b"");
    assert_eq!(nothing.error(), (404, "NoSuchKey".to_owned()));
}

#[test]
fn every_etag_is_md5_where_that_is_wanted() {
    let (_oracle, client) = start(OracleConfig { md5_etags: true, ..config() });
    let put = client.request("PUT", "/bucket/k", &[], b"plimsoll");
    // `printf plimsoll | md5sum`.
    assert_eq!(put.header("etag"), Some("\"28a95c147153cc170a264ca436db49f0\""));
    let copied = client.request("PUT", "/bucket/c", &[("x-amz-copy-source", "/bucket/k")], b"");
    assert_eq!(copied.elements("ETag"), ["\"28a95c147153cc170a264ca436db49f0\""]);
}

#[test]
fn a_script_rules_the_newer_calls_and_its_ledger_counts_them() {
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1us}}\n\
                  faults: {retention: {status: {503: 1}}}\n";
    let script = Some(Script::from_yaml(script).unwrap());
    let oracle = Oracle::start(OracleConfig { script, ..config() }).unwrap();
    let client = client(&oracle);
    client.request("PUT", "/bucket", &[], b"");
    client.request("PUT", "/bucket?versioning=", &[], ENABLED);
    assert_eq!(client.request("PUT", "/bucket/k", &[], b"x").status, 200);
    let copy = client.request("PUT", "/bucket/c", &[("x-amz-copy-source", "/bucket/k")], b"");
    assert_eq!(copy.status, 200);
    assert_eq!(client.request("GET", "/bucket?versions=", &[], b"").elements("Key"), ["c", "k"]);
    let tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    assert_eq!(client.request("PUT", "/bucket/k?tagging=", &[], tags).status, 503);
    let got = client.request("GET", "/bucket/k?tagging=", &[], b"");
    assert_eq!((got.status, got.elements("Value").len()), (200, 0), "nothing was set");
    let other = [("if-match", "\"other\"")];
    assert_eq!(client.request("GET", "/bucket/k", &other, b"").status, 412);
    let ledger = oracle.ledger().unwrap().to_json();
    let kinds = ledger["kinds"].as_array().unwrap();
    let count = |kind: &str, class: &str| {
        let row = kinds.iter().find(|row| row["kind"] == kind).unwrap();
        row["classes"][class].clone()
    };
    let counts = [
        ("PUT", "ok", 2),
        ("LIST", "ok", 1),
        ("RETENTION", "server", 1),
        ("STAT", "ok", 1),
        ("GET", "precondition", 1),
    ];
    for (kind, class, expected) in counts {
        assert_eq!(count(kind, class), expected, "{kind} {class}: {ledger:#}");
    }
}

#[test]
fn a_form_may_name_many_keys() {
    let mut open = config();
    open.anonymous = true;
    let (oracle, client) = start(open);
    let nobody = Client { keys: None, payload: Payload::Unsigned, ..client };
    let field = |name: &str, value: &str| {
        format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let post = |list: &str| {
        let form = field("key", "k")
            + &field("x-minio-fanout-list", list)
            + "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
            + "content\r\n--B--\r\n";
        let kind = [("content-type", "multipart/form-data; boundary=B")];
        nobody.request("POST", "/bucket", &kind, form.as_bytes())
    };
    let answer = post("{\"key\":\"a\"}\n{\"key\":\"b/c\"}");
    assert_eq!((answer.status, answer.text().lines().count()), (200, 2), "{}", answer.text());
    assert!(answer.text().lines().all(|line| line.contains("\"etag\"")), "{}", answer.text());
    for key in ["a", "b/c"] {
        let got = nobody.request("GET", &format!("/bucket/{key}"), &[], b"");
        assert_eq!(got.text(), "content");
    }
    let held = oracle.stats();
    assert_eq!(held.objects_count, 2, "and none under the key of the form");
    // What the copies share counts once, and what a copy of one takes is its key.
    assert_eq!(held.held_bytes, 7 + (256 + 1) + (256 + 3));
    let copied = nobody.request("PUT", "/bucket/c", &[("x-amz-copy-source", "/bucket/a")], b"");
    assert_eq!(copied.status, 200);
    assert_eq!(oracle.stats().held_bytes, held.held_bytes + 256 + 1);
    for key in ["a", "b/c", "c"] {
        assert_eq!(nobody.request("DELETE", &format!("/bucket/{key}"), &[], b"").status, 204);
    }
    assert_eq!(oracle.stats().held_bytes, 0);
    assert_eq!(post("no JSON").error(), (400, "InvalidRequest".to_owned()));
}

#[test]
fn a_form_that_arrives_in_large_pieces_is_read_as_a_whole() {
    let (_oracle, client) = start(OracleConfig { anonymous: true, ..config() });
    let nobody = Client { keys: None, payload: Payload::Unsigned, ..client };
    // Wherever a piece of it ends, it ends like the boundary begins.
    let content = vec![b'\r'; 4 << 20];
    let field = b"--B\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk\r\n--B\r\n\
                  Content-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";
    let form = [&field[..], &content, b"\r\n--B--\r\n"].concat();
    let kind = [("content-type", "multipart/form-data; boundary=B")];
    for _ in 0..4 {
        let posted = nobody.request("POST", "/bucket", &kind, &form);
        assert!(matches!(posted.status, 200 | 204), "{}", posted.text());
    }
    assert!(nobody.request("GET", "/bucket/k", &[], b"").body == content);
}
