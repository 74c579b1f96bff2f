//! The load line of stores whose true one is known.

use plimsoll_conduct::machine;
use plimsoll_report::LoadLineReport;
use plimsoll_report::proof::Check;
use plimsoll_stats::{mdc_share_over, mg1_share_over, mmc_share_over, rate_carried};
use plimsoll_workload::plan::{WORKLOAD_SCHEMA, WorkloadFile};

use crate::error::{Context, ProofError, Result};
use crate::loopback::Noise;
use crate::{Prover, loopback, side_by_side};

pub(crate) const CLAIM: &str = "\
    the load line of queues is the true one: within 5 % for 95 of 100 seeds and within its \
    interval for 90, with 120 s each; a store that falls and stays down is told from one that \
    comes back";

/// Searches of each store.
const SEEDS: u64 = 3;
const SEEDS_FULL: u64 = 5;
/// From so many seeds on, the shares are kept to the letter; of fewer, chance may take some.
const SEEDS_ENOUGH: u64 = 100;
const BUDGET_S: u64 = 120;
const NEAR: f64 = 0.05;
/// Shares of all searches.
const NEAR_MIN: f64 = 0.95;
const HELD_MIN: f64 = 0.9;
/// A store and what is asked of it.
struct Model {
    name: &'static str,
    script: &'static str,
    slo: &'static str,
    /// What there is to read.
    objects: &'static str,
    /// The highest rate that keeps it, in operations per second.
    truth: fn() -> f64,
    is_metastable: bool,
}

/// The share of operations that may take longer than the bound of each.
const SHARE_MAX: f64 = 0.01;
/// The objects. Where they have several sizes there are many, so that each is the size of a
/// quarter of them whatever the seed.
const ONE_SIZE: &str = "count: 1000, size: 1KiB";
const SIZES: &str = "count: 20000, size: {list: [250, 500, 1000, 2000]}";

static MODELS: [Model; 6] = [
    Model {
        name: "M/M/1, 1,000/s, p99<=20ms",
        script: "service: {time: {exponential: {mean: 1ms}}}\nservers: 1\ngrace_count: 100",
        slo: "p99<=20ms",
        objects: ONE_SIZE,
        truth: || carried(1_000.0, |rate| mmc_share_over(1, 1_000.0, rate, 0.02)),
        is_metastable: false,
    },
    Model {
        name: "M/M/4, 4 x 250/s, p99<=30ms",
        script: "service: {time: {exponential: {mean: 4ms}}}\nservers: 4\ngrace_count: 100",
        slo: "p99<=30ms",
        objects: ONE_SIZE,
        truth: || carried(1_000.0, |rate| mmc_share_over(4, 250.0, rate, 0.03)),
        is_metastable: false,
    },
    Model {
        name: "one server, 80 % in 250 us and 20 % in 1.5 ms, p99<=10ms",
        script: "service: {time: {bimodal: {first: {constant: 250us}, second: {constant: 1.5ms}, \
                 share: 0.8}}}\nservers: 1\ngrace_count: 100",
        slo: "p99<=10ms",
        objects: ONE_SIZE,
        truth: || {
            let services = [(0.000_25, 0.8), (0.001_5, 0.2)];
            carried(2_000.0, |rate| mg1_share_over(&services, rate, 0.01))
        },
        is_metastable: false,
    },
    Model {
        name: "one server, 100 us and 1 us for each byte of 250 to 2,000, p99<=12ms",
        script: "service: {time: {constant: 100us}, per_byte: 1us}\nservers: 1\ngrace_count: 100",
        slo: "p99<=12ms",
        objects: SIZES,
        truth: || {
            let services = [0.000_35, 0.000_6, 0.001_1, 0.002_1].map(|time| (time, 0.25));
            carried(1_000.0, |rate| mg1_share_over(&services, rate, 0.012))
        },
        is_metastable: false,
    },
    Model {
        name: "cliff: 8 threads, 5 ms each, p99<=50ms",
        script: "service: {time: {constant: 5ms}}\nservers: 8\ngrace_count: 100",
        slo: "p99<=50ms",
        objects: ONE_SIZE,
        truth: || carried(1_600.0, |rate| mdc_share_over(8, 0.005, rate, 10)),
        is_metastable: false,
    },
    Model {
        name: "metastable: M/M/1, 2,000/s, three times as slow once one has waited 50 ms",
        script: "service: {time: {exponential: {mean: 500us}}}\nservers: 1\ngrace_count: 100\n\
                 collapse: {above: 50ms, factor: 3, calm: 25ms, lasting: 1s}",
        slo: "p99<=10ms",
        objects: ONE_SIZE,
        truth: || carried(2_000.0, |rate| mmc_share_over(1, 2_000.0, rate, 0.01)),
        is_metastable: true,
    },
];

/// How many searches did well.
#[derive(Default)]
struct Counts {
    searches: u64,
    near: u64,
    held: u64,
    /// Told rightly whether the store comes back after an overload.
    told: u64,
}

impl Counts {
    fn of(found: &[(&Model, LoadLineReport)]) -> Self {
        let mut counts = Self { searches: found.len() as u64, ..Self::default() };
        for (model, found) in found {
            counts.told += u64::from(found.metastable.is_some() == model.is_metastable);
            let (truth, Some(line)) = ((model.truth)(), &found.line) else { continue };
            counts.near += u64::from((line.ops_per_sec / truth - 1.0).abs() <= NEAR);
            counts.held +=
                u64::from(line.ops_per_sec_low <= truth && truth <= line.ops_per_sec_high);
        }
        counts
    }

    /// Returns the checks of the counts; `told` names the third one.
    fn checks(&self, of: &str, truth: &str, told: &str, is_exact: bool) -> [Check; 3] {
        let least_of = if is_exact { share_of } else { least_of };
        let counted = |what: &str, count: u64, share: f64| {
            let least = least_of(self.searches, share);
            Check {
                what: format!("{of}: {what}"),
                truth: format!("at least {least} of {}{truth}", self.searches),
                measured: count.to_string(),
                holds: count >= least,
            }
        };
        [
            counted("within 5 %", self.near, NEAR_MIN),
            counted("in its interval", self.held, HELD_MIN),
            counted(told, self.told, NEAR_MIN),
        ]
    }
}

fn share_of(searches: u64, share: f64) -> u64 {
    (searches as f64 * share).ceil() as u64
}

/// Returns how many of a few searches must do well where `share` of all do: chance alone leaves
/// fewer (binomial distribution) no more often than it leaves a normal variable two standard
/// deviations below its mean. A single one must do well by itself.
fn least_of(searches: u64, share: f64) -> u64 {
    const CHANCE_MAX: f64 = 0.0228;
    let (mut least, mut chance_of_fewer) = (0, 0.0);
    let mut chance = (1.0 - share).powi(searches as i32);
    while least < searches && chance_of_fewer + chance <= CHANCE_MAX {
        chance_of_fewer += chance;
        chance *= (searches - least) as f64 / (least + 1) as f64 * share / (1.0 - share);
        least += 1;
    }
    least.max(1)
}

/// Returns the highest rate at which no more than the allowed share takes too long.
fn carried(most: f64, share_over: impl Fn(f64) -> f64) -> f64 {
    rate_carried(most, SHARE_MAX, share_over)
}

pub(crate) const LOOPBACK: &str = "\
    over real sockets the load line of a queue is within 10 % of the true one, each time";
const SEARCHES_ON_SOCKETS: u64 = 1;
const SEARCHES_ON_SOCKETS_FULL: u64 = 3;
const BUDGET_ON_SOCKETS_S: u64 = 25;
const NEAR_ON_SOCKETS: f64 = 0.1;
const ON_SOCKETS: Model = Model {
    name: "M/M/4, 4 x 500/s, p99<=20ms",
    script: "service: {time: {exponential: {mean: 2ms}}}\nservers: 4",
    slo: "p99<=20ms",
    objects: ONE_SIZE,
    truth: || carried(2_000.0, |rate| mmc_share_over(4, 500.0, rate, 0.02)),
    is_metastable: false,
};

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let seeds = prover.seeds.unwrap_or(if prover.full { SEEDS_FULL } else { SEEDS });
    let mut searches = Vec::new();
    for model in &MODELS {
        // The first search of each store explains how all are measured.
        prover.script(&model.file(prover.seed, BUDGET_S)?, model.script)?;
        let of = |number| Prover { seed: prover.seed.wrapping_add(number), ..prover.clone() };
        searches.extend((0..seeds).map(|number| (model, of(number))));
    }
    let search = |(model, prover): (&'static Model, Prover)| Ok((model, model.search(&prover)?));
    let mut found = Vec::new();
    side_by_side(searches, machine::cores(), search, |each: Result<_>| {
        found.push(each?);
        Ok::<_, ProofError>(())
    })?;
    let is_exact = seeds >= SEEDS_ENOUGH;
    let all = Counts::of(&found);
    let mut checks = all.checks("all stores", "", "told whether they come back", is_exact).to_vec();
    for (model, found) in MODELS.iter().zip(found.chunks(seeds as usize)) {
        let truth = format!(", {:.1}/s", (model.truth)());
        let told = if model.is_metastable { "found to stay down" } else { "found to come back" };
        checks.extend(Counts::of(found).checks(model.name, &truth, told, is_exact));
    }
    Ok(checks)
}

/// Looks for the line of a queue over sockets.
pub(crate) fn loopback_checks(prover: &Prover) -> Result<Vec<Check>> {
    let truth = (ON_SOCKETS.truth)();
    let mut noise = Noise::of_machine(prover)?;
    let mut checks = Vec::new();
    let searches = if prover.full { SEARCHES_ON_SOCKETS_FULL } else { SEARCHES_ON_SOCKETS };
    for number in 0..searches {
        let file = ON_SOCKETS.file(prover.seed.wrapping_add(number), BUDGET_ON_SOCKETS_S)?;
        let mut measured = loopback::measure(prover, &file, ON_SOCKETS.script)?;
        noise.note_machine(prover)?;
        let found = measured.report.load_lines.pop().context("no load line was looked for")?;
        if let Some(client) = found.verdict.filter(|verdict| verdict.is_client) {
            // It names no line then, which is right, and says nothing of the search.
            let reason =
                format!("this machine has no room for store and client: {}", client.sentence);
            return Err(ProofError::Skipped { reason, checks });
        }
        let rate = found.line.map(|line| line.ops_per_sec);
        checks.push(Check {
            what: format!("{}, search {}", ON_SOCKETS.name, number + 1),
            truth: format!("{truth:.0}/s, within 10 %"),
            measured: rate.map_or("none".to_owned(), |rate| format!("{rate:.0}/s")),
            holds: rate.is_some_and(|rate| (rate / truth - 1.0).abs() <= NEAR_ON_SOCKETS),
        });
    }
    loopback::judged(Vec::new(), checks, &noise)
}

impl Model {
    fn search(&self, prover: &Prover) -> Result<LoadLineReport> {
        let mut measured = prover.simulate(&self.file(prover.seed, BUDGET_S)?, self.script)?;
        measured.report.load_lines.pop().context("no load line was looked for")
    }

    fn file(&self, seed: u64, budget_s: u64) -> Result<WorkloadFile> {
        let Self { slo, objects, .. } = self;
        let text = format!(
            "schema: {WORKLOAD_SCHEMA}\nname: proof\nseed: {seed}\nverify: false\n\
             sets: {{o: {{{objects}}}}}\nstages:\n\
             - {{name: prepare, prepares: true, jobs: [{{workers: 10, work: {{fill: o}}}}]}}\n\
             - name: line\n  search:\n    rate: 50/s..100000/s\n    slo: ['{slo}']\n    \
             precision: 0.01%\n    budget: {budget_s}s\n    max_in_flight: 10000\n    \
             stage: {{jobs: [{{workers: 10, work: {{objects: [{{get: o}}]}}}}]}}\n"
        );
        WorkloadFile::from_yaml("proof", &text).context("the workload of the proof")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_searches_may_do_worse_by_chance_only() {
        let chance_of_fewer = |searches: u64, share: f64, least: u64| -> f64 {
            let ways =
                |k: u64| (0..k).map(|i| (searches - i) as f64 / (i + 1) as f64).product::<f64>();
            let chance =
                |k: u64| ways(k) * share.powi(k as i32) * (1.0 - share).powi((searches - k) as i32);
            (0..least).map(chance).sum()
        };
        for (searches, near, held) in [(2, 1, 1), (3, 2, 1), (5, 4, 3), (18, 15, 13), (30, 26, 23)]
        {
            for (share, least) in [(NEAR_MIN, near), (HELD_MIN, held)] {
                assert_eq!(least_of(searches, share), least, "{searches} of {share}");
                assert!(chance_of_fewer(searches, share, least) <= 0.0228);
                assert!(chance_of_fewer(searches, share, least + 1) > 0.0228);
            }
        }
        assert_eq!(least_of(1, NEAR_MIN), 1);
        assert_eq!((share_of(100, NEAR_MIN), share_of(600, HELD_MIN)), (95, 540));
    }
}
