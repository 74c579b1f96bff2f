//! A report that cannot be written is no success, whichever command made it.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Output};

use crate::analysis::null_run;
use crate::harness::{plimsoll, run, stderr};

/// Commands that print, on a run in `run`.
const LINES: [&str; 16] = [
    "analyze run",
    "analyze run --json",
    "compare run run",
    "compare run run --markdown",
    "report run -o -",
    "export run --format csv -o -",
    "export run --format openmetrics -o -",
    "as warp analyze run",
    "null --duration 100ms --threads 1",
    "prove stall",
    "prove stall --json",
    "completions bash",
    "man",
    "--help",
    "s3 get --help",
    "--version",
];

fn with_closed_stdout(command: &Command) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" >&-", "sh"]).arg(command.get_program());
    shell.args(command.get_args()).current_dir(command.get_current_dir().unwrap());
    run(shell)
}

fn with_full_stdout(mut command: Command) -> Output {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = command.stdout(full).stderr(std::process::Stdio::piped()).spawn().unwrap();
    child.wait_with_output().unwrap()
}

fn line(directory: &Path, line: &str) -> Command {
    let mut command = plimsoll(directory);
    command.args(line.split_whitespace());
    command
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    null_run(directory.path(), "run");
    for format in ["csv", "jsonl", "warp", "openmetrics", "hlog", "trace", "bencher"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = line(directory.path(), &format!("export run --format {format} -o -"));
        let child = command.stdout(writer).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{format}: {}", stderr(&output));
        assert!(!stderr(&output).contains("error"), "{format}: {}", stderr(&output));
    }
}

/// `ulimit -f` ends a process by a signal unless it is told not to.
#[test]
fn a_limit_of_file_sizes_is_told_as_a_full_disk_is() {
    let directory = tempfile::tempdir().unwrap();
    null_run(directory.path(), "run");
    let limited = line(directory.path(), "export run --format csv -o run.csv");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -f 1; exec \"$@\"", "sh"]).arg(limited.get_program());
    shell.args(limited.get_args()).current_dir(directory.path());
    let output = run(shell);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot write run.csv: File too large"), "{said}");
    assert!(!directory.path().join("run.csv").exists());
}

#[test]
fn what_cannot_be_printed_is_an_error_of_every_command() {
    let directory = tempfile::tempdir().unwrap();
    null_run(directory.path(), "run");
    for words in LINES {
        for (output, reason) in [
            (with_closed_stdout(&line(directory.path(), words)), "closed"),
            (with_full_stdout(line(directory.path(), words)), "cannot write"),
        ] {
            assert_eq!(output.status.code(), Some(2), "{words}: {}", stderr(&output));
            let said = stderr(&output);
            assert!(said.lines().last().unwrap().contains(reason), "{words}: {said}");
        }
    }
}
