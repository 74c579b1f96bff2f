//! A run while it goes on: its counters are read once a second, noted, and told to all who listen.
//!
//! A second is made a text once, whoever listens; who does not keep up is let go.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_conduct::{Goal, Observer, StageView};
use plimsoll_engine::{LiveCounts, LivePart, PartState};
use plimsoll_model::{OpKind, SeriesKey};
use plimsoll_stats::Timeline;
use tokio::sync::broadcast;

use crate::clock::Clock;
use crate::facts::{Facts, StageProgress, StageState};
use crate::state::Number;
use crate::store::{Remark, Store};
use crate::ticks::{Counted, Part, Row, Tick, read_live};

/// How often counters are read.
const EVERY: Duration = Duration::from_secs(1);
/// So many seconds are kept for who asks for what came after one.
const RECENT_MAX: usize = 120;
/// Who has missed more than this asks for the whole again.
const MISSED_MAX: u64 = 40;
/// Who is further behind than this is let go.
const BEHIND_MAX: usize = 64;

/// Something that happened to a run.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A second was counted.
    Tick(Arc<Told>),
    /// Something was said.
    Log(Arc<Remark>, i64),
    /// A state, a stage or a job changed.
    Changed,
    /// It is over.
    End,
}

/// A second, and how far the run was.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// What was counted in it.
    pub tick: Tick,
    /// What was counted since the stage began.
    pub sums: Vec<Row>,
    /// How far the run is, 0 to 1.
    pub progress: Option<f64>,
    /// The same for the wire, made by whoever needs it first.
    pub(crate) text: std::sync::OnceLock<bytes::Bytes>,
}

/// A run that goes on.
pub(crate) struct Watch {
    number: Number,
    facts: Facts,
    store: Arc<Store>,
    clock: Clock,
    events: broadcast::Sender<Event>,
    inner: Mutex<Inner>,
    /// Is told the same.
    beside: Option<Arc<dyn Beside>>,
}

/// Whoever else is told of a run.
pub(crate) trait Beside: Send + Sync {
    /// A second was counted in a stage that COSBench calls so, if it has a name for it.
    fn tick(&self, tick: &Tick, stage: Option<&str>);

    /// Something was said.
    fn said(&self, remark: &Remark);
}

#[derive(Default)]
struct Inner {
    seq: u64,
    log_seq: i64,
    recent: VecDeque<Arc<Told>>,
    stages: Vec<StageProgress>,
    progress: Option<f64>,
    file: Option<File>,
}

impl Watch {
    /// Begins to watch a run, which notes its seconds in `file`.
    pub(crate) fn new(
        number: Number,
        facts: Facts,
        store: Arc<Store>,
        file: Option<File>,
        beside: Option<Arc<dyn Beside>>,
    ) -> Self {
        let clock = Clock::start();
        let stage = |index| StageProgress { number: index + 1, ..StageProgress::default() };
        let stages = (0..facts.stages.len()).map(stage).collect();
        let inner = Mutex::new(Inner { stages, file, ..Inner::default() });
        let (events, _) = broadcast::channel(BEHIND_MAX);
        Self { number, facts, store, clock, events, inner, beside }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens to what happens from now on; also returns the seconds after that number, or `None`
    /// where they are not kept any more.
    pub(crate) fn listen(
        &self,
        after: u64,
    ) -> (broadcast::Receiver<Event>, Option<Vec<Arc<Told>>>) {
        let inner = self.inner();
        let events = self.events.subscribe();
        let first = inner.recent.front().map_or(inner.seq + 1, |told| told.tick.seq);
        let is_near = inner.seq.saturating_sub(after) <= MISSED_MAX;
        let missed = (is_near && after.saturating_add(1) >= first)
            .then(|| inner.recent.iter().filter(|told| told.tick.seq > after).cloned().collect());
        (events, missed)
    }

    /// Returns how far the run is.
    pub(crate) fn progress(&self) -> Option<f64> {
        self.inner().progress
    }

    /// Returns how its stages stand.
    pub(crate) fn stages(&self) -> Vec<StageProgress> {
        self.inner().stages.clone()
    }

    /// Returns the id of the stage that goes on, as COSBench names it: `s3-main`.
    pub(crate) fn short_stage(&self) -> Option<String> {
        let stages = self.stages();
        let goes_on = |stage: &&StageProgress| {
            matches!(stage.state, StageState::Running | StageState::Sleeping)
        };
        let number = stages.iter().find(goes_on)?.number;
        let plan = self.facts.stages.get(number - 1);
        Some(plan.map_or_else(|| format!("s{number}"), |plan| plan.id_as(number)))
    }

    /// Returns the last second.
    pub(crate) fn last(&self) -> Option<Arc<Told>> {
        self.inner().recent.back().cloned()
    }

    /// Returns what it is known of before it runs.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Says something of the run.
    pub(crate) fn remark(&self, level: &str, text: &str) {
        let remark =
            Remark { at_ms: self.clock.now_ms(), level: level.to_owned(), text: text.to_owned() };
        if let Some(beside) = &self.beside {
            beside.said(&remark);
        }
        // A remark that cannot be kept ends no run.
        let _ = self.store.remark(self.number, &remark);
        let seq = {
            let mut inner = self.inner();
            inner.log_seq += 1;
            inner.log_seq
        };
        let _ = self.events.send(Event::Log(Arc::new(remark), seq));
    }

    /// Says that something about the run changed that is not a second.
    pub(crate) fn changed(&self) {
        let _ = self.events.send(Event::Changed);
    }

    /// Ends all stages that have not ended, and tells who listens that nothing more comes.
    pub(crate) fn end(&self, running: StageState, waiting: StageState) {
        let at_ms = self.clock.now_ms();
        let stages = {
            let mut inner = self.inner();
            for stage in &mut inner.stages {
                match stage.state {
                    StageState::Running | StageState::Sleeping => enter(stage, running, at_ms),
                    StageState::Waiting => enter(stage, waiting, at_ms),
                    _ => {}
                }
            }
            inner.file = None;
            inner.stages.clone()
        };
        let _ = self.store.progress(self.number, &stages);
        let _ = self.events.send(Event::Changed);
        let _ = self.events.send(Event::End);
    }

    /// Finds the stage of that name that comes next, and begins it.
    fn begin_stage(&self, name: &str) -> usize {
        let at_ms = self.clock.now_ms();
        let mut inner = self.inner();
        let next = inner.stages.iter().rposition(|stage| stage.began_at_ms.is_some());
        let next = next.map_or(0, |last| last + 1);
        let is_it = |index: &usize| self.facts.stages[*index].name == name;
        let index = (next..inner.stages.len()).find(is_it).unwrap_or(next);
        if index >= inner.stages.len() {
            // Such as a probe of a search, which no plan names one by one.
            let number = inner.stages.len() + 1;
            inner.stages.push(StageProgress { number, ..StageProgress::default() });
        }
        let is_pause = self.facts.stages.get(index).is_some_and(|stage| stage.jobs.is_empty());
        let state = if is_pause { StageState::Sleeping } else { StageState::Running };
        enter(&mut inner.stages[index], state, at_ms);
        inner.stages[index].began_at_ms = Some(at_ms);
        let stages = inner.stages.clone();
        drop(inner);
        let _ = self.store.progress(self.number, &stages);
        self.remark("stage", &format!("stage s{}-{name} began", index + 1));
        self.changed();
        index
    }

    fn end_stage(&self, index: usize, name: &str) {
        let at_ms = self.clock.now_ms();
        let stages = {
            let mut inner = self.inner();
            enter(&mut inner.stages[index], StageState::Completed, at_ms);
            inner.stages.clone()
        };
        let _ = self.store.progress(self.number, &stages);
        self.remark("stage", &format!("stage s{}-{name} ended", index + 1));
        self.changed();
    }

    /// Reads the counters once a second until the stage is over, and once more then.
    fn sample(&self, index: usize, view: &StageView<'_>, ended: &Receiver<()>) {
        let began = self.clock.moment();
        let mut before: Vec<(OpKind, Counted)> = Vec::new();
        let mut parts_before: Vec<LiveCounts> = Vec::new();
        let (mut last, mut due) = (began, began.after(EVERY));
        loop {
            let wait = due.since(self.clock.moment());
            let is_over = !matches!(ended.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
            let now = self.clock.moment();
            let interval = now.since(last);
            let sums = read_live(view.live);
            let (parts, counts) = read_parts(view, &parts_before);
            parts_before = counts;
            let job = match self.facts.stages.get(index).map(|stage| stage.jobs.len()) {
                Some(1) => Some(1),
                _ => None,
            };
            let rows = sums.iter().map(|(kind, counted)| {
                let earlier = before.iter().find(|(of, _)| of == kind);
                let counted = earlier.map_or(counted.clone(), |(_, from)| counted.since(from));
                Row { job, kind: kind.name().to_owned(), counted }
            });
            let tick = Tick {
                seq: 0,
                at_ms: self.clock.now_ms(),
                interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
                stage: index + 1,
                rows: rows.collect(),
                parts,
            };
            let progress = self.fraction(index, view, now.since(began));
            self.note(tick, &sums, job, progress);
            before = sums;
            last = now;
            due = due.after(EVERY);
            if is_over {
                return;
            }
        }
    }

    /// Keeps a second, and tells it.
    fn note(
        &self,
        mut tick: Tick,
        sums: &[(OpKind, Counted)],
        job: Option<usize>,
        progress: Option<f64>,
    ) {
        let mut inner = self.inner();
        inner.seq += 1;
        tick.seq = inner.seq;
        inner.progress = progress;
        if let Some(stage) = inner.stages.get_mut(tick.stage - 1) {
            stage.ops_count = sums.iter().map(|(_, of)| of.ended_count()).sum();
            stage.ops_failed_count = sums.iter().map(|(_, of)| of.failed_count()).sum();
            stage.bytes_count = sums.iter().map(|(_, of)| of.bytes).sum();
        }
        if let (Some(file), Ok(mut line)) = (&mut inner.file, serde_json::to_string(&tick)) {
            line.push('\n');
            // A full disk costs the history of seconds, never the run.
            let _ = file.write_all(line.as_bytes());
        }
        let row = |(kind, counted): &(OpKind, Counted)| Row {
            job,
            kind: kind.name().to_owned(),
            counted: Counted { cells: Vec::new(), ..counted.clone() },
        };
        let sums = sums.iter().map(row).collect();
        let told = Told { tick, sums, progress, text: std::sync::OnceLock::new() };
        let told = Arc::new(told);
        inner.recent.push_back(Arc::clone(&told));
        while inner.recent.len() > RECENT_MAX {
            inner.recent.pop_front();
        }
        // Sent under the lock, so that who begins to listen misses none and sees none twice.
        let _ = self.events.send(Event::Tick(Arc::clone(&told)));
        drop(inner);
        if let Some(beside) = &self.beside {
            let plan = self.facts.stages.get(told.tick.stage - 1);
            beside.tick(&told.tick, plan.and_then(|plan| plan.id.as_deref()));
        }
    }

    /// Returns how far the whole run is.
    fn fraction(&self, index: usize, view: &StageView<'_>, since: Duration) -> Option<f64> {
        let of_stage = match view.goal {
            Goal::Ops(0) => 0.0,
            Goal::Ops(ops) => {
                let sums = read_live(view.live);
                let ended: u64 = sums.iter().map(|(_, of)| of.ended_count()).sum();
                ended as f64 / ops as f64
            }
            Goal::Time(time) => since.as_secs_f64() / time.as_secs_f64().max(1e-9),
        };
        let stages = self.facts.stages.len();
        (index < stages).then(|| (index as f64 + of_stage.min(1.0)) / stages as f64)
    }
}

fn enter(stage: &mut StageProgress, state: StageState, at_ms: i64) {
    stage.state = state;
    stage.states.push((state, at_ms));
    if !matches!(state, StageState::Running | StageState::Sleeping) && stage.began_at_ms.is_some() {
        stage.ended_at_ms = Some(at_ms);
    }
}

fn read_parts(view: &StageView<'_>, before: &[LiveCounts]) -> (Vec<Part>, Vec<LiveCounts>) {
    let parts: Vec<LivePart> = view.live.parts();
    let counts: Vec<LiveCounts> = (0..parts.len()).map(|slot| view.live.counts_of(slot)).collect();
    let part = |(slot, part): (usize, &LivePart)| {
        let now = counts[slot];
        let earlier = before.get(slot).copied().unwrap_or_default();
        let ended = |counts: LiveCounts| counts.ok + counts.failed;
        let state = match part.state {
            PartState::Works => "works",
            PartState::Done => "done",
            PartState::Silent => "silent",
            PartState::Lost => "lost",
        };
        Part {
            name: part.name.clone(),
            state: state.to_owned(),
            ops: ended(now).saturating_sub(ended(earlier)),
            failed: now.failed.saturating_sub(earlier.failed),
            bytes: now.bytes.saturating_sub(earlier.bytes),
            ops_count: ended(now),
            ops_failed_count: now.failed,
        }
    };
    (parts.iter().enumerate().map(part).collect(), counts)
}

impl Observer for Watch {
    fn note(&self, line: &str) {
        self.remark("info", line);
    }

    fn warn(&self, line: &str) {
        self.remark("warning", line);
    }

    fn during(&self, stage: &StageView<'_>, work: &mut dyn FnMut()) {
        let index = self.begin_stage(stage.name);
        thread::scope(|scope| {
            let (end, ended) = channel::<()>();
            let reader = thread::Builder::new().name("console-ticks".to_owned());
            let reader = reader.spawn_scoped(scope, move || self.sample(index, stage, &ended));
            work();
            drop(end);
            // Without a reader the run goes on unseen; a panic there is no failure of the run.
            let _ = reader.map(thread::ScopedJoinHandle::join);
        });
        self.end_stage(index, stage.name);
    }

    fn stages_ended(&self, measured: Vec<(String, Timeline<SeriesKey>)>) {
        drop(measured);
    }
}
