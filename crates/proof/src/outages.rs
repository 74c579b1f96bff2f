//! The outage ledger and the reading back of acknowledged writes, held against what the store did.

use std::time::Duration;

use plimsoll_analysis::Ledger;
use plimsoll_model::Moment;
use plimsoll_report::proof::Check;

use crate::away::lost_script;
use crate::error::{Context, Result};
use crate::measured::Measured;
use crate::{CLOSED, Load, Prover, open, same, times};

pub(crate) const CLAIM: &str = "\
    a store that freezes for 3.000 s has one outage, as long as the store's own ledger says to \
    the nanosecond; of writes that it acknowledged and lost exactly those 7 are named; 20 sound \
    runs of all kinds have no outage";

const FREEZE: &str =
    "service: {time: {constant: 2ms}}\nstalls: {every: 1h, lasting: 3s, offset: 5s}";
pub(crate) const FREEZE_NS: u64 = 3_000_000_000;
/// What of the operations under way when the store froze is left when it goes on.
const OFF_NS: u64 = 30_000_000;
pub(crate) const LOST: u64 = 7;

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for (name, pacing) in [
        ("closed loop", CLOSED.to_owned()),
        ("open loop", open("500/s", "poisson", 4_096)),
        ("capped loop", "{capped: 300/s}".to_owned()),
    ] {
        let measured = prover.simulate(&load("{get: o}", pacing, 12).file(prover.seed), FREEZE)?;
        checks.extend(frozen(name, &measured)?);
    }
    checks.extend(lost(prover)?);
    checks.push(sound(prover)?);
    Ok(checks)
}

pub(crate) fn load(operations: &str, pacing: String, seconds: u64) -> Load<'_> {
    let lasts = Duration::from_secs(seconds);
    Load { operations, pacing, lasts, workers: 8, objects: 64, size: 1_000 }
}

pub(crate) fn ledger_of(measured: &Measured) -> Result<&Ledger> {
    measured.row().analysis.ledger.as_ref().context("there is no outage ledger")
}

/// Returns the longest gap between what a store says that it completed.
pub(crate) fn gap_of(ledger: &plimsoll_oracle::Ledger) -> Result<Duration> {
    let mut ends: Vec<Moment> = ledger.ended().to_vec();
    ends.sort_unstable();
    // The store's moments count from another beginning than the run's.
    let gaps = ends.windows(2).map(|pair| pair[1].since(pair[0]));
    gaps.max().context("the store completed nothing")
}

/// Holds the only outage against the longest gap between what the store says that it completed.
fn frozen(name: &str, measured: &Measured) -> Result<Vec<Check>> {
    let gap = gap_of(&measured.ledger)?;
    let told = ledger_of(measured)?;
    let outage = told.outages.first().context(format!("{name}: there is no outage"))?;
    let ns = |time: Duration| time.as_nanos() as u64;
    Ok(vec![
        same(format!("{name}: outages"), 1, told.outages_count),
        Check {
            what: format!("{name}: no success for so long"),
            truth: format!("{} ns", ns(gap)),
            measured: format!("{} ns", ns(outage.gap)),
            holds: gap == outage.gap,
        },
        Check {
            what: format!("{name}: the freeze of 3.00 s, ± 0.03 s"),
            truth: times(&[FREEZE_NS]),
            measured: times(&[ns(outage.gap)]),
            holds: ns(outage.gap).abs_diff(FREEZE_NS) <= OFF_NS,
        },
    ])
}

/// Holds the names of lost writes against those that the store has lost.
fn lost(prover: &Prover) -> Result<Vec<Check>> {
    let script = lost_script(8_000);
    let mut checks = Vec::new();
    for (name, operations) in [("puts", "{put: o}"), ("a mix", MIX)] {
        let file = load(operations, CLOSED.to_owned(), 4).file(prover.seed).with_read_back()?;
        let measured = prover.simulate(&file, &script)?;
        let (enough, named) = lost_of(name, &measured)?;
        checks.push(enough);
        checks.extend(named);
    }
    Ok(checks)
}

/// Holds the writes that a store has lost against how many it was to lose, and those that were
/// named against them.
pub(crate) fn lost_of(name: &str, measured: &Measured) -> Result<(Check, [Check; 2])> {
    let truth: Vec<&String> = measured.ledger.lost_keys().iter().collect();
    let read = measured.report.read_back.as_ref().context("nothing was read back")?;
    let right = read.objects.iter().filter(|of| truth.contains(&&of.key)).count() as u64;
    let others = read.objects.len() as u64 - right;
    Ok((
        same(format!("{name}: writes that the store lost"), LOST, truth.len() as u64),
        [
            same(format!("{name}: of these, named"), truth.len() as u64, right),
            same(format!("{name}: others named"), 0, others),
        ],
    ))
}

/// Puts of new objects among reads and removals; nothing that is planted is removed.
const MIX: &str = "{get: o, weight: 1}, {put: o, weight: 3}, {stat: o, weight: 1}";

/// Counts the outages of sound runs.
fn sound(prover: &Prover) -> Result<Check> {
    const SERVICES: [&str; 5] = [
        "{constant: 2ms}",
        "{exponential: {mean: 20ms}}",
        "{lognormal: {median: 5ms, sigma: 1.0}}",
        "{bimodal: {first: {constant: 1ms}, second: {constant: 700ms}, share: 0.9}}",
        // Slow ones, of which a worker does a few.
        "{lognormal: {median: 900ms, sigma: 0.5}}",
    ];
    let (mut runs, mut outages) = (0, 0);
    for service in SERVICES {
        for pacing in [
            CLOSED.to_owned(),
            "{capped: 20/s}".to_owned(),
            open("3/s", "poisson", 4_096),
            open("1/s..200/s over 10s", "poisson", 4_096),
        ] {
            let script = format!("service: {{time: {service}}}");
            let load = load("{get: o}", pacing, 20);
            let measured = prover.simulate(&load.file(prover.seed + runs), &script)?;
            outages += ledger_of(&measured)?.outages_count;
            runs += 1;
        }
    }
    Ok(Check {
        what: format!("outages of {runs} sound runs"),
        truth: "0".to_owned(),
        measured: outages.to_string(),
        holds: outages == 0 && runs == 20,
    })
}
