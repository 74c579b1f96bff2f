//! The JSON API, version 1, which the pages use as anybody may, and COSBench's endpoints beside it.
//!
//! A handler does its work on a thread that may wait, as it asks the database and reads records.

pub(crate) mod doc;
mod events;
pub(crate) mod figures;
mod files;
mod guard;
mod guesses;
pub(crate) mod openapi;
mod pages;
mod refused;
pub(crate) mod reports;
mod runs;
mod scripts;
mod sessions;
mod turns;
mod view;

use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    HeaderValue,
};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router, middleware};
use bytes::Bytes;
use futures::{StreamExt, stream};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::spawn_blocking;

use guard::Caller;
pub(crate) use guard::Peer;
use refused::Refused;

use crate::console::Console;
use crate::held::Held;
use crate::state::Number;
use crate::users::Gate;

/// What a report of a run may do as a page.
///
/// Its own policy allows the one style that it has, by its hash.
const REPORT_POLICY: &str = "style-src 'unsafe-inline'; sandbox allow-scripts";
/// So many pieces of a file are on their way at once.
const PIECES: usize = 8;
const PIECE_BYTES: usize = 64 << 10;

/// What all handlers share.
pub(crate) struct Site {
    pub(crate) console: Arc<Console>,
    pub(crate) gate: Gate,
    /// Password attempts in flight.
    pub(crate) guesses: guesses::Guesses,
    /// Requests of each user that are not answered to their last byte.
    pub(crate) asking: turns::Asking,
    /// How many workloads of each user are being judged.
    pub(crate) judging: Arc<Held<String>>,
    /// Requests of each user that read records or wait for it.
    pub(crate) reading: Arc<Held<String>>,
    /// Permits to read records.
    pub(crate) readers: Arc<Semaphore>,
    /// Archives that are written for each user, and permits to write one.
    pub(crate) writing: (Arc<Held<String>>, Arc<Semaphore>),
    /// The name of this machine.
    pub(crate) host_name: Option<String>,
    /// Whether connections are encrypted.
    pub(crate) is_encrypted: bool,
    /// The program's version.
    pub(crate) version: String,
}

impl Site {
    pub(crate) fn new(
        console: Arc<Console>,
        gate: Gate,
        (host_name, is_encrypted): (Option<String>, bool),
        version: String,
    ) -> Self {
        let (guesses, asking, judging, reading) = Default::default();
        let readers = Arc::new(Semaphore::new(turns::READERS_MAX));
        let writing = (Arc::default(), Arc::new(Semaphore::new(turns::WRITERS_MAX)));
        Self {
            console,
            gate,
            guesses,
            asking,
            judging,
            reading,
            readers,
            writing,
            host_name,
            is_encrypted,
            version,
        }
    }
}

type At = State<Arc<Site>>;
type Fields = Query<std::collections::BTreeMap<String, String>>;

/// Returns all that is answered.
pub(crate) fn router(site: Arc<Site>) -> Router {
    let guarded = middleware::from_fn_with_state(Arc::clone(&site), guard::guard);
    Router::new()
        .route("/", get(pages::root))
        .route("/console", get(pages::root))
        .route("/console/", get(pages::first))
        .route("/console/{name}", get(pages::file))
        .route("/controller/{page}", get(pages::cosbench).post(pages::cosbench))
        .route("/driver/index.html", get(health))
        .route("/controller/cli/submit.action", post(scripts::submit))
        .route("/controller/cli/config.action", post(scripts::submit))
        .route("/controller/cli/index.action", get(scripts::index).post(scripts::index))
        .route("/controller/cli/cancel.action", post(scripts::cancel))
        .route("/controller/cli/workload.action", get(scripts::workload).post(scripts::workload))
        .nest("/api/v1", api())
        .fallback(nothing)
        // The guard reads no more of a body than may be.
        .layer(DefaultBodyLimit::disable())
        .layer(guarded)
        .with_state(site)
}

fn api() -> Router<Arc<Site>> {
    Router::new()
        .route("/session", get(sessions::show).post(sessions::sign_in).delete(sessions::sign_out))
        .route("/overview", get(overview))
        .route("/agents", get(agents))
        .route("/check", post(runs::check))
        .route("/compare", get(compare))
        .route("/matrix", get(matrix))
        .route("/matrix.csv", get(matrix_csv))
        .route("/openapi.json", get(openapi))
        .route("/runs", get(runs::list).post(runs::submit))
        .route("/runs/{id}", get(runs::show))
        .route("/runs/{id}/cancel", post(runs::cancel))
        .route("/runs/{id}/resubmit", post(runs::resubmit))
        .route("/runs/{id}/move", post(runs::reorder))
        .route("/runs/{id}/workload", get(runs::workload))
        .route("/runs/{id}/log", get(runs::log))
        .route("/runs/{id}/series", get(series))
        .route("/runs/{id}/events", get(listen))
        .route("/runs/{id}/timeline", get(timeline))
        .route("/runs/{id}/timeline.csv", get(timeline_csv))
        .route("/runs/{id}/report.json", get(report_json))
        .route("/runs/{id}/report.html", get(report_html))
        .route("/runs/{id}/everything.tar", get(everything))
        .route("/runs/{id}/files/{*name}", get(file))
}

async fn nothing() -> Response {
    Refused::not_found("there is nothing at this address").into_response()
}

/// Says what stands behind an address, as a driver of COSBench's does by its first page.
async fn health(State(site): At) -> Response {
    let name = escape(&site.console.settings().name);
    let page = format!(
        "<!DOCTYPE html><html lang=\"en\"><title>{name}</title>\
         <p>{name}: plimsoll console {}</p>\n",
        escape(&site.version)
    );
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

/// Does what may wait on a thread that may.
async fn blocking<T: IntoResponse + Send + 'static>(
    site: Arc<Site>,
    work: impl FnOnce(&Site) -> Result<T, Refused> + Send + 'static,
) -> Response {
    match spawn_blocking(move || work(&site)).await {
        Ok(Ok(done)) => done.into_response(),
        Ok(Err(refused)) => refused.into_response(),
        Err(_) => Refused::internal().into_response(),
    }
}

/// Does what reads records: few concurrently, as each takes memory and a processor. Work that has
/// begun keeps its turn although its client has left, and an answer keeps the user's place until
/// its last byte is sent: it is in memory until then.
async fn reading<T: IntoResponse + Send + 'static>(
    site: Arc<Site>,
    Caller { user }: Caller,
    work: impl FnOnce(&Site) -> Result<T, Refused> + Send + 'static,
) -> Response {
    let place = match turns::read(&site, &user) {
        Ok(place) => Arc::new(place),
        Err(refused) => return refused.into_response(),
    };
    let Ok(permit) = site.readers.clone().acquire_owned().await else {
        return Refused::internal().into_response();
    };
    let turn = (permit, Arc::clone(&place));
    let held = move |site: &Site| {
        let _turn = turn;
        work(site)
    };
    kept(blocking(site, held).await, place)
}

/// Keeps something until the last byte of an answer is sent: until then it is in memory.
fn kept(response: Response, place: impl Send + 'static) -> Response {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        head.headers.entry(CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    let frames = stream::unfold((body.into_data_stream(), place), |(mut left, place)| async move {
        left.next().await.map(|frame| (frame, (left, place)))
    });
    Response::from_parts(head, Body::from_stream(frames))
}

/// Returns the number of a run, as it stands in a path.
fn number(id: &str) -> Result<Number, Refused> {
    Number::parse(id).ok_or_else(|| Refused::not_found(format!("there is no run {id}")))
}

/// Reads a list such as `w1,w2`.
fn numbers(list: Option<&String>) -> Result<Vec<Number>, Refused> {
    let list = list.map(String::as_str).unwrap_or_default();
    list.split(',').filter(|id| !id.is_empty()).map(number).collect()
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refused> {
    serde_json::from_slice(body)
        .map_err(|error| Refused::invalid(format!("the body is not what is expected: {error}")))
}

/// Reads a number of the query; one that is none is as one that is not there.
fn field<T: std::str::FromStr>(fields: &Fields, name: &str) -> Option<T> {
    fields.0.get(name).and_then(|text| text.parse().ok())
}

async fn overview(State(site): At) -> Response {
    blocking(site, |site| Ok(Json(view::overview(&site.console)?))).await
}

async fn agents(State(site): At) -> Response {
    blocking(site, |site| Ok(Json(doc::AgentsDoc { agents: site.console.agents() }))).await
}

async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi::DOCUMENT).into_response()
}

async fn compare(
    State(site): At,
    Extension(caller): Extension<Caller>,
    fields: Fields,
) -> Response {
    let work = move |site: &Site| {
        let (before, after) = (fields.0.get("before"), fields.0.get("after"));
        let (before, after) = (numbers(before)?, numbers(after)?);
        Ok(Json(reports::compare(&site.console, &before, &after)?))
    };
    reading(site, caller, work).await
}

fn matrix_of(site: &Site, fields: &Fields) -> Result<reports::MatrixDoc, Refused> {
    let runs = numbers(fields.0.get("runs"))?;
    let kinds = fields.0.get("ops").map(String::as_str).unwrap_or_default();
    let kinds = kinds.split(',').filter(|kind| !kind.is_empty()).map(str::to_owned);
    reports::matrix(&site.console, &runs, &kinds.collect::<Vec<_>>())
}

async fn matrix(State(site): At, Extension(caller): Extension<Caller>, fields: Fields) -> Response {
    reading(site, caller, move |site| Ok(Json(matrix_of(site, &fields)?))).await
}

async fn matrix_csv(
    State(site): At,
    Extension(caller): Extension<Caller>,
    fields: Fields,
) -> Response {
    let work = move |site: &Site| {
        let text = reports::matrix_csv(&matrix_of(site, &fields)?);
        Ok(attachment("matrix.csv", "text/csv; charset=utf-8", Body::from(text)))
    };
    reading(site, caller, work).await
}

async fn series(
    State(site): At,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    fields: Fields,
) -> Response {
    let work = move |site: &Site| {
        let points = field(&fields, "points").unwrap_or(600_usize).clamp(1, 10_000);
        let stage = field(&fields, "stage");
        Ok(Json(figures::series(&site.console, number(&id)?, stage, points)?))
    };
    reading(site, caller, work).await
}

async fn listen(
    State(site): At,
    Path(id): Path<String>,
    fields: Fields,
    headers: axum::http::HeaderMap,
) -> Response {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let last = last.and_then(|text| text.parse::<u64>().ok());
    let after = last.or_else(|| field(&fields, "after")).unwrap_or(0);
    match number(&id) {
        Ok(number) => events::listen(&site, number, after),
        Err(refused) => refused.into_response(),
    }
}

async fn timeline(State(site): At, Path(id): Path<String>, fields: Fields) -> Response {
    let work = move |site: &Site| {
        let offset = field(&fields, "cursor").unwrap_or(0);
        let limit = field(&fields, "limit").unwrap_or(200).clamp(1, figures::TIMELINE_MAX);
        let stage = field(&fields, "stage");
        Ok(Json(figures::timeline(&site.console, number(&id)?, stage, (offset, limit))?))
    };
    blocking(site, work).await
}

async fn timeline_csv(
    State(site): At,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    fields: Fields,
) -> Response {
    let work = move |site: &Site| {
        let number = number(&id)?;
        site.console.store().entry(number)?;
        let text = figures::timeline_csv(&site.console, number, field(&fields, "stage"));
        let name = format!("{number}-timeline.csv");
        Ok(attachment(&name, "text/csv; charset=utf-8", Body::from(text)))
    };
    reading(site, caller, work).await
}

async fn report_json(
    State(site): At,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let work = move |site: &Site| {
        let json = reports::report_json(&site.console, number(&id)?)?;
        Ok(([(CONTENT_TYPE, "application/json")], json))
    };
    reading(site, caller, work).await
}

async fn report_html(
    State(site): At,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let work = move |site: &Site| {
        let page = reports::report_html(&site.console, number(&id)?)?;
        let kind = (CONTENT_TYPE, "text/html; charset=utf-8");
        let policy = format!("{}; {REPORT_POLICY}", plimsoll_report::html::policy());
        let kind = (kind.0, kind.1.to_owned());
        Ok(([kind, (CONTENT_SECURITY_POLICY, policy)], page))
    };
    reading(site, caller, work).await
}

async fn everything(
    State(site): At,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let work = move |site: &Site| {
        let entry = site.console.store().entry(number(&id)?)?;
        let name = format!("{}.tar", entry.number);
        let turn = turns::write(site, &caller.user)?;
        let body = written(move |to| {
            let _turn = turn;
            files::tar(&entry, to)
        });
        Ok(attachment(&name, "application/x-tar", body))
    };
    blocking(site, work).await
}

async fn file(
    State(site): At,
    Extension(caller): Extension<Caller>,
    Path((id, name)): Path<(String, String)>,
) -> Response {
    let work = move |site: &Site| {
        let entry = site.console.store().entry(number(&id)?)?;
        let none = || Refused::not_found(format!("{id} has no such file"));
        let found = files::find(&entry, &name).ok_or_else(none)?;
        let (open, length) = found.open().map_err(|_| none())?;
        let last = name.rsplit('/').next().unwrap_or("file").to_owned();
        let turn = turns::write(site, &caller.user)?;
        let body = written(move |mut to| {
            let _turn = turn;
            io::copy(&mut io::Read::take(open, length), &mut to)?;
            to.flush()
        });
        Ok(attachment(&last, "application/octet-stream", body))
    };
    blocking(site, work).await
}

/// Returns what is saved and never shown by a browser.
fn attachment(name: &str, media_type: &'static str, body: Body) -> Response {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let plain: String = name.chars().map(plain).collect();
    let encoded = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
    let text = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}");
    let disposition = HeaderValue::from_str(&text);
    let disposition = disposition.unwrap_or(HeaderValue::from_static("attachment"));
    let policy = HeaderValue::from_static("default-src 'none'; sandbox");
    let headers: [(HeaderName, HeaderValue); 3] = [
        (CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (CONTENT_DISPOSITION, disposition),
        (CONTENT_SECURITY_POLICY, policy),
    ];
    (headers, body).into_response()
}

/// Sends pieces to a body as they are written; who does not take them is waited for.
struct Pieces(Sender<Bytes>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.blocking_send(Bytes::copy_from_slice(bytes)).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a body of what a thread writes.
fn written(work: impl FnOnce(io::BufWriter<Pieces>) -> io::Result<()> + Send + 'static) -> Body {
    let (to, from) = channel(PIECES);
    spawn_blocking(move || {
        // What fails on the way cuts the body, which its length or its end tells.
        let _ = work(io::BufWriter::with_capacity(PIECE_BYTES, Pieces(to)));
    });
    Body::from_stream(stream::unfold(from, |mut from| async move {
        from.recv().await.map(|piece| (Ok::<_, Infallible>(piece), from))
    }))
}
