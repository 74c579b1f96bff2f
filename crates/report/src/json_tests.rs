//! The JSON report against figures worked out by hand and against its committed schema.

use serde_json::{Value, json};

use super::*;
use crate::fixture;

/// Returns the only row of the measured stage.
fn row(report: &Value) -> &Value {
    &report["stages"][1]["rows"][0]
}

#[test]
fn the_committed_schema_is_the_schema() {
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    plimsoll_testkit::check_format("report.schema.json", &current);
}

#[test]
fn a_steady_run() {
    let report = value(&fixture::steady());
    assert_eq!(report["schema"], "plimsoll.report/1");
    let row = row(&report);
    assert_eq!((&report["state"], &row["error_rate"]), (&json!("complete"), &json!(0.0)));
    assert_eq!(report["started"], "2026-11-21T09:00:00.000000000Z");
    assert_eq!(report["stages"][1]["client_cpu_ns"], json!(48_000_000));
    assert_eq!(row["loop_model"], json!({ "model": "closed" }));
    // 8 workers, 600 operations of 10 KiB each; the first of each ends before the span.
    let totals = json!({
        "ops_ok_count": 4_800,
        "ops_failed_count": 0,
        "failed_by_class": {},
        "bytes": 49_152_000,
        "objects_count": 4_800,
        "latency_ns_max": 10_000_000,
        "ops_late_count": 0,
    });
    assert_eq!(row["total"]["stage_total"], totals);
    let span = json!({
        "started_ns": 10_000_000,
        "ended_ns": 6_000_000_000_u64,
        "rule": "all-workers",
    });
    assert_eq!(row["span"], span);
    let kind = &row["kinds"][0];
    assert_eq!((&kind["kind"], &kind["mix_percent"]), (&json!("GET"), &json!(100.0)));
    let latency = json!({
        "samples_count": 4_792,
        "min": 10_000_000,
        "p1": 10_000_000,
        "p5": 10_000_000,
        "p10": 10_000_000,
        "p25": 10_000_000,
        "p50": 10_000_000,
        "p75": 10_000_000,
        "p90": 10_000_000,
        "p95": 10_000_000,
        "p99": 10_000_000,
        "p99_5": 10_000_000,
        "p99_9": 10_000_000,
        "p99_95": 10_000_000,
        "p99_99": null,
        "p99_low": 10_000_000,
        "p99_high": 10_000_000,
        "max": 10_000_000,
        "mean": 10_000_000,
        "std_dev": 0,
    });
    // Every operation started when it was to, so service time is latency.
    assert_eq!((&kind["latency_ns"], &kind["service_time_ns"]), (&latency, &Value::Null));
    let rates =
        json!({ "ops_per_sec": 800.0, "objects_per_sec": 800.0, "bytes_per_sec": 8_192_000.0 });
    assert_eq!(kind["rates"], rates);
    assert_eq!(kind["segments"]["slowest"]["started_ns"], 10_000_000);
    assert_eq!(kind["segments"]["slowest"]["bytes_per_sec"], 8_192_000.0);
    assert_eq!(kind["endpoints"][0]["endpoint_id"], 0);
    assert_eq!(report["endpoints"][0], "http://127.0.0.1:9000");
}

#[test]
fn a_troubled_run() {
    let report = value(&fixture::troubled());
    assert_eq!(report["state"], "interrupted");
    // 50 uploads refused, 12 deletes throttled, of 510.
    let row = row(&report);
    assert_eq!(row["error_rate"], json!(62.0 / 510.0));
    assert_eq!(
        row["total"]["stage_total"]["failed_by_class"],
        json!({ "connect": 50, "throttled": 12 })
    );
    let kinds: Vec<&Value> = row["kinds"].as_array().unwrap().iter().collect();
    let by_name = |name: &str| kinds.iter().find(|kind| kind["kind"] == name).unwrap();
    // 97 samples are too few for p99, and that is null.
    assert_eq!(by_name("PUT")["latency_ns"]["p99"], Value::Null);
    assert_eq!(by_name("PUT")["latency_ns"]["p90"], 20_000_000);
    assert_eq!(by_name("DELETE")["stage_total"]["objects_count"], 480);
    assert_eq!(report["stages"][1]["errors"][1]["endpoint_id"], Value::Null);
    let codes: Vec<&Value> = row["advice"].as_array().unwrap().iter().map(|a| &a["code"]).collect();
    assert_eq!(codes, ["short-span", "few-samples", "few-samples", "few-samples", "throttled"]);
    assert_eq!(
        report["stages"][1]["op_log"],
        json!({ "rows_count": 509, "ops_counted_count": 510 })
    );
}

#[test]
fn a_run_without_operations_has_no_numbers_made_up() {
    let report = value(&fixture::report("s3 get", fixture::analysis(&[], 0, 4), 4));
    let row = row(&report);
    assert_eq!((&row["error_rate"], &row["total"]["rates"]), (&Value::Null, &Value::Null));
    assert_eq!(row["total"]["latency_ns"]["max"], Value::Null);
    assert_eq!(row["kinds"], json!([]));
}

#[test]
fn an_open_loop_has_its_schedule_and_both_times() {
    let report = value(&fixture::stalled());
    let row_of = row;
    let row = row(&report);
    assert_eq!(row["loop_model"], json!({ "model": "open" }));
    assert_eq!(row["span"]["rule"], "schedule");
    let expected = json!({
        "job": "measure",
        "rates": ["1000/s"],
        "arrivals": ["constant"],
        "in_flight_count_max": 20,
        "started_after_ns": 0,
        "duration_ns": 2_000_000_000,
        "rate_offered_ops_per_sec": 1_000.0,
        "rate_peak_ops_per_sec": 1_000.0,
        "offered_count": 2_000,
        "late_count": 89,
        "skipped_count": 0,
        "held_count": 0,
        "delay_ns_max": 82_000_000,
        "kept": false,
        "warning": row["schedules"][0]["warning"],
    });
    assert_eq!(row["schedules"], json!([expected]));
    let warning = row["schedules"][0]["warning"].as_str().unwrap();
    assert!(warning.starts_with("SCHEDULE NOT KEPT: 89 of 2,000 operations"), "{warning}");
    // Successes over the span.
    assert_eq!(row["total"]["rates"]["ops_per_sec"], 2_000.0 / 2.001);
    // Worked out in the test of the text.
    let get = &row["kinds"][0];
    let of = |time: &str, what: &str| get[format!("{time}_ns")][what].as_u64();
    assert_eq!(of("latency", "mean"), Some(4_752_500));
    assert_eq!(of("service_time", "mean"), Some(2_905_000));
    assert_eq!(of("schedule_delay", "mean"), Some(1_847_500));
    assert_eq!(of("schedule_delay", "max"), Some(82_000_000));
    assert_eq!(get["stage_total"]["ops_late_count"], 89);
    let closed = value(&fixture::steady());
    let closed = row_of(&closed);
    assert_eq!(closed["schedules"], json!([]));
    assert_eq!(closed["total"]["schedule_delay_ns"], Value::Null);
}

#[test]
fn a_run_in_which_all_failed_has_a_goodput_of_zero() {
    let report = value(&fixture::failing());
    let row = row(&report);
    assert_eq!(row["error_rate"], 1.0);
    let none = json!({ "ops_per_sec": 0.0, "objects_per_sec": 0.0, "bytes_per_sec": 0.0 });
    assert_eq!(row["total"]["rates"], none);
    assert_eq!(row["total"]["latency_ns"]["mean"], Value::Null);
    assert_eq!(
        report["stages"][1]["wrong_by_kind"],
        json!({ "old-version": 1_000, "torn": 1_400 })
    );
}

#[test]
fn details_are_there_when_asked_for() {
    assert_eq!(row(&value(&fixture::troubled()))["details"], Value::Null);
    let report = value(&fixture::detailed());
    let details = &row(&report)["details"];
    let [put, get] = &details["kinds"].as_array().unwrap()[..] else { panic!("{details}") };
    // Worked out in the tests of segments: 49 uploads, and one that is refused.
    let segment = json!({
        "started_ns": 1_020_000_000,
        "duration_ns": 1_000_000_000,
        "bytes": 501_760,
        "ops": 49.0,
        "objects": 49.0,
        "ops_started_count": 49,
        "ops_ended_count": 49,
        "ops_full_count": 49,
        "ops_partial_count": 0,
        "ops_failed_count": 1,
        "failed_by_class": { "connect": 1 },
        "latency_ns_mean": 20_000_000,
        "latency_ns_p50": 20_000_000,
        "latency_ns_p99": null,
    });
    let coarse = put["series"][1]["latency_ns_p50"].as_u64().unwrap();
    assert!((20_000_000..=20_200_000).contains(&coarse), "{coarse} is not 20 ms to 1 %");
    let mut exact = put["series"][1].clone();
    exact["latency_ns_p50"] = json!(20_000_000);
    assert_eq!(exact, segment);
    assert_eq!(put["endpoints"][0]["series"][1]["ops_ended_count"], 49);
    assert_eq!(put["endpoints"][0]["series"][1]["latency_ns_p50"], Value::Null);
    assert_eq!(details["series"][1]["ops_ended_count"], 49 + 100);
    let client = &details["clients"][1];
    assert_eq!((&client["client_id"], &client["kinds"][0]["kind"]), (&json!(1), &json!("PUT")));
    assert_eq!(client["kinds"][0]["stage_total"]["ops_ok_count"], 100);
    assert_eq!(client["total"]["stage_total"], client["kinds"][0]["stage_total"]);
    assert_eq!(put["access"], Value::Null, "the uploads have no names");
    assert_eq!(get["access"]["objects_count"], 100);
}

#[test]
fn details_have_the_distribution_of_times() {
    let report = value(&fixture::detailed());
    let get = &row(&report)["kinds"][1];
    // The first byte of the 98 first, 100 middle and 100 last is there after 4, 5 and 6 ms.
    let ttfb = [4, 4, 4, 4, 5, 6, 6, 6, 6].map(|ms| json!(ms * 1_000_000));
    let percents = ["p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"];
    for (percent, expected) in percents.into_iter().zip(&ttfb) {
        let got = get["ttfb_ns"][percent].as_f64().unwrap();
        let close = (got / expected.as_f64().unwrap() - 1.0).abs() <= 0.001;
        assert!(close, "{percent}: {got} is not {expected}");
    }
    for percent in ["p99_9", "p99_99"] {
        assert_eq!(get["ttfb_ns"][percent], Value::Null);
    }
    let bins = get["latency_ns"]["bins"].as_array().unwrap();
    assert_eq!((bins.len(), &bins[0][1]), (1, &json!(298)));
    let lowest = bins[0][0].as_u64().unwrap();
    assert!((9_990_000..=10_000_000).contains(&lowest), "{lowest}");
}

#[test]
fn details_have_sizes_and_accesses() {
    let report = value(&fixture::detailed());
    let get = &row(&report)["details"]["kinds"][1];
    let [small, large] = &get["sizes"].as_array().unwrap()[..] else { panic!("{get}") };
    let limits = |class: &Value| {
        let names = ["min", "max", "smallest", "largest"];
        names.map(|name| class[format!("size_bytes_{name}")].as_u64().unwrap())
    };
    assert_eq!(limits(small), [8_192, 16_383, 10_240, 10_240]);
    assert_eq!(limits(large), [1 << 20, (2 << 20) - 1, 1 << 20, 1 << 20]);
    assert_eq!(small["bytes"], 149 * 10_240);
    assert_eq!(small["latency_ns"]["samples_count"], 149);
    // 10 KiB in 10 ms.
    assert_eq!(small["bytes_per_sec"]["average"], 1_024_000.0);
    assert_eq!(small["bytes_per_sec"]["min"], 1_024_000);
    let access = &get["access"];
    assert_eq!(access["sampled_one_in"], 1);
    assert_eq!(access["first_ttfb_ns"]["max"], 4_000_000);
    assert_eq!(access["last_ttfb_ns"]["min"], 6_000_000);
    assert_eq!(access["first_latency_ns"]["max"], 10_000_000);
    assert_eq!(access["last_latency_ns"]["max"], 10_000_000);
}
