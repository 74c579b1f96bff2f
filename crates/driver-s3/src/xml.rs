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

/// What is listed, and what its documents call things.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listed {
    Objects,
    Versions,
    Uploads,
}

impl Listed {
    fn root(self) -> &'static str {
        match self {
            Self::Objects => "ListBucketResult",
            Self::Versions => "ListVersionsResult",
            Self::Uploads => "ListMultipartUploadsResult",
        }
    }
}

/// One entry of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a str,
    /// The version or the upload; empty in a listing of objects.
    pub(crate) id: &'a str,
    /// Zero for what has none.
    pub(crate) size: u64,
    /// Whether it is the mark of a deletion.
    pub(crate) is_marker: bool,
}

/// One page of a listing, in buffers that are reused from page to page.
#[derive(Debug, Default)]
pub(crate) struct ListedPage {
    /// The keys as they stand in the answer, each followed by its version or upload.
    texts: String,
    entries: Vec<ListedEntry>,
    url_encoded: bool,
    pub(crate) truncated: bool,
    /// Where the next page begins: a token, or a key; empty when the answer has none.
    pub(crate) next_token: String,
    /// The version or upload where the next page begins; empty when the answer has none.
    pub(crate) next_id: String,
    decoded: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct ListedEntry {
    /// Where in the texts its key and its id end.
    key_end: usize,
    id_end: usize,
    size: u64,
    is_marker: bool,
}

impl ListedPage {
    /// Reads a listing. Nothing is handed on before the whole page is known to be well-formed.
    pub(crate) fn parse(&mut self, listed: Listed, xml: &[u8]) -> Result<(), XmlError> {
        self.texts.clear();
        self.entries.clear();
        self.next_token.clear();
        self.next_id.clear();
        (self.url_encoded, self.truncated) = (false, false);
        let (mut size, mut begin) = (None, 0);
        let mut id = String::new();
        walk(xml, |path, text| {
            let within = path.strip_prefix(listed.root()).and_then(|rest| match rest {
                "" => Some(""),
                _ => rest.strip_prefix('/'),
            });
            let Some(within) = within else {
                return Err(format!("expected a {} but got `{path}`", listed.root()));
            };
            match (listed, within) {
                (Listed::Objects, "Contents/Key")
                | (Listed::Versions, "Version/Key" | "DeleteMarker/Key")
                | (Listed::Uploads, "Upload/Key") => {
                    self.texts.truncate(begin);
                    self.texts.push_str(text);
                }
                (Listed::Objects, "Contents/Size") | (Listed::Versions, "Version/Size") => {
                    size =
                        Some(text.trim().parse().map_err(|_| format!("`{text}` is not a size"))?);
                }
                (Listed::Versions, "Version/VersionId" | "DeleteMarker/VersionId")
                | (Listed::Uploads, "Upload/UploadId") => text.clone_into(&mut id),
                (Listed::Objects, "Contents")
                | (Listed::Versions, "Version" | "DeleteMarker")
                | (Listed::Uploads, "Upload") => {
                    let has_size = matches!(within, "Contents" | "Version");
                    let size = if has_size { size.take() } else { Some(0) };
                    self.end_entry(begin, &id, size, within == "DeleteMarker")?;
                    id.clear();
                    begin = self.texts.len();
                }
                (_, "IsTruncated") => self.truncated = text.trim() == "true",
                (_, "EncodingType") => self.url_encoded = text.trim() == "url",
                (Listed::Objects, "NextContinuationToken")
                | (Listed::Versions | Listed::Uploads, "NextKeyMarker") => {
                    text.clone_into(&mut self.next_token);
                }
                (Listed::Versions, "NextVersionIdMarker")
                | (Listed::Uploads, "NextUploadIdMarker") => text.clone_into(&mut self.next_id),
                _ => {}
            }
            Ok(())
        })?;
        if self.url_encoded && !matches!(listed, Listed::Objects) {
            let key = encode::decode_listed(&self.next_token, &mut self.decoded);
            let key = key.ok_or("the list goes on at a key that is not UTF-8")?.to_owned();
            self.next_token = key;
        }
        Ok(())
    }

    fn end_entry(
        &mut self,
        begin: usize,
        id: &str,
        size: Option<u64>,
        is_marker: bool,
    ) -> Result<(), XmlError> {
        let key_end = self.texts.len();
        if key_end == begin {
            return Err("the list holds an entry without a key".to_owned());
        }
        let size = size.ok_or("the list holds an entry without a size")?;
        self.texts.push_str(id);
        self.entries.push(ListedEntry { key_end, id_end: self.texts.len(), size, is_marker });
        Ok(())
    }

    /// Hands every entry to `take` until it returns false.
    pub(crate) fn for_each(
        &mut self,
        mut take: impl FnMut(Entry<'_>) -> bool,
    ) -> Result<(), XmlError> {
        let mut begin = 0;
        for &ListedEntry { key_end, id_end, size, is_marker } in &self.entries {
            let (listed, id) = (&self.texts[begin..key_end], &self.texts[key_end..id_end]);
            let key = if self.url_encoded {
                encode::decode_listed(listed, &mut self.decoded)
                    .ok_or_else(|| format!("the list holds a key that is not UTF-8: `{listed}`"))?
            } else {
                listed
            };
            if !take(Entry { key, id, size, is_marker }) {
                return Ok(());
            }
            begin = id_end;
        }
        Ok(())
    }
}

/// Returns the text of the element at `path`, or `None` if the document has none there or breaks
/// off before.
pub(crate) fn parse_value(xml: &[u8], path: &str) -> Option<String> {
    parse_values(xml, path)?.pop()
}

/// Returns the texts of all elements at `path`, or `None` if the document breaks off.
pub(crate) fn parse_values(xml: &[u8], path: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    walk(xml, |at, text| {
        if at == path {
            values.push(text.trim().to_owned());
        }
        Ok(())
    })
    .ok()?;
    Some(values)
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
                    return Err("the answer is nested deeper than any S3 answer".to_owned());
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
    text.push_str(resolved.ok_or_else(|| format!("`&{name};` is not a known entity"))?);
    Ok(())
}

fn one_line(error: &dyn std::fmt::Display) -> XmlError {
    error.to_string().replace('\n', " ")
}

#[cfg(test)]
mod tests;
