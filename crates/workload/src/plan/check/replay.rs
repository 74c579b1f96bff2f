//! Checks sets that are the objects or files of a trace, and what replays it.

use super::stages::in_flight;
use super::{Checked, Context};
use crate::plan::checked::{FileNames, Files, Members, Objects, Stage, TargetIndex, Traced};
use crate::plan::path::FieldPath;
use crate::plan::spec::{KeysSpec, ReplaySpec, TRACE_FORMATS, TargetSpec, TraceOf, TraceSet};
use crate::plan::units::SizeRange;
use crate::plan::work::Work;
use crate::sizes::PUT_BYTES_MAX;
use crate::{ArrivalLaw, OpenLoop};
use plimsoll_model::{Ability, Bytes};

/// The greatest speed: an hour in less than four milliseconds.
const SPEED_MAX: f64 = 1e6;

impl Context<'_> {
    /// Returns the members of a trace: files where its target holds files, objects otherwise.
    pub(super) fn traced(
        &self,
        path: &FieldPath,
        target: TargetIndex,
        set: &TraceSet,
    ) -> Checked<Members> {
        trace_of(&path.field("trace"), &set.trace)?;
        let traced = Traced { of: set.trace.clone(), loaded: None };
        if matches!(self.targets[target.0].spec, Some(TargetSpec::Files(_))) {
            let names = FileNames::Traced(traced);
            let directories = self.directories(target);
            return Ok(Members::Files(Files {
                directories,
                names,
                size: SizeRange { min: 1, max: 1 },
            }));
        }
        Ok(Members::Objects(Objects {
            count: 0,
            sizes: None,
            part_bytes: None,
            versions: 1,
            archive: None,
            data: crate::data::DataRule::Random,
            data_files: Vec::new(),
            keys: KeysSpec { per_worker: false, ..KeysSpec::default() },
            traced: Some(traced),
        }))
    }

    pub(super) fn replay(
        &self,
        path: &FieldPath,
        spec: &ReplaySpec,
    ) -> Checked<(Work, Vec<Ability>)> {
        let at = path.field("of");
        let set = self.set_named(&at, &spec.of)?;
        let needs = match self.members(set) {
            members if members.traced().is_none() => {
                let reason = format!("set `{}` does not hold what a trace is about", spec.of);
                return Err(at.refuse(reason));
            }
            Members::Files(_) => vec![Ability::Blocks],
            _ => vec![Ability::Get, Ability::Put, Ability::Stat, Ability::Delete, Ability::List],
        };
        if !(spec.speed > 0.0 && spec.speed <= SPEED_MAX) {
            let reason = format!("{:?} is out of range: above 0 to {SPEED_MAX}", spec.speed);
            return Err(path.field("speed").refuse(reason));
        }
        if spec.closed && spec.speed != 1.0 {
            let reason = "has no effect where times are ignored (`closed`); leave it out";
            return Err(path.field("speed").refuse(reason));
        }
        Ok((Work::Replay { set, speed: spec.speed }, needs))
    }
}

/// Returns when operations of a trace start; how often is known once it was read.
pub(super) fn schedule(path: &FieldPath, spec: &ReplaySpec) -> Checked<OpenLoop> {
    Ok(OpenLoop {
        profile: "1/s".parse().expect("it is a rate"),
        arrivals: ArrivalLaw::Trace,
        max_in_flight: in_flight(&path.field("max_in_flight"), spec.max_in_flight)?,
    })
}

fn trace_of(path: &FieldPath, of: &TraceOf) -> Checked<()> {
    if of.file.is_empty() {
        return Err(path.field("file").refuse("must not be empty"));
    }
    if let Some(format) = &of.format
        && !TRACE_FORMATS.contains(&&**format)
    {
        let known = TRACE_FORMATS.join(", ");
        let reason = format!("`{format}` is not a trace format; the formats are {known}");
        return Err(path.field("format").refuse(reason));
    }
    if of.until.is_some_and(|until| until.0.is_zero()) {
        return Err(path.field("until").refuse("must be longer than 0s"));
    }
    match of.unknown_size {
        Some(size) if size.0 > PUT_BYTES_MAX => {
            let (size, most) = (Bytes(size.0), Bytes(PUT_BYTES_MAX));
            let reason = format!("size {size} is out of range: 0B to {most}");
            Err(path.field("unknown_size").refuse(reason))
        }
        _ => Ok(()),
    }
}

/// Refuses whatever else is done to what a trace is about: what it holds after a replay only that
/// replay knows.
pub(super) fn check_uses(cx: &Context<'_>, stages: &[Stage]) -> Checked<()> {
    let mut replayed = vec![false; cx.sets.len()];
    for job in stages.iter().flat_map(|stage| &stage.jobs) {
        for set in job.work.sets() {
            if cx.members(set).traced().is_none() {
                continue;
            }
            let name = &cx.sets[set.0].name;
            let at = job.path.field("work");
            match &job.work {
                Work::Replay { .. } if !std::mem::replace(&mut replayed[set.0], true) => {}
                Work::Fill { .. } if !replayed[set.0] => {}
                Work::Replay { .. } | Work::Fill { .. } => {
                    let reason = format!(
                        "the trace of set `{name}` was replayed before; what it left is not what \
                         it began with, so this needs its own set"
                    );
                    return Err(at.refuse(reason));
                }
                _ => {
                    let reason = format!(
                        "set `{name}` comes from a trace; it can only be filled and replayed"
                    );
                    return Err(at.refuse(reason));
                }
            }
        }
    }
    Ok(())
}
