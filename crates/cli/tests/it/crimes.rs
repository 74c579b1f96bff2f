//! What may mislead, each by a record in which nothing else does: runs in virtual time, which are
//! then taken for real ones on a store or a disk elsewhere.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::printed;

const STORE: &str = "schema: plimsoll.oracle/1\nservice: {time: {exponential: {mean: 2ms}}}\n";
const OPEN: &str = "{open: {rate: 50/s, arrivals: poisson, max_in_flight: 64}}";

/// A workload with a store, or files, of which nothing is to be said.
struct Fixture {
    seed: u64,
    /// Lines before the sets.
    top: &'static str,
    set: &'static str,
    fill: &'static str,
    pacing: &'static str,
    work: &'static str,
    seconds: u64,
    script: &'static str,
    /// What is changed in its record.
    change: fn(&mut Value),
}

/// Uploads by users who do not wait, for a minute, to a store elsewhere.
const OBJECTS: Fixture = Fixture {
    seed: 7,
    top: "",
    set: "{count: 2000, size: 4KiB}",
    fill: "",
    pacing: OPEN,
    work: "{objects: [{put: s}]}",
    seconds: 60,
    script: STORE,
    change: |_| {},
};

/// Reads of files past the page cache, of more than fits into memory.
const FILES: Fixture = Fixture {
    top: "targets: {files: {directory: /d}}\n",
    set: "{files: 4, size: 4MiB}",
    fill: "{sets: s, block: 1MiB, direct: true}",
    work: "{blocks: {on: s, read: {block: 64KiB}, order: uniform, direct: true}}",
    ..OBJECTS
};

const DOWNLOADS: Fixture = Fixture { fill: "s", work: "{objects: [{get: s}]}", ..OBJECTS };

/// A store that is slow enough for a closed loop of a minute to be a short record.
const SLOW: &str = "schema: plimsoll.oracle/1\nservice: {time: {exponential: {mean: 20ms}}}\n";

/// Eight workers on files that take 20 ms, and for the first 8 s of the minute 80 ms.
const WARMING: Fixture = Fixture {
    pacing: "closed",
    script: "schema: plimsoll.oracle/1\nservice: {time: {exponential: {mean: 20ms}}}\n\
             brownouts:\n- {from: 0s, lasting: 8s, factor: 4}\n",
    ..FILES
};

impl Fixture {
    fn workload(&self) -> String {
        let Self { seed, top, set, fill, pacing, work, seconds, .. } = self;
        let fill = match *fill {
            "" => String::new(),
            fill => format!(
                "- {{name: prepare, prepares: true, jobs: [{{workers: 4, work: {{fill: {fill}}}}}]}}\n"
            ),
        };
        format!(
            "schema: plimsoll.workload/2\nname: crimes\nseed: {seed}\n{top}sets: {{s: {set}}}\n\
             stages:\n{fill}- name: measure\n  duration: {seconds}s\n  jobs:\n  \
             - {{workers: 8, pacing: {pacing}, work: {work}}}\n"
        )
    }

    /// Makes its record, which then tells of a real run on a machine with 1 MiB of memory.
    fn record(&self, directory: &Path, name: &str) {
        fs::write(directory.join("workload.yaml"), self.workload()).unwrap();
        fs::write(directory.join("script.yaml"), self.script).unwrap();
        let line = "run workload.yaml --virtual --script script.yaml --quiet --run-dir";
        printed(directory, &format!("{line} {name}"));
        let path = directory.join(name).join("run.json");
        let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        manifest.as_object_mut().unwrap().remove("checksum");
        manifest["virtual_time"] = json!(false);
        manifest["machine"]["memory_bytes"] = json!(1 << 20);
        manifest["machine"]["hostname"] = json!("loader");
        if manifest["target"]["kind"] == "oracle" {
            manifest["target"]["kind"] = json!("s3");
            manifest["target"]["endpoints"] = json!(["http://10.1.2.3:9000"]);
        }
        (self.change)(&mut manifest);
        fs::write(&path, manifest.to_string()).unwrap();
    }
}

/// Returns the codes of what may mislead of a record.
fn crimes(directory: &Path, name: &str) -> Vec<String> {
    let report: Value =
        serde_json::from_str(&printed(directory, &format!("analyze {name} --json"))).unwrap();
    let all = report["crimes"].as_array().unwrap();
    all.iter().map(|crime| crime["code"].as_str().unwrap().to_owned()).collect()
}

/// Returns objects whose store is at an address.
const fn at(change: fn(&mut Value)) -> Fixture {
    Fixture { change, ..OBJECTS }
}

/// Each with the only crime that it commits.
const FIXTURES: [(Fixture, &str); 20] = [
    (at(|of| of["target"]["embedded"] = json!(true)), "embedded-store"),
    (at(|of| of["target"]["endpoints"] = json!(["http://127.0.0.1:9000"])), "same-host"),
    (at(|of| of["target"]["endpoints"] = json!(["https://[::1]:9000"])), "same-host"),
    (at(|of| of["target"]["endpoints"] = json!(["localhost:9000"])), "same-host"),
    (at(|of| of["target"]["endpoints"] = json!(["http://loader:9000"])), "same-host"),
    (Fixture { pacing: "closed", script: SLOW, ..OBJECTS }, "closed-loop"),
    (Fixture { pacing: "{capped: 50/s}", ..OBJECTS }, "closed-loop"),
    (Fixture { seconds: 10, ..OBJECTS }, "short"),
    (Fixture { seconds: 29, ..FILES }, "short"),
    (DOWNLOADS, "fresh-reads"),
    (
        // Files whose content nobody looked at.
        Fixture { top: "targets: {files: {directory: /d}}\nverify: false\n", ..FILES },
        "unverified",
    ),
    (Fixture { set: "{count: 2000, size: 4KiB, content: zero}", ..OBJECTS }, "reducible"),
    (Fixture { set: "{count: 2000, size: 4KiB, content: text}", ..OBJECTS }, "reducible"),
    (
        Fixture {
            set: "{count: 2000, size: 4KiB, content: {shaped: {compress_ratio: 2.0}}}",
            ..OBJECTS
        },
        "reducible",
    ),
    (
        Fixture {
            set: "{count: 2000, size: 4KiB, content: {shaped: {dedupe_ratio: 3.0}}}",
            ..OBJECTS
        },
        "reducible",
    ),
    (
        Fixture { work: "{blocks: {on: s, read: {block: 64KiB}, order: uniform}}", ..FILES },
        "cached-reads",
    ),
    (
        Fixture { work: "{blocks: {on: s, write: {block: 64KiB}, order: uniform}}", ..FILES },
        "cached-writes",
    ),
    (
        Fixture { change: |of| of["machine"]["memory_bytes"] = json!(1 << 30), ..FILES },
        "fits-in-memory",
    ),
    (WARMING, "warm-up"),
    (
        at(|of| {
            let clock = json!({
                "stage_index": 0, "at_ns": 0, "offset_ns": 0, "uncertainty_ns": 12_000_000,
            });
            of["agents"] = json!([{
                "name": "a", "id": "a", "version": "0.1.0", "machine": null, "weight": 1,
                "threads_count": 1, "clock": [clock], "lost": null, "rows_count": 1,
                "cpu_ns": [],
            }]);
        }),
        "clock-uncertain",
    ),
];

#[test]
fn twenty_records_with_one_crime_each_are_told_of_that_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for (number, (fixture, crime)) in FIXTURES.iter().enumerate() {
        let name = format!("{number}-{crime}");
        fixture.record(path, &name);
        assert_eq!(crimes(path, &name), [*crime], "{name}");
    }
}

#[test]
fn a_clean_record_is_told_of_nothing_and_merged_ones_of_their_clocks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for (name, clean) in [("objects", OBJECTS), ("files", FILES)] {
        clean.record(path, name);
        assert_eq!(crimes(path, name), [""; 0], "{name}");
    }
    // A closed loop on files is no crime, and a level rate, however noisy, has no warm-up.
    Fixture { pacing: "closed", script: SLOW, ..FILES }.record(path, "closed");
    assert_eq!(crimes(path, "closed"), [""; 0]);
    let elsewhere = at(|of| of["machine"]["hostname"] = json!("other"));
    Fixture { seed: 8, ..elsewhere }.record(path, "other");
    printed(path, "merge objects other --output merged");
    assert_eq!(crimes(path, "merged"), ["clocks-uncompared"]);
}

#[test]
fn the_warm_up_is_left_out_where_that_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    WARMING.record(path, "run");
    let looked_at = |flag: &str| -> Value {
        serde_json::from_str(&printed(path, &format!("analyze run --json {flag}"))).unwrap()
    };
    let rate = |report: &Value| {
        let row = &report["stages"].as_array().unwrap().last().unwrap()["rows"][0];
        row["total"]["rates"]["ops_per_sec"].as_f64().unwrap()
    };
    let near = |rate: f64, truth: f64| assert!((rate / truth - 1.0).abs() < 0.02, "{rate}");
    // 8 / 20 ms = 400/s; a quarter of it for 8 s of 60 s makes 360/s of all.
    near(rate(&looked_at("")), 360.0);
    let steady = looked_at("--steady");
    near(rate(&steady), 400.0);
    assert_eq!(steady["crimes"], json!([]));
    let notes = steady["notes"].to_string();
    assert!(notes.contains("stage measure are left out: its warm-up"), "{notes}");
}
