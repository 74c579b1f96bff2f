//! The body of an upload: read, measured and checked.

use bytes::Bytes;
use futures::StreamExt;
use hyper::{HeaderMap, StatusCode};
use s3s::dto::{ContentLength, StreamingBlob};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result, StdError, TrailingHeaders, s3_error};

use crate::checksum::Algorithm;
use crate::digests::{Digested, Digests};

/// The header that names what stands behind a body in chunks.
const TRAILER: &str = "x-amz-trailer";

/// What the client says of a body behind it.
pub(super) struct Trailers<'a> {
    /// The checksum that was announced.
    pub(super) algorithm: Option<Algorithm>,
    values: Option<&'a TrailingHeaders>,
}

impl<'a> Trailers<'a> {
    pub(super) fn new(headers: &HeaderMap, values: Option<&'a TrailingHeaders>) -> Self {
        let announced = values.and_then(|_| headers.get(TRAILER)?.to_str().ok());
        let algorithm = announced.and_then(|text| text.split(',').find_map(Algorithm::from_header));
        Self { algorithm, values }
    }

    /// Hands on what came behind the body.
    fn claim(&self, digests: &mut Digests) {
        let Some(values) = self.values else { return };
        values.read(|headers| {
            for algorithm in Algorithm::ALL {
                let value = headers.get(algorithm.header()).and_then(|value| value.to_str().ok());
                if let Some(value) = value {
                    digests.claim(algorithm, value.trim());
                }
            }
        });
    }
}

/// Refuses chunks of who does not sign, which nobody has taken apart.
pub(super) fn refuse_unsigned_chunks<T>(request: &S3Request<T>) -> S3Result<()> {
    let hash = request.headers.get("x-amz-content-sha256");
    let in_chunks = hash.is_some_and(|hash| hash.as_bytes().starts_with(b"STREAMING-"));
    let is_unsigned = in_chunks && request.credentials.is_none();
    super::not_offered(is_unsigned, "uploads in chunks (aws-chunked) without a signature")
}

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
    trailers: &Trailers<'_>,
) -> S3Result<(Bytes, Digested)> {
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
    trailers.claim(&mut digests);
    let digested = digests
        .finish(size_bytes)
        .map_err(|mismatch| s3_error!(BadDigest, "the content is not what {} says", mismatch.0))?;
    Ok((content.into(), digested))
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
