//! `plimsoll compare` and `plimsoll as warp cmp`: what changed between runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use plimsoll_analysis::compare::{
    Comparison, Difference, Gate, Margin, RunFigures, compare_within, differing, exit_code, judge,
};
use plimsoll_dialects::warp::{aggregated, cmp};
use plimsoll_foreign::warp::aggregated::Aggregated;
use plimsoll_record::schema::{Manifest, StageKind};
use plimsoll_report::{Report, compare as report};
use plimsoll_results::{Opened, Origin, Record, open, runs};
use serde_json::Value;

use crate::args::{AnalysisArgs, CompareArgs, WarpCmpArgs};
use crate::flags;
use crate::new_file::Named;
use crate::shown;
use crate::ui::Ui;

/// Names and values of what a run was made with.
type Parameters = Vec<(String, String)>;

/// One side of a comparison.
struct Side {
    figures: Vec<RunFigures>,
    parameters: Vec<Parameters>,
}

/// Compares, and judges the gates.
pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    let ui = Ui::new(&args.print);
    let parsed = args.gates.iter().map(|gate| gate.parse::<Gate>());
    let gates: Vec<Gate> = parsed.collect::<Result<_, _>>()?;
    if args.junit.is_some() && gates.is_empty() {
        bail!("--junit writes what --gate found; give at least one --gate");
    }
    let overwrite = args.overwrite;
    let junit = args.junit.as_ref().map(|path| Named { flag: "--junit", path, overwrite });
    junit.as_ref().map_or(Ok(()), Named::check)?;
    let before: Vec<PathBuf> =
        std::iter::once(&args.before).chain(&args.more_before).cloned().collect();
    let (comparison, differences) =
        compared(&before, &args.after, args.margin, &args.analysis, &ui)?;
    let results = judge(&gates, &comparison)?;
    let printed = if args.print.json {
        format!("{:#}\n", report::json::json(&comparison, &differences, &results))
    } else {
        let text = report::text(&comparison, &differences, &results, &shown::look(&ui));
        flags::in_flags(&text)
    };
    ui.result(&printed)?;
    junit.map_or(Ok(()), |file| file.write(report::junit::junit(&results).as_bytes()))?;
    Ok(ExitCode::from(exit_code(&results)))
}

/// Compares two files or runs in warp's layout.
pub(crate) fn as_warp(args: &WarpCmpArgs) -> Result<ExitCode> {
    let (before, after) = ([args.before.clone()], [args.after.clone()]);
    let ui = Ui::new(&args.shared.print);
    args.shared.idle().for_each(|sentence| ui.warn(&sentence));
    if args.shared.full {
        ui.warn("--full has no effect: every operation of a raw file is always used");
    }
    let (comparison, differences) =
        compared(&before, &after, Margin::default(), &args.analysis, &ui)?;
    if args.shared.print.json {
        ui.warn("--json: the document is plimsoll's, as of `plimsoll compare --json`");
        ui.result(&format!("{:#}\n", report::json::json(&comparison, &differences, &[])))?;
    } else {
        ui.result(&cmp::text(&comparison, &differences))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compared(
    before: &[PathBuf],
    after: &[PathBuf],
    margin: Margin,
    analysis: &AnalysisArgs,
    ui: &Ui,
) -> Result<(Comparison, Vec<Difference>)> {
    let asked = AnalysisArgs { details: true, ..analysis.clone() };
    let (mut before, mut after) = (side(before, &asked, ui)?, side(after, &asked, ui)?);
    if before.figures.iter().chain(&after.figures).all(is_of_one_row) {
        // Whatever it is called on either side.
        before.forget_rows();
        after.forget_rows();
    }
    let comparison = compare_within(&before.figures, &after.figures, margin);
    Ok((comparison, differing(&before.parameters, &after.parameters)))
}

/// Tells whether a run has but one stage with one job.
fn is_of_one_row(run: &RunFigures) -> bool {
    run.kinds.windows(2).all(|pair| pair[0].of == pair[1].of)
}

fn side(paths: &[PathBuf], asked: &AnalysisArgs, ui: &Ui) -> Result<Side> {
    let mut side = Side { figures: Vec::new(), parameters: Vec::new() };
    for path in runs(paths)? {
        match open(&path)? {
            Opened::Record(record) => side.add(&path, &record, asked, ui)?,
            Opened::Aggregated(file) => side.add_aggregated(&path, *file, asked)?,
        }
    }
    Ok(side)
}

/// Returns the figures of each row of each result.
fn figures(name: String, report: &Report, is_foreign: bool) -> RunFigures {
    let mut figures = RunFigures { name, kinds: Vec::new() };
    let results: Vec<_> = match report.results().next() {
        Some(_) => report.results().collect(),
        // One that prepares may be asked for by name.
        None => report.stages.iter().collect(),
    };
    // Of a foreign file the last stage is what was measured.
    let first = if is_foreign { results.len().saturating_sub(1) } else { 0 };
    for stage in &results[first..] {
        let repeated = match stage.iteration {
            0 => String::new(),
            again => format!(", iteration {}", again + 1),
        };
        for row in &stage.rows {
            let job = match &stage.rows[..] {
                [_] => String::new(),
                _ => format!(", {}", row.name),
            };
            figures.add(&format!("{}{repeated}{job}", stage.name), &row.analysis);
        }
    }
    figures
}

impl Side {
    fn add(&mut self, path: &Path, record: &Record, asked: &AnalysisArgs, ui: &Ui) -> Result<()> {
        record.losses.iter().for_each(|loss| ui.warn(&format!("{}: {loss}", path.display())));
        let report = record.report(&asked.asked()?);
        let report = report.map_err(|error| shown::in_flags(error, asked))?;
        let is_foreign = report.foreign.is_some();
        self.figures.push(figures(path.display().to_string(), &report, is_foreign));
        self.parameters.push(match &record.origin {
            Origin::Run { manifest, .. } => parameters(manifest),
            Origin::Warp { end } => flags(end.command_line.as_deref()),
        });
        Ok(())
    }

    /// Has figures compared whatever the rows are called.
    fn forget_rows(&mut self) {
        let kinds = self.figures.iter_mut().flat_map(|run| &mut run.kinds);
        kinds.for_each(|kind| kind.of = None);
    }

    fn add_aggregated(
        &mut self,
        path: &Path,
        mut file: Aggregated,
        asked: &AnalysisArgs,
    ) -> Result<()> {
        if let Some(flag) = asked.needing_operations().next() {
            bail!(
                "{flag} needs every operation, and {} holds only warp's sums and figures",
                path.display()
            );
        }
        shown::narrow(&mut file, path, asked)?;
        self.figures.push(aggregated::figures(&path.display().to_string(), &file));
        self.parameters.push(flags(file.commandline.as_deref()));
        Ok(())
    }
}

/// Returns the flags of a command line of warp's, but for where it wrote to.
fn flags(command: Option<&str>) -> Parameters {
    let words = command.unwrap_or_default().split_whitespace().filter_map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, "true"));
        let telling = name.starts_with("--") && name != "--benchdata";
        telling.then(|| (name.to_owned(), value.to_owned()))
    });
    words.collect()
}

/// Returns what a run was made with, but for what differs between any two runs.
fn parameters(manifest: &Manifest) -> Parameters {
    let mut all = Vec::new();
    let measured = manifest.stages.iter().find(|stage| stage.kind == StageKind::Measure);
    let schedule =
        measured.and_then(|stage| stage.jobs.iter().find_map(|job| job.schedule.as_ref()));
    let target = serde_json::json!({
        "loop": measured.map(|stage| stage.loop_model),
        "rate": schedule.map(|schedule| &schedule.rate),
        "tool": manifest.tool.version,
        "machine": serde_json::to_value(&manifest.machine).unwrap_or_default(),
        "endpoints": manifest.target.endpoints.join(", "),
        "bucket": manifest.target.bucket,
        "lookup": manifest.target.lookup,
        "tls": manifest.target.tls,
        "payload_signing": manifest.target.payload_signing,
        "workload": manifest.workload.to_value(),
    });
    flatten("", &target, &mut all);
    all.retain(|(name, _)| name != "workload.seed");
    all
}

fn flatten(name: &str, value: &Value, all: &mut Parameters) {
    let inner =
        |inner: &str| if name.is_empty() { inner.to_owned() } else { format!("{name}.{inner}") };
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| flatten(&inner(field), value, all));
        }
        Value::Array(values) => {
            let each = values.iter().enumerate();
            each.for_each(|(index, value)| flatten(&inner(&index.to_string()), value, all));
        }
        Value::String(text) => all.push((name.to_owned(), text.clone())),
        other => all.push((name.to_owned(), other.to_string())),
    }
}
