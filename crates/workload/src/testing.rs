//! Workloads laid out for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_model::Seed;

use crate::files::FilePlan;
use crate::objects::{Members, ObjectsJob};
use crate::plan::{Placing, WorkloadFile};

/// The work of a workload.
pub(crate) struct Laid {
    pub(crate) prepare: Option<Arc<ObjectsJob>>,
    pub(crate) measure: Arc<ObjectsJob>,
}

impl Laid {
    /// Lays out work of four workers on the set `o`, behind a fill of it where it has a count.
    #[track_caller]
    pub(crate) fn of(seed: u64, set: &str, work: &str) -> Self {
        Self::of_file(&on_objects(seed, set, &format!("work: {{{work}}}"), ""))
    }

    /// Lays a workload out over no objects, where it asks for such that are there.
    #[track_caller]
    pub(crate) fn of_file(file: &WorkloadFile) -> Self {
        let (buckets, found) = ([String::new()], BTreeMap::new());
        let seed = Seed(file.seed.unwrap());
        let placing = Placing { run: "run", seed, buckets: &buckets, found: &found };
        let placed = Arc::new(file.check().unwrap()).place(&placing).unwrap();
        let [prepares @ .., measured] = &*placed.stages else { panic!("nothing is measured") };
        let prepare = prepares.first().map(|stage| Arc::clone(&stage.objects[0].work));
        let there = if prepare.is_some() { [Members::all()].into() } else { placed.members };
        let measure = Arc::new(measured.objects[0].work.with_members(there));
        Self { prepare, measure }
    }

    /// Returns how many operations prepare it.
    pub(crate) fn prepare_ops_count(&self) -> u64 {
        self.prepare.as_ref().and_then(|work| work.ops_count()).unwrap_or(0)
    }
}

/// Returns a job of four workers on the set `o`, behind a fill of it where it has a count. The set,
/// the job and what else its stage has are fields of a workload file.
#[track_caller]
pub(crate) fn on_objects(seed: u64, set: &str, job: &str, stage: &str) -> WorkloadFile {
    let fill = match set.contains("count: ") {
        true => "- {name: prepare, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}\n",
        false => "",
    };
    let text = format!(
        "schema: plimsoll.workload/2\nseed: {seed}\nsets: {{o: {{{set}}}}}\nstages:\n{fill}\
         - {{name: measure, duration: 1s, {stage}jobs: [{{workers: 4, {job}}}]}}\n"
    );
    WorkloadFile::from_yaml("t.yaml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns a workload on files of the directory `/mnt/a`; `stages` holds the jobs of each.
#[track_caller]
pub(crate) fn on_files(sets: &str, stages: &[impl AsRef<str>]) -> WorkloadFile {
    let stage = |jobs: &_| format!("- {{name: s, jobs: [{}]}}\n", AsRef::<str>::as_ref(jobs));
    let stages: String = stages.iter().map(stage).collect();
    let text = format!(
        "schema: plimsoll.workload/2\nname: t\nseed: 7\ntargets: {{files: {{directory: /mnt/a}}}}\n\
         sets: {{{sets}}}\nstages:\n{stages}"
    );
    WorkloadFile::from_yaml("t.yaml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Lays the jobs on files of a workload out for the run `r`, whether or not a stage before makes
/// what they read.
#[track_caller]
pub(crate) fn files_of(file: &WorkloadFile) -> FilePlan {
    let plan = file.recorded().unwrap_or_else(|error| panic!("{error}\n{}", file.to_yaml()));
    let (buckets, found) = ([String::new()], BTreeMap::new());
    let seed = Seed(file.seed.unwrap());
    let placing = Placing { run: "r", seed, buckets: &buckets, found: &found };
    let placed = Arc::new(plan).place(&placing).unwrap_or_else(|error| panic!("{error}"));
    placed.files.expect("it works on files")
}
