//! Stands in for `fleet` in a build without it. `FleetArgs::is_asked` refuses whoever asks for
//! agents, so no run ever has any.

use std::time::Duration;

use anyhow::Result;
use plimsoll_conduct::{BegunRun, ContentFiles};
use plimsoll_workload::plan::Plan;

use crate::access::AccessDoc;
use crate::args::file::FileConductArgs;
use crate::args::fleet::FleetArgs;
use crate::left_out::FLEET;
use crate::ui::Ui;

/// None is refused for their number: there is nobody to look at any.
pub(crate) const PLACES_MAX: usize = u32::MAX as usize;

/// Agents that are to carry a run out; there are none.
pub(crate) enum Mustered {}

/// What an agent knows of a path.
pub(crate) struct Place {
    pub(crate) free_bytes: Option<u64>,
    pub(crate) direct_align: Option<u64>,
    pub(crate) size_bytes: Option<u64>,
    pub(crate) is_device: bool,
}

pub(crate) fn check_absolute<'p>(_: impl IntoIterator<Item = &'p String>) -> Result<()> {
    Err(FLEET.refusal())
}

pub(crate) fn muster(_: &FleetArgs, _: &[String], _: &Ui) -> Result<Mustered> {
    Err(FLEET.refusal())
}

pub(crate) fn assign(
    _: &mut Plan,
    _: Option<Mustered>,
    _: &FleetArgs,
    _: bool,
    _: &Ui,
) -> Result<Mustered> {
    Err(FLEET.refusal())
}

impl Mustered {
    pub(crate) fn weights(&self) -> Vec<u32> {
        match *self {}
    }

    pub(crate) fn places(&self) -> Result<Vec<&[Place]>> {
        match *self {}
    }

    pub(crate) fn direct(
        self,
        _: &mut BegunRun,
        _: &FleetArgs,
        _: (Option<usize>, Duration, u8),
        _: Option<&FileConductArgs>,
        _: &AccessDoc,
        _: ContentFiles,
    ) -> Result<()> {
        match self {}
    }
}
