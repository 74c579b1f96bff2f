//! `plimsoll as weed-benchmark`: what it explains and what it refuses, and against a live cluster
//! its lines, its list and what stays.

use std::collections::HashSet;

use plimsoll_dialects::weed_benchmark::{CORRECTIONS, list};
use plimsoll_testkit::golden::assert_like;
use plimsoll_testkit::{LiveKind, LiveServer, live};
use plimsoll_workload::plan::WorkloadFile;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{plimsoll, printed, refused, run, run_directory, stderr};

#[test]
fn explain_lists_each_correction_and_does_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let text = printed(
        directory.path(),
        "as weed --explain --seed 5 -v=1 benchmark -n 1000 -c=4 -deletePercent 30 -debug",
    );
    let notes = ["# -v: ", "# -debug: ", "# -deletePercent: "];
    for (line, start) in text.lines().zip(notes) {
        assert!(line.starts_with(start), "{line}");
    }
    for (line, correction) in text.lines().skip(notes.len()).zip(CORRECTIONS) {
        assert_eq!(line, format!("# {correction}"));
    }
    let lines = text.lines().filter(|line| line.starts_with('#')).count();
    // And what sizes mean.
    assert_eq!(lines, CORRECTIONS.len() + notes.len() + 1);
    assert!(text.contains("\n# -size counts bytes, as in weed benchmark: "), "{text}");
    // All of it is a workload file.
    let plan = WorkloadFile::from_yaml("explained", &text).unwrap().check().unwrap();
    let names: Vec<&str> = plan.stages.iter().map(|stage| &*stage.name).collect();
    assert_eq!(names, ["write", "delete", "read"]);
    assert_eq!(plan.seed.map(|seed| seed.0), Some(5));
    // The flag may stand among the other tool's words.
    let behind = printed(directory.path(), "as weed-benchmark -n 5 --explain");
    assert!(behind.contains("ops: 5"), "{behind}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn lists_are_looked_at_before_anything_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("l.txt");
    let line = "as weed-benchmark -q --explain -readOnly -readSequentially -list l.txt";
    assert!(refused(directory.path(), line).contains("-list: cannot read l.txt"));
    std::fs::write(&list, "# nothing\n\n").unwrap();
    assert!(refused(directory.path(), line).contains("-list: l.txt names no files"));
    std::fs::write(&list, "3,01637037d6\nnotafid\n").unwrap();
    assert!(refused(directory.path(), line).contains("line 2: `notafid` is not a file id"));
    std::fs::write(&list, "# mine\n3,01637037d6\n4,02637037d6").unwrap();
    let text = printed(directory.path(), &line.replace("-q ", ""));
    assert!(text.contains("list: l.txt") && text.contains("ops: 2"), "{text}");
}

#[test]
fn options_are_read_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("o.txt"), "n=7\nmaster=m:1\n").unwrap();
    let text = printed(directory.path(), "as weed-benchmark --explain -options o.txt -c 2");
    assert!(text.contains("ops: 7") && text.contains("workers: 2"), "{text}");
    assert!(text.contains("master: 'm:1'"), "{text}");
    let said = refused(directory.path(), "as weed-benchmark -options nowhere.txt");
    assert!(said.contains("`-options=nowhere.txt`: "), "{said}");
}

#[test]
fn what_cannot_be_is_refused_in_its_own_flags() {
    let directory = tempfile::tempdir().unwrap();
    for (words, part) in [
        ("-readOnly -writeOnly", "-readOnly and -writeOnly are mutually exclusive"),
        ("-n 0", "`-n=0`"),
        ("-c 2000000000", "-c: "),
        ("-foo", "`-foo` is no flag of weed benchmark"),
        ("--json -n 5", "--json"),
        ("upload", "`weed upload` is not taken"),
        ("-master 127.0.0.1:9", "127.0.0.1"),
        ("-list nowhere/l.txt", "-list: cannot write nowhere/l.txt"),
        ("-master 127.0.0.1:60000", "-master"),
    ] {
        let said = refused(directory.path(), &format!("as weed-benchmark -q {words}"));
        assert!(said.contains(part), "`{words}`: {said}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// What the program itself printed of a run.
const PRINTED: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/weed-benchmark/weed-64k.txt"
));

/// A live cluster, and a directory to run in.
struct Cluster {
    server: LiveServer,
    directory: TempDir,
}

impl Cluster {
    fn live() -> Option<Self> {
        let server = live(LiveKind::SeaweedFs)?;
        Some(Self { server, directory: tempfile::tempdir().unwrap() })
    }

    /// Runs the command with its list in that directory; `ours` stands before weed's own words.
    fn run(&self, ours: &str, words: &str) -> (Option<i32>, String) {
        let mut command = plimsoll(self.directory.path());
        command.args(["as", "weed-benchmark"]).args(ours.split_whitespace());
        command.arg(format!("-master={}", self.server.host()));
        command.args(["-list", "l.txt"]).args(words.split_whitespace());
        let output = run(command);
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.code() == Some(0) || text.is_empty(), "{}", stderr(&output));
        (output.status.code(), text)
    }

    fn list(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory.path().join("l.txt")).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(str::to_owned).collect()
    }
}

/// Returns the numbers behind a label, report by report.
fn figures(text: &str, label: &str) -> Vec<f64> {
    let of = |line: &str| line.strip_prefix(label)?.split_whitespace().next()?.parse().ok();
    text.lines().filter_map(of).collect()
}

#[test]
fn files_are_written_and_read_with_the_lines_of_the_program() {
    let Some(cluster) = Cluster::live() else { return };
    let (code, text) = cluster.run("-q --seed 7", "-n 500 -c 4 -collection cli-both");
    assert_eq!(code, Some(0));
    // What is ours alone stands below the last percentile.
    let end = text.rfind("  100%  ").unwrap();
    let end = end + text[end..].find('\n').unwrap();
    assert!(text.starts_with("This is SeaweedFS version "), "{text}");
    // As many seconds as each test took.
    let shown = |text: &str| {
        let lines = text.lines().filter(|line| !line.contains(" requests, "));
        lines.skip_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    assert_like(&shown(PRINTED), &shown(&text[..end]), &[]);
    assert_eq!(figures(&text, "Concurrency Level:"), [4.0, 4.0]);
    assert_eq!(figures(&text, "Completed requests:"), [500.0, 500.0]);
    assert_eq!(figures(&text, "Failed requests:"), [0.0, 0.0]);
    for bytes in figures(&text, "Total transferred:") {
        assert!((500.0 * 1_024.0..=500.0 * 1_087.0).contains(&bytes), "{text}");
    }
    assert_eq!(text.matches("\n  100%  ").count(), 2);
    // Each file once, and as many as were written.
    let ids = cluster.list();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 500);
    assert_eq!(list::read(&(ids.join("\n"))).unwrap().len(), 500);
}

#[test]
fn what_is_deleted_is_neither_listed_nor_among_the_requests() {
    let Some(cluster) = Cluster::live() else { return };
    let words = "-n 400 -c 4 -collection cli-delete -deletePercent 25 -readSequentially -size 10";
    let (code, text) = cluster.run("-q --labels old", words);
    assert_eq!(code, Some(0));
    assert!(text.contains("\n------------ Sequentially Reading Benchmark ----------\n"), "{text}");
    let kept = cluster.list().len();
    assert_eq!(figures(&text, "Complete requests:"), [400.0, kept as f64], "{text}");
    assert_eq!(figures(&text, "Failed requests:"), [0.0, 0.0]);
    // Each worker draws whole decks of four, but for its last.
    assert!((296..=304).contains(&kept), "{kept}");
    let row = |stage: &str| {
        let mut words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = words.rfind(|words| words.first() == Some(&stage)).unwrap();
        [row[1].to_owned(), row[2].to_owned()]
    };
    assert_eq!(row("delete"), [(400 - kept).to_string(), "0".to_owned()], "{text}");
    // Each of those that stayed was read once.
    let run = run_directory(cluster.directory.path());
    let line = format!("export {} --format csv --output ops.csv", run.display());
    printed(cluster.directory.path(), &line);
    let table = std::fs::read_to_string(cluster.directory.path().join("ops.csv")).unwrap();
    let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heading = rows.next().unwrap();
    let column = |name: &str| heading.iter().position(|each| *each == name).unwrap();
    let (kind, key) = (column("kind"), column("key"));
    let read: Vec<&str> = rows.filter(|row| row[kind] == "GET").map(|row| row[key]).collect();
    assert_eq!((read.len(), read.iter().collect::<HashSet<_>>().len()), (kept, kept));
}

#[test]
fn what_is_written_stays_unless_it_is_cleaned() {
    let Some(cluster) = Cluster::live() else { return };
    let words = "-n 50 -c 2 -collection cli-clean -writeOnly";
    let (_, text) = cluster.run("-q", words);
    assert!(!text.contains("Reading"), "{text}");
    let kept = cluster.list();
    assert_eq!(kept.len(), 50);
    // The list of before is left alone, as nothing of this run stays.
    cluster.run("-q --clean --run-dir cleaned", words);
    assert_eq!(cluster.list(), kept);
    let manifest = std::fs::read(cluster.directory.path().join("cleaned/run.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["cleanup"]["state"], "complete", "{}", manifest["cleanup"]);
}

#[test]
fn a_list_is_read_without_writing() {
    let Some(cluster) = Cluster::live() else { return };
    cluster.run("-q", "-n 50 -c 2 -collection cli-read -writeOnly");
    let kept = cluster.list();
    let (code, text) = cluster.run("-q", "-n 200 -c 2 -collection cli-read -readOnly");
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("Writing"), "{text}");
    assert_eq!(figures(&text, "Completed requests:"), [200.0]);
    let (_, text) = cluster.run("-q", "-c 2 -collection cli-read -readOnly -readSequentially");
    assert_eq!(figures(&text, "Completed requests:"), [50.0], "{text}");
    assert_eq!(cluster.list(), kept, "the list is left as it was");
}
