//! Writing by an HTML form with a signed policy: one object, or one content under several keys
//! (MinIO's fan-out).

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use plimsoll_driver::{Completion, ContentSource, DriverError};
use plimsoll_http::Body;
use plimsoll_model::{ErrorClass, WallTime};
use serde_json::{Value, json};

use crate::answer::{DOCUMENT_BYTES_MAX, ERROR_BYTES_MAX};
use crate::connection::{Connection, FirstByte, Lease};
use crate::digests::PayloadDigests;
use crate::error;
use crate::s3_request::{HeaderSet, S3Request};

/// How long a form may be used.
const POLICY_TIME: Duration = Duration::from_secs(15 * 60);

/// What a form consists of around the content.
struct Form {
    content_type: String,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Form {
    fn new(boundary: &str, fields: &[(String, String)]) -> Self {
        let mut before = Vec::new();
        for (name, value) in fields {
            let field = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
            before.extend_from_slice(field.as_bytes());
        }
        let file = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"content\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        before.extend_from_slice(file.as_bytes());
        let after = format!("\r\n--{boundary}--\r\n").into_bytes();
        Self { content_type: format!("multipart/form-data; boundary={boundary}"), before, after }
    }

    fn len(&self, content_size: u64) -> u64 {
        (self.before.len() + self.after.len()) as u64 + content_size
    }

    /// Fills `buffer` with the bytes of the body from `offset` on.
    fn fill(&self, content: &mut dyn ContentSource, offset: u64, buffer: &mut [u8]) {
        let content_begin = self.before.len() as u64;
        let content_end = content_begin + content.size();
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let left = match at {
                _ if at < content_begin => content_begin - at,
                _ if at < content_end => content_end - at,
                _ => rest.len() as u64,
            };
            let len = left.min(rest.len() as u64);
            let (piece, after) = rest.split_at_mut(len as usize);
            if at < content_begin {
                piece.copy_from_slice(&self.before[at as usize..][..piece.len()]);
            } else if at < content_end {
                content.fill(at - content_begin, piece);
            } else {
                piece.copy_from_slice(&self.after[(at - content_end) as usize..][..piece.len()]);
            }
            at += len;
            rest = after;
        }
    }
}

impl Connection {
    /// Writes a whole object by a form.
    pub(crate) async fn post(
        &mut self,
        lease: &Lease,
        key: &str,
        content: &mut dyn ContentSource,
    ) -> Completion {
        let form = self.form(lease, key, None);
        self.post_form(lease, &form, content, ERROR_BYTES_MAX).await
    }

    /// Writes one content under several keys. Bytes and objects are those of all copies.
    pub(crate) async fn fan_out(
        &mut self,
        lease: &Lease,
        keys: &[String],
        content: &mut dyn ContentSource,
    ) -> Completion {
        let Some(first) = keys.first() else {
            let message = "a fan-out needs at least one key";
            return lease.ended(Err(DriverError::new(ErrorClass::Client, message)));
        };
        let entries: Vec<String> =
            keys.iter().map(|key| json!({ "key": key }).to_string()).collect();
        let form = self.form(lease, first, Some(entries.join("\n")));
        let mut completion = self.post_form(lease, &form, content, DOCUMENT_BYTES_MAX).await;
        completion.server_name = None;
        if completion.result.is_err() {
            return completion;
        }
        let (written_count, failure) = self.read_copies(keys);
        completion.objects_count = written_count;
        completion.bytes = content.size() * u64::from(written_count);
        completion.result = failure.map_or(Ok(()), Err);
        completion
    }

    /// Returns how many of the copies were written, and what is wrong with the others.
    fn read_copies(&self, keys: &[String]) -> (u32, Option<DriverError>) {
        let lines = serde_json::Deserializer::from_slice(&self.answer.body).into_iter::<Value>();
        let (mut written_count, mut lines_count, mut failure) = (0, 0, None);
        for line in lines {
            let Ok(line) = line else {
                let why = "a line on a copy is not JSON";
                return (written_count, Some(error::of_document(&self.answer, why)));
            };
            lines_count += 1;
            let error = match &line["error"] {
                Value::Null => None,
                Value::String(text) if text.is_empty() => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            match error {
                None => written_count += 1,
                Some(error) => {
                    let key = line["key"].as_str().unwrap_or_default();
                    failure.get_or_insert_with(|| error::of_copy(&self.answer, key, &error));
                }
            }
        }
        if lines_count != keys.len() && failure.is_none() {
            let why = format!("{} copies were asked for, it tells of {lines_count}", keys.len());
            failure = Some(error::of_document(&self.answer, &why));
        }
        (written_count, failure)
    }

    async fn post_form(
        &mut self,
        lease: &Lease,
        form: &Form,
        content: &mut dyn ContentSource,
        answer_bytes_max: usize,
    ) -> Completion {
        let size = content.size();
        let len = form.len(size);
        let call = S3Request::Form { content_type: &form.content_type, size: len };
        let mut fill = |offset: u64, buffer: &mut [u8]| form.fill(content, offset, buffer);
        let body = Body::Source { len, fill: &mut fill };
        let digests = &PayloadDigests::NONE;
        let outcome = self.exchange(lease, &call, digests, body, answer_bytes_max).await;
        let expected = &[204, 200, 201];
        let mut completion = self.complete(lease, &outcome, FirstByte::OfAnswer, expected);
        completion.bytes = if completion.last_byte_sent.is_some() { size } else { 0 };
        completion
    }

    /// Makes the form for a key: the policy covers every field, as S3 demands.
    fn form(&mut self, lease: &Lease, key: &str, copies: Option<String>) -> Form {
        let now = self.wall_time(lease);
        let target = self.target.clone();
        // Token and signature are to be of the same keys.
        self.requests.follow_keys();
        let mut fields = vec![
            ("key".to_owned(), key.to_owned()),
            ("Content-Type".to_owned(), "application/octet-stream".to_owned()),
        ];
        let headers = target.headers.of(HeaderSet::Write).iter();
        fields.extend(headers.filter(|header| header.0 != "x-amz-tagging").cloned());
        if !target.headers.tagging_xml.is_empty() {
            fields.push(("tagging".to_owned(), target.headers.tagging_xml.clone()));
        }
        if let Some(token) = self.requests.session_token() {
            fields.push(("x-amz-security-token".to_owned(), token.to_owned()));
        }
        if let Some((signer, stamp)) = self.requests.form_signer(now) {
            let mut push = |name: &str, value: String| fields.push((name.to_owned(), value));
            push("x-amz-algorithm", "AWS4-HMAC-SHA256".to_owned());
            push("x-amz-credential", signer.credential());
            push("x-amz-date", String::from_utf8_lossy(&stamp).into_owned());
            let policy = policy(&lease.place().bucket, &fields, now.after(POLICY_TIME));
            let signature = signer.sign_policy(&policy);
            fields.push(("policy".to_owned(), policy));
            let signature = String::from_utf8_lossy(&signature).into_owned();
            fields.push(("x-amz-signature".to_owned(), signature));
        }
        if let Some(copies) = copies {
            fields.push(("x-minio-fanout-list".to_owned(), copies));
        }
        // No content that is not made for it holds this.
        let boundary = format!("plimsoll-{:016x}-end-of-field", now.as_unix_ns());
        Form::new(&boundary, &fields)
    }
}

/// Returns the policy that allows a form with these fields and no other, in base 64.
fn policy(bucket: &str, fields: &[(String, String)], until: WallTime) -> String {
    let (year, month, day, hour, minute, second) = until.civil();
    let expiration =
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z");
    let mut conditions = vec![json!({ "bucket": bucket })];
    conditions.extend(fields.iter().map(|(name, value)| json!(["eq", format!("${name}"), value])));
    let policy = json!({ "expiration": expiration, "conditions": conditions });
    BASE64_STANDARD.encode(policy.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Secret;

    use crate::sigv4::Signer;

    struct Letters;

    impl ContentSource for Letters {
        fn size(&self) -> u64 {
            26
        }

        fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
            for (i, byte) in (offset..).zip(buffer) {
                *byte = b'a' + i as u8;
            }
        }
    }

    #[test]
    fn a_form_is_the_same_in_whatever_pieces_it_is_made() {
        let form = Form::new("BB", &[("key".to_owned(), "a/é".to_owned())]);
        let whole = "--BB\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\na/é\r\n\
            --BB\r\nContent-Disposition: form-data; name=\"file\"; filename=\"content\"\r\n\
            Content-Type: application/octet-stream\r\n\r\nabcdefghijklmnopqrstuvwxyz\r\n--BB--\r\n";
        assert_eq!(form.len(26), whole.len() as u64);
        for piece in [1, 5, 1000] {
            let mut out = vec![0; whole.len()];
            for (index, part) in out.chunks_mut(piece).enumerate() {
                form.fill(&mut Letters, (index * piece) as u64, part);
            }
            assert_eq!(String::from_utf8(out).unwrap(), whole, "pieces of {piece}");
        }
    }

    /// "Example: Browser-Based Upload using HTTP POST" in the S3 API reference: its policy in base
    /// 64, as it stands there, and its signature.
    #[test]
    fn the_signature_of_the_s3_documentation() {
        let policy = "eyAiZXhwaXJhdGlvbiI6ICIyMDE1LTEyLTMwVDEyOjAwOjAwLjAwMFoiLA0KICAiY29uZGl0\
            aW9ucyI6IFsNCiAgICB7ImJ1Y2tldCI6ICJzaWd2NGV4YW1wbGVidWNrZXQifSwNCiAgICBbInN0YXJ0cy13\
            aXRoIiwgIiRrZXkiLCAidXNlci91c2VyMS8iXSwNCiAgICB7ImFjbCI6ICJwdWJsaWMtcmVhZCJ9LA0KICAg\
            IHsic3VjY2Vzc19hY3Rpb25fcmVkaXJlY3QiOiAiaHR0cDovL3NpZ3Y0ZXhhbXBsZWJ1Y2tldC5zMy5hbWF6\
            b25hd3MuY29tL3N1Y2Nlc3NmdWxfdXBsb2FkLmh0bWwifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRDb250\
            ZW50LVR5cGUiLCAiaW1hZ2UvIl0sDQogICAgeyJ4LWFtei1tZXRhLXV1aWQiOiAiMTQzNjUxMjM2NTEyNzQi\
            fSwNCiAgICB7IngtYW16LXNlcnZlci1zaWRlLWVuY3J5cHRpb24iOiAiQUVTMjU2In0sDQogICAgWyJzdGFy\
            dHMtd2l0aCIsICIkeC1hbXotbWV0YS10YWciLCAiIl0sDQoNCiAgICB7IngtYW16LWNyZWRlbnRpYWwiOiAi\
            QUtJQUlPU0ZPRE5ON0VYQU1QTEUvMjAxNTEyMjkvdXMtZWFzdC0xL3MzL2F3czRfcmVxdWVzdCJ9LA0KICAg\
            IHsieC1hbXotYWxnb3JpdGhtIjogIkFXUzQtSE1BQy1TSEEyNTYifSwNCiAgICB7IngtYW16LWRhdGUiOiAi\
            MjAxNTEyMjlUMDAwMDAwWiIgfQ0KICBdDQp9";
        let secret = &Secret::from("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned());
        let mut signer = Signer::new("AKIAIOSFODNN7EXAMPLE", secret, "us-east-1", "s3");
        // 2015-12-29T00:00:00Z, by `date -u -d ... +%s`.
        signer.advance(WallTime::from_unix_ns(1_451_347_200_000_000_000));
        assert_eq!(signer.credential(), "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request");
        let signature = signer.sign_policy(policy);
        assert_eq!(
            std::str::from_utf8(&signature).unwrap(),
            "8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e"
        );
    }

    #[test]
    fn the_policy_names_every_field() {
        let fields =
            [("key".to_owned(), "a\"b".to_owned()), ("x-amz-date".to_owned(), "d".to_owned())];
        let until = WallTime::from_unix_ns(1_451_347_200_000_000_000);
        let policy = BASE64_STANDARD.decode(policy("bb", &fields, until)).unwrap();
        assert_eq!(
            String::from_utf8(policy).unwrap(),
            "{\"expiration\":\"2015-12-29T00:00:00.000Z\",\"conditions\":[{\"bucket\":\"bb\"},\
             [\"eq\",\"$key\",\"a\\\"b\"],[\"eq\",\"$x-amz-date\",\"d\"]]}"
        );
    }
}
