//! The names of mdtest's trees and what is done to them, in order.
//!
//! A tree's directories are numbered from the top: those below number k are b·k + 1 to b·k + b.
//! Entry i lies in directory i / (entries of a directory), so that with entries in the lowest
//! directories only, the first entry has the number that it would have in a full tree. Of clone c
//! in a stage with shift s, the names are those of clone c + s. With a tree for each clone, the
//! names of clone q lie in tree q + N, N being the first shift above 0 that any stage of the tree
//! has: mdtest shifts directories by one N more than names each time, so that here, too, each stage
//! finds what another made.

use std::sync::Arc;

use plimsoll_model::OpKind;

use super::laws::Scatter;
use super::spec::{NameActSpec, NamesSpec, TreeSpec};
use super::versions::{Block, describe, with_length};
use crate::data::{Generator, Wrong};
use crate::{Random, hash_text};

/// The number of a directory's name itself instead of an entry in it.
const DIRECTORY: u64 = u64::MAX;
/// The number of the spare name, of which there is one for each clone.
const SPARE: u64 = u64::MAX - 1;
/// The version of what a created file holds.
const VERSION: u32 = 1;

impl TreeSpec {
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
    fn first_with_entries(&self) -> u64 {
        match (self.leaves_only, self.branching, self.depth) {
            (false, ..) | (_, _, 0) => 0,
            (true, 1, depth) => u64::from(depth),
            (true, branching, depth) => {
                let branching = u64::from(branching);
                (branching.pow(depth) - 1) / (branching - 1)
            }
        }
    }

    /// Returns how many entries each clone has.
    pub fn entries_count(&self) -> Option<u64> {
        let directories = self.directories_count()? - self.first_with_entries();
        directories.checked_mul(self.entries_per_directory)
    }
}

impl NamesSpec {
    /// Returns how many operations a clone has.
    pub fn operations_count(&self, clone: u32) -> u64 {
        let tree = &self.tree;
        let entries = tree.entries_count().unwrap_or(0);
        match self.act {
            NameActSpec::MakeTree | NameActSpec::RemoveTree if tree.per_clone || clone == 0 => {
                tree.directories_count().unwrap_or(0)
            }
            NameActSpec::MakeTree | NameActSpec::RemoveTree => 0,
            NameActSpec::Remove if tree.shared_names && clone > 0 => 0,
            NameActSpec::Rename if entries < 2 => 0,
            _ => entries,
        }
    }

    /// Returns how many names all clones work on; one that several share counts once.
    pub fn names_count(&self, clones: u32) -> u64 {
        let tree = &self.tree;
        let (each, is_common) = match self.act {
            NameActSpec::MakeTree | NameActSpec::RemoveTree => {
                (tree.directories_count(), !tree.per_clone)
            }
            _ => (tree.entries_count(), tree.shared_names),
        };
        each.unwrap_or(0).saturating_mul(if is_common { 1 } else { u64::from(clones) })
    }
}

/// What a stage's names need from the whole plan.
#[derive(Clone, Debug)]
pub(super) struct NamesPlan {
    pub(super) spec: NamesSpec,
    pub(super) clones: u32,
    /// By how many clones a tree's number is ahead of that of the names in it.
    pub(super) tree_ahead: u32,
    /// The bytes of each file as far as stages before this one tell; `None` where they do not.
    pub(super) written: Option<u32>,
    pub(super) run: Arc<str>,
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

/// The operations of one clone on names.
#[derive(Debug)]
pub(super) struct Names {
    tree: TreeSpec,
    kind: OpKind,
    act: NameActSpec,
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
    /// The path up to the entry's number in the directory of the latest operation.
    prefix: Vec<u8>,
    prefix_node: u64,
    /// The next entry's directory and how many entries of it are left, where they come in order.
    node: u64,
    left_in_node: u64,
}

impl Names {
    /// Returns the operations of `clone`.
    pub(super) fn new(plan: &NamesPlan, clone: u32, random: &mut Random) -> Self {
        let NamesSpec { tree, act, shift, shuffled } = &plan.spec;
        let of_names = (u64::from(clone) + u64::from(*shift)) % u64::from(plan.clones);
        let makes_tree = matches!(act, NameActSpec::MakeTree | NameActSpec::RemoveTree);
        let ahead = if makes_tree { 0 } else { u64::from(plan.tree_ahead) };
        let of_tree = (of_names + ahead) % u64::from(plan.clones);
        let tree_name = match tree.per_clone {
            true => format!("mdtest_tree.{of_tree}."),
            false => "mdtest_tree.".to_owned(),
        };
        let what = if tree.of_directories { "dir" } else { "file" };
        let entry_name = match tree.shared_names {
            true => format!("{what}.mdtest.shared."),
            false => format!("{what}.mdtest.{of_names}."),
        };
        let base = &tree.directories[of_tree as usize % tree.directories.len()];
        let mut key_prefix = format!("plimsoll/{}/{}", plan.run, tree.name);
        if !makes_tree {
            key_prefix = format!("{key_prefix}/{tree_name}0");
        }
        let count = plan.spec.operations_count(clone);
        let order = shuffled.then(|| Scatter::new(random.next_u64(), count.max(1)));
        let first = tree.first_with_entries();
        let mut names = Self {
            kind: kind_of(*act, tree.of_directories),
            act: *act,
            directory: format!("{}/{key_prefix}", base.trim_end_matches('/')),
            key_prefix,
            tree_name: tree_name.into_bytes(),
            entry_name: entry_name.into_bytes(),
            order,
            written: plan.written,
            first_item: first * tree.entries_per_directory,
            next: 0,
            count,
            prefix: Vec::new(),
            prefix_node: u64::MAX,
            node: first,
            left_in_node: tree.entries_per_directory,
            tree: tree.clone(),
        };
        names.remember(first);
        names
    }

    /// Returns how many operations are left.
    pub(super) fn left(&self) -> u64 {
        self.count - self.next
    }

    /// Returns the next operation.
    #[inline]
    pub(super) fn next(&mut self) -> Option<NameOp> {
        if self.next == self.count {
            return None;
        }
        let position = self.next;
        self.next += 1;
        let (mut item, mut to) = (DIRECTORY, DIRECTORY);
        let node = match self.act {
            NameActSpec::MakeTree => position,
            NameActSpec::RemoveTree => self.count - 1 - position,
            NameActSpec::Rename => {
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
        if node != self.prefix_node {
            self.remember(node);
        }
        let (bytes, fsync) = match self.act {
            NameActSpec::Create { bytes, fsync } => (bytes, fsync),
            NameActSpec::Open { bytes } => (bytes, false),
            _ => (0, false),
        };
        Some(NameOp { kind: self.kind, bytes, fsync, item, node, to })
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
        item / self.tree.entries_per_directory
    }

    /// Returns the directory of the next entry in order.
    fn node_in_order(&mut self) -> u64 {
        if self.left_in_node == 0 {
            self.left_in_node = self.tree.entries_per_directory;
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
        self.push_directory((node - 1) / u64::from(self.tree.branching), path);
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

fn kind_of(act: NameActSpec, of_directories: bool) -> OpKind {
    match act {
        NameActSpec::MakeTree => OpKind::Mkdir,
        NameActSpec::RemoveTree => OpKind::Rmdir,
        NameActSpec::Create { .. } if of_directories => OpKind::Mkdir,
        NameActSpec::Create { .. } => OpKind::Create,
        NameActSpec::Stat => OpKind::Stat,
        NameActSpec::Open { .. } => OpKind::Open,
        NameActSpec::Rename => OpKind::Rename,
        NameActSpec::Remove if of_directories => OpKind::Rmdir,
        NameActSpec::Remove => OpKind::Unlink,
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
