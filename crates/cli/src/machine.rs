//! The machine that makes the load, for the record.
#![expect(clippy::disallowed_methods, reason = "reads what the kernel tells about the machine")]

use plimsoll_record::schema::Machine;

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
