#![allow(clippy::disallowed_methods, missing_docs)]
use plimsoll_model::WorkerId;
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::*;
use std::time::Instant;
fn spec(
    order: BlockOrderSpec,
    read: u32,
    size: u64,
    writes_later: bool,
    sizes: BlockSizesSpec,
) -> FilesSpec {
    let files = JobFilesSpec {
        directories: vec!["/d".into()],
        names: vec![],
        name_format: "$jobname.$jobnum.$filenum".into(),
        count: 1,
        size_bytes: SpanSpec::of(size),
        existing: false,
        destroys: false,
    };
    let job = |work| FileJobSpec {
        name: "j".into(),
        group: 0,
        clones: 1,
        depth: 1,
        interface: None,
        start_delay_ns: SpanSpec::of(0),
        ramp_ns: 0,
        duration_ns: Some(1),
        ops_max: None,
        bytes_max: None,
        pacing: FilePacingSpec::Closed,
        think: None,
        work,
    };
    let stage = |work| FileStageSpec {
        name: "s".into(),
        iteration: 0,
        prepares: false,
        drop_caches: false,
        end_on_failure: false,
        jobs: vec![job(work)],
    };
    let blocks = |read_percent| {
        FileWorkSpec::Blocks(BlocksSpec {
            files: files.clone(),
            read_percent,
            read_blocks: sizes.clone(),
            write_blocks: sizes.clone(),
            order,
            repeats: true,
            seed: None,
            direct: false,
            sync: Default::default(),
            fsync_every: None,
            fdatasync_every: None,
            end_fsync: false,
            invalidates: false,
        })
    };
    let mut stages = vec![
        stage(FileWorkSpec::Fill(FillSpec {
            files: vec![FillFilesSpec { job: "j".into(), clones: 1, files: files.clone() }],
            block_bytes: 1 << 20,
            direct: false,
        })),
        stage(blocks(read)),
    ];
    if writes_later {
        stages.insert(1, stage(blocks(0)));
    }
    FilesSpec { schema: FILES_SCHEMA.into(), name: "x".into(), seed: 1, verify: true, stages }
}
fn main() {
    let n = 3_000_000u64;
    let fixed = || BlockSizesSpec::FixedBytes(4096);
    for (what, order, read, later, size) in [
        ("uniform", BlockOrderSpec::Uniform, 100, false, 1u64 << 30),
        ("uniform cells", BlockOrderSpec::Uniform, 100, true, 1 << 30),
        ("uniform cells small", BlockOrderSpec::Uniform, 100, true, 1 << 24),
        ("eachonce", BlockOrderSpec::EachOnce, 100, false, 1 << 30),
        ("eachonce worst", BlockOrderSpec::EachOnce, 100, false, (1 << 30) + 4096),
        ("seq", BlockOrderSpec::Sequential, 100, false, 1 << 30),
        ("zipf1.2", BlockOrderSpec::Zipf { theta: 1.2 }, 100, false, 1 << 30),
        ("zipf.8", BlockOrderSpec::Zipf { theta: 0.8 }, 100, false, 1 << 30),
        ("pareto", BlockOrderSpec::Pareto { h: 0.2 }, 100, false, 1 << 30),
        ("normal", BlockOrderSpec::Normal { deviation_percent: 10. }, 100, false, 1 << 30),
        ("write uniform cells", BlockOrderSpec::Uniform, 0, true, 1 << 30),
        ("mixed 70 cells", BlockOrderSpec::Uniform, 70, true, 1 << 30),
    ] {
        let mut s = spec(order, read, size, later, fixed());
        if what.starts_with("write") {
            let mut again = s.stages.last().unwrap().clone();
            if let FileWorkSpec::Blocks(b) = &mut again.jobs[0].work {
                b.read_percent = 100
            }
            s.stages.push(again);
        }
        let plan = s.validate("r").unwrap();
        let generator = Generator::new(1);
        let mut buffer = vec![0u8; 1 << 20];
        let mut fill = plan.stream(0, WorkerId(0));
        while let Some(op) = fill.next_op() {
            fill.completed(&op, true);
        }
        let mut best = f64::MAX;
        let mut best_check = f64::MAX;
        for _ in 0..3 {
            let mut stream = plan.stream(
                if later { 2 - usize::from(what.starts_with("write")) } else { 1 },
                WorkerId(0),
            );
            let start = Instant::now();
            let mut sum = 0;
            for _ in 0..n {
                let op = stream.next_op().unwrap();
                if let FileOp::Block(b) = &op {
                    sum += b.offset;
                }
                stream.completed(&op, true);
            }
            best = best.min(start.elapsed().as_nanos() as f64 / n as f64);
            std::hint::black_box(sum);
            // check: same block so content is in cache
            let op = loop {
                match stream.next_op().unwrap() {
                    FileOp::Block(b) if !b.write => break Some(b),
                    FileOp::Block(b) => {
                        stream.completed(&FileOp::Block(b), true);
                        if read == 0 {
                            break None;
                        }
                    }
                    _ => {}
                }
            };
            if let Some(op) = op {
                if plan_version(&plan, &stream, &op, &generator, &mut buffer) {
                    let start = Instant::now();
                    for _ in 0..n / 4 {
                        assert!(
                            stream
                                .check(&op, &generator, std::hint::black_box(&buffer[..4096]))
                                .is_none()
                        );
                    }
                    best_check = best_check.min(start.elapsed().as_nanos() as f64 / (n / 4) as f64);
                }
            }
        }
        println!("{what:22} plan+complete {best:.1} ns, check {best_check:.1} ns");
    }
    names();
}
fn plan_version(
    _: &FilePlan,
    stream: &FileStream,
    op: &BlockOp,
    generator: &Generator,
    buffer: &mut [u8],
) -> bool {
    let key = plimsoll_workload::hash_text("plimsoll/r/j.0.0");
    for version in 1..20 {
        generator.content(key, version).fill(op.offset, &mut buffer[..4096]);
        if stream.check(op, generator, &buffer[..4096]).is_none() {
            return true;
        }
    }
    false
}
fn names() {
    let tree = TreeSpec {
        directories: vec!["/d".into()],
        name: "test-dir.0-0".into(),
        depth: 2,
        branching: 3,
        entries_per_directory: 100_000,
        leaves_only: false,
        per_clone: true,
        shared_names: false,
        of_directories: false,
    };
    for shuffled in [false, true] {
        let job = FileJobSpec {
            name: "j".into(),
            group: 0,
            clones: 4,
            depth: 1,
            interface: None,
            start_delay_ns: SpanSpec::of(0),
            ramp_ns: 0,
            duration_ns: None,
            ops_max: None,
            bytes_max: None,
            pacing: FilePacingSpec::Closed,
            think: None,
            work: FileWorkSpec::Names(NamesSpec {
                tree: tree.clone(),
                act: NameActSpec::Stat,
                shift: 1,
                shuffled,
            }),
        };
        let s = FilesSpec {
            schema: FILES_SCHEMA.into(),
            name: "x".into(),
            seed: 1,
            verify: true,
            stages: vec![FileStageSpec {
                name: "s".into(),
                iteration: 0,
                prepares: false,
                drop_caches: false,
                end_on_failure: false,
                jobs: vec![job],
            }],
        };
        let plan = s.validate("r").unwrap();
        let mut best = f64::MAX;
        for _ in 0..3 {
            let mut stream = plan.stream(0, WorkerId(0));
            let mut path = Vec::new();
            let start = Instant::now();
            let mut n = 0u64;
            while let Some(op) = stream.next_op() {
                if let FileOp::Name(name) = &op {
                    stream.path(name, &mut path);
                    std::hint::black_box(&path);
                }
                stream.completed(&op, true);
                n += 1;
            }
            best = best.min(start.elapsed().as_nanos() as f64 / n as f64);
        }
        println!("names shuffled {shuffled}: {best:.1} ns");
    }
}
