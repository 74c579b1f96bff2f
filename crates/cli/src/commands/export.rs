//! `plimsoll export`: a run's operations in another format.

use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::output::Named;
use plimsoll_foreign::warp::raw::THREAD_MAX_OF_WARP;
use plimsoll_results::{Export, ExportError, ExportFormat as Format, Record};

use crate::args::{ExportArgs, ExportFormat, overwrite};
use crate::ui::Ui;

/// Writes every operation.
pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode> {
    let record = Record::open(&args.run)?;
    let Some(export) = Export::of(&record) else {
        bail!("{} is not a run of plimsoll's; export reads run directories", args.run.display());
    };
    let ui = Ui::plain();
    record.losses.iter().for_each(|loss| ui.warn(loss));
    let format = format(args)?;
    let named = Named { name: "-o", path: &args.output, overwrite: overwrite(args.overwrite) };
    let mut file = named.create()?;
    match export.write(format, Box::new(&mut file)) {
        // A reader that has gone away is no error.
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
            return Ok(ExitCode::SUCCESS);
        }
        written => {
            let written =
                written.with_context(|| format!("-o: cannot write {}", args.output.display()));
            warn_of_workers(written?, format, &ui);
        }
    }
    named.finish(file)?;
    Ok(ExitCode::SUCCESS)
}

/// Warns of workers that warp itself cannot read.
pub(super) fn warn_of_workers(worker_max: u32, format: Format, ui: &Ui) {
    if format == Format::Warp && worker_max > THREAD_MAX_OF_WARP {
        ui.warn(&format!(
            "warp reads worker numbers up to {THREAD_MAX_OF_WARP} only, and there are more"
        ));
    }
}

fn format(args: &ExportArgs) -> Result<Format> {
    let name = args.output.file_name().unwrap_or_default().to_string_lossy();
    let by_name = || {
        let endings = [
            (".csv.zst", Format::Warp),
            (".csv", Format::Csv),
            (".jsonl", Format::Jsonl),
            (".om", Format::OpenMetrics),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    };
    let given = args.format.map(|format| match format {
        ExportFormat::Warp => Format::Warp,
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Jsonl => Format::Jsonl,
        ExportFormat::Openmetrics => Format::OpenMetrics,
    });
    given.or_else(by_name).with_context(|| {
        format!("-o {name}: end it in .csv.zst, .csv, .jsonl or .om, or choose a --format")
    })
}
