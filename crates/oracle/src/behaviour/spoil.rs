//! Wrong content made of right content, the same for every store that acts out a script.

use plimsoll_model::ErrorClass;

use super::Lie;

/// The largest distance of [`Lie::Shifted`].
const SHIFT_MAX: u64 = 4_096;

/// What wrong content can be made of.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The whole object as it is.
    pub object: &'a [u8],
    /// The first byte that is asked for.
    pub offset: usize,
    /// How many bytes are asked for, all of them within the object.
    pub len: usize,
    /// The whole object before its last write.
    pub older: Option<&'a [u8]>,
    /// A whole other object.
    pub other: Option<&'a [u8]>,
}

/// Returns how a client that knows what is right classes a content, `None` if it is right.
pub fn class_of_content(given: &[u8], right: &[u8]) -> Option<ErrorClass> {
    let shared = given.len().min(right.len());
    match given[..shared] == right[..shared] {
        true if given.len() == right.len() => None,
        true => Some(ErrorClass::Truncated),
        false => Some(ErrorClass::Corrupt),
    }
}

/// Returns as many bytes as are asked for, wrong in the way of `lie`; `None` if that cannot be done
/// or would be right.
pub fn spoil(lie: Lie, salt: u64, source: &Source<'_>) -> Option<Vec<u8>> {
    let right = source.right();
    let wrong = match lie {
        Lie::OtherKey => source.part_of(source.other?)?.to_vec(),
        Lie::OldVersion => source.part_of(source.older?)?.to_vec(),
        Lie::Shifted => source.shifted(salt)?,
        Lie::Zeroed => vec![0; source.len],
        Lie::Torn => source.torn(salt)?,
        Lie::Flipped => {
            let mut bytes = right.to_vec();
            let bit = below(salt, bytes.len() as u64 * 8)?;
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            bytes
        }
        Lie::LostWrite
        | Lie::StaleRead
        | Lie::ListOmission
        | Lie::ListGhost
        | Lie::WrongTag
        | Lie::LostCopy => return None,
    };
    (wrong != right).then_some(wrong)
}

impl<'a> Source<'a> {
    fn right(&self) -> &'a [u8] {
        &self.object[self.offset..self.offset + self.len]
    }

    /// Returns the bytes at the place asked for of another content, if it is long enough.
    fn part_of(&self, content: &'a [u8]) -> Option<&'a [u8]> {
        content.get(self.offset..self.offset + self.len)
    }

    /// Returns the object's bytes from 1 to [`SHIFT_MAX`] further on; behind its end comes its
    /// beginning.
    fn shifted(&self, salt: u64) -> Option<Vec<u8>> {
        let size = self.object.len();
        let distance = 1 + below(salt, (size as u64).saturating_sub(1).min(SHIFT_MAX))? as usize;
        let from = (self.offset + distance) % size;
        let bytes = self.object.iter().cycle().skip(from).take(self.len);
        Some(bytes.copied().collect())
    }

    /// Returns the right bytes up to a point in the middle half, then those of an older version or
    /// of another object.
    fn torn(&self, salt: u64) -> Option<Vec<u8>> {
        let part = |content: Option<&'a [u8]>| content.and_then(|content| self.part_of(content));
        let tail = part(self.older).or_else(|| part(self.other))?;
        let quarter = self.len / 4;
        let cut = quarter + below(salt, (self.len - 2 * quarter) as u64)? as usize;
        // Something of both is needed.
        let cut = cut.max(1);
        let mut bytes = self.right()[..cut.min(self.len)].to_vec();
        bytes.extend_from_slice(tail.get(cut..)?);
        Some(bytes)
    }
}

/// Returns a number below `bound` that `salt` chooses, `None` if there is none.
fn below(salt: u64, bound: u64) -> Option<u64> {
    salt.checked_rem(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIES: [Lie; 6] =
        [Lie::OtherKey, Lie::OldVersion, Lie::Shifted, Lie::Zeroed, Lie::Torn, Lie::Flipped];

    fn content(first: u8, len: usize) -> Vec<u8> {
        (0..len).map(|at| (at as u8).wrapping_mul(7).wrapping_add(first)).collect()
    }

    #[test]
    fn each_lie_is_wrong_in_its_own_way() {
        let (object, older, other) = (content(1, 100), content(2, 100), content(3, 120));
        for salt in 0..200 {
            let source = Source {
                object: &object,
                offset: 10,
                len: 40,
                older: Some(&older),
                other: Some(&other),
            };
            let of = |lie| spoil(lie, salt, &source).unwrap();
            assert_eq!(of(Lie::OtherKey), other[10..50]);
            assert_eq!(of(Lie::OldVersion), older[10..50]);
            assert_eq!(of(Lie::Zeroed), [0; 40]);
            let distance = 1 + (salt as usize) % 99;
            let turned = [&object[..], &object[..]].concat();
            assert_eq!(of(Lie::Shifted), turned[10 + distance..50 + distance]);
            let torn = of(Lie::Torn);
            let cut = 10 + (salt as usize) % 20;
            assert_eq!((&torn[..cut], &torn[cut..]), (&object[10..10 + cut], &older[10 + cut..50]));
            let flipped = of(Lie::Flipped);
            let bits = flipped.iter().zip(&object[10..50]).map(|(a, b)| (a ^ b).count_ones());
            assert_eq!(bits.sum::<u32>(), 1);
        }
    }

    #[test]
    fn what_would_be_the_truth_or_has_nothing_to_be_made_of_is_not_told() {
        let zeros = vec![0; 64];
        let short = content(5, 10);
        let alone = Source { object: &zeros, offset: 0, len: 64, older: None, other: None };
        let told = |source: &Source<'_>| -> Vec<Lie> {
            LIES.into_iter().filter(|lie| spoil(*lie, 77, source).is_some()).collect()
        };
        assert_eq!(told(&alone), [Lie::Flipped]);
        let same = Source { older: Some(&zeros), other: Some(&short), ..alone };
        assert_eq!(told(&same), [Lie::Flipped], "an equal version, and too short an object");
        let empty = Source { object: &[], len: 0, ..alone };
        assert_eq!(told(&empty), []);
        let byte = content(9, 1);
        let one = Source { object: &byte, len: 1, ..alone };
        assert_eq!(told(&one), [Lie::Zeroed, Lie::Flipped]);
    }
}
