//! What a fleet takes: `cargo xtask bench fleet` prints each figure beside its target.
//!
//! `docs/self-benchmarks.md` says from which instant to which each is.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a bench prints, waits, owns its files and processes and may fail loudly"
)]

mod absence;
mod begins;
mod collect;
mod cost;
mod crew;
mod place;
mod table;
#[path = "../../tests/it/task.rs"]
mod task;
mod thousand;

use std::path::Path;

/// What is measured and how often.
pub(crate) struct Plan {
    is_quick: bool,
    /// Only figures whose name holds this text.
    only: String,
}

impl Plan {
    /// How often what varies from run to run is measured.
    fn rounds(&self) -> usize {
        if self.is_quick { 1 } else { 5 }
    }

    /// Stages of a run that has nothing else.
    fn stages(&self) -> usize {
        if self.is_quick { 5 } else { 20 }
    }

    /// Agents that are frozen, and those that are killed.
    fn faults(&self) -> usize {
        if self.is_quick { 2 } else { 10 }
    }

    /// Files of each agent that are collected.
    fn files(&self) -> usize {
        if self.is_quick { 1 } else { 10 }
    }

    /// Operations of a run whose processor time is compared.
    fn ops(&self) -> u64 {
        if self.is_quick { 2_000_000 } else { 20_000_000 }
    }

    /// Reads what follows the program's name; `None` where that is not understood.
    fn parse(mut words: &[&str]) -> Option<Self> {
        let mut plan = Self { is_quick: false, only: String::new() };
        loop {
            words = match words {
                [] => return Some(plan),
                // Cargo says so of itself.
                ["--bench", rest @ ..] => rest,
                ["--quick", rest @ ..] => {
                    plan.is_quick = true;
                    rest
                }
                ["--only", text, rest @ ..] => {
                    plan.only = (*text).to_owned();
                    rest
                }
                _ => return None,
            };
        }
    }
}

type Figure = (&'static str, fn(&Plan) -> Vec<table::Row>);

const FIGURES: [Figure; 6] = [
    ("skew", begins::skew),
    ("absence", absence::absence),
    ("thousand", thousand::thousand),
    ("collect", collect::collect),
    ("cost", cost::cost),
    ("stages", begins::stages),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [crew::AGENT, name, place] => return crew::be_an_agent(name, Path::new(place)),
        [cost::ALONE, stages, place] => return cost::be_alone(stages, Path::new(place)),
        _ => {}
    }
    let Some(plan) = Plan::parse(&words) else {
        let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: [--quick] [--only {}]", names.join("|"));
        std::process::exit(2);
    };
    table::print_head();
    for (name, measure) in FIGURES.iter().filter(|(name, _)| name.contains(&plan.only)) {
        eprintln!("{name}");
        measure(&plan).iter().for_each(table::Row::print);
    }
}
