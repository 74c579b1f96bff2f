//! Agents are told their parts of a run, and make them ready.

use std::time::Duration;

use plimsoll_conduct::{BegunRun, CallerError};
use plimsoll_record::schema::Agent;
use plimsoll_workload::Share;
use plimsoll_workload::plan::Stage;

use super::{Lead, THREADS_MAX, WHY_CHARS_MAX, in_words};
use crate::content::{path_of, ship};
use crate::contents::hold;
use crate::fabric::Space;
use crate::pki::fresh_word;
use crate::roll::Recruit;
use crate::wire::{Answer, Assignment, Order, found_to};

impl Lead {
    /// Tells each agent its part, and learns what it is.
    pub(super) fn assign(&mut self, run: &BegunRun) -> Result<(), CallerError> {
        let receipts: Vec<String> = self.agents.iter().map(|_| fresh_word()).collect();
        for (agent, receipt) in self.agents.iter_mut().zip(&receipts) {
            agent.receipt = Some(receipt.clone());
        }
        self.make_spaces()?;
        let assignment = self.assignment(run)?;
        let order = |part: usize| {
            let receipt = receipts[part].clone();
            Order::Open(Box::new(Assignment { part, receipt, ..assignment.clone() }))
        };
        let stop = run.recording.stop.flag();
        self.step(order, &|| stop.is_set())?;
        let sent = std::mem::take(&mut self.settings.content);
        if !sent.is_empty() {
            // Agents have it now; what is left after an error goes with all that is of the run.
            let _ = self.fabric.remove(&Space::Shared, &path_of(&self.run));
        }
        let expected: Vec<String> = run.recording.manifest.endpoints().cloned().collect();
        self.jobs = run.placed().plan.stages.iter().map(|stage| stage.jobs.len()).collect();
        self.lasts = run.placed().plan.stages.iter().map(lasts).collect();
        self.pinned = run.placed().plan.stages.iter().map(Stage::has_pins).collect();
        self.endpoints = expected.len();
        for (index, answer) in self.answers() {
            self.take_opened(index, answer, &expected)?;
        }
        Ok(())
    }

    /// Has the fabric keep what agents hand in, of each what lies below its receipt.
    pub(super) fn make_spaces(&self) -> Result<(), CallerError> {
        let space = |(recruit, agent): (&Recruit, &Agent)| {
            (recruit.id.clone(), agent.receipt.clone().unwrap_or_default())
        };
        let spaces: Vec<_> = self.recruits.iter().zip(&self.agents).map(space).collect();
        Ok(self.fabric.make(&spaces)?)
    }

    /// Returns the assignment that all parts share.
    fn assignment(&self, run: &BegunRun) -> Result<Assignment, CallerError> {
        let weights: Vec<u32> = self.recruits.iter().map(|each| each.about.weight).collect();
        if Share::by_weight(&weights).is_none() {
            return Err("no agent takes any load: give one a weight".into());
        }
        let shared = |what: &str| format!("{}/{what}", self.run);
        let fabric = &*self.fabric;
        let workload = serde_json::to_value(&run.placed().plan.file)?;
        let workload = hold(fabric, &Space::Shared, shared("workload"), workload)?;
        let found = hold(fabric, &Space::Shared, shared("found"), found_to(run.found()))?;
        Ok(Assignment {
            workload,
            seed: run.recording.manifest.seed,
            names: self.agents.iter().map(|agent| agent.name.clone()).collect(),
            weights,
            part: 0,
            access: self.settings.access.clone(),
            conduct: self.settings.conduct.clone(),
            found,
            content: ship(fabric, &self.run, &self.settings.content)?,
            receipt: String::new(),
        })
    }

    /// Takes what an agent tells of the part that it has made ready; `expected` are the addresses
    /// of all targets.
    fn take_opened(
        &mut self,
        index: usize,
        answer: Option<Answer>,
        expected: &[String],
    ) -> Result<(), CallerError> {
        let name = self.agents[index].name.clone();
        match answer {
            Some(Answer::Opened { threads, endpoints, machine, files }) => {
                if endpoints != expected {
                    let told: String = endpoints.join(", ").chars().take(WHY_CHARS_MAX).collect();
                    return Err(format!(
                        "agent {name} would send to {told}, and this machine to {}: name hosts \
                         that mean the same everywhere",
                        expected.join(", ")
                    )
                    .into());
                }
                let agent = &mut self.agents[index];
                let threads = u32::try_from(threads).unwrap_or(THREADS_MAX);
                agent.threads_count = threads.min(THREADS_MAX);
                agent.machine = serde_json::from_value(machine).ok();
                if self.files.targets.is_empty() {
                    self.files.targets = files;
                }
            }
            Some(Answer::Failed { why }) => {
                let why: String = why.chars().take(WHY_CHARS_MAX).collect();
                return Err(format!("agent {name} cannot take part: {why}").into());
            }
            Some(_) => return Err(format!("agent {name} answers something else").into()),
            None => {
                let losses = self.shared.state().losses.clone();
                let loss = losses.iter().find(|(of, _)| *of == index);
                let why = loss.map_or_else(String::new, |(_, loss)| in_words(loss));
                return Err(format!("agent {name} cannot take part: {why}").into());
            }
        }
        Ok(())
    }
}

/// Returns how long a stage lasts; `None` where a job ends after so many operations.
fn lasts(stage: &Stage) -> Option<Duration> {
    stage.jobs.iter().try_fold(Duration::ZERO, |longest, job| {
        let duration = job.duration.or(stage.duration)?;
        Some(longest.max(*job.start_delay.end() + job.ramp + duration + job.ramp_down))
    })
}
