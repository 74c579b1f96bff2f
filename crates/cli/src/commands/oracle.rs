//! `plimsoll oracle`: the embedded store on its own.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use plimsoll_conduct::output::Named;
use plimsoll_conduct::{embedded, input, machine};
use plimsoll_oracle::{Oracle, OracleConfig, Script};

use crate::args::{OracleArgs, overwrite};
use crate::ui::Ui;
use crate::{signals, store};

/// The longest rest until the wish to end is looked at again.
const LOOK: Duration = Duration::from_millis(100);
/// What is taken when no credentials are given.
const DEFAULT_KEY: &str = "plimsoll";

/// Serves the embedded store until Ctrl-C, then tells what its script did where it has one.
pub(crate) fn run(args: &OracleArgs) -> Result<ExitCode> {
    let (access_key, secret_key) = match store::credentials(&args.credentials)?.current() {
        Some(keys) => (keys.access_key.clone(), keys.secret_key.expose().to_owned()),
        None => (DEFAULT_KEY.to_owned(), DEFAULT_KEY.to_owned()),
    };
    let script = args.script.as_deref().map(read_script).transpose()?;
    // Made at once, so that a place that cannot be written to is no surprise at the end.
    let named = args.ledger.as_deref().map(|path| Named {
        name: "--ledger",
        path,
        overwrite: overwrite(args.overwrite),
    });
    let ledger_file = named.map(Named::create).transpose()?;
    let stop = signals::listen()?;
    let config = OracleConfig {
        listen: args.listen,
        access_key,
        secret_key,
        capacity_bytes: args.capacity.map_or_else(embedded::capacity_bytes, |size| size.0),
        threads: args.threads.unwrap_or_else(machine::cores),
        anonymous: args.anonymous,
        domain: args.domain.clone(),
        md5_etags: args.md5_etags,
        tls: None,
        script,
        seed: args.seed.unwrap_or(0),
    };
    let oracle = Oracle::start(config).context("--listen")?;
    let ui = Ui::plain();
    ui.result(&format!("listening on http://{}\n", oracle.addr()))?;
    if args.credentials.access_key.is_none() {
        ui.note(&format!("access key and secret key are `{DEFAULT_KEY}`; Ctrl-C ends"));
    }
    while !stop.flag().is_set() {
        stop.rest(LOOK);
    }
    let ledger = oracle.ledger();
    oracle.shutdown();
    let Some(ledger) = ledger else { return Ok(ExitCode::SUCCESS) };
    let text = format!("{:#}\n", ledger.to_json());
    match (ledger_file, named) {
        (Some(file), Some(named)) => {
            named.complete(file, text.as_bytes())?;
            if !named.is_stdout() {
                ui.note(&format!("the ledger is in {}", named.path.display()));
            }
        }
        _ => ui.result(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn read_script(path: &Path) -> Result<Script> {
    let text = input::read_given(path)
        .with_context(|| format!("--script: cannot read {}", path.display()))?;
    Script::from_yaml(&text).with_context(|| format!("--script: {}", path.display()))
}
