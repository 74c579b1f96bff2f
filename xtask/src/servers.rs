//! The live servers of the tests: MinIO, MinIO with TLS, versitygw, SeaweedFS in three shapes and
//! OpenStack Swift, on free loopback ports.

mod swift;
mod weed;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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

/// Where MinIO looks for its certificate.
const CERTIFICATE: &str = "public.crt";

/// What tells that a server is ready for requests.
enum Ready {
    /// A GET of this path on this port is answered with 200.
    Answers(u16, &'static str),
    /// Its log holds this text, and this port takes connections; used where the port speaks TLS,
    /// which xtask does not.
    LogHolds(u16, &'static str),
}

/// How a server is started: its processes, and how it is found.
#[derive(Default)]
struct Recipe {
    commands: Vec<Command>,
    /// What tells that it is ready, all of it together.
    ready: Vec<Ready>,
    /// By what `testkit` finds it.
    variables: Vec<(&'static str, String)>,
    /// Ports after which SeaweedFS names sockets outside of its folder.
    ports: Vec<u16>,
}

/// Makes the recipe of a server anew, on free ports, with its data in that folder.
type Cook<'a> = Box<dyn Fn(&Path) -> Result<Recipe> + 'a>;

struct Server {
    name: &'static str,
    children: Vec<Child>,
    ready: Vec<Ready>,
    variables: Vec<(&'static str, String)>,
    ports: Vec<u16>,
}

/// The keys of the root user of every server that has one.
struct RootKeys {
    access: String,
    secret: String,
}

impl RootKeys {
    fn random() -> Result<Self> {
        let access = format!("plimsoll{}", process::random_hex(4)?);
        Ok(Self { access, secret: process::random_hex(20)? })
    }
}

/// The running servers. Dropping them stops them and removes their data.
pub(crate) struct Servers {
    folder: PathBuf,
    variables: Vec<(&'static str, String)>,
    running: Vec<Server>,
}

impl Servers {
    /// Starts one server of each kind, and with the programs of the nightly tests also those that
    /// only these need; waits until each answers.
    pub(crate) fn start(programs: &Installed) -> Result<Self> {
        let parent = process::root().join("target/tmp");
        remove_leftovers(&parent);
        let folder = parent.join(format!("live-{}", std::process::id()));
        let keys = RootKeys::random()?;
        let certs = folder.join("certs");
        let mut variables = vec![
            ("PLIMSOLL_TEST_ACCESS_KEY", keys.access.clone()),
            ("PLIMSOLL_TEST_SECRET_KEY", keys.secret.clone()),
            ("PLIMSOLL_TEST_WEED_PROGRAM", programs.weed.display().to_string()),
            ("PLIMSOLL_TEST_NATS_PROGRAM", programs.nats.display().to_string()),
        ];
        let no_certs = folder.join("no-certs");
        let mut cooks: Vec<(&'static str, Cook<'_>)> = vec![
            // The slowest first.
            ("swift", Box::new(|data| swift::whole(&programs.swift, &keys, data))),
            ("weed", Box::new(|data| weed::whole(&programs.weed, &keys, data))),
            ("minio", Box::new(|data| minio(&programs.minio, &no_certs, &keys, data))),
            ("versitygw", Box::new(|data| versitygw(&programs.versitygw, &keys, data))),
        ];
        if let Some(nightly) = &programs.nightly {
            let ca = certs.join(CERTIFICATE);
            variables.extend([
                ("PLIMSOLL_TEST_MINIO_CA", ca.display().to_string()),
                ("PLIMSOLL_TEST_PROMETHEUS", nightly.prometheus.display().to_string()),
                ("PLIMSOLL_TEST_PYTHON_SITE", nightly.python_site.display().to_string()),
            ]);
            make_certificate(&certs)?;
            let more: [(&'static str, Cook<'_>); 3] = [
                ("weed-cluster", Box::new(|data| weed::cluster(&programs.weed, data))),
                ("weed-jwt", Box::new(|data| weed::with_tokens(&programs.weed, data))),
                ("minio-tls", Box::new(|data| minio(&programs.minio, &certs, &keys, data))),
            ];
            cooks.extend(more);
        }
        let mut servers = Self { folder, variables, running: Vec::new() };
        // All at once, as most of the time goes by in waiting.
        for (name, cook) in &cooks {
            let server = servers.spawn(name, cook)?;
            servers.running.push(server);
        }
        for (index, (_, cook)) in cooks.iter().enumerate() {
            servers.await_start(index, cook)?;
        }
        Ok(servers)
    }

    /// Starts a SeaweedFS alone.
    pub(crate) fn weed(program: &Path) -> Result<Self> {
        Self::alone("weed", |_| Ok(Vec::new()), |_, data| weed::plain(program, data))
    }

    /// Starts a MinIO alone, with TLS if asked.
    pub(crate) fn minio(program: &Path, with_tls: bool) -> Result<Self> {
        let keys = RootKeys::random()?;
        let prepare = |certs: &Path| {
            if with_tls {
                make_certificate(certs)?;
            }
            Ok(vec![
                ("PLIMSOLL_TEST_ACCESS_KEY", keys.access.clone()),
                ("PLIMSOLL_TEST_SECRET_KEY", keys.secret.clone()),
                ("PLIMSOLL_TEST_MINIO_CA", certs.join(CERTIFICATE).display().to_string()),
            ])
        };
        Self::alone("minio", prepare, |certs, data| minio(program, certs, &keys, data))
    }

    /// Starts one server; `prepare` and `cook` are given a folder for its certificates.
    fn alone(
        name: &'static str,
        prepare: impl FnOnce(&Path) -> Result<Vec<(&'static str, String)>>,
        cook: impl Fn(&Path, &Path) -> Result<Recipe>,
    ) -> Result<Self> {
        let parent = process::root().join("target/tmp");
        let folder = parent.join(format!("bench-{}", std::process::id()));
        let certs = folder.join("certs");
        let mut servers = Self { folder, variables: Vec::new(), running: Vec::new() };
        servers.variables = prepare(&certs)?;
        let cook: Cook<'_> = Box::new(|data| cook(&certs, data));
        let server = servers.spawn(name, &cook)?;
        servers.running.push(server);
        servers.await_start(0, &cook)?;
        Ok(servers)
    }

    /// Returns the variables by which `testkit` finds the servers.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let of_servers = self.running.iter().flat_map(|server| &server.variables);
        self.variables.iter().chain(of_servers).cloned().collect()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Starts the processes of one server.
    fn spawn(&self, name: &'static str, cook: &Cook<'_>) -> Result<Server> {
        let data = self.folder.join(name);
        fs::create_dir_all(&data).with_context(|| format!("cannot make {}", data.display()))?;
        let log = self.log(name);
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let Recipe { commands, ready, variables, ports } = cook(&data)?;
        let mut server = Server { name, children: Vec::new(), ready, variables, ports };
        for mut command in commands {
            command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out.try_clone()?);
            match process::spawn(&mut command) {
                Ok(child) => server.children.push(child),
                Err(error) => {
                    server.stop()?;
                    return Err(error);
                }
            }
        }
        Ok(server)
    }

    /// Waits until a server answers; where it ends, as another process has taken one of its ports,
    /// it is started on other ones.
    fn await_start(&mut self, index: usize, cook: &Cook<'_>) -> Result<()> {
        let name = self.running[index].name;
        let log = self.log(name);
        for start in 1..=STARTS_MAX {
            match await_ready(&mut self.running[index], &log) {
                Ok(()) => return Ok(()),
                Err(error) if start == STARTS_MAX || process::interrupted() => {
                    eprintln!("{}", tail(&log));
                    return Err(error.context(format!("{name} did not start")));
                }
                Err(_) => {
                    self.running[index].stop()?;
                    self.running[index] = self.spawn(name, cook)?;
                }
            }
        }
        unreachable!("the last start returns")
    }
}

impl Server {
    /// Ends its processes. SeaweedFS takes more than ten seconds over that, and nobody wants what
    /// it would save in them.
    fn stop(&mut self) -> Result<()> {
        let patience = if self.ports.is_empty() { STOP_MAX } else { Duration::ZERO };
        for child in &mut self.children {
            process::stop(child, patience)?;
        }
        self.children.clear();
        remove_sockets(&self.ports);
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.running {
            if let Err(error) = server.stop() {
                eprintln!("warning: {} could not be stopped: {error:#}", server.name);
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("warning: cannot remove {}: {error}", self.folder.display());
        }
    }
}

/// MinIO, with TLS where `certs` holds a certificate.
fn minio(program: &Path, certs: &Path, keys: &RootKeys, data: &Path) -> Result<Recipe> {
    let (port, console_port) = (process::free_port()?, process::free_port()?);
    let mut command = Command::new(program);
    // The keys go by environment: a command line is readable by everyone on the machine.
    command
        .env("MINIO_ROOT_USER", &keys.access)
        .env("MINIO_ROOT_PASSWORD", &keys.secret)
        .env("MINIO_UPDATE", "off")
        .env("MINIO_BROWSER", "off")
        .env("MINIO_PROMETHEUS_AUTH_TYPE", "public")
        .arg("server")
        .args(["--address", &format!("127.0.0.1:{port}")])
        .args(["--console-address", &format!("127.0.0.1:{console_port}")])
        .arg("--certs-dir")
        .arg(certs)
        .arg(data);
    let (ready, name, scheme) = match certs.join(CERTIFICATE).is_file() {
        true => {
            command.env("MINIO_KMS_SECRET_KEY", KMS_KEY);
            (Ready::LogHolds(port, "API: https://"), "PLIMSOLL_TEST_MINIO_TLS", "https")
        }
        false => (Ready::Answers(port, "/minio/health/ready"), "PLIMSOLL_TEST_MINIO", "http"),
    };
    Ok(Recipe {
        commands: vec![command],
        ready: vec![ready],
        variables: vec![(name, format!("{scheme}://127.0.0.1:{port}"))],
        ports: Vec::new(),
    })
}

fn versitygw(program: &Path, keys: &RootKeys, data: &Path) -> Result<Recipe> {
    let port = process::free_port()?;
    let mut command = Command::new(program);
    command
        .env("ROOT_ACCESS_KEY", &keys.access)
        .env("ROOT_SECRET_KEY", &keys.secret)
        .args(["--quiet", "--keep-alive", "--health", "/health"])
        .args(["--port", &format!("127.0.0.1:{port}"), "posix"])
        .arg(data);
    Ok(Recipe {
        commands: vec![command],
        ready: vec![Ready::Answers(port, "/health")],
        variables: vec![("PLIMSOLL_TEST_VERSITYGW", format!("http://127.0.0.1:{port}"))],
        ports: Vec::new(),
    })
}

/// Waits until the server is ready; fails when a process of it ends, or it is not ready in time.
fn await_ready(server: &mut Server, log: &Path) -> Result<()> {
    let deadline = Instant::now() + READY_MAX;
    loop {
        for child in &mut server.children {
            if let Some(status) = child.try_wait()? {
                bail!("it ended with {status}");
            }
        }
        let is_ready = server.ready.iter().all(|ready| match ready {
            Ready::Answers(port, path) => answers_ok(*port, path).unwrap_or(false),
            Ready::LogHolds(port, text) => {
                fs::read_to_string(log).is_ok_and(|log| log.contains(text))
                    && TcpStream::connect_timeout(&loopback(*port), PROBE_MAX).is_ok()
            }
        });
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

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Returns true when a plain GET of `path` is answered with status 200.
fn answers_ok(port: u16, path: &str) -> std::io::Result<bool> {
    let address = loopback(port);
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
    fs::rename(folder.join("cert.pem"), folder.join(CERTIFICATE))?;
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

/// Removes the sockets that SeaweedFS leaves in `/tmp` when it is killed; it takes no other place.
fn remove_sockets(ports: &[u16]) {
    let Ok(entries) = fs::read_dir("/tmp") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let port = name.to_str().and_then(|name| {
            let (_, port) =
                name.strip_prefix("seaweedfs-")?.strip_suffix(".sock")?.rsplit_once('-')?;
            port.parse::<u16>().ok()
        });
        if port.is_some_and(|port| ports.contains(&port)) {
            // One that cannot be removed is only untidy.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
}
