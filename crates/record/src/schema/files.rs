//! What the manifest says of a stage on files.

use plimsoll_model::CacheState;
use serde::{Deserialize, Serialize};

/// What is known of a stage on files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesStage {
    /// What was done about caches; null where that is not known, and where clients differ in it.
    pub caches: Option<CacheState>,
    /// Why caches could not be dropped as asked, where they could not.
    pub caches_reason: Option<String>,
    /// What the whole process used while the stage lasted.
    pub usage: Option<ProcessUsage>,
    /// Bytes that all jobs read and that could not be checked, as the run never wrote them.
    pub unverified_bytes: Option<u64>,
    /// The longest time in which a thread with operations under way did not look at what has
    /// ended: no end is stamped later than it was by more. Null where nothing was waited for.
    pub look_gap_max_ns: Option<u64>,
    /// How many operations were seen to end after a gap of more than half of their service time.
    pub uncertain_count: Option<u64>,
}

/// What a process used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessUsage {
    /// Processor time of its own code.
    pub user_ns: u64,
    /// Processor time of the kernel on its behalf.
    pub system_ns: u64,
    /// How often a thread gave the processor away or lost it.
    pub context_switches_count: u64,
    /// Page faults that read from a medium.
    pub faults_major_count: u64,
    /// Other page faults.
    pub faults_minor_count: u64,
}

impl FilesStage {
    /// Returns what is known of a stage that several runs had together; `None` where none of them
    /// was on files. What they differ in is unknown.
    pub fn sum(all: &[&Self]) -> Option<Self> {
        let first = all.first()?;
        let mut reasons: Vec<&str> =
            all.iter().filter_map(|each| each.caches_reason.as_deref()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        Some(Self {
            caches: first.caches.filter(|_| all.iter().all(|each| each.caches == first.caches)),
            caches_reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
            usage: ProcessUsage::sum(all.iter().map(|each| each.usage)),
            unverified_bytes: sum_known(all.iter().map(|each| each.unverified_bytes)),
            // Null says that nothing was waited for, which takes nothing from what others saw.
            look_gap_max_ns: all.iter().filter_map(|each| each.look_gap_max_ns).max(),
            uncertain_count: all.iter().filter_map(|each| each.uncertain_count).reduce(add),
        })
    }

    /// Returns all counts that are added to those of other runs.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let used = self.usage.into_iter().flat_map(|used| {
            [
                used.user_ns,
                used.system_ns,
                used.context_switches_count,
                used.faults_major_count,
                used.faults_minor_count,
            ]
        });
        used.chain(self.unverified_bytes).chain(self.uncertain_count)
    }
}

/// Adds what agents and records claim, which may be any number.
pub(super) fn add(a: u64, b: u64) -> u64 {
    a.saturating_add(b)
}

/// Returns the sum of counts as `add` makes it; `None` if one is not known.
pub fn sum_known(mut counts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    counts.try_fold(0, |sum, count| Some(add(sum, count?)))
}

impl ProcessUsage {
    /// Returns what several processes used; `None` where that is not known of all.
    fn sum(mut all: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        all.try_fold(Self::default(), |sum, each| {
            let each = each?;
            Some(Self {
                user_ns: add(sum.user_ns, each.user_ns),
                system_ns: add(sum.system_ns, each.system_ns),
                context_switches_count: add(
                    sum.context_switches_count,
                    each.context_switches_count,
                ),
                faults_major_count: add(sum.faults_major_count, each.faults_major_count),
                faults_minor_count: add(sum.faults_minor_count, each.faults_minor_count),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sum_of_what_agents_claim_to_have_used_overflows() {
        let claimed = |count| ProcessUsage {
            user_ns: count,
            system_ns: count,
            context_switches_count: count,
            faults_major_count: count,
            faults_minor_count: count,
        };
        let stage = |count| FilesStage {
            usage: Some(claimed(count)),
            unverified_bytes: Some(count),
            uncertain_count: Some(count),
            ..FilesStage::default()
        };
        let (small, absurd) = (stage(7), stage(u64::MAX - 3));
        let sum = FilesStage::sum(&[&small, &small]).unwrap();
        assert_eq!((sum.usage, sum.unverified_bytes), (Some(claimed(14)), Some(14)));
        let sum = FilesStage::sum(&[&small, &absurd, &absurd]).unwrap();
        assert_eq!(sum.usage, Some(claimed(u64::MAX)));
        assert_eq!((sum.unverified_bytes, sum.uncertain_count), (Some(u64::MAX), Some(u64::MAX)));
    }
}
