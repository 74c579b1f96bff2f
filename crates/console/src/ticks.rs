//! What was counted of a run second by second: kept in a file of lines while it runs, merged
//! exactly into longer cells for who asks.

use std::collections::BTreeMap;

use plimsoll_engine::{LiveDetail, latency_cell_end_ns};
use plimsoll_model::ErrorClass;
use plimsoll_stats::Percentile;
use serde::{Deserialize, Serialize};

/// How many bins latencies are shown in.
pub(crate) const BINS: usize = 64;
/// Bins of one power of ten.
const BINS_PER_DECADE: f64 = 8.0;
/// The end of the first bin.
const BIN_FIRST_NS: f64 = 1_000.0;

/// What was counted in one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tick {
    /// Its number in the run, 1-based.
    pub seq: u64,
    /// When the interval ended, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long it is.
    pub interval_ns: u64,
    /// The stage's number, 1-based.
    pub stage: usize,
    /// By kind of operation.
    pub rows: Vec<Row>,
    /// By agent, where a fleet carries the run out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// By address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostPart>,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The job's number, 1-based, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<usize>,
    /// The kind.
    pub kind: String,
    /// Operations under way when the interval ended, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// What was counted.
    #[serde(flatten)]
    pub counted: Counted,
}

/// What was counted. Two of them add up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Counted {
    /// Successes.
    pub ok: u64,
    /// Failures by class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<String, u64>,
    /// Content bytes of successes.
    pub bytes: u64,
    /// Sum of the latencies of successes.
    pub latency_ns: u64,
    /// Sum of their times to first byte.
    pub ttfb_ns: u64,
    /// Successes by latency: the cells that are not empty, in order.
    pub cells: Vec<(u16, u64)>,
}

/// What one agent did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Its name.
    pub name: String,
    /// How it stands: `running`, `done`, `silent`, `lost`.
    pub state: String,
    /// Its workers, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers_count: Option<u32>,
    /// Operations under way when the interval ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// Its clock less that of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ms: Option<f64>,
    /// How busy its machine is, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// What was counted in the interval.
    #[serde(default)]
    pub counted: Counted,
}

/// What went to one address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostPart {
    /// The address.
    pub name: String,
    /// What was counted in the interval.
    #[serde(default)]
    pub counted: Counted,
}

impl Counted {
    /// Returns what was counted since a stage began.
    pub(crate) fn of(detail: &LiveDetail) -> Self {
        let classes = ErrorClass::ALL.iter().zip(&detail.ended).skip(1);
        let failed = classes
            .filter(|(_, count)| **count > 0)
            .map(|(class, count)| (class.name().to_owned(), *count))
            .collect();
        let cells = detail.latency_cells.iter().enumerate();
        let cells = cells.filter(|(_, count)| **count > 0);
        Self {
            ok: detail.ended[0],
            failed,
            bytes: detail.bytes,
            latency_ns: detail.latency_ns,
            ttfb_ns: detail.ttfb_ns,
            cells: cells.map(|(cell, count)| (cell as u16, *count)).collect(),
        }
    }

    /// Returns how many operations failed.
    pub(crate) fn failed_count(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Returns how many operations ended.
    pub(crate) fn ended_count(&self) -> u64 {
        self.ok + self.failed_count()
    }

    /// Adds what another has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        self.bytes += other.bytes;
        self.latency_ns = self.latency_ns.wrapping_add(other.latency_ns);
        self.ttfb_ns = self.ttfb_ns.wrapping_add(other.ttfb_ns);
        for (class, count) in &other.failed {
            *self.failed.entry(class.clone()).or_default() += count;
        }
        let mut cells: BTreeMap<u16, u64> = self.cells.drain(..).collect();
        for (cell, count) in &other.cells {
            *cells.entry(*cell).or_default() += count;
        }
        self.cells = cells.into_iter().collect();
    }

    /// Returns what has come since an earlier reading of the same counters.
    #[must_use]
    pub(crate) fn since(&self, before: &Self) -> Self {
        let failed = self.failed.iter().map(|(class, count)| {
            let before = before.failed.get(class).copied().unwrap_or(0);
            (class.clone(), count.saturating_sub(before))
        });
        let earlier: BTreeMap<u16, u64> = before.cells.iter().copied().collect();
        let cells = self.cells.iter().map(|(cell, count)| {
            (*cell, count.saturating_sub(earlier.get(cell).copied().unwrap_or(0)))
        });
        Self {
            ok: self.ok.saturating_sub(before.ok),
            failed: failed.filter(|(_, count)| *count > 0).collect(),
            bytes: self.bytes.saturating_sub(before.bytes),
            latency_ns: self.latency_ns.wrapping_sub(before.latency_ns),
            ttfb_ns: self.ttfb_ns.wrapping_sub(before.ttfb_ns),
            cells: cells.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// Returns a latency that so many of the successes did not exceed, as the end of its cell, at
    /// most an eighth too long; `None` if there were none.
    pub(crate) fn latency_ns_at(&self, percentile: Percentile) -> Option<u64> {
        let rank = percentile.rank(self.cells.iter().map(|(_, count)| count).sum());
        let mut seen = 0;
        for (cell, count) in &self.cells {
            seen += count;
            if seen >= rank {
                return Some(cell_end_ns(*cell));
            }
        }
        None
    }

    /// Returns the mean latency of the successes.
    pub(crate) fn latency_ns_mean(&self) -> Option<f64> {
        (self.ok > 0).then(|| self.latency_ns as f64 / self.ok as f64)
    }

    /// Returns the mean time to first byte of the successes, if any had one.
    pub(crate) fn ttfb_ns_mean(&self) -> Option<f64> {
        (self.ok > 0 && self.ttfb_ns > 0).then(|| self.ttfb_ns as f64 / self.ok as f64)
    }

    /// Returns the successes by the bins in which latencies are shown, those that are not empty.
    pub(crate) fn bins(&self) -> Vec<(u16, u64)> {
        let mut bins: BTreeMap<u16, u64> = BTreeMap::new();
        for (cell, count) in &self.cells {
            *bins.entry(bin_of(*cell)).or_default() += count;
        }
        bins.into_iter().collect()
    }
}

/// Returns the end of a cell; of the last, which has none, its beginning.
fn cell_end_ns(cell: u16) -> u64 {
    let cell = usize::from(cell);
    latency_cell_end_ns(cell)
        .or_else(|| latency_cell_end_ns(cell.saturating_sub(1)))
        .unwrap_or(u64::MAX)
}

/// Returns the bin that the middle of a cell lies in.
fn bin_of(cell: u16) -> u16 {
    let end = cell_end_ns(cell) as f64;
    let start = match cell {
        0 => end / 2.0,
        cell => cell_end_ns(cell - 1) as f64,
    };
    let middle = f64::midpoint(start, end);
    if middle < BIN_FIRST_NS {
        return 0;
    }
    let above = ((middle / BIN_FIRST_NS).log10() * BINS_PER_DECADE).floor() as u16 + 1;
    above.min(BINS as u16 - 1)
}

impl Tick {
    /// Returns all kinds together.
    pub(crate) fn all(&self) -> Counted {
        let mut sum = Counted::default();
        self.rows.iter().for_each(|row| sum.add(&row.counted));
        sum
    }

    /// Returns how many operations were under way when the interval ended, where that is known.
    pub(crate) fn in_flight(&self) -> Option<u64> {
        self.rows.iter().map(|row| row.in_flight).sum()
    }
}

/// Returns a stage's ticks in cells of at least that length, merged exactly.
pub(crate) fn merged(ticks: &[Tick], points_max: usize) -> Vec<Tick> {
    let per_cell = ticks.len().div_ceil(points_max.max(1)).max(1);
    ticks.chunks(per_cell).map(merge).collect()
}

fn merge(ticks: &[Tick]) -> Tick {
    let mut sum = Tick::default();
    for tick in ticks {
        sum.seq = tick.seq;
        sum.at_ms = tick.at_ms;
        sum.interval_ns += tick.interval_ns;
        sum.stage = tick.stage;
        for row in &tick.rows {
            let same = |have: &&mut Row| have.kind == row.kind && have.job == row.job;
            match sum.rows.iter_mut().find(same) {
                Some(have) => {
                    have.counted.add(&row.counted);
                    have.in_flight = row.in_flight;
                }
                None => sum.rows.push(row.clone()),
            }
        }
        for part in &tick.parts {
            match sum.parts.iter_mut().find(|have| have.name == part.name) {
                Some(have) => {
                    let mut counted = std::mem::take(&mut have.counted);
                    counted.add(&part.counted);
                    *have = Part { counted, ..part.clone() };
                }
                None => sum.parts.push(part.clone()),
            }
        }
        for host in &tick.hosts {
            match sum.hosts.iter_mut().find(|have| have.name == host.name) {
                Some(have) => have.counted.add(&host.counted),
                None => sum.hosts.push(host.clone()),
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(cells: &[(u16, u64)]) -> Counted {
        let ok = cells.iter().map(|(_, count)| count).sum();
        Counted { ok, cells: cells.to_vec(), ..Counted::default() }
    }

    fn tick(seq: u64, cells: &[(u16, u64)]) -> Tick {
        let row = Row { kind: "GET".to_owned(), counted: counted(cells), ..Row::default() };
        Tick { seq, interval_ns: 1_000, stage: 1, rows: vec![row], ..Tick::default() }
    }

    #[test]
    fn what_is_merged_is_what_was_counted_at_once() {
        let ticks = [tick(1, &[(0, 3)]), tick(2, &[(0, 1), (9, 2)]), tick(3, &[(4, 1)])];
        let merged = merged(&ticks, 2);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[0].rows[0].counted, counted(&[(0, 4), (9, 2)]));
        assert_eq!((merged[0].seq, merged[0].interval_ns), (2, 2_000));
        assert_eq!(merged[1].rows[0].counted, counted(&[(4, 1)]));
    }

    #[test]
    fn what_came_since_is_the_difference() {
        let mut before = counted(&[(3, 5)]);
        before.failed.insert("timeout".to_owned(), 2);
        let mut now = before.clone();
        now.add(&counted(&[(3, 1), (7, 4)]));
        now.failed.insert("timeout".to_owned(), 3);
        let since = now.since(&before);
        assert_eq!(since.cells, [(3, 1), (7, 4)]);
        assert_eq!(since.failed_count(), 1);
        assert_eq!(since.ended_count(), 6);
    }

    #[test]
    fn percentiles_are_ends_of_cells() {
        // Cells end at 1,024 ns and 1,152 ns.
        let counted = counted(&[(0, 99), (1, 1)]);
        assert_eq!(counted.latency_ns_at(Percentile::P50), Some(1_024));
        assert_eq!(counted.latency_ns_at(Percentile::P99), Some(1_024));
        assert_eq!(counted.latency_ns_at(Percentile::MAX), Some(1_152));
        assert_eq!(Counted::default().latency_ns_at(Percentile::P50), None);
    }

    #[test]
    fn bins_are_eighths_of_a_decade_from_a_microsecond() {
        // Cell 0 is all below 1,024 ns; 1 ms is bin 25: 3 decades of 8, and one.
        assert_eq!(bin_of(0), 0);
        let millisecond = (0..u16::MAX).find(|cell| cell_end_ns(*cell) > 1_100_000).unwrap();
        assert_eq!(bin_of(millisecond), 25);
        assert_eq!(bin_of(216), 63.min(bin_of(216)));
        assert_eq!(counted(&[(0, 2), (1, 3)]).bins(), [(0, 2), (1, 3)]);
    }
}
