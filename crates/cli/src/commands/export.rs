//! `plimsoll export`: a run's operations in another format.

use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::output::Named;
use plimsoll_foreign::warp::raw::THREAD_MAX_OF_WARP;
use plimsoll_results::{Export, ExportError, ExportFormat as Format, Record, TraceWritten};

use crate::args::{ExportArgs, ExportFormat, overwrite};
use crate::shown::in_flags;
use crate::ui::Ui;

/// The formats in which each operation is a line, and the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Lines(Format),
    HdrLog,
    Trace,
}

/// Writes every operation, or what the format holds of them.
pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode> {
    let record = Record::open(&args.run)?;
    let Some(export) = Export::of(&record) else {
        bail!("{} is not a run of plimsoll's; export reads run directories", args.run.display());
    };
    let ui = Ui::plain();
    record.losses.iter().for_each(|loss| ui.warn(loss));
    let format = format(args)?;
    let asked = args.trace.asked()?;
    if let Some(flag) = args.trace.given().next().filter(|_| format != Form::Trace) {
        bail!("{flag} is for traces (--format trace, or -o NAME.trace.json)");
    }
    let trace = (format == Form::Trace).then(|| export.trace(&asked)).transpose();
    let trace = trace.map_err(|error| in_flags(error, &args.trace.of_analysis()))?;
    let named = Named { name: "-o", path: &args.output, overwrite: overwrite(args.overwrite) };
    let mut file = named.create()?;
    let to = Box::new(&mut file);
    let written = match (format, &trace) {
        (Form::Lines(format), _) => {
            export.write(format, to).map(|worker_max| warn_of_workers(worker_max, format, &ui))
        }
        (_, Some(trace)) => trace.write(to).map(|written| tell_of_trace(written, &ui)),
        (_, None) => export.write_hdr_log(to),
    };
    match written {
        // A reader that has gone away is no error.
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
            return Ok(ExitCode::SUCCESS);
        }
        written => {
            written.with_context(|| format!("-o: cannot write {}", args.output.display()))?;
        }
    }
    named.finish(file)?;
    Ok(ExitCode::SUCCESS)
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

fn format(args: &ExportArgs) -> Result<Form> {
    let name = args.output.file_name().unwrap_or_default().to_string_lossy();
    let by_name = || {
        let endings = [
            (".csv.zst", Form::Lines(Format::Warp)),
            (".csv", Form::Lines(Format::Csv)),
            (".jsonl", Form::Lines(Format::Jsonl)),
            (".hlog", Form::HdrLog),
            (".trace.json", Form::Trace),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    };
    let given = args.format.map(|format| match format {
        ExportFormat::Warp => Form::Lines(Format::Warp),
        ExportFormat::Csv => Form::Lines(Format::Csv),
        ExportFormat::Jsonl => Form::Lines(Format::Jsonl),
        ExportFormat::Hlog => Form::HdrLog,
        ExportFormat::Trace => Form::Trace,
    });
    given.or_else(by_name).with_context(|| {
        format!(
            "-o {name}: end it in .csv.zst, .csv, .jsonl, .hlog or .trace.json, or choose a \
             --format"
        )
    })
}
