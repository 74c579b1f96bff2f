//! Agents that work on files: those that all of them see, and those on disks of their own.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use rustix::fs::{CWD, FileType, Mode};
use rustix::process::Signal;

use crate::fleet::{Fleet, Running, json_of};
use crate::harness::{plimsoll, stderr};

pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn agents_work_on_files_that_all_of_them_see_and_caches_of_names_are_excluded() {
    let Some(fleet) = Fleet::start(&["a", "b", "c"], &[]) else { return };
    let directory = fleet.place.path().join("data");
    std::fs::create_dir(&directory).unwrap();
    let run = |line: &str| {
        let mut command = plimsoll(fleet.place.path());
        command.args(line.replace("--fleet", &fleet.flag).split(' ')).output().unwrap()
    };
    let dir = directory.display();
    let line = format!("file suite --fleet --dir {dir} --scale 0.00001 --jobs 6 --iterations 1");
    let output = run(&format!("{line} --duration 200ms --run-dir suite"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(names_in(&directory), [""; 0]);
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let excluded = "3 clients served the stages on names, each stage on what another one had in \
                    the stage before: caches of clients are excluded.";
    assert!(text.contains(excluded), "{text}");
    assert!(text.contains("every byte of every read"), "{text}");
    let read = plimsoll(fleet.place.path()).args(["analyze", "suite", "--json"]).output().unwrap();
    let report = json_of(&read);
    let stages = report["stages"].as_array().unwrap();
    let stage = |name: &str| &stages.iter().find(|stage| stage["name"] == name).unwrap()["rows"][0];
    assert_eq!(stage("create")["names_kept_count"], Value::Null);
    assert_eq!(stage("stat")["names_kept_count"], 0);
    assert_eq!(stage("delete")["served_by"], serde_json::json!(["a", "b", "c"]));
    // mdtest's shift counts ranks: by one, two of three ranks of each client stay with it.
    let line = format!("as mdtest --fleet --np 6 -F -n 20 -d {dir} -C -T -r");
    for (shift, expected) in [
        ("-N 2", "is excluded: each step worked on entries that another client had"),
        ("-N 1", "is not excluded: 3 of 6 ranks worked on entries that their own client had"),
    ] {
        let output = run(&format!("{line} {shift}"));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(names_in(&directory), [""; 0]);
    let output = run("file metadata --fleet --dir data --files 10");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("`data` is a different place on each agent"), "{said}");
}

/// Returns a command as it is, but for a file system of its own in a directory.
fn with_a_disk_of_its_own(command: &Command, disk: &Path) -> Command {
    let mut own = Command::new("unshare");
    let script = "mount -t tmpfs tmpfs \"$0\" && exec \"$@\"";
    own.args(["-rm", "sh", "-c", script]).arg(disk).arg(command.get_program());
    own.args(command.get_args()).current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => own.env(name, value),
            None => own.env_remove(name),
        };
    }
    own
}

#[test]
fn agents_work_on_disks_of_their_own_where_workers_have_files_of_their_own() {
    let is_allowed = Command::new("unshare").args(["-rm", "true"]).output();
    if !is_allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine does not let a test have mounts of its own (unshare -rm)");
        return;
    }
    let Some(mut fleet) = Fleet::start(&[], &[]) else { return };
    let place = fleet.place.path().to_path_buf();
    let disk = place.join("disk");
    std::fs::create_dir(&disk).unwrap();
    for name in ["a", "b"] {
        let files = fleet.files_of(name);
        let mut command = plimsoll(&place);
        command.args(["agent", "--name", name, "--weight", "1", "--directory"]).arg(files);
        command.env("PLIMSOLL_JOIN", &fleet.token);
        let mut agent = Running::of(with_a_disk_of_its_own(&command, &disk));
        agent.hear("is part of the fleet as");
        fleet.agents.push(agent);
    }
    let run = |line: &str| {
        let line = line.replace("DISK", &disk.display().to_string());
        let output = plimsoll(&place).args(line.split(' ')).arg(&fleet.flag).output().unwrap();
        (output.status.code(), stderr(&output), String::from_utf8(output.stdout.clone()).unwrap())
    };
    let apart = "agents do not see each other's files in";
    // Of files as large as two pieces of a fill, of one for each agent, and of several.
    for (line, count) in [
        ("file iops --dir DISK --file-size 2MiB --jobs 5 --files 3 --duration 200ms", 15),
        ("file bandwidth --dir DISK --file-size 80MiB --jobs 2 --duration 200ms", 2),
        ("file latency --dir DISK --file-size 1MiB --duration 200ms", 1),
    ] {
        let (code, said, text) = run(line);
        assert_eq!(code, Some(0), "{line}: {said}");
        assert!(said.contains(apart), "{line}: {said}");
        assert!(said.contains(&format!("removed {count} files")), "{line}: {said}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("every byte of every read"), "{line}: {text}");
    }
    let fio = |job: &str| {
        let jobs = format!("[global]\ndirectory={}\nioengine=psync\n{job}", disk.display());
        std::fs::write(place.join("jobs.fio"), jobs).unwrap();
        let mut command = plimsoll(&place);
        command.args(["as", "fio", &fleet.flag, "--client=a", "--client=b", "jobs.fio"]);
        let output = command.output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let (code, said) =
        fio("[r]\nrw=read\nbs=1m\nsize=70m\nnumjobs=3\n[s]\nrw=randread\nsize=1m\nnrfiles=2\n");
    assert_eq!((code, said.contains(apart)), (Some(0), true), "{said}");
    // What several read must be seen by all of them.
    for line in [
        "file metadata --dir DISK --files 10 --jobs 2",
        "file suite --dir DISK --scale 0.00001 --jobs 2 --iterations 1 --duration 100ms",
    ] {
        let (code, said, _) = run(line);
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains("mount the same file system there on all of them"), "{line}: {said}");
    }
}

#[test]
fn the_owner_of_a_machine_says_where_runs_may_work() {
    let place = tempfile::tempdir().unwrap();
    let (allowed, other) = (place.path().join("allowed"), place.path().join("other"));
    [&allowed, &other].into_iter().for_each(|path| std::fs::create_dir(path).unwrap());
    std::os::unix::fs::symlink(&other, allowed.join("way")).unwrap();
    let file = other.join("there");
    std::fs::write(&file, [0; 65_536]).unwrap();
    let own = allowed.join("there");
    std::os::unix::fs::symlink(&own, allowed.join("within")).unwrap();
    std::fs::write(&own, [0; 65_536]).unwrap();
    let run = |fleet: &Fleet, line: &str| {
        let mut command = plimsoll(fleet.place.path());
        let output = command.args(line.split(' ')).arg(&fleet.flag).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let metadata =
        |path: &Path| format!("file metadata --files 5 --jobs 1 --dir {}", path.display());
    let reads = |path: &Path| {
        let at = path.display();
        let dir = path.parent().unwrap().display();
        format!("file iops --dir {dir} --on {at} --op read --jobs 1 --duration 100ms")
    };
    let Some(limited) = Fleet::start(&["a"], &["--allow-dirs", &allowed.display().to_string()])
    else {
        return;
    };
    let not_allowed = "its owner does not allow work in";
    for line in [
        metadata(&other),
        metadata(&allowed.join("way")),
        reads(&file),
        reads(&allowed.join("way/there")),
    ] {
        let (code, said) = run(&limited, &line);
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains(not_allowed), "{line}: {said}");
    }
    for line in [metadata(&allowed), reads(&own), reads(&allowed.join("within"))] {
        let (code, said) = run(&limited, &line);
        assert_eq!(code, Some(0), "{line}: {said}");
    }
    drop(limited);
    // Where nothing is said, runs make directories of their own and leave alone what is there.
    let Some(free) = Fleet::start(&["a"], &[]) else { return };
    let (code, said) = run(&free, &metadata(&other));
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&free, &reads(&file));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("its owner does not allow runs on"), "{said}");
    let mut left = names_in(&other);
    left.extend(names_in(&allowed));
    left.sort_unstable();
    assert_eq!(left, ["there", "there", "way", "within"]);
}

fn pipe_at(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[test]
fn an_agent_that_waits_for_its_token_heeds_the_first_signal() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("pipe");
    pipe_at(&pipe);
    let mut agent = plimsoll(place.path()).args(["agent", "--join-file", "pipe"]).spawn().unwrap();
    // Opening it returns when the agent has opened it, too.
    let writer = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let pid = rustix::process::Pid::from_child(&agent);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    let ended = agent.wait().unwrap();
    drop(writer);
    assert_eq!(ended.signal(), Some(Signal::INT.as_raw()), "{ended}");
}

#[test]
fn a_pipe_in_the_place_of_a_fleets_file_is_refused() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("fleet")).unwrap();
    pipe_at(&place.path().join("fleet/fleet.json"));
    let output =
        plimsoll(place.path()).args(["fleet", "agents", "--fleet=fleet"]).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("not a regular file"), "{said}");
}

#[test]
fn nobody_else_reads_what_a_fleet_keeps() {
    let Some(fleet) = Fleet::start(&["a"], &[]) else { return };
    let mut rest = vec![fleet.flag.trim_start_matches("--fleet=").into()];
    let mut seen = 0;
    while let Some(path) = rest.pop() {
        // What the server removes meanwhile is not there.
        let Ok(facts) = std::fs::symlink_metadata::<&std::path::PathBuf>(&path) else { continue };
        assert_eq!(facts.mode() & 0o077, 0, "{}", path.display());
        seen += 1;
        if facts.is_dir() {
            rest.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(seen > 5, "{seen}");
}
