//! `plimsoll check`: whether a live store keeps its promises of consistency.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plimsoll_analysis::history::History;
use plimsoll_conduct::{
    AdminOf, Announced, BucketLease, Goal, Marked, Observer, RunTime, Runner, StageView, Stop,
    Stopped, Store, embedded, lease, remove_created,
};
use plimsoll_driver::{Admin, Driver, DriverError};
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_driver_s3::S3Driver;
use plimsoll_driver_seaweed::{
    FILER_PORT, FilerConfig, FilerDriver, SeaweedConfig, SeaweedDriver, SeaweedRegisters, Security,
    masters_of,
};
use plimsoll_engine::{CheckConfig, CheckContext, CheckOutcome, Live, run_check};
use plimsoll_http::{TlsConfig, TlsOptions, Transport, expand_hosts};
use plimsoll_model::{OpKind, RunId, SharedClock};
use plimsoll_record::removal;
use plimsoll_report::check::{self, CheckReport, CheckRoot};
use plimsoll_report::format;
use plimsoll_workload::mix64;
use plimsoll_workload::plan::spec::SeaweedTarget;

use crate::args::CheckArgs;
use crate::args::Form;
use crate::args::s3::StoreArgs;
use crate::conducted::fresh_seed;
use crate::flags;
use crate::lower::in_words;
use crate::shown;
use crate::store_url::StoreUrl;
use crate::ui::Ui;
use crate::{signals, store};

/// What the URL of a SeaweedFS begins with, and where files go if it names no collection.
const WEED_SCHEME: &str = "weed://";
const FILER_SCHEME: &str = "weed-filer://";
const SEAWEED_COLLECTION: &str = "plimsoll";
const DURATION_DEFAULT: Duration = Duration::from_secs(30);

/// Checks the store that the arguments name.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode> {
    let place = |scheme| args.url.as_deref().and_then(|url| url.strip_prefix(scheme));
    match (place(WEED_SCHEME), place(FILER_SCHEME)) {
        (Some(place), _) => check_seaweed(place, args),
        (_, Some(place)) => check_filer(place, args),
        _ => check_store(args),
    }
}

/// Checks a SeaweedFS by its filers.
fn check_filer(place: &str, args: &CheckArgs) -> Result<ExitCode> {
    let (filers, directory) = place.split_once('/').unwrap_or((place, SeaweedTarget::DIRECTORY));
    if filers.contains('@') || directory.contains('?') {
        bail!("a filer is named weed-filer://HOST[:PORT][,...][/DIRECTORY]");
    }
    let Security { filer_keys, https, .. } =
        store::security(args.security.as_deref(), &AllowedDirs::ANY)?;
    let tls = https.map(|options| TlsConfig::load(&options)).transpose()?;
    let plain = FilerConfig::new(expand_hosts(filers, FILER_PORT)?, directory)?;
    let transport = Transport::from(args.transport).direct(tls.is_some(), true)?;
    let creates_directory = args.store.create_bucket;
    let config = FilerConfig { keys: filer_keys, tls, transport, creates_directory, ..plain };
    let time = RunTime::machine();
    let root = CheckRoot::Directory(config.directory.clone());
    let driver = FilerDriver::new(config.clone(), time.wall_epoch);
    let admin = Box::new(driver.admin(&time.clock, None)?);
    let target = Some(Store::filer(config, &time));
    let checked = Checked { root, is_embedded: false, lists: true, target, names: None };
    check(args, &driver, admin, time, checked)
}

fn check_store(args: &CheckArgs) -> Result<ExitCode> {
    let mut store_args = args.store.clone();
    if let Some(url) = &args.url {
        take_url(url, &mut store_args)?;
    }
    let time = RunTime::machine();
    let (mut store, _) = store::open(&store::Way::of(store_args.clone()), &time)?;
    store.config.carry_by(args.transport.into(), true)?;
    let driver = S3Driver::new(store.config.clone())?;
    let admin = Box::new(driver.admin(&time.clock));
    let target = Store::s3(store.config.clone(), store.embedded.is_none())?;
    let (root, is_embedded) = (CheckRoot::Bucket(store_args.bucket), store.embedded.is_some());
    let checked = Checked { root, is_embedded, lists: true, target: Some(target), names: None };
    check(args, &driver, admin, time, checked)
}

/// Checks SeaweedFS: files under few ids that are written over and over.
fn check_seaweed(place: &str, args: &CheckArgs) -> Result<ExitCode> {
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let (masters, collection) = place.split_once('/').unwrap_or((place, SEAWEED_COLLECTION));
    let collection = collection.trim_end_matches('/');
    if masters.contains('@') || collection.contains('/') {
        bail!("SeaweedFS is named weed://MASTER:PORT[,...][/COLLECTION][?replication=XYZ]");
    }
    let replication = match query.split_once('=') {
        Some(("replication", placement)) => placement.to_owned(),
        None if query.is_empty() => String::new(),
        _ => bail!("`?{query}`: only replication is asked for like this"),
    };
    let masters = masters_of(masters)?;
    let time = RunTime::machine();
    let Security { keys, grpc, https, masters_are_plain, .. } =
        store::security(args.security.as_deref(), &AllowedDirs::ANY)?;
    let tls =
        |options: Option<TlsOptions>| options.map(|options| TlsConfig::load(&options)).transpose();
    let (tls, grpc_tls) = (tls(https)?, tls(grpc)?);
    let plain = SeaweedConfig::new(masters, collection);
    let transport = Transport::from(args.transport).direct(tls.is_some(), true)?;
    let config = SeaweedConfig {
        replication,
        keys,
        tls,
        masters_are_plain,
        grpc_tls,
        transport,
        creates_collection: args.store.create_bucket,
        ..plain
    };
    let runtime = event_loop()?;
    let driver = runtime.block_on(SeaweedDriver::open(config, &time.clock, time.wall_epoch))?;
    let list = PathBuf::from(format!("plimsoll-check-{}-files.txt", std::process::id()));
    if list.symlink_metadata().is_ok() {
        let list = list.display();
        bail!(
            "{list} names what an earlier check wrote: move it away, as this check would remove it"
        );
    }
    let file = File::options().read(true).append(true).create_new(true).open(&list);
    let file = file.with_context(|| format!("cannot write {}", list.display()))?;
    driver.keep_names(&list, file);
    let admin = Box::new(driver.admin(&time.clock, None));
    let root = CheckRoot::Collection(collection.to_owned());
    let checked =
        Checked { root, is_embedded: false, lists: false, target: None, names: Some(list) };
    check(args, &SeaweedRegisters::new(driver), admin, time, checked)
}

/// A store that is checked.
struct Checked {
    root: CheckRoot,
    is_embedded: bool,
    /// Whether it can list keys.
    lists: bool,
    /// Where the check is marked as under way.
    target: Option<Store>,
    /// The file with the names of what was written, where these are all that it is removed by.
    names: Option<PathBuf>,
}

/// Removes what lies below `prefix`. What `held` marks as in use has its marks removed last.
async fn sweep(
    admin: &mut dyn Admin,
    prefix: &str,
    held: Option<BucketLease>,
) -> Result<u64, DriverError> {
    match held {
        Some(held) => lease::sweep_run(admin, prefix, Some(held)).await,
        // No mark was made that would have to go last.
        None => admin.sweep(prefix).await,
    }
}

/// Returns a check as whoever shows it sees it.
fn watched<'a>(
    live: &'a Arc<Live>,
    goal: Goal,
    clock: &'a SharedClock,
    endpoints: &'a [String],
    announced: &'a Announced,
) -> StageView<'a> {
    StageView { name: "check", announced, goal, live, clock, rates: &[], endpoints }
}

fn check<D: Driver>(
    args: &CheckArgs,
    driver: &D,
    mut admin: Box<dyn Admin>,
    time: RunTime,
    checked: Checked,
) -> Result<ExitCode> {
    let ui = args.print.ui();
    let Checked { root, is_embedded, lists, target, names } = checked;
    let seed = args.seed.unwrap_or_else(|| fresh_seed(time.wall_epoch));
    let entropy = mix64(seed ^ time.wall_epoch.as_unix_ns());
    let id = RunId::new("check", time.wall_epoch, entropy);
    let runtime = event_loop()?;
    let place = root.to_string();
    ensure_root(&mut *admin, &runtime, names.as_deref())?;
    if !is_embedded && admin.has_created() {
        ui.note(&format!("created {place}"));
    }
    // Until here a signal ends the process as it always does: there is nothing to put in order.
    let stop = signals::listen()?;
    let config = CheckConfig { lists, ..config(args, &id, seed, entropy, is_embedded) };
    let observer: Arc<dyn Observer> = Arc::new(ui);
    let held = target.map(|target| lease_on(&target, &config.prefix, &time, &observer));
    let held = held.transpose()?.flatten();
    let endpoints = driver.endpoints();
    announce(&ui, &endpoints, &root, &config, is_embedded);
    let live = Arc::new(Live::new(config.threads));
    let announced = Announced::doing("checking ...");
    let watched = watched(&live, goal(&config), &time.clock, &endpoints, &announced);
    let context = CheckContext { clock: &time.clock, stop: stop.flag(), live: &live };
    let mut history = History::new(args.show);
    let checked = ui.watch(&watched, &stop, || run_check(driver, &config, &context, &mut history));
    let interrupted = stop.flag().is_set();
    // Cleaning may take long or never end, so the report is printed before it; and it is done
    // whatever the report came to.
    let found = checked.map_err(anyhow::Error::from).and_then(|outcome| {
        let report = CheckReport {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            endpoints,
            root,
            prefix: names.is_none().then(|| config.prefix.clone()),
            lists,
            embedded: is_embedded,
            seed,
            workers: config.workers,
            threads: config.threads,
            keys: config.keys,
            keys_used: outcome.keys_count,
            started: outcome.started,
            ended: outcome.ended,
            interrupted,
            history: history.finish(),
        };
        tell(&report, &outcome, args.print.form(), &ui)
    });
    stop.begin_step();
    ui.note("cleaning up");
    let sweep = sweep(&mut *admin, &config.prefix, held);
    let what = names.as_ref().map(|list| format!("what {} lists", list.display()));
    let what = what.unwrap_or_else(|| format!("objects below `{}`", config.prefix));
    let is_clean = clean_up(&stop, &runtime, sweep, &what, &ui);
    if is_clean {
        remove_created(&mut *admin, &place, (&stop, &runtime), &ui);
    }
    if let (true, Some(list)) = (is_clean, &names) {
        removal::file(list).with_context(|| format!("cannot remove {}", list.display()))?;
    }
    found.map(|found| shown::exit_code(!found && is_clean))
}

fn event_loop() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the event loop")
}

/// Makes sure that there is something to check. `names` is the list of what will be written.
fn ensure_root(
    admin: &mut dyn Admin,
    runtime: &tokio::runtime::Runtime,
    names: Option<&Path>,
) -> Result<()> {
    let ensured = runtime.block_on(admin.ensure_root());
    if ensured.is_err() {
        // Nothing was written, so the list holds nothing.
        names.into_iter().for_each(|list| drop(removal::file(list)));
    }
    ensured.map(drop).map_err(in_words)
}

fn goal(config: &CheckConfig) -> Goal {
    match (config.duration, config.ops_max) {
        (Some(time), _) => Goal::Time(time),
        (None, ops) => Goal::Ops(ops.unwrap_or(u64::MAX)),
    }
}

/// Begins to mark the check as under way, where the store is one that others see.
fn lease_on(
    target: &Store,
    base: &str,
    time: &RunTime,
    observer: &Arc<dyn Observer>,
) -> Result<Option<BucketLease>> {
    let admin = target.admin.as_ref().filter(|_| target.is_shared);
    let hold = |admin: &AdminOf| {
        let marks = vec![(lease::marks_of(base), None)];
        let marked = Marked { admin: Arc::clone(admin), bucket: None, marks };
        BucketLease::hold(vec![marked], Runner::Process, time, Arc::clone(observer))
    };
    Ok(admin.map(hold).transpose()?)
}

/// Prints a report, and tells whether it has violations.
fn tell(report: &CheckReport, outcome: &CheckOutcome, form: Form, ui: &Ui) -> Result<bool> {
    must_tell_something(report, outcome)?;
    print(report, form, ui)?;
    for error in &outcome.errors {
        ui.warn(&format!("an operation failed: {error}"));
    }
    Ok(report.violations_count() > 0)
}

/// Tells whether everything that was written is removed, and warns where it is not.
fn clean_up(
    stop: &Stop,
    runtime: &tokio::runtime::Runtime,
    sweep: impl Future<Output = Result<u64, DriverError>>,
    what: &str,
    ui: &Ui,
) -> bool {
    let why = match stop.unless_stopped(runtime, sweep) {
        Ok(Ok(_)) => return true,
        Ok(Err(error)) => error.to_string(),
        Err(Stopped) => "stopped".to_owned(),
    };
    ui.warn(&format!("{what} could not all be removed: {why}"));
    false
}

/// Takes host, port, TLS and bucket from a URL.
pub(crate) fn take_url(url: &str, args: &mut StoreArgs) -> Result<()> {
    let StoreUrl { tls, authority, bucket } = StoreUrl::parse(url)?;
    if !bucket.is_empty() {
        bucket.clone_into(&mut args.bucket);
    }
    args.tls = tls;
    args.host = Some(authority.to_owned());
    Ok(())
}

fn config(args: &CheckArgs, id: &RunId, seed: u64, salt: u64, is_embedded: bool) -> CheckConfig {
    let workers = args.concurrent;
    let threads =
        args.threads.unwrap_or(embedded::cores_free(is_embedded)).clamp(1, workers as usize);
    let duration = args.duration.map(|duration| duration.0);
    CheckConfig {
        prefix: format!("plimsoll/{id}/"),
        workers,
        threads,
        keys: args.keys,
        lists: true,
        seed,
        salt,
        duration: duration.or_else(|| args.ops.is_none().then_some(DURATION_DEFAULT)),
        ops_max: args.ops,
        op_timeout: args.op_timeout.0,
    }
}

fn announce(ui: &Ui, endpoints: &[String], root: &CheckRoot, config: &CheckConfig, embedded: bool) {
    if embedded {
        ui.note("no URL: checking the embedded in-memory store");
    }
    let CheckConfig { prefix, seed, lists, .. } = config;
    let below = if *lists { format!(", keys below {prefix}") } else { String::new() };
    ui.note(&format!("check on {}, {root}{below}, seed {seed}", format::hosts(endpoints)));
}

/// A check in which nothing was written, or nothing read, has not checked anything.
fn must_tell_something(report: &CheckReport, outcome: &CheckOutcome) -> Result<()> {
    let done = |kind| report.history.ops.get(&kind).map_or(0, |tally| tally.done);
    if report.ops_count() == 0 {
        bail!("stopped before anything was done");
    }
    let reads = done(OpKind::Get) + done(OpKind::Stat) + done(OpKind::List);
    let missing = match (done(OpKind::Put), reads) {
        (0, _) => "PUT",
        (_, 0) => "read",
        _ => return Ok(()),
    };
    match outcome.errors.first() {
        Some(error) => {
            bail!("no {missing} succeeded, so nothing was checked; the first error: {error}")
        }
        None => bail!("no {missing} was done, so nothing was checked; give it more --ops or time"),
    }
}

fn print(report: &CheckReport, form: Form, ui: &Ui) -> Result<()> {
    ui.result(&match form {
        Form::Json => format!("{:#}\n", check::json(report)),
        Form::Text => flags::in_flags(&check::text(report, ui.color)),
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn taken(url: &str) -> Result<(String, bool, String)> {
        let cli = Cli::parse_from(["plimsoll", "check", "--bucket", "flag"]);
        let Command::Check(args) = cli.command else { unreachable!("it is a check") };
        let mut store = args.store;
        take_url(url, &mut store)?;
        Ok((store.host.unwrap(), store.tls, store.bucket))
    }

    #[test]
    fn a_url_names_host_scheme_and_bucket() {
        let of = |host: &str, tls, bucket: &str| (host.to_owned(), tls, bucket.to_owned());
        assert_eq!(taken("http://h:9000/b").unwrap(), of("h:9000", false, "b"));
        assert_eq!(taken("https://h/b/").unwrap(), of("h", true, "b"));
        assert_eq!(taken("http://h").unwrap(), of("h", false, "flag"));
        for url in
            ["h/b", "ftp://h/b", "http:///b", "http://u:p@h/b", "http://h/b/c", "http://h/b?x"]
        {
            assert!(taken(url).is_err(), "{url}");
        }
    }
}
