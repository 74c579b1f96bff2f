//! `plimsoll export`: a run's operations in another format.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_analysis::OpSource;
use plimsoll_foreign::warp::raw::{RawRow, THREAD_MAX_OF_WARP, Writer};
use plimsoll_model::{Moment, OpRecord, WallTime};
use plimsoll_record::schema::{Manifest, MergedRun, RecordedWorkload};
use plimsoll_report::format::inert_cell;
use plimsoll_results::{Record, typed_again};
use plimsoll_workload::plan::WorkloadFile;
use plimsoll_workload::plan::spec::SetSpec;
use plimsoll_workload::{KeyLayout, Keys};
use serde::Serialize;

use crate::args::{ExportArgs, ExportFormat};
use crate::new_file::Named;
use crate::ui::Ui;

/// Writes every operation.
pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode> {
    let record = Record::open(&args.run)?;
    let Some(manifest) = record.manifest() else {
        bail!("{} is not a run of plimsoll's; export reads run directories", args.run.display());
    };
    let ui = Ui::plain();
    record.losses.iter().for_each(|loss| ui.warn(loss));
    let format = format(args)?;
    let named = Named { flag: "-o", path: &args.output, overwrite: args.overwrite };
    let mut file = match args.output == Path::new("-") {
        true => None,
        false => Some(named.create()?),
    };
    let to: Box<dyn Write + '_> = match &mut file {
        Some(file) => Box::new(file),
        None => Box::new(io::stdout().lock()),
    };
    let naming = Naming::of(manifest);
    let written = match format {
        ExportFormat::Warp => warp(&record, manifest, &naming, to, &ui),
        ExportFormat::Csv => rows(&record, manifest, &naming, to, true),
        ExportFormat::Jsonl => rows(&record, manifest, &naming, to, false),
    };
    match written {
        // A reader that has gone away is no error.
        Err(error) if is_broken_pipe(&error) => return Ok(ExitCode::SUCCESS),
        written => {
            written.with_context(|| format!("-o: cannot write {}", args.output.display()))?;
        }
    }
    file.map_or(Ok(()), |file| named.finish(file))?;
    Ok(ExitCode::SUCCESS)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        let csv = cause.downcast_ref::<csv::Error>().map(csv::Error::kind);
        match (cause.downcast_ref::<io::Error>(), csv) {
            (Some(error), _) | (None, Some(csv::ErrorKind::Io(error))) => Some(error.kind()),
            _ => cause.downcast_ref::<serde_json::Error>()?.io_error_kind(),
        }
    };
    error.chain().any(|cause| kind(cause) == Some(io::ErrorKind::BrokenPipe))
}

fn format(args: &ExportArgs) -> Result<ExportFormat> {
    let name = args.output.file_name().unwrap_or_default().to_string_lossy();
    Ok(match args.format {
        Some(format) => format,
        None if name.ends_with(".csv.zst") => ExportFormat::Warp,
        None if name.ends_with(".csv") => ExportFormat::Csv,
        None if name.ends_with(".jsonl") => ExportFormat::Jsonl,
        None => bail!("-o {name}: end it in .csv.zst, .csv or .jsonl, or choose a --format"),
    })
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
struct Naming {
    /// The first owner of each part, and the keys of its objects if the run itself wrote them.
    parts: Vec<(u32, Option<Keys>)>,
}

impl Naming {
    fn of(manifest: &Manifest) -> Self {
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
    fn write(&self, op: &OpRecord, key: &mut String) {
        key.clear();
        let Some(object) = op.object else { return };
        let after = self.parts.partition_point(|(first, _)| *first <= op.worker.0);
        let part = after.checked_sub(1).and_then(|at| self.parts.get(at));
        let (first, keys) = part.map_or((0, None), |(first, keys)| (*first, keys.as_ref()));
        match (keys, object.owner().0.checked_sub(first)) {
            (Some(keys), Some(owner)) => {
                let owner = plimsoll_model::WorkerId(owner);
                keys.write(plimsoll_model::ObjectId::new(owner, object.number()), key);
            }
            _ => *key = format!("object/{}/{}", object.owner().0, object.number()),
        }
    }
}

fn warp(
    record: &Record,
    manifest: &Manifest,
    naming: &Naming,
    to: Box<dyn Write + '_>,
    ui: &Ui,
) -> Result<()> {
    let seen = record.as_warp()?;
    let mut file = RawFile::new(to)?;
    let mut key = String::new();
    for (at, op) in seen.ops.iter().enumerate() {
        naming.write(op, &mut key);
        let worker = seen.workers[op.worker.0 as usize];
        file.row(&RawRow {
            thread: worker.thread,
            op: op.kind.name(),
            client_id: &seen.clients[usize::from(worker.client)],
            objects: op.objects_count,
            bytes: op.bytes,
            endpoint: seen.endpoints.get(usize::from(op.endpoint.0)).map_or("", |name| name),
            file: &key,
            error: seen.error_texts.get(&at).map_or("", |text| text),
            start_unix_ns: op.start.as_ns(),
            first_byte: op.first_byte.map(Moment::as_ns),
            last_byte: op.last_byte_sent.map(Moment::as_ns),
            end_unix_ns: op.end.as_ns(),
        })?;
    }
    file.finish(&[typed_again(&manifest.command_line)], ui)
}

/// A raw file of warp's that is being written.
pub(crate) struct RawFile<W: Write> {
    writer: Writer<BufWriter<W>>,
    thread_max: u32,
}

impl<W: Write> RawFile<W> {
    pub(crate) fn new(to: W) -> Result<Self> {
        Ok(Self { writer: Writer::new(BufWriter::new(to))?, thread_max: 0 })
    }

    /// Writes one operation. The caller hands them over in the order of their starts.
    pub(crate) fn row(&mut self, row: &RawRow<'_>) -> Result<()> {
        self.thread_max = self.thread_max.max(row.thread);
        Ok(self.writer.row(row)?)
    }

    /// Ends the file with the command lines that made it.
    pub(crate) fn finish(mut self, command_lines: &[String], ui: &Ui) -> Result<()> {
        if self.thread_max > THREAD_MAX_OF_WARP {
            ui.warn(&format!(
                "warp reads worker numbers up to {THREAD_MAX_OF_WARP} only, and there are more"
            ));
        }
        command_lines.iter().try_for_each(|line| self.writer.comment(line))?;
        self.writer.finish()?.flush()?;
        Ok(())
    }
}

/// One operation, as a line of CSV or JSON.
#[derive(Serialize)]
struct Line<'a> {
    stage: Cow<'a, str>,
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
    last_byte_sent_ns: Option<u64>,
    first_byte_ns: Option<u64>,
    end_ns: u64,
    latency_ns: u64,
    ttfb_ns: Option<u64>,
    outcome: &'a str,
    attempts: u8,
}

impl Line<'_> {
    /// Returns it with texts that no spreadsheet takes for formulas; numbers stay as they are.
    fn inert(&self) -> Line<'_> {
        fn text<'t>(text: &'t Option<Cow<'_, str>>) -> Option<Cow<'t, str>> {
            text.as_deref().map(inert_cell)
        }
        Line {
            stage: inert_cell(&self.stage),
            client: text(&self.client),
            endpoint: text(&self.endpoint),
            key: text(&self.key),
            start: self.start.clone(),
            ..*self
        }
    }
}

fn rows(
    record: &Record,
    manifest: &Manifest,
    naming: &Naming,
    to: Box<dyn Write + '_>,
    csv: bool,
) -> Result<()> {
    let mut lines = if csv {
        Lines::Csv(Box::new(csv::Writer::from_writer(to)))
    } else {
        Lines::Json(BufWriter::new(to))
    };
    let (mut key, mut written) = (String::new(), Ok(()));
    record.source.scan(&mut |op| {
        if written.is_ok() {
            naming.write(op, &mut key);
            written = lines.write(&line(record, manifest, op, &key));
        }
    })?;
    written?;
    lines.flush()
}

/// Where lines go, and in which form.
enum Lines<'w> {
    Csv(Box<csv::Writer<Box<dyn Write + 'w>>>),
    Json(BufWriter<Box<dyn Write + 'w>>),
}

impl Lines<'_> {
    fn write(&mut self, line: &Line<'_>) -> Result<()> {
        match self {
            Self::Csv(to) => to.serialize(line.inert())?,
            Self::Json(to) => {
                serde_json::to_writer(&mut *to, line)?;
                to.write_all(b"\n")?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Self::Csv(to) => to.flush()?,
            Self::Json(to) => to.flush()?,
        }
        Ok(())
    }
}

fn line<'a>(record: &'a Record, manifest: &'a Manifest, op: &OpRecord, key: &'a str) -> Line<'a> {
    let stage = manifest.stages.get(usize::from(op.stage.0));
    let client = record.client_of.get(op.worker.0 as usize);
    let client = client.and_then(|client| record.clients.get(usize::from(*client)));
    let endpoint = record.endpoints.get(usize::from(op.endpoint.0));
    Line {
        stage: stage.map_or("", |stage| &stage.name).into(),
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
        last_byte_sent_ns: op.last_byte_sent.map(Moment::as_ns),
        first_byte_ns: op.first_byte.map(Moment::as_ns),
        end_ns: op.end.as_ns(),
        latency_ns: op.latency().as_nanos() as u64,
        ttfb_ns: op.ttfb().map(|ttfb| ttfb.as_nanos() as u64),
        outcome: op.outcome.name(),
        attempts: op.attempts,
    }
}
