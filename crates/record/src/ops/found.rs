//! What the directory of an op log holds: the numbers of its parts, and which are missing.

use std::collections::BTreeSet;

use super::{OPEN_SUFFIX, PART_PREFIX, PART_SUFFIX, TAIL_SUFFIX, part_name};
use crate::folder::Folder;
use crate::{RecordError, RunDirectory};

/// How many sentences say the same of different parts.
const SENTENCES_MAX: usize = 8;

/// The parts of an op log as the directory has them.
pub(super) struct Found {
    pub(super) closed: BTreeSet<u32>,
    /// Those that were never closed, or of which no more than the tail is there.
    pub(super) open: BTreeSet<u32>,
}

/// Numbers in a row, none of which has a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Found {
    pub(super) fn of(directory: &RunDirectory) -> Result<Self, RecordError> {
        let ops = directory.ops()?;
        Self::in_folder(&ops).map_err(|source| RecordError::io("read", ops.path(), source))
    }

    fn in_folder(ops: &Folder) -> std::io::Result<Self> {
        let (mut closed, mut open) = (BTreeSet::new(), BTreeSet::new());
        for name in ops.names()? {
            let unfinished =
                name.strip_suffix(OPEN_SUFFIX).or_else(|| name.strip_suffix(TAIL_SUFFIX));
            if let Some(number) = part_number(&name) {
                closed.insert(number);
            } else if let Some(number) = unfinished.and_then(part_number) {
                open.insert(number);
            }
        }
        open.retain(|number| !closed.contains(number));
        Ok(Self { closed, open })
    }

    /// Returns the numbers below the last that neither a closed nor an unfinished part has.
    pub(super) fn missing(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut next = 0;
        for number in self.closed.union(&self.open).copied() {
            if number > next {
                gaps.push(Gap { first: next, last: number - 1 });
            }
            next = number.saturating_add(1);
        }
        gaps
    }

    /// Takes the numbers of parts that are none of their own off the end: they say nothing of how
    /// many there were.
    pub(super) fn take_off(&mut self, copies: &BTreeSet<u32>) {
        while let Some(last) = self.closed.last().filter(|last| copies.contains(last)).copied() {
            self.closed.remove(&last);
        }
    }

    /// Returns sentences about the missing parts.
    pub(super) fn losses(&self) -> Vec<String> {
        let missing = self.missing();
        let mut losses: Vec<String> = missing.iter().take(SENTENCES_MAX).map(Gap::loss).collect();
        let rest: u64 = missing.iter().skip(SENTENCES_MAX).map(Gap::count).sum();
        if rest > 0 {
            losses.push(format!("{rest} more parts are missing: their operations are not counted"));
        }
        losses
    }
}

impl Gap {
    fn count(&self) -> u64 {
        u64::from(self.last - self.first) + 1
    }

    fn loss(&self) -> String {
        let (first, last) = (part_name(self.first), part_name(self.last));
        match self.count() {
            1 => format!("{first} is missing: its operations are not counted"),
            count => format!(
                "{first} to {last} are missing ({count} parts): their operations are not counted"
            ),
        }
    }
}

/// Returns the number of the part of that file name.
fn part_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PART_PREFIX)?.strip_suffix(PART_SUFFIX)?;
    let number = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())??;
    // Another spelling of a number would be another name of the same part.
    (part_name(number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(closed: &[u32], open: &[u32]) -> Found {
        Found { closed: closed.iter().copied().collect(), open: open.iter().copied().collect() }
    }

    #[test]
    fn gaps_are_told_as_ranges_and_cost_nothing() {
        let gap = |first, last| Gap { first, last };
        let found_ = found(&[0, 3, u32::MAX], &[1, 7]);
        assert_eq!(found_.missing(), [gap(2, 2), gap(4, 6), gap(8, u32::MAX - 1)]);
        let expected = [
            "part-000002.parquet is missing: its operations are not counted",
            "part-000004.parquet to part-000006.parquet are missing (3 parts): their operations \
             are not counted",
            "part-000008.parquet to part-4294967294.parquet are missing (4294967287 parts): their \
             operations are not counted",
        ];
        assert_eq!(found_.losses(), expected);
        assert!(found(&[0, 1], &[2]).losses().is_empty());

        let even: Vec<u32> = (1..=1_000).map(|number| number * 2).collect();
        let losses = found(&even, &[]).losses();
        assert_eq!(losses.len(), SENTENCES_MAX + 1);
        // 0 and 1 are one gap, and 3, 5, … 1,999 are 999: eight gaps are told one by one.
        assert!(losses[SENTENCES_MAX].starts_with("992 more parts are missing"), "{losses:?}");
    }

    #[test]
    fn a_part_has_one_name() {
        assert_eq!(part_number("part-000001.parquet"), Some(1));
        assert_eq!(part_number("part-4294967295.parquet"), Some(u32::MAX));
        for name in ["part-0000001.parquet", "part-1.parquet", "part-4294967296.parquet", "part-"] {
            assert_eq!(part_number(name), None, "{name}");
        }
    }
}
