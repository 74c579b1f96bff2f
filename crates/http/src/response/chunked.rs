//! The chunked transfer coding (RFC 9112, section 7.1); extensions and trailer fields are read
//! over.

use super::{HEAD_BYTES_MAX, ParseError};

/// The longest chunk size line that is taken, extensions included.
const CHUNK_LINE_BYTES_MAX: usize = 4 << 10;
/// The digits of the largest 64-bit size.
const SIZE_DIGITS_MAX: u8 = 16;

#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the digits of a size.
    Size { digits: u8 },
    /// After a size: only white space may precede the extension or the line's end.
    SizeSpace,
    /// In an extension.
    Extension,
    /// At the LF of a size line.
    SizeLf,
    /// In a chunk's data, `left` bytes before its end.
    Data { left: u64 },
    /// At the CR after a chunk's data.
    DataCr,
    /// At the LF after a chunk's data.
    DataLf,
    /// In a trailer line; an empty one ends the body.
    Trailer { empty: bool },
    /// At the LF of a trailer line.
    TrailerLf { empty: bool },
}

/// Where in a chunked body the answer is.
#[derive(Debug)]
pub(super) struct ChunkedBody {
    place: Place,
    /// The size of the chunk whose size line is being read.
    size: u64,
    /// How long that line, or the trailer, is so far.
    line_bytes: usize,
}

/// What a piece of a chunked body holds.
pub(super) struct Step<'a> {
    /// Body bytes, possibly none.
    pub(super) data: &'a [u8],
    /// How many bytes were taken.
    pub(super) used: usize,
    /// Whether the body ended.
    pub(super) complete: bool,
}

impl ChunkedBody {
    pub(super) fn new() -> Self {
        Self { place: Place::Size { digits: 0 }, size: 0, line_bytes: 0 }
    }

    /// Takes bytes up to the end of one run of data, of the body, or of `bytes`.
    pub(super) fn feed<'a>(&mut self, bytes: &'a [u8]) -> Result<Step<'a>, ParseError> {
        for (index, byte) in bytes.iter().enumerate() {
            if let Place::Data { left } = self.place {
                let rest = &bytes[index..];
                let data = super::first_bytes(rest, left);
                let left = left - data.len() as u64;
                self.place = if left == 0 { Place::DataCr } else { Place::Data { left } };
                return Ok(Step { data, used: index + data.len(), complete: false });
            }
            if self.advance(*byte)? {
                return Ok(Step { data: &[], used: index + 1, complete: true });
            }
        }
        Ok(Step { data: &[], used: bytes.len(), complete: false })
    }

    /// Takes one byte outside of the data and tells whether it ended the body.
    fn advance(&mut self, byte: u8) -> Result<bool, ParseError> {
        self.place = match self.place {
            Place::Size { digits } => self.advance_size(byte, digits)?,
            Place::SizeSpace => self.after_size(byte)?,
            Place::Extension => match byte {
                b'\r' => Place::SizeLf,
                b'\n' => return Err(ParseError::ChunkSize),
                _ => self.count_line_byte(Place::Extension)?,
            },
            Place::SizeLf if byte == b'\n' => self.end_size_line(),
            Place::SizeLf => return Err(ParseError::ChunkSize),
            Place::DataCr if byte == b'\r' => Place::DataLf,
            Place::DataLf if byte == b'\n' => {
                *self = Self::new();
                self.place
            }
            Place::DataCr | Place::DataLf => return Err(ParseError::ChunkEnd),
            Place::Trailer { empty } => self.advance_trailer(byte, empty)?,
            Place::TrailerLf { empty: true } if byte == b'\n' => return Ok(true),
            Place::TrailerLf { empty: false } if byte == b'\n' => {
                self.line_bytes += 1;
                Place::Trailer { empty: true }
            }
            Place::TrailerLf { .. } => return Err(ParseError::Trailer),
            Place::Data { .. } => unreachable!("data is taken as slices"),
        };
        Ok(false)
    }

    fn advance_size(&mut self, byte: u8, digits: u8) -> Result<Place, ParseError> {
        let Some(digit) = (byte as char).to_digit(16) else {
            return if digits == 0 { Err(ParseError::ChunkSize) } else { self.after_size(byte) };
        };
        if digits == SIZE_DIGITS_MAX {
            return Err(ParseError::ChunkSize);
        }
        self.size = self.size << 4 | u64::from(digit);
        Ok(Place::Size { digits: digits + 1 })
    }

    fn after_size(&mut self, byte: u8) -> Result<Place, ParseError> {
        match byte {
            b'\r' => Ok(Place::SizeLf),
            b';' => self.count_line_byte(Place::Extension),
            b' ' | b'\t' => self.count_line_byte(Place::SizeSpace),
            _ => Err(ParseError::ChunkSize),
        }
    }

    fn end_size_line(&mut self) -> Place {
        self.line_bytes = 0;
        match self.size {
            0 => Place::Trailer { empty: true },
            left => Place::Data { left },
        }
    }

    fn count_line_byte(&mut self, next: Place) -> Result<Place, ParseError> {
        self.line_bytes += 1;
        if self.line_bytes > CHUNK_LINE_BYTES_MAX {
            return Err(ParseError::ChunkLineTooLong);
        }
        Ok(next)
    }

    fn advance_trailer(&mut self, byte: u8, empty: bool) -> Result<Place, ParseError> {
        self.line_bytes += 1;
        if self.line_bytes > HEAD_BYTES_MAX {
            return Err(ParseError::TrailerTooLong);
        }
        match byte {
            b'\r' => Ok(Place::TrailerLf { empty }),
            b'\n' => Err(ParseError::Trailer),
            _ => Ok(Place::Trailer { empty: false }),
        }
    }
}
