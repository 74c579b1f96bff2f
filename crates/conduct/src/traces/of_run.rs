//! The record of a run of plimsoll as a trace: what its measured stages did.

use std::path::Path;

use plimsoll_model::{OpKind, OpRecord, StageKind};
use plimsoll_record::schema::{Manifest, Stage};
use plimsoll_record::{OpLog, RunDirectory, Salvage};
use plimsoll_workload::plan::{Job, Length, OpAct, Plan, SetIndex, Work};
use plimsoll_workload::trace::{Seen, TraceBuilder};

use crate::ConductError;
use crate::error::refused;

/// Operations on blocks are recorded by their sector.
const SECTOR_BYTES: u64 = 512;

/// Adds what the measured stages of a run did.
pub(super) fn read(path: &Path, builder: &mut TraceBuilder) -> Result<(), ConductError> {
    let directory = RunDirectory::open(path)?;
    let manifest = directory.read_manifest()?;
    let Salvage { log, losses, .. } = OpLog::salvage(&directory)?;
    builder.facts.format = super::OF_RUN.to_owned();
    builder.facts.of_format = vec![
        "the record does not contain the content, nor where reads of a part begin; they begin at 0"
            .to_owned(),
    ];
    builder.facts.of_format.extend(losses);
    let plan = manifest.plan();
    let measured: Vec<bool> =
        manifest.stages.iter().map(|stage| stage.kind == StageKind::Measure).collect();
    let mut sets = Sets::of(&manifest, plan.as_ref());
    let mut refusal = None;
    log.scan(&mut |op| {
        let is_measured = measured.get(usize::from(op.stage.0)).copied().unwrap_or(false);
        if is_measured && refusal.is_none() {
            refusal = take(builder, &mut sets, op).err();
        }
    })?;
    match refusal {
        Some(reason) => refused(format!("{}: {reason}", path.display())),
        None => Ok(()),
    }
}

fn take(builder: &mut TraceBuilder, sets: &mut Sets<'_>, op: &OpRecord) -> Result<(), String> {
    if !op.outcome.is_ok() {
        builder.facts.failed_count += 1;
        return Ok(());
    }
    let (at_ns, kind) = (Some(op.intended.as_ns()), op.kind);
    let mut name = [0; 10];
    let mut seen = Seen { at_ns, kind, name: &[], bytes: None, object_bytes: None, range: None };
    let Some(object) = op.object else {
        if kind == OpKind::List {
            return builder.add(&seen);
        }
        builder.facts.note_unsupported(&format!("{} of several objects", kind.name()));
        return Ok(());
    };
    match kind {
        OpKind::Read | OpKind::Write => {
            let offset = object.number() * SECTOR_BYTES;
            seen.range = Some((offset, op.bytes));
            name[..4].copy_from_slice(&object.owner().0.to_le_bytes());
        }
        OpKind::Sync => name[..4].copy_from_slice(&object.owner().0.to_le_bytes()),
        OpKind::Get
        | OpKind::Put
        | OpKind::Post
        | OpKind::Stat
        | OpKind::Delete
        | OpKind::PutPart
        | OpKind::CreateUpload
        | OpKind::CompleteUpload
        | OpKind::AbortUpload => {
            let (set, reads_parts) = sets.of_op(op);
            name[..8].copy_from_slice(&object.as_u64().to_le_bytes());
            name[8..].copy_from_slice(&(set.0 as u16).to_le_bytes());
            match kind {
                OpKind::Get if reads_parts => seen.range = Some((0, op.bytes)),
                OpKind::Get | OpKind::Put | OpKind::Post | OpKind::PutPart => {
                    seen.bytes = Some(op.bytes);
                }
                _ => {}
            }
        }
        other => {
            builder.facts.note_unsupported(other.name());
            return Ok(());
        }
    }
    builder.add(&Seen { name: &name, ..seen })
}

/// Which set an operation was about, as far as the plan of the run tells.
struct Sets<'p> {
    /// By stage of the record: the jobs of the plan.
    jobs: Vec<&'p [Job]>,
}

impl<'p> Sets<'p> {
    fn of(manifest: &Manifest, plan: Option<&'p Plan>) -> Self {
        let jobs = |stage: &Stage| -> &'p [Job] {
            let planned = plan.and_then(|plan| plan.stages.get(usize::from(stage.planned()?)));
            planned.map_or(&[], |stage| &stage.jobs)
        };
        Self { jobs: manifest.stages.iter().map(jobs).collect() }
    }

    /// Returns the set that an operation was about, the first of several that may be, and whether
    /// what is read of it are parts.
    fn of_op(&mut self, op: &OpRecord) -> (SetIndex, bool) {
        let jobs = self.jobs.get(usize::from(op.stage.0)).copied().unwrap_or_default();
        let Some(job) = jobs.get(usize::from(op.job.0)) else { return (SetIndex(0), false) };
        match &job.work {
            Work::Objects(ops) => {
                let of = ops.iter().find(|of| is_of(&of.act, op.kind)).or_else(|| ops.first());
                of.map_or((SetIndex(0), false), |of| (of.set, reads_parts(&of.act)))
            }
            Work::GetPart { set, .. } => (*set, true),
            other => (other.sets().first().copied().unwrap_or(SetIndex(0)), false),
        }
    }
}

const fn is_of(act: &OpAct, kind: OpKind) -> bool {
    matches!(
        (act, kind),
        (OpAct::Get { .. }, OpKind::Get)
            | (OpAct::Put { .. }, OpKind::Put | OpKind::Post)
            | (OpAct::Stat { .. }, OpKind::Stat)
            | (OpAct::Delete { .. }, OpKind::Delete)
    )
}

const fn reads_parts(act: &OpAct) -> bool {
    matches!(act, OpAct::Get { range, .. } if !matches!(range, Length::Whole))
}
