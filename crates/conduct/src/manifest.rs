//! The manifest of a run as it begins.

use plimsoll_model::RunId;
use plimsoll_record::schema::{
    Cleanup, CleanupState, ClockInfo, Manifest, RecordedWorkload, RunSchema, RunState, Target, Tool,
};
use serde_json::Value;

use crate::{RunTime, machine};

/// What is known of how the program was built.
#[derive(Clone, Copy, Debug, Default)]
pub struct Built {
    /// The commit of its source.
    pub commit: Option<&'static str>,
    /// The profile of Cargo.
    pub profile: Option<&'static str>,
    /// The target, as Rust names it.
    pub target: Option<&'static str>,
}

/// What is known of a run that is about to begin, besides its workload.
pub struct Opening<'a> {
    /// Its name.
    pub id: &'a RunId,
    /// What the load is put on.
    pub target: Target,
    /// Its time.
    pub time: &'a RunTime,
    /// The command line, secrets replaced.
    pub command_line: Vec<String>,
    /// How the program was built.
    pub built: Built,
    /// What `plimsoll prove` had found on the machine, as that command wrote it.
    pub certificate: Option<Value>,
}

impl<'a> Opening<'a> {
    /// Returns the opening of a run that no command line asked for.
    pub fn of_nobody(id: &'a RunId, target: Target, time: &'a RunTime) -> Self {
        Self {
            id,
            target,
            time,
            command_line: Vec::new(),
            built: Built::default(),
            certificate: None,
        }
    }
}

/// Returns the manifest of a run of that workload and seed that is about to begin.
pub fn of_workload(
    opening: Opening<'_>,
    workload: impl Into<RecordedWorkload>,
    seed: u64,
) -> Manifest {
    let Opening { id, target, time, command_line, built, certificate } = opening;
    let cleanup = match target.prefix {
        Some(_) => CleanupState::Pending,
        None => CleanupState::NotNeeded,
    };
    Manifest {
        schema: RunSchema::V1,
        run_id: id.as_str().to_owned(),
        state: RunState::Running,
        state_reason: None,
        tool: Tool {
            name: Some("plimsoll".to_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            commit: built.commit.map(str::to_owned),
            profile: built.profile.map(str::to_owned),
            built_for: built.target.map(str::to_owned),
        },
        command_line,
        started_unix_ns: time.wall_epoch.as_unix_ns(),
        started_at: time.wall_epoch.to_string(),
        clock: ClockInfo { source: Some(time.describe().to_owned()), resolution_ns: None },
        seed,
        machine: machine::describe(),
        target,
        more_targets: Vec::new(),
        workload: workload.into(),
        stages: Vec::new(),
        recorder: None,
        cleanup: Cleanup {
            state: cleanup,
            objects_removed_count: None,
            files_removed_count: None,
            took_ns: None,
        },
        advice: Vec::new(),
        notes: Vec::new(),
        first_errors: Vec::new(),
        merged: Vec::new(),
        receipt: None,
        agents: Vec::new(),
        events: Vec::new(),
        scraped: Vec::new(),
        virtual_time: time.virtual_time.is_some(),
        certificate,
    }
}
