//! Bounds on what runs take of a process that carries out what others ask for: its memory, and
//! its files and connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;

use crate::Stop;
use crate::machine::{memory_usable_bytes, open_files_max, resident_bytes};

/// What an operation under way takes, rounded up: its session, its generator and its place in the
/// engine (27 KB measured with target `null`).
const SESSION_BYTES: u64 = 32 << 10;

/// What a row of figures takes while a report is made (30 KB measured), and while pages of the run
/// are sent.
const ROW_BYTES: u64 = 128 << 10;

/// Returns the default limit of memory: an eighth of what there is, as the end of a stage takes up
/// to four times what its members have taken until then.
pub fn memory_for_runs() -> u64 {
    memory_usable_bytes() / 8
}

/// Refuses so many operations in flight as take more than `max` bytes, with their blocks of files.
pub fn check_in_flight(count: u64, blocks_bytes: u64, max: u64) -> Result<(), String> {
    let bytes = count.saturating_mul(SESSION_BYTES).saturating_add(blocks_bytes);
    if bytes <= max {
        return Ok(());
    }
    Err(format!(
        "{count} operations in flight take about {} MiB of memory, and runs may take {} MiB here",
        bytes >> 20,
        max >> 20
    ))
}

/// Refuses so many rows of figures as take more than half of `max` bytes in a report: two are made
/// concurrently.
pub fn check_rows(count: u64, max: u64) -> Result<(), String> {
    let bytes = count.saturating_mul(ROW_BYTES);
    if bytes <= max / 2 {
        return Ok(());
    }
    Err(format!(
        "a report would have {count} rows of figures (each kind of operation of each job of each \
         stage) and take about {} MiB of memory, and {} MiB are for a report here",
        bytes >> 20,
        max >> 21
    ))
}

/// Refuses so many operations in flight as need more connections than one of `runs_max` runs may
/// have: half of what this process may open is shared among them.
pub fn check_connections(count: u64, runs_max: u32) -> Result<(), String> {
    let most = open_files_max() / 2 / u64::from(runs_max.max(1));
    if count <= most {
        return Ok(());
    }
    Err(format!(
        "{count} operations in flight need as many connections, and a run may have {most} here"
    ))
}

/// Ends a run when this process takes more memory than it may.
pub struct MemoryGuard {
    /// How much it took then; 0 as long as it did not.
    taken: Arc<AtomicU64>,
    max: u64,
    /// Ends the guard when it is dropped.
    _ends: Sender<()>,
}

impl MemoryGuard {
    /// Watches over the memory of this process until it is dropped.
    pub fn begin(max: u64, stop: Stop) -> std::io::Result<Self> {
        let (ends, ended) = channel::<()>();
        let taken = Arc::<AtomicU64>::default();
        let seen = Arc::clone(&taken);
        // What runs before this one have taken may stay with the process, and is used again.
        let max = max.max(resident_bytes().saturating_add(max / 2));
        thread::Builder::new().name("memory".into()).spawn(move || {
            while ended.recv_timeout(Stop::REST_MAX) == Err(RecvTimeoutError::Timeout) {
                let bytes = resident_bytes();
                if bytes > max {
                    seen.store(bytes, Ordering::SeqCst);
                    stop.request();
                    return;
                }
            }
        })?;
        Ok(Self { taken, max, _ends: ends })
    }

    /// Returns why it has ended the run, if it has.
    pub fn refusal(&self) -> Option<String> {
        let taken = self.taken.load(Ordering::SeqCst);
        (taken > 0).then(|| {
            format!(
                "the run was ended: this process took {} MiB of memory, and runs may take {} MiB \
                 here",
                taken >> 20,
                self.max >> 20
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_takes_more_ends_its_run() {
        let stop = Stop::default();
        let guard = MemoryGuard::begin(1 << 20, stop.clone()).unwrap();
        let mut held = Vec::new();
        while guard.refusal().is_none() {
            if held.len() < 64 {
                held.push(vec![1_u8; 1 << 20]);
            }
            thread::yield_now();
        }
        assert!(stop.is_step_stopped() && guard.refusal().unwrap().contains("runs may take"));
    }

    #[test]
    fn runs_share_half_of_the_connections() {
        let half = open_files_max() / 2;
        assert!(check_connections(half, 1).is_ok() && check_connections(half, 2).is_err());
    }

    #[test]
    fn rows_of_reports_are_bound_by_memory() {
        assert_eq!(check_rows(256, 64 << 20), Ok(()));
        let refusal = check_rows(264, 64 << 20).unwrap_err();
        assert!(refusal.contains("about 33 MiB of memory, and 32 MiB are"), "{refusal}");
    }

    #[test]
    fn operations_in_flight_are_bound_by_memory() {
        assert_eq!(check_in_flight(32, 0, 1 << 20), Ok(()));
        assert!(check_in_flight(32, 1, 1 << 20).is_err());
        let refusal = check_in_flight(100_000, 0, 512 << 20).unwrap_err();
        assert!(
            refusal.contains("about 3125 MiB of memory, and runs may take 512 MiB"),
            "{refusal}"
        );
    }
}
