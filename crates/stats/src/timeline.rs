//! What happened in each interval of a run, per lane: counts, shares and histograms that merge
//! exactly.

use std::collections::BTreeMap;

use crate::share::share_by_time;
use crate::{CompactHistogram, Histogram};

/// How many outcomes a cell tells apart; outcome 0 is success.
pub const OUTCOMES_MAX: usize = 16;

/// How many intervals share one pair of histograms. A histogram takes kilobytes where a cell takes
/// bytes, and a run of hours must not fill the memory.
pub const INTERVALS_PER_STRETCH: usize = 60;

/// Objects are shared between intervals in millionths.
const MICRO: u64 = 1_000_000;

/// One finished operation, as a lane counts it. All times are nanoseconds on one clock.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When it was issued.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Its latency.
    pub latency_ns: u64,
    /// Its time to first byte, where there was one.
    pub ttfb_ns: Option<u64>,
    /// Bytes it moved.
    pub bytes: u64,
    /// Objects it handled.
    pub objects: u64,
    /// How it ended; 0 is success.
    pub outcome: u8,
}

/// One interval of one lane.
///
/// Bytes and objects are those of successes, each interval getting its share by time; the parts of
/// one operation add up to the whole. Everything else counts in the interval in which the operation
/// ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Operations ended here, by outcome; index 0 counts the successes.
    pub ended: [u64; OUTCOMES_MAX],
    /// Bytes moved here.
    pub bytes: u64,
    /// Objects handled here, in millionths.
    pub objects_micro: u64,
}

/// The times of the successes that ended in a stretch of [`INTERVALS_PER_STRETCH`] intervals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Latency.
    pub latency: CompactHistogram,
    /// Time to first byte, where there was one.
    pub ttfb: CompactHistogram,
}

/// One lane to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneView<'a> {
    /// The intervals from the origin on.
    pub cells: &'a [Cell],
    /// The stretches from the origin on.
    pub times: &'a [Times],
}

impl Cell {
    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.ended.iter_mut().zip(&other.ended) {
            *mine += theirs;
        }
        self.bytes += other.bytes;
        self.objects_micro += other.objects_micro;
    }
}

impl Times {
    fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.ttfb.merge(&other.ttfb);
    }
}

/// One lane; the stretch in which operations end at present keeps dense histograms.
#[derive(Clone, Debug, Default)]
struct Lane {
    cells: Vec<Cell>,
    times: Vec<Times>,
    open: usize,
    open_latency: Histogram,
    open_ttfb: Histogram,
}

impl Lane {
    fn cell(&mut self, index: usize) -> &mut Cell {
        if self.cells.len() <= index {
            self.cells.resize_with(index + 1, Cell::default);
        }
        &mut self.cells[index]
    }

    fn stretch(&mut self, index: usize) -> &mut Times {
        if self.times.len() <= index {
            self.times.resize_with(index + 1, Times::default);
        }
        &mut self.times[index]
    }

    /// Puts the dense histograms at rest.
    fn close(&mut self) {
        if self.open_latency.is_empty() {
            return;
        }
        let (latency, ttfb) = (self.open_latency.compact(), self.open_ttfb.compact());
        let open = self.open;
        self.stretch(open).merge(&Times { latency, ttfb });
        self.open_latency.clear();
        self.open_ttfb.clear();
    }

    fn record(&mut self, sample: &Sample, start_ns: u64, end_ns: u64, interval_ns: u64) {
        let index = (end_ns / interval_ns) as usize;
        let outcome = usize::from(sample.outcome).min(OUTCOMES_MAX - 1);
        self.cell(index).ended[outcome] += 1;
        if outcome != 0 {
            return;
        }
        self.share(sample, start_ns, end_ns, interval_ns);
        let stretch = index / INTERVALS_PER_STRETCH;
        if stretch != self.open {
            self.close();
            self.open = stretch;
        }
        self.open_latency.record(sample.latency_ns);
        if let Some(ttfb_ns) = sample.ttfb_ns {
            self.open_ttfb.record(ttfb_ns);
        }
    }

    /// Gives every interval that the operation touched its share of bytes and objects.
    fn share(&mut self, sample: &Sample, start_ns: u64, end_ns: u64, interval_ns: u64) {
        let wholes = [sample.bytes, sample.objects * MICRO];
        share_by_time(start_ns, end_ns, interval_ns, wholes, |index, [bytes, objects_micro]| {
            let cell = self.cell(index);
            cell.bytes += bytes;
            cell.objects_micro += objects_micro;
        });
    }
}

/// Lanes of intervals, keyed by `K`; interval 0 begins at the origin.
#[derive(Clone, Debug)]
pub struct Timeline<K> {
    origin_ns: u64,
    interval_ns: u64,
    lanes: BTreeMap<K, Lane>,
}

impl<K: Ord + Copy> Timeline<K> {
    /// Returns an empty time line.
    pub fn new(origin_ns: u64, interval_ns: u64) -> Self {
        assert!(interval_ns > 0);
        Self { origin_ns, interval_ns, lanes: BTreeMap::new() }
    }

    /// Counts one finished operation. What happened before the origin counts as at the origin.
    pub fn record(&mut self, key: K, sample: &Sample) {
        let start_ns = sample.start_ns.saturating_sub(self.origin_ns);
        let end_ns = sample.end_ns.saturating_sub(self.origin_ns).max(start_ns);
        let lane = self.lanes.entry(key).or_default();
        lane.record(sample, start_ns, end_ns, self.interval_ns);
    }

    /// Adds all of `other`, which must have the same origin and interval.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.origin_ns, other.origin_ns);
        assert_eq!(self.interval_ns, other.interval_ns);
        for (key, theirs) in &other.lanes {
            let mut theirs = theirs.clone();
            theirs.close();
            let mine = self.lanes.entry(*key).or_default();
            for (index, cell) in theirs.cells.iter().enumerate() {
                mine.cell(index).merge(cell);
            }
            for (index, times) in theirs.times.iter().enumerate() {
                mine.stretch(index).merge(times);
            }
        }
    }

    /// Puts a cell as it was stored; it is added to what is there.
    pub fn insert_cell(&mut self, key: K, interval: usize, cell: &Cell) {
        self.lanes.entry(key).or_default().cell(interval).merge(cell);
    }

    /// Puts the times of a stretch as they were stored; they are added to what is there.
    pub fn insert_times(&mut self, key: K, stretch: usize, times: &Times) {
        self.lanes.entry(key).or_default().stretch(stretch).merge(times);
    }

    /// Puts every histogram at rest, so that [`Self::lanes`] shows all.
    pub fn close(&mut self) {
        self.lanes.values_mut().for_each(Lane::close);
    }

    /// Returns the lanes in key order.
    pub fn lanes(&self) -> impl Iterator<Item = (K, LaneView<'_>)> {
        self.lanes.iter().map(|(key, lane)| {
            assert!(lane.open_latency.is_empty(), "close() comes before lanes()");
            (*key, LaneView { cells: &lane.cells, times: &lane.times })
        })
    }

    /// Returns where interval 0 begins.
    pub fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Returns how long an interval is.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    fn lane(timeline: &mut Timeline<u8>) -> (Vec<Cell>, Vec<Times>) {
        timeline.close();
        let (_, lane) = timeline.lanes().next().expect("something was recorded");
        (lane.cells.to_vec(), lane.times.to_vec())
    }

    #[test]
    fn an_operation_across_a_border_gives_each_side_its_share() {
        let mut timeline = Timeline::new(10 * SECOND, SECOND);
        // From 0.5 s to 2.0 s: a third before the first border, the rest after it, nothing in the
        // third interval.
        timeline.record(0, &sample(10 * SECOND + SECOND / 2, 12 * SECOND, 300, 0));
        let (cells, times) = lane(&mut timeline);
        let bytes: Vec<u64> = cells.iter().map(|cell| cell.bytes).collect();
        assert_eq!(bytes, [100, 200, 0]);
        let objects: Vec<u64> = cells.iter().map(|cell| cell.objects_micro).collect();
        assert_eq!(objects, [333_333, 666_667, 0]);
        assert_eq!(cells[2].ended[0], 1);
        assert_eq!(times[0].latency.count(), 1);
    }

    #[test]
    fn a_failed_operation_is_counted_and_nothing_else() {
        let mut timeline = Timeline::new(0, SECOND);
        timeline.record(0, &sample(0, SECOND / 2, 300, 5));
        let (cells, times) = lane(&mut timeline);
        assert_eq!((cells[0].ended[5], cells[0].ended[0]), (1, 0));
        assert_eq!((cells[0].bytes, cells[0].objects_micro), (0, 0));
        assert_eq!(times, []);
    }

    #[test]
    fn times_are_kept_for_sixty_intervals_at_a_time() {
        let mut timeline = Timeline::new(0, SECOND);
        for second in [0, 59, 60, 125, 59] {
            timeline.record(0, &sample(second * SECOND, second * SECOND + 5, 1, 0));
        }
        let (cells, times) = lane(&mut timeline);
        let counts: Vec<u64> = times.iter().map(|times| times.latency.count()).collect();
        assert_eq!((cells.len(), counts), (126, vec![3, 1, 1]));
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
            for (index, &(start, took, bytes, outcome, lane)) in ops.iter().enumerate() {
                let sample = sample(start, start + took, bytes, outcome);
                whole.record(lane, &sample);
                parts[index % shards].record(lane, &sample);
            }
            let mut merged = Timeline::new(0, SECOND);
            parts.iter().rev().for_each(|part| merged.merge(part));
            whole.close();
            merged.close();
            prop_assert!(whole.lanes().eq(merged.lanes()));
            let cells = whole.lanes().flat_map(|(_, lane)| lane.cells);
            let bytes: u64 = cells.map(|cell| cell.bytes).sum();
            let expected: u64 = ops.iter().filter(|op| op.3 == 0).map(|op| op.2).sum();
            prop_assert_eq!(bytes, expected);
        }
    }
}
