//! Objects that are uploaded in parts: begun, their parts written at the same time, completed.
//! Every request of it is an operation of its own. What cannot be completed is given up.

use std::cell::{Cell, RefCell};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use plimsoll_driver::Session;
use plimsoll_model::{ErrorClass, Moment, ObjectId, OpKind, StageKind, WorkerId};
use plimsoll_workload::{Activity, ObjectRef, PlannedOp, Target, Workload};

use crate::planner::{EndReason, Planner, Step};
use crate::pump::{BURST_MAX, STOP_CHECK, Shared, fingerprint};
use crate::watch::Stops;
use crate::worker::{Executor, Finished, Listed, Names, Patience, StageFacts};

/// How often a worker looks whether the upload that it is to take part in has begun.
const BEGUN_LOOK: Duration = Duration::from_millis(1);

/// Returns the operation `kind` on a whole upload of `parts` parts.
fn of_upload(kind: OpKind, object: ObjectId, parts: u32, part_bytes: u64) -> PlannedOp {
    let object = ObjectRef { id: object, size: u64::from(parts) * part_bytes, version: 0 };
    PlannedOp { kind, target: Target::Object(object, None) }
}

fn part_number(op: &PlannedOp) -> u32 {
    let Target::Part { number, .. } = op.target else { unreachable!("only parts are planned") };
    number
}

/// What all lanes of a thread work with.
#[derive(Clone, Copy)]
pub(crate) struct Bench<'a, 'd> {
    pub(crate) facts: &'a StageFacts,
    pub(crate) shared: &'a RefCell<Shared<'d>>,
    pub(crate) listed: &'a RefCell<Listed>,
    pub(crate) stops: Stops<'a>,
    /// When the stage is over, if a time says so.
    pub(crate) deadline: Option<Moment>,
}

/// A session that does one operation of an upload at a time.
struct Lane<'a, S> {
    worker: WorkerId,
    session: S,
    executor: Executor<'a>,
    burst: u32,
}

impl<'a, S: Session> Lane<'a, S> {
    fn new(bench: Bench<'a, '_>, worker: WorkerId, session: S) -> Self {
        let patience = Patience { stops: bench.stops, deadline: bench.deadline };
        let executor = Executor::new(bench.facts, bench.listed, patience);
        Self { worker, session, executor, burst: 0 }
    }

    /// Does `op`, keeps its record and returns when and how it ended and what it gave.
    async fn run(
        &mut self,
        bench: Bench<'_, '_>,
        op: &PlannedOp,
        names: Names<'_>,
    ) -> (ErrorClass, Moment, Option<Box<str>>) {
        let run = self.executor.run(&mut self.session, self.worker, op, names, None);
        let mut finished: Finished = run.await;
        let (outcome, end) = (finished.record.outcome, finished.record.end);
        let server_name = finished.server_name.take().filter(|_| outcome.is_ok());
        bench.shared.borrow_mut().keep(finished);
        self.burst += 1;
        if self.burst == BURST_MAX {
            self.burst = 0;
            tokio::task::yield_now().await;
        }
        (outcome, end, server_name)
    }
}

/// The upload that a worker has under way.
struct Upload {
    object: ObjectId,
    /// Its first part, until a lane takes it.
    first: Option<PlannedOp>,
    /// Parts that a lane has taken, or is waiting to take.
    taken: u32,
    /// By part: how the store names it. Empty for those that are not there.
    server_names: Vec<String>,
    is_failed: bool,
    /// Why no more parts come, if that is so.
    ended: Option<EndReason>,
}

/// Uploads one object after the other on the sessions given, until the stage is over.
pub(crate) async fn upload_objects<S: Session>(
    bench: Bench<'_, '_>,
    worker: WorkerId,
    planner: Planner,
    sessions: Vec<S>,
) -> EndReason {
    let Activity::MultipartPut { parts, part_bytes, .. } = bench.facts.workload.activity else {
        unreachable!("objects are uploaded in parts by a workload that says so")
    };
    let first_lane = worker.0 * sessions.len() as u32;
    let lanes = (first_lane..).zip(sessions);
    let mut lanes: Vec<_> =
        lanes.map(|(lane, session)| Lane::new(bench, WorkerId(lane), session)).collect();
    let worker = Planned { worker, planner: RefCell::new(planner), number: Cell::new(0) };
    loop {
        let first = match worker.next_part(bench, || false).await {
            Ok(Some(first)) => first,
            Ok(None) => unreachable!("nothing has failed yet"),
            Err(reason) => return reason,
        };
        let object = first.target.object_id().expect("a part is of an object");
        let of_upload = |kind| of_upload(kind, object, parts.get(), part_bytes);
        let create = of_upload(OpKind::CreateUpload);
        let (outcome, end, name) = lanes[0].run(bench, &create, Names::None).await;
        let Some(name) = name else {
            worker.planner.borrow_mut().completed(&first, outcome, end);
            continue;
        };
        let upload = RefCell::new(Upload {
            object,
            first: Some(first),
            taken: 1,
            server_names: vec![String::new(); parts.get() as usize],
            is_failed: false,
            ended: None,
        });
        let loops = lanes.iter_mut().map(|lane| worker.upload_parts(bench, lane, &upload, &name));
        loops.collect::<FuturesUnordered<_>>().collect::<()>().await;
        let Upload { server_names, ended, .. } = upload.into_inner();
        finish(bench, &mut lanes[0], &name, &server_names, of_upload).await;
        if let Some(reason) = ended {
            return reason;
        }
    }
}

/// Completes an upload that has all its parts, and gives up any other.
async fn finish<S: Session>(
    bench: Bench<'_, '_>,
    lane: &mut Lane<'_, S>,
    name: &str,
    server_names: &[String],
    of_upload: impl Fn(OpKind) -> PlannedOp,
) {
    let mut is_whole = server_names.iter().all(|server_name| !server_name.is_empty());
    if is_whole {
        let complete = of_upload(OpKind::CompleteUpload);
        let (outcome, ..) = lane.run(bench, &complete, Names::Upload(name, server_names)).await;
        is_whole = outcome.is_ok();
    }
    if !is_whole {
        let abort = of_upload(OpKind::AbortUpload);
        lane.run(bench, &abort, Names::Upload(name, &[])).await;
    }
}

/// The parts that a worker is to upload next, shared by its lanes.
struct Planned {
    worker: WorkerId,
    planner: RefCell<Planner>,
    number: Cell<u64>,
}

impl Planned {
    /// Waits for the next part; `None` once `is_over` says so, and why there is none any more.
    async fn next_part(
        &self,
        bench: Bench<'_, '_>,
        is_over: impl Fn() -> bool,
    ) -> Result<Option<PlannedOp>, EndReason> {
        loop {
            if let Some(reason) = bench.stops.reason() {
                return Err(reason);
            }
            if is_over() {
                return Ok(None);
            }
            let now = bench.facts.clock.now();
            let step = self.planner.borrow_mut().next(now);
            match step {
                Step::Done(reason) => return Err(reason),
                Step::WaitUntil(until) => {
                    let pause = until.since(now).min(STOP_CHECK);
                    bench.facts.waiting.suspend_for(pause).await;
                }
                Step::Start(op) => {
                    let number = self.number.replace(self.number.get() + 1);
                    let hash = fingerprint(&op);
                    bench.shared.borrow_mut().note_planned(self.worker, number, hash, None);
                    return Ok(Some(op));
                }
            }
        }
    }

    /// Uploads parts on one lane until all are taken, one has failed or the stage is over.
    async fn upload_parts<S: Session>(
        &self,
        bench: Bench<'_, '_>,
        lane: &mut Lane<'_, S>,
        upload: &RefCell<Upload>,
        name: &str,
    ) {
        loop {
            let first = upload.borrow_mut().first.take();
            let op = if let Some(first) = first {
                first
            } else {
                {
                    let mut upload = upload.borrow_mut();
                    if upload.taken as usize == upload.server_names.len() {
                        return;
                    }
                    upload.taken += 1;
                }
                let is_over = || {
                    let upload = upload.borrow();
                    upload.is_failed || upload.ended.is_some()
                };
                match self.next_part(bench, is_over).await {
                    Ok(Some(op)) => op,
                    Ok(None) => return,
                    Err(reason) => {
                        upload.borrow_mut().ended = Some(reason);
                        return;
                    }
                }
            };
            debug_assert_eq!(op.target.object_id(), Some(upload.borrow().object));
            let (outcome, end, server_name) = lane.run(bench, &op, Names::Upload(name, &[])).await;
            let mut upload = upload.borrow_mut();
            // Parts of an upload that has failed already say nothing new.
            if !upload.is_failed {
                self.planner.borrow_mut().completed(&op, outcome, end);
            }
            match server_name {
                Some(server_name) => {
                    upload.server_names[part_number(&op) as usize - 1] = server_name.into()
                }
                None => upload.is_failed = true,
            }
        }
    }
}

/// Where the workers meet that upload one object together: one of them begins, the last completes.
#[derive(Debug, Default)]
pub(crate) struct UploadDesk(Mutex<DeskState>);

#[derive(Debug, Default)]
struct DeskState {
    begun: Begun,
    server_names: Vec<String>,
    is_failed: bool,
    ended_count: u32,
}

#[derive(Clone, Debug, Default)]
enum Begun {
    #[default]
    NotYet,
    As(Box<str>),
    Never,
}

impl UploadDesk {
    fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Uploads the worker's share of the one object whose parts are read later.
pub(crate) async fn upload_share<S: Session>(
    bench: Bench<'_, '_>,
    worker: WorkerId,
    planner: Planner,
    session: S,
) -> EndReason {
    let facts = bench.facts;
    let Activity::Multipart { parts, part_bytes } = facts.workload.activity else {
        unreachable!("one object is uploaded by all for a workload that reads its parts")
    };
    let object = facts.workload.whole_id();
    let of_upload = |kind| of_upload(kind, object, parts.get(), part_bytes);
    let mut lane = Lane::new(bench, worker, session);
    if worker.0 == 0 {
        let begun = match bench.stops.reason() {
            Some(_) => None,
            None => lane.run(bench, &of_upload(OpKind::CreateUpload), Names::None).await.2,
        };
        let mut desk = facts.upload.lock();
        desk.server_names = vec![String::new(); parts.get() as usize];
        desk.begun = begun.map_or(Begun::Never, Begun::As);
    }
    let name = loop {
        let begun = facts.upload.lock().begun.clone();
        match begun {
            Begun::As(name) => break name,
            // Whoever was to begin may be gone, with the thread that it was on.
            Begun::NotYet if let Some(reason) = bench.stops.reason() => {
                leave(bench, &mut lane, of_upload).await;
                return reason;
            }
            Begun::NotYet => facts.waiting.suspend_for(BEGUN_LOOK).await,
            Begun::Never => return bench.stops.reason().unwrap_or(EndReason::OutOfWork),
        }
    };
    let planned = Planned { worker, planner: RefCell::new(planner), number: Cell::new(0) };
    let is_over = || facts.upload.lock().is_failed;
    let reason = loop {
        let op = match planned.next_part(bench, is_over).await {
            Ok(Some(op)) => op,
            Ok(None) => break EndReason::OutOfWork,
            Err(reason) => break reason,
        };
        let (_, _, server_name) = lane.run(bench, &op, Names::Upload(&name, &[])).await;
        let mut desk = facts.upload.lock();
        match server_name {
            Some(server_name) => {
                desk.server_names[part_number(&op) as usize - 1] = server_name.into()
            }
            None => desk.is_failed = true,
        }
    };
    leave(bench, &mut lane, of_upload).await;
    reason
}

/// Leaves the common upload; who leaves last completes it, or gives it up.
async fn leave<S: Session>(
    bench: Bench<'_, '_>,
    lane: &mut Lane<'_, S>,
    of_upload: impl Fn(OpKind) -> PlannedOp,
) {
    let last = {
        let mut desk = bench.facts.upload.lock();
        desk.ended_count += 1;
        let is_last = desk.ended_count == bench.facts.workload.concurrency.get();
        match (is_last, desk.begun.clone()) {
            (true, Begun::As(name)) => Some((name, std::mem::take(&mut desk.server_names))),
            _ => None,
        }
    };
    if let Some((name, server_names)) = last {
        finish(bench, lane, &name, &server_names, of_upload).await;
    }
}

/// How a stage uploads in parts, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InParts {
    /// Each worker one object after the other, so many parts at a time.
    Each(usize),
    /// All workers one object.
    Together,
}

impl InParts {
    pub(crate) fn of(workload: &Workload, stage: StageKind) -> Option<Self> {
        match (stage, &workload.activity) {
            (StageKind::Measure, Activity::MultipartPut { part_concurrency, .. }) => {
                Some(Self::Each(part_concurrency.get() as usize))
            }
            (StageKind::Prepare, Activity::Multipart { .. }) => Some(Self::Together),
            _ => None,
        }
    }
}
