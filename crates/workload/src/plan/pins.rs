//! Jobs whose workers are all on one agent of a fleet, which the workload names.
//!
//! The numbers of workers stay as they are, so what each does does too; only who runs them differs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::checked::{Job, Plan, Stage};
use super::path::InvalidField;
use super::work::Work;
use crate::Share;

/// Agents that jobs name and that are not there, each with these jobs as `stage/job`.
pub type UnknownAgents = BTreeMap<String, Vec<String>>;

impl Job {
    /// Returns which of its workers are in a share of all work.
    pub fn workers_of(&self, share: Share) -> Range<u32> {
        share.among(self.weights.as_deref()).of_workers(self.workers)
    }
}

impl Stage {
    /// Returns the share that somebody has of what is limited for all jobs of the stage.
    pub fn share_of(&self, share: Share) -> Share {
        share.among(self.weights.as_deref())
    }

    fn pinned(&self) -> impl Iterator<Item = (&Job, &str)> {
        self.jobs.iter().filter_map(|job| Some((job, job.agent.as_deref()?)))
    }

    /// Tells whether any of its jobs is on an agent that it names.
    pub fn has_pins(&self) -> bool {
        self.weights.is_some()
    }
}

impl Plan {
    /// Tells which jobs name agents, each with the agent.
    pub fn pinned(&self) -> impl Iterator<Item = (&Stage, &Job, &str)> {
        let of_stage = |stage| Stage::pinned(stage).map(move |(job, agent)| (stage, job, agent));
        self.stages.iter().flat_map(of_stage)
    }

    /// Returns how many workers of a stage work on names of which the same share has worked on in
    /// the stage before that had them, so that a machine may answer from what it has cached; `None`
    /// where there is no such stage.
    pub fn names_kept_count(&self, stage: usize, shares: &[Share]) -> Option<u32> {
        let names = |job: &Job| match job.work {
            Work::Names { set, act, .. } if !act.is_of_tree() => Some((set, job.deal.shift)),
            _ => None,
        };
        let stage_jobs = &self.stages.get(stage)?.jobs;
        let (job, (set, shift)) = stage_jobs.iter().find_map(|job| Some((job, names(job)?)))?;
        let mut before = self.stages[..stage].iter().rev().flat_map(|stage| &stage.jobs);
        let (job_before, (_, shift_before)) = before.find_map(|job| {
            let of = names(job).filter(|(of, _)| *of == set)?;
            Some((job, of))
        })?;
        let share_of = |worker: u64, of: &Job| {
            let has = |share: &Share| {
                let own = of.workers_of(*share);
                (u64::from(own.start)..u64::from(own.end)).contains(&worker)
            };
            shares.iter().position(has)
        };
        let count = u64::from(job.workers.get());
        let kept = |worker: &u64| {
            let names = (worker + u64::from(shift)) % count;
            let worker_before = (names + count - u64::from(shift_before) % count) % count;
            share_of(*worker, job) == share_of(worker_before, job_before)
        };
        // Trees whose names are of fewer workers than there were are those of the first.
        Some((0..count).filter(kept).count() as u32)
    }

    /// Has jobs be on the agents that they name, of these with their weights in the order of their
    /// parts. Agents that are named in a stage have no workers of its other jobs. A job that names
    /// an agent that is not there is one of all; what these are is returned.
    pub fn pin(&mut self, agents: &[(&str, u32)]) -> Result<UnknownAgents, InvalidField> {
        let mut unknown = UnknownAgents::new();
        for stage in &mut self.stages {
            let is_there = |name: &str| agents.iter().any(|(agent, _)| *agent == name);
            for job in &stage.jobs {
                if let Some(agent) = job.agent.as_deref().filter(|agent| !is_there(agent)) {
                    let jobs = unknown.entry(agent.to_owned()).or_default();
                    jobs.push(format!("{}/{}", stage.name, job.name));
                }
            }
            pin(stage, agents)?;
        }
        unknown.values_mut().for_each(|jobs| jobs.dedup());
        Ok(unknown)
    }
}

/// Has the jobs of a stage be on the agents that they name.
fn pin(stage: &mut Stage, agents: &[(&str, u32)]) -> Result<(), InvalidField> {
    let is_there = |name: &str| agents.iter().any(|(agent, _)| *agent == name);
    let named: Vec<String> = stage
        .jobs
        .iter()
        .filter_map(|job| job.agent.clone())
        .filter(|name| is_there(name))
        .collect();
    if named.is_empty() {
        return Ok(());
    }
    let is_named = |agent: &str| named.iter().any(|name| name == agent);
    let mut in_all = vec![0; agents.len()];
    for job in &mut stage.jobs {
        let weight = |(agent, weight): &(&str, u32)| match &job.agent {
            // Who is named is meant, also without a weight.
            Some(name) if is_there(name) => {
                if agent == name {
                    (*weight).max(1)
                } else {
                    0
                }
            }
            _ if is_named(agent) => 0,
            _ => *weight,
        };
        let weights: Arc<[u32]> = agents.iter().map(weight).collect();
        if weights.iter().all(|weight| *weight == 0) {
            let reason = "no agent is left for it: all that carry the run out are named by other \
                          jobs of its stage (`agent`)";
            return Err(job.path.refuse(reason));
        }
        for (all, own) in in_all.iter_mut().zip(&*weights) {
            *all = (*all).max(*own);
        }
        job.weights = Some(weights);
    }
    stage.weights = Some(in_all.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::plan::WorkloadFile;

    const FILE: &str = "schema: plimsoll.workload/2
name: pins
sets: {o: {count: 8, size: 1KiB}}
stages:
- {prepares: true, jobs: [{workers: 4, work: {fill: o}}]}
- name: main
  duration: 1s
  jobs:
  - {name: a, workers: 4, agent: d2, work: {objects: [{get: o}]}}
  - {name: b, workers: 6, work: {objects: [{stat: o}]}}
  - {name: c, workers: 2, agent: nobody, work: {objects: [{stat: o}]}}
";

    fn plan() -> Plan {
        WorkloadFile::from_yaml("t", FILE).unwrap().check().unwrap()
    }

    /// Returns by job of a stage the workers that each agent has.
    fn workers(plan: &Plan, stage: usize, weights: &[u32]) -> Vec<Vec<Range<u32>>> {
        let shares = Share::by_weight(weights).unwrap();
        let of_job = |job: &Job| shares.iter().map(|share| job.workers_of(*share)).collect();
        plan.stages[stage].jobs.iter().map(of_job).collect()
    }

    #[test]
    fn a_pinned_job_is_its_agents_and_others_are_those_of_others() {
        let mut plan = plan();
        let unknown = plan.pin(&[("d1", 1), ("d2", 1), ("d3", 2)]).unwrap();
        assert_eq!(unknown, [("nobody".to_owned(), vec!["main/c".to_owned()])].into());
        let weights = [1, 1, 2];
        assert_eq!(workers(&plan, 0, &weights), [[0..1, 1..2, 2..4]]);
        let main = workers(&plan, 1, &weights);
        assert_eq!(main[0], [0..0, 0..4, 4..4]);
        assert_eq!(main[1], [0..2, 2..2, 2..6]);
        assert_eq!(main[2], [0..0, 0..0, 0..2]);
        // What is limited for all is cut among those that have workers.
        let all = Share::by_weight(&weights).unwrap();
        let cut: Vec<_> = all.iter().map(|share| plan.stages[1].share_of(*share).of(8)).collect();
        assert_eq!(cut, [0..2, 2..4, 4..8]);
        assert!(plan.stages[1].has_pins() && !plan.stages[0].has_pins());
        // One process has all of it, pinned or not.
        assert_eq!(plan.stages[1].jobs[0].workers_of(Share::WHOLE), 0..4);
    }

    #[test]
    fn every_worker_has_one_agent_whoever_is_named() {
        for agents in [&[("d2", 3), ("x", 1)][..], &[("x", 0), ("y", 2), ("d2", 0)]] {
            let mut plan = plan();
            plan.pin(agents).unwrap();
            let weights: Vec<u32> = agents.iter().map(|(_, weight)| *weight).collect();
            for (stage, of) in plan.stages.iter().enumerate() {
                for (job, parts) in of.jobs.iter().zip(workers(&plan, stage, &weights)) {
                    let all: Vec<u32> = parts.into_iter().flatten().collect();
                    assert_eq!(all, (0..job.workers.get()).collect::<Vec<_>>(), "{}", job.name);
                }
            }
        }
    }

    #[test]
    fn a_job_that_nobody_is_left_for_is_refused() {
        let refused = plan().pin(&[("d2", 1)]).unwrap_err().to_string();
        assert!(refused.starts_with("stages[1].jobs[1]: no agent is left for it"), "{refused}");
        let mut plan = plan();
        assert_eq!(plan.pin(&[("d1", 1)]).unwrap().len(), 2);
        assert_eq!(workers(&plan, 1, &[1])[0].first(), Some(&(0..4)));
        assert_eq!(plan.pinned().map(|(_, _, agent)| agent).collect::<Vec<_>>(), ["d2", "nobody"]);
    }
}
