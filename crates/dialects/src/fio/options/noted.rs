//! The options that change no load: what differs is said.

use super::{Known, note};

const CLOCK: &str = "all times are of the monotonic clock, in nanoseconds";
const ALL_TIMES: &str = "all times are always taken";
const NO_SUM: &str = "no sums are stored with the blocks; every byte is compared";
const OWN_CONTENT: &str =
    "every block written gets unique content, which neither compresses nor repeats";
const NOT_PLACED: &str = "threads and memory are left to the kernel; place the whole program";
const PRIORITY: &str = "priorities are left as they are";
const BUFFERS: &str = "buffers are aligned memory of our own";
const HINT: &str = "the kernel is given no such hint";
const OP_LOG: &str = "the record of the run holds every operation";
const OWN_DRAWS: &str = "blocks are drawn by a generator of our own, so the order is another one";
const NAMES: &str = "names of files carry no address; clones are numbered over all clients";
const LAYOUT: &str = "files are filled by writing them, and synced before anything is measured";
const STATE: &str = "what was written is known from the seed; no state is saved";
const FAILURES: &str = "a failed operation is counted and the job goes on";
const HALF_SECONDS: &str = "rates over time are of half seconds";
const BATCHES: &str =
    "what is ready is handed over at once, and what is done is taken back at once";
const RINGS: &str = "the ring is set up as well as the kernel allows";

pub(super) const NOTED: &[Known] = &[
    // Clocks, statistics, logs.
    note("clocksource", &["clock_gettime"], CLOCK),
    note("gtod_reduce", &["0"], ALL_TIMES),
    note("gtod_cpu", &[], CLOCK),
    note("disable_lat", &["0"], ALL_TIMES),
    note("disable_clat", &["0"], ALL_TIMES),
    note("disable_slat", &["0"], ALL_TIMES),
    note("disable_bw_measurement", &["0"], ALL_TIMES).or(&["disable_bw"]),
    note("job_start_clock_id", &[], CLOCK),
    note("stats", &["1"], ALL_TIMES),
    note("disk_util", &["0"], "the use of disks is not measured"),
    note("unified_rw_reporting", &["none", "0"], "reads and writes are reported apart"),
    note("unit_base", &["0", "8"], "rates are printed in bytes"),
    note("significant_figures", &["4"], "figures are printed our way"),
    note("block_error_percentiles", &["0"], "nothing is trimmed"),
    note("bwavgtime", &["500"], HALF_SECONDS),
    note("iopsavgtime", &["500"], HALF_SECONDS),
    note("write_hist_log", &[], OP_LOG),
    note("log_hist_msec", &[], OP_LOG),
    note("log_hist_coarseness", &[], OP_LOG),
    note("log_entries", &[], OP_LOG),
    note("log_window_value", &["avg", "0"], "lines of logs hold means").or(&["log_max_value"]),
    note("log_offset", &["0"], OP_LOG),
    note("log_prio", &["0"], OP_LOG),
    note("log_issue_time", &["0"], OP_LOG),
    note("log_compression", &[], OP_LOG),
    note("log_compression_cpus", &[], OP_LOG),
    note("log_store_compressed", &["0"], OP_LOG),
    note("log_alternate_epoch", &["0"], "logs count from the start of the run")
        .or(&["log_unix_epoch"]),
    note("log_alternate_epoch_clock_id", &[], "logs count from the start of the run"),
    note("per_job_logs", &["1"], "each job has its own logs"),
    // The process.
    note("thread", &["1"], "clones are threads; here they always are").switch(),
    note("comm", &[], "threads have names of our own"),
    note("cpumask", &[], NOT_PLACED),
    note("cpus_allowed", &[], NOT_PLACED),
    note("cpus_allowed_policy", &[], NOT_PLACED),
    note("numa_cpu_nodes", &[], NOT_PLACED),
    note("numa_mem_policy", &[], NOT_PLACED),
    note("lockmem", &["0"], NOT_PLACED),
    note("gpu_dev_id", &["0"], NOT_PLACED),
    note("nice", &["0"], PRIORITY),
    note("prio", &[], PRIORITY),
    note("prioclass", &[], PRIORITY),
    note("priohint", &[], PRIORITY),
    note("mem", &["malloc"], BUFFERS).or(&["iomem"]),
    note("iomem_align", &[], BUFFERS).or(&["mem_align"]),
    note("hugepage-size", &[], BUFFERS),
    // Files.
    note("fallocate", &["none", "0"], LAYOUT),
    note("create_fsync", &["1"], LAYOUT),
    note("create_serialize", &["0"], "all processors fill files at once, before what is measured"),
    note("filetype", &["none", "file"], "what a path names is looked up"),
    note("openfiles", &[], "all files of a job are kept open"),
    note("unlink", &["0"], "files go when the run cleans up, not when the job ends"),
    note("unlink_each_loop", &["0"], "files go when the run cleans up"),
    note("unique_filename", &[], NAMES),
    note("fadvise_hint", &["0"], HINT),
    note("write_hint", &["none"], HINT),
    note("random_generator", &[], OWN_DRAWS),
    note("softrandommap", &["0"], "there is always room to remember the blocks of a pass"),
    // Failures.
    note("continue_on_error", &["all", "1"], FAILURES),
    note("ignore_error", &[], FAILURES),
    note("error_dump", &["0"], FAILURES),
    note("rate_cycle", &["1000"], "no job ends for being slow").or(&["ratecycle"]),
    // Content and its check.
    note("refill_buffers", &["1"], OWN_CONTENT).switch(),
    note("zero_buffers", &["0"], OWN_CONTENT).switch(),
    note("scramble_buffers", &["1"], OWN_CONTENT),
    note("buffer_pattern", &[], OWN_CONTENT),
    note("buffer_compress_percentage", &["0"], OWN_CONTENT),
    note("buffer_compress_chunk", &[], OWN_CONTENT),
    note("dedupe_percentage", &["0"], OWN_CONTENT),
    note("dedupe_global", &["0"], OWN_CONTENT),
    note("dedupe_mode", &[], OWN_CONTENT),
    note("dedupe_working_set_percentage", &[], OWN_CONTENT),
    note("verify_interval", &[], NO_SUM),
    note("verify_offset", &[], NO_SUM),
    note("verify_pattern", &[], OWN_CONTENT),
    note("verify_pattern_interval", &["0"], OWN_CONTENT),
    note("verify_header_seed", &["1"], NO_SUM),
    note("verify_write_sequence", &["1"], NO_SUM),
    note("verify_dump", &["0"], "what is wrong is named by file, offset and kind"),
    note("verify_policy", &["completed"], "all that was written is checked"),
    note("verify_async", &["0"], "the thread that reads a block checks it"),
    note("verify_async_cpus", &[], "the thread that reads a block checks it"),
    note("verify_state_save", &["0"], STATE),
    note("experimental_verify", &["0"], NO_SUM),
    // Engines.
    note("iodepth_batch", &[], BATCHES).or(&["iodepth_batch_submit"]),
    note("iodepth_batch_complete_min", &[], BATCHES).or(&["iodepth_batch_complete"]),
    note("iodepth_batch_complete_max", &[], BATCHES),
    note("fixedbufs", &["1"], RINGS).switch(),
    note("registerfiles", &["1"], RINGS).switch(),
    note("nonvectored", &["1"], RINGS),
    note("userspace_reap", &[], RINGS),
    note("sqthread_poll", &["0"], RINGS).switch(),
    note("sqthread_poll_cpu", &[], RINGS),
];
