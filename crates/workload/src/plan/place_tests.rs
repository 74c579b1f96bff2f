//! Plans laid out for a run, and that a seed gives the operations that it always gave.

use plimsoll_model::{Moment, OpKind, WorkerId};

use super::*;
use crate::files::layout_tests;
use crate::objects::{PlannedOp, Subject};
use crate::plan::WorkloadFile;
use crate::testing::on_objects;
use crate::{hash_text, mix64};

const O: &str = "count: 100, size: 1000";

/// Work of four workers on a set, each with a hash of its operations that was made when the first
/// language of workloads drew them: a seed gives the same operations as ever.
const SAMPLES: [(&str, u64, &str, &str); 33] = [
    ("append", 0xf6cd_d359_e5a9_2d97, "size: 1000", "work: {append: {to: o, parts: 9}}"),
    ("batch", 0x03c7_2dd6_48ff_77ef, O, "work: {objects: [{delete: o, batch: 5}]}"),
    ("capped", 0x2f00_10db_86ed_8f76, O, "pacing: {capped: 12.5/s}, work: {objects: [{get: o}]}"),
    ("delete", 0x49b8_e325_1730_183f, O, "work: {objects: [{delete: o}]}"),
    (
        "existing",
        0x40b7_119c_7792_74bf,
        "existing: {limit: 9, recursive: false}, touch: true",
        "work: {objects: [{delete: o}]}",
    ),
    ("fanout", 0x3bb8_1919_5e95_b4d4, "size: 1000", "work: {fanout: {put: o, copies: 9}}"),
    ("get", 0x2f00_10db_86ed_8f76, O, "work: {objects: [{get: o}]}"),
    ("get of weight 3", 0x2f00_10db_86ed_8f76, O, "work: {objects: [{get: o, weight: 3}]}"),
    ("list", 0x50d8_ed67_a67d_61e8, O, "work: {objects: [{list: o}]}"),
    (
        "listed sizes",
        0xfc78_f152_1120_fb88,
        "count: 100, size: {list: [5B, 5B, 9B]}",
        "work: {objects: [{put: o}]}",
    ),
    (
        "lognormal",
        0x3821_5c74_7948_0647,
        "count: 100, size: {lognormal: {median: 1000, sigma: 1.5}}",
        "work: {objects: [{put: o}]}",
    ),
    (
        "mix",
        0x43ed_0344_89a8_f193,
        O,
        "work: {objects: [{get: o, weight: 45}, {stat: o, weight: 30}, {put: o, weight: 15}, \
         {delete: o, weight: 10}]}",
    ),
    (
        "multipart",
        0xe43e_ed8d_0376_20bf,
        "count: 1, part: 1000, size: 100000",
        "work: {parts: {get: o}}",
    ),
    (
        "multipart-put",
        0x729c_4fc5_d535_6f01,
        "",
        "work: {parts: {put: o, parts: 9, part: 1000, at_once: 3}}",
    ),
    (
        "open",
        0x2f00_10db_86ed_8f76,
        O,
        "pacing: {open: {rate: '100/s..900/s over 2m, 5/s', arrivals: poisson, max_in_flight: \
         77}}, work: {objects: [{get: o}]}",
    ),
    ("overwrite", 0xc350_2a08_d255_5202, O, "work: {objects: [{get: o}, {put: o, as: overwrite}]}"),
    ("page", 0x50d8_ed67_a67d_61e8, O, "work: {objects: [{list: o, page: 50}]}"),
    ("post", 0x4010_517c_71dc_c437, O, "work: {objects: [{post: o}]}"),
    ("put", 0xb22f_427a_70d6_86a9, O, "work: {objects: [{put: o}]}"),
    ("random range", 0x98a8_0817_a51b_1d3e, O, "work: {objects: [{get: o, range: random}]}"),
    ("range", 0x9874_0053_ff9a_2061, O, "work: {objects: [{get: o, range: 9}]}"),
    ("range of all", 0x38dc_5257_ce45_3d50, O, "work: {objects: [{get: o, range: 1000}]}"),
    ("retention", 0x7655_eae3_a87f_aadd, O, "work: {retention: {of: o, hold: 5ns}}"),
    ("sequential", 0x4fc5_3cb2_eab8_64d8, O, "work: {objects: [{get: o, pick: sequential}]}"),
    (
        "shaped",
        0x9a52_fd14_0058_dfc5,
        "count: 100, size: 1000, keys: {prefix: a/b, per_worker: false}, content: {shaped: \
         {compress_ratio: 2.5, dedupe_ratio: 3.0}}",
        "work: {objects: [{put: o}]}",
    ),
    (
        "sizes",
        0x2bf5_e397_5d36_c533,
        "count: 100, size: {histogram: [{1024: 3}, {4096: 1}]}",
        "work: {objects: [{put: o}]}",
    ),
    (
        "snowball",
        0x426f_5976_3455_9561,
        "size: 1000",
        "work: {archive: {put_tar: o, members: 9, compress: true}}",
    ),
    ("stat", 0xdacc_4cd8_0b34_d3f3, O, "work: {objects: [{stat: o, weight: 5}]}"),
    (
        "unverified text",
        0x2f00_10db_86ed_8f76,
        "count: 100, size: 1000, content: text",
        "verify: false, work: {objects: [{get: o}]}",
    ),
    (
        "versioned",
        0xc2ef_07b7_0196_6042,
        O,
        "work: {objects: [{get: o, weight: 2, version: uniform}, {put: o, as: version}, {delete: \
         o, version: uniform}]}",
    ),
    (
        "versions",
        0x66c0_3826_8ae3_55e9,
        "count: 100, size: 1000, versions: 5",
        "work: {objects: [{get: o, version: uniform}]}",
    ),
    (
        "zip",
        0x9ee8_6901_e68a_7a3b,
        "count: 100, size: 1000, archive: zip",
        "work: {archive: {get_from_zip: o}}",
    ),
    ("zipf", 0x4263_bca3_d7d0_c500, O, "work: {objects: [{get: o, pick: {zipf: 1.2}}]}"),
];

/// The same of files that commands printed of themselves (`--explain`).
const FILES: [(&str, u64); 14] = [
    ("s3-append", 0xc9df_45df_7779_5c7f),
    ("s3-delete", 0x67e1_16c9_ac9a_bf93),
    ("s3-fanout", 0x5663_3b05_2e68_1fc0),
    ("s3-get", 0x234f_d54a_08c5_fbea),
    ("s3-list", 0x644d_9862_aea1_1886),
    ("s3-mixed", 0x5c15_7afc_1603_a76a),
    ("s3-multipart", 0xe0b6_058f_01bb_41b3),
    ("s3-multipart-put", 0x4179_c8b6_ad23_f85f),
    ("s3-put", 0xd7ca_9db7_6e6e_6b46),
    ("s3-retention", 0x0bed_452b_7e8d_b7c5),
    ("s3-snowball", 0xeb79_8e7f_5a22_f200),
    ("s3-stat", 0x8704_7f80_c825_0947),
    ("s3-versioned", 0x85f3_6945_9279_6d63),
    ("s3-zip", 0x5855_8952_9167_7958),
];

/// Lays a workload out that is written as text.
#[track_caller]
pub(crate) fn placed(text: &str) -> Placed {
    let file = WorkloadFile::from_yaml("test", text).unwrap_or_else(|error| panic!("{error}"));
    let plan = Arc::new(file.check().unwrap_or_else(|error| panic!("{error}")));
    let placing = Placing {
        run: "r",
        seed: Seed(7),
        buckets: &["bench".to_owned()],
        found: &BTreeMap::new(),
    };
    plan.place(&placing).unwrap_or_else(|error| panic!("{error}"))
}

/// What an operation is about, in the words that its hash is of.
fn words_of(job: &ObjectsJob, op: &PlannedOp) -> String {
    let object = |object: &crate::objects::ObjectRef| {
        let key = key_of(&job.set(op.set).keys, object.id);
        format!("{key} {} v{}", object.size.unwrap(), object.version)
    };
    let what = match &op.subject {
        Subject::Object(of, range) => format!("{} {range:?}", object(of)),
        Subject::Batch { from, count } => {
            let id = job.removed(op.set, &job.removal_order(op.set), *from);
            format!("batch {from}+{count} {}", key_of(&job.set(op.set).keys, id))
        }
        Subject::Listing { .. } => "listing".to_owned(),
        Subject::Part { object, number, len, .. } => {
            format!("part {number} of {len} {}", key_of(&job.set(op.set).keys, *object))
        }
        Subject::Member(of) => format!("member {}", object(of)),
        Subject::Archive(id) => format!("archive {}", id.as_u64()),
        Subject::Copies(of) => format!("copies {}", object(of)),
    };
    format!("{} {what}", op.kind.name())
}

fn key_of(keys: &Keys, id: plimsoll_model::ObjectId) -> String {
    let mut key = String::new();
    keys.write(id, &mut key);
    key
}

/// Compares the operations of a workload on one set with those that it always came to; one in ten
/// fails.
#[track_caller]
fn same_operations(name: &str, known: u64, plan: Plan) {
    let object =
        |number: u64| ExistingObject { key: format!("k{number}"), size: Some(10 + number) };
    let found = (SetIndex(0), (0..200).map(object).collect());
    let (seed, buckets) = (plan.seed.expect("it is written"), [String::new()]);
    let placing = Placing { run: "r", seed, buckets: &buckets, found: &[found].into() };
    let placed = Arc::new(plan).place(&placing).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(placed.stages.len(), placed.plan.stages.len(), "{name}");
    let mut members = Arc::clone(&placed.members);
    let mut all = 0;
    for (stage, placed_stage) in placed.plan.stages.iter().zip(&placed.stages) {
        let (planned, job) = (&stage.jobs[0], &placed_stage.objects[0]);
        let at_once = match planned.work {
            Work::PutParts { at_once, .. } => at_once.get(),
            _ => 1,
        };
        assert_eq!(job.work.loops_count().get(), planned.workers.get() * at_once, "{name}");
        let work = Arc::new(job.work.with_members(Arc::clone(&members)));
        let mut changes = Vec::new();
        for worker in (0..planned.workers.get()).map(WorkerId) {
            let mut source = work.source(worker);
            // What prepares is done to its end, or what is measured would begin with less.
            let prepares = stage.kind == StageKind::Prepare;
            let ops_max = if prepares { u64::MAX } else { 300 };
            for number in 0..ops_max {
                let op = source.next_op();
                let words = op.map_or("nothing".to_owned(), |op| words_of(&work, &op));
                let kind = stage.kind.name();
                all = mix64(all ^ hash_text(&format!("{kind} {} {words}", worker.0)));
                let Some(op) = op else { break };
                let ok = prepares || !mix64(number).is_multiple_of(10);
                source.completed(&op, ok, Moment::EPOCH);
            }
            changes.extend(source.changes());
        }
        members = placed.after(&members, changes).unwrap();
    }
    assert_eq!(all, known, "{name}");
    assert!(placed.stages.iter().all(|stage| stage.objects[0].work.kinds() != [OpKind::List; 2]));
}

#[test]
fn operations_of_a_seed_are_those_they_always_were() {
    let same = |name, known, set, job, stage: &str| {
        let plan = on_objects(42, set, job, stage).check();
        same_operations(name, known, plan.unwrap_or_else(|error| panic!("{name}: {error}")));
    };
    for (name, known, set, job) in SAMPLES {
        same(name, known, set, job, "");
    }
    let until = "until: ['ci(p99)<=5%', 'ci(rate)<=1%', 'steady(7s, 3.5%)'], ";
    let (_, known, set, job) = *SAMPLES.iter().find(|(name, ..)| *name == "get").unwrap();
    same("until", known, set, job, until);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests read files of the repository")]
fn what_commands_printed_of_themselves_comes_to_the_same_operations() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/workload");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the files are there") {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("it is text");
        let file = WorkloadFile::from_yaml(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        let plan = file.check().unwrap_or_else(|error| panic!("{name}: {error}"));
        match FILES.iter().find(|(known, _)| *known == name) {
            Some((_, known)) => same_operations(&name, *known, plan),
            None => layout_tests::same_layout(&name, plan),
        }
        count += 1;
    }
    assert_eq!(count, 23);
}
