//! What no run wrote is changed only where the workload says so and whoever starts it says so
//! again; and nothing is removed under the feet of a run, or sent to hosts that only a record
//! names.

use std::net::TcpListener;
use std::path::Path;

use rustix::process::Signal;

use crate::harness::{
    Background, Target, oracle, plimsoll, printed, refused, run, run_directory, run_line, stderr,
    without_checksum,
};

const FOREIGN: u64 = 100;

/// Runs a command line against a store and returns its exit code and what it said.
fn said(target: &Target, directory: &Path, line: &str) -> (Option<i32>, String) {
    let output = run(target.command(directory, line));
    (output.status.code(), stderr(&output))
}

#[test]
fn a_workload_file_removes_what_others_wrote_only_when_it_is_allowed_again() {
    let (made_for, target) = (oracle(), oracle());
    made_for.plant(FOREIGN);
    target.plant(FOREIGN);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("w.yaml");
    let line = "s3 delete --list-existing --duration 1s --concurrent 2 --batch 10";
    let explained = run(made_for.command(directory.path(), &format!("{line} --yes --explain")));
    std::fs::write(&file, &explained.stdout).unwrap();

    let (code, text) = said(&target, directory.path(), "run w.yaml");
    assert_eq!(code, Some(2), "{text}");
    for word in ["remove 100 objects", "bucket `bench`", &target.host, "--yes"] {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
    target.assert_only_planted(FOREIGN);
    // The command itself is no better than a file.
    let (code, text) = said(&target, directory.path(), line);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("remove 100 objects") && text.contains("--yes"), "{text}");
    target.assert_only_planted(FOREIGN);

    // Nor is the flag without the file's own word.
    let text = String::from_utf8(explained.stdout).unwrap();
    assert!(text.contains("touch: true"), "{text}");
    std::fs::write(&file, text.replace("touch: true", "touch: false")).unwrap();
    let (code, text) = said(&target, directory.path(), "run w.yaml --yes");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("sets.objects.touch"), "{text}");
    target.assert_only_planted(FOREIGN);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no record is left");

    std::fs::write(&file, explained_again(&made_for, line)).unwrap();
    let (code, text) = said(&target, directory.path(), "run w.yaml --yes");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("remove 100 objects"), "shown before it is done: {text}");
    assert_eq!(target.listed().len(), 0);
    made_for.assert_only_planted(FOREIGN);
}

fn explained_again(target: &Target, line: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    run(target.command(directory.path(), &format!("{line} --explain"))).stdout
}

#[test]
fn a_file_of_warps_gives_no_leave_either() {
    let target = oracle();
    target.plant(FOREIGN);
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "warp:\n  api: v1\n  benchmark: delete\n  remote:\n    host: {}\n    bucket: bench\n    \
         access-key: {}\n    secret-key: {}\n  params:\n    duration: 1s\n    concurrent: 2\n    \
         list-existing: true\n    batch: 10\n    yes: true\n",
        target.host, target.access_key, target.secret_key
    );
    std::fs::write(directory.path().join("w.yml"), text).unwrap();
    let text = refused_softly(directory.path(), "as warp run w.yml");
    assert!(text.contains("remove 100 objects") && text.contains("--yes"), "{text}");
    target.assert_only_planted(FOREIGN);
    printed(directory.path(), "as warp run --yes w.yml");
    assert_eq!(target.listed().len(), 0);
}

/// Returns what a command that cannot be run said, with the notes before it.
fn refused_softly(directory: &Path, line: &str) -> String {
    let output = run_line(directory, line);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn a_record_of_somebody_else_empties_no_place_that_no_run_has() {
    let target = oracle();
    target.plant(20);
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 stat --objects 10 --duration 200ms --keep-data --concurrent 2";
    assert_eq!(said(&target, directory.path(), line).0, Some(0));
    let path = run_directory(directory.path()).join("run.json");
    let good: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let id = good["run_id"].as_str().unwrap();
    for (run_id, prefix, endpoint) in [
        (id, format!("xplimsoll/{id}/"), &*target.host),
        ("other-run", "plimsoll/other-run/".to_owned(), &*target.host),
        (id, format!("plimsoll/{id}/"), "file:/etc/passwd"),
        (id, format!("plimsoll/{id}/"), "user:secret-word@h"),
    ] {
        let mut run_json = good.clone();
        run_json.as_object_mut().unwrap().remove("checksum");
        run_json["run_id"] = run_id.into();
        run_json["target"]["prefix"] = prefix.clone().into();
        run_json["target"]["endpoints"] = [endpoint].into();
        std::fs::write(&path, run_json.to_string()).unwrap();
        let mut clean = plimsoll(directory.path());
        clean.args(["clean", "--yes"]).arg(path.parent().unwrap());
        target.credentials(&mut clean);
        let output = run(clean);
        assert_eq!(output.status.code(), Some(2), "{prefix} {endpoint}: {}", stderr(&output));
        assert!(!stderr(&output).contains("secret-word"), "{}", stderr(&output));
    }
    assert_eq!(target.listed().len(), 30);
}

#[test]
fn flags_that_a_workload_file_has_no_use_for_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let yaml = printed(directory.path(), "file iops --dir . --file-size 1MiB --ops 8 --explain");
    std::fs::write(directory.path().join("files.yaml"), yaml).unwrap();
    let yaml = printed(directory.path(), "s3 get --explain");
    std::fs::write(directory.path().join("objects.yaml"), yaml).unwrap();
    for file in ["files.yaml", "objects.yaml"] {
        for flag in ["--dir /tmp", "--scale 1/2", "--jobs-max 1", "--section a", "--fio-units"] {
            let text = refused(directory.path(), &format!("run {file} {flag}"));
            assert!(text.contains(flag.split(' ').next().unwrap()), "{text}");
            assert!(text.contains("fio job files"), "{text}");
        }
    }
}

#[test]
fn looking_for_objects_makes_no_bucket() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    for command in ["get", "stat", "delete --yes"] {
        let (code, text) =
            said(&target, directory.path(), &format!("s3 {command} --list-existing"));
        assert_eq!(code, Some(2), "{text}");
        assert_eq!(target.oracle.as_ref().unwrap().stats().buckets_count, 0, "{command}");
    }
}

#[test]
fn a_workload_file_overwrites_files_only_when_it_is_allowed_again() {
    let directory = tempfile::tempdir().unwrap();
    let precious = directory.path().join("precious");
    let before = vec![7; 1 << 20];
    std::fs::write(&precious, &before).unwrap();
    let line = "file iops --dir . --on precious --op write --file-size 1MiB --ops 8 --jobs 1 \
                --direct off --i-know-this-destroys-data --explain";
    let yaml = printed(directory.path(), line);
    std::fs::write(directory.path().join("w.yaml"), yaml).unwrap();
    let text = refused(directory.path(), "run w.yaml");
    assert!(text.contains("overwrite") && text.contains("precious"), "{text}");
    assert!(text.contains("--yes"), "{text}");
    assert_eq!(std::fs::read(&precious).unwrap(), before);
    printed(directory.path(), "run w.yaml --yes");
    assert_ne!(std::fs::read(&precious).unwrap(), before);
}

#[test]
fn a_run_that_is_under_way_is_left_alone_by_every_way_to_clean() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 get --objects 50 --obj.size 1KiB --duration 60s --concurrent 2";
    let mut running = Background::start(target.command(directory.path(), line));
    running.await_line("measure: ");
    let record = run_directory(directory.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(record.join("run.json"), copy.join("run.json")).unwrap();
    for path in [&record, &copy] {
        let mut clean = plimsoll(elsewhere.path());
        clean.args(["clean", "--yes"]).arg(path);
        target.credentials(&mut clean);
        let output = run(clean);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("still going on"), "{}", stderr(&output));
    }
    let mut clean = plimsoll(elsewhere.path());
    clean.args(["clean", "--yes", &format!("http://{}/bench", target.host)]);
    target.credentials(&mut clean);
    let output = run(clean);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(text.contains("still going on, left alone") && !text.contains("removed"), "{text}");
    let objects = target.listed().iter().filter(|key| !key.contains(".live/")).count();
    assert_eq!(objects, 50);
    // Nor does a run that is to remove what it finds take them.
    let line = "s3 delete --list-existing --yes --batch 1 --concurrent 1 --duration 1s";
    let (code, text) = said(&target, elsewhere.path(), line);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("is still going on"), "{text}");
    assert_eq!(target.listed().iter().filter(|key| !key.contains(".live/")).count(), 50);
    running.signal(Signal::INT);
    let (code, _, text) = running.end();
    assert_eq!(code, Some(130), "{text}");
    assert_eq!(target.listed().len(), 0, "objects and marks are gone");
}

#[test]
fn a_living_run_is_found_behind_many_objects_of_another() {
    // A quarter of them looks like those of one run, and comes first in the list.
    const MANY: u64 = 4_100;
    let target = oracle();
    target.plant(MANY);
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 get --objects 50 --obj.size 1KiB --duration 60s --concurrent 2";
    let mut running = Background::start(target.command(directory.path(), line));
    running.await_line("measure: ");
    let elsewhere = tempfile::tempdir().unwrap();
    let line = "s3 delete --list-existing --prefix plimsoll/ --yes --concurrent 1 --duration 1s";
    let (code, text) = said(&target, elsewhere.path(), line);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("is still going on"), "{text}");
    running.signal(Signal::INT);
    let (code, _, text) = running.end();
    assert_eq!(code, Some(130), "{text}");
    target.assert_only_planted(MANY);
}

#[test]
fn a_check_that_is_under_way_is_left_alone() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let line = "check --duration 60s --concurrent 2";
    let mut running = Background::start(target.command(directory.path(), line));
    running.await_line("ops/s");
    let mut clean = plimsoll(directory.path());
    clean.args(["clean", "--yes", &format!("http://{}/bench", target.host)]);
    target.credentials(&mut clean);
    let output = run(clean);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("still going on, left alone") && !text.contains("removed"), "{text}");
    running.signal(Signal::INT);
    let (code, stdout, text) = running.end();
    assert_eq!(code, Some(130), "{text}");
    assert!(stdout.contains("no violation"), "{stdout}");
    assert_eq!(target.listed().len(), 0, "keys and marks are gone");
}

#[test]
fn a_run_on_files_that_is_under_way_is_left_alone_by_every_way_to_clean() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("data")).unwrap();
    let mut command = plimsoll(directory.path());
    let line = "file latency --dir data --op read --file-size 1MiB --duration 60s --direct off";
    command.args(line.split_whitespace());
    let mut running = Background::start(command);
    running.await_line("ops/s");
    let record = run_directory(directory.path()).display().to_string();
    let text = refused(directory.path(), &format!("clean {record} --yes"));
    assert!(text.contains("still going on"), "{text}");
    let text = printed(directory.path(), "clean data --yes");
    assert!(text.contains("still going on; left alone"), "{text}");
    assert!(directory.path().join("data/plimsoll").exists());
    running.signal(Signal::INT);
    let (code, _, text) = running.end();
    assert_eq!(code, Some(130), "{text}");
    assert!(!directory.path().join("data/plimsoll").exists());
}

#[test]
fn a_record_alone_sends_no_request_to_the_host_that_it_names() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 stat --objects 10 --duration 200ms --keep-data --concurrent 2";
    assert_eq!(said(&target, directory.path(), line).0, Some(0));
    let record = run_directory(directory.path());
    let path = record.join("run.json");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = listener.local_addr().unwrap().to_string();
    let text = without_checksum(&std::fs::read_to_string(&path).unwrap());
    let changed = text.replace(&target.host, &elsewhere);
    assert!(changed.contains(&elsewhere));
    std::fs::write(&path, changed).unwrap();
    let clean = |flags: &[&str]| {
        let mut clean = plimsoll(directory.path());
        clean.arg("clean").arg(&record).args(flags);
        target.credentials(&mut clean);
        run(clean)
    };
    let output = clean(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    for word in [&elsewhere, "bucket `bench`", "plimsoll/s3-stat-", "--yes", "--host"] {
        assert!(stderr(&output).contains(word), "no `{word}` in: {}", stderr(&output));
    }
    listener.set_nonblocking(true).unwrap();
    let asked = listener.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(asked, Err(std::io::ErrorKind::WouldBlock), "nobody was asked");
    // Where the environment says that the next run goes, this one need not have been.
    let other = oracle();
    let mut elsewhere = plimsoll(directory.path());
    elsewhere.arg("clean").arg(&record).env("PLIMSOLL_HOST", &other.host);
    target.credentials(&mut elsewhere);
    let output = run(elsewhere);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    for filter in [&["--run", "s3-get-20261121t090000z-aaaa"][..], &["--older-than", "5h"]] {
        let output = clean(&[filter, &["--yes", "--host", &target.host]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("choose among runs"), "{}", stderr(&output));
    }
    // A host that the user names is the one that is asked.
    let output = clean(&["--host", &target.host]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(target.listed().len(), 0);
}

#[test]
fn what_is_left_is_as_old_as_the_store_says() {
    // By its name it began long ago, and so does its mark say; the store has had both only now.
    const RUN: &str = "s3-get-20200101t000000z-aaaa";
    let (target, place) = (oracle(), tempfile::tempdir().unwrap());
    let clean = |flags: &str| {
        let url = format!("http://{}/{}", target.host, target.bucket);
        let mut command = plimsoll(place.path());
        command.args(["clean", &url]).args(flags.split(' '));
        target.credentials(&mut command);
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let object = format!("plimsoll/{RUN}/1.rnd");
    let mark = format!("plimsoll/{RUN}.live/20200101t000100z.another-machine-1-1");
    target.put([object.clone(), mark.clone()]);
    let text = clean("--yes");
    assert!(text.contains(&format!("{RUN}: ")) && text.contains("still going on"), "{text}");
    assert_eq!(target.listed(), [mark.clone(), object.clone()]);
    target.remove(&[mark]);
    let text = clean("--yes --older-than 1h");
    assert!(text.contains("no run left anything of that kind"), "{text}");
    assert_eq!(target.listed(), [object]);
    clean("--yes");
    assert_eq!(target.listed(), Vec::<String>::new());
}
