//! `plimsoll loadline`: a benchmark at one rate after the other, until the highest is found that a
//! store carries.
//!
//! Without a store it searches the built-in one. That happens in virtual time, because a machine
//! that is busy would be the limit of a search in real time, and an answer that depends on the
//! machine demonstrates nothing. What real sockets, clocks and kernels add is then seen at half of
//! the line, where a busy machine shows as latency and not as another answer.

use std::cell::Cell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use plimsoll_conduct::{Recording, RunTime};
use plimsoll_model::RunId;
use plimsoll_report::{Report, text};
use plimsoll_results::Asked;
use plimsoll_workload::mix64;
use plimsoll_workload::plan::WorkloadFile;

use super::{file, run, s3, weed};
use crate::args::load_line::{LoadLineArgs, LoadLineOf};
use crate::args::{Form, OutputArgs, PrintArgs};
use crate::conducted::{Conducted, Settings};
use crate::load_line::at_half;
use crate::manifest::directory_for;
use crate::ui::Ui;
use crate::{shown, signals};

/// A busy machine can hold an operation up for long; one that is answered at all has not failed.
const OP_TIMEOUT_MIN: Duration = Duration::from_secs(60);
/// What is said below the answer.
const NEXT: &str = "\
    Your own store: plimsoll loadline s3 get --host HOST:PORT --slo 'p99<=20ms'\n\
    This search in real time, over loopback: plimsoll loadline --real\n";

/// Looks for the load line of a benchmark.
pub(crate) fn run(args: &LoadLineArgs) -> Result<ExitCode> {
    let search = Some(&args.search);
    match &args.of {
        LoadLineOf::Weed(_) | LoadLineOf::File(_) if args.search.is_virtual => bail!(
            "--virtual: this benchmark works on a real target; leave it out, or search the workload \
             that --explain prints: plimsoll run FILE --virtual"
        ),
        LoadLineOf::S3(command) => s3::searching(command, search),
        LoadLineOf::Weed(command) => weed::searching(command, search),
        LoadLineOf::File(command) => file::searching(command, search),
        LoadLineOf::Run(args) => run::searching(args, search),
    }
}

/// Refuses what the built-in store has not.
pub(super) fn refuse_what_it_has_not(output: &OutputArgs) -> Result<()> {
    if output.fleet.is_asked()? {
        bail!("--fleet: agents cannot reach the built-in store; name yours with --host");
    }
    Ok(())
}

/// Returns what is printed and kept of the search of the built-in store and of the load over
/// loopback; both are short, and not shown while they go on.
pub(super) fn outputs(output: &OutputArgs, name: &str) -> [OutputArgs; 2] {
    let now = RunTime::machine().wall_epoch;
    let id = RunId::new(name, now, mix64(now.as_unix_ns()));
    let first = directory_for(output.run_dir.as_deref(), &id);
    let second = match first.file_name() {
        Some(name) => first.with_file_name(format!("{}-loopback", name.display())),
        None => first.join("loopback"),
    };
    let quiet = PrintArgs { quiet: true, ..output.print.clone() };
    [first, second].map(|directory: PathBuf| OutputArgs {
        run_dir: Some(directory),
        print: quiet.clone(),
        ..output.clone()
    })
}

/// Searches the built-in store in virtual time by the first settings, then puts half of the line on
/// it in real time by the second.
pub(super) fn demonstrate(
    file: &WorkloadFile,
    [first, second]: [Settings<'_>; 2],
    output: &OutputArgs,
) -> Result<ExitCode> {
    let ui = output.ui();
    if !output.outages.event.is_empty() {
        bail!("--event runs commands at instants of real time: add --real");
    }
    let form = output.print.form();
    let stop = signals::listen()?;
    let first = Settings { stop: Some(stop.clone()), ..first };
    let op_timeout = second.op_timeout.max(OP_TIMEOUT_MIN);
    let second = Settings { stop: Some(stop), op_timeout, ..second };
    let note = (&ui, "searching the built-in store in virtual time");
    let (mut report, mut good) = carry_out(file, &first, note, &|report, ui| match form {
        Form::Text => shown::print(report, form, ui),
        Form::Json => Ok(()),
    })?;
    let line = report.load_lines.first().and_then(|found| found.line.as_ref());
    let line = line.filter(|_| signals::exit_code().is_none()).map(|line| line.ops_per_sec);
    let mut done = Ok(());
    if let Some(line) = line {
        let note = (&ui, "putting half of that on it over loopback, for 5 s");
        let seen = at_half(file, line).and_then(|file| {
            carry_out(&file, &second, note, &|report, ui| match form {
                Form::Text => ui.text(&below(report, output.verbose, ui)),
                Form::Json => Ok(()),
            })
        });
        match seen {
            Ok((of_second, is_good)) => {
                good &= is_good;
                report.loopback = Some(Box::new(of_second));
            }
            // What was found is printed all the same.
            Err(error) => done = Err(error),
        }
    }
    if form == Form::Json {
        shown::print(&report, form, &ui)?;
    }
    done?;
    let is_client = report.loopback.iter().any(|of| of.verdict.iter().any(|of| of.is_client));
    let fails = output.fail_on_client_limit && is_client;
    Ok(if good && fails { shown::client_limit() } else { shown::exit_code(good) })
}

/// Returns what is printed of the load over loopback.
fn below(report: &Report, verbose: bool, ui: &Ui) -> String {
    let figures = verbose.then(|| format!("\n{}", shown::in_text(report, ui)));
    let seen = text::loopback(report, &shown::look(ui));
    format!("{seen}{}\n{NEXT}", figures.unwrap_or_default())
}

/// Carries a run out, and returns its report and whether it is good: that the machine was too busy
/// to issue operations on time is said in the report, and no flaw.
fn carry_out(
    file: &WorkloadFile,
    settings: &Settings<'_>,
    (ui, note): (&Ui, &str),
    show: &dyn Fn(&Report, &Ui) -> Result<()>,
) -> Result<(Report, bool)> {
    let OutputArgs { full_span, verbose, .. } = *settings.output;
    let asked = Asked { full_span, details: verbose, ..Asked::default() };
    let mut conducted = Conducted::begin(file, settings)?;
    ui.note(note);
    let done = conducted.carry_out(settings.syncstart, None);
    let reported = Cell::new(None);
    let show = |recording: &mut Recording, ui: &Ui| {
        let report = shown::report_of_run(recording, &asked)?;
        show(&report, ui)?;
        let mut judged = report.clone();
        let rows = judged.stages.iter_mut().flat_map(|stage| &mut stage.rows);
        rows.for_each(|row| row.schedules.clear());
        let flaws = plimsoll_results::flaws(&judged, settings.max_error_rate);
        flaws.iter().for_each(|flaw| ui.warn(flaw));
        reported.set(Some(report));
        Ok(flaws.is_empty())
    };
    let good = conducted.finish_by(done, show)?;
    Ok((reported.take().expect("a run that ended well was shown"), good))
}
