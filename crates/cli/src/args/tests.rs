//! The flags there are, and every word of the repository that looks like one.
#![allow(clippy::disallowed_methods, reason = "a test reads files of the repository")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

/// Words that are flags of others, where a path begins with one of these.
const OTHERS: [(&[&str], &[&str]); 22] = [
    (&["docs/reference/compatibility.md"], &["client", "output-format", "server"]),
    (&["crates/credentials/src/error.rs"], &["profile"]),
    (&["docs/howto/compare-in-ci.md"], &["adapter", "file"]),
    (&["docs/install.md"], &["input", "network", "rm", "twice"]),
    (&["docs/store.md"], &["endpoint-url"]),
    (
        &["docs/telemetry.md"],
        &["config.file", "storage.tsdb.path", "storage.tsdb.retention.time", "web.listen-address"],
    ),
    (&["docs/replay.md", "crates/foreign/src/trace"], &["verbose"]),
    (
        &["docs/coming-from-fio.md", "crates/dialects/src/fio", "README.md"],
        &[
            "alloc-size",
            "append-terse",
            "aux-path",
            "bandwidth-log",
            "client",
            "cmdhelp",
            "cpuclock-test",
            "crctest",
            "daemonize",
            "debug",
            "enghelp",
            "eta",
            "eta-interval",
            "eta-newline",
            "idle-prof",
            "inflate-log",
            "max-jobs",
            "minimal",
            "name",
            "output-format",
            "parse-only",
            "readonly",
            "remote-config",
            "rw",
            "server",
            "showcmd",
            "status-interval",
            "terse-version",
            "trigger",
            "trigger-file",
            "trigger-timeout",
            "warnings-fatal",
        ],
    ),
    (
        &["docs/coming-from-mdtest.md", "crates/dialects/src/mdtest"],
        &[
            "allow-run-as-root",
            "bind-to",
            "data",
            "dummy.delay-close",
            "dummy.delay-create",
            "dummy.delay-only-rank0",
            "dummy.delay-sync",
            "dummy.delay-xfer",
            "map-by",
            "mmap.madv",
            "mpiio.hints",
            "mpiio.preallocate",
            "mpiio.show",
            "mpiio.use",
            "name",
            "np",
            "oversubscribe",
            "posix.odirect",
            "posix.rangelocks",
            "print-all-procs",
            "random-seed",
            "rank-by",
            "run-cmd-after-phase",
            "run-cmd-before-phase",
            "save",
            "use-hwthread-cpus",
            "verify-read",
            "verify-write",
            "warning",
        ],
    ),
    (
        &["docs/coming-from-warp.md", "crates/dialects/src/warp", "crates/cli/src"],
        &[
            "autocompletion",
            "cpu",
            "debug",
            "flag",
            "ktls",
            "mem",
            "metadata",
            "mutex",
            "obj.name",
            "pprofdir",
            "rcvbuf",
            "rdma",
            "rdma.window",
            "report-json",
            "serve",
            "sndbuf",
            "stdout",
            "stress",
            "switch",
            "trace",
            "var",
            "warp-client",
            "web",
        ],
    ),
    // Flags of kubectl, helm, nsc, openssl and Slurm.
    (
        &["docs/deploy.md"],
        &[
            "account",
            "cert",
            "config-file",
            "current",
            "follow",
            "from-env-file",
            "from-file",
            "js-consumer",
            "js-disk-storage",
            "js-mem-storage",
            "js-streams",
            "key",
            "mem-resolver",
            "namespace",
            "nodes",
            "now",
            "output-file",
            "sys",
            "sys-account",
            "values",
        ],
    ),
    // fio's and warp's.
    (
        &["docs/fleet.md", "docs/examples/fleet-as-warp.txt", "crates/cli/src"],
        &["client", "warp-client"],
    ),
    (&["crates/cli/src/help/examples.rs"], &["name", "rw"]),
    // Flags of our own tools.
    (&["README.md"], &["release", "no-live", "wheel"]),
    (&["docs/contributing.md"], &["all", "full", "no-live", "release", "test"]),
    // MinIO's and cargo's.
    (&["docs/tutorial"], &["address", "release"]),
    (&["docs/install.md"], &["features", "no-default-features", "release", "wheel"]),
    (&["crates/cli/src/left_out.rs"], &["features"]),
    (&["docs/self-benchmarks.md"], &["only", "program", "quick", "rounds", "seconds"]),
    // Names of colours.
    (&["crates/report/src/html"], &["dim", "frame", "grid", "s0", "s1"]),
    // The name of a thing, not of one.
    (&["crates/cli/src/args"], &["flag"]),
    (&["crates/credentials"], &["secret"]),
];

pub(super) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Adds all long flags of a command and those below it, hidden ones and aliases too.
fn collect(command: &clap::Command, found: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        found.extend(argument.get_long().map(str::to_owned));
        found.extend(argument.get_all_aliases().into_iter().flatten().map(str::to_owned));
    }
    command.get_subcommands().for_each(|below| collect(below, found));
}

/// Returns the files below a directory, without those that only test.
pub(super) fn files(directory: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" && name != "snapshots" {
            files(&path, ending, found);
        } else if name.ends_with(ending) && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// Returns the words behind `--` of a text, with their lines.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (at, _) in line.match_indices("--") {
            let before = line[..at].chars().next_back();
            let rest = &line[at + 2..];
            let is_part =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let word = rest[..end].trim_end_matches(['-', '.']);
            let begins = before.is_none_or(|c| !c.is_alphanumeric() && c != '-');
            // One letter stands for any name.
            let names = word.len() > 1 && word.starts_with(|c: char| c.is_ascii_lowercase());
            if begins && names {
                found.push((index + 1, word));
            }
        }
    }
    found
}

#[test]
fn every_command_is_sound() {
    super::Cli::command().debug_assert();
}

#[test]
fn every_flag_that_a_text_names_is_there() {
    let mut flags = BTreeSet::new();
    let mut command = super::Cli::command();
    command.build();
    collect(&command, &mut flags);
    assert!(flags.contains("i-know-this-destroys-data") && flags.contains("help"));
    let root = repository();
    let mut all = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    files(&root.join("docs"), ".md", &mut all);
    files(&root.join("docs/examples"), ".txt", &mut all);
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let source = entry.unwrap().path();
        // What tests drive a browser with is not ours.
        if !source.ends_with("testkit") {
            files(&source.join("src"), ".rs", &mut all);
        }
    }
    let mut unknown = BTreeMap::new();
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        for (line, word) in words(&text) {
            let is_other = OTHERS.iter().any(|(paths, words)| {
                paths.iter().any(|path| name.starts_with(path)) && words.contains(&word)
            });
            if !flags.contains(word) && !is_other {
                unknown.insert(format!("{name}:{line}"), word.to_owned());
            }
        }
    }
    assert_eq!(unknown, BTreeMap::new(), "no command has these flags");
}

#[test]
fn words_that_look_like_flags_are_found() {
    let text = "--aa, `--b.c`=5 --d-e. x--ff ---gg -- --\n(--h2|--H) --ii --j";
    assert_eq!(words(text), [(1, "aa"), (1, "b.c"), (1, "d-e"), (2, "h2"), (2, "ii")]);
}

#[test]
fn the_rooms_that_own_something_are_there() {
    let root = repository();
    let text = fs::read_to_string(root.join("clippy.toml")).unwrap();
    let reasons = text.lines().filter_map(|line| line.split_once("reason = \"")?.1.split_once('"'));
    let mut count = 0;
    for (reason, _) in reasons {
        for word in reason.split(|c: char| !c.is_ascii_alphanumeric() && !"_:".contains(c)) {
            let Some((room, module)) = word.split_once("::") else { continue };
            if room == "tokio" {
                continue;
            }
            let file = root.join(format!("crates/{room}/src/{module}.rs"));
            assert!(file.is_file(), "{reason}: there is no {}", file.display());
            count += 1;
        }
    }
    assert!(count > 4, "{count}");
}
