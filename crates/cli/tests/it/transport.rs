//! What carries connections, as the flag says and the record tells.

use std::path::Path;

use plimsoll_http::Transport;
use serde_json::Value;

use crate::harness::{refused, run_line};

/// Returns what the last stage of the run in `name` tells of its connections, and its report.
fn told(here: &Path, name: &str, words: &str) -> (Value, String) {
    let line = "--obj.size 8KiB --threads 1 --duration 300ms --json --quiet";
    let objects = if words.starts_with("get") { "--objects 20" } else { "" };
    let output = run_line(here, &format!("s3 {words} {line} {objects} --run-dir {name}"));
    // A busy machine keeps no schedule, which is an error of its own.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let report = String::from_utf8(output.stdout).unwrap();
    let text = std::fs::read_to_string(here.join(name).join("run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let stages = manifest["stages"].as_array().unwrap();
    (stages.last().unwrap()["evidence"][0]["sockets"].clone(), report)
}

#[test]
fn the_record_says_what_carried_connections() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let has_ring = Transport::IoUring.direct(false, true).is_ok();
    for (name, words, is_ring) in [
        // So few are never ready together, and bodies go by themselves.
        ("few", "get --concurrent 3", false),
        ("writes", "put --concurrent 16", false),
        ("sockets", "get --concurrent 16 --transport sockets", false),
        ("ring", "get --concurrent 3 --transport io_uring", true),
    ] {
        if is_ring && !has_ring {
            continue;
        }
        let (sockets, report) = told(here, name, words);
        let opened = sockets["opened_count"].as_u64().unwrap();
        assert!(opened > 0, "{sockets:#}");
        let over_ring = sockets["io_uring_requests_count"].as_u64().unwrap();
        // Each worker has a connection, and asks more than once.
        assert!(if is_ring { over_ring > opened } else { over_ring == 0 }, "{sockets:#}");
        let said =
            if is_ring { " requests sent by io_uring" } else { " all requests over sockets" };
        let is_said = |line: &str| line.contains(" made,") && line.contains(said);
        assert!(report.lines().any(is_said), "{report}");
    }
}

#[test]
fn a_ring_is_refused_for_what_it_cannot_carry() {
    let place = tempfile::tempdir().unwrap();
    let line = "--host 127.0.0.1:1 --access-key= --transport io_uring";
    for (flag, what) in [("--tls --insecure", "TLS"), ("--http2", "HTTP/2")] {
        let why = format!("--transport io_uring carries plain HTTP/1.1 alone, not {what}");
        let said = refused(place.path(), &format!("s3 get {line} {flag}"));
        assert!(said.contains(&why), "{said}");
        let checked = refused(place.path(), &format!("check {line} {flag}"));
        assert!(checked.contains(&why), "{checked}");
    }
}
