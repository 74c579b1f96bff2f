//! What a trace is about, and what a plan learns from the trace once it was read.

use std::sync::Arc;

use crate::plan::path::InvalidField;
use crate::plan::spec::TraceOf;
use crate::plan::work::Work;
use crate::plan::{FileNames, Job, JobPacing, Members, Plan, SetIndex};
use crate::trace::Trace;
use crate::{Pacing, RateProfile};

/// The objects or files of a trace.
#[derive(Clone, Debug)]
pub struct Traced {
    /// Which trace it is.
    pub of: TraceOf,
    /// What it holds; `None` as long as nobody has read it.
    pub loaded: Option<Arc<Trace>>,
}

impl PartialEq for Traced {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Eq for Traced {}

impl Traced {
    /// Returns what the trace holds, which is nothing as long as nobody has read it.
    pub fn trace(&self) -> Arc<Trace> {
        self.loaded.clone().unwrap_or_default()
    }
}

impl Members {
    /// Returns the trace that they are of, where they are of one.
    pub fn traced(&self) -> Option<&Traced> {
        match self {
            Self::Objects(objects) => objects.traced.as_ref(),
            Self::Files(files) => match &files.names {
                FileNames::Traced(traced) => Some(traced),
                _ => None,
            },
            _ => None,
        }
    }

    fn traced_mut(&mut self) -> Option<&mut Traced> {
        match self {
            Self::Objects(objects) => objects.traced.as_mut(),
            Self::Files(files) => match &mut files.names {
                FileNames::Traced(traced) => Some(traced),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Plan {
    /// Returns the sets that are of traces, each with its trace.
    pub fn traced(&self) -> impl Iterator<Item = (SetIndex, &Traced)> {
        let sets = self.sets.iter().enumerate();
        sets.filter_map(|(index, set)| Some((SetIndex(index), set.members.traced()?)))
    }

    /// Returns what the trace of a set holds, which is nothing where it is of none.
    pub(crate) fn trace_of(&self, set: SetIndex) -> Arc<Trace> {
        self.set(set).members.traced().map(Traced::trace).unwrap_or_default()
    }

    /// Takes what the trace of a set holds.
    pub fn learn_trace(&mut self, set: SetIndex, trace: &Arc<Trace>) -> Result<(), InvalidField> {
        let of = &mut self.sets[set.0];
        let is_on_files = matches!(of.members, Members::Files(_));
        let at = of.path.field("trace.file");
        match (trace.is_on_files(), is_on_files) {
            (true, false) => {
                let reason = "the trace is about blocks of files, and the target is not a file \
                              system (`files: {directory: ...}`)";
                return Err(at.refuse(reason));
            }
            (false, true) => {
                return Err(
                    at.refuse("the trace is about objects, and the target is a file system")
                );
            }
            _ => {}
        }
        let fills =
            |job: &Job| matches!(job.work, Work::Fill { .. }) && job.work.sets().contains(&set);
        let is_filled = self.stages.iter().flat_map(|stage| &stage.jobs).any(fills);
        if !trace.made_first().is_empty() && !is_filled {
            let reason = format!(
                "the trace reads {} that it does not write before, and no stage makes them: add \
                 one before the replay, `{{prepares: true, jobs: [{{work: {{fill: {}}}}}]}}`",
                if is_on_files { "files" } else { "objects" },
                of.name,
            );
            return Err(at.refuse(reason));
        }
        if let Some(traced) = of.members.traced_mut() {
            traced.loaded = Some(Arc::clone(trace));
        }
        if let Members::Objects(objects) = &mut of.members {
            objects.count = trace.made_first().len() as u64;
        }
        for job in self.stages.iter_mut().flat_map(|stage| &mut stage.jobs) {
            let Work::Replay { set: of, speed } = job.work else { continue };
            let JobPacing::Shared(Pacing::Open(open)) = &mut job.pacing else { continue };
            if of != set {
                continue;
            }
            if !trace.is_timed() {
                let reason = "must be true: the trace does not say when operations began";
                return Err(job.path.field("work.replay.closed").refuse(reason));
            }
            // What is shown of the schedule; the instants are those of the trace.
            let rate = trace.ops_per_sec().map(|rate| (rate * speed * 1e3).round() / 1e3);
            if let Some(Ok(profile)) = rate.map(RateProfile::constant) {
                open.profile = profile;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::OpKind;

    use super::*;
    use crate::plan::WorkloadFile;
    use crate::trace::{Seen, TraceBuilder, TraceOptions};

    fn trace(kind: OpKind) -> Arc<Trace> {
        let mut builder = TraceBuilder::default();
        let (at_ns, bytes) = (Some(0), Some(10));
        let seen = Seen { at_ns, kind, name: b"k", bytes, object_bytes: None, range: None };
        builder.add(&seen).unwrap();
        Arc::new(builder.finish(TraceOptions::default()).unwrap())
    }

    fn file(stages: &str) -> WorkloadFile {
        let sets = "schema: plimsoll.workload/2\nsets: {t: {trace: {file: t}}}\n";
        WorkloadFile::from_yaml("w", &format!("{sets}stages:\n{stages}")).unwrap()
    }

    const REPLAY: &str = "- {jobs: [{work: {replay: {of: t}}}]}\n";
    const FILL: &str = "- {prepares: true, jobs: [{work: {fill: t}}]}\n";

    #[test]
    fn what_a_trace_reads_has_to_be_made_first() {
        let learned = |stages: &str, kind| {
            file(stages).check().unwrap().learn_trace(SetIndex(0), &trace(kind))
        };
        let refused = learned(REPLAY, OpKind::Get).unwrap_err().to_string();
        assert!(refused.contains("reads objects") && refused.contains("{fill: t}"), "{refused}");
        learned(&format!("{FILL}{REPLAY}"), OpKind::Get).unwrap();
        // What it writes itself need not be there.
        learned(REPLAY, OpKind::Put).unwrap();
    }

    #[test]
    fn a_replay_has_no_rate_to_look_for() {
        let search = "- {search: {slo: [p99<=20ms], stage: {jobs: [{work: {replay: {of: t}}}]}}}\n";
        let refused = file(&format!("{FILL}{search}")).check().unwrap_err().to_string();
        assert!(refused.contains("plimsoll fit"), "{refused}");
    }
}
