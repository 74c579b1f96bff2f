//! Numbers as Parquet packs them: `DELTA_BINARY_PACKED`, and the hybrid of runs and packed bits
//! that levels and keys of dictionaries are in.
//!
//! The layout is that of the Parquet format's encodings.

/// A whole number of a column.
pub(super) trait Number: Copy + PartialEq {
    /// How many values a block holds; the library that reads them has the same.
    const BLOCK: usize;

    /// Returns it as a number of 64 bits.
    fn wide(self) -> i64;

    /// Returns the difference to the one before it, which wraps around.
    fn since(self, before: Self) -> i64;

    /// Returns how much a difference of such numbers is above the least one.
    fn above(difference: i64, least: i64) -> u64;
}

impl Number for i32 {
    const BLOCK: usize = 128;

    fn wide(self) -> i64 {
        self.into()
    }

    fn since(self, before: Self) -> i64 {
        self.wrapping_sub(before).into()
    }

    fn above(difference: i64, least: i64) -> u64 {
        ((difference as i32).wrapping_sub(least as i32) as u32).into()
    }
}

impl Number for i64 {
    const BLOCK: usize = 256;

    fn wide(self) -> i64 {
        self
    }

    fn since(self, before: Self) -> i64 {
        self.wrapping_sub(before)
    }

    fn above(difference: i64, least: i64) -> u64 {
        difference.wrapping_sub(least) as u64
    }
}

/// The most values of a block.
const BLOCK_MAX: usize = 256;
/// How many stretches of its own width a block has.
const STRETCHES: usize = 4;

/// Appends numbers as `DELTA_BINARY_PACKED`.
pub(super) fn push_deltas<T: Number>(out: &mut Vec<u8>, numbers: &[T]) {
    let first = numbers.first().copied();
    push_header::<T>(out, numbers.len(), first);
    let mut before = match first {
        Some(first) => first,
        None => return,
    };
    let mut deltas = [0i64; BLOCK_MAX];
    for block in numbers[1..].chunks(T::BLOCK) {
        let deltas = &mut deltas[..block.len()];
        deltas[0] = block[0].since(before);
        for (delta, pair) in deltas[1..].iter_mut().zip(block.windows(2)) {
            *delta = pair[1].since(pair[0]);
        }
        before = block[block.len() - 1];
        push_block::<T>(out, deltas);
    }
}

/// Appends one number so many times as `DELTA_BINARY_PACKED`.
pub(super) fn push_same<T: Number>(out: &mut Vec<u8>, number: T, count: usize) {
    push_header(out, count, Some(number).filter(|_| count > 0));
    let blocks = count.saturating_sub(1).div_ceil(T::BLOCK);
    // The least difference is 0, and so is each width.
    // Bound: rows that wait in memory to be written.
    out.resize(out.len() + blocks * (1 + STRETCHES), 0);
}

fn push_header<T: Number>(out: &mut Vec<u8>, count: usize, first: Option<T>) {
    push_varint(out, T::BLOCK as u64);
    push_varint(out, STRETCHES as u64);
    push_varint(out, count as u64);
    push_varint(out, zigzag(first.map_or(0, T::wide)));
}

/// Appends a block of differences, of which the last ones may be missing.
fn push_block<T: Number>(out: &mut Vec<u8>, deltas: &[i64]) {
    let least = deltas.iter().copied().fold(i64::MAX, i64::min);
    push_varint(out, zigzag(least));
    let widths = out.len();
    out.extend_from_slice(&[0; STRETCHES]);
    let len = T::BLOCK / STRETCHES;
    let mut above = [0u64; BLOCK_MAX / STRETCHES];
    for (at, stretch) in deltas.chunks(len).enumerate() {
        let above = &mut above[..len];
        above[stretch.len()..].fill(0);
        let mut all = 0;
        for (above, delta) in above.iter_mut().zip(stretch) {
            *above = T::above(*delta, least);
            all |= *above;
        }
        let width = u64::BITS - all.leading_zeros();
        out[widths + at] = width as u8;
        push_bits(out, above, width);
    }
}

/// Appends numbers of `width` bits side by side, the lowest first; together they fill whole bytes.
fn push_bits(out: &mut Vec<u8>, numbers: &[u64], width: u32) {
    if width == 0 {
        return;
    }
    // Some room is left so that a whole word can be written wherever the bits end.
    let bytes = numbers.len() * width as usize / 8;
    let begin = out.len();
    // Bound: eight bytes a number that is in memory.
    out.resize(begin + bytes + size_of::<u64>(), 0);
    let room = &mut out[begin..];
    let (mut word, mut used, mut at) = (0u64, 0, 0);
    for &number in numbers {
        word |= number << used;
        used += width;
        if used >= u64::BITS {
            room[at..at + size_of::<u64>()].copy_from_slice(&word.to_le_bytes());
            at += size_of::<u64>();
            used -= u64::BITS;
            // What did not fit; a shift by all bits has no meaning.
            word = if used == 0 { 0 } else { number >> (width - used) };
        }
    }
    room[at..at + size_of::<u64>()].copy_from_slice(&word.to_le_bytes());
    out.truncate(begin + bytes);
}

/// Keys of a group that is packed.
const GROUP: usize = 8;

/// Appends keys below 2^`width` in runs of one key and runs of packed ones.
pub(super) fn push_hybrid<T: Copy + Eq + Into<u64>>(out: &mut Vec<u8>, keys: &[T], width: u32) {
    let mut rest = keys;
    while let Some(&key) = rest.first() {
        let same = rest.iter().take_while(|other| **other == key).count();
        if same >= GROUP || same == rest.len() {
            push_run(out, key, same, width);
            rest = &rest[same..];
            continue;
        }
        // Groups up to the next one that begins a run.
        let begins_run = |group: &[T]| group.len() == GROUP && group.iter().all(|k| *k == group[0]);
        let groups = rest.chunks(GROUP).take_while(|group| !begins_run(group)).count();
        let (packed, after) = rest.split_at(rest.len().min(groups * GROUP));
        push_varint(out, (groups as u64) << 1 | 1);
        for group in packed.chunks(GROUP) {
            let mut whole = [0; GROUP];
            whole.iter_mut().zip(group).for_each(|(whole, key)| *whole = (*key).into());
            push_bits(out, &whole, width);
        }
        rest = after;
    }
}

/// Appends a run of one key.
pub(super) fn push_run<T: Into<u64>>(out: &mut Vec<u8>, key: T, count: usize, width: u32) {
    push_varint(out, (count as u64) << 1);
    out.extend_from_slice(&key.into().to_le_bytes()[..width.div_ceil(8) as usize]);
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Parquet format's page on encodings: 1, 2, 3, 4, 5 are a header, the
    /// first value, and a block in which all differences are 1.
    #[test]
    fn the_formats_own_example_of_equal_differences() {
        let mut out = Vec::new();
        push_deltas(&mut out, &[1i32, 2, 3, 4, 5]);
        // 128 is 0x80 0x01 as a varint; 1 is 2 zigzag.
        assert_eq!(out, [0x80, 0x01, 4, 5, 2, 2, 0, 0, 0, 0]);
    }

    /// The second example there: 7, 5, 3, 1, 2, 3, 4, 5 have the least difference -2, and above it
    /// 0, 0, 0, 3, 3, 3, 3 in two bits each.
    #[test]
    fn the_formats_own_example_of_packed_differences() {
        let mut out = Vec::new();
        push_deltas(&mut out, &[7i32, 5, 3, 1, 2, 3, 4, 5]);
        let packed = [0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0];
        let head = [0x80, 0x01, 4, 8, 14, 3, 2, 0, 0, 0];
        assert_eq!(out, [&head[..], &packed[..]].concat());
    }

    #[test]
    fn equal_numbers_are_packed_alike_however_they_come() {
        for count in [0, 1, 2, 128, 129, 130, 257, 8_192] {
            let (mut each, mut same) = (Vec::new(), Vec::new());
            push_deltas(&mut each, &vec![-7i64; count]);
            push_same(&mut same, -7i64, count);
            assert_eq!(each, same, "{count}");
            (each, same) = Default::default();
            push_deltas(&mut each, &vec![9i32; count]);
            push_same(&mut same, 9i32, count);
            assert_eq!(each, same, "{count}");
        }
    }

    /// The format's own example: the numbers 0 to 7 in three bits each.
    #[test]
    fn keys_are_packed_as_the_format_says() {
        let mut out = Vec::new();
        push_hybrid(&mut out, &[0u8, 1, 2, 3, 4, 5, 6, 7], 3);
        assert_eq!(out, [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        // 200 times key 2, then a group in which keys change and one that is not full.
        out.clear();
        let keys = [vec![2u8; 200], vec![0, 1, 0, 1, 0, 1, 0, 1], vec![1, 0]].concat();
        push_hybrid(&mut out, &keys, 2);
        assert_eq!(out, [0x90, 0x03, 2, 0b101, 0x44, 0x44, 0x01, 0x00]);
        out.clear();
        push_hybrid(&mut out, &[0u8; 3], 0);
        assert_eq!(out, [6], "a dictionary of one text has keys of no bits");
    }
}
