//! How full the queues of clones were, out of the operations of a run.

use std::collections::HashMap;

use plimsoll_model::{OpKind, OpRecord};

/// How full the queue of each worker of each stage was whenever it issued an operation.
///
/// Starts and ends of all operations are held in memory until [`FioQueues::finish`]: 16 bytes each.
#[derive(Debug, Default)]
pub struct FioQueues {
    workers: HashMap<(u8, u32), Times>,
}

#[derive(Debug, Default)]
struct Times {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

/// What was counted of each worker: how many operations were issued at each level of the queue.
#[derive(Clone, Debug, Default)]
pub struct FioLevels {
    workers: HashMap<(u8, u32), [u64; 7]>,
}

impl FioQueues {
    /// Takes an operation of the run, in any order. Syncs are none of the queue's.
    pub fn add(&mut self, op: &OpRecord) {
        if matches!(op.kind, OpKind::Read | OpKind::Write) {
            let times = self.workers.entry((op.stage.0, op.worker.0)).or_default();
            times.starts.push(op.start.as_ns());
            times.ends.push(op.end.as_ns());
        }
    }

    /// Returns the counts.
    pub fn finish(self) -> FioLevels {
        let workers = self.workers.into_iter().map(|(key, times)| (key, times.levels()));
        FioLevels { workers: workers.collect() }
    }
}

impl Times {
    /// Returns how many operations were in flight at each start, it included: as many as had
    /// started, less those that had ended.
    fn levels(mut self) -> [u64; 7] {
        self.starts.sort_unstable();
        self.ends.sort_unstable();
        let (mut levels, mut ended) = ([0; 7], 0);
        for (before, start) in self.starts.iter().enumerate() {
            while ended <= before && self.ends.get(ended).is_some_and(|end| end <= start) {
                ended += 1;
            }
            // What took no time has ended at its own start.
            let in_flight = (before + 1).saturating_sub(ended).max(1);
            levels[in_flight.ilog2().min(6) as usize] += 1;
        }
        levels
    }
}

impl FioLevels {
    /// Returns the counts of some workers of a stage together; `None` where none of them did
    /// anything, or nothing was counted.
    pub(super) fn of(&self, stage: usize, workers: impl Iterator<Item = u32>) -> Option<[u64; 7]> {
        let stage = u8::try_from(stage).ok()?;
        let all = workers.filter_map(|worker| self.workers.get(&(stage, worker)));
        all.copied().reduce(together)
    }
}

/// Returns the sums of counts.
pub(super) fn together(a: [u64; 7], b: [u64; 7]) -> [u64; 7] {
    std::array::from_fn(|cell| a[cell] + b[cell])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(spans: &[(u64, u64)]) -> [u64; 7] {
        let (starts, ends) = spans.iter().copied().unzip();
        Times { starts, ends }.levels()
    }

    #[test]
    fn one_after_the_other_is_a_queue_of_one() {
        assert_eq!(levels(&[(0, 10), (10, 20), (25, 30)]), [3, 0, 0, 0, 0, 0, 0]);
        assert_eq!(levels(&[(5, 5), (5, 5), (5, 9)]), [3, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_queue_is_counted_when_an_operation_joins_it() {
        // In any order: four at once, then one joins three, then one is alone.
        let spans = [(3, 40), (0, 10), (1, 50), (2, 30), (12, 60), (70, 80)];
        // 1, 2, 3, 4 in flight; 4 again; 1.
        assert_eq!(levels(&spans), [2, 2, 2, 0, 0, 0, 0]);
    }

    #[test]
    fn a_slow_operation_counts_beside_all_that_pass_it() {
        let mut spans = vec![(0, 1_000)];
        spans.extend((1..100).map(|at| (at, at + 1)));
        assert_eq!(levels(&spans), [1, 99, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn deep_queues_share_the_last_cell() {
        let spans: Vec<(u64, u64)> = (0..200).map(|at| (at, 1_000)).collect();
        assert_eq!(levels(&spans), [1, 2, 4, 8, 16, 32, 137]);
    }
}
