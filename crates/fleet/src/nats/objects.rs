//! Contents in streams of NATS: the pieces of each lie below a subject of its own, in their order.
//!
//! The owner of a content sends its subject, size and checksum in a message of the fabric. None of
//! that is read from the stream, because an agent can have the server store a reply there, under
//! any subject that it knows. So the subject of a content ends in a word that nobody can guess, and
//! streams take no `Nats-Rollup`, which would remove what lies there.
//!
//! The stream of an agent takes only what lies below a word that this agent alone knows, so that
//! the replies to others do not fill it, and no more than its part of the room.
//!
//! Pieces are fetched one by one, without a consumer: a client that may create consumers can have
//! the server send stored data to anybody. Others may have stored anything, so only what is asked
//! for is read.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use async_nats::jetstream::context::{
    CreateStreamError, DeleteStreamErrorKind, PublishAckFuture, PublishError,
};
use async_nats::jetstream::stream::{
    Config, DirectGetErrorKind, DiscardPolicy, StorageType, Stream,
};
use async_nats::jetstream::{Context, ErrorCode};
use aws_lc_rs::digest::{Context as Sum, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use thiserror::Error;

use super::CHUNK_BYTES;
use crate::content::sum_of;
use crate::fabric::{Kept, is_word};
use crate::pki::fresh_word;

/// So many pieces of a content are on their way at once.
const UNDER_WAY_MAX: usize = 4;

/// No content has a longer name: a server ends connections that ask for much longer subjects.
const NAME_BYTES_MAX: usize = 1_000;

/// Why a content could not be put.
#[derive(Debug, Error)]
pub(super) enum PutError {
    #[error("a piece was not taken")]
    Piece(#[source] PublishError),
    #[error("what was there under its name cannot be removed")]
    Former(#[source] Failure),
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// So many runs in which an agent takes part may be under way for different coordinators: it is
/// part of one, and others are about to be refused.
const WORDS_MAX: usize = 4;
/// What a message of a stream has besides a piece.
const HEAD_BYTES_MAX: usize = 1 << 10;

/// What a stream takes.
pub(super) enum Takes {
    /// Anything, for so long, of so many bytes where there is a limit.
    Anything { bytes: Option<u64>, max_age: Duration },
    /// What lies below a word, in so many pieces. The server sets bytes aside that a stream may
    /// have, however few it has, so that they would not suffice for the agents of several runs.
    Below { word: String, pieces: u64 },
}

/// Makes the stream of a bucket, or has it take this from now on.
pub(super) async fn make(
    context: &Context,
    bucket: &str,
    takes: &Takes,
) -> Result<(), CreateStreamError> {
    let (subject, max_bytes, max_messages, max_age) = match takes {
        Takes::Anything { bytes, max_age } => {
            let max_bytes = bytes.map_or(-1, |bytes| bytes as i64);
            (format!("$O.{bucket}.C.>"), max_bytes, -1, *max_age)
        }
        Takes::Below { word, pieces } => {
            (format!("{}.>", subject_of(bucket, word)), -1, *pieces as i64, Duration::ZERO)
        }
    };
    let mut subjects = vec![subject];
    if let Ok(stream) = context.get_stream(stream_of(bucket)).await {
        let known = &stream.cached_info().config.subjects;
        let others = known.iter().filter(|known| **known != subjects[0]);
        let others: Vec<String> = others.take(WORDS_MAX - 1).cloned().collect();
        subjects.extend(others);
    }
    let config = Config {
        name: stream_of(bucket),
        subjects,
        max_bytes,
        max_messages,
        max_message_size: (CHUNK_BYTES + HEAD_BYTES_MAX) as i32,
        max_age,
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        allow_direct: true,
        allow_rollup: false,
        ..Config::default()
    };
    context.create_or_update_stream(config).await.map(drop)
}

/// Tells whether there was no stream to be deleted.
pub(super) fn is_missing(kind: &DeleteStreamErrorKind) -> bool {
    let DeleteStreamErrorKind::JetStream(error) = kind else { return false };
    error.error_code() == ErrorCode::STREAM_NOT_FOUND
}

/// Returns the name of the stream that is a bucket.
pub(super) fn stream_of(bucket: &str) -> String {
    format!("OBJ_{bucket}")
}

async fn open(context: &Context, bucket: &str) -> Result<Stream<()>, Failure> {
    Ok(context.get_stream_no_info(stream_of(bucket)).await?)
}

/// Returns the subject of a path: each of its names is a word of it.
fn subject_of(bucket: &str, path: &str) -> String {
    let words: Vec<String> = path.split('/').map(|name| URL_SAFE.encode(name)).collect();
    format!("$O.{bucket}.C.{}", words.join("."))
}

/// Returns the subject of the pieces of a content; `None` where what is said of it is no subject,
/// which a server would not answer.
fn pieces_of(bucket: &str, kept: &Kept) -> Option<String> {
    let is_name = kept.name.len() <= NAME_BYTES_MAX && !kept.name.split('/').any(str::is_empty);
    let subject = || format!("{}.{}", subject_of(bucket, &kept.name), kept.word);
    (is_name && is_word(&kept.word)).then(subject)
}

/// Puts a content in place of the one that has the name.
pub(super) async fn put(
    context: &Context,
    bucket: &str,
    name: &str,
    content: Bytes,
) -> Result<Kept, PutError> {
    let stream = open(context, bucket).await.map_err(PutError::Former)?;
    let (word, named) = (fresh_word(), subject_of(bucket, name));
    let subject = format!("{named}.{word}");
    let first = match pieces(context, &subject, &content).await {
        Ok(first) => first,
        Err(error) => {
            // What is tried again has pieces of another subject. What is left now does no harm.
            let _ = stream.purge().filter(&subject).await;
            return Err(error);
        }
    };
    let all_of_name = stream.purge().filter(format!("{named}.*"));
    let removed = match first {
        Some(first) => all_of_name.sequence(first).await,
        None => all_of_name.await,
    };
    removed.map_err(|error| PutError::Former(error.into()))?;
    let (name, size_bytes, sha256) = (name.to_owned(), content.len() as u64, sum_of(&content));
    Ok(Kept { name, word, size_bytes, sha256 })
}

/// Sends the pieces, and returns the number of the first one in its stream once all are kept.
async fn pieces(
    context: &Context,
    subject: &str,
    content: &Bytes,
) -> Result<Option<u64>, PutError> {
    let mut under_way = VecDeque::with_capacity(UNDER_WAY_MAX);
    let mut first = None;
    for at in (0..content.len()).step_by(CHUNK_BYTES) {
        if under_way.len() == UNDER_WAY_MAX
            && let Some(oldest) = under_way.pop_front()
        {
            first = first.or(Some(await_taken(oldest).await?));
        }
        let piece = content.slice(at..content.len().min(at + CHUNK_BYTES));
        let sent = context.publish(subject.to_owned(), piece).await;
        under_way.push_back(sent.map_err(PutError::Piece)?);
    }
    for sent in under_way {
        first = first.or(Some(await_taken(sent).await?));
    }
    Ok(first)
}

async fn await_taken(piece: PublishAckFuture) -> Result<u64, PutError> {
    piece.await.map(|taken| taken.sequence).map_err(PutError::Piece)
}

/// How far a content was taken, so that what breaks off can go on.
pub(super) struct Taken {
    pub(super) size: u64,
    pieces: u64,
    /// The number of the last piece in its stream.
    sequence: u64,
    sum: Sum,
}

impl Default for Taken {
    fn default() -> Self {
        Self { size: 0, pieces: 0, sequence: 0, sum: Sum::new(&SHA256) }
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
    #[error("it is not what it is said to be")]
    Differs,
    #[error("it cannot be kept")]
    Keep(#[source] std::io::Error),
}

/// Takes a content from where an earlier try has left it.
pub(super) async fn take(
    context: &Context,
    bucket: &str,
    kept: &Kept,
    to: &mut dyn Write,
    taken: &mut Taken,
) -> Result<(), TakeError> {
    let stream = open(context, bucket).await.map_err(TakeError::Passing)?;
    let subject = pieces_of(bucket, kept).ok_or(TakeError::Differs)?;
    while taken.pieces < kept.size_bytes.div_ceil(CHUNK_BYTES as u64) {
        let next = stream.direct_get_next_for_subject(&*subject, Some(taken.sequence + 1)).await;
        let next = next.map_err(|error| match error.kind() {
            // All of them were there before it was said what they are.
            DirectGetErrorKind::NotFound if taken.pieces == 0 => TakeError::Missing,
            DirectGetErrorKind::NotFound => TakeError::Differs,
            _ => TakeError::Passing(error.into()),
        })?;
        to.write_all(&next.payload).map_err(TakeError::Keep)?;
        taken.sum.update(&next.payload);
        taken.size += next.payload.len() as u64;
        (taken.sequence, taken.pieces) = (next.sequence, taken.pieces + 1);
    }
    let sum = URL_SAFE.encode(taken.sum.clone().finish());
    match taken.size == kept.size_bytes && kept.sha256 == sum {
        true => Ok(()),
        false => Err(TakeError::Differs),
    }
}

/// Removes all contents of a bucket whose names lie below a path.
pub(super) async fn remove(context: &Context, bucket: &str, path: &str) -> Result<(), Failure> {
    let below = format!("{}.>", subject_of(bucket, path));
    open(context, bucket).await?.purge().filter(below).await?;
    Ok(())
}

/// Removes all contents of a bucket, whatever they are.
pub(super) async fn clear(context: &Context, bucket: &str) -> Result<(), Failure> {
    open(context, bucket).await?.purge().await?;
    Ok(())
}
