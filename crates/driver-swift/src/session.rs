//! One worker's session: does one operation at a time.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::{
    Completion, ContentSink, ContentSource, DriverError, Operation, Session, Settled,
};
use plimsoll_model::{EndpointId, ErrorClass, SharedClock};

use crate::answer::Wanted;
use crate::config;
use crate::large::Unfinished;
use crate::listing::{Listing, Version};
use crate::login::Ticket;
use crate::request::{Follows, Head, Upload, encoded};
use crate::wire::Wire;
use crate::{Shared, error};

/// What a server answers whose token has expired, or never was one.
const UNAUTHORIZED: u16 = 401;
/// What Ceph's gateway says where a container is not there.
const NO_CONTAINER: &str = "NoSuchBucket";

/// A session of [`SwiftDriver`](crate::SwiftDriver).
pub struct SwiftSession {
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: SharedClock,
    pub(crate) wire: Wire,
    ticket: Arc<Ticket>,
    /// How many requests of the operation were sent again.
    resent_count: u8,
    /// The path of what the next request is about.
    path: String,
    /// Uploads that are to be given up, because the operation that began them failed or was
    /// abandoned.
    pub(crate) unfinished: Vec<Unfinished>,
}

/// A request about what the path names.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'static str,
    /// The query, with its leading `?`; may be empty.
    pub(crate) query: &'a str,
    pub(crate) follows: Follows<'a>,
}

impl<'a> Call<'a> {
    pub(crate) fn plain(method: &'static str) -> Self {
        Self { method, query: "", follows: Follows::Nothing }
    }

    /// Returns a request that has no body and brings headers along.
    pub(crate) fn with(method: &'static str, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { method, query: "", follows: Follows::Headers(headers) }
    }
}

impl SwiftSession {
    pub(crate) fn new(shared: Arc<Shared>, clock: SharedClock, stall: Option<Duration>) -> Self {
        let (mut wire, ticket) = (shared.wire(&clock, stall), shared.login.current());
        wire.past = ticket.secrets();
        let (path, unfinished) = (String::new(), Vec::new());
        Self { shared, clock, wire, ticket, resent_count: 0, path, unfinished }
    }

    pub(crate) fn ended(&self, result: Result<(), DriverError>) -> Completion {
        Completion::bare(EndpointId(0), self.clock.now(), result)
    }

    /// Returns the container that is meant.
    pub(crate) fn container<'b>(&'b self, bucket: Option<&'b str>) -> &'b str {
        bucket.unwrap_or(&self.shared.config.container)
    }

    /// Makes the path of a container, of the account where its name is empty.
    pub(crate) fn set_container(&mut self, bucket: Option<&str>) -> Result<(), DriverError> {
        self.path.clone_from(&self.shared.storage.path);
        let container = bucket.unwrap_or(&self.shared.config.container);
        if !container.is_empty() {
            config::check_container(container)?;
            write!(self.path, "/{}", encoded(container)).expect("memory takes everything");
        }
        Ok(())
    }

    /// Makes the path of an object.
    pub(crate) fn set_key(&mut self, bucket: Option<&str>, key: &str) -> Result<(), DriverError> {
        config::check_container(bucket.unwrap_or(&self.shared.config.container))?;
        self.set_container(bucket)?;
        if key.is_empty() {
            return Err(DriverError::new(ErrorClass::Client, "no object has an empty name"));
        }
        write!(self.path, "/{}", encoded(key)).expect("memory takes everything");
        Ok(())
    }

    /// Makes the path of what the server tells anybody about itself.
    pub(crate) fn set_info(&mut self) {
        let storage = &self.shared.storage.path;
        let above = storage.find("/v1").map_or("", |at| &storage[..at]);
        self.path = format!("{above}/info");
    }

    fn render(&mut self, call: &Call<'_>) {
        let token = self.ticket.token.as_ref().map_or("", |token| token.expose());
        let Call { method, query, follows } = *call;
        let head = Head { method, path: &self.path, query, host: &self.shared.host, token };
        head.render(follows, &mut self.wire.head);
    }

    /// Tells whether a request is to be sent again, with a token that is new; changes what it came
    /// to where none is to be had.
    async fn is_renewed(&mut self, done: &mut Completion, sent_before: bool) -> bool {
        let is_refused = matches!(&done.result, Err(error) if error.status == Some(UNAUTHORIZED));
        if !is_refused || sent_before {
            return false;
        }
        let Shared { login, config, .. } = &*self.shared;
        // By a future of its own on the heap: it is large, and nearly never needed.
        let renewed = Box::pin(login.renew(&self.ticket, config, &self.clock)).await;
        done.end = self.clock.now();
        match renewed {
            Ok(ticket) => {
                self.wire.past = ticket.secrets();
                self.ticket = ticket;
                self.resent_count = self.resent_count.saturating_add(1);
                true
            }
            Err(error) => {
                done.result = Err(error);
                false
            }
        }
    }

    /// Does a request whose answer holds no content.
    pub(crate) async fn ask(
        &mut self,
        call: Call<'_>,
        body: &[u8],
        expected: &[u16],
        wanted: &'static [&'static str],
    ) -> Completion {
        let mut is_second = false;
        loop {
            self.render(&call);
            let is_head = call.method == "HEAD";
            let mut done = self.wire.ask(is_head, body, expected, wanted).await;
            if !self.is_renewed(&mut done, is_second).await {
                return done;
            }
            is_second = true;
        }
    }

    /// Reads a document.
    pub(crate) async fn read(&mut self, query: &str, bytes_max: usize) -> Completion {
        let call = Call { method: "GET", query, follows: Follows::Document };
        let mut is_second = false;
        loop {
            self.render(&call);
            let mut done = self.wire.read(bytes_max).await;
            if !self.is_renewed(&mut done, is_second).await {
                return done;
            }
            is_second = true;
        }
    }

    /// Sends content.
    pub(crate) async fn send(&mut self, content: &mut dyn ContentSource) -> Completion {
        let (is_chunked, sums) = (self.shared.config.chunked, self.shared.config.checks_md5);
        let mut is_second = false;
        loop {
            let mut upload = Upload::new(content, is_chunked, sums);
            self.render(&Call { method: "PUT", query: "", follows: upload.follows() });
            let mut done = self.wire.send(&mut upload).await;
            if !self.is_renewed(&mut done, is_second).await {
                return done;
            }
            is_second = true;
        }
    }

    /// Receives content.
    async fn receive(
        &mut self,
        query: &str,
        wanted: Wanted,
        sink: &mut dyn ContentSink,
    ) -> Completion {
        let follows = match wanted {
            Wanted::Range(range) => Follows::Range(range),
            Wanted::Whole | Wanted::Segment => Follows::Nothing,
        };
        let mut is_second = false;
        loop {
            self.render(&Call { method: "GET", query, follows });
            let mut done = self.wire.receive(wanted, sink).await;
            if !self.is_renewed(&mut done, is_second).await {
                return done;
            }
            is_second = true;
        }
    }

    async fn put(
        &mut self,
        bucket: Option<&str>,
        key: &str,
        content: &mut dyn ContentSource,
    ) -> Completion {
        let segment = self.shared.config.segment_bytes;
        if let Some(segment) = segment.filter(|segment| content.size() > *segment) {
            return Box::pin(self.put_in_segments(bucket, key, content, segment)).await;
        }
        match self.set_key(bucket, key) {
            Err(error) => self.ended(Err(error)),
            Ok(()) => self.send(content).await,
        }
    }

    async fn get(
        &mut self,
        bucket: Option<&str>,
        key: &str,
        wanted: Wanted,
        sink: &mut dyn ContentSink,
    ) -> Completion {
        match self.set_key(bucket, key) {
            Err(error) => self.ended(Err(error)),
            Ok(()) => self.receive("", wanted, sink).await,
        }
    }

    async fn get_segment(
        &mut self,
        bucket: Option<&str>,
        key: &str,
        number: u32,
        sink: &mut dyn ContentSink,
    ) -> Completion {
        match self.set_key(bucket, key) {
            Err(error) => self.ended(Err(error)),
            Ok(()) => self.receive(&format!("?part-number={number}"), Wanted::Segment, sink).await,
        }
    }

    async fn stat(&mut self, bucket: Option<&str>, key: &str) -> Completion {
        if let Err(error) = self.set_key(bucket, key) {
            return self.ended(Err(error));
        }
        let mut done = self.ask(Call::plain("HEAD"), &[], &[200, 204], &[]).await;
        if done.result.is_ok() {
            done.object_size = self.wire.answer.content_length;
            if done.object_size.is_none() {
                let why = "the answer does not state the object's size (Content-Length)";
                done.result = Err(error::of_success(self.wire.answer.status, why));
                done.objects_count = 0;
            }
        }
        done
    }

    /// Removes an object with its segments, if it has these.
    pub(crate) async fn delete(&mut self, bucket: Option<&str>, key: &str) -> Completion {
        match self.shared.config.has_segments {
            true => Box::pin(self.delete_whole(bucket, key)).await,
            false => self.delete_alone(bucket, key).await,
        }
    }

    /// Removes what lies under a name, whatever it stands for.
    pub(crate) async fn delete_alone(&mut self, bucket: Option<&str>, key: &str) -> Completion {
        match self.set_key(bucket, key) {
            Err(error) => self.ended(Err(error)),
            Ok(()) => self.remove(Call::plain("DELETE")).await,
        }
    }

    /// Removes a version of an object, or a mark of its deletion.
    pub(crate) async fn delete_version(
        &mut self,
        container: &str,
        version: &Version,
    ) -> Completion {
        match self.set_key(Some(container), &version.name) {
            Err(error) => self.ended(Err(error)),
            Ok(()) => {
                let query = format!("?version-id={}", encoded(&version.version_id));
                let call = Call { query: &query, ..Call::plain("DELETE") };
                self.remove(call).await
            }
        }
    }

    /// Does a request that removes an object. One that was not there (404) is not there now; where
    /// its container is not, nothing is known of it. Ceph's gateway says which of them is missing,
    /// Swift answers both alike.
    pub(crate) async fn remove(&mut self, call: Call<'_>) -> Completion {
        let mut done = self.ask(call, &[], &[200, 204, 404], &[]).await;
        let (status, words) = (self.wire.answer.status, self.wire.words());
        let is_lost = words.contains(NO_CONTAINER);
        if status == 404 && is_lost {
            (done.result, done.objects_count) =
                (Err(error::of_answer(status, words.as_bytes())), 0);
        }
        done
    }

    /// Removes objects one after the other; what fails keeps none of the others.
    async fn delete_many(&mut self, bucket: Option<&str>, keys: &[String]) -> Completion {
        let (mut all, mut count) = (None::<Completion>, 0);
        for key in keys {
            let mut done = self.delete(bucket, key).await;
            count += done.objects_count;
            if let Some(before) = all {
                done.first_byte = before.first_byte.or(done.first_byte);
                done.result = before.result.and(done.result);
            }
            all = Some(done);
        }
        let done = all.unwrap_or_else(|| self.ended(Ok(())));
        Completion { objects_count: count, ..done }
    }

    async fn execute_rare(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        match operation {
            Operation::Delete { keys } => self.delete_many(bucket, keys).await,
            Operation::GetPart { key, number, sink } => {
                self.get_segment(bucket, key, number, sink).await
            }
            Operation::CreateUpload { .. } => self.create_upload(),
            Operation::PutPart { key, upload, number, content } => {
                self.put_segment(bucket, key, upload, number, content).await
            }
            Operation::CompleteUpload { key, upload, parts } => {
                self.complete_upload(bucket, key, upload, parts).await
            }
            Operation::AbortUpload { key, upload } => self.abort_upload(bucket, key, upload).await,
            _ => self.ended(Err(DriverError::unsupported())),
        }
    }
}

impl Session for SwiftSession {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        self.resent_count = 0;
        let done = match operation {
            Operation::Put { key, content } => self.put(bucket, key, content).await,
            Operation::Get { key, range, version: None, sink } => {
                let wanted = range.map_or(Wanted::Whole, Wanted::Range);
                self.get(bucket, key, wanted, sink).await
            }
            Operation::Stat { key, version: None } => self.stat(bucket, key).await,
            Operation::Delete { keys: [key] } => self.delete(bucket, key).await,
            Operation::List { prefix, page_size, pages_max, sink } => {
                sink.restart();
                let listing = Listing { prefix, page_size, pages_max, ..Listing::default() };
                let mut take = |key: &str, size| {
                    sink.entry(key, size);
                    true
                };
                Box::pin(self.list(bucket, listing, &mut take)).await
            }
            // The rest in a future of its own, so that those above stay small.
            rare => Box::pin(self.execute_rare(bucket, rare)).await,
        };
        Completion { resent_count: self.resent_count, ..done }
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }

    /// Removes the segments of uploads whose operations failed.
    async fn settle(&mut self) -> Settled {
        match self.unfinished.is_empty() {
            true => Settled::default(),
            false => Box::pin(self.give_up()).await,
        }
    }
}
