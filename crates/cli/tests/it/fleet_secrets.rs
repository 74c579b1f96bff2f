//! No secret of a store is in anything that a fleet leaves, keeps or prints.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use rustix::process::Signal;

use crate::fleet::Fleet;
use crate::harness::{oracle, stderr};

/// What goes with the keys of a store for a while.
const SESSION_TOKEN: &str = "session-token-that-must-stay-secret";

/// Returns a secret in each form in which somebody may have written it.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let numbers: Vec<String> = secret.bytes().map(|byte| byte.to_string()).collect();
    let mut forms = vec![
        secret.to_owned(),
        hex.to_uppercase(),
        hex,
        numbers.join(","),
        numbers.join(", "),
        secret.chars().rev().collect(),
    ];
    // Wherever it begins in a longer text, these letters depend on nothing else.
    for skipped in 0..3 {
        let whole = (secret.len() - skipped) / 3 * 3;
        let part = &secret.as_bytes()[skipped..skipped + whole];
        forms.extend([STANDARD_NO_PAD.encode(part), URL_SAFE_NO_PAD.encode(part)]);
    }
    forms.into_iter().map(String::into_bytes).collect()
}

fn assert_silent(what: &str, bytes: &[u8], secrets: &[Vec<u8>]) {
    for secret in secrets {
        let found = bytes.windows(secret.len()).any(|window| window == secret);
        assert!(!found, "{what} holds {}", String::from_utf8_lossy(secret));
    }
}

/// Searches all files below a directory, and returns how many there are.
fn search(directory: &Path, secrets: &[Vec<u8>]) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            count += search(&path, secrets);
            continue;
        }
        // The server may have removed it meanwhile.
        let Ok(bytes) = std::fs::read(&path) else { continue };
        assert_silent(&path.display().to_string(), &bytes, secrets);
        count += 1;
    }
    count
}

#[test]
fn secrets_of_stores_reach_no_file_and_no_output_of_a_fleet() {
    let Some(mut fleet) = Fleet::start(&["a", "b"], &[]) else { return };
    let target = oracle();
    let secrets: Vec<Vec<u8>> =
        [&*target.secret_key, SESSION_TOKEN].iter().flat_map(|secret| forms(secret)).collect();
    let place = fleet.place.path().to_path_buf();
    let line = "s3 mixed --objects 40 --obj.size 4KiB --concurrent 6 --duration 2s --run-dir run";
    let mut command = fleet.command(&target, line);
    command.env("PLIMSOLL_SESSION_TOKEN", SESSION_TOKEN);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_silent("stdout", &output.stdout, &secrets);
    assert_silent("stderr", &output.stderr, &secrets);
    // The server is up, and keeps what it has.
    assert!(search(&place, &secrets) > 8);
    // Parts that are kept, and what a coordinator leaves that is killed.
    let line = "s3 get --objects 40 --obj.size 4KiB --concurrent 6 --duration 1m --run-dir other";
    let mut command = fleet.command(&target, line);
    command.env("PLIMSOLL_SESSION_TOKEN", SESSION_TOKEN);
    let mut running = crate::harness::Background::start(command);
    running.await_line("measure: ");
    assert!(search(&place, &secrets) > 8);
    running.signal(Signal::KILL);
    for agent in &mut fleet.agents {
        agent.hear("is kept in");
    }
    assert!(search(&place, &secrets) > 8);
    let (_, text, said) = running.end();
    assert_silent("its output", format!("{text}{said}").as_bytes(), &secrets);
    for agent in fleet.agents.iter().chain([&fleet.up]) {
        assert_silent("an agent's output", agent.heard.join("\n").as_bytes(), &secrets);
    }
}
