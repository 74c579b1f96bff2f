//! Profiles of the server while it is measured, by MinIO's admin API.
//!
//! MinIO offers two ways: a pair of calls, `profiling/start` and `profiling/download`, and one
//! call, `profile`, that lasts as long as it is told at the start. How long a run will be measured
//! is known only when it is over, so the pair is used.
//!
//! One endpoint is asked, the first that can be reached: it has all nodes of its deployment
//! profiled, and hands out what all of them gathered.

use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use plimsoll_driver::one_line;
use plimsoll_http::{
    Body, Client, ExchangeError, Options, Proxies, Request, ResponseHead, ResponseSink,
};
use plimsoll_model::{Moment, SharedClock};
use serde_json::Value;
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::S3Config;
use crate::minio_admin::admin_head;
use crate::redaction::Redaction;

type Result<T, E = ServerProfileError> = std::result::Result<T, E>;

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
/// How much is kept in memory of an answer, which says what each node did.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How large the profiles may be, which go to the file as they come; a trace of a long run is what
/// could be larger.
const PROFILES_GIB_MAX: u64 = 4;
const PROFILES_BYTES_MAX: u64 = PROFILES_GIB_MAX << 30;
/// How many endpoints are tried until one can be reached.
const ENDPOINTS_TRIED_MAX: usize = 16;

/// Which profiles are wanted, each kind once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileKinds(Vec<&'static str>);

impl FromStr for ProfileKinds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut kinds = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let known = KINDS.into_iter().find(|kind| *kind == word);
            let Some(kind) = known else {
                return Err(format!(
                    "`{word}` is not a kind of profile; the kinds are {}",
                    KINDS.join(", ")
                ));
            };
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.is_empty() {
            return Err(format!("name a kind of profile; the kinds are {}", KINDS.join(", ")));
        }
        Ok(Self(kinds))
    }
}

impl fmt::Display for ProfileKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Why a server is not profiled.
#[derive(Debug, Error)]
pub enum ServerProfileError {
    /// Nobody asks.
    #[error("no credentials are given")]
    NoCredentials,
    /// It is MinIO, and these credentials may not.
    #[error(
        "{0} does not let this access key profile it ({1}); it needs the right admin:Profiling"
    )]
    NotAllowed(String, String),
    /// It is a MinIO that cannot.
    #[error("this MinIO, {0}, offers no profiling ({1})")]
    NotOffered(String, String),
    /// It is something else, or a proxy stands before it.
    #[error("{0} is not MinIO, or does not allow profiling ({1})")]
    NotMinio(String, String),
    /// One of its nodes cannot.
    #[error("the server cannot profile {kinds} ({node}: {why})")]
    Node {
        /// What was asked for.
        kinds: String,
        /// The first node that cannot.
        node: String,
        /// What it says.
        why: String,
    },
    /// It gathered something else than an archive.
    #[error("{0} gave no profiles ({1})")]
    NoProfiles(String, String),
    /// It gathered too much.
    #[error("what {0} gathered is more than {PROFILES_GIB_MAX} GiB and was not kept")]
    TooLarge(String),
    /// It is silent.
    #[error("{host} did not answer within {seconds} s")]
    Silent {
        /// Which host.
        host: String,
        /// For how long.
        seconds: u64,
    },
    /// It cannot be reached, or breaks off.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// There is no event loop.
    #[error("cannot start the event loop")]
    Runtime(#[source] io::Error),
    /// What it gathered cannot be written.
    #[error(transparent)]
    Write(io::Error),
}

/// A server that profiles itself. Dropped while it does, it is made to stop.
pub struct ServerProfile {
    kinds: ProfileKinds,
    config: S3Config,
    clock: SharedClock,
    client: Client,
    /// Which endpoint is asked.
    endpoint: usize,
    runtime: Runtime,
    runs: bool,
}

impl ServerProfile {
    /// Asks the server whether it can be profiled by these credentials; profiles nothing yet.
    pub fn check(kinds: &ProfileKinds, config: &S3Config, clock: &SharedClock) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let options = Options {
            connect_timeout: config.connect_timeout,
            tls: config.tls.clone(),
            keep_alive: false,
            version: config.http_version,
            proxies: config.proxies.clone(),
            ..Options::default()
        };
        let endpoints = config.endpoints.iter().cloned().collect();
        let client = Client::new(endpoints, Rc::new(options), clock.clone());
        let mut profile = Self {
            kinds: kinds.clone(),
            config: config.clone(),
            clock: clock.clone(),
            client,
            endpoint: 0,
            runtime: runtime.map_err(ServerProfileError::Runtime)?,
            runs: false,
        };
        let answer = profile.reach()?;
        profile.started(&answer)?;
        Ok(profile)
    }

    /// Asks one endpoint after the other until one can be reached, and stays with that.
    fn reach(&mut self) -> Result<Answer> {
        let last = self.config.endpoints.len().min(ENDPOINTS_TRIED_MAX).saturating_sub(1);
        loop {
            let error = match self.start_call(NO_KIND) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match &error {
                ServerProfileError::Exchange(exchange)
                    if self.endpoint < last && exchange.kind.is_connect() =>
                {
                    self.endpoint += 1;
                }
                _ => return Err(error),
            }
        }
    }

    /// Begins to profile.
    pub fn start(&mut self) -> Result<()> {
        let kinds = self.kinds.to_string();
        let answer = self.start_call(&kinds)?;
        self.runs = true;
        let nodes = self.started(&answer)?;
        let failed = nodes.iter().find(|node| node.get("success") != Some(&Value::Bool(true)));
        let Some(node) = failed else { return Ok(()) };
        let text = |name| self.shown(node.get(name).and_then(Value::as_str).unwrap_or_default());
        Err(ServerProfileError::Node { kinds, node: text("nodeName"), why: text("error") })
    }

    /// Ends profiling and writes what the server gathered, as it comes.
    pub fn finish(&mut self, to: &mut dyn Write) -> Result<()> {
        self.runs = false;
        let mut download =
            Download { to, answer: Answer::default(), written: 0, failed: None, too_long: false };
        self.call("GET", "download", "", DOWNLOAD_MAX, &mut download)?;
        let Download { answer, failed, too_long, .. } = download;
        if let Some(error) = failed {
            return Err(ServerProfileError::Write(error));
        }
        if too_long {
            return Err(ServerProfileError::TooLarge(self.host()));
        }
        // What a zip archive begins with.
        if answer.status != 200 || !answer.body.starts_with(b"PK") {
            return Err(ServerProfileError::NoProfiles(self.host(), self.shown(&answer.said())));
        }
        Ok(())
    }

    /// Tells whether the server profiles itself.
    pub fn runs(&self) -> bool {
        self.runs
    }

    fn start_call(&mut self, kinds: &str) -> Result<Answer> {
        let query = format!("profilerType={}", kinds.replace(',', "%2C"));
        let mut answer = Answer::default();
        self.call("POST", "start", &query, START_MAX, &mut answer)?;
        Ok(answer)
    }

    /// Returns what each node says, or why this is not what MinIO would say.
    fn started(&self, answer: &Answer) -> Result<Vec<Value>> {
        if answer.status == 200
            && let Ok(Value::Array(nodes)) = serde_json::from_slice(&answer.body)
        {
            return Ok(nodes);
        }
        let refused = match (answer.is_minio, answer.status) {
            (true, 403) => ServerProfileError::NotAllowed,
            (true, _) => ServerProfileError::NotOffered,
            (false, _) => ServerProfileError::NotMinio,
        };
        Err(refused(self.host(), self.shown(&answer.said())))
    }

    /// Returns what the server said as one short line without the secrets of the request.
    fn shown(&self, text: &str) -> String {
        let redaction = Redaction::default();
        let keys = self.config.credentials.current();
        let of_proxies = self.config.proxies.iter().flat_map(Proxies::secrets);
        redaction.hide(keys.iter().flat_map(|keys| keys.secrets()).chain(of_proxies));
        one_line(&redaction.apply(text))
    }

    fn call(
        &mut self,
        method: &str,
        name: &str,
        query: &str,
        most: Duration,
        sink: &mut dyn ResponseSink,
    ) -> Result<()> {
        let now = self.config.wall_epoch.after(self.clock.now().since(Moment::EPOCH));
        let path = format!("{PATH}{name}");
        let head = admin_head(&self.config, self.endpoint, method, &path, query, now)
            .ok_or(ServerProfileError::NoCredentials)?;
        let request = Request { head: &head, method_is_head: false, body: Body::Empty };
        let (client, endpoint) = (&mut self.client, self.endpoint);
        let exchange = self
            .runtime
            .block_on(async { timeout(most, client.exchange(endpoint, request, sink)).await });
        let silent = |_| ServerProfileError::Silent { host: self.host(), seconds: most.as_secs() };
        exchange.map_err(silent)??;
        Ok(())
    }

    fn host(&self) -> String {
        let tls = self.config.tls.is_some();
        let asked = self.config.endpoints.get(self.endpoint);
        asked.map_or_else(String::new, |endpoint| endpoint.authority(tls))
    }
}

impl Drop for ServerProfile {
    fn drop(&mut self) {
        if self.runs {
            // Nobody wants them; it is the server that should not go on.
            let mut unwanted = Answer::default();
            let _ = self.call("GET", "download", "", ABANDON_MAX, &mut unwanted);
        }
    }
}

/// What the server answered.
#[derive(Default)]
struct Answer {
    status: u16,
    is_minio: bool,
    /// The beginning of its body.
    body: Vec<u8>,
}

impl Answer {
    /// Returns the status and, where there is one, the code of a refusal.
    fn said(&self) -> String {
        let json: Option<Value> = serde_json::from_slice(&self.body).ok();
        let code = json.as_ref().and_then(|json| json.get("Code")).and_then(Value::as_str);
        let code = code.map_or(String::new(), |code| format!(" {code}"));
        format!("{}{code}", self.status)
    }
}

impl ResponseSink for Answer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        self.is_minio = head.header("server").is_some_and(|value| value.starts_with("MinIO"));
    }

    fn body(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(ANSWER_BYTES_MAX - self.body.len());
        self.body.extend_from_slice(&bytes[..kept]);
    }
}

/// Profiles on their way to a file.
struct Download<'a> {
    to: &'a mut dyn Write,
    answer: Answer,
    written: u64,
    failed: Option<io::Error>,
    too_long: bool,
}

impl ResponseSink for Download<'_> {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.answer.head(head);
    }

    fn body(&mut self, bytes: &[u8]) {
        self.answer.body(bytes);
        self.too_long |= self.written + bytes.len() as u64 > PROFILES_BYTES_MAX;
        if self.answer.status != 200 || self.too_long || self.failed.is_some() {
            return;
        }
        self.written += bytes.len() as u64;
        self.failed = self.to.write_all(bytes).err();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn kinds_are_read_once_each_and_unknown_ones_refused() {
        let read = |text: &str| text.parse::<ProfileKinds>().map(|kinds| kinds.to_string());
        assert_eq!(read("cpu, mem,cpu").as_deref(), Ok("cpu,mem"));
        assert_eq!(read("trace").as_deref(), Ok("trace"));
        assert!(
            read("heap")
                .unwrap_err()
                .starts_with("`heap` is not a kind of profile; the kinds are cpu")
        );
        assert!(read(" , ").is_err());
    }

    /// Answers connection after connection, one request each, and returns the requests' lines.
    fn serve(answers: Vec<Vec<u8>>) -> (u16, std::thread::JoinHandle<Vec<String>>) {
        use std::io::{BufRead, BufReader};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let answer = |answer: Vec<u8>| {
                let mut stream = BufReader::new(listener.accept().unwrap().0);
                let lines: Vec<String> = stream
                    .by_ref()
                    .lines()
                    .map_while(Result::ok)
                    .take_while(|l| !l.is_empty())
                    .collect();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
                stream.get_mut().write_all(head.as_bytes()).unwrap();
                // The client may have heard enough.
                let _ = stream.get_mut().write_all(&answer);
                lines[0].clone()
            };
            answers.into_iter().map(answer).collect()
        });
        (port, server)
    }

    #[test]
    fn the_first_endpoint_that_can_be_reached_is_asked_and_its_profiles_go_to_the_file() {
        let node = br#"[{"nodeName":"n","success":true}]"#.to_vec();
        // More than is kept in memory of any answer.
        let mut zip = b"PK".to_vec();
        zip.resize(3 * ANSWER_BYTES_MAX, b'z');
        let (port, server) = serve(vec![node.clone(), node, zip.clone()]);
        // Nobody listens where somebody did.
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let hosts = format!("127.0.0.1:{},127.0.0.1:{port}", gone.port());
        let endpoints = plimsoll_http::expand_hosts(&hosts, 80).unwrap();
        let config = S3Config { endpoints, ..crate::config::tests::sample() };
        let clock: SharedClock = std::sync::Arc::new(plimsoll_engine::RunClock::start());
        let kinds = "cpu".parse().unwrap();
        let mut profile = ServerProfile::check(&kinds, &config, &clock).unwrap();
        profile.start().unwrap();
        let mut file = Vec::new();
        profile.finish(&mut file).unwrap();
        assert!(!profile.runs());
        assert!(file == zip, "all of it, as it came");
        let asked = server.join().unwrap();
        assert_eq!(asked.len(), 3);
        let line = "POST /minio/admin/v3/profiling/start?profilerType=cpu HTTP/1.1";
        assert_eq!(asked[1], line);
    }
}
