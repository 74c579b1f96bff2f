//! `plimsoll clean URL`: finds what runs left in a bucket, and removes it when asked to.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::leftovers::{self, Left};
use plimsoll_conduct::{RunTime, lease};
use plimsoll_driver::DriverError;
use plimsoll_driver_s3::{S3Admin, S3Driver};
use plimsoll_report::format;

use crate::args::CleanArgs;
use crate::commands::check::take_url;
use crate::lower::in_words;
use crate::store::{self, Way};
use crate::ui::Ui;

/// Lists what runs left, and removes it with `--yes`.
pub(super) fn run(url: &str, args: &CleanArgs, ui: &Ui) -> Result<ExitCode> {
    if let Some(id) = args.id.as_deref().filter(|id| !leftovers::is_run(id)) {
        bail!("--run {id}: not the name of a run, such as s3-get-20261121t090000z-k3f9");
    }
    let mut store_args = args.store.clone();
    take_url(url, &mut store_args)?;
    let time = RunTime::machine();
    let (store, _) = store::open(&Way::of(store_args.clone()), &time)?;
    let driver = S3Driver::new(store.config)?;
    let mut admin = driver.admin(&time.clock);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the event loop")?;
    let found = async {
        let mut found = leftovers::Found::below(&mut admin, &args.prefix).await?;
        let older_than = args.older_than.map(|age| age.0);
        found.retain(&mut admin, args.id.as_deref(), older_than).await?;
        Ok::<_, DriverError>(found)
    };
    let found = runtime.block_on(found).map_err(in_words)?;
    let leftovers::Found { home, runs: found, .. } = found;
    if found.is_empty() {
        ui.result(&format!("no run left anything of that kind below {home}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (run, left) in &found {
        let Left { versions, markers, uploads, bytes, is_alive, .. } = left;
        let under_way = if *is_alive { "; still going on, left alone" } else { "" };
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
