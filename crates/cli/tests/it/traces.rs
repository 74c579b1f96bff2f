//! Traces for Perfetto keep the rules of the Trace Event Format: a reader that knows nothing else,
//! and that takes no field for granted, reads each event.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use plimsoll_oracle::Script;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::harness::{Target, oracle, printed, run, scripted};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Trace {
    trace_events: Vec<Event>,
    display_time_unit: String,
    other_data: Map<String, Value>,
}

/// A complete event, or one that says something of a process or a thread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "ph")]
enum Event {
    #[serde(rename = "X")]
    Complete {
        name: String,
        cat: String,
        pid: u32,
        tid: u32,
        ts: f64,
        dur: f64,
        #[serde(rename = "args")]
        _args: Map<String, Value>,
    },
    #[serde(rename = "M")]
    Metadata { name: String, pid: u32, tid: u32, args: Map<String, Value> },
}

/// Returns the nanoseconds of a time in microseconds, as Perfetto takes it.
fn ns(microseconds: f64) -> u64 {
    assert!(microseconds.is_finite() && microseconds >= 0.0, "{microseconds}");
    (microseconds * 1_000.0).round() as u64
}

/// Reads a trace strictly and returns how many slices each category has.
#[track_caller]
fn read(path: &Path) -> BTreeMap<String, u64> {
    let trace: Trace = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert!(["ms", "ns"].contains(&&*trace.display_time_unit));
    assert!(trace.other_data.contains_key("run_id"));
    let (mut processes, mut threads) = (BTreeSet::new(), BTreeSet::new());
    let mut open: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    let mut slices = BTreeMap::new();
    for event in trace.trace_events {
        match event {
            Event::Metadata { name, pid, tid, args } => {
                let has_name = || args["name"].as_str().is_some_and(|name| !name.is_empty());
                match &*name {
                    "process_name" => assert!(has_name() && processes.insert(pid), "{pid} twice"),
                    // Perfetto takes a thread of two processes for one that changed its process.
                    "thread_name" => assert!(has_name() && threads.insert(tid), "{tid} twice"),
                    "process_sort_index" | "thread_sort_index" => {
                        assert!(args["sort_index"].is_u64(), "{args:?}");
                    }
                    _ => panic!("{name} is not in the format"),
                }
            }
            Event::Complete { name, cat, pid, tid, ts, dur, .. } => {
                assert!(!name.is_empty() && !cat.is_empty());
                assert!(processes.contains(&pid) && threads.contains(&tid), "{pid} {tid}");
                let (begin, end) = (ns(ts), ns(ts) + ns(dur));
                let open = open.entry(tid).or_default();
                while open.last().is_some_and(|(_, last)| *last <= begin) {
                    open.pop();
                }
                // Slices of a thread are apart, or one lies within the other.
                if let Some((first, last)) = open.last() {
                    assert!(
                        *first <= begin && end <= *last,
                        "{name} of track {tid}, {begin} to {end}, leaves {first} to {last}"
                    );
                }
                open.push((begin, end));
                *slices.entry(cat).or_default() += 1;
            }
        }
    }
    slices
}

fn made(target: &Target, place: &Path, name: &str, line: &str) {
    let output = run(target.command(place, &format!("{line} -q --run-dir {name}")));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {output:?}");
}

/// Returns how many operations of a kind the report has in the stages of its result.
fn reported(place: &Path, name: &str, kind: &str) -> u64 {
    let report = printed(place, &format!("analyze {name} --json"));
    let report: Value = serde_json::from_str(&report).unwrap();
    let of_stage = |stage: &Value| -> u64 {
        let rows = stage["rows"].as_array().unwrap().iter();
        let kinds = rows.flat_map(|row| row["kinds"].as_array().unwrap());
        let counts = kinds.filter(|each| each["kind"] == kind).map(|each| {
            let count = |field: &str| each["stage_total"][field].as_u64().unwrap();
            count("ops_ok_count") + count("ops_failed_count")
        });
        counts.sum()
    };
    report["stages"].as_array().unwrap().iter().map(of_stage).sum()
}

#[test]
fn traces_of_all_kinds_of_runs_keep_the_rules_of_the_format() {
    let (target, directory) = (oracle(), tempfile::tempdir().unwrap());
    let place = directory.path();
    let open = "s3 get --objects 20 --obj.size 10KiB --concurrent 4 --rate 300/s --duration 1s";
    made(&target, place, "open", open);
    // Merged, the stage in which the second prepares lies across the measured one of the first.
    for part in ["part-1", "part-2"] {
        made(&target, place, part, "s3 delete --objects 200 --batch 10 --concurrent 4");
    }
    printed(place, "merge part-1 part-2 -o merged -q");
    let faults = "schema: plimsoll.oracle/1\nservice: {time: {constant: 300us}}\n\
                  faults: {get: {slow_down: 1.0}}\n";
    let failing = scripted(Some(Script::from_yaml(faults).unwrap()));
    made(&failing, place, "failing", "s3 get --objects 20 --obj.size 1KiB --duration 500ms");
    printed(place, "file metadata --dir . --jobs 2 --files 20 -q --run-dir names");
    for (name, stages, kind) in
        [("open", 2, "GET"), ("merged", 2, "DELETE"), ("failing", 2, "GET"), ("names", 6, "STAT")]
    {
        printed(place, &format!("export {name} -o {name}.trace.json"));
        let slices = read(&place.join(format!("{name}.trace.json")));
        assert_eq!(slices["stage"], stages, "{name}: {slices:?}");
        let expected = reported(place, name, kind);
        assert!(expected > 0 && slices[kind] == expected, "{name}: {slices:?}, {expected}");
    }
}
