//! How far a figure of one row of measurements would scatter: the circular block bootstrap.

use crate::Interval;

/// Intervals are to cover this much of what the resamples give.
const CONFIDENCE: f64 = 0.95;

/// A stream of random numbers: SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, *Fast Splittable
/// Pseudorandom Number Generators*, OOPSLA 2014). The same seed gives the same resamples anywhere.
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number from 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// Returns a number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

/// Rows drawn again from one row of cells that follow one another in time.
///
/// Neighbouring cells hang together, so blocks of neighbours are drawn and not single cells; the
/// row is taken as a ring, so that every cell is equally likely. Sources: H. R. Künsch, *The
/// Jackknife and the Bootstrap for General Stationary Observations*, Annals of Statistics 17 (3),
/// 1989; D. N. Politis, J. P. Romano, *A Circular Block-Resampling Procedure for Stationary Data*,
/// in *Exploring the Limits of Bootstrap*, 1992. Blocks are ⌈n^(1/3)⌉ cells long, the order that is
/// best for a variance: P. Hall, J. L. Horowitz, B.-Y. Jing, *On Blocking Rules for the Bootstrap
/// with Dependent Data*, Biometrika 82 (3), 1995.
#[derive(Clone, Debug)]
pub struct Resamples {
    cells_count: usize,
    /// Of each resample, how often each cell was drawn.
    weights: Vec<u32>,
}

impl Resamples {
    /// Returns `count` resamples of `cells_count` cells, at least one each.
    pub fn draw(cells_count: usize, count: usize, seed: u64) -> Self {
        Self::in_blocks(cells_count, Self::block_length(cells_count), count, seed)
    }

    /// Returns how many cells a block has.
    pub fn block_length(cells_count: usize) -> usize {
        let rounded = (cells_count as f64).cbrt().round() as usize;
        // The cube root of a cube may come out a little too large.
        if rounded.pow(3) >= cells_count { rounded.max(1) } else { rounded + 1 }
    }

    fn in_blocks(cells_count: usize, block: usize, count: usize, seed: u64) -> Self {
        assert!(cells_count > 0 && count > 0 && block > 0);
        let mut random = SplitMix64::new(seed);
        // Bound: the cells of a time line, which are in memory, by the callers' constant.
        let mut weights = vec![0; cells_count * count];
        for resample in weights.chunks_exact_mut(cells_count) {
            let mut drawn = 0;
            while drawn < cells_count {
                let first = random.below(cells_count);
                for offset in 0..block.min(cells_count - drawn) {
                    resample[(first + offset) % cells_count] += 1;
                    drawn += 1;
                }
            }
        }
        Self { cells_count, weights }
    }

    /// Returns, of several figures at once, the stretch that holds the middle 95 % of what the
    /// resamples give; `None` where a resample has no such figure.
    ///
    /// `figures` is handed how often each cell counts.
    pub fn intervals<const N: usize>(
        &self,
        mut figures: impl FnMut(&[u32]) -> [Option<f64>; N],
    ) -> [Option<Interval>; N] {
        let mut given: [Option<Vec<f64>>; N] = std::array::from_fn(|_| Some(Vec::new()));
        for weights in self.weights.chunks_exact(self.cells_count) {
            for (all, figure) in given.iter_mut().zip(figures(weights)) {
                match (all.as_mut(), figure.filter(|figure| figure.is_finite())) {
                    (Some(all), Some(figure)) => all.push(figure),
                    _ => *all = None,
                }
            }
        }
        given.map(|all| all.map(|mut all| middle(&mut all)))
    }
}

/// Returns the stretch that leaves out the same number of values at both ends.
fn middle(values: &mut [f64]) -> Interval {
    values.sort_unstable_by(f64::total_cmp);
    let outside = ((1.0 - CONFIDENCE) / 2.0 * values.len() as f64) as usize;
    Interval { low: values[outside], high: values[values.len() - 1 - outside] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a standard normal number: the sum of twelve uniform ones, less six.
    fn normal(random: &mut SplitMix64) -> f64 {
        (0..12).map(|_| (random.next() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0
    }

    fn weighted_mean(cells: &[f64], weights: &[u32]) -> [Option<f64>; 1] {
        let sum: f64 =
            cells.iter().zip(weights).map(|(cell, &times)| cell * f64::from(times)).sum();
        [Some(sum / cells.len() as f64)]
    }

    #[test]
    fn every_resample_has_as_many_cells_in_whole_blocks() {
        for (cells, block) in [(1, 1), (8, 2), (9, 3), (10, 3), (27, 3), (28, 4), (60, 4), (64, 4)]
        {
            assert_eq!(Resamples::block_length(cells), block, "{cells}");
        }
        let drawn = Resamples::draw(12, 50, 7);
        for weights in drawn.weights.chunks_exact(12) {
            assert_eq!(weights.iter().sum::<u32>(), 12);
            // A cell that was drawn has a neighbour on the ring that was drawn too.
            for (at, _) in weights.iter().enumerate().filter(|(_, times)| **times > 0) {
                assert!(weights[(at + 1) % 12] + weights[(at + 11) % 12] > 0, "{weights:?}");
            }
        }
        assert_eq!(drawn.weights, Resamples::draw(12, 50, 7).weights);
        assert_ne!(drawn.weights, Resamples::draw(12, 50, 8).weights);
    }

    #[test]
    fn a_figure_that_cannot_be_had_has_no_interval() {
        let resamples = Resamples::draw(10, 100, 1);
        let [steady, none, broken] = resamples.intervals(|_| [Some(2.5), None, Some(f64::NAN)]);
        assert_eq!(steady, Some(Interval { low: 2.5, high: 2.5 }));
        assert_eq!((none, broken), (None, None));
    }

    /// Returns how many of 400 rows have an interval of their mean that covers 0, the true mean.
    fn covered(follows: f64, block: impl Fn(usize) -> usize) -> u32 {
        const CELLS: usize = 60;
        let mut random = SplitMix64(11);
        let mut covered = 0;
        for row in 0..400 {
            let mut last = normal(&mut random) / (1.0 - follows * follows).sqrt();
            let cells: Vec<f64> = (0..CELLS)
                .map(|_| {
                    last = follows * last + normal(&mut random);
                    last
                })
                .collect();
            let resamples = Resamples::in_blocks(CELLS, block(CELLS), 300, row);
            let [interval] = resamples.intervals(|weights| weighted_mean(&cells, weights));
            covered += u32::from(interval.unwrap().contains(0.0));
        }
        covered
    }

    #[test]
    fn intervals_cover_the_truth_also_where_neighbours_hang_together() {
        // Of independent cells 95 % are promised; blocks of 4 of 60 cost a few of them.
        let independent = covered(0.0, Resamples::block_length);
        assert!((352..=392).contains(&independent), "{independent} of 400");
        // With a correlation of 0.5 the true deviation of the mean is √3 times that of independent
        // cells: an interval that knows nothing of it covers about 2 Φ(1.96 / √3) − 1 = 74 %.
        let single = covered(0.5, |_| 1);
        assert!((272..=320).contains(&single), "{single} of 400");
        let blocks = covered(0.5, Resamples::block_length);
        assert!(blocks >= 328 && blocks > single + 20, "{blocks} of 400");
    }
}
