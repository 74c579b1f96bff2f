//! The workload library: each file is sound at its full size, and runs small on the embedded store
//! or in a temporary directory.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_workload::plan::{WorkloadFile, read_as};
use serde_json::{Map, Value, json};

use crate::harness::{oracle, printed};
use crate::workloads::{File, place, repository, runs};

/// What the first line of each file says to editors.
const SCHEMA_LINE: &str = "# yaml-language-server: $schema=";
/// By how much objects and ranges are smaller here than in the file.
const SMALLER: u64 = 64;
/// The least part that the embedded store takes.
const PART: &str = "5MiB";
/// The size of what is uploaded in parts: two whole ones and a rest.
const IN_PARTS: &str = "11MiB";
/// The largest file on a file system.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Returns the files, read from their directory: a new one is tested by being there.
fn library() -> Vec<PathBuf> {
    let directory = repository().join("workloads");
    let entries = fs::read_dir(directory).unwrap();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path().canonicalize().unwrap()).collect();
    found.sort();
    assert_eq!(found.len(), 10, "{found:?}");
    found
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn each_is_sound_at_its_full_size_and_documented() {
    let page = fs::read_to_string(repository().join("docs/howto/workload-library.md")).unwrap();
    for path in library() {
        let (name, text) = (name_of(&path), fs::read_to_string(&path).unwrap());
        // A store that is named is not asked by a check, nor is there too little room on it.
        let line = format!("run {} --check --host 127.0.0.1:1", path.display());
        assert_eq!(printed(place().path(), &line), format!("{}: sound\n", path.display()));
        let schema = text.lines().next().unwrap().strip_prefix(SCHEMA_LINE).expect("a schema");
        let schema = path.parent().unwrap().join(schema).canonicalize().unwrap();
        assert!(schema.ends_with("docs/formats/workload-2.json"), "{name}: {}", schema.display());
        let called = WorkloadFile::from_yaml(&name, &text).unwrap().check().unwrap().name;
        assert_eq!(format!("{called}.yaml"), name, "a run is called as its file");
        assert!(text.contains(&format!("plimsoll run workloads/{name}")), "{name}: how to run it");
        for part in
            ["# Question: ", "sources\n", "assumed", "[1]", "What the language does not say"]
        {
            assert!(text.contains(part), "{name} lacks `{part}`");
        }
        assert!(page.contains(&format!("`workloads/{name}`")), "{name} is not on the page");
    }
}

#[test]
fn each_runs_small() {
    for path in library() {
        let name = name_of(&path);
        let mut tree: Value = read_as(&name, &fs::read_to_string(&path).unwrap()).unwrap();
        shrink(&mut tree);
        let text = serde_json::to_string_pretty(&tree).unwrap();
        let small = tempfile::tempdir().unwrap();
        let path = small.path().join(&name);
        fs::write(&path, &text).unwrap();
        let plan = WorkloadFile::from_yaml(&name, &text).unwrap().check().unwrap();
        let target = oracle();
        runs(&target, &File { name, path, plan });
    }
}

/// Makes a workload small: the same stages, jobs, mixes and laws, with few and small members and
/// short times. Rates stay.
fn shrink(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(shrink),
        Value::Object(fields) => shrink_fields(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn shrink_fields(fields: &mut Map<String, Value>) {
    let (in_parts, on_files) = (fields.contains_key("part"), fields.contains_key("files"));
    let at_most = |value: &mut Value, most: u64| {
        if let Some(number) = value.as_u64() {
            *value = json!(number.min(most));
        }
    };
    for (field, value) in fields {
        match field.as_str() {
            "size" if in_parts => *value = json!(IN_PARTS),
            "size" if on_files => *value = json!(bytes(text(value)).min(FILE_BYTES_MAX)),
            "size" | "range" => shrink_size(value),
            "part" => *value = json!(PART),
            "count" => at_most(value, if in_parts { 4 } else { 40 }),
            "parts" if value.is_u64() => at_most(value, 2),
            "each" | "at_once" => at_most(value, 2),
            "ops" if value.is_u64() => at_most(value, 16),
            "workers" | "files" => at_most(value, 4),
            "branching" | "entries" => at_most(value, 3),
            "batch" => at_most(value, 10),
            "duration" => *value = json!("500ms"),
            "pause" => *value = json!("2ms"),
            "start_delay" => *value = json!("0s..10ms"),
            _ => shrink(value),
        }
    }
}

/// Makes a size small, or each size that a law of sizes names.
fn shrink_size(value: &mut Value) {
    match value {
        Value::String(size) => *size = smaller(size),
        Value::Object(law) => law.values_mut().for_each(shrink_size),
        Value::Array(bars) => {
            for bar in bars {
                let Value::Object(bar) = bar else { panic!("{bar} is no bar") };
                *bar = std::mem::take(bar)
                    .into_iter()
                    .map(|(size, weight)| (smaller(&size), weight))
                    .collect();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => panic!("{value} is no size"),
    }
}

fn smaller(size: &str) -> String {
    let ends = size.split("..").map(|end| format!("{}B", (bytes(end) / SMALLER).max(100)));
    ends.collect::<Vec<_>>().join("..")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no size"))
}

fn bytes(size: &str) -> u64 {
    let at = size.find(|sign: char| !sign.is_ascii_digit()).expect("a size has a unit");
    let unit = match &size[at..] {
        "B" => 1,
        "KB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        other => panic!("{other} is no unit"),
    };
    size[..at].parse::<u64>().unwrap() * unit
}

#[test]
fn a_workload_is_shrunk() {
    let mut tree = json!({
        "sets": {
            "a": {"count": 5000, "size": {"shares": [{"1MiB": 2}, {"64KB": 1}]}},
            "b": {"count": 9, "size": {"uniform": "1GiB..2GiB"}, "part": "64MiB"},
            "c": {"files": 64, "size": "64MiB", "workers": 50},
        },
        "stages": [{"duration": "5m", "jobs": [{"ops": {"each": 208}, "work": {"objects": [
            {"get": "a", "weight": 90, "range": {"log_uniform": "64KiB..1MiB"}},
        ]}}]}],
    });
    shrink(&mut tree);
    let expected = json!({
        "sets": {
            "a": {"count": 40, "size": {"shares": [{"16384B": 2}, {"1000B": 1}]}},
            "b": {"count": 4, "size": "11MiB", "part": "5MiB"},
            "c": {"files": 4, "size": 1_048_576, "workers": 4},
        },
        "stages": [{"duration": "500ms", "jobs": [{"ops": {"each": 2}, "work": {"objects": [
            {"get": "a", "weight": 90, "range": {"log_uniform": "1024B..16384B"}},
        ]}}]}],
    });
    assert_eq!(tree, expected);
}
