//! What options mean, alone and together.

use super::*;

fn bytes(read: u64, write: u64) -> Directions<Blocks> {
    Directions { read: Blocks::Fixed(read), write: Blocks::Fixed(write) }
}

#[test]
fn comments_blanks_and_bare_keys() {
    let file = strict(
        "# a comment\n; another\n\n  [one and two]  \n\trw = randread ; why\n  direct=1 # so\n\
         time_based\nruntime=5\ndescription=a  b\n",
    )
    .unwrap();
    let job = &file.jobs[0];
    assert_eq!(job.name, "one and two");
    assert_eq!((job.pattern.order, job.queue.direct), (Order::Random, true));
    assert!(job.timing.time_based);
    assert_eq!(job.description.as_deref(), Some("a  b"));
    assert_eq!(job.place.line, Some(4));
    // The first `;` cuts, and no quote keeps it.
    let file = strict("[a]\nrw=read\ndescription='x;y'\n").unwrap();
    assert_eq!(file.jobs[0].description.as_deref(), Some("'x"));
}

#[test]
fn global_sections_hold_for_what_follows() {
    let file = strict(
        "[a]\nrw=read\n[global]\nbs=8k\n[b]\nrw=read\n[global_more]\niodepth=4\nioengine=libaio\n\
         [c]\nrw=read\nbs=16k\n[c]\nrw=write\n",
    )
    .unwrap();
    let seen: Vec<(&str, u64, u32)> = file
        .jobs
        .iter()
        .map(|job| {
            let size = job.pattern.blocks.read.size_bytes_max();
            (job.name.as_str(), size, job.queue.depth())
        })
        .collect();
    // Sections of one name are jobs of their own.
    assert_eq!(seen, [("a", 4_096, 1), ("b", 8_192, 1), ("c", 16_384, 4), ("c", 8_192, 4)]);
}

#[test]
fn included_files_are_read_in_place_and_beside_their_reader() {
    let files = [
        ("sub/common.inc", "bs=8k\ninclude more.inc\n"),
        ("sub/more.inc", "iodepth=2 # two\nioengine=libaio\n"),
    ];
    let text = "[global]\ninclude sub/common.inc\n[a]\nrw=read\ninclude sub/more.inc\n";
    let file = parse_with(Units::Strict, text, &files).unwrap();
    let job = &file.jobs[0];
    assert_eq!(job.pattern.blocks, bytes(8_192, 8_192));
    assert_eq!(job.queue.depth(), 2);
}

#[test]
fn variables_of_the_environment_and_of_the_machine() {
    let job = job("directory=${DIRECTORY}/x${EMPTY}\nnumjobs=$ncpus\nbs=$pagesize");
    assert_eq!(job.files.directories, ["/mnt/old/x"]);
    assert_eq!(job.flow.numjobs, 8);
    assert_eq!(job.pattern.blocks, bytes(4_096, 4_096));
    assert_eq!(super::job("numjobs=$ncpus/3").flow.numjobs, 2);
    assert_eq!(super::job("numjobs=$ncpus*2-1").flow.numjobs, 15);
    // A path with a number in it is no sum.
    assert_eq!(super::job("directory=/a/$ncpus").files.directories, ["/a/8"]);
}

#[test]
fn waves_and_groups() {
    let file = strict(
        "[global]\nrw=read\n[a]\nstonewall\n[b]\n[c]\nnew_group\n[d]\nwait_for_previous\n\
         [e]\nwait_for=b\nstonewall=0\n",
    )
    .unwrap();
    let seen: Vec<(u32, u32, Option<usize>)> =
        file.jobs.iter().map(|job| (job.flow.wave, job.flow.group, job.flow.wait_for)).collect();
    assert_eq!(seen, [(0, 0, None), (0, 0, None), (0, 1, None), (1, 2, None), (1, 2, Some(1))]);
}

#[test]
fn kinds_of_reading_and_writing() {
    use {Direction::*, Order::*};
    for (text, direction, order) in [
        ("read", Read, Sequential),
        ("write", Write, Sequential),
        ("rw", Mixed, Sequential),
        ("readwrite", Mixed, Sequential),
        ("randread", Read, Random),
        ("randwrite", Write, Random),
        ("randrw", Mixed, Random),
    ] {
        let job = job(&format!("readwrite={text}"));
        assert_eq!((job.pattern.direction, job.pattern.order), (direction, order), "{text}");
    }
    assert_eq!(job("rwmixwrite=30").pattern.read_percent, 70);
    assert_eq!(job("rwmixwrite=30\nrwmixread=60").pattern.read_percent, 60);
    let file = strict("[a]\nrw=rw\nrwmixwrite=30\nrwmixread=60\n").unwrap();
    assert_eq!(
        notes(&file),
        [
            "[a] `rwmixwrite`: `rwmixread=60` and `rwmixwrite=30` do not add up to 100; 60% are reads"
        ]
    );
}

#[test]
fn sizes_of_blocks() {
    assert_eq!(job("bs=8k,16k").pattern.blocks, bytes(8_192, 16_384));
    assert_eq!(job("bs=8k,16k,4k").pattern.blocks, bytes(8_192, 16_384));
    assert_eq!(job("bs=,16k").pattern.blocks, bytes(4_096, 16_384));
    assert_eq!(job("bs=8k,").pattern.blocks, bytes(8_192, 4_096));
    // fio's order, whatever the file's: shares, then ranges, then sizes.
    let range = Blocks::Range(Span { min: 4_096, max: 16_384 });
    for lines in ["bs=1m\nbsrange=4k-16k", "bsrange=16k:4k\nbs=1m", "bsrange=(2k+2k)-16k"] {
        assert_eq!(job(lines).pattern.blocks.read, range, "{lines}");
    }
    let share = |size_bytes, percent| BlockShare { size_bytes, percent };
    let split = |lines: &str| job(lines).pattern.blocks.read;
    assert_eq!(
        split("bssplit=4k/50:8k/:16k/"),
        Blocks::Split(vec![share(4_096, 50), share(8_192, 25), share(16_384, 25)])
    );
    assert_eq!(
        split("bssplit=4k:8k:16k\nbs=4k"),
        Blocks::Split(vec![share(4_096, 33), share(8_192, 33), share(16_384, 34)])
    );
    let file = strict("[a]\nrw=read\nbssplit=4k/100\nbs=8k\n").unwrap();
    assert_eq!(notes(&file), ["[a] `bssplit`: it counts, not `bs` or `bsrange`, as in fio"]);
}

#[test]
fn random_choices() {
    let distribution =
        |text: &str| job(&format!("random_distribution={text}")).pattern.distribution;
    assert_eq!(distribution("random"), Distribution::Uniform);
    assert_eq!(distribution("zipf:1.2"), Distribution::Zipf { theta: 1.2 });
    assert_eq!(distribution("pareto:0.3"), Distribution::Pareto { h: 0.3 });
    assert_eq!(distribution("normal:20%"), Distribution::Normal { deviation_percent: 20.0 });
    assert!(job("").pattern.random_map);
    assert!(!job("norandommap").pattern.random_map);
    assert!(!job("random_distribution=zipf:1.2").pattern.random_map);
    assert_eq!(job("").pattern.seed, Some(0x89));
    assert_eq!(job("randrepeat=0").pattern.seed, None);
    assert_eq!(job("randrepeat=0\nrandseed=7").pattern.seed, Some(7));
}

#[test]
fn names_of_files() {
    let files = job("directory=/a:/b/\nnrfiles=2").files;
    assert_eq!(files.paths("j", 0), ["/a/j.0.0", "/a/j.0.1"]);
    assert_eq!(files.paths("j", 3), ["/b/j.3.0", "/b/j.3.1"]);
    let files = job("filename=x\\:1:y:\nnrfiles=2").files;
    assert_eq!((files.count, files.paths("j", 1)), (2, vec!["x:1".to_owned(), "y".to_owned()]));
    let files = job("size=1g\nnrfiles=4").files;
    assert_eq!(files.size_of_file(), Some(Span { min: 1 << 28, max: 1 << 28 }));
    let files = job("filesize=64k-4k").files;
    assert_eq!(files.size_of_file(), Some(Span { min: 4_096, max: 65_536 }));
    let file = strict("[a]\nrw=read\nfilename=/dev/nvme0n1:/dev/shm/x\nnrfiles=4\n").unwrap();
    assert_eq!(file.jobs[0].files.devices().collect::<Vec<_>>(), ["/dev/nvme0n1"]);
    assert_eq!(
        notes(&file),
        [
            "[a] `filename`: /dev/nvme0n1 is a device: the run is refused without `--i-know-this-destroys-data`",
            "[a] `nrfiles=4`: `filename` names 2, and that counts",
        ]
    );
}

#[test]
fn queues() {
    assert_eq!(job("ioengine=io_uring\niodepth=8\niodepth_batch=4").queue.depth(), 8);
    let file = strict("[a]\nrw=read\nioengine=sync\niodepth=32\n").unwrap();
    assert_eq!((file.jobs[0].queue.iodepth, file.jobs[0].queue.depth()), (32, 1));
    assert_eq!(
        notes(&file),
        [
            "[a] `ioengine=sync`: run as psync: one call an operation, without a seek before it",
            "[a] `iodepth=32`: sync waits for each operation, so one is in flight, as in fio",
        ]
    );
    assert!(job("buffered=0").queue.direct);
    assert!(!job("direct=1\nbuffered=1").queue.direct);
    for (text, sync) in [
        ("none", SyncMode::Off),
        ("0", SyncMode::Off),
        ("1", SyncMode::Sync),
        ("dsync", SyncMode::Dsync),
    ] {
        assert_eq!(job(&format!("sync={text}")).queue.sync, sync);
    }
    let queue = job("fsync=32\nfdatasync=0\nend_fsync=1").queue;
    assert_eq!((queue.fsync_every, queue.fdatasync_every, queue.end_fsync), (Some(32), None, true));
}

#[test]
fn engines_go_to_the_nearest() {
    for (name, engine, is_noted) in [
        ("io_uring", Engine::IoUring, false),
        ("libaio", Engine::Libaio, false),
        ("psync", Engine::Psync, false),
        ("pvsync2", Engine::Psync, true),
        ("posixaio", Engine::IoUring, true),
        ("mmap", Engine::Psync, true),
        ("null", Engine::Null, false),
        ("warpdrive", Engine::IoUring, true),
    ] {
        let file = strict(&format!("[a]\nrw=read\nioengine={name}\n")).unwrap();
        assert_eq!(file.jobs[0].queue.engine, engine, "{name}");
        assert_eq!(file.jobs[0].queue.engine_written.as_deref(), Some(name));
        assert_eq!(!file.notes.is_empty(), is_noted, "{name}");
    }
    // These need no `rw`, and no file as large as a block.
    for (name, engine) in [
        ("filecreate", Engine::FileCreate),
        ("filestat", Engine::FileStat),
        ("filedelete", Engine::FileDelete),
    ] {
        let text = format!("[a]\nioengine={name}\nnrfiles=100\nfilesize=1\n");
        let job = strict(&text).unwrap().jobs.remove(0);
        assert_eq!((job.queue.engine, job.files.count), (engine, 100));
        assert!(!job.fills_files());
        assert_eq!(job.writes(), engine != Engine::FileStat);
    }
}

#[test]
fn times_and_rates() {
    let job = job("rate=1m,500k\nloops=3\nrate_process=poisson\nthinktime=50\n\
                   thinktime_spin=1ms\nthinktime_blocks=4\nstartdelay=9-5\nramp_time=2");
    assert_eq!(job.rates.bytes_per_sec, Directions { read: Some(1 << 20), write: Some(512_000) });
    assert_eq!(job.timing.loops, 3);
    assert_eq!(job.rates.process, RateProcess::Poisson);
    assert_eq!(
        job.thinktime,
        Thinktime {
            pause: Duration::from_micros(50),
            spin: Duration::from_millis(1),
            operations: 4
        }
    );
    let delay = Span { min: Duration::from_secs(5), max: Duration::from_secs(9) };
    assert_eq!(job.flow.start_delay, delay);
    assert_eq!(job.timing.ramp, Duration::from_secs(2));
    // 0 lifts a limit.
    let file = strict("[global]\nrate=1m\n[a]\nrw=read\nrate=0\n").unwrap();
    assert_eq!(file.jobs[0].rates.bytes_per_sec, Directions { read: None, write: None });
}

#[test]
fn checks_and_reports() {
    let file = strict("[a]\nrw=write\nverify=crc32c\ndo_verify=0\nverify_fatal=1\n").unwrap();
    let verify = &file.jobs[0].verify;
    assert_eq!(verify.method.as_deref(), Some("crc32c"));
    assert!(!verify.after_writing && verify.fatal);
    assert_eq!(
        notes(&file),
        [
            "[a] `verify=crc32c`: every byte is compared with what was written; no sum is stored with the blocks"
        ]
    );
    let reporting = job(
        "clat_percentiles=0\nlat_percentiles=1\nslat_percentiles=1\nwrite_lat_log\nwrite_bw_log=x",
    )
    .reporting;
    assert!(!reporting.clat_percentiles && reporting.lat_percentiles && reporting.slat_percentiles);
    assert_eq!(reporting.logs.lat.as_deref(), Some("a"));
    assert_eq!(reporting.logs.bw.as_deref(), Some("x"));
}

#[test]
fn a_value_that_changes_nothing_needs_no_note() {
    let file = strict(
        "[a]\nrw=read\nzonemode=none\nloops=1\nthread\nrefill_buffers\nfallocate=none\n\
         offset=0\ndisk_util=0\ngtod_reduce=0\n",
    )
    .unwrap();
    assert_eq!(notes(&file), Vec::<String>::new());
    let file = strict("[global]\nmem=mmaphuge\n[a]\nrw=read\n[b]\nrw=read\nthread=0\n").unwrap();
    // A note on a global option stands once.
    assert_eq!(
        notes(&file),
        [
            "[global] `mem=mmaphuge`: buffers are aligned memory of our own",
            "[b] `thread=0`: clones are threads; here they always are",
        ]
    );
}
