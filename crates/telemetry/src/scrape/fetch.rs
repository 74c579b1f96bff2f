//! Fetches a page of metrics, within limits.

use std::rc::Rc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::percent_decode_str;
use plimsoll_http::{
    Body, Client, Endpoint, Options, Request, ResponseHead, ResponseSink, TlsConfig, Url,
};
use plimsoll_model::{REDACTED, Secret, SharedClock, redacted};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::push::REFUSAL_CHARS_MAX;

/// How long a page may take.
pub(super) const SCRAPE_MAX: Duration = Duration::from_secs(10);
/// How long the last reading may take, since the end of the run waits for it.
pub(super) const SCRAPE_MAX_AT_END: Duration = Duration::from_secs(2);
/// How long a page may be: Ceph's with thousands of daemons is shorter.
pub(super) const PAGE_BYTES_MAX: usize = 16 << 20;

/// A page of metrics.
pub(super) struct Page {
    /// Its address without its secrets.
    pub(super) shown: String,
    endpoint: Endpoint,
    tls: Option<TlsConfig>,
    /// Path and query.
    target: String,
    /// The value of the header that says who asks.
    authorization: Option<Secret>,
    /// What no text may show that came from elsewhere.
    secrets: Vec<Secret>,
}

impl Page {
    /// Returns the page at an address.
    pub(super) fn new(url: &Url<'_>, tls: Option<TlsConfig>) -> Result<Self, String> {
        let path = if url.path.is_empty() || url.path == "/" { "/metrics" } else { url.path };
        let target = match url.query {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        };
        let scheme = if url.tls { "https" } else { "http" };
        let query = url.query.as_ref().map(|_| format!("?{REDACTED}")).unwrap_or_default();
        let shown = format!("{scheme}://{}{path}{query}", url.endpoint.authority(url.tls));
        let authorization = url.user.map(authorization).transpose()?;
        let (endpoint, secrets) = (url.endpoint.clone(), url.secrets());
        Ok(Self { shown, endpoint, tls, target, authorization, secrets })
    }

    fn head(&self) -> Vec<u8> {
        let host = self.endpoint.authority(self.tls.is_some());
        let authorization = self.authorization.as_ref();
        let authorization = authorization
            .map_or(String::new(), |value| format!("authorization: {}\r\n", value.expose()));
        format!(
            "GET {} HTTP/1.1\r\nhost: {host}\r\nuser-agent: plimsoll/{}\r\n{authorization}\
             accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4\r\n\
             accept-encoding: identity\r\n\r\n",
            self.target,
            env!("CARGO_PKG_VERSION")
        )
        .into_bytes()
    }

    /// Returns the text of the page, or why there is none.
    pub(super) async fn fetch(
        &self,
        clock: &SharedClock,
        within: Duration,
    ) -> Result<String, String> {
        // A connection each time: one that broke would cost the next reading, and nobody measures
        // this.
        let options = Options {
            connect_timeout: within,
            tls: self.tls.clone(),
            keep_alive: false,
            ..Options::default()
        };
        let clock = SharedClock::clone(clock);
        let mut client = Client::new(Rc::new([self.endpoint.clone()]), Rc::new(options), clock);
        let head = self.head();
        let request = Request { head: &head, method_is_head: false, body: Body::Empty };
        let mut answer = Answer::default();
        let is_too_long = Rc::clone(&answer.is_too_long);
        let exchange = async {
            tokio::select! {
                biased;
                () = is_too_long.notified() => None,
                exchange = client.exchange(0, request, &mut answer) => Some(exchange),
            }
        };
        let Ok(exchange) = timeout(within, exchange).await else {
            return Err(format!("no whole answer within {} s", within.as_secs()));
        };
        let exchange = exchange.filter(|_| !answer.is_beyond);
        let Some(exchange) = exchange else {
            return Err(format!("the page is longer than {} MiB", PAGE_BYTES_MAX >> 20));
        };
        exchange.map_err(|error| self.without_secrets(&error.message))?;
        answer.text(&|said| self.without_secrets(said))
    }

    /// Takes secrets out of a text that came from elsewhere.
    fn without_secrets(&self, text: &str) -> String {
        redacted(text, self.secrets.iter().map(Secret::expose))
    }
}

/// Returns what is sent of who stands before `@` in an address: a token, or a user with a password.
fn authorization(user: &str) -> Result<Secret, String> {
    let decoded = |part: &str| -> Result<String, String> {
        let text = percent_decode_str(part).decode_utf8();
        text.map(Into::into).map_err(|_| "what stands before `@` is not UTF-8".to_owned())
    };
    let value = match user.split_once(':') {
        Some((user, password)) => {
            let pair = format!("{}:{}", decoded(user)?, decoded(password)?);
            format!("Basic {}", BASE64.encode(pair))
        }
        None => format!("Bearer {}", decoded(user)?),
    };
    // An encoded line end would end the header.
    let is_fine = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let refused = "what stands before `@` holds a character that is not allowed in a header";
    is_fine.then(|| Secret::from(value)).ok_or_else(|| refused.to_owned())
}

/// Returns an address, or a path, without what may be secret in it.
fn without_user_and_query(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
            format!("{scheme}://{rest}")
        }
        None => address.to_owned(),
    }
}

/// Returns a text without the tags of XML or HTML in it, the last of which may be cut.
fn between_tags(text: &str) -> String {
    let mut parts = text.split('<');
    let first = parts.next().unwrap_or_default();
    let behind = parts.map(|part| part.split_once('>').map_or("", |(_, behind)| behind));
    std::iter::once(first).chain(behind).collect::<Vec<_>>().join(" ")
}

/// What a page answered.
#[derive(Default)]
struct Answer {
    status: u16,
    location: Option<String>,
    encoding: Option<String>,
    body: Vec<u8>,
    /// Whether the body is too long.
    is_beyond: bool,
    /// Told of it, so that no more is read.
    is_too_long: Rc<Notify>,
}

impl ResponseSink for Answer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        self.location = head.header("location").map(str::to_owned);
        let encoding = head.header("content-encoding").filter(|of| !of.is_empty());
        self.encoding = encoding.filter(|of| !of.eq_ignore_ascii_case("identity")).map(Into::into);
        if head.content_length.is_some_and(|length| length > PAGE_BYTES_MAX as u64) {
            self.give_up();
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        let room = PAGE_BYTES_MAX - self.body.len();
        if bytes.len() > room {
            self.give_up();
        }
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl Answer {
    fn give_up(&mut self) {
        self.is_beyond = true;
        self.is_too_long.notify_one();
    }

    /// Returns the page, or why this is none.
    fn text(self, without_secrets: &dyn Fn(&str) -> String) -> Result<String, String> {
        if let (300..400, Some(location)) = (self.status, &self.location) {
            let to = without_secrets(&without_user_and_query(location));
            let to: String = to.chars().take(REFUSAL_CHARS_MAX).collect();
            return Err(format!(
                "it answered {}, which leads to {to}; name that address",
                self.status
            ));
        }
        if self.status != 200 {
            // It is cut once no secret is in it, as a cut could leave a part of one.
            let said = without_secrets(&String::from_utf8_lossy(&self.body));
            let words = between_tags(&said).split_whitespace().collect::<Vec<_>>().join(" ");
            let words: String = words.chars().take(REFUSAL_CHARS_MAX).collect();
            let colon = if words.is_empty() { "" } else { ": " };
            let advice = match self.status {
                401 | 403 => "; a token, or USER:PASSWORD, goes before the host: http://TOKEN@HOST",
                _ => "",
            };
            return Err(format!("it answered {}{colon}{words}{advice}", self.status));
        }
        if let Some(encoding) = self.encoding {
            let encoding: String = encoding.chars().take(20).collect();
            return Err(format!("its answer is encoded as {encoding:?}, which was not asked for"));
        }
        String::from_utf8(self.body).map_err(|_| "its answer is not text".to_owned())
    }
}
