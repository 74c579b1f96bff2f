//! The manifest of a run as it begins.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use plimsoll_conduct::{Opening, RunTime, input};
use plimsoll_driver::Driver;
use plimsoll_driver_s3::{Lookup, S3Config};
use plimsoll_model::{RunId, WallTime};
use plimsoll_record::schema::{
    Cleanup, CleanupState, ClockInfo, Machine, Manifest, RunSchema, RunState, Target, Tool,
};
use plimsoll_report::proof::{Certificate, PROOF_SCHEMA};
use plimsoll_workload::{KeyLayout, WorkloadSpec};
use serde_json::Value;

use crate::args::s3::StoreArgs;
use crate::said;

/// Returns the manifest of a run that is about to begin.
pub(crate) fn begin<D: Driver>(
    id: &RunId,
    spec: &WorkloadSpec,
    store: &StoreArgs,
    config: &S3Config,
    driver: &D,
    time: &RunTime,
) -> Manifest {
    let keys = &spec.keys;
    let layout = KeyLayout::for_run(&keys.prefix, id.as_str(), keys.per_worker);
    let lookup = match config.lookup {
        Lookup::Auto => "auto",
        Lookup::Path => "path",
        Lookup::Dns => "dns",
    };
    let target = Target {
        kind: "s3".to_owned(),
        endpoints: driver.endpoints(),
        bucket: Some(store.bucket.clone()),
        prefix: spec.objects.existing.is_none().then_some(layout.base),
        region: config.region.clone(),
        lookup: Some(lookup.to_owned()),
        tls: Some(config.tls.is_some()),
        payload_signing: Some(if config.sign_payload { "sha256" } else { "unsigned" }.to_owned()),
        files: None,
    };
    bare(id, spec, target, time)
}

/// Returns a manifest for any target.
pub(crate) fn bare(id: &RunId, spec: &WorkloadSpec, target: Target, time: &RunTime) -> Manifest {
    let workload = serde_json::to_value(spec).unwrap_or_default();
    of_workload(id, (workload, spec.seed), target, time)
}

/// Returns a manifest for any workload.
pub(crate) fn of_workload(
    id: &RunId,
    (workload, seed): (Value, u64),
    target: Target,
    time: &RunTime,
) -> Manifest {
    let opening = Opening {
        command_line: said::command_line(),
        commit: option_env!("PLIMSOLL_BUILT_OF"),
        ..Opening::of_nobody(id, target, time)
    };
    plimsoll_conduct::of_workload(opening, workload, seed)
}

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
