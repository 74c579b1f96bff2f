//! The search by a client that is disturbed, on a queue whose answer is known.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{JobId, Moment, OpRecord, ProbeRole, StageId, Standstill};
use plimsoll_stats::{LoadLineSearch, Probe, Step, mmc_share_over, rate_carried};
use plimsoll_workload::Random;

use super::tests::slos;
use super::{LoadLineAsked, ProbeAsked, ProbeCounter, ProbeStage};

/// What the server does in a second.
const MU: f64 = 1_000.0;
const BOUND: f64 = 0.02;
/// How far apart the client is looked at, in seconds.
const LOOK: f64 = 0.02;

fn exponential(random: &mut Random, rate: f64) -> f64 {
    -(1.0 - random.unit()).ln() / rate
}

fn moment(seconds: f64) -> Moment {
    Moment::from_ns((seconds * 1e9) as u64)
}

/// Returns pauses of the client of 10 to 500 ms, which take this share of the time.
fn pauses(random: &mut Random, share: f64, seconds: f64) -> Vec<(f64, f64)> {
    let (mut at, mut all) = (0.0, Vec::new());
    while share > 0.0 && at < seconds {
        let lasts = 0.01 + 0.49 * random.unit();
        at += exponential(random, share / (1.0 - share) / 0.255);
        all.push((at, at + lasts));
        at += lasts;
    }
    all
}

/// Probes one server in front of which operations wait in one row. A client that pauses neither
/// sends what is due nor sees what has ended until it goes on.
fn probe(
    random: &mut Random,
    asked: &LoadLineAsked,
    (rate, seconds, role): (f64, f64, ProbeRole),
    share: f64,
) -> Option<Probe> {
    let pauses = pauses(random, share, seconds);
    let lasts = Duration::from_secs_f64(seconds);
    let of_probe = ProbeAsked { slos: Arc::clone(&asked.slos), job: JobId(0), lasts };
    let mut counter = ProbeCounter::new(of_probe, Moment::EPOCH);
    let goes_on = |at: f64| {
        let paused = pauses.iter().find(|(from, until)| (*from..*until).contains(&at));
        paused.map_or(at, |(_, until)| *until)
    };
    let (mut due, mut free) = (0.0, 0.0_f64);
    loop {
        due += exponential(random, rate);
        if due >= seconds {
            break;
        }
        let sent = goes_on(due);
        free = free.max(sent) + exponential(random, MU);
        let (intended, start, end) = (moment(due), moment(sent), moment(goes_on(free)));
        counter.add(&OpRecord { intended, start, end, ..crate::tests::op(0, 0, 0) });
    }
    let looked = |(from, until): &(f64, f64)| {
        let (from, until) = ((from / LOOK).floor() * LOOK, (until / LOOK).ceil() * LOOK);
        Standstill { from: moment(from), length: Duration::from_secs_f64(until - from) }
    };
    let disturbed: Vec<Standstill> = pauses.iter().map(looked).collect();
    let stage = ProbeStage {
        stage: StageId(0),
        rate: Some(rate),
        role: Some(role),
        job: JobId(0),
        started: Moment::EPOCH,
        ended: moment(seconds),
        lasts,
        skipped_count: 0,
        is_cut: false,
        disturbed: Vec::new(),
    };
    stage.taken(&counter.finish(0, &disturbed))
}

fn search(seed: u64, share: f64, budget_s: u64) -> LoadLineSearch {
    let asked = LoadLineAsked {
        slos: slos(&["p99<=20ms"]),
        precision: 0.0,
        budget: Duration::from_secs(budget_s),
        rate_min: 0.0,
        rate_max: 1e9,
    };
    let (mut search, mut random) = (asked.search(50.0), Random::new(seed, 0, 0));
    while let Step::Probe { rate, seconds, role } = search.step() {
        let Some(probe) = probe(&mut random, &asked, (rate, seconds, role), share) else { break };
        search.add(probe);
    }
    search
}

#[test]
fn a_client_that_pauses_finds_the_line_of_the_store() {
    let truth = rate_carried(MU, 0.01, |rate| mmc_share_over(1, MU, rate, BOUND));
    // What is taken out costs data, so that the budget is longer.
    for (share, budget_s) in [(0.01, 120), (0.1, 240)] {
        let lines: Vec<_> = (0..100).map(|seed| search(seed, share, budget_s).line()).collect();
        let found = || lines.iter().flatten();
        let near = found().filter(|line| (line.rate / truth - 1.0).abs() <= 0.05).count();
        let held = found().filter(|line| line.low <= truth && truth <= line.high).count();
        assert!(near >= 95 && held >= 85, "{share}: {near} near, {held} held of {truth}");
    }
}
