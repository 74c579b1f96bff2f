//! The JSON report against figures worked out by hand and against its committed schema.

use serde_json::{Value, json};

use super::*;
use crate::fixture_files as fixture;

#[test]
fn every_field_stands_in_the_schema() {
    fn names(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.keys().cloned());
                fields.values().for_each(|value| names(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| names(value, found)),
            _ => {}
        }
    }
    let documented = plimsoll_testkit::property_names(&schema());
    let mut found = Vec::new();
    names(&value(&fixture::mixed()), &mut found);
    let is_map_key = |name: &str| matches!(name, "torn" | "io" | "corrupt" | "not-found");
    found.retain(|name| !is_map_key(name) && !documented.contains(name));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_suite() {
    let report = value(&fixture::suite());
    assert_eq!(report["schema"], "plimsoll.report/1");
    assert_eq!(report["state"], json!("complete"));
    let failed = &report["stages"][4]["rows"][0]["total"]["stage_total"]["ops_failed_count"];
    assert_eq!(failed, &json!(1));
    let create = &report["stages"][3];
    assert_eq!((&create["name"], &create["duration_ns"]), (&json!("create"), &json!(150_000_000)));
    let row = &create["rows"][0];
    let span = json!({ "started_ns": 0, "ended_ns": 150_000_000, "rule": "from-ramps" });
    assert_eq!(row["span"], span);
    assert_eq!((&row["block"], &row["caches"]), (&Value::Null, &json!("cached")));
    let kind = &row["kinds"][0];
    assert_eq!(kind["rates"]["ops_per_sec"], json!(250.0 / 0.15));
    let first = json!({
        "after_ns": 100_000_000,
        "ops_ok_count": 200,
        "bytes": 0,
        "ops_per_sec": 2_000.0,
        "bytes_per_sec": 0.0,
    });
    assert_eq!(kind["first_done"], first);
    // 250 samples: p99.5 needs 200, p99.9 needs 1,000.
    let of = |percent: &str| kind["latency_ns"][percent].clone();
    assert_eq!(
        [of("p50"), of("p99_5"), of("p99_9")],
        [json!(1_000_000), json!(1_000_000), Value::Null]
    );
    // Reads of 2 s: four whole windows of 1,000 reads each.
    let in_full = value(&fixture::suite_with_series());
    let windows = &in_full["stages"][1]["rows"][0]["details"]["kinds"][0]["series"];
    assert_eq!(windows.as_array().unwrap().len(), 4);
    let window = &windows[1];
    let of = |name: &str| window[name].as_f64().unwrap();
    assert_eq!((of("started_ns"), of("duration_ns")), (500_000_000.0, 500_000_000.0));
    assert_eq!((of("ops_ended_count"), of("bytes")), (1_000.0, 1_048_576_000.0));
    assert_eq!(of("latency_ns_mean"), 1_000_000.0);
    // A stat moves no bytes.
    let stat = &report["stages"][4]["rows"][0]["kinds"][0];
    assert_eq!(stat["last_done"]["bytes_per_sec"], Value::Null);
    assert_eq!(stat["stage_total"]["ops_ok_count"], json!(249));
    assert_eq!(stat["stage_total"]["failed_by_class"], json!({ "not-found": 1 }));
}

#[test]
fn ramps_and_schedules() {
    let report = value(&fixture::mixed());
    let stage = &report["stages"][0];
    assert_eq!(stage["iteration_index"], json!(1));
    let row = &stage["rows"][0];
    // Of 400 operations of 5 ms in 2 s half are in the ramp of 1 s, one of them failed.
    let ramp = (&row["ramp"]["ops_ok_count"], &row["ramp"]["ops_failed_count"]);
    assert_eq!(ramp, (&json!(199), &json!(1)));
    assert_eq!(row["total"]["stage_total"]["ops_failed_count"], json!(1));
    // From the end of the ramp to the end of the sync.
    assert_eq!(row["span"]["started_ns"], json!(1_000_000_000));
    assert_eq!(row["span"]["ended_ns"], json!(2_040_000_000));
    assert_eq!(row["kinds"][0]["rates"]["ops_per_sec"], json!(149.0 / 1.04));
    assert_eq!(row["kinds"][0]["stage_total"]["failed_by_class"], json!({ "corrupt": 1 }));
    assert_eq!(stage["wrong_by_kind"], json!({ "torn": 1 }));
    let schedules = &stage["rows"][1]["schedules"];
    assert_eq!(schedules[0]["kept"], json!(false));
    assert_eq!((&schedules[0]["job"], &schedules[1]), (&json!("open-loop"), &Value::Null));
    assert_eq!(
        (&stage["look_gap_ns_max"], &stage["ops_uncertain_count"]),
        (&Value::Null, &Value::Null)
    );
    let open = &stage["rows"][1]["kinds"][0];
    assert_eq!(open["latency_ns"]["mean"], json!(30_000_000));
    assert_eq!(open["service_time_ns"]["mean"], json!(10_000_000));
    assert_eq!(crate::text::warnings(&fixture::mixed()).len(), 2);
}
