//! Tests of pacing.

use plimsoll_stats::KolmogorovSmirnov;
use proptest::prelude::*;

use super::*;

fn profile(text: &str) -> RateProfile {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn arrivals(law: ArrivalLaw, rate: &str, seed: u64, workers: u32, worker: u32) -> Arrivals {
    let max_in_flight = NonZeroU32::MIN;
    let open = OpenLoop { profile: profile(rate), arrivals: law, max_in_flight };
    Arrivals::new(&open, seed, workers, WorkerId(worker), WorkerId(worker))
}

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn a_constant_rate_is_a_straight_line() {
    let rate = profile("1000/s");
    assert_eq!((rate.peak(), rate.rate_at(Duration::MAX)), (1_000.0, 1_000.0));
    assert_eq!(rate.count_within(secs(2.5)), 2_500.0);
    assert_eq!(rate.time_of(3.0), Duration::from_millis(3));
    assert_eq!(rate.time_of(3.6e6), Duration::from_secs(3_600));
}

#[test]
fn a_ramp_is_a_parabola_and_its_last_rate_holds() {
    // From 100/s to 500/s in 10 s: 100 t + 20 t², so 3,000 in all and 700 in the first 5 s.
    let up = profile("100/s..500/s over 10s");
    assert_eq!((up.rate_at(Duration::ZERO), up.rate_at(secs(2.5))), (100.0, 200.0));
    assert_eq!(up.count_within(secs(5.0)), 1_000.0);
    assert_eq!(up.time_of(1_000.0), secs(5.0));
    assert_eq!((up.time_of(3_000.0), up.time_of(3_500.0)), (secs(10.0), secs(11.0)));
    assert_eq!((up.rate_at(secs(10.0)), up.rate_at(secs(99.0))), (500.0, 500.0));
    // And down: 500 t − 20 t², so 2,000 in the first 5 s.
    let down = profile("500/s..100/s over 10s");
    assert_eq!((down.time_of(2_000.0), down.time_of(3_100.0)), (secs(5.0), secs(11.0)));
    assert_eq!((up.peak(), down.peak()), (500.0, 500.0));
}

#[test]
fn steps_follow_one_another() {
    let steps = profile("100/s for 30s, 200/s for 30s, 400/s");
    let rates = [0.0, 29.9, 30.0, 59.9, 60.0, 1e6].map(|at| steps.rate_at(secs(at)));
    assert_eq!(rates, [100.0, 100.0, 200.0, 200.0, 400.0, 400.0]);
    // 3,000 in the first half minute, 6,000 in the second.
    assert_eq!(steps.count_within(secs(61.0)), 9_400.0);
    let times = [2_999.0, 3_000.0, 3_001.0, 9_000.0, 9_004.0].map(|count| steps.time_of(count));
    assert_eq!(times, [29.99, 30.0, 30.005, 60.0, 60.01].map(secs));
    let ended = profile("100/s for 1s, 300/s for 1s");
    assert_eq!((ended.count_within(secs(3.0)), ended.time_of(700.0)), (700.0, secs(3.0)));
}

#[test]
fn what_lies_beyond_all_time_is_no_overflow() {
    assert_eq!(profile("0.0000000001/s").time_of(1e18), Duration::MAX);
    assert!(profile("1/s..2/s over 1h").count_within(Duration::MAX).is_finite());
}

#[test]
fn rates_are_written_as_they_are_read() {
    for (text, written) in [
        ("1000/s", "1000/s"),
        (" 1k/s ", "1000/s"),
        ("2.5/s", "2.5/s"),
        ("0.25k/s for 1m30s", "250/s for 90s"),
        ("100/s..5000/s over 2m", "100/s..5000/s over 2m"),
        ("100/s .. 5k/s  over  1500ms", "100/s..5000/s over 1500ms"),
        ("100/s for 30s,200/s for 1h , 400/s", "100/s for 30s, 200/s for 1h, 400/s"),
    ] {
        assert_eq!(profile(text).to_string(), written);
        assert_eq!(profile(written), profile(text));
    }
    for law in ArrivalLaw::ALL {
        assert_eq!(law.to_string().parse(), Ok(law));
    }
}

#[test]
fn what_is_no_rate_is_refused() {
    for (text, reason) in [
        ("", "`` is not a rate such as 1000/s"),
        ("1000", "`1000` is not a rate such as 1000/s; write `1000/s`"),
        ("many/s", "`many/s` is not a rate"),
        ("1M/s", "`1M/s` is not a rate"),
        ("0/s", "`0/s`: a rate must be above 0"),
        ("-5/s", "`-5/s`: a rate must be above 0"),
        ("nan/s", "`nan/s`: a rate must be above 0"),
        ("inf/s", "`inf/s`: a rate must be at most 10000000/s"),
        ("10001k/s", "a rate must be at most 10000000/s"),
        ("5/s..0/s over 1m", "`0/s`: a rate must be above 0"),
        ("5/s..-5/s over 1m", "`-5/s`: a rate must be above 0"),
        ("5/s, 0/s", "`0/s`: a rate must be above 0"),
        ("5/s..9/s", "`5/s..9/s`: a ramp needs a time such as `over 2m`"),
        ("5/s..9/s for 1m", "a ramp needs a time such as `over 2m`"),
        ("5/s over 1m", "`over` is for ramps"),
        ("5/s for 0s", "`5/s for 0s`: the time must be above 0"),
        ("5/s for ages", "`5/s for ages`: `ages` does not start with a number"),
        ("5/s, 6/s", "`5/s` lacks a time such as `for 30s`, and only the last rate may"),
        ("5/s for 1s, 6/s, 7/s", "`6/s` lacks a time"),
        ("5/s,", "`` is not a rate"),
    ] {
        let refused = text.parse::<RateProfile>().unwrap_err();
        assert!(refused.contains(reason), "{text}: {refused}");
    }
    let refused = "gauss".parse::<ArrivalLaw>().unwrap_err();
    assert_eq!(refused, "`gauss` is not an arrival law; the laws are constant and poisson");
}

#[test]
fn constant_arrivals_are_dealt_to_the_workers_in_turn() {
    let first = |worker| -> Vec<Duration> {
        arrivals(ArrivalLaw::Constant, "1000/s", 1, 4, worker).take(3).collect()
    };
    assert_eq!(first(0), [0, 4, 8].map(Duration::from_millis));
    assert_eq!(first(3), [3, 7, 11].map(Duration::from_millis));
}

#[test]
fn poisson_arrivals_differ_by_seed_and_worker_and_by_nothing_else() {
    let first = |seed, worker| -> Vec<Duration> {
        arrivals(ArrivalLaw::Poisson, "1000/s", seed, 4, worker).take(100).collect()
    };
    assert_eq!(first(1, 0), first(1, 0));
    assert_ne!(first(1, 0), first(2, 0));
    assert_ne!(first(1, 0), first(1, 1));
    assert!(first(1, 0).is_sorted());
}

/// Returns the arrivals of all workers within `end`, in order.
fn all_within(law: ArrivalLaw, rate: &str, seed: u64, workers: u32, end: Duration) -> Vec<f64> {
    let mut all: Vec<f64> = (0..workers)
        .flat_map(|worker| arrivals(law, rate, seed, workers, worker).take_while(|at| *at < end))
        .map(|at| at.as_secs_f64())
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Of 100 tests at 5 % one expects 5 to fail; more than 12 fail with a chance of 0.15 %.
const FAILED_MAX: usize = 12;

#[test]
fn the_gaps_of_poisson_arrivals_are_exponential() {
    let fails = |seed: &u64| {
        let all = all_within(ArrivalLaw::Poisson, "2000/s", *seed, 8, secs(2.0));
        let mut gaps: Vec<f64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        KolmogorovSmirnov::test(&mut gaps, |gap| 1.0 - (-2_000.0 * gap).exp()).p_value < 0.05
    };
    assert!((0..100).filter(fails).count() <= FAILED_MAX);
}

#[test]
fn poisson_arrivals_on_a_ramp_follow_its_rate() {
    // Given their number, the arrivals of a Poisson process are independent, with Λ(t) / Λ(end) as
    // their distribution; and the number has the mean and the variance Λ(end), here 2,750.
    let (rate, end) = ("500/s..5000/s over 1s", secs(1.0));
    let ramp = profile(rate);
    let mut counts = Vec::new();
    let mut failed = 0;
    for seed in 0..100 {
        let mut all = all_within(ArrivalLaw::Poisson, rate, seed, 4, end);
        counts.push(all.len() as f64);
        let cdf = |at: f64| ramp.count_within(secs(at)) / ramp.count_within(end);
        failed += usize::from(KolmogorovSmirnov::test(&mut all, cdf).p_value < 0.05);
    }
    assert!(failed <= FAILED_MAX, "{failed}");
    // The mean of 100 counts has a standard deviation of √(2750 / 100) = 5.2.
    let mean = counts.iter().sum::<f64>() / 100.0;
    assert!((mean - 2_750.0).abs() < 16.0, "{mean}");
    // Of a hundred, the sum of squares over 2,750 is a chi-square of 100 degrees of freedom, which
    // lies between 60 and 150 with a chance of 99.9 %.
    let chi: f64 = counts.iter().map(|count| (count - 2_750.0).powi(2) / 2_750.0).sum();
    assert!((60.0..150.0).contains(&chi), "{chi}");
}

fn any_profile() -> impl Strategy<Value = RateProfile> {
    let rate = || (1u32..200_000).prop_map(|rate| f64::from(rate) / 4.0);
    let segment = (rate(), rate(), 1u64..100_000, any::<bool>()).prop_map(
        |(from, to, ms, ramp)| match ramp {
            true => format!("{from}/s..{to}/s over {ms}ms"),
            false => format!("{from}/s for {ms}ms"),
        },
    );
    (proptest::collection::vec(segment, 0..5), rate()).prop_map(|(mut segments, last)| {
        segments.push(format!("{last}/s"));
        profile(&segments.join(", "))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_inverse_is_the_inverse(
        profile in any_profile(),
        counts in prop::collection::vec(0.0..2e7f64, 20),
    ) {
        for count in counts {
            let time = profile.time_of(count);
            // A moment is known to half a nanosecond, a number to 15 digits.
            let tolerance = profile.peak() * 1e-9 + count * 1e-11;
            let back = profile.count_within(time);
            prop_assert!((back - count).abs() <= tolerance, "{profile}: {count} {back}");
        }
    }

    #[test]
    fn what_is_written_is_read_the_same(profile in any_profile()) {
        prop_assert_eq!(profile.to_string().parse(), Ok(profile));
    }

    #[test]
    fn the_workers_together_keep_the_schedule(profile in any_profile(), workers in 1u32..50) {
        let mut open = OpenLoop {
            profile,
            arrivals: ArrivalLaw::Constant,
            max_in_flight: NonZeroU32::MIN,
        };
        let mut together = Vec::new();
        for worker in 0..workers {
            let own = Arrivals::new(&open, 9, workers, WorkerId(worker), WorkerId(worker));
            let own: Vec<Duration> = own.take(20).collect();
            prop_assert!(own.is_sorted());
            together.extend(own);
        }
        together.sort_unstable();
        let due = |k: u32| open.profile.time_of(f64::from(k));
        let whole: Vec<Duration> = (0..20 * workers).map(due).collect();
        prop_assert_eq!(together, whole);
        open.arrivals = ArrivalLaw::Poisson;
        let own = Arrivals::new(&open, 9, workers, WorkerId(0), WorkerId(0));
        prop_assert!(own.take(100).is_sorted());
    }
}
