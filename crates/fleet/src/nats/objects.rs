//! Contents as object stores of NATS hold them: pieces below a subject of their own, and then what
//! they are under their name.
//!
//! The library waits until each piece is acknowledged before it sends the next one; here several
//! are on their way. Pieces of one connection are taken in their order, and whoever fetches a
//! content holds it against its checksum.

use std::collections::{HashMap, VecDeque};

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use async_nats::jetstream::object_store::{ObjectInfo, ObjectOptions, ObjectStore};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use thiserror::Error;

use super::CHUNK_BYTES;

/// So many pieces of a content are on their way at once.
const UNDER_WAY_MAX: usize = 4;

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
    Former(#[source] Box<dyn std::error::Error + Send + Sync>),
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
    (store, bucket): (&ObjectStore, &str),
    name: &str,
    content: Bytes,
) -> Result<(), PutError> {
    let former = store.info(name).await.ok();
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
        Some(former) => put.remove_pieces(&former.nuid).await,
        None => Ok(()),
    }
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
            digest: Some(format!("SHA-256={}", URL_SAFE.encode(digest(&SHA256, content)))),
            deleted: false,
        };
        let subject = format!("$O.{}.M.{}", self.bucket, URL_SAFE.encode(self.name));
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Rollup", "sub");
        let said = serde_json::to_vec(&info)?;
        let sent = self.context.publish_with_headers(subject, headers, said.into()).await;
        sent.map_err(PutError::Info)?.await.map_err(PutError::Info)?;
        Ok(())
    }

    async fn remove_pieces(&self, of: &str) -> Result<(), PutError> {
        let former = |error| PutError::Former(error);
        let stream = self.context.get_stream_no_info(format!("OBJ_{}", self.bucket)).await;
        let stream = stream.map_err(|error| former(error.into()))?;
        let subject = format!("$O.{}.C.{of}", self.bucket);
        let removed = stream.purge().filter(&subject).await;
        removed.map(drop).map_err(|error| former(error.into()))
    }
}

async fn await_taken(piece: PublishAckFuture) -> Result<(), PutError> {
    piece.await.map(drop).map_err(PutError::Piece)
}
