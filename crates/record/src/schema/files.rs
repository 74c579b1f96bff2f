//! What the manifest says of a stage on files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Schedule;

/// What is known of a stage on files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesStage {
    /// Which repetition of the stage it is, 0-based.
    pub iteration: u32,
    /// How operations of each job reached the kernel: `io_uring`, `libaio`, `psync` or `null`.
    pub interfaces: Vec<String>,
    /// What was done about caches: `dropped`, `dropped-machine`, `bypassed`,
    /// `cached` or `unknown`.
    pub caches: String,
    /// Why caches could not be dropped as asked, where they could not.
    pub caches_reason: Option<String>,
    /// What the whole process used while the stage lasted.
    pub usage: Option<ProcessUsage>,
    /// Bytes that were read and could not be checked, as the run never wrote them.
    #[serde(default)]
    pub unverified_bytes: Option<u64>,
    /// How the jobs with a schedule kept theirs, each by itself; the stage's `schedule` is their
    /// sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<JobSchedule>,
    /// The longest time in which a thread with operations under way did not look at what has
    /// ended: no end is stamped later than it was by more. Null where nothing was waited for.
    #[serde(default)]
    pub look_gap_max_ns: Option<u64>,
    /// How many operations were seen to end after a gap of more than half of their service time.
    #[serde(default)]
    pub uncertain_count: Option<u64>,
}

/// How one job of a stage on files kept its schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSchedule {
    /// The job, an index into the jobs of the stage.
    pub job_index: u32,
    /// Its schedule.
    pub schedule: Schedule,
}

/// What a process used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// What stands where the parts of a merged run differ.
const DIFFERENT: &str = "unknown";

impl FilesStage {
    /// Returns what is known of a stage that several runs had together; `None` where none of them
    /// was on files. What they differ in is unknown.
    pub(crate) fn sum(all: &[&Self]) -> Option<Self> {
        let first = all.first()?;
        let is_alike = |of: fn(&Self) -> &str| all.iter().all(|each| of(each) == of(first));
        let jobs = all.iter().map(|each| each.interfaces.len()).max().unwrap_or_default();
        let interface = |job: usize| {
            let of = |each: &&Self| each.interfaces.get(job).cloned();
            let known =
                of(first).filter(|name| all.iter().all(|each| of(each).as_ref() == Some(name)));
            known.unwrap_or_else(|| DIFFERENT.to_owned())
        };
        let mut reasons: Vec<&str> =
            all.iter().filter_map(|each| each.caches_reason.as_deref()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        Some(Self {
            iteration: first.iteration,
            interfaces: (0..jobs).map(interface).collect(),
            caches: match is_alike(|each| &each.caches) {
                true => first.caches.clone(),
                false => DIFFERENT.to_owned(),
            },
            caches_reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
            usage: ProcessUsage::sum(all.iter().map(|each| each.usage)),
            unverified_bytes: all.iter().map(|each| each.unverified_bytes).sum(),
            schedules: JobSchedule::sum(all.iter().flat_map(|each| &each.schedules)),
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
        let schedules = self.schedules.iter().flat_map(|of| of.schedule.counts());
        used.chain(schedules).chain(self.unverified_bytes).chain(self.uncertain_count)
    }
}

fn add(a: u64, b: u64) -> u64 {
    a + b
}

impl JobSchedule {
    /// Returns the schedules of each job, added up, in the order of the jobs.
    fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Vec<Self> {
        let mut of_jobs: BTreeMap<u32, Vec<&Schedule>> = BTreeMap::new();
        for each in all {
            of_jobs.entry(each.job_index).or_default().push(&each.schedule);
        }
        let sum = |(job_index, all): (u32, Vec<&Schedule>)| {
            Some(Self { job_index, schedule: Schedule::sum(all.into_iter())? })
        };
        of_jobs.into_iter().filter_map(sum).collect()
    }
}

impl ProcessUsage {
    /// Returns what several processes used; `None` where that is not known of all.
    fn sum(mut all: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        all.try_fold(Self::default(), |sum, each| {
            let each = each?;
            Some(Self {
                user_ns: sum.user_ns + each.user_ns,
                system_ns: sum.system_ns + each.system_ns,
                context_switches_count: sum.context_switches_count + each.context_switches_count,
                faults_major_count: sum.faults_major_count + each.faults_major_count,
                faults_minor_count: sum.faults_minor_count + each.faults_minor_count,
            })
        })
    }
}
