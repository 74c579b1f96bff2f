//! Running the binary, a store to run it against, and a bucket with foreign objects in it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use plimsoll_driver::{
    Admin, ByteRange, ContentSink, ContentSource, Driver, MissingRoot, Operation, Session,
};
use plimsoll_driver_s3::{Credentials, S3Config, S3Driver};
use plimsoll_http::{TlsConfig, TlsOptions, expand_hosts};
use plimsoll_model::{Clock, SharedClock};
use plimsoll_oracle::{Oracle, OracleConfig, Script};
use plimsoll_testkit::LiveServer;
use serde_json::Value;

pub(crate) const ACCESS_KEY: &str = "test-access";
pub(crate) const SECRET_KEY: &str = "test-secret-that-must-stay-secret";

/// Returns the binary, ready for arguments, in a directory of its own.
pub(crate) fn plimsoll(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.current_dir(directory).stdin(Stdio::null());
    for name in
        ["HOST", "MASTER", "FILER", "ACCESS_KEY", "SECRET_KEY", "SESSION_TOKEN", "TLS", "REGION"]
    {
        command.env_remove(format!("PLIMSOLL_{name}")).env_remove(format!("WARP_{name}"));
    }
    for name in ["PLIMSOLL_CLIENT_CERT", "PLIMSOLL_CLIENT_KEY", "OS_CERT", "OS_KEY"] {
        command.env_remove(name);
    }
    for name in plimsoll_driver_swift::VARIABLES {
        command.env_remove(name);
    }
    // Nobody is found to ask but who a test puts there.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("AWS_") || name.starts_with("MINIO_"))
        {
            command.env_remove(name);
        }
    }
    command.env("AWS_EC2_METADATA_DISABLED", "true");
    let nothing = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/no-profiles.ini");
    command.env("AWS_CONFIG_FILE", nothing).env("AWS_SHARED_CREDENTIALS_FILE", nothing);
    command
}

/// Runs a command line, words separated by blanks.
pub(crate) fn run_line(directory: &Path, line: &str) -> Output {
    plimsoll(directory).args(line.split_whitespace()).output().unwrap()
}

/// Returns what a command that must succeed printed.
#[track_caller]
pub(crate) fn printed(directory: &Path, line: &str) -> String {
    let output = run_line(directory, line);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{line}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns what a command that cannot be run said, which must be one line.
#[track_caller]
pub(crate) fn refused(directory: &Path, line: &str) -> String {
    let output = run_line(directory, line);
    assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// A store that the binary under test speaks to, and the test behind its back.
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) tls_ca: Option<std::path::PathBuf>,
    pub(crate) bucket: String,
    /// The embedded store, where it is one.
    pub(crate) oracle: Option<Oracle>,
}

/// Returns a fresh in-memory store.
pub(crate) fn oracle() -> Target {
    scripted(None)
}

/// Returns a fresh in-memory store that behaves as a script says.
pub(crate) fn scripted(script: Option<Script>) -> Target {
    started(script, false)
}

/// Returns a fresh in-memory store that also takes requests of nobody.
pub(crate) fn anonymous() -> Target {
    started(None, true)
}

fn started(script: Option<Script>, anonymous: bool) -> Target {
    let config = OracleConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        access_key: ACCESS_KEY.to_owned(),
        secret_key: SECRET_KEY.to_owned(),
        // More than the fastest machine writes in the half second of a small workload. Memory is
        // only taken as it is written.
        capacity_bytes: 8 << 30,
        threads: 1,
        anonymous,
        domain: None,
        md5_etags: false,
        tls: None,
        script,
        seed: 5,
    };
    let oracle = Oracle::start(config).unwrap();
    Target {
        host: oracle.addr().to_string(),
        access_key: ACCESS_KEY.to_owned(),
        secret_key: SECRET_KEY.to_owned(),
        tls_ca: None,
        bucket: "bench".to_owned(),
        oracle: Some(oracle),
    }
}

/// Returns a live server with a bucket of the test's own.
pub(crate) fn live(server: &LiveServer, bucket: &str) -> Target {
    Target {
        host: server.host().to_owned(),
        access_key: server.access_key.clone(),
        secret_key: server.secret_key.clone(),
        tls_ca: server.ca.clone(),
        bucket: bucket.to_owned(),
        oracle: None,
    }
}

impl Target {
    /// Returns the binary with a command line against this store, words separated by blanks.
    pub(crate) fn command(&self, directory: &Path, line: &str) -> Command {
        let mut command = self.plain_command(directory, line);
        // Most tests do not care whether their bucket exists; other tools create theirs anyway.
        if !line.starts_with("as ") {
            command.args(["--create-bucket", "--keep-bucket"]);
        }
        command
    }

    /// The same without leave to create the bucket.
    pub(crate) fn plain_command(&self, directory: &Path, line: &str) -> Command {
        let mut command = plimsoll(directory);
        command.args(line.split_whitespace());
        command.args(["--host", &self.host, "--bucket", &self.bucket]);
        if let Some(ca) = &self.tls_ca {
            command.arg("--tls").arg("--tls-ca").arg(ca);
        }
        self.credentials(&mut command);
        command
    }

    pub(crate) fn credentials(&self, command: &mut Command) {
        command.env("PLIMSOLL_ACCESS_KEY", &self.access_key);
        command.env("PLIMSOLL_SECRET_KEY", &self.secret_key);
        let scheme = if self.tls_ca.is_some() { "https" } else { "http" };
        command.env("AWS_ENDPOINT_URL", format!("{scheme}://{}", self.host));
    }

    pub(crate) fn driver(&self) -> S3Driver {
        let tls = self.tls_ca.clone().map(|ca| {
            TlsConfig::load(&TlsOptions { ca_file: Some(ca), ..TlsOptions::default() }).unwrap()
        });
        let endpoints = expand_hosts(&self.host, 80).unwrap();
        let config = S3Config {
            tls,
            credentials: Credentials::keys(&self.access_key, &self.secret_key, None),
            missing_bucket: MissingRoot::CreateAndKeep,
            ..S3Config::new(endpoints, &self.bucket, wall_now())
        };
        S3Driver::new(config).unwrap()
    }

    /// Writes `count` objects that no run wrote, some of them with names like a run's.
    pub(crate) fn plant(&self, count: u64) {
        self.put((0..count).map(foreign_key));
    }

    /// Writes objects with these keys.
    pub(crate) fn put(&self, keys: impl IntoIterator<Item = String>) {
        block_on(async {
            let (driver, clock) = (self.driver(), clock());
            driver.admin(&clock).ensure_root().await.unwrap();
            let mut session = driver.open_sessions(&clock, 1).remove(0);
            for (number, key) in (0..).zip(keys) {
                let mut content = Foreign(number);
                let put = Operation::Put { key: &key, content: &mut content };
                session.execute(None, put).await.result.unwrap();
            }
        });
    }

    /// Checks that the bucket holds the planted objects with their content, and nothing else.
    pub(crate) fn assert_only_planted(&self, count: u64) {
        let mut found = self.listed();
        let mut expected: Vec<String> = (0..count).map(foreign_key).collect();
        // SeaweedFS lists a folder in the place of its name without the slash.
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        block_on(async {
            let (driver, clock) = (self.driver(), clock());
            let mut session = driver.open_sessions(&clock, 1).remove(0);
            for number in 0..count {
                let key = foreign_key(number);
                let mut content = Same { number, at: 0, wrong: false };
                let range: Option<ByteRange> = None;
                let get = Operation::Get { key: &key, range, version: None, sink: &mut content };
                session.execute(None, get).await.result.unwrap();
                assert!(!content.wrong && content.at == Foreign(number).size(), "{key} changed");
            }
        });
    }

    /// Removes objects.
    pub(crate) fn remove(&self, keys: &[String]) {
        block_on(async {
            let (driver, clock) = (self.driver(), clock());
            let mut session = driver.open_sessions(&clock, 1).remove(0);
            session.execute(None, Operation::Delete { keys }).await.result.unwrap();
        });
    }

    /// Tells whether the bucket is there.
    pub(crate) fn exists(&self) -> bool {
        block_on(async {
            let found = self.driver().admin(&clock()).survey("", Some(1), true).await;
            found.is_ok()
        })
    }

    /// Returns every key in the bucket, however often a scripted store refuses to tell.
    pub(crate) fn listed(&self) -> Vec<String> {
        const TRIES: u32 = 50;
        block_on(async {
            let (driver, clock) = (self.driver(), clock());
            let mut admin = driver.admin(&clock);
            let mut found = admin.survey("", None, true).await;
            for _ in 1..TRIES {
                if found.is_ok() {
                    break;
                }
                found = admin.survey("", None, true).await;
            }
            found.unwrap().into_iter().map(|object| object.key).collect()
        })
    }
}

fn foreign_key(number: u64) -> String {
    match number % 4 {
        0 => format!("plimsoll/other-run/{number}"),
        1 => format!("plimsoll-{number}"),
        2 => format!("data/{number}.rnd"),
        _ => format!("{number}"),
    }
}

struct Foreign(u64);

impl ContentSource for Foreign {
    fn size(&self) -> u64 {
        self.0 % 50 + 1
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        for (at, byte) in (offset..).zip(buffer) {
            *byte = (self.0 + at) as u8;
        }
    }
}

struct Same {
    number: u64,
    at: u64,
    wrong: bool,
}

impl ContentSink for Same {
    fn restart(&mut self) {
        self.at = 0;
    }

    fn accept(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.wrong |= *byte != (self.number + self.at) as u8;
            self.at += 1;
        }
    }
}

/// Makes no time pass: enough for administration, which measures nothing.
struct Still;

impl Clock for Still {
    fn now(&self) -> plimsoll_model::Moment {
        plimsoll_model::Moment::EPOCH
    }
}

pub(crate) fn clock() -> SharedClock {
    Arc::new(Still)
}

fn wall_now() -> plimsoll_model::WallTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    plimsoll_model::WallTime::from_unix_ns(since.as_nanos() as u64)
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

/// Runs `command` to its end.
pub(crate) fn run(mut command: Command) -> Output {
    command.output().unwrap()
}

/// Returns what was printed on stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the stage that was measured, where there is one.
pub(crate) fn measured_stage(report: &Value) -> &Value {
    let stages = report["stages"].as_array().unwrap();
    let results: Vec<_> = stages.iter().filter(|stage| stage["is_result"] == true).collect();
    assert_eq!(results.len(), 1, "{report:#}");
    results[0]
}

/// Returns the row of what was measured, where that is one job of one stage.
pub(crate) fn measured(report: &Value) -> &Value {
    &measured_stage(report)["rows"][0]
}

/// Returns the counts of what was measured, where that is one job of one stage.
pub(crate) fn counts(report: &Value) -> &Value {
    &measured(report)["total"]["stage_total"]
}

/// Runs `command`, which must end with `code`, and returns the JSON object it prints.
pub(crate) fn run_json(mut command: Command, code: i32) -> Value {
    let output = command.arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Waits between two looks at something that another process brings about: looking without a rest
/// would take a processor from it. No result depends on how long it is.
pub(crate) fn pause() {
    std::thread::park_timeout(std::time::Duration::from_millis(10));
}

/// A run in the background whose progress lines can be awaited.
pub(crate) struct Background {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
    seen: String,
}

impl Background {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, lines, seen: String::new() }
    }

    /// Waits until a line on stderr holds `text`, and returns it.
    pub(crate) fn await_line(&mut self, text: &str) -> String {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            self.seen.push_str(&line);
            self.seen.push('\n');
            if line.contains(text) {
                return line;
            }
        }
        panic!("`{text}` was never printed, but:\n{}", self.seen);
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Sends a signal until it has ended: one soon after another signal counts as the same, and how
    /// soon it comes depends on how busy the machine is.
    pub(crate) fn signal_until_end(&mut self, signal: rustix::process::Signal) {
        while !self.has_ended() {
            self.signal(signal);
            pause();
        }
    }

    /// Tells whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end and returns exit code, stdout and stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        for line in self.lines.by_ref() {
            self.seen.push_str(&line.unwrap());
            self.seen.push('\n');
        }
        let output = self.child.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), stdout, self.seen)
    }
}

/// Returns the only run directory in `directory`.
pub(crate) fn run_directory(directory: &Path) -> std::path::PathBuf {
    let mut runs: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("run.json").exists())
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

/// Returns a document of a run without its checksum, which would not fit after a change.
pub(crate) fn without_checksum(text: &str) -> String {
    let at = text.rfind(",\n  \"checksum\"").unwrap();
    format!("{}\n}}\n", &text[..at])
}
