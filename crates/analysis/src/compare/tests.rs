//! Comparisons against figures worked out by hand, and how often they are right.

use std::time::Duration;

use plimsoll_model::{ErrorClass, Moment, OpKind, OpRecord, StageId, WorkerId};

use super::*;
use crate::{Depth, Question, analyze};

/// Returns one run that did GETs, of which only these figures are known.
fn run(figures: &[(Metric, f64)]) -> RunFigures {
    let mut kind = KindFigures::new(Some(OpKind::Get), true);
    figures.iter().for_each(|(metric, value)| kind.set(*metric, Some(*value)));
    RunFigures { name: "run".to_owned(), kinds: vec![kind] }
}

fn runs(metric: Metric, values: &[f64]) -> Vec<RunFigures> {
    values.iter().map(|value| run(&[(metric, *value)])).collect()
}

/// Returns the row of one metric.
fn row(metric: Metric, before: &[f64], after: &[f64]) -> Row {
    let comparison = compare(&runs(metric, before), &runs(metric, after));
    comparison.kinds[0].row(metric).unwrap().clone()
}

#[track_caller]
fn close(got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance, "{got} is not {expected}");
}

#[test]
fn load_lines_are_compared_by_their_intervals() {
    let found = |rate: f64, half: f64| {
        let mut run = RunFigures::default();
        let interval = Interval { low: rate - half, high: rate + half };
        run.add_load_line("line", Some(OpKind::Get), Some((rate, interval)), Some(2_000.0));
        run
    };
    let compared = compare(&[found(1_000.0, 30.0)], &[found(1_100.0, 40.0)]);
    let row = compared.kinds[0].row(Metric::LoadLine).unwrap();
    assert_eq!(row.percent, Some(10.0));
    let Verdict::OneRun { change_percent: Some(noise), .. } = row.verdict else {
        panic!("{row:?}")
    };
    // Zou and Donner: 100 ± √(30² + 40²) of 1,000.
    assert!((noise.low - 5.0).abs() < 1e-9 && (noise.high - 15.0).abs() < 1e-9, "{noise:?}");
    // That no line was found is told.
    let mut none = RunFigures::default();
    none.add_load_line("line", Some(OpKind::Get), None, Some(900.0));
    let compared = compare(&[none.clone()], &[none]);
    assert_eq!(compared.kinds[0].row(Metric::LoadLine).unwrap().verdict, Verdict::Unknown);
}

#[test]
fn runs_that_measured_their_clients_give_no_verdict_and_hold_no_gate() {
    let sides =
        [runs(Metric::Rate, &[100.0, 101.0, 102.0]), runs(Metric::Rate, &[50.0, 51.0, 52.0])];
    let mut compared = compare(&sides[0], &sides[1]);
    let gates: Vec<Gate> =
        ["rate>=-5%", "rate>=-90%", "rate>=90/s"].map(|gate| gate.parse().unwrap()).into();
    let outcomes = |of: &Comparison| -> Vec<Outcome> {
        judge(&gates, of).unwrap().iter().map(|result| result.outcome).collect()
    };
    compared.limit_by_clients(Vec::new());
    assert_eq!(outcomes(&compared), [Outcome::Worse, Outcome::Pass, Outcome::Worse]);
    compared.limit_by_clients(vec![("before/1".to_owned(), "no CPU".to_owned())]);
    let row = compared.kinds[0].row(Metric::Rate).unwrap();
    assert!(matches!(row.verdict, Verdict::ClientLimited(_)), "{row:?}");
    assert_eq!(outcomes(&compared), [Outcome::Inconclusive(Doubt::ClientLimited); 3]);
    assert_eq!(exit_code(&judge(&gates, &compared).unwrap()), 3);
    // That operations fail is the store's.
    let sides = [runs(Metric::Errors, &[0.0; 3]), runs(Metric::Errors, &[0.5; 3])];
    let mut compared = compare(&sides[0], &sides[1]);
    compared.limit_by_clients(vec![("before/1".to_owned(), "no CPU".to_owned())]);
    let failing = judge(&["errors<=1%".parse().unwrap()], &compared).unwrap();
    assert_eq!(failing[0].outcome, Outcome::Worse);
}

#[test]
fn each_metric_has_its_place_and_its_name() {
    for (index, metric) in Metric::ALL.into_iter().enumerate() {
        assert_eq!(metric as usize, index, "{metric:?}");
        assert_eq!(Metric::from_name(metric.name()), Some(metric));
    }
    assert_eq!(Metric::from_name("TTFB-P99"), Some(Metric::TtfbP99));
    assert_eq!(Metric::from_name("p98"), None);
}

#[test]
fn three_runs_a_side() {
    let better = row(Metric::Rate, &[100.0, 102.0, 98.0], &[110.0, 112.0, 108.0]);
    assert_eq!((better.before.mean, better.after.mean), (Some(100.0), Some(110.0)));
    assert_eq!((better.absolute, better.percent), (Some(10.0), Some(10.0)));
    let Verdict::Differs { evidence, better: true } = better.verdict else {
        panic!("{:?}", better.verdict);
    };
    // Deviations of 2: standard error √(4/3 + 4/3) = 1.63299, 4 degrees of freedom, t = 2.776 and
    // 0.941; g = (1 − 3 / 15) · 10 / 2.
    close(evidence.interval.low, 10.0 - 4.533, 0.001);
    close(evidence.percent.unwrap().high, 14.533, 0.001);
    close(evidence.effect.unwrap(), 4.0, 1e-9);
    close(evidence.detectable, 6.070, 0.001);
    close(evidence.detectable_percent.unwrap(), 6.070, 0.001);

    // The same figures as a latency are worse.
    let worse = row(Metric::P99, &[100.0, 102.0, 98.0], &[110.0, 112.0, 108.0]);
    assert!(matches!(worse.verdict, Verdict::Differs { better: false, .. }));
    // A change of 4 ± 4.533 may be none, and may be 8.5 %.
    let unclear = row(Metric::P99, &[100.0, 102.0, 98.0], &[104.0, 106.0, 102.0]);
    let Verdict::Unclear(evidence) = unclear.verdict else { panic!("{:?}", unclear.verdict) };
    // By hand: 2 · 2² (t(97.5 %, ν) + t(80 %, ν))² / n ≤ 4² first holds at n = 6, where ν = 10:
    // (2.228 + 0.879) · √(8 / 6) = 3.588; at n = 5, (2.306 + 0.889) · √(8 / 5) = 4.042.
    assert_eq!(evidence.runs_needed, Some(6));
    assert_eq!(better.verdict.evidence().unwrap().runs_needed, None);
}

#[test]
fn a_doubled_median_that_scatters_is_unclear_and_not_the_same() {
    // Issue 13: before 100, after 254 on average, the deviations so wide that 0 is in the interval.
    let found = row(Metric::P50, &[100.0, 98.0, 102.0], &[180.0, 239.0, 343.0]);
    assert_eq!(found.percent, Some(154.0));
    let Verdict::Unclear(evidence) = found.verdict else { panic!("{:?}", found.verdict) };
    assert!(evidence.interval.contains(0.0) && evidence.interval.high > 300.0, "{evidence:?}");
}

#[test]
fn the_same_is_what_lies_within_the_margin() {
    let row = |before: &[f64], after: &[f64], margin: &str| {
        let (before, after) = (runs(Metric::P99, before), runs(Metric::P99, after));
        let comparison = compare_within(&before, &after, margin.parse().unwrap());
        comparison.kinds[0].row(Metric::P99).unwrap().verdict
    };
    let (before, same) = (&[100.0, 102.0, 98.0], &[100.0, 102.0, 98.0]);
    // ± 4.533 % by hand, as above.
    for (margin, is_same) in [("5%", true), ("4.6 %", true), ("±4.5%", false), ("1", false)] {
        let verdict = row(before, same, margin);
        assert_eq!(matches!(verdict, Verdict::Same(_)), is_same, "{margin}: {verdict:?}");
        assert_eq!(matches!(verdict, Verdict::Unclear(_)), !is_same, "{margin}: {verdict:?}");
    }
    // A change that is shown is one, however wide the margin.
    let verdict = row(before, &[110.0, 112.0, 108.0], "50%");
    assert!(matches!(verdict, Verdict::Differs { better: false, .. }), "{verdict:?}");
    // What was 0 before and may have grown.
    let verdict = row(&[0.0; 3], &[0.0, 0.0, 0.1], "5%");
    assert!(matches!(verdict, Verdict::Unclear(_)), "{verdict:?}");
    for text in ["", "0%", "-5%", "five", "inf%", "NaN"] {
        assert!(text.parse::<Margin>().is_err(), "{text}");
    }
}

#[test]
fn no_run_that_never_varies_makes_a_number_that_is_none() {
    let none = row(Metric::Errors, &[0.0; 3], &[0.0; 3]);
    let Verdict::Same(evidence) = none.verdict else { panic!("{:?}", none.verdict) };
    assert_eq!((evidence.interval, evidence.effect), (Interval { low: 0.0, high: 0.0 }, None));
    assert_eq!((none.absolute, none.percent, evidence.percent), (Some(0.0), None, None));
    let some = row(Metric::Errors, &[0.0; 3], &[0.5; 3]);
    assert!(matches!(some.verdict, Verdict::Differs { better: false, .. }));
    assert_eq!(some.percent, None);
}

#[test]
fn fewer_runs_than_three_a_side_have_no_verdict() {
    let values = [1.0, 1.0, 1.0, 1.0];
    for (before, after, too_few) in
        [(1, 2, true), (2, 1, true), (2, 2, true), (2, 4, true), (4, 1, true), (3, 3, false)]
    {
        let row = row(Metric::Rate, &values[..before], &values[..after]);
        assert_eq!(row.verdict == Verdict::TooFewRuns, too_few, "{before} and {after}");
    }
    // One run of three that does not know the figure leaves two.
    let mut before = runs(Metric::Rate, &[1.0, 2.0, 3.0]);
    before[1].kinds[0].set(Metric::Rate, Some(f64::NAN));
    let comparison = compare(&before, &runs(Metric::Rate, &[1.0, 2.0, 3.0]));
    let row = comparison.kinds[0].row(Metric::Rate).unwrap();
    assert_eq!((&row.verdict, row.before.mean), (&Verdict::TooFewRuns, Some(2.0)));
}

#[test]
fn one_run_a_side_has_the_noise_of_both() {
    let (mut before, mut after) = (run(&[(Metric::P99, 100.0)]), run(&[(Metric::P99, 110.0)]));
    before.kinds[0].set_noise(Metric::P99, Some(Interval { low: 97.0, high: 104.0 }));
    let without = compare(&[before.clone()], &[after.clone()]);
    let noise = |comparison: &Comparison| match comparison.kinds[0].rows[0].verdict {
        Verdict::OneRun { change_percent, .. } => change_percent,
        other => panic!("{other:?}"),
    };
    assert_eq!(noise(&without), None);
    after.kinds[0].set_noise(Metric::P99, Some(Interval { low: 107.0, high: 114.0 }));
    // 10 − √(3² + 4²) to 10 + √(4² + 3²).
    let change = noise(&compare(&[before], &[after])).unwrap();
    close(change.low, 5.0, 1e-9);
    close(change.high, 15.0, 1e-9);
}

#[test]
fn kinds_of_one_side_are_told_apart() {
    let mut before = run(&[(Metric::Rate, 5.0)]);
    before.kinds[0].operations = Some(9_277);
    before.kinds.push(KindFigures::new(None, true));
    let mut after = run(&[(Metric::P50, 5.0)]);
    after.kinds[0].operations = Some(19_253);
    after.kinds.insert(0, KindFigures::new(Some(OpKind::Stat), false));
    let comparison = compare(&[before.clone(), before], &[after]);
    let kinds: Vec<_> = comparison.kinds.iter().map(|kind| (kind.kind, kind.presence)).collect();
    let expected = [
        (Some(OpKind::Get), Presence::Both),
        (Some(OpKind::Stat), Presence::AfterOnly),
        (None, Presence::BeforeOnly),
    ];
    assert_eq!(kinds, expected);
    let get = comparison.of_kind(Some(OpKind::Get)).next().unwrap();
    assert_eq!((get.operations_before, get.operations_after), (Some(18_554), Some(19_253)));
    assert_eq!(comparison.kinds[1].operations_after, None);
    let verdicts: Vec<_> = get.rows.iter().map(|row| (row.metric, row.verdict)).collect();
    assert_eq!(verdicts, [(Metric::Rate, Verdict::Unknown), (Metric::P50, Verdict::Unknown)]);
}

#[test]
fn parameters_that_differ() {
    let run = |text: &str| -> Vec<(String, String)> {
        let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let before = [run("concurrent=8 size=1MiB seed=1"), run("concurrent=8 size=1MiB seed=2")];
    let after = [
        run("size=1MiB concurrent=16 seed=2 tls=on"),
        run("size=1MiB concurrent=32 seed=1 tls=on"),
    ];
    let found = differing(&before, &after);
    let found: Vec<_> = found
        .iter()
        .map(|of| (of.name.as_str(), of.before.join(","), of.after.join(",")))
        .collect();
    let expected =
        [("concurrent", "8".into(), "16,32".into()), ("tls", String::new(), "on".into())];
    assert_eq!(found, expected);
    assert_eq!(differing(&before, &before), []);
}

/// Normal numbers by the method of Box and Muller over SplitMix64.
struct Normal(u64);

impl Normal {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ x >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns runs whose true figure is `mean`, with so much noise between runs.
    fn runs(&mut self, count: usize, mean: f64, noise: f64) -> Vec<RunFigures> {
        let mut normal = || {
            let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
            radius * (std::f64::consts::TAU * self.unit()).cos()
        };
        (0..count)
            .map(|_| {
                let rate = mean * (1.0 + noise * normal());
                run(&[(Metric::Rate, rate), (Metric::P99, mean * (1.0 + noise * normal()))])
            })
            .collect()
    }
}

/// Returns of how many of 1,000 comparisons rate and p99 differ.
fn differ(seed: u64, sides: [(usize, f64); 2], shift: f64) -> [u32; 2] {
    let mut random = Normal(seed);
    let mut differ = [0; 2];
    for _ in 0..1_000 {
        let [(count_before, noise_before), (count_after, noise_after)] = sides;
        let before = random.runs(count_before, 1_000.0, noise_before);
        let after = random.runs(count_after, 1_000.0 * (1.0 + shift), noise_after);
        let comparison = compare(&before, &after);
        for (metric, differ) in [Metric::Rate, Metric::P99].into_iter().zip(&mut differ) {
            let row = comparison.kinds[0].row(metric).unwrap();
            *differ += u32::from(matches!(row.verdict, Verdict::Differs { .. }));
        }
    }
    differ
}

#[test]
fn without_a_true_change_few_comparisons_differ() {
    // 5 % are meant to; 6.6 % is 2.3 standard deviations of 1,000 trials above.
    for (seed, sides) in [
        (1, [(3, 0.02), (3, 0.02)]),
        (2, [(5, 0.02), (5, 0.02)]),
        (3, [(8, 0.02), (8, 0.02)]),
        (4, [(8, 0.01), (3, 0.05)]),
        (5, [(20, 0.30), (20, 0.30)]),
    ] {
        let found = differ(seed, sides, 0.0);
        assert!(found.iter().all(|count| *count <= 66), "{sides:?}: {found:?} of 1,000");
        assert!(found.iter().all(|count| *count >= 15), "{sides:?}: {found:?} of 1,000");
    }
}

#[test]
fn a_true_change_of_five_percent_is_found() {
    let found = differ(6, [(8, 0.02), (8, 0.02)], 0.05);
    assert!(found.iter().all(|count| *count >= 950), "{found:?} of 1,000");
    let found = differ(7, [(8, 0.02), (8, 0.02)], -0.05);
    assert!(found.iter().all(|count| *count >= 950), "{found:?} of 1,000");
}

#[test]
fn the_detectable_change_is_found_in_four_of_five() {
    // 8 runs a side of 2 %: (2.145 + 0.868) · 2 % · √(2 / 8) = 3.01 %.
    let mut random = Normal(8);
    let comparison = compare(&random.runs(8, 1.0, 0.02), &random.runs(8, 1.0, 0.02));
    let detectable = comparison.kinds[0].rows[0].verdict.evidence().unwrap().detectable_percent;
    // It rests on the deviations of just these runs.
    assert!((1.8..4.5).contains(&detectable.unwrap()), "{detectable:?}");
    let found = differ(9, [(8, 0.02), (8, 0.02)], 0.0301);
    assert!(found.iter().all(|count| (760..=840).contains(count)), "{found:?} of 1,000");
}

/// Operations of one worker back to back for `seconds`, each as long as `took_ms` says of the
/// second it starts in; every tenth of the odd seconds fails.
fn worker(kind: OpKind, number: u32, seconds: u64, took_ms: fn(u64) -> u64) -> Vec<OpRecord> {
    let mut ops = Vec::new();
    let mut start = Moment::EPOCH;
    while start < Moment::from_ns(seconds * 1_000_000_000) {
        let second = start.as_ns() / 1_000_000_000;
        let took = Duration::from_millis(took_ms(second));
        let failed = second % 2 == 1 && ops.len() % 10 == 0;
        ops.push(OpRecord {
            worker: WorkerId(number),
            bytes: if kind.moves_bytes() { 1_000 } else { 0 },
            first_byte: Some(start.after(took / 2)),
            outcome: if failed { ErrorClass::Server } else { ErrorClass::Ok },
            ..OpRecord::plain(kind, start, start.after(took))
        });
        start = start.after(took);
    }
    ops
}

fn figures(ops: &[OpRecord], seconds: u64) -> RunFigures {
    let ended = Moment::from_ns(seconds * 1_000_000_000);
    let question =
        Question { depth: Depth::Details, ..Question::about(StageId(0), Moment::EPOCH, ended, 2) };
    let Ok(analysis) = analyze(ops, &question);
    RunFigures::of("run", &analysis.rows[0])
}

#[test]
fn noise_within_a_run_follows_its_segments() {
    let steady = worker(OpKind::Stat, 0, 40, |_| 10);
    let uneven = worker(OpKind::Get, 1, 40, |second| if second % 7 < 3 { 10 } else { 40 });
    let ops: Vec<OpRecord> = steady.into_iter().chain(uneven).collect();
    let run = figures(&ops, 40);
    assert_eq!(
        run.kinds.iter().map(|of| of.kind).collect::<Vec<_>>(),
        [Some(OpKind::Get), Some(OpKind::Stat), None]
    );
    let [get, stat, total] = &run.kinds[..] else { panic!("{run:?}") };
    let half = |of: &KindFigures, metric| {
        let (noise, value) = (of.noise(metric).unwrap(), of.value(metric).unwrap());
        assert!(noise.contains(value), "{metric:?}: {value} in {noise:?}");
        noise.half_width() / value
    };
    // Every success of the steady worker took 10 ms, and every second of it had 100 or 95.
    assert_eq!(half(stat, Metric::P99), 0.0);
    assert_eq!(half(stat, Metric::TtfbP50), 0.0);
    assert_eq!(half(stat, Metric::Mean), 0.0);
    assert!(half(stat, Metric::Rate) < 0.03);
    // The other one swings between 100 and 25 a second.
    assert!((0.08..0.5).contains(&half(get, Metric::Rate)));
    assert!(half(get, Metric::Throughput) > 0.08 && half(get, Metric::Mean) > 0.05);
    assert!(half(total, Metric::Rate) > 0.01 && half(total, Metric::Errors) > 0.0);
    assert!(half(total, Metric::Rate) < half(get, Metric::Rate));
    // Extremes and what moves no bytes have none.
    assert_eq!((get.noise(Metric::Max), get.noise(Metric::Slowest)), (None, None));
    assert_eq!(stat.value(Metric::Throughput).or(stat.value(Metric::Fastest)), None);
    assert_eq!(stat.noise(Metric::Throughput), None);
    assert_eq!(run, figures(&ops, 40));
    // The whole comparison of a run with itself shows no change, and no verdict.
    let comparison = compare(std::slice::from_ref(&run), std::slice::from_ref(&run));
    let rate = comparison.kinds[0].row(Metric::Rate).unwrap();
    let Verdict::OneRun { change_percent: Some(change), .. } = rate.verdict else {
        panic!("{:?}", rate.verdict)
    };
    assert!(change.contains(0.0) && change.half_width() > 5.0, "{change:?}");
}

#[test]
fn a_short_run_has_no_noise() {
    let run = figures(&worker(OpKind::Get, 0, 9, |_| 10), 9);
    assert!(run.kinds[0].value(Metric::P99).is_some());
    assert!(Metric::ALL.into_iter().all(|metric| run.kinds[0].noise(metric).is_none()));
}

#[test]
fn what_is_no_gate_is_refused_with_its_reason() {
    for (text, reason) in [
        ("p99", "has neither <= nor >="),
        ("p98<=+5%", "`p98` is not a metric: take one of load-line, capacity, rate"),
        ("got.p99<=+5%", "`got` is not a kind of operation: take one of put, get"),
        ("get.p98<=+5%", "`p98` is not a metric"),
        ("p99>=+5%", "less p99 is better, so write <= before"),
        ("rate<=+5%", "more rate is better, so write >= before"),
        ("p99<=+5ms", "`+5ms` is not a limit for p99: write +5% for the change"),
        ("p99<=5%", "20ms for the figure of AFTER"),
        ("throughput>=fast", "500MiB/s for the figure"),
        ("errors<=0.1", "0.1% for the figure"),
        ("rate>=+inf%", "is not a limit for rate"),
        ("<=5%", "`` is not a metric"),
    ] {
        let error = text.parse::<Gate>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("`gate` `{text}`")), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

/// Returns what one gate says of runs of 100, 102, 98 before and as many as `after` tells.
fn outcome(gate: &str, metric: Metric, after: &[f64]) -> Outcome {
    let comparison = compare(&runs(metric, &[100.0, 102.0, 98.0]), &runs(metric, after));
    let gate = gate.parse::<Gate>().unwrap_or_else(|error| panic!("{error}"));
    let results = judge(std::slice::from_ref(&gate), &comparison).unwrap();
    assert_eq!((results.len(), &results[0].gate), (1, &gate.to_string()));
    results[0].outcome
}

#[test]
fn gates_on_the_change() {
    use Outcome::{Inconclusive, Pass, Worse};
    // With deviations of 2 the interval of the change is ± 4.533.
    for (gate, metric, mean_after, expected) in [
        ("p99<=+5%", Metric::P99, 100.0, Pass),
        ("p99<=+5%", Metric::P99, 60.0, Pass),
        ("p99<=+5%", Metric::P99, 101.0, Inconclusive(Doubt::LimitInInterval)),
        ("p99<=+5%", Metric::P99, 109.0, Inconclusive(Doubt::LimitInInterval)),
        ("p99<=+5%", Metric::P99, 110.0, Worse),
        ("GET.P99 <= +5 %", Metric::P99, 110.0, Worse),
        ("total.p99<=+5%", Metric::P99, 110.0, Worse),
        ("p99.9<=+5%", Metric::P99_9, 100.0, Pass),
        ("get.p99.9<=-5%", Metric::P99_9, 90.0, Pass),
        ("get.p99.9<=-5%", Metric::P99_9, 100.0, Worse),
        ("rate>=-3%", Metric::Rate, 102.0, Pass),
        ("rate>=-3%", Metric::Rate, 100.0, Inconclusive(Doubt::LimitInInterval)),
        ("rate>=-3%", Metric::Rate, 92.0, Worse),
        ("rate>=+5%", Metric::Rate, 110.0, Pass),
    ] {
        let after = [mean_after, mean_after + 2.0, mean_after - 2.0];
        assert_eq!(outcome(gate, metric, &after), expected, "{gate} {mean_after}");
    }
    assert_eq!(outcome("p99<=+5%", Metric::P99, &[1.0]), Inconclusive(Doubt::TooFewRuns));
    assert_eq!(outcome("p50<=+5%", Metric::P99, &[1.0; 3]), Inconclusive(Doubt::Unknown));
    let one = compare(&runs(Metric::P99, &[100.0]), &runs(Metric::P99, &[500.0]));
    let gate = "p99<=+5%".parse().unwrap();
    assert_eq!(judge(&[gate], &one).unwrap()[0].outcome, Inconclusive(Doubt::OneRun));
}

#[test]
fn gates_on_what_was_zero_before() {
    let gate: Gate = "errors<=+5%".parse().unwrap();
    for (after, expected) in [
        ([0.0; 3], Outcome::Pass),
        ([0.5; 3], Outcome::Worse),
        ([0.0, 0.0, 0.1], Outcome::Inconclusive(Doubt::LimitInInterval)),
    ] {
        let comparison = compare(&runs(Metric::Errors, &[0.0; 3]), &runs(Metric::Errors, &after));
        let results = judge(std::slice::from_ref(&gate), &comparison).unwrap();
        assert_eq!(results[0].outcome, expected, "{after:?}");
    }
}

#[test]
fn gates_on_the_figure_after() {
    use Outcome::{Inconclusive, Pass, Worse};
    const MIB: f64 = 1_048_576.0;
    for (gate, metric, after, expected) in [
        ("p99<=20ms", Metric::P99, vec![20e6], Pass),
        ("p99<=20ms", Metric::P99, vec![20.1e6, 21e6], Worse),
        ("p99<=20ms", Metric::P99, vec![19e6, 21e6], Inconclusive(Doubt::RunsDisagree)),
        ("throughput>=500MiB/s", Metric::Throughput, vec![500.0 * MIB; 3], Pass),
        ("throughput>=500MiB", Metric::Throughput, vec![499.0 * MIB; 3], Worse),
        ("slowest>=1KiB/s", Metric::Slowest, vec![1_024.0], Pass),
        ("errors<=0.1%", Metric::Errors, vec![0.001], Pass),
        ("errors<=0%", Metric::Errors, vec![0.000_1], Worse),
        ("rate>=1000", Metric::Rate, vec![1_000.0], Pass),
        ("rate>=1000 ops/s", Metric::Rate, vec![999.0], Worse),
        ("objects>=1000/s", Metric::Objects, vec![999.0], Worse),
    ] {
        assert_eq!(outcome(gate, metric, &after), expected, "{gate} {after:?}");
    }
}

#[test]
fn gates_of_several_kinds() {
    let mut run = run(&[(Metric::Slowest, 500.0), (Metric::Throughput, 900.0)]);
    let mut stat = KindFigures::new(Some(OpKind::Stat), false);
    stat.set(Metric::SlowestObjects, Some(10.0));
    let mut total = KindFigures::new(None, true);
    total.set(Metric::Throughput, Some(900.0));
    run.kinds.extend([stat, total]);
    let runs = [run.clone(), run.clone(), run];
    let comparison = compare(&runs, &runs);
    let judged = |text: &str| {
        let results = judge(&[text.parse().unwrap()], &comparison).map_err(|e| e.to_string())?;
        let pairs = results.iter().map(|result| {
            assert_eq!(result.outcome, Outcome::Pass, "{text}");
            (result.kind, result.row.as_ref().unwrap().metric)
        });
        Ok::<_, String>(pairs.collect::<Vec<_>>())
    };
    let (get, stat) = (Some(OpKind::Get), Some(OpKind::Stat));
    // Segments of STAT are of objects, so a limit in bytes is not about them.
    let both = [(get, Metric::Slowest), (stat, Metric::SlowestObjects)];
    assert_eq!(judged("slowest>=-5%").unwrap(), both);
    assert_eq!(judged("slowest>=400B/s").unwrap(), [(get, Metric::Slowest)]);
    assert_eq!(judged("throughput>=-5%").unwrap(), [(get, Metric::Throughput)]);
    assert_eq!(judged("total.throughput>=-5%").unwrap(), [(None, Metric::Throughput)]);
    assert_eq!(
        judged("put.p99<=+5%").unwrap_err(),
        "`gate` `put.p99<=+5%` is about no kind of operation in these runs; they hold GET, STAT"
    );
    assert!(judged("stat.throughput>=-5%").is_err());
}

#[test]
fn the_worst_gate_is_the_exit_code() {
    let result = |outcome| GateResult {
        of: None,
        gate: String::new(),
        kind: None,
        limit: Limit::After(0.0),
        row: None,
        outcome,
    };
    let (pass, worse) = (Outcome::Pass, Outcome::Worse);
    let doubt = Outcome::Inconclusive(Doubt::OneRun);
    for (outcomes, code) in
        [(vec![], 0), (vec![pass, pass], 0), (vec![pass, doubt], 3), (vec![doubt, worse, pass], 1)]
    {
        let results: Vec<GateResult> = outcomes.into_iter().map(result).collect();
        assert_eq!(exit_code(&results), code);
    }
}
