//! The report for programs: one JSON object, `plimsoll.report/1`, as the model's types say it.
//!
//! Its description is `docs/formats/report.schema.json`. Times are integers of nanoseconds, unknown
//! is null.

#[cfg(feature = "schema")]
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use crate::Report;

/// The name and version of the format; a field that changes its meaning gets a new one.
pub const SCHEMA: &str = "plimsoll.report/1";

/// Returns reports, or one of them, in lines for programs and people. They are written as they are
/// gone through: as a tree of values a report of many stages takes several times the memory.
pub fn text(reports: &impl Serialize) -> String {
    serde_json::to_string_pretty(reports).expect("reports have text keys and finite numbers") + "\n"
}

/// Returns a report as a tree of values.
pub(crate) fn value(report: &Report) -> Value {
    serde_json::to_value(report).expect("the report has text keys and finite numbers")
}

/// Returns the JSON Schema of the report, as it stands in `docs/formats/report.schema.json`.
#[cfg(feature = "schema")]
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Report>().to_value()
}

#[cfg(test)]
#[path = "json_files_tests.rs"]
mod files_tests;
#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
