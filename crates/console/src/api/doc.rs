//! The documents of the API: what they hold is what `docs/formats/console.openapi.json` says.

use serde::{Deserialize, Serialize};

use crate::facts::{Correction, StageState};
use crate::runner::{Agent, Problem};
use crate::state::{SourceKind, State};

/// Why something was refused.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ErrorDoc {
    /// What.
    pub(crate) error: ErrorBody,
}

/// What went wrong.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ErrorBody {
    /// A word for programs.
    pub(crate) code: &'static str,
    /// A sentence for people.
    pub(crate) message: String,
    /// Of a workload: what is wrong with it, and where.
    pub(crate) problems: Vec<Problem>,
}

/// Who asks, and what the console is.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SessionDoc {
    /// Null: nobody is signed in.
    pub(crate) user: Option<String>,
    /// `form`, or `none` where nobody is asked.
    pub(crate) sign_in: &'static str,
    /// What a request by cookie that changes something says in `X-Plimsoll-CSRF`.
    pub(crate) csrf_token: Option<String>,
    pub(crate) expires_at_ms: Option<i64>,
    pub(crate) version: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) time_ms: i64,
    pub(crate) concurrency: Option<u32>,
    pub(crate) upload_bytes_max: u64,
    pub(crate) features: FeaturesDoc,
}

/// What the console was started with.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FeaturesDoc {
    pub(crate) fleet: bool,
    pub(crate) triggers: bool,
}

/// Somebody signs in.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SignInDoc {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// A run in short.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunDoc {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: SourceKind,
    pub(crate) state: State,
    pub(crate) user: String,
    pub(crate) submitted_at_ms: i64,
    pub(crate) began_at_ms: Option<i64>,
    pub(crate) ended_at_ms: Option<i64>,
    /// 1-based place in the queue, while it waits.
    pub(crate) order: Option<u64>,
    pub(crate) stages_count: i64,
    /// The stage that goes on.
    pub(crate) stage: Option<StageShortDoc>,
    /// 0 to 1.
    pub(crate) progress: Option<f64>,
    pub(crate) ops: Vec<String>,
    pub(crate) ops_count: Option<i64>,
    pub(crate) ops_failed_count: Option<i64>,
    pub(crate) bytes_count: Option<i64>,
    pub(crate) has_record: bool,
    pub(crate) error: Option<String>,
    /// What went wrong with COSBench's archive of it.
    pub(crate) archive_error: Option<String>,
}

/// A stage in short.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StageShortDoc {
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) state: StageState,
}

/// A state and since when.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StateAtDoc<S> {
    pub(crate) state: S,
    pub(crate) at_ms: i64,
}

/// A stage of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StageDoc {
    pub(crate) number: usize,
    /// As COSBench names it: `s3-main`.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: StageState,
    pub(crate) prepares: bool,
    pub(crate) delay_ns: Option<u64>,
    pub(crate) began_at_ms: Option<i64>,
    pub(crate) ended_at_ms: Option<i64>,
    pub(crate) planned_ns: Option<u64>,
    pub(crate) states: Vec<StateAtDoc<StageState>>,
    pub(crate) error: Option<String>,
    pub(crate) jobs: Vec<JobDoc>,
}

/// A job of a stage.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct JobDoc {
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) state: StageState,
    pub(crate) workers_count: u32,
    pub(crate) agents: Vec<String>,
    pub(crate) work: String,
    pub(crate) began_at_ms: Option<i64>,
    pub(crate) ended_at_ms: Option<i64>,
    /// Null where that is not known: of a stage of more than 16 jobs while it goes on.
    pub(crate) ops_count: Option<u64>,
    pub(crate) ops_failed_count: Option<u64>,
    pub(crate) bytes_count: Option<u64>,
    pub(crate) error: Option<String>,
}

/// A run with all that is known of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunFullDoc {
    #[serde(flatten)]
    pub(crate) run: RunDoc,
    pub(crate) description: Option<String>,
    pub(crate) states: Vec<StateAtDoc<State>>,
    pub(crate) stages: Vec<StageDoc>,
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) corrections: Vec<Correction>,
    pub(crate) touches: Vec<String>,
    pub(crate) targets: Vec<String>,
    pub(crate) files: Vec<FileDoc>,
    pub(crate) has_workload: bool,
    pub(crate) agents: Vec<String>,
    pub(crate) resubmitted_from: Option<String>,
}

/// A file of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FileDoc {
    pub(crate) name: String,
    pub(crate) size_bytes: u64,
    pub(crate) about: Option<String>,
}

/// What is going on.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct OverviewDoc {
    pub(crate) time_ms: i64,
    pub(crate) agents: Vec<Agent>,
    /// Those that run, and those that wait in their order.
    pub(crate) active: Vec<RunDoc>,
    /// The last that ended.
    pub(crate) recent: Vec<RunDoc>,
    /// How many there are in each state.
    pub(crate) counts: std::collections::BTreeMap<&'static str, i64>,
}

/// Who carries workloads out.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AgentsDoc {
    pub(crate) agents: Vec<Agent>,
}

/// A part of the list of runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunsDoc {
    pub(crate) runs: Vec<RunDoc>,
    /// What to say as `cursor` for what comes next.
    pub(crate) next: Option<String>,
    pub(crate) total_count: i64,
}

/// The queue.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ActiveDoc {
    pub(crate) active: Vec<RunDoc>,
}

/// A workload that is submitted.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SubmitDoc {
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) file_name: Option<String>,
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// `last` or `first`.
    #[serde(default)]
    pub(crate) to: Option<String>,
}

/// A workload that was taken in.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SubmittedDoc {
    pub(crate) id: String,
    pub(crate) problems: Vec<Problem>,
}

/// Where in the queue a run goes: one of these.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MoveDoc {
    #[serde(default)]
    pub(crate) before: Option<String>,
    #[serde(default)]
    pub(crate) after: Option<String>,
    /// `first`, `last`, `up` or `down`.
    #[serde(default)]
    pub(crate) to: Option<String>,
}

/// A workload that is judged.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckDoc {
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) file_name: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckedDoc {
    pub(crate) ok: bool,
    pub(crate) kind: SourceKind,
    pub(crate) name: Option<String>,
    pub(crate) problems: Vec<Problem>,
    /// How it is understood, as YAML, without secrets.
    pub(crate) lowered: Option<String>,
    pub(crate) touches: Vec<String>,
    /// Buckets for which the console's configuration gives no leave.
    pub(crate) needs_leave: Vec<String>,
    pub(crate) stages: Vec<CheckedStageDoc>,
    pub(crate) corrections: Vec<Correction>,
}

/// A stage of a workload that was judged.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckedStageDoc {
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) planned_ns: Option<u64>,
    pub(crate) delay_ns: Option<u64>,
    pub(crate) jobs: Vec<CheckedJobDoc>,
}

/// A job of a workload that was judged.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckedJobDoc {
    pub(crate) name: String,
    pub(crate) workers_count: u32,
    pub(crate) work: String,
}

/// The text of a workload, without secrets.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorkloadDoc {
    pub(crate) text: String,
    pub(crate) file_name: Option<String>,
    pub(crate) lowered: String,
}

/// What was said of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LogDoc {
    pub(crate) log: Vec<LogLineDoc>,
    pub(crate) last: i64,
}

/// Something that was said of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LogLineDoc {
    pub(crate) seq: i64,
    pub(crate) at_ms: i64,
    /// `info`, `warning` or `error`.
    pub(crate) level: String,
    pub(crate) agent: Option<String>,
    pub(crate) text: String,
}
