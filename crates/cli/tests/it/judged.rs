//! Workload files that are judged and not run.

use crate::harness::{counts, oracle, plimsoll, refused, run, stderr};

/// A workload file is judged by the same checks that a run makes, whatever language it is in.
#[test]
fn a_file_is_judged_without_being_run() {
    let directory = tempfile::tempdir().unwrap();
    let second = "schema: plimsoll.workload/2 # the language\nname: t\n\
                  sets: {o: {count: 5, size: 1KiB}}\n\
                  stages:\n- {prepares: true, jobs: [{workers: 2, work: {fill: o}}]}\n\
                  - {duration: 1s, jobs: [{workers: 2, work: {objects: [{get: SET}]}}]}\n";
    let first = "schema: plimsoll.workload/1\nname: t\nseed: 1\nconcurrency: WORKERS\n\
                 keys: {prefix: '', per_worker: true}\n\
                 objects: {count: 5, size: {fixed_bytes: 10}, generator: random}\n\
                 measure: {operations: [{op: GET, weight: 1}], duration_ns: 1000000000}\n\
                 pacing: closed\nverify: true\n";
    let job = "[a]\nrw=read\nsize=BYTES\nruntime=1\n";
    for (name, good, bad, said) in [
        (
            "2.yaml",
            second.replace("SET", "o"),
            second.replace("SET", "p"),
            "2.yaml:6:61: stages[1].jobs[0].work.objects[0].get: there is no set `p`",
        ),
        ("1.yaml", first.replace("WORKERS", "2"), first.replace("WORKERS", "9"), "objects.count"),
        ("job.fio", job.replace("BYTES", "1m"), job.replace("BYTES", "10"), "job.fio"),
    ] {
        let check = |text: &str, flag: &str| {
            std::fs::write(directory.path().join(name), text).unwrap();
            let mut command = plimsoll(directory.path());
            command.args(["run", name, flag]);
            run(command)
        };
        let output = check(&good, "--check");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!((output.status.code(), printed), (Some(0), format!("{name}: sound\n")));
        let output = check(&bad, "--check");
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
        assert_eq!(check(&good, "--explain").status.code(), Some(0), "{name}");
        let files = std::fs::read_dir(directory.path()).unwrap().count();
        std::fs::remove_file(directory.path().join(name)).unwrap();
        assert_eq!(files, 1, "{name}: nothing else was made");
    }
}

/// The language is run as it is judged, and a run of an older one says that there is a newer.
#[test]
fn a_file_of_each_language_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = |text: &str, line: &str| {
        std::fs::write(directory.path().join("w.yaml"), text).unwrap();
        let mut command = plimsoll(directory.path());
        command.args(line.split(' '));
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output))
    };
    let second = "schema: plimsoll.workload/2\nname: tried\nsets: {o: {count: 4, size: 1KiB}}\n\
                  stages:\n- {prepares: true, jobs: [{workers: 2, work: {fill: o}}]}\n\
                  - {jobs: [{workers: 2, ops: 60, work: {objects: [{get: o}]}}]}\n";
    let (report, said) = file(second, "run w.yaml --json");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(counts(&report)["ops_ok_count"], 60, "{report}");
    assert!(!said.contains("--explain"), "{said}");
    let first = "schema: plimsoll.workload/1\nname: t\nseed: 1\nconcurrency: 2\n\
                 keys: {prefix: '', per_worker: true}\n\
                 objects: {count: 5, size: {fixed_bytes: 10}, generator: random}\n\
                 measure: {operations: [{op: GET, weight: 1}], duration_ns: 100000000}\n\
                 pacing: closed\nverify: true\n";
    let (_, said) = file(first, "run w.yaml --json");
    assert!(said.contains("written in plimsoll.workload/1; --explain prints it in"), "{said}");
    let (explained, _) = file(first, "run w.yaml --explain");
    assert!(explained.starts_with("schema: plimsoll.workload/2\n"), "{explained}");
}

/// What the language says and no engine does yet is refused by its place in the file, as the manual
/// lists it.
#[test]
fn what_cannot_be_run_yet_is_refused_before_anything_is_done() {
    const FILLED: &str = "sets: {o: {count: 9, size: 1KiB}}\nstages:\n\
                          - {prepares: true, jobs: [{work: {fill: o}}]}\n";
    let directory = tempfile::tempdir().unwrap();
    for (text, said) in [
        (
            format!(
                "{FILLED}- {{search: {{rate: 50/s..90/s, slo: ['p99<=20ms'], budget: 10m, stage: \
                 {{duration: 3s, jobs: [{{work: {{objects: [{{get: o}}]}}}}]}}}}}}\n"
            ),
            "w.yaml:6:3: stages[1]: a search cannot be run yet",
        ),
        (
            "sets: {c: {named: {bucket: b, key: k}, size: 1KB, touch: true}}\nstages:\n\
             - {jobs: [{work: {buckets: {make: c}}}]}\n"
                .to_owned(),
            "w.yaml:5:18: stages[0].jobs[0].work: making and removing buckets cannot be run yet",
        ),
        (
            "sets: {o: {}}\nstages:\n- {jobs: [{work: {trace: {file: a.log, into: o}}}]}\n".to_owned(),
            "w.yaml:5:18: stages[0].jobs[0].work: replaying a trace cannot be run yet",
        ),
        (
            "targets: {files: {directory: d}}\nsets: {f: {files: 1, size: 1MiB}}\nstages:\n\
             - {prepares: true, jobs: [{work: {fill: f}}]}\n- {jobs: [{work: {remove: f}}]}\n"
                .to_owned(),
            "w.yaml:7:18: stages[1].jobs[0].work: removing files before the run ends cannot be run",
        ),
        (
            "targets: {a: {s3: {}}, b: {s3: {}}}\nsets: {o: {on: a, count: 3, size: 1KiB, also_on: \
             {target: b, path: x/}}}\nstages:\n- {prepares: true, jobs: [{work: {fill: o}}]}\n\
             - {ops: 3, jobs: [{on: b, work: {objects: [{get: o}]}}]}\n"
                .to_owned(),
            "w.yaml:7:33: stages[1].jobs[0].work: work on members as another target shows them",
        ),
        (
            format!("targets: {{seaweedfs: {{master: 'm:9333'}}}}\n{FILLED}"),
            "w.yaml:3:22: targets.seaweedfs: its kind cannot be run yet",
        ),
        (
            format!("targets: {{t: {{swift: {{auth: 'm:1', user: u, container: c}}}}}}\n{FILLED}"),
            "w.yaml:3:22: targets.t.swift: its kind cannot be run yet",
        ),
        (
            format!("targets: {{s3: {{hosts: 'm:1', profile: p}}}}\n{FILLED}"),
            "w.yaml:3:39: targets.s3.profile: profiles cannot be used yet",
        ),
    ] {
        let text = format!("schema: plimsoll.workload/2\nname: t\n{text}");
        std::fs::write(directory.path().join("w.yaml"), &text).unwrap();
        for line in ["run w.yaml --check", "run w.yaml"] {
            let refused = refused(directory.path(), line);
            assert!(refused.contains(said), "{refused}{text}");
        }
    }
}

/// A run on a store and on files, with a pause, which has no result.
const STORE_AND_FILES: &str = "schema: plimsoll.workload/2\n\
    targets: {store: {s3: {}}, disk: {files: {directory: .}}}\n\
    sets: {o: {on: store, count: 5, size: 1KiB}, f: {on: disk, files: 2, size: 8KiB}}\n\
    stages:\n\
    - {prepares: true, jobs: [{name: a, work: {fill: o}},\n\
    \x20                          {name: b, work: {fill: f}}]}\n\
    - {name: p, duration: 10ms}\n\
    - jobs:\n\
    \x20 - {name: a, ops: 9, work: {objects: [{get: o}]}}\n\
    \x20 - {name: b, ops: 9, work: {blocks: {on: f, read: {block: 4KiB}}}}\n";

/// A run on a store and on files cleans both up, and says so once.
#[test]
fn what_lies_in_a_store_and_in_files_is_removed_as_one_step() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("w.yaml"), STORE_AND_FILES).unwrap();
    let mut command = plimsoll(directory.path());
    command.args(["run", "w.yaml", "--run-dir", "record"]);
    let output = run(command);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("cleaning up").count(), 1, "{said}");
    assert!(said.contains("removed 5 objects") && said.contains("removed 2 files"), "{said}");
    let mut left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
    left.retain(|entry| !["w.yaml", "record"].contains(&entry.file_name().to_str().unwrap()));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn nothing_is_cleaned_on_files_before_the_store_may_be() {
    let (target, directory) = (oracle(), tempfile::tempdir().unwrap());
    std::fs::write(directory.path().join("w.yaml"), STORE_AND_FILES).unwrap();
    let line = "run w.yaml --run-dir record --keep-data";
    let output = run(target.command(directory.path(), line));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let clean = |flags: &[&str]| {
        let mut command = plimsoll(directory.path());
        command.args(["clean", "record"]).args(flags);
        target.credentials(&mut command);
        run(command)
    };
    let refused = clean(&[]);
    let said = stderr(&refused);
    assert!(refused.status.code() == Some(2) && said.contains("--yes"), "{said}");
    assert!(refused.stdout.is_empty(), "nothing is said to be removed");
    let own = directory.path().join("plimsoll");
    assert!(own.is_dir() && target.listed().len() == 5, "all is as it was");
    let cleaned = clean(&["--yes"]);
    assert_eq!(cleaned.status.code(), Some(0), "{}", stderr(&cleaned));
    assert!(!own.exists() && target.listed().is_empty());
}
