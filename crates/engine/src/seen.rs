//! What stop rules have seen in one part of a stage, for who judges them over all parts.

use plimsoll_stats::{AmountSeries, Batches};

/// What the stop rules of a stage have seen in one part of it.
#[derive(Clone, Debug)]
pub struct PartSeen {
    /// By job.
    pub jobs: Vec<JobSeen>,
}

/// What they have seen of a job in one part of the stage.
#[derive(Clone, Debug)]
pub struct JobSeen {
    /// Whether any of its workers is there.
    pub has_workers: bool,
    /// The stretch in which all of these were active, as far as it is known, in nanoseconds since
    /// the beginning of the stage.
    pub active_ns: Option<(u64, u64)>,
    /// By rule and kind of operation: what was done.
    pub rules: Vec<Vec<RuleSeen>>,
}

/// What was done, as a rule has to know it. Adds up exactly in any order.
#[derive(Clone, Debug)]
pub enum RuleSeen {
    /// For a rate that is steady.
    Amounts(AmountSeries),
    /// For figures that are known well enough.
    Batches(Batches),
}
