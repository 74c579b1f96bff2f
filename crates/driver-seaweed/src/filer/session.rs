//! One worker's session with a filer: does one operation at a time.

use std::rc::Rc;

use plimsoll_driver::{
    ByteRange, Completion, ContentSink, ContentSource, DriverError, Operation, Session,
};
use plimsoll_http::Client;
use plimsoll_model::{EndpointId, ErrorClass};

use super::listing::Listing;
use super::path::{self, PathError};
use super::thread::{FilerThread, TokenFor};
use crate::answer::Upload;
use crate::request::{FileRequest, Follows, frame};
use crate::sum::SumKind;
use crate::wire::Wire;

/// What stands behind the path of a removal. Said in full: a filer may be set up to remove all that
/// lies below a directory where nothing is said.
const ALONE: &str = "?recursive=false";

/// A session of [`FilerDriver`](crate::FilerDriver).
pub struct FilerSession {
    pub(super) thread: Rc<FilerThread>,
    pub(super) client: Client,
    /// The place of its filer.
    pub(super) host: usize,
    pub(super) wire: Wire,
    /// The path of what the next request is about.
    path: String,
}

impl FilerSession {
    pub(super) fn new(thread: Rc<FilerThread>, host: usize) -> Self {
        let endpoint = EndpointId(u16::try_from(host).expect("there are fewer filers"));
        let (client, wire) = (thread.client(), Wire::new(endpoint));
        Self { thread, client, host, wire, path: String::new() }
    }

    pub(super) fn ended(&self, result: Result<(), DriverError>) -> Completion {
        Completion::bare(self.wire.endpoint, self.thread.clock.now(), result)
    }

    /// Makes the path of a directory: that of all keys, or the one that is named, and what stands
    /// below it.
    pub(super) fn set_directory(
        &mut self,
        bucket: Option<&str>,
        below: &str,
    ) -> Result<(), DriverError> {
        self.path.clear();
        match bucket {
            None => self.path.push_str(&self.thread.root),
            Some(bucket) => path::push(&mut self.path, &path::directory(bucket).map_err(refused)?),
        }
        if !below.is_empty() {
            let below = below.strip_suffix('/').unwrap_or(below);
            path::judge(below).map_err(refused)?;
            path::push(&mut self.path, below);
        }
        Ok(())
    }

    /// Makes the path of a key.
    pub(super) fn set_key(&mut self, bucket: Option<&str>, key: &str) -> Result<(), DriverError> {
        path::judge(key).map_err(refused)?;
        self.set_directory(bucket, key)
    }

    /// Renders a request about what the path names.
    pub(super) fn begin(
        &mut self,
        method: &'static str,
        query: &str,
        of: TokenFor,
        follows: Follows,
    ) {
        let token = self.thread.token(of);
        let (path, host) = (&self.path, &self.thread.hosts[self.host]);
        let path = format_args!("{path}");
        let request = FileRequest { method, path, query, host, token: &token };
        request.render(follows, &mut self.wire.head);
    }

    async fn put(
        &mut self,
        bucket: Option<&str>,
        key: &str,
        content: &mut dyn ContentSource,
    ) -> Completion {
        if let Err(error) = self.set_key(bucket, key) {
            return self.ended(Err(error));
        }
        // A filer states the MD5 of what it was sent, also of what it cuts into chunks.
        let mut upload = Upload::new(content, frame(false), SumKind::Md5);
        let thread = Rc::clone(&self.thread);
        self.begin("PUT", &thread.put_query, TokenFor::Write, Follows::Bytes(upload.len()));
        self.wire.send(&mut self.client, self.host, &mut upload, &[201]).await
    }

    async fn get(
        &mut self,
        bucket: Option<&str>,
        key: &str,
        range: Option<ByteRange>,
        content: &mut dyn ContentSink,
    ) -> Completion {
        if let Err(error) = self.set_key(bucket, key) {
            return self.ended(Err(error));
        }
        let follows = range.map_or(Follows::Nothing, Follows::Range);
        self.begin("GET", "", TokenFor::Read, follows);
        let sum = self.thread.config.sums_reads.then_some(SumKind::Md5);
        self.wire.receive(&mut self.client, self.host, range, content, sum).await
    }

    async fn stat(&mut self, bucket: Option<&str>, key: &str) -> Completion {
        if let Err(error) = self.set_key(bucket, key) {
            return self.ended(Err(error));
        }
        self.begin("HEAD", "", TokenFor::Read, Follows::Nothing);
        let done = self.wire.ask(&mut self.client, self.host, true, &[200]).await;
        self.wire.with_size(done)
    }

    pub(super) async fn delete(&mut self, bucket: Option<&str>, key: &str) -> Completion {
        if let Err(error) = self.set_key(bucket, key) {
            return self.ended(Err(error));
        }
        self.begin("DELETE", ALONE, TokenFor::Write, Follows::Nothing);
        // 404: it was not there, so it is not there now.
        self.wire.ask(&mut self.client, self.host, false, &[204, 200, 202, 404]).await
    }

    /// Removes files one after the other, since a filer knows no call for many; what fails keeps
    /// none of the others.
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
}

fn refused(error: PathError) -> DriverError {
    DriverError::new(ErrorClass::Client, error.to_string())
}

impl Session for FilerSession {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        match operation {
            Operation::Put { key, content } => self.put(bucket, key, content).await,
            Operation::Get { key, range, version: None, sink } => {
                self.get(bucket, key, range, sink).await
            }
            Operation::Stat { key, version: None } => self.stat(bucket, key).await,
            Operation::Delete { keys: [key] } => self.delete(bucket, key).await,
            Operation::Delete { keys } => Box::pin(self.delete_many(bucket, keys)).await,
            Operation::List { prefix, page_size, pages_max, sink } => {
                sink.restart();
                let listing = Listing { prefix, page_size, pages_max, goes_down: true };
                let mut take = |key: &str, size| {
                    sink.entry(key, size);
                    true
                };
                Box::pin(self.list(bucket, listing, &mut take)).await
            }
            _ => self.ended(Err(DriverError::unsupported())),
        }
    }

    fn endpoint(&self) -> EndpointId {
        self.wire.endpoint
    }
}
