//! `plimsoll as cosbench`: a workload file of COSBench's, with its summary and its archive.

use std::process::ExitCode;

use anyhow::{Context, Result};
use plimsoll_conduct::{Consent, Recording, RunTime, input};
use plimsoll_dialects::cosbench::{Options, layout};
use plimsoll_results::Record;

use crate::args::requests::RequestArgs;
use crate::args::s3::StoreArgs;
use crate::args::{CosbenchArgs, Form, YES};
use crate::conducted::{self, Conducted, Settings};
use crate::cosbench::{Understood, When};
use crate::shown;
use crate::ui::Ui;

/// Takes a workload file of COSBench's and prints its summary.
pub(crate) fn as_cosbench(args: &CosbenchArgs) -> Result<ExitCode> {
    let name = args.file.display().to_string();
    let text = input::read_given(&args.file).with_context(|| format!("cannot read {name}"))?;
    let options = Options { seed: args.seed, drivers: None };
    let understood = Understood::read(text.as_bytes(), &options);
    let understood = understood.with_context(|| name.clone())?;
    let store = StoreArgs {
        // Each object is one PUT, as there.
        requests: RequestArgs { disable_multipart: true, ..RequestArgs::default() },
        ..StoreArgs::of(args.credentials.clone(), args.tls.clone())
    };
    let ui = args.output.print.ui();
    let settings = Settings {
        store: Some(&store),
        secrets: understood.lowered.secrets.clone(),
        threads: args.threads,
        op_timeout: args.op_timeout.0,
        // Each work has an `afr` of its own.
        max_error_rate: 100.0,
        keeps_data: true,
        notes: understood.lowered.notes.clone(),
        ..Settings::plain(&args.output, consent(args))
    };
    if args.check || args.explain {
        let plan = conducted::judge(&understood.lowered.file, &settings)?;
        match args.check {
            true => super::run::say_sound(&name, &plan, &args.output.print)?,
            false => ui.result(&understood.explained())?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    understood.lowered.notes.iter().for_each(|note| ui.note(note));
    run(&understood, args, settings)
}

fn consent(args: &CosbenchArgs) -> Consent {
    Consent { given: args.yes, flag: YES }
}

fn run(understood: &Understood, args: &CosbenchArgs, settings: Settings<'_>) -> Result<ExitCode> {
    let time = RunTime::machine();
    let when = When { id: "w1", submitted: time.wall_epoch, stopped: None, state: None };
    let show = |recording: &mut Recording, ui: &Ui| {
        let record = Record::of_run(&recording.directory)?;
        if args.output.print.form() == Form::Json {
            let asked = plimsoll_results::Asked::default();
            let report = shown::report(&record, &asked)?;
            return shown::print(&report, Form::Json, ui);
        }
        let archive = understood.archive(&record, &when)?;
        Ok(ui.result(&layout::summary_table(&archive))?)
    };
    let settings = Settings { show: Some(&show), ..settings };
    let mut conducted = Conducted::begin(&understood.lowered.file, &settings)?;
    let done = conducted.carry_out(None, None);
    conducted.end(done, &settings)
}
