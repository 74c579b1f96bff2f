//! `plimsoll as cosbench`: COSBench's own workload files, run scaled down against the stores that
//! they were written for, with the archive that COSBench wrote for some of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plimsoll_testkit::{LiveKind, live};
use serde_json::Value;

use crate::fleet::Fleet;
use crate::harness::{self, Target, oracle, plimsoll, refused, run, run_directory, stderr};

/// Where COSBench's files lie.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dialects/testdata/cosbench");

/// Returns one of COSBench's files with its texts replaced, in a directory of the test's own.
pub(crate) fn scaled(directory: &Path, name: &str, replaced: &[(&str, &str)]) -> PathBuf {
    let mut text = std::fs::read_to_string(format!("{DATA}/{name}")).unwrap();
    for (from, to) in replaced {
        assert!(text.contains(from), "{name} has no {from}");
        text = text.replace(from, to);
    }
    let path = directory.join("workload.xml");
    std::fs::write(&path, text).unwrap();
    path
}

pub(crate) fn as_cosbench(directory: &Path, words: &[&str]) -> Command {
    let mut command = plimsoll(directory);
    command.args(["as", "cosbench"]).args(words);
    command
}

#[track_caller]
pub(crate) fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns operations and failures of each stage, as the record has them.
pub(crate) fn stages(directory: &Path) -> Vec<(String, u64, u64)> {
    let manifest = std::fs::read(run_directory(directory).join("run.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let of = |stage: &Value| {
        let count = |field: &str| stage[field].as_u64().unwrap();
        let name = stage["name"].as_str().unwrap().to_owned();
        (name, count("ops_count"), count("ops_failed_count"))
    };
    manifest["stages"].as_array().unwrap().iter().map(of).collect()
}

/// Returns the cells of each line of a file of COSBench's.
fn cells(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|_| panic!("{}", path.display()));
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn names_in(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns what replaces the access of the S3 samples.
fn access(target: &Target) -> String {
    let Target { host, access_key, secret_key, .. } = target;
    format!(
        "accesskey={access_key};secretkey={secret_key};endpoint=http://{host};\
         path_style_access=true\" />"
    )
}

const SEED_ACCESS: &str =
    "accesskey=root;secretkey=dump;endpoint=http://localhost:29998;path_style_access=true\" />";

#[test]
fn the_first_seed_runs_on_minio_and_leaves_nothing() {
    let Some(server) = live(LiveKind::Minio) else { return };
    let target = harness::live(&server, "unused");
    let directory = tempfile::tempdir().unwrap();
    let access = access(&target);
    let replaced = [(SEED_ACCESS, &*access), ("\"30\"", "\"2\""), ("s3testqwer", "seed-one-")];
    let file = scaled(directory.path(), "xml/seed-alluxio-1.xml", &replaced);
    let archive = directory.path().join("archive");
    let words = [file.to_str().unwrap(), "--archive", archive.to_str().unwrap()];
    let output = run(as_cosbench(directory.path(), &words));
    let summary = done(&output);
    assert!(summary.contains("s3-main") && summary.contains("prepare-write"), "{summary}");
    let stages = stages(directory.path());
    let names: Vec<&str> = stages.iter().map(|(name, ..)| &**name).collect();
    assert_eq!(names, ["s1-init", "s2-prepare", "s3-main", "s4-cleanup", "s5-dispose"]);
    let failed: u64 = stages.iter().map(|(_, _, failed)| failed).sum();
    assert_eq!((stages[1].1, stages[3].1, failed), (20, 40, 0), "two containers of 10, then of 20");
    for bucket in ["seed-one-1", "seed-one-2"] {
        let gone = harness::live(&server, bucket).exists();
        assert!(!gone, "{bucket} was made by init and removed by dispose");
    }
    assert_archive(&archive.join("w1-s3-sample"), "w3-s3-sample", &[("prepare", 20)]);
    assert!(!stderr(&output).contains(&target.secret_key));
}

/// Checks that an archive has the files, columns, stages and operations of one that COSBench wrote,
/// and the counts that are determined.
#[track_caller]
fn assert_archive(ours: &Path, theirs: &str, counts: &[(&str, u64)]) {
    let reference = PathBuf::from(format!("{DATA}/archive/{theirs}"));
    let own_id = ours.file_name().unwrap().to_str().unwrap();
    let names = names_in(ours);
    for name in names_in(&reference) {
        let name = name.replace(theirs, own_id);
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
    let final_of = |place: &Path, id: &str| cells(&place.join(format!("{id}.csv")));
    let (own, their) = (final_of(ours, own_id), final_of(&reference, theirs));
    assert_eq!(own[0], their[0]);
    let first_three = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
        rows[1..].iter().map(|row| row[..3].to_vec()).collect()
    };
    assert_eq!(first_three(&own), first_three(&their), "stages and operations");
    let states = |rows: &[Vec<String>]| -> Vec<String> {
        rows[1..].iter().map(|row| row[16].clone()).collect()
    };
    assert_eq!(states(&own), states(&their), "states");
    for (op, count) in counts {
        let row = own.iter().find(|row| row[2] == *op).unwrap();
        assert_eq!(row[3], count.to_string(), "{op}");
    }
    for name in names_in(&reference).iter().filter(|name| name.starts_with('s')) {
        if let [first, second, ..] = &*cells(&reference.join(name))
            && name.ends_with(".csv")
        {
            let own = cells(&ours.join(name));
            assert_eq!((&own[0], &own[1]), (first, second), "{name}");
        }
    }
    let histogram = cells(&ours.join(format!("{own_id}-rt-histogram.csv")));
    // A megabyte of rows is not kept of every archive.
    let their = reference.join(format!("{theirs}-rt-histogram.csv"));
    if their.exists() {
        assert_eq!(histogram[0], cells(&their)[0]);
    }
    assert_eq!(histogram.len(), 50_002);
    assert_eq!(histogram[50_001][0], "500000~+INF");
}

#[test]
fn the_demo_of_the_archive_gives_the_same_archive() {
    let directory = tempfile::tempdir().unwrap();
    // A mock answers after 10 ms, which would take a minute.
    let replaced = [
        ("config=\"size=64000\"", "config=\"size=64000;delay=0\""),
        ("runtime=\"30\" rampup=\"5\"", "runtime=\"2\" rampup=\"1\""),
        ("interval=\"5\"", "interval=\"1\""),
    ];
    let file = scaled(directory.path(), "archive/w1-demo/workload-config.xml", &replaced);
    let archive = directory.path().join("archive");
    let words = [file.to_str().unwrap(), "--archive", archive.to_str().unwrap()];
    done(&run(as_cosbench(directory.path(), &words)));
    // 32 containers of 50 objects are written, and 100 names in each are removed.
    assert_archive(&archive.join("w1-demo"), "w1-demo", &[("prepare", 1_600), ("cleanup", 3_200)]);
    let prepared = &cells(&archive.join("w1-demo/w1-demo.csv"))[2];
    assert_eq!(prepared[4], "102400000", "bytes of 1,600 objects of 64 KB");
    let history = cells(&archive.join("run-history.csv"));
    let their = cells(&PathBuf::from(format!("{DATA}/archive/run-history.csv")));
    assert_eq!(history[0], their[0]);
    assert_eq!(
        (&*history[1][0], &*history[1][5], &*history[1][6]),
        ("w1", &*their[1][5], "finished")
    );
    let workloads = cells(&archive.join("workloads.csv"));
    let their = cells(&PathBuf::from(format!("{DATA}/archive/workloads.csv")));
    assert_eq!(workloads[0], their[0]);
    let ids = |rows: &[Vec<String>]| -> Vec<(String, String)> {
        let of_first = rows[1..].iter().take_while(|row| row[0].starts_with("w1-"));
        of_first.map(|row| (row[0].clone(), row[1].clone())).collect()
    };
    assert_eq!(ids(&workloads), ids(&their));

    // A second run into the same archive has the next id.
    done(&run(as_cosbench(directory.path(), &words)));
    assert!(archive.join("w2-demo/w2-demo.csv").exists());
    assert_eq!(cells(&archive.join("run-history.csv")).len(), 3);
}

#[test]
fn each_sample_of_storage_none_or_mock_runs() {
    let whole = [("\"300\"", "\"1\"")];
    for (name, replaced) in [
        ("xml/noop-config.xml", &whole[..]),
        ("xml/noop-read-config.xml", &[][..]),
        ("xml/noop-write-config.xml", &[][..]),
        ("xml/workload-config.xml", &[][..]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(format!("{DATA}/{name}")).unwrap();
        let present: Vec<(&str, &str)> =
            replaced.iter().copied().filter(|(from, _)| text.contains(from)).collect();
        let file = scaled(directory.path(), name, &present);
        let output = run(as_cosbench(directory.path(), &[&shortened(&file)]));
        done(&output);
        let stages = stages(directory.path());
        assert!(stages.iter().any(|(_, ops, _)| *ops > 0), "{name}: {stages:?}");
        assert!(stages.iter().all(|(_, _, failed)| *failed == 0), "{name}: {stages:?}");
    }
}

/// Cuts the times of a workload down to a second, and a mock's delay to nothing.
pub(crate) fn shortened(file: &Path) -> String {
    let mut text = std::fs::read_to_string(file).unwrap();
    for attribute in ["runtime", "rampup", "rampdown", "closuredelay"] {
        let mut cut = String::new();
        let mut rest = &*text;
        let begin = format!("{attribute}=\"");
        while let Some(at) = rest.find(&begin) {
            let (before, behind) = rest.split_at(at + begin.len());
            let end = behind.find('"').unwrap();
            let seconds: u32 = behind[..end].parse().unwrap();
            cut.push_str(&format!("{before}{}", seconds.min(1)));
            rest = &behind[end..];
        }
        cut.push_str(rest);
        text = cut;
    }
    let text = text.replace("size=64000\"", "size=64000;delay=0\"");
    std::fs::write(file, text).unwrap();
    file.display().to_string()
}

#[test]
fn the_second_seed_runs_on_two_agents_by_their_names() {
    let Some(server) = live(LiveKind::Minio) else { return };
    let Some(fleet) = Fleet::start(&["driver1", "driver2"], &[]) else { return };
    let target = harness::live(&server, "seed-two-2");
    // COSBench expects the bucket to be there.
    target.plant(3);
    let directory = tempfile::tempdir().unwrap();
    let access = access(&target);
    let replaced = [
        (
            "accesskey=root;secretkey=dump;endpoint=http://<ip>:29998;path_style_access=true\" />",
            &*access,
        ),
        ("\"300\"", "\"2\""),
        ("\"128\"", "\"8\""),
        ("1,10000", "1,100"),
        ("cprefix=ufs", "cprefix=seed-two-"),
    ];
    let file = scaled(directory.path(), "xml/seed-alluxio-2.xml", &replaced);
    // A stage named by its number of workers is still one.
    let text = std::fs::read_to_string(&file).unwrap().replace("driver3", "driver1");
    std::fs::write(&file, text.replace("driver4", "driver2")).unwrap();
    let archive = directory.path().join("archive");
    let words = [
        file.to_str().unwrap(),
        "--touch",
        "seed-two-*",
        "--archive",
        archive.to_str().unwrap(),
        &fleet.flag,
        "--agents-min",
        "2",
    ];
    done(&run(as_cosbench(directory.path(), &words)));
    let report = run_directory(directory.path());
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(report.join("run.json")).unwrap()).unwrap();
    let agents: Vec<&str> = manifest["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["name"].as_str().unwrap())
        .collect();
    assert_eq!(agents.len(), 2, "{agents:?}");
    let own = cells(&archive.join("w1-s3-sample/w1-s3-sample.csv"));
    let reads: Vec<&Vec<String>> = own.iter().filter(|row| row[1] == "read").collect();
    assert_eq!(reads.len(), 4, "each of the four works called read has a row: {own:?}");
    assert!(reads.iter().all(|row| row[3] != "0" && row[15] == "100%"), "{reads:?}");
    for driver in ["driver1", "driver2"] {
        assert!(archive.join(format!("w1-s3-sample/{driver}.csv")).exists(), "{driver}");
    }
}

#[test]
fn what_no_run_made_is_not_touched_without_leave() {
    let target = oracle();
    let foreign = Target { bucket: "pool1".to_owned(), ..oracle_of(&target) };
    foreign.plant(8);
    let directory = tempfile::tempdir().unwrap();
    let access = access(&target);
    let workload = |stages: &str| {
        let text = format!(
            "<workload name=\"w\"><storage type=\"s3\" config=\"{access}<workflow>{stages}\
             </workflow></workload>"
        );
        let path = directory.path().join("w.xml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let prepare = "<workstage name=\"prepare\"><work type=\"prepare\" workers=\"1\" \
                   config=\"cprefix=pool;containers=r(1,1);objects=r(1,3);sizes=c(1)KB\"/>\
                   </workstage>";
    let file = workload(prepare);
    let said = refused(directory.path(), &format!("as cosbench {file}"));
    assert!(said.contains("pool1") && said.contains("--touch 'pool1'"), "{said}");
    foreign.assert_only_planted(8);
    let said = refused(directory.path(), &format!("as cosbench --touch pool2 {file}"));
    assert!(said.contains("--touch 'pool1'"), "{said}");
    foreign.assert_only_planted(8);
    // To read needs no leave; what is not there fails, as data.
    let read = "<workstage name=\"main\"><work name=\"main\" workers=\"1\" totalOps=\"10\">\
                <operation type=\"read\" config=\"cprefix=pool;containers=c(1);objects=u(1,3)\"/>\
                </work></workstage>";
    let output = run(as_cosbench(directory.path(), &[&workload(read)]));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    foreign.assert_only_planted(8);
    let output = run(as_cosbench(directory.path(), &["--touch", "pool*", &workload(prepare)]));
    done(&output);
    assert_eq!(foreign.listed().len(), 11);
    assert!(stderr(&output).contains("works in pool1 of s3"), "{}", stderr(&output));
    let output = run(as_cosbench(directory.path(), &[&workload(read)]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Returns another way to the same store.
fn oracle_of(target: &Target) -> Target {
    Target {
        host: target.host.clone(),
        access_key: target.access_key.clone(),
        secret_key: target.secret_key.clone(),
        tls_ca: None,
        bucket: target.bucket.clone(),
        oracle: None,
    }
}

#[test]
fn refusals_begin_with_the_words_that_scripts_look_for() {
    let directory = tempfile::tempdir().unwrap();
    let work = |work: &str| {
        format!(
            "<workload name=\"w\"><storage type=\"none\"/><workflow><workstage name=\"m\">{work}\
             </workstage></workflow></workload>"
        )
    };
    for (text, words) in [
        (
            work(
                "<work name=\"a\" workers=\"1\" runtime=\"1\"><operation type=\"read\" ratio=\"90\"\
                  config=\"containers=c(1);objects=c(1)\"/></work>",
            ),
            "op ratio should sum to 100",
        ),
        (work("<work name=\"a\" workers=\"1\" interval=\"0\"/>"), "illegal interval: 0"),
        (work("<work name=\"a\"/>"), "must specify 'workers' for a work"),
        (work(""), "stage must have works"),
        ("<workload name=\"w\">".to_owned(), "cannot parse the xml configuration from <stream>"),
    ] {
        let path = directory.path().join("bad.xml");
        std::fs::write(&path, text).unwrap();
        let output = run(as_cosbench(directory.path(), &[path.to_str().unwrap()]));
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.contains(words), "{said}");
    }
}
