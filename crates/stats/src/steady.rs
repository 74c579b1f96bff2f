//! Amounts over time in bounded memory, and the rule that tells when their rate is steady.

use crate::grid::{Grid, Mergeable};
use crate::share::share_by_time;
use crate::trend::trend;

/// Into how many equal parts the range is cut.
pub const STEADY_PARTS: u64 = 25;
/// How many of the last parts must be alike.
pub const STEADY_PARTS_COMPARED: u64 = 7;

/// Cells before they double. At any time at least half as many are in use once they have doubled,
/// so that each of the 25 parts is made of 80 or more.
const CELLS_MAX: usize = 4_096;
/// How long a cell is at first.
const CELL_NS_FIRST: u64 = 10_000_000;
/// Objects are shared between cells in millionths.
const MICRO: u64 = 1_000_000;

/// What was done in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amounts {
    bytes: u64,
    objects_micro: u64,
}

impl Mergeable for Amounts {
    fn merge(&mut self, other: &Self) {
        // They may be what others claim.
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.objects_micro = self.objects_micro.saturating_add(other.objects_micro);
    }
}

/// Bytes and objects over time. Adds up exactly in any order.
///
/// They are kept in cells of 10 ms that double in length before there are more than 4,096, so that
/// a run of days takes the memory of one of seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmountSeries(Grid<Amounts>);

/// When a rate counts as steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyRule {
    /// The last 7 of 25 parts must be longer than this.
    pub window_ns: u64,
    /// By how much of the last part, in percent, the six before it may differ from it.
    pub percent: f64,
}

/// What was found steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// Whether bytes were compared, rather than objects.
    pub by_bytes: bool,
    /// The length of the parts that were compared, together.
    pub window_ns: u64,
    /// The length of the range they are the end of.
    pub range_ns: u64,
}

impl SteadyRule {
    /// Returns the length that a range must exceed: 25/7 of the window.
    pub fn range_ns_min(&self) -> u64 {
        let range = u128::from(self.window_ns) * u128::from(STEADY_PARTS);
        u64::try_from(range / u128::from(STEADY_PARTS_COMPARED)).unwrap_or(u64::MAX)
    }

    /// Tells whether the amounts of the parts compared, the last one last, are alike.
    ///
    /// Each must differ from the last by at most `percent` percent of it, which is warp's
    /// documented rule. Beyond that they must not drift: where they rise or fall beyond chance, so
    /// that they would have left the band if they had done so for all 25 parts, more is to come,
    /// and the run has not settled.
    pub fn holds(&self, parts: &[f64; STEADY_PARTS_COMPARED as usize]) -> bool {
        let [before @ .., last] = parts;
        let band = self.percent / 100.0 * last;
        let alike = before.iter().all(|part| (part - last).abs() <= band);
        let drifts = || trend(parts).abs() * STEADY_PARTS as f64 > band;
        *last > 0.0 && alike && !drifts()
    }
}

impl Default for AmountSeries {
    fn default() -> Self {
        Self(Grid::new(CELL_NS_FIRST, CELLS_MAX))
    }
}

impl AmountSeries {
    /// Adds what was done evenly from `start_ns` to `end_ns`, counted from the series' origin.
    pub fn record(&mut self, start_ns: u64, end_ns: u64, bytes: u64, objects: u64) {
        let start_ns = start_ns.min(end_ns);
        self.0.reach(end_ns);
        let cell_ns = self.0.cell_ns();
        let wholes = [bytes, objects * MICRO];
        share_by_time(start_ns, end_ns, cell_ns, wholes, |index, [bytes, objects_micro]| {
            self.0.cell_mut(index).merge(&Amounts { bytes, objects_micro });
        });
    }

    /// Adds all of `other`, which must have the same origin.
    pub fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    /// Returns the length of its cells, and of each the bytes and the millionths of objects.
    pub fn parts(&self) -> (u64, impl Iterator<Item = (u64, u64)> + '_) {
        let cells = self.0.cells().iter().map(|cell| (cell.bytes, cell.objects_micro));
        (self.0.cell_ns(), cells)
    }

    /// Returns the series with these parts; `None` where it cannot have them.
    pub fn from_parts(cell_ns: u64, cells: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let amounts = |(bytes, objects_micro)| Amounts { bytes, objects_micro };
        let cells = cells.into_iter().take(CELLS_MAX + 1).map(amounts).collect();
        Grid::from_parts(CELL_NS_FIRST, CELLS_MAX, cell_ns, cells).map(Self)
    }

    /// Returns the bytes and the millionths of objects before `at_ns`.
    fn until(&self, at_ns: u64) -> [f64; 2] {
        let cell_ns = self.0.cell_ns();
        let whole = usize::try_from(at_ns / cell_ns).unwrap_or(usize::MAX);
        let (before, rest) = self.0.cells().split_at(whole.min(self.0.cells().len()));
        let mut sum = Amounts::default();
        before.iter().for_each(|cell| sum.merge(cell));
        let partial = rest.first().copied().unwrap_or_default();
        let part = (at_ns % cell_ns) as f64 / cell_ns as f64;
        [
            sum.bytes as f64 + partial.bytes as f64 * part,
            sum.objects_micro as f64 + partial.objects_micro as f64 * part,
        ]
    }

    /// Returns what is steady about the range from `from_ns` to `to_ns`, if it is.
    ///
    /// The range is cut into 25 equal parts, of which the last 7 are compared: by bytes if the last
    /// one moved any, else by objects. A range of 25/7 of the rule's window or less is never
    /// steady.
    pub fn steady(&self, rule: &SteadyRule, from_ns: u64, to_ns: u64) -> Option<Steady> {
        let range_ns = to_ns.saturating_sub(from_ns);
        // In whole numbers, as 25/7 of a window need not be a whole number of nanoseconds.
        let (range, window) = (u128::from(range_ns), u128::from(rule.window_ns));
        if range * u128::from(STEADY_PARTS_COMPARED) <= window * u128::from(STEADY_PARTS) {
            return None;
        }
        let border = |number: u64| {
            let offset = u128::from(range_ns) * u128::from(number) / u128::from(STEADY_PARTS);
            self.until(from_ns + offset as u64)
        };
        let first = STEADY_PARTS - STEADY_PARTS_COMPARED;
        let borders = [0, 1, 2, 3, 4, 5, 6, 7].map(|number| border(first + number));
        let parts = |which: usize| {
            std::array::from_fn(|index| borders[index + 1][which] - borders[index][which])
        };
        let [bytes, objects]: [[f64; 7]; 2] = [parts(0), parts(1)];
        let by_bytes = bytes[6] > 0.0;
        let window_ns =
            (range * u128::from(STEADY_PARTS_COMPARED) / u128::from(STEADY_PARTS)) as u64;
        rule.holds(if by_bytes { &bytes } else { &objects }).then_some(Steady {
            by_bytes,
            window_ns,
            range_ns,
        })
    }
}

#[cfg(test)]
#[path = "steady_tests.rs"]
mod tests;
