//! Where the warm-up of a series ends, by MSER-5.
//!
//! The marginal standard error rule: of a series of *n* figures those after the first *d* have a
//! mean whose squared standard error is the sum of the squares of their distances from it over
//! (n - d)²; the *d* that makes it least is where the warm-up ends. MSER-5 takes means of five
//! figures each. If the least is found in the second
//! half, the series is too short to tell. Sources: K. P. White, *An Effective Truncation Heuristic
//! for Bias Reduction in Simulation Output*, Simulation 69 (6), 1997, pp. 323–334; K. P. White,
//! M. J. Cobb, S. C. Spratt, *A Comparison of Five Steady-State Truncation Heuristics for
//! Simulation*, Winter Simulation Conference 2000, pp. 755–760.

/// How many figures make one mean.
const BATCH: usize = 5;
/// Fewer means tell nothing.
const BATCHES_MIN: usize = 10;

/// Where a warm-up ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// After so many figures of the series; 0 where there is none.
    Ends(usize),
    /// Not in the first half of the series, so that nothing of it can be taken for steady.
    NotFound,
}

/// Returns where the warm-up of a series ends; `None` for a series that is too short to say.
pub fn mser5(series: &[f64]) -> Option<WarmUp> {
    let means: Vec<f64> =
        series.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if means.len() < BATCHES_MIN {
        return None;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    // Around the last mean, so that large figures lose no digits.
    let origin = means[means.len() - 1];
    let mut least = (f64::INFINITY, 0);
    for (index, mean) in means.iter().enumerate().rev() {
        let off = mean - origin;
        sum += off;
        squares += off * off;
        let count = (means.len() - index) as f64;
        let error = (squares - sum * sum / count).max(0.0) / (count * count);
        // The last few means are alike by chance.
        if count >= BATCH as f64 && error <= least.0 {
            least = (error, index);
        }
    }
    Some(match least.1 <= means.len() / 2 {
        true => WarmUp::Ends(least.1 * BATCH),
        false => WarmUp::NotFound,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A little noise that repeats after seven figures.
    fn noise(index: usize) -> f64 {
        [0.3, -0.2, 0.1, -0.4, 0.25, 0.05, -0.1][index % 7]
    }

    #[test]
    fn a_step_is_cut_where_it_is() {
        let series: Vec<f64> =
            (0..200).map(|i| if i < 40 { 50.0 } else { 100.0 } + noise(i)).collect();
        assert_eq!(mser5(&series), Some(WarmUp::Ends(40)));
    }

    #[test]
    fn a_level_series_has_no_warm_up() {
        let level: Vec<f64> = (0..200).map(|i| 100.0 + noise(i)).collect();
        let Some(WarmUp::Ends(cut)) = mser5(&level) else { panic!() };
        assert!(cut <= 10, "{cut}");
        assert_eq!(mser5(&[7.0; 100]), Some(WarmUp::Ends(0)));
    }

    #[test]
    fn a_warm_up_that_does_not_end_is_not_found() {
        let rising: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(mser5(&rising), Some(WarmUp::NotFound));
        let late: Vec<f64> = (0..200).map(|i| if i < 150 { 0.0 } else { 100.0 }).collect();
        assert_eq!(mser5(&late), Some(WarmUp::NotFound));
        assert_eq!(mser5(&[1.0; 49]), None);
    }
}
