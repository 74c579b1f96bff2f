//! Whether a row of figures goes somewhere, and whether neighbours in it hang together.

use crate::student_t_quantile;

/// A trend counts as one when it would come about by chance in less than one of ten rows without.
/// Not less: a trend that is missed ends a run too early, one that is imagined costs seconds.
const TREND_SIGNIFICANCE: f64 = 0.10;
/// Neighbours hang together when such a low ratio would come about by chance in one of ten
/// rows. This is the standard normal quantile of 90 %.
const NORMAL_90: f64 = 1.281_551_565_544_600_4;

/// Returns the value that a Student-t variable of `freedom` degrees exceeds in size with
/// probability `significance`.
pub(crate) fn student_t(significance: f64, freedom: usize) -> f64 {
    student_t_quantile(1.0 - significance / 2.0, freedom as f64)
}

/// Returns by how much the row rises from one figure to the next where it rises or falls beyond
/// chance, else 0.
///
/// The least-squares line against the position has the slope b = Σ(i − ī)(x − x̄) / Σ(i − ī)²; it
/// is beyond chance where |b| / √(Σe² / (n − 2) / Σ(i − ī)²), e being the distances from the line,
/// exceeds Student's t of n − 2 degrees of freedom. Source: any textbook on regression, such as
/// N. R. Draper, H. Smith, *Applied Regression Analysis*, 3rd ed. 1998, section 1.5.
pub(crate) fn trend(row: &[f64]) -> f64 {
    let n = row.len();
    if n < 3 {
        return 0.0;
    }
    let middle = (n - 1) as f64 / 2.0;
    let mean = row.iter().sum::<f64>() / n as f64;
    let (mut along, mut square) = (0.0, 0.0);
    for (position, value) in row.iter().enumerate() {
        let offset = position as f64 - middle;
        along += offset * (value - mean);
        square += offset * offset;
    }
    let slope = along / square;
    let off_line = |(position, value): (usize, &f64)| {
        (value - mean - slope * (position as f64 - middle)).powi(2)
    };
    let rest: f64 = row.iter().enumerate().map(off_line).sum();
    let uncertainty = (rest / (n - 2) as f64 / square).sqrt();
    if slope.abs() > student_t(TREND_SIGNIFICANCE, n - 2) * uncertainty { slope } else { 0.0 }
}

/// Tells whether neighbours in the row are no more alike than chance makes them.
///
/// The von Neumann ratio Σ(xᵢ₊₁ − xᵢ)² / Σ(xᵢ − x̄)² of independent figures has the mean 2 and the
/// variance 4(n − 2) / (n² − 1), and is close to normal from n = 10 on; figures that follow one
/// another, and drifting ones, lower it. Source: J. von Neumann, *Distribution of the Ratio of the
/// Mean Square Successive Difference to the Variance*, Annals of Mathematical Statistics 12 (4),
/// 1941, pp. 367–395; its use for batch means: G. S. Fishman, *Grouping Observations in Digital
/// Simulation*, Management Science 24 (5), 1978, pp. 510–521.
pub(crate) fn independent(row: &[f64]) -> bool {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let spread: f64 = row.iter().map(|value| (value - mean).powi(2)).sum();
    let steps: f64 = row.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let deviation = (4.0 * (n - 2.0) / (n * n - 1.0)).sqrt();
    steps >= (2.0 - NORMAL_90 * deviation) * spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_t_is_that_of_the_tables() {
        // Two-sided 5 % and 10 % of a printed table.
        for (significance, freedom, printed) in
            [(0.05, 9, 2.262), (0.05, 29, 2.045), (0.05, 60, 2.000), (0.10, 5, 2.015)]
        {
            let got = student_t(significance, freedom);
            assert!((got - printed).abs() < 0.000_51, "{freedom}: {got}");
        }
    }

    #[test]
    fn a_line_is_a_trend_and_a_zigzag_is_none() {
        assert_eq!(trend(&[5.0; 7]), 0.0);
        let line: Vec<f64> = (0..7).map(|i| 100.0 + 3.0 * f64::from(i)).collect();
        assert!((trend(&line) - 3.0).abs() < 1e-12);
        assert_eq!(trend(&[1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0]), 0.0);
        // Slope 0.75, rest 26.25, so t = 0.75 / √(26.25 / 5 / 28) = 1.73, below 2.015.
        assert_eq!(trend(&[93.0, 93.0, 93.0, 93.0, 93.0, 93.0, 100.0]), 0.0);
        assert_eq!(trend(&[1.0, 2.0]), 0.0);
    }

    #[test]
    fn the_ratio_tells_a_row_that_follows_itself() {
        // Steps 1 nine times: 9; spread of 0..9 is 82.5; 9 / 82.5 = 0.11 is far below 1.27.
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        assert!(!independent(&rising));
        // Steps of 2 nine times: 36; spread 10.
        let zigzag: Vec<f64> = (0..10).map(|i| f64::from(i % 2) * 2.0).collect();
        assert!(independent(&zigzag));
        assert!(independent(&[4.0; 10]));
        // The limit for n = 10 is 2 − 1.2816 √(32 / 99) = 1.271. Over a spread of 10, four steps of
        // 2 make 16 / 10 = 1.6, and one makes 0.4; three over a spread of 9.6 make 12 / 9.6 = 1.25.
        let blocks = |text: &str| text.bytes().map(|b| f64::from(b - b'0')).collect::<Vec<_>>();
        assert!(independent(&blocks("0022002220")));
        assert!(!independent(&blocks("0022200222")) && !independent(&blocks("0000022222")));
    }
}
