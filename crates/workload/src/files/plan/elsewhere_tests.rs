//! Parts of a plan that know of each other only what they tell.

use std::collections::BTreeMap;

use super::*;
use crate::data::Generator;
use crate::files::FileOp;
use crate::testing::{files_of, on_files};

/// Processes that carry out a plan together on one file system.
struct Parts {
    generator: Generator,
    parts: Vec<(FilePlan, Share)>,
    /// By path.
    disk: BTreeMap<String, Vec<u8>>,
}

/// What a stage did: operations that succeeded, and what is wrong with what was read.
#[derive(Debug, Default, PartialEq, Eq)]
struct Did {
    ops: Vec<String>,
    wrong: Vec<String>,
}

impl Parts {
    fn new(sets: &str, stages: &[&str], weights: &[u32]) -> Self {
        let shares = Share::by_weight(weights).unwrap();
        let part = |share| (files_of(&on_files(sets, stages)), share);
        let parts = shares.into_iter().map(part).collect();
        Self { generator: Generator::new(7), parts, disk: BTreeMap::new() }
    }

    /// Carries a stage out, one operation of each worker after the other, until every worker has
    /// done `most`; those after it fail.
    fn stage(&mut self, stage: usize, most: usize) -> Did {
        let mut did = Did::default();
        for (plan, share) in &self.parts {
            plan.expect_elsewhere(stage, *share);
        }
        let mut streams = Vec::new();
        for (part, (plan, share)) in self.parts.iter().enumerate() {
            let workers = plan.workers_in(stage, *share).into_iter();
            streams.extend(workers.map(|worker| (part, plan.stream(stage, worker, 0))));
        }
        let mut path = Vec::new();
        let (mut turn, mut goes_on) = (0, true);
        while goes_on {
            goes_on = false;
            for (part, stream) in &mut streams {
                let Some(op) = stream.next_op() else { continue };
                goes_on = true;
                let is_ok = turn < most;
                if let (true, FileOp::Block(op)) = (is_ok, op) {
                    let entry = self.parts[*part].0.table.entry(op.file);
                    let file = self.disk.entry(entry.path.clone()).or_default();
                    file.resize(file.len().max(entry.size as usize), 0);
                    let place = &mut file[op.offset as usize..][..op.len as usize];
                    match op.write {
                        true => stream.fill(&op, &self.generator, place),
                        false => {
                            let wrong = stream.check(&op, &self.generator, place);
                            did.wrong.extend(wrong.map(|wrong| wrong.text));
                        }
                    }
                }
                if let (true, FileOp::Name(op)) = (is_ok, op) {
                    stream.path(&op, &mut path);
                    let name = String::from_utf8_lossy(&path[..path.len() - 1]).into_owned();
                    did.ops.push(format!(
                        "{} {}/{name}",
                        op.kind.name(),
                        stream.directory().unwrap()
                    ));
                }
                stream.completed(&op, is_ok);
            }
            turn += 1;
        }
        drop(streams);
        let mut changes = FileChanges::default();
        for (plan, share) in &self.parts {
            changes.append(plan.changes(stage, *share, |_| most == usize::MAX));
        }
        for (plan, share) in &self.parts {
            assert!(plan.learn(stage, *share, &changes));
        }
        did.ops.sort_unstable();
        did
    }

    fn unverified(&self) -> u64 {
        self.parts.iter().map(|(plan, _)| plan.table.unverified_bytes()).sum()
    }
}

const FILLS: &str = "{workers: 2, work: {fill: f}}";
const READS: &str = "{workers: 3, work: {blocks: {on: f, read: {block: 4KiB}, repeats: false}}}";

#[test]
fn parts_need_one_file_system_only_where_they_work_on_the_same_files() {
    let crosses = |sets: &str, stages: &[&str], weights: &[u32]| {
        let plan = files_of(&on_files(sets, stages));
        plan.crosses(&Share::by_weight(weights).unwrap())
    };
    let of_workers = |workers: u32| format!("f: {{files: 2, size: 200MiB, workers: {workers}}}");
    let fills = |workers: u32| format!("{{workers: {workers}, work: {{fill: f}}}}");
    let reads = |workers: u32| {
        format!("{{workers: {workers}, work: {{blocks: {{on: f, read: {{block: 4KiB}}}}}}}}")
    };
    let all = [&[1][..], &[1, 1], &[1, 2, 0, 4], &[3, 1, 1], &[1; 9]];
    for weights in all {
        let crosses = |sets: &str, filled_by, read_by| {
            crosses(sets, &[&fills(filled_by), &reads(read_by)], weights)
        };
        let is_one = weights.len() == 1;
        // Each worker fills what it reads, whoever it is.
        assert!(!crosses(&of_workers(8), 8, 8), "{weights:?}");
        assert!(!crosses("f: {files: 3, size: 200MiB}", 1, 1), "{weights:?}");
        // All of them read the same file, or what belongs to others.
        assert_eq!(crosses("f: {files: 3, size: 200MiB}", 8, 8), !is_one, "{weights:?}");
        assert_eq!(crosses(&of_workers(4), 8, 8), !is_one, "{weights:?}");
        let one_name = "f: {files: 2, size: 1MiB, workers: 8, name: 'same.$filenum'}";
        assert_eq!(crosses(one_name, 8, 8), !is_one, "{weights:?}");
    }
    // Equal parts are cut at the same places, however many fill.
    for filled_by in [3, 6, 9, 30] {
        let stages = [&*fills(filled_by), &*reads(12)];
        assert!(!crosses(&of_workers(12), &stages, &[1, 1, 1]), "{filled_by}");
    }
}

#[test]
fn what_others_have_filled_is_checked() {
    // Two workers fill what belongs to three, so that parts have files that others have filled.
    let sets = "f: {files: 2, size: 64KiB, workers: 3}";
    for weights in [&[1][..], &[1, 2], &[1, 1, 1], &[0, 5, 1]] {
        let mut parts = Parts::new(sets, &[FILLS, READS], weights);
        assert_eq!(parts.stage(0, usize::MAX), Did::default());
        assert_eq!(parts.stage(1, usize::MAX).wrong, [""; 0]);
        assert_eq!(parts.unverified(), 0, "{weights:?}");
        for file in parts.disk.values_mut() {
            file[5_000] ^= 1;
        }
        let mut again = Parts::new(sets, &[FILLS, READS], weights);
        again.stage(0, usize::MAX);
        again.disk = parts.disk;
        assert_eq!(again.stage(1, usize::MAX).wrong.len(), 6, "{weights:?}");
    }
}

#[test]
fn of_fills_that_are_not_whole_nothing_is_known() {
    let sets = "f: {files: 2, size: 64KiB, workers: 3}";
    let mut parts = Parts::new(sets, &[FILLS, READS], &[1, 1]);
    parts.stage(0, 0);
    parts.disk.clear();
    assert_eq!(parts.stage(1, usize::MAX).wrong, [""; 0]);
    assert_eq!(parts.unverified(), 6 << 16);
}

#[test]
fn what_others_write_is_right_in_any_version_and_wrong_where_it_is_none() {
    let sets = "f: {names: [x], size: 64KiB}";
    let writes = "{workers: 3, work: {blocks: {on: f, write: {block: 4KiB}, repeats: false}}}";
    let mixed = "{workers: 3, work: {blocks: {on: f, order: uniform, repeats: false, read: {block: \
                 4KiB, percent: 50%}, write: {block: 4KiB}}}}";
    let stages = [FILLS, READS, writes, mixed, READS, mixed, READS];
    let mut parts = Parts::new(sets, &stages, &[2, 1]);
    for stage in 0..stages.len() {
        assert_eq!(parts.stage(stage, usize::MAX).wrong, [""; 0], "{stage}");
    }
    assert_eq!(parts.unverified(), 0);
    let mut parts = Parts::new(sets, &stages, &[2, 1]);
    (0..3).for_each(|stage| drop(parts.stage(stage, usize::MAX)));
    parts.disk.values_mut().for_each(|file| file[9_000] ^= 1);
    assert!(!parts.stage(4, usize::MAX).wrong.is_empty());
}

#[test]
fn names_that_others_made_are_worked_on_and_those_that_they_did_not_are_not() {
    let sets = "t: {tree: {depth: 1, branching: 2, entries: 5, per_worker: true}}";
    let names = |work: &str, shift: u32| {
        format!("{{workers: 4, deal: {{shift: {shift}}}, work: {{names: {{{work}}}}}}}")
    };
    let stages = [
        names("make_tree: t", 0),
        names("create: t", 0),
        names("stat: t", 2),
        names("remove: t, shuffled: true", 0),
        names("stat: t", 1),
        names("remove: t", 3),
        names("remove_tree: t", 0),
    ];
    let stages: Vec<&str> = stages.iter().map(String::as_str).collect();
    let of = |weights: &[u32], most: [usize; 7]| {
        let mut parts = Parts::new(sets, &stages, weights);
        let each = most.iter().enumerate();
        each.map(|(stage, most)| parts.stage(stage, *most).ops).collect::<Vec<_>>()
    };
    const ALL: usize = usize::MAX;
    // Of the fifteen names of each worker four are created, and three of these removed. Creates
    // that failed may have left something, so that no directory is taken for empty.
    let limited = ([ALL, 4, ALL, 3, ALL, ALL, ALL], [12, 16, 16, 12, 4, 4, 0]);
    let whole = ([ALL; 7], [12, 60, 60, 60, 0, 0, 12]);
    for (most, expected) in [limited, whole] {
        let alone = of(&[1], most);
        assert_eq!(alone.iter().map(Vec::len).collect::<Vec<_>>(), expected);
        for weights in [&[1, 1][..], &[1, 1, 1, 1], &[3, 1], &[0, 1, 7]] {
            assert_eq!(of(weights, most), alone, "{weights:?}");
        }
    }
}

#[test]
fn trees_that_all_share_are_known_to_all() {
    let sets = "t: {tree: {entries: 6}}, s: {tree: {entries: 6, shared_names: true}}";
    let names = |work: &str| format!("{{workers: 3, work: {{names: {{{work}}}}}}}");
    let stages = [
        names("make_tree: t"),
        names("create: t"),
        names("stat: t"),
        names("remove: t"),
        names("create: s"),
        names("stat: s"),
        names("remove: s"),
        names("remove_tree: t"),
    ];
    let stages: Vec<&str> = stages.iter().map(String::as_str).collect();
    let of = |weights: &[u32]| {
        let mut parts = Parts::new(sets, &stages, weights);
        (0..stages.len()).map(|stage| parts.stage(stage, 5).ops).collect::<Vec<_>>()
    };
    let alone = of(&[1]);
    let counts: Vec<usize> = alone.iter().map(Vec::len).collect();
    assert_eq!(counts[..3], [1, 15, 15]);
    for weights in [&[1, 2][..], &[1, 1, 1]] {
        assert_eq!(of(weights), alone, "{weights:?}");
    }
}

#[test]
fn on_names_of_who_is_gone_nobody_works() {
    let sets = "t: {tree: {entries: 5, per_worker: true}}";
    let names = |work: &str| format!("{{workers: 4, work: {{names: {{{work}}}}}}}");
    let stages = [names("make_tree: t"), names("create: t"), names("remove_tree: t")];
    let shift = "{workers: 4, deal: {shift: 1}, work: {names: {stat: t}}}";
    let stages = [&*stages[0], &*stages[1], shift, &*stages[2]];
    let mut parts = Parts::new(sets, &stages, &[1, 1]);
    parts.stage(0, usize::MAX);
    let (gone, share) = parts.parts.pop().unwrap();
    // Of four workers two are left, and of their names those of one are worked on by the other.
    assert_eq!(parts.stage(1, usize::MAX).ops.len(), 10);
    assert_eq!(parts.stage(2, usize::MAX).ops.len(), 5);
    assert_eq!(parts.stage(3, usize::MAX).ops, [""; 0]);
    drop((gone, share));
}

#[test]
fn what_means_nothing_is_refused() {
    let tree = "t: {tree: {entries: 5}}, f: {files: 1, size: 4KiB}";
    let create = "{workers: 2, work: {names: {create: t}}}";
    let plan = files_of(&on_files(tree, &[create, "{work: {fill: f}}"]));
    let names = |job, place, last| NamesThere {
        job,
        of_tree: false,
        place,
        names: Told { made: std::iter::once(0..last).collect(), begun: Vec::new() },
    };
    let told = |names| FileChanges { filled: Vec::new(), names: vec![names] };
    assert!(plan.learn(0, Share::WHOLE, &told(names(0, 1, 6))));
    for bad in [names(0, 1, 7), names(0, 2, 1), names(1, 0, 1)] {
        assert!(!plan.learn(0, Share::WHOLE, &told(bad)));
    }
    assert!(!plan.learn(1, Share::WHOLE, &told(names(0, 0, 1))), "it fills");
    let filled = |job, last| FileChanges { filled: vec![(job, 0..last)], names: Vec::new() };
    assert!(plan.learn(1, Share::WHOLE, &filled(0, 1)));
    assert!(!plan.learn(1, Share::WHOLE, &filled(0, 2)));
    assert!(!plan.learn(0, Share::WHOLE, &filled(0, 1)), "it makes names");
    // What one part tells, it tells once; whoever takes rows of names over has as much work of them
    // as they have names.
    let twice = |of: FileChanges| {
        let mut both = of.clone();
        both.append(of);
        both
    };
    assert!(plan.can_change(0, &told(names(0, 1, 6))) && plan.can_change(1, &filled(0, 1)));
    assert!(!plan.can_change(0, &twice(told(names(0, 1, 6)))));
    assert!(!plan.can_change(1, &twice(filled(0, 1))));
    let backwards = std::iter::once(std::ops::Range { start: 5, end: 2 }).collect();
    for rows in [vec![0..6, 0..6], vec![3..4, 0..1], backwards] {
        let names = Told { made: Vec::new(), begun: rows.clone() };
        let of = NamesThere { job: 0, of_tree: false, place: 1, names };
        assert!(!plan.can_change(0, &told(of)), "{rows:?}");
    }
}

#[test]
fn parts_need_one_file_system_where_they_work_on_each_others_files() {
    let crosses = |sets: &str, stages: &[&str], weights: &[u32]| {
        let plan = files_of(&on_files(sets, stages));
        plan.crosses(&Share::by_weight(weights).unwrap())
    };
    let own = "f: {files: 1, size: 4KiB, workers: 3}";
    let writes = "{workers: 3, work: {blocks: {on: f, write: {block: 4KiB}, repeats: false}}}";
    assert!(!crosses(own, &[writes, READS], &[1, 2]), "each has its own");
    assert!(crosses("f: {names: [x], size: 4KiB}", &[writes], &[1, 2]));
    assert!(!crosses("f: {names: [x], size: 4KiB}", &[writes], &[0, 2]));
    let there = "f: {paths: [/dev/x], size: 4KiB, touch: true}";
    assert!(!crosses(there, &[writes], &[1, 2]), "each machine has one");
    // Two pieces of the second worker's.
    assert!(crosses("f: {files: 2, size: 4KiB, workers: 3}", &[FILLS, READS], &[1, 2]));
    let trees = "t: {tree: {entries: 5, per_worker: true}}";
    let names = |work: &str, shift: u32| {
        format!("{{workers: 4, deal: {{shift: {shift}}}, work: {{names: {{{work}}}}}}}")
    };
    let (make, create) = (names("make_tree: t", 0), names("create: t", 0));
    let stages = [&*make, &*create, &names("stat: t", 0)];
    assert!(!crosses(trees, &stages, &[1, 1]));
    let shifted = [&*make, &*create, &names("stat: t", 2)];
    assert!(crosses(trees, &shifted, &[1, 1]));
    assert!(crosses("t: {tree: {entries: 5}}", &stages[..2], &[1, 1]), "one makes the tree");
}
