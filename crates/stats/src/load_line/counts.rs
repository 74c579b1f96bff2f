//! What a probe has come to, in counts that are added up exactly over threads and agents.

use super::ProbePart;

/// In so many equal stretches a probe is counted, its warm-up left out.
pub const PROBE_PARTS: usize = 10;
/// Those, what comes before them and what comes after.
const STRETCHES: usize = PROBE_PARTS + 2;
/// What waits has grown where at the end of each of the last so many stretches more was waiting
/// than at the end of any of the first so many,
const COMPARED: usize = 3;
/// and by more than this part of what was due, and than so many operations: a queue that is at
/// rest sways.
const GROWTH_PART: f64 = 0.02;
const GROWTH_MIN: f64 = 20.0;

/// A stretch of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStretch {
    /// The beginning, which does not count.
    WarmUp,
    /// One of those that count, from 0 on.
    Part(usize),
    /// After the last of them.
    After,
}

impl ProbeStretch {
    const fn index(self) -> usize {
        match self {
            Self::WarmUp => 0,
            Self::Part(part) => 1 + part,
            Self::After => STRETCHES - 1,
        }
    }
}

/// What a probe has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeCounts {
    /// By bound: its stretches.
    pub bounds: Vec<Vec<ProbePart>>,
    /// How many operations were due in the warm-up, in each stretch, and after them.
    pub due: Vec<u64>,
    /// How many ended there,
    pub ended: Vec<u64>,
    /// and succeeded.
    pub succeeded: Vec<u64>,
    /// In how many equal cells those that count were looked at,
    pub cells: u64,
    /// and in how many of these the client was not disturbed: what was due elsewhere is in no
    /// bound.
    pub cells_clean: u64,
    /// By how much more was waiting, or under way, at the end of what counts than at its beginning,
    /// without what came and went while the client was disturbed.
    pub growth: i64,
}

impl ProbeCounts {
    /// Returns those of a probe of so many bounds in which nothing has happened.
    pub fn new(bounds_count: usize) -> Self {
        let none = vec![0; STRETCHES];
        Self {
            // Bound: what a search is asked to keep, which is in memory.
            bounds: vec![vec![ProbePart::default(); PROBE_PARTS]; bounds_count],
            due: none.clone(),
            ended: none.clone(),
            succeeded: none,
            cells: 0,
            cells_clean: 0,
            growth: 0,
        }
    }

    /// Tells whether they are as long as those of a probe of so many bounds.
    pub fn fits(&self, bounds_count: usize) -> bool {
        let counts = [&self.due, &self.ended, &self.succeeded];
        self.bounds.len() == bounds_count
            && self.bounds.iter().all(|parts| parts.len() == PROBE_PARTS)
            && counts.iter().all(|counts| counts.len() == STRETCHES)
            && self.cells_clean <= self.cells
    }

    /// Takes note of an operation by when it was due and when it ended.
    pub fn note(&mut self, due: ProbeStretch, ended: ProbeStretch, is_ok: bool) {
        self.due[due.index()] += 1;
        self.ended[ended.index()] += 1;
        self.succeeded[ended.index()] += u64::from(is_ok);
    }

    /// Adds operations that were due in a stretch, and those of them that missed a bound.
    pub fn add(&mut self, bound: usize, part: usize, of: ProbePart) {
        let own = &mut self.bounds[bound][part];
        own.ended += of.ended;
        own.missed += of.missed;
    }

    /// Takes note of operations that were due near the end and never began. Nobody drew what they
    /// were to be: each bound has its share of them, by the operations it is about of those due.
    pub fn skip(&mut self, count: u64) {
        let due = self.due_count();
        self.due[PROBE_PARTS] += count;
        for parts in &mut self.bounds {
            let about: u64 = parts.iter().map(|part| part.ended).sum();
            let own = match due {
                // Nothing says what they were.
                0 => count,
                due => (count as f64 * about as f64 / due as f64).round() as u64,
            };
            parts[PROBE_PARTS - 1].ended += own;
            parts[PROBE_PARTS - 1].missed += own;
        }
    }

    /// Adds those of another part of the same probe.
    pub fn merge(&mut self, other: &Self) {
        let add = |own: &mut Vec<u64>, other: &[u64]| {
            own.iter_mut().zip(other).for_each(|(own, other)| *own = own.saturating_add(*other));
        };
        add(&mut self.due, &other.due);
        add(&mut self.ended, &other.ended);
        add(&mut self.succeeded, &other.succeeded);
        self.cells = self.cells.saturating_add(other.cells);
        self.cells_clean = self.cells_clean.saturating_add(other.cells_clean);
        self.growth = self.growth.saturating_add(other.growth);
        for (own, other) in self.bounds.iter_mut().zip(&other.bounds) {
            for (own, other) in own.iter_mut().zip(other) {
                own.ended = own.ended.saturating_add(other.ended);
                own.missed = own.missed.saturating_add(other.missed);
            }
        }
    }

    /// Returns in what share of the time the client was not disturbed.
    pub fn clean_share(&self) -> f64 {
        if self.cells == 0 { 1.0 } else { self.cells_clean as f64 / self.cells as f64 }
    }

    /// Returns how many operations were due in the stretches that count.
    pub fn due_count(&self) -> u64 {
        self.due[1..=PROBE_PARTS].iter().sum()
    }

    /// Returns how many operations ended in them, whenever they were due, and succeeded.
    pub fn succeeded_count(&self) -> u64 {
        self.succeeded[1..=PROBE_PARTS].iter().sum()
    }

    /// Returns how many succeeded in each stretch that counts.
    pub fn succeeded_by_part(&self) -> &[u64] {
        &self.succeeded[1..=PROBE_PARTS]
    }

    /// Tells whether what was waiting, or under way, grew as long as the probe lasted.
    pub fn is_overloaded(&self) -> bool {
        let mut waiting = 0.0;
        let ends = self.due[..=PROBE_PARTS].iter().zip(&self.ended);
        let waiting: Vec<f64> = ends
            .map(|(due, ended)| {
                waiting += *due as f64 - *ended as f64;
                waiting
            })
            .collect();
        let (first, last) = (&waiting[..COMPARED], &waiting[waiting.len() - COMPARED..]);
        let most_before = first.iter().copied().fold(0.0, f64::max);
        let least_after = last.iter().copied().fold(f64::INFINITY, f64::min);
        let growth = waiting[waiting.len() - 1] - waiting[0];
        // What a client that was held up left behind, a store that keeps up works off.
        let growth = if self.cells_clean < self.cells { self.growth as f64 } else { growth };
        least_after > most_before
            && growth > (self.due_count() as f64 * GROWTH_PART).max(GROWTH_MIN)
    }
}
