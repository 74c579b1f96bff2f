//! The curve in letters: latency over offered rate.

use std::time::Duration;

use super::LoadLineReport;
use crate::format::{count, duration};

/// How many lines the plot has, without its axis.
const HEIGHT: usize = 9;
/// How wide the labels of the latency are.
const LABEL: usize = 9;
/// Columns of the plot at most.
const WIDTH_MAX: usize = 68;

/// The letters of the percentiles, drawn in this order: a later one hides an earlier one.
const LETTERS: [char; 3] = ['9', 'o', '.'];

/// Returns the curve, a line feed after each line; nothing from less than two points.
pub(super) fn plot(report: &LoadLineReport, width: usize) -> String {
    let probes: Vec<_> = report.probes.iter().filter(|probe| probe.is_of_curve()).collect();
    let percentiles = |probe: &super::ProbeFigure| {
        [probe.latency_ns_p99_9, probe.latency_ns_p99, probe.latency_ns_p50]
    };
    let values = || probes.iter().flat_map(|probe| percentiles(probe)).flatten();
    let (Some(low), Some(high)) = (values().min(), values().max()) else { return String::new() };
    if probes.len() < 2 {
        return String::new();
    }
    let columns = width.saturating_sub(LABEL + 2).clamp(20, WIDTH_MAX);
    let rate_max = probes.iter().filter_map(|probe| probe.offered_ops_per_sec).fold(0.0, f64::max);
    // Whole decades would leave most of it empty; the ends are those of the values.
    let (bottom, top) = ((low.max(1) as f64).ln(), (high.max(2) as f64).ln().max(0.1));
    let top = top.max(bottom + 0.1);
    let row = |ns: u64| {
        let part = ((ns.max(1) as f64).ln() - bottom) / (top - bottom);
        HEIGHT - 1 - (part * (HEIGHT - 1) as f64).round() as usize
    };
    let column = |rate: f64| (rate / rate_max * (columns - 1) as f64).round() as usize;
    let mut cells = vec![vec![' '; columns]; HEIGHT];
    if let Some(line) = &report.line {
        let at = column(line.ops_per_sec.min(rate_max));
        cells.iter_mut().for_each(|row| row[at] = '|');
    }
    for (at, letter) in LETTERS.into_iter().enumerate() {
        for probe in &probes {
            let (Some(rate), Some(ns)) = (probe.offered_ops_per_sec, percentiles(probe)[at]) else {
                continue;
            };
            cells[row(ns)][column(rate)] = letter;
        }
    }
    let mut out = String::new();
    for (at, line) in cells.iter().enumerate() {
        let part = (HEIGHT - 1 - at) as f64 / (HEIGHT - 1) as f64;
        let ns = (bottom + part * (top - bottom)).exp().round() as u64;
        let label = match at % 3 == 2 {
            true => duration(Duration::from_nanos(ns)),
            false => String::new(),
        };
        let line: String = line.iter().collect();
        out += &format!("{label:>LABEL$} |{}\n", line.trim_end());
    }
    out += &format!("{:LABEL$} +{}\n", "", "-".repeat(columns));
    let last = count(rate_max.round() as u64) + " ops/s";
    let middle = count((rate_max / 2.0).round() as u64);
    let gap = |from: usize, to: usize| " ".repeat(to.saturating_sub(from));
    let half = columns / 2 - middle.len() / 2;
    let first = format!("0{}{middle}", gap(1, half));
    let end = gap(first.len(), columns.saturating_sub(last.len()));
    out += &format!("{:LABEL$}  {first}{end}{last}\n", "");
    out
}
