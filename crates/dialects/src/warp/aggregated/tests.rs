//! Tests on warp's own files, against its printed reports and sums worked out by hand.
#![allow(clippy::disallowed_methods, reason = "tests read committed files")]

use std::fs;

use plimsoll_foreign::warp::aggregated;
use serde_json::{Value, json};

use super::*;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/warp");
const LOOK: Look = Look { width: 80, color: false };
const MIB: f64 = 1_048_576.0;

fn file(name: &str) -> Aggregated {
    let path = format!("{FOLDER}/{name}.json.zst");
    aggregated::read(fs::File::open(path).unwrap()).unwrap()
}

fn near(value: Option<f64>, expected: f64, within: f64) {
    let value = value.unwrap();
    assert!((value - expected).abs() <= within, "{value} is not {expected} ± {within}");
}

#[test]
fn the_committed_schema_is_the_schema() {
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    plimsoll_testkit::check_format("aggregated.schema.json", &current);
}

#[test]
fn every_file_renders_within_eighty_columns() {
    let names = fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names
        .filter_map(|name| name.to_str()?.strip_suffix(".json.zst").map(str::to_owned))
        .collect();
    assert!(names.len() >= 12, "{names:?}");
    for name in names {
        let file = file(&name);
        let text = text(&file, &LOOK);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        assert!(text.contains("\nunknown:"), "{text}");
        let kinds = json(&file)["kinds"].as_array().unwrap().len();
        assert_eq!((kinds, figures(&name, &file).kinds.len()), (file.by_op_type.len(), kinds));
    }
}

#[test]
fn rates_are_those_of_the_printed_report() {
    let file = file("get-2hosts-default");
    let figures = figures("before", &file);
    let get = figures.kind(Some(OpKind::Get)).unwrap();
    // "Average: 26.02 MiB/s, 1665.20 obj/s"
    near(get.value(Metric::Throughput).map(|rate| rate / MIB), 26.02, 0.005);
    near(get.value(Metric::Objects), 1665.20, 0.01);
    // "Fastest: 35.9MiB/s, 2298.69 obj/s", "Slowest: 13.7MiB/s, 878.17 obj/s"
    near(get.value(Metric::Fastest).map(|rate| rate / MIB), 35.9, 0.05);
    assert_eq!(get.value(Metric::FastestObjects), Some(2298.69));
    near(get.value(Metric::Slowest).map(|rate| rate / MIB), 13.7, 0.05);
    assert_eq!(get.value(Metric::SlowestObjects), Some(878.17));
    assert_eq!((get.value(Metric::Rate), get.value(Metric::Errors)), (None, Some(0.0)));
    let text = text(&file, &LOOK);
    // "http://127.0.0.1:19110: Avg: 13.44 MiB/s, 860.34 obj/s", and 828.15 at the other.
    for figure in ["26.0 MiB/s", "13.4 MiB/s", "860 obj/s", "828 obj/s", "over 7 × 1 s"] {
        assert!(text.contains(figure), "{figure}:\n{text}");
    }
    assert!(!text.contains('≤'), "{text}");
}

#[test]
fn times_of_several_windows_are_bounded_and_weighted() {
    let file = file("get-2hosts-default");
    let document = json(&file);
    let latency = &document["kinds"][0]["figures"]["latency_ns"];
    // Windows of 15,968 and 922 requests: 2.295374 and 3.470236 ms, "Fastest: 0.3ms, Slowest:
    // 116.8ms".
    assert_eq!(latency["p50"], json!({ "low_ns": 2_295_374, "high_ns": 3_470_236 }));
    assert_eq!(latency["p99"], json!({ "low_ns": 32_784_438, "high_ns": 33_178_295 }));
    assert_eq!((&latency["min"], &latency["max"]), (&json!(279_297), &json!(116_817_171)));
    // (15,968 × 4.68548 + 922 × 5.581912) / 16,890 = 79,964.26750 / 16,890 ms; warp prints 5.1.
    assert_eq!(latency["mean"], json!(4_734_415));
    let figures = figures("a", &file);
    let get = figures.kind(Some(OpKind::Get)).unwrap();
    near(get.value(Metric::Mean), 4_734_415.0, 1.0);
    assert_eq!((get.value(Metric::P50), get.value(Metric::TtfbP99)), (None, None));
    assert_eq!(get.value(Metric::TtfbMax), Some(116_802_570.0));
    let text = text(&file, &LOOK);
    assert!(text.contains("2.2 – 3.5 ms") && text.contains("4.73 ms"), "{text}");
    assert!(text.contains("percentiles of the whole"), "{text}");
}

#[test]
fn percentiles_of_one_window_are_known() {
    let file = file("get-json");
    let get = &file.by_op_type["GET"];
    let stored = get.requests_by_client["y8Ri"][0].single_sized_requests.as_ref().unwrap();
    let figures = figures("a", &file);
    let of = figures.kind(Some(OpKind::Get)).unwrap();
    near(of.value(Metric::P99), stored.dur_99_millis.unwrap() * 1e6, 1.0);
    near(of.value(Metric::Mean), stored.dur_avg_millis.unwrap() * 1e6, 1.0);
    assert!(!text(&file, &LOOK).contains("percentiles of the whole"));
}

#[test]
fn picks_without_bytes_are_by_objects_and_take_the_lower_median() {
    let file = file("mixed-default");
    let figures = figures("a", &file);
    let delete = figures.kind(Some(OpKind::Delete)).unwrap();
    // "Fastest: 64.06 obj/s", "Slowest: 38.10 obj/s"; warp's median is the upper neighbour.
    assert_eq!(delete.value(Metric::FastestObjects), Some(64.06));
    assert_eq!(delete.value(Metric::SlowestObjects), Some(38.10));
    let mut stored: Vec<f64> = file.by_op_type["DELETE"]
        .throughput
        .as_ref()
        .unwrap()
        .segmented
        .as_ref()
        .unwrap()
        .segments
        .iter()
        .map(|segment| segment.obj_per_sec.unwrap())
        .collect();
    stored.sort_by(f64::total_cmp);
    assert_eq!((stored.len(), delete.value(Metric::MedianObjects)), (7, Some(stored[3])));
    assert_eq!((delete.value(Metric::Throughput), delete.value(Metric::Fastest)), (None, None));
}

#[test]
fn a_distributed_average_is_over_the_seconds_counted() {
    // warp divides nine seconds' sum by thirteen and prints 16.12 MiB/s.
    let file = file("dist2-get-default");
    let figures = figures("a", &file);
    let get = figures.kind(Some(OpKind::Get)).unwrap();
    // 219,793,928 bytes and 13,415.16 objects in nine seconds.
    near(get.value(Metric::Throughput), 219_793_928.0 / 9.0, 1.0);
    near(get.value(Metric::Objects), 13_415.16 / 9.0, 0.01);
    // The preparation was too short for seconds.
    let put = figures.kind(Some(OpKind::Put)).unwrap();
    assert_eq!((put.value(Metric::Objects), put.operations), (None, Some(400)));
    assert!(text(&file, &LOOK).contains("kept no seconds"));
}

#[test]
fn failed_operations_make_rates_bounds_and_leave_nothing_to_compare() {
    let file = file("append-errors-default");
    let figures = figures("a", &file);
    let append = figures.kind(Some(OpKind::Append)).unwrap();
    assert_eq!(append.value(Metric::Errors), Some(7532.0 / 7536.0));
    let others = Metric::ALL.into_iter().filter(|metric| *metric != Metric::Errors);
    assert!(others.into_iter().all(|metric| append.value(metric).is_none()));
    let text = text(&file, &LOOK);
    // "Average: 13.02 MiB/s, 833.43 obj/s", "Fastest: 18.5MiB/s", "Errors: 7532"
    for figure in ["≤ 13.0 MiB/s", "≤ 833 obj/s", "≤ 18.5 MiB/s", "7,532", "warning: "] {
        assert!(text.contains(figure), "{figure}:\n{text}");
    }
    assert!(text.contains("An unsupported API call for method: PUT"), "{text}");
    let kind = &json(&file)["kinds"][0];
    assert_eq!((&kind["figures"], &kind["ops_failed_count"]), (&Value::Null, &json!(7_532)));
    let rates = &kind["figures_with_failed"]["rates"];
    assert_eq!(
        (&rates["segments_count"], &rates["slowest"]["bytes_per_sec"]),
        (&json!(5), &json!(7_160_216.0))
    );
}

#[test]
fn windows_that_miss_requests_or_were_merged_tell_no_percentile() {
    let mut file = file("get-json");
    let get = file.by_op_type.get_mut("GET").unwrap();
    let window = get.requests_by_client.get_mut("y8Ri").unwrap().first_mut().unwrap();
    window.single_sized_requests.as_mut().unwrap().merged_entries = Some(2);
    let latency = json(&file)["kinds"][0]["figures"]["latency_ns"].clone();
    assert_eq!((&latency["p50"], &latency["mean"]), (&Value::Null, &Value::Null));
    assert!(latency["max"].is_u64());
    let get = file.by_op_type.get_mut("GET").unwrap();
    get.total_requests = Some(1_000_000);
    assert_eq!(json(&file)["kinds"][0]["figures"]["latency_ns"]["max"], Value::Null);
    assert!(text(&file, &LOOK).contains("do not hold every request"));
}

#[test]
fn an_empty_file_has_no_numbers_made_up() {
    let file = Aggregated::default();
    assert!(text(&file, &LOOK).starts_with("aggregated warp file"));
    assert_eq!((json(&file)["kinds"].clone(), figures("a", &file).kinds.len()), (json!([]), 0));
}
