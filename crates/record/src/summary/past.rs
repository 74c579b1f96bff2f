//! The minutes of a time line that are over, in a file of the run directory while the run goes on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use plimsoll_model::SeriesKey;
use plimsoll_stats::{Stretch, Timeline};

use crate::folder::Folder;

/// What the file is called for the moment between which it is made and has no name any more.
pub(super) const PAST_NAME: &str = "minutes.tmp";
/// What stands where there is nothing before.
const NOTHING: u64 = u64::MAX;
/// How many bytes stand before each stretch: where the one before of its series stands, its number,
/// and how many bytes its cells and its times take.
const HEAD_BYTES: usize = 24;

/// Stretches one after the other, each of which says where the one before it of its series is. So
/// what is held in memory does not grow, however many there are.
///
/// The file has no name, and is gone when the process has ended, however that was: it is of use to
/// nobody else, as the op log has every operation.
#[derive(Debug)]
pub(super) struct PastFile {
    file: File,
    size: u64,
    /// Where the last stretch of each series is.
    last: BTreeMap<SeriesKey, u64>,
}

/// Where a stretch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Which one it is.
    pub(super) stretch: u32,
    at: u64,
    cells_bytes: u32,
    times_bytes: u32,
}

impl PastFile {
    /// Makes the file.
    pub(super) fn create(folder: &Folder) -> io::Result<Self> {
        folder.remove(PAST_NAME)?;
        let file = folder.create(PAST_NAME)?;
        folder.remove(PAST_NAME)?;
        Ok(Self { file, size: 0, last: BTreeMap::new() })
    }

    /// Adds all of a time line that is closed. Where that fails, nothing of it is there.
    pub(super) fn add(&mut self, past: &Timeline<SeriesKey>) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut last = self.last.clone();
        for (key, series) in past.series() {
            for (index, stretch) in series.stretches() {
                let at = self.size + bytes.len() as u64;
                let previous = last.insert(key, at).unwrap_or(NOTHING);
                let head = bytes.len();
                // Bound: the head of what is in memory.
                bytes.resize(head + HEAD_BYTES, 0);
                let cells_bytes = stretch.write(&mut bytes);
                let times_bytes = bytes.len() - head - HEAD_BYTES - cells_bytes;
                let small = |number: usize| u32::try_from(number).expect("4 GiB are far away");
                let stretch = u32::try_from(index).expect("no run lasts for 8,000 years");
                let place = Place {
                    stretch,
                    at,
                    cells_bytes: small(cells_bytes),
                    times_bytes: small(times_bytes),
                };
                bytes[head..head + HEAD_BYTES].copy_from_slice(&place.head(previous));
            }
        }
        // What was written of stretches for which there was no room is written over.
        self.file.write_all_at(&bytes, self.size)?;
        self.size += bytes.len() as u64;
        self.last = last;
        Ok(())
    }

    /// Returns the series of which there is something.
    pub(super) fn keys(&self) -> impl Iterator<Item = SeriesKey> {
        self.last.keys().copied()
    }

    /// Returns where the stretches of a series are, by their numbers. What came late for one is
    /// another of the same number.
    pub(super) fn places(&self, key: SeriesKey) -> io::Result<Vec<Place>> {
        let mut places = Vec::new();
        let mut at = self.last.get(&key).copied().unwrap_or(NOTHING);
        while at != NOTHING {
            let mut head = [0; HEAD_BYTES];
            self.file.read_exact_at(&mut head, at)?;
            let (previous, place) = Place::of_head(&head, at);
            places.push(place);
            at = previous;
        }
        places.sort_unstable();
        Ok(places)
    }

    /// Reads the cells of a stretch.
    pub(super) fn cells(&self, place: &Place) -> io::Result<Stretch> {
        // Bound: what `add` has written, to a file of this process alone.
        let mut cells = vec![0; place.cells_bytes as usize];
        self.file.read_exact_at(&mut cells, place.at + HEAD_BYTES as u64)?;
        Stretch::read(&cells, &[]).ok_or_else(changed)
    }

    /// Reads the times of a stretch.
    pub(super) fn times(&self, place: &Place) -> io::Result<Stretch> {
        // Bound: what `add` has written, to a file of this process alone.
        let mut times = vec![0; place.times_bytes as usize];
        let at = place.at + HEAD_BYTES as u64 + u64::from(place.cells_bytes);
        self.file.read_exact_at(&mut times, at)?;
        Stretch::read(&[], &times).ok_or_else(changed)
    }
}

impl Place {
    fn head(&self, previous: u64) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&previous.to_le_bytes());
        let numbers = [self.stretch, self.cells_bytes, self.times_bytes];
        for (place, number) in head[8..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        head
    }

    fn of_head(head: &[u8; HEAD_BYTES], at: u64) -> (u64, Self) {
        let (previous, rest) = head.split_first_chunk().expect("eight bytes are there");
        let mut numbers = rest.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let mut next = || numbers.next().expect("four numbers are there");
        let (stretch, cells_bytes, times_bytes) = (next(), next(), next());
        (u64::from_le_bytes(*previous), Self { stretch, at, cells_bytes, times_bytes })
    }
}

fn changed() -> io::Error {
    io::Error::other("the minutes of the run that were kept on the disk are not as written")
}
