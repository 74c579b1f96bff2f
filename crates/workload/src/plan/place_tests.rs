//! Plans laid out for a run, and that those of version 1 come to the operations that they always
//! came to.

use plimsoll_model::{Moment, OpKind, WorkerId};

use super::*;
use crate::objects::{PlannedOp, Subject};
use crate::plan::WorkloadFile;
use crate::v1::objects::{ActivitySpec, WorkloadSpec};
use crate::{hash_text, mix64};

/// For each sample of version 1 a hash of its operations, made by version 1's own stream while that
/// was still there: a seed gives the same operations as ever.
const MADE_BY_VERSION_1: [(&str, u64); 49] = [
    ("[(\"DELETE\", 1)]", 0x49b8_e325_1730_183f),
    ("[(\"GET\", 1)]", 0x2f00_10db_86ed_8f76),
    ("[(\"GET\", 3), (\"PUT\", 0)]", 0x2f00_10db_86ed_8f76),
    ("[(\"GET\", 45), (\"STAT\", 30), (\"PUT\", 15), (\"DELETE\", 10)]", 0x43ed_0344_89a8_f193),
    ("[(\"LIST\", 1)]", 0x50d8_ed67_a67d_61e8),
    ("[(\"PUT\", 1)]", 0xb22f_427a_70d6_86a9),
    ("[(\"STAT\", 5)]", 0xdacc_4cd8_0b34_d3f3),
    ("append", 0xf6cd_d359_e5a9_2d97),
    ("batch", 0x03c7_2dd6_48ff_77ef),
    // It says nothing there, so these are the operations of the mix alone.
    ("batch beside others", 0x43ed_0344_89a8_f193),
    ("capped", 0x2f00_10db_86ed_8f76),
    ("existing", 0x40b7_119c_7792_74bf),
    ("fanout", 0x3bb8_1919_5e95_b4d4),
    ("listed sizes", 0xfc78_f152_1120_fb88),
    ("lognormal", 0x3821_5c74_7948_0647),
    ("multipart", 0xe43e_ed8d_0376_20bf),
    ("multipart-put", 0x729c_4fc5_d535_6f01),
    ("open", 0x2f00_10db_86ed_8f76),
    ("overwrite", 0xc350_2a08_d255_5202),
    ("page", 0x50d8_ed67_a67d_61e8),
    ("post", 0x4010_517c_71dc_c437),
    ("random range", 0x98a8_0817_a51b_1d3e),
    ("range", 0x9874_0053_ff9a_2061),
    ("range of more", 0x38dc_5257_ce45_3d50),
    ("retention", 0x7655_eae3_a87f_aadd),
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
    ("sequential", 0x4fc5_3cb2_eab8_64d8),
    ("shaped", 0x9a52_fd14_0058_dfc5),
    ("sizes", 0x2bf5_e397_5d36_c533),
    ("snowball", 0x426f_5976_3455_9561),
    ("until", 0x2f00_10db_86ed_8f76),
    ("unverified text", 0x2f00_10db_86ed_8f76),
    ("versioned", 0xc2ef_07b7_0196_6042),
    ("versions", 0x66c0_3826_8ae3_55e9),
    ("zip", 0x9ee8_6901_e68a_7a3b),
    ("zipf", 0x4263_bca3_d7d0_c500),
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

/// Compares the operations of a workload of version 1 with those that it always came to; one in ten
/// fails.
#[track_caller]
pub(crate) fn same_operations(name: &str, old: &WorkloadSpec, plan: Plan) {
    let object =
        |number: u64| ExistingObject { key: format!("k{number}"), size: Some(10 + number) };
    let existing = old.objects.existing.as_ref();
    let found = existing.map(|_| (SetIndex(0), (0..200).map(object).collect()));
    let (buckets, found) = (vec![String::new()], found.into_iter().collect());
    let placing = Placing { run: "r", seed: Seed(old.seed), buckets: &buckets, found: &found };
    let placed = Arc::new(plan).place(&placing).unwrap_or_else(|error| panic!("{name}: {error}"));
    let uploads = existing.is_none() && old.objects.count > 0;
    let kinds = &[StageKind::Prepare, StageKind::Measure][usize::from(!uploads)..];
    assert_eq!(placed.stages.len(), kinds.len(), "{name}");
    let mut members = Arc::clone(&placed.members);
    let mut all = 0;
    for (stage, kind) in placed.stages.iter().zip(kinds) {
        let job = &stage.objects[0];
        let at_once = match old.measure.activity {
            ActivitySpec::MultipartPut { part_concurrency, .. } => part_concurrency,
            _ => 1,
        };
        assert_eq!(job.work.loops_count().get(), old.concurrency * at_once, "{name}");
        let work = Arc::new(job.work.with_members(Arc::clone(&members)));
        let mut changes = Vec::new();
        for worker in (0..old.concurrency).map(WorkerId) {
            let mut source = work.source(worker);
            // What prepares is done to its end, or what is measured would begin with less.
            let ops_max = if *kind == StageKind::Prepare { u64::MAX } else { 300 };
            for number in 0..ops_max {
                let op = source.next_op();
                let words = op.map_or("nothing".to_owned(), |op| words_of(&work, &op));
                all = mix64(all ^ hash_text(&format!("{} {} {words}", kind.name(), worker.0)));
                let Some(op) = op else { break };
                let ok = *kind == StageKind::Prepare || !mix64(number).is_multiple_of(10);
                source.completed(&op, ok, Moment::EPOCH);
            }
            changes.extend(source.changes());
        }
        members = placed.after(&members, changes).unwrap();
    }
    let known = MADE_BY_VERSION_1.iter().find(|(sample, _)| *sample == name);
    assert_eq!(known, Some(&(name, all)), "{name}");
    assert!(placed.stages.iter().all(|stage| stage.objects[0].work.kinds() != [OpKind::List; 2]));
}
