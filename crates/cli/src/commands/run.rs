//! `plimsoll run`: a workload file, against a store or in virtual time.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::{RunTime, input};
use plimsoll_oracle::Script;
use plimsoll_results::Asked;
use plimsoll_workload::files::{FILES_SCHEMA, FilesSpec};
use plimsoll_workload::plan::{WORKLOAD_SCHEMA, WorkloadFile};
use plimsoll_workload::{SPEC_SCHEMA, WorkloadSpec};

use crate::args::RunArgs;
use crate::commands::s3::{self, Settings};
use crate::commands::{file, fio};
use crate::files::FileSettings;
use crate::simulate::{self, Simulation};
use crate::ui::Ui;
use crate::{manifest, shown, signals};

/// What a scripted store does that nobody has described.
const PLAIN_SCRIPT: &str = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n";

/// Runs a workload file.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let text = read(&args.file)?;
    if schema_of(&text).as_deref() == Some(WORKLOAD_SCHEMA) {
        return judge(args, &text);
    }
    if fio::is_job_file(&text) || is_on_files(&text) {
        return run_on_files(args, &text);
    }
    refuse_reading(args)?;
    let spec = WorkloadSpec::from_yaml(&text)
        .map_err(|error| anyhow!("{}: {error}", args.file.display()))?;
    let spec = WorkloadSpec { seed: args.seed.unwrap_or(spec.seed), ..spec };
    if args.explain {
        Ui::new(&args.output.print).result(&spec.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.check {
        let existing = spec.objects.existing.as_ref().map(|_| Vec::new());
        let refused = |error| anyhow!("{}: {error}", args.file.display());
        spec.validate("check", existing).map_err(refused)?;
        return sound(args);
    }
    if !args.is_virtual {
        let settings = Settings {
            store: &args.store,
            conduct: &args.conduct,
            output: &args.output,
            keeps_data: args.keep_data,
            consent: args.consent(),
            show: None,
        };
        return s3::run_spec(&spec, &settings, RunTime::machine());
    }
    if args.store.host.is_some() {
        bail!("--virtual asks no store, so --host means nothing; leave one of them out");
    }
    let script = match &args.script {
        Some(path) => {
            Script::from_yaml(&read(path)?).with_context(|| format!("--script: {}", path.display()))
        }
        None => Script::from_yaml(PLAIN_SCRIPT).context("the script that is built in"),
    };
    let ui = Ui::new(&args.output.print);
    let simulation = Simulation {
        spec: &spec,
        script: &script?,
        op_timeout: args.conduct.op_timeout.0,
        retries: args.conduct.retries,
        asked: Asked { full_span: args.output.full_span, ..Asked::default() },
        keeps_latencies: false,
        certificate: manifest::certificate(args.output.certificate.as_deref())?,
        run_dir: args.output.run_dir.as_deref(),
    };
    let simulated = simulate::run(&simulation, &signals::listen()?, ui)?;
    shown::print(&simulated.report, args.output.print.form(), &ui)?;
    let most = args.conduct.max_error_rate.0;
    Ok(shown::exit_code(shown::is_good(&simulated.report, most, &ui)))
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
            "{flag} is for job files of fio's, and {} is none: what it does stands in it",
            args.file.display()
        ),
        None => Ok(()),
    }
}

/// Tells whether a text is a workload on files.
fn is_on_files(text: &str) -> bool {
    schema_of(text).as_deref() == Some(FILES_SCHEMA)
}

/// Returns the language that a text says it is written in.
fn schema_of(text: &str) -> Option<String> {
    let schema = |line: &str| {
        let name = line.strip_prefix("schema:")?.split('#').next()?;
        Some(name.trim().trim_matches(['"', '\'']).to_owned())
    };
    text.lines().find_map(schema)
}

/// Judges a workload of version 2, and prints it as it is understood where that is asked for.
fn judge(args: &RunArgs, text: &str) -> Result<ExitCode> {
    refuse_reading(args)?;
    let name = args.file.display().to_string();
    let (file, source) = WorkloadFile::read(&name, text)?;
    file.check().map_err(|refused| source.locate(refused))?;
    if args.explain {
        Ui::new(&args.output.print).result(&file.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.check {
        return sound(args);
    }
    bail!(
        "{name}: {WORKLOAD_SCHEMA} is read and judged (--check, --explain), but cannot be run yet; \
         files of {SPEC_SCHEMA} and {FILES_SCHEMA} can"
    )
}

/// Says that nothing is wrong with the file.
fn sound(args: &RunArgs) -> Result<ExitCode> {
    Ui::new(&args.output.print).result(&format!("{}: sound\n", args.file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a job file of fio's or a workload on files.
fn run_on_files(args: &RunArgs, text: &str) -> Result<ExitCode> {
    if args.is_virtual {
        bail!("--virtual simulates a store; files are real, so leave it out");
    }
    let conduct = args.file_conduct();
    let settings = fio::Settings {
        reading: &args.reading,
        conduct: &conduct,
        output: &args.output,
        keeps_data: args.keep_data,
        consent: args.consent(),
        seed: args.seed,
        explain: args.explain,
        check: args.check,
    };
    if fio::is_job_file(text) {
        return fio::run(&args.file, text, &settings);
    }
    refuse_reading(args)?;
    let spec =
        FilesSpec::from_yaml(text).map_err(|error| anyhow!("{}: {error}", args.file.display()))?;
    let spec = FilesSpec { seed: args.seed.unwrap_or(spec.seed), ..spec };
    if args.explain {
        Ui::new(&args.output.print).result(&spec.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.check {
        let refused = |error| anyhow!("{}: {error}", args.file.display());
        spec.validate("check").map_err(refused)?;
        return sound(args);
    }
    let settings = FileSettings {
        conduct: &conduct,
        output: &args.output,
        keeps_data: args.keep_data,
        consent: args.consent(),
        null: false,
        notes: Vec::new(),
    };
    file::run_spec(&spec, &settings)
}

fn read(path: &Path) -> Result<String> {
    input::read_given(path).with_context(|| format!("cannot read {}", path.display()))
}
