//! What is known of a workload before it runs, and how its stages stand while it does.

use std::time::Duration;

use plimsoll_workload::plan::{Job, OpAct, Plan, Stage, Target, Work, spec::TargetSpec};
use serde::{Deserialize, Serialize};

/// What is known of a workload before it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// What its author says of it.
    pub description: Option<String>,
    /// Its stages, in order.
    pub stages: Vec<StagePlan>,
    /// What its operations are, each once.
    pub operations: Vec<String>,
    /// Buckets that it changes and that no run made.
    pub touches: Vec<String>,
    /// Where the load goes.
    pub targets: Vec<String>,
    /// What differs from the tool that its language comes from.
    pub corrections: Vec<Correction>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Scripts that are run around it.
    pub triggers: Vec<Trigger>,
}

/// A meaning that changed on the way from another tool's language.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Correction {
    /// What it is about.
    pub what: String,
    /// What the other tool does.
    pub theirs: String,
    /// What we do.
    pub ours: String,
}

/// A script that is run around a workload or a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// The stage's number, 1-based; `None`: around the whole workload.
    pub stage: Option<usize>,
    /// The call as written: `name.sh(arg1,arg2)`.
    pub call: String,
}

/// A stage as it is planned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StagePlan {
    /// What it is called.
    pub name: String,
    /// What COSBench calls it: `s3-main`; `None` where it is a part that COSBench has no name for.
    pub id: Option<String>,
    /// Whether it only makes what others need.
    pub prepares: bool,
    /// How long it is to last, where that is known.
    pub planned_ns: Option<u64>,
    /// Of a pause: how long it is.
    pub delay_ns: Option<u64>,
    /// The number of COSBench's stage that it is a part of, 1-based.
    pub part_of: Option<usize>,
    /// What is done at once.
    pub jobs: Vec<JobPlan>,
}

/// A job as it is planned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    /// What it is called.
    pub name: String,
    /// How many workers it has.
    pub workers_count: u32,
    /// What it does, in words.
    pub work: String,
    /// The agent that is to do it, where one is named.
    pub agent: Option<String>,
    /// How many percent of its operations may fail, where it is said; otherwise none may.
    #[serde(default)]
    pub failed_percent_max: Option<f64>,
}

/// How a stage stands that has begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StageProgress {
    /// Its number, 1-based.
    pub number: usize,
    /// How it stands.
    pub state: StageState,
    /// How it has stood.
    pub states: Vec<(StageState, i64)>,
    /// When it began, in milliseconds since 1970.
    pub began_at_ms: Option<i64>,
    /// When it ended.
    pub ended_at_ms: Option<i64>,
    /// How many operations have ended.
    pub ops_count: u64,
    /// How many of these failed.
    pub ops_failed_count: u64,
    /// How many content bytes were moved.
    pub bytes_count: u64,
    /// What ended it, where it failed.
    #[serde(default)]
    pub error: Option<String>,
    /// Whether its figures are a result, once it has begun.
    #[serde(default)]
    pub measures: Option<bool>,
    /// By job, where jobs are told apart.
    #[serde(default)]
    pub jobs: Vec<JobProgress>,
}

/// What a job has come to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct JobProgress {
    /// How many operations have ended.
    pub ops_count: u64,
    /// How many of these failed.
    pub ops_failed_count: u64,
    /// How many content bytes were moved.
    pub bytes_count: u64,
    /// What is wrong with it, where it failed.
    pub error: Option<String>,
}

/// How a stage stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StageState {
    /// Its turn has not come.
    #[default]
    Waiting,
    /// Its workers are at work.
    Running,
    /// It is a pause, or its own pause has come.
    Sleeping,
    /// It is over.
    Completed,
    /// It is over, and too much of it failed.
    Failed,
    /// It could not go on.
    Terminated,
    /// Somebody cancelled it.
    Cancelled,
    /// What came before it ended the run.
    Aborted,
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Facts {
    /// Returns what a plan says.
    pub fn of(plan: &Plan) -> Self {
        let mut operations: Vec<String> = Vec::new();
        for word in plan.jobs().flat_map(|job| operation_words(&job.work)) {
            if !operations.contains(&word) {
                operations.push(word);
            }
        }
        Self {
            stages: (1..).zip(&plan.stages).map(StagePlan::of).collect(),
            operations,
            targets: plan.targets.iter().map(target_words).collect(),
            ..Self::default()
        }
    }
}

impl StagePlan {
    /// Returns what it is called among the stages of its workload.
    pub(crate) fn id_as(&self, number: usize) -> String {
        // A part of a stage of COSBench's is called after that stage already.
        let own = || match self.part_of {
            Some(_) => self.name.clone(),
            None => format!("s{number}-{}", self.name),
        };
        self.id.clone().unwrap_or_else(own)
    }

    fn of((number, stage): (usize, &Stage)) -> Self {
        let duration = stage.duration_max().map(ns);
        Self {
            name: stage.name.clone(),
            id: Some(format!("s{number}-{}", stage.name)),
            prepares: stage.kind != plimsoll_model::StageKind::Measure,
            planned_ns: duration,
            delay_ns: if stage.jobs.is_empty() { duration } else { None },
            part_of: None,
            jobs: stage.jobs.iter().map(JobPlan::of).collect(),
        }
    }
}

impl JobPlan {
    fn of(job: &Job) -> Self {
        Self {
            name: job.name.clone(),
            workers_count: job.workers.get(),
            work: work_words(&job.work),
            agent: job.agent.clone(),
            failed_percent_max: job.error_percent_max,
        }
    }
}

fn target_words(target: &Target) -> String {
    let kind = match &target.spec {
        None => "the store that the console was given",
        Some(TargetSpec::S3(s3)) if !s3.hosts.is_empty() => {
            let hosts: Vec<&str> = s3.hosts.0.iter().map(|host| without_user(host)).collect();
            return format!("s3 {}", hosts.join(", "));
        }
        Some(spec) => spec.kind(),
    };
    match target.name.is_empty() {
        true => kind.to_owned(),
        false => format!("{} ({kind})", target.name),
    }
}

/// Returns a host without who asks it.
fn without_user(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

fn operation_words(work: &Work) -> Vec<String> {
    let one = |word: &str| vec![word.to_owned()];
    match work {
        Work::Objects(ops) => ops.iter().map(|op| act_word(&op.act).to_owned()).collect(),
        Work::Blocks(_) => one("blocks"),
        Work::Names { .. } => one("names"),
        Work::Replay { .. } => one("replay"),
        Work::Fill { .. } => one("prepare"),
        Work::Remove { .. } => one("cleanup"),
        Work::ReadBack(_) => one("read back"),
        Work::MakeBuckets(_) => one("init"),
        Work::RemoveBuckets(_) => one("dispose"),
        Work::PutParts { .. } => one("PUT in parts"),
        Work::Append { .. } => one("APPEND"),
        Work::Retention { .. } => one("RETENTION"),
        _ => one("other"),
    }
}

fn act_word(act: &OpAct) -> &'static str {
    match act {
        OpAct::Get { .. } => "GET",
        OpAct::Put { .. } => "PUT",
        OpAct::Stat { .. } => "STAT",
        OpAct::Delete { .. } => "DELETE",
        OpAct::List { .. } => "LIST",
        #[allow(unreachable_patterns, reason = "the language grows")]
        _ => "other",
    }
}

fn work_words(work: &Work) -> String {
    let Work::Objects(ops) = work else { return operation_words(work).join(", ") };
    let all: u64 = ops.iter().map(|op| u64::from(op.weight)).sum();
    let word = |op: &plimsoll_workload::plan::Op| match all {
        0 => act_word(&op.act).to_owned(),
        _ => format!("{} {:.0} %", act_word(&op.act), f64::from(op.weight) * 100.0 / all as f64),
    };
    ops.iter().map(word).collect::<Vec<_>>().join(", ")
}
