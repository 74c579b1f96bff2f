//! The outage ledger of a row in words, the same in every kind of report.

use std::time::Duration;

use plimsoll_analysis::{BrownOuts, FailureSpan, Failures, Gap, Ledger, Outage};
use plimsoll_model::Moment;

use crate::format::{count, duration, number, plural};
use crate::report::RowView;

/// How many outages are told one by one.
const OUTAGES_TOLD_MAX: usize = 8;
/// How many endpoints or clients are named.
const NAMES_MAX: usize = 4;

/// Returns what the ledger of a row tells, a name and a text each; nothing of a sound row. Moments
/// are told as times since the stage began.
pub(crate) fn lines(report: &RowView<'_>) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let is_first = report.stage.rows.first().is_some_and(|first| std::ptr::eq(first, report.row));
    let events = report.stage.events.iter().filter(|_| is_first);
    lines.extend(events.map(|of| ("event", of.line(report.row.analysis.started))));
    let Some(ledger) = &report.row.analysis.ledger else { return lines };
    lines.extend(stood_still(report, ledger).filter(|_| is_first).map(|text| ("client", text)));
    let told = ledger.outages.iter().take(OUTAGES_TOLD_MAX);
    lines.extend(told.map(|of| ("outage", outage(report, of))));
    let more = ledger.outages_count.saturating_sub(OUTAGES_TOLD_MAX as u64);
    if more > 0 {
        lines.push(("outages", format!("{} more, which the JSON tells", count(more))));
    }
    if let Some(failures) = ledger.failures.filter(|_| ledger.outages.is_empty()) {
        lines.push(("failures", self::failures(report, &failures, ledger)));
    }
    if let Some(gap) = gap(report, ledger) {
        lines.push(("gap", gap));
    }
    let of = ledger.brown_outs.as_ref().filter(|of| !of.stretches.is_empty());
    lines.extend(of.map(|of| ("brown-outs", brown_outs(report, of))));
    lines
}

/// Returns the longest time without a success where it is no outage and is told with no failure,
/// but far above what is usual: over ten times the p99, and ten times the time between two
/// successes, and 50 ms.
fn gap(report: &RowView<'_>, ledger: &Ledger) -> Option<String> {
    const TIMES_MIN: u32 = 10;
    /// A shorter one is within what a busy machine does.
    const GAP_MIN: Duration = Duration::from_millis(50);
    let is_told = !ledger.outages.is_empty() || ledger.failures.is_some();
    let gap = ledger.gap_longest.filter(|_| !is_told)?;
    let total = &report.row.analysis.total;
    let ok = u32::try_from(total.counts.ok).unwrap_or(u32::MAX);
    let between = report.row.analysis.span.length().checked_div(ok)?;
    let usual = total.latency.p99?.max(between).saturating_mul(TIMES_MIN).max(GAP_MIN);
    (gap.length.saturating_sub(gap.stood_still) > usual).then(|| {
        let (length, from) = (gap_length(gap), offset(report, gap.from));
        format!("the longest time without a success was {length}, from {from}")
    })
}

/// Returns how long a gap is, and for how long of it the client stood still.
fn gap_length(gap: Gap) -> String {
    let length = duration(gap.length);
    match gap.stood_still.is_zero() {
        true => length,
        false => format!("{length} ({} of it the client's)", duration(gap.stood_still)),
    }
}

/// Returns when clients stood still, if they did.
fn stood_still(report: &RowView<'_>, ledger: &Ledger) -> Option<String> {
    let longest = ledger.standstills.iter().max_by_key(|of| of.length)?;
    let who =
        longest.client.map_or(String::new(), |client| format!(" ({})", report.client(client)));
    let (length, from) = (duration(longest.length), offset(report, longest.from));
    let which = match ledger.standstills_count {
        0 | 1 => format!("for {length} from {from}"),
        times => {
            let sum = duration(ledger.stood_still);
            format!("{}, {sum} in all, the longest {length} from {from}", plural(times, "time"))
        }
    };
    Some(format!(
        "plimsoll itself stood still {which}{who}: stopped, starved or its machine paused; rates and \
         latencies of that time include it, outages do not"
    ))
}

/// Returns how long after the stage's start a moment was: `+4.20 s`.
pub(crate) fn offset(report: &RowView<'_>, at: Moment) -> String {
    let since = at.since(report.row.analysis.started);
    format!("+{}", duration(since))
}

/// Returns failures by class: `12 throttled, 3 timeout`.
pub(crate) fn by_class(failed: &Failures) -> String {
    let classes = failed.classes();
    let classes = classes.map(|(class, failed)| format!("{} {}", count(failed), class.name()));
    classes.collect::<Vec<_>>().join(", ")
}

fn outage(report: &RowView<'_>, of: &Outage) -> String {
    let mut who = String::new();
    if let Some(endpoint) = of.endpoint {
        who = format!("at {}, while others went on: ", report.endpoint(endpoint));
    }
    if let Some(client) = of.client {
        who = format!("of {}, while others went on: ", report.client(client));
    }
    let began = report.row.analysis.started;
    let from = match of.last_success {
        Some(at) => offset(report, at),
        None => "the start".to_owned(),
    };
    let until = match of.next_success {
        Some(at) => offset(report, at),
        None => format!("the end ({})", offset(report, of.until(began))),
    };
    let own = match of.stood_still.is_zero() {
        true => String::new(),
        false => format!(" ({} of it the client's)", duration(of.stood_still)),
    };
    let length = duration(of.gap);
    let mut text = format!("{who}no success for {length}{own}, from {from} to {until}");
    match of.first_failure {
        Some(first) => {
            let (first, classes) = (offset(report, first), by_class(&of.failed));
            text += &format!("; failed: {classes}, first at {first}");
            text += &places(report, of);
        }
        None => text += "; nothing failed, operations waited",
    }
    if let Some(rate) = of.rate_before {
        let rate = number(rate);
        text += &match of.regained_after {
            Some(Duration::ZERO) => format!("; back to 95 % of {rate} ops/s at once"),
            Some(after) => format!("; back to 95 % of {rate} ops/s {} later", duration(after)),
            None => format!("; not back at 95 % of {rate} ops/s by the end"),
        };
    }
    text
}

/// Returns where it failed, where there are several endpoints or clients.
fn places(report: &RowView<'_>, of: &Outage) -> String {
    let mut text = String::new();
    if report.endpoints.len() > 1 && of.endpoint.is_none() {
        let each = of.failed_by_endpoint.iter();
        text += &named(" at ", each.map(|at| (report.endpoint(at.endpoint), at.count)).collect());
    }
    if report.clients.len() > 1 && of.client.is_none() {
        let each = of.failed_by_client.iter();
        text += &named(" of ", each.map(|of| (report.client(of.client), of.count)).collect());
    }
    text
}

fn named(lead: &str, mut all: Vec<(String, u64)>) -> String {
    if all.is_empty() {
        return String::new();
    }
    all.sort_by_key(|(_, failed)| std::cmp::Reverse(*failed));
    let more = all.len().saturating_sub(NAMES_MAX);
    let each = all.iter().take(NAMES_MAX);
    let each: Vec<String> =
        each.map(|(name, failed)| format!("{name} ({})", count(*failed))).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(",{lead}{}{more}", each.join(", "))
}

fn failures(report: &RowView<'_>, of: &FailureSpan, ledger: &Ledger) -> String {
    let before = of.success_before.map_or(String::new(), |at| {
        format!(" (the last success before it at {})", offset(report, at))
    });
    let gap = ledger.gap_longest.map_or(String::new(), |gap| {
        let (length, from) = (gap_length(gap), offset(report, gap.from));
        format!("; the longest time without a success is {length}, from {from}")
    });
    format!(
        "the first at {}{before}, the last at {}{gap}",
        offset(report, of.first),
        offset(report, of.last)
    )
}

fn brown_outs(report: &RowView<'_>, of: &BrownOuts) -> String {
    let all: Duration = of.stretches.iter().map(|of| of.length).sum();
    let limit = match of.limit_is_asked {
        true => "as asked",
        false => "five times the usual",
    };
    let worst = of.stretches.iter().max_by_key(|of| of.p99_max);
    let worst = worst.map_or(String::new(), |of| {
        format!("; worst from {} on: {}", offset(report, of.from), duration(of.p99_max))
    });
    format!(
        "p99 over {} ({limit}) in {}, for {} in all{worst}",
        duration(of.limit),
        plural(of.stretches_count, "brown-out"),
        duration(all)
    )
}

#[cfg(test)]
mod tests {
    use plimsoll_analysis::StoodStill;
    use plimsoll_model::{ErrorClass, OpKind, OpRecord};

    use super::*;
    use crate::fixture;
    use crate::html::{self, Environment};
    use crate::text::{self, Look};

    /// Four workers, PUTs of 5 ms for 9 s; from 3 s to 5 s each fails after 100 ms.
    fn outage() -> crate::Report {
        let mut ops: Vec<OpRecord> = Vec::new();
        for worker in 0..4 {
            let mut now = 0;
            while now < 9_000 {
                let is_down = (3_000..5_000).contains(&now);
                let took = if is_down { 100 } else { 5 };
                let op = fixture::op(OpKind::Put, worker, now, took);
                let outcome = if is_down { ErrorClass::Connect } else { ErrorClass::Ok };
                ops.push(OpRecord { outcome, ..op });
                now += took;
            }
        }
        fixture::report("s3 put", fixture::analysis(&ops, 9_000, 4), 4)
    }

    #[test]
    fn an_outage_is_told_in_80_columns_and_drawn() {
        let report = outage();
        let text = text::render(&report, &Look { width: 80, color: false });
        let told = "no success for 2.00 s, from +3.00 s to +5.00 s; failed: 80 connect";
        let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(told), "{text}");
        assert!(flat.contains("back to 95 % of 800 ops/s at once"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        // What the ledger says is said once.
        assert!(!text.contains("no operation succeeded for"), "{text}");
        let html = html::render(&report, &Environment::default());
        assert!(html.contains(told), "not in the page");
        let json = crate::json::value(&report);
        let outage = &json["stages"][1]["rows"][0]["ledger"]["outages"][0];
        assert_eq!(outage["gap_ns"], 2_005_000_000u64);
        assert_eq!(outage["failed_by_class"]["connect"], 80);
    }

    #[test]
    fn a_client_that_stood_still_is_told_and_charged_to_nobody() {
        let gap = Gap {
            from: Moment::from_ns(3_000_000_000),
            length: Duration::from_millis(2_010),
            stood_still: Duration::from_millis(1_960),
        };
        let of = |from: u64, length: u64| StoodStill {
            client: None,
            from: Moment::from_ns(from * 1_000_000),
            length: Duration::from_millis(length),
        };
        let mut report = outage();
        let ledger = report.stages[1].rows[0].analysis.ledger.as_mut().unwrap();
        (ledger.gap_longest, ledger.outages) = (Some(gap), Vec::new());
        ledger.standstills = vec![of(3_040, 1_960)];
        (ledger.standstills_count, ledger.stood_still) = (1, Duration::from_millis(1_960));
        let told = |report: &crate::Report| lines(&fixture::view(report));
        let [(name, once), (_, failures)] = &told(&report)[..] else { panic!("{report:?}") };
        assert_eq!(*name, "client");
        assert!(
            once.starts_with("plimsoll itself stood still for 1.96 s from +3.04 s: "),
            "{once}"
        );
        assert!(failures.contains("is 2.01 s (1.96 s of it the client's), from +3.00 s"));
        let ledger = report.stages[1].rows[0].analysis.ledger.as_mut().unwrap();
        ledger.failures = None;
        ledger.standstills.push(of(7_000, 300));
        (ledger.standstills_count, ledger.stood_still) = (2, Duration::from_millis(2_260));
        let [(_, twice)] = &told(&report)[..] else { panic!("{report:?}") };
        assert!(
            twice.contains("stood still 2 times, 2.26 s in all, the longest 1.96 s"),
            "{twice}"
        );
    }

    #[test]
    fn a_long_time_without_a_success_is_told_though_it_is_no_outage() {
        // One worker, 10 ms each, and one operation of 400 ms: it may be slow by itself.
        let mut ops: Vec<OpRecord> = Vec::new();
        let mut now = 0;
        while now < 9_000 {
            let took = if now == 3_000 { 400 } else { 10 };
            ops.push(fixture::op(OpKind::Get, 0, now, took));
            now += took;
        }
        let report = fixture::report("s3 get", fixture::analysis(&ops, 9_000, 1), 1);
        let told = "the longest time without a success was 400 ms, from +3.00 s".to_owned();
        assert_eq!(lines(&fixture::view(&report)), [("gap", told)]);
    }

    #[test]
    fn a_sound_run_tells_nothing() {
        assert_eq!(lines(&fixture::view(&fixture::steady())), []);
    }
}
