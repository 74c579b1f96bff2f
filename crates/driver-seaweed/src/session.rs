//! One worker's session: does one operation at a time.

use std::fmt::Write as _;
use std::rc::Rc;

use plimsoll_driver::{
    ByteRange, Completion, ContentSink, ContentSource, DriverError, Operation, Session, Settled,
};
use plimsoll_http::grpc::GrpcStream;
use plimsoll_http::{Body, Exchange, ExchangeError, Request};
use plimsoll_model::{EndpointId, ErrorClass};

use crate::answer::{Answer, ContentAnswer, ContentState, Upload};
use crate::cluster::{MASTERS, ServerIndex};
use crate::config::{AssignBy, UploadBy};
use crate::master::Assigned;
use crate::request::{FileRequest, Follows, frame};
use crate::thread::Thread;
use crate::{FileId, error, token};

/// Ids that were assigned before they are used.
struct Reserve {
    collection: Option<Box<str>>,
    assigned: Assigned,
    used: u64,
}

/// A session of [`SeaweedDriver`](crate::SeaweedDriver).
pub struct SeaweedSession {
    pub(crate) thread: Rc<Thread>,
    /// Over which ids are asked for, where they are asked for over a stream.
    stream: Option<GrpcStream>,
    /// The request for ids in the driver's own collection.
    request: Vec<u8>,
    reserve: Option<Reserve>,
    /// What stands behind the path of an upload.
    query: String,
    head: Vec<u8>,
    answer: Answer,
    endpoint: EndpointId,
    /// Which of several copies is read next.
    turn: usize,
}

/// What a token is for.
#[derive(Clone, Copy)]
enum TokenFor {
    Read,
    Delete,
}

/// Which byte of an answer counts as its first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstByte {
    OfAnswer,
    OfBody,
}

impl SeaweedSession {
    /// Returns the session with this number in its thread.
    pub(crate) fn new(thread: Rc<Thread>, number: usize) -> Self {
        let config = &thread.master.config;
        let mut query = String::new();
        if config.fsync {
            query.push_str("?fsync=true");
        }
        if !config.ttl.is_empty() {
            let sign = if query.is_empty() { '?' } else { '&' };
            write!(query, "{sign}ttl={}", config.ttl).expect("memory takes everything");
        }
        let request = thread.master.assign_request(&config.collection);
        Self {
            stream: None,
            request,
            reserve: None,
            query,
            head: Vec::new(),
            answer: Answer::default(),
            endpoint: MASTERS,
            turn: number,
            thread,
        }
    }

    fn ended(&self, result: Result<(), DriverError>) -> Completion {
        Completion::bare(self.endpoint, self.thread.clock.now(), result)
    }

    /// Returns an id for a file of this size.
    async fn assign(
        &mut self,
        collection: Option<&str>,
        size: u64,
    ) -> Result<Assigned, DriverError> {
        if let Some(assigned) = self.take_reserved(collection) {
            return Ok(assigned);
        }
        let assigned = self.ask_for_ids(collection, size).await?;
        if assigned.count > 1 {
            let collection = collection.map(Into::into);
            self.reserve = Some(Reserve { collection, assigned: assigned.clone(), used: 1 });
        }
        Ok(assigned)
    }

    fn take_reserved(&mut self, collection: Option<&str>) -> Option<Assigned> {
        let now = self.thread.wall_time().as_unix_ns() / 1_000_000_000;
        let reserve = self.reserve.as_mut().filter(|reserve| {
            let token = &reserve.assigned.token;
            // One that ends within the second might end on the way.
            let is_valid = token::expires_at(token).is_none_or(|end| now + 1 < end);
            let is_left = reserve.used < reserve.assigned.count;
            is_left && is_valid && reserve.collection.as_deref() == collection
        });
        let Some(reserve) = reserve else {
            self.reserve = None;
            return None;
        };
        let fid = reserve.assigned.fid.plus(reserve.used)?;
        reserve.used += 1;
        Some(Assigned { fid, count: 1, ..reserve.assigned.clone() })
    }

    async fn ask_for_ids(
        &mut self,
        collection: Option<&str>,
        size: u64,
    ) -> Result<Assigned, DriverError> {
        let master = &self.thread.master;
        let other = collection.map(|collection| master.assign_request(collection));
        let request = other.as_deref().unwrap_or(&self.request);
        match master.config.assign_by {
            AssignBy::Call => master.assign(request, size).await,
            AssignBy::Stream => master.assign_on(&mut self.stream, request, size).await,
            AssignBy::Http => {
                let path = master.assign_path(collection, size);
                self.ask_leader(&path).await?;
                let (token, body) = (self.answer.token.clone(), &self.answer.body);
                self.thread.master.assigned_by_http(body, token)
            }
        }
    }

    /// Asks the leader by HTTP; its answer is of success and in `self.answer`.
    async fn ask_leader(&mut self, path: &str) -> Result<(), DriverError> {
        let leader = self.thread.master.view().leader.http.clone();
        let mut client = self.thread.connection(&leader);
        let host = leader.authority(self.thread.options.tls.is_some());
        let path = format_args!("{path}");
        let request = FileRequest { method: "GET", path, query: "", host: &host, token: "" };
        request.render(Follows::Nothing, &mut self.head);
        let request = Request { head: &self.head, method_is_head: false, body: Body::Empty };
        let outcome = client.exchange(0, request, self.answer.expect()).await;
        self.thread.give_back(&leader, client);
        outcome.map_err(|failed| error::of_exchange(&failed))?;
        match self.answer.status {
            200 => Ok(()),
            status => Err(error::of_answer(status, &self.answer.body)),
        }
    }

    async fn put(
        &mut self,
        collection: Option<&str>,
        content: &mut dyn ContentSource,
    ) -> Completion {
        self.endpoint = MASTERS;
        let size = content.size();
        let assigned = match self.assign(collection, size).await {
            Ok(assigned) => assigned,
            Err(error) => return self.ended(Err(error)),
        };
        let Assigned { fid, server, .. } = assigned;
        self.endpoint = self.thread.master.cluster.endpoint(server);
        let (endpoint, host) = self.thread.server(server);
        let mut client = self.thread.connection(&endpoint);
        let is_form = self.thread.master.config.upload_by == UploadBy::Form;
        let mut upload = Upload::new(content, frame(is_form));
        let len = upload.len();
        let (method, follows) = match is_form {
            true => ("POST", Follows::Form(len)),
            false => ("PUT", Follows::Bytes(len)),
        };
        let path = format_args!("/{fid}");
        let (query, token) = (&self.query, &assigned.token);
        let request = FileRequest { method, path, query, host: &host, token };
        request.render(follows, &mut self.head);
        let mut fill = |offset: u64, buffer: &mut [u8]| upload.fill(offset, buffer);
        let body = if len == 0 { Body::Empty } else { Body::Source { len, fill: &mut fill } };
        let request = Request { head: &self.head, method_is_head: false, body };
        let outcome = client.exchange(0, request, self.answer.expect()).await;
        self.thread.give_back(&endpoint, client);
        // 204: the same content was there already.
        let mut done = self.complete(&outcome, &[201, 204], FirstByte::OfAnswer);
        done.bytes = if done.last_byte_sent.is_some() { size } else { 0 };
        if done.result.is_ok() {
            done.result = self.answer.check_stored(upload.crc());
            done.objects_count = u32::from(done.result.is_ok());
        }
        // What was stored wrong is there all the same, and has to be removed.
        let is_there = matches!(self.answer.status, 201 | 204);
        done.server_name = is_there.then(|| fid.to_string().into());
        done
    }

    async fn get(
        &mut self,
        name: Option<&str>,
        range: Option<ByteRange>,
        content: &mut dyn ContentSink,
    ) -> Completion {
        let follows = range.map_or(Follows::Nothing, Follows::Range);
        let (endpoint, mut client) = match self.begin("GET", name, TokenFor::Read, follows).await {
            Ok(begun) => begun,
            Err(error) => return self.ended(Err(error)),
        };
        let request = Request { head: &self.head, method_is_head: false, body: Body::Empty };
        let mut sink = ContentAnswer::new(self.answer.expect(), content, range);
        let outcome = client.exchange(0, request, &mut sink).await;
        let checked = sink.check_read();
        let state = sink.state;
        self.thread.give_back(&endpoint, client);
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
                    done.result = checked;
                }
            }
        }
        done.objects_count = u32::from(done.result.is_ok());
        done
    }

    async fn stat(&mut self, name: Option<&str>) -> Completion {
        let mut done = self.ask("HEAD", name, TokenFor::Read, &[200]).await;
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

    async fn delete(&mut self, name: &str) -> Completion {
        // 404: it was not there, so it is not there now.
        self.ask("DELETE", Some(name), TokenFor::Delete, &[202, 200, 204, 404]).await
    }

    /// Does a request about one file that has no body, and no content in its answer.
    async fn ask(
        &mut self,
        method: &'static str,
        name: Option<&str>,
        of: TokenFor,
        expected: &[u16],
    ) -> Completion {
        let (endpoint, mut client) = match self.begin(method, name, of, Follows::Nothing).await {
            Ok(begun) => begun,
            Err(error) => return self.ended(Err(error)),
        };
        let method_is_head = method == "HEAD";
        let request = Request { head: &self.head, method_is_head, body: Body::Empty };
        let outcome = client.exchange(0, request, self.answer.expect()).await;
        self.thread.give_back(&endpoint, client);
        self.complete(&outcome, expected, FirstByte::OfAnswer)
    }

    /// Renders a request about a file into `self.head`, and returns a connection to one of the
    /// servers that have it, the next in turn.
    async fn begin(
        &mut self,
        method: &'static str,
        name: Option<&str>,
        of: TokenFor,
        follows: Follows,
    ) -> Result<(plimsoll_http::Endpoint, plimsoll_http::Client), DriverError> {
        self.endpoint = MASTERS;
        let refused = |why: String| DriverError::new(ErrorClass::Client, why);
        let name = name.ok_or_else(|| {
            refused("SeaweedFS knows files by the ids that it gave them".to_owned())
        })?;
        let fid: FileId =
            name.parse().map_err(|error: crate::NoFileId| refused(error.to_string()))?;
        let server = self.find(fid).await?;
        let token = self.token(fid, of).await?;
        self.endpoint = self.thread.master.cluster.endpoint(server);
        let (endpoint, host) = self.thread.server(server);
        let path = format_args!("/{fid}");
        let request = FileRequest { method, path, query: "", host: &host, token: &token };
        request.render(follows, &mut self.head);
        let client = self.thread.connection(&endpoint);
        Ok((endpoint, client))
    }

    /// Returns the server to ask for a file.
    async fn find(&mut self, fid: FileId) -> Result<ServerIndex, DriverError> {
        let view = self.thread.master.servers_of(fid.volume).await?;
        let servers = view.servers_of(fid.volume);
        self.turn = self.turn.wrapping_add(1);
        let gone = || {
            let why = format!("no server has volume {}", fid.volume);
            DriverError::new(ErrorClass::NotFound, why)
        };
        servers.get(self.turn % servers.len().max(1)).copied().ok_or_else(gone)
    }

    /// Returns a token for one file, empty where none is wanted: signed here where the key is
    /// known, else the master's.
    async fn token(&mut self, fid: FileId, of: TokenFor) -> Result<String, DriverError> {
        let master = &self.thread.master;
        let (key, place, query) = match of {
            TokenFor::Read => (&master.read_key, 0, "&read=yes"),
            TokenFor::Delete => (&master.write_key, 1, ""),
        };
        if let Some(key) = key {
            return Ok(token::sign(key, &fid.to_string(), self.thread.wall_time()));
        }
        if self.thread.wants_tokens[place].get() == Some(false) {
            return Ok(String::new());
        }
        self.ask_leader(&format!("/dir/lookup?fileId={fid}{query}")).await?;
        self.thread.wants_tokens[place].set(Some(!self.answer.token.is_empty()));
        Ok(std::mem::take(&mut self.answer.token))
    }

    /// Judges an exchange by itself and by its status.
    fn complete(
        &self,
        outcome: &Result<Exchange, ExchangeError>,
        expected: &[u16],
        first_byte: FirstByte,
    ) -> Completion {
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
            true if exchange.is_early => {
                let why = format!("the server answered {status} before the content was sent");
                Err(error::of_success(status, why))
            }
            true => Ok(()),
            false => Err(error::of_answer(status, &self.answer.body)),
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

impl Session for SeaweedSession {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        match operation {
            Operation::Put { content, .. } => self.put(bucket, content).await,
            Operation::Get { range, version, sink, .. } => self.get(version, range, sink).await,
            Operation::Stat { version, .. } => self.stat(version).await,
            Operation::DeleteVersion { version, .. } => self.delete(version).await,
            _ => self.ended(Err(DriverError::unsupported())),
        }
    }

    fn endpoint(&self) -> EndpointId {
        self.endpoint
    }

    async fn settle(&mut self) -> Settled {
        Settled::default()
    }
}
