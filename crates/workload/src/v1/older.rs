//! Reads workloads that are written in an older language.

use super::{FILES_SCHEMA, FilesSpec, SPEC_SCHEMA, WorkloadSpec};
use crate::plan::WorkloadFile;

impl WorkloadFile {
    /// Reads a workload of an older language and returns the language's name with it; `None` where
    /// the text does not say that it is one.
    pub fn read_older(text: &str) -> Option<(&'static str, Result<Self, String>)> {
        match &*schema_of(text)? {
            SPEC_SCHEMA => Some((SPEC_SCHEMA, objects(text))),
            FILES_SCHEMA => Some((FILES_SCHEMA, files(text))),
            _ => None,
        }
    }
}

fn objects(text: &str) -> Result<WorkloadFile, String> {
    let spec = WorkloadSpec::from_yaml(text)?;
    spec.check().map_err(|refused| refused.to_string())?;
    WorkloadFile::try_from(&spec).map_err(|refused| refused.to_string())
}

fn files(text: &str) -> Result<WorkloadFile, String> {
    let spec = FilesSpec::from_yaml(text)?;
    spec.check().map_err(|refused| refused.to_string())?;
    WorkloadFile::try_from(&spec).map_err(|refused| refused.to_string())
}

/// Returns the language that a text says it is written in.
fn schema_of(text: &str) -> Option<String> {
    let schema = |line: &str| {
        let name = line.strip_prefix("schema:")?.split('#').next()?;
        Some(name.trim().trim_matches(['"', '\'']).to_owned())
    };
    text.lines().find_map(schema)
}
