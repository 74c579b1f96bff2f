//! The jobs on objects of a stage, dealt to threads; one thread runs its share of all of them.

use std::cell::RefCell;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use plimsoll_driver::{Driver, Session, Settled};
use plimsoll_model::{Clock, EndReason, Moment, WorkerId};
use plimsoll_workload::objects::ObjectSource;

use crate::clock::{Timer, Waiting};
use crate::executor::{Executor, Listings};
use crate::job::JobFacts;
use crate::pump::{LoopTime, Performer, carry, serve};
use crate::records::{Finished, ThreadOutcome, ThreadRecords};
use crate::source::{Issued, OpSource, Performed};
use crate::sources::SourceContext;
use crate::sources::arrivals::Schedule;
use crate::sources::closed::{ClosedWorker, PlannedOps};
use crate::sources::shared_upload::{SharedUpload, UploadShare};
use crate::sources::uploads::Uploads;

/// A job on objects about to run.
pub(crate) struct ObjectsRun<'a, D> {
    pub(crate) driver: &'a D,
    pub(crate) facts: JobFacts<'a>,
    /// Where the workers meet that upload one object together.
    pub(crate) upload: Option<SharedUpload>,
}

impl<D> ObjectsRun<'_, D> {
    /// Returns how many operations may be under way at once: of an open loop the part that falls
    /// to the workers that run here.
    fn in_flight_max(&self) -> usize {
        let JobFacts { workers, work, timing, .. } = &self.facts;
        let Some(open) = timing.open_loop() else {
            return workers.len() * self.facts.sessions_each() as usize;
        };
        let all = work.workers.get() as usize;
        let max = open.max_in_flight.get() as usize;
        let of_worker = |worker: u32| (worker as usize..max).step_by(all).len();
        workers.clone().map(of_worker).sum::<usize>().max(1)
    }

    /// Returns how many threads share its workers, of those that there are; none where all its
    /// workers run elsewhere.
    fn threads(&self, threads: usize) -> usize {
        threads.max(1).min(self.facts.workers.len()).min(self.in_flight_max())
    }
}

/// What one thread does of one job.
pub(crate) struct Share {
    /// Which one of the stage's jobs on objects.
    job: usize,
    workers: Vec<WorkerId>,
    sessions_count: usize,
}

/// Deals the workers of jobs to at most so many threads.
pub(crate) fn deal<D>(jobs: &[ObjectsRun<'_, D>], threads: usize) -> Vec<Vec<Share>> {
    let wanted: usize = jobs.iter().map(|job| job.threads(threads)).sum();
    let mut shares: Vec<Vec<Share>> = Vec::new();
    shares.resize_with(threads.clamp(1, wanted.max(1)), Vec::new);
    // Each job goes on with the thread after those of the job before.
    let mut first = 0;
    for (index, job) in jobs.iter().enumerate() {
        let of_job = job.threads(threads).min(shares.len());
        for place in 0..of_job {
            let workers = job.facts.workers.clone().skip(place).step_by(of_job).map(WorkerId);
            let workers: Vec<WorkerId> = workers.collect();
            let sessions_count = match job.facts.timing.open_loop() {
                Some(_) => (place..job.in_flight_max()).step_by(of_job).count(),
                None => workers.len() * job.facts.sessions_each() as usize,
            };
            let thread = (first + place) % shares.len();
            shares[thread].push(Share { job: index, workers, sessions_count });
        }
        first += of_job;
    }
    shares
}

/// Does what is issued on one session.
struct SessionOps<'a, S> {
    session: S,
    executor: Executor<'a>,
}

impl<S: Session> Performer for SessionOps<'_, S> {
    type Op = Issued;
    type Done = Finished;

    fn perform(&mut self, issued: &Issued) -> impl Future<Output = Finished> {
        self.executor.run(&mut self.session, issued)
    }

    fn settle(&mut self) -> impl Future<Output = Settled> {
        self.session.settle()
    }
}

impl Performed for Finished {
    #[inline]
    fn end(&self) -> Moment {
        self.record.end
    }

    #[inline]
    fn has_failed(&self) -> bool {
        !self.record.outcome.is_ok()
    }
}

/// One job's share.
struct OpenShare<'a> {
    facts: &'a JobFacts<'a>,
    upload: Option<&'a SharedUpload>,
    listings: RefCell<Listings>,
}

/// The workers of a share with their operations, and its open sessions.
type Opened<S> = (Vec<(WorkerId, ObjectSource)>, Vec<S>);

/// Runs one thread's share of the jobs to their end. `ready` is called when the sessions are open
/// and returns when the stage begins.
pub(crate) async fn run_thread<'d, D: Driver>(
    jobs: &[ObjectsRun<'_, D>],
    shares: Vec<Share>,
    records: ThreadRecords<'d>,
    ready: impl AsyncFnOnce() -> Moment,
) -> std::io::Result<ThreadOutcome> {
    let records = RefCell::new(records);
    let open = |share: Share| {
        let ObjectsRun { driver, facts, upload } = &jobs[share.job];
        let sessions = driver.open_sessions(&facts.clock, share.sessions_count);
        // Made before the stage begins, since that of a long trace or a large set takes its time.
        let source = |worker: WorkerId| (worker, facts.work.source(worker));
        let workers: Vec<_> = share.workers.into_iter().map(source).collect();
        let (upload, listings) = (upload.as_ref(), RefCell::default());
        (OpenShare { facts, upload, listings }, (workers, sessions))
    };
    let (shares, opened): (Vec<OpenShare<'_>>, Vec<_>) = shares.into_iter().map(open).unzip();
    let mut timers = Vec::new();
    for share in &shares {
        let timer = share.facts.timing.open_loop().map(|_| share.facts.waiting.timer());
        timers.push(timer.transpose()?);
    }
    let started = ready().await;
    records.borrow_mut().begin(started);
    let mut tasks: Vec<LocalBoxFuture<'_, ()>> = Vec::new();
    for ((share, opened), timer) in shares.iter().zip(opened).zip(timers) {
        match timer {
            Some(timer) => tasks.push(share.arrivals(&records, opened, timer, started)),
            None => tasks.extend(share.workers(&records, opened, started)),
        }
    }
    all(tasks).await;
    drop(shares);
    let ended = jobs.first().map_or(started, |job| job.facts.clock.now());
    let mut outcome = records.into_inner().finish(ended);
    // All sessions are closed by now, so that each connection has told what it came to.
    jobs.iter().for_each(|job| outcome.sockets.merge(job.driver.sockets_seen()));
    Ok(outcome)
}

/// Carries tasks to their end.
async fn all(mut tasks: Vec<LocalBoxFuture<'_, ()>>) {
    match &mut tasks[..] {
        // A schedule has its sessions in a set of their own; each wake would go through two.
        [only] => only.await,
        // Only the workers whose sockets are ready are polled, so that cost does not grow with
        // their number.
        _ => tasks.into_iter().collect::<FuturesUnordered<_>>().collect().await,
    }
}

impl OpenShare<'_> {
    /// Returns the task that carries the operations of a schedule.
    fn arrivals<'t, S: Session + 't>(
        &'t self,
        records: &'t RefCell<ThreadRecords<'_>>,
        (workers, sessions): Opened<S>,
        mut timer: Timer,
        started: Moment,
    ) -> LocalBoxFuture<'t, ()> {
        let facts = self.facts;
        Box::pin(async move {
            let context = SourceContext { facts, records };
            let schedule = Rc::new(RefCell::new(Schedule::new(context, workers, started)));
            let deadline = schedule.borrow().deadline();
            let serve = |session| self.serve(records, Rc::clone(&schedule), session, deadline);
            let clock: &dyn Clock = &*facts.clock;
            let reason = carry(clock, &mut timer, &schedule, sessions, serve).await;
            records.borrow_mut().note_ended(facts.job, reason);
        })
    }

    /// Returns the tasks of workers in a closed loop, a session each or several.
    fn workers<'t, S: Session + 't>(
        &'t self,
        records: &'t RefCell<ThreadRecords<'_>>,
        (workers, sessions): Opened<S>,
        started: Moment,
    ) -> impl Iterator<Item = LocalBoxFuture<'t, ()>> {
        let context = SourceContext { facts: self.facts, records };
        let mut sessions = sessions.into_iter();
        workers.into_iter().flat_map(move |(worker, stream)| {
            let ops = PlannedOps::new(context, (worker, stream), started);
            let deadline = ops.deadline();
            let mut session = || sessions.next().expect("each worker has its own sessions");
            let mut tasks: Vec<LocalBoxFuture<'t, ()>> = Vec::new();
            match self.upload {
                Some(upload) => {
                    let share = UploadShare::new(ops, upload);
                    tasks.push(self.work(records, share, session(), deadline));
                }
                None if self.facts.uploads() => {
                    for part in Uploads::sessions(ops) {
                        tasks.push(self.work(records, part, session(), deadline));
                    }
                }
                None => {
                    let worker = ClosedWorker::new(ops);
                    tasks.push(self.work(records, worker, session(), deadline));
                }
            }
            tasks
        })
    }

    /// Returns the task of one session.
    fn work<'t, S, Q>(
        &'t self,
        records: &'t RefCell<ThreadRecords<'_>>,
        source: Q,
        session: S,
        deadline: Option<Moment>,
    ) -> LocalBoxFuture<'t, ()>
    where
        S: Session + 't,
        Q: OpSource<Op = Issued, Done = Finished> + 't,
    {
        let serving = self.serve(records, source, session, deadline);
        Box::pin(async move {
            let reason = serving.await;
            records.borrow_mut().note_ended(self.facts.job, reason);
        })
    }

    async fn serve<S: Session, Q: OpSource<Op = Issued, Done = Finished>>(
        &self,
        records: &RefCell<ThreadRecords<'_>>,
        source: Q,
        session: S,
        deadline: Option<Moment>,
    ) -> EndReason {
        let JobFacts { clock, waiting, .. } = self.facts;
        let waiting: &Waiting = waiting;
        let executor = Executor::new(self.facts, &self.listings, deadline);
        let performer = SessionOps { session, executor };
        let settled = |settled| records.borrow_mut().note_settled(settled);
        serve(LoopTime { clock, waiting }, source, performer, settled).await
    }
}
