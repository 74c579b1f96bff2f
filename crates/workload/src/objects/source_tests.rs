//! Work on one set.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plimsoll_model::{Moment, ObjectId, OpKind, WorkerId};
use proptest::prelude::*;

use super::*;
use crate::plan::SetIndex;
use crate::testing::Laid;
use crate::v1::objects::tests::spec;
use crate::v1::objects::{ActivitySpec, PickSpec, RangeSpec, WorkloadSpec};

/// The time says nothing to these operations.
const NOW: Moment = Moment::EPOCH;
const SET: SetIndex = SetIndex(0);

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

fn measure(spec: &WorkloadSpec) -> Arc<ObjectsJob> {
    Laid::of(spec).measure
}

fn object(op: &PlannedOp) -> ObjectRef {
    match op.subject {
        Subject::Object(object, _) => object,
        _ => panic!("no whole object in {op:?}"),
    }
}

#[test]
fn prepare_uploads_each_object_once() {
    let mut spec = spec(&[("GET", 1)]);
    spec.objects.count = 103;
    let work = Laid::of(&spec).prepare.expect("objects are uploaded");
    let uploads = ops(&work, 1_000);
    let counts: Vec<usize> = uploads.iter().map(Vec::len).collect();
    assert_eq!(counts, [26, 26, 26, 25]);
    let ids: HashSet<ObjectId> = uploads.iter().flatten().map(|op| object(op).id).collect();
    let population: HashSet<ObjectId> = (0..103).map(|i| work.set(SET).id(i)).collect();
    assert_eq!(ids, population);
}

#[test]
fn the_mix_keeps_its_shares_exactly_over_every_deck() {
    let spec = spec(&[("GET", 45), ("STAT", 30), ("PUT", 15), ("DELETE", 10)]);
    for ops in ops(&measure(&spec), 200) {
        for deck in ops.chunks(20) {
            let count = |kind| deck.iter().filter(|op| op.kind == kind).count();
            let counts = [OpKind::Get, OpKind::Stat, OpKind::Put, OpKind::Delete].map(count);
            assert_eq!(counts, [9, 6, 3, 2]);
        }
    }
}

#[test]
fn deleting_visits_the_population_once_and_then_ends() {
    let mut spec = spec(&[("DELETE", 1)]);
    spec.measure.delete_batch = Some(6);
    let work = measure(&spec);
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
    for range in [RangeSpec::Random, RangeSpec::FixedBytes(100), RangeSpec::FixedBytes(5_000)] {
        let mut spec = spec(&[("GET", 1)]);
        spec.measure.range = Some(range.clone());
        let mut lengths = HashSet::new();
        for op in ops(&measure(&spec), 500).iter().flatten() {
            let Subject::Object(object, Some((offset, len))) = op.subject else { panic!("{op:?}") };
            assert!(len >= 1 && offset + len <= object.size.unwrap());
            lengths.insert(len);
        }
        match range {
            RangeSpec::FixedBytes(len) => assert_eq!(lengths, HashSet::from([len.min(1_000)])),
            RangeSpec::Random => assert!(lengths.len() > 100),
        }
    }
}

#[test]
fn a_failed_put_is_never_read() {
    let spec = spec(&[("GET", 1), ("PUT", 1)]);
    let mut source = measure(&spec).source(WorkerId(1));
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
    let mut spec = spec(&[("STAT", 1), ("PUT", 2), ("DELETE", 2)]);
    spec.objects.count = 4;
    for ops in ops(&measure(&spec), 2_000) {
        assert_eq!(ops.len(), 2_000);
    }
    // When every PUT fails there is nothing to read or delete, and the PUTs go on.
    let mut source = measure(&spec).source(WorkerId(0));
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

fn overwriting(operations: &[(&str, u32)], count: u64) -> Arc<ObjectsJob> {
    let mut spec = spec(operations);
    spec.measure.overwrite = true;
    spec.objects.count = count;
    measure(&spec)
}

#[test]
fn an_overwrite_is_the_next_version_and_is_read_once_it_is_there() {
    let work = overwriting(&[("GET", 1), ("PUT", 1)], 4);
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
    let work = overwriting(&[("GET", 1), ("PUT", 1)], 20);
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
        let mut spec = spec(&[("GET", 1), ("PUT", 1)]);
        (spec.seed, spec.objects.count, spec.measure.overwrite) = (seed, 4, true);
        let work = measure(&spec);
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
    let mut spec = spec(&[("GET", 2), ("PUT", 1), ("DELETE", 1)]);
    spec.objects.count = 40_000;
    for overwrite in [false, true] {
        spec.measure.overwrite = overwrite;
        spec.measure.operations.truncate(if overwrite { 2 } else { 3 });
        let work = measure(&spec);
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

fn special(activity: ActivitySpec, count: u64) -> WorkloadSpec {
    let mut spec = spec(&[]);
    spec.measure.activity = activity;
    spec.objects.count = count;
    spec
}

#[test]
fn streams_of_every_activity_are_a_function_of_the_seed() {
    for (activity, count) in [
        (ActivitySpec::Retention { hold_ns: 1 }, 10),
        (ActivitySpec::Multipart, 10),
        (ActivitySpec::MultipartPut { parts: 3, part_concurrency: 2 }, 0),
        (ActivitySpec::Append { parts: 5 }, 0),
        (ActivitySpec::Zip, 10),
        (ActivitySpec::Snowball { members: 5, compress: false }, 0),
        (ActivitySpec::Fanout { copies: 5 }, 0),
    ] {
        let laid = Laid::of(&special(activity.clone(), count));
        let once = ops(&laid.measure, 50);
        assert_eq!(once, ops(&laid.measure, 50));
        assert!(once.iter().all(|ops| ops.len() == 50), "{activity:?}");
        // What is written is the worker's own.
        for (worker, ops) in once.iter().enumerate().filter(|_| count == 0) {
            let owners = ops.iter().map(|op| op.subject.object_id().unwrap().owner().0);
            assert!(owners.into_iter().all(|owner| owner as usize == worker));
        }
        let prepares = laid.prepare.iter().flat_map(|work| ops(work, 50));
        let prepared = prepares.map(|ops| ops.len()).sum::<usize>();
        let beside = if activity == ActivitySpec::Multipart { 2 } else { 0 };
        assert_eq!(prepared as u64 + beside, laid.prepare_ops_count());
    }
}

#[test]
fn parts_come_in_order_and_the_rest_of_a_failed_upload_is_left_out() {
    let spec = special(ActivitySpec::MultipartPut { parts: 3, part_concurrency: 2 }, 0);
    let mut source = measure(&spec).source(WorkerId(1));
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
    let mut spec = spec(&[("GET", 3), ("PUT", 2), ("DELETE", 2)]);
    spec.measure.activity = ActivitySpec::Versioned;
    (spec.objects.count, spec.objects.versions) = (8, 2);
    let work = measure(&spec);
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
    let mut spec = spec(&[("GET", 1)]);
    spec.objects.count = 10;
    spec.measure.pick = PickSpec::Sequential;
    let work = measure(&spec);
    let all = ops(&work, 5);
    for (worker, ops) in all.iter().enumerate() {
        let right = (0..5).map(|round| work.set(SET).id((worker as u64 + 4 * round) % 10));
        assert!(ops.iter().map(|op| object(op).id).eq(right), "{ops:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn same_seed_same_stream_and_workers_never_share_a_changing_object(
        seed: u64, get in 0u32..5, stat in 0u32..5, put in 1u32..5, delete in 0u32..5,
    ) {
        let delete = delete.min(put);
        let mut spec = spec(&[("GET", get), ("STAT", stat), ("PUT", put), ("DELETE", delete)]);
        spec.seed = seed;
        let once = ops(&measure(&spec), 100);
        prop_assert_eq!(&once, &ops(&measure(&spec), 100));
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
        let mut spec = spec(&[("GET", get), ("STAT", stat), ("PUT", put), ("DELETE", delete)]);
        spec.seed = seed;
        spec.objects.count = count;
        spec.measure.overwrite = overwrite;
        let work = measure(&spec);
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
