//! One request and what its answer means, whoever it goes to: what the sessions of volume servers
//! and of filers share.

use plimsoll_driver::{ByteRange, Completion, ContentSink, DriverError};
use plimsoll_http::{Body, Client, Exchange, ExchangeError, Request};
use plimsoll_model::{EndpointId, ErrorClass};

use crate::answer::{Answer, ContentAnswer, ContentState, Upload};
use crate::error;
use crate::sum::SumKind;

/// Which byte of an answer counts as its first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstByte {
    OfAnswer,
    OfBody,
}

/// The request that is sent next or was sent last, and its answer.
pub(crate) struct Wire {
    /// The request's head.
    pub(crate) head: Vec<u8>,
    pub(crate) answer: Answer,
    /// Whether the answer came to its end.
    pub(crate) is_whole: bool,
    /// Where it goes, as it is recorded.
    pub(crate) endpoint: EndpointId,
}

impl Wire {
    pub(crate) fn new(endpoint: EndpointId) -> Self {
        Self { head: Vec::new(), answer: Answer::default(), is_whole: false, endpoint }
    }

    /// Sends content behind the head, to the host with that place in the client's list, and checks
    /// what was stored.
    pub(crate) async fn send(
        &mut self,
        client: &mut Client,
        host: usize,
        upload: &mut Upload<'_>,
        expected: &[u16],
    ) -> Completion {
        let (size, len) = (upload.size(), upload.len());
        let mut fill = |offset: u64, buffer: &mut [u8]| upload.fill(offset, buffer);
        let body = if len == 0 { Body::Empty } else { Body::Source { len, fill: &mut fill } };
        let request = Request { head: &self.head, method_is_head: false, body };
        let outcome = client.exchange(host, request, self.answer.expect()).await;
        let mut done = self.complete(&outcome, expected, FirstByte::OfAnswer);
        done.bytes = if done.last_byte_sent.is_some() { size } else { 0 };
        if done.result.is_ok() {
            done.result = self.answer.check_stored(upload.sum());
            done.objects_count = u32::from(done.result.is_ok());
        }
        done
    }

    /// Asks for content, or a range of it; a whole file is checked against the checksum that the
    /// answer states of it, if it is to be.
    pub(crate) async fn receive(
        &mut self,
        client: &mut Client,
        host: usize,
        range: Option<ByteRange>,
        content: &mut dyn ContentSink,
        sum: Option<SumKind>,
    ) -> Completion {
        let request = Request { head: &self.head, method_is_head: false, body: Body::Empty };
        let mut sink = ContentAnswer::new(self.answer.expect(), content, range, sum);
        let outcome = client.exchange(host, request, &mut sink).await;
        let checked = sink.check_read();
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
                let wanted = range.map_or(done.bytes, |range| range.len);
                if done.result.is_ok() && done.bytes != wanted {
                    let why = format!("asked for {wanted} bytes, the answer held {}", done.bytes);
                    let class = ErrorClass::Truncated;
                    done.result = Err(DriverError::with_status(class, self.answer.status, why));
                } else if done.result.is_ok() {
                    done.is_unchecked = checked.as_ref().is_ok_and(|is_checked| !is_checked);
                    done.result = checked.map(drop);
                }
            }
        }
        done.objects_count = u32::from(done.result.is_ok());
        done
    }

    /// Does a request that has no body, and no content in its answer.
    pub(crate) async fn ask(
        &mut self,
        client: &mut Client,
        host: usize,
        method_is_head: bool,
        expected: &[u16],
    ) -> Completion {
        let request = Request { head: &self.head, method_is_head, body: Body::Empty };
        let outcome = client.exchange(host, request, self.answer.expect()).await;
        self.complete(&outcome, expected, FirstByte::OfAnswer)
    }

    /// Asks for a document of at most so many bytes, which is kept.
    pub(crate) async fn read(
        &mut self,
        client: &mut Client,
        host: usize,
        bytes_max: usize,
    ) -> Completion {
        let request = Request { head: &self.head, method_is_head: false, body: Body::Empty };
        let outcome = client.exchange(host, request, self.answer.expect_up_to(bytes_max)).await;
        self.complete(&outcome, &[200], FirstByte::OfBody)
    }

    /// Adds the size that the answer to a HEAD states.
    pub(crate) fn with_size(&self, mut done: Completion) -> Completion {
        if done.result.is_ok() {
            done.object_size = self.answer.content_length;
            if done.object_size.is_none() {
                let why = "the answer does not state the file's size (Content-Length)";
                done.result = Err(error::of_success(self.answer.status, why));
                done.objects_count = 0;
            }
        }
        done
    }

    /// Judges an exchange by itself and by its status.
    fn complete(
        &mut self,
        outcome: &Result<Exchange, ExchangeError>,
        expected: &[u16],
        first_byte: FirstByte,
    ) -> Completion {
        self.is_whole = outcome.is_ok();
        let bare = |end, result| Completion::bare(self.endpoint, end, result);
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
            false => Err(error::of_answer(status, &self.answer.body, self.answer.is_named)),
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
