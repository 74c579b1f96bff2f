//! Waves, what is filled, how long and how fast, what is checked.

use plimsoll_model::SyncMode;
use plimsoll_workload::ArrivalLaw;
use plimsoll_workload::plan::spec::{
    Arrivals, CappedEach, CreateNames, MakeTree, PathSet, RemoveNames, StatNames,
};

use super::*;

const GLOBAL: &str = "[global]\nsize=64k\n";

fn of(text: &str) -> Lowered {
    lowered(&format!("{GLOBAL}{text}"))
}

/// Returns the last job of `[a]` with these lines, on files of 64 KiB.
fn job(lines: &str) -> JobSpec {
    let lowered = of(&format!("[a]\n{lines}\n"));
    lowered.workload.work_stages().last().unwrap().jobs.last().unwrap().clone()
}

/// Returns the only set of `[a]` with these lines.
fn files(lines: &str) -> SetSpec {
    let lowered = of(&format!("[a]\n{lines}\n"));
    assert_eq!(lowered.workload.sets.len(), 1);
    lowered.workload.sets.iter().next().unwrap().1.clone()
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
    let groups: Vec<Vec<Option<u32>>> = lowered
        .workload
        .work_stages()
        .map(|stage| stage.jobs.iter().map(|job| job.group).collect())
        .collect();
    // The only job of a stage has a row of its own anyhow.
    assert_eq!(groups, [vec![Some(0), Some(1), Some(1)], vec![None], vec![None], vec![None]]);
    assert_eq!(
        notes(&lowered),
        ["[c] `wait_for=a`: it waits for all jobs that run beside that one too"]
    );
    // Names of stages are their own, also where sections share one.
    let lowered = of("[a]\nrw=write\n[b]\nrw=write\n[c]\nrw=write\n[d]\nrw=write\n\
                      [x]\nstonewall\nrw=write\n[x]\nstonewall\nrw=write\n");
    let names: Vec<_> = stages(&lowered).iter().map(|(name, ..)| *name).collect();
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
fn each_writer_of_a_file_has_a_set_of_its_own() {
    let lowered = of("[global]\nfilename=f\n[a]\nrw=write\n[b]\nrw=randrw\n[c]\nrw=read\n");
    let ons: Vec<&str> =
        stage(&lowered, 1).jobs.iter().map(|job| blocks(job).on.as_str()).collect();
    // A set is called as the first job that has it; the file is filled for [b].
    assert_eq!(ons, ["b", "b-2", "b"]);
    let sets: Vec<&SetSpec> = lowered.workload.sets.iter().map(|(_, set)| set).collect();
    assert!(sets.len() == 2 && sets[0] == sets[1], "{sets:?}");
    let WorkSpec::Fill(fill) = &first(&lowered, 0).work else { panic!() };
    assert_eq!(fill.sets.0, ["b", "b-2"]);
}

#[test]
fn what_no_job_alone_has_written_is_filled_before_everything_else() {
    let lowered = of("[a]\nrw=write\nfilename=f\n[b]\nrw=write\nfilename=g\n\
                      [c]\nstonewall\nrw=read\nfilename=f:g\nsize=128k\n");
    assert_eq!(
        stages(&lowered),
        [("prepare", true, &[][..]), ("a+b", false, &[0, 1]), ("c", false, &[2])]
    );
    // More than is read was written by one job.
    let lowered = of("[a]\nrw=write\nfilename=f:g\nsize=128k\n\
                      [c]\nstonewall\nrw=read\nfilename=f\n");
    assert_eq!(stages(&lowered), [("a", false, &[0][..]), ("c", false, &[1])]);
    // Files of two jobs are not the same.
    let lowered = of("[global]\nioengine=null\n[a]\nrw=randread\n[b]\nrw=read\n");
    let WorkSpec::Fill(fill) = &first(&lowered, 0).work else { panic!() };
    assert_eq!(fill.sets.0, ["a", "b"]);
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
    assert_eq!(size(set(&lowered, 1)), SizeRange::of(MIB));
    // A job may use the first part of a file.
    let lowered = super::lowered(
        "[w]\nrw=write\nsize=1m\nfilename=f\n[r]\nstonewall\nrw=read\nfilename=f\nsize=64k\n",
    );
    assert_eq!(stages(&lowered), [("w", false, &[0][..]), ("r", false, &[1])]);
    assert_eq!(size(set(&lowered, 1)), SizeRange::of(65_536));
    // Its files are made before it, also where nothing makes it wait.
    let lowered =
        of("[make]\ncreate_only=1\nfilename=f\n[use]\nrw=read\nfilename=f\nallow_file_create=0\n");
    assert_eq!(stages(&lowered), [("make", true, &[0][..]), ("use", false, &[1])]);
}

#[test]
fn names_from_the_root_lie_in_their_directory() {
    let seen = |lines: &str| {
        let lowered = of(&format!("[a]\nrw=write\n{lines}\n"));
        let names = match set(&lowered, 0) {
            SetSpec::Listed(set) => set.names.clone(),
            set => made(set).job.iter().cloned().collect(),
        };
        (directories(&lowered).to_vec(), names)
    };
    let text = |text: &str| text.to_owned();
    assert_eq!(seen("filename=/x/y/f"), (vec![text("/x/y")], vec![text("f")]));
    assert_eq!(seen("filename=/x/f:/x/g"), (vec![text("/x")], vec![text("f"), text("g")]));
    assert_eq!(seen("filename=/f"), (vec![text("/")], vec![text("f")]));
    assert_eq!(seen("filename=d/f"), (vec![text("/here")], vec![text("d/f")]));
    // Names are made, by that of the job.
    assert_eq!(seen("directory=x:/y/"), (vec![text("/here/x"), text("/y/")], vec![text("a")]));
}

#[test]
fn files_that_are_there_are_taken_as_they_are() {
    let lowered = lowered("[a]\nrw=read\nfilename=/data/old\nnumjobs=3\n");
    assert_eq!(stages(&lowered), [("a", false, &[0][..])]);
    let paths = |path: &str, size: u64, touch: bool| {
        let (paths, size) = (vec![path.to_owned()], SizeRange::of(size));
        SetSpec::Paths(PathSet { on: None, paths, size, touch })
    };
    assert_eq!(first(&lowered, 0).workers, 3);
    assert_eq!(set(&lowered, 0), &paths("/data/old", 65_536, false));
    assert_eq!(directories(&lowered), [""; 0]);
    // By way of `directory`, and a share of it.
    let lowered = super::lowered("[a]\nrw=read\ndirectory=/data\nfilename=new\nsize=50%\n");
    assert_eq!(set(&lowered, 0), &paths("/data/new", 65_536, false));
    // Files that are not named: only where the job may not make them, and each clone has its own.
    let text = "[a]\nrw=read\ndirectory=/data\nnumjobs=2\nsize=32k\n";
    let made = super::lowered(text);
    assert_eq!(stages(&made), [("fill", true, &[0][..]), ("a", false, &[0])]);
    let found = super::lowered(&format!("{text}allow_file_create=0\n"));
    assert_eq!(stages(&found), [("a", false, &[0, 0][..])]);
    let jobs = &stage(&found, 0).jobs;
    assert_eq!(jobs.iter().map(|job| job.workers).collect::<Vec<_>>(), [1, 1]);
    let sets: Vec<_> = jobs.iter().map(|job| found.workload.sets.get(&blocks(job).on)).collect();
    let each = ["/data/a.0.0", "/data/a.1.0"].map(|path| paths(path, 32_768, false));
    assert_eq!(sets, each.iter().map(Some).collect::<Vec<_>>());
    // With the flag they are written to, devices too; nothing is filled.
    let machine = Machine { destroys: true, ..machine() };
    for (path, size) in [("/data/old", 65_536), ("/dev/nvme0n1", MIB)] {
        let lowered = on(&format!("[a]\nrw=randrw\nfilename={path}\n"), &machine);
        assert_eq!(stages(&lowered), [("a", false, &[0][..])]);
        assert_eq!(set(&lowered, 0), &paths(path, size, true));
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
        let each = |limit| match limit {
            Limit::Each { each } => each,
            Limit::All(all) => panic!("{all} over all clones"),
        };
        let bytes = job.bytes.map(|limit| match limit {
            Limit::Each { each: Size(bytes) } => bytes,
            Limit::All(all) => panic!("{all} over all clones"),
        });
        (bytes, job.ops.map(each), blocks(&job).repeats.unwrap(), job.duration)
    };
    assert_eq!(ends(""), (None, None, false, None));
    assert_eq!(ends("runtime=5"), (None, None, false, Some(seconds(5))));
    assert_eq!(ends("runtime=5\ntime_based"), (None, None, true, Some(seconds(5))));
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
    let job = first(&lowered, 0);
    assert_eq!((job.bytes, job.ops), (None, None));
    assert_eq!(
        notes(&lowered),
        ["io_size", "number_ios", "loops"].map(|option| format!(
            "[a] `{option}`: with `time_based` the time alone counts, as in fio"
        ))
    );
    let set = files("rw=write\nnrfiles=4");
    assert_eq!((made(&set).files, size(&set)), (4, SizeRange::of(16_384)));
    // What fio 3.33 made of each: 2,000 files, the sizes of all of which lie there.
    let sizes = |lines: &str| size(&files(&format!("rw=write\n{lines}")));
    assert_eq!(sizes("bs=4k\nfilesize=4k-8k"), SizeRange::of(4_096));
    assert_eq!(sizes("bs=4k\nfilesize=4k-64k"), SizeRange { min: 4_096, max: 61_440 });
    assert_eq!(sizes("bs=4k\nfilesize=10000-20000"), SizeRange { min: 8_192, max: 16_384 });
    assert_eq!(sizes("bs=1k,4k\nfilesize=8k-16k"), SizeRange { min: 8_192, max: 12_288 });
}

#[test]
fn delays_count_from_the_start_of_the_run() {
    let lowered =
        of("[global]\nstartdelay=3-7\nramp_time=1\n[a]\nrw=write\ntime_based\nruntime=1\n\
                      [b]\nstonewall\nrw=write\n[c]\nstonewall\nrw=write\nruntime=9\n");
    let delays: Vec<TimeRange> =
        lowered.workload.work_stages().map(|stage| stage.jobs[0].start_delay).collect();
    let span = |min, max| TimeRange { min: seconds(min).0, max: seconds(max).0 };
    // 3 s of delay, 1 s of ramp and 1 s are over when b begins; b may be done at once.
    assert_eq!(delays, [span(3, 7), span(0, 2), span(0, 2)]);
    assert_eq!(first(&lowered, 0).ramp, seconds(1));
}

#[test]
fn rates_and_pauses() {
    let capped = |lines: &str| job(lines).pacing;
    let cap = |read, write, law| {
        PacingSpec::CappedEach(CappedEach { read, write, arrivals: Arrivals(law) })
    };
    let (even, poisson) = (ArrivalLaw::Constant, ArrivalLaw::Poisson);
    let bytes = |rate| Some(Cap::BytesPerSec(rate));
    assert_eq!(capped("rw=read"), PacingSpec::Closed);
    assert_eq!(capped("rw=read\nrate_process=poisson"), PacingSpec::Closed);
    assert_eq!(capped("rw=read\nrate=1m"), cap(bytes(1_048_576.0), None, even));
    assert_eq!(capped("rw=rw\nrate=1m,500k"), cap(bytes(1_048_576.0), bytes(512_000.0), even));
    assert_eq!(
        capped("rw=write\nrate_iops=50\nrate_process=poisson"),
        cap(None, Some(Cap::OpsPerSec(50.0)), poisson)
    );
    // A cap on writes does not slow what only reads.
    assert_eq!(capped("rw=read\nrate=,1m"), PacingSpec::Closed);
    let think = |lines: &str| job(&format!("rw=read\n{lines}")).think;
    let micros = |count| Time(Duration::from_micros(count));
    assert_eq!(think("thinktime_spin=5"), None);
    assert_eq!(
        think("thinktime=1ms\nthinktime_spin=2ms\nthinktime_blocks=4"),
        Some(ThinkSpec { pause: micros(1_000), spin: micros(1_000), every: 4 })
    );
    assert_eq!(
        think("thinktime=10\nthinktime_spin=4"),
        Some(ThinkSpec { pause: micros(10), spin: micros(4), every: 1 })
    );
}

#[test]
fn which_blocks_and_how() {
    let order = |lines: &str| blocks(&job(lines)).order;
    assert_eq!(order("rw=read"), BlockOrder::Sequential);
    assert_eq!(order("rw=randread"), BlockOrder::EachOnce);
    assert_eq!(order("rw=randread\nnorandommap"), BlockOrder::Uniform);
    let drawn = |text: &str| order(&format!("rw=randwrite\nrandom_distribution={text}"));
    assert_eq!(drawn("zipf:1.2"), BlockOrder::Zipf(1.2));
    assert_eq!(drawn("pareto:0.3"), BlockOrder::Pareto(0.3));
    assert_eq!(drawn("normal:20"), BlockOrder::Normal(Percent(20.0)));
    assert_eq!(blocks(&job("rw=randread\nrandrepeat=0")).seed, None);
    let mixed = job("rw=rw\nbs=8k,16k");
    assert_eq!(sizes(&mixed), (Some(&fixed(8_192)), Some(&fixed(16_384))));
    let range = BlockSizes::Drawn(BlockLaw::Range(SizeRange { min: 4_096, max: 16_384 }));
    let mixed = job("rw=rw\nbsrange=4k-16k");
    assert_eq!(sizes(&mixed), (Some(&range), Some(&range)));
    let all =
        job("rw=write\nsync=dsync\nfsync=8\nfdatasync=4\nend_fsync=1\ninvalidate=0\ndirect=1");
    let work = blocks(&all);
    assert_eq!(work.sync, SyncSpec(SyncMode::Dsync));
    assert_eq!((work.fsync_every, work.fdatasync_every), (Some(8), Some(4)));
    assert!(work.end_fsync && !work.invalidates && work.direct);
    // Nothing is synced where nothing is written.
    let work = job("rw=read\nsync=1\nfsync=8\nend_fsync=1");
    assert_eq!((blocks(&work).sync, blocks(&work).fsync_every), (SyncSpec(SyncMode::Off), None));
    for (engine, interface, depth) in [
        ("io_uring", Interface::IoUring, 8),
        ("libaio", Interface::Libaio, 8),
        ("mmap", Interface::Psync, 1),
        ("posixaio", Interface::IoUring, 8),
    ] {
        let job = job(&format!("rw=write\nioengine={engine}\niodepth=8"));
        assert_eq!((job.interface, job.depth), (Some(InterfaceSpec(interface)), depth), "{engine}");
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
    let (write, back) = (first(&lowered, 1), first(&lowered, 2));
    assert_eq!((back.name.as_deref(), write.group, back.group), (Some("a"), Some(0), None));
    assert_eq!((back.duration, back.ramp, &back.think), (None, Time::default(), &None));
    assert_eq!(back.pacing, PacingSpec::Closed);
    assert_eq!(sizes(back), (sizes(write).1, None));
    assert_eq!(blocks(back).read.as_ref().unwrap().percent, None);
    assert_eq!(blocks(back).order, BlockOrder::Sequential);
    assert_eq!(blocks(back).on, blocks(write).on);
    assert_eq!((blocks(back).repeats, blocks(back).fsync_every), (Some(false), None));
    assert_eq!(
        notes(&lowered).last().map(String::as_str),
        Some(
            "[a] `verify=crc32c`: when the jobs beside it have ended too, a separate stage reads \
            its files back from end to end"
        )
    );
}

#[test]
fn failures_end_the_run_where_that_is_asked_for() {
    let end = |lines: &str| {
        let lowered = of(&format!("[a]\nrw=write\n{lines}\n"));
        stage(&lowered, 0).end_on_failure
    };
    assert!(!end(""));
    assert!(!end("verify_fatal=1"));
    assert!(end("verify=md5\nverify_fatal=1") && end("exitall_on_error"));
    let lowered = of("[a]\nrw=write\nexitall_on_error\n[b]\nrw=write\n");
    assert!(stage(&lowered, 0).end_on_failure);
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
    assert!(lowered.null && !lowered.workload.verify);
    // What is read must have been written, be it to nothing.
    assert_eq!(stages(&lowered), [("prepare", true, &[][..]), ("a", false, &[1])]);
    let job = first(&lowered, 1);
    assert_eq!((job.interface, job.depth), (None, 4));
    assert!(matches!(set(&lowered, 1), SetSpec::Listed(set) if set.names == ["old"]));
}

#[test]
fn jobs_in_directories_of_their_own_are_filled_each_in_its_own() {
    let lowered = of("[a]\nrw=read\ndirectory=/mnt/a\n[b]\nrw=randread\ndirectory=/mnt/b\n");
    assert_eq!(stages(&lowered), [("fill", true, &[0, 1][..]), ("a+b", false, &[0, 1])]);
    let in_directory = |directory: &str| {
        let directory = OneOrMany(vec![directory.to_owned()]);
        TargetSpec::Files(FilesTarget { directory })
    };
    let targets = [("files-1", "/mnt/a"), ("files-2", "/mnt/b")];
    let targets = targets.map(|(name, at)| (name.to_owned(), in_directory(at)));
    assert_eq!(lowered.workload.targets, Targets::Several(targets.into_iter().collect()));
    let fills = &stage(&lowered, 0).jobs;
    let seen: Vec<_> = fills.iter().map(|job| filled(&lowered, job).on.as_deref()).collect();
    assert_eq!(seen, [Some("files-1"), Some("files-2")]);
    // The 4 workers are shared, and both are reported in one row.
    assert!(fills.iter().all(|job| (job.workers, job.group) == (2, Some(0))), "{fills:?}");
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
    let tree = TreeOf {
        name: Some("f".to_owned()),
        depth: 0,
        branching: 1,
        entries: 100,
        leaves_only: false,
        per_worker: true,
        shared_names: false,
        of_directories: false,
    };
    let SetSpec::Tree(set) = lowered.workload.sets.get("f").unwrap() else { panic!() };
    assert_eq!((&set.tree, directories(&lowered)), (&tree, &["/d".to_owned()][..]));
    let f = || "f".to_owned();
    let create = || {
        let (bytes, fsync, shuffled) = (Size(0), false, false);
        NamesSpec::Create(CreateNames { create: f(), bytes, fsync, shuffled })
    };
    let stat = || NamesSpec::Stat(StatNames { stat: f(), shuffled: false });
    let acts = [
        NamesSpec::MakeTree(MakeTree { make_tree: f() }),
        create(),
        stat(),
        NamesSpec::Remove(RemoveNames { remove: f(), shuffled: false }),
        create(),
        stat(),
    ];
    for (stage, act) in lowered.workload.work_stages().zip(acts) {
        assert_eq!(stage.jobs[0].work, WorkSpec::Names(act), "{:?}", stage.name);
        assert_eq!(stage.jobs[0].depth, 1);
    }
    let look = first(&lowered, 2);
    assert_eq!((look.workers, look.ops), (2, Some(Limit::Each { each: 50 })));
    assert_eq!(
        notes(&lowered)[0],
        "[make] `ioengine=filecreate`: each clone has its own directory, and files in it under \
        Plimsoll's names"
    );
    // By default files are named after their job, so each job has its own.
    let lowered = super::lowered("[a]\nioengine=filecreate\n[b c]\nioengine=filestat\n");
    let works: Vec<&WorkSpec> =
        lowered.workload.work_stages().flat_map(|stage| &stage.jobs).map(|job| &job.work).collect();
    let of = |set: &str| set.to_owned();
    let make_tree = |set| NamesSpec::MakeTree(MakeTree { make_tree: of(set) });
    let create = |set| {
        let (bytes, fsync, shuffled) = (Size(0), false, false);
        NamesSpec::Create(CreateNames { create: of(set), bytes, fsync, shuffled })
    };
    let stat = NamesSpec::Stat(StatNames { stat: of("b_c"), shuffled: false });
    let expected = [make_tree("a"), make_tree("b_c"), create("b_c"), create("a"), stat];
    assert_eq!(works, expected.map(WorkSpec::Names).iter().collect::<Vec<_>>());
    for name in ["a", "b_c"] {
        let SetSpec::Tree(set) = lowered.workload.sets.get(name).unwrap() else { panic!() };
        assert_eq!(set.tree.name.as_deref(), Some(name));
    }
}
