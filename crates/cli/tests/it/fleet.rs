//! `plimsoll fleet up`, agents, and runs that they carry out.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fleet_files::names_in;
use crate::harness::{Background, Target, oracle, plimsoll, stderr};

/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(60);

/// A process with the lines that it says on stderr.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Receiver<String>,
    pub(crate) heard: Vec<String>,
}

impl Running {
    pub(crate) fn start(directory: &Path, words: &[&str], envs: &[(&str, &str)]) -> Self {
        let mut command = plimsoll(directory);
        command.args(words).envs(envs.iter().copied());
        Self::of(command)
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in errors.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, heard: Vec::new() }
    }

    /// Waits until it says that.
    #[track_caller]
    pub(crate) fn hear(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(LONG);
            let line = line.unwrap_or_else(|_| panic!("no `{text}` in {:#?}", self.heard));
            self.heard.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it has ended; returns its exit code.
    fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A fleet on this machine.
pub(crate) struct Fleet {
    pub(crate) up: Running,
    pub(crate) agents: Vec<Running>,
    pub(crate) place: tempfile::TempDir,
    pub(crate) token: String,
    pub(crate) flag: String,
}

/// Returns the token in the line by which agents join.
fn token_of(line: &str) -> String {
    let token = line.trim().strip_prefix("PLIMSOLL_JOIN=").unwrap();
    token.strip_suffix(" plimsoll agent").unwrap().to_owned()
}

impl Fleet {
    /// Starts one with agents of these names; `None` where the live tier was switched off.
    pub(crate) fn start(names: &[&str], flags: &[&str]) -> Option<Self> {
        let mut fleet = Self::start_on("127.0.0.1")?;
        names.iter().for_each(|name| fleet.join(name, flags));
        Some(fleet)
    }

    /// Starts one without agents whose server listens on an address.
    pub(crate) fn start_on(address: &str) -> Option<Self> {
        let program = plimsoll_testkit::nats_server()?;
        let place = tempfile::tempdir().unwrap();
        let files = place.path().join("state/plimsoll/fleet").display().to_string();
        let program = program.display().to_string();
        let words = [
            "fleet",
            "up",
            "--listen",
            &format!("{address}:0"),
            "--nats-server",
            &program,
            "--directory",
            &files,
        ];
        let mut up = Running::start(place.path(), &words, &[]);
        let mut line = String::new();
        BufReader::new(up.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let token = token_of(&line);
        Some(Self { up, agents: Vec::new(), place, token, flag: format!("--fleet={files}") })
    }

    pub(crate) fn join(&mut self, name: &str, flags: &[&str]) {
        self.join_as(plimsoll(self.place.path()), name, flags);
    }

    /// Has an agent join that is started by a command.
    pub(crate) fn join_as(&mut self, mut command: Command, name: &str, flags: &[&str]) {
        let files = self.files_of(name).display().to_string();
        let mut words = vec!["agent", "--name", name, "--directory", &files];
        if !flags.contains(&"--weight") {
            words.extend(["--weight", "1"]);
        }
        words.extend(flags);
        // Not on the command line, where everybody sees it.
        command.args(words).env("PLIMSOLL_JOIN", &self.token);
        let mut agent = Running::of(command);
        agent.hear("is part of the fleet as");
        self.agents.push(agent);
        self.up.hear(&format!("{name} has joined"));
    }

    pub(crate) fn files_of(&self, name: &str) -> PathBuf {
        self.place.path().join(format!("agent-{name}"))
    }

    /// Returns what an agent keeps beside its key and its mark.
    pub(crate) fn kept(&self, name: &str) -> Vec<String> {
        let names = names_in(&self.files_of(name)).into_iter();
        names.filter(|name| !["identity", ".plimsoll-state"].contains(&&**name)).collect()
    }

    pub(crate) fn command(&self, target: &Target, line: &str) -> Command {
        let mut command = target.command(self.place.path(), line);
        command.arg(&self.flag);
        command
    }

    pub(crate) fn run(&self, target: &Target, line: &str) -> Output {
        self.command(target, line).output().unwrap()
    }

    /// Begins a run, and waits until it measures.
    pub(crate) fn measuring(&self, target: &Target, line: &str) -> Background {
        let mut running = Background::start(self.command(target, line));
        running.await_line("measure: ");
        running
    }
}

pub(crate) fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

/// Returns the agents of the fleet that is kept by default.
pub(crate) fn agents_at(place: &Path) -> Vec<Value> {
    let mut command = plimsoll(place);
    command.env("XDG_STATE_HOME", place.join("state"));
    let output = command.args(["fleet", "agents", "--json", "--fleet"]).output().unwrap();
    json_of(&output).as_array().unwrap().clone()
}

/// So many of each, in a fixed order, whatever carries them out.
const MIXED: &str = "s3 mixed --objects 40 --obj.size 4KiB --concurrent 6 --duration 1s --seed 7";

#[test]
fn agents_carry_a_run_out_and_leave_one_record() {
    let Some(fleet) = Fleet::start(&["node1", "node2", "node3"], &[]) else { return };
    let target = oracle();
    let output =
        fleet.run(&target, &format!("{MIXED} --json --run-dir run --agents node{{1...3}}"));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("3 agents: node1, node2, node3"), "{}", stderr(&output));
    let report = json_of(&output);
    let agents = report["agents"].as_array().unwrap();
    let rows: u64 = agents.iter().map(|agent| agent["rows_count"].as_u64().unwrap()).sum();
    assert!(rows > 40, "{rows}");
    assert!(agents.iter().all(|agent| {
        agent["lost"].is_null() && agent["clock_uncertainty_ns"].as_u64().is_some()
    }));
    assert_eq!(report["clients"], serde_json::json!(["node1", "node2", "node3"]));
    // What earlier commands read of a run on one machine they read of this one.
    let place = fleet.place.path();
    for line in
        ["analyze run", "compare run run", "report run --output page.html", "export run -o ops.csv"]
    {
        let output = plimsoll(place).args(line.split(' ')).output().unwrap();
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    }
    // Nothing of it is left with the agents, nor anywhere a secret.
    for name in ["node1", "node2", "node3"] {
        let left = fleet.kept(name).len();
        assert_eq!(left, 0, "{name}");
    }
    let secret = target.secret_key.as_bytes();
    let mut folders = vec![place.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if let Ok(bytes) = std::fs::read(entry.path()) {
                let found = bytes.windows(secret.len()).any(|window| window == secret);
                assert!(!found, "the secret key is in {}", entry.path().display());
            }
        }
    }
    // Without a place it is looked for where it is kept by default.
    let listed = agents_at(place);
    let names: Vec<&Value> = listed.iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["node1", "node2", "node3"]);
}

#[test]
fn a_fleet_does_what_one_process_does() {
    let Some(fleet) = Fleet::start(&["a", "b"], &[]) else { return };
    let (target, other) = (oracle(), oracle());
    const LINE: &str =
        "s3 delete --objects 300 --obj.size 1KiB --batch 7 --concurrent 5 --seed 3 --json";
    let hashes = |report: &Value| -> Vec<String> {
        let stages = report["stages"].as_array().unwrap();
        stages.iter().map(|stage| stage["stream_hash"].to_string()).collect()
    };
    let by_fleet = fleet.run(&target, LINE);
    assert!(by_fleet.status.success(), "{}", stderr(&by_fleet));
    let alone = other.command(fleet.place.path(), LINE).output().unwrap();
    assert_eq!(hashes(&json_of(&by_fleet)), hashes(&json_of(&alone)));
}

#[test]
fn an_agent_that_is_ended_in_a_run_does_not_look_as_if_all_went_well() {
    let Some(mut fleet) = Fleet::start(&["a", "b", "c"], &[]) else { return };
    let target = oracle();
    for (idle, expected) in [(true, 0), (false, 143)] {
        let line = "s3 get --objects 30 --obj.size 1KiB --concurrent 6 --duration 60s";
        let running = (!idle).then(|| fleet.measuring(&target, line));
        let agent = fleet.agents.pop().unwrap();
        agent.signal(Signal::TERM);
        assert_eq!(agent.end(), Some(expected), "idle: {idle}");
        if let Some(running) = running {
            running.signal(Signal::TERM);
            let (code, _, heard) = running.end();
            assert_eq!(code, Some(143), "{heard}");
        }
    }
}

#[test]
fn an_agent_that_is_killed_is_missed_and_the_run_goes_on() {
    let Some(mut fleet) = Fleet::start(&["a", "b", "c"], &[]) else { return };
    let target = oracle();
    let line = "s3 get --objects 30 --obj.size 1KiB --concurrent 6 --duration 4s --run-dir run";
    let mut running = fleet.measuring(&target, line);
    fleet.agents[1].signal(Signal::KILL);
    running.await_line("agent b has disconnected");
    let (code, text, heard) = running.end();
    assert_eq!(code, Some(1), "{heard}");
    assert!(heard.contains("agent b is lost"), "{heard}");
    assert!(heard.contains("its share of the work is missing"), "{heard}");
    assert!(text.contains("DEGRADED: agent b was lost in stage"), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("everything that it did is missing here (`plimsoll fleet collect`"),
        "{text}"
    );
    assert!(text.starts_with("s3 get (DEGRADED):"), "{text}");
    assert!(flat.contains("· rates are partial, as agent b was lost"), "{text}");
    assert!(flat.contains("agents 3, one lost (b): a, b, c; their clocks"), "{text}");
    assert!(!flat.contains("ended no operation"), "{text}");
    let place = fleet.place.path().to_path_buf();
    let agent = || {
        let read = plimsoll(&place).args(["analyze", "run", "--json"]).output().unwrap();
        let report = json_of(&read);
        assert_eq!((read.status.code(), &report["state"]), (Some(1), &Value::from("degraded")));
        report["agents"][1].clone()
    };
    // Where there is no place for it, it is said beside.
    let degraded = "DEGRADED: agent b was lost, so its rates are partial";
    for (line, code) in [
        ("as warp analyze run", 1),
        ("as warp cmp run run", 0),
        ("report run -o page.html", 0),
        ("export run -o ops.csv", 0),
    ] {
        let output = plimsoll(&place).args(line.split(' ')).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(said.contains(degraded), "{line}: {said}");
    }
    let page = std::fs::read_to_string(place.join("page.html")).unwrap();
    assert!(page.contains("s3 get (DEGRADED)</h1>") && page.contains("rates are partial"));
    let (lost, rows) = (agent()["lost"].clone(), agent()["rows_count"].clone());
    assert!(lost["heard_ns"].as_u64() < lost["at_ns"].as_u64(), "{lost}");
    assert!(rows.is_null());
    // When it is there again, what it had saved is collected.
    fleet.join("b", &[]);
    let output = plimsoll(&place).args(["fleet", "collect", "run", &fleet.flag]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(agent()["rows_count"].as_u64().unwrap() > 0);
    let read = plimsoll(&place).args(["analyze", "run", "--analyze.v"]).output().unwrap();
    let text = String::from_utf8(read.stdout).unwrap().replace("\n         ", " ");
    assert!(text.contains("what it recorded is here"), "{text}");
    assert!(text.contains("of what agent b recorded: part-000000.parquet was never"), "{text}");
    // No gate is kept by such a run.
    let line = ["compare", "run", "run", "--json", "--gate", "errors<=100%"];
    let compared = plimsoll(&place).args(line).output().unwrap();
    let (code, compared) = (compared.status.code(), json_of(&compared));
    assert_eq!((code, &compared["is_incomplete"]), (Some(3), &Value::Bool(true)), "{compared}");
    let said = serde_json::json!({ "run": "run", "sentence": degraded });
    assert!(compared["warnings"].as_array().unwrap().contains(&said), "{compared}");
    assert_eq!(fleet.kept("b"), [""; 0]);
}

#[test]
fn an_agent_that_is_back_before_the_end_hands_in_what_it_recorded() {
    let Some(mut fleet) = Fleet::start(&["a", "b", "c"], &[]) else { return };
    let target = oracle();
    let line = "s3 get --objects 30 --obj.size 1KiB --concurrent 6 --duration 4s --run-dir run";
    let mut running = fleet.measuring(&target, line);
    let saved = fleet.files_of("b");
    let is_saved = || {
        let mut parts = std::fs::read_dir(&saved).unwrap().map(|part| part.unwrap().path());
        parts.any(|part| part.join("ops/part-000000.parquet.tail").exists())
    };
    while !is_saved() {
        assert!(!running.has_ended(), "nothing was saved");
    }
    fleet.agents[1].signal(Signal::KILL);
    running.await_line("agent b has disconnected");
    fleet.join("b", &[]);
    running.await_line("agent b is back, and hands in what it recorded");
    let (code, text, heard) = running.end();
    assert_eq!(code, Some(1), "{heard}");
    assert!(text.contains("DEGRADED: agent b was lost in stage"), "{text}");
    assert!(text.contains("what it recorded is here"), "{text}");
    let place = fleet.place.path();
    let read = plimsoll(place).args(["analyze", "run", "--json"]).output().unwrap();
    let report = json_of(&read);
    let rows = |agent: &Value| agent["rows_count"].as_u64().unwrap();
    let agents = report["agents"].as_array().unwrap();
    assert!(rows(&agents[1]) > 0);
    let all: u64 = report["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| {
            let check = &stage["op_log"];
            assert_eq!(check["rows_count"], check["ops_counted_count"], "{check}");
            check["rows_count"].as_u64().unwrap()
        })
        .sum();
    assert_eq!(agents.iter().map(rows).sum::<u64>(), all);
    assert_eq!(fleet.kept("b"), [""; 0]);
}

#[test]
fn a_frozen_agent_comes_back() {
    let Some(fleet) = Fleet::start(&["a", "b"], &[]) else { return };
    let target = oracle();
    let line = "s3 get --objects 30 --obj.size 1KiB --concurrent 4 --duration 4s";
    let mut running = fleet.measuring(&target, line);
    fleet.agents[0].signal(Signal::STOP);
    running.await_line("agent a has not responded");
    fleet.agents[0].signal(Signal::CONT);
    running.await_line("agent a is back");
    let (code, text, heard) = running.end();
    assert_eq!(code, Some(0), "{heard}");
    assert!(!text.contains("DEGRADED"), "{text}");
}

#[test]
fn runs_go_on_when_the_server_of_their_messages_is_killed() {
    let Some(mut fleet) = Fleet::start(&["a", "b"], &[]) else { return };
    let target = oracle();
    let line = "s3 get --objects 30 --obj.size 1KiB --concurrent 4 --duration 4s";
    let running = fleet.measuring(&target, line);
    let pid = Pid::from_child(&fleet.up.child).as_raw_nonzero();
    let children = format!("/proc/{pid}/task/{pid}/children");
    let child: i32 = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    fleet.up.hear("was restarted");
    let (code, text, heard) = running.end();
    assert_eq!(code, Some(0), "{heard}");
    assert!(!text.contains("DEGRADED"), "{text}");
}

#[test]
fn agents_of_a_killed_coordinator_keep_their_parts() {
    let Some(mut fleet) = Fleet::start(&["a", "b"], &[]) else { return };
    let target = oracle();
    let line = "s3 get --objects 30 --obj.size 1KiB --concurrent 4 --duration 1m";
    let running = fleet.measuring(&target, line);
    running.signal(Signal::KILL);
    for agent in &mut fleet.agents {
        agent.hear("has not been heard of; leaving the run");
        agent.hear("is kept in");
    }
    let place = fleet.place.path();
    let record = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name());
    let record = record.map(|name| name.into_string().unwrap());
    let record = record.into_iter().find(|name| name.starts_with("plimsoll-")).unwrap();
    // Until then the record says where what is missing is to be had.
    let output = plimsoll(place).args(["analyze", &record]).output().unwrap();
    assert!(stderr(&output).contains("`plimsoll fleet collect"), "{}", stderr(&output));
    let collect = || {
        let output = plimsoll(place).args(["fleet", "collect", &record, &fleet.flag]).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    let said = collect();
    assert!(said.contains("a: ") && said.contains("b: "), "{said}");
    let output = plimsoll(place).args(["analyze", &record, "--json"]).output().unwrap();
    let report = json_of(&output);
    assert_eq!(report["state"], "interrupted");
    let rows = |agent: &Value| agent["rows_count"].as_u64().unwrap();
    assert!(report["agents"].as_array().unwrap().iter().map(rows).all(|rows| rows > 0));
    // What is there is not taken twice, and nobody keeps it any longer.
    assert!(collect().contains("nothing of that run is missing"));
    for name in ["a", "b"] {
        assert_eq!(fleet.kept(name), [""; 0]);
    }
    // They are free for the next run.
    let output = fleet.run(&target, MIXED);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn what_a_fleet_cannot_do_is_refused_before_anything_is_made() {
    let Some(fleet) = Fleet::start(&["a"], &["--allow-hosts", "10.9.8.7", "--workers-max", "3"])
    else {
        return;
    };
    let target = oracle();
    let refused = |line: &str, why: &str| {
        let output = fleet.run(&target, line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    };
    let get = "s3 get --objects 5 --obj.size 1KiB --duration 1s";
    refused(&format!("{get} --concurrent 2"), "agent a cannot take part: its owner does not allow");
    refused(&format!("{get} --concurrent 4"), "its part has 4 workers (or operations in flight)");
    refused(
        &format!("{get} --concurrent 1 --rate 9/s --max-in-flight 5"),
        "its part has 5 workers (or operations in flight), and its owner allows 3",
    );
    // Four parts at a time.
    refused(
        "s3 put --obj.size 30MiB --duration 1s --concurrent 1",
        "its part has 4 workers (or operations in flight)",
    );
    refused(
        &format!("{get} --concurrent 2 --agents b --agents-wait 100ms"),
        "agents b have not joined after 100 ms",
    );
    refused(
        &format!("{get} --concurrent 2 --agents 2 --agents-wait 100ms"),
        "1 of 2 agents have joined",
    );
    refused(&format!("{get} --concurrent 2 --agents-min 3"), "only 1 agents have joined");
    let alone = |words: &[&str]| {
        let output = plimsoll(fleet.place.path()).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        stderr(&output)
    };
    let flag = &*fleet.flag;
    assert!(
        alone(&["s3", "get", flag]).contains("agents cannot reach a store inside this process")
    );
    // What no fleet can do is refused before one is looked for.
    for words in [
        &["file", "iops", "--fleet=nowhere", "--dir", "."][..],
        &["file", "iops", "--fleet=nowhere", "--dir", "/", "--on", ".", "--op", "read"],
        &["as", "mdtest", "--fleet=nowhere", "--np", "2", "-n", "5", "-d", "."],
    ] {
        let files = alone(words);
        assert!(files.contains("`.` is a different place on each agent"), "{files}");
    }
    let nowhere = alone(&["s3", "get", "--host", "127.0.0.1:1", "--fleet=nowhere"]);
    assert!(nowhere.contains("start one with `plimsoll fleet up`"), "{nowhere}");
    let no_token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(no_token.path(), "PLIMSOLL_JOIN=plimsoll1.no plimsoll agent\n").unwrap();
    let file = no_token.path().display().to_string();
    assert!(alone(&["agent", "--join-file", &file]).contains("that is not a token"));
    assert!(alone(&["agent"]).contains("--join-file FILE"));
    let heavy = alone(&["agent", "--weight", "1000001"]);
    assert!(heavy.contains("--weight 1000001: the most is 1000000"), "{heavy}");
    // Where everybody on the machine sees it.
    assert!(alone(&["agent", "--join", "plimsoll1.no"]).contains("unexpected argument '--join'"));
    for flag in ["--agents=2", "--abort-on-loss", "--parts-stay", "--agents-min=2"] {
        let said = alone(&["s3", "get", flag]);
        assert!(said.contains("add --fleet or --fabric"), "{said}");
    }
    // Nothing of these was left, neither records nor marks in the store.
    let names =
        std::fs::read_dir(fleet.place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["agent-a", "state"]);
    assert_eq!(fleet.kept("a"), [""; 0]);
}

/// Starts a NATS without TLS, and returns it with its URL.
pub(crate) fn plain_nats(place: &Path) -> Option<(Running, String)> {
    let mut command = Command::new(plimsoll_testkit::nats_server()?);
    command.args(["-a", "127.0.0.1", "-p", "-1", "-js", "-sd"]).arg(place.join("nats"));
    let mut server = Running::of(command);
    let line = server.hear("Listening for client connections on");
    let address = line.rsplit(' ').next().unwrap().to_owned();
    server.hear("Server is ready");
    Some((server, format!("nats://{address}")))
}

#[test]
fn credentials_of_stores_travel_with_tls_or_not_at_all() {
    let place = tempfile::tempdir().unwrap();
    let Some((_server, url)) = plain_nats(place.path()) else { return };
    let target = oracle();
    let keys = [
        ("AWS_ACCESS_KEY_ID", &*target.access_key),
        ("AWS_SECRET_ACCESS_KEY", &*target.secret_key),
    ];
    let files = place.path().join("agent").display().to_string();
    let own = "--allow-hosts=127.0.0.1";
    let words = ["agent", "--fabric", &url, "--name", "a", "--directory", &files, own];
    let mut agent = Running::start(place.path(), &words, &keys);
    agent.hear("is part of the fleet as");
    let run_on = |agents: &str, flags: &str| {
        let line = "s3 put --obj.size 1KiB --concurrent 2 --duration 300ms --create-bucket";
        let line =
            format!("{line} --agents {agents} --fabric {url} --host {} {flags}", target.host);
        let output = plimsoll(place.path()).args(line.split_whitespace()).envs(keys).output();
        let output = output.unwrap();
        (output.status.code(), stderr(&output))
    };
    let run = |flags: &str| run_on("a", &format!("--signature IAM {flags}"));
    let (code, said) = run("");
    assert_eq!(code, Some(2), "{said}");
    for part in ["without TLS", "tls://HOST:PORT", "(--fabric-ca)", "(--agent-credentials)"] {
        assert!(said.contains(part), "{said}");
    }
    let (code, said) = run("--agent-credentials");
    assert_eq!(code, Some(0), "{said}");
    // Those of its own that are named as the flags are.
    let keys = [
        ("PLIMSOLL_ACCESS_KEY", &*target.access_key),
        ("PLIMSOLL_SECRET_KEY", &*target.secret_key),
    ];
    let files = place.path().join("agent-b").display().to_string();
    let words = ["agent", "--fabric", &url, "--name", "b", "--directory", &files, own];
    let mut agent = Running::start(place.path(), &words, &keys);
    agent.hear("is part of the fleet as");
    let (code, said) = run_on("b", "--agent-credentials");
    assert_eq!(code, Some(0), "{said}");
    // Nor does what may be a secret, too.
    std::fs::create_dir(place.path().join("texts")).unwrap();
    std::fs::write(place.path().join("texts/one"), "a text").unwrap();
    let (code, said) = run("--agent-credentials --obj.generator file:texts");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("the files that content is made of (--obj.generator) would go"),
        "{said}"
    );
}

#[test]
fn agents_open_no_files_that_lie_with_the_coordinator() {
    let Some(mut fleet) = Fleet::start(&["a"], &[]) else { return };
    // One of them is at home elsewhere.
    let elsewhere = tempfile::tempdir().unwrap();
    let envs = [("PLIMSOLL_JOIN", &*fleet.token)];
    let words = ["agent", "--name", "b", "--weight", "1", "--directory", "parts"];
    let mut agent = Running::start(elsewhere.path(), &words, &envs);
    agent.hear("is part of the fleet as");
    fleet.agents.push(agent);
    let place = fleet.place.path();
    std::fs::create_dir(place.join("texts")).unwrap();
    std::fs::write(place.join("texts/one"), "all work and no play ".repeat(300)).unwrap();
    std::fs::write(place.join("texts/two"), vec![7; 100_000]).unwrap();
    let target = oracle();
    std::fs::write(place.join("hosts"), format!("\n{}\n", target.host)).unwrap();
    const LINE: &str = "s3 get --objects 40 --obj.size 4KiB --duration 300ms \
                        --obj.generator file:texts --agents 2";
    let run = |flags: &str| {
        let mut command = plimsoll(place);
        target.credentials(&mut command);
        let words = LINE.split_whitespace().chain(flags.split(' ')).chain([&*fleet.flag]);
        command.args(words).args(["--bucket", &target.bucket, "--create-bucket"]).output().unwrap()
    };
    let output = run("--concurrent 4 --host file:hosts --json");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report = json_of(&output);
    let agents = report["agents"].as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["rows_count"].as_u64() > Some(20)), "{agents:?}");
    assert_eq!(report["verification"]["mode"], "every-byte", "{report:#}");
    assert!(!said.contains("no worker"), "{said}");
    let output = run("--concurrent 1 --host file:hosts");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("warning: 1 of 2 agents has no worker in stage "), "{said}");
}

#[test]
fn more_content_than_agents_are_sent_is_refused_before_a_fleet_is_looked_for() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("texts")).unwrap();
    let file = std::fs::File::create(place.path().join("texts/large")).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    let mut command = oracle().command(place.path(), "s3 put --obj.generator file:texts");
    let output = command.arg("--fleet=nowhere").output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["agents are sent 1GiB at most", "--obj.generator", "leave --fleet out"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn help_lists_the_flags_that_count() {
    let place = tempfile::tempdir().unwrap();
    let help = |command: &str| {
        let output = plimsoll(place.path()).args(["fleet", command, "--help"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for command in ["token", "revoke", "agents", "collect"] {
        let text = help(command);
        assert!(text.contains("--fleet[=<DIR>]"), "{text}");
        for flag in ["--agents", "--abort-on-loss", "--agent-credentials"] {
            assert!(!text.contains(flag), "{command} {flag}: {text}");
        }
        let is_of_any_fabric = ["agents", "collect"].contains(&command);
        assert_eq!(text.contains("--fabric"), is_of_any_fabric, "{command}: {text}");
        assert_eq!(text.contains("--parts-stay"), command == "collect", "{command}: {text}");
    }
}

#[test]
fn agents_of_one_name_are_told_apart_and_come_back_as_who_they_were() {
    let Some(mut fleet) = Fleet::start(&[], &[]) else { return };
    let token = fleet.token.clone();
    let place = fleet.place.path().to_path_buf();
    let agent = |directory: &str| {
        let words = ["agent", "--name", "vm", "--weight", "1", "--directory", directory];
        Running::start(&place, &words, &[("PLIMSOLL_JOIN", &token)])
    };
    for (directory, id) in [("x", "a0001"), ("y", "a0002"), ("z", "a0003")] {
        let mut agent = agent(directory);
        agent.hear(&format!("vm is part of the fleet as {id}"));
        fleet.agents.push(agent);
    }
    let mut second = agent("x");
    second.hear("another agent uses x; each agent needs a directory of its own");
    assert_eq!(second.end(), Some(2));
    let gone = fleet.agents.remove(1);
    gone.signal(Signal::TERM);
    assert_eq!(gone.end(), Some(0));
    let mut back = agent("y");
    back.hear("vm is part of the fleet as a0002");
    fleet.agents.push(back);
    let said = |line: &str| {
        let output = plimsoll(&place).args(line.split(' ')).arg(&fleet.flag).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        (json_of(&output), stderr(&output))
    };
    let (listed, _) = said("fleet agents --json");
    let listed = listed.as_array().unwrap().iter();
    let listed: Vec<_> = listed
        .map(|each| [&each["id"], &each["name"]].map(|of| of.as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(listed, [["a0001", "vm"], ["a0002", "vm-2"], ["a0003", "vm-3"]]);
    let target = oracle();
    let line = "s3 get --objects 8 --obj.size 1KiB --concurrent 2 --duration 200ms --json";
    let output = fleet.run(&target, &format!("{line} --agents vm-3,vm"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let agents = json_of(&output)["agents"].clone();
    let agents = agents.as_array().unwrap().iter().map(|of| (of["id"].clone(), of["name"].clone()));
    let expected = [("a0003", "vm-3"), ("a0001", "vm")];
    let expected = expected.map(|(id, name)| (Value::from(id), Value::from(name)));
    assert_eq!(agents.collect::<Vec<_>>(), expected);
    let mut command = plimsoll(&place);
    let revoked = command.args(["fleet", "revoke", "vm-2"]).arg(&fleet.flag).output().unwrap();
    assert!(stderr(&revoked).contains("vm (a0002) is cut off"), "{}", stderr(&revoked));
}

#[test]
fn leave_to_take_part_is_given_and_taken_back() {
    let Some(mut fleet) = Fleet::start(&["a"], &[]) else { return };
    let say = |fleet: &Fleet, line: &str| {
        let mut command = plimsoll(fleet.place.path());
        let output = command.args(line.split(' ')).arg(&fleet.flag).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output))
    };
    let (_, line, _) = say(&fleet, "fleet token --uses 1");
    fleet.token = token_of(&line);
    fleet.join("b", &[]);
    let envs = [("PLIMSOLL_JOIN", &*fleet.token)];
    let words = ["agent", "--name", "c", "--directory", "agent-c"];
    let mut late = Running::start(fleet.place.path(), &words, &envs);
    late.hear("was used as often as it may be");
    let (code, _, said) = say(&fleet, "fleet revoke a nobody --token 2");
    assert_eq!(code, Some(1), "{said}");
    for part in [
        "a (a0001) is cut off",
        "`plimsoll fleet revoke --token 1` ends that",
        "token 2 lets no agent join any more",
        "warning: the fleet knows no agent nobody",
    ] {
        assert!(said.contains(part), "{said}");
    }
    // It is cut off as soon as the server has heard of it.
    let names = || -> Vec<String> {
        let (_, listed, _) = say(&fleet, "fleet agents --json");
        let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
        listed.iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!((0..20).any(|_| names() == ["b"]), "{:?}", names());
    let (code, _, said) = say(&fleet, "fleet revoke");
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn a_fleet_whose_files_cannot_be_written_stays_up_and_tries_again() {
    let Some(mut fleet) = Fleet::start(&["a"], &[]) else { return };
    let directory = PathBuf::from(fleet.flag.trim_start_matches("--fleet="));
    // What stands where a file is written before it gets its name cannot be replaced.
    let in_the_way = directory.join("nats.conf.tmp");
    std::fs::create_dir(&in_the_way).unwrap();
    let place = fleet.place.path().to_path_buf();
    let asks = |words: &[&str]| {
        let output = plimsoll(&place).args(words).arg(&fleet.flag).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    asks(&["fleet", "revoke", "a"]);
    let said = fleet.up.hear("nats.conf");
    assert!(said.contains("warning: ") && said.contains("tries again"), "{said}");
    assert!(asks(&["fleet", "agents", "--json"]).contains("a0001"), "it is still served");
    std::fs::remove_dir(&in_the_way).unwrap();
    fleet.up.hear("as it should be again");
    assert!((0..20).any(|_| !asks(&["fleet", "agents", "--json"]).contains("a0001")));
}

#[test]
fn a_password_in_the_address_of_a_fabric_is_not_repeated() {
    let place = tempfile::tempdir().unwrap();
    for url in ["nats://user:hush@[::1", "nats://user:hush@host:port", "user:hush@ho st"] {
        for words in [&["agent", "--fabric", url][..], &["fleet", "agents", "--fabric", url]] {
            let output = plimsoll(place.path()).args(words).output().unwrap();
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains("--fabric: ") && !said.contains("hush"), "{said}");
        }
    }
}

#[test]
fn a_stage_ends_by_what_all_agents_measure_together() {
    let Some(fleet) = Fleet::start(&["a", "b"], &[]) else { return };
    let target = oracle();
    let line = "s3 get --objects 20 --obj.size 1KiB --concurrent 4 --rps-limit 60/s --duration 1m \
                --autoterm --autoterm.dur 1s --autoterm.pct 60 --json";
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let output = fleet.run(&target, &format!("{line} --parts-stay"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("ended before its time was up"), "{said}");
    let report = json_of(&output);
    let stages = report["stages"].as_array().unwrap();
    let main = stages.iter().find(|stage| stage["is_result"] == true).unwrap();
    assert_eq!(main["ended_by"], "steady", "{main}");
    assert_eq!(report["state"], "complete");
    // What agents keep says the same of the stage that they were told to end.
    for name in ["a", "b"] {
        let [part] = &fleet.kept(name)[..] else { panic!("it keeps one part") };
        let mut command = plimsoll(&fleet.files_of(name));
        let own = json_of(&command.args(["analyze", part, "--json"]).output().unwrap());
        assert_eq!(own["state"], "complete");
        let stages = own["stages"].as_array().unwrap();
        let kept = stages.iter().find(|stage| stage["is_result"] == true).unwrap();
        let why = |stage: &Value| (stage["ended_by"].clone(), stage["ended_because"].clone());
        assert_eq!(why(kept), why(main), "{name}");
    }
    // 25/7 of a second at least, of all that was measured.
    let ops = main["rows"][0]["ops_count"].as_u64();
    assert!(ops.is_none_or(|ops| ops > 150), "{ops:?}");
}
