//! A comparison on one screen: the headline, and of each kind the figures that decide.

use plimsoll_analysis::compare::{
    Comparison, Difference, GateResult, KindComparison, Metric, Presence, Row, Verdict,
};

use super::figure::{figure, percent_spread};
use super::{Depth, NO_VERDICT, Writer, headline, label, place_name, runs_text, too_few_runs};
use crate::format::known;
use crate::table::{Cell, Table, Tone, columns, elided_apart};
use crate::text::Look;

/// What is told of a kind, where it is known.
const METRICS: [Metric; 7] = [
    Metric::LoadLine,
    Metric::Capacity,
    Metric::Rate,
    Metric::Throughput,
    Metric::P50,
    Metric::P99,
    Metric::Errors,
];

/// How many columns of 80 the name of a kind takes at most.
const NAME_CHARS_MAX: usize = 28;

/// Returns what a comparison comes to as text that ends with a line feed.
pub fn brief(
    comparison: &Comparison,
    differences: &[Difference],
    gates: &[GateResult],
    look: &Look,
) -> String {
    let mut writer = Writer::begin(comparison, differences, look);
    writer.decisive();
    writer.presence();
    writer.warnings();
    writer.short_legend();
    writer.gates(gates);
    writer.remark("-v prints all figures");
    writer.out
}

/// Returns the rows of a kind that decide. The rate says of a kind what its throughput does, so
/// that stands with the total alone.
fn rows<'a>(kind: &'a KindComparison, all: &Comparison) -> Vec<&'a Row> {
    let is_some = |row: &Row| [&row.before, &row.after].iter().any(|side| side.mean != Some(0.0));
    let is_told = |row: &&Row| match row.metric {
        Metric::Throughput => is_some(row) && (kind.kind.is_none() || all.kinds.len() == 1),
        Metric::Errors => is_some(row),
        _ => true,
    };
    METRICS.iter().filter_map(|metric| kind.row(*metric)).filter(is_told).collect()
}

impl Writer<'_> {
    /// Writes the figures that decide, the total first.
    fn decisive(&mut self) {
        let both = self.comparison.kinds.iter().filter(|kind| kind.presence == Presence::Both);
        let mut kinds: Vec<&KindComparison> = both.collect();
        kinds.sort_by_key(|kind| kind.kind.is_some());
        let told: Vec<(String, Vec<&Row>)> = kinds
            .into_iter()
            .map(|kind| (place_name(kind.of.as_deref(), kind.kind), rows(kind, self.comparison)))
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
        let depth = Depth::of(told.iter().flat_map(|(_, rows)| rows.iter().copied()));
        let mut heading = vec!["", "before", "after"];
        heading.extend(depth.headings_short());
        let mut table = Table::new(&heading);
        let names: Vec<String> = told.iter().map(|(name, _)| name.clone()).collect();
        let names = elided_apart(&names, NAME_CHARS_MAX);
        let wide = names.iter().map(|name| columns(name)).max().unwrap_or(0);
        for (name, (_, rows)) in names.iter().zip(&told) {
            for (index, row) in rows.iter().enumerate() {
                let name = if index == 0 { name } else { "" };
                let gap = " ".repeat(wide - columns(name));
                let label = format!("{name}{gap}  {}", label(row.metric).1.trim_start());
                let unit = row.metric.unit();
                let side = |mean| Cell::from(known(mean, |value| figure(unit, value)));
                let cells = [side(row.before.mean), side(row.after.mean)];
                let more = depth.cells_short(row);
                table.row(&label, Tone::Plain, cells.into_iter().chain(more));
            }
        }
        if told.is_empty() {
            return;
        }
        self.table(&table);
        let unclear = told.iter().flat_map(|(name, rows)| {
            rows.iter().filter_map(move |row| {
                let Verdict::Unclear(evidence) = &row.verdict else { return None };
                Some(format!("{name} {} {}", headline::name(row.metric), runs_text(evidence)))
            })
        });
        self.runs_needed(&unclear.collect::<Vec<_>>());
    }

    /// Writes what the words of the table mean.
    fn short_legend(&mut self) {
        let rows = self.comparison.kinds.iter().flat_map(|kind| &kind.rows);
        let any = |of: fn(&Verdict) -> bool| rows.clone().any(|row| of(&row.verdict));
        let text = if any(|verdict| verdict.evidence().is_some()) {
            let margin = percent_spread(self.comparison.margin.percent());
            format!(
                "in %: the change and its 95 % interval; same: all of that within ± {margin} % \
                 (`margin`)"
            )
        } else if any(|verdict| matches!(verdict, Verdict::OneRun { .. })) {
            format!("{NO_VERDICT}; 3 runs a side give one")
        } else if any(|verdict| matches!(verdict, Verdict::TooFewRuns)) {
            too_few_runs(self.comparison).to_owned()
        } else {
            return;
        };
        self.out.push('\n');
        self.remark(&text);
    }
}
