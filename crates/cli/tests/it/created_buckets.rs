//! A bucket that does not exist is created only where somebody says so, and goes with the run that
//! created it unless somebody else uses it.

use std::path::Path;

use plimsoll_seaweed_stand_in::{SeaweedStandIn, StandInConfig};
use rustix::process::Signal;

use crate::harness::{Background, Target, oracle, plimsoll, run, stderr};

const SMALL: &str = "--objects 8 --obj.size 1KiB --concurrent 2";
const FOREIGN: u64 = 12;
const REMOVED: &str = "removed bucket `bench`, which this run created";
const STAYS: &str = "bucket `bench`, which this run created, stays: somebody else uses it";

/// A workload on the store of the command line, and more that is said of its target.
fn workload(target: &str) -> String {
    format!(
        "schema: plimsoll.workload/2\nname: w\n{target}sets: {{o: {{count: 4, size: 1KiB}}}}\nstages:\n\
         - {{prepares: true, jobs: [{{work: {{fill: o}}}}]}}\n\
         - {{duration: 100ms, jobs: [{{work: {{objects: [{{get: o}}]}}}}]}}\n"
    )
}

/// Runs a command line that may not create its bucket but for its own flags; returns its exit code
/// and what it said.
fn said(target: &Target, place: &Path, line: &str) -> (Option<i32>, String) {
    let output = run(target.plain_command(place, line));
    (output.status.code(), stderr(&output))
}

#[test]
fn a_bucket_on_a_typo_is_refused_and_not_created() {
    let (target, place) = (oracle(), tempfile::tempdir().unwrap());
    std::fs::write(place.path().join("w.yaml"), workload("")).unwrap();
    let other = workload("targets: {s3: {bucket: other}}\n");
    std::fs::write(place.path().join("other.yaml"), other).unwrap();
    for (line, bucket) in [
        (&*format!("s3 get {SMALL} --duration 100ms"), "bench"),
        ("s3 put --obj.size 1KiB --concurrent 2 --duration 100ms --keep-bucket", "bench"),
        ("check --ops 20", "bench"),
        ("run w.yaml", "bench"),
        ("run other.yaml", "other"),
        (
            "loadline s3 get --objects 8 --obj.size 1KiB --concurrent 2 --rates 20/s..40/s --budget 2s",
            "bench",
        ),
    ] {
        let (code, text) = said(&target, place.path(), line);
        assert_eq!(code, Some(2), "{line}: {text}");
        let sentence =
            format!("bucket `{bucket}` does not exist; create it, or add --create-bucket");
        assert!(text.trim_end().ends_with(&sentence), "{line}: {text}");
        assert!(!target.exists(), "{line}");
    }
}

#[test]
fn a_bucket_that_was_created_goes_with_its_run() {
    let (target, place) = (oracle(), tempfile::tempdir().unwrap());
    let of_file = workload("targets: {s3: {create_bucket: true}}\n");
    std::fs::write(place.path().join("w.yaml"), of_file).unwrap();
    for line in [
        &*format!("s3 get {SMALL} --duration 100ms --create-bucket"),
        "check --ops 20 --create-bucket",
        "run w.yaml",
    ] {
        let (code, text) = said(&target, place.path(), line);
        assert_eq!(code, Some(0), "{line}: {text}");
        let created = if line.starts_with("check") {
            "created bucket bench"
        } else {
            "created bucket `bench`"
        };
        assert!(text.contains(created), "{line}: {text}");
        assert!(text.replace('`', "").contains(&REMOVED.replace('`', "")), "{line}: {text}");
        assert!(!target.exists(), "{line}");
    }
}

#[test]
fn a_bucket_stays_that_was_there_or_is_to_be_kept() {
    let (target, place) = (oracle(), tempfile::tempdir().unwrap());
    let line = format!("s3 get {SMALL} --duration 100ms --create-bucket");
    for (flags, says_created) in [("--keep-bucket", true), ("", false)] {
        let (code, text) = said(&target, place.path(), &format!("{line} {flags}"));
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(text.contains("created bucket `bench`"), says_created, "{text}");
        assert!(!text.contains("removed bucket"), "{text}");
        assert_eq!(target.listed(), Vec::<String>::new(), "{flags}");
    }
    let target = oracle();
    let (code, text) = said(&target, place.path(), &format!("{line} --keep-data"));
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("removed bucket") && !target.listed().is_empty(), "{text}");
}

#[test]
fn a_bucket_stays_that_somebody_else_has_begun_to_use() {
    let (target, place) = (oracle(), tempfile::tempdir().unwrap());
    let line = format!("s3 get {SMALL} --duration 60s --create-bucket");
    let mut running = Background::start(target.plain_command(place.path(), &line));
    running.await_line("created bucket `bench`");
    target.plant(FOREIGN);
    running.await_line("measure: ");
    running.signal(Signal::INT);
    let (_, _, text) = running.end();
    assert!(text.contains(STAYS), "{text}");
    target.assert_only_planted(FOREIGN);
}

#[test]
fn a_bucket_stays_for_another_run_that_has_begun() {
    let (target, place) = (oracle(), tempfile::tempdir().unwrap());
    let line = format!("s3 get {SMALL} --duration 60s --run-dir");
    let start = |flags: &str| {
        Background::start(target.plain_command(place.path(), &format!("{line} {flags}")))
    };
    let mut first = start("first --create-bucket");
    first.await_line("created bucket `bench`");
    first.await_line("measure: ");
    let mut second = start("second");
    second.await_line("measure: ");
    first.signal(Signal::INT);
    let (_, _, text) = first.end();
    assert!(text.contains(STAYS), "{text}");
    assert!(target.exists());
    second.signal(Signal::INT);
    let (_, stdout, text) = second.end();
    assert!(stdout.contains("0 failed"), "{stdout}{text}");
    assert!(!text.contains("bucket `bench`, which"), "{text}");
    // Who did not create it does not remove it.
    assert!(target.exists());
}

#[test]
fn a_run_that_cannot_begin_leaves_no_bucket_behind() {
    let (target, place) = (oracle(), tempfile::tempdir().unwrap());
    let targets = "targets: {a: {s3: {create_bucket: true}}, b: {s3: {bucket: other}}}\n";
    let text = workload(targets).replace("{o: {", "{p: {on: b, count: 4, size: 1KiB}, o: {on: a, ");
    let both = "name: o, work: {fill: o}}, {name: p, work: {fill: p}}";
    let text = text.replace("work: {fill: o}}", both);
    std::fs::write(place.path().join("w.yaml"), text).unwrap();
    let (code, text) = said(&target, place.path(), "run w.yaml");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("bucket `other` does not exist") && text.contains(REMOVED), "{text}");
    assert!(!target.exists());
}

#[test]
fn other_tools_create_their_bucket_say_so_and_leave_it() {
    let place = tempfile::tempdir().unwrap();
    let of_warp = |host: &str| {
        format!(
            "as warp put --host {host} --bucket bench --obj.size 1KiB --concurrent 2 --duration 100ms"
        )
    };
    let of_wasabi =
        |host: &str| format!("as s3-benchmark -u http://{host} -b bench -d 1 -t 1 -l 1 -z 1K");
    for line in [&of_warp as &dyn Fn(&str) -> String, &of_wasabi] {
        let target = oracle();
        let line = line(&target.host);
        let mut command = plimsoll(place.path());
        command.args(line.split(' '));
        target.credentials(&mut command);
        if line.contains("s3-benchmark") {
            command.args(["-a", &target.access_key, "-s", &target.secret_key]);
        }
        let output = run(command);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{line}: {text}");
        assert!(text.contains("created bucket `bench`"), "{line}: {text}");
        assert_eq!(target.listed(), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn the_default_bucket_bears_our_own_name() {
    let (target, place) = (oracle(), tempfile::tempdir().unwrap());
    let mut command = plimsoll(place.path());
    command.args(["s3", "get", "--host", &target.host]);
    target.credentials(&mut command);
    let said = stderr(&run(command));
    assert!(said.contains("bucket `plimsoll` does not exist"), "{said}");
}

#[test]
fn a_collection_on_a_typo_is_refused_and_one_that_is_created_stays() {
    let place = tempfile::tempdir().unwrap();
    let cluster = SeaweedStandIn::start(StandInConfig::default()).unwrap();
    let master = &cluster.masters()[0];
    let workload =
        workload(&format!("targets: {{seaweedfs: {{master: '{master}', collection: c}}}}\n"));
    std::fs::write(place.path().join("w.yaml"), workload).unwrap();
    let said = |line: &str| {
        let mut command = plimsoll(place.path());
        command.args(line.split(' '));
        let output = run(command);
        (output.status.code(), stderr(&output))
    };
    let write = format!("weed write --master {master} --duration 100ms --concurrent 2");
    let lines = [
        (&*write, "plimsoll"),
        (&format!("check weed://{master}/typo --ops 20"), "typo"),
        ("run w.yaml", "c"),
    ];
    for (line, name) in lines {
        let (code, text) = said(line);
        assert_eq!(code, Some(2), "{line}: {text}");
        let sentence = format!(
            "collection `{name}` does not exist; name one that does, or add --create-bucket"
        );
        assert!(text.trim_end().ends_with(&sentence), "{line}: {text}");
    }
    for (line, name) in lines {
        let (code, text) = said(&format!("{line} --create-bucket"));
        assert_eq!(code, Some(0), "{line}: {text}");
        let name = if line.starts_with("check") { name.to_owned() } else { format!("`{name}`") };
        assert!(text.contains(&format!("created collection {name}")), "{line}: {text}");
        let stays = format!("collection {name}, which this run created, stays: SeaweedFS deletes");
        assert!(text.contains(&stays), "{line}: {text}");
        // It exists now, so no flag is needed.
        assert_eq!(said(line).0, Some(0), "{line}");
    }
    let line = format!("as weed-benchmark -master {master} -n 5 -c 2 -list l.txt");
    let (code, text) = said(&line);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("created collection `benchmark`"), "{text}");
}
