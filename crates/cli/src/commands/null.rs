//! `plimsoll null`: the engine and the recorder against a driver that does nothing, to know their
//! own cost.

use std::process::ExitCode;

use anyhow::Result;
use plimsoll_conduct::{Consent, machine};
use plimsoll_workload::plan::WorkloadFile;

use crate::args::{NullArgs, YES};
use crate::conducted::{self, Settings};
use crate::targets::StandIn;

/// Asks for nothing for as long as is said.
pub(crate) fn run(args: &NullArgs) -> Result<ExitCode> {
    let text = format!(
        "schema: plimsoll.workload/2\nname: null-stat\nseed: 1\n\
         sets: {{objects: {{count: 1000, size: 1B}}}}\nstages:\n\
         - {{name: prepare, prepares: true, jobs: [{{work: {{fill: objects}}}}]}}\n\
         - {{name: measure, duration: {}ns, \
         jobs: [{{workers: {}, work: {{objects: [{{stat: objects}}]}}}}]}}\n",
        args.duration.0.as_nanos(),
        args.concurrent
    );
    let file = WorkloadFile::from_yaml("null", &text)?;
    let settings = Settings {
        stand_in: StandIn::Null,
        threads: Some(args.threads.unwrap_or_else(machine::cores)),
        ..Settings::plain(&args.output, Consent { given: false, flag: YES })
    };
    conducted::run(&file, &settings)
}
