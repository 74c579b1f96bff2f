//! COSBench's own endpoints, for its `cli.sh` and for scripts in the field: text, tabs and dates as
//! they expect them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Multipart, Request, State};
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use tokio::task::spawn_blocking;

use super::guard::{Caller, Peer, verify};
use super::refused::Refused;
use super::{Site, turns};
use crate::clock::{FOR_SCRIPTS, local};
use crate::console::{Console, ConsoleError, Submitted};
use crate::state::{Number, State as RunState};
use crate::store::Entry;
use crate::users::ANYBODY;

/// The form's field with the workload.
const CONFIG: &str = "config";
/// How long the answer to a cancellation waits for the run to end.
const CANCEL_TIME_MAX: Duration = Duration::from_secs(10);

/// Returns who asks, which stands in the query unless nobody is asked.
pub(super) async fn caller(
    site: &Arc<Site>,
    peer: Peer,
    uri: &Uri,
) -> Result<Option<Caller>, Refused> {
    if site.gate.is_open() {
        return Ok(Some(Caller { user: ANYBODY.to_owned() }));
    }
    let mut fields = fields(uri.query().unwrap_or_default());
    let (name, password) = (fields.remove("username"), fields.remove("password"));
    let (Some(name), Some(password)) = (name, password) else {
        return Err(Refused::signed_out("sign in first: ?username=&password="));
    };
    verify(site, peer, name.clone(), password).await?;
    Ok(Some(Caller { user: name }))
}

/// Reads the fields of a query or of a form.
fn fields(text: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let spaced = text.replace('+', " ");
        percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
    };
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(key), decode(value))
    };
    text.split('&').filter(|pair| !pair.is_empty()).map(pair).collect()
}

fn text(text: String) -> Response {
    ([(CONTENT_TYPE, "text/plain;charset=UTF-8")], text).into_response()
}

/// Takes a workload in.
pub(super) async fn submit(State(site): State<Arc<Site>>, request: Request) -> Response {
    let user = request.extensions().get::<Caller>().map_or(String::new(), |by| by.user.clone());
    let mut form = match Multipart::from_request(request, &()).await {
        Ok(form) => form,
        Err(_) => return text("Bad Request\n".to_owned()),
    };
    while let Ok(Some(field)) = form.next_field().await {
        if field.name() != Some(CONFIG) {
            continue;
        }
        let file_name = field.file_name().map(str::to_owned);
        let Ok(bytes) = field.bytes().await else { break };
        return text(submitted(site, bytes, file_name, user).await);
    }
    text("Bad Request\n".to_owned())
}

async fn submitted(
    site: Arc<Site>,
    bytes: Bytes,
    file_name: Option<String>,
    user: String,
) -> String {
    let turn = match turns::begin(&site, &user) {
        Ok(turn) => turn,
        Err(refused) => return format!("{}\n", refused.message),
    };
    let done = spawn_blocking(move || {
        let _turn = turn;
        let workload = String::from_utf8_lossy(&bytes);
        site.console.submit(&Submitted {
            text: &workload,
            file_name: file_name.as_deref(),
            name: None,
            user: &user,
            first: false,
            resubmitted_from: None,
        })
    });
    match done.await {
        Ok(Ok((number, _))) => format!("Accepted with ID: {number}\n"),
        Ok(Err(ConsoleError::Refused(problems))) => {
            let line = |problem: &crate::runner::Problem| match (problem.line, problem.column) {
                (Some(line), Some(column)) => {
                    format!("{} (line {line}, column {column})\n", problem.message)
                }
                _ => format!("{}\n", problem.message),
            };
            problems.iter().map(line).collect()
        }
        Ok(Err(error)) => format!("Internal Error: {error}\n"),
        Err(_) => "Internal Error\n".to_owned(),
    }
}

/// Tells who is there and what is active.
pub(super) async fn index(State(site): State<Arc<Site>>) -> Response {
    let listed = spawn_blocking(move || listing(&site.console));
    match listed.await {
        Ok(Ok(listing)) => text(listing),
        _ => text("Internal Error\n".to_owned()),
    }
}

fn listing(console: &Console) -> Result<String, ConsoleError> {
    let agents = console.agents();
    let mut out = "Drivers:\n".to_owned();
    for agent in &agents {
        let address = agent.address.as_deref().unwrap_or("N/A");
        out.push_str(&format!("{}\t{address}\n", agent.name.replace(char::is_control, " ")));
    }
    out.push_str(&format!("Total: {} drivers\n\nActive Workloads:\n", agents.len()));
    let active = console.store().active()?;
    for entry in &active {
        let stages = console.running(entry.number).map(|running| running.watch.short_stage());
        let stage = stages.flatten().unwrap_or_else(|| "None".to_owned());
        out.push_str(&format!("{}\t{}\n", line(entry), stage.replace(char::is_control, " ")));
    }
    out.push_str(&format!("Total: {} active workloads\n", active.len()));
    Ok(out)
}

fn line(entry: &Entry) -> String {
    let state = entry.state.cosbench_word().to_ascii_uppercase();
    format!("{}\t{}\t{state}", entry.number, local(entry.submitted_ms, FOR_SCRIPTS))
}

/// Cancels a workload.
pub(super) async fn cancel(State(site): State<Arc<Site>>, request: Request) -> Response {
    let query = fields(request.uri().query().unwrap_or_default());
    let body = Bytes::from_request(request, &()).await.unwrap_or_default();
    let mut form = fields(&String::from_utf8_lossy(&body));
    let id = form.remove("id").or_else(|| query.get("id").cloned());
    let Some(id) = id.filter(|id| !id.is_empty()) else {
        return text("Bad Request\n".to_owned());
    };
    let done = spawn_blocking(move || cancelled(&site.console, &id));
    text(done.await.unwrap_or_else(|_| "Internal Error\n".to_owned()))
}

fn cancelled(console: &Console, id: &str) -> String {
    let Some(number) = Number::parse(id) else { return "Not Found\n".to_owned() };
    // One that has ended stays as it is, and is shown so.
    let _ = console.cancel(number);
    console.wait_until_over(number, CANCEL_TIME_MAX);
    match console.store().entry(number) {
        Ok(entry) => {
            // As COSBench does, which calls it so from the moment at which it was asked.
            let is_asked = entry.state == RunState::Running;
            let state = if is_asked { RunState::Cancelled } else { entry.state };
            format!("{}\n", line(&Entry { state, ..entry }))
        }
        Err(_) => "Not Found\n".to_owned(),
    }
}

/// Tells how a workload stands.
pub(super) async fn workload(State(site): State<Arc<Site>>, uri: Uri) -> Response {
    let id = fields(uri.query().unwrap_or_default()).remove("id");
    let Some(id) = id.filter(|id| !id.is_empty()) else {
        return text("Bad Request\n".to_owned());
    };
    let found = spawn_blocking(move || {
        let number = Number::parse(&id)?;
        site.console.store().entry(number).ok()
    });
    match found.await {
        Ok(Some(entry)) => text(format!("{}\n", line(&entry))),
        _ => text("Not Found\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_once() {
        let read = fields("username=a%26b&password=p+w%2B&&x");
        assert_eq!(read["username"], "a&b");
        assert_eq!(read["password"], "p w+");
        assert_eq!(read["x"], "");
    }
}
