//! What the console needs of whoever can run workloads: it judges them, carries them out, and tells
//! who would help.

use std::path::Path;
use std::sync::Arc;

use plimsoll_conduct::{Endpoint, Observer, Stop};
use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::state::SourceKind;

/// Carries workloads out.
pub trait Runner: Send + Sync {
    /// Judges a workload as a run would before it touches anything.
    fn check(&self, submission: &Submission<'_>) -> Result<Sound, Refusal>;

    /// Carries a workload out on the calling thread, and returns when it has ended.
    fn run(&self, job: &Job<'_>) -> Result<Verdict, String>;

    /// Returns who would carry a workload out; the first call after a while may take a moment.
    fn agents(&self) -> Vec<Agent>;

    /// Tells whether a fleet carries workloads out.
    fn has_fleet(&self) -> bool {
        false
    }
}

/// A workload as it is submitted.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// The text.
    pub text: &'a str,
    /// What the file is called that it came in.
    pub file_name: Option<&'a str>,
    /// Instead of the workload's own name.
    pub name: Option<&'a str>,
    /// Names of buckets, with `*` and `?`, that may be changed although no run made them.
    pub touch: &'a [String],
    /// Whether stores may be asked who made the buckets that it changes.
    pub asks: bool,
}

/// A workload that can be run.
#[derive(Clone, Debug)]
pub struct Sound {
    /// In which language it is written.
    pub kind: SourceKind,
    /// What it is called.
    pub name: String,
    /// How it is understood, as YAML, without secrets.
    pub explained: String,
    /// What is known of it.
    pub facts: Facts,
    /// Buckets that it changes, and that nobody gave leave for.
    pub needs_leave: Vec<String>,
    /// Warnings and notes.
    pub problems: Vec<Problem>,
    /// Every host that it names, each with whether it is spoken to over TLS; `None` if that is not
    /// known before it runs.
    pub hosts: Option<Vec<(Endpoint, bool)>>,
}

/// Why a workload cannot be run.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// In which language it is written, as far as that can be told.
    pub kind: SourceKind,
    /// At least one error.
    pub problems: Vec<Problem>,
}

/// Something about a workload that its author should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// How much it weighs.
    pub severity: Severity,
    /// What it is.
    pub message: String,
    /// Where it stands, 1-based.
    pub line: Option<u64>,
    /// The column, 1-based, in characters.
    pub column: Option<u64>,
}

/// How much a problem weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The workload cannot be run.
    Error,
    /// It can, but not as its author may think.
    Warning,
    /// A remark.
    Note,
}

impl Problem {
    /// Returns an error without a place.
    pub fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, message: message.into(), line: None, column: None }
    }

    /// Returns a remark without a place.
    pub fn note(message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, message: message.into(), line: None, column: None }
    }
}

/// A workload that is to be carried out.
pub struct Job<'a> {
    /// What people call it: `w7`.
    pub id: &'a str,
    /// The workload, with its secrets.
    pub submission: Submission<'a>,
    /// Where its record goes.
    pub run_directory: &'a Path,
    /// Who is told.
    pub observer: Arc<dyn Observer>,
    /// What ends it.
    pub stop: Stop,
}

/// How a run that came to its end went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is as it should be.
    Good,
    /// Something about the result is not, such as too many failures; with what is to be said of it
    /// wherever the run is named.
    Flawed(Option<String>),
}

/// Who carries workloads out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    /// What people call it.
    pub name: String,
    /// Where it is, where that is known.
    pub address: Option<String>,
    /// Whether it can take part.
    pub state: AgentState,
    /// Its clock less that of this machine.
    pub clock_offset_ms: Option<f64>,
    /// How busy its machine is, 0 to 100.
    pub cpu_percent: Option<f64>,
    /// How many cores it has.
    pub cores_count: Option<u64>,
    /// The version of its program.
    pub version: Option<String>,
    /// When it was last heard of.
    pub seen_at_ms: Option<i64>,
    /// What it is part of.
    pub run: Option<String>,
}

/// How an agent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// It waits for work.
    Ready,
    /// It is part of a run.
    Busy,
    /// It is not there.
    Away,
}
