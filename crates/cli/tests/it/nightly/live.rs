//! The same against real servers: MinIO, MinIO with TLS, versitygw, SeaweedFS's gateway. Run by
//! `cargo xtask test`.

use plimsoll_testkit::{LiveKind, live};
use rustix::process::Signal;

use crate::harness::{self, Background, counts, run_json};
use crate::output::{COMMANDS, kinds};
use crate::safety::clean;

const FOREIGN: u64 = 100;

/// Runs every command against `kind` with foreign objects in the bucket.
fn every_command(kind: LiveKind, bucket: &str) {
    let Some(server) = live(kind) else { return };
    let target = harness::live(&server, bucket);
    target.plant(FOREIGN);
    for (line, expected) in COMMANDS {
        let directory = tempfile::tempdir().unwrap();
        let line = format!("{line} --duration 3s --concurrent 8");
        let report = run_json(target.command(directory.path(), &line), 0);
        assert_eq!(counts(&report)["ops_failed_count"], 0, "{line}: {report:#}");
        assert_eq!(kinds(&report), expected, "{line}");
        assert_eq!(target.listed().len() as u64, FOREIGN, "{line}");
    }
    target.assert_only_planted(FOREIGN);
}

#[test]
fn minio_every_command() {
    every_command(LiveKind::Minio, "plimsoll-commands");
}

#[test]
fn minio_with_tls_every_command() {
    every_command(LiveKind::MinioTls, "plimsoll-commands");
}

#[test]
fn versitygw_every_command() {
    every_command(LiveKind::Versitygw, "plimsoll-commands");
}

#[test]
fn seaweedfs_every_command() {
    every_command(LiveKind::SeaweedS3, "plimsoll-commands");
}

#[test]
fn signed_payloads_and_md5_are_taken() {
    for kind in LiveKind::ALL {
        let Some(server) = live(kind) else { return };
        let target = harness::live(&server, "plimsoll-signed");
        for flags in
            ["--sha256-payload", "--md5", "--sha256-payload --md5", "--disable-sha256-payload"]
        {
            let directory = tempfile::tempdir().unwrap();
            let line =
                format!("s3 put --obj.size 1KiB,128KiB --duration 1s --concurrent 4 {flags}");
            let report = run_json(target.command(directory.path(), &line), 0);
            assert_eq!(counts(&report)["ops_failed_count"], 0, "{kind:?} {flags}");
        }
        assert_eq!(target.listed().len(), 0, "{kind:?}");
    }
}

#[test]
fn interrupted_and_killed_runs_leave_foreign_objects_alone() {
    for kind in LiveKind::ALL {
        let Some(server) = live(kind) else { return };
        let target = harness::live(&server, "plimsoll-safety");
        target.plant(FOREIGN);
        let line = "s3 mixed --objects 60 --obj.size 10KiB --duration 60s --concurrent 8";
        for signal in [Signal::INT, Signal::KILL] {
            let directory = tempfile::tempdir().unwrap();
            let mut running = Background::start(target.command(directory.path(), line));
            running.await_line("measure: ");
            running.signal(signal);
            let (code, _, stderr) = running.end();
            if signal == Signal::KILL {
                assert_eq!(code, None);
                clean(&target, directory.path());
            } else {
                assert_eq!(code, Some(130), "{kind:?}: {stderr}");
            }
            target.assert_only_planted(FOREIGN);
        }
    }
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused_unless_insecure() {
    let Some(server) = live(LiveKind::MinioTls) else { return };
    let mut target = harness::live(&server, "plimsoll-tls");
    target.tls_ca = None;
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 stat --objects 20 --duration 1s --tls";
    let output = harness::run(target.command(directory.path(), line));
    let stderr = harness::stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("--tls-ca") && stderr.contains("--insecure"), "{stderr}");
    let report = run_json(target.command(directory.path(), &format!("{line} --insecure")), 0);
    assert_eq!(counts(&report)["ops_failed_count"], 0);
}
