//! `plimsoll clean URL`: finds what runs left in a bucket, and removes it when asked to.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use plimsoll_conduct::{RunTime, lease};
use plimsoll_driver::Admin;
use plimsoll_driver_s3::{S3Admin, S3Driver};
use plimsoll_model::{RunId, WallTime};
use plimsoll_report::format;

use crate::args::CleanArgs;
use crate::commands::check::take_url;
use crate::lower::in_words;
use crate::store;
use crate::ui::Ui;

/// Below it every run has a prefix of its own.
const HOME: &str = "plimsoll/";

/// What one run left.
#[derive(Default)]
struct Left {
    versions: u64,
    markers: u64,
    uploads: u64,
    bytes: u64,
    /// Whether the run is under way.
    is_alive: bool,
}

/// What runs left, by run.
struct Finds {
    /// What all of it lies below.
    home: String,
    now: WallTime,
    runs: BTreeMap<String, Left>,
}

impl Finds {
    /// Returns what is counted for the run that a key belongs to; keys that belong to none are
    /// counted under a name that is no run's. A mark of a run that is under way is noted and not
    /// counted.
    fn of(&mut self, key: &str) -> Option<&mut Left> {
        let rest = key.strip_prefix(&self.home).unwrap_or_default();
        if let Some((run, mark)) = lease::read(rest) {
            let left = self.runs.entry(run.to_owned()).or_default();
            left.is_alive |= lease::holds(mark, self.now);
            return None;
        }
        let run = rest.split_once('/').map_or("", |(run, _)| run);
        Some(self.runs.entry(run.to_owned()).or_default())
    }
}

/// Lists what runs left, and removes it with `--yes`.
pub(super) fn run(url: &str, args: &CleanArgs, ui: &Ui) -> Result<ExitCode> {
    if let Some(id) = args.id.as_deref().filter(|id| began_at(id).is_none()) {
        bail!("--run {id}: not the name of a run, such as s3-get-20261121t090000z-k3f9");
    }
    let mut store_args = args.store.clone();
    take_url(url, &mut store_args)?;
    let time = RunTime::machine();
    let (store, _) = store::open(&store_args, &time)?;
    let driver = S3Driver::new(store.config)?;
    let mut admin = driver.admin(&time.clock);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the event loop")?;
    let home = home_below(&args.prefix);
    let now = time.wall_epoch;
    let mut finds = Finds { home: home.clone(), now, runs: BTreeMap::new() };
    // A server without versions has a plain listing.
    match runtime.block_on(admin.survey_versions(&home, None)) {
        Ok(versions) => {
            for version in versions {
                let Some(left) = finds.of(&version.key) else { continue };
                left.markers += u64::from(version.is_marker);
                left.versions += u64::from(!version.is_marker);
                left.bytes += version.size;
            }
        }
        Err(error) if error.status.is_none() => return Err(in_words(error)),
        Err(_) => {
            let objects = runtime.block_on(admin.survey(&home, None, true)).map_err(in_words)?;
            for object in objects {
                let Some(left) = finds.of(&object.key) else { continue };
                left.versions += 1;
                left.bytes += object.size;
            }
        }
    }
    let uploads = match runtime.block_on(admin.survey_uploads(&home)) {
        // Nor does every server list uploads.
        Err(error) if error.status.is_some() => Vec::new(),
        uploads => uploads.map_err(in_words)?,
    };
    for upload in uploads {
        finds.of(&upload.key).into_iter().for_each(|left| left.uploads += 1);
    }
    let mut found = finds.runs;
    let limit = args.older_than.map(|age| age.0);
    found.retain(|run, _| is_meant(run, args.id.as_deref(), limit, now));
    if found.is_empty() {
        ui.result(&format!("no run left anything of that kind below {home}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (run, left) in &found {
        let Left { versions, markers, uploads, bytes, is_alive } = left;
        let under_way = if *is_alive { "; under way, left alone" } else { "" };
        ui.result(&format!(
            "{run}: {versions} objects or versions ({}), {markers} marks of deletion, {uploads} \
             unfinished uploads{under_way}\n",
            format::bytes(*bytes)
        ))?;
    }
    let only_living = found.values().all(|left| left.is_alive);
    if !args.yes && !only_living {
        ui.result("nothing was removed; add --yes to remove this\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    remove(&found, &home, &runtime, &mut admin, ui)?;
    Ok(ExitCode::SUCCESS)
}

/// Removes what the runs left that are not under way.
fn remove(
    found: &BTreeMap<String, Left>,
    home: &str,
    runtime: &tokio::runtime::Runtime,
    admin: &mut S3Admin,
    ui: &Ui,
) -> Result<()> {
    for (run, _) in found.iter().filter(|(_, left)| !left.is_alive) {
        let prefix = format!("{home}{run}/");
        let removed = runtime.block_on(lease::sweep_run(admin, &prefix, None));
        let removed = removed.map_err(in_words)?;
        ui.result(&format!("{run}: removed {removed}\n"))?;
    }
    Ok(())
}

fn home_below(prefix: &str) -> String {
    let prefix = prefix.trim_matches('/');
    if prefix.is_empty() { HOME.to_owned() } else { format!("{prefix}/{HOME}") }
}

/// Tells whether it is a run's, and one that is asked for.
fn is_meant(run: &str, id: Option<&str>, older_than: Option<Duration>, now: WallTime) -> bool {
    let Some(began) = began_at(run) else { return false };
    let age = Duration::from_nanos(now.as_unix_ns().saturating_sub(began.as_unix_ns()));
    id.is_none_or(|id| id == run) && older_than.is_none_or(|limit| age > limit)
}

/// Tells whether a name is one that a run has.
pub(super) fn is_run(name: &str) -> bool {
    began_at(name).is_some()
}

/// Returns when a run began, as its id says: `<what>-<UTC time>-<4 characters>`.
fn began_at(run: &str) -> Option<WallTime> {
    RunId::parse(run).ok()?;
    let mut parts = run.rsplit('-');
    let (suffix, time) = (parts.next()?, parts.next()?);
    if suffix.len() != 4 {
        return None;
    }
    let time = DateTime::strptime("%Y%m%dt%H%M%Sz", time).ok()?;
    let at = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
    u64::try_from(at.as_nanosecond()).ok().map(WallTime::from_unix_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_that_are_asked_for_are_meant() {
        // 2026-11-21 09:00:00 UTC, checked with `date -u -d @1795251600`.
        let now = WallTime::from_unix_ns(1_795_251_600_000_000_000 + 7_200_000_000_000);
        let run = "s3-get-20261121t090000z-aaaa";
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3_600));
        assert!(is_meant(run, None, None, now));
        assert!(is_meant(run, Some(run), hours(1), now));
        assert!(!is_meant(run, None, hours(3), now));
        assert!(!is_meant(run, Some("s3-put-20261121t090000z-aaaa"), None, now));
        for foreign in ["", "backup", "s3-get", "2026-backup-aaaa", "x-20261121t090000z-toolong"] {
            assert!(!is_meant(foreign, None, None, now), "{foreign}");
        }
    }

    #[test]
    fn the_home_lies_below_the_prefix() {
        assert_eq!(home_below(""), "plimsoll/");
        assert_eq!(home_below("/a/b/"), "a/b/plimsoll/");
    }
}
