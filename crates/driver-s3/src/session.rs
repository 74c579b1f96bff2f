//! One worker's session: does one operation at a time.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_driver::{Completion, DELETE_BATCH_MAX, DriverError, Operation, Session, Settled};
use plimsoll_http::HostChooser;
use plimsoll_model::{EndpointId, ErrorClass};

use crate::addressing::Place;
use crate::answer::{DOCUMENT_BYTES_MAX, Wanted};
use crate::connection::{Connection, Connections, Lease};
use crate::listing::{Listing, Walk};
use crate::s3_request::{Property, PutHow, S3Request};
use crate::upload::Unfinished;
use crate::xml::{self, Listed, ListedPage};
use crate::{error, request};

/// A session of [`S3Driver`](crate::S3Driver).
pub struct S3Session {
    pub(crate) connections: Rc<Connections>,
    chooser: Rc<HostChooser>,
    pub(crate) connection: Connection,
    /// Carries parts of an object that is written in parts, several at once; opened when first
    /// needed.
    pub(crate) part_connections: Vec<Connection>,
    /// Uploads that are to be given up, because the operation that began them failed or was
    /// abandoned.
    pub(crate) unfinished: Vec<Unfinished>,
    endpoint: EndpointId,
    pub(crate) page: ListedPage,
}

/// A request about the bucket itself.
#[derive(Clone, Copy)]
pub(crate) enum BucketRequest<'a> {
    Head,
    Create {
        lock: bool,
    },
    Delete,
    Get(Property),
    /// Changes a property to what is in this document.
    Put(Property, &'a [u8]),
}

impl Session for S3Session {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        let place = match self.connections.place(bucket) {
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
                match self.connections.config.options.part_size_of(size) {
                    None => {
                        let call = S3Request::Put { key, size, how: PutHow::Plain };
                        self.connection.send(lease, &call, content).await
                    }
                    Some(part_size) => {
                        Box::pin(self.put_in_parts(lease, key, content, part_size)).await
                    }
                }
            }
            Operation::Get { key, range, version, sink } => {
                let wanted = range.map_or(Wanted::Whole, Wanted::Range);
                self.connection
                    .receive(lease, &S3Request::Get { key, range, version }, wanted, sink)
                    .await
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
    pub(crate) fn new(connections: Rc<Connections>, chooser: Rc<HostChooser>) -> Self {
        Self {
            connection: connections.open(),
            connections,
            chooser,
            part_connections: Vec::new(),
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
                let call = S3Request::GetPart { key, number };
                self.connection.receive(lease, &call, Wanted::Part, sink).await
            }
            Operation::GetMember { key, member, sink } => {
                let call = S3Request::GetMember { key, member };
                self.connection.receive(lease, &call, Wanted::Whole, sink).await
            }
            Operation::Retain { key, version, until } => {
                self.connection.body.clear();
                request::push_retention_body(&mut self.connection.body, until);
                let call = S3Request::Retain { key, version, body_len: self.connection.body.len() };
                self.connection.call_with_document(lease, &call, DOCUMENT_BYTES_MAX).await
            }
            Operation::CreateUpload { key } => self.connection.create_upload(lease, key).await,
            Operation::PutPart { key, upload, number, content } => {
                self.connection.put_part(lease, key, upload, number, content).await
            }
            Operation::CompleteUpload { key, upload, parts } => {
                self.connection.complete_upload(lease, key, upload, parts).await
            }
            Operation::AbortUpload { key, upload } => {
                self.connection
                    .call(lease, &S3Request::AbortUpload { key, upload }, &[204, 200])
                    .await
            }
            Operation::Append { key, offset, content } => {
                let how = PutHow::Append(offset);
                let call = S3Request::Put { key, size: content.size(), how };
                self.connection.send(lease, &call, content).await
            }
            Operation::PutArchive { key, archive, members } => {
                let call = S3Request::Put { key, size: archive.size(), how: PutHow::Extract };
                let mut completion = self.connection.send(lease, &call, archive).await;
                if completion.result.is_ok() {
                    completion.objects_count = members;
                }
                completion
            }
            Operation::Post { key, content } => self.connection.post(lease, key, content).await,
            Operation::Fanout { keys, content } => {
                self.connection.fan_out(lease, keys, content).await
            }
            Operation::Put { .. }
            | Operation::Get { .. }
            | Operation::Stat { .. }
            | Operation::Delete { .. }
            | Operation::List { .. } => lease.ended(Err(DriverError::unsupported())),
        }
    }

    /// Does a request about the bucket itself, outside of what is measured.
    pub(crate) async fn call_bucket(&mut self, call: BucketRequest<'_>) -> Completion {
        let lease = &self.lease();
        let connection = &mut self.connection;
        connection.body.clear();
        match call {
            BucketRequest::Head => connection.call(lease, &S3Request::HeadBucket, &[200]).await,
            BucketRequest::Delete => {
                connection.call(lease, &S3Request::DeleteBucket, &[204, 200]).await
            }
            BucketRequest::Get(property) => {
                connection.call(lease, &S3Request::GetBucket(property), &[200]).await
            }
            BucketRequest::Create { lock } => {
                if connection.target.states_location() {
                    connection
                        .body
                        .extend_from_slice(&request::location_body(&connection.target.region));
                }
                let call = S3Request::CreateBucket { body_len: connection.body.len(), lock };
                connection.call_with_document(lease, &call, DOCUMENT_BYTES_MAX).await
            }
            BucketRequest::Put(property, document) => {
                connection.body.extend_from_slice(document);
                let call = S3Request::PutBucket { property, body_len: document.len() };
                connection.call_with_document(lease, &call, DOCUMENT_BYTES_MAX).await
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
        &self.connection.answer.body
    }

    async fn stat(&mut self, lease: &Lease, key: &str, version: Option<&str>) -> Completion {
        let mut completion =
            self.connection.call(lease, &S3Request::Stat { key, version }, &[200]).await;
        if completion.result.is_ok() {
            completion.object_size = self.connection.answer.content_length;
            if completion.object_size.is_none() {
                completion.result = Err(error::of_no_size(&self.connection.answer));
                completion.objects_count = 0;
            }
        }
        completion
    }

    async fn delete_one(&mut self, lease: &Lease, key: &str, version: Option<&str>) -> Completion {
        let call = S3Request::Delete { key, version };
        let mut completion = self.connection.call(lease, &call, &[204, 200]).await;
        // S3 answers 204 for a key that is not there; those that answer 404 mean the same.
        let answer = &self.connection.answer;
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
        let connection = &mut self.connection;
        connection.body.clear();
        request::push_delete_body(&mut connection.body, objects);
        let call = S3Request::DeleteMany { body_len: connection.body.len(), bypass };
        let mut completion = connection.call_with_document(lease, &call, DOCUMENT_BYTES_MAX).await;
        if completion.result.is_err() {
            return completion;
        }
        if connection.answer.overflowed {
            completion.result = Err(error::of_document(&connection.answer, ""));
            return completion;
        }
        match xml::parse_delete_result(&connection.answer.body) {
            Err(why) => completion.result = Err(error::of_document(&connection.answer, &why)),
            Ok(failures) => {
                if let Some(first) = &failures.first {
                    completion.result = Err(error::of_success(&connection.answer, first));
                }
                completion.objects_count = (objects_count as u32).saturating_sub(failures.count);
            }
        }
        completion
    }

    pub(crate) fn lease(&mut self) -> Lease {
        self.lease_in(None)
    }

    /// Begins an operation in a bucket of the target, its own where none is given.
    pub(crate) fn lease_in(&mut self, place: Option<Arc<Place>>) -> Lease {
        let lease = Lease::take(&self.chooser, &self.connections, place);
        self.endpoint = lease.endpoint_id();
        lease
    }
}
