//! The loops of a consistency check: workers that write, read, remove and list a few keys at the
//! same time, and tell a witness what they asked and what they got.

mod content;
mod desk;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use plimsoll_driver::{
    ByteRange, Completion, ContentSink, DELETE_BATCH_MAX, Driver, DriverError, EntrySink,
    Operation, Session,
};
use plimsoll_model::{ErrorClass, Moment, SharedClock, WorkerId};
use plimsoll_stats::Sample;
use plimsoll_workload::Random;
use plimsoll_workload::history::{Answer, HistoryOp, KeyNumber, ValueId, Witness};
use tokio::runtime::Runtime;

use crate::clock::Waiting;
use crate::live::{Live, StopFlag, ThreadCounters};
use crate::outcome::EngineError;
use crate::stage::runtime;
use content::{Expected, PIECE_BYTES_MIN, Stamped, Stamps};
use desk::{Desk, size_of};

/// The pause after a failure; it doubles up to [`PAUSE_MAX`] while failures go on.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(640);
/// Operations that never suspend are interrupted after this many, so that others get their turn.
const BURST_MAX: u32 = 64;
/// More content than any value has is counted and not kept.
const CONTENT_KEPT_MAX: usize = 1 << 20;
/// Names in a listing that nobody wrote, of which more are not kept.
const STRANGE_KEPT_MAX: usize = 16;

/// What a check does.
#[derive(Clone, Debug)]
pub struct CheckConfig {
    /// All keys begin with it.
    pub prefix: String,
    /// Loops that do one operation at a time, at most [`ValueId::WRITERS_MAX`].
    pub workers: u32,
    /// Threads that drive them.
    pub threads: usize,
    /// How many keys are in use at one time.
    pub keys: u32,
    /// Fixes what each worker asks for, but not what comes first.
    pub seed: u64,
    /// Tells the content of this run from that of others.
    pub salt: u64,
    /// When to end.
    pub duration: Option<Duration>,
    /// After how many operations to end.
    pub ops_max: Option<u64>,
    /// An operation that takes longer is given up; a write may then take effect at any time.
    pub op_timeout: Duration,
}

/// What a check runs with.
pub struct CheckContext<'a> {
    /// The run's clock.
    pub clock: &'a SharedClock,
    /// Ends the check early.
    pub stop: &'a StopFlag,
    /// Where to count for a display; made for at least as many threads as the configuration has.
    pub live: &'a Live,
}

/// What was done, whatever it told.
#[derive(Clone, Debug)]
pub struct CheckOutcome {
    /// When the first worker began.
    pub started: Moment,
    /// When the last worker had ended.
    pub ended: Moment,
    /// Operations begun; all of them have ended.
    pub ops_count: u64,
    /// Keys used: those at the beginning, and one for each that was given up because too many of
    /// its writes had an unknown outcome.
    pub keys_count: u32,
    /// The first failure of each class.
    pub errors: Vec<DriverError>,
}

/// Does what `config` asks for, tells `witness`, and removes the keys again.
pub fn run_check<D: Driver, W: Witness + Send>(
    driver: &D,
    config: &CheckConfig,
    context: &CheckContext<'_>,
    witness: &mut W,
) -> Result<CheckOutcome, EngineError> {
    assert!((1..=ValueId::WRITERS_MAX).contains(&config.workers), "the workers have numbers");
    let threads = config.threads.clamp(1, config.workers as usize);
    let desk = Mutex::new(Desk::new(config, witness));
    let started = context.clock.now();
    let deadline = config.duration.map(|duration| started.after(duration));
    std::thread::scope(|scope| {
        let desk = &desk;
        let mut handles = Vec::new();
        for index in 0..threads {
            let facts = Facts { config, context, desk, deadline };
            let workers = (index as u32..config.workers).step_by(threads).map(WorkerId);
            let counters = context.live.thread(index);
            let spawned = runtime().and_then(|runtime| {
                std::thread::Builder::new().name(format!("check-{index}")).spawn_scoped(
                    scope,
                    move || {
                        run_thread(runtime, driver, &facts, workers, counters);
                    },
                )
            });
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    context.stop.set();
                    return Err(EngineError::Thread(error));
                }
            }
        }
        for handle in handles {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        Ok(())
    })?;
    let ended = context.clock.now();
    let desk = desk.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (ops_count, keys_count, errors) = desk.into_parts();
    let runtime = runtime().map_err(EngineError::Thread)?;
    runtime.block_on(remove(driver, config, context.clock, keys_count));
    Ok(CheckOutcome { started, ended, ops_count, keys_count, errors })
}

/// Removes every key by name: a store that is being checked may leave some out of its listings.
async fn remove<D: Driver>(driver: &D, config: &CheckConfig, clock: &SharedClock, keys: u32) {
    let mut session = driver.open_sessions(clock, 1).remove(0);
    let names: Vec<String> =
        (0..keys).map(|key| format!("{}{}", config.prefix, KeyNumber(key))).collect();
    for keys in names.chunks(DELETE_BATCH_MAX) {
        // What is left over is found by whoever sweeps the prefix afterwards.
        let delete = session.execute(None, Operation::Delete { keys });
        let _ = tokio::time::timeout(config.op_timeout, delete).await;
    }
}

/// What all workers share.
struct Facts<'a, 'd, W> {
    config: &'a CheckConfig,
    context: &'a CheckContext<'a>,
    desk: &'a Mutex<Desk<'d, W>>,
    deadline: Option<Moment>,
}

fn run_thread<D: Driver, W: Witness>(
    runtime: Runtime,
    driver: &D,
    facts: &Facts<'_, '_, W>,
    workers: impl ExactSizeIterator<Item = WorkerId>,
    counters: &ThreadCounters,
) {
    runtime.block_on(async {
        let sessions = driver.open_sessions(facts.context.clock, workers.len());
        let loops: FuturesUnordered<_> = workers
            .zip(sessions)
            .map(|(worker, session)| work(facts, worker, session, counters))
            .collect();
        loops.collect::<()>().await;
    });
}

async fn work<S: Session, W: Witness>(
    facts: &Facts<'_, '_, W>,
    worker: WorkerId,
    session: S,
    counters: &ThreadCounters,
) {
    let clock = facts.context.clock;
    let mut hands = Hands::new(facts.config, session);
    let mut choices = desk::Choices::new(facts.config.seed, worker);
    let mut pause = PAUSE_FIRST;
    let mut burst = 0;
    loop {
        let over = facts.deadline.is_some_and(|deadline| clock.now() >= deadline);
        if over || facts.context.stop.is_set() {
            break;
        }
        let begun = desk::lock(facts.desk).begin(worker, &mut choices, &**clock);
        let Some((op, begin)) = begun else { break };
        let completion = hands.execute(op, clock, &mut choices.random).await;
        let end = completion.end.max(begin);
        let answer = hands.answer(op, &completion);
        let ok = !matches!(answer, Answer::Failed(_));
        let has_failed = completion.result.is_err();
        counters.count(op.kind(), &sample(&completion, ok, begin, end));
        let error = completion.result.err().filter(|_| !ok);
        desk::lock(facts.desk).end(worker, &mut choices, op, &answer, end, error);
        if has_failed {
            // What is left of it is not part of the history, which knows whole objects only.
            let _ = hands.session.settle().await;
        }
        if ok {
            pause = PAUSE_FIRST;
        } else {
            Waiting::Machine.suspend_for(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        burst += 1;
        if burst == BURST_MAX {
            burst = 0;
            tokio::task::yield_now().await;
        }
    }
    desk::lock(facts.desk).leave(&mut choices);
}

/// Returns one operation as the live counters take it.
fn sample(completion: &Completion, ok: bool, begin: Moment, end: Moment) -> Sample {
    let class = completion.result.as_ref().err().map(|error| error.class);
    let failed_as = class.filter(|class| !class.is_ok()).unwrap_or(ErrorClass::Unknown);
    Sample {
        start_ns: begin.as_ns(),
        end_ns: end.as_ns(),
        latency_ns: end.since(begin).as_nanos() as u64,
        ttfb_ns: None,
        bytes: completion.bytes,
        objects: 1,
        outcome: if ok { ErrorClass::Ok } else { failed_as } as u8,
    }
}

/// Does operations of one worker, and says what the answers mean.
struct Hands<'a, S> {
    config: &'a CheckConfig,
    stamps: Stamps,
    session: S,
    key: [String; 1],
    content: Kept,
    entries: Entries<'a>,
}

impl<'a, S: Session> Hands<'a, S> {
    fn new(config: &'a CheckConfig, session: S) -> Self {
        Self {
            config,
            stamps: Stamps::new(config.salt),
            session,
            key: [String::new()],
            content: Kept::default(),
            entries: Entries { prefix: &config.prefix, known: Vec::new(), strange: Vec::new() },
        }
    }

    async fn execute(
        &mut self,
        op: HistoryOp,
        clock: &SharedClock,
        random: &mut Random,
    ) -> Completion {
        if let Some(key) = op.key() {
            self.key[0] = format!("{}{key}", self.config.prefix);
        }
        let mut given;
        let operation = match op {
            HistoryOp::Put(value, size) => {
                given = Stamped { stamps: self.stamps, value, size };
                Operation::Put { key: &self.key[0], content: &mut given }
            }
            HistoryOp::Get(_, range) => {
                let range = range.map(|(offset, len)| ByteRange { offset, len });
                self.content.restart();
                Operation::Get { key: &self.key[0], range, version: None, sink: &mut self.content }
            }
            HistoryOp::Stat(_) => Operation::Stat { key: &self.key[0], version: None },
            HistoryOp::Delete(_) => Operation::Delete { keys: &self.key },
            HistoryOp::List => {
                self.entries.restart();
                // Small pages show whether a listing loses keys from one to the next.
                let small = (self.config.keys / 3).clamp(1, 1_000);
                let page_size = if random.below(2) == 0 { small } else { 1_000 };
                let prefix = &self.config.prefix;
                Operation::List { prefix, page_size, pages_max: None, sink: &mut self.entries }
            }
        };
        let execution = self.session.execute(None, operation);
        match tokio::time::timeout(self.config.op_timeout, execution).await {
            Ok(completion) => completion,
            Err(_) => {
                let seconds = self.config.op_timeout.as_secs_f64();
                let message = format!("no answer within {seconds} s");
                let error = DriverError::new(ErrorClass::Timeout, message);
                Completion::bare(self.session.endpoint(), clock.now(), Err(error))
            }
        }
    }

    /// Returns what the completion of `op` tells.
    fn answer(&mut self, op: HistoryOp, completion: &Completion) -> Answer {
        let error = match &completion.result {
            Err(error) => error,
            Ok(()) => return self.success(op, completion),
        };
        match (op, error.class) {
            (HistoryOp::Get(..) | HistoryOp::Stat(_), ErrorClass::NotFound) => Answer::Absent,
            // The range was chosen for another version than is there.
            (HistoryOp::Get(_, Some(_)), _) if error.status == Some(416) => Answer::OutOfRange,
            (HistoryOp::Get(_, Some(_)), ErrorClass::Truncated) if error.status == Some(206) => {
                Answer::OutOfRange
            }
            (_, class) => Answer::Failed(class),
        }
    }

    fn success(&mut self, op: HistoryOp, completion: &Completion) -> Answer {
        match op {
            HistoryOp::Put(..) | HistoryOp::Delete(_) => Answer::Done,
            HistoryOp::Stat(_) => Answer::Present(completion.object_size),
            HistoryOp::List => Answer::Listed(
                std::mem::take(&mut self.entries.known),
                std::mem::take(&mut self.entries.strange),
            ),
            HistoryOp::Get(key, range) => {
                let bytes = &self.content.0;
                // Less than was asked for of a version that is shorter may not hold a stamp.
                if range.is_some() && (bytes.len() as u64) < PIECE_BYTES_MIN {
                    return Answer::OutOfRange;
                }
                let seed = self.config.seed;
                let expected = Expected {
                    key,
                    end: range.map(|(offset, len)| offset + len),
                    size: &|value| size_of(seed, value),
                };
                let offset = range.map_or(0, |(offset, _)| offset);
                match self.stamps.identify(bytes, offset, expected) {
                    Ok(value) => Answer::Value(value),
                    Err(wrong) => Answer::Wrong(wrong),
                }
            }
        }
    }
}

/// Keeps the content of one read.
#[derive(Default)]
struct Kept(Vec<u8>);

impl ContentSink for Kept {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        let room = CONTENT_KEPT_MAX - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Keeps a listing, the keys by their numbers.
struct Entries<'a> {
    prefix: &'a str,
    known: Vec<(KeyNumber, u64)>,
    strange: Vec<String>,
}

impl EntrySink for Entries<'_> {
    fn restart(&mut self) {
        self.known.clear();
        self.strange.clear();
    }

    fn entry(&mut self, key: &str, size: u64) {
        match key_number(self.prefix, key) {
            Some(number) => self.known.push((number, size)),
            None if self.strange.len() < STRANGE_KEPT_MAX => self.strange.push(key.to_owned()),
            None => {}
        }
    }
}

/// Returns the number of a key that a check may have written.
fn key_number(prefix: &str, key: &str) -> Option<KeyNumber> {
    let name = key.strip_prefix(prefix)?;
    let number = KeyNumber(name.strip_prefix('k')?.parse().ok()?);
    (number.to_string() == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_check_writes_have_a_number() {
        for number in [0, 7, 999_999, 1_000_000] {
            let key = format!("p/{}", KeyNumber(number));
            assert_eq!(key_number("p/", &key), Some(KeyNumber(number)));
        }
        for key in ["p/k7", "p/k0000007", "p/x000007", "q/k000007", "p/k-00007", "p/", "k000007"] {
            assert_eq!(key_number("p/", key), None, "{key}");
        }
    }
}
