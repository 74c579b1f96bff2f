//! Workloads of version 1 come to the same in this language.

use std::time::Duration;

use plimsoll_model::{Seed, SyncMode};

use super::files::{
    BlockOrderSpec, BlockShareSpec, BlockSizesSpec, BlocksSpec, CapSpec, FILES_SCHEMA, FileJobSpec,
    FilePacingSpec, FileStageSpec, FileWorkSpec, FilesSpec, FillFilesSpec, FillSpec, JobFilesSpec,
    NameActSpec, NamesSpec, SpanSpec, ThinkSpec, TreeSpec,
};
use super::objects::tests::spec;
use super::objects::{
    ActivitySpec, ExistingSpec, GeneratorSpec, ObjectsSpec, PacingSpec, PickSpec, RangeSpec,
    SizeBarSpec, SizeSpec, SteadySpec, WorkloadSpec,
};
use crate::data::DataRule;
use crate::files::NameAct;
use crate::plan::spec::{BlockLaw, BlockOrder, BlockSizes};
use crate::plan::{
    Amount, Change, FileNames, Files, JobPacing, Members, Percent, Plan, Tree, Work, WorkloadFile,
    read_as,
};
use crate::{OpenLoop, Pacing, SizeBar, SizeDist, StopRule};

/// Returns the stop rules of a workload of version 1.
fn stop_rules(old: &WorkloadSpec) -> Vec<StopRule> {
    let steady = old.measure.steady.as_ref().map(|steady| StopRule::Steady {
        window: Duration::from_nanos(steady.window_ns),
        percent: steady.percent,
    });
    let until: Vec<_> = old.measure.until.iter().map(|rule| rule.parse().unwrap()).collect();
    let until = (!until.is_empty()).then_some(StopRule::Until(until));
    steady.into_iter().chain(until).collect()
}

fn pacing(old: &WorkloadSpec) -> Pacing {
    match &old.pacing {
        PacingSpec::Closed => Pacing::Closed,
        PacingSpec::Capped { ops_per_sec } => Pacing::Capped { ops_per_sec: *ops_per_sec },
        PacingSpec::Open { rate, arrivals, max_in_flight } => Pacing::Open(OpenLoop {
            profile: rate.parse().unwrap(),
            arrivals: arrivals.parse().unwrap(),
            max_in_flight: (*max_in_flight).try_into().unwrap(),
        }),
    }
}

fn data(old: &ObjectsSpec) -> DataRule {
    let per_mille = |ratio: Option<f64>| (ratio.unwrap_or(1.0) * 1_000.0) as u32;
    match (&old.generator, per_mille(old.compress_ratio), per_mille(old.dedupe_ratio)) {
        (GeneratorSpec::Random, 1_000, 1_000) => DataRule::Random,
        (GeneratorSpec::Random, compress_per_mille, dedupe_per_mille) => {
            DataRule::Shaped { compress_per_mille, dedupe_per_mille }
        }
        (GeneratorSpec::Zero, ..) => DataRule::Zero,
        (GeneratorSpec::Text, ..) => DataRule::Text,
        (GeneratorSpec::Files(files), ..) => {
            DataRule::Files { bytes: files.iter().map(|file| file.bytes).sum() }
        }
    }
}

/// Returns how large objects are in the words of version 1.
fn old_object_size(now: &SizeDist) -> SizeSpec {
    match now {
        SizeDist::Fixed(size) => SizeSpec::FixedBytes(*size),
        SizeDist::LogUniform { min, max } => {
            SizeSpec::LogUniform { min_bytes: *min, max_bytes: *max }
        }
        SizeDist::Histogram(bars) => {
            let bar = |bar: &SizeBar| SizeBarSpec { up_to_bytes: bar.up_to, weight: bar.weight };
            SizeSpec::Histogram(bars.iter().map(bar).collect())
        }
        SizeDist::LogNormal { median, sigma } => {
            SizeSpec::Lognormal { median_bytes: *median, sigma: *sigma }
        }
        SizeDist::List(sizes) => SizeSpec::List(sizes.to_vec()),
        SizeDist::Steps { .. } => unreachable!("version 1 has no such sizes"),
    }
}

/// Converts a workload that version 1 takes, and compares what both mean.
fn same(name: &str, old: &WorkloadSpec) -> Plan {
    assert_eq!(old.check(), Ok(()), "{name}");
    let file = WorkloadFile::try_from(old).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = file.to_yaml();
    let plan = file.check().unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    let again = WorkloadFile::from_yaml("v1", &text);
    assert_eq!(again.unwrap_or_else(|error| panic!("{name}: {error}\n{text}")), file, "{name}");
    assert_eq!((plan.seed, &plan.name), (Some(Seed(old.seed)), &old.name));
    let stage = plan.stages.last().expect("it measures");
    let job = &stage.jobs[0];
    let duration = Duration::from_nanos(old.measure.duration_ns);
    assert_eq!(stage.duration, Some(duration), "{name}");
    assert_eq!(stage.stop_rules, stop_rules(old), "{name}");
    assert_eq!(job.workers.get(), old.concurrency, "{name}");
    assert_eq!(job.pacing, JobPacing::Shared(pacing(old)), "{name}");
    assert_eq!(job.verify, old.verify, "{name}");
    match &plan.sets[0].members {
        Members::Objects(objects) => {
            let part_of_one = old.measure.activity == ActivitySpec::Multipart;
            let count = if part_of_one { 1 } else { old.objects.count };
            assert_eq!(objects.count, count, "{name}");
            assert_eq!(objects.versions, old.objects.versions, "{name}");
            assert_eq!(objects.data, data(&old.objects), "{name}");
            assert_eq!(objects.keys.per_worker, old.keys.per_worker, "{name}");
            let mut sizes = old.objects.size.clone();
            if let SizeSpec::Histogram(bars) = &mut sizes {
                bars.sort_by_key(|bar| bar.up_to_bytes);
            }
            match (&old.measure.activity, sizes) {
                (ActivitySpec::Multipart, SizeSpec::FixedBytes(part_bytes)) => {
                    assert_eq!(objects.part_bytes, Some(part_bytes), "{name}");
                    let size = old.objects.count * part_bytes;
                    assert_eq!(objects.sizes, Some(SizeDist::Fixed(size)), "{name}");
                }
                (ActivitySpec::MultipartPut { .. }, _) => {}
                (_, sizes) => {
                    assert_eq!(objects.sizes.as_ref().map(old_object_size), Some(sizes), "{name}");
                }
            }
        }
        Members::Existing(_) => assert!(old.objects.existing.is_some()),
        other => panic!("{name}: {other:?}"),
    }
    if let Work::Objects(ops) = &job.work {
        let mut weights: Vec<u32> = ops.iter().map(|op| op.weight).collect();
        let known = old.measure.operations.iter().map(|op| op.weight);
        let mut known: Vec<u32> = known.filter(|weight| *weight > 0).collect();
        weights.sort_unstable();
        known.sort_unstable();
        assert_eq!(weights, known, "{name}");
    }
    plan
}

fn special(activity: ActivitySpec, count: u64) -> WorkloadSpec {
    let mut old = spec(&[]);
    old.measure.activity = activity;
    old.objects.count = count;
    old
}

#[test]
fn every_activity_of_version_1_is_expressed() {
    for ops in [
        &[("GET", 1)][..],
        &[("PUT", 1)],
        &[("STAT", 5)],
        &[("LIST", 1)],
        &[("DELETE", 1)],
        &[("GET", 45), ("STAT", 30), ("PUT", 15), ("DELETE", 10)],
        &[("GET", 3), ("PUT", 0)],
    ] {
        same(&format!("{ops:?}"), &spec(ops));
    }
    for (name, activity, count) in [
        ("retention", ActivitySpec::Retention { hold_ns: 5 }, 100),
        ("multipart", ActivitySpec::Multipart, 100),
        ("multipart-put", ActivitySpec::MultipartPut { parts: 9, part_concurrency: 3 }, 0),
        ("append", ActivitySpec::Append { parts: 9 }, 0),
        ("zip", ActivitySpec::Zip, 100),
        ("snowball", ActivitySpec::Snowball { members: 9, compress: true }, 0),
        ("fanout", ActivitySpec::Fanout { copies: 9 }, 0),
    ] {
        let plan = same(name, &special(activity, count));
        assert_eq!(plan.stages.len(), if count > 0 { 2 } else { 1 }, "{name}");
    }
}

#[test]
fn every_field_of_version_1_is_expressed() {
    type Case = (&'static str, &'static [(&'static str, u32)], fn(&mut WorkloadSpec));
    let cases: [Case; 20] = [
        ("sequential", &[("GET", 1)], |s| s.measure.pick = PickSpec::Sequential),
        ("zipf", &[("GET", 1)], |s| s.measure.pick = PickSpec::Zipf { theta: 1.2 }),
        ("post", &[("PUT", 1)], |s| s.measure.post = true),
        ("range", &[("GET", 1)], |s| s.measure.range = Some(RangeSpec::FixedBytes(9))),
        ("range of more", &[("GET", 1)], |s| {
            s.measure.range = Some(RangeSpec::FixedBytes(5_000));
        }),
        ("random range", &[("GET", 1)], |s| s.measure.range = Some(RangeSpec::Random)),
        ("overwrite", &[("GET", 1), ("PUT", 1)], |s| s.measure.overwrite = true),
        ("batch", &[("DELETE", 1)], |s| s.measure.delete_batch = Some(5)),
        ("batch beside others", &[("GET", 45), ("STAT", 30), ("PUT", 15), ("DELETE", 10)], |s| {
            s.measure.delete_batch = Some(5)
        }),
        ("page", &[("LIST", 1)], |s| s.measure.list_page_size = Some(50)),
        ("versions", &[("GET", 1)], |s| s.objects.versions = 5),
        ("versioned", &[("GET", 2), ("PUT", 1), ("DELETE", 1)], |s| {
            s.measure.activity = ActivitySpec::Versioned;
        }),
        ("until", &[("GET", 1)], |s| {
            s.measure.until = vec!["ci(p99)<=5%".to_owned(), "ci(rate)<=1%".to_owned()];
            s.measure.steady = Some(SteadySpec { window_ns: 7_000_000_000, percent: 3.5 });
        }),
        ("capped", &[("GET", 1)], |s| s.pacing = PacingSpec::Capped { ops_per_sec: 12.5 }),
        ("open", &[("GET", 1)], |s| {
            s.pacing = PacingSpec::Open {
                rate: "100/s..900/s over 2m, 5/s".to_owned(),
                arrivals: "poisson".to_owned(),
                max_in_flight: 77,
            };
        }),
        ("sizes", &[("PUT", 1)], |s| {
            let bar = |up_to_bytes, weight| SizeBarSpec { up_to_bytes, weight };
            s.objects.size = SizeSpec::Histogram(vec![bar(4_096, 1), bar(1_024, 3)]);
        }),
        ("lognormal", &[("PUT", 1)], |s| {
            s.objects.size = SizeSpec::Lognormal { median_bytes: 1_000, sigma: 1.5 };
        }),
        ("listed sizes", &[("PUT", 1)], |s| s.objects.size = SizeSpec::List(vec![5, 5, 9])),
        ("shaped", &[("PUT", 1)], |s| {
            (s.objects.compress_ratio, s.objects.dedupe_ratio) = (Some(2.5), Some(3.0));
            s.keys.prefix = "a/b".to_owned();
            s.keys.per_worker = false;
        }),
        ("unverified text", &[("GET", 1)], |s| {
            s.objects.generator = GeneratorSpec::Text;
            s.verify = false;
        }),
    ];
    for (name, ops, change) in cases {
        let mut old = spec(ops);
        change(&mut old);
        same(name, &old);
    }
    let mut existing = spec(&[("DELETE", 1)]);
    existing.objects.existing =
        Some(ExistingSpec { limit: Some(9), recursive: false, destroys: true });
    let plan = same("existing", &existing);
    assert_eq!(plan.consents[0].change, Change::Removes);
    let mut bad = spec(&[("GET", 1)]);
    bad.measure.until = vec!["ci(foo)<=5%".to_owned()];
    assert!(WorkloadFile::try_from(&bad).is_err());
}

/// Returns a stage whose figures are a result and before which nothing is done.
pub(super) fn stage_of(name: &str, jobs: Vec<FileJobSpec>) -> FileStageSpec {
    FileStageSpec {
        name: name.to_owned(),
        iteration: 0,
        prepares: false,
        drop_caches: false,
        end_on_failure: false,
        jobs,
    }
}

/// Returns a job of `clones` clones, each with one operation in flight, that nothing limits.
pub(super) fn job_of(name: &str, clones: u32, work: FileWorkSpec) -> FileJobSpec {
    FileJobSpec {
        name: name.to_owned(),
        group: 0,
        clones,
        depth: 1,
        interface: None,
        start_delay_ns: SpanSpec::default(),
        ramp_ns: 0,
        duration_ns: None,
        ops_max: None,
        bytes_max: None,
        pacing: FilePacingSpec::Closed,
        think: None,
        work,
    }
}

fn job_files(name: &str, size: u64) -> JobFilesSpec {
    JobFilesSpec {
        directories: vec!["/mnt/a".to_owned()],
        names: Vec::new(),
        name_format: name.to_owned(),
        count: 2,
        size_bytes: SpanSpec::of(size),
        existing: false,
        destroys: false,
    }
}

fn blocks(files: JobFilesSpec, read_percent: u32) -> BlocksSpec {
    let shares = vec![
        BlockShareSpec { size_bytes: 4_096, weight: 60 },
        BlockShareSpec { size_bytes: 65_536, weight: 40 },
    ];
    BlocksSpec {
        files,
        read_percent,
        read_blocks: BlockSizesSpec::Shares(shares),
        write_blocks: BlockSizesSpec::RangeBytes(SpanSpec { min: 4_096, max: 65_536 }),
        order: BlockOrderSpec::Normal { deviation_percent: 20.0 },
        repeats: true,
        seed: Some(5),
        direct: true,
        sync: SyncMode::Dsync,
        fsync_every: Some(32),
        fdatasync_every: Some(7),
        end_fsync: true,
        invalidates: true,
    }
}

fn run(stages: Vec<FileStageSpec>) -> FilesSpec {
    let name = "test".to_owned();
    FilesSpec { schema: FILES_SCHEMA.to_owned(), name, seed: 7, verify: true, stages }
}

/// Returns how large blocks are in the words of version 1.
fn old_sizes(now: &BlockSizes) -> BlockSizesSpec {
    match now {
        BlockSizes::Fixed(size) => BlockSizesSpec::FixedBytes(size.0),
        BlockSizes::Drawn(BlockLaw::Range(range)) => {
            BlockSizesSpec::RangeBytes(SpanSpec { min: range.min, max: range.max })
        }
        BlockSizes::Drawn(BlockLaw::Shares(shares)) => {
            let share = |share: &crate::plan::spec::Share<crate::plan::Size>| BlockShareSpec {
                size_bytes: share.value.0,
                weight: share.weight as u32,
            };
            BlockSizesSpec::Shares(shares.0.iter().map(share).collect())
        }
    }
}

fn old_order(now: BlockOrder) -> BlockOrderSpec {
    match now {
        BlockOrder::Sequential => BlockOrderSpec::Sequential,
        BlockOrder::EachOnce => BlockOrderSpec::EachOnce,
        BlockOrder::Uniform => BlockOrderSpec::Uniform,
        BlockOrder::Zipf(theta) => BlockOrderSpec::Zipf { theta },
        BlockOrder::Pareto(h) => BlockOrderSpec::Pareto { h },
        BlockOrder::Normal(Percent(deviation_percent)) => {
            BlockOrderSpec::Normal { deviation_percent }
        }
    }
}

/// Returns files as version 1 says it, with how it makes names where these are listed.
fn old_files(now: &Files, touch: bool) -> JobFilesSpec {
    let (existing, names) = match &now.names {
        FileNames::Made { .. } => (false, Vec::new()),
        FileNames::Listed(names) => (false, names.clone()),
        FileNames::Paths(paths) => (true, paths.clone()),
        FileNames::Traced(_) => unreachable!("older files replay nothing"),
    };
    let (name_format, count) = match &now.names {
        FileNames::Made { format, count, .. } => (format.clone(), *count),
        _ => ("$jobname.$jobnum.$filenum".to_owned(), 1),
    };
    JobFilesSpec {
        directories: now.directories.clone(),
        names,
        name_format,
        count,
        size_bytes: SpanSpec { min: now.size.min, max: now.size.max },
        existing,
        destroys: touch,
    }
}

fn old_tree(now: &Tree) -> TreeSpec {
    let shape = &now.shape;
    TreeSpec {
        directories: now.directories.clone(),
        name: now.name.clone(),
        depth: shape.depth,
        branching: shape.branching,
        entries_per_directory: shape.entries,
        leaves_only: shape.leaves_only,
        per_clone: shape.per_worker,
        shared_names: shape.shared_names,
        of_directories: shape.of_directories,
    }
}

fn old_act(now: NameAct) -> NameActSpec {
    match now {
        NameAct::MakeTree => NameActSpec::MakeTree,
        NameAct::Create { bytes, fsync } => NameActSpec::Create { bytes, fsync },
        NameAct::Stat => NameActSpec::Stat,
        NameAct::Open { bytes } => NameActSpec::Open { bytes },
        NameAct::Rename => NameActSpec::Rename,
        NameAct::Remove => NameActSpec::Remove,
        NameAct::RemoveTree => NameActSpec::RemoveTree,
    }
}

/// Converts a run that version 1 takes, and compares what both mean.
fn same_files(old: &FilesSpec) -> Plan {
    assert_eq!(old.check(), Ok(()));
    let file = WorkloadFile::try_from(old).unwrap_or_else(|error| panic!("{error}"));
    let text = file.to_yaml();
    let plan = file.check().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(WorkloadFile::from_yaml("v1", &text).as_ref(), Ok(&file), "{text}");
    assert_eq!(plan.stages.len(), old.stages.len());
    for (stage, known) in plan.stages.iter().zip(&old.stages) {
        assert_eq!((&stage.name, stage.iteration), (&known.name, known.iteration));
        assert_eq!(stage.workers(), known.jobs.iter().map(|job| job.clones).sum::<u32>());
        for (job, known) in stage.jobs.iter().zip(&known.jobs) {
            assert_eq!((&job.name, job.depth.get()), (&known.name, known.depth));
            assert_eq!(job.duration.map(|time| time.as_nanos() as u64), known.duration_ns);
            assert_eq!(job.ops_max, known.ops_max.map(Amount::Each));
            assert_eq!(job.bytes_max, known.bytes_max.map(Amount::Each));
            match (&job.work, &known.work) {
                (Work::Blocks(now), FileWorkSpec::Blocks(known)) => {
                    assert_eq!(now.read_percent, known.read_percent);
                    assert_eq!(
                        (old_order(now.order), now.seed, now.sync),
                        (known.order, known.seed, known.sync)
                    );
                    if known.read_percent > 0 {
                        assert_eq!(old_sizes(&now.read), known.read_blocks);
                    }
                    if known.read_percent < 100 {
                        assert_eq!(old_sizes(&now.write), known.write_blocks);
                    }
                    let files = old_files(plan.files(now.set), plan.set(now.set).touch);
                    assert_eq!(files, known.files);
                }
                (Work::Names { set, act, shuffled }, FileWorkSpec::Names(known)) => {
                    assert_eq!(old_tree(plan.tree(*set)), known.tree);
                    assert_eq!((old_act(*act), *shuffled), (known.act, known.shuffled));
                    assert_eq!(job.deal.shift, known.shift);
                }
                (Work::Fill { block_bytes, direct, .. }, FileWorkSpec::Fill(known)) => {
                    assert_eq!((*block_bytes, *direct), (known.block_bytes, known.direct));
                }
                (now, known) => panic!("{now:?} is not {known:?}"),
            }
        }
    }
    plan
}

#[test]
fn runs_on_files_are_expressed() {
    let files = job_files("$jobname.$jobnum.$filenum", 1 << 20);
    let of = |job: &str, clones, files: &JobFilesSpec| FillFilesSpec {
        job: job.to_owned(),
        clones,
        files: files.clone(),
    };
    let shared =
        JobFilesSpec { names: vec!["x".to_owned(), "y".to_owned()], count: 1, ..files.clone() };
    let fill = FileWorkSpec::Fill(FillSpec {
        files: vec![of("mix", 4, &files), of("a", 1, &shared), of("b", 3, &shared)],
        block_bytes: 1 << 16,
        direct: true,
    });
    let mut prepare = stage_of("fill", vec![job_of("fill", 2, fill)]);
    (prepare.prepares, prepare.end_on_failure) = (true, true);
    let mut mix = job_of("mix", 4, FileWorkSpec::Blocks(blocks(files.clone(), 70)));
    (mix.group, mix.depth) = (3, 16);
    mix.interface = Some(plimsoll_model::Interface::Libaio);
    mix.start_delay_ns = SpanSpec { min: 1, max: 5_000 };
    (mix.ramp_ns, mix.duration_ns) = (10_000_000_000, Some(60_000_000_000));
    (mix.ops_max, mix.bytes_max) = (Some(77), Some(1 << 30));
    mix.pacing = FilePacingSpec::Capped {
        read: Some(CapSpec::BytesPerSec(1_048_576.5)),
        write: Some(CapSpec::OpsPerSec(99.5)),
        poisson: true,
    };
    mix.think = Some(ThinkSpec { pause_ns: 1_000_000, spin_ns: 5, every_ops: 8 });
    // Two jobs of one stage that write the same files, as fio has it, and one that reads them.
    let both = |name: &str, percent| {
        let mut job = job_of(name, 2, FileWorkSpec::Blocks(blocks(shared.clone(), percent)));
        job.duration_ns = Some(5);
        job.pacing = FilePacingSpec::Open {
            rate: "100/s".to_owned(),
            arrivals: "poisson".to_owned(),
            max_in_flight: 9,
        };
        job
    };
    let mut stage = stage_of("both", vec![both("a", 50), both("b", 0), both("c", 100)]);
    (stage.drop_caches, stage.iteration) = (true, 2);
    let plan = same_files(&run(vec![prepare, stage_of("mix", vec![mix]), stage]));
    assert_eq!(plan.stages[1].jobs[0].ramp, Duration::from_secs(10));
    assert_eq!(plan.sets.len(), 3, "the second writer has a set of the same paths");
    let mut device = job_files("x", 1 << 30);
    (device.existing, device.destroys) = (true, true);
    device.names = vec!["/dev/nvme0n1".to_owned()];
    device.directories = Vec::new();
    device.count = 1;
    device.name_format = "$jobname.$jobnum.$filenum".to_owned();
    let mut job = job_of("dev", 1, FileWorkSpec::Blocks(blocks(device, 0)));
    job.duration_ns = Some(1);
    let plan = same_files(&{
        let mut old = run(vec![stage_of("dev", vec![job])]);
        let FileWorkSpec::Blocks(blocks) = &mut old.stages[0].jobs[0].work else { panic!() };
        blocks.files.count = 1;
        old
    });
    assert_eq!(plan.consents[0].change, Change::Writes);
}

#[test]
fn a_fill_in_several_places_has_a_job_for_each() {
    let near = job_files("near/$jobnum/$filenum", 1 << 20);
    let far = JobFilesSpec { directories: vec!["/mnt/b".to_owned()], ..near.clone() };
    let of = |clones, files: &JobFilesSpec| FillFilesSpec {
        job: "mix".to_owned(),
        clones,
        files: files.clone(),
    };
    let fill = FileWorkSpec::Fill(FillSpec {
        files: vec![of(3, &near), of(1, &far)],
        block_bytes: 1 << 16,
        direct: false,
    });
    let near = FileWorkSpec::Blocks(blocks(near, 100));
    let far = FileWorkSpec::Blocks(blocks(far, 100));
    let mut reads = vec![job_of("near", 3, near), job_of("far", 1, far)];
    reads.iter_mut().for_each(|job| job.duration_ns = Some(1));
    let stages = vec![stage_of("fill", vec![job_of("fill", 4, fill)]), stage_of("read", reads)];
    let plan = same_files(&run(stages));
    let filled: Vec<_> = plan.stages[0].jobs.iter().map(|job| (&*job.name, job.target.0)).collect();
    assert_eq!(filled, [("fill", 0), ("fill", 1)]);
    assert_eq!(plan.stages[0].jobs[1].group, Some(0), "both are one row");
}

#[test]
fn trees_are_expressed() {
    let tree = TreeSpec {
        directories: vec!["/mnt/a".to_owned(), "/mnt/b".to_owned()],
        name: "test-dir.0-0".to_owned(),
        depth: 2,
        branching: 3,
        entries_per_directory: 4,
        leaves_only: true,
        per_clone: true,
        shared_names: false,
        of_directories: false,
    };
    let step = |act, shift, shuffled| {
        let names = NamesSpec { tree: tree.clone(), act, shift, shuffled };
        stage_of("s", vec![job_of("n", 3, FileWorkSpec::Names(names))])
    };
    let plan = same_files(&run(vec![
        step(NameActSpec::MakeTree, 0, false),
        step(NameActSpec::Create { bytes: 3_901, fsync: true }, 0, false),
        step(NameActSpec::Stat, 1, true),
        step(NameActSpec::Open { bytes: 3_901 }, 2, false),
        step(NameActSpec::Rename, 0, false),
        step(NameActSpec::Remove, 1, true),
        step(NameActSpec::RemoveTree, 0, false),
    ]));
    assert_eq!(plan.sets.len(), 1, "stages with the same tree work on the same names");
}

/// What the commands of version 1 printed of themselves (`--explain`), and of fio's and mdtest's.
#[test]
#[expect(clippy::disallowed_methods, reason = "tests read files of the repository")]
fn what_commands_of_version_1_came_to_is_expressed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/workload-1");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the files are there") {
        let path = entry.expect("the folder can be read").path();
        let text = std::fs::read_to_string(&path).expect("it is text");
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        if text.contains("plimsoll.workload/1") {
            same(&name, &read_as("v1", &text).expect("version 1 reads it"));
        } else {
            same_files(&read_as("v1", &text).expect("version 1 reads it"));
        }
        count += 1;
    }
    assert!(count >= 20, "{count}");
}
