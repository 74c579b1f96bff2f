//! Other tools, a room each: what their job files and command lines ask for, with a note of every
//! meaning that changes on the way, and their layouts of a result.
//!
//! Pure functions over values: what else is needed (included files, variables, the size of the
//! machine, the report of a run) is handed in. Knows neither the engine nor a driver.

pub mod cosbench;
pub mod fio;
pub mod fit;
pub mod mdtest;
pub mod s3_benchmark;
pub mod warp;
pub mod weed_benchmark;

mod command_line;
mod correction;
mod figures;
mod spelling;

#[cfg(test)]
mod document_tests;

pub use command_line::{LineError, Note};
use plimsoll_workload::plan::spec::{Arrivals, OpenSpec, PacingSpec, RateSpec};
use plimsoll_workload::plan::{FieldPath, InvalidField, Segment};

/// Returns the flag of a field that was refused: of the last one on the way to it that has any.
pub fn flag_of<'a>(path: &FieldPath, flags: &[(&str, &'a str)]) -> Option<&'a str> {
    let fields = path.segments().iter().rev().filter_map(|segment| match segment {
        Segment::Field(name) => Some(name),
        Segment::Index(_) => None,
    });
    let flag = |name| flags.iter().find(|(field, _)| *field == name).map(|(_, flag)| *flag);
    fields.map(|name| flag(&**name)).find_map(|flag| flag)
}

/// Returns a refusal of a workload in the words of who wrote it: `words` are fields and what stands
/// for them, the last field of the path that has one first.
pub fn in_words(refused: &InvalidField, words: &[(&str, &str)]) -> String {
    match flag_of(&refused.path, words) {
        Some(word) => format!("{word}: {}", refused.reason),
        None => refused.to_string(),
    }
}

/// Returns the schedule of `--rate`, `--arrivals` and `--max-in-flight`.
pub fn schedule(
    rate: &str,
    arrivals: Option<&str>,
    max_in_flight: Option<u32>,
) -> Result<PacingSpec, String> {
    let rate = rate.parse().map_err(|reason| format!("--rate: {reason}"))?;
    let open = OpenSpec::of(RateSpec::Rate(rate));
    let arrivals = arrivals.map(|law| law.parse().map(Arrivals)).transpose();
    Ok(PacingSpec::Open(OpenSpec {
        arrivals: arrivals.map_err(|reason| format!("--arrivals: {reason}"))?.unwrap_or_default(),
        max_in_flight: max_in_flight.unwrap_or(open.max_in_flight),
        ..open
    }))
}
