//! What stands before every request: who asks, from which page, and how much is read of what is
//! sent.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE,
    HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::refused::Refused;
use super::turns::Places;
use super::{Site, kept, turns};
use crate::users::{ANYBODY, Session};

/// No body may be longer.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 20;
/// Nor may one of somebody who has not signed in.
const SIGN_IN_BYTES_MAX: usize = 16 << 10;
/// A body that has not come whole after this is given up.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// What a page of ours may do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";
/// Where COSBench's own addresses are.
const OF_SCRIPTS: &str = "/controller/cli/";
/// The cookie of a session.
pub(crate) const COOKIE_NAME: &str = "plimsoll_session";
/// What a request by cookie says that changes something.
const CSRF_HEADER: &str = "x-plimsoll-csrf";
/// Where a browser says from which page a request comes.
const FETCH_SITE: &str = "sec-fetch-site";
/// What waits until it may try another password.
const PAUSE: Duration = Duration::from_millis(500);

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) user: String,
}

/// The address that a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Lets a request through, or says why not.
pub(crate) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with("/api/");
    let is_for_scripts = request.uri().path().starts_with(OF_SCRIPTS);
    let mut response = match judge(&site, request).await {
        Ok((request, places)) => kept(next.run(request).await, places),
        Err(refused) if is_for_scripts => refused.in_plain_text(),
        Err(refused) => refused.into_response(),
    };
    let headers = response.headers_mut();
    let value = HeaderValue::from_static;
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, value(POLICY));
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, value("nosniff"));
    headers.insert(REFERRER_POLICY, value("no-referrer"));
    headers.insert(HeaderName::from_static("x-frame-options"), value("DENY"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), value("same-origin"));
    if is_api {
        headers.insert(CACHE_CONTROL, value("no-store"));
    }
    response
}

async fn judge(site: &Arc<Site>, request: Request) -> Result<(Request, Places), Refused> {
    let (path, method) = (request.uri().path().to_owned(), request.method().clone());
    let changes = method != Method::GET && method != Method::HEAD;
    if site.gate.is_open() && !is_own_host(site, request.headers()) {
        return Err(Refused::forbidden(
            "the request names a host that is not the console's; without --users the console \
            answers only to addresses and to the host of its configured url",
        ));
    }
    if changes && is_from_elsewhere(request.headers()) {
        return Err(Refused::csrf("the request comes from a page of another site"));
    }
    let peer = *request.extensions().get::<Peer>().ok_or_else(Refused::internal)?;
    let caller = if path.starts_with(OF_SCRIPTS) {
        super::scripts::caller(site, peer, request.uri()).await?
    } else if path.starts_with("/api/") && path != "/api/v1/session" {
        Some(identify(site, peer, request.headers(), changes).await?)
    } else {
        None
    };
    let places = match &caller {
        Some(Caller { user }) => turns::ask(site, user, request.uri(), changes)?,
        None => Vec::new(),
    };
    let bytes_max = if caller.is_some() { BODY_BYTES_MAX } else { SIGN_IN_BYTES_MAX };
    let mut request = if changes { read_body(request, bytes_max).await? } else { request };
    caller.map(|caller| request.extensions_mut().insert(caller));
    Ok((request, places))
}

/// Tells whether a browser says that another site's page asks.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let site = headers.get(FETCH_SITE).and_then(|value| value.to_str().ok());
    if site.is_some_and(|site| !["same-origin", "none"].contains(&site)) {
        return true;
    }
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let origin = origin.to_str().unwrap_or_default();
    let host = origin.split_once("://").map(|(_, host)| host);
    host.is_none() || host != text(&HOST)
}

/// Tells whether the console is asked under its own name. Where nobody is asked who they are, a
/// page of somebody else's could otherwise make its own name mean this machine.
fn is_own_host(site: &Site, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let uri: Option<Uri> = format!("http://{host}/").parse().ok();
    let name = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let configured = site.console.settings().url.as_deref();
    let configured = configured.and_then(|url| url.parse::<Uri>().ok());
    bare.parse::<IpAddr>().is_ok()
        || name == "localhost"
        || site.host_name.as_deref() == Some(name)
        || configured.as_ref().and_then(Uri::host) == Some(name)
}

/// Returns the session of a request's cookie.
pub(crate) fn session(site: &Site, headers: &HeaderMap) -> Option<(String, Session)> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
    let token = pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE_NAME).then(|| value.to_owned())
    })?;
    let session = site.gate.session(&token, site.console.moment())?;
    Some((token, session))
}

async fn identify(
    site: &Arc<Site>,
    peer: Peer,
    headers: &HeaderMap,
    changes: bool,
) -> Result<Caller, Refused> {
    if let Some((name, password)) = basic(headers) {
        verify(site, peer, name.clone(), password).await?;
        return Ok(Caller { user: name });
    }
    if let Some((_, session)) = session(site, headers) {
        if changes {
            check_csrf(headers, &session.csrf)?;
        }
        check_type(headers, changes)?;
        return Ok(Caller { user: session.user });
    }
    if site.gate.is_open() {
        let is_browser = headers.contains_key(ORIGIN) || headers.contains_key(FETCH_SITE);
        if changes && is_browser {
            check_csrf(headers, site.gate.csrf_of_anybody())?;
        }
        check_type(headers, changes)?;
        return Ok(Caller { user: ANYBODY.to_owned() });
    }
    Err(Refused::signed_out("sign in first"))
}

/// Refuses what no page of ours asks for.
pub(crate) fn check_csrf(headers: &HeaderMap, token: &str) -> Result<(), Refused> {
    let said = headers.get(CSRF_HEADER).and_then(|value| value.to_str().ok());
    match said == Some(token) {
        true => Ok(()),
        false => Err(Refused::csrf("the page is out of date: load it again")),
    }
}

/// Refuses what a form of another page could send.
fn check_type(headers: &HeaderMap, changes: bool) -> Result<(), Refused> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    match changes && kind.is_some_and(|kind| !kind.starts_with("application/json")) {
        true => Err(Refused::invalid("the body is to be application/json")),
        false => Ok(()),
    }
}

fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

/// Checks a password; a wrong one is answered after a pause.
pub(crate) async fn verify(
    site: &Arc<Site>,
    Peer(peer): Peer,
    name: String,
    password: String,
) -> Result<(), Refused> {
    if site.gate.knows(&name, &password) {
        return Ok(());
    }
    let guess = site.guesses.begin(peer, &name)?;
    let turn = guess.turn().await?;
    let of = Arc::clone(site);
    let is_right = spawn_blocking(move || of.gate.verify(&name, &password)).await.unwrap_or(false);
    drop(turn);
    if is_right {
        return Ok(());
    }
    // Waits with its attempt still counted, but without the permission to hash, which others need.
    let _ = timeout(PAUSE, std::future::pending::<()>()).await;
    Err(Refused::signed_out("wrong user name or password"))
}

/// Reads the body whole, so that no handler waits for one.
async fn read_body(request: Request, bytes_max: usize) -> Result<Request, Refused> {
    let too_large = || Refused::too_large(format!("a body may have {bytes_max} bytes at most"));
    let (parts, body) = request.into_parts();
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = length.and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large());
    }
    let read = timeout(BODY_TIME_MAX, to_bytes(body, bytes_max)).await;
    let late = || {
        let status = axum::http::StatusCode::REQUEST_TIMEOUT;
        Refused::new(status, "busy", "the body did not come in time")
    };
    let bytes = read.map_err(|_| late())?.map_err(|_| too_large())?;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures::FutureExt;

    use super::*;
    use crate::console::Console;
    use crate::console::tests::{fake, settings};
    use crate::users::{Gate, Users};

    #[test]
    fn a_user_who_signed_in_before_does_not_queue_behind_guesses() {
        let directory = tempfile::tempdir().unwrap();
        let (runner, _hand) = fake();
        let console = Console::open(settings(directory.path()), runner).unwrap();
        let users = "<users><user username='ann' password='right'/></users>";
        let gate = Gate::new(Users::from_xml(users).unwrap());
        let site = Arc::new(Site::new(console, gate, (None, false), String::new()));
        let other = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        let guesses = ["a", "b"].map(|user| site.guesses.begin(other, user).unwrap());
        let turns = guesses.each_ref().map(|guess| guess.turn().now_or_never().unwrap().unwrap());
        let asks = || {
            let peer = Peer(IpAddr::V4(Ipv4Addr::LOCALHOST));
            verify(&site, peer, "ann".to_owned(), "right".to_owned()).now_or_never()
        };
        assert!(asks().is_none(), "all turns are taken");
        assert!(site.gate.verify("ann", "right"));
        assert!(asks().expect("nothing is waited for").is_ok());
        drop(turns);
    }
}
