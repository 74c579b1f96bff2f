//! `plimsoll console`: a queue of workloads with pages and an API, where COSBench's controller was.

mod allowed;
mod config;
mod from_xml;
#[cfg(feature = "fleet")]
mod roll;
mod runner;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::{input, machine};
use plimsoll_console::{Console, Serve, ServeError, Serving, Users};
use plimsoll_driver_file::allowed_dirs::AllowedDirs;

use self::config::Config;
use self::runner::LocalRunner;
use crate::args::console::ConsoleArgs;
use crate::signals;
use crate::ui::Ui;

/// More than any file of users, certificates or settings has.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Serves until Ctrl-C.
pub(crate) fn run(args: &ConsoleArgs) -> Result<ExitCode> {
    let ui = Ui::plain();
    let config = Config::read(args)?;
    config.remarks.iter().for_each(|remark| ui.note(remark));
    let users = users(args, &config)?;
    check_reach(args, &users)?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(chain), Some(key)) => {
            let secret = input::read_secret(key, FILE_BYTES_MAX)
                .with_context(|| format!("--tls-key: cannot read {}", key.display()))?;
            Some((read("--tls-cert", chain)?, secret.into_bytes()))
        }
        _ => None,
    };
    let is_encrypted = tls.is_some();
    let host_name = machine::describe().hostname;
    let allowed = AllowedDirs::only(&config.allow_dirs)
        .map_err(|error| anyhow!("{}; it has to exist (--allow-dir)", error.message))?;
    let runs_max = config.settings.concurrency;
    let runner = LocalRunner::new(args, allowed, config.credential_hosts, runs_max)?;
    let stop = signals::listen()?;
    let console = Console::open(config.settings, Arc::new(runner))?;
    let serve = |listen: Vec<SocketAddr>| Serve {
        listen,
        users: users.clone(),
        tls: tls.clone(),
        host_name: host_name.clone(),
        version: env!("PLIMSOLL_VERSION").to_owned(),
    };
    let serving = Serving::start(Arc::clone(&console), serve(vec![args.listen]));
    let serving = serving.context("--listen")?;
    let scheme = if is_encrypted { "https" } else { "http" };
    for address in serving.addresses() {
        ui.result(&format!("listening on {scheme}://{address}/\n"))?;
    }
    let beside = match args.driver_listen.0 {
        None => None,
        Some(address) => match Serving::start(Arc::clone(&console), serve(vec![address])) {
            Ok(beside) => Some(beside),
            Err(error @ ServeError::Listen(..)) => {
                ui.warn(&format!("{error}, so nothing answers as a driver (--driver-listen)"));
                None
            }
            Err(error) => return Err(error.into()),
        },
    };
    if users.is_open() {
        ui.note("anybody may use it: no user signs in; name users with --users. Ctrl-C ends");
    }
    signals::rest(&stop, || Ok(()))?;
    ui.note("stopping: ending the running workloads first");
    let ended_count = console.close();
    drop((serving, beside));
    Ok(signals::exit_code_of_server(ended_count > 0))
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>> {
    input::read_bounded(&AllowedDirs::ANY, path, FILE_BYTES_MAX)
        .with_context(|| format!("{flag}: cannot read {}", path.display()))
}

/// Returns who may ask.
fn users(args: &ConsoleArgs, config: &Config) -> Result<Users> {
    let Some(path) = args.users.as_ref().or(config.users.as_ref()) else {
        return Ok(Users::default());
    };
    let text = input::read_secret(path, FILE_BYTES_MAX)
        .with_context(|| format!("--users: cannot read {}", path.display()))?;
    let users = match text.trim_start().starts_with('<') {
        true => Users::from_xml(&text),
        false => Users::from_lines(&text),
    };
    users.with_context(|| format!("--users: {}", path.display()))
}

/// Refuses to be open to others who are not asked who they are.
fn check_reach(args: &ConsoleArgs, users: &Users) -> Result<()> {
    let addresses = [Some(args.listen), args.driver_listen.0];
    let reached = addresses.into_iter().flatten().find(|address| !address.ip().is_loopback());
    match reached {
        Some(address) if users.is_open() && !args.insecure_no_auth => bail!(
            "{address} is reachable from other machines, and no user would have to sign in: name users with \
             --users, listen on 127.0.0.1, or add --insecure-no-auth"
        ),
        _ => Ok(()),
    }
}
