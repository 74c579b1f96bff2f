//! A store that fails while it is measured: failures are counted by class, and the exit code says
//! so.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::harness::{Background, counts, oracle, run, run_json, stderr};

#[test]
fn a_server_that_dies_leaves_counted_failures_and_exit_1() {
    let mut target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 stat --objects 20 --concurrent 4 --duration 4s --max-error-rate 0.01% --json";
    let mut running = Background::start(target.command(directory.path(), line));
    running.await_line("measure: ");
    target.oracle.take().unwrap().shutdown();
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(1), "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let classes = &counts(&report)["failed_by_class"];
    let failed = counts(&report)["ops_failed_count"].as_u64().unwrap();
    let connect = classes["connect"].as_u64().unwrap_or(0);
    let reset = classes["reset"].as_u64().unwrap_or(0);
    assert!(failed >= 4 && connect + reset == failed, "{classes}");
    assert!(stderr.contains("plimsoll clean"), "what is left is named: {stderr}");
    assert!(stderr.contains("--max-error-rate"), "{stderr}");
}

/// Forwards to `upstream` and back; each side's pieces go through a filter that may change them, or
/// hold them back by answering false.
fn proxy(upstream: String, to_server: Filter, to_client: Filter) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(&upstream)) else {
                return;
            };
            let (from_client, from_server) =
                (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || forward(from_client, server, to_server));
            std::thread::spawn(move || forward(from_server, client, to_client));
        }
    });
    port
}

type Filter = fn(&mut [u8]) -> bool;

fn forward(mut from: TcpStream, mut to: TcpStream, filter: Filter) {
    let mut buffer = vec![0; 65_536];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        if filter(&mut buffer[..len]) && to.write_all(&buffer[..len]).is_err() {
            return;
        }
    }
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// Flips one bit late in each piece of more than 2,000 bytes that comes back, listings apart.
fn corrupting_proxy(upstream: String) -> u16 {
    proxy(
        upstream,
        |_| true,
        |bytes| {
            if bytes.len() > 2_000 && !holds(bytes, b"<?xml") {
                let late = bytes.len() - 100;
                bytes[late] ^= 1;
            }
            true
        },
    )
}

/// Holds back every request to delete many objects.
fn stalling_proxy(upstream: String) -> u16 {
    proxy(upstream, |bytes| !holds(bytes, b"?delete"), |_| true)
}

#[test]
fn ctrl_c_while_cleaning_leaves_at_once_and_the_record_says_what_is_left() {
    let mut target = oracle();
    let upstream = std::mem::take(&mut target.host);
    target.host = format!("127.0.0.1:{}", stalling_proxy(upstream.clone()));
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 stat --objects 20 --concurrent 4 --duration 200ms";
    let mut running = Background::start(target.command(directory.path(), line));
    running.await_line("cleaning up");
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.end().0, Some(130));
    let path = crate::harness::run_directory(directory.path()).join("run.json");
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(
        (&manifest["state"], &manifest["cleanup"]["state"]),
        (&"complete".into(), &"pending".into())
    );
    target.host = upstream;
    // Beside them lies the mark of the run, whose process is gone.
    let objects = target.listed().into_iter().filter(|key| !key.contains(".live/"));
    assert_eq!(objects.count(), 20);
}

#[test]
fn a_wrong_byte_is_found_unless_asked_not_to_look() {
    let mut target = oracle();
    let port = corrupting_proxy(target.host.clone());
    target.host = format!("127.0.0.1:{port}");
    let line = "s3 get --objects 8 --obj.size 16KiB --concurrent 4 --duration 1s";
    let directory = tempfile::tempdir().unwrap();
    let report = run_json(target.command(directory.path(), line), 1);
    let failed = &counts(&report)["failed_by_class"];
    assert_eq!(failed["corrupt"], counts(&report)["ops_failed_count"], "{failed}");
    assert!(failed["corrupt"].as_u64().unwrap() > 0);
    assert_eq!(counts(&report)["ops_ok_count"], 0);
    let directory = tempfile::tempdir().unwrap();
    let blind = run_json(target.command(directory.path(), &format!("{line} --no-verify")), 0);
    assert_eq!(counts(&blind)["ops_failed_count"], 0);
}

#[test]
fn more_failures_may_be_allowed() {
    let mut target = oracle();
    let port = corrupting_proxy(target.host.clone());
    target.host = format!("127.0.0.1:{port}");
    let line = "s3 get --objects 8 --obj.size 16KiB --concurrent 4 --duration 1s \
                --max-error-rate 100%";
    let directory = tempfile::tempdir().unwrap();
    run_json(target.command(directory.path(), line), 0);
}

#[test]
fn a_failed_upload_in_prepare_ends_the_run_before_it_measures() {
    let mut target = oracle();
    // Room for a part of what is uploaded.
    target.oracle.take().unwrap().shutdown();
    let small = plimsoll_oracle::Oracle::start(plimsoll_oracle::OracleConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        access_key: target.access_key.clone(),
        secret_key: target.secret_key.clone(),
        capacity_bytes: 100_000,
        threads: 1,
        anonymous: false,
        domain: None,
        md5_etags: false,
        tls: None,
        script: None,
        seed: 0,
    })
    .unwrap();
    target.host = small.addr().to_string();
    let directory = tempfile::tempdir().unwrap();
    let output = run(target.command(directory.path(), "s3 get --objects 40 --obj.size 10KiB"));
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(stderr(&output).contains("prepare failed: "), "{}", stderr(&output));
    assert_eq!(small.stats().objects_count, 0, "what was uploaded is removed again");
}
