//! The bounds on processor time of this process's control groups, versions 1 and 2.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll_record::schema::QuotaEvidence;

use super::text;
use crate::machine::cgroup::{Controller, groups};

/// What each control group above this process counts, by its directory.
#[derive(Default)]
pub(super) struct Levels(BTreeMap<PathBuf, QuotaEvidence>);

impl Levels {
    /// Reads all levels up to the root of what can be seen.
    pub(super) fn read() -> Self {
        let level_at = |place: PathBuf| {
            let level = level(&|name: &str| text(place.join(name)))?;
            Some((place, level))
        };
        Self(groups(Controller::Processors).filter_map(level_at).collect())
    }

    /// Returns what the level that stopped most counted since; of none that did the tightest one.
    pub(super) fn since(&self, before: &Self) -> Option<QuotaEvidence> {
        let since = |(place, now): (&PathBuf, &QuotaEvidence)| {
            let before = before.0.get(place)?;
            Some(QuotaEvidence {
                cores_milli: now.cores_milli,
                periods_count: now.periods_count.saturating_sub(before.periods_count),
                throttled_count: now.throttled_count.saturating_sub(before.throttled_count),
                throttled_ns: now.throttled_ns.saturating_sub(before.throttled_ns),
            })
        };
        self.0.iter().filter_map(since).max_by_key(|of| {
            (of.throttled_count, std::cmp::Reverse(of.cores_milli.unwrap_or(u64::MAX)))
        })
    }
}

/// Returns what one level says in its files; `None` where it counts no periods.
fn level(read: &dyn Fn(&str) -> String) -> Option<QuotaEvidence> {
    let stat = read("cpu.stat");
    let count = |key: &str| {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key)?.1.trim().parse::<u64>().ok()
    };
    let throttled_ns = count("throttled_usec")
        .map(|us| us.saturating_mul(1_000))
        .or_else(|| count("throttled_time"));
    Some(QuotaEvidence {
        cores_milli: bound(read),
        periods_count: count("nr_periods")?,
        throttled_count: count("nr_throttled")?,
        throttled_ns: throttled_ns?,
    })
}

/// Returns how many thousandths of a processor a level allows; `None` for no bound.
fn bound(read: &dyn Fn(&str) -> String) -> Option<u64> {
    let max = read("cpu.max");
    let (quota, period) = match max.split_once(' ') {
        Some((quota, period)) => (quota.to_owned(), period.to_owned()),
        None => (read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")),
    };
    // `max` of version 2 and -1 of version 1 are no numbers here.
    let (quota, period): (u64, u64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    quota.saturating_mul(1_000).checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> String {
        move |name| {
            let file = files.iter().find(|(of, _)| *of == name);
            file.map_or_else(String::new, |(_, text)| (*text).to_owned())
        }
    }

    #[test]
    fn both_versions_are_read() {
        let two = of(&[
            ("cpu.stat", "usage_usec 9\nnr_periods 40\nnr_throttled 30\nthrottled_usec 2500\n"),
            ("cpu.max", "20000 100000\n"),
        ]);
        let one = of(&[
            ("cpu.stat", "nr_periods 40\nnr_throttled 30\nthrottled_time 2500000\n"),
            ("cpu.cfs_quota_us", "20000\n"),
            ("cpu.cfs_period_us", "100000\n"),
        ]);
        let expected = QuotaEvidence {
            cores_milli: Some(200),
            periods_count: 40,
            throttled_count: 30,
            throttled_ns: 2_500_000,
        };
        assert_eq!((level(&two), level(&one)), (Some(expected), Some(expected)));
        let free = of(&[
            ("cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"),
            ("cpu.max", "max 100000\n"),
        ]);
        assert_eq!(level(&free), Some(QuotaEvidence::default()));
        // The root of version 2 counts no periods.
        assert_eq!(level(&of(&[("cpu.stat", "usage_usec 9\n")])), None);
    }

    #[test]
    fn the_level_that_stopped_most_is_told() {
        let at = |throttled_count, cores_milli| QuotaEvidence {
            cores_milli,
            throttled_count,
            periods_count: 100,
            throttled_ns: 0,
        };
        let levels = |a, b| Levels(BTreeMap::from([("/a".into(), a), ("/b".into(), b)]));
        let before = levels(at(5, Some(500)), at(50, None));
        let now = levels(at(45, Some(500)), at(52, None));
        assert_eq!(now.since(&before).map(|of| of.throttled_count), Some(40));
        let still = levels(at(5, Some(500)), at(50, None));
        assert_eq!(still.since(&before).and_then(|of| of.cores_milli), Some(500));
    }
}
