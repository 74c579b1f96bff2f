//! Why runs cannot be merged.

use plimsoll_model::WallTime;

use crate::RecordError;

/// Why runs cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError<E: std::error::Error + 'static> {
    /// There is nothing to merge.
    #[error("merging takes at least two runs")]
    Alone,
    /// The same run was given twice.
    #[error("run {run_id} is given twice and would count double")]
    Twice {
        /// Its name.
        run_id: String,
    },
    /// Two runs do not have the same stages.
    #[error(
        "run {run_id} has {stage} where run {other} has {other_stage}; only runs with the same \
         stages in the same order can be merged"
    )]
    StagesDiffer {
        /// The one.
        run_id: String,
        /// Its stage.
        stage: String,
        /// The other.
        other: String,
        /// Its stage.
        other_stage: String,
    },
    /// A stage does not have the same jobs in two runs.
    #[error(
        "in stage {stage} run {run_id} has {job} where run {other} has {other_job}; only runs with \
         the same jobs can be merged"
    )]
    JobsDiffer {
        /// The stage.
        stage: String,
        /// The one.
        run_id: String,
        /// Its job.
        job: String,
        /// The other.
        other: String,
        /// Its job.
        other_job: String,
    },
    /// A run's manifest holds a number that no run could have.
    #[error("the manifest of run {run_id} contradicts itself: {reason}; its record is damaged")]
    Impossible {
        /// Its name.
        run_id: String,
        /// What cannot be.
        reason: String,
    },
    /// A run has no measured stage with a beginning and an end.
    #[error("run {run_id} measured nothing, so there is nothing to merge it with")]
    NothingMeasured {
        /// Its name.
        run_id: String,
    },
    /// One of several measured stages of a run has no beginning or no end.
    #[error(
        "the record of run {run_id} does not say when stage {stage} began or ended, so it cannot \
         be merged with others"
    )]
    NoBounds {
        /// Its name.
        run_id: String,
        /// The stage.
        stage: String,
    },
    /// There is no moment at which all runs measured.
    #[error(
        "nothing overlaps{in_stage}: {earlier} had ended by {ended} and {later} began to measure at {began}; \
         only runs that ran at the same time can be merged"
    )]
    NoOverlap {
        /// Which stage it is, where there are several.
        in_stage: String,
        /// The run that ended first.
        earlier: String,
        /// When it ended.
        ended: WallTime,
        /// The run that began last.
        later: String,
        /// When it began.
        began: WallTime,
    },
    /// A record has a worker that its run did not have.
    #[error(
        "the op log of run {run_id} has an operation of worker {worker}, but the run's workers \
         are numbered from 0 to below {count}; its record is damaged"
    )]
    WorkerBeyond {
        /// Its name.
        run_id: String,
        /// The worker.
        worker: u32,
        /// How many it had.
        count: u32,
    },
    /// A moment is so late that the summary, a cell a second, would not fit into memory.
    #[error(
        "run {run_id} has an operation that ended on {ended}, {days} days after the first run \
         began; a merged run may span {limit} days, so is its clock right?"
    )]
    TooLong {
        /// Its name.
        run_id: String,
        /// When the operation ended.
        ended: WallTime,
        /// How long after the beginning that is.
        days: u64,
        /// How long it may be.
        limit: u64,
    },
    /// Numbers would not fit.
    #[error("together the runs have more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: u32,
    },
    /// The merged run could not be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A run could not be read.
    #[error("cannot read run {run_id}")]
    Read {
        /// Its name.
        run_id: String,
        /// Why.
        source: E,
    },
}
