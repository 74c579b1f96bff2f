//! What a process that carries out only a part of a plan has to know of the other parts: the blocks
//! that their workers fill and write, and the names that they make and remove.

use std::collections::{BTreeSet, HashMap};
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_model::WorkerId;

use super::{FilePlan, Layout};
use crate::Share;
use crate::files::fill::FillPlan;
use crate::files::names::{NameAct, NamesPlan};
use crate::files::present::{Present, Told};
use crate::files::versions::Block;
use crate::plan::Work;
use crate::plan::spec::TreeOf;

/// What the workers of a part did to files in a stage, as far as others have to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileChanges {
    /// Workers that have filled all that was theirs: of which job on files of the stage, which.
    pub filled: Vec<(usize, Range<u32>)>,
    /// Names that they worked on.
    pub names: Vec<NamesThere>,
}

/// Which names of a tree, or of a worker, are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamesThere {
    /// The job on files of the stage that worked on them.
    pub job: usize,
    /// Whether they are directories of a tree; else entries of a worker's.
    pub of_tree: bool,
    /// Whose: the number of the tree or the worker.
    pub place: u64,
    /// Which.
    pub names: Told,
}

impl FileChanges {
    /// Tells whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.filled.is_empty() && self.names.is_empty()
    }

    /// Adds those of another part.
    pub fn append(&mut self, mut other: Self) {
        self.filled.append(&mut other.filled);
        self.names.append(&mut other.names);
    }
}

impl FilePlan {
    /// Returns the workers of a stage that are in a share.
    pub fn workers_in(&self, stage: usize, share: Share) -> Vec<WorkerId> {
        let jobs = 0..self.stages[stage].jobs.len();
        jobs.flat_map(|job| self.numbers(stage, job, self.clones(stage, job, share))).collect()
    }

    /// Returns which workers of a job are in a share.
    fn clones(&self, stage: usize, job: usize, share: Share) -> Range<u32> {
        let index = self.stages[stage].jobs[job].index;
        self.plan.stages[stage].jobs[index].workers_of(share)
    }

    /// Returns the numbers in the stage of workers of a job.
    fn numbers(
        &self,
        stage: usize,
        job: usize,
        clones: impl IntoIterator<Item = u32>,
    ) -> Vec<WorkerId> {
        let first = self.stages[stage].firsts[job];
        clones.into_iter().map(|clone| WorkerId(first + clone)).collect()
    }

    /// Returns how many workers a job has.
    fn clones_count(&self, stage: usize, job: usize) -> u32 {
        let firsts = &self.stages[stage].firsts;
        firsts[job + 1] - firsts[job]
    }

    /// Tells by number which files the workers of a share work on, in any stage.
    fn files_in(&self, share: Share) -> Vec<bool> {
        let mut are_here = vec![false; self.table.len()];
        for stage in 0..self.stages.len() {
            for worker in self.workers_in(stage, share) {
                for file in self.files_of(stage, worker) {
                    are_here[*file as usize] = true;
                }
            }
        }
        are_here
    }

    /// Takes note, before a stage begins, of what workers outside of the share will write: of what
    /// stands there from now on only the content is known, not the version.
    pub fn expect_elsewhere(&self, stage: usize, share: Share) {
        if share == Share::WHOLE {
            return;
        }
        let are_here = self.files_in(share);
        for (job, of) in self.stages[stage].jobs.iter().enumerate() {
            let work = &self.plan.stages[stage].jobs[of.index].work;
            if !matches!(work, Work::Blocks(blocks) if blocks.writes()) {
                continue;
            }
            let here = self.clones(stage, job, share);
            let others = (0..self.clones_count(stage, job)).filter(|clone| !here.contains(clone));
            for worker in self.numbers(stage, job, others) {
                let files = self.files_of(stage, worker).iter();
                for file in files.filter(|file| are_here[**file as usize]) {
                    self.table.entry(*file).versions.unsettle();
                }
            }
        }
    }

    /// Returns what the workers of a share did in a stage that has ended; `is_whole` tells of a job
    /// of the plan's stage whether they did all that was theirs, and all of it well.
    pub fn changes(
        &self,
        stage: usize,
        share: Share,
        is_whole: impl Fn(usize) -> bool,
    ) -> FileChanges {
        let mut changes = FileChanges::default();
        for (job, of) in self.stages[stage].jobs.iter().enumerate() {
            let clones = self.clones(stage, job, share);
            match &of.layout {
                Layout::Fill(_) if is_whole(of.index) && !clones.is_empty() => {
                    changes.filled.push((job, clones));
                }
                Layout::Names(names) => {
                    for clone in clones {
                        names.note_changes(job, clone, &mut changes.names);
                    }
                }
                Layout::Fill(_) | Layout::Blocks(_) | Layout::Replay(..) => {}
            }
        }
        changes
    }

    /// Tells whether the workers of one part can have done this in a stage.
    pub fn can_change(&self, stage: usize, changes: &FileChanges) -> bool {
        let jobs: BTreeSet<usize> = changes.filled.iter().map(|(job, _)| *job).collect();
        let places = changes.names.iter().map(|of| (of.job, of.of_tree, of.place));
        let places: BTreeSet<(usize, bool, u64)> = places.collect();
        (jobs.len(), places.len()) == (changes.filled.len(), changes.names.len())
            && self.is_of(stage, changes)
    }

    /// Tells whether all of this means something in this plan.
    fn is_of(&self, stage: usize, changes: &FileChanges) -> bool {
        let is_filled = |(job, clones): &(usize, Range<u32>)| {
            let is_fill = matches!(self.layout(stage, *job), Some(Layout::Fill(_)));
            is_fill && clones.end <= self.clones_count(stage, *job)
        };
        let is_named = |NamesThere { job, of_tree, place, names: told }: &NamesThere| {
            let Some(Layout::Names(names)) = self.layout(stage, *job) else { return false };
            let (present, count) = names.known(*of_tree);
            *place < present.count() && told.is_within(count)
        };
        changes.filled.iter().all(is_filled) && changes.names.iter().all(is_named)
    }

    /// Takes note of what the workers of all parts did in a stage that has ended; false where that
    /// means nothing in this plan.
    pub fn learn(&self, stage: usize, share: Share, changes: &FileChanges) -> bool {
        if !self.is_of(stage, changes) {
            return false;
        }
        let are_here = self.files_in(share);
        for (job, clones) in &changes.filled {
            let Some(Layout::Fill(fill)) = self.layout(stage, *job) else { continue };
            let here = self.clones(stage, *job, share);
            for clone in clones.clone().filter(|clone| !here.contains(clone)) {
                self.note_filled(fill, clone, &are_here);
            }
        }
        let mut told: HashMap<(usize, bool, u64), Vec<&Told>> = HashMap::new();
        for NamesThere { job, of_tree, place, names } in &changes.names {
            told.entry((*job, *of_tree, *place)).or_default().push(names);
        }
        self.forget_untold(stage, &told);
        for ((job, of_tree, place), told) in &told {
            let Some(Layout::Names(names)) = self.layout(stage, *job) else { continue };
            let (present, count) = names.known(*of_tree);
            present.replace(*place, count, told);
        }
        true
    }

    /// Has names that a stage has changed, and of which nobody has told, be none that anybody works
    /// on, and such that may be there: who changed them is gone.
    fn forget_untold(&self, stage: usize, told: &HashMap<(usize, bool, u64), Vec<&Told>>) {
        for (job, of) in self.stages[stage].jobs.iter().enumerate() {
            let Layout::Names(names) = &of.layout else { continue };
            for clone in 0..self.clones_count(stage, job) {
                let Some((of_tree, place)) = names.changed_by(clone) else { continue };
                if told.contains_key(&(job, of_tree, place)) {
                    continue;
                }
                let (present, count) = names.known(of_tree);
                let anything = Told { made: Vec::new(), begun: iter::once(0..count).collect() };
                present.replace(place, count, &[&anything]);
            }
        }
    }

    fn layout(&self, stage: usize, job: usize) -> Option<&Layout> {
        self.stages[stage].jobs.get(job).map(|job| &job.layout)
    }

    fn note_filled(&self, fill: &FillPlan, clone: u32, are_here: &[bool]) {
        let mut state = fill.begin(clone);
        while let Some((file, offset, len)) = state.next(fill) {
            if are_here[file as usize] {
                let entry = self.table.entry(file);
                entry.versions.filled_elsewhere(Block { offset, len }, entry.size);
            }
        }
    }

    /// Tells whether workers of one share work on what those of another one made, so that both need
    /// the same file system. What was there before the run is each one's own.
    pub fn crosses(&self, shares: &[Share]) -> bool {
        let mut of_file: Vec<Option<usize>> = vec![None; self.table.len()];
        let mut of_names: HashMap<(*const Present, u64), usize> = HashMap::new();
        for (part, share) in shares.iter().enumerate() {
            for stage in 0..self.stages.len() {
                for worker in self.workers_in(stage, *share) {
                    for file in self.files_of(stage, worker) {
                        let is_own = !self.table.entry(*file).existing;
                        if is_own && *of_file[*file as usize].get_or_insert(part) != part {
                            return true;
                        }
                    }
                    let (job, clone) = self.job_of(stage, worker);
                    let Some(Layout::Names(names)) = self.layout(stage, job) else { continue };
                    let (of_tree, of_entries) = names.places(clone);
                    let places = [(&names.directories, of_tree), (&names.entries, of_entries)];
                    for (present, place) in places {
                        let key = (Arc::as_ptr(present), place);
                        if *of_names.entry(key).or_insert(part) != part {
                            return true;
                        }
                    }
                }
            }
        }
        false
    }
}

impl NamesPlan {
    /// Returns the workers whose tree and whose names a worker works on.
    pub(in crate::files) fn whose(&self, worker: u32) -> (u64, u64) {
        let workers = u64::from(self.workers);
        let of_names = (u64::from(worker) + u64::from(self.shift)) % workers;
        let ahead = if self.act.is_of_tree() { 0 } else { u64::from(self.tree_ahead) };
        ((of_names + ahead) % workers, of_names)
    }

    /// Returns the place of the tree and that of the names that a worker works on, as [`Present`]
    /// counts them.
    pub(in crate::files) fn places(&self, worker: u32) -> (u64, u64) {
        let (of_tree, of_names) = self.whose(worker);
        let TreeOf { per_worker, shared_names, .. } = self.tree.shape;
        (if per_worker { of_tree } else { 0 }, if shared_names { 0 } else { of_names })
    }

    /// Returns how many directories a tree has.
    pub(in crate::files) fn directories_count(&self) -> u64 {
        self.tree.shape.directories_count().unwrap_or(u64::MAX)
    }

    /// Returns how many names a worker's entries may have: one more for the spare name.
    pub(in crate::files) fn entries_count(&self) -> u64 {
        self.tree.shape.entries_count().unwrap_or(u64::MAX).saturating_add(1)
    }

    /// Returns what is known of directories of trees, or of entries, and how many of them each tree
    /// or worker has.
    fn known(&self, of_tree: bool) -> (&Present, u64) {
        match of_tree {
            true => (&self.directories, self.directories_count()),
            false => (&self.entries, self.entries_count()),
        }
    }

    /// Returns the place of the names that a worker makes or removes, and whether they are
    /// directories of a tree; `None` where it changes none.
    fn changed_by(&self, clone: u32) -> Option<(bool, u64)> {
        let has_work = self.tree.shape.operations_count(self.act, clone) > 0;
        let changes = !matches!(self.act, NameAct::Stat | NameAct::Open { .. });
        let (tree, entries) = self.places(clone);
        let of_tree = self.act.is_of_tree();
        (has_work && changes).then_some((of_tree, if of_tree { tree } else { entries }))
    }

    /// Adds the names that a worker has made or removed.
    fn note_changes(&self, job: usize, clone: u32, to: &mut Vec<NamesThere>) {
        let Some((of_tree, place)) = self.changed_by(clone) else { return };
        // Workers that share names have said the same.
        let is_told = |of: &NamesThere| (of.job, of.of_tree, of.place) == (job, of_tree, place);
        if let (false, Some(names)) =
            (to.iter().any(is_told), self.known(of_tree).0.at(place).told())
        {
            to.push(NamesThere { job, of_tree, place, names });
        }
    }
}

#[cfg(test)]
#[path = "elsewhere_tests.rs"]
mod tests;
