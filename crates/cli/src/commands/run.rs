//! `plimsoll run`: a workload file, against a store or in virtual time.
#![expect(clippy::disallowed_methods, reason = "cli reads the files it is given")]

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_oracle::Script;
use plimsoll_workload::WorkloadSpec;

use crate::args::RunArgs;
use crate::commands::s3::{self, Settings};
use crate::runner::{Asked, RunTime};
use crate::signals::Interrupts;
use crate::simulate::{self, Simulation};
use crate::ui::Ui;
use crate::{manifest, present};

/// What a scripted store does that nobody has described.
const PLAIN_SCRIPT: &str = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n";

/// Runs a workload file.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let spec = WorkloadSpec::from_yaml(&read(&args.file)?)
        .map_err(|error| anyhow!("{}: {error}", args.file.display()))?;
    let spec = WorkloadSpec { seed: args.seed.unwrap_or(spec.seed), ..spec };
    if args.explain {
        Ui::new(&args.output.print).result(&spec.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.is_virtual {
        let settings = Settings {
            store: &args.store,
            conduct: &args.conduct,
            output: &args.output,
            keeps_data: args.keep_data,
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
        asked: Asked { full_span: args.output.full_span, details: false },
        keeps_latencies: false,
        certificate: manifest::certificate(args.output.certificate.as_deref())?,
        run_dir: args.output.run_dir.as_deref(),
    };
    let simulated = simulate::run(&simulation, &Interrupts::listen()?, ui)?;
    present::print(&simulated.report, args.output.print.form(), &ui)?;
    let most = args.conduct.max_error_rate.0;
    Ok(present::exit_code(present::is_good(&simulated.report, most, &ui)))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
