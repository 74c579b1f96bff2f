//! Arrivals of many users who know nothing of each other.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use plimsoll_driver::null::NullDriver;
use plimsoll_engine::{
    EngineConfig, Live, OpSink, OpSinkError, StageContext, StopFlag, VirtualTime, run_stage,
};
use plimsoll_model::{Moment, OpRecord, PackedOp, SharedClock, StageId, StageKind};
use plimsoll_report::proof::Check;
use plimsoll_stats::KolmogorovSmirnov;
use plimsoll_workload::Workload;
use plimsoll_workload::data::Generator;

use super::{Bench, Load, open};

pub(super) const CLAIM: &str = "\
    the times between Poisson arrivals are exponential: a Kolmogorov-Smirnov test at the \
    level of 5 % rejects about 5 of 100 seeds, and every one of 100 schedules of constant \
    arrivals";

const SEEDS: u64 = 100;
const RATE: f64 = 1_000.0;
const LEVEL: f64 = 0.05;
/// Of 100 tests at the level of 5 % more than 13 are rejected with a chance of 1 in 2,000 (the
/// binomial distribution).
const REJECTED_MAX: usize = 13;

/// Keeps what was issued.
#[derive(Default)]
struct Kept(Vec<OpRecord>);

impl OpSink for Kept {
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        self.0.extend(ops.iter().map(OpRecord::from));
        Ok(())
    }

    fn tick(&mut self, _: Moment) -> Result<(), OpSinkError> {
        Ok(())
    }
}

pub(super) fn checks(bench: &Bench) -> Result<Vec<Check>> {
    let rejected = |arrivals: &str| -> Result<usize> {
        let mut rejected = 0;
        for number in 0..SEEDS {
            let load = Load {
                operations: &[("STAT", 1)],
                pacing: open(&format!("{RATE}/s"), arrivals, 1_000),
                seconds: 2,
                workers: 20,
                objects: 100,
                size: 1,
            };
            let spec = load.spec(bench.seed.wrapping_add(number));
            let workload = Arc::new(spec.validate("proof", None)?);
            rejected += usize::from(p_value(&workload)? < LEVEL);
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
fn p_value(workload: &Arc<Workload>) -> Result<f64> {
    let mut arrivals: Vec<u64> = issued(workload)?.iter().map(|op| op.intended.as_ns()).collect();
    arrivals.sort_unstable();
    let between = arrivals.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9);
    let mut between: Vec<f64> = between.collect();
    Ok(KolmogorovSmirnov::test(&mut between, |time| 1.0 - (-RATE * time).exp()).p_value)
}

/// Returns the operations of a workload as they were issued in virtual time to a store that does
/// nothing.
fn issued(workload: &Arc<Workload>) -> Result<Vec<OpRecord>> {
    let time = Arc::new(VirtualTime::new());
    let clock: SharedClock = Arc::clone(&time) as SharedClock;
    let (live, generator) = (Live::new(1), Arc::new(Generator::new(workload.seed.0)));
    let context = StageContext {
        clock: &clock,
        virtual_time: Some(&time),
        stop: &StopFlag::default(),
        live: &live,
        generator: &generator,
    };
    let config = EngineConfig { threads: 1, op_timeout: Duration::from_secs(10), retries: 0 };
    let (stage, mut kept) = ((StageId(0), StageKind::Measure), Kept::default());
    run_stage(&NullDriver, workload, stage, &config, &context, &mut kept)?;
    Ok(kept.0)
}
