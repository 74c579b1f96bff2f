//! The outage ledger over sockets: a store that stands still, one that goes away and comes back,
//! and one that forgets what it acknowledged, each held against the store's own ledger.

use std::sync::Mutex;
use std::time::Duration;

use plimsoll_conduct::{RunTime, Stop};
use plimsoll_oracle::{Ledger, Oracle};
use plimsoll_report::proof::Check;

use crate::error::{Context, Result};
use crate::loopback::{Noise, judged, measure, measure_while};
use crate::measured::Measured;
use crate::outages::{FREEZE_NS, gap_of, ledger_of, load, lost_of};
use crate::{CLOSED, Prover, open, times};

pub(crate) const CLAIM: &str = "\
    over real sockets a store that freezes for 3.000 s has one outage of 3.00 ± 0.03 s, and one \
    that is killed and comes back one as long as the store's own ledger says, within 50 ms; of \
    writes that it acknowledged and lost exactly those 7 are named";

/// The objects are there before it freezes.
const FREEZE: &str =
    "service: {time: {constant: 2ms}}\nstalls: {every: 1h, lasting: 3s, offset: 2s}";
const FREEZE_OFF_NS: u64 = 30_000_000;
const KILL_OFF_NS: u64 = 50_000_000;
/// When the store goes away, and for how long.
const KILLED_AFTER: Duration = Duration::from_secs(1);
const AWAY: Duration = Duration::from_millis(1_500);

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let mut noise = Noise::of_machine(prover)?;
    let (mut counts, mut timings) = (Vec::new(), Vec::new());
    // A freeze holds 180 of them up; each takes three open files.
    let file = load("{get: o}", open("60/s", "constant", 300), 7).file(prover.seed);
    let frozen = measure(prover, &file, FREEZE)?;
    noise.note(&frozen);
    timings.extend(outage("a freeze", &frozen, FREEZE_NS, FREEZE_OFF_NS)?);

    let file = load("{put: o}", CLOSED.to_owned(), 4).file(prover.seed);
    let script = "service: {time: {constant: 2ms}}";
    let stop = prover.stop.clone();
    let killed = measure_while(prover, &file, script, &|oracle| kill_and_restart(&stop, oracle))?;
    let truth = longest_gap(&killed.ledger)?;
    timings.extend(outage("killed and restarted", &killed, truth, KILL_OFF_NS)?);

    let file = load("{put: o}", open("1000/s", "constant", 256), 2);
    let file = file.file(prover.seed).with_read_back()?;
    let forgetful = measure(prover, &file, &lost_script(1_500))?;
    let (enough, named) = lost_of("puts", &forgetful)?;
    // What comes too late is never issued, and nothing is planted in it.
    timings.push(enough);
    counts.extend(named);
    noise.note_machine(prover)?;
    judged(counts, timings, &noise)
}

/// Returns the script of a store that forgets some of so many writes.
pub(crate) fn lost_script(of: u64) -> String {
    format!(
        "service: {{time: {{constant: 2ms}}}}\n\
         plant: {{count: {}, of: {of}, kinds: [lost_write]}}",
        crate::outages::LOST
    )
}

fn longest_gap(ledger: &Ledger) -> Result<u64> {
    Ok(gap_of(ledger)?.as_nanos() as u64)
}

/// Holds the only outage of a run against how long the store was away.
fn outage(name: &str, measured: &Measured, truth: u64, off: u64) -> Result<[Check; 2]> {
    let told = ledger_of(measured)?;
    let gap = told.outages.first().map_or(0, |outage| outage.gap.as_nanos() as u64);
    Ok([
        crate::same(format!("{name}: outages"), 1, told.outages_count),
        Check {
            what: format!("{name}: no success for so long, within {}", times(&[off])),
            truth: times(&[truth]),
            measured: times(&[gap]),
            holds: gap.abs_diff(truth) <= off,
        },
    ])
}

/// Closes the server while it is measured, and opens it again.
fn kill_and_restart(stop: &Stop, oracle: &Mutex<Oracle>) -> Result<()> {
    let oracle = || oracle.lock().ok().context("the server is gone");
    rest(stop, KILLED_AFTER);
    oracle()?.close();
    rest(stop, AWAY);
    oracle()?.open().context("the server cannot listen again")
}

/// Lets time pass, unless the proofs are to end.
fn rest(stop: &Stop, time: Duration) {
    let clock = RunTime::machine().clock;
    let end = clock.now().after(time);
    while clock.now() < end && !stop.flag().is_set() {
        stop.rest(end.since(clock.now()));
    }
}
