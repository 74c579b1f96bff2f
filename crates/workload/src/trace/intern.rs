//! Numbers for names, without keeping the names.

use std::collections::HashMap;

use crate::mix64;

/// Gives each name a number, in the order in which they come.
///
/// Names are told apart by 128 bits of hash: two of 10^8 names are taken for one with a chance of
/// about 10^-23 (the square of their number over 2^129).
#[derive(Debug, Default)]
pub(super) struct Interner {
    known: HashMap<u128, u32>,
}

impl Interner {
    /// Returns the number of a name; `None` where there are too many.
    pub(super) fn number(&mut self, name: &[u8]) -> Option<u32> {
        let next = u32::try_from(self.known.len()).ok().filter(|next| *next < u32::MAX - 1)?;
        Some(*self.known.entry(fingerprint(name)).or_insert(next))
    }

    pub(super) fn count(&self) -> u32 {
        self.known.len() as u32
    }
}

fn fingerprint(name: &[u8]) -> u128 {
    let (mut one, mut other) = (name.len() as u64, !(name.len() as u64));
    for chunk in name.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        one = mix64(one ^ word);
        other = mix64(other.rotate_left(23).wrapping_add(word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    u128::from(mix64(one)) << 64 | u128::from(mix64(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_no_other_has_it() {
        let mut names = Interner::default();
        let all: Vec<String> = (0..20_000).map(|n| format!("bucket/{:x}", n * 7)).collect();
        let numbers: Vec<_> = all.iter().map(|name| names.number(name.as_bytes())).collect();
        assert_eq!(numbers, (0..20_000).map(Some).collect::<Vec<_>>());
        assert_eq!(names.number(b"bucket/7"), Some(1));
        // A zero byte at the end is part of a name.
        assert_eq!(names.number(b"a"), Some(20_000));
        assert_eq!(names.number(b"a\0"), Some(20_001));
        assert_eq!(names.number(b""), Some(20_002));
        assert_eq!(names.count(), 20_003);
    }
}
