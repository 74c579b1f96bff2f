//! Arrivals of many users who know nothing of each other.

use std::time::Duration;

use plimsoll_model::OpRecord;
use plimsoll_report::proof::Check;
use plimsoll_stats::{Histogram, KolmogorovSmirnov, Percentile};
use plimsoll_workload::plan::WorkloadFile;
use plimsoll_workload::plan::spec::WORKLOAD_SCHEMA;

use crate::error::{Context, Result};
use crate::{Load, Prover, bare, is_near, open, times};
use plimsoll_conduct::RunTime;

pub(crate) const CLAIM: &str = "\
    the times between Poisson arrivals are exponential: a Kolmogorov-Smirnov test at the \
    level of 5 % rejects about 5 of 100 seeds, and every one of 100 schedules of constant \
    arrivals; two jobs side by side are draws of their own, so that a queue serves them as it \
    serves one job of their rates together";

const SEEDS: u64 = 100;
const RATE: f64 = 1_000.0;
const LEVEL: f64 = 0.05;
/// Of 100 tests at the level of 5 % more than 13 are rejected with a chance of 1 in 2,000 (the
/// binomial distribution).
const REJECTED_MAX: usize = 13;

/// Two jobs that differ in nothing, on a store of one server: half of what it can serve in all.
const TWO_JOBS: &str = "workers: 8, pacing: {open: {rate: 250/s, arrivals: poisson}}, \
    work: {objects: [{stat: o}]}";
const TWO_JOBS_SCRIPT: &str = "service: {time: {exponential: {mean: 1ms}}}\nservers: 1";
/// Answers of an M/M/1 queue are exponential with the mean 1 / (1,000/s - 500/s) (L. Kleinrock,
/// Queueing Systems, volume 1, 1975, section 3.2). Arrivals in pairs make that 3 ms.
const TWO_JOBS_MEAN_NS: u64 = 2_000_000;
const TWO_JOBS_P99_NS: u64 = 9_210_340;
/// Over 240 s the standard error of the mean is about 1 % and that of p99 about 2 %.
const TWO_JOBS_NEAR: f64 = 0.1;

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
    let mut checks = vec![
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
    ];
    checks.extend(of_two_jobs(prover)?);
    Ok(checks)
}

/// Measures a queue under two jobs.
fn of_two_jobs(prover: &Prover) -> Result<[Check; 2]> {
    let text = format!(
        "schema: {WORKLOAD_SCHEMA}\nname: proof\nseed: {}\nsets: {{o: {{count: 8, size: 1}}}}\n\
         stages:\n- {{name: prepare, prepares: true, jobs: [{{work: {{fill: o}}}}]}}\n\
         - {{name: measure, duration: 240s, \
         jobs: [{{name: a, {TWO_JOBS}}}, {{name: b, {TWO_JOBS}}}]}}\n",
        prover.seed,
    );
    let file = WorkloadFile::from_yaml("proof", &text).expect("the workload is sound");
    let measured = prover.simulate(&file, TWO_JOBS_SCRIPT)?;
    let mut latency = Histogram::new();
    for row in measured.report.results().flat_map(|stage| &stage.rows) {
        for kind in &row.analysis.kinds {
            let of_kind = kind.figures.latency.histogram.as_ref();
            latency.merge(of_kind.context("no distribution")?);
        }
    }
    let mean = latency.mean().context("no samples")? as u64;
    let p99 = Percentile::new(99.0).and_then(|p99| latency.percentile(p99));
    let check = |what: &str, truth, measured| Check {
        what: format!("{what} of 2 jobs of 250/s each on an M/M/1 queue of 1,000/s"),
        truth: format!("{} ± 10 %", times(&[truth])),
        measured: times(&[measured]),
        holds: is_near(truth, measured, TWO_JOBS_NEAR),
    };
    Ok([
        check("mean", TWO_JOBS_MEAN_NS, mean),
        check("p99", TWO_JOBS_P99_NS, p99.context("no samples")?),
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
