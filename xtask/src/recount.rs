//! Counts the figures of random plans again, by a program that shares no code with ours.

use std::path::Path;

use anyhow::Result;

use crate::{process, tools};

/// So many plans the gate runs.
pub(crate) const GATE_PLANS: u32 = 200;
/// So many plans the nightly checks run.
pub(crate) const NIGHTLY_PLANS: u32 = 1_000;

/// Runs `count` random plans in virtual time with that build of the program, from plan `first` on,
/// and holds their reports against their op logs.
pub(crate) fn run(program: &Path, first: u32, count: u32) -> Result<()> {
    let scripts = process::root().join("testdata/recount");
    let places = process::root().join("target/recount");
    let mut plans = tools::python_with_duckdb()?;
    plans.arg(scripts.join("plans.py")).arg(program).arg(&places);
    process::check(plans.args([first.to_string(), count.to_string()]), "running random plans")?;
    let mut recount = tools::python_with_duckdb()?;
    recount.arg(scripts.join("recount.py")).arg(&places);
    process::check(&mut recount, "counting their figures again")
}
