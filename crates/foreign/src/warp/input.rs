//! The decompressed bytes of an input, with what is not yet used of them kept in one buffer.

use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::thread::Scope;

use super::ahead::Ahead;
use super::{FileKind, WarpError};

/// By how many bytes the buffer is filled.
pub(super) const CHUNK_BYTES: usize = 256 << 10;
/// How many bytes are decompressed at once: as many good ones are lost before a damaged one.
const READ_BYTES: usize = 32 << 10;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A reader that fills what it is given as far as it can, and remembers whether it was the one to
/// fail.
///
/// How far a damaged stream can be read depends on the pieces it is handed to zstd in; filled up,
/// they are the same for a file and a pipe.
pub(super) struct Watched<R> {
    inner: R,
    has_failed: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match self.inner.read(&mut into[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.has_failed = true;
                    return Err(error);
                }
            }
        }
        Ok(filled)
    }
}

/// The first bytes, read to look at them, and all others.
type Whole<R> = io::Chain<io::Cursor<Vec<u8>>, Watched<R>>;

pub(super) enum Source<R: Read> {
    Plain(Whole<R>),
    Zstd(Box<zstd::stream::read::Decoder<'static, BufReader<Whole<R>>>>),
}

/// What comes behind the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Perhaps more.
    More,
    /// Nothing.
    None,
    /// What cannot be decompressed.
    Broken,
}

/// Who reads the source.
enum Reader<R: Read> {
    /// Whoever wants the next chunk.
    Own(Source<R>),
    /// A thread of its own.
    Ahead(Ahead),
}

/// An input, compressed or not, as plain bytes.
pub(crate) struct Input<R: Read> {
    reader: Reader<R>,
    is_compressed: bool,
    buffer: Vec<u8>,
    /// Which bytes of the buffer are filled and not yet consumed.
    unread: Range<usize>,
    is_at_end: bool,
    is_broken: bool,
}

impl<R: Read> Input<R> {
    /// Looks at the first bytes of `inner` and prepares to decompress it if they are zstd's.
    pub(crate) fn open(inner: R) -> Result<Self, WarpError> {
        let mut watched = Watched { inner, has_failed: false };
        let mut head = Vec::new();
        let magic_bytes = ZSTD_MAGIC.len() as u64;
        (&mut watched).take(magic_bytes).read_to_end(&mut head).map_err(WarpError::Read)?;
        let is_zstd = head == ZSTD_MAGIC || is_skippable_frame(&head);
        let whole = io::Cursor::new(head).chain(watched);
        let source = if is_zstd {
            let decoder = zstd::stream::read::Decoder::new(whole).map_err(WarpError::Read)?;
            Source::Zstd(Box::new(decoder))
        } else {
            Source::Plain(whole)
        };
        let mut input = Self {
            reader: Reader::Own(source),
            is_compressed: is_zstd,
            buffer: Vec::new(),
            unread: 0..0,
            is_at_end: false,
            is_broken: false,
        };
        input.fill()?;
        if input.unread().starts_with(BYTE_ORDER_MARK) {
            input.consume(BYTE_ORDER_MARK.len());
        }
        Ok(input)
    }

    /// Has the rest of a compressed input decompressed by a thread of its own. What is read, and
    /// how far a damaged stream is, stays the same.
    pub(crate) fn read_ahead<'scope>(self, scope: &'scope Scope<'scope, '_>) -> Self
    where
        R: Send + 'scope,
    {
        let reader = match self.reader {
            Reader::Own(source) if self.is_compressed && !self.is_at_end => {
                Ahead::of(source, scope).map_or_else(Reader::Own, Reader::Ahead)
            }
            reader => reader,
        };
        Self { reader, ..self }
    }

    /// Returns which format the bytes have, by the first that is not white space.
    pub(crate) fn kind(&self) -> Result<FileKind, WarpError> {
        match self.unread().trim_ascii_start().first() {
            Some(b'{') => Ok(FileKind::Aggregated),
            Some(_) => Ok(FileKind::Raw),
            None if self.is_broken => Err(WarpError::Damaged),
            None => Err(WarpError::NoOperation(None)),
        }
    }

    /// Tells whether the input is compressed.
    pub(crate) fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Tells whether the compressed stream broke off or proved damaged.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns what is decompressed and not yet consumed.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.buffer[self.unread.clone()]
    }

    /// Drops the first `count` bytes of `unread`.
    pub(crate) fn consume(&mut self, count: usize) {
        assert!(count <= self.unread.len());
        self.unread.start += count;
    }

    /// Adds the next chunk to `unread`; tells whether there was anything left to add.
    pub(crate) fn fill(&mut self) -> Result<bool, WarpError> {
        if self.unread.start > 0 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        let before = self.unread.end;
        if self.is_at_end {
            return Ok(false);
        }
        let wanted = before + CHUNK_BYTES;
        if self.buffer.len() < wanted {
            // Bound: what callers leave unread, such as a row, which they refuse when too long.
            self.buffer.resize(wanted, 0);
        }
        let chunk = &mut self.buffer[before..wanted];
        let (count, rest) = match &mut self.reader {
            Reader::Own(source) => source.fill(chunk)?,
            Reader::Ahead(ahead) => ahead.fill(chunk)?,
        };
        self.unread.end = before + count;
        (self.is_at_end, self.is_broken) = (rest != Rest::More, rest == Rest::Broken);
        Ok(self.unread.end > before)
    }
}

impl<R: Read> Source<R> {
    /// Fills a chunk up, so that a reader of few bytes at a time costs no rescans. Returns how many
    /// bytes were read, and what comes behind them.
    pub(super) fn fill(&mut self, chunk: &mut [u8]) -> Result<(usize, Rest), WarpError> {
        let mut filled = 0;
        while filled < chunk.len() {
            let until = chunk.len().min(filled + READ_BYTES);
            let into = &mut chunk[filled..until];
            let result = match self {
                Self::Plain(reader) => reader.read(into),
                Self::Zstd(decoder) => decoder.read(into),
            };
            match result {
                Ok(0) => return Ok((filled, Rest::None)),
                Ok(count) => filled += count,
                Err(error) if self.has_reader_failed() => return Err(WarpError::Read(error)),
                Err(_) => return Ok((filled, Rest::Broken)),
            }
        }
        Ok((filled, Rest::More))
    }

    fn has_reader_failed(&self) -> bool {
        let whole = match self {
            Self::Plain(whole) => whole,
            Self::Zstd(decoder) => decoder.get_ref().get_ref(),
        };
        whole.get_ref().1.has_failed
    }
}

/// Tells whether a stream begins with a frame that decoders pass over (RFC 8878, 3.1.2).
fn is_skippable_frame(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18])
}
