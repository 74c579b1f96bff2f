//! Heads to the letter, and signatures against those of the `aws-sigv4` crate.

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials as AwsCredentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use plimsoll_driver::ByteRange;
use plimsoll_http::Endpoint;
use plimsoll_model::Lookup;
use proptest::prelude::*;

use super::*;
use crate::config::tests::sample;
use crate::s3_request::{MarkedPage, Page, Property};
use crate::{Encryption, RequestOptions};

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn rendered(config: &S3Config, call: &S3Request<'_>, digests: &PayloadDigests) -> String {
    let target = Arc::new(Target::resolve(config).unwrap());
    let mut requests = Requests::new(config, Arc::clone(&target));
    requests.render(call, digests, &target.place.addresses[0], config.wall_epoch);
    String::from_utf8(requests.head().to_vec()).unwrap()
}

/// Returns the request line of `call`, and checks that the bucket is where it should be.
fn request_line(call: &S3Request<'_>) -> String {
    let line = |config: &S3Config| {
        let head = rendered(config, call, &PayloadDigests::NONE);
        head.lines().next().unwrap().strip_suffix(" HTTP/1.1").unwrap().to_owned()
    };
    let mut config = sample();
    let in_path = line(&config);
    config.lookup = Lookup::Dns;
    let in_host = line(&config);
    let without_bucket = in_path.replacen("/examplebucket", "", 1);
    assert!(in_host == without_bucket || in_host == without_bucket.replacen(' ', " /", 1));
    in_path
}

fn plain_put(key: &str, size: u64) -> S3Request<'_> {
    S3Request::Put { key, size, how: PutHow::Plain }
}

#[test]
fn request_lines() {
    let page = Page { prefix: "a/b c", page_size: 7, recursive: true, token: None };
    let marked = MarkedPage { prefix: "p", page_size: 9, key_marker: "k", id_marker: "i" };
    let inner = Page { prefix: "", recursive: false, token: Some("t/=+"), ..page };
    for (call, line) in [
        (plain_put("a/é", 1), "PUT /examplebucket/a/%C3%A9"),
        (S3Request::Get { key: "/x", range: None, version: None }, "GET /examplebucket//x"),
        (
            S3Request::Get { key: "x", range: None, version: Some("v/1") },
            "GET /examplebucket/x?versionId=v%2F1",
        ),
        (S3Request::GetPart { key: "x", number: 7 }, "GET /examplebucket/x?partNumber=7"),
        (
            S3Request::GetMember { key: "a.zip", member: "b/c d" },
            "GET /examplebucket/a.zip/b/c%20d",
        ),
        (S3Request::Stat { key: "a?b", version: None }, "HEAD /examplebucket/a%3Fb"),
        (S3Request::Stat { key: "a", version: Some("1") }, "HEAD /examplebucket/a?versionId=1"),
        (S3Request::Delete { key: ".", version: None }, "DELETE /examplebucket/."),
        (S3Request::Delete { key: "a", version: Some("1") }, "DELETE /examplebucket/a?versionId=1"),
        (S3Request::DeleteMany { body_len: 3, bypass: false }, "POST /examplebucket?delete="),
        (S3Request::HeadBucket, "HEAD /examplebucket"),
        (S3Request::DeleteBucket, "DELETE /examplebucket"),
        (S3Request::CreateBucket { body_len: 0, lock: false }, "PUT /examplebucket"),
        (S3Request::GetBucket(Property::Versioning), "GET /examplebucket?versioning="),
        (S3Request::GetBucket(Property::ObjectLock), "GET /examplebucket?object-lock="),
        (S3Request::GetBucket(Property::Tagging), "GET /examplebucket?tagging="),
        (
            S3Request::PutBucket { property: Property::Versioning, body_len: 1 },
            "PUT /examplebucket?versioning=",
        ),
        (
            S3Request::Retain { key: "k", version: Some("1"), body_len: 1 },
            "PUT /examplebucket/k?retention=&versionId=1",
        ),
        (S3Request::CreateUpload { key: "k" }, "POST /examplebucket/k?uploads="),
        (
            S3Request::PutPart { key: "k", upload: "u=", number: 3, size: 1 },
            "PUT /examplebucket/k?partNumber=3&uploadId=u%3D",
        ),
        (
            S3Request::CompleteUpload { key: "k", upload: "u", body_len: 1 },
            "POST /examplebucket/k?uploadId=u",
        ),
        (S3Request::AbortUpload { key: "k", upload: "u" }, "DELETE /examplebucket/k?uploadId=u"),
        (S3Request::Form { content_type: "x", size: 1 }, "POST /examplebucket"),
        (
            S3Request::ListVersions(marked),
            "GET /examplebucket?encoding-type=url&key-marker=k&max-keys=9&prefix=p\
             &version-id-marker=i&versions=",
        ),
        (
            S3Request::ListUploads(marked),
            "GET /examplebucket?encoding-type=url&key-marker=k&max-uploads=9&prefix=p\
             &upload-id-marker=i&uploads=",
        ),
        (
            S3Request::ListVersions(MarkedPage { key_marker: "", ..marked }),
            "GET /examplebucket?encoding-type=url&max-keys=9&prefix=p&versions=",
        ),
        (
            S3Request::List(page),
            "GET /examplebucket?encoding-type=url&list-type=2&max-keys=7&prefix=a%2Fb%20c",
        ),
        (
            S3Request::List(inner),
            "GET /examplebucket?continuation-token=t%2F%3D%2B&delimiter=%2F&encoding-type=url\
             &list-type=2&max-keys=7&prefix=",
        ),
    ] {
        assert_eq!(request_line(&call), line);
    }
}

#[test]
fn a_whole_head() {
    let mut config = sample();
    config.credentials = Credentials::Anonymous;
    let range = Some(ByteRange { offset: 10, len: 5 });
    let agent = USER_AGENT;
    assert_eq!(
        rendered(
            &config,
            &S3Request::Get { key: "k", range, version: None },
            &PayloadDigests::NONE
        ),
        format!(
            "GET /examplebucket/k HTTP/1.1\r\nuser-agent: {agent}\r\nhost: s3.example\r\n\
             range: bytes=10-14\r\n\r\n"
        )
    );
    let digests = PayloadDigests { hash: PayloadHash::Unsigned, md5: Some([b'M'; 24]) };
    assert_eq!(
        rendered(&config, &plain_put("k", 5 << 40), &digests),
        format!(
            "PUT /examplebucket/k HTTP/1.1\r\ncontent-length: 5497558138880\r\n\
             user-agent: {agent}\r\ncontent-md5: MMMMMMMMMMMMMMMMMMMMMMMM\r\n\
             content-type: application/octet-stream\r\nhost: s3.example\r\n\r\n"
        )
    );
    assert_eq!(
        rendered(
            &config,
            &S3Request::CreateBucket { body_len: 0, lock: false },
            &PayloadDigests::NONE
        ),
        format!(
            "PUT /examplebucket HTTP/1.1\r\ncontent-length: 0\r\nuser-agent: {agent}\r\n\
             host: s3.example\r\n\r\n"
        )
    );
}

/// "GET Object" of the S3 documentation again, now as the driver renders it.
#[test]
fn a_signed_head() {
    let mut config = sample();
    config.endpoints = vec![Endpoint::new("s3.amazonaws.com", 80)];
    let range = Some(ByteRange { offset: 0, len: 10 });
    let head = rendered(
        &config,
        &S3Request::Get { key: "test.txt", range, version: None },
        &PayloadDigests::NONE,
    );
    assert_eq!(
        head,
        format!(
            "GET /test.txt HTTP/1.1\r\nuser-agent: {USER_AGENT}\r\n\
             host: examplebucket.s3.amazonaws.com\r\nrange: bytes=0-9\r\n\
             x-amz-content-sha256: {EMPTY}\r\nx-amz-date: 20130524T000000Z\r\n\
             authorization: AWS4-HMAC-SHA256 \
             Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41\r\n\r\n"
        )
    );
}

/// The headers between the first line and the signature, without what every head has.
fn particular(config: &S3Config, call: &S3Request<'_>, digests: &PayloadDigests) -> Vec<String> {
    let head = rendered(config, call, digests);
    let usual = ["user-agent", "host", "x-amz-date", "authorization"];
    let lines = head.lines().skip(1).filter(|line| !line.is_empty());
    lines
        .filter(|line| !usual.contains(&line.split(':').next().unwrap()))
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_request_carries_what_belongs_to_it() {
    let mut config = sample();
    config.options = RequestOptions {
        checksum: Some(Checksum::Crc32),
        if_none_match: true,
        storage_class: Some("GLACIER".to_owned()),
        tags: vec![("t".to_owned(), "1".to_owned())],
        metadata: vec![("m".to_owned(), "2".to_owned())],
        ..RequestOptions::default()
    };
    let hash = PayloadHash::Trailing(Checksum::Crc32);
    let trailing = PayloadDigests { hash, md5: None };
    let plain = PayloadDigests { hash: PayloadHash::Unsigned, md5: None };
    // 9 bytes are one chunk of 3 + 9 + 2, the last one of 3, and 31 of trailer and 2 of end.
    let streamed = [
        "content-length: 50",
        "content-encoding: aws-chunked",
        "content-type: application/octet-stream",
    ];
    let amz = [
        "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length: 9",
    ];
    let put = [
        &streamed[..],
        &["if-none-match: *"],
        &amz,
        &["x-amz-meta-m: 2", "x-amz-storage-class: GLACIER", "x-amz-tagging: t=1"],
        &["x-amz-trailer: x-amz-checksum-crc32"],
    ];
    assert_eq!(particular(&config, &plain_put("k", 9), &trailing), put.concat());

    let part = S3Request::PutPart { key: "k", upload: "u", number: 1, size: 9 };
    let expected = [&streamed[..], &amz, &["x-amz-trailer: x-amz-checksum-crc32"]].concat();
    assert_eq!(particular(&config, &part, &trailing), expected);

    let append = S3Request::Put { key: "k", size: 9, how: PutHow::Append(12) };
    let with_offset = [&expected[..], &["x-amz-write-offset-bytes: 12"]].concat();
    assert_eq!(particular(&config, &append, &trailing), with_offset);

    let completed = S3Request::CompleteUpload { key: "k", upload: "u", body_len: 5 };
    assert_eq!(
        particular(&config, &completed, &plain),
        [
            "content-length: 5",
            "content-type: application/xml",
            "if-none-match: *",
            "x-amz-checksum-type: COMPOSITE",
            "x-amz-content-sha256: UNSIGNED-PAYLOAD",
        ]
    );
    let get = S3Request::Get { key: "k", range: None, version: None };
    let bare = [format!("x-amz-content-sha256: {EMPTY}")];
    assert_eq!(particular(&config, &get, &PayloadDigests::NONE), bare);
    let member = S3Request::GetMember { key: "k", member: "m" };
    let extracted = [bare[0].as_str(), "x-minio-extract: true"];
    assert_eq!(particular(&config, &member, &PayloadDigests::NONE), extracted);
}

/// Every example of the documentation is signed in `sigv2`; here it is the driver's own head.
#[test]
fn a_head_signed_the_old_way() {
    let mut config = sample();
    config.options.signature = crate::Signature::V2;
    config.endpoints = vec![Endpoint::new("s3.amazonaws.com", 80)];
    let call = S3Request::PutPart { key: "a b", upload: "u", number: 2, size: 3 };
    let digests = PayloadDigests { hash: PayloadHash::Unsigned, md5: None };
    // By `openssl dgst -sha1 -hmac` of the lines PUT, nothing, application/octet-stream, the date,
    // and /examplebucket/a%20b?partNumber=2&uploadId=u.
    assert_eq!(
        rendered(&config, &call, &digests),
        format!(
            "PUT /a%20b?partNumber=2&uploadId=u HTTP/1.1\r\ncontent-length: 3\r\n\
             user-agent: {USER_AGENT}\r\ncontent-type: application/octet-stream\r\n\
             date: Fri, 24 May 2013 00:00:00 GMT\r\nhost: examplebucket.s3.amazonaws.com\r\n\
             authorization: AWS AKIAIOSFODNN7EXAMPLE:L1hL3B01rHti95c3x6Nw1R5H4/E=\r\n\r\n"
        )
    );
}

#[test]
fn parts_and_retention_as_documents() {
    let mut body = Vec::new();
    let parts = ["\"e1\" c1==".to_owned(), "\"e2\"".to_owned()];
    push_parts_body(&mut body, &parts, Some(Checksum::Crc32cFullObject));
    assert_eq!(
        String::from_utf8(body).unwrap(),
        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <Part><PartNumber>1</PartNumber><ETag>\"e1\"</ETag>\
         <ChecksumCRC32C>c1==</ChecksumCRC32C></Part>\
         <Part><PartNumber>2</PartNumber><ETag>\"e2\"</ETag></Part></CompleteMultipartUpload>"
    );
    let mut body = Vec::new();
    push_retention_body(&mut body, sample().wall_epoch);
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("<Mode>GOVERNANCE</Mode>"), "{body}");
    assert!(body.contains("<RetainUntilDate>2013-05-24T00:00:00Z</RetainUntilDate>"), "{body}");
}

#[test]
fn bodies_are_xml_whatever_the_keys() {
    let mut body = Vec::new();
    push_delete_body(&mut body, [("a&<>\"'", None), ("é\u{1}\r\n", Some("v&"))].into_iter());
    assert_eq!(
        String::from_utf8(body).unwrap(),
        "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>\
         <Object><Key>a&amp;&lt;&gt;\"'</Key></Object>\
         <Object><Key>é&#x1;&#xD;&#xA;</Key><VersionId>v&amp;</VersionId></Object></Delete>"
    );
    assert_eq!(
        String::from_utf8(location_body("eu-west-1")).unwrap(),
        "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>"
    );
}

/// Returns the signature that the `aws-sigv4` crate gives a rendered head.
fn reference_signature(config: &S3Config, head: &str) -> String {
    let keys = config.credentials.current().expect("only signed heads have a signature");
    let (access_key, secret_key) = (&keys.access_key, keys.secret_key.expose());
    let session_token = keys.session_token.as_ref().map(Secret::expose);
    let (line, rest) = head.split_once("\r\n").unwrap();
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let headers: Vec<(&str, &str)> = rest
        .trim_end()
        .lines()
        .map(|line| line.split_once(": ").unwrap())
        .filter(|(name, _)| !matches!(*name, "authorization" | "content-length" | "user-agent"))
        .collect();
    let value = |name| headers.iter().find(|header| header.0 == name).unwrap().1;
    let uri = format!("http://{}{target}", value("host"));
    let payload = value("x-amz-content-sha256").to_owned();
    // What the reference adds itself must not be given to it.
    let added = ["x-amz-content-sha256", "x-amz-date", "x-amz-security-token"];
    let given = headers.iter().filter(|header| !added.contains(&header.0)).copied();
    let body = SignableBody::Precomputed(payload);
    let signable = SignableRequest::new(method, uri, given, body).unwrap();

    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let identity =
        AwsCredentials::new(access_key, secret_key, session_token.map(str::to_owned), None, "test")
            .into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(config.region.as_deref().unwrap())
        .name("s3")
        .time(UNIX_EPOCH + Duration::from_nanos(config.wall_epoch.as_unix_ns()))
        .settings(settings)
        .build()
        .unwrap()
        .into();
    sign(signable, &params).unwrap().signature().to_owned()
}

fn any_call(kind: u8, key: &str, token: Option<&str>, check: &dyn Fn(&S3Request<'_>)) {
    let page = Page { prefix: key, page_size: 1_000, recursive: kind.is_multiple_of(2), token };
    let range = Some(ByteRange { offset: u64::from(kind), len: 99 });
    let upload = token.unwrap_or("u");
    let marked =
        MarkedPage { prefix: key, page_size: 2, key_marker: token.unwrap_or(""), id_marker: "i" };
    check(&match kind % 19 {
        0 => plain_put(key, 1_024),
        1 => S3Request::Get { key, range: None, version: token },
        2 => S3Request::Get { key, range, version: None },
        3 => S3Request::Stat { key, version: token },
        4 => S3Request::Delete { key, version: token },
        5 => S3Request::DeleteMany { body_len: 10, bypass: token.is_some() },
        6 => S3Request::CreateBucket { body_len: 0, lock: token.is_some() },
        7 => S3Request::Put { key, size: 1_024, how: PutHow::Append(7) },
        8 => S3Request::Put { key, size: 1_024, how: PutHow::Extract },
        9 => S3Request::GetPart { key, number: 3 },
        10 => S3Request::GetMember { key, member: upload },
        11 => S3Request::Retain { key, version: token, body_len: 10 },
        12 => S3Request::CreateUpload { key },
        13 => S3Request::PutPart { key, upload, number: 17, size: 100_000 },
        14 => S3Request::CompleteUpload { key, upload, body_len: 10 },
        15 => S3Request::AbortUpload { key, upload },
        16 => S3Request::ListVersions(marked),
        17 => S3Request::ListUploads(marked),
        _ => S3Request::List(page),
    });
}

fn any_options() -> impl Strategy<Value = RequestOptions> {
    let encryptions = prop_oneof![
        Just(Encryption::None),
        any::<[u8; 32]>().prop_map(|key| Encryption::SseC { key }),
        Just(Encryption::SseS3),
        proptest::option::of("[a-z]{1,9}").prop_map(|key_id| Encryption::SseKms { key_id }),
    ];
    let checksums = proptest::option::of(proptest::sample::select(&Checksum::ALL[..]));
    let metadata = proptest::collection::vec(("[a-zA-Z0-9-]{1,9}", "[!-~]{0,9}"), 0..4);
    let tags = proptest::collection::vec((".{1,9}", ".{0,9}"), 0..4);
    (encryptions, checksums, metadata, tags, any::<bool>()).prop_map(
        |(encryption, checksum, metadata, tags, flag)| RequestOptions {
            encryption,
            checksum,
            metadata,
            tags,
            if_none_match: flag,
            storage_class: flag.then(|| "STANDARD_IA".to_owned()),
            ..RequestOptions::default()
        },
    )
}

proptest! {
    #[test]
    fn signatures_are_those_of_the_reference(
        kind in any::<u8>(),
        key in ".{1,80}",
        continuation in proptest::option::of(".{1,20}"),
        secret in "[!-~]{1,60}",
        session_token in proptest::option::of("[!-~]{1,200}"),
        region in "[a-z]{2}-[a-z]{4,9}-[1-9]",
        md5 in proptest::option::of(any::<[u8; 16]>()),
        // From 1971 to 2200.
        second in 31_536_000u64..7_258_118_400,
        dns in any::<bool>(),
        options in any_options(),
    ) {
        let mut config = sample();
        config.credentials = Credentials::keys("AKID", &secret, session_token.as_deref());
        config.region = Some(region);
        config.wall_epoch = WallTime::from_unix_ns(second * 1_000_000_000);
        config.lookup = if dns { Lookup::Dns } else { Lookup::Path };
        // Only content is followed by its checksum.
        let content = matches!(kind % 19, 0 | 7 | 8 | 13);
        let checksum = options.checksum.filter(|_| content);
        config.options = options;
        let digests = PayloadDigests {
            hash: checksum.map_or(PayloadHash::Unsigned, PayloadHash::Trailing),
            md5: md5.map(|md5| encode::base64_md5(&md5)),
        };
        any_call(kind, &key, continuation.as_deref(), &|call| {
            let head = rendered(&config, call, &digests);
            let (_, signature) = head.trim_end().rsplit_once("Signature=").unwrap();
            assert_eq!(signature, reference_signature(&config, &head), "{head}");
        });
    }
}

#[test]
fn whoever_is_denied_is_told_which_keys_were_refused() {
    let told = |credentials: Credentials| {
        let config = S3Config { credentials, ..sample() };
        let target = Arc::new(Target::resolve(&config).unwrap());
        Requests::new(&config, target).whom_to_check()
    };
    let given = told(sample().credentials);
    assert_eq!(given, "check `access_key`, `secret_key` and what they may do");
    let nobody = told(Credentials::Anonymous);
    assert_eq!(nobody, "it was sent without keys: give `access_key` and `secret_key`");
}
