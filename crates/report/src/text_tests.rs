//! The report as people see it, with every figure worked out by hand.

use std::time::Duration;

use plimsoll_model::{ByteRate, OpRate, WrongKind};

use super::*;
use crate::proof::{Certificate, PROOF_SCHEMA, Proof, Verdict};
use crate::{CertificateLine, ErrorSample, LoopModel, fixture};

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
fn at_a_glance_a_run_is_a_screen() {
    for report in [fixture::steady(), fixture::stalled(), fixture::failing()] {
        let text = brief(&report, &PLAIN);
        assert_eq!(too_wide(&text), None);
        assert!(text.lines().count() <= 24, "{text}");
    }
}

#[test]
fn at_a_glance_failures_are_told_by_cause() {
    insta::assert_snapshot!(brief(&fixture::troubled(), &PLAIN));
}

#[test]
fn at_a_glance_all_that_failed_is_no_figure() {
    insta::assert_snapshot!(brief(&fixture::failing(), &PLAIN));
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
             report: check that the store answers at all, then measure for several
             times as long as an operation takes

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
    let analysis = &mut report.stages[1].rows[0].analysis;
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
    let row = fixture::row(&mut report);
    row.analysis.total.schedule_delay = Some(row.analysis.total.latency.clone());
    row.schedules = fixture::row(&mut fixture::stalled()).schedules.clone();
    for of in &mut row.schedules {
        of.schedule.rates = vec!["100/s..5000/s over 2m, 4000/s for 30s, 1/s".parse().unwrap()];
        of.schedule.offered_count = Some(12_345_678_901);
        of.schedule.late_count = Some(1_234_567_890);
    }
    report.stages[1].rows[0].loop_model = LoopModel::Open;
    report.targets[0].address = "https://".to_owned() + &"x".repeat(200);
    report.stages[1].errors[0].message = "word ".repeat(100);
    let text = render(&report, &PLAIN);
    assert_eq!(too_wide(&text), None, "\n{text}");
    assert!(text.contains("12,345,678 obj/s  12,345,678 obj/s"), "\n{text}");
}

#[test]
fn the_same_error_is_shown_once() {
    let mut report = fixture::troubled();
    let error = report.stages[1].errors[1].clone();
    let other = ErrorSample { message: "SlowDown: later".to_owned(), ..error.clone() };
    report.stages[1].errors.extend([error.clone(), error.clone(), error, other]);
    let text = render(&report, &PLAIN);
    assert_eq!(text.matches("SlowDown: please reduce").count(), 1, "\n{text}");
    assert!(text.contains("SlowDown: later"), "what differs has its place: \n{text}");
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
            LoopModel::Capped { rate: Some(OpRate(1_000.0)) },
            "closed loop capped at 1,000 ops/s, 8 workers on 2 threads: latency = service time, \
             waiting for the cap is not in it",
        ),
        (LoopModel::Open, "open loop, 8 workers on 2 threads: latency from the intended start"),
    ] {
        report.stages[1].rows[0].loop_model = model;
        let text = render(&report, &Look { width: 200, color: false });
        assert!(text.contains(&format!("load        {line}\n")), "\n{text}");
        assert_eq!(too_wide(&render(&report, &PLAIN)), None);
    }
}

#[test]
fn an_open_loop_that_was_held_back() {
    insta::assert_snapshot!(render(&fixture::stalled(), &PLAIN));
}

#[test]
fn a_run_in_which_all_failed() {
    insta::assert_snapshot!(render(&fixture::failing(), &PLAIN));
}

#[test]
fn a_run_in_virtual_time_tells_nothing_of_the_machine() {
    let of_machine = |cpu_ms: u64| {
        let mut report = fixture::steady();
        report.virtual_time = true;
        report.stages[1].stream_hash = Some("0123456789abcdef".to_owned());
        report.stages[1].cpu = Some(Duration::from_millis(cpu_ms));
        report.recorder_wait = None;
        report
    };
    let text = render(&of_machine(10), &PLAIN);
    assert!(
        text.contains("\ntime        virtual, seed 7, stream hash 0123456789abcdef\n"),
        "{text}"
    );
    assert!(!text.contains("CPU") && !text.contains("recorder"), "{text}");
    assert!(text.contains("\nprepared    2,500 objects, 24.4 MiB in 1.25 s\n"), "{text}");
    assert_eq!(render(&of_machine(20), &PLAIN), text);
}

#[test]
fn wrong_content_is_counted_by_what_is_wrong_with_it() {
    let mut report = fixture::troubled();
    let wrong = [
        (WrongKind::OldVersion, 5),
        (WrongKind::Torn, 7),
        (WrongKind::Short, 1_200),
        (WrongKind::Flipped, 0),
    ];
    fixture::measured(&mut report).wrong = wrong.into_iter().collect();
    let text = render(&report, &PLAIN);
    assert!(text.contains("\n  corrupt   12 (5 old-version, 7 torn)\n"), "{text}");
    assert!(text.contains("\n  truncated 1,200 (1,200 short)\n"), "{text}");
    assert_eq!(too_wide(&text), None);
}

#[test]
fn a_certificate_is_shown_and_warned_of() {
    let mut report = fixture::steady();
    report.certificate = Some(CertificateLine {
        tool_version: Some("0.1.0".to_owned()),
        machine: Some("bench1".to_owned()),
        seed: Some(9),
        passed_count: 12,
        failed_count: 0,
        when: Some("2026-11-21".to_owned()),
    });
    let text = render(&report, &PLAIN);
    let line = "certificate plimsoll 0.1.0 on bench1, seed 9: 12 proofs passed, 0 failed";
    assert!(text.contains(line) && !text.contains("warning"), "{text}");
    report.tool_version = Some("0.2.0".to_owned());
    let of_another = "warning: the certificate was made by plimsoll 0.1.0, and the run by 0.2.0";
    assert!(render(&report, &PLAIN).contains(of_another));
    report.certificate.as_mut().unwrap().failed_count = 1;
    assert!(render(&report, &PLAIN).contains("warning: the certificate reports 1 failed proof"));
    report.certificate = Some(CertificateLine::default());
    let text = render(&report, &PLAIN);
    assert!(text.contains("certificate plimsoll – on –, seed –: 0 proofs passed, 0 failed (–)"));
    assert!(text.contains("warning: the certificate holds no proof that passed"), "{text}");
}

#[test]
fn a_certificate_is_counted_by_its_verdicts() {
    let verdicts = [Verdict::Pass, Verdict::Pass, Verdict::Fail, Verdict::Skip];
    let proof = |verdict| Proof::without("stall", "claim", verdict, "reason".to_owned());
    let certificate = Certificate {
        schema: PROOF_SCHEMA.to_owned(),
        tool_version: "0.1.0".to_owned(),
        made_at: "2026-11-21T09:00:00Z".to_owned(),
        machine: "x86_64, 2 cores".to_owned(),
        seed: 7,
        place: "virtual".to_owned(),
        proofs: verdicts.map(proof).to_vec(),
    };
    let line = CertificateLine::from(&certificate);
    assert_eq!((line.passed_count, line.failed_count, line.seed), (2, 1, Some(7)));
    assert_eq!(line.when.as_deref(), Some("2026-11-21T09:00:00Z"));
}

#[test]
fn a_stop_rule_that_ended_it_is_told() {
    let mut report = fixture::steady();
    assert!(!render(&report, &PLAIN).contains("ended early"));
    report.stages[1].ended_because = Some("ci(p99) is ±4.2 %, at most 5 % was asked".to_owned());
    let line = "ended early ci(p99) is ±4.2 %, at most 5 % was asked\n";
    assert!(render(&report, &PLAIN).contains(line), "\n{}", render(&report, &PLAIN));
}

#[test]
fn advice_on_an_unsteady_rate_names_no_field() {
    let cliff = plimsoll_analysis::Cliff {
        after: Duration::from_secs(2),
        before: 900.0,
        rate_after: 300.0,
    };
    let told = crate::words::advice(&plimsoll_analysis::Advice::Cliff(cliff));
    assert!(told.ends_with("leave out the beginning, or run for longer"), "{told}");
    assert!(!told.contains('`'), "{told}");
}
