//! Who was the limit, staged on this machine: a store that does as a script says, and a client that
//! is short of something. What a machine does not allow is said to be skipped.
//!
//! Nothing here is held to a time. Where the machine itself was busy, a client that says so is
//! right as well; the store is never to be blamed for the client.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{plimsoll, run, stderr};

/// A store on loopback, until it is dropped.
struct Store {
    child: Child,
    address: String,
}

impl Store {
    fn start(directory: &Path, script: &str) -> Self {
        let script = format!("schema: plimsoll.oracle/1\n{script}\n");
        std::fs::write(directory.join("script.yaml"), script).unwrap();
        let mut command = plimsoll(directory);
        let flags = "oracle --listen 127.0.0.1:0 --anonymous --threads 1 --script script.yaml \
                     --ledger ledger.json --overwrite";
        command.args(flags.split(' ').filter(|word| !word.is_empty()));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on http://").unwrap().to_owned();
        Self { child, address }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        let _ = self.child.wait();
    }
}

/// Returns the report of a run against these stores, with its exit code. `around` is a line of the
/// shell before it.
fn judged(directory: &Path, stores: &[&Store], line: &str, around: &str) -> (Value, i32) {
    let addresses: Vec<&str> = stores.iter().map(|store| &*store.address).collect();
    let mut own = plimsoll(directory);
    let run_dir = directory.join("run");
    let _ = std::fs::remove_dir_all(&run_dir);
    own.args(line.split_whitespace());
    own.args(["--host", &addresses.join(","), "--access-key", "", "--bucket", "verdicts"]);
    own.args(["--obj.size", "1KiB", "--duration", "2s", "--max-error-rate", "100%"]);
    own.args(["--json", "--quiet", "--run-dir"]).arg(&run_dir);
    let output = run(match around {
        "" => own,
        around => wrapped(&own, around, directory),
    });
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}\n{}", stderr(&output)));
    (report, output.status.code().unwrap())
}

/// Returns the same command with a line of the shell before it.
fn wrapped(own: &Command, around: &str, directory: &Path) -> Command {
    let mut command = Command::new("sh");
    command.current_dir(directory).arg("-c").arg(format!("{around}; exec \"$0\" \"$@\""));
    command.arg(own.get_program()).args(own.get_args());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Returns whether the machine's processors were busy, with whomever, for most of the stage.
fn was_busy(directory: &Path) -> bool {
    let text = std::fs::read_to_string(directory.join("run/run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let stages = manifest["stages"].as_array().unwrap();
    let processors = &stages.last().unwrap()["evidence"][0]["processors"];
    let of = |name: &str| processors[name].as_f64().unwrap_or(0.0);
    of("busy_ns") > of("all_ns") * 0.7
}

#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn say(text: &str) {
    println!("{text}");
}

/// Holds a verdict to what was staged.
#[track_caller]
fn holds(directory: &Path, name: &str, report: &Value, class: &str, is_client: bool) {
    let verdict = &report["verdict"];
    let found = verdict["class"].as_str().unwrap_or("none");
    assert!(!verdict["experiment"].as_str().unwrap_or("").is_empty(), "{name}: {report:#}");
    if is_client {
        assert_ne!(found, "store", "{name}: the store is blamed for the client: {verdict:#}");
    }
    if found != class && was_busy(directory) {
        let is_clients = verdict["is_client_limit"] == true || found == "unknown";
        assert!(is_clients, "{name}: {verdict:#}");
        say(&format!("{name}: this machine was busy with others, so {found} and not {class}"));
        return;
    }
    assert_eq!(found, class, "{name}: {verdict:#}");
    assert_eq!(verdict["is_client_limit"], is_client, "{name}");
}

#[test]
fn limits_of_the_store_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for (name, script, line, class) in [
        (
            "one lock in the server",
            "service: {time: {constant: 3ms}}\nservers: 1",
            "s3 get --concurrent 16 --objects 20",
            "store",
        ),
        (
            "server queue",
            "service: {time: {constant: 3ms}}\nservers: 2",
            "s3 get --rate 3000/s --max-in-flight 64 --objects 20",
            "store",
        ),
        (
            "server sheds",
            "service: {time: {constant: 3ms}}\ngrace_count: 60\nservers: 2\nqueue_max: 8",
            "s3 get --concurrent 32 --objects 40",
            "store-sheds-load",
        ),
        (
            "too little load",
            "service: {time: {constant: 1ms}}",
            "s3 get --rps-limit 50 --concurrent 4 --objects 20",
            "not-enough-load",
        ),
    ] {
        let store = Store::start(path, script);
        let (report, _) = judged(path, &[&store], line, "");
        holds(path, name, &report, class, false);
    }
}

#[test]
fn a_client_with_one_connection_is_the_limit_and_can_fail_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = Store::start(path, "service: {time: {constant: 3ms}}");
    let line = "s3 get --concurrent 1 --objects 20 --fail-on-client-limit";
    let (report, code) = judged(path, &[&store], line, "");
    holds(path, "one connection", &report, "client-connections", true);
    assert_eq!(code, 3);
    let text = run({
        let mut command = plimsoll(path);
        command.args(["analyze", "run", "--no-color"]);
        command
    });
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let headline = text.split("\n\n").next().unwrap();
    assert!(headline.contains("not a measurement of the store"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // A limit of the load passes.
    let line = "s3 get --rps-limit 50 --concurrent 4 --objects 20 --fail-on-client-limit";
    let (report, code) = judged(path, &[&store], line, "");
    let is_client = report["verdict"]["is_client_limit"] == true;
    assert_eq!(code, if is_client { 3 } else { 0 }, "{:#}", report["verdict"]);
}

#[test]
fn a_client_without_descriptors_is_the_limit_and_its_record_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = Store::start(path, "service: {time: {constant: 3ms}}");
    let line = "s3 put --concurrent 64";
    let (report, _) = judged(path, &[&store], line, "ulimit -n 48");
    holds(path, "fd limit", &report, "client-connections", true);
    let evidence = report["stages"].as_array().unwrap().last().unwrap()["verdict"].to_string();
    assert!(evidence.contains("for want of a descriptor (limit 48)"), "{evidence}");
}

#[test]
fn a_client_whose_control_group_stops_it_is_the_limit() {
    let Some(group) = Group::new("cpu", 20) else {
        say("skipped: control groups may not be made here");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = Store::start(path, "service: {time: {constant: 100us}}");
    let into = format!("echo $$ > {}", group.0.join("cgroup.procs").display());
    let (report, _) = judged(path, &[&store], "s3 get --concurrent 16 --objects 20", &into);
    holds(path, "client cgroup at 20 % CPU", &report, "client-cpu", true);
}

/// A control group of this test's own.
struct Group(PathBuf);

impl Group {
    /// Makes one that may use so many percent of a processor; `None` where that is not allowed.
    fn new(name: &str, percent: u32) -> Option<Self> {
        let name = format!("plimsoll-test-{name}-{}", std::process::id());
        let one = Path::new("/sys/fs/cgroup/cpu").join(&name);
        let two = Path::new("/sys/fs/cgroup").join(&name);
        let mut bound = String::new();
        let (path, file) = match Path::new("/sys/fs/cgroup/cpu").is_dir() {
            true => {
                write!(bound, "{}", percent * 1_000).unwrap();
                (one, "cpu.cfs_quota_us")
            }
            false => {
                write!(bound, "{} 100000", percent * 1_000).unwrap();
                (two, "cpu.max")
            }
        };
        std::fs::create_dir(&path).ok()?;
        let group = Self(path);
        std::fs::write(group.0.join(file), bound).ok().map(|()| group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_client_without_ports_is_the_limit() {
    let around = "ip link set lo up && echo '32768 32800' > /proc/sys/net/ipv4/ip_local_port_range";
    let tried = Command::new("unshare").args(["-n", "sh", "-c", around]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        say("skipped: networks of one's own may not be made here");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    // Store and client share the network of their own, so one shell starts both.
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n";
    std::fs::write(path.join("script.yaml"), script).unwrap();
    let shell = format!(
        "{around}; \"$0\" oracle --listen 127.0.0.1:9000 --anonymous --script script.yaml \
         --ledger ledger.json > listening & store=$!; \
         until grep -q http listening; do kill -0 $store || exit 9; done; \
         \"$0\" s3 put --host 127.0.0.1:9000 --access-key '' --bucket verdicts --concurrent 16 \
         --obj.size 1KiB --duration 2s --disable-http-keepalive --max-error-rate 100% --json \
         --quiet --run-dir run > report.json; kill -INT $store; wait"
    );
    let own = plimsoll(path);
    let mut command = Command::new("unshare");
    command.current_dir(path).args(["-n", "sh", "-c", &shell]).arg(own.get_program());
    let output = run(command);
    let text = std::fs::read_to_string(path.join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}\n{}", stderr(&output)));
    holds(path, "few ports", &report, "client-connections", true);
}

#[test]
fn in_virtual_time_and_without_a_store_there_is_no_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut command = plimsoll(path);
    command.args(["null", "--duration", "200ms", "--json", "--quiet", "--run-dir", "run"]);
    command.arg("--fail-on-client-limit");
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verdict"], Value::Null);
}
