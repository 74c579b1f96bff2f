//! Contents as object stores of NATS hold them: pieces below a subject of their own, and then what
//! they are under their name.
//!
//! The library waits until each piece is acknowledged before it sends the next one; here several
//! are on their way. Pieces of one connection are taken in their order, and whoever fetches a
//! content holds it against its checksum.
//!
//! They are fetched chunk by chunk, without a consumer: a client that may create consumers can have
//! the server send stored data to anybody. Others may have stored anything, so only what is asked
//! for is read.

use std::collections::{HashMap, VecDeque};
use std::io::Write;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use async_nats::jetstream::object_store::{ObjectInfo, ObjectOptions};
use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use aws_lc_rs::digest::{Context as Sum, SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use futures::TryStreamExt as _;
use serde::Deserialize;
use thiserror::Error;

use super::CHUNK_BYTES;

/// So many pieces of a content are on their way at once.
const UNDER_WAY_MAX: usize = 4;

/// What stands before a checksum.
const SUM: &str = "SHA-256=";

/// Why a content could not be put.
#[derive(Debug, Error)]
pub(super) enum PutError {
    #[error("a piece was not taken")]
    Piece(#[source] PublishError),
    #[error("what its pieces are was not taken")]
    Info(#[source] PublishError),
    #[error("what its pieces are cannot be said")]
    Form(#[from] serde_json::Error),
    #[error("what was there under its name cannot be removed")]
    Former(#[source] Failure),
}

/// A content on its way into a bucket.
struct Put<'a> {
    context: &'a Context,
    bucket: &'a str,
    name: &'a str,
    /// What no other content's pieces are called.
    own: String,
}

/// Puts a content in place of the one that has the name.
pub(super) async fn put(
    context: &Context,
    bucket: &str,
    name: &str,
    content: Bytes,
) -> Result<(), PutError> {
    let stream = stream_of(context, bucket).await.map_err(PutError::Former)?;
    let former = stream.get_last_raw_message_by_subject(&subject_of(bucket, name)).await.ok();
    let former = former.and_then(|of| serde_json::from_slice::<Pieces>(&of.payload).ok());
    // The library makes inboxes that no one else has; their last word will do.
    let inbox = context.client().new_inbox();
    let own = inbox.rsplit('.').next().unwrap_or_default().to_owned();
    let put = Put { context, bucket, name, own };
    let sent = match put.pieces(&content).await {
        Ok(chunks) => put.info(&content, chunks).await,
        Err(error) => Err(error),
    };
    if let Err(error) = sent {
        // What is tried again has pieces of another subject. What is left now does no harm.
        let _ = put.remove_pieces(&put.own).await;
        return Err(error);
    }
    match former {
        // What is said of it may be anything.
        Some(former) if is_word(&former.nuid) => put.remove_pieces(&former.nuid).await,
        _ => Ok(()),
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn stream_of(context: &Context, bucket: &str) -> Result<Stream<()>, Failure> {
    Ok(context.get_stream_no_info(format!("OBJ_{bucket}")).await?)
}

/// Returns the subject under which it is said what the pieces of a content are.
fn subject_of(bucket: &str, name: &str) -> String {
    format!("$O.{bucket}.M.{}", URL_SAFE.encode(name))
}

/// Tells whether a text is one word of a subject.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// What is said of a content, as far as it is needed to fetch it.
#[derive(Deserialize)]
struct Pieces {
    nuid: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    chunks: u64,
    #[serde(default)]
    digest: String,
    #[serde(default)]
    deleted: bool,
}

/// How far a content was taken, so that what breaks off can go on.
pub(super) struct Taken {
    pub(super) size: u64,
    /// What its pieces are called; empty before the first.
    nuid: String,
    pieces: u64,
    /// The number of the last piece in its stream.
    sequence: u64,
    sum: Sum,
}

impl Default for Taken {
    fn default() -> Self {
        Self { size: 0, nuid: String::new(), pieces: 0, sequence: 0, sum: Sum::new(&SHA256) }
    }
}

/// Why a content was not taken to its end.
#[derive(Debug, Error)]
pub(super) enum TakeError {
    /// Another try may do it.
    #[error("its pieces cannot be asked for")]
    Passing(#[source] Failure),
    #[error("there is none")]
    Missing,
    #[error("what its pieces are cannot be understood")]
    Form(#[source] serde_json::Error),
    #[error("it is not what it is said to be")]
    Differs,
    #[error("there is another one of that name meanwhile")]
    Replaced,
    #[error("it cannot be kept")]
    Keep(#[source] std::io::Error),
}

/// Takes a content from where an earlier try has left it.
pub(super) async fn take(
    context: &Context,
    bucket: &str,
    name: &str,
    to: &mut dyn Write,
    taken: &mut Taken,
) -> Result<(), TakeError> {
    let stream = stream_of(context, bucket).await.map_err(TakeError::Passing)?;
    let said = stream.direct_get_last_for_subject(subject_of(bucket, name)).await;
    let said = said.map_err(|error| match error.kind() {
        DirectGetErrorKind::NotFound => TakeError::Missing,
        _ => TakeError::Passing(error.into()),
    })?;
    let pieces: Pieces = serde_json::from_slice(&said.payload).map_err(TakeError::Form)?;
    if pieces.deleted {
        return Err(TakeError::Missing);
    }
    let is_cut = pieces.chunks == pieces.size.div_ceil(CHUNK_BYTES as u64);
    if !is_word(&pieces.nuid) || !is_cut {
        return Err(TakeError::Differs);
    }
    if taken.pieces > 0 && taken.nuid != pieces.nuid {
        return Err(TakeError::Replaced);
    }
    taken.nuid.clone_from(&pieces.nuid);
    let subject = format!("$O.{bucket}.C.{}", pieces.nuid);
    while taken.pieces < pieces.chunks {
        let next = stream.direct_get_next_for_subject(&*subject, Some(taken.sequence + 1)).await;
        let next = next.map_err(|error| match error.kind() {
            // All of them were there before it was said what they are.
            DirectGetErrorKind::NotFound => TakeError::Differs,
            _ => TakeError::Passing(error.into()),
        })?;
        to.write_all(&next.payload).map_err(TakeError::Keep)?;
        taken.sum.update(&next.payload);
        taken.size += next.payload.len() as u64;
        (taken.sequence, taken.pieces) = (next.sequence, taken.pieces + 1);
    }
    let sum = URL_SAFE.encode(taken.sum.clone().finish());
    match taken.size == pieces.size && pieces.digest == format!("{SUM}{sum}") {
        true => Ok(()),
        false => Err(TakeError::Differs),
    }
}

/// Removes all contents of a bucket whose names begin so. What the pieces of one are is looked at
/// for no other.
pub(super) async fn remove(context: &Context, bucket: &str, prefix: &str) -> Result<(), Failure> {
    let stream = stream_of(context, bucket).await?;
    let all = format!("$O.{bucket}.M.");
    let mut subjects = stream.info_with_subjects(format!("{all}*")).await?;
    while let Some((subject, _)) = subjects.try_next().await? {
        let name = subject.strip_prefix(&*all).and_then(|name| URL_SAFE.decode(name).ok());
        if !name.is_some_and(|name| name.starts_with(prefix.as_bytes())) {
            continue;
        }
        let said = stream.get_last_raw_message_by_subject(&subject).await.ok();
        let pieces = said.and_then(|said| serde_json::from_slice::<Pieces>(&said.payload).ok());
        if let Some(Pieces { nuid, .. }) = pieces.filter(|of| is_word(&of.nuid)) {
            stream.purge().filter(format!("$O.{bucket}.C.{nuid}")).await?;
        }
        stream.purge().filter(subject).await?;
    }
    Ok(())
}

/// Removes all contents of a bucket, whatever they are.
pub(super) async fn clear(context: &Context, bucket: &str) -> Result<(), Failure> {
    stream_of(context, bucket).await?.purge().await?;
    Ok(())
}

impl Put<'_> {
    /// Sends the pieces, and returns how many there are once all of them are kept.
    async fn pieces(&self, content: &Bytes) -> Result<usize, PutError> {
        let subject = format!("$O.{}.C.{}", self.bucket, self.own);
        let mut under_way = VecDeque::with_capacity(UNDER_WAY_MAX);
        let mut count = 0;
        for at in (0..content.len()).step_by(CHUNK_BYTES) {
            if under_way.len() == UNDER_WAY_MAX
                && let Some(oldest) = under_way.pop_front()
            {
                await_taken(oldest).await?;
            }
            let piece = content.slice(at..content.len().min(at + CHUNK_BYTES));
            let sent = self.context.publish(subject.clone(), piece).await;
            under_way.push_back(sent.map_err(PutError::Piece)?);
            count += 1;
        }
        for sent in under_way {
            await_taken(sent).await?;
        }
        Ok(count)
    }

    /// Says under the name what the pieces are; from then on the content is there.
    async fn info(&self, content: &Bytes, chunks: usize) -> Result<(), PutError> {
        let options = ObjectOptions { link: None, max_chunk_size: Some(CHUNK_BYTES) };
        let info = ObjectInfo {
            name: self.name.to_owned(),
            description: None,
            metadata: HashMap::new(),
            headers: None,
            options: Some(options),
            bucket: self.bucket.to_owned(),
            nuid: self.own.clone(),
            size: content.len(),
            chunks,
            modified: None,
            digest: Some(format!("{SUM}{}", URL_SAFE.encode(digest(&SHA256, content)))),
            deleted: false,
        };
        let subject = subject_of(self.bucket, self.name);
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Rollup", "sub");
        let said = serde_json::to_vec(&info)?;
        let sent = self.context.publish_with_headers(subject, headers, said.into()).await;
        sent.map_err(PutError::Info)?.await.map_err(PutError::Info)?;
        Ok(())
    }

    async fn remove_pieces(&self, of: &str) -> Result<(), PutError> {
        let former = |error| PutError::Former(error);
        let stream = stream_of(self.context, self.bucket).await.map_err(former)?;
        let subject = format!("$O.{}.C.{of}", self.bucket);
        let removed = stream.purge().filter(&subject).await;
        removed.map(drop).map_err(|error| former(error.into()))
    }
}

async fn await_taken(piece: PublishAckFuture) -> Result<(), PutError> {
    piece.await.map(drop).map_err(PutError::Piece)
}
