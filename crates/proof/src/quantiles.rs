//! Percentiles, counts and bytes of eight service times.

use std::time::Duration;

use plimsoll_model::{ErrorClass, OpKind};
use plimsoll_oracle::Ledger;
use plimsoll_report::proof::Check;

use crate::error::Result;
use crate::measured::Measured;
use crate::{Load, Prover, grouped, is_near, open, times};

pub(crate) const CLAIM: &str = "\
    p50, p90, p99 and p99.9 of the latency are within 0.5 % of those of the operations \
    themselves; counts and bytes are exact";

/// What is compared, in percent.
const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// By how much a percentile may be off.
const OFF_MAX: f64 = 0.005;

/// What the store's service time is.
const SCRIPTS: [(&str, &str); 8] = [
    ("constant", "{time: {constant: 2ms}}"),
    ("exponential", "{time: {exponential: {mean: 2ms}}}"),
    ("lognormal", "{time: {lognormal: {median: 2ms, sigma: 0.8}}}"),
    ("pareto", "{time: {pareto: {scale: 1ms, shape: 1.8}}}"),
    (
        "bimodal",
        "{time: {bimodal: {first: {constant: 1ms}, second: {exponential: {mean: 50ms}}, share: 0.95}}}",
    ),
    ("uniform", "{time: {uniform: {from: 1ms, to: 9ms}}}"),
    ("by size", "{time: {exponential: {mean: 1ms}}, per_byte: 2us}"),
    ("drift", "{time: {exponential: {mean: 2ms}}, drift: {percent_per_minute: 50}}"),
];

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for (name, script) in SCRIPTS {
        let load = Load {
            operations: "{get: o}",
            pacing: open("1000/s", "poisson", 20_000),
            lasts: Duration::from_secs(if prover.full { 100 } else { 20 }),
            workers: 8,
            objects: 64,
            size: 1_000,
        };
        let simulated = prover.simulate(&load.file(prover.seed), &format!("service: {script}"))?;
        let exact = exact(&simulated.ledger, OpKind::Get, PERCENTS);
        let measured = simulated.percentiles(OpKind::Get, PERCENTS)?;
        checks.push(Check {
            what: format!("{name}: p50, p90, p99, p99.9"),
            truth: times(&exact),
            measured: times(&measured),
            holds: exact.iter().zip(&measured).all(|(a, b)| is_near(*a, *b, OFF_MAX)),
        });
        checks.push(counted(name, &simulated)?);
    }
    Ok(checks)
}

/// Returns percentiles of the latencies of a kind that the store knows of: the smallest value that
/// is not exceeded by that part of all (nearest rank).
pub(crate) fn exact<const N: usize>(ledger: &Ledger, kind: OpKind, percents: [f64; N]) -> [u64; N] {
    let mut latencies = ledger.latencies_ns(kind).to_vec();
    latencies.sort_unstable();
    percents.map(|percent| {
        let rank = (percent / 100.0 * latencies.len() as f64).ceil() as usize;
        latencies.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    })
}

/// Returns the check of how many GETs there were and what they moved.
pub(crate) fn counted(name: &str, measured: &Measured) -> Result<Check> {
    let (kind, ledger) = (OpKind::Get, &measured.ledger);
    let figures = &measured.kind(kind)?.figures;
    let counted =
        |count: u64, bytes: u64| format!("{} operations, {} bytes", grouped(count), grouped(bytes));
    let truth = (ledger.count(kind, ErrorClass::Ok), ledger.content_bytes(kind));
    let seen = (figures.stage.ops_ok, figures.stage.bytes);
    Ok(Check {
        what: format!("{name}: what was done"),
        truth: counted(truth.0, truth.1),
        measured: counted(seen.0, seen.1),
        holds: truth == seen && figures.latency.samples == truth.0,
    })
}
