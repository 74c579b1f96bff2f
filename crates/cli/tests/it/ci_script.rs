//! The script that pipelines of CI systems run: runs, a baseline, gates.

use std::path::Path;
use std::process::{Command, Output};

use crate::harness::{run, stderr};

const LINE: [&str; 8] =
    ["s3", "put", "--obj.size", "1KiB", "--duration", "300ms", "--concurrent", "2"];

fn gate(directory: &Path, variables: &[(&str, &str)]) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/ci/gate.sh");
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let mut path = program.as_os_str().to_owned();
    path.push(":/usr/bin:/bin");
    let mut command = Command::new("bash");
    command.arg(script).args(LINE).current_dir(directory);
    command.env_clear().env("PATH", path).envs(variables.iter().copied());
    run(command)
}

#[test]
fn a_pipeline_makes_a_baseline_and_then_judges_by_it() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let first = gate(here, &[("AFTER", "baseline"), ("RUNS", "2")]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert!(here.join("baseline/2/run.json").exists());
    let said = std::fs::read_to_string(here.join("plimsoll-comparison.md")).unwrap();
    assert_eq!(said, "no baseline in plimsoll-before: nothing to compare with yet\n");

    let kept = [("BEFORE", "baseline"), ("AFTER", "same"), ("RUNS", "2")];
    let fine = gate(here, &[&kept[..], &[("GATES", "errors<=0.1%\n\n")]].concat());
    assert_eq!(fine.status.code(), Some(0), "{}", stderr(&fine));
    let said = std::fs::read_to_string(here.join("plimsoll-comparison.md")).unwrap();
    assert!(said.contains("| PUT"), "{said}");
    let junit = std::fs::read_to_string(here.join("plimsoll-gates.xml")).unwrap();
    assert!(junit.contains("failures=\"0\""), "{junit}");

    // Nothing is a thousand times as fast as before.
    let kept = [("BEFORE", "baseline"), ("AFTER", "other"), ("RUNS", "3")];
    let gates = [("GATES", "errors<=0.1%\nrate>=1000000000")];
    let broken = gate(here, &[&kept[..], &gates].concat());
    assert_eq!(broken.status.code(), Some(1), "{}", stderr(&broken));

    // What cannot run is no verdict.
    let wrong = gate(here, &[("BEFORE", "baseline"), ("AFTER", "x"), ("GATES", "speed>=3")]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
}

#[test]
fn what_cannot_be_decided_warns_or_fails() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    gate(here, &[("AFTER", "baseline"), ("RUNS", "1")]);
    let one = [("BEFORE", "baseline"), ("RUNS", "1"), ("GATES", "p99<=+5%")];
    let warned = gate(here, &[&one[..], &[("AFTER", "a")]].concat());
    assert_eq!(warned.status.code(), Some(0), "{}", stderr(&warned));
    assert!(stderr(&warned).contains("inconclusive: more runs are needed"));
    let failed = gate(here, &[&one[..], &[("AFTER", "b"), ("INCONCLUSIVE", "fail")]].concat());
    assert_eq!(failed.status.code(), Some(3), "{}", stderr(&failed));
}
