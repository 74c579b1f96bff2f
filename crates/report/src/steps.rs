//! The steps of a rate, a row each, as text and on the page.

use std::time::Duration;

use plimsoll_analysis::StepFigures;

use crate::format::{count, duration, known, number};
use crate::table::{Cell, Paint, Table, Tone};

/// What the columns are.
pub(crate) const HEADINGS: [&str; 8] =
    ["steps", "for", "offered/s", "achieved", "p50", "p99", "failed", "schedule"];

/// Returns the cells of a step.
pub(crate) fn cells(step: &StepFigures) -> [String; 8] {
    let time = |ns: Option<u64>| known(ns, |ns| duration(Duration::from_nanos(ns)));
    [
        format!("+{}", duration(step.from)),
        duration(step.length),
        number(step.offered.0),
        number(step.achieved.0),
        time(step.latency_ns_p50),
        time(step.latency_ns_p99),
        count(step.failed_count),
        if step.is_kept { "kept" } else { "NOT KEPT" }.to_owned(),
    ]
}

/// Writes a table of all steps, if there are some.
pub(crate) fn write(steps: &[StepFigures], paint: Paint, out: &mut String) {
    if steps.is_empty() {
        return;
    }
    let mut table = Table::new(&HEADINGS);
    for step in steps {
        let [from, length, offered, achieved, p50, p99, failed, schedule] = cells(step);
        let bad = |is_bad: bool| if is_bad { Tone::Bad } else { Tone::Plain };
        let plain = [length, offered, achieved, p50, p99].map(Cell::from);
        let failed = Cell::new(failed, bad(step.failed_count > 0));
        let schedule = Cell::new(schedule, bad(!step.is_kept));
        table.row(&from, Tone::Plain, plain.into_iter().chain([failed, schedule]));
    }
    out.push('\n');
    table.write(paint, out);
}
