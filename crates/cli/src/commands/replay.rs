//! `plimsoll replay`: what a trace holds is done again, as a run like any other.

use std::process::ExitCode;

use anyhow::{Result, bail};
use plimsoll_conduct::{Consent, RunTime, StandIn, Traces};
use plimsoll_workload::plan::WorkloadFile;
use plimsoll_workload::plan::spec::{
    FilesTarget, FillSpec, JobSpec, Named, OneOrMany, ReplaySpec, SetSpec, StageSpec, TargetSpec,
    Targets, TraceSet, WorkSpec, WorkStage,
};
use plimsoll_workload::trace::Trace;

use super::run::located;
use crate::args::YES;
use crate::args::file::FileConductArgs;
use crate::args::replay::ReplayArgs;
use crate::conducted::{self, Settings, fresh_seed};

/// What the set is called whose members the trace is about.
const SET: &str = "traced";
/// How many operations on the files of one worker may be under way.
const FILE_DEPTH: u32 = 64;
/// How many workers make what has to be there before.
const FILLERS: u32 = 20;

/// Replays a trace.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let ui = args.output.ui();
    let mut traces = Traces::default();
    let of = args.trace.of();
    let name = of.file.clone();
    let trace = traces.read(&of)?;
    check_target(args, &trace)?;
    let is_closed = args.closed || !trace.is_timed();
    if !trace.is_timed() && !args.closed {
        if args.speed != 1.0 {
            bail!("--speed: {name} does not say when operations began, so it has no speed");
        }
        ui.note(&format!(
            "{name} does not say when operations began: each of {} workers begins one when its \
             last has ended (--concurrent)",
            args.concurrent
        ));
    }
    let file = workload(args, &trace, is_closed);
    if args.explain {
        file.judge().map_err(|refused| located(refused_by(refused), None, &name))?;
        ui.result(&file.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let files = FileConductArgs {
        interface: None,
        threads: args.conduct.threads,
        drop_machine_caches: false,
        max_error_rate: args.conduct.max_error_rate,
    };
    let settings = Settings {
        store: Some(&args.store),
        stand_in: if args.null { StandIn::Null } else { StandIn::Nobody },
        files: Some(&files),
        keeps_data: args.keep_data,
        traces,
        ..Settings::plain(&args.output, Consent::by(YES, false)).conducting(&args.conduct)
    };
    conducted::run(&file, &settings).map_err(|error| located(error, None, &name))
}

fn refused_by(refused: plimsoll_workload::plan::InvalidField) -> anyhow::Error {
    plimsoll_conduct::ConductError::Plan(refused).into()
}

/// Refuses a target that a trace is not for.
fn check_target(args: &ReplayArgs, trace: &Trace) -> Result<()> {
    let name = args.trace.file.display();
    match (trace.is_on_files(), &args.dir) {
        (true, None) if !args.null => {
            bail!("{name} is about blocks of files; name a directory for them (--dir)")
        }
        (false, Some(_)) => bail!("--dir: {name} is about objects of a store, not about files"),
        _ => Ok(()),
    }
}

/// Returns the workload that replays a trace.
fn workload(args: &ReplayArgs, trace: &Trace, is_closed: bool) -> WorkloadFile {
    let set = TraceSet { on: None, trace: args.trace.of() };
    let seed = args.seed.unwrap_or_else(|| fresh_seed(RunTime::machine().wall_epoch));
    let mut file = WorkloadFile {
        seed: Some(seed),
        verify: !args.no_verify,
        ..WorkloadFile::new("replay", Named::default(), Vec::new())
    };
    if let Some(directory) = &args.dir {
        let directory = OneOrMany(vec![directory.clone()]);
        file.targets = Targets::One(TargetSpec::Files(FilesTarget { directory }));
    } else if trace.is_on_files() {
        // Nothing is written where nothing is asked.
        let directory = OneOrMany(vec!["/".to_owned()]);
        file.targets = Targets::One(TargetSpec::Files(FilesTarget { directory }));
    }
    file.sets.insert(SET, SetSpec::Trace(set));
    if !trace.made_first().is_empty() {
        let fill = WorkSpec::Fill(FillSpec::of(vec![SET.to_owned()]));
        let jobs = vec![JobSpec::of(FILLERS, fill)];
        let stage = WorkStage { prepares: true, ..WorkStage::of("prepare", jobs) };
        file.stages.push(StageSpec::Jobs(stage));
    }
    let replay = ReplaySpec {
        speed: args.speed,
        max_in_flight: args.max_in_flight,
        closed: is_closed,
        ..ReplaySpec::of(SET.to_owned())
    };
    let depth = if trace.is_on_files() && !is_closed { FILE_DEPTH } else { 1 };
    let job = JobSpec { depth, ..JobSpec::of(args.concurrent, WorkSpec::Replay(replay)) };
    file.stages.push(StageSpec::Jobs(WorkStage::of("replay", vec![job])));
    file
}
