//! The ring pump: the clones of one thread, each with several operations in flight, submitted and
//! reaped without tasks.

mod looks;
mod ops;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use plimsoll_driver::{Access, DriverError, OpenMode, Reply, Request, Ring, RingDriver};
use plimsoll_model::{
    EndpointId, ErrorClass, Interface, JobId, Moment, OpKind, OpRecord, StageId, WorkerId,
};
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::{
    BlockOp, BlockOrderSpec, FileJobSpec, FileOp, FilePacingSpec, FilePlan, FileWorkSpec,
};

use self::looks::{Looks, Seen};
use self::ops::{describe, falls_short, fell_short, fingerprint, is_checked, judge, name_request};
use crate::clock::{rest, spin_on};
use crate::crew::{Crew, Gate};
use crate::lane::{Lane, LaneStep};
use crate::planner::EndReason;
use crate::pump::{Outlet, STOP_CHECK, Shared, ThreadOutcome};
use crate::stage::{EngineError, OpSink, StageContext, StageOutcome};
use crate::watch::{Stops, Verdict};
use crate::worker::{Finished, in_class};

/// A lane whose operations end at once lets others go on after so many.
const BURST_MAX: u32 = 64;

/// How the engine drives a stage on files.
#[derive(Clone, Copy, Debug)]
pub struct RingConfig {
    /// Threads that drive clones through an interface that does not block.
    pub threads: usize,
    /// The interface of jobs that name none.
    pub interface: Interface,
}

/// The clones that one thread drives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Team {
    interface: Interface,
    workers: Vec<WorkerId>,
}

/// Returns which thread drives which clones. What blocks its thread has one of its own.
fn teams(plan: &FilePlan, stage: usize, config: &RingConfig) -> Vec<Team> {
    let (mut alone, mut shared) = (Vec::new(), [const { Vec::new() }; Interface::ALL.len()]);
    for worker in (0..plan.workers(stage)).map(WorkerId) {
        let job = plan.job(stage, worker);
        let blocks = matches!(job.work, FileWorkSpec::Names(_));
        match job.interface.unwrap_or(config.interface) {
            Interface::Psync => alone.push(worker),
            _ if blocks => alone.push(worker),
            interface => shared[interface as usize].push(worker),
        }
    }
    let alone =
        alone.into_iter().map(|worker| Team { interface: Interface::Psync, workers: vec![worker] });
    let dealt = Interface::ALL.into_iter().zip(&shared).flat_map(|(interface, workers)| {
        let threads = config.threads.clamp(1, workers.len().max(1));
        (0..threads).map(move |thread| {
            let workers = workers.iter().skip(thread).step_by(threads).copied().collect();
            Team { interface, workers }
        })
    });
    alone.chain(dealt).filter(|team| !team.workers.is_empty()).collect()
}

/// Returns how many threads a stage takes.
pub fn ring_threads(plan: &FilePlan, stage: usize, config: &RingConfig) -> usize {
    teams(plan, stage, config).len()
}

/// Returns how many operations one thread of a stage may have under way at most.
pub fn ring_slots(plan: &FilePlan, stage: usize, config: &RingConfig) -> u64 {
    let of_worker =
        |team: &Team, worker: &WorkerId| depth_of(plan.job(stage, *worker), team.interface) as u64;
    let of_team = |team: &Team| team.workers.iter().map(|worker| of_worker(team, worker)).sum();
    teams(plan, stage, config).iter().map(of_team).max().unwrap_or_default()
}

/// Runs one stage of a plan on files, recording into `sink`. The context's counters are made for
/// [`ring_threads`] threads.
pub fn run_ring_stage<D: RingDriver>(
    driver: &D,
    (plan, stage): (&FilePlan, usize),
    config: &RingConfig,
    context: &StageContext<'_>,
    sink: &mut dyn OpSink,
) -> Result<StageOutcome, EngineError> {
    let teams = teams(plan, stage, config);
    let rule = OnceLock::new();
    let stops = Stops { user: context.stop, rule: &rule };
    let facts = RingFacts { plan, stage, context, stops };
    let (facts, teams) = (&facts, &teams);
    let body = |index, outlet| {
        Ok(move |gate: &Gate| {
            let thread = RingThread::open(driver, facts, &teams[index], (index, outlet));
            // The others must not go on without this one.
            let thread = thread.inspect_err(|_| context.stop.set());
            Ok(thread?.run(gate.wait()))
        })
    };
    let crew = Crew { context, stops, sink, is_open: false };
    crew.run(teams.len(), body, |_| None)
}

/// What all threads of a stage share.
struct RingFacts<'a> {
    plan: &'a FilePlan,
    stage: usize,
    context: &'a StageContext<'a>,
    stops: Stops<'a>,
}

impl RingFacts<'_> {
    fn stage_id(&self) -> StageId {
        StageId(self.stage as u8)
    }
}

/// An operation under way.
#[derive(Clone, Copy)]
struct UnderWay {
    lane: usize,
    op: FileOp,
    intended: Moment,
    start: Moment,
}

/// Where a lane stands.
#[derive(Clone, Copy, Default)]
struct Seat {
    is_ready: bool,
    waits_until: Option<Moment>,
}

/// One thread with its ring.
struct RingThread<'a, R> {
    facts: &'a RingFacts<'a>,
    ring: R,
    shared: Shared<'a>,
    lanes: Vec<Lane>,
    /// By slot.
    under_way: Vec<Option<UnderWay>>,
    /// Operations that hold a slot, those included that were seen to have ended.
    in_flight: usize,
    looks: Looks,
    /// Lanes that can be asked for their next operation.
    ready: VecDeque<usize>,
    /// Lanes that wait for a moment.
    waiting: BinaryHeap<Reverse<(Moment, usize)>>,
    /// By lane: whether it stands in one of the two.
    seats: Vec<Seat>,
    /// Why each lane ended, once it has.
    ended: Vec<Option<EndReason>>,
    started: Moment,
    paths: [Vec<u8>; 2],
    verifies: bool,
}

/// Returns how many operations a clone may have under way.
fn depth_of(job: &FileJobSpec, interface: Interface) -> usize {
    let depth = match &job.pacing {
        _ if interface == Interface::Psync => 1,
        FilePacingSpec::Open { max_in_flight, .. } => max_in_flight.div_ceil(job.clones.max(1)),
        _ => job.depth,
    };
    depth.max(1) as usize
}

/// Returns how a job opens its files.
fn open_mode(job: &FileJobSpec) -> OpenMode {
    let filling =
        OpenMode { access: Access::Write, direct: false, sync: Default::default(), random: false };
    match &job.work {
        FileWorkSpec::Fill(fill) => OpenMode { direct: fill.direct, ..filling },
        FileWorkSpec::Names(_) => filling,
        FileWorkSpec::Blocks(blocks) => OpenMode {
            access: match blocks.read_percent {
                0 => Access::Write,
                100 => Access::Read,
                _ => Access::ReadWrite,
            },
            direct: blocks.direct,
            sync: blocks.sync,
            random: blocks.order != BlockOrderSpec::Sequential,
        },
    }
}

impl<'a, R: Ring> RingThread<'a, R> {
    /// Opens the ring and everything that the team's clones work on.
    fn open<D: RingDriver<Ring = R>>(
        driver: &D,
        facts: &'a RingFacts<'a>,
        team: &Team,
        (index, outlet): (usize, Outlet<'a>),
    ) -> Result<Self, EngineError> {
        let depth =
            |worker: &WorkerId| depth_of(facts.plan.job(facts.stage, *worker), team.interface);
        let slots = team.workers.iter().map(depth).sum();
        let buffer = |worker: &WorkerId| facts.plan.buffer_bytes(facts.stage, *worker);
        let buffer_bytes = team.workers.iter().map(buffer).max().unwrap_or_default();
        let ring = driver.ring(team.interface, slots, buffer_bytes).map_err(EngineError::Target)?;
        let mut thread = Self {
            facts,
            ring,
            shared: Shared::new(outlet, facts.context.live.thread(index)),
            lanes: Vec::with_capacity(team.workers.len()),
            under_way: vec![None; slots],
            in_flight: 0,
            looks: Looks::default(),
            ready: VecDeque::new(),
            waiting: BinaryHeap::new(),
            seats: vec![Seat::default(); team.workers.len()],
            ended: vec![None; team.workers.len()],
            started: Moment::from_ns(0),
            paths: Default::default(),
            verifies: facts.plan.spec.verify,
        };
        let mut slot = 0;
        for worker in &team.workers {
            let depth = depth(worker);
            let lane = thread.open_lane(*worker, slot..slot + depth)?;
            thread.lanes.push(lane);
            slot += depth;
        }
        Ok(thread)
    }

    fn open_lane(
        &mut self,
        worker: WorkerId,
        slots: std::ops::Range<usize>,
    ) -> Result<Lane, EngineError> {
        let RingFacts { plan, stage, .. } = *self.facts;
        let (index, clone) = plan.job_of(stage, worker);
        let job = plan.job(stage, worker);
        let stream = plan.stream(stage, worker);
        let directory = stream
            .directory()
            .map(|path| self.ring.open_directory(Path::new(path)))
            .transpose()
            .map_err(EngineError::Target)?;
        let mode = open_mode(job);
        let mut files = Vec::new();
        for file in plan.files_of(stage, worker) {
            let path = Path::new(&plan.table.entry(*file).path);
            files.push((*file, self.ring.open_file(path, mode).map_err(EngineError::Target)?));
        }
        files.sort_unstable_by_key(|(file, _)| *file);
        files.dedup_by_key(|(file, _)| *file);
        let ids = (worker, JobId(index as u8));
        let place = (job, clone, plan.spec.seed);
        let mut lane = Lane::new(ids, stream, place, job.pacing.open_loop().as_ref());
        lane.files = files;
        lane.directory = directory;
        lane.free = slots.rev().collect();
        Ok(lane)
    }

    /// Runs the clones to their end.
    fn run(mut self, started: Moment) -> ThreadOutcome {
        let clock = &**self.facts.context.clock;
        self.started = started;
        self.lanes.iter_mut().for_each(|lane| lane.begin(started));
        self.ready.extend(0..self.lanes.len());
        self.seats.fill(Seat { is_ready: true, waits_until: None });
        let mut now = clock.now();
        loop {
            if let Some(reason) = self.facts.stops.reason() {
                self.ended.iter_mut().for_each(|ended| *ended = ended.or(Some(reason)));
                self.ready.clear();
                self.waiting.clear();
            }
            while self.waiting.peek().is_some_and(|Reverse((at, _))| *at <= now) {
                let Reverse((_, lane)) = self.waiting.pop().expect("one was seen");
                self.seats[lane].waits_until = None;
                self.make_ready(lane);
            }
            now = self.take_turns(now);
            if self.looks.has_seen() {
                continue;
            }
            let next = self.waiting.peek().map(|Reverse((at, _))| *at);
            let until = next.map_or(STOP_CHECK, |at| at.since(now).min(STOP_CHECK));
            let wait = if self.ready.is_empty() { until } else { Duration::ZERO };
            if self.in_flight > 0 {
                now = self.looks.wait(&mut self.ring, clock, wait);
                continue;
            }
            if self.ready.is_empty() && self.waiting.is_empty() {
                break;
            }
            if !wait.is_zero() {
                rest(self.facts.context.virtual_time, wait);
            }
            now = clock.now();
        }
        self.hand_in()
    }

    /// Returns what came of it all.
    fn hand_in(mut self) -> ThreadOutcome {
        let over = self.facts.context.clock.now();
        for lane in &mut self.lanes {
            lane.count_skipped(over);
            if let Some(kept) = lane.schedule() {
                self.shared.note_schedule(lane.job, kept);
            }
        }
        self.shared.note_looks(self.looks.outcome());
        let reasons = self.ended.iter().map(|ended| ended.unwrap_or(EndReason::OutOfWork));
        self.shared.finish(reasons.collect(), over)
    }

    /// Takes what was seen to have ended off its slots and has lanes issue what they can, in turns:
    /// between any two slots' content there is a look at what has ended meanwhile. Returns what
    /// time it is then.
    fn take_turns(&mut self, mut now: Moment) -> Moment {
        for _ in 0..self.looks.seen_count().max(self.ready.len()) {
            if let Some(seen) = self.looks.next_seen() {
                self.finish(seen);
            }
            if self.facts.stops.reason().is_some() {
                continue;
            }
            let Some(lane) = self.ready.pop_front() else { continue };
            self.seats[lane].is_ready = false;
            now = self.advance(lane, now.max(self.looks.last()));
        }
        if self.looks.is_due() { self.look() } else { now }
    }

    /// Tells whether something is under way that has not been seen to have ended.
    #[inline]
    fn is_waited_for(&self) -> bool {
        self.in_flight > self.looks.seen_count()
    }

    /// Looks at what has ended, and returns what time it is.
    #[inline]
    fn look(&mut self) -> Moment {
        let is_waited_for = self.is_waited_for();
        self.looks.look(&mut self.ring, &**self.facts.context.clock, is_waited_for)
    }

    /// Looks, if content was made or checked since the last look: more of it follows.
    #[inline]
    fn look_between(&mut self) {
        if self.looks.is_due() && self.is_waited_for() {
            self.look();
        }
        self.looks.note_content();
    }

    /// Has a lane issue what it can at `now`, and returns what time it is then.
    fn advance(&mut self, index: usize, mut now: Moment) -> Moment {
        let clock = &**self.facts.context.clock;
        let mut burst = 0;
        loop {
            if self.ended[index].is_some() || self.lanes[index].free.is_empty() {
                // One of its operations that ends makes it ready again.
                return now;
            }
            match self.lanes[index].next(now) {
                LaneStep::Start { op, intended } => {
                    let (at, has_ended) = self.issue(index, op, intended);
                    now = at;
                    if has_ended {
                        burst += 1;
                        if burst == BURST_MAX || self.facts.stops.user.is_set() {
                            self.make_ready(index);
                            return now;
                        }
                    }
                }
                LaneStep::WaitUntil(at) => {
                    if self.seats[index].waits_until != Some(at) {
                        self.seats[index].waits_until = Some(at);
                        self.waiting.push(Reverse((at, index)));
                    }
                    return now;
                }
                LaneStep::SpinUntil(at) => {
                    now = clock.now();
                    while now < at && !self.facts.stops.user.is_set() {
                        spin_on(self.facts.context.virtual_time, at.since(now));
                        now = if self.is_waited_for() { self.look() } else { clock.now() };
                    }
                }
                LaneStep::WaitForEnd => return now,
                LaneStep::Done(reason) => {
                    self.ended[index] = Some(reason);
                    return now;
                }
            }
        }
    }

    /// Issues an operation. Returns when it ended and true if it did at once, else when it began.
    #[inline]
    fn issue(&mut self, index: usize, op: FileOp, intended: Option<Moment>) -> (Moment, bool) {
        let clock = &**self.facts.context.clock;
        let generator: &Generator = self.facts.context.generator;
        if has_content(&op) {
            self.look_between();
        }
        let lane = &mut self.lanes[index];
        let slot = lane.free.pop().expect("a lane is asked only when it has a free slot");
        let since = intended.map(|at| at.since(self.started));
        self.shared.note_planned(lane.worker, lane.issued_count, fingerprint(&op), since);
        lane.issued_count += 1;
        let [path, new_path] = &mut self.paths;
        let request = match &op {
            FileOp::Block(block) => {
                let BlockOp { offset, len, file, .. } = *block;
                let file = lane.handle(file);
                if block.write {
                    let buffer = &mut self.ring.buffer(slot)[..len as usize];
                    lane.stream.fill(block, generator, buffer);
                    Request::Write { file, offset, len }
                } else {
                    Request::Read { file, offset, len }
                }
            }
            FileOp::Sync { file, data_only } => {
                Request::Sync { file: lane.handle(*file), data_only: *data_only }
            }
            FileOp::Name(name) => {
                if name.kind == OpKind::Create && name.bytes > 0 {
                    let buffer = &mut self.ring.buffer(slot)[..name.bytes as usize];
                    lane.stream.fill_name(name, generator, buffer);
                }
                name_request(lane, name, path, new_path)
            }
        };
        // Making content is the instrument's work, not the file system's.
        let start = clock.now();
        if let Some(intended) = intended {
            self.lanes[index].note_start(intended, start);
        }
        if self.in_flight == self.looks.seen_count() {
            self.looks.begin(start);
        }
        let reply = self.ring.submit(slot, &request);
        let intended = intended.map_or(start, |intended| intended.min(start));
        let under_way = UnderWay { lane: index, op, intended, start };
        let Some(reply) = reply else {
            self.in_flight += 1;
            self.lanes[index].in_flight += 1;
            self.under_way[slot] = Some(under_way);
            return (self.look(), false);
        };
        let end = clock.now();
        self.settle(slot, &under_way, reply, end);
        (end, true)
    }

    /// Takes what has ended off its slot; its lane can go on.
    fn finish(&mut self, Seen { slot, reply, end, gap }: Seen) {
        let under_way = self.under_way[slot].take().expect("a reply belongs to an operation");
        let lane = under_way.lane;
        self.in_flight -= 1;
        self.lanes[lane].in_flight -= 1;
        self.looks.note_end(under_way.start, end, gap);
        if reply.is_ok() && is_checked(&under_way.op, self.verifies) {
            self.look_between();
        }
        self.settle(slot, &under_way, reply, end);
        if self.ended[lane].is_none() {
            self.make_ready(lane);
        }
    }

    #[inline]
    fn make_ready(&mut self, lane: usize) {
        let seat = &mut self.seats[lane];
        if !seat.is_ready {
            seat.is_ready = true;
            self.ready.push_back(lane);
        }
    }

    /// Records an operation that has ended and frees its slot.
    #[inline]
    fn settle(&mut self, slot: usize, under_way: &UnderWay, reply: Reply, end: Moment) {
        let &UnderWay { lane: index, ref op, intended, start } = under_way;
        let lane = &mut self.lanes[index];
        lane.free.push(slot);
        let generator: &Generator = self.facts.context.generator;
        let (bytes, failure) = match reply {
            Ok(count) if falls_short(op, count) => {
                (count, Some(fell_short(self.facts.plan, op, count)))
            }
            Ok(count) => {
                let wrong =
                    judge(lane, op, count, generator, self.verifies, || self.ring.buffer(slot));
                (count, wrong.map(|wrong| (Some(wrong.kind), in_class(wrong))))
            }
            Err(error) => (0, Some((None, error))),
        };
        let outcome = failure.as_ref().map_or(ErrorClass::Ok, |(_, error)| error.class);
        lane.completed(op, outcome.is_ok(), end);
        let (kind, object) = describe(op);
        let record = OpRecord {
            stage: self.facts.stage_id(),
            job: lane.job,
            worker: lane.worker,
            kind,
            endpoint: EndpointId(0),
            object,
            objects_count: 1,
            bytes: if kind.moves_bytes() { bytes } else { 0 },
            intended,
            start,
            first_byte: None,
            last_byte_sent: None,
            end: end.max(start),
            outcome,
            attempts: 1,
        };
        let Some((wrong, error)) = failure else { return self.shared.count(&record) };
        self.note_failure(&record, &error);
        self.shared.keep(Finished { record, error: Some(error), wrong, server_name: None });
    }

    /// Ends the stage where its first failure is to do so.
    #[cold]
    fn note_failure(&self, record: &OpRecord, error: &DriverError) {
        if !self.facts.plan.spec.stages[self.facts.stage].end_on_failure {
            return;
        }
        let because = format!("{} failed: {error}", record.kind.name());
        self.facts.stops.rule.get_or_init(|| Verdict { reason: EndReason::Failure, because });
    }
}

/// Tells whether content is made before an operation.
#[inline]
fn has_content(op: &FileOp) -> bool {
    match op {
        FileOp::Block(block) => block.write,
        FileOp::Name(name) => name.kind == OpKind::Create && name.bytes > 0,
        FileOp::Sync { .. } => false,
    }
}
