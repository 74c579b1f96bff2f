//! Tests of batch means: by hand, and by simulations with a known truth.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

/// Batches in which second `i` moves `bytes[i]`.
fn of_bytes(bytes: &[u64]) -> Batches {
    let mut batches = Batches::default();
    for (second, bytes) in (0..).zip(bytes) {
        batches.record(second * SECOND, second * SECOND + SECOND - 1, 1_000, *bytes);
    }
    batches
}

fn throughput(batches: &mut Batches, seconds: u64) -> Option<ConfidenceInterval> {
    batches.interval(BatchMetric::Throughput, 0, seconds * SECOND)
}

#[test]
fn the_interval_of_ten_batches_worked_out_by_hand() {
    let zigzag: Vec<u64> = (0..20).map(|second| if second % 2 == 0 { 99 } else { 101 }).collect();
    let mut batches = of_bytes(&zigzag);
    assert_eq!(throughput(&mut batches, 9), None, "nine are too few");
    let found = throughput(&mut batches, 10).unwrap();
    assert_eq!((found.centre, found.batches_count, found.batch_ns), (100.0, 10, SECOND));
    // t(97.5 %, 9) · √(10 · 1² / 9 / 10) = 2.262 / 3.
    assert!((found.half_width - 0.754).abs() < 0.000_5, "{found:?}");
    assert!((found.percent() - 0.754).abs() < 0.000_5);
    // A batch that is not wholly inside counts for nothing.
    assert_eq!(batches.interval(BatchMetric::Throughput, 1, 10 * SECOND), None);
    let later = batches.interval(BatchMetric::Throughput, 1, 11 * SECOND).unwrap();
    assert_eq!(later.batches_count, 10);
}

#[test]
fn batches_that_are_all_the_same_are_known_exactly() {
    let found = throughput(&mut of_bytes(&[5_000; 12]), 12).unwrap();
    assert_eq!((found.half_width, found.centre), (0.0, 5_000.0));
    assert_eq!(throughput(&mut of_bytes(&[0; 12]), 12), None, "nothing is moved");
    // A slope that is smaller than a histogram can tell is none.
    let creeping: Vec<u64> = (0..12).map(|second| 1_000_000 + second * 10).collect();
    assert!(throughput(&mut of_bytes(&creeping), 12).is_some());
}

#[test]
fn a_drift_is_never_converged_while_it_lasts() {
    let noise = [3, -4, 1, 5, -2, -5, 4, 0, -3, 2, -1];
    let rate = |second: usize| (10_000 + second * 50) as i64 + noise[second % 11] * 5;
    let rising: Vec<u64> = (0..600).map(|second| rate(second) as u64).collect();
    let falling: Vec<u64> = rising.iter().rev().copied().collect();
    for rates in [rising, falling] {
        for seconds in 1..=600 {
            let mut batches = of_bytes(&rates[..seconds]);
            assert_eq!(throughput(&mut batches, seconds as u64), None, "{seconds}");
        }
    }
}

#[test]
fn batches_are_joined_until_they_hold_enough_samples() {
    let mut batches = Batches::default();
    for op in 0..50 * 40 {
        let end_ns = op * SECOND / 50 + 1;
        batches.record(end_ns - 1, end_ns, 1_000_000 + op % 50, 0);
    }
    let p99 = BatchMetric::Latency(Percentile::P99);
    assert_eq!(batches.interval(p99, 0, 19 * SECOND), None);
    // A p99 needs 100 samples, so two seconds.
    let found = batches.interval(p99, 0, 20 * SECOND).unwrap();
    assert_eq!((found.batches_count, found.batch_ns), (10, 2 * SECOND));
    let p90 = batches.interval(BatchMetric::Latency(Percentile::P90), 0, 20 * SECOND).unwrap();
    assert_eq!(p90.batches_count, 20);
    assert_eq!(batches.interval(BatchMetric::Latency(Percentile::P99_9), 0, 40 * SECOND), None);
}

#[test]
fn batches_are_merged_in_pairs_beyond_64() {
    let mut batches = of_bytes(&[1_000; 64]);
    assert_eq!(throughput(&mut batches, 64).unwrap().batches_count, 64);
    batches.record(64 * SECOND, 65 * SECOND - 1, 1_000, 1_000);
    let found = throughput(&mut batches, 64).unwrap();
    assert_eq!((found.batches_count, found.batch_ns, found.centre), (32, 2 * SECOND, 1_000.0));
    batches.record(99_999 * SECOND, 99_999 * SECOND, 1_000, 1_000);
    assert!(batches.grid.cells().len() <= BATCHES_MAX);
}

/// Random numbers from a seed (SplitMix64), for the simulations.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal number (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Log-normal latencies around 1 µs, 100 a second, whose logarithms are an AR(1) process: each is
/// `phi` of the one before and new noise.
struct Latencies {
    random: Random,
    phi: f64,
    state: f64,
    count: u64,
}

const SIGMA: f64 = 0.3;

impl Latencies {
    fn new(seed: u64, phi: f64) -> Self {
        let mut random = Random(seed);
        let state = random.normal();
        Self { random, phi, state, count: 0 }
    }

    fn record(&mut self, seconds: u64, batches: &mut Batches) {
        for _ in 0..seconds * 100 {
            let latency_ns = ((SIGMA * self.state).exp() * 1e3).round() as u64;
            let end_ns = self.count * SECOND / 100;
            batches.record(end_ns, end_ns, latency_ns, 1_000);
            self.count += 1;
            let noise = (1.0 - self.phi * self.phi).sqrt() * self.random.normal();
            self.state = self.phi * self.state + noise;
        }
    }
}

/// The metrics with their true values: e^(σ²/2) and e^(σz) µs.
fn truths() -> [(BatchMetric, f64); 3] {
    [
        (BatchMetric::MeanLatency, (SIGMA * SIGMA / 2.0).exp() * 1e3),
        (BatchMetric::Latency(Percentile::P50), 1e3),
        (BatchMetric::Latency(Percentile::P90), (SIGMA * 1.281_552).exp() * 1e3),
    ]
}

/// In how many of a hundred runs of `seconds` the interval that is given covers the truth.
fn coverage(phi: f64, seconds: u64, trials: u64) -> [f64; 3] {
    let (mut given, mut covered) = ([0.0; 3], [0.0; 3]);
    for trial in 0..trials {
        let mut batches = Batches::default();
        Latencies::new(trial + 1, phi).record(seconds, &mut batches);
        for (index, (metric, truth)) in truths().into_iter().enumerate() {
            if let Some(found) = batches.interval(metric, 0, seconds * SECOND) {
                given[index] += 1.0;
                covered[index] += f64::from((found.centre - truth).abs() <= found.half_width);
            }
        }
    }
    assert!(given.iter().all(|given| *given >= 0.5 * trials as f64), "{given:?}");
    std::array::from_fn(|index| covered[index] / given[index] * 100.0)
}

#[test]
fn intervals_cover_the_truth() {
    for (phi, seconds) in [(0.0, 40), (0.9, 40), (0.95, 80)] {
        let covered = coverage(phi, seconds, 120);
        assert!(covered.iter().all(|covered| *covered >= 90.0), "{phi}: {covered:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn shards_merged_in_any_order_are_the_whole(
        ops in prop::collection::vec(
            (0u64..200 * SECOND, 0u64..5 * SECOND, 0u64..1_000_000), 0..40),
        shards in 1usize..6,
    ) {
        let mut whole = Batches::default();
        let mut parts = vec![Batches::default(); shards];
        for (index, &(start, took, bytes)) in ops.iter().enumerate() {
            whole.record(start, start + took, took, bytes);
            parts[index % shards].record(start, start + took, took, bytes);
        }
        let mut merged = Batches::default();
        parts.into_iter().rev().for_each(|part| merged.merge(part));
        whole.close();
        prop_assert_eq!(merged.grid, whole.grid);
    }
}
