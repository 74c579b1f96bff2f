//! The files of a run that agents carry out: what they tell of them, and their removal.

use std::collections::BTreeSet;

use plimsoll_conduct::{FilesReady, Recording};
use plimsoll_record::schema::{
    self, Cleanup, CleanupState, ClientEvidence, FilesStage, FilesTarget,
};
use plimsoll_report::format;

use super::Lead;
use crate::wire::{Answer, Order};

/// What is known of the files of a run.
#[derive(Default)]
pub(super) struct OnFiles {
    /// By target: where its files lie, as the first agent tells.
    pub(super) targets: Vec<Option<FilesTarget>>,
    /// Whether every agent sees what each of them makes.
    are_shared: bool,
    /// What the agents tell of the stage that has ended.
    pub(super) stage: Option<FilesStage>,
    /// What they tell that was seen of them while it ran.
    pub(super) evidence: Vec<ClientEvidence>,
}

impl OnFiles {
    /// Adds to the record of the stage that has ended what the agents tell of its files.
    pub(super) fn note_end(&self, entry: &mut schema::Stage) {
        entry.evidence.clone_from(&self.evidence);
        let Some(stage) = &self.stage else { return };
        entry.note_unverified(stage.unverified_bytes);
        // The ends were noted with what came of the stage.
        if let Some(files) = &mut entry.files {
            let FilesStage { usage, unverified_bytes, .. } = stage.clone();
            (files.usage, files.unverified_bytes) = (usage, unverified_bytes);
        }
    }
}

/// Returns what an agent tells that was seen of it, under the name by which it is known here, and
/// no more than one client has.
pub(super) fn evidence(name: &str, told: Vec<ClientEvidence>) -> Option<ClientEvidence> {
    let mut own = told.into_iter().next()?;
    own.agent = Some(name.to_owned());
    own.run_id = None;
    own.truncate();
    Some(own)
}

impl Lead {
    /// Returns what agents tell of the files of a stage that they have made ready, as one.
    pub(super) fn ready(&mut self, told: Vec<FilesReady>) -> Option<FilesReady> {
        let stages: Vec<&FilesStage> = told.iter().map(|ready| &ready.stage).collect();
        let stage = FilesStage::sum(&stages)?;
        let jobs = told.iter().map(|ready| ready.interfaces.len()).min().unwrap_or(0);
        let interface = |job: usize| {
            let mut all = told.iter().map(|ready| ready.interfaces[job]);
            let first = all.next()?;
            first.filter(|_| all.all(|interface| interface == first))
        };
        let interfaces = (0..jobs).map(interface).collect();
        let unseen = told.iter().flat_map(|ready| &ready.unseen).copied();
        let unseen: BTreeSet<usize> = unseen.filter(|part| *part < self.agents.len()).collect();
        self.files.are_shared = unseen.is_empty();
        Some(FilesReady { stage, interfaces, unseen: unseen.into_iter().collect() })
    }

    /// Has the agents remove the files that they wrote: one of them where they share them.
    pub(super) fn have_files_removed(&mut self, recording: &Recording) -> (Cleanup, bool) {
        let begun = recording.now();
        // Who has come back no longer has the run's directories open.
        let (back, left): (Vec<usize>, Vec<usize>) =
            self.left().into_iter().partition(|index| self.agents[*index].lost.is_some());
        let shared = self.files.are_shared;
        let sweeps = |index: usize| match shared {
            true => left.first() == Some(&index),
            false => left.contains(&index),
        };
        let is_stopped = || recording.stop.is_step_stopped();
        let stepped = self.step(|index| Order::Clean { sweeps: sweeps(index) }, &is_stopped);
        let mut trouble: Vec<String> =
            stepped.err().map(|error| error.to_string()).into_iter().collect();
        let mut count: u64 = 0;
        for (index, answer) in self.answers() {
            let name = &self.agents[index].name;
            match answer {
                Some(Answer::Cleaned { .. }) if back.contains(&index) && !shared => {
                    trouble.push(format!("agent {name} was lost, and what it wrote is there"));
                }
                Some(Answer::Cleaned { files_count }) => count = count.saturating_add(files_count),
                Some(Answer::Failed { why }) => trouble.push(format!("agent {name}: {why}")),
                Some(_) => trouble.push(format!("agent {name} answers something else")),
                None if shared => {}
                None => trouble.push(format!("agent {name} is lost, and what it wrote is there")),
            }
        }
        if left.is_empty() {
            trouble.push("no agent is left that could remove the files".to_owned());
        }
        let is_clean = trouble.is_empty();
        for trouble in trouble {
            recording.observer.warn(&format!(
                "{trouble}; `plimsoll clean` with this run's directory, on a machine that has the \
                 files, finishes the job"
            ));
        }
        recording.observer.note(&format!("removed {} files", format::count(count)));
        let cleanup = Cleanup {
            state: if is_clean { CleanupState::Complete } else { CleanupState::Failed },
            objects_removed_count: Some(count),
            files_removed_count: Some(count),
            took_ns: Some(recording.now().since(begun).as_nanos() as u64),
        };
        (cleanup, is_clean)
    }
}
