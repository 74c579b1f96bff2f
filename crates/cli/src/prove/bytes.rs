//! Wrong contents, planted one by one, are found and named.

use anyhow::{Context, Result};
use plimsoll_model::{ErrorClass, OpKind};
use plimsoll_report::proof::Check;
use plimsoll_workload::RangeSpec;
use plimsoll_workload::data::WrongKind;

use super::{Bench, Load, grouped, open, same};

pub(super) const CLAIM: &str = "\
    1,000 wrong contents of 8 kinds, planted in 1,000,000 reads of whole objects and ranges, \
    are all found, nothing right is called wrong, and at least 99 % are given their right \
    name";

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
/// Of each kind; half of them in whole objects and half in ranges.
const PLANTED_EACH: u64 = 125;
const READS: u64 = 1_000_000;

pub(super) fn checks(bench: &Bench) -> Result<Vec<Check>> {
    let (mut checks, mut named, mut reads, mut false_alarms) = (Vec::new(), 0, 0, 0);
    // One kind at a time, so that what is named can be held against what was planted.
    for (planted, kind) in PLANTED {
        let (mut found, mut right) = (0, 0);
        for (ranges, count) in [(false, PLANTED_EACH / 2), (true, PLANTED_EACH.div_ceil(2))] {
            let each = READS / 16;
            let mut spec = Load {
                operations: &[("GET", 9), ("PUT", 1)],
                // Nine of ten are reads.
                pacing: open("10000/s", "constant", 1_000),
                seconds: (each * 10 / 9).div_ceil(10_000),
                workers: 8,
                objects: 400,
                size: 4_096,
            }
            .spec(bench.seed);
            spec.measure.overwrite = true;
            spec.measure.range = ranges.then_some(RangeSpec::FixedBytes(1_500));
            let script = format!(
                "service: {{time: {{constant: 1ms}}}}\n\
                 plant: {{count: {count}, of: 50000, kinds: [{planted}]}}"
            );
            let simulated = bench.simulate(&spec, &script)?;
            let gets = simulated.kind(OpKind::Get)?.figures.stage;
            reads += gets.ops_ok + gets.failed.count();
            let truly: u64 = simulated.ledger.acts(OpKind::Get).values().sum();
            (truly == count).then_some(()).with_context(|| format!("{planted}: {truly} told"))?;
            let wrong = gets.failed.count();
            found += wrong.min(count);
            false_alarms += wrong.saturating_sub(count);
            false_alarms += simulated.report.analysis.total.stage.failed.count() - wrong;
            right += simulated.outcome.wrong.get(&kind).copied().unwrap_or(0).min(count);
            let classes =
                gets.failed.of(ErrorClass::Corrupt) + gets.failed.of(ErrorClass::Truncated);
            false_alarms += wrong - classes;
        }
        named += right;
        checks.push(same(format!("{planted}: found"), PLANTED_EACH, found));
        checks.push(Check {
            what: format!("{planted}: called `{}`", kind.name()),
            truth: grouped(PLANTED_EACH),
            measured: grouped(right),
            holds: right * 100 >= PLANTED_EACH * 95,
        });
    }
    let all = PLANTED_EACH * PLANTED.len() as u64;
    checks.push(Check {
        what: "named as the right kind, of all".to_owned(),
        truth: format!("at least 99 % of {}", grouped(all)),
        measured: grouped(named),
        holds: named * 100 >= all * 99,
    });
    checks.push(same("right contents called wrong", 0, false_alarms));
    checks.push(Check {
        what: "reads in all".to_owned(),
        truth: format!("at least {}", grouped(READS)),
        measured: grouped(reads),
        holds: reads >= READS,
    });
    Ok(checks)
}
