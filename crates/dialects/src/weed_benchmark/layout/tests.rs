//! Lines against those that the program itself printed.

use super::*;

macro_rules! printed {
    ($($name:literal)+) => {
        /// What the program itself printed, against clusters of one and of three servers.
        const PRINTED: &[&str] = &[$(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../testdata/weed-benchmark/",
            $name
        )),)+];
    };
}

printed!(
    "weed-64k.txt" "weed-c1.txt" "weed-c64.txt" "weed-del50.txt" "weed-fsync.txt"
    "weed-handlist.txt" "weed-n100000-c16.txt" "weed-rep1-c16.txt" "weed-repl001.txt"
    "weed-seq-c16.txt"
);

/// Returns the numbers of a printed line.
fn numbers(line: &str) -> Vec<f64> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    line.split(|c: char| !is_part(c)).filter_map(|word| word.parse().ok()).collect()
}

/// A printed report with its figures.
struct Read {
    lines: Vec<&'static str>,
    concurrency: u32,
    figures: StageFigures,
    times: Times,
}

/// Reads the reports of a text.
fn reports(text: &'static str) -> Vec<Read> {
    let lines: Vec<&str> = text.lines().collect();
    let begins = lines.iter().enumerate().filter(|(_, line)| line.starts_with("Concurrency"));
    let of = |(at, _): (usize, &&str)| {
        // From the empty line before it to the last line of percentiles.
        let is_within = |line: &&&str| !line.starts_with("---") && !line.starts_with('#');
        let mut lines: Vec<&str> = lines[at - 1..].iter().take_while(is_within).copied().collect();
        while lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        read_back(lines)
    };
    begins.map(of).collect()
}

fn read_back(lines: Vec<&'static str>) -> Read {
    let of = |label: &str| {
        let line = lines.iter().find(|line| line.starts_with(label)).unwrap();
        numbers(line)
    };
    let count = |label: &str| of(label)[0] as u64;
    let (ops_ok, bytes) = (count("Completed requests:"), count("Total transferred:"));
    let failed = count("Failed requests:");
    let failed = if failed > 0 { vec![(ErrorClass::NotFound, failed)] } else { Vec::new() };
    let took = took(
        of("Time taken")[0],
        (ops_ok as f64, of("Requests per second")[0]),
        (bytes as f64 / KIB, of("Transfer rate")[0]),
    );
    let connection = of("Total:  ");
    let mut times = Times::default();
    if let [min, mean, max, std_dev] = connection[..] {
        let (min, mean) = (Some(min), Some(mean));
        times = Times { min, mean, max: Some(max), std_dev: Some(std_dev), ..Times::default() };
        let percents = lines.iter().filter(|line| line.ends_with(" ms"));
        let printed: Vec<Vec<f64>> = percents.map(|line| numbers(line)).collect();
        times.percentiles = PERCENTS.map(|percent| {
            // A line that was left out has the value of the one before it.
            printed.iter().rfind(|printed| printed[0] <= percent).map(|printed| printed[1])
        });
    }
    let latency = Histogram::new();
    let figures = StageFigures { took, ops_ok, bytes, failed, latency };
    Read { concurrency: of("Concurrency")[0] as u32, figures, times, lines }
}

/// Returns the time in which both rates come about: the printed one has three decimals only.
fn took(printed: f64, ops: (f64, f64), kibs: (f64, f64)) -> Duration {
    let (mut from, mut to) = (printed - 0.0005, printed + 0.0005);
    for (amount, rate) in [ops, kibs].into_iter().filter(|(_, rate)| *rate > 0.0) {
        from = f64::max(from, amount / (rate + 0.005));
        to = f64::min(to, amount / (rate - 0.005));
    }
    assert!(from <= to, "{printed} s");
    Duration::from_secs_f64(f64::midpoint(from, to))
}

#[test]
fn reports_are_those_that_the_program_printed_with_the_lines_that_it_left_out() {
    let (mut count, mut added) = (0, 0);
    for read in PRINTED.iter().flat_map(|text| reports(text)) {
        let text = report_of(read.concurrency, &read.figures, &read.times, Labels::New);
        let mut ours = text.lines();
        if read.figures.ops_ok == 0 {
            // The program prints 1000000.0 and NaN here, and nothing below.
            let of_program = "Total:        1000000.0      NaN       0.0      NaN";
            assert!(read.lines.contains(&of_program));
            assert!(text.contains("\nTotal:         –        –         –        –\n"), "{text}");
            assert!(text.ends_with("\n  100%        – ms\n"), "{text}");
            let before = |line: &&&str| !line.starts_with("Total:  ");
            for line in read.lines.iter().take_while(before) {
                assert_eq!(ours.next(), Some(*line));
            }
        } else {
            for line in &read.lines {
                let skipped = ours.by_ref().position(|each| each == *line);
                let skipped = skipped.unwrap_or_else(|| panic!("`{line}` is not in {text}"));
                assert!(skipped == 0 || line.ends_with(" ms"), "{text}");
                added += skipped;
            }
            assert_eq!(ours.next(), None);
        }
        assert_eq!(text.lines().filter(|line| line.ends_with(" ms")).count(), PERCENTS.len());
        count += 1;
    }
    assert_eq!((count, added), (17, 7));
}

#[test]
fn the_lines_before_a_report_are_those_that_the_program_printed() {
    let (mut titles, mut lines) = (0, 0);
    for text in PRINTED {
        assert!(text.contains(&start_line("30GB 4.44 ", "linux", "x86_64")));
        for stage in [Stage::Write, Stage::Read { is_sequential: false }] {
            titles += text.matches(&stage.title().unwrap()).count();
        }
        let mut before = 0;
        for line in text.lines().filter(|line| line.starts_with("Completed ")) {
            let [done, total, _, ops_per_sec, mib_per_sec] = numbers(line)[..] else {
                // The line of the report.
                before = 0;
                continue;
            };
            let progress = Progress {
                done: done as u64,
                total: total as u64,
                ops_per_sec,
                bytes_per_sec: mib_per_sec * MIB,
            };
            assert_eq!(progress_line(&progress), format!("{line}\n"));
            assert!(progress.done > before, "{line}");
            before = progress.done;
            lines += 1;
        }
    }
    assert_eq!((titles, lines), (17, 102));
    let title = Stage::Read { is_sequential: true }.title().unwrap();
    assert_eq!(title, "\n------------ Sequentially Reading Benchmark ----------\n");
    assert_eq!(Stage::Delete.title(), None);
    assert_eq!(start_line("8000GB 4.48", "linux", "aarch64"), {
        "This is SeaweedFS version 8000GB 4.48 linux arm64\n"
    });
    let nothing = Progress { done: 0, total: 0, ops_per_sec: 0.0, bytes_per_sec: 0.0 };
    assert_eq!(progress_line(&nothing), "Completed 0 of 0 requests, 0.0% 0.0/s 0.0MB/s\n");
}

/// Returns the figures of latencies in microseconds.
fn figures(us: impl IntoIterator<Item = u64>) -> StageFigures {
    let mut latency = Histogram::new();
    us.into_iter().for_each(|us| latency.record(us * 1_000));
    let ops_ok = latency.count();
    StageFigures {
        took: Duration::from_secs(2),
        ops_ok,
        bytes: ops_ok * 2_048,
        latency,
        ..StageFigures::default()
    }
}

#[test]
fn figures_are_of_the_latencies_themselves() {
    // 30 µs each would be 0.0 in buckets of 100 µs that are rounded down, and one line only.
    let even = report(4, &figures([60; 400]), Labels::New);
    assert!(even.contains("\nTotal:        0.1      0.1       0.1      0.0\n"), "{even}");
    assert_eq!(even.matches("%      0.1 ms\n").count(), PERCENTS.len());
    assert!(even.contains("\nRequests per second:    200.00 [#/sec]\n"), "{even}");
    assert!(even.contains("\nTransfer rate:          400.00 [Kbytes/sec]\n"), "{even}");

    let spread = report(4, &figures((1..=1_000).map(|ms| ms * 1_000)), Labels::Old);
    assert!(spread.contains("\nComplete requests:      1000\n"), "{spread}");
    assert!(
        spread.contains("\nTotal:        1.0      500.5       1000.0      288.7\n"),
        "{spread}"
    );
    assert!(spread.ends_with("\n  100%    1000.0 ms\n"), "{spread}");
    for (percent, ms) in [(50, 500.0), (66, 660.0), (99, 990.0)] {
        let start = format!("   {percent}%    ");
        let line = spread.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
        let found: f64 = line.trim_end_matches(" ms").trim().parse().unwrap();
        assert!((found - ms).abs() <= ms * 0.001 + 0.05, "{line}");
    }
    let one = report(1, &figures([1_500]), Labels::New);
    assert!(one.contains("\nTotal:        1.5      1.5       1.5      0.0\n"), "{one}");
}

#[test]
fn a_report_in_no_time_has_no_rates() {
    let text = report(16, &StageFigures::default(), Labels::New);
    assert!(text.contains("\nRequests per second:    0.00 [#/sec]\n"), "{text}");
    assert!(text.contains("\nTransfer rate:          0.00 [Kbytes/sec]\n"), "{text}");
    assert!(!text.contains("NaN"), "{text}");
}

#[test]
fn what_is_left_out_is_told_below() {
    let write = StageFigures {
        failed: vec![(ErrorClass::Throttled, 3), (ErrorClass::Reset, 1_200)],
        ..figures((1..=1_000).map(|ms| ms * 1_000))
    };
    let delete = figures([40; 2_000]);
    let read = StageFigures::default();
    let stages = [
        (Stage::Write, write),
        (Stage::Delete, delete),
        (Stage::Read { is_sequential: true }, read),
    ];
    let text = below(&stages);
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1][..4], ["latency", "ops", "failed", "p50"]);
    assert_eq!(lines[2][..3], ["write", "1,000", "1,203"]);
    assert_eq!(lines[3][..3], ["delete", "2,000", "0"]);
    // Finer than the report.
    assert_eq!(lines[3][3], "40.0", "{text}");
    assert_eq!(lines[4], ["read", "0", "0", "–", "–", "–", "–", "–"]);
    assert!(text.ends_with("\nfailed    write: 3 throttled, 1,200 reset\n"), "{text}");
}

#[test]
fn a_version_cannot_write_to_the_terminal() {
    assert!(!start_line("4.4\u{1b}[2J", "linux", "x86_64").contains('\u{1b}'));
}

#[test]
fn deletions_are_counted_apart_and_over_both_stages() {
    use plimsoll_model::{EndpointId, StageId};
    use plimsoll_stats::{Sample, Timeline};

    let stage = |ops: &[(OpKind, ErrorClass, u64)]| {
        let mut timeline = Timeline::new(0, 1_000_000_000);
        for &(kind, class, latency_ns) in ops {
            let key = SeriesKey { stage: StageId(0), kind, endpoint: EndpointId(1) };
            let bytes = if kind == OpKind::Put && class.is_ok() { 100 } else { 0 };
            let sample = Sample {
                start_ns: 0,
                end_ns: latency_ns,
                latency_ns,
                ttfb_ns: None,
                bytes,
                objects: 1,
                outcome: class as u8,
            };
            timeline.record(key, &sample);
        }
        StageFigures::of(&timeline.totals(), Duration::from_secs(2))
    };
    let (put, delete) = (OpKind::Put, OpKind::Delete);
    let (ok, gone, away) = (ErrorClass::Ok, ErrorClass::NotFound, ErrorClass::Connect);
    let (written, removed) =
        stage(&[(put, ok, 5), (put, ok, 7), (put, away, 9), (delete, ok, 3), (delete, gone, 90)]);
    assert_eq!((written.ops_ok, written.bytes, written.failed_count()), (2, 200, 1));
    assert_eq!(written.latency.max(), Some(7));
    let mut removed = removed.unwrap();
    assert_eq!((removed.ops_ok, removed.failed.as_slice()), (1, &[(gone, 1)][..]));

    let (nothing, more) = stage(&[(delete, ok, 11), (delete, gone, 90), (delete, away, 90)]);
    assert_eq!((nothing.ops_ok, nothing.failed_count()), (0, 0));
    removed.add(&more.unwrap());
    assert_eq!((removed.ops_ok, removed.latency.max()), (2, Some(11)));
    assert_eq!(removed.failed, [(gone, 2), (away, 1)]);
    assert_eq!(removed.took, Duration::from_secs(4));
    assert_eq!(stage(&[(put, ok, 5)]).1, None);
}

#[test]
fn a_run_has_the_lines_of_the_program_in_their_order() {
    // One of which the program left out no percentile.
    let (_, printed) = PRINTED[0].split_once('\n').unwrap();
    let mut ours = start_line("30GB 4.44 ", "linux", "x86_64");
    for stage in [Stage::Write, Stage::Read { is_sequential: false }] {
        ours += &stage.title().unwrap();
        let progress = Progress { done: 5, total: 9, ops_per_sec: 5.0, bytes_per_sec: 5.0 * MIB };
        ours += &progress_line(&progress);
        ours += &report(4, &figures((1..=1_000).map(|ms| ms * 1_000)), Labels::New);
    }
    plimsoll_testkit::golden::assert_like(printed, &ours, &[]);
}
