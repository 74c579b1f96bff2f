//! `plimsoll merge` and `plimsoll as warp merge`: one run of the runs of several clients.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_engine::RunClock;
use plimsoll_record::{merge, plan, removal};
use plimsoll_results::{ExportFormat, Origin, Record, parts, runs, write_raw};

use crate::args::{MergeArgs, WarpMergeArgs};
use crate::commands::export::warn_of_workers;
use crate::{said, shown};

/// What warp's raw files end in.
const RAW_ENDING: &str = ".csv.zst";

/// Merges, and prints the report of the whole.
pub(crate) fn run(args: &MergeArgs) -> Result<ExitCode> {
    let ui = args.print.ui();
    // What is wrong with it must be said before anything is written.
    let asked = args.analysis.asked()?;
    let records = opened(&runs(&args.runs)?)?;
    let (id, parts) = parts(&records, RunClock::start().wall_epoch())?;
    let command_line = said::command_line();
    let directory = merge(parts, &args.output, &id, command_line)?;
    let path = directory.path().display();
    let mut losses = Vec::new();
    for (record, path) in records.iter().map(|record| (record, record.path.display())) {
        losses.extend(record.losses.iter().map(|loss| format!("{path}: {loss}")));
    }
    let report = Record::of_run(&directory).and_then(|whole| shown::report(&whole, &asked));
    let mut report = report
        .map_err(|error| shown::in_flags(error, &args.analysis))
        .with_context(|| format!("the runs are merged into {path}, but it cannot be analysed"))?;
    report.losses.extend(losses);
    shown::print(&report, args.print.form(), &ui)?;
    Ok(ExitCode::SUCCESS)
}

/// Merges raw files of warp's into another.
pub(crate) fn as_warp(args: &WarpMergeArgs) -> Result<ExitCode> {
    let ui = args.shared.print.ui();
    args.shared.idle().iter().for_each(|sentence| ui.warn(sentence));
    for (flag, given) in [("--full", args.shared.full), ("--json", args.shared.print.json)] {
        if given {
            ui.warn(&format!("{flag} has no effect: merge keeps every operation and shows none"));
        }
    }
    let records = opened(&args.files)?;
    for record in &records {
        let path = record.path.display();
        if matches!(record.origin, Origin::Run { .. }) {
            bail!("{path} is a run of plimsoll's; `plimsoll export` turns it into a raw file");
        }
        record.losses.iter().for_each(|loss| ui.warn(&format!("{path}: {loss}")));
    }
    let (id, mut parts) = parts(&records, RunClock::start().wall_epoch())?;
    plan(&mut parts, &id, Vec::new())?;
    let path = raw_path(args.benchdata.as_deref());
    let failed = || format!("--benchdata: cannot write {}", path.display());
    let file = File::create_new(&path).with_context(failed)?;
    match write_raw(&records, file, &said::command_line()) {
        Ok(written) => {
            warn_of_workers(written.worker_max, ExportFormat::Warp, &ui);
            ui.note(&format!("written to {}, {} operations", path.display(), written.rows));
        }
        Err(error) => {
            // Why it failed matters more than what could not be removed.
            let _ = removal::file(&path);
            return Err(anyhow::Error::from(error).context(failed()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns where warp would write to.
fn raw_path(benchdata: Option<&Path>) -> PathBuf {
    let name = match benchdata {
        Some(name) => name.as_os_str().to_owned(),
        None => {
            jiff::ZonedDateTime::now().strftime("warp-merge-%Y-%m-%d[%H%M%S]").to_string().into()
        }
    };
    if name.to_string_lossy().ends_with(RAW_ENDING) {
        return name.into();
    }
    let mut name = name;
    name.push(RAW_ENDING);
    name.into()
}

fn opened(paths: &[PathBuf]) -> Result<Vec<Record>> {
    paths.iter().map(|path| Ok(Record::open(path)?)).collect()
}
