//! What is said of a stage when it begins.

use plimsoll_model::StageKind;
use plimsoll_workload::plan::{Plan, Stage, Work};

/// What is said of a stage when it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// The stage as something that goes on.
    pub doing: String,
    /// What ends early with it, where that is to be told.
    pub ends: Option<Ends>,
    /// What it makes, where it does nothing else.
    pub fills: Option<Fills>,
}

/// What whoever ends a stage early ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The one stage that measures.
    Stage,
    /// The run.
    Run,
    /// The search that it is a probe of.
    Search,
}

/// What a stage makes for those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fills {
    /// How many objects, or files.
    pub members_count: u64,
    /// Whether they are files.
    pub are_files: bool,
    /// How many bytes they hold, by the mean of their sizes.
    pub bytes: u64,
}

impl Announced {
    /// Returns what is said of something that is no stage of a plan.
    pub fn doing(doing: &str) -> Self {
        Self { doing: doing.to_owned(), ..Self::default() }
    }

    /// Returns what is said of a probe of a search; the first also says how the search ends.
    pub(crate) fn probe(name: &str, is_first: bool) -> Self {
        let ends = is_first.then_some(Ends::Search);
        Self { doing: format!("probing, {name}"), ends, fills: None }
    }

    /// Returns what is said of a stage of a plan, which is on files or is not.
    pub(crate) fn stage(plan: &Plan, stage: &Stage, name: &str, on_files: bool) -> Self {
        let is_measured = |stage: &&Stage| stage.kind == StageKind::Measure;
        let is_one = plan.stages.iter().filter(is_measured).count() == 1 && !on_files;
        let begins = plan.stages.first().is_some_and(|first| std::ptr::eq(first, stage));
        let (doing, ends) = match (stage.kind, stage.iteration) {
            (_, 0) if stage.jobs.is_empty() || stage.is_on_buckets() => (name.to_owned(), None),
            (StageKind::Prepare, _) if is_one => ("preparing".to_owned(), None),
            (_, _) if is_one => ("measuring".to_owned(), Some(Ends::Stage)),
            (_, _) if begins => (name.to_owned(), Some(Ends::Run)),
            (_, 0) => (name.to_owned(), None),
            (_, iteration) => (format!("{name}, repetition {}", iteration + 1), None),
        };
        Self { doing, ends, fills: fills(plan, stage, on_files) }
    }
}

fn fills(plan: &Plan, stage: &Stage, are_files: bool) -> Option<Fills> {
    let mut filled = Fills { members_count: 0, are_files, bytes: 0 };
    for job in &stage.jobs {
        let Work::Fill { sets, .. } = &job.work else { return None };
        for &set in sets {
            let (members, bytes) = plan.set(set).members.amount();
            filled.members_count = filled.members_count.saturating_add(members);
            filled.bytes = filled.bytes.saturating_add(bytes as u64);
        }
    }
    (filled.members_count > 0).then_some(filled)
}
