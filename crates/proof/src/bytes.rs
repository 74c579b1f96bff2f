//! Wrong contents, planted one by one, are found and named.

use std::time::Duration;

use plimsoll_model::{ErrorClass, OpKind, WrongKind};
use plimsoll_report::proof::Check;
use plimsoll_workload::plan::WorkloadFile;

use crate::error::Result;
use crate::measured::Measured;
use crate::{Load, Prover, grouped, open, same};

pub(crate) const CLAIM: &str = "\
    1,000 wrong contents of 8 kinds, planted in reads of whole objects and ranges, are all \
    found, nothing right is called wrong, and at least 99 % are given their right name";

/// What is planted, and what the read must be called.
const PLANTED: [(&str, WrongKind); 8] = [
    ("other_key", WrongKind::OtherObject),
    ("old_version", WrongKind::OldVersion),
    ("shifted", WrongKind::Shifted),
    ("zeroed", WrongKind::Zeroed),
    ("torn", WrongKind::Torn),
    ("flipped", WrongKind::Flipped),
    ("half_body", WrongKind::Short),
    ("wrong_length", WrongKind::Long),
];

/// How much is read, and how fast.
pub(crate) struct Scale {
    /// Planted of each kind; half of them in whole objects and half in ranges.
    pub(crate) planted_each: u64,
    pub(crate) reads: u64,
    pub(crate) ops_per_sec: u64,
    pub(crate) objects: u64,
}

const SCALE: Scale = Scale { planted_each: 125, reads: 100_000, ops_per_sec: 10_000, objects: 400 };
const SCALE_FULL: Scale = Scale { reads: 1_000_000, ..SCALE };
/// Wrong contents are planted in the first of these of a hundred reads.
const PLANTED_WITHIN_PERCENT: u64 = 80;

/// Measurements: each kind in whole objects and in ranges.
const PARTS: u64 = 2 * PLANTED.len() as u64;

impl Scale {
    /// Returns the workload of one part.
    fn file(&self, seed: u64, ranges: bool) -> WorkloadFile {
        // Nine of ten are reads.
        let operations = self.reads / PARTS * 10 / 9;
        let tenths = (10 * operations).div_ceil(self.ops_per_sec);
        let range = if ranges { ", range: 1500B" } else { "" };
        let load = Load {
            operations: &format!("{{get: o, weight: 9{range}}}, {{put: o, as: overwrite}}"),
            pacing: open(&format!("{}/s", self.ops_per_sec), "constant", 256),
            lasts: Duration::from_millis(100 * tenths),
            workers: 8,
            objects: self.objects,
            size: 4_096,
        };
        load.file(seed)
    }
}

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let scale = if prover.full { &SCALE_FULL } else { &SCALE };
    let (mut checks, enough) = found(prover, scale, &|file, script| prover.simulate(file, script))?;
    checks.push(enough);
    Ok(checks)
}

/// Measures stores with each kind of wrong content in turn, and returns what was found, and whether
/// it was as much as there should be.
pub(crate) fn found(
    prover: &Prover,
    scale: &Scale,
    measure: &dyn Fn(&WorkloadFile, &str) -> Result<Measured>,
) -> Result<(Vec<Check>, Check)> {
    let planted_each = scale.planted_each;
    let (mut checks, mut all, mut named) = (Vec::new(), 0, 0);
    let (mut reads, mut false_alarms) = (0, 0);
    // One kind at a time, so that what is named can be held against what was planted.
    for (planted, kind) in PLANTED {
        let (mut told, mut found, mut right) = (0, 0, 0);
        for (ranges, count) in [(false, planted_each / 2), (true, planted_each.div_ceil(2))] {
            let script = format!(
                "service: {{time: {{constant: 1ms}}}}\n\
                 plant: {{count: {count}, of: {}, kinds: [{planted}]}}",
                scale.reads / PARTS * PLANTED_WITHIN_PERCENT / 100
            );
            let measured = measure(&scale.file(prover.seed, ranges), &script)?;
            let gets = measured.kind(OpKind::Get)?.figures.stage;
            reads += gets.ops_ok + gets.failed.count();
            let truly: u64 = measured.ledger.acts(OpKind::Get).values().sum();
            let wrong = gets.failed.count();
            told += truly;
            found += wrong.min(truly);
            false_alarms += wrong.saturating_sub(truly);
            false_alarms += measured.row().analysis.total.stage.failed.count() - wrong;
            right += measured.outcome.wrong.get(&kind).copied().unwrap_or(0).min(truly);
            let classes =
                gets.failed.of(ErrorClass::Corrupt) + gets.failed.of(ErrorClass::Truncated);
            false_alarms += wrong - classes;
        }
        (all, named) = (all + told, named + right);
        checks.push(same(format!("{planted}: found"), told, found));
        checks.push(Check {
            what: format!("{planted}: called `{}`", kind.name()),
            truth: grouped(told),
            measured: grouped(right),
            holds: right * 100 >= told * 95,
        });
    }
    checks.push(Check {
        what: "named as the right kind, of all".to_owned(),
        truth: format!("at least 99 % of {}", grouped(all)),
        measured: grouped(named),
        holds: named * 100 >= all * 99,
    });
    checks.push(same("right contents called wrong", 0, false_alarms));
    let much = |reads: u64, wrong: u64| format!("{} and {}", grouped(reads), grouped(wrong));
    let planted = planted_each * PLANTED.len() as u64;
    let enough = Check {
        what: "reads in all, and wrong contents among them".to_owned(),
        truth: format!("at least {}", much(scale.reads, planted)),
        measured: much(reads, all),
        holds: reads >= scale.reads && all >= planted,
    };
    Ok((checks, enough))
}
