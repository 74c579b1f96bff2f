//! Who was the limit, held against what was staged: in virtual time with the evidence of a client
//! that is stated, over sockets with what this machine itself tells.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use plimsoll_analysis::verdict::LimitClass;
use plimsoll_conduct::output::temporary_directory;
use plimsoll_oracle::Oracle;
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::{
    ClientEvidence, ProcessorsEvidence, QuotaEvidence, SocketsEvidence, ThreadEvidence,
    ThreadsEvidence,
};
use plimsoll_report::RunVerdict;
use plimsoll_report::proof::Check;
use plimsoll_results::Record;

use crate::error::{Context, ProofError, Result};
use crate::loopback::measure_at;
use crate::{CLOSED, Load, Prover, asked, open, same};

pub(crate) const CLAIM: &str = "\
    13 staged limits of a client, a way and a store are each told right from the record, and \
    whatever a store does, a client that was short of something is told and the store not blamed";

pub(crate) const LOOPBACK: &str = "\
    over real sockets a store that sheds load, one with a lock, one with a queue and one address \
    of four that is slow are told, and so are one connection and too little load; on no machine \
    is the store blamed for the client";

/// How long each stage is.
const LASTS: Duration = Duration::from_secs(4);
const MS: u64 = 1_000_000;
const LASTS_NS: u64 = 4_000 * MS;

/// What a store does, and the load on it.
struct Staged {
    name: &'static str,
    script: &'static str,
    workers: u32,
    pacing: fn() -> String,
}

fn closed() -> String {
    CLOSED.to_owned()
}

/// As many a second as two servers that take 3 ms cannot carry.
fn too_many() -> String {
    open("1500/s", "poisson", 64)
}

const LOCK: Staged = Staged {
    name: "one lock in the server",
    script: "service: {time: {constant: 3ms}}\nservers: 1",
    workers: 16,
    pacing: closed,
};
const QUEUE: Staged = Staged {
    name: "server queue",
    script: "service: {time: {constant: 3ms}}\nservers: 2",
    workers: 16,
    pacing: too_many,
};
const CPU: Staged = Staged {
    name: "server CPU",
    script: "service: {time: {exponential: {mean: 3ms}}}\nservers: 4",
    workers: 32,
    pacing: closed,
};
const SHEDS: Staged = Staged {
    name: "server sheds",
    script: "service: {time: {constant: 3ms}}\nservers: 2\nqueue_max: 8",
    workers: 32,
    pacing: closed,
};
const FAR: Staged = Staged {
    name: "added round trip",
    script: "service: {time: {constant: 25ms}}",
    workers: 16,
    pacing: closed,
};
const ALONE: Staged = Staged {
    name: "one connection",
    script: "service: {time: {constant: 3ms}}",
    workers: 1,
    pacing: closed,
};
const LITTLE: Staged = Staged {
    name: "too little load",
    script: "service: {time: {constant: 1ms}}",
    workers: 8,
    pacing: || "{capped: 50/s}".to_owned(),
};

impl Staged {
    fn load(&self, operations: &'static str) -> Load<'static> {
        let pacing = (self.pacing)();
        Load { operations, pacing, lasts: LASTS, workers: self.workers, objects: 64, size: 1_024 }
    }

    /// Returns the script, by which the objects are written without ado.
    fn script(&self) -> String {
        format!("grace_count: 64\n{}", self.script)
    }
}

/// A client with nothing to complain of, on a machine of eight processors.
fn idle() -> ClientEvidence {
    let thread = ThreadEvidence { cpu_ns: LASTS_NS / 10, run_delay_ns: LASTS_NS / 1_000 };
    ClientEvidence {
        took_ns: LASTS_NS,
        cores_milli: Some(8_000),
        threads: ThreadsEvidence {
            count: 1,
            cpu_ns: Some(thread.cpu_ns),
            run_delay_ns: Some(thread.run_delay_ns),
            busiest: vec![thread],
        },
        processors: Some(ProcessorsEvidence {
            all_ns: 8 * LASTS_NS,
            busy_ns: LASTS_NS,
            steal_ns: 0,
        }),
        quota: Some(QuotaEvidence { periods_count: 40, ..QuotaEvidence::default() }),
        sockets: Some(SocketsEvidence {
            opened_count: 16,
            seen_count: 16,
            rtt_min_ns: Some(30_000),
            segments_sent_count: 10_000,
            segments_received_count: 10_000,
            busy_ns: LASTS_NS,
            ..SocketsEvidence::default()
        }),
        ..ClientEvidence::default()
    }
}

type Change = fn(&mut ClientEvidence);

fn sockets(of: &mut ClientEvidence) -> &mut SocketsEvidence {
    of.sockets.get_or_insert_default()
}

fn starve(of: &mut ClientEvidence) {
    let thread = ThreadEvidence { cpu_ns: LASTS_NS / 3, run_delay_ns: LASTS_NS / 3 };
    of.threads.cpu_ns = Some(thread.cpu_ns);
    of.threads.run_delay_ns = Some(thread.run_delay_ns);
    of.threads.busiest = vec![thread];
}

/// What a client may be short of, and what it is then called.
const SHORTAGES: [(&str, Change, LimitClass); 5] = [
    (
        "client cgroup at 20 % CPU",
        |of| {
            let (periods_count, throttled_count) = (40, 36);
            of.quota = Some(QuotaEvidence {
                cores_milli: Some(200),
                periods_count,
                throttled_count,
                throttled_ns: LASTS_NS / 2,
            });
        },
        LimitClass::ClientCpu,
    ),
    ("few ports", |of| sockets(of).no_port_count = 40, LimitClass::ClientConnections),
    ("fd limit", |of| sockets(of).no_descriptor_count = 7, LimitClass::ClientConnections),
    (
        "slow disk under the op log",
        |of| (of.recorder_waits_count, of.recorder_wait_ns) = (50, LASTS_NS / 2),
        LimitClass::Recorder,
    ),
    ("busy neighbour", starve, LimitClass::ClientCpu),
];

/// What a store, a way and a load may be, and what that is called.
const OTHERS: [(&Staged, Change, LimitClass); 8] = [
    (&CPU, |_| {}, LimitClass::Store),
    (&QUEUE, |_| {}, LimitClass::Store),
    (&SHEDS, |_| {}, LimitClass::StoreShedsLoad),
    (&LOCK, |_| {}, LimitClass::Store),
    (&FAR, |of| sockets(of).rtt_min_ns = Some(20 * MS), LimitClass::Network),
    (
        &Staged { name: "loss", ..LOCK },
        |of| sockets(of).retransmits_count = 200,
        LimitClass::Network,
    ),
    (&ALONE, |_| {}, LimitClass::ClientConnections),
    (&LITTLE, |_| {}, LimitClass::NotEnoughLoad),
];

/// A record in virtual time, which is judged with evidence that is put into it.
struct Judged(tempfile::TempDir);

impl Judged {
    fn measure(prover: &Prover, staged: &Staged) -> Result<Self> {
        let place = temporary_directory()?;
        let file = staged.load("{get: o}").file(prover.seed);
        prover.simulate_into(&file, &staged.script(), Some(&place.path().join("run")))?;
        Ok(Self(place))
    }

    /// Returns what the report of the record says when this was seen of its client.
    fn verdict(&self, change: Change) -> Result<RunVerdict> {
        let mut evidence = idle();
        change(&mut evidence);
        judge(&self.0.path().join("run"), evidence)
    }
}

fn judge(path: &Path, evidence: ClientEvidence) -> Result<RunVerdict> {
    let directory = RunDirectory::open(path)?;
    let mut manifest = directory.read_manifest()?;
    let stage = manifest.stages.last_mut().context("the record has no stage")?;
    stage.evidence = vec![evidence];
    directory.write_manifest(&manifest)?;
    let report = Record::open(path)?.report(&asked())?;
    report.verdict.context("there is no verdict")
}

fn told(name: &str, class: LimitClass, found: &RunVerdict) -> Check {
    Check {
        what: name.to_owned(),
        truth: class.name().to_owned(),
        measured: found.class.name().to_owned(),
        holds: found.class == class && found.is_client == class.is_client(),
    }
}

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let lock = Judged::measure(prover, &LOCK)?;
    for (name, change, class) in SHORTAGES {
        checks.push(told(name, class, &lock.verdict(change)?));
    }
    let (mut pairs, mut blamed) = (0, 0);
    for (staged, change, class) in OTHERS {
        let record = Judged::measure(prover, staged)?;
        checks.push(told(staged.name, class, &record.verdict(change)?));
        // What a store refuses, it refuses; nothing else of it is told of a client that was short.
        for (_, change, _) in SHORTAGES.iter().filter(|_| class != LimitClass::StoreShedsLoad) {
            pairs += 1;
            blamed += u64::from(!record.verdict(*change)?.is_client);
        }
    }
    let what = format!("clients that were short, of {pairs}, that others were blamed for");
    checks.push(same(what, 0, blamed));
    Ok(checks)
}

/// What is staged over sockets. What a store refuses is told on any machine.
const OVER_SOCKETS: [(&Staged, LimitClass); 5] = [
    (&SHEDS, LimitClass::StoreShedsLoad),
    (&ALONE, LimitClass::ClientConnections),
    (&LOCK, LimitClass::Store),
    (&QUEUE, LimitClass::Store),
    (&LITTLE, LimitClass::NotEnoughLoad),
];

/// How long a stage over sockets is.
const SOCKETS_LAST: Duration = Duration::from_secs(2);
const SLOW: &str = "service: {time: {constant: 40ms}}";
const FAST: &str = "service: {time: {constant: 2ms}}";

pub(crate) fn loopback_checks(prover: &Prover) -> Result<Vec<Check>> {
    let mut found = Vec::new();
    for (staged, class) in OVER_SOCKETS {
        let load = Load { lasts: SOCKETS_LAST, ..staged.load("{get: o}") };
        let file = load.file(prover.seed);
        let oracle = Mutex::new(prover.serve(&file, &staged.script())?);
        let report = measure_at(prover, &file, &[&oracle], &|_| Ok(()))?.report;
        let verdict = report.verdict.context("there is no verdict")?;
        found.push((staged.name, class, verdict));
    }
    found.push(("one slow endpoint of four", LimitClass::SlowEndpoint, slow_of_four(prover)?));
    sorted(&found)
}

/// Measures four stores of which one is slow.
fn slow_of_four(prover: &Prover) -> Result<RunVerdict> {
    // Each store by itself has a bucket to be made.
    let alone = Load { lasts: Duration::from_millis(50), ..ALONE.load("{put: o}") };
    let alone = alone.file(prover.seed);
    let file = Load { lasts: SOCKETS_LAST, ..LOCK.load("{put: o}") }.file(prover.seed);
    let mut oracles: Vec<Mutex<Oracle>> = Vec::new();
    for script in [FAST, FAST, SLOW, FAST] {
        let oracle = Mutex::new(prover.serve(&file, script)?);
        measure_at(prover, &alone, &[&oracle], &|_| Ok(()))?;
        oracles.push(oracle);
    }
    let all: Vec<&Mutex<Oracle>> = oracles.iter().collect();
    measure_at(prover, &file, &all, &|_| Ok(()))?.report.verdict.context("there is no verdict")
}

/// Returns all checks. Where a client says that it was short itself, that is a busy machine, and
/// nothing that is staged shows on it; that another is blamed for it never holds.
fn sorted(found: &[(&str, LimitClass, RunVerdict)]) -> Result<Vec<Check>> {
    let all = || found.iter().map(|(name, class, verdict)| (told(name, *class, verdict), verdict));
    let mut checks: Vec<Check> = Vec::new();
    let mut busy = Vec::new();
    for (check, verdict) in all() {
        let is_refusal = check.truth == LimitClass::StoreShedsLoad.name();
        match check.holds || is_refusal || !verdict.is_client {
            true => checks.push(check),
            false => busy.push(format!("{}: {}", check.what, check.measured)),
        }
    }
    if busy.is_empty() || checks.iter().any(|check| !check.holds) {
        return Ok(checks);
    }
    let reason = format!("busy machine, the client itself was short; {}", busy.join("; "));
    Err(ProofError::Skipped { reason, checks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(class: LimitClass) -> RunVerdict {
        RunVerdict {
            stage: String::new(),
            iteration: 0,
            number_of_title: 1,
            class,
            is_client: class.is_client(),
            sentence: String::new(),
            experiment: String::new(),
        }
    }

    #[test]
    fn a_busy_machine_excuses_what_is_staged_and_never_a_wrong_blame() {
        let sheds = ("sheds", LimitClass::StoreShedsLoad);
        let of = |found: &[(&'static str, LimitClass, LimitClass)]| {
            let all = found.iter().map(|(name, class, found)| (*name, *class, verdict(*found)));
            sorted(&all.collect::<Vec<_>>())
        };
        let right = (sheds.0, sheds.1, sheds.1);
        let busy = ("lock", LimitClass::Store, LimitClass::ClientCpu);
        let good = ("lock", LimitClass::Store, LimitClass::Store);
        assert!(of(&[right, good]).unwrap().iter().all(|check| check.holds));
        match of(&[right, busy]) {
            Err(ProofError::Skipped { reason, checks }) => {
                assert!(reason.ends_with("lock: client-cpu"), "{reason}");
                assert!(checks.len() == 1 && checks[0].holds);
            }
            other => panic!("it is skipped: {other:?}"),
        }
        // The store for the client, refusals that are not told, and what nobody was short of.
        for wrong in [
            ("one", LimitClass::ClientConnections, LimitClass::Store),
            (sheds.0, sheds.1, LimitClass::ClientCpu),
            ("lock", LimitClass::Store, LimitClass::NotEnoughLoad),
        ] {
            assert!(of(&[right, busy, wrong]).unwrap().iter().any(|check| !check.holds));
        }
    }
}
