//! The report for programs: one JSON object, `plimsoll.report/2`, as the model's types say it.
//!
//! Its description is `docs/formats/report.schema.json`. Times are integers of nanoseconds, unknown
//! is null.

#[cfg(feature = "schema")]
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::Report;

/// The name and version of the format; a field that changes its meaning gets a new one.
pub const SCHEMA: &str = "plimsoll.report/2";

/// Returns the report as one JSON object.
pub fn render(report: &Report) -> Value {
    let mut document =
        serde_json::to_value(report).expect("the report has text keys and finite numbers");
    // In virtual time nothing depends on the machine.
    if report.virtual_time {
        document["recorder_wait_ns"] = Value::Null;
        let stages = document["stages"].as_array_mut();
        for stage in stages.into_iter().flatten() {
            stage["client_cpu_ns"] = Value::Null;
        }
    }
    document
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
