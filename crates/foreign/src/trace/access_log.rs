//! Access logs: lines of Amazon's S3, and of Ceph's front end.
//!
//! Sources: *Amazon S3 server access log format* (Amazon S3 User Guide); Ceph, `rgw_asio_frontend`,
//! whose lines are `beast: ADDRESS: CLIENT - USER [TIME] "REQUEST" STATUS BYTES REFERRER AGENT
//! RANGE latency=...`.

use std::borrow::Cow;

use plimsoll_model::OpKind;

use super::fields::{maybe, number, of_access_log, shown};
use super::request::{range, request};
use super::{Entry, Found};

/// The fields of a line of Amazon's that are looked at.
pub(super) struct S3Line<'l> {
    bucket: &'l [u8],
    time: &'l [u8],
    operation: &'l [u8],
    key: &'l [u8],
    status: &'l [u8],
    sent: &'l [u8],
    size: &'l [u8],
}

/// Cuts a line into fields: blanks part them, but not within `[...]` and `"..."`.
struct Fields<'l>(&'l [u8]);

impl<'l> Iterator for Fields<'l> {
    type Item = &'l [u8];

    fn next(&mut self) -> Option<&'l [u8]> {
        let text = self.0.trim_ascii_start();
        let (first, inner) = text.split_first()?;
        let close = match first {
            b'[' => b']',
            b'"' => b'"',
            _ => {
                let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
                self.0 = &text[end..];
                return Some(&text[..end]);
            }
        };
        let end = inner.iter().position(|byte| *byte == close)?;
        self.0 = &inner[end + 1..];
        Some(&inner[..end])
    }
}

/// Cuts a line of Amazon's; `None` where it is none.
pub(super) fn s3_line(line: &[u8]) -> Option<S3Line<'_>> {
    let mut fields = Fields(line);
    let (_owner, bucket, time) = (fields.next()?, fields.next()?, fields.next()?);
    let (_ip, _requester, _id) = (fields.next()?, fields.next()?, fields.next()?);
    let (operation, key, _uri) = (fields.next()?, fields.next()?, fields.next()?);
    let (status, _error, sent) = (fields.next()?, fields.next()?, fields.next()?);
    let size = fields.next()?;
    let is_operation = operation.contains(&b'.') && operation[0].is_ascii_uppercase();
    let is_time = time.get(2) == Some(&b'/') && time.get(6) == Some(&b'/');
    (is_operation && is_time).then_some(S3Line { bucket, time, operation, key, status, sent, size })
}

/// Returns what a line of Amazon's says.
pub(super) fn s3(line: &[u8]) -> Result<Found<'_>, String> {
    if line.starts_with(b"#") {
        return Ok(Found::Nothing);
    }
    let of = s3_line(line).ok_or("it is not a line of an S3 access log")?;
    let at_ns = Some(of_access_log(of.time)?);
    let (kind, is_delete) = match of.operation {
        b"REST.GET.OBJECT" | b"WEBSITE.GET.OBJECT" => (OpKind::Get, false),
        b"REST.HEAD.OBJECT" | b"WEBSITE.HEAD.OBJECT" => (OpKind::Stat, false),
        b"REST.PUT.OBJECT" => (OpKind::Put, false),
        b"REST.DELETE.OBJECT" | b"BATCH.DELETE.OBJECT" => (OpKind::Delete, true),
        b"REST.GET.BUCKET" => (OpKind::List, false),
        b"REST.POST.UPLOADS" => (OpKind::CreateUpload, false),
        b"REST.PUT.PART" => (OpKind::PutPart, false),
        b"REST.POST.UPLOAD" => (OpKind::CompleteUpload, false),
        b"REST.DELETE.UPLOAD" => (OpKind::AbortUpload, false),
        other => return Ok(Found::Unsupported(String::from_utf8_lossy(other))),
    };
    let status = match of.status {
        b"-" if is_delete => 204,
        status => number(status, "the status")?,
    };
    let name = named(of.bucket, of.key);
    if let Some(other) = unusual(status, kind) {
        return Ok(other);
    }
    if kind == OpKind::List {
        return Ok(Found::Entry(Entry::of(at_ns, kind, Cow::Borrowed(b""))));
    }
    if of.key == b"-" {
        return Err("it names no key".to_owned());
    }
    let sent = maybe(of.sent, "the bytes sent")?;
    let size = maybe(of.size, "the object size")?;
    let entry = Entry { object_bytes: size, ..Entry::of(at_ns, kind, name) };
    Ok(Found::Entry(match kind {
        OpKind::Get if status == 206 => Entry { range: Some((0, sent.unwrap_or(0))), ..entry },
        OpKind::Get => Entry { bytes: sent, ..entry },
        OpKind::Put | OpKind::PutPart => Entry { bytes: size, ..entry },
        _ => entry,
    }))
}

/// Returns what a status makes of an operation, where that is not a plain success.
pub(super) fn unusual(status: u64, kind: OpKind) -> Option<Found<'static>> {
    match status {
        200..=299 => None,
        304 => Some(Found::Unsupported(format!("{} answered by 304", kind.name()).into())),
        _ => Some(Found::Failed),
    }
}

/// Returns a name with its bucket before it.
pub(super) fn named<'l>(bucket: &[u8], key: &[u8]) -> Cow<'l, [u8]> {
    let mut name = Vec::with_capacity(bucket.len() + key.len() + 1);
    name.extend_from_slice(bucket);
    name.push(b'/');
    name.extend_from_slice(key);
    Cow::Owned(name)
}

/// What stands before a line of Ceph's front end, behind what the log puts first.
const BEAST: &[u8] = b"beast: ";

/// Tells whether a line is one of Ceph's front end.
pub(super) fn is_beast(line: &[u8]) -> bool {
    memchr::memmem::find(line, BEAST).is_some() && memchr::memmem::find(line, b" [").is_some()
}

/// Returns what a line of Ceph's log says; lines of others of its parts say nothing here.
pub(super) fn beast(line: &[u8]) -> Result<Found<'_>, String> {
    let Some(begin) = memchr::memmem::find(line, BEAST) else { return Ok(Found::Nothing) };
    let line = &line[begin..];
    let bracket = memchr::memmem::find(line, b" [").ok_or("it has no time")?;
    let mut fields = Fields(&line[bracket..]);
    let mut next = |what: &str| fields.next().ok_or_else(|| format!("{what} is missing"));
    let (time, asked) = (next("the instant")?, next("the request")?);
    let (status, sent) = (next("the status")?, next("the number of bytes")?);
    let (_referrer, _agent) = (next("the referrer")?, next("the agent")?);
    let part = next("the range")?;
    let at_ns = Some(of_access_log(time)?);
    let of = request(asked).ok_or_else(|| format!("{} is not a request", shown(asked)))?;
    let kind = match of.kind {
        Ok(kind) => kind,
        Err(other) => return Ok(Found::Unsupported(other.into())),
    };
    if let Some(other) = unusual(number(status, "the status")?, kind) {
        return Ok(other);
    }
    if kind == OpKind::List {
        return Ok(Found::Entry(Entry::of(at_ns, kind, Cow::Borrowed(b""))));
    }
    let sent = maybe(sent, "the number of bytes")?;
    let entry = Entry::of(at_ns, kind, Cow::Borrowed(of.path));
    Ok(Found::Entry(match kind {
        OpKind::Get => match range(part, sent) {
            Some(range) => Entry { range: Some(range), ..entry },
            None => Entry { bytes: sent, ..entry },
        },
        _ => entry,
    }))
}
