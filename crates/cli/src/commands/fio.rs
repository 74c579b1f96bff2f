//! fio's job files: `plimsoll run JOB.fio` with our report, `plimsoll as fio` with fio's.
#![expect(clippy::disallowed_methods, reason = "cli reads and writes the files it is given")]

use std::fs;
use std::num::NonZeroU64;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use plimsoll_analysis::{KindAnalysis, OpSource, RowAnalysis};
use plimsoll_conduct::{Consent, Recording, RunTime, StandIn, input, machine};
use plimsoll_dialects::fio::{self, Host, Job, JobFile, Lowered, Options, OutputFormat, Units};
use plimsoll_driver_file::facts::{is_device, size_bytes};
use plimsoll_model::{ErrorClass, OpKind, StageId};
use plimsoll_report::ErrorSample;
use plimsoll_report::fio::{
    self as layout, FioCpu, FioDepths, FioDirection, FioLog, FioLogKind, FioLogOp,
    FioPercentilesOf, FioRecord, FioRun, FioSection,
};
use plimsoll_results::{AnalyzedStage, Asked, Record, ResultsError, Rows, Source, first_errors};
use plimsoll_workload::plan::WorkloadFile;

use crate::args::DESTROYS;
use crate::args::OutputArgs;
use crate::args::file::{FileConductArgs, FioArgs, JobFileArgs};
use crate::conducted::{self, fresh_seed};
use crate::environment;
use crate::lower_files::as_plan;
use crate::ui::Ui;

/// The windows that fio takes its rates over.
const RATE_WINDOW: Duration = Duration::from_millis(500);

/// Tells whether a text is a job file: the first line that says anything is a section.
pub(crate) fn is_job_file(text: &str) -> bool {
    let says = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']);
    text.lines().map(str::trim).find(says).is_some_and(|line| line.starts_with('['))
}

/// How a job file is run.
pub(crate) struct Settings<'a> {
    pub(crate) reading: &'a JobFileArgs,
    pub(crate) conduct: &'a FileConductArgs,
    pub(crate) output: &'a OutputArgs,
    /// What stands in for the files.
    pub(crate) stand_in: StandIn,
    pub(crate) keeps_data: bool,
    pub(crate) consent: Consent,
    pub(crate) seed: Option<u64>,
    pub(crate) explain: bool,
    /// Whether the file is only judged.
    pub(crate) check: bool,
}

/// Runs a job file and prints our report.
pub(crate) fn run(path: &Path, text: &str, settings: &Settings<'_>) -> Result<ExitCode> {
    let name = path.display().to_string();
    let read = |path: &str| read_included(path, &name);
    let file = fio::parse(text, &name, &options(settings.reading, &read))?;
    let lowered = lower(&file, settings)?;
    let workload = as_plan(&lowered.spec).map_err(|error| anyhow!("{name}: {error}"))?;
    if settings.explain {
        return explain(&lowered, &workload, settings);
    }
    if settings.check {
        conducted::judge(&workload, &of_files(&lowered, settings))
            .map_err(|error| anyhow!("{name}: {error}"))?;
        Ui::new(&settings.output.print).result(&format!("{name}: sound\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if lowered.null {
        Ui::new(&settings.output.print).note("ioengine=null: no file is touched");
    }
    conducted::run(&workload, &of_files(&lowered, settings))
}

/// Takes fio's command line and prints as fio does.
pub(crate) fn as_fio(args: &FioArgs) -> Result<ExitCode> {
    let read = |path: &str| read_included(path, "");
    let line = fio::from_args(&args.words, &options(&args.reading, &read))?;
    let settings = Settings {
        reading: &args.reading,
        conduct: &args.conduct,
        output: &args.output,
        stand_in: StandIn::Nobody,
        keeps_data: args.keep_data,
        consent: Consent { given: args.reading.i_know_this_destroys_data, flag: DESTROYS },
        seed: None,
        explain: args.explain,
        check: false,
    };
    if line.output.parse_only {
        return Ok(ExitCode::SUCCESS);
    }
    let lowered = lower(&line.file, &settings)?;
    let workload = as_plan(&lowered.spec)?;
    if settings.explain {
        return explain(&lowered, &workload, &settings);
    }
    let ui = Ui::new(&settings.output.print);
    lowered.notes.iter().for_each(|note| ui.note(&note.to_string()));
    let by_clone = |stage: usize| {
        let groups = |job: &usize| line.file.jobs[*job].flow.group_reporting;
        let grouped = lowered.stages.get(stage).is_some_and(|stage| stage.jobs.iter().all(groups));
        if grouped { Rows::Jobs } else { Rows::Workers }
    };
    let show = |record: &mut Recording, ui: &Ui| {
        let read = Record::of_run(&record.directory)?;
        let stages = analyzed(&read, by_clone)?;
        let told = Told { ran: record, file: &line.file, lowered: &lowered, stages: &stages };
        let text = render(&told, &line.output.formats);
        match &line.output.path {
            Some(path) => {
                fs::write(path, text).with_context(|| format!("--output: cannot write {path}"))?;
            }
            None => ui.result(&text)?,
        }
        write_logs(record, &read.source, &line.file, &lowered)
    };
    let of_files = of_files(&lowered, &settings);
    conducted::run(&workload, &conducted::Settings { show: Some(&show), ..of_files })
}

/// Returns the figures of a run in rows as `rows` gives them for each stage.
fn analyzed(
    record: &Record,
    rows: impl Fn(usize) -> Rows,
) -> Result<Vec<AnalyzedStage>, ResultsError> {
    let mut stages = Vec::new();
    for of in [Rows::Jobs, Rows::Workers] {
        if (0..record.stages.len()).all(|stage| rows(stage) != of) {
            continue;
        }
        let segment = Some(RATE_WINDOW);
        let asked = Asked { rows: of, distributions: true, segment, ..Asked::default() };
        stages.extend(record.analyze(&asked)?.into_iter().filter(|each| rows(each.stage) == of));
    }
    stages.sort_by_key(|each| each.stage);
    Ok(stages)
}

fn of_files<'a>(lowered: &Lowered, settings: &Settings<'a>) -> conducted::Settings<'a> {
    conducted::Settings {
        files: Some(settings.conduct),
        keeps_data: settings.keeps_data,
        max_error_rate: settings.conduct.max_error_rate.0,
        stand_in: if lowered.null { StandIn::Null } else { settings.stand_in.clone() },
        notes: lowered.notes.iter().map(ToString::to_string).collect(),
        ..conducted::Settings::plain(settings.output, settings.consent)
    }
}

/// Prints what a job file comes to, and what changed on the way.
fn explain(
    lowered: &Lowered,
    workload: &WorkloadFile,
    settings: &Settings<'_>,
) -> Result<ExitCode> {
    let mut text = String::new();
    for note in &lowered.notes {
        text.push_str(&format!("# {note}\n"));
    }
    text.push_str(&workload.to_yaml());
    Ui::new(&settings.output.print).result(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn options<'a>(
    args: &JobFileArgs,
    read: &'a dyn Fn(&str) -> Result<String, String>,
) -> Options<'a> {
    Options {
        units: if args.fio_units { Units::Fio } else { Units::Strict },
        read,
        variable: &environment::variable,
        host: Host {
            cpus_count: machine::cores() as u64,
            memory_mib: machine::memory_bytes() >> 20,
            page_size_bytes: rustix::param::page_size() as u64,
        },
        sections: args.section.clone(),
    }
}

/// Returns the text of a job file or of one that it includes: as given, else beside the including
/// one.
fn read_included(path: &str, beside: &str) -> Result<String, String> {
    let sibling = Path::new(beside).parent().map(|parent| parent.join(path));
    input::read_given(Path::new(path))
        .or_else(|error| sibling.map_or(Err(error), |sibling| input::read_given(&sibling)))
        .map_err(|error| error.to_string())
}

fn lower(file: &JobFile, settings: &Settings<'_>) -> Result<Lowered> {
    let reading = settings.reading;
    let mut file = file.clone();
    if let Some(directory) = &reading.dir {
        let directory = directory.display().to_string();
        file.jobs.iter_mut().for_each(|job| job.files.directories = vec![directory.clone()]);
    }
    let machine = fio::Machine {
        cores: machine::cores() as u32,
        default_directory: ".",
        file_size: &|path| size_bytes(Path::new(path)),
        is_device: &|path| is_device(Path::new(path)),
        destroys: settings.consent.given,
        seed: settings.seed.unwrap_or_else(|| fresh_seed(RunTime::machine().wall_epoch)),
        size_scale: reading.scale.map(|scale| scale.0),
        runtime_scale: reading.scale_time.map(|scale| scale.0),
        clones_max: reading.jobs_max,
    };
    Ok(fio::lower(&file, &machine)?)
}

/// A run with the job file that it comes from.
struct Told<'a> {
    ran: &'a Recording,
    file: &'a JobFile,
    lowered: &'a Lowered,
    stages: &'a [AnalyzedStage],
}

fn render(told: &Told<'_>, formats: &[OutputFormat]) -> String {
    let now = told.ran.time.wall_epoch.as_unix_ns() + told.ran.now().as_ns();
    let time = jiff::Timestamp::from_nanosecond(i128::from(now)).unwrap_or_default();
    let time = time.to_zoned(jiff::tz::TimeZone::system());
    let run = FioRun {
        version: concat!("plimsoll-", env!("CARGO_PKG_VERSION")).to_owned(),
        timestamp_ms: now / 1_000_000,
        time: time.strftime("%a %b %e %H:%M:%S %Y").to_string(),
        global_options: told.file.global_options.clone(),
        sections: told.file.jobs.iter().map(section).collect(),
        records: told.records(),
    };
    let formats = if formats.is_empty() { &[OutputFormat::Normal] } else { formats };
    let one = |format: &OutputFormat| match format {
        OutputFormat::Normal => layout::normal(&run),
        OutputFormat::Terse => layout::terse(&run),
        OutputFormat::Json => layout::json(&run),
        OutputFormat::JsonPlus => layout::json_plus(&run),
    };
    formats.iter().map(one).collect()
}

fn section(job: &Job) -> FioSection {
    let span = |blocks: &fio::Blocks| (blocks.size_bytes_min(), blocks.size_bytes_max());
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

impl<'a> Told<'a> {
    /// Returns a row for each row of each stage that is a result.
    fn records(&self) -> Vec<FioRecord<'a>> {
        let mut records = Vec::new();
        for analyzed in self.stages {
            if self.lowered.spec.stages[analyzed.stage].prepares {
                continue;
            }
            let of_stage = &self.lowered.stages[analyzed.stage];
            for (row, figures) in analyzed.rows.iter().zip(&analyzed.analysis.rows) {
                let job = &self.file.jobs[of_stage.jobs[row.jobs[0]]];
                records.push(self.record(analyzed.stage, job, row.worker, figures));
            }
        }
        records
    }

    fn record(
        &self,
        stage: usize,
        job: &'a Job,
        clone: Option<u32>,
        figures: &'a RowAnalysis,
    ) -> FioRecord<'a> {
        let entry = &self.ran.manifest.stages[stage];
        let ended_ns = entry.ended_ns.unwrap_or_default();
        let failed: u64 = figures.total.stage.failed.count();
        let of = |kind: OpKind| figures.kinds.iter().find(|of| of.kind == kind);
        let depth = job.queue.depth();
        let reporting = &job.reporting;
        FioRecord {
            name: job.name.clone(),
            group: job.flow.group,
            clones: clone.map_or(figures.workers_count, |_| 1),
            description: job.description.clone(),
            options: job.options.clone(),
            pid: rustix::process::getpid().as_raw_nonzero().get() as u32,
            error: self.first_errno(stage),
            errors_count: failed,
            elapsed_s: ended_ns.div_ceil(1_000_000_000),
            job_runtime_ms: whole_ms(figures.worker_took_sum),
            read: direction(of(OpKind::Read), figures),
            write: direction(of(OpKind::Write), figures),
            sync: of(OpKind::Sync).and_then(|kind| kind.figures.service().histogram.as_deref()),
            cpu: self.cpu(stage, figures),
            depth,
            // Not counted here; fio's layout has no word for that but 0.
            depths: FioDepths::default(),
            percentiles: reporting.percentiles.clone(),
            percentiles_of: FioPercentilesOf {
                slat: reporting.slat_percentiles,
                clat: reporting.clat_percentiles,
                lat: reporting.lat_percentiles,
            },
        }
    }

    /// Returns the system's number of the first failure of a stage.
    fn first_errno(&self, stage: usize) -> i32 {
        let entry = &self.ran.manifest.stages[stage];
        let errors = first_errors(&self.ran.manifest, entry);
        errors.first().map_or(0, errno_of)
    }

    /// Returns what the whole program used in a stage, as parts of the clones' time.
    fn cpu(&self, stage: usize, figures: &RowAnalysis) -> FioCpu {
        let entry = &self.ran.manifest.stages[stage];
        let usage = entry.files.as_ref().and_then(|files| files.usage).unwrap_or_default();
        let time = figures.worker_took_sum.as_nanos() as f64;
        let percent = |ns: u64| if time > 0.0 { ns as f64 / time * 100.0 } else { 0.0 };
        FioCpu {
            user_percent: percent(usage.user_ns),
            system_percent: percent(usage.system_ns),
            context_switches: usage.context_switches_count,
            major_faults: usage.faults_major_count,
            minor_faults: usage.faults_minor_count,
        }
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
        clat: kind.service().histogram.as_deref(),
        lat: kind.latency.histogram.as_deref(),
        bw_kib_per_sec: bytes.map(|bytes| bytes / 1024.0).collect(),
        iops: ops.collect(),
    }
}

/// Writes the logs that jobs ask for, each clone's in a file of its own as fio does.
fn write_logs(
    record: &Recording,
    source: &Source,
    file: &JobFile,
    lowered: &Lowered,
) -> Result<()> {
    let asks = |job: &Job| {
        let logs = &job.reporting.logs;
        logs.bw.is_some() || logs.iops.is_some() || logs.lat.is_some()
    };
    if !file.jobs.iter().any(asks) {
        return Ok(());
    }
    for (stage, spec) in lowered.spec.stages.iter().enumerate().filter(|(_, spec)| !spec.prepares) {
        let Some(entry) = record.manifest.stages.get(stage) else { continue };
        let (Some(started), Some(ended)) = (entry.started_ns, entry.ended_ns) else { continue };
        let mut worker = 0;
        for (index, job) in spec.jobs.iter().enumerate() {
            let of = &file.jobs[lowered.stages[stage].jobs[index]];
            if asks(of) {
                let clones = (StageId(stage as u8), worker..worker + job.clones);
                write_job_logs(source, of, clones, (started, ended))?;
            }
            worker += job.clones;
        }
    }
    Ok(())
}

fn write_job_logs(
    source: &Source,
    job: &Job,
    (stage, clones): (StageId, std::ops::Range<u32>),
    (started, ended): (u64, u64),
) -> Result<()> {
    let logs = &job.reporting.logs;
    let window = logs.average.and_then(|average| NonZeroU64::new(average.as_millis() as u64));
    let kinds = [
        (&logs.bw, "bw", FioLogKind::Throughput),
        (&logs.iops, "iops", FioLogKind::Iops),
        (&logs.lat, "lat", FioLogKind::Time),
        (&logs.lat, "clat", FioLogKind::Time),
    ];
    for (number, clone) in (1..).zip(clones) {
        let mut outs: Vec<(String, FioLog, String)> = kinds
            .iter()
            .filter_map(|(prefix, name, kind)| {
                let path = format!("{}_{name}.{number}.log", prefix.as_ref()?);
                Some((path, FioLog::new(*kind, window), String::new()))
            })
            .collect();
        source.scan(&mut |op| {
            let is_block = matches!(op.kind, OpKind::Read | OpKind::Write);
            if op.stage != stage || op.worker.0 != clone || !is_block || !op.outcome.is_ok() {
                return;
            }
            let entry = FioLogOp {
                ended_ms: (op.end.as_ns().saturating_sub(started)) / 1_000_000,
                write: op.kind == OpKind::Write,
                bytes: op.bytes,
                ns: op.service_time().as_nanos() as u64,
            };
            outs.iter_mut().for_each(|(_, log, text)| log.add(&entry, text));
        })?;
        for (path, log, mut text) in outs {
            log.finish((ended - started) / 1_000_000, &mut text);
            fs::write(&path, text).map_err(|error| anyhow!("cannot write {path}: {error}"))?;
        }
    }
    Ok(())
}

/// Returns the system's number of a failure; wrong content is EILSEQ to fio.
fn errno_of(error: &ErrorSample) -> i32 {
    match error.class {
        ErrorClass::Corrupt => rustix::io::Errno::ILSEQ.raw_os_error(),
        _ => error.status.map_or(rustix::io::Errno::IO.raw_os_error(), i32::from),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::OpKind;

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
