//! `plimsoll oracle --script`: what is refused, and the ledger at the end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{plimsoll, run, stderr};

const SCRIPT: &str = "schema: plimsoll.oracle/1\n\
                      service: {time: {constant: 100us}}\n\
                      faults: {get: {slow_down: 1}}\n";

fn oracle(directory: &Path, flags: &str) -> Command {
    let mut command = plimsoll(directory);
    command.args("oracle --listen 127.0.0.1:0 --anonymous --threads 1".split(' '));
    command.args(flags.split_whitespace());
    command
}

#[test]
fn a_wrong_script_is_refused_by_the_name_of_its_field() {
    let directory = tempfile::tempdir().unwrap();
    for (from, to, words) in [
        ("plimsoll.oracle/1", "plimsoll.oracle/0", &["schema", "plimsoll.oracle/1"] as &[&str]),
        ("constant: 100us", "constant: 100", &["service.time.constant", "100"]),
        ("constant: 100us", "exponential: {mean: 0ms}", &["service.time.exponential.mean"]),
        ("slow_down: 1", "slow_down: 1.5", &["faults.get.slow_down", "1.5"]),
        ("slow_down", "slowdown", &["slowdown"]),
        ("faults: {get", "rate_cap: {ops_per_sec: 0}\nfaults: {get", &["rate_cap.ops_per_sec"]),
    ] {
        let script = SCRIPT.replace(from, to);
        std::fs::write(directory.path().join("script.yaml"), &script).unwrap();
        let output = run(oracle(directory.path(), "--script script.yaml --ledger ledger.json"));
        let text = stderr(&output);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{text}");
        for word in [&["--script: script.yaml"], words].concat() {
            assert!(text.contains(word), "no `{word}` in: {text}");
        }
        assert!(!directory.path().join("ledger.json").exists());
    }
    let output = run(oracle(directory.path(), "--script absent.yaml"));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--script: cannot read absent.yaml"), "{}", stderr(&output));
    let output = run(oracle(directory.path(), "--ledger ledger.json"));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--script"), "{}", stderr(&output));
    std::fs::write(directory.path().join("script.yaml"), SCRIPT).unwrap();
    let output = run(oracle(directory.path(), "--script script.yaml --ledger absent/ledger.json"));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--ledger"), "{}", stderr(&output));
}

/// Starts a server and returns it with its address.
fn start(mut command: Command) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let addr = line.trim_end().strip_prefix("listening on http://").unwrap().to_owned();
    (child, stdout, addr)
}

/// Asks without a signature and returns the first line of the answer.
fn ask(addr: &str, request: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(addr).unwrap();
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nhost: {addr}\r\ncontent-length: {length}\r\n");
    socket.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[test]
fn the_ledger_is_told_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("script.yaml"), SCRIPT).unwrap();
    for flags in ["--script script.yaml", "--script script.yaml --seed 3 --ledger ledger.json"] {
        let (mut child, mut stdout, addr) = start(oracle(directory.path(), flags));
        assert_eq!(ask(&addr, "PUT /bucket", ""), "HTTP/1.1 200 OK");
        assert_eq!(ask(&addr, "PUT /bucket/key", "content"), "HTTP/1.1 200 OK");
        for _ in 0..2 {
            assert_eq!(ask(&addr, "GET /bucket/key", ""), "HTTP/1.1 503 Slow Down");
        }
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let mut told = String::new();
        stdout.read_to_string(&mut told).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        if flags.contains("--ledger") {
            assert_eq!(told, "");
            told = std::fs::read_to_string(directory.path().join("ledger.json")).unwrap();
        }
        let put = json!({
            "kind": "PUT", "operations_count": 1, "classes": {"ok": 1}, "content_bytes": 7,
            "acts": {},
        });
        let get = json!({
            "kind": "GET", "operations_count": 2, "classes": {"throttled": 2}, "content_bytes": 0,
            "acts": {"slow_down": 2},
        });
        let ledger: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(ledger, json!({"schema": "plimsoll.ledger/1", "kinds": [put, get]}));
    }
}
