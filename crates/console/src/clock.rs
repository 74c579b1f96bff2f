//! The time of day, as the console notes it.

use plimsoll_conduct::RunTime;
use plimsoll_model::Moment;

/// The machine's time.
#[derive(Clone)]
pub(crate) struct Clock(RunTime);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(RunTime::machine())
    }

    /// Returns the milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        let ns = self.0.wall_epoch.as_unix_ns().saturating_add(self.0.clock.now().as_ns());
        i64::try_from(ns / 1_000_000).unwrap_or(i64::MAX)
    }

    /// Returns a moment that is never taken back.
    pub(crate) fn moment(&self) -> Moment {
        self.0.clock.now()
    }
}

/// How COSBench writes a moment in its files.
pub(crate) const IN_FILES: &str = "%Y-%m-%d %H:%M:%S";
/// How it writes a moment to who asks by its script, which is how Java does.
pub(crate) const FOR_SCRIPTS: &str = "%a %b %d %H:%M:%S %Z %Y";

/// Returns a moment in this machine's time.
pub(crate) fn local(at_ms: i64, format: &str) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    at.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime(format).to_string()
}
