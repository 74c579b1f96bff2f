//! COSBench's guard: the last 40 bytes of an object are the MD5 of what stands before them, in hex
//! between `!!!!` and `!!!!`.

use md5::{Digest as _, Md5};
use plimsoll_workload::data::Content;

/// How long a guard is.
pub(crate) const GUARD_BYTES: usize = 40;
const MARK: &[u8; 4] = b"!!!!";
/// Content is hashed in pieces of this size.
const PIECE_BYTES: usize = 16 << 10;

/// Returns the guard of what has this digest.
fn text_of(digest: &[u8]) -> [u8; GUARD_BYTES] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut guard = [0; GUARD_BYTES];
    guard[..4].copy_from_slice(MARK);
    guard[36..].copy_from_slice(MARK);
    for (hex, byte) in guard[4..36].chunks_exact_mut(2).zip(digest) {
        hex[0] = DIGITS[usize::from(byte >> 4)];
        hex[1] = DIGITS[usize::from(byte & 15)];
    }
    guard
}

/// The guard of an object that is written.
pub(crate) struct Guard {
    /// Where in the object it begins.
    at: u64,
    /// Its text, once it was asked for.
    text: Option<[u8; GUARD_BYTES]>,
}

impl Guard {
    /// Returns the guard of an object of `size` bytes; a small one has none.
    pub(crate) fn of(size: u64) -> Option<Self> {
        let at = size.checked_sub(GUARD_BYTES as u64).filter(|at| *at > 0)?;
        Some(Self { at, text: None })
    }

    /// Returns the guard behind a file with which it has `size` bytes.
    pub(crate) fn behind(size: u64) -> Self {
        Self { at: size.saturating_sub(GUARD_BYTES as u64), text: None }
    }

    /// Puts as much of it as belongs there into a buffer that holds content from `offset` on.
    pub(crate) fn fill(&mut self, content: &Content<'_>, offset: u64, buffer: &mut [u8]) {
        let end = offset + buffer.len() as u64;
        if end <= self.at {
            return;
        }
        let at = self.at;
        let text = self.text.get_or_insert_with(|| text_of(&digest(content, at)));
        let from = self.at.max(offset);
        let text = &text[(from - self.at) as usize..(end - self.at) as usize];
        buffer[(from - offset) as usize..].copy_from_slice(text);
    }
}

/// Returns the MD5 of the first `len` bytes of content.
fn digest(content: &Content<'_>, len: u64) -> [u8; 16] {
    let mut md5 = Md5::new();
    let mut piece = [0; PIECE_BYTES];
    let mut at = 0;
    while at < len {
        let piece = &mut piece[..(len - at).min(PIECE_BYTES as u64) as usize];
        content.fill(at, piece);
        md5.update(&*piece);
        at += piece.len() as u64;
    }
    md5.finalize().into()
}

/// The last bytes of what is read, held back, and the digest of those before them where that is
/// worth its cost.
#[derive(Clone)]
pub(crate) struct HeldBack {
    tail: Vec<u8>,
    md5: Option<Md5>,
}

impl HeldBack {
    /// Holds nothing back yet; `hashes` tells whether what others wrote is checked by its guard.
    pub(crate) fn new(hashes: bool) -> Self {
        Self { tail: Vec::new(), md5: hashes.then(Md5::default) }
    }

    /// Takes the next bytes and gives those before the last ones to `body`.
    pub(crate) fn accept(&mut self, bytes: &[u8], mut body: impl FnMut(&[u8])) {
        let spare = (self.tail.len() + bytes.len()).saturating_sub(GUARD_BYTES);
        let (of_tail, of_bytes) =
            (spare.min(self.tail.len()), spare.saturating_sub(self.tail.len()));
        for piece in [&self.tail[..of_tail], &bytes[..of_bytes]] {
            if !piece.is_empty() {
                if let Some(md5) = &mut self.md5 {
                    md5.update(piece);
                }
                body(piece);
            }
        }
        self.tail.drain(..of_tail);
        self.tail.extend_from_slice(&bytes[of_bytes..]);
    }

    /// Returns the last bytes.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// Tells whether the last bytes are the guard of those before them, which are `len` bytes of
    /// this content where they were not hashed as they came; `None` if they are no guard.
    pub(crate) fn is_right(&self, content: &Content<'_>, len: u64) -> Option<bool> {
        let inside = self.tail.strip_prefix(MARK)?.strip_suffix(MARK)?;
        if inside.len() != 32 || !inside.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let is = |right: [u8; GUARD_BYTES]| self.tail.eq_ignore_ascii_case(&right);
        match &self.md5 {
            Some(md5) => Some(is(text_of(&md5.clone().finalize()))),
            // Whose guard another one is cannot be told without a digest of what came.
            None => is(text_of(&digest(content, len))).then_some(true),
        }
    }
}
