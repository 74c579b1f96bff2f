//! Which process this is, in a name that no other has had since the machine was started, and
//! whether the process of such a name lives.
#![expect(clippy::disallowed_methods, reason = "reads what the kernel tells about processes")]

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Returns `<machine>-<process>-<start>`: the boot and the namespace of process numbers, the
/// number, and when it began in ticks since the boot.
pub(crate) fn identity() -> String {
    let pid = rustix::process::getpid().as_raw_nonzero();
    format!("{}-{pid}-{}", place(), started(&pid.to_string()).unwrap_or_default())
}

/// Returns whether the process of that name lives; `None` where this machine cannot say, and the
/// age of what it wrote must.
///
/// Only a number that no process has (`ESRCH`) is proof of an end. What `/proc` does not show may
/// be hidden (`hidepid`), and another start time may be that of another time namespace.
pub(crate) fn is_alive(identity: &str) -> Option<bool> {
    let mut parts = identity.rsplitn(3, '-');
    let (start, pid, machine) = (parts.next()?, parts.next()?, parts.next()?);
    let number = pid.bytes().all(|byte| byte.is_ascii_digit()).then(|| pid.parse().ok())??;
    let process = Pid::from_raw(number)?;
    if machine != place() || !is_known(machine) {
        return None;
    }
    if test_kill_process(process) == Err(Errno::SRCH) {
        return Some(false);
    }
    (started(pid)? == start).then_some(true)
}

/// Tells whether a place says both the boot and the namespace: without `/proc` it says neither, and
/// all machines have the same.
fn is_known(place: &str) -> bool {
    place.split_once('_').is_some_and(|(boot, space)| !boot.is_empty() && !space.is_empty())
}

/// Names this boot of the machine, and the namespace in which process numbers mean something.
fn place() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot: String = boot.chars().filter(char::is_ascii_hexdigit).take(12).collect();
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let space: String = space.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{boot}_{space}")
}

/// Returns when a process began, in ticks since the boot.
fn started(pid: &str) -> Option<String> {
    const FIELD_BEHIND_NAME: usize = 19;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything.
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(FIELD_BEHIND_NAME).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_while_it_has_its_number_and_start() {
        let mine = identity();
        assert_eq!(is_alive(&mine), Some(true), "{mine}");
        let (place, _) = mine.split_once('-').unwrap();
        assert_eq!(is_alive(&format!("elsewhere-{}", std::process::id())), None);
        assert_eq!(is_alive(&format!("{place}-../self-1")), None);
        assert_eq!(is_alive(&format!("{place}--1")), None);
    }

    #[test]
    fn only_a_number_that_nobody_has_is_a_process_that_is_gone() {
        let mine = identity();
        let (place, _) = mine.split_once('-').unwrap();
        // Above the most that Linux gives out (PID_MAX_LIMIT, 2^22).
        assert_eq!(is_alive(&format!("{place}-4194305-1")), Some(false));
        // There is a process 1, of which `hidepid` shows nothing; and its start is not this one.
        assert_eq!(is_alive(&format!("{place}-1-0")), None);
    }

    #[test]
    fn a_machine_that_does_not_name_itself_judges_nobody() {
        assert!(is_known(&place()));
        for unknown in ["_", "_4026531836", "0123456789ab_", ""] {
            assert!(!is_known(unknown), "{unknown}");
        }
    }
}
