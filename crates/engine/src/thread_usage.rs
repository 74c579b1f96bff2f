//! What the kernel says that the calling thread used: time on a processor and time without one.
#![expect(clippy::disallowed_methods, reason = "reads what the kernel tells of a thread")]

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_model::ThreadUsage;

use crate::clock::thread_cpu_time;

/// Where the kernel tells of the thread that reads it: `CPU WAITED SLICES`, nanoseconds
/// (`Documentation/scheduler/sched-stats.rst`).
const SCHEDSTAT: &str = "/proc/thread-self/schedstat";

thread_local! {
    static BEGAN: Cell<ThreadUsage> = const {
        Cell::new(ThreadUsage { cpu: Duration::ZERO, run_delay: None })
    };
}

/// Has what the calling thread uses count from now on.
pub(crate) fn begin() {
    BEGAN.set(read());
}

/// Returns what the calling thread used since then.
pub(crate) fn used() -> ThreadUsage {
    let (now, before) = (read(), BEGAN.get());
    ThreadUsage {
        cpu: now.cpu.saturating_sub(before.cpu),
        run_delay: now
            .run_delay
            .zip(before.run_delay)
            .map(|(now, before)| now.saturating_sub(before)),
    }
}

fn read() -> ThreadUsage {
    let text = std::fs::read_to_string(SCHEDSTAT).ok();
    let run_delay = text.as_deref().and_then(run_delay);
    ThreadUsage { cpu: thread_cpu_time(), run_delay }
}

/// What the kernel tells of worker threads and of the hypervisor, for a thread that looks at all of
/// it now and then.
#[derive(Debug, Default)]
pub(crate) struct RunDelays {
    workers: Mutex<Vec<File>>,
}

impl RunDelays {
    /// Adds the calling thread.
    pub(crate) fn join(&self) {
        let own = File::open(SCHEDSTAT).ok();
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
    }

    /// Returns for how long each worker thread has been ready to run without a processor.
    pub(crate) fn read(&self) -> Vec<Duration> {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has ended has no further delay.
        workers.iter().map(|file| at_begin(file, run_delay).unwrap_or_default()).collect()
    }
}

/// The time of all processors that a hypervisor took, in ticks (`/proc/stat`).
pub(crate) struct Steal(Option<File>);

impl Steal {
    pub(crate) fn open() -> Self {
        Self(File::open("/proc/stat").ok())
    }

    pub(crate) fn read(&self) -> Option<u64> {
        at_begin(self.0.as_ref()?, |stat| {
            stat.lines().next()?.split_whitespace().nth(8)?.parse().ok()
        })
    }
}

/// Reads what a file of the kernel's says now at its beginning.
fn at_begin<T>(file: &File, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    let mut text = [0; 256];
    let count = file.read_at(&mut text, 0).ok()?;
    read(&String::from_utf8_lossy(&text[..count]))
}

fn run_delay(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_time_without_a_processor() {
        assert_eq!(run_delay("4714649 351998 77\n"), Some(Duration::from_nanos(351_998)));
        assert_eq!(run_delay("4714649"), None);
        assert_eq!(run_delay("a b c"), None);
    }

    #[test]
    fn another_thread_reads_the_delay_of_a_worker() {
        let delays = RunDelays::default();
        std::thread::scope(|scope| scope.spawn(|| delays.join()).join().unwrap());
        delays.join();
        // The first has ended; of this one the kernel tells, where it tells of any.
        let known = read().run_delay;
        let seen = delays.read();
        assert_eq!(seen.len(), 2);
        assert!(known.is_none() || seen[1] >= known.unwrap(), "{seen:?} {known:?}");
        assert!(Steal::open().read().is_some());
    }

    #[test]
    fn what_was_used_before_does_not_count() {
        let before = thread_cpu_time();
        while thread_cpu_time() - before < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        begin();
        let whole = thread_cpu_time();
        assert!(used().cpu <= thread_cpu_time() - (whole - Duration::from_millis(5)));
        assert!(used().cpu < whole, "{:?} of {whole:?}", used().cpu);
    }
}
