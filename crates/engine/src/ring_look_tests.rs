//! When what has ended on a ring is stamped: scripted files in virtual time, where content costs
//! time.

use std::time::Duration;

use plimsoll_model::{Moment, WorkerId};

use crate::ring_tests::Answer::Right;
use crate::ring_tests::{FILL, Pace, Ran, Script, blocks, run_at, stages, workload};

const US: u64 = 1_000;
/// Each slot's content takes this long.
const CONTENT: Duration = Duration::from_micros(100);
const PACE: Pace = Pace { unit: Duration::from_micros(1), content: CONTENT };
const TEN_US: Script = |_| (10, Right);

/// Runs 320 operations of a job on files that take 10 us for each.
fn run(workers: u32, depth: u32, read_percent: u32) -> Ran {
    let job = format!("workers: {workers}, depth: {depth}, ops: 320, {}", blocks(read_percent, ""));
    run_at(&stages(&[FILL, &job]), &[TEN_US; 2], PACE)
}

#[test]
fn no_latency_holds_more_than_one_slots_content() {
    for (clones, depth) in [(1, 1), (1, 16), (1, 64), (8, 1), (8, 8)] {
        for read_percent in [0, 50, 100] {
            let ran = run(clones, depth, read_percent);
            let what = format!("{clones} x {depth}, {read_percent} % reads");
            assert_eq!(ran.records.len(), 320, "{what}");
            let latencies = || ran.records.iter().map(|op| op.latency());
            assert!(latencies().all(|each| each >= Duration::from_micros(10)), "{what}");
            let longest = latencies().max().unwrap();
            assert!(longest <= Duration::from_micros(10) + CONTENT, "{what}: {longest:?}");
        }
    }
}

#[test]
fn a_look_between_slots_takes_nothing_from_the_rate() {
    // Content is what the thread is busy with: 320 times, and the last operation's 10 us.
    for depth in [16, 64] {
        assert_eq!(run(1, depth, 0).outcome.ended, Moment::from_ns((320 * 100 + 10) * US));
        // Reads go out again before the content of all others has been checked.
        assert_eq!(run(1, depth, 100).outcome.ended, Moment::from_ns((10 + 320 * 100) * US));
    }
}

#[test]
fn the_longest_time_without_a_look_is_told() {
    // All writes but the last end while the next one's content is made.
    let looks = run(1, 16, 0).outcome.looks.unwrap();
    assert_eq!((looks.gap_max, looks.uncertain_count), (CONTENT, 319));
    // One at a time has nothing beside it.
    let looks = run(1, 1, 0).outcome.looks.unwrap();
    assert_eq!((looks.gap_max, looks.uncertain_count), (Duration::ZERO, 0));
    // What is done while it is sent is stamped right after the call.
    let job = format!("workers: 1, depth: 16, ops: 320, {}", blocks(100, ""));
    let at_once: Script = |_| (0, Right);
    let ran = run_at(&stages(&[FILL, &job]), &[TEN_US, at_once], PACE);
    assert!(ran.records.iter().all(|op| op.latency() == Duration::ZERO));
    assert_eq!(ran.outcome.looks.unwrap().uncertain_count, 0);
    // What is done at once is stamped when the call returns.
    let job = format!("workers: 1, depth: 1, interface: psync, ops: 20, {}", blocks(100, ""));
    let ran = run_at(&stages(&[FILL, &job]), &[TEN_US; 2], PACE);
    assert_eq!(ran.outcome.looks, None);
    assert!(ran.records.iter().all(|op| op.latency() == Duration::from_micros(10)));
}

#[test]
fn who_spins_between_operations_looks_at_those_of_others() {
    // The one that spins has an operation of 10 us beside one of 15, and spins when it has ended.
    let turns: Script = |number| (if number % 2 == 0 { 10 } else { 15 }, Right);
    let job = |name: &str, more: &str| {
        let work = blocks(100, "").replace("on: f", &format!("on: {name}"));
        format!("{{name: {name}, {more}, {work}}}")
    };
    let spins = job("a", "ops: 4, think: {pause: 500us, spin: 500us, every: 1}");
    let fill = |name| format!("{{{}}}", FILL.replace("sets: f", &format!("sets: {name}")));
    let both = workload(&[fill("a"), fill("b"), format!("{spins}, {}", job("b", "ops: 8"))]);
    let ran = run_at(&both, &[TEN_US, TEN_US, turns], Pace { content: Duration::ZERO, ..PACE });
    let of_other = ran.records.iter().filter(|op| op.worker == WorkerId(1));
    let latencies: Vec<_> = of_other.map(|op| op.latency().as_micros()).collect();
    assert_eq!(latencies.len(), 8);
    assert!(latencies.iter().all(|each| [10, 15].contains(each)), "{latencies:?}");
}
