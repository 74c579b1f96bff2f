//! What is shown in warp's words, and the file that warp would leave.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_analysis::warp::WarpQuestion;
use plimsoll_conduct::output::Named;
use plimsoll_dialects::warp::report::{self, ReportShown};
use plimsoll_dialects::warp::{self, WarpRun, WarpShown, layout};
use plimsoll_foreign::warp::aggregated::{self, Aggregated};
use plimsoll_model::OpKind;
use plimsoll_results::{Export, ExportFormat, Opened, Origin, Record, open, typed_again};

use crate::args::{AnalysisArgs, WarpAnalyzeArgs, overwrite};
use crate::shown;
use crate::ui::Ui;

/// The flag that names warp's file.
const BENCHDATA: &str = "--benchdata";
/// The flag that names the file that segments are written to.
const OUT: &str = "--analyze.out";

/// Prints a run of ours as warp does.
pub(super) fn print_run(
    record: &Record,
    run: &WarpRun,
    segments: &Segments<'_>,
    ui: &Ui,
) -> Result<()> {
    if run.shown.full && !run.json {
        return print_full(record, &run.shown, segments, ui);
    }
    let document = of_record(record, &run.shown.question)?;
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

/// Prints a run of ours as warp does that keeps every operation.
fn print_full(record: &Record, shown: &WarpShown, segments: &Segments<'_>, ui: &Ui) -> Result<()> {
    let endpoint = |host: &String| {
        record.endpoint(host).map_err(|error| anyhow!("--analyze.host {host}: {error}"))
    };
    let host = shown.host.as_ref().map(endpoint).transpose()?;
    let full = full(record, &WarpQuestion { host, ..shown.question })?;
    segments.write(&full.segments)?;
    // The empty line is warp's.
    ui.result(&format!("{}\n", full.report))?;
    Ok(())
}

/// Returns warp's document of a record; of a run of ours, of what was measured.
pub(super) fn of_record(record: &Record, question: &WarpQuestion) -> Result<Aggregated> {
    let command = match &record.origin {
        Origin::Run { manifest, .. } => typed_again(&manifest.command_line),
        Origin::Warp { end } => end.command_line.clone().unwrap_or_default(),
    };
    let document = warp::document(&record.as_warp_measured()?.recording(), question, command);
    document.ok_or_else(|| anyhow!("there is no operation"))
}

/// Carries out `plimsoll as warp analyze`: prints each file in the words of warp.
pub(crate) fn analyze(args: &WarpAnalyzeArgs) -> Result<ExitCode> {
    let print = &args.shared.print;
    let ui = print.ui();
    args.shared.idle().iter().for_each(|sentence| ui.warn(sentence));
    let (is_json, is_full) = (print.json, args.shared.full);
    if is_json && is_full {
        ui.warn("--json: the document is that of `warp analyze --json` without --full");
    }
    let (mut text, mut segments, mut is_degraded) = (String::new(), String::new(), false);
    for path in &args.files {
        let record = match open(path)? {
            Opened::Aggregated(document) => {
                warn_of_idle(args, path, &ui);
                text += &of_sums(&document, path, &args.analysis, is_json)?;
                continue;
            }
            Opened::Record(record) => record,
        };
        if let Some(flag) = args.analysis.unknown_to_warp().next() {
            bail!("{flag}: the method of warp knows no such thing; leave it out");
        }
        is_degraded |= record.degraded().is_some();
        warn_of(&record, &ui);
        if is_full && !is_json {
            let shown = full(&record, &question(&record, &args.analysis)?)?;
            // warp begins with an empty line.
            text += &format!("\n{}", shown.report);
            segments += &shown.segments;
        } else {
            warn_without_full(args, &ui);
            let AnalysisArgs { offset, limit, .. } = args.analysis;
            let question = WarpQuestion { offset, limit, ..WarpQuestion::default() };
            let document = of_record(&record, &question)?;
            text += &of_document(&document, args.analysis.kind()?, is_json);
        }
    }
    if !segments.is_empty() {
        Segments { out: args.out.as_deref(), replaces: true }.write(&segments)?;
    }
    ui.result(&text)?;
    Ok(shown::exit_code(!is_degraded))
}

/// Warns of what warp's text and document have no place for.
pub(super) fn warn_of(record: &Record, ui: &Ui) {
    let path = record.path.display();
    let untold = record.degraded().into_iter().chain(record.losses.clone());
    untold.for_each(|why| ui.warn(&format!("{path}: {why}")));
}

/// Returns what is asked of a raw file.
fn question(record: &Record, asked: &AnalysisArgs) -> Result<WarpQuestion> {
    if record.manifest().is_some() {
        bail!(
            "the method of warp is for raw files of warp's; {} is a run of plimsoll's, which \
             `plimsoll export` turns into one",
            record.path.display()
        );
    }
    let host = asked.host.as_deref().map(|host| record.endpoint(host)).transpose();
    Ok(WarpQuestion {
        segment: asked.dur.map(|dur| dur.0),
        op: asked.kind()?,
        host: host.map_err(|error| shown::in_flags(error, asked))?,
        skip: asked.skip.map_or(Duration::ZERO, |skip| skip.0),
        offset: asked.offset,
        limit: asked.limit,
        verbose: asked.details,
    })
}

/// The report of `warp analyze --full`, and the table of segments.
struct Full {
    report: String,
    segments: String,
}

fn full(record: &Record, question: &WarpQuestion) -> Result<Full> {
    let seen = record.as_warp()?;
    let recording = seen.recording();
    let analysis = plimsoll_analysis::warp::analyze(&recording, question);
    let segments = layout::segments_tsv(&analysis, &recording);
    Ok(Full { report: layout::text(&analysis, &recording), segments })
}

/// Where the table of segments is written to.
pub(super) struct Segments<'a> {
    out: Option<&'a Path>,
    /// Whether a file that is there is replaced, as by warp: its user named it.
    replaces: bool,
}

impl<'a> Segments<'a> {
    /// Returns where a run has it written; refuses a file that is there and that its user has not
    /// named, before any work.
    pub(super) fn of(run: &'a WarpRun, replaces: bool) -> Result<Self> {
        let out = run.shown.out.as_deref().map(Path::new);
        if let Some(path) = out.filter(|path| !replaces && path.exists()) {
            bail!("{OUT}: {} already exists; remove it or choose a name", path.display());
        }
        Ok(Self { out, replaces })
    }

    /// Writes it.
    fn write(&self, segments: &str) -> Result<()> {
        let Some(path) = self.out else { return Ok(()) };
        let named = Named { name: OUT, path, overwrite: overwrite(self.replaces) };
        Ok(named.write(segments.as_bytes())?)
    }
}

/// Warns of flags that the default report cannot be asked with.
fn warn_without_full(args: &WarpAnalyzeArgs, ui: &Ui) {
    let counts_without_full = ["--analyze.offset", "--analyze.limit"];
    let out = args.out.is_some().then_some(OUT);
    let idle = args.analysis.needing_operations();
    for flag in idle.filter(|flag| !counts_without_full.contains(flag)).chain(out) {
        ui.warn(&format!("{flag} has no effect without --full, as in warp"));
    }
}

/// Warns of flags that a document of warp's cannot be asked with.
fn warn_of_idle(args: &WarpAnalyzeArgs, path: &Path, ui: &Ui) {
    let full = args.shared.full.then_some("--full");
    let out = args.out.is_some().then_some(OUT);
    for flag in args.analysis.needing_operations().chain(full).chain(out) {
        let path = path.display();
        ui.warn(&format!("{flag} has no effect: {path} holds only warp's sums and figures"));
    }
}

/// Returns what `warp analyze` prints of an aggregated file.
pub(super) fn of_sums(
    document: &Aggregated,
    path: &Path,
    asked: &AnalysisArgs,
    is_json: bool,
) -> Result<String> {
    Ok(of_document(document, kind_of(document, path, asked)?, is_json))
}

/// Returns the kind that was asked for, which an aggregated file must have.
pub(super) fn kind_of(
    document: &Aggregated,
    path: &Path,
    asked: &AnalysisArgs,
) -> Result<Option<OpKind>> {
    let kind = asked.kind()?;
    match kind.filter(|kind| !document.by_op_type.contains_key(kind.name())) {
        Some(kind) => {
            bail!("--analyze.op {}: {} has no such operation", kind.name(), path.display())
        }
        None => Ok(kind),
    }
}

/// Returns what `warp analyze` prints of a document.
fn of_document(document: &Aggregated, kind: Option<OpKind>, is_json: bool) -> String {
    let shown = ReportShown { details: true, op: kind.map(OpKind::name) };
    match is_json {
        true => aggregated::text(document),
        // warp puts a line feed and a blank before it, and a line feed behind.
        false => format!("\n {}\n", report::text(document, shown)),
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
            let document = of_record(record, &WarpQuestion::default())?;
            aggregated::write(&document, &mut file).with_context(failed)?;
        }
        named.finish(file)?;
        ui.note(&format!("benchmark data written to {}", path.display()));
        Ok(())
    }
}
