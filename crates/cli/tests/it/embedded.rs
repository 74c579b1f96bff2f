//! Every benchmark of S3 without a server: on the embedded store, with the flags that change what
//! is asked of it.

use serde_json::Value;

use crate::harness::{measured, plimsoll, run, run_json, stderr};
use crate::output::assert_measured;

/// Command lines without a host, and the kinds of operations that each measures.
const BENCHMARKS: [(&str, &[&str]); 25] = [
    ("get --objects 20", &["GET"]),
    ("get --objects 20 --range", &["GET"]),
    ("get --objects 8 --versions 3", &["GET"]),
    ("get --objects 3 --obj.size 11MiB --part.size 5MiB --part.parallel 2", &["GET"]),
    ("put", &["PUT"]),
    ("put --post", &["POST"]),
    ("put --obj.size 11MiB --part.size 5MiB", &["PUT"]),
    ("put --obj.size 6MiB --disable-multipart", &["PUT"]),
    ("delete --objects 2000 --batch 5", &["DELETE"]),
    ("list --objects 40 --max-keys 7", &["LIST"]),
    ("list --objects 40 --versions 3 --max-keys 7", &["LIST"]),
    ("stat --objects 20", &["STAT"]),
    ("stat --objects 8 --versions 3", &["STAT"]),
    ("mixed --objects 40", MIXED),
    ("mixed --objects 40 --prefix a/b", MIXED),
    ("versioned --objects 40", MIXED),
    ("retention --objects 20 --versions 2", &["RETENTION"]),
    ("multipart --parts 3", &["GET"]),
    ("multipart-put --parts 3 --part.concurrent 2", PARTS),
    ("append --obj.size 10KiB", &["PUT", "APPEND"]),
    ("zip --files 30", &["GET"]),
    ("snowball --objs.per 5", &["PUT"]),
    ("snowball --objs.per 5 --compress", &["PUT"]),
    ("fanout --copies 5", &["POST"]),
    ("get --objects 20 --sha256-payload", &["GET"]),
];

const MIXED: &[&str] = &["PUT", "GET", "DELETE", "STAT"];
const PARTS: &[&str] = &["PUTPART", "CREATEUPLOAD", "COMPLETEUPLOAD"];

/// Flags of requests, each on what writes, reads and removes.
const FLAGS: [&str; 17] = [
    "--checksum CRC32",
    "--checksum CRC32-FO",
    "--checksum CRC32C",
    "--checksum CRC32C-FO",
    "--checksum CRC64NVME",
    "--checksum SHA1",
    "--checksum SHA256",
    "--md5",
    "--storage-class REDUCED_REDUNDANCY",
    "--tag a=b --tag c=rand:8",
    "--add-metadata a=b --add-metadata c=rand:20",
    "--if-none-match",
    "--resolve-host",
    "--sse-s3-encrypt",
    "--sse-kms-key",
    "--sse-kms-key plimsoll-test",
    "--signature S3V2",
];

/// What cannot be had of a store without TLS, and the words that say so.
const REFUSED: [(&str, &str); 2] =
    [("put --encrypt", "needs --tls"), ("put --http2", "does that port speak HTTP/2?")];

/// Runs a command line, which must measure these kinds without a failure.
fn check(line: &str, expected: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let mut command = plimsoll(directory.path());
    // On a busy machine an upload in parts may take a second, and one is to be completed.
    let lasts = if expected == PARTS { "3s" } else { "500ms" };
    // What is asked matters here, and not how much: tests that run beside this one need the rest.
    command.args(line.split_whitespace()).args(["--rps-limit", "300/s"]);
    command.args(["--duration", lasts, "--concurrent", "3"]);
    let report = run_json(command, 0);
    assert_measured(&report, line, expected);
    for kind in measured(&report)["kinds"].as_array().unwrap() {
        assert!(kind["stage_total"]["latency_ns_max"].as_u64() > Some(0), "{line}: {kind:#}");
    }
    report
}

#[test]
fn every_benchmark_runs_without_a_server() {
    for (line, kinds) in BENCHMARKS {
        let sized = ["--obj.size", "--part", "append"].iter().any(|flag| line.contains(flag));
        let size = if sized { "" } else { " --obj.size 10KiB" };
        check(&format!("s3 {line}{size}"), kinds);
    }
}

#[test]
fn every_flag_of_requests_is_taken_without_a_server() {
    for flag in FLAGS {
        check(&format!("s3 mixed --objects 40 --obj.size 10KiB {flag}"), MIXED);
    }
    for flag in &FLAGS[..7] {
        check(&format!("s3 multipart-put --parts 2 --part.concurrent 2 {flag}"), PARTS);
        check(&format!("s3 snowball --objs.per 5 --obj.size 1KiB {flag}"), &["PUT"]);
    }
}

#[test]
fn what_needs_tls_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    for (line, words) in REFUSED {
        let mut command = plimsoll(directory.path());
        command.args(["s3"]).args(line.split_whitespace()).arg("--quiet");
        let output = run(command);
        let text = stderr(&output);
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{line}: {text}");
        assert!(text.contains(words), "{line}: {text}");
    }
}
