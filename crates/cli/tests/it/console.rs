//! The console as a process: what COSBench's script asks of it, and what is left after kill -9.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{pause, plimsoll, refused, run_line};

/// A console that runs.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: String,
    /// The header by which it is known who asks, if there is one.
    pub(crate) authorization: String,
    /// The same as COSBench's addresses take it.
    pub(crate) account: String,
}

impl Served {
    pub(crate) fn start(directory: &Path, flags: &str) -> Self {
        Self::of(plimsoll(directory), flags)
    }

    /// Starts one by a command that knows where it is.
    pub(crate) fn of(mut command: Command, flags: &str) -> Self {
        command.args(["console", "--listen", "127.0.0.1:0", "--driver-listen", "none"]);
        command.args(flags.split_whitespace());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, address) = line.split_once("://").unwrap();
        Self {
            address: address.trim_end_matches("/\n").to_owned(),
            child,
            authorization: String::new(),
            account: String::new(),
        }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, kind: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {kind}\r\n\
             Content-Length: {length}\r\n{}Connection: close\r\n\r\n{body}",
            self.address, self.authorization
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let body = answer.split_once("\r\n\r\n");
        body.unwrap_or_else(|| panic!("{path}: {answer}")).1.to_owned()
    }

    pub(crate) fn submit(&self, text: &str) -> String {
        let body = format!(
            "--XX\r\nContent-Disposition: form-data; name=\"config\"; filename=\"w\"\r\n\r\n{text}\
             \r\n--XX--\r\n"
        );
        let account = match &*self.authorization {
            "" => "username=anonymous&password=cosbench",
            _ => &self.account,
        };
        let path = format!("/controller/cli/submit.action?{account}");
        self.ask("POST", &path, "multipart/form-data; boundary=XX", &body)
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.ask("GET", &format!("/api/v1{path}"), "text/plain", "")).unwrap()
    }

    /// Waits until a run is in one of these states, and returns it.
    pub(crate) fn wait(&self, id: &str, states: &[&str]) -> Value {
        loop {
            let run = self.json(&format!("/runs/{id}"));
            if states.contains(&run["state"].as_str().unwrap()) {
                return run;
            }
            pause();
        }
    }

    /// Signals it and returns its exit code.
    pub(crate) fn end(mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap().code()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A workload on the embedded store.
pub(crate) fn workload(name: &str, duration: &str) -> String {
    format!(
        "schema: plimsoll.workload/2\nname: {name}\nsets:\n  o: {{count: 4, size: 1KiB}}\nstages:\n\
         - {{name: fill, prepares: true, jobs: [{{name: fill, work: {{fill: o}}}}]}}\n\
         - {{name: main, duration: {duration}, jobs: [{{name: read, work: {{objects: \
         [{{get: o}}]}}}}]}}\n"
    )
}

#[test]
fn a_console_that_is_killed_loses_nothing_that_it_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let served = Served::start(directory.path(), "");
    assert_eq!(served.submit(&workload("long", "1h")), "Accepted with ID: w1\n");
    for number in 2..=100 {
        let accepted = served.submit(&workload("short", "50ms"));
        assert_eq!(accepted, format!("Accepted with ID: w{number}\n"));
    }
    // Killed when some of it is saved, which is once a second.
    while served.json("/runs/w1")["ops_count"].as_u64().unwrap_or(0) < 10
        || served.json("/runs/w1/series")["seq"].as_u64().unwrap() < 3
    {
        pause();
    }
    served.kill();
    let served = Served::start(directory.path(), "--concurrency 2");
    let first = served.json("/runs/w1");
    assert_eq!(first["state"], "terminated");
    assert!(first["error"].as_str().unwrap().contains("killed"), "{first}");
    assert_eq!(served.json("/runs")["total_count"], 100);
    let report = served.json("/runs/w1/report.json");
    assert_eq!(report["state"], "killed");
    assert!(report["stages"].as_array().unwrap().iter().any(|stage| stage["name"] == "main"));
    // The others go on in their order.
    let second = served.wait("w2", &["finished"]);
    let third = served.wait("w3", &["finished"]);
    assert!(second["began_at_ms"].as_i64() <= third["began_at_ms"].as_i64());
    assert_eq!(served.submit(&workload("after", "50ms")), "Accepted with ID: w101\n");
    let archive = directory.path().join("plimsoll-console/archive");
    let history = std::fs::read_to_string(archive.join("run-history.csv")).unwrap();
    assert!(history.lines().nth(1).unwrap().starts_with("w1,long,"), "{history}");
    assert!(archive.join("w2-short/s2-main.csv").exists());
}

#[test]
fn a_run_is_shown_as_any_other_and_its_figures_can_be_compared() {
    let directory = tempfile::tempdir().unwrap();
    let served = Served::start(directory.path(), "");
    for _ in 0..2 {
        served.submit(&workload("small", "300ms"));
    }
    served.wait("w1", &["finished"]);
    let run = served.wait("w2", &["finished"]);
    assert_eq!(
        (&run["kind"], &run["stages"][1]["state"]),
        (&"plimsoll".into(), &"completed".into())
    );
    let matrix = served.json("/matrix?runs=w1,w2,w9&ops=GET");
    assert_eq!(matrix["rows"].as_array().unwrap().len(), 2);
    assert_eq!(matrix["missing"][0]["run"], "w9");
    let counted = matrix["rows"][1]["ops_count"].as_u64().unwrap();
    assert!(counted > 0);
    let many = vec!["w1"; 40].join(",");
    let refused = served.json(&format!("/compare?before={many}&after=w2"));
    let message = refused["error"]["message"].as_str().unwrap();
    assert_eq!(message, "a comparison has 40 runs at most");
    let compared = served.json("/compare?before=w1&after=w2");
    assert_eq!(
        (&compared["schema"], &compared["before"][0]),
        (&"plimsoll.compare/1".into(), &"w1".into())
    );
    let runs = directory.path().join("plimsoll-console/runs/w2-small");
    let report = run_line(directory.path(), &format!("analyze {} --json", runs.display()));
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["stages"][1]["rows"][0]["kinds"][0]["stage_total"]["ops_ok_count"], counted);
    // The live counters and the record count the same operations.
    let series = served.json("/runs/w2/timeline?stage=2&limit=1000");
    let seconds = series["rows"].as_array().unwrap().iter();
    assert_eq!(seconds.map(|row| row["ops_count"].as_u64().unwrap()).sum::<u64>(), counted);
}

#[test]
fn on_the_networks_word_no_file_of_the_machine_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    let served = Served::start(directory.path(), "");
    let place = directory.path().join("files");
    std::fs::create_dir(&place).unwrap();
    let fio = format!("[a]\nrw=write\nsize=64k\ndirectory={}\n", place.display());
    assert!(served.submit(&fio).contains("--allow-dir"), "{}", served.submit(&fio));
    assert!(served.submit("[a]\nrw=read\ninclude /etc/passwd\n").contains("would be read"));
    let script = "schema: plimsoll.workload/2\nname: a\ntargets:\n  \
                  t: {oracle: {script: /etc/passwd}}\nsets:\n  \
                  o: {on: t, count: 1, size: 1KiB}\nstages:\n- {jobs: [{work: {fill: o}}]}\n";
    let refused = served.submit(script);
    assert!(!refused.contains("root:") && !refused.starts_with("Accepted"), "{refused}");
    let broken = served.submit("schema: plimsoll.workload/2\nname: a\nstages: 7\n");
    assert!(broken.contains("(line 3, column 9)"), "{broken}");
    assert_eq!(served.json("/runs")["total_count"], 0);
}

#[test]
fn a_console_that_others_reach_asks_who_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let said = refused(directory.path(), "console --listen 0.0.0.0:0 --driver-listen none");
    assert!(said.contains("--users") && said.contains("--insecure-no-auth"), "{said}");
    private_file(&directory.path().join("users"), "ann:plain\n");
    let said = refused(directory.path(), "console --listen 127.0.0.1:0 --users users");
    assert!(said.contains("htpasswd -B") && !said.contains("plain"), "{said}");
    let served = Served::start(directory.path(), "");
    let said = refused(directory.path(), "console --listen 127.0.0.1:0 --driver-listen none");
    assert!(said.contains("another console uses"), "{said}");
    drop(served);
    std::fs::write(directory.path().join("controller.conf"), "[controller]\nname = lab\n").unwrap();
    let served = Served::start(directory.path(), "");
    assert_eq!(served.json("/session")["name"], "lab");
}

/// Writes a file that only its owner may read and change.
pub(crate) fn private_file(path: &Path, content: &str) {
    std::fs::write(path, content).unwrap();
    change_mode(path, 0o600);
}

pub(crate) fn change_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_other_users_may_change_or_read_decides_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    // None of them would start even so: no word is a hash or a token, and nobody has to sign in.
    std::fs::write(path("file"), "ann:plain\n").unwrap();
    std::fs::create_dir(path("scripts")).unwrap();
    for line in ["console --listen 127.0.0.1:0 --users file", "agent --join-file file"] {
        for mode in [0o640, 0o604, 0o620, 0o602] {
            change_mode(&path("file"), mode);
            let said = refused(directory.path(), line);
            let refusal = "other users can read or change it (chmod 600)";
            assert!(said.contains(refusal), "{line}, {mode:o}: {said}");
        }
        change_mode(&path("file"), 0o600);
        assert!(!refused(directory.path(), line).contains("other users"), "{line}");
    }
    let line = "console --listen 0.0.0.0:0 --triggers scripts";
    for mode in [0o775, 0o757] {
        change_mode(&path("scripts"), mode);
        let said = refused(directory.path(), line);
        let refusal = "--triggers scripts: other users can change it (chmod go-w)";
        assert!(said.contains(refusal), "{mode:o}: {said}");
    }
    change_mode(&path("scripts"), 0o755);
    assert!(refused(directory.path(), line).contains("--insecure-no-auth"));

    // It is found, not named by a flag, so another user may have left it there.
    std::fs::create_dir(path("conf")).unwrap();
    let (conf, line) = (path("conf/controller.conf"), "console --listen 0.0.0.0:0");
    std::fs::write(&conf, "[controller]\nname = lab\n").unwrap();
    let named = format!("{line} --config conf/controller.conf");
    // It was read, and something else is refused.
    let is_used = |line: &str| {
        let said = run_line(directory.path(), line).stderr;
        String::from_utf8(said).unwrap().contains("--insecure-no-auth")
    };
    let says = |refusal: &str| {
        let said = refused(directory.path(), line);
        assert!(said.contains(refusal) && said.contains("--config conf/controller.conf"), "{said}");
        assert!(is_used(&named));
    };
    for mode in [0o664, 0o646] {
        change_mode(&conf, mode);
        says("other users can change it (chmod go-w)");
    }
    change_mode(&conf, 0o644);
    assert!(is_used(line));
    // Only root can make what belongs to another user.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&conf, Some(65_534), None).unwrap();
        says("it belongs to another user");
        std::fs::rename(&conf, path("own")).unwrap();
        std::os::unix::fs::chown(path("own"), Some(0), None).unwrap();
        std::os::unix::fs::symlink(path("own"), &conf).unwrap();
        assert!(is_used(line));
        std::os::unix::fs::lchown(&conf, Some(65_534), None).unwrap();
        says("it belongs to another user");
    }
}
