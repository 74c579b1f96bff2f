//! The server's side of gRPC: calls as messages of bytes, answered with messages and a status.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use hyper::http::{HeaderMap, HeaderValue, Response};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use prost::Message;
use tokio::net::TcpStream;

/// A flag byte and four of length stand before each message.
const PREFIX_BYTES: usize = 5;

/// What may not stand in a status's words as it is.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: u32,
    pub(crate) words: String,
}

impl Status {
    /// What SeaweedFS calls most failures.
    pub(crate) const UNKNOWN: u32 = 2;
    pub(crate) const INVALID_ARGUMENT: u32 = 3;
    pub(crate) const NOT_FOUND: u32 = 5;
    pub(crate) const PERMISSION_DENIED: u32 = 7;
    pub(crate) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(crate) const FAILED_PRECONDITION: u32 = 9;
    pub(crate) const UNIMPLEMENTED: u32 = 12;

    pub(crate) fn new(code: u32, words: impl Into<String>) -> Self {
        Self { code, words: words.into() }
    }
}

/// A call that is to be answered.
pub(crate) struct Call {
    pub(crate) path: String,
    body: RecvStream,
    respond: SendResponse<Bytes>,
    sending: Option<SendStream<Bytes>>,
    buffer: BytesMut,
}

impl Call {
    /// Returns the next message; `None` after the last one, and of what is none.
    pub(crate) async fn next<M: Message + Default>(&mut self) -> Option<M> {
        loop {
            if let Some((prefix, _)) = self.buffer.split_first_chunk::<PREFIX_BYTES>() {
                let [_, len @ ..] = *prefix;
                let len = u32::from_be_bytes(len) as usize;
                if self.buffer.len() >= PREFIX_BYTES + len {
                    self.buffer.advance(PREFIX_BYTES);
                    return M::decode(self.buffer.split_to(len)).ok();
                }
            }
            let piece = self.body.data().await?.ok()?;
            self.body.flow_control().release_capacity(piece.len()).ok()?;
            self.buffer.extend_from_slice(&piece);
        }
    }

    /// Sends a message; `Err` where nobody is there any more.
    pub(crate) fn send(&mut self, message: &impl Message) -> Result<(), h2::Error> {
        if self.sending.is_none() {
            self.sending = Some(self.respond.send_response(head(), false)?);
        }
        let len = message.encoded_len();
        let mut framed = BytesMut::with_capacity(PREFIX_BYTES + len);
        framed.put_u8(0);
        framed.put_u32(len as u32);
        message.encode(&mut framed).expect("memory takes everything");
        let sending = self.sending.as_mut().expect("it was begun above");
        sending.send_data(framed.freeze(), false)
    }

    /// Ends the call.
    pub(crate) fn end(mut self, result: Result<(), Status>) {
        let status = result.err().unwrap_or(Status { code: 0, words: String::new() });
        let words = utf8_percent_encode(&status.words, ESCAPED).to_string();
        let mut says = HeaderMap::new();
        says.insert("grpc-status", status.code.into());
        let words = HeaderValue::from_str(&words).expect("what is no word is escaped");
        says.insert("grpc-message", words);
        // Who has gone away is told nothing.
        let _told = match self.sending.as_mut() {
            Some(sending) => sending.send_trailers(says),
            None => {
                let mut response = head();
                response.headers_mut().extend(says);
                self.respond.send_response(response, true).map(drop)
            }
        };
    }

    /// Breaks the call off without a status.
    pub(crate) fn reset(mut self) {
        self.respond.send_reset(h2::Reason::INTERNAL_ERROR);
    }
}

fn head() -> Response<()> {
    let mut response = Response::new(());
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", grpc);
    response
}

/// Serves the calls of one connection, each by `serve`.
pub(crate) async fn converse<F: Future<Output = ()>>(
    socket: TcpStream,
    serve: impl Fn(Call) -> F,
) -> io::Result<()> {
    let mut connection = h2::server::handshake(socket).await.map_err(io::Error::other)?;
    let mut calls = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(()) = calls.next() => {}
            called = connection.accept() => match called {
                None => return Ok(()),
                Some(called) => {
                    let (request, respond) = called.map_err(io::Error::other)?;
                    let path = request.uri().path().to_owned();
                    let (body, buffer) = (request.into_body(), BytesMut::new());
                    calls.push(serve(Call { path, body, respond, sending: None, buffer }));
                }
            },
        }
    }
}
