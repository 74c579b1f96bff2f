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
    let job = "[a]\nrw=read\nsize=BYTES\nruntime=1\n";
    for (name, good, bad, said) in [
        (
            "2.yaml",
            second.replace("SET", "o"),
            second.replace("SET", "p"),
            "2.yaml:6:61: stages[1].jobs[0].work.objects[0].get: unknown set `p`",
        ),
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

/// The language is run as it is judged, and a file in an older one is refused.
#[test]
fn a_file_of_the_language_is_run_and_an_older_one_refused() {
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
    std::fs::write(directory.path().join("w.yaml"), "schema: plimsoll.workload/1\nname: t\n")
        .unwrap();
    let mut command = plimsoll(directory.path());
    command.args(["run", "w.yaml"]);
    let output = run(command);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("w.yaml:1:9: schema: `plimsoll.workload/1` is no longer read"), "{said}");
}

/// What the language says and no engine does yet is refused by its place in the file, as the manual
/// lists it.
#[test]
fn what_cannot_be_run_yet_is_refused_before_anything_is_done() {
    const FILLED: &str = "sets: {o: {count: 9, size: 1KiB}}\nstages:\n\
                          - {prepares: true, jobs: [{work: {fill: o}}]}\n";
    const GET: &str = "- {duration: 1s, jobs: [{work: {objects: [{get: o}]}}]}\n";
    let directory = tempfile::tempdir().unwrap();
    for (text, said) in [
        (
            "sets: {t: {trace: {file: a.log}}}\nstages:\n- {jobs: [{work: {remove: \
            t}}]}\n".to_owned(),
            "w.yaml:5:18: stages[0].jobs[0].work: set `t` comes from a trace; it can only be filled and",
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
            format!("targets: {{s3: {{hosts: 'm:1', profile: p}}}}\n{FILLED}{GET}"),
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

/// What a run refuses before it asks anybody is refused by the same sentence where the file is
/// only judged or explained, and nothing is made.
#[test]
fn a_check_says_what_a_run_says() {
    let get = "- {duration: 1s, jobs: [{work: {objects: [{get: o}]}}]}\n";
    let fill = "stages:\n- {prepares: true, jobs: [{work: {fill: o}}]}\n";
    let objects = |set: &str| format!("sets: {{o: {{{set}}}}}\n{fill}{get}");
    let files = |directory: &str| {
        format!(
            "targets: {{files: {{directory: {directory}}}}}\nsets: {{o: {{files: 1, size: \
            1MiB}}}}\n\
             {fill}- {{ops: 9, jobs: [{{work: {{blocks: {{on: o, read: {{block: 4KiB}}}}}}}}]}}\n"
        )
    };
    for (text, flags, said) in [
        (format!("sets: {{o: {{count: 5, size: 1KiB}}}}\n{fill}"), "", "w.yaml:5:3: stages: none"),
        (
            objects("count: 5, size: 1KiB, content: {files: [{path: nowhere, bytes: 9}]}"),
            "",
            "cannot read nowhere",
        ),
        (
            objects("count: 5, size: 1KiB, content: {files: [{path: nowhere, bytes: 9}]}"),
            " --virtual",
            "cannot read nowhere",
        ),
        (files("nowhere"), "", "the directory nowhere does not exist"),
        (files("w.yaml"), "", "w.yaml is not a directory"),
        (
            objects("count: 18446744073709551615, size: 1KiB"),
            " --virtual",
            "w.yaml:3:19: sets.o.count",
        ),
        (objects("count: 1099511627775, size: 1GiB"), "", "the embedded store holds"),
        (
            objects("count: 5, size: 1KiB, versions: 2"),
            " --virtual",
            "stages[0].jobs[0].work: a store in virtual time does not know `versions`",
        ),
        (
            format!("targets: {{s3: {{hosts: 'a{{1...'}}}}\n{}", objects("count: 5, size: 1KiB")),
            "",
            "a{1...",
        ),
        (
            format!(
                "targets: {{oracle: {{script: no.yaml}}}}\n{}",
                objects("count: 5, size: 1KiB")
            ),
            "",
            "cannot read no.yaml",
        ),
        (
            objects("count: 5, size: 1KiB")
                .replace("sets: {", "sets: {n: {named: {bucket: b, key: k}}, ")
                + "- {jobs: [{name: a, work: {fill: o}}, {name: b, work: \
             {buckets: {make: n}}}]}\n",
            "",
            "stages[2].jobs[1].work",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("schema: plimsoll.workload/2\nname: t\n{text}");
        std::fs::write(directory.path().join("w.yaml"), &text).unwrap();
        let run = |flag: &str| refused(directory.path(), &format!("run w.yaml{flags}{flag}"));
        let refused = run("");
        assert!(refused.contains(said), "{refused}{text}");
        assert_eq!(run(" --check"), refused, "{text}");
        assert_eq!(run(" --explain"), refused, "{text}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "{text}");
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

/// Targets of one kind in the record and the report: each has a line, its own directory and its own
/// number.
#[test]
fn each_target_of_files_has_its_own_line() {
    let directory = tempfile::tempdir().unwrap();
    let text = "schema: plimsoll.workload/2\nname: two\n\
        targets: {a: {files: {directory: one/}}, b: {files: {directory: two}}}\n\
        sets: {f: {on: a, files: 1, size: 8KiB}, g: {on: b, files: 2, size: 8KiB}}\nstages:\n\
        - {prepares: true, jobs: [{name: x, work: {fill: f}}, {name: y, work: {fill: g}}]}\n\
        - jobs:\n\
        \x20 - {name: x, ops: 9, work: {blocks: {on: f, read: {block: 4KiB}}}}\n\
        \x20 - {name: y, ops: 5, work: {blocks: {on: g, read: {block: 4KiB}}}}\n";
    std::fs::write(directory.path().join("w.yaml"), text).unwrap();
    for place in ["one", "two"] {
        std::fs::create_dir(directory.path().join(place)).unwrap();
    }
    let mut command = plimsoll(directory.path());
    command.args(["run", "w.yaml", "--run-dir", "record"]);
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = String::from_utf8(output.stdout.clone()).unwrap();
    let lines: Vec<&str> = report.lines().filter(|line| line.starts_with("target")).collect();
    let begins =
        |at: usize, with: &str| lines[at].strip_prefix("target      ").unwrap().starts_with(with);
    assert!(lines.len() == 2 && begins(0, "one, ") && begins(1, "two, "), "{report}");
    let manifest = std::fs::read(directory.path().join("record/run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    for (target, name) in [(&manifest["target"], "one"), (&manifest["more_targets"][0], "two")] {
        assert_eq!(target["endpoints"], serde_json::json!([name]));
        let held = directory.path().canonicalize().unwrap().join(name);
        assert_eq!(target["files"]["directories"], serde_json::json!([held]));
        assert!(target["files"]["free_bytes"].as_u64() > Some(0), "{target}");
        assert_eq!(std::fs::read_dir(held).unwrap().count(), 0, "all of it is removed");
    }
    let of_jobs: Vec<_> = manifest["stages"][1]["jobs"].as_array().unwrap().iter().collect();
    let numbers: Vec<_> = of_jobs.iter().map(|job| job["endpoint_first"].as_u64()).collect();
    assert_eq!(numbers, [Some(0), Some(1)]);
}

/// A target that is the oracle is called so wherever it is named.
#[test]
fn the_oracle_is_called_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n";
    std::fs::write(directory.path().join("s.yaml"), script).unwrap();
    let text = "schema: plimsoll.workload/2\nname: t\ntargets: {oracle: {script: s.yaml}}\n\
        sets: {o: {count: 5, size: 1KiB}}\nstages:\n\
        - {prepares: true, jobs: [{work: {fill: o}}]}\n\
        - {ops: 9, jobs: [{work: {objects: [{get: o}]}}]}\n";
    std::fs::write(directory.path().join("w.yaml"), text).unwrap();
    let mut command = plimsoll(directory.path());
    command.args(["run", "w.yaml", "--run-dir", "record"]);
    let output = run(command);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let name = "oracle (an embedded store that does as s.yaml says)";
    assert!(said.contains(&format!("running on the {name}")), "{said}");
    let report = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(report.contains("target      oracle at 127.0.0.1:"), "{report}");
    let manifest = std::fs::read(directory.path().join("record/run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["target"]["kind"], "oracle");
    let notes = manifest["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().starts_with(name)), "{notes:?}");
}

/// What is judged is told as JSON too: what it is, or where and why not.
#[test]
fn a_judgement_is_told_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let judge = |text: &str, flag: &str| {
        std::fs::write(directory.path().join("w.yaml"), text).unwrap();
        let mut command = plimsoll(directory.path());
        command.args(["run", "w.yaml", flag, "--json"]);
        let output = run(command);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), told)
    };
    let text = "schema: plimsoll.workload/2\nname: t\nsets: {o: {count: 5, size: 1KiB}}\nstages:\n\
                - {prepares: true, jobs: [{work: {fill: o}}]}\n\
                - {duration: 1s, jobs: [{name: a, work: {objects: [{get: SET}]}}]}\n";
    let sound = serde_json::json!({
        "file": "w.yaml", "sound": true, "name": "t", "stages": [
            {"name": "prepare", "kind": "prepare", "jobs": ["prepare"]},
            {"name": "stage-2", "kind": "measure", "jobs": ["a"]},
        ],
    });
    assert_eq!(judge(&text.replace("SET", "o"), "--check"), (Some(0), sound));
    let refused = |path: Option<&str>, place: [u64; 2], reason: &str| {
        let [line, column] = place;
        let error =
            serde_json::json!({"path": path, "line": line, "column": column, "reason": reason});
        (Some(2), serde_json::json!({"file": "w.yaml", "sound": false, "error": error}))
    };
    let path = "stages[1].jobs[0].work.objects[0].get";
    assert_eq!(
        judge(&text.replace("SET", "p"), "--check"),
        refused(Some(path), [6, 58], "unknown set `p`; the sets are o")
    );
    assert_eq!(
        judge("schema: plimsoll.workload/2\nseed: .nan\n", "--check"),
        refused(None, [2, 7], "`.nan` is not a finite number")
    );
    let (code, explained) = judge(&text.replace("SET", "o"), "--explain");
    assert_eq!((code, &explained["sets"]["o"]["count"]), (Some(0), &serde_json::json!(5)));
}

/// A file that was there before is read no further than it goes; where it is only written, it
/// grows.
#[test]
fn a_path_is_not_read_beyond_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let text = |work: &str| {
        format!(
            "schema: plimsoll.workload/2\ntargets: {{files: {{}}}}\n\
             sets: {{f: {{paths: [there], size: 64KiB, touch: true}}}}\nstages:\n\
             - {{jobs: [{{work: {{blocks: {{on: f, {work}}}}}}}]}}\n"
        )
    };
    let file = directory.path().join("there");
    std::fs::write(&file, [7; 6_000]).unwrap();
    for work in ["read: {block: 4KiB}", "read: {block: 4KiB}, write: {block: 4KiB}"] {
        std::fs::write(directory.path().join("w.yaml"), text(work)).unwrap();
        for flags in ["--check", "--yes"] {
            let refused = refused(directory.path(), &format!("run w.yaml {flags}"));
            assert!(refused.contains("there holds 5.86 KiB"), "{refused}");
        }
    }
    std::fs::write(directory.path().join("w.yaml"), text("write: {block: 4KiB}")).unwrap();
    let mut command = plimsoll(directory.path());
    command.args(["run", "w.yaml", "--yes"]);
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 64 << 10);
}
