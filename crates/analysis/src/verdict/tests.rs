//! Fourteen staged limits, each with the evidence that it leaves, and what must hold of all.

use std::time::Duration;

use plimsoll_model::{EndpointId, ErrorClass, Moment, OpKind, OpRecord, StageId, WorkerId};
use proptest::prelude::*;

use super::*;
use crate::{Question, RowAnalysis, RowAsked, Rows, Span, WorkerRow, analyze};

const MS: u64 = 1_000_000;
const STAGE_MS: u64 = 4_000;
const TOOK: Duration = Duration::from_millis(STAGE_MS);

fn op(worker: u32, endpoint: u16, start_ms: u64, end_ms: u64) -> OpRecord {
    let at = |ms: u64| Moment::from_ns(ms * MS);
    OpRecord {
        stage: StageId(1),
        worker: WorkerId(worker),
        endpoint: EndpointId(endpoint),
        bytes: 1_024,
        ..OpRecord::plain(OpKind::Get, at(start_ms), at(end_ms))
    }
}

/// Operations of a closed loop on a store that serves one at a time, in turn: what a worker waits
/// for at first is those before it, and all others from then on.
fn in_turn(workers: u32, each_ms: u64) -> Vec<OpRecord> {
    let mut ops = Vec::new();
    let mut began = vec![0; workers as usize];
    let mut now = 0;
    while now + each_ms <= STAGE_MS {
        let worker = (now / each_ms % u64::from(workers)) as usize;
        now += each_ms;
        ops.push(op(worker as u32, 0, began[worker], now));
        began[worker] = now;
    }
    ops
}

/// Operations of a closed loop that take `took_ms` each, whatever others do.
fn alike(workers: u32, took_ms: u64) -> Vec<OpRecord> {
    let of_worker = move |worker| {
        let starts = (0..STAGE_MS).step_by(took_ms as usize);
        starts.map(move |start| op(worker, 0, start, start + took_ms))
    };
    (0..workers).flat_map(of_worker).collect()
}

/// Operations of a schedule, one every `every_ms`, that take `took_ms` each.
fn scheduled(every_ms: u64, took_ms: u64, late_ms: u64) -> Vec<OpRecord> {
    let due = (0..STAGE_MS - took_ms - late_ms).step_by(every_ms as usize);
    let each = |due: u64| OpRecord {
        intended: Moment::from_ns(due * MS),
        ..op((due % 4) as u32, 0, due + late_ms, due + late_ms + took_ms)
    };
    due.map(each).collect()
}

fn analysis(ops: &[OpRecord], workers: u32, open: bool) -> RowAnalysis {
    let ended = Moment::from_ns(STAGE_MS * MS);
    let question = Question::about(StageId(1), Moment::EPOCH, ended, workers);
    let row = RowAsked { workers, span: Span::AllWorkers, open, ends: None };
    let Ok(mut answer) = analyze(ops, &Question { rows: Rows::One(row), ..question });
    answer.rows.pop().unwrap()
}

/// A client with nothing to complain of: two threads that are busy a tenth of the time.
fn idle() -> ClientFacts {
    let thread = ThreadFacts { cpu: TOOK / 10, delay: TOOK / 1_000 };
    ClientFacts {
        took: TOOK,
        cores: Some(8.0),
        threads_count: 2,
        threads: vec![thread; 2],
        threads_cpu: Some(thread.cpu * 2),
        threads_delay: Some(thread.delay * 2),
        system_share: Some(0.6),
        recorder_wait: Some(Duration::ZERO),
        machine: Some(MachineFacts { busy: 0.1, steal: 0.0, own: Some(0.05) }),
        quota: Some(QuotaFacts { cores: None, periods: 40, throttled: 0 }),
        sockets: Some(SocketFacts {
            opened: 32,
            rtt_min: Some(Duration::from_micros(30)),
            segments_sent: 10_000,
            segments_received: 10_000,
            window_limited: Some(0.0),
            buffer_limited: Some(0.0),
            ..SocketFacts::default()
        }),
        descriptors_max: Some(1_024),
        ..ClientFacts::default()
    }
}

/// A client whose threads were so busy, and so long without a processor.
fn busy(cpu: Duration, delay: Duration) -> ClientFacts {
    let thread = ThreadFacts { cpu, delay };
    ClientFacts {
        threads: vec![thread; 2],
        threads_cpu: Some(cpu * 2),
        threads_delay: Some(delay * 2),
        ..idle()
    }
}

/// What is judged: operations, workers, pacing and a client.
struct Case {
    ops: Vec<OpRecord>,
    workers: u32,
    paced: Paced,
    schedule: Option<ScheduleFacts>,
    on_files: bool,
    client: ClientFacts,
}

impl Case {
    /// Returns a closed loop of 16 workers with a client that is idle.
    fn closed(ops: Vec<OpRecord>) -> Self {
        let client = idle();
        Self { ops, workers: 16, paced: Paced::Closed, schedule: None, on_files: false, client }
    }

    fn open(ops: Vec<OpRecord>, places: u32, late: u64) -> Self {
        let offered = ops.len() as u64;
        let schedule = Some(ScheduleFacts { offered, late, skipped: 0 });
        Self { workers: places, paced: Paced::Open, schedule, ..Self::closed(ops) }
    }

    fn of(self, client: ClientFacts) -> Self {
        Self { client, ..self }
    }

    fn judge_all(&self, clients: &[ClientFacts]) -> Option<Verdict> {
        self.judge_at("store", clients)
    }

    fn judge_at(&self, host: &str, clients: &[ClientFacts]) -> Option<Verdict> {
        let analysis = analysis(&self.ops, self.workers, self.paced == Paced::Open);
        self.judge_row(&analysis, host, clients)
    }

    fn judge_row(
        &self,
        analysis: &RowAnalysis,
        host: &str,
        clients: &[ClientFacts],
    ) -> Option<Verdict> {
        let row = RowFacts {
            analysis,
            paced: self.paced,
            schedule: self.schedule,
            pauses: false,
            on_files: self.on_files,
            in_flight_max: self.workers,
        };
        let endpoints: Vec<String> = (0..4).map(|n| format!("{host}:900{n}")).collect();
        judge(&LoadFacts { rows: vec![row], endpoints: &endpoints }, clients)
    }

    fn judge(&self) -> Verdict {
        self.judge_all(std::slice::from_ref(&self.client)).unwrap()
    }
}

/// One slow address of four, in turn: the others take a millisecond, it takes ten.
fn one_slow_of_four() -> Vec<OpRecord> {
    let mut ops = Vec::new();
    for worker in 0..16 {
        let (mut now, mut turn) = (0, worker % 4);
        while now + 10 <= STAGE_MS {
            let took = if turn == 2 { 10 } else { 1 };
            ops.push(op(worker, turn as u16, now, now + took));
            now += took;
            turn = (turn + 1) % 4;
        }
    }
    ops
}

fn shedding() -> Vec<OpRecord> {
    let mut ops = alike(16, 5);
    ops.iter_mut().step_by(10).for_each(|op| op.outcome = ErrorClass::Throttled);
    ops
}

fn with_sockets(change: impl FnOnce(&mut SocketFacts)) -> ClientFacts {
    let mut client = idle();
    change(client.sockets.as_mut().unwrap());
    client
}

/// The fourteen that the verdict is proved by, with what it must say.
fn staged() -> Vec<(&'static str, Case, LimitClass)> {
    use LimitClass::{
        ClientConnections, ClientCpu, Network, NotEnoughLoad, Recorder, SlowEndpoint, Store,
        StoreShedsLoad,
    };
    let queue = || Case::closed(in_turn(16, 1));
    let throttled = ClientFacts {
        quota: Some(QuotaFacts { cores: Some(0.2), periods: 40, throttled: 36 }),
        ..busy(TOOK / 10, TOOK / 100)
    };
    let slow_disk = ClientFacts { recorder_wait: Some(TOOK), ..idle() };
    let few_ports = ClientFacts { no_port_count: 40, ..idle() };
    let few_descriptors = ClientFacts { no_descriptor_count: 7, ..idle() };
    let refused = || {
        let mut ops = in_turn(16, 1);
        ops.iter_mut().step_by(50).for_each(|op| op.outcome = ErrorClass::Connect);
        Case::closed(ops)
    };
    let far = with_sockets(|of| of.rtt_min = Some(Duration::from_millis(20)));
    let lossy = with_sockets(|of| of.retransmits = 200);
    let one_connection = Case { workers: 1, ..Case::closed(alike(1, 5)) };
    vec![
        ("client cgroup at 20 % CPU", queue().of(throttled), ClientCpu),
        ("one connection", one_connection, ClientConnections),
        ("few ports", refused().of(few_ports), ClientConnections),
        ("fd limit", refused().of(few_descriptors), ClientConnections),
        ("slow disk under the op log", queue().of(slow_disk), Recorder),
        ("busy neighbour", queue().of(busy(TOOK / 3, TOOK / 3)), ClientCpu),
        ("server CPU", Case::closed(in_turn(16, 2)), Store),
        ("server queue", Case::open(in_turn(16, 1), 16, 3_000), Store),
        ("server sheds", Case::closed(shedding()), StoreShedsLoad),
        ("one lock in the server", queue(), Store),
        ("added round trip", Case::closed(alike(16, 25)).of(far), Network),
        ("loss", queue().of(lossy), Network),
        ("one slow endpoint of four", Case::closed(one_slow_of_four()), SlowEndpoint),
        ("too little load", Case::open(scheduled(10, 3, 0), 64, 0), NotEnoughLoad),
    ]
}

#[test]
fn fourteen_staged_limits_are_told_right() {
    for (name, case, class) in staged() {
        let verdict = case.judge();
        assert_eq!(verdict.class, class, "{name}: {verdict:#?}");
        assert_eq!(verdict.is_client, class.is_client(), "{name}");
        assert!(verdict.evidence.iter().any(|line| line.decides), "{name}: {verdict:#?}");
        assert!(!verdict.experiment.is_empty(), "{name}");
    }
}

#[test]
fn the_store_is_never_blamed_for_a_client_that_was_short() {
    for (name, case, class) in staged().into_iter().filter(|(_, _, class)| class.is_client()) {
        // Whatever else there is to see.
        for ops in [in_turn(16, 1), alike(16, 5), one_slow_of_four()] {
            let client = case.client.clone();
            let other = Case { ops, ..Case::closed(Vec::new()) }.of(client);
            if class == LimitClass::ClientConnections && name == "one connection" {
                continue;
            }
            let verdict = other.judge();
            assert_eq!(verdict.class, class, "{name}: {verdict:#?}");
        }
    }
}

#[test]
fn a_store_that_refuses_much_is_told_though_the_client_is_busy_with_that() {
    let refused = |every: usize| {
        let mut ops = alike(16, 5);
        ops.iter_mut().step_by(every).for_each(|op| op.outcome = ErrorClass::Throttled);
        Case::closed(ops)
    };
    let starved = || busy(TOOK / 3, TOOK / 3);
    let verdict = refused(10).of(starved()).judge();
    assert_eq!(verdict.class, LimitClass::StoreShedsLoad, "{verdict:#?}");
    let because: Vec<&str> =
        verdict.evidence.iter().filter(|of| of.decides).map(|of| &*of.text).collect();
    assert!(because[1].starts_with("besides, the processors of the client"), "{because:?}");
    // Less of that says nothing against what the client was short of.
    assert_eq!(refused(11).of(starved()).judge().class, LimitClass::ClientCpu);
    assert_eq!(refused(11).judge().class, LimitClass::StoreShedsLoad);
    // Who could not connect, or failed in other ways, is not told of the store.
    let closed_in = ClientFacts { no_port_count: 1, ..starved() };
    assert_eq!(refused(2).of(closed_in).judge().class, LimitClass::ClientConnections);
    let mut failing = refused(2);
    let odd = failing.ops.iter_mut().skip(1).step_by(4);
    odd.for_each(|op| op.outcome = ErrorClass::Server);
    assert_eq!(failing.judge().class, LimitClass::Unknown);
}

#[test]
fn a_store_that_went_away_is_said_to_have_done_so() {
    // It dies after three fifths of the stage; then each worker fails every 100 ms.
    let dies = STAGE_MS * 3 / 5;
    let mut ops = alike(16, 5);
    ops.retain(|op| op.end.as_ns() <= dies * 1_000_000);
    for worker in 0..16 {
        let tries = (dies..STAGE_MS).step_by(100).take(10);
        ops.extend(
            tries.map(|at| OpRecord { outcome: ErrorClass::Connect, ..op(worker, 0, at, at + 1) }),
        );
    }
    let verdict = Case::closed(ops).judge();
    assert_eq!((verdict.class, verdict.is_client), (LimitClass::Unknown, false));
    assert!(verdict.sentence.starts_with("the store was away for "), "{verdict:#?}");
    assert!(verdict.experiment.contains("the store's own log"), "{verdict:#?}");

    // On a schedule most of what is due fails at once.
    let mut ops = scheduled(10, 3, 0);
    for op in ops.iter_mut().filter(|op| op.end.as_ns() > dies * 1_000_000) {
        op.outcome = ErrorClass::Connect;
    }
    let verdict = Case::open(ops, 64, 0).judge();
    assert!(verdict.sentence.starts_with("the store was away for "), "{verdict:#?}");
}

#[test]
fn what_is_lost_on_loopback_is_not_the_networks() {
    let lossy = [with_sockets(|of| of.retransmits = 200)];
    let case = Case::closed(in_turn(16, 1));
    let class = |host: &str| case.judge_at(host, &lossy).unwrap().class;
    assert_eq!(class("10.1.2.3"), LimitClass::Network);
    assert_eq!((class("127.0.0.1"), class("[::1]")), (LimitClass::Store, LimitClass::Store));
}

#[test]
fn full_threads_are_the_clients_own_or_its_machines() {
    let full = || busy(TOOK * 19 / 20, TOOK / 100);
    let few = Case::closed(in_turn(16, 1)).of(full()).judge();
    assert_eq!(few.class, LimitClass::ClientThreads);
    assert!(few.is_client && few.experiment.contains("--threads"), "{few:#?}");
    let all_cores = ClientFacts { cores: Some(2.0), ..full() };
    assert_eq!(Case::closed(in_turn(16, 1)).of(all_cores).judge().class, LimitClass::ClientCpu);
    // On files the kernel's share of that may be the file system itself.
    let files = Case { on_files: true, ..Case::closed(in_turn(16, 1)) };
    let kernel = ClientFacts { system_share: Some(0.9), ..full() };
    assert_eq!(files.of(kernel).judge().class, LimitClass::Unknown);
    let files = Case { on_files: true, ..Case::closed(in_turn(16, 1)) };
    let own = ClientFacts { system_share: Some(0.2), ..full() };
    assert_eq!(files.of(own).judge().class, LimitClass::ClientThreads);
    // A cap that is reached may be waited for with a busy thread.
    let capped = Case { paced: Paced::Capped(Some(1_000.0)), ..Case::closed(in_turn(16, 1)) };
    assert_eq!(capped.of(full()).judge().class, LimitClass::NotEnoughLoad);
}

#[test]
fn what_begins_an_upload_waits_for_no_turn_and_fills_no_cap() {
    let judged = |cap: f64| {
        let mut ops = in_turn(16, 1);
        // Of 1,000 operations a second half are parts.
        let kinds = [OpKind::CreateUpload, OpKind::PutPart].into_iter().cycle();
        ops.iter_mut().zip(kinds).for_each(|(op, kind)| op.kind = kind);
        let capped = Case { paced: Paced::Capped(Some(cap)), ..Case::closed(ops) };
        capped.of(busy(TOOK * 19 / 20, TOOK / 100)).judge().class
    };
    assert_eq!(judged(500.0), LimitClass::NotEnoughLoad);
    assert_eq!(judged(1_000.0), LimitClass::ClientThreads);
}

#[test]
fn a_schedule_that_is_not_kept_with_room_is_the_pacing() {
    let late = || scheduled(10, 3, 5);
    let count = late().len() as u64;
    assert_eq!(Case::open(late(), 64, count).judge().class, LimitClass::Pacing);
    // The same on a machine that others keep busy is theirs, and nobody is told to add threads.
    for (own, class) in [(0.2, LimitClass::ClientCpu), (0.9, LimitClass::Pacing)] {
        let machine = Some(MachineFacts { busy: 0.98, steal: 0.0, own: Some(own) });
        let crowded = ClientFacts { machine, ..idle() };
        let verdict = Case::open(late(), 64, count).of(crowded).judge();
        assert_eq!(verdict.class, class);
        assert_eq!(verdict.experiment.contains("stop other programs"), own < 0.5);
    }
    // The same with full threads is theirs.
    let full = busy(TOOK * 19 / 20, Duration::ZERO);
    let verdict = Case::open(late(), 64, count).of(full).judge();
    assert_eq!(verdict.class, LimitClass::ClientThreads);
}

#[test]
fn places_that_were_taken_for_a_while_are_not_the_clients_pacing() {
    // For 200 ms nothing is answered, and all four places are taken.
    let middle = STAGE_MS / 2;
    let started = |op: &OpRecord| op.start.since(Moment::EPOCH).as_millis() as u64;
    let mut ops = scheduled(10, 3, 5);
    ops.retain(|op| !(middle..middle + 200).contains(&started(op)));
    let count = ops.len() as u64;
    ops.extend((0..4).map(|worker| op(worker, 0, middle, middle + 200)));
    let verdict = Case::open(ops, 4, count).judge();
    assert_eq!(verdict.class, LimitClass::Unknown, "{verdict:#?}");
    assert!(verdict.sentence.contains("all of 4 places were taken"), "{verdict:#?}");
}

#[test]
fn places_that_were_too_few_are_not_the_stores_fault() {
    // From 0.1 s on all four places are taken; operations take as long as before.
    let mut ops: Vec<OpRecord> = (0..5).map(|turn| op(0, 0, turn * 20, turn * 20 + 20)).collect();
    ops.extend((0..4).flat_map(|worker| {
        (100..STAGE_MS - 20).step_by(20).map(move |start| op(worker, 0, start, start + 20))
    }));
    let verdict = Case::open(ops, 4, 500).judge();
    assert_eq!(verdict.class, LimitClass::ClientConnections, "{verdict:#?}");
    assert!(verdict.experiment.contains("--max-in-flight"), "{verdict:#?}");
}

#[test]
fn what_does_not_wait_had_room_and_few_tell_nothing() {
    assert_eq!(Case::closed(alike(16, 5)).judge().class, LimitClass::NotEnoughLoad);
    // The fastest may have waited, too, where others keep the machine busy.
    for (own, class) in [(0.2, LimitClass::Unknown), (0.9, LimitClass::NotEnoughLoad)] {
        let machine = Some(MachineFacts { busy: 0.98, steal: 0.0, own: Some(own) });
        let crowded = ClientFacts { machine, ..idle() };
        assert_eq!(Case::closed(alike(16, 5)).of(crowded).judge().class, class);
    }
    let three = Case { workers: 3, ..Case::closed(in_turn(3, 1)) };
    assert_eq!(three.judge().class, LimitClass::NotEnoughLoad);
}

#[test]
fn what_is_not_known_is_said_to_be() {
    // Nothing was seen of any client.
    assert_eq!(Case::closed(in_turn(16, 1)).judge_all(&[]), None);
    // The kernel does not tell of threads.
    let silent = ClientFacts { took: TOOK, threads_count: 2, ..ClientFacts::default() };
    assert_eq!(Case::closed(in_turn(16, 1)).of(silent).judge().class, LimitClass::Unknown);
    // Too few, or too many that failed.
    assert_eq!(Case::closed(vec![op(0, 0, 0, 5)]).judge().class, LimitClass::Unknown);
    assert_eq!(Case::closed(Vec::new()).judge().class, LimitClass::Unknown);
    let mut failing = in_turn(16, 1);
    failing.iter_mut().step_by(2).for_each(|op| op.outcome = ErrorClass::Server);
    assert_eq!(Case::closed(failing).judge().class, LimitClass::Unknown);
    // Workers that are between operations half of the time.
    let mut half = alike(16, 10);
    half.iter_mut().for_each(|op| op.end = op.start.after(Duration::from_millis(5)));
    assert_eq!(Case::closed(half).judge().class, LimitClass::Unknown);
}

#[test]
fn one_short_client_of_several_is_enough() {
    let short = ClientFacts { name: Some("b".to_owned()), ..busy(TOOK / 3, TOOK / 3) };
    let clients = [idle(), short];
    let verdict = Case::closed(in_turn(16, 1)).judge_all(&clients).unwrap();
    assert_eq!(verdict.class, LimitClass::ClientCpu);
    let because: Vec<&str> =
        verdict.evidence.iter().filter(|of| of.decides).map(|of| &*of.text).collect();
    assert!(because.iter().any(|line| line.starts_with("b: ")), "{because:?}");
    assert!(because.contains(&"1 of 2 clients were short of this"), "{because:?}");
}

#[test]
fn every_class_has_a_name_of_its_own() {
    let mut names: Vec<&str> = LimitClass::ALL.iter().map(|class| class.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), LimitClass::ALL.len());
}

proptest! {
    /// Whatever the figures say: a client that was short is never taken for the store.
    #[test]
    fn no_client_that_was_short_is_taken_for_the_store(
        workers in 1_u32..40,
        each_ms in 1_u64..9,
        cpu in 0_u32..100,
        delay in 0_u32..100,
        throttled in 0_u64..40,
        waited in 0_u32..100,
        steal in 0.0_f64..0.3,
        still in 0_u32..20,
    ) {
        let thread = ThreadFacts { cpu: TOOK * cpu / 100, delay: TOOK * delay / 100 };
        let client = ClientFacts {
            quota: Some(QuotaFacts { cores: Some(1.0), periods: 40, throttled }),
            recorder_wait: Some(TOOK * 2 * waited / 100),
            standstills_count: u64::from(still.min(1)),
            stood_still: TOOK * still / 100,
            machine: Some(MachineFacts { busy: 0.5, steal, own: None }),
            ..busy(thread.cpu, thread.delay)
        };
        let verdict = Case { workers, ..Case::closed(in_turn(workers, each_ms)) }
            .of(client)
            .judge();
        let is_short = cpu + delay >= 90
            || delay >= 10
            || throttled >= 4
            || waited >= 5
            || still >= 5
            || steal >= client::STEAL_SHARE;
        if is_short {
            prop_assert!(verdict.is_client, "{verdict:#?}");
        } else {
            prop_assert!(verdict.class != LimitClass::ClientCpu, "{verdict:#?}");
        }
    }
}

#[test]
fn a_store_that_was_away_is_not_hidden_by_a_ramp() {
    // Of 14 s the first 12 s are a ramp; in the rest nothing succeeds for 605 ms.
    let (from, until, ended_ms) = (12_600, 13_200, 14_000);
    let each = |worker| (0..ended_ms).step_by(5).map(move |at| op(worker, 0, at, at + 5));
    let mut ops: Vec<OpRecord> = (0..16).flat_map(each).collect();
    for op in ops.iter_mut().filter(|op| (from..until).contains(&(op.start.as_ns() / MS))) {
        op.outcome = ErrorClass::Connect;
    }
    // What failed is no tenth of what counts.
    let mut kept = 0;
    ops.retain(|op| {
        kept += u32::from(!op.outcome.is_ok());
        op.outcome.is_ok() || kept % 16 == 0
    });
    let measured_from = Moment::from_ns(12_000 * MS);
    let worker = Some(WorkerRow { row: 0, measured_from, measured_until: None });
    let workers = vec![worker; 16];
    let rows = [RowAsked { workers: 16, span: Span::AllWorkers, open: false, ends: None }];
    let question = Question {
        rows: Rows::Several { workers: &workers, rows: &rows },
        ..Question::about(StageId(1), Moment::EPOCH, Moment::from_ns(ended_ms * MS), 16)
    };
    let Ok(answer) = analyze(&ops[..], &question);
    let verdict = Case::closed(ops).judge_row(&answer.rows[0], "store", &[idle()]).unwrap();
    assert!(verdict.sentence.starts_with("the store was away for "), "{verdict:#?}");
    assert!(verdict.sentence.contains("30 % of the time that counts"), "{verdict:#?}");
}
