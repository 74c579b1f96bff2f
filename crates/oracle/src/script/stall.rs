//! Frozen time: stretches in which no work makes progress.

/// A stretch that comes back: `[offset + k * every, offset + k * every + lasting)` for k = 0, 1, …,
/// in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    /// From one beginning to the next; more than `lasting`.
    pub(crate) every: u64,
    /// How long a stretch is; at least 1.
    pub(crate) lasting: u64,
    /// When the first one begins.
    pub(crate) offset: u64,
}

impl Stall {
    /// Returns when work of `work` ns is done that begins at `from`, if it rests in frozen time.
    pub(crate) fn finish(self, from: u64, work: u64) -> u64 {
        let before_first = self.offset.saturating_sub(from);
        if from < self.offset && work <= before_first {
            return from + work;
        }
        let work = work - before_first.min(work);
        let since_offset = from.max(self.offset) - self.offset;
        let (period, since_start) = (since_offset / self.every, since_offset % self.every);
        // Work that would end with a period's last moment does not see the next stall.
        let active = self.every - self.lasting;
        let done_in_period = since_start.saturating_sub(self.lasting);
        let work = work.saturating_add(done_in_period);
        let periods_more = work.saturating_sub(1) / active;
        let rest = work - periods_more * active;
        let period = period.saturating_add(periods_more);
        let start = self.offset.saturating_add(period.saturating_mul(self.every));
        start.saturating_add(self.lasting).saturating_add(rest)
    }
}
