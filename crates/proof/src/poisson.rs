//! Arrivals of many users who know nothing of each other.

use std::time::Duration;

use plimsoll_model::OpRecord;
use plimsoll_report::proof::Check;
use plimsoll_stats::KolmogorovSmirnov;

use crate::error::Result;
use crate::{Load, Prover, bare, open};
use plimsoll_conduct::RunTime;

pub(crate) const CLAIM: &str = "\
    the times between Poisson arrivals are exponential: a Kolmogorov-Smirnov test at the \
    level of 5 % rejects about 5 of 100 seeds, and every one of 100 schedules of constant \
    arrivals";

const SEEDS: u64 = 100;
const RATE: f64 = 1_000.0;
const LEVEL: f64 = 0.05;
/// Of 100 tests at the level of 5 % more than 13 are rejected with a chance of 1 in 2,000 (the
/// binomial distribution).
const REJECTED_MAX: usize = 13;

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let rejected = |arrivals: &str| -> Result<usize> {
        let mut rejected = 0;
        for number in 0..SEEDS {
            let load = Load {
                operations: "{stat: o}",
                pacing: open(&format!("{RATE}/s"), arrivals, 1_000),
                lasts: Duration::from_secs(2),
                workers: 20,
                objects: 100,
                size: 1,
            };
            let file = load.file(prover.seed.wrapping_add(number));
            let (_, ops) = bare::run(&file, &RunTime::simulated())?;
            rejected += usize::from(p_value(&ops) < LEVEL);
        }
        Ok(rejected)
    };
    let poisson = rejected("poisson")?;
    let constant = rejected("constant")?;
    Ok(vec![
        Check {
            what: format!("Poisson schedules rejected, of {SEEDS} with about 2,000 arrivals each"),
            truth: format!("about 5, at most {REJECTED_MAX}"),
            measured: poisson.to_string(),
            holds: poisson <= REJECTED_MAX,
        },
        Check {
            what: "constant schedules rejected".to_owned(),
            truth: SEEDS.to_string(),
            measured: constant.to_string(),
            holds: constant as u64 == SEEDS,
        },
    ])
}

/// Returns how likely times between arrivals are at least as far from exponential as these.
fn p_value(ops: &[OpRecord]) -> f64 {
    let mut arrivals: Vec<u64> = ops.iter().map(|op| op.intended.as_ns()).collect();
    arrivals.sort_unstable();
    let between = arrivals.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9);
    let mut between: Vec<f64> = between.collect();
    KolmogorovSmirnov::test(&mut between, |time| 1.0 - (-RATE * time).exp()).p_value
}
