//! Profiles of the server while it is measured (`--serverprof`), by MinIO's admin API.
//!
//! MinIO offers two ways: a pair of calls, `profiling/start` and `profiling/download`, and one
//! call, `profile`, that lasts as long as it is told at the start. How long a run will be measured
//! is known only when it is over, so the pair is used.

use std::fmt;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plimsoll_driver_s3::{S3Config, admin_head};
use plimsoll_http::{Body, Client, Options, Request, ResponseHead, ResponseSink};
use plimsoll_model::{Moment, SharedClock};
use plimsoll_record::RunDirectory;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// What the file in the run directory is called.
pub(crate) const FILE_NAME: &str = "server-profiles.zip";
/// Kinds of profile that MinIO takes.
const KINDS: [&str; 7] = ["cpu", "cpuio", "mem", "block", "mutex", "threads", "trace"];
/// No kind of profile: what is started under it shows who may profile, and profiles nothing.
const NO_KIND: &str = "none";
const PATH: &str = "/minio/admin/v3/profiling/";
/// How long the server may take to start, and to hand over what it gathered.
const START_MAX: Duration = Duration::from_secs(30);
const DOWNLOAD_MAX: Duration = Duration::from_secs(300);
/// How long it may take when a run has failed and nobody wants the profiles.
const ABANDON_MAX: Duration = Duration::from_secs(5);
/// How much is kept of an answer; a trace of a long run is what could be larger.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// Which profiles are wanted, each kind once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProfileKinds(Vec<&'static str>);

impl FromStr for ProfileKinds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut kinds = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let known = KINDS.into_iter().find(|kind| *kind == word);
            let Some(kind) = known else {
                return Err(format!(
                    "`{word}` is no kind of profile; there are {}",
                    KINDS.join(", ")
                ));
            };
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.is_empty() {
            return Err(format!("no kind of profile is named; there are {}", KINDS.join(", ")));
        }
        Ok(Self(kinds))
    }
}

impl fmt::Display for ProfileKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// A server that profiles itself. Dropped while it does, it is made to stop.
pub(crate) struct ServerProfile {
    kinds: ProfileKinds,
    config: S3Config,
    clock: SharedClock,
    client: Client,
    runtime: Runtime,
    runs: bool,
}

impl ServerProfile {
    /// Asks the server whether it can be profiled by these credentials; profiles nothing yet.
    pub(crate) fn check(
        kinds: &ProfileKinds,
        config: &S3Config,
        clock: &SharedClock,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let options = Options {
            connect_timeout: config.connect_timeout,
            tls: config.tls.clone(),
            keep_alive: false,
            ..Options::default()
        };
        let endpoints = config.endpoints.iter().take(1).cloned().collect();
        let client = Client::new(endpoints, Rc::new(options), clock.clone());
        let mut profile = Self {
            kinds: kinds.clone(),
            config: config.clone(),
            clock: clock.clone(),
            client,
            runtime: runtime.context("cannot start the event loop")?,
            runs: false,
        };
        let answer = profile.start_call(NO_KIND)?;
        profile.started(&answer)?;
        Ok(profile)
    }

    /// Begins to profile.
    pub(crate) fn start(&mut self) -> Result<()> {
        let kinds = self.kinds.to_string();
        let answer = self.start_call(&kinds)?;
        self.runs = true;
        let nodes = self.started(&answer)?;
        let failed = nodes.iter().filter_map(|node| {
            let text = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default();
            (node.get("success") != Some(&Value::Bool(true)))
                .then(|| format!("{}: {}", text("nodeName"), text("error")))
        });
        match failed.collect::<Vec<_>>().first() {
            Some(first) => bail!("--serverprof: the server cannot profile {kinds} ({first})"),
            None => Ok(()),
        }
    }

    /// Ends profiling, if it began, and writes what the server gathered into the run directory.
    pub(crate) fn save(mut self, directory: &RunDirectory) -> Result<()> {
        if !std::mem::take(&mut self.runs) {
            return Ok(());
        }
        let answer = self.call("GET", "download", "", DOWNLOAD_MAX)?;
        let host = self.host();
        if answer.too_long {
            let most = ANSWER_BYTES_MAX >> 20;
            bail!("--serverprof: what {host} gathered is more than {most} MiB and was not kept");
        }
        // What a zip archive begins with.
        if answer.status != 200 || !answer.body.starts_with(b"PK") {
            bail!("--serverprof: {host} gave no profiles ({}{})", answer.status, answer.code());
        }
        directory.write_beside(FILE_NAME, &answer.body)?;
        Ok(())
    }

    fn start_call(&mut self, kinds: &str) -> Result<Answer> {
        let query = format!("profilerType={}", kinds.replace(',', "%2C"));
        self.call("POST", "start", &query, START_MAX)
    }

    /// Returns what each node says, or why this is not what MinIO would say.
    fn started(&self, answer: &Answer) -> Result<Vec<Value>> {
        let host = self.host();
        let (status, code) = (answer.status, answer.code());
        if status == 200
            && let Ok(Value::Array(nodes)) = serde_json::from_slice(&answer.body)
        {
            return Ok(nodes);
        }
        if status == 403 && answer.is_minio {
            bail!(
                "--serverprof: {host} does not let this access key profile it ({status}{code}); \
                 it needs the right admin:Profiling (--access-key)"
            );
        }
        if answer.is_minio {
            bail!("--serverprof: this MinIO, {host}, offers no profiling ({status}{code})");
        }
        bail!(
            "--serverprof: {host} is no MinIO, or lets nobody profile it ({status}{code}); \
             leave --serverprof out"
        )
    }

    fn call(&mut self, method: &str, name: &str, query: &str, most: Duration) -> Result<Answer> {
        let now = self.config.wall_epoch.after(self.clock.now().since(Moment::EPOCH));
        let path = format!("{PATH}{name}");
        let head = admin_head(&self.config, method, &path, query, now)
            .context("--serverprof needs credentials (--access-key, --secret-key)")?;
        let request = Request { head: &head, method_is_head: false, body: Body::Empty };
        let mut answer = Answer::default();
        let client = &mut self.client;
        let exchange = self
            .runtime
            .block_on(async { timeout(most, client.exchange(0, request, &mut answer)).await });
        let (host, seconds) = (self.host(), most.as_secs());
        exchange
            .with_context(|| format!("--serverprof: {host} did not answer within {seconds} s"))?
            .context("--serverprof")?;
        Ok(answer)
    }

    fn host(&self) -> String {
        let tls = self.config.tls.is_some();
        self.config.endpoints.first().map_or_else(String::new, |first| first.authority(tls))
    }
}

impl Drop for ServerProfile {
    fn drop(&mut self) {
        if self.runs {
            // Nobody wants them; it is the server that should not go on.
            let _ = self.call("GET", "download", "", ABANDON_MAX);
        }
    }
}

/// What the server answered.
#[derive(Default)]
struct Answer {
    status: u16,
    is_minio: bool,
    body: Vec<u8>,
    too_long: bool,
}

impl Answer {
    /// Returns the code of a refusal, after a blank; nothing where there is none.
    fn code(&self) -> String {
        let json: Option<Value> = serde_json::from_slice(&self.body).ok();
        let code = json.as_ref().and_then(|json| json.get("Code")).and_then(Value::as_str);
        code.map_or(String::new(), |code| format!(" {code}"))
    }
}

impl ResponseSink for Answer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        self.is_minio = head.header("server").is_some_and(|value| value.starts_with("MinIO"));
    }

    fn body(&mut self, bytes: &[u8]) {
        self.too_long |= self.body.len() + bytes.len() > ANSWER_BYTES_MAX;
        if !self.too_long {
            self.body.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_once_each_and_unknown_ones_refused() {
        let read = |text: &str| text.parse::<ProfileKinds>().map(|kinds| kinds.to_string());
        assert_eq!(read("cpu, mem,cpu").as_deref(), Ok("cpu,mem"));
        assert_eq!(read("trace").as_deref(), Ok("trace"));
        assert!(
            read("heap").unwrap_err().starts_with("`heap` is no kind of profile; there are cpu")
        );
        assert!(read(" , ").is_err());
    }
}
