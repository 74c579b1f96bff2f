//! The headers that the options ask for, rendered once for all requests.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use md5::{Digest as _, Md5};

use crate::encode;
use crate::s3_request::HeaderSet;
use crate::{Checksum, Encryption, RequestOptions};

/// Has MinIO take an archive apart.
const EXTRACT: &str = "x-amz-meta-snowball-auto-extract";

/// A header: its name in lower case, and its value.
pub(crate) type Header = (String, String);

/// The headers that the options ask for, by the sets that requests carry, each in ascending order
/// of names.
#[derive(Debug, Default)]
pub(crate) struct OptionHeaders {
    key: Vec<Header>,
    write: Vec<Header>,
    extract: Vec<Header>,
    /// The tags as a form states them; empty without tags.
    pub(crate) tagging_xml: String,
    pub(crate) if_none_match: bool,
    pub(crate) checksum: Option<Checksum>,
}

impl OptionHeaders {
    pub(crate) fn new(options: &RequestOptions) -> Self {
        let (key, encryption) = encryption_headers(&options.encryption);
        let mut write = key.clone();
        write.extend(encryption);
        if let Some(class) = &options.storage_class {
            write.push(("x-amz-storage-class".to_owned(), class.clone()));
        }
        if !options.tags.is_empty() {
            write.push(("x-amz-tagging".to_owned(), tagging(&options.tags)));
        }
        for (name, value) in &options.metadata {
            write.push((format!("x-amz-meta-{}", name.to_ascii_lowercase()), value.clone()));
        }
        // Of several headers of one name the last one counts, as on a command line.
        write.reverse();
        write.sort_by(|a, b| a.0.cmp(&b.0));
        write.dedup_by(|a, b| a.0 == b.0);
        let mut extract: Vec<Header> =
            write.iter().filter(|header| header.0 != EXTRACT).cloned().collect();
        extract.push((EXTRACT.to_owned(), "true".to_owned()));
        extract.sort();
        Self {
            key,
            write,
            extract,
            tagging_xml: tagging_xml(&options.tags),
            if_none_match: options.if_none_match,
            checksum: options.checksum,
        }
    }

    /// Returns the key that goes with requests for content (SSE-C), as they state it.
    pub(crate) fn customer_key(&self) -> Option<&str> {
        let header = self.key.iter().find(|(name, _)| name.ends_with("-customer-key"));
        header.map(|(_, value)| value.as_str())
    }

    pub(crate) fn of(&self, set: HeaderSet) -> &[Header] {
        match set {
            HeaderSet::None => &[],
            HeaderSet::Key => &self.key,
            HeaderSet::Write => &self.write,
            HeaderSet::Extract => &self.extract,
        }
    }
}

/// Returns the headers that go with every request for an object's content, and those that go with
/// writing alone.
fn encryption_headers(encryption: &Encryption) -> (Vec<Header>, Vec<Header>) {
    const NAME: &str = "x-amz-server-side-encryption";
    let header = |suffix: &str, value: &str| (format!("{NAME}{suffix}"), value.to_owned());
    match encryption {
        Encryption::None => (Vec::new(), Vec::new()),
        Encryption::SseC { key } => {
            let key_text = BASE64_STANDARD.encode(key);
            let md5 = Md5::digest(key);
            let md5_text = BASE64_STANDARD.encode(&md5[..]);
            let headers = vec![
                header("-customer-algorithm", "AES256"),
                header("-customer-key", &key_text),
                header("-customer-key-md5", &md5_text),
            ];
            (headers, Vec::new())
        }
        Encryption::SseS3 => (Vec::new(), vec![header("", "AES256")]),
        Encryption::SseKms { key_id } => {
            let mut headers = vec![header("", "aws:kms")];
            if let Some(key_id) = key_id {
                headers.push(header("-aws-kms-key-id", key_id));
            }
            (Vec::new(), headers)
        }
    }
}

/// Returns tags as a query string.
fn tagging(tags: &[(String, String)]) -> String {
    let mut out = Vec::new();
    for (name, value) in tags {
        if !out.is_empty() {
            out.push(b'&');
        }
        encode::push_query(&mut out, name);
        out.push(b'=');
        encode::push_query(&mut out, value);
    }
    String::from_utf8(out).expect("what is encoded is ASCII")
}

/// Returns tags as a document, which is what forms want.
fn tagging_xml(tags: &[(String, String)]) -> String {
    if tags.is_empty() {
        return String::new();
    }
    let mut out = b"<Tagging><TagSet>".to_vec();
    for (name, value) in tags {
        out.extend_from_slice(b"<Tag><Key>");
        encode::push_xml_text(&mut out, name);
        out.extend_from_slice(b"</Key><Value>");
        encode::push_xml_text(&mut out, value);
        out.extend_from_slice(b"</Value></Tag>");
    }
    out.extend_from_slice(b"</TagSet></Tagging>");
    String::from_utf8(out).expect("names and values are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn nothing_is_asked_for_by_default() {
        let headers = OptionHeaders::new(&RequestOptions::default());
        for set in [HeaderSet::None, HeaderSet::Key, HeaderSet::Write] {
            assert_eq!(headers.of(set), []);
        }
        assert_eq!(headers.of(HeaderSet::Extract), pairs(&[(EXTRACT, "true")]));
    }

    #[test]
    fn headers_are_sorted_and_the_key_goes_everywhere() {
        let options = RequestOptions {
            encryption: Encryption::SseC { key: *b"32byteslongsecretkeymustprovided" },
            storage_class: Some("STANDARD_IA".to_owned()),
            tags: pairs(&[("a b", "1&2"), ("é", "")]),
            metadata: pairs(&[("Zeta", "9"), ("alpha", "x y"), ("zeta", "10")]),
            ..RequestOptions::default()
        };
        let headers = OptionHeaders::new(&options);
        // The key and its MD5 by `printf ... | base64` and `openssl md5 -binary | base64`.
        let key = pairs(&[
            ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
            (
                "x-amz-server-side-encryption-customer-key",
                "MzJieXRlc2xvbmdzZWNyZXRrZXltdXN0cHJvdmlkZWQ=",
            ),
            ("x-amz-server-side-encryption-customer-key-md5", "7PpPLAK26ONlVUGOWlusfg=="),
        ]);
        assert_eq!(headers.of(HeaderSet::Key), key);
        let mut write = pairs(&[("x-amz-meta-alpha", "x y"), ("x-amz-meta-zeta", "10")]);
        write.extend(key);
        write.extend(pairs(&[
            ("x-amz-storage-class", "STANDARD_IA"),
            ("x-amz-tagging", "a%20b=1%262&%C3%A9="),
        ]));
        assert_eq!(headers.of(HeaderSet::Write), write);
        assert!(headers.of(HeaderSet::Extract).is_sorted());
        assert_eq!(headers.of(HeaderSet::Extract).len(), write.len() + 1);
        assert_eq!(
            headers.tagging_xml,
            "<Tagging><TagSet><Tag><Key>a b</Key><Value>1&amp;2</Value></Tag>\
             <Tag><Key>é</Key><Value></Value></Tag></TagSet></Tagging>"
        );
    }

    #[test]
    fn the_servers_own_keys_are_named_on_writing_alone() {
        let of = |encryption| {
            let options = RequestOptions { encryption, ..RequestOptions::default() };
            let headers = OptionHeaders::new(&options);
            assert_eq!(headers.of(HeaderSet::Key), []);
            headers.of(HeaderSet::Write).to_vec()
        };
        let name = "x-amz-server-side-encryption";
        assert_eq!(of(Encryption::SseS3), pairs(&[(name, "AES256")]));
        assert_eq!(of(Encryption::SseKms { key_id: None }), pairs(&[(name, "aws:kms")]));
        let key_id = "x-amz-server-side-encryption-aws-kms-key-id";
        assert_eq!(
            of(Encryption::SseKms { key_id: Some("k1".to_owned()) }),
            pairs(&[(name, "aws:kms"), (key_id, "k1")])
        );
    }
}
