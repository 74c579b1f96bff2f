//! The live servers of the tests: MinIO, MinIO with TLS, versitygw and SeaweedFS on free loopback
//! ports.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process;
use crate::tools::{self, Installed};

/// How long a server may take until it answers.
const READY_MAX: Duration = Duration::from_secs(60);
/// How long one look at a server may take.
const PROBE_MAX: Duration = Duration::from_secs(2);
/// How long a server may take to end when asked.
const STOP_MAX: Duration = Duration::from_secs(5);
/// How often a server is started anew, since another process may have taken its free port.
const STARTS_MAX: u32 = 3;
/// How many lines of a failed server's log are shown.
const LOG_LINES_SHOWN: usize = 15;

/// The key service of MinIO with TLS: one key by name, which has to be no secret here.
const KMS_KEY: &str = "plimsoll-test:a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=";

const WEED: &str = "weed";

/// What tells that a server is ready for requests.
enum Ready {
    /// A GET of this path is answered with 200.
    Path(&'static str),
    /// Its log holds this text; used where the port speaks TLS, which xtask does not.
    LogHolds(&'static str),
}

struct Server {
    name: &'static str,
    child: Child,
    address: SocketAddr,
}

/// The running servers. Dropping them stops them and removes their data.
pub(crate) struct Servers {
    folder: PathBuf,
    access_key: String,
    secret_key: String,
    running: Vec<Server>,
}

impl Servers {
    /// Starts all servers and waits until each answers.
    pub(crate) fn start(programs: &Installed) -> Result<Self> {
        let parent = process::root().join("target/tmp");
        remove_leftovers(&parent);
        let mut servers = Self {
            folder: parent.join(format!("live-{}", std::process::id())),
            access_key: format!("plimsoll{}", process::random_hex(4)?),
            secret_key: process::random_hex(20)?,
            running: Vec::new(),
        };
        make_certificate(&servers.certs())?;
        servers.launch("minio", &Ready::Path("/minio/health/ready"), |servers, port, data| {
            servers.minio(&programs.minio, &servers.folder.join("no-certs"), port, data)
        })?;
        servers.launch("minio-tls", &Ready::LogHolds("API: https://"), |servers, port, data| {
            let mut command = servers.minio(&programs.minio, &servers.certs(), port, data)?;
            command.env("MINIO_KMS_SECRET_KEY", KMS_KEY);
            Ok(command)
        })?;
        servers.launch("versitygw", &Ready::Path("/health"), |servers, port, data| {
            let mut command = Command::new(&programs.versitygw);
            command
                .env("ROOT_ACCESS_KEY", &servers.access_key)
                .env("ROOT_SECRET_KEY", &servers.secret_key)
                .args(["--quiet", "--keep-alive", "--health", "/health"])
                .args(["--port", &format!("127.0.0.1:{port}"), "posix"])
                .arg(data);
            Ok(command)
        })?;
        servers.launch(WEED, &Ready::Path("/dir/assign?collection=ready"), |_, port, data| {
            let mut command = Command::new(&programs.weed);
            command.args(["server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]);
            command.args(["-master.telemetry=false", "-master.volumeSizeLimitMB=64"]);
            // Without this it takes ten seconds to end.
            command.args(["-volume.preStopSeconds=0", "-volume.max=1000"]);
            command.arg(format!("-dir={}", data.display()));
            command.arg(format!("-master.port={port}"));
            for port in ["master.port.grpc", "volume.port", "volume.port.grpc"] {
                command.arg(format!("-{port}={}", process::free_port()?));
            }
            Ok(command)
        })?;
        Ok(servers)
    }

    /// Returns the variables by which `testkit` finds the servers.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("PLIMSOLL_TEST_ACCESS_KEY", self.access_key.clone()),
            ("PLIMSOLL_TEST_SECRET_KEY", self.secret_key.clone()),
            ("PLIMSOLL_TEST_MINIO_CA", self.certs().join("public.crt").display().to_string()),
        ];
        for server in &self.running {
            variables.push(match server.name {
                "minio" => ("PLIMSOLL_TEST_MINIO", format!("http://{}", server.address)),
                "minio-tls" => ("PLIMSOLL_TEST_MINIO_TLS", format!("https://{}", server.address)),
                WEED => ("PLIMSOLL_TEST_WEED", format!("http://{}", server.address)),
                _ => ("PLIMSOLL_TEST_VERSITYGW", format!("http://{}", server.address)),
            });
        }
        variables
    }

    fn certs(&self) -> PathBuf {
        self.folder.join("certs")
    }

    fn minio(&self, program: &Path, certs: &Path, port: u16, data: &Path) -> Result<Command> {
        let console_port = process::free_port()?;
        let mut command = Command::new(program);
        // The keys go by environment: a command line is readable by everyone on the machine.
        command
            .env("MINIO_ROOT_USER", &self.access_key)
            .env("MINIO_ROOT_PASSWORD", &self.secret_key)
            .env("MINIO_UPDATE", "off")
            .env("MINIO_BROWSER", "off")
            .arg("server")
            .args(["--address", &format!("127.0.0.1:{port}")])
            .args(["--console-address", &format!("127.0.0.1:{console_port}")])
            .arg("--certs-dir")
            .arg(certs)
            .arg(data);
        Ok(command)
    }

    /// Starts one server on a free port, on another one when that was taken in the meantime.
    fn launch(
        &mut self,
        name: &'static str,
        ready: &Ready,
        make: impl Fn(&Self, u16, &Path) -> Result<Command>,
    ) -> Result<()> {
        let data = self.folder.join(name);
        fs::create_dir_all(&data).with_context(|| format!("cannot make {}", data.display()))?;
        let log = self.folder.join(format!("{name}.log"));
        for start in 1..=STARTS_MAX {
            let port = process::free_port()?;
            let out =
                File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
            let mut command = make(self, port, &data)?;
            command.stdin(std::process::Stdio::null()).stdout(out.try_clone()?).stderr(out);
            let child = process::spawn(&mut command)?;
            self.running.push(Server {
                name,
                child,
                address: SocketAddr::from(([127, 0, 0, 1], port)),
            });
            let server = self.running.last_mut().expect("a server was just pushed");
            match await_ready(server, ready, &log) {
                Ok(()) => return Ok(()),
                Err(error) if start == STARTS_MAX || process::interrupted() => {
                    eprintln!("{}", tail(&log));
                    return Err(error.context(format!("{name} did not start")));
                }
                Err(_) => {
                    process::stop(&mut server.child, STOP_MAX)?;
                    self.running.pop();
                }
            }
        }
        unreachable!("the last start returns")
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.running {
            if let Err(error) = process::stop(&mut server.child, STOP_MAX) {
                eprintln!("warning: {} could not be stopped: {error:#}", server.name);
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("warning: cannot remove {}: {error}", self.folder.display());
        }
    }
}

/// Waits until the server is ready; fails when it ends, or is not ready in time.
fn await_ready(server: &mut Server, ready: &Ready, log: &Path) -> Result<()> {
    let deadline = Instant::now() + READY_MAX;
    loop {
        if let Some(status) = server.child.try_wait()? {
            bail!("it ended with {status}");
        }
        let is_ready = match ready {
            Ready::Path(path) => answers_ok(server.address, path).unwrap_or(false),
            Ready::LogHolds(text) => {
                fs::read_to_string(log).is_ok_and(|log| log.contains(text))
                    && TcpStream::connect_timeout(&server.address, PROBE_MAX).is_ok()
            }
        };
        if is_ready {
            return Ok(());
        }
        if process::interrupted() {
            bail!("interrupted");
        }
        if Instant::now() > deadline {
            bail!("it was not ready within {} s", READY_MAX.as_secs());
        }
        std::thread::sleep(process::POLL);
    }
}

/// Returns true when a plain GET of `path` is answered with status 200.
fn answers_ok(address: SocketAddr, path: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, PROBE_MAX)?;
    stream.set_read_timeout(Some(PROBE_MAX))?;
    stream.set_write_timeout(Some(PROBE_MAX))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut status = [0_u8; "HTTP/1.1 200".len()];
    stream.read_exact(&mut status)?;
    Ok(status.ends_with(b" 200"))
}

/// Makes a self-signed certificate for 127.0.0.1 and localhost, with the names that MinIO looks
/// for.
///
/// Go's own sources bring a maker of such certificates, and Go is there to build the servers; a
/// library for it would pull a whole cryptography stack into xtask.
fn make_certificate(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let found = tools::go()?.args(["env", "GOROOT"]).output().context("cannot run go env")?;
    let goroot = String::from_utf8(found.stdout).context("go env prints text")?;
    let maker = Path::new(goroot.trim()).join("src/crypto/tls/generate_cert.go");
    let made = tools::go()?
        .current_dir(folder)
        .arg("run")
        .arg(&maker)
        .args(["--ecdsa-curve", "P256", "--host", "127.0.0.1,localhost"])
        .output()
        .context("cannot run go")?;
    if !made.status.success() {
        bail!("go run {} failed: {}", maker.display(), String::from_utf8_lossy(&made.stderr));
    }
    fs::rename(folder.join("cert.pem"), folder.join("public.crt"))?;
    fs::rename(folder.join("key.pem"), folder.join("private.key"))?;
    Ok(())
}

/// Removes what an xtask that was killed outright left behind.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid =
            name.to_string_lossy().strip_prefix("live-").and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            // A folder that cannot be removed is only untidy.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
}
