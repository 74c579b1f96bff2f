//! Heads to the letter, and signatures against those of the `aws-sigv4` crate.

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials as AwsCredentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use plimsoll_http::Endpoint;
use proptest::prelude::*;

use super::*;
use crate::config::tests::sample;
use crate::digests::PayloadHash;

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn rendered(config: &S3Config, call: &Call<'_>, digests: &PayloadDigests) -> String {
    let target = Arc::new(Target::resolve(config).unwrap());
    let mut requests = Requests::new(config, target);
    requests.render(call, digests, 0, config.wall_epoch);
    String::from_utf8(requests.head().to_vec()).unwrap()
}

/// Returns the request line of `call`, and checks that the bucket is where it should be.
fn request_line(call: &Call<'_>) -> String {
    let line = |config: &S3Config| {
        let head = rendered(config, call, &PayloadDigests::NONE);
        head.lines().next().unwrap().strip_suffix(" HTTP/1.1").unwrap().to_owned()
    };
    let mut config = sample();
    let in_path = line(&config);
    config.lookup = crate::Lookup::Dns;
    let in_host = line(&config);
    let without_bucket = in_path.replacen("/examplebucket", "", 1);
    assert!(in_host == without_bucket || in_host == without_bucket.replacen(' ', " /", 1));
    in_path
}

#[test]
fn request_lines() {
    let page = Page { prefix: "a/b c", page_size: 7, recursive: true, token: None };
    let inner = Page { prefix: "", recursive: false, token: Some("t/=+"), ..page };
    for (call, line) in [
        (Call::Put { key: "a/é", size: 1 }, "PUT /examplebucket/a/%C3%A9"),
        (Call::Get { key: "/x", range: None }, "GET /examplebucket//x"),
        (Call::Stat { key: "a?b" }, "HEAD /examplebucket/a%3Fb"),
        (Call::Delete { key: "." }, "DELETE /examplebucket/."),
        (Call::DeleteMany { body_len: 3 }, "POST /examplebucket?delete="),
        (Call::HeadBucket, "HEAD /examplebucket"),
        (Call::CreateBucket { body_len: 0 }, "PUT /examplebucket"),
        (
            Call::List(page),
            "GET /examplebucket?encoding-type=url&list-type=2&max-keys=7&prefix=a%2Fb%20c",
        ),
        (
            Call::List(inner),
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
        rendered(&config, &Call::Get { key: "k", range }, &PayloadDigests::NONE),
        format!(
            "GET /examplebucket/k HTTP/1.1\r\nuser-agent: {agent}\r\nhost: s3.example\r\n\
             range: bytes=10-14\r\n\r\n"
        )
    );
    let digests = PayloadDigests { hash: PayloadHash::Unsigned, md5: Some([b'M'; 24]) };
    assert_eq!(
        rendered(&config, &Call::Put { key: "k", size: 5 << 40 }, &digests),
        format!(
            "PUT /examplebucket/k HTTP/1.1\r\ncontent-length: 5497558138880\r\n\
             user-agent: {agent}\r\ncontent-md5: MMMMMMMMMMMMMMMMMMMMMMMM\r\n\
             content-type: application/octet-stream\r\nhost: s3.example\r\n\r\n"
        )
    );
    assert_eq!(
        rendered(&config, &Call::CreateBucket { body_len: 0 }, &PayloadDigests::NONE),
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
    let head = rendered(&config, &Call::Get { key: "test.txt", range }, &PayloadDigests::NONE);
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

#[test]
fn bodies_are_xml_whatever_the_keys() {
    let mut body = Vec::new();
    push_delete_body(&mut body, ["a&<>\"'", "é\u{1}\r\n"].into_iter());
    assert_eq!(
        String::from_utf8(body).unwrap(),
        "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>\
         <Object><Key>a&amp;&lt;&gt;\"'</Key></Object>\
         <Object><Key>é&#x1;&#xD;&#xA;</Key></Object></Delete>"
    );
    assert_eq!(
        String::from_utf8(location_body("eu-west-1")).unwrap(),
        "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>"
    );
}

/// Returns the signature that the `aws-sigv4` crate gives a rendered head.
fn reference_signature(config: &S3Config, head: &str) -> String {
    let Credentials::Keys { access_key, secret_key, session_token } = &config.credentials else {
        panic!("only signed heads have a signature");
    };
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
    let given = headers.iter().filter(|header| !header.0.starts_with("x-amz-")).copied();
    let body = SignableBody::Precomputed(payload);
    let signable = SignableRequest::new(method, uri, given, body).unwrap();

    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let identity =
        AwsCredentials::new(access_key, secret_key, session_token.clone(), None, "test").into();
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

fn any_call(kind: u8, key: &str, token: Option<&str>, check: &dyn Fn(&Call<'_>)) {
    let page = Page { prefix: key, page_size: 1_000, recursive: kind.is_multiple_of(2), token };
    let range = Some(ByteRange { offset: u64::from(kind), len: 99 });
    check(&match kind % 8 {
        0 => Call::Put { key, size: 1_024 },
        1 => Call::Get { key, range: None },
        2 => Call::Get { key, range },
        3 => Call::Stat { key },
        4 => Call::Delete { key },
        5 => Call::DeleteMany { body_len: 10 },
        6 => Call::CreateBucket { body_len: 0 },
        _ => Call::List(page),
    });
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
    ) {
        let mut config = sample();
        config.credentials =
            Credentials::Keys { access_key: "AKID".to_owned(), secret_key: secret, session_token };
        config.region = Some(region);
        config.wall_epoch = WallTime::from_unix_ns(second * 1_000_000_000);
        config.lookup = if dns { crate::Lookup::Dns } else { crate::Lookup::Path };
        let digests = PayloadDigests {
            hash: PayloadHash::Unsigned,
            md5: md5.map(|md5| encode::base64_md5(&md5)),
        };
        any_call(kind, &key, continuation.as_deref(), &|call| {
            let head = rendered(&config, call, &digests);
            let (_, signature) = head.trim_end().rsplit_once("Signature=").unwrap();
            assert_eq!(signature, reference_signature(&config, &head), "{head}");
        });
    }
}
