//! Randomness: seeded, counter-like and the same on every machine. The only source of chance in a
//! run.

/// Mixes 64 bits so that each bit of the input moves half of the output; a bijection.
///
/// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// 2014).
pub const fn mix64(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Hashes a text to 64 bits: FNV-1a over its bytes, then mixed. Part of the content's definition.
pub fn hash_text(text: &str) -> u64 {
    mix64(fnv(FNV_OFFSET, text))
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(start: u64, text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(start, step)
}

/// Hashes texts that mostly begin alike, as [`hash_text`] does and in less time.
#[derive(Clone, Debug)]
pub struct PrefixHash {
    prefix: String,
    state: u64,
}

impl PrefixHash {
    /// Returns a hash for texts that begin with `prefix`.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), state: fnv(FNV_OFFSET, prefix) }
    }

    /// Returns the hash of `text`, whether it begins so or not.
    pub fn hash(&self, text: &str) -> u64 {
        let rest = text.strip_prefix(&*self.prefix);
        rest.map_or_else(|| hash_text(text), |rest| mix64(fnv(self.state, rest)))
    }
}

/// A stream of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Returns the stream for `seed` and up to two numbers that tell streams of one seed apart.
    pub const fn new(seed: u64, domain: u64, index: u64) -> Self {
        let state = mix64(mix64(seed ^ mix64(domain.wrapping_add(1))).wrapping_add(index));
        Self { state }
    }

    /// Returns 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.state)
    }

    /// Returns a number below `bound`, which is at least 1, every one equally likely to 2^-64.
    pub const fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Returns a number in [0, 1).
    pub const fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Puts `items` into random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

/// A seeded order of the numbers 0..len, computed and not stored.
///
/// A four-round Feistel network on the next power of four, walked until the result is in range
/// (Black and Rogaway: Ciphers with arbitrary finite domains, 2002).
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    len: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    const ROUNDS: u64 = 4;

    /// Returns the order of `len` numbers for `seed`.
    pub const fn new(seed: u64, len: u64) -> Self {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        let half_bits = if bits < 2 { 1 } else { bits.div_ceil(2) };
        Self { len, half_bits, key: mix64(seed) }
    }

    /// Returns the number at `position`, which is below the length.
    pub fn at(&self, position: u64) -> u64 {
        assert!(position < self.len);
        let mask = (1u64 << self.half_bits) - 1;
        let mut value = position;
        loop {
            let (mut left, mut right) = (value >> self.half_bits, value & mask);
            for round in 0..Self::ROUNDS {
                let mixed = mix64(right ^ self.key.rotate_left(round as u32 * 16)) & mask;
                (left, right) = (right, left ^ mixed);
            }
            value = left << self.half_bits | right;
            if value < self.len {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_prefix_changes_no_hash() {
        let prefix = PrefixHash::new("plimsoll/r1/");
        for text in ["plimsoll/r1/a/7.rnd", "plimsoll/r1/", "plimsoll/r2/a", ""] {
            assert_eq!(prefix.hash(text), hash_text(text), "{text}");
        }
    }

    #[test]
    fn splitmix64_is_the_published_one() {
        // First outputs for state 1234567, from the reference implementation's well-known test
        // vector.
        let mut random = Random { state: 1_234_567 };
        let expected: [u64; 3] =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(expected.map(|_| random.next_u64()), expected);
    }

    #[test]
    fn a_permutation_visits_every_number_once() {
        for len in [1u64, 2, 3, 5, 16, 17, 1_000, 4_097] {
            let order = Permutation::new(7, len);
            let mut seen: Vec<u64> = (0..len).map(|position| order.at(position)).collect();
            if len > 100 {
                assert!(seen.windows(2).any(|pair| pair[0] > pair[1]), "{len} stayed sorted");
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..len), "{len}");
        }
    }

    #[test]
    fn numbers_below_a_bound_are_even() {
        let mut random = Random::new(1, 2, 3);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[random.below(7) as usize] += 1;
        }
        // Six degrees of freedom: chi-square above 22.5 has a chance below 0.1 %.
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 22.5, "{counts:?}");
    }
}
