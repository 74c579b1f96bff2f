//! `plimsoll as mdtest`: mdtest's command line and table, on our engine.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use plimsoll_dialects::mdtest::layout::{FileSystem, MdtestReport, RunFacts, json, text};
use plimsoll_dialects::mdtest::{self, MdtestPlan};
use plimsoll_model::WallTime;

use crate::args::DESTROYS;
use crate::args::file::MdtestArgs;
use crate::conducted::{self, fresh_seed};
use crate::flags;
use crate::said;
use crate::ui::Ui;
use plimsoll_conduct::output::write_over;
use plimsoll_conduct::{Consent, Recording, RunTime};
use plimsoll_results::{Asked, Record, Rows};

/// Takes mdtest's command line and prints its table.
pub(crate) fn as_mdtest(args: &MdtestArgs) -> Result<ExitCode> {
    let (explains, words) = super::take_explain(&args.words);
    let plan = mdtest::from_args(&words)?;
    let ui = args.output.ui();
    let mut file = plan.workload.clone();
    file.seed.get_or_insert_with(|| fresh_seed(RunTime::machine().wall_epoch));
    let in_words = |error| flags::in_words(error, &mdtest::WORDS);
    file.check().map_err(|error| in_words(error.into()))?;
    if args.explain || explains {
        let notes: String = plan.notes.iter().map(|note| format!("# {note}\n")).collect();
        ui.result(&format!("{notes}# {}\n{}", mdtest::SIZES, file.to_yaml()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let file_system = plan.directories.first().and_then(|path| file_system(path));
    let show = |recording: &mut Recording, ui: &Ui| {
        let table = table(&plan, file_system, recording)?;
        let document = || format!("{:#}\n", json::render(&table));
        if let Some(path) = &args.json_file {
            let written = write_over(path, &document());
            written.with_context(|| format!("--json-file: cannot write {}", path.display()))?;
        }
        ui.result(&if args.output.print.json { document() } else { text::render(&table) })?;
        Ok(())
    };
    // Its names lie in directories of the run's own.
    let consent = Consent::by(DESTROYS, false);
    let settings = conducted::Settings {
        files: Some(&args.conduct),
        max_error_rate: args.conduct.max_error_rate.0,
        notes: plan.notes.iter().map(ToString::to_string).collect(),
        show: Some(&show),
        keeps_going: true,
        ..conducted::Settings::plain(&args.output, consent)
    };
    conducted::run(&file, &settings).map_err(in_words)
}

/// Returns what mdtest's table tells of a run.
fn table(
    plan: &MdtestPlan,
    file_system: Option<FileSystem>,
    recording: &Recording,
) -> Result<MdtestReport> {
    let asked = Asked { rows: Rows::Workers, distributions: true, ..Asked::default() };
    let report = Record::of_run(&recording.directory)?.report(&asked)?;
    let facts = RunFacts {
        started: civil(report.epoch),
        ended: civil(report.epoch.after(Duration::from_nanos(recording.now().as_ns()))),
        command: said::command_line(),
        file_system,
    };
    Ok(MdtestReport::of(plan, &report, facts))
}

/// Returns a time as mdtest writes it, in the machine's time zone.
fn civil(at: WallTime) -> String {
    let at = Timestamp::from_nanosecond(i128::from(at.as_unix_ns())).unwrap_or_default();
    at.to_zoned_datetime(TimeZone::system()).strftime("%m/%d/%Y %H:%M:%S").to_string()
}

fn file_system(path: &str) -> Option<FileSystem> {
    let facts = rustix::fs::statvfs(path).ok()?;
    Some(FileSystem {
        size_bytes: facts.f_blocks * facts.f_frsize,
        free_bytes: facts.f_bfree * facts.f_frsize,
        inodes_count: facts.f_files,
        inodes_free_count: facts.f_ffree,
    })
}
