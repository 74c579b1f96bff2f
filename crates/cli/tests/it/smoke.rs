//! One workload through every driver against its real server: a smoke test. The long tests of each
//! are in `nightly`.

use std::path::Path;

use plimsoll_testkit::{LiveKind, LiveServer, live};
use serde_json::Value;

use crate::harness::{plimsoll, run_json};

/// Objects of the run's own and all operations that every driver has.
const WORK: &str = "sets: {o: {count: 60, size: 5KiB}}\nstages:\n\
    - {prepares: true, jobs: [{workers: 4, work: {fill: o}}]}\n\
    - {name: main, jobs: [{name: mix, ops: 300, workers: 4, work: {objects: [{get: o, weight: 40}, \
    {put: o, weight: 20}, {stat: o, weight: 20}, {delete: o, weight: 20}]}}]}\n";

/// Runs the workload on a target; every operation must succeed, and nothing may stay.
fn holds(server: &LiveServer, target: &str) {
    let directory = tempfile::tempdir().unwrap();
    let place: &Path = directory.path();
    let file = format!("schema: plimsoll.workload/2\nname: smoke\ntargets: {{{target}}}\n{WORK}");
    std::fs::write(place.join("w.yaml"), file).unwrap();
    let mut command = plimsoll(place);
    command.args(["run", "w.yaml", "--run-dir", "record"]);
    command.env("PLIMSOLL_ACCESS_KEY", &server.access_key);
    command.env("PLIMSOLL_SECRET_KEY", &server.secret_key);
    command.env("ST_KEY", &server.secret_key);
    // The keys go to the server that their owner names.
    command.env("AWS_ENDPOINT_URL_S3", &server.url).env("ST_AUTH", &server.url);
    let report = run_json(command, 0);
    let stage = report["stages"].as_array().unwrap().last().unwrap();
    let counts = &stage["rows"][0]["total"]["stage_total"];
    assert_eq!(counts["ops_ok_count"], 300, "{target}: {report:#}");
    let manifest = std::fs::read(place.join("record/run.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["cleanup"]["state"], "complete", "{target}: {manifest:#}");
}

#[test]
fn s3_on_minio_versitygw_and_seaweedfs() {
    for kind in [LiveKind::Minio, LiveKind::Versitygw, LiveKind::SeaweedS3] {
        let Some(server) = live(kind) else { continue };
        holds(
            &server,
            &format!(
                "s3: {{hosts: '{}', bucket: plimsoll-smoke, create_bucket: true}}",
                server.host()
            ),
        );
    }
}

#[test]
fn volume_servers_and_filer_of_seaweedfs() {
    if let Some(server) = live(LiveKind::SeaweedFs) {
        let place = format!("master: '{}', collection: smoke", server.host());
        holds(&server, &format!("seaweedfs: {{{place}, create_bucket: true}}"));
    }
    if let Some(server) = live(LiveKind::SeaweedFiler) {
        let place = format!("filer: '{}', directory: /smoke", server.host());
        holds(&server, &format!("seaweedfs: {{{place}, create_bucket: true}}"));
    }
}

#[test]
fn swift() {
    let Some(server) = live(LiveKind::Swift) else { return };
    let (url, user) = (&server.url, &server.access_key);
    let auth = format!("auth: '{url}/auth/v1.0', user: '{user}'");
    holds(&server, &format!("swift: {{{auth}, container: smoke, create_bucket: true}}"));
}
