//! What cannot be done ends with exit code 2 and one sentence that names what to change.

use std::net::TcpListener;

use crate::harness::{oracle, plimsoll, printed, run, stderr};

/// A port on which nobody listens.
fn refused_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Checks that `line` ends with exit code 2 and one line that holds all of `words`, and leaves
/// nothing behind.
pub(crate) fn check(line: &str, words: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = plimsoll(directory.path());
    command.args(line.split_whitespace());
    let output = run(command);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{line}: {text}");
    assert!(output.stdout.is_empty(), "{line}: stdout is for results");
    assert_eq!(text.trim_end().lines().count(), 1, "{line}: {text}");
    for word in words {
        assert!(text.contains(word), "{line}: no `{word}` in: {text}");
    }
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "{line} leaves {left:?}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_done() {
    for (line, words) in [
        ("s3 get --obj.size 0", &["--obj.size", "at least 1"] as &[&str]),
        ("s3 get --obj.size 5bananas", &["--obj.size", "KiB"]),
        ("s3 get --objects 5", &["--objects", "20 workers"]),
        ("s3 get --host a{9...1}", &["--host", "9", "1"]),
        ("s3 get --host a{1...", &["--host"]),
        ("s3 get --tls --host http://a:9000", &["--host", "--tls", "PLIMSOLL_TLS"]),
        ("s3 get --host http://a,https://b", &["--host", "http://", "https://"]),
        ("s3 get --host https://a/bucket", &["--host", "--bucket"]),
        ("s3 get --host file:/dev/zero", &["--host", "/dev/zero", "regular file"]),
        ("s3 get --host h --tls --tls-ca /dev/zero", &["--tls-ca", "/dev/zero"]),
        ("s3 get --host file:absent.txt", &["--host", "absent.txt"]),
        ("s3 delete --objects 100", &["--objects", "--objects"]),
        ("s3 mixed --put-distrib 5", &["--delete-distrib"]),
        ("s3 get --insecure --host localhost:1", &["--insecure", "--tls"]),
        ("s3 get --host localhost:1 --access-key a", &["--access-key", "--secret-key"]),
        ("s3 get --host localhost:1 --bucket no/slash", &["--bucket"]),
        ("s3 get --obj.size 5GiB --objects 25000", &["--objects", "--obj.size", "embedded"]),
        ("s3 put --syncstart 00:00 --obj.size 1KiB", &["--syncstart"]),
        ("clean nowhere", &["nowhere", "run.json"]),
    ] {
        check(line, words);
    }
}

#[test]
fn no_error_about_an_address_shows_what_may_be_secret() {
    const SECRET: &str = "SECRET";
    let proxied = [("HTTP_PROXY", "http://user:SECRET/with@proxy:x")];
    let none: [(&str, &str); 0] = [];
    for (line, environment) in [
        ("s3 get --host http://AK:SECRET@h:9000", &none[..]),
        ("s3 get --host h,user:SECRET@h", &none),
        ("s3 get --host https://h/?token=SECRET", &none),
        ("check http://AK:SECRET@h/b", &none),
        ("check ftp://AK:SECRET@h/b", &none),
        ("check http://h/b?X-Amz-Signature=SECRET", &none),
        ("clean http://AK:SECRET@h/b", &none),
        ("clean https://h/b/k?token=SECRET", &none),
        ("s3 get --host h --proxy env", &proxied),
        ("s3 get --host h --proxy http://user:SECRET@h", &none),
        ("s3 get --host h --proxy http://h/?key=SECRET", &none),
        ("s3 get --influxdb http://SECRET@h:x/b/o", &none),
        ("s3 get --otlp http://user:SECRET@h:x/?key=SECRET", &none),
        ("as s3-benchmark -a A -s S -u http://AK:SECRET@h:9000", &none),
        ("as s3-benchmark -a A -s S -u http://h/?token=SECRET", &none),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = plimsoll(directory.path());
        command.args(line.split_whitespace()).envs(environment.iter().copied());
        let output = run(command);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(!text.contains(SECRET) && output.stdout.is_empty(), "{line}: {text}");
    }
}

#[test]
fn counts_that_no_machine_has_room_for_are_refused() {
    for (line, words) in [
        ("s3 get --threads 18446744073709551615", &["--threads", "4096"] as &[&str]),
        ("s3 get --threads 1000000000", &["--threads", "4096"]),
        ("s3 get --threads 0", &["--threads", "4096"]),
        ("check --threads 1000000000", &["--threads", "4096"]),
        ("oracle --threads 1000000000", &["--threads", "4096"]),
        ("null --threads 1000000000", &["--threads", "4096"]),
        ("null --concurrent 4000000000", &["--concurrent", "100000"]),
        ("s3 get --concurrent 16000000 --objects 16000000", &["--concurrent", "100000"]),
        ("s3 mixed --objects 1000000000000", &["--objects", "100000000"]),
        ("s3 get --retries 255", &["--retries", "254"]),
        ("s3 get --op-timeout 0s", &["--op-timeout", "no time"]),
        ("check --op-timeout 0ms", &["--op-timeout", "no time"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = plimsoll(directory.path());
        command.args(line.split_whitespace());
        let output = run(command);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        // What the parser of the command line refuses it follows up with a hint.
        let said = text.lines().next().unwrap_or_default();
        assert!(words.iter().all(|word| said.contains(word)), "{line}: {text}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "{line}");
    }
}

#[test]
fn an_unknown_flag_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = plimsoll(directory.path());
    let output = run({
        command.args(["s3", "get", "--object", "5"]);
        command
    });
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--object"));
}

#[test]
fn a_store_that_cannot_be_reached_is_named() {
    let port = refused_port();
    check(&format!("s3 get --host 127.0.0.1:{port}"), &["refused", &port.to_string()]);
    check("s3 get --host no-such-host.invalid", &["no-such-host.invalid", "resolve"]);
}

#[test]
fn tls_and_plain_http_are_told_apart() {
    let target = oracle();
    check(&format!("s3 get --tls --host {}", target.host), &["TLS", "--tls"]);
}

#[test]
fn a_wrong_key_is_denied_with_the_flag_to_change() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    for (access, secret) in [("test-access", "wrong"), ("nobody", "wrong")] {
        let mut command = target.command(directory.path(), "s3 get");
        command.env("PLIMSOLL_ACCESS_KEY", access).env("PLIMSOLL_SECRET_KEY", secret);
        let output = run(command);
        assert_eq!(output.status.code(), Some(2));
        let text = stderr(&output);
        assert!(text.contains("--access-key") && text.contains("--secret-key"), "{text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    }
}

#[test]
fn proofs_without_a_place_for_their_records_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    // The superuser may write anywhere but there.
    for line in ["prove stall", "run w.yaml --virtual"] {
        std::fs::write(
            directory.path().join("w.yaml"),
            printed(directory.path(), "s3 stat --duration 1s --explain"),
        )
        .unwrap();
        let mut command = plimsoll(directory.path());
        command.args(line.split_whitespace()).env("TMPDIR", "/proc/self");
        let output = run(command);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{line}: {said}");
        assert!(said.contains("in /proc/self; let TMPDIR name a directory"), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn a_fleet_without_a_home_says_why_and_what_else() {
    let Some(program) = plimsoll_testkit::nats_server() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("home");
    std::fs::write(&file, "").unwrap();
    let mut command = plimsoll(directory.path());
    command.args(["fleet", "up", "--listen", "127.0.0.1:0", "--nats-server"]).arg(program);
    command.env("HOME", &file).env_remove("XDG_STATE_HOME");
    let output = run(command);
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    for part in ["name another --directory", "home/.local/state", "Not a directory"] {
        assert!(said.contains(part), "no `{part}`: {said}");
    }
}

#[test]
fn a_directory_of_state_that_others_filled_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("mine")).unwrap();
    let of_user = directory.path().join("mine/server.key");
    std::fs::write(&of_user, "mine").unwrap();
    let mut lines = vec![
        "console --listen 127.0.0.1:0 --directory mine".to_owned(),
        "agent --fabric nats://127.0.0.1:1 --directory mine".to_owned(),
    ];
    if let Some(program) = plimsoll_testkit::nats_server() {
        let program = program.display();
        lines.push(format!(
            "fleet up --listen 127.0.0.1:0 --nats-server {program} --directory mine"
        ));
    }
    for line in lines {
        let mut command = plimsoll(directory.path());
        command.args(line.split(' '));
        let output = run(command);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("mine is not empty"), "{line}: {said}");
        assert!(said.contains("(--directory)"), "{line}: {said}");
        assert_eq!(std::fs::read_dir(directory.path().join("mine")).unwrap().count(), 1);
        assert_eq!(std::fs::read(&of_user).unwrap(), b"mine", "{line}");
    }
}

#[test]
fn a_run_directory_that_cannot_be_used_is_named_before_the_store_is_asked() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("taken"), "x").unwrap();
    std::fs::create_dir(directory.path().join("full")).unwrap();
    std::fs::write(directory.path().join("full/file"), "x").unwrap();
    for place in ["taken", "taken/below", "full", "/proc/nowhere"] {
        let output = run(target.command(directory.path(), &format!("s3 put --run-dir {place}")));
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{place}: {text}");
        assert!(
            text.contains(place.split('/').next_back().unwrap()) || text.contains("taken"),
            "{text}"
        );
        assert_eq!(target.oracle.as_ref().unwrap().stats().buckets_count, 0, "{place}");
    }
}

#[test]
fn warps_variables_are_taken_and_ours_win() {
    let port = refused_port();
    let directory = tempfile::tempdir().unwrap();
    let mut command = plimsoll(directory.path());
    command.args(["s3", "get"]).env("WARP_HOST", format!("127.0.0.1:{port}"));
    assert!(stderr(&run(command)).contains(&port.to_string()));
    let mut command = plimsoll(directory.path());
    command.args(["s3", "get"]).env("WARP_HOST", "warp.invalid");
    command.env("PLIMSOLL_HOST", format!("127.0.0.1:{port}"));
    assert!(stderr(&run(command)).contains(&port.to_string()));
}

#[test]
fn a_low_limit_of_open_files_is_raised_as_far_as_it_may() {
    let directory = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_plimsoll");
    // 100 connections are 200 descriptors here, as the embedded store has the other ends.
    let line = "s3 stat --concurrent 100 --objects 100 --duration 300ms --quiet";
    let shell = format!("ulimit -S -n 64 && exec {binary} {line}");
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", &shell]).current_dir(directory.path());
    limited.env_remove("PLIMSOLL_HOST").env_remove("WARP_HOST");
    let output = run(limited);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
