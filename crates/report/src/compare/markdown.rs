//! A comparison for a pull request: Markdown as GitHub and GitLab show it.

use plimsoll_analysis::compare::{
    Comparison, Difference, GateResult, KindComparison, Metric, Outcome, Presence, Row,
};

use super::figure::figure;
use super::headline::headline;
use super::{change_text, doubt_text, found, label, outcome, place_name, verdict_text, warnings};
use crate::format::{UNKNOWN, known};
use crate::table::harmless;

/// What a table has, where it is known.
const METRICS: [Metric; 8] = [
    Metric::LoadLine,
    Metric::Capacity,
    Metric::Rate,
    Metric::Throughput,
    Metric::P50,
    Metric::P99,
    Metric::P99_9,
    Metric::Errors,
];

/// Returns the comparison as Markdown: the headline, a table a kind, gates, parameters that differ.
pub fn markdown(
    comparison: &Comparison,
    differences: &[Difference],
    gates: &[GateResult],
) -> String {
    let mut out = String::new();
    for line in headline(comparison) {
        out.push_str(&format!("**{}**\n\n", cell(&line)));
    }
    let runs = |runs: &[String]| {
        let names: Vec<String> = runs.iter().map(|run| cell(run)).collect();
        names.join(", ")
    };
    let (before, after) = (runs(&comparison.before), runs(&comparison.after));
    out.push_str(&format!("Before: {before}. After: {after}.\n"));
    for kind in comparison.kinds.iter().filter(|kind| kind.presence == Presence::Both) {
        table_of(kind, &mut out);
    }
    if !gates.is_empty() {
        out.push_str("\n| gate | on | outcome | found |\n|---|---|---|---:|\n");
        gates.iter().for_each(|gate| out.push_str(&gate_row(gate)));
    }
    if !differences.is_empty() {
        out.push_str("\n| parameter that differs | before | after |\n|---|---|---|\n");
        for Difference { name, before, after } in differences {
            let [before, after] = [before, after].map(|values| match values.is_empty() {
                true => UNKNOWN.to_owned(),
                false => cell(&values.join(", ")),
            });
            out.push_str(&format!("| {} | {before} | {after} |\n", cell(name)));
        }
    }
    for text in warnings(comparison) {
        out.push_str(&format!("\nWarning: {}\n", cell(&text)));
    }
    out
}

fn table_of(kind: &KindComparison, out: &mut String) {
    let name = cell(&place_name(kind.of.as_deref(), kind.kind));
    out.push_str(&format!("\n| {name} | before | after | change, % | verdict |\n"));
    out.push_str("|---|---:|---:|---:|---|\n");
    let is_told = |row: &&Row| row.metric != Metric::Throughput || kind.moves_bytes;
    for row in METRICS.iter().filter_map(|metric| kind.row(*metric)).filter(is_told) {
        let unit = row.metric.unit();
        let side = |mean| known(mean, |value| figure(unit, value));
        let (change, verdict) = (change_text(row), verdict_text(&row.verdict));
        let (_, label) = label(row.metric);
        let (before, after) = (side(row.before.mean), side(row.after.mean));
        let label = label.trim();
        out.push_str(&format!("| {label} | {before} | {after} | {change} | {verdict} |\n"));
    }
}

fn gate_row(result: &GateResult) -> String {
    let on = cell(&place_name(result.of.as_deref(), result.kind));
    let (word, _) = outcome(result.outcome);
    let why = match result.outcome {
        Outcome::Inconclusive(doubt) => format!(": {}", doubt_text(doubt)),
        Outcome::Pass | Outcome::Worse => String::new(),
    };
    let gate = cell(&result.gate);
    format!("| {gate} | {on} | {word}{why} | {} |\n", found(result))
}

/// Returns a text that no table and no page takes for anything else.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in harmless(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' | '@' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
