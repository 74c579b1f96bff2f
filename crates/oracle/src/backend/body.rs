//! The body of an upload: read, measured and checked.

use bytes::Bytes;
use futures::StreamExt;
use hyper::StatusCode;
use s3s::dto::{ContentLength, StreamingBlob};
use s3s::{S3Error, S3ErrorCode, S3Result, StdError, s3_error};

use crate::digests::{Digests, Tag};

/// Returns how large a body says it is.
pub(super) fn size_of(content_length: Option<ContentLength>) -> S3Result<u64> {
    let size_bytes = content_length.and_then(|length| u64::try_from(length).ok());
    size_bytes.ok_or_else(|| s3_error!(MissingContentLength))
}

/// Reads a body of known size into one buffer, and checks what was said of it.
pub(super) async fn collect(
    mut body: StreamingBlob,
    size_bytes: u64,
    mut digests: Digests,
) -> S3Result<(Bytes, Tag)> {
    let size = usize::try_from(size_bytes).map_err(|_| s3_error!(EntityTooLarge))?;
    let mut content = Vec::with_capacity(size);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(body_error)?;
        if content.len() + chunk.len() > size {
            return Err(s3_error!(IncompleteBody, "the body is longer than its Content-Length"));
        }
        digests.update(&chunk);
        content.extend_from_slice(&chunk);
    }
    if content.len() < size {
        return Err(s3_error!(IncompleteBody, "the body is shorter than its Content-Length"));
    }
    let tag = digests
        .finish(size_bytes)
        .map_err(|mismatch| s3_error!(BadDigest, "the content is not what {} says", mismatch.0))?;
    Ok((content.into(), tag))
}

/// Names what broke a body. The types of these errors are private to s3s, so their text must tell.
fn body_error(error: StdError) -> S3Error {
    let text = error.to_string();
    if text.contains("Sha256Mismatch") {
        let code = S3ErrorCode::Custom("XAmzContentSHA256Mismatch".into());
        let mut answer = S3Error::with_message(code, "the content is not what was signed");
        answer.set_status_code(StatusCode::BAD_REQUEST);
        return answer;
    }
    if text.contains("SignatureMismatch") {
        return S3Error::with_source(S3ErrorCode::SignatureDoesNotMatch, error);
    }
    S3Error::with_source(S3ErrorCode::IncompleteBody, error)
}
