//! The requests this driver makes, as values: method, key, query and what else tells them apart.

use std::io::Write as _;

use plimsoll_driver::ByteRange;

use crate::encode;

/// One request.
#[derive(Clone, Copy)]
pub(crate) enum S3Request<'a> {
    /// Writes a whole object.
    Put {
        key: &'a str,
        size: u64,
        how: PutHow,
    },
    Get {
        key: &'a str,
        range: Option<ByteRange>,
        version: Option<&'a str>,
    },
    GetPart {
        key: &'a str,
        number: u32,
    },
    GetMember {
        key: &'a str,
        member: &'a str,
    },
    Stat {
        key: &'a str,
        version: Option<&'a str>,
    },
    Delete {
        key: &'a str,
        version: Option<&'a str>,
    },
    /// Removes many; `bypass` also what may not be removed yet.
    DeleteMany {
        body_len: usize,
        bypass: bool,
    },
    Retain {
        key: &'a str,
        version: Option<&'a str>,
        body_len: usize,
    },
    CreateUpload {
        key: &'a str,
    },
    PutPart {
        key: &'a str,
        upload: &'a str,
        number: u32,
        size: u64,
    },
    CompleteUpload {
        key: &'a str,
        upload: &'a str,
        body_len: usize,
    },
    AbortUpload {
        key: &'a str,
        upload: &'a str,
    },
    /// Posts an HTML form, which holds its own signature.
    Form {
        content_type: &'a str,
        size: u64,
    },
    List(Page<'a>),
    ListVersions(MarkedPage<'a>),
    ListUploads(MarkedPage<'a>),
    HeadBucket,
    CreateBucket {
        body_len: usize,
        lock: bool,
    },
    DeleteBucket,
    GetBucket(Property),
    PutBucket {
        property: Property,
        body_len: usize,
    },
}

/// How an object is written with one request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutHow {
    Plain,
    /// To the end of what is there, which has this many bytes.
    Append(u64),
    /// As an archive that the server takes apart.
    Extract,
}

/// One page of a listing.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) page_size: u32,
    /// Whether the listing follows `/` down.
    pub(crate) recursive: bool,
    /// Where the page before ended.
    pub(crate) token: Option<&'a str>,
}

/// One page of a listing of versions or uploads.
#[derive(Clone, Copy)]
pub(crate) struct MarkedPage<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) page_size: u32,
    /// The key where the page before ended; empty for the first page.
    pub(crate) key_marker: &'a str,
    /// The version or upload where it ended; may be empty.
    pub(crate) id_marker: &'a str,
}

/// A property of the bucket that can be asked for, and some of them changed.
#[derive(Clone, Copy)]
pub(crate) enum Property {
    Versioning,
    ObjectLock,
    Tagging,
}

/// Which of the headers that the options ask for a request carries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderSet {
    None,
    /// The key of SSE-C.
    Key,
    /// Everything that belongs to an object that is written.
    Write,
    /// The same with the header of an archive that is taken apart.
    Extract,
}

impl Property {
    const fn name(self) -> &'static str {
        match self {
            Self::Versioning => "versioning",
            Self::ObjectLock => "object-lock",
            Self::Tagging => "tagging",
        }
    }
}

impl S3Request<'_> {
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Put { .. }
            | Self::PutPart { .. }
            | Self::Retain { .. }
            | Self::CreateBucket { .. }
            | Self::PutBucket { .. } => "PUT",
            Self::Get { .. }
            | Self::GetPart { .. }
            | Self::GetMember { .. }
            | Self::List(_)
            | Self::ListVersions(_)
            | Self::ListUploads(_)
            | Self::GetBucket(_) => "GET",
            Self::Stat { .. } | Self::HeadBucket => "HEAD",
            Self::Delete { .. } | Self::AbortUpload { .. } | Self::DeleteBucket => "DELETE",
            Self::DeleteMany { .. }
            | Self::CreateUpload { .. }
            | Self::CompleteUpload { .. }
            | Self::Form { .. } => "POST",
        }
    }

    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Put { key, .. }
            | Self::Get { key, .. }
            | Self::GetPart { key, .. }
            | Self::GetMember { key, .. }
            | Self::Stat { key, .. }
            | Self::Delete { key, .. }
            | Self::Retain { key, .. }
            | Self::CreateUpload { key }
            | Self::PutPart { key, .. }
            | Self::CompleteUpload { key, .. }
            | Self::AbortUpload { key, .. } => Some(key),
            Self::DeleteMany { .. }
            | Self::Form { .. }
            | Self::List(_)
            | Self::ListVersions(_)
            | Self::ListUploads(_)
            | Self::HeadBucket
            | Self::CreateBucket { .. }
            | Self::DeleteBucket
            | Self::GetBucket(_)
            | Self::PutBucket { .. } => None,
        }
    }

    /// Returns how long the body is before any encoding.
    pub(crate) fn content_length(&self) -> Option<u64> {
        match self {
            Self::Put { size, .. } | Self::PutPart { size, .. } | Self::Form { size, .. } => {
                Some(*size)
            }
            Self::CreateUpload { .. } => Some(0),
            Self::DeleteMany { body_len, .. }
            | Self::Retain { body_len, .. }
            | Self::CompleteUpload { body_len, .. }
            | Self::CreateBucket { body_len, .. }
            | Self::PutBucket { body_len, .. } => Some(*body_len as u64),
            _ => None,
        }
    }

    pub(crate) fn content_type(&self) -> Option<&[u8]> {
        match self {
            Self::Put { .. } | Self::CreateUpload { .. } | Self::PutPart { .. } => {
                Some(b"application/octet-stream")
            }
            Self::DeleteMany { .. }
            | Self::Retain { .. }
            | Self::CompleteUpload { .. }
            | Self::PutBucket { .. } => Some(b"application/xml"),
            Self::CreateBucket { body_len, .. } if *body_len > 0 => Some(b"application/xml"),
            Self::Form { content_type, .. } => Some(content_type.as_bytes()),
            _ => None,
        }
    }

    pub(crate) fn header_set(&self) -> HeaderSet {
        match self {
            Self::Put { how: PutHow::Extract, .. } => HeaderSet::Extract,
            Self::Put { how: PutHow::Plain, .. } | Self::CreateUpload { .. } => HeaderSet::Write,
            Self::Put { how: PutHow::Append(_), .. }
            | Self::Get { .. }
            | Self::GetPart { .. }
            | Self::GetMember { .. }
            | Self::Stat { .. }
            | Self::PutPart { .. }
            | Self::CompleteUpload { .. } => HeaderSet::Key,
            _ => HeaderSet::None,
        }
    }

    /// Returns the header that names what came of the request.
    pub(crate) fn tag_header(&self) -> Option<&'static str> {
        match self {
            Self::Put { .. } | Self::CompleteUpload { .. } | Self::Form { .. } => {
                Some("x-amz-version-id")
            }
            Self::PutPart { .. } => Some("etag"),
            _ => None,
        }
    }

    /// Tells whether an object comes into being by this request, so that it may be made to depend
    /// on there being none.
    pub(crate) fn makes_object(&self) -> bool {
        matches!(self, Self::Put { how: PutHow::Plain, .. } | Self::CompleteUpload { .. })
    }

    /// Renders the query with its parameters in ascending order, as the signature wants them.
    pub(crate) fn push_query(&self, query: &mut Vec<u8>) {
        match self {
            Self::Get { version: Some(version), .. }
            | Self::Stat { version: Some(version), .. }
            | Self::Delete { version: Some(version), .. } => {
                push_parameter(query, "versionId", version);
            }
            Self::GetPart { number, .. } => push_number(query, "partNumber", *number),
            Self::DeleteMany { .. } => push_parameter(query, "delete", ""),
            Self::Retain { version, .. } => {
                push_parameter(query, "retention", "");
                if let Some(version) = version {
                    push_parameter(query, "versionId", version);
                }
            }
            Self::CreateUpload { .. } => push_parameter(query, "uploads", ""),
            Self::PutPart { upload, number, .. } => {
                push_number(query, "partNumber", *number);
                push_parameter(query, "uploadId", upload);
            }
            Self::CompleteUpload { upload, .. } | Self::AbortUpload { upload, .. } => {
                push_parameter(query, "uploadId", upload);
            }
            Self::List(page) => page.push_query(query),
            Self::ListVersions(page) => {
                page.push_query(query, "max-keys", "version-id-marker", "versions")
            }
            Self::ListUploads(page) => {
                page.push_query(query, "max-uploads", "upload-id-marker", "uploads")
            }
            Self::GetBucket(property) | Self::PutBucket { property, .. } => {
                push_parameter(query, property.name(), "");
            }
            _ => {}
        }
    }
}

impl Page<'_> {
    fn push_query(&self, query: &mut Vec<u8>) {
        if let Some(token) = self.token {
            push_parameter(query, "continuation-token", token);
        }
        if !self.recursive {
            push_parameter(query, "delimiter", "/");
        }
        push_parameter(query, "encoding-type", "url");
        push_parameter(query, "list-type", "2");
        push_number(query, "max-keys", self.page_size);
        push_parameter(query, "prefix", self.prefix);
    }
}

impl MarkedPage<'_> {
    /// Renders the query; the servers' names for the same things differ between the two listings.
    fn push_query(
        &self,
        query: &mut Vec<u8>,
        page_size_name: &str,
        id_marker_name: &str,
        listed: &str,
    ) {
        push_parameter(query, "encoding-type", "url");
        if !self.key_marker.is_empty() {
            push_parameter(query, "key-marker", self.key_marker);
        }
        push_number(query, page_size_name, self.page_size);
        push_parameter(query, "prefix", self.prefix);
        // `upload-id-marker` comes before `uploads`, and `version-id-marker` before `versions`.
        if !self.key_marker.is_empty() && !self.id_marker.is_empty() {
            push_parameter(query, id_marker_name, self.id_marker);
        }
        push_parameter(query, listed, "");
    }
}

fn push_name(query: &mut Vec<u8>, name: &str) {
    if !query.is_empty() {
        query.push(b'&');
    }
    query.extend_from_slice(name.as_bytes());
    query.push(b'=');
}

fn push_parameter(query: &mut Vec<u8>, name: &str, value: &str) {
    push_name(query, name);
    encode::push_query(query, value);
}

fn push_number(query: &mut Vec<u8>, name: &str, value: u32) {
    push_name(query, name);
    write!(query, "{value}").expect("writing to memory does not fail");
}
