//! Who was the limit, staged on this machine: a store that does as a script says, and a client that
//! is short of something. What a machine does not allow is said to be skipped.
//!
//! Nothing here is held to a time, and a client that names itself is always right: the machine may
//! be busy. The store is never to be blamed for the client.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::far::{self, FAR, NEAR, Way};
use crate::harness::{plimsoll, run, stderr};

/// A store on loopback, until it is dropped.
struct Store {
    child: Child,
    address: String,
}

impl Store {
    fn start(directory: &Path, script: &str) -> Self {
        Self::start_at(directory, script, "127.0.0.1", "")
    }

    /// The same at this address, after a line of the shell.
    fn start_at(directory: &Path, script: &str, address: &str, around: &str) -> Self {
        let script = format!("schema: plimsoll.oracle/1\n{script}\n");
        std::fs::write(directory.join("script.yaml"), script).unwrap();
        let mut command = plimsoll(directory);
        command.args(["oracle", "--listen", &format!("{address}:0")]);
        let flags = "--anonymous --threads 1 --script script.yaml --ledger ledger.json --overwrite";
        command.args(flags.split(' '));
        if !around.is_empty() {
            command = wrapped(&command, around, directory);
        }
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
    own.args(["--host", &addresses.join(","), "--access-key", "", "--create-bucket"]);
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

/// Returns what was seen of the client of the last stage.
fn evidence(directory: &Path) -> Value {
    let text = std::fs::read_to_string(directory.join("run/run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    manifest["stages"].as_array().unwrap().last().unwrap()["evidence"][0].clone()
}

#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn say(text: &str) {
    println!("{text}");
}

/// Holds a verdict to what was staged. Other load on the machine adds shortages of the client's, so
/// the client may be named instead; nothing else may. `prove verdict` holds each limit to its name
/// in virtual time, where nothing else runs.
#[track_caller]
fn holds(name: &str, report: &Value, class: &str, is_client: bool) {
    let verdict = &report["verdict"];
    let found = verdict["class"].as_str().unwrap_or("none");
    assert!(!verdict["experiment"].as_str().unwrap_or("").is_empty(), "{name}: {report:#}");
    if found == class {
        assert_eq!(verdict["is_client_limit"], is_client, "{name}");
        return;
    }
    let is_clients = verdict["is_client_limit"] == true || found == "unknown";
    assert!(is_clients, "{name}: {verdict:#}");
    say(&format!("{name}: other load made it {found} and not {class}"));
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
            "s3 get --rps-limit 50/s --concurrent 4 --objects 20",
            "not-enough-load",
        ),
    ] {
        let store = Store::start(path, script);
        let (report, _) = judged(path, &[&store], line, "");
        holds(name, &report, class, false);
    }
}

#[test]
fn one_slow_address_of_four_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let fast = || Store::start(path, "service: {time: {constant: 2ms}}");
    let stores = [fast(), fast(), fast()];
    let slow = Store::start(path, "service: {time: {constant: 40ms}}");
    let all = [&stores[0], &stores[1], &slow, &stores[2]];
    // A run has the first address make its bucket, and each of these is a store of its own.
    for store in all {
        judged(path, &[store], "s3 put --concurrent 1", "");
    }
    let line = "s3 put --concurrent 16 --host-select roundrobin";
    let (report, _) = judged(path, &all, line, "");
    holds("one slow endpoint of four", &report, "slow-endpoint", false);
    if report["verdict"]["class"] == "slow-endpoint" {
        let sentence = report["verdict"]["sentence"].as_str().unwrap();
        assert!(sentence.contains(&slow.address), "{sentence}");
    }
}

#[test]
fn a_store_that_refuses_much_is_told_on_a_busy_machine_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let script = "service: {time: {constant: 3ms}}\ngrace_count: 60\nservers: 2\nqueue_max: 8";
    let store = Store::start(path, script);
    let Some(_neighbours) = Neighbours::start() else { return };
    let (report, _) = judged(path, &[&store], "s3 get --concurrent 32 --objects 40", BESIDE);
    assert_eq!(report["verdict"]["class"], "store-sheds-load", "{:#}", report["verdict"]);
}

/// Processes that keep the first processor busy, until they are dropped; other tests have the rest.
struct Neighbours(Vec<Child>);

/// A line of the shell that has the client share the first processor with its neighbours.
const BESIDE: &str = "taskset -c -p 0 $$ > /dev/null";

impl Neighbours {
    /// Starts them; `None` where that processor may not be chosen.
    fn start() -> Option<Self> {
        let tried = Command::new("taskset").args(["-c", "0", "true"]).status();
        if !tried.is_ok_and(|status| status.success()) {
            say("skipped: the processors of a process may not be chosen here");
            return None;
        }
        let start = |_| {
            let words = ["-c", "0", "sh", "-c", "while :; do :; done"];
            Command::new("taskset").args(words).spawn().unwrap()
        };
        Some(Self((0..4).map(start).collect()))
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether the client is the limit depends on how the kernel shares the processor, so `prove
/// verdict` holds the verdict; here the wait for the processor has to be seen at all.
#[test]
fn a_client_beside_busy_neighbours_says_how_long_it_waited_for_its_processor() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = Store::start(path, "service: {time: {constant: 3ms}}");
    let Some(_neighbours) = Neighbours::start() else { return };
    judged(path, &[&store], "s3 get --concurrent 16 --objects 20", BESIDE);
    let threads = &evidence(path)["threads"];
    let of = |name: &str| threads[name].as_u64().unwrap();
    assert!(of("run_delay_ns") > of("cpu_ns"), "{threads}");
}

#[test]
fn a_store_whose_processor_is_full_is_the_limit() {
    let Some(group) = Group::new("store", 10) else {
        say("skipped: control groups may not be made here");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let into = format!("echo $$ > {}", group.0.join("cgroup.procs").display());
    let store = Store::start_at(path, "service: {time: {constant: 100us}}", "127.0.0.1", &into);
    let (report, _) = judged(path, &[&store], "s3 get --concurrent 16 --objects 20", "");
    holds("server CPU", &report, "store", false);
}

#[test]
fn a_way_that_is_long_or_loses_packets_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let ms = Duration::from_millis;
    for (name, way) in [
        ("added round trip", Way { one_way: ms(10), lost_each: None }),
        ("loss", Way { one_way: ms(0), lost_each: Some(33) }),
    ] {
        let told = far::within(way, || {
            let script = "service: {time: {constant: 1ms}}";
            let mut store = Store::start_at(path, script, NEAR, "");
            store.address = store.address.replace(NEAR, FAR);
            judged(path, &[&store], "s3 get --concurrent 16 --objects 20", "").0
        });
        match told {
            Some(report) => holds(name, &report, "network", false),
            None => say("skipped: networks of one's own may not be made here"),
        }
    }
}

#[test]
fn a_client_with_one_connection_is_the_limit_and_can_fail_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = Store::start(path, "service: {time: {constant: 3ms}}");
    let line = "s3 get --concurrent 1 --objects 20 --fail-on-client-limit";
    let (report, code) = judged(path, &[&store], line, "");
    holds("one connection", &report, "client-connections", true);
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
    let line = "s3 get --rps-limit 50/s --concurrent 4 --objects 20 --fail-on-client-limit";
    let (report, code) = judged(path, &[&store], line, "");
    let is_client = report["verdict"]["is_client_limit"] == true;
    assert_eq!(code, if is_client { 3 } else { 0 }, "{:#}", report["verdict"]);
}

#[test]
fn a_client_without_descriptors_is_the_limit_and_its_record_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = Store::start(path, "service: {time: {constant: 3ms}}");
    for line in ["s3 put --concurrent 64", "s3 put --concurrent 2000 --transport io_uring"] {
        let (report, _) = judged(path, &[&store], line, "ulimit -n 48");
        holds("fd limit", &report, "client-connections", true);
        let stage = report["stages"].as_array().unwrap().last().unwrap();
        let evidence = stage["verdict"].to_string();
        assert!(evidence.contains("for want of a descriptor (limit 48)"), "{evidence}");
        // Those that found one did their work, and the record found its own.
        let total = &stage["rows"][0]["total"]["stage_total"];
        assert!(total["ops_ok_count"].as_u64() > Some(0), "{line}: {total}");
    }
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
    // Where others leave the store no processor, the client never comes to its bound.
    for _ in 0..5 {
        let (report, _) = judged(path, &[&store], "s3 get --concurrent 16 --objects 20", &into);
        let quota = &evidence(path)["quota"];
        let count = |name: &str| quota[name].as_u64().unwrap();
        if count("throttled_count") * 2 >= count("periods_count") {
            return holds("client cgroup at 20 % CPU", &report, "client-cpu", true);
        }
        say(&format!("the client did not come to its bound: {quota}"));
    }
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
         \"$0\" s3 put --host 127.0.0.1:9000 --access-key '' --create-bucket --concurrent 16 \
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
    holds("few ports", &report, "client-connections", true);
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
