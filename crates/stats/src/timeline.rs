//! What happened in each interval of a run, per series: counts, shares and histograms that merge
//! exactly.

mod cells;

use self::cells::Cells;
use crate::CompactHistogram;
use crate::histogram::OpenHistogram;
use crate::share::share_by_time;

/// How many outcomes a cell tells apart; outcome 0 is success.
pub const OUTCOMES_MAX: usize = 16;

/// How many intervals share one pair of histograms. A histogram takes kilobytes where a cell takes
/// bytes, and a run of hours must not fill the memory.
pub const INTERVALS_PER_STRETCH: usize = 60;

/// Objects are shared between intervals in millionths.
const MICRO: u64 = 1_000_000;

/// One finished operation, as a series counts it. All times are nanoseconds on one clock.
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

/// One interval of one series.
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

/// One series to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesView<'a> {
    cells: &'a Cells,
    times: &'a [Times],
}

impl<'a> SeriesView<'a> {
    /// Returns the intervals from the origin on.
    pub fn cells(self) -> impl Iterator<Item = Cell> + 'a {
        self.cells.iter()
    }

    /// Returns the stretches from the origin on.
    pub fn times(self) -> &'a [Times] {
        self.times
    }
}

impl Cell {
    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.ended.iter_mut().zip(&other.ended) {
            *mine += theirs;
        }
        self.bytes += other.bytes;
        self.objects_micro += other.objects_micro;
    }

    /// Returns which outcomes there were.
    fn outcomes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..OUTCOMES_MAX).filter(|outcome| self.ended[*outcome] > 0)
    }
}

impl Times {
    fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.ttfb.merge(&other.ttfb);
    }
}

/// The times of the stretch in which operations end at present.
#[derive(Clone, Debug, Default)]
struct Open {
    stretch: usize,
    latency: OpenHistogram,
    ttfb: OpenHistogram,
}

impl Open {
    fn times(&self) -> Times {
        Times { latency: self.latency.compact(), ttfb: self.ttfb.compact() }
    }
}

/// One series.
#[derive(Clone, Debug, Default)]
struct Series {
    cells: Cells,
    times: Vec<Times>,
    open: Option<Box<Open>>,
}

impl Series {
    fn stretch(&mut self, index: usize) -> &mut Times {
        if self.times.len() <= index {
            self.times.resize_with(index + 1, Times::default);
        }
        &mut self.times[index]
    }

    /// Puts the open histograms at rest and returns them empty.
    fn rest(&mut self) -> Option<Box<Open>> {
        let mut open = self.open.take()?;
        self.stretch(open.stretch).merge(&open.times());
        open.latency.clear();
        open.ttfb.clear();
        Some(open)
    }

    /// Returns the open histograms of `stretch`, which have room.
    #[inline]
    fn open(&mut self, stretch: usize) -> &mut Open {
        let goes_on = |open: &Open| open.stretch == stretch && !open.latency.is_full();
        if !self.open.as_deref().is_some_and(goes_on) {
            let mut open = self.rest().unwrap_or_default();
            open.stretch = stretch;
            self.open = Some(open);
        }
        self.open.as_mut().expect("it was opened")
    }

    /// Counts an operation that ended in `interval`.
    #[inline]
    fn record(&mut self, sample: &Sample, start_ns: u64, end_ns: u64, interval: Interval) {
        let outcome = usize::from(sample.outcome).min(OUTCOMES_MAX - 1);
        let is_ok = outcome == 0;
        let lies_within = is_ok && start_ns >= interval.begins_ns;
        self.cells.change(interval.index, |cell| {
            cell.ended[outcome] += 1;
            if lies_within {
                cell.bytes += sample.bytes;
                cell.objects_micro += sample.objects * MICRO;
            }
        });
        if !is_ok {
            return;
        }
        if !lies_within {
            self.share(sample, start_ns, end_ns, interval.ns);
        }
        let open = self.open(interval.index / INTERVALS_PER_STRETCH);
        open.latency.record(sample.latency_ns);
        if let Some(ttfb_ns) = sample.ttfb_ns {
            open.ttfb.record(ttfb_ns);
        }
    }

    /// Gives every interval that the operation touched its share of bytes and objects.
    fn share(&mut self, sample: &Sample, start_ns: u64, end_ns: u64, interval_ns: u64) {
        let wholes = [sample.bytes, sample.objects * MICRO];
        share_by_time(start_ns, end_ns, interval_ns, wholes, |index, [bytes, objects_micro]| {
            self.cells.change(index, |cell| {
                cell.bytes += bytes;
                cell.objects_micro += objects_micro;
            });
        });
    }

    /// Adds all of `other`.
    fn merge(&mut self, other: &Self) {
        self.cells.merge(&other.cells);
        for (index, times) in other.times.iter().enumerate() {
            self.stretch(index).merge(times);
        }
        if let Some(open) = &other.open {
            self.stretch(open.stretch).merge(&open.times());
        }
    }
}

/// An interval, by times since the origin.
#[derive(Clone, Copy, Debug)]
struct Interval {
    index: usize,
    begins_ns: u64,
    ns: u64,
}

/// Lanes of intervals, keyed by `K`; interval 0 begins at the origin.
#[derive(Clone, Debug)]
pub struct Timeline<K> {
    origin_ns: u64,
    /// The interval in which the last operation ended: the next one mostly ends there, too.
    interval: Interval,
    /// In the order of their keys.
    series: Vec<(K, Series)>,
    /// Where the series lies that the last operation was of.
    last: usize,
}

impl<K: Ord + Copy> Timeline<K> {
    /// Returns an empty time line.
    pub fn new(origin_ns: u64, interval_ns: u64) -> Self {
        assert!(interval_ns > 0);
        let interval = Interval { index: 0, begins_ns: 0, ns: interval_ns };
        Self { origin_ns, interval, series: Vec::new(), last: 0 }
    }

    /// Counts one finished operation. What happened before the origin counts as at the origin.
    #[inline]
    pub fn record(&mut self, key: K, sample: &Sample) {
        let start_ns = sample.start_ns.saturating_sub(self.origin_ns);
        let end_ns = sample.end_ns.saturating_sub(self.origin_ns).max(start_ns);
        let Interval { begins_ns, ns, .. } = self.interval;
        // Before it the difference wraps around and is large, too.
        if end_ns.wrapping_sub(begins_ns) >= ns {
            let index = end_ns / ns;
            self.interval = Interval { index: index as usize, begins_ns: index * ns, ns };
        }
        let interval = self.interval;
        self.series_of(key).record(sample, start_ns, end_ns, interval);
    }

    /// Returns the series of that key, which is made if there is none.
    #[inline]
    fn series_of(&mut self, key: K) -> &mut Series {
        if self.series.get(self.last).is_none_or(|(of, _)| *of != key) {
            self.last = self.place_of(key);
        }
        &mut self.series[self.last].1
    }

    #[cold]
    fn place_of(&mut self, key: K) -> usize {
        self.series.binary_search_by_key(&key, |(key, _)| *key).unwrap_or_else(|place| {
            self.series.insert(place, (key, Series::default()));
            place
        })
    }

    /// Adds all of `other`, which must have the same origin and interval.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.origin_ns, other.origin_ns);
        assert_eq!(self.interval.ns, other.interval.ns);
        for (key, theirs) in &other.series {
            self.series_of(*key).merge(theirs);
        }
    }

    /// Puts a cell as it was stored; it is added to what is there.
    pub fn insert_cell(&mut self, key: K, interval: usize, cell: &Cell) {
        self.series_of(key).cells.change(interval, |mine| mine.merge(cell));
    }

    /// Puts the times of a stretch as they were stored; they are added to what is there.
    pub fn insert_times(&mut self, key: K, stretch: usize, times: &Times) {
        self.series_of(key).stretch(stretch).merge(times);
    }

    /// Puts every histogram at rest, so that [`Self::series`] shows all.
    pub fn close(&mut self) {
        // They are given back, too: a stage that is over needs them no more.
        self.series.iter_mut().for_each(|(_, series)| drop(series.rest()));
    }

    /// Returns the series in key order.
    pub fn series(&self) -> impl Iterator<Item = (K, SeriesView<'_>)> {
        self.series.iter().map(|(key, series)| {
            assert!(series.open.is_none(), "close() comes before series()");
            (*key, SeriesView { cells: &series.cells, times: &series.times })
        })
    }

    /// Returns where interval 0 begins.
    pub fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Returns how long an interval is.
    pub fn interval_ns(&self) -> u64 {
        self.interval.ns
    }
}

#[cfg(test)]
impl<K> Timeline<K> {
    /// Returns how many bytes the cells hold, and how many are held in all but the open
    /// histograms.
    fn held_bytes(&self) -> (usize, usize) {
        let cells = self.series.iter().map(|(_, series)| series.cells.held_bytes()).sum();
        let times = self.series.iter().map(|(_, series)| {
            let bins = series.times.iter().flat_map(|times| [&times.latency, &times.ttfb]);
            let bins: usize = bins.map(CompactHistogram::held_bytes).sum();
            series.times.capacity() * size_of::<Times>() + bins
        });
        (cells, cells + times.sum::<usize>())
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
