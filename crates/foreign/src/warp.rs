//! warp's files: the raw `.csv.zst`, row by row, and the aggregated `.json.zst`.

pub mod aggregated;
mod ahead;
pub(crate) mod input;
pub mod raw;

use std::io::{self, Read};

use thiserror::Error;

use input::Input;

/// Which of warp's two file formats an input has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Every operation, one line each: `NAME.csv.zst`.
    Raw,
    /// Sums and figures only: `NAME.json.zst`.
    Aggregated,
}

/// Why an input is refused as a whole; the caller says which file it was.
#[derive(Debug, Error)]
pub enum WarpError {
    /// It cannot be read at all.
    #[error("the file cannot be read")]
    Read(#[source] io::Error),
    /// It is neither compressed nor text of warp's.
    #[error("not a warp file: neither a zstd stream nor warp's text")]
    NotWarp,
    /// The compressed stream breaks off before anything useful.
    #[error("the compressed stream is damaged or cut off before anything of use")]
    Damaged,
    /// The header of a raw file is not whole.
    #[error("not a warp raw file: its header lacks {0}")]
    MissingColumns(String),
    /// An aggregated file was given where single operations are needed.
    #[error("an aggregated warp file holds no single operations, only a raw one (.csv.zst) does")]
    IsAggregated,
    /// A raw file was given where an aggregated one is needed.
    #[error("a raw warp file was given where an aggregated one (.json.zst) is needed")]
    IsRaw,
    /// There is no operation in it that can be used.
    #[error("the file holds no operation{}", first_loss(.0))]
    NoOperation(Option<Box<raw::Loss>>),
    /// It names more different things than we keep.
    #[error("the file names more than {max} {what}")]
    TooManyNames {
        /// What there are too many of.
        what: &'static str,
        /// How many are accepted.
        max: usize,
    },
    /// An aggregated file of a version that came after this reader.
    #[error("the file has version {0} of warp's aggregated format, this program knows up to 2")]
    NewerVersion(u64),
    /// An aggregated file is larger than we take into memory.
    #[error("the aggregated file is larger than {0} bytes")]
    TooLarge(u64),
    /// A value of an aggregated file is not what it should be.
    #[error("the field `{field}` in line {line} is not valid: {reason}")]
    BadField {
        /// The field's name.
        field: String,
        /// In which line of the uncompressed text it stands, 1-based.
        line: usize,
        /// What is wrong with its value.
        reason: String,
    },
    /// The text is not JSON of the right shape.
    #[error("not a warp aggregated file: {0}")]
    NotAggregated(String),
}

/// Returns the reason to add to "no operation": the first thing that was passed over.
fn first_loss(loss: &Option<Box<raw::Loss>>) -> String {
    loss.as_ref().map_or_else(String::new, |loss| format!(" that can be used: {loss}"))
}

/// Tells from the beginning of `input`, compressed or not, which format it has.
///
/// What begins with `{` is aggregated; anything else is taken for raw, and `raw::scan` says so if
/// it is not.
pub fn detect(input: impl Read) -> Result<FileKind, WarpError> {
    Input::open(input)?.kind()
}
