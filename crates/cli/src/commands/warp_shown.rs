//! What is shown in warp's words, and the file that warp would leave.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_analysis::warp::WarpQuestion;
use plimsoll_conduct::output::Named;
use plimsoll_dialects::warp::report::{self, ReportShown};
use plimsoll_dialects::warp::{self, WarpRun};
use plimsoll_foreign::warp::aggregated::{self, Aggregated};
use plimsoll_results::{Export, ExportFormat, Record, typed_again};

use crate::args::{AnalysisArgs, WarpAnalyzeArgs, overwrite};
use crate::commands::analyze;
use crate::ui::Ui;

/// The flag that names warp's file.
const BENCHDATA: &str = "--benchdata";

/// Prints a run of ours as warp does.
pub(super) fn print_run(record: &Record, run: &WarpRun, ui: &Ui) -> Result<()> {
    if run.shown.full && !run.json {
        return analyze::print_as_warp(record, &run.shown, ui);
    }
    let document = of_run(record, &run.shown.question)?;
    let op = run.shown.question.op.map(|kind| kind.name());
    let shown = ReportShown { details: run.shown.question.verbose, op };
    // The empty lines are warp's.
    match run.json {
        true => ui.result(&format!("\n{}\n", aggregated::text(&document)))?,
        false => ui.result(&format!("\n{}\n", report::text(&document, shown)))?,
    }
    report::skipped(&document).iter().for_each(|sentence| ui.note(sentence));
    Ok(())
}

/// Returns warp's document of a run of ours: of what was measured.
fn of_run(record: &Record, question: &WarpQuestion) -> Result<Aggregated> {
    let seen = record.as_warp_measured()?;
    let command = record.manifest().map(|manifest| typed_again(&manifest.command_line));
    let document = warp::document(&seen.recording(), question, command.unwrap_or_default());
    document.ok_or_else(|| anyhow!("there is no operation"))
}

/// Returns warp's document of a record that `analyze` was given.
pub(super) fn of_file(
    record: &Record,
    path: &Path,
    args: &WarpAnalyzeArgs,
    ui: &Ui,
) -> Result<Aggregated> {
    if let Some(flag) = args.analysis.unknown_to_warp().next() {
        bail!("{flag}: the method of warp knows no such thing; leave it out");
    }
    record.losses.iter().for_each(|loss| ui.warn(&format!("{}: {loss}", path.display())));
    let asked = &args.analysis;
    let counts_without_full = ["--analyze.offset", "--analyze.limit"];
    let out = args.out.is_some().then_some("--analyze.out");
    let idle = asked.needing_operations().filter(|flag| !counts_without_full.contains(flag));
    for flag in idle.chain(out) {
        ui.warn(&format!("{flag} has no effect without --full, as in warp"));
    }
    let question =
        WarpQuestion { offset: asked.offset, limit: asked.limit, ..WarpQuestion::default() };
    of_run(record, &question)
}

/// Warns of flags that a document of warp's cannot be asked with.
pub(super) fn warn_of_idle(args: &WarpAnalyzeArgs, path: &Path, ui: &Ui) {
    let full = args.shared.full.then_some("--full");
    let out = args.out.is_some().then_some("--analyze.out");
    for flag in args.analysis.needing_operations().chain(full).chain(out) {
        let path = path.display();
        ui.warn(&format!("{flag} has no effect: {path} holds only warp's sums and figures"));
    }
}

/// Returns what `analyze` is asked but for the type of operation: nothing.
pub(super) fn only_op(args: &WarpAnalyzeArgs) -> AnalysisArgs {
    AnalysisArgs { op: args.analysis.op.clone(), ..AnalysisArgs::default() }
}

/// Returns what `warp analyze` prints of a document.
pub(super) fn of_document(document: &Aggregated, op: Option<&str>, is_json: bool) -> String {
    match is_json {
        true => aggregated::text(document),
        // warp puts a line feed and a blank before it, and a line feed behind.
        false => format!("\n {}\n", report::text(document, ReportShown { details: true, op })),
    }
}

/// The file that warp would leave of a run.
pub(super) struct Benchdata {
    path: PathBuf,
    is_raw: bool,
}

impl Benchdata {
    /// Returns the one that a run asks for; refuses one that already exists, before any work.
    pub(super) fn of(run: &WarpRun) -> Result<Option<Self>> {
        let Some(name) = &run.run_directory else { return Ok(None) };
        let is_raw = run.shown.full;
        let path = PathBuf::from(format!("{name}.{}", if is_raw { "csv.zst" } else { "json.zst" }));
        if path.exists() {
            bail!("{BENCHDATA}: {} already exists; remove it or choose a name", path.display());
        }
        Ok(Some(Self { path, is_raw }))
    }

    /// Writes it.
    pub(super) fn write(&self, record: &Record, ui: &Ui) -> Result<()> {
        let Self { path, is_raw } = self;
        let named = Named { name: BENCHDATA, path, overwrite: overwrite(false) };
        let mut file = named.create()?;
        let failed = || format!("{BENCHDATA}: cannot write {}", path.display());
        if *is_raw {
            let export = Export::of(record).context("it is not a run of plimsoll's")?;
            export.write(ExportFormat::Warp, Box::new(&mut file)).with_context(failed)?;
        } else {
            let document = of_run(record, &WarpQuestion::default())?;
            aggregated::write(&document, &mut file).with_context(failed)?;
        }
        named.finish(file)?;
        ui.note(&format!("benchmark data written to {}", path.display()));
        Ok(())
    }
}
