//! Lines against those that the program itself printed.

use super::*;

/// What the program itself printed, against three stores.
const PRINTED: [&str; 3] = [
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/s3-benchmark/s3b-fakes3.txt"
    )),
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/s3-benchmark/s3b-weed-1m-t4.txt"
    )),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/s3-benchmark/s3b-edges.txt")),
];

/// Returns the number behind `name` in a printed line.
fn number(line: &str, name: &str) -> Option<f64> {
    let (_, rest) = line.split_once(name)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..digits].trim_end_matches('.').parse().ok()
}

/// Returns the number before `name` in a printed line.
fn rate(line: &str, name: &str) -> Option<f64> {
    line.split_once(name)?.0.rsplit(' ').next()?.parse().ok()
}

/// Returns the result that a printed line is of. The time comes from counts and rates, as the
/// printed one has one decimal only; `objects` is what the last PUT of the loop wrote.
fn read_back(line: &str, object_bytes: u64, objects: &mut u64) -> TestResult {
    let test = Test::ALL.into_iter().find(|test| line.contains(&format!(": {} time", test.name())));
    let test = test.unwrap();
    let ops_ok = match test {
        Test::Put => {
            *objects = number(line, "objects = ").unwrap() as u64;
            *objects
        }
        Test::Get => number(line, "objects = ").unwrap() as u64,
        Test::List2 | Test::ListVer => number(line, "ops = ").unwrap() as u64,
        Test::Delete => *objects,
    };
    let unit = if test == Test::Delete { " deletes/sec" } else { " operations/sec" };
    let ops_rate = rate(line, unit).unwrap();
    let mut seconds = if ops_ok == 0 { 0.0 } else { ops_ok as f64 / ops_rate };
    let mut rows = 0;
    if let Some(rows_rate) = rate(line, " rows/sec") {
        rows = (rows_rate * seconds).round() as u64;
        seconds = rows as f64 / rows_rate;
    }
    let moves = matches!(test, Test::Put | Test::Get);
    let figures = TestFigures {
        took: Duration::from_secs_f64(seconds),
        ops_ok,
        bytes: if moves { ops_ok * object_bytes } else { 0 },
        rows,
        slowdowns: number(line, "Slowdowns = ").unwrap() as u64,
        ..TestFigures::default()
    };
    TestResult { loop_number: number(line, "Loop ").unwrap() as u32, test, figures: Some(figures) }
}

#[test]
fn lines_are_those_that_the_program_printed() {
    let (mut lines, mut parameters) = (0, 0);
    for text in PRINTED {
        let (mut bytes, mut objects) = (0, 0);
        for printed in text.lines() {
            if let Some(rest) = printed.strip_prefix("Parameters: ") {
                let fields: Vec<&str> =
                    rest.split(", ").map(|field| field.split_once('=').unwrap().1).collect();
                let keys = ["-a", "A", "-s", "S"].map(str::to_owned);
                let of = Benchmark {
                    url: fields[0].to_owned(),
                    bucket: fields[1].to_owned(),
                    region: fields[2].to_owned(),
                    duration_s: fields[3].parse().unwrap(),
                    threads: fields[4].parse().unwrap(),
                    loops: fields[5].parse().unwrap(),
                    size: fields[6].to_owned(),
                    ..crate::s3_benchmark::from_args(&keys).unwrap()
                };
                assert_eq!(parameters_line(&of), printed);
                bytes = match &*of.size {
                    "1B" => 1,
                    "1K" => 1 << 10,
                    "1M" => 1 << 20,
                    other => panic!("{other}"),
                };
                parameters += 1;
            }
            if printed.starts_with("Loop ") {
                assert_eq!(line(&read_back(printed, bytes, &mut objects)), printed);
                lines += 1;
            }
        }
        assert!(text.lines().any(|line| line == GREETING));
    }
    assert_eq!((lines, parameters), (32, 6));
}

#[test]
fn sizes_have_one_decimal_unless_it_is_0() {
    for (bytes, text) in [
        (0, "0B"),
        (1, "1B"),
        (512, "512B"),
        (1_023, "1023B"),
        (1_024, "1K"),
        (1_536, "1.5K"),
        (1_029_120, "1005K"),
        (1_048_575, "1024K"),
        (2_097_152, "2M"),
        (2_730_000_000, "2.5G"),
        (u64::MAX, "16E"),
    ] {
        assert_eq!(size(bytes), text, "{bytes}");
    }
}

#[test]
fn a_line_of_the_log_has_a_date_of_rfc_1123() {
    // Checked with `date -u -d @SECONDS`.
    for (seconds, date) in [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT: x\n"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT: x\n"),
        (1_795_251_605, "Sat, 21 Nov 2026 09:00:05 GMT: x\n"),
    ] {
        assert_eq!(log_line(WallTime::from_unix_ns(seconds * 1_000_000_000), "x"), date);
    }
}

#[test]
fn what_is_left_out_is_told_below() {
    let mut latency = Histogram::new();
    (1..=1_000).for_each(|ms| latency.record(ms * 1_000_000));
    let put = TestFigures {
        took: Duration::from_secs(2),
        ops_ok: 1_000,
        slowdowns: 3,
        failed: vec![(ErrorClass::Throttled, 3), (ErrorClass::Reset, 1_200)],
        latency,
        ..TestFigures::default()
    };
    let result = |test, figures| TestResult { loop_number: 1, test, figures };
    let results = [
        result(Test::Put, Some(put)),
        result(Test::Get, Some(TestFigures::default())),
        result(Test::ListVer, None),
    ];
    assert_eq!(line(&results[2]), "Loop 1: LISTver not offered");
    let text = below(&results);
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1][..4], ["latency", "ops", "failed", "slowdowns"]);
    assert_eq!(lines[2][..6], ["loop", "1", "PUT", "1,000", "1,203", "3"]);
    let zeros = ["loop", "1", "GET", "0", "0", "0", "–", "–", "–", "–", "–"];
    assert_eq!(lines[3], zeros);
    assert!(text.contains("loop 1 LISTver  not offered by the store"), "{text}");
    assert!(text.ends_with("\nfailed    loop 1 PUT: 3 throttled, 1,200 reset\n"), "{text}");
    // A figure whose unit is in its cell: the median of 1 to 1,000 ms, within a bin of 1 %.
    let median: f64 = lines[2][6].parse().unwrap();
    assert!((495.0..=505.0).contains(&median), "{text}");
    assert_eq!(lines[2][7], "ms");
}
