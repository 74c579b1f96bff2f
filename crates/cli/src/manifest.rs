//! The manifest of a run as it begins.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use plimsoll_conduct::input;
use plimsoll_model::RunId;
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
