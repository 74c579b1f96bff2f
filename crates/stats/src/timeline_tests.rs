//! The time line against what it stands for.

use proptest::prelude::*;

use super::*;
use crate::Histogram;

const SECOND: u64 = 1_000_000_000;

fn sample(start_ns: u64, end_ns: u64, bytes: u64, outcome: u8) -> Sample {
    let latency_ns = end_ns - start_ns;
    Sample {
        start_ns,
        end_ns,
        latency_ns,
        ttfb_ns: Some(latency_ns / 2),
        bytes,
        objects: 1,
        outcome,
    }
}

type Shown = (Vec<(usize, Cell)>, Vec<(usize, Times)>);

fn shown(series: SeriesView<'_>) -> Shown {
    (series.cells().collect(), series.times().map(|(at, times)| (at, times.clone())).collect())
}

fn series(timeline: &mut Timeline<u8>) -> Shown {
    timeline.close();
    let (_, each) = timeline.series().next().expect("something was recorded");
    shown(each)
}

#[test]
fn an_operation_across_a_border_gives_each_side_its_share() {
    let mut timeline = Timeline::new(10 * SECOND, SECOND);
    // From 0.5 s to 2.0 s: a third before the first border, the rest after it, nothing in the
    // third interval.
    timeline.record(0, &sample(10 * SECOND + SECOND / 2, 12 * SECOND, 300, 0));
    let (cells, times) = series(&mut timeline);
    let cells: Vec<_> = cells
        .iter()
        .map(|(at, cell)| (*at, cell.bytes, cell.objects_micro, cell.ended[0]))
        .collect();
    assert_eq!(cells, [(0, 100, 333_333, 0), (1, 200, 666_667, 0), (2, 0, 0, 1)]);
    assert_eq!((times[0].0, times[0].1.latency.count()), (0, 1));
}

#[test]
fn a_failed_operation_is_counted_and_nothing_else() {
    let mut timeline = Timeline::new(0, SECOND);
    timeline.record(0, &sample(0, SECOND / 2, 300, 5));
    let (cells, times) = series(&mut timeline);
    let mut expected = Cell::default();
    expected.ended[5] = 1;
    assert_eq!(cells, [(0, expected)]);
    assert_eq!(times, []);
}

#[test]
fn times_are_kept_for_sixty_intervals_at_a_time() {
    let mut timeline = Timeline::new(0, SECOND);
    for second in [0, 59, 60, 125, 59] {
        timeline.record(0, &sample(second * SECOND, second * SECOND + 5, 1, 0));
    }
    let (cells, times) = series(&mut timeline);
    let counts: Vec<_> = times.iter().map(|(at, times)| (*at, times.latency.count())).collect();
    assert_eq!(counts, [(0, 3), (1, 1), (2, 1)]);
    let ended: Vec<_> = cells.iter().map(|(at, cell)| (*at, cell.ended[0])).collect();
    assert_eq!(ended, [(0, 1), (59, 2), (60, 1), (125, 1)]);
}

/// A time line as it would be without thrift: every interval a cell, every stretch its values.
#[derive(Default)]
struct Naive {
    cells: Vec<Cell>,
    times: Vec<(Histogram, Histogram)>,
}

impl Naive {
    fn cell(&mut self, index: usize) -> &mut Cell {
        self.cells.resize(self.cells.len().max(index + 1), Cell::default());
        &mut self.cells[index]
    }

    fn record(&mut self, sample: &Sample) {
        let index = (sample.end_ns / SECOND) as usize;
        self.cell(index).ended[usize::from(sample.outcome)] += 1;
        if sample.outcome != 0 {
            return;
        }
        let wholes = [sample.bytes, sample.objects * MICRO];
        share_by_time(sample.start_ns, sample.end_ns, SECOND, wholes, |index, [bytes, objects]| {
            self.cell(index).bytes += bytes;
            self.cell(index).objects_micro += objects;
        });
        let stretch = index / INTERVALS_PER_STRETCH;
        self.times.resize(self.times.len().max(stretch + 1), Default::default());
        self.times[stretch].0.record(sample.latency_ns);
        self.times[stretch].1.record(sample.ttfb_ns.unwrap());
    }

    fn series(&self) -> Shown {
        let times = |(latency, ttfb): &(Histogram, Histogram)| Times {
            latency: latency.compact(),
            ttfb: ttfb.compact(),
        };
        let cells = self.cells.iter().copied().enumerate();
        let times = self.times.iter().map(times).enumerate();
        (
            cells.filter(|(_, cell)| *cell != Cell::default()).collect(),
            times.filter(|(_, times)| *times != Times::default()).collect(),
        )
    }
}

/// Records `per_second` operations of each of four series in each of so many seconds.
fn busy(seconds: u64, per_second: u64, mut begins: impl FnMut(&mut Timeline<u8>)) -> Timeline<u8> {
    let mut timeline = Timeline::new(0, SECOND);
    let mut state = 1u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    for op in 0..seconds * per_second {
        for each in 0..4 {
            // From 1 to 5 ms, a few of them much longer; sizes differ; some fail.
            let tail = if random() % 100 == 0 { random() % 300_000_000 } else { 0 };
            let took = 1_000_000 + random() % 2_000_000 + random() % 2_000_000 + tail;
            let start = op * SECOND / per_second + random() % SECOND;
            let outcome = if random() % 1_000 == 0 { 5 } else { 0 };
            let sample = sample(start, start + took, random() % (1 << 20), outcome);
            timeline.record_and(each, &sample, &mut begins);
        }
    }
    timeline
}

#[test]
fn a_time_line_whose_past_is_taken_holds_the_same_after_two_hours_as_after_ten_minutes() {
    let held = |seconds: u64| {
        let mut most = 0;
        busy(seconds, 20, |timeline| {
            timeline.split_before(timeline.over_before());
            most = most.max(timeline.held_bytes().1);
        });
        most
    };
    // Two minutes of cells as they are, which grow by doubling, and of histograms as bits.
    let bound = 4 * (2 * 2 * INTERVALS_PER_STRETCH * size_of::<Cell>() + (8 << 10));
    let (short, long) = (held(600), held(7_200));
    assert!(short < bound && long < bound, "{short} and {long} of {bound}");
}

#[test]
fn ten_hours_of_four_series_take_less_than_five_mebibytes() {
    let mut hour = busy(3_600, 20, |_| ());
    hour.close();
    let (cells, whole) = hour.held_bytes();
    // With a cell of 144 bytes for each second these would be 2 MiB.
    assert!(cells < 4 * (3_600 * 8 + 120 * 200), "{cells}");
    assert!(whole < 512 << 10, "{whole}");
    // Ten times as long is ten times that and no more: what is kept open does not grow.
    let mut hours = busy(36_000, 20, |_| ());
    hours.close();
    let (cells, whole) = hours.held_bytes();
    assert!(cells < 4 * (36_000 * 8 + 120 * 200), "{cells}");
    assert!(whole < 5 << 20, "{whole}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shards_merged_in_any_order_are_the_whole(
        ops in prop::collection::vec(
            (0u64..5 * SECOND, 0u64..3 * SECOND, 0u64..1_000_000, 0u8..3, 0u8..2), 0..40),
        shards in 1usize..6,
    ) {
        let mut whole = Timeline::new(0, SECOND);
        let mut parts = vec![Timeline::new(0, SECOND); shards];
        for (index, &(start, took, bytes, outcome, each)) in ops.iter().enumerate() {
            let sample = sample(start, start + took, bytes, outcome);
            whole.record(each, &sample);
            parts[index % shards].record(each, &sample);
        }
        let mut merged = Timeline::new(0, SECOND);
        parts.iter().rev().for_each(|part| merged.merge(part));
        whole.close();
        merged.close();
        prop_assert!(whole.series().eq(merged.series()));
        let cells = whole.series().flat_map(|(_, each)| each.cells());
        let bytes: u64 = cells.map(|(_, cell)| cell.bytes).sum();
        let expected: u64 = ops.iter().filter(|op| op.3 == 0).map(|op| op.2).sum();
        prop_assert_eq!(bytes, expected);
    }

    #[test]
    fn it_is_that_of_the_naive_layout_whatever_the_order(
        ops in prop::collection::vec(
            (0u64..500 * SECOND, 0u64..400 * SECOND, any::<u32>(), 0u8..3, 0u8..2), 0..60),
        sorted in any::<bool>(),
        later in 0u64..3,
    ) {
        let mut ops = ops;
        if sorted {
            ops.sort_by_key(|(start, took, ..)| start + took);
        }
        let mut naive = [Naive::default(), Naive::default()];
        let mut timeline = Timeline::new(0, SECOND);
        for &(start, took, bytes, outcome, each) in &ops {
            let start = start + later * 1_000 * SECOND;
            let sample = sample(start, start + took, bytes.into(), outcome);
            naive[usize::from(each)].record(&sample);
            timeline.record(each, &sample);
        }
        timeline.close();
        let got: Vec<_> = timeline.series().map(|(_, each)| shown(each)).collect();
        let expected: Vec<_> =
            naive.iter().filter(|each| !each.cells.is_empty()).map(Naive::series).collect();
        prop_assert_eq!(got, expected);
        // As a summary is read: cell by cell, then stretch by stretch.
        let mut read = Timeline::new(0, SECOND);
        for (key, each) in timeline.series() {
            each.cells().for_each(|(at, cell)| read.insert_cell(key, at, &cell));
            each.times().for_each(|(at, times)| read.insert_times(key, at, times));
        }
        read.close();
        prop_assert!(read.series().eq(timeline.series()));
    }

    #[test]
    fn what_is_taken_out_and_what_is_left_are_the_whole(
        ops in prop::collection::vec(
            (0u64..500 * SECOND, 0u64..400 * SECOND, any::<u32>(), 0u8..3, 0u8..2), 0..60),
        sorted in any::<bool>(),
        // How many stretches stay: also the one that goes on may be taken out, or all.
        stay in prop::option::of(0usize..4),
    ) {
        let mut ops = ops;
        if sorted {
            ops.sort_by_key(|(start, took, ..)| start + took);
        }
        let (mut whole, mut timeline) = (Timeline::new(0, SECOND), Timeline::new(0, SECOND));
        let (mut taken, mut totals) = (Timeline::new(0, SECOND), Totals::default());
        for &(start, took, bytes, outcome, each) in &ops {
            let sample = sample(start, start + took, bytes.into(), outcome);
            whole.record(each, &sample);
            let mut parts = Vec::new();
            let before = timeline.stretch();
            timeline.record_and(each, &sample, |timeline| {
                assert_ne!(timeline.stretch(), before);
                let Some(stay) = stay else {
                    parts.push((usize::MAX, timeline.take()));
                    assert_eq!(timeline.series().count(), 0);
                    return;
                };
                let cut = (timeline.stretch() + 1).saturating_sub(stay);
                parts.extend(timeline.split_before(cut).map(|part| (cut, part)));
                // Nothing is left of it.
                assert!(timeline.split_before(cut).is_none());
            });
            for (cut, part) in parts {
                for (key, series) in part.series() {
                    for (at, stretch) in series.stretches() {
                        prop_assert!(at < cut);
                        let mut bytes = Vec::new();
                        let cells = stretch.write(&mut bytes);
                        let (cells, times) = bytes.split_at(cells);
                        let read = Stretch::read(cells, times);
                        prop_assert_eq!(read.as_ref(), Some(stretch));
                        let only_cells = Stretch::read(cells, &[]).unwrap();
                        prop_assert!(only_cells.cells(at).eq(stretch.cells(at)));
                        prop_assert!(times.is_empty() || Stretch::read(&[], &times[1..]).is_none());
                        prop_assert!(series.times().all(|(_, times)| !times.is_empty()), "{}", key);
                    }
                }
                totals.add(&part);
                taken.merge(&part);
            }
        }
        timeline.close();
        totals.add(&timeline);
        taken.merge(&timeline);
        whole.close();
        taken.close();
        prop_assert!(taken.series().eq(whole.series()));
        prop_assert_eq!(totals, whole.totals());
    }
}

#[test]
fn an_idle_series_keeps_nothing_of_the_past() {
    let mut timeline = Timeline::new(0, SECOND);
    timeline.record(0, &sample(0, 5, 1, 0));
    timeline.record(1, &sample(600 * SECOND, 600 * SECOND + 5, 1, 0));
    // The other series goes on, this one has not.
    let past = timeline.split_before(9).unwrap();
    assert_eq!(past.series().map(|(key, _)| key).collect::<Vec<_>>(), [0]);
    timeline.record(0, &sample(601 * SECOND, 601 * SECOND + 5, 1, 0));
    timeline.close();
    let (_, idle) = timeline.series().next().unwrap();
    assert_eq!(idle.cells().map(|(at, _)| at).collect::<Vec<_>>(), [601]);
    assert_eq!(
        idle.times().map(|(at, times)| (at, times.latency.count())).collect::<Vec<_>>(),
        [(10, 1)]
    );
}

#[test]
fn cells_of_the_end_of_time_do_not_have_those_before_them_made() {
    let mut timeline = Timeline::new(0, SECOND);
    let end = SECOND << 30;
    timeline.record(0, &sample(7 * SECOND, 7 * SECOND + 5, 1, 0));
    timeline.record(0, &sample(end, end + 5, 2, 0));
    timeline.close();
    assert!(timeline.held_bytes().1 < 4 << 10, "{:?}", timeline.held_bytes());
    let mut other = Timeline::new(0, SECOND);
    other.record(0, &sample(7 * SECOND, 7 * SECOND + 5, 3, 0));
    timeline.merge(&other);
    timeline.close();
    let (_, each) = timeline.series().next().unwrap();
    let bytes: Vec<_> = each.cells().map(|(at, cell)| (at, cell.bytes)).collect();
    assert_eq!(bytes, [(7, 4), (1 << 30, 2)]);
}
