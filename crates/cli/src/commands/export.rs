//! `plimsoll export`: a run's operations, or its figures, in another format.

use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_analysis::compare::{Direction, RunFigures};
use plimsoll_conduct::output::Named;
use plimsoll_foreign::warp::raw::THREAD_MAX_OF_WARP;
use plimsoll_report::compare::trackers;
use plimsoll_results::{Export, ExportError, ExportFormat as Format, Record, TraceWritten};
use serde_json::Value;

use crate::args::{AnalysisArgs, ExportArgs, ExportFormat, overwrite};
use crate::shown::in_flags;
use crate::ui::Ui;

/// What is written of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// What is told operation by operation, or interval by interval.
    Lines(Format),
    /// Histograms of HdrHistogram.
    HdrLog,
    /// Operations, for viewers of traces.
    Trace,
    /// The figures of which more, or less, is better, for github-action-benchmark.
    Github(Direction),
    /// The figures, for Bencher.
    Bencher,
}

/// The formats that the ending of a file's name chooses.
const ENDINGS: [(&str, Form); 6] = [
    (".csv.zst", Form::Lines(Format::Warp)),
    (".csv", Form::Lines(Format::Csv)),
    (".jsonl", Form::Lines(Format::Jsonl)),
    (".om", Form::Lines(Format::OpenMetrics)),
    (".hlog", Form::HdrLog),
    (".trace.json", Form::Trace),
];

/// Writes every operation, or the figures.
pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode> {
    let record = Record::open(&args.run)?;
    let ui = Ui::plain();
    record.losses.iter().for_each(|loss| ui.warn(loss));
    record.degraded().iter().for_each(|why| ui.warn(why));
    record.require_operations()?;
    let form = form(args)?;
    if let Some(flag) = args.trace.given().next().filter(|_| form != Form::Trace) {
        bail!("{flag} is for traces (--format trace, or -o NAME.trace.json)");
    }
    match form {
        Form::Github(direction) => figures(args, &record, |run| trackers::github(run, direction)),
        Form::Bencher => figures(args, &record, trackers::bencher),
        form => operations(args, &record, form, &ui),
    }
}

fn operations(args: &ExportArgs, record: &Record, form: Form, ui: &Ui) -> Result<ExitCode> {
    let Some(export) = Export::of(record) else {
        bail!("{} is not a run of plimsoll's; export reads run directories", args.run.display());
    };
    let asked = args.trace.asked()?;
    let trace = (form == Form::Trace).then(|| export.trace(&asked)).transpose();
    let trace = trace.map_err(|error| in_flags(error, &args.trace.of_analysis()))?;
    let mut file = named(args).create()?;
    let to = Box::new(&mut file);
    let written = match (form, &trace) {
        (Form::Lines(format), _) => {
            export.write(format, to).map(|worker_max| warn_of_workers(worker_max, format, ui))
        }
        (_, Some(trace)) => trace.write(to).map(|written| tell_of_trace(written, ui)),
        (_, None) => export.write_hdr_log(to),
    };
    match written {
        // A reader that has gone away is no error.
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
            return Ok(ExitCode::SUCCESS);
        }
        Err(ExportError::Write(error)) => return Err(named(args).failed(error).into()),
        written => {
            written.with_context(|| format!("-o: cannot write {}", args.output.display()))?;
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

/// Says how much of the run a trace holds, where that is not all.
fn tell_of_trace(written: TraceWritten, ui: &Ui) {
    let TraceWritten { ops, of, beyond_limit } = written;
    if ops == of {
        return;
    }
    let hint = match beyond_limit {
        0 => String::new(),
        beyond => format!(
            "; {beyond} more match, and are beyond --analyze.limit: --analyze.skip and --trace.dur \
             choose a stretch of time"
        ),
    };
    ui.warn(&format!("the trace holds {ops} of {of} operations{hint}"));
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
    let by_name = || ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
    let given = args.format.map(|format| match format {
        ExportFormat::Warp => Form::Lines(Format::Warp),
        ExportFormat::Csv => Form::Lines(Format::Csv),
        ExportFormat::Jsonl => Form::Lines(Format::Jsonl),
        ExportFormat::Openmetrics => Form::Lines(Format::OpenMetrics),
        ExportFormat::Hlog => Form::HdrLog,
        ExportFormat::Trace => Form::Trace,
        ExportFormat::GithubBigger => Form::Github(Direction::HigherIsBetter),
        ExportFormat::GithubSmaller => Form::Github(Direction::LowerIsBetter),
        ExportFormat::Bencher => Form::Bencher,
    });
    given.or_else(|| by_name().map(|(_, form)| *form)).with_context(|| {
        let endings = ENDINGS.map(|(ending, _)| ending).join(", ");
        let parquet = match name.ends_with(".parquet") {
            true => " (the op log is Parquet already: ops/*.parquet in the run directory)",
            false => "",
        };
        format!("-o {name}: end it in one of {endings}, or choose a --format{parquet}")
    })
}
