//! Every class of failure, counted.

use std::time::Duration;

use plimsoll_model::{ErrorClass, OpKind};
use plimsoll_report::proof::Check;
use plimsoll_report::text::{self, Look};

use crate::error::Result;
use crate::measured::Measured;
use crate::{Load, Prover, open, same};

pub(crate) const CLAIM: &str = "\
    each failure is counted once and in its class; what moved rightly and wholly is the \
    goodput, and nothing else; a store that only fails has none, and the exit code is 1";

pub(crate) const SCRIPT: &str = "service: {time: {exponential: {mean: 2ms}}}
faults:
  all:
    slow_down: 0.02
    status: {500: 0.01, 502: 0.005, 403: 0.004, 404: 0.006, 412: 0.003, 400: 0.002}
    reset: 0.01
    half_body: 0.01
    wrong_length: 0.005
    error_in_success: 0.005
    silence: 0.001
lies: {zeroed: 0.002, flipped: 0.002}";

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let load = Load {
        operations: "{get: o, weight: 6}, {stat: o, weight: 3}, {put: o}",
        pacing: open("10000/s", "poisson", 60_000),
        lasts: Duration::from_secs(if prover.full { 100 } else { 10 }),
        workers: 16,
        objects: 1_000,
        size: 512,
    };
    let mut checks = counted(&prover.simulate(&load.file(prover.seed), SCRIPT)?);

    let short = Load { lasts: Duration::from_secs(1), ..load };
    let failing = prover.simulate(
        &short.file(prover.seed),
        "service: {time: {constant: 1ms}}\nfaults: {all: {status: {500: 1.0}}}",
    )?;
    let total = &failing.row().analysis.total;
    checks.push(same("goodput of a store that only fails, bytes", 0, total.stage.bytes));
    checks.push(same("goodput of a store that only fails, operations", 0, total.stage.ops_ok));
    let exit = u64::from(!plimsoll_results::flaws(&failing.report, 1.0).is_empty());
    checks.push(same("its exit code", 1, exit));
    Ok(checks)
}

/// Returns the checks of every class, of the goodput and of what the report says of load that was
/// shed.
pub(crate) fn counted(measured: &Measured) -> Vec<Check> {
    let (total, ledger) = (&measured.row().analysis.total.stage, &measured.ledger);
    let mut checks = Vec::new();
    for class in ErrorClass::ALL {
        let truth = ledger.class_count(class);
        let measured = if class.is_ok() { total.ops_ok } else { total.failed.of(class) };
        if truth + measured > 0 {
            checks.push(same(format!("operations that ended `{}`", class.name()), truth, measured));
        }
    }
    let goodput = ledger.content_bytes(OpKind::Get) + ledger.content_bytes(OpKind::Put);
    checks.push(same("bytes of right, whole contents", goodput, total.bytes));
    let look = Look { width: 80, color: false };
    let shown = text::render(&measured.report, &look);
    let own_line =
        shown.lines().any(|line| line.contains("throttled") && line.contains("SlowDown"));
    checks.push(Check {
        what: "load that the store shed (SlowDown) in the report".to_owned(),
        truth: "a line of its own".to_owned(),
        measured: if own_line { "a line of its own" } else { "none" }.to_owned(),
        holds: own_line,
    });
    checks
}
