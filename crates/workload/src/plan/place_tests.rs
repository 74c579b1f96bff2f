//! Plans laid out for a run, and that those of version 1 come to the same operations.

use plimsoll_model::{Moment, OpKind, WorkerId};

use super::*;
use crate::objects::{PlannedOp, Subject};
use crate::plan::WorkloadFile;
use crate::{OpStream, Population, Target, Workload, WorkloadSpec, hash_text, mix64};

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

/// What an operation of either form is about, in words that both share.
fn words_of_v1(workload: &Workload, op: &crate::PlannedOp) -> String {
    let object = |object: &crate::ObjectRef| {
        let key = key_of(&workload.keys(), object.id);
        format!("{key} {} v{}", object.size, object.version)
    };
    let what = match &op.target {
        Target::Object(of, range) => format!("{} {range:?}", object(of)),
        Target::Batch { from, count } => {
            let id = workload.population_id(crate::delete_order(workload).at(*from));
            format!("batch {from}+{count} {}", key_of(&workload.keys(), id))
        }
        Target::Listing => "listing".to_owned(),
        Target::Part { object, number, bytes } => {
            format!("part {number} of {bytes} {}", key_of(&workload.keys(), *object))
        }
        Target::Member(of) => format!("member {}", object(of)),
        Target::Archive(id) => format!("archive {}", id.as_u64()),
        Target::Copies(of) => format!("copies {}", object(of)),
    };
    format!("{} {what}", op.kind.name())
}

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

/// Compares the operations of a workload of version 1 with those of what it was converted to; one
/// in ten fails.
#[track_caller]
pub(crate) fn same_operations(name: &str, old: &WorkloadSpec, plan: Plan) {
    let object = |number: u64| ExistingObject { key: format!("k{number}"), size: 10 + number };
    let existing: Option<Vec<_>> =
        old.objects.existing.as_ref().map(|_| (0..200).map(object).collect());
    let before = Arc::new(old.validate("r", existing.clone()).unwrap());
    let found = existing.map(|objects| (SetIndex(0), Arc::from(objects))).into_iter().collect();
    let buckets = vec![String::new()];
    let placing = Placing { run: "r", seed: before.seed, buckets: &buckets, found: &found };
    let placed = Arc::new(plan).place(&placing).unwrap_or_else(|error| panic!("{name}: {error}"));
    let uploads = matches!(before.population, Population::Uploaded(1..));
    let kinds = [StageKind::Prepare, StageKind::Measure];
    let kinds = &kinds[usize::from(!uploads)..];
    assert_eq!(placed.stages.len(), kinds.len(), "{name}");
    let mut members = Arc::clone(&placed.members);
    let mut all = 0;
    for (stage, kind) in placed.stages.iter().zip(kinds) {
        let job = &stage.objects[0];
        assert_eq!(job.work.loops_count(), before.lanes_count(*kind), "{name}");
        let work = Arc::new(job.work.with_members(Arc::clone(&members)));
        let mut changes = Vec::new();
        for worker in (0..before.concurrency.get()).map(WorkerId) {
            let mut v1 = OpStream::new(&before, *kind, worker);
            let mut now = work.source(worker);
            // What prepares is done to its end, or what is measured would begin with less.
            let ops_max = if *kind == StageKind::Prepare { u64::MAX } else { 300 };
            for number in 0..ops_max {
                let (was, is) = (v1.next_op(), now.next_op(Moment::EPOCH));
                let was_words = was.as_ref().map(|op| words_of_v1(&before, op));
                let is_words = is.as_ref().map(|op| words_of(&work, op));
                assert_eq!(is_words, was_words, "{name}, {kind:?} {worker:?}, operation {number}");
                let words = was_words.as_deref().unwrap_or("nothing");
                all = mix64(all ^ hash_text(&format!("{} {} {words}", kind.name(), worker.0)));
                let (Some(was), Some(is)) = (was, is) else { break };
                let ok = *kind == StageKind::Prepare || !mix64(number).is_multiple_of(10);
                v1.completed(&was, ok);
                now.completed(&is, ok, Moment::EPOCH);
            }
            changes.extend(now.changes());
        }
        members = placed.after(&members, changes);
    }
    eprintln!("HASH    (\"{name}\", {all:#018x}),");
    assert!(placed.stages.iter().all(|stage| stage.objects[0].work.kinds() != [OpKind::List; 2]));
}
