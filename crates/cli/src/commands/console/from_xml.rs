//! COSBench's XML as the console takes it in.

use anyhow::Error;
use plimsoll_console::{Correction, Facts, Problem, Refusal, Severity, SourceKind, Trigger};
use plimsoll_dialects::cosbench::{self, Lowered, Options, StageRole, Workload};
use plimsoll_workload::plan::{TargetSecrets, WorkloadFile};

use crate::flags;

/// What the dialect says of scripts.
const TRIGGER_NOTE: &str = "`trigger` is ignored";

/// What an XML came to, besides the workload of ours.
pub(super) struct FromXml {
    pub(super) secrets: TargetSecrets,
    description: Option<String>,
    corrections: Vec<Correction>,
    triggers: Vec<Trigger>,
    /// What COSBench calls each stage of ours, if it has a name for it.
    ids: Vec<Option<String>>,
    /// The number of COSBench's stage that each stage of ours is a part of.
    parts_of: Vec<usize>,
    /// For a refusal in its words.
    workload: Workload,
    lowered: Lowered,
}

impl FromXml {
    /// Reads an XML; also returns the workload of ours, and remarks.
    pub(super) fn read(text: &str) -> Result<(Self, WorkloadFile, Vec<String>), Refusal> {
        let workload = cosbench::read(text.as_bytes()).map_err(refused)?;
        let lowered = cosbench::lower(&workload, &Options::default()).map_err(refused)?;
        let ids = ids(&workload, &lowered);
        let parts_of = lowered.stages.iter().map(|stage| stage.stage + 1).collect();
        let Lowered { file, secrets, notes, corrections, .. } = lowered.clone();
        let correction = |of: cosbench::Correction| Correction {
            what: of.of.to_owned(),
            theirs: of.there.to_owned(),
            ours: of.here.to_owned(),
        };
        let own = workload.trigger.clone().map(|call| Trigger { stage: None, call });
        let of_stages = (1..).zip(&workload.stages).filter_map(|(number, stage)| {
            Some(Trigger { stage: Some(number), call: stage.trigger.clone()? })
        });
        // Here they are run, or it is refused.
        let notes = notes.into_iter().filter(|note| !note.contains(TRIGGER_NOTE)).collect();
        let read = Self {
            secrets,
            description: workload.description.clone(),
            corrections: corrections.into_iter().map(correction).collect(),
            triggers: own.into_iter().chain(of_stages).collect(),
            ids,
            parts_of,
            workload,
            lowered,
        };
        Ok((read, file, notes))
    }

    /// Returns the refusal of what it came to, in words of the XML and with the line of it.
    pub(super) fn refusal(&self, error: &Error) -> Option<Refusal> {
        let field = flags::refused_field(error)?;
        Some(refused(self.lowered.refusal(&self.workload, field)))
    }

    /// Adds to what is known of the workload.
    pub(super) fn complete(&self, facts: &mut Facts) {
        facts.description.clone_from(&self.description);
        facts.corrections.clone_from(&self.corrections);
        facts.triggers.clone_from(&self.triggers);
        for (stage, id) in facts.stages.iter_mut().zip(&self.ids) {
            stage.id.clone_from(id);
        }
        for (stage, number) in facts.stages.iter_mut().zip(&self.parts_of) {
            stage.part_of = Some(*number);
        }
    }
}

fn ids(workload: &Workload, lowered: &Lowered) -> Vec<Option<String>> {
    let id = |stage: &cosbench::LoweredStage| match stage.role {
        StageRole::Main => {
            let name = &workload.stages.get(stage.stage)?.name;
            Some(format!("s{}-{name}", stage.stage + 1))
        }
        _ => None,
    };
    lowered.stages.iter().map(id).collect()
}

/// Returns a refusal: what COSBench says first, as scripts look for its words.
fn refused(refused: cosbench::Refused) -> Refusal {
    let message = match refused.words {
        Some(words) => format!("{words}: {}", refused.more),
        None => refused.more,
    };
    let problem = Problem {
        severity: Severity::Error,
        message,
        line: refused.place.map(|place| place.line.into()),
        column: refused.place.map(|place| place.column.into()),
    };
    Refusal { kind: SourceKind::Cosbench, problems: vec![problem] }
}
