//! Logs of JSON, an object on each line: Ceph's operations log and MinIO's trace.
//!
//! Sources: Ceph, *RGW operations log* (`rgw_enable_ops_log`, `rgw_ops_log_file_path`); MinIO,
//! `mc admin trace --json`, with `--verbose` and without.

use std::borrow::Cow;
use std::collections::HashMap;

use plimsoll_model::OpKind;
use serde::Deserialize;

use super::access_log::{named, unusual};
use super::fields::{civil, number, shown};
use super::request::{range, request};
use super::{Entry, Format, Found};

/// A number that may be written as a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Whole(u64),
    Text(String),
}

impl Number {
    fn value(&self, what: &str) -> Result<u64, String> {
        match self {
            Self::Whole(number) => Ok(*number),
            Self::Text(text) => number(text.as_bytes(), what),
        }
    }
}

#[derive(Deserialize)]
struct RgwLine {
    #[serde(default)]
    bucket: String,
    #[serde(default)]
    object: Option<String>,
    time: String,
    operation: String,
    #[serde(default)]
    uri: String,
    http_status: Number,
    #[serde(default)]
    bytes_sent: Option<u64>,
    #[serde(default)]
    bytes_received: Option<u64>,
    #[serde(default)]
    object_size: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MinioStats {
    rx: Option<u64>,
    tx: Option<u64>,
}

type Headers = HashMap<String, Vec<String>>;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MinioRequest {
    time: Option<String>,
    path: Option<String>,
    headers: Option<Headers>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MinioResponse {
    status_code: Option<u64>,
    headers: Option<Headers>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MinioLine {
    #[serde(alias = "funcName", alias = "funcname")]
    api: String,
    time: Option<String>,
    path: Option<String>,
    status_code: Option<u64>,
    #[serde(default)]
    request: MinioRequest,
    #[serde(default)]
    response: MinioResponse,
    #[serde(default)]
    call_stats: MinioStats,
}

/// Returns the form of a line of JSON.
pub(super) fn format_of(line: &[u8]) -> Option<Format> {
    let line = between(line)?;
    if serde_json::from_slice::<RgwLine>(line).is_ok() {
        return Some(Format::RgwOpsLog);
    }
    serde_json::from_slice::<MinioLine>(line).is_ok().then_some(Format::MinioTrace)
}

/// Returns a line without what parts it from others in a list; `None` where nothing is left.
fn between(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix(b"[").unwrap_or(line).trim_ascii();
    let line = line.strip_prefix(b",").unwrap_or(line).trim_ascii();
    let line = line.strip_suffix(b",").unwrap_or(line).trim_ascii_end();
    let line = if line.ends_with(b"}]") { &line[..line.len() - 1] } else { line };
    (!line.is_empty() && line != b"]").then_some(line)
}

fn parsed<'l, T: Deserialize<'l>>(line: &'l [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| format!("{} cannot be used: {error}", shown(line)))
}

/// Returns what a line of Ceph's operations log says.
pub(super) fn rgw(line: &[u8]) -> Result<Found<'_>, String> {
    let Some(line) = between(line) else { return Ok(Found::Nothing) };
    let of: RgwLine = parsed(line)?;
    let asked = request(of.uri.as_bytes());
    let is_head = of.uri.starts_with("HEAD ");
    let asked_kind = asked.as_ref().and_then(|asked| asked.kind.clone().ok());
    let kind = match &*of.operation {
        "get_obj" if is_head => OpKind::Stat,
        "get_obj" => OpKind::Get,
        "stat_obj" | "head_obj" => OpKind::Stat,
        "put_obj" if asked_kind == Some(OpKind::PutPart) => OpKind::PutPart,
        "put_obj" | "post_obj" => OpKind::Put,
        "delete_obj" => OpKind::Delete,
        "list_bucket" => OpKind::List,
        "init_multipart" => OpKind::CreateUpload,
        "complete_multipart" => OpKind::CompleteUpload,
        "abort_multipart" => OpKind::AbortUpload,
        other => return Ok(Found::Unsupported(other.to_owned().into())),
    };
    let at_ns = Some(civil(of.time.as_bytes())?);
    let status = of.http_status.value("http_status")?;
    if let Some(other) = unusual(status, kind) {
        return Ok(other);
    }
    if kind == OpKind::List {
        return Ok(Found::Entry(Entry::of(at_ns, kind, Cow::Borrowed(b""))));
    }
    let name = match (&of.object, &asked) {
        (Some(object), _) if !object.is_empty() => named(of.bucket.as_bytes(), object.as_bytes()),
        (_, Some(asked)) => Cow::Owned(asked.path.to_vec()),
        _ => return Err("it names no object, neither as `object` nor in its `uri`".to_owned()),
    };
    let entry = Entry { object_bytes: of.object_size, ..Entry::of(at_ns, kind, name) };
    Ok(Found::Entry(match kind {
        OpKind::Get if status == 206 => {
            Entry { range: Some((0, of.bytes_sent.unwrap_or(0))), ..entry }
        }
        OpKind::Get => Entry { bytes: of.bytes_sent, ..entry },
        OpKind::Put => Entry { bytes: of.object_size.or(of.bytes_received), ..entry },
        OpKind::PutPart => Entry { bytes: of.bytes_received, object_bytes: None, ..entry },
        // What was sent to complete it is a list of its parts.
        OpKind::CompleteUpload => Entry { object_bytes: None, ..entry },
        _ => entry,
    }))
}

/// Returns what a line of MinIO's trace says.
pub(super) fn minio(line: &[u8]) -> Result<Found<'_>, String> {
    let Some(line) = between(line) else { return Ok(Found::Nothing) };
    let of: MinioLine = parsed(line)?;
    let name = of.api.strip_prefix("s3.").unwrap_or(&of.api);
    let kind = match name.strip_suffix("Handler").unwrap_or(name) {
        "GetObject" => OpKind::Get,
        "HeadObject" => OpKind::Stat,
        "PutObject" => OpKind::Put,
        "DeleteObject" => OpKind::Delete,
        "ListObjectsV1" | "ListObjectsV2" | "ListObjectsV2M" => OpKind::List,
        "NewMultipartUpload" => OpKind::CreateUpload,
        "PutObjectPart" => OpKind::PutPart,
        "CompleteMultipartUpload" => OpKind::CompleteUpload,
        "AbortMultipartUpload" => OpKind::AbortUpload,
        _ => return Ok(Found::Unsupported(of.api.into())),
    };
    let time = of.time.or(of.request.time).ok_or("it has no `time`")?;
    let at_ns = Some(civil(time.as_bytes())?);
    let status = of.status_code.or(of.response.status_code).unwrap_or(200);
    if let Some(other) = unusual(status, kind) {
        return Ok(other);
    }
    if kind == OpKind::List {
        return Ok(Found::Entry(Entry::of(at_ns, kind, Cow::Borrowed(b""))));
    }
    let path = of.path.or(of.request.path).ok_or("it has no `path`")?;
    let header = |headers: &Option<Headers>, name: &str| {
        let found = headers.as_ref()?.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found?.1.first().cloned()
    };
    let length = |headers: &Option<Headers>| header(headers, "Content-Length")?.parse::<u64>().ok();
    let sent = length(&of.response.headers).or(of.call_stats.tx);
    let received = length(&of.request.headers).or(of.call_stats.rx);
    let entry = Entry::of(at_ns, kind, Cow::Owned(path.into_bytes()));
    let part = header(&of.request.headers, "Range");
    Ok(Found::Entry(match kind {
        OpKind::Get => match part.and_then(|part| range(part.as_bytes(), sent)) {
            Some(range) => Entry { range: Some(range), ..entry },
            None if status == 206 => Entry { range: Some((0, sent.unwrap_or(0))), ..entry },
            None => Entry { bytes: sent, ..entry },
        },
        OpKind::Put | OpKind::PutPart => Entry { bytes: received, ..entry },
        _ => entry,
    }))
}
