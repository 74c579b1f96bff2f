//! SeaweedFS by its own protocol: file ids from masters, content to and from volume servers. A
//! stand-in does as a script says, and what is measured is held against its ledger.

use std::cell::RefCell;
use std::time::Duration;

use plimsoll_conduct::{Recording, RunTime, Stop, Store, embedded};
use plimsoll_driver_seaweed::{AddressError, SeaweedConfig, ServerAddress};
use plimsoll_engine::EngineConfig;
use plimsoll_model::OpKind;
use plimsoll_report::proof::Check;
use plimsoll_seaweed_stand_in::{SeaweedLedger, SeaweedStandIn, Site, StandInConfig};
use plimsoll_workload::plan::WorkloadFile;

use crate::error::{Context, Result};
use crate::loopback::{Noise, judged, near};
use crate::measured::{Measured, Measurement};
use crate::{Load, Prover, errors, open, quantiles, same, seed_of};

pub(crate) const CLAIM: &str = "\
    over real sockets, by SeaweedFS's own protocol, each failure and lie is counted once and in \
    its class, whether a master or a volume server did it; a write takes as long as its file id \
    and its upload together";

/// Where the files are.
const COLLECTION: &str = "proof";
/// Generous: only what is never answered takes as long.
const OP_TIMEOUT: Duration = Duration::from_secs(5);
/// The driver may ask for some ids more than files are written, to see whether volumes are there.
const GRACE: u64 = 16;
/// The stand-in has the place of the address in it.
const TARGETS: &str = "targets: {stand-in: {seaweedfs: {master: '127.0.0.1:9333'}}}\n";

/// What fails and lies. Volumes that are being made are left out: the driver asks for them again
/// between operations, which is no operation of anybody.
const FAILING: &str = "service: {time: {exponential: {mean: 2ms}}}
faults:
  all:
    slow_down: 0.02
    status: {500: 0.01, 503: 0.005, 403: 0.004, 404: 0.006, 409: 0.003, 400: 0.002}
    reset: 0.01
    half_body: 0.01
    error_in_success: 0.005
    silence: 0.001
lies: {zeroed: 0.002, flipped: 0.002, wrong_tag: 0.01, lost_copy: 0.01, lost_write: 0.01}
seaweed:
  assign: {time: {exponential: {mean: 500us}}, full: 0.02, failed: 0.02, silent: 0.001}";

/// How long a master takes for a file id where times are compared: long beside what two exchanges
/// take by themselves.
const ASSIGN_NS: u64 = 20_000_000;
const TIMED: &str = "service: {time: {exponential: {mean: 10ms}}}
seaweed: {assign: {time: {constant: 20ms}}}";
const PERCENTS: [f64; 3] = [50.0, 90.0, 99.0];

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let mut noise = Noise::of_machine(prover)?;
    let load = Load {
        operations: "{get: o, weight: 5}, {stat: o, weight: 2}, {put: o, weight: 3}",
        pacing: open("2000/s", "poisson", 256),
        lasts: Duration::from_secs(if prover.full { 5 } else { 2 }),
        workers: 16,
        objects: 200,
        size: 512,
    };
    let (failing, _) = measure(prover, &load.file_on(TARGETS, prover.seed), FAILING)?;
    let mut counts = errors::counted(&failing);
    let load = Load {
        operations: "{get: o}, {put: o}",
        pacing: open("400/s", "poisson", 256),
        lasts: Duration::from_secs(if prover.full { 4 } else { 2 }),
        workers: 8,
        objects: 64,
        size: 1_000,
    };
    let (timed, truth) = measure(prover, &load.file_on(TARGETS, prover.seed), TIMED)?;
    noise.note(&timed);
    noise.note_machine(prover)?;
    let mut timings = Vec::new();
    for (kind, before) in [(OpKind::Get, 0), (OpKind::Put, ASSIGN_NS)] {
        let exact = quantiles::exact(&timed.ledger, kind, PERCENTS).map(|ns| before + ns);
        let measured = timed.percentiles(kind, PERCENTS)?;
        for (at, percent) in PERCENTS.iter().enumerate() {
            let what = format!("{}: p{percent}", kind.name());
            timings.push(near(what, &exact[at..=at], &measured[at..=at]));
        }
    }
    counts.push(quantiles::counted("GET", &timed)?);
    let written = timed.kind(OpKind::Put)?.figures.stage.ops_ok;
    counts.push(same("files that were written", truth.copies_stored_count(), 2 * written));
    judged(counts, timings, &noise)
}

/// Runs a workload against a cluster that the script rules, and analyses the whole of it. The
/// second one is all that the cluster did meanwhile.
fn measure(
    prover: &Prover,
    file: &WorkloadFile,
    script: &str,
) -> Result<(Measured, SeaweedLedger)> {
    let grace = file.check()?.owed().members_filled + GRACE;
    let script = prover.script(file, &format!("grace_count: {grace}\n{script}"))?;
    let oracle = SeaweedStandIn::start(StandInConfig {
        masters: 3,
        volume_servers: vec![Site::default(); 3],
        script: Some(script),
        seed: seed_of(file).0,
        ..StandInConfig::default()
    });
    let oracle = oracle.context("cannot start the stand-in for SeaweedFS")?;
    let masters = oracle.masters();
    let masters: std::result::Result<Vec<ServerAddress>, AddressError> =
        masters.iter().map(|master| master.parse()).collect();
    let time = RunTime::machine();
    let config = SeaweedConfig {
        replication: "001".to_owned(),
        connect_timeout: OP_TIMEOUT,
        transport: prover.transport,
        creates_collection: true,
        ..SeaweedConfig::new(masters.context("the stand-in's addresses")?, COLLECTION)
    };
    let engine =
        EngineConfig { threads: embedded::cores_free(true), op_timeout: OP_TIMEOUT, retries: 0 };
    let target = Store::seaweed(config, &time, &Stop::default())?.into();
    let measurement = Measurement { file, target, time, engine, run_dir: None };
    let prepared = RefCell::new(SeaweedLedger::default());
    let begin = |_: &Recording| {
        oracle.keep_latencies();
        prepared.replace(oracle.ledger());
        Ok(())
    };
    let done = || oracle.ledger().since(&prepared.borrow());
    // What the driver removes after an upload that broke off is no operation of the workload.
    let seen = || Ok(done().as_seen().without(OpKind::Delete));
    let measured = measurement.run(prover, Box::new(begin), seen)?;
    let truth = done();
    Ok((measured, truth))
}
