//! What a run tells while it runs: one thread reads the live counters, serves them to Prometheus
//! and pushes them to receivers. No worker waits for it, and no failure of it fails the run.

mod influx;
mod otlp;
mod prometheus;
mod push;
mod serve;
mod snapshot;
#[cfg(test)]
mod tests;
pub(crate) mod url;

use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{Builder as ThreadBuilder, JoinHandle};

use anyhow::{Context, Result, anyhow};
use futures::future::{join, join_all};
use plimsoll_engine::Live;
use plimsoll_http::{TlsConfig, TlsOptions};
use plimsoll_model::{SeriesKey, SharedClock};
use plimsoll_stats::Timeline;
use tokio::net::TcpListener;
use tokio::runtime::{self, Runtime};
use tokio::sync::watch;

use crate::args::TelemetryArgs;
use crate::ui::Ui;
use influx::Database;
use plimsoll_conduct::RunTime;
use push::{Pusher, Receiver};
use snapshot::Board;
use url::Url;

/// What receivers are told of a run besides its counters.
pub(crate) struct RunFacts<'a> {
    /// The run's id.
    pub(crate) run_id: &'a str,
    /// What it does, such as `s3-get`.
    pub(crate) what: &'a str,
    /// What the endpoints are called in results, indexed by `EndpointId`.
    pub(crate) endpoints: &'a [String],
    /// The run's time.
    pub(crate) time: &'a RunTime,
    /// Certificates to trust besides the system's (`--tls-ca`).
    pub(crate) tls_ca: Option<PathBuf>,
    /// Where to tell the page's address and the first failure of each receiver.
    pub(crate) ui: Ui,
}

/// How a run went, for receivers that want a summary.
struct End {
    /// The measured stages: their names and their operations.
    measured: Vec<(String, Timeline<SeriesKey>)>,
}

/// The thread that tells of a run. Dropped, it tells the counters a last time and ends.
pub(crate) struct Telemetry {
    board: Arc<Board>,
    end: watch::Sender<Option<Arc<End>>>,
    #[cfg(test)]
    page: Option<SocketAddr>,
    thread: Option<JoinHandle<()>>,
}

impl Telemetry {
    /// Begins to tell of a run, if anybody is to be told; refuses what can never work.
    pub(crate) fn start(args: &TelemetryArgs, facts: &RunFacts<'_>) -> Result<Option<Self>> {
        let page = args.metrics.map(listen).transpose()?;
        let receivers = receivers(args, facts)?;
        if page.is_none() && receivers.is_empty() {
            return Ok(None);
        }
        if let Some((_, addr)) = &page {
            facts.ui.note(&format!("metrics at http://{addr}{}", serve::PATH));
        }
        let board = Board::new(facts.run_id, facts.what, facts.endpoints, facts.time);
        let board = Arc::new(board);
        let (end, ended) = watch::channel(None);
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        #[cfg(test)]
        let addr = page.as_ref().map(|(_, addr)| *addr);
        let teller = Teller {
            runtime: runtime.context("cannot start the event loop")?,
            page: page.map(|(listener, _)| listener),
            receivers,
            board: Arc::clone(&board),
            clock: Arc::clone(&facts.time.clock),
            ui: facts.ui,
        };
        let thread = ThreadBuilder::new().name("telemetry".to_owned());
        let thread = thread.spawn(move || teller.run(ended));
        let thread = thread.context("cannot start the thread for telemetry")?;
        Ok(Some(Self {
            board,
            end,
            #[cfg(test)]
            page: addr,
            thread: Some(thread),
        }))
    }

    /// Tells of a stage that begins; the one before counts no further.
    pub(crate) fn stage(&self, name: &str, live: Arc<Live>) {
        self.board.begin(name, live);
    }

    /// Tells everything a last time, with a summary of the measured stages, and ends. Takes a few
    /// seconds at most where a receiver does not answer.
    pub(crate) fn finish(self, mut measured: Vec<(String, Timeline<SeriesKey>)>) {
        measured.iter_mut().for_each(|(_, timeline)| timeline.close());
        self.end.send_replace(Some(Arc::new(End { measured })));
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.end.send_if_modified(|end| {
            let first = end.is_none();
            end.get_or_insert_with(|| Arc::new(End { measured: Vec::new() }));
            first
        });
        // A panic there is no failure of the run.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn listen(addr: SocketAddr) -> Result<(StdTcpListener, SocketAddr)> {
    let listening = StdTcpListener::bind(addr).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        Ok((listener, addr))
    });
    listening.with_context(|| format!("--metrics: cannot listen on {addr}"))
}

fn receivers(args: &TelemetryArgs, facts: &RunFacts<'_>) -> Result<Vec<Receiver>> {
    let mut receivers = Vec::new();
    if let Some(text) = args.otlp.as_ref().filter(|url| !url.expose().is_empty()) {
        let url = Url::parse(text.expose()).map_err(|reason| anyhow!("--otlp: {reason}"))?;
        if url.user.is_some() {
            return Err(anyhow!("--otlp: a user before `@` is not supported"));
        }
        receivers.push(Receiver::otlp(&url, tls(&url, facts)?));
    }
    if let Some(text) = args.influxdb.as_ref().filter(|url| !url.expose().is_empty()) {
        let url = Url::parse(text.expose()).map_err(|reason| anyhow!("--influxdb: {reason}"))?;
        let database = Database::of(&url).map_err(|reason| anyhow!("--influxdb: {reason}"))?;
        receivers.push(Receiver::influx(database, &url, tls(&url, facts)?));
    }
    Ok(receivers)
}

/// Never as `--insecure` says: that is about the store, and a token goes over this connection.
fn tls(url: &Url<'_>, facts: &RunFacts<'_>) -> Result<Option<TlsConfig>> {
    let load = || TlsConfig::load(&TlsOptions { insecure: false, ca_file: facts.tls_ca.clone() });
    url.tls.then(load).transpose().context("cannot set TLS up for telemetry")
}

/// What the thread works with.
struct Teller {
    runtime: Runtime,
    page: Option<StdTcpListener>,
    receivers: Vec<Receiver>,
    board: Arc<Board>,
    clock: SharedClock,
    ui: Ui,
}

impl Teller {
    fn run(self, ended: watch::Receiver<Option<Arc<End>>>) {
        let Self { runtime, page, receivers, board, clock, ui } = self;
        runtime.block_on(async {
            let page = page.and_then(|listener| TcpListener::from_std(listener).ok());
            let serving = async {
                match page {
                    Some(listener) => serve::serve(listener, Arc::clone(&board)).await,
                    None => std::future::pending().await,
                }
            };
            let pushing = receivers.into_iter().map(|receiver| {
                let pusher = Pusher::new(receiver, Arc::clone(&board), Arc::clone(&clock), ui);
                pusher.run(ended.clone())
            });
            let mut over = ended.clone();
            // An error means that the sender is gone, which is an end too.
            let ending = async { drop(over.wait_for(Option::is_some).await) };
            let until_end = join(ending, join_all(pushing));
            tokio::select! {
                () = serving => {}
                _ = until_end => {}
            }
        });
    }
}
