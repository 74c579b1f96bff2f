//! What agents recorded, as one record.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use plimsoll_conduct::{CallerError, Done, Recording, in_one_line, note_outcome};
use plimsoll_engine::{OpSink, StageOutcome};
use plimsoll_model::{Moment, OpRecord, PackedOp, SeriesKey, StageId};
use plimsoll_record::{OpLog, Receiving, RecordError, RunDirectory, Staging, sample_of, series_of};
use plimsoll_report::format;
use plimsoll_stats::Timeline;
use thiserror::Error;

use super::doable::{Doable, UpTo};
use super::{Lead, ended_by};
use crate::fabric::{Fabric, FabricError, Space};
use crate::offset::ClockLine;
use crate::protocol::AgentId;
use crate::wire::{Answer, Order};

/// The interval of time lines.
pub(super) const INTERVAL_NS: u64 = 1_000_000_000;
/// Where in the run directory the records of agents lie until they are part of its own.
pub(super) const STAGING: &str = "agents";
/// The records of so many agents are fetched at once, that of one while those of others wait to be
/// taken.
const FETCHED_AT_ONCE: usize = 4;
/// So many operations are handed to the record at once.
const OPS_AT_ONCE: usize = 4_096;

/// Why the record of an agent is missing.
#[derive(Debug, Error)]
pub(super) enum GatherError {
    #[error(transparent)]
    Fabric(#[from] FabricError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("`{name}` has {found} B, and the agent handed in {expected} B")]
    Size { name: String, expected: u64, found: u64 },
    #[error("it holds an operation of stage {0}, which the agent took no part in")]
    Stage(u8),
    #[error("it holds an operation that the agent cannot have done: {0}")]
    Strange(String),
    #[error("it cannot be read: it is not what records are")]
    Unreadable,
}

/// What the log of an agent gave.
struct Taken {
    rows: u64,
    /// By stage: operations.
    ops: BTreeMap<StageId, u64>,
    /// By stage: what was done in each second.
    timelines: BTreeMap<StageId, Timeline<SeriesKey>>,
}

/// What an agent has handed in.
struct Handed {
    index: usize,
    agent: AgentId,
    /// Each with its size.
    files: Vec<(String, u64)>,
}

/// Where the records of the agents of a run are fetched from.
struct Source {
    fabric: Arc<dyn Fabric>,
    run: String,
    limits: Doable,
}

impl Source {
    fn fetch(
        &self,
        agent: &AgentId,
        files: &[(String, u64)],
        place: &Path,
    ) -> Result<RunDirectory, GatherError> {
        let space = Space::Of(agent.clone());
        let receiving = Receiving::begin(place)?;
        for (name, expected) in files {
            let kept = format!("{}/{name}", self.run);
            let found = receiving.keep(name, |to| {
                let mut to = UpTo { to, left: *expected };
                Ok::<_, GatherError>(self.fabric.get(&space, &kept, &mut to)?)
            })?;
            if found != *expected {
                let (name, expected) = (name.clone(), *expected);
                return Err(GatherError::Size { name, expected, found });
            }
        }
        // It is checked as a whole before any of it becomes part of the record.
        let directory = RunDirectory::open(place)?;
        let mut strange = None;
        OpLog::open(&directory)?.scan(&mut |op| {
            if strange.is_none() {
                strange = self.limits.why_strange(agent, op);
            }
        })?;
        if let Some(why) = strange {
            return Err(GatherError::Strange(why));
        }
        self.fabric.remove(&space, &format!("{}/", self.run))?;
        Ok(directory)
    }
}

type Fetched = Result<RunDirectory, GatherError>;

/// Records that are fetched ahead, each by a thread of its own, and taken in the order of agents.
struct Fetching<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    source: &'scope Source,
    /// Below it each agent's record has a place.
    place: &'scope Path,
    waiting: std::slice::Iter<'scope, Handed>,
    under_way: VecDeque<(usize, ScopedJoinHandle<'scope, Fetched>)>,
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
    fn next(&mut self) -> Option<(usize, Fetched)> {
        while self.under_way.len() < FETCHED_AT_ONCE
            && let Some(Handed { index, agent, files }) = self.waiting.next()
        {
            let (source, own) = (self.source, self.place.join(index.to_string()));
            let fetching = self.scope.spawn(move || source.fetch(agent, files, &own));
            self.under_way.push_back((*index, fetching));
        }
        let (index, fetching) = self.under_way.pop_front()?;
        let fetched = fetching.join();
        // What reads files of others may fail in ways that nobody has thought of.
        Some((index, fetched.unwrap_or(Err(GatherError::Unreadable))))
    }
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
        if !self.left().is_empty() && !self.outcomes.is_empty() {
            self.measure();
            self.step(|_| Order::HandIn, &|| false)?;
        }
        let place = recording.directory.path().join(STAGING);
        let staging = Staging::begin(&place)?;
        let mut timelines: BTreeMap<StageId, Timeline<SeriesKey>> = BTreeMap::new();
        let answers = self.answers();
        let mut handed: Vec<Handed> = Vec::new();
        for (index, answer) in answers {
            match answer {
                Some(Answer::HandedIn { files }) => {
                    let agent = self.recruits[index].id.clone();
                    handed.push(Handed { index, agent, files });
                }
                Some(Answer::Failed { why }) => self.give_up(index, why),
                Some(_) | None => {}
            }
        }
        let limits = self.doable(&recording.manifest);
        let source = Source { fabric: Arc::clone(&self.fabric), run: self.run.clone(), limits };
        std::thread::scope(|scope| -> Result<(), CallerError> {
            let mut fetching = Fetching::new(scope, &source, &place, &handed);
            while let Some((index, fetched)) = fetching.next() {
                let taken = match &fetched {
                    Ok(directory) => self.take_all(index, directory, sink, recording)?,
                    Err(error) => {
                        let why = in_one_line(error);
                        self.give_up(index, format!("its record cannot be had: {why}"));
                        continue;
                    }
                };
                for (stage, own) in taken.timelines {
                    let all =
                        timelines.entry(stage).or_insert_with(|| Timeline::new(0, INTERVAL_NS));
                    all.merge(&own);
                }
            }
            Ok(())
        })?;
        for of in done.iter_mut() {
            self.complete(of, timelines.remove(&of.stage), recording);
        }
        if !self.left().is_empty() && !self.outcomes.is_empty() {
            self.release()?;
        }
        let _ = self.note_losses();
        staging.remove()?;
        recording.manifest.advice.append(&mut self.remarks);
        self.note_missing(recording);
        Ok(())
    }

    /// Tells agents that what they handed in is safe.
    pub(super) fn release(&mut self) -> Result<(), CallerError> {
        let stays = self.settings.parts_stay;
        self.step(|_| Order::Forget { stays }, &|| false)?;
        for (index, answer) in self.answers() {
            if let Some(Answer::Failed { why }) = answer {
                let name = &self.agents[index].name;
                self.observer.warn(&format!("agent {name} goes on keeping its part: {why}"));
            }
        }
        Ok(())
    }

    /// Fetches what an agent handed in.
    pub(super) fn fetch_record(
        &self,
        index: usize,
        files: &[(String, u64)],
        place: &Path,
        limits: Doable,
    ) -> Result<RunDirectory, GatherError> {
        let (fabric, run) = (Arc::clone(&self.fabric), self.run.clone());
        let source = Source { fabric, run, limits };
        source.fetch(&self.recruits[index].id, files, place)
    }

    /// Adds what an agent recorded to the record.
    fn take_all(
        &mut self,
        index: usize,
        directory: &RunDirectory,
        sink: &mut dyn OpSink,
        recording: &Recording,
    ) -> Result<Taken, CallerError> {
        let taken = self.take(index, directory, sink)?;
        for target in 0..recording.manifest.targets().count() {
            recording.directory.append_names(target, directory)?;
        }
        self.compare(index, &taken);
        self.agents[index].rows_count = Some(taken.rows);
        Ok(taken)
    }

    /// Adds the operations of an agent to the record.
    fn take(
        &self,
        index: usize,
        directory: &RunDirectory,
        sink: &mut dyn OpSink,
    ) -> Result<Taken, CallerError> {
        let mut taken = Taken { rows: 0, ops: BTreeMap::new(), timelines: BTreeMap::new() };
        let mut failed: Option<CallerError> = None;
        let mut waiting: Vec<PackedOp> = Vec::with_capacity(OPS_AT_ONCE);
        OpLog::open(directory)?.scan(&mut |op| {
            if failed.is_some() {
                return;
            }
            let parts = self.outcomes.get(usize::from(op.stage.0));
            let part = parts.and_then(|parts| parts.get(index)?.as_ref());
            let Some(part) = part else {
                failed = Some(GatherError::Stage(op.stage.0).into());
                return;
            };
            let op = shifted(op, part.clock);
            let line = taken.timelines.entry(op.stage);
            let line = line.or_insert_with(|| Timeline::new(0, INTERVAL_NS));
            line.record(series_of(&op), &sample_of(&op));
            *taken.ops.entry(op.stage).or_default() += 1;
            taken.rows += 1;
            waiting.push(PackedOp::from(&op));
            if waiting.len() == OPS_AT_ONCE {
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

    /// Says where what an agent recorded is not what it counted.
    fn compare(&self, index: usize, taken: &Taken) {
        for (stage, parts) in self.outcomes.iter().enumerate() {
            let Some(part) = parts.get(index).and_then(Option::as_ref) else { continue };
            let counted = part.doc.ops_count();
            let recorded = taken.ops.get(&StageId(stage as u8)).copied().unwrap_or(0);
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
    fn complete(
        &mut self,
        done: &mut Done,
        timeline: Option<Timeline<SeriesKey>>,
        recording: &mut Recording,
    ) {
        let number = usize::from(done.stage.0);
        let Some(parts) = self.outcomes.get(number) else { return };
        let mut all: Option<StageOutcome> = None;
        for (part, agent) in parts.iter().zip(&mut self.agents) {
            let is_there = agent.rows_count.is_some();
            let outcome = part.as_ref().and_then(|part| part.doc.outcome(part.clock));
            agent.cpu_ns.resize(number, None);
            agent.cpu_ns.push(outcome.as_ref().map(|of| of.cpu_time.as_nanos() as u64));
            match (&mut all, outcome.filter(|_| is_there)) {
                (_, None) => {}
                (Some(all), Some(outcome)) => all.merge(outcome),
                (all @ None, Some(outcome)) => *all = Some(outcome),
            }
        }
        let Some(mut all) = all else { return };
        ended_by(&mut all, done.outcome.ended_by, done.outcome.ended_because.clone());
        all.timeline = timeline.unwrap_or_else(|| Timeline::new(0, INTERVAL_NS));
        note_outcome(&mut recording.manifest.stages[number], &all);
        done.outcome = all;
    }

    /// Says in the record what of whom is missing.
    fn note_missing(&self, recording: &mut Recording) {
        for agent in self.agents.iter().filter(|agent| agent.rows_count.is_none()) {
            let Some(lost) = &agent.lost else { continue };
            let stage = lost.stage_index.and_then(|at| recording.manifest.stages.get(at as usize));
            let during =
                stage.map_or_else(String::new, |stage| format!(" in stage {}", stage.name));
            recording.manifest.advice.push(format!(
                "agent {} was lost{during}: {}. It was last heard of {} after the run began; all \
                 that it did is missing here (`plimsoll fleet collect` fetches what it kept)",
                agent.name,
                lost.why,
                format::duration(Duration::from_nanos(lost.heard_ns))
            ));
        }
    }
}
