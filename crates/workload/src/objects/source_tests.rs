//! Work on one set.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{Moment, ObjectId, OpKind, WorkerId};
use proptest::prelude::*;

use super::*;
use crate::data::DataRule;
use crate::plan::SetIndex;
use crate::testing::{Laid, on_objects};
use crate::{StopRule, Verify};

/// The time says nothing to these operations.
const NOW: Moment = Moment::EPOCH;
const SET: SetIndex = SetIndex(0);
const HUNDRED: &str = "count: 100, size: 1000";

/// Takes up to `count` operations of every worker; each succeeds.
fn ops(work: &Arc<ObjectsJob>, count: usize) -> Vec<Vec<PlannedOp>> {
    let one = |worker| {
        let mut source = work.source(WorkerId(worker));
        let next = || {
            let op = source.next_op()?;
            source.completed(&op, true, NOW);
            Some(op)
        };
        std::iter::from_fn(next).take(count).collect()
    };
    (0..work.workers.get()).map(one).collect()
}

/// Lays out a mix.
fn mixed(seed: u64, set: &str, operations: &str) -> Arc<ObjectsJob> {
    Laid::of(seed, set, &format!("objects: [{operations}]")).measure
}

/// Returns the operations of a mix by their weights; one of weight 0 is left out.
fn weighted(operations: &[(&str, u32)]) -> String {
    let some = operations.iter().filter(|(_, weight)| *weight > 0);
    some.map(|(operation, weight)| format!("{{{operation}, weight: {weight}}},")).collect()
}

fn object(op: &PlannedOp) -> ObjectRef {
    match op.subject {
        Subject::Object(object, _) => object,
        _ => panic!("no whole object in {op:?}"),
    }
}

#[test]
fn prepare_uploads_each_object_once() {
    let laid = Laid::of(42, "count: 103, size: 1000", "objects: [{get: o}]");
    let work = laid.prepare.expect("objects are uploaded");
    let uploads = ops(&work, 1_000);
    let counts: Vec<usize> = uploads.iter().map(Vec::len).collect();
    assert_eq!(counts, [26, 26, 26, 25]);
    let ids: HashSet<ObjectId> = uploads.iter().flatten().map(|op| object(op).id).collect();
    let population: HashSet<ObjectId> = (0..103).map(|i| work.set(SET).id(i)).collect();
    assert_eq!(ids, population);
}

#[test]
fn the_mix_keeps_its_shares_exactly_over_every_deck() {
    let mix = weighted(&[("get: o", 45), ("stat: o", 30), ("put: o", 15), ("delete: o", 10)]);
    for ops in ops(&mixed(42, HUNDRED, &mix), 200) {
        for deck in ops.chunks(20) {
            let count = |kind| deck.iter().filter(|op| op.kind == kind).count();
            let counts = [OpKind::Get, OpKind::Stat, OpKind::Put, OpKind::Delete].map(count);
            assert_eq!(counts, [9, 6, 3, 2]);
        }
    }
}

#[test]
fn deleting_visits_the_population_once_and_then_ends() {
    let work = mixed(42, HUNDRED, "{delete: o, batch: 6}");
    let order = work.removal_order(SET);
    let mut seen = HashMap::new();
    for op in ops(&work, 1_000).iter().flatten() {
        let Subject::Batch { from, count } = op.subject else { panic!("{op:?}") };
        for position in from..from + u64::from(count) {
            *seen.entry(order.at(position)).or_insert(0) += 1;
        }
    }
    assert_eq!(seen.len(), 100);
    assert!(seen.values().all(|times| *times == 1));
}

#[test]
fn ranges_lie_within_their_object() {
    for (range, fixed) in [("random", None), ("100", Some(100)), ("1000", Some(1_000))] {
        let work = mixed(42, HUNDRED, &format!("{{get: o, range: {range}}}"));
        let mut lengths = HashSet::new();
        for op in ops(&work, 500).iter().flatten() {
            let Subject::Object(object, Some((offset, len))) = op.subject else { panic!("{op:?}") };
            assert!(len >= 1 && offset + len <= object.size.unwrap());
            lengths.insert(len);
        }
        match fixed {
            Some(len) => assert_eq!(lengths, HashSet::from([len])),
            None => assert!(lengths.len() > 100),
        }
    }
}

#[test]
fn a_failed_put_is_never_read() {
    let mut source = mixed(42, HUNDRED, "{get: o}, {put: o}").source(WorkerId(1));
    let mut failed = HashSet::new();
    for _ in 0..500 {
        let op = source.next_op().unwrap();
        if op.kind == OpKind::Put {
            failed.insert(object(&op).id);
            source.completed(&op, false, NOW);
        } else {
            assert!(!failed.contains(&object(&op).id));
        }
    }
}

#[test]
fn an_empty_pool_is_filled_before_it_is_read() {
    let mix = weighted(&[("stat: o", 1), ("put: o", 2), ("delete: o", 2)]);
    let work = mixed(42, "count: 4, size: 1000", &mix);
    for ops in ops(&work, 2_000) {
        assert_eq!(ops.len(), 2_000);
    }
    // When every PUT fails there is nothing to read or delete, and the PUTs go on.
    let mut source = work.source(WorkerId(0));
    let tail: Vec<OpKind> =
        std::iter::from_fn(|| source.next_op()).map(|op| op.kind).take(60).collect();
    assert!(tail[30..].iter().all(|kind| *kind == OpKind::Put), "{tail:?}");
}

/// What a store holds, asked by a source that has several operations in flight at once: no
/// operation may meet an object that another one is changing.
#[derive(Default)]
struct Store {
    /// The version of each object that is there.
    versions: HashMap<ObjectId, u32>,
    under_way: Vec<PlannedOp>,
    /// Objects that were deleted, or whose writing failed.
    gone: HashSet<ObjectId>,
}

impl Store {
    fn of(work: &ObjectsJob, worker: WorkerId) -> Self {
        let share = work.set(SET).share_of(worker.0);
        let ids = (0..share).map(|number| ObjectId::new(worker, number));
        Self { versions: ids.map(|id| (id, 0)).collect(), ..Self::default() }
    }

    fn begin(&mut self, op: PlannedOp, overwrite: bool) {
        let ObjectRef { id, version, .. } = object(&op);
        let changes = |op: &PlannedOp| matches!(op.kind, OpKind::Put | OpKind::Delete);
        for other in self.under_way.iter().filter(|other| object(other).id == id) {
            assert!(!changes(&op) && !changes(other), "{op:?} meets {other:?}");
        }
        assert!(!self.gone.contains(&id), "{op:?} after it was gone");
        let there = self.versions.get(&id).copied();
        match op.kind {
            OpKind::Put => {
                assert_eq!(version, there.map_or(0, |there| there + 1), "{op:?}");
                assert!(overwrite || there.is_none(), "{op:?}");
            }
            _ => assert_eq!(there, Some(version), "{op:?}"),
        }
        self.under_way.push(op);
    }

    fn end(&mut self, index: usize, ok: bool) -> PlannedOp {
        let op = self.under_way.swap_remove(index);
        let ObjectRef { id, version, .. } = object(&op);
        match (op.kind, ok) {
            (OpKind::Put, true) => {
                self.versions.insert(id, version);
            }
            (OpKind::Put, false) | (OpKind::Delete, _) => {
                self.gone.insert(id);
            }
            _ => {}
        }
        op
    }
}

fn overwriting(seed: u64, count: u64) -> Arc<ObjectsJob> {
    mixed(seed, &format!("count: {count}, size: 1000"), "{get: o}, {put: o, as: overwrite}")
}

#[test]
fn an_overwrite_is_the_next_version_and_is_read_once_it_is_there() {
    let work = overwriting(42, 4);
    let mut source = work.source(WorkerId(2));
    // There is one object, so its versions follow one another.
    let mut latest = 0;
    for _ in 0..100 {
        let op = source.next_op().unwrap();
        let expected = latest + u32::from(op.kind == OpKind::Put);
        assert_eq!(
            object(&op),
            ObjectRef::newest(ObjectId::new(WorkerId(2), 0), Some(1_000), expected)
        );
        latest = expected;
        source.completed(&op, true, NOW);
    }
    assert_eq!(latest, 50);
}

#[test]
fn an_object_that_could_not_be_overwritten_is_left_alone() {
    let work = overwriting(42, 20);
    let mut source = work.source(WorkerId(0));
    let mut store = Store::of(&work, WorkerId(0));
    let mut new_count = 0;
    for _ in 0..40 {
        let op = source.next_op().unwrap();
        new_count += u32::from(!store.versions.contains_key(&object(&op).id));
        store.begin(op, true);
        let op = store.end(0, op.kind != OpKind::Put);
        source.completed(&op, op.kind != OpKind::Put, NOW);
    }
    // Five objects could be spoilt; after that the PUTs write new ones, which fail too, and there
    // is nothing to read.
    assert!(new_count > 20, "{new_count}");
}

#[test]
fn what_is_busy_is_left_alone_and_a_put_writes_a_new_object() {
    let mut firsts = HashSet::new();
    for seed in 0..20 {
        let work = overwriting(seed, 4);
        let mut source = work.source(WorkerId(0));
        let mut store = Store::of(&work, WorkerId(0));
        let mut kinds = Vec::new();
        // No operation ends, and the worker has one object to begin with.
        for number in 0..50 {
            let op = source.next_op().unwrap();
            kinds.push(op.kind);
            let is_first = object(&op).id == ObjectId::new(WorkerId(0), 0);
            assert_eq!(is_first, number == 0 || op.kind == OpKind::Get);
            store.begin(op, true);
        }
        match kinds[0] {
            // It is being overwritten, so there is nothing to read.
            OpKind::Put => assert!(kinds.iter().all(|kind| *kind == OpKind::Put), "{kinds:?}"),
            // It is being read, so it can be read again but not overwritten.
            _ => assert!(kinds.chunks(2).all(|pair| pair[0] != pair[1]), "{kinds:?}"),
        }
        firsts.insert(kinds[0]);
    }
    assert_eq!(firsts.len(), 2);
}

#[test]
fn the_order_of_ends_changes_nothing_while_no_busy_object_is_hit() {
    // With 10,000 objects a worker and five operations under way, 40 draws meet no busy object but
    // for one case in a hundred; this seed is not one of them.
    for (overwrite, mix) in [
        (false, "{get: o, weight: 2}, {put: o}, {delete: o}"),
        (true, "{get: o, weight: 2}, {put: o, as: overwrite}"),
    ] {
        let work = mixed(42, "count: 40000, size: 1000", mix);
        let planned = |under_way: usize| -> Vec<PlannedOp> {
            let mut source = work.source(WorkerId(0));
            let mut store = Store::of(&work, WorkerId(0));
            let mut all = Vec::new();
            for _ in 0..40 {
                let op = source.next_op().unwrap();
                all.push(op);
                store.begin(op, overwrite);
                if store.under_way.len() == under_way {
                    let last = store.under_way.len() / 2;
                    let op = store.end(last, true);
                    source.completed(&op, true, NOW);
                }
            }
            all
        };
        assert_eq!(planned(1), planned(5));
    }
}

#[test]
fn streams_of_every_activity_are_a_function_of_the_seed() {
    for (set, work) in [
        ("count: 10, size: 1000", "retention: {of: o, hold: 1ns}"),
        ("count: 1, part: 1000, size: 10000", "parts: {get: o}"),
        ("", "parts: {put: o, parts: 3, part: 1000, at_once: 2}"),
        ("size: 1000", "append: {to: o, parts: 5}"),
        ("count: 10, size: 1000, archive: zip", "archive: {get_from_zip: o}"),
        ("size: 1000", "archive: {put_tar: o, members: 5}"),
        ("size: 1000", "fanout: {put: o, copies: 5}"),
    ] {
        let laid = Laid::of(42, set, work);
        let once = ops(&laid.measure, 50);
        assert_eq!(once, ops(&laid.measure, 50));
        assert!(once.iter().all(|ops| ops.len() == 50), "{work}");
        // What is written is the worker's own.
        for (worker, ops) in once.iter().enumerate().filter(|_| laid.prepare.is_none()) {
            let owners = ops.iter().map(|op| op.subject.object_id().unwrap().owner().0);
            assert!(owners.into_iter().all(|owner| owner as usize == worker));
        }
        let prepares = laid.prepare.iter().flat_map(|work| ops(work, 50));
        let prepared = prepares.map(|ops| ops.len()).sum::<usize>();
        let beside = if work == "parts: {get: o}" { 2 } else { 0 };
        assert_eq!(prepared as u64 + beside, laid.prepare_ops_count());
    }
}

#[test]
fn parts_come_in_order_and_the_rest_of_a_failed_upload_is_left_out() {
    let work = Laid::of(42, "", "parts: {put: o, parts: 3, part: 1000, at_once: 2}").measure;
    let mut source = work.source(WorkerId(1));
    let mut next = |ok: bool| {
        let op = source.next_op().unwrap();
        source.completed(&op, ok, NOW);
        let Subject::Part { object, number, len: 1_000, .. } = op.subject else { panic!("{op:?}") };
        (object.number(), number)
    };
    let got: Vec<_> =
        [true, true, true, true, false, true, true, false, true].map(&mut next).into();
    let right = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 1)];
    assert_eq!(got, right);
}

#[test]
fn a_put_writes_the_next_version_of_an_object_of_the_workers_own() {
    let mix = "{get: o, weight: 3, version: uniform}, {put: o, weight: 2, as: version}, \
               {delete: o, weight: 2, version: uniform}";
    let work = mixed(42, "count: 8, size: 1000, versions: 2", mix);
    for (worker, ops) in ops(&work, 2_000).iter().enumerate() {
        let own = |number| ObjectId::new(WorkerId(worker as u32), number);
        let mut there: HashSet<(ObjectId, u32)> =
            (0..2).flat_map(|number| [(own(number), 0), (own(number), 1)]).collect();
        let mut next = HashMap::from([(own(0), 2), (own(1), 2)]);
        for op in ops {
            let ObjectRef { id, version, .. } = object(op);
            match op.kind {
                OpKind::Put => {
                    assert_eq!(next.insert(id, version + 1), Some(version), "{op:?}");
                    there.insert((id, version));
                }
                OpKind::Delete => assert!(there.remove(&(id, version)), "{op:?}"),
                _ => assert!(there.contains(&(id, version)), "{op:?}"),
            }
        }
    }
}

#[test]
fn reads_go_through_the_population_in_sequence() {
    let work = mixed(42, "count: 10, size: 1000", "{get: o, pick: sequential}");
    let all = ops(&work, 5);
    for (worker, ops) in all.iter().enumerate() {
        let right = (0..5).map(|round| work.set(SET).id((worker as u64 + 4 * round) % 10));
        assert!(ops.iter().map(|op| object(op).id).eq(right), "{ops:?}");
    }
}

#[test]
fn content_of_existing_objects_is_not_claimed_to_be_checked() {
    assert_eq!(mixed(42, "existing: {}", "{get: o}").verify(SET), Verify::LengthOnly);
}

#[test]
fn a_fill_makes_every_version_of_the_content_that_is_given() {
    let set = "count: 100, size: 1000, versions: 3, content: {files: [{path: a, bytes: 7}]}";
    let laid = Laid::of(42, set, "objects: [{get: o, version: uniform, pick: {zipf: 1.2}}]");
    assert_eq!(laid.measure.set(SET).data, DataRule::Files { bytes: 7 });
    assert!(laid.measure.is_versioned(SET) && laid.prepare_ops_count() == 300);
}

#[test]
fn all_untils_are_one_rule_and_a_steady_throughput_is_another() {
    let rules = |stage: &str| {
        let file = on_objects(42, HUNDRED, "work: {objects: [{get: o}]}", stage);
        file.check().unwrap().stages[1].stop_rules.clone()
    };
    assert_eq!(rules(""), []);
    let rules = rules("until: [steady, 'ci(p99)<=5%', 'ci(rate)<=1%'], ");
    let window = Duration::from_secs(15);
    assert_eq!(rules[0], StopRule::Steady { window, percent: 7.5 });
    let StopRule::Until(precisions) = &rules[1] else { panic!("{rules:?}") };
    assert_eq!(precisions.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn same_seed_same_stream_and_workers_never_share_a_changing_object(
        seed: u64, get in 0u32..5, stat in 0u32..5, put in 1u32..5, delete in 0u32..5,
    ) {
        let delete = delete.min(put);
        let mix = [("get: o", get), ("stat: o", stat), ("put: o", put), ("delete: o", delete)];
        let again = || ops(&mixed(seed, HUNDRED, &weighted(&mix)), 100);
        let once = again();
        prop_assert_eq!(&once, &again());
        let mut owner = HashMap::new();
        for (worker, ops) in once.iter().enumerate() {
            let mut live: HashSet<ObjectId> = HashSet::new();
            let mut gone: HashSet<ObjectId> = HashSet::new();
            for op in ops {
                let id = object(op).id;
                prop_assert_eq!(*owner.entry(id).or_insert(worker), worker);
                prop_assert!(!gone.contains(&id));
                match op.kind {
                    OpKind::Put => prop_assert!(live.insert(id)),
                    OpKind::Delete => prop_assert!(gone.insert(id)),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn operations_under_way_never_meet_on_a_changing_object(
        seed: u64,
        weights in (0u32..4, 0u32..4, 1u32..4, 0u32..4),
        count in 4u64..40,
        overwrite: bool,
        choices in prop::collection::vec((0usize..30, 0u8..10), 400),
    ) {
        let (get, stat, put, delete) = weights;
        let delete = if overwrite { 0 } else { delete.min(put) };
        let write = if overwrite { "put: o, as: overwrite" } else { "put: o" };
        let mix = [("get: o", get), ("stat: o", stat), (write, put), ("delete: o", delete)];
        let work = mixed(seed, &format!("count: {count}, size: 1000"), &weighted(&mix));
        let mut source = work.source(WorkerId(1));
        let mut store = Store::of(&work, WorkerId(1));
        for (index, luck) in choices {
            // As often as not an operation under way ends, one of ten in failure.
            if index < store.under_way.len() {
                let op = store.end(index, luck > 0);
                source.completed(&op, luck > 0, NOW);
            } else {
                let op = source.next_op();
                prop_assert!(op.is_some(), "a mix with PUT never ends");
                store.begin(op.unwrap(), overwrite);
            }
        }
    }
}
