//! Content that says which write it is from: every 32 bytes of it name the value and their own
//! place, so that a piece of it is enough to know what was read.
//!
//! The benchmark's content (`workload::data`) is checked against what is expected; here nothing is
//! expected, any value of any key may come back.

use plimsoll_driver::ContentSource;
use plimsoll_model::WrongKind;
use plimsoll_workload::history::{ValueId, WrongContent};
use plimsoll_workload::mix64;

/// Bytes that name the value and their place in it once.
pub(super) const STAMP_BYTES: usize = 32;
/// Any piece of this length holds a whole stamp.
pub(super) const PIECE_BYTES_MIN: u64 = 2 * STAMP_BYTES as u64;

type Stamp = [u8; STAMP_BYTES];

/// Makes and reads the content of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    salt: u64,
}

/// What one stamp says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    value: ValueId,
    place: u64,
}

impl Stamps {
    /// Returns the content of the run that `salt` tells from others.
    pub(super) fn new(salt: u64) -> Self {
        Self { salt: mix64(salt) }
    }

    /// Returns the stamp at `place`, counted in stamps, of a value. Looks like noise, so that a
    /// store cannot compress it; the first word is a function of the rest, so that damage is seen.
    fn stamp(self, value: ValueId, place: u64) -> Stamp {
        let value = value.as_u64();
        let check = mix64(mix64(value ^ self.salt).wrapping_add(place));
        let words = [
            check,
            value ^ mix64(check ^ 1),
            place ^ mix64(check ^ 2),
            mix64(check ^ mix64(value) ^ place.rotate_left(32)),
        ];
        let mut stamp = [0; STAMP_BYTES];
        for (bytes, word) in stamp.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        stamp
    }

    /// Returns what a stamp says, `None` for bytes that are none.
    fn read(self, bytes: &[u8]) -> Option<Origin> {
        let bytes: &Stamp = bytes.try_into().ok()?;
        let word = |at: usize| {
            let word = bytes[8 * at..8 * at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(word)
        };
        let check = word(0);
        let value = ValueId::from_u64(word(1) ^ mix64(check ^ 1));
        let place = word(2) ^ mix64(check ^ 2);
        (self.stamp(value, place) == *bytes).then_some(Origin { value, place })
    }

    /// Fills `buffer` with the content of a value from `offset` on.
    pub(super) fn fill(self, value: ValueId, offset: u64, buffer: &mut [u8]) {
        let mut at = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let within = (at % STAMP_BYTES as u64) as usize;
            let (piece, tail) = rest.split_at_mut(rest.len().min(STAMP_BYTES - within));
            let stamp = self.stamp(value, at / STAMP_BYTES as u64);
            piece.copy_from_slice(&stamp[within..within + piece.len()]);
            at += piece.len() as u64;
            rest = tail;
        }
    }

    /// Returns which value `bytes` are from, read at `offset` of an object, or what they are
    /// instead.
    pub(super) fn identify(
        self,
        bytes: &[u8],
        offset: u64,
        expected: Expected<'_>,
    ) -> Result<ValueId, WrongContent> {
        // The first stamp that is whole names the value; the rest must be of the same.
        let first = self.stamps_of(bytes, offset).find_map(|(_, origin)| origin);
        let Some(first) = first else {
            return Err(self.without_stamp(bytes, offset));
        };
        let value = first.value;
        let mut right = vec![0; bytes.len()];
        self.fill(value, offset, &mut right);
        if let Some(at) = right.iter().zip(bytes).position(|(right, got)| right != got) {
            let kind = self.kind_of_mixture(bytes, offset);
            return Err(WrongContent { kind, value: Some(value), at: offset + at as u64 });
        }
        let end = offset + bytes.len() as u64;
        let wrong = |kind, at| Err(WrongContent { kind, value: Some(value), at });
        if value.key != expected.key {
            return wrong(WrongKind::OtherObject, offset);
        }
        let size = (expected.size)(value);
        let wanted = expected.end.map_or(size, |end| end.min(size));
        match end.cmp(&wanted) {
            std::cmp::Ordering::Less => wrong(WrongKind::Short, end),
            std::cmp::Ordering::Greater => wrong(WrongKind::Long, wanted),
            std::cmp::Ordering::Equal => Ok(value),
        }
    }

    /// Returns every whole stamp's place, counted in stamps, with what it says.
    fn stamps_of(
        self,
        bytes: &[u8],
        offset: u64,
    ) -> impl Iterator<Item = (u64, Option<Origin>)> + '_ {
        let stamp = STAMP_BYTES as u64;
        let skipped = (offset.next_multiple_of(stamp) - offset) as usize;
        let whole = bytes.get(skipped..).unwrap_or_default().chunks_exact(STAMP_BYTES);
        let places = offset.div_ceil(stamp)..;
        places.zip(whole).map(move |(place, bytes)| (place, self.read(bytes)))
    }

    /// Names content that holds whole stamps but is not right from end to end.
    fn kind_of_mixture(self, bytes: &[u8], offset: u64) -> WrongKind {
        let mut first = None;
        let mut shifted = false;
        for (place, origin) in self.stamps_of(bytes, offset) {
            let Some(origin) = origin else { continue };
            if *first.get_or_insert(origin.value) != origin.value {
                return WrongKind::Torn;
            }
            shifted |= origin.place != place;
        }
        match (shifted, has_long_zeros(bytes)) {
            (true, _) => WrongKind::Shifted,
            (_, true) => WrongKind::Zeroed,
            _ => WrongKind::Flipped,
        }
    }

    /// Names content without one whole stamp at its place.
    fn without_stamp(self, bytes: &[u8], offset: u64) -> WrongContent {
        let wrong = |kind, value, at| WrongContent { kind, value, at };
        if bytes.is_empty() {
            return wrong(WrongKind::Short, None, offset);
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return wrong(WrongKind::Zeroed, None, offset);
        }
        // Moved by less than a stamp, the stamps are whole but not at their places.
        match bytes.windows(STAMP_BYTES).find_map(|window| self.read(window)) {
            Some(origin) => wrong(WrongKind::Shifted, Some(origin.value), offset),
            None if has_long_zeros(bytes) => wrong(WrongKind::Zeroed, None, offset),
            None => match self.with_one_bit_flipped(bytes, offset) {
                Some(value) => wrong(WrongKind::Flipped, Some(value), offset),
                None => wrong(WrongKind::Foreign, None, offset),
            },
        }
    }

    /// Returns the value of a stamp that is whole but for one bit.
    fn with_one_bit_flipped(self, bytes: &[u8], offset: u64) -> Option<ValueId> {
        let skipped = (offset.next_multiple_of(STAMP_BYTES as u64) - offset) as usize;
        let stamp: Stamp = bytes.get(skipped..skipped + STAMP_BYTES)?.try_into().ok()?;
        (0..8 * STAMP_BYTES).find_map(|bit| {
            let mut mended = stamp;
            mended[bit / 8] ^= 1 << (bit % 8);
            self.read(&mended).map(|origin| origin.value)
        })
    }
}

/// Tells whether there are more zeros in a row than noise has.
fn has_long_zeros(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte != 0).any(|zeros| zeros.len() >= 8)
}

/// What is known of content before it is looked at.
pub(super) struct Expected<'a> {
    /// The key that was asked for.
    pub(super) key: plimsoll_workload::history::KeyNumber,
    /// Where what was asked for ends; `None` for all there is.
    pub(super) end: Option<u64>,
    /// The size of a value.
    pub(super) size: &'a dyn Fn(ValueId) -> u64,
}

/// Gives the content of one value.
pub(super) struct Stamped {
    pub(super) stamps: Stamps,
    pub(super) value: ValueId,
    pub(super) size: u64,
}

impl ContentSource for Stamped {
    fn size(&self) -> u64 {
        self.size
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        self.stamps.fill(self.value, offset, buffer);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::WorkerId;
    use plimsoll_workload::history::KeyNumber;

    use super::*;

    const SIZE: u64 = 1_000;

    fn value(key: u32, number: u32) -> ValueId {
        ValueId { key: KeyNumber(key), writer: WorkerId(3), number }
    }

    fn bytes(value: ValueId, from: u64, to: u64) -> Vec<u8> {
        let mut bytes = vec![0; (to - from) as usize];
        Stamps::new(7).fill(value, from, &mut bytes);
        bytes
    }

    fn identify(bytes: &[u8], offset: u64, end: Option<u64>) -> Result<ValueId, WrongKind> {
        let expected = Expected { key: KeyNumber(1), end, size: &|_| SIZE };
        Stamps::new(7).identify(bytes, offset, expected).map_err(|wrong| wrong.kind)
    }

    #[test]
    fn every_piece_of_the_least_length_names_its_value() {
        for from in 0..100 {
            let to = from + PIECE_BYTES_MIN;
            assert_eq!(identify(&bytes(value(1, 5), from, to), from, Some(to)), Ok(value(1, 5)));
        }
        assert_eq!(identify(&bytes(value(1, 5), 0, SIZE), 0, None), Ok(value(1, 5)));
    }

    #[test]
    fn what_is_wrong_has_its_name() {
        let right = bytes(value(1, 5), 0, SIZE);
        let name = |bytes: &[u8]| identify(bytes, 0, None).unwrap_err();
        assert_eq!(name(&bytes(value(2, 5), 0, SIZE)), WrongKind::OtherObject);
        for by in [1, 31, 32, 33, 500] {
            assert_eq!(name(&bytes(value(1, 5), by, SIZE + by)), WrongKind::Shifted, "by {by}");
        }
        for (from, to) in [(0, 1_000), (0, 500), (77, 130), (900, 1_000)] {
            let mut zeroed = right.clone();
            zeroed[from..to].fill(0);
            assert_eq!(name(&zeroed), WrongKind::Zeroed, "{from}..{to}");
        }
        for cut in [33, 64, 500, 950] {
            let mut torn = right.clone();
            torn[cut..].copy_from_slice(&bytes(value(1, 4), cut as u64, SIZE));
            assert_eq!(name(&torn), WrongKind::Torn, "at {cut}");
        }
        for at in [0, 31, 500, 999] {
            let mut flipped = right.clone();
            flipped[at] ^= 4;
            assert_eq!(name(&flipped), WrongKind::Flipped, "at {at}");
        }
        for at in [5, 20, 35, 60] {
            let mut piece = bytes(value(1, 5), 9, 9 + PIECE_BYTES_MIN);
            piece[at] ^= 0x80;
            assert_eq!(identify(&piece, 9, Some(9 + PIECE_BYTES_MIN)), Err(WrongKind::Flipped));
        }
        assert_eq!(name(&right[..900]), WrongKind::Short);
        assert_eq!(name(&[]), WrongKind::Short);
        assert_eq!(name(&bytes(value(1, 5), 0, SIZE + 1)), WrongKind::Long);
        let mut other_run = vec![0; 1_000];
        Stamps::new(8).fill(value(1, 5), 0, &mut other_run);
        assert_eq!(name(&other_run), WrongKind::Foreign);
    }

    #[test]
    fn the_first_wrong_byte_is_named() {
        let mut flipped = bytes(value(1, 5), 0, SIZE);
        flipped[321] ^= 1;
        let expected = Expected { key: KeyNumber(1), end: None, size: &|_| SIZE };
        let wrong = Stamps::new(7).identify(&flipped, 0, expected).unwrap_err();
        assert_eq!((wrong.value, wrong.at), (Some(value(1, 5)), 321));
    }
}
