//! Which stage comes next.

use plimsoll_analysis::load_line::ProbeAsked;
use plimsoll_model::ProbeRole;
use plimsoll_workload::plan::{Amount, JobPacing, Plan};

use crate::Done;

/// Which stage comes next, as somebody decides who looks at those that are done.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Which stage of the plan it is made after, 0-based.
    pub stage: usize,
    /// What it is called, where not as that one.
    pub name: Option<String>,
    /// When the operations of one of its jobs start, where not as in that one.
    pub pacing: Option<(usize, JobPacing)>,
    /// After how many operations one of its jobs ends, where not as in that one.
    pub ops: Option<(usize, u64)>,
    /// What it is to a search, where it is a probe of one.
    pub probe: Option<ChosenProbe>,
}

impl Chosen {
    /// Returns a stage of the plan as it is.
    pub const fn plain(stage: usize) -> Self {
        Self { stage, name: None, pacing: None, ops: None, probe: None }
    }

    /// Returns the plan with the stage as it is chosen; `None` where it has no such stage or job.
    pub fn in_plan(&self, plan: &Plan) -> Option<Plan> {
        let mut plan = plan.clone();
        let stage = plan.stages.get_mut(self.stage)?;
        if let Some((job, pacing)) = &self.pacing {
            stage.jobs.get_mut(*job)?.pacing = pacing.clone();
        }
        if let Some((job, ops)) = self.ops {
            stage.jobs.get_mut(job)?.ops_max = Some(Amount::All(ops));
        }
        if let Some(ProbeAsked { job, lasts, .. }) = self.probe.as_ref().map(|probe| &probe.asked) {
            stage.jobs.get(usize::from(job.0))?;
            stage.jobs.iter_mut().for_each(|job| job.duration = Some(*lasts));
        }
        Some(plan)
    }
}

/// Decides which stage comes next; `None` ends the run.
pub type Chooser<'a> = Box<dyn FnMut(&Plan, &[Done]) -> Option<Chosen> + 'a>;

/// A stage that is a probe of a search: operations of it are due for as long as is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenProbe {
    /// What it is made for; `None`: a closed loop, to find out where to begin.
    pub role: Option<ProbeRole>,
    /// What is counted of it.
    pub asked: ProbeAsked,
}
