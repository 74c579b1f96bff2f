//! Object content: `f(seed, key, version, offset)`, incompressible, seekable and as fast as memory.
//!
//! Content is made in blocks of 8 KiB: a pad of random bytes, fixed by the seed and rotated by a
//! multiple of 64 bytes, combined (xor) with a 64-byte block key. The block key can be inverted to
//! the key's hash, version and block number, so that wrong bytes can be traced to where they
//! belong. `docs/formats/data.md` has the definition to the letter. Other content (zeros, text,
//! bytes of files, bytes that compress or repeat) is in [`DataRule`].

mod form;
mod trace;
mod wrong;

pub use form::{COMPRESS_RATIO_MAX, DEDUPE_RATIO_MAX, DataRule, UNIT_BYTES};
pub use trace::Origin;
pub use wrong::{Evidence, Received, Wrong};

use self::form::Form;
use crate::{Random, mix64};

/// Bytes per block.
pub const BLOCK_BYTES: usize = 8_192;
/// Bytes per line; the block key repeats in every line.
const LINE_BYTES: usize = 64;
const LINE_WORDS: usize = LINE_BYTES / 8;
const LINES: u64 = (BLOCK_BYTES / LINE_BYTES) as u64;
/// Bits of the block number; the version stands above them.
const BLOCK_NUMBER_BITS: u32 = 44;
/// So many versions of an object have contents of their own; after the last comes the first again.
pub const VERSIONS: u32 = 1 << 20;
const PAD_DOMAIN: u64 = 0x7061_6400;

type Line = [u8; LINE_BYTES];

/// The pad, which begins with a cache line.
#[repr(align(64))]
struct Pad([u8; 2 * BLOCK_BYTES]);

/// The pad of one seed. 16 KiB, so that it stays in the innermost cache.
pub struct Generator {
    /// The block twice in a row, so that a rotated one is a plain slice.
    pad: Box<Pad>,
    seed_mix: u64,
    form: Form,
}

impl Generator {
    /// Returns the generator of random content for `seed`.
    pub fn new(seed: u64) -> Self {
        Self::with_rule(seed, &DataRule::Random, Vec::new())
    }

    /// Returns the generator of content by `rule` for `seed`; `files` is what the files hold that
    /// the rule is about, one after the other, and empty where it is about none.
    pub fn with_rule(seed: u64, rule: &DataRule, files: Vec<u8>) -> Self {
        let mut random = Random::new(seed, PAD_DOMAIN, 0);
        let mut pad = Box::new(Pad([0; 2 * BLOCK_BYTES]));
        for word in pad.0[..BLOCK_BYTES].chunks_exact_mut(8) {
            word.copy_from_slice(&random.next_u64().to_le_bytes());
        }
        pad.0.copy_within(..BLOCK_BYTES, BLOCK_BYTES);
        Self { pad, seed_mix: mix64(seed), form: Form::new(rule, files) }
    }

    /// Returns the content of `version` of the object whose key hashes to `key_hash`.
    pub fn content(&self, key_hash: u64, version: u32) -> Content<'_> {
        let object_word = mix64(key_hash ^ self.seed_mix);
        Content { generator: self, object_word, version: u64::from(version), start: None }
    }

    /// Returns content that begins at that place of the files that the generator has.
    pub fn content_from(&self, start: u64) -> Content<'_> {
        Content { start: Some(start), ..self.content(0, 0) }
    }
}

/// The content of one version of one object, without end. The version is below 2^20.
#[derive(Clone, Copy)]
pub struct Content<'a> {
    generator: &'a Generator,
    object_word: u64,
    version: u64,
    /// Of content of files: where in them it begins, where that does not depend on the object.
    start: Option<u64>,
}

impl Content<'_> {
    /// Fills `buffer` with the content from `offset` on.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) {
        self.generator.form.fill(self, offset, buffer);
    }

    /// Fills `buffer` with random bytes from `offset` on.
    fn fill_random(&self, offset: u64, buffer: &mut [u8]) {
        let mut at = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let len = rest.len().min(BLOCK_BYTES - (at % BLOCK_BYTES as u64) as usize);
            let (piece, tail) = rest.split_at_mut(len);
            let (pad, line) = self.block(at, len);
            kernel::write(piece, pad, &line);
            at += len as u64;
            rest = tail;
        }
    }

    /// Tells whether `bytes` is the content from `offset` on.
    pub fn matches(&self, offset: u64, bytes: &[u8]) -> bool {
        match self.generator.form {
            Form::Random => self.matches_random(offset, bytes),
            _ => self.agreement(offset, bytes) == bytes.len(),
        }
    }

    /// Tells whether `bytes` are the random bytes from `offset` on.
    fn matches_random(&self, offset: u64, bytes: &[u8]) -> bool {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = rest.len().min(BLOCK_BYTES - (at % BLOCK_BYTES as u64) as usize);
            let (piece, tail) = rest.split_at(len);
            let (pad, line) = self.block(at, len);
            if !kernel::equal(piece, pad, &line) {
                return false;
            }
            at += len as u64;
            rest = tail;
        }
        true
    }

    /// Returns where `bytes` first differs from the content from `offset` on.
    pub fn first_difference(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        let agreement = self.agreement(offset, bytes);
        (agreement < bytes.len()).then(|| offset + agreement as u64)
    }

    /// Returns how many of the first bytes are the content from `offset` on.
    fn agreement(&self, offset: u64, bytes: &[u8]) -> usize {
        const STEP: usize = UNIT_BYTES / 2;
        let mut expected = [0; STEP];
        for (index, piece) in bytes.chunks(STEP).enumerate() {
            let done = index * STEP;
            let expected = &mut expected[..piece.len()];
            self.fill(offset + done as u64, expected);
            if expected != piece {
                let differs = expected.iter().zip(piece).position(|(right, got)| right != got);
                return done + differs.expect("they differ");
            }
        }
        bytes.len()
    }

    /// Returns the pad slice and the 64-byte key, turned so that both begin at `offset`.
    fn block(&self, offset: u64, len: usize) -> (&[u8], Line) {
        let within = (offset % BLOCK_BYTES as u64) as usize;
        let (words, turn) = self.block_key(offset / BLOCK_BYTES as u64);
        let mut key = [0; LINE_BYTES];
        for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        key.rotate_left(within % LINE_BYTES);
        (&self.generator.pad.0[turn + within..][..len], key)
    }

    /// Returns the words of the block's key and where in the pad the block begins.
    ///
    /// Every word differs from block to block: one that did not would repeat an eighth of the pad.
    fn block_key(&self, block: u64) -> ([u64; LINE_WORDS], usize) {
        let object = self.object_word;
        let place = self.version << BLOCK_NUMBER_BITS | block;
        let place = mix64(place ^ self.generator.seed_mix.rotate_left(32) ^ object);
        let mut words = [place, object ^ mix64(place), 0, 0, 0, 0, 0, 0];
        for (index, word) in words.iter_mut().enumerate().skip(2) {
            *word = mix64(object.rotate_left(7 * index as u32).wrapping_add(place) ^ index as u64);
        }
        (words, (mix64(object ^ place) % LINES) as usize * LINE_BYTES)
    }
}

/// The two inner loops, compiled for the vector units that the processor has.
mod kernel {
    use super::{LINE_BYTES, LINE_WORDS, Line};

    type Words = [u64; LINE_WORDS];

    #[inline(always)]
    fn words(bytes: &[u8]) -> Words {
        let mut words = [0; LINE_WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("chunks of eight"));
        }
        words
    }

    #[inline(always)]
    fn write_body(target: &mut [u8], pad: &[u8], line: &Line) {
        let key = words(line);
        let mut targets = target.chunks_exact_mut(LINE_BYTES);
        let mut pads = pad.chunks_exact(LINE_BYTES);
        for (target, pad) in (&mut targets).zip(&mut pads) {
            let pad = words(pad);
            for index in 0..LINE_WORDS {
                let word = (pad[index] ^ key[index]).to_ne_bytes();
                target[8 * index..8 * index + 8].copy_from_slice(&word);
            }
        }
        let tail = targets.into_remainder().iter_mut().zip(pads.remainder());
        for ((target, pad), key) in tail.zip(line) {
            *target = pad ^ key;
        }
    }

    #[inline(always)]
    fn equal_body(bytes: &[u8], pad: &[u8], line: &Line) -> bool {
        // Differences are gathered byte by byte of the line, which is what compilers make vectors
        // of.
        let mut difference: Line = [0; LINE_BYTES];
        let (pieces, tail) = bytes.as_chunks::<LINE_BYTES>();
        let (pads, pad_tail) = pad.as_chunks::<LINE_BYTES>();
        for (piece, pad) in pieces.iter().zip(pads) {
            for index in 0..LINE_BYTES {
                difference[index] |= piece[index] ^ pad[index] ^ line[index];
            }
        }
        let mut tail = tail.iter().zip(pad_tail).zip(line);
        difference == [0; LINE_BYTES] && tail.all(|((byte, pad), key)| *byte == pad ^ key)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn write_avx2(target: &mut [u8], pad: &[u8], line: &Line) {
        write_body(target, pad, line);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn equal_avx2(bytes: &[u8], pad: &[u8], line: &Line) -> bool {
        equal_body(bytes, pad, line)
    }

    /// As [`equal_body`]; three-way logic halves the work, wide loads cross cache lines less often.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn equal_avx512(bytes: &[u8], pad: &[u8], line: &Line) -> bool {
        use std::arch::x86_64::{
            _mm512_loadu_si512, _mm512_or_si512, _mm512_setzero_si512, _mm512_ternarylogic_epi64,
            _mm512_test_epi64_mask,
        };
        /// The truth table of `a ^ b ^ c`.
        const XOR: i32 = 0x96;
        let (pieces, _) = bytes.as_chunks::<LINE_BYTES>();
        let (pads, _) = pad.as_chunks::<LINE_BYTES>();
        // SAFETY: each load reads the 64 bytes of the array it is given.
        let load = |line: &Line| unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        let key = load(line);
        let mut difference = [_mm512_setzero_si512(); 2];
        for (index, (piece, pad)) in pieces.iter().zip(pads).enumerate() {
            let found = _mm512_ternarylogic_epi64::<XOR>(load(piece), load(pad), key);
            difference[index % 2] = _mm512_or_si512(difference[index % 2], found);
        }
        let difference = _mm512_or_si512(difference[0], difference[1]);
        let done = pieces.len() * LINE_BYTES;
        _mm512_test_epi64_mask(difference, difference) == 0
            && equal_body(&bytes[done..], &pad[done..], line)
    }

    /// Writes `pad ^ line` to `target`; both slices are of one length.
    pub(super) fn write(target: &mut [u8], pad: &[u8], line: &Line) {
        debug_assert_eq!(target.len(), pad.len());
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, which is all that the function asks for.
            return unsafe { write_avx2(target, pad, line) };
        }
        write_body(target, pad, line);
    }

    /// Tells whether `bytes` is `pad ^ line`; both slices are of one length.
    pub(super) fn equal(bytes: &[u8], pad: &[u8], line: &Line) -> bool {
        debug_assert_eq!(bytes.len(), pad.len());
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has AVX-512F, which is all that the function asks for.
            return unsafe { equal_avx512(bytes, pad, line) };
        }
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, which is all that the function asks for.
            return unsafe { equal_avx2(bytes, pad, line) };
        }
        equal_body(bytes, pad, line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hash_text;

    fn bytes(seed: u64, key: &str, version: u32, offset: u64, len: usize) -> Vec<u8> {
        let generator = Generator::new(seed);
        let mut buffer = vec![0; len];
        generator.content(hash_text(key), version).fill(offset, &mut buffer);
        buffer
    }

    /// The figures come from `docs/formats/data.py`, a second implementation of the definition in
    /// Python.
    #[test]
    fn content_is_as_the_format_defines_it() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&bytes(1, "a/b", 0, 0, 16)), include_str!("data_vectors/1.txt").trim());
        assert_eq!(
            hex(&bytes(7, "päivä", 3, 8_190, 16)),
            include_str!("data_vectors/2.txt").trim()
        );
        assert_eq!(
            hex(&bytes(7, "k", 0, (1 << 40) + 5, 16)),
            include_str!("data_vectors/3.txt").trim()
        );
    }

    #[test]
    fn every_wrong_byte_is_seen() {
        let generator = Generator::new(3);
        let content = generator.content(9, 0);
        let mut buffer = vec![0; 9_000];
        content.fill(100, &mut buffer);
        assert!(content.matches(100, &buffer));
        assert_eq!(content.first_difference(100, &buffer), None);
        for index in [0, 1, 63, 64, 8_091, 8_092, 8_999] {
            buffer[index] ^= 1;
            assert!(!content.matches(100, &buffer), "byte {index}");
            assert_eq!(content.first_difference(100, &buffer), Some(100 + index as u64));
            buffer[index] ^= 1;
        }
    }

    #[test]
    fn other_key_version_offset_or_seed_is_other_content() {
        let base = bytes(1, "k", 0, 0, 64);
        for other in [
            bytes(2, "k", 0, 0, 64),
            bytes(1, "l", 0, 0, 64),
            bytes(1, "k", 1, 0, 64),
            bytes(1, "k", 0, 64, 64),
            bytes(1, "k", 0, BLOCK_BYTES as u64, 64),
        ] {
            let same = base.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert!(same <= 6, "{same} of 64 bytes agree");
        }
    }

    #[test]
    fn bytes_are_even_and_do_not_compress() {
        let content = bytes(5, "object", 0, 0, 1 << 20);
        let mut counts = [0f64; 256];
        content.iter().for_each(|&byte| counts[usize::from(byte)] += 1.0);
        // Shannon's entropy of the byte frequencies; 8 would be perfect.
        let share = counts.map(|count| count / content.len() as f64);
        let entropy: f64 = share.iter().map(|share| -share * share.log2()).sum();
        assert!(entropy > 7.99, "{entropy} bits per byte");
        let packed = zstd::bulk::compress(&content, 3).unwrap();
        assert!(packed.len() >= content.len(), "{} of {}", packed.len(), content.len());
    }

    #[test]
    fn many_small_objects_do_not_compress_together() {
        let content: Vec<u8> =
            (0..1_000).flat_map(|n| bytes(5, &format!("objects/{n}"), 0, 0, 1_024)).collect();
        let packed = zstd::bulk::compress(&content, 9).unwrap();
        assert!(packed.len() >= content.len(), "{} of {}", packed.len(), content.len());
    }

    proptest! {
        #[test]
        fn any_piece_is_a_piece_of_the_whole(
            seed: u64, key in "[a-z/]{1,20}", from in 0usize..30_000, len in 0usize..20_000,
        ) {
            let whole = bytes(seed, &key, 0, 0, from + len);
            let piece = bytes(seed, &key, 0, from as u64, len);
            prop_assert_eq!(&whole[from..], &piece[..]);
            let generator = Generator::new(seed);
            prop_assert!(generator.content(hash_text(&key), 0).matches(from as u64, &piece));
        }
    }
}
