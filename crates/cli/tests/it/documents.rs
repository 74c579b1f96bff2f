//! Runs the commands of the documents: blocks that say `sh run` without a server, and those that
//! say `sh minio` against MinIO. All others are parsed by the program's own parser
//! (`args::document_tests`), and why they do not run is said here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use plimsoll_testkit::documents::{Block, blocks};
use plimsoll_testkit::{LiveKind, live};

use crate::harness::{self, oracle, plimsoll, stderr};

/// What every command is cut to: what is tested is that it works, not what it measures.
const SHORT: [(&str, &str); 2] = [("--duration", "1s"), ("--budget", "3s")];

/// Pages with commands that do not run here, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("README.md", "needs a store, a mount or a fleet; `prove` and `loadline` have tests"),
    ("docs/coming-from-cosbench.md", "needs the reader's XML; `cosbench.rs` runs such commands"),
    ("docs/coming-from-fio.md", "needs the reader's job files; `files.rs` runs such commands"),
    ("docs/coming-from-warp.md", "needs a store and warp's files; `as_warp.rs` runs such"),
    ("docs/console.md", "serves until it is stopped; `console.rs` runs it"),
    ("docs/fleet.md", "needs many machines; `fleet.rs` runs such commands"),
    ("docs/howto/compare-in-ci.md", "needs two stores; the embedded one runs beside it"),
    ("docs/howto/failover.md", "stops servers; `outages.rs` does that"),
    ("docs/howto/nfs-and-disks.md", "needs a mount; `files.rs` runs such commands"),
    ("docs/howto/move-in.md", "needs files of warp's; `foreign.rs` runs such commands"),
    ("docs/howto/rate-under-an-slo.md", "needs a store; `load_line.rs` runs such commands"),
    ("docs/howto/size-a-cluster.md", "needs a cluster"),
    ("docs/loadline.md", "searches for minutes; `load_line.rs` runs such commands"),
    ("docs/outages.md", "stops servers; `outages.rs` does that"),
    ("docs/replay.md", "needs the reader's trace; `replay.rs` runs such commands"),
    ("docs/workload.md", "needs the reader's file; `workloads.rs` runs those of the manual"),
];

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the word behind `sh`: what the commands of a block run against.
fn against_of(block: &Block) -> Option<&str> {
    block.info.strip_prefix("sh ")
}

/// Returns the pages, each by its path from the root, with its blocks of commands.
fn pages() -> Vec<(String, Vec<Block>)> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(&path, found),
                false => found.push(path),
            }
        }
    }
    let mut found = vec![repository().join("README.md")];
    walk(&repository().join("docs"), &mut found);
    found.retain(|path| path.extension().is_some_and(|of| of == "md"));
    found.sort();
    let page = |path: &PathBuf| {
        let name = path.strip_prefix(repository()).unwrap().to_str().unwrap().to_owned();
        (name, blocks(&fs::read_to_string(path).unwrap()))
    };
    found.iter().map(page).collect()
}

/// Returns the words of a command line, cut to a second.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = shlex::split(line).unwrap();
    for at in 1..words.len() {
        if let Some((_, short)) = SHORT.iter().find(|(flag, _)| *flag == words[at - 1]) {
            (*short).clone_into(&mut words[at]);
        }
    }
    words.split_off(1)
}

#[track_caller]
fn assert_worked(page: &str, line: &str, output: &Output) {
    let said = stderr(output);
    // What a busy machine makes of a run, which the run then says.
    let is_busy = ["SCHEDULE NOT KEPT", "no load line"].iter().any(|words| said.contains(words));
    let is_late = output.status.code() == Some(1) && is_busy;
    assert!(output.status.success() || is_late, "{page}: {line}: {said}");
    let is_silent = output.stdout.is_empty() && !line.contains(" -o ");
    assert!(!is_silent, "{page}: {line} prints nothing");
}

/// Runs the blocks of a page against what `against` names, in one directory, in their order.
fn run(page: &str, blocks: &[Block], against: &str, target: &harness::Target) -> usize {
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(repository().join("docs"), place.path().join("docs")).unwrap();
    let mut count = 0;
    for block in blocks.iter().filter(|block| against_of(block) == Some(against)) {
        for line in &block.lines {
            let mut command = plimsoll(place.path());
            command.args(words(line));
            if against == "minio" {
                command.env("PLIMSOLL_HOST", &target.host);
                target.credentials(&mut command);
            }
            assert_worked(page, line, &command.output().unwrap());
            count += 1;
        }
    }
    count
}

#[test]
fn commands_that_need_no_server_run() {
    let target = oracle();
    let count: usize = pages().iter().map(|(page, of)| run(page, of, "run", &target)).sum();
    assert!(count >= 5, "{count}");
}

#[test]
fn commands_for_minio_run() {
    let Some(server) = live(LiveKind::Minio) else { return };
    let target = harness::live(&server, "unused");
    let count: usize = pages().iter().map(|(page, of)| run(page, of, "minio", &target)).sum();
    assert!(count >= 5, "{count}");
}

#[test]
fn what_does_not_run_has_a_reason() {
    let mut untried = BTreeSet::new();
    for (page, blocks) in pages() {
        for block in blocks {
            match against_of(&block) {
                Some("run" | "minio") => {}
                Some(other) => panic!("{page}: a block says `sh {other}`"),
                None => drop(untried.insert(page.clone())),
            }
        }
    }
    let listed: BTreeSet<String> = NOT_RUN.iter().map(|(page, _)| (*page).to_owned()).collect();
    let unlisted: Vec<_> = untried.difference(&listed).collect();
    let stale: Vec<_> = listed.difference(&untried).collect();
    assert!(unlisted.is_empty(), "say why the commands of {unlisted:?} do not run");
    assert!(stale.is_empty(), "no commands of {stale:?} are left out");
}

#[test]
fn blocks_are_read_and_cut() {
    let text = "```sh run\nplimsoll s3 get --duration 1m --slo 'a b'\n```\n```\n$ plimsoll x\n```";
    let found = blocks(text);
    assert_eq!(against_of(&found[0]), Some("run"));
    assert_eq!(words(&found[0].lines[0]), ["s3", "get", "--duration", "1s", "--slo", "a b"]);
    assert_eq!((against_of(&found[1]), &*found[1].lines[0]), (None, "plimsoll x"));
}
