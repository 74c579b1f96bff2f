//! What slices of names hold, and what is picked in them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use plimsoll_model::{Moment, OpKind};
use proptest::prelude::*;

use super::*;
use crate::Verify;
use crate::objects::{Change, Members, ObjectsJob, PlannedOp, Subject};
use crate::plan::SetIndex;
use crate::plan::place::tests::placed;

/// The files of the tests: 3 buckets of 7 keys, shared.
const SET: &str = "c: {named: {bucket: 'b{1..3}', key: 'k{1..7}'}, size: 1KB, touch: true, \
                   shared: true}";

/// Returns the work of the jobs of the only stage, over members that are all there.
fn jobs(set: &str, jobs: &[&str]) -> Vec<Arc<ObjectsJob>> {
    let job = |(number, job): (usize, &&str)| format!("{{name: j{number}, {job}}}");
    let jobs: Vec<String> = jobs.iter().enumerate().map(job).collect();
    let text = format!(
        "{{schema: plimsoll.workload/2, sets: {{{set}}}, stages: [{{duration: 1s, jobs: [{}]}}]}}",
        jobs.join(", ")
    );
    let placed = placed(&text);
    let there = Arc::clone(&placed.members);
    let work = placed.stages[0].objects.iter();
    work.map(|job| Arc::new(job.work.with_members(Arc::clone(&there)))).collect()
}

fn job(text: &str) -> Arc<ObjectsJob> {
    jobs(SET, &[text]).remove(0)
}

/// Returns the first operations of a worker, all of which succeed.
fn ops(job: &Arc<ObjectsJob>, worker: u32, count: usize) -> Vec<PlannedOp> {
    let mut source = job.source(WorkerId(worker));
    let next = || {
        let op = source.next_op()?;
        source.completed(&op, true, Moment::EPOCH);
        Some(op)
    };
    std::iter::from_fn(next).take(count).collect()
}

/// Returns bucket and key of each member that operations are about, in order.
fn names(job: &Arc<ObjectsJob>, ops: &[PlannedOp]) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for op in ops {
        let set = job.set(op.set);
        let ids = match op.subject {
            Subject::Object(object, _) => vec![object.id],
            Subject::Batch { from, count } => {
                let order = job.removal_order(op.set);
                let at = from..from + u64::from(count);
                at.map(|at| job.removed(op.set, &order, at)).collect()
            }
            other => panic!("{other:?}"),
        };
        for id in ids {
            let mut key = String::new();
            set.keys.write(id, &mut key);
            let bucket = set.buckets.name(set.bucket_of(id)).unwrap_or("home");
            names.push((bucket.to_owned(), key));
        }
    }
    names
}

fn text(names: &[(String, String)]) -> String {
    let one = |(bucket, key): &(String, String)| format!("{bucket}/{key}");
    names.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_slices_have_one_more() {
    // COSBench's way: 7 of 3 are 3, 2 and 2; of 9 workers two have none.
    let cut = |count, workers| -> Vec<Range<u64>> {
        (0..workers).map(|worker| contiguous(count, worker, workers)).collect()
    };
    assert_eq!(cut(7, 3), [0..3, 3..5, 5..7]);
    assert_eq!(cut(2, 4), [0..1, 1..2, 2..2, 2..2]);
    let fill = job("workers: 3, deal: member_slices, work: {fill: c}");
    assert_eq!(text(&names(&fill, &ops(&fill, 1, 100))), "b1/k4 b1/k5 b2/k4 b2/k5 b3/k4 b3/k5");
    let fill = job("workers: 2, deal: bucket_slices, work: {fill: c}");
    assert_eq!(text(&names(&fill, &ops(&fill, 1, 2))), "b3/k1 b3/k2");
    let shifted = job("workers: 2, deal: {by: bucket_slices, shift: 1}, work: {fill: c}");
    assert_eq!(text(&names(&shifted, &ops(&shifted, 0, 2))), "b3/k1 b3/k2");
}

#[test]
fn a_sequence_goes_on_over_all_workers_and_all_names() {
    let pick = "pick: {bucket: sequential, key: sequential}";
    let mix = job(&format!("workers: 4, work: {{objects: [{{get: c, {pick}}}]}}"));
    // Operation n of worker w has number w + 4n of one count over 21 names.
    let of = |worker| text(&names(&mix, &ops(&mix, worker, 6)));
    assert_eq!(of(0), "b1/k1 b1/k5 b2/k2 b2/k6 b3/k3 b3/k7");
    assert_eq!(of(1), "b1/k2 b1/k6 b2/k3 b2/k7 b3/k4 b1/k1");
    for deal in ["bucket_slices", "member_slices"] {
        let text_of = format!("workers: 3, deal: {deal}, work: {{objects: [{{get: c, {pick}}}]}}");
        let mix = job(&text_of);
        let first = text(&names(&mix, &ops(&mix, 1, 4)));
        let right = match deal {
            "bucket_slices" => "b2/k1 b2/k2 b2/k3 b2/k4",
            _ => "b1/k4 b1/k5 b2/k4 b2/k5",
        };
        assert_eq!(first, right, "{deal}");
    }
    let key = "pick: {bucket: uniform, key: sequential}";
    let mix = job(&format!("workers: 3, work: {{objects: [{{get: c, {key}}}]}}"));
    let keys = |worker| -> Vec<String> {
        names(&mix, &ops(&mix, worker, 3)).into_iter().map(|(_, key)| key).collect()
    };
    assert_eq!([keys(0), keys(2)].concat(), ["k1", "k4", "k7", "k3", "k6", "k2"]);
}

#[test]
fn what_is_picked_stays_in_the_slice_and_comes_alike() {
    let mix = job("workers: 3, deal: member_slices, work: {objects: [{get: c}]}");
    let drawn = names(&mix, &ops(&mix, 0, 9_000));
    let mut counts: BTreeMap<&(String, String), u32> = BTreeMap::new();
    drawn.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    // Nine names, each expected 1000 times with a standard deviation of 30.
    assert_eq!(counts.len(), 9, "{counts:?}");
    assert!(counts.values().all(|count| count.abs_diff(1_000) < 150), "{counts:?}");
    assert!(counts.keys().all(|(_, key)| ["k1", "k2", "k3"].contains(&&**key)), "{counts:?}");
}

#[test]
fn weights_of_shares_are_exact() {
    let shares = "{shares: [{1..2: 1}, {3..7: 3}]}";
    let mix = job(&format!(
        "work: {{objects: [{{get: c, pick: {{bucket: {{shares: [{{2..2: 1}}]}}, key: {shares}}}}}]}}"
    ));
    let drawn = names(&mix, &ops(&mix, 0, 40_000));
    assert!(drawn.iter().all(|(bucket, _)| bucket == "b2"));
    let low = drawn.iter().filter(|(_, key)| ["k1", "k2"].contains(&&**key)).count();
    // A quarter of 40,000 with a standard deviation of 87.
    assert!(low.abs_diff(10_000) < 400, "{low}");
}

#[test]
fn a_removal_takes_every_name_once_whatever_is_there() {
    for (deal, batch, workers) in [
        ("by_member", 1, 4),
        ("member_slices", 1, 9),
        ("bucket_slices", 2, 2),
        ("member_slices", 4, 2),
    ] {
        let work = format!("{{remove: {{sets: c, batch: {batch}}}}}");
        let job = job(&format!("workers: {workers}, deal: {deal}, work: {work}"));
        let all: Vec<PlannedOp> =
            (0..workers).flat_map(|worker| ops(&job, worker, 1_000)).collect();
        let removed = names(&job, &all);
        let distinct: HashSet<&(String, String)> = removed.iter().collect();
        assert_eq!((removed.len(), distinct.len()), (21, 21), "{deal} {batch}");
        assert_eq!(job.ops_count(), Some(all.len() as u64), "{deal} {batch}");
        assert!(all.iter().all(|op| op.kind == OpKind::Delete));
    }
}

#[test]
fn deletes_of_a_mix_come_again_and_again_and_end_by_themselves_never() {
    let mix = job("workers: 2, work: {objects: [{delete: c}]}");
    assert!(!mix.source(WorkerId(0)).may_end());
    assert_eq!(mix.ops_count(), None);
    let deletes = ops(&mix, 0, 500);
    assert_eq!(deletes.len(), 500);
    assert!(names(&mix, &deletes).into_iter().collect::<HashSet<_>>().len() == 21);
    let mixed = job("work: {objects: [{get: c, weight: 5}, {delete: c, weight: 95}]}");
    let deleted = ops(&mixed, 0, 1_000).iter().filter(|op| op.kind == OpKind::Delete).count();
    assert_eq!(deleted, 950);
}

#[test]
fn a_listing_is_of_the_bucket_that_is_picked() {
    let bucket = "pick: {bucket: {shares: [{3..3: 1}]}}";
    let mix = job(&format!("work: {{objects: [{{list: c, {bucket}}}]}}"));
    for op in ops(&mix, 0, 20) {
        let Subject::Listing { bucket, .. } = op.subject else { panic!("{op:?}") };
        assert_eq!(mix.set(op.set).buckets.name(bucket), Some("b3"));
    }
}

#[test]
fn each_write_draws_a_length_of_its_own_and_a_range_stays_within_what_is_said() {
    let mix = job(
        "work: {objects: [{put: c, size: {steps: {unit: 1KB, numbers: [{1..3: 1}, {7..7: 1}]}}, \
         pick: {bucket: uniform, key: {shares: [{1..1: 1}]}}}]}",
    );
    let sizes: HashSet<Option<u64>> = ops(&mix, 0, 200)
        .iter()
        .map(|op| match op.subject {
            Subject::Object(object, None) => object.size,
            other => panic!("{other:?}"),
        })
        .collect();
    let right = [1_000, 2_000, 3_000, 7_000].map(Some);
    assert_eq!(sizes, HashSet::from(right));
    let mix = job("work: {objects: [{get: c, range: {length: 300B, of: 1KB}}]}");
    for op in ops(&mix, 0, 200) {
        let Subject::Object(_, Some((offset, 300))) = op.subject else { panic!("{op:?}") };
        assert!(offset <= 700);
    }
}

/// Returns what is known of content by the job of the last stage, where a change came about before.
fn known(sets: &str, stages: &str, change: Option<Change>) -> Vec<Verify> {
    let text = format!("{{schema: plimsoll.workload/2, sets: {{{sets}}}, stages: [{stages}]}}");
    let placed = placed(&text);
    let changes = change.into_iter().map(|change| (SetIndex(0), change)).collect();
    let members = placed.after(&placed.members, changes).unwrap();
    let job = &placed.stages.last().unwrap().objects[0].work;
    let job = job.with_members(members);
    job.work.sets().iter().map(|set| job.verify(*set)).collect()
}

#[test]
fn what_was_filled_is_known_to_the_byte_and_nothing_else_is() {
    let fill = "{prepares: true, jobs: [{work: {fill: c}}]}";
    let get = "{duration: 1s, jobs: [{work: {objects: [{get: c}]}}]}";
    assert_eq!(known(SET, &format!("{fill}, {get}"), None), [Verify::EveryByte]);
    assert_eq!(known(SET, get, None), [Verify::IfOurs]);
    // Of one that could not be written nobody knows what is there.
    let failed = Change::Doubtful(vec![plimsoll_model::ObjectId::new(WorkerId(0), 3)]);
    assert_eq!(known(SET, &format!("{fill}, {get}"), Some(failed)), [Verify::IfOurs]);
    let off = "{duration: 1s, jobs: [{verify: false, work: {objects: [{get: c}]}}]}";
    assert_eq!(known(SET, &format!("{fill}, {off}"), None), [Verify::Nothing]);
    let parts = "{duration: 1s, jobs: [{work: {objects: [{get: c, keys: 'k{2..5}'}, \
                 {get: c, keys: 'k{5..9}'}, {get: c, buckets: 'b{3..4}'}]}}]}";
    assert_eq!(
        known(SET, &format!("{fill}, {parts}"), None),
        [Verify::EveryByte, Verify::IfOurs, Verify::IfOurs]
    );
    // Another set of the same names that holds something else may be in its place.
    for (content, right) in
        [("content_seed: 1", Verify::EveryByte), ("content: zero", Verify::IfOurs)]
    {
        let other = format!(
            "d: {{named: {{bucket: 'b{{2..9}}', key: 'k{{1..7}}'}}, size: 1KB, touch: true, \
             shared: true, {content}}}"
        );
        let stages = format!(
            "{fill}, {{duration: 1s, jobs: [{{name: a, work: {{objects: [{{get: c}}]}}}}, \
             {{name: b, work: {{objects: [{{put: d}}]}}}}]}}"
        );
        assert_eq!(known(&format!("{SET}, {other}"), &stages, None), [right], "{content}");
    }
}

#[test]
fn the_lengths_that_there_are_are_those_of_all_that_writes() {
    let put = "workers: 1, work: {objects: [{put: c, size: 5B}, {put: c, size: 9B}]}";
    let get = "workers: 1, work: {objects: [{get: c}]}";
    let both = jobs(SET, &[put, get]);
    let shared = both[1].set(SetIndex(0)).shared.as_ref().unwrap();
    assert_eq!(shared.lengths, [crate::SizeDist::Fixed(5), crate::SizeDist::Fixed(9)]);
    assert_eq!((shared.wrong_length(9), shared.wrong_length(8)), (None, Some(9)));
    assert_eq!((shared.least(), shared.only_length()), (5, None));
    // Who only reads relies on what the set says.
    let alone = job(get);
    let shared = alone.set(SetIndex(0)).shared.as_ref().unwrap();
    assert_eq!((shared.only_length(), &*shared.home), (Some(1_000), "bench"));
}

proptest! {
    /// Whatever the deal and however the workers are cut among machines, a fill makes every name
    /// once: each worker's operations are a function of its number.
    #[test]
    fn a_fill_makes_every_name_once(
        buckets in 1u32..9,
        keys in 1u32..30,
        workers in 1u32..20,
        deal in prop::sample::select(vec!["by_member", "bucket_slices", "member_slices"]),
    ) {
        let set = format!(
            "c: {{named: {{bucket: 'b{{1..{buckets}}}', key: 'k{{1..{keys}}}'}}, size: 0B, \
             touch: true, shared: true}}"
        );
        let job = jobs(&set, &[&format!("workers: {workers}, deal: {deal}, work: {{fill: c}}")])
            .remove(0);
        let mut lens = Vec::new();
        let mut all = Vec::new();
        for worker in 0..workers {
            let mine = names(&job, &ops(&job, worker, 10_000));
            lens.push(mine.len());
            all.extend(mine);
        }
        let distinct: HashSet<&(String, String)> = all.iter().collect();
        prop_assert_eq!(all.len() as u32, buckets * keys);
        prop_assert_eq!(distinct.len(), all.len());
        prop_assert!(lens.is_sorted_by(|a, b| a >= b), "{:?}", lens);
    }
}

#[test]
fn names_stay_members_whatever_became_of_them() {
    let stages = "{prepares: true, jobs: [{workers: 2, deal: member_slices, work: {fill: c}}]}, \
                  {duration: 1s, jobs: [{work: {objects: [{get: c}]}}]}";
    let text = format!("{{schema: plimsoll.workload/2, sets: {{{SET}}}, stages: [{stages}]}}");
    let fill = Arc::clone(&placed(&text).stages[0].objects[0].work);
    let mut source = fill.source(WorkerId(1));
    let first = source.next_op().unwrap();
    source.completed(&first, false, Moment::EPOCH);
    let mut doubtful = Vec::new();
    for (_, change) in source.changes() {
        let Change::Doubtful(ids) = change else { panic!("{change:?}") };
        doubtful.extend(ids);
    }
    // The one that failed, and the next, which it has not come to.
    assert_eq!(doubtful.len(), 2);
    let set = fill.set(SetIndex(0));
    let after = Members::all().after(set, vec![Change::Doubtful(doubtful)]).unwrap();
    assert_eq!(after.count(set), 21);
    let remove = job("work: {remove: c}");
    let mut source = remove.source(WorkerId(0));
    while let Some(op) = source.next_op() {
        source.completed(&op, true, Moment::EPOCH);
    }
    assert_eq!(source.changes(), []);
}

#[test]
fn members_that_are_files_have_their_names_their_sizes_and_their_bytes() {
    let set = "f: {named: {bucket: 'b{1..2}', files: [{path: /d/a.jpg, bytes: 1000}, \
               {path: /d/b.jpg, bytes: 0}, {path: /d/c.jpg, bytes: 9}]}, touch: true, \
               shared: true, hash_check: true}";
    let both = jobs(
        set,
        &[
            "workers: 2, deal: member_slices, work: {fill: f}",
            "work: {objects: [{put: f, pick: {bucket: uniform, key: sequential}}]}",
        ],
    );
    let first = ops(&both[0], 0, 100);
    assert_eq!(text(&names(&both[0], &first)), "b1/a.jpg b1/b.jpg b2/a.jpg b2/b.jpg");
    let puts = ops(&both[1], 0, 3);
    for (op, (name, start, size)) in
        puts.iter().zip([("a.jpg", 0, 1_000), ("b.jpg", 1_000, 0), ("c.jpg", 1_000, 9)])
    {
        let Subject::Object(object, None) = op.subject else { panic!("{op:?}") };
        let set = both[1].set(op.set);
        assert_eq!(names(&both[1], &[*op])[0].1, name);
        // With the guard, which is 40 bytes long.
        assert_eq!((object.size, set.file_start(object.id)), (Some(size + 40), Some(start)));
    }
    let content = crate::data::DataRule::Files { bytes: 5 };
    let generator = crate::data::Generator::with_rule(1, &content, b"abcde".to_vec());
    let mut bytes = [0; 2];
    generator.content_from(2).fill(1, &mut bytes);
    assert_eq!(&bytes, b"de");
}
