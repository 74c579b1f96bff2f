//! `plimsoll export`: a run's operations, or its figures, in another format.

use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_analysis::compare::{Direction, RunFigures};
use plimsoll_conduct::output::Named;
use plimsoll_foreign::warp::raw::THREAD_MAX_OF_WARP;
use plimsoll_report::compare::trackers;
use plimsoll_results::{Export, ExportError, ExportFormat as Format, Record};
use serde_json::Value;

use crate::args::{AnalysisArgs, ExportArgs, ExportFormat, overwrite};
use crate::ui::Ui;

/// What is written of a run.
enum Form {
    /// Every operation.
    Operations(Format),
    /// The figures of which more, or less, is better, for github-action-benchmark.
    Github(Direction),
    /// The figures, for Bencher.
    Bencher,
}

/// Writes every operation, or the figures.
pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode> {
    let record = Record::open(&args.run)?;
    let ui = Ui::plain();
    record.losses.iter().for_each(|loss| ui.warn(loss));
    match form(args)? {
        Form::Operations(format) => operations(args, &record, format, &ui),
        Form::Github(direction) => figures(args, &record, |run| trackers::github(run, direction)),
        Form::Bencher => figures(args, &record, trackers::bencher),
    }
}

fn operations(args: &ExportArgs, record: &Record, format: Format, ui: &Ui) -> Result<ExitCode> {
    let Some(export) = Export::of(record) else {
        bail!("{} is not a run of plimsoll's; export reads run directories", args.run.display());
    };
    let mut file = named(args).create()?;
    match export.write(format, Box::new(&mut file)) {
        // A reader that has gone away is no error.
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
            return Ok(ExitCode::SUCCESS);
        }
        written => {
            let written =
                written.with_context(|| format!("-o: cannot write {}", args.output.display()));
            warn_of_workers(written?, format, ui);
        }
    }
    named(args).finish(file)?;
    Ok(ExitCode::SUCCESS)
}

fn figures(
    args: &ExportArgs,
    record: &Record,
    render: impl Fn(&RunFigures) -> Value,
) -> Result<ExitCode> {
    let asked = AnalysisArgs { details: true, ..AnalysisArgs::default() }.asked()?;
    let document = format!("{:#}\n", render(&record.figures(&asked)?));
    named(args).write(document.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn named(args: &ExportArgs) -> Named<'_> {
    Named { name: "-o", path: &args.output, overwrite: overwrite(args.overwrite) }
}

/// Warns of workers that warp itself cannot read.
pub(super) fn warn_of_workers(worker_max: u32, format: Format, ui: &Ui) {
    if format == Format::Warp && worker_max > THREAD_MAX_OF_WARP {
        ui.warn(&format!(
            "warp reads worker numbers up to {THREAD_MAX_OF_WARP} only, and there are more"
        ));
    }
}

fn form(args: &ExportArgs) -> Result<Form> {
    let name = args.output.file_name().unwrap_or_default().to_string_lossy();
    let by_name = || {
        let endings =
            [(".csv.zst", Format::Warp), (".csv", Format::Csv), (".jsonl", Format::Jsonl)];
        let format = endings.into_iter().find(|(ending, _)| name.ends_with(ending));
        format.map(|(_, format)| Form::Operations(format))
    };
    let given = args.format.map(|format| match format {
        ExportFormat::Warp => Form::Operations(Format::Warp),
        ExportFormat::Csv => Form::Operations(Format::Csv),
        ExportFormat::Jsonl => Form::Operations(Format::Jsonl),
        ExportFormat::GithubBigger => Form::Github(Direction::HigherIsBetter),
        ExportFormat::GithubSmaller => Form::Github(Direction::LowerIsBetter),
        ExportFormat::Bencher => Form::Bencher,
    });
    given.or_else(by_name).with_context(|| {
        format!("-o {name}: end it in .csv.zst, .csv or .jsonl, or choose a --format")
    })
}
