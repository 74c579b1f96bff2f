//! The JSON report against figures worked out by hand and against its committed schema.

use serde_json::{Value, json};

use super::*;
use crate::fixture;

#[test]
fn the_committed_schema_is_the_schema() {
    let committed = include_str!("../../../docs/formats/report.schema.json");
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    assert!(
        committed == current,
        "docs/formats/report.schema.json is not what json::schema() gives; a field that changes \
         needs a new version in json::SCHEMA. It should be:\n{current}"
    );
}

#[test]
fn a_steady_run() {
    let report = render(&fixture::steady());
    assert_eq!(report["schema"], "plimsoll.report/1");
    assert_eq!((&report["state"], &report["error_rate"]), (&json!("complete"), &json!(0.0)));
    assert_eq!(report["started"], "2026-11-21T09:00:00.000000000Z");
    assert_eq!(report["client_cpu_seconds"], json!(0.048));
    assert_eq!(report["loop_model"], json!({ "model": "closed", "ops_per_sec": null }));
    // 8 workers, 600 operations of 10 KiB each; the first of each ends before the span.
    let totals = json!({
        "ops_ok_count": 4_800,
        "ops_failed_count": 0,
        "failed_by_class": {},
        "bytes": 49_152_000,
        "objects_count": 4_800,
        "latency_ns_max": 10_000_000,
    });
    assert_eq!(report["stage_total"], totals);
    let span = json!({
        "started_ns": 10_000_000,
        "ended_ns": 6_000_000_000_u64,
        "duration_ns": 5_990_000_000_u64,
        "rule": "all-workers",
    });
    assert_eq!(report["span"], span);
    let kind = &report["kinds"][0];
    assert_eq!((&kind["kind"], &kind["mix_percent"]), (&json!("GET"), &json!(100.0)));
    let latency = json!({
        "samples_count": 4_792,
        "min": 10_000_000,
        "p50": 10_000_000,
        "p90": 10_000_000,
        "p99": 10_000_000,
        "p99_9": 10_000_000,
        "max": 10_000_000,
        "mean": 10_000_000,
        "std_dev": 0,
    });
    assert_eq!((&kind["latency_ns"], &kind["service_time_ns"]), (&latency, &latency));
    let rates =
        json!({ "ops_per_sec": 800.0, "objects_per_sec": 800.0, "bytes_per_sec": 8_192_000.0 });
    assert_eq!(kind["rates"], rates);
    assert_eq!(kind["segments"]["slowest"]["started_ns"], 10_000_000);
    assert_eq!(kind["segments"]["slowest"]["bytes_per_sec"], 8_192_000.0);
    assert_eq!(kind["endpoints"][0]["endpoint"], "http://127.0.0.1:9000");
}

#[test]
fn a_troubled_run() {
    let report = render(&fixture::troubled());
    assert_eq!(report["state"], "interrupted");
    // 50 uploads refused, 12 deletes throttled, of 510.
    assert_eq!(report["error_rate"], json!(62.0 / 510.0));
    assert_eq!(report["stage_total"]["failed_by_class"], json!({ "connect": 50, "throttled": 12 }));
    let kinds: Vec<&Value> = report["kinds"].as_array().unwrap().iter().collect();
    let by_name = |name: &str| kinds.iter().find(|kind| kind["kind"] == name).unwrap();
    // 97 samples are too few for p99, and that is null.
    assert_eq!(by_name("PUT")["latency_ns"]["p99"], Value::Null);
    assert_eq!(by_name("PUT")["latency_ns"]["p90"], 20_000_000);
    assert_eq!(by_name("DELETE")["stage_total"]["objects_count"], 480);
    assert_eq!(report["errors"][1]["endpoint"], Value::Null);
    let codes: Vec<&Value> =
        report["advice"].as_array().unwrap().iter().map(|a| &a["code"]).collect();
    assert_eq!(codes, ["short-span", "few-samples", "few-samples", "few-samples", "throttled"]);
    assert_eq!(report["op_log"], json!({ "rows_count": 509, "ops_counted_count": 510 }));
}

#[test]
fn a_run_without_operations_has_no_numbers_made_up() {
    let report = render(&fixture::report("s3 get", fixture::analysis(&[], 0, 4), 4));
    assert_eq!((&report["error_rate"], &report["total"]["rates"]), (&Value::Null, &Value::Null));
    assert_eq!(report["total"]["latency_ns"]["max"], Value::Null);
    assert_eq!(report["kinds"], json!([]));
}
