//! One request and what its answer means.

use plimsoll_driver::{Completion, ContentSink, DriverError};
use plimsoll_http::{Body, Client, Exchange, ExchangeError, Request};
use plimsoll_model::{EndpointId, ErrorClass, Secret, redacted};

use crate::answer::{ANSWER_BYTES_MAX, Answer, ContentAnswer, ContentState, Wanted};
use crate::error;
use crate::request::{TOKEN_HEADER, Upload};

/// Which byte of an answer counts as its first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstByte {
    OfAnswer,
    OfBody,
}

/// The request that is sent next or was sent last, and its answer.
pub(crate) struct Wire {
    pub(crate) client: Client,
    /// The request's head.
    pub(crate) head: Vec<u8>,
    pub(crate) answer: Answer,
    /// Tokens that a server may repeat, beside that of the request.
    pub(crate) past: Vec<Secret>,
}

impl Wire {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, head: Vec::new(), answer: Answer::default(), past: Vec::new() }
    }

    /// Sends content behind the head, and checks what was stored where that is wanted.
    pub(crate) async fn send(&mut self, upload: &mut Upload<'_>) -> Completion {
        let (size, len) = (upload.size(), upload.len());
        let mut fill = |offset: u64, buffer: &mut [u8]| upload.fill(offset, buffer);
        let body = if len == 0 { Body::Empty } else { Body::Source { len, fill: &mut fill } };
        let request = Request { head: &self.head, method_is_head: false, body };
        let sink = self.answer.expect(ANSWER_BYTES_MAX, &[]);
        let outcome = self.client.exchange(0, request, sink).await;
        let mut done = self.complete(&outcome, &[201], FirstByte::OfAnswer);
        done.bytes = if done.last_byte_sent.is_some() { size } else { 0 };
        if done.result.is_ok() {
            done.result = self.check_stored(upload.sum());
            done.objects_count = u32::from(done.result.is_ok());
        }
        done
    }

    fn check_stored(&self, sent: Option<String>) -> Result<(), DriverError> {
        let Some(sent) = sent else { return Ok(()) };
        let status = self.answer.status;
        match self.answer.etag.as_str() {
            "" => Err(error::of_success(status, "the answer does not say what was stored (ETag)")),
            etag if etag.eq_ignore_ascii_case(&sent) => Ok(()),
            etag => {
                let etag: String = etag.chars().take(64).collect();
                let why = format!("stored was content of MD5 {etag}, sent was {sent}");
                Err(DriverError::with_status(ErrorClass::Corrupt, status, why))
            }
        }
    }

    /// Asks for content.
    pub(crate) async fn receive(
        &mut self,
        wanted: Wanted,
        content: &mut dyn ContentSink,
    ) -> Completion {
        let request = Request { head: &self.head, method_is_head: false, body: Body::Empty };
        let answer = self.answer.expect(ANSWER_BYTES_MAX, &[]);
        let mut sink = ContentAnswer { answer, content, wanted, state: ContentState::None };
        let outcome = self.client.exchange(0, request, &mut sink).await;
        let state = sink.state;
        let mut done = self.complete(&outcome, &[200, 206], FirstByte::OfBody);
        match state {
            ContentState::None => {}
            ContentState::Refused(refusal) => done.result = Err(refusal),
            ContentState::Content { size } => {
                done.object_size = size;
                done.bytes = match &outcome {
                    Ok(exchange) => exchange.body_bytes,
                    Err(failed) => failed.body_bytes,
                };
                let asked = match wanted {
                    Wanted::Range(range) => range.len,
                    Wanted::Whole | Wanted::Segment => done.bytes,
                };
                if done.result.is_ok() && done.bytes != asked {
                    let why = format!("asked for {asked} bytes, the answer held {}", done.bytes);
                    let class = ErrorClass::Truncated;
                    done.result = Err(DriverError::with_status(class, self.answer.status, why));
                }
            }
        }
        done.objects_count = u32::from(done.result.is_ok());
        done
    }

    /// Does a request whose answer holds no content, and of whose answer these headers are wanted.
    pub(crate) async fn ask(
        &mut self,
        method_is_head: bool,
        body: &[u8],
        expected: &[u16],
        wanted: &'static [&'static str],
    ) -> Completion {
        let body = if body.is_empty() { Body::Empty } else { Body::Bytes(body) };
        let request = Request { head: &self.head, method_is_head, body };
        let sink = self.answer.expect(ANSWER_BYTES_MAX, wanted);
        let outcome = self.client.exchange(0, request, sink).await;
        self.complete(&outcome, expected, FirstByte::OfAnswer)
    }

    /// Asks for a document of at most so many bytes, which is kept.
    pub(crate) async fn read(&mut self, bytes_max: usize) -> Completion {
        let request = Request { head: &self.head, method_is_head: false, body: Body::Empty };
        let sink = self.answer.expect(bytes_max, &[]);
        let outcome = self.client.exchange(0, request, sink).await;
        let mut done = self.complete(&outcome, &[200, 204], FirstByte::OfBody);
        if done.result.is_ok() && self.answer.overflowed {
            let why = format!("the answer is longer than {bytes_max} bytes");
            done.result = Err(error::of_success(self.answer.status, why));
        }
        done
    }

    /// Returns the body of a refusal, if Swift sent it, without the token: some servers and
    /// gateways repeat the headers of a request.
    pub(crate) fn words(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let token = head.lines().find_map(|line| line.strip_prefix(TOKEN_HEADER));
        let all = token.into_iter().chain(self.past.iter().map(Secret::expose));
        redacted(&String::from_utf8_lossy(self.answer.words()), all)
    }

    /// Judges an exchange by itself and by its status.
    fn complete(
        &self,
        outcome: &Result<Exchange, ExchangeError>,
        expected: &[u16],
        first_byte: FirstByte,
    ) -> Completion {
        let bare = |end, result| Completion::bare(EndpointId(0), end, result);
        let exchange = match outcome {
            Ok(exchange) => exchange,
            Err(failed) => {
                let of_answer = first_byte == FirstByte::OfAnswer;
                return Completion {
                    first_byte: failed.first_byte.filter(|_| of_answer),
                    last_byte_sent: failed.last_byte_sent,
                    ..bare(failed.end, Err(error::of_exchange(failed)))
                };
            }
        };
        let status = exchange.status;
        let result = match expected.contains(&status) {
            true => exchange.in_time().map_err(|why| error::of_success(status, why)),
            false => Err(error::of_answer(status, self.words().as_bytes())),
        };
        Completion {
            first_byte: match first_byte {
                FirstByte::OfAnswer => Some(exchange.first_byte),
                FirstByte::OfBody => exchange.first_body_byte,
            },
            last_byte_sent: exchange.last_byte_sent,
            objects_count: u32::from(result.is_ok()),
            ..bare(exchange.end, result)
        }
    }
}
