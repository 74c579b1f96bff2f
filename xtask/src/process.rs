//! Child processes that never outlive xtask, and the signals that end it early.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How often a waiting loop looks again.
pub(crate) const POLL: Duration = Duration::from_millis(20);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_interrupt(_signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::SeqCst);
}

/// Turns SIGINT, SIGTERM and SIGHUP into a flag, so that servers are stopped and folders removed.
pub(crate) fn watch_signals() {
    let handler: extern "C" fn(libc::c_int) = note_interrupt;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// Returns true once a signal asked xtask to end.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask lies in the root of the workspace").to_path_buf()
}

/// Returns the program of that name that cargo has built as it built this one.
pub(crate) fn built(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot tell where this program lies")?;
    Ok(own.with_file_name(name))
}

/// Returns a `cargo` command that runs at the root, free of what `cargo run` told xtask.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.args(words).current_dir(root());
    // Build scripts that watch these variables would be run again at every turn.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let leaked =
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
        if leaked.iter().any(|prefix| text.starts_with(prefix)) || text == "OUT_DIR" {
            command.env_remove(&name);
        }
    }
    command
}

/// Starts a child that the kernel kills when xtask dies, however it dies.
pub(crate) fn spawn(command: &mut Command) -> Result<Child> {
    let parent = std::process::id();
    // SAFETY: between fork and exec only prctl, getppid and _exit are called, all
    // async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The parent may have died before prctl took hold.
            if libc::getppid() as u32 != parent {
                libc::_exit(1);
            }
            Ok(())
        });
    }
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().with_context(|| format!("cannot start {program}"))
}

/// Runs a command to its end, or until xtask is told to end.
pub(crate) fn run(command: &mut Command) -> Result<ExitStatus> {
    let mut child = spawn(command)?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupted() {
            stop(&mut child, Duration::from_secs(5))?;
            bail!("interrupted");
        }
        std::thread::sleep(POLL);
    }
}

/// Runs a command of several processes and fails with `what` when it does not succeed, or has not
/// ended within `limit`, which ends all of them.
pub(crate) fn check_within(command: &mut Command, what: &str, limit: Duration) -> Result<()> {
    let mut child = spawn(command.process_group(0))?;
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if interrupted() {
            stop_all(&mut child)?;
            bail!("interrupted");
        }
        if Instant::now() > deadline {
            stop_all(&mut child)?;
            bail!("{what} has not ended within {} min and was stopped", limit.as_secs() / 60);
        }
        std::thread::sleep(POLL);
    };
    if !status.success() {
        bail!("{what} failed ({status})");
    }
    Ok(())
}

/// Ends the process group of a child that leads one.
fn stop_all(child: &mut Child) -> Result<()> {
    let pid = libc::pid_t::try_from(child.id()).context("a pid fits pid_t")?;
    // SAFETY: the child has not been reaped, so its pid still names its own group.
    unsafe { libc::kill(-pid, libc::SIGKILL) };
    child.wait()?;
    Ok(())
}

/// Runs a command and fails with `what` when it does not succeed.
pub(crate) fn check(command: &mut Command, what: &str) -> Result<()> {
    let status = run(command)?;
    if !status.success() {
        bail!("{what} failed ({status})");
    }
    Ok(())
}

/// Runs a command and returns what it printed.
pub(crate) fn printed(command: &mut Command, what: &str) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {what}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{what} failed ({}): {}", output.status, said.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{what} prints no text"))
}

/// Asks a child to end and kills it when it has not within `patience`; it is reaped on return.
pub(crate) fn stop(child: &mut Child, patience: Duration) -> Result<()> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    let pid = libc::pid_t::try_from(child.id()).context("a pid fits pid_t")?;
    // SAFETY: the child has not been reaped, so the pid is still its own.
    unsafe { libc::kill(pid, libc::SIGTERM) };
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Says whether this is the superuser.
pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid only returns a number and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Returns where a program lies on the path.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Returns a loopback port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).context("cannot bind a port")?;
    Ok(listener.local_addr()?.port())
}

/// Returns `bytes` random bytes as lower-case hex digits.
pub(crate) fn random_hex(bytes: usize) -> Result<String> {
    use std::io::Read;
    let mut buffer = vec![0_u8; bytes];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut buffer)?;
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}
