//! `plimsoll null`: the engine and the recorder against a driver that does nothing, to know their
//! own cost.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use plimsoll_conduct::{ObjectsWork, Permit, Recording, RunTime, machine};
use plimsoll_driver::Driver;
use plimsoll_driver::null::NullDriver;
use plimsoll_engine::EngineConfig;
use plimsoll_model::RunId;
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::Target;
use plimsoll_results::Asked;
use plimsoll_workload::{
    KeysSpec, MeasureSpec, ObjectsSpec, OpWeightSpec, PacingSpec, SPEC_SCHEMA, WorkloadSpec,
};

use crate::args::NullArgs;
use crate::terminal::Terminal;
use crate::ui::Ui;
use crate::{lower, manifest, shown, signals};

/// Runs GETs of nothing for as long as asked.
pub(crate) fn run(args: &NullArgs) -> Result<ExitCode> {
    let time = RunTime::machine();
    let ui = Ui::new(&args.output.print);
    let spec = spec(args);
    let id = RunId::new(&spec.name, time.wall_epoch, time.wall_epoch.as_unix_ns());
    let target = Target::bare("null", NullDriver.endpoints());
    let mut manifest = manifest::bare(&id, &spec, target, &time);
    manifest.certificate = manifest::certificate(args.output.certificate.as_deref())?;
    let telemetry = args.output.telemetry.start(&manifest, &spec.name, &time, None, ui)?;
    let path = manifest::directory_for(args.output.run_dir.as_deref(), &id);
    let config = EngineConfig {
        threads: args.threads.unwrap_or_else(machine::cores),
        op_timeout: Duration::from_secs(10),
        retries: 0,
    };
    let workload = spec.validate(id.as_str(), Some(objects())).map_err(lower::in_flags)?;
    let workload = Arc::new(workload);
    let directory = RunDirectory::create(&path, &manifest)?;
    let stop = signals::listen()?;
    let terminal = Terminal::observer(ui, &stop, telemetry);
    let permit = Permit::for_nothing_real();
    let mut recording = Recording::new(directory, manifest, time, permit, terminal, stop);
    let mut work = ObjectsWork::new(&NullDriver, &workload, config);
    let generator = ObjectsWork::<NullDriver>::generator(&spec, &workload)?;
    let recorded = recording.run(&mut work, &generator)?;
    recording.settle_measured(&recorded)?;
    shown::must_be_measured(&recorded)?;
    let asked = Asked { full_span: args.output.full_span, ..Asked::default() };
    let report = shown::report_of_run(&mut recording, &asked)?;
    shown::print(&report, args.output.print.form(), &ui)?;
    Ok(shown::exit_code(shown::is_good(&report, 0.0, &ui)))
}

/// Objects that are thought of as there, so that nothing has to be uploaded.
fn objects() -> Vec<plimsoll_workload::ExistingObject> {
    let object = |number| plimsoll_workload::ExistingObject { key: format!("{number}"), size: 1 };
    (0..1_000).map(object).collect()
}

fn spec(args: &NullArgs) -> WorkloadSpec {
    WorkloadSpec {
        schema: SPEC_SCHEMA.to_owned(),
        name: "null-stat".to_owned(),
        seed: 1,
        concurrency: args.concurrent,
        keys: KeysSpec { prefix: String::new(), per_worker: true },
        objects: ObjectsSpec { count: 1_000, ..ObjectsSpec::default() },
        measure: MeasureSpec {
            operations: vec![OpWeightSpec { op: "STAT".to_owned(), weight: 1 }],
            duration_ns: args.duration.0.as_nanos() as u64,
            ..MeasureSpec::default()
        },
        pacing: PacingSpec::Closed,
        verify: true,
    }
}
