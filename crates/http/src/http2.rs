//! HTTP/2 on our own transport: one connection for each session and one stream on it at a time.
//!
//! No task of its own keeps the connection going: it is polled along with the exchange, so that the
//! moments are those of the reads and writes themselves. h2 frames, compresses heads and counts
//! windows; the wire below it lets one read pass at a time and notes when.

mod wire;

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use plimsoll_model::SharedClock;

use self::wire::{FirstWords, Piece, Watch, Wire};
use crate::connection::Connection;
use crate::error::Failure;
use crate::exchange::{End, Marks, TURN_BYTES_MAX, Turn};
use crate::response::{HEAD_BYTES_MAX, HEADERS_COUNT_MAX, ResponseHead, ResponseSink};
use crate::stall::Overdue;
use crate::{Body, ExchangeErrorKind, Request, response};

/// How much of a body is made and queued at a time, as with HTTP/1.1.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// How often an idle connection is read from before a request. One from which more comes is left.
const UNASKED_READS_MAX: u32 = 64;

/// How much of an answer's body may be on its way: enough for 10 Gbit/s over a round trip of 3 ms.
const WINDOW_BYTES: u32 = 4 << 20;

/// The longest frame that is taken. The first byte of a body is seen when its frame is whole; but 1
/// MiB in frames of 16 KiB was measured to take three to four times the CPU time of HTTP/1.1, in
/// these twice.
const FRAME_BYTES_MAX: u32 = 64 << 10;

/// Fields that mean something for one connection of HTTP/1.1 only (RFC 9113, section 8.2.2); Host
/// becomes `:authority`.
const FIELDS_LEFT_OUT: [&str; 7] = [
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "transfer-encoding",
    "upgrade",
];

/// An open connection that speaks HTTP/2.
pub(crate) struct Http2Connection {
    requests: SendRequest<Piece>,
    frames: h2::client::Connection<Wire, Piece>,
    watch: Rc<Watch>,
}

impl Http2Connection {
    /// Greets the server. Its answer is not waited for. A failure's message continues after the
    /// address.
    pub(crate) async fn open(connection: Connection, clock: SharedClock) -> Result<Self, Failure> {
        let watch = Rc::new(Watch::new(clock));
        let wire = Wire::new(connection, watch.clone());
        let (requests, frames) = Builder::new()
            .enable_push(false)
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES_MAX)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .handshake(wire)
            .await
            .map_err(|error| {
                let message = format!(" closed the connection: {}", text_of(&error));
                Failure::new(ExchangeErrorKind::Reset, message)
            })?;
        Ok(Self { requests, frames, watch })
    }

    /// Tells whether an idle connection can no longer be used, having read what the server sent
    /// meanwhile.
    pub(crate) async fn is_stale(&mut self) -> bool {
        let look = std::future::poll_fn(|cx| {
            let closed = self.poll_frames_out(cx);
            let refuses = matches!(self.requests.poll_ready(cx), Poll::Ready(Err(_)));
            Poll::Ready(closed || refuses)
        });
        tokio::task::coop::unconstrained(look).await
    }

    /// Reads and writes frames until the socket has no more, and tells whether the connection
    /// ended, or the server sends without end what nobody asked for.
    fn poll_frames_out(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..UNASKED_READS_MAX {
            self.watch.allow_read();
            if Pin::new(&mut self.frames).poll(cx).is_ready() {
                return true;
            }
            if !self.watch.is_holding() {
                return false;
            }
        }
        true
    }

    /// Opens a stream for a request. A failure's message continues after the address.
    pub(crate) fn begin<'a>(
        &'a mut self,
        request: Request<'a>,
        tls: bool,
        sink: &'a mut dyn ResponseSink,
    ) -> Result<Http2Carrier<'a>, Failure> {
        let head = head_of(request.head, tls).ok_or_else(|| {
            let message = " was not asked: the request cannot be put into HTTP/2";
            Failure::new(ExchangeErrorKind::Protocol, message)
        })?;
        let body_len = match &request.body {
            Body::Empty => 0,
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::Source { len, .. } => *len,
        };
        self.watch.start(body_len);
        let begun = self.requests.send_request(head, body_len == 0);
        let (answer, stream) = begun.map_err(|error| {
            let message = format!(" takes no request: {}", text_of(&error));
            Failure::new(ExchangeErrorKind::Reset, message)
        })?;
        Ok(Http2Carrier {
            connection: self,
            sink,
            method_is_head: request.method_is_head,
            body: request.body,
            body_len,
            offset: 0,
            stream,
            answer: Answer::Awaited(answer),
            marks: Marks::default(),
            status: 0,
            body_bytes: 0,
            body_bytes_stated: None,
            lost_only_its_stream: false,
        })
    }
}

/// How far an answer came.
enum Answer {
    Awaited(ResponseFuture),
    Body(RecvStream),
}

/// Carries one exchange; polled to its end.
pub(crate) struct Http2Carrier<'a> {
    connection: &'a mut Http2Connection,
    sink: &'a mut dyn ResponseSink,
    method_is_head: bool,
    body: Body<'a>,
    body_len: u64,
    /// Where in the body the next piece begins.
    offset: u64,
    stream: SendStream<Piece>,
    answer: Answer,
    marks: Marks,
    status: u16,
    body_bytes: u64,
    body_bytes_stated: Option<u64>,
    lost_only_its_stream: bool,
}

impl Http2Carrier<'_> {
    pub(crate) fn marks(&self) -> Marks {
        Marks { last_byte_sent: self.connection.watch.last_byte_sent(), ..self.marks }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Returns how many bytes went either way on the connection so far.
    pub(crate) fn bytes_moved(&self) -> u64 {
        self.connection.watch.bytes_moved()
    }

    /// Returns the failure of an exchange that takes too long. A failure's message continues after
    /// the address.
    pub(crate) fn overdue(&self, overdue: &Overdue) -> Failure {
        let place = match &self.answer {
            Answer::Body(_) => {
                format!("it is inside the answer's body after {} bytes", self.body_bytes)
            }
            Answer::Awaited(_) if !self.connection.watch.is_body_sent() => {
                "the request is not taken".to_owned()
            }
            Answer::Awaited(_) => "no answer came".to_owned(),
        };
        Failure::new(ExchangeErrorKind::Stalled, overdue.text(&place))
    }

    /// Tells whether the failure left the connection fit for other streams.
    pub(crate) fn lost_only_its_stream(&self) -> bool {
        self.lost_only_its_stream
    }

    /// Sends and reads as far as the socket lets it. A failure's message continues after the
    /// address.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Turn, Failure>> {
        let moved_before = self.connection.watch.bytes_moved();
        loop {
            self.queue_piece();
            self.connection.watch.allow_read();
            let frames = Pin::new(&mut self.connection.frames).poll(cx);
            match self.take_answer(cx) {
                Ok(true) => {
                    let watch = &self.connection.watch;
                    let is_early = self.body_len > 0 && watch.last_byte_sent().is_none();
                    let (at, reusable) =
                        (watch.last_read(), frames.is_pending() && watch.is_body_sent());
                    return Poll::Ready(Ok(Turn::Ended(End { at, reusable, is_early })));
                }
                Ok(false) => {}
                Err(error) => return Poll::Ready(Err(self.broken_off(Some(&error)))),
            }
            if let Poll::Ready(ended) = frames {
                return Poll::Ready(Err(self.broken_off(ended.err().as_ref())));
            }
            let may_queue = self.offset < self.body_len && self.connection.watch.is_piece_sent();
            if !may_queue && !self.connection.watch.is_holding() {
                return Poll::Pending;
            }
            if self.connection.watch.bytes_moved() - moved_before >= TURN_BYTES_MAX {
                return Poll::Ready(Ok(Turn::Over));
            }
        }
    }

    /// Makes the next piece of the body when the socket has taken the one before.
    fn queue_piece(&mut self) {
        if self.offset == self.body_len || !self.connection.watch.is_piece_sent() {
            return;
        }
        let size = (self.body_len - self.offset).min(PIECE_BYTES_MAX as u64) as usize;
        let mut bytes = self.connection.watch.spare_buffer();
        match &mut self.body {
            Body::Empty => unreachable!("an empty body has no piece"),
            Body::Bytes(all) => bytes.extend_from_slice(&all[self.offset as usize..][..size]),
            Body::Source { fill, .. } => {
                bytes.resize(size, 0);
                fill(self.offset, &mut bytes);
            }
        }
        self.offset += size as u64;
        let piece = Piece::new(bytes, self.connection.watch.clone());
        // A stream that the server closed takes nothing; its answer says more than this error.
        let _ = self.stream.send_data(piece, self.offset == self.body_len);
    }

    /// Takes what came of the answer and tells whether it is complete.
    fn take_answer(&mut self, cx: &mut Context<'_>) -> Result<bool, h2::Error> {
        loop {
            match &mut self.answer {
                Answer::Awaited(answer) => match Pin::new(answer).poll(cx) {
                    Poll::Pending => return Ok(false),
                    Poll::Ready(response) => self.take_head(response?)?,
                },
                Answer::Body(body) if body.is_end_stream() => return Ok(true),
                Answer::Body(body) => match body.poll_data(cx) {
                    Poll::Pending => return Ok(false),
                    Poll::Ready(None) => return Ok(true),
                    Poll::Ready(Some(Ok(bytes))) => {
                        // What is taken makes room for as much; there always is something to free.
                        body.flow_control().release_capacity(bytes.len())?;
                        if !bytes.is_empty() {
                            let at = self.connection.watch.last_read();
                            self.marks.first_body_byte.get_or_insert(at);
                            self.body_bytes += bytes.len() as u64;
                            self.sink.body(&bytes);
                        }
                    }
                    // Behind END_STREAM a reset is no error here: a server may ask in this way for
                    // no more of the request (RFC 9113, section 8.1). Before it the answer is not
                    // whole, whatever the code.
                    Poll::Ready(Some(Err(error))) => return Err(error),
                },
            }
        }
    }

    fn take_head(&mut self, response: http::Response<RecvStream>) -> Result<(), h2::Error> {
        let (head, body) = response.into_parts();
        let fields: Vec<httparse::Header<'_>> = head
            .headers
            .iter()
            .map(|(name, value)| httparse::Header { name: name.as_str(), value: value.as_bytes() })
            .collect();
        // h2 itself refuses a body that is not as long as stated.
        let content_length =
            response::content_length(&fields).map_err(|_| Reason::PROTOCOL_ERROR)?;
        if !self.method_is_head {
            self.body_bytes_stated = content_length;
        }
        self.status = head.status.as_u16();
        self.marks.first_byte = Some(self.connection.watch.last_read());
        self.sink.head(&ResponseHead {
            status: self.status,
            reason: "",
            headers: &fields,
            content_length,
        });
        self.answer = Answer::Body(body);
        Ok(())
    }

    /// The stream or the connection ended before the answer did: without an error (`None`), or with
    /// one.
    fn broken_off(&mut self, error: Option<&h2::Error>) -> Failure {
        let watch = &self.connection.watch;
        if watch.first_words() == Some(FirstWords::HttpOne) {
            let message = " speaks HTTP/1.1, not HTTP/2; leave out `http2`";
            return Failure::new(ExchangeErrorKind::Protocol, message);
        }
        if watch.first_words() == Some(FirstWords::Tls) {
            let message = " speaks TLS, but plain HTTP was sent; use `tls`";
            return Failure::new(ExchangeErrorKind::Tls, message);
        }
        let in_body = matches!(self.answer, Answer::Body(_));
        let reason =
            error.and_then(h2::Error::reason).map(|code| format!("{code:?}")).unwrap_or_default();
        let (kind, what) = match error {
            Some(error) if error.is_remote() && error.is_reset() => {
                self.lost_only_its_stream = watch.is_body_sent();
                (ExchangeErrorKind::Reset, format!(" reset the stream ({reason})"))
            }
            Some(error) if error.is_remote() && error.is_go_away() => {
                (ExchangeErrorKind::Reset, format!(" gave up the connection ({reason})"))
            }
            Some(error) if !error.is_io() => {
                let text = text_of(error);
                let message = format!(" sent an answer that is not valid HTTP/2: {text}");
                return Failure::new(ExchangeErrorKind::Protocol, message);
            }
            _ if in_body && watch.is_at_end() => {
                (ExchangeErrorKind::Truncated, " closed the connection".to_owned())
            }
            _ => (ExchangeErrorKind::Reset, " closed the connection".to_owned()),
        };
        let place = match (in_body, self.body_bytes_stated) {
            (true, Some(stated)) => {
                format!(" inside the answer's body after {} of {stated} bytes", self.body_bytes)
            }
            (true, None) => format!(" inside the answer's body after {} bytes", self.body_bytes),
            (false, _) if watch.first_words().is_none() => {
                " without an answer; does that port speak HTTP/2?".to_owned()
            }
            (false, _) if !watch.is_body_sent() => " while the request was sent".to_owned(),
            (false, _) => " without an answer".to_owned(),
        };
        Failure::new(kind, format!("{what}{place}"))
    }
}

/// Returns the request of a head as HTTP/1.1 writes it; `None` if it is none.
fn head_of(head: &[u8], tls: bool) -> Option<http::Request<()>> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_COUNT_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    if !parsed.parse(head).ok()?.is_complete() {
        return None;
    }
    let host = parsed.headers.iter().find(|field| field.name.eq_ignore_ascii_case("host"))?;
    let uri = http::Uri::builder()
        .scheme(if tls { "https" } else { "http" })
        .authority(host.value)
        .path_and_query(parsed.path?)
        .build()
        .ok()?;
    let mut request = http::Request::new(());
    *request.method_mut() = http::Method::from_bytes(parsed.method?.as_bytes()).ok()?;
    *request.uri_mut() = uri;
    *request.version_mut() = http::Version::HTTP_2;
    request.headers_mut().reserve(parsed.headers.len());
    for field in parsed.headers.iter() {
        if FIELDS_LEFT_OUT.iter().any(|name| field.name.eq_ignore_ascii_case(name)) {
            continue;
        }
        let name = http::HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let mut value = http::HeaderValue::from_bytes(field.value).ok()?;
        // Another one in each request: it would only push useful fields out of the table.
        value.set_sensitive(name == http::header::AUTHORIZATION);
        request.headers_mut().append(name, value);
    }
    Some(request)
}

fn text_of(error: &h2::Error) -> String {
    error.to_string().to_lowercase()
}
