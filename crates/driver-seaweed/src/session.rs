//! One worker's session: does one operation at a time.

use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_driver::{
    ByteRange, Completion, ContentSink, ContentSource, DriverError, Operation, Session, Settled,
};
use plimsoll_http::grpc::GrpcStream;
use plimsoll_model::{EndpointId, ErrorClass};

use crate::answer::Upload;
use crate::calls::{self, DirStatus};
use crate::cluster::{MASTERS, ServerIndex};
use crate::config::{AssignBy, UploadBy};
use crate::master::Assigned;
use crate::request::{FileRequest, Follows, frame};
use crate::sum::SumKind;
use crate::thread::Thread;
use crate::wire::Wire;
use crate::{FileId, error, master, token};

/// How long what failed writes left is cleaned up; the sweep of the run finds the rest.
const SETTLE_MAX: Duration = Duration::from_secs(5);
/// When it is asked again for an id while volumes are being made; then the next write tells.
const GROWTH_PAUSES: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
];

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
    wire: Wire,
    /// Which of several copies is read next.
    turn: usize,
    /// The volume of the file that is asked about, and the server that is asked.
    asked: Option<(u32, ServerIndex)>,
    /// Files whose upload was begun and came to no answer, so that nobody knows whether they are
    /// there.
    unsettled: Vec<FileId>,
    /// The collection for which the last write found that volumes are being made; `None` in it is
    /// the driver's own.
    growing: Option<Option<Box<str>>>,
}

/// What a token is for.
#[derive(Clone, Copy)]
enum TokenFor {
    Read,
    /// Or a removal.
    Write,
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
            wire: Wire::new(MASTERS),
            turn: number,
            asked: None,
            unsettled: Vec::new(),
            growing: None,
            thread,
        }
    }

    pub(crate) fn ended(&self, result: Result<(), DriverError>) -> Completion {
        Completion::bare(self.wire.endpoint, self.thread.clock.now(), result)
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
        let before = reserve.used;
        let fid = reserve.assigned.fid.plus(before)?;
        reserve.used += 1;
        Some(Assigned { fid, before, count: 1, ..reserve.assigned.clone() })
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
                let (token, body) = (self.wire.answer.token.clone(), &self.wire.answer.body);
                self.thread.master.assigned_by_http(body, token)
            }
        }
    }

    /// Asks the leader by HTTP; its answer is of success and in the wire's.
    async fn ask_leader(&mut self, path: &str) -> Result<(), DriverError> {
        let leader = self.thread.master.view().leader.http.clone();
        let mut client = self.thread.master_connection(&leader);
        let host = leader.authority(self.thread.master_options.tls.is_some());
        let path = format_args!("{path}");
        let request = FileRequest { method: "GET", path, query: "", host: &host, token: "" };
        request.render(Follows::Nothing, &mut self.wire.head);
        let done = self.wire.ask(&mut client, 0, false, &[200]).await;
        self.thread.give_back(&leader, client);
        done.result
    }

    async fn put(
        &mut self,
        collection: Option<&str>,
        content: &mut dyn ContentSource,
    ) -> Completion {
        self.wire.endpoint = MASTERS;
        let size = content.size();
        let assigned = match self.assign(collection, size).await {
            Ok(assigned) => assigned,
            Err(error) => {
                self.growing = error::passes(&error).then(|| collection.map(Into::into));
                return self.ended(Err(error));
            }
        };
        let assigned_at = self.thread.clock.now();
        let done = match self.note(assigned.fid) {
            Ok(()) => self.upload(assigned, content).await,
            Err(error) => self.ended(Err(error)),
        };
        if done.result.is_err() {
            // The ids assigned with it are of the same volume, which may be full or gone by now.
            self.reserve = None;
        }
        Completion { assigned: Some(assigned_at), ..done }
    }

    /// Returns an id that is noted, with nothing under it yet.
    pub(crate) async fn reserve_id(&mut self) -> Result<FileId, DriverError> {
        let fid = self.assign(None, 0).await?.fid;
        self.note(fid)?;
        Ok(fid)
    }

    /// Writes a file whose id was given before, over what is under it.
    pub(crate) async fn put_over(
        &mut self,
        fid: FileId,
        content: &mut dyn ContentSource,
    ) -> Completion {
        self.wire.endpoint = MASTERS;
        let server = match self.find(fid).await {
            Ok(server) => server,
            Err(error) => return self.ended(Err(error)),
        };
        let token = match self.token(fid, TokenFor::Write).await {
            Ok(token) => token,
            Err(error) => return self.ended(Err(error)),
        };
        let done = self.upload(Assigned { fid, before: 0, count: 1, token, server }, content).await;
        // Whatever became of it, it is for whoever gave the name to remove it.
        self.unsettled.clear();
        done
    }

    fn note(&self, fid: FileId) -> Result<(), DriverError> {
        self.thread.journal.note(fid).map_err(|error| {
            let why = format!("cannot note the file id: {error}");
            DriverError::new(ErrorClass::Io, why)
        })
    }

    /// Writes a file whose id is noted.
    async fn upload(&mut self, assigned: Assigned, content: &mut dyn ContentSource) -> Completion {
        let Assigned { fid, before, server, .. } = assigned;
        self.unsettled.push(fid);
        self.wire.endpoint = self.thread.master.cluster.endpoint(server);
        let (endpoint, host) = self.thread.server(server);
        let mut client = self.thread.connection(&endpoint);
        let is_form = self.thread.master.config.upload_by == UploadBy::Form;
        let mut upload = Upload::new(content, frame(is_form), SumKind::Crc32c);
        let len = upload.len();
        let (method, follows) = match is_form {
            true => ("POST", Follows::Form(len)),
            false => ("PUT", Follows::Bytes(len)),
        };
        // The token of ids that were assigned together names the first of them.
        let first = FileId { key: fid.key - before, ..fid };
        let path = match before {
            0 => format_args!("/{first}"),
            _ => format_args!("/{first}_{before}"),
        };
        let (query, token) = (&self.query, &assigned.token);
        let request = FileRequest { method, path, query, host: &host, token };
        request.render(follows, &mut self.wire.head);
        // 204: the same content was there already.
        let done = self.wire.send(&mut client, 0, &mut upload, &[201, 204]).await;
        self.thread.give_back(&endpoint, client);
        // What was stored wrong is there all the same, and has to be removed.
        let is_there = matches!(self.wire.answer.status, 201 | 204);
        if self.wire.is_whole {
            self.unsettled.pop();
        }
        let server_name = is_there.then(|| fid.to_string().into());
        Completion { server_name, ..done }
    }

    async fn get(
        &mut self,
        name: &str,
        range: Option<ByteRange>,
        content: &mut dyn ContentSink,
    ) -> Completion {
        let follows = range.map_or(Follows::Nothing, Follows::Range);
        let (endpoint, mut client) = match self.begin("GET", name, TokenFor::Read, follows).await {
            Ok(begun) => begun,
            Err(error) => return self.ended(Err(error)),
        };
        let sum = Some(SumKind::Crc32c);
        let done = self.wire.receive(&mut client, 0, range, content, sum).await;
        self.note_reach(&done);
        self.thread.give_back(&endpoint, client);
        done
    }

    async fn stat(&mut self, name: &str) -> Completion {
        let done = self.ask("HEAD", name, TokenFor::Read, &[200]).await;
        self.wire.with_size(done)
    }

    async fn delete(&mut self, name: &str) -> Completion {
        // 404: it was not there, so it is not there now.
        self.ask("DELETE", name, TokenFor::Write, &[202, 200, 204, 404]).await
    }

    async fn delete_many(&mut self, names: &[String]) -> Completion {
        self.wire.endpoint = MASTERS;
        let fids: Result<Vec<FileId>, _> = names.iter().map(|name| name.parse()).collect();
        let fids = match fids {
            Ok(fids) => fids,
            Err(error) => {
                let error = DriverError::new(ErrorClass::Client, error.to_string());
                return self.ended(Err(error));
            }
        };
        let removed = self.thread.remove_all(&fids).await;
        // As of one file: what no server has was not removed.
        let count = removed.count.saturating_sub(removed.nowhere as u32);
        let result = removed.result.and(match removed.nowhere {
            0 => Ok(()),
            nowhere => {
                let why = format!("no server has the volumes of {nowhere} of the files");
                Err(DriverError::new(ErrorClass::NotFound, why))
            }
        });
        Completion { objects_count: count, ..self.ended(result) }
    }

    async fn settle_all(&mut self) -> Settled {
        let mut settled = Settled::default();
        let each = async {
            while let Some(fid) = self.unsettled.last().copied() {
                match self.delete(&fid.to_string()).await.result {
                    Ok(()) => settled.given_up_count += 1,
                    Err(_) => settled.left_count += 1,
                }
                self.unsettled.pop();
            }
        };
        // A server that does not answer this either is not waited for.
        let _ = tokio::time::timeout(SETTLE_MAX, each).await;
        settled.left_count += self.unsettled.drain(..).count() as u64;
        if let Some(collection) = self.growing.take() {
            let waits: Duration = GROWTH_PAUSES.iter().sum();
            let _ = tokio::time::timeout(waits + SETTLE_MAX, self.await_growth(collection)).await;
        }
        settled
    }

    /// Waits until a collection can be written to, with a limit.
    pub(crate) async fn await_volumes(
        &mut self,
        collection: Option<&str>,
    ) -> Result<(), DriverError> {
        let started = self.thread.clock.now();
        loop {
            let Err(error) = self.ask_for_ids(collection, 0).await else { return Ok(()) };
            // A master answers likewise whether volumes are on their way or can never be made.
            if matches!(error.class, ErrorClass::Growing | ErrorClass::Server)
                && let Some(lack) = self.lacks_places().await
            {
                return Err(DriverError { class: ErrorClass::Client, message: lack, ..error });
            }
            if error.class != ErrorClass::Growing {
                return Err(error);
            }
            let config = &self.thread.master.config;
            let waited = self.thread.clock.now().since(started);
            if waited >= config.growth_timeout {
                let why = format!(
                    "in {} s no volume was made for collection `{}`, replication {}: there may be \
                     too few servers, racks or data centers for so many copies, or too few free \
                     volumes (`-max` of volume servers); the master says: {}",
                    config.growth_timeout.as_secs_f64(),
                    collection.unwrap_or(&config.collection),
                    if config.replication.is_empty() { "by default" } else { &config.replication },
                    error.message
                );
                return Err(DriverError { message: why, ..error });
            }
            #[expect(clippy::disallowed_methods, reason = "nothing is measured yet")]
            tokio::time::sleep(GROWTH_PAUSES[4].min(config.growth_timeout)).await;
        }
    }

    /// Returns why volumes can never be made as they are asked for, where that is so.
    async fn lacks_places(&self) -> Option<String> {
        let Thread { master, clock, .. } = &*self.thread;
        let leader = master.view().leader.clone();
        let status = calls::read::<DirStatus>(&master.config, clock, &leader, "/dir/status").await;
        status.ok()?.topology.lacks(&master.config)
    }

    /// Waits a while for volumes that are being made, and keeps an id on the first of them.
    async fn await_growth(&mut self, collection: Option<Box<str>>) {
        for pause in GROWTH_PAUSES {
            #[expect(clippy::disallowed_methods, reason = "this takes time of no operation")]
            tokio::time::sleep(pause).await;
            match self.ask_for_ids(collection.as_deref(), 0).await {
                Ok(assigned) => {
                    self.reserve = Some(Reserve { collection, assigned, used: 0 });
                    return;
                }
                Err(error) if error::passes(&error) => {}
                Err(_) => return,
            }
        }
    }

    /// Does a request about one file that has no body, and no content in its answer.
    async fn ask(
        &mut self,
        method: &'static str,
        name: &str,
        of: TokenFor,
        expected: &[u16],
    ) -> Completion {
        let (endpoint, mut client) = match self.begin(method, name, of, Follows::Nothing).await {
            Ok(begun) => begun,
            Err(error) => return self.ended(Err(error)),
        };
        let done = self.wire.ask(&mut client, 0, method == "HEAD", expected).await;
        self.thread.give_back(&endpoint, client);
        self.note_reach(&done);
        done
    }

    /// Where the server that was asked is not reached, another one is next time. The news of a
    /// server that is gone may have come before an older answer that still names it.
    fn note_reach(&mut self, done: &Completion) {
        let is_lost = done.result.as_ref().is_err_and(|error| error.class == ErrorClass::Connect);
        if let Some((volume, server)) = self.asked.take().filter(|_| is_lost) {
            self.thread.master.cluster.not_reached(volume, server);
        }
    }

    /// Renders a request about a file into the wire's head, and returns a connection to one of the
    /// servers that have it, the next in turn.
    async fn begin(
        &mut self,
        method: &'static str,
        name: &str,
        of: TokenFor,
        follows: Follows,
    ) -> Result<(plimsoll_http::Endpoint, plimsoll_http::Client), DriverError> {
        self.wire.endpoint = MASTERS;
        let refused = |why: String| DriverError::new(ErrorClass::Client, why);
        let fid: FileId =
            name.parse().map_err(|error: crate::NoFileId| refused(error.to_string()))?;
        let server = self.find(fid).await?;
        self.asked = Some((fid.volume, server));
        let token = self.token(fid, of).await?;
        self.wire.endpoint = self.thread.master.cluster.endpoint(server);
        let (endpoint, host) = self.thread.server(server);
        let path = format_args!("/{fid}");
        let request = FileRequest { method, path, query: "", host: &host, token: &token };
        request.render(follows, &mut self.wire.head);
        let client = self.thread.connection(&endpoint);
        Ok((endpoint, client))
    }

    /// Returns the server to ask for a file.
    async fn find(&mut self, fid: FileId) -> Result<ServerIndex, DriverError> {
        let view = self.thread.master.servers_of(fid.volume).await?;
        let servers = view.servers_of(fid.volume);
        self.turn = self.turn.wrapping_add(1);
        let gone = || master::no_server(&view, fid.volume);
        servers.get(self.turn % servers.len().max(1)).copied().ok_or_else(gone)
    }

    /// Returns a token for one file, empty where none is wanted: signed here where the key is
    /// known, else the master's.
    async fn token(&mut self, fid: FileId, of: TokenFor) -> Result<String, DriverError> {
        let master = &self.thread.master;
        let (key, place, query) = match of {
            TokenFor::Read => (&master.read_key, 0, "&read=yes"),
            TokenFor::Write => (&master.write_key, 1, ""),
        };
        if let Some(key) = key {
            return Ok(token::sign(key, Some(&fid.to_string()), self.thread.wall_time()));
        }
        if self.thread.wants_tokens[place].get() == Some(false) {
            return Ok(String::new());
        }
        let asked = self.ask_leader(&format!("/dir/lookup?fileId={fid}{query}")).await;
        asked.map_err(|error| match error.class {
            // The master knows already that a server is gone which was there a moment ago.
            ErrorClass::NotFound => master::away(fid.volume),
            _ => error,
        })?;
        self.thread.wants_tokens[place].set(Some(!self.wire.answer.token.is_empty()));
        Ok(std::mem::take(&mut self.wire.answer.token))
    }
}

impl Session for SeaweedSession {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        match operation {
            Operation::Put { content, .. } => self.put(bucket, content).await,
            Operation::Get { key, range, version, sink } => {
                self.get(version.unwrap_or(key), range, sink).await
            }
            Operation::Stat { key, version } => self.stat(version.unwrap_or(key)).await,
            Operation::DeleteVersion { version, .. } => self.delete(version).await,
            Operation::Delete { keys: [name] } => self.delete(name).await,
            Operation::Delete { keys } => Box::pin(self.delete_many(keys)).await,
            _ => self.ended(Err(DriverError::unsupported())),
        }
    }

    fn endpoint(&self) -> EndpointId {
        self.wire.endpoint
    }

    /// Removes files of which nobody knows whether they were stored, and waits a while for volumes
    /// that are being made.
    async fn settle(&mut self) -> Settled {
        match self.unsettled.is_empty() && self.growing.is_none() {
            true => Settled::default(),
            false => Box::pin(self.settle_all()).await,
        }
    }
}
