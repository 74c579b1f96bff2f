//! What a request to S3 asks for, by its method and its path.

use plimsoll_model::OpKind;

/// Sub-resources that are about something else than the object or the bucket's list. `versions`
/// and `uploads` are lists of other things.
const OTHER: [&str; 27] = [
    "acl",
    "accelerate",
    "analytics",
    "attributes",
    "cors",
    "encryption",
    "inventory",
    "legal-hold",
    "lifecycle",
    "location",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "restore",
    "retention",
    "select",
    "tagging",
    "torrent",
    "versioning",
    "website",
];

/// A request.
pub(super) struct Request<'r> {
    /// The path, with its bucket and without its query.
    pub(super) path: &'r [u8],
    /// What it asks for, or in words what that is nothing of.
    pub(super) kind: Result<OpKind, String>,
}

/// Returns what `GET /bucket/key?query HTTP/1.1` asks for; `None` where that is no request.
pub(super) fn request(line: &[u8]) -> Option<Request<'_>> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (method, target) = (parts.next()?, parts.next()?);
    if !target.starts_with(b"/") || method.is_empty() || !method.iter().all(u8::is_ascii_uppercase)
    {
        return None;
    }
    let cut = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    let (path, query) = (&target[..cut], target.get(cut + 1..).unwrap_or_default());
    let has_key = path[1..].iter().position(|byte| *byte == b'/');
    let has_key = has_key.is_some_and(|at| at + 2 < path.len());
    let has = |name: &str| {
        let mut fields = query.split(|byte| *byte == b'&');
        fields.any(|field| field.split(|byte| *byte == b'=').next() == Some(name.as_bytes()))
    };
    let other = OTHER.into_iter().find(|name| has(name));
    let kind = match (method, has_key) {
        _ if other.is_some() => None,
        (b"GET", true) if has("uploadId") => None,
        (b"GET", true) => Some(OpKind::Get),
        (b"HEAD", true) => Some(OpKind::Stat),
        (b"PUT", true) if has("uploadId") => Some(OpKind::PutPart),
        (b"PUT", true) => Some(OpKind::Put),
        (b"POST", true) if has("uploads") => Some(OpKind::CreateUpload),
        (b"POST", true) if has("uploadId") => Some(OpKind::CompleteUpload),
        (b"DELETE", true) if has("uploadId") => Some(OpKind::AbortUpload),
        (b"DELETE", true) => Some(OpKind::Delete),
        (b"GET", false) if path.len() > 1 && !has("versions") && !has("uploads") => {
            Some(OpKind::List)
        }
        _ => None,
    };
    let named = || {
        let what = if has_key { "an object" } else { "a bucket" };
        let method = String::from_utf8_lossy(method);
        other.map_or_else(|| format!("{method} of {what}"), |other| format!("{method} ?{other}"))
    };
    Some(Request { path, kind: kind.ok_or_else(named) })
}

/// Returns offset and length of `bytes=0-99`; a range without an end, or from the end, is as long
/// as what was sent.
pub(super) fn range(header: &[u8], sent: Option<u64>) -> Option<(u64, u64)> {
    let text = str::from_utf8(header).ok()?.strip_prefix("bytes=")?;
    let (first, last) = text.split_once('-')?;
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if last >= first => Some((first, (last - first).checked_add(1)?)),
        (Ok(first), Err(_)) if last.is_empty() => Some((first, sent?)),
        (Err(_), Ok(len)) if first.is_empty() => Some((0, sent.unwrap_or(len))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_by_method_path_and_query() {
        let kind = |line: &str| request(line.as_bytes()).map(|request| request.kind);
        for (line, expected) in [
            ("GET /b/k HTTP/1.1", OpKind::Get),
            ("GET /b/a/b?response-content-type=x HTTP/1.1", OpKind::Get),
            ("HEAD /b/k HTTP/1.1", OpKind::Stat),
            ("PUT /b/k HTTP/1.1", OpKind::Put),
            ("PUT /b/k?partNumber=1&uploadId=x HTTP/1.1", OpKind::PutPart),
            ("POST /b/k?uploads HTTP/1.1", OpKind::CreateUpload),
            ("POST /b/k?uploadId=x HTTP/1.1", OpKind::CompleteUpload),
            ("DELETE /b/k?uploadId=x HTTP/1.1", OpKind::AbortUpload),
            ("DELETE /b/k HTTP/1.1", OpKind::Delete),
            ("GET /b/?list-type=2&prefix=a HTTP/1.1", OpKind::List),
            ("GET /b HTTP/1.1", OpKind::List),
        ] {
            assert_eq!(kind(line), Some(Ok(expected)), "{line}");
        }
        assert_eq!(kind("GET /b/k?acl HTTP/1.1"), Some(Err("GET ?acl".to_owned())));
        assert_eq!(kind("POST /b/?delete HTTP/1.1"), Some(Err("POST of a bucket".to_owned())));
        assert_eq!(kind("GET / HTTP/1.1"), Some(Err("GET of a bucket".to_owned())));
        assert_eq!(kind("hello"), None);
        assert_eq!(range(b"bytes=100-199", None), Some((100, 100)));
        assert_eq!(range(b"bytes=100-", Some(7)), Some((100, 7)));
        assert_eq!(range(b"bytes=-5", Some(5)), Some((0, 5)));
        assert_eq!(range(b"bytes=9-3", Some(5)), None);
        assert_eq!(range(b"-", Some(5)), None);
    }
}
