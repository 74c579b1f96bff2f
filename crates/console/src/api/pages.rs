//! The pages of the console, and where COSBench's pages are found in them.

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::refused::Refused;
use crate::state::Number;

/// A built file of the front end.
struct Asset {
    name: &'static str,
    media_type: &'static str,
    content: &'static [u8],
}

macro_rules! assets {
    ($($name:literal: $media_type:literal,)+) => {
        const ASSETS: &[Asset] = &[$(Asset {
            name: $name,
            media_type: $media_type,
            content: include_bytes!(concat!("../../assets/", $name)),
        },)+];
    };
}

assets! {
    "index.html": "text/html; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "licenses.txt": "text/plain; charset=utf-8",
}

/// Returns the first page.
pub(super) async fn first(headers: HeaderMap) -> Response {
    asset("index.html", &headers)
}

/// Returns a file of the front end.
pub(super) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    asset(&name, &headers)
}

fn asset(name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return Refused::not_found("there is no such page").into_response();
    };
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, asset.content);
    let hash: String = hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hash}\"");
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known == Some(&*tag) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    let headers = [
        (CONTENT_TYPE, asset.media_type.to_owned()),
        (CACHE_CONTROL, "no-cache".to_owned()),
        (ETAG, tag),
    ];
    (headers, asset.content).into_response()
}

fn redirect(to: &str) -> Response {
    (StatusCode::FOUND, [(LOCATION, to.to_owned())]).into_response()
}

/// Leads to the first page.
pub(super) async fn root() -> Response {
    redirect("/console/")
}

/// Leads from a page of COSBench's to ours.
pub(super) async fn cosbench(Path(page): Path<String>, uri: Uri) -> Response {
    redirect(&place(&page, uri.query().unwrap_or_default()))
}

fn place(page: &str, query: &str) -> String {
    let field = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        Number::parse(value)
    };
    let run = |suffix: &str| {
        let number = field("id").or_else(|| field("wid"));
        number.map_or_else(String::new, |number| format!("runs/{number}{suffix}"))
    };
    let place = match page {
        "submit.html" | "submit-workload.do" => "submit".to_owned(),
        "config.html" | "config-workload.do" => "make".to_owned(),
        "advanced-config.html" | "advanced-config-workload.do" => "make-matrix".to_owned(),
        "matrix.html" => "matrix".to_owned(),
        "workload.html" | "stage.html" => run(""),
        "timeline.html" | "timeline.csv" => run("/timeline"),
        _ => String::new(),
    };
    format!("/console/#/{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosbenchs_pages_lead_to_ours_and_to_nobody_elses() {
        for (page, query, expected) in [
            ("index.html", "", "/console/#/"),
            ("workload.html", "id=w7", "/console/#/runs/w7"),
            ("stage.html", "wid=w7&sid=w7s1", "/console/#/runs/w7"),
            ("timeline.html", "id=w7", "/console/#/runs/w7/timeline"),
            ("workload.html", "id=//evil.example/%0d%0a", "/console/#/"),
            ("submit.html", "", "/console/#/submit"),
            ("advanced-config.html", "", "/console/#/make-matrix"),
        ] {
            assert_eq!(place(page, query), expected, "{page}?{query}");
        }
    }

    #[test]
    fn no_page_holds_what_its_policy_forbids() {
        let page = std::str::from_utf8(ASSETS[0].content).unwrap();
        assert!(page.contains("console.js") && page.contains("console.css"));
        for forbidden in [" style=", "<style", " onclick=", "http://", "https://"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }
}
