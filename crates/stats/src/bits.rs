//! Whole numbers as a row of bits, in which small ones take few.
//!
//! The code is the exponential Golomb code: of order k, numbers below 2^k take k + 1 bits, and each
//! doubling beyond takes two more (J. Teuhola, *A Compression Method for Clustered Bit-Vectors*,
//! Information Processing Letters 7 (6), 1978). Nothing is lost, however large a number is.

/// How many bits an order takes in front of its numbers.
const ORDER_BITS: u32 = 6;
/// The order is below 2^[`ORDER_BITS`].
const ORDER_MAX: u32 = (1 << ORDER_BITS) - 1;

/// The order of a code: that of numbers which are mostly about 2^k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order(u32);

impl Order {
    /// Returns the order k.
    pub(crate) const fn new(order: u32) -> Self {
        assert!(order <= ORDER_MAX);
        Self(order)
    }

    /// Returns the order in which these numbers take about the fewest bits.
    pub(crate) fn of(numbers: impl Iterator<Item = u64>) -> Self {
        // How many numbers have so many digits.
        let mut by_digits = [0u64; u64::BITS as usize + 1];
        numbers.for_each(|number| by_digits[digits(number) as usize] += 1);
        let used = by_digits.iter().rposition(|count| *count > 0).unwrap_or(0);
        let bits = |order: u32| -> u64 {
            let each = |digits: usize| u64::from((digits as u32).saturating_sub(order)) * 2;
            let beyond = by_digits[..=used].iter().enumerate();
            beyond.map(|(digits, count)| count * (each(digits) + u64::from(order))).sum()
        };
        let orders = 0..=(used as u32).min(ORDER_MAX);
        Self(orders.min_by_key(|order| bits(*order)).unwrap_or(0))
    }
}

fn digits(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// Writes bits, the lowest of each byte first.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte yet.
    held: u128,
    held_count: u32,
}

impl BitWriter {
    /// Writes the lowest `count` bits of `bits`, above which there are none.
    pub(crate) fn bits(&mut self, bits: u64, count: u32) {
        debug_assert!(digits(bits) <= count, "what is above the bits asked for is lost");
        self.held |= u128::from(bits) << self.held_count;
        self.held_count += count;
        while self.held_count >= 8 {
            self.bytes.push(self.held as u8);
            self.held >>= 8;
            self.held_count -= 8;
        }
    }

    /// Writes an order.
    pub(crate) fn order(&mut self, order: Order) {
        self.bits(u64::from(order.0), ORDER_BITS);
    }

    /// Writes a number in the code of `order`.
    pub(crate) fn number(&mut self, number: u64, Order(order): Order) {
        let above = u128::from(number >> order) + 1;
        let doublings = above.ilog2();
        self.bits(0, doublings);
        self.bits(1, 1);
        self.bits((above ^ (1 << doublings)) as u64, doublings);
        self.bits(number & ((1 << order) - 1), order);
    }

    /// Writes numbers behind the order that suits them.
    pub(crate) fn column(&mut self, numbers: impl Iterator<Item = u64> + Clone) {
        let order = Order::of(numbers.clone());
        self.order(order);
        numbers.for_each(|number| self.number(number, order));
    }

    /// Returns the bytes, the last one filled with zeros.
    pub(crate) fn finish(mut self) -> Box<[u8]> {
        if self.held_count > 0 {
            self.bytes.push(self.held as u8);
        }
        self.bytes.into_boxed_slice()
    }
}

/// Reads what [`BitWriter`] wrote, in the same steps; beyond the end all bits are zero.
#[derive(Clone, Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    held: u128,
    held_count: u32,
}

impl<'a> BitReader<'a> {
    /// Returns a reader of these bytes from the first bit on.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, held: 0, held_count: 0 }
    }

    fn fill(&mut self) {
        while self.held_count <= u128::BITS - 8
            && let Some((&byte, rest)) = self.bytes.split_first()
        {
            self.held |= u128::from(byte) << self.held_count;
            self.held_count += 8;
            self.bytes = rest;
        }
    }

    fn skip(&mut self, count: u32) {
        self.held >>= count;
        self.held_count = self.held_count.saturating_sub(count);
    }

    /// Reads `count` bits.
    pub(crate) fn bits(&mut self, count: u32) -> u64 {
        self.fill();
        let bits = self.held & ((1 << count) - 1);
        self.skip(count);
        bits as u64
    }

    /// Reads an order.
    pub(crate) fn order(&mut self) -> Order {
        Order(self.bits(ORDER_BITS) as u32)
    }

    /// Reads a number in the code of `order`.
    pub(crate) fn number(&mut self, Order(order): Order) -> u64 {
        self.fill();
        let doublings = self.held.trailing_zeros().min(u64::BITS);
        self.skip(doublings + 1);
        let above = (1 << doublings | u128::from(self.bits(doublings))) - 1;
        (above << order) as u64 | self.bits(order)
    }
}

/// Returns the difference as a number that is small where the two are close, on either side.
pub(crate) fn difference(from: u64, to: u64) -> u64 {
    let signed = to.wrapping_sub(from) as i64;
    (signed << 1 ^ signed >> 63) as u64
}

/// Returns what has that [`difference`] to `from`.
pub(crate) fn apply(from: u64, difference: u64) -> u64 {
    from.wrapping_add((difference >> 1) ^ (difference & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size_bytes(numbers: &[u64]) -> usize {
        let mut writer = BitWriter::default();
        writer.column(numbers.iter().copied());
        writer.finish().len()
    }

    #[test]
    fn numbers_take_about_as_many_bits_as_they_differ_by() {
        // 800 bits of ones are numbers of 1 bit each; the order takes six more.
        assert_eq!(size_bytes(&[0; 800]), 101);
        // Of order 3, 0 to 7 take four bits each.
        let small: Vec<u64> = (0..800).map(|number| number % 8).collect();
        assert!(size_bytes(&small) <= 401, "{}", size_bytes(&small));
        // One number out of place does not spoil the others.
        let outlier: Vec<u64> = small.iter().copied().chain([u64::MAX]).collect();
        assert!(size_bytes(&outlier) <= 401 + 16, "{}", size_bytes(&outlier));
    }

    #[test]
    fn differences_are_small_on_both_sides() {
        for (from, to, expected) in
            [(5, 5, 0), (5, 4, 1), (5, 6, 2), (0, u64::MAX, 1), (u64::MAX, 0, 2)]
        {
            assert_eq!((difference(from, to), apply(from, expected)), (expected, to));
        }
    }

    /// Numbers of all lengths alike.
    fn any_number() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(number, shift)| number >> shift)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn what_is_written_is_read(
            numbers in prop::collection::vec(any_number(), 0..20),
            bits in 0u32..=64,
            order in 0u32..=ORDER_MAX,
        ) {
            let mask = |number: u64| (u128::from(number) & ((1 << bits) - 1)) as u64;
            let mut writer = BitWriter::default();
            writer.column(numbers.iter().copied());
            for &number in &numbers {
                writer.bits(mask(number), bits);
                writer.number(number, Order(order));
            }
            let bytes = writer.finish();
            let mut reader = BitReader::new(&bytes);
            let suits = reader.order();
            for &number in &numbers {
                prop_assert_eq!(reader.number(suits), number);
            }
            for &number in &numbers {
                prop_assert_eq!(reader.bits(bits), mask(number));
                prop_assert_eq!(reader.number(Order(order)), number);
            }
            prop_assert_eq!(reader.bits(64), 0);
        }

        #[test]
        fn differences_come_back(from in any_number(), to in any_number()) {
            prop_assert_eq!(apply(from, difference(from, to)), to);
        }
    }
}
