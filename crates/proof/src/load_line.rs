//! The load line of stores whose true one is known.

use plimsoll_report::LoadLineReport;
use plimsoll_report::proof::Check;
use plimsoll_workload::plan::{WORKLOAD_SCHEMA, WorkloadFile};

use crate::Prover;
use crate::error::{Context, Result};

pub(crate) const CLAIM: &str = "\
    the load line of queues is the true one: within 5 % for 95 of 100 seeds and within its \
    interval for 90, with 120 s each; a store that falls and stays down is told from one that \
    comes back";

/// Without optimisation each search takes seconds, so there are fewer.
const SEEDS: u64 = if cfg!(debug_assertions) { 3 } else { 100 };
const BUDGET_S: u64 = 120;
const NEAR: f64 = 0.05;
/// Of a hundred.
const NEAR_MIN: u64 = 95;
const HELD_MIN: u64 = 90;
/// A store and what is asked of it.
struct Model {
    name: &'static str,
    script: &'static str,
    slo: &'static str,
    /// The highest rate that keeps it, in operations per second.
    truth: fn() -> f64,
    is_metastable: bool,
}

const MODELS: [Model; 3] = [
    Model {
        name: "M/M/1, 1,000/s, p99<=20ms",
        script: "service: {time: {exponential: {mean: 1ms}}}\nservers: 1\ngrace_count: 100",
        slo: "p99<=20ms",
        truth: || mmc(1, 1_000.0, 0.02),
        is_metastable: false,
    },
    Model {
        name: "M/M/4, 4 x 250/s, p99<=30ms",
        script: "service: {time: {exponential: {mean: 4ms}}}\nservers: 4\ngrace_count: 100",
        slo: "p99<=30ms",
        truth: || mmc(4, 250.0, 0.03),
        is_metastable: false,
    },
    Model {
        name: "metastable: M/M/1 that is three times as slow once one has waited 100 ms",
        script: "service: {time: {exponential: {mean: 1ms}}}\nservers: 1\ngrace_count: 100\n\
                 collapse: {above: 100ms, factor: 3, calm: 50ms, lasting: 1s}",
        slo: "p99<=20ms",
        truth: || mmc(1, 1_000.0, 0.02),
        is_metastable: true,
    },
];

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for model in &MODELS {
        checks.append(&mut model.checks(prover)?);
    }
    Ok(checks)
}

impl Model {
    fn checks(&self, prover: &Prover) -> Result<Vec<Check>> {
        let truth = (self.truth)();
        let (mut near, mut held, mut found) = (0, 0, 0);
        let explained = prover.explained.borrow().len();
        for number in 0..SEEDS {
            let line = self.search(prover, prover.seed.wrapping_add(number))?;
            // One of them says how all are measured.
            prover.explained.borrow_mut().truncate(explained + 1);
            found += u64::from(line.metastable.is_some() == self.is_metastable);
            let Some(line) = line.line else { continue };
            near += u64::from((line.ops_per_sec / truth - 1.0).abs() <= NEAR);
            held += u64::from(line.ops_per_sec_low <= truth && truth <= line.ops_per_sec_high);
        }
        let counted = |what: &str, count: u64, of_hundred: u64| {
            // Of three seeds all are to be.
            let least = (SEEDS * of_hundred).div_ceil(100);
            Check {
                what: format!("{}: {what}", self.name),
                truth: format!("at least {least} of {SEEDS}, {truth:.1}/s"),
                measured: count.to_string(),
                holds: count >= least,
            }
        };
        let came_back =
            if self.is_metastable { "found to stay down" } else { "found to come back" };
        Ok(vec![
            counted("within 5 %", near, NEAR_MIN),
            counted("in its interval", held, HELD_MIN),
            counted(came_back, found, NEAR_MIN),
        ])
    }

    fn search(&self, prover: &Prover, seed: u64) -> Result<LoadLineReport> {
        let slo = self.slo;
        let text = format!(
            "schema: {WORKLOAD_SCHEMA}\nname: proof\nseed: {seed}\nverify: false\n\
             sets: {{o: {{count: 1000, size: 1KiB}}}}\nstages:\n\
             - {{name: prepare, prepares: true, jobs: [{{workers: 10, work: {{fill: o}}}}]}}\n\
             - name: line\n  search:\n    rate: 50/s..100000/s\n    slo: ['{slo}']\n    \
             precision: 0.01%\n    budget: {BUDGET_S}s\n    max_in_flight: 10000\n    \
             stage: {{jobs: [{{workers: 10, work: {{objects: [{{get: o}}]}}}}]}}\n"
        );
        let file = WorkloadFile::from_yaml("proof", &text).context("the workload of the proof")?;
        let mut measured = prover.simulate(&file, self.script)?;
        measured.report.load_lines.pop().context("no load line was looked for")
    }
}

/// Returns the rate at which a share of 1 % takes longer than the bound in M/M/c with servers of
/// rate `mu`: the time in the system is the wait, which is 0 or exponential, and the service
/// (D. Gross, C. M. Harris, *Fundamentals of Queueing Theory*, 3rd ed. 1998, section 2.3).
fn mmc(servers: u32, mu: f64, bound: f64) -> f64 {
    let over = |rate: f64| {
        let (load, count) = (rate / mu, f64::from(servers));
        let blocked =
            (1..=servers).fold(1.0, |blocked, n| load * blocked / (f64::from(n) + load * blocked));
        let waits = blocked / (1.0 - load / count * (1.0 - blocked));
        let drain = count * mu - rate;
        let service = (-mu * bound).exp();
        let both = match (mu - drain).abs() < 1e-9 {
            true => (1.0 + mu * bound) * service,
            false => (mu * (-drain * bound).exp() - drain * service) / (mu - drain),
        };
        (1.0 - waits) * service + waits * both
    };
    halved(f64::from(servers) * mu, 60, |rate| over(rate) > 0.01)
}

/// Returns the highest rate below `most` that is not too high.
fn halved(most: f64, halvings: u32, is_too_high: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..halvings {
        let middle = f64::midpoint(low, high);
        if is_too_high(middle) { high = middle } else { low = middle }
    }
    f64::midpoint(low, high)
}
