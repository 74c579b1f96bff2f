//! What the kernel says that the calling thread used: time on a processor and time without one.
#![expect(clippy::disallowed_methods, reason = "reads what the kernel tells of a thread")]

use std::cell::Cell;
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
