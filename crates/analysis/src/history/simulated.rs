//! The checker against a simulated store: workers, delays and moments of effect at random, honest
//! or with planted lies.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use plimsoll_model::{ErrorClass, Moment, WorkerId};
use plimsoll_workload::Random;
use plimsoll_workload::history::{Answer, HistoryOp, KeyNumber, ValueId, Witness};

use super::{History, HistoryReport, ViolationKind};

const KEYS: u32 = 4;
/// Many, so that all overlaps; few, so that lies can be told from what overlaps.
const WORKERS_HONEST: u32 = 8;
const WORKERS_LIED_TO: u32 = 3;
const OPS_MAX: u64 = 4_000;
/// One operation in so many fails, or is lied about.
const FAILURE_RARITY: u64 = 40;
const LIE_RARITY: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    StaleRead,
    LostWrite,
    LostDelete,
    Omission,
    Ghost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begin,
    /// The operation takes effect at a key.
    Effect(u32),
    End,
    /// A failed write takes effect long after.
    Late(u64),
}

/// What an operation under way has seen so far.
#[derive(Clone, Debug)]
struct UnderWay {
    op: HistoryOp,
    answer: Answer,
    fails: bool,
    late: bool,
}

struct Store {
    random: Random,
    now: u64,
    queue: BinaryHeap<Reverse<(u64, u64, u32, Step)>>,
    queued: u64,
    state: BTreeMap<u32, Vec<Option<ValueId>>>,
    under_way: BTreeMap<u32, UnderWay>,
    late: BTreeMap<u64, HistoryOp>,
    next_value: u32,
    lie: Option<Lie>,
    told: u64,
}

fn size(value: ValueId) -> u64 {
    u64::from(value.number) % 50
}

impl Store {
    fn schedule(&mut self, after: u64, worker: u32, step: Step) {
        let after = 1 + self.random.below(after);
        self.queued += 1;
        self.queue.push(Reverse((self.now + after, self.queued, worker, step)));
    }

    fn choose(&mut self, worker: u32) -> HistoryOp {
        let key = KeyNumber(self.random.below(u64::from(KEYS)) as u32);
        match self.random.below(10) {
            0..=2 => {
                self.next_value += 1;
                let value = ValueId { key, writer: WorkerId(worker), number: self.next_value };
                HistoryOp::Put(value, size(value))
            }
            3..=5 => HistoryOp::Get(key, None),
            6 => HistoryOp::Stat(key),
            7 => HistoryOp::List,
            _ => HistoryOp::Delete(key),
        }
    }

    fn begin(&mut self, worker: u32, history: &mut History) {
        let op = self.choose(worker);
        history.begin(WorkerId(worker), op, Moment::from_ns(self.now));
        let fails = self.random.below(FAILURE_RARITY) == 0;
        let late = fails && self.random.below(2) == 0;
        let empty = Answer::Listed(Vec::new(), Vec::new());
        let answer = if op == HistoryOp::List { empty } else { Answer::Done };
        self.under_way.insert(worker, UnderWay { op, answer, fails, late });
        let keys = op.key().map_or(0..KEYS, |key| key.0..key.0 + 1);
        for key in keys {
            self.schedule(50, worker, Step::Effect(key));
        }
        // After every effect, and now and then much later.
        let longest = if self.random.below(20) == 0 { 500 } else { 20 };
        let end = 51 + self.random.below(longest);
        self.queued += 1;
        self.queue.push(Reverse((self.now + end, self.queued, worker, Step::End)));
    }

    /// Tells whether to lie this time.
    fn lies(&mut self, lie: Lie) -> bool {
        let lies = self.lie == Some(lie) && self.random.below(LIE_RARITY) == 0;
        self.told += u64::from(lies);
        lies
    }

    fn effect(&mut self, worker: u32, key: u32) {
        let under_way = self.under_way[&worker].clone();
        if under_way.fails {
            if under_way.late {
                self.late.insert(self.queued, under_way.op);
                self.schedule(2_000, worker, Step::Late(self.queued));
            }
            return;
        }
        self.write(under_way.op, true);
        let versions = self.state.entry(key).or_default();
        let now = versions.last().copied().flatten();
        let before = versions.iter().rev().nth(1).copied().flatten();
        let answer = match under_way.op {
            HistoryOp::Put(..) | HistoryOp::Delete(_) => return,
            HistoryOp::Get(..) => {
                let seen = if self.lies(Lie::StaleRead) { before } else { now };
                seen.map_or(Answer::Absent, Answer::Value)
            }
            HistoryOp::Stat(_) => now.map_or(Answer::Absent, |it| Answer::Present(Some(size(it)))),
            HistoryOp::List => {
                let Answer::Listed(mut entries, strange) = under_way.answer else { return };
                let mut seen = now;
                if now.is_some() && self.lies(Lie::Omission) {
                    seen = None;
                } else if now.is_none() && self.lies(Lie::Ghost) {
                    seen = before;
                }
                entries.extend(seen.map(|value| (KeyNumber(key), size(value))));
                Answer::Listed(entries, strange)
            }
        };
        self.under_way.get_mut(&worker).expect("it is under way").answer = answer;
    }

    fn write(&mut self, op: HistoryOp, may_lie: bool) {
        let lost = match op {
            HistoryOp::Put(..) => may_lie && self.lies(Lie::LostWrite),
            HistoryOp::Delete(_) => may_lie && self.lies(Lie::LostDelete),
            _ => return,
        };
        if lost {
            return;
        }
        let value = if let HistoryOp::Put(value, _) = op { Some(value) } else { None };
        let key = op.key().expect("a write has a key");
        self.state.entry(key.0).or_default().push(value);
    }

    fn end(&mut self, worker: u32, history: &mut History) {
        let done = self.under_way.remove(&worker).expect("it is under way");
        let answer = if done.fails { Answer::Failed(ErrorClass::Reset) } else { done.answer };
        history.end(WorkerId(worker), &answer, Moment::from_ns(self.now));
    }
}

/// Returns what came of a run, and how many lies were told in it.
fn run(seed: u64, lie: Option<Lie>) -> (HistoryReport, u64) {
    let mut history = History::new(5);
    (0..KEYS).for_each(|key| history.add_key(KeyNumber(key)));
    let mut store = Store {
        random: Random::new(seed, 1, 1),
        now: 0,
        queue: BinaryHeap::new(),
        queued: 0,
        state: BTreeMap::new(),
        under_way: BTreeMap::new(),
        late: BTreeMap::new(),
        next_value: 0,
        lie,
        told: 0,
    };
    let workers = if lie.is_some() { WORKERS_LIED_TO } else { WORKERS_HONEST };
    (0..workers).for_each(|worker| store.schedule(10, worker, Step::Begin));
    let mut begun = 0;
    while let Some(Reverse((at, _, worker, step))) = store.queue.pop() {
        store.now = at;
        match step {
            Step::Begin if begun == OPS_MAX => {}
            Step::Begin => {
                begun += 1;
                store.begin(worker, &mut history);
            }
            Step::Effect(key) => store.effect(worker, key),
            Step::End => {
                store.end(worker, &mut history);
                store.schedule(10, worker, Step::Begin);
            }
            Step::Late(number) => {
                let op = store.late.remove(&number).expect("it was put off");
                store.write(op, false);
            }
        }
    }
    (history.finish(), store.told)
}

#[test]
fn an_honest_store_is_never_accused_and_little_is_kept() {
    for seed in 0..100 {
        let (report, _) = run(seed, None);
        assert!(report.counts.is_empty(), "seed {seed}: {report:#?}");
        // Failed writes are kept for good here, about 50 of them; the rest is a matter of what
        // overlaps.
        assert!(report.kept_count_max < 400, "seed {seed}: {}", report.kept_count_max);
        assert!(report.judged_count > 2_500, "{}", report.judged_count);
    }
}

#[test]
fn every_kind_of_lie_is_found() {
    let find = |lie, kind: ViolationKind| {
        let (mut told, mut found, mut named) = (0, 0, 0);
        for seed in 0..40 {
            let (report, lies) = run(seed, Some(lie));
            told += lies;
            found += report.counts.values().sum::<u64>();
            named += report.counts.get(&kind).copied().unwrap_or_default();
        }
        // Of many lies nobody can know: something else was under way that explains the answer.
        // And where two reads contradict each other, the wrong one may be blamed.
        assert!(named * 10 > told, "{lie:?}: {named} of {told} named, {found} found");
        assert!(named * 3 > found, "{lie:?}: {named} of {found} have the right name");
    };
    find(Lie::Omission, ViolationKind::ListOmission);
    find(Lie::Ghost, ViolationKind::ListGhost);
    find(Lie::StaleRead, ViolationKind::StaleRead);
    find(Lie::LostWrite, ViolationKind::LostWrite);
    find(Lie::LostDelete, ViolationKind::ResurrectedDelete);
}
