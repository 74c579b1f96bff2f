//! What a run tells while it runs, and profiles of the server under test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use plimsoll_testkit::{LiveKind, live};

use crate::harness::{self, Background, counts, run, run_json, stderr};

const TOKEN: &str = "token-that-is-secret==";

/// Answers requests with `204` until `done` holds of what came so far, and returns that.
fn receive(listener: &TcpListener, done: impl Fn(&str) -> bool) -> String {
    let mut all = String::new();
    while !done(&all) {
        let (mut socket, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        let mut buffer = [0; 65_536];
        let complete = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let (head, body) = text.split_once("\r\n\r\n")?;
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            (body.len() >= length.parse().unwrap()).then_some(())
        };
        while complete(&bytes).is_none() {
            let count = socket.read(&mut buffer).unwrap();
            assert!(count > 0, "the request broke off");
            bytes.extend_from_slice(&buffer[..count]);
        }
        socket.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
        all.push_str(&String::from_utf8(bytes).unwrap());
    }
    all
}

#[test]
fn a_run_is_told_of_while_it_lasts_and_its_token_is_nowhere() {
    let target = harness::oracle();
    let directory = tempfile::tempdir().unwrap();
    let influx = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{TOKEN}@{}/bucket/org?site=x", influx.local_addr().unwrap());
    let line = "s3 get --objects 20 --obj.size 1KiB --duration 3s --concurrent 2 --run-dir run \
                --metrics 127.0.0.1:0 --influxdb";
    let mut command = target.command(directory.path(), &format!("{line} {url}"));
    // Nobody listens there: told of once, and of no consequence.
    command.env("PLIMSOLL_OTLP", "http://127.0.0.1:1");
    let mut running = Background::start(command);
    let address = running.await_line("metrics at http://");
    let address = address.split_once("http://").unwrap().1.strip_suffix("/metrics").unwrap();
    let last = |all: &str| all.contains("warp_run_summary");
    let (written, page) = std::thread::scope(|scope| {
        let written = scope.spawn(|| receive(&influx, last));
        running.await_line("measure: ");
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(b"GET /metrics HTTP/1.1\r\nhost: h\r\n\r\n").unwrap();
        let mut page = String::new();
        socket.read_to_string(&mut page).unwrap();
        (written.join().unwrap(), page)
    });
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stderr.matches("warning: --otlp: ").count(), 1, "{stderr}");
    for counted in [
        "plimsoll_operations_total{stage=\"prepare\",kind=\"PUT\",outcome=\"ok\"} 20\n",
        "plimsoll_bytes_total{stage=\"prepare\",kind=\"PUT\"} 20480\n",
        "plimsoll_stage_info{stage=\"measure\"} 1\n",
        "plimsoll_latency_seconds_bucket{stage=\"measure\",kind=\"GET\",le=\"+Inf\"} ",
    ] {
        assert!(page.contains(counted), "{counted}{page}");
    }
    let totals = written.lines().filter(|line| line.starts_with("warp,")).count();
    // All and the only endpoint, of PUT once and of GET in more than one second.
    assert!(totals >= 2 + 2 * 2, "{written}");
    assert!(written.contains(&format!("authorization: Token {TOKEN}\r\n")), "{written}");
    assert!(written.contains("warp,op=PUT,stage=prepare,warp_id="), "{written}");
    assert!(written.contains(",site=x requests=20i,objects=20i,bytes_total=20480i,errors=0i,"));
    let manifest = std::fs::read_to_string(directory.path().join("run/run.json")).unwrap();
    assert!(manifest.contains("*REDACTED*") && !manifest.contains(TOKEN), "{manifest}");
    assert!(!stderr.contains(TOKEN), "{stderr}");
}

#[test]
fn a_server_that_cannot_be_profiled_is_refused_before_anything_is_written() {
    let target = harness::oracle();
    let directory = tempfile::tempdir().unwrap();
    let refused = |kinds: &str| {
        let line = format!("s3 stat --objects 5 --concurrent 2 --duration 1s --serverprof {kinds}");
        let output = run(target.command(directory.path(), &line));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        stderr(&output)
    };
    let said = refused("cpu");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(&format!("--serverprof: {} is not MinIO", target.host)), "{said}");
    assert!(
        refused("heap").contains("`heap` is not a kind of profile; the kinds are cpu, cpuio, mem")
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing was begun");
    assert_eq!(target.oracle.as_ref().unwrap().stats().buckets_count, 0, "nothing was made");
}

#[test]
fn minio_profiles_itself_into_the_run_directory() {
    for kind in [LiveKind::Minio, LiveKind::MinioTls] {
        let Some(server) = live(kind) else { return };
        let target = harness::live(&server, "plimsoll-profile");
        let directory = tempfile::tempdir().unwrap();
        let line = "s3 stat --objects 20 --duration 2s --concurrent 2 --run-dir run --serverprof";
        let command = target.command(directory.path(), &format!("{line} cpu,mem,threads"));
        let report = run_json(command, 0);
        assert_eq!(counts(&report)["ops_failed_count"], 0, "{kind:?}");
        let zip = std::fs::read(directory.path().join("run/server-profiles.zip")).unwrap();
        assert!(zip.starts_with(b"PK"), "{kind:?}");
        // The directory of an archive has the names of its members in plain text.
        for member in ["-cpu.pprof", "-mem.pprof", "-threads.pprof"] {
            let found = zip.windows(member.len()).any(|at| at == member.as_bytes());
            assert!(found, "{kind:?}: {member}");
        }
        let mut other = harness::live(&server, "plimsoll-profile");
        other.secret_key = "wrong-secret".to_owned();
        let output = run(other.command(directory.path(), &format!("{line} cpu")));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--serverprof") && said.contains("SignatureDoesNotMatch"), "{said}");
    }
}

#[test]
fn versitygw_is_no_minio() {
    let Some(server) = live(LiveKind::Versitygw) else { return };
    let target = harness::live(&server, "plimsoll-profile");
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 stat --objects 5 --concurrent 2 --duration 1s --serverprof cpu";
    let output = run(target.command(directory.path(), line));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("is not MinIO"), "{}", stderr(&output));
}
