//! Where operations on objects come from: a worker in a closed loop, a schedule of arrivals,
//! uploads in parts.

pub(crate) mod arrivals;
pub(crate) mod closed;
pub(crate) mod shared_upload;
pub(crate) mod uploads;

use std::cell::RefCell;

use plimsoll_model::ErrorClass;
use plimsoll_workload::{PlannedOp, Target, mix64};

use crate::job::JobFacts;
use crate::records::ThreadRecords;

/// What all sources of a job on one thread work with.
pub(crate) struct SourceContext<'a, 'd> {
    pub(crate) facts: &'a JobFacts<'a>,
    pub(crate) records: &'a RefCell<ThreadRecords<'d>>,
}

impl Clone for SourceContext<'_, '_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for SourceContext<'_, '_> {}

/// Tells whether the store had no part in a failure. One that is away answers at once: without a
/// pause such failures would come by the hundred thousand.
fn is_away(outcome: ErrorClass) -> bool {
    matches!(outcome, ErrorClass::Connect | ErrorClass::Reset)
}

/// Tells whether only its end says how many bytes an operation moves.
fn has_unknown_size(op: &PlannedOp) -> bool {
    matches!(op.target, Target::Archive(_))
}

/// Returns a hash of what is planned.
pub(crate) fn fingerprint(op: &PlannedOp) -> u64 {
    let words = match op.target {
        Target::Object(object, range) => {
            let (offset, len) = range.map_or((0, u64::MAX), |range| range);
            [object.id.as_u64(), object.size ^ u64::from(object.version) << 48, offset, len]
        }
        Target::Batch { from, count } => [from, u64::from(count), 1, 0],
        Target::Listing => [2, 0, 0, 0],
        Target::Part { object, number, bytes } => [object.as_u64(), u64::from(number), bytes, 3],
        Target::Member(object) => [object.id.as_u64(), object.size, 4, 0],
        Target::Archive(id) => [id.as_u64(), 5, 0, 0],
        Target::Copies(object) => [object.id.as_u64(), object.size, 6, 0],
    };
    words.into_iter().fold(op.kind as u64 + 1, |hash, word| mix64(hash ^ mix64(word)))
}
