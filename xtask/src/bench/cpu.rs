//! CPU time as the kernel accounts it: of a child over its whole life, and of one thread.

use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process;

/// What a child printed and what it cost.
pub(super) struct Finished {
    pub(super) stdout: String,
    pub(super) cpu: Duration,
    /// The part of it that was not the kernel's.
    pub(super) user: Duration,
    /// The most memory it held at once.
    pub(super) rss_kib: i64,
}

/// Runs a child to its end and takes its user and system time from `wait4`.
pub(super) fn run(command: &mut Command) -> Result<Finished> {
    let mut child = process::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let mut stdout = String::new();
    let mut pipe = child.stdout.take().expect("stdout is piped");
    pipe.read_to_string(&mut stdout).context("the child printed no text")?;
    let pid = libc::pid_t::try_from(child.id()).context("a pid fits pid_t")?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live values of the right types; the child was not reaped before.
    while unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) } == -1 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("wait4");
        }
    }
    // SAFETY: wait4 filled it, and all zeroes are a valid rusage as well.
    let usage = unsafe { usage.assume_init() };
    let (cpu, user, rss_kib) = (total(&usage), duration(usage.ru_utime), usage.ru_maxrss);
    let status = ExitStatus::from_raw(status);
    if process::interrupted() {
        bail!("interrupted");
    }
    if !status.success() {
        let program = command.get_program().to_string_lossy().into_owned();
        bail!("{program} failed ({status}): {stdout}");
    }
    Ok(Finished { stdout, cpu, user, rss_kib })
}

/// Returns the user and system time of the calling thread so far.
pub(super) fn of_this_thread() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live value of the right type; all zeroes are a valid rusage.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    total(&usage)
}

fn total(usage: &libc::rusage) -> Duration {
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

fn duration(time: libc::timeval) -> Duration {
    let micros = time.tv_sec * 1_000_000 + time.tv_usec;
    Duration::from_micros(u64::try_from(micros).expect("CPU time is not negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_charged_with_what_it_burnt() {
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done";
        let finished = run(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(finished.stdout, "done\n");
        // A hundred thousand turns of a shell's loop cost far more than this, an idle shell far
        // less.
        assert!(finished.cpu > Duration::from_millis(10), "{:?}", finished.cpu);
        assert!(run(Command::new("sh").args(["-c", "exit 3"])).is_err());
    }
}
