//! A connection that the script rules: answers that are late, wrong, broken off or absent.
//!
//! What HTTP allows goes through hyper. What it forbids is written by hand: the service then ends
//! hyper's connection by an error that says what to do with the socket.

use std::error::Error as StdError;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::http::response::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use plimsoll_model::Moment;
use s3s::Body;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::timer::Timer;
use super::{Misbehaviour, Ruling};
use crate::behaviour::{Act, ERROR_IN_SUCCESS_CODE, Verdict, WRONG_LENGTH_EXTRA};
use crate::heads::{Answered, HEAD_TIME_MAX, LimitedHeads};

/// What keeps an answer from being made.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// What answers requests as it should, and how an error looks in its language.
pub trait Serving: Clone + Send + Sync + 'static {
    /// Answers one request.
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Body>, BoxError>> + Send;

    /// Returns the whole answer that is the error of that status and code of S3.
    fn error(status: StatusCode, code: &str) -> Response<String>;

    /// Makes the head fit a content that is not the one it was made for.
    fn fit(_parts: &mut Parts, _content: &Bytes) {}
}

/// A connection on top of TCP.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {
    /// Returns what is below.
    fn tcp(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Socket for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// How a connection ends that HTTP would not end so.
#[derive(Debug, thiserror::Error)]
enum Breach {
    #[error("the connection is reset before any answer")]
    Reset { at: Moment },
    #[error("no answer is given")]
    Silence,
    #[error("the connection is closed inside an answer")]
    Cut { first_byte: Moment, done: Moment, head: Bytes, content: Bytes },
}

/// What the true answer is, or one that is told in its place.
struct Answer {
    parts: Parts,
    content: Bytes,
    /// Whether the request has no content in its answer, whatever its length says.
    headless: bool,
}

/// Serves one connection by the script.
pub async fn converse<S: Serving>(
    socket: impl Socket,
    service: S,
    misbehaviour: Arc<Misbehaviour>,
) -> io::Result<()> {
    let timer = Arc::new(Timer::new(misbehaviour.clock)?);
    let (socket, answering) = LimitedHeads::new(socket, HEAD_TIME_MAX);
    let service = service_fn(|request| {
        let ruling = Ruling::new(&misbehaviour);
        let timer = Arc::clone(&timer);
        Box::pin(answer(service.clone(), ruling, timer, request, answering.request()))
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    let ended = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    let mut socket = connection.into_parts().io.into_inner();
    match ended.as_ref().err().and_then(breach) {
        Some(breach) => breach.commit(socket, &timer).await,
        None => socket.shutdown().await,
    }
}

fn breach(error: &hyper::Error) -> Option<&Breach> {
    error.source().and_then(|source| source.downcast_ref())
}

impl Breach {
    async fn commit(&self, mut socket: impl Socket, timer: &Timer) -> io::Result<()> {
        match self {
            Self::Reset { at } => {
                timer.until(*at).await?;
                // Closing now discards and says RST instead of FIN.
                socket.tcp().set_zero_linger()
            }
            Self::Silence => {
                let mut nowhere = [0; 4096];
                while socket.read(&mut nowhere).await? > 0 {}
                Ok(())
            }
            Self::Cut { first_byte, done, head, content } => {
                timer.until(*first_byte).await?;
                socket.write_all(head).await?;
                socket.write_all(content).await?;
                socket.flush().await?;
                timer.until(*done).await?;
                socket.shutdown().await
            }
        }
    }
}

/// Answers one request as the script wants it.
async fn answer<S: Serving>(
    service: S,
    ruling: Ruling,
    timer: Arc<Timer>,
    mut request: Request<Incoming>,
    _counted: Answered,
) -> Result<Response<Body>, BoxError> {
    request.extensions_mut().insert(ruling.clone());
    let headless = request.method() == Method::HEAD;
    let response = service.answer(request).await?;
    // Nobody asked the script about what was refused before, or is no operation on objects.
    let Some(&verdict) = ruling.verdict.get() else { return Ok(response) };
    let (parts, mut body) = response.into_parts();
    let content = match headless {
        true => Bytes::new(),
        false => body.store_all_limited(usize::MAX).await?,
    };
    let answer = Answer { parts, content, headless };
    match verdict.act {
        Act::Serve | Act::Lie(_) => answer.send(verdict, timer).await,
        Act::Status { status, code } => {
            let status = StatusCode::from_u16(status)?;
            answer.replaced_by_error::<S>(status, code).send(verdict, timer).await
        }
        Act::ErrorInSuccess => {
            let answer = answer.replaced_by_error::<S>(StatusCode::OK, ERROR_IN_SUCCESS_CODE);
            answer.send(verdict, timer).await
        }
        Act::ResetBefore => Err(Breach::Reset { at: verdict.done }.into()),
        Act::Silence | Act::Io => Err(Breach::Silence.into()),
        Act::HalfBody => Err(answer.half(verdict).into()),
        Act::WrongLength => answer.lengthened::<S>(verdict.salt).send(verdict, timer).await,
    }
}

impl Answer {
    /// Returns an error in the place of the answer.
    fn replaced_by_error<S: Serving>(self, status: StatusCode, code: &str) -> Self {
        let (parts, text) = S::error(status, code).into_parts();
        let content = if self.headless { Bytes::new() } else { text.into() };
        Self { parts, content, ..self }
    }

    /// Sends the answer so that its first byte leaves at `first_byte` and its last at `done`.
    ///
    /// Only the very last byte of the content is held back until then, so that sending the rest of
    /// a large one takes no time of its own after `done`.
    async fn send(
        mut self,
        verdict: Verdict,
        timer: Arc<Timer>,
    ) -> Result<Response<Body>, BoxError> {
        let Some(last) = self.content.len().checked_sub(1) else {
            timer.until(verdict.done).await?;
            return Ok(Response::from_parts(self.parts, Body::empty()));
        };
        self.parts.headers.insert(CONTENT_LENGTH, self.content.len().into());
        let tail = self.content.split_off(last);
        timer.until(verdict.first_byte).await?;
        let head = stream::iter([Ok(Frame::data(self.content))]);
        let tail = stream::once(async move {
            timer.until(verdict.done).await?;
            Ok::<_, io::Error>(Frame::data(tail))
        });
        let body = Body::http_body_unsync(StreamBody::new(head.chain(tail)));
        Ok(Response::from_parts(self.parts, body))
    }

    /// Announces all of the content and sends half of it. An answer without content ends in the
    /// middle of its head.
    fn half(self, verdict: Verdict) -> Breach {
        let Verdict { first_byte, done, .. } = verdict;
        let mut head = self.head();
        if self.content.is_empty() {
            head.truncate(head.len() / 2);
        }
        let content = self.content.slice(..self.content.len() / 2);
        Breach::Cut { first_byte, done, head: head.into(), content }
    }

    /// Adds bytes that the object does not have; the head will say so.
    fn lengthened<S: Serving>(mut self, salt: u64) -> Self {
        let extra = 1 + salt % WRONG_LENGTH_EXTRA;
        let extra = salt.to_le_bytes().into_iter().cycle().take(extra as usize);
        self.content = self.content.iter().copied().chain(extra).collect();
        S::fit(&mut self.parts, &self.content);
        self
    }

    /// Writes the head by hand.
    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {}\r\n", self.parts.status);
        for (name, value) in &self.parts.headers {
            let framing = name == CONTENT_LENGTH || name == TRANSFER_ENCODING;
            if let (false, Ok(value)) = (framing, value.to_str()) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.content.len()));
        head
    }
}
