//! One worker's session: does one operation at a time.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_driver::{Completion, DELETE_BATCH_MAX, DriverError, Operation, Session, Settled};
use plimsoll_http::HostChooser;
use plimsoll_model::{EndpointId, ErrorClass};

use crate::addressing::Place;
use crate::answer::{DOCUMENT_BYTES_MAX, Wanted};
use crate::call::{Call, Property, PutHow};
use crate::line::{Lease, Line, Lines};
use crate::listing::{Listing, Walk};
use crate::upload::Unfinished;
use crate::xml::{self, Listed, ListedPage};
use crate::{error, request};

/// A session of [`S3Driver`](crate::S3Driver).
pub struct S3Session {
    pub(crate) lines: Rc<Lines>,
    chooser: Rc<HostChooser>,
    pub(crate) line: Line,
    /// Carries parts of an object that is written in parts, several at once; opened when first
    /// needed.
    pub(crate) lanes: Vec<Line>,
    /// Uploads that are to be given up, because the operation that began them failed or was
    /// abandoned.
    pub(crate) unfinished: Vec<Unfinished>,
    endpoint: EndpointId,
    pub(crate) page: ListedPage,
}

/// A request about the bucket itself.
#[derive(Clone, Copy)]
pub(crate) enum BucketCall {
    Head,
    Create { lock: bool },
    Get(Property),
    EnableVersioning,
}

impl Session for S3Session {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        let place = match self.lines.place(bucket) {
            Ok(place) => place,
            Err(refused) => {
                let error = DriverError::new(ErrorClass::Client, refused.to_string());
                return self.lease().ended(Err(error));
            }
        };
        let lease = &self.lease_in(place);
        match operation {
            Operation::Put { key, content } => {
                let size = content.size();
                match self.lines.config.options.part_size_of(size) {
                    None => {
                        let call = Call::Put { key, size, how: PutHow::Plain };
                        self.line.send(lease, &call, content).await
                    }
                    Some(part_size) => {
                        Box::pin(self.put_in_parts(lease, key, content, part_size)).await
                    }
                }
            }
            Operation::Get { key, range, version, sink } => {
                let wanted = range.map_or(Wanted::Whole, Wanted::Range);
                self.line.receive(lease, &Call::Get { key, range, version }, wanted, sink).await
            }
            Operation::Stat { key, version } => self.stat(lease, key, version).await,
            Operation::Delete { keys: [key] } => self.delete_one(lease, key, None).await,
            Operation::Delete { keys } => {
                let objects = keys.iter().map(|key| (key.as_str(), None));
                self.delete_many(lease, objects, false).await
            }
            Operation::List { prefix, page_size, pages_max, sink } => {
                sink.restart();
                let walk = Walk::Objects { recursive: true };
                let listing = Listing { pages_max, ..Listing::whole(prefix, page_size, walk) };
                let mut take = |entry: xml::Entry<'_>| {
                    sink.entry(entry.key, entry.size);
                    true
                };
                self.list(lease, listing, &mut take).await
            }
            // The rest in a future of its own, so that those above stay small.
            rare => Box::pin(self.execute_rare(lease, rare)).await,
        }
    }

    fn endpoint(&self) -> EndpointId {
        self.endpoint
    }

    /// Gives up the uploads of operations that failed.
    async fn settle(&mut self) -> Settled {
        match self.unfinished.is_empty() {
            true => Settled::default(),
            false => Box::pin(self.give_up()).await,
        }
    }
}

impl S3Session {
    pub(crate) fn new(lines: Rc<Lines>, chooser: Rc<HostChooser>) -> Self {
        Self {
            line: lines.open(),
            lines,
            chooser,
            lanes: Vec::new(),
            unfinished: Vec::new(),
            endpoint: EndpointId(0),
            page: ListedPage::default(),
        }
    }

    async fn execute_rare(&mut self, lease: &Lease, operation: Operation<'_>) -> Completion {
        match operation {
            Operation::DeleteVersion { key, version } => {
                self.delete_one(lease, key, Some(version)).await
            }
            Operation::ListVersions { prefix, page_size, pages_max, sink } => {
                sink.restart();
                let walk = Walk::Marked(Listed::Versions);
                let listing = Listing { pages_max, ..Listing::whole(prefix, page_size, walk) };
                let mut take = |entry: xml::Entry<'_>| {
                    sink.entry(entry.key, entry.size);
                    true
                };
                self.list(lease, listing, &mut take).await
            }
            Operation::GetPart { key, number, sink } => {
                let call = Call::GetPart { key, number };
                self.line.receive(lease, &call, Wanted::Part, sink).await
            }
            Operation::GetMember { key, member, sink } => {
                let call = Call::GetMember { key, member };
                self.line.receive(lease, &call, Wanted::Whole, sink).await
            }
            Operation::Retain { key, version, until } => {
                self.line.body.clear();
                request::push_retention_body(&mut self.line.body, until);
                let call = Call::Retain { key, version, body_len: self.line.body.len() };
                self.line.call_with_document(lease, &call, DOCUMENT_BYTES_MAX).await
            }
            Operation::CreateUpload { key } => self.line.create_upload(lease, key).await,
            Operation::PutPart { key, upload, number, content } => {
                self.line.put_part(lease, key, upload, number, content).await
            }
            Operation::CompleteUpload { key, upload, parts } => {
                self.line.complete_upload(lease, key, upload, parts).await
            }
            Operation::AbortUpload { key, upload } => {
                self.line.call(lease, &Call::AbortUpload { key, upload }, &[204, 200]).await
            }
            Operation::Append { key, offset, content } => {
                let how = PutHow::Append(offset);
                let call = Call::Put { key, size: content.size(), how };
                self.line.send(lease, &call, content).await
            }
            Operation::PutArchive { key, archive, members } => {
                let call = Call::Put { key, size: archive.size(), how: PutHow::Extract };
                let mut completion = self.line.send(lease, &call, archive).await;
                if completion.result.is_ok() {
                    completion.objects_count = members;
                }
                completion
            }
            Operation::Post { key, content } => self.line.post(lease, key, content).await,
            Operation::Fanout { keys, content } => self.line.fan_out(lease, keys, content).await,
            Operation::Put { .. }
            | Operation::Get { .. }
            | Operation::Stat { .. }
            | Operation::Delete { .. }
            | Operation::List { .. } => lease.ended(Err(DriverError::unsupported())),
        }
    }

    /// Does a request about the bucket itself, outside of what is measured.
    pub(crate) async fn call_bucket(&mut self, call: BucketCall) -> Completion {
        let lease = &self.lease();
        let line = &mut self.line;
        line.body.clear();
        match call {
            BucketCall::Head => line.call(lease, &Call::HeadBucket, &[200]).await,
            BucketCall::Get(property) => line.call(lease, &Call::GetBucket(property), &[200]).await,
            BucketCall::Create { lock } => {
                if line.target.states_location() {
                    line.body.extend_from_slice(&request::location_body(&line.target.region));
                }
                let call = Call::CreateBucket { body_len: line.body.len(), lock };
                line.call_with_document(lease, &call, DOCUMENT_BYTES_MAX).await
            }
            BucketCall::EnableVersioning => {
                line.body.extend_from_slice(request::VERSIONING_BODY);
                let call = Call::EnableVersioning { body_len: line.body.len() };
                line.call_with_document(lease, &call, DOCUMENT_BYTES_MAX).await
            }
        }
    }

    /// Lists outside of what is measured.
    pub(crate) async fn survey(
        &mut self,
        listing: Listing<'_>,
        take: &mut dyn FnMut(xml::Entry<'_>) -> bool,
    ) -> Completion {
        let lease = &self.lease();
        self.list(lease, listing, take).await
    }

    /// Removes up to [`DELETE_BATCH_MAX`] objects or versions outside of what is measured; those
    /// with a version also where they are retained, if the credentials give leave to that.
    pub(crate) async fn remove<'k>(
        &mut self,
        objects: impl ExactSizeIterator<Item = (&'k str, Option<&'k str>)>,
        bypass: bool,
    ) -> Completion {
        let lease = &self.lease();
        self.delete_many(lease, objects, bypass).await
    }

    /// Returns what is kept of the body of the last answer.
    pub(crate) fn answer_body(&self) -> &[u8] {
        &self.line.answer.body
    }

    async fn stat(&mut self, lease: &Lease, key: &str, version: Option<&str>) -> Completion {
        let mut completion = self.line.call(lease, &Call::Stat { key, version }, &[200]).await;
        if completion.result.is_ok() {
            completion.object_size = self.line.answer.content_length;
            if completion.object_size.is_none() {
                completion.result = Err(error::of_no_size(&self.line.answer));
                completion.objects_count = 0;
            }
        }
        completion
    }

    async fn delete_one(&mut self, lease: &Lease, key: &str, version: Option<&str>) -> Completion {
        let call = Call::Delete { key, version };
        let mut completion = self.line.call(lease, &call, &[204, 200]).await;
        // S3 answers 204 for a key that is not there; those that answer 404 mean the same.
        let answer = &self.line.answer;
        if completion.result.is_err()
            && answer.status == 404
            && xml::parse_error(&answer.body)
                .is_some_and(|text| text.code == "NoSuchKey" || text.code == "NoSuchVersion")
        {
            completion.result = Ok(());
            completion.objects_count = 1;
        }
        completion
    }

    async fn delete_many<'k>(
        &mut self,
        lease: &Lease,
        objects: impl ExactSizeIterator<Item = (&'k str, Option<&'k str>)>,
        bypass: bool,
    ) -> Completion {
        let objects_count = objects.len();
        assert!((1..=DELETE_BATCH_MAX).contains(&objects_count), "a batch holds 1 to 1000 keys");
        let line = &mut self.line;
        line.body.clear();
        request::push_delete_body(&mut line.body, objects);
        let call = Call::DeleteMany { body_len: line.body.len(), bypass };
        let mut completion = line.call_with_document(lease, &call, DOCUMENT_BYTES_MAX).await;
        if completion.result.is_err() {
            return completion;
        }
        if line.answer.overflowed {
            completion.result = Err(error::of_document(&line.answer, ""));
            return completion;
        }
        match xml::parse_delete_result(&line.answer.body) {
            Err(why) => completion.result = Err(error::of_document(&line.answer, &why)),
            Ok(failures) => {
                if let Some(first) = &failures.first {
                    completion.result = Err(error::of_success(line.answer.status, first));
                }
                completion.objects_count = (objects_count as u32).saturating_sub(failures.count);
            }
        }
        completion
    }

    pub(crate) fn lease(&mut self) -> Lease {
        self.lease_in(Arc::clone(&self.lines.target.place))
    }

    pub(crate) fn lease_in(&mut self, place: Arc<Place>) -> Lease {
        let lease = Lease::take(&self.chooser, &self.lines.clock, place);
        self.endpoint = lease.endpoint_id();
        lease
    }
}
