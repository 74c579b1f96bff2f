//! Paths, sizes, workers and streams of a plan.

use super::super::examples::{BLOCK, blocks, files, fill, job, names, spec, tree};
use super::super::{BlockOrderSpec, FileOp, JobFilesSpec, SpanSpec};
use super::*;
use crate::data::Generator;

fn reads(files: JobFilesSpec) -> FileWorkSpec {
    FileWorkSpec::Blocks(blocks(files, BlockOrderSpec::EachOnce, 100))
}

fn writes(files: JobFilesSpec) -> FileWorkSpec {
    FileWorkSpec::Blocks(blocks(files, BlockOrderSpec::EachOnce, 0))
}

fn paths(plan: &FilePlan, stage: usize, worker: u32) -> Vec<&str> {
    let files = plan.files_of(stage, WorkerId(worker));
    files.iter().map(|file| &*plan.table.entry(*file).path).collect()
}

#[test]
fn the_schema_is_the_committed_one() {
    let fresh = format!("{:#}\n", serde_json::Value::from(FilesSpec::json_schema()));
    plimsoll_testkit::check_format("files.schema.json", &fresh);
}

#[test]
fn names_are_made_as_fio_makes_them() {
    let mut of = files(2, BLOCK);
    of.directories = vec!["/mnt/a/".to_owned(), "b".to_owned()];
    let plan = spec([job(3, reads(of.clone()))]).validate("r1").unwrap();
    assert_eq!(paths(&plan, 0, 0), ["/mnt/a/plimsoll/r1/job.0.0", "/mnt/a/plimsoll/r1/job.0.1"]);
    assert_eq!(paths(&plan, 0, 1), ["b/plimsoll/r1/job.1.0", "b/plimsoll/r1/job.1.1"]);
    assert_eq!(paths(&plan, 0, 2), ["/mnt/a/plimsoll/r1/job.2.0", "/mnt/a/plimsoll/r1/job.2.1"]);
    of.name_format = "$jobnum/$jobname/f$filenum".to_owned();
    let plan = spec([job(2, reads(of.clone()))]).validate("r1").unwrap();
    assert_eq!(paths(&plan, 0, 1), ["b/plimsoll/r1/1/job/f0", "b/plimsoll/r1/1/job/f1"]);
    assert_eq!(plan.directories_before(0), ["/mnt/a/plimsoll/r1/0/job", "b/plimsoll/r1/1/job"]);
    assert_eq!(plan.run_directories(), ["/mnt/a/plimsoll/r1", "b/plimsoll/r1"]);
    of.directories = vec!["/".to_owned()];
    of.names = vec!["x".to_owned(), "./y//z".to_owned()];
    let plan = spec([job(2, reads(of))]).validate("r1").unwrap();
    assert_eq!(paths(&plan, 0, 1), ["/plimsoll/r1/x", "/plimsoll/r1/y/z"]);
    assert_eq!(plan.table.len(), 2, "all clones share them");
}

#[test]
fn one_path_is_one_file() {
    let mut large = files(1, 8 * BLOCK);
    large.name_format = "data".to_owned();
    let small = JobFilesSpec { size_bytes: SpanSpec::of(2 * BLOCK), ..large.clone() };
    let jobs =
        [job(2, reads(small.clone())), job(1, fill("x", 3, large)), job(1, fill("x", 1, small))];
    let plan = spec(jobs).validate("r").unwrap();
    assert_eq!(plan.table.len(), 1);
    assert_eq!(plan.table.entry(0).size, 8 * BLOCK);
    // Each job keeps to its own size.
    let ops = |stage| {
        let mut stream = plan.stream(stage, WorkerId(0));
        std::iter::from_fn(move || stream.next_op()).count()
    };
    assert_eq!(ops(0), 2);
    assert_eq!(ops(1), 1);
    assert_eq!(ops(2), 0, "it was filled before");
    assert_eq!(plan.files_of(2, WorkerId(0)), [0; 0]);
}

#[test]
fn files_that_exist_keep_their_paths() {
    let mut of = files(1, BLOCK);
    (of.existing, of.destroys) = (true, true);
    of.names = vec!["/dev/sdx".to_owned(), "../data".to_owned()];
    let jobs = [job(2, fill("job", 2, of.clone())), job(2, writes(of))];
    let plan = spec(jobs).validate("r").unwrap();
    assert_eq!(plan.files_of(0, WorkerId(0)), [0; 0], "they are not filled");
    assert_eq!(paths(&plan, 1, 1), ["/dev/sdx", "../data"]);
    assert!(plan.table.entry(0).existing);
    assert!(plan.run_directories().is_empty() && plan.directories_before(1).is_empty());
}

#[test]
fn sizes_are_drawn_from_their_range_and_stay_the_same() {
    let mut of = files(500, 0);
    of.size_bytes = SpanSpec { min: 5_000, max: 1 << 20 };
    let sizes = |seed| {
        let mut spec = spec([job(1, reads(of.clone())), job(1, fill("job", 1, of.clone()))]);
        spec.seed = seed;
        let plan = spec.validate("r").unwrap();
        assert_eq!(plan.table.len(), 500);
        (0..500).map(|file| plan.table.entry(file).size).collect::<Vec<u64>>()
    };
    let drawn = sizes(1);
    assert!(drawn.iter().all(|size| *size == 5_000 || size.is_multiple_of(4_096)));
    assert!(drawn.iter().all(|size| (5_000..=1 << 20).contains(size)));
    // The middle, 526,788, less half of the 4 KiB that are rounded off; of 500 draws +- 13,500.
    let mean = drawn.iter().sum::<u64>() / 500;
    assert!(mean.abs_diff(524_740) < 54_000, "{mean}");
    assert_eq!(drawn, sizes(1));
    assert_ne!(drawn, sizes(2));
}

#[test]
fn workers_are_the_clones_of_all_jobs_in_order() {
    let mut two = spec([job(3, reads(files(1, BLOCK)))]);
    two.stages[0].jobs.push(job(2, names(&tree(0, 1, 1), NameActSpec::Stat, 0)));
    let plan = two.validate("r").unwrap();
    assert_eq!(plan.workers(0), 5);
    let found: Vec<_> = (0..5).map(|worker| plan.job_of(0, WorkerId(worker))).collect();
    assert_eq!(found, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]);
    assert_eq!(plan.buffer_bytes(0, WorkerId(2)), 4_096);
    assert_eq!(plan.buffer_bytes(0, WorkerId(3)), 0);
}

#[test]
fn a_stream_depends_on_seed_stage_and_worker_only() {
    let of = files(3, 1 << 20);
    let work = FileWorkSpec::Blocks(blocks(of, BlockOrderSpec::Uniform, 70));
    let jobs = || [job(2, work.clone()), job(2, work.clone())];
    let ops = |spec: &FilesSpec, stage, worker| -> Vec<(bool, u64, u32)> {
        let mut stream = spec.validate("r").unwrap().stream(stage, WorkerId(worker));
        std::iter::from_fn(move || stream.next_op())
            .map(|op| match op {
                FileOp::Block(op) => (op.write, op.offset, op.len),
                _ => panic!("{op:?} is no block"),
            })
            .collect()
    };
    let one = spec(jobs());
    let first = ops(&one, 0, 0);
    assert_eq!(first.len(), 768);
    assert_eq!(first, ops(&one, 0, 0));
    assert_ne!(first, ops(&one, 0, 1));
    assert_ne!(first, ops(&one, 1, 0));
    let mut other = spec(jobs());
    other.seed = 8;
    assert_ne!(first, ops(&other, 0, 0));
    // A job's own seed takes the place of the run's.
    let FileWorkSpec::Blocks(blocks) = &mut other.stages[0].jobs[0].work else { panic!("blocks") };
    blocks.seed = Some(7);
    assert_eq!(first, ops(&other, 0, 0));
}

#[test]
fn versions_are_kept_where_they_can_be_of_use() {
    let of = || files(1, 1 << 20);
    let check_later = |jobs: Vec<FileJobSpec>, verify: bool| {
        let mut written = spec(jobs);
        written.verify = verify;
        let plan = written.validate("r").unwrap();
        let generator = Generator::new(written.seed);
        let last = written.stages.len() - 1;
        for stage in 0..last {
            let mut stream = plan.stream(stage, WorkerId(0));
            while let Some(op) = stream.next_op() {
                stream.completed(&op, true);
            }
        }
        let mut stream = plan.stream(last, WorkerId(0));
        let Some(FileOp::Block(op)) = stream.next_op() else { panic!("there is no block") };
        stream.check(&op, &generator, &[b'x'; 4_096]).is_some()
    };
    let (fill, reads, writes) =
        (|| job(1, fill("job", 1, of())), || job(1, reads(of())), || job(1, writes(of())));
    assert!(check_later(vec![fill(), reads()], true));
    assert!(check_later(vec![writes(), reads()], true));
    assert!(check_later(vec![fill(), writes(), reads()], true));
    assert!(!check_later(vec![fill(), writes(), reads()], false), "it is switched off");
    assert!(!check_later(vec![reads()], true), "nothing was written");
    assert!(check_later(vec![writes(), fill(), reads(), writes(), reads()], true));
}

#[test]
fn a_spec_survives_yaml() {
    let mut written = spec([
        job(3, reads(files(2, BLOCK))),
        job(1, fill("job", 3, files(2, BLOCK))),
        job(2, names(&tree(1, 2, 3), NameActSpec::Create { bytes: 5, fsync: true }, 1)),
    ]);
    written.stages[0].drop_caches = true;
    let text = written.to_yaml();
    assert_eq!(FilesSpec::from_yaml(&text), Ok(written));
    let strange = text.replace("drop_caches", "drop_cashes");
    assert!(FilesSpec::from_yaml(&strange).unwrap_err().contains("drop_cashes"));
}
