//! Chunks of an input that a thread of its own decompresses while those before them are in use.

use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::{Builder, Scope};

use super::WarpError;
use super::input::{CHUNK_BYTES, Rest, Source};

/// How many chunks are decompressed ahead of the one in use.
const CHUNKS_AHEAD: usize = 4;

/// A chunk, not always full.
struct Chunk {
    bytes: Vec<u8>,
    count: usize,
    /// What comes behind it.
    rest: Rest,
}

/// A source that a thread reads.
pub(super) struct Ahead {
    chunks: Receiver<Result<Chunk, WarpError>>,
    /// Takes chunks back that have been used.
    used: Sender<Vec<u8>>,
}

impl Ahead {
    /// Has a thread read a source; returns the source where there is no thread to be had.
    pub(super) fn of<'scope, R: Read + Send + 'scope>(
        source: Source<R>,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<Self, Source<R>> {
        let (give, take) = channel::<Source<R>>();
        let (send, chunks) = sync_channel(CHUNKS_AHEAD);
        let (used, free) = channel::<Vec<u8>>();
        let thread = Builder::new().name("decompress".to_owned()).spawn_scoped(scope, move || {
            let Ok(mut source) = take.recv() else { return };
            loop {
                let mut bytes = free.try_recv().unwrap_or_else(|_| vec![0; CHUNK_BYTES]);
                let filled = source.fill(&mut bytes);
                let goes_on = matches!(filled, Ok((_, Rest::More)));
                let chunk = filled.map(|(count, rest)| Chunk { bytes, count, rest });
                if send.send(chunk).is_err() || !goes_on {
                    return;
                }
            }
        });
        if thread.is_err() {
            return Err(source);
        }
        match give.send(source) {
            Ok(()) => Ok(Self { chunks, used }),
            Err(unsent) => Err(unsent.0),
        }
    }

    /// Copies the next chunk, and returns how many bytes it has and what comes behind them.
    pub(super) fn fill(&self, chunk: &mut [u8]) -> Result<(usize, Rest), WarpError> {
        // The thread ends with the last chunk.
        let Ok(read) = self.chunks.recv() else { return Ok((0, Rest::None)) };
        let Chunk { bytes, count, rest } = read?;
        chunk[..count].copy_from_slice(&bytes[..count]);
        // It may have ended already.
        let _ = self.used.send(bytes);
        Ok((count, rest))
    }
}
