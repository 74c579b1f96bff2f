//! Runs the commands of the documents: blocks that say `sh run` without a server, and those that
//! say `sh live` against MinIO, SeaweedFS, a fleet and a console. All are parsed by the program's
//! own parser too (`args::document_tests`), and why a few do not run is said here.

mod cut;
mod scene;
mod stand_ins;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use plimsoll_testkit::documents::{Block, fenced, workflow_runs};
use plimsoll_testkit::{LiveKind, live};

use self::scene::{Scene, Servers};
use crate::harness::{self, Target, oracle};

/// Pages whose commands run at the same time.
const AT_ONCE: usize = 3;

/// Commands that do not run here, by how they begin, and why.
const NOT_RUN: &[(&str, &str)] =
    &[("plimsoll prove", "takes minutes in a debug build; `proof.rs` runs each proof")];

/// The page with a workflow for continuous integration, which is run as well.
const WORKFLOW: &str = "docs/howto/compare-in-ci.md";

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the word behind `sh`: what the commands of a block run against.
fn against_of(block: &Block) -> Option<&str> {
    block.info.strip_prefix("sh ")
}

/// Returns the pages, each by its path from the root, with its blocks.
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
        (name, fenced(&fs::read_to_string(path).unwrap()))
    };
    found.iter().map(page).collect()
}

/// Runs the commands of a page that run against one of `against`, in one directory, in their
/// order, and returns how many there are and what was wrong.
fn run_page(
    page: &str,
    blocks: &[Block],
    against: &str,
    servers: &Servers<'_>,
) -> (usize, Vec<String>) {
    let of_it = |block: &&Block| against_of(block) == Some(against);
    let marked: Vec<&Block> = blocks.iter().filter(of_it).collect();
    if marked.is_empty() {
        return (0, Vec::new());
    }
    let mut scene = Scene::new(page, blocks, servers);
    let count = marked.iter().map(|block| scene.run(block)).sum();
    (count, scene.end(&marked))
}

/// Runs the pages that fit, some at once, and returns how many commands there were.
#[track_caller]
fn run_pages(against: &str, servers: &Servers<'_>) -> usize {
    let (pages, all) = (Mutex::new(pages()), Mutex::new((0, Vec::new())));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = pages.lock().unwrap().pop();
                    let Some((page, blocks)) = next else { return };
                    let (count, wrong) = run_page(&page, &blocks, against, servers);
                    let mut all = all.lock().unwrap();
                    all.0 += count;
                    all.1.extend(wrong);
                }
            });
        }
    });
    let (count, wrong) = all.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    count
}

#[test]
fn what_does_not_run_has_a_reason() {
    let reason = |line: &str| NOT_RUN.iter().position(|(begin, _)| line.starts_with(begin));
    let (mut untold, mut used, mut run) = (Vec::new(), Vec::new(), 0);
    for (page, blocks) in pages() {
        for block in &blocks {
            match against_of(block) {
                Some("run" | "live") => run += block.lines.len(),
                Some(other) => panic!("{page}: a block says `sh {other}`"),
                // Its scripts run by themselves.
                None if page == WORKFLOW && block.info == "yaml" => run += block.lines.len(),
                None => {
                    for line in &block.lines {
                        match reason(line) {
                            Some(at) => used.push(at),
                            None => untold.push(format!("{page}: {line}")),
                        }
                    }
                }
            }
        }
    }
    assert!(untold.is_empty(), "say why these do not run:\n{}", untold.join("\n"));
    let stale = (0..NOT_RUN.len()).filter(|at| !used.contains(at)).map(|at| NOT_RUN[at].0);
    assert_eq!(stale.collect::<Vec<_>>(), [""; 0], "all of these run");
    assert!(run >= 95 && used.len() <= 1, "{run} commands run, {} do not", used.len());
}

#[test]
fn blocks_are_read() {
    let text = "```sh run\nplimsoll s3 get \\\n  --slo 'a b'\n# no\nls\n```\n```\n\
                $ plimsoll x\n```\n```yaml file=w.yaml\na: 1\n```";
    let found = fenced(text);
    assert_eq!(against_of(&found[0]), Some("run"));
    assert_eq!(found[0].shell_lines(), ["plimsoll s3 get    --slo 'a b'", "ls"]);
    assert_eq!(found[0].lines.len(), 1);
    assert_eq!((against_of(&found[1]), &*found[1].lines[0]), (None, "plimsoll x"));
    assert_eq!((found[2].file(), &*found[2].body), (Some("w.yaml"), "a: 1\n"));
    let workflow =
        "steps:\n  - run: ls   # x\n  - name: a\n    run: |\n      b \\\n        c\n\n  - z\n";
    assert_eq!(workflow_runs(workflow), ["ls\n", "b \\\nc\n\n"]);
}

mod nightly {
    use super::*;

    /// Returns the store with the buckets that readers have before they follow a page.
    fn with_buckets(mut store: Target) -> Target {
        for name in ["plimsoll", "bench", "bucket"] {
            name.clone_into(&mut store.bucket);
            store.put([]);
        }
        store
    }

    #[test]
    fn commands_that_need_no_server_run() {
        let store = with_buckets(oracle());
        let count = run_pages("run", &Servers { store: &store, master: "" });
        assert!(count >= 25, "{count}");
    }

    #[test]
    fn commands_for_live_servers_run() {
        let Some(server) = live(LiveKind::Minio) else { return };
        let Some(weed) = live(LiveKind::SeaweedFs) else { return };
        let store = with_buckets(harness::live(&server, "unused"));
        let count = run_pages("live", &Servers { store: &store, master: weed.host() });
        assert!(count >= 60, "{count}");
    }

    #[test]
    fn the_workflow_for_continuous_integration_runs() {
        let Some(server) = live(LiveKind::Minio) else { return };
        let store = with_buckets(harness::live(&server, "unused"));
        let text = fs::read_to_string(repository().join(WORKFLOW)).unwrap();
        let blocks = fenced(&text);
        let is_workflow = |block: &&Block| block.info == "yaml" && block.body.contains("run: |");
        let workflow = blocks.iter().find(is_workflow).expect("the page shows a workflow");
        assert_eq!(workflow_runs(&workflow.body).len(), 3);
        let servers = Servers { store: &store, master: "" };
        let (wrong, summary) = Scene::new(WORKFLOW, &[], &servers).run_workflow(&workflow.body);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(summary.contains("p99"), "{summary}");
    }
}
