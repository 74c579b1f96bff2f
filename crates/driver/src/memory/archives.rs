//! Takes archives apart as a store does: tar archives in the ustar format, zip archives whose files
//! are not compressed.

use plimsoll_model::ErrorClass;

use crate::DriverError;

const TAR_BLOCK: usize = 512;
/// What ends a zip archive that has no comment.
const ZIP_END: usize = 22;

fn broken(what: &str) -> DriverError {
    DriverError::new(ErrorClass::Client, format!("the archive is broken: {what}"))
}

/// Returns the names and contents of a tar archive's files.
pub(super) fn tar_members(archive: &[u8]) -> Result<Vec<(String, &[u8])>, DriverError> {
    let text = |field: &[u8]| {
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).into_owned()
    };
    let mut members = Vec::new();
    let mut rest = archive;
    loop {
        let (header, after) = rest.split_at_checked(TAR_BLOCK).ok_or_else(|| broken("no end"))?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(members);
        }
        if &header[257..263] != b"ustar\0" {
            return Err(broken("no ustar header"));
        }
        let octal = |field: &[u8]| u64::from_str_radix(text(field).trim(), 8).ok();
        let blanked = |at: usize| if (148..156).contains(&at) { b' ' } else { header[at] };
        let sum: u64 = (0..TAR_BLOCK).map(|at| u64::from(blanked(at))).sum();
        if octal(&header[148..155]) != Some(sum) {
            return Err(broken("a wrong checksum"));
        }
        let size = octal(&header[124..136]).ok_or_else(|| broken("no size"))? as usize;
        let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let content = after.get(..size).ok_or_else(|| broken("cut off"))?;
        members.push((name, content));
        rest = after.get(size.next_multiple_of(TAR_BLOCK)..).ok_or_else(|| broken("cut off"))?;
    }
}

/// Returns the content of one file of a zip archive, found by the archive's directory.
pub(super) fn zip_member<'a>(archive: &'a [u8], member: &str) -> Result<&'a [u8], DriverError> {
    let number = |at: usize, len: usize| {
        let bytes = archive.get(at..at + len).ok_or_else(|| broken("cut off"))?;
        Ok(bytes.iter().rev().fold(0usize, |value, byte| value << 8 | usize::from(*byte)))
    };
    let end = archive.len().checked_sub(ZIP_END).ok_or_else(|| broken("too short"))?;
    if number(end, 4)? != 0x0605_4b50 {
        return Err(broken("no end of the directory"));
    }
    let (count, mut at) = (number(end + 10, 2)?, number(end + 16, 4)?);
    for _ in 0..count {
        if number(at, 4)? != 0x0201_4b50 {
            return Err(broken("no entry"));
        }
        let name_len = number(at + 28, 2)?;
        let name = archive.get(at + 46..at + 46 + name_len).ok_or_else(|| broken("cut off"))?;
        if name == member.as_bytes() {
            let (size, header) = (number(at + 24, 4)?, number(at + 42, 4)?);
            if number(header, 4)? != 0x0403_4b50 {
                return Err(broken("no file where the directory says"));
            }
            let from = header + 30 + number(header + 26, 2)? + number(header + 28, 2)?;
            return archive.get(from..from + size).ok_or_else(|| broken("cut off"));
        }
        at += 46 + name_len + number(at + 30, 2)? + number(at + 32, 2)?;
    }
    Err(DriverError::new(ErrorClass::NotFound, format!("the archive has no file `{member}`")))
}
