//! What job files come to: the real ones worked out by hand, then rule by rule.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

use plimsoll_workload::plan::spec::{
    BlockLaw, BlockOrder, BlockSizes, BlocksSpec, FileSet, FilesTarget, FillSpec, Limit, Named,
    NamesSpec, OneOrMany, PacingSpec, ReadBlocks, SetSpec, StageSpec, SyncSpec, TargetSpec,
    Targets, ThinkSpec, TreeOf, WriteBlocks,
};
use plimsoll_workload::plan::{Cap, Percent, Size, SizeRange, Time, TimeRange};

use super::super::{Host, Options, Units, parse};
use super::*;

mod clients;
mod refusals;
mod rules;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// 4 cores; `/data/old` has 64 KiB, `/data/new` 128 KiB, `/dev/nvme0n1` 1 MiB.
fn machine() -> Machine<'static> {
    Machine {
        cores: 4,
        default_directory: "/here",
        file_size: &|path| match path {
            "/data/old" | "/data/a.0.0" | "/data/a.1.0" => Some(64 << 10),
            "/data/new" => Some(128 << 10),
            "/dev/nvme0n1" => Some(MIB),
            _ => None,
        },
        is_device: &|path| path == "/dev/nvme0n1",
        destroys: false,
        seed: 7,
        size_scale: None,
        runtime_scale: None,
        clones_max: None,
        clients: NonZeroU32::MIN,
    }
}

fn read(text: &str, name: &str) -> JobFile {
    let read = |_: &str| Err("no such file".to_owned());
    let variable = |name: &str| (name == "DIRECTORY").then(|| "/mnt/old".to_owned());
    let host = Host { cpus_count: 8, memory_mib: 16_384, page_size_bytes: 4_096 };
    let units = Units::Strict;
    let options = Options { units, read: &read, variable: &variable, host, sections: Vec::new() };
    parse(text, name, &options).map_err(|error| error.to_string()).expect(text)
}

fn try_on(text: &str, machine: &Machine<'_>) -> Result<Lowered, String> {
    lower(&read(text, "job.fio"), machine).map_err(|error| error.to_string())
}

fn on(text: &str, machine: &Machine<'_>) -> Lowered {
    let lowered = try_on(text, machine).expect(text);
    assert_sound(&lowered);
    lowered
}

/// Whatever is lowered is a plan.
fn assert_sound(lowered: &Lowered) {
    let plan = lowered.workload.check();
    assert!(plan.is_ok(), "{:?} {:?}", plan.err(), lowered.workload);
    assert_eq!(lowered.workload.stages.len(), lowered.stages.len());
}

/// A whole number of seconds.
const fn seconds(count: u64) -> Time {
    Time(Duration::from_secs(count))
}

fn stage(lowered: &Lowered, index: usize) -> &WorkStage {
    lowered.workload.work_stages().nth(index).unwrap()
}

/// The first job of a stage.
fn first(lowered: &Lowered, stage: usize) -> &JobSpec {
    &self::stage(lowered, stage).jobs[0]
}

/// The set of the first job of a stage on blocks.
fn set(lowered: &Lowered, stage: usize) -> &SetSpec {
    lowered.workload.sets.get(&blocks(first(lowered, stage)).on).unwrap()
}

fn size(set: &SetSpec) -> SizeRange {
    match set {
        SetSpec::Files(set) => set.size,
        SetSpec::Listed(set) => set.size,
        SetSpec::Paths(set) => set.size,
        other => panic!("{other:?}"),
    }
}

fn made(set: &SetSpec) -> &FileSet {
    let SetSpec::Files(set) = set else { panic!("{set:?}") };
    set
}

/// The directories of the only target.
fn directories(lowered: &Lowered) -> &[String] {
    let Targets::One(TargetSpec::Files(FilesTarget { directory: OneOrMany(directories) })) =
        &lowered.workload.targets
    else {
        panic!("{:?}", lowered.workload.targets)
    };
    directories
}

const fn fixed(bytes: u64) -> BlockSizes {
    BlockSizes::Fixed(Size(bytes))
}

/// The sizes of blocks that are read and written, where there are any.
fn sizes(job: &JobSpec) -> (Option<&BlockSizes>, Option<&BlockSizes>) {
    let BlocksSpec { read, write, .. } = blocks(job);
    (read.as_ref().map(|read| &read.block), write.as_ref().map(|write| &write.block))
}

fn lowered(text: &str) -> Lowered {
    on(text, &machine())
}

fn real(name: &str) -> JobFile {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fio");
    read(&std::fs::read_to_string(folder.join(name)).expect(name), name)
}

/// Name, whether it prepares, and the jobs it stands for.
fn stages(lowered: &Lowered) -> Vec<(&str, bool, &[usize])> {
    let seen = |(spec, stage)| -> (&str, bool, &[usize]) {
        let (spec, stage): (&WorkStage, &LoweredStage) = (spec, stage);
        (spec.name.as_deref().unwrap(), spec.prepares, &stage.jobs)
    };
    lowered.workload.work_stages().zip(&lowered.stages).map(seen).collect()
}

/// What the lowering noted beyond the parser.
fn notes(lowered: &Lowered) -> Vec<String> {
    lowered.notes.iter().map(ToString::to_string).collect()
}

fn blocks(job: &JobSpec) -> &BlocksSpec {
    match &job.work {
        WorkSpec::Blocks(blocks) => blocks,
        _ => panic!("{job:?}"),
    }
}

/// The only set that a job fills.
fn filled<'a>(lowered: &'a Lowered, job: &JobSpec) -> &'a FileSet {
    let WorkSpec::Fill(FillSpec { sets: OneOrMany(sets), .. }) = &job.work else {
        panic!("{job:?}")
    };
    assert_eq!(sets.len(), 1);
    made(lowered.workload.sets.get(&sets[0]).unwrap())
}

fn weka_files(kind: &str, size: u64, workers: Option<u32>) -> FileSet {
    FileSet {
        on: None,
        files: 1,
        size: SizeRange::of(size),
        name: format!("$jobnum/$filenum/{kind}.$jobnum.$filenum"),
        workers,
        job: None,
    }
}

fn weka_fill(name: &str, set: &str) -> StageSpec {
    let fill = WorkSpec::Fill(FillSpec::of(vec![set.to_owned()]));
    let job = JobSpec {
        name: Some(name.to_owned()),
        interface: Some(InterfaceSpec(Interface::Psync)),
        ..JobSpec::of(4, fill)
    };
    stage_of(name, true, job)
}

fn stage_of(name: &str, prepares: bool, job: JobSpec) -> StageSpec {
    let stage = WorkStage::of(name, vec![job]);
    StageSpec::Jobs(WorkStage { prepares, end_on_failure: true, ..stage })
}

fn weka_blocks(index: usize, workers: u32, set: &str) -> StageSpec {
    let names = ["read_throughput", "write_throughput", "read_iops", "write_iops"];
    let names = [&names[..], &["read_latency", "write_latency"]].concat();
    let name = names[index - 2];
    let is_throughput = index < 4;
    let block = fixed(if is_throughput { MIB } else { 4_096 });
    let reads = name.starts_with("read");
    let work = BlocksSpec {
        read: reads.then(|| ReadBlocks { block: block.clone(), percent: None }),
        write: (!reads).then(|| WriteBlocks { block: block.clone() }),
        order: match is_throughput {
            true => BlockOrder::Sequential,
            false => BlockOrder::EachOnce,
        },
        repeats: Some(true),
        seed: Some(0x89),
        direct: true,
        invalidates: true,
        ..BlocksSpec::of(set)
    };
    let job = JobSpec {
        name: Some(name.to_owned()),
        interface: Some(InterfaceSpec(Interface::IoUring)),
        // `startdelay=5` is over when the first section has waited for it.
        start_delay: TimeRange::default(),
        duration: Some(seconds(300)),
        ..JobSpec::of(workers, WorkSpec::Blocks(work))
    };
    stage_of(name, false, job)
}

#[test]
fn weka_s_master_file_fills_twice_and_measures_six_times() {
    let file = real("weka/FIOmaster.txt");
    let lowered = lower(&file, &machine()).unwrap();
    let (iops, bw, one) = ("create_iops_files", "create_bw_files", "read_latency");
    let sets = [
        (iops, weka_files("iops", 4 * GIB, Some(192))),
        (bw, weka_files("bw", 128 * GIB, Some(32))),
        // The files of the first clone.
        (one, weka_files("iops", 4 * GIB, None)),
    ];
    let sets: Named<SetSpec> =
        sets.into_iter().map(|(name, set)| (name.to_owned(), SetSpec::Files(set))).collect();
    let stages = vec![
        weka_fill("create_iops_files", iops),
        weka_fill("create_bw_files", bw),
        weka_blocks(2, 32, bw),
        weka_blocks(3, 32, bw),
        weka_blocks(4, 192, iops),
        weka_blocks(5, 192, iops),
        weka_blocks(6, 1, one),
        weka_blocks(7, 1, one),
    ];
    let directory = OneOrMany(vec!["/mnt/weka/fio".to_owned()]);
    let targets = Targets::One(TargetSpec::Files(FilesTarget { directory }));
    let workload = WorkloadFile::new("FIOmaster", sets, stages);
    assert_eq!(lowered.workload, WorkloadFile { seed: Some(7), targets, ..workload });
    let stages: Vec<_> =
        (0..8).map(|index| LoweredStage { jobs: vec![index], verifies: false }).collect();
    assert_eq!(lowered.stages, stages);
    assert_eq!(lowered.notes, file.notes);
    assert!(!lowered.null);
}

#[test]
fn weka_s_master_file_scaled_keeps_shared_files_alike() {
    let scaled = Machine {
        size_scale: Some(0.001),
        runtime_scale: Some(0.01),
        clones_max: Some(2),
        ..machine()
    };
    let file = real("weka/FIOmaster.txt");
    let lowered = lower(&file, &scaled).unwrap();
    let filled = |stage| filled(&lowered, first(&lowered, stage));
    // 4 GiB / 1000 is 4.1 MiB, 128 GiB / 1000 is 131.07 MiB; whole blocks of 1 MiB.
    assert_eq!(filled(0).size, SizeRange::of(4 * MIB));
    assert_eq!(size(set(&lowered, 4)), SizeRange::of(4 * MIB));
    assert_eq!(filled(1).size, SizeRange::of(131 * MIB));
    assert_eq!(size(set(&lowered, 2)), SizeRange::of(131 * MIB));
    assert_eq!(first(&lowered, 2).duration, Some(seconds(3)));
    assert_eq!((first(&lowered, 2).workers, filled(0).workers), (2, Some(2)));
    assert_eq!(
        notes(&lowered).last().map(String::as_str),
        Some(
            "[global] `--scale`: files and amounts are 1/1000 of theirs, times are 1/100 of theirs, \
             a job has at most 2 clones"
        )
    );
    // No file is smaller than a block.
    let tiny = Machine { size_scale: Some(1e-9), ..machine() };
    let lowered = lower(&file, &tiny).unwrap();
    assert_eq!(size(set(&lowered, 4)), SizeRange::of(MIB));
}

#[test]
fn weka_s_single_files_fill_what_they_read_and_wait() {
    let lowered = lower(&real("weka/read_iops.txt"), &machine()).unwrap();
    assert_eq!(stages(&lowered), [("fill", true, &[0][..]), ("read_iops", false, &[0])]);
    assert_eq!(filled(&lowered, first(&lowered, 0)), &weka_files("iops", 4 * GIB, Some(192)));
    assert_eq!(lowered.workload.sets.position("read_iops"), Some(0));
    assert_eq!(directories(&lowered), ["/mnt/weka/fio"]);
    let Time(delay) = seconds(5);
    assert_eq!(first(&lowered, 1).start_delay, TimeRange { min: delay, max: delay });
    assert_eq!(lowered.workload.name, "read_iops");
    // What is only written has room made for it.
    let lowered = lower(&real("weka/write_iops.txt"), &machine()).unwrap();
    assert_eq!(stages(&lowered), [("write_iops", false, &[0][..])]);
}

#[test]
fn weka_s_older_file_fills_once_for_six_jobs() {
    let lowered = lower(&real("weka/FIOmaster-v3.6-older.txt"), &machine()).unwrap();
    let stages = stages(&lowered);
    assert_eq!(stages[0], ("Create_Files", true, &[0][..]));
    assert_eq!(stages.iter().filter(|stage| stage.1).count(), 1);
    assert_eq!(stages.len(), 7);
    let job = first(&lowered, 4);
    // `rw=randrw` with no reads.
    assert_eq!((job.name.as_deref(), job.workers), (Some("FioWrite1MMultiThread"), 6));
    assert_eq!((&blocks(job).read, blocks(job).write.is_some()), (&None, true));
    assert_eq!(size(set(&lowered, 4)), SizeRange::of(10 * GIB));
    assert_eq!(job.duration, Some(seconds(60)));
}

#[test]
fn wekatester_s_files_fill_then_measure() {
    let lowered = lower(&real("wekatester/wekawithin/041-fio-mixed-io.job"), &machine()).unwrap();
    assert_eq!(
        stages(&lowered),
        [("fio-createfiles-00", true, &[0][..]), ("fio_4k_mixed_70_30", false, &[1])]
    );
    let job = first(&lowered, 1);
    let interface = Some(InterfaceSpec(Interface::Libaio));
    assert_eq!((job.workers, job.depth, job.interface), (200, 16, interface));
    assert_eq!((job.ramp, job.duration), (seconds(3), Some(seconds(180))));
    assert_eq!((job.group, job.start_delay), (None, TimeRange::default()));
    let percent = blocks(job).read.as_ref().unwrap().percent;
    assert_eq!((percent, blocks(job).direct), (Some(Percent(70.0)), true));
    assert!(blocks(job).invalidates && stage(&lowered, 1).end_on_failure);
    assert_eq!(made(set(&lowered, 1)).name, "wekawithin/$jobnum");
    assert_eq!(lowered.workload.name, "041-fio-mixed-io");
}

#[test]
fn fio_s_sample_keeps_its_shares_and_syncs() {
    let lowered = lower(&real("fio/mixed.fio"), &machine()).unwrap();
    assert_eq!(
        stages(&lowered),
        [("fill", true, &[0][..]), ("rw70", false, &[0]), ("seqw", false, &[1])]
    );
    let [mixed, write] = [first(&lowered, 1), first(&lowered, 2)];
    let Some(BlockSizes::Drawn(BlockLaw::Shares(shares))) = sizes(mixed).0 else { panic!() };
    let shares: Vec<_> = shares.0.iter().map(|share| (share.value.0, share.weight)).collect();
    assert_eq!(shares, [(4_096, 60), (16_384, 30), (65_536, 10)]);
    assert_eq!(directories(&lowered), ["/here/SCRATCH/fsb/s"]);
    assert_eq!(size(set(&lowered, 1)), SizeRange::of(8 * MIB));
    assert_eq!((mixed.workers, mixed.ramp), (2, Time(Duration::from_millis(500))));
    assert_eq!([blocks(mixed).seed, blocks(write).seed], [Some(42), Some(42)]);
    assert_eq!((blocks(write).fsync_every, blocks(write).end_fsync), (Some(4), true));
    assert!(!stage(&lowered, 2).end_on_failure);
}

#[test]
fn every_real_job_file_is_a_run() {
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
            let file = read(&std::fs::read_to_string(&path).unwrap(), &name);
            let lowered = lower(&file, &machine()).expect(&name);
            let measured = lowered.workload.work_stages().filter(|stage| !stage.prepares).count();
            let jobs = file.jobs.iter().filter(|job| !job.files.create_only).count();
            assert_eq!(measured, jobs, "{name}");
            assert_sound(&lowered);
        }
    }
    assert_eq!(count, 22);
}
