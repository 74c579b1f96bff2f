//! Reads the op log back, one batch of columns at a time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use plimsoll_model::{OpOutline, OpRecord, Visit};

use super::decoded::{Batch, Decoded, Outlines, ROWS_PER_BATCH};
use super::found::Found;
use super::part::{Part, guarded};
use super::{is_closed, open_name, part_name, part_number, unsaved};
use crate::folder::Folder;
use crate::seal::DIGITS_COUNT;
use crate::{RecordError, RunDirectory};

/// How many parts of which the same is to be said are named.
const PARTS_NAMED_MAX: usize = 8;

/// The op log of a run, ready to be read.
#[derive(Debug)]
pub struct OpLog {
    ops: Arc<Folder>,
    /// In the order in which they were written.
    parts: Vec<PartPlace>,
    unfinished: usize,
    /// The run that every part must be of, as far as a manifest names it.
    run_id: Option<String>,
    threads_max: usize,
}

/// Where the rows of a part are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartPlace {
    /// In a part that is complete.
    Closed(u32),
    /// In what was saved of one that is not.
    Saved(u32),
}

/// What is left of the op log of a run that was killed, or that lost some of its files.
#[derive(Debug)]
pub struct Salvage {
    /// What can be read.
    pub log: OpLog,
    /// What cannot, a sentence each.
    pub losses: Vec<String>,
    /// Whether parts in the midst of it cannot, and not only what a run did last that was killed.
    pub has_holes: bool,
}

impl OpLog {
    /// Returns the op log of the run in `directory`.
    ///
    /// Fails when a part before others is missing, unless an unfinished part stands in its place.
    pub fn open(directory: &RunDirectory) -> Result<Self, RecordError> {
        let found = Found::of(directory)?;
        let ops = directory.ops()?;
        if let Some(gap) = found.missing().first() {
            return Err(RecordError::Missing { path: ops.path_of(&part_name(gap.first)) });
        }
        let run_id = run_id_of(directory)?;
        let parts = found.closed.iter().copied().map(PartPlace::Closed).collect();
        Ok(Self { ops, parts, unfinished: found.open.len(), run_id, threads_max: 1 })
    }

    /// Returns what is left of the op log of the run in `directory`, of parts that were never
    /// closed too, and sentences about what is not.
    ///
    /// Parts that are not as they were written are left out; pages are decoded only in a scan.
    pub fn salvage(directory: &RunDirectory) -> Result<Salvage, RecordError> {
        let mut found = Found::of(directory)?;
        let closed = found.closed.iter().copied().map(PartPlace::Closed);
        let mut parts: Vec<PartPlace> =
            closed.chain(found.open.iter().copied().map(PartPlace::Saved)).collect();
        parts.sort_by_key(|part| part.number());
        let ops = directory.ops()?;
        let run_id = run_id_of(directory)?;
        let mut log = Self { ops, parts, unfinished: found.open.len(), run_id, threads_max: 1 };
        let mut seen = Seen::default();
        let (mut unsaved, mut damages) = (Vec::new(), Vec::new());
        for place in log.parts.clone() {
            let path = log.ops.path_of(&place.name());
            match log.read(place) {
                Ok(Some(part)) => match seen.refuse(place, &part, &path) {
                    Some(damage) => damages.push(log.leave_out(&path, &damage)),
                    None => unsaved.extend(place.unsaved(Some(part.rows()))),
                },
                // It was closed since the directory was listed.
                Ok(None) | Err(RecordError::Missing { .. }) if place.is_closed_in(&log.ops) => {
                    let now = PartPlace::Closed(place.number());
                    log.parts
                        .iter_mut()
                        .filter(|each| **each == place)
                        .for_each(|each| *each = now);
                }
                Ok(None) => {
                    log.parts.retain(|each| *each != place);
                    unsaved.extend(place.unsaved(None));
                }
                Err(damage @ RecordError::Damaged { .. }) => {
                    damages.push(log.leave_out(&path, &damage));
                }
                Err(error) => return Err(error),
            }
        }
        found.take_off(&seen.copies);
        let missing = found.losses();
        let has_holes = !missing.is_empty() || !damages.is_empty();
        let losses = missing.into_iter().chain(unsaved).chain(first_of(damages)).collect();
        Ok(Salvage { log, losses, has_holes })
    }

    /// Leaves a part out of further scans, and returns the sentence that says so.
    pub fn leave_out(&mut self, part: &Path, damage: &RecordError) -> String {
        let of = part.file_name().and_then(|name| part_number(&name.to_string_lossy()));
        // Numbers first: there may be many parts, of which many are damaged.
        self.parts
            .retain(|place| Some(place.number()) != of || self.ops.path_of(&place.name()) != part);
        let reason = match damage {
            RecordError::Damaged { reason, .. } => reason.clone(),
            other => other.to_string(),
        };
        let name = part.file_name().unwrap_or_default().to_string_lossy();
        format!("{name} is damaged ({reason}): its operations are not counted")
    }

    /// Returns how many parts were never completed; [`Self::open`] passes them over.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Returns how many parts there are to be read.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Has up to so many threads read it.
    pub fn read_by(self, threads: usize) -> Self {
        Self { threads_max: threads, ..self }
    }

    /// Returns how many threads [`Self::scan_apart`] makes use of: no more than there are parts.
    pub fn threads(&self) -> usize {
        self.parts.len().min(self.threads_max).max(1)
    }

    /// Hands every operation to `visit`, part by part in the order they were written, and returns
    /// how many there were.
    pub fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<u64, RecordError> {
        let mut rows = 0;
        for place in &self.parts {
            rows += self.scan_place(*place, visit)?;
        }
        Ok(rows)
    }

    /// Hands every operation to one of `visits`, each on a thread of its own, and returns how many
    /// there were. A thread reads a part after the other and holds one in memory; whoever is free
    /// takes the next one.
    ///
    /// Fails as [`Self::scan`] does: by the first part, in the order they were written, that cannot
    /// be read.
    pub fn scan_apart(&self, visits: &mut [&mut Visit<'_>]) -> Result<u64, RecordError> {
        self.share(visits, |place, visit: &mut Visit<'_>| self.scan_place(place, visit))
    }

    /// Hands of every operation its outline to one of `visits`, as [`Self::scan_apart`] does all of
    /// it. Nothing else is decoded: damage to the other columns shows by the checksum of the part.
    pub fn scan_outlines(
        &self,
        visits: &mut [&mut Visit<'_, OpOutline>],
    ) -> Result<u64, RecordError> {
        self.share(visits, |place, visit: &mut Visit<'_, OpOutline>| {
            let (part, path) = self.part_at(place)?;
            scan_part::<Outlines<'_>>(&part, &path, visit)
        })
    }

    /// Hands every part to one of `visits`, each on a thread of its own; `scan` returns how many
    /// operations it found in it.
    fn share<V: ?Sized + Send>(
        &self,
        visits: &mut [&mut V],
        scan: impl Fn(PartPlace, &mut V) -> Result<u64, RecordError> + Sync,
    ) -> Result<u64, RecordError> {
        let next = AtomicUsize::new(0);
        let scan = |visit: &mut V| {
            let mut rows = 0;
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = self.parts.get(at) else { return Ok(rows) };
                rows += scan(*place, visit).map_err(|error| {
                    // Parts before it have all been taken, and those behind it need not be.
                    next.store(self.parts.len(), Ordering::Relaxed);
                    (at, error)
                })?;
            }
        };
        let Some((own, others)) = visits.split_first_mut() else { return Ok(0) };
        let scanned: Vec<Result<u64, (usize, RecordError)>> = thread::scope(|scope| {
            let scan = &scan;
            // Where the system has no more threads, those that there are read all parts.
            let threads = others.iter_mut().map_while(|visit| {
                let thread = thread::Builder::new().name("op-log".to_owned());
                thread.spawn_scoped(scope, move || scan(visit)).ok()
            });
            let threads: Vec<_> = threads.collect();
            let own = scan(own);
            let joined = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            std::iter::once(own).chain(joined).collect()
        });
        let (mut rows, mut failed) = (0, None);
        for scanned in scanned {
            match scanned {
                Ok(of_thread) => rows += of_thread,
                Err(error) => {
                    let is_first = failed.as_ref().is_none_or(|(at, _)| error.0 < *at);
                    failed = if is_first { Some(error) } else { failed };
                }
            }
        }
        failed.map_or(Ok(rows), |(_, error)| Err(error))
    }

    /// Hands every operation of a part to `visit`, and returns how many there were.
    fn scan_place(
        &self,
        place: PartPlace,
        visit: &mut dyn FnMut(&OpRecord),
    ) -> Result<u64, RecordError> {
        let (part, path) = self.part_at(place)?;
        scan_part::<Decoded<'_>>(&part, &path, visit)
    }

    /// Reads a part whose rows are wanted.
    fn part_at(&self, place: PartPlace) -> Result<(Part, PathBuf), RecordError> {
        let path = self.ops.path_of(&place.name());
        match self.read(place)? {
            None => Err(RecordError::Missing { path }),
            Some(part) => Ok((part, path)),
        }
    }

    /// Reads a part; `None` where nothing of it was saved.
    ///
    /// One of another run is damage, though it is whole: its moments count from another epoch.
    fn read(&self, place: PartPlace) -> Result<Option<Part>, RecordError> {
        let part = match place {
            PartPlace::Closed(number) => Some(Part::closed(&self.ops, number)?),
            PartPlace::Saved(number) => Part::saved(&self.ops, number)?,
        };
        if let (Some(part), Some(run_id)) = (&part, &self.run_id)
            && part.run_id != *run_id
        {
            let path = self.ops.path_of(&place.name());
            return Err(RecordError::damaged(&path, format!("it belongs to run {}", part.run_id)));
        }
        Ok(part)
    }
}

impl PartPlace {
    fn number(self) -> u32 {
        match self {
            Self::Closed(number) | Self::Saved(number) => number,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Closed(number) => part_name(number),
            Self::Saved(number) => open_name(number),
        }
    }

    fn is_closed_in(self, ops: &Folder) -> bool {
        matches!(self, Self::Saved(number) if is_closed(ops, number))
    }

    /// Returns the sentence about what was not saved of a part that was never closed.
    fn unsaved(self, rows_saved: Option<u64>) -> Option<String> {
        match self {
            Self::Saved(number) => Some(unsaved(number, rows_saved)),
            Self::Closed(_) => None,
        }
    }
}

/// What parts say of each other, each of which is sound by itself.
#[derive(Default)]
struct Seen {
    /// By their checksums.
    places: HashMap<[u8; DIGITS_COUNT], PartPlace>,
    /// The numbers of those that are copies of others.
    copies: BTreeSet<u32>,
}

impl Seen {
    /// Returns why the next part is none of the log, if it is not.
    fn refuse(&mut self, place: PartPlace, part: &Part, path: &Path) -> Option<RecordError> {
        match self.places.entry(part.checksum) {
            Entry::Occupied(first) => {
                self.copies.insert(place.number());
                let reason = format!("it is a copy of {}", first.get().name());
                Some(RecordError::damaged(path, reason))
            }
            Entry::Vacant(none) => {
                none.insert(place);
                None
            }
        }
    }
}

/// Returns the id of the run in `directory`; `None` where it has no manifest.
fn run_id_of(directory: &RunDirectory) -> Result<Option<String>, RecordError> {
    match directory.read_manifest() {
        Ok(manifest) => Ok(Some(manifest.run_id)),
        Err(RecordError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the first sentences, and how many more there are.
fn first_of(mut sentences: Vec<String>) -> Vec<String> {
    let more = sentences.len().saturating_sub(PARTS_NAMED_MAX);
    if more > 0 {
        sentences.truncate(PARTS_NAMED_MAX);
        sentences.push(format!("{more} more parts are damaged: their operations are not counted"));
    }
    sentences
}

fn scan_part<'a, B: Batch<'a>>(
    part: &'a Part,
    path: &Path,
    visit: &mut dyn FnMut(&B::Row),
) -> Result<u64, RecordError> {
    let mut rows = 0;
    for group in part.groups() {
        let mut columns = guarded(path, || B::new(&group, &part.endpoints))?;
        let mut rest = group.rows();
        while rest > 0 {
            let count = rest.min(ROWS_PER_BATCH);
            guarded(path, || columns.read(count))?;
            columns.show(count, visit);
            rest -= count;
        }
        rows += group.rows() as u64;
    }
    Ok(rows)
}
