//! One key as a register: what is known of when it held which value, and whether one more operation
//! fits.

use std::collections::VecDeque;

use plimsoll_model::{Moment, WorkerId};
use plimsoll_workload::history::{HistoryOp, KeyNumber, ValueId};

use super::findings::Findings;
use super::suspects::{Miss, State, Suspects};
use super::{Event, Saw, ViolationKind};

/// Values that are over and are remembered, for the proof when one of them is seen again.
const BURIED_KEPT_MAX: usize = 16;

/// A value with all operations on it: its write and the reads that saw it.
///
/// The register held the value at some moment not later than `first_end`, where there is one, and
/// at some moment not before `last_begin`. Where the former comes first, it held nothing else from
/// the one to the other (a forward zone in the words of Gibbons and Korach).
#[derive(Clone, Debug)]
struct Cluster {
    value: ValueId,
    size: u64,
    write: Event,
    /// The operation that ended first; `None` while the write may yet take effect.
    first_end: Option<Event>,
    /// The operation that began last.
    last_begin: Event,
}

impl Cluster {
    fn end(&self) -> Option<Moment> {
        self.first_end.and_then(|event| event.end)
    }

    /// Tells whether the value was certainly written before `moment`.
    fn is_before(&self, moment: Moment) -> bool {
        self.end().is_some_and(|end| end < moment)
    }

    /// Returns the value as it were if `event` were one more operation on it.
    fn with(&self, event: Event) -> Self {
        let mut joined = self.clone();
        if joined.end().is_none_or(|end| event.end.is_some_and(|new| new < end)) {
            joined.first_end = Some(event);
        }
        if event.begin > joined.last_begin.begin {
            joined.last_begin = event;
        }
        joined.renew(event);
        joined
    }

    /// Takes what is now known of the write.
    fn renew(&mut self, event: Event) {
        for known in [&mut self.write, &mut self.last_begin] {
            if known.number == event.number {
                *known = event;
            }
        }
    }

    /// Tells whether neither value can have come before the other.
    fn excludes(&self, other: &Self) -> bool {
        self.is_before(other.last_begin.begin) && other.is_before(self.last_begin.begin)
    }

    /// Tells whether the register held this value during all of `event`.
    fn covers(&self, event: &Event) -> bool {
        self.is_before(event.begin) && event.end.is_some_and(|end| end < self.last_begin.begin)
    }

    fn events(&self) -> impl Iterator<Item = Event> {
        self.first_end.into_iter().chain([self.last_begin])
    }

    /// Returns what a read misses that does not see this value.
    fn missed(&self, before: Option<Event>) -> Miss {
        Miss {
            state: State::Value(self.value),
            since: self.end().unwrap_or(self.last_begin.begin),
            acknowledged: self.write.saw == Saw::Done,
            proof: before.into_iter().chain(self.events()).collect(),
        }
    }
}

/// A value that no operation may see again.
#[derive(Debug)]
struct Buried {
    value: ValueId,
    size: u64,
    write: Event,
    /// What proves it.
    proof: Vec<Event>,
}

/// What is known of one key.
#[derive(Debug)]
pub(super) struct Register {
    key: KeyNumber,
    clusters: Vec<Cluster>,
    /// Removals, and reads that found nothing. A removal that failed has no end.
    erasures: Vec<Event>,
    buried: VecDeque<Buried>,
    under_way: Vec<(WorkerId, Moment)>,
    retired: bool,
    /// Up to when everything was forgotten that can be.
    forgotten_until: Option<Moment>,
    pub(super) suspects: Suspects,
    /// What `kept_count` was when the history last added it up.
    pub(super) kept_count_before: usize,
}

impl Register {
    pub(super) fn new(key: KeyNumber) -> Self {
        Self {
            key,
            clusters: Vec::new(),
            erasures: Vec::new(),
            buried: VecDeque::new(),
            under_way: Vec::new(),
            retired: false,
            forgotten_until: None,
            suspects: Suspects::new(key),
            kept_count_before: 0,
        }
    }

    pub(super) fn retire(&mut self) {
        self.retired = true;
    }

    /// Tells whether nothing more can come.
    pub(super) fn is_over(&self) -> bool {
        self.retired && self.under_way.is_empty()
    }

    pub(super) fn kept_count(&self) -> usize {
        self.clusters.len() + self.erasures.len() + self.buried.len()
    }

    pub(super) fn unsettled_count(&self) -> usize {
        let failed = |event: &Event| matches!(event.saw, Saw::Failed(_));
        let writes = self.clusters.iter().filter(|it| failed(&it.write) && it.first_end.is_none());
        writes.count() + self.erasures.iter().filter(|event| failed(event)).count()
    }

    /// Returns the write of a value, if it is still remembered.
    pub(super) fn write_of(&self, value: ValueId) -> Option<Event> {
        let live = self.clusters.iter().find(|it| it.value == value).map(|it| it.write);
        live.or_else(|| self.buried.iter().find(|it| it.value == value).map(|it| it.write))
    }

    /// Tells whether another value than `value` has that size.
    pub(super) fn has_other(&self, value: ValueId, size: u64) -> bool {
        self.clusters.iter().any(|it| it.value != value && it.size == size)
    }

    /// Takes note of an operation that begins.
    pub(super) fn begin(&mut self, event: Event) {
        self.under_way.push((event.worker, event.begin));
        match event.op {
            HistoryOp::Put(value, size) => self.clusters.push(Cluster {
                value,
                size,
                write: event,
                first_end: None,
                last_begin: event,
            }),
            HistoryOp::Delete(_) => self.erasures.push(event),
            HistoryOp::Get(..) | HistoryOp::Stat(_) | HistoryOp::List => {}
        }
    }

    /// Takes note that the operation of `worker` is no longer under way.
    pub(super) fn ended(&mut self, worker: WorkerId) {
        self.under_way.retain(|(who, _)| *who != worker);
    }

    /// Judges an operation that ended, or what a listing told about the key. Returns whether it was
    /// a read that told something.
    pub(super) fn seen(&mut self, event: Event, findings: &mut Findings) -> bool {
        match (event.op, event.saw) {
            (HistoryOp::Put(value, _), _) => self.put_ended(value, event, findings),
            (HistoryOp::Delete(_), _) => self.delete_ended(event, findings),
            (_, Saw::Value(value)) => self.value_seen(value, event, findings),
            (_, Saw::Present(size)) => self.size_seen(size, event, findings),
            (_, Saw::Absent) => self.absence_seen(event, findings),
            _ => {}
        }
        matches!(event.saw, Saw::Value(_) | Saw::Present(_) | Saw::Absent)
    }

    fn put_ended(&mut self, value: ValueId, put: Event, findings: &mut Findings) {
        let Some(at) = self.clusters.iter().position(|it| it.value == value) else { return };
        if put.saw != Saw::Done {
            return self.clusters[at].renew(put);
        }
        let joined = self.clusters[at].with(put);
        self.bury_what_excludes(&joined, findings);
        if let Some(cluster) = self.clusters.iter_mut().find(|it| it.value == value) {
            *cluster = joined;
        }
        self.suspects.replaced(put.begin, findings);
    }

    /// Handles a read that was judged before the write that it missed was known to be done.
    fn bury_what_excludes(&mut self, joined: &Cluster, findings: &mut Findings) {
        let excluded = |other: &Cluster| other.value != joined.value && joined.excludes(other);
        while let Some(at) = self.clusters.iter().position(excluded) {
            let other = self.clusters.swap_remove(at);
            let proof: Vec<Event> = joined.events().chain(other.events()).collect();
            findings.add(ViolationKind::StaleRead, Ok(self.key), proof.clone(), 0);
            self.bury(other, proof);
        }
    }

    fn delete_ended(&mut self, delete: Event, findings: &mut Findings) {
        let same = |event: &&mut Event| event.number == delete.number;
        let Some(erasure) = self.erasures.iter_mut().find(same) else { return };
        if delete.saw != Saw::Done {
            erasure.saw = delete.saw;
            return;
        }
        *erasure = delete;
        while let Some(at) = self.clusters.iter().position(|it| it.covers(&delete)) {
            let other = self.clusters.swap_remove(at);
            let proof: Vec<Event> = other.events().chain([delete]).collect();
            findings.add(ViolationKind::StaleRead, Ok(self.key), proof.clone(), 0);
            self.bury(other, proof);
        }
        self.suspects.replaced(delete.begin, findings);
    }

    fn value_seen(&mut self, value: ValueId, read: Event, findings: &mut Findings) {
        let at = self.clusters.iter().position(|it| it.value == value);
        let fits = match at {
            Some(at) => self.fits(&self.clusters[at], read),
            None => Err(self.seen_again(|buried| buried.value == value, read)),
        };
        match (fits, at) {
            (Ok(joined), Some(at)) => self.join(at, joined, findings),
            (Err(miss), _) => self.suspects.miss(miss, read, findings),
            (Ok(_), None) => unreachable!("only a value that is there fits"),
        }
    }

    fn size_seen(&mut self, size: Option<u64>, read: Event, findings: &mut Findings) {
        let of_size = |it: u64| size.is_none_or(|size| size == it);
        let mut possible = Vec::new();
        let mut first_miss = None;
        for (at, cluster) in self.clusters.iter().enumerate().filter(|(_, it)| of_size(it.size)) {
            match self.fits(cluster, read) {
                Ok(joined) => possible.push((at, joined)),
                Err(miss) => first_miss = first_miss.or(Some(miss)),
            }
        }
        match possible.len() {
            // Of several it is not known which one was seen.
            2.. => return,
            1 => {
                let (at, joined) = possible.swap_remove(0);
                return self.join(at, joined, findings);
            }
            _ => {}
        }
        let was_there = self.buried.iter().any(|it| of_size(it.size));
        if first_miss.is_some() || was_there {
            let miss = first_miss.unwrap_or_else(|| self.seen_again(|it| of_size(it.size), read));
            return self.suspects.miss(miss, read, findings);
        }
        let kind = match read.op {
            HistoryOp::List if self.clusters.is_empty() => ViolationKind::ListGhost,
            _ => ViolationKind::WrongSize,
        };
        let newest = self.newest(read.begin).map(|miss| miss.proof).unwrap_or_default();
        findings.add(kind, Ok(self.key), newest.into_iter().chain([read]).collect(), 0);
    }

    fn absence_seen(&mut self, read: Event, findings: &mut Findings) {
        let before = self.clusters.iter().filter(|it| it.is_before(read.begin));
        if let Some(newest) = before.max_by_key(|it| it.last_begin.begin) {
            // A removal that can have come after everything that is known of the newest value.
            let removes = |event: &&Event| {
                is_removal(event)
                    && read.end.is_some_and(|end| event.begin <= end)
                    && event.end.is_none_or(|end| end >= newest.last_begin.begin)
            };
            let covered = self.clusters.iter().find(|it| it.covers(&read));
            if covered.is_some() || !self.erasures.iter().any(|event| removes(&event)) {
                let miss = covered.unwrap_or(newest).missed(None);
                return self.suspects.miss(miss, read, findings);
            }
        }
        self.erasures.push(read);
        self.suspects.observed(State::Absent, findings);
    }

    /// Returns `cluster` with one more operation, or what that operation missed if it does not fit.
    fn fits(&self, cluster: &Cluster, read: Event) -> Result<Cluster, Miss> {
        let joined = cluster.with(read);
        let other = |it: &&Cluster| it.value != joined.value && joined.excludes(it);
        let value = self.clusters.iter().filter(other).max_by_key(|it| it.last_begin.begin);
        // A removal that was acknowledged says more than a read that found nothing.
        let erasure = self
            .erasures
            .iter()
            .filter(|it| joined.covers(it))
            .max_by_key(|it| (is_removal(it), it.begin));
        match (value, erasure) {
            (None, None) => Ok(joined),
            (Some(value), None) => Err(value.missed(joined.first_end)),
            (Some(value), Some(erasure)) if erasure.begin < value.last_begin.begin => {
                Err(value.missed(joined.first_end))
            }
            (_, Some(erasure)) => {
                Err(absence(joined.first_end.into_iter().chain([*erasure]).collect(), read.begin))
            }
        }
    }

    /// Returns what a read missed that saw a value which is over.
    fn seen_again(&self, which: impl Fn(&Buried) -> bool, read: Event) -> Miss {
        let buried = self.buried.iter().rev().find(|it| which(it));
        let newest = self.newest(read.begin);
        match (newest, buried) {
            (Some(newest), Some(buried)) => Miss { proof: buried.proof.clone(), ..newest },
            (Some(newest), None) => newest,
            (None, Some(buried)) => absence(buried.proof.clone(), read.begin),
            (None, None) => absence(Vec::new(), read.begin),
        }
    }

    /// Returns the newest state that was certain before `moment`, with what proves it.
    fn newest(&self, moment: Moment) -> Option<Miss> {
        let values = self.clusters.iter().filter(|it| it.is_before(moment));
        if let Some(value) = values.max_by_key(|it| it.last_begin.begin) {
            return Some(value.missed(None));
        }
        let before = |event: &&Event| event.end.is_some_and(|end| end < moment);
        let last = self.erasures.iter().filter(before).max_by_key(|event| event.begin);
        let proof = last.map(|event| vec![*event]);
        let proof = proof.or_else(|| self.buried.back().map(|buried| buried.proof.clone()))?;
        Some(absence(proof, moment))
    }

    fn join(&mut self, at: usize, joined: Cluster, findings: &mut Findings) {
        let value = joined.value;
        self.clusters[at] = joined;
        self.suspects.observed(State::Value(value), findings);
    }

    fn bury(&mut self, cluster: Cluster, proof: Vec<Event>) {
        if self.buried.len() == BURIED_KEPT_MAX {
            self.buried.pop_front();
        }
        let Cluster { value, size, write, .. } = cluster;
        self.buried.push_back(Buried { value, size, write, proof });
    }

    /// Forgets what no operation can meet any more that is under way or begins at `now` or later.
    pub(super) fn forget(&mut self, now: Moment) {
        let now = self.under_way.iter().map(|(_, begin)| *begin).fold(now, Moment::min);
        // While an operation hangs nothing more can be forgotten, and much may have gathered.
        if self.forgotten_until.replace(now) == Some(now) {
            return;
        }
        let all = self.clusters.clone();
        let mut over = Vec::new();
        self.clusters.retain(|cluster| {
            let proof = proof_of_end(cluster, &all, &self.erasures, now);
            over.extend(proof.map(|proof| (cluster.clone(), proof)));
            over.last().is_none_or(|(last, _)| last.value != cluster.value)
        });
        over.sort_by_key(|(cluster, _)| cluster.last_begin.begin);
        for (cluster, proof) in over {
            self.bury(cluster, proof);
        }
        self.forget_erasures(now);
    }

    /// What was absent before `now` is known from the values that are over. Of the removals the one
    /// that ended last is kept, if it may have come after a value that is not over.
    fn forget_erasures(&mut self, now: Moment) {
        let settled = |event: &Event| event.end.is_some_and(|end| end < now);
        let clusters = &self.clusters;
        let useful = |event: &&Event| {
            is_removal(event)
                && clusters.iter().any(|it| {
                    it.end().is_some() && event.end.is_some_and(|end| end >= it.last_begin.begin)
                })
        };
        let last = self.erasures.iter().filter(|event| settled(event)).filter(useful);
        let last = last.max_by_key(|event| event.end).map(|event| event.number);
        self.erasures.retain(|event| !settled(event) || last == Some(event.number));
    }
}

fn is_removal(event: &Event) -> bool {
    matches!(event.op, HistoryOp::Delete(_))
}

/// Returns what a read misses that sees something where `proof` says that nothing was.
fn absence(proof: Vec<Event>, moment: Moment) -> Miss {
    Miss {
        state: State::Absent,
        since: proof.iter().rev().find_map(|event| event.end).unwrap_or(moment),
        acknowledged: proof.iter().any(|event| is_removal(event) && event.saw == Saw::Done),
        proof,
    }
}

/// Returns what proves that nothing which begins at `now` or later can see the value of `cluster`:
/// something else came certainly after it and before `now`.
fn proof_of_end(
    cluster: &Cluster,
    all: &[Cluster],
    erasures: &[Event],
    now: Moment,
) -> Option<Vec<Event>> {
    let own = cluster.first_end?;
    let removed = erasures
        .iter()
        .find(|event| cluster.is_before(event.begin) && event.end.is_some_and(|end| end < now));
    if let Some(removed) = removed {
        return Some(vec![own, *removed]);
    }
    let replaced = all.iter().find(|other| {
        other.value != cluster.value
            && cluster.is_before(other.last_begin.begin)
            && other.is_before(now)
    });
    replaced.map(|other| std::iter::once(own).chain(other.events()).collect())
}
