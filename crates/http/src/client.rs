//! The client of one worker: at most one kept connection per endpoint.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_model::{Moment, SharedClock};

use crate::connection::Connection;
use crate::dial::dial;
use crate::error::Failure;
use crate::exchange::{Carrier, Marks, Turn};
use crate::response::ResponseParser;
use crate::{Endpoint, Exchange, ExchangeError, Request, ResponseSink, TlsConfig};

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

/// How a client connects.
pub struct Options {
    /// How long making a connection may take, TLS handshake included.
    pub connect_timeout: Duration,
    /// TLS, or `None` for plain TCP.
    pub tls: Option<TlsConfig>,
    /// Whether connections are kept for the next exchange.
    pub keep_alive: bool,
}

/// What a client knows of one endpoint.
#[derive(Default)]
struct Slot {
    /// The idle connection, and since when it is idle.
    kept: Option<(Connection, Moment)>,
    /// What the host's name resolved to; empty before the first connection.
    addresses: Vec<SocketAddr>,
}

/// The HTTP client of one session. Does one exchange at a time.
///
/// Needs a tokio runtime with IO and time enabled.
pub struct Client {
    endpoints: Rc<[Endpoint]>,
    options: Rc<Options>,
    clock: SharedClock,
    slots: Box<[Slot]>,
    parser: ResponseParser,
    /// Holds the piece of a request's body that is being sent; grows with the first body.
    send_buffer: Vec<u8>,
}

impl Client {
    /// Returns a client that connects on first use.
    pub fn new(endpoints: Rc<[Endpoint]>, options: Rc<Options>, clock: SharedClock) -> Self {
        Self {
            slots: endpoints.iter().map(|_| Slot::default()).collect(),
            endpoints,
            options,
            clock,
            parser: ResponseParser::new(),
            send_buffer: Vec::new(),
        }
    }

    /// Sends `request` to an endpoint (an index into the list) once and hands the answer to `sink`.
    ///
    /// A kept connection that the server has closed meanwhile is replaced before anything is sent;
    /// there is no other second try. Dropping the future abandons the exchange and its connection;
    /// the client stays usable.
    pub async fn exchange(
        &mut self,
        endpoint: usize,
        request: Request<'_>,
        sink: &mut dyn ResponseSink,
    ) -> Result<Exchange, ExchangeError> {
        // The connection goes back into its slot only after a clean end.
        let mut connection = match self.usable_connection(endpoint).await {
            Ok(connection) => connection,
            Err(failure) => return Err(self.error(failure, Marks::default(), 0)),
        };
        self.parser.start(request.method_is_head);
        let mut carrier = Carrier::new(
            &*self.clock,
            &mut connection,
            &mut self.parser,
            &mut self.send_buffer,
            request,
            sink,
        );
        let outcome = loop {
            let turn =
                std::future::poll_fn(|cx| with_read_buffer(|buffer| carrier.poll(cx, buffer)));
            match turn.await {
                Ok(Turn::Ended(end)) => break Ok(end),
                Ok(Turn::Over) => tokio::task::yield_now().await,
                Err(failure) => break Err(failure),
            }
        };
        let marks = carrier.marks();
        match outcome {
            Ok(end) => {
                if end.reusable && self.options.keep_alive {
                    self.slots[endpoint].kept = Some((connection, end.at));
                }
                Ok(Exchange {
                    status: self.parser.status(),
                    first_byte: marks.first_byte.unwrap_or(end.at),
                    first_body_byte: marks.first_body_byte,
                    last_byte_sent: marks.last_byte_sent,
                    end: end.at,
                    body_bytes: self.parser.body_bytes(),
                })
            }
            Err(mut failure) => {
                failure.message.insert_str(0, &self.endpoints[endpoint].to_string());
                let body_bytes = self.parser.body_bytes();
                Err(self.error(failure, marks, body_bytes))
            }
        }
    }

    async fn usable_connection(&mut self, endpoint: usize) -> Result<Connection, Failure> {
        let slot = &mut self.slots[endpoint];
        if let Some((mut kept, idle_since)) = slot.kept.take() {
            if self.clock.now().since(idle_since) >= IDLE_LOOK {
                // The thread may have done other things all the while, and the runtime has not
                // looked.
                tokio::task::yield_now().await;
            }
            if !kept.is_stale().await {
                return Ok(kept);
            }
        }
        dial(&self.endpoints[endpoint], &self.options, &mut slot.addresses).await
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
