//! The headers of a column's pages, read ahead of the Parquet library for what they say of sizes:
//! it makes room for what a header promises before it has seen it.
//!
//! The layout is that of Thrift's compact protocol and of `PageHeader` in the Parquet format.

/// The field numbers of a page header.
const UNCOMPRESSED_SIZE: u64 = 2;
const COMPRESSED_SIZE: u64 = 3;
/// How deep structures may lie in one another; those of a page header lie three deep.
const DEPTH_MAX: u8 = 16;

/// Returns how much the pages of a column unfold to; `None` if their headers make no sense.
pub(super) fn unfolded_bytes(mut column: &[u8]) -> Option<u64> {
    let mut sum = 0u64;
    while !column.is_empty() {
        let (mut unfolded, mut stored) = (None, None);
        fields(&mut column, &mut |id, kind, rest| match id {
            UNCOMPRESSED_SIZE if kind == 5 => size(rest).map(|size| unfolded = Some(size)),
            COMPRESSED_SIZE if kind == 5 => size(rest).map(|size| stored = Some(size)),
            _ => skip(kind, rest, DEPTH_MAX),
        })?;
        sum = sum.checked_add(unfolded?)?;
        column = column.get(usize::try_from(stored?).ok()?..)?;
    }
    Some(sum)
}

/// Takes the bytes of a field off, of which it is given number and type.
type OnField<'a> = dyn FnMut(u64, u8, &mut &[u8]) -> Option<()> + 'a;

/// Hands number, type and bytes of each field of a structure to `field`, which takes its bytes off.
fn fields(rest: &mut &[u8], field: &mut OnField<'_>) -> Option<()> {
    let mut id = 0u64;
    loop {
        let header = byte(rest)?;
        if header == 0 {
            return Some(());
        }
        id = match header >> 4 {
            0 => u64::try_from(signed(rest)?).ok()?,
            step => id.checked_add(step.into())?,
        };
        field(id, header & 15, rest)?;
    }
}

/// Passes over a value.
fn skip(kind: u8, rest: &mut &[u8], depth: u8) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match kind {
        // Truth values are in their type.
        1 | 2 => Some(()),
        3 => byte(rest).map(|_| ()),
        4..=6 => varint(rest).map(|_| ()),
        7 => take(rest, 8),
        8 => {
            let length = varint(rest)?;
            take(rest, length)
        }
        9 | 10 => {
            let header = byte(rest)?;
            let count = match header >> 4 {
                15 => varint(rest)?,
                count => count.into(),
            };
            // In a list they have a byte.
            let kind = if header & 15 <= 2 { 3 } else { header & 15 };
            (0..count).try_for_each(|_| skip(kind, rest, depth))
        }
        12 => fields(rest, &mut |_, kind, rest| skip(kind, rest, depth)),
        _ => None,
    }
}

fn size(rest: &mut &[u8]) -> Option<u64> {
    u64::try_from(signed(rest)?).ok()
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

fn take(rest: &mut &[u8], count: u64) -> Option<()> {
    *rest = rest.get(usize::try_from(count).ok()?..)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with a header of a type, two sizes, and a structure with a list and a text in it.
    fn page(unfolded: &[u8], content: &[u8]) -> Vec<u8> {
        let stored = (content.len() as u8) * 2;
        let mut page = vec![0x15, 0x00, 0x15];
        page.extend_from_slice(unfolded);
        page.extend_from_slice(&[0x15, stored, 0x2c, 0x15, 0x08, 0x19, 0x21, 1, 2, 0x18, 2, 9, 9]);
        page.extend_from_slice(&[0x00, 0x00]);
        page.extend_from_slice(content);
        page
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
}
