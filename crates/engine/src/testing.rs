//! Workloads laid out for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_model::{ObjectId, Seed, StageKind};
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::FilePlan;
use plimsoll_workload::objects::ObjectSet;
use plimsoll_workload::plan::{Placed, Placing, Plan, SetIndex, Stage, WorkloadFile};
use plimsoll_workload::trace::Trace;
use plimsoll_workload::v1::WorkloadSpec;
use plimsoll_workload::{ExistingObject, Keys, StopRule, objects};

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
    pub(crate) fn of(spec: &WorkloadSpec) -> Arc<Self> {
        Self::on(spec, Vec::new())
    }

    /// Lays a workload out over objects that are there, where it asks for such.
    pub(crate) fn on(spec: &WorkloadSpec, existing: Vec<ExistingObject>) -> Arc<Self> {
        let plan = WorkloadFile::try_from(spec).unwrap().check().unwrap();
        Self::planned(plan, Seed(spec.seed), existing)
    }

    /// Lays out a workload file whose one stage measures.
    pub(crate) fn of_text(text: &str) -> Arc<Self> {
        let plan = WorkloadFile::from_yaml("t.yaml", text).unwrap().check().unwrap();
        Self::planned(plan, Seed(5), Vec::new())
    }

    fn planned(plan: Plan, seed: Seed, existing: Vec<ExistingObject>) -> Arc<Self> {
        let found = BTreeMap::from([(SetIndex(0), Arc::from(existing))]);
        let placing = Placing { run: "run", seed, buckets: &[String::new()], found: &found };
        let placed = Arc::new(plan).place(&placing).unwrap();
        let generator = |set: &Option<Arc<ObjectSet>>| {
            let set = set.as_ref().expect("all sets hold objects");
            Arc::new(Generator::with_rule(seed.0, &set.data, Vec::new()))
        };
        let generators = placed.sets.iter().map(generator).collect();
        let work = |stage: usize| Arc::clone(&placed.stages[stage].objects[0].work);
        let (prepare, mut measure) = match placed.stages.len() {
            1 => (None, work(0)),
            2 => (Some(work(0)), work(1)),
            _ => unreachable!("version 1 has two stages at most"),
        };
        if prepare.is_some() {
            let there = [objects::Members::all()].into();
            measure = Arc::new(measure.with_members(there));
        }
        Arc::new(Self { placed, prepare, measure, generators, seed })
    }

    /// Lays out the replay of a trace by so many workers, behind a fill of what has to be there.
    pub(crate) fn replaying(trace: &Arc<Trace>, workers: u32, replay: &str) -> Arc<Self> {
        let text = format!(
            "schema: plimsoll.workload/2\nseed: 5\nsets: {{t: {{trace: {{file: t}}}}}}\nstages:\n\
             - {{prepares: true, jobs: [{{workers: 3, work: {{fill: t}}}}]}}\n\
             - {{jobs: [{{workers: {workers}, work: {{replay: {{of: t{replay}}}}}}}]}}\n"
        );
        let mut plan = WorkloadFile::from_yaml("t.yaml", &text).unwrap().check().unwrap();
        plan.learn_trace(SetIndex(0), trace).unwrap();
        let (seed, found) = (Seed(5), BTreeMap::new());
        let placing = Placing { run: "run", seed, buckets: &[String::new()], found: &found };
        let placed = Arc::new(plan).place(&placing).unwrap();
        let work = |stage: usize| Arc::clone(&placed.stages[stage].objects[0].work);
        let there = [objects::Members::all()].into();
        let (prepare, measure) = (Some(work(0)), Arc::new(work(1).with_members(there)));
        let generators = [Arc::new(Generator::new(seed.0))].into();
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
