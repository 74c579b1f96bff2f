//! MinIO's fan-out: one content under several keys. The keys come in a field of the form that S3
//! does not know, and the answer is not XML: both travel beside what s3s reads and writes.

use hyper::http::Extensions;
use s3s::dto::{ETag, PutObjectOutput};
use s3s::{S3Response, S3Result, s3_error};
use serde_json::{Deserializer, Value, json};

use super::Backend;
use super::archives::KEY_BYTES_MAX;
use super::writing::Place;
use crate::store::{Object, StoreError};

/// The most keys of one fan-out.
const KEYS_MAX: usize = 1000;

/// The field of the form that names the keys, as it came.
#[derive(Clone)]
pub(crate) struct FanoutKeys(pub(crate) String);

/// The answer to a fan-out.
#[derive(Clone)]
pub(crate) struct FanoutAnswer(pub(crate) String);

impl Backend {
    /// Stores an object under every key, and tells what came of each.
    pub(super) fn fan_out(
        &self,
        place: &Place<'_>,
        keys: &FanoutKeys,
        object: Object,
        is_lost: bool,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let keys = keys.read()?;
        let mut lines = String::new();
        for key in &keys {
            let put = match is_lost {
                true => {
                    self.store.lose_write(place.bucket, key);
                    Ok(None)
                }
                false => self.put_copy(&Place { key, ..*place }, object.clone()),
            };
            let line = match put {
                Ok(version) => {
                    json!({ "key": key, "etag": object.tag.to_string(), "versionId": version })
                }
                Err(error) => json!({ "key": key, "error": error.to_string() }),
            };
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        let e_tag = Some(ETag::Strong(object.tag.to_string()));
        let mut response = S3Response::new(PutObjectOutput { e_tag, ..Default::default() });
        response.extensions = Extensions::new();
        response.extensions.insert(FanoutAnswer(lines));
        Ok(response)
    }

    fn put_copy(&self, place: &Place<'_>, object: Object) -> Result<Option<String>, StoreError> {
        let mut attributes = object.attributes.as_deref().cloned();
        let room = self.room_for_copy(place, &object.content, &mut attributes)?;
        let object = Object { attributes: super::attributes::kept(attributes), ..object };
        let version = self.store.put(place.bucket, place.key, object, place.condition, room)?;
        Ok(version.name())
    }
}

impl FanoutKeys {
    /// Returns the keys: each in a JSON document of its own, one behind the other.
    fn read(&self) -> S3Result<Vec<String>> {
        let malformed = || s3_error!(InvalidRequest, "the keys of the fan-out are no JSON objects");
        let mut keys = Vec::new();
        for entry in Deserializer::from_str(&self.0).into_iter::<Value>() {
            let entry = entry.map_err(|_| malformed())?;
            let key = entry["key"].as_str().ok_or_else(malformed)?;
            if key.is_empty() || key.len() > KEY_BYTES_MAX {
                return Err(s3_error!(KeyTooLongError, "a key has 1 to 1024 bytes"));
            }
            keys.push(key.to_owned());
        }
        if !(1..=KEYS_MAX).contains(&keys.len()) {
            let why = format!("a fan-out names 1 to {KEYS_MAX} keys, this one {}", keys.len());
            return Err(s3_error!(InvalidRequest, "{why}"));
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_one_behind_the_other_and_checked() {
        let read = |text: &str| FanoutKeys(text.to_owned()).read();
        let keys = read("{\"key\":\"a\"}\n{\"key\":\"b c\", \"other\": 1}{\"key\":\"d\"}").unwrap();
        assert_eq!(keys, ["a", "b c", "d"]);
        let many = "{\"key\":\"k\"}".repeat(1001);
        for text in ["", "{", "[]", "{\"key\":1}", "{\"key\":\"\"}", &many] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
