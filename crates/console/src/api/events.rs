//! What happens to a run, as it happens: server-sent events.
//!
//! A second is made a text once and shared by all who listen. Who does not take what it is sent is
//! let go: nothing is kept for it.
#![expect(clippy::disallowed_methods, reason = "each listener is a task of the server")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::Site;
use super::figures;
use super::view;
use crate::console::Running;
use crate::live::{Event, Told};
use crate::state::{Number, State};
use crate::store::StoreError;

/// Who is further behind than so many frames is let go,
const BEHIND_MAX: usize = 64;
/// or than so many bytes in more than one frame: a frame of the whole run may have millions.
const BEHIND_BYTES_MAX: usize = 1 << 20;
/// A line is sent at least this often, so that nobody on the way takes it for dead.
const STILL_HERE: Duration = Duration::from_secs(10);
/// How often a run that waits for its turn is looked at.
const TURN_EVERY: Duration = Duration::from_secs(1);

/// How a run has ended.
#[derive(Serialize)]
struct EndDoc {
    state: State,
}

/// The listener is gone, or too slow.
struct Gone;

/// Who listens.
struct Listener {
    to: Sender<Bytes>,
    /// How many bytes it has not taken.
    behind: Arc<AtomicUsize>,
}

impl Listener {
    fn send(&self, frame: Bytes) -> Result<(), Gone> {
        let length = frame.len();
        let behind = self.behind.fetch_add(length, Ordering::SeqCst);
        if behind > 0 && behind + length > BEHIND_BYTES_MAX {
            return Err(Gone);
        }
        self.to.try_send(frame).map_err(|_| Gone)
    }
}

/// Returns the events of a run after that second.
pub(super) fn listen(site: &Arc<Site>, number: Number, after: u64) -> Response {
    let (to, from) = channel::<Bytes>(BEHIND_MAX);
    let behind = Arc::<AtomicUsize>::default();
    let to = Listener { to, behind: Arc::clone(&behind) };
    let site = Arc::clone(site);
    tokio::spawn(async move {
        // An error means that nobody listens any more.
        let _ = tell(&site, number, after, &to).await;
    });
    let frames = stream::unfold((from, behind), |(mut from, behind)| async move {
        let frame = from.recv().await?;
        behind.fetch_sub(frame.len(), Ordering::SeqCst);
        Some((Ok::<_, Infallible>(frame), (from, behind)))
    });
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(frames)).into_response()
}

fn frame(event: &str, id: Option<u64>, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    Bytes::from(format!("event: {event}\n{id}data: {data}\n\n"))
}

async fn tell(site: &Arc<Site>, number: Number, after: u64, to: &Listener) -> Result<(), Gone> {
    send_run(site, number, to).await?;
    let mut waited = false;
    let running = loop {
        if let Some(running) = site.console.running(number) {
            break running;
        }
        waited = true;
        match state(site, number).await {
            Ok(state) if !state.is_over() => {}
            Ok(state) => return to.send(frame("end", None, &EndDoc { state })),
            Err(_) => return Err(Gone),
        }
        rest(to, TURN_EVERY).await?;
    };
    if waited {
        send_run(site, number, to).await?;
    }
    follow(site, number, &running, after, to).await?;
    send_run(site, number, to).await?;
    let state = state(site, number).await.map_err(|_| Gone)?;
    to.send(frame("end", None, &EndDoc { state }))
}

/// Waits, unless the listener is gone before.
async fn rest(to: &Listener, time: Duration) -> Result<(), Gone> {
    match timeout(time, to.to.closed()).await {
        Ok(()) => Err(Gone),
        Err(_) => to.send(Bytes::from_static(b"event: alive\ndata: {}\n\n")),
    }
}

async fn follow(
    site: &Arc<Site>,
    number: Number,
    running: &Running,
    after: u64,
    to: &Listener,
) -> Result<(), Gone> {
    let (mut events, missed) = running.watch.listen(after);
    match missed {
        Some(missed) => {
            for told in missed {
                to.send(tick(running, &told))?;
            }
        }
        None => to.send(Bytes::from_static(b"event: reset\ndata: {}\n\n"))?,
    }
    loop {
        let event = tokio::select! {
            event = timeout(STILL_HERE, events.recv()) => event,
            () = to.to.closed() => return Err(Gone),
        };
        match event {
            Err(_) => to.send(Bytes::from_static(b"event: alive\ndata: {}\n\n"))?,
            Ok(Ok(Event::Tick(told))) => to.send(tick(running, &told))?,
            Ok(Ok(Event::Log(remark, seq))) => {
                to.send(frame("log", None, &view::log_line(seq, &remark)))?;
            }
            Ok(Ok(Event::Changed)) => send_run(site, number, to).await?,
            Ok(Ok(Event::End) | Err(RecvError::Closed)) => return Ok(()),
            Ok(Err(RecvError::Lagged(_))) => return Err(Gone),
        }
    }
}

/// Returns a second as it goes over the wire, made by who needs it first.
fn tick(running: &Running, told: &Told) -> Bytes {
    let make = || {
        let doc = figures::tick(running.watch.facts(), told);
        frame("tick", Some(told.tick.seq), &doc)
    };
    told.text.get_or_init(make).clone()
}

async fn send_run(site: &Arc<Site>, number: Number, to: &Listener) -> Result<(), Gone> {
    let of = Arc::clone(site);
    let doc = spawn_blocking(move || view::full(&of.console, number, false)).await;
    match doc {
        Ok(Ok(doc)) => to.send(frame("run", None, &doc)),
        _ => Err(Gone),
    }
}

async fn state(site: &Arc<Site>, number: Number) -> Result<State, StoreError> {
    let of = Arc::clone(site);
    let entry = spawn_blocking(move || of.console.store().entry(number)).await;
    entry.unwrap_or(Err(StoreError::Unknown(number))).map(|entry| entry.state)
}
