//! The operations beyond reading and writing, against a server that plays a script.

use std::pin::pin;
use std::task::Poll;

use plimsoll_driver::{Completion, Driver, Operation, Session, Settled};
use plimsoll_driver_s3::{Checksum, RequestOptions, S3Driver, S3Session};
use plimsoll_model::ErrorClass;

use super::common::{self, Kept, Pattern, block_on, failed, pattern};
use super::fake::{Fake, Step, answer, answer_with, error_xml};

fn session(fake: &Fake, options: RequestOptions) -> S3Session {
    let mut config = common::config(fake.port);
    config.options = options;
    S3Driver::new(config).unwrap().open_sessions(&common::clock(), 1).pop().unwrap()
}

fn done(fake: &Fake, options: RequestOptions, operation: Operation<'_>) -> Completion {
    block_on(session(fake, options).execute(None, operation))
}

/// One part at a time, so that the script knows which comes next.
fn in_parts(part_size: u64) -> RequestOptions {
    RequestOptions { part_size: Some(part_size), part_concurrency: 1, ..RequestOptions::default() }
}

const BEGUN: &str = "<InitiateMultipartUploadResult><UploadId>u/1</UploadId>\
                     </InitiateMultipartUploadResult>";
const COMPLETE: &str = "<CompleteMultipartUploadResult><ETag>e</ETag>\
                        </CompleteMultipartUploadResult>";

fn part(etag: &str) -> String {
    answer_with(200, &format!("ETag: \"{etag}\"\r\n"), "")
}

#[test]
fn what_came_of_a_request_is_in_its_tag() {
    let version = |status| answer_with(status, "x-amz-version-id: v1\r\n", "");
    let fake = Fake::answering([version(200), answer(200, ""), answer(200, BEGUN), part("e1")]);
    block_on(async {
        let mut session = session(&fake, RequestOptions::default());
        let mut tag = async |operation: Operation<'_>| {
            let completion = session.execute(None, operation).await;
            assert_eq!(completion.result, Ok(()));
            completion.server_name.map(String::from)
        };
        let content = &mut Pattern(3);
        assert_eq!(tag(Operation::Put { key: "k", content }).await.as_deref(), Some("v1"));
        let content = &mut Pattern(3);
        assert_eq!(tag(Operation::Put { key: "k", content }).await, None);
        assert_eq!(tag(Operation::CreateUpload { key: "k" }).await.as_deref(), Some("u/1"));
        let content = &mut Pattern(3);
        let put = Operation::PutPart { key: "k", upload: "u/1", number: 1, content };
        assert_eq!(tag(put).await.as_deref(), Some("\"e1\""));
    });
}

#[test]
fn an_operation_goes_to_the_bucket_that_it_names() {
    let failed_part = answer(503, "");
    let steps = [answer(200, "x"), answer(204, ""), answer(200, "x"), answer(200, BEGUN)];
    let fake = Fake::answering(steps.into_iter().chain([failed_part, answer(204, "")]));
    block_on(async {
        let mut session = session(&fake, in_parts(10));
        let mut kept = Kept::default();
        for bucket in [Some("other-2"), None] {
            let get = Operation::Get { key: "k", range: None, version: None, sink: &mut kept };
            assert_eq!(session.execute(bucket, get).await.result, Ok(()));
            if bucket.is_some() {
                let content = &mut Pattern(3);
                let post = Operation::Post { key: "k", content };
                assert_eq!(session.execute(bucket, post).await.result, Ok(()));
            }
        }
        let put = Operation::Put { key: "k", content: &mut Pattern(25) };
        assert!(session.execute(Some("other-2"), put).await.result.is_err());
        // What was begun in a bucket is given up there.
        assert_eq!(session.settle().await.given_up_count, 1);
        let get = Operation::Get { key: "k", range: None, version: None, sink: &mut kept };
        let refused = session.execute(Some("no/bucket"), get).await.result.unwrap_err();
        assert_eq!(refused.class, ErrorClass::Client);
    });
    let requests = fake.requests();
    let lines: Vec<&str> = requests.iter().map(|head| head.lines().next().unwrap()).collect();
    assert_eq!(
        lines,
        [
            "GET /other-2/k HTTP/1.1",
            "POST /other-2 HTTP/1.1",
            "GET /bucket/k HTTP/1.1",
            "POST /other-2/k?uploads= HTTP/1.1",
            "PUT /other-2/k?partNumber=1&uploadId=u%2F1 HTTP/1.1",
            "DELETE /other-2/k?uploadId=u%2F1 HTTP/1.1",
        ]
    );
}

#[test]
fn a_large_object_goes_in_parts_as_one_operation() {
    let complete = answer_with(200, "x-amz-version-id: v7\r\n", COMPLETE);
    let fake = Fake::answering([answer(200, BEGUN), part("a"), part("b"), part("c"), complete]);
    let put = Operation::Put { key: "k", content: &mut Pattern(25) };
    let completion = done(&fake, in_parts(10), put);
    assert_eq!(completion.result, Ok(()));
    assert_eq!((completion.bytes, completion.objects_count), (25, 1));
    assert_eq!(completion.server_name.as_deref(), Some("v7"));
    assert!(completion.last_byte_sent < completion.first_byte);
    assert!(completion.first_byte <= Some(completion.end));
    let requests = fake.requests();
    assert!(requests[0].starts_with("POST /bucket/k?uploads= "));
    for (index, range) in [(1, 0..10), (2, 10..20), (3, 20..25)] {
        let request = &requests[index];
        let line = format!("PUT /bucket/k?partNumber={index}&uploadId=u%2F1 ");
        assert!(request.starts_with(&line), "{request}");
        let content = String::from_utf8_lossy(&pattern(range)).into_owned();
        assert!(request.ends_with(&format!("\r\n\r\n{content}")), "{request}");
    }
    assert!(requests[4].starts_with("POST /bucket/k?uploadId=u%2F1 "));
    for (number, etag) in [(1, "a"), (2, "b"), (3, "c")] {
        let named = format!("<PartNumber>{number}</PartNumber><ETag>\"{etag}\"</ETag>");
        assert!(requests[4].contains(&named), "{}", requests[4]);
    }
}

#[test]
fn as_large_as_a_part_is_not_larger() {
    let fake = Fake::answering([answer(200, ""), answer(200, "")]);
    let content = &mut Pattern(10);
    assert_eq!(done(&fake, in_parts(10), Operation::Put { key: "k", content }).result, Ok(()));
    let options = RequestOptions { disable_multipart: true, ..in_parts(10) };
    let content = &mut Pattern(11);
    assert_eq!(done(&fake, options, Operation::Put { key: "k", content }).result, Ok(()));
    assert!(fake.requests().iter().all(|request| request.starts_with("PUT /bucket/k HTTP")));
}

#[test]
fn an_upload_that_fails_is_given_up_when_the_session_settles() {
    let error = |code| answer(500, &error_xml(code));
    let late_error = || answer(200, &format!("   \r\n {}", error_xml("InternalError")));
    let scripts: [(Vec<String>, ErrorClass, u16, u64); 4] = [
        (vec![part("a"), error("InternalError")], ErrorClass::Server, 500, 10),
        (vec![answer(200, "")], ErrorClass::Protocol, 200, 0),
        (vec![part("a"), part("b"), part("c"), late_error()], ErrorClass::Server, 200, 25),
        (vec![part("a"), part("b"), part("c"), answer(200, "")], ErrorClass::Protocol, 200, 25),
    ];
    for (script, class, status, bytes) in scripts {
        let steps_count = script.len();
        let begun = std::iter::once(answer(200, BEGUN));
        let fake = Fake::answering(begun.chain(script).chain([answer(204, "")]));
        let put = Operation::Put { key: "k", content: &mut Pattern(25) };
        block_on(async {
            let mut session = session(&fake, in_parts(10));
            let completion = session.execute(None, put).await;
            failed(&completion, class, Some(status));
            assert_eq!((completion.objects_count, completion.bytes), (0, bytes));
            assert_eq!(fake.requests().len(), steps_count + 1, "not in the operation's own time");
            let settled = Settled { given_up_count: 1, left_count: 0 };
            assert_eq!(session.settle().await, settled);
            assert_eq!(session.settle().await, Settled::default(), "once is enough");
        });
        let requests = fake.requests();
        assert_eq!(requests.len(), steps_count + 2);
        assert!(requests.last().unwrap().starts_with("DELETE /bucket/k?uploadId=u%2F1 "));
    }
    // Where no upload began, there is nothing to give up.
    let fake = Fake::answering([error("InternalError"), answer(200, "<Other/>")]);
    for (class, status) in [(ErrorClass::Server, 500), (ErrorClass::Protocol, 200)] {
        let put = Operation::Put { key: "k", content: &mut Pattern(25) };
        failed(&done(&fake, in_parts(10), put), class, Some(status));
    }
    assert_eq!(fake.requests().len(), 2);
}

#[test]
fn an_upload_that_is_abandoned_is_given_up_in_the_time_of_no_operation() {
    let fake = Fake::start([
        Step::Answer(answer(200, BEGUN)),
        Step::Ignore,
        Step::Answer(answer_with(200, "", "")),
        Step::Answer(answer(500, "")),
    ]);
    block_on(async {
        let mut session = session(&fake, in_parts(10));
        let mut content = Pattern(25);
        {
            let put = Operation::Put { key: "k", content: &mut content };
            let mut operation = pin!(session.execute(None, put));
            // The part is on its way when the operation is given up.
            while fake.requests().len() < 2 {
                let polled =
                    std::future::poll_fn(|cx| Poll::Ready(operation.as_mut().poll(cx))).await;
                assert!(polled.is_pending());
                tokio::task::yield_now().await;
            }
        }
        let stated = session.execute(None, Operation::Stat { key: "other", version: None }).await;
        assert_eq!(stated.result, Ok(()));
        let settled = Settled { given_up_count: 0, left_count: 1 };
        assert_eq!(session.settle().await, settled, "the server refused");
    });
    let requests = fake.requests();
    assert!(requests[2].starts_with("HEAD /bucket/other "), "{}", requests[2]);
    assert!(requests[3].starts_with("DELETE /bucket/k?uploadId=u%2F1 "), "{}", requests[3]);
}

#[test]
fn checksums_follow_content_and_parts_are_named_with_theirs() {
    let fake = Fake::answering([answer(200, BEGUN), part("a"), part("b"), answer(200, COMPLETE)]);
    let options = RequestOptions { checksum: Some(Checksum::Crc32), ..in_parts(9) };
    let mut digits = Digits(18);
    let put = Operation::Put { key: "k", content: &mut digits };
    let completion = done(&fake, options, put);
    assert_eq!((completion.result, completion.bytes), (Ok(()), 18));
    let requests = fake.requests();
    assert!(requests[0].contains("x-amz-checksum-algorithm: CRC32\r\n"));
    assert!(requests[0].contains("x-amz-checksum-type: COMPOSITE\r\n"));
    // The check value of CRC-32, 0xcbf43926, in base 64.
    let body = "\r\n\r\n9\r\n123456789\r\n0\r\nx-amz-checksum-crc32:y/Q5Jg==\r\n\r\n";
    for request in &requests[1..3] {
        assert!(request.ends_with(body), "{request}");
        assert!(request.contains("x-amz-decoded-content-length: 9\r\n"), "{request}");
    }
    let named = "<ETag>\"b\"</ETag><ChecksumCRC32>y/Q5Jg==</ChecksumCRC32>";
    assert!(requests[3].contains(named), "{}", requests[3]);
}

/// The digits 1 to 9, again and again.
struct Digits(u64);

impl plimsoll_driver::ContentSource for Digits {
    fn size(&self) -> u64 {
        self.0
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        for (i, byte) in (offset..).zip(buffer) {
            *byte = b'1' + (i % 9) as u8;
        }
    }
}

#[test]
fn a_part_may_lie_anywhere_and_a_member_stands_behind_its_archive() {
    let ranged = answer_with(206, "Content-Range: bytes 5-7/8\r\n", "567");
    let fake = Fake::answering([ranged, answer(200, "whole"), answer(200, "file")]);
    block_on(async {
        let mut session = session(&fake, RequestOptions::default());
        for (number, content, object_size) in [(2, "567", 8), (1, "whole", 5)] {
            let mut kept = Kept::default();
            let operation = Operation::GetPart { key: "k", number, sink: &mut kept };
            let completion = session.execute(None, operation).await;
            assert_eq!((completion.result, completion.object_size), (Ok(()), Some(object_size)));
            assert_eq!(
                (kept.bytes.as_slice(), completion.bytes),
                (content.as_bytes(), content.len() as u64)
            );
        }
        let mut kept = Kept::default();
        let operation = Operation::GetMember { key: "a.zip", member: "d/f", sink: &mut kept };
        assert_eq!(session.execute(None, operation).await.result, Ok(()));
        assert_eq!(kept.bytes, b"file");
    });
    let requests = fake.requests();
    assert!(requests[0].starts_with("GET /bucket/k?partNumber=2 "));
    assert!(requests[2].starts_with("GET /bucket/a.zip/d/f "));
    assert!(requests[2].contains("x-minio-extract: true\r\n"));
}

#[test]
fn appending_says_where_and_an_archive_what_becomes_of_it() {
    let fake = Fake::answering([answer(200, ""), answer(200, "")]);
    let append = Operation::Append { key: "k", offset: 77, content: &mut Pattern(5) };
    let completion = done(&fake, RequestOptions::default(), append);
    assert_eq!((completion.result, completion.bytes), (Ok(()), 5));
    let archive = Operation::PutArchive { key: "k.tar", archive: &mut Pattern(9), members: 3 };
    let completion = done(&fake, RequestOptions::default(), archive);
    assert_eq!((completion.result, completion.bytes, completion.objects_count), (Ok(()), 9, 3));
    let requests = fake.requests();
    assert!(requests[0].contains("x-amz-write-offset-bytes: 77\r\n"));
    assert!(requests[1].contains("x-amz-meta-snowball-auto-extract: true\r\n"));
}

#[test]
fn versions_are_listed_page_after_page() {
    let pages = [
        "<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
         <NextKeyMarker>a%2Bb</NextKeyMarker><NextVersionIdMarker>v/1</NextVersionIdMarker>\
         <Version><Key>a%2Bb</Key><VersionId>v/1</VersionId><Size>5</Size></Version>\
         </ListVersionsResult>",
        "<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>\
         <DeleteMarker><Key>a%2Bb</Key><VersionId>v0</VersionId></DeleteMarker>\
         <Version><Key>c</Key><VersionId>null</VersionId><Size>7</Size></Version>\
         </ListVersionsResult>",
    ];
    let fake = Fake::answering(pages.map(|page| answer(200, page)));
    let mut kept = Kept::default();
    let list =
        Operation::ListVersions { prefix: "", page_size: 1, pages_max: None, sink: &mut kept };
    let completion = done(&fake, RequestOptions::default(), list);
    assert_eq!((completion.result, completion.objects_count), (Ok(()), 3));
    let entries: Vec<(&str, u64)> =
        kept.entries.iter().map(|entry| (entry.0.as_str(), entry.1)).collect();
    assert_eq!(entries, [("a+b", 5), ("a+b", 0), ("c", 7)]);
    let second = &fake.requests()[1];
    assert!(second.contains("&key-marker=a%2Bb&"), "{second}");
    assert!(second.contains("&version-id-marker=v%2F1&versions= "), "{second}");

    let endless = "<ListVersionsResult><IsTruncated>true</IsTruncated></ListVersionsResult>";
    let fake = Fake::answering([answer(200, endless), answer(200, BEGUN)]);
    for _ in 0..2 {
        let list =
            Operation::ListVersions { prefix: "", page_size: 1, pages_max: None, sink: &mut kept };
        failed(&done(&fake, RequestOptions::default(), list), ErrorClass::Protocol, Some(200));
    }
}

#[test]
fn retention_and_the_removal_of_a_version() {
    let fake = Fake::answering([
        answer(200, ""),
        answer(204, ""),
        answer(404, &error_xml("NoSuchVersion")),
        answer(403, &error_xml("AccessDenied")),
    ]);
    let until = plimsoll_model::WallTime::from_unix_ns(1_369_353_600_000_000_000);
    let retain = Operation::Retain { key: "k", version: Some("v1"), until };
    assert_eq!(done(&fake, RequestOptions::default(), retain).result, Ok(()));
    for denied in [false, false, true] {
        let remove = Operation::DeleteVersion { key: "k", version: "v1" };
        let completion = done(&fake, RequestOptions::default(), remove);
        assert_eq!(completion.result.is_err(), denied);
        assert_eq!(completion.objects_count, u32::from(!denied));
    }
    let requests = fake.requests();
    assert!(requests[0].starts_with("PUT /bucket/k?retention=&versionId=v1 "));
    assert!(requests[0].contains("x-amz-bypass-governance-retention: true\r\n"));
    assert!(requests[0].contains("content-md5: "), "S3 demands it");
    assert!(requests[1].starts_with("DELETE /bucket/k?versionId=v1 "));
    assert!(!requests[1].contains("bypass"));
}

#[test]
fn a_form_holds_its_own_signature() {
    let posted = answer_with(204, "x-amz-version-id: v1\r\n", "");
    let fake = Fake::answering([posted]);
    let options = RequestOptions {
        tags: vec![("t".to_owned(), "1".to_owned())],
        storage_class: Some("STANDARD_IA".to_owned()),
        ..RequestOptions::default()
    };
    let post = Operation::Post { key: "a/é", content: &mut Digits(9) };
    let completion = done(&fake, options, post);
    assert_eq!((completion.result, completion.bytes, completion.objects_count), (Ok(()), 9, 1));
    assert_eq!(completion.server_name.as_deref(), Some("v1"));
    let request = &fake.requests()[0];
    assert!(request.starts_with("POST /bucket HTTP/1.1\r\n"), "{request}");
    assert!(!request.contains("authorization") && !request.contains("chunked"), "{request}");
    assert!(request.contains("content-type: multipart/form-data; boundary=plimsoll-"));
    for (name, value) in [
        ("key", "a/é"),
        ("x-amz-storage-class", "STANDARD_IA"),
        ("tagging", "<Tagging><TagSet><Tag><Key>t</Key><Value>1</Value></Tag></TagSet></Tagging>"),
        ("x-amz-algorithm", "AWS4-HMAC-SHA256"),
        ("x-amz-credential", "AKID/20130524/us-east-1/s3/aws4_request"),
        ("x-amz-date", "20130524T000000Z"),
    ] {
        let field = format!("name=\"{name}\"\r\n\r\n{value}\r\n");
        assert!(request.contains(&field), "{field} in {request}");
    }
    assert!(request.contains("name=\"policy\"") && request.contains("name=\"x-amz-signature\""));
    assert!(request.contains("\r\n\r\n123456789\r\n--plimsoll-"), "{request}");
}

#[test]
fn one_copy_that_fails_fails_a_fan_out() {
    let good = "{\"key\":\"a\",\"etag\":\"e\"}\n{\"key\":\"b\",\"etag\":\"e\"}\n";
    let bad = "{\"key\":\"a\",\"etag\":\"e\"}\n{\"key\":\"b\",\"error\":\"disk full\"}\n";
    let short = "{\"key\":\"a\",\"etag\":\"e\"}\n";
    let fake = Fake::answering([good, bad, short, "no json"].map(|body| answer(200, body)));
    let keys = ["a".to_owned(), "b\"".to_owned()];
    let fan_out = || {
        let operation = Operation::Fanout { keys: &keys, content: &mut Pattern(10) };
        done(&fake, RequestOptions::default(), operation)
    };
    let written = fan_out();
    assert_eq!((written.result, written.objects_count, written.bytes), (Ok(()), 2, 20));
    let broken = fan_out();
    let error = failed(&broken, ErrorClass::Server, Some(200));
    assert_eq!(error.message, "`b` was not written: disk full");
    assert_eq!((broken.objects_count, broken.bytes), (1, 10));
    for told_count in [1, 0] {
        let completion = fan_out();
        failed(&completion, ErrorClass::Protocol, Some(200));
        assert_eq!(completion.objects_count, told_count);
    }
    let list = "name=\"x-minio-fanout-list\"\r\n\r\n{\"key\":\"a\"}\n{\"key\":\"b\\\"\"}\r\n";
    assert!(fake.requests()[0].contains(list), "{}", fake.requests()[0]);
}
