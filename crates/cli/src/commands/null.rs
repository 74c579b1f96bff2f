//! `plimsoll null`: the engine and the recorder against a driver that does nothing, to know their
//! own cost.

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Result, bail};
use plimsoll_conduct::{Consent, StandIn, machine};
use plimsoll_workload::plan::WorkloadFile;

use crate::args::{NullArgs, YES};
use crate::conducted::{self, Settings};

/// More than anybody has a use for.
const WORKERS_MAX: u32 = 100_000;

/// Asks for nothing for as long as is said.
pub(crate) fn run(args: &NullArgs) -> Result<ExitCode> {
    let Some(workers) = NonZeroU32::new(args.concurrent).filter(|_| args.concurrent <= WORKERS_MAX)
    else {
        bail!("--concurrent {} is out of range: 1 to {WORKERS_MAX}", args.concurrent);
    };
    // Objects that are thought of as there, so that nothing has to be uploaded.
    let text = format!(
        "schema: plimsoll.workload/2\nname: null-stat\nseed: 1\n\
         sets: {{objects: {{named: {{key: '{{1..1000}}'}}}}}}\nstages:\n\
         - {{name: measure, duration: {}ns, \
         jobs: [{{workers: {workers}, work: {{objects: [{{stat: objects}}]}}}}]}}\n",
        args.duration.0.as_nanos(),
    );
    let file = WorkloadFile::from_yaml("null", &text)?;
    let settings = Settings {
        stand_in: StandIn::Null,
        threads: Some(args.threads.unwrap_or_else(machine::cores)),
        ..Settings::plain(&args.output, Consent::by(YES, false))
    };
    conducted::run(&file, &settings)
}
