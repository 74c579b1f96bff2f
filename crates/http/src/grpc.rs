//! gRPC over HTTP/2: one connection that all calls of a thread share, messages as bytes.
//!
//! Wire format: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>. Messages are not
//! compressed; proxies are not used. What the bytes mean is the caller's.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::client::{Builder, SendRequest};
use h2::{Ping, PingPong, RecvStream, SendStream};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};

use crate::connection::Connection;
use crate::dial::dial;
use crate::tls::identity_refusal;
use crate::{Endpoint, ExchangeErrorKind, HttpVersion, Options};

/// A flag byte and four of length stand before each message.
const PREFIX_BYTES: usize = 5;

/// The longest message that is taken, as gRPC's libraries limit it.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// What may be wrong with a connection that breaks before its first answer.
const HINT_PLAIN: &str = "; does that port speak gRPC, and without TLS?";
const HINT_TLS: &str = "; does it want a certificate of ours, or another one?";

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The statuses of gRPC that callers tell apart.
pub mod status {
    /// What is asked for cannot be.
    pub const INVALID_ARGUMENT: u32 = 3;
    /// The call took too long.
    pub const DEADLINE_EXCEEDED: u32 = 4;
    /// There is no such thing.
    pub const NOT_FOUND: u32 = 5;
    /// The caller may not do that.
    pub const PERMISSION_DENIED: u32 = 7;
    /// Something is used up for the time being.
    pub const RESOURCE_EXHAUSTED: u32 = 8;
    /// Something is not as it has to be for that.
    pub const FAILED_PRECONDITION: u32 = 9;
    /// The server has no such call.
    pub const UNIMPLEMENTED: u32 = 12;
    /// The server cannot serve for the time being.
    pub const UNAVAILABLE: u32 = 14;
    /// Nobody knows the caller.
    pub const UNAUTHENTICATED: u32 = 16;
}

/// Why a call did not come to an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrpcError {
    /// No connection was made, or it broke.
    Transport {
        /// How.
        kind: ExchangeErrorKind,
        /// One clear lower-case sentence that names the address.
        message: String,
    },
    /// The server says that the call failed.
    Status {
        /// The number of gRPC's status.
        code: u32,
        /// The server's words.
        message: String,
    },
}

impl fmt::Display for GrpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport { message, .. } => f.write_str(message),
            Self::Status { code, message } if message.is_empty() => write!(f, "status {code}"),
            Self::Status { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for GrpcError {}

impl GrpcError {
    fn protocol(of: &Endpoint, why: impl fmt::Display) -> Self {
        let message = format!("{of} answered {why}");
        Self::Transport { kind: ExchangeErrorKind::Protocol, message }
    }
}

/// An open connection to a gRPC server; clones share it.
///
/// A task of the thread's tokio runtime keeps it going.
#[derive(Clone)]
pub struct GrpcChannel {
    requests: SendRequest<Bytes>,
    endpoint: Arc<Endpoint>,
    scheme: Scheme,
    authority: Authority,
    /// Whether the server has answered a call: then it is what it was taken for.
    has_answered: Arc<AtomicBool>,
    pings: Arc<Mutex<PingPong>>,
    /// What broke the connection.
    broken: Arc<Mutex<Option<(ExchangeErrorKind, String)>>>,
}

impl fmt::Debug for GrpcChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrpcChannel({})", self.endpoint)
    }
}

impl GrpcChannel {
    /// Connects and greets the server, within the time that `options` give; their proxies and
    /// version of HTTP do not matter.
    pub async fn open(endpoint: &Endpoint, options: &Options) -> Result<Self, GrpcError> {
        let options = Options { version: HttpVersion::Two, proxies: None, ..options.clone() };
        let transport = |failure: crate::error::Failure| GrpcError::Transport {
            kind: failure.kind,
            message: failure.message,
        };
        let opened = dial(endpoint, None, &options, &mut Vec::new()).await.map_err(transport)?;
        let reset = |error: h2::Error| {
            let message = format!("{endpoint} closed the connection: {error}");
            GrpcError::Transport { kind: ExchangeErrorKind::Reset, message }
        };
        let mut builder = Builder::new();
        builder.enable_push(false).max_concurrent_streams(0);
        let (requests, mut frames) = builder.handshake(Connection(opened)).await.map_err(reset)?;
        let pings = frames.ping_pong().expect("it is taken once");
        let tls = options.tls.is_some();
        let authority = Authority::try_from(endpoint.authority(tls))
            .map_err(|_| GrpcError::protocol(endpoint, "under an invalid name"))?;
        let broken = Arc::new(Mutex::default());
        let (of, why) = (endpoint.clone(), Arc::clone(&broken));
        #[expect(clippy::disallowed_methods, reason = "no caller could drive it alone")]
        tokio::spawn(async move {
            let ended = match frames.await {
                Ok(()) => (ExchangeErrorKind::Reset, format!("{of} closed the connection")),
                Err(error) => meaning(&error, &of, "the connection"),
            };
            *why.lock().expect("nobody panics while holding it") = Some(ended);
        });
        let scheme = if tls { Scheme::HTTPS } else { Scheme::HTTP };
        let (endpoint, has_answered) = (Arc::new(endpoint.clone()), Arc::default());
        let pings = Arc::new(Mutex::new(pings));
        Ok(Self { requests, endpoint, scheme, authority, has_answered, pings, broken })
    }

    /// Tells whether the connection is known to be broken.
    pub fn is_broken(&self) -> bool {
        self.broken.lock().expect("nobody panics while holding it").is_some()
    }

    /// Asks the server for a sign of life and waits for it, without a limit. One task at a
    /// time may.
    pub async fn ping(&self) -> Result<(), GrpcError> {
        let pings = || self.pings.lock().expect("nobody panics while holding it");
        let sent = pings().send_ping(Ping::opaque());
        sent.map_err(|error| self.lost(&error))?;
        let answered = std::future::poll_fn(|cx| pings().poll_pong(cx)).await;
        answered.map(drop).map_err(|error| self.lost(&error))
    }

    /// Makes a call with one message, which is answered with one. `path` is that of the method,
    /// such as `/package.Service/Method`.
    pub async fn call(&self, path: &'static str, message: Bytes) -> Result<Bytes, GrpcError> {
        let (mut stream, answer) = self.begin(path).await?;
        stream.send_data(framed(message), true).map_err(|error| self.lost(&error))?;
        let answer = answer.await.map_err(|error| self.lost(&error))?;
        let mut stream = self.stream_of(answer, None)?;
        let message = stream.next().await?;
        let Some(message) = message else {
            return Err(GrpcError::protocol(&self.endpoint, "success without a message"));
        };
        match stream.next().await? {
            None => Ok(message),
            Some(_) => Err(GrpcError::protocol(&self.endpoint, "more than one message")),
        }
    }

    /// Makes a call on which messages go both ways; `first` is the first that is sent.
    pub async fn open_stream(
        &self,
        path: &'static str,
        first: Bytes,
    ) -> Result<GrpcStream, GrpcError> {
        let (mut stream, answer) = self.begin(path).await?;
        stream.send_data(framed(first), false).map_err(|error| self.lost(&error))?;
        let answer = answer.await.map_err(|error| self.lost(&error))?;
        self.stream_of(answer, Some(stream))
    }

    async fn begin(
        &self,
        path: &'static str,
    ) -> Result<(SendStream<Bytes>, h2::client::ResponseFuture), GrpcError> {
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(self.scheme.clone());
        uri.authority = Some(self.authority.clone());
        uri.path_and_query = Some(PathAndQuery::from_static(path));
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_parts(uri).expect("it has all three parts");
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        let ready = self.requests.clone().ready().await;
        let mut requests = ready.map_err(|error| self.lost(&error))?;
        let begun = requests.send_request(request, false);
        let (answer, stream) = begun.map_err(|error| self.lost(&error))?;
        Ok((stream, answer))
    }

    fn stream_of(
        &self,
        answer: Response<RecvStream>,
        sending: Option<SendStream<Bytes>>,
    ) -> Result<GrpcStream, GrpcError> {
        self.has_answered.store(true, Ordering::Relaxed);
        let (head, receiving) = answer.into_parts();
        // An error that is known at once comes without messages, its status in the head.
        if let Some(error) = failure_in(&head.headers) {
            return Err(error);
        }
        if head.status != StatusCode::OK {
            let why = format!("HTTP status {}: it does not speak gRPC", head.status.as_u16());
            return Err(GrpcError::protocol(&self.endpoint, why));
        }
        Ok(GrpcStream { channel: self.clone(), sending, receiving, buffer: BytesMut::new() })
    }

    fn lost(&self, error: &h2::Error) -> GrpcError {
        let broken = self.broken.lock().expect("nobody panics while holding it").clone();
        let (kind, mut message) =
            broken.unwrap_or_else(|| meaning(error, &self.endpoint, "the call"));
        if kind == ExchangeErrorKind::Reset && !self.has_answered.load(Ordering::Relaxed) {
            let hint = if self.scheme == Scheme::HTTPS { HINT_TLS } else { HINT_PLAIN };
            message.push_str(hint);
        }
        GrpcError::Transport { kind, message }
    }
}

/// Returns what an error means that broke a call, or the connection.
fn meaning(error: &h2::Error, of: &Endpoint, what: &str) -> (ExchangeErrorKind, String) {
    if let Some(why) = error.get_io().and_then(identity_refusal) {
        return (ExchangeErrorKind::Tls, format!("{of} ended TLS: {why}"));
    }
    let is_reset = error.is_remote() && error.is_reset();
    let kind = match error.is_io() || error.is_go_away() || is_reset {
        true => ExchangeErrorKind::Reset,
        false => ExchangeErrorKind::Protocol,
    };
    (kind, format!("{what} to {of} broke: {error}"))
}

/// A call on which messages come, and go.
#[derive(Debug)]
pub struct GrpcStream {
    channel: GrpcChannel,
    sending: Option<SendStream<Bytes>>,
    receiving: RecvStream,
    /// What came of a message that is not whole.
    buffer: BytesMut,
}

impl GrpcStream {
    /// Sends a message.
    pub fn send(&mut self, message: Bytes) -> Result<(), GrpcError> {
        let Some(sending) = &mut self.sending else {
            return Err(GrpcError::protocol(&self.channel.endpoint, "a call of one message"));
        };
        sending.send_data(framed(message), false).map_err(|error| self.channel.lost(&error))
    }

    /// Returns the next message; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Bytes>, GrpcError> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(message));
            }
            match self.receiving.data().await {
                Some(Ok(bytes)) => {
                    let taken = self.receiving.flow_control().release_capacity(bytes.len());
                    taken.map_err(|error| self.channel.lost(&error))?;
                    self.buffer.extend_from_slice(&bytes);
                }
                Some(Err(error)) => return Err(self.channel.lost(&error)),
                None => break,
            }
        }
        let trailers = self.receiving.trailers().await;
        let trailers = trailers.map_err(|error| self.channel.lost(&error))?;
        let says = trailers.as_ref().filter(|trailers| trailers.contains_key(STATUS));
        let Some(says) = says else {
            return Err(GrpcError::protocol(&self.channel.endpoint, "without a status"));
        };
        match failure_in(says) {
            Some(error) => Err(error),
            None if self.buffer.is_empty() => Ok(None),
            None => Err(GrpcError::protocol(&self.channel.endpoint, "half a message")),
        }
    }

    fn take_message(&mut self) -> Result<Option<Bytes>, GrpcError> {
        let Some((prefix, _)) = self.buffer.split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let [is_compressed, len @ ..] = *prefix;
        let len = u32::from_be_bytes(len) as usize;
        let refused = match (is_compressed, len) {
            (1.., _) => "a compressed message, which was not asked for",
            (0, len) if len > MESSAGE_BYTES_MAX => "a message of more than 4 MiB",
            _ if self.buffer.len() < PREFIX_BYTES + len => return Ok(None),
            _ => {
                self.buffer.advance(PREFIX_BYTES);
                return Ok(Some(self.buffer.split_to(len).freeze()));
            }
        };
        Err(GrpcError::protocol(&self.channel.endpoint, refused))
    }
}

fn framed(message: Bytes) -> Bytes {
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.put(message);
    framed.freeze()
}

/// Returns the failure that a head or its trailers tell of.
fn failure_in(headers: &HeaderMap) -> Option<GrpcError> {
    let code = headers.get(STATUS)?.to_str().ok().and_then(|code| code.parse().ok());
    let code = code.unwrap_or(2);
    let message = headers.get(MESSAGE).map_or(&b""[..], HeaderValue::as_bytes);
    let message = percent_encoding::percent_decode(message).decode_utf8_lossy().into_owned();
    (code != 0).then_some(GrpcError::Status { code, message })
}
