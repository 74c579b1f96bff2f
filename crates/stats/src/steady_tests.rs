//! Tests of the 25/7 rule on series made by hand.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
const WARP: SteadyRule = SteadyRule { window_ns: 7 * SECOND, percent: 7.5 };

/// Ten operations a second that move `bytes_of(second)` together.
fn series(seconds: u64, bytes_of: impl Fn(u64) -> u64) -> AmountSeries {
    let mut series = AmountSeries::default();
    for tenth in 0..seconds * 10 {
        let start_ns = tenth * SECOND / 10;
        series.record(start_ns, start_ns + SECOND / 10, bytes_of(tenth / 10) / 10, 1);
    }
    series
}

/// The first whole second at which `rule` holds for the range from 0 on.
fn ends_at(series: &AmountSeries, rule: &SteadyRule, seconds: u64) -> Option<u64> {
    (1..=seconds).find(|&second| series.steady(rule, 0, second * SECOND).is_some())
}

#[test]
fn a_flat_series_ends_as_soon_as_the_range_is_longer_than_25_sevenths() {
    let flat = series(60, |_| 1_000_000);
    assert_eq!(WARP.range_ns_min(), 25 * SECOND);
    assert_eq!(flat.steady(&WARP, 0, 25 * SECOND), None);
    let found = flat.steady(&WARP, 0, 25 * SECOND + 25).unwrap();
    assert!(found.by_bytes);
    assert_eq!((found.range_ns, found.window_ns), (25 * SECOND + 25, 7 * SECOND + 7));
    assert_eq!(ends_at(&flat, &WARP, 60), Some(26));
    // The range does not begin at the origin.
    assert_eq!(flat.steady(&WARP, 3 * SECOND, 28 * SECOND), None);
    assert!(flat.steady(&WARP, 3 * SECOND, 29 * SECOND).is_some());
    // 15 s, warp's default: 53.57 s.
    let rule = SteadyRule { window_ns: 15 * SECOND, percent: 7.5 };
    assert_eq!(ends_at(&flat, &rule, 60), Some(54));
}

#[test]
fn each_of_six_parts_may_differ_from_the_last_by_the_percentage() {
    let holds = |part: f64, last: f64| WARP.holds(&[100.0, 100.0, part, 100.0, 100.0, 100.0, last]);
    assert!(holds(92.5, 100.0) && holds(107.5, 100.0));
    assert!(!holds(92.4, 100.0) && !holds(107.6, 100.0));
    // 7.5 % of the last one, not of the others: 0.075 × 108.1 = 8.1.
    assert!(holds(100.0, 108.1) && !holds(100.0, 108.2));
    assert!(!WARP.holds(&[0.0; 7]), "nothing done is not steady");
    assert!(!WARP.holds(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]));
}

#[test]
fn a_drift_of_one_percent_a_part_never_ends_while_it_lasts() {
    let parts: [f64; 7] = std::array::from_fn(|part| 1.01_f64.powi(part as i32));
    let plain = parts.iter().all(|part| (part / parts[6] - 1.0).abs() < 0.075);
    assert!(plain && !WARP.holds(&parts), "seven parts differ by 5.8 % in all");
    let falling: [f64; 7] = std::array::from_fn(|part| 0.99_f64.powi(part as i32));
    assert!(!WARP.holds(&falling));
    // A second is a part at first, and parts only become longer.
    let rate = |second: u64| (1e9 * 1.01_f64.powi(second.min(100) as i32)) as u64;
    let drifting = series(200, rate);
    let end = ends_at(&drifting, &WARP, 200).unwrap();
    // At 139 s the last 7 of 25 parts begin at 100 s.
    assert!((101..=139).contains(&end), "{end}");
}

#[test]
fn a_second_of_half_the_rate_postpones_the_end_until_it_is_out_of_the_window() {
    let dip = series(60, |second| if second == 24 { 500_000 } else { 1_000_000 });
    // The last 7 of 25 parts begin at 18/25 of the range: 25 s of 34.7 s.
    assert_eq!(ends_at(&dip, &WARP, 60), Some(35));
    let early = series(60, |second| if second < 18 { 500_000 } else { 1_000_000 });
    assert_eq!(ends_at(&early, &WARP, 60), Some(26), "what came before does not matter");
}

#[test]
fn without_bytes_objects_are_compared() {
    let mut stat = series(30, |_| 0);
    let found = stat.steady(&WARP, 0, 26 * SECOND).unwrap();
    assert!(!found.by_bytes);
    stat.record(25 * SECOND + SECOND / 2, 25 * SECOND + SECOND / 2, 0, 20);
    assert_eq!(stat.steady(&WARP, 0, 26 * SECOND), None);
}

#[test]
fn an_operation_of_a_minute_is_spread_over_it() {
    let mut long = AmountSeries::default();
    for start in [0, 60, 120] {
        long.record(start * SECOND, (start + 60) * SECOND, 1 << 30, 1);
    }
    assert!(long.steady(&WARP, 0, 180 * SECOND).is_some());
}

#[test]
fn memory_is_the_same_after_a_month() {
    let mut month = AmountSeries::default();
    for minute in 0..30 * 24 * 60 {
        month.record(minute * 60 * SECOND, (minute + 1) * 60 * SECOND, 60_000_000, 60);
    }
    assert!(month.0.cells().len() <= CELLS_MAX);
    let rule = SteadyRule { window_ns: 24 * 3_600 * SECOND, percent: 0.1 };
    assert!(month.steady(&rule, 0, 30 * 24 * 3_600 * SECOND).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shards_merged_in_any_order_are_the_whole(
        ops in prop::collection::vec(
            (0u64..200 * SECOND, 0u64..30 * SECOND, 0u64..1_000_000, 0u64..9), 0..40),
        shards in 1usize..6,
    ) {
        let mut whole = AmountSeries::default();
        let mut parts = vec![AmountSeries::default(); shards];
        for (index, &(start, took, bytes, objects)) in ops.iter().enumerate() {
            whole.record(start, start + took, bytes, objects);
            parts[index % shards].record(start, start + took, bytes, objects);
        }
        let mut merged = AmountSeries::default();
        parts.iter().rev().for_each(|part| merged.merge(part));
        prop_assert_eq!(&merged, &whole);
        let [bytes, objects] = whole.until(u64::MAX);
        prop_assert_eq!(bytes, ops.iter().map(|op| op.2).sum::<u64>() as f64);
        prop_assert_eq!(objects, ops.iter().map(|op| op.3 * MICRO).sum::<u64>() as f64);
    }

    #[test]
    fn a_flat_series_of_any_rate_and_length_is_steady(
        bytes in 1_000u64..1 << 40,
        seconds in 4u64..120,
        window_ms in 1u64..40_000,
    ) {
        let flat = series(seconds, |_| bytes);
        let rule = SteadyRule { window_ns: window_ms * 1_000_000, percent: 0.5 };
        let long_enough = seconds * SECOND * 7 > rule.window_ns * 25;
        prop_assert_eq!(flat.steady(&rule, 0, seconds * SECOND).is_some(), long_enough);
    }

    #[test]
    fn what_holds_is_within_the_band_whatever_the_unit(
        parts in prop::array::uniform7(900.0f64..1_100.0),
        percent in 1.0f64..30.0,
        unit in 1e-3f64..1e9,
    ) {
        let rule = SteadyRule { window_ns: 1, percent };
        let holds = rule.holds(&parts);
        if holds {
            let off = parts.map(|part| (part - parts[6]).abs() / parts[6] * 100.0);
            prop_assert!(off.iter().all(|off| *off <= percent + 1e-9));
        }
        prop_assert_eq!(rule.holds(&parts.map(|part| part * unit)), holds);
    }
}
