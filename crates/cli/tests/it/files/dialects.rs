//! Job files and command lines of fio's and mdtest's, scaled down.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Directories, below, hashes};
use crate::harness::{Background, run, stderr};

const SCALED: &str = "--dir DIR --scale 1/65536 --scale-time 1/3000 --jobs-max 2";
/// The same for files whose stages last 3 s instead of 5 min.
const SCALED_SHORT: &str = "--dir DIR --scale 1/65536 --scale-time 1/30 --jobs-max 2";

fn job_files(folder: &str) -> Vec<PathBuf> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/fio/");
    let mut found = Vec::new();
    let mut rest = vec![Path::new(root).join(folder)];
    while let Some(directory) = rest.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { rest.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

#[track_caller]
fn runs_scaled(dirs: &Directories, path: &Path, scaled: &str) {
    let line = format!("run {} {scaled} --json", path.display());
    let mut command = dirs.command(&line);
    command.env("DIRECTORY", dirs.files());
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{}: {}", path.display(), stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = report["stages"].as_array().unwrap().iter();
    let results: Vec<_> = results.filter(|stage| stage["is_result"] == true).collect();
    assert!(!results.is_empty(), "{}", path.display());
    for stage in results {
        let rows = stage["rows"].as_array().unwrap();
        let sum = |of: &str| -> u64 {
            let count = |row: &Value| row["total"]["stage_total"][of].as_u64().unwrap();
            rows.iter().map(count).sum()
        };
        assert!(sum("ops_ok_count") > 0, "{report:#}");
        assert_eq!(sum("ops_failed_count"), 0, "{}", path.display());
    }
    dirs.assert_clean(&line);
}

#[test]
fn every_job_file_of_wekas_runs() {
    let files = job_files("weka");
    assert_eq!(files.len(), 8);
    let dirs = Directories::in_memory();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("$ncpus-2") {
            // On two cores that is no job at all, which fio does not take either.
            let text = text.replace("$ncpus-2", "$ncpus*2-2").replace("${DIRECTORY}", "DIR");
            let fitting = dirs.write("fitting.fio", &text);
            runs_scaled(&dirs, &fitting, SCALED);
            let few = std::thread::available_parallelism().unwrap().get() <= 2;
            if few {
                let line = format!("run {} {SCALED}", path.display());
                let output = run({
                    let mut command = dirs.command(&line);
                    command.env("DIRECTORY", dirs.files());
                    command
                });
                assert!(stderr(&output).contains("`numjobs=0`: 1 is the least"), "{output:?}");
                continue;
            }
        }
        runs_scaled(&dirs, &path, SCALED);
    }
}

#[test]
fn every_job_file_of_wekatesters_runs() {
    let files = job_files("wekatester");
    assert_eq!(files.len(), 11);
    let dirs = Directories::in_memory();
    files.iter().for_each(|path| runs_scaled(&dirs, path, SCALED));
}

#[test]
fn the_job_files_that_fio_itself_ran_run() {
    let dirs = Directories::in_memory();
    for path in job_files("fio").iter().filter(|path| path.extension().is_some_and(|e| e == "fio"))
    {
        runs_scaled(&dirs, path, SCALED_SHORT);
    }
    // On disk, past the page cache where it can be.
    let dirs = Directories::on_disk();
    runs_scaled(&dirs, &job_files("wekatester/default")[0], SCALED);
}

const TWO_GROUPS: &str = "\
[global]
directory=DIR
size=256k
ioengine=psync

[first]
rw=write
bs=16k
fsync=4
verify=crc32c

[second]
wait_for=first
new_group
rw=randrw
rwmixread=50
bs=4k
numjobs=2
group_reporting
rate_iops=2000,2000
number_ios=30
write_bw_log=second
write_iops_log=second
write_lat_log=second
";

/// Returns the entries of fio's JSON by job name.
fn jobs<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    let jobs = report["jobs"].as_array().unwrap().iter();
    jobs.filter(|job| job["jobname"] == name).collect()
}

#[test]
fn as_fio_prints_fios_json_and_writes_its_logs() {
    let dirs = Directories::in_memory();
    let path = dirs.write("two.fio", TWO_GROUPS);
    let report = dirs.json(&format!("as fio --output-format=json {}", path.display()), 0);
    assert!(report["fio version"].as_str().unwrap().starts_with("plimsoll-"));
    assert_eq!(report["global options"]["size"], "256k");
    // The first job writes 16 blocks, and what it wrote is read back, which is in its row.
    let first = jobs(&report, "first");
    assert_eq!(first.len(), 1);
    let write = &first[0]["write"];
    assert_eq!((&write["total_ios"], &write["io_bytes"]), (&16.into(), &262_144.into()));
    assert_eq!(first[0]["sync"]["total_ios"], 4);
    assert_eq!((&first[0]["groupid"], &first[0]["error"]), (&0.into(), &0.into()));
    assert_eq!(first[0]["read"]["io_bytes"], 262_144);
    // Two clones of 30 blocks in one row.
    let [second] = jobs(&report, "second")[..] else { panic!("one row for the group") };
    assert_eq!(second["groupid"], 1);
    let (read, write) = (&second["read"], &second["write"]);
    let total = |side: &Value| side["total_ios"].as_u64().unwrap();
    assert_eq!(total(read) + total(write), 60);
    for side in [read, write] {
        assert_eq!(side["io_bytes"], total(side) * 4_096);
        assert_eq!(side["io_kbytes"], total(side) * 4);
        let clat = &side["clat_ns"];
        let of = |name: &str| clat[name].as_f64().unwrap();
        assert!(of("min") <= of("mean") && of("mean") <= of("max"), "{clat}");
        assert_eq!(clat["N"], total(side));
        let (runtime, bw) = (side["runtime"].as_f64().unwrap(), side["bw_bytes"].as_f64().unwrap());
        let expected = (total(side) * 4_096) as f64 / runtime * 1_000.0;
        assert!((bw / expected - 1.0).abs() < 0.01, "{bw} {expected}");
    }
    // One at a time, and each handed over by a call of its own.
    for job in [first[0], second] {
        assert_eq!(job["iodepth_level"]["1"], 100.0, "{job}");
        assert_eq!(job["iodepth_submit"]["4"], 100.0, "{job}");
    }
    // Each clone has logs of its own, a line for each operation.
    for kind in ["bw", "iops", "lat", "clat"] {
        let lines: usize = (1..=2)
            .map(|clone| dirs.runs().join(format!("second_{kind}.{clone}.log")))
            .map(|path| std::fs::read_to_string(path).unwrap())
            .inspect(|log| {
                for line in log.lines() {
                    let words: Vec<&str> = line.split(", ").collect();
                    assert!(words.len() >= 4, "{line}");
                    assert!(words[..4].iter().all(|word| word.parse::<u64>().is_ok()), "{line}");
                }
            })
            .map(|log| log.lines().count())
            .sum();
        assert_eq!(lines, 60, "{kind}");
    }
}

#[test]
fn as_fio_tells_how_full_queues_were_and_leaves_out_what_it_does_not_know() {
    // Reads of memory end while the queue is still being filled.
    let dirs = Directories::on_disk();
    let job = "--name=deep --rw=randread --bs=4k --size=1m --ioengine=io_uring --direct=1";
    for (depth, cell) in [(1, "1"), (16, "16"), (64, ">=64")] {
        let line = format!("as fio {job} --iodepth={depth} --directory=DIR --output-format=json");
        let report = dirs.json(&line, 0);
        let [row] = jobs(&report, "deep")[..] else { panic!("{report}") };
        let levels: Vec<f64> = row["iodepth_level"]
            .as_object()
            .unwrap()
            .values()
            .map(|s| s.as_f64().unwrap())
            .collect();
        assert_eq!(levels.len(), 7);
        assert!((levels.iter().sum::<f64>() - 100.0).abs() < 0.01, "{levels:?}");
        // Only while it fills is a queue less full than it may be, or where reads end at once.
        assert!(row["iodepth_level"][cell].as_f64().unwrap() > 0.0, "{depth}: {levels:?}");
        assert!(row.get("iodepth_submit").is_none() && row.get("iodepth_complete").is_none());
        let text = dirs.printed(&line.replace("json", "normal"), 0);
        assert!(text.contains("  IO depths    : 1=") && !text.contains("submit    :"), "{text}");
    }
}

#[test]
fn a_log_that_a_job_file_names_is_written_through_no_link() {
    let dirs = Directories::in_memory();
    let path = dirs.write("two.fio", TWO_GROUPS);
    let (victim, log) = (dirs.runs().join("victim"), dirs.runs().join("second_bw.2.log"));
    std::fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, log).unwrap();
    let output = dirs.command(&format!("as fio {}", path.display())).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("cannot write second_bw.2.log"), "{said}");
    assert_ne!(output.status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "precious");
}

#[test]
fn an_output_is_written_through_no_link_of_another_user() {
    // Only root can make what belongs to another user.
    let is_root = rustix::process::geteuid().is_root();
    let dirs = Directories::in_memory();
    dirs.write("two.fio", TWO_GROUPS);
    std::fs::create_dir(dirs.runs().join("s")).unwrap();
    let (place, runs) = (dirs.runs().join("place"), dirs.runs());
    let victim = place.join("victim");
    std::fs::create_dir(&place).unwrap();
    std::fs::write(&victim, "precious".repeat(1000)).unwrap();
    if is_root {
        // A link to the file, one to its directory, and the user's own to the first.
        for (name, to) in [("theirs", &victim), ("away", &place), ("own", &runs.join("theirs"))] {
            std::os::unix::fs::symlink(to, runs.join(name)).unwrap();
            let owner = if name == "own" { None } else { Some(65_534) };
            std::os::unix::fs::lchown(runs.join(name), owner, None).unwrap();
        }
    }
    for line in [
        "as fio --output=PATH two.fio",
        "as mdtest --json-file PATH -- -n 2 -d s",
        "file iops --dir s --on PATH --op write --i-know-this-destroys-data",
    ]
    .into_iter()
    .filter(|_| is_root)
    {
        for (path, link) in [("theirs", "theirs"), ("away/victim", "away"), ("own", "theirs")] {
            let output = dirs.command(&line.replace("PATH", path)).output().unwrap();
            let said = stderr(&output);
            let why = format!("the symbolic link `{link}` belongs to another user");
            assert!(said.contains(&why), "{line} {path}: {said}");
            assert_ne!(output.status.code(), Some(0));
            assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious".repeat(1000));
        }
    }
}

#[test]
fn as_fio_writes_its_output_where_it_is_told() {
    let dirs = Directories::in_memory();
    let path = dirs.write("two.fio", TWO_GROUPS);
    let (path, runs) = (path.display(), dirs.runs());
    let line = format!("as fio --output=out.txt --output-format=json,normal {path}");
    assert_eq!(dirs.printed(&line, 0), "");
    let text = std::fs::read_to_string(runs.join("out.txt")).unwrap();
    for part in ["\"fio version\"", "first: (groupid=0, jobs=1): err= 0", "Run status group 1"] {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
    assert!(text.contains("second: (groupid=1, jobs=2): err= 0"), "{text}");
}

#[test]
fn fios_command_line_and_its_units_are_taken() {
    let dirs = Directories::in_memory();
    let line = "--name=x --rw=randread --bs=4k --directory=DIR --output-format=json --size=64KiB";
    let mut refused = dirs.command(&format!("as fio {line}"));
    let output = refused.output().unwrap();
    let said = stderr(&output);
    assert!(output.status.code() == Some(2) && said.contains("64,000"), "{said}");
    // To fio that is 64,000 bytes, which hold 15 blocks.
    let report = dirs.json(&format!("as fio --fio-units {line}"), 0);
    assert_eq!(jobs(&report, "x")[0]["read"]["total_ios"], 15);
    let report = dirs.json(&format!("as fio {}", line.replace("64KiB", "64k")), 0);
    assert_eq!(jobs(&report, "x")[0]["read"]["total_ios"], 16);
    // The instrument alone: no file is touched.
    let line = "as fio --name=x --rw=write --size=1m --ioengine=null --output-format=json";
    let report = dirs.json(line, 0);
    assert_eq!(jobs(&report, "x")[0]["write"]["io_bytes"], 1 << 20);
}

#[test]
fn a_job_file_explained_is_the_run_that_it_makes() {
    let dirs = Directories::in_memory();
    let path = dirs.write("two.fio", &TWO_GROUPS.replace("numjobs=2\n", ""));
    dirs.printed(&format!("run {} --seed 5 --json", path.display()), 0);
    let expected = hashes(&dirs.take_manifest());
    let yaml = dirs.printed(&format!("run {} --seed 5 --explain", path.display()), 0);
    let path = dirs.write("explained.yaml", &yaml);
    dirs.printed(&format!("run {} --json", path.display()), 0);
    assert_eq!(hashes(&dirs.take_manifest()), expected);
}

#[test]
fn explain_may_stand_among_the_words_of_another_tool() {
    let dirs = Directories::in_memory();
    dirs.write("job.fio", "[a]\nrw=write\nsize=64k\ndirectory=DIR\n");
    for line in [
        "as mdtest -F -n 5 -d DIR --explain",
        "as fio job.fio --explain",
        // No fleet is up, and nothing has to be looked up.
        "as fio --client=one --client=two job.fio --explain",
    ] {
        let text = dirs.printed(line, 0);
        assert!(text.contains("schema: plimsoll.workload/2\n"), "{line}: {text}");
        assert_eq!(below(dirs.runs()).len(), 1, "{line}: only the job file is there");
    }
}

/// Returns the rows of mdtest's table: label and mean.
fn table(text: &str) -> Vec<(String, f64)> {
    let rows = text.split("---------").nth(1).unwrap().lines().skip(1);
    rows.take_while(|line| !line.starts_with("--"))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (label, figures) = words.split_at(words.len() - 4);
            (label.join(" "), figures[2].parse().unwrap())
        })
        .collect()
}

#[test]
fn as_mdtest_prints_its_table_for_files_directories_and_trees() {
    let files = ["File creation", "File stat", "File read", "File removal"];
    let tree = ["Tree creation", "Tree removal"];
    let directories =
        ["Directory creation", "Directory stat", "Directory rename", "Directory removal"];
    let dirs = Directories::in_memory();
    for (line, rows, entries) in [
        ("-F -u -n 50 -i 2", [&files[..], &tree].concat(), "2 tasks, 100 files"),
        ("-F -n 20 -z 1 -b 2 -w 100 -e 100", [&files[..], &tree].concat(), "2 tasks, 36 files"),
        ("-F -n 30 -N 1 -w 64 -e 64 -u", [&files[..], &tree].concat(), "2 tasks, 60 files"),
        ("-D -n 20", [&directories[..], &tree].concat(), "2 tasks, 40 directories"),
        ("-n 14 -z 2 -b 2 -u", [&directories[..], &files, &tree].concat(), "2 tasks, 28"),
        ("-F -C -T -n 20", [&files[..2], &tree[..1]].concat(), "2 tasks, 40 files"),
        ("-F -C -r -n 20", vec!["File creation", "File removal", tree[0], tree[1]], "40 files"),
    ] {
        let line = format!("as mdtest -np 2 {line} -d DIR");
        let text = dirs.printed(&line, 0);
        assert!(text.contains(entries), "{line}: {text}");
        let found = table(&text);
        let labels: Vec<&str> = found.iter().map(|(label, _)| &**label).collect();
        assert_eq!(labels, rows, "{line}");
        assert!(found.iter().all(|(_, mean)| *mean > 0.0), "{line}: {text}");
    }
}

#[test]
fn mdtests_run_is_one_json_object_beside_its_table() {
    let dirs = Directories::in_memory();
    // Ours come before mdtest's.
    let line = "as mdtest --json-file out.json -np 2 -F -u -n 25 -i 3 -w 10 -e 10 -d DIR";
    let text = dirs.printed(line, 0);
    assert_eq!(table(&text).len(), 6);
    let json = std::fs::read_to_string(dirs.runs().join("out.json")).unwrap();
    let document: Value = serde_json::from_str(&json).unwrap();
    let stages = dirs.take_manifest()["stages"].as_array().unwrap().clone();
    assert_eq!(stages.len(), 18);
    for stage in stages {
        let tree = stage["name"].as_str().unwrap().starts_with("tree");
        let expected = if tree { 2 } else { 50 };
        assert_eq!(stage["ops_count"], expected, "{stage}");
    }
    assert!(document.is_object() && json.contains("\"File creation\""), "{json}");
}

#[test]
fn a_failed_name_is_counted_and_the_exit_code_says_so() {
    let dirs = Directories::in_memory();
    // Somebody else removes the entries while they are looked at.
    let text = "schema: plimsoll.workload/2
name: names
targets: {files: {directory: DIR}}
sets: {t: {tree: {name: t, entries: 10}}}
stages:
- {prepares: true, jobs: [{work: {names: {make_tree: t}}}]}
- {prepares: true, jobs: [{work: {names: {create: t}}}]}
- {name: look-at-all, jobs: [{pacing: {capped: 4/s}, work: {names: {stat: t}}}]}
";
    let path = dirs.write("stat.yaml", text);
    let run = |more: &str| {
        let mut run =
            Background::start(dirs.command(&format!("run {} --json{more}", path.display())));
        run.await_line("look-at-all");
        let entries = below(dirs.files()).into_keys();
        for entry in entries.filter(|path| path.to_string_lossy().contains("file.mdtest.0.")) {
            std::fs::remove_file(entry).unwrap();
        }
        let (code, stdout, stderr) = run.end();
        dirs.assert_clean(more);
        let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
        (code, report)
    };
    let (code, report) = run("");
    assert_eq!(code, Some(1));
    let stat = &report["stages"][2];
    let count = |value: &Value| value.as_u64().unwrap();
    let total = &stat["rows"][0]["total"]["stage_total"];
    let failed = count(&stat["rows"][0]["kinds"][0]["stage_total"]["failed_by_class"]["not-found"]);
    assert!(failed > 0, "{stat:#}");
    assert_eq!(count(&total["ops_ok_count"]) + failed, 10, "{stat:#}");
    let message = stat["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("No such file"), "{message}");
    // Those who expect it say so.
    assert_eq!(run(" --max-error-rate 100%").0, Some(0));
    let runs = std::fs::read_dir(dirs.runs()).unwrap().count();
    assert_eq!(runs, 3, "both are kept, beside the workload");
}
