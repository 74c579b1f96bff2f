//! The manifest of a run as it begins.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use plimsoll_conduct::input;
use plimsoll_model::{RunId, WallTime};
use plimsoll_report::proof::{Certificate, PROOF_SCHEMA};
use plimsoll_workload::mix64;
use serde_json::Value;

/// Returns where the record of a run lies.
pub(crate) fn directory_for(asked: Option<&Path>, run: &RunId) -> PathBuf {
    asked.map_or_else(|| PathBuf::from(format!("plimsoll-{run}")), Path::to_path_buf)
}

/// A seed that no other run has, short enough to be typed again.
pub(crate) fn fresh_seed(at: WallTime) -> u64 {
    let process = u64::from(rustix::process::getpid().as_raw_nonzero().get() as u32);
    mix64(at.as_unix_ns() ^ process.rotate_left(48)) >> 32
}

/// Reads a certificate that `plimsoll prove` wrote.
pub(crate) fn certificate(path: Option<&Path>) -> Result<Option<Value>> {
    let Some(path) = path else { return Ok(None) };
    let named = || format!("--certificate {}", path.display());
    let text = input::read_given(path).with_context(named)?;
    let read: serde_json::Result<Certificate> = serde_json::from_str(&text);
    let certificate = read.with_context(|| format!("{} is not a certificate", named()))?;
    if certificate.schema != PROOF_SCHEMA {
        bail!("{}: `{}` is not {PROOF_SCHEMA}", named(), certificate.schema);
    }
    Ok(Some(serde_json::from_str(&text)?))
}
