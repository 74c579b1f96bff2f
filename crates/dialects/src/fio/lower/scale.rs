//! Scaling: the same jobs on a smaller machine or in less time.

use std::time::Duration;

use super::super::job::{Direction, Job, JobFile};
use super::Machine;

/// What sizes and times are multiplied by.
pub(super) struct Scale {
    size: Option<f64>,
    time: Option<f64>,
    /// The largest block of all jobs. Scaled files are multiples of it, so that jobs which share a
    /// file come to the same size, and none is too small for a block.
    block_bytes_max: u64,
}

/// Returns the largest block that a job reads or writes.
pub(super) fn block_bytes_max(job: &Job) -> u64 {
    let blocks = &job.pattern.blocks;
    let (read, write) = (blocks.read.size_bytes_max(), blocks.write.size_bytes_max());
    match job.pattern.direction {
        Direction::Read => read,
        Direction::Write => write,
        Direction::Mixed => read.max(write),
    }
}

/// Returns the smallest block that a job reads or writes.
pub(super) fn block_bytes_min(job: &Job) -> u64 {
    let blocks = &job.pattern.blocks;
    let (read, write) = (blocks.read.size_bytes_min(), blocks.write.size_bytes_min());
    match job.pattern.direction {
        Direction::Read => read,
        Direction::Write => write,
        Direction::Mixed => read.min(write),
    }
}

impl Scale {
    pub(super) fn new(file: &JobFile, machine: &Machine<'_>) -> Self {
        let blocks = file.jobs.iter().map(block_bytes_max);
        Self {
            size: machine.size_scale,
            time: machine.runtime_scale,
            block_bytes_max: blocks.max().unwrap_or(1).max(1),
        }
    }

    /// Returns the scaled size of a file, or an amount to read and write.
    pub(super) fn size(&self, bytes: u64) -> u64 {
        let Some(factor) = self.size else { return bytes };
        let block = self.block_bytes_max;
        let scaled = times(bytes, factor);
        if scaled < block { bytes.min(block) } else { scaled / block * block }
    }

    /// Returns the scaled number of operations.
    pub(super) fn count(&self, count: u64) -> u64 {
        self.size.map_or(count, |factor| times(count, factor).max(1))
    }

    /// Returns a scaled time.
    pub(super) fn time(&self, time: Duration) -> Duration {
        let Some(factor) = self.time else { return time };
        Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(time)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a factor is not an exact number either"
)]
fn times(value: u64, factor: f64) -> u64 {
    (value as f64 * factor) as u64
}
