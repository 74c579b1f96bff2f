//! Takes secrets out of the text of a workload, and puts known ones back in.
//!
//! What is kept of a text and shown of it went through here. Nothing is parsed into meanings: a
//! text that is wrong, or in a language of tomorrow, loses its secrets all the same.

use std::borrow::Cow;
use std::cell::RefCell;

use plimsoll_model::REDACTED;
use quick_xml::escape::{escape, unescape};

use crate::state::SourceKind;

/// A text without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redacted {
    /// The text.
    pub text: String,
    /// Whether anything was taken out.
    pub had_secrets: bool,
}

/// Returns what stands in a text instead of the secret of that key.
type Replace<'a> = &'a dyn Fn(&str, &str) -> Option<String>;

/// Takes the secrets out of a text.
pub(crate) fn redact(kind: SourceKind, text: &str) -> Redacted {
    let hide = |_: &str, value: &str| {
        (!value.is_empty() && value != REDACTED).then(|| REDACTED.to_owned())
    };
    let hidden = replace(kind, text, &hide);
    Redacted { had_secrets: hidden != text, text: hidden }
}

/// Puts secrets into a text from which they were taken, as far as they are known by their keys;
/// returns `None` where one is not.
pub(crate) fn restore(
    kind: SourceKind,
    text: &str,
    known: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let fill = |key: &str, value: &str| (value == REDACTED).then(|| known(key)).flatten();
    let filled = replace(kind, text, &fill);
    (!filled.contains(REDACTED)).then_some(filled)
}

/// Shorter secrets are not looked for in other texts: they would stand in half of all words.
const SECRET_BYTES_MIN: usize = 4;

/// Returns the secrets of a text.
pub(crate) fn secrets(kind: SourceKind, text: &str) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let note = |_: &str, value: &str| {
        if value.len() >= SECRET_BYTES_MIN && value != REDACTED {
            found.borrow_mut().push(value.to_owned());
        }
        None
    };
    replace(kind, text, &note);
    found.into_inner()
}

fn replace(kind: SourceKind, text: &str, with: Replace<'_>) -> String {
    match kind {
        SourceKind::Cosbench => in_xml(text, with),
        SourceKind::Plimsoll | SourceKind::Fio => {
            text.split_inclusive('\n').map(|line| in_line(line, with)).collect()
        }
    }
}

/// Tells whether the value of such a key is a secret.
pub(crate) fn is_secret(key: &str) -> bool {
    let plain: String =
        key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    ["secret", "password", "passwd", "token", "accesskey", "credential", "ssec"]
        .iter()
        .any(|word| plain.contains(word))
}

/// Tells whether a key of COSBench's hides a secret, however it is spelt.
fn hides(key: &str) -> bool {
    is_secret(key) || plimsoll_dialects::cosbench::may_hide(key)
}

/// Goes through the values of attributes: a tag is split at its quotes, whatever else it holds.
fn in_xml(text: &str, with: Replace<'_>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        out.push_str(&in_list(before, with));
        let end = end_of_tag(tag);
        let (tag, after) = tag.split_at(end);
        match tag.starts_with("<!") || tag.starts_with("<?") {
            // A comment may hold a whole element, or a list.
            true => out.push_str(&in_comment(tag, with)),
            false => out.push_str(&in_tag(tag, with)),
        }
        rest = after;
    }
    out.push_str(&in_list(rest, with));
    out
}

/// Returns where a tag or a comment ends.
fn end_of_tag(tag: &str) -> usize {
    for (begin, end) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")] {
        if tag.starts_with(begin) {
            return tag.find(end).map_or(tag.len(), |at| at + end.len());
        }
    }
    let mut quote = None;
    for (at, c) in tag.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (None, '>') => return at + 1,
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// Goes through the attributes of an element.
fn in_tag(tag: &str, with: Replace<'_>) -> String {
    let mut out = String::with_capacity(tag.len());
    let mut rest = tag;
    while let Some(at) = rest.find(['"', '\'']) {
        let quote = rest[at..].chars().next().unwrap_or('"');
        let (name, value) = (&rest[..at], &rest[at + 1..]);
        let end = value.find(quote).unwrap_or(value.len());
        let key = name.trim_end().trim_end_matches('=').trim_end();
        let key = key.rsplit(char::is_whitespace).next().unwrap_or_default();
        out.push_str(name);
        out.push(quote);
        out.push_str(&in_attribute(key, &value[..end], with));
        if end < value.len() {
            out.push(quote);
        }
        rest = value.get(end + 1..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Goes through the value of an attribute as it is meant, not as it is written: a key may be
/// spelled with entities.
fn in_attribute<'a>(key: &str, value: &'a str, with: Replace<'_>) -> Cow<'a, str> {
    let Ok(meant) = unescape(value) else { return Cow::Owned(in_list(value, with)) };
    if hides(key) {
        return with(key, &meant)
            .map_or(Cow::Borrowed(value), |new| escape(new).into_owned().into());
    }
    let list = in_list(&meant, with);
    if list == meant { Cow::Borrowed(value) } else { Cow::Owned(escape(list).into_owned()) }
}

/// Goes through a list such as `key=value;key=value`.
fn in_list(list: &str, with: Replace<'_>) -> String {
    let piece = |piece: &str| {
        let Some((key, value)) = piece.split_once('=') else {
            return without_user(piece).into_owned();
        };
        let (bare, plain) = (key.trim(), value.trim());
        if hides(last_word(bare)) {
            if let Some(new) = with(last_word(bare), plain) {
                return format!("{key}={new}");
            }
            return piece.to_owned();
        }
        format!("{key}={}", without_user(value))
    };
    list.split(';').map(piece).collect::<Vec<_>>().join(";")
}

fn last_word(text: &str) -> &str {
    text.rsplit(|c: char| c.is_whitespace() || c == '"' || c == '\'').next().unwrap_or(text)
}

/// Goes through a comment, where a secret ends at a quote, too.
fn in_comment(comment: &str, with: Replace<'_>) -> String {
    // Its end is none of what it says.
    for end in ["-->", "]]>", "?>"] {
        if let Some(body) = comment.strip_suffix(end) {
            let blank = &body[body.trim_end().len()..];
            return format!("{}{blank}{end}", in_comment(body.trim_end(), with));
        }
    }
    let pieces = comment.split_inclusive([';', '"', '\'', '\n', '<', '>']);
    let piece = |piece: &str| {
        let stop = piece.chars().last().filter(|c| ";\"'\n<>".contains(*c));
        let body = stop.map_or(piece, |stop| &piece[..piece.len() - stop.len_utf8()]);
        let mut out = in_list(body, with);
        out.extend(stop);
        out
    };
    pieces.map(piece).collect()
}

/// Goes through a line such as `key: value`, `key=value` or `{key: value, key: value}`.
fn in_line(line: &str, with: Replace<'_>) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find([':', '=']) {
        let (before, after) = rest.split_at(at);
        let key = before.trim_end().trim_end_matches(['"', '\'']);
        let key = key.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').next();
        out.push_str(before);
        out.push_str(&after[..1]);
        rest = &after[1..];
        let Some(key) = key.filter(|key| is_secret(key)) else { continue };
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let (blanks, value) = rest.split_at(blank);
        let end = match value.chars().next().filter(|c| "\"'".contains(*c)) {
            Some(quote) => value[1..].find(quote).map_or(value.len(), |at| at + 2),
            None => value.find([',', '}', '\n', '\r', '#', ';']).unwrap_or(value.len()),
        };
        out.push_str(blanks);
        let (value, after) = value.split_at(end);
        let bare = value.trim().trim_matches(['"', '\'']);
        match with(key, bare) {
            Some(new) => out.push_str(&format!("'{new}'")),
            None => out.push_str(value),
        }
        rest = after;
    }
    out.push_str(rest);
    without_user(&out).into_owned()
}

/// Takes user and password out of URLs, and their queries, which may be signatures.
fn without_user(text: &str) -> Cow<'_, str> {
    let Some(at) = text.find("://") else { return Cow::Borrowed(text) };
    let (scheme, rest) = text.split_at(at + 3);
    let ends = |c: char| c.is_whitespace() || "\"'<>;,".contains(c);
    let (url, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
    let (host, path) = url.split_at(url.find(['/', '?', '#']).unwrap_or(url.len()));
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let after = without_user(after);
    let user = host.rsplit_once('@');
    if user.is_none() && query.len() < 2 && matches!(after, Cow::Borrowed(_)) {
        return Cow::Borrowed(text);
    }
    let host = user.map_or(host.to_owned(), |(_, host)| format!("{REDACTED}@{host}"));
    let query = if query.len() < 2 { query.to_owned() } else { format!("?{REDACTED}") };
    Cow::Owned(format!("{scheme}{host}{path}{query}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(kind: SourceKind, text: &str) -> String {
        let redacted = redact(kind, text);
        assert_eq!(redacted.had_secrets, redacted.text != text);
        redacted.text
    }

    #[test]
    fn no_spelling_of_a_config_keeps_its_secrets() {
        let xml =
            "<storage type=\"s3\" config=\"accesskey=AK1;secretkey=S=K/2;endpoint=http://h\"/>";
        assert_eq!(
            hidden(SourceKind::Cosbench, xml),
            "<storage type=\"s3\" config=\"accesskey=*REDACTED*;secretkey=*REDACTED*;\
             endpoint=http://h\"/>"
        );
        for xml in [
            "<a config='secretkey = SEC&amp;RET ; b=1'/>",
            "<a config='secret&#107;ey=SEC;b=SEC2' b='password=RET'",
            "<a config=\"x=1;\n  secretkey=SEC\nRET;y=2\"/>",
            "<!-- <a config=\"secretkey=SEC;b=RET\"/> password=SEC -->",
            "<a>secretkey=SEC;</a>",
            "<auth config=\"auth_url=http://ann:SEC@h/v1;password=RET\"/>",
            "<a password=\"SEC\" token='RET'/>",
            "<a config='acceskey=SEC;secret_ky=RET'/>",
            "<!-- password=SECRET -->",
            "<auth config='auth_url=http://x:SEC@h:1/auth?sig=RET;username=u'/>",
        ] {
            let hidden = hidden(SourceKind::Cosbench, xml).replace("SEC2", "").replace("b=RET", "");
            assert!(!hidden.contains("SEC") && !hidden.contains("RET"), "{hidden}");
        }
        let plain = "<workload name=\"a\"><work config=\"containers=u(1,2);sizes=c(64)KB\"/>";
        assert_eq!(hidden(SourceKind::Cosbench, plain), plain);
    }

    #[test]
    fn fields_of_a_workload_lose_their_secrets() {
        assert_eq!(
            hidden(
                SourceKind::Plimsoll,
                "a: {access_key: AK, secret_key: 'S K', b: 1}\nhosts: h\n"
            ),
            "a: {access_key: '*REDACTED*', secret_key: '*REDACTED*', b: 1}\nhosts: h\n"
        );
        assert_eq!(
            hidden(SourceKind::Plimsoll, "hosts: 'http://u:p@h:1'\n"),
            "hosts: 'http://*REDACTED*@h:1'\n"
        );
    }

    #[test]
    fn what_was_taken_out_can_be_put_back_in() {
        let xml = "<s config=\"accesskey=A&amp;B;endpoint=e\"/>";
        let redacted = redact(SourceKind::Cosbench, xml);
        let known = |key: &str| (key == "accesskey").then(|| "A&B".to_owned());
        assert_eq!(restore(SourceKind::Cosbench, &redacted.text, &known).as_deref(), Some(xml));
        assert_eq!(restore(SourceKind::Cosbench, &redacted.text, &|_| None), None);
    }
}
