//! From bytes back to where they belong: the block key is inverted to object, version and block.

use super::{BLOCK_BYTES, BLOCK_NUMBER_BITS, Content, Generator, LINE_BYTES, LINES};
use crate::mix64;

/// Fewer bytes than this are never traced: 16 of them give the key, the others confirm it.
pub(super) const TRACE_BYTES_MIN: usize = 24;
/// The last place of a line's beginning that has to be tried: where no block ends in the first 79
/// bytes, two words of a line are whole within them, and where one ends, the next begins a line.
const LINE_START_MAX: usize = 78;
/// No object reaches this block (512 TiB); most wrong guesses do.
const BLOCKS_MAX: u64 = 1 << 36;

/// Where content belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The hash of the object's key, as [`crate::hash_text`] gives it.
    pub key_hash: u64,
    /// The object's version.
    pub version: u32,
    /// The place of the first byte in the object.
    pub offset: u64,
}

impl Generator {
    /// Returns what content of this seed `bytes` are, wherever they were cut.
    ///
    /// 94 bytes or more are always traced; from 24 bytes on those are that hold the first two words
    /// of a block key, such as the beginning of an object.
    pub fn identify(&self, bytes: &[u8]) -> Option<Origin> {
        self.trace(bytes, bytes.len())
    }

    /// As [`Self::identify`], but only the first `least` bytes need to belong together.
    pub(super) fn trace(&self, bytes: &[u8], least: usize) -> Option<Origin> {
        let least = least.max(TRACE_BYTES_MIN);
        if bytes.len() < least || self.form.place_of(0).is_none() {
            return None;
        }
        let bytes_of = |at: usize| word(bytes, at);
        let pad = |line: usize| word(&self.pad.0, line * LINE_BYTES);
        let next = |line: usize| pad(line) ^ pad(line + 1);
        let steps: [u64; LINES as usize] = std::array::from_fn(next);
        // Where two lines of one block are there, the key falls out of their difference, and a
        // guess costs a comparison.
        let starts = || 0..=(bytes.len() - 16).min(LINE_START_MAX);
        let pairs = starts().take_while(|start| start + LINE_BYTES + 8 <= bytes.len());
        let by_pairs = pairs.flat_map(|start| {
            let step = bytes_of(start) ^ bytes_of(start + LINE_BYTES);
            let lines = steps.iter().enumerate().filter(move |(_, found)| **found == step);
            lines.map(move |(line, _)| (start, line))
        });
        let all = starts().flat_map(|start| (0..LINES as usize).map(move |line| (start, line)));
        by_pairs.chain(all).find_map(|(start, line)| {
            let place = line * LINE_BYTES;
            let words =
                [0, 8].map(|index| bytes_of(start + index) ^ word(&self.pad.0, place + index));
            let origin = self.invert(words, place, start)?;
            let first = origin.offset + start as u64;
            let offset = self.form.place_of(first)?.checked_sub(start as u64)?;
            let origin = Origin { offset, ..origin };
            let content = self.content(origin.key_hash, origin.version);
            (content.agreement(origin.offset, bytes) >= least).then_some(origin)
        })
    }

    /// Returns the origin of bytes that have a line with these first two key words at `start` and
    /// at `place` of the pad.
    fn invert(&self, [y, second]: [u64; 2], place: usize, start: usize) -> Option<Origin> {
        let x = second ^ mix64(y);
        let numbers = unmix64(y) ^ self.seed_mix.rotate_left(32) ^ x;
        let block = numbers & ((1 << BLOCK_NUMBER_BITS) - 1);
        if block >= BLOCKS_MAX {
            return None;
        }
        let turn = (mix64(x ^ y) % LINES) as usize * LINE_BYTES;
        let within = (place + BLOCK_BYTES - turn) % BLOCK_BYTES;
        let offset = block * BLOCK_BYTES as u64 + within as u64;
        Some(Origin {
            key_hash: unmix64(x) ^ self.seed_mix,
            version: (numbers >> BLOCK_NUMBER_BITS) as u32,
            offset: offset.checked_sub(start as u64)?,
        })
    }
}

impl Content<'_> {
    /// Tells whether `origin` is in the same object, of whatever version.
    pub fn is_same_object(&self, origin: &Origin) -> bool {
        let key_hash = origin.key_hash;
        self.generator.content(key_hash, origin.version).object_word == self.object_word
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Undoes [`mix64`]: the factors are the inverses of its own modulo 2^64.
const fn unmix64(mut x: u64) -> u64 {
    x ^= x >> 31 ^ x >> 62;
    x = x.wrapping_mul(0x3196_42b2_d24d_8ec3);
    x ^= x >> 27 ^ x >> 54;
    x = x.wrapping_mul(0x96de_1b17_3f11_9089);
    x ^ x >> 30 ^ x >> 60
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn mixing_is_undone() {
        let mut random = Random::new(1, 2, 3);
        for x in (0..1_000).map(|_| random.next_u64()).chain([0, 1, u64::MAX]) {
            assert_eq!(unmix64(mix64(x)), x);
        }
    }

    #[test]
    fn a_piece_is_traced_wherever_it_was_cut() {
        let mut random = Random::new(5, 0, 0);
        for trial in 0..400 {
            let generator = Generator::new(trial % 7);
            let key_hash = random.next_u64();
            let version = random.below(1 << 20) as u32;
            // Half of the pieces lie around the end of a block.
            let offset = match trial % 2 {
                0 => random.below(1 << 42),
                _ => (1 + random.below(9)) * BLOCK_BYTES as u64 - random.below(200),
            };
            let mut bytes = vec![0; 94 + random.below(100) as usize];
            generator.content(key_hash, version).fill(offset, &mut bytes);
            let origin = Origin { key_hash, version, offset };
            assert_eq!(generator.identify(&bytes), Some(origin));
            assert!(generator.content(key_hash, 0).is_same_object(&origin));
            assert!(!generator.content(key_hash ^ 1, 0).is_same_object(&origin));
            bytes[20] ^= 1;
            assert_eq!(generator.identify(&bytes), None);
            assert_eq!(Generator::new(100).identify(&bytes), None);
        }
    }

    #[test]
    fn small_objects_are_traced_from_their_beginning() {
        let generator = Generator::new(9);
        for size in 24..80 {
            let mut bytes = vec![0; size];
            generator.content(77, 3).fill(0, &mut bytes);
            let origin = Origin { key_hash: 77, version: 3, offset: 0 };
            assert_eq!(generator.identify(&bytes), Some(origin), "{size} bytes");
        }
    }

    #[test]
    fn other_bytes_are_not_traced() {
        let generator = Generator::new(9);
        let mut random = Random::new(6, 0, 0);
        for len in [0, 1, 15, 16, 23, 24, 79, 128, 500] {
            let noise: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
            assert_eq!(generator.identify(&noise), None);
            assert_eq!(generator.identify(&vec![0; len]), None);
        }
    }
}
