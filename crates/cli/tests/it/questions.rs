//! Ten questions that a reader has, each answered by the text of one report alone.

use std::path::Path;

use plimsoll_oracle::Script;

use crate::harness::{plimsoll, printed, run, run_line, scripted};

/// Runs a workload in virtual time on a scripted store, and returns what is printed.
fn simulated(here: &Path, pacing: &str, script: &str) -> String {
    let work = format!(
        "schema: plimsoll.workload/2\nname: q\nseed: 1\n\
         sets: {{o: {{count: 50, size: 64KiB}}}}\nstages:\n\
         - {{prepares: true, jobs: [{{work: {{fill: o}}}}]}}\n\
         - {{duration: 20s, jobs: [{{{pacing}, work: {{objects: [get: o]}}}}]}}\n"
    );
    std::fs::write(here.join("w.yaml"), work).unwrap();
    std::fs::write(here.join("s.yaml"), format!("schema: plimsoll.oracle/1\n{script}")).unwrap();
    let output = run_line(here, "run w.yaml --virtual --script s.yaml --quiet");
    in_one(&String::from_utf8(output.stdout).unwrap())
}

/// Returns a text with its line breaks and gaps as single spaces.
fn in_one(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn answers(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
}

#[test]
fn how_fast_was_it_and_what_was_the_load() {
    let place = tempfile::tempdir().unwrap();
    // Four workers, 4 ms each: 1,000 a second, 62.5 MiB/s.
    let text = simulated(place.path(), "workers: 4", "service: {time: {constant: 4ms}}");
    answers(&text, &["1,000 ops/s · 62.5 MiB/s · p50 4.00 ms · p99 4.00 ms · 0 failed"]);
    answers(&text, &["closed loop, 4 workers", "measured 20.0 s of 20.0 s"]);
}

#[test]
fn how_sure_is_p99() {
    let place = tempfile::tempdir().unwrap();
    let text = simulated(place.path(), "workers: 4", "service: {time: {exponential: {mean: 4ms}}}");
    let (_, rest) = text.split_once(" p99: ").unwrap();
    let ends: Vec<f64> =
        rest.split(' ').filter_map(|word| word.parse().ok()).take(2).collect::<Vec<f64>>();
    // An exponential with a mean of 4 ms exceeds 4 ms × ln 100 once in a hundred.
    let truth = 4.0 * 100f64.ln();
    assert!(ends[0] < truth && truth < ends[1] && ends[1] - ends[0] < 2.0, "{ends:?}: {text}");
}

#[test]
fn did_it_stall() {
    let place = tempfile::tempdir().unwrap();
    let script = "service: {time: {constant: 4ms}}\nstalls: {every: 10s, lasting: 3s}";
    let text = simulated(place.path(), "workers: 4", script);
    answers(&text, &["outage no success for 3.00 s, from +10.0 s to +13.0 s"]);
}

#[test]
fn was_the_schedule_kept() {
    let place = tempfile::tempdir().unwrap();
    let script = "service: {time: {constant: 4ms}}";
    let kept = simulated(place.path(), "pacing: {open: 500/s}", script);
    answers(&kept, &["offered 500 ops/s", "schedule kept: 0 late by more than 1 ms"]);
    let pacing = "pacing: {open: {rate: 500/s, max_in_flight: 1}}";
    let late = simulated(place.path(), pacing, script);
    answers(&late, &["SCHEDULE NOT KEPT: ", "did not start on time"]);
}

#[test]
fn what_failed_when_and_why() {
    let place = tempfile::tempdir().unwrap();
    let script = "service: {time: {constant: 4ms}}\nfaults: {get: {slow_down: 0.05}}";
    let text = simulated(place.path(), "workers: 4", script);
    answers(&text, &["throttled (GET) from +", "SlowDown", "failed ("]);
}

#[test]
fn which_host_was_slow() {
    let place = tempfile::tempdir().unwrap();
    let script = |time: &str| -> Script {
        let text = format!("schema: plimsoll.oracle/1\nservice: {{time: {{constant: {time}}}}}\n");
        Script::from_yaml(&text).unwrap()
    };
    let (fast, slow) = (scripted(Some(script("1ms"))), scripted(Some(script("40ms"))));
    let put = |hosts: &str, duration: &str| {
        let mut command = plimsoll(place.path());
        command.args([
            "s3",
            "put",
            "--obj.size",
            "1KiB",
            "--concurrent",
            "4",
            "--quiet",
            "--keep-data",
            "--create-bucket",
        ]);
        command.args(["--bucket", "bench", "--host", hosts, "--duration", duration]);
        fast.credentials(&mut command);
        let output = run(command);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // A run has the first address make its bucket, and each of these is a store of its own.
    for store in [&fast, &slow] {
        put(&store.host, "100ms");
    }
    let text = put(&format!("{},{}", fast.host, slow.host), "2s");
    let p50 = |host: &str| -> String {
        let line = text.lines().find(|line| line.trim_start().starts_with(host)).unwrap();
        line.split_whitespace().skip(3).take(2).collect::<Vec<_>>().join(" ")
    };
    // The slow one needs its 40 ms at least, whatever the machine does.
    let slow: f64 = p50(&slow.host).split(' ').next().unwrap().parse().unwrap();
    assert!(slow >= 40.0 && p50(&fast.host).ends_with(" ms"), "{text}");
}

#[test]
fn was_it_the_store_or_me_was_it_checked_and_where_is_it() {
    let place = tempfile::tempdir().unwrap();
    let line = "s3 get --duration 1s --objects 20 --obj.size 4KiB --concurrent 4 --run-dir run";
    let text = printed(place.path(), line);
    assert!(text.lines().count() <= 24, "{text}");
    let text = in_one(&text);
    // Who it was depends on the machine; that it is told does not.
    answers(&text, &["verdict client ", " % busy: ", " because ", " try next "]);
    answers(&text, &["every byte of every read", "beware ", "run kept in run; -v prints all"]);
}
