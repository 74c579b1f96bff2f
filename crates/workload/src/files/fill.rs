//! Filling files: pieces of 64 MiB of all of them in a row, dealt to the workers in turn.

use std::sync::Arc;

/// The part of a file that one worker fills in one go.
const PIECE_BYTES: u64 = 64 << 20;

/// What a job fills.
#[derive(Debug)]
pub(super) struct FillPlan {
    /// The files with bytes in them, in order.
    files: Vec<Filled>,
    block: u64,
    piece: u64,
    workers: u64,
    pieces_count: u64,
    /// The files of each worker.
    pub(super) lists: Vec<Arc<[u32]>>,
}

#[derive(Clone, Copy, Debug)]
struct Filled {
    file: u32,
    size: u64,
    /// The number of its first piece.
    first: u64,
}

impl FillPlan {
    /// Returns the plan for so many workers to fill files of these sizes by blocks of `block`
    /// bytes.
    pub(super) fn new(files: &[(u32, u64)], block: u32, workers: u32) -> Self {
        let block = u64::from(block);
        let piece = (PIECE_BYTES - PIECE_BYTES % block).max(block);
        let mut pieces_count = 0;
        let mut lists = vec![Vec::new(); workers as usize];
        let mut filled = Vec::new();
        for &(file, size) in files.iter().filter(|(_, size)| *size > 0) {
            filled.push(Filled { file, size, first: pieces_count });
            let count = size.div_ceil(piece);
            for number in pieces_count..pieces_count + count.min(u64::from(workers)) {
                lists[(number % u64::from(workers)) as usize].push(file);
            }
            pieces_count += count;
        }
        let lists = lists.into_iter().map(Arc::from).collect();
        Self { files: filled, block, piece, workers: u64::from(workers), pieces_count, lists }
    }

    /// Returns where a worker begins.
    pub(super) fn begin(&self, worker: u32) -> FillState {
        FillState { piece: u64::from(worker), index: 0, done: 0 }
    }
}

/// How far a worker is.
#[derive(Clone, Copy, Debug)]
pub(super) struct FillState {
    /// The number of the piece under work.
    piece: u64,
    /// The file it is in, or one before it.
    index: usize,
    /// Bytes of the piece done.
    done: u64,
}

impl FillState {
    /// Returns the next block as file, offset and length.
    pub(super) fn next(&mut self, plan: &FillPlan) -> Option<(u32, u64, u32)> {
        if self.piece >= plan.pieces_count {
            return None;
        }
        while plan.files.get(self.index + 1).is_some_and(|next| next.first <= self.piece) {
            self.index += 1;
        }
        let Filled { file, size, first } = plan.files[self.index];
        let begin = (self.piece - first) * plan.piece;
        let end = (begin + plan.piece).min(size);
        let offset = begin + self.done;
        let len = plan.block.min(end - offset);
        self.done += len;
        if offset + len == end {
            self.piece += plan.workers;
            self.done = 0;
        }
        Some((file, offset, len as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn blocks(plan: &FillPlan, worker: u32) -> Vec<(u32, u64, u32)> {
        let mut state = plan.begin(worker);
        std::iter::from_fn(|| state.next(plan)).collect()
    }

    #[test]
    fn pieces_are_dealt_in_turn() {
        // Pieces: file 7 has 0..64, 64..128, 128..130 MiB; file 8 none; file 9 its 3 bytes.
        let plan = FillPlan::new(&[(7, 130 * MIB), (8, 0), (9, 3)], 32 << 20, 2);
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
            let plan = FillPlan::new(&sizes, block, 3);
            let mut all: Vec<_> = (0..3).flat_map(|worker| blocks(&plan, worker)).collect();
            all.sort_unstable();
            for (file, size) in sizes {
                let mut at = 0;
                for &(_, offset, len) in all.iter().filter(|(of, ..)| *of == file) {
                    assert_eq!(offset, at);
                    assert!(len <= block);
                    at += u64::from(len);
                }
                assert_eq!(at, size);
            }
        }
    }
}
