//! The report as people see it, with every figure worked out by hand.

use std::time::Duration;

use plimsoll_model::{ByteRate, OpRate, OpRecord};

use super::*;
use crate::{LoopModel, fixture};

const PLAIN: Look = Look { width: 80, color: false };

/// Returns the first line that is wider than 80 columns, the copyable run directory apart.
fn too_wide(text: &str) -> Option<&str> {
    let lines = text.lines().filter(|line| !line.starts_with("run kept in"));
    lines.into_iter().find(|line| line.chars().count() > 80)
}

#[test]
fn a_steady_run() {
    insta::assert_snapshot!(render(&fixture::steady(), &PLAIN), @r#"
    s3 get: 800 ops/s · 7.81 MiB/s · p50 10.0 ms · p99 10.0 ms · 0 failed

    target      http://127.0.0.1:9000, bucket plimsoll
    load        closed loop, 8 workers on 2 threads: latency = service time
    measured    5.99 s of 6.00 s, while all 8 workers ran
    began       2026-11-21 09:00:00 UTC

    operations      mix  succeeded  failed  error rate  samples
      GET       100.0 %      4,800       0         0 %    4,792

    rate       average   fastest 1 s    median 1 s     slowest 1 s
      GET    800 ops/s     800 ops/s     800 ops/s       800 ops/s
            7.81 MiB/s    7.81 MiB/s    7.81 MiB/s      7.81 MiB/s
           over 5.99 s  from +4.00 s  from +2.00 s  from the start

    latency      p50      p90      p99    p99.9      max  mean ± deviation
      GET    10.0 ms  10.0 ms  10.0 ms  10.0 ms  10.0 ms     10.0 ms ± 0 s

    TTFB       p50      p90      p99    p99.9      max  mean ± deviation
      GET  5.00 ms  5.00 ms  5.00 ms  5.00 ms  5.00 ms     5.00 ms ± 0 s

    prepared    2,500 objects, 24.4 MiB in 1.25 s (2,000 obj/s)
    verified    46.9 MiB, every byte of every read
    client CPU  48.0 ms, 10.0 µs per operation
    op log      4,800 rows, all that were counted
    seed        7
    units       1 MiB = 1,048,576 bytes; – is unknown or from too few samples

    run kept in ./plimsoll-s3-get-20261121t090000z-aaaa
    "#);
}

#[test]
fn a_troubled_run() {
    insta::assert_snapshot!(render(&fixture::troubled(), &PLAIN));
}

#[test]
fn a_run_without_operations() {
    let report = fixture::report("s3 get", fixture::analysis(&[], 0, 4), 4);
    insta::assert_snapshot!(render(&report, &PLAIN), @r#"
    s3 get: no operation ended

    target      http://127.0.0.1:9000, bucket plimsoll
    load        closed loop, 4 workers on 2 threads: latency = service time
    measured    nothing, in 0 s
    began       2026-11-21 09:00:00 UTC

    prepared    2,500 objects, 24.4 MiB in 1.25 s (2,000 obj/s)
    verified    0 B, every byte of every read
    client CPU  48.0 ms, – per operation
    op log      0 rows, all that were counted
    seed        7
    units       1 MiB = 1,048,576 bytes; – is unknown or from too few samples

    warning: no operation of the measured stage ended, so there is nothing to
             report: try a longer duration

    run kept in ./plimsoll-s3-get-20261121t090000z-aaaa
    "#);
}

#[test]
fn deleting_in_batches_has_its_objects_in_the_headline() {
    // One worker, one call of 10 ms with 100 keys after the other: 100 calls, 10,000 keys a second.
    let mut ops = fixture::back_to_back(OpKind::Delete, 0, 2_000, 10);
    ops.iter_mut().for_each(|op| op.objects_count = 100);
    let analysis = fixture::analysis(&ops, 2_000, 1);
    let text = render(&fixture::report("s3 delete", analysis, 1), &PLAIN);
    let headline = text.lines().next().unwrap();
    assert!(
        headline.starts_with("s3 delete: 100 ops/s · 10,000 obj/s · p50 10.0 ms"),
        "{headline}"
    );
}

#[test]
fn the_largest_figures_fit_into_80_columns() {
    let mut report = fixture::troubled();
    let analysis = &mut report.analysis;
    let kinds = analysis.kinds.iter_mut();
    let all = kinds.flat_map(|kind| {
        kind.endpoints.iter_mut().map(|at| &mut at.figures).chain([&mut kind.figures])
    });
    let endpoints = analysis.endpoints.iter_mut().map(|at| &mut at.figures);
    for figures in all.chain(endpoints).chain([&mut analysis.total]) {
        let rates = plimsoll_analysis::Rates {
            ops: OpRate(12_345_678.0),
            objects: OpRate(12_345_678.0),
            bytes: ByteRate(1_234_567.0 * 1_048_576.0),
        };
        figures.rates = Some(rates);
        for segment in figures.segments.iter_mut() {
            for rate in [&mut segment.fastest, &mut segment.median, &mut segment.slowest] {
                rate.rates = rates;
            }
        }
        figures.stage.ops_ok = 1_234_567_890;
        let long = Some(Duration::from_secs(99 * 60));
        figures.latency.samples = 1_234_567_890;
        for time in [&mut figures.latency.p50, &mut figures.latency.p90, &mut figures.latency.p99] {
            *time = long;
        }
        (figures.latency.p99_9, figures.latency.max) = (long, long);
        (figures.latency.mean, figures.latency.std_dev) = (long, long);
    }
    report.target = "https://".to_owned() + &"x".repeat(200);
    report.errors[0].message = "word ".repeat(100);
    let text = render(&report, &PLAIN);
    assert_eq!(too_wide(&text), None, "\n{text}");
    assert!(text.contains("12,345,678 obj/s  12,345,678 obj/s"), "\n{text}");
}

#[test]
fn no_control_character_without_colour_and_the_same_words_with_it() {
    let report = fixture::troubled();
    let plain = render(&report, &PLAIN);
    assert!(plain.chars().all(|c| c == '\n' || !c.is_control()), "\n{plain}");
    assert_eq!(too_wide(&plain), None);
    let mut colored = render(&report, &Look { color: true, ..PLAIN });
    assert_ne!(colored, plain);
    for code in ["0", "1", "2", "31", "32", "33"] {
        colored = colored.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(colored, plain);
}

#[test]
fn the_loop_model_says_what_the_latency_means() {
    let mut report = fixture::steady();
    for (model, line) in [
        (LoopModel::Closed, "closed loop, 8 workers on 2 threads: latency = service time"),
        (
            LoopModel::Capped { rate: OpRate(1_000.0) },
            "closed loop capped at 1,000 ops/s, 8 workers on 2 threads: latency = service time, \
             waiting for the cap is not in it",
        ),
        (
            LoopModel::Open { rate: OpRate(0.5) },
            "open loop at 0.500 ops/s, 8 workers on 2 threads: latency counts from the intended \
             start",
        ),
    ] {
        report.loop_model = model;
        let text = render(&report, &Look { width: 200, color: false });
        assert!(text.contains(&format!("load        {line}\n")), "\n{text}");
        assert_eq!(too_wide(&render(&report, &PLAIN)), None);
    }
}

#[test]
fn service_time_has_a_table_of_its_own_once_it_differs() {
    let ops: Vec<OpRecord> = fixture::back_to_back(OpKind::Stat, 0, 2_000, 10);
    let late = ops.into_iter().map(|op| OpRecord {
        intended: Moment::from_ns(op.start.as_ns().saturating_sub(5_000_000)),
        ..op
    });
    let late: Vec<_> = late.collect();
    let report = fixture::report("s3 stat", fixture::analysis(&late, 2_000, 1), 1);
    let text = render(&report, &PLAIN);
    // 199 inside, all of 15 ms latency and 10 ms service time; a STAT moves no bytes.
    let row = |name: &str| text.lines().skip_while(|line| !line.starts_with(name)).nth(1).unwrap();
    assert_eq!(
        row("latency").split_whitespace().take(3).collect::<Vec<_>>(),
        ["STAT", "15.0", "ms"]
    );
    assert_eq!(
        row("service").split_whitespace().take(3).collect::<Vec<_>>(),
        ["STAT", "10.0", "ms"]
    );
    assert!(!text.contains("MiB/s"), "\n{text}");
}

#[test]
fn a_stop_rule_that_ended_it_is_told() {
    let mut report = fixture::steady();
    assert!(!render(&report, &PLAIN).contains("ended early"));
    report.ended_because = Some("ci(p99) is ±4.2 %, at most 5 % was asked".to_owned());
    let line = "ended early ci(p99) is ±4.2 %, at most 5 % was asked\n";
    assert!(render(&report, &PLAIN).contains(line), "\n{}", render(&report, &PLAIN));
}
