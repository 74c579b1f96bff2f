//! Virtual time and the proofs, as their users meet them.

use std::fs;
use std::path::Path;

use plimsoll_http::Transport;
use serde_json::Value;

use crate::harness::{measured, printed, refused, run_line};

/// Writes the workload that a command line of `s3` means to `workload.yaml`.
fn workload(directory: &Path, line: &str) {
    let yaml = printed(directory, &format!("s3 {line} --explain"));
    fs::write(directory.join("workload.yaml"), yaml).unwrap();
}

/// A job of a stage is measured from the end of its own ramp to its own end, and what it was
/// offered is what arrived in its own time.
#[test]
fn jobs_of_one_stage_are_measured_each_over_its_own_time() {
    let folder = tempfile::tempdir().unwrap();
    let text = "
schema: plimsoll.workload/2
sets: {data: {count: 200, size: 4KiB}}
stages:
- {prepares: true, jobs: [{workers: 4, work: {fill: data}}]}
- name: serve
  jobs:
  - name: short
    workers: 2
    ramp: 2s
    duration: 5s
    pacing: {open: {rate: 100/s, max_in_flight: 64}}
    work: {objects: [get: data]}
  - {name: long, duration: 20s, pacing: {capped: 50/s}, work: {objects: [stat: data]}}
";
    std::fs::write(folder.path().join("two.yaml"), text).unwrap();
    let output = run_line(folder.path(), "run two.yaml --virtual --quiet --json --seed 1");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = &report["stages"][1]["rows"];
    let rate = |row: &serde_json::Value| {
        row["kinds"][0]["rates"]["ops_per_sec"].as_f64().unwrap().round() as u64
    };
    assert_eq!((rate(&rows[0]), rate(&rows[1])), (100, 50), "{rows:#}");
    let offered = &rows[0]["schedules"][0];
    assert_eq!(offered["rate_offered_ops_per_sec"], 100.0, "{offered:#}");
}

#[test]
fn two_runs_in_virtual_time_are_alike_whatever_the_threads() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let load = "mixed --rate 500/s --arrivals poisson --duration 20s --objects 100";
    workload(here, &format!("{load} --obj.size 4KiB --seed 3"));
    let line = "run workload.yaml --virtual --seed 7 --quiet";
    let one = printed(here, line);
    assert_eq!(one, printed(here, line));
    let threads = format!("{line} --threads 5");
    assert_eq!(one, printed(here, &threads));
    let hash = one.lines().find(|line| line.starts_with("time ")).unwrap();
    assert!(hash.contains("virtual, seed 7, stream hash "), "{hash}");
    assert!(!printed(here, "run workload.yaml --virtual --seed 8 --quiet").contains(hash));
    // Nothing is left where it was run.
    assert_eq!(fs::read_dir(here).unwrap().count(), 1);
    printed(here, &format!("{line} --run-dir kept"));
    let again = printed(here, "analyze kept");
    let rate = |text: &str| text.lines().find(|line| line.contains("ops/s")).map(str::to_owned);
    assert_eq!(rate(&again), rate(&one));
}

#[test]
fn a_script_is_what_is_measured() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    workload(here, "stat --rate 100/s --duration 10s --objects 100 --max-in-flight 1 --seed 3");
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 20ms}}\n";
    fs::write(here.join("slow.yaml"), script).unwrap();
    let output = run_line(here, "run workload.yaml --virtual --script slow.yaml --quiet --json");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // One at a time and 20 ms each: half of what is due is issued.
    assert_eq!(schedule(&report)["offered_count"], 1_000);
    assert_eq!(schedule(&report)["skipped_count"], 500);
    assert_eq!(schedule(&report)["kept"], false);
    assert!(String::from_utf8_lossy(&output.stderr).contains("SCHEDULE NOT KEPT"));
}

/// Returns how the only job kept its schedule.
fn schedule(report: &Value) -> &Value {
    &measured(report)["schedules"][0]
}

/// Issue 13: who obeyed the advice to raise it was told to raise it again.
#[test]
fn a_saturated_store_is_named_and_one_with_room_gets_more_in_flight() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let warning = |limit: &str, script: &str| {
        let line = "stat --rate 1000/s --duration 10s --objects 100 --seed 3 --max-in-flight";
        workload(here, &format!("{line} {limit}"));
        let script = format!("schema: plimsoll.oracle/1\n{script}\n");
        fs::write(here.join("store.yaml"), script).unwrap();
        let output =
            run_line(here, "run workload.yaml --virtual --script store.yaml --quiet --json");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        schedule(&report)["warning"].as_str().unwrap().to_owned()
    };
    // Four at once, 10 ms each: 400 a second, however many wait.
    for limit in ["64", "1024"] {
        let said = warning(limit, "service: {time: {constant: 10ms}}\nservers: 4");
        assert!(said.contains("completes about 400/s and cannot carry 1,000/s"), "{said}");
        assert!(!said.contains("raise it"), "{said}");
    }
    // 100 ms each, any number at once: 1,000/s need 100 in flight.
    let said = warning("64", "service: {time: {constant: 100ms}}");
    assert!(said.contains("64 is below the 100 that 1,000/s needs"), "{said}");
}

#[test]
fn what_cannot_be_is_refused_by_the_name_of_its_field() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    for (line, named) in [
        ("s3 get --rate 0/s", "--rate"),
        ("s3 get --rate 100/s..-5/s", "--rate"),
        ("s3 get --rate 10/s --max-in-flight 0", "--max-in-flight"),
        ("s3 get --rate 10/s --rps-limit 5/s", "--rps-limit"),
        ("s3 get --arrivals poisson", "--rate"),
        ("run nowhere.yaml", "nowhere.yaml"),
        ("prove magic", "no proof is called `magic`; there are quantiles"),
        ("null --certificate nowhere.json", "nowhere.json"),
    ] {
        let said = refused(here, line);
        assert!(said.contains(named), "{line}: {said}");
    }
    workload(here, "stat --duration 1s --objects 100");
    for (script, named) in [
        ("service: {time: {exponential: {mean: -2ms}}}", "service.time"),
        ("service: {time: {constant: 1ms}}\nstalls: {every: 1s, lasting: 2s}", "stalls"),
        ("service: {time: {constant: 1ms}}\nlies: {torn: 1.5}", "lies"),
    ] {
        let yaml = format!("schema: plimsoll.oracle/1\n{script}\n");
        fs::write(here.join("script.yaml"), yaml).unwrap();
        let said = refused(here, "run workload.yaml --virtual --script script.yaml");
        assert!(said.contains("script.yaml") && said.contains(named), "{script}: {said}");
    }
    let said = refused(here, "run workload.yaml --virtual --host 127.0.0.1:1");
    assert!(said.contains("--host"), "{said}");
}

#[test]
fn every_proof_holds_and_its_certificate_goes_into_a_run() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let found = printed(here, "prove --seeds 2 --json --quiet --certificate proved.json");
    let found: Value = serde_json::from_str(&found).unwrap();
    let proofs = found["proofs"].as_array().unwrap();
    let names: Vec<&str> = proofs.iter().map(|proof| proof["name"].as_str().unwrap()).collect();
    let expected = [
        "quantiles",
        "stall",
        "errors",
        "bytes",
        "merge",
        "poisson",
        "outages",
        "replay",
        "schedule",
        "load-line",
        "verdict",
    ];
    assert_eq!(names, expected);
    assert!(proofs.iter().all(|proof| proof["verdict"] == "pass"), "{found:#}");
    let written = fs::read_to_string(here.join("proved.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), found);

    let line = "null --duration 100ms --quiet --run-dir run --certificate proved.json";
    let report = printed(here, line);
    // The line is broken where the machine's name is long.
    let in_one = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let certified = in_one(&report);
    let (_, certified) = certified.split_once("certificate plimsoll").unwrap();
    let (certified, _) = certified.split_once("11 proofs").unwrap();
    assert!(in_one(&printed(here, "analyze run")).contains(certified));
}

/// What a busy machine cannot change: how much was done, lost and refused. How long it took, what a
/// machine that lags behind does not come round to, and whom a verdict names when the client is
/// short of processors depend on the load; virtual time proves these.
fn is_beyond_load(proof: &str, check: &Value) -> bool {
    let what = check["what"].as_str().unwrap();
    match proof {
        "outages" => what.ends_with(" named"),
        "verdict" => check["truth"] == "store-sheds-load",
        _ => !what.contains(": p") && !what.starts_with("reads in all"),
    }
}

#[test]
fn over_real_sockets_counts_are_exact_whatever_the_machine_does() {
    // Without the load line, of which all is a matter of time.
    let mut all: Vec<(&str, &str)> =
        ["quantiles", "stall", "errors", "bytes", "outages", "seaweed", "verdict"]
            .map(|name| ("sockets", name))
            .into();
    if Transport::IoUring.direct(false, true).is_ok() {
        all.extend(["quantiles", "stall", "errors", "bytes"].map(|name| ("io_uring", name)));
    }
    // They mostly wait, and nothing that others can disturb is judged: all at once.
    std::thread::scope(|scope| {
        for (transport, name) in all {
            scope.spawn(move || counts_are_exact(transport, name));
        }
    });
}

fn counts_are_exact(transport: &str, name: &str) {
    let place = tempfile::tempdir().unwrap();
    let line = format!("prove {name} --loopback --transport {transport} --json --quiet");
    let output = run_line(place.path(), &line);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let proof = &found["proofs"][0];
    assert_eq!((&found["place"], &proof["name"]), (&"loopback".into(), &name.into()));
    let checks = proof["checks"].as_array().unwrap();
    let holds = |check: &&Value| check["holds"] == true;
    let counts = checks.iter().filter(|check| is_beyond_load(name, check)).collect::<Vec<_>>();
    assert!(!counts.is_empty() && counts.iter().all(holds), "{transport}: {proof:#}");
    let (verdict, reason) = (proof["verdict"].as_str().unwrap(), proof["reason"].as_str());
    match reason {
        None => {
            assert_eq!(verdict == "pass", checks.iter().all(|check| holds(&check)), "{proof:#}");
        }
        Some(reason) => {
            let is_the_machine =
                ["noisy machine (", "busy machine, "].iter().any(|it| reason.starts_with(it));
            assert!(verdict == "skip" && is_the_machine && name != "errors", "{proof:#}");
        }
    }
    assert_eq!(output.status.code(), Some(i32::from(verdict == "fail")), "{proof:#}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_proof_is_one_line_and_more_where_that_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let output = run_line(place.path(), "prove stall schedule");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("PASS  stall      open-loop p95, p99 and p99.9 within 5 %  "));
    assert!(lines[1].starts_with("PASS  schedule   ") && lines.len() == 3, "{text}");
    assert_eq!(lines[2], "2 of 2 proofs hold, 0 failed, 0 skipped; 8 checks, seed 1");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    // Nothing that stderr says doubles them on a terminal.
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);

    let text = printed(place.path(), "prove stall -v --quiet");
    assert!(text.starts_with("PASS  stall\n      claim     a store that serves in 2 ms"), "{text}");
    assert_eq!(text.matches("\n        truth     ").count(), 4, "{text}");
}

#[test]
fn a_proof_can_be_repeated_from_what_it_explains() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let shown = printed(here, "prove stall --explain --quiet");
    let mut parts = shown.split("# stall, measurement ");
    assert!(parts.next().unwrap().starts_with("PASS  stall "));
    for (part, file) in parts.zip(["workload.yaml", "script.yaml"]) {
        let (title, yaml) = part.split_once('\n').unwrap();
        assert!(title.starts_with("1: the ") && file.starts_with(&title[7..]), "{title}");
        fs::write(here.join(file), yaml).unwrap();
    }
    let line = "run workload.yaml --virtual --script script.yaml --quiet --json";
    let report: Value = serde_json::from_str(&printed(here, line)).unwrap();
    // As the proof has it: 902 ms, within 5 %.
    let p99 = measured(&report)["total"]["latency_ns"]["p99"].as_u64().unwrap();
    assert!((856_900_000..=947_100_000).contains(&p99), "{p99}");
}

#[test]
fn a_rival_that_is_not_there_is_skipped_and_one_that_is_not_named_refused() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    for (path, reason) in [
        ("nowhere/warp", "no `nowhere/warp` is found; --against warp=PATH names one"),
        (env!("CARGO_BIN_EXE_plimsoll"), "is not the benchmark warp"),
    ] {
        let found = printed(here, &format!("prove rivals --against warp={path} --json --quiet"));
        let found: Value = serde_json::from_str(&found).unwrap();
        let proof = &found["proofs"][0];
        assert_eq!((&found["place"], &proof["verdict"]), (&"loopback".into(), &"skip".into()));
        assert!(proof["reason"].as_str().unwrap().ends_with(reason), "{proof:#}");
    }
    for (line, named) in [
        ("prove rivals", "--against"),
        ("prove --against warp", "made only by name"),
        ("prove stall --against warp", "made only by name"),
        ("prove --loopback merge", "no proof is called `merge` over loopback"),
    ] {
        let said = refused(here, line);
        assert!(said.contains(named), "{line}: {said}");
    }
}
