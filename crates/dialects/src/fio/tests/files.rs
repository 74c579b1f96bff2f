//! The job files of WEKA's guide, of wekatester and of fio's samples.

use super::*;

const GIB: u64 = 1 << 30;
const CLOCK: &str =
    "[global] `clocksource=gettimeofday`: all times are of the monotonic clock, in nanoseconds";
const POSIXAIO: &str = "[global] `ioengine=posixaio`: run on io_uring: \
                        glibc's threads behind posixaio cost more and serve a file one by one";

fn same<T: Copy>(value: T) -> Option<Span<T>> {
    Some(Span { min: value, max: value })
}

fn fixed(size: u64) -> Directions<Blocks> {
    Directions { read: Blocks::Fixed(size), write: Blocks::Fixed(size) }
}

#[test]
fn every_job_file_is_read_in_both_units() {
    let mut count = 0;
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fio")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.to_string_lossy().into_owned();
            if name.ends_with("option-names.txt") || name.ends_with("showcmd.txt") {
                continue;
            }
            count += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let read = |units| with(units, &[], |options| parse(&text, &name, options));
            let strict = read(Units::Strict).map_err(|error| error.to_string());
            let fio = read(Units::Fio).map_err(|error| error.to_string());
            // What is read strictly is what fio reads.
            assert_eq!(strict.map(|file| file.jobs), fio.map(|file| file.jobs), "{name}");
        }
    }
    // 8 of WEKA's guide, 11 of wekatester, 3 of fio.
    assert_eq!(count, 22);
}

#[test]
fn weka_s_master_file_has_eight_jobs_one_after_the_other() {
    let file = real("weka/FIOmaster.txt");
    let names: Vec<&str> = file.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "create_iops_files",
            "create_bw_files",
            "read_throughput",
            "write_throughput",
            "read_iops",
            "write_iops",
            "read_latency",
            "write_latency",
        ]
    );
    for (index, job) in file.jobs.iter().enumerate() {
        assert_eq!(job.flow.wait_for, index.checked_sub(1), "{}", job.name);
        assert_eq!((job.flow.wave, job.flow.group as usize), (0, index), "{}", job.name);
        assert_eq!(job.flow.start_delay, same(Duration::from_secs(5)).unwrap());
        assert_eq!(job.timing.runtime, Some(Duration::from_secs(300)));
        assert!(job.timing.time_based && job.flow.exitall_on_error && job.flow.group_reporting);
        assert_eq!(job.queue.engine, Engine::IoUring);
        assert_eq!((job.queue.iodepth, job.queue.depth()), (1, 1));
        assert_eq!(job.pattern.seed, Some(0x89));
        assert_eq!(job.files.directories, ["/mnt/weka/fio"]);
        // Creating is neither direct nor does it forbid to create; all others are and do.
        assert_eq!(job.queue.direct, index >= 2, "{}", job.name);
        assert_eq!(job.files.allow_file_create, index < 2, "{}", job.name);
        assert_eq!(job.files.create_only, index < 2, "{}", job.name);
        let numjobs = [192, 32, 32, 32, 192, 192, 1, 1];
        assert_eq!(job.flow.numjobs, numjobs[index], "{}", job.name);
        let size = [4, 128, 128, 128, 4, 4, 4, 4];
        assert_eq!(job.files.file_size_bytes, same(size[index] * GIB), "{}", job.name);
        let block = [1 << 20, 1 << 20, 1 << 20, 1 << 20, 4_096, 4_096, 4_096, 4_096];
        assert_eq!(job.pattern.blocks, fixed(block[index]), "{}", job.name);
    }
    let [create, _, read, write, .., write_latency] = file.jobs.as_slice() else { panic!() };
    assert_eq!((create.pattern.direction, create.pattern.read_percent), (Direction::Mixed, 0));
    assert_eq!(create.pattern.order, Order::Sequential);
    assert!(create.fills_files() && read.fills_files() && !write.fills_files());
    assert!(!create.writes() && !read.writes() && write.writes());
    assert_eq!(create.files.paths(&create.name, 3), ["/mnt/weka/fio/3/0/iops.3.0"]);
    assert_eq!(read.files.paths(&read.name, 31), ["/mnt/weka/fio/31/0/bw.31.0"]);
    assert_eq!(write_latency.pattern.direction, Direction::Write);
    assert_eq!(write_latency.pattern.order, Order::Random);
    assert_eq!(notes(&file), [CLOCK, POSIXAIO]);
    assert_eq!(file.global_options.len(), 11);
    assert_eq!(create.options.last(), Some(&("new_group".to_owned(), "1".to_owned())));
}

#[test]
fn weka_s_single_files_are_the_same_six_jobs() {
    let master = real("weka/FIOmaster.txt");
    for measured in &master.jobs[2..] {
        let file = real(&format!("weka/{}.txt", measured.name));
        let [job] = file.jobs.as_slice() else { panic!("{}", measured.name) };
        assert_eq!(job.name, measured.name);
        assert_eq!(job.pattern, measured.pattern);
        assert_eq!(job.queue, measured.queue);
        assert_eq!(job.timing, measured.timing);
        assert_eq!(job.flow.numjobs, measured.flow.numjobs);
        // Alone they make their files themselves.
        assert_eq!(job.files, Files { allow_file_create: true, ..measured.files.clone() });
        assert_eq!(notes(&file), [CLOCK, POSIXAIO]);
    }
}

#[test]
fn weka_s_older_file_counts_processors_and_waits_in_every_section() {
    let file = real("weka/FIOmaster-v3.6-older.txt");
    assert_eq!(file.jobs.len(), 7);
    for (index, job) in file.jobs.iter().enumerate() {
        assert_eq!((job.flow.wave as usize, job.flow.group as usize), (index, index));
        // 8 processors less 2, but for the fourth and the last.
        let numjobs = if [3, 6].contains(&index) { 1 } else { 6 };
        assert_eq!(job.flow.numjobs, numjobs, "{}", job.name);
        assert_eq!(job.files.size, Some(Amount::Bytes(10 * GIB)));
        assert_eq!(job.files.paths(&job.name, 5), ["/mnt/old/5/0"]);
        let read_percent = if (1..=3).contains(&index) { 100 } else { 0 };
        assert_eq!(job.pattern.read_percent, read_percent, "{}", job.name);
        assert_eq!(job.writes(), index > 3, "{}", job.name);
    }
    let size = "[global] `size=10GB`: `10GB` is read as 10,737,418,240 bytes, as fio does";
    assert_eq!(notes(&file), [POSIXAIO, size, CLOCK]);
}

#[test]
fn wekatester_makes_files_and_then_measures() {
    let file = real("wekatester/default/011-bandwidthR.job");
    let [create, read] = file.jobs.as_slice() else { panic!() };
    assert_eq!(create.name, "fio-createfiles-00");
    assert!(create.files.create_only && create.fills_files());
    assert_eq!((create.flow.wave, create.flow.group), (0, 0));
    assert_eq!(read.name, "fio-bandwidthSR-00");
    assert_eq!((read.flow.wave, read.flow.group), (1, 1));
    assert_eq!(read.description.as_deref(), Some("'Sequential Read bandwidth workload'"));
    for job in [create, read] {
        assert_eq!(job.pattern.direction, Direction::Read);
        assert_eq!(job.pattern.blocks, fixed(1 << 20));
        assert_eq!(job.flow.numjobs, 32);
        assert_eq!(job.files.file_size_bytes, same(10 * GIB));
        assert_eq!(job.files.paths(&job.name, 7), ["/mnt/weka/0/7"]);
        assert_eq!(job.queue.engine, Engine::Libaio);
        assert!(job.queue.direct);
    }
    assert_eq!(notes(&file), [CLOCK]);
    let large = real("wekatester/2x400Gb/011-bandwidthR.job");
    assert_eq!(large.jobs[1].flow.numjobs, 80);
    assert_eq!(large.jobs[1].timing.runtime, Some(Duration::from_secs(150)));
    let iops = real("wekatester/default/031-iopsR.job");
    assert_eq!((iops.jobs[1].flow.numjobs, iops.jobs[1].queue.depth()), (64, 8));
}

#[test]
fn wekatester_s_mixed_job_says_what_is_not_switched_off() {
    let file = real("wekatester/wekawithin/041-fio-mixed-io.job");
    let job = &file.jobs[1];
    assert_eq!((job.pattern.direction, job.pattern.order), (Direction::Mixed, Order::Random));
    assert_eq!(job.pattern.read_percent, 70);
    assert_eq!(job.pattern.blocks, fixed(4_096));
    assert_eq!((job.flow.numjobs, job.queue.depth()), (200, 16));
    assert_eq!(job.timing.ramp, Duration::from_secs(3));
    assert_eq!(job.timing.runtime, Some(Duration::from_secs(180)));
    assert_eq!(job.files.paths(&job.name, 199), ["/mnt/weka/wekawithin/199"]);
    assert!(job.files.invalidate);
    assert_eq!(
        notes(&file),
        [
            CLOCK,
            "[global] `disable_lat=1`: all times are always taken",
            "[global] `disable_clat=1`: all times are always taken",
            "[global] `disable_slat=1`: all times are always taken",
        ]
    );
}

#[test]
fn fio_s_sample_has_shares_of_blocks_logs_and_percentiles() {
    let file = real("fio/mixed.fio");
    let [mixed, write] = file.jobs.as_slice() else { panic!() };
    let shares = [(4_096, 60), (16_384, 30), (65_536, 10)]
        .map(|(size_bytes, percent)| BlockShare { size_bytes, percent });
    assert_eq!(mixed.pattern.blocks.read, Blocks::Split(shares.to_vec()));
    assert_eq!(mixed.pattern.blocks.write, mixed.pattern.blocks.read);
    assert_eq!(mixed.pattern.seed, Some(42));
    assert_eq!(mixed.timing.ramp, Duration::from_millis(500));
    assert_eq!(mixed.files.size, Some(Amount::Bytes(8 << 20)));
    assert_eq!(mixed.files.paths("rw70", 1), ["SCRATCH/fsb/s/rw70.1.0"]);
    let logs = Logs {
        bw: Some("bwlog".to_owned()),
        iops: Some("iopslog".to_owned()),
        lat: Some("latlog".to_owned()),
        average: Some(Duration::from_millis(250)),
    };
    assert_eq!(mixed.reporting.logs, logs);
    assert_eq!(mixed.reporting.percentiles, DEFAULT_PERCENTILES);
    assert_eq!((write.flow.wave, write.flow.group), (1, 1));
    assert_eq!(write.queue.fsync_every, Some(4));
    assert!(write.queue.end_fsync && !mixed.queue.end_fsync);
    assert_eq!(write.reporting.percentiles, [50.0, 90.0, 99.0, 99.9, 99.99]);
    assert_eq!(
        notes(&file),
        [
            "[rw70] `write_hist_log=histlog`: the record of the run holds every operation",
            "[rw70] `log_hist_msec=500`: the record of the run holds every operation",
        ]
    );
}
