//! The manifest of a run as it begins.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use plimsoll_conduct::input;
use plimsoll_model::{RunId, WallTime};
use plimsoll_record::schema::{
    Cleanup, CleanupState, ClockInfo, Machine, Manifest, RunSchema, RunState, Target, Tool,
};
use plimsoll_report::proof::{Certificate, PROOF_SCHEMA};
use serde_json::Value;

/// Returns where the record of a run lies.
pub(crate) fn directory_for(asked: Option<&Path>, run: &RunId) -> PathBuf {
    asked.map_or_else(|| PathBuf::from(format!("plimsoll-{run}")), Path::to_path_buf)
}

/// Reads a certificate that `plimsoll prove` wrote.
pub(crate) fn certificate(path: Option<&Path>) -> Result<Option<Value>> {
    let Some(path) = path else { return Ok(None) };
    let named = || format!("--certificate {}", path.display());
    let text = input::read_given(path).with_context(named)?;
    let read: serde_json::Result<Certificate> = serde_json::from_str(&text);
    let certificate = read.with_context(|| format!("{} is no certificate", named()))?;
    if certificate.schema != PROOF_SCHEMA {
        bail!("{}: `{}` is not {PROOF_SCHEMA}", named(), certificate.schema);
    }
    Ok(Some(serde_json::from_str(&text)?))
}

/// Returns the manifest of a record that another tool made.
pub(crate) fn foreign(id: &RunId, epoch: WallTime, endpoints: Vec<String>) -> Manifest {
    Manifest {
        schema: RunSchema::V1,
        run_id: id.as_str().to_owned(),
        state: RunState::Complete,
        state_reason: None,
        tool: Tool { name: "warp".to_owned(), version: "unknown".to_owned(), commit: None },
        command_line: Vec::new(),
        started_unix_ns: epoch.as_unix_ns(),
        started_at: epoch.to_string(),
        clock: ClockInfo {
            source: "wall clock, as recorded by warp".to_owned(),
            resolution_ns: None,
        },
        seed: 0,
        machine: Machine::default(),
        target: Target::bare("s3", endpoints),
        more_targets: Vec::new(),
        workload: Value::Null.into(),
        stages: Vec::new(),
        recorder: None,
        cleanup: Cleanup {
            state: CleanupState::NotNeeded,
            objects_removed_count: None,
            took_ns: None,
        },
        advice: Vec::new(),
        notes: Vec::new(),
        first_errors: Vec::new(),
        merged: Vec::new(),
        virtual_time: false,
        certificate: None,
    }
}
