//! Answers of HTTP as SeaweedFS writes them: JSON, errors as `{"error": "…"}`.

use std::collections::BTreeMap;

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use percent_encoding::percent_decode_str;
use s3s::Body;
use serde_json::{Value, json};

/// Returns an answer of JSON.
pub(crate) fn json_of(status: StatusCode, body: &Value) -> Response<Body> {
    json_text(status, body).map(Body::from)
}

/// Returns an answer that is an error.
pub(crate) fn error(status: u16, words: &str) -> Response<Body> {
    error_text(status, words).map(Body::from)
}

/// The same as text.
pub(crate) fn error_text(status: u16, words: &str) -> Response<String> {
    let status = StatusCode::from_u16(status).expect("scripts have statuses of HTTP only");
    json_text(status, &json!({"error": words}))
}

fn json_text(status: StatusCode, body: &Value) -> Response<String> {
    let mut response = Response::new(body.to_string());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Returns the parameters of a request.
pub(crate) fn query_of(head: &Parts) -> BTreeMap<String, String> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let pairs = head.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    };
    pairs.map(pair).collect()
}
