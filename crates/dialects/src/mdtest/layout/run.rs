//! A command line of mdtest's that was run: what its table says of it, out of the report of the
//! run.

use plimsoll_analysis::RowAnalysis;
use plimsoll_report::{Report, StageReport};
use plimsoll_stats::Histogram;

use super::{FileSystem, MdtestReport, MdtestRow, MdtestStep};
use crate::mdtest::{MdtestPlan, PlannedRow};

/// What the table says of a run and its report does not.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// When it began, in words: `11/20/2026 21:14:33`.
    pub started: String,
    /// When it had ended.
    pub ended: String,
    /// The words of the command line.
    pub command: Vec<String>,
    /// The file system that it was on, as it was before.
    pub file_system: Option<FileSystem>,
}

impl MdtestReport {
    /// Returns what mdtest's table tells of a run, whose report has a row for each worker with
    /// whole distributions.
    pub fn of(plan: &MdtestPlan, report: &Report, facts: RunFacts) -> Self {
        let rows = report.stages.iter().flat_map(|stage| &stage.rows);
        let mut clients: Vec<String> = Vec::new();
        for client in rows.flat_map(|row| &row.served_by) {
            if !clients.contains(client) {
                clients.push(client.clone());
            }
        }
        if clients.is_empty() {
            clients.push("this machine".to_owned());
        }
        Self {
            tool_version: report.tool_version.clone().unwrap_or_default(),
            run_id: report.run_id.as_ref().map(ToString::to_string),
            started: facts.started,
            ended: facts.ended,
            command: facts.command,
            ranks: plan.ranks,
            clients: clients.clone(),
            kept: plan
                .rows
                .iter()
                .flat_map(|row| &row.stages)
                .filter_map(|stage| report.stages.get(*stage))
                .flat_map(|stage| stage.rows.iter().filter_map(|row| row.names_kept_count))
                .max(),
            path: plan.directories.join("@"),
            file_system: facts.file_system,
            shift: plan.shift,
            entries: plan.entries.clone(),
            iterations: plan.iterations,
            shows: plan.table,
            rows: plan.rows.iter().map(|row| table_row(row, plan, report, &clients)).collect(),
            notes: report.notes.clone(),
        }
    }
}

fn table_row(
    row: &PlannedRow,
    plan: &MdtestPlan,
    report: &Report,
    clients: &[String],
) -> MdtestRow {
    let stage = row.stages.first().and_then(|stage| plan.workload.work_stages().nth(*stage));
    let done = row.stages.iter().filter_map(|stage| report.stages.get(*stage));
    MdtestRow {
        label: row.label.to_owned(),
        name: stage.and_then(|stage| stage.name.clone()).unwrap_or_default(),
        shift: row.shift,
        looks_back: row.looks_back,
        clients: clients.to_vec(),
        iterations: done.map(|stage| step(stage, plan.table.rank_statistics)).collect(),
    }
}

/// Returns what one repetition of a row came to. Its ranks are the rows of the stage.
fn step(stage: &StageReport, has_rates: bool) -> MdtestStep {
    let rows = || stage.rows.iter().map(|row| &row.analysis);
    let kinds = || rows().filter_map(|row| row.kinds.first()).map(|kind| &kind.figures);
    let mut latency = Histogram::new();
    let histograms = kinds().filter_map(|kind| kind.latency.histogram.as_deref());
    histograms.for_each(|histogram| latency.merge(histogram));
    let dones = || kinds().filter_map(|kind| kind.last_done.map(|done| done.after));
    let began = rows().filter_map(RowAnalysis::began).min();
    let ended = rows().filter_map(|row| Some(row.began()? + row.took()?)).max();
    let rate = |row: &RowAnalysis| {
        let took = row.took().filter(|took| !took.is_zero())?;
        Some(row.kinds.first()?.figures.stage.ops_ok as f64 / took.as_secs_f64())
    };
    MdtestStep {
        ops_ok: kinds().map(|kind| kind.stage.ops_ok).sum(),
        failed: stage.failed_count(),
        took: began.zip(ended).map(|(began, ended)| ended.saturating_sub(began)),
        latency,
        first_done: dones().min(),
        last_done: dones().max(),
        rank_rates: if has_rates { rows().map(rate).collect() } else { Vec::new() },
    }
}
