//! The workload files of the manual, each as its head says that it is run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use plimsoll_model::StageKind;
use plimsoll_seaweed_stand_in::{SeaweedStandIn, StandInConfig};
use plimsoll_testkit::{LiveKind, live};
use plimsoll_workload::plan::{Plan, Work, WorkloadFile};
use serde_json::Value;

use crate::harness::{
    self, Target, oracle, plimsoll, printed, run, run_directory, run_line, stderr,
};

/// How many objects are in the bucket before; some of them have the names that `existing.yaml`
/// asks for.
const PLANTED: u64 = 8;

/// Files that need a store that can do more than most; they run on a live one too.
const DEMANDING: [&str; 2] = ["archive.yaml", "versions.yaml"];

/// The file that needs a bucket which keeps versions, and what one of others without is said to
/// lack.
const VERSIONS: (&str, &str) = ("versions.yaml", "the bucket has no versioning");

/// Files that need a real store, and why virtual time refuses them.
const NOT_VIRTUAL: [(&str, &str); 4] = [
    ("archive.yaml", "does not know `archive get_from_zip`"),
    ("existing.yaml", "sets.photos: nothing was there before"),
    ("parts.yaml", "does not know `parts`"),
    ("versions.yaml", "does not know `versions`"),
];

/// A workload file of the manual.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) plan: Plan,
}

pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the files, read from their directory: a new one is tested by being there.
fn files() -> Vec<File> {
    let directory = repository().join("docs/workloads");
    let mut files: Vec<File> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path().canonicalize().unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let plan = plan(&name, &fs::read_to_string(&path).unwrap());
            File { name, path, plan }
        })
        .collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(files.len() >= 12);
    files
}

fn plan(name: &str, text: &str) -> Plan {
    WorkloadFile::from_yaml(name, text).unwrap().check().unwrap()
}

/// Returns a directory with what the files ask for: a place for files, and the scripts.
pub(crate) fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("scratch")).unwrap();
    fs::create_dir_all(place.path().join("docs/examples")).unwrap();
    let script = "docs/examples/oracle-queue.yaml";
    fs::copy(repository().join(script), place.path().join(script)).unwrap();
    place
}

fn assert_scratch_is_empty(place: &Path, name: &str) {
    let left = fs::read_dir(place.join("scratch")).unwrap().count();
    assert_eq!(left, 0, "{name} leaves files behind");
}

#[test]
fn each_is_sound_and_is_explained_as_it_is_meant() {
    for File { name, path, plan: meant } in files() {
        let place = place();
        let path = path.display();
        let sound = printed(place.path(), &format!("run {path} --check"));
        assert_eq!(sound, format!("{path}: sound\n"));
        let explained = printed(place.path(), &format!("run {path} --explain"));
        assert_eq!(plan(&name, &explained).fingerprint(), meant.fingerprint(), "{explained}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2, "{name}: nothing was made");
        assert_scratch_is_empty(place.path(), &name);
    }
}

#[test]
fn each_runs_on_the_embedded_store_and_on_files() {
    for file in files() {
        let target = oracle();
        target.plant(PLANTED);
        if file.name == VERSIONS.0 {
            refused(&target, &file, VERSIONS.1);
            runs(&Target { bucket: "versioned".to_owned(), ..oracle_at(&target) }, &file);
        } else {
            runs(&target, &file);
        }
        target.assert_only_planted(PLANTED);
        for bucket in (1..=16).map(|number| format!("bench{number}")) {
            if file.name == "load-serve-delete.yaml" {
                let of_set = Target { bucket, ..oracle_at(&target) };
                assert_eq!(of_set.listed(), [""; 0], "{}", file.name);
            }
        }
    }
}

#[test]
fn the_demanding_ones_run_on_minio() {
    let Some(server) = live(LiveKind::Minio) else { return };
    for file in files().iter().filter(|file| DEMANDING.contains(&&*file.name)) {
        let bucket = format!("workloads-{}-{}", file.plan.name, std::process::id());
        let target = harness::live(&server, &bucket);
        runs(&target, file);
        assert_eq!(target.listed(), [""; 0], "{}", file.name);
    }
}

#[test]
fn each_has_the_same_figures_in_virtual_time_again() {
    for file in files() {
        let place = place();
        let simulate = || {
            let mut command = plimsoll(place.path());
            command.arg("run").arg(&file.path).args(["--virtual", "--seed", "5", "--json"]);
            run(command)
        };
        let first = simulate();
        let said = stderr(&first);
        if let Some((_, why)) = NOT_VIRTUAL.iter().find(|(name, _)| *name == file.name) {
            assert_eq!(first.status.code(), Some(2), "{}: {said}", file.name);
            assert!(said.lines().last().unwrap().contains(why), "{}: {said}", file.name);
            continue;
        }
        assert_eq!(first.status.code(), Some(0), "{}: {said}", file.name);
        assert_measured(&file, &report_of(&first));
        let again = simulate();
        assert!(first.stdout == again.stdout, "{}: the figures differ", file.name);
        assert_scratch_is_empty(place.path(), &file.name);
    }
}

/// Returns the same store, to be looked at by another bucket.
fn oracle_at(target: &Target) -> Target {
    Target {
        host: target.host.clone(),
        access_key: target.access_key.clone(),
        secret_key: target.secret_key.clone(),
        tls_ca: None,
        bucket: String::new(),
        oracle: None,
    }
}

fn on(target: &Target, file: &File, place: &Path) -> Output {
    let line = format!("run {} --run-dir run --json", file.path.display());
    run(target.command(place, &line))
}

fn refused(target: &Target, file: &File, why: &str) {
    let place = place();
    let output = on(target, file, place.path());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{}: {said}", file.name);
    assert!(said.lines().last().unwrap().contains(why), "{}: {said}", file.name);
    assert!(!place.path().join("run").exists(), "{}: nothing is kept of it", file.name);
}

/// Runs a file, which must do all that it says and leave nothing but its record.
pub(crate) fn runs(target: &Target, file: &File) {
    let place = place();
    let output = on(target, file, place.path());
    let said = stderr(&output);
    let name = &file.name;
    match output.status.code() {
        Some(0) => {}
        // A machine that is busy with other tests does not keep every schedule.
        Some(1) => {
            let warnings = said.lines().filter(|line| line.starts_with("warning: "));
            for warning in warnings {
                assert!(warning.contains("SCHEDULE NOT KEPT"), "{name}: {said}");
            }
        }
        code => panic!("{name} ended with {code:?}: {said}"),
    }
    let report = report_of(&output);
    assert_measured(file, &report);
    assert_scratch_is_empty(place.path(), name);
    let again: Value = serde_json::from_str(&printed(place.path(), "analyze run --json")).unwrap();
    assert_eq!(again["stages"], report["stages"], "{name}: its record says the same");
}

fn report_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks that each stage has the jobs of the file in rows of their own, each with operations of
/// which none failed.
fn assert_measured(file: &File, report: &Value) {
    let stages = report["stages"].as_array().unwrap();
    let names = |stages: &[Value], is_result: bool| -> Vec<String> {
        let of = stages.iter().filter(|stage| stage["is_result"] == is_result);
        of.map(|stage| stage["name"].as_str().unwrap().to_owned()).collect()
    };
    let planned = |is_result: bool| -> Vec<String> {
        let of = file.plan.stages.iter();
        let of = of.filter(|stage| (stage.kind == StageKind::Measure) == is_result);
        of.map(|stage| stage.name.clone()).collect()
    };
    for is_result in [true, false] {
        assert_eq!(names(stages, is_result), planned(is_result), "{}", file.name);
    }
    for (stage, planned) in stages.iter().zip(&file.plan.stages) {
        let place = format!("{}, stage {}", file.name, planned.name);
        let rows = stage["rows"].as_array().unwrap().iter();
        let counts: BTreeMap<&str, &Value> =
            rows.map(|row| (row["name"].as_str().unwrap(), &row["total"]["stage_total"])).collect();
        for job in &planned.jobs {
            let total = counts[&*job.name];
            if matches!(job.work, Work::MakeBuckets(_) | Work::RemoveBuckets(_)) {
                assert_eq!(total["ops_ok_count"], 0, "{place}: buckets are no operations");
                continue;
            }
            assert!(total["ops_ok_count"].as_u64() > Some(0), "{place}, job {}", job.name);
            assert_eq!(total["ops_failed_count"], 0, "{place}, job {}: {report:#}", job.name);
        }
        assert_eq!(counts.len(), planned.jobs.len().max(1), "{place}");
    }
    let op_log = &report["stages"][0]["op_log"];
    assert_eq!(op_log["rows_count"], op_log["ops_counted_count"], "{}", file.name);
}

/// In virtual time, so that nothing but the figures can differ: 20/s of arrivals are 20/s beside a
/// job that lasts three times as long, and where a ramp comes first.
#[test]
fn a_rate_is_over_the_time_of_its_own_job() {
    let place = place();
    let text = "schema: plimsoll.workload/2\nname: t\nsets: {o: {count: 9, size: 1KiB}}\nstages:\n\
                - {prepares: true, jobs: [{work: {fill: o}}]}\n\
                - jobs:\n\
                \x20 - {name: a, duration: 2s, pacing: {open: 20/s}, work: {objects: [{stat: \
                o}]}}\n\
                \x20 - {name: b, duration: 6s, work: {objects: [{get: o}]}}\n\
                - {duration: 2s, jobs: [{ramp: 3s, pacing: {open: 20/s}, work: {objects: [{get: \
                o}]}}]}\n";
    fs::write(place.path().join("w.yaml"), text).unwrap();
    let report = printed(place.path(), "run w.yaml --virtual --seed 1 --json");
    let report: Value = serde_json::from_str(&report).unwrap();
    for stage in [1, 2] {
        let row = &report["stages"][stage]["rows"][0];
        assert_eq!(row["schedules"][0]["duration_ns"], 2_000_000_000_u64, "{row:#}");
        assert_eq!(row["schedules"][0]["offered_count"], 40, "{row:#}");
        let rate = row["total"]["rates"]["ops_per_sec"].as_f64().unwrap();
        assert!((rate - 20.0).abs() < 1e-6, "{rate}");
    }
}

/// One worker needs 58 ms for what is to be done.
#[test]
fn a_job_that_is_done_early_is_not_averaged_over_its_duration() {
    let place = place();
    let text = "schema: plimsoll.workload/2\nname: t\nsets: {o: {count: 9, size: 1KiB}}\nstages:\n\
                - {prepares: true, jobs: [{work: {fill: o}}]}\n\
                - duration: 3s\n\
                \x20 jobs:\n\
                \x20 - {name: a, ops: 58, work: {objects: [{get: o}]}}\n\
                \x20 - {name: b, work: {objects: [{stat: o}]}}\n";
    fs::write(place.path().join("w.yaml"), text).unwrap();
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n";
    fs::write(place.path().join("s.yaml"), script).unwrap();
    let line = "run w.yaml --virtual --script s.yaml --seed 1 --json";
    let report: Value = serde_json::from_str(&printed(place.path(), line)).unwrap();
    for (row, ops) in
        harness::measured_stage(&report)["rows"].as_array().unwrap().iter().zip([58, 3000])
    {
        assert_eq!(row["total"]["stage_total"]["ops_ok_count"], ops, "{row:#}");
        let rate = row["total"]["rates"]["ops_per_sec"].as_f64().unwrap();
        assert!((rate - 1000.0).abs() < 1.0, "{rate}");
    }
}

/// 250 operations of each worker take 2.5 s and a little more for the removals: what was put in the
/// first 1.5 s of them and a little is removed.
#[test]
fn removals_of_what_is_put_for_a_time_count_towards_no_limit() {
    let place = place();
    let text = "schema: plimsoll.workload/2\nname: t\nsets: {b: {size: 1KiB}}\nstages:\n\
                - {ops: 1000, jobs: [{workers: 4, work: {objects: [{put: b, weight: 3}, {put: b, \
                remove_after: 1s}]}}]}\n";
    fs::write(place.path().join("w.yaml"), text).unwrap();
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 10ms}}\n";
    fs::write(place.path().join("s.yaml"), script).unwrap();
    let line = "run w.yaml --virtual --script s.yaml --seed 1 --json";
    let report: Value = serde_json::from_str(&printed(place.path(), line)).unwrap();
    let kinds = harness::measured(&report)["kinds"].as_array().unwrap();
    let count = |kind: &str| {
        let of = kinds.iter().find(|of| of["kind"] == kind).unwrap();
        of["stage_total"]["ops_ok_count"].as_u64().unwrap()
    };
    assert_eq!(count("PUT"), 1000);
    // A quarter of what each of four workers put in 150 to 200 operations.
    assert!((150..=200).contains(&count("DELETE")), "{}", count("DELETE"));
}

#[test]
fn batches_of_members_in_several_buckets_remove_each_of_them() {
    let text = |work: &str| {
        format!(
            "schema: plimsoll.workload/2\nname: batch\n\
             sets: {{o: {{count: 100, size: 1KiB, keys: {{buckets: 4}}}}}}\nstages:\n\
             - {{prepares: true, jobs: [{{workers: 2, work: {{fill: o}}}}]}}\n\
             - {{jobs: [{{workers: 2, work: {work}}}]}}\n"
        )
    };
    for work in ["{objects: [{delete: o, batch: 10}]}", "{remove: {sets: o, batch: 10}}"] {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("batch.yaml"), text(work)).unwrap();
        let output = harness::run_line(place.path(), "run batch.yaml --run-dir out");
        assert_eq!(output.status.code(), Some(0), "{work}: {}", stderr(&output));
        let manifest: Value =
            serde_json::from_slice(&fs::read(place.path().join("out/run.json")).unwrap()).unwrap();
        // Nothing is left for cleaning up: what the stage says that it removed is gone.
        let left = manifest["cleanup"]["objects_removed_count"].as_u64();
        assert_eq!(left.unwrap_or_default(), 0, "{work}");
    }
}

/// What moves nothing fails nothing either, whatever is asked of it.
#[test]
fn every_kind_of_operation_succeeds_on_the_null_target() {
    let place = place();
    let text = "schema: plimsoll.workload/2\nname: n\ntargets: {'null': {}}\n\
                sets: {o: {count: 90, size: 9KiB}, u: {count: 9, size: 20MiB, part: \
                5MiB}}\nstages:\n\
                - {prepares: true, jobs: [{work: {fill: o}}]}\n\
                - {prepares: true, jobs: [{work: {fill: u}}]}\n\
                - jobs:\n\
                \x20 - name: mix\n    workers: 3\n    ops: 900\n    work:\n      objects:\n\
                \x20     - {get: o, weight: 20}\n      - {get: o, range: 100B, weight: 20}\n\
                \x20     - {stat: o, weight: 20}\n      - {list: o, weight: 20}\n\
                \x20     - {put: o, weight: 10}\n      - {delete: o, weight: 10}\n\
                - {jobs: [{ops: 9, work: {parts: {get: u}}}]}\n";
    fs::write(place.path().join("w.yaml"), text).unwrap();
    let report = printed(place.path(), "run w.yaml --json");
    let report: Value = serde_json::from_str(&report).unwrap();
    let stages = report["stages"].as_array().unwrap();
    let total = |stage: &Value| {
        let row = &stage["rows"][0]["total"]["stage_total"];
        let count = |field: &str| row[field].as_u64().unwrap();
        (count("ops_ok_count"), count("ops_failed_count"))
    };
    let totals: Vec<(u64, u64)> = stages.iter().map(total).collect();
    assert_eq!(totals[2..], [(900, 0), (9, 0)], "{report:#}");
    assert!(report["verification"].is_null(), "nothing came that could be checked");
}

#[test]
fn a_run_names_the_store_that_it_brought_and_the_buckets_of_its_set() {
    let place = place();
    let text = "schema: plimsoll.workload/2\nname: t\n\
                sets: {o: {count: 4, size: 1KiB, keys: {buckets: 2}}}\nstages:\n\
                - {prepares: true, jobs: [{work: {fill: o}}]}\n\
                - {jobs: [{ops: 20, work: {objects: [{get: o}]}}]}\n";
    fs::write(place.path().join("w.yaml"), text).unwrap();
    let report = printed(place.path(), "run w.yaml");
    let target = report.lines().find(|line| line.starts_with("target ")).unwrap();
    assert!(target.starts_with("target      embedded store at 127.0.0.1:"), "{target}");
    assert!(target.ends_with(", bucket plimsoll{1..2}"), "{target}");
}

#[test]
fn a_run_whose_operations_all_fail_alike_ends_with_that_sentence() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    for (name, status) in [("denied.yaml", 403), ("absent.yaml", 404)] {
        let script = format!(
            "schema: plimsoll.oracle/1\nservice: {{time: {{constant: 2ms}}}}\n\
             faults: {{get: {{status: {{{status}: 1.0}}}}}}\n"
        );
        fs::write(here.join(name), script).unwrap();
    }
    let workload = "schema: plimsoll.workload/2\nsets: {o: {count: 20, size: 1KiB}}\nstages:\n\
                    - {prepares: true, jobs: [{work: {fill: o}}]}\n\
                    - {duration: 60s, jobs: [{workers: 4, work: {objects: [{get: o}]}}]}\n";
    fs::write(here.join("w.yaml"), workload).unwrap();
    let own = workload.replace("{workers: 4,", "{workers: 4, max_error_rate: 100%,");
    fs::write(here.join("own.yaml"), own).unwrap();
    let took = |name: &str, line: &str, code: i32| {
        let output = run_line(here, &format!("run {line} --virtual --run-dir {name}"));
        assert_eq!(output.status.code(), Some(code), "{name}: {output:?}");
        let class = if line.contains("absent") { "not-found (404)" } else { "denied (403)" };
        let sentence = format!("operations so far failed alike: {class}");
        assert_eq!(stderr(&output).contains(&sentence), code == 2, "{name}: {output:?}");
        let read = run_line(here, &format!("analyze {name} --json"));
        let report: Value = serde_json::from_slice(&read.stdout).unwrap();
        let stages = report["stages"].as_array().unwrap();
        let main = stages.iter().find(|stage| stage["is_result"] == true).unwrap();
        main["duration_ns"].as_u64().unwrap() / 1_000_000_000
    };
    let denied = "--script denied.yaml";
    assert_eq!(took("ended", &format!("w.yaml {denied}"), 2), 2);
    assert_eq!(took("absent", "w.yaml --script absent.yaml", 2), 2);
    assert_eq!(took("on", &format!("w.yaml {denied} --keep-going"), 1), 60);
    assert_eq!(took("allowed", &format!("w.yaml {denied} --max-error-rate 100%"), 0), 60);
    assert_eq!(took("own", &format!("own.yaml {denied}"), 0), 60);
}

/// The record says it, so that none has to fail for two seconds.
#[test]
fn runs_of_other_tools_and_with_events_go_on_where_all_operations_fail_alike() {
    let (target, cluster) = (oracle(), SeaweedStandIn::start(StandInConfig::default()).unwrap());
    let xml = "<workload name='w'><storage type='mock'/><workflow><workstage name='main'>\
               <work name='m' workers='1' totalOps='3'><operation type='write' \
               config='containers=c(1);objects=u(1,9);sizes=c(1)KB'/></work></workstage>\
               </workflow></workload>";
    let small = "--obj.size 1KiB --concurrent 2 --duration 100ms";
    let warp = format!("as warp put --host {} --bucket bench {small}", target.host);
    let weed = format!("as weed-benchmark -master {} -n 5 -c 2 -list l.txt", cluster.masters()[0]);
    let plain = format!("s3 get --objects 20 {small}");
    for (line, goes_on) in [
        (&*warp, true),
        (&*weed, true),
        ("as cosbench w.xml", true),
        ("as fio --name=a --rw=read --size=64k --directory=files --ioengine=psync", true),
        ("as mdtest -n 5 -d files", true),
        (&*format!("{plain} --event 10ms:true"), true),
        (&*plain, false),
    ] {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("files")).unwrap();
        fs::write(place.path().join("w.xml"), xml).unwrap();
        let mut command = plimsoll(place.path());
        command.args(line.split(' '));
        if line == warp {
            target.credentials(&mut command);
        }
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        let manifest = fs::read(run_directory(place.path()).join("run.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest["workload"]["keep_going"] == true, goes_on, "{line}");
    }
}
