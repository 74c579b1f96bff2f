//! Help, completions and manual pages of the binary itself.

use crate::harness::{plimsoll, run};

#[test]
fn completions_know_every_shell() {
    let place = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let mut command = plimsoll(place.path());
        command.args(["completions", shell]);
        let text = String::from_utf8(run(command).stdout).unwrap();
        assert!(text.contains("loadline") && text.contains("obj.size"), "{shell}: {text}");
    }
}

#[test]
fn manual_pages_are_written_once() {
    let place = tempfile::tempdir().unwrap();
    let man = |words: &[&str]| {
        let mut command = plimsoll(place.path());
        command.arg("man").args(words);
        command.output().unwrap()
    };
    let main = String::from_utf8(man(&[]).stdout).unwrap();
    assert!(main.contains(".TH plimsoll 1") && main.contains("Examples"), "{main}");
    assert!(man(&["--dir", "."]).status.success());
    let page = std::fs::read_to_string(place.path().join("plimsoll-s3-get.1")).unwrap();
    assert!(page.contains(".SH \"COMMON OPTIONS\"") && page.contains("concurrent"), "{page}");
    assert!(place.path().join("plimsoll-compare.1").is_file());
    assert_eq!(man(&["--dir", "."]).status.code(), Some(2));
    assert!(man(&["--dir", ".", "--overwrite"]).status.success());
}

#[test]
fn pages_are_written_as_markdown() {
    let place = tempfile::tempdir().unwrap();
    let mut command = plimsoll(place.path());
    command.args(["man", "--markdown", "--dir", "."]);
    assert!(run(command).status.success());
    let page = std::fs::read_to_string(place.path().join("plimsoll-s3-get.md")).unwrap();
    assert!(page.starts_with("# plimsoll s3 get\n"), "{page}");
    assert!(page.contains("\n## Common options\n") && page.contains("\n- `--rate <"), "{page}");
    assert!(page.contains("Environment: `PLIMSOLL_HOST`"), "{page}");
    let above = std::fs::read_to_string(place.path().join("plimsoll-s3.md")).unwrap();
    assert!(above.contains("- [`get`](plimsoll-s3-get.md): "), "{above}");
}

#[test]
fn short_help_is_short_and_long_help_is_whole() {
    let place = tempfile::tempdir().unwrap();
    let help = |words: &[&str]| {
        let mut command = plimsoll(place.path());
        command.args(words);
        String::from_utf8(run(command).stdout).unwrap()
    };
    let short = help(&["s3", "get", "-h"]);
    assert!(short.lines().count() <= 24 && !short.contains("--until"), "{short}");
    let long = help(&["s3", "get", "--help"]);
    assert_eq!(long, help(&["help", "s3", "get"]));
    assert!(long.contains("--until") && long.contains("Examples:"), "{long}");
    assert!(help(&["as", "warp", "get", "--host=h", "--help"]).contains("plimsoll as warp get"));
}

#[test]
fn a_flag_that_another_command_has_is_pointed_to() {
    let place = tempfile::tempdir().unwrap();
    let refused = |line: &str| {
        let mut command = plimsoll(place.path());
        let output = run({
            command.args(line.split(' '));
            command
        });
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let slo = refused("s3 get --slo p99<=20ms");
    assert!(slo.contains("tip: `plimsoll loadline s3 get --slo ...`") && !slo.contains("--json"));
    assert!(refused("analyze run --gate=p99<=1ms").contains("tip: `plimsoll compare BEFORE"));
    // Others are as clap has them.
    assert!(refused("s3 get --bukket x").contains("tip: a similar argument exists: '--bucket'"));
}

#[test]
fn short_help_says_what_stands_for_a_flag_that_is_not_given() {
    let place = tempfile::tempdir().unwrap();
    let mut command = plimsoll(place.path());
    command.args(["s3", "get", "-h"]);
    let help = String::from_utf8(run(command).stdout).unwrap();
    for line in [
        "Object size [default: 10MiB; embedded: 1MiB]",
        "Objects to prepare [default: 2500; embedded: 500]",
        "Workers [default: 20]",
    ] {
        assert!(help.contains(line), "{help}");
    }
}
