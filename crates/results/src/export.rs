//! A run's operations in another format.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

use plimsoll_analysis::OpSource;
use plimsoll_model::{Moment, OpRecord, WallTime};
use plimsoll_record::schema::{Manifest, MergedRun, RecordedWorkload, StageJob};
use plimsoll_report::format::inert_cell;
use plimsoll_workload::plan::WorkloadFile;
use plimsoll_workload::plan::spec::SetSpec;
use plimsoll_workload::{KeyLayout, Keys};
use serde::Serialize;

use crate::error::ExportError;
use crate::export_openmetrics;
use crate::open::Record;
use crate::raw_file::{Around, RawFile};
use crate::report::typed_again;

/// A format to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// warp's raw file.
    Warp,
    /// Comma separated values.
    Csv,
    /// A JSON object a line.
    Jsonl,
    /// OpenMetrics with times: not operations, but what was counted of them second by second.
    OpenMetrics,
}

/// The operations of a run of ours, as they are handed on.
pub struct Export<'a> {
    record: &'a Record,
    manifest: &'a Manifest,
    naming: Naming,
}

impl<'a> Export<'a> {
    /// Returns those of a record; `None` where another tool made it.
    pub fn of(record: &'a Record) -> Option<Self> {
        let manifest = record.manifest()?;
        Some(Self { record, manifest, naming: Naming::of(manifest) })
    }

    pub(crate) fn record(&self) -> &'a Record {
        self.record
    }

    pub(crate) fn manifest(&self) -> &'a Manifest {
        self.manifest
    }

    pub(crate) fn naming(&self) -> &Naming {
        &self.naming
    }

    /// Writes every operation, and returns the highest number of a worker.
    pub fn write(&self, format: ExportFormat, to: Box<dyn Write + '_>) -> Result<u32, ExportError> {
        match format {
            ExportFormat::Warp => self.warp(to),
            ExportFormat::Csv => self.rows(Lines::Csv(Box::new(csv::Writer::from_writer(to)))),
            ExportFormat::Jsonl => self.rows(Lines::Json(BufWriter::new(to))),
            ExportFormat::OpenMetrics => export_openmetrics::write(self.record, self.manifest, to),
        }
    }

    fn warp(&self, to: Box<dyn Write + '_>) -> Result<u32, ExportError> {
        let Self { record, manifest, naming } = self;
        let seen = record.as_warp()?;
        let mut file = RawFile::new(to)?;
        let mut key = String::new();
        for (at, op) in seen.ops.iter().enumerate() {
            naming.write(manifest, op, &mut key);
            let worker = seen.workers[op.worker.0 as usize];
            let around = Around {
                thread: worker.thread,
                client_id: &seen.clients[usize::from(worker.client)],
                endpoint: seen.endpoints.get(usize::from(op.endpoint.0)).map_or("", |name| name),
                file: &key,
                error: seen.error_texts.get(&at).map_or("", |text| text),
            };
            file.row(op, &around)?;
        }
        Ok(file.finish(&[typed_again(&manifest.command_line)])?)
    }

    fn rows(&self, mut lines: Lines<'_>) -> Result<u32, ExportError> {
        let Self { record, manifest, naming } = self;
        let (mut key, mut written, mut worker_max) = (String::new(), Ok(()), 0);
        record.source.scan(&mut |op| {
            if written.is_ok() {
                naming.write(manifest, op, &mut key);
                worker_max = worker_max.max(op.worker.0);
                written = lines.write(&line(record, manifest, op, &key));
            }
        })?;
        written?;
        lines.flush()?;
        Ok(worker_max)
    }
}

/// Tells whether each worker has keys of its own; `None` where the run writes no objects, or where
/// several sets of them differ in it.
fn per_worker(workload: &WorkloadFile) -> Option<bool> {
    let mut layouts = workload.sets.iter().filter_map(|(_, set)| match set {
        SetSpec::Objects(set) => Some(set.keys.per_worker),
        _ => None,
    });
    let first = layouts.next()?;
    layouts.all(|other| other == first).then_some(first)
}

/// Whose keys the object ids of a run stand for.
pub(crate) struct Naming {
    /// The first owner of each part, and the keys of its objects if the run itself wrote them.
    parts: Vec<(u32, Option<Keys>)>,
}

impl Naming {
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let keys = |workload: &RecordedWorkload, prefix: &Option<String>, seed: Option<u64>| {
            let per_worker = per_worker(workload.file()?)?;
            let layout = KeyLayout { base: prefix.clone()?, per_worker };
            Some(Keys::Generated { layout, seed: seed? })
        };
        let whole = &manifest.workload;
        let parts = if manifest.merged.is_empty() {
            vec![(0, keys(whole, &manifest.target.prefix, Some(manifest.seed)))]
        } else {
            let of_run = |run: &MergedRun| {
                let workload = run.workload.as_ref().unwrap_or(whole);
                (run.worker_index_first, keys(workload, &run.prefix, run.seed))
            };
            manifest.merged.iter().map(of_run).collect()
        };
        Self { parts }
    }

    /// Returns the key of the object an operation was about, or its number where the key is not in
    /// the record.
    pub(crate) fn write(&self, manifest: &Manifest, op: &OpRecord, key: &mut String) {
        key.clear();
        let Some(object) = op.object else { return };
        let after = self.parts.partition_point(|(first, _)| *first <= op.worker.0);
        let part = after.checked_sub(1).and_then(|at| self.parts.get(at));
        let (first, keys) = part.map_or((0, None), |(first, keys)| (*first, keys.as_ref()));
        // A file has no key.
        let keys = keys.filter(|_| job(manifest, op).is_none_or(|job| !job.is_on_files));
        match (keys, object.owner().0.checked_sub(first)) {
            (Some(keys), Some(owner)) => {
                let owner = plimsoll_model::WorkerId(owner);
                keys.write(plimsoll_model::ObjectId::new(owner, object.number()), key);
            }
            _ => *key = format!("object/{}/{}", object.owner().0, object.number()),
        }
    }
}

/// One operation, as a line of CSV or JSON.
#[derive(Serialize)]
struct Line<'a> {
    stage: Cow<'a, str>,
    /// Stages may share a name.
    stage_index: u8,
    iteration_index: u32,
    job: Cow<'a, str>,
    worker: u32,
    client: Option<Cow<'a, str>>,
    kind: &'a str,
    endpoint: Option<Cow<'a, str>>,
    key: Option<Cow<'a, str>>,
    objects_count: u32,
    bytes: Option<u64>,
    start: String,
    intended_ns: u64,
    start_ns: u64,
    assigned_ns: Option<u64>,
    last_byte_sent_ns: Option<u64>,
    first_byte_ns: Option<u64>,
    end_ns: u64,
    latency_ns: u64,
    ttfb_ns: Option<u64>,
    outcome: &'a str,
    attempts: u8,
    /// Whether the report counts it: it was due outside of ramps.
    measured: bool,
}

impl Line<'_> {
    /// Returns it with texts that no spreadsheet takes for formulas; numbers stay as they are.
    fn inert(&self) -> Line<'_> {
        fn text<'t>(text: &'t Option<Cow<'_, str>>) -> Option<Cow<'t, str>> {
            text.as_deref().map(inert_cell)
        }
        Line {
            stage: inert_cell(&self.stage),
            job: inert_cell(&self.job),
            client: text(&self.client),
            endpoint: text(&self.endpoint),
            key: text(&self.key),
            start: self.start.clone(),
            ..*self
        }
    }
}

/// Where lines go, and in which form.
enum Lines<'w> {
    Csv(Box<csv::Writer<Box<dyn Write + 'w>>>),
    Json(BufWriter<Box<dyn Write + 'w>>),
}

impl Lines<'_> {
    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        match self {
            Self::Csv(to) => to.serialize(line.inert()).map_err(of_system)?,
            Self::Json(to) => {
                serde_json::to_writer(&mut *to, line)?;
                to.write_all(b"\n")?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Csv(to) => to.flush()?,
            Self::Json(to) => to.flush()?,
        }
        Ok(())
    }
}

/// Returns what the system said of a write, which decides whether it is an error at all.
fn of_system(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

/// Returns the job that an operation is of.
fn job<'m>(manifest: &'m Manifest, op: &OpRecord) -> Option<&'m StageJob> {
    manifest.stages.get(usize::from(op.stage.0))?.jobs.get(usize::from(op.job.0))
}

fn line<'a>(record: &'a Record, manifest: &'a Manifest, op: &OpRecord, key: &'a str) -> Line<'a> {
    let stage = manifest.stages.get(usize::from(op.stage.0));
    let job = job(manifest, op);
    let client = record.client_of.get(op.worker.0 as usize);
    let client = client.and_then(|client| record.clients.get(usize::from(*client)));
    let endpoint = record.endpoints.get(usize::from(op.endpoint.0));
    Line {
        stage: stage.map_or("", |stage| &stage.name).into(),
        stage_index: op.stage.0,
        iteration_index: stage.map_or(0, |stage| stage.iteration),
        job: job.map_or("", |job| &job.name).into(),
        worker: op.worker.0,
        client: client.map(|name| name.as_str().into()),
        kind: op.kind.name(),
        endpoint: endpoint.map(|name| name.as_str().into()),
        key: Some(key).filter(|key| !key.is_empty()).map(Cow::from),
        objects_count: op.objects_count,
        bytes: (op.kind.moves_bytes() || op.bytes > 0).then_some(op.bytes),
        start: WallTime::from_unix_ns(manifest.started_unix_ns + op.start.as_ns()).to_string(),
        intended_ns: op.intended.as_ns(),
        start_ns: op.start.as_ns(),
        assigned_ns: op.assigned.map(Moment::as_ns),
        last_byte_sent_ns: op.last_byte_sent.map(Moment::as_ns),
        first_byte_ns: op.first_byte.map(Moment::as_ns),
        end_ns: op.end.as_ns(),
        latency_ns: op.latency().as_nanos() as u64,
        ttfb_ns: op.ttfb().map(|ttfb| ttfb.as_nanos() as u64),
        outcome: op.outcome.name(),
        attempts: op.attempts,
        measured: op.is_measured,
    }
}
