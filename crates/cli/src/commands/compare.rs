//! `plimsoll compare` and `plimsoll as warp cmp`: what changed between runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::slice;

use anyhow::{Result, bail};
use plimsoll_analysis::compare::{
    Comparison, Difference, Gate, Margin, Presence, exit_code, judge,
};
use plimsoll_analysis::warp::WarpQuestion;
use plimsoll_conduct::output::Named;
use plimsoll_dialects::warp::cmp;
use plimsoll_model::OpKind;
use plimsoll_report::{compare as report, format};
use plimsoll_results::{Opened, Record, Side, only_sums, open, runs};

use super::warp_shown;
use crate::args::{AnalysisArgs, CompareArgs, WarpCmpArgs, overwrite};
use crate::flags;
use crate::shown;
use crate::ui::Ui;

/// Compares, and judges the gates.
pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    let ui = args.print.ui();
    let parsed = args.gates.iter().map(|gate| gate.parse::<Gate>());
    let gates: Vec<Gate> = parsed.collect::<Result<_, _>>()?;
    if args.check_gates {
        ui.note(&format!("{} can be read", format::plural(gates.len() as u64, "gate")));
        return Ok(ExitCode::SUCCESS);
    }
    if args.junit.is_some() && gates.is_empty() {
        bail!("--junit writes what --gate found; give at least one --gate");
    }
    let overwrite = overwrite(args.overwrite);
    let junit = args.junit.as_ref().map(|path| Named { name: "--junit", path, overwrite });
    junit.as_ref().map_or(Ok(()), Named::check)?;
    let is_alone = junit.is_some_and(|file| file.is_stdout());
    if is_alone && args.print.json {
        bail!("--junit - and --json both write to the standard output: give --junit a file");
    }
    let before: Vec<PathBuf> = args.before.iter().chain(&args.more_before).cloned().collect();
    let (comparison, differences) = compared(&before, &args.after, args.margin, &args.analysis)?;
    let results = judge(&gates, &comparison)?;
    let printed = if args.print.json {
        format!("{:#}\n", report::json::json(&comparison, &differences, &results))
    } else if args.markdown {
        flags::in_flags(&report::markdown(&comparison, &differences, &results))
    } else {
        let words = if args.analysis.details { report::text } else { report::brief };
        let text = words(&comparison, &differences, &results, &shown::look(&ui));
        flags::in_flags(&text)
    };
    if is_alone {
        ui.note(printed.trim_end());
    } else {
        ui.result(&printed)?;
    }
    junit.map_or(Ok(()), |file| file.write(report::junit::junit(&results).as_bytes()))?;
    Ok(ExitCode::from(exit_code(&results)))
}

/// Compares two files or runs in warp's layout.
pub(crate) fn as_warp(args: &WarpCmpArgs) -> Result<ExitCode> {
    let ui = args.shared.print.ui();
    args.shared.idle().iter().for_each(|sentence| ui.warn(sentence));
    if args.shared.full {
        ui.warn("--full has no effect: every operation of a raw file is always used");
    }
    let [before, after] = [&args.before, &args.after].map(opened);
    let (before, after) = (before?, after?);
    let mut both = before.iter().chain(&after);
    let has_sums = both.any(|(_, opened)| matches!(opened, Opened::Aggregated(_)));
    let asked = AnalysisArgs { details: true, ..args.analysis.clone() };
    let side = |opened| side_as_warp(opened, has_sums, &asked, &ui);
    let (comparison, differences) = side(before)?.compare(side(after)?, Margin::default());
    refuse_nothing_in_common(&comparison)?;
    if args.shared.print.json {
        ui.warn("--json: the document is plimsoll's, as of `plimsoll compare --json`");
        ui.result(&format!("{:#}\n", report::json::json(&comparison, &differences, &[])))?;
    } else {
        let remarks = comparison.remarks.iter();
        remarks.for_each(|(run, sentence)| ui.warn(&format!("{run}: {sentence}")));
        ui.result(&cmp::text(&comparison, &differences))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the runs at a path.
fn opened(path: &PathBuf) -> Result<Vec<(PathBuf, Opened)>> {
    let each = |path: PathBuf| Ok((path.clone(), open(&path)?));
    runs(slice::from_ref(path))?.into_iter().map(each).collect()
}

/// Reads a side; where only warp's sums are known of a run, those of every run are compared.
fn side_as_warp(
    opened: Vec<(PathBuf, Opened)>,
    has_sums: bool,
    args: &AnalysisArgs,
    ui: &Ui,
) -> Result<Side> {
    let mut side = Side::default();
    for (path, opened) in opened {
        let document = match opened {
            Opened::Record(record) if !has_sums => {
                add(&mut side, &path, &record, args)?;
                continue;
            }
            Opened::Record(record) => {
                warp_shown::warn_of(&record, ui);
                warp_shown::of_record(&record, &WarpQuestion::default())?
            }
            Opened::Aggregated(document) => *document,
        };
        if let Some(flag) = args.needing_operations().next() {
            bail!("{flag}: {}", only_sums(&path));
        }
        let kind = warp_shown::kind_of(&document, &path, args)?;
        let figures = cmp::of_document(&path.display().to_string(), &document, kind);
        side.add_figures(figures, document.commandline.as_deref());
    }
    Ok(side)
}

fn compared(
    before: &[PathBuf],
    after: &[PathBuf],
    margin: Margin,
    analysis: &AnalysisArgs,
) -> Result<(Comparison, Vec<Difference>)> {
    let asked = AnalysisArgs { details: true, ..analysis.clone() };
    let (comparison, differences) = side(before, &asked)?.compare(side(after, &asked)?, margin);
    refuse_nothing_in_common(&comparison)?;
    Ok((comparison, differences))
}

/// Refuses sides of which nothing can be compared.
pub(super) fn refuse_nothing_in_common(comparison: &Comparison) -> Result<()> {
    if comparison.kinds.iter().any(|kind| kind.presence == Presence::Both) {
        return Ok(());
    }
    let of = |presence| {
        let kinds = comparison.kinds.iter().filter(move |kind| kind.presence == presence);
        kinds.filter_map(|kind| kind.kind).map(OpKind::name).collect::<Vec<_>>().join(", ")
    };
    bail!(
        "{} and {} have no kind of operation in common ({}; {}): there is nothing to compare",
        comparison.before.join(", "),
        comparison.after.join(", "),
        of(Presence::BeforeOnly),
        of(Presence::AfterOnly)
    )
}

/// Reads the runs of a side.
pub(super) fn side(paths: &[PathBuf], args: &AnalysisArgs) -> Result<Side> {
    let mut side = Side::default();
    for path in runs(paths)? {
        add(&mut side, &path, &Record::open(&path)?, args)?;
    }
    Ok(side)
}

fn add(side: &mut Side, path: &Path, record: &Record, args: &AnalysisArgs) -> Result<()> {
    // Without figures nothing is ever decided, however many runs are added.
    record.require_operations()?;
    let added = side.add(path, record, &args.asked()?);
    added.map_err(|error| shown::in_flags(error, args))
}
