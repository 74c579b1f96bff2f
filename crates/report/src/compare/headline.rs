//! What a comparison comes to, in a line or two: first what became worse, then what became better.

use plimsoll_analysis::compare::{
    Comparison, Evidence, KindComparison, Metric, Presence, RUNS_MAX, Row, Verdict,
};

use super::figure::{percent_signed, percent_spread, signed};
use super::place_name;
use crate::format::{count, known};

/// What a headline tells of, the most important first.
const METRICS: [Metric; 5] =
    [Metric::LoadLine, Metric::P99, Metric::P50, Metric::Rate, Metric::Errors];
/// A headline has at most as many kinds as this; the others are in the tables.
const KINDS_MAX: usize = 2;

/// Returns the headline: a sentence for each of the kinds that changed most, by its verdicts.
pub(crate) fn headline(comparison: &Comparison) -> Vec<String> {
    let both = comparison.kinds.iter().filter(|kind| kind.presence == Presence::Both);
    let mut kinds: Vec<&KindComparison> = both.collect();
    // All kinds together say less than each of them.
    if kinds.iter().any(|kind| kind.kind.is_some()) {
        kinds.retain(|kind| kind.kind.is_some());
    }
    kinds.sort_by_key(|kind| told(kind).iter().map(|row| rank(&row.verdict)).min());
    let more = kinds.len().saturating_sub(KINDS_MAX);
    let mut lines: Vec<String> =
        kinds.iter().take(KINDS_MAX).filter_map(|kind| sentence(kind, comparison)).collect();
    if let Some(last) = lines.last_mut().filter(|_| more > 0) {
        last.push_str(&format!(" (and {more} more below)"));
    }
    lines
}

/// Returns how many runs a side would tell of an unclear change.
pub(super) fn runs_needed(evidence: &Evidence) -> String {
    match evidence.runs_needed {
        Some(runs) => format!("about {} runs a side would tell", count(u64::from(runs))),
        None => format!("more than {} runs a side would be needed", count(u64::from(RUNS_MAX))),
    }
}

/// Returns what a metric is called in a sentence.
pub(super) fn name(metric: Metric) -> String {
    metric.name().replace('-', " ")
}

/// Returns the rows of a kind that a headline tells of.
fn told(kind: &KindComparison) -> Vec<&Row> {
    METRICS.iter().filter_map(|metric| kind.row(*metric)).collect()
}

/// Returns the order of verdicts in a headline.
fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Differs { better: false, .. } => 0,
        Verdict::Differs { better: true, .. } => 1,
        Verdict::Unclear(_) => 2,
        Verdict::Same(_) => 3,
        Verdict::OneRun { .. } | Verdict::TooFewRuns | Verdict::ClientLimited(_) => 4,
        Verdict::Unknown => 5,
    }
}

fn sentence(kind: &KindComparison, comparison: &Comparison) -> Option<String> {
    let mut rows = told(kind);
    rows.sort_by_key(|row| rank(&row.verdict));
    // That no operation fails, as before, is not what changed.
    let is_as_ever = |row: &&Row| row.metric == Metric::Errors && row.absolute == Some(0.0);
    rows.retain(|row| !is_as_ever(row));
    let end = match rows.first()?.verdict {
        Verdict::OneRun { .. } => "; one run a side gives no verdict",
        Verdict::TooFewRuns => "; a verdict needs 3 runs a side",
        Verdict::ClientLimited(_) => "; no verdict, as a client was the limit",
        _ => "",
    };
    let margin = percent_spread(comparison.margin.percent());
    let parts: Vec<String> = rows.iter().filter_map(|row| part(row, &margin)).collect();
    let name = place_name(kind.of.as_deref(), kind.kind);
    (!parts.is_empty()).then(|| format!("{name}: {}{end}", parts.join(", ")))
}

/// Returns what is told of one metric.
fn part(row: &Row, margin: &str) -> Option<String> {
    let name = name(row.metric);
    let change = || {
        let absolute = known(row.absolute, |change| signed(row.metric.unit(), change));
        row.percent.map_or(absolute, |percent| format!("{} %", percent_signed(percent)))
    };
    match &row.verdict {
        Verdict::Differs { evidence, better } => {
            let word = if *better { "better" } else { "worse" };
            let range = evidence.percent.map(|range| {
                let [a, b] = [range.low.abs(), range.high.abs()];
                let [low, high] = [a.min(b), a.max(b)].map(percent_spread);
                format!(" ({low} to {high})")
            });
            let by = change();
            let by = by.trim_start_matches(['+', '-', '−']);
            Some(format!("{name} {word} by {by}{}", range.unwrap_or_default()))
        }
        Verdict::Unclear(evidence) => Some(format!("{name} unclear: {}", runs_needed(evidence))),
        Verdict::Same(_) => Some(format!("{name} the same within {margin} %")),
        Verdict::OneRun { .. } | Verdict::TooFewRuns | Verdict::ClientLimited(_) => {
            Some(format!("{name} {}", change()))
        }
        Verdict::Unknown => None,
    }
}
