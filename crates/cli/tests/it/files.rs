//! Runs on files, in directories of the tests' own on disk and in memory.

mod commands;
mod devices;
mod dialects;
mod faults;
mod refused;
mod safety;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{plimsoll, run_directory, stderr};

/// Says what is not tested here.
#[expect(clippy::print_stdout, reason = "a test that tests less says so")]
fn skip(why: &str) {
    println!("skipped: {why}");
}

/// A directory to work in, and one for the records.
pub(crate) struct Directories {
    files: TempDir,
    runs: TempDir,
}

impl Directories {
    pub(crate) fn on_disk() -> Self {
        Self { files: tempfile::tempdir().unwrap(), runs: tempfile::tempdir().unwrap() }
    }

    /// Where caches need not be dropped, which takes the better part of a second.
    pub(crate) fn in_memory() -> Self {
        match tempfile::tempdir_in("/dev/shm") {
            Ok(files) => Self { files, runs: tempfile::tempdir().unwrap() },
            Err(error) => {
                skip(&format!("/dev/shm is not used: {error}"));
                Self::on_disk()
            }
        }
    }

    pub(crate) fn files(&self) -> &Path {
        self.files.path()
    }

    /// Returns the directory in which the binary runs and keeps its records.
    pub(crate) fn runs(&self) -> &Path {
        self.runs.path()
    }

    /// Returns a command line, words separated by blanks; `DIR` is the directory to work in.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = plimsoll(self.runs());
        let files = self.files().display().to_string();
        // A whole path may have these letters in the name that a directory of the test was given.
        let word = |word: &str| match word.starts_with('/') {
            true => word.to_owned(),
            false => word.replace("DIR", &files),
        };
        command.args(line.split_whitespace().map(word));
        command
    }

    /// Runs a command line that must end with `code`, with nothing of the run left. Returns stdout.
    #[track_caller]
    pub(crate) fn printed(&self, line: &str, code: i32) -> String {
        self.printed_either(line, &[code])
    }

    /// As [`Self::printed`], with several codes that are right: whether a schedule is kept is not
    /// for a busy machine to say.
    #[track_caller]
    pub(crate) fn printed_either(&self, line: &str, codes: &[i32]) -> String {
        let output = self.command(line).output().unwrap();
        let code = output.status.code();
        assert!(code.is_some_and(|code| codes.contains(&code)), "{line}: {}", stderr(&output));
        self.assert_clean(line);
        String::from_utf8(output.stdout).unwrap()
    }

    /// As [`Self::printed`], of a line that prints one JSON object.
    #[track_caller]
    pub(crate) fn json(&self, line: &str, code: i32) -> Value {
        serde_json::from_str(&self.printed(line, code)).unwrap()
    }

    #[track_caller]
    pub(crate) fn assert_clean(&self, what: &str) {
        let left = below(self.files());
        assert!(left.is_empty(), "{what} leaves {left:?}");
    }

    /// Returns `run.json` of the only run so far, and forgets the run.
    pub(crate) fn take_manifest(&self) -> Value {
        let run = run_directory(self.runs());
        let manifest = manifest(&run);
        std::fs::remove_dir_all(run).unwrap();
        manifest
    }

    /// Writes a file beside the records and returns its name.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.runs().join(name);
        let files = self.files().display().to_string();
        std::fs::write(&path, text.replace("DIR", &files)).unwrap();
        path
    }
}

pub(crate) fn manifest(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap()
}

/// Returns everything below a directory with what it holds.
pub(crate) fn below(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut rest = vec![directory.to_owned()];
    while let Some(directory) = rest.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            let content = if kind.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if kind.is_dir() {
                rest.push(path.clone());
                b"/".to_vec()
            } else {
                std::fs::read(&path).unwrap()
            };
            found.insert(path, content);
        }
    }
    found
}

/// Returns the stream hashes of the stages of a run.
pub(crate) fn hashes(manifest: &Value) -> Vec<String> {
    let stages = manifest["stages"].as_array().unwrap();
    stages.iter().map(|stage| stage["stream_hash"].as_str().unwrap().to_owned()).collect()
}

/// Runs a script as root in mounts of its own, with a file system of `size` in memory on `$DIR`;
/// its names come after a line `--` on stdout. `None` where that is not allowed.
pub(crate) fn on_small_disk(runs: &Path, size: &str, script: &str) -> Option<Output> {
    let may = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        skip("no mounts of one's own here");
        return None;
    }
    let script = format!(
        "set -e; mkdir small; DIR=$PWD/small; mount -t tmpfs -o size={size} tmpfs $DIR; set +e\n\
         {script}\nCODE=$?; echo --; cd small && find . -mindepth 1; exit $CODE"
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(runs).stdin(Stdio::null());
    command.env("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll"));
    let output = command.output().unwrap();
    if stderr(&output).contains("mount:") {
        skip(&stderr(&output));
        return None;
    }
    Some(output)
}

/// Returns what a script on a small disk printed, and what it left there.
pub(crate) fn printed_and_left(output: &Output) -> (String, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (printed, left) = text.rsplit_once("--\n").unwrap();
    (printed.to_owned(), left.to_owned())
}
