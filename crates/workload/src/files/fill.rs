//! Filling files: pieces of 64 MiB, dealt to the workers in turn. Files that belong to workers are
//! filled by those that stand for them, so that whoever carries a part of the workers out has them.

use std::ops::Range;
use std::sync::Arc;

/// The part of a file that one worker fills in one go.
const PIECE_BYTES: u64 = 64 << 20;

/// What a job fills.
#[derive(Debug)]
pub(super) struct FillPlan {
    /// Files that are filled by the same workers, none of them empty.
    rows: Vec<Row>,
    block: u64,
    piece: u64,
    /// By worker: the rows that it has a part in, in order.
    rows_of: Vec<Vec<u32>>,
    /// The files of each worker.
    pub(super) lists: Vec<Arc<[u32]>>,
}

/// Files in a row, whose pieces are dealt in turn to some of the workers.
#[derive(Debug)]
struct Row {
    workers: Range<u32>,
    /// The files with bytes in them, in order.
    files: Vec<Filled>,
    pieces_count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Filled {
    file: u32,
    size: u64,
    /// The number of its first piece.
    first: u64,
}

/// Files to be filled, each with its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ToFill {
    /// Those that belong to nobody alone.
    pub(super) common: Vec<(u32, u64)>,
    /// Of sets whose files belong to workers: by worker, its files.
    pub(super) owned: Vec<Vec<Vec<(u32, u64)>>>,
}

impl ToFill {
    /// Returns all of them.
    pub(super) fn files(&self) -> impl Iterator<Item = &(u32, u64)> {
        self.common.iter().chain(self.owned.iter().flatten().flatten())
    }
}

/// Returns which of so many workers fill what belongs to one of so many owners: those that stand
/// where it stands among all of them.
fn fillers(owner: u32, owners: u32, workers: u32) -> Range<u32> {
    let at = |owner: u32| (u64::from(owner) * u64::from(workers) / u64::from(owners)) as u32;
    let start = at(owner);
    start..at(owner + 1).max(start + 1)
}

impl FillPlan {
    /// Returns the plan for so many workers to fill files by blocks of `block` bytes.
    pub(super) fn new(files: &ToFill, block: u32, workers: u32) -> Self {
        let block = u64::from(block);
        let piece = (PIECE_BYTES - PIECE_BYTES % block).max(block);
        let mut plan = Self {
            rows: Vec::new(),
            block,
            piece,
            // Bound: workers, which the plan limits.
            rows_of: vec![Vec::new(); workers as usize],
            lists: Vec::new(),
        };
        // Bound: workers, which the plan limits.
        let mut lists = vec![Vec::new(); workers as usize];
        plan.add(&files.common, 0..workers, &mut lists);
        for owners in &files.owned {
            for (owner, files) in (0..).zip(owners) {
                plan.add(files, fillers(owner, owners.len() as u32, workers), &mut lists);
            }
        }
        plan.lists = lists.into_iter().map(Arc::from).collect();
        plan
    }

    /// Adds files that these workers fill.
    fn add(&mut self, files: &[(u32, u64)], workers: Range<u32>, lists: &mut [Vec<u32>]) {
        let mut row = Row { workers, files: Vec::new(), pieces_count: 0 };
        let of = row.workers.len() as u64;
        for &(file, size) in files.iter().filter(|(_, size)| *size > 0) {
            let first = row.pieces_count;
            row.files.push(Filled { file, size, first });
            let count = size.div_ceil(self.piece);
            for number in first..first + count.min(of) {
                lists[row.workers.start as usize + (number % of) as usize].push(file);
            }
            row.pieces_count += count;
        }
        // Who comes before as many pieces as there are has at least one.
        let busy =
            row.workers.clone().take(usize::try_from(row.pieces_count).unwrap_or(usize::MAX));
        for worker in busy {
            self.rows_of[worker as usize].push(self.rows.len() as u32);
        }
        if row.pieces_count > 0 {
            self.rows.push(row);
        }
    }

    /// Returns where a worker begins.
    pub(super) fn begin(&self, worker: u32) -> FillState {
        let mut state = FillState { worker, row: 0, piece: 0, index: 0, done: 0 };
        state.begin_row(self);
        state
    }
}

/// How far a worker is.
#[derive(Clone, Copy, Debug)]
pub(super) struct FillState {
    worker: u32,
    /// Which of its rows it is at.
    row: usize,
    /// The number of the piece under work.
    piece: u64,
    /// The file it is in, or one before it.
    index: usize,
    /// Bytes of the piece done.
    done: u64,
}

impl FillState {
    /// Returns the row that is under work.
    fn row<'p>(&self, plan: &'p FillPlan) -> Option<&'p Row> {
        let row = *plan.rows_of[self.worker as usize].get(self.row)?;
        Some(&plan.rows[row as usize])
    }

    /// Begins the row that is under work with the first piece that is the worker's.
    fn begin_row(&mut self, plan: &FillPlan) {
        let first = self.row(plan).map_or(0, |row| self.worker - row.workers.start);
        (self.piece, self.index, self.done) = (first.into(), 0, 0);
    }

    /// Returns the next block as file, offset and length.
    pub(super) fn next(&mut self, plan: &FillPlan) -> Option<(u32, u64, u32)> {
        let row = self.row(plan)?;
        while row.files.get(self.index + 1).is_some_and(|next| next.first <= self.piece) {
            self.index += 1;
        }
        let Filled { file, size, first } = row.files[self.index];
        let begin = (self.piece - first) * plan.piece;
        let end = (begin + plan.piece).min(size);
        let offset = begin + self.done;
        let len = plan.block.min(end - offset);
        self.done += len;
        if offset + len == end {
            self.piece += row.workers.len() as u64;
            self.done = 0;
            if self.piece >= row.pieces_count {
                self.row += 1;
                self.begin_row(plan);
            }
        }
        Some((file, offset, len as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn common(files: &[(u32, u64)]) -> ToFill {
        ToFill { common: files.to_vec(), ..ToFill::default() }
    }

    fn blocks(plan: &FillPlan, worker: u32) -> Vec<(u32, u64, u32)> {
        let mut state = plan.begin(worker);
        std::iter::from_fn(|| state.next(plan)).collect()
    }

    #[test]
    fn pieces_are_dealt_in_turn() {
        // Pieces: file 7 has 0..64, 64..128, 128..130 MiB; file 8 none; file 9 its 3 bytes.
        let plan = FillPlan::new(&common(&[(7, 130 * MIB), (8, 0), (9, 3)]), 32 << 20, 2);
        let full = 32 << 20;
        let first = [(7, 0, full), (7, 32 * MIB, full), (7, 128 * MIB, 2 << 20)];
        let second = [(7, 64 * MIB, full), (7, 96 * MIB, full), (9, 0, 3)];
        assert_eq!(blocks(&plan, 0), first);
        assert_eq!(blocks(&plan, 1), second);
        assert_eq!([&plan.lists[0][..], &plan.lists[1][..]], [&[7][..], &[7, 9]]);
    }

    #[test]
    fn every_byte_is_filled_once() {
        // A block that does not divide 64 MiB, and one that is larger.
        for block in [3_000_000, 100 << 20] {
            let sizes = [(0, 200 * MIB + 17), (1, 64 * MIB), (2, 1)];
            let owned = vec![vec![vec![(3, 90 * MIB)], vec![], vec![(4, 2), (5, 64 * MIB)]]];
            let files = ToFill { owned, ..common(&sizes) };
            let sizes: Vec<(u32, u64)> = files.files().copied().collect();
            for workers in [1, 2, 3, 7] {
                let plan = FillPlan::new(&files, block, workers);
                let mut all: Vec<_> =
                    (0..workers).flat_map(|worker| blocks(&plan, worker)).collect();
                all.sort_unstable();
                assert_filled_once(&sizes, &all, block);
            }
        }
    }

    #[track_caller]
    fn assert_filled_once(sizes: &[(u32, u64)], all: &[(u32, u64, u32)], block: u32) {
        for (file, size) in sizes {
            let mut at = 0;
            for &(_, offset, len) in all.iter().filter(|(of, ..)| of == file) {
                assert_eq!(offset, at);
                assert!(len <= block);
                at += u64::from(len);
            }
            assert_eq!(at, *size);
        }
    }

    #[test]
    fn what_belongs_to_workers_is_filled_by_those_that_stand_for_them() {
        let owners = |count: u32| vec![(0..count).map(|of| vec![(of, MIB)]).collect()];
        let files_of = |owners_count: u32, workers: u32| -> Vec<Vec<u32>> {
            let files = ToFill { owned: owners(owners_count), ..ToFill::default() };
            let plan = FillPlan::new(&files, 1 << 20, workers);
            let lists: Vec<Vec<u32>> = plan.lists.iter().map(|list| list.to_vec()).collect();
            let files = |worker| blocks(&plan, worker).into_iter().map(|(file, ..)| file);
            let done: Vec<Vec<u32>> = (0..workers).map(|worker| files(worker).collect()).collect();
            assert_eq!(done, lists);
            done
        };
        assert_eq!(files_of(3, 3), [[0], [1], [2]]);
        assert_eq!(files_of(4, 2), [[0, 1], [2, 3]]);
        assert_eq!(files_of(2, 4), [vec![0], vec![], vec![1], vec![]]);
        assert_eq!(files_of(5, 2), [vec![0, 1, 2], vec![3, 4]]);
        // A large file of one worker is filled by all that stand for it, and by nobody else.
        let owned = vec![vec![vec![(0, 200 * MIB)], vec![(1, 65 * MIB)]]];
        let plan = FillPlan::new(&ToFill { owned, ..ToFill::default() }, 1 << 20, 6);
        let lists: Vec<&[u32]> = plan.lists.iter().map(|list| &**list).collect();
        assert_eq!(lists, [&[0][..], &[0], &[0], &[1], &[1], &[]]);
    }
}
