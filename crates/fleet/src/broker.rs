//! The fleet of a coordinator that has no NATS yet: a stock `nats-server` as a child, with an
//! authority of its own, and who may say what to whom.
#![expect(clippy::disallowed_methods, reason = "owns the server's directory and its process")]

mod config;
mod desk;
mod find;
mod tend;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use async_nats::ServerAddr;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_conduct::{input, machine};
use plimsoll_record::exposure::{check_owner, check_unchangeable};
use plimsoll_record::{StateDirectory, StateDirectoryError, removal};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use desk::{Revoked, RevokedAgent, ask_revoke, ask_token, join};
pub use find::{Found, NotFound, find_server};

use self::desk::Desk;
use self::tend::ROOM_BYTES_MIN;
use crate::fabric::FabricError;
use crate::limits::free_bytes;
use crate::nats::{Access, Nats, NatsConfig, Side, inbox_of};
use crate::pki::{Authority, Fingerprint, Identity, PkiError, client_config};
use crate::token::Token;

/// What those are called who are no agents.
pub(crate) const COORDINATOR: &str = "coordinator";
pub(crate) const UP: &str = "up";
pub(crate) const SYSTEM: &str = "system";
pub(crate) const JOIN: &str = "join";

/// How long a server may take until it answers.
const START_MAX: Duration = Duration::from_secs(15);
const START_LOOK: Duration = Duration::from_millis(10);
/// The server may take an eighth of the machine's memory, and this at least. Above it, it ends and
/// is started again.
const SERVER_MEMORY_MIN: u64 = 512 << 20;
/// What is kept for coordinators on this machine.
const FLEET_FILE: &str = "fleet.json";
/// More than that file has.
const FLEET_FILE_BYTES_MAX: u64 = 1 << 20;
const SERVER_CONFIG: &str = "nats.conf";
const SERVER_LOG: &str = "nats.log";
const SERVER_CERTIFICATES: &str = "server.pem";
const SERVER_KEY: &str = "server.key";
const AUTHORITY: &str = "ca.pem";
/// All that is written into the directory besides what the server keeps.
const FILES: [&str; 6] =
    [FLEET_FILE, SERVER_CONFIG, SERVER_LOG, SERVER_CERTIFICATES, SERVER_KEY, AUTHORITY];
/// Where the server keeps what agents hand in.
const SERVER_STORE: &str = "jetstream";
/// What is added to the name of a file that is being written.
const UNFINISHED: &str = ".tmp";
/// Where a request to join goes.
pub(crate) const JOIN_SUBJECT: &str = "plimsoll.join";
/// What the server calls the place of an answer to a request from another account.
const ANSWERS: &str = "_R_";
/// Where coordinators ask who has made the fleet.
const UP_SUBJECT: &str = "plimsoll.up.ask";

/// How a fleet is made.
#[derive(Clone, Debug)]
pub struct BrokerSettings {
    /// The program.
    pub program: PathBuf,
    /// Where it listens; port 0 is one that is free.
    pub listen: (String, u16),
    /// The addresses by which agents reach it, without a port.
    pub addresses: Vec<String>,
    /// Where what belongs to the fleet is kept, for as long as it lives.
    pub directory: PathBuf,
    /// How many agents may join in all.
    pub agents_max: u32,
}

/// How a token may be used.
#[derive(Clone, Copy, Debug)]
pub struct TokenRules {
    /// How often; `None`: as often as anybody likes.
    pub uses: Option<u32>,
    /// How long, from when it is made.
    pub lasts: Option<Duration>,
}

/// Why there is no fleet.
#[derive(Debug, Error)]
pub enum BrokerError {
    /// Something of its directory.
    #[error("cannot {what} {}", path.display())]
    Files {
        /// What was to be done.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Another one uses the directory.
    #[error(
        "a fleet is up already (its files lie in {}); end it first, or choose another directory",
        path.display()
    )]
    Up {
        /// Where.
        path: PathBuf,
    },
    /// The server did not come up.
    #[error("{} did not come up: {why}", program.display())]
    Server {
        /// The program.
        program: PathBuf,
        /// What it says.
        why: String,
    },
    /// No fleet is up.
    #[error(
        "no fleet is up on this machine (there is no {}): start one with `plimsoll fleet up`",
        path.display()
    )]
    NoFleet {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// What is kept for coordinators is not what it should be.
    #[error("{} is not what `plimsoll fleet up` writes", path.display())]
    Form {
        /// Which file.
        path: PathBuf,
    },
    /// The fleet refuses.
    #[error("the fleet does not let this agent join: {0}")]
    Refused(String),
    /// The fleet does not do what a coordinator asks.
    #[error("`plimsoll fleet up` does not do that: {0}")]
    Refuses(String),
    /// Something else was answered than was asked.
    #[error("`plimsoll fleet up` answers something else: is it of this version?")]
    Answer,
    /// Its directory is not taken.
    #[error(transparent)]
    Directory(#[from] StateDirectoryError),
    /// Certificates.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The fabric.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

/// What a coordinator on the same machine needs.
#[derive(Serialize, Deserialize)]
struct FleetFile {
    servers: Vec<String>,
    authority: String,
    coordinator: IdentityDoc,
    system: IdentityDoc,
}

#[derive(Serialize, Deserialize)]
struct IdentityDoc {
    certificate: String,
    key: String,
}

impl IdentityDoc {
    fn of(identity: &Identity) -> Self {
        let text = |bytes: &[u8]| STANDARD.encode(bytes);
        Self { certificate: text(&identity.certificate), key: text(&identity.key) }
    }

    fn identity(&self) -> Option<Identity> {
        let bytes = |text: &str| STANDARD.decode(text).ok();
        Some(Identity { certificate: bytes(&self.certificate)?, key: bytes(&self.key)? })
    }
}

/// What happened to the server of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tended {
    /// It ended by itself, and was started again.
    Restarted,
    /// Its disk is full: it keeps nothing that is handed in.
    Full,
    /// Its disk had been full, and it was started again now that there is room.
    Resumed,
    /// What had failed was done.
    Recovered,
}

/// A fleet that is up.
pub struct Broker {
    child: Child,
    /// `None` once what is in it was removed.
    state: Option<StateDirectory>,
    settings: BrokerSettings,
    port: u16,
    /// How much the server keeps of what is handed in.
    room_bytes: u64,
    desk: Arc<Desk>,
    /// The agents that the server was told to know no longer.
    told: BTreeSet<u32>,
    /// Those whose leave was taken back and of whom nothing is kept any more.
    freed: BTreeSet<u32>,
    /// When that is tried again which has failed.
    tries_at: Option<Instant>,
    /// Whether it was started and did not answer yet.
    awaits_server: bool,
    /// When it was looked last whether the server can keep what is handed in.
    looked: Instant,
    /// Whether its disk has been full since it was started.
    was_full: bool,
    /// How this process speaks to it; gone before the server is.
    nats: Option<Nats>,
}

/// Returns what the agent of that number is called on the fabric.
pub(crate) fn agent_id(number: u32) -> String {
    format!("a{number:04}")
}

impl Broker {
    /// Starts a server and takes part in it.
    pub fn start(settings: BrokerSettings) -> Result<Self, BrokerError> {
        let directory = &settings.directory;
        let state = StateDirectory::open(directory, "fleet", &[])?;
        if connect_file(&directory.join(FLEET_FILE)).is_ok() {
            return Err(BrokerError::Up { path: directory.clone() });
        }
        // The server's own default. The share of each agent is taken from it.
        let room_bytes = (free_bytes(directory) / 4 * 3).clamp(ROOM_BYTES_MIN, i64::MAX as u64);
        match Self::start_server(&settings, room_bytes) {
            Ok((child, port, desk)) => {
                let now = Instant::now();
                let mut broker = Self {
                    child,
                    state: Some(state),
                    settings,
                    port,
                    room_bytes,
                    desk,
                    told: BTreeSet::new(),
                    freed: BTreeSet::new(),
                    tries_at: None,
                    awaits_server: false,
                    looked: now,
                    was_full: false,
                    nats: None,
                };
                broker.open()?;
                Ok(broker)
            }
            Err(error) => {
                // Why there is no fleet matters more than what could not be removed.
                let _ = remove_files(state);
                Err(error)
            }
        }
    }

    fn start_server(
        settings: &BrokerSettings,
        room_bytes: u64,
    ) -> Result<(Child, u16, Arc<Desk>), BrokerError> {
        let directory = &settings.directory;
        let authority = Authority::new()?;
        let server = authority.server()?;
        let write = |name: &str, text: &str| write_private(&directory.join(name), text);
        write(SERVER_CERTIFICATES, &pem_chain(&server, &authority))?;
        write(SERVER_KEY, &pem("PRIVATE KEY", &server.key))?;
        write(AUTHORITY, &pem("CERTIFICATE", authority.certificate()))?;
        write(SERVER_CONFIG, &config::text(settings, room_bytes, &BTreeSet::new()))?;
        let log = directory.join(SERVER_LOG);
        removal::file(&log).map_err(|source| files("remove", &log, source))?;
        let mut child = start_child(settings)?;
        let port = match wait_for(&mut child, settings) {
            Ok(port) => port,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        };
        let servers = settings.addresses.iter().map(|address| with_port(address, port));
        let (servers, agents_max) = (servers.collect(), settings.agents_max);
        let desk = Desk { authority, members: Mutex::default(), agents_max, servers };
        Ok((child, port, Arc::new(desk)))
    }

    /// Takes part in the fleet, and lets others on this machine do so.
    fn open(&mut self) -> Result<(), BrokerError> {
        let signs = &self.desk.authority;
        let authority = signs.fingerprint();
        let own = own_address(&self.settings, self.port);
        let up = Arc::new(client_config(authority, &signs.client(UP)?)?);
        let config =
            NatsConfig { servers: vec![address(&own)?], access: Access::Fleet(up), system: None };
        let nats = Nats::join_with(&config, Side::Up, |_| true)?;
        let desk = Arc::clone(&self.desk);
        nats.answer(JOIN_SUBJECT.to_owned(), ANSWERS.to_owned(), move |asked| {
            serde_json::to_vec(&desk.welcome(asked)).expect("an answer is JSON")
        })?;
        let desk = Arc::clone(&self.desk);
        nats.answer(UP_SUBJECT.to_owned(), inbox_of(COORDINATOR), move |asked| {
            serde_json::to_vec(&desk.answer(asked)).expect("an answer is JSON")
        })?;
        self.nats = Some(nats);
        let file = FleetFile {
            servers: vec![own],
            authority: STANDARD.encode(authority),
            coordinator: IdentityDoc::of(&signs.client(COORDINATOR)?),
            system: IdentityDoc::of(&signs.client(SYSTEM)?),
        };
        let text = serde_json::to_string_pretty(&file).expect("it is JSON");
        write_private(&self.settings.directory.join(FLEET_FILE), &text)
    }

    /// Returns a new token.
    pub fn token(&self, rules: TokenRules) -> Result<Token, BrokerError> {
        Ok(self.desk.token(rules)?)
    }

    /// Returns who has joined, or come back, since this was asked last: ids and names.
    pub fn joined(&self) -> Vec<(String, String)> {
        let mut members = self.desk.members();
        let news = std::mem::take(&mut members.news).into_iter();
        let named =
            |number: u32| Some((agent_id(number), members.agents.get(&number)?.name.clone()));
        news.filter_map(named).collect()
    }

    /// Returns the port that agents connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the process of the server.
    pub fn server_pid(&self) -> u32 {
        self.child.id()
    }

    fn end_server(&mut self) {
        // The number of a server that was reaped may be another process's by now.
        if let Ok(None) = self.child.try_wait() {
            let pid = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.nats.take());
        self.end_server();
        // What only this fleet knew means nothing now.
        let _ = self.state.take().map(remove_files);
    }
}

/// Removes what a fleet keeps in its directory, and nothing else.
fn remove_files(state: StateDirectory) -> io::Result<()> {
    let unfinished = FILES.map(|name| unfinished(Path::new(name)));
    let entries = fs::read_dir(state.path())?.collect::<io::Result<Vec<_>>>()?;
    let names = entries.iter().map(|entry| PathBuf::from(entry.file_name()));
    let logs: Vec<PathBuf> = names.filter(|name| is_older_log(name)).collect();
    let more = unfinished.iter().chain(&logs).filter_map(|name| name.to_str());
    state.remove(&FILES.into_iter().chain(more).collect::<Vec<_>>(), &[SERVER_STORE])
}

/// Tells whether a name is one that the server gives to a log when it begins another:
/// `nats.log.2026.11.30.23.08.15.000000000`.
fn is_older_log(name: &Path) -> bool {
    let instant = name.to_str().and_then(|name| name.strip_prefix(SERVER_LOG)?.strip_prefix('.'));
    instant.is_some_and(|text| {
        text.split('.').count() == 7 && text.chars().all(|c| c.is_ascii_digit() || c == '.')
    })
}

/// Returns how a coordinator on this machine reaches the fleet whose files lie there.
pub fn local_fleet(directory: &Path) -> Result<NatsConfig, BrokerError> {
    match check_directory(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(files("use", directory, error))
        }
        _ => connect_file(&directory.join(FLEET_FILE)),
    }
}

/// Refuses a directory that another user may have filled. As where `StateDirectory` takes one, what
/// only root may change is as root wants it: a volume of a container is an example.
fn check_directory(directory: &Path) -> io::Result<()> {
    let found = fs::metadata(directory)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    let checked = if is_own { check_unchangeable(&found) } else { check_owner(&found) };
    checked.map_err(io::Error::other)
}

/// Reads how a fleet is reached. Store keys go to the agents of the fleet that it names.
fn connect_file(path: &Path) -> Result<NatsConfig, BrokerError> {
    let text = match input::read_unchangeable(path, FLEET_FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(BrokerError::NoFleet { path: path.to_path_buf() });
        }
        read => read.map_err(|source| files("read", path, source))?,
    };
    let form = || BrokerError::Form { path: path.to_path_buf() };
    let file: FleetFile = serde_json::from_str(&text).map_err(|_| form())?;
    let authority: Fingerprint = STANDARD
        .decode(&file.authority)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(form)?;
    let tls = |doc: &IdentityDoc| -> Result<_, BrokerError> {
        Ok(Arc::new(client_config(authority, &doc.identity().ok_or_else(form)?)?))
    };
    let own = file.servers.first().ok_or_else(form)?;
    // One whose server is gone was left by a process that was killed.
    if std::net::TcpStream::connect(own).is_err() {
        return Err(BrokerError::NoFleet { path: path.to_path_buf() });
    }
    let servers = file.servers.iter().map(|server| address(server)).collect::<Result<_, _>>()?;
    let access = Access::Fleet(tls(&file.coordinator)?);
    Ok(NatsConfig { servers, access, system: Some(tls(&file.system)?) })
}

fn address(server: &str) -> Result<ServerAddr, BrokerError> {
    let parsed = format!("tls://{server}").parse();
    parsed.map_err(|_| BrokerError::Refused(format!("{server} is not an address")))
}

fn files(what: &'static str, path: &Path, source: io::Error) -> BrokerError {
    BrokerError::Files { what, path: path.to_path_buf(), source }
}

/// Returns where a file is written before it gets its name.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    name.into()
}

/// Writes a file that nobody else may read.
fn write_private(path: &Path, text: &str) -> Result<(), BrokerError> {
    let written = || {
        let unfinished = unfinished(path);
        removal::file(&unfinished)?;
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&unfinished, path)
    };
    written().map_err(|source| files("write", path, source))
}

fn pem(what: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap_or("")).collect();
    format!("-----BEGIN {what}-----\n{}\n-----END {what}-----\n", lines.join("\n"))
}

fn pem_chain(server: &Identity, authority: &Authority) -> String {
    pem("CERTIFICATE", &server.certificate) + &pem("CERTIFICATE", authority.certificate())
}

fn start_child(settings: &BrokerSettings) -> Result<Child, BrokerError> {
    let mut command = Command::new(&settings.program);
    command.arg("-c").arg(settings.directory.join(SERVER_CONFIG));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A signal from the keyboard is for this process, which ends the server in its turn.
    command.process_group(0);
    let signal = Some(rustix::process::Signal::TERM);
    let data = rustix::process::Resource::Data;
    let most = (machine::memory_usable_bytes() / 8).max(SERVER_MEMORY_MIN);
    // A limit that this process has cannot be raised.
    let own = rustix::process::getrlimit(data).maximum;
    let most = Some(own.map_or(most, |own| own.min(most)));
    let memory = rustix::process::Rlimit { current: most, maximum: most };
    // SAFETY: the child only asks the kernel for a signal at its parent's end, and for a limit.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(signal)?;
            Ok(rustix::process::setrlimit(data, memory)?)
        });
    }
    command.spawn().map_err(|source| files("start", &settings.program, source))
}

/// Returns the address by which this machine reaches the server, which listens nowhere else where
/// it was given an address.
fn own_address(settings: &BrokerSettings, port: u16) -> String {
    match settings.listen.0.parse::<IpAddr>() {
        Ok(ip) if !ip.is_unspecified() => with_port(&settings.listen.0, port),
        Ok(IpAddr::V6(_)) => with_port("::1", port),
        Ok(IpAddr::V4(_)) | Err(_) => with_port("127.0.0.1", port),
    }
}

fn with_port(address: &str, port: u16) -> String {
    match address.contains(':') {
        true => format!("[{address}]:{port}"),
        false => format!("{address}:{port}"),
    }
}

/// Waits until the server tells its port, and returns it.
fn wait_for(child: &mut Child, settings: &BrokerSettings) -> Result<u16, BrokerError> {
    let failed = |why: String| BrokerError::Server { program: settings.program.clone(), why };
    let begun = Instant::now();
    let log = settings.directory.join(SERVER_LOG);
    loop {
        let text = fs::read_to_string(&log).unwrap_or_default();
        if let Some(port) = config::port_in(&text)
            && std::net::TcpStream::connect(own_address(settings, port)).is_ok()
        {
            return Ok(port);
        }
        if let Ok(Some(status)) = child.try_wait() {
            let last = text.lines().rev().find(|line| line.contains("[FTL]"));
            let said = last.and_then(|line| line.split("[FTL]").nth(1)).map(str::trim);
            return Err(failed(said.map_or_else(|| status.to_string(), str::to_owned)));
        }
        if begun.elapsed() > START_MAX {
            return Err(failed(format!("it does not listen after {} s", START_MAX.as_secs())));
        }
        thread::sleep(START_LOOK);
    }
}
