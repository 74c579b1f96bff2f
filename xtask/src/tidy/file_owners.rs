//! The only places that make, replace or remove files and directories, each with its reason.

use super::source::{before_tests, is_in_src, is_test};
use super::{Tree, mask};

/// What changes a file system.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Makes,
    Replaces,
    Removes,
}

/// The calls of each change. Reading opens nothing of these.
const CALLS: [(Change, &[&str]); 3] = [
    (
        Change::Makes,
        &[
            "File::create(",
            "File::create_new(",
            ".create(true)",
            ".create_new(true)",
            "create_dir(",
            "create_dir_all(",
            "DirBuilder::new(",
            "OFlags::CREATE",
            "mkdirat(",
            "linkat(",
            "symlink(",
            "hard_link(",
            "fs::write(",
            "fs::copy(",
            "tempfile::Builder::new(",
            "tempfile::tempdir(",
            "tempfile::tempfile(",
            "NamedTempFile::new(",
        ],
    ),
    (Change::Replaces, &["fs::rename(", "renameat(", "renameat_with(", ".persist("]),
    (
        Change::Removes,
        &["remove_file(", "remove_dir(", "remove_dir_all(", "unlinkat(", "fs::unlink(", "rmdir("],
    ),
];

/// A file that may make such calls: what it touches by them, and why that is Plimsoll's to touch.
struct Owner {
    path: &'static str,
    changes: &'static [Change],
    why: &'static str,
}

use Change::{Makes, Removes, Replaces};

const OWNERS: [Owner; 19] = [
    Owner {
        path: "crates/record/src/removal.rs",
        changes: &[Removes],
        why: "the one place that removes by path; each caller made what it names",
    },
    Owner {
        path: "crates/record/src/folder.rs",
        changes: &[Makes, Replaces, Removes],
        why: "files of a run, by the handle of its directory, by names that only a run uses",
    },
    Owner {
        path: "crates/record/src/directory.rs",
        changes: &[Makes],
        why: "the directory of a run, where nothing is in the way",
    },
    Owner {
        path: "crates/record/src/state_directory.rs",
        changes: &[Makes],
        why: "directories of a fleet, agent or console: new, empty or with our mark, mode 0700",
    },
    Owner {
        path: "crates/record/src/travel.rs",
        changes: &[Makes, Replaces],
        why: "a record that an agent hands in, below the coordinator's marked directory",
    },
    Owner {
        path: "crates/record/src/segments.rs",
        changes: &[Makes],
        why: "the CSV file that `--analyze.out` names; warp writes over it as well",
    },
    Owner {
        path: "crates/driver-file/src/open.rs",
        changes: &[Makes],
        why: "the benchmark's files, in its own directory or with `touch` and `--yes`",
    },
    Owner {
        path: "crates/driver-file/src/allowed_dirs.rs",
        changes: &[Makes],
        why: "looks at the flag to choose how a path is opened; makes nothing itself",
    },
    Owner {
        path: "crates/driver-file/src/names.rs",
        changes: &[Makes, Replaces, Removes],
        why: "the benchmark's operations on names, in its own directory, by handle",
    },
    Owner {
        path: "crates/driver-file/src/work_dir.rs",
        changes: &[Makes, Removes],
        why: "`plimsoll/<run id>/` below `--dir`, its marker and the signs of its parts",
    },
    Owner {
        path: "crates/driver-file/src/work_dir/sweep.rs",
        changes: &[Removes],
        why: "what lies below a run's directory that its marker says a run made",
    },
    Owner {
        path: "crates/conduct/src/output.rs",
        changes: &[Makes, Replaces],
        why: "files that the user names for output; what exists is replaced where that is asked \
              for, or where another tool does so (fio, mdtest, s3-benchmark)",
    },
    Owner {
        path: "crates/fleet/src/broker.rs",
        changes: &[Makes, Replaces],
        why: "files of nats-server in the fleet's marked directory",
    },
    Owner {
        path: "crates/fleet/src/agent_key.rs",
        changes: &[Makes],
        why: "the key of an agent and its lock, in the agent's marked directory",
    },
    Owner {
        path: "crates/console/src/disk.rs",
        changes: &[Makes, Replaces],
        why: "the console's marked directory, and its archive",
    },
    Owner {
        path: "crates/proof/src/rivals.rs",
        changes: &[Makes],
        why: "the output of another program, in a file without a name",
    },
    Owner {
        path: "crates/cli/src/commands/merge.rs",
        changes: &[Makes],
        why: "the merged file, never over another",
    },
    Owner {
        path: "crates/cli/src/commands/check.rs",
        changes: &[Makes],
        why: "the list of what a check wrote, never over another",
    },
    Owner {
        path: "crates/cli/src/commands/agent.rs",
        changes: &[Makes],
        why: "certificates that a coordinator sent, in files that end with their use",
    },
];

/// Holds every source to the table of owners, and the table to the sources.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    let mut seen = Vec::new();
    for file in tree.rust().filter(|file| is_in_src(&file.path) && !is_test(&file.path)) {
        // Tools of tests and chores of developers touch what those made.
        let path = &*file.path;
        if !path.starts_with("crates/") || path.starts_with("crates/testkit/") {
            continue;
        }
        let owner = OWNERS.iter().find(|owner| owner.path == path);
        let split = mask::split(&file.text);
        for (number, line) in (1..).zip(before_tests(file, &split).lines()) {
            for (change, calls) in CALLS {
                let Some(call) = calls.iter().find(|call| is_called(line, call)) else { continue };
                seen.push((path.to_owned(), change));
                if !owner.is_some_and(|owner| owner.changes.contains(&change)) {
                    findings.push(format!(
                        "{path}:{number}: `{call}` has no owner in xtask/src/tidy/file_owners.rs"
                    ));
                }
            }
        }
    }
    for Owner { path, changes, why } in &OWNERS {
        // A tree of a test holds no owner.
        let is_there = tree.get(path).is_some();
        for change in changes.iter().filter(|_| is_there) {
            if !seen.iter().any(|(of, made)| of == path && made == change) {
                findings.push(format!("{path}: {change:?} nothing any more ({why})"));
            }
        }
    }
    findings
}

/// Returns whether a line has the call by itself, not as the end of another name.
fn is_called(line: &str, call: &str) -> bool {
    let is_whole = |at| call.starts_with('.') || !line[..at].ends_with(mask::is_word);
    line.match_indices(call).any(|(at, _)| is_whole(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_owners_make_replace_and_remove_files() {
        let code = "//! X.\n#![expect(clippy::disallowed_methods, reason = \"owns them\")]\n\
                    fn f() { fs::remove_dir_all(place); }\n";
        let in_tests = format!("//! X.\n#[cfg(test)]\nmod tests {{\n{code}}}\n");
        let makes = "//! X.\nfn f() { options.create(true).open(path); rename(a, b) }\n";
        let tree = Tree::of(&[
            ("crates/a/src/b.rs", code),
            ("crates/a/src/in_tests.rs", in_tests.as_str()),
            ("crates/record/src/removal.rs", code),
            ("crates/record/src/segments.rs", code),
            ("crates/a/src/makes.rs", makes),
            ("crates/testkit/src/b.rs", code),
            ("xtask/src/b.rs", code),
        ]);
        let none = |call| format!("`{call}` has no owner in xtask/src/tidy/file_owners.rs");
        let why = "the CSV file that `--analyze.out` names; warp writes over it as well";
        assert_eq!(
            check(&tree),
            [
                format!("crates/a/src/b.rs:3: {}", none("remove_dir_all(")),
                format!("crates/record/src/segments.rs:3: {}", none("remove_dir_all(")),
                format!("crates/a/src/makes.rs:2: {}", none(".create(true)")),
                format!("crates/record/src/segments.rs: Makes nothing any more ({why})"),
            ]
        );
    }
}
