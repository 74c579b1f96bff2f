//! Which process this is, in a name that no other has had since the machine was started, and
//! whether the process of such a name lives.
#![expect(clippy::disallowed_methods, reason = "reads what the kernel tells about processes")]

use std::fs;

/// Returns `<machine>-<process>-<start>`: the boot and the namespace of process numbers, the
/// number, and when it began in ticks since the boot.
pub(crate) fn identity() -> String {
    let pid = rustix::process::getpid().as_raw_nonzero();
    format!("{}-{pid}-{}", place(), started(&pid.to_string()).unwrap_or_default())
}

/// Tells whether the process of that name is alive; `None` if it is not one of this machine, or of
/// this container.
pub(crate) fn is_alive(identity: &str) -> Option<bool> {
    let mut parts = identity.rsplitn(3, '-');
    let (start, pid, machine) = (parts.next()?, parts.next()?, parts.next()?);
    let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    (machine == place() && is_number).then(|| started(pid).is_some_and(|at| at == start))
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
    fn a_process_is_known_by_number_and_start() {
        let mine = identity();
        assert_eq!(is_alive(&mine), Some(true), "{mine}");
        let (place, _) = mine.split_once('-').unwrap();
        assert_eq!(is_alive(&format!("{place}-1-0")), Some(false), "1 has not begun at 0 ticks");
        assert_eq!(is_alive(&format!("elsewhere-{}", std::process::id())), None);
        assert_eq!(is_alive(&format!("{place}-../self-1")), None);
    }
}
