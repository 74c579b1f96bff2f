//! What a run tells while it runs: one thread reads the live counters, serves them to Prometheus
//! and pushes them to receivers; another reads what the store tells of itself.
//! No worker waits for it, and no failure of it fails the run.

mod influx;
mod otlp;
mod prometheus;
mod push;
mod scrape;
mod serve;
mod snapshot;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{Builder as ThreadBuilder, JoinHandle};
use std::time::Duration;

use futures::future::{join, join_all};
use plimsoll_engine::Live;
use plimsoll_http::{TlsConfig, TlsOptions, TlsSetupError, Url};
use plimsoll_model::{SeriesKey, SharedClock, StageId, WallTime};
use plimsoll_stats::Totals;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime::{self, Runtime};
use tokio::sync::watch;

use crate::influx::Database;
use crate::push::{Pusher, Receiver};
use crate::snapshot::Board;

pub use scrape::{Scrape, ScrapeAsked, Scraper};

/// Tells of the first failure of a receiver.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Something that the user named, and what messages call it.
#[derive(Clone)]
pub struct Named<T> {
    /// What messages call it, such as the flag that named it.
    pub name: &'static str,
    /// What was named. An address may hold a token.
    pub value: T,
}

/// Who is told of a run.
#[derive(Clone, Default)]
pub struct Receivers {
    /// Where to serve the counters as a page for Prometheus.
    pub page: Option<Named<SocketAddr>>,
    /// The address of an OpenTelemetry receiver.
    pub otlp: Option<Named<String>>,
    /// The address of an InfluxDB.
    pub influxdb: Option<Named<String>>,
}

/// What receivers are told of a run besides its counters.
pub struct RunFacts<'a> {
    /// The run's id.
    pub run_id: &'a str,
    /// What it does, such as `s3-get`.
    pub what: &'a str,
    /// What the endpoints are called in results, indexed by `EndpointId`.
    pub endpoints: &'a [String],
    /// The run's clock.
    pub clock: &'a SharedClock,
    /// The wall time at the clock's epoch.
    pub wall_epoch: WallTime,
    /// Returns the processor time that this process has used so far, all cores.
    pub cpu: fn() -> Duration,
    /// Certificates to trust besides the system's.
    pub tls_ca: Option<PathBuf>,
    /// Is told of the first failure of each receiver.
    pub tell: Tell,
}

/// Why a run cannot be told of.
#[derive(Debug, Error)]
pub enum TelemetryError {
    /// The page has no place.
    #[error("{name}: cannot listen on {addr}")]
    Listen {
        /// What named it.
        name: &'static str,
        /// Where it should be.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The address of a receiver cannot be.
    #[error("{name}: {reason}")]
    Address {
        /// What named it.
        name: &'static str,
        /// Why, without the address, which may hold a token.
        reason: String,
    },
    /// No connection can be encrypted.
    #[error("cannot set TLS up for telemetry")]
    Tls(#[source] TlsSetupError),
    /// An event loop or a thread could not be started.
    #[error("cannot start {what}")]
    Start {
        /// Which.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// How a run went, for receivers that want a summary.
struct End {
    /// The measured stages: their names and the sums of their operations.
    measured: Vec<(String, Totals<SeriesKey>)>,
}

/// The thread that tells of a run. Dropped, it tells the counters a last time and ends.
pub struct Telemetry {
    board: Arc<Board>,
    end: watch::Sender<Option<Arc<End>>>,
    page: Option<SocketAddr>,
    thread: Option<JoinHandle<()>>,
}

impl Telemetry {
    /// Begins to tell of a run, if anybody is to be told; refuses what can never work.
    pub fn start(
        receivers: &Receivers,
        facts: &RunFacts<'_>,
    ) -> Result<Option<Self>, TelemetryError> {
        let page = receivers.page.as_ref().map(listen).transpose()?;
        let receivers = addressed(receivers, facts)?;
        if page.is_none() && receivers.is_empty() {
            return Ok(None);
        }
        let page_addr = page.as_ref().map(|(_, addr)| *addr);
        let board = Arc::new(Board::new(facts));
        let (end, ended) = watch::channel(None);
        let start = |what| move |source| TelemetryError::Start { what, source };
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let teller = Sender {
            runtime: runtime.map_err(start("the event loop"))?,
            page: page.map(|(listener, _)| listener),
            receivers,
            board: Arc::clone(&board),
            clock: Arc::clone(facts.clock),
            tell: Arc::clone(&facts.tell),
        };
        let thread = ThreadBuilder::new().name("telemetry".to_owned());
        let thread = thread.spawn(move || teller.run(ended));
        let thread = thread.map_err(start("the thread for telemetry"))?;
        Ok(Some(Self { board, end, page: page_addr, thread: Some(thread) }))
    }

    /// Returns the URL of the page for Prometheus, if there is one.
    pub fn page(&self) -> Option<String> {
        self.page.map(|addr| format!("http://{addr}{}", serve::PATH))
    }

    /// Tells of a stage that begins; the one before counts no further.
    pub fn stage(&self, name: &str, live: Arc<Live>) {
        self.board.begin(name, live);
    }

    /// Tells everything a last time, with a summary of the measured stages, and ends. Stages count
    /// in the order in which they began to be told of. Takes a few seconds at most where a receiver
    /// does not answer.
    pub fn finish(self, measured: Vec<(StageId, Totals<SeriesKey>)>) {
        let named = |(stage, totals)| (self.board.name_of(stage), totals);
        let measured = measured.into_iter().map(named).collect();
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

fn listen(page: &Named<SocketAddr>) -> Result<(StdTcpListener, SocketAddr), TelemetryError> {
    let Named { name, value: addr } = *page;
    let listening = StdTcpListener::bind(addr).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        Ok((listener, addr))
    });
    listening.map_err(|source| TelemetryError::Listen { name, addr, source })
}

fn addressed(named: &Receivers, facts: &RunFacts<'_>) -> Result<Vec<Receiver>, TelemetryError> {
    let mut receivers = Vec::new();
    let refused = |name, reason: &str| TelemetryError::Address { name, reason: reason.to_owned() };
    if let Some(Named { name, value }) = named.otlp.as_ref().filter(|it| !it.value.is_empty()) {
        let url = Url::parse(value).map_err(|reason| refused(name, reason))?;
        if url.user.is_some() {
            return Err(refused(name, "a user before `@` is not supported"));
        }
        receivers.push(Receiver::otlp(name, &url, tls(&url, facts)?));
    }
    if let Some(Named { name, value }) = named.influxdb.as_ref().filter(|it| !it.value.is_empty()) {
        let url = Url::parse(value).map_err(|reason| refused(name, reason))?;
        let database = Database::of(&url).map_err(|reason| refused(name, &reason))?;
        receivers.push(Receiver::influx(name, database, &url, tls(&url, facts)?));
    }
    Ok(receivers)
}

/// The store's leave to trust anybody does not count here: a token goes over this connection.
fn tls(url: &Url<'_>, facts: &RunFacts<'_>) -> Result<Option<TlsConfig>, TelemetryError> {
    let load =
        || TlsConfig::load(&TlsOptions { ca_file: facts.tls_ca.clone(), ..TlsOptions::default() });
    url.tls.then(load).transpose().map_err(TelemetryError::Tls)
}

/// What the thread works with.
struct Sender {
    runtime: Runtime,
    page: Option<StdTcpListener>,
    receivers: Vec<Receiver>,
    board: Arc<Board>,
    clock: SharedClock,
    tell: Tell,
}

impl Sender {
    fn run(self, ended: watch::Receiver<Option<Arc<End>>>) {
        let Self { runtime, page, receivers, board, clock, tell } = self;
        runtime.block_on(async {
            let page = page.and_then(|listener| TcpListener::from_std(listener).ok());
            let serving = async {
                match page {
                    Some(listener) => serve::serve(listener, Arc::clone(&board)).await,
                    None => std::future::pending().await,
                }
            };
            let pushing = receivers.into_iter().map(|receiver| {
                let pusher = Pusher::new(
                    receiver,
                    Arc::clone(&board),
                    Arc::clone(&clock),
                    Arc::clone(&tell),
                );
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
