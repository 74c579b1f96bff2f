//! `plimsoll as warp`: what a run prints is what warp's report of its exported file says.

use std::fs;
use std::path::Path;
use std::process::Output;

use plimsoll_dialects::warp::report::{self, ReportShown};
use plimsoll_foreign::warp::aggregated;
use plimsoll_oracle::Script;
use serde_json::Value;

use crate::console_submitters::Stranger;
use crate::harness::{Target, oracle, plimsoll, printed, refused, run, run_line, scripted, stderr};

/// Benchmarks, how they are shown, and what stands in that.
const LINES: [(&str, &str, &str); 4] = [
    ("get --objects 40 --obj.size 4KiB", "--full --analyze.dur=100ms", "Operation: GET"),
    ("mixed --objects 60 --obj.size 1KiB", "--full --analyze.v", "Operation: STAT"),
    ("delete --objects 200 --batch 10 --obj.size 100", "--full", "Operation: DELETE"),
    ("put --obj.size 1KiB", "--full --analyze.op=put --analyze.skip=100ms", "Operation: PUT"),
];
/// A third of the GETs is refused.
const FAULTS: &str = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n\
                      faults: {get: {slow_down: 0.33}}\n";

/// Runs a benchmark into `run` and returns what it printed.
fn benchmark(target: &Target, directory: &Path, line: &str) -> (Option<i32>, String) {
    let output = ran(target, directory, line);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(!text.is_empty(), "{line}: {}", stderr(&output));
    (output.status.code(), text)
}

/// Runs a benchmark into `run`.
fn ran(target: &Target, directory: &Path, line: &str) -> Output {
    let Target { host, bucket, access_key, secret_key, .. } = target;
    run_line(
        directory,
        &format!(
            "as warp {line} --duration 1s --concurrent 2 --host {host} --bucket {bucket} \
             --access-key {access_key} --secret-key {secret_key} --benchdata run"
        ),
    )
}

fn exported(directory: &Path, shown: &str) -> String {
    // The run left it.
    assert!(directory.join("run.csv.zst").exists());
    let text = printed(directory, &format!("as warp analyze {shown} run.csv.zst"));
    // warp has an empty line in front here, and behind after a run.
    format!("{}\n", text.strip_prefix('\n').unwrap())
}

#[test]
fn a_run_prints_what_its_exported_file_is_analysed_to() {
    let target = oracle();
    for (line, shown, part) in LINES {
        let place = tempfile::tempdir().unwrap();
        let line = format!("{line} {shown}");
        let (code, text) = benchmark(&target, place.path(), &line);
        assert_eq!(code, Some(0), "{line}");
        assert!(text.contains(part), "{line}: {text}");
        assert_eq!(text, exported(place.path(), shown), "{line}");
    }
}

#[test]
fn failures_and_segments_are_the_same_too() {
    let target = scripted(Some(Script::from_yaml(FAULTS).unwrap()));
    let place = tempfile::tempdir().unwrap();
    let shown = "--full --analyze.dur=100ms --analyze.v --analyze.out";
    let line = format!("get --objects 40 --obj.size 4KiB {shown} own.tsv");
    let (code, text) = benchmark(&target, place.path(), &line);
    assert_eq!(code, Some(1), "a third of the operations failed: {text}");
    assert!(text.contains("throttled"), "{text}");
    let again = exported(place.path(), &format!("{shown} again.tsv"));
    assert_eq!(text, again);
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    assert!(read("own.tsv").lines().count() > 2);
    assert_eq!(read("own.tsv"), read("again.tsv"));
}

#[test]
fn a_run_too_short_for_warps_figures_says_so_in_its_words_and_tells_its_own_beside() {
    let target = oracle();
    for (line, kind) in [
        ("delete --objects 200 --batch 10 --obj.size 100", "DELETE"),
        ("get --objects 40 --obj.size 4KiB --analyze.v", "GET"),
        ("mixed --objects 60 --obj.size 1KiB", "STAT"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let output = ran(&target, place.path(), line);
        let (text, said) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        let left = fs::File::open(place.path().join("run.json.zst")).unwrap();
        let shown = ReportShown { details: line.ends_with(".v"), op: None };
        let report = report::text(&aggregated::read(left).unwrap(), shown);
        assert_eq!(text, format!("\n{report}\n"), "{line}");
        assert!(text.contains(&format!("Skipping {kind} too few samples. ")), "{line}: {text}");
        assert!(said.contains("run kept in run"), "{line}: {said}");
        assert!(said.contains("benchmark data written to run.json.zst"), "{line}: {said}");
        let own = said.lines().find(|line| line.starts_with(&format!("{kind}: "))).unwrap();
        assert!(own.contains(" requests, 0 failed; ") && own.contains("99%: "), "{own}");
        // What the run left is read as warp's own file is.
        let again = printed(place.path(), "as warp analyze run.json.zst");
        assert!(again.contains(&format!("Skipping {kind} too few samples. ")), "{again}");
    }
}

#[test]
fn json_is_warps_document_and_report_json_is_ours() {
    let target = scripted(Some(Script::from_yaml(FAULTS).unwrap()));
    let place = tempfile::tempdir().unwrap();
    let line = "get --objects 40 --obj.size 4KiB --json";
    let output = ran(&target, place.path(), line);
    let said = stderr(&output);
    assert!(said.contains("plimsoll's: --report-json"), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["v"], &document["final"]), (&2.into(), &true.into()));
    let gets = &document["by_op_type"]["GET"];
    let number = |name: &str| gets[name].as_u64().unwrap();
    let good = number("total_requests") - number("total_errors");
    assert!(number("total_errors") > 0 && good > 0, "{gets}");
    // Failed operations are in no sum.
    assert_eq!((number("total_objects"), number("total_bytes")), (good, good * 4_096));
    assert_eq!(document["total"]["throughput"]["objects"].as_u64(), Some(good));
    assert_eq!(gets["first_errors"][0], "throttled");
    let typed = document["commandline"].as_str().unwrap();
    assert!(typed.contains("--secret-key '*REDACTED*'"), "{typed}");
    let left = fs::File::open(place.path().join("run.json.zst")).unwrap();
    let left = aggregated::read(left).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&aggregated::text(&left)).unwrap(), document);

    let said = ran(&target, place.path(), "get --objects 40");
    assert!(stderr(&said).contains("run.json.zst already exists"), "{}", stderr(&said));
    let place = tempfile::tempdir().unwrap();
    let output = ran(&target, place.path(), &format!("{line} --report-json"));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "plimsoll.report/1");
}

#[test]
fn what_is_explained_is_a_workload_that_runs_below_the_line_as_typed_here() {
    let target = oracle();
    let place = tempfile::tempdir().unwrap();
    let line = "as warp stat --host h --objects 20 --obj.size 1KiB --duration 200ms --concurrent 2";
    let text = printed(place.path(), &format!("{line} --explain"));
    assert!(text.starts_with("# plimsoll s3 stat "), "{text}");
    assert!(text.contains("\nschema: plimsoll.workload/2\n"), "{text}");
    assert!(text.contains("\n# 4M is 4,000,000 bytes, as in warp; "), "{text}");
    assert!(text.contains("--report-json"), "{text}");
    fs::write(place.path().join("w.yaml"), text).unwrap();
    let mut run = target.command(place.path(), "run w.yaml -q");
    assert!(run.status().unwrap().success());
}

#[test]
fn what_the_report_cannot_show_is_refused_before_the_run() {
    let place = tempfile::tempdir().unwrap();
    let said = refused(place.path(), "as warp get --host 127.0.0.1:1 --analyze.op=gets");
    assert!(said.starts_with("plimsoll: `--analyze.op=gets`: choose one of "), "{said}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_file_of_warp_keeps_to_the_hosts_that_its_user_names() {
    let environment =
        [("AWS_ACCESS_KEY_ID", "OWNER"), ("AWS_SECRET_ACCESS_KEY", "OWNER-hush")].to_vec();
    let of_warp = [("WARP_ACCESS_KEY", "OWNER"), ("WARP_SECRET_KEY", "OWNER-hush")].to_vec();
    let with_token =
        [("WARP_SIGNATURE", "STS_WEB_TOKEN"), ("WARP_STS_WEB_TOKEN", "OWNER-hush")].to_vec();
    // Settings of the store in the file besides its host, and the variables that are set.
    for (says, variables) in [
        ("", environment),
        ("", of_warp.clone()),
        ("access-key: THEIRS", of_warp[1..].to_vec()),
        ("signature: STS_WEB_TOKEN", with_token),
        ("sts-web-token: 'file:own.txt'", Vec::new()),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("own.txt"), "OWNER-hush").unwrap();
        let stranger = Stranger::start();
        let host = &stranger.host;
        let run_with = |more: &[(&str, &str)]| {
            let file = format!(
                "warp:\n  api: v1\n  benchmark: put\n  remote: {{host: ['{host}'], {says}}}\n  \
                 params: {{duration: 100ms, concurrent: 1}}\n"
            );
            fs::write(directory.path().join("w.yml"), file).unwrap();
            let mut command = plimsoll(directory.path());
            command.args(["as", "warp", "run", "w.yml"]).envs(variables.iter().copied());
            command.envs(more.iter().copied());
            let output = run(command);
            assert_ne!(output.status.code(), Some(0), "{says}");
            stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let said = run_with(&[]);
        assert!(said.contains(&format!("to {host}, which only a file names")), "{says}: {said}");
        assert_eq!(stranger.heard(), "", "{says}");
        let said = run_with(&[("PLIMSOLL_HOST", host)]);
        assert_ne!(stranger.heard(), "", "{says}: {said}");
    }
}

#[test]
fn a_file_of_warp_has_keys_of_its_own_and_replaces_no_file() {
    let stranger = Stranger::start();
    let directory = tempfile::tempdir().unwrap();
    let run_with = |more: &str| {
        let file = format!(
            "warp:\n  api: v1\n  benchmark: put\n  remote: {{host: ['{}'], access-key: THEIRS, \
             secret-key: theirs}}\n  params: {{duration: 100ms, concurrent: 1}}\n{more}",
            stranger.host
        );
        fs::write(directory.path().join("w.yml"), file).unwrap();
        let mut command = plimsoll(directory.path());
        // Keys of the environment do not stand in the way of the file's.
        command.args(["as", "warp", "run", "w.yml"]).env("AWS_ACCESS_KEY_ID", "OWNER");
        command.env("AWS_SECRET_ACCESS_KEY", "OWNER-hush");
        command.env("WARP_SESSION_TOKEN", "OWNER-hush");
        let output = run(command);
        assert_ne!(output.status.code(), Some(0));
        stderr(&output)
    };
    let kept = directory.path().join("kept.txt");
    fs::write(&kept, "mine").unwrap();
    let said = run_with("  analyze: {out: kept.txt}\n");
    assert!(said.contains("--analyze.out: kept.txt already exists"), "{said}");
    assert_eq!(stranger.heard(), "");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "mine");
    let said = run_with("");
    assert!(stranger.heard().contains("Credential=THEIRS"), "{said}");
    assert!(!stranger.heard().contains("OWNER"), "{said}");
}

#[test]
fn a_file_of_warp_sends_nothing_to_the_host_that_warp_would_take() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("own.txt"), "OWNER-hush").unwrap();
    for remote in ["sts-web-token: 'file:own.txt'", "host: '127.0.0.1:9000'", "insecure: false"] {
        let file = format!(
            "warp:\n  api: v1\n  benchmark: put\n  remote: {{{remote}}}\n  \
             params: {{duration: 100ms, concurrent: 1}}\n"
        );
        fs::write(directory.path().join("w.yml"), file).unwrap();
        let mut command = plimsoll(directory.path());
        command.args(["as", "warp", "run", "w.yml"]).env("AWS_ACCESS_KEY_ID", "OWNER");
        command.env("AWS_SECRET_ACCESS_KEY", "OWNER-hush");
        let said = stderr(&run(command)).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("to 127.0.0.1:9000, which only a file names"), "{remote}: {said}");
    }
}

#[test]
fn a_file_of_warp_makes_no_connection_less_safe() {
    let keys = [("AWS_ACCESS_KEY_ID", "OWNER"), ("AWS_SECRET_ACCESS_KEY", "OWNER-hush")];
    for (says, named, refused) in [
        ("tls: true, insecure: true", "https://HOST", "without checking certificates"),
        ("tls: false", "https://HOST", "without TLS"),
    ] {
        let stranger = Stranger::start();
        let directory = tempfile::tempdir().unwrap();
        let file = format!(
            "warp:\n  api: v1\n  benchmark: put\n  remote: {{host: ['{}'], {says}}}\n  \
             params: {{duration: 100ms, concurrent: 1}}\n",
            stranger.host
        );
        fs::write(directory.path().join("w.yml"), file).unwrap();
        let mut command = plimsoll(directory.path());
        command.args(["as", "warp", "run", "w.yml"]).envs(keys);
        command.env("PLIMSOLL_HOST", named.replace("HOST", &stranger.host));
        let output = run(command);
        let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(refused), "{says}: {said}");
        assert_eq!(stranger.heard(), "", "{says}");
    }
}
