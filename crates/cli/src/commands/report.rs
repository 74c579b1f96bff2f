//! `plimsoll report`: a run as one HTML file.

use std::process::ExitCode;

use anyhow::Result;
use plimsoll_conduct::output::Named;
use plimsoll_report::html;
use plimsoll_results::{Asked, Record, environment};

use crate::args::{ReportArgs, overwrite};
use crate::shown;
use crate::ui::Ui;

/// Writes the report of what was measured.
pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let record = Record::open(&args.run)?;
    let asked = Asked { details: true, ..args.analysis.asked()? };
    let report = shown::report(&record, &asked);
    let report = report.map_err(|error| shown::in_flags(error, &args.analysis))?;
    write(args, &html::render(&report, &record.manifest().map(environment).unwrap_or_default()))
}

fn write(args: &ReportArgs, page: &str) -> Result<ExitCode> {
    Named { name: "-o", path: &args.output, overwrite: overwrite(args.overwrite) }
        .write(page.as_bytes())?;
    let size = plimsoll_report::format::bytes(page.len() as u64);
    Ui::plain().note(&format!("written to {}, {size}", args.output.display()));
    Ok(ExitCode::SUCCESS)
}
