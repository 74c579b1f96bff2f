//! A run that begins at a time of day (`--syncstart`).

use std::time::Duration;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::Stop;

use crate::args::TimeOfDay;
use crate::ui::Ui;

/// Waits for a time of day, today's.
pub(crate) fn wait_for(at: Option<TimeOfDay>, ui: &Ui, stop: &Stop) -> Result<()> {
    let Some(TimeOfDay(time)) = at else { return Ok(()) };
    let mut left = time_until(at)?;
    ui.note(&format!("waiting until {time}"));
    while left > Duration::ZERO && !stop.flag().is_set() {
        stop.rest(left);
        left = time_until(at).unwrap_or_default();
    }
    Ok(())
}

/// Returns how long it is until a time of day, today's; one that is past is refused, not taken for
/// tomorrow's.
pub(crate) fn time_until(at: Option<TimeOfDay>) -> Result<Duration> {
    let Some(TimeOfDay(time)) = at else { return Ok(Duration::ZERO) };
    let now = jiff::ZonedDateTime::now();
    let until = now.with().time(time).build().context("--syncstart")?;
    let left = until.duration_since(&now);
    if left.is_negative() {
        bail!("--syncstart: {time} has passed; choose a time that leaves room to prepare");
    }
    Ok(left.unsigned_abs())
}
