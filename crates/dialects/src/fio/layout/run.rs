//! A job file that was run: what fio's layouts and logs say of it, out of the report of the run.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU64;
use std::time::Duration;

use plimsoll_analysis::{KindAnalysis, RowAnalysis};
use plimsoll_model::{ErrorClass, Moment, OpKind, OpRecord, StageId, WorkerId};
use plimsoll_report::{ErrorSample, Report, RowReport, StageReport};

use super::checked::Checked;
use super::{
    FioCpu, FioDepths, FioDirection, FioLevels, FioLog, FioLogKind, FioLogOp, FioPercentilesOf,
    FioRecord, FioRun, FioSection, FioWhose,
};
use crate::fio::{Blocks, Client, Engine, Job, JobFile, Lowered};

/// The windows that fio takes its rates over.
pub const RATE_WINDOW: Duration = Duration::from_millis(500);

/// Linux's number of a failure that has none of its own.
const EIO: i32 = 5;
/// Linux's number of wrong content, as fio has it.
const EILSEQ: i32 = 84;

/// A job file that was run.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a> {
    /// The job file.
    pub file: &'a JobFile,
    /// What it came to.
    pub lowered: &'a Lowered,
    /// What came of that: stages in rows of jobs where [`Lowered::is_grouped`] says so and else in
    /// rows of workers, with whole distributions, in segments of [`RATE_WINDOW`]. Where clients ran
    /// it, each row is of one of them.
    pub report: &'a Report,
    /// The clients that ran it; `None` where one machine did.
    pub by_clients: Option<RanByClients<'a>>,
}

/// What clients that ran a job file did.
#[derive(Clone, Copy, Debug)]
pub struct RanByClients<'a> {
    /// Who they are: agents of these names.
    pub clients: &'a [Client],
    /// What they did together: all stages in rows of jobs, else as [`Ran::report`].
    pub all: &'a Report,
}

/// By whom and when a result is written.
#[derive(Clone, Debug)]
pub struct Writing {
    /// The program with its version.
    pub program: String,
    /// The number of its process.
    pub pid: u32,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The same in local time, as C's `ctime` has it.
    pub time: String,
}

impl<'a> Ran<'a> {
    /// Returns the run as fio tells it; `levels` are those of the run's operations.
    pub fn run(&self, writing: Writing, levels: &FioLevels) -> FioRun<'a> {
        FioRun {
            clients: self.by_clients.map_or(&[], |ran| ran.clients),
            records: match self.by_clients {
                None => self.records(writing.pid, levels),
                Some(ran) => self.records_of(ran, levels),
            },
            version: writing.program,
            timestamp_ms: writing.unix_ms,
            time: writing.time,
            global_options: self.file.global_options.clone(),
            sections: self.file.jobs.iter().map(section).collect(),
        }
    }

    /// Returns each stage that is a result, with its number.
    fn results(&self, report: &'a Report) -> impl Iterator<Item = (usize, &'a StageReport)> {
        let planned = self.lowered.workload.work_stages();
        let stages = report.stages.iter().zip(planned).enumerate();
        stages.filter(|(_, (_, planned))| !planned.prepares).map(|(at, (stage, _))| (at, stage))
    }

    /// Returns a row for each row of each stage that is a result.
    fn records(&self, pid: u32, levels: &FioLevels) -> Vec<FioRecord<'a>> {
        let mut records = Checked::default();
        for (at, stage) in self.results(self.report) {
            for row in &stage.rows {
                let job = self.jobs(at, row)[0];
                let level = levels.of(at, self.workers(at, row, None));
                let record =
                    FioRecord { depths: depths(job, level), ..record(job, stage, row, pid) };
                records.add(record, self.lowered.stages[at].verifies);
            }
        }
        records.finish()
    }

    /// Returns the numbers in their stage of the workers that a row is of, or of those that are of
    /// one client.
    fn workers(
        &self,
        stage: usize,
        row: &'a RowReport,
        client: Option<usize>,
    ) -> impl Iterator<Item = u32> + use<'a> {
        let clients = self.by_clients.map_or(1, |ran| ran.clients.len().max(1)) as u32;
        let planned = self.lowered.workload.work_stages().nth(stage);
        let counts = planned.into_iter().flat_map(|stage| &stage.jobs).map(|job| job.workers);
        let counts: Vec<u32> = counts.collect();
        row.jobs.iter().flat_map(move |&job| {
            let (before, count) = (counts[..job].iter().sum::<u32>(), counts[job]);
            // Clients have equal shares, one after the other.
            let each = (count / clients).max(1);
            let first = before + client.map_or(0, |number| number as u32 * each);
            match (row.worker, client) {
                (Some(worker), _) => before + worker..before + worker + 1,
                (None, Some(_)) => first..first + each,
                (None, None) => before..before + count,
            }
        })
    }

    /// Returns the same for each client, and then for all of them together: for each group of each
    /// stage, where fio has one for all.
    fn records_of(&self, ran: RanByClients<'a>, levels: &FioLevels) -> Vec<FioRecord<'a>> {
        let mut records = Checked::default();
        for (number, client) in ran.clients.iter().enumerate() {
            for (at, stage) in self.results(self.report) {
                let is_own = |row: &&RowReport| {
                    ran.clients.len() == 1 || row.served_by.first() == Some(&client.name)
                };
                for row in stage.rows.iter().filter(is_own) {
                    let job = self.jobs(at, row)[0];
                    let level = levels.of(at, self.workers(at, row, Some(number)));
                    let record = FioRecord {
                        whose: FioWhose::Client(number),
                        // What the clients' processes used is told of all of them together.
                        cpu: FioCpu::default(),
                        depths: depths(job, level),
                        ..record(job, stage, row, 0)
                    };
                    records.add(record, self.lowered.stages[at].verifies);
                }
            }
        }
        if announced_count(self.file) * ran.clients.len() < 2 {
            return records.finish();
        }
        for (at, stage) in self.results(ran.all) {
            for row in &stage.rows {
                let jobs = self.jobs(at, row);
                let mut names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
                names.dedup();
                let level = levels.of(at, self.workers(at, row, None));
                let record = FioRecord {
                    name: "All clients".to_owned(),
                    whose: FioWhose::All,
                    description: Some(names.join("+")),
                    options: Vec::new(),
                    depth: 0,
                    depths: depths(jobs[0], level),
                    ..record(jobs[0], stage, row, 0)
                };
                records.add(record, self.lowered.stages[at].verifies);
            }
        }
        records.finish()
    }

    /// Returns the jobs of the job file that a row of a stage is of.
    fn jobs(&self, stage: usize, row: &RowReport) -> Vec<&'a Job> {
        let jobs = &self.lowered.stages[stage].jobs;
        row.jobs.iter().map(|job| &self.file.jobs[jobs[*job]]).collect()
    }

    /// Returns the logs that jobs ask for, empty.
    pub fn logs(&self) -> Vec<CloneLogs> {
        let mut logs = Vec::new();
        let clients = self.by_clients.map_or(&[][..], |ran| ran.clients);
        for (at, stage) in self.results(self.report) {
            let Some(bounds) = stage.rows.first().map(|row| &row.analysis) else { continue };
            let mut worker = 0;
            // How many clones of each job have had theirs.
            let mut numbers: HashMap<usize, u32> = HashMap::new();
            let planned = self.lowered.workload.work_stages().nth(at);
            let clones = planned.into_iter().flat_map(|stage| &stage.jobs).map(|job| job.workers);
            for (clones, index) in clones.zip(&self.lowered.stages[at].jobs) {
                // Clients have equal shares, one after the other.
                let each = (clones / clients.len().max(1) as u32).max(1);
                let before = numbers.entry(*index).or_default();
                let of_clone = |clone: u32| CloneLogs {
                    stage: StageId(at as u8),
                    worker: WorkerId(worker + clone),
                    started: bounds.started,
                    ended: bounds.ended,
                    files: log_files(
                        &self.file.jobs[*index],
                        *before + clone % each + 1,
                        clients.get((clone / each) as usize),
                    ),
                };
                logs.extend((0..clones).map(of_clone).filter(|logs| !logs.files.is_empty()));
                *before += each;
                worker += clones;
            }
        }
        logs
    }
}

/// The logs of one clone of a job, each in a file of its own as fio does.
#[derive(Debug)]
pub struct CloneLogs {
    stage: StageId,
    worker: WorkerId,
    started: Moment,
    ended: Moment,
    files: Vec<LogFile>,
}

#[derive(Debug)]
struct LogFile {
    name: String,
    log: FioLog,
    text: String,
}

impl CloneLogs {
    /// Takes an operation of the run; those of others are passed over.
    pub fn add(&mut self, op: &OpRecord) {
        let is_block = matches!(op.kind, OpKind::Read | OpKind::Write);
        if (op.stage, op.worker) != (self.stage, self.worker) || !is_block || !op.outcome.is_ok() {
            return;
        }
        let entry = FioLogOp {
            ended_ms: self.ms(op.end),
            write: op.kind == OpKind::Write,
            bytes: op.bytes,
            ns: op.service_time().as_nanos() as u64,
        };
        self.files.iter_mut().for_each(|file| file.log.add(&entry, &mut file.text));
    }

    /// Returns the name of each file, and what is written to it.
    pub fn finish(self) -> impl Iterator<Item = (String, String)> {
        let ended_ms = self.ms(self.ended);
        self.files.into_iter().map(move |LogFile { name, log, mut text }| {
            log.finish(ended_ms, &mut text);
            (name, text)
        })
    }

    fn ms(&self, at: Moment) -> u64 {
        at.as_ns().saturating_sub(self.started.as_ns()) / 1_000_000
    }
}

fn log_files(job: &Job, number: u32, client: Option<&Client>) -> Vec<LogFile> {
    let logs = &job.reporting.logs;
    let window = logs.average.and_then(|average| NonZeroU64::new(average.as_millis() as u64));
    let kinds = [
        (&logs.bw, "bw", FioLogKind::Throughput),
        (&logs.iops, "iops", FioLogKind::Iops),
        (&logs.lat, "lat", FioLogKind::Time),
        (&logs.lat, "clat", FioLogKind::Time),
    ];
    let file = |(prefix, name, kind): (&Option<String>, &str, FioLogKind)| {
        // As fio calls those that its clients hand in.
        let of_client = client.map(|client| format!(".{}", client.name)).unwrap_or_default();
        let name = format!("{}_{name}.{number}.log{of_client}", prefix.as_ref()?);
        Some(LogFile { name, log: FioLog::new(kind, window), text: String::new() })
    };
    kinds.into_iter().filter_map(file).collect()
}

/// Returns how many rows fio has of a job file that one machine runs: one for each group that asks
/// for it, and one for each other clone.
fn announced_count(file: &JobFile) -> usize {
    let (grouped, single): (Vec<&Job>, Vec<&Job>) =
        file.jobs.iter().partition(|job| job.flow.group_reporting);
    let groups: HashSet<u32> = grouped.iter().map(|job| job.flow.group).collect();
    groups.len() + single.iter().map(|job| job.flow.numjobs as usize).sum::<usize>()
}

fn section(job: &Job) -> FioSection {
    let span = |blocks: &Blocks| (blocks.size_bytes_min(), blocks.size_bytes_max());
    let (read, write) = (span(&job.pattern.blocks.read), span(&job.pattern.blocks.write));
    FioSection {
        name: job.name.clone(),
        group: job.flow.group,
        clones: job.flow.numjobs,
        rw: job.pattern.rw_name().to_owned(),
        block_bytes: [read, write, write],
        engine: job.queue.engine_written.clone().unwrap_or_else(|| "psync".to_owned()),
        depth: job.queue.iodepth,
    }
}

fn record<'a>(job: &'a Job, stage: &StageReport, row: &'a RowReport, pid: u32) -> FioRecord<'a> {
    let figures = &row.analysis;
    let of = |kind: OpKind| figures.kinds.iter().find(|of| of.kind == kind);
    let reporting = &job.reporting;
    let failed_count = figures.total.stage.failed.count();
    // The first failure of a stage is that of a row in which there is one.
    let error = stage.errors.first().filter(|_| failed_count > 0);
    FioRecord {
        name: job.name.clone(),
        whose: FioWhose::Alone,
        group: job.flow.group,
        clones: row.worker.map_or(figures.workers_count, |_| 1),
        description: job.description.clone(),
        options: job.options.clone(),
        pid,
        error: error.map_or(0, errno_of),
        errors_count: failed_count,
        elapsed_s: figures.ended.as_ns().div_ceil(1_000_000_000),
        job_runtime_ms: whole_ms(figures.worker_took_sum),
        read: direction(of(OpKind::Read), figures),
        write: direction(of(OpKind::Write), figures),
        sync: of(OpKind::Sync).and_then(|kind| kind.figures.service().histogram.as_deref()),
        cpu: cpu(stage, figures),
        depth: job.queue.depth(),
        depths: FioDepths::default(),
        percentiles: reporting.percentiles.clone(),
        percentiles_of: FioPercentilesOf {
            slat: reporting.slat_percentiles,
            clat: reporting.clat_percentiles,
            lat: reporting.lat_percentiles,
        },
    }
}

/// Returns how full the queue was, and what is known of calls: where the engine waits for each
/// operation, one call hands over one and completes it.
fn depths(job: &Job, level: Option<[u64; 7]>) -> FioDepths {
    let waits = !matches!(job.queue.engine, Engine::IoUring | Engine::Libaio | Engine::Null);
    let calls = level.filter(|_| waits).map(|level| [0, level.iter().sum(), 0, 0, 0, 0, 0]);
    FioDepths { level, submit: calls, complete: calls }
}

/// Returns what the whole program used in a stage, as parts of the clones' time.
fn cpu(stage: &StageReport, figures: &RowAnalysis) -> FioCpu {
    let usage = stage.usage.unwrap_or_default();
    let time = figures.worker_took_sum.as_nanos() as f64;
    let percent =
        |used: Duration| if time > 0.0 { used.as_nanos() as f64 / time * 100.0 } else { 0.0 };
    FioCpu {
        user_percent: percent(usage.user),
        system_percent: percent(usage.system),
        context_switches: usage.context_switches,
        major_faults: usage.faults_major,
        minor_faults: usage.faults_minor,
    }
}

/// Returns a time in milliseconds, rounded up as fio does it: what took any time took one.
fn whole_ms(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000) as u64
}

fn direction<'a>(kind: Option<&'a KindAnalysis>, row: &'a RowAnalysis) -> FioDirection<'a> {
    let Some(kind) = kind else { return FioDirection::default() };
    let details = row.details.iter().flat_map(|details| &details.kinds);
    let series = details.filter(|of| of.kind == kind.kind).flat_map(|of| &of.series);
    let windows: Vec<_> = series.filter(|window| window.length >= RATE_WINDOW).collect();
    let per_second = |count: f64, window: Duration| count / window.as_secs_f64();
    let bytes = windows.iter().map(|window| per_second(window.bytes as f64, window.length));
    let ops = windows.iter().map(|window| per_second(window.ended as f64, window.length));
    let (kind, failed) = (&kind.figures, &kind.figures.stage.failed);
    FioDirection {
        bytes: kind.stage.bytes,
        runtime_ms: whole_ms(row.took().unwrap_or_default()),
        ops: kind.stage.ops_ok,
        short_ops: failed.of(ErrorClass::Truncated),
        dropped_ops: 0,
        slat: None,
        clat: kind.service().histogram.as_deref().map(Cow::Borrowed),
        lat: kind.latency.histogram.as_deref().map(Cow::Borrowed),
        bw_kib_per_sec: bytes.map(|bytes| bytes / 1024.0).collect(),
        iops: ops.collect(),
    }
}

/// Returns the system's number of a failure.
fn errno_of(error: &ErrorSample) -> i32 {
    match error.class {
        ErrorClass::Corrupt => EILSEQ,
        _ => error.status.map_or(EIO, i32::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_failure_is_not_read_out_of_its_sentence() {
        let error = |class, status, message: &str| ErrorSample {
            class,
            kind: OpKind::Write,
            endpoint: None,
            status,
            message: message.to_owned(),
        };
        // Whatever the sentence says, in whatever words.
        assert_eq!(errno_of(&error(ErrorClass::Io, Some(28), "no room")), 28);
        assert_eq!(errno_of(&error(ErrorClass::Io, Some(28), "io (5): no room")), 28);
        assert_eq!(errno_of(&error(ErrorClass::Io, None, "x (9): y")), 5);
        assert_eq!(errno_of(&error(ErrorClass::Corrupt, Some(5), "older version")), 84);
    }
}
