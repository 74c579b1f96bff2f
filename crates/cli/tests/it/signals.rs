//! Every step heeds the first signal, and what was measured is printed whatever cleaning comes to.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use crate::harness::{Background, Target, oracle, plimsoll, run_directory};

/// A store that can be frozen: connections stay open, and nothing comes back any more.
pub(crate) struct Frozen {
    pub(crate) target: Target,
    is_frozen: Arc<AtomicBool>,
}

impl Frozen {
    pub(crate) fn before(behind: &Target) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let is_frozen = Arc::new(AtomicBool::new(false));
        let (frozen, store) = (Arc::clone(&is_frozen), behind.host.clone());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, store) = (client.unwrap(), TcpStream::connect(&store).unwrap());
                for (from, to) in [(&client, &store), (&store, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let frozen = Arc::clone(&frozen);
                    std::thread::spawn(move || pass(from, to, &frozen));
                }
            }
        });
        let target = Target {
            host,
            access_key: behind.access_key.clone(),
            secret_key: behind.secret_key.clone(),
            tls_ca: None,
            bucket: behind.bucket.clone(),
            oracle: None,
        };
        Self { target, is_frozen }
    }

    pub(crate) fn freeze(&self) {
        self.is_frozen.store(true, Ordering::SeqCst);
    }
}

/// Hands bytes on until the store is frozen, and swallows what comes after that.
fn pass(mut from: TcpStream, mut to: TcpStream, frozen: &AtomicBool) {
    let mut bytes = [0; 1 << 14];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !frozen.load(Ordering::SeqCst) && to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    if !frozen.load(Ordering::SeqCst) {
        let _ = to.shutdown(std::net::Shutdown::Both);
    }
}

const LINE: &str = "s3 get --objects 20 --obj.size 1KiB --duration 60s --concurrent 2 --json \
                    --op-timeout 1h";

#[test]
fn a_cleaning_that_hangs_loses_no_report_and_ends_with_the_next_signal() {
    let store = oracle();
    let frozen = Frozen::before(&store);
    let directory = tempfile::tempdir().unwrap();
    let mut running = Background::start(frozen.target.command(directory.path(), LINE));
    running.await_line("measure: ");
    frozen.freeze();
    running.signal(Signal::TERM);
    running.await_line("cleaning up");
    running.signal_until_end(Signal::TERM);
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(143), "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["state"], "interrupted");
    assert!(stderr.contains("plimsoll clean"), "{stderr}");
    let manifest = std::fs::read(run_directory(directory.path()).join("run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["cleanup"]["state"], "pending");
}

#[test]
fn a_setup_that_hangs_ends_with_the_first_signal_and_leaves_nothing() {
    for (signal, expected) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let store = oracle();
        let host = listener.local_addr().unwrap().to_string();
        let silent = Target { host, ..store };
        let directory = tempfile::tempdir().unwrap();
        let running = Background::start(silent.command(directory.path(), LINE));
        // Somebody has connected, so the listing or making of the bucket is under way.
        let _held = listener.accept().unwrap();
        running.signal(signal);
        let (code, stdout, stderr) = running.end();
        assert_eq!((code, &*stdout), (Some(expected), ""), "{stderr}");
        assert!(stderr.contains("stopped before anything was measured"), "{stderr}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn term_and_hangup_end_a_run_with_its_report_and_clean() {
    for (signal, expected) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let target = oracle();
        target.plant(10);
        let directory = tempfile::tempdir().unwrap();
        let mut running = Background::start(target.command(directory.path(), LINE));
        running.await_line("measure: ");
        running.signal(signal);
        let (code, stdout, stderr) = running.end();
        assert_eq!(code, Some(expected), "{stderr}");
        let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(report["state"], "interrupted");
        target.assert_only_planted(10);
    }
}

#[test]
fn a_signal_that_is_told_twice_is_one() {
    // As from `timeout`, which tells the process and its group.
    let target = oracle();
    target.plant(10);
    let directory = tempfile::tempdir().unwrap();
    let mut running = Background::start(target.command(directory.path(), LINE));
    running.await_line("measure: ");
    running.signal(Signal::TERM);
    running.signal(Signal::CONT);
    running.signal(Signal::TERM);
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(143), "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["state"], "interrupted");
    target.assert_only_planted(10);
}

#[test]
fn under_nohup_a_hangup_is_no_signal() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let line = LINE.replace("60s", "3s");
    let command = target.command(directory.path(), &line);
    let mut shell = std::process::Command::new("sh");
    shell.current_dir(directory.path()).args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    target.credentials(&mut shell);
    let mut running = Background::start(shell);
    running.await_line("measure: ");
    running.signal(Signal::HUP);
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["state"], "complete");
}

#[test]
fn a_summary_that_cannot_be_written_fails_the_run_and_the_record_says_why() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let mut running = Background::start(target.command(directory.path(), LINE));
    running.await_line("measure: ");
    let run = run_directory(directory.path());
    std::fs::create_dir(run.join("summary.json.tmp")).unwrap();
    running.signal(Signal::TERM);
    let (_, stdout, stderr) = running.end();
    assert_eq!(stdout, "", "{stderr}");
    assert!(stderr.contains("summary.json.tmp"), "{stderr}");
    let manifest = std::fs::read(run.join("run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["state"], "failed");
    assert!(manifest["state_reason"].as_str().unwrap().contains("summary.json.tmp"), "{manifest}");
    // All that was done is in the log.
    assert!(manifest["recorder"]["rows_count"].as_u64() > Some(20), "{manifest}");
}

#[test]
fn a_full_stdout_is_named_and_what_the_run_wrote_is_removed() {
    let target = oracle();
    target.plant(10);
    let directory = tempfile::tempdir().unwrap();
    let mut command = target.command(directory.path(), &LINE.replace("60s", "200ms"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot write to stdout"), "{text}");
    target.assert_only_planted(10);
}

#[test]
fn a_server_that_is_ended_has_not_failed() {
    for signal in [Signal::INT, Signal::TERM] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = plimsoll(directory.path());
        command.args(["oracle", "--listen", "127.0.0.1:0"]);
        let mut running = Background::start(command);
        running.await_line("Ctrl-C ends");
        running.signal(signal);
        assert_eq!(running.end().0, Some(0));
    }
}
