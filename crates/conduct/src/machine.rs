//! The machine that makes the load, for the record.
#![expect(clippy::disallowed_methods, reason = "reads what the kernel tells about the machine")]

mod cgroup;
mod cpu;
mod readings;

use std::time::Duration;

use plimsoll_record::schema::{Machine, ProcessUsage};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub(crate) use readings::Readings;

/// Returns what is known about this machine.
pub fn describe() -> Machine {
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
        cpu_features: cpu_features().into_iter().map(str::to_owned).collect(),
        cores_count: u32::try_from(cores()).ok(),
        memory_bytes: Some(memory_bytes()),
        memory_limit_bytes: cgroup::memory_max(),
    }
}

/// Returns which of the processor's features that change what an operation costs are there: those
/// that checksums, signatures, TLS and the making of content take.
pub fn cpu_features() -> Vec<&'static str> {
    cpu::features()
}

/// Returns how many cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns for how long the machine's processors were busy and for how long they were there, in
/// ticks of the kernel since it began.
pub fn processor_ticks() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    let all: u64 = ticks.iter().sum();
    Some((all - idle, all))
}

/// Lets this process open as many files as it may: a connection is one, and shells set the limit to
/// 1,024 by custom.
pub fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, a connection that cannot be made will say so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Returns how many files this process may have open.
pub fn open_files_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns what this process has used so far, all of its threads.
pub fn usage() -> ProcessUsage {
    // SAFETY: the call fills a struct of integers, for which zeros are a value.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    ProcessUsage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        context_switches_count: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
        faults_major_count: usage.ru_majflt as u64,
        faults_minor_count: usage.ru_minflt as u64,
    }
}

/// Returns the processor time that this process has used so far, all of its threads.
pub fn cpu_time() -> Duration {
    let used = usage();
    Duration::from_nanos(used.user_ns + used.system_ns)
}

/// Returns what was used between two moments.
pub fn usage_since(now: &ProcessUsage, before: &ProcessUsage) -> ProcessUsage {
    ProcessUsage {
        user_ns: now.user_ns - before.user_ns,
        system_ns: now.system_ns - before.system_ns,
        context_switches_count: now.context_switches_count - before.context_switches_count,
        faults_major_count: now.faults_major_count - before.faults_major_count,
        faults_minor_count: now.faults_minor_count - before.faults_minor_count,
    }
}

/// Returns how much memory this process may use: that of the machine, or what its control group
/// allows, as a container's limit does.
pub fn memory_usable_bytes() -> u64 {
    cgroup::memory_max().map_or_else(memory_bytes, |bound| bound.min(memory_bytes()))
}

/// Returns how much main memory the machine has.
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    u64::from(info.mem_unit) * info.totalram as u64
}

/// Returns how much main memory this process takes; 0 where the kernel does not say.
pub(crate) fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default().saturating_mul(rustix::param::page_size() as u64)
}

fn cpu_model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let board = std::fs::read_to_string("/proc/device-tree/model").ok();
    cpu::model(&info, board.as_deref())
}

/// Returns the same in one line.
pub fn in_words() -> String {
    let Machine { kernel, cpu_model, cores_count, .. } = describe();
    let cores = cores_count.map(|cores| format!("{cores} cores"));
    [kernel, cpu_model, cores].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
