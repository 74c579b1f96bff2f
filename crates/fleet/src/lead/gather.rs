//! What agents recorded, as one record.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

use plimsoll_conduct::{CallerError, Done, Observer, Recording, Stop, in_one_line, note_outcome};
use plimsoll_engine::{JobOutcome, OpSink, OpSinkError, ScheduleOutcome, StageOutcome, Unchecked};
use plimsoll_model::{Bytes, EndReason, JobId, Moment, OpRecord, PackedOp, SeriesKey, StageId};
use plimsoll_record::schema::{ClockReading, Manifest, Stage};
use plimsoll_record::{OpLog, Receiving, RecordError, RunDirectory, Staging, sample_of, series_of};
use plimsoll_report::format;
use plimsoll_stats::{Timeline, Totals};
use thiserror::Error;

use super::clocks::SAME;
use super::doable::{Doable, UpTo};
use super::{Lead, PartOutcome};
use crate::contents::{ContentError, fetch};
use crate::fabric::{Fabric, FabricError, Space};
use crate::limits::free_bytes;
use crate::offset::{ClockLine, Offset};
use crate::protocol::AgentId;
use crate::wire::{Answer, HandedFiles, Held, Order, OutcomeDoc, ended_by};

/// Where in the run directory the records of agents lie until they are part of its own.
pub(super) const STAGING: &str = "agents";
/// The records of so many agents are fetched at once, that of one while those of others wait to be
/// taken.
const FETCHED_AT_ONCE: usize = 4;
/// So many sentences about what is missing of an agent's record are kept.
const LOSSES_MAX: usize = 10;
/// The longest of them.
const LOSS_CHARS_MAX: usize = 300;
/// What is missing of an agent's share of a schedule: an operation that never started is in no log.
pub(super) const UNSTARTED: &str =
    "operations of its schedules that never started are not counted, as it did not report them";
/// So many operations are handed to the record at once.
const OPS_AT_ONCE: usize = 4_096;
/// No record has more files: those of a month, one every ten seconds.
const FILES_MAX: usize = 1 << 18;
/// More than the list of them has.
const LIST_BYTES_MAX: u64 = 128 << 20;
/// What an agent hands in takes no more than this part of the room that is left on the disk, so
/// that none of them leaves the others without any.
const ROOM_PART: u64 = 2;
/// What an operation takes of the disk where it is written anew.
const OP_BYTES: u64 = 8;

/// Why the record of an agent is missing.
#[derive(Debug, Error)]
pub(super) enum GatherError {
    #[error(transparent)]
    Fabric(#[from] FabricError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error("it contains an operation that the agent cannot have done: {0}")]
    Strange(String),
    #[error("it has {0} files, and the record of a run at most {FILES_MAX}, each once")]
    Files(usize),
    #[error(
        "it needs {needed} on the disk, which has {left} left, and one agent may take half of that; \
         `plimsoll fleet collect` adds it to the record when there is room"
    )]
    Room { needed: Bytes, left: Bytes },
    #[error("the run was told to end before it was there; `plimsoll fleet collect` fetches it")]
    Stopped,
    #[error("it does not belong to the part that the agent was given")]
    NotGiven,
    #[error("it cannot be read: it is not a record")]
    Unreadable,
}

/// What the log of an agent gave.
#[derive(Default)]
struct Taken {
    rows: u64,
    counts: BTreeMap<(StageId, JobId), Count>,
    lines: BTreeMap<StageId, Line>,
}

/// What was done in each second of a stage.
struct Line {
    timeline: Timeline<SeriesKey>,
    /// The sums of what the record keeps of it already.
    kept: Totals<SeriesKey>,
}

impl Default for Line {
    fn default() -> Self {
        Self { timeline: Timeline::of_seconds(), kept: Totals::default() }
    }
}

impl Line {
    /// Adds an operation, and has the record keep what is over.
    fn add(&mut self, op: &OpRecord, sink: &mut dyn OpSink) -> Result<(), OpSinkError> {
        let mut past = None;
        self.timeline.record_and(series_of(op), &sample_of(op), |timeline| {
            if let Some(sink) = sink.past() {
                past = timeline.split_before(timeline.over_before()).map(|past| (past, sink));
            }
        });
        let Some((past, sink)) = past else { return Ok(()) };
        sink.keep(&past)?;
        self.kept.add(&past);
        Ok(())
    }

    fn merge(&mut self, other: &Self) {
        self.timeline.merge(&other.timeline);
        self.kept.merge(&other.kept);
    }
}

/// What a log holds of some of its operations.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) first: Option<Moment>,
    pub(super) last: Moment,
    pub(super) ops: u64,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    /// Of those in the measured span of their job: how they kept a schedule, if there is one.
    pub(super) measured: ScheduleOutcome,
    measured_failed: u64,
    measured_bytes: u64,
}

impl Count {
    pub(super) fn add(&mut self, op: &OpRecord) {
        self.first = Some(self.first.map_or(op.start, |first| first.min(op.start)));
        self.last = self.last.max(op.end);
        self.ops += 1;
        let bytes = if op.outcome.is_ok() { op.bytes } else { 0 };
        self.bytes = self.bytes.saturating_add(bytes);
        self.failed += u64::from(!op.outcome.is_ok());
        if op.is_measured {
            self.measured.add(op);
            self.measured_failed += u64::from(!op.outcome.is_ok());
            self.measured_bytes = self.measured_bytes.saturating_add(bytes);
        }
    }

    /// Returns the outcome of a job whose end the agent did not report.
    fn outcome(&self, job: JobId, has_schedule: bool) -> JobOutcome {
        JobOutcome {
            job,
            ops_count: self.ops,
            failed_count: self.failed,
            measured_count: self.measured.offered_count,
            measured_failed_count: self.measured_failed,
            measured_bytes: self.measured_bytes,
            bytes: self.bytes,
            unchecked: Unchecked::default(),
            measured: None,
            schedule: has_schedule.then_some(self.measured),
            ended_by: EndReason::Stopped,
            stream_hash: 0,
            server_names: None,
            changes: Vec::new(),
        }
    }
}

impl Taken {
    fn add(&mut self, op: &OpRecord, sink: &mut dyn OpSink) -> Result<(), OpSinkError> {
        self.counts.entry((op.stage, op.job)).or_default().add(op);
        self.rows += 1;
        self.lines.entry(op.stage).or_default().add(op, sink)
    }

    /// Returns what it holds of a stage, by job.
    fn of(&self, stage: StageId) -> impl Iterator<Item = (JobId, Count)> {
        let all = (stage, JobId(u8::MIN))..=(stage, JobId(u8::MAX));
        self.counts.range(all).map(|((_, job), count)| (*job, *count))
    }
}

/// What an agent has handed in.
pub(super) struct Handed {
    /// Its place among the agents of the record.
    pub(super) index: usize,
    pub(super) agent: AgentId,
    pub(super) files: Held<HandedFiles>,
    pub(super) clocks: Clocks,
    /// By stage: how many operations it has counted; `None` where it did not tell.
    pub(super) counted: Vec<Option<u64>>,
    /// What its record has to show.
    pub(super) receipt: Option<String>,
}

/// Where the records of the agents of a run are fetched from.
pub(super) struct Source {
    fabric: Arc<dyn Fabric>,
    observer: Arc<dyn Observer>,
    run: String,
    limits: Doable,
    stop: Stop,
}

/// By stage: the clock of an agent in it; `None` where it took no part.
pub(super) type Clocks = Vec<Option<ClockLine>>;

impl Source {
    /// Fetches what an agent handed in. All of it is read and checked before any of it becomes part
    /// of the record.
    pub(super) fn fetch(&self, of: &Handed, place: &Path) -> Result<RunDirectory, GatherError> {
        let space = Space::Of(of.agent.clone());
        let files = fetch(&*self.fabric, &space, of.files.clone(), LIST_BYTES_MAX)?;
        let names: BTreeSet<&str> = files.iter().map(|(name, _)| &**name).collect();
        if names.len() < files.len() || files.len() > FILES_MAX {
            return Err(GatherError::Files(files.len()));
        }
        let receiving = Receiving::begin(place)?;
        let bytes = files.iter().fold(0, |sum: u64, (_, kept)| sum.saturating_add(kept.size_bytes));
        check_room(place, bytes)?;
        for (name, kept) in &files {
            if self.stop.is_step_stopped() {
                return Err(GatherError::Stopped);
            }
            let fetched = receiving.keep(name, |to| {
                let mut to = UpTo { to, left: kept.size_bytes, stop: &self.stop };
                Ok::<_, GatherError>(self.fabric.get(&space, kept, &mut to)?)
            });
            fetched.map_err(|error| match self.stop.is_step_stopped() {
                true => GatherError::Stopped,
                false => error,
            })?;
        }
        let directory = RunDirectory::open(place)?;
        if of.receipt.is_some() && directory.read_manifest()?.receipt != of.receipt {
            return Err(GatherError::NotGiven);
        }
        let mut strange = None;
        let mut recorded: BTreeMap<StageId, u64> = BTreeMap::new();
        let rows = OpLog::open(&directory)?.scan(&mut |op| {
            *recorded.entry(op.stage).or_default() += 1;
            if strange.is_none() {
                strange = match clock_in(&of.clocks, op.stage) {
                    Some(clock) => self.limits.why_strange(of.index, &shifted(op, clock)),
                    None => Some(format!("it took no part in stage {}", op.stage.0)),
                };
            }
        })?;
        let is_more = |(stage, ops): (&StageId, &u64)| {
            let counted = of.counted.get(usize::from(stage.0)).copied().flatten();
            counted.filter(|counted| counted < ops).map(|counted| {
                format!("in stage {} it has counted {counted} and recorded {ops}", stage.0)
            })
        };
        if let Some(why) = strange.or_else(|| recorded.iter().find_map(is_more)) {
            return Err(GatherError::Strange(why));
        }
        check_room(place, rows.saturating_mul(OP_BYTES))?;
        // What it recorded is here, whatever else it has put there.
        let below = of.receipt.as_ref().unwrap_or(&self.run);
        if let Err(error) = self.fabric.remove(&space, below) {
            self.observer.note(&in_one_line(&error));
        }
        Ok(directory)
    }
}

/// Refuses what needs more of the disk than one agent may take.
fn check_room(place: &Path, needed: u64) -> Result<(), GatherError> {
    let left = free_bytes(place);
    match needed > left / ROOM_PART {
        true => Err(GatherError::Room { needed: Bytes(needed), left: Bytes(left) }),
        false => Ok(()),
    }
}

fn clock_in(clocks: &Clocks, stage: StageId) -> Option<ClockLine> {
    clocks.get(usize::from(stage.0)).copied().flatten()
}

/// Returns an agent's clock in each of the first stages, as was measured before and after it.
pub(super) fn clocks_of(readings: &[ClockReading], stages_count: usize) -> Clocks {
    let of_stage = |stage: usize| {
        let first = readings.iter().position(|of| usize::from(of.stage_index) == stage)?;
        let clock = ClockLine::from(Offset::from(&readings[first]));
        let after = readings.get(first + 1);
        Some(after.map_or(clock, |after| clock.until(after.into())))
    };
    (0..stages_count).map(of_stage).collect()
}

type Fetched = Result<RunDirectory, GatherError>;

/// Records that are fetched ahead, each by a thread of its own, and taken in the order of agents.
struct Fetching<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    source: &'scope Source,
    /// Below it each agent's record has a place.
    place: &'scope Path,
    waiting: std::slice::Iter<'scope, Handed>,
    under_way: VecDeque<(&'scope Handed, ScopedJoinHandle<'scope, Fetched>)>,
}

impl<'scope, 'env> Fetching<'scope, 'env> {
    fn new(
        scope: &'scope Scope<'scope, 'env>,
        source: &'scope Source,
        place: &'scope Path,
        handed: &'scope [Handed],
    ) -> Self {
        let (waiting, under_way) = (handed.iter(), VecDeque::new());
        Self { scope, source, place, waiting, under_way }
    }

    /// Returns the next agent and its record; `None` when there are no more.
    fn next(&mut self) -> Option<(&'scope Handed, Fetched)> {
        while self.under_way.len() < FETCHED_AT_ONCE
            && let Some(handed) = self.waiting.next()
        {
            let (source, own) = (self.source, self.place.join(handed.index.to_string()));
            let fetch = move || source.fetch(handed, &own);
            self.under_way.push_back((handed, self.scope.spawn(fetch)));
        }
        let (handed, fetching) = self.under_way.pop_front()?;
        let fetched = fetching.join();
        // What reads files of others may fail in ways that nobody has thought of.
        Some((handed, fetched.unwrap_or(Err(GatherError::Unreadable))))
    }
}

/// Adds the operations of an agent to the record.
fn take(
    of: &Handed,
    directory: &RunDirectory,
    sink: &mut dyn OpSink,
) -> Result<Taken, CallerError> {
    let mut taken = Taken::default();
    let mut failed: Option<CallerError> = None;
    let mut waiting: Vec<PackedOp> = Vec::with_capacity(OPS_AT_ONCE);
    OpLog::open(directory)?.scan(&mut |op| {
        let clock = clock_in(&of.clocks, op.stage);
        let (None, Some(clock)) = (&failed, clock) else { return };
        let op = shifted(op, clock);
        failed = taken.add(&op, sink).err().map(Into::into);
        waiting.push(PackedOp::from(&op));
        if failed.is_none() && waiting.len() == OPS_AT_ONCE {
            failed = sink.append(&waiting).err().map(Into::into);
            waiting.clear();
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    sink.append(&waiting)?;
    Ok(taken)
}

/// Returns what an agent says is missing of its record, as it is kept.
pub(super) fn kept_losses(losses: Vec<String>) -> Vec<String> {
    let short = |loss: String| loss.chars().take(LOSS_CHARS_MAX).collect();
    losses.into_iter().take(LOSSES_MAX).map(short).collect()
}

/// Returns an operation by the coordinator's clock.
pub(super) fn shifted(op: &OpRecord, clock: ClockLine) -> OpRecord {
    // The moment at which it was due is never before the stage, by any clock.
    let offset = clock.at(op.intended);
    let at = |moment: Moment| offset.to_coordinator(moment);
    OpRecord {
        intended: at(op.intended),
        start: at(op.start),
        assigned: op.assigned.map(at),
        first_byte: op.first_byte.map(at),
        last_byte_sent: op.last_byte_sent.map(at),
        end: at(op.end),
        ..*op
    }
}

impl Lead {
    pub(super) fn gather_all(
        &mut self,
        recording: &mut Recording,
        sink: &mut dyn OpSink,
        done: &mut [Done],
    ) -> Result<(), CallerError> {
        if !self.outcomes.is_empty() {
            // Ctrl-C from now on gives up what is not handed in yet.
            recording.stop.begin_step();
            self.have_handed_in(&recording.stop)?;
        }
        let place = recording.directory.path().join(STAGING);
        let staging = Staging::begin(&place)?;
        let mut lines: BTreeMap<StageId, Line> = BTreeMap::new();
        let answers = self.answers();
        let mut handed: Vec<Handed> = Vec::new();
        for (index, answer) in answers {
            match answer {
                Some(Answer::HandedIn { files, losses }) => {
                    self.agents[index].losses = kept_losses(losses);
                    let agent = self.recruits[index].id.clone();
                    let clocks = self.clocks(index, recording.manifest.stages.len());
                    let (receipt, counted) =
                        (self.agents[index].receipt.clone(), self.counted(index));
                    handed.push(Handed { index, agent, files, clocks, counted, receipt });
                }
                Some(Answer::Failed { why }) => self.give_up(index, why),
                Some(_) | None => {}
            }
        }
        // Who has waited long enough for agents may want to have what they handed in.
        recording.stop.begin_step();
        let source = self.source(&recording.manifest, recording.stop.clone());
        std::thread::scope(|scope| -> Result<(), CallerError> {
            let mut fetching = Fetching::new(scope, &source, &place, &handed);
            while let Some((of, fetched)) = fetching.next() {
                let taken = match &fetched {
                    Ok(directory) => self.take_all(of, directory, sink, recording)?,
                    Err(error) => {
                        let why = in_one_line(error);
                        self.give_up(of.index, format!("its record cannot be fetched: {why}"));
                        continue;
                    }
                };
                for (stage, own) in taken.lines {
                    lines.entry(stage).or_default().merge(&own);
                }
            }
            Ok(())
        })?;
        for of in done.iter_mut() {
            self.complete(of, lines.remove(&of.stage).unwrap_or_default(), recording);
        }
        if !self.left().is_empty() && !self.outcomes.is_empty() {
            self.release(&recording.stop)?;
        }
        let _ = self.note_losses();
        staging.remove()?;
        recording.manifest.advice.append(&mut self.remarks);
        Ok(())
    }

    /// Has agents hand in what they recorded, also those that were lost and are back.
    fn have_handed_in(&mut self, stop: &Stop) -> Result<(), CallerError> {
        if !self.left().is_empty() {
            self.measure();
        }
        let back = match self.left().len() == self.agents.len() {
            true => Vec::new(),
            false => self.take_back()?,
        };
        if self.left().is_empty() {
            return Ok(());
        }
        let ended = self.ended.clone();
        let order = |index: usize| match back.contains(&index) {
            true => Order::Collect,
            false => Order::HandIn { ended: ended.clone() },
        };
        self.step(order, &|| stop.is_step_stopped())
    }

    /// Tells agents that what they handed in is safe.
    pub(super) fn release(&mut self, stop: &Stop) -> Result<(), CallerError> {
        let stays = self.settings.parts_stay;
        self.step(|_| Order::Forget { stays }, &|| stop.is_step_stopped())?;
        for (index, answer) in self.answers() {
            if let Some(Answer::Failed { why }) = answer {
                let name = &self.agents[index].name;
                self.observer.warn(&format!("agent {name} keeps its part: {why}"));
            }
        }
        Ok(())
    }

    /// Returns where the records of agents are fetched from, for the run of a record.
    pub(super) fn source(&self, manifest: &Manifest, stop: Stop) -> Source {
        let (fabric, observer) = (Arc::clone(&self.fabric), Arc::clone(&self.observer));
        Source { fabric, observer, run: self.run.clone(), limits: Doable::of(manifest), stop }
    }

    /// Returns how many operations an agent has counted in each stage, where it has told that.
    fn counted(&self, index: usize) -> Vec<Option<u64>> {
        let told = |parts: &Vec<Option<PartOutcome>>| {
            let part = parts.get(index)?.as_ref().filter(|part| part.is_told)?;
            Some(part.doc.ops_count())
        };
        self.outcomes.iter().map(told).collect()
    }

    /// Returns the clock of an agent in each of the first stages.
    fn clocks(&self, index: usize, stages_count: usize) -> Clocks {
        let mut clocks = clocks_of(&self.agents[index].clock, stages_count);
        for (clock, parts) in clocks.iter_mut().zip(&self.outcomes) {
            let part = parts.get(index).and_then(Option::as_ref);
            *clock = part.map(|part| part.clock).or(*clock);
        }
        clocks
    }

    /// Adds what an agent recorded to the record.
    fn take_all(
        &mut self,
        of: &Handed,
        directory: &RunDirectory,
        sink: &mut dyn OpSink,
        recording: &Recording,
    ) -> Result<Taken, CallerError> {
        let taken = take(of, directory, sink)?;
        for target in 0..recording.manifest.targets().count() {
            recording.directory.append_names(target, directory)?;
        }
        self.compare(of.index, &taken);
        self.add_untold(of.index, &taken, &recording.manifest.stages);
        self.agents[of.index].rows_count = Some(taken.rows);
        Ok(taken)
    }

    /// Has the outcomes hold what the record tells of stages whose end the agent did not tell, as
    /// it was lost in them.
    fn add_untold(&mut self, index: usize, taken: &Taken, stages: &[Stage]) {
        self.outcomes.resize_with(self.outcomes.len().max(stages.len()), Vec::new);
        let mut has_schedule = false;
        for (number, parts) in self.outcomes.iter_mut().enumerate() {
            let stage = StageId(number as u8);
            let first = taken.of(stage).filter_map(|(_, count)| count.first).min();
            let Some(first) = first else { continue };
            parts.resize_with(self.agents.len(), || None);
            let part = &mut parts[index];
            if part.is_none() {
                let last = taken.of(stage).map(|(_, count)| count.last).max();
                let span = (first, last.unwrap_or(first));
                let jobs = taken.of(stage).map(|(job, count)| {
                    let of = stages.get(number).and_then(|of| of.jobs.get(usize::from(job.0)));
                    count.outcome(job, of.is_some_and(|job| job.schedule.is_some()))
                });
                let jobs: Vec<JobOutcome> = jobs.collect();
                has_schedule |= jobs.iter().any(|job| job.schedule.is_some());
                let doc = Box::new(OutcomeDoc::of_record(span, jobs));
                // These moments are the coordinator's already.
                *part = Some(PartOutcome { doc, clock: SAME.into(), is_told: false });
            }
        }
        if has_schedule {
            self.agents[index].losses.push(UNSTARTED.to_owned());
        }
    }

    /// Says where what an agent recorded is not what it counted.
    fn compare(&self, index: usize, taken: &Taken) {
        for (stage, parts) in self.outcomes.iter().enumerate() {
            let Some(part) = parts.get(index).and_then(Option::as_ref) else { continue };
            let counted = part.doc.ops_count();
            let recorded = taken.of(StageId(stage as u8)).map(|(_, count)| count.ops).sum();
            if counted != recorded {
                self.observer.warn(&format!(
                    "agent {} has counted {} operations of stage {stage} and recorded {}",
                    self.agents[index].name,
                    format::count(counted),
                    format::count(recorded)
                ));
            }
        }
    }

    /// Has a stage hold what those have done whose record is there.
    fn complete(&mut self, done: &mut Done, mut line: Line, recording: &mut Recording) {
        let number = usize::from(done.stage.0);
        let Some(parts) = self.outcomes.get(number) else { return };
        let mut all: Option<StageOutcome> = None;
        let mut are_told = true;
        for (part, agent) in parts.iter().zip(&mut self.agents) {
            let is_there = agent.rows_count.is_some();
            let outcome = part.as_ref().map(|part| part.doc.outcome(part.clock));
            // Bound: stages of the plan.
            agent.cpu_ns.resize(number, None);
            let is_told = part.as_ref().is_some_and(|part| part.is_told);
            are_told &= is_told || part.is_none();
            let cpu = outcome.as_ref().filter(|_| is_told).map(|of| of.cpu_time.as_nanos() as u64);
            agent.cpu_ns.push(cpu);
            match (&mut all, outcome.filter(|_| is_there)) {
                (_, None) => {}
                (Some(all), Some(outcome)) => all.merge(outcome),
                (all @ None, Some(outcome)) => *all = Some(outcome),
            }
        }
        let Some(mut all) = all else { return };
        ended_by(&mut all, done.outcome.ended_by, done.outcome.ended_because.clone());
        line.timeline.close();
        (all.timeline, all.kept) = (line.timeline, line.kept);
        let entry = &mut recording.manifest.stages[number];
        note_outcome(entry, &all);
        if !are_told {
            // The sum of the hashes of all operations is not known of a part of them.
            entry.stream_hash = None;
        }
        done.outcome = all;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::Mutex;
    use std::time::Duration;

    use plimsoll_conduct::{Opening, RunTime, of_workload};
    use plimsoll_model::{ErrorClass, OpKind, RunId, TargetKind};
    use plimsoll_record::RunFile;
    use plimsoll_record::schema::Target;

    use super::*;
    use crate::fabric::{Address, Kept};
    use crate::local::Local;
    use crate::simulated::failed;

    /// A fabric from which nothing can be removed.
    struct Keeps(Local);

    impl Fabric for Keeps {
        fn post(&self, to: &Address, message: Vec<u8>) -> Result<(), FabricError> {
            self.0.post(to, message)
        }

        fn make(&self, agents: &[(AgentId, String)]) -> Result<(), FabricError> {
            self.0.make(agents)
        }

        fn put(&self, of: &Space, name: &str, content: &mut dyn Read) -> Result<Kept, FabricError> {
            self.0.put(of, name, content)
        }

        fn get(&self, of: &Space, kept: &Kept, to: &mut dyn Write) -> Result<u64, FabricError> {
            self.0.get(of, kept, to)
        }

        fn remove(&self, of: &Space, _: &str) -> Result<(), FabricError> {
            Err(failed(format!("cannot clear what {of} has kept"), std::io::Error::other("away")))
        }
    }

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Observer for Notes {
        fn note(&self, line: &str) {
            self.0.lock().unwrap().push(line.to_owned());
        }

        fn warn(&self, line: &str) {
            panic!("{line}");
        }
    }

    #[test]
    fn a_job_whose_end_nobody_told_is_counted_from_its_log() {
        let op = |late_ms: u64, outcome, is_measured| OpRecord {
            job: JobId(1),
            bytes: 10,
            intended: Moment::EPOCH,
            outcome,
            is_measured,
            ..OpRecord::plain(
                OpKind::Get,
                Moment::from_ns(late_ms * 1_000_000),
                Moment::from_ns(9_000_000),
            )
        };
        let mut count = Count::default();
        count.add(&op(0, ErrorClass::Ok, true));
        count.add(&op(4, ErrorClass::Server, true));
        // In a ramp.
        count.add(&op(5, ErrorClass::Ok, false));
        let job = count.outcome(JobId(1), true);
        assert_eq!((job.ops_count, job.failed_count, job.bytes), (3, 1, 20));
        assert_eq!((job.measured_count, job.measured_failed_count), (2, 1));
        assert_eq!(job.measured_bytes, 10);
        let schedule = job.schedule.unwrap();
        assert_eq!((schedule.offered_count, schedule.late_count), (2, 1));
        assert_eq!(schedule.delay_max, Duration::from_millis(4));
        assert_eq!(count.outcome(JobId(1), false).schedule, None);
        // As it travels and comes back.
        let doc = OutcomeDoc::of_record((Moment::EPOCH, Moment::from_ns(9)), [job.clone()]);
        assert_eq!(doc.outcome(SAME.into()).jobs, [job]);
    }

    #[test]
    fn a_record_is_taken_that_shows_its_receipt_also_where_nothing_can_be_removed() {
        let place = tempfile::tempdir().unwrap();
        let time = RunTime::simulated();
        let id = RunId::new("given", time.wall_epoch, 1);
        let target = Target::bare(TargetKind::Null, Vec::new());
        let opening = Opening::of_nobody(&id, target, &time);
        let mut manifest = of_workload(opening, serde_json::Value::Null, 1);
        manifest.receipt = Some("its own".to_owned());
        let part = RunDirectory::create(&place.path().join("part"), &manifest).unwrap();
        let local = Local::default();
        let agent = AgentId::new("a").unwrap();
        let keep = |RunFile { name, .. }| {
            let mut content = part.open_file(&name).unwrap();
            let path = format!("given/{name}");
            let kept = local.put(&Space::Of(agent.clone()), &path, &mut content).unwrap();
            (name, kept)
        };
        let files: HandedFiles = part.files().unwrap().into_iter().map(keep).collect();
        let limits = Doable::of(&manifest);
        let notes = Arc::new(Notes::default());
        let (fabric, observer) = (Arc::new(Keeps(local)), Arc::clone(&notes) as Arc<dyn Observer>);
        let stop = Stop::default();
        let run = "given".to_owned();
        let source = Source { fabric, observer, run, limits, stop: stop.clone() };
        let fetch = |receipt: &str, files: &HandedFiles| {
            let (agent, files) = (agent.clone(), Held::Here(files.clone()));
            let (clocks, counted, receipt) = (Vec::new(), Vec::new(), Some(receipt.to_owned()));
            let handed = Handed { index: 0, agent, files, clocks, counted, receipt };
            source.fetch(&handed, &place.path().join(handed.receipt.clone().unwrap()))
        };
        assert!(matches!(fetch("of another", &files), Err(GatherError::NotGiven)));
        assert!(fetch("its own", &files).is_ok());
        assert_eq!(*notes.0.lock().unwrap(), ["cannot clear what agent a has kept: away"]);
        // Of what the disk has no room for nothing is fetched.
        let mut huge = files.clone();
        huge.iter_mut().for_each(|(_, kept)| kept.size_bytes = 1 << 62);
        assert!(matches!(fetch("huge", &huge), Err(GatherError::Room { .. })));
        let twice: HandedFiles = files.iter().chain(&files).cloned().collect();
        assert!(matches!(fetch("twice", &twice), Err(GatherError::Files(_))));
        stop.request();
        assert!(matches!(fetch("too late", &files), Err(GatherError::Stopped)));
    }
}
