//! Asking a service for credentials: one small exchange at a time on our own client.

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_http::{
    Body, Client, Endpoint, Options, Proxies, Request, ResponseHead, ResponseSink, TlsConfig,
    TlsOptions,
};
use plimsoll_model::SharedClock;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use plimsoll_http::Url;

/// How long a connection may take: a machine without such a service often says nothing at all.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long a whole exchange may take.
const EXCHANGE_MAX: Duration = Duration::from_secs(10);
/// More than any answer with credentials has.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Where a service is.
pub(super) struct Service {
    pub(super) tls: bool,
    pub(super) endpoint: Endpoint,
    /// What comes before the path of each request; empty, or beginning with `/`.
    pub(super) base: String,
}

impl Service {
    /// Returns the service at a URL.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let parsed = Url::parse(url).map_err(|reason| anyhow!("{reason}"))?;
        if parsed.user.is_some() {
            bail!("the address names a user");
        }
        let query = parsed.query.map(|query| format!("?{query}")).unwrap_or_default();
        let base = format!("{}{query}", parsed.path);
        Ok(Self { tls: parsed.tls, endpoint: parsed.endpoint, base })
    }
}

/// One request.
pub(super) struct Ask<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// Names and values; what an HTTP head cannot hold is refused.
    pub(super) fields: &'a [(&'a str, &'a str)],
    pub(super) body: &'a str,
}

/// An answer, kept whole.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    too_long: bool,
}

impl ResponseSink for Answer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
    }

    fn body(&mut self, bytes: &[u8]) {
        self.too_long |= self.body.len() + bytes.len() > ANSWER_BYTES_MAX;
        if !self.too_long {
            self.body.extend_from_slice(bytes);
        }
    }
}

/// Asks services, each request on a connection of its own.
pub(super) struct Fetcher {
    runtime: Runtime,
    clock: SharedClock,
    trust: TlsOptions,
    proxies: Option<Proxies>,
}

impl Fetcher {
    pub(super) fn new(
        clock: &SharedClock,
        trust: &TlsOptions,
        proxies: Option<Proxies>,
    ) -> Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the event loop")?;
        Ok(Self { runtime, clock: clock.clone(), trust: trust.clone(), proxies })
    }

    /// Does one exchange; any status is an answer.
    pub(super) fn fetch(&self, service: &Service, ask: &Ask<'_>) -> Result<Answer> {
        let tls = match service.tls {
            true => Some(TlsConfig::load(&self.trust).context("cannot set TLS up")?),
            false => None,
        };
        let options = Options {
            connect_timeout: CONNECT_MAX,
            tls,
            keep_alive: false,
            proxies: self.proxies.clone(),
            ..Options::default()
        };
        let endpoints = Rc::from([service.endpoint.clone()]);
        let mut client = Client::new(endpoints, Rc::new(options), self.clock.clone());
        let head = head_of(service, ask)?;
        let request = Request {
            head: head.as_bytes(),
            method_is_head: false,
            body: Body::Bytes(ask.body.as_bytes()),
        };
        let mut answer = Answer::default();
        let exchange = self.runtime.block_on(async {
            timeout(EXCHANGE_MAX, client.exchange(0, request, &mut answer)).await
        });
        exchange.with_context(|| format!("{} does not answer", service.endpoint))??;
        if answer.too_long {
            bail!("the answer of {} is longer than credentials are", service.endpoint);
        }
        Ok(answer)
    }
}

fn head_of(service: &Service, ask: &Ask<'_>) -> Result<String> {
    let authority = service.endpoint.authority(service.tls);
    let (method, path) = (ask.method, ask.path);
    let mut head = format!("{method} {}{path} HTTP/1.1\r\nHost: {authority}\r\n", service.base);
    for (name, value) in ask.fields {
        if !value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            bail!("the value for {name} holds a character that a request cannot hold");
        }
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n\r\n", ask.body.len()));
    Ok(head)
}
