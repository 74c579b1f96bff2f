//! A store that stands still for a second in every ten, seen by an open and by a closed loop.

use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_report::proof::Check;
use plimsoll_report::text::{self, Look};

use crate::error::Result;
use crate::measured::Measured;
use crate::{CLOSED, Load, Prover, is_near, open, times};

pub(crate) const CLAIM: &str = "\
    a store that serves in 2 ms and freezes for 1 s in every 10 s has, for users who do not \
    wait for each other (1000/s), p95, p99 and p99.9 of 502, 902 and 992 ms; a closed loop \
    does not see it, and is labelled";

const SCRIPT: &str =
    "service: {time: {constant: 2ms}}\nstalls: {every: 10s, lasting: 1s, offset: 5s}";
/// A tenth of the arrivals find the store frozen and wait for an even share of 1 s, so the part p
/// of all waits longer than 1 s · (1 − p / 0.1), and then 2 ms.
const PERCENTS: [f64; 3] = [95.0, 99.0, 99.9];
const TRUTH: [u64; 3] = [502 * MS, 902 * MS, 992 * MS];
const OFF_MAX: f64 = 0.05;
const MS: u64 = 1_000_000;

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let mut load = Load {
        operations: "{get: o}",
        pacing: open("1000/s", "constant", 4_096),
        lasts: Duration::from_secs(if prover.full { 60 } else { 20 }),
        workers: 16,
        objects: 64,
        size: 1_000,
    };
    let opened = prover.simulate(&load.file(prover.seed), SCRIPT)?;
    let measured = opened.percentiles(OpKind::Get, PERCENTS)?;
    let mut checks = vec![Check {
        what: "open loop: p95, p99, p99.9, each ± 5 %".to_owned(),
        truth: times(&TRUTH),
        measured: times(&measured),
        holds: TRUTH.iter().zip(&measured).all(|(a, b)| is_near(*a, *b, OFF_MAX)),
    }];
    load.pacing = CLOSED.to_owned();
    let closed = prover.simulate(&load.file(prover.seed), SCRIPT)?;
    let [p99] = closed.percentiles(OpKind::Get, [99.0])?;
    checks.push(Check {
        what: "closed loop, 16 workers: p99, with the freeze left out".to_owned(),
        truth: times(&[2 * MS]),
        measured: times(&[p99]),
        holds: is_near(2 * MS, p99, OFF_MAX),
    });
    checks.extend([labelled("open loop", &opened), labelled("closed loop", &closed)]);
    Ok(checks)
}

/// Returns the check of what a report calls its loop.
pub(crate) fn labelled(label: &str, measured: &Measured) -> Check {
    let look = Look { width: 80, color: false };
    let shown = text::render(&measured.report, &look).contains(label);
    Check {
        what: "what the report calls it".to_owned(),
        truth: label.to_owned(),
        measured: if shown { label } else { "not so" }.to_owned(),
        holds: shown,
    }
}
