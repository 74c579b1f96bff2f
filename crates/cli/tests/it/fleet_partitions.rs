//! Agents behind networks that go down: each in a network namespace of its own.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::fleet::{Fleet, json_of};
use crate::harness::{Background, plimsoll, stderr};

/// A network namespace with one link to this one, until it is dropped.
struct Namespace {
    name: String,
    link: String,
    /// The address at this side of the link.
    address: String,
}

/// Runs `ip`, and returns what it complains of.
fn ip(line: &str) -> Result<(), String> {
    let output = Command::new("ip").args(line.split(' ')).output();
    let output = output.map_err(|error| error.to_string())?;
    output.status.success().then_some(()).ok_or_else(|| stderr(&output).trim().to_owned())
}

impl Namespace {
    /// Makes one; where the machine does not let us, says that the test is skipped.
    #[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
    fn new(test: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // 198.18.0.0/15 is for benchmarks, and nobody's (RFC 2544).
        let net = format!("198.{}.{}", 18 + (process >> 8) % 2, process % 256);
        let (near, far) = (number * 4 % 252 + 1, number * 4 % 252 + 2);
        let name = format!("plimsoll-{process}-{number}");
        let (link, address) = (format!("pl{process}n{number}"), format!("{net}.{near}"));
        let made = ip(&format!("netns add {name}"));
        let made = made.map(|()| Self { name, link, address });
        let made = made.and_then(|made| made.connect(&format!("{net}.{far}")).map(|()| made));
        match made {
            Ok(made) => Some(made),
            Err(why) => {
                println!("skipped: {test}: no network namespaces here: {why}");
                None
            }
        }
    }

    fn connect(&self, far: &str) -> Result<(), String> {
        let Self { name, link, address } = self;
        ip(&format!("link add {link} type veth peer name far netns {name}"))?;
        ip(&format!("addr add {address}/30 dev {link}"))?;
        ip(&format!("link set {link} up"))?;
        ip(&format!("-n {name} addr add {far}/30 dev far"))?;
        ip(&format!("-n {name} link set far up"))
    }

    /// Cuts the link, or joins it again.
    fn set(&self, state: &str) {
        ip(&format!("link set {} {state}", self.link)).unwrap();
    }

    /// Returns the program within it.
    fn plimsoll(&self, directory: &Path) -> Command {
        let plain = plimsoll(directory);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(plain.get_program());
        command.current_dir(directory).stdin(std::process::Stdio::null());
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The link goes with it.
        let _ = ip(&format!("link del {}", self.link));
        let _ = ip(&format!("netns del {}", self.name));
    }
}

/// A fleet of two agents, `far` behind a link.
fn fleet(namespace: &Namespace) -> Option<Fleet> {
    let mut fleet = Fleet::start_on(&namespace.address)?;
    fleet.join("near", &[]);
    fleet.join_as(namespace.plimsoll(fleet.place.path()), "far", &[]);
    Some(fleet)
}

/// Begins a run on files, which all namespaces share, and waits until it measures.
fn measuring(fleet: &Fleet, seconds: u32) -> Background {
    let place = fleet.place.path();
    let data = place.join("data");
    std::fs::create_dir(&data).unwrap();
    let workload = format!(
        "schema: plimsoll.workload/2
name: cut
targets: {{files: {{directory: {}}}}}
sets: {{f: {{files: 1, size: 256KiB, workers: 2}}}}
stages:
- {{name: fill, prepares: true, jobs: [{{workers: 2, work: {{fill: f}}}}]}}
- name: read
  duration: {seconds}s
  jobs:
  - {{workers: 2, pacing: {{capped: 400/s}}, work: {{blocks: {{on: f, read: {{block: 4KiB}}}}}}}}
",
        data.display()
    );
    std::fs::write(place.join("w.yaml"), workload).unwrap();
    let line = format!("run w.yaml --run-dir run --agents far,near {}", fleet.flag);
    let mut command = plimsoll(place);
    command.args(line.split(' '));
    let mut running = Background::start(command);
    running.await_line("read: ");
    running
}

fn analyzed(place: &Path) -> Value {
    let read = plimsoll(place).args(["analyze", "run", "--json"]).output().unwrap();
    json_of(&read)
}

#[test]
fn a_run_goes_on_when_an_agent_is_cut_off_for_a_while() {
    let test = "a_run_goes_on_when_an_agent_is_cut_off_for_a_while";
    if plimsoll_testkit::nats_server().is_none() {
        return;
    }
    let Some(namespace) = Namespace::new(test) else { return };
    let Some(fleet) = fleet(&namespace) else { return };
    let mut running = measuring(&fleet, 8);
    namespace.set("down");
    running.await_line("agent far has not responded");
    namespace.set("up");
    running.await_line("agent far is back");
    let (code, text, said) = running.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!text.contains("DEGRADED"), "{text}");
    let report = analyzed(fleet.place.path());
    assert_eq!(report["state"], "complete");
    let agents = report["agents"].as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["rows_count"].as_u64() > Some(0)), "{agents:?}");
}

#[test]
fn an_agent_that_is_cut_off_for_longer_is_given_up_and_its_part_is_collected() {
    let test = "an_agent_that_is_cut_off_for_longer_is_given_up_and_its_part_is_collected";
    if plimsoll_testkit::nats_server().is_none() {
        return;
    }
    let Some(namespace) = Namespace::new(test) else { return };
    let Some(mut fleet) = fleet(&namespace) else { return };
    let mut running = measuring(&fleet, 5);
    namespace.set("down");
    running.await_line("agent far is lost: it was not responding for");
    let (code, text, said) = running.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(text.contains("DEGRADED: agent far was lost in stage"), "{text}");
    let before = analyzed(fleet.place.path());
    let rows = |report: &Value, index: usize| report["agents"][index]["rows_count"].as_u64();
    assert_eq!(rows(&before, 0), None);
    fleet.agents[1].hear("is kept in");
    namespace.set("up");
    let collect = || {
        let mut command = plimsoll(fleet.place.path());
        command.args(["fleet", "collect", "run", &fleet.flag]).output().unwrap()
    };
    // It needs a moment to find its way back.
    crate::fleet_phases::wait_until("its part", || collect().status.code() == Some(0));
    let after = analyzed(fleet.place.path());
    assert!(rows(&after, 0) > Some(0), "{}", after["agents"]);
    assert_eq!(rows(&after, 1), rows(&before, 1));
    let stages = after["stages"].as_array().unwrap().iter();
    let all: u64 = stages.filter_map(|stage| stage["op_log"]["rows_count"].as_u64()).sum();
    assert_eq!(Some(all), rows(&after, 0).zip(rows(&after, 1)).map(|(a, b)| a + b));
    assert_eq!(fleet.kept("far"), [""; 0]);
}
