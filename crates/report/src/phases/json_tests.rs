//! The JSON report against figures worked out by hand and against its committed schema.

use serde_json::{Value, json};

use super::super::fixture;
use super::*;

#[test]
fn the_committed_schema_is_the_schema() {
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    plimsoll_testkit::check_format("phases.schema.json", &current);
}

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
    names(&render(&fixture::mixed()), &mut found);
    let is_map_key = |name: &str| matches!(name, "torn" | "io" | "corrupt" | "not-found");
    found.retain(|name| !is_map_key(name) && !documented.contains(name));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_suite() {
    let report = render(&fixture::suite());
    assert_eq!(report["schema"], "plimsoll.phases/1");
    assert_eq!((&report["ops_failed_count"], &report["state"]), (&json!(1), &json!("complete")));
    let create = &report["phases"][3];
    assert_eq!((&create["name"], &create["duration_ns"]), (&json!("create"), &json!(150_000_000)));
    let row = &create["rows"][0];
    assert_eq!((&row["measured_from_ns"], &row["measured_ns"]), (&json!(0), &json!(150_000_000)));
    assert_eq!((&row["block"], &row["caches"]), (&Value::Null, &json!("cached")));
    let kind = &row["kinds"][0];
    assert_eq!(kind["ops_per_sec"], json!(250.0 / 0.15));
    let first = json!({
        "after_ns": 100_000_000,
        "ops_count": 200,
        "bytes": 0,
        "ops_per_sec": 2_000.0,
        "bytes_per_sec": 0.0,
    });
    assert_eq!(kind["first_done"], first);
    // 250 samples: p99.5 needs 200, p99.9 needs 1,000.
    let percentiles = kind["latency_ns"]["percentiles"].as_array().unwrap();
    let of = |percent: f64| percentiles.iter().find(|pair| pair[0] == percent).unwrap()[1].clone();
    assert_eq!([of(50.0), of(99.5), of(99.9)], [json!(1_000_000), json!(1_000_000), Value::Null]);
    // Reads of 2 s: four whole windows of 1,000 reads each.
    let windows = &report["phases"][1]["rows"][0]["kinds"][0]["windows"];
    assert_eq!(windows.as_array().unwrap().len(), 4);
    let window = json!({
        "started_ns": 500_000_000,
        "duration_ns": 500_000_000,
        "ops_count": 1_000,
        "bytes": 1_048_576_000,
        "latency_ns_mean": 1_000_000,
    });
    assert_eq!(windows[1], window);
    // A stat moves no bytes.
    let stat = &report["phases"][4]["rows"][0]["kinds"][0];
    assert_eq!((&stat["bytes_per_sec"], &stat["ops_ok_count"]), (&Value::Null, &json!(249)));
    assert_eq!(stat["failed_by_class"], json!({ "not-found": 1 }));
}

#[test]
fn ramps_and_schedules() {
    let report = render(&fixture::mixed());
    let phase = &report["phases"][0];
    assert_eq!((&phase["iteration_index"], &phase["ops_failed_count"]), (&json!(1), &json!(2)));
    let row = &phase["rows"][0];
    // Of 400 operations of 5 ms in 2 s half are in the ramp of 1 s, one of them failed.
    assert_eq!(
        (&row["ramp_ops_ok_count"], &row["ramp_ops_failed_count"]),
        (&json!(199), &json!(1))
    );
    assert_eq!(row["measured_from_ns"], json!(1_000_000_000));
    // To the end of the sync.
    assert_eq!(row["measured_ns"], json!(1_040_000_000));
    assert_eq!(row["kinds"][0]["ops_per_sec"], json!(149.0 / 1.04));
    assert_eq!(row["kinds"][0]["failed_by_class"], json!({ "corrupt": 1 }));
    assert_eq!(phase["wrong_by_kind"], json!({ "torn": 1 }));
    assert_eq!(phase["schedule"]["kept"], json!(false));
    assert_eq!(
        (&phase["schedules"][0]["job"], &phase["schedules"][1]),
        (&json!("open-loop"), &Value::Null)
    );
    assert_eq!(
        (&phase["look_gap_ns_max"], &phase["ops_uncertain_count"]),
        (&Value::Null, &Value::Null)
    );
    let open = &phase["rows"][1]["kinds"][0];
    assert_eq!(open["latency_ns"]["mean"], json!(30_000_000));
    assert_eq!(open["service_time_ns"]["mean"], json!(10_000_000));
    let warnings = report["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2);
}
