//! Fewer points of a long line, without losing a spike or a gap.

/// A point over time; a gap where there is no value.
pub(super) type Point = (f64, Option<f64>);

/// How many points of a line are drawn at most, but for gaps.
pub(super) const POINTS_MAX: usize = 600;

/// Returns at most about `max` points: of each bucket of neighbours the first that is lowest and
/// the first that is highest, and a gap if there is one, all in their order.
pub(super) fn thinned(points: Vec<Point>, max: usize) -> Vec<Point> {
    if points.len() <= max {
        return points;
    }
    let width = (2 * points.len()).div_ceil(max.max(2));
    points.chunks(width).flat_map(kept).collect()
}

/// Returns what stands for a bucket.
fn kept(bucket: &[Point]) -> Vec<Point> {
    let values = || bucket.iter().enumerate().filter_map(|(at, (_, value))| Some((at, (*value)?)));
    let lowest = values().min_by(|a, b| a.1.total_cmp(&b.1));
    // The first of several, as `min_by` takes it.
    let highest = values().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    let gap = bucket.iter().position(|(_, value)| value.is_none());
    let places = [lowest.map(|of| of.0), highest.map(|of| of.0), gap];
    let mut places: Vec<usize> = places.into_iter().flatten().collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|at| bucket[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_a_dip_and_a_gap_stay() {
        let mut points: Vec<Point> = (0..3_600).map(|at| (f64::from(at), Some(100.0))).collect();
        points[1_234].1 = Some(900.0);
        points[2_345].1 = Some(0.0);
        points[3_000].1 = None;
        let thin = thinned(points.clone(), POINTS_MAX);
        assert!(thin.len() <= POINTS_MAX, "{}", thin.len());
        for kept in [(1_234.0, Some(900.0)), (2_345.0, Some(0.0)), (3_000.0, None)] {
            assert!(thin.contains(&kept), "{kept:?}");
        }
        assert!(thin.is_sorted_by(|a, b| a.0 < b.0), "in the order of time");
        assert!(thin.iter().all(|point| points.contains(point)), "nothing is made up");
        assert_eq!((thin[0].0, thin.last().map(|of| of.0)), (0.0, Some(3_588.0)));
    }

    #[test]
    fn what_is_short_stays_as_it_is() {
        let points: Vec<Point> = (0..600).map(|at| (f64::from(at), None)).collect();
        assert_eq!(thinned(points.clone(), 600), points);
        assert_eq!(thinned(Vec::new(), 600), []);
    }
}
