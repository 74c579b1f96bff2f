//! One request and its answer on one connection: sends while it reads, so that an early answer is
//! not lost.

use std::io;
use std::task::{Context, Poll, ready};

use plimsoll_model::{Clock, Moment};

use crate::channel::Channel;
use crate::error::Failure;
use crate::response::{Ending, HEAD_BYTES_MAX, ParseError, ResponseParser, ResponseSink};
use crate::stall::Overdue;
use crate::tls::identity_refusal;
use crate::{ExchangeErrorKind, send::Sender};

/// A request as the caller rendered it.
pub struct Request<'a> {
    /// The whole head, request line to empty line.
    pub head: &'a [u8],
    /// Whether the method is HEAD, whose answer has no body.
    pub method_is_head: bool,
    /// What follows the head; the head already states its length.
    pub body: Body<'a>,
}

/// The body of a request.
pub enum Body<'a> {
    /// None.
    Empty,
    /// Bytes at hand.
    Bytes(&'a [u8]),
    /// Bytes made piece by piece.
    Source {
        /// How many bytes in all.
        len: u64,
        /// Fills the buffer with the bytes from the offset on; called once per piece, in order.
        fill: &'a mut dyn FnMut(u64, &mut [u8]),
    },
}

impl Body<'_> {
    /// Returns the same body for a shorter time, so that it can stand beside a head that lives
    /// shorter.
    pub fn reborrow(&mut self) -> Body<'_> {
        match self {
            Self::Empty => Body::Empty,
            Self::Bytes(bytes) => Body::Bytes(bytes),
            Self::Source { len, fill } => Body::Source { len: *len, fill: &mut **fill },
        }
    }
}

/// An exchange that came to a whole answer, whatever its status.
///
/// A moment of receiving is that of the read that brought the bytes, before they were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The answer's status.
    pub status: u16,
    /// First byte of the (final) answer.
    pub first_byte: Moment,
    /// First byte of the answer's body; `None` without one.
    pub first_body_byte: Option<Moment>,
    /// When the last byte of the request's body had been handed to the socket; `None` without a
    /// body, or when the answer was complete before the body was sent.
    pub last_byte_sent: Option<Moment>,
    /// Whether the answer was complete before the request was sent, so that whatever it says is not
    /// about the whole of it.
    pub is_early: bool,
    /// When the answer was complete.
    pub end: Moment,
    /// Body bytes received.
    pub body_bytes: u64,
}

impl Exchange {
    /// Says what is wrong with an answer that was complete before the request was sent: whatever it
    /// took for done, it was not what was being sent.
    pub fn in_time(&self) -> Result<(), String> {
        match self.is_early {
            true => Err(format!("the server answered {} before the request was sent", self.status)),
            false => Ok(()),
        }
    }
}

/// The moments of an exchange that are known so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Marks {
    pub(crate) first_byte: Option<Moment>,
    pub(crate) first_body_byte: Option<Moment>,
    pub(crate) last_byte_sent: Option<Moment>,
}

impl Marks {
    /// Returns the exchange that ended with a whole answer.
    pub(crate) fn exchange(self, status: u16, end: End, body_bytes: u64) -> Exchange {
        let End { at: end, is_early, .. } = end;
        Exchange {
            status,
            is_early,
            first_byte: self.first_byte.unwrap_or(end),
            first_body_byte: self.first_body_byte,
            last_byte_sent: self.last_byte_sent,
            end,
            body_bytes,
        }
    }
}

/// A whole answer.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) at: Moment,
    /// Whether the connection may carry another exchange.
    pub(crate) reusable: bool,
    /// Whether something of the request's body was not sent by then.
    pub(crate) is_early: bool,
}

/// What plain HTTP servers and proxies answer (400) to plain HTTP on their TLS port: Go, nginx,
/// Apache.
const PLAIN_ON_TLS_PORT: [&[u8]; 3] = [
    b"HTTP request to an HTTPS server",
    b"plain HTTP request was sent to HTTPS port",
    b"speaking plain HTTP to an SSL-enabled server port",
];

/// How much one exchange moves before the others of its thread get their turn. Without a limit a
/// large body that never has to wait would hold up their moments, and its own early answer would be
/// seen late. An object of 1 MiB is one turn.
pub(crate) const TURN_BYTES_MAX: u64 = (1 << 20) + HEAD_BYTES_MAX as u64;

/// Where an exchange stands after a turn.
pub(crate) enum Turn {
    /// It came to a whole answer.
    Ended(End),
    /// It could go on at once but has had its share; the runtime should look at its sockets first.
    Over,
}

/// Carries one exchange; polled to its end.
pub(crate) struct Carrier<'a> {
    clock: &'a dyn Clock,
    channel: &'a mut Channel,
    parser: &'a mut ResponseParser,
    sink: &'a mut dyn ResponseSink,
    sender: Sender<'a>,
    /// What ended the sending; an answer may still be there to be read.
    send_error: Option<io::Error>,
    /// All that was read, of which a server may wrap little content in much.
    bytes_read: u64,
    marks: Marks,
}

impl<'a> Carrier<'a> {
    pub(crate) fn new<'r: 'a>(
        clock: &'a dyn Clock,
        channel: &'a mut Channel,
        parser: &'a mut ResponseParser,
        send_buffer: &'a mut Vec<u8>,
        request: Request<'r>,
        sink: &'a mut dyn ResponseSink,
    ) -> Self {
        let sender = Sender::new(request.head, request.body, send_buffer);
        let marks = Marks::default();
        Self { clock, channel, parser, sink, sender, send_error: None, bytes_read: 0, marks }
    }

    pub(crate) fn marks(&self) -> Marks {
        self.marks
    }

    /// Sends and reads as far as the socket lets it. A failure's message continues after the
    /// address.
    ///
    /// Nothing is left in `read_buffer`, which may be another one each time.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        read_buffer: &mut [u8],
    ) -> Poll<Result<Turn, Failure>> {
        let on_wire = |this: &Self| this.sender.bytes_sent() + this.bytes_read;
        let before = on_wire(self);
        loop {
            let sent = self.poll_send(cx);
            match self.poll_receive(cx, read_buffer) {
                Poll::Ready(Ok(Some(end))) => return Poll::Ready(Ok(Turn::Ended(end))),
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                Poll::Pending if sent => {}
                Poll::Pending if self.is_hopeless() => {
                    return Poll::Ready(Err(self.broken_off(None)));
                }
                Poll::Pending => return Poll::Pending,
            }
            if on_wire(self) - before >= TURN_BYTES_MAX {
                return Poll::Ready(Ok(Turn::Over));
            }
        }
    }

    /// Returns the failure of an exchange that takes too long. A failure's message continues after
    /// the address.
    pub(crate) fn overdue(&mut self, overdue: &Overdue) -> Failure {
        let place = match self.parser.finish() {
            _ if self.is_early() => "the request is not taken".to_owned(),
            Ending::BeforeAnswer => "no answer came".to_owned(),
            Ending::InsideHead => "it is inside the answer's head".to_owned(),
            Ending::InsideBody | Ending::Complete => {
                format!("it is inside the answer's body{}", self.body_progress())
            }
        };
        Failure::new(ExchangeErrorKind::Stalled, overdue.text(&place))
    }

    /// Returns how many bytes went either way so far.
    pub(crate) fn bytes_moved(&self) -> u64 {
        self.sender.bytes_sent() + self.parser.body_bytes()
    }

    /// Sends the next piece and tells whether anything more may be sent at once.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> bool {
        if self.sender.is_done() || self.send_error.is_some() {
            return false;
        }
        match self.sender.poll_piece(cx, self.channel) {
            Poll::Pending => false,
            Poll::Ready(Ok(())) if self.sender.is_done() => {
                if self.sender.had_body() {
                    self.marks.last_byte_sent = Some(self.clock.now());
                }
                false
            }
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(error)) => {
                self.send_error = Some(error);
                false
            }
        }
    }

    /// Reads once; `Some` when the answer is complete.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        read_buffer: &mut [u8],
    ) -> Poll<Result<Option<End>, Failure>> {
        let received = ready!(self.channel.poll_receive(cx, read_buffer, self.clock));
        Poll::Ready(match received {
            Ok((0, at)) => self.ended(at),
            Ok((count, at)) => self.received(&read_buffer[..count], at),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.broken_off(None))
            }
            Err(error) => Err(self.broken_off(Some(&error))),
        })
    }

    fn received(&mut self, bytes: &[u8], at: Moment) -> Result<Option<End>, Failure> {
        self.bytes_read += bytes.len() as u64;
        self.marks.first_byte.get_or_insert(at);
        let interim_count = self.parser.interim_count();
        let fed = self.parser.feed(bytes, self.sink).map_err(invalid)?;
        if self.parser.interim_count() > interim_count {
            // What came before was of an interim answer.
            self.marks.first_byte = self.parser.has_begun().then_some(at);
        }
        if self.marks.first_body_byte.is_none() && self.parser.body_bytes() > 0 {
            self.marks.first_body_byte = Some(at);
        }
        if self.parser.status() == 400 && !self.channel.is_tls() && complains_of_plain(bytes) {
            let message = " speaks TLS, but plain HTTP was sent; use `tls`";
            return Err(Failure::new(ExchangeErrorKind::Tls, message));
        }
        let is_early = self.is_early();
        let reusable = self.parser.keeps_alive() && fed.consumed == bytes.len() && !is_early;
        Ok(fed.complete.then_some(End { at, reusable, is_early }))
    }

    /// Tells whether the request could not be sent and nothing is there to be read: no answer will
    /// come. An early one may be there that the runtime has not seen yet.
    fn is_hopeless(&self) -> bool {
        let is_refused = self.send_error.is_some() || self.channel.send_error().is_some();
        is_refused && !self.parser.has_begun() && self.channel.is_silent()
    }

    /// Tells whether something of the request is still to be sent.
    fn is_early(&self) -> bool {
        !self.sender.is_done() || !self.channel.has_taken_all()
    }

    /// The server closed the connection in good order.
    fn ended(&mut self, at: Moment) -> Result<Option<End>, Failure> {
        match self.parser.finish() {
            Ending::Complete => Ok(Some(End { at, reusable: false, is_early: self.is_early() })),
            Ending::BeforeAnswer | Ending::InsideHead | Ending::InsideBody => {
                Err(self.broken_off(None))
            }
        }
    }

    /// The connection ended before the answer did: without an error (`None`), or with one.
    fn broken_off(&mut self, error: Option<&io::Error>) -> Failure {
        if let Some(why) = error.and_then(identity_refusal) {
            return Failure::new(ExchangeErrorKind::Tls, format!(" ended TLS: {why}"));
        }
        let ending = self.parser.finish();
        let place = match ending {
            Ending::BeforeAnswer if self.is_early() => " while the request was sent",
            Ending::BeforeAnswer => " without an answer",
            Ending::InsideHead => " inside the answer's head",
            Ending::InsideBody | Ending::Complete => " inside the answer's body",
        };
        let kind = match (ending, error) {
            (Ending::InsideBody | Ending::Complete, None) => ExchangeErrorKind::Truncated,
            _ => ExchangeErrorKind::Reset,
        };
        let mut message = format!(" closed the connection{place}");
        if matches!(ending, Ending::InsideBody | Ending::Complete) {
            message.push_str(&self.body_progress());
        }
        let send_error = self.send_error.take().or_else(|| self.channel.send_error());
        if let Some(error) = error.or(send_error.as_ref()) {
            message.push_str(&format!(": {}", error.to_string().to_lowercase()));
        }
        Failure::new(kind, message)
    }

    fn body_progress(&self) -> String {
        let came = self.parser.body_bytes();
        match self.parser.body_bytes_stated() {
            Some(stated) => format!(" after {came} of {stated} bytes"),
            None => format!(" after {came} bytes"),
        }
    }
}

fn invalid(error: ParseError) -> Failure {
    match error {
        ParseError::Tls => {
            Failure::new(ExchangeErrorKind::Tls, " speaks TLS, but plain HTTP was sent; use `tls`")
        }
        _ => {
            let message = format!(" sent an answer that is not valid HTTP/1.1: {error}");
            Failure::new(ExchangeErrorKind::Protocol, message)
        }
    }
}

fn complains_of_plain(bytes: &[u8]) -> bool {
    PLAIN_ON_TLS_PORT.iter().any(|text| bytes.windows(text.len()).any(|window| window == *text))
}
