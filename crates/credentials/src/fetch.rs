//! Asking a service for credentials: one small exchange at a time on our own client.

use std::rc::Rc;
use std::time::Duration;

use plimsoll_http::{
    Body, Client, Endpoint, Options, Proxies, Request, ResponseHead, ResponseSink, TlsConfig,
    TlsOptions, Url,
};
use plimsoll_model::SharedClock;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::{CredentialsError, Result};

/// How long a connection may take: a machine without such a service often says nothing at all.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long a whole exchange may take.
const EXCHANGE_MAX: Duration = Duration::from_secs(10);
/// More than any answer with credentials has.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Where a service is.
pub(crate) struct Service {
    pub(crate) tls: bool,
    pub(crate) endpoint: Endpoint,
    /// What comes before the path of each request; empty, or beginning with `/`.
    pub(crate) base: String,
}

impl Service {
    /// Returns the service at the URL of a variable.
    pub(crate) fn parse(variable: &'static str, url: &str) -> Result<Self> {
        let refused =
            |reason: &str| CredentialsError::Address { variable, reason: reason.to_owned() };
        let parsed = Url::parse(url).map_err(refused)?;
        if parsed.user.is_some() {
            return Err(refused("the address names a user"));
        }
        let query = parsed.query.map(|query| format!("?{query}")).unwrap_or_default();
        let base = format!("{}{query}", parsed.path);
        Ok(Self { tls: parsed.tls, endpoint: parsed.endpoint, base })
    }
}

/// One request.
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Names and values; what an HTTP head cannot hold is refused.
    pub(crate) fields: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
}

/// An answer, kept whole.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
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

impl Answer {
    /// Returns the error of an answer that is no credentials, with a remark on it.
    pub(crate) fn refused(&self, service: &Service, remark: impl Into<String>) -> CredentialsError {
        let service = service.endpoint.to_string();
        CredentialsError::Refused { service, status: self.status, remark: remark.into() }
    }
}

/// Asks services, each request on a connection of its own.
pub(crate) struct Fetcher {
    runtime: Runtime,
    clock: SharedClock,
    trust: TlsOptions,
    proxies: Option<Proxies>,
}

impl Fetcher {
    pub(crate) fn new(
        clock: &SharedClock,
        trust: &TlsOptions,
        proxies: Option<Proxies>,
    ) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(CredentialsError::Runtime)?;
        Ok(Self { runtime, clock: clock.clone(), trust: trust.clone(), proxies })
    }

    /// Does one exchange; any status is an answer.
    pub(crate) fn fetch(&self, service: &Service, ask: &Ask<'_>) -> Result<Answer> {
        let tls = service.tls.then(|| TlsConfig::load(&self.trust)).transpose();
        let options = Options {
            connect_timeout: CONNECT_MAX,
            tls: tls.map_err(CredentialsError::Tls)?,
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
        let name = || service.endpoint.to_string();
        exchange.map_err(|_| CredentialsError::Silent(name()))??;
        if answer.too_long {
            let words = format!("the answer of {} is longer than credentials are", name());
            return Err(CredentialsError::Answer(words));
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
            return Err(CredentialsError::Field((*name).to_owned()));
        }
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n\r\n", ask.body.len()));
    Ok(head)
}
