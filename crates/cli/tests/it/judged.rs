//! Workload files that are judged and not run.

use crate::harness::{plimsoll, run, stderr};

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
    let path = directory.path().join("2.yaml");
    std::fs::write(&path, second.replace("SET", "o")).unwrap();
    let mut command = plimsoll(directory.path());
    command.args(["run", "2.yaml"]);
    let output = run(command);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot be run yet"), "{}", stderr(&output));
}
