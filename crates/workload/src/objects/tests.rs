//! Work on several sets, over several stages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{Moment, ObjectId, OpKind, WorkerId};

use super::*;
use crate::Verify;
use crate::plan::place::tests::placed;
use crate::plan::{Placed, SetIndex};

/// Does a stage: `count` operations of every worker, of which those succeed that `ok` says.
fn stage(
    placed: &Placed,
    members: &mut Arc<[Members]>,
    index: usize,
    (count, ok): (usize, &dyn Fn(&PlannedOp) -> bool),
) -> Vec<PlannedOp> {
    let (mut all, mut changes) = (Vec::new(), Vec::new());
    for job in &placed.stages[index].objects {
        let work = Arc::new(job.work.with_members(Arc::clone(members)));
        for worker in 0..work.workers.get() {
            let mut source = work.source(WorkerId(worker));
            for _ in 0..count {
                let Some(op) = source.next_op() else { break };
                source.completed(&op, ok(&op), Moment::EPOCH);
                all.push(op);
            }
            changes.extend(source.changes());
        }
    }
    *members = placed.after(members, changes).unwrap();
    all
}

/// Does all stages, so many operations of every worker in each; all succeed.
fn run(text: &str, count: usize) -> (Placed, Vec<Vec<PlannedOp>>) {
    let placed = placed(text);
    let mut members = Arc::clone(&placed.members);
    let stages = 0..placed.stages.len();
    let ops = stages.map(|index| stage(&placed, &mut members, index, (count, &|_| true))).collect();
    (placed, ops)
}

fn object(op: &PlannedOp) -> ObjectRef {
    match op.subject {
        Subject::Object(object, _) => object,
        _ => panic!("no whole object in {op:?}"),
    }
}

fn key(placed: &Placed, op: &PlannedOp) -> String {
    let set = placed.sets[op.set.0].as_ref().unwrap();
    let mut key = String::new();
    set.keys.write(object(op).id, &mut key);
    let bucket = set.buckets.name(set.bucket_of(object(op).id)).unwrap_or("-");
    format!("{bucket}/{key}")
}

#[test]
fn a_mix_reads_by_zipfs_law_while_it_puts_new_members() {
    let (placed, ops) = run(
        "schema: plimsoll.workload/2\nname: w\n\
         sets: {o: {count: 1000, size: 1KiB, keys: {buckets: 16}}}\n\
         stages:\n\
         - {prepares: true, jobs: [{workers: 8, work: {fill: o}}]}\n\
         - {name: m, duration: 1s, jobs: [{workers: 64, work: {objects: [{get: o, weight: 80, \
         pick: zipf}, {put: o, weight: 20}]}}]}\n\
         - {name: all, duration: 1s, jobs: [{workers: 4, work: {objects: [{get: o}]}}]}\n\
         - {name: clean, jobs: [{workers: 3, work: {remove: {sets: o, batch: 100}}}]}\n",
        1_000,
    );
    let filled: HashSet<ObjectId> = ops[0].iter().map(|op| object(op).id).collect();
    assert_eq!(filled.len(), 1_000);
    let buckets: HashSet<String> =
        ops[0].iter().map(|op| key(&placed, op).split('/').next().unwrap().to_owned()).collect();
    assert_eq!(buckets, (1..=16).map(|number| format!("bench{number}")).collect());
    let gets: Vec<ObjectId> =
        ops[1].iter().filter(|op| op.kind == OpKind::Get).map(|op| object(op).id).collect();
    let puts: HashSet<ObjectId> =
        ops[1].iter().filter(|op| op.kind == OpKind::Put).map(|op| object(op).id).collect();
    assert_eq!((gets.len(), puts.len()), (51_200, 12_800), "8 in 10, and each put is new");
    assert!(gets.iter().all(|id| filled.contains(id)), "what is read was there before");
    assert!(puts.is_disjoint(&filled));
    let mut counts: HashMap<ObjectId, u32> = HashMap::new();
    gets.iter().for_each(|id| *counts.entry(*id).or_default() += 1);
    // The weights of ranks 1 to 1,000 with theta 0.99 add up to 7.73.
    let most = f64::from(*counts.values().max().unwrap()) / 51_200.0;
    assert!((most * 7.73 - 1.0).abs() < 0.06, "the first rank has {most}");
    // The stage after reads what both stages before it made.
    let read: HashSet<ObjectId> = ops[2].iter().map(|op| object(op).id).collect();
    assert!(read.iter().any(|id| puts.contains(id)) && read.iter().any(|id| filled.contains(id)));
    let removed: u32 = ops[3]
        .iter()
        .map(|op| match op.subject {
            Subject::Batch { count, .. } => count,
            _ => panic!("{op:?}"),
        })
        .sum();
    assert_eq!(removed, 13_800);
}

#[test]
fn a_later_stage_works_on_what_an_earlier_one_put_and_not_on_what_failed() {
    let placed = placed(
        "schema: plimsoll.workload/2\nname: w\nsets: {o: {size: 1KiB}}\n\
         stages:\n\
         - {name: put, duration: 1s, jobs: [{workers: 3, work: {objects: [{put: o}]}}]}\n\
         - {name: get, duration: 1s, jobs: [{workers: 5, work: {objects: [{get: o}]}}]}\n\
         - {name: more, duration: 1s, jobs: [{workers: 3, work: {objects: [{put: o}]}}]}\n\
         - {name: delete, jobs: [{workers: 2, work: {objects: [{delete: o}]}}]}\n\
         - {name: again, duration: 1s, jobs: [{workers: 3, work: {objects: [{put: o}]}}]}\n",
    );
    let mut members = Arc::clone(&placed.members);
    let ok = |op: &PlannedOp| !object(op).id.number().is_multiple_of(5);
    let put = stage(&placed, &mut members, 0, (20, &ok));
    let there: HashSet<ObjectId> = put.iter().filter(|op| ok(op)).map(|op| object(op).id).collect();
    assert_eq!(there.len(), 48, "of 60 one in five failed");
    let read = stage(&placed, &mut members, 1, (500, &|_| true));
    let read: HashSet<ObjectId> = read.iter().map(|op| object(op).id).collect();
    assert_eq!(read, there);
    let more = stage(&placed, &mut members, 2, (20, &|_| true));
    let ids = || put.iter().chain(&more).map(|op| object(op).id);
    assert_eq!(ids().collect::<HashSet<_>>().len(), 120, "no name comes twice");
    assert_eq!(members[0].count(placed.sets[0].as_ref().unwrap()), 108);
    // Half of the batches of one are done; what is left is known.
    let deleted = stage(&placed, &mut members, 3, (27, &|_| true));
    assert_eq!(deleted.len(), 54);
    let last = stage(&placed, &mut members, 4, (1, &|_| true));
    assert!(last.iter().all(|op| !ids().any(|id| id == object(op).id)));
}

#[test]
fn what_is_left_of_a_fill_that_was_stopped_is_known() {
    let placed = placed(
        "schema: plimsoll.workload/2\nname: w\nsets: {o: {count: 100, size: 1KiB}}\n\
         stages:\n\
         - {name: fill, duration: 1s, jobs: [{workers: 4, work: {fill: o}}]}\n\
         - {name: get, duration: 1s, jobs: [{workers: 2, work: {objects: [{get: o}]}}]}\n",
    );
    let mut members = Arc::clone(&placed.members);
    let ok = |op: &PlannedOp| object(op).id.number() != 3;
    let filled = stage(&placed, &mut members, 0, (10, &ok));
    assert_eq!(filled.len(), 40);
    let there: HashSet<ObjectId> =
        filled.iter().filter(|op| ok(op)).map(|op| object(op).id).collect();
    let read = stage(&placed, &mut members, 1, (1_000, &|_| true));
    assert_eq!(read.iter().map(|op| object(op).id).collect::<HashSet<_>>(), there);
}

#[test]
fn sets_of_one_run_share_no_key_and_jobs_of_one_stage_no_new_member() {
    let (placed, ops) = run(
        "schema: plimsoll.workload/2\nname: w\n\
         sets: {a: {count: 10, size: 1KiB}, b: {count: 10, size: 2KiB}}\n\
         stages:\n\
         - {prepares: true, jobs: [{workers: 2, work: {fill: [a, b]}}]}\n\
         - name: m\n  duration: 1s\n  jobs:\n\
         \x20 - {name: x, workers: 2, work: {objects: [{put: a}, {get: b}]}}\n\
         \x20 - {name: y, workers: 3, work: {objects: [{put: a, size: 5KiB}, {put: b}]}}\n",
        100,
    );
    let written = ops.iter().flatten().filter(|op| op.kind == OpKind::Put);
    let keys: Vec<String> = written.clone().map(|op| key(&placed, op)).collect();
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    assert!(
        keys.iter()
            .all(|key| key.starts_with("-/plimsoll/r/a/") || key.starts_with("-/plimsoll/r/b/"))
    );
    let sizes: HashSet<(usize, Option<u64>)> =
        written.map(|op| (op.set.0, object(op).size)).collect();
    let expected = [(0, Some(1_024)), (0, Some(5_120)), (1, Some(2_048))];
    assert_eq!(sizes, HashSet::from(expected), "a member says itself how large it is");
}

#[test]
fn names_of_the_users_own_are_picked_by_bucket_and_key() {
    let (placed, ops) = run(
        "schema: plimsoll.workload/2\nname: w\n\
         sets: {c: {named: {bucket: 'c{1..4}', key: 'o{01..10}'}, size: {uniform: 1KB..9KB}, \
         touch: true}}\n\
         stages:\n\
         - {prepares: true, jobs: [{workers: 3, work: {fill: c}}]}\n\
         - {name: m, duration: 1s, jobs: [{workers: 2, work: {objects: [{get: c, pick: {bucket: \
         {shares: [{2..3: 1}]}, key: sequential}}, {put: c, keys: 'o{11..12}'}]}}]}\n",
        200,
    );
    let filled: HashMap<String, Option<u64>> =
        ops[0].iter().map(|op| (key(&placed, op), object(op).size)).collect();
    assert_eq!(filled.len(), 40);
    assert!(filled.contains_key("c1/o01") && filled.contains_key("c4/o10"));
    for op in ops[1].iter().filter(|op| op.kind == OpKind::Get) {
        let key = key(&placed, op);
        assert!(key.starts_with("c2/") || key.starts_with("c3/"), "{key}");
        assert_eq!(object(op).size, filled[&key], "it is as large as it was written");
    }
    let put: HashSet<String> = ops[1]
        .iter()
        .filter(|op| op.kind == OpKind::Put)
        .map(|op| key(&placed, op).split_once('/').unwrap().1.to_owned())
        .collect();
    assert_eq!(put, HashSet::from(["o11".to_owned(), "o12".to_owned()]));
    let job = &placed.stages[1].objects[0].work;
    assert_eq!(job.verify(SetIndex(0)), Verify::EveryByte, "the run itself wrote it");
}

#[test]
fn of_names_that_the_run_did_not_write_nothing_is_known() {
    let placed = placed(
        "schema: plimsoll.workload/2\nname: w\n\
         sets: {c: {named: {key: 'o{1..10}'}, size: 1KB}}\n\
         stages: [{name: m, duration: 1s, jobs: [{work: {objects: [{get: c}]}}]}]\n",
    );
    let work = &placed.stages[0].objects[0].work;
    assert_eq!(work.verify(SetIndex(0)), Verify::Nothing);
    let op = work.source(WorkerId(0)).next_op().unwrap();
    assert_eq!(object(&op).size, None);
}

#[test]
fn what_is_put_for_a_time_is_removed_when_it_is_over() {
    let placed = placed(
        "schema: plimsoll.workload/2\nname: w\nsets: {b: {size: 1KiB}}\n\
         stages: [{name: m, ops: 100, jobs: [{work: {objects: [{put: b, weight: 3}, {put: b, \
         remove_after: 1s}]}}]}]\n",
    );
    let work = &placed.stages[0].objects[0].work;
    let mut source = work.source(WorkerId(0));
    let (mut now, mut due) = (Moment::EPOCH, Vec::new());
    let mut kinds = Vec::new();
    for _ in 0..40 {
        let op = source.due(now).or_else(|| source.next_op()).unwrap();
        now = now.after(Duration::from_millis(100));
        kinds.push(op.kind);
        match op.kind {
            OpKind::Put => due.push((object(&op).id, now)),
            _ => {
                let at = due.iter().position(|(id, _)| *id == object(&op).id).unwrap();
                let (_, ended) = due.remove(at);
                assert!(now.since(ended) > Duration::from_secs(1), "not before its time");
            }
        }
        source.completed(&op, true, now);
    }
    let removed = kinds.iter().filter(|kind| **kind == OpKind::Delete).count();
    assert!((5..=9).contains(&removed), "a quarter of about 30 puts, but for the last: {removed}");
}

#[test]
fn buckets_are_dealt_to_workers_whole() {
    let (placed, ops) = run(
        "schema: plimsoll.workload/2\nname: w\n\
         sets: {o: {count: 120, size: 1KiB, keys: {buckets: 6}}}\n\
         stages:\n\
         - {prepares: true, jobs: [{workers: 5, work: {fill: o}}]}\n\
         - {name: m, duration: 1s, jobs: [{workers: 3, deal: by_bucket, work: {objects: \
         [{put: o, as: overwrite}]}}]}\n",
        300,
    );
    let set = placed.sets[0].as_ref().unwrap();
    let mut writers: HashMap<u32, HashSet<usize>> = HashMap::new();
    for (number, op) in ops[1].iter().enumerate() {
        let worker = number / 300;
        writers.entry(set.bucket_of(object(op).id)).or_default().insert(worker);
    }
    assert_eq!(writers.len(), 6);
    assert!(writers.values().all(|workers| workers.len() == 1), "{writers:?}");
}

#[test]
fn what_failed_to_be_written_or_removed_may_be_listed_or_not() {
    let placed = placed(
        "schema: plimsoll.workload/2\nname: w\n\
         sets: {o: {size: 1KiB, keys: {per_worker: false}}}\nstages:\n\
         - {name: put, duration: 1s, jobs: [{workers: 2, work: {objects: [{put: o}]}}]}\n\
         - {name: list, duration: 1s, jobs: [{workers: 1, work: {objects: [{list: o}, \
         {list: o, by_page: true}]}}]}\n\
         - {name: delete, jobs: [{workers: 2, work: {objects: [{delete: o}]}}]}\n\
         - {name: again, duration: 1s, jobs: [{work: {objects: [{list: o, by_page: true}]}}]}\n",
    );
    let mut members = Arc::clone(&placed.members);
    let ids = |numbers: &[u64]| -> Vec<ObjectId> {
        numbers.iter().map(|number| ObjectId::new(WorkerId(0), *number)).collect()
    };
    let ok = |op: &PlannedOp| object(op).id.owner() == WorkerId(0) && object(op).id.number() < 4;
    stage(&placed, &mut members, 0, (6, &ok));
    let of_all = |members: &Arc<[Members]>| {
        let list = placed.stages[1].objects[0].work.with_members(Arc::clone(members));
        list.listed_below(SetIndex(0), 0, (Below::Owner(WorkerId(0)), 0)).unwrap()
    };
    let listed = of_all(&members);
    assert_eq!(listed.certain, ids(&[0, 1, 2, 3]));
    assert_eq!(listed.doubtful.len(), 2 + 6, "two of the first worker, and all of the second");
    // Of so few each is a page of its own; what is doubtful is on none of them.
    let list = Arc::new(placed.stages[1].objects[0].work.with_members(Arc::clone(&members)));
    assert_eq!(list.pages(1).map(Pages::count), Some(4));
    let page = list.listed_below(SetIndex(0), 1, (Below::Page(2), 0)).unwrap();
    assert_eq!(page, Listed { certain: ids(&[2]), doubtful: Vec::new() });
    let prefix = list.listed_prefix(SetIndex(0), 1, Below::Page(2));
    assert_eq!(prefix, "plimsoll/r/00000.00000002.");
    let mut source = list.source(WorkerId(0));
    let pages: HashSet<Subject> = (0..200)
        .filter_map(|_| Some(source.next_op()?.subject))
        .filter(|subject| matches!(subject, Subject::Listing { below: Below::Page(_), .. }))
        .collect();
    assert_eq!(pages.len(), 4, "each is drawn");

    let order = list.removal_order(SetIndex(0));
    let fails = std::cell::Cell::new(None);
    let removed = stage(
        &placed,
        &mut members,
        2,
        (9, &|op| {
            let Subject::Batch { from, .. } = op.subject else { panic!("{op:?}") };
            if fails.get().is_none() {
                fails.set(Some(list.removed(SetIndex(0), &order, from)));
            }
            fails.get() != Some(list.removed(SetIndex(0), &order, from))
        }),
    );
    assert_eq!(removed.len(), 4);
    let listed = of_all(&members);
    assert_eq!(listed.certain, []);
    assert!(listed.doubtful.contains(&fails.get().unwrap()), "it was perhaps removed");
    assert_eq!(members[0].count(placed.sets[0].as_ref().unwrap()), 1, "it can be tried again");
}

#[test]
fn versions_are_listed_one_by_one_only_where_versions_are_listed() {
    let placed = placed(
        "schema: plimsoll.workload/2\nname: w\nsets: {o: {count: 5, size: 1KiB, versions: 3}}\n\
         stages:\n- {prepares: true, jobs: [{work: {fill: o}}]}\n\
         - {name: list, duration: 1s, jobs: [{work: {objects: [{list: o}, \
         {list: o, versions: true}, {list: o, versions: true, by_page: true}]}}]}\n",
    );
    let mut members = Arc::clone(&placed.members);
    stage(&placed, &mut members, 0, (15, &|_| true));
    let list = placed.stages[1].objects[0].work.with_members(members);
    let count = |op: usize, below: Below| {
        list.listed_below(SetIndex(0), op, (below, 0)).unwrap().certain.len()
    };
    let all = Below::Owner(WorkerId(0));
    assert_eq!((count(0, all), count(1, all), count(2, Below::Page(4))), (5, 15, 3));
}

#[test]
fn a_set_without_members_has_no_page_to_list() {
    let placed = placed(
        "schema: plimsoll.workload/2\nname: w\nsets: {o: {size: 1KiB}}\nstages:\n\
         - {name: put, duration: 1s, jobs: [{work: {objects: [{put: o}]}}]}\n\
         - {name: list, duration: 1s, jobs: [{work: {objects: [{list: o, by_page: true}]}}]}\n",
    );
    let work = &placed.stages[1].objects[0].work;
    let work = Arc::new(work.with_members(Arc::clone(&placed.members)));
    let mut source = work.source(WorkerId(0));
    assert!(source.may_end());
    assert_eq!(source.next_op(), None);
}

/// What was drawn and never begins is as if it had not been drawn: what it would have put is not
/// there, what it would have changed or removed still is.
#[test]
fn an_operation_that_never_begins_changes_nothing() {
    let put = |op: &str| {
        placed(&format!(
            "schema: plimsoll.workload/2\nname: w\nsets: {{o: {{count: 9, size: 1KiB}}}}\nstages:\n\
             - {{prepares: true, jobs: [{{workers: 1, work: {{fill: o}}}}]}}\n\
             - {{name: m, duration: 1s, jobs: [{{workers: 1, work: {{objects: [{op}]}}}}]}}\n\
             - {{name: get, duration: 1s, jobs: [{{workers: 1, work: {{objects: [{{get: o, \
             pick: sequential}}]}}}}]}}\n\
             - {{name: del, jobs: [{{workers: 1, work: {{objects: [{{delete: o}}]}}}}]}}\n"
        ))
    };
    for op in [
        "{put: o}",
        "{put: o, as: overwrite}",
        "{put: o}, {get: o}, {delete: o}",
        "{put: o}, {stat: o, pick: own}",
    ] {
        let placed = put(op);
        let mut members = Arc::clone(&placed.members);
        let filled = stage(&placed, &mut members, 0, (9, &|_| true));
        let work = Arc::new(placed.stages[1].objects[0].work.with_members(Arc::clone(&members)));
        // Each kind is once the one that never begins.
        for begun in 0..6 {
            let mut source = work.source(WorkerId(0));
            let mut there: HashMap<ObjectId, u32> =
                filled.iter().map(|op| (object(op).id, object(op).version)).collect();
            for _ in 0..begun {
                let op = source.next_op().unwrap();
                match op.kind {
                    OpKind::Put => _ = there.insert(object(&op).id, object(&op).version),
                    OpKind::Delete => _ = there.remove(&object(&op).id),
                    _ => {}
                }
                source.completed(&op, true, Moment::EPOCH);
            }
            let never = source.next_op().unwrap();
            source.withdrawn(&never);
            let mut after = placed.after(&members, source.changes()).unwrap();
            let read = stage(&placed, &mut after, 2, (there.len(), &|_| true));
            let read: HashMap<ObjectId, u32> =
                read.iter().map(|op| (object(op).id, object(op).version)).collect();
            assert_eq!(read, there, "{op}: {never:?} after {begun}");
            let removed = stage(&placed, &mut after, 3, (99, &|_| true));
            assert_eq!(removed.len(), there.len(), "{op}: {never:?} after {begun}");
        }
    }
}

/// One set without members, which a later stage reads.
const PUT_AND_READ: &str = "\
schema: plimsoll.workload/2
name: t
seed: 5
sets: {o: {size: 1KiB}}
stages:
- {name: put, ops: 9, jobs: [{workers: 2, work: {objects: [{put: o}]}}]}
- {name: get, ops: 9, jobs: [{work: {objects: [{get: o}]}}]}
";

#[test]
fn a_billion_members_in_a_row_take_no_memory_each() {
    let placed = placed(PUT_AND_READ);
    let set = placed.sets[0].as_ref().unwrap();
    let put =
        |owner, (from, to), failed| (SetIndex(0), Change::Put { owner, law: 0, from, to, failed });
    let changes = vec![put(1, (0, 1_000_000_000), vec![9, 7, 7]), put(0, (0, 2), vec![])];
    let after = placed.after(&placed.members, changes).unwrap();
    assert_eq!(after[0].count(set), 1_000_000_000);
    let at = |index| {
        let id = after[0].listed(set, index).id;
        (id.owner().0, id.number())
    };
    assert_eq!([0, 1, 2, 8, 9, 10].map(at), [(0, 0), (0, 1), (1, 0), (1, 6), (1, 8), (1, 10)]);
    assert_eq!(at(999_999_999), (1, 999_999_999));
    assert_eq!(after[0].newest(set, 9), after[0].listed(set, 9));
    let more = placed.after(&after, vec![put(1, (1_000_000_000, 1_000_000_003), vec![])]).unwrap();
    assert_eq!(more[0].count(set), 1_000_000_003);
}

#[test]
fn more_members_than_can_be_kept_one_by_one_are_refused() {
    let placed = placed(PUT_AND_READ);
    let put = Change::Put { owner: 0, law: 0, from: 0, to: 200_000_000, failed: Vec::new() };
    let newer = Held { id: ObjectId::new(WorkerId(0), 5), version: 1 };
    let changes = [put, Change::Holds(vec![newer])].map(|change| (SetIndex(0), change));
    let refusal = placed.after(&placed.members, changes.into()).unwrap_err();
    assert_eq!(
        refusal,
        "the 200000001 members of set `o` are too many to keep track of one by one, as a later \
         stage needs them; at most 100000000"
    );
}

#[test]
fn what_is_put_for_no_later_stage_is_not_kept() {
    let placed = placed(PUT_AND_READ.split("- {name: get").next().unwrap());
    let mut members = Arc::clone(&placed.members);
    stage(&placed, &mut members, 0, (9, &|_| true));
    assert_eq!(members[0].count(placed.sets[0].as_ref().unwrap()), 0);
}

/// The members that a job's workers ask for, one after the other.
fn asked_for(work: &ObjectsJob, members: &Arc<[Members]>) -> Vec<ObjectId> {
    let work = Arc::new(work.with_members(Arc::clone(members)));
    let of_worker = |worker| {
        let mut source = work.source(WorkerId(worker));
        (0..20).map(move |_| object(&source.next_op().unwrap()).id)
    };
    (0..work.workers.get()).flat_map(of_worker).collect()
}

#[test]
fn no_job_asks_for_what_another_one_did_in_the_same_order() {
    let placed = placed(
        "schema: plimsoll.workload/2\nname: w\nsets: {o: {count: 1000, size: 1KiB}}\nstages:\n\
         - {prepares: true, jobs: [{workers: 2, work: {fill: o}}]}\n\
         - {name: warm, prepares: true, duration: 1s, jobs: [\n\
             {name: a, workers: 2, work: {objects: [{get: o}]}}, \
             {name: b, workers: 2, work: {objects: [{get: o}]}}]}\n\
         - {name: m, duration: 1s, jobs: [{workers: 2, work: {objects: [{get: o}]}}]}\n",
    );
    let mut members = Arc::clone(&placed.members);
    stage(&placed, &mut members, 0, (usize::MAX, &|_| true));
    let jobs = placed.stages[1..].iter().flat_map(|stage| &stage.objects);
    let jobs: Vec<&ObjectsJob> = jobs.map(|job| &*job.work).collect();
    let mut asked: HashSet<_> = jobs.iter().map(|job| asked_for(job, &members)).collect();
    assert_eq!(asked.len(), 3, "two preparing jobs, and the one that measures");
    // A search makes one stage again and again.
    let measured = jobs[2];
    assert_eq!(asked_for(&measured.drawn_anew(0), &members), asked_for(measured, &members));
    asked.extend((1..=3).map(|draw| asked_for(&measured.drawn_anew(draw), &members)));
    assert_eq!(asked.len(), 6);
}
