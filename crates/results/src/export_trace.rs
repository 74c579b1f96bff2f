//! A run's operations as a trace for Chrome and Perfetto.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use plimsoll_analysis::OpSource;
use plimsoll_foreign::chrome_trace::{Slice, Writer};
use plimsoll_model::{EndpointId, Moment, OpKind, OpRecord, WorkerId};
use serde::Serialize;

use crate::error::ExportError;
use crate::error::{AskedFor, ResultsError};
use crate::export::Export;
use crate::open::RecordStage;

/// The process whose track holds the stages; the processes after it are the addresses.
const STAGES_PID: u32 = 1;
/// The process of the first address.
const ENDPOINT_PID_FIRST: u32 = 2;
/// The first track of stages; those after the last one hold operations.
const STAGES_TID: u32 = 1;

/// What of a run goes into a trace.
#[derive(Clone, Debug)]
pub struct TraceAsked {
    /// Only this stage; none: what was measured.
    pub stage: Option<String>,
    /// Only this kind.
    pub kind: Option<OpKind>,
    /// Only what went to this address.
    pub host: Option<String>,
    /// From when on after the beginning of each stage.
    pub skip: Duration,
    /// For how long from there.
    pub dur: Option<Duration>,
    /// How many operations are left out at the beginning, in the order of the record.
    pub offset: u64,
    /// How many operations at most.
    pub limit: u64,
}

/// How much of a run a trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TraceWritten {
    /// Operations in the trace.
    #[serde(rename = "operations_count")]
    pub ops: u64,
    /// Operations of those stages.
    #[serde(rename = "operations_of_stages_count")]
    pub of: u64,
    /// Operations that the limit alone kept out.
    #[serde(rename = "operations_beyond_limit_count")]
    pub beyond_limit: u64,
}

/// A trace that is to be written.
pub struct Trace<'a> {
    export: &'a Export<'a>,
    asked: &'a TraceAsked,
    endpoint: Option<EndpointId>,
    /// By the number of each stage, from when to when an operation of it is to begin.
    windows: Vec<Option<(Moment, Moment)>>,
}

/// A track, and when the last slice on it ended.
#[derive(Clone, Copy)]
struct Lane {
    tid: u32,
    end: Moment,
}

/// The tracks of all workers at all addresses.
struct Lanes {
    by_worker: HashMap<(EndpointId, WorkerId), Vec<Lane>>,
    /// The next track's number.
    tid: u32,
}

impl Lanes {
    /// Returns the track for an operation, and which of its worker's at that address it is where it
    /// is new. Operations of a worker that overlap, as in an open loop, have tracks of their own.
    fn place(&mut self, op: &OpRecord) -> (u32, Option<usize>) {
        let lanes = self.by_worker.entry((op.endpoint, op.worker)).or_default();
        let free = lanes.iter_mut().filter(|lane| lane.end <= op.start);
        if let Some(lane) = free.max_by_key(|lane| lane.end) {
            lane.end = op.end;
            return (lane.tid, None);
        }
        let tid = self.tid;
        self.tid += 1;
        lanes.push(Lane { tid, end: op.end });
        (tid, Some(lanes.len()))
    }
}

/// What is known of an operation beside its times.
#[derive(Serialize)]
struct Args<'a> {
    stage: &'a str,
    job: &'a str,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    objects_count: u32,
    attempts: u8,
    latency_ns: u64,
    schedule_delay_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttfb_ns: Option<u64>,
}

#[derive(Serialize)]
struct StageArgs {
    workers_count: u32,
}

#[derive(Serialize)]
struct Nothing {}

/// What is known of the whole trace.
#[derive(Serialize)]
struct About<'a> {
    run_id: &'a str,
    started_at: &'a str,
    clock: &'a str,
    #[serde(flatten)]
    written: TraceWritten,
}

impl<'a> Export<'a> {
    /// Returns the trace of what is asked for, if the run has it.
    pub fn trace(&'a self, asked: &'a TraceAsked) -> Result<Trace<'a>, ResultsError> {
        let record = self.record();
        let endpoint = asked.host.as_deref().map(|host| record.endpoint(host)).transpose()?;
        let is_asked = |stage: &RecordStage| match &asked.stage {
            None => record.is_result(stage),
            Some(name) => {
                [&stage.name, &stage.title].iter().any(|of| of.eq_ignore_ascii_case(name))
            }
        };
        let mut windows = Vec::new();
        for stage in record.stages.iter().filter(|stage| is_asked(stage)) {
            // Bound: stages of the record, 256 at most.
            windows.resize(windows.len().max(stage.index + 1), None);
            let from = stage.started.after(asked.skip);
            let until = asked.dur.map_or(Moment::from_ns(u64::MAX), |dur| from.after(dur));
            let from = if asked.skip.is_zero() { Moment::from_ns(0) } else { from };
            windows[stage.index] = Some((from, until));
        }
        if windows.is_empty() {
            let titles: Vec<&str> = record.stages.iter().map(|stage| &*stage.title).collect();
            return Err(record.has_not(AskedFor::Stage, &titles.join(", ")));
        }
        Ok(Trace { export: self, asked, endpoint, windows })
    }
}

impl Trace<'_> {
    /// Writes it: a process for each address, in it a track for each worker, on it a slice for each
    /// operation from start to end, in that one for the time to first byte.
    pub fn write(&self, to: Box<dyn Write + '_>) -> Result<TraceWritten, ExportError> {
        let (record, manifest) = (self.export.record(), self.export.manifest());
        let mut writer = Writer::begin(BufWriter::new(to))?;
        let tid = self.begin(&mut writer)?;
        let (mut lanes, mut key) = (Lanes { by_worker: HashMap::new(), tid }, String::new());
        let (mut written, mut failed, mut seen) = (TraceWritten::default(), Ok(()), 0u64);
        record.source.scan(&mut |op| {
            let Some(Some((from, until))) = self.windows.get(usize::from(op.stage.0)) else {
                return;
            };
            written.of += 1;
            if !(*from..*until).contains(&op.start) || !self.is_asked(op) {
                return;
            }
            seen += 1;
            if seen <= self.asked.offset {
                return;
            }
            if written.ops >= self.asked.limit {
                written.beyond_limit += 1;
                return;
            }
            if failed.is_ok() {
                written.ops += 1;
                failed = self.operation(&mut writer, &mut lanes, op, &mut key);
            }
        })?;
        failed?;
        writer.finish(&About {
            run_id: &manifest.run_id,
            started_at: &manifest.started_at,
            clock: "microseconds since started_at",
            written,
        })?;
        Ok(written)
    }

    fn is_asked(&self, op: &OpRecord) -> bool {
        let is_kind = self.asked.kind.is_none_or(|kind| kind == op.kind);
        is_kind && self.endpoint.is_none_or(|endpoint| endpoint == op.endpoint)
    }

    /// Names the processes, and shows the stages. Returns the number of the next track.
    fn begin<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<u32> {
        let record = self.export.record();
        writer.process(STAGES_PID, "stages")?;
        for (name, pid) in record.endpoints.iter().zip(ENDPOINT_PID_FIRST..) {
            writer.process(pid, name)?;
        }
        // When the last stage of each track ended: stages of merged runs overlap.
        let mut tracks: Vec<Moment> = Vec::new();
        for stage in &record.stages {
            let free = tracks.iter().position(|end| *end <= stage.started);
            let place = free.unwrap_or(tracks.len());
            let tid = STAGES_TID + place as u32;
            match free {
                Some(place) => tracks[place] = stage.ended,
                None => {
                    writer.track(STAGES_PID, tid, "stages", place as u32)?;
                    tracks.push(stage.ended);
                }
            }
            writer.slice(&Slice {
                name: &stage.title,
                cat: "stage",
                pid: STAGES_PID,
                tid,
                start_ns: stage.started.as_ns(),
                length_ns: stage.ended.since(stage.started).as_nanos() as u64,
                args: StageArgs { workers_count: stage.workers },
            })?;
        }
        Ok(STAGES_TID + tracks.len() as u32)
    }

    fn operation<W: Write>(
        &self,
        writer: &mut Writer<W>,
        lanes: &mut Lanes,
        op: &OpRecord,
        key: &mut String,
    ) -> io::Result<()> {
        let manifest = self.export.manifest();
        let pid = ENDPOINT_PID_FIRST + u32::from(op.endpoint.0);
        let (tid, new) = lanes.place(op);
        if let Some(number) = new {
            writer.track(pid, tid, &self.track_name(op, number), op.worker.0)?;
        }
        self.export.naming().write(manifest, op, key);
        let stage = manifest.stages.get(usize::from(op.stage.0));
        let job = stage.and_then(|stage| stage.jobs.get(usize::from(op.job.0)));
        let name = match op.outcome.is_ok() {
            true => Cow::from(op.kind.name()),
            false => Cow::from(format!("{} {}", op.kind.name(), op.outcome.name())),
        };
        let ns = |time: Duration| time.as_nanos() as u64;
        writer.slice(&Slice {
            name: &name,
            cat: op.kind.name(),
            pid,
            tid,
            start_ns: op.start.as_ns(),
            length_ns: ns(op.service_time()),
            args: Args {
                stage: self.export.record().stage_title(op.stage),
                job: job.map_or("", |job| &job.name),
                outcome: op.outcome.name(),
                key: Some(key.as_str()).filter(|key| !key.is_empty()),
                bytes: (op.kind.moves_bytes() || op.bytes > 0).then_some(op.bytes),
                objects_count: op.objects_count,
                attempts: op.attempts,
                latency_ns: ns(op.latency()),
                schedule_delay_ns: ns(op.start.since(op.intended)),
                ttfb_ns: op.ttfb().map(ns),
            },
        })?;
        self.first_byte(writer, op, pid, tid)
    }

    /// Shows the time to first byte within the slice of its operation.
    fn first_byte<W: Write>(
        &self,
        writer: &mut Writer<W>,
        op: &OpRecord,
        pid: u32,
        tid: u32,
    ) -> io::Result<()> {
        let Some(ttfb) = op.ttfb().filter(|ttfb| !ttfb.is_zero()) else { return Ok(()) };
        writer.slice(&Slice {
            name: "TTFB",
            cat: "ttfb",
            pid,
            tid,
            start_ns: op.last_byte_sent.unwrap_or(op.start).as_ns(),
            length_ns: ttfb.as_nanos() as u64,
            args: Nothing {},
        })
    }

    /// Returns what the number-th track of a worker is called.
    fn track_name(&self, op: &OpRecord, number: usize) -> String {
        let record = self.export.record();
        let of_stage = record.agent_of.get(usize::from(op.stage.0)).unwrap_or(&record.client_of);
        let client = of_stage.get(op.worker.0 as usize);
        let client = client.and_then(|client| record.clients.get(usize::from(*client)));
        let client = client.map(|client| format!(" of {client}")).unwrap_or_default();
        let more = if number > 1 { format!(", {number} at once") } else { String::new() };
        format!("worker {}{client}{more}", op.worker.0)
    }
}
