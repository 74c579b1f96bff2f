//! Signing in and out.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::doc::{FeaturesDoc, SessionDoc, SignInDoc};
use super::guard::{BODY_BYTES_MAX, COOKIE_NAME, Peer, check_csrf, session, verify};
use super::refused::Refused;
use super::{At, Site, read};
use crate::users::{ANYBODY, SESSION_LASTS, Session};

/// Tells who asks.
pub(super) async fn show(State(site): At, headers: HeaderMap) -> Response {
    let session = session(&site, &headers).map(|(_, session)| session);
    Json(document(&site, session.as_ref())).into_response()
}

/// Lets somebody in.
pub(super) async fn sign_in(
    State(site): At,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match signed_in(&site, peer, &headers, &body).await {
        Ok(response) => response,
        Err(refused) => refused.into_response(),
    }
}

async fn signed_in(
    site: &Arc<Site>,
    peer: Peer,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, Refused> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        return Err(Refused::invalid("the body is to be application/json"));
    }
    if site.gate.is_open() {
        return Ok(Json(document(site, None)).into_response());
    }
    let SignInDoc { user, password } = read(body)?;
    verify(site, peer, user.clone(), password).await?;
    let (token, session) = site.gate.sign_in(&user, site.console.moment());
    let document = document(site, Some(&session));
    let secure = if site.is_encrypted { "; Secure" } else { "" };
    let lasts = SESSION_LASTS.as_secs();
    let cookie = format!(
        "{COOKIE_NAME}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={lasts}{secure}"
    );
    Ok(([(SET_COOKIE, cookie)], Json(document)).into_response())
}

/// Lets somebody out.
pub(super) async fn sign_out(State(site): At, headers: HeaderMap) -> Response {
    if let Some((token, session)) = session(&site, &headers) {
        if let Err(refused) = check_csrf(&headers, &session.csrf) {
            return refused.into_response();
        }
        site.gate.sign_out(&token);
    }
    let cookie = format!("{COOKIE_NAME}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    (StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response()
}

fn document(site: &Site, session: Option<&Session>) -> SessionDoc {
    let is_open = site.gate.is_open();
    let settings = site.console.settings();
    let now = site.console.now_ms();
    let lasts = i64::try_from(SESSION_LASTS.as_millis()).unwrap_or(i64::MAX);
    let known = is_open || session.is_some();
    let (user, csrf) = match session {
        Some(session) => (Some(session.user.clone()), Some(session.csrf.clone())),
        None if is_open => (Some(ANYBODY.to_owned()), Some(site.gate.csrf_of_anybody().to_owned())),
        None => (None, None),
    };
    SessionDoc {
        user,
        sign_in: if is_open { "none" } else { "form" },
        csrf_token: csrf,
        expires_at_ms: session.map(|_| now.saturating_add(lasts)),
        version: known.then(|| site.version.clone()),
        name: known.then(|| settings.name.clone()),
        url: settings.url.clone().filter(|_| known),
        time_ms: now,
        concurrency: known.then_some(settings.concurrency),
        upload_bytes_max: BODY_BYTES_MAX as u64,
        features: FeaturesDoc {
            fleet: site.console.has_fleet(),
            triggers: settings.triggers.is_some(),
        },
    }
}
