//! A directory in which the commands of one page run, with what they need around it: files of the
//! reader's, earlier runs, servers, a fleet, a console, and a shell that finds `plimsoll`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use plimsoll_testkit::documents::{Block, workflow_runs};

use super::cut::{Stands, cut, pointed};
use super::{repository, stand_ins};
use crate::console::Served;
use crate::fleet::Fleet;
use crate::harness::{self, Target, plimsoll, stderr};

/// Names that pages give to runs of the reader's: made before, each a short one.
const RUNS: [&str; 6] =
    ["RUN", "BEFORE", "AFTER", "CLIENT1", "CLIENT2", "plimsoll-s3-mixed-20261124t120000z-ab12"];

/// The servers that pages are run against.
pub(super) struct Servers<'a> {
    pub(super) store: &'a Target,
    /// A master of SeaweedFS, where one was started.
    pub(super) master: &'a str,
}

pub(super) struct Scene<'a> {
    page: &'a str,
    place: tempfile::TempDir,
    stands: Stands,
    /// What the page exports, as a shell takes it.
    exports: String,
    environment: Vec<(String, String)>,
    fleet: Option<Fleet>,
    console: Option<Served>,
    /// A store that the page stops and lets go on by its process id.
    stopped: Option<Stopped>,
    count: usize,
    /// What did not work, and what it said.
    wrong: Vec<String>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(page: &'a str, blocks: &[Block], servers: &'a Servers<'a>) -> Self {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        for directory in ["docs", "workloads"] {
            symlink(repository().join(directory), at.join(directory)).unwrap();
        }
        fs::create_dir_all(at.join("mnt/fs")).unwrap();
        fs::create_dir(at.join("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_plimsoll"), at.join("bin/plimsoll")).unwrap();
        // Other machines are not here: what was to be done on them is written down.
        let ssh = at.join("bin/ssh");
        fs::write(&ssh, format!("#!/bin/sh\necho \"$*\" >> {}/ssh.log\n", at.display())).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let stands = Stands {
            host: servers.store.host.clone(),
            keys: (servers.store.access_key.clone(), servers.store.secret_key.clone()),
            master: servers.master.to_owned(),
            place: at.display().to_string(),
            console: String::new(),
        };
        let text: String = blocks.iter().map(|block| &*block.body).collect();
        for (name, content) in stand_ins::files(&stands) {
            // What a command of the page makes is not there before.
            if text.contains(name) && !text.contains(&format!("-o {name}")) {
                fs::write(at.join(name), content).unwrap();
            }
        }
        for block in blocks {
            if let Some(name) = block.file() {
                let (access, secret) = &stands.keys;
                let keys = format!("accesskey={access};secretkey={secret}");
                let body = pointed(&block.body, &stands)
                    .replace("accesskey=KEY;secretkey=SECRET", &keys)
                    .replace("runtime=\"60\"", "runtime=\"1\"");
                fs::write(at.join(name), body).unwrap();
            }
        }
        let (store, environment) = (servers.store, Vec::new());
        let mut scene = Self {
            page,
            stands,
            exports: String::new(),
            environment,
            fleet: None,
            console: None,
            stopped: None,
            count: 0,
            wrong: Vec::new(),
            place,
        };
        scene.set("PLIMSOLL_ACCESS_KEY", &store.access_key);
        scene.set("PLIMSOLL_SECRET_KEY", &store.secret_key);
        scene.make_runs(RUNS.iter().copied().filter(|name| text.contains(name)));
        scene
    }

    /// Makes runs of these names, all at the same time, as those of several clients are.
    fn make_runs(&self, names: impl Iterator<Item = &'static str>) {
        let begin = |name| {
            let line = "s3 get --objects 20 --obj.size 4KiB --duration 2s --run-dir";
            let mut command = plimsoll(self.place.path());
            command.args(line.split(' ')).arg(name).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        };
        let running: Vec<Child> = names.map(begin).collect();
        for mut run in running {
            assert!(run.wait().unwrap().success(), "{}: a run before failed", self.page);
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Runs the commands of a block in their order, and returns how many of them are the program's.
    pub(super) fn run(&mut self, block: &Block) -> usize {
        let before = self.count;
        let has = |text: &str| block.lines.iter().any(|line| line.contains(text));
        if has("--fleet") && !has("plimsoll fleet up") && self.fleet.is_none() {
            self.fleet_up();
            self.agent("plimsoll agent --name client-1");
            self.agent("plimsoll agent --name client-2");
        }
        for line in block.shell_lines() {
            match line.split(" #").next().unwrap_or_default().trim_end() {
                line if line.starts_with("export ") => {
                    let line = cut(line, &self.stands);
                    if line.contains('=') {
                        self.exports.push_str(&line);
                        self.exports.push('\n');
                    }
                }
                "plimsoll fleet up" => self.fleet_up(),
                "plimsoll console" => self.console(),
                line if line.starts_with("plimsoll fleet up ") => self.fleet_up(),
                line if line.starts_with("plimsoll agent ") => self.agent(line),
                line if line.starts_with("PLIMSOLL_JOIN=") => self.agent(line),
                line if line.starts_with("plimsoll oracle") => self.store(line),
                line => self.shell(line),
            }
        }
        self.count - before
    }

    /// Runs the scripts of a workflow for continuous integration.
    ///
    /// Returns what was wrong, and what it wrote as its summary.
    pub(super) fn run_workflow(mut self, workflow: &str) -> (Vec<String>, String) {
        let summary = self.place.path().join("summary.md").display().to_string();
        self.set("GITHUB_STEP_SUMMARY", &summary);
        for script in workflow_runs(workflow) {
            // What starts the releases is the reader's own.
            if script.starts_with("./") {
                continue;
            }
            let joined = script.replace("\\\n", " ").replace("\"127.0.0.1:$2\"", "HOST");
            let lines = joined.lines().map(|line| cut(line, &self.stands));
            let script: Vec<String> = lines.collect();
            self.shell(&script.join("\n"));
        }
        (self.wrong, fs::read_to_string(summary).unwrap_or_default())
    }

    fn fleet_up(&mut self) {
        let fleet = Fleet::start_on("127.0.0.1").expect("nats-server is there");
        let state = fleet.place.path().join("state").display().to_string();
        self.set("XDG_STATE_HOME", &state);
        self.fleet = Some(fleet);
        self.count += 1;
    }

    fn agent(&mut self, line: &str) {
        let name = line.split_once("--name ").map_or("node1", |(_, name)| name.trim());
        self.fleet.as_mut().expect("a fleet is up").join(name, &[]);
        self.count += 1;
    }

    fn console(&mut self) {
        let console = Served::start(self.place.path(), "");
        self.stands.console.clone_from(&console.address);
        self.console = Some(console);
        self.count += 1;
    }

    /// Serves a store for as long as it takes to say where.
    fn store(&mut self, line: &str) {
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        if !words.contains(&"--listen") {
            words.extend(["--listen", "127.0.0.1:0"]);
        }
        drop(Stopped::start(self.place.path(), &words));
        self.count += 1;
    }

    fn shell(&mut self, line: &str) {
        let mut stands = self.stands.clone();
        if line.contains("$PID") {
            let keys = ["--access-key", harness::ACCESS_KEY, "--secret-key", harness::SECRET_KEY];
            let words = ["oracle", "--listen", "127.0.0.1:0", "--threads", "1"];
            let (store, host) = Stopped::start(self.place.path(), &[&words[..], &keys].concat());
            self.set("PID", &store.0.id().to_string());
            self.set("PLIMSOLL_ACCESS_KEY", harness::ACCESS_KEY);
            self.set("PLIMSOLL_SECRET_KEY", harness::SECRET_KEY);
            (self.stopped, stands.host) = (Some(store), host);
        }
        let script = match line.contains('\n') {
            true => line.to_owned(),
            false => cut(line, &stands),
        };
        let output = self.sh(&format!("{}{script}", self.exports));
        self.judge(&script, &output);
        self.count += line.lines().filter(|line| line.trim().starts_with("plimsoll ")).count();
    }

    fn sh(&self, script: &str) -> Output {
        let at = self.place.path();
        let mut command = Command::new("sh");
        command.args(["-e", "-c", script]).current_dir(at).stdin(Stdio::null());
        for (name, value) in plimsoll(at).get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", at.join("bin").display()));
        command.output().unwrap()
    }

    fn judge(&mut self, script: &str, output: &Output) {
        let (page, said) = (self.page, stderr(output));
        let printed = String::from_utf8_lossy(&output.stdout);
        // What a busy machine makes of a run, which the run then says; and what gates say of runs
        // of a second.
        let is_busy =
            ["SCHEDULE NOT KEPT", "no load line"].iter().any(|words| said.contains(words));
        let is_judged = script.contains("--gate") && printed.contains("nconclusive");
        let is_late = output.status.code() == Some(1) && (is_busy || script.contains("--gate"));
        let is_fine = output.status.success() || is_late || is_judged;
        if !is_fine {
            let status = output.status;
            self.wrong.push(format!("{page}: {script}: {status}: {said}\n{printed}"));
        }
        let is_quiet = [" -o ", ">"].iter().any(|words| script.contains(words));
        if script.starts_with("plimsoll ") && !is_quiet && printed.is_empty() {
            self.wrong.push(format!("{page}: {script} prints nothing: {said}"));
        }
    }

    /// Checks what is left when all commands of the page have run.
    ///
    /// Returns what was wrong.
    pub(super) fn end(mut self, blocks: &[&Block]) -> Vec<String> {
        let asked = blocks.iter().flat_map(|block| &block.lines);
        let remote = asked.filter(|line| line.contains("ssh ")).count();
        let log = self.place.path().join("ssh.log");
        let done = fs::read_to_string(log).unwrap_or_default();
        if (remote > 0) == done.is_empty() {
            self.wrong.push(format!("{}: no event ran, or none was asked for: {done}", self.page));
        }
        let left = fs::read_dir(self.place.path().join("mnt/fs/plimsoll"));
        if left.is_ok_and(|left| left.count() > 0) {
            self.wrong.push(format!("{}: files are left", self.page));
        }
        self.wrong
    }
}

/// A store in a process of its own, which a page stops and lets go on.
struct Stopped(Child);

impl Stopped {
    /// Starts one, and returns its host too.
    fn start(directory: &Path, words: &[&str]) -> (Self, String) {
        let mut command = plimsoll(directory);
        command.args(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let host = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        (Self(child), host)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
