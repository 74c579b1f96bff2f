//! A build without the console, the fleet or the cloud's credentials, as its users meet it.
#![cfg(not(any(feature = "console", feature = "fleet", feature = "cloud-credentials")))]
#![expect(clippy::disallowed_methods, reason = "tests read and write files of their own")]
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use std::process::{Command, Output, Stdio};

const FLEET: &str = "plimsoll: this build has no fleet: build it with `--features fleet`\n";
const CONSOLE: &str = "plimsoll: this build has no console: build it with `--features console`\n";
const CLOUD: &str = "this build has no cloud credentials, only keys of flags and of the \
                     environment: build it with `--features cloud-credentials`\n";
/// A workload of COSBench's that touches no store.
const WORKLOAD: &str = r#"<?xml version="1.0" encoding="UTF-8" ?>
<workload name="w"><storage type="mock" config="delay=0" /><workflow><workstage name="main">
<work name="main" workers="1" totalOps="10"><operation type="read" ratio="100"
config="containers=u(1,2);objects=u(1,9)" /></work></workstage></workflow></workload>"#;
/// A host that no name server knows, so that a command that is not refused fails as well.
const HOST: &str = "--host=store.invalid:1";

/// Runs a command line with nothing but these variables, in a directory of its own.
fn run(line: &str, variables: &[(&str, &str)]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.current_dir(directory.path()).env_clear().envs(variables.iter().copied());
    command.stdin(Stdio::null()).args(line.split_whitespace()).output().unwrap()
}

#[track_caller]
fn refused(line: &str, variables: &[(&str, &str)], expected: &str) {
    let output = run(line, variables);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(2), expected), "{line}");
    assert!(output.stdout.is_empty(), "{line}: {output:?}");
}

#[test]
fn a_command_that_was_left_out_is_refused_by_one_sentence() {
    for line in ["fleet", "fleet --help", "fleet up --listen 127.0.0.1:0", "fleet nonsense"] {
        refused(line, &[], FLEET);
    }
    for line in ["agent", "agent --join-file x", "help fleet", "help agent"] {
        refused(line, &[], FLEET);
    }
    for line in ["console", "console -h", "console --directory d", "help console"] {
        refused(line, &[], CONSOLE);
    }
}

#[test]
fn a_flag_of_what_was_left_out_is_refused_by_one_sentence() {
    for flag in ["--fleet", "--fabric=nats://h:1", "--agents=2", "--agent-credentials"] {
        refused(&format!("s3 get {flag} {HOST}"), &[], FLEET);
        refused(&format!("file bandwidth --dir d {flag}"), &[], FLEET);
    }
    let as_warp = run(&format!("as warp get --warp-client=a {HOST}"), &[]);
    let said = String::from_utf8_lossy(&as_warp.stderr);
    assert!(as_warp.status.code() == Some(2) && said.ends_with(FLEET), "{said}");
    let archive = format!("--archive a: {}", CONSOLE.trim_start_matches("plimsoll: "));
    let directory = tempfile::tempdir().unwrap();
    let xml = directory.path().join("w.xml");
    std::fs::write(&xml, WORKLOAD).unwrap();
    let line =
        format!("as cosbench {} --run-dir {}/run", xml.display(), directory.path().display());
    let output = run(&format!("{line} --archive a --quiet"), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(2), &*format!("plimsoll: {archive}")));
    // Its summary needs no archive.
    let output = run(&line, &[]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && table.contains("Op-Count"), "{output:?}");
}

#[test]
fn keys_of_the_cloud_are_refused_by_one_sentence() {
    let line = format!("s3 get {HOST}");
    for variable in ["AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"] {
        refused(&line, &[(variable, "x")], &format!("plimsoll: {variable}: {CLOUD}"));
    }
    let with_token = format!("{line} --signature STS_WEB_TOKEN --sts-web-token t");
    refused(&with_token, &[], &format!("plimsoll: --sts-web-token: {CLOUD}"));
    let none = run(&format!("{line} --signature IAM"), &[]);
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(said.contains("no credentials found: looked at --access-key"), "{said}");
    assert!(said.contains("this build is without the cloud's credentials"), "{said}");
}

#[test]
fn help_shows_nothing_that_was_left_out() {
    let pages = [("--help", ["fleet ", "agent ", "console "])];
    let flags = [
        ("s3 get --help", ["--fleet", "--agents", "--sts-web-token <"]),
        ("s3 get -h", ["--fleet", "--agents", "--sts-web-token <"]),
        ("as cosbench --help", ["--fleet", "Fleet:", "--archive"]),
    ];
    for (line, absent) in pages.into_iter().chain(flags) {
        let output = run(line, &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("Usage: plimsoll"), "{line}: {output:?}");
        for word in absent {
            assert!(!text.contains(word), "{word} is in {line}:\n{text}");
        }
    }
}
