//! Signatures against the values that AWS publishes.

use plimsoll_model::{Secret, WallTime};

use super::{Dated, HeadWriter, Signer, Signing};

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// 2015-08-30T12:36:00Z and 2013-05-24T00:00:00Z, by `date -u -d ... +%s`.
const SUITE_TIME: WallTime = WallTime::from_unix_ns(1_440_938_160_000_000_000);
const S3_TIME: WallTime = WallTime::from_unix_ns(1_369_353_600_000_000_000);

struct Vector {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    query: &'static str,
    headers: &'static [(&'static str, &'static str)],
    payload: &'static str,
    signature: &'static str,
}

fn suite_signer() -> Signer {
    let secret = &Secret::from("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned());
    Signer::new("AKIDEXAMPLE", secret, "us-east-1", "service")
}

fn s3_signer() -> Signer {
    let secret = &Secret::from("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned());
    Signer::new("AKIAIOSFODNN7EXAMPLE", secret, "us-east-1", "s3")
}

fn signature(writer: &mut HeadWriter, at: WallTime, vector: &Vector) -> String {
    writer.begin(vector.method, "", vector.path.as_bytes(), vector.query.as_bytes());
    writer.advance(at);
    for (name, value) in vector.headers {
        writer.signed_header(name, value.as_bytes());
    }
    writer.finish(vector.payload.as_bytes());
    let head = String::from_utf8(writer.head().to_vec()).unwrap();
    let names: Vec<&str> = vector.headers.iter().map(|(name, _)| *name).collect();
    assert!(head.contains(&format!("SignedHeaders={}, ", names.join(";"))), "{head}");
    let (_, rest) = head.split_once("Signature=").unwrap();
    rest.strip_suffix("\r\n\r\n").unwrap().to_owned()
}

fn check(signer: Signer, at: WallTime, vectors: &[Vector]) {
    let mut writer = HeadWriter::new(Signing::V4(Box::new(signer)));
    for vector in vectors {
        assert_eq!(signature(&mut writer, at, vector), vector.signature, "{}", vector.name);
    }
}

const SUITE_HEADERS: &[(&str, &str)] =
    &[("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")];

const SUITE_TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWs\
    KWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phU\
    ZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iP\
    PkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

/// Amazon's `aws-sig-v4-test-suite`, each by its name there.
#[test]
fn the_published_test_suite() {
    let plain = |name, method, path, query, signature| Vector {
        name,
        method,
        path,
        query,
        headers: SUITE_HEADERS,
        payload: EMPTY,
        signature,
    };
    let vectors = [
        plain(
            "get-vanilla",
            "GET",
            "/",
            "",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        plain(
            "get-vanilla-empty-query-key",
            "GET",
            "/",
            "Param1=value1",
            "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
        ),
        plain(
            "get-vanilla-query-order-key-case",
            "GET",
            "/",
            "Param1=value1&Param2=value2",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        plain(
            "get-utf8",
            "GET",
            "/%E1%88%B4",
            "",
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
        ),
        plain(
            "post-vanilla",
            "POST",
            "/",
            "",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        Vector {
            name: "post-sts-header-before",
            method: "POST",
            path: "/",
            query: "",
            headers: &[
                ("host", "example.amazonaws.com"),
                ("x-amz-date", "20150830T123600Z"),
                ("x-amz-security-token", SUITE_TOKEN),
            ],
            payload: EMPTY,
            signature: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        },
    ];
    check(suite_signer(), SUITE_TIME, &vectors);
}

/// "Signature Calculations for the Authorization Header" in the S3 API reference.
#[test]
fn the_examples_of_the_s3_documentation() {
    const HOST: (&str, &str) = ("host", "examplebucket.s3.amazonaws.com");
    const DATE: (&str, &str) = ("x-amz-date", "20130524T000000Z");
    const BARE: &[(&str, &str)] = &[HOST, ("x-amz-content-sha256", EMPTY), DATE];
    const PUT_SHA256: &str = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    let vectors = [
        Vector {
            name: "GET Object",
            method: "GET",
            path: "/test.txt",
            query: "",
            headers: &[HOST, ("range", "bytes=0-9"), ("x-amz-content-sha256", EMPTY), DATE],
            payload: EMPTY,
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        },
        Vector {
            name: "PUT Object",
            method: "PUT",
            path: "/test%24file.text",
            query: "",
            headers: &[
                ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                HOST,
                ("x-amz-content-sha256", PUT_SHA256),
                DATE,
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ],
            payload: PUT_SHA256,
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        },
        Vector {
            name: "GET Bucket Lifecycle",
            method: "GET",
            path: "/",
            query: "lifecycle=",
            headers: BARE,
            payload: EMPTY,
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        },
        Vector {
            name: "Get Bucket (List Objects)",
            method: "GET",
            path: "/",
            query: "max-keys=2&prefix=J",
            headers: BARE,
            payload: EMPTY,
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        },
    ];
    check(s3_signer(), S3_TIME, &vectors);
}

/// The key and the texts are cached; what is signed on another day or second must still match a
/// fresh signer.
#[test]
fn cached_texts_follow_the_time() {
    const SECOND_NS: u64 = 1_000_000_000;
    let vector = Vector {
        name: "any",
        method: "GET",
        path: "/",
        query: "",
        headers: SUITE_HEADERS,
        payload: EMPTY,
        signature: "",
    };
    let mut kept = HeadWriter::new(Signing::V4(Box::new(suite_signer())));
    let mut seen = Vec::new();
    for second in [0, 1, 86_399, 86_400, 86_401, 0] {
        let at = WallTime::from_unix_ns(SUITE_TIME.as_unix_ns() + second * SECOND_NS + 999);
        let mut fresh = HeadWriter::new(Signing::V4(Box::new(suite_signer())));
        let signed = signature(&mut kept, at, &vector);
        assert_eq!(signed, signature(&mut fresh, at, &vector), "after {second} s");
        seen.push(signed);
    }
    assert_eq!(seen[0], seen[5]);
    let mut distinct = seen.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 5);
    assert_eq!(kept.advance(S3_TIME), Dated::Amz(*b"20130524T000000Z"));
}

#[test]
fn an_anonymous_head_holds_nothing_of_a_signature() {
    let mut writer = HeadWriter::new(Signing::Anonymous);
    assert_eq!(writer.advance(S3_TIME), Dated::Nowhere);
    writer.begin("GET", "", b"/a", b"x=1");
    writer.signed_header("host", b"h");
    writer.finish(EMPTY.as_bytes());
    assert_eq!(writer.head(), b"GET /a?x=1 HTTP/1.1\r\nhost: h\r\n\r\n");
}
