//! Traces that are drawn from laws that are known, and the laws that are found again.

use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_workload::plan::spec::{OpSpec, SizeLaw, SizeSpec};
use plimsoll_workload::trace::{Seen, TraceBuilder, TraceOptions};
use plimsoll_workload::{ArrivalLaw, Random};

use super::*;

const SEED: u64 = 18;

/// Draws from the normal distribution (G. E. P. Box, M. E. Muller, 1958).
fn normal(random: &mut Random) -> f64 {
    let (one, other) = (1.0 - random.unit(), random.unit());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

/// Draws ranks with chances in proportion to rank^-exponent, by a table.
fn zipf(ranks: u32, exponent: f64) -> impl FnMut(&mut Random) -> u32 {
    let mut sum = 0.0;
    let up_to: Vec<f64> = (1..=ranks)
        .map(|rank| {
            sum += f64::from(rank).powf(-exponent);
            sum
        })
        .collect();
    move |random| {
        let at = random.unit() * sum;
        up_to.partition_point(|each| *each <= at) as u32
    }
}

/// What a trace is drawn from.
struct Truth {
    objects: u32,
    ops: u32,
    exponent: f64,
    size: fn(&mut Random) -> u64,
    gap_ns: fn(&mut Random) -> u64,
}

/// Of ten operations seven read, one looks and two write.
fn drawn(truth: &Truth) -> Trace {
    let mut random = Random::new(SEED, 1, 0);
    let mut rank = zipf(truth.objects, truth.exponent);
    let sizes: Vec<u64> = (0..truth.objects).map(|_| (truth.size)(&mut random)).collect();
    let mut builder = TraceBuilder::default();
    let mut at = 0;
    for number in 0..truth.ops {
        at += (truth.gap_ns)(&mut random);
        let (kind, object) = match number % 10 {
            0..7 => (OpKind::Get, rank(&mut random)),
            7 => (OpKind::Stat, rank(&mut random)),
            // What is written is new, and never read.
            _ => (OpKind::Put, truth.objects + number),
        };
        let bytes = match kind {
            OpKind::Put => Some((truth.size)(&mut random)),
            _ => Some(sizes[object as usize]),
        };
        let name = object.to_le_bytes();
        let (object_bytes, range) = (bytes, None);
        let seen = Seen { at_ns: Some(at), kind, name: &name, bytes, object_bytes, range };
        builder.add(&seen).unwrap();
    }
    builder.finish(TraceOptions::default()).unwrap()
}

fn exponential(random: &mut Random) -> u64 {
    // A mean of 1 ms.
    (-(1.0 - random.unit()).ln() * 1e6) as u64
}

#[test]
fn laws_that_a_trace_was_drawn_from_are_found_again() {
    for exponent in [0.6, 0.99, 1.3] {
        let truth = Truth {
            objects: 1_000,
            ops: 300_000,
            exponent,
            size: |random| (65_536.0 * (1.2 * normal(random)).exp()).max(1.0) as u64,
            gap_ns: exponential,
        };
        let fitted = Fitted::of(&drawn(&truth), SEED).unwrap();
        assert!(fitted.sizes.distance <= 0.02, "{:?}", fitted.sizes);
        let found = fitted.popularity.unwrap();
        assert!((found.exponent - exponent).abs() <= 0.03, "{exponent}: {found:?}");
        // Of ten operations seven read, by construction.
        assert_eq!(fitted.mix.reads_percent(), 70.0);
        let arrivals = fitted.arrivals.as_ref().unwrap();
        assert_eq!(arrivals.law, ArrivalLaw::Poisson);
        assert!((arrivals.ops_per_sec / 1_000.0 - 1.0).abs() < 0.01, "{arrivals:?}");
        let ArrivalsSeen::Gaps { variation, distance: Some((distance, most)) } = arrivals.seen
        else {
            panic!("{arrivals:?}")
        };
        assert!(distance < 0.01 && (variation - 1.0).abs() < 0.02, "{arrivals:?}");
        assert!(most >= distance && !arrivals.is_assumed, "{arrivals:?}");
        assert!(found.distance <= popularity_limit(&found), "{found:?}");
        // What it writes is a workload.
        let text = fitted.file.to_yaml();
        let read = WorkloadFile::from_yaml("w.yml", &text).unwrap();
        read.judge().unwrap_or_else(|refused| panic!("{refused}\n{text}"));
        let StageSpec::Jobs(stage) = &read.stages[1] else { panic!("{text}") };
        let WorkSpec::Objects(ops) = &stage.jobs[0].work else { panic!("{text}") };
        let weights: Vec<u32> = ops
            .iter()
            .map(|op| match op {
                OpSpec::Get(get) => get.weight,
                OpSpec::Stat(stat) => stat.weight,
                OpSpec::Put(put) => put.weight,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(weights, [7, 1, 2]);
    }
}

#[test]
fn sizes_of_no_simple_law_become_a_histogram_and_few_ones_are_listed() {
    let truth =
        |size| Truth { objects: 4_000, ops: 40_000, exponent: 0.8, size, gap_ns: |_| 1_000_000 };
    // Two humps, far from each other.
    let humps = Fitted::of(
        &drawn(&truth(|random| match random.below(3) {
            0 => 1_000 + random.below(500),
            _ => 9_000_000 + random.below(4_000_000),
        })),
        SEED,
    )
    .unwrap();
    assert_eq!(humps.sizes.law, "a histogram");
    assert!(humps.sizes.distance <= 0.02, "{:?}", humps.sizes);
    // Even gaps lie all on the step of their law, where a distance says nothing.
    let even = humps.arrivals.as_ref().unwrap();
    assert_eq!((even.law, even.is_assumed), (ArrivalLaw::Constant, false));
    let ArrivalsSeen::Gaps { variation, distance: None } = even.seen else { panic!("{even:?}") };
    assert!(variation < 1e-9, "{even:?}");
    assert!(!humps.summary().lines().last().unwrap().contains("KS"), "{}", humps.summary());
    humps.file.judge().unwrap();
    let few = Fitted::of(&drawn(&truth(|random| [4_096, 65_536][random.below(2) as usize])), SEED);
    let few = few.unwrap();
    assert_eq!((few.sizes.law, few.sizes.distance), ("each by its share", 0.0));
    let SetSpec::Objects(set) = few.file.sets.iter().next().unwrap().1 else { panic!() };
    assert!(matches!(set.size, Some(SizeSpec::Drawn(SizeLaw::Shares(_)))));
    assert!(few.summary().lines().all(|line| line.chars().count() <= 80), "{}", few.summary());
}

/// Returns a trace of reads at these instants, each of one of so many objects, of a form that
/// counts instants in `tick`.
fn reads(at_ns: &[u64], objects: u64, tick: Duration) -> Trace {
    let (mut random, mut builder) = (Random::new(SEED, 3, 0), TraceBuilder::default());
    builder.tick = tick;
    let tick_ns = tick.as_nanos() as u64;
    for at in at_ns {
        let name = random.below(objects).to_le_bytes();
        let (at_ns, bytes, kind) = (Some(at - at % tick_ns), Some(1_000), OpKind::Get);
        let seen = Seen { at_ns, kind, name: &name, bytes, object_bytes: bytes, range: None };
        builder.add(&seen).unwrap();
    }
    builder.finish(TraceOptions::default()).unwrap()
}

/// Returns instants that follow each other by these gaps.
fn instants(count: usize, mut gap_ns: impl FnMut(&mut Random) -> u64) -> Vec<u64> {
    let (mut random, mut at) = (Random::new(SEED, 2, 0), 0);
    (0..count)
        .map(|_| {
            at += gap_ns(&mut random);
            at
        })
        .collect()
}

#[test]
fn a_law_of_arrivals_is_held_against_the_trace_and_its_resolution() {
    let [nano, second] = [Duration::from_nanos(1), Duration::from_secs(1)];
    let of = |at: &[u64], tick| Fitted::of(&reads(at, 100, tick), SEED).unwrap();
    let law = |fitted: &Fitted| {
        let fit = fitted.arrivals.as_ref().unwrap();
        assert!(fitted.summary().lines().all(|line| line.chars().count() <= 80));
        (fit.law, fit.is_assumed)
    };
    let dispersion = |fitted: &Fitted| match fitted.arrivals.as_ref().unwrap().seen {
        ArrivalsSeen::Counts { dispersion, .. } => dispersion.unwrap(),
        seen => panic!("{seen:?}"),
    };
    // About 500 a second for a minute.
    let poisson = instants(30_000, |random| 2 * exponential(random));
    let even = instants(30_000, |_| 2_000_000);
    let bursts = instants(30_000, |random| match random.below(100) {
        0 => 190_000_000,
        _ => 100_000,
    });
    assert_eq!(law(&of(&poisson, nano)), (ArrivalLaw::Poisson, false));
    assert_eq!(law(&of(&even, nano)), (ArrivalLaw::Constant, false));
    let said = of(&bursts, nano);
    assert_eq!(law(&said), (ArrivalLaw::Poisson, true));
    assert!(said.summary().contains("no law fits: KS distance"), "{}", said.summary());
    // The same in whole seconds, which the trace spreads evenly: its gaps are ours.
    let coarse = of(&poisson, second);
    assert_eq!(law(&coarse), (ArrivalLaw::Poisson, true));
    assert!((dispersion(&coarse) - 1.0).abs() < 0.6, "{coarse:?}");
    let words = "the trace's resolution of 1s does not show the gaps";
    assert!(coarse.summary().contains(words), "{}", coarse.summary());
    let coarse = of(&even, second);
    assert_eq!(law(&coarse), (ArrivalLaw::Constant, true));
    assert!(dispersion(&coarse) < 0.1, "{coarse:?}");
    let coarse = of(&bursts, second);
    assert!(dispersion(&coarse) > 10.0, "{coarse:?}");
    assert!(coarse.notes.iter().any(|note| note.contains("bursts")), "{:?}", coarse.notes);
    // Far apart, the same resolution is fine enough.
    let slow = instants(2_000, |random| 60_000 * exponential(random));
    assert_eq!(law(&of(&slow, second)), (ArrivalLaw::Poisson, false));
}

#[test]
fn even_reads_are_of_no_law_and_an_uneven_one_that_is_not_zipfs_is_told() {
    let at = instants(10_000, exponential);
    let even = Fitted::of(&reads(&at, 10_000, Duration::from_nanos(1)), SEED).unwrap();
    assert_eq!(even.popularity.unwrap().exponent, 0.0);
    let WorkSpec::Objects(ops) = &measured(&even.file).work else { panic!() };
    assert!(matches!(&ops[0], OpSpec::Get(get) if get.pick == Default::default()), "{ops:?}");
    assert!(even.summary().contains("not distinguishable from uniform"), "{}", even.summary());
    let seen = even.notes.iter().find(|note| note.contains("objects, of which the trace shows"));
    assert!(seen.is_some(), "{:?}", even.notes);
    // A tenth of the objects has nine tenths of the reads.
    let mut builder = TraceBuilder::default();
    let mut random = Random::new(SEED, 4, 0);
    for at in &at {
        let object = match random.below(10) {
            0 => 10 + random.below(90),
            _ => random.below(10),
        };
        let (kind, bytes) = (OpKind::Get, Some(1_000));
        let name = object.to_le_bytes();
        let at_ns = Some(*at);
        let seen = Seen { at_ns, kind, name: &name, bytes, object_bytes: bytes, range: None };
        builder.add(&seen).unwrap();
    }
    let trace = builder.finish(TraceOptions::default()).unwrap();
    let uneven = Fitted::of(&trace, SEED).unwrap().summary();
    assert!(
        uneven.contains("zipf assumed") && uneven.contains("no law of Zipf's fits"),
        "{uneven}"
    );
    assert!(uneven.lines().all(|line| line.chars().count() <= 80), "{uneven}");
}

/// Returns the job that is measured.
fn measured(file: &WorkloadFile) -> &JobSpec {
    let StageSpec::Jobs(stage) = &file.stages[1] else { panic!("{}", file.to_yaml()) };
    &stage.jobs[0]
}

#[test]
fn a_rate_of_an_operation_in_hours_is_still_a_rate() {
    let at = instants(100, |_| 3 * 3_600_000_000_000);
    let slow = Fitted::of(&reads(&at, 3, Duration::from_nanos(1)), SEED).unwrap();
    let text = slow.file.to_yaml();
    assert!(text.contains("0.00009259/s"), "{text}");
    assert!(slow.summary().contains("constant, 0.00009259/s"), "{}", slow.summary());
    slow.file.judge().unwrap();
}

#[test]
fn nothing_is_drawn_below_the_smallest_size() {
    // Half of the objects have the smallest size, the others a hundred different ones.
    let truth = Truth {
        objects: 2_000,
        ops: 2_000,
        exponent: 0.5,
        size: |random| match random.below(2) {
            0 => 4_096,
            _ => 5_000 + random.below(1_000_000),
        },
        gap_ns: |_| 1_000_000,
    };
    let fitted = Fitted::of(&drawn(&truth), SEED).unwrap();
    assert_eq!(fitted.sizes.law, "a histogram");
    assert!(fitted.sizes.distance <= 0.02, "{:?}", fitted.sizes);
    let SetSpec::Objects(set) = fitted.file.sets.iter().next().unwrap().1 else { panic!() };
    let Some(SizeSpec::Drawn(SizeLaw::Histogram(bars))) = &set.size else { panic!("{set:?}") };
    let bars: Vec<(u64, u64)> = bars.0.iter().map(|bar| (bar.value.0, bar.weight)).collect();
    assert_eq!((bars[0], bars[1].0), ((4_095, 0), 4_096));
    fitted.file.judge().unwrap();
}

#[test]
fn a_mix_removes_no_more_than_it_puts_and_says_what_it_leaves_out() {
    let mut builder = TraceBuilder::default();
    for number in 0..60u32 {
        let (kind, object) = match number % 3 {
            0 => (OpKind::Delete, number),
            1 => (OpKind::Put, number),
            _ => (OpKind::Delete, number),
        };
        let name = object.to_le_bytes();
        let at_ns = Some(u64::from(number) * 1_000);
        let (bytes, object_bytes, range) = (Some(10), None, None);
        builder.add(&Seen { at_ns, kind, name: &name, bytes, object_bytes, range }).unwrap();
    }
    let fitted = Fitted::of(&builder.finish(TraceOptions::default()).unwrap(), SEED).unwrap();
    assert_eq!((fitted.mix.deletes, fitted.mix.new_puts, fitted.popularity), (40, 20, None));
    assert!(fitted.notes[0].starts_with("20 of 40 removals are left out"), "{:?}", fitted.notes);
    fitted.file.judge().unwrap_or_else(|refused| panic!("{refused}\n{}", fitted.file.to_yaml()));
}

#[test]
fn what_tells_too_little_or_is_about_files_is_refused() {
    let of = |kind, count: u32| {
        let mut builder = TraceBuilder::default();
        for number in 0..count {
            let (bytes, range) = (Some(10), Some((u64::from(number) * 512, 512)));
            let at_ns = Some(u64::from(number));
            let seen = Seen { at_ns, kind, name: b"a", bytes, object_bytes: None, range };
            builder.add(&seen).unwrap();
        }
        Fitted::of(&builder.finish(TraceOptions::default()).unwrap(), 1).map(drop)
    };
    assert_eq!(of(OpKind::Read, 100).unwrap_err(), FitError::OnFiles);
    assert_eq!(of(OpKind::Put, 5).unwrap_err(), FitError::TooFew(5));
    assert_eq!(of(OpKind::Put, 100), Ok(()));
}
