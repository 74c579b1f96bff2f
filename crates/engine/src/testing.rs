//! Workloads laid out for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_model::{ObjectId, Seed, StageKind};
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::FilePlan;
use plimsoll_workload::objects::ObjectSet;
use plimsoll_workload::plan::{Placed, Placing, SetIndex, Stage, WorkloadFile};
use plimsoll_workload::trace::Trace;
use plimsoll_workload::{Keys, StopRule, objects};

use crate::{JobTiming, ObjectsJob, StageLimits, StageWork};

/// A workload, laid out for the run `run`.
pub(crate) struct Laid {
    placed: Placed,
    prepare: Option<Arc<objects::ObjectsJob>>,
    measure: Arc<objects::ObjectsJob>,
    pub(crate) generators: Arc<[Arc<Generator>]>,
    pub(crate) seed: Seed,
}

impl Laid {
    /// Lays out a job on the set `o`, behind a fill of it by as many workers where it has a count.
    /// The set, the job and its stage are fields of a workload file.
    pub(crate) fn of(set: &str, workers: u32, job: &str, stage: &str) -> Arc<Self> {
        let fill = format!("prepares: true, jobs: [{{workers: {workers}, work: {{fill: o}}}}]");
        let fill = match set.contains("count: ") {
            true => format!("- {{name: prepare, {fill}}}\n"),
            false => String::new(),
        };
        let text = format!(
            "schema: plimsoll.workload/2\nseed: 7\nsets: {{o: {{{set}}}}}\nstages:\n{fill}\
             - {{name: measure, {stage}, jobs: [{{workers: {workers}, {job}}}]}}\n"
        );
        Self::written(&text, None)
    }

    /// Lays out the replay of a trace by so many workers, behind a fill of what has to be there.
    pub(crate) fn replaying(trace: &Arc<Trace>, workers: u32, replay: &str) -> Arc<Self> {
        let text = format!(
            "schema: plimsoll.workload/2\nseed: 5\nsets: {{t: {{trace: {{file: t}}}}}}\nstages:\n\
             - {{prepares: true, jobs: [{{workers: 3, work: {{fill: t}}}}]}}\n\
             - {{jobs: [{{workers: {workers}, work: {{replay: {{of: t{replay}}}}}}}]}}\n"
        );
        Self::written(&text, Some(trace))
    }

    /// Lays out a workload of one set.
    fn written(text: &str, trace: Option<&Arc<Trace>>) -> Arc<Self> {
        let file = WorkloadFile::from_yaml("t.yaml", text);
        let file = file.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut plan = file.check().unwrap_or_else(|error| panic!("{error}\n{text}"));
        if let Some(trace) = trace {
            plan.learn_trace(SetIndex(0), trace).unwrap();
        }
        let (seed, found) = (plan.seed.expect("it is written"), BTreeMap::new());
        let placing = Placing { run: "run", seed, buckets: &[String::new()], found: &found };
        let placed = Arc::new(plan).place(&placing).unwrap();
        let generator = |set: &Option<Arc<ObjectSet>>| {
            let set = set.as_ref().expect("all sets hold objects");
            Arc::new(Generator::with_rule(seed.0, &set.data, Vec::new()))
        };
        let generators = placed.sets.iter().map(generator).collect();
        let [prepares @ .., measured] = &*placed.stages else { panic!("nothing is measured") };
        let prepare = prepares.first().map(|stage| Arc::clone(&stage.objects[0].work));
        let mut measure = Arc::clone(&measured.objects[0].work);
        if prepare.is_some() {
            measure = Arc::new(measure.with_members([objects::Members::all()].into()));
        }
        Arc::new(Self { placed, prepare, measure, generators, seed })
    }

    pub(crate) fn job(&self, kind: StageKind) -> &Arc<objects::ObjectsJob> {
        match kind {
            StageKind::Prepare => self.prepare.as_ref().expect("something is prepared"),
            _ => &self.measure,
        }
    }

    /// Tells whether anything is made before it measures.
    pub(crate) fn prepares(&self) -> bool {
        self.prepare.is_some()
    }

    fn stage(&self, kind: StageKind) -> &Stage {
        let stages = &self.placed.plan.stages;
        stages.iter().find(|stage| stage.kind == kind).expect("there is such a stage")
    }

    pub(crate) fn timing(&self, kind: StageKind) -> JobTiming {
        let stage = self.stage(kind);
        JobTiming::of_job(&stage.jobs[0], stage.duration)
    }

    pub(crate) fn stop_rules(&self) -> &[StopRule] {
        &self.stage(StageKind::Measure).stop_rules
    }

    /// Returns all of what prepares or is measured, as the only job of its stage.
    pub(crate) fn alone<'a, D>(&'a self, driver: &'a D, kind: StageKind) -> ObjectsJob<'a, D> {
        let timing = self.timing(kind);
        let job = ObjectsJob::alone(driver, self.job(kind), &self.generators);
        ObjectsJob { timing, name: kind.name(), ..job }
    }

    /// Returns the stage of that job, with the stop rules of the workload where it is measured.
    pub(crate) fn stage_of<'a, D>(
        &self,
        stage: plimsoll_model::StageId,
        kind: StageKind,
        job: ObjectsJob<'a, D>,
    ) -> StageWork<'a, D, plimsoll_driver::NullRings> {
        let rules = if kind == StageKind::Measure { self.stop_rules() } else { &[] };
        let limits = StageLimits { stop_rules: rules.to_vec(), ..StageLimits::default() };
        StageWork { limits, ..StageWork::of_objects(stage, job) }
    }

    /// Returns the only set.
    pub(crate) fn set(&self) -> &ObjectSet {
        self.measure.set(SetIndex(0))
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.set().keys
    }

    pub(crate) fn size_of(&self, id: ObjectId) -> u64 {
        self.set().size_of(id).unwrap()
    }

    pub(crate) fn prepare_ops_count(&self) -> u64 {
        self.prepare.as_ref().and_then(|work| work.ops_count()).unwrap_or(0)
    }
}

/// Lays the jobs on files of a workload out for the run `run`, whether or not a stage before makes
/// what they read.
pub(crate) fn files_of(file: &WorkloadFile) -> FilePlan {
    let plan = file.recorded().unwrap_or_else(|error| panic!("{error}\n{}", file.to_yaml()));
    let (seed, found) = (Seed(file.seed.unwrap()), BTreeMap::new());
    let placing = Placing { run: "run", seed, buckets: &[String::new()], found: &found };
    Arc::new(plan).place(&placing).unwrap().files.expect("it works on files")
}
