//! A measurement whose truth is known: recorded and analysed as every run is.

use std::path::Path;
use std::sync::Arc;

use plimsoll_conduct::output::temporary_directory;
use plimsoll_conduct::{BeforeMeasuring, ContentFrom, RunRequest, RunSettings, RunTime, Target};
use plimsoll_engine::{EngineConfig, StageOutcome};
use plimsoll_model::{RunId, StageKind};
use plimsoll_oracle::Ledger;
use plimsoll_record::RunDirectory;
use plimsoll_report::{Report, RowReport};
use plimsoll_results::Record;
use plimsoll_workload::mix64;
use plimsoll_workload::plan::WorkloadFile;

use crate::error::{Context, Result};
use crate::{Prover, asked, seed_of};

/// What came of a measurement.
pub(crate) struct Measured {
    /// What was measured, from the record.
    pub(crate) report: Report,
    /// What the engine counted.
    pub(crate) outcome: StageOutcome,
    /// What the store truly did while it was measured.
    pub(crate) ledger: Ledger,
}

impl Measured {
    /// Returns what was measured; it is one job in one stage.
    pub(crate) fn row(&self) -> &RowReport {
        let mut rows = self.report.results().flat_map(|stage| &stage.rows);
        rows.next().expect("a measured stage has a row")
    }
}

/// What is measured, and on what.
pub(crate) struct Measurement<'a> {
    pub(crate) file: &'a WorkloadFile,
    pub(crate) target: Target,
    pub(crate) time: RunTime,
    pub(crate) engine: EngineConfig,
    /// Where the record is kept; without a place it is gone with the measurement.
    pub(crate) run_dir: Option<&'a Path>,
}

impl Measurement<'_> {
    /// Measures. `before` is called when the stage begins that counts, and `ledger` when it has
    /// ended.
    pub(crate) fn run(
        self,
        prover: &Prover,
        before: BeforeMeasuring<'_>,
        ledger: impl FnOnce() -> Result<Ledger>,
    ) -> Result<Measured> {
        let Self { file, target, time, engine, run_dir } = self;
        let (mut plan, seed) = (file.check()?, seed_of(file));
        // A store that only fails is measured as well.
        plan.file.keep_going = true;
        let plan = Arc::new(plan);
        let place = temporary_directory()?;
        let path = run_dir.map_or_else(|| place.path().join("run"), Path::to_path_buf);
        let request = RunRequest {
            id: RunId::new(&plan.name, time.wall_epoch, mix64(seed.0)),
            plan,
            seed,
            time,
            targets: vec![target],
            settings: RunSettings { engine, ..RunSettings::default() },
            content: ContentFrom::Files,
        };
        let open = request.lay_out()?;
        let manifest = open.manifest(prover.command_line.clone(), Default::default(), None);
        let directory = RunDirectory::create(&path, &manifest)?;
        let observer = Arc::clone(&prover.observer);
        let mut run = open.begin(directory, manifest, observer, prover.stop.clone())?;
        let recorded = run.run(Some(before), None)?;
        run.recording.settle_measured(&recorded)?;
        let record =
            Record::of_run(&run.recording.directory).context("cannot read the record back");
        let report = record?.report(&asked())?;
        let measured = recorded.stages.into_iter().find(|done| done.kind == StageKind::Measure);
        let outcome = measured.context("nothing was measured")?.outcome;
        Ok(Measured { report, outcome, ledger: ledger()? })
    }
}
