//! Waves, what is filled, how long and how fast, what is checked.

use plimsoll_workload::files::CapSpec;

use super::*;

const GLOBAL: &str = "[global]\nsize=64k\n";

fn of(text: &str) -> Lowered {
    lowered(&format!("{GLOBAL}{text}"))
}

/// Returns the last job of `[a]` with these lines, on files of 64 KiB.
fn job(lines: &str) -> FileJobSpec {
    let mut lowered = of(&format!("[a]\n{lines}\n"));
    lowered.spec.stages.pop().unwrap().jobs.pop().unwrap()
}

#[test]
fn waves_levels_and_groups() {
    let lowered = of("[a]\nrw=write\n[b]\nrw=write\nnew_group\n[c]\nrw=write\nwait_for=a\n\
                      [d]\nrw=write\n[e]\nrw=write\nwait_for=c\n\
                      [f]\nrw=write\nstonewall\nwait_for=a\n");
    assert_eq!(
        stages(&lowered),
        [
            ("a+b+d", false, &[0, 1, 3][..]),
            ("c", false, &[2]),
            ("e", false, &[4]),
            ("f", false, &[5])
        ]
    );
    let groups: Vec<Vec<u32>> = lowered
        .spec
        .stages
        .iter()
        .map(|stage| stage.jobs.iter().map(|job| job.group).collect())
        .collect();
    assert_eq!(groups, [vec![0, 1, 1], vec![1], vec![1], vec![2]]);
    assert_eq!(
        notes(&lowered),
        ["[c] `wait_for=a`: it waits for all jobs that run beside that one too"]
    );
    // Names of stages are their own, also where sections share one.
    let lowered = of("[a]\nrw=write\n[b]\nrw=write\n[c]\nrw=write\n[d]\nrw=write\n\
                      [x]\nstonewall\nrw=write\n[x]\nstonewall\nrw=write\n");
    let names: Vec<_> = lowered.spec.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["a+3", "x", "x-2"]);
}

#[test]
fn a_file_is_filled_once_before_it_is_read() {
    let shared = "[global]\nsize=64k\nfilename_format=f.$jobnum\n[a]\nrw=read\n\
                  [b]\nrw=randread\nnumjobs=2\n\
                  [c]\nstonewall\nrw=randrw\n[d]\nstonewall\nrw=read\nnumjobs=3\n";
    let lowered = lowered(shared);
    assert_eq!(
        stages(&lowered),
        [
            ("fill", true, &[0, 1][..]),
            ("a+b", false, &[0, 1]),
            ("c", false, &[2]),
            // Only the third clone has a file that is not filled; the plan knows the others.
            ("fill-2", true, &[3]),
            ("d", false, &[3]),
        ]
    );
    // What a job has written from end to end is not filled over.
    let text = |write: &str| {
        format!(
            "[global]\nsize=64k\nfilename=f\n[w]\n{write}\n[r]\nstonewall\nrw=read\nnumjobs=2\n"
        )
    };
    for write in ["rw=write", "rw=randwrite", "rw=write\nloops=2", "rw=write\nio_size=128k"] {
        let lowered = super::lowered(&text(write));
        assert_eq!(stages(&lowered), [("w", false, &[0][..]), ("r", false, &[1])], "{write}");
    }
    for write in [
        "rw=randwrite\nnorandommap",
        "rw=write\nruntime=5",
        "rw=write\nio_size=32k",
        "rw=write\nnumber_ios=16",
        "rw=write\ntime_based\nruntime=5",
    ] {
        let lowered = super::lowered(&text(write));
        assert_eq!(
            stages(&lowered),
            [("w", false, &[0][..]), ("fill", true, &[1]), ("r", false, &[1])],
            "{write}"
        );
        assert_eq!(
            notes(&lowered).last().map(String::as_str),
            Some(
                "[r] `rw`: [w] may have left gaps in its files, so they are filled anew before it; \
                 fio would read the gaps"
            )
        );
    }
    let overwrite = of("[a]\nrw=write\noverwrite=1\n");
    assert_eq!(stages(&overwrite), [("fill", true, &[0][..]), ("a", false, &[0])]);
}

#[test]
fn making_files_is_a_stage_of_its_own_and_knows_its_size() {
    let lowered =
        of("[make]\nrw=write\ncreate_only=1\nfilename=f\n[use]\nrw=read\nwait_for=make\n\
                      filename=f\nallow_file_create=0\n");
    assert_eq!(stages(&lowered), [("make", true, &[0][..]), ("use", false, &[1])]);
    assert_eq!(
        notes(&lowered),
        ["[make] `create_only`: its files are filled; fio would only make room for them"]
    );
    // A job without a size takes that of the files it finds.
    let lowered =
        super::lowered("[w]\nrw=write\nsize=1m\nfilename=f\n[r]\nstonewall\nrw=read\nfilename=f\n");
    assert_eq!(blocks(&lowered.spec.stages[1].jobs[0]).files.size_bytes, SpanSpec::of(MIB));
    // A job may use the first part of a file.
    let lowered = super::lowered(
        "[w]\nrw=write\nsize=1m\nfilename=f\n[r]\nstonewall\nrw=read\nfilename=f\nsize=64k\n",
    );
    assert_eq!(stages(&lowered), [("w", false, &[0][..]), ("r", false, &[1])]);
    assert_eq!(blocks(&lowered.spec.stages[1].jobs[0]).files.size_bytes, SpanSpec::of(65_536));
    // Its files are made before it, also where nothing makes it wait.
    let lowered =
        of("[make]\ncreate_only=1\nfilename=f\n[use]\nrw=read\nfilename=f\nallow_file_create=0\n");
    assert_eq!(stages(&lowered), [("make", true, &[0][..]), ("use", false, &[1])]);
}

#[test]
fn names_from_the_root_lie_in_their_directory() {
    let files = |lines: &str| blocks(&job(&format!("rw=write\n{lines}"))).files.clone();
    let seen = |lines: &str| {
        let files = files(lines);
        (files.directories, files.names, files.existing)
    };
    let text = |text: &str| text.to_owned();
    assert_eq!(seen("filename=/x/y/f"), (vec![text("/x/y")], vec![text("f")], false));
    assert_eq!(seen("filename=/x/f:/x/g"), (vec![text("/x")], vec![text("f"), text("g")], false));
    assert_eq!(seen("filename=/f"), (vec![text("/")], vec![text("f")], false));
    assert_eq!(seen("filename=d/f"), (vec![text("/here")], vec![text("d/f")], false));
    assert_eq!(seen("directory=x:/y/"), (vec![text("/here/x"), text("/y/")], vec![], false));
}

#[test]
fn files_that_are_there_are_taken_as_they_are() {
    let lowered = lowered("[a]\nrw=read\nfilename=/data/old\nnumjobs=3\n");
    assert_eq!(stages(&lowered), [("a", false, &[0][..])]);
    let job = &lowered.spec.stages[0].jobs[0];
    let files = &blocks(job).files;
    assert_eq!((job.clones, files.existing, files.destroys), (3, true, false));
    assert_eq!(
        (files.names.as_slice(), files.size_bytes),
        (&["/data/old".to_owned()][..], SpanSpec::of(65_536))
    );
    // By way of `directory`, and a share of it.
    let lowered = super::lowered("[a]\nrw=read\ndirectory=/data\nfilename=new\nsize=50%\n");
    let files = &blocks(&lowered.spec.stages[0].jobs[0]).files;
    assert_eq!(
        (files.names.as_slice(), files.size_bytes),
        (&["/data/new".to_owned()][..], SpanSpec::of(65_536))
    );
    // Files that are not named: only where the job may not make them, and each clone has its own.
    let text = "[a]\nrw=read\ndirectory=/data\nnumjobs=2\nsize=32k\n";
    let made = super::lowered(text);
    assert_eq!(stages(&made), [("fill", true, &[0][..]), ("a", false, &[0])]);
    let found = super::lowered(&format!("{text}allow_file_create=0\n"));
    assert_eq!(stages(&found), [("a", false, &[0, 0][..])]);
    let names: Vec<_> = found.spec.stages[0]
        .jobs
        .iter()
        .map(|job| (job.clones, blocks(job).files.names.concat(), blocks(job).files.size_bytes))
        .collect();
    let size = SpanSpec::of(32_768);
    assert_eq!(names, [(1, "/data/a.0.0".to_owned(), size), (1, "/data/a.1.0".to_owned(), size)]);
    // With the flag they are written to, devices too; nothing is filled.
    let machine = Machine { destroys: true, ..machine() };
    for (path, size) in [("/data/old", 65_536), ("/dev/nvme0n1", MIB)] {
        let lowered = on(&format!("[a]\nrw=randrw\nfilename={path}\n"), &machine);
        assert_eq!(stages(&lowered), [("a", false, &[0][..])]);
        let files = &blocks(&lowered.spec.stages[0].jobs[0]).files;
        assert!(files.existing && files.destroys);
        assert_eq!(files.size_bytes, SpanSpec::of(size));
    }
    // What is only to be made is there.
    let lowered = super::lowered(
        "[m]\ncreate_only=1\nfilename=/data/old\n[a]\nstonewall\nrw=read\nfilename=/data/old\n",
    );
    assert_eq!(stages(&lowered), [("a", false, &[1][..])]);
}

#[test]
fn how_much_is_done() {
    let ends = |lines: &str| {
        let job = job(&format!("rw=write\n{lines}"));
        (job.bytes_max, job.ops_max, blocks(&job).repeats, job.duration_ns)
    };
    assert_eq!(ends(""), (None, None, false, None));
    assert_eq!(ends("runtime=5"), (None, None, false, Some(5 * SECOND)));
    assert_eq!(ends("runtime=5\ntime_based"), (None, None, true, Some(5 * SECOND)));
    assert_eq!(ends("io_size=32k"), (Some(32_768), None, false, None));
    assert_eq!(ends("io_size=96k"), (Some(98_304), None, true, None));
    assert_eq!(ends("io_size=50%"), (Some(32_768), None, false, None));
    assert_eq!(ends("number_ios=10"), (None, Some(10), false, None));
    assert_eq!(ends("loops=3"), (Some(3 * 65_536), None, true, None));
    assert_eq!(ends("loops=2\nio_size=32k\nnumber_ios=5"), (Some(65_536), Some(10), false, None));
    // `size` is what is done where `filesize` says how large files are.
    assert_eq!(ends("filesize=128k"), (Some(65_536), None, false, None));
    assert_eq!(ends("filesize=16k"), (Some(65_536), None, true, None));
    // Of drawn sizes the sum is not known.
    assert_eq!(ends("filesize=16k-32k"), (Some(65_536), None, true, None));
    assert_eq!(ends("filesize=16k-32k\nnrfiles=2"), (Some(65_536), None, true, None));
    let lowered = of("[a]\nrw=write\nruntime=5\ntime_based\nnumber_ios=10\nio_size=8k\nloops=2\n");
    let job = &lowered.spec.stages[0].jobs[0];
    assert_eq!((job.bytes_max, job.ops_max), (None, None));
    assert_eq!(
        notes(&lowered),
        ["io_size", "number_ios", "loops"].map(|option| format!(
            "[a] `{option}`: with `time_based` the time alone counts, as in fio"
        ))
    );
    let files = blocks(&super::rules::job("rw=write\nnrfiles=4")).files.clone();
    assert_eq!((files.count, files.size_bytes), (4, SpanSpec::of(16_384)));
    let files = blocks(&super::rules::job("rw=write\nfilesize=8k-16k")).files.clone();
    assert_eq!(files.size_bytes, SpanSpec { min: 8_192, max: 16_384 });
}

#[test]
fn delays_count_from_the_start_of_the_run() {
    let lowered =
        of("[global]\nstartdelay=3-7\nramp_time=1\n[a]\nrw=write\ntime_based\nruntime=1\n\
                      [b]\nstonewall\nrw=write\n[c]\nstonewall\nrw=write\nruntime=9\n");
    let delays: Vec<SpanSpec> =
        lowered.spec.stages.iter().map(|stage| stage.jobs[0].start_delay_ns).collect();
    let span = |min, max| SpanSpec { min: min * SECOND, max: max * SECOND };
    // 3 s of delay, 1 s of ramp and 1 s are over when b begins; b may be done at once.
    assert_eq!(delays, [span(3, 7), span(0, 2), span(0, 2)]);
    assert_eq!(lowered.spec.stages[0].jobs[0].ramp_ns, SECOND);
}

#[test]
fn rates_and_pauses() {
    let capped = |lines: &str| job(lines).pacing;
    let cap = |read, write, poisson| FilePacingSpec::Capped { read, write, poisson };
    let bytes = |rate| Some(CapSpec::BytesPerSec(rate));
    assert_eq!(capped("rw=read"), FilePacingSpec::Closed);
    assert_eq!(capped("rw=read\nrate_process=poisson"), FilePacingSpec::Closed);
    assert_eq!(capped("rw=read\nrate=1m"), cap(bytes(1_048_576.0), None, false));
    assert_eq!(capped("rw=rw\nrate=1m,500k"), cap(bytes(1_048_576.0), bytes(512_000.0), false));
    assert_eq!(
        capped("rw=write\nrate_iops=50\nrate_process=poisson"),
        cap(None, Some(CapSpec::OpsPerSec(50.0)), true)
    );
    // A cap on writes does not slow what only reads.
    assert_eq!(capped("rw=read\nrate=,1m"), FilePacingSpec::Closed);
    let think = |lines: &str| job(&format!("rw=read\n{lines}")).think;
    assert_eq!(think("thinktime_spin=5"), None);
    assert_eq!(
        think("thinktime=1ms\nthinktime_spin=2ms\nthinktime_blocks=4"),
        Some(ThinkSpec { pause_ns: 1_000_000, spin_ns: 1_000_000, every_ops: 4 })
    );
    assert_eq!(
        think("thinktime=10\nthinktime_spin=4"),
        Some(ThinkSpec { pause_ns: 10_000, spin_ns: 4_000, every_ops: 1 })
    );
}

#[test]
fn which_blocks_and_how() {
    let order = |lines: &str| blocks(&job(lines)).order;
    assert_eq!(order("rw=read"), BlockOrderSpec::Sequential);
    assert_eq!(order("rw=randread"), BlockOrderSpec::EachOnce);
    assert_eq!(order("rw=randread\nnorandommap"), BlockOrderSpec::Uniform);
    let drawn = |text: &str| order(&format!("rw=randwrite\nrandom_distribution={text}"));
    assert_eq!(drawn("zipf:1.2"), BlockOrderSpec::Zipf { theta: 1.2 });
    assert_eq!(drawn("pareto:0.3"), BlockOrderSpec::Pareto { h: 0.3 });
    assert_eq!(drawn("normal:20"), BlockOrderSpec::Normal { deviation_percent: 20.0 });
    assert_eq!(blocks(&job("rw=randread\nrandrepeat=0")).seed, None);
    let sizes = |lines: &str| {
        let job = job(&format!("rw=rw\n{lines}"));
        (blocks(&job).read_blocks.clone(), blocks(&job).write_blocks.clone())
    };
    let fixed = BlockSizesSpec::FixedBytes;
    assert_eq!(sizes("bs=8k,16k"), (fixed(8_192), fixed(16_384)));
    let range = BlockSizesSpec::RangeBytes(SpanSpec { min: 4_096, max: 16_384 });
    assert_eq!(sizes("bsrange=4k-16k"), (range.clone(), range));
    let all =
        job("rw=write\nsync=dsync\nfsync=8\nfdatasync=4\nend_fsync=1\ninvalidate=0\ndirect=1");
    let work = blocks(&all);
    assert_eq!(work.sync, plimsoll_model::SyncMode::Dsync);
    assert_eq!((work.fsync_every, work.fdatasync_every), (Some(8), Some(4)));
    assert!(work.end_fsync && !work.invalidates && work.direct);
    // Nothing is synced where nothing is written.
    let work = job("rw=read\nsync=1\nfsync=8\nend_fsync=1");
    assert_eq!(
        (blocks(&work).sync, blocks(&work).fsync_every),
        (plimsoll_model::SyncMode::Off, None)
    );
    for (engine, interface, depth) in [
        ("io_uring", Interface::IoUring, 8),
        ("libaio", Interface::Libaio, 8),
        ("mmap", Interface::Psync, 1),
        ("posixaio", Interface::IoUring, 8),
    ] {
        let job = job(&format!("rw=write\nioengine={engine}\niodepth=8"));
        assert_eq!((job.interface, job.depth), (Some(interface), depth), "{engine}");
    }
}

#[test]
fn what_is_written_with_verify_is_read_back() {
    let text = "[a]\nrw=randwrite\nbssplit=4k/50:8k/50\nverify=crc32c\nruntime=5\nrate=1m\n\
                thinktime=1\nramp_time=1\nfsync=1\n[b]\nrw=read\nverify=md5\n\
                [c]\nrw=write\nverify=md5\n\
                do_verify=0\n[d]\nrw=write\nstonewall\n";
    let lowered = of(text);
    assert_eq!(
        stages(&lowered),
        [
            ("fill", true, &[1][..]),
            ("a+b+c", false, &[0, 1, 2]),
            ("a-verify", false, &[0]),
            ("d", false, &[3])
        ]
    );
    assert_eq!(
        lowered.stages.iter().map(|stage| stage.verifies).collect::<Vec<_>>(),
        [false, false, true, false]
    );
    let [_, write, back, _] = lowered.spec.stages.as_slice() else { panic!() };
    let (write, back) = (&write.jobs[0], &back.jobs[0]);
    assert_eq!((back.name.as_str(), back.group), ("a", write.group));
    assert_eq!((back.duration_ns, back.ramp_ns, &back.think), (None, 0, &None));
    assert_eq!(back.pacing, FilePacingSpec::Closed);
    assert_eq!(blocks(back).read_percent, 100);
    assert_eq!(blocks(back).read_blocks, blocks(write).write_blocks);
    assert_eq!(blocks(back).order, BlockOrderSpec::Sequential);
    assert_eq!(blocks(back).files, blocks(write).files);
    assert_eq!((blocks(back).repeats, blocks(back).fsync_every), (false, None));
    assert_eq!(
        notes(&lowered).last().map(String::as_str),
        Some(
            "[a] `verify=crc32c`: when the jobs beside it have ended too, a stage of its own reads \
             its files back from end to end"
        )
    );
}

#[test]
fn failures_end_the_run_where_that_is_asked_for() {
    let end = |lines: &str| of(&format!("[a]\nrw=write\n{lines}\n")).spec.stages[0].end_on_failure;
    assert!(!end(""));
    assert!(!end("verify_fatal=1"));
    assert!(end("verify=md5\nverify_fatal=1") && end("exitall_on_error"));
    let lowered = of("[a]\nrw=write\nexitall_on_error\n[b]\nrw=write\n");
    assert!(lowered.spec.stages[0].end_on_failure);
    assert_eq!(
        notes(&lowered),
        ["[a] `exitall_on_error`: a failure of a job beside it ends the run too"]
    );
}

#[test]
fn nothing_reaches_files_with_the_null_engine() {
    let lowered = of(
        "[global]\nioengine=null\n[m]\ncreate_only=1\n[a]\nrw=randread\nfilename=/data/old\niodepth=4\n",
    );
    assert!(lowered.null && !lowered.spec.verify);
    assert_eq!(stages(&lowered), [("a", false, &[1][..])]);
    let job = &lowered.spec.stages[0].jobs[0];
    assert_eq!((job.interface, job.depth, blocks(job).files.existing), (None, 4, false));
}

#[test]
fn files_by_name_get_a_directory_for_each_clone() {
    let lowered = lowered(
        "[global]\nnrfiles=100\nnumjobs=4\ndirectory=/d\nfilename_format=f.$jobnum.$filenum\n\
         [make]\nioengine=filecreate\n\
         [look]\nioengine=filestat\nstonewall\nnumjobs=2\nnumber_ios=50\n\
         [drop]\nioengine=filedelete\nstonewall\n[again]\nioengine=filestat\nstonewall\n",
    );
    assert_eq!(
        stages(&lowered),
        [
            ("directories", true, &[0][..]),
            ("make", false, &[0]),
            ("look", false, &[1]),
            ("drop", false, &[2]),
            ("files", true, &[3]),
            ("again", false, &[3]),
        ]
    );
    let tree = TreeSpec {
        directories: vec!["/d".to_owned()],
        name: "f".to_owned(),
        depth: 0,
        branching: 1,
        entries_per_directory: 100,
        leaves_only: false,
        per_clone: true,
        shared_names: false,
        of_directories: false,
    };
    let create = NameActSpec::Create { bytes: 0, fsync: false };
    let acts = [
        NameActSpec::MakeTree,
        create,
        NameActSpec::Stat,
        NameActSpec::Remove,
        create,
        NameActSpec::Stat,
    ];
    for (stage, act) in lowered.spec.stages.iter().zip(acts) {
        let names = NamesSpec { tree: tree.clone(), act, shift: 0, shuffled: false };
        assert_eq!(stage.jobs[0].work, FileWorkSpec::Names(names), "{}", stage.name);
        assert_eq!(stage.jobs[0].depth, 1);
    }
    let look = &lowered.spec.stages[2].jobs[0];
    assert_eq!((look.clones, look.ops_max), (2, Some(50)));
    assert_eq!(
        notes(&lowered)[0],
        "[make] `ioengine=filecreate`: each clone has a directory of its own, and files in it under \
         names of ours"
    );
    // By default files are named after their job, so each job has its own.
    let lowered = super::lowered("[a]\nioengine=filecreate\n[b c]\nioengine=filestat\n");
    let names: Vec<String> = lowered
        .spec
        .stages
        .iter()
        .flat_map(|stage| &stage.jobs)
        .map(|job| match &job.work {
            FileWorkSpec::Names(names) => format!("{} {:?}", names.tree.name, names.act),
            _ => panic!("{job:?}"),
        })
        .collect();
    assert_eq!(
        names,
        [
            "a MakeTree",
            "b_c MakeTree",
            "b_c Create { bytes: 0, fsync: false }",
            "a Create { bytes: 0, fsync: false }",
            "b_c Stat"
        ]
    );
}
