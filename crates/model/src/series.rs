//! The key of one time series of a run.

use crate::{EndpointId, OpKind, StageId};

/// Which operations one lane of a run's time line counts: those of one kind, sent to one endpoint
/// in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesKey {
    /// The stage they belong to.
    pub stage: StageId,
    /// What they do.
    pub kind: OpKind,
    /// The address they went to.
    pub endpoint: EndpointId,
}
