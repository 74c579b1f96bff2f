//! The proofs: stores whose true answers are known are measured, and the figures held against the
//! truth.

mod away;
mod bare;
mod bytes;
mod error;
mod errors;
mod load_line;
mod loopback;
mod measured;
mod merge;
mod outages;
mod poisson;
mod quantiles;
mod replay;
mod rivals;
mod schedule;
mod seaweed;
mod side_by_side;
mod stall;
mod verdicts;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_analysis::KindAnalysis;
use plimsoll_conduct::{
    Observer, Recording, RunTime, Scripted, Stop, Store, embedded, in_one_line,
};
use plimsoll_engine::EngineConfig;
use plimsoll_http::Transport;
use plimsoll_model::{OpKind, Seed, TargetKind};
use plimsoll_oracle::{Oracle, SCRIPT_SCHEMA, Script};
use plimsoll_report::proof::{Check, Proof, Verdict};
use plimsoll_results::Asked;
use plimsoll_stats::Percentile;
use plimsoll_workload::plan::{WORKLOAD_SCHEMA, WorkloadFile};

use error::{Context, ProofError, Result};
use measured::{Measured, Measurement};

pub use loopback::PROOFS as LOOPBACK_PROOFS;
pub use rivals::{PROOF as RIVALS, Rival};
pub use side_by_side::side_by_side;

/// One proof by name.
pub struct NamedProof {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in at most 42 columns.
    pub about: &'static str,
    /// What it claims.
    pub claim: &'static str,
    make: fn(&Prover) -> Result<Vec<Check>>,
}

/// All proofs in virtual time.
///
/// Together they may take 45 s of CPU (user and system, release build) unless [`Prover::full`]; a
/// new one should take less than 3 s. Optimised, `full` took 20 s on 2026-11-28, half of it in the
/// load lines.
pub const PROOFS: [NamedProof; 11] = [
    NamedProof {
        name: "quantiles",
        about: "p50 to p99.9 of 8 service times",
        claim: quantiles::CLAIM,
        make: quantiles::checks,
    },
    NamedProof {
        name: "stall",
        about: "open-loop p95, p99 and p99.9 within 5 %",
        claim: stall::CLAIM,
        make: stall::checks,
    },
    NamedProof {
        name: "errors",
        about: "each failure counted once, in its class",
        claim: errors::CLAIM,
        make: errors::checks,
    },
    NamedProof {
        name: "bytes",
        about: "1,000 wrong contents found and named",
        claim: bytes::CLAIM,
        make: bytes::checks,
    },
    NamedProof {
        name: "merge",
        about: "64 shards merge to the bytes of the whole",
        claim: merge::CLAIM,
        make: merge::checks,
    },
    NamedProof {
        name: "poisson",
        about: "times between arrivals are exponential",
        claim: poisson::CLAIM,
        make: poisson::checks,
    },
    NamedProof {
        name: "outages",
        about: "outages exact, lost writes named",
        claim: outages::CLAIM,
        make: outages::checks,
    },
    NamedProof {
        name: "replay",
        about: "instants, order and laws of a trace kept",
        claim: replay::CLAIM,
        make: replay::checks,
    },
    NamedProof {
        name: "schedule",
        about: "a schedule that is not kept is reported",
        claim: schedule::CLAIM,
        make: schedule::checks,
    },
    NamedProof {
        name: "load-line",
        about: "load lines of 6 queues within 5 %",
        claim: load_line::CLAIM,
        make: load_line::checks,
    },
    NamedProof {
        name: "verdict",
        about: "13 bottlenecks named, no store blamed",
        claim: verdicts::CLAIM,
        make: verdicts::checks,
    },
];

impl NamedProof {
    /// Makes the proof; what keeps it from being made is a failure, unless it is to be skipped.
    pub fn prove(&self, prover: &Prover) -> Proof {
        match (self.make)(prover) {
            Ok(checks) => Proof::of(self.name, self.claim, checks),
            Err(ProofError::Skipped { reason, checks }) => {
                let skipped = Proof::without(self.name, self.claim, Verdict::Skip, reason);
                Proof { checks, ..skipped }
            }
            Err(error) => Proof::without(self.name, self.claim, Verdict::Fail, in_one_line(&error)),
        }
    }
}

/// What proofs are made with.
#[derive(Clone)]
pub struct Prover {
    /// Fixes every choice.
    pub seed: u64,
    /// Measures more, which takes longer.
    pub full: bool,
    /// Searches for a load line of each store, at least 1; by default as many as fit the size.
    pub seeds: Option<u64>,
    /// What carries connections to servers over real sockets.
    pub transport: Transport,
    /// The other program that measures, for the proof that wants one.
    pub rival: Option<Rival>,
    /// Every workload with its script as they were measured, in YAML.
    pub explained: RefCell<Vec<(String, String)>>,
    /// What ends it.
    pub stop: Stop,
    /// Who is told of what is measured.
    pub observer: Arc<dyn Observer>,
    /// The command line for the records.
    pub command_line: Vec<String>,
}

/// After so long an operation is given up in virtual time.
const OP_TIMEOUT: Duration = Duration::from_secs(60);

/// What every proof asks of a record.
fn asked() -> Asked {
    Asked { full_span: true, details: true, ..Asked::default() }
}

/// A workload of a proof in short, the parts in the words of a workload file.
struct Load<'a> {
    /// What is done to set `o`.
    operations: &'a str,
    pacing: String,
    lasts: Duration,
    workers: u32,
    objects: u64,
    size: u64,
}

/// The pacing of workers who issue the next operation when the one before has ended.
const CLOSED: &str = "closed";

impl Load<'_> {
    fn file(&self, seed: u64) -> WorkloadFile {
        self.file_on("", seed)
    }

    /// The same on these targets.
    fn file_on(&self, targets: &str, seed: u64) -> WorkloadFile {
        let Self { operations, pacing, lasts, workers, objects, size } = self;
        let text = format!(
            "schema: {WORKLOAD_SCHEMA}\nname: proof\nseed: {seed}\n{targets}\
             sets: {{o: {{count: {objects}, size: {size}}}}}\nstages:\n\
             - name: prepare\n  prepares: true\n  jobs:\n  - workers: {workers}\n    \
             work: {{fill: o}}\n\
             - name: measure\n  duration: {}ms\n  jobs:\n  - workers: {workers}\n    \
             pacing: {pacing}\n    work: {{objects: [{operations}]}}\n",
            lasts.as_millis(),
        );
        WorkloadFile::from_yaml("proof", &text).expect("the parts of a load are sound")
    }
}

/// The pacing by a schedule that nothing keeps from being sent.
fn open(rate: &str, arrivals: &str, max_in_flight: u32) -> String {
    format!("{{open: {{rate: {rate}, arrivals: {arrivals}, max_in_flight: {max_in_flight}}}}}")
}

/// Returns the seed of a workload, which every one of a proof has.
fn seed_of(file: &WorkloadFile) -> Seed {
    Seed(file.seed.unwrap_or_default())
}

impl Prover {
    /// Returns the script of a measurement, and notes what is measured.
    fn script(&self, file: &WorkloadFile, script: &str) -> Result<Script> {
        let script = format!("schema: {SCRIPT_SCHEMA}\n{script}\n");
        self.explained.borrow_mut().push((file.to_yaml(), script.clone()));
        Script::from_yaml(&script).context("the script of the proof")
    }

    /// Starts a server that behaves as a script says.
    fn serve(&self, file: &WorkloadFile, script: &str) -> Result<Oracle> {
        let script = self.script(file, script)?;
        embedded::start(Some(script), seed_of(file).0).context("cannot start the embedded store")
    }

    /// Runs a workload against a script in virtual time and analyses the whole of it.
    fn simulate(&self, file: &WorkloadFile, script: &str) -> Result<Measured> {
        self.simulate_into(file, script, None)
    }

    /// The same, with a place where the record is kept.
    fn simulate_into(
        &self,
        file: &WorkloadFile,
        script: &str,
        run_dir: Option<&Path>,
    ) -> Result<Measured> {
        let script = self.script(file, script)?;
        let time = RunTime::simulated();
        let scripted = Scripted::new(&script, seed_of(file), &time, true);
        let engine = EngineConfig { threads: 1, op_timeout: OP_TIMEOUT, retries: 0 };
        let target = Store::without_admin(scripted.driver.clone(), TargetKind::Oracle).into();
        let measurement = Measurement { file, target, time, engine, run_dir };
        let begin = |recording: &Recording| {
            scripted.begin(recording.now());
            Ok(())
        };
        measurement.run(self, Box::new(begin), || Ok(scripted.driver.ledger()))
    }
}

impl Measured {
    /// Returns the figures of a kind.
    fn kind(&self, kind: OpKind) -> Result<&KindAnalysis> {
        let mut kinds = self.row().analysis.kinds.iter();
        kinds.find(|each| each.kind == kind).context(format!("no {}", kind.name()))
    }

    /// Returns percentiles of the latency of a kind, in nanoseconds.
    fn percentiles<const N: usize>(&self, kind: OpKind, percents: [f64; N]) -> Result<[u64; N]> {
        let latency = &self.kind(kind)?.figures.latency;
        let latency = latency.histogram.as_ref().context("no distribution")?;
        let mut values = [0; N];
        for (value, percent) in values.iter_mut().zip(percents) {
            let percent = Percentile::new(percent).context("no percentile")?;
            *value = latency.percentile(percent).context("no samples")?;
        }
        Ok(values)
    }
}

/// Returns a check of two numbers that must be the same.
fn same(what: impl Into<String>, truth: u64, measured: u64) -> Check {
    Check {
        what: what.into(),
        truth: grouped(truth),
        measured: grouped(measured),
        holds: truth == measured,
    }
}

/// Tells whether `measured` is within `part` of the truth.
fn is_near(truth: u64, measured: u64, part: f64) -> bool {
    (measured as f64 - truth as f64).abs() <= part * truth as f64
}

/// Returns several times in milliseconds with four figures.
fn times(ns: &[u64]) -> String {
    let one = |ns: &u64| plimsoll_report::format::duration(Duration::from_nanos(*ns));
    ns.iter().map(one).collect::<Vec<_>>().join("  ")
}

fn grouped(number: u64) -> String {
    plimsoll_report::format::count(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_proof_fits_a_line() {
        for proof in PROOFS.iter().chain(&LOOPBACK_PROOFS).chain([&RIVALS]) {
            let NamedProof { name, about, .. } = proof;
            assert!(name.len() <= 9 && about.chars().count() <= 42, "{name}: {about}");
        }
    }
}
