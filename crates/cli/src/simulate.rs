//! A run in virtual time against a scripted store, with recorder and analysis as in a real one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::{Done, ObjectsWork, Permit, Recorded, Recording, RunTime, Stop};
use plimsoll_driver::Driver;
use plimsoll_engine::{EngineConfig, StageOutcome};
use plimsoll_model::{RunId, StageKind};
use plimsoll_oracle::{Behaviour, Ledger, Script, ScriptedDriver};
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::Target;
use plimsoll_report::{Report, RowReport};
use plimsoll_results::Asked;
use plimsoll_workload::{WorkloadSpec, mix64};

use crate::terminal::Terminal;
use crate::ui::Ui;
use crate::{lower, manifest, shown};

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
    pub(crate) report: Report,
    /// What the engine counted.
    pub(crate) outcome: StageOutcome,
    /// What the store truly did while it was measured.
    pub(crate) ledger: Ledger,
}

/// Runs it.
pub(crate) fn run(simulation: &Simulation<'_>, stop: &Stop, ui: Ui) -> Result<Measured> {
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
    let workload = spec.validate(id.as_str(), None).map_err(lower::in_flags)?;
    let workload = Arc::new(workload);
    let config =
        EngineConfig { threads: 1, op_timeout: simulation.op_timeout, retries: simulation.retries };
    let directory = RunDirectory::create(path, &manifest)?;
    let terminal = Terminal::observer(ui, stop, None);
    let permit = Permit::for_nothing_real();
    let mut recording = Recording::new(directory, manifest, time, permit, terminal, stop.clone());
    let mut work = ObjectsWork::new(&driver, &workload, config).before_measuring(|recording| {
        driver.begin(recording.now());
        Ok(())
    });
    let generator = ObjectsWork::<ScriptedDriver>::generator(spec, &workload)?;
    let recorded = recording.run(&mut work, &generator)?;
    let mut measured = Measured::of(&mut recording, recorded, &simulation.asked, driver.ledger())?;
    if simulation.run_dir.is_none() {
        measured.report.run_directory = None;
    }
    Ok(measured)
}

impl Measured {
    /// Settles a run whose stages have ended, and says what came of it.
    pub(crate) fn of(
        recording: &mut Recording,
        recorded: Recorded,
        asked: &Asked,
        ledger: Ledger,
    ) -> Result<Self> {
        recording.settle_measured(&recorded)?;
        shown::must_be_measured(&recorded)?;
        let report = shown::report_of_run(recording, asked)?;
        let measured = recorded.stages.into_iter().find(|done| done.kind == StageKind::Measure);
        let Done { outcome, .. } = measured.context("nothing was measured")?;
        Ok(Self { report, outcome, ledger })
    }

    /// Returns what was measured; it is one job in one stage.
    pub(crate) fn row(&self) -> &RowReport {
        let mut rows = self.report.results().flat_map(|stage| &stage.rows);
        rows.next().expect("a measured stage has a row")
    }
}
