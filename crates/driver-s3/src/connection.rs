//! One exchange after the other on one HTTP client: rendered, carried and judged.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_driver::{Completion, ContentSink, ContentSource, DriverError};
use plimsoll_http::{
    Body, Client, Endpoint, Exchange, ExchangeError, HostChooser, Options, Request, ResponseSink,
};
use plimsoll_model::{EndpointId, ErrorClass, Moment, SharedClock, WallTime};

use crate::addressing::{Place, Target};
use crate::answer::{Answer, ContentAnswer, ContentState, ERROR_BYTES_MAX, Wanted};
use crate::checksum::{self, Chunked};
use crate::digests::{PayloadDigests, PayloadHash};
use crate::request::Requests;
use crate::s3_request::S3Request;
use crate::{ConfigError, S3Config, error, xml};

/// What an exchange came to.
pub(crate) type Outcome = Result<Exchange, ExchangeError>;

/// Which byte of an answer counts as its first.
#[derive(Clone, Copy)]
pub(crate) enum FirstByte {
    OfAnswer,
    OfBody,
}

/// Counts an operation as in flight at its endpoint, also when its future is dropped half-way.
pub(crate) struct Lease {
    chooser: Rc<HostChooser>,
    connections: Rc<Connections>,
    pub(crate) endpoint: usize,
    /// The bucket that it is about, where that is not the target's own.
    elsewhere: Option<Arc<Place>>,
    /// When the request under way is rendered, which is what its signature states.
    at: Cell<Moment>,
    /// When the last request ended, if one did.
    ended: Cell<Option<Moment>>,
    connect_failed: Cell<bool>,
}

impl Lease {
    pub(crate) fn take(
        chooser: &Rc<HostChooser>,
        connections: &Rc<Connections>,
        elsewhere: Option<Arc<Place>>,
    ) -> Self {
        let begin = connections.clock.now();
        let endpoint = chooser.choose(begin);
        let (chooser, connections) = (Rc::clone(chooser), Rc::clone(connections));
        let (at, ended, connect_failed) = (Cell::new(begin), Cell::new(None), Cell::new(false));
        Self { chooser, connections, endpoint, elsewhere, at, ended, connect_failed }
    }

    /// Returns the bucket that it is about.
    pub(crate) fn place(&self) -> &Arc<Place> {
        self.elsewhere.as_ref().unwrap_or(&self.connections.target.place)
    }

    /// Notes that time has passed since the last request of the operation.
    pub(crate) fn refresh(&self) {
        self.ended.set(None);
        self.at.set(self.connections.clock.now());
    }

    pub(crate) fn endpoint_id(&self) -> EndpointId {
        let index = u16::try_from(self.endpoint).expect("the endpoints are counted in 16 bits");
        EndpointId(index)
    }

    /// Returns the completion of an operation that ends here and now.
    pub(crate) fn ended(&self, result: Result<(), DriverError>) -> Completion {
        Completion::bare(self.endpoint_id(), self.connections.clock.now(), result)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // One that was given up half-way ends here and now.
        let ended = self.ended.get().unwrap_or_else(|| self.connections.clock.now());
        self.chooser.done(self.endpoint, ended, self.connect_failed.get());
    }
}

/// Opens lines that share what lines can share.
pub(crate) struct Connections {
    pub(crate) config: Arc<S3Config>,
    pub(crate) target: Arc<Target>,
    /// Other buckets than the target's own that operations have named.
    pub(crate) places: RefCell<HashMap<String, Arc<Place>>>,
    pub(crate) endpoints: Rc<[Endpoint]>,
    pub(crate) options: Rc<Options>,
    pub(crate) clock: SharedClock,
}

impl Connections {
    /// Returns a bucket of the target by its name, nothing for its own, which has none.
    pub(crate) fn place(&self, bucket: Option<&str>) -> Result<Option<Arc<Place>>, ConfigError> {
        let Some(bucket) = bucket else { return Ok(None) };
        if let Some(place) = self.places.borrow().get(bucket) {
            return Ok(Some(Arc::clone(place)));
        }
        // Connections are those to the target's own bucket: where names of hosts hold buckets, all
        // of them lead to the same servers.
        let place = Arc::new(Place::resolve(&self.config, bucket)?);
        self.places.borrow_mut().insert(bucket.to_owned(), Arc::clone(&place));
        Ok(Some(place))
    }

    pub(crate) fn open(&self) -> Connection {
        let client = Client::new(self.endpoints.clone(), self.options.clone(), self.clock.clone());
        let requests = Requests::new(&self.config, self.target.clone());
        Connection {
            target: self.target.clone(),
            sign_payload: self.config.sign_payload,
            content_md5: self.config.content_md5,
            client,
            answer: Answer { redaction: requests.redaction(), ..Answer::default() },
            requests,
            body: Vec::new(),
            piece: Vec::new(),
        }
    }
}

/// One HTTP client and what is needed to make requests on it.
pub(crate) struct Connection {
    pub(crate) target: Arc<Target>,
    sign_payload: bool,
    content_md5: bool,
    client: Client,
    pub(crate) requests: Requests,
    pub(crate) answer: Answer,
    /// The body of the request under way, where it is made here.
    pub(crate) body: Vec<u8>,
    /// Content on its way through a digest.
    piece: Vec<u8>,
}

impl Connection {
    /// Does a request without a body and judges its answer.
    pub(crate) async fn call(
        &mut self,
        lease: &Lease,
        call: &S3Request<'_>,
        expected: &[u16],
    ) -> Completion {
        let outcome =
            self.exchange(lease, call, &PayloadDigests::NONE, Body::Empty, ERROR_BYTES_MAX).await;
        self.complete(lease, &outcome, FirstByte::OfAnswer, expected)
    }

    /// Does a request whose body is `self.body` and judges its answer, of which at most
    /// `answer_bytes_max` are kept.
    pub(crate) async fn call_with_document(
        &mut self,
        lease: &Lease,
        call: &S3Request<'_>,
        answer_bytes_max: usize,
    ) -> Completion {
        let document = std::mem::take(&mut self.body);
        let digests = match document.is_empty() {
            true => PayloadDigests::NONE,
            false => PayloadDigests::of_bytes(&document, self.sign_payload),
        };
        let body = Body::Bytes(&document);
        let outcome = self.exchange(lease, call, &digests, body, answer_bytes_max).await;
        self.body = document;
        self.complete(lease, &outcome, FirstByte::OfAnswer, &[200])
    }

    /// Writes content as `call` says, with the checksum behind it that the options ask for. The tag
    /// of a part is its ETag, and its checksum where it has one.
    pub(crate) async fn send(
        &mut self,
        lease: &Lease,
        call: &S3Request<'_>,
        content: &mut dyn ContentSource,
    ) -> Completion {
        let size = content.size();
        let mut completion = match self.target.headers.checksum {
            None => self.send_plain(lease, call, content).await,
            Some(checksum) => {
                let digests = PayloadDigests { hash: PayloadHash::Trailing(checksum), md5: None };
                let mut chunked = Chunked::new(content, checksum);
                let mut fill = |offset: u64, buffer: &mut [u8]| chunked.fill(offset, buffer);
                let len = checksum::encoded_len(size, checksum);
                let body = Body::Source { len, fill: &mut fill };
                let outcome = self.exchange(lease, call, &digests, body, ERROR_BYTES_MAX).await;
                let mut completion = self.complete(lease, &outcome, FirstByte::OfAnswer, &[200]);
                if let (S3Request::PutPart { .. }, Some(etag)) = (call, &completion.server_name) {
                    completion.server_name = Some(format!("{etag} {}", chunked.value()).into());
                }
                completion
            }
        };
        completion.bytes = if completion.last_byte_sent.is_some() { size } else { 0 };
        completion
    }

    async fn send_plain(
        &mut self,
        lease: &Lease,
        call: &S3Request<'_>,
        content: &mut dyn ContentSource,
    ) -> Completion {
        let (sign, md5) = (self.sign_payload, self.content_md5);
        let digests = PayloadDigests::of_content(content, sign, md5, &mut self.piece);
        let len = content.size();
        let mut fill = |offset: u64, buffer: &mut [u8]| content.fill(offset, buffer);
        let body = if len == 0 { Body::Empty } else { Body::Source { len, fill: &mut fill } };
        let outcome = self.exchange(lease, call, &digests, body, ERROR_BYTES_MAX).await;
        self.complete(lease, &outcome, FirstByte::OfAnswer, &[200])
    }

    /// Reads content as `call` says.
    pub(crate) async fn receive(
        &mut self,
        lease: &Lease,
        call: &S3Request<'_>,
        wanted: Wanted,
        content: &mut dyn ContentSink,
    ) -> Completion {
        self.render(lease, call, &PayloadDigests::NONE);
        let request =
            Request { head: self.requests.head(), method_is_head: false, body: Body::Empty };
        let answer = self.answer.expect(ERROR_BYTES_MAX, None);
        let mut sink = ContentAnswer { answer, content, wanted, state: ContentState::None };
        let outcome = self.client.exchange(lease.endpoint, request, &mut sink).await;
        let state = sink.state;
        let mut completion = self.complete(lease, &outcome, FirstByte::OfBody, &[200, 206]);
        match state {
            ContentState::None => {}
            ContentState::Refused(refusal) => completion.result = Err(refusal),
            ContentState::Content { object_size } => {
                let body_bytes = match &outcome {
                    Ok(exchange) => exchange.body_bytes,
                    Err(failed) => failed.body_bytes,
                };
                completion.bytes = body_bytes;
                completion.object_size = object_size;
                let wanted_bytes = match wanted {
                    Wanted::Range(range) => range.len,
                    _ => body_bytes,
                };
                if completion.result.is_ok() && body_bytes != wanted_bytes {
                    let message =
                        format!("asked for {wanted_bytes} bytes, the answer held {body_bytes}");
                    let status = self.answer.status;
                    completion.result =
                        Err(DriverError::with_status(ErrorClass::Truncated, status, message));
                }
            }
        }
        completion
    }

    /// Renders `call` and exchanges it with a body; the answer is then in `self.answer`.
    pub(crate) async fn exchange(
        &mut self,
        lease: &Lease,
        call: &S3Request<'_>,
        digests: &PayloadDigests,
        mut body: Body<'_>,
        answer_bytes_max: usize,
    ) -> Outcome {
        self.render(lease, call, digests);
        let method_is_head = call.method() == "HEAD";
        let request = Request { head: self.requests.head(), method_is_head, body: body.reborrow() };
        let sink: &mut dyn ResponseSink = self.answer.expect(answer_bytes_max, call.tag_header());
        self.client.exchange(lease.endpoint, request, sink).await
    }

    fn render(&mut self, lease: &Lease, call: &S3Request<'_>, digests: &PayloadDigests) {
        let now = self.wall_time(lease);
        let address = &lease.place().addresses[lease.endpoint];
        self.requests.render(call, digests, address, now);
    }

    /// Returns the time of the request under way.
    pub(crate) fn wall_time(&self, lease: &Lease) -> WallTime {
        self.target.wall_epoch.after(lease.at.get().since(Moment::EPOCH))
    }

    /// Judges an exchange by itself and by its status; what the answer holds beyond that is left to
    /// the caller.
    pub(crate) fn complete(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        first_byte: FirstByte,
        expected: &[u16],
    ) -> Completion {
        let bare = |end, result| {
            lease.ended.set(Some(end));
            Completion::bare(lease.endpoint_id(), end, result)
        };
        let exchange = match outcome {
            Ok(exchange) => exchange,
            Err(error) => {
                lease.connect_failed.set(error.kind.is_connect());
                return Completion {
                    // Of a broken answer the first byte of the body is not known, only that of the
                    // head.
                    first_byte: match first_byte {
                        FirstByte::OfAnswer => error.first_byte,
                        FirstByte::OfBody => None,
                    },
                    last_byte_sent: error.last_byte_sent,
                    ..bare(error.end, Err(error::of_exchange(&self.answer, error)))
                };
            }
        };
        let in_time = || exchange.in_time().map_err(|why| error::of_early(&self.answer, why));
        let result = self.judge(exchange.status, expected).and_then(|()| in_time());
        let has_tag = result.is_ok() && !self.answer.tag.is_empty();
        Completion {
            first_byte: match first_byte {
                FirstByte::OfAnswer => Some(exchange.first_byte),
                FirstByte::OfBody => exchange.first_body_byte,
            },
            last_byte_sent: exchange.last_byte_sent,
            objects_count: u32::from(result.is_ok()),
            server_name: has_tag.then(|| self.answer.tag.as_str().into()),
            ..bare(exchange.end, result)
        }
    }

    fn judge(&self, status: u16, expected: &[u16]) -> Result<(), DriverError> {
        if !expected.contains(&status) {
            let mut refused = error::of_answer(&self.answer);
            if refused.class == ErrorClass::Denied {
                refused.message.push_str("; ");
                refused.message.push_str(&self.requests.whom_to_check());
            }
            return Err(refused);
        }
        // Content never gets here, so a body is empty, a document, or an error in spite of the
        // status.
        // Servers that take long to answer send blanks meanwhile.
        let body = self.answer.body.trim_ascii_start();
        let looks_like_error = body.windows(6).take(256).any(|window| window == b"<Error");
        match looks_like_error.then(|| xml::parse_error(body)).flatten() {
            Some(text) => Err(error::of_success(&self.answer, &text)),
            None => Ok(()),
        }
    }
}
