//! Pushing the counters to receivers that await them: once a second and once at the end.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_http::{Body, Client, Options, Request, ResponseHead, ResponseSink, TlsConfig, Url};
use plimsoll_model::{Secret, SharedClock, redacted};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::snapshot::Board;
use crate::{End, Tell, influx, otlp};

/// How often receivers are told.
const TICK: Duration = Duration::from_secs(1);
/// How long a receiver may take. One that is slow is told less often, and is not waited for at the
/// end of a run for longer.
const PUSH_MAX: Duration = Duration::from_secs(3);
/// A refusal that is longer is not shown: where it was cut, a part of a secret could be left.
const REFUSAL_BYTES_MAX: usize = 16 << 10;
/// How much of one is shown, once no secret is in it.
pub(super) const REFUSAL_CHARS_MAX: usize = 200;

/// What a receiver is spoken to in.
pub(super) enum Dialect {
    /// OTLP over HTTP in JSON.
    Otlp,
    /// InfluxDB's line protocol.
    Influx(influx::Database),
}

/// A receiver that the user named.
pub(super) struct Receiver {
    /// What messages call it.
    name: &'static str,
    dialect: Dialect,
    endpoint: plimsoll_http::Endpoint,
    tls: Option<TlsConfig>,
    /// Path and query.
    target: String,
    /// What no text may show that came from elsewhere.
    secrets: Vec<Secret>,
}

impl Receiver {
    /// Returns an OTLP receiver.
    pub(super) fn otlp(name: &'static str, url: &Url<'_>, tls: Option<TlsConfig>) -> Self {
        let path = if url.path.is_empty() || url.path == "/" { otlp::PATH } else { url.path };
        let target = match url.query {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        };
        let (endpoint, secrets) = (url.endpoint.clone(), url.secrets());
        Self { name, dialect: Dialect::Otlp, endpoint, tls, target, secrets }
    }

    /// Returns a database.
    pub(super) fn influx(
        name: &'static str,
        database: influx::Database,
        url: &Url<'_>,
        tls: Option<TlsConfig>,
    ) -> Self {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (org, bucket) = (encoded(&database.org), encoded(&database.bucket));
        let target = format!("/api/v2/write?org={org}&bucket={bucket}&precision=ns");
        let secrets = vec![database.token.clone().into()];
        let dialect = Dialect::Influx(database);
        Self { name, dialect, endpoint: url.endpoint.clone(), tls, target, secrets }
    }

    fn head(&self, body_len: usize) -> Vec<u8> {
        let host = self.endpoint.authority(self.tls.is_some());
        let content_type = match &self.dialect {
            Dialect::Otlp => "application/json".to_owned(),
            Dialect::Influx(database) => {
                format!("text/plain; charset=utf-8\r\nauthorization: Token {}", database.token)
            }
        };
        format!(
            "POST {} HTTP/1.1\r\nhost: {host}\r\nuser-agent: plimsoll/{}\r\n\
             content-type: {content_type}\r\ncontent-length: {body_len}\r\n\r\n",
            self.target,
            env!("CARGO_PKG_VERSION")
        )
        .into_bytes()
    }

    /// Takes the receiver's secrets out of a text that came from elsewhere.
    fn without_secrets(&self, text: &str) -> String {
        redacted(text, self.secrets.iter().map(Secret::expose))
    }
}

/// Tells one receiver until the run ends.
pub(super) struct Pusher {
    receiver: Receiver,
    client: Client,
    board: Arc<Board>,
    written: influx::Written,
    tell: Tell,
    /// Whether a failure was told of.
    warned: bool,
}

impl Pusher {
    pub(super) fn new(
        receiver: Receiver,
        board: Arc<Board>,
        clock: SharedClock,
        tell: Tell,
    ) -> Self {
        let options = Options {
            connect_timeout: PUSH_MAX,
            tls: receiver.tls.clone(),
            keep_alive: true,
            ..Options::default()
        };
        let client = Client::new(Rc::new([receiver.endpoint.clone()]), Rc::new(options), clock);
        Self { receiver, client, board, written: Default::default(), tell, warned: false }
    }

    pub(super) async fn run(mut self, mut end: watch::Receiver<Option<Arc<End>>>) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is at once, when nothing has happened yet.
        ticks.tick().await;
        let over = loop {
            tokio::select! {
                over = end.wait_for(Option::is_some) => break over.ok().and_then(|end| end.clone()),
                _ = ticks.tick() => self.push(None).await,
            }
        };
        self.push(over.as_deref()).await;
    }

    /// Tells the counters of this moment, and at the end how the run went.
    async fn push(&mut self, over: Option<&End>) {
        let snapshot = self.board.snapshot();
        let (body, written) = match &self.receiver.dialect {
            Dialect::Otlp => {
                (otlp::request(&self.board, &snapshot).to_string(), Default::default())
            }
            Dialect::Influx(database) => {
                let (mut lines, written) =
                    influx::totals(database, &self.board, &snapshot, &self.written);
                for (stage, totals) in over.into_iter().flat_map(|end| &end.measured) {
                    lines += &influx::summary(database, &self.board, stage, totals);
                }
                (lines, written)
            }
        };
        if body.is_empty() {
            return;
        }
        match self.post(body.as_bytes()).await {
            Ok(()) => self.written = written,
            Err(reason) => self.warn(&reason),
        }
    }

    async fn post(&mut self, body: &[u8]) -> Result<(), String> {
        let head = self.receiver.head(body.len());
        let request = Request { head: &head, method_is_head: false, body: Body::Bytes(body) };
        let mut answer = Answer::default();
        let exchange = timeout(PUSH_MAX, self.client.exchange(0, request, &mut answer)).await;
        let seconds = PUSH_MAX.as_secs();
        let exchange = exchange.map_err(|_| format!("no answer within {seconds} s"))?;
        let status = exchange.map_err(|error| error.message)?.status;
        if (200..300).contains(&status) {
            return Ok(());
        }
        let whole = if answer.is_longer { &[][..] } else { &answer.kept };
        let said = self.receiver.without_secrets(&String::from_utf8_lossy(whole));
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let words: String = words.chars().take(REFUSAL_CHARS_MAX).collect();
        let colon = if words.is_empty() { "" } else { ": " };
        Err(format!("it answered {status}{colon}{words}"))
    }

    /// Warns of the first failure only: the run goes on without the receiver.
    fn warn(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.warned, true) {
            (self.tell)(&format!(
                "{}: {}; the run is not affected, and further failures are not reported",
                self.receiver.name,
                self.receiver.without_secrets(reason)
            ));
        }
    }
}

/// The beginning of an answer's body.
#[derive(Default)]
struct Answer {
    kept: Vec<u8>,
    is_longer: bool,
}

impl ResponseSink for Answer {
    fn head(&mut self, _: &ResponseHead<'_>) {}

    fn body(&mut self, bytes: &[u8]) {
        let room = REFUSAL_BYTES_MAX - self.kept.len();
        self.is_longer |= bytes.len() > room;
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
