//! `plimsoll clean`: removes what an earlier run left in its bucket, and nothing else.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_driver::Steward;
use plimsoll_driver_file::yard::{find, sweep};
use plimsoll_driver_s3::S3Driver;
use plimsoll_engine::RunClock;
use plimsoll_model::{Clock, RunId};
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::{Cleanup, CleanupState, Manifest};
use plimsoll_report::format;

use super::clean_bucket;
use crate::args::CleanArgs;
use crate::args::s3::{LookupArg, StoreArgs};
use crate::runner::RunTime;
use crate::store;
use crate::ui::Ui;

/// What a run directory is known by.
const MANIFEST: &str = "run.json";

/// Finishes the cleaning of the run in a directory.
pub(crate) fn run(args: &CleanArgs) -> Result<ExitCode> {
    let ui = Ui::plain();
    if let Some(url) = args.run.to_str().filter(|text| text.contains("://")) {
        return clean_bucket::run(url, args, &ui);
    }
    if !args.run.join(MANIFEST).exists() && args.run.is_dir() {
        return clean_yard(args, &ui);
    }
    let directory = RunDirectory::open(&args.run)?;
    let mut manifest = directory.read_manifest()?;
    if let Some(files) = &manifest.target.files {
        let directories = files.directories.clone();
        return clean_files(&directories, &directory, manifest, &ui);
    }
    let Some(prefix) = own_prefix(&manifest)? else {
        ui.result("the run wrote nothing that would have to be removed\n")?;
        return Ok(ExitCode::SUCCESS);
    };
    let time = RunTime::machine();
    let store = store::open(&store_args(args, &manifest)?, &time)?;
    let driver = S3Driver::new(store.config)?;
    let shared = &time.clock;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    let begun = shared.now();
    let removed = runtime
        .block_on(driver.steward(shared).sweep(&prefix))
        .with_context(|| format!("cannot remove the objects below `{prefix}`"))?;
    let took = shared.now().since(begun).as_nanos() as u64;
    manifest.cleanup = Cleanup {
        state: CleanupState::Complete,
        objects_removed_count: Some(removed),
        took_ns: Some(took),
    };
    directory.write_manifest(&manifest)?;
    ui.result(&format!("removed {removed} objects below `{prefix}`\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Removes what a run on files left in the directories that it was given.
fn clean_files(
    directories: &[String],
    directory: &RunDirectory,
    mut manifest: Manifest,
    ui: &Ui,
) -> Result<ExitCode> {
    let id = RunId::parse(&manifest.run_id).context("the manifest's run_id")?;
    let begun = RunClock::start();
    let mut removed = 0;
    for place in directories {
        removed += sweep(Path::new(place), id.as_str(), &|| false)?.files;
        ui.result(&format!("nothing of run {id} is left in {place}\n"))?;
    }
    manifest.cleanup = Cleanup {
        state: CleanupState::Complete,
        objects_removed_count: Some(removed),
        took_ns: Some(begun.now().as_ns()),
    };
    directory.write_manifest(&manifest)?;
    ui.result(&format!("removed {removed} files\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Lists what runs left in a directory, and removes it when asked to.
fn clean_yard(args: &CleanArgs, ui: &Ui) -> Result<ExitCode> {
    let place = args.run.display();
    let mut found = find(&args.run)?;
    found.retain(|left| args.id.as_ref().is_none_or(|id| *id == left.run_id));
    if found.is_empty() {
        ui.result(&format!("no run left anything in {place}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    for left in &found {
        let (files, bytes) = (left.files, format::bytes(left.bytes));
        ui.result(&format!("{}: {files} files, {bytes}, since {}\n", left.run_id, left.modified))?;
        if args.yes {
            sweep(&args.run, &left.run_id, &|| false)?;
        }
    }
    ui.result(match args.yes {
        true => "removed\n",
        false => "nothing was removed; add --yes to remove this\n",
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the prefix that the run owns, checked: a manifest that somebody edited must not empty a
/// bucket.
fn own_prefix(manifest: &Manifest) -> Result<Option<String>> {
    let Some(prefix) = &manifest.target.prefix else { return Ok(None) };
    let id = RunId::parse(&manifest.run_id).context("the manifest's run_id")?;
    if !prefix.ends_with(&format!("plimsoll/{id}/")) {
        bail!("run.json names the prefix `{prefix}`, which does not belong to run {id}");
    }
    Ok(Some(prefix.clone()))
}

/// Returns how to reach the store of a run: where it is as the record says, how it is spoken to as
/// the flags say.
fn store_args(args: &CleanArgs, manifest: &Manifest) -> Result<StoreArgs> {
    let target = &manifest.target;
    let hosts = target.endpoints.iter().map(|url| match url.split_once("://") {
        Some((_, authority)) => authority,
        None => url,
    });
    Ok(StoreArgs {
        host: Some(hosts.collect::<Vec<_>>().join(",")),
        tls: target.tls.unwrap_or(false),
        region: target.region.clone(),
        bucket: target.bucket.clone().context("run.json names no bucket")?,
        lookup: match target.lookup.as_deref() {
            Some("path") => LookupArg::Path,
            Some("dns") => LookupArg::Dns,
            _ => LookupArg::Auto,
        },
        ..args.store.clone()
    })
}
