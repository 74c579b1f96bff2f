//! The proofs over sockets: the scripted store is an S3 server on this machine, and nothing between
//! it and the report is left out: S3 driver, machine's clock, recorder, op log, analysis.
//!
//! What was counted is judged always. Times are held against wider bands than in virtual time, and
//! only on a machine that wakes what waits in time.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Mutex, MutexGuard, mpsc};
use std::time::Duration;

use plimsoll_conduct::{Recording, RunTime, Store, embedded};
use plimsoll_driver_s3::S3Config;
use plimsoll_engine::EngineConfig;
use plimsoll_http::HostSelect;
use plimsoll_model::OpKind;
use plimsoll_oracle::{Ledger, Oracle};
use plimsoll_report::format;
use plimsoll_report::proof::Check;
use plimsoll_workload::plan::WorkloadFile;

use crate::bytes::Scale;
use crate::error::{Context, ProofError, Result};
use crate::measured::{Measured, Measurement};
use crate::{
    CLOSED, Load, NamedProof, Prover, away, bare, bytes, errors, load_line, open, quantiles,
    seaweed, stall, times, verdicts,
};

/// The proofs over sockets.
pub const PROOFS: [NamedProof; 8] = [
    NamedProof {
        name: "quantiles",
        about: "p50, p90 and p99 within 10 % and 1 ms",
        claim: QUANTILES,
        make: quantiles_checks,
    },
    NamedProof {
        name: "stall",
        about: "open-loop p90, p95 and p99 within 10 %",
        claim: STALL,
        make: stall_checks,
    },
    NamedProof {
        name: "errors",
        about: "each failure counted once, in its class",
        claim: ERRORS,
        make: errors_checks,
    },
    NamedProof {
        name: "bytes",
        about: "160 wrong contents found and named",
        claim: BYTES,
        make: bytes_checks,
    },
    NamedProof {
        name: "outages",
        about: "outages within 50 ms, lost writes named",
        claim: away::CLAIM,
        make: away::checks,
    },
    NamedProof {
        name: "seaweed",
        about: "SeaweedFS: failures counted, writes timed",
        claim: seaweed::CLAIM,
        make: seaweed::checks,
    },
    NamedProof {
        name: "verdict",
        about: "6 bottlenecks named, no store blamed",
        claim: verdicts::LOOPBACK,
        make: verdicts::loopback_checks,
    },
    NamedProof {
        name: "load-line",
        about: "load line of a queue within 10 %",
        claim: load_line::LOOPBACK,
        make: load_line::loopback_checks,
    },
];

const QUANTILES: &str = "\
    over real sockets p50, p90 and p99 of the latency are within 10 % and 1 ms of what the \
    store itself took; counts and bytes are exact";
const STALL: &str = "\
    over real sockets a store that serves in 2 ms and freezes for 1 s in every 5 s has, for \
    users who do not wait for each other (200/s), p90, p95 and p99 of 502, 752 and 952 ms; \
    a closed loop does not see it, and is labelled";
const ERRORS: &str = "\
    over real sockets each failure is counted once and in its class, and what moved rightly and \
    wholly is the goodput";
const BYTES: &str = "\
    over real sockets 160 wrong contents of 8 kinds, planted in reads of whole objects and \
    ranges, are all found, nothing right is called wrong, and at least 99 % are given their \
    right name";

/// Where the objects are.
pub(crate) const BUCKET: &str = "proof";
/// Generous: only what is never answered takes as long.
const OP_TIMEOUT: Duration = Duration::from_secs(5);
/// By how much a time may be off: by a part of it, and by what sockets and two programs add.
const OFF_PART: f64 = 0.1;
const OFF_NS: f64 = 1e6;

/// What the store's service time is; at 400 a second.
const SERVICES: [(&str, &str); 3] = [
    ("exponential", "{exponential: {mean: 5ms}}"),
    ("lognormal", "{lognormal: {median: 5ms, sigma: 0.8}}"),
    (
        "bimodal",
        "{bimodal: {first: {constant: 2ms}, second: {exponential: {mean: 50ms}}, share: 0.95}}",
    ),
];

/// Frozen for whole seconds of whole periods, wherever in a period the measurement begins; the
/// objects are there before the first of them.
pub(crate) const STALLED: &str =
    "service: {time: {constant: 2ms}}\nstalls: {every: 5s, lasting: 1s, offset: 2s}";
/// How long each period is.
pub(crate) const STALL_PERIOD_S: u64 = 5;
/// A fifth of the arrivals find the store frozen and wait for an even share of 1 s, so the part p
/// of all waits longer than 1 s · (1 − p / 0.2), and then 2 ms.
const STALL_PERCENTS: [f64; 3] = [90.0, 95.0, 99.0];
const STALL_TRUTH: [u64; 3] = [502 * MS, 752 * MS, 952 * MS];
/// A closed loop of 16 issues 16 operations a freeze, which are far less than a hundredth.
const CLOSED_P99_MAX: u64 = 100 * MS;
const MS: u64 = 1_000_000;

const READ: Scale = Scale { planted_each: 20, reads: 8_000, ops_per_sec: 2_000, objects: 100 };
const READ_FULL: Scale = Scale { reads: 20_000, ..READ };

fn quantiles_checks(prover: &Prover) -> Result<Vec<Check>> {
    const PERCENTS: [f64; 3] = [50.0, 90.0, 99.0];
    let mut noise = Noise::of_machine(prover)?;
    let (mut counts, mut timings) = (Vec::new(), Vec::new());
    for (name, time) in SERVICES {
        let load = Load {
            operations: "{get: o}",
            pacing: open("400/s", "poisson", 256),
            lasts: Duration::from_secs(if prover.full { 3 } else { 1 }),
            workers: 8,
            objects: 64,
            size: 1_000,
        };
        let script = format!("service: {{time: {time}}}");
        let measured = measure(prover, &load.file(prover.seed), &script)?;
        noise.note(&measured);
        let exact = quantiles::exact(&measured.ledger, OpKind::Get, PERCENTS);
        let measured_times = measured.percentiles(OpKind::Get, PERCENTS)?;
        timings.extend(near_each(name, PERCENTS, &exact, &measured_times));
        counts.push(quantiles::counted(name, &measured)?);
    }
    noise.note_machine(prover)?;
    judged(counts, timings, &noise)
}

fn stall_checks(prover: &Prover) -> Result<Vec<Check>> {
    let mut noise = Noise::of_machine(prover)?;
    let (opened, closed) = stalled_loops(prover, if prover.full { 2 } else { 1 }, 1)?;
    noise.note(&opened);
    noise.note_machine(prover)?;
    let open_times = opened.percentiles(OpKind::Get, STALL_PERCENTS)?;
    let [p99] = closed.percentiles(OpKind::Get, [99.0])?;
    let mut timings = near_each("open loop", STALL_PERCENTS, &STALL_TRUTH, &open_times);
    timings.push(Check {
        what: "closed loop, 16 workers: p99, with the freeze left out".to_owned(),
        truth: format!("below {}", times(&[CLOSED_P99_MAX])),
        measured: times(&[p99]),
        holds: p99 < CLOSED_P99_MAX,
    });
    let counts = vec![
        quantiles::counted("open loop", &opened)?,
        quantiles::counted("closed loop", &closed)?,
        stall::labelled("open loop", &opened),
        stall::labelled("closed loop", &closed),
    ];
    judged(counts, timings, &noise)
}

/// Measures the store that freezes, for so many of its periods, by an open loop and by a closed one
/// of 16 workers.
pub(crate) fn stalled_loops(
    prover: &Prover,
    open_periods: u64,
    closed_periods: u64,
) -> Result<(Measured, Measured)> {
    let mut load = Load {
        operations: "{get: o}",
        // A freeze holds 200 of them up; each takes three open files.
        pacing: open("200/s", "constant", 300),
        lasts: Duration::from_secs(open_periods * STALL_PERIOD_S),
        workers: 16,
        objects: 64,
        size: 1_024,
    };
    let opened = measure(prover, &load.file(prover.seed), STALLED)?;
    load.pacing = CLOSED.to_owned();
    load.lasts = Duration::from_secs(closed_periods * STALL_PERIOD_S);
    let closed = measure(prover, &load.file(prover.seed), STALLED)?;
    Ok((opened, closed))
}

fn errors_checks(prover: &Prover) -> Result<Vec<Check>> {
    let load = Load {
        operations: "{get: o, weight: 6}, {stat: o, weight: 3}, {put: o}",
        pacing: open("4000/s", "poisson", 256),
        lasts: Duration::from_secs(if prover.full { 5 } else { 2 }),
        workers: 16,
        objects: 200,
        size: 512,
    };
    Ok(errors::counted(&measure(prover, &load.file(prover.seed), errors::SCRIPT)?))
}

fn bytes_checks(prover: &Prover) -> Result<Vec<Check>> {
    let noise = RefCell::new(Noise::of_machine(prover)?);
    let scale = if prover.full { &READ_FULL } else { &READ };
    let (counts, enough) = bytes::found(prover, scale, &|file, script| {
        let measured = measure(prover, file, script)?;
        noise.borrow_mut().note(&measured);
        Ok(measured)
    })?;
    // What comes too late is never issued, and nothing is planted in it.
    judged(counts, vec![enough], &noise.into_inner())
}

/// What is done to a server meanwhile.
pub(crate) type Meanwhile<'a> = dyn Fn(&Mutex<Oracle>) -> Result<()> + Sync + 'a;

/// Runs a workload over loopback against a server that the script rules, and analyses the whole of
/// it.
pub(crate) fn measure(prover: &Prover, file: &WorkloadFile, script: &str) -> Result<Measured> {
    measure_while(prover, file, script, &|_| Ok(()))
}

/// The same, while something is done to the server from the start of the stage that measures on.
pub(crate) fn measure_while(
    prover: &Prover,
    file: &WorkloadFile,
    script: &str,
    meanwhile: &Meanwhile<'_>,
) -> Result<Measured> {
    let filled = file.check()?.owed().members_filled;
    let script = format!("grace_count: {filled}\n{script}");
    measure_at(prover, file, &[&Mutex::new(prover.serve(file, &script)?)], meanwhile)
}

/// The same against servers that run, operations going to each in turn. The ledger is that of the
/// first, which also has the bucket made, the others have it already, and to which something is
/// done.
pub(crate) fn measure_at(
    prover: &Prover,
    file: &WorkloadFile,
    oracles: &[&Mutex<Oracle>],
    meanwhile: &Meanwhile<'_>,
) -> Result<Measured> {
    let oracle = *oracles.first().context("there is no server")?;
    let time = RunTime::machine();
    let engine =
        EngineConfig { threads: embedded::cores_free(true), op_timeout: OP_TIMEOUT, retries: 0 };
    let mut endpoints = Vec::new();
    for oracle in oracles {
        let config = embedded::config(&*locked(oracle)?, BUCKET, time.wall_epoch);
        endpoints.extend(config.endpoints);
    }
    let config = S3Config {
        endpoints,
        host_select: HostSelect::RoundRobin,
        connect_timeout: OP_TIMEOUT,
        transport: prover.transport,
        ..embedded::config(&*locked(oracle)?, BUCKET, time.wall_epoch)
    };
    let target = Store::s3(config, false)?.into();
    let measurement = Measurement { file, target, time, engine, run_dir: None };
    let ledger = || locked(oracle)?.ledger().context("a scripted store keeps a ledger");
    let prepared = RefCell::new(Ledger::default());
    std::thread::scope(|scope| {
        let (begun, begins) = mpsc::channel();
        // Where nothing begins, the sender is gone and nothing is done to the server.
        let doing_so =
            move |begins: mpsc::Receiver<()>| begins.recv().map_or(Ok(()), |()| meanwhile(oracle));
        let doing = scope.spawn(move || doing_so(begins));
        let begin = |_: &Recording| {
            locked(oracle)?.keep_latencies();
            prepared.replace(ledger()?);
            // Who has ended already has nothing to do.
            let _ended = begun.send(());
            Ok(())
        };
        let measured =
            measurement.run(prover, Box::new(begin), || Ok(ledger()?.since(&prepared.borrow())));
        drop(begun);
        doing.join().ok().context("what is done to the server broke off")??;
        measured
    })
}

fn locked(oracle: &Mutex<Oracle>) -> Result<MutexGuard<'_, Oracle>> {
    oracle.lock().ok().context("the server is gone")
}

/// Returns the check of times that must be within the band.
pub(crate) fn near(what: String, truth: &[u64], measured: &[u64]) -> Check {
    let is_near = |(truth, measured): (&u64, &u64)| {
        (*measured as f64 - *truth as f64).abs() <= OFF_PART * *truth as f64 + OFF_NS
    };
    Check {
        what,
        truth: times(truth),
        measured: times(measured),
        holds: truth.iter().zip(measured).all(is_near),
    }
}

/// Returns a check of each percentile by itself.
fn near_each<const N: usize>(
    name: &str,
    percents: [f64; N],
    truth: &[u64; N],
    measured: &[u64; N],
) -> Vec<Check> {
    let each = percents.iter().zip(truth).zip(measured);
    each.map(|((percent, truth), measured)| {
        near(format!("{name}: p{percent}"), &[*truth], &[*measured])
    })
    .collect()
}

/// Returns all checks, but for times that are off on a machine that is too noisy to judge them:
/// these make the proof one that is skipped.
///
/// Noise moves the tail of some of several distributions, not every percentile of all of them:
/// where no time holds at all, the instrument is wrong and the proof fails on any machine.
pub(crate) fn judged(
    mut counts: Vec<Check>,
    timings: Vec<Check>,
    noise: &Noise,
) -> Result<Vec<Check>> {
    let counts_hold = counts.iter().all(|check| check.holds);
    let none_holds = timings.len() > 1 && timings.iter().all(|check| !check.holds);
    let (good, off): (Vec<Check>, Vec<Check>) = timings.into_iter().partition(|check| check.holds);
    counts.splice(..0, good);
    if off.is_empty() || none_holds || !counts_hold || !noise.is_loud() {
        counts.splice(..0, off);
        return Ok(counts);
    }
    let figure = |check: &Check| {
        let Check { what, truth, measured, .. } = check;
        format!("{what}: {measured} instead of {truth}")
    };
    let figures: Vec<String> = off.iter().map(figure).collect();
    let reason = format!("noisy machine ({noise}); {}", figures.join("; "));
    Err(ProofError::Skipped { reason, checks: counts })
}

/// How late this machine does what is due.
pub(crate) struct Noise {
    /// The longest time that a hundredth of the operations of a run started late.
    delay_p99: Duration,
    schedules_kept: bool,
}

impl Noise {
    /// More than this is noise.
    const DELAY_P99_MAX: Duration = Duration::from_millis(1);

    /// Returns how late the engine starts operations that take no time.
    pub(crate) fn of_machine(prover: &Prover) -> Result<Self> {
        let mut noise = Self { delay_p99: Duration::ZERO, schedules_kept: true };
        noise.note_machine(prover)?;
        Ok(noise)
    }

    /// Looks at the machine again.
    pub(crate) fn note_machine(&mut self, prover: &Prover) -> Result<()> {
        let load = Load {
            operations: "{stat: o}",
            pacing: open("1000/s", "constant", 64),
            lasts: Duration::from_millis(300),
            workers: 1,
            objects: 1,
            size: 1,
        };
        let (_, ops) = bare::run(&load.file(prover.seed), &RunTime::machine())?;
        let mut delays: Vec<Duration> = ops.iter().map(|op| op.start.since(op.intended)).collect();
        delays.sort_unstable();
        let p99 = delays.get(delays.len() * 99 / 100).copied().unwrap_or(Duration::MAX);
        self.delay_p99 = self.delay_p99.max(p99);
        Ok(())
    }

    /// Looks at how late the operations of an open loop started.
    pub(crate) fn note(&mut self, measured: &Measured) {
        let delay =
            measured.row().analysis.total.schedule_delay.as_ref().and_then(|delay| delay.p99);
        self.delay_p99 = self.delay_p99.max(delay.unwrap_or_default());
        self.schedules_kept &= measured.row().schedule_kept();
    }

    fn is_loud(&self) -> bool {
        self.delay_p99 > Self::DELAY_P99_MAX || !self.schedules_kept
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (delay, most) = (format::duration(self.delay_p99), Self::DELAY_P99_MAX);
        let most = format::duration(most);
        write!(f, "operations start up to {delay} late at p99, and {most} is allowed")?;
        if !self.schedules_kept {
            write!(f, "; SCHEDULE NOT KEPT")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(holds: bool) -> Check {
        let text = |text: &str| text.to_owned();
        Check { what: text("p99"), truth: text("952 ms"), measured: text("2 ms"), holds }
    }

    fn noise(delay_us: u64) -> Noise {
        Noise { delay_p99: Duration::from_micros(delay_us), schedules_kept: true }
    }

    #[test]
    fn the_band_is_a_tenth_and_a_millisecond() {
        let near = |measured| near(String::new(), &[10 * MS], &[measured]).holds;
        assert!(near(12 * MS) && near(8 * MS));
        assert!(!near(12 * MS + 1) && !near(8 * MS - 1));
    }

    #[test]
    fn noise_excuses_times_and_nothing_else() {
        let (good, bad) = (|| vec![check(true)], || vec![check(false)]);
        let (quiet, loud) = (noise(1_000), noise(33_800));
        assert!(!quiet.is_loud() && noise(1_001).is_loud());
        assert!(Noise { schedules_kept: false, ..noise(0) }.is_loud());
        assert_eq!(judged(good(), bad(), &quiet).unwrap(), [check(false), check(true)]);
        assert_eq!(judged(good(), good(), &loud).unwrap(), [check(true), check(true)]);
        assert_eq!(judged(bad(), bad(), &loud).unwrap(), [check(false), check(false)]);
        // Noise spoils some of several times, and never all of them.
        let both = || vec![check(false), check(true)];
        let skipped = |judgement| match judgement {
            Err(ProofError::Skipped { reason, checks }) => (reason, checks),
            _ => panic!("it is skipped"),
        };
        let (_, some) = skipped(judged(good(), both(), &loud));
        assert_eq!(some, [check(true), check(true)]);
        let none = || vec![check(false), check(false)];
        let failed = judged(good(), none(), &loud).unwrap();
        assert_eq!(failed, [check(false), check(false), check(true)]);
        let (reason, checks) = skipped(judged(good(), bad(), &loud));
        assert_eq!(checks, good());
        let expected = "noisy machine (operations start up to 33.8 ms late at p99, and 1.00 ms is \
                        allowed); p99: 2 ms instead of 952 ms";
        assert_eq!(reason, expected);
    }
}
