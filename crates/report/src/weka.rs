//! The table in which WEKA's guide sums up its tests, and what they were run with.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll_analysis::KindAnalysis;
use plimsoll_model::OpKind;

use crate::format::plural;
use crate::format::{UNKNOWN, count, duration, known, number};
use crate::stage_words::{bytes_per_sec, ops_per_sec};
use crate::table::{Cell, Paint, Table, Tone, paragraph};
use crate::{Report, RowReport, StageReport};

const WIDTH: usize = 80;
const GIB: f64 = (1u64 << 30) as f64;

/// The lines of the table, each with the stages that it is taken from: one for reads and one for
/// writes.
const LINES: [(&str, Figure, [&str; 2]); 3] = [
    ("throughput", Figure::Throughput, ["read-throughput", "write-throughput"]),
    ("IOPS", Figure::Rate, ["read-iops", "write-iops"]),
    ("latency, average", Figure::Latency, ["read-latency", "write-latency"]),
];

/// The lines on names, each with its stage.
const NAMES: [(&str, &str, OpKind); 3] = [
    ("creates", "create", OpKind::Create),
    ("stats", "stat", OpKind::Stat),
    ("deletes", "delete", OpKind::Unlink),
];

/// What a line shows.
#[derive(Clone, Copy, PartialEq)]
enum Figure {
    Throughput,
    Rate,
    Latency,
}

impl Figure {
    /// Returns the figure of one stage as a number in the unit of the table.
    fn of(self, stage: &StageReport, kind: OpKind) -> Option<f64> {
        let all: Vec<&KindAnalysis> =
            stage.rows.iter().filter_map(|row| row.analysis.kind(kind)).collect();
        // What runs at once adds up.
        let sum = |each: &dyn Fn(&KindAnalysis) -> Option<f64>| -> Option<f64> {
            let figures: Option<Vec<f64>> = all.iter().map(|figures| each(figures)).collect();
            figures.filter(|figures| !figures.is_empty()).map(|figures| figures.iter().sum())
        };
        match self {
            Self::Throughput => Some(sum(&|figures| bytes_per_sec(figures))? / GIB),
            Self::Rate => sum(&|figures| ops_per_sec(figures)),
            Self::Latency => {
                let samples: u64 = all.iter().map(|figures| figures.figures.latency.samples).sum();
                let ns: f64 = all.iter().map(|figures| figures.figures.latency.sum_ns()).sum();
                (samples > 0).then(|| ns / samples as f64 / 1e3)
            }
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::Throughput => format!("{} GiB/s", number(value)),
            Self::Rate => number(value),
            Self::Latency => format!("{} µs", number(value)),
        }
    }
}

/// Returns the table and the parameters of its stages as text, or `None` when no stage has a name
/// that it knows.
///
/// Of a stage that was repeated the average is shown, as the guide does.
pub fn table(report: &Report) -> Option<String> {
    let known_names: BTreeSet<&str> =
        LINES.iter().flat_map(|line| line.2).chain(NAMES.map(|line| line.1)).collect();
    let is_known = |stage: &&StageReport| {
        let on_files = stage.rows.iter().all(|row| row.is_on_files);
        on_files && known_names.contains(stage.name.as_str())
    };
    let stages: Vec<&StageReport> = report.results().filter(is_known).collect();
    if stages.is_empty() {
        return None;
    }
    let mut out = String::new();
    results(&stages, &mut out);
    out.push('\n');
    parameters(&stages, &mut out);
    remark(&stages, &mut out);
    Some(out)
}

fn results(stages: &[&StageReport], out: &mut String) {
    let mean = |name: &str, figure: Figure, kind: OpKind| {
        let of_name = stages.iter().filter(|stage| stage.name == name);
        let values: Option<Vec<f64>> = of_name.map(|stage| figure.of(stage, kind)).collect();
        plimsoll_stats::mean(&values?)
    };
    let plain = Paint { color: false };
    let mut blocks = Table::new(&["WEKA's summary", "read", "write"]);
    for (label, figure, names) in LINES {
        let kinds = [OpKind::Read, OpKind::Write];
        let values = names.into_iter().zip(kinds).map(|(name, kind)| mean(name, figure, kind));
        let values: Vec<Option<f64>> = values.collect();
        if values.iter().any(Option::is_some) {
            let cells = values.into_iter().map(|value| known(value, |value| figure.text(value)));
            blocks.row(label, Tone::Plain, cells.map(Cell::from));
        }
    }
    blocks.write(plain, out);
    let rates = NAMES.map(|(label, name, kind)| (label, mean(name, Figure::Rate, kind)));
    if rates.iter().any(|(_, rate)| rate.is_some()) {
        let mut names = Table::new(&["names", "per second"]);
        for (label, rate) in rates.into_iter().filter_map(|(label, rate)| Some((label, rate?))) {
            names.row(label, Tone::Plain, [Cell::from(number(rate))]);
        }
        names.write(plain, out);
    }
    let repeated = stages.iter().map(|stage| stage.iteration).max().unwrap_or(0);
    if repeated > 0 {
        let times = count(u64::from(repeated) + 1);
        out.push_str(&format!("  averages of {times} repetitions\n"));
    }
}

/// Writes what the stages were run with, of repeated ones once.
fn parameters(stages: &[&StageReport], out: &mut String) {
    let heading = ["run with", "block", "jobs", "depth", "file size", "files", "runtime"];
    let mut table = Table::new(&heading);
    for stage in stages.iter().filter(|stage| stage.iteration == 0) {
        for row in &stage.rows {
            let text = |value: &Option<String>| value.clone().unwrap_or_else(|| UNKNOWN.into());
            let until_done = || "until done".to_owned();
            let cells = [
                text(&row.block),
                count(u64::from(row.analysis.workers_count)),
                known(row.depth.map(u64::from), count),
                text(&row.file_size),
                known(row.files_count, count),
                row.duration.map_or_else(until_done, |time: Duration| duration(time)),
            ];
            table.row(&stage.name, Tone::Plain, cells.map(Cell::from));
        }
    }
    table.write(Paint { color: false }, out);
}

/// Writes what can be said of caches between the stages on names.
fn remark(stages: &[&StageReport], out: &mut String) {
    let on_names = |stage: &&&StageReport| NAMES.iter().any(|line| line.1 == stage.name);
    let rows: Vec<(&str, &RowReport)> = stages
        .iter()
        .filter(on_names)
        .flat_map(|stage| stage.rows.iter().map(|row| (stage.name.as_str(), row)))
        .collect();
    if rows.is_empty() {
        return;
    }
    let clients: BTreeSet<&str> =
        rows.iter().flat_map(|(_, row)| row.served_by.iter().map(String::as_str)).collect();
    let counted = rows.iter().map(|(_, row)| row.analysis.clients.len()).max().unwrap_or(0);
    let text = if clients.len() < 2 && counted < 2 {
        "All metadata stages ran on one client, so its cache may have answered: in WEKA's guide \
        each stage runs on another client than the one before."
            .to_owned()
    } else {
        let served: BTreeSet<String> = rows
            .iter()
            .filter(|(_, row)| !row.served_by.is_empty())
            .map(|(name, row)| format!("{name} by {}", row.served_by.join(", ")))
            .collect();
        let served = served.into_iter().collect::<Vec<_>>().join("; ");
        let clients = plural(clients.len().max(counted) as u64, "client");
        let mut known =
            rows.iter().filter_map(|(name, row)| Some((name, row, row.names_kept_count?)));
        let is_known = known.clone().next().is_some();
        let kept = known.find(|(.., kept)| *kept > 0);
        let said = match (is_known, kept, served.is_empty()) {
            (true, None, _) => {
                ", each stage on what another one had in the stage before: caches of \
                                clients are excluded."
                    .to_owned()
            }
            (true, Some((name, row, kept)), _) => format!(
                ", and in {name} {} of {} worked on names that their own client had in the stage \
                 before, so that its caches may have answered: no client may have more than half \
                 of the jobs, and jobs move on by as many as the largest has.",
                count(u64::from(kept)),
                plural(u64::from(row.analysis.workers_count), "job"),
            ),
            (false, _, true) => ".".to_owned(),
            (false, _, false) => format!(
                ": {served}. Caching is excluded where a client was given what another had made."
            ),
        };
        format!("{clients} served the stages on names{said}")
    };
    paragraph("  ", &text, WIDTH, out);
}

#[cfg(test)]
#[path = "weka_tests.rs"]
mod tests;
