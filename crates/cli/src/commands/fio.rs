//! fio's job files: `plimsoll run JOB.fio` with our report, `plimsoll as fio` with fio's.

mod clients;

use std::cell::Cell;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use plimsoll_analysis::OpSource;
use plimsoll_conduct::output::write_over;
use plimsoll_conduct::{Consent, Recording, RunTime, StandIn, input, machine};
use plimsoll_dialects::fio::layout::{self, FioQueues, Ran, RanByClients, Writing};
use plimsoll_dialects::fio::{self, Host, JobFile, Lowered, Options, Units};
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_report::Report;
use plimsoll_results::{Asked, Record, Rows};

use self::clients::Clients;
use crate::args::DESTROYS;
use crate::args::OutputArgs;
use crate::args::file::{FileConductArgs, FioArgs, JobFileArgs};
use crate::conducted::{self, fresh_seed};
use crate::environment;
use crate::flags;
use crate::pins::Absent;
use crate::ui::Ui;

/// Where files lie that name no directory.
const DEFAULT_DIRECTORY: &str = ".";

/// How a job file is run.
pub(crate) struct Settings<'a> {
    pub(crate) reading: &'a JobFileArgs,
    pub(crate) conduct: &'a FileConductArgs,
    pub(crate) output: &'a OutputArgs,
    /// What stands in for the files.
    pub(crate) stand_in: StandIn,
    pub(crate) keeps_data: bool,
    pub(crate) consent: Consent,
    pub(crate) seed: Option<u64>,
    pub(crate) explain: bool,
    /// Whether the file is only judged.
    pub(crate) check: bool,
}

/// Runs a job file and prints our report.
pub(crate) fn run(path: &Path, text: &str, settings: &Settings<'_>) -> Result<ExitCode> {
    let name = path.display().to_string();
    let read = |path: &str| read_included(path, &name);
    let file = fio::parse(text, &name, &options(settings.reading, &read))?;
    let lowered = lower(&directed(&file, settings.reading), settings, None, &AllowedDirs::ANY)?;
    let workload = &lowered.workload;
    let located = |error| super::run::located(in_words(error), None, &name);
    if settings.explain || settings.check {
        let of_files = of_files(&lowered, settings);
        let plan = conducted::judge(workload, &of_files).map_err(located)?;
        if settings.explain {
            return explain(&lowered, settings);
        }
        super::run::say_sound(&name, &plan, &settings.output.print)?;
        return Ok(ExitCode::SUCCESS);
    }
    if lowered.null {
        settings.output.ui().note("ioengine=null: no file is touched");
    }
    conducted::run(workload, &of_files(&lowered, settings)).map_err(located)
}

/// Takes fio's command line and prints as fio does.
// Long: one run, from its command line to its output and logs.
pub(crate) fn as_fio(args: &FioArgs) -> Result<ExitCode> {
    let read = |path: &str| read_included(path, "");
    let (explain_too, words) = super::take_explain(&args.words);
    let line = fio::from_args(&words, &options(&args.reading, &read))?;
    let of_clients = match line.clients.is_empty() {
        true => None,
        false => Some(clients::output(&args.output, &line.clients)?),
    };
    let settings = Settings {
        reading: &args.reading,
        conduct: &args.conduct,
        output: of_clients.as_ref().unwrap_or(&args.output),
        stand_in: StandIn::Nobody,
        keeps_data: args.keep_data,
        consent: Consent::by(DESTROYS, args.reading.i_know_this_destroys_data),
        seed: None,
        explain: args.explain || explain_too,
        check: false,
    };
    if line.output.parse_only {
        return Ok(ExitCode::SUCCESS);
    }
    let ui = settings.output.ui();
    let file = directed(&line.file, &args.reading);
    let mut clients = Clients::find(&line.clients, &file, &settings, &ui).map_err(in_words)?;
    let lowered = lower(&file, &settings, clients.as_ref(), &AllowedDirs::ANY)?;
    lowered.workload.check().map_err(|error| in_words(error.into()))?;
    if settings.explain {
        if clients.is_some() {
            ui.result(&clients::explained(&settings.output.fleet))?;
        }
        return explain(&lowered, &settings);
    }
    lowered.notes.iter().for_each(|note| ui.note(&note.to_string()));
    let show = |recording: &mut Recording, ui: &Ui| {
        let record = Record::of_run(&recording.directory)?;
        let is_grouped = |stage| lowered.is_grouped(&line.file, stage);
        let rows = if line.clients.is_empty() { Rows::Jobs } else { Rows::Agents };
        let report = report(&record, rows, is_grouped)?;
        let all = match line.clients.is_empty() {
            true => None,
            false => Some(rows_of(&record, Rows::Jobs)?),
        };
        let by_clients = all.as_ref().map(|all| RanByClients { clients: &line.clients, all });
        let ran = Ran { file: &line.file, lowered: &lowered, report: &report, by_clients };
        let mut queues = FioQueues::default();
        record.source.scan(&mut |op| queues.add(op))?;
        let told = ran.run(writing(recording), &queues.finish());
        let text = layout::render(&told, &line.output.formats);
        match &line.output.path {
            Some(path) => {
                let written = write_over(Path::new(path), &text);
                written.with_context(|| format!("--output: cannot write {path}"))?;
            }
            None => ui.result(&text)?,
        }
        for mut logs in ran.logs() {
            record.source.scan(&mut |op| logs.add(op))?;
            for (path, text) in logs.finish() {
                // The job file names it. What a link leads to is somebody else's.
                let written = match Path::new(&path).is_symlink() {
                    true => Err(io::Error::other("it is a symbolic link")),
                    false => write_over(Path::new(&path), &text),
                };
                written.map_err(|error| anyhow!("cannot write {path}: {error}"))?;
            }
        }
        Ok(())
    };
    let of_run = conducted::Settings {
        show: Some(&show),
        mustered: Cell::new(clients.as_mut().and_then(|clients| clients.mustered.take())),
        ..of_files(&lowered, &settings)
    };
    conducted::run(&lowered.workload, &of_run).map_err(in_words)
}

/// Returns a refusal in the words of job files.
fn in_words(error: anyhow::Error) -> anyhow::Error {
    flags::in_words(Absent::named_by(error, "--client"), &fio::WORDS)
}

/// Returns the report of a run in rows as fio has them, with whole distributions.
fn rows_of(record: &Record, rows: Rows) -> Result<Report> {
    let segment = Some(layout::RATE_WINDOW);
    Ok(record.report(&Asked { rows, distributions: true, segment, ..Asked::default() })?)
}

/// Returns the report of a run in these rows in stages that are grouped, and with one for each
/// worker in the others.
fn report(record: &Record, rows: Rows, is_grouped: impl Fn(usize) -> bool) -> Result<Report> {
    let stages = 0..record.stages.len();
    if stages.clone().all(&is_grouped) {
        return rows_of(record, rows);
    }
    let mut report = rows_of(record, Rows::Workers)?;
    if stages.clone().any(&is_grouped) {
        for (stage, grouped) in stages.zip(rows_of(record, rows)?.stages) {
            if is_grouped(stage) {
                report.stages[stage] = grouped;
            }
        }
    }
    Ok(report)
}

/// Returns who writes the result now.
fn writing(recording: &Recording) -> Writing {
    let unix_ns = recording.time.wall_epoch.as_unix_ns() + recording.now().as_ns();
    let time = jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    let time = time.to_zoned_datetime(jiff::tz::TimeZone::system());
    Writing {
        program: concat!("plimsoll-", env!("CARGO_PKG_VERSION")).to_owned(),
        pid: rustix::process::getpid().as_raw_nonzero().get() as u32,
        unix_ms: unix_ns / 1_000_000,
        time: time.strftime("%a %b %e %H:%M:%S %Y").to_string(),
    }
}

fn of_files<'a>(lowered: &Lowered, settings: &Settings<'a>) -> conducted::Settings<'a> {
    conducted::Settings {
        files: Some(settings.conduct),
        keeps_data: settings.keeps_data,
        max_error_rate: settings.conduct.max_error_rate.0,
        stand_in: if lowered.null { StandIn::Null } else { settings.stand_in.clone() },
        notes: lowered.notes.iter().map(ToString::to_string).collect(),
        keeps_going: true,
        ..conducted::Settings::plain(settings.output, settings.consent.clone())
    }
}

/// Translates the text of a job file that somebody else has sent. It reads neither files nor
/// variables of this machine, and looks for files and their sizes only where that is allowed.
pub(super) fn from_text(
    text: &str,
    name: &str,
    settings: &Settings<'_>,
    allowed: &AllowedDirs,
) -> Result<Lowered> {
    let read = |path: &str| Err(format!("{path} would be read on this machine, which is not done"));
    let own = options(settings.reading, &read);
    let file = fio::parse(text, name, &Options { variable: &|_| None, ..own })?;
    lower(&file, settings, None, allowed)
}

/// Prints what a job file comes to, and what changed on the way.
fn explain(lowered: &Lowered, settings: &Settings<'_>) -> Result<ExitCode> {
    let mut text = String::new();
    for note in &lowered.notes {
        text.push_str(&format!("# {note}\n"));
    }
    text.push_str(&format!("# {}\n", fio::SIZES));
    text.push_str(&lowered.workload.to_yaml());
    settings.output.ui().result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn options<'a>(
    args: &JobFileArgs,
    read: &'a dyn Fn(&str) -> Result<String, String>,
) -> Options<'a> {
    Options {
        units: if args.fio_units { Units::Fio } else { Units::Strict },
        read,
        variable: &environment::variable,
        host: Host {
            cpus_count: machine::cores() as u64,
            memory_mib: machine::memory_bytes() >> 20,
            page_size_bytes: rustix::param::page_size() as u64,
        },
        sections: args.section.clone(),
    }
}

/// Returns the text of a job file or of one that it includes: as given, else beside the including
/// one.
fn read_included(path: &str, beside: &str) -> Result<String, String> {
    let sibling = Path::new(beside).parent().map(|parent| parent.join(path));
    input::read_given(Path::new(path))
        .or_else(|error| sibling.map_or(Err(error), |sibling| input::read_given(&sibling)))
        .map_err(|error| error.to_string())
}

/// Returns a job file with its files where the flags want them.
fn directed(file: &JobFile, reading: &JobFileArgs) -> JobFile {
    let mut file = file.clone();
    if let Some(directory) = &reading.dir {
        let directory = directory.display().to_string();
        file.jobs.iter_mut().for_each(|job| job.files.directories = vec![directory.clone()]);
    }
    file
}

/// Returns what a job file comes to on this machine, or on those of clients.
fn lower(
    file: &JobFile,
    settings: &Settings<'_>,
    clients: Option<&Clients>,
    allowed: &AllowedDirs,
) -> Result<Lowered> {
    let reading = settings.reading;
    let here = |path: &str| allowed.size_bytes(Path::new(path));
    let is_device_here = |path: &str| allowed.is_device(Path::new(path));
    let machine = fio::Machine {
        cores: clients.map_or_else(|| machine::cores() as u32, |clients| clients.fillers),
        default_directory: DEFAULT_DIRECTORY,
        file_size: &|path| clients.map_or_else(|| here(path), |all| all.size_bytes(path)),
        is_device: &|path| clients.map_or_else(|| is_device_here(path), |all| all.is_device(path)),
        destroys: settings.consent.given,
        seed: settings.seed.unwrap_or_else(|| fresh_seed(RunTime::machine().wall_epoch)),
        size_scale: reading.scale.map(|scale| scale.0),
        runtime_scale: reading.scale_time.map(|scale| scale.0),
        clones_max: reading.jobs_max,
        clients: clients.map_or(NonZeroU32::MIN, |clients| clients.count),
    };
    Ok(fio::lower(file, &machine)?)
}
