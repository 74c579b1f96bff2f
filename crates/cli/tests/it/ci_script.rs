//! The script that pipelines of CI systems run: runs, a baseline, gates; and the action of GitHub
//! around it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::harness::{run, stderr};

const LINE: [&str; 8] =
    ["s3", "put", "--obj.size", "1KiB", "--duration", "300ms", "--concurrent", "2"];

fn gate(directory: &Path, variables: &[(&str, &str)]) -> Output {
    gate_of(directory, &LINE, variables)
}

/// Judges a run in virtual time, so that no load of the machine decides what comes of it.
fn judged(directory: &Path, variables: &[(&str, &str)]) -> Output {
    let file = root().join("docs/workloads/mixed.yaml").display().to_string();
    gate_of(directory, &["run", &file, "--virtual"], variables)
}

fn gate_of(directory: &Path, line: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("bash");
    command.arg(root().join("deploy/ci/gate.sh")).args(line).current_dir(directory);
    command.env_clear().env("PATH", path_with("/usr/bin")).envs(variables.iter().copied());
    run(command)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a search path with our program, then that folder.
fn path_with(folder: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    format!("{}:{folder}:/usr/bin:/bin", program.display())
}

/// Returns the names in a folder, sorted; none where it is not there.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

#[test]
fn a_pipeline_makes_a_baseline_and_then_judges_by_it() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let first = judged(here, &[("AFTER", "baseline"), ("RUNS", "2")]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert!(here.join("baseline/2/run.json").exists());
    let said = std::fs::read_to_string(here.join("plimsoll-comparison.md")).unwrap();
    assert_eq!(said, "no baseline in plimsoll-before: nothing to compare with yet\n");

    let kept = [("BEFORE", "baseline"), ("AFTER", "same"), ("RUNS", "2")];
    let fine = judged(here, &[&kept[..], &[("GATES", "errors<=0.1%\n\n")]].concat());
    assert_eq!(fine.status.code(), Some(0), "{}", stderr(&fine));
    let said = std::fs::read_to_string(here.join("plimsoll-comparison.md")).unwrap();
    assert!(said.contains("| PUT"), "{said}");
    let junit = std::fs::read_to_string(here.join("plimsoll-gates.xml")).unwrap();
    assert!(junit.contains("failures=\"0\""), "{junit}");

    // Nothing is a thousand times as fast as before.
    let kept = [("BEFORE", "baseline"), ("AFTER", "other"), ("RUNS", "3")];
    let gates = [("GATES", "errors<=0.1%\nrate>=1000000000")];
    let broken = judged(here, &[&kept[..], &gates].concat());
    assert_eq!(broken.status.code(), Some(1), "{}", stderr(&broken));

    // What cannot run is no verdict.
    let wrong = judged(here, &[("BEFORE", "baseline"), ("AFTER", "x"), ("GATES", "speed>=3")]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
}

#[test]
fn what_cannot_be_decided_warns_or_fails() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    judged(here, &[("AFTER", "baseline"), ("RUNS", "1")]);
    let one = [("BEFORE", "baseline"), ("RUNS", "1"), ("GATES", "p99<=+5%")];
    let warned = judged(here, &[&one[..], &[("AFTER", "a")]].concat());
    assert_eq!(warned.status.code(), Some(0), "{}", stderr(&warned));
    assert!(stderr(&warned).contains("inconclusive: more runs are needed"));
    let failed = judged(here, &[&one[..], &[("AFTER", "b"), ("INCONCLUSIVE", "fail")]].concat());
    assert_eq!(failed.status.code(), Some(3), "{}", stderr(&failed));
}

#[test]
fn what_is_wrong_is_refused_before_the_first_run() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    for (variable, reason) in [
        (("GATES", "errors<=0.1%\np99<=+5"), "`p99<=+5`"),
        (("GATES", "nonsense"), "`nonsense`"),
        (("INCONCLUSIVE", "maybe"), "`maybe`"),
        (("RUNS", "0"), "`0`"),
        // Bash would carry this out as it works out the number.
        (("RUNS", "a[$(touch carried-out)]"), "RUNS"),
    ] {
        let refused = gate(here, &[variable]);
        assert_eq!(refused.status.code(), Some(2), "{variable:?}: {}", stderr(&refused));
        assert!(stderr(&refused).contains(reason), "{variable:?}: {}", stderr(&refused));
    }
    assert_eq!(names_in(here), [""; 0]);
}

#[test]
fn runs_of_an_earlier_job_make_room_and_nothing_else_does() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    fs::write(here.join("plimsoll-gates.xml"), "of an earlier job").unwrap();
    for runs in ["2", "1"] {
        let made = gate(here, &[("RUNS", runs)]);
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    }
    assert_eq!(names_in(here), ["plimsoll-after", "plimsoll-comparison.md"]);
    let after = here.join("plimsoll-after");
    assert_eq!(names_in(&after), ["1"]);

    let same = gate(here, &[("BEFORE", "./plimsoll-after")]);
    assert_eq!(same.status.code(), Some(2), "{}", stderr(&same));
    // A link to a run elsewhere, and a folder that only looks like one of ours.
    std::os::unix::fs::symlink(after.join("1"), after.join("2")).unwrap();
    let link = gate(here, &[]);
    fs::remove_file(after.join("2")).unwrap();
    fs::create_dir(after.join("3")).unwrap();
    fs::write(after.join("3/run.json"), "{}").unwrap();
    let other = gate(here, &[]);
    for (refused, name) in [(link, "plimsoll-after/2"), (other, "plimsoll-after/3")] {
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(name), "{}", stderr(&refused));
    }
    assert_eq!(names_in(&after), ["1", "3"]);
    assert!(after.join("1/run.json").exists());
}

#[test]
fn no_shell_carries_out_what_a_command_holds() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let command = |line: &str| gate_of(here, &[], &[("COMMAND", line), ("RUNS", "1")]);
    let line = LINE.join(" ");
    let fine = command(&format!("{line}\n --prefix 'two words; $(touch carried-out)'"));
    assert_eq!(fine.status.code(), Some(0), "{}", stderr(&fine));
    let record = fs::read_to_string(here.join("plimsoll-after/1/run.json")).unwrap();
    assert!(record.contains("\"two words; $(touch carried-out)\""), "{record}");
    for wrong in ["; touch carried-out", "$(touch carried-out)", "'without an end", " "] {
        let refused = command(wrong);
        assert_eq!(refused.status.code(), Some(2), "{wrong}: {}", stderr(&refused));
    }
    assert!(!here.join("carried-out").exists());
}

/// A step of the action: its script, and its environment with what GitHub puts in.
fn step(name: &str, values: &[(&str, &str)]) -> (String, Vec<(String, String)>) {
    let action = fs::read_to_string(root().join("action.yml")).unwrap();
    let (_, step) = action.split_once(&format!("- name: {name}\n")).unwrap();
    let step = step.split("\n    - name: ").next().unwrap();
    let (head, script) = step.split_once("      run: |\n").unwrap();
    let (_, variables) = head.split_once("      env:\n").unwrap();
    let set = variables.lines().filter_map(|line| line.trim().split_once(": "));
    let with_values = |(name, text): (&str, &str)| {
        let put = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
        let text = values.iter().fold(text.to_owned(), put);
        assert!(!text.contains("${{"), "{name}: the test has no value for {text}");
        (name.to_owned(), text)
    };
    (script.to_owned(), set.map(with_values).collect())
}

/// Carries out what GitHub would: no checkout, and a `gh` that needs to be told the repository.
#[test]
fn the_action_needs_no_checkout_and_runs_again_in_the_same_workspace() {
    const GH: &str = r#"#!/bin/bash
[[ $GH_REPO == some/where ]] || { echo "failed to determine base repo" >&2; exit 1; }
case $1\ $2 in
    run\ list) echo 7 ;;
    api\ repos/some/where/actions/runs/7/artifacts) [[ -e $KEPT ]] && echo 1 ;;
    *)
        while [[ $1 != --dir ]]; do shift; done
        cp -r "$KEPT/." "$2"
        ;;
esac
"#;
    let directory = tempfile::tempdir().unwrap();
    let of = |name: &str| directory.path().join(name);
    ["kept", "bin", "temp", "work"].iter().for_each(|name| fs::create_dir(of(name)).unwrap());
    gate(directory.path(), &[("AFTER", "kept"), ("RUNS", "1")]);
    let gh = of("bin/gh");
    fs::write(&gh, GH).unwrap();
    let mut mode = fs::metadata(&gh).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs::set_permissions(&gh, mode).unwrap();
    let github = |script: &str, set: &[(String, String)]| {
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
        bash.current_dir(of("work")).env_clear().envs(set.iter().cloned());
        bash.env("PATH", path_with(of("bin").to_str().unwrap())).env("KEPT", of("kept"));
        bash.env("RUNNER_TEMP", of("temp")).env("GITHUB_ACTION_PATH", root());
        bash.env("GITHUB_OUTPUT", of("output")).env("GITHUB_STEP_SUMMARY", of("summary"));
        bash.env("GITHUB_WORKFLOW", "performance");
        let ended = run(bash);
        (ended.status.code(), format!("{script}\n{}", stderr(&ended)))
    };
    let fetch = || {
        step(
            "Fetch the baseline",
            &[
                ("${{ github.token }}", "token"),
                ("${{ github.repository }}", "some/where"),
                ("${{ inputs.baseline }}", "plimsoll-baseline"),
                ("${{ github.event.repository.default_branch }}", "main"),
            ],
        )
    };
    for job in 1..=2 {
        let (script, set) = fetch();
        let (code, said) = github(&script, &set);
        assert_eq!(code, Some(0), "{said}");
        let output = fs::read_to_string(of("output")).unwrap();
        let before = output.lines().last().unwrap().strip_prefix("directory=").unwrap();
        let (script, set) = step(
            "Run and judge",
            &[
                ("${{ steps.baseline.outputs.directory }}", before),
                ("${{ inputs.command }}", &LINE.join(" ")),
                ("${{ inputs.gates }}", "errors<=0.1%"),
                ("${{ inputs.runs }}", "1"),
                ("${{ inputs.inconclusive }}", "warn"),
            ],
        );
        let (code, said) = github(&script, &set);
        assert_eq!(code, Some(0), "{said}");
        let summary = fs::read_to_string(of("summary")).unwrap();
        assert!(summary.contains("| PUT"), "job {job}: {summary}");
        fs::remove_file(of("summary")).unwrap();
    }
    assert_eq!(names_in(&of("work/plimsoll-after")), ["1"]);
    // Where nobody can say whether there is a baseline, nothing passes.
    fs::remove_dir_all(of("kept")).unwrap();
    let (script, set) = fetch();
    let (code, said) = github(&script, &set);
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn inputs_of_the_action_reach_scripts_by_the_environment_alone() {
    let action = fs::read_to_string(root().join("action.yml")).unwrap();
    let scripts = action.split("      run: |\n").skip(1);
    let scripts: Vec<&str> = scripts.map(|of| of.split("\n    - ").next().unwrap()).collect();
    assert_eq!(scripts.len(), 3);
    assert!(scripts.iter().all(|script| !script.contains("${{")), "{scripts:#?}");
}
