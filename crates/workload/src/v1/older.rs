//! Reads workloads that are written in an older language.

use serde::Deserialize;

use super::{FILES_SCHEMA, FilesSpec, InvalidWorkload, SPEC_SCHEMA, WorkloadSpec};
use crate::plan::{WorkloadFile, read_as};

impl WorkloadFile {
    /// Reads a workload of an older language and returns the language's name with it; `None` where
    /// the text does not say that it is one. `file` is what a refusal calls it.
    pub fn read_older(file: &str, text: &str) -> Option<(&'static str, Result<Self, String>)> {
        match &*schema_of(text)? {
            SPEC_SCHEMA => Some((SPEC_SCHEMA, read(file, text, WorkloadSpec::checked))),
            FILES_SCHEMA => Some((FILES_SCHEMA, read(file, text, FilesSpec::checked))),
            _ => None,
        }
    }
}

/// Reads a spec that `checked` converts.
fn read<S: for<'de> Deserialize<'de>>(
    file: &str,
    text: &str,
    checked: impl Fn(&S) -> Result<WorkloadFile, InvalidWorkload>,
) -> Result<WorkloadFile, String> {
    let spec = read_as(file, text).map_err(|refused| refused.to_string())?;
    checked(&spec).map_err(|refused| format!("{file}: {refused}"))
}

/// Returns the language that a text says it is written in.
fn schema_of(text: &str) -> Option<String> {
    let schema = |line: &str| {
        let name = line.strip_prefix("schema:")?.split('#').next()?;
        Some(name.trim().trim_matches(['"', '\'']).to_owned())
    };
    text.lines().find_map(schema)
}
