//! Checks how stages use trees of names over the course of a run: nothing is looked at before it is
//! made, nothing is made twice, and a directory that is removed is empty.

use super::{Checked, Context};
use crate::files::NameAct;
use crate::plan::checked::{Job, Members, Stage, Tree};
use crate::plan::path::InvalidField;
use crate::plan::work::Work;

/// A job on names, with its tree.
struct OnTree<'a> {
    job: &'a Job,
    name: &'a str,
    tree: &'a Tree,
    act: NameAct,
}

/// Of how many workers names are there at a moment of the run: of trees their entries, of those
/// without entries their directories.
#[derive(Default)]
struct Known(Vec<(Tree, u32)>);

impl Known {
    fn of(&self, tree: &Tree) -> u32 {
        self.0.iter().find(|(known, _)| known == tree).map_or(0, |(_, workers)| *workers)
    }

    fn set(&mut self, tree: Tree, workers: u32) {
        self.0.retain(|(known, _)| *known != tree);
        self.0.push((tree, workers));
    }

    /// Tells whether anything lies in a tree's directories.
    fn is_in(&self, directories: &Tree) -> bool {
        self.0.iter().any(|(tree, workers)| {
            tree != directories && tree.without_entries() == *directories && *workers > 0
        })
    }
}

/// Checks all stages.
pub(super) fn check(cx: &Context<'_>, stages: &[Stage]) -> Checked<()> {
    let mut known = Known::default();
    for stage in stages {
        let jobs: Vec<OnTree<'_>> = stage.jobs.iter().filter_map(|job| on_tree(cx, job)).collect();
        for (number, on) in jobs.iter().enumerate() {
            check_alone(on)?;
            jobs[..number].iter().try_for_each(|other| check_beside(on, other))?;
            check_step(on, &mut known)?;
        }
    }
    check_shifts(cx, stages)
}

fn on_tree<'a>(cx: &'a Context<'_>, job: &'a Job) -> Option<OnTree<'a>> {
    let Work::Names { set, act, .. } = &job.work else { return None };
    let set = &cx.sets[set.0];
    let Members::Tree(tree) = &set.members else { return None };
    Some(OnTree { job, name: &set.name, tree, act: *act })
}

impl OnTree<'_> {
    fn refuse(&self, reason: String) -> InvalidField {
        self.job.path.field("work.names").refuse(reason)
    }

    /// Tells whether the work leaves the names as they are.
    const fn looks(&self) -> bool {
        matches!(self.act, NameAct::Stat | NameAct::Open { .. })
    }
}

fn check_alone(on: &OnTree<'_>) -> Checked<()> {
    if on.job.depth.get() > 1 {
        let reason = "must be 1: a worker does one thing to a name at a time; more workers do more";
        return Err(on.job.path.field("depth").refuse(reason));
    }
    if on.act == NameAct::Rename && on.tree.shape.shared_names && on.job.workers.get() > 1 {
        let reason = format!("the workers share the names of `{}`; only one can rename", on.name);
        return Err(on.refuse(reason));
    }
    Ok(())
}

/// Refuses a job beside another one that changes what it works on, or the other way round.
fn check_beside(on: &OnTree<'_>, other: &OnTree<'_>) -> Checked<()> {
    let is_apart = match on.act.is_of_tree() || other.act.is_of_tree() {
        true => on.tree.without_entries() != other.tree.without_entries(),
        false => on.tree != other.tree,
    };
    if is_apart || on.looks() && other.looks() {
        return Ok(());
    }
    Err(on.refuse(format!(
        "job `{}` of the stage also works on the names of `{}`; work that changes names must be \
        alone on them",
        other.job.name, on.name
    )))
}

/// Checks that what a job needs is there, and takes note of what it leaves.
fn check_step(on: &OnTree<'_>, known: &mut Known) -> Checked<()> {
    let (name, tree, shape) = (on.name, on.tree, &on.tree.shape);
    let directories = tree.without_entries();
    let of_trees = if shape.per_worker { on.job.workers.get() } else { 1 };
    let of_names = if shape.shared_names { 1 } else { on.job.workers.get() };
    let need = |there: u32, needed: u32, what: &str, made_by: &str| match there {
        0 => Err(on.refuse(format!("tree `{name}` has no {what} yet; no stage before {made_by}"))),
        _ if there < needed => {
            Err(on.refuse(format!("tree `{name}` has {what} of {there} workers, not of {needed}")))
        }
        _ => Ok(()),
    };
    let (trees, entries) = (known.of(&directories), known.of(tree));
    let need_entries = || need(entries, of_names, "entries", "has `create`");
    let need_trees = || need(trees, of_trees, "directories", "has `make_tree`");
    match on.act {
        NameAct::MakeTree if trees > 0 => {
            return Err(on.refuse(format!("the directories of tree `{name}` already exist")));
        }
        NameAct::MakeTree => known.set(directories, of_trees),
        NameAct::Create { .. } => {
            need_trees()?;
            if entries > 0 {
                return Err(on.refuse(format!("the entries of tree `{name}` already exist")));
            }
            known.set(tree.clone(), of_names);
        }
        NameAct::Stat | NameAct::Open { .. } | NameAct::Rename => need_entries()?,
        NameAct::Remove => {
            need_entries()?;
            if of_names >= entries {
                known.set(tree.clone(), 0);
            }
        }
        NameAct::RemoveTree => {
            need_trees()?;
            if known.is_in(&directories) {
                return Err(on.refuse(format!(
                    "tree `{name}` still has entries; only empty directories can be removed"
                )));
            }
            if of_trees >= trees {
                known.set(directories, 0);
            }
        }
    }
    Ok(())
}

/// Refuses other numbers of workers on a tree where one works on what another made.
fn check_shifts(cx: &Context<'_>, stages: &[Stage]) -> Checked<()> {
    let all = stages.iter().flat_map(|stage| &stage.jobs).filter_map(|job| on_tree(cx, job));
    // A tree that all share is made and removed by one worker.
    let is_by_all = |on: &OnTree<'_>| on.tree.shape.per_worker || !on.act.is_of_tree();
    let all: Vec<OnTree<'_>> = all.filter(is_by_all).collect();
    for on in all.iter().filter(|on| on.job.deal.shift > 0) {
        let workers = on.job.workers;
        let other = all.iter().find(|it| it.tree == on.tree && it.job.workers != workers);
        if let Some(other) = other {
            let reason = format!(
                "must be {workers}, as in the job that works on what another worker of tree `{}` \
                 made",
                on.name
            );
            return Err(other.job.path.field("workers").refuse(reason));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "trees_tests.rs"]
mod tests;
