//! `plimsoll as cosbench`, and `plimsoll run` with a workload file of COSBench's.

#[cfg(not(feature = "console"))]
mod no_archive;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use plimsoll_conduct::{Consent, RunTime, Stop, input};
#[cfg(feature = "console")]
use plimsoll_console::ArchiveRoot;
use plimsoll_dialects::cosbench::layout::{self, Archive, Ran, Results, WorkloadState};
use plimsoll_dialects::cosbench::{self, Lowered, Options, Touched, Workload};
use plimsoll_model::WallTime;
use plimsoll_results::{Asked, Record};
use plimsoll_workload::plan::spec::{TargetSpec, Targets};

#[cfg(not(feature = "console"))]
use self::no_archive::ArchiveRoot;
use crate::args::requests::RequestArgs;
use crate::args::s3::StoreArgs;
use crate::args::{CosbenchArgs, Form, YES};
use crate::conducted::{self, Conducted, Settings};
use crate::ui::Ui;
use crate::{flags, shown, store};

/// The largest workload file that is read; it may be in an encoding of its own.
const XML_BYTES_MAX: u64 = 16 << 20;
/// What the flag is called that names the archive.
const ARCHIVE: &str = "--archive";

/// A workload file that was read.
pub(crate) struct Understood {
    /// As COSBench understands it.
    pub(crate) workload: Workload,
    /// As it is run.
    pub(crate) lowered: Lowered,
}

impl Understood {
    /// Returns what the file of that name holds.
    pub(crate) fn read(name: &str, text: &[u8], options: &Options) -> Result<Self> {
        let read = || -> Result<Self, cosbench::Refused> {
            let workload = cosbench::read(text)?;
            let lowered = cosbench::lower(&workload, options)?;
            Ok(Self { workload, lowered })
        };
        read().map_err(|refused| Error::from(refused).context(name.to_owned()))
    }

    /// Returns the workload as it is run, with what changed on the way as comments.
    pub(crate) fn explained(&self) -> String {
        let Lowered { file, notes, corrections, .. } = &self.lowered;
        let corrections = corrections.iter().map(ToString::to_string);
        let comment = |line: String| format!("# {}\n", line.replace('\n', " "));
        let comments: String = notes.iter().cloned().chain(corrections).map(comment).collect();
        format!("{comments}# {}\n{}", cosbench::SIZES, file.to_yaml())
    }

    /// Returns the refusal of what a file came to in the file's words, with the line of it.
    fn in_its_words(&self, error: Error) -> Error {
        match flags::refused_field(&error) {
            Some(refused) => Error::from(self.lowered.refusal(&self.workload, refused)),
            None => error,
        }
    }

    /// Says which buckets are not left as they are.
    fn say_touched(&self, ui: &Ui, more: &str) {
        let is_mock = |spec: &TargetSpec| matches!(spec, TargetSpec::Null(_));
        let is_real = |target: &str| match &self.lowered.file.targets {
            Targets::Several(specs) => specs.get(target).is_none_or(|spec| !is_mock(spec)),
            Targets::One(spec) => !is_mock(spec),
            Targets::Given => true,
        };
        for Touched { target, buckets } in &self.lowered.touched {
            if is_real(target) {
                ui.note(&format!("works in {buckets} of {target}{more}"));
            }
        }
    }

    /// Returns settings with what the file says of how it is run.
    pub(crate) fn settings<'a>(&self, settings: Settings<'a>) -> Settings<'a> {
        Settings {
            secrets: self.lowered.secrets.clone(),
            notes: self.lowered.notes.clone(),
            // Each work has an `afr` of its own.
            max_error_rate: 100.0,
            // What it writes stays until a stage of it cleans up.
            keeps_data: true,
            ..settings
        }
    }
}

/// Takes a workload file of COSBench's and prints its summary.
pub(crate) fn as_cosbench(args: &CosbenchArgs) -> Result<ExitCode> {
    let name = args.file.display().to_string();
    let text = input::read_given_bytes(&args.file, XML_BYTES_MAX);
    let text = text.with_context(|| format!("cannot read {name}"))?;
    let options = Options { seed: args.seed, drivers: None };
    let understood = Understood::read(&name, &text, &options)?;
    let store = StoreArgs {
        // Each object is one PUT, as there.
        requests: RequestArgs { disable_multipart: true, ..RequestArgs::default() },
        ..StoreArgs::of(args.credentials.clone(), args.tls.clone())
    };
    let ui = args.output.ui();
    let settings = Settings {
        store: Some(&store),
        lends_to: Some(store::named_hosts(&store)?),
        threads: args.threads,
        op_timeout: args.op_timeout.0,
        keeps_going: true,
        ..Settings::plain(&args.output, consent(args))
    };
    let settings = understood.settings(settings.reading(&args.sent.allow_dir)?);
    if args.check || args.explain {
        let plan = conducted::judge(&understood.lowered.file, &settings)
            .map_err(|error| understood.in_its_words(error))?;
        match args.check {
            true => super::run::say_sound(&name, &plan, &args.output.print)?,
            false => ui.result(&understood.explained())?,
        }
        understood.say_touched(&ui, ", which needs --touch where no run of plimsoll made a bucket");
        return Ok(ExitCode::SUCCESS);
    }
    understood.lowered.notes.iter().for_each(|note| ui.note(note));
    run(&understood, args, settings)
}

fn consent(args: &CosbenchArgs) -> Consent {
    Consent::by(YES, args.yes).touching(args.touched.touch.clone())
}

/// Runs a workload file and prints our report.
pub(crate) fn run_file(
    (name, text): (&str, &str),
    seed: Option<u64>,
    (is_check, is_explain): (bool, bool),
    settings: Settings<'_>,
) -> Result<ExitCode> {
    let understood = Understood::read(name, text.as_bytes(), &Options { seed, drivers: None })?;
    let settings = understood.settings(settings);
    let (ui, file) = (settings.output.ui(), &understood.lowered.file);
    if is_check || is_explain {
        let plan =
            conducted::judge(file, &settings).map_err(|error| understood.in_its_words(error))?;
        match is_check {
            true => super::run::say_sound(name, &plan, &settings.output.print)?,
            false => ui.result(&understood.explained())?,
        }
        understood.say_touched(&ui, ", which needs --touch where no run of plimsoll made a bucket");
        return Ok(ExitCode::SUCCESS);
    }
    understood.lowered.notes.iter().for_each(|note| ui.note(note));
    understood.say_touched(&ui, "");
    ui.note("`plimsoll as cosbench` prints COSBench's summary and writes its archive");
    conducted::run(file, &settings).map_err(|error| understood.in_its_words(error))
}

fn run(understood: &Understood, args: &CosbenchArgs, settings: Settings<'_>) -> Result<ExitCode> {
    // An archive that cannot be written is found out before anything else is.
    let root = args.archive.as_deref().map(open_archive).transpose()?;
    let id = root.as_ref().map_or_else(|| "w1".to_owned(), ArchiveRoot::next_id);
    let submitted = RunTime::machine().wall_epoch;
    let settings = Settings { show: Some(&|_, _| Ok(())), ..settings };
    let file = &understood.lowered.file;
    let mut conducted =
        Conducted::begin(file, &settings).map_err(|error| understood.in_its_words(error))?;
    understood.say_touched(&args.output.ui(), "");
    let directory = conducted.run.recording.directory.path().to_path_buf();
    let stop = conducted.run.recording.stop.clone();
    let done = conducted.carry_out(None, None);
    let ended = conducted.end(done, &settings);
    let ui = args.output.ui();
    // However it has ended: what was counted is worth no less.
    let shown = archived_run(understood, (&id, submitted), (&directory, &ended, &stop));
    let (record, archive) = match shown {
        Ok(shown) => shown,
        Err(error) => return ended.and(Err(error)),
    };
    match args.output.print.form() {
        Form::Json => {
            let report = shown::report(&record, &Asked::default())?;
            shown::print(&report, Form::Json, &ui)?;
        }
        Form::Text => ui.result(&layout::summary_table(&archive))?,
    }
    if let Some(first) = record.manifest().and_then(|manifest| manifest.first_errors.first()) {
        ui.warn(&format!("the first failure: {}", first.message));
    }
    ui.note(&format!("recorded in {}", directory.display()));
    ui.note("`plimsoll report` of it has percentiles, errors and what was verified");
    if let Some(root) = &root {
        let kept = root.keep(&archive, &understood.workload);
        match kept.with_context(|| format!("{ARCHIVE}: cannot write that of {id}")) {
            Ok(place) => ui.note(&format!("archived as {id} in {}", place.display())),
            Err(error) => return ended.and(Err(error)),
        }
    }
    let has_failed = archive.states.last().is_some_and(|last| last.state == "failed");
    ended.map(|code| match code == ExitCode::SUCCESS && has_failed {
        true => shown::exit_code(false),
        false => code,
    })
}

fn open_archive(path: &Path) -> Result<ArchiveRoot> {
    ArchiveRoot::open(path).with_context(|| format!("{ARCHIVE} {}", path.display()))
}

/// Returns the record of a run, and what is archived of it, however it has ended.
fn archived_run(
    understood: &Understood,
    (id, submitted): (&str, WallTime),
    (directory, ended, stop): (&Path, &Result<ExitCode>, &Stop),
) -> Result<(Record, Archive)> {
    let record = Record::open(directory)?;
    let state = match ended {
        _ if stop.is_step_stopped() => Some(WorkloadState::Cancelled),
        Err(_) => Some(WorkloadState::Terminated),
        Ok(_) => None,
    };
    let stopped = Some(RunTime::machine().wall_epoch);
    let ran = Ran { id, submitted, stopped, state, local: &local };
    let Understood { workload, lowered } = understood;
    let reports = record.report_of_tables(Duration::from_secs(workload.interval_s().into()))?;
    let (report, by_worker) = (reports.0.as_ref(), reports.1.as_ref());
    let archive = layout::from_results(&Results { workload, lowered, report, by_worker }, &ran);
    Ok((record, archive))
}

/// Returns a moment in local time as COSBench writes it.
fn local(at: WallTime) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(at.as_unix_ns())).unwrap_or_default();
    at.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
