//! SeaweedFS servers of a test's own, for what must not be done to those that all tests share: they
//! are killed and come back.
#![expect(
    clippy::disallowed_methods,
    reason = "a test's own servers: found by environment, waited for, with a folder of files"
)]

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};
use tempfile::TempDir;

use crate::live::{NO_LIVE, WEED_PROGRAM, needed_program};

/// How long servers may take until they are there; on a busy machine it takes ten seconds.
const READY_MAX: Duration = Duration::from_secs(90);
/// How often is looked whether they are.
const POLL: Duration = Duration::from_millis(50);
/// How long one look at a server may take.
const PROBE_MAX: Duration = Duration::from_secs(5);
/// How often they are started anew, since another process may have taken a free port.
const STARTS_MAX: u32 = 3;

/// What servers are to be started.
#[derive(Clone, Debug, Default)]
pub struct WeedSetup {
    /// How many volume servers there are.
    pub volume_servers: usize,
    /// How many volumes each of them takes.
    pub volumes_max: u32,
    /// The text of `security.toml`; empty for none.
    pub security: String,
    /// Whether the master answers over HTTPS only, as that text says. Then nothing is waited for.
    pub https_master: bool,
}

/// One process.
struct Weed {
    words: Vec<String>,
    port: u16,
    grpc_port: u16,
    child: Option<Child>,
}

/// A master with volume servers; they end with it.
pub struct OwnWeed {
    folder: TempDir,
    program: String,
    master: Weed,
    volume_servers: Vec<Weed>,
}

impl OwnWeed {
    /// Starts them and waits until the master knows all volume servers; `None` only where the live
    /// tier was switched off by name.
    ///
    /// # Panics
    /// When they do not start, or when nobody has said where the program is.
    pub fn start(setup: &WeedSetup) -> Option<Self> {
        let program = match needed_program(WEED_PROGRAM, |name| std::env::var(name).ok()) {
            Ok(program) => program?,
            Err(sentence) => panic!("{sentence}; or set {NO_LIVE}=1"),
        };
        if setup.https_master {
            return Some(Self::spawn(setup, &program).expect("weed can be started"));
        }
        for _ in 1..STARTS_MAX {
            let mut weed = Self::spawn(setup, &program).expect("weed can be started");
            match weed.await_volume_servers(setup.volume_servers) {
                Ok(()) => return Some(weed),
                Err(why) => drop(why),
            }
        }
        let mut weed = Self::spawn(setup, &program).expect("weed can be started");
        let ready = weed.await_volume_servers(setup.volume_servers);
        ready.unwrap_or_else(|why| panic!("{why}\n{}", weed.log()));
        Some(weed)
    }

    fn spawn(setup: &WeedSetup, program: &str) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("security.toml"), &setup.security)?;
        let place = folder.path().join("master");
        std::fs::create_dir_all(&place)?;
        let words = ["master", "-telemetry=false", "-volumeSizeLimitMB=64"];
        let mut words = words.map(str::to_owned).to_vec();
        words.push(format!("-mdir={}", place.display()));
        let master = Weed::new(words)?;
        let mut volume_servers = Vec::new();
        for number in 0..setup.volume_servers {
            let place = folder.path().join(format!("volume-{number}"));
            std::fs::create_dir_all(&place)?;
            let mut words = ["volume", "-preStopSeconds=0"].map(str::to_owned).to_vec();
            words.push(format!("-max={}", setup.volumes_max));
            words.push(format!("-mserver=127.0.0.1:{}.{}", master.port, master.grpc_port));
            words.push(format!("-dir={}", place.display()));
            volume_servers.push(Weed::new(words)?);
        }
        let program = program.to_owned();
        let mut weed = Self { folder, program, master, volume_servers };
        weed.master.start(&weed.program, weed.folder.path())?;
        for server in &mut weed.volume_servers {
            server.start(&weed.program, weed.folder.path())?;
        }
        Ok(weed)
    }

    /// Returns the master, `127.0.0.1:PORT.GRPCPORT`.
    pub fn master(&self) -> String {
        format!("127.0.0.1:{}.{}", self.master.port, self.master.grpc_port)
    }

    /// Returns the volume server with this number, `127.0.0.1:PORT`.
    pub fn volume_server(&self, number: usize) -> String {
        format!("127.0.0.1:{}", self.volume_servers[number].port)
    }

    /// Kills a volume server; its files stay.
    pub fn kill(&mut self, number: usize) {
        self.volume_servers[number].kill();
    }

    /// Starts a volume server that was killed, on its ports, and waits until the master knows it.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_again(&mut self, number: usize) {
        let server = &mut self.volume_servers[number];
        assert!(server.child.is_none(), "it was killed before");
        server.start(&self.program, self.folder.path()).expect("weed can be started");
        let port = server.port;
        let is_back = |status: &str| status.contains(&format!("\"Url\":\"127.0.0.1:{port}\""));
        let back = self.await_status(is_back);
        back.unwrap_or_else(|why| panic!("{why}\n{}", self.log()));
    }

    /// Waits until the master knows so many volume servers, or no more than so many.
    pub fn await_volume_servers(&mut self, count: usize) -> Result<(), String> {
        self.await_status(|status| status.matches("\"Url\":").count() == count)
    }

    /// Waits until `/dir/status` of the master is of this kind.
    fn await_status(&mut self, is_so: impl Fn(&str) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + READY_MAX;
        let host = format!("127.0.0.1:{}", self.master.port);
        loop {
            let all = self.volume_servers.iter_mut().chain([&mut self.master]);
            for child in all.filter_map(|weed| weed.child.as_mut()) {
                if let Ok(Some(status)) = child.try_wait() {
                    return Err(format!("a server ended with {status}"));
                }
            }
            let status = http_get(&host, "/dir/status");
            if status.is_ok_and(|(_, body)| is_so(&String::from_utf8_lossy(&body))) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("it was not so within {} s", READY_MAX.as_secs()));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Returns what the servers wrote.
    pub fn log(&self) -> String {
        let path = self.folder.path().join("log");
        std::fs::read(path).map_or_else(
            |error| error.to_string(),
            |log| String::from_utf8_lossy(&log).into_owned(),
        )
    }
}

impl Drop for OwnWeed {
    fn drop(&mut self) {
        for weed in self.volume_servers.iter_mut().chain([&mut self.master]) {
            weed.kill();
            weed.remove_sockets();
        }
    }
}

impl Weed {
    fn new(mut words: Vec<String>) -> io::Result<Self> {
        let (port, grpc_port) = (free_port()?, free_port()?);
        words.extend(["-ip=127.0.0.1", "-ip.bind=127.0.0.1"].map(str::to_owned));
        words.extend([format!("-port={port}"), format!("-port.grpc={grpc_port}")]);
        Ok(Self { words, port, grpc_port, child: None })
    }

    fn start(&mut self, program: &str, folder: &Path) -> io::Result<()> {
        let log = File::options().create(true).append(true).open(folder.join("log"))?;
        let mut command = Command::new(program);
        // Its home is here too, so that nobody's own `security.toml` is read.
        command.current_dir(folder).env("HOME", folder).args(&self.words);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
        unsafe {
            // Whatever becomes of the test, its servers do not outlive it.
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        self.child = Some(command.spawn()?);
        Ok(())
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // One that has ended needs no killing.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Removes the socket that it leaves in `/tmp`; it takes no other place.
    fn remove_sockets(&self) {
        for what in ["master", "volume"] {
            let path = format!("/tmp/seaweedfs-{what}-grpc-{}.sock", self.grpc_port);
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Returns a loopback port that was free a moment ago.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Asks `127.0.0.1:PORT` for a path, over plain HTTP; returns status and body.
pub fn http_get(host: &str, path: &str) -> io::Result<(u16, Vec<u8>)> {
    let address: SocketAddr = host.parse().map_err(io::Error::other)?;
    let mut stream = TcpStream::connect_timeout(&address, PROBE_MAX)?;
    stream.set_read_timeout(Some(PROBE_MAX))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let no_answer = || io::Error::other("that is no answer of HTTP");
    let end = answer.windows(4).position(|of| of == b"\r\n\r\n").ok_or_else(no_answer)?;
    let status = answer.get(9..12).and_then(|digits| str::from_utf8(digits).ok());
    let status = status.and_then(|digits| digits.parse().ok()).ok_or_else(no_answer)?;
    Ok((status, answer.split_off(end + 4)))
}
