//! The stages of a run on files that are asked for, with the same question about each that the run
//! itself asked.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use plimsoll_analysis::phases::{PhaseAnalysis, PhaseQuestion, WorkerRow};
use plimsoll_analysis::{OpSource, Stages, Window};
use plimsoll_model::{EndpointId, Moment, OpRecord, StageId};
use plimsoll_record::schema::{Manifest, StageKind};

use plimsoll_results::{Clients, Rows};

use super::{Phase, analyse, analyse_changed};
use crate::args::AnalysisArgs;
use crate::examine;
use crate::recorded::{Origin, Record};

/// The stages that were asked for.
pub(super) struct Narrowed<'a> {
    record: &'a Record,
    /// With the bounds of stages that a killed run did not write down, as far as its operations
    /// tell.
    pub(super) manifest: Manifest,
    pub(super) clients: Clients,
    pub(super) phases: Vec<Phase>,
}

impl<'a> Narrowed<'a> {
    /// Returns the stages of that name, or all; `None` where the run is not on files.
    pub(super) fn of(record: &'a Record, asked: &AnalysisArgs) -> Result<Option<Self>> {
        let Origin::Run { manifest, .. } = &record.origin else { return Ok(None) };
        let manifest = record.bounded(manifest);
        if !super::is_on_files(&manifest) {
            return Ok(None);
        }
        let clients = Clients::of(&manifest);
        check_asked(record, asked)?;
        let phases = match &asked.stage {
            Some(name) => named(record, (&manifest, &clients), name, asked)?,
            None => analyse(&record.source, &manifest, &clients, |_| Rows::Jobs)?,
        };
        Ok(Some(Self { record, manifest, clients, phases }))
    }

    /// Returns the one stage that there is, not counting those that only prepare others; of a
    /// repeated one that was named, the first.
    pub(super) fn only(mut self) -> Result<PhaseAnalysis> {
        let path = self.record.path.display();
        let mut names: Vec<&str> = Vec::new();
        for phase in &self.phases {
            let stage = &self.manifest.stages[phase.stage];
            if stage.kind != StageKind::Prepare && !names.contains(&&*stage.name) {
                names.push(&stage.name);
            }
        }
        match names[..] {
            [_, _, ..] => {
                bail!("{path} is a run on files with several stages; name one with --stage")
            }
            [] if self.phases.is_empty() => bail!("{path}: nothing was measured"),
            [] | [_] => {}
        }
        let wanted = names.first().map_or(0, |name| {
            let stages = self.phases.iter().map(|phase| &self.manifest.stages[phase.stage]);
            stages.into_iter().position(|stage| stage.name == *name).unwrap_or_default()
        });
        Ok(self.phases.swap_remove(wanted).analysis)
    }
}

/// Refuses flags that are for one stage of a run on files, where none is named.
pub(crate) fn check_asked(record: &Record, asked: &AnalysisArgs) -> Result<()> {
    let Origin::Run { manifest, .. } = &record.origin else { return Ok(()) };
    let is_on_files = super::is_on_files(manifest);
    match asked.of_one_stage().next().filter(|_| is_on_files && asked.stage.is_none()) {
        Some(flag) => bail!(
            "{flag} is for one stage, and {} is a run on files with several; name one with --stage",
            record.path.display()
        ),
        None => Ok(()),
    }
}

/// Returns the stages of one name, narrowed down to what was asked of them.
fn named(
    record: &Record,
    (manifest, clients): (&Manifest, &Clients),
    name: &str,
    asked: &AnalysisArgs,
) -> Result<Vec<Phase>> {
    let is_named = |stage: usize| manifest.stages[stage].name.eq_ignore_ascii_case(name);
    let stages: Stages = record
        .stages
        .iter()
        .filter(|stage| stage.name.eq_ignore_ascii_case(name))
        .flat_map(|stage| (0..=u8::MAX).map(StageId).filter(|id| stage.stages.contains(*id)))
        .collect();
    let endpoint = asked.host.as_deref().map(|host| examine::endpoint(record, host)).transpose()?;
    let (offset, limit) = (asked.offset, asked.limit);
    let source =
        OfEndpoint { source: Window { source: &record.source, stages, offset, limit }, endpoint };
    let skip = asked.skip.map_or(Duration::ZERO, |skip| skip.0);
    let change = |began: Moment, worker: &mut WorkerRow| {
        let from = if asked.full_span { began } else { worker.measured_from };
        worker.measured_from = from.max(began.after(skip));
    };
    let window = asked.dur.map_or(PhaseQuestion::WINDOW, |dur| dur.0);
    let of_run = (manifest, clients);
    let mut phases = analyse_changed(&source, of_run, |_| Rows::Jobs, window, change)?;
    phases.retain(|phase| is_named(phase.stage));
    if phases.is_empty() {
        let names: Vec<&str> = record.stages.iter().map(|stage| &*stage.name).collect();
        return Err(anyhow!(
            "--stage {name}: {} has {}",
            record.path.display(),
            if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
        ));
    }
    if let Some(kind) = asked.kind()? {
        let rows = || phases.iter().flat_map(|phase| &phase.analysis.rows);
        let occurs = rows().flat_map(|row| &row.kinds).any(|of| of.kind == kind);
        if !occurs {
            return Err(examine::absent(kind, &record.path));
        }
        for row in phases.iter_mut().flat_map(|phase| &mut phase.analysis.rows) {
            row.kinds.retain(|of| of.kind == kind);
        }
    }
    Ok(phases)
}

/// Shows only the operations that went to one endpoint, where one is named.
struct OfEndpoint<S> {
    source: S,
    endpoint: Option<EndpointId>,
}

impl<S: OpSource> OpSource for OfEndpoint<S> {
    type Error = S::Error;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), S::Error> {
        self.source.scan(&mut |op| {
            if self.endpoint.is_none_or(|endpoint| op.endpoint == endpoint) {
                visit(op);
            }
        })
    }
}
