//! A measurement whose truth is known: recorded and analysed as every run is.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use plimsoll_conduct::{BeforeMeasuring, RunRequest, RunSettings, RunTime, Target};
use plimsoll_engine::{EngineConfig, StageOutcome};
use plimsoll_model::{RunId, Seed, StageKind};
use plimsoll_oracle::Ledger;
use plimsoll_record::RunDirectory;
use plimsoll_report::{Report, RowReport};
use plimsoll_workload::plan::WorkloadFile;
use plimsoll_workload::{WorkloadSpec, mix64};

use super::{Bench, asked};
use crate::terminal::Terminal;
use crate::{said, shown};

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
pub(super) struct Measurement<'a> {
    pub(super) spec: &'a WorkloadSpec,
    pub(super) target: Target,
    pub(super) time: RunTime,
    pub(super) engine: EngineConfig,
    /// Where the record is kept; without a place it is gone with the measurement.
    pub(super) run_dir: Option<&'a Path>,
}

impl Measurement<'_> {
    /// Measures. `before` is called when the stage begins that counts, and `ledger` when it has
    /// ended.
    pub(super) fn run(
        self,
        bench: &Bench,
        before: BeforeMeasuring<'_>,
        ledger: impl FnOnce() -> Result<Ledger>,
    ) -> Result<Measured> {
        let Self { spec, target, time, engine, run_dir } = self;
        let plan = Arc::new(WorkloadFile::try_from(spec)?.check()?);
        let place = tempfile::tempdir().context("cannot make a temporary directory")?;
        let path = run_dir.map_or_else(|| place.path().join("run"), Path::to_path_buf);
        let request = RunRequest {
            id: RunId::new(&plan.name, time.wall_epoch, mix64(spec.seed)),
            plan,
            seed: Seed(spec.seed),
            time,
            targets: vec![target],
            settings: RunSettings { engine, ..RunSettings::default() },
        };
        let open = request.lay_out()?;
        let manifest = open.manifest(said::command_line(), None, None);
        let directory = RunDirectory::create(&path, &manifest)?;
        let terminal = Terminal::observer(bench.ui, &bench.stop, None);
        let mut run = open.begin(directory, manifest, terminal, bench.stop.clone())?;
        let recorded = run.run(Some(before), None)?;
        run.recording.settle_measured(&recorded)?;
        let report = shown::report_of_run(&mut run.recording, &asked())?;
        let measured = recorded.stages.into_iter().find(|done| done.kind == StageKind::Measure);
        let outcome = measured.context("nothing was measured")?.outcome;
        Ok(Measured { report, outcome, ledger: ledger()? })
    }
}
