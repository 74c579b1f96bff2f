//! What a load over loopback came to, beside what theory says of the store: a few lines below a
//! load line that was found in virtual time.

use plimsoll_model::OpRate;

use super::Look;
use crate::format::{UNKNOWN, count, duration, known, number, percent};
use crate::report::{Report, RowReport, RowView};
use crate::table::{Cell, Paint, Table, Tone, harmless, paragraph, toned};
use crate::{verdict, words};

/// Returns what the only result of a run on an embedded queue came to, as text that ends with a
/// line feed.
pub fn loopback(report: &Report, look: &Look) -> String {
    let (width, paint) = (usize::from(look.width.max(40)), Paint { color: look.color });
    let Some(RowView { stage, row, .. }) = report.only_row() else { return String::new() };
    let lasted = row.schedules.first().and_then(|of| of.schedule.lasted);
    let title = format!(
        "the same store over loopback: {} of real load, sockets and timers included",
        known(lasted, duration)
    );
    let mut out = format!("\n{}\n", paint.apply(Tone::Bold, &title));
    table(row).write(paint, &mut out);
    if let Some(check) = report.verification {
        paragraph("  verified  ", &words::verified(check), width, &mut out);
    }
    let because = verdict::because(stage).filter(|_| verdict::headline(report).is_some());
    if let Some(because) = because.map(str::to_owned).or_else(|| missed(row)) {
        let text = format!("{because}, so the times are not the store's alone");
        toned((Tone::Warn, paint), "  disturbed ", &text, width, &mut out);
    }
    if let Some(directory) = &report.run_directory {
        // Never broken, so that it can be copied.
        out.push_str(&format!("run kept in {}\n", harmless(directory)));
    }
    out
}

/// Returns which share of the operations was not issued on time, if it is more than may be.
fn missed(row: &RowReport) -> Option<String> {
    let of = &row.schedules.first().filter(|of| !of.schedule.is_kept())?.schedule;
    let share = of.missed_count() as f64 / of.offered_count? as f64 * 100.0;
    Some(format!("{} of the operations did not start on time", percent(share)))
}

/// Returns what theory says and what was seen.
fn table(row: &RowReport) -> Table {
    let total = &row.analysis.total;
    let offered = row.schedules.first().map(|of| of.schedule.rate_peak);
    let rate = |rate: Option<OpRate>| known(rate, |rate| number(rate.0));
    let mut table = Table::new(&["", "ops/s", "p50", "p99", "failed"]);
    let theory = row.theory;
    table.row(
        "theory",
        Tone::Plain,
        [
            rate(offered),
            known(theory, |of| duration(of.latency_p50)),
            known(theory, |of| duration(of.latency_p99)),
            UNKNOWN.to_owned(),
        ]
        .map(Cell::from),
    );
    let failed = total.stage.failed.count();
    let seen = [
        rate(total.rates.map(|rates| rates.ops)),
        known(total.latency.p50, duration),
        known(total.latency.p99, duration),
    ];
    let tone = if failed > 0 { Tone::Bad } else { Tone::Plain };
    let cells = seen.into_iter().map(Cell::from).chain([Cell::new(count(failed), tone)]);
    table.row("measured", Tone::Plain, cells);
    table
}
