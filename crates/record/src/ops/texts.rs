//! A text column, decoded to what its texts mean: a text is looked up once for its dictionary and
//! not once for each row, which the Parquet library without Arrow has no way to do.
//!
//! The layout of keys is the RLE/bit-packing hybrid of the Parquet format's encodings.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::file::serialized_reader::SerializedPageReader;

use super::part::Group;

/// The widest key that the format knows, in bits.
const WIDTH_MAX: u8 = 32;

/// What the text of each row of a batch means.
pub(super) struct Texts<V> {
    name: String,
    pages: SerializedPageReader<Bytes>,
    /// What the texts of the dictionary mean, in its order.
    dictionary: Vec<V>,
    page: Rows,
    /// Rows of the page that were not decoded yet.
    rest: usize,
    pub(super) meanings: Vec<V>,
}

/// The rows of a page.
enum Rows {
    Keys(Keys),
    /// The texts themselves, where there are too many for a dictionary.
    Plain(Bytes),
}

impl<V: Copy> Texts<V> {
    pub(super) fn new(group: &Group<'_>, index: usize) -> Result<Self, String> {
        let (what, pages) = group.column(index)?;
        let (name, page) = (what.name().to_owned(), Rows::Plain(Bytes::new()));
        Ok(Self { name, pages, dictionary: Vec::new(), page, rest: 0, meanings: Vec::new() })
    }

    /// Decodes the next rows in place of those before.
    pub(super) fn read(
        &mut self,
        rows: usize,
        meaning: &dyn Fn(&str) -> Option<V>,
    ) -> Result<(), String> {
        self.meanings.clear();
        while self.meanings.len() < rows {
            if self.rest == 0 {
                self.next_page(meaning)?;
                continue;
            }
            let count = self.rest.min(rows - self.meanings.len());
            let read = match &mut self.page {
                Rows::Keys(keys) => keys.read(count, &self.dictionary, &mut self.meanings),
                Rows::Plain(bytes) => {
                    let texts = plain(bytes, count, &self.name, meaning)?;
                    self.meanings.extend(texts);
                    Some(())
                }
            };
            read.ok_or_else(|| format!("column {} holds what has no meaning", self.name))?;
            self.rest -= count;
        }
        Ok(())
    }

    fn next_page(&mut self, meaning: &dyn Fn(&str) -> Option<V>) -> Result<(), String> {
        let page = self.pages.get_next_page();
        match page.map_err(|error| format!("column {}: {error}", self.name))? {
            Some(Page::DictionaryPage { mut buf, num_values, .. }) => {
                self.dictionary = plain(&mut buf, num_values as usize, &self.name, meaning)?;
            }
            Some(Page::DataPage { buf, num_values, encoding, .. }) => {
                self.rest = num_values as usize;
                self.page = match encoding {
                    Encoding::PLAIN => Rows::Plain(buf),
                    _ => Rows::Keys(Keys::new(buf)),
                };
            }
            Some(Page::DataPageV2 { .. }) => {
                return Err(format!("column {} has pages of another version", self.name));
            }
            None => return Err(format!("column {} ends early", self.name)),
        }
        Ok(())
    }
}

/// Takes texts off, each after the four bytes of its length, and returns what they mean.
fn plain<V>(
    bytes: &mut Bytes,
    count: usize,
    name: &str,
    meaning: &dyn Fn(&str) -> Option<V>,
) -> Result<Vec<V>, String> {
    let mut text = || {
        let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        let text = bytes.get(4..length.checked_add(4)?).map(|_| bytes.slice(4..4 + length))?;
        *bytes = bytes.slice(4 + length..);
        Some(text)
    };
    let mut meanings = Vec::new();
    for _ in 0..count {
        let text = text().ok_or_else(|| format!("column {name} ends within a text"))?;
        let text = String::from_utf8_lossy(&text);
        meanings.push(meaning(&text).ok_or_else(|| format!("column {name} holds `{text}`"))?);
    }
    Ok(meanings)
}

/// Keys of a dictionary, in runs of one key and runs of packed ones.
struct Keys {
    bytes: Bytes,
    /// Bits of a key.
    width: u8,
    /// Where the next run begins, or the bits of the next packed key.
    at: usize,
    run: Run,
    /// Keys of the run that were not decoded yet.
    rest: usize,
}

#[derive(Clone, Copy)]
enum Run {
    Same(usize),
    /// Keys side by side; the next one begins at that bit.
    Packed(usize),
}

impl Keys {
    /// Returns the keys of a page, which begins with their width.
    fn new(bytes: Bytes) -> Self {
        let width = bytes.first().copied().unwrap_or_default();
        Self { bytes, width, at: 1, run: Run::Same(0), rest: 0 }
    }

    /// Adds what the next `count` keys mean to `out`; `None` if they make no sense.
    fn read<V: Copy>(
        &mut self,
        mut count: usize,
        dictionary: &[V],
        out: &mut Vec<V>,
    ) -> Option<()> {
        while count > 0 {
            if self.rest == 0 {
                self.begin()?;
            }
            let now = self.rest.min(count);
            match &mut self.run {
                // Bound: `ROWS_PER_BATCH`, which callers ask for at most.
                Run::Same(key) => out.extend(std::iter::repeat_n(*dictionary.get(*key)?, now)),
                Run::Packed(bit) => {
                    for _ in 0..now {
                        out.push(*dictionary.get(bits(&self.bytes, *bit, self.width)?)?);
                        *bit += usize::from(self.width);
                    }
                }
            }
            self.rest -= now;
            count -= now;
        }
        Some(())
    }

    /// Begins the next run.
    fn begin(&mut self) -> Option<()> {
        if self.width > WIDTH_MAX {
            return None;
        }
        let mut header = 0u64;
        for shift in (0..64).step_by(7) {
            let part = *self.bytes.get(self.at)?;
            self.at += 1;
            header |= u64::from(part & 127) << shift;
            if part < 128 {
                break;
            }
        }
        let count = usize::try_from(header >> 1).ok()?;
        let width = usize::from(self.width);
        if header & 1 == 0 {
            self.run = Run::Same(bits(&self.bytes, self.at.checked_mul(8)?, self.width)?);
            self.at += width.div_ceil(8);
            self.rest = count;
        } else {
            // A group is eight keys, and thus as many bytes as a key has bits.
            self.run = Run::Packed(self.at.checked_mul(8)?);
            self.at = self.at.checked_add(count.checked_mul(width)?)?;
            self.rest = count.checked_mul(8)?;
        }
        (self.rest > 0).then_some(())
    }
}

/// Returns the number in `width` bits from that one on, the lowest first.
fn bits(bytes: &[u8], bit: usize, width: u8) -> Option<usize> {
    let rest = bytes.get(bit / 8..)?;
    let word = match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    };
    let is_there = rest.len() * 8 >= bit % 8 + usize::from(width);
    is_there.then(|| ((word >> (bit % 8)) & ((1 << width) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], count: usize) -> Option<Vec<char>> {
        let (mut keys, mut out) = (Keys::new(Bytes::copy_from_slice(bytes)), Vec::new());
        keys.read(count, &['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'], &mut out).map(|()| out)
    }

    /// The keys 0 to 7 in three bits each, as the format's own description packs them.
    const PACKED: [u8; 3] = [0b1000_1000, 0b1100_0110, 0b1111_1010];

    #[test]
    fn keys_are_read_in_runs_of_one_and_in_runs_of_packed_ones() {
        let packed = [&[3, 0b11], &PACKED[..]].concat();
        assert_eq!(read(&packed, 8).unwrap(), ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
        // 200 times key 2: the header is 400, and as a varint 0x90 0x03.
        let same = [3, 0x90, 0x03, 2];
        assert_eq!(read(&same, 200).unwrap(), ['c'; 200]);
        let both = [&packed[..], &same[1..]].concat();
        let mut all = read(&both, 208).unwrap();
        assert_eq!(all.split_off(8), ['c'; 200]);
        // A dictionary of one text has keys of no bits.
        assert_eq!(read(&[0, 0x06], 3).unwrap(), ['a'; 3]);
    }

    #[test]
    fn keys_that_make_no_sense_are_refused() {
        let packed = [&[3, 0b11], &PACKED[..]].concat();
        for bytes in [&packed[..4], &packed[..1], &[], &[33, 3, 0, 0, 0, 0, 0], &[3, 0, 1], &[3, 2]]
        {
            assert_eq!(read(bytes, 8), None, "{bytes:?}");
        }
        assert_eq!(read(&packed, 9), None);
        assert_eq!(read(&[4, 0x02, 9], 1), None, "key 9 of a dictionary of 8");
        assert_eq!(read(&[8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], 1), None);
    }

    #[test]
    fn texts_are_read_up_to_the_end_and_not_beyond() {
        let meaning = |text: &str| text.chars().next();
        let bytes = Bytes::from_static(b"\x03\0\0\0GET\x01\0\0\0x");
        let read = |bytes: &Bytes, count| plain(&mut bytes.clone(), count, "kind", &meaning);
        assert_eq!(read(&bytes, 2).unwrap(), ['G', 'x']);
        assert_eq!(read(&bytes, 3).unwrap_err(), "column kind ends within a text");
        assert_eq!(read(&bytes.slice(..9), 2).unwrap_err(), "column kind ends within a text");
        let none = |_: &str| None::<char>;
        let refused = plain(&mut bytes.clone(), 1, "kind", &none).unwrap_err();
        assert_eq!(refused, "column kind holds `GET`");
    }
}
