//! What job files come to: the real ones worked out by hand, then rule by rule.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

use plimsoll_workload::files::{
    BlockOrderSpec, BlockSizesSpec, BlocksSpec, FilePacingSpec, JobFilesSpec, NameActSpec,
    NamesSpec, SpanSpec, ThinkSpec, TreeSpec,
};

use super::super::{Host, Options, Units, parse};
use super::*;

mod refusals;
mod rules;

const SECOND: u64 = 1_000_000_000;
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
    let plan = lowered.spec.validate("2026-11-21-test");
    assert!(plan.is_ok(), "{:?} {:?}", plan.err(), lowered.spec);
    assert_eq!(lowered.spec.stages.len(), lowered.stages.len());
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
        let (spec, stage): (&FileStageSpec, &LoweredStage) = (spec, stage);
        (&spec.name, spec.prepares, &stage.jobs)
    };
    lowered.spec.stages.iter().zip(&lowered.stages).map(seen).collect()
}

/// What the lowering noted beyond the parser.
fn notes(lowered: &Lowered) -> Vec<String> {
    lowered.notes.iter().map(ToString::to_string).collect()
}

fn blocks(job: &FileJobSpec) -> &BlocksSpec {
    match &job.work {
        FileWorkSpec::Blocks(blocks) => blocks,
        _ => panic!("{job:?}"),
    }
}

fn fill(job: &FileJobSpec) -> &FillSpec {
    match &job.work {
        FileWorkSpec::Fill(fill) => fill,
        _ => panic!("{job:?}"),
    }
}

fn weka_files(kind: &str, size: u64) -> JobFilesSpec {
    JobFilesSpec {
        directories: vec!["/mnt/weka/fio".to_owned()],
        names: Vec::new(),
        name_format: format!("$jobnum/$filenum/{kind}.$jobnum.$filenum"),
        count: 1,
        size_bytes: SpanSpec::of(size),
        existing: false,
        destroys: false,
    }
}

fn weka_fill(name: &str, group: u32, clones: u32, files: JobFilesSpec) -> FileStageSpec {
    let files = vec![FillFilesSpec { job: name.to_owned(), clones, files }];
    let job = FileJobSpec {
        name: name.to_owned(),
        group,
        clones: 4,
        depth: 1,
        interface: Some(Interface::Psync),
        start_delay_ns: SpanSpec::default(),
        ramp_ns: 0,
        duration_ns: None,
        ops_max: None,
        bytes_max: None,
        pacing: FilePacingSpec::Closed,
        think: None,
        work: FileWorkSpec::Fill(FillSpec { files, block_bytes: 1 << 20, direct: false }),
    };
    stage_of(name, true, job)
}

fn stage_of(name: &str, prepares: bool, job: FileJobSpec) -> FileStageSpec {
    FileStageSpec {
        name: name.to_owned(),
        iteration: 0,
        prepares,
        drop_caches: false,
        end_on_failure: true,
        jobs: vec![job],
    }
}

fn weka_blocks(index: u64, clones: u32, files: JobFilesSpec) -> FileStageSpec {
    let names = ["read_throughput", "write_throughput", "read_iops", "write_iops"];
    let names = [&names[..], &["read_latency", "write_latency"]].concat();
    let name = names[index as usize - 2];
    let is_throughput = index < 4;
    let size = BlockSizesSpec::FixedBytes(if is_throughput { MIB } else { 4_096 });
    let work = BlocksSpec {
        files,
        read_percent: if name.starts_with("read") { 100 } else { 0 },
        read_blocks: size.clone(),
        write_blocks: size,
        order: match is_throughput {
            true => BlockOrderSpec::Sequential,
            false => BlockOrderSpec::EachOnce,
        },
        repeats: true,
        seed: Some(0x89),
        direct: true,
        sync: plimsoll_model::SyncMode::Off,
        fsync_every: None,
        fdatasync_every: None,
        end_fsync: false,
        invalidates: true,
    };
    let job = FileJobSpec {
        name: name.to_owned(),
        group: index as u32,
        clones,
        depth: 1,
        interface: Some(Interface::IoUring),
        // `startdelay=5` is over when the first section has waited for it.
        start_delay_ns: SpanSpec::default(),
        ramp_ns: 0,
        duration_ns: Some(300 * SECOND),
        ops_max: None,
        bytes_max: None,
        pacing: FilePacingSpec::Closed,
        think: None,
        work: FileWorkSpec::Blocks(work),
    };
    stage_of(name, false, job)
}

#[test]
fn weka_s_master_file_fills_twice_and_measures_six_times() {
    let file = real("weka/FIOmaster.txt");
    let lowered = lower(&file, &machine()).unwrap();
    let iops = || weka_files("iops", 4 * GIB);
    let bw = || weka_files("bw", 128 * GIB);
    let spec = FilesSpec {
        schema: "plimsoll.files/1".to_owned(),
        name: "FIOmaster".to_owned(),
        seed: 7,
        verify: true,
        stages: vec![
            weka_fill("create_iops_files", 0, 192, iops()),
            weka_fill("create_bw_files", 1, 32, bw()),
            weka_blocks(2, 32, bw()),
            weka_blocks(3, 32, bw()),
            weka_blocks(4, 192, iops()),
            weka_blocks(5, 192, iops()),
            weka_blocks(6, 1, iops()),
            weka_blocks(7, 1, iops()),
        ],
    };
    assert_eq!(lowered.spec, spec);
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
    let [create, bw, read, _, iops, ..] = lowered.spec.stages.as_slice() else { panic!() };
    // 4 GiB / 1000 is 4.1 MiB, 128 GiB / 1000 is 131.07 MiB; whole blocks of 1 MiB.
    assert_eq!(fill(&create.jobs[0]).files[0].files.size_bytes, SpanSpec::of(4 * MIB));
    assert_eq!(blocks(&iops.jobs[0]).files.size_bytes, SpanSpec::of(4 * MIB));
    assert_eq!(fill(&bw.jobs[0]).files[0].files.size_bytes, SpanSpec::of(131 * MIB));
    assert_eq!(blocks(&read.jobs[0]).files.size_bytes, SpanSpec::of(131 * MIB));
    assert_eq!(read.jobs[0].duration_ns, Some(3 * SECOND));
    assert_eq!((read.jobs[0].clones, fill(&create.jobs[0]).files[0].clones), (2, 2));
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
    assert_eq!(blocks(&lowered.spec.stages[4].jobs[0]).files.size_bytes, SpanSpec::of(MIB));
}

#[test]
fn weka_s_single_files_fill_what_they_read_and_wait() {
    let lowered = lower(&real("weka/read_iops.txt"), &machine()).unwrap();
    assert_eq!(stages(&lowered), [("fill", true, &[0][..]), ("read_iops", false, &[0])]);
    let filled = fill(&lowered.spec.stages[0].jobs[0]);
    assert_eq!((filled.files[0].clones, filled.files[0].job.as_str()), (192, "read_iops"));
    assert_eq!(filled.files[0].files, weka_files("iops", 4 * GIB));
    let job = &lowered.spec.stages[1].jobs[0];
    assert_eq!(job.start_delay_ns, SpanSpec::of(5 * SECOND));
    assert_eq!(lowered.spec.name, "read_iops");
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
    let job = &lowered.spec.stages[4].jobs[0];
    // `rw=randrw` with no reads.
    assert_eq!((job.name.as_str(), job.group, job.clones), ("FioWrite1MMultiThread", 4, 6));
    assert_eq!(blocks(job).read_percent, 0);
    assert_eq!(blocks(job).files.size_bytes, SpanSpec::of(10 * GIB));
    assert_eq!(job.duration_ns, Some(60 * SECOND));
}

#[test]
fn wekatester_s_files_fill_then_measure() {
    let lowered = lower(&real("wekatester/wekawithin/041-fio-mixed-io.job"), &machine()).unwrap();
    assert_eq!(
        stages(&lowered),
        [("fio-createfiles-00", true, &[0][..]), ("fio_4k_mixed_70_30", false, &[1])]
    );
    let job = &lowered.spec.stages[1].jobs[0];
    assert_eq!((job.clones, job.depth, job.interface), (200, 16, Some(Interface::Libaio)));
    assert_eq!((job.ramp_ns, job.duration_ns), (3 * SECOND, Some(180 * SECOND)));
    assert_eq!((job.group, job.start_delay_ns), (1, SpanSpec::default()));
    assert_eq!((blocks(job).read_percent, blocks(job).direct), (70, true));
    assert!(blocks(job).invalidates && lowered.spec.stages[1].end_on_failure);
    assert_eq!(blocks(job).files.name_format, "wekawithin/$jobnum");
    assert_eq!(lowered.spec.name, "041-fio-mixed-io");
}

#[test]
fn fio_s_sample_keeps_its_shares_and_syncs() {
    let lowered = lower(&real("fio/mixed.fio"), &machine()).unwrap();
    assert_eq!(
        stages(&lowered),
        [("fill", true, &[0][..]), ("rw70", false, &[0]), ("seqw", false, &[1])]
    );
    let [_, mixed, write] = lowered.spec.stages.as_slice() else { panic!() };
    let [mixed, write] = [&mixed.jobs[0], &write.jobs[0]];
    let BlockSizesSpec::Shares(shares) = &blocks(mixed).read_blocks else { panic!() };
    let shares: Vec<_> = shares.iter().map(|share| (share.size_bytes, share.weight)).collect();
    assert_eq!(shares, [(4_096, 60), (16_384, 30), (65_536, 10)]);
    assert_eq!(blocks(mixed).files.directories, ["/here/SCRATCH/fsb/s"]);
    assert_eq!(blocks(mixed).files.size_bytes, SpanSpec::of(8 * MIB));
    assert_eq!((mixed.clones, mixed.ramp_ns), (2, SECOND / 2));
    assert_eq!([blocks(mixed).seed, blocks(write).seed], [Some(42), Some(42)]);
    assert_eq!((blocks(write).fsync_every, blocks(write).end_fsync), (Some(4), true));
    assert!(!lowered.spec.stages[2].end_on_failure);
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
            let measured = lowered.spec.stages.iter().filter(|stage| !stage.prepares).count();
            let jobs = file.jobs.iter().filter(|job| !job.files.create_only).count();
            assert_eq!(measured, jobs, "{name}");
            assert_sound(&lowered);
        }
    }
    assert_eq!(count, 22);
}
