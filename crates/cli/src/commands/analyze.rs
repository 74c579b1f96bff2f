//! `plimsoll analyze`: the figures of records that already exist.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::output::Named;
use plimsoll_report::segments::{self, Separator};
use plimsoll_report::{Report, csv, json, lost};
use plimsoll_results::{Asked, Opened, Record, only_sums, open};

use crate::args::{AnalyzeArgs, overwrite};
use crate::commands::warp_shown;
use crate::flags;
use crate::shown;
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

/// What all records gave.
#[derive(Default)]
struct Outcome {
    /// Whether a run lost agents.
    is_degraded: bool,
    texts: Vec<String>,
    documents: Vec<Report>,
    segments: Segments,
}

/// The segments of all records.
#[derive(Default)]
struct Segments {
    rows: Vec<segments::SegmentOut>,
    /// Of runs on files a line for each stage, row and kind instead.
    rows_of_stages: String,
}

impl Outcome {
    fn read(&mut self, path: &Path, opened: Opened, args: &AnalyzeArgs, ui: &Ui) -> Result<()> {
        match opened {
            Opened::Aggregated(file) => {
                if let Some(flag) = args.needing_operations().next() {
                    bail!("{flag}: {}", only_sums(path));
                }
                self.texts.push(warp_shown::of_sums(&file, path, &args.analysis, false)?);
                Ok(())
            }
            Opened::Record(record) => self.record(&record, args, ui),
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

    fn record(&mut self, record: &Record, args: &AnalyzeArgs, ui: &Ui) -> Result<()> {
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
        self.documents.push(report);
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
