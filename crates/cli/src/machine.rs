//! The machine that makes the load, for the record.
#![expect(clippy::disallowed_methods, reason = "reads what the kernel tells about the machine")]

use plimsoll_record::schema::Machine;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns what is known about this machine.
pub(crate) fn describe() -> Machine {
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| Some(text.to_string_lossy().into_owned());
    Machine {
        hostname: text(system.nodename()),
        kernel: Some(format!(
            "{} {}",
            system.sysname().to_string_lossy(),
            system.release().to_string_lossy()
        )),
        cpu_model: cpu_model(),
        cores_count: u32::try_from(cores()).ok(),
        memory_bytes: Some(memory_bytes()),
    }
}

/// Returns how many cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Lets this process open as many files as it may: a connection is one, and shells set the limit to
/// 1,024 by custom.
pub(crate) fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, a connection that cannot be made will say so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Returns how much main memory the machine has.
pub(crate) fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    u64::from(info.mem_unit) * info.totalram as u64
}

fn cpu_model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns the same in one line.
pub(crate) fn in_words() -> String {
    let Machine { kernel, cpu_model, cores_count, .. } = describe();
    let cores = cores_count.map(|cores| format!("{cores} cores"));
    [kernel, cpu_model, cores].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
