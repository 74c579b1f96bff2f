//! One worker's session: does one operation at a time on one HTTP client.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_driver::{
    ByteRange, Completion, ContentSink, ContentSource, DELETE_BATCH_MAX, DriverError, Operation,
    Session,
};
use plimsoll_http::{Body, Client, Exchange, ExchangeError, HostChooser, Request};
use plimsoll_model::{EndpointId, ErrorClass, Moment, SharedClock};

use crate::addressing::Target;
use crate::answer::{Answer, ContentAnswer, ContentState, DOCUMENT_BYTES_MAX, ERROR_BYTES_MAX};
use crate::digests::PayloadDigests;
use crate::request::{self, Call, Page, Requests};
use crate::xml::{self, ListedPage};
use crate::{S3Config, error};

/// A session of [`S3Driver`](crate::S3Driver).
pub struct S3Session {
    pub(crate) target: Arc<Target>,
    sign_payload: bool,
    content_md5: bool,
    client: Client,
    chooser: Rc<HostChooser>,
    clock: SharedClock,
    requests: Requests,
    endpoint: EndpointId,
    answer: Answer,
    page: ListedPage,
    /// The body of the request under way, where it is made here.
    body: Vec<u8>,
    /// Content on its way through a digest.
    piece: Vec<u8>,
}

/// How much of a listing is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) page_size: u32,
    pub(crate) recursive: bool,
    /// The most entries to hand on.
    pub(crate) entries_max: Option<u64>,
}

/// A request about the bucket itself.
#[derive(Clone, Copy)]
pub(crate) enum BucketCall {
    Head,
    Create,
}

/// Which byte of an answer counts as its first.
#[derive(Clone, Copy)]
enum FirstByte {
    OfAnswer,
    OfBody,
}

type Outcome = Result<Exchange, ExchangeError>;

/// Counts an operation as in flight at its endpoint, also when its future is dropped half-way.
struct Lease {
    chooser: Rc<HostChooser>,
    clock: SharedClock,
    endpoint: usize,
    begin: Moment,
    connect_failed: bool,
}

impl Lease {
    fn take(chooser: &Rc<HostChooser>, clock: &SharedClock) -> Self {
        let begin = clock.now();
        let endpoint = chooser.choose(begin);
        let (chooser, clock) = (chooser.clone(), clock.clone());
        Self { chooser, clock, endpoint, begin, connect_failed: false }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.chooser.done(self.endpoint, self.clock.now(), self.connect_failed);
    }
}

impl Session for S3Session {
    async fn execute(&mut self, operation: Operation<'_>) -> Completion {
        let mut lease = self.lease();
        match operation {
            Operation::Put { key, content } => self.put(&mut lease, key, content).await,
            Operation::Get { key, range, sink, .. } => self.get(&mut lease, key, range, sink).await,
            Operation::Stat { key, .. } => self.stat(&mut lease, key).await,
            Operation::Delete { keys } => self.delete(&mut lease, keys).await,
            Operation::List { prefix, page_size, sink } => {
                sink.restart();
                let listing = Listing { prefix, page_size, recursive: true, entries_max: None };
                let mut take = |key: &str, size| sink.entry(key, size);
                self.list(&mut lease, listing, &mut take).await
            }
            _ => {
                let now = self.clock.now();
                Completion::bare(self.endpoint, now, Err(DriverError::unsupported()))
            }
        }
    }

    fn endpoint(&self) -> EndpointId {
        self.endpoint
    }
}

impl S3Session {
    pub(crate) fn new(
        config: &S3Config,
        target: Arc<Target>,
        client: Client,
        chooser: Rc<HostChooser>,
        clock: SharedClock,
    ) -> Self {
        Self {
            requests: Requests::new(config, target.clone()),
            target,
            sign_payload: config.sign_payload,
            content_md5: config.content_md5,
            client,
            chooser,
            clock,
            endpoint: EndpointId(0),
            answer: Answer::default(),
            page: ListedPage::default(),
            body: Vec::new(),
            piece: Vec::new(),
        }
    }

    /// Does a request about the bucket itself, outside of what is measured.
    pub(crate) async fn call_bucket(&mut self, call: BucketCall) -> Completion {
        let mut lease = self.lease();
        self.body.clear();
        let (call, expected): (_, &[u16]) = match call {
            BucketCall::Head => (Call::HeadBucket, &[200]),
            BucketCall::Create => {
                if self.target.states_location() {
                    self.body.extend_from_slice(&request::location_body(&self.target.region));
                }
                (Call::CreateBucket { body_len: self.body.len() }, &[200])
            }
        };
        let digests = match self.body.is_empty() {
            true => PayloadDigests::NONE,
            false => PayloadDigests::of_bytes(&self.body, self.sign_payload),
        };
        let outcome = self.exchange(&lease, &call, &digests, ERROR_BYTES_MAX).await;
        self.complete(&mut lease, &outcome, FirstByte::OfAnswer, expected)
    }

    /// Lists outside of what is measured.
    pub(crate) async fn survey(
        &mut self,
        listing: Listing<'_>,
        take: &mut dyn FnMut(&str, u64),
    ) -> Completion {
        let mut lease = self.lease();
        self.list(&mut lease, listing, take).await
    }

    /// Removes up to [`DELETE_BATCH_MAX`] objects outside of what is measured.
    pub(crate) async fn remove<'k>(
        &mut self,
        keys: impl ExactSizeIterator<Item = &'k str>,
    ) -> Completion {
        let mut lease = self.lease();
        self.delete_many(&mut lease, keys).await
    }

    /// Returns what is kept of the body of the last answer.
    pub(crate) fn answer_body(&self) -> &[u8] {
        &self.answer.body
    }

    async fn put(
        &mut self,
        lease: &mut Lease,
        key: &str,
        content: &mut dyn ContentSource,
    ) -> Completion {
        let size = content.size();
        let (sign, md5) = (self.sign_payload, self.content_md5);
        let digests = PayloadDigests::of_content(content, sign, md5, &mut self.piece);
        self.render(lease, &Call::Put { key, size }, &digests);
        let mut fill = |offset: u64, buffer: &mut [u8]| content.fill(offset, buffer);
        let body =
            if size == 0 { Body::Empty } else { Body::Source { len: size, fill: &mut fill } };
        let request = Request { head: self.requests.head(), method_is_head: false, body };
        let sink = self.answer.expect(ERROR_BYTES_MAX);
        let outcome = self.client.exchange(lease.endpoint, request, sink).await;
        let mut completion = self.complete(lease, &outcome, FirstByte::OfAnswer, &[200]);
        completion.bytes = if completion.last_byte_sent.is_some() { size } else { 0 };
        completion
    }

    async fn get(
        &mut self,
        lease: &mut Lease,
        key: &str,
        range: Option<ByteRange>,
        content: &mut dyn ContentSink,
    ) -> Completion {
        self.render(lease, &Call::Get { key, range }, &PayloadDigests::NONE);
        let request =
            Request { head: self.requests.head(), method_is_head: false, body: Body::Empty };
        let answer = self.answer.expect(ERROR_BYTES_MAX);
        let mut sink = ContentAnswer { answer, content, range, state: ContentState::None };
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
                let wanted = range.map_or(body_bytes, |range| range.len);
                if completion.result.is_ok() && body_bytes != wanted {
                    let message = format!("asked for {wanted} bytes, the answer held {body_bytes}");
                    let status = self.answer.status;
                    completion.result =
                        Err(DriverError::with_status(ErrorClass::Truncated, status, message));
                }
            }
        }
        completion
    }

    async fn stat(&mut self, lease: &mut Lease, key: &str) -> Completion {
        let outcome =
            self.exchange(lease, &Call::Stat { key }, &PayloadDigests::NONE, ERROR_BYTES_MAX).await;
        let mut completion = self.complete(lease, &outcome, FirstByte::OfAnswer, &[200]);
        if completion.result.is_ok() {
            completion.object_size = self.answer.content_length;
        }
        completion
    }

    async fn delete(&mut self, lease: &mut Lease, keys: &[String]) -> Completion {
        match keys {
            [key] => self.delete_one(lease, key).await,
            _ => self.delete_many(lease, keys.iter().map(String::as_str)).await,
        }
    }

    async fn delete_one(&mut self, lease: &mut Lease, key: &str) -> Completion {
        let call = Call::Delete { key };
        let outcome = self.exchange(lease, &call, &PayloadDigests::NONE, ERROR_BYTES_MAX).await;
        let mut completion = self.complete(lease, &outcome, FirstByte::OfAnswer, &[204, 200]);
        // S3 answers 204 for a key that is not there; those that answer 404 mean the same.
        if completion.result.is_err()
            && self.answer.status == 404
            && xml::parse_error(&self.answer.body).is_some_and(|text| text.code == "NoSuchKey")
        {
            completion.result = Ok(());
            completion.objects_count = 1;
        }
        completion
    }

    async fn delete_many<'k>(
        &mut self,
        lease: &mut Lease,
        keys: impl ExactSizeIterator<Item = &'k str>,
    ) -> Completion {
        let keys_count = keys.len();
        assert!((1..=DELETE_BATCH_MAX).contains(&keys_count), "a batch holds 1 to 1000 keys");
        self.body.clear();
        request::push_delete_body(&mut self.body, keys);
        let digests = PayloadDigests::of_bytes(&self.body, self.sign_payload);
        let call = Call::DeleteMany { body_len: self.body.len() };
        let outcome = self.exchange(lease, &call, &digests, DOCUMENT_BYTES_MAX).await;
        let mut completion = self.complete(lease, &outcome, FirstByte::OfAnswer, &[200]);
        if completion.result.is_err() {
            return completion;
        }
        if self.answer.overflowed {
            completion.result = Err(error::of_document(&self.answer, ""));
            return completion;
        }
        match xml::parse_delete_result(&self.answer.body) {
            Err(why) => completion.result = Err(error::of_document(&self.answer, &why)),
            Ok(failures) => {
                if let Some(first) = &failures.first {
                    completion.result = Err(error::of_success(self.answer.status, first));
                }
                completion.objects_count = (keys_count as u32).saturating_sub(failures.count);
            }
        }
        completion
    }

    async fn list(
        &mut self,
        lease: &mut Lease,
        listing: Listing<'_>,
        take: &mut dyn FnMut(&str, u64),
    ) -> Completion {
        let mut token = String::new();
        let mut taken = 0;
        let mut first_byte = None;
        loop {
            let token_given = (!token.is_empty()).then_some(token.as_str());
            let mut completion = self.list_page(lease, listing, token_given).await;
            first_byte = first_byte.or(completion.first_byte);
            completion.first_byte = first_byte;
            if completion.result.is_ok() {
                let entries_max = listing.entries_max.unwrap_or(u64::MAX);
                let handed_on = self.page.for_each(|key, size| {
                    if taken < entries_max {
                        take(key, size);
                        taken += 1;
                    }
                    taken < entries_max
                });
                if let Err(why) = handed_on {
                    completion.result = Err(error::of_document(&self.answer, &why));
                }
            }
            completion.objects_count = u32::try_from(taken).unwrap_or(u32::MAX);
            let enough = listing.entries_max.is_some_and(|entries_max| taken >= entries_max);
            if completion.result.is_err() || !self.page.truncated || enough {
                return completion;
            }
            if self.page.next_token.is_empty() || self.page.next_token == token {
                let why = "the list is truncated but does not say how it goes on";
                completion.result = Err(error::of_document(&self.answer, why));
                return completion;
            }
            std::mem::swap(&mut token, &mut self.page.next_token);
        }
    }

    /// Gets one page into `self.page`.
    async fn list_page(
        &mut self,
        lease: &mut Lease,
        listing: Listing<'_>,
        token: Option<&str>,
    ) -> Completion {
        let Listing { prefix, page_size, recursive, .. } = listing;
        let call = Call::List(Page { prefix, page_size, recursive, token });
        let outcome = self.exchange(lease, &call, &PayloadDigests::NONE, DOCUMENT_BYTES_MAX).await;
        let mut completion = self.complete(lease, &outcome, FirstByte::OfBody, &[200]);
        if completion.result.is_ok() {
            let parsed = match self.answer.overflowed {
                true => Err(String::new()),
                false => self.page.parse(&self.answer.body),
            };
            if let Err(why) = parsed {
                completion.result = Err(error::of_document(&self.answer, &why));
            }
        }
        completion
    }

    /// Renders `call` and exchanges it with `self.body` where it has a body; the answer is then in
    /// `self.answer`.
    async fn exchange(
        &mut self,
        lease: &Lease,
        call: &Call<'_>,
        digests: &PayloadDigests,
        answer_bytes_max: usize,
    ) -> Outcome {
        self.render(lease, call, digests);
        let body = match call {
            Call::DeleteMany { .. } | Call::CreateBucket { .. } if !self.body.is_empty() => {
                Body::Bytes(&self.body)
            }
            _ => Body::Empty,
        };
        let method_is_head = call.method() == "HEAD";
        let request = Request { head: self.requests.head(), method_is_head, body };
        let sink = self.answer.expect(answer_bytes_max);
        self.client.exchange(lease.endpoint, request, sink).await
    }

    fn lease(&mut self) -> Lease {
        let lease = Lease::take(&self.chooser, &self.clock);
        let index = u16::try_from(lease.endpoint).expect("the endpoints are counted in 16 bits");
        self.endpoint = EndpointId(index);
        lease
    }

    fn render(&mut self, lease: &Lease, call: &Call<'_>, digests: &PayloadDigests) {
        let now = self.target.wall_epoch.after(lease.begin.since(Moment::EPOCH));
        self.requests.render(call, digests, lease.endpoint, now);
    }

    /// Judges an exchange by itself and by its status; what the answer holds beyond that is left to
    /// the caller.
    fn complete(
        &self,
        lease: &mut Lease,
        outcome: &Outcome,
        first_byte: FirstByte,
        expected: &[u16],
    ) -> Completion {
        let bare = |end, result| Completion::bare(self.endpoint, end, result);
        let exchange = match outcome {
            Ok(exchange) => exchange,
            Err(error) => {
                lease.connect_failed = error.kind.is_connect();
                return Completion {
                    // Of a broken answer the first byte of the body is not known, only that of the
                    // head.
                    first_byte: match first_byte {
                        FirstByte::OfAnswer => error.first_byte,
                        FirstByte::OfBody => None,
                    },
                    last_byte_sent: error.last_byte_sent,
                    ..bare(error.end, Err(error::of_exchange(error)))
                };
            }
        };
        let result = self.judge(exchange.status, expected);
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

    fn judge(&self, status: u16, expected: &[u16]) -> Result<(), DriverError> {
        if !expected.contains(&status) {
            return Err(error::of_answer(&self.answer));
        }
        // Content never gets here, so a body is empty, a document, or an error in spite of the
        // status.
        let looks_like_error =
            self.answer.body.windows(6).take(256).any(|window| window == b"<Error");
        match looks_like_error.then(|| xml::parse_error(&self.answer.body)).flatten() {
            Some(text) => Err(error::of_success(status, &text)),
            None => Ok(()),
        }
    }
}
