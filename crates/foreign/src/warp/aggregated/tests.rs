//! Tests of the aggregated format: real files, and bad input. What warp printed of the files is
//! compared in `crates/dialects`.
#![allow(clippy::disallowed_methods)]

use super::*;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/warp/");

fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{TESTDATA}{name}")).unwrap()
}

fn refusal(text: &[u8]) -> String {
    read(text).unwrap_err().to_string()
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
        "the field `dur_avg_millis` in line 3 is not valid: the number -1.5 is negative"
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
        assert_eq!((read_back.v, &read(&file(&name)[..]).unwrap()), (Some(2), &read_back));
        let mut written = Vec::new();
        write(&read_back, &mut written).unwrap();
        assert_eq!(read(&written[..]).unwrap(), read_back, "{name}");
        let ours: serde_json::Value = serde_json::from_str(&text(&read_back)).unwrap();
        assert_eq!(normal(ours), normal(of_warp), "{name}");
        files += 1;
    }
    assert_eq!(files, 12);
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
