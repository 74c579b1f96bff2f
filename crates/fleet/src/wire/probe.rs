//! A stage that is a probe of a search, and what was counted of it, as they travel.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_analysis::load_line::{ProbeAsked, Slo};
use plimsoll_conduct::ChosenProbe;
use plimsoll_model::{JobId, ProbeRole};
use plimsoll_stats::{ProbeCounts, ProbePart};
use plimsoll_workload::plan::SloSpec;
use serde::{Deserialize, Serialize};

/// What a stage is to a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeDoc {
    /// What it is made for; absent: a closed loop, to find out where to begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<ProbeRole>,
    /// What is to be kept, as workload files say it.
    slo: Vec<SloSpec>,
    job: u8,
    lasts_ns: u64,
}

impl ProbeDoc {
    /// Returns it, to be sent.
    pub fn of(probe: &ChosenProbe) -> Self {
        Self {
            role: probe.role,
            slo: probe.asked.slos.iter().map(|slo| slo.spec()).collect(),
            job: probe.asked.job.0,
            lasts_ns: probe.asked.lasts.as_nanos() as u64,
        }
    }

    /// Returns what was sent.
    pub fn probe(self) -> ChosenProbe {
        let asked = ProbeAsked {
            slos: self.slo.into_iter().map(Slo::from).collect::<Arc<[Slo]>>(),
            job: JobId(self.job),
            lasts: Duration::from_nanos(self.lasts_ns),
        };
        ChosenProbe { role: self.role, asked }
    }
}

/// What was counted of a probe in one part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCountsDoc {
    /// By bound and stretch: how many ended, and how many of them missed it.
    bounds: Vec<Vec<(u64, u64)>>,
    due: Vec<u64>,
    ended: Vec<u64>,
    succeeded: Vec<u64>,
    cells: u64,
    cells_clean: u64,
    growth: i64,
}

impl ProbeCountsDoc {
    /// Returns it, to be sent.
    pub(super) fn of(counts: &ProbeCounts) -> Self {
        let pairs = |parts: &Vec<ProbePart>| {
            parts.iter().map(|part| (part.ended, part.missed)).collect::<Vec<_>>()
        };
        Self {
            bounds: counts.bounds.iter().map(pairs).collect(),
            due: counts.due.clone(),
            ended: counts.ended.clone(),
            succeeded: counts.succeeded.clone(),
            cells: counts.cells,
            cells_clean: counts.cells_clean,
            growth: counts.growth,
        }
    }

    /// Returns what was sent.
    pub(super) fn counts(&self) -> ProbeCounts {
        let parts = |pairs: &Vec<(u64, u64)>| {
            pairs.iter().map(|&(ended, missed)| ProbePart { ended, missed }).collect::<Vec<_>>()
        };
        ProbeCounts {
            bounds: self.bounds.iter().map(parts).collect(),
            due: self.due.clone(),
            ended: self.ended.clone(),
            succeeded: self.succeeded.clone(),
            cells: self.cells,
            cells_clean: self.cells_clean,
            growth: self.growth,
        }
    }

    /// Tells whether they may be those of a probe of so many bounds in which no more than so many
    /// operations ended.
    pub(super) fn fits(&self, bounds_count: usize, ops_max: u64) -> bool {
        let counts = self.due.iter().chain(&self.ended).chain(&self.succeeded);
        let mut parts = self.bounds.iter().flatten();
        self.counts().fits(bounds_count)
            && counts.copied().all(|count| count <= ops_max)
            && parts.all(|(ended, missed)| missed <= ended && *ended <= ops_max)
    }
}
