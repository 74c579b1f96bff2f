//! A run in virtual time against a scripted store, with recorder and analysis as in a real one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plimsoll_driver::Driver;
use plimsoll_engine::{EngineConfig, StageOutcome};
use plimsoll_model::{RunId, StageKind};
use plimsoll_oracle::{Behaviour, Ledger, Script, ScriptedDriver};
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::Target;
use plimsoll_report::RunReport;
use plimsoll_workload::{WorkloadSpec, mix64};

use crate::consent::Permit;
use crate::run_record::{Recorded, RunRecord};
use crate::runner::{Asked, Run, RunTime};
use crate::signals::Interrupts;
use crate::ui::Ui;
use crate::{lower, manifest};

/// What is to be simulated.
pub(crate) struct Simulation<'a> {
    pub(crate) spec: &'a WorkloadSpec,
    pub(crate) script: &'a Script,
    pub(crate) op_timeout: Duration,
    pub(crate) retries: u8,
    pub(crate) asked: Asked,
    /// Whether the ledger keeps the latency of every operation.
    pub(crate) keeps_latencies: bool,
    /// What `plimsoll prove` found.
    pub(crate) certificate: Option<serde_json::Value>,
    /// Where the record is kept; without a place it is gone with the run.
    pub(crate) run_dir: Option<&'a Path>,
}

/// What came of it.
pub(crate) struct Measured {
    /// What was measured, from the record.
    pub(crate) report: RunReport,
    /// What the engine counted.
    pub(crate) outcome: StageOutcome,
    /// What the store truly did while it was measured.
    pub(crate) ledger: Ledger,
}

/// Runs it.
pub(crate) fn run(
    simulation: &Simulation<'_>,
    interrupts: &Interrupts,
    ui: Ui,
) -> Result<Measured> {
    let spec = simulation.spec;
    if spec.objects.existing.is_some() {
        bail!("objects.existing: nothing was there before in a store that is simulated");
    }
    let time = RunTime::simulated();
    let id = RunId::new(&spec.name, time.wall_epoch, mix64(spec.seed));
    let behaviour = Behaviour::new(simulation.script, spec.seed).resting();
    let behaviour =
        if simulation.keeps_latencies { behaviour.keeping_latencies() } else { behaviour };
    let driver = ScriptedDriver::new(behaviour);
    let target = Target::bare("oracle", driver.endpoints());
    let mut manifest = manifest::bare(&id, spec, target, &time);
    manifest.certificate = simulation.certificate.clone();
    let place = tempfile::tempdir().context("cannot make a temporary directory")?;
    let temporary = place.path().join("run");
    let path = simulation.run_dir.unwrap_or(&temporary);
    let mut run = Run {
        driver: &driver,
        workload: Arc::new(spec.validate(id.as_str(), None).map_err(lower::in_flags)?),
        config: EngineConfig {
            threads: 1,
            op_timeout: simulation.op_timeout,
            retries: simulation.retries,
        },
        record: RunRecord {
            _permit: Permit::for_nothing_real(),
            time,
            directory: RunDirectory::create(path, &manifest)?,
            manifest,
            ui,
            interrupts: interrupts.clone(),
            telemetry: None,
        },
    };
    let clock = Arc::clone(&run.record.time.clock);
    let recorded = run.stages(|_, _| {
        driver.begin(clock.now());
        Ok(())
    })?;
    let mut measured = Measured::of(&mut run, recorded, simulation.asked, driver.ledger())?;
    if simulation.run_dir.is_none() {
        measured.report.run_directory = None;
    }
    Ok(measured)
}

impl Measured {
    /// Settles a run whose stages have ended, and says what came of it.
    pub(crate) fn of<D: Driver>(
        run: &mut Run<'_, D>,
        recorded: Recorded,
        asked: Asked,
        ledger: Ledger,
    ) -> Result<Self> {
        run.record.settle_measured(&recorded)?;
        let report = run.report(&recorded, asked, false)?;
        let measured = recorded.stages.into_iter().find(|(_, kind, _)| *kind == StageKind::Measure);
        let (_, _, outcome) = measured.context("nothing was measured")?;
        Ok(Self { report, outcome, ledger })
    }
}
