//! What a scan could not use, counted by kind.

use std::fmt;

/// How many unknown kinds of operation are counted each by its name.
pub const UNKNOWN_OPS_MAX: usize = 16;
/// How many characters of an unknown kind's name are kept.
const UNKNOWN_OP_CHARS_MAX: usize = 32;

/// What was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// Rows of a kind of operation that we do not know, by its name; skipped.
    UnknownOp(String),
    /// Rows of further unknown kinds, beyond `UNKNOWN_OPS_MAX`; skipped.
    OtherUnknownOps,
    /// Rows that could not be cut into as many fields as the header has; skipped.
    BadRow,
    /// Rows with a value in this column that cannot be read; skipped.
    BadField(&'static str),
    /// Rows that would take the sum of this column beyond `BYTES_SUM_MAX` or `OBJECTS_SUM_MAX`;
    /// skipped.
    BeyondSum(&'static str),
    /// Rows that end before they start, as after a clock that went backwards; skipped.
    EndBeforeStart,
    /// First-byte moments outside start to end; the row is kept without it.
    FirstByteOutside,
    /// Last-byte moments outside start to end; the row is kept without it.
    LastByteOutside,
    /// Durations that are no number or not end minus start; the row is kept, start and end count.
    DurationDisagrees,
    /// The rest of a file that is cut off or damaged.
    Truncated,
}

/// Something that a scan could not use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What was lost.
    pub what: LossKind,
    /// How many times.
    pub count: u64,
    /// In which line of the uncompressed text first, 1-based.
    pub first_line: u64,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, line) = (self.count, self.first_line);
        if self.what == LossKind::Truncated {
            return write!(f, "the file is cut off or damaged at line {line}, the rest is lost");
        }
        let (rows, have, were) =
            if count == 1 { ("row", "has", "was") } else { ("rows", "have", "were") };
        write!(f, "{count} {rows} ")?;
        match &self.what {
            LossKind::UnknownOp(op) => {
                write!(f, "of the unknown operation kind `{op}` {were} skipped")
            }
            LossKind::OtherUnknownOps => {
                write!(f, "of further unknown operation kinds {were} skipped")
            }
            LossKind::BadRow => {
                write!(f, "that cannot be cut into the header's columns {were} skipped")
            }
            LossKind::BadField(column) => {
                write!(f, "with an unreadable value in column `{column}` {were} skipped")
            }
            LossKind::BeyondSum(column) => {
                write!(f, "with more in column `{column}` than can be added up {were} skipped")
            }
            LossKind::EndBeforeStart => {
                let verb =
                    if count == 1 { "ends before it starts" } else { "end before they start" };
                write!(f, "that {verb} {were} skipped")
            }
            LossKind::FirstByteOutside => {
                write!(f, "{have} a first byte outside start to end, which {were} left out")
            }
            LossKind::LastByteOutside => {
                write!(f, "{have} a last byte outside start to end, which {were} left out")
            }
            LossKind::DurationDisagrees => {
                write!(f, "{have} a duration that is not end minus start, which {were} not used")
            }
            LossKind::Truncated => Ok(()),
        }?;
        let first = if count == 1 { "line" } else { "first in line" };
        write!(f, " ({first} {line})")
    }
}

/// The losses of a scan so far.
#[derive(Debug, Default)]
pub(super) struct Losses(Vec<Loss>);

impl Losses {
    /// Counts one loss.
    pub(super) fn add(&mut self, what: LossKind, line: u64) {
        match self.0.iter_mut().find(|loss| loss.what == what) {
            Some(loss) => loss.count += 1,
            None => self.0.push(Loss { what, count: 1, first_line: line }),
        }
    }

    /// Counts one row of an unknown kind of operation.
    pub(super) fn add_unknown_op(&mut self, op: &[u8], line: u64) {
        let name: String = String::from_utf8_lossy(op).chars().take(UNKNOWN_OP_CHARS_MAX).collect();
        let what = LossKind::UnknownOp(name);
        let named = self.0.iter().filter(|loss| matches!(loss.what, LossKind::UnknownOp(_)));
        let full = named.count() >= UNKNOWN_OPS_MAX;
        if full && !self.0.iter().any(|loss| loss.what == what) {
            return self.add(LossKind::OtherUnknownOps, line);
        }
        self.add(what, line);
    }

    /// Returns the losses in the order in which their kinds first appeared.
    pub(super) fn into_vec(self) -> Vec<Loss> {
        self.0
    }
}
