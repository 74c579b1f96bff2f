//! A record as warp has it: all operations by their starts, at times of the clock on the wall, and
//! what their numbers stand for.

use std::collections::{BTreeMap, HashSet};

use plimsoll_analysis::OpSource;
use plimsoll_analysis::warp::{self, Recording, WarpAnalysis, WarpQuestion, WarpWorker};
use plimsoll_model::{Moment, OpKind, OpRecord, StageKind};
use plimsoll_record::schema::Manifest;

use crate::error::ReadError;
use crate::open::{Origin, Record, Source};
use crate::warp_file::WarpFile;

/// A record as warp has it. All of it is in memory.
pub struct WarpRecord {
    /// The operations, in the order of a raw file. Moments count from the Unix epoch.
    pub ops: Vec<OpRecord>,
    /// The addresses, by their number.
    pub endpoints: Vec<String>,
    /// The clients, by their number.
    pub clients: Vec<String>,
    /// What each worker's number stands for.
    pub workers: Vec<WarpWorker>,
    /// What the failed operations said, by their place in `ops`.
    pub error_texts: BTreeMap<usize, String>,
    /// How many seconds the times of day in it are ahead of UTC.
    pub utc_offset_seconds: i32,
}

impl Record {
    /// Returns the record as warp has it: what a raw file holds, or what an exported one of this
    /// run would.
    pub fn as_warp(&self) -> Result<WarpRecord, ReadError> {
        self.seen_by_warp(false)
    }

    /// Returns the record as warp sums it up: of a run only what was measured.
    pub fn as_warp_measured(&self) -> Result<WarpRecord, ReadError> {
        self.seen_by_warp(true)
    }

    fn seen_by_warp(&self, only_measured: bool) -> Result<WarpRecord, ReadError> {
        match (&self.origin, &self.source) {
            (Origin::Run { manifest, .. }, source) => {
                self.exported(manifest, source, only_measured)
            }
            (Origin::Warp { end }, Source::Warp(file)) => {
                let utc_offset_seconds = end.utc_offset_seconds.unwrap_or_default();
                Ok(WarpRecord { utc_offset_seconds, ..read(file, end.rows as usize)? })
            }
            (Origin::Warp { .. }, Source::Log(_)) => unreachable!("warp writes no op log"),
        }
    }

    fn exported(
        &self,
        manifest: &Manifest,
        source: &Source,
        only_measured: bool,
    ) -> Result<WarpRecord, ReadError> {
        let at = |moment: Moment| Moment::from_ns(manifest.started_unix_ns + moment.as_ns());
        let mut ops = Vec::new();
        source.scan(&mut |op| {
            ops.push(OpRecord {
                intended: at(op.intended),
                start: at(op.start),
                assigned: None,
                // Of an upload warp knows only when it was sent.
                first_byte: op.first_byte.filter(|_| op.last_byte_sent.is_none()).map(at),
                last_byte_sent: op.last_byte_sent.map(at),
                end: at(op.end),
                ..*op
            });
        })?;
        // warp's format knows no stages. What was prepared by the kind of operation that was
        // measured would count as measured; warp itself leaves it out of such files.
        let prepares = |op: &OpRecord| {
            let stage = manifest.stages.get(usize::from(op.stage.0));
            stage.is_some_and(|stage| stage.kind == StageKind::Prepare)
        };
        let measured: HashSet<OpKind> =
            ops.iter().filter(|op| !prepares(op)).map(|op| op.kind).collect();
        ops.retain(|op| !(prepares(op) && (only_measured || measured.contains(&op.kind))));
        // Nor does it know ramps.
        ops.retain(|op| op.is_measured);
        // warp's readers count on the order of starts.
        ops.sort_by_key(|op| (op.start, op.worker));
        let failed = ops.iter().enumerate().filter(|(_, op)| !op.outcome.is_ok());
        let error_texts = failed.map(|(at, op)| (at, op.outcome.name().to_owned())).collect();
        let client = |worker: u32| self.client_of.get(worker as usize).copied().unwrap_or_default();
        let workers = 0..ops.iter().map(|op| op.worker.0 + 1).max().unwrap_or_default();
        let workers: Vec<WarpWorker> =
            workers.map(|thread| WarpWorker { client: client(thread), thread }).collect();
        let clients = 0..=workers.iter().map(|worker| worker.client).max().unwrap_or_default();
        Ok(WarpRecord {
            ops,
            endpoints: self.endpoints.clone(),
            clients: clients.map(|client| format!("p{client:03}")).collect(),
            workers,
            error_texts,
            utc_offset_seconds: 0,
        })
    }
}

impl WarpFile {
    /// Answers a question by warp's own method. Every operation is read into memory for it.
    pub fn analyze(&self, question: &WarpQuestion) -> Result<WarpAnalysis, ReadError> {
        let rows = self.end().map_or(0, |end| end.rows as usize);
        Ok(warp::analyze(&read(self, rows)?.recording(), question))
    }
}

/// Reads a whole raw file.
fn read(file: &WarpFile, rows: usize) -> Result<WarpRecord, ReadError> {
    // Bound: rows that were read from the file before, each to be kept.
    let (mut ops, mut error_texts) = (Vec::with_capacity(rows), BTreeMap::new());
    file.scan_errors(&mut |op, error| {
        if !op.outcome.is_ok() {
            error_texts.insert(ops.len(), error.to_owned());
        }
        ops.push(*op);
    })?;
    let names = file.names();
    let workers = names.workers.iter();
    Ok(WarpRecord {
        ops,
        endpoints: names.endpoints.clone(),
        clients: names.clients.clone(),
        workers: workers
            .map(|worker| WarpWorker { client: worker.client, thread: worker.thread })
            .collect(),
        error_texts,
        utc_offset_seconds: 0,
    })
}

impl WarpRecord {
    /// Returns it as warp's method takes it.
    pub fn recording(&self) -> Recording<'_> {
        Recording {
            ops: &self.ops,
            endpoints: &self.endpoints,
            clients: &self.clients,
            workers: &self.workers,
            error_texts: &self.error_texts,
            utc_offset_seconds: self.utc_offset_seconds,
        }
    }
}
