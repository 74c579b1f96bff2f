//! Content other than plain random bytes: zeros, text, bytes of given files, and random bytes that
//! compress and repeat by as much as was asked.

use std::sync::Arc;

use super::Content;
use crate::mix64;

/// Bytes of a unit: each compresses alike, and repeats as a whole.
pub const UNIT_BYTES: usize = 4_096;
/// The highest ratio by which content can compress: above it the bookkeeping of a compressor is
/// more than what is left.
pub const COMPRESS_RATIO_MAX: f64 = 50.0;
/// The highest ratio by which content can repeat.
pub const DEDUPE_RATIO_MAX: f64 = 100.0;
/// What zstd -1 spends on the repetition within a unit, counted off its random bytes.
const SEQUENCE_BYTES: u64 = 4;
/// A unit repeats one that is so many distinct units back: beyond the 512 KiB that zstd -1 looks
/// back, so that repeating does not compress.
const REPEATED_FROM: u64 = 256;
const ONE: u64 = 1_000;
/// What the six low bits of a random byte become in a text: letters as often as in English, about.
const LETTERS: &[u8; 64] = b"           eeeeeetttttaaaaooooiiiinnnnssshhhrrrddlluucmwfgypbv,\n";

/// What content is made of.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum DataRule {
    /// Random bytes that neither compress nor repeat.
    #[default]
    Random,
    /// Random bytes that do.
    Shaped {
        /// By how much zstd -1 compresses them, in thousandths.
        compress_per_mille: u32,
        /// How many blocks of 4 KiB there are for each distinct one, in thousandths.
        dedupe_per_mille: u32,
    },
    /// Zeros.
    Zero,
    /// Letters.
    Text,
    /// The bytes of files, one after the other and over again, from a place that depends on the
    /// object.
    Files {
        /// How many bytes there are in all.
        bytes: u64,
    },
}

/// How a generator makes content.
pub(super) enum Form {
    Random,
    Shaped(Shape),
    Zero,
    Text,
    Files(Arc<[u8]>),
}

/// How random bytes are made to compress and to repeat.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// So many bytes of each unit are random, the others are as the first.
    random_bytes: usize,
    dedupe_per_mille: u64,
}

impl Form {
    /// Returns the form by `rule`; `files` is what the files hold.
    pub(super) fn new(rule: &DataRule, files: Vec<u8>) -> Self {
        match rule {
            DataRule::Random => Self::Random,
            DataRule::Zero => Self::Zero,
            DataRule::Text => Self::Text,
            DataRule::Files { bytes } => {
                assert!(*bytes > 0 && files.len() as u64 == *bytes, "the files hold what they do");
                Self::Files(Arc::from(files))
            }
            DataRule::Shaped { compress_per_mille, dedupe_per_mille } => {
                let unit = UNIT_BYTES as u64;
                let share = unit * ONE / u64::from(*compress_per_mille);
                let repeats = share < unit;
                let random_bytes = if repeats { share - SEQUENCE_BYTES } else { unit };
                Self::Shaped(Shape {
                    random_bytes: random_bytes as usize,
                    dedupe_per_mille: u64::from(*dedupe_per_mille),
                })
            }
        }
    }

    /// Fills `buffer` with `content`, which is of this form, from `offset` on.
    pub(super) fn fill(&self, content: &Content<'_>, offset: u64, buffer: &mut [u8]) {
        match self {
            Self::Random => content.fill_random(offset, buffer),
            Self::Shaped(shape) => shape.fill(content, offset, buffer),
            Self::Zero => buffer.fill(0),
            Self::Text => {
                content.fill_random(offset, buffer);
                buffer.iter_mut().for_each(|byte| *byte = LETTERS[usize::from(*byte & 63)]);
            }
            Self::Files(bytes) => {
                let len = bytes.len() as u64;
                let of_object = || mix64(content.object_word ^ mix64(content.version)) % len;
                let start = content.start.unwrap_or_else(of_object);
                let mut at = ((start + offset % len) % len) as usize;
                let mut rest = buffer;
                while !rest.is_empty() {
                    let (piece, tail) = rest.split_at_mut(rest.len().min(bytes.len() - at));
                    piece.copy_from_slice(&bytes[at..at + piece.len()]);
                    (at, rest) = (0, tail);
                }
            }
        }
    }

    /// Returns the place in an object where random bytes from `source` stand first; `None` where
    /// content holds no random bytes as they are.
    pub(super) fn place_of(&self, source: u64) -> Option<u64> {
        match self {
            Self::Random => Some(source),
            Self::Shaped(shape) => {
                let (distinct, within) = (source / UNIT_BYTES as u64, source % UNIT_BYTES as u64);
                Some(distinct * shape.dedupe_per_mille / ONE * UNIT_BYTES as u64 + within)
            }
            Self::Zero | Self::Text | Self::Files(_) => None,
        }
    }
}

impl Shape {
    /// Returns how many distinct units there are among the first `units`.
    fn distinct_count(&self, units: u64) -> u64 {
        (units * ONE).div_ceil(self.dedupe_per_mille)
    }

    /// Returns which distinct unit stands at place `unit`.
    fn distinct(&self, unit: u64) -> u64 {
        let before = self.distinct_count(unit);
        if self.distinct_count(unit + 1) > before {
            return before;
        }
        before.checked_sub(REPEATED_FROM).unwrap_or(before / 2)
    }

    fn fill(&self, content: &Content<'_>, offset: u64, buffer: &mut [u8]) {
        let mut at = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let within = (at % UNIT_BYTES as u64) as usize;
            let (piece, tail) = rest.split_at_mut(rest.len().min(UNIT_BYTES - within));
            let source = self.distinct(at / UNIT_BYTES as u64) * UNIT_BYTES as u64;
            let random_len = self.random_bytes.saturating_sub(within).min(piece.len());
            at += piece.len() as u64;
            let (random, pattern) = piece.split_at_mut(random_len);
            content.fill_random(source + within as u64, random);
            if !pattern.is_empty() {
                let mut first = [0];
                content.fill_random(source, &mut first);
                pattern.fill(first[0]);
            }
            rest = tail;
        }
    }
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
