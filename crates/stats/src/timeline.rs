//! What happened in each interval of a run, per series: counts, shares and histograms that merge
//! exactly.

mod cells;

use std::collections::BTreeMap;

use self::cells::PackedCells;
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

/// [`INTERVALS_PER_STRETCH`] intervals of one series, at rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    cells: PackedCells,
    times: Times,
}

/// One series to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesView<'a>(&'a BTreeMap<usize, Stretch>);

impl<'a> SeriesView<'a> {
    /// Returns the stretches in which something happened, with their numbers, in order.
    pub fn stretches(self) -> impl Iterator<Item = (usize, &'a Stretch)> {
        self.0.iter().map(|(index, stretch)| (*index, stretch))
    }

    /// Returns the intervals in which something happened, with their numbers, in order.
    pub fn cells(self) -> impl Iterator<Item = (usize, Cell)> + 'a {
        self.stretches().flat_map(|(index, stretch)| stretch.cells(index))
    }

    /// Returns the times of the stretches in which an operation succeeded, with their numbers, in
    /// order.
    pub fn times(self) -> impl Iterator<Item = (usize, &'a Times)> {
        let times = self.stretches().map(|(index, stretch)| (index, &stretch.times));
        times.filter(|(_, times)| !times.is_empty())
    }
}

impl Cell {
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
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
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.ttfb.merge(&other.ttfb);
    }

    /// Tells whether no operation succeeded.
    pub fn is_empty(&self) -> bool {
        self.latency.count() == 0 && self.ttfb.count() == 0
    }
}

impl Stretch {
    /// Returns the cells in which something happened, of the stretch of that number, with theirs.
    pub fn cells(&self, index: usize) -> impl Iterator<Item = (usize, Cell)> + use<> {
        let nothing = Cell::default();
        let cells = if self.cells.is_empty() { Vec::new() } else { self.cells.unpack() };
        let cells = (index * INTERVALS_PER_STRETCH..).zip(cells);
        cells.filter(move |(_, cell)| *cell != nothing)
    }

    /// Returns the times of its successes.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.cells.merge(&other.cells);
        self.times.merge(&other.times);
    }

    /// Writes its cells, then its times, behind what is there, and returns how many bytes the cells
    /// take.
    pub fn write(&self, to: &mut Vec<u8>) -> usize {
        let cells = self.cells.bytes();
        to.extend_from_slice(cells);
        if !self.times.is_empty() {
            self.times.latency.write(to);
            self.times.ttfb.write(to);
        }
        cells.len()
    }

    /// Returns the stretch whose cells and times were written like this; either may be left out.
    /// `None` where that cannot be.
    pub fn read(cells: &[u8], mut times: &[u8]) -> Option<Self> {
        let cells = PackedCells::from_bytes(cells);
        if times.is_empty() {
            return Some(Self { cells, times: Times::default() });
        }
        let latency = CompactHistogram::read(&mut times)?;
        let ttfb = CompactHistogram::read(&mut times)?;
        times.is_empty().then_some(Self { cells, times: Times { latency, ttfb } })
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

/// How many stretches have their cells open at once. An operation mostly ends in the last of them,
/// and one that crossed its border began in the one before.
const STRETCHES_OPEN: usize = 2;

/// One series.
#[derive(Clone, Debug, Default)]
struct Series {
    /// What is at rest: all before the open cells, and the times of these.
    rest: BTreeMap<usize, Stretch>,
    /// The interval of the first open cell, with which a stretch begins.
    first: usize,
    cells: Vec<Cell>,
    open: Option<Box<Open>>,
}

impl Series {
    /// Changes the cell of an interval.
    #[inline]
    fn change(&mut self, interval: usize, change: impl FnOnce(&mut Cell)) {
        let open = interval.checked_sub(self.first);
        match open.and_then(|index| self.cells.get_mut(index)) {
            Some(cell) => change(cell),
            None => self.change_elsewhere(interval, change),
        }
    }

    #[cold]
    fn change_elsewhere(&mut self, interval: usize, change: impl FnOnce(&mut Cell)) {
        let stretch = interval / INTERVALS_PER_STRETCH;
        if interval < self.first {
            let cells = &mut self.rest.entry(stretch).or_default().cells;
            cells.change(interval % INTERVALS_PER_STRETCH, change);
            return;
        }
        if stretch >= self.first / INTERVALS_PER_STRETCH + STRETCHES_OPEN {
            self.pack_until(stretch + 1 - STRETCHES_OPEN);
        }
        let index = interval - self.first;
        if self.cells.len() <= index {
            // Bound: `STRETCHES_OPEN` stretches, as others are packed above.
            self.cells.resize_with(index + 1, Cell::default);
        }
        change(&mut self.cells[index]);
    }

    /// Packs what lies before stretch `first`, which becomes the first that is open.
    fn pack_until(&mut self, first: usize) {
        let begins = first * INTERVALS_PER_STRETCH;
        let count = begins.saturating_sub(self.first).min(self.cells.len());
        let stretches = self.first / INTERVALS_PER_STRETCH..;
        for (stretch, cells) in stretches.zip(self.cells[..count].chunks(INTERVALS_PER_STRETCH)) {
            let packed = PackedCells::of(cells);
            if !packed.is_empty() {
                // There may be times of it, and never a cell.
                self.rest.entry(stretch).or_default().cells = packed;
            }
        }
        self.cells.drain(..count);
        self.first = self.first.max(begins);
    }

    /// Adds to a stretch, which is put at rest.
    fn add(&mut self, index: usize, stretch: &Stretch) {
        self.pack_until(index + 1);
        self.rest.entry(index).or_default().merge(stretch);
    }

    fn add_times(&mut self, index: usize, times: &Times) {
        if !times.is_empty() {
            self.rest.entry(index).or_default().times.merge(times);
        }
    }

    /// Puts the open histograms at rest and returns them empty.
    fn rest(&mut self) -> Option<Box<Open>> {
        let mut open = self.open.take()?;
        self.add_times(open.stretch, &open.times());
        open.latency.clear();
        open.ttfb.clear();
        Some(open)
    }

    /// Puts all at rest.
    fn close(&mut self) {
        // They are given back, too: a stage that is over needs them no more.
        drop(self.rest());
        let cells = self.cells.len().div_ceil(INTERVALS_PER_STRETCH);
        self.pack_until(self.first / INTERVALS_PER_STRETCH + cells);
        self.cells = Vec::new();
    }

    /// Takes out what lies before `stretch`.
    fn split_before(&mut self, stretch: usize) -> BTreeMap<usize, Stretch> {
        self.pack_until(stretch);
        if self.open.as_ref().is_some_and(|open| open.stretch < stretch) {
            drop(self.rest());
        }
        let later = self.rest.split_off(&stretch);
        std::mem::replace(&mut self.rest, later)
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
        self.change(interval.index, |cell| {
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
            self.change(index, |cell| {
                cell.bytes += bytes;
                cell.objects_micro += objects_micro;
            });
        });
    }

    /// Adds all of `other`.
    fn merge(&mut self, other: &Self) {
        for (index, stretch) in &other.rest {
            self.add(*index, stretch);
        }
        for (interval, cell) in (other.first..).zip(&other.cells) {
            self.change(interval, |mine| mine.merge(cell));
        }
        if let Some(open) = &other.open {
            self.add_times(open.stretch, &open.times());
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

    /// Returns an empty time line of seconds from 0, as each run has one.
    pub fn of_seconds() -> Self {
        Self::new(0, 1_000_000_000)
    }

    /// Counts one finished operation. What happened before the origin counts as at the origin.
    #[inline]
    pub fn record(&mut self, key: K, sample: &Sample) {
        self.record_and(key, sample, |_| ());
    }

    /// Counts one finished operation like [`Self::record`]. `begins` is called before, if it is the
    /// first to end in another stretch than the one before it.
    #[inline]
    pub fn record_and(&mut self, key: K, sample: &Sample, begins: impl FnOnce(&mut Self)) {
        let start_ns = sample.start_ns.saturating_sub(self.origin_ns);
        let end_ns = sample.end_ns.saturating_sub(self.origin_ns).max(start_ns);
        let Interval { begins_ns, ns, .. } = self.interval;
        // Before it the difference wraps around and is large, too.
        if end_ns.wrapping_sub(begins_ns) >= ns && self.move_to(end_ns) {
            begins(self);
        }
        let interval = self.interval;
        self.series_of(key).record(sample, start_ns, end_ns, interval);
    }

    /// Moves on, or back, to the interval of that time, and tells whether it is in another stretch.
    #[cold]
    fn move_to(&mut self, end_ns: u64) -> bool {
        let (before, ns) = (self.stretch(), self.interval.ns);
        let index = end_ns / ns;
        self.interval = Interval { index: index as usize, begins_ns: index * ns, ns };
        self.stretch() != before
    }

    /// Returns the stretch in which the last operation ended.
    pub fn stretch(&self) -> usize {
        self.interval.index / INTERVALS_PER_STRETCH
    }

    /// Returns the stretch before which all is over: the one before that of the last operation, as
    /// what crossed the border between them may still end.
    pub fn over_before(&self) -> usize {
        self.stretch().saturating_sub(1)
    }

    /// Takes out all, at rest. It goes on as quickly with an operation that ended long before.
    pub fn take(&mut self) -> Self {
        self.close();
        self.last = 0;
        let series = std::mem::take(&mut self.series);
        Self { series, ..Self::new(self.origin_ns, self.interval.ns) }
    }

    /// Takes out what lies before that stretch; `None` where there is nothing. What is recorded for
    /// it afterwards is there again, to be added to what was taken out.
    pub fn split_before(&mut self, stretch: usize) -> Option<Self> {
        let taken = self.series.iter_mut().filter_map(|(key, series)| {
            let rest = series.split_before(stretch);
            (!rest.is_empty()).then(|| (*key, Series { rest, ..Series::default() }))
        });
        let series: Vec<_> = taken.collect();
        (!series.is_empty()).then(|| Self { series, ..Self::new(self.origin_ns, self.interval.ns) })
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
        self.series_of(key).change(interval, |mine| mine.merge(cell));
    }

    /// Puts the times of a stretch as they were stored; they are added to what is there.
    pub fn insert_times(&mut self, key: K, stretch: usize, times: &Times) {
        self.series_of(key).add_times(stretch, times);
    }

    /// Puts everything at rest, so that [`Self::series`] shows all.
    pub fn close(&mut self) {
        self.series.iter_mut().for_each(|(_, series)| series.close());
    }

    /// Puts everything at rest and returns the sums.
    pub fn totals(&mut self) -> Totals<K> {
        self.close();
        let mut totals = Totals::default();
        totals.add(self);
        totals
    }

    /// Returns the series in key order.
    pub fn series(&self) -> impl Iterator<Item = (K, SeriesView<'_>)> {
        self.series.iter().map(|(key, series)| {
            let is_closed = series.open.is_none() && series.cells.is_empty();
            assert!(is_closed, "close() comes before series()");
            (*key, SeriesView(&series.rest))
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

/// All of a series, whenever it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// What was counted.
    pub cell: Cell,
    /// The times of the successes.
    pub times: Times,
}

/// All of each series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals<K>(BTreeMap<K, Total>);

impl<K> Default for Totals<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Copy> Totals<K> {
    /// Adds all of a time line that is closed.
    pub fn add(&mut self, timeline: &Timeline<K>) {
        for (key, series) in timeline.series() {
            let total = self.0.entry(key).or_default();
            series.cells().for_each(|(_, cell)| total.cell.merge(&cell));
            series.times().for_each(|(_, times)| total.times.merge(times));
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (key, theirs) in &other.0 {
            let total = self.0.entry(*key).or_default();
            total.cell.merge(&theirs.cell);
            total.times.merge(&theirs.times);
        }
    }

    /// Returns each series with its total, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &Total)> {
        self.0.iter().map(|(key, total)| (*key, total))
    }
}

#[cfg(test)]
impl<K> Timeline<K> {
    /// Returns how many bytes the cells hold, and how many are held in all but the open
    /// histograms.
    fn held_bytes(&self) -> (usize, usize) {
        let each = || self.series.iter().map(|(_, series)| series);
        let packed = each().flat_map(|series| series.rest.values());
        let packed: usize = packed.map(|stretch| stretch.cells.bytes().len()).sum();
        let open: usize = each().map(|series| series.cells.capacity() * size_of::<Cell>()).sum();
        let rest = each().flat_map(|series| series.rest.values()).map(|stretch| {
            let Times { latency, ttfb } = &stretch.times;
            size_of::<(usize, Stretch)>() + latency.held_bytes() + ttfb.held_bytes()
        });
        (packed + open, packed + open + rest.sum::<usize>())
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
