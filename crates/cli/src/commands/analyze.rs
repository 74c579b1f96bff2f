//! `plimsoll analyze`: the figures of records that already exist.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_analysis::warp::{self, WarpQuestion};
use plimsoll_conduct::output::Named;
use plimsoll_dialects::warp::layout as warp_layout;
use plimsoll_dialects::warp::{WarpShown, aggregated};
use plimsoll_foreign::warp::aggregated::Aggregated;
use plimsoll_report::segments::{self, Separator};
use plimsoll_report::{Report, csv, json, lost};
use plimsoll_results::{Asked, Opened, Record, open};

use crate::args::{AnalyzeArgs, MethodArg, PrintArgs, WarpAnalyzeArgs, overwrite};
use crate::commands::warp_shown;
use crate::flags;
use crate::shown::{self, look};
use crate::ui::Ui;

/// Names the file that segments are written to.
const OUT: &str = "--analyze.out";

/// Analyses each record by itself.
pub(crate) fn run(args: &AnalyzeArgs) -> Result<ExitCode> {
    let ui = args.print.ui();
    let mut outcome = Outcome::default();
    for path in &args.records {
        outcome.read(path, open(path)?, args, &ui)?;
    }
    outcome.show(args, &ui)
}

/// Analyses each file in the words of warp.
pub(crate) fn as_warp(args: &WarpAnalyzeArgs) -> Result<ExitCode> {
    let print = &args.shared.print;
    let ui = print.ui();
    args.shared.idle().for_each(|sentence| ui.warn(&sentence));
    let (is_json, is_full) = (print.json, args.shared.full);
    if is_json && is_full {
        ui.warn("--json: the document is that of `warp analyze --json` without --full");
    }
    let of_raw = AnalyzeArgs {
        records: Vec::new(),
        analysis: args.analysis.clone(),
        out: args.out.clone(),
        // As warp does.
        overwrite: true,
        method: MethodArg::Warp,
        print: PrintArgs { json: false, ..print.clone() },
    };
    let mut outcome = Outcome { is_warps: true, ..Outcome::default() };
    for path in &args.files {
        let document = match open(path)? {
            Opened::Record(record) if is_full && !is_json => {
                outcome.warps(&record, &of_raw, &ui)?;
                continue;
            }
            Opened::Record(record) => {
                // The text and the document are warp's, which have no place for it.
                let degraded = record.degraded();
                outcome.is_degraded |= degraded.is_some();
                degraded.iter().for_each(|why| ui.warn(&format!("{}: {why}", path.display())));
                warp_shown::of_file(&record, path, args, &ui)?
            }
            Opened::Aggregated(file) => {
                warp_shown::warn_of_idle(args, path, &ui);
                shown::narrow(&mut (*file).clone(), path, &warp_shown::only_op(args))?;
                *file
            }
        };
        outcome.texts.push(warp_shown::of_document(
            &document,
            args.analysis.op.as_deref(),
            is_json,
        ));
    }
    if let Some(path) = args.out.as_ref().filter(|_| !outcome.segments.warps.is_empty()) {
        let named = Named { name: OUT, path, overwrite: overwrite(true) };
        write_segments(named, &outcome.segments)?;
    }
    ui.result(&outcome.texts.concat())?;
    Ok(shown::exit_code(!outcome.is_degraded))
}

/// Prints a run of ours as warp does that keeps every operation.
pub(crate) fn print_as_warp(record: &Record, shown: &WarpShown, ui: &Ui) -> Result<()> {
    let endpoint = |host: &String| {
        record.endpoint(host).map_err(|error| anyhow!("--analyze.host {host}: {error}"))
    };
    let host = shown.host.as_ref().map(endpoint).transpose()?;
    let mut outcome = Outcome { is_warps: true, ..Outcome::default() };
    outcome.in_warps_words(record, &WarpQuestion { host, ..shown.question })?;
    if let Some(path) = shown.out.as_ref().map(Path::new) {
        let named = Named { name: OUT, path, overwrite: overwrite(true) };
        write_segments(named, &outcome.segments)?;
    }
    // Not with the empty line in front that `analyze` has, but with one behind.
    let text = outcome.texts.concat();
    ui.result(&format!("{}\n", text.strip_prefix('\n').unwrap_or(&text)))?;
    Ok(())
}

/// What one record gave, for programs.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Document {
    Report(Box<Report>),
    Aggregated(serde_json::Value),
}

/// What all records gave.
#[derive(Default)]
struct Outcome {
    /// Whether nothing is printed that warp would not print.
    is_warps: bool,
    /// Whether a run lost agents.
    is_degraded: bool,
    texts: Vec<String>,
    documents: Vec<Document>,
    segments: Segments,
}

/// The segments of all records.
#[derive(Default)]
struct Segments {
    rows: Vec<segments::SegmentOut>,
    /// As warp's own method gives them.
    warps: String,
    /// Of runs on files a line for each stage, row and kind instead.
    rows_of_stages: String,
}

impl Outcome {
    fn read(&mut self, path: &Path, opened: Opened, args: &AnalyzeArgs, ui: &Ui) -> Result<()> {
        match opened {
            Opened::Aggregated(file) => self.aggregated(path, *file, args, ui),
            Opened::Record(record) => match args.method {
                MethodArg::Plimsoll => self.ours(&record, args, ui),
                MethodArg::Warp => self.warps(&record, args, ui),
            },
        }
    }

    /// Prints everything, and writes the segments.
    fn show(self, args: &AnalyzeArgs, ui: &Ui) -> Result<ExitCode> {
        if let Some(path) = &args.out {
            let named = Named { name: OUT, path, overwrite: overwrite(args.overwrite) };
            write_segments(named, &self.segments)?;
        }
        let printed = match args.print.json {
            false => self.texts.join("\n"),
            true if self.documents.len() == 1 => json::text(&self.documents[0]),
            true => json::text(&self.documents),
        };
        ui.result(&printed)?;
        // As the run itself has ended.
        Ok(shown::exit_code(!self.is_degraded))
    }

    fn ours(&mut self, record: &Record, args: &AnalyzeArgs, ui: &Ui) -> Result<()> {
        let asked = args.analysis.asked()?;
        let asked = Asked { details: asked.details || args.out.is_some(), ..asked };
        let report = shown::report(record, &asked);
        let mut report = report.map_err(|error| shown::in_flags(error, &args.analysis))?;
        self.is_degraded |= lost(&report.agents).is_some();
        if args.out.is_some() {
            self.segments.add(&report, args.analysis.details);
        }
        if !args.analysis.details {
            let rows = report.stages.iter_mut().flat_map(|stage| &mut stage.rows);
            rows.for_each(|row| row.analysis.details = None);
        }
        let text = shown::in_text(&report, ui);
        self.texts.push(flags::in_flags_of_run(&report.command, &text));
        self.documents.push(Document::Report(Box::new(report)));
        Ok(())
    }

    fn aggregated(
        &mut self,
        path: &Path,
        mut file: Aggregated,
        args: &AnalyzeArgs,
        ui: &Ui,
    ) -> Result<()> {
        let asked = &args.analysis;
        let own = [
            ("--analyze.out", args.out.is_some()),
            ("--method warp", args.method == MethodArg::Warp),
        ];
        let own = own.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag);
        if let Some(flag) = asked.needing_operations().chain(own).next() {
            bail!(
                "{flag} needs every operation, and {} holds only warp's sums and figures; use the \
                 raw file (.csv.zst) that warp writes with --full",
                path.display()
            );
        }
        shown::narrow(&mut file, path, asked)?;
        self.texts.push(aggregated::text(&file, &look(ui)));
        self.documents.push(Document::Aggregated(aggregated::json(&file)));
        Ok(())
    }

    /// Analyses a raw file as `warp analyze --full` does.
    fn warps(&mut self, record: &Record, args: &AnalyzeArgs, ui: &Ui) -> Result<()> {
        if record.manifest().is_some() {
            bail!(
                "the method of warp is for raw files of warp's; {} is a run of plimsoll's, which \
                 `plimsoll export` turns into one",
                record.path.display()
            );
        }
        if args.print.json {
            bail!("--method warp prints warp's text; leave --json out");
        }
        if let Some(flag) = args.analysis.unknown_to_warp().next() {
            bail!("{flag}: the method of warp knows no such thing; leave it out");
        }
        // The text is warp's, which has no place for them.
        record
            .losses
            .iter()
            .for_each(|loss| ui.warn(&format!("{}: {loss}", record.path.display())));
        let asked = &args.analysis;
        let host = asked.host.as_deref().map(|host| record.endpoint(host)).transpose();
        let host = host.map_err(|error| shown::in_flags(error, asked))?;
        let question = WarpQuestion {
            segment: asked.dur.map(|dur| dur.0),
            op: asked.kind()?,
            host,
            skip: asked.skip.map_or(Duration::ZERO, |skip| skip.0),
            offset: asked.offset,
            limit: asked.limit,
            verbose: asked.details,
        };
        self.in_warps_words(record, &question)
    }

    fn in_warps_words(&mut self, record: &Record, question: &WarpQuestion) -> Result<()> {
        let record = record.as_warp()?;
        let recording = record.recording();
        let analysis = warp::analyze(&recording, question);
        self.segments.warps += &warp_layout::segments_tsv(&analysis, &recording);
        let report = warp_layout::text(&analysis, &recording);
        self.texts.push(match self.is_warps {
            // As warp, which begins with an empty line.
            true => format!("\n{report}"),
            false => format!("method: warp analyze --full (docs/method-warp.md)\n{report}"),
        });
        Ok(())
    }
}

impl Segments {
    fn add(&mut self, report: &Report, by_host: bool) {
        let mut rows = report.stages.iter().flat_map(|stage| &stage.rows);
        match rows.any(|row| row.is_on_files) {
            true => self.rows_of_stages.push_str(&csv::render(report)),
            false => self.rows.extend(segments::rows(report, by_host)),
        }
    }
}

/// Writes the segments in the format that the name's ending asks for.
fn write_segments(named: Named<'_>, segments: &Segments) -> Result<()> {
    let path = named.path;
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let text = match ending.as_deref() {
        _ if !segments.warps.is_empty() => segments.warps.clone(),
        _ if !segments.rows_of_stages.is_empty() => segments.rows_of_stages.clone(),
        Some("parquet") => {
            let file = named.create()?;
            let rows = segments_columns(&segments.rows);
            plimsoll_record::write_segments(file.path(path), &rows)
                .with_context(|| format!("--analyze.out: cannot write {}", path.display()))?;
            return Ok(named.finish(file)?);
        }
        Some("csv") => segments::delimited(&segments.rows, Separator::Comma),
        _ => segments::delimited(&segments.rows, Separator::Tab),
    };
    Ok(named.write(text.as_bytes())?)
}

fn segments_columns(rows: &[segments::SegmentOut]) -> Vec<plimsoll_record::SegmentRow> {
    let row = |row: &segments::SegmentOut| plimsoll_record::SegmentRow {
        index: row.index,
        op: row.op.name(),
        host: row.host.clone(),
        duration_s: row.duration_s,
        objects_per_op: row.objects_per_op,
        bytes: row.bytes,
        full_ops: row.full_ops,
        partial_ops: row.partial_ops,
        ops_started: row.ops_started,
        ops_ended: row.ops_ended,
        errors: row.errors,
        mb_per_sec: row.mb_per_sec,
        ops_ended_per_sec: row.ops_ended_per_sec,
        objs_per_sec: row.objs_per_sec,
        reqs_ended_avg_ms: row.reqs_ended_avg_ms,
        start_time_unix_ns: row.start_time.as_unix_ns(),
        end_time_unix_ns: row.end_time.as_unix_ns(),
        stage: row.stage.clone(),
        iteration_index: row.iteration.into(),
        job: row.job.clone(),
    };
    rows.iter().map(row).collect()
}
