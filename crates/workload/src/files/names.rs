//! The names of mdtest's trees and what is done to them, in order.
//!
//! A tree's directories are numbered from the top: those below number k are b·k + 1 to b·k + b.
//! Entry i lies in directory i / (entries of a directory), so that with entries in the lowest
//! directories only, the first entry has the number that it would have in a full tree. Of worker c
//! in a stage with shift s, the names are those of worker c + s. With a tree for each worker, the
//! names of worker q lie in tree q + N, N being the first shift above 0 that any stage of the tree
//! has: mdtest shifts directories by one N more than names each time, so that here, too, each stage
//! finds what another made.

use std::sync::Arc;

use plimsoll_model::OpKind;

use super::laws::Scatter;
use super::present::{self, Inside, Present};
use super::versions::{Block, describe, with_length};
use crate::data::{Generator, Wrong};
use crate::plan::Tree;
use crate::plan::spec::TreeOf;
use crate::{Random, hash_text};

/// The number of a directory's name itself instead of an entry in it.
const DIRECTORY: u64 = u64::MAX;
/// The number of the spare name, of which there is one for each worker.
const SPARE: u64 = u64::MAX - 1;
/// The version of what a created file holds.
const VERSION: u32 = 1;
/// The most names without work that one call skips, so that the caller can check the clock.
const SOUGHT_AT_ONCE: u32 = 1 << 16;

/// What is done to names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameAct {
    /// Makes the directories of the tree.
    MakeTree,
    /// Makes the entries; files get so many bytes.
    Create {
        /// Bytes written to each file.
        bytes: u32,
        /// Whether each is put on the medium before it is closed.
        fsync: bool,
    },
    /// Reads the entries' attributes.
    Stat,
    /// Opens files, reads so many bytes, closes them.
    Open {
        /// Bytes read of each file.
        bytes: u32,
    },
    /// Gives entries other names: entry 0 a spare one, entry i that of entry i - 1, and at last the
    /// spare one that of the last but one, as mdtest does.
    Rename,
    /// Removes the entries.
    Remove,
    /// Removes the directories of the tree.
    RemoveTree,
}

impl NameAct {
    /// Returns how many bytes of each file are written or read.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Create { bytes, .. } | Self::Open { bytes } => bytes,
            _ => 0,
        }
    }

    /// Returns the kind of its operations.
    pub const fn kind(self, of_directories: bool) -> OpKind {
        match self {
            Self::MakeTree => OpKind::Mkdir,
            Self::RemoveTree => OpKind::Rmdir,
            Self::Create { .. } if of_directories => OpKind::Mkdir,
            Self::Create { .. } => OpKind::Create,
            Self::Stat => OpKind::Stat,
            Self::Open { .. } => OpKind::Open,
            Self::Rename => OpKind::Rename,
            Self::Remove if of_directories => OpKind::Rmdir,
            Self::Remove => OpKind::Unlink,
        }
    }

    /// Tells whether it is done to the tree's directories instead of the entries in them.
    pub(crate) const fn is_of_tree(self) -> bool {
        matches!(self, Self::MakeTree | Self::RemoveTree)
    }
}

impl TreeOf {
    /// A path with more levels is too long for any system.
    const DEPTH_MAX: u32 = 200;

    /// Returns how many directories the tree has, the top one included; `None` beyond 2^32 or a
    /// depth that no path can have.
    pub fn directories_count(&self) -> Option<u64> {
        if self.depth > Self::DEPTH_MAX {
            return None;
        }
        let mut level: u64 = 1;
        let mut count: u64 = 1;
        for _ in 0..self.depth {
            level = level.checked_mul(u64::from(self.branching))?;
            count = count.checked_add(level)?;
            if count > 1 << 32 {
                return None;
            }
        }
        Some(count)
    }

    /// Returns the number of the first directory that holds entries.
    pub(super) fn first_with_entries(&self) -> u64 {
        match (self.leaves_only, self.branching, self.depth) {
            (false, ..) | (_, _, 0) => 0,
            (true, 1, depth) => u64::from(depth),
            (true, branching, depth) => {
                let branching = u64::from(branching);
                (branching.pow(depth) - 1) / (branching - 1)
            }
        }
    }

    /// Returns how many entries each worker has.
    pub fn entries_count(&self) -> Option<u64> {
        let directories = self.directories_count()? - self.first_with_entries();
        directories.checked_mul(self.entries)
    }

    /// Returns how many operations a worker has.
    pub fn operations_count(&self, act: NameAct, worker: u32) -> u64 {
        let entries = self.entries_count().unwrap_or(0);
        match act {
            _ if act.is_of_tree() && (self.per_worker || worker == 0) => {
                self.directories_count().unwrap_or(0)
            }
            NameAct::MakeTree | NameAct::RemoveTree => 0,
            NameAct::Remove if self.shared_names && worker > 0 => 0,
            NameAct::Rename if entries < 2 => 0,
            _ => entries,
        }
    }

    /// Returns how many names all workers work on; one that several share counts once.
    pub fn names_count(&self, act: NameAct, workers: u32) -> u64 {
        let (each, is_common) = match act.is_of_tree() {
            true => (self.directories_count(), !self.per_worker),
            false => (self.entries_count(), self.shared_names),
        };
        each.unwrap_or(0).saturating_mul(if is_common { 1 } else { u64::from(workers) })
    }
}

/// What a stage's names need from the whole plan.
#[derive(Clone, Debug)]
pub(super) struct NamesPlan {
    pub(super) tree: Tree,
    pub(super) act: NameAct,
    /// By how many workers the names are moved on.
    pub(super) shift: u32,
    pub(super) shuffled: bool,
    pub(super) workers: u32,
    /// By how many workers a tree's number is ahead of that of the names in it.
    pub(super) tree_ahead: u32,
    /// The bytes of each file as far as stages before this one tell; `None` where they do not.
    pub(super) written: Option<u32>,
    pub(super) run: Arc<str>,
    /// Which directories and which entries are there; the same in all stages.
    pub(super) directories: Arc<Present>,
    pub(super) entries: Arc<Present>,
    /// What all lies in the directories.
    pub(super) inside: Arc<[Inside]>,
}

/// One operation on a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameOp {
    /// What it does.
    pub kind: OpKind,
    /// Bytes that a CREATE writes or an OPEN reads.
    pub bytes: u32,
    /// Whether a CREATE puts the file on the medium before it is closed.
    pub fsync: bool,
    item: u64,
    /// The directory that the item lies in.
    node: u64,
    /// The name that a RENAME gives.
    to: u64,
}

impl NameOp {
    /// Returns the number of the item among those of its worker.
    pub fn number(&self) -> u64 {
        self.item
    }
}

/// The operations of one worker on names.
#[derive(Clone, Debug)]
pub(super) struct Names {
    shape: TreeOf,
    kind: OpKind,
    act: NameAct,
    /// What the paths are relative to.
    directory: String,
    /// From `plimsoll/<run>/` to that directory, as content is named.
    key_prefix: String,
    /// `mdtest_tree.` or `mdtest_tree.3.`.
    tree_name: Vec<u8>,
    /// `file.mdtest.3.` and the like.
    entry_name: Vec<u8>,
    order: Option<Scatter>,
    written: Option<u32>,
    first_item: u64,
    next: u64,
    count: u64,
    seeks: bool,
    /// The path up to the entry's number in the directory of the latest operation.
    prefix: Vec<u8>,
    prefix_node: u64,
    /// The next entry's directory and how many entries of it are left, where they come in order.
    node: u64,
    left_in_node: u64,
    directories: Arc<Present>,
    entries: Arc<Present>,
    inside: Arc<[Inside]>,
    workers: u64,
    /// Whose tree and whose names these are, as [`Present`] counts them.
    of_tree: u64,
    of_names: u64,
}

impl Names {
    /// Returns the operations of a worker.
    pub(super) fn new(plan: &NamesPlan, worker: u32, random: &mut Random) -> Self {
        let NamesPlan { tree, act, workers, .. } = plan;
        let (shape, workers) = (&tree.shape, u64::from(*workers));
        let (of_tree, of_names) = plan.whose(worker);
        let tree_name = match shape.per_worker {
            true => format!("mdtest_tree.{of_tree}."),
            false => "mdtest_tree.".to_owned(),
        };
        let what = if shape.of_directories { "dir" } else { "file" };
        let entry_name = match shape.shared_names {
            true => format!("{what}.mdtest.shared."),
            false => format!("{what}.mdtest.{of_names}."),
        };
        let base = &tree.directories[of_tree as usize % tree.directories.len()];
        let mut key_prefix = format!("plimsoll/{}/{}", plan.run, tree.name);
        if !act.is_of_tree() {
            key_prefix = format!("{key_prefix}/{tree_name}0");
        }
        let count = shape.operations_count(*act, worker);
        let order = plan.shuffled.then(|| Scatter::new(random.next_u64(), count.max(1)));
        let first = shape.first_with_entries();
        let (of_tree, of_names) = plan.places(worker);
        match act {
            NameAct::MakeTree => plan.directories.keep(of_tree, plan.directories_count()),
            NameAct::Create { .. } => plan.entries.keep(of_names, plan.entries_count()),
            _ => {}
        }
        let mut names = Self {
            kind: act.kind(shape.of_directories),
            act: *act,
            directory: format!("{}/{key_prefix}", base.trim_end_matches('/')),
            key_prefix,
            tree_name: tree_name.into_bytes(),
            entry_name: entry_name.into_bytes(),
            order,
            written: plan.written,
            first_item: first * shape.entries,
            next: 0,
            count,
            seeks: false,
            prefix: Vec::new(),
            prefix_node: u64::MAX,
            node: first,
            left_in_node: shape.entries,
            shape: shape.clone(),
            directories: Arc::clone(&plan.directories),
            entries: Arc::clone(&plan.entries),
            inside: Arc::clone(&plan.inside),
            workers,
            of_tree,
            of_names,
        };
        names.remember(first);
        names
    }

    /// Returns how many operations are left, or `most` if they are more.
    pub(super) fn left(&self, most: u64) -> u64 {
        let mut rest = self.clone();
        let has_work = |op: &NameOp| match self.act {
            // Those before make room for those that follow.
            NameAct::MakeTree | NameAct::Rename => true,
            NameAct::RemoveTree => self.directories().has(op.node),
            _ => self.has_work(op),
        };
        let rest = std::iter::from_fn(|| rest.advance()).filter(has_work);
        rest.take(usize::try_from(most).unwrap_or(usize::MAX)).count() as u64
    }

    /// Returns the next operation; `None` at the end, and where it is [being
    /// sought](Self::is_seeking).
    #[inline]
    pub(super) fn next(&mut self) -> Option<NameOp> {
        self.seeks = false;
        for _ in 0..SOUGHT_AT_ONCE {
            let op = self.advance()?;
            if self.has_work(&op) {
                self.begin(&op);
                if op.node != self.prefix_node {
                    self.remember(op.node);
                }
                return Some(op);
            }
        }
        self.seeks = true;
        None
    }

    /// Returns whether the last call ended after it had skipped many names without work. The next
    /// call continues behind them.
    pub(super) fn is_seeking(&self) -> bool {
        self.seeks
    }

    /// Returns the operation that comes next in order, whether there is work for it or not.
    #[inline]
    fn advance(&mut self) -> Option<NameOp> {
        if self.next == self.count {
            return None;
        }
        let position = self.next;
        self.next += 1;
        let (mut item, mut to) = (DIRECTORY, DIRECTORY);
        let node = match self.act {
            NameAct::MakeTree => position,
            NameAct::RemoveTree => self.count - 1 - position,
            NameAct::Rename => {
                (item, to) = self.renamed(position);
                self.node_of(item)
            }
            _ => {
                let place = self.order.map_or(position, |order| order.at(position));
                item = self.first_item + place;
                match self.order {
                    Some(_) => self.node_of(item),
                    None => self.node_in_order(),
                }
            }
        };
        let (bytes, fsync) =
            (self.act.bytes(), matches!(self.act, NameAct::Create { fsync: true, .. }));
        Some(NameOp { kind: self.kind, bytes, fsync, item, node, to })
    }

    fn directories(&self) -> present::Names<'_> {
        self.directories.at(self.of_tree)
    }

    fn entries(&self) -> present::Names<'_> {
        self.entries.at(self.of_names)
    }

    /// Returns the number of an entry among those of the worker; the spare name has the last.
    fn entry(&self, item: u64) -> u64 {
        match item {
            SPARE => self.shape.entries_count().unwrap_or(0),
            item => item - self.first_item,
        }
    }

    /// Tells whether what an operation needs is there.
    #[inline]
    fn has_work(&self, op: &NameOp) -> bool {
        match self.act {
            NameAct::MakeTree => op.node == 0 || self.directories().has(self.parent(op.node)),
            NameAct::RemoveTree => self.directories().has(op.node) && self.is_empty(op.node),
            NameAct::Create { .. } => self.directories().has(op.node),
            NameAct::Stat | NameAct::Open { .. } | NameAct::Remove => {
                self.entries().has(self.entry(op.item))
            }
            NameAct::Rename => {
                let entries = self.entries();
                let is_there = self.directories().has(self.node_of(op.to));
                is_there && entries.has(self.entry(op.item)) && entries.is_free(self.entry(op.to))
            }
        }
    }

    fn begin(&self, op: &NameOp) {
        match self.act {
            NameAct::MakeTree => self.directories().begin(op.node),
            NameAct::Create { .. } => self.entries().begin(self.entry(op.item)),
            NameAct::Rename => self.entries().begin(self.entry(op.to)),
            _ => {}
        }
    }

    /// Takes note of an operation that succeeded.
    #[inline]
    pub(super) fn succeeded(&self, op: &NameOp) {
        match self.act {
            NameAct::MakeTree => self.directories().is_made(op.node),
            NameAct::RemoveTree => self.directories().is_gone(op.node),
            NameAct::Create { .. } => self.entries().is_made(self.entry(op.item)),
            NameAct::Remove => self.entries().is_gone(self.entry(op.item)),
            NameAct::Rename => {
                self.entries().is_gone(self.entry(op.item));
                self.entries().is_made(self.entry(op.to));
            }
            NameAct::Stat | NameAct::Open { .. } => {}
        }
    }

    /// Tells whether nothing can be in a directory any more, of those that are all to be removed.
    fn is_empty(&self, node: u64) -> bool {
        let branching = u64::from(self.shape.branching);
        let child = node.saturating_mul(branching) + 1;
        let below = child.min(self.count)..(child + branching).min(self.count);
        let mut inside = self.inside.iter();
        !self.directories().may_have(below)
            && !inside.any(|inside| inside.may_be_in(self.of_tree, self.workers, node))
    }

    const fn parent(&self, node: u64) -> u64 {
        (node - 1) / self.shape.branching as u64
    }

    /// Returns which name is given to which at a position of mdtest's chain.
    fn renamed(&self, position: u64) -> (u64, u64) {
        let item = self.first_item + position;
        match position {
            0 => (item, SPARE),
            _ if position == self.count - 1 => (SPARE, item - 1),
            _ => (item, item - 1),
        }
    }

    fn node_of(&self, item: u64) -> u64 {
        let item = if item == SPARE { self.first_item } else { item };
        item / self.shape.entries
    }

    /// Returns the directory of the next entry in order.
    fn node_in_order(&mut self) -> u64 {
        if self.left_in_node == 0 {
            self.left_in_node = self.shape.entries;
            self.node += 1;
        }
        self.left_in_node -= 1;
        self.node
    }

    /// Keeps the path of a directory's entries.
    fn remember(&mut self, node: u64) {
        let mut prefix = std::mem::take(&mut self.prefix);
        prefix.clear();
        self.push_directory(node, &mut prefix);
        prefix.extend_from_slice(&self.entry_name);
        self.prefix = prefix;
        self.prefix_node = node;
    }

    /// Appends the path from the top directory of the tree to `node`, which ends in `/`; nothing
    /// for the top directory itself.
    fn push_directory(&self, node: u64, path: &mut Vec<u8>) {
        if node == 0 {
            return;
        }
        self.push_directory(self.parent(node), path);
        path.extend_from_slice(&self.tree_name);
        push_number(path, node);
        path.push(b'/');
    }

    /// Returns what all paths are relative to.
    pub(super) fn directory(&self) -> &str {
        &self.directory
    }

    /// Writes the path of the operation's name, with a zero at its end.
    #[inline]
    pub(super) fn path(&self, op: &NameOp, path: &mut Vec<u8>) {
        self.write(op.node, op.item, path);
        path.push(0);
    }

    /// Writes the path that a RENAME gives, with a zero at its end.
    pub(super) fn new_path(&self, op: &NameOp, path: &mut Vec<u8>) {
        self.write(self.node_of(op.to), op.to, path);
        path.push(0);
    }

    #[inline]
    fn write(&self, node: u64, item: u64, path: &mut Vec<u8>) {
        path.clear();
        if item == DIRECTORY {
            self.write_directory(node, path);
            return;
        }
        if node == self.prefix_node {
            path.extend_from_slice(&self.prefix);
        } else {
            self.push_directory(node, path);
            path.extend_from_slice(&self.entry_name);
        }
        if item == SPARE {
            push_number(path, self.first_item);
            path.extend_from_slice(b"-XX");
        } else {
            push_number(path, item);
        }
    }

    /// Writes the path of a directory of the tree, seen from the one that holds the tree.
    fn write_directory(&self, node: u64, path: &mut Vec<u8>) {
        path.extend_from_slice(&self.tree_name);
        path.push(b'0');
        path.push(b'/');
        self.push_directory(node, path);
        path.pop();
    }

    fn key(&self, op: &NameOp) -> String {
        let mut path = Vec::new();
        self.write(op.node, op.item, &mut path);
        format!("{}/{}", self.key_prefix, String::from_utf8_lossy(&path))
    }

    /// Fills `buffer` with the content of a file that is created.
    pub(super) fn fill(&self, op: &NameOp, generator: &Generator, buffer: &mut [u8]) {
        if op.bytes > 0 {
            let content = generator.content(hash_text(&self.key(op)), VERSION);
            content.fill(0, &mut buffer[..op.bytes as usize]);
        }
    }

    /// Tells whether it is known what the files hold.
    pub(super) fn knows_content(&self) -> bool {
        self.written.is_some()
    }

    /// Returns what is wrong with what an OPEN read.
    pub(super) fn check(
        &self,
        op: &NameOp,
        generator: Option<&Generator>,
        bytes: &[u8],
    ) -> Option<Wrong> {
        let written = self.written.filter(|_| op.bytes > 0)?;
        let block = Block { offset: 0, len: op.bytes.min(written) };
        let asked = &bytes[..bytes.len().min(block.len as usize)];
        let path = || {
            let mut path = Vec::new();
            self.write(op.node, op.item, &mut path);
            format!("{}/{}", self.directory, String::from_utf8_lossy(&path))
        };
        let content = generator
            .map(|generator| generator.content(hash_text(&self.key(op)), VERSION))
            .filter(|content| !content.matches(0, asked));
        let wrong = content.and_then(|content| describe(&path(), &content, 0, asked));
        if wrong.is_none() && bytes.len() == block.len as usize {
            return None;
        }
        with_length(&path(), block, wrong, bytes.len())
    }
}

/// Appends a number in decimal.
#[inline]
fn push_number(path: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    path.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
