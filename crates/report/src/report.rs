//! Everything a report says about a run, as values: its stages, their rows, the figures of these,
//! and facts of the run. Its JSON is derived from these types; the printers read nothing else.
//!
//! Long: one document, whose parts are read together.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_analysis::verdict::Verdict;
use plimsoll_analysis::{FailedShare, KindAnalysis, RowAnalysis, StepFigures};
use plimsoll_model::{
    CacheState, EndReason, EndpointId, Interface, JobWork, Moment, OpKind, RunId, Seed, WallTime,
    WrongKind,
};
use serde::Serialize;

use crate::facts::{
    AdviceLine, CertificateLine, CleanupReport, ErrorSample, JobSchedule, LoopModel, OpLogCheck,
    ProcessUsage, RunState, RunVerdict, TargetReport, Verification,
};
use crate::stage_words::schedules_told;
use crate::{
    AgentReport, EventReport, LoadLineReport, QueueTheory, ReadBackReport, ScheduleReport,
    ScrapedReport, serial, words,
};

/// The version of the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReportSchema {
    /// The first version: one for every kind of run.
    #[default]
    #[serde(rename = "plimsoll.report/1")]
    V1,
}

/// The result of a run, or of the stages of it that were asked for. What is not known is null.
/// Moments are nanoseconds since the run's epoch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "plimsoll.report/1"))]
pub struct Report {
    /// The version of this document.
    pub schema: ReportSchema,
    /// The version of plimsoll that made the run; null for a record made elsewhere.
    pub tool_version: Option<String>,
    /// The run's id; null for a record made elsewhere.
    #[serde(serialize_with = "serial::display_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub run_id: Option<RunId>,
    /// What ran, as the command names it: `s3 get`.
    pub what: String,
    /// The command line with secrets removed.
    pub command: String,
    /// Whether the run came to its own end.
    pub state: RunState,
    /// Where the run directory lies; null when nothing was kept.
    pub run_directory: Option<String>,
    /// The run's epoch, RFC 3339 in UTC.
    #[serde(serialize_with = "serial::display")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub epoch: WallTime,
    /// When its first stage began, of an only result on objects when that did; RFC 3339 in UTC.
    #[serde(serialize_with = "serial::display")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started: WallTime,
    /// How many seconds the local time is ahead of UTC; `None` when only UTC is to be shown.
    #[serde(skip)]
    pub utc_offset_seconds: Option<i32>,
    /// The kind of record that was read when it is not plimsoll's own: `warp raw file`.
    pub foreign: Option<String>,
    /// What the load was put on; one at least.
    pub targets: Vec<TargetReport>,
    /// The addresses of all targets by their `endpoint_id`.
    pub endpoints: Vec<String>,
    /// The clients by their `client_id`; empty when there is only one.
    pub clients: Vec<String>,
    /// The machine in one line.
    pub machine: Option<String>,
    /// The agents that carried it out; empty where the process did that recorded it.
    pub agents: Vec<AgentReport>,
    /// The seed of all choices: a 64-bit number in decimal digits, as text, as many readers hold
    /// only 53 bits; null where it is not known.
    #[serde(serialize_with = "serial::seed")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub seed: Option<Seed>,
    /// Whether time was that of a simulation: what this machine did while it ran says nothing then.
    pub virtual_time: bool,
    /// The load lines that were looked for; absent where none was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_lines: Vec<LoadLineReport>,
    /// The report of a second run: `plimsoll loadline` without a store searches in virtual time,
    /// then puts half of the line on the same store over loopback. Absent elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loopback: Option<Box<Self>>,
    /// Who was the limit: of the last stage that its client limited, else of the last result; null
    /// where that was not looked at.
    pub verdict: Option<RunVerdict>,
    /// The stages in order.
    pub stages: Vec<StageReport>,
    /// How read content was checked; null when nothing is read.
    pub verification: Option<Verification>,
    /// What became of writes that were acknowledged; null where they were not to be read back.
    pub read_back: Option<ReadBackReport>,
    /// How long workers waited for the recorder, all added up; null in virtual time.
    #[serde(rename = "recorder_wait_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub recorder_wait: Option<Duration>,
    /// What the store told of itself (`--scrape`); absent where it was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scraped: Option<ScrapedReport>,
    /// What was removed at the end; null where nothing had to be, or where that is not known.
    pub cleanup: Option<CleanupReport>,
    /// What the proofs said of the instrument, if the run was given their certificate.
    pub certificate: Option<CertificateLine>,
    /// What of the record could not be read or used, a sentence each.
    pub losses: Vec<String>,
    /// What of it may mislead, the gravest first: a code and a sentence each.
    pub crimes: Vec<AdviceLine>,
    /// Warnings about the trust of the whole, a sentence each.
    pub advice: Vec<String>,
    /// Remarks that are no warnings.
    pub notes: Vec<String>,
}

/// One stage: jobs that ran at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageReport {
    /// What it is called, such as `read-iops`; of repeated ones the same each time.
    pub name: String,
    /// Which repetition it is, 0-based.
    #[serde(rename = "iteration_index")]
    pub iteration: u32,
    /// Which one it is of the stages of the run that have its name and repetition, 1-based; absent
    /// for the first.
    #[serde(rename = "title_number", skip_serializing_if = "serial::is_first")]
    pub number_of_title: u32,
    /// Whether it is a result, and not only makes what others need.
    pub is_result: bool,
    /// Which stage of the workload is the search that it is a probe of, 0-based; absent where it is
    /// none.
    #[serde(rename = "search_index", skip_serializing_if = "Option::is_none")]
    pub probe_of: Option<u8>,
    /// From the start of the first stage to its own.
    #[serde(rename = "started_after_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub started_after: Duration,
    /// Whether it only reads back what others wrote.
    #[serde(skip)]
    pub is_read_back: bool,
    /// Whether some of its clients had ended when others began.
    #[serde(skip)]
    pub clients_apart: bool,
    /// From its start to the end of its last worker.
    #[serde(rename = "duration_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub took: Duration,
    /// Threads that its workers ran on, where that is known.
    #[serde(rename = "threads_count")]
    pub threads: Option<u32>,
    /// What ended it: `out-of-work`, `duration`, a stop rule (`steady`, `until`), `failure`, or
    /// `stopped` where somebody stopped it; null where that is not known, or where clients differ
    /// in it.
    pub ended_by: Option<EndReason>,
    /// Why a stop rule ended it before its time was up, in words and figures; null where none did.
    pub ended_because: Option<String>,
    /// User and system CPU time of this program while it ran; null in virtual time.
    #[serde(rename = "client_cpu_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub cpu: Option<Duration>,
    /// The same over the time of all processors of its machine, 0 to 1; null of a fleet and of
    /// merged runs.
    #[serde(rename = "client_cpu_share")]
    pub cpu_share: Option<f64>,
    /// What this program used of the machine while it ran, where that is known.
    #[serde(skip)]
    pub usage: Option<ProcessUsage>,
    /// The op log held against the counters; null when no log was kept, or where operations were
    /// left out.
    pub op_log: Option<OpLogCheck>,
    /// The hash of all operations as they were planned, 16 hexadecimal digits.
    pub stream_hash: Option<String>,
    /// How many contents that were read were wrong, by what was wrong with them.
    #[serde(rename = "wrong_by_kind")]
    pub wrong: BTreeMap<WrongKind, u64>,
    /// How many reads could not be checked, as what they should hold is unknown.
    pub unchecked_count: u64,
    /// First errors, a few of each class.
    pub errors: Vec<ErrorSample>,
    /// The longest time in which a thread with operations under way did not look at what had ended;
    /// null where nothing was waited for, or where it is not known.
    #[serde(rename = "look_gap_ns_max", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub look_gap_max: Option<Duration>,
    /// How many operations were seen to end after such a gap of more than half of their service
    /// time.
    #[serde(rename = "ops_uncertain_count")]
    pub uncertain_count: Option<u64>,
    /// Who was its limit; null where that was not looked at: of what only prepares, of a part, in
    /// virtual time and of records made elsewhere.
    pub verdict: Option<Verdict>,
    /// Commands of the user's own that were run at instants of it.
    pub events: Vec<EventReport>,
    /// What ran at once, each job or group of jobs by itself.
    pub rows: Vec<RowReport>,
}

/// A job, or a group of jobs, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowReport {
    /// What the job or the group is called.
    pub name: String,
    /// Its jobs, by their place in the stage; empty where these are not known.
    #[serde(skip)]
    pub jobs: Vec<usize>,
    /// The number of the worker in its job, where the row is of one worker.
    #[serde(skip)]
    pub worker: Option<u32>,
    /// What was done.
    pub work: Option<JobWork>,
    /// The percentage of reads, where blocks were read and written (`rw`, `randrw`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<u8>,
    /// Whether it worked on files, and not on objects.
    pub is_on_files: bool,
    /// Bytes of one operation on blocks, such as `4 KiB` or `4 KiB–64 KiB`; null where none are
    /// moved, or where clients differ in it.
    pub block: Option<String>,
    /// How many operations each worker kept in flight; null where clients differ in it.
    pub depth: Option<u32>,
    /// Whether the page cache was passed by.
    pub direct: bool,
    /// How operations reached the kernel.
    pub interface: Option<Interface>,
    /// What lay between the operations and the medium; null on objects, and where it is not known.
    pub caches: Option<CacheState>,
    /// How many files or names there were, of all workers.
    pub files_count: Option<u64>,
    /// How large a file was, such as `4 GiB`.
    pub file_size: Option<String>,
    /// How long it was to last; null where it ended when all was done.
    #[serde(rename = "duration_asked_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub duration: Option<Duration>,
    /// The clients that served it.
    pub served_by: Vec<String>,
    /// How many of its workers worked on names that a worker of the same client had in the stage
    /// before; null where there was none, and where that is not known.
    pub names_kept_count: Option<u32>,
    /// When operations start.
    pub loop_model: LoopModel,
    /// Each of its jobs by name with when its operations start; empty where that is not known.
    #[serde(skip)]
    pub paced: Vec<(String, LoopModel)>,
    /// The schedules of its jobs that have one.
    pub schedules: Vec<JobSchedule>,
    /// What theory says of the latency, where the store is an embedded queue (M/M/c) and arrivals
    /// are a Poisson process of one rate that the queue can carry; absent elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theory: Option<QueueTheory>,
    /// What came of each step of the rate of its only job; absent where that has but one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepFigures>,
    /// Failed over all operations that count, 0 to 1; null when there was none.
    pub error_rate: Option<f64>,
    /// The largest such share that its workload allows, 0 to 1; null where it says nothing.
    pub error_rate_max: Option<f64>,
    /// What limits the trust in its figures.
    pub advice: Vec<AdviceLine>,
    /// What came of it.
    #[serde(flatten)]
    pub analysis: RowAnalysis,
}

/// What a stage that only prepares came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageWork {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
}

impl RowReport {
    /// Returns what was done, in fio's words where that was on blocks.
    pub(crate) fn work(&self) -> Option<String> {
        Some(self.work?.with_shares(self.read_percent))
    }

    /// Returns a row on objects of which nothing but its figures is known.
    pub fn of(name: &str, analysis: RowAnalysis) -> Self {
        Self {
            name: name.to_owned(),
            jobs: Vec::new(),
            worker: None,
            work: None,
            read_percent: None,
            is_on_files: false,
            block: None,
            depth: None,
            direct: false,
            interface: None,
            caches: None,
            files_count: None,
            file_size: None,
            duration: None,
            served_by: Vec::new(),
            names_kept_count: None,
            loop_model: LoopModel::Closed,
            paced: Vec::new(),
            schedules: Vec::new(),
            theory: None,
            steps: Vec::new(),
            error_rate: analysis.error_rate(),
            error_rate_max: None,
            advice: analysis.advice.iter().map(words::advice_line).collect(),
            analysis,
        }
    }

    /// Returns which share of its operations failed, without those in ramps.
    pub fn failed_share(&self) -> FailedShare {
        self.analysis.total.stage.failed_share()
    }

    /// Tells whether the load came as it should have: not more than 1 % of the operations of an
    /// open loop were late or skipped; always true in other loops.
    pub fn schedule_kept(&self) -> bool {
        self.schedules.iter().all(|of| of.schedule.is_kept())
    }
}

impl StageReport {
    /// Returns a stage of which nothing but its rows is known.
    pub fn of(name: &str, rows: Vec<RowReport>) -> Self {
        let took = rows.iter().map(|row| row.analysis.ended.since(row.analysis.started)).max();
        Self {
            name: name.to_owned(),
            iteration: 0,
            number_of_title: 1,
            is_result: true,
            probe_of: None,
            is_read_back: false,
            started_after: Duration::ZERO,
            clients_apart: false,
            took: took.unwrap_or_default(),
            threads: None,
            ended_by: None,
            ended_because: None,
            cpu: None,
            cpu_share: None,
            usage: None,
            op_log: None,
            stream_hash: None,
            wrong: BTreeMap::new(),
            unchecked_count: 0,
            errors: Vec::new(),
            look_gap_max: None,
            uncertain_count: None,
            verdict: None,
            events: Vec::new(),
            rows,
        }
    }

    /// Returns which share of its operations failed, without those in ramps.
    pub fn failed_share(&self) -> FailedShare {
        self.rows.iter().map(RowReport::failed_share).sum()
    }

    /// Returns how many operations failed, without those in ramps.
    pub fn failed_count(&self) -> u64 {
        self.failed_share().failed
    }

    /// Returns how many operations succeeded, without those in ramps.
    pub fn ops_ok(&self) -> u64 {
        self.rows.iter().map(|row| row.analysis.total.stage.ops_ok).sum()
    }

    /// Returns how many operations ended, those in ramps included.
    pub fn ended_count(&self) -> u64 {
        let ramps = self.rows.iter().map(|row| row.analysis.ramp);
        let ramps: u64 = ramps.map(|ramp| ramp.ops_ok + ramp.failed.count()).sum();
        self.failed_share().ended + ramps
    }

    /// Tells whether operations were left out.
    pub(crate) fn is_part(&self) -> bool {
        self.rows.iter().any(|row| row.analysis.is_part)
    }

    /// Returns each kind in each row.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&RowReport, &KindAnalysis)> {
        self.rows.iter().flat_map(|row| row.analysis.kinds.iter().map(move |kind| (row, kind)))
    }

    /// Returns the CPU time for each operation that ended, those in ramps included.
    pub(crate) fn cpu_per_op(&self) -> Option<Duration> {
        let ended = self.ended_count();
        let each = (ended > 0).then(|| self.cpu.map(|cpu| cpu.as_nanos() as f64 / ended as f64));
        each.flatten().map(|ns| Duration::from_nanos(ns.round() as u64))
    }

    /// Returns what it made of objects: those uploaded in parts count once each.
    pub(crate) fn work(&self) -> StageWork {
        let kinds = || self.kinds().map(|(_, kind)| kind);
        let whole = kinds().find(|kind| kind.kind == OpKind::CompleteUpload);
        let objects = whole.map_or(self.ops_ok(), |kind| kind.figures.stage.ops_ok);
        let bytes = kinds().map(|kind| kind.figures.stage.bytes).sum();
        StageWork { objects, bytes, took: self.took }
    }
}

impl RunVerdict {
    /// Returns the verdict on a stage, if there is one.
    pub fn of(stage: &StageReport) -> Option<Self> {
        let verdict = stage.verdict.as_ref()?;
        Some(Self {
            stage: stage.name.clone(),
            iteration: stage.iteration,
            number_of_title: stage.number_of_title,
            class: verdict.class,
            is_client: verdict.is_client,
            sentence: verdict.sentence.clone(),
            experiment: verdict.experiment.clone(),
        })
    }
}

/// Returns the verdict of the last result that its client limited, else of the last. Of a search
/// the load line says it: probes go beyond what a store carries on purpose.
fn run_verdict(stages: &[StageReport]) -> Option<RunVerdict> {
    let judged = stages.iter().filter(|stage| stage.is_result && stage.probe_of.is_none());
    judged.filter_map(RunVerdict::of).max_by_key(|verdict| verdict.is_client)
}

impl Report {
    /// Returns a report of which nothing but its stages is known.
    pub fn of(what: &str, epoch: WallTime, stages: Vec<StageReport>) -> Self {
        let mut report = Self {
            schema: ReportSchema::V1,
            tool_version: None,
            run_id: None,
            what: what.to_owned(),
            command: String::new(),
            state: RunState::Complete,
            run_directory: None,
            epoch,
            started: epoch,
            utc_offset_seconds: None,
            foreign: None,
            targets: vec![TargetReport::default()],
            endpoints: Vec::new(),
            clients: Vec::new(),
            machine: None,
            agents: Vec::new(),
            seed: None,
            virtual_time: false,
            load_lines: Vec::new(),
            loopback: None,
            verdict: run_verdict(&stages),
            stages,
            verification: None,
            read_back: None,
            recorder_wait: Some(Duration::ZERO),
            scraped: None,
            cleanup: None,
            certificate: None,
            losses: Vec::new(),
            crimes: Vec::new(),
            advice: Vec::new(),
            notes: Vec::new(),
        };
        report.note_schedules();
        report
    }

    /// Notes which schedules were not kept.
    pub(crate) fn note_schedules(&mut self) {
        let of_only = self.only_row().map(|row| row.schedule_warning());
        for stage in &mut self.stages {
            let told: Vec<_> = schedules_told(stage).into_iter().map(|of| of.warning).collect();
            let schedules = stage.rows.iter_mut().flat_map(|row| &mut row.schedules);
            for (schedule, warning) in schedules.zip(told) {
                schedule.warning = of_only.clone().unwrap_or(warning);
            }
        }
    }

    /// Returns how many operations failed, over all stages, without those in ramps.
    pub fn failed_count(&self) -> u64 {
        self.stages.iter().map(StageReport::failed_count).sum()
    }

    /// Tells whether more than the figures was asked for.
    pub fn is_detailed(&self) -> bool {
        let mut rows = self.stages.iter().flat_map(|stage| &stage.rows);
        rows.any(|row| row.analysis.details.is_some())
    }

    /// Returns the stages that are results.
    pub fn results(&self) -> impl Iterator<Item = &StageReport> {
        self.stages.iter().filter(|stage| stage.is_result)
    }

    /// Returns the stages that are shown whole: the results, or the stages that were asked for by
    /// name where none of them is one.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &StageReport> {
        let has_results = self.results().next().is_some();
        self.stages.iter().filter(move |stage| stage.is_result || !has_results)
    }

    /// Returns the stages that are probes of a search.
    pub fn probes_of(&self, line: &LoadLineReport) -> impl Iterator<Item = &StageReport> {
        let search = line.search_index;
        self.stages.iter().filter(move |stage| stage.probe_of == Some(search))
    }

    /// Tells whether a stage is one of [`shown`](Self::shown).
    pub(crate) fn shows(&self, stage: &StageReport) -> bool {
        self.shown().any(|shown| std::ptr::eq(shown, stage))
    }

    /// Returns the only result, where it is one row on objects and there is nothing else to show.
    pub(crate) fn only_row(&self) -> Option<RowView<'_>> {
        if !self.load_lines.is_empty() {
            return None;
        }
        let mut shown = self.shown();
        let (Some(stage), None) = (shown.next(), shown.next()) else { return None };
        match &stage.rows[..] {
            [row] if !row.is_on_files => Some(RowView { report: self, stage, row }),
            _ => None,
        }
    }

    /// Returns the op log of all stages held against their counters; `None` where it is not known
    /// of one of them.
    pub fn op_log(&self) -> Option<OpLogCheck> {
        let all: Option<Vec<OpLogCheck>> = self.stages.iter().map(|stage| stage.op_log).collect();
        let all = all.filter(|all| !all.is_empty())?;
        let sum = |of: fn(&OpLogCheck) -> u64| all.iter().map(of).sum();
        Some(OpLogCheck { rows: sum(|of| of.rows), counted: sum(|of| of.counted) })
    }

    /// Returns how operations reached the kernel, where all rows did alike.
    pub(crate) fn interface(&self) -> Option<Interface> {
        let mut all = self.stages.iter().flat_map(|stage| &stage.rows).map(|row| row.interface);
        let first = all.next()??;
        all.all(|of| of == Some(first)).then_some(first)
    }

    /// Returns the name of an endpoint.
    pub(crate) fn endpoint(&self, id: EndpointId) -> String {
        let name = self.endpoints.get(usize::from(id.0));
        name.cloned().unwrap_or_else(|| format!("endpoint {}", id.0))
    }

    /// Returns the name of a client.
    pub(crate) fn client(&self, number: u16) -> String {
        let name = self.clients.get(usize::from(number));
        name.cloned().unwrap_or_else(|| format!("client {number}"))
    }

    /// Returns when a moment of the run was.
    pub(crate) fn wall_time(&self, at: Moment) -> WallTime {
        self.epoch.after(at.since(Moment::EPOCH))
    }

    /// Returns all targets in one line.
    pub(crate) fn target(&self) -> String {
        self.targets.iter().map(TargetReport::place).collect::<Vec<_>>().join("; ")
    }
}

/// A row with what is around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowView<'a> {
    pub(crate) report: &'a Report,
    pub(crate) stage: &'a StageReport,
    pub(crate) row: &'a RowReport,
}

impl std::ops::Deref for RowView<'_> {
    type Target = Report;

    fn deref(&self) -> &Report {
        self.report
    }
}

impl<'a> RowView<'a> {
    /// Returns the schedule of its job, if it has one.
    pub(crate) fn schedule(&self) -> Option<&'a ScheduleReport> {
        self.row.schedules.first().map(|of| &of.schedule)
    }

    /// Returns what was made before it.
    pub(crate) fn prepared(&self) -> Option<&'a StageReport> {
        let others = self.report.stages.iter();
        let mut others = others.filter(|stage| !stage.is_result && !stage.is_read_back);
        others.find(|stage| !std::ptr::eq(*stage, self.stage))
    }

    /// Returns when its stage began.
    pub(crate) fn began(&self) -> WallTime {
        self.wall_time(self.row.analysis.started)
    }
}
