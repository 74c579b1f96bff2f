//! Where operations on objects come from: a worker in a closed loop, a schedule of arrivals,
//! uploads in parts.

pub(crate) mod arrivals;
pub(crate) mod closed;
pub(crate) mod shared_upload;
pub(crate) mod uploads;

use std::cell::RefCell;

use plimsoll_model::ErrorClass;
use plimsoll_workload::objects::{PlannedOp, Subject};

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
    matches!(op.subject, Subject::Archive(_))
        || matches!(op.subject, Subject::Object(object, None) if object.size.is_none())
}
