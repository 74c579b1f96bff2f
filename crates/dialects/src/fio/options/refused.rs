//! The options that change the load and are not followed: a job that sets them is refused.

use super::{Known, refuse};

const ZONES: &str = "zoned devices are not measured";
const PLACEMENT: &str = "the placement of data on devices is not steered";
const REPLAY: &str = "no record of operations is played back";
const SEEK_LATENCY: &str = "no depth is searched for a latency; run jobs of several `iodepth`";
const STEADY: &str = "a job ends by its time or size; native commands can stop when steady";
const OFFSETS: &str = "a job works on whole files; give it its own file";
const ALIGNMENT: &str = "blocks lie at multiples of their size";
const TRIMS: &str = "nothing is trimmed";
const COMMANDS: &str = "no commands are run; run it yourself before or after";
const RIGHTS: &str = "the program keeps its user and groups; start it as whom you mean";
const CGROUPS: &str = "no control group is made or joined; start plimsoll inside one";
const FLOWS: &str = "jobs are not weighed against each other; limit them by `rate`";
const OLD: &str = "fio itself no longer has it";
const VERIFY_ORDER: &str = "a job checks at its end, or what it reads; not in between";
const FLAGS_OF_CALLS: &str = "the calls are made without it";
const COMMAND_PRIORITY: &str = "operations have no priorities of their own";
const EXIT: &str = "a job ends by itself, or all on a failure by `exitall_on_error`";
const SLOW: &str = "no job ends for being slow; the rate that it reached is reported";
const EARLIER_RUN: &str = "what an earlier run wrote is not known; write and check in one run";
const ONE_ORDER: &str = "blocks are all drawn or all in order";

pub(super) const REFUSED: &[Known] = &[
    // Which blocks.
    refuse("offset", &["0"], OFFSETS).or(&["fileoffset"]),
    refuse("offset_align", &["0"], OFFSETS),
    refuse("offset_increment", &["0"], OFFSETS),
    refuse("ba", &[], ALIGNMENT).or(&["blockalign"]),
    refuse("bs_unaligned", &["0"], ALIGNMENT).switch().or(&["blocksize_unaligned"]),
    refuse("bs_is_seq_rand", &["0"], "sizes of blocks go by reads and writes"),
    refuse("rw_sequencer", &["sequential"], ONE_ORDER),
    refuse("percentage_random", &["100"], ONE_ORDER),
    refuse("percentage_sequential", &[], OLD),
    refuse("rwmixcycle", &[], OLD),
    refuse("random_sequence_stride", &["0"], ONE_ORDER),
    refuse("sprandom", &["0"], "devices are not conditioned; write them full by a job before"),
    refuse("spr_num_regions", &[], "devices are not conditioned; write them full by a job before"),
    refuse("spr_op", &[], "devices are not conditioned; write them full by a job before"),
    refuse("spr_cs", &["0"], "devices are not conditioned; write them full by a job before"),
    refuse("fill_device", &["0"], "a file system is not filled up; say a `size`").or(&["fill_fs"]),
    refuse("file_append", &["0"], OFFSETS),
    // Files.
    refuse("file_service_type", &["roundrobin"], "files are taken in turn, a block of each"),
    refuse("opendir", &[], "files that the job did not name are never touched"),
    refuse("lockfile", &["none"], "files are not locked"),
    refuse("create_on_open", &["0"], "files are made before anything is measured"),
    refuse("pre_read", &["0"], "caches are not filled; run a job that reads before it"),
    refuse("allow_mounted_write", &["0"], "a device is never written while it is mounted"),
    // How operations are issued.
    refuse("iodepth_low", &["0"], "a queue is topped up as soon as there is room"),
    refuse("serialize_overlap", &["0"], "operations in flight may overlap"),
    refuse("io_submit_mode", &["inline"], "a clone issues its operations itself"),
    refuse("atomic", &["0"], FLAGS_OF_CALLS),
    refuse("write_barrier", &["0"], "Linux has no such call; use `fdatasync`"),
    refuse("sync_file_range", &[], "Linux has no such call; use `fdatasync`"),
    refuse("fsync_on_close", &["0"], "use `end_fsync`"),
    refuse("end_syncfs", &["0"], "use `end_fsync`"),
    refuse("hipri", &["0"], FLAGS_OF_CALLS).switch(),
    refuse("hipri_percentage", &[], FLAGS_OF_CALLS),
    refuse("uncached", &["0"], FLAGS_OF_CALLS),
    refuse("nowait", &["0"], FLAGS_OF_CALLS),
    refuse("force_async", &["0"], FLAGS_OF_CALLS),
    refuse("cmdprio", &[], COMMAND_PRIORITY),
    refuse("cmdprio_bssplit", &[], COMMAND_PRIORITY),
    refuse("cmdprio_class", &[], COMMAND_PRIORITY),
    refuse("cmdprio_hint", &[], COMMAND_PRIORITY),
    refuse("cmdprio_percentage", &["0"], COMMAND_PRIORITY),
    // How long and how fast.
    refuse("ramp_size", &[], "say a `ramp_time`"),
    refuse("thinkcycles", &["0"], "say a `thinktime_spin`"),
    refuse("thinktime_blocks_type", &["complete"], "pauses come after completed operations"),
    refuse("thinktime_iotime", &["0"], "pauses come after so many operations: `thinktime_blocks`"),
    refuse("rate_ignore_thinktime", &["0"], "pauses count against the rate"),
    refuse("rate_min", &["0"], SLOW).or(&["ratemin"]),
    refuse("rate_iops_min", &["0"], SLOW),
    refuse("max_latency", &["0"], "no operation is too slow to be measured"),
    refuse("latency_target", &["0"], SEEK_LATENCY),
    refuse("latency_window", &["0"], SEEK_LATENCY),
    refuse("latency_percentile", &["100"], SEEK_LATENCY),
    refuse("latency_run", &["0"], SEEK_LATENCY),
    refuse("steadystate", &[], STEADY).or(&["ss"]),
    refuse("steadystate_duration", &[], STEADY).or(&["ss_dur"]),
    refuse("steadystate_ramp_time", &[], STEADY).or(&["ss_ramp"]),
    refuse("steadystate_check_interval", &[], STEADY).or(&["ss_interval"]),
    refuse("exitall", &["0"], EXIT).switch(),
    refuse("exit_what", &[], EXIT),
    refuse("flow", &["0"], FLOWS),
    refuse("flow_id", &["0"], FLOWS),
    refuse("flow_watermark", &[], FLOWS),
    refuse("flow_sleep", &["0"], FLOWS),
    // Checking.
    refuse("verify_only", &["0"], EARLIER_RUN).switch(),
    refuse("verify_backlog", &["0"], VERIFY_ORDER),
    refuse("verify_backlog_batch", &[], VERIFY_ORDER),
    refuse("verify_state_load", &["0"], "what was written is known from the seed; set `randseed`"),
    refuse("verifysort", &[], OLD),
    refuse("verifysort_nr", &[], OLD),
    refuse("trim_percentage", &["0"], TRIMS),
    refuse("trim_verify_zero", &["1"], TRIMS),
    refuse("trim_backlog", &["0"], TRIMS),
    refuse("trim_backlog_batch", &[], TRIMS),
    refuse("num_range", &["1"], TRIMS),
    // Playing back.
    refuse("write_iolog", &[], "the record of the run holds every operation; export it"),
    refuse("read_iolog", &[], REPLAY),
    refuse("read_iolog_chunked", &["0"], REPLAY),
    refuse("replay_no_stall", &["0"], REPLAY),
    refuse("replay_redirect", &[], REPLAY),
    refuse("replay_scale", &["1"], REPLAY),
    refuse("replay_align", &[], REPLAY),
    refuse("replay_time_scale", &["100"], REPLAY),
    refuse("replay_skip", &[], REPLAY),
    refuse("merge_blktrace_file", &[], REPLAY),
    refuse("merge_blktrace_scalars", &[], REPLAY),
    refuse("merge_blktrace_iters", &[], REPLAY),
    // Devices.
    refuse("zonemode", &["none"], ZONES),
    refuse("zonesize", &["0"], ZONES),
    refuse("zonecapacity", &["0"], ZONES),
    refuse("zonerange", &["0"], ZONES),
    refuse("zoneskip", &["0"], ZONES),
    refuse("read_beyond_wp", &["0"], ZONES),
    refuse("max_open_zones", &["0"], ZONES),
    refuse("job_max_open_zones", &["0"], ZONES),
    refuse("ignore_zone_limits", &["0"], ZONES),
    refuse("zone_reset_threshold", &[], ZONES),
    refuse("zone_reset_frequency", &[], ZONES),
    refuse("recover_zbd_write_error", &["0"], ZONES),
    refuse("write_zone_remainder", &["0"], ZONES),
    refuse("fdp", &["0"], PLACEMENT),
    refuse("dataplacement", &["none"], PLACEMENT).or(&["data_placement"]),
    refuse("plid_select", &[], PLACEMENT).or(&["fdp_pli_select"]),
    refuse("plids", &[], PLACEMENT).or(&["fdp_pli"]),
    refuse("dp_scheme", &[], PLACEMENT),
    refuse("ioscheduler", &[], "the settings of the machine are left alone"),
    // The process.
    refuse("exec_prerun", &[], COMMANDS),
    refuse("exec_postrun", &[], COMMANDS),
    refuse("profile", &[], "fio's ready-made tests are not here; `plimsoll file suite` is"),
    refuse("cgroup", &[], CGROUPS),
    refuse("cgroup_nodelete", &["0"], CGROUPS),
    refuse("cgroup_weight", &[], CGROUPS),
    refuse("uid", &[], RIGHTS),
    refuse("gid", &[], RIGHTS),
];
