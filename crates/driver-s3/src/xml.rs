//! The XML of answers, read with a pull reader: errors, listings and the results of multi-object
//! deletes.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};

use crate::encode;

/// Deeper nesting than any answer of S3 has.
const DEPTH_MAX: usize = 16;

/// Why an answer is not the XML it should be; a sentence.
pub(crate) type XmlError = String;

/// What an `<Error>` document says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorText {
    pub(crate) code: String,
    pub(crate) message: String,
    /// The region the server wants, where it says so.
    pub(crate) region: String,
}

/// What a multi-object delete did not remove.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteFailures {
    pub(crate) count: u32,
    /// The first, with its key in front of the message.
    pub(crate) first: Option<ErrorText>,
}

/// One page of a listing, in buffers that are reused from page to page.
#[derive(Debug, Default)]
pub(crate) struct ListedPage {
    /// The keys as they stand in the answer, one after the other.
    keys: String,
    /// Per entry, where its key ends and its size.
    entries: Vec<(usize, u64)>,
    url_encoded: bool,
    pub(crate) truncated: bool,
    /// Where the next page begins; empty when the answer has none.
    pub(crate) next_token: String,
    decoded: Vec<u8>,
}

impl ListedPage {
    /// Reads a `ListBucketResult`. Nothing is handed on before the whole page is known to be
    /// well-formed.
    pub(crate) fn parse(&mut self, xml: &[u8]) -> Result<(), XmlError> {
        self.keys.clear();
        self.entries.clear();
        self.next_token.clear();
        (self.url_encoded, self.truncated) = (false, false);
        let mut size = None;
        let mut key_begin = 0;
        walk(xml, |path, text| {
            match path {
                "ListBucketResult/Contents/Key" => {
                    self.keys.truncate(key_begin);
                    self.keys.push_str(text);
                }
                "ListBucketResult/Contents/Size" => {
                    size = Some(text.trim().parse().map_err(|_| format!("`{text}` is no size"))?);
                }
                "ListBucketResult/Contents" => {
                    if self.keys.len() == key_begin {
                        return Err("the list holds an entry without a key".to_owned());
                    }
                    let size = size.take().ok_or("the list holds an entry without a size")?;
                    key_begin = self.keys.len();
                    self.entries.push((key_begin, size));
                }
                "ListBucketResult/IsTruncated" => self.truncated = text.trim() == "true",
                "ListBucketResult/NextContinuationToken" => text.clone_into(&mut self.next_token),
                "ListBucketResult/EncodingType" => self.url_encoded = text.trim() == "url",
                _ if path.starts_with("ListBucketResult") => {}
                _ => return Err(format!("expected a ListBucketResult but got `{path}`")),
            }
            Ok(())
        })
    }

    /// Hands every entry to `take` until it returns false.
    pub(crate) fn for_each(
        &mut self,
        mut take: impl FnMut(&str, u64) -> bool,
    ) -> Result<(), XmlError> {
        let mut begin = 0;
        for &(end, size) in &self.entries {
            let listed = &self.keys[begin..end];
            let key = if self.url_encoded {
                encode::decode_listed(listed, &mut self.decoded)
                    .ok_or_else(|| format!("the list holds a key that is no UTF-8: `{listed}`"))?
            } else {
                listed
            };
            if !take(key, size) {
                return Ok(());
            }
            begin = end;
        }
        Ok(())
    }
}

/// Returns what an answer's body says if it is an `<Error>` document, whole or not.
pub(crate) fn parse_error(xml: &[u8]) -> Option<ErrorText> {
    let mut error = ErrorText::default();
    // A document that breaks off still says what it said before.
    let _ = walk(xml, |path, text| {
        let within = path.strip_prefix("ErrorResponse/").unwrap_or(path);
        match within {
            "Error/Code" => text.clone_into(&mut error.code),
            "Error/Message" => text.clone_into(&mut error.message),
            "Error/Region" => text.clone_into(&mut error.region),
            _ => {}
        }
        Ok(())
    });
    (!error.code.is_empty()).then_some(error)
}

/// Reads a `DeleteResult`.
pub(crate) fn parse_delete_result(xml: &[u8]) -> Result<DeleteFailures, XmlError> {
    let mut failures = DeleteFailures::default();
    let (mut key, mut entry) = (String::new(), ErrorText::default());
    walk(xml, |path, text| {
        match path {
            "DeleteResult/Error/Key" => text.clone_into(&mut key),
            "DeleteResult/Error/Code" => text.clone_into(&mut entry.code),
            "DeleteResult/Error/Message" => text.clone_into(&mut entry.message),
            "DeleteResult/Error" => {
                let entry = std::mem::take(&mut entry);
                // What is not there needs no removing.
                if entry.code != "NoSuchKey" {
                    failures.count += 1;
                    failures.first.get_or_insert_with(|| ErrorText {
                        message: format!("`{key}` was not removed: {}", entry.message),
                        ..entry
                    });
                }
            }
            _ if path.starts_with("DeleteResult") => {}
            _ => return Err(format!("expected a DeleteResult but got `{path}`")),
        }
        Ok(())
    })?;
    Ok(failures)
}

/// Calls `visit` at the end of every element with its path of local names from the root, joined by
/// `/`, and the text that came since the last tag.
fn walk(
    xml: &[u8],
    mut visit: impl FnMut(&str, &str) -> Result<(), XmlError>,
) -> Result<(), XmlError> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().expand_empty_elements = true;
    let (mut path, mut text) = (String::new(), String::new());
    let (mut depth, mut roots_count) = (0, 0);
    loop {
        let event = reader.read_event().map_err(|error| one_line(&error))?;
        match event {
            Event::Start(start) => {
                depth += 1;
                roots_count += usize::from(depth == 1);
                if depth > DEPTH_MAX || roots_count > 1 {
                    return Err("the answer is nested as no answer of S3 is".to_owned());
                }
                if depth > 1 {
                    path.push('/');
                }
                let name = start.local_name();
                path.push_str(
                    std::str::from_utf8(name.as_ref()).map_err(|error| one_line(&error))?,
                );
                text.clear();
            }
            Event::End(_) => {
                visit(&path, &text)?;
                path.truncate(path.rfind('/').unwrap_or(0));
                depth -= 1;
                text.clear();
            }
            Event::Text(piece) => text.push_str(&piece.decode().map_err(|error| one_line(&error))?),
            Event::CData(piece) => {
                text.push_str(&piece.decode().map_err(|error| one_line(&error))?);
            }
            Event::GeneralRef(reference) => push_reference(&mut text, &reference)?,
            Event::Eof if depth > 0 => return Err("the XML breaks off".to_owned()),
            Event::Eof if roots_count == 0 => return Err("there is no XML".to_owned()),
            Event::Eof => return Ok(()),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) => {}
            Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

fn push_reference(text: &mut String, reference: &BytesRef<'_>) -> Result<(), XmlError> {
    if let Some(character) = reference.resolve_char_ref().map_err(|error| one_line(&error))? {
        text.push(character);
        return Ok(());
    }
    let name = reference.decode().map_err(|error| one_line(&error))?;
    let resolved = resolve_predefined_entity(&name);
    text.push_str(resolved.ok_or_else(|| format!("`&{name};` is no known reference"))?);
    Ok(())
}

fn one_line(error: &dyn std::fmt::Display) -> XmlError {
    error.to_string().replace('\n', " ")
}

#[cfg(test)]
mod tests;
