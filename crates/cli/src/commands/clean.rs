//! `plimsoll clean`: removes what an earlier run left in its bucket, and nothing else.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::{RunTime, lease};
use plimsoll_driver_file::work_dir::{find, is_alive, sweep};
use plimsoll_driver_s3::S3Driver;
use plimsoll_engine::RunClock;
use plimsoll_model::{Clock, RunId};
use plimsoll_record::schema::{Cleanup, CleanupState, Manifest};
use plimsoll_record::{Lease, RunDirectory};
use plimsoll_report::format;

use super::clean_bucket;
use crate::args::CleanArgs;
use crate::args::s3::{LookupArg, StoreArgs};
use crate::lower::in_words;
use crate::ui::Ui;
use crate::{said, store};

/// What a run directory is known by.
const MANIFEST: &str = "run.json";

/// Finishes the cleaning of the run in a directory.
pub(crate) fn run(args: &CleanArgs) -> Result<ExitCode> {
    let ui = Ui::plain();
    if let Some(url) = args.run.to_str().filter(|text| text.contains("://")) {
        return clean_bucket::run(url, args, &ui);
    }
    if args.run.to_string_lossy().contains('@') && !args.run.exists() {
        bail!("a bucket is named http(s)://HOST[:PORT]/BUCKET, and keys with --access-key");
    }
    if !args.run.join(MANIFEST).exists() && args.run.is_dir() {
        return clean_work_dir(args, &ui);
    }
    if args.id.is_some() || args.older_than.is_some() || !args.prefix.is_empty() {
        bail!("--run, --older-than and --prefix choose among runs; a run directory is one run's");
    }
    let directory = RunDirectory::open(&args.run)?;
    let manifest = directory.read_manifest()?;
    let Some(_lease) = Lease::try_take(&args.run)? else {
        bail!("run {} is under way; nothing is removed until it has ended", manifest.run_id);
    };
    if let Some(files) = &manifest.target.files {
        let directories = files.directories.clone();
        return clean_files(&directories, &directory, manifest, &ui);
    }
    let Some(prefix) = own_prefix(&manifest)? else {
        ui.result("the run wrote nothing that would have to be removed\n")?;
        return Ok(ExitCode::SUCCESS);
    };
    clean_objects(args, &directory, manifest, &prefix, &ui)
}

/// Removes what a run left below its prefix.
fn clean_objects(
    args: &CleanArgs,
    directory: &RunDirectory,
    mut manifest: Manifest,
    prefix: &str,
    ui: &Ui,
) -> Result<ExitCode> {
    let time = RunTime::machine();
    let is_named = names_host(args, &manifest);
    let store_args = store_args(args, &manifest, is_named)?;
    if !is_named {
        confirm(args, &manifest, prefix, ui)?;
    }
    let store = store::open(&store_args, &time)?;
    let driver = S3Driver::new(store.config)?;
    let shared = &time.clock;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    let (host, bucket) = (store_args.host.unwrap_or_default(), &store_args.bucket);
    ui.note(&format!("removing what lies below `{prefix}` in bucket `{bucket}` on {host}"));
    let begun = shared.now();
    let mut admin = driver.admin(shared);
    let marked = lease::is_marked(&mut admin, prefix, time.wall_epoch);
    if runtime.block_on(marked).map_err(in_words)? {
        bail!(
            "run {} is under way, as a mark below `{}` says; nothing is removed until it has \
             ended. The mark of a run that was killed ends a minute after that",
            manifest.run_id,
            lease::marks_of(prefix)
        );
    }
    let removed = runtime.block_on(lease::sweep_run(&mut admin, prefix, None));
    let removed = removed.with_context(|| format!("cannot remove the objects below `{prefix}`"))?;
    let took = shared.now().since(begun).as_nanos() as u64;
    manifest.cleanup = Cleanup {
        state: CleanupState::Complete,
        objects_removed_count: Some(removed),
        took_ns: Some(took),
    };
    directory.write_manifest(&manifest)?;
    ui.result(&format!("removed {removed} objects below `{prefix}` on {host}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Asks whether requests may go to the hosts that the record names: it may be somebody else's, and
/// whoever is named there is sent signatures and the session token.
fn confirm(args: &CleanArgs, manifest: &Manifest, prefix: &str, ui: &Ui) -> Result<()> {
    let hosts = manifest.target.endpoints.join(", ");
    let bucket = manifest.target.bucket.as_deref().unwrap_or_default();
    let what = format!("remove what lies below `{prefix}` in bucket `{bucket}` on {hosts}");
    if args.yes {
        ui.note(&format!("--yes: about to {what}"));
        return Ok(());
    }
    match ui.ask(&format!("{what}, which run.json names?"))? {
        Some(true) => Ok(()),
        Some(false) => bail!("nothing was removed"),
        None => bail!(
            "this would {what}, which run.json names; add --yes to allow it, or name the host with \
             --host"
        ),
    }
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
        refuse_living(Path::new(place), id.as_str())?;
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
fn clean_work_dir(args: &CleanArgs, ui: &Ui) -> Result<ExitCode> {
    if args.older_than.is_some() || !args.prefix.is_empty() {
        bail!("--older-than and --prefix are for buckets; --run ID chooses in a directory");
    }
    let place = args.run.display();
    let mut found = find(&args.run)?;
    found.retain(|left| args.id.as_ref().is_none_or(|id| *id == left.run_id));
    if found.is_empty() {
        ui.result(&format!("no run left anything in {place}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    for left in &found {
        let (files, bytes) = (left.files, format::bytes(left.bytes));
        let run = &left.run_id;
        if left.is_alive {
            ui.result(&format!("{run}: {files} files, {bytes}, under way; left alone\n"))?;
            continue;
        }
        ui.result(&format!("{run}: {files} files, {bytes}, since {}\n", left.modified))?;
        if args.yes {
            sweep(&args.run, &left.run_id, &|| false)?;
        }
    }
    if found.iter().any(|left| !left.is_alive) {
        ui.result(match args.yes {
            true => "removed\n",
            false => "nothing was removed; add --yes to remove this\n",
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the prefix that the run owns, checked: a manifest that somebody edited must not empty a
/// bucket.
fn own_prefix(manifest: &Manifest) -> Result<Option<String>> {
    let Some(prefix) = &manifest.target.prefix else { return Ok(None) };
    let id = RunId::parse(&manifest.run_id).context("the manifest's run_id")?;
    let own = format!("plimsoll/{id}/");
    let is_own = *prefix == own || prefix.ends_with(&format!("/{own}"));
    if !is_own || !clean_bucket::is_run(id.as_str()) {
        bail!("run.json names the prefix `{prefix}`, which does not belong to run {id}");
    }
    Ok(Some(prefix.clone()))
}

/// Tells whether the user names the hosts: on the command line, or in the environment the same as
/// the record. Another host in the environment is where this user's next run goes, not where this
/// one was.
fn names_host(args: &CleanArgs, manifest: &Manifest) -> bool {
    let Some(host) = &args.store.host else { return false };
    let host = host.split_once("://").map_or(&**host, |(_, rest)| rest);
    said::is_typed("--host") || host == recorded_hosts(manifest)
}

/// Returns the hosts of the record as `--host` takes them.
fn recorded_hosts(manifest: &Manifest) -> String {
    let host = |url: &String| {
        url.split_once("://").map_or_else(|| url.clone(), |(_, authority)| authority.to_owned())
    };
    manifest.target.endpoints.iter().map(host).collect::<Vec<_>>().join(",")
}

fn own_bucket(manifest: &Manifest) -> Result<String> {
    manifest.target.bucket.clone().context("run.json names no bucket")
}

/// Refuses to remove the files of a run that is under way.
fn refuse_living(place: &Path, run: &str) -> Result<()> {
    // What is not there cannot live.
    if is_alive(place, run).unwrap_or(false) {
        bail!(
            "run {run} is under way in {}; nothing is removed until it has ended",
            place.display()
        );
    }
    Ok(())
}

/// Returns how to reach the store of a run: where it is as the flags say, else as the record says;
/// how it is spoken to as the flags say.
fn store_args(args: &CleanArgs, manifest: &Manifest, is_named: bool) -> Result<StoreArgs> {
    let target = &manifest.target;
    if is_named {
        return Ok(StoreArgs { bucket: own_bucket(manifest)?, ..args.store.clone() });
    }
    // What is no host and port would be read as a pattern, or as a file of hosts.
    if target.endpoints.iter().any(|url| url.contains(['@', '{']) || url.starts_with("file:")) {
        bail!("run.json names endpoints that are no hosts; name the host with --host");
    }
    Ok(StoreArgs {
        host: Some(recorded_hosts(manifest)),
        tls: target.tls.unwrap_or(false),
        region: target.region.clone(),
        bucket: own_bucket(manifest)?,
        lookup: match target.lookup.as_deref() {
            Some("path") => LookupArg::Path,
            Some("dns") => LookupArg::Dns,
            _ => LookupArg::Auto,
        },
        ..args.store.clone()
    })
}
