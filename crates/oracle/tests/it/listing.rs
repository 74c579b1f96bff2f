//! Listings over the wire: paging, encoding, both versions.

use crate::client::{Client, decode, path};
use crate::{config, start};

/// Keys that break careless encoders, in order of their UTF-8 bytes.
const ODD_KEYS: [&str; 20] = [
    " leading",
    "%2F",
    "+",
    "..",
    "//",
    "/lead",
    "<&>'\"",
    "?x=1#y",
    "A",
    "a",
    "a b",
    "a+b",
    "a/",
    "a//b",
    "a\\b",
    "~tilde",
    "\u{7f}",
    "ä/ö",
    "日本語",
    "\u{1F6A2}",
];

fn fill(client: &Client, keys: &[&str]) {
    for key in keys {
        let content = key.as_bytes();
        assert_eq!(client.request("PUT", &path("bucket", key), &[], content).status, 200, "{key}");
    }
}

#[test]
fn odd_keys_survive_writing_listing_and_reading() {
    let (_oracle, client) = start(config());
    fill(&client, &ODD_KEYS);
    assert!(ODD_KEYS.is_sorted());
    for key in ODD_KEYS {
        let got = client.request("GET", &path("bucket", key), &[], b"");
        assert_eq!((got.status, got.text()), (200, key));
    }
    let plain = client.request("GET", "/bucket?list-type=2", &[], b"");
    assert_eq!(plain.elements("Key"), ODD_KEYS);
    let encoded = client.request("GET", "/bucket?encoding-type=url&list-type=2", &[], b"");
    let keys = encoded.elements("Key");
    assert!(keys.iter().all(|key| key.is_ascii() && !key.contains(' ')), "{keys:?}");
    assert_eq!(keys.iter().map(|key| decode(key)).collect::<Vec<_>>(), ODD_KEYS);
    assert_eq!(encoded.elements("EncodingType"), ["url"]);
    // Sizes are those of the names, for that is what was written.
    let sizes: Vec<String> = ODD_KEYS.iter().map(|key| key.len().to_string()).collect();
    assert_eq!(encoded.elements("Size"), sizes);
}

#[test]
fn keys_that_xml_cannot_carry_are_listed_url_encoded() {
    let (_oracle, client) = start(config());
    let keys = ["a\u{1}b", "a\r\nb", "a\u{FFFE}"];
    fill(&client, &keys);
    let answer = client.request("GET", "/bucket?encoding-type=url&list-type=2", &[], b"");
    assert_eq!(answer.elements("Key"), ["a%01b", "a%0D%0Ab", "a%EF%BF%BE"]);
}

#[test]
fn pages_follow_one_another_to_the_end() {
    let (_oracle, client) = start(config());
    fill(&client, &["a/1", "a/2", "b", "c/1", "d", "e"]);
    let mut lines = Vec::new();
    let mut token = String::new();
    for page in 0.. {
        let target = format!("/bucket?{token}delimiter=%2F&list-type=2&max-keys=2");
        let answer = client.request("GET", &target, &[], b"");
        let keys = answer.elements("Key");
        let prefixes: Vec<String> =
            answer.elements("CommonPrefixes").iter().map(|text| inner(text)).collect();
        assert_eq!(answer.elements("KeyCount"), [(keys.len() + prefixes.len()).to_string()]);
        assert_eq!(answer.elements("MaxKeys"), ["2"]);
        lines.push([prefixes, keys].concat().join(" "));
        let truncated = answer.elements("IsTruncated") == ["true"];
        assert_eq!(truncated, page < 2, "5 lines, 2 a page");
        if !truncated {
            break;
        }
        token = format!("continuation-token={}&", answer.elements("NextContinuationToken")[0]);
    }
    assert_eq!(lines, ["a/ b", "c/ d", "e"]);
}

#[test]
fn a_listing_starts_and_ends_where_it_is_told() {
    let (_oracle, client) = start(config());
    fill(&client, &["a/1", "a/2", "b", "c"]);
    for (query, keys) in [
        ("list-type=2", "a/1 a/2 b c"),
        ("list-type=2&prefix=a%2F", "a/1 a/2"),
        ("list-type=2&prefix=none", ""),
        ("list-type=2&start-after=a%2F1", "a/2 b c"),
        ("list-type=2&prefix=a&start-after=b", ""),
        ("list-type=2&max-keys=0", ""),
        ("list-type=2&max-keys=5000", "a/1 a/2 b c"),
        ("marker=a%2F2", "b c"),
        ("delimiter=%2F", "b c"),
        ("delimiter=%2F&marker=a%2F", "b c"),
    ] {
        let answer = client.request("GET", &format!("/bucket?{query}"), &[], b"");
        assert_eq!(answer.status, 200, "{query}");
        assert_eq!(answer.elements("Key").join(" "), keys, "{query}");
        assert_eq!(answer.elements("IsTruncated"), ["false"], "{query}");
    }
    let capped = client.request("GET", "/bucket?list-type=2&max-keys=5000", &[], b"");
    assert_eq!(capped.elements("MaxKeys"), ["1000"]);
    let first = client.request("GET", "/bucket?delimiter=%2F&max-keys=1", &[], b"");
    assert_eq!(first.elements("NextMarker"), ["a/"]);
    let invalid = (400, "InvalidArgument".to_owned());
    for query in [
        "continuation-token=zz&list-type=2",
        "continuation-token=abc&list-type=2",
        "list-type=2&max-keys=-1",
        "list-type=2&max-keys=many",
        "encoding-type=xml&list-type=2",
    ] {
        let answer = client.request("GET", &format!("/bucket?{query}"), &[], b"");
        assert_eq!(answer.error(), invalid, "{query}");
    }
}

fn inner(common_prefixes: &str) -> String {
    let text = common_prefixes.strip_prefix("<Prefix>").unwrap();
    text.strip_suffix("</Prefix>").unwrap().to_owned()
}
