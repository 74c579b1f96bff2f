//! `plimsoll oracle`: the embedded store on its own.
#![expect(clippy::disallowed_methods, reason = "waits for Ctrl-C and has nothing else to do")]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use plimsoll_driver_s3::Credentials;
use plimsoll_oracle::{Oracle, OracleConfig};

use crate::args::OracleArgs;
use crate::signals::Interrupts;
use crate::ui::Ui;
use crate::{machine, store};

/// How often the wish to end is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// What is taken when no credentials are given.
const DEFAULT_KEY: &str = "plimsoll";

/// Serves the embedded store until Ctrl-C.
pub(crate) fn run(args: &OracleArgs) -> Result<ExitCode> {
    let (access_key, secret_key) = match store::credentials(&args.credentials)? {
        Credentials::Keys { access_key, secret_key, .. } => (access_key, secret_key),
        Credentials::Anonymous => (DEFAULT_KEY.to_owned(), DEFAULT_KEY.to_owned()),
    };
    let interrupts = Interrupts::listen()?;
    let config = OracleConfig {
        listen: args.listen,
        access_key,
        secret_key,
        capacity_bytes: args.capacity.map_or_else(store::embedded_capacity, |size| size.0),
        threads: args.threads.unwrap_or_else(machine::cores),
        anonymous: args.anonymous,
        domain: args.domain.clone(),
        tls: None,
    };
    let oracle = Oracle::start(config).context("--listen")?;
    let ui = Ui::plain();
    ui.result(&format!("listening on http://{}\n", oracle.addr()))?;
    if args.credentials.access_key.is_none() {
        ui.note(&format!("access key and secret key are `{DEFAULT_KEY}`; Ctrl-C ends"));
    }
    while !interrupts.stop_flag().is_set() {
        std::thread::sleep(LOOK);
    }
    oracle.shutdown();
    Ok(ExitCode::SUCCESS)
}
