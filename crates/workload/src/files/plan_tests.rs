//! Paths, sizes, workers and streams of a plan.

use super::super::FileOp;
use super::*;
use crate::data::Generator;
use crate::plan::WorkloadFile;
use crate::plan::spec::{FilesTarget, OneOrMany, StageSpec, TargetSpec, Targets, WorkSpec};
use crate::testing::{files_of, on_files};

const BLOCK: u64 = 4_096;

fn reads(workers: u32) -> String {
    format!(
        "{{name: r, workers: {workers}, work: {{blocks: {{on: f, read: {{block: 4KiB}}, repeats: \
         false}}}}}}"
    )
}

fn writes(workers: u32) -> String {
    reads(workers).replace("read:", "write:")
}

/// Lays work out that lies in these directories.
fn in_directories(mut file: WorkloadFile, directories: &[&str]) -> FilePlan {
    let directory = OneOrMany(directories.iter().map(|each| (*each).to_owned()).collect());
    file.targets = Targets::One(TargetSpec::Files(FilesTarget { directory }));
    files_of(&file)
}

fn paths(plan: &FilePlan, stage: usize, worker: u32) -> Vec<&str> {
    let files = plan.files_of(stage, WorkerId(worker));
    files.iter().map(|file| &*plan.table.entry(*file).path).collect()
}

#[test]
fn names_are_made_as_fio_makes_them() {
    let two = ["/mnt/a/", "b"];
    let file = on_files("f: {files: 2, size: 4KiB, workers: 3, job: job}", &[reads(3)]);
    let plan = in_directories(file, &two);
    assert_eq!(paths(&plan, 0, 0), ["/mnt/a/plimsoll/r/job.0.0", "/mnt/a/plimsoll/r/job.0.1"]);
    assert_eq!(paths(&plan, 0, 1), ["b/plimsoll/r/job.1.0", "b/plimsoll/r/job.1.1"]);
    assert_eq!(paths(&plan, 0, 2), ["/mnt/a/plimsoll/r/job.2.0", "/mnt/a/plimsoll/r/job.2.1"]);
    let named = "f: {files: 2, size: 4KiB, workers: 2, job: job, name: $jobnum/$jobname/f$filenum}";
    let plan = in_directories(on_files(named, &[reads(2)]), &two);
    assert_eq!(paths(&plan, 0, 1), ["b/plimsoll/r/1/job/f0", "b/plimsoll/r/1/job/f1"]);
    assert_eq!(plan.directories_before(0), ["/mnt/a/plimsoll/r/0/job", "b/plimsoll/r/1/job"]);
    assert_eq!(plan.run_directories(), ["/mnt/a/plimsoll/r", "b/plimsoll/r"]);
    let listed = on_files("f: {names: [x, ./y//z], size: 4KiB}", &[reads(2)]);
    let plan = in_directories(listed, &["/"]);
    assert_eq!(paths(&plan, 0, 1), ["/plimsoll/r/x", "/plimsoll/r/y/z"]);
    assert_eq!(plan.table.len(), 2, "all workers share them");
}

#[test]
fn one_path_is_one_file() {
    let sets = "large: {files: 1, size: 32KiB, name: data, workers: 3}, \
                f: {files: 1, size: 8KiB, name: data}";
    let fill = |set: &str| format!("{{work: {{fill: {set}}}}}");
    let plan = files_of(&on_files(sets, &[reads(2), fill("large"), fill("f")]));
    assert_eq!(plan.table.len(), 1);
    assert_eq!(plan.table.entry(0).size, 8 * BLOCK);
    // Each job keeps to its own size.
    let ops = |stage| {
        let mut stream = plan.stream(stage, WorkerId(0), 0);
        std::iter::from_fn(move || stream.next_op()).count()
    };
    assert_eq!(ops(0), 2);
    assert_eq!(ops(1), 1);
    assert_eq!(ops(2), 0, "it was filled before");
    assert_eq!(plan.files_of(2, WorkerId(0)), [0; 0]);
}

#[test]
fn files_that_exist_keep_their_paths() {
    let there = "f: {paths: [/dev/sdx, ../data], size: 4KiB, touch: true}";
    // They are not filled: a workload cannot ask for it.
    let fills = on_files(there, &["{work: {fill: f}}"]).recorded();
    let reason = "stages[0].jobs[0].work.fill: set `f` was there before and is not filled";
    assert_eq!(fills.unwrap_err().to_string(), reason);
    let plan = files_of(&on_files(there, &[writes(2)]));
    assert_eq!(paths(&plan, 0, 1), ["/dev/sdx", "../data"]);
    assert!(plan.table.entry(0).existing);
    assert!(plan.run_directories().is_empty() && plan.directories_before(0).is_empty());
}

#[test]
fn sizes_are_drawn_from_their_range_and_stay_the_same() {
    let sets = "f: {files: 500, size: 5000B..1MiB}";
    let sizes = |seed| {
        let file = on_files(sets, &[reads(1), "{work: {fill: f}}".to_owned()]);
        let plan = files_of(&WorkloadFile { seed: Some(seed), ..file });
        assert_eq!(plan.table.len(), 500);
        (0..500).map(|file| plan.table.entry(file).size).collect::<Vec<u64>>()
    };
    let drawn = sizes(1);
    // Both ends are multiples of 8, and not of 16.
    assert!(drawn.iter().all(|size| size.is_multiple_of(8)));
    assert!(drawn.iter().all(|size| (5_000..=1 << 20).contains(size)));
    // The middle is 526,788; of 500 draws +- 13,500.
    let mean = drawn.iter().sum::<u64>() / 500;
    assert!(mean.abs_diff(526_788) < 54_000, "{mean}");
    assert_eq!(drawn, sizes(1));
    assert_ne!(drawn, sizes(2));
}

#[test]
fn both_ends_of_a_range_of_sizes_are_as_likely_as_what_lies_between() {
    let counts = |range: &str| {
        let sets = format!("f: {{files: 2000, size: {range}}}");
        let plan = files_of(&on_files(&sets, &[reads(1), "{work: {fill: f}}".to_owned()]));
        let mut counts = std::collections::BTreeMap::new();
        (0..2_000).for_each(|file| *counts.entry(plan.table.entry(file).size).or_insert(0) += 1);
        counts
    };
    for (range, sizes) in [
        ("4KiB..8KiB", &[4_096, 8_192][..]),
        ("4KiB..16KiB", &[4_096, 8_192, 12_288, 16_384]),
        // Of 512 bytes each is a multiple, and not of more.
        ("4608B..6KiB", &[4_608, 5_120, 5_632, 6_144]),
    ] {
        let found = counts(range);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), sizes, "{range}");
        let even = 2_000 / sizes.len() as u64;
        // Five standard deviations, at most.
        assert!(found.values().all(|count| even.abs_diff(*count) < 112), "{range}: {found:?}");
    }
}

#[test]
fn workers_are_those_of_all_jobs_in_order() {
    let sets = "f: {files: 1, size: 4KiB, workers: 3}, t: {tree: {entries: 1}}";
    let stats = "{name: n, workers: 2, work: {names: {stat: t}}}";
    let plan = files_of(&on_files(sets, &[format!("{}, {stats}", reads(3))]));
    assert_eq!(plan.workers(0), 5);
    let found: Vec<_> = (0..5).map(|worker| plan.job_of(0, WorkerId(worker))).collect();
    assert_eq!(found, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]);
    assert_eq!(plan.buffer_bytes(0, WorkerId(2)), 4_096);
    assert_eq!(plan.buffer_bytes(0, WorkerId(3)), 0);
}

#[test]
fn a_stream_depends_on_seed_stage_and_worker_only() {
    let sets = "f: {files: 3, size: 1MiB, workers: 2}";
    let job = "{workers: 2, work: {blocks: {on: f, order: uniform, repeats: false, read: {block: \
               4KiB, percent: 70%}, write: {block: 4KiB}}}}";
    let ops = |file: &WorkloadFile, stage, worker| -> Vec<(bool, u64, u32)> {
        let mut stream = files_of(file).stream(stage, WorkerId(worker), 0);
        std::iter::from_fn(move || stream.next_op())
            .map(|op| match op {
                FileOp::Block(op) => (op.write, op.offset, op.len),
                _ => panic!("{op:?} is no block"),
            })
            .collect()
    };
    let one = on_files(sets, &[job, job]);
    let first = ops(&one, 0, 0);
    assert_eq!(first.len(), 768);
    assert_eq!(first, ops(&one, 0, 0));
    assert_ne!(first, ops(&one, 0, 1));
    assert_ne!(first, ops(&one, 1, 0));
    let mut other = on_files(sets, &[job, job]);
    other.seed = Some(8);
    assert_ne!(first, ops(&other, 0, 0));
    // A job's own seed takes the place of the run's.
    let StageSpec::Jobs(stage) = &mut other.stages[0] else { panic!("it has jobs") };
    let WorkSpec::Blocks(blocks) = &mut stage.jobs[0].work else { panic!("blocks") };
    blocks.seed = Some(7);
    assert_eq!(first, ops(&other, 0, 0));
}

#[test]
fn versions_are_kept_where_they_can_be_of_use() {
    let check_later = |jobs: &[&str], verify: bool| {
        let mut file = on_files("f: {files: 1, size: 1MiB}", jobs);
        file.verify = verify;
        let plan = files_of(&file);
        let generator = Generator::new(7);
        let last = jobs.len() - 1;
        for stage in 0..last {
            let mut stream = plan.stream(stage, WorkerId(0), 0);
            while let Some(op) = stream.next_op() {
                stream.completed(&op, true);
            }
        }
        let mut stream = plan.stream(last, WorkerId(0), 0);
        let Some(FileOp::Block(op)) = stream.next_op() else { panic!("there is no block") };
        stream.check(&op, &generator, &[b'x'; 4_096]).is_some()
    };
    let (fill, reads, writes) = ("{work: {fill: f}}", &*reads(1), &*writes(1));
    assert!(check_later(&[fill, reads], true));
    assert!(check_later(&[writes, reads], true));
    assert!(check_later(&[fill, writes, reads], true));
    assert!(!check_later(&[fill, writes, reads], false), "it is switched off");
    assert!(!check_later(&[reads], true), "nothing was written");
    assert!(check_later(&[writes, fill, reads, writes, reads], true));
}

#[test]
fn files_that_cannot_be_laid_out_are_refused_with_their_field() {
    let refused = |sets: &str, job: &str| {
        let plan = Arc::new(on_files(sets, &[job]).recorded().unwrap());
        let (seed, found) = (Seed(7), std::collections::BTreeMap::new());
        let placing = Placing { run: "r", seed, buckets: &[String::new()], found: &found };
        FilePlan::of(&plan, &placing).err().map(|refused| refused.to_string())
    };
    let at = |text: &str| Some(format!("stages[0].jobs[0].work.{text}"));
    let direct = "{work: {fill: {sets: f, direct: true}}}";
    let reason = "fill.direct: `/mnt/a/plimsoll/r/f.0.0` of 1000 bytes is not a multiple of 512, \
                  which `direct` needs";
    assert_eq!(refused("f: {files: 1, size: 1000B}", direct), at(reason));
    // What `$jobname` stands for may lead out, too.
    let named = "f: {files: 1, size: 4KiB, name: $jobname/x, job: ..}";
    let reason = "blocks.on: `../x` leads out of the run's directory";
    assert_eq!(refused(named, &reads(1)), at(reason));
}
