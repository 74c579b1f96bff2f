//! Tests of the stream of operations.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::spec::tests::spec;
use crate::{RangeSpec, WorkloadSpec};

fn workload(spec: &WorkloadSpec) -> Arc<Workload> {
    Arc::new(spec.validate("run", None).unwrap())
}

/// Takes up to `count` operations of every worker; each succeeds.
fn ops(workload: &Arc<Workload>, stage: StageKind, count: usize) -> Vec<Vec<PlannedOp>> {
    let one = |worker| {
        let mut stream = OpStream::new(workload, stage, WorkerId(worker));
        let next = || {
            let op = stream.next_op()?;
            stream.completed(&op, true);
            Some(op)
        };
        std::iter::from_fn(next).take(count).collect()
    };
    (0..workload.concurrency.get()).map(one).collect()
}

fn object(op: &PlannedOp) -> ObjectRef {
    match op.target {
        Target::Object(object, _) => object,
        Target::Batch { .. } | Target::Listing => panic!("no object in {op:?}"),
    }
}

#[test]
fn prepare_uploads_each_object_once() {
    let mut spec = spec(&[("GET", 1)]);
    spec.objects.count = 103;
    let workload = workload(&spec);
    let uploads = ops(&workload, StageKind::Prepare, 1_000);
    let counts: Vec<usize> = uploads.iter().map(Vec::len).collect();
    assert_eq!(counts, [26, 26, 26, 25]);
    let ids: HashSet<ObjectId> = uploads.iter().flatten().map(|op| object(op).id).collect();
    let population: HashSet<ObjectId> = (0..103).map(|i| workload.population_id(i)).collect();
    assert_eq!(ids, population);
}

#[test]
fn the_mix_keeps_its_shares_exactly_over_every_deck() {
    let spec = spec(&[("GET", 45), ("STAT", 30), ("PUT", 15), ("DELETE", 10)]);
    for ops in ops(&workload(&spec), StageKind::Measure, 200) {
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
    let workload = workload(&spec);
    let order = delete_order(&workload);
    let mut seen = HashMap::new();
    for op in ops(&workload, StageKind::Measure, 1_000).iter().flatten() {
        let Target::Batch { from, count } = op.target else { panic!("{op:?}") };
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
        for op in ops(&workload(&spec), StageKind::Measure, 500).iter().flatten() {
            let Target::Object(object, Some((offset, len))) = op.target else { panic!("{op:?}") };
            assert!(len >= 1 && offset + len <= object.size);
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
    let mut stream = OpStream::new(&workload(&spec), StageKind::Measure, WorkerId(1));
    let mut failed = HashSet::new();
    for _ in 0..500 {
        let op = stream.next_op().unwrap();
        if op.kind == OpKind::Put {
            failed.insert(object(&op).id);
            stream.completed(&op, false);
        } else {
            assert!(!failed.contains(&object(&op).id));
        }
    }
}

#[test]
fn an_empty_pool_is_filled_before_it_is_read() {
    let mut spec = spec(&[("STAT", 1), ("PUT", 2), ("DELETE", 2)]);
    spec.objects.count = 4;
    for ops in ops(&workload(&spec), StageKind::Measure, 2_000) {
        assert_eq!(ops.len(), 2_000);
    }
    // When every PUT fails there is nothing to read or delete, and the PUTs go on.
    let mut stream = OpStream::new(&workload(&spec), StageKind::Measure, WorkerId(0));
    let tail: Vec<OpKind> =
        std::iter::from_fn(|| stream.next_op()).map(|op| op.kind).take(60).collect();
    assert!(tail[30..].iter().all(|kind| *kind == OpKind::Put), "{tail:?}");
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
        let once = ops(&workload(&spec), StageKind::Measure, 100);
        prop_assert_eq!(&once, &ops(&workload(&spec), StageKind::Measure, 100));
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
}
