//! What files of COSBench come to.

use super::*;
use plimsoll_workload::plan::WorkloadFile;

mod anything;
mod corrections;
mod files;
mod fork;
mod mixes;
mod notes;
mod refusals;
mod stages;
mod storages;

/// Returns a workload of one stage with these works on no storage.
fn of_works(works: &str) -> String {
    of_storage("<storage type=\"none\"/>", works)
}

/// Returns a workload of one stage with these works.
fn of_storage(storage: &str, works: &str) -> String {
    of_stages(&format!(
        "{storage}\n<workflow>\n<workstage name=\"main\">\n{works}\n</workstage>\n</workflow>"
    ))
}

/// Returns a workload of these elements.
fn of_stages(inside: &str) -> String {
    format!("<workload name=\"w\">\n{inside}\n</workload>")
}

/// Returns normal work of 4 workers for a minute with these operations.
fn work(operations: &str) -> String {
    format!("<work name=\"m\" workers=\"4\" runtime=\"60\">{operations}</work>")
}

/// Returns what a text comes to.
#[track_caller]
fn lowered(text: &str) -> Lowered {
    let workload = read(text.as_bytes()).unwrap_or_else(|refused| panic!("{refused}\n{text}"));
    let lowered = lower(&workload, &Options::default());
    let lowered = lowered.unwrap_or_else(|refused| panic!("{refused}\n{text}"));
    if let Err(refused) = lowered.file.check() {
        panic!("{refused}\n{text}\n{}", json(&lowered.file));
    }
    lowered
}

/// Returns the workload in JSON, in one line.
fn json(file: &WorkloadFile) -> String {
    serde_json::to_string(file).unwrap()
}

/// Returns a part of the workload in JSON, by its pointer.
#[track_caller]
fn part(lowered: &Lowered, pointer: &str) -> String {
    let all = serde_json::to_value(&lowered.file).unwrap();
    all.pointer(pointer).unwrap_or_else(|| panic!("{pointer} in {all}")).to_string()
}

/// Checks a part of the workload, by its pointer.
#[track_caller]
fn check_part(lowered: &Lowered, pointer: &str, expected: &str) {
    let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
    assert_eq!(part(lowered, pointer), expected.to_string());
}

/// Returns the text of a refusal.
#[track_caller]
fn refusal(text: &str) -> String {
    let lowered = read(text.as_bytes())
        .and_then(|workload| lower(&workload, &Options::default()))
        .map(|lowered| json(&lowered.file));
    match lowered {
        Err(refused) => refused.to_string(),
        Ok(taken) => panic!("it is taken: {taken}"),
    }
}
