//! Uploads in parts: each step by itself, and an object that is written in parts as one operation.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use plimsoll_driver::{Completion, ContentSource, DriverError, Settled};
use plimsoll_model::{ErrorClass, Moment};

use crate::addressing::Place;
use crate::answer::ERROR_BYTES_MAX;
use crate::connection::{Connection, Lease};
use crate::s3_request::S3Request;
use crate::session::S3Session;
use crate::{error, request, xml};

/// How long giving up the uploads behind a failed operation may take.
const GIVE_UP_MAX: Duration = Duration::from_secs(5);
/// How many uploads of failed attempts are remembered until they are given up: an operation has at
/// most 256 attempts.
const UNFINISHED_COUNT_MAX: usize = 256;

/// An upload that has begun and is neither complete nor given up.
pub(crate) struct Unfinished {
    place: Arc<Place>,
    key: String,
    upload: String,
}

impl Connection {
    /// Begins an upload; the completion's tag names it.
    pub(crate) async fn create_upload(&mut self, lease: &Lease, key: &str) -> Completion {
        let mut completion = self.call(lease, &S3Request::CreateUpload { key }, &[200]).await;
        if completion.result.is_ok() {
            let path = "InitiateMultipartUploadResult/UploadId";
            match xml::parse_value(&self.answer.body, path).filter(|upload| !upload.is_empty()) {
                Some(upload) => completion.server_name = Some(upload.into()),
                None => {
                    let why = "it names no upload";
                    completion.result = Err(error::of_document(&self.answer, why));
                }
            }
        }
        completion
    }

    /// Writes one part; the completion's tag is the part's.
    pub(crate) async fn put_part(
        &mut self,
        lease: &Lease,
        key: &str,
        upload: &str,
        number: u32,
        content: &mut dyn ContentSource,
    ) -> Completion {
        let call = S3Request::PutPart { key, upload, number, size: content.size() };
        let mut completion = self.send(lease, &call, content).await;
        if completion.result.is_ok() && completion.server_name.is_none() {
            let message = "the part was taken without an ETag, so no object can be made of it";
            let status = self.answer.status;
            completion.result =
                Err(DriverError::with_status(ErrorClass::Protocol, status, message));
        }
        completion
    }

    /// Makes an object of the parts with these tags; the completion's tag is its version.
    pub(crate) async fn complete_upload(
        &mut self,
        lease: &Lease,
        key: &str,
        upload: &str,
        parts: &[String],
    ) -> Completion {
        self.body.clear();
        request::push_parts_body(&mut self.body, parts, self.target.headers.checksum);
        let call = S3Request::CompleteUpload { key, upload, body_len: self.body.len() };
        let mut completion = self.call_with_document(lease, &call, ERROR_BYTES_MAX).await;
        if completion.result.is_ok() {
            let body = self.answer.body.trim_ascii_start();
            if xml::parse_value(body, "CompleteMultipartUploadResult").is_none() {
                let why = "it says nothing of a complete upload";
                completion.result = Err(error::of_document(&self.answer, why));
            }
        }
        completion
    }
}

/// Parts of one object on their way.
struct Job<'a> {
    lease: &'a Lease,
    key: &'a str,
    upload: &'a str,
    content: RefCell<&'a mut dyn ContentSource>,
    size: u64,
    part_size: u64,
    parts_count: u32,
    /// How many parts were taken up.
    begun_count: Cell<u32>,
    sent: RefCell<Sent>,
}

/// What of an object's parts has arrived.
struct Sent {
    /// The tag of each part; empty for those that are still on their way.
    tags: Vec<String>,
    bytes: u64,
    last_byte_sent: Option<Moment>,
}

impl Job<'_> {
    /// Writes one part after the other until there are no more; the completion of the first that
    /// fails ends that.
    async fn send_on(&self, connection: &mut Connection) -> Result<(), Completion> {
        loop {
            let index = self.begun_count.get();
            if index == self.parts_count {
                return Ok(());
            }
            self.begun_count.set(index + 1);
            let offset = u64::from(index) * self.part_size;
            let size = self.part_size.min(self.size - offset);
            let mut part = Part { content: &self.content, offset, size };
            self.lease.refresh();
            let completion =
                connection.put_part(self.lease, self.key, self.upload, index + 1, &mut part).await;
            if completion.result.is_err() {
                return Err(completion);
            }
            let mut sent = self.sent.borrow_mut();
            sent.tags[index as usize] =
                completion.server_name.map(String::from).unwrap_or_default();
            sent.bytes += completion.bytes;
            sent.last_byte_sent = sent.last_byte_sent.max(completion.last_byte_sent);
        }
    }
}

/// A part of an object's content.
struct Part<'a, 'c> {
    content: &'a RefCell<&'c mut dyn ContentSource>,
    offset: u64,
    size: u64,
}

impl ContentSource for Part<'_, '_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        self.content.borrow_mut().fill(self.offset + offset, buffer);
    }
}

impl S3Session {
    /// Writes an object in parts, several at once; an upload that fails is given up when the
    /// session settles. First byte and end are those of the answer that makes an object of the
    /// parts, the last byte sent is that of the part that was sent last.
    pub(crate) async fn put_in_parts(
        &mut self,
        lease: &Lease,
        key: &str,
        content: &mut dyn ContentSource,
        part_size: u64,
    ) -> Completion {
        let mut created = self.connection.create_upload(lease, key).await;
        let upload = match (&created.result, created.server_name.take()) {
            (Ok(()), Some(upload)) => String::from(upload),
            _ => return created,
        };
        // Kept first, as whoever waits for the operation may stop waiting at any moment.
        if self.unfinished.len() < UNFINISHED_COUNT_MAX {
            let (place, key) = (Arc::clone(lease.place()), key.to_owned());
            self.unfinished.push(Unfinished { place, key, upload: upload.clone() });
        }
        let size = content.size();
        let parts_count = u32::try_from(size.div_ceil(part_size)).expect("parts are few");
        let tags = vec![String::new(); parts_count as usize];
        let job = Job {
            lease,
            key,
            upload: &upload,
            content: RefCell::new(content),
            size,
            part_size,
            parts_count,
            begun_count: Cell::new(0),
            sent: RefCell::new(Sent { tags, bytes: 0, last_byte_sent: None }),
        };
        let failed = self.send_parts(&job).await;
        let sent = job.sent.into_inner();
        let mut completion = match failed {
            Some(failed) => failed,
            None => {
                lease.refresh();
                let mut completed =
                    self.connection.complete_upload(lease, key, &upload, &sent.tags).await;
                completed.last_byte_sent = sent.last_byte_sent;
                completed
            }
        };
        completion.bytes = sent.bytes;
        match &completion.result {
            Ok(()) => self.unfinished.retain(|unfinished| unfinished.upload != upload),
            Err(_) => (completion.objects_count, completion.server_name) = (0, None),
        }
        completion
    }

    /// Writes all parts and returns the completion of the first that failed; those that are on
    /// their way by then are abandoned.
    async fn send_parts(&mut self, job: &Job<'_>) -> Option<Completion> {
        let connections_max =
            self.connections.config.options.part_concurrency.min(job.parts_count) as usize;
        while self.part_connections.len() < connections_max {
            self.part_connections.push(self.connections.open());
        }
        let part_connections = self.part_connections[..connections_max].iter_mut();
        let mut running: FuturesUnordered<_> =
            part_connections.map(|connection| job.send_on(connection)).collect();
        while let Some(ended) = running.next().await {
            if let Err(failed) = ended {
                return Some(failed);
            }
        }
        None
    }

    /// Tries once to give up each upload that is unfinished; the sweep of the run's prefix finds
    /// what is left.
    pub(crate) async fn give_up(&mut self) -> Settled {
        let uploads = std::mem::take(&mut self.unfinished);
        let mut settled = Settled { given_up_count: 0, left_count: uploads.len() as u64 };
        let each = async {
            for Unfinished { place, key, upload } in &uploads {
                let lease = self.lease_in(Some(Arc::clone(place)));
                let call = S3Request::AbortUpload { key, upload };
                // An upload that is not there any more has no parts.
                let aborted = self.connection.call(&lease, &call, &[204, 200, 404]).await;
                if aborted.result.is_ok() {
                    settled.given_up_count += 1;
                    settled.left_count -= 1;
                }
            }
        };
        // A store that does not answer this either is not waited for; its connection is given up.
        let _ = tokio::time::timeout(GIVE_UP_MAX, each).await;
        settled
    }
}
