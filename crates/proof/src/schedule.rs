//! A generator that cannot keep its schedule says so.

use std::time::Duration;

use plimsoll_report::proof::Check;
use plimsoll_report::text::{self, Look};

use crate::error::Result;
use crate::{Load, Prover, bare, grouped, open, same};
use plimsoll_conduct::RunTime;

pub(crate) const CLAIM: &str = "\
    a schedule that was not kept is never passed over: neither when the store holds too many \
    operations up, nor when the generator is too slow";

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let load = |rate: &str, max_in_flight| Load {
        operations: "{stat: o}",
        pacing: open(rate, "constant", max_in_flight),
        lasts: Duration::from_secs(10),
        workers: 4,
        objects: 8,
        size: 1,
    };
    let script = "service: {time: {constant: 10ms}}";
    // 10 ms each: 20 under way are needed for 2,000 a second, and 5 serve 500 of them.
    let held_up = prover.simulate(&load("2000/s", 5).file(prover.seed), script)?;
    let kept = prover.simulate(&load("2000/s", 40).file(prover.seed), script)?;
    let mut checks = Vec::new();
    for (what, simulated, is_kept) in [("5 in flight", &held_up, false), ("40", &kept, true)] {
        let shown = text::render(&simulated.report, &Look { width: 80, color: false });
        let says_so = shown.contains("SCHEDULE NOT KEPT");
        let word = |kept: bool| if kept { "kept" } else { "SCHEDULE NOT KEPT" }.to_owned();
        checks.push(Check {
            what: format!("10 ms of service at 2,000/s with at most {what}"),
            truth: word(is_kept),
            measured: word(!says_so),
            holds: says_so != is_kept && simulated.row().schedule_kept() == is_kept,
        });
    }
    let issued = held_up.outcome.ops_count;
    checks.push(same("issued in 10 s with 5 in flight", 5_000, issued));

    // Ten million a second are 100 ns each, less than any operation takes to issue.
    let load = Load { lasts: Duration::from_millis(200), ..load("10000k/s", 8) };
    let (slow, _) = bare::run(&load.file(prover.seed), &RunTime::machine())?;
    let schedule = slow
        .schedule
        .map_or((0, 0), |kept| (kept.offered_count, kept.late_count + kept.skipped_count));
    checks.push(Check {
        what: "a generator asked for 10,000,000/s on one thread for 0.2 s".to_owned(),
        truth: "more than 1 % late or skipped".to_owned(),
        measured: format!("{} of {}", grouped(schedule.1), grouped(schedule.0)),
        holds: schedule.1 as f64 > 0.01 * schedule.0 as f64 && schedule.0 == 2_000_000,
    });
    Ok(checks)
}
