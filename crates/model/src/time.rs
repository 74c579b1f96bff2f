//! Time as the run sees it: monotonic moments since the run's epoch, and wall time apart from them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A monotonic instant: nanoseconds since the run's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The run's epoch itself.
    pub const EPOCH: Self = Self(0);

    /// Returns the moment `ns` nanoseconds after the epoch.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns nanoseconds since the epoch.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`, zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the moment `by` later.
    pub fn after(self, by: Duration) -> Self {
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ns))
    }
}

/// Reads monotonic time. Implemented by `engine::clock`; everyone else is handed one.
pub trait Clock: Send + Sync {
    /// Returns the present moment.
    fn now(&self) -> Moment;
}

/// A clock that threads share.
pub type SharedClock = Arc<dyn Clock>;

/// Wall-clock time: nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// Returns the wall time `ns` nanoseconds after 1970-01-01T00:00:00Z.
    pub const fn from_unix_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns nanoseconds since 1970-01-01T00:00:00Z.
    pub const fn as_unix_ns(self) -> u64 {
        self.0
    }

    /// Returns the wall time `by` later.
    pub fn after(self, by: Duration) -> Self {
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ns))
    }

    /// Returns UTC year, month, day, hour, minute, second (Howard Hinnant's `civil_from_days`).
    pub fn civil(self) -> (i64, u32, u32, u32, u32, u32) {
        let seconds = self.0 / 1_000_000_000;
        let (days, in_day) = ((seconds / 86_400) as i64, (seconds % 86_400) as u32);
        let z = days + 719_468;
        let era = z.div_euclid(146_097);
        let day_of_era = z.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * shifted + 2) / 5 + 1) as u32;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 } as u32;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month, day, in_day / 3_600, in_day / 60 % 60, in_day % 60)
    }
}

impl fmt::Display for WallTime {
    /// Writes RFC 3339 in UTC with nine fraction digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day, hour, minute, second) = self.civil();
        let fraction = self.0 % 1_000_000_000;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_prints_as_rfc_3339() {
        // Checked with `date -u -d @SECONDS`.
        let cases = [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_400_000_000_001, "2000-02-29T00:00:00.000000001Z"),
            (1_735_689_599_999_999_999, "2024-12-31T23:59:59.999999999Z"),
            (1_795_251_600_000_000_000, "2026-11-21T09:00:00.000000000Z"),
        ];
        for (ns, text) in cases {
            assert_eq!(WallTime::from_unix_ns(ns).to_string(), text);
        }
    }

    #[test]
    fn a_moment_before_its_reference_is_no_negative_time() {
        let (early, late) = (Moment::from_ns(5), Moment::from_ns(9));
        assert_eq!(late.since(early), Duration::from_nanos(4));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(early.after(Duration::from_nanos(4)), late);
    }
}
