//! The Thrift of a part, checked ahead of the Parquet library, which believes what it reads.
//!
//! The library reserves memory for as many elements as a list promises and recurses as deep as a
//! schema goes. It skips a list of 2^31 truth values one by one, though these take no byte, so that
//! a footer of 60 KB costs days. And it reads a field by its number, whatever type the field has,
//! so that a check which goes by the types alone can be led past what the library sees.
//!
//! So a structure passes with no other fields than those below, each at most once and of its type:
//! those that are written, and numbers beside them. No list in it has elements that take no byte.
//! The fields are those of `parquet.thrift`, in Thrift's compact protocol.

/// What a value is.
enum Shape {
    /// A truth value, which is in the type of its field.
    Truth,
    Byte,
    /// A number of that type.
    Number(u8),
    /// A number of 32 bits, at most [`CHILDREN_MAX`].
    Children,
    Text,
    /// A list of at most so many elements.
    List(u64, &'static Self),
    Struct(Fields),
}

type Fields = &'static [(u8, Shape)];

/// How many columns a part may have. Those of a newer version are more, and are refused as such.
const CHILDREN_MAX: i64 = 64;
const COLUMNS_MAX: u64 = CHILDREN_MAX as u64;
/// How many row groups a part may have. It has one for each second, and is closed after ten.
const GROUPS_MAX: u64 = 1_024;
/// How many pairs of keys and values a part may have, of which five are written.
const METADATA_MAX: u64 = 64;
/// How many encodings a column may name. There are ten.
const ENCODINGS_MAX: u64 = 64;

const I16: Shape = Shape::Number(4);
const I32: Shape = Shape::Number(5);
const I64: Shape = Shape::Number(6);
const NONE: Shape = Shape::Struct(&[]);

const FOOTER: Fields = &[
    (1, I32),
    // The root is one more.
    (2, Shape::List(COLUMNS_MAX + 1, &Shape::Struct(SCHEMA_ELEMENT))),
    (3, I64),
    (4, Shape::List(GROUPS_MAX, &Shape::Struct(ROW_GROUP))),
    (5, Shape::List(METADATA_MAX, &Shape::Struct(&[(1, Shape::Text), (2, Shape::Text)]))),
    (6, Shape::Text),
    (7, Shape::List(COLUMNS_MAX, &Shape::Struct(&[(1, NONE), (2, NONE), (3, NONE)]))),
];
const SCHEMA_ELEMENT: Fields = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, Shape::Text),
    (5, Shape::Children),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    // Of the logical types those of texts and of integers.
    (10, Shape::Struct(&[(1, NONE), (10, Shape::Struct(&[(1, Shape::Byte), (2, Shape::Truth)]))])),
];
const ROW_GROUP: Fields = &[
    (1, Shape::List(COLUMNS_MAX, &Shape::Struct(COLUMN_CHUNK))),
    (2, I64),
    (3, I64),
    (5, I64),
    (6, I64),
    (7, I16),
];
const COLUMN_CHUNK: Fields = &[
    (1, Shape::Text),
    (2, I64),
    (3, Shape::Struct(COLUMN)),
    (4, I64),
    (5, I32),
    (6, I64),
    (7, I32),
];
const COLUMN: Fields = &[
    (1, I32),
    (2, Shape::List(ENCODINGS_MAX, &I32)),
    (3, Shape::List(1, &Shape::Text)),
    (4, I32),
    (5, I64),
    (6, I64),
    (7, I64),
    (9, I64),
    (10, I64),
    (11, I64),
    (13, Shape::List(ENCODINGS_MAX, &Shape::Struct(&[(1, I32), (2, I32), (3, I32)]))),
    (14, I64),
    (15, I32),
];

const PAGE: Fields = &[
    (1, I32),
    (UNCOMPRESSED_SIZE, I32),
    (COMPRESSED_SIZE, I32),
    (4, I32),
    (5, Shape::Struct(&[(1, I32), (2, I32), (3, I32), (4, I32)])),
    (7, Shape::Struct(&[(1, I32), (2, I32), (3, Shape::Truth)])),
];
const UNCOMPRESSED_SIZE: u8 = 2;
const COMPRESSED_SIZE: u8 = 3;

/// Returns whether a part ends with a footer that the Parquet library may read.
pub(super) fn has_footer(part: &[u8]) -> bool {
    let footer = part.split_last_chunk::<8>().and_then(|(rest, [size @ .., _, _, _, _])| {
        rest.get(rest.len().checked_sub(u32::from_le_bytes(*size) as usize)?..)
    });
    footer.is_some_and(|mut rest| {
        fields(&mut rest, FOOTER, &mut |_, _| ()).is_some() && rest.is_empty()
    })
}

/// Returns how much the pages of a column unfold to; `None` if their headers make no sense. The
/// library makes room for what a header promises before it has seen it.
pub(super) fn unfolded_bytes(mut column: &[u8]) -> Option<u64> {
    let mut sum = 0u64;
    while !column.is_empty() {
        let (mut unfolded, mut stored) = (None, None);
        fields(&mut column, PAGE, &mut |id, number| match id {
            UNCOMPRESSED_SIZE => unfolded = u64::try_from(number).ok(),
            COMPRESSED_SIZE => stored = usize::try_from(number).ok(),
            _ => {}
        })?;
        sum = sum.checked_add(unfolded?)?;
        column = column.get(stored?..)?;
    }
    Some(sum)
}

/// Takes off a structure with these fields, and hands number and value of each field that is a
/// number to `found`.
fn fields(rest: &mut &[u8], fields: Fields, found: &mut dyn FnMut(u8, i64)) -> Option<()> {
    let mut id = 0u8;
    loop {
        let header = byte(rest)?;
        if header == 0 {
            return Some(());
        }
        // A step of 0 announces a number in full, which may be one that was there before.
        let (step, kind) = (header >> 4, header & 15);
        id = id.checked_add(step).filter(|_| step > 0)?;
        match &fields.iter().find(|(of, _)| *of == id)?.1 {
            Shape::Number(of) if *of == kind => found(id, signed(rest)?),
            shape => shape.take(kind, rest)?,
        }
    }
}

impl Shape {
    /// Takes off a value that is announced as one of type `kind`.
    fn take(&self, kind: u8, rest: &mut &[u8]) -> Option<()> {
        match (self, kind) {
            (Self::Truth, 1 | 2) => Some(()),
            (Self::Byte, 3) => byte(rest).map(drop),
            (Self::Number(of), kind) if *of == kind => signed(rest).map(drop),
            (Self::Children, 5) => {
                signed(rest).filter(|count| (0..=CHILDREN_MAX).contains(count)).map(drop)
            }
            (Self::Text, 8) => {
                let size = usize::try_from(varint(rest)?).ok()?;
                *rest = rest.get(size..)?;
                Some(())
            }
            (Self::List(most, of), 9) => {
                let header = byte(rest)?;
                let count = match header >> 4 {
                    15 => varint(rest)?,
                    count => count.into(),
                };
                let count = Some(count).filter(|count| count <= most)?;
                (0..count).try_for_each(|_| of.take(header & 15, rest))
            }
            (Self::Struct(of), 12) => fields(rest, of, &mut |_, _| ()),
            _ => None,
        }
    }
}

fn signed(rest: &mut &[u8]) -> Option<i64> {
    let value = varint(rest)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let part = byte(rest)?;
        value |= u64::from(part & 127).checked_shl(shift)?;
        if part < 128 {
            return Some(value);
        }
    }
    None
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, others) = rest.split_first()?;
    *rest = others;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data page whose header has a type, two sizes and a structure.
    fn page(unfolded: &[u8], content: &[u8]) -> Vec<u8> {
        let stored = (content.len() as u8) * 2;
        let mut page = vec![0x15, 0x00, 0x15];
        page.extend_from_slice(unfolded);
        page.extend_from_slice(&[0x15, stored, 0x2c, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0]);
        page.extend_from_slice(content);
        page
    }

    /// A footer of one field, and its length and magic behind it.
    fn footer(field: &[u8]) -> Vec<u8> {
        let size = (field.len() as u32 + 1).to_le_bytes();
        [b"PAR1", field, &[0], &size, b"PAR1"].concat()
    }

    #[test]
    fn sizes_of_all_pages_are_added_up_whatever_else_their_headers_hold() {
        // 300 is 600 zigzag, which is 0xd8 0x04 as a varint.
        let two = [page(&[0xd8, 0x04], b"12345"), page(&[0x02], b"")].concat();
        assert_eq!(unfolded_bytes(&two), Some(301));
        assert_eq!(unfolded_bytes(&[]), Some(0));
        // 2 GiB less a byte.
        let huge = page(&[0xfe, 0xff, 0xff, 0xff, 0x0f], b"1");
        assert_eq!(unfolded_bytes(&huge), Some(i32::MAX as u64));
    }

    #[test]
    fn what_is_no_page_is_refused_and_never_a_panic() {
        let whole = page(&[0xd8, 0x04], b"12345");
        for cut in 1..whole.len() {
            assert_eq!(unfolded_bytes(&whole[..cut]), None, "cut at {cut}");
        }
        // A negative size: -1 is 1 zigzag.
        assert_eq!(unfolded_bytes(&page(&[0x01], b"1")), None);
        // Structures without end.
        assert_eq!(unfolded_bytes(&[0x1c; 100]), None);
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(unfolded_bytes(&flipped).is_none_or(|sum| sum <= i64::MAX as u64));
        }
    }

    #[test]
    fn a_page_states_each_size_once_and_has_no_field_that_none_is_written_with() {
        let header = |fields: &[u8]| {
            [&[0x15, 0, 0x15, 2, 0x15, 0][..], fields, &[0x2c, 0x15, 2, 0, 0]].concat()
        };
        assert_eq!(unfolded_bytes(&header(&[])), Some(1));
        // Field 2 again, by its number in full: the library would take the last.
        assert_eq!(unfolded_bytes(&header(&[0x05, 4, 0x15, 9])), None);
        // Field 15 is a list of truth values that takes no byte for each, or a byte.
        assert_eq!(unfolded_bytes(&[0x15, 0, 0x15, 2, 0x15, 0, 0xc9, 0x21, 1, 2, 0]), None);
    }

    #[test]
    fn a_footer_promises_no_more_than_is_there() {
        // The number of rows, and the version.
        assert!(has_footer(&footer(&[0x36, 4])));
        assert!(has_footer(&footer(&[0x15, 2])));
        for (what, field) in [
            ("a version of 64 bits", &[0x16, 2][..]),
            ("bytes behind its end", &[0x15, 2, 0, 0]),
            ("lists of truth values in an unknown field", &[0xf9, 0x19, 0xf1, 255, 255, 255, 127]),
            ("more row groups than there are bytes", &[0x49, 0xfc, 255, 7]),
            ("2^20 row groups", &[&[0x49, 0xfc, 128, 128, 64][..], &[0; 1 << 20]].concat()),
            ("2^30 children", &[0x29, 0x1c, 0x55, 128, 128, 128, 128, 8, 0]),
            ("fewer than no children", &[0x29, 0x1c, 0x55, 1, 0]),
        ] {
            assert!(!has_footer(&footer(field)), "{what}");
        }
        assert!(has_footer(&footer(&[0x29, 0x1c, 0x55, 36, 0])), "18 children");
        assert!(!has_footer(b"PAR1"));
        assert!(!has_footer(b"\xff\xff\xff\x7fPAR1"));
    }
}
