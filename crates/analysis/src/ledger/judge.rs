//! Which of the gaps in which nothing failed are stalls of the store: those that operations which
//! are slow by themselves, each by its own chance, do not explain.

use plimsoll_model::OpRecord;

use super::stall::Stall;

/// So many gaps are judged, the longest; with more of them stalls are how the row is.
const JUDGED_MAX: usize = u128::BITS as usize;
/// A gap is a stall where so many like it, at most, are expected of independent operations.
const EXPECTED_MAX: f64 = 0.05;
/// What stands for slow operations that might have been and were not.
const UNSEEN: f64 = 0.5;
/// One operation alone is a stall if it was so many times as long as all others: under a law as
/// heavy as 1/x one in as many rows has such a one.
const ALONE_TIMES: u64 = 20;

/// What the operations of a row say of gaps that may be stalls.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    /// The longest first.
    gaps: Vec<Judged>,
    /// By the longest gap that operations are witnesses of, and behind those by none: which took
    /// half as long as each gap.
    slow: Vec<Vec<Slow>>,
    /// What took less is looked at no further.
    slow_ns_min: u64,
    /// How long all operations took together.
    busy_ns: u64,
}

/// A gap that is judged.
#[derive(Clone, Debug)]
struct Judged {
    stall: Stall,
    /// Operations that were under way from the middle of the wait to its end.
    witnesses: u32,
}

/// Operations that took longer than something.
#[derive(Clone, Copy, Debug, Default)]
struct Slow {
    count: u64,
    /// By how much, together.
    beyond_ns: u64,
    /// The longest of them.
    longest_ns: u64,
}

impl Slow {
    fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            beyond_ns: self.beyond_ns.saturating_add(other.beyond_ns),
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }
}

impl Judge {
    /// Returns who judges these gaps.
    pub(super) fn of(mut suspects: Vec<Stall>) -> Self {
        suspects.sort_by_key(|stall| std::cmp::Reverse((stall.waited, stall.from)));
        suspects.truncate(JUDGED_MAX);
        let slow_ns_min = suspects.last().map_or(u64::MAX, |stall| stall.waited / ALONE_TIMES);
        let count = suspects.len();
        let judged = |stall| Judged { stall, witnesses: 0 };
        Self {
            gaps: suspects.into_iter().map(judged).collect(),
            // Bound: `JUDGED_MAX`, twice.
            slow: vec![vec![Slow::default(); count]; count + 1],
            slow_ns_min,
            busy_ns: 0,
        }
    }

    /// Sees an operation of the row, and of that client.
    pub(super) fn add(&mut self, op: &OpRecord, client: Option<u16>) {
        let took = crate::ns(op.service_time());
        self.busy_ns = self.busy_ns.saturating_add(took);
        if took < self.slow_ns_min {
            return;
        }
        // By the bit of each gap whether the operation is a witness of it.
        let mut witnessed = 0_u128;
        for (index, gap) in self.gaps.iter_mut().enumerate() {
            let of = &gap.stall;
            let middle = of.until.saturating_sub(of.half());
            if of.is_about(op, client) && op.start.as_ns() <= middle && op.end.as_ns() >= of.until {
                gap.witnesses = gap.witnesses.saturating_add(1);
                witnessed |= 1 << index;
            }
        }
        let longest = (witnessed.trailing_zeros() as usize).min(self.gaps.len());
        for (index, (slow, gap)) in self.slow[longest].iter_mut().zip(&self.gaps).enumerate() {
            // What a gap of a client is witnessed by may be a witness of the row's as well.
            if witnessed >> index & 1 == 1 {
                continue;
            }
            slow.longest_ns = slow.longest_ns.max(took);
            if let Some(beyond) = took.checked_sub(gap.stall.half()) {
                slow.count += 1;
                slow.beyond_ns = slow.beyond_ns.saturating_add(beyond);
            }
        }
    }

    /// Adds what another one saw of the same gaps.
    pub(super) fn merge(&mut self, other: &Self) {
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        for (mine, theirs) in self.gaps.iter_mut().zip(&other.gaps) {
            mine.witnesses = mine.witnesses.saturating_add(theirs.witnesses);
        }
        let own = self.slow.iter_mut().flatten();
        own.zip(other.slow.iter().flatten()).for_each(|(mine, theirs)| *mine = mine.and(*theirs));
    }

    /// Returns the gaps that are stalls. Going down from the longest, what one of them explains
    /// says nothing of the shorter ones.
    pub(super) fn stalls(self) -> Vec<Stall> {
        let mut is_stall = vec![false; self.gaps.len()];
        for (index, gap) in self.gaps.iter().enumerate() {
            let told = is_stall.iter().copied().chain([false]).enumerate();
            let others = told.filter(|(other, is_told)| *other != index && !is_told);
            let others = others.map(|(other, _)| self.slow[other][index]);
            let others = others.fold(Slow::default(), Slow::and);
            is_stall[index] = match gap.witnesses {
                // Nobody asked while it was silent: the client had stopped.
                0 => false,
                // Of one operation alone nobody can say more than how far it is from the others.
                1 => others.longest_ns.saturating_mul(ALONE_TIMES) <= gap.stall.waited,
                several => self.expected(&gap.stall, several, others) <= EXPECTED_MAX,
            };
        }
        let told = self.gaps.into_iter().zip(is_stall).filter(|(_, is_stall)| *is_stall);
        told.map(|(gap, _)| gap.stall).collect()
    }

    /// Returns how often so many operations, each slow by its own chance, are expected to be slow
    /// at once for as long: so often as one is, and each of the others is found with as much time
    /// left, which is so likely as the part of all time in which that holds is large.
    fn expected(&self, stall: &Stall, witnesses: u32, others: Slow) -> f64 {
        let beyond_ns = others.beyond_ns as f64 + UNSEEN * stall.half() as f64;
        let part = (beyond_ns / self.busy_ns.max(1) as f64).min(1.0);
        (others.count as f64 + UNSEEN) * part.powi(witnesses.saturating_sub(1).min(1_000) as i32)
    }
}
