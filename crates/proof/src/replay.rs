//! A replay keeps the instants of a trace and the order of each object, and a workload that is
//! fitted to a trace has the laws that the trace was drawn from.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_conduct::{RunTime, Scripted};
use plimsoll_dialects::fit::Fitted;
use plimsoll_model::{Moment, OpKind, OpRecord};
use plimsoll_report::proof::Check;
use plimsoll_workload::Random;
use plimsoll_workload::plan::{SetIndex, WORKLOAD_SCHEMA, WorkloadFile};
use plimsoll_workload::trace::{NO_OBJECT, Seen, Trace, TraceBuilder, TraceOptions};

use crate::error::{Context, Result};
use crate::{Prover, bare, grouped, same, seed_of, times};

pub(crate) const CLAIM: &str = "\
    a replay of an hour keeps the order of every object, and begins 99 of 100 operations within \
    1 ms of their instants, the last as punctually as the first; a workload that is fitted to a \
    trace has sizes within 0.02 of its law (Kolmogorov and Smirnov), its exponent of Zipf within \
    0.03, and exactly its share of reads";

/// Operations that are replayed.
const OPS: u64 = 100_000;
const OPS_FULL: u64 = 1_000_000;
const HOUR_NS: u64 = 3_600_000_000_000;
const ERROR_NS_MAX: u64 = 1_000_000;
/// The first and the last so many operations tell whether the replay drifts.
const ENDS: usize = 1_000;
const DRIFT_NS_MAX: u64 = 100_000;
const WORKERS: u32 = 32;

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let mut checks = replayed(prover)?;
    for exponent in [0.6, 0.99, 1.3] {
        checks.extend(fitted(prover, exponent)?);
    }
    Ok(checks)
}

/// Replays an hour against a store that takes its time, so that operations on one object would
/// overtake each other.
fn replayed(prover: &Prover) -> Result<Vec<Check>> {
    let count = if prover.full { OPS_FULL } else { OPS };
    let trace = Arc::new(an_hour(prover.seed, count)?);
    let text = format!(
        "schema: {WORKLOAD_SCHEMA}\nname: proof\nseed: {}\n\
         sets: {{t: {{trace: {{file: proof}}}}}}\nstages:\n\
         - {{prepares: true, jobs: [{{work: {{fill: t}}}}]}}\n\
         - {{jobs: [{{workers: {WORKERS}, work: {{replay: {{of: t, max_in_flight: 4096}}}}}}]}}\n",
        prover.seed
    );
    let file = WorkloadFile::from_yaml("proof", &text).context("the workload of the proof")?;
    let script = prover.script(&file, "service: {time: {exponential: {mean: 600us}}}")?;
    let mut plan = file.check()?;
    plan.learn_trace(SetIndex(0), &trace)?;
    let time = RunTime::simulated();
    let scripted = Scripted::new(&script, seed_of(&file), &time, false);
    scripted.begin(time.clock.now());
    let (outcome, mut ops) = bare::run_on(plan, seed_of(&file), &scripted.driver, &time)?;
    let kept = outcome.schedule.context("a replay has a schedule")?;
    ops.sort_by_key(|op| op.intended);
    let wanted = trace.ops().iter().map(|op| op.at_ns);
    let asked = ops.iter().map(|op| op.intended.as_ns());
    let right = wanted.zip(asked).filter(|(wanted, asked)| wanted == asked).count() as u64;
    let late = |op: &OpRecord| op.start.since(op.intended).as_nanos() as u64;
    let mut errors: Vec<u64> = ops.iter().map(late).collect();
    let mean = |errors: &[u64]| errors.iter().sum::<u64>() / errors.len().max(1) as u64;
    let first = mean(&errors[..ENDS.min(errors.len())]);
    let last = mean(&errors[errors.len().saturating_sub(ENDS)..]);
    errors.sort_unstable();
    let p99 = errors.get(errors.len() / 100 * 99).copied().unwrap_or(u64::MAX);
    Ok(vec![
        same("operations replayed", count, ops.len() as u64),
        same("of these, asked at the instant of the trace", count, right),
        Check {
            what: "operations that had to wait for another on their object".to_owned(),
            truth: "more than 0".to_owned(),
            measured: grouped(kept.held_count),
            holds: kept.held_count > 0,
        },
        same("operations that overtook another on their object", 0, overtaken(&ops)),
        Check {
            what: "begun after their instants: p99".to_owned(),
            truth: format!("at most {}", times(&[ERROR_NS_MAX])),
            measured: times(&[p99]),
            holds: p99 <= ERROR_NS_MAX,
        },
        Check {
            what: format!("the same, mean of the first and of the last {}", grouped(ENDS as u64)),
            truth: format!("within {} of each other", times(&[DRIFT_NS_MAX])),
            measured: times(&[first, last]),
            holds: first.abs_diff(last) <= DRIFT_NS_MAX,
        },
    ])
}

/// Makes a trace of an hour: operations at random instants on a thousand objects, of which a fifth
/// has most, and now and then two at the same instant on the same object.
fn an_hour(seed: u64, count: u64) -> Result<Trace> {
    const OBJECTS: u64 = 1_000;
    let mut random = Random::new(seed, 18, 0);
    let mut at: Vec<u64> = (0..count).map(|_| random.below(HOUR_NS)).collect();
    at.sort_unstable();
    at[0] = 0;
    let mut builder = TraceBuilder::default();
    let mut before = (0, 0);
    for (number, at) in (0u64..).zip(at) {
        let object = match random.below(5) {
            0 => random.below(OBJECTS),
            _ => random.below(OBJECTS / 5) * 5,
        };
        let (at, object) = if number % 200 == 199 { before } else { (at, object) };
        before = (at, object);
        // The first of each object is a write, so that nothing has to be there before.
        let is_write = number % 200 == 199 || random.below(10) < 3;
        let kind = if is_write { OpKind::Put } else { OpKind::Stat };
        let name = object.to_le_bytes();
        add(&mut builder, at, kind, &name, is_write.then_some(100))?;
    }
    finished(builder)
}

fn add(
    builder: &mut TraceBuilder,
    at: u64,
    kind: OpKind,
    name: &[u8],
    bytes: Option<u64>,
) -> Result<()> {
    let seen = Seen { at_ns: Some(at), kind, name, bytes, object_bytes: bytes, range: None };
    builder.add(&seen).ok().context("the trace of the proof is not taken")
}

fn finished(builder: TraceBuilder) -> Result<Trace> {
    builder.finish(TraceOptions::default()).ok().context("the trace of the proof is refused")
}

/// Counts the operations that began before one was over that they have to wait for: a write waits
/// for all that the trace has before it on the same object, a read for the writes.
fn overtaken(ops: &[OpRecord]) -> u64 {
    let mut ended: HashMap<u64, (Moment, Moment)> = HashMap::new();
    let mut overtaken = 0;
    for op in ops {
        let Some(object) = op.object else { continue };
        let (write, read) = ended.entry(object.as_u64()).or_insert((Moment::EPOCH, Moment::EPOCH));
        let is_read = matches!(op.kind, OpKind::Get | OpKind::Stat);
        let waits_for = if is_read { *write } else { (*write).max(*read) };
        overtaken += u64::from(op.start < waits_for);
        let end = if is_read { read } else { write };
        *end = (*end).max(op.end);
    }
    overtaken
}

/// Draws a trace from laws, and holds what is fitted against them: of ten operations seven read,
/// one looks and two write what is new.
fn fitted(prover: &Prover, exponent: f64) -> Result<Vec<Check>> {
    const OBJECTS: u32 = 1_000;
    const FITTED_OPS: u32 = 300_000;
    let mut random = Random::new(prover.seed, 18, (exponent * 100.0) as u64);
    let mut sum = 0.0;
    let chances = (1..=OBJECTS).map(|rank| {
        sum += f64::from(rank).powf(-exponent);
        sum
    });
    let chances: Vec<f64> = chances.collect();
    let size = |random: &mut Random| {
        // From the normal distribution (G. E. P. Box, M. E. Muller, 1958).
        let (one, other) = (1.0 - random.unit(), random.unit());
        let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
        (65_536.0 * (1.2 * normal).exp()).max(1.0) as u64
    };
    let sizes: Vec<u64> = (0..OBJECTS).map(|_| size(&mut random)).collect();
    let mut builder = TraceBuilder::default();
    let mut at = 0;
    for number in 0..FITTED_OPS {
        at += (-(1.0 - random.unit()).ln() * 1e6) as u64;
        let drawn = random.unit() * sum;
        let rank = chances.partition_point(|each| *each <= drawn) as u32;
        let (kind, object, bytes) = match number % 10 {
            0..7 => (OpKind::Get, rank, sizes[rank as usize]),
            7 => (OpKind::Stat, rank, sizes[rank as usize]),
            _ => (OpKind::Put, OBJECTS + number, size(&mut random)),
        };
        add(&mut builder, at, kind, &object.to_le_bytes(), Some(bytes))?;
    }
    let trace = finished(builder)?;
    let fitted = Fitted::of(&trace, prover.seed).context("the trace cannot be fitted")?;
    let found = fitted.popularity.context("no popularity is found")?.exponent;
    let name = |what: &str| format!("fit, Zipf {exponent}: {what}");
    let reads = trace.ops().iter().filter(|op| op.object != NO_OBJECT && op.kind == OpKind::Get);
    let truth = reads.count() as f64 / trace.ops().len() as f64 * 100.0;
    let share = fitted.mix.reads_percent();
    Ok(vec![
        Check {
            what: name("distance of the sizes"),
            truth: "at most 0.02".to_owned(),
            measured: format!("{:.4}", fitted.sizes.distance),
            holds: fitted.sizes.distance <= 0.02,
        },
        Check {
            what: name("exponent"),
            truth: format!("{exponent:.3} ± 0.03"),
            measured: format!("{found:.3}"),
            holds: (found - exponent).abs() <= 0.03,
        },
        Check {
            what: name("share of reads"),
            truth: format!("{truth} %"),
            measured: format!("{share} %"),
            holds: truth == share,
        },
    ])
}
