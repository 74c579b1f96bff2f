//! What services answer: keys as JSON or XML.

use plimsoll_model::WallTime;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use serde_json::Value;

use crate::{CredentialsError, Keys, Result};

/// How much of what a service says of its refusal is shown.
const MESSAGE_CHARS_MAX: usize = 300;

/// Reads the JSON with which containers and instances get their keys.
pub(crate) fn keys_of_json(json: &[u8]) -> Result<Keys> {
    // The text is secret, and its place in it is all that serde's error would say.
    let document: Value = serde_json::from_slice(json)
        .map_err(|_| CredentialsError::answer("the answer is not JSON"))?;
    let text = |name: &str| {
        let value = document.get(name).and_then(Value::as_str);
        value.filter(|value| !value.is_empty()).map(str::to_owned)
    };
    if let Some(code) = text("Code").filter(|code| code != "Success") {
        let refusal = format!("the answer is a refusal: {}", shown(&code));
        return Err(CredentialsError::Answer(refusal));
    }
    keys_of(text)
}

/// Reads the XML with which a token service hands out keys.
pub(crate) fn keys_of_xml(xml: &[u8]) -> Result<Keys> {
    let elements = elements(xml)?;
    keys_of(|name| find(&elements, name))
}

/// Returns what the XML of a refusal says, in one line; empty if it says nothing.
pub(crate) fn refusal_of_xml(xml: &[u8]) -> String {
    let elements = elements(xml).unwrap_or_default();
    let parts = ["Code", "Message"].map(|name| find(&elements, name));
    shown(&parts.into_iter().flatten().collect::<Vec<_>>().join(": "))
}

fn keys_of(text: impl Fn(&str) -> Option<String>) -> Result<Keys> {
    let required = |name| {
        let missing = || CredentialsError::answer(format!("the answer holds no {name}"));
        text(name).ok_or_else(missing)
    };
    let session_token = text("Token").or_else(|| text("SessionToken"));
    let expires = text("Expiration").map(|time| wall_time(&time)).transpose()?;
    let (access_key, secret_key) = (required("AccessKeyId")?, required("SecretAccessKey")?);
    Ok(Keys { access_key, secret_key, session_token, expires })
}

fn wall_time(text: &str) -> Result<WallTime> {
    let no_time = |_| {
        let words = format!("`{}`, when the credentials expire, is no time", shown(text));
        CredentialsError::Answer(words)
    };
    let time: jiff::Timestamp = text.parse().map_err(no_time)?;
    Ok(WallTime::from_unix_ns(u64::try_from(time.as_nanosecond()).unwrap_or(0)))
}

/// Returns every element without elements in it, with its text.
fn elements(xml: &[u8]) -> Result<Vec<(String, String)>> {
    let no_xml = || CredentialsError::answer("the answer is not the XML of a token service");
    let mut reader = Reader::from_reader(xml);
    let (mut found, mut text, mut is_leaf) = (Vec::new(), String::new(), false);
    loop {
        match reader.read_event().map_err(|_| no_xml())? {
            Event::Start(_) => {
                is_leaf = true;
                text.clear();
            }
            Event::Text(piece) => text.push_str(&piece.decode().map_err(|_| no_xml())?),
            Event::CData(piece) => text.push_str(&piece.decode().map_err(|_| no_xml())?),
            Event::GeneralRef(reference) => {
                let resolved = match reference.resolve_char_ref().map_err(|_| no_xml())? {
                    Some(character) => character.to_string(),
                    None => {
                        let name = reference.decode().map_err(|_| no_xml())?;
                        resolve_predefined_entity(&name).ok_or_else(no_xml)?.to_owned()
                    }
                };
                text.push_str(&resolved);
            }
            Event::End(end) => {
                let name = String::from_utf8_lossy(end.local_name().as_ref()).into_owned();
                if std::mem::take(&mut is_leaf) {
                    found.push((name, text.trim().to_owned()));
                }
            }
            Event::Eof if found.is_empty() => return Err(no_xml()),
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

fn find(elements: &[(String, String)], name: &str) -> Option<String> {
    let found = elements.iter().find(|(each, text)| each == name && !text.is_empty());
    found.map(|(_, text)| text.clone())
}

/// Returns text of a service as one short line.
fn shown(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
