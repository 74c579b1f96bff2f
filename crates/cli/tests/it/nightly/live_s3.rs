//! Every benchmark of S3 beyond the six of every store, and every flag of requests, against live
//! servers: what each offers is measured right, what it does not offer is said in one sentence.
//!
//! Benchmarks measure for three seconds. Flags measure for half a second: what is proved is that
//! every request is understood, and that is known after some tens of them.

use plimsoll_driver::Admin;
use plimsoll_model::ErrorClass;
use plimsoll_testkit::{LiveKind, LiveServer, live};
use serde_json::Value;

use crate::harness::{self, Target, block_on, clock, measured, plimsoll, run, run_json, stderr};
use crate::output::assert_measured;

const TIME: &str = "3s";
const FLAG_TIME: &str = "500ms";

/// A command line, the kinds of operations that it measures, and who offers it.
struct Row {
    line: &'static str,
    kinds: &'static [&'static str],
    /// Whether it reads content, every byte of which is then checked.
    reads: bool,
    /// Who does not offer it.
    lacked_by: &'static [LiveKind],
    /// What they are told to lack.
    lack: &'static str,
}

const MIXED: &[&str] = &["PUT", "GET", "DELETE", "STAT"];
const PARTS: &[&str] = &["PUTPART", "CREATEUPLOAD", "COMPLETEUPLOAD"];

const fn row(line: &'static str, kinds: &'static [&'static str], reads: bool) -> Row {
    Row { line, kinds, reads, lacked_by: &[], lack: "" }
}

const fn of_minio(row: Row, lack: &'static str) -> Row {
    Row { lacked_by: &[LiveKind::Versitygw, LiveKind::SeaweedS3], lack, ..row }
}

const fn versions(row: Row) -> Row {
    Row { lacked_by: &[LiveKind::Versitygw], lack: "version", ..row }
}

/// What MinIO offers; all of it but to add to objects.
const ROWS: [Row; 16] = [
    versions(row("versioned --objects 40 --obj.size 10KiB", MIXED, true)),
    versions(row("retention --objects 20 --versions 2", &["RETENTION"], false)),
    row("multipart --parts 3", &["GET"], true),
    row("multipart-put --parts 3 --part.concurrent 2", PARTS, false),
    of_minio(row("zip --files 30 --obj.size 1KiB", &["GET"], true), "zip archives"),
    of_minio(row("snowball --objs.per 5 --obj.size 1KiB", &["PUT"], false), "extract archives"),
    of_minio(
        row("snowball --objs.per 5 --obj.size 1KiB --compress", &["PUT"], false),
        "extract archives",
    ),
    of_minio(row("fanout --copies 5 --obj.size 1KiB", &["POST"], false), "several keys"),
    row("put --post --obj.size 10KiB", &["POST"], false),
    versions(row("get --versions 3 --objects 8 --obj.size 10KiB", &["GET"], true)),
    versions(row("list --versions 3 --objects 40 --max-keys 7", &["LIST"], false)),
    versions(row("stat --versions 3 --objects 8", &["STAT"], false)),
    row("get --objects 20 --obj.size 10KiB --pick zipf:0.9", &["GET"], true),
    row("stat --objects 20 --pick sequential", &["STAT"], false),
    row("get --objects 4 --obj.size 11MiB --part.size 5MiB --part.parallel 2", &["GET"], true),
    row("get --objects 4 --obj.size 17MiB --disable-multipart", &["GET"], true),
];

/// Who does not take a flag, and in which words.
type Refusals = &'static [(LiveKind, &'static str)];

const NO_KMS: Refusals = &[
    (LiveKind::Minio, "KMS is not configured"),
    // It has no words for that.
    (LiveKind::SeaweedS3, "server (500): InternalError"),
];

const NO_HTTP2: Refusals = &[
    (LiveKind::Minio, "leave out --http2"),
    (LiveKind::MinioTls, "leave out --http2"),
    (LiveKind::Versitygw, "leave out --http2"),
    (LiveKind::SeaweedS3, "leave out --http2"),
];

/// Flags of requests, and which servers say that they do not take them.
const FLAGS: [(&str, Refusals); 20] = [
    ("--checksum CRC32", &[]),
    ("--checksum CRC32-FO", &[]),
    ("--checksum CRC32C", &[]),
    ("--checksum CRC32C-FO", &[]),
    ("--checksum CRC64NVME", &[]),
    ("--checksum SHA1", &[]),
    ("--checksum SHA256", &[]),
    ("--md5", &[]),
    ("--storage-class REDUCED_REDUNDANCY", &[]),
    ("--tag a=b --tag c=rand:8", &[]),
    ("--add-metadata a=b --add-metadata c=rand:20", &[]),
    ("--if-none-match", &[]),
    ("--resolve-host", &[]),
    ("--obj.generator text", &[]),
    ("--data.compress 2 --data.dedupe 2", &[]),
    // versitygw takes it and does nothing.
    ("--sse-s3-encrypt", &[(LiveKind::Minio, "KMS is not configured")]),
    ("--sse-kms-key", NO_KMS),
    ("--sse-kms-key plimsoll-test", NO_KMS),
    ("--signature S3V2", &[(LiveKind::Versitygw, "AccessDenied")]),
    ("--http2", NO_HTTP2),
];

/// Returns a bucket that no test has used, also of servers that live longer than the tests.
fn fresh(server: &LiveServer, name: &str) -> Target {
    harness::live(server, &format!("live-s3-{name}-{}", std::process::id()))
}

/// Runs a command line, which must measure `expected`, and checks what it leaves.
fn check(target: &Target, line: &str, time: &str, expected: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("s3 {line} --duration {time} --concurrent 3");
    let report = run_json(target.command(directory.path(), &line), 0);
    assert_measured(&report, &line, expected);
    assert_empty(target, &line);
    report
}

/// Checks that content was read and that all of it was compared.
fn assert_verified(report: &Value, line: &str) {
    let kinds = measured(report)["kinds"].as_array().unwrap();
    let read = kinds.iter().find(|kind| kind["kind"] == "GET").unwrap();
    assert!(read["stage_total"]["bytes"].as_u64() > Some(0), "{line}");
    assert_eq!(report["verification"]["mode"], "every-byte", "{line}");
    assert_eq!(report["verification"]["bytes"], read["stage_total"]["bytes"], "{line}");
}

/// Checks that a command line ends with one sentence that holds `words`, and leaves nothing.
fn check_refused(target: &Target, line: &str, words: &str) {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("s3 {line} --duration {TIME} --concurrent 3 --quiet");
    let output = run(target.command(directory.path(), &line));
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{line}: {text}");
    assert_eq!(text.lines().count(), 1, "{line}: {text}");
    assert!(text.contains(words), "{line}: no `{words}` in: {text}");
    assert!(output.stdout.is_empty(), "{line}: stdout is for results");
    assert_empty(target, &line);
}

/// Checks that nothing is in the bucket: no object, version, mark of deletion or upload.
fn assert_empty(target: &Target, line: &str) {
    block_on(async {
        let (driver, clock) = (target.driver(), clock());
        let mut admin = driver.admin(&clock);
        match admin.survey("", None, true).await {
            Err(error) if error.class == ErrorClass::NotFound => return,
            objects => assert_eq!(objects.unwrap(), [], "{line}"),
        }
        assert_eq!(admin.survey_uploads("").await.unwrap(), [], "{line}");
        // A server without versions may not list them.
        let versions = admin.survey_versions("", None).await.unwrap_or_default();
        assert_eq!(versions, [], "{line}");
    });
}

/// Runs every command, each in a bucket of its own, against one server.
fn every_benchmark(kind: LiveKind) {
    let Some(server) = live(kind) else { return };
    for (number, row) in ROWS.iter().enumerate() {
        let target = fresh(&server, &format!("benchmark-{number}"));
        match row.lacked_by.contains(&kind) {
            true => check_refused(&target, row.line, row.lack),
            false => {
                let report = check(&target, row.line, TIME, row.kinds);
                if row.reads {
                    assert_verified(&report, row.line);
                }
            }
        }
    }
    let target = fresh(&server, "append");
    check_refused(&target, "append --obj.size 10KiB", "does not support append");
}

#[test]
fn minio_every_benchmark() {
    every_benchmark(LiveKind::Minio);
}

#[test]
fn minio_with_tls_every_benchmark() {
    every_benchmark(LiveKind::MinioTls);
}

#[test]
fn versitygw_every_benchmark() {
    every_benchmark(LiveKind::Versitygw);
}

#[test]
fn seaweedfs_every_benchmark() {
    every_benchmark(LiveKind::SeaweedS3);
}

#[test]
fn every_flag_of_requests_is_taken_or_refused() {
    for kind in LiveKind::ALL {
        let Some(server) = live(kind) else { return };
        let target = fresh(&server, "flags");
        for (flag, refusals) in FLAGS {
            let line = format!("get --objects 20 --obj.size 10KiB {flag}");
            match refusals.iter().find(|(of, _)| *of == kind) {
                Some((_, words)) => check_refused(&target, &line, words),
                None => assert_verified(&check(&target, &line, FLAG_TIME, &["GET"]), &line),
            }
        }
    }
}

#[test]
fn keys_of_our_own_go_over_tls_only() {
    let Some(server) = live(LiveKind::MinioTls) else { return };
    let target = fresh(&server, "encrypt");
    for (line, kinds) in [
        ("mixed --objects 20 --obj.size 10KiB --encrypt", MIXED),
        ("get --objects 3 --obj.size 11MiB --part.size 5MiB --encrypt", &["GET"]),
        ("multipart --parts 3 --encrypt", &["GET"]),
    ] {
        assert_verified(&check(&target, line, FLAG_TIME, kinds), line);
    }
    check(&target, "multipart-put --parts 2 --part.concurrent 2 --encrypt", FLAG_TIME, PARTS);
    let absent = "get --objects 20 --obj.size 10KiB --sse-kms-key plimsoll-no-such-key";
    check_refused(&target, absent, "check --sse-kms-key");
    let Some(server) = live(LiveKind::Minio) else { return };
    check_refused(&fresh(&server, "encrypt"), "put --encrypt", "needs --tls");
}

#[test]
fn a_bucket_of_others_is_not_made_another_kind_of_bucket() {
    let Some(server) = live(LiveKind::Minio) else { return };
    let target = fresh(&server, "plain");
    check(&target, "put --obj.size 1KiB", FLAG_TIME, &["PUT"]);
    check_refused(&target, "retention --objects 20", "--bucket");
    check_refused(&target, "versioned --objects 20", "--bucket");
    check_refused(&target, "get --objects 20 --versions 2", "--bucket");
    assert!(!block_on(async {
        let (driver, clock) = (target.driver(), clock());
        driver.admin(&clock).keeps_versions().await.unwrap()
    }));
}

/// Benchmarks by warp's own names and flags, and what each measures.
const AS_WARP: [(&str, &str); 14] = [
    ("get --objects 20 --obj.size 10KiB", "GET"),
    ("put --obj.size 10KiB", "PUT"),
    ("put --obj.size 10KiB --post", "POST"),
    ("delete --objects 600 --batch 5 --obj.size 1KiB", "DELETE"),
    ("list --objects 40 --obj.size 1KiB", "LIST"),
    ("stat --objects 20 --obj.size 1KiB", "STAT"),
    ("mixed --objects 20 --obj.size 10KiB", "GET"),
    ("versioned --objects 20 --obj.size 10KiB", "GET"),
    ("retention --objects 20 --versions 2", "RETENTION"),
    ("multipart --parts 3 --part.size 5MiB", "GET"),
    ("multipart-put --parts 3 --part.concurrent 2", "PUTPART"),
    ("zip --files 30 --obj.size 1KiB", "GET"),
    ("snowball --objs.per 5 --obj.size 1KiB", "PUT"),
    ("fanout --copies 5 --obj.size 1KiB", "POST"),
];

#[test]
fn as_warp_runs_its_benchmarks_and_prints_as_it_does() {
    for kind in LiveKind::ALL {
        let Some(server) = live(kind) else { return };
        // What is printed does not depend on the server, nor on TLS.
        let count = if kind == LiveKind::Minio { AS_WARP.len() } else { 1 };
        let mut measured = 0;
        for (number, (line, operation)) in AS_WARP[..count].iter().enumerate() {
            let target = fresh(&server, &format!("as-warp-{number}"));
            let directory = tempfile::tempdir().unwrap();
            let line = format!(
                "as warp {line} --duration {TIME} --concurrent 2 --full --analyze.dur 100ms"
            );
            let output = run(as_warp(&target, directory.path(), &line));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
            assert!(text.contains(&format!("Operation: {operation}")), "{line}: {text}");
            // A server that stood still has too few samples, as warp sees it.
            measured += usize::from(text.contains("obj/s"));
            assert_empty(&target, &line);
            let explained = run(as_warp(&target, directory.path(), &format!("{line} --explain")));
            let text = String::from_utf8_lossy(&explained.stdout).into_owned();
            assert_eq!(explained.status.code(), Some(0), "{line}: {}", stderr(&explained));
            assert!(text.contains("plimsoll s3"), "{line}: {text}");
        }
        assert!(measured * 2 >= count, "{kind:?}: {measured} of {count} have figures");
    }
}

/// Returns a command line of warp's, which knows nothing of files of certificates.
fn as_warp(target: &Target, directory: &std::path::Path, line: &str) -> std::process::Command {
    let mut command = plimsoll(directory);
    command.args(line.split_whitespace());
    command.args(["--host", &target.host, "--bucket", &target.bucket]);
    command.args(["--access-key", &target.access_key, "--secret-key", &target.secret_key]);
    if target.tls_ca.is_some() {
        command.args(["--tls", "--insecure"]);
    }
    command
}
