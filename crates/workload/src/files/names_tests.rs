//! mdtest's names, worked out by hand.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::{WorkerId, WrongKind};

use super::super::{FileOp, FilePlan, FileStream};
use super::*;
use crate::plan::WorkloadFile;
use crate::plan::spec::{FilesTarget, OneOrMany, SetSpec, TargetSpec, Targets, TreeSet};
use crate::testing::{files_of, on_files};

const TOP: &str = "/mnt/a/plimsoll/r/test-dir.0-0";
const CREATE: NameAct = NameAct::Create { bytes: 0, fsync: false };

fn text(path: &[u8]) -> String {
    let (zero, path) = path.split_last().unwrap();
    assert_eq!(*zero, 0);
    String::from_utf8(path.to_vec()).unwrap()
}

/// Returns kind, path and new path of each operation; paths from the tree's top directory on.
fn steps(mut stream: FileStream) -> Vec<(OpKind, String, String)> {
    let mut found = Vec::new();
    let below = stream.directory().unwrap().strip_prefix(TOP).unwrap().to_owned();
    let whole = |path: &[u8]| format!("{below}/{}", text(path)).trim_start_matches('/').to_owned();
    let (mut path, mut new_path) = (Vec::new(), Vec::new());
    while let Some(FileOp::Name(op)) = stream.next_op() {
        stream.path(&op, &mut path);
        let mut to = String::new();
        if op.kind == OpKind::Rename {
            stream.new_path(&op, &mut new_path);
            to = whole(&new_path);
        }
        found.push((op.kind, whole(&path), to));
        stream.completed(&FileOp::Name(op), true);
    }
    found
}

fn paths(stream: FileStream) -> Vec<String> {
    steps(stream).into_iter().map(|(_, path, _)| path).collect()
}

fn tree(depth: u32, branching: u32, entries: u64) -> TreeOf {
    TreeOf {
        name: Some("test-dir.0-0".to_owned()),
        depth,
        branching,
        entries,
        leaves_only: false,
        per_worker: false,
        shared_names: false,
        of_directories: false,
    }
}

/// Returns the work in the words of a workload.
fn work(act: NameAct, more: &str) -> String {
    let what = match act {
        NameAct::MakeTree => "make_tree: t".to_owned(),
        NameAct::Create { bytes, fsync } => format!("create: t, bytes: {bytes}, fsync: {fsync}"),
        NameAct::Stat => "stat: t".to_owned(),
        NameAct::Open { bytes } => format!("open: t, bytes: {bytes}"),
        NameAct::Rename => "rename: t".to_owned(),
        NameAct::Remove => "remove: t".to_owned(),
        NameAct::RemoveTree => "remove_tree: t".to_owned(),
    };
    format!("work: {{names: {{{what}{more}}}}}")
}

fn workload(tree: &TreeOf, workers: u32, stages: &[(NameAct, u32)]) -> WorkloadFile {
    let stage = |(act, shift): &(NameAct, u32)| {
        format!("{{workers: {workers}, deal: {{shift: {shift}}}, {}}}", work(*act, ""))
    };
    let stages: Vec<String> = stages.iter().map(stage).collect();
    let mut file = on_files("t: {tree: {entries: 1}}", &stages);
    let set = SetSpec::Tree(TreeSet { on: None, tree: tree.clone() });
    file.sets = [("t".to_owned(), set)].into_iter().collect();
    file
}

fn plan(tree: &TreeOf, workers: u32, stages: &[(NameAct, u32)]) -> FilePlan {
    files_of(&workload(tree, workers, stages))
}

fn stream(plan: &FilePlan, stage: usize, clone: u32) -> FileStream {
    plan.stream(stage, WorkerId(clone), 0)
}

#[test]
fn a_small_tree_by_hand() {
    let tree = tree(2, 2, 2);
    let acts = [NameAct::MakeTree, CREATE, NameAct::Remove, NameAct::RemoveTree];
    let plan = plan(&tree, 1, &acts.map(|act| (act, 0)));
    let directories = [
        "mdtest_tree.0",
        "mdtest_tree.0/mdtest_tree.1",
        "mdtest_tree.0/mdtest_tree.2",
        "mdtest_tree.0/mdtest_tree.1/mdtest_tree.3",
        "mdtest_tree.0/mdtest_tree.1/mdtest_tree.4",
        "mdtest_tree.0/mdtest_tree.2/mdtest_tree.5",
        "mdtest_tree.0/mdtest_tree.2/mdtest_tree.6",
    ];
    assert_eq!(stream(&plan, 0, 0).directory(), Some(TOP));
    assert_eq!(paths(stream(&plan, 0, 0)), directories);
    let entry = |item: usize| format!("{}/file.mdtest.0.{item}", directories[item / 2]);
    let entries: Vec<String> = (0..14).map(entry).collect();
    assert_eq!(paths(stream(&plan, 1, 0)), entries);
    assert_eq!(paths(stream(&plan, 2, 0)), entries);
    let removed: Vec<String> = directories.iter().rev().map(|path| (*path).to_owned()).collect();
    assert_eq!(paths(stream(&plan, 3, 0)), removed);
    assert_eq!(tree.directories_count(), Some(7));
    assert_eq!(tree.entries_count(), Some(14));
}

#[test]
fn counts_are_those_of_mdtest() {
    // One directory; z + 1 in a chain; (b^(z+1) - 1) / (b - 1).
    for (depth, branching, directories, leaves) in
        [(0, 5, 1, 1), (4, 1, 5, 1), (2, 3, 13, 9), (3, 2, 15, 8), (1, 100, 101, 100)]
    {
        let mut tree = tree(depth, branching, 10);
        assert_eq!(tree.directories_count(), Some(directories));
        assert_eq!(tree.entries_count(), Some(10 * directories));
        tree.leaves_only = true;
        assert_eq!(tree.entries_count(), Some(10 * leaves));
    }
    assert_eq!(tree(40, 2, 1).directories_count(), None);
    assert_eq!(tree(u32::MAX, 1, 1).directories_count(), None);
}

#[test]
fn entries_of_the_lowest_level_have_the_numbers_of_a_full_tree() {
    let mut tree = tree(2, 2, 2);
    tree.leaves_only = true;
    let found = paths(stream(&plan(&tree, 1, &[(CREATE, 0)]), 0, 0));
    assert_eq!(found.len(), 8);
    assert_eq!(found[0], "mdtest_tree.0/mdtest_tree.1/mdtest_tree.3/file.mdtest.0.6");
    assert_eq!(found[7], "mdtest_tree.0/mdtest_tree.2/mdtest_tree.6/file.mdtest.0.13");
}

#[test]
fn a_tree_with_one_branch_is_a_chain() {
    let found = paths(stream(&plan(&tree(2, 1, 1), 1, &[(CREATE, 0)]), 0, 0));
    let expected = [
        "mdtest_tree.0/file.mdtest.0.0",
        "mdtest_tree.0/mdtest_tree.1/file.mdtest.0.1",
        "mdtest_tree.0/mdtest_tree.1/mdtest_tree.2/file.mdtest.0.2",
    ];
    assert_eq!(found, expected);
}

#[test]
fn each_clone_makes_its_own_tree_and_clone_0_a_common_one() {
    let stages = [(NameAct::MakeTree, 0), (CREATE, 0)];
    let mut tree = tree(1, 1, 1);
    let common = plan(&tree, 2, &stages);
    assert_eq!(paths(stream(&common, 0, 0)), ["mdtest_tree.0", "mdtest_tree.0/mdtest_tree.1"]);
    assert_eq!(paths(stream(&common, 0, 1)), [""; 0]);
    let entries = ["mdtest_tree.0/file.mdtest.1.0", "mdtest_tree.0/mdtest_tree.1/file.mdtest.1.1"];
    assert_eq!(paths(stream(&common, 1, 1)), entries);
    tree.per_worker = true;
    let own = plan(&tree, 2, &stages);
    assert_eq!(paths(stream(&own, 0, 1)), ["mdtest_tree.1.0", "mdtest_tree.1.0/mdtest_tree.1.1"]);
    let entries =
        ["mdtest_tree.1.0/file.mdtest.1.0", "mdtest_tree.1.0/mdtest_tree.1.1/file.mdtest.1.1"];
    assert_eq!(paths(stream(&own, 1, 1)), entries);
}

#[test]
fn a_shift_moves_names_by_n_and_trees_by_one_more() {
    let mut tree = tree(1, 2, 3);
    tree.per_worker = true;
    let acts = [CREATE, NameAct::Stat, NameAct::Open { bytes: 0 }, NameAct::Remove];
    for (clones, n) in [(4, 1), (6, 2), (3, 2)] {
        let stages: Vec<_> =
            acts.iter().zip(0..).map(|(act, number)| (*act, number * n % clones)).collect();
        let plan = plan(&tree, clones, &stages);
        let mut made: Option<BTreeMap<String, u32>> = None;
        for stage in 0..4 {
            let mut found = BTreeMap::new();
            for clone in 0..clones {
                let names = (clone + stage * n) % clones;
                let trees = (clone + (stage + 1) * n) % clones;
                let all = paths(stream(&plan, stage as usize, clone));
                assert_eq!(all[0], format!("mdtest_tree.{trees}.0/file.mdtest.{names}.0"));
                found.extend(all.into_iter().map(|path| (path, clone)));
            }
            assert_eq!(found.len(), clones as usize * 9);
            let made = made.get_or_insert_with(|| found.clone());
            // Everything that was made is found again, by another clone.
            assert!(made.keys().eq(found.keys()), "stage {stage}");
            if stage * n % clones > 0 {
                assert!(made.iter().all(|(path, maker)| found[path] != *maker));
            }
        }
    }
}

#[test]
fn trees_of_clones_are_dealt_to_the_directories() {
    let mut tree = tree(0, 1, 1);
    tree.per_worker = true;
    let mut file = workload(&tree, 3, &[(NameAct::MakeTree, 0), (CREATE, 0)]);
    let directory = vec!["/mnt/a".to_owned(), "/mnt/b/".to_owned()];
    file.targets = Targets::One(TargetSpec::Files(FilesTarget { directory: OneOrMany(directory) }));
    let plan = files_of(&file);
    let directory = |stage, clone| stream(&plan, stage, clone).directory().unwrap().to_owned();
    assert_eq!(directory(0, 1), "/mnt/b/plimsoll/r/test-dir.0-0");
    assert_eq!(directory(1, 1), "/mnt/b/plimsoll/r/test-dir.0-0/mdtest_tree.1.0");
    assert_eq!(directory(1, 2), "/mnt/a/plimsoll/r/test-dir.0-0/mdtest_tree.2.0");
    let tops = ["/mnt/a/plimsoll/r/test-dir.0-0", "/mnt/b/plimsoll/r/test-dir.0-0"];
    assert_eq!(plan.directories_before(0), tops);
    assert_eq!(plan.run_directories(), ["/mnt/a/plimsoll/r", "/mnt/b/plimsoll/r"]);
}

#[test]
fn renaming_goes_round() {
    let mut tree = tree(1, 1, 2);
    tree.of_directories = true;
    let plan = plan(&tree, 1, &[(NameAct::Rename, 0), (NameAct::Remove, 0), (CREATE, 0)]);
    let path = |item: u32| match item {
        0 | 1 => format!("mdtest_tree.0/dir.mdtest.0.{item}"),
        _ => format!("mdtest_tree.0/mdtest_tree.1/dir.mdtest.0.{item}"),
    };
    let spare = "mdtest_tree.0/dir.mdtest.0.0-XX".to_owned();
    let expected = [
        (OpKind::Rename, path(0), spare.clone()),
        (OpKind::Rename, path(1), path(0)),
        (OpKind::Rename, path(2), path(1)),
        (OpKind::Rename, spare, path(2)),
    ];
    assert_eq!(steps(stream(&plan, 0, 0)), expected);
    assert!(steps(stream(&plan, 1, 0)).iter().all(|(kind, ..)| *kind == OpKind::Rmdir));
    assert!(steps(stream(&plan, 2, 0)).iter().all(|(kind, ..)| *kind == OpKind::Mkdir));
    let mut two = tree.clone();
    (two.depth, two.entries) = (0, 1);
    let one = self::plan(&two, 1, &[(NameAct::Rename, 0)]);
    assert_eq!(steps(stream(&one, 0, 0)), []);
}

#[test]
fn what_is_counted_ahead_is_what_the_clones_do() {
    for case in 0..8 {
        let mut tree = tree(2, 2, 3);
        (tree.leaves_only, tree.per_worker, tree.shared_names) =
            (case & 1 > 0, case & 2 > 0, case & 4 > 0);
        let acts = [NameAct::MakeTree, CREATE, NameAct::Remove, NameAct::RemoveTree];
        // A tree of each clone's own holds no names that others share.
        if tree.shared_names && tree.per_worker {
            continue;
        }
        let plan = plan(&tree, 2, &acts.map(|act| (act, 0)));
        for (stage, act) in acts.into_iter().enumerate() {
            let done = [0, 1].map(|clone| paths(stream(&plan, stage, clone)));
            let ahead = [0, 1].map(|clone| tree.operations_count(act, clone));
            assert_eq!(ahead, [done[0].len() as u64, done[1].len() as u64], "{tree:?} {act:?}");
            let distinct: BTreeSet<_> = done.iter().flatten().collect();
            assert_eq!(tree.names_count(act, 2), distinct.len() as u64, "{tree:?} {act:?}");
        }
    }
    // All of a tree is made, whatever is put into its lowest directories only.
    let mut tree = tree(2, 2, 3);
    tree.leaves_only = true;
    assert_eq!(tree.names_count(NameAct::MakeTree, 2), 7);
}

#[test]
fn shared_names_are_made_by_all_and_removed_once() {
    let mut tree = tree(0, 1, 2);
    tree.shared_names = true;
    let plan = plan(&tree, 2, &[(CREATE, 0), (NameAct::Remove, 0)]);
    let entries = ["mdtest_tree.0/file.mdtest.shared.0", "mdtest_tree.0/file.mdtest.shared.1"];
    for (stage, clone) in [(0, 0), (0, 1), (1, 0)] {
        assert_eq!(paths(stream(&plan, stage, clone)), entries);
    }
    assert_eq!(paths(stream(&plan, 1, 1)), [""; 0]);
}

#[test]
fn shuffled_entries_are_the_same_ones() {
    let tree = tree(2, 3, 20);
    let in_order = paths(stream(&plan(&tree, 1, &[(NameAct::Stat, 0)]), 0, 0));
    let mut shuffles = on_files(
        "t: {tree: {entries: 1}}",
        &[format!("{{{}}}", work(NameAct::Stat, ", shuffled: true"))],
    );
    shuffles.sets = workload(&tree, 1, &[(NameAct::Stat, 0)]).sets;
    let plan = files_of(&shuffles);
    let mut shuffled = paths(stream(&plan, 0, 0));
    assert_eq!(shuffled, paths(stream(&plan, 0, 0)));
    assert_ne!(shuffled, in_order);
    shuffled.sort();
    let mut sorted = in_order;
    sorted.sort();
    assert_eq!(shuffled, sorted);
}

#[test]
fn whoever_seeks_long_for_a_name_may_stop_in_between() {
    let tree = tree(0, 1, 300_000);
    let plan = plan(&tree, 1, &[(CREATE, 0), (NameAct::Stat, 0)]);
    // Only the last one is there.
    let mut created = stream(&plan, 0, 0);
    while let Some(op) = created.next_op() {
        let is_last = created.work_left(1) == 0;
        created.completed(&op, is_last);
    }
    assert!(!created.is_seeking());
    let mut seeking = stream(&plan, 1, 0);
    for _ in 0..4 {
        assert!(seeking.next_op().is_none() && seeking.is_seeking());
    }
    let op = seeking.next_op().unwrap();
    assert!(!seeking.is_seeking());
    seeking.completed(&op, true);
    assert!(seeking.next_op().is_none() && !seeking.is_seeking());
}

#[test]
fn what_was_created_is_checked_when_it_is_opened() {
    let tree = tree(1, 2, 3);
    let create = NameAct::Create { bytes: 3_901, fsync: false };
    let stages =
        [(create, 0), (NameAct::Open { bytes: 5_000 }, 1), (NameAct::Open { bytes: 100 }, 1)];
    let plan = plan(&tree, 2, &stages);
    let generator = Generator::new(7);
    let mut files = BTreeMap::new();
    for clone in 0..2 {
        let mut stream = stream(&plan, 0, clone);
        let mut path = Vec::new();
        while let Some(FileOp::Name(op)) = stream.next_op() {
            let mut bytes = vec![0; 4_096];
            stream.fill_name(&op, &generator, &mut bytes);
            stream.path(&op, &mut path);
            bytes.truncate(3_901);
            files.insert(path.clone(), bytes);
        }
    }
    assert_eq!(files.len(), 18);
    for (stage, len) in [(1, 3_901), (2, 100)] {
        let mut stream = stream(&plan, stage, 0);
        let mut path = Vec::new();
        while let Some(FileOp::Name(op)) = stream.next_op() {
            stream.path(&op, &mut path);
            let mut bytes = files[&path][..len].to_vec();
            assert_eq!(stream.check_name(&op, &generator, &bytes), None);
            let short = stream.check_name(&op, &generator, &bytes[1..]).unwrap();
            assert_eq!(short.kind, WrongKind::Shifted, "{}", short.text);
            bytes[50] ^= 1;
            let wrong = stream.check_name(&op, &generator, &bytes).unwrap();
            let path = format!("{TOP}/mdtest_tree.0/{}", text(&path));
            let expected = format!("byte 50 of `{path}` is wrong: 1 flipped bit in 1 byte");
            assert_eq!(wrong.text, expected);
        }
    }
}

#[test]
fn numbers_are_written_whole() {
    for number in [0, 9, 10, 1_234_567_890, u64::MAX] {
        let mut path = b"x".to_vec();
        push_number(&mut path, number);
        assert_eq!(path, format!("x{number}").into_bytes());
    }
}

/// Returns a stream's operations one by one; those of which `fails` tells so fail.
fn run(mut stream: FileStream, fails: impl Fn(usize) -> bool) -> Vec<String> {
    let (mut found, mut path) = (Vec::new(), Vec::new());
    while let Some(FileOp::Name(op)) = stream.next_op() {
        stream.path(&op, &mut path);
        let text = text(&path);
        stream.completed(&FileOp::Name(op), !fails(found.len()));
        found.push(text.rsplit('/').next().unwrap().to_owned());
    }
    found
}

#[test]
fn what_was_not_made_is_looked_at_by_nobody() {
    let acts = [
        NameAct::MakeTree,
        CREATE,
        NameAct::Stat,
        NameAct::Open { bytes: 0 },
        NameAct::Rename,
        NameAct::Remove,
        NameAct::RemoveTree,
    ];
    // Directories 0, 1 and 2 with entries 0-1, 2-3 and 4-5.
    let plan = plan(&tree(1, 2, 2), 1, &acts.map(|act| (act, 0)));
    let stage = |stage: usize| stream(&plan, stage, 0);
    // Directory 2 fails: nothing is made in it. Entry 3 fails.
    assert_eq!(run(stage(0), |number| number == 2).len(), 3);
    assert_eq!(stage(1).work_left(u64::MAX), 4);
    let entries = |numbers: &[u32]| -> Vec<String> {
        numbers.iter().map(|number| format!("file.mdtest.0.{number}")).collect()
    };
    assert_eq!(run(stage(1), |number| number == 3), entries(&[0, 1, 2, 3]));
    for look in [2, 3] {
        assert_eq!(stage(look).work_left(u64::MAX), 3);
        assert_eq!(run(stage(look), |_| false), entries(&[0, 1, 2]));
    }
    // 0 to the spare name, 1 to 0, 2 to 1. The spare name would go to the last but one, whose
    // directory is not there; it stays, and so does the directory that it lies in.
    assert_eq!(run(stage(4), |_| false), entries(&[0, 1, 2]));
    assert_eq!(run(stage(5), |_| false), entries(&[0, 1]));
    // Entry 3 failed and may be there nevertheless: nothing is empty.
    assert_eq!(run(stage(6), |_| false), [""; 0]);
}

#[test]
fn an_operation_that_never_began_leaves_no_work() {
    let stages = ["make_tree: t", "create: t", "stat: t", "remove: t", "remove_tree: t"];
    let stages = stages.map(|act| {
        let ops = if act == "create: t" { "ops: {each: 3}, " } else { "" };
        format!("{{workers: 2, {ops}work: {{names: {{{act}}}}}}}")
    });
    let plan = files_of(&on_files("t: {tree: {entries: 10}}", &stages));
    for worker in 0..2 {
        run(stream(&plan, 0, worker), |_| false);
    }
    for worker in 0..2 {
        assert_eq!(run(stream(&plan, 1, worker), |_| false).len(), 3);
    }
    for worker in 0..2 {
        assert_eq!(run(stream(&plan, 2, worker), |_| false).len(), 3);
    }
    // One of them is not removed: the directory is not empty and stays.
    assert_eq!(run(stream(&plan, 3, 0), |number| number == 1).len(), 3);
    assert_eq!(run(stream(&plan, 3, 1), |_| false).len(), 3);
    assert_eq!(stream(&plan, 4, 0).next_op(), None);
}

#[test]
fn what_another_process_made_is_there() {
    let plan = plan(&tree(0, 1, 4), 2, &[(CREATE, 0), (NameAct::Stat, 1), (NameAct::Stat, 1)]);
    run(stream(&plan, 0, 0), |number| number > 0);
    // Worker 1 looks at what worker 0 made here, worker 0 at what worker 1 made elsewhere.
    assert_eq!(run(stream(&plan, 1, 1), |_| false).len(), 1);
    assert_eq!(run(stream(&plan, 1, 0), |_| false).len(), 4);
}
