//! Heads of calls to a server's own administration, which stands beside its buckets.

use plimsoll_model::WallTime;

use crate::S3Config;
use crate::digests::EMPTY_SHA256;
use crate::request::USER_AGENT;
use crate::sigv4::{Dated, HeadWriter, Signer, Signing};

/// The region that is signed for where none is given.
const REGION_DEFAULT: &str = "us-east-1";

/// Returns the signed head of a call without a body to one of the endpoints; `None` without
/// credentials.
///
/// `path` and `query` are encoded, the query's parameters sorted and each with its `=`.
pub(crate) fn admin_head(
    config: &S3Config,
    endpoint: usize,
    method: &str,
    path: &str,
    query: &str,
    now: WallTime,
) -> Option<Vec<u8>> {
    let keys = config.credentials.current()?;
    let region = config.region.as_deref().or(config.region_otherwise.as_deref());
    let region = region.unwrap_or(REGION_DEFAULT);
    let signer = Signer::new(&keys.access_key, &keys.secret_key, region, "s3");
    let mut writer = HeadWriter::new(Signing::V4(Box::new(signer)));
    let host = config.endpoints.get(endpoint)?.authority(config.tls.is_some());
    writer.begin(method, "", path.as_bytes(), query.as_bytes());
    writer.plain_header("content-length", b"0");
    writer.plain_header("user-agent", USER_AGENT.as_bytes());
    writer.signed_header("host", host.as_bytes());
    if let Dated::Amz(stamp) = writer.advance(now) {
        writer.signed_header("x-amz-content-sha256", EMPTY_SHA256);
        writer.signed_header("x-amz-date", &stamp);
    }
    if let Some(token) = &keys.session_token {
        writer.signed_header("x-amz-security-token", token.expose().as_bytes());
    }
    writer.finish(EMPTY_SHA256);
    Some(writer.head().to_vec())
}
