//! What no run wrote is as it was, whatever benchmark ran and however it ended: versions, what is
//! retained, marks of deletion, unfinished uploads, and names that look like ours.

mod bucket;
mod refused;

use std::path::Path;

use plimsoll_testkit::{LiveKind, LiveServer, live};
use plimsoll_workload::mix64;
use rustix::process::Signal;

use crate::harness::{self, Background, Target, oracle, plimsoll, run, run_directory, stderr};
use crate::safety::clean;
use bucket::{Bucket, RETAINED_UNTIL_HOURS};

/// How many foreign objects are in the bucket; `PLIMSOLL_SAFETY_OBJECTS` says otherwise.
const OBJECTS: u64 = 100;
/// How often each command is interrupted by each signal; `PLIMSOLL_SAFETY_INTERRUPTS` says
/// otherwise.
const INTERRUPTS: u64 = 2;
/// How many looks at the bucket pass at most before a run is interrupted.
const LOOKS_MAX: u64 = 120;
/// How often what is left is removed: a server may carry out a request of a killed client after
/// that was looked for.
const CLEANS_MAX: u32 = 3;

/// Every benchmark, small; in a bucket that keeps versions and can retain objects.
const COMMANDS: [&str; 18] = [
    "get --objects 40 --obj.size 10KiB",
    "put --obj.size 10KiB",
    "put --obj.size 6MiB --part.size 5MiB",
    "put --post --obj.size 10KiB",
    "delete --objects 4000 --batch 5 --obj.size 1KiB",
    "list --objects 60 --max-keys 7",
    "stat --objects 60",
    "mixed --objects 40 --obj.size 10KiB",
    "get --objects 20 --versions 3 --obj.size 10KiB",
    "versioned --objects 40 --obj.size 10KiB",
    "retention --objects 40 --versions 2",
    "multipart --parts 3",
    "multipart-put --parts 3 --part.concurrent 2",
    "zip --files 100 --obj.size 1KiB",
    "snowball --objs.per 5 --obj.size 1KiB",
    "fanout --copies 10 --obj.size 1KiB",
    "mixed --objects 40 --obj.size 1KiB --prefix data",
    "mixed --objects 40 --obj.size 1KiB --noprefix",
];

/// Returns a bucket that no test has used, also of servers that live longer than the tests.
fn fresh(server: &LiveServer, name: &str) -> Target {
    harness::live(server, &format!("safety-s3-{name}-{}", std::process::id()))
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn minio_what_others_keep_survives_every_benchmark() {
    let Some(server) = live(LiveKind::Minio) else { return };
    let target = fresh(&server, "whole");
    let bucket = Bucket::planted(&target, number("PLIMSOLL_SAFETY_OBJECTS", OBJECTS));
    let before = bucket.look();
    for line in COMMANDS {
        let directory = tempfile::tempdir().unwrap();
        let line = format!("s3 {line} --duration 500ms --concurrent 4");
        let output = run(target.command(directory.path(), &line));
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        before.assert_same(&bucket.look(), &line);
    }
    // What cannot be run leaves nothing either.
    let directory = tempfile::tempdir().unwrap();
    let output = run(target.command(directory.path(), "s3 append --obj.size 1KiB"));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    before.assert_same(&bucket.look(), "append");
}

#[test]
fn minio_what_others_keep_survives_ctrl_c() {
    interrupted(Signal::INT, "int");
}

#[test]
fn minio_what_others_keep_survives_kill_9() {
    interrupted(Signal::KILL, "kill");
}

/// Interrupts every benchmark at moments that a seed chooses, and cleans up after it.
fn interrupted(signal: Signal, name: &str) {
    let Some(server) = live(LiveKind::Minio) else { return };
    let target = fresh(&server, name);
    let bucket = Bucket::planted(&target, number("PLIMSOLL_SAFETY_OBJECTS", OBJECTS));
    let before = bucket.look();
    let (mut killed_count, mut left_count) = (0, 0);
    for (index, command) in COMMANDS.iter().enumerate() {
        for round in 0..number("PLIMSOLL_SAFETY_INTERRUPTS", INTERRUPTS) {
            let chosen = mix64(index as u64 * 1_000 + round);
            let looks = chosen % LOOKS_MAX;
            let line = format!("s3 {command} --duration 60s --concurrent 4");
            let what = format!("{line}, {signal:?} after {looks} looks at the bucket");
            let directory = tempfile::tempdir().unwrap();
            let mut running = Background::start(target.command(directory.path(), &line));
            running.await_line(" on ");
            (0..looks).for_each(|_| bucket.glance());
            running.signal(signal);
            let (code, _, said) = running.end();
            match signal {
                // It removes what it wrote itself.
                Signal::INT => {
                    // What there is to delete may all be deleted before.
                    let is_over = code == Some(0) && command.starts_with("delete");
                    assert!(code == Some(130) || is_over, "{what}: {code:?} {said}");
                    before.assert_same(&bucket.look(), &what);
                }
                _ => {
                    assert!(code.is_none() || command.starts_with("delete"), "{what}: {said}");
                    killed_count += 1;
                    left_count += u32::from(bucket.look() != before);
                    clean_up(&target, directory.path(), chosen, &bucket, &before, &what);
                }
            }
        }
    }
    assert!(left_count * 2 >= killed_count, "{left_count} of {killed_count} had written anything");
}

/// Removes what a killed run left, by its record or by looking through the bucket.
fn clean_up(
    target: &Target,
    directory: &Path,
    chosen: u64,
    bucket: &Bucket<'_>,
    before: &bucket::Look,
    what: &str,
) {
    for left in (0..CLEANS_MAX).rev() {
        match chosen >> 32 & 1 {
            0 => clean(target, directory),
            _ => {
                clean_bucket(target, &["--yes"]);
                clean_bucket(target, &["--yes", "--prefix", "data", "--run", &id(directory)]);
            }
        }
        let now = bucket.look();
        if left == 0 || now == *before {
            return before.assert_same(&now, what);
        }
    }
}

fn id(directory: &Path) -> String {
    let manifest = std::fs::read(run_directory(directory).join("run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    manifest["run_id"].as_str().unwrap().to_owned()
}

/// Runs `plimsoll clean URL` and returns what it prints.
fn clean_bucket(target: &Target, flags: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut clean = plimsoll(directory.path());
    clean.arg("clean").arg(format!("http://{}/{}", target.host, target.bucket)).args(flags);
    target.credentials(&mut clean);
    let output = run(clean);
    assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Begins a run, and kills it when some objects are there; returns its id.
fn killed(target: &Target) -> String {
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 mixed --objects 40 --obj.size 1KiB --duration 60s --concurrent 4";
    let mut running = Background::start(target.command(directory.path(), line));
    running.await_line("measuring");
    running.signal(Signal::KILL);
    assert_eq!(running.end().0, None);
    id(directory.path())
}

#[test]
fn a_second_ctrl_c_leaves_the_rest_to_clean() {
    const FOREIGN: u64 = 40;
    let target = oracle();
    target.plant(FOREIGN);
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 stat --objects 4000 --obj.size 1KiB --duration 60s --concurrent 4";
    let mut running = Background::start(target.command(directory.path(), line));
    running.await_line("measuring");
    running.signal(Signal::INT);
    running.await_line("cleaning up");
    running.signal_until_end(Signal::INT);
    let (code, _, said) = running.end();
    // What a shell reports for SIGINT; 0 where all was removed before it was heard.
    assert!(matches!(code, Some(130 | 0)), "{code:?} {said}");
    clean(&target, directory.path());
    target.assert_only_planted(FOREIGN);
}

#[test]
fn clean_url_lists_first_and_removes_the_runs_that_it_is_told() {
    const FOREIGN: u64 = 40;
    let target = oracle();
    target.plant(FOREIGN);
    let (first, second) = (killed(&target), killed(&target));
    let listed = clean_bucket(&target, &[]);
    assert!(listed.contains(&first) && listed.contains(&second), "{listed}");
    assert!(listed.contains("--yes"), "{listed}");
    assert!(!listed.contains("other-run"), "{listed}");
    let ours = |run: &str| {
        let prefix = format!("plimsoll/{run}/");
        target.listed().iter().filter(|key| key.starts_with(&prefix)).count()
    };
    assert!(ours(&first) > 0 && ours(&second) > 0);
    let said = clean_bucket(&target, &["--yes", "--older-than", "1d"]);
    assert!(said.starts_with("no run left anything"), "{said}");
    let absent = "s3-mixed-20200101t000000z-aaaa";
    let said = clean_bucket(&target, &["--yes", "--run", absent]);
    assert!(said.starts_with("no run left anything"), "{said}");
    clean_bucket(&target, &["--yes", "--run", &first]);
    assert_eq!(ours(&first), 0);
    assert!(ours(&second) > 0, "only the run that was named is cleaned up");
    clean_bucket(&target, &["--yes"]);
    target.assert_only_planted(FOREIGN);
}

#[test]
fn what_a_plain_bucket_lacks_is_said_and_nothing_of_others_is_touched() {
    const FOREIGN: u64 = 40;
    let target = oracle();
    target.plant(FOREIGN);
    for (command, code) in [
        ("versioned --objects 20", 2),
        ("retention --objects 20", 2),
        ("get --objects 20 --versions 2", 2),
        ("append --obj.size 1KiB", 0),
        ("zip --files 20", 0),
        ("snowball --objs.per 5 --obj.size 1KiB", 0),
        ("fanout --copies 5 --obj.size 1KiB", 0),
        ("put --post --obj.size 1KiB", 0),
        ("put --if-none-match --obj.size 1KiB", 0),
        ("put --checksum SHA256 --obj.size 1KiB --tag a=b --add-metadata c=d", 0),
        ("get --objects 20 --obj.size 1KiB --pick sequential --obj.generator text", 0),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let line = format!("s3 {command} --duration 200ms --concurrent 4 --quiet");
        let output = run(target.command(directory.path(), &line));
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {text}");
        assert_eq!(text.lines().count(), usize::from(code == 2), "{line}: {text}");
        target.assert_only_planted(FOREIGN);
    }
}

#[test]
fn what_is_planted_is_what_others_keep() {
    let Some(server) = live(LiveKind::Minio) else { return };
    let target = fresh(&server, "planted");
    let bucket = Bucket::planted(&target, 45);
    let look = bucket.look();
    assert_eq!(look.versions.len(), 45 + 9);
    assert_eq!((look.markers.len(), look.uploads.len(), look.retained.len()), (9, 9, 9));
    assert!(look.retained.iter().all(|text| text.contains("GOVERNANCE")), "{:?}", look.retained);
    assert_ne!(RETAINED_UNTIL_HOURS, 0);
}
