//! What is refused, and in which words.

use plimsoll_model::SyncMode;

use super::super::{
    BlockOrderSpec, BlockShareSpec, BlockSizesSpec, BlocksSpec, CapSpec, FilePacingSpec,
    FillFilesSpec, FillSpec, NamesSpec, SpanSpec, ThinkSpec, TreeSpec,
};
use super::*;
use crate::plan::{read_as, yaml_of};
use crate::v1::convert_tests::{job_of, stage_of};

fn files(count: u32, size: u64) -> JobFilesSpec {
    JobFilesSpec {
        directories: vec!["/mnt/a".to_owned()],
        names: Vec::new(),
        name_format: "$jobname.$jobnum.$filenum".to_owned(),
        count,
        size_bytes: SpanSpec::of(size),
        existing: false,
        destroys: false,
    }
}

fn fill(job: &str, clones: u32, files: JobFilesSpec) -> FileWorkSpec {
    let files = vec![FillFilesSpec { job: job.to_owned(), clones, files }];
    FileWorkSpec::Fill(FillSpec { files, block_bytes: 1 << 20, direct: false })
}

fn tree(depth: u32, branching: u32, entries: u64) -> TreeSpec {
    TreeSpec {
        directories: vec!["/mnt/a".to_owned()],
        name: "test-dir.0-0".to_owned(),
        depth,
        branching,
        entries_per_directory: entries,
        leaves_only: false,
        per_clone: false,
        shared_names: false,
        of_directories: false,
    }
}

fn names(tree: &TreeSpec, act: NameActSpec, shift: u32) -> FileWorkSpec {
    FileWorkSpec::Names(NamesSpec { tree: tree.clone(), act, shift, shuffled: false })
}

fn job(clones: u32, work: FileWorkSpec) -> FileJobSpec {
    job_of("job", clones, work)
}

/// Returns a spec with one job in each stage.
fn spec(jobs: impl IntoIterator<Item = FileJobSpec>) -> FilesSpec {
    let stage = |job| stage_of("stage", vec![job]);
    FilesSpec {
        schema: FILES_SCHEMA.to_owned(),
        name: "test".to_owned(),
        seed: 7,
        verify: true,
        stages: jobs.into_iter().map(stage).collect(),
    }
}

/// Checks that a job is refused for this field and reason.
fn refused(job: FileJobSpec, field: &str, reason: &str) {
    let found = spec([job]).check().err().map(|refused| refused.to_string());
    assert_eq!(found, Some(format!("stages[0].jobs[0].{field}: {reason}")));
}

fn changed(change: impl Fn(&mut FileJobSpec)) -> FileJobSpec {
    let mut job = job(2, FileWorkSpec::Blocks(sound_blocks()));
    change(&mut job);
    job
}

fn sound_blocks() -> BlocksSpec {
    BlocksSpec {
        files: files(1, 1 << 20),
        read_percent: 50,
        read_blocks: BlockSizesSpec::FixedBytes(4_096),
        write_blocks: BlockSizesSpec::FixedBytes(4_096),
        order: BlockOrderSpec::Uniform,
        repeats: false,
        seed: None,
        direct: false,
        sync: SyncMode::Off,
        fsync_every: None,
        fdatasync_every: None,
        end_fsync: false,
        invalidates: false,
    }
}

fn with_blocks(change: impl Fn(&mut BlocksSpec)) -> FileJobSpec {
    let mut blocks = sound_blocks();
    change(&mut blocks);
    job(2, FileWorkSpec::Blocks(blocks))
}

fn with_files(change: impl Fn(&mut JobFilesSpec)) -> FileJobSpec {
    with_blocks(|blocks| change(&mut blocks.files))
}

fn with_fill(change: impl Fn(&mut FillSpec)) -> FileJobSpec {
    let mut work = fill("job", 1, files(1, 1 << 20));
    let FileWorkSpec::Fill(spec) = &mut work else { panic!("it fills") };
    change(spec);
    job(1, work)
}

fn with_tree(act: NameActSpec, shift: u32, change: impl Fn(&mut TreeSpec)) -> FileJobSpec {
    let mut tree = tree(1, 2, 3);
    tree.per_clone = true;
    change(&mut tree);
    job(2, names(&tree, act, shift))
}

#[test]
fn what_is_sound_is_taken() {
    let jobs = [
        changed(|_| {}),
        with_fill(|_| {}),
        with_tree(NameActSpec::MakeTree, 0, |_| {}),
        with_tree(NameActSpec::Create { bytes: 0, fsync: false }, 0, |_| {}),
        with_tree(NameActSpec::Stat, 1, |_| {}),
        with_blocks(|blocks| blocks.order = BlockOrderSpec::Zipf { theta: 1.2 }),
        with_files(|files| {
            (files.existing, files.destroys) = (true, true);
            (files.directories, files.names) = (Vec::new(), vec!["/dev/sdx".to_owned()]);
        }),
    ];
    assert_eq!(spec(jobs).check(), Ok(()));
}

#[test]
fn stages_are_counted() {
    let refused = |spec: FilesSpec| spec.check().err().map(|refused| refused.to_string());
    let is = |found: Option<String>, text: &str| assert_eq!(found.as_deref(), Some(text));
    is(refused(spec([])), "stages: is empty; a workload needs a stage");
    let writes = || with_blocks(|blocks| blocks.read_percent = 0);
    let many = spec((0..257).map(|_| writes()));
    is(refused(many), "stages: more than 256 stages in all, repetitions included");
    assert_eq!(refused(spec((0..256).map(|_| writes()))), None);
    let mut none = spec([changed(|_| {}), changed(|_| {})]);
    none.stages[1].jobs.clear();
    is(refused(none), "stages[1].jobs: there is none");
    let mut many = spec([changed(|_| {})]);
    many.stages[0].jobs = vec![with_fill(|_| {}); 257];
    is(refused(many.clone()), "stages[0].jobs: 257 jobs are out of range: 1 to 256 in one stage");
    many.stages[0].jobs = vec![FileJobSpec { clones: 1_000_000, ..with_fill(|_| {}) }; 17];
    let text = "stages[0].jobs[16].clones: 17000000 in one stage are out of range: 1 to 16777214";
    is(refused(many), text);
    let mut other = spec([changed(|_| {})]);
    other.schema = "plimsoll.files/2".to_owned();
    is(refused(other), "schema: `plimsoll.files/2` is not plimsoll.files/1");
}

#[test]
fn jobs_that_make_no_sense_are_refused() {
    let one = "must be at least 1";
    let clones = "0 is out of range: 1 to 1000000";
    refused(changed(|job| job.clones = 0), "clones", clones);
    let clones = "1000001 is out of range: 1 to 1000000";
    refused(changed(|job| job.clones = 1_000_001), "clones", clones);
    refused(changed(|job| job.depth = 0), "depth", "0 is out of range: 1 to 65536");
    refused(changed(|job| job.duration_ns = Some(0)), "duration_ns", "must be longer than 0s");
    refused(changed(|job| job.ops_max = Some(0)), "ops_max", one);
    refused(changed(|job| job.bytes_max = Some(0)), "bytes_max", one);
    let think = |every_ops, spin_ns| {
        changed(|job| job.think = Some(ThinkSpec { pause_ns: 5, spin_ns, every_ops }))
    };
    refused(think(0, 0), "think.every_ops", one);
    refused(think(1, 6), "think.spin_ns", "must be at most the pause");
    let delay = SpanSpec { min: 2, max: 1 };
    let reason = "the shortest is above the longest";
    refused(changed(|job| job.start_delay_ns = delay), "start_delay_ns", reason);
}

#[test]
fn pacing_that_makes_no_sense_is_refused() {
    let capped = |read, write| {
        changed(|job| job.pacing = FilePacingSpec::Capped { read, write, poisson: false })
    };
    let above = "the rate must be above 0";
    refused(capped(Some(CapSpec::OpsPerSec(0.0)), None), "pacing.capped.read", above);
    refused(capped(None, Some(CapSpec::BytesPerSec(f64::NAN))), "pacing.capped.write", above);
    refused(capped(None, None), "pacing.capped", "is empty; cap read, write or both");
    let open = |rate: &str, arrivals: &str, max_in_flight| {
        let pacing = FilePacingSpec::Open {
            rate: rate.to_owned(),
            arrivals: arrivals.to_owned(),
            max_in_flight,
        };
        spec([changed(|job| job.pacing = pacing.clone())]).check().err().map(|e| e.field)
    };
    assert_eq!(open("1000/s", "poisson", 64), None);
    for (rate, arrivals, max_in_flight, field) in [
        ("fast", "poisson", 64, "rate"),
        ("1000/s", "now and then", 64, "arrivals"),
        ("1000/s", "constant", 0, "max_in_flight"),
    ] {
        let field = format!("stages[0].jobs[0].pacing.open.{field}");
        assert_eq!(open(rate, arrivals, max_in_flight), Some(field.into()));
    }
}

#[test]
fn files_that_make_no_sense_are_refused() {
    let field = |name: &str| format!("work.blocks.files.{name}");
    let none = "at least one is needed, none empty";
    refused(with_files(|files| files.directories.clear()), &field("directories"), none);
    refused(with_files(|files| files.directories[0].clear()), &field("directories"), none);
    refused(with_files(|files| files.count = 0), &field("count"), "must be at least 1");
    let many = "20000000 files in all are out of range: 1 to 16777214";
    refused(with_files(|files| files.count = 10_000_000), &field("count"), many);
    for (name, reason) in [
        ("a/../../b", "`a/../../b` leads out of the run's directory"),
        ("/etc/x", "`/etc/x` is absolute; only files that exist are named so"),
        ("./", "`./` names no file"),
    ] {
        refused(with_files(|files| files.names = vec![name.to_owned()]), &field("names"), reason);
        refused(
            with_files(|files| files.name_format = name.to_owned()),
            &field("name_format"),
            reason,
        );
    }
    let size = |min, max| with_files(|files| files.size_bytes = SpanSpec { min, max });
    let reason = "a file of 100B holds no block of 4KiB";
    refused(size(100, 1 << 20), "work.blocks.read_blocks", reason);
    refused(size(9, 8), &field("size_bytes"), "the smallest is above the largest");
    let large = "file size 1PiB is out of range: 1B to 512TiB";
    refused(size(1, 1 << 50), &field("size_bytes"), large);
    let existing = |named: bool| {
        with_files(|files| {
            (files.existing, files.destroys) = (true, !named);
            files.names = vec!["/dev/sdx".to_owned(); usize::from(named)];
        })
    };
    refused(existing(false), &field("names"), "0 paths are out of range: 1 to 1000000");
    let reason = "writing to files that exist destroys what is in them and has to be allowed";
    refused(existing(true), &field("destroys"), reason);
    // A job's name may lead out, too.
    let mut named = changed(|job| job.name = "..".to_owned());
    let FileWorkSpec::Blocks(blocks) = &mut named.work else { panic!("it works on blocks") };
    blocks.files.name_format = "$jobname/x".to_owned();
    blocks.read_percent = 0;
    refused(named, "work.blocks.files", "`../x` leads out of the run's directory");
}

#[test]
fn blocks_that_make_no_sense_are_refused() {
    let sizes = |sizes: BlockSizesSpec| with_blocks(|blocks| blocks.read_blocks = sizes.clone());
    let fixed = |size| sizes(BlockSizesSpec::FixedBytes(size));
    let field = "work.blocks.read_blocks";
    let none = "block size 0B is out of range: 1B to 1GiB";
    refused(fixed(0), field, none);
    let large = "block size 1073741825B is out of range: 1B to 1GiB";
    refused(fixed((1 << 30) + 1), field, large);
    let range = |min, max| sizes(BlockSizesSpec::RangeBytes(SpanSpec { min, max }));
    refused(range(8, 4), field, "the smallest is above the largest");
    refused(range(0, 4), field, none);
    let share = BlockShareSpec { size_bytes: 4_096, weight: 0 };
    let none = "0 shares are out of range: 1 to 10000";
    refused(sizes(BlockSizesSpec::Shares(vec![share])), field, none);
    let direct = with_blocks(|blocks| {
        blocks.direct = true;
        blocks.write_blocks = BlockSizesSpec::FixedBytes(1_000);
    });
    let reason = "block size 1000B is not a multiple of 512 bytes, which `direct` needs";
    refused(direct, "work.blocks.write_blocks", reason);
    let percent = with_blocks(|blocks| blocks.read_percent = 101);
    refused(percent, "work.blocks.read_percent", "must be at most 100");
    let every = with_blocks(|blocks| blocks.fsync_every = Some(0));
    refused(every, "work.blocks.fsync_every", "must be at least 1");
    let repeats = with_blocks(|blocks| blocks.repeats = true);
    let reason = "is missing; without a duration, ops or bytes of the job or its stage the work \
                  never ends";
    refused(repeats, "work.blocks.repeats", reason);
    // What is not used is not looked at.
    let mut reads = sound_blocks();
    (reads.read_percent, reads.write_blocks) = (100, BlockSizesSpec::FixedBytes(0));
    assert_eq!(spec([job(1, FileWorkSpec::Blocks(reads))]).check(), Ok(()));
}

#[test]
fn orders_that_are_no_law_are_refused() {
    let order = |order| with_blocks(|blocks| blocks.order = order);
    let field = "work.blocks.order";
    for theta in [0.0, 1.0, -1.0] {
        let reason = format!("{theta} is out of range: above 0 and not 1");
        refused(order(BlockOrderSpec::Zipf { theta }), field, &reason);
    }
    for h in [0.0, 1.0] {
        refused(
            order(BlockOrderSpec::Pareto { h }),
            field,
            &format!("{h} is out of range: between 0 and 1"),
        );
    }
    for deviation_percent in [0.0, 101.0] {
        let reason = format!("{deviation_percent} is out of range: above 0% to 100%");
        refused(order(BlockOrderSpec::Normal { deviation_percent }), field, &reason);
    }
}

#[test]
fn fills_that_make_no_sense_are_refused() {
    let none = "block size 0B is out of range: 1B to 1GiB";
    refused(with_fill(|fill| fill.block_bytes = 0), "work.fill.block_bytes", none);
    let clones = with_fill(|fill| fill.files[0].clones = 0);
    refused(clones, "work.fill.files[0].clones", "must be at least 1");
    let direct = with_fill(|fill| {
        fill.direct = true;
        fill.files[0].files.size_bytes = SpanSpec::of(1_000);
    });
    let reason = "`/mnt/a/plimsoll/check/job.0.0` of 1000 bytes is not a multiple of 512, which \
                  `direct` needs";
    refused(direct, "work.fill.direct", reason);
    // Files of another directory are filled by a separate job, which version 1 does not have.
    let elsewhere = with_fill(|fill| {
        fill.direct = true;
        let mut other = FillFilesSpec { job: "other".to_owned(), ..fill.files[0].clone() };
        other.files.directories = vec!["/mnt/b".to_owned()];
        other.files.size_bytes = SpanSpec::of(1_000);
        fill.files.push(other);
    });
    let reason = "`/mnt/b/plimsoll/check/other.0.0` of 1000 bytes is not a multiple of 512, which \
                  `direct` needs";
    refused(elsewhere, "work.fill.direct", reason);
}

#[test]
fn trees_that_make_no_sense_are_refused() {
    let stat = |change: fn(&mut TreeSpec)| with_tree(NameActSpec::Stat, 0, change);
    let field = |name: &str| format!("work.names.tree.{name}");
    let one = "must be at least 1";
    refused(stat(|tree| tree.entries_per_directory = 0), &field("entries_per_directory"), one);
    refused(stat(|tree| tree.branching = 0), &field("branching"), one);
    let reason = "64 levels of 2 directories each are too many";
    refused(stat(|tree| tree.depth = 64), &field("depth"), reason);
    let reason = "201 levels of 1 directories each are too many";
    refused(stat(|tree| (tree.depth, tree.branching) = (201, 1)), &field("depth"), reason);
    let reason = "more than 1099511627776 entries for each worker are too many";
    let many = stat(|tree| tree.entries_per_directory = u64::MAX);
    refused(many, &field("entries_per_directory"), reason);
    let reason = "only separate trees for each clone can lie in several directories";
    let several = stat(|tree| {
        tree.per_clone = false;
        tree.directories.push("/mnt/b".to_owned());
    });
    refused(several, &field("directories"), reason);
    let reason = "`..` leads out of the run's directory";
    refused(stat(|tree| tree.name = "..".to_owned()), &field("name"), reason);
    let shared = stat(|tree| (tree.shared_names, tree.of_directories) = (true, true));
    refused(shared, &field("shared_names"), "only files can be shared");
    let reason = "a shift of 2 needs more than 2 workers";
    refused(with_tree(NameActSpec::Stat, 2, |_| {}), "work.names.shift", reason);
    let open = with_tree(NameActSpec::Open { bytes: 0 }, 0, |tree| tree.of_directories = true);
    refused(open, "work.names.act", "directories hold no bytes and are not opened");
    let rename = with_tree(NameActSpec::Rename, 0, |tree| tree.shared_names = true);
    refused(rename, "work.names.act", "workers cannot rename the same entries");
}

#[test]
fn entries_that_come_in_order_are_not_shuffled() {
    let reason = "the directories of a tree come in order";
    for (act, reason) in
        [(NameActSpec::MakeTree, reason), (NameActSpec::Rename, "entries are renamed in order")]
    {
        let mut job = with_tree(act, 0, |_| {});
        let FileWorkSpec::Names(names) = &mut job.work else { panic!("it works on names") };
        names.shuffled = true;
        refused(job, "work.names.act", reason);
    }
}

#[test]
fn a_field_of_a_later_stage_is_found_behind_what_is_put_first() {
    let late = with_blocks(|blocks| blocks.order = BlockOrderSpec::Pareto { h: 2.0 });
    let found = spec([changed(|_| {}), late]).check().unwrap_err().to_string();
    let expected = "stages[1].jobs[0].work.blocks.order: 2 is out of range: between 0 and 1";
    assert_eq!(found, expected);
    let open = FilePacingSpec::Open {
        rate: "fast".to_owned(),
        arrivals: "poisson".to_owned(),
        max_in_flight: 1,
    };
    let found = spec([changed(|_| {}), changed(|job| job.pacing = open.clone())]).check();
    assert_eq!(found.unwrap_err().field, "stages[1].jobs[0].pacing.open.rate");
}

#[test]
fn the_schema_is_the_committed_one() {
    let fresh = format!("{:#}\n", serde_json::Value::from(schemars::schema_for!(FilesSpec)));
    plimsoll_testkit::check_format("files.schema.json", &fresh);
}

#[test]
fn a_spec_survives_yaml() {
    let mut written = spec([
        job(3, FileWorkSpec::Blocks(sound_blocks())),
        job(1, fill("job", 3, files(2, 4_096))),
        job(2, names(&tree(1, 2, 3), NameActSpec::Create { bytes: 5, fsync: true }, 1)),
    ]);
    written.stages[0].drop_caches = true;
    let text = yaml_of(&written);
    assert_eq!(read_as("v1", &text), Ok(written));
    let strange = text.replace("drop_caches", "drop_cashes");
    assert!(read_as::<FilesSpec>("v1", &strange).unwrap_err().to_string().contains("drop_cashes"));
}
