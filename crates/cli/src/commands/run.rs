//! `plimsoll run`: a workload file, against its targets or in virtual time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::{ConductError, StandIn, input};
use plimsoll_dialects::cosbench;
use plimsoll_dialects::fio::is_job_file;
use plimsoll_oracle::Script;
use plimsoll_workload::plan::{Plan, ReadError, Source, Stage, WorkloadFile};
use serde_json::{Value, json};

use crate::args::Form;
use crate::args::file::FileConductArgs;
use crate::args::load_line::SearchArgs;
use crate::args::{PrintArgs, RunArgs};
use crate::commands::fio;
use crate::conducted::{self, Settings};
use crate::load_line::searched;
use crate::{lower, said, store};

/// Runs a workload file.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    searching(args, None)
}

/// The same, or looks for the load line of a stage of it.
pub(crate) fn searching(args: &RunArgs, search: Option<&SearchArgs>) -> Result<ExitCode> {
    let done = carry_out(args, search);
    let print = &args.output.print;
    if let (Err(error), true) = (&done, args.check && print.json) {
        print.ui().result(&format!("{:#}\n", refusal(&args.file, error)))?;
    }
    done
}

/// Returns why a file is not sound.
fn refusal(file: &Path, error: &anyhow::Error) -> Value {
    let found = error.downcast_ref::<ReadError>();
    let position = found.and_then(|found| found.position);
    let path = found.map(|found| found.invalid.path.to_string());
    json!({
        "file": file.display().to_string(),
        "sound": false,
        "error": {
            "path": path.filter(|path| !path.is_empty()),
            "line": position.map(|position| position.line),
            "column": position.map(|position| position.column),
            "reason": found.map_or_else(
                || format!("{error:#}"),
                |found| found.invalid.reason.clone(),
            ),
        },
    })
}

/// Says that a file is sound.
pub(super) fn say_sound(file: &str, plan: &Plan, print: &PrintArgs) -> Result<()> {
    let stage = |stage: &Stage| {
        let jobs: Vec<&str> = stage.jobs.iter().map(|job| &*job.name).collect();
        json!({ "name": stage.name, "kind": stage.kind.name(), "jobs": jobs })
    };
    let text = match print.form() {
        Form::Text => format!("{file}: sound\n"),
        Form::Json => {
            let stages: Vec<Value> = plan.stages.iter().map(stage).collect();
            let said = json!({ "file": file, "sound": true, "name": plan.name, "stages": stages });
            format!("{said:#}\n")
        }
    };
    print.ui().result(&text)
}

/// Returns a workload as it is understood, in the form that is asked for.
fn explained(file: &WorkloadFile, print: &PrintArgs) -> Result<String> {
    match print.form() {
        Form::Text => Ok(file.to_yaml()),
        Form::Json => Ok(format!("{:#}\n", serde_json::to_value(file)?)),
    }
}

fn carry_out(args: &RunArgs, search: Option<&SearchArgs>) -> Result<ExitCode> {
    let text = read(&args.file)?;
    let conduct = args.file_conduct();
    if search.is_some() && (is_job_file(&text) || cosbench::is_workload(&text)) {
        bail!(
            "{} is another tool's file: have --explain write it in the workload language, and look \
             for the load line of that",
            args.file.display()
        );
    }
    if is_job_file(&text) {
        return run_job_file(args, &text, &conduct);
    }
    refuse_reading(args)?;
    let ui = args.output.ui();
    let name = args.file.display().to_string();
    if cosbench::is_workload(&text) {
        let settings = settings(args, &conduct)?;
        let only = (args.check, args.explain);
        return super::cosbench::run_file((&name, &text), args.seed, only, settings);
    }
    let (file, source) = WorkloadFile::read(&name, &text)?;
    let file = WorkloadFile { seed: args.seed.or(file.seed), ..file };
    // What a search makes of it stands nowhere in the file.
    let source = search.is_none().then_some(source);
    let file = searched(file, search, None)?;
    let located = |error: anyhow::Error| located(error, source.as_ref(), &name);
    let settings = settings(args, &conduct)?;
    if args.check || args.explain {
        let plan = conducted::judge(&file, &settings).map_err(located)?;
        match args.check {
            true => say_sound(&name, &plan, &args.output.print)?,
            false => ui.result(&explained(&file, &args.output.print)?)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    conducted::run(&file, &settings).map_err(located)
}

fn settings<'a>(args: &'a RunArgs, conduct: &'a FileConductArgs) -> Result<Settings<'a>> {
    let settings = Settings {
        store: Some(&args.store),
        lends_to: Some(store::named_hosts(&args.store)?),
        serverprof: args.profile.serverprof.as_ref(),
        stand_in: stand_in(args)?,
        files: Some(conduct),
        keeps_data: args.keep_data,
        ..Settings::plain(&args.output, args.consent()).conducting(&args.conduct)
    };
    settings.reading(&args.sent.allow_dir)
}

/// Returns an error with its place in the file, where it is about a field of it.
pub(crate) fn located(error: anyhow::Error, source: Option<&Source>, name: &str) -> anyhow::Error {
    match error.downcast() {
        Ok(ConductError::Plan(invalid) | ConductError::NotSimulated(invalid)) => match source {
            Some(source) => source.locate(invalid).into(),
            None => ReadError { file: name.to_owned(), position: None, invalid }.into(),
        },
        Ok(other) => lower::with_advice(other),
        Err(other) => other,
    }
}

/// Returns what stands in for stores and files.
fn stand_in(args: &RunArgs) -> Result<StandIn> {
    if !args.is_virtual {
        return Ok(StandIn::Nobody);
    }
    refuse_host()?;
    let script = |path: &PathBuf| {
        let script = Script::from_yaml(&read(path)?);
        script.map(Box::new).with_context(|| format!("--script: {}", path.display()))
    };
    Ok(StandIn::Virtual(args.script.as_ref().map(script).transpose()?))
}

/// Refuses a host beside `--virtual`; one in the environment is where other runs go.
pub(crate) fn refuse_host() -> Result<()> {
    if said::is_typed("--host") {
        bail!("--virtual asks no store, so --host means nothing; leave one of them out");
    }
    Ok(())
}

/// Refuses flags that say how a job file of fio's is read, where the file is none.
fn refuse_reading(args: &RunArgs) -> Result<()> {
    let reading = &args.reading;
    let given = [
        ("--dir", reading.dir.is_some()),
        ("--scale", reading.scale.is_some()),
        ("--scale-time", reading.scale_time.is_some()),
        ("--jobs-max", reading.jobs_max.is_some()),
        ("--section", !reading.section.is_empty()),
        ("--fio-units", reading.fio_units),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => bail!(
            "{flag} is for fio job files, and {} is not one: its contents say what it does",
            args.file.display()
        ),
        None => Ok(()),
    }
}

/// Runs a job file of fio's.
fn run_job_file(args: &RunArgs, text: &str, conduct: &FileConductArgs) -> Result<ExitCode> {
    if !args.sent.allow_dir.is_empty() {
        bail!("--allow-dir is for files that go to a store, and a fio job file names none");
    }
    let settings = fio::Settings {
        reading: &args.reading,
        conduct,
        output: &args.output,
        stand_in: stand_in(args)?,
        keeps_data: args.keep_data,
        consent: args.consent(),
        seed: args.seed,
        explain: args.explain,
        check: args.check,
    };
    fio::run(&args.file, text, &settings)
}

fn read(path: &Path) -> Result<String> {
    input::read_given(path).with_context(|| format!("cannot read {}", path.display()))
}
