//! Tests of the aggregated format: real files against what warp printed, and bad input.
#![allow(clippy::disallowed_methods)]

use super::*;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/warp/");

fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{TESTDATA}{name}")).unwrap()
}

fn read_file(name: &str) -> Aggregated {
    read(&file(name)[..]).unwrap()
}

fn refusal(text: &[u8]) -> String {
    read(text).unwrap_err().to_string()
}

/// Returns MiB per second and objects per second, as warp prints its average.
fn average(throughput: &Throughput) -> String {
    let seconds = throughput.measure_duration_millis.unwrap() as f64 / 1_000.0;
    let mib_per_sec = throughput.bytes.unwrap() / seconds / f64::from(1 << 20);
    format!("{mib_per_sec:.2} MiB/s, {:.2} obj/s", throughput.objects.unwrap() / seconds)
}

#[test]
fn every_real_file_is_read() {
    let mut files = 0;
    for entry in std::fs::read_dir(TESTDATA).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".json.zst") {
            continue;
        }
        let read_back = read_file(&name);
        let plain = zstd::decode_all(&file(&name)[..]).unwrap();
        assert_eq!(read(&plain[..]).unwrap(), read_back, "{name}");
        let total = read_back.total.as_ref().unwrap();
        let sum = |field: fn(&Aggregate) -> Option<u64>| {
            read_back.by_op_type.values().map(|aggregate| field(aggregate).unwrap()).sum::<u64>()
        };
        assert_eq!(read_back.v, Some(2), "{name}");
        assert_eq!(sum(|aggregate| aggregate.total_requests), total.total_requests.unwrap());
        assert_eq!(sum(|aggregate| aggregate.total_bytes), total.total_bytes.unwrap());
        assert_eq!(read_back.by_host.len(), total.hosts.len(), "{name}");
        assert_eq!(read_back.by_client.len(), total.clients.len(), "{name}");
        files += 1;
    }
    assert_eq!(files, 12);
}

#[test]
fn averages_are_those_that_warp_printed() {
    for (name, op, printed) in [
        ("get-default", "GET", "16.05 MiB/s, 1027.18 obj/s"),
        ("mixed-default", "GET", "3.48 MiB/s, 222.62 obj/s"),
        ("mixed-default", "PUT", "1.15 MiB/s, 73.78 obj/s"),
        ("mixed-default", "STAT", "0.00 MiB/s, 148.86 obj/s"),
        ("get-2hosts-default", "GET", "26.02 MiB/s, 1665.20 obj/s"),
        ("append-errors-default", "APPEND", "13.02 MiB/s, 833.43 obj/s"),
        ("autoterm-rps-get", "GET", "3.12 MiB/s, 200.00 obj/s"),
        ("dist2-get-default", "GET", "16.12 MiB/s, 1031.94 obj/s"),
        ("dist2-client-lost", "GET", "12.06 MiB/s, 772.06 obj/s"),
    ] {
        let read = read_file(&format!("{name}.json.zst"));
        let throughput = read.by_op_type[op].throughput.as_ref().unwrap();
        assert_eq!(average(throughput), printed, "{name}");
    }
    let hosts = read_file("get-2hosts-default.json.zst");
    let by_host = &hosts.by_op_type["GET"].throughput_by_host;
    assert_eq!(average(&by_host["http://127.0.0.1:19110"]), "13.44 MiB/s, 860.34 obj/s");
    assert_eq!(average(&by_host["http://localhost:19110"]), "12.94 MiB/s, 828.15 obj/s");
}

#[test]
fn segments_windows_and_errors_are_those_that_warp_printed() {
    let get = &read_file("get-default.json.zst").by_op_type["GET"];
    let segmented = get.throughput.as_ref().unwrap().segmented.as_ref().unwrap();
    let rates = [segmented.fastest_ops, segmented.median_ops, segmented.slowest_ops];
    assert_eq!(rates, [Some(1_391.53), Some(1_247.77), Some(511.21)]);
    assert_eq!((segmented.segments.len(), segmented.segment_duration_millis), (7, Some(1_000)));
    assert_eq!(segmented.sorted_by.as_deref(), Some("ops"));

    // "Reqs: ... Slowest: 171.6ms", "TTFB: ... Worst: 172ms": the greatest of all windows.
    let windows = &get.requests_by_client["ayGG"];
    let sized = |window: &Window| window.single_sized_requests.clone().unwrap();
    let slowest = windows.iter().filter_map(|window| sized(window).slowest_millis);
    assert_eq!(slowest.fold(0.0, f64::max), 171.638_086);
    let worst = windows.iter().filter_map(|window| sized(window).first_byte?.slowest_millis);
    assert_eq!(worst.fold(0.0, f64::max), 171.631_366);
    assert!(get.first_errors.is_empty());

    let append = &read_file("append-errors-default.json.zst").by_op_type["APPEND"];
    assert_eq!((append.total_errors, append.concurrency), (Some(7_532), Some(4)));
    assert!(append.first_errors[0].starts_with("An unsupported API call"));

    let mixed = read_file("mixed-default.json.zst").total.unwrap();
    let window = &mixed.requests_by_client["uW11"][0];
    let classes = &window.multi_sized_requests.as_ref().unwrap().by_size;
    assert_eq!((classes[0].min_size, classes[0].max_size), (Some(1), Some(102_400)));
    assert_eq!(window.single_sized_requests, None);
}

#[test]
fn fields_may_be_missing_and_unknown() {
    let read = read(&br#"{"total": {"hosts": null, "news": [1, {}]}, "by_op_type": null}"#[..]);
    let total = read.unwrap().total.unwrap();
    assert_eq!((total.hosts, total.total_requests), (Vec::new(), None));
}

#[test]
fn what_is_no_aggregated_file_is_refused_with_its_reason() {
    let window = |value: &str| {
        let times = format!(r#"{{"requests": 3, "dur_avg_millis": {value}, "dur_90_millis": 1}}"#);
        let windows = format!("[\n{{\"single_sized_requests\": {times}}}]");
        format!("{{\"v\": 2,\n\"total\": {{\"requests_by_client\": {{\"a\": {windows}}}}}}}")
    };
    assert!(read(window("1.5").as_bytes()).is_ok());
    let negative = refusal(window("-1.5").as_bytes());
    assert_eq!(
        negative,
        "the field `dur_avg_millis` in line 3 is not valid: the time -1.5 is negative or no number"
    );
    for value in ["NaN", "\"NaN\"", "-Infinity", "1e999", "true"] {
        let text = refusal(window(value).as_bytes());
        assert!(text.starts_with("the field `dur_avg_millis` in line 3 is not valid: "), "{text}");
    }
    let negative = refusal(b"{\"total\": {\"throughput\": {\"measure_duration_millis\": -7000}}}");
    assert!(negative.starts_with("the field `measure_duration_millis` in line 1"), "{negative}");

    for (text, reason) in [
        (
            &b"{\"v\": 3, \"total\": 7}"[..],
            "the file has version 3 of warp's aggregated format, this program knows up to 2",
        ),
        (
            b"{\"v\": 3, \"total\": {}}",
            "the file has version 3 of warp's aggregated format, this program knows up to 2",
        ),
        (
            b"{\"type\": \"single\", \"operations\": []}",
            "not a warp aggregated file: it has neither `total` nor `by_op_type`",
        ),
        (b"{\"total\": {\"total_requests\": 0}}", "the file holds no operation"),
        (b"", "the file holds no operation"),
        (b"hello", "not a warp file: neither a zstd stream nor warp's text"),
        (
            b"idx\tthread\n",
            "a raw warp file was given where an aggregated one (.json.zst) is needed",
        ),
    ] {
        assert_eq!(refusal(text), reason);
    }
    let cut_off = refusal(b"{\"v\": 2, \"total\": {\"total_requests\": 4");
    assert!(cut_off.starts_with("not a warp aggregated file: EOF"), "{cut_off}");
    let raw = file("list-full.csv.zst");
    assert!(matches!(read(&raw[..]), Err(WarpError::IsRaw)));
    let whole = file("get-default.json.zst");
    assert!(matches!(read(&whole[..whole.len() - 20]), Err(WarpError::Damaged)));
}

/// Returns a document without what says nothing: `null`, empty lists, and how numbers are written.
fn normal(value: serde_json::Value) -> serde_json::Value {
    use serde_json::{Value, json};
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(list) => list.into_iter().map(normal).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            fields.map(|(name, value)| (name, normal(value))).collect()
        }
        other => other,
    }
}

#[test]
fn every_field_of_real_files_is_known_and_written_again() {
    let mut files = 0;
    for entry in std::fs::read_dir(TESTDATA).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".json.zst") {
            continue;
        }
        let plain = zstd::decode_all(&file(&name)[..]).unwrap();
        let of_warp: serde_json::Value = serde_json::from_slice(&plain).unwrap();
        let read_back = read(&plain[..]).unwrap();
        let mut written = Vec::new();
        write(&read_back, &mut written).unwrap();
        assert_eq!(read(&written[..]).unwrap(), read_back, "{name}");
        let ours: serde_json::Value = serde_json::from_str(&text(&read_back)).unwrap();
        assert_eq!(normal(ours), normal(of_warp), "{name}");
        files += 1;
    }
    assert!(files >= 12, "{files}");
}

#[test]
fn whole_numbers_and_empty_lists_are_written_as_warp_does() {
    let throughput =
        Throughput { bytes: Some(247_185_408.0), objects: Some(9.5), ..Default::default() };
    let total = Aggregate { throughput: Some(throughput), ..Aggregate::default() };
    let text = text(&Aggregated { v: Some(2), total: Some(total), ..Aggregated::default() });
    assert!(text.contains("\"bytes\": 247185408,\n"), "{text}");
    assert!(text.contains("\"objects\": 9.5\n"), "{text}");
    assert!(text.contains("\"first_errors\": null,\n"), "{text}");
}
