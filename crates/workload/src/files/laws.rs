//! Which block comes next, as a number: laws of chance over the blocks of one file.

use crate::{Random, mix64};

/// A seeded order of the numbers 0..len, computed and not stored; cheaper than
/// [`crate::Permutation`] and good enough for places in a file.
///
/// The steps of SplitMix64's finaliser, each a bijection also of fewer bits, on the next power of
/// two; walked until the result is in range (Black and Rogaway: Ciphers with arbitrary finite
/// domains, 2002).
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    len: u64,
    mask: u64,
    shift: u32,
    keys: [u64; 2],
}

impl Scatter {
    /// Returns the order of `len` numbers, at least 1, for `seed`.
    pub(super) fn new(seed: u64, len: u64) -> Self {
        let bits = (u64::BITS - len.saturating_sub(1).leading_zeros()).max(1);
        let mask = u64::MAX >> (u64::BITS - bits);
        let first = mix64(seed);
        Self { len, mask, shift: bits.div_ceil(2), keys: [first, mix64(first ^ seed)] }
    }

    /// Returns the number at `position`, which is below the length.
    #[inline]
    pub(super) fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.len);
        let mut x = position;
        loop {
            x = x.wrapping_add(self.keys[0]) & self.mask;
            x ^= x >> self.shift;
            x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9) & self.mask;
            x ^= x >> self.shift;
            x = (x ^ self.keys[1]).wrapping_mul(0x94d0_49bb_1331_11eb) & self.mask;
            x ^= x >> self.shift;
            x = x.wrapping_mul(0xd6e8_feb8_6659_fd93) & self.mask;
            x ^= x >> self.shift;
            if x < self.len {
                return x;
            }
        }
    }
}

/// Ranks 1..=n with a chance in proportion to rank^-theta, without a table.
///
/// Rejection-inversion (W. Hörmann, G. Derflinger: Rejection-inversion to generate variates from
/// monotone discrete distributions, ACM TOMACS 6(3), 1996): with H(x) = (x^(1-θ) - 1) / (1-θ), the
/// integral of h(x) = x^-θ, draw u evenly between H(1.5) - 1 and H(n + 0.5), take k, the number
/// nearest to x = H⁻¹(u), and accept it when k - x is at most s = 2 - H⁻¹(H(2.5) - h(2)) or u is at
/// least H(k + 0.5) - h(k).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    count: u64,
    theta: f64,
    low: f64,
    high: f64,
    surely: f64,
}

impl Zipf {
    /// Returns the law over `count` ranks; `theta` is above 0 and not 1.
    pub(crate) fn new(count: u64, theta: f64) -> Self {
        let mut law = Self { count, theta, low: 0.0, high: 0.0, surely: 0.0 };
        law.low = law.integral(1.5) - 1.0;
        law.high = law.integral(count as f64 + 0.5);
        law.surely = 2.0 - law.inverse(law.integral(2.5) - law.weight(2.0));
        law
    }

    /// Draws a rank, 0-based.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.low + random.unit() * (self.high - self.low);
            let x = self.inverse(u);
            let rank = ((x + 0.5) as u64).clamp(1, self.count);
            let near = rank as f64;
            if near - x <= self.surely || u >= self.integral(near + 0.5) - self.weight(near) {
                return rank - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    fn integral(&self, x: f64) -> f64 {
        let rest = 1.0 - self.theta;
        (rest * x.ln()).exp_m1() / rest
    }

    fn inverse(&self, u: f64) -> f64 {
        let rest = 1.0 - self.theta;
        // Rounding may take the product to -1, beyond every rank.
        ((u * rest).max(-1.0).ln_1p() / rest).exp()
    }
}

/// Draws a rank out of `count`, 0-based, of which the first `h` part gets 1 - `h` of all draws, and
/// so within that part again.
///
/// The self-similar law of J. Gray et al.: Quickly generating billion-record synthetic databases,
/// SIGMOD 1994, with `power` = ln h / ln (1 - h).
pub(super) fn self_similar(count: u64, power: f64, random: &mut Random) -> u64 {
    ((count as f64 * random.unit().powf(power)) as u64).min(count - 1)
}

/// Draws a place out of `count` by a normal law around the middle; what falls outside is drawn
/// again. `deviation` is a part of the whole.
///
/// The polar method (G. Marsaglia, T. Bray: A convenient method for generating normal variables,
/// 1964); the second variable is not kept, so that a draw does not depend on the one before.
pub(super) fn normal(count: u64, deviation: f64, random: &mut Random) -> u64 {
    loop {
        let (x, y) = (2.0 * random.unit() - 1.0, 2.0 * random.unit() - 1.0);
        let square = x * x + y * y;
        if square >= 1.0 || square == 0.0 {
            continue;
        }
        let place = 0.5 + deviation * x * (-2.0 * square.ln() / square).sqrt();
        if (0.0..1.0).contains(&place) {
            return ((count as f64 * place) as u64).min(count - 1);
        }
    }
}

#[cfg(test)]
#[path = "laws_tests.rs"]
mod tests;
