//! The fields of an HTML form before its content, looked through for one that s3s does not know.

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use memchr::memmem;

use crate::backend::FanoutKeys;

/// The field that names the keys of a fan-out.
const FIELD: &[u8] = b"name=\"x-minio-fanout-list\"";

/// The same as a field that no policy needs to cover: who signs a form does not know of it. It is
/// as long, so that the length of the form stays.
const IGNORED: &[u8] = b"name=\"x-ignore-fanoutlist\"";

/// The field of the content, which is the last.
const CONTENT: &[u8] = b"name=\"file\"";

/// How much is looked through for the content; longer forms are handed on as they came.
const FIELDS_BYTES_MAX: usize = 2 << 20;

/// The beginning of a form.
pub(super) struct Opening {
    pub(super) bytes: Bytes,
    pub(super) fanout: Option<FanoutKeys>,
}

/// Tells whether a request is such a form.
pub(super) fn is_one(head: &Parts) -> bool {
    head.method == Method::POST
        && head.headers.get(CONTENT_TYPE).is_some_and(|kind| {
            let form = b"multipart/form-data";
            kind.as_bytes().get(..form.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(form))
        })
}

impl Opening {
    /// Reads a form up to its content.
    pub(super) async fn read(body: &mut Incoming) -> Self {
        let mut bytes = BytesMut::new();
        let mut frames = body.into_data_stream();
        let mut looked = 0;
        while bytes.len() < FIELDS_BYTES_MAX {
            // What breaks the body now breaks it again for who reads on.
            let Some(Ok(frame)) = frames.next().await else { break };
            bytes.extend_from_slice(&frame);
            if memmem::find(&bytes[looked..], CONTENT).is_some() {
                break;
            }
            looked = bytes.len().saturating_sub(CONTENT.len());
        }
        let fanout = take_keys(&mut bytes);
        Self { bytes: bytes.freeze(), fanout }
    }
}

/// Returns the field of the keys, and gives it another name.
fn take_keys(form: &mut [u8]) -> Option<FanoutKeys> {
    let end = memmem::find(form, CONTENT).unwrap_or(form.len());
    let at = memmem::find(&form[..end], FIELD)?;
    let boundary = form[..memmem::find(form, b"\r\n")?].to_vec();
    let value = at + memmem::find(&form[at..], b"\r\n\r\n")? + 4;
    let len = memmem::find(&form[value..], &[b"\r\n", &boundary[..]].concat())?;
    let keys = String::from_utf8(form[value..value + len].to_vec()).ok()?;
    form[at..at + FIELD.len()].copy_from_slice(IGNORED);
    Some(FanoutKeys(keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_taken_and_the_form_stays_as_long() {
        let field = |name: &str, value: &str| {
            format!("--BB\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let list = "{\"key\":\"a\"}\n{\"key\":\"b\"}";
        let content = format!("{}--BB--\r\n", field("file", &field("x-minio-fanout-list", "no")));
        let with = field("key", "k") + &field("x-minio-fanout-list", list) + &content;
        let mut form = with.clone().into_bytes();
        assert_eq!(take_keys(&mut form).unwrap().0, list);
        let expected = field("key", "k") + &field("x-ignore-fanoutlist", list) + &content;
        assert_eq!(String::from_utf8(form).unwrap(), expected);
        // What looks like it within the content is content.
        let mut without = (field("key", "k") + &content).into_bytes();
        assert!(take_keys(&mut without).is_none());
        assert!(take_keys(&mut b"--BB\r\nname=\"x-minio-fanout-list\"".to_vec()).is_none());
    }
}
