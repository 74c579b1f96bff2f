//! How many threads read and count a record.

use std::num::NonZero;
use std::thread;

/// How many threads there are at most: each of an op log holds a part in memory, some 5 to 25 MB.
const THREADS_MAX: usize = 8;

/// Returns how many threads count: one for each core that this process may use by its affinity and
/// its control group.
pub(crate) fn threads_count() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX)
}
