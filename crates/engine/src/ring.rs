//! The ring loop: the workers on files of one thread, each with several operations in flight,
//! submitted and reaped without tasks.

mod looks;
mod ops;
mod teams;
mod worker;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::{Access, OpenMode, Reply, Request, Ring, RingDriver};
use plimsoll_model::{Clock, EndReason, ErrorClass, Moment, OpKind, OpRecord, StageId, WorkerId};
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::{BlockOp, FileOp, FilePlan};
use plimsoll_workload::plan::spec::BlockOrder;
use plimsoll_workload::plan::{Job, Work};

use self::looks::{Looks, Seen};
use self::ops::{describe, falls_short, fell_short, fingerprint, is_checked, judge, name_request};
pub use self::teams::{FilesJob, RingConfig, ring_slots, ring_threads};
pub(crate) use self::teams::{Team, teams, virtual_teams};
use self::worker::{FileStep, FileWorker};
use crate::clock::{STOP_CHECK, block_for};
use crate::context::StageContext;
use crate::outcome::EngineError;
use crate::pacing::{Pacer, StageEnd, WorkerPlace, arrivals_seed};
use crate::records::{Finished, ThreadOutcome, ThreadRecords};
use crate::timing::{OpsLeft, Stops};
use crate::verify::in_class;
use crate::virtual_time::VirtualTime;

/// A worker whose operations end at once lets others go on after so many.
const BURST_MAX: u32 = 64;

/// What all threads of the jobs on files share.
pub(crate) struct RingFacts<'a> {
    pub(crate) plan: &'a FilePlan,
    /// Which stage of the plan.
    pub(crate) stage: usize,
    /// Which draw of its operations.
    pub(crate) draw: u8,
    pub(crate) stage_id: StageId,
    pub(crate) jobs: &'a [FilesJob],
    pub(crate) number_first: u32,
    pub(crate) context: &'a StageContext<'a>,
    pub(crate) stops: Stops<'a>,
    pub(crate) stage_duration: Option<Duration>,
    pub(crate) stage_ops_left: Option<&'a Arc<OpsLeft>>,
}

/// An operation under way.
#[derive(Clone, Copy)]
struct UnderWay {
    worker: usize,
    op: FileOp,
    intended: Moment,
    start: Moment,
}

/// Where a worker stands.
#[derive(Clone, Copy, Default)]
struct Seat {
    is_ready: bool,
    waits_until: Option<Moment>,
}

/// One thread with its ring.
pub(crate) struct RingThread<'a, R> {
    facts: &'a RingFacts<'a>,
    ring: R,
    records: ThreadRecords<'a>,
    workers: Vec<FileWorker>,
    /// By slot.
    under_way: Vec<Option<UnderWay>>,
    /// Operations that hold a slot, those included that were seen to have ended.
    in_flight: usize,
    looks: Looks,
    /// Workers that can be asked for their next operation.
    ready: VecDeque<usize>,
    /// Workers that wait for a moment.
    waiting: BinaryHeap<Reverse<(Moment, usize)>>,
    /// By worker: whether it stands in one of the two.
    seats: Vec<Seat>,
    /// Why each worker ended, once it has.
    ended: Vec<Option<EndReason>>,
    started: Moment,
    paths: [Vec<u8>; 2],
    verifies: bool,
}

/// Returns how a job opens its files.
fn open_mode(job: &Job) -> OpenMode {
    let filling =
        OpenMode { access: Access::Write, direct: false, sync: Default::default(), random: false };
    match &job.work {
        Work::Fill { direct, .. } => OpenMode { direct: *direct, ..filling },
        Work::Blocks(blocks) => OpenMode {
            access: match (blocks.reads(), blocks.writes()) {
                (false, _) => Access::Write,
                (true, false) => Access::Read,
                (true, true) => Access::ReadWrite,
            },
            direct: blocks.direct,
            sync: blocks.sync,
            random: blocks.order != BlockOrder::Sequential,
        },
        Work::Replay { .. } => OpenMode { access: Access::ReadWrite, random: true, ..filling },
        _ => filling,
    }
}

/// What a thread does when its workers have nothing to do at the moment.
enum Rest {
    /// Goes on.
    None,
    /// Waits for what ends next, at most so long.
    ForEnd(Duration),
    /// Waits so long, with nothing under way.
    For(Duration),
    /// All is over.
    Over,
}

impl<'a, R: Ring> RingThread<'a, R> {
    /// Opens the ring and everything that the team's workers work on.
    pub(crate) fn open<D: RingDriver<Ring = R>>(
        driver: &D,
        facts: &'a RingFacts<'a>,
        team: &Team,
        records: ThreadRecords<'a>,
    ) -> Result<Self, EngineError> {
        let slots = team.workers.iter().map(|(_, depth)| depth).sum();
        let buffer =
            |(worker, _): &(WorkerId, usize)| facts.plan.buffer_bytes(facts.stage, *worker);
        let buffer_bytes = team.workers.iter().map(buffer).max().unwrap_or_default();
        let ring = driver.ring(team.interface, slots, buffer_bytes).map_err(EngineError::Target)?;
        let mut thread = Self {
            facts,
            ring,
            records,
            workers: Vec::with_capacity(team.workers.len()),
            under_way: vec![None; slots],
            in_flight: 0,
            looks: Looks::default(),
            ready: VecDeque::new(),
            waiting: BinaryHeap::new(),
            seats: vec![Seat::default(); team.workers.len()],
            ended: vec![None; team.workers.len()],
            started: Moment::EPOCH,
            paths: Default::default(),
            verifies: facts.plan.verifies,
        };
        let mut slot = 0;
        for (worker, depth) in &team.workers {
            let worker = thread.open_worker(*worker, slot..slot + depth)?;
            thread.workers.push(worker);
            slot += depth;
        }
        Ok(thread)
    }

    fn open_worker(
        &mut self,
        worker: WorkerId,
        slots: std::ops::Range<usize>,
    ) -> Result<FileWorker, EngineError> {
        let RingFacts { plan, stage, draw, .. } = *self.facts;
        let job = plan.job(stage, worker);
        let stream = plan.stream(stage, worker, draw);
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
        let of = &self.facts.jobs[plan.job_of(stage, worker).0];
        Ok(FileWorker {
            number: WorkerId(self.facts.number_first + worker.0),
            job: of.id,
            endpoint: of.endpoint,
            stream,
            pacer: self.pacer(worker, Moment::EPOCH),
            files,
            directory,
            free: slots.rev().collect(),
            in_flight: 0,
            issued_count: 0,
            pending: None,
            over: None,
            skipped_count: 0,
        })
    }

    /// Returns the pacing of a worker of the plan in a stage that begins at `started`.
    fn pacer(&self, worker: WorkerId, started: Moment) -> Pacer {
        let RingFacts { plan, stage, jobs, number_first, .. } = *self.facts;
        let (job, clone) = plan.job_of(stage, worker);
        let place = WorkerPlace {
            worker: WorkerId(clone),
            workers: plan.job(stage, worker).workers,
            number: WorkerId(number_first + worker.0),
            seed: plan.seed.0,
            arrivals_seed: arrivals_seed(plan.seed.0, self.facts.stage_id),
        };
        let (duration, ops_left) = (self.facts.stage_duration, self.facts.stage_ops_left);
        let end = StageEnd { duration, ops_left };
        let pacer = Pacer::new(&jobs[job].timing, place, end, started);
        match plan.times(stage, worker).filter(|_| pacer.is_open()) {
            Some(times) => pacer.at_times(times),
            None => pacer,
        }
    }

    /// Has the stage begin at `started`.
    fn begin(&mut self, started: Moment) {
        self.started = started;
        self.records.begin(started);
        for index in 0..self.workers.len() {
            let worker = WorkerId(self.workers[index].number.0 - self.facts.number_first);
            self.workers[index].pacer = self.pacer(worker, started);
        }
        self.ready.extend(0..self.workers.len());
        self.seats.fill(Seat { is_ready: true, waits_until: None });
    }

    /// Runs the workers to their end.
    pub(crate) fn run(mut self, started: Moment) -> ThreadOutcome {
        let clock = &**self.facts.context.clock;
        self.begin(started);
        let mut now = clock.now();
        loop {
            match self.turn(&mut now) {
                Rest::None => {}
                Rest::ForEnd(wait) => now = self.looks.wait(&mut self.ring, clock, wait),
                Rest::For(wait) => {
                    if !wait.is_zero() {
                        block_for(wait);
                    }
                    now = clock.now();
                }
                Rest::Over => return self.hand_in(),
            }
        }
    }

    /// The same in virtual time, among others that wait in it. A ring that knows when its
    /// operations end is waited for here; any other lets the time pass itself.
    pub(crate) async fn run_virtual(
        mut self,
        started: Moment,
        time: &VirtualTime,
    ) -> ThreadOutcome {
        time.sleep_until(started).await;
        self.begin(started);
        let mut now = time.now();
        loop {
            match self.turn(&mut now) {
                Rest::None => {}
                Rest::ForEnd(mut wait) => {
                    if let Some(end) = self.ring.next_end() {
                        time.sleep_until(end.min(now.after(wait))).await;
                        wait = Duration::ZERO;
                    }
                    now = self.looks.wait(&mut self.ring, time, wait);
                }
                Rest::For(wait) => {
                    time.sleep_until(now.after(wait)).await;
                    now = time.now();
                }
                Rest::Over => return self.hand_in(),
            }
        }
    }

    /// Has all workers do what they can at `now`, and returns what is to be waited for then.
    #[inline]
    fn turn(&mut self, now: &mut Moment) -> Rest {
        if let Some(reason) = self.facts.stops.reason() {
            self.ended.iter_mut().for_each(|ended| *ended = ended.or(Some(reason)));
            self.ready.clear();
            self.waiting.clear();
        }
        while self.waiting.peek().is_some_and(|Reverse((at, _))| *at <= *now) {
            let Reverse((_, worker)) = self.waiting.pop().expect("one was seen");
            self.seats[worker].waits_until = None;
            self.make_ready(worker);
        }
        *now = self.take_turns(*now);
        if self.looks.has_seen() {
            return Rest::None;
        }
        let next = self.waiting.peek().map(|Reverse((at, _))| *at);
        let until = next.map_or(STOP_CHECK, |at| at.since(*now).min(STOP_CHECK));
        let wait = if self.ready.is_empty() { until } else { Duration::ZERO };
        if self.in_flight > 0 {
            return Rest::ForEnd(wait);
        }
        if self.ready.is_empty() && self.waiting.is_empty() {
            return Rest::Over;
        }
        Rest::For(wait)
    }

    /// Returns what came of it all.
    fn hand_in(mut self) -> ThreadOutcome {
        let over = self.facts.context.clock.now();
        for (worker, ended) in self.workers.iter_mut().zip(&self.ended) {
            worker.count_skipped(over);
            self.records.note_skipped(worker.job, worker.skipped_count);
            self.records.note_offered(worker.job, worker.offered());
            self.records.note_ended(worker.job, ended.unwrap_or_default());
        }
        self.records.note_looks(self.looks.outcome());
        self.records.finish(over)
    }

    /// Takes what was seen to have ended off its slots and has workers issue what they can, in
    /// turns: between any two slots' content there is a look at what has ended meanwhile. Returns
    /// what time it is then.
    fn take_turns(&mut self, mut now: Moment) -> Moment {
        for _ in 0..self.looks.seen_count().max(self.ready.len()) {
            if let Some(seen) = self.looks.next_seen() {
                self.finish(seen);
            }
            if self.facts.stops.reason().is_some() {
                continue;
            }
            let Some(worker) = self.ready.pop_front() else { continue };
            self.seats[worker].is_ready = false;
            now = self.advance(worker, now.max(self.looks.last()));
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

    /// Has a worker issue what it can at `now`, and returns what time it is then.
    fn advance(&mut self, index: usize, mut now: Moment) -> Moment {
        let clock = &**self.facts.context.clock;
        let mut burst = 0;
        loop {
            if self.ended[index].is_some() || self.workers[index].free.is_empty() {
                // One of its operations that ends makes it ready again.
                return now;
            }
            match self.workers[index].next(now) {
                FileStep::Start { op, intended } => {
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
                // Virtual time passes only for who waits.
                FileStep::SpinUntil(at) if self.facts.context.virtual_time.is_some() => {
                    self.wait_until(index, at);
                    return now;
                }
                FileStep::WaitUntil(at) => {
                    self.wait_until(index, at);
                    return now;
                }
                FileStep::SpinUntil(at) => {
                    now = clock.now();
                    while now < at && !self.facts.stops.user.is_set() {
                        std::hint::spin_loop();
                        now = if self.is_waited_for() { self.look() } else { clock.now() };
                    }
                }
                FileStep::WaitForEnd => return now,
                FileStep::Done(reason) => {
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
        let worker = &mut self.workers[index];
        let slot = worker.free.pop().expect("a worker is asked only when it has a slot");
        let since = intended.map(|at| at.since(self.started));
        let FileWorker { job, number, issued_count, .. } = *worker;
        let what = (describe(&op).0, fingerprint(&op));
        self.records.note_planned(job, number, issued_count, what, since);
        worker.issued_count += 1;
        let [path, new_path] = &mut self.paths;
        let request = match &op {
            FileOp::Block(block) => {
                let BlockOp { offset, len, file, .. } = *block;
                let file = worker.handle(file);
                if block.write {
                    let buffer = &mut self.ring.buffer(slot)[..len as usize];
                    worker.stream.fill(block, generator, buffer);
                    Request::Write { file, offset, len }
                } else {
                    Request::Read { file, offset, len }
                }
            }
            FileOp::Sync { file, data_only } => {
                Request::Sync { file: worker.handle(*file), data_only: *data_only }
            }
            FileOp::Name(name) => {
                if name.kind == OpKind::Create && name.bytes > 0 {
                    let buffer = &mut self.ring.buffer(slot)[..name.bytes as usize];
                    worker.stream.fill_name(name, generator, buffer);
                }
                name_request(worker, name, path, new_path)
            }
        };
        // Making content is the instrument's work, not the file system's.
        let start = clock.now();
        if self.in_flight == self.looks.seen_count() {
            self.looks.begin(start);
        }
        let reply = self.ring.submit(slot, &request);
        let intended = intended.map_or(start, |intended| intended.min(start));
        let under_way = UnderWay { worker: index, op, intended, start };
        let Some(reply) = reply else {
            self.in_flight += 1;
            self.workers[index].in_flight += 1;
            self.under_way[slot] = Some(under_way);
            return (self.look(), false);
        };
        let end = clock.now();
        self.settle(slot, &under_way, reply, end);
        (end, true)
    }

    /// Takes what has ended off its slot; its worker can go on.
    fn finish(&mut self, Seen { slot, reply, end, gap }: Seen) {
        let under_way = self.under_way[slot].take().expect("a reply belongs to an operation");
        let worker = under_way.worker;
        self.in_flight -= 1;
        self.workers[worker].in_flight -= 1;
        self.looks.note_end(under_way.start, end, gap);
        if reply.is_ok() && is_checked(&under_way.op, self.verifies) {
            self.look_between();
        }
        self.settle(slot, &under_way, reply, end);
        if self.ended[worker].is_none() {
            self.make_ready(worker);
        }
    }

    #[inline]
    fn make_ready(&mut self, worker: usize) {
        let seat = &mut self.seats[worker];
        if !seat.is_ready {
            seat.is_ready = true;
            self.ready.push_back(worker);
        }
    }

    /// Has a worker made ready at `at`.
    fn wait_until(&mut self, worker: usize, at: Moment) {
        if self.seats[worker].waits_until != Some(at) {
            self.seats[worker].waits_until = Some(at);
            self.waiting.push(Reverse((at, worker)));
        }
    }

    /// Records an operation that has ended and frees its slot.
    #[inline]
    fn settle(&mut self, slot: usize, under_way: &UnderWay, reply: Reply, end: Moment) {
        let &UnderWay { worker: index, ref op, intended, start } = under_way;
        let worker = &mut self.workers[index];
        worker.free.push(slot);
        let generator: &Generator = self.facts.context.generator;
        let (bytes, failure) = match reply {
            Ok(count) if falls_short(op, count) => {
                (count, Some(fell_short(self.facts.plan, op, count)))
            }
            Ok(count) => {
                let wrong =
                    judge(worker, op, count, generator, self.verifies, || self.ring.buffer(slot));
                (count, wrong.map(|wrong| (Some(wrong.kind), in_class(wrong))))
            }
            Err(error) => (0, Some((None, error))),
        };
        let outcome = failure.as_ref().map_or(ErrorClass::Ok, |(_, error)| error.class);
        worker.completed(op, outcome.is_ok(), end);
        let (kind, object) = describe(op);
        let record = OpRecord {
            stage: self.facts.stage_id,
            job: worker.job,
            worker: worker.number,
            kind,
            endpoint: worker.endpoint,
            object,
            objects_count: 1,
            bytes: if kind.moves_bytes() { bytes } else { 0 },
            intended,
            start,
            first_byte: None,
            assigned: None,
            last_byte_sent: None,
            end: end.max(start),
            outcome,
            attempts: 1,
            is_measured: true,
        };
        let Some((wrong, error)) = failure else { return self.records.count(&record) };
        let (is_unchecked, server_name) = (false, None);
        let error = Some(error);
        self.records.keep(&Finished { record, error, wrong, is_unchecked, server_name });
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
