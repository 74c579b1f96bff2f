//! Which of several objects an operation is about.

use plimsoll_model::WorkerId;

use crate::files::laws::Zipf;
use crate::{Permutation, Random};

const PICK_DOMAIN: u64 = 0x7069_636b;

/// How objects are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Pick {
    /// Each as likely as the next.
    #[default]
    Uniform,
    /// By Zipf's law: the object of rank r in proportion to r^-theta. Which object has which rank
    /// depends on the seed.
    Zipf {
        /// Above 0 and not 1.
        theta: f64,
    },
    /// One after the other, and again from the first; the workers take turns.
    Sequential,
}

/// Chooses for one worker.
pub(crate) enum Picker {
    Uniform { count: u64 },
    Zipf { law: Zipf, order: Permutation },
    Sequential { next: u64, step: u64, count: u64 },
}

impl Picker {
    /// Returns the picker of `worker` of `workers` for things numbered up to `count`, which is at
    /// least 1.
    pub(crate) fn new(pick: Pick, count: u64, seed: u64, worker: WorkerId, workers: u32) -> Self {
        let count = count.max(1);
        match pick {
            Pick::Uniform => Self::Uniform { count },
            Pick::Zipf { theta } => Self::Zipf {
                law: Zipf::new(count, theta),
                order: Permutation::new(seed ^ PICK_DOMAIN, count),
            },
            Pick::Sequential => {
                let step = u64::from(workers) % count;
                Self::Sequential { next: u64::from(worker.0) % count, step, count }
            }
        }
    }

    /// Returns the number of the next one.
    pub(crate) fn draw(&mut self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform { count } => random.below(*count),
            Self::Zipf { law, order } => order.at(law.draw(random)),
            Self::Sequential { next, step, count } => {
                let now = *next;
                *next = (now + *step) % *count;
                now
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(pick: Pick, count: u64, worker: u32, workers: u32, draws: usize) -> Vec<u64> {
        let mut picker = Picker::new(pick, count, 5, WorkerId(worker), workers);
        let mut random = Random::new(1, 2, worker.into());
        (0..draws).map(|_| picker.draw(&mut random)).collect()
    }

    #[test]
    fn workers_take_turns_through_a_sequence() {
        let first: Vec<Vec<u64>> =
            (0..3).map(|worker| drawn(Pick::Sequential, 7, worker, 3, 3)).collect();
        assert_eq!(first, [[0, 3, 6], [1, 4, 0], [2, 5, 1]]);
        for (count, workers) in [(12u64, 3u32), (7, 3), (1, 4), (6, 4), (5, 5), (4, 9)] {
            let rounds = count.div_ceil(u64::from(workers)) as usize;
            let mut all: Vec<u64> = (0..workers)
                .flat_map(|worker| drawn(Pick::Sequential, count, worker, workers, rounds))
                .collect();
            all.sort_unstable();
            all.dedup();
            assert!(all.into_iter().eq(0..count), "{count} objects, {workers} workers");
        }
    }

    #[test]
    fn ranks_come_by_zipfs_law_on_objects_in_seeded_order() {
        let draws = drawn(Pick::Zipf { theta: 1.2 }, 100, 0, 1, 100_000);
        let mut counts = [0u32; 100];
        draws.iter().for_each(|&number| counts[number as usize] += 1);
        let mut sorted = counts;
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        assert_ne!(counts, sorted, "the order is not that of the numbers");
        // The weights of ranks 1 to 100 with theta 1.2 add up to 3.6030.
        let total: f64 = (1..=100).map(|rank| f64::from(rank).powf(-1.2)).sum();
        for rank in [1, 2, 5] {
            let expected = 100_000.0 * f64::from(rank).powf(-1.2) / total;
            let got = f64::from(sorted[rank as usize - 1]);
            assert!((got / expected - 1.0).abs() < 0.05, "rank {rank}: {got} of {expected}");
        }
        // Another worker draws others, but likes the same best.
        let other = drawn(Pick::Zipf { theta: 1.2 }, 100, 1, 1, 100);
        assert_ne!(draws[..100], other);
    }
}
