//! The checksum that a file of a run carries of itself.
//!
//! Near its end a file holds [`MARK`] and the sixteen hexadecimal digits of the CRC-64/NVME of all
//! its bytes, in which these digits count as sixteen `0`. So whatever bit of it is another, the
//! digits no longer fit.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crc_fast::{CrcAlgorithm, Digest};

/// What stands before the digits.
const MARK: &[u8] = b"crc64-nvme:";
pub(crate) const DIGITS_COUNT: usize = 16;
const ZEROS: [u8; DIGITS_COUNT] = [b'0'; DIGITS_COUNT];
/// How far from the end of a file the mark is looked for.
const TAIL_BYTES: usize = 1_024;

/// The mark with no digits yet: what is written where the checksum shall stand.
pub(crate) const UNSEALED: &str = "crc64-nvme:0000000000000000";

/// What the checksum of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// It fits.
    Holds,
    /// There is none.
    Absent,
    /// The file is not what was written.
    Broken,
}

impl Seal {
    /// Says what is wrong with a file whose checksum does not fit.
    pub(crate) const BROKEN: &str = "its checksum does not match: the file is damaged";

    /// Returns what the checksum of a file says.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let Some(at) = digits_at(bytes) else { return Self::Absent };
        let (before, rest) = bytes.split_at(at);
        let (digits, after) = rest.split_at(DIGITS_COUNT);
        let mut sum = Sum::new();
        [before, &ZEROS, after].into_iter().for_each(|bytes| sum.add(bytes));
        if sum.digits().as_bytes() == digits { Self::Holds } else { Self::Broken }
    }

    /// Returns the digits that a file carries, by which whole files are told apart.
    pub(crate) fn digits(bytes: &[u8]) -> Option<[u8; DIGITS_COUNT]> {
        bytes[digits_at(bytes)?..].first_chunk().copied()
    }
}

/// The checksum of what was written so far.
#[derive(Clone, Debug)]
pub(crate) struct Sum(Digest);

impl Sum {
    pub(crate) fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc64Nvme))
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn digits(&self) -> String {
        format!("{:016x}", self.0.finalize())
    }

    /// Puts the digits into `tail`, with which the file ends, and which it has not added yet.
    pub(crate) fn seal(mut self, tail: &mut [u8]) -> io::Result<()> {
        self.add(tail);
        let at = digits_at(tail).ok_or_else(no_mark)?;
        tail[at..at + DIGITS_COUNT].copy_from_slice(self.digits().as_bytes());
        Ok(())
    }
}

/// A file that is summed up as it is written.
#[derive(Debug)]
pub(crate) struct Sealing {
    file: File,
    sum: Sum,
}

impl Sealing {
    pub(crate) fn new(file: File) -> Self {
        Self { file, sum: Sum::new() }
    }

    /// Returns the checksum of what was written so far.
    pub(crate) fn sum(&self) -> &Sum {
        &self.sum
    }

    /// Puts the digits of the whole into their place.
    pub(crate) fn seal(&mut self) -> io::Result<()> {
        let size = self.file.seek(SeekFrom::End(0))?;
        let tail_at = size.saturating_sub(TAIL_BYTES as u64);
        self.file.seek(SeekFrom::Start(tail_at))?;
        let mut tail = Vec::with_capacity(TAIL_BYTES);
        (&self.file).take(TAIL_BYTES as u64).read_to_end(&mut tail)?;
        let at = digits_at(&tail).ok_or_else(no_mark)?;
        self.file.seek(SeekFrom::Start(tail_at + at as u64))?;
        self.file.write_all(self.sum.digits().as_bytes())
    }

    /// Makes sure of it on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl Write for Sealing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sum.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns where the digits stand.
fn digits_at(bytes: &[u8]) -> Option<usize> {
    let from = bytes.len().saturating_sub(TAIL_BYTES);
    let last = bytes.len().checked_sub(MARK.len() + DIGITS_COUNT)?;
    let at = (from..=last).rev().find(|at| bytes[*at..].starts_with(MARK))?;
    Some(at + MARK.len())
}

fn no_mark() -> io::Error {
    io::Error::other("there is no place for the checksum")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC-64/NVME bit by bit, as its parameters say: reflected, all ones before and after.
    fn by_hand(bytes: &[u8]) -> u64 {
        let step = |crc: u64| (crc >> 1) ^ if crc & 1 == 1 { 0x9a6c_9329_ac4b_c9b5 } else { 0 };
        let crc = bytes
            .iter()
            .fold(u64::MAX, |crc, byte| (0..8).fold(crc ^ u64::from(*byte), |crc, _| step(crc)));
        !crc
    }

    fn sealed(text: &str) -> Vec<u8> {
        let mut bytes = format!("{text}{UNSEALED}\"}}\n").into_bytes();
        Sum::new().seal(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_digits_are_those_of_the_content_with_zeros_in_their_place() {
        // The check value of the catalogue of CRCs.
        assert_eq!(by_hand(b"123456789"), 0xae8b_1486_0a79_9888);
        let bytes = sealed("{\"checksum\": \"");
        let expected = by_hand(format!("{{\"checksum\": \"{UNSEALED}\"}}\n").as_bytes());
        let text = format!("{{\"checksum\": \"crc64-nvme:{expected:016x}\"}}\n");
        assert_eq!(String::from_utf8(bytes).unwrap(), text);
    }

    #[test]
    fn no_bit_may_be_another() {
        let whole = sealed(&"some content, ".repeat(100));
        assert_eq!(Seal::of(&whole), Seal::Holds);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Seal::of(&bytes), Seal::Holds, "bit {bit}");
        }
        assert_eq!(Seal::of(b""), Seal::Absent);
        assert_eq!(Seal::of(b"crc64-nvme:123"), Seal::Absent);
        assert_eq!(Seal::of(&whole[1..]), Seal::Broken);
    }
}
