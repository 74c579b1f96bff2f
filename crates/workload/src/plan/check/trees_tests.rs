//! What the check refuses of steps on trees of names.

use super::super::tests::{check, refused};

/// Returns a workload of steps on one tree, each a stage of two workers.
fn steps(tree: &str, steps: &[&str]) -> String {
    let stage = |step: &&str| format!("- {{jobs: [{{name: a, workers: 2, {step}}}]}}\n");
    let stages: String = steps.iter().map(stage).collect();
    format!(
        "targets: {{files: {{directory: /a}}}}\nsets: {{t: {{tree: \
        {{{tree}}}}}}}\nstages:\n{stages}"
    )
}

#[test]
fn names_are_made_before_they_are_used_and_once() {
    const MAKE: &str = "work: {names: {make_tree: t}}";
    const CREATE: &str = "work: {names: {create: t}}";
    const STAT: &str = "work: {names: {stat: t}}";
    const REMOVE: &str = "work: {names: {remove: t}}";
    const UNMAKE: &str = "work: {names: {remove_tree: t}}";
    let is_refused = |stages: &[&str], refusal: &str| {
        for tree in ["entries: 3", "entries: 3, per_worker: true"] {
            check(&[(&steps(tree, stages), refusal)]);
        }
    };
    is_refused(
        &[CREATE],
        "stages[0].jobs[0].work.names: tree `t` has no directories yet; no stage before has \
         `make_tree`",
    );
    is_refused(
        &[MAKE, STAT],
        "stages[1].jobs[0].work.names: tree `t` has no entries yet; no stage before has `create`",
    );
    is_refused(
        &[MAKE, CREATE, REMOVE, STAT],
        "stages[3].jobs[0].work.names: tree `t` has no entries yet; no stage before has `create`",
    );
    is_refused(
        &[MAKE, MAKE],
        "stages[1].jobs[0].work.names: the directories of tree `t` already exist",
    );
    is_refused(
        &[MAKE, CREATE, CREATE],
        "stages[2].jobs[0].work.names: the entries of tree `t` already exist",
    );
    is_refused(
        &[MAKE, CREATE, UNMAKE],
        "stages[2].jobs[0].work.names: tree `t` still has entries; only empty directories can be \
         removed",
    );
    is_refused(
        &[MAKE, CREATE, "depth: 2, work: {names: {stat: t}}"],
        "stages[2].jobs[0].depth: must be 1: a worker does one thing to a name at a time; more \
         workers do more",
    );
    let both = "work: {names: {remove: t}}}, {name: b, workers: 2, work: {names: {stat: t}}";
    is_refused(
        &[MAKE, CREATE, both],
        "stages[2].jobs[1].work.names: job `a` of the stage also works on the names of `t`; work \
        that changes names must be alone on them",
    );
    let all = [MAKE, CREATE, STAT, REMOVE, CREATE, REMOVE, UNMAKE, MAKE];
    for tree in ["entries: 3", "entries: 3, per_worker: true", "shared_names: true, entries: 3"] {
        assert_eq!(refused(&steps(tree, &all)), "it is sound", "{tree}");
    }
}
