//! Large objects: segments beside the object, and a manifest that makes one object of them.
//!
//! The segments of `KEY` lie at `KEY/plimsoll-segments/UPLOAD/NUMBER` in the same container, so
//! that whatever removes what a run wrote removes them too. A listing that is measured passes them
//! over.

use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_driver::{Completion, ContentSource, DriverError, Settled};
use plimsoll_model::ErrorClass;
use serde::Deserialize;
use serde_json::json;

use crate::config::Manifest;
use crate::error;
use crate::listing::Listing;
use crate::request::{Follows, encoded};
use crate::session::{Call, SwiftSession};

/// What parts the key of a large object from the rest of its segments' names.
const SEGMENTS: &str = "/plimsoll-segments/";
/// How many digits the number of a segment has: names are to be in the order of numbers.
const NUMBER_DIGITS: usize = 8;
/// How long removing the segments behind failed operations may take.
const GIVE_UP_MAX: Duration = Duration::from_secs(5);
/// How many uploads of failed attempts are remembered until their segments are removed.
const UNFINISHED_COUNT_MAX: usize = 256;
/// How many entries are asked for per page.
const PAGE_SIZE: u32 = 1_000;
/// What says of a DLO where its segments are.
const OBJECT_MANIFEST: &str = "x-object-manifest";
/// What a server says of an object that has no list of segments.
const NO_MANIFEST: &str = "Not an SLO manifest";

/// An upload that has begun and is neither complete nor given up.
pub(crate) struct Unfinished {
    bucket: Option<String>,
    key: String,
    upload: String,
}

/// Tells whether a name is that of a segment.
pub(crate) fn is_segment(name: &str) -> bool {
    let Some((_, rest)) = name.rsplit_once(SEGMENTS) else { return false };
    let number = rest.split_once('/').map_or("", |(_, number)| number);
    number.len() == NUMBER_DIGITS && number.bytes().all(|digit| digit.is_ascii_digit())
}

fn prefix_of(key: &str, upload: &str) -> String {
    format!("{key}{SEGMENTS}{upload}/")
}

fn segment_of(key: &str, upload: &str, number: u32) -> String {
    format!("{key}{SEGMENTS}{upload}/{number:0width$}", width = NUMBER_DIGITS)
}

/// Returns the manifest of a large object: a list of segments with sizes and sums, which the server
/// compares with what it has.
fn manifest_of(
    container: &str,
    key: &str,
    upload: &str,
    parts: &[String],
) -> Result<Vec<u8>, DriverError> {
    let segment = |(number, part): (u32, &String)| {
        let (size, etag) = part.split_once('-')?;
        let size: u64 = size.parse().ok()?;
        let path = format!("/{container}/{}", segment_of(key, upload, number));
        Some(json!({"path": path, "etag": etag, "size_bytes": size}))
    };
    let segments: Option<Vec<_>> = (1..).zip(parts).map(segment).collect();
    let Some(segments) = segments else {
        let why = "a segment has another name than this driver gives";
        return Err(DriverError::new(ErrorClass::Client, why));
    };
    Ok(json!(segments).to_string().into_bytes())
}

/// What a server says of a removal of an object with its segments.
#[derive(Deserialize)]
struct Removal {
    #[serde(rename = "Response Status", default)]
    status: String,
    #[serde(rename = "Errors", default)]
    errors: Vec<(String, String)>,
}

/// How a removal ended.
enum Removed {
    Done,
    /// It has no list of segments.
    IsPlain,
}

impl Removal {
    fn judge(self, status: u16) -> Result<Removed, DriverError> {
        if self.errors.iter().any(|(_, why)| why == NO_MANIFEST) {
            return Ok(Removed::IsPlain);
        }
        let is_done = self.status.starts_with('2') || self.status.starts_with("404");
        match self.errors.into_iter().next() {
            None if is_done => Ok(Removed::Done),
            first => {
                let why = first.map_or(self.status, |(_, why)| why);
                let of_segment = why.get(..3).and_then(|digits| digits.parse().ok());
                let of_segment: u16 = of_segment.unwrap_or(status);
                match of_segment {
                    400..=599 => Err(error::of_answer(of_segment, why.as_bytes())),
                    _ => Err(error::of_success(status, format!("not all was removed: {why}"))),
                }
            }
        }
    }
}

/// A segment of an object's content.
struct Segment<'a> {
    content: &'a mut dyn ContentSource,
    offset: u64,
    size: u64,
}

impl ContentSource for Segment<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        self.content.fill(self.offset + offset, buffer);
    }
}

impl SwiftSession {
    /// Begins an upload. Swift is not asked for that: segments are objects, and their names are
    /// ours.
    pub(crate) fn create_upload(&self) -> Completion {
        let name = self.next_upload().into();
        Completion { objects_count: 1, server_name: Some(name), ..self.ended(Ok(())) }
    }

    fn next_upload(&self) -> String {
        let number = self.shared.uploads.fetch_add(1, Ordering::Relaxed);
        format!("{}{number:08x}", self.shared.entropy)
    }

    /// Writes one segment; its name is its size and the sum that the server states.
    pub(crate) async fn put_segment(
        &mut self,
        bucket: Option<&str>,
        key: &str,
        upload: &str,
        number: u32,
        content: &mut dyn ContentSource,
    ) -> Completion {
        if let Err(error) = self.set_key(bucket, &segment_of(key, upload, number)) {
            return self.ended(Err(error));
        }
        let size = content.size();
        let mut done = self.send(content).await;
        if done.result.is_ok() {
            let answer = &self.wire.answer;
            match answer.etag.as_str() {
                "" => {
                    let why = "the segment was taken without an ETag, so no object can list it";
                    done.result = Err(error::of_success(answer.status, why));
                    done.objects_count = 0;
                }
                etag => done.server_name = Some(format!("{size}-{etag}").into()),
            }
        }
        done
    }

    /// Makes an object of segments.
    pub(crate) async fn complete_upload(
        &mut self,
        bucket: Option<&str>,
        key: &str,
        upload: &str,
        parts: &[String],
    ) -> Completion {
        if let Err(error) = self.set_key(bucket, key) {
            return self.ended(Err(error));
        }
        let container = self.container(bucket).to_owned();
        match self.shared.config.manifest {
            Manifest::Static => match manifest_of(&container, key, upload, parts) {
                Err(error) => self.ended(Err(error)),
                Ok(list) => {
                    let follows = Follows::Json(list.len() as u64);
                    let query = "?multipart-manifest=put";
                    let call = Call { method: "PUT", query, follows };
                    self.ask(call, &list, &[201], &[]).await
                }
            },
            Manifest::Dynamic => {
                let (container, prefix) = (encoded(&container), prefix_of(key, upload));
                let value = format!("{container}/{}", encoded(&prefix));
                let headers = [("X-Object-Manifest", value.as_str())];
                self.ask(Call::with("PUT", &headers), &[], &[201], &[]).await
            }
        }
    }

    /// Removes the segments of an upload.
    pub(crate) async fn abort_upload(
        &mut self,
        bucket: Option<&str>,
        key: &str,
        upload: &str,
    ) -> Completion {
        match self.remove_below(bucket, &prefix_of(key, upload)).await {
            Ok(()) => Completion { objects_count: 1, ..self.ended(Ok(())) },
            Err(error) => self.ended(Err(error)),
        }
    }

    async fn remove_below(
        &mut self,
        bucket: Option<&str>,
        prefix: &str,
    ) -> Result<(), DriverError> {
        let listing =
            Listing { prefix, page_size: PAGE_SIZE, has_segments: true, ..Listing::default() };
        for segment in self.find(bucket, listing).await? {
            // Whatever the server lists, nothing outside of the prefix is touched.
            if segment.starts_with(prefix) {
                self.delete_alone(bucket, &segment).await.result?;
            }
        }
        Ok(())
    }

    /// Writes an object in segments, one after the other; those of one that fails are removed when
    /// the session settles. First byte and end are those of the answer that makes an object of
    /// them, the last byte sent is that of the last segment.
    pub(crate) async fn put_in_segments(
        &mut self,
        bucket: Option<&str>,
        key: &str,
        content: &mut dyn ContentSource,
        segment_bytes: u64,
    ) -> Completion {
        let upload = self.next_upload();
        // Kept first, as whoever waits for the operation may stop waiting at any moment.
        if self.unfinished.len() < UNFINISHED_COUNT_MAX {
            let (bucket, key) = (bucket.map(str::to_owned), key.to_owned());
            self.unfinished.push(Unfinished { bucket, key, upload: upload.clone() });
        }
        let (whole, mut sent, mut parts) = (content.size(), 0, Vec::new());
        let mut last_byte_sent = None;
        for number in 1.. {
            let size = segment_bytes.min(whole - sent);
            let mut segment = Segment { content, offset: sent, size };
            let mut done = self.put_segment(bucket, key, &upload, number, &mut segment).await;
            let Some(part) = done.server_name.take() else {
                return Completion { bytes: sent + done.bytes, objects_count: 0, ..done };
            };
            sent += size;
            last_byte_sent = done.last_byte_sent;
            parts.push(String::from(part));
            if sent == whole {
                break;
            }
        }
        let done = self.complete_upload(bucket, key, &upload, &parts).await;
        if done.result.is_ok() {
            self.unfinished.retain(|unfinished| unfinished.upload != upload);
        }
        Completion { bytes: sent, last_byte_sent, ..done }
    }

    /// Tries once to remove the segments of each upload that is unfinished; the sweep of the run's
    /// prefix finds what is left.
    pub(crate) async fn give_up(&mut self) -> Settled {
        let uploads = std::mem::take(&mut self.unfinished);
        let mut settled = Settled { given_up_count: 0, left_count: uploads.len() as u64 };
        let each = async {
            for Unfinished { bucket, key, upload } in &uploads {
                let prefix = prefix_of(key, upload);
                if self.remove_below(bucket.as_deref(), &prefix).await.is_ok() {
                    settled.given_up_count += 1;
                    settled.left_count -= 1;
                }
            }
        };
        // A store that does not answer this either is not waited for; its connection is given up.
        let _ = tokio::time::timeout(GIVE_UP_MAX, each).await;
        settled
    }

    /// Removes an object and its segments.
    pub(crate) async fn delete_whole(&mut self, bucket: Option<&str>, key: &str) -> Completion {
        match self.shared.config.manifest {
            Manifest::Static => self.delete_static(bucket, key).await,
            Manifest::Dynamic => self.delete_dynamic(bucket, key).await,
        }
    }

    async fn delete_static(&mut self, bucket: Option<&str>, key: &str) -> Completion {
        if let Err(error) = self.set_key(bucket, key) {
            return self.ended(Err(error));
        }
        let call = Call {
            method: "DELETE",
            query: "?multipart-manifest=delete",
            follows: Follows::Document,
        };
        let mut done = self.remove(call).await;
        let answer = &self.wire.answer;
        if done.result.is_err() || answer.status != 200 {
            return done;
        }
        let removal = serde_json::from_slice::<Removal>(answer.body.trim_ascii());
        let judged = removal.map_or_else(
            |error| {
                let why = format!("what was removed cannot be understood: {error}");
                Err(error::of_success(answer.status, why))
            },
            |removal| removal.judge(answer.status),
        );
        match judged {
            Ok(Removed::Done) => done,
            Ok(Removed::IsPlain) => {
                let first_byte = done.first_byte;
                Completion { first_byte, ..self.delete_alone(bucket, key).await }
            }
            Err(error) => {
                (done.result, done.objects_count) = (Err(error), 0);
                done
            }
        }
    }

    async fn delete_dynamic(&mut self, bucket: Option<&str>, key: &str) -> Completion {
        if let Err(error) = self.set_key(bucket, key) {
            return self.ended(Err(error));
        }
        let looked = self.ask(Call::plain("HEAD"), &[], &[200, 204, 404], &[OBJECT_MANIFEST]).await;
        if looked.result.is_err() {
            return looked;
        }
        let stated = self.wire.answer.header(OBJECT_MANIFEST).unwrap_or_default();
        let own = format!("{}/{}", encoded(self.container(bucket)), encoded(key));
        let rest = stated.strip_prefix(&*own).and_then(|rest| rest.strip_prefix(SEGMENTS));
        // Segments that somebody else has put elsewhere are not ours to remove.
        let upload = rest.and_then(|rest| rest.strip_suffix('/')).map(str::to_owned);
        let is_ours = |upload: &String| upload.bytes().all(|digit| digit.is_ascii_hexdigit());
        if let Some(upload) = upload.filter(is_ours)
            && let Err(error) = self.remove_below(bucket, &prefix_of(key, &upload)).await
        {
            return self.ended(Err(error));
        }
        let done = self.delete_alone(bucket, key).await;
        Completion { first_byte: looked.first_byte, ..done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_known_by_their_names() {
        assert_eq!(segment_of("a/b", "0f", 12), "a/b/plimsoll-segments/0f/00000012");
        assert!(is_segment("a/b/plimsoll-segments/0f/00000012"));
        for other in ["a/b", "a/plimsoll-segments/x", "a/plimsoll-segments/x/1", "a/00000012"] {
            assert!(!is_segment(other), "{other}");
        }
    }

    #[test]
    fn a_manifest_lists_segments_in_order() {
        let parts = ["5-aa".to_owned(), "3-bb".to_owned()];
        let list = manifest_of("c", "k y", "u", &parts).unwrap();
        let expected = json!([
            {"path": "/c/k y/plimsoll-segments/u/00000001", "etag": "aa", "size_bytes": 5},
            {"path": "/c/k y/plimsoll-segments/u/00000002", "etag": "bb", "size_bytes": 3},
        ]);
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&list).unwrap(), expected);
        assert!(manifest_of("c", "k", "u", &["x".to_owned()]).is_err());
    }

    #[test]
    fn what_a_removal_came_to_is_read() {
        let judge = |text: &str| serde_json::from_str::<Removal>(text).unwrap().judge(200);
        let done = r#"{"Response Status": "200 OK", "Number Deleted": 3, "Errors": []}"#;
        assert!(matches!(judge(done), Ok(Removed::Done)));
        let plain = r#"{"Response Status": "400 Bad Request",
            "Errors": [["/c/plain", "Not an SLO manifest"]]}"#;
        assert!(matches!(judge(plain), Ok(Removed::IsPlain)));
        let denied = r#"{"Response Status": "400 Bad Request",
            "Errors": [["/c/k", "403 Forbidden"]]}"#;
        assert_eq!(judge(denied).err().unwrap().class, ErrorClass::Denied);
        let odd = r#"{"Response Status": "", "Errors": [["/c/k", "odd"]]}"#;
        assert_eq!(judge(odd).err().unwrap().class, ErrorClass::Protocol);
    }
}
