//! `plimsoll report`: a run, or a comparison of runs, as one HTML file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use plimsoll_analysis::compare::Margin;
use plimsoll_conduct::output::Named;
use plimsoll_report::html;
use plimsoll_results::{Asked, Record, environment};

use super::compare;
use crate::args::{AnalysisArgs, ReportArgs, overwrite};
use crate::shown;
use crate::ui::Ui;

/// Writes the report of what was measured.
pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let ending = args.output.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    if let Some(ending) = ending.filter(|ending| !["html", "htm"].contains(&&**ending)) {
        bail!("-o {}: a report is a page of HTML, not .{ending}", args.output.display());
    }
    if !args.after.is_empty() {
        return compared(args);
    }
    let record = Record::open(&args.run)?;
    let asked = Asked { details: true, ..args.analysis.asked()? };
    let report = shown::report(&record, &asked);
    let report = report.map_err(|error| shown::in_flags(error, &args.analysis))?;
    record.degraded().iter().for_each(|why| Ui::plain().warn(why));
    write(args, &html::render(&report, &record.manifest().map(environment).unwrap_or_default()))
}

/// Writes the comparison of the first run, and of others before, with those after.
fn compared(args: &ReportArgs) -> Result<ExitCode> {
    let before: Vec<PathBuf> =
        std::iter::once(&args.run).chain(&args.more_before).cloned().collect();
    let asked = AnalysisArgs { details: true, ..args.analysis.clone() };
    let before = compare::side(&before, &asked)?;
    let after = compare::side(&args.after, &asked)?;
    let curves = [&before, &after].map(|side| side.curves().to_vec());
    let (comparison, differences) = before.compare(after, Margin::default());
    compare::refuse_nothing_in_common(&comparison)?;
    let [before, after] = &curves;
    write(args, &html::comparison(&comparison, &differences, before, after))
}

fn write(args: &ReportArgs, page: &str) -> Result<ExitCode> {
    let named = Named { name: "-o", path: &args.output, overwrite: overwrite(args.overwrite) };
    named.write(page.as_bytes())?;
    if !named.is_stdout() {
        let size = plimsoll_report::format::bytes(page.len() as u64);
        Ui::plain().note(&format!("written to {}, {size}", args.output.display()));
    }
    Ok(ExitCode::SUCCESS)
}
