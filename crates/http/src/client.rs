//! The client of one worker: at most one kept connection per endpoint.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{Moment, SharedClock};

use crate::channel::Channel;
use crate::connection::{Connection, Dialled};
use crate::dial::dial;
use crate::error::Failure;
use crate::exchange::{Carrier, Marks, Turn};
use crate::http2::Http2Connection;
use crate::proxy::{PROXY_WANTS_USER, Proxies, ProxyServer};
use crate::response::ResponseParser;
use crate::stall::Stall;
use crate::transport::in_words;
use crate::{
    AllowedHosts, Endpoint, Exchange, ExchangeError, ExchangeErrorKind, Request, ResponseSink,
    TlsConfig, Transport, seen,
};

/// How much one read takes at most; measured with 1 MiB bodies on 32 connections: 64 KiB costs
/// more, 256 KiB not less.
const READ_BYTES_MAX: usize = 128 << 10;

/// After this long without use, the runtime is made to look at a connection before it is used.
const IDLE_LOOK: Duration = Duration::from_secs(1);

thread_local! {
    /// What a thread's clients read into. Nothing stays in it between two polls: bodies go to the
    /// sink at once, and a part of a head is kept by the parser. One for all stays in the cache and
    /// costs no memory for each worker.
    static READ_BUFFER: Cell<Box<[u8]>> = Cell::default();
}

/// Lends the thread's read buffer to `poll`; a call within a call gets one of its own.
fn with_read_buffer<T>(poll: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = READ_BUFFER.take();
    if buffer.is_empty() {
        buffer = vec![0; READ_BYTES_MAX].into_boxed_slice();
    }
    let result = poll(&mut buffer);
    READ_BUFFER.set(buffer);
    result
}

/// How a client connects, and what it speaks then.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long making a connection may take, the proxy's part and the TLS handshake included.
    pub connect_timeout: Duration,
    /// TLS, or `None` for plain TCP.
    pub tls: Option<TlsConfig>,
    /// How long an exchange may go without moving a byte once its connection stands; `None` leaves
    /// it to the caller.
    pub stall_timeout: Option<Duration>,
    /// Whether it may take 20 times as long in all, however many bytes it moves.
    pub bounds_whole: bool,
    /// Whether connections are kept for the next exchange.
    pub keep_alive: bool,
    /// The version of HTTP; there is no falling back to another one.
    pub version: HttpVersion,
    /// The proxies requests go through, `None` for none.
    pub proxies: Option<Proxies>,
    /// What carries its connections.
    pub transport: Transport,
    /// Which hosts it may connect to.
    pub allowed: AllowedHosts,
}

impl Options {
    /// Begins to watch an exchange, where one is to be watched.
    fn stall(&self) -> Option<Stall> {
        self.stall_timeout.map(|limit| Stall::new(limit, self.bounds_whole))
    }
}

impl Default for Options {
    /// Plain HTTP/1.1 on kept connections of sockets, made within ten seconds and without a proxy.
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            tls: None,
            stall_timeout: None,
            bounds_whole: true,
            keep_alive: true,
            version: HttpVersion::One,
            proxies: None,
            transport: Transport::Sockets,
            allowed: AllowedHosts::ANY,
        }
    }
}

impl Options {
    /// Tells whether a proxy is to pass bytes on without looking at them.
    pub(crate) fn tunnels(&self) -> bool {
        self.tls.is_some() || self.version == HttpVersion::Two
    }
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    One,
    /// HTTP/2: agreed upon in the TLS handshake, without TLS taken for granted.
    Two,
}

/// What a client knows of one endpoint.
#[derive(Default)]
struct Slot {
    /// The proxy on the way to it.
    via: Option<Arc<ProxyServer>>,
    /// The idle connection, and since when it is idle.
    kept: Option<(Channel, Moment)>,
    /// The same of HTTP/2.
    kept_two: Option<(Http2Connection, Moment)>,
    /// What the name of the host, or of the proxy, resolved to; empty before the first connection.
    addresses: Vec<SocketAddr>,
}

/// The HTTP client of one session. Does one exchange at a time.
///
/// Needs a tokio runtime with IO and time enabled.
pub struct Client {
    endpoints: Rc<[Endpoint]>,
    options: Rc<Options>,
    clock: SharedClock,
    /// Of the endpoints that were used: there may be thousands of others.
    slots: BTreeMap<usize, Box<Slot>>,
    parser: ResponseParser,
    /// Holds the piece of a request's body that is being sent; grows with the first body.
    send_buffer: Vec<u8>,
}

impl Client {
    /// Returns a client that connects on first use.
    pub fn new(endpoints: Rc<[Endpoint]>, options: Rc<Options>, clock: SharedClock) -> Self {
        Self {
            slots: BTreeMap::new(),
            endpoints,
            options,
            clock,
            parser: ResponseParser::new(),
            send_buffer: Vec::new(),
        }
    }

    /// Sends `request` to an endpoint (an index into the list) once and hands the answer to `sink`.
    ///
    /// The head is that of HTTP/1.1 whatever version is spoken. A kept connection that the server
    /// has closed meanwhile is replaced before anything is sent; there is no other second try.
    /// Dropping the future abandons the exchange and its connection; the client stays usable.
    pub async fn exchange(
        &mut self,
        endpoint: usize,
        mut request: Request<'_>,
        sink: &mut dyn ResponseSink,
    ) -> Result<Exchange, ExchangeError> {
        self.slots.entry(endpoint).or_insert_with(|| {
            let proxies = self.options.proxies.as_ref();
            let tls = self.options.tls.is_some();
            let via = proxies.and_then(|proxies| proxies.route(&self.endpoints[endpoint], tls));
            Box::new(Slot { via, ..Slot::default() })
        });
        if self.options.version == HttpVersion::Two {
            // Kept apart on the heap, so that exchanges of HTTP/1.1 do not carry its state along.
            return Box::pin(self.exchange_two(endpoint, request, sink)).await;
        }
        let proxied_head = self.proxied_head(endpoint, request.head);
        let request = Request {
            head: proxied_head.as_deref().unwrap_or(request.head),
            method_is_head: request.method_is_head,
            body: request.body.reborrow(),
        };
        // The connection goes back into its slot only after a clean end.
        let mut channel = match self.usable_channel(endpoint).await {
            Ok(channel) => channel,
            Err(failure) => return Err(self.error(failure, Marks::default(), 0)),
        };
        self.parser.start(request.method_is_head);
        let mut carrier = Carrier::new(
            &*self.clock,
            &mut channel,
            &mut self.parser,
            &mut self.send_buffer,
            request,
            sink,
        );
        let mut stall = self.options.stall();
        let outcome = loop {
            let turn = std::future::poll_fn(|cx| {
                let polled = with_read_buffer(|buffer| carrier.poll(cx, buffer));
                match &mut stall {
                    Some(stall) if polled.is_pending() => stall
                        .poll(cx, carrier.bytes_moved())
                        .map(|overdue| Err(carrier.overdue(&overdue))),
                    _ => polled,
                }
            });
            match turn.await {
                Ok(Turn::Ended(end)) => break Ok(end),
                Ok(Turn::Over) => tokio::task::yield_now().await,
                Err(failure) => break Err(failure),
            }
        };
        let marks = carrier.marks();
        let body_bytes = self.parser.body_bytes();
        match outcome {
            Ok(end) => {
                seen::look(channel.socket(), end.at);
                if end.reusable && self.options.keep_alive {
                    self.slot(endpoint).kept = Some((channel, end.at));
                }
                let status = self.parser.status();
                if proxied_head.is_some() && status == PROXY_WANTS_USER {
                    return Err(self.proxy_refused(endpoint, marks, body_bytes));
                }
                Ok(marks.exchange(status, end, body_bytes))
            }
            Err(failure) => Err(self.broken(endpoint, failure, marks, body_bytes)),
        }
    }

    async fn exchange_two(
        &mut self,
        endpoint: usize,
        mut request: Request<'_>,
        sink: &mut dyn ResponseSink,
    ) -> Result<Exchange, ExchangeError> {
        let mut connection = match self.usable_two(endpoint).await {
            Ok(connection) => connection,
            Err(failure) => return Err(self.error(failure, Marks::default(), 0)),
        };
        let tls = self.options.tls.is_some();
        let (head, body) = (request.head, request.body.reborrow());
        let request = Request { head, method_is_head: request.method_is_head, body };
        let mut carrier = match connection.begin(request, tls, sink) {
            Ok(carrier) => carrier,
            Err(failure) => return Err(self.broken(endpoint, failure, Marks::default(), 0)),
        };
        let mut stall = self.options.stall();
        let outcome = loop {
            let turn = std::future::poll_fn(|cx| {
                let polled = carrier.poll(cx);
                match &mut stall {
                    Some(stall) if polled.is_pending() => stall
                        .poll(cx, carrier.bytes_moved())
                        .map(|overdue| Err(carrier.overdue(&overdue))),
                    _ => polled,
                }
            });
            match turn.await {
                Ok(Turn::Ended(end)) => break Ok(end),
                Ok(Turn::Over) => tokio::task::yield_now().await,
                Err(failure) => break Err(failure),
            }
        };
        let (marks, status, body_bytes) = (carrier.marks(), carrier.status(), carrier.body_bytes());
        let reusable = match &outcome {
            Ok(end) => end.reusable,
            Err(_) => carrier.lost_only_its_stream(),
        };
        drop(carrier);
        if reusable && self.options.keep_alive {
            let since = outcome.as_ref().map_or_else(|_| self.clock.now(), |end| end.at);
            self.slot(endpoint).kept_two = Some((connection, since));
        }
        match outcome {
            Ok(end) => Ok(marks.exchange(status, end, body_bytes)),
            Err(failure) => Err(self.broken(endpoint, failure, marks, body_bytes)),
        }
    }

    fn slot(&mut self, endpoint: usize) -> &mut Slot {
        self.slots.get_mut(&endpoint).expect("the exchange has made it")
    }

    /// Returns a request's head as the proxy on its way wants it; `None` if there is none, or one
    /// that does not look at requests.
    fn proxied_head(&self, endpoint: usize, head: &[u8]) -> Option<Vec<u8>> {
        let proxy =
            self.slots[&endpoint].via.as_ref().filter(|proxy| proxy.is_asked(&self.options))?;
        Some(proxy.rewrite(head, &self.endpoints[endpoint].authority(false)))
    }

    async fn usable_two(&mut self, endpoint: usize) -> Result<Http2Connection, Failure> {
        if let Some((mut kept, idle_since)) = self.slot(endpoint).kept_two.take() {
            if self.clock.now().since(idle_since) >= IDLE_LOOK {
                tokio::task::yield_now().await;
            }
            if !kept.is_stale().await {
                return Ok(kept);
            }
        }
        let connection = Connection(self.dial(endpoint).await?);
        let opened = Http2Connection::open(connection, self.clock.clone()).await;
        opened.map_err(|mut failure| {
            failure.message.insert_str(0, &self.endpoints[endpoint].to_string());
            failure
        })
    }

    async fn dial(&mut self, endpoint: usize) -> Result<Dialled, Failure> {
        let slot = self.slots.get_mut(&endpoint).expect("the exchange has made it");
        let Slot { via, addresses, .. } = &mut **slot;
        dial(&self.endpoints[endpoint], via.as_deref(), &self.options, addresses).await
    }

    async fn usable_channel(&mut self, endpoint: usize) -> Result<Channel, Failure> {
        if let Some((mut kept, idle_since)) = self.slot(endpoint).kept.take() {
            if self.clock.now().since(idle_since) >= IDLE_LOOK {
                // The thread may have done other things all the while, and the runtime has not
                // looked.
                tokio::task::yield_now().await;
            }
            if !kept.is_stale().await {
                return Ok(kept);
            }
        }
        let dialled = self.dial(endpoint).await?;
        let transport = match &self.slots[&endpoint].via {
            Some(_) => Transport::Sockets,
            None => self.options.transport,
        };
        Channel::new(dialled, transport).map_err(|error| {
            let (endpoint, why) = (&self.endpoints[endpoint], in_words(&error));
            let message = format!("cannot connect to {endpoint} over io_uring: {why}");
            Failure::new(ExchangeErrorKind::Connect, message)
        })
    }

    /// Returns what the failure of an exchange under way comes to, naming whom it was with.
    fn broken(
        &self,
        endpoint: usize,
        mut failure: Failure,
        marks: Marks,
        body_bytes: u64,
    ) -> ExchangeError {
        let with = match &self.slots[&endpoint].via {
            Some(proxy) => format!("{} through {proxy}", self.endpoints[endpoint]),
            None => self.endpoints[endpoint].to_string(),
        };
        failure.message.insert_str(0, &with);
        self.error(failure, marks, body_bytes)
    }

    fn proxy_refused(&self, endpoint: usize, marks: Marks, body_bytes: u64) -> ExchangeError {
        let proxy = self.slots[&endpoint].via.as_ref().expect("the request went through it");
        self.error(proxy.wants_user(&self.endpoints[endpoint]), marks, body_bytes)
    }

    fn error(&self, failure: Failure, marks: Marks, body_bytes: u64) -> ExchangeError {
        ExchangeError {
            kind: failure.kind,
            message: failure.message,
            first_byte: marks.first_byte,
            last_byte_sent: marks.last_byte_sent,
            body_bytes,
            end: self.clock.now(),
        }
    }
}
