//! Agents that say that they work, for as long as they like.

use std::time::Duration;

use plimsoll_fleet::Limits;
use plimsoll_fleet::coordinator::{Coordinator, CoordinatorDo, LossReason, Standing};
use plimsoll_fleet::protocol::{AgentId, Progress, State, Tell, What};
use plimsoll_model::Moment;

const LIMITS: Limits = Limits::DEFAULT;

type Machine = Coordinator<(), (), u64>;

fn at(seconds: u64) -> Moment {
    Moment::EPOCH.after(Duration::from_secs(seconds))
}

fn id(index: usize) -> AgentId {
    AgentId::new(format!("a{index}")).unwrap()
}

/// Three agents in the first step, of which two say after `seconds` that it is done.
fn with_two_done(seconds: u64, planned_end: Option<Moment>) -> Machine {
    let agents = (0..3).map(|index| (id(index), 7));
    let mut machine = Machine::new(1, "run".to_owned(), LIMITS, agents, at(0));
    let _ = machine.begin(at(0), planned_end, |_| ());
    for now in 1..=seconds {
        (0..3).for_each(|index| says(&mut machine, now, index, State::Working { step: 1 }, 0));
    }
    for index in 0..2 {
        says(&mut machine, seconds, index, State::Done { step: 1, answer: Some(()) }, 0);
    }
    machine
}

fn says(machine: &mut Machine, now: u64, index: usize, state: State<()>, live: u64) {
    let (run, live) = ("run".to_owned(), Some(live));
    let what = What::Run(Progress { run, state, echo: None, live });
    let (agent, coordinator) = (id(index), Some(1));
    let _ = machine.hear(at(now), Tell { agent, incarnation: 7, number: now, coordinator, what });
}

/// What is done in a second in which all say where they are; `live` is what the last one counts.
fn second(machine: &mut Machine, now: u64, live: u64) -> Vec<CoordinatorDo<()>> {
    (0..2).for_each(|of| says(machine, now, of, State::Done { step: 1, answer: None }, 0));
    says(machine, now, 2, State::Working { step: 1 }, live);
    let mut todo = machine.tick(at(now));
    todo.retain(|each| !matches!(each, CoordinatorDo::Say(..)));
    todo
}

fn lost(machine: &Machine) -> Option<LossReason> {
    match machine.members()[2].standing() {
        Standing::Lost(loss) => Some(loss.why.clone()),
        _ => None,
    }
}

#[test]
fn one_that_works_on_is_warned_of_and_then_given_up() {
    // Others took a second, so that it has five minutes, or a hundred, and it has ten times that.
    for (took, most) in [(1, 300), (100, 1_000)] {
        let mut machine = with_two_done(took, None);
        let warned = took + most / 10;
        for now in took + 1..took + most {
            let expected = match now == warned {
                true => vec![CoordinatorDo::Lags(2, Duration::from_secs(most / 10))],
                false => Vec::new(),
            };
            assert_eq!(second(&mut machine, now, 0), expected, "{now}");
        }
        assert!(!machine.is_step_over());
        let _ = second(&mut machine, took + most, 0);
        assert_eq!(lost(&machine), Some(LossReason::Lagging));
        assert!(machine.is_step_over());
    }
}

#[test]
fn one_that_counts_on_is_waited_for_until_the_step_was_to_end() {
    let mut machine = with_two_done(1, None);
    (2..10_000).for_each(|now| assert_eq!(second(&mut machine, now, now), [], "{now}"));
    assert_eq!(lost(&machine), None);
    let mut machine = with_two_done(1, Some(at(60)));
    (2..360).for_each(|now| drop(second(&mut machine, now, now)));
    assert_eq!(lost(&machine), None);
    let _ = second(&mut machine, 360, 360);
    assert_eq!(lost(&machine), Some(LossReason::Lagging));
}

#[test]
fn nobody_is_given_up_while_most_work() {
    let agents = (0..3).map(|index| (id(index), 7));
    let mut machine = Machine::new(1, "run".to_owned(), LIMITS, agents, at(0));
    let _ = machine.begin(at(0), None, |_| ());
    for now in 1..10_000 {
        says(&mut machine, now, 0, State::Done { step: 1, answer: Some(()) }, 0);
        (1..3).for_each(|of| says(&mut machine, now, of, State::Working { step: 1 }, 0));
        let todo = machine.tick(at(now));
        assert!(todo.iter().all(|each| matches!(each, CoordinatorDo::Say(..))), "{now}: {todo:?}");
    }
}

#[test]
fn one_that_does_not_end_when_it_is_told_to_is_given_up() {
    let agents = (0..3).map(|index| (id(index), 7));
    let mut machine = Machine::new(1, "run".to_owned(), LIMITS, agents, at(0));
    let _ = machine.begin(at(0), None, |_| ());
    let works = |machine: &mut Machine, now| {
        (0..3).for_each(|of| says(machine, now, of, State::Working { step: 1 }, now));
        let _ = machine.tick(at(now));
    };
    (1..100).for_each(|now| works(&mut machine, now));
    let _ = machine.end_step(at(100));
    let _ = machine.end_step(at(105));
    (101..110).for_each(|now| works(&mut machine, now));
    assert_eq!(lost(&machine), None);
    works(&mut machine, 110);
    assert_eq!(lost(&machine), Some(LossReason::Unending));
    assert!(machine.is_step_over());
}
