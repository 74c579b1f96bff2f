//! The report as text: mdtest's lines and tables first, then what it leaves out.

use std::time::Duration;

use plimsoll_report::format::{UNKNOWN, count, duration, known, number};
use plimsoll_report::table::{Cell, Paint, Table, Tone, harmless, paragraph};
use plimsoll_stats::Histogram;

use super::{FileSystem, MdtestReport, MdtestRow, MdtestStep, Summary};

/// The columns of remarks.
const WIDTH: usize = 100;
/// The percentiles of a row, in percent.
const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// Returns the report as text that ends with a line feed.
pub fn render(report: &MdtestReport) -> String {
    let mut out = head(report);
    if report.shows.each_iteration {
        iterations(report, &mut out);
    }
    let of = report.iterations;
    if report.shows.rates {
        let title = format!("SUMMARY rate (in ops/sec): (of {of} iterations)");
        let rows = report.rows.iter().map(|row| (row.label.as_str(), row.rates()));
        out.push_str(&table(&title, rows));
    }
    if report.shows.times {
        // mdtest says `ms/op` and prints the seconds of the whole step.
        let title = format!("SUMMARY time (in seconds): (of {of} iterations)");
        let rows = report.rows.iter().map(|row| (row.label.as_str(), row.times()));
        out.push_str(&table(&title, rows));
    }
    out.push_str(&format!("-- finished at {} --\n\n", harmless(&report.ended)));
    latencies(report, &mut out);
    rank_statistics(report, &mut out);
    served(report, &mut out);
    remarks(report, &mut out);
    out
}

/// Returns what stands above the tables.
fn head(report: &MdtestReport) -> String {
    let MdtestReport { ranks, clients, tool_version, shift, entries, .. } = report;
    let words: Vec<String> = report
        .command
        .iter()
        .enumerate()
        .map(|(index, word)| if index == 0 { word.clone() } else { format!("'{word}'") })
        .collect();
    let mut out = format!("-- started at {} --\n\n", harmless(&report.started));
    out.push_str(&format!(
        "plimsoll-{} as mdtest was launched with {ranks} total task(s) on {} node(s)\n",
        harmless(tool_version),
        clients.len().max(1)
    ));
    out.push_str(&format!("Command line used: {}\n", harmless(&words.join(" "))));
    out.push_str(&format!("Path                : {}\n", harmless(&report.path)));
    if let Some(file_system) = &report.file_system {
        out.push_str(&format!("FS                  : {}\n", fullness(file_system)));
    }
    if *shift > 0 {
        out.push_str(&format!("Shifting ranks by {shift} for each step.\n"));
    }
    out.push_str(&format!("{ranks} tasks, {}\n", harmless(entries)));
    out
}

fn fullness(of: &FileSystem) -> String {
    let used = |free: u64, all: u64| match all {
        0 => format!("{UNKNOWN}%"),
        _ => format!("{:.1}%", (1.0 - free as f64 / all as f64) * 100.0),
    };
    let gib = of.size_bytes as f64 / (1u64 << 30) as f64;
    let (size, unit) = if gib > 1024.0 { (gib / 1024.0, "TiB") } else { (gib, "GiB") };
    let inodes = of.inodes_count as f64 / (1u64 << 20) as f64;
    let used_bytes = used(of.free_bytes, of.size_bytes);
    let used_inodes = used(of.inodes_free_count, of.inodes_count);
    format!(
        "{size:.1} {unit}   Used FS: {used_bytes}   Inodes: {inodes:.1} Mi   Used Inodes: \
         {used_inodes}"
    )
}

/// Writes each iteration as mdtest's `-v` does, but of all ranks.
fn iterations(report: &MdtestReport, out: &mut String) {
    out.push_str("\n   Operation               Duration              Rate\n");
    out.push_str("   ---------               --------              ----\n");
    for index in 0..report.iterations as usize {
        out.push_str(&format!("iteration {}\n", index + 1));
        for row in &report.rows {
            let Some(step) = row.iterations.get(index) else { continue };
            let took = decimals(step.took.map(|took| took.as_secs_f64()));
            let rate = decimals(step.rate());
            out.push_str(&format!("   {:<18}: {took} sec, {rate} ops/sec\n", row.label));
        }
    }
}

/// Returns one of mdtest's tables.
pub(super) fn table<'a>(
    title: &str,
    rows: impl Iterator<Item = (&'a str, Option<Summary>)>,
) -> String {
    let mut out = format!(
        "\n{title}\n   Operation     {:15} Max            Min           Mean        Std Dev\n   \
         ---------      {:15}---            ---           ----        -------\n",
        "", ""
    );
    for (label, summary) in rows {
        let figures = [
            summary.map(|of| of.max),
            summary.map(|of| of.min),
            summary.map(|of| of.mean),
            summary.map(|of| of.std_dev),
        ];
        let figures = figures.map(decimals).join(" ");
        out.push_str(&format!("   {label:<22} {figures}\n"));
    }
    out
}

fn decimals(value: Option<f64>) -> String {
    format!("{:>14}", known(value, |value| format!("{value:.3}")))
}

/// Writes what mdtest does not: latencies, failures, and when the first and the last rank were
/// done.
fn latencies(report: &MdtestReport, out: &mut String) {
    let heading = [
        "latency",
        "ops",
        "failed",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "first done",
        "last done",
    ];
    let mut table = Table::new(&heading);
    for row in &report.rows {
        for (index, step) in row.iterations.iter().enumerate() {
            let label = match row.iterations.len() {
                1 => row.label.clone(),
                many => format!("{} {}/{many}", row.label, index + 1),
            };
            table.row(&label, Tone::Plain, latency_cells(step));
        }
    }
    table.write(Paint { color: false }, out);
}

fn latency_cells(step: &MdtestStep) -> Vec<Cell> {
    let time = |time: Option<Duration>| known(time, duration);
    let mut cells = vec![count(step.ops_ok), count(step.failed)];
    cells.extend(percentiles(&step.latency).into_iter().map(time));
    cells.push(time(step.latency.max().map(Duration::from_nanos)));
    cells.extend([time(step.first_done), time(step.last_done)]);
    cells.into_iter().map(Cell::from).collect()
}

/// Returns the times of [`PERCENTS`].
fn percentiles(times: &Histogram) -> [Option<Duration>; 4] {
    let times = plimsoll_analysis::Times::of(times, false);
    PERCENTS.map(|percent| times.percentile(percent))
}

fn rank_statistics(report: &MdtestReport, out: &mut String) {
    let mut table = Table::new(&["ranks (ops/s)", "slowest", "fastest", "mean"]);
    let mut is_empty = true;
    for row in &report.rows {
        let Some(of) = row.rank_rates() else { continue };
        is_empty = false;
        let cells = [of.min, of.max, of.mean].map(|rate| Cell::from(number(rate)));
        table.row(&row.label, Tone::Plain, cells);
    }
    if !is_empty {
        out.push('\n');
        table.write(Paint { color: false }, out);
    }
}

/// Writes which client did each step, on whose entries.
fn served(report: &MdtestReport, out: &mut String) {
    out.push_str("\nserved by\n");
    let width = report.rows.iter().map(|row| row.label.len()).max().unwrap_or(0);
    for row in &report.rows {
        let clients = match row.clients.as_slice() {
            [] => UNKNOWN.to_owned(),
            clients => harmless(&clients.join(", ")),
        };
        out.push_str(&format!("  {:<width$}  {clients}{}\n", row.label, whose(row)));
    }
}

fn whose(row: &MdtestRow) -> String {
    match (row.looks_back, row.shift) {
        (false, _) => String::new(),
        (true, 0) => "; each rank on its own entries".to_owned(),
        (true, shift) => format!("; rank r on the entries of rank r + {shift}"),
    }
}

fn remarks(report: &MdtestReport, out: &mut String) {
    out.push('\n');
    if let Some((_, caching)) = report.caching() {
        paragraph("caching  ", &caching, WIDTH, out);
    }
    match report.failed_count() {
        0 => {}
        failed => {
            let text = format!("{} operations, which are in no rate and no latency", count(failed));
            paragraph("failed   ", &text, WIDTH, out);
        }
    }
    for note in &report.notes {
        paragraph("note     ", &harmless(note), WIDTH, out);
    }
}
