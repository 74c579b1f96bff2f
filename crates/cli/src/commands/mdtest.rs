//! `plimsoll as mdtest`: mdtest's command line and table, on our engine.
#![expect(clippy::disallowed_methods, reason = "cli writes the files it is asked for")]

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use plimsoll_analysis::RowAnalysis;
use plimsoll_dialects::mdtest::layout::{
    FileSystem, MdtestReport, MdtestRow, MdtestShows, MdtestStep, json, text,
};
use plimsoll_dialects::mdtest::{self, MdtestPlan, PlannedRow};
use plimsoll_record::schema::Manifest;

use crate::args::DESTROYS;
use crate::args::file::MdtestArgs;
use crate::conducted::{self, fresh_seed};
use crate::lower_files::as_plan;
use crate::said;
use crate::ui::Ui;
use plimsoll_conduct::{Consent, Recording, RunTime};
use plimsoll_results::{AnalyzedStage, Asked, Record, Rows};

/// Takes mdtest's command line and prints its table.
pub(crate) fn as_mdtest(args: &MdtestArgs) -> Result<ExitCode> {
    let mut plan = mdtest::from_args(&args.words)?;
    plan.spec.seed = plan.seed.unwrap_or_else(|| fresh_seed(RunTime::machine().wall_epoch));
    let ui = Ui::new(&args.output.print);
    let file = as_plan(&plan.spec)?;
    if args.explain {
        let notes: String = plan.notes.iter().map(|note| format!("# {note}\n")).collect();
        ui.result(&format!("{notes}{}", file.to_yaml()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let file_system = plan.directories.first().and_then(|path| file_system(path));
    let show = |record: &mut Recording, ui: &Ui| {
        let told = told(&plan, file_system, record)?;
        let document = || format!("{:#}\n", json::render(&told));
        if let Some(path) = &args.json_file {
            fs::write(path, document())
                .with_context(|| format!("--json-file: cannot write {}", path.display()))?;
        }
        ui.result(&if args.output.print.json { document() } else { text::render(&told) })?;
        Ok(())
    };
    // Its names lie in directories of the run's own.
    let consent = Consent { given: false, flag: DESTROYS };
    let settings = conducted::Settings {
        files: Some(&args.conduct),
        max_error_rate: args.conduct.max_error_rate.0,
        notes: plan.notes.iter().map(ToString::to_string).collect(),
        show: Some(&show),
        ..conducted::Settings::plain(&args.output, consent)
    };
    conducted::run(&file, &settings)
}

/// Returns what mdtest's table tells of a run.
fn told(
    plan: &MdtestPlan,
    file_system: Option<FileSystem>,
    record: &Recording,
) -> Result<MdtestReport> {
    let asked = Asked { rows: Rows::Workers, distributions: true, ..Asked::default() };
    let clones = Record::of_run(&record.directory)?.analyze(&asked)?;
    let manifest = &record.manifest;
    let client = manifest.machine.hostname.clone().unwrap_or_else(|| "this machine".to_owned());
    Ok(MdtestReport {
        tool_version: manifest.tool.version.clone(),
        run_id: Some(manifest.run_id.clone()),
        started: civil(manifest.started_unix_ns),
        ended: civil(manifest.started_unix_ns + record.now().as_ns()),
        command: said::command_line(),
        ranks: plan.ranks,
        clients: vec![client.clone()],
        path: plan.directories.join("@"),
        file_system,
        shift: plan.shift,
        entries: plan.entries.clone(),
        iterations: plan.iterations,
        shows: MdtestShows {
            rates: plan.table.rates,
            times: plan.table.times,
            each_iteration: plan.table.each_iteration,
        },
        rows: plan
            .rows
            .iter()
            .map(|row| table_row(row, plan, &clones, manifest, &client))
            .collect(),
        notes: manifest.notes.clone(),
    })
}

/// Returns a time as mdtest writes it, in the machine's time zone.
fn civil(unix_ns: u64) -> String {
    let at = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    at.to_zoned(TimeZone::system()).strftime("%m/%d/%Y %H:%M:%S").to_string()
}

fn file_system(path: &str) -> Option<FileSystem> {
    let facts = rustix::fs::statvfs(path).ok()?;
    Some(FileSystem {
        size_bytes: facts.f_blocks * facts.f_frsize,
        free_bytes: facts.f_bfree * facts.f_frsize,
        inodes_count: facts.f_files,
        inodes_free_count: facts.f_ffree,
    })
}

fn table_row(
    row: &PlannedRow,
    plan: &MdtestPlan,
    stages: &[AnalyzedStage],
    manifest: &Manifest,
    client: &str,
) -> MdtestRow {
    let step = |stage: &usize| {
        let analyzed = stages.iter().find(|analyzed| analyzed.stage == *stage)?;
        Some(step(analyzed, plan, manifest))
    };
    let stage = row.stages.first().map(|stage| plan.spec.stages[*stage].name.clone());
    MdtestRow {
        label: row.label.to_owned(),
        name: stage.unwrap_or_default(),
        shift: row.shift,
        looks_back: row.looks_back,
        clients: vec![client.to_owned()],
        iterations: row.stages.iter().filter_map(step).collect(),
    }
}

/// Returns what one repetition of a row came to. Its ranks are the rows of the stage.
fn step(stage: &AnalyzedStage, plan: &MdtestPlan, manifest: &Manifest) -> MdtestStep {
    let entry = &manifest.stages[stage.stage];
    let rows = || stage.analysis.rows.iter();
    let kinds = || rows().filter_map(|row| row.kinds.first()).map(|kind| &kind.figures);
    let mut latency = plimsoll_stats::Histogram::new();
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
        failed: entry.ops_failed_count.unwrap_or_default(),
        took: began.zip(ended).map(|(began, ended)| ended.saturating_sub(began)),
        latency,
        first_done: dones().min(),
        last_done: dones().max(),
        rank_rates: if plan.table.rank_statistics {
            rows().map(rate).collect()
        } else {
            Vec::new()
        },
    }
}
