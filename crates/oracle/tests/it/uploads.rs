//! Uploads in parts: beginning, parts, completion, giving up, listing, reading by part.

use crate::client::{Client, Payload, path};
use crate::{config, start};

const PART_BYTES: usize = 5 << 20;

fn begin(client: &Client, key: &str) -> String {
    let begun = client.request("POST", &format!("{}?uploads=", path("bucket", key)), &[], b"");
    assert_eq!(begun.status, 200, "{}", begun.text());
    begun.elements("UploadId").remove(0)
}

/// Returns the ETag of the part.
fn put_part(client: &Client, key: &str, id: &str, number: usize, content: &[u8]) -> String {
    let target = format!("{}?partNumber={number}&uploadId={id}", path("bucket", key));
    let put = client.request("PUT", &target, &[], content);
    assert_eq!(put.status, 200, "{}", put.text());
    put.header("etag").unwrap().to_owned()
}

fn completion(parts: &[(usize, &str)]) -> Vec<u8> {
    let part = |(number, tag): &(usize, &str)| {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>").into_bytes()
}

#[test]
fn parts_become_an_object_that_is_read_whole_and_by_part() {
    let (oracle, client) = start(config());
    let client = Client { payload: Payload::Unsigned, ..client };
    let headers = [("content-type", "text/x-ship"), ("x-amz-meta-line", "summer")];
    let begun = client.request("POST", "/bucket/a%20b?uploads=", &headers, b"");
    let id = begun.elements("UploadId").remove(0);
    assert_eq!((begun.elements("Key"), begun.status), (vec!["a b".to_owned()], 200));
    let (first, second) = (vec![1; PART_BYTES], vec![2; 77]);
    let tags =
        [put_part(&client, "a b", &id, 1, &first), put_part(&client, "a b", &id, 4, &second)];
    let listed = client.request("GET", &format!("/bucket/a%20b?uploadId={id}"), &[], b"");
    assert_eq!(listed.elements("PartNumber"), ["1", "4"]);
    assert_eq!(listed.elements("Size"), [PART_BYTES.to_string(), "77".to_owned()]);
    assert_eq!(client.request("GET", "/bucket/a%20b", &[], b"").status, 404, "not yet");

    let body = completion(&[(1, &tags[0]), (4, &tags[1])]);
    let target = format!("/bucket/a%20b?uploadId={id}");
    let done = client.request("POST", &target, &[], &body);
    assert_eq!(done.status, 200, "{}", done.text());
    let etag = done.elements("ETag").remove(0);
    assert!(etag.ends_with("-2\""), "{etag}");

    let whole = client.request("GET", "/bucket/a%20b", &[], b"");
    assert!(whole.status == 200 && whole.body == [first.clone(), second.clone()].concat());
    assert_eq!(whole.header("etag"), Some(&*etag));
    assert_eq!(whole.header("content-type"), Some("text/x-ship"));
    assert_eq!(whole.header("x-amz-meta-line"), Some("summer"));
    for (number, content, range) in [
        (1, &first, format!("bytes 0-{}/{}", PART_BYTES - 1, PART_BYTES + 77)),
        (2, &second, format!("bytes {PART_BYTES}-{}/{}", PART_BYTES + 76, PART_BYTES + 77)),
    ] {
        let target = format!("/bucket/a%20b?partNumber={number}");
        let part = client.request("GET", &target, &[], b"");
        assert!(part.status == 206 && part.body == *content, "{number}");
        assert_eq!(part.header("content-range"), Some(&*range));
        assert_eq!(part.header("x-amz-mp-parts-count"), Some("2"));
    }
    let beyond = client.request("GET", "/bucket/a%20b?partNumber=3", &[], b"");
    assert_eq!(beyond.error(), (416, "InvalidPartNumber".to_owned()));
    // Its type and its metadata count too.
    let said_bytes = 11 + (10 + 48);
    assert_eq!(oracle.stats().held_bytes, (PART_BYTES + 77 + 3 + said_bytes + 256) as u64);
}

#[test]
fn what_cannot_be_completed_says_why_in_the_words_of_s3() {
    let (_oracle, client) = start(config());
    let client = Client { payload: Payload::Unsigned, ..client };
    let id = begin(&client, "k");
    let small = put_part(&client, "k", &id, 1, b"small");
    let large = put_part(&client, "k", &id, 2, &vec![0; PART_BYTES]);
    let target = format!("/bucket/k?uploadId={id}");
    for (parts, status, code) in [
        (&[][..], 400, "MalformedXML"),
        (&[(1, &*small), (2, &*large)], 400, "EntityTooSmall"),
        (&[(2, &large), (1, &small)], 400, "InvalidPartOrder"),
        (&[(3, &small)], 400, "InvalidPart"),
        (&[(1, &large)], 400, "InvalidPart"),
    ] {
        let answer = client.request("POST", &target, &[], &completion(parts));
        assert_eq!(answer.error(), (status, code.to_owned()), "{parts:?}");
    }
    for number in ["0", "10001", "-1"] {
        let target = format!("/bucket/k?partNumber={number}&uploadId={id}");
        let answer = client.request("PUT", &target, &[], b"x");
        assert_eq!(answer.error(), (400, "InvalidArgument".to_owned()), "{number}");
    }
    let target_unknown = "/bucket/k?partNumber=1&uploadId=unknown";
    let nowhere = (404, "NoSuchUpload".to_owned());
    assert_eq!(client.request("PUT", target_unknown, &[], b"x").error(), nowhere);
    assert_eq!(client.request("DELETE", &target, &[], b"").status, 204);
    assert_eq!(client.request("DELETE", &target, &[], b"").error(), nowhere);
    let late = client.request("POST", &target, &[], &completion(&[(1, &small)]));
    assert_eq!(late.error(), nowhere);
}

#[test]
fn uploads_under_way_are_listed_and_count_as_held() {
    let (oracle, client) = start(config());
    let before = oracle.stats().held_bytes;
    let ids = ["a/1", "a/2", "b"].map(|key| begin(&client, key));
    put_part(&client, "a/2", &ids[1], 1, b"12345678");
    assert_eq!(oracle.stats().held_bytes, before + (3 + 3 + 1) + 3 * 256 + (8 + 3 + 256));
    let listed = client.request("GET", "/bucket?uploads=&prefix=a%2F", &[], b"");
    assert_eq!(listed.elements("Key"), ["a/1", "a/2"]);
    assert_eq!(listed.elements("UploadId"), ids[..2]);
    let page = client.request("GET", "/bucket?uploads=&max-uploads=1", &[], b"");
    assert_eq!(page.elements("IsTruncated"), ["true"]);
    let (key, id) = (page.elements("NextKeyMarker"), page.elements("NextUploadIdMarker"));
    assert_eq!((&*key[0], &id[0]), ("a/1", &ids[0]));
    let target = format!("/bucket?uploads=&key-marker=a%2F1&upload-id-marker={}", ids[0]);
    let rest = client.request("GET", &target, &[], b"");
    assert_eq!(rest.elements("Key"), ["a/2", "b"]);
    assert_eq!(rest.elements("IsTruncated"), ["false"]);
}

#[test]
fn a_part_that_is_not_what_was_said_is_not_stored() {
    let (_oracle, client) = start(config());
    let id = begin(&client, "k");
    let target = format!("/bucket/k?partNumber=1&uploadId={id}");
    // `printf plimsoll | openssl md5 -binary | base64`.
    let md5 = [("content-md5", "KKlcFHFTzBcKJkykNttJ8A==")];
    let wrong = client.request("PUT", &target, &md5, b"Plimsoll");
    assert_eq!(wrong.error(), (400, "BadDigest".to_owned()));
    let listed = client.request("GET", &format!("/bucket/k?uploadId={id}"), &[], b"");
    assert_eq!((listed.status, listed.elements("PartNumber").len()), (200, 0));
    assert_eq!(client.request("PUT", &target, &md5, b"plimsoll").status, 200);
}
