//! What a coordinator has agents do, and what they answer: the contents of the steps of a run.

mod changes;
mod live;
mod outcome;
mod probe;
mod seen;

use std::collections::BTreeMap;

use plimsoll_conduct::{FilesReady, FoundObjects};
use plimsoll_model::Interface;
use plimsoll_record::schema::{ClientEvidence, FilesStage, FilesTarget};
use plimsoll_workload::plan::SetIndex;
use plimsoll_workload::plan::spec::PacingSpec;
use plimsoll_workload::{ExistingObject, Share};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use crate::content::ContentDoc;
use crate::fabric::Kept;
pub use changes::ChangesDoc;
pub use live::{LiveDoc, NewSeen};
pub use outcome::{OutcomeDoc, StageBounds, StageEndDoc};
pub(crate) use outcome::{are_bounded, ended_by};
pub use probe::{ProbeCountsDoc, ProbeDoc};
pub use seen::SeenDoc;

/// A content that is here, or that is too large for a message and kept by the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held<T> {
    /// Here it is.
    Here(T),
    /// It is kept there.
    Kept(Kept),
}

/// The files of a record that are kept by the fabric, each with what it is called in the record.
pub type HandedFiles = Vec<(String, Kept)>;

/// What an agent is to do in a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Make a part of a run ready.
    Open(Box<Assignment>),
    /// Make a stage ready.
    Stage(Box<StageOrder>),
    /// Begin it.
    Start {
        /// When its first operation may start, by the agent's clock of the run.
        at_ns: u64,
    },
    /// Hand in what was recorded.
    HandIn {
        /// Why stages ended that agents were told to end, where nobody stopped the run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ended: Vec<StageEndDoc>,
    },
    /// Hand in what was kept of a run that is over.
    Collect,
    /// Keep what was handed in for the coordinator no longer: it is safe.
    Forget {
        /// Whether it stays nevertheless, as a record of the agent's own.
        stays: bool,
    },
    /// Remove the files that the run has written.
    Clean {
        /// Whether this agent does it; it does not where another one removes those of all.
        sweeps: bool,
    },
}

/// A part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The workload, in the language of workload files.
    pub workload: Held<Value>,
    /// Fixes every choice.
    pub seed: u64,
    /// How much of the workers each part has, in the order of the parts.
    pub weights: Vec<u32>,
    /// What people call the agent of each part: jobs may name one.
    #[serde(default)]
    pub names: Vec<String>,
    /// Which of them this is, 0-based.
    pub part: usize,
    /// How the targets are reached. Only whoever opens targets understands it; it may hold secrets.
    pub access: Value,
    /// How operations are driven.
    pub conduct: ConductDoc,
    /// By set: what was found of what was there before.
    pub found: Held<BTreeMap<usize, Vec<FoundDoc>>>,
    /// The files that content is made of.
    pub content: Held<ContentDoc>,
    /// What the record of the part has to show when it is handed in; only this agent is told.
    pub receipt: String,
}

/// How operations are driven, whatever they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConductDoc {
    /// Threads that drive those on objects; `None`: as many as the agent has cores.
    pub threads: Option<usize>,
    /// An operation is given up after this long.
    pub op_timeout_ns: u64,
    /// Further attempts after a transient failure.
    pub retries: u8,
    /// How those on files are driven.
    #[serde(default)]
    pub files: FilesConductDoc,
}

/// How operations on files are driven.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesConductDoc {
    /// How they reach the kernel, by name; `None`: by the best that the agent's machine has.
    pub interface: Option<Interface>,
    /// Threads that drive jobs whose interface does not block; `None`: as many as there are cores.
    pub threads: Option<usize>,
    /// Whether all caches of the machine are emptied before stages that go through them.
    pub drop_machine_caches: bool,
}

/// What is known of a stage on files that an agent has made ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesReadyDoc {
    /// As records have it.
    stage: FilesStage,
    /// By job: how its operations reach the kernel.
    interfaces: Vec<Option<Interface>>,
    /// The numbers of the parts whose files do not show there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<usize>,
}

impl FilesReadyDoc {
    /// Returns it, to be sent.
    pub fn of(ready: FilesReady) -> Self {
        let FilesReady { stage, interfaces, unseen } = ready;
        Self { stage, interfaces, unseen }
    }

    /// Returns it as it was sent.
    pub fn ready(self) -> FilesReady {
        let Self { stage, interfaces, unseen } = self;
        FilesReady { stage, interfaces, unseen }
    }
}

/// An object that was there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundDoc {
    /// Its key.
    pub key: String,
    /// Its size, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// A stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageOrder {
    /// Which stage of the workload, 0-based.
    pub stage: usize,
    /// What it is called, where not as there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// After how many operations of all parts a job ends, where not as there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<(usize, u64)>,
    /// When the operations of a job start, where not as there: the job and what workload files say
    /// as `pacing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<(usize, PacingSpec)>,
    /// What it is to a search, where it is a probe of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeDoc>,
    /// What the stage before has changed in all parts.
    pub before: Held<ChangesDoc>,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The part is made ready.
    Opened {
        /// How many threads drive its operations.
        threads: usize,
        /// The addresses of all targets, in order.
        #[serde(deserialize_with = "one_line_each")]
        endpoints: Vec<String>,
        /// The machine, as records describe it.
        machine: Value,
        /// By target: where its files lie, where it is files.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<Option<FilesTarget>>,
    },
    /// The stage is made ready.
    Ready {
        /// What is known of its files, where it has some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<FilesReadyDoc>,
    },
    /// It is over.
    Ended {
        /// What came of it.
        outcome: Box<OutcomeDoc>,
        /// What it has changed.
        changes: Held<ChangesDoc>,
        /// What the agent's clock of the run shows.
        now_ns: u64,
        /// What is known of its files, where it had some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<Box<FilesStage>>,
        /// What was seen of it while it worked.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        evidence: Vec<ClientEvidence>,
    },
    /// What was recorded is kept by the fabric, in order.
    HandedIn {
        /// The files: of a long run more than a message holds.
        files: Held<HandedFiles>,
        /// What is missing of what was recorded, a sentence each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[serde(deserialize_with = "one_line_each")]
        losses: Vec<String>,
    },
    /// It is forgotten.
    Forgotten,
    /// The files are removed.
    Cleaned {
        /// How many there were.
        files_count: u64,
    },
    /// The agent cannot do it.
    Failed {
        /// Why.
        #[serde(deserialize_with = "one_line")]
        why: String,
    },
}

/// Reads a text that an agent chose and the coordinator prints: a line feed in it would begin what
/// looks like a line of the coordinator's own.
fn one_line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(String::deserialize(from)?.replace(char::is_control, " "))
}

/// The same for several.
fn one_line_each<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    Ok(texts.iter().map(|text| text.replace(char::is_control, " ")).collect())
}

impl Assignment {
    /// Returns the part of all workers; `None` where the numbers mean none.
    pub fn share(&self) -> Option<Share> {
        Share::by_weight(&self.weights)?.get(self.part).copied()
    }
}

/// Returns what was found, to be sent.
pub fn found_to(found: &FoundObjects) -> BTreeMap<usize, Vec<FoundDoc>> {
    let object = |object: &ExistingObject| FoundDoc { key: object.key.clone(), size: object.size };
    found.iter().map(|(set, objects)| (set.0, objects.iter().map(object).collect())).collect()
}

/// Returns what was found, as it was sent.
pub fn found_from(found: BTreeMap<usize, Vec<FoundDoc>>) -> FoundObjects {
    let object = |FoundDoc { key, size }| ExistingObject { key, size };
    let of_set = |(set, objects): (usize, Vec<FoundDoc>)| {
        (SetIndex(set), objects.into_iter().map(object).collect())
    };
    found.into_iter().map(of_set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_says_begins_no_line_of_its_own() {
        let said = Answer::Failed { why: "no disk\r\nerror: the run is lost\x1b[2J".to_owned() };
        let sent = serde_json::to_string(&said).unwrap();
        let Answer::Failed { why } = serde_json::from_str(&sent).unwrap() else { panic!("{sent}") };
        assert_eq!(why, "no disk  error: the run is lost [2J");
        let said = serde_json::json!({"opened": {"threads": 1, "endpoints": ["a:1\nerror"],
            "machine": null}});
        let Ok(Answer::Opened { endpoints, .. }) = serde_json::from_value(said.clone()) else {
            panic!("{said}")
        };
        assert_eq!(endpoints, ["a:1 error"]);
    }
}
