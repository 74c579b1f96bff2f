//! What is refused, and in which words.

use super::super::examples::{blocks, files, fill, job, names, spec, tree};
use super::super::spec::{BlockShareSpec, TreeSpec};
use super::*;

/// Checks that a job is refused for this field and reason.
fn refused(job: FileJobSpec, field: &str, reason: &str) {
    let found = spec([job]).validate("r").err().map(|refused| refused.to_string());
    assert_eq!(found, Some(format!("stages[0].jobs[0].{field}: {reason}")));
}

fn changed(change: impl Fn(&mut FileJobSpec)) -> FileJobSpec {
    let mut job = job(2, FileWorkSpec::Blocks(sound_blocks()));
    change(&mut job);
    job
}

fn sound_blocks() -> BlocksSpec {
    blocks(files(1, 1 << 20), BlockOrderSpec::Uniform, 50)
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
        with_tree(NameActSpec::Stat, 1, |_| {}),
        with_blocks(|blocks| blocks.order = BlockOrderSpec::Zipf { theta: 1.2 }),
        with_files(|files| {
            (files.existing, files.destroys) = (true, true);
            (files.directories, files.names) = (Vec::new(), vec!["/dev/sdx".to_owned()]);
        }),
    ];
    assert_eq!(spec(jobs).validate("r").err(), None);
}

#[test]
fn stages_are_counted() {
    let refused = |spec: FilesSpec| spec.validate("r").err().map(|refused| refused.to_string());
    let is = |found: Option<String>, text: &str| assert_eq!(found.as_deref(), Some(text));
    is(refused(spec([])), "stages: there is none");
    let many = spec((0..257).map(|_| changed(|_| {})));
    is(refused(many), "stages: 257 are too many; at most 256");
    assert_eq!(refused(spec((0..256).map(|_| changed(|_| {})))), None);
    let mut none = spec([changed(|_| {}), changed(|_| {})]);
    none.stages[1].jobs.clear();
    is(refused(none), "stages[1].jobs: there is none");
    let mut many = spec([changed(|_| {})]);
    many.stages[0].jobs = vec![with_fill(|_| {}); 257];
    is(refused(many.clone()), "stages[0].jobs: 257 are too many; at most 256 in one stage");
    many.stages[0].jobs = vec![FileJobSpec { clones: 1_000_000, ..with_fill(|_| {}) }; 17];
    let text = "stages[0].jobs: 17000000 clones in all are too many; at most 16777214";
    is(refused(many), text);
    let mut other = spec([changed(|_| {})]);
    other.schema = "plimsoll.files/2".to_owned();
    is(refused(other), "schema: `plimsoll.files/2` is not plimsoll.files/1");
}

#[test]
fn jobs_that_make_no_sense_are_refused() {
    let one = "must be at least 1";
    refused(changed(|job| job.clones = 0), "clones", one);
    refused(changed(|job| job.clones = 1_000_001), "clones", "must be at most 1000000");
    refused(changed(|job| job.depth = 0), "depth", one);
    refused(changed(|job| job.duration_ns = Some(0)), "duration_ns", one);
    refused(changed(|job| job.ops_max = Some(0)), "ops_max", one);
    refused(changed(|job| job.bytes_max = Some(0)), "bytes_max", one);
    let think = |every_ops, spin_ns| {
        changed(|job| job.think = Some(ThinkSpec { pause_ns: 5, spin_ns, every_ops }))
    };
    refused(think(0, 0), "think.every_ops", one);
    refused(think(1, 6), "think.spin_ns", "must be at most `pause_ns`");
    let delay = SpanSpec { min: 2, max: 1 };
    let reason = "the least, 2, is above the most, 1";
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
    refused(capped(None, None), "pacing.capped", "there is no cap");
    let open = |rate: &str, arrivals: &str, max_in_flight| {
        let pacing = FilePacingSpec::Open {
            rate: rate.to_owned(),
            arrivals: arrivals.to_owned(),
            max_in_flight,
        };
        spec([changed(|job| job.pacing = pacing.clone())]).validate("r").err().map(|e| e.field)
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
    let many = "20000000 files in all are too many; at most 16777214";
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
    let reason = "a file of 100 bytes holds no block of 4096";
    refused(size(100, 1 << 20), &field("size_bytes"), reason);
    refused(size(9, 8), &field("size_bytes"), "the least, 9, is above the most, 8");
    refused(size(1, 1 << 50), &field("size_bytes"), "must be at most 562949953421312");
    let existing = |named: bool| {
        with_files(|files| {
            files.existing = true;
            files.names = vec!["/dev/sdx".to_owned(); usize::from(named)];
        })
    };
    refused(existing(false), &field("names"), "files that exist have to be named");
    let reason = "writing to files that exist destroys what is in them and has to be allowed";
    refused(existing(true), &field("destroys"), reason);
    // A job's name may lead out, too.
    let mut named = changed(|job| job.name = "..".to_owned());
    let FileWorkSpec::Blocks(blocks) = &mut named.work else { panic!("it works on blocks") };
    blocks.files.name_format = "$jobname/x".to_owned();
    refused(named, "work.blocks.files", "`../x` leads out of the run's directory");
}

#[test]
fn blocks_that_make_no_sense_are_refused() {
    let sizes = |sizes: BlockSizesSpec| with_blocks(|blocks| blocks.read_blocks = sizes.clone());
    let fixed = |size| sizes(BlockSizesSpec::FixedBytes(size));
    let field = "work.blocks.read_blocks";
    refused(fixed(0), field, "a block needs at least one byte");
    let large = "a block of 1073741825 bytes is too large; at most 1 GiB";
    refused(fixed((1 << 30) + 1), field, large);
    let range = |min, max| sizes(BlockSizesSpec::RangeBytes(SpanSpec { min, max }));
    refused(range(8, 4), field, "the least, 8, is above the most, 4");
    refused(range(0, 4), field, "a block needs at least one byte");
    let share = BlockShareSpec { size_bytes: 4_096, weight: 0 };
    let none = "there is no share with a weight above 0";
    refused(sizes(BlockSizesSpec::Shares(vec![share])), field, none);
    let direct = with_blocks(|blocks| {
        blocks.direct = true;
        blocks.write_blocks = BlockSizesSpec::FixedBytes(1_000);
    });
    let reason = "a block of 1000 bytes is no multiple of 512, which `direct` needs";
    refused(direct, "work.blocks.write_blocks", reason);
    let percent = with_blocks(|blocks| blocks.read_percent = 101);
    refused(percent, "work.blocks.read_percent", "must be at most 100");
    let every = with_blocks(|blocks| blocks.fsync_every = Some(0));
    refused(every, "work.blocks.fsync_every", "must be at least 1");
    let repeats = with_blocks(|blocks| blocks.repeats = true);
    let reason = "without `duration_ns`, `ops_max` or `bytes_max` it never ends";
    refused(repeats, "work.blocks.repeats", reason);
    // What is not used is not looked at.
    let mut reads = sound_blocks();
    (reads.read_percent, reads.write_blocks) = (100, BlockSizesSpec::FixedBytes(0));
    assert_eq!(spec([job(1, FileWorkSpec::Blocks(reads))]).validate("r").err(), None);
}

#[test]
fn orders_that_are_no_law_are_refused() {
    let order = |order| with_blocks(|blocks| blocks.order = order);
    let field = "work.blocks.order";
    for theta in [0.0, 1.0, -1.0] {
        let reason = format!("theta must be above 0 and not 1, not {theta}");
        refused(order(BlockOrderSpec::Zipf { theta }), field, &reason);
    }
    for h in [0.0, 1.0] {
        refused(
            order(BlockOrderSpec::Pareto { h }),
            field,
            &format!("h must be between 0 and 1, not {h}"),
        );
    }
    for deviation_percent in [0.0, 101.0] {
        let reason = format!(
            "the deviation must be above 0 and at most 100 percent, not {deviation_percent}"
        );
        refused(order(BlockOrderSpec::Normal { deviation_percent }), field, &reason);
    }
}

#[test]
fn fills_that_make_no_sense_are_refused() {
    let none = "a block needs at least one byte";
    refused(with_fill(|fill| fill.block_bytes = 0), "work.fill.block_bytes", none);
    let clones = with_fill(|fill| fill.files[0].clones = 0);
    refused(clones, "work.fill.files[0].clones", "must be at least 1");
    let direct = with_fill(|fill| {
        fill.direct = true;
        fill.files[0].files.size_bytes = SpanSpec::of(1_000);
    });
    let reason = "`/mnt/a/plimsoll/r/job.0.0` of 1000 bytes is no multiple of 512, which `direct` \
                  needs";
    refused(direct, "work.fill.direct", reason);
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
    let reason = "more than 1099511627776 entries for each clone are too many";
    let many = stat(|tree| tree.entries_per_directory = u64::MAX);
    refused(many, &field("entries_per_directory"), reason);
    let reason = "only trees of each clone's own can lie in several directories";
    let several = stat(|tree| {
        tree.per_clone = false;
        tree.directories.push("/mnt/b".to_owned());
    });
    refused(several, &field("directories"), reason);
    let reason = "`..` leads out of the run's directory";
    refused(stat(|tree| tree.name = "..".to_owned()), &field("name"), reason);
    let shared = stat(|tree| (tree.shared_names, tree.of_directories) = (true, true));
    refused(shared, &field("shared_names"), "only files can be shared");
    let reason = "a shift of 2 needs more than 2 clones";
    refused(with_tree(NameActSpec::Stat, 2, |_| {}), "work.names.shift", reason);
    let open = with_tree(NameActSpec::Open { bytes: 0 }, 0, |tree| tree.of_directories = true);
    refused(open, "work.names.act", "directories hold no bytes and are not opened");
    let rename = with_tree(NameActSpec::Rename, 0, |tree| tree.shared_names = true);
    refused(rename, "work.names.act", "clones cannot rename the same entries");
}
