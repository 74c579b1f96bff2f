//! warp's own arithmetic, so that a file recorded by warp can be given the figures that
//! `warp analyze --full` prints for it.
//!
//! The formulas are in `docs/method-warp.md`. They differ on purpose from those of the rest of
//! this crate, which are in `docs/measuring.md`.

mod requests;
mod segments;
mod span;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, OpKind, OpRecord};

pub use requests::{
    WarpAccess, WarpHostRequests, WarpMultiSize, WarpRates, WarpRequests, WarpSingleSize,
    WarpSizeClass, WarpSizes, WarpTimes, rank,
};
pub use segments::{WarpSegment, WarpSegments, WarpShares};

use span::{Discard, Span};

/// What was recorded: the operations of a raw file sorted by start, and the names they refer to.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'a> {
    /// The operations, in the order of the file. Moments count from the Unix epoch.
    pub ops: &'a [OpRecord],
    /// The endpoints, by [`OpRecord::endpoint`].
    pub endpoints: &'a [String],
    /// The clients' ids, by [`WarpWorker::client`].
    pub clients: &'a [String],
    /// The workers, by [`OpRecord::worker`].
    pub workers: &'a [WarpWorker],
    /// What the failed operations said, by their place in `ops`.
    pub error_texts: &'a BTreeMap<usize, String>,
    /// Seconds by which the recorder's local time is ahead of UTC.
    pub utc_offset_seconds: i32,
}

impl<'a> Recording<'a> {
    /// Returns the name of an endpoint.
    pub fn endpoint(&self, id: EndpointId) -> &'a str {
        self.endpoints.get(usize::from(id.0)).map_or("", String::as_str)
    }

    /// Returns the id of a client.
    pub fn client(&self, number: u16) -> &'a str {
        self.clients.get(usize::from(number)).map_or("", String::as_str)
    }

    /// Returns what a failed operation said.
    pub fn error_text(&self, op: &WarpOp<'_>) -> String {
        self.error_texts.get(&op.index).cloned().unwrap_or_default()
    }

    /// Returns the operations that are looked at, by start.
    pub fn ops(&self, question: &WarpQuestion) -> Vec<WarpOp<'a>> {
        let nobody = WarpWorker { client: 0, thread: 0 };
        let worker = |op: &OpRecord| self.workers.get(op.worker.0 as usize).copied();
        let offset = usize::try_from(question.offset).unwrap_or(usize::MAX);
        let limit = question.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
        let all = self.ops.iter().enumerate().skip(offset).take(limit);
        let op =
            |(index, record)| WarpOp { record, index, worker: worker(record).unwrap_or(nobody) };
        let mut ops: Vec<WarpOp<'a>> = all.map(op).collect();
        ops.sort_by_key(WarpOp::start);
        ops
    }
}

/// A worker as warp numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpWorker {
    /// The client it belongs to.
    pub client: u16,
    /// Its number, by which warp tells workers apart whatever the client.
    pub thread: u32,
}

/// What is asked, in the terms of warp's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarpQuestion {
    /// The length of a segment; `None` takes the first of 1 s to 3 h that gives at most 400.
    pub segment: Option<Duration>,
    /// Only this kind.
    pub op: Option<OpKind>,
    /// Only what went to this endpoint.
    pub host: Option<EndpointId>,
    /// How much is left out from the first start of each kind on.
    pub skip: Duration,
    /// How many operations are left out at the beginning of the file.
    pub offset: u64,
    /// How many operations are looked at.
    pub limit: Option<u64>,
    /// Asks for the details: requests, hosts.
    pub verbose: bool,
}

/// The answer to a [`WarpQuestion`].
#[derive(Clone, Debug, PartialEq)]
pub struct WarpAnalysis {
    /// Each kind: by first start, or by name if `mixed`.
    pub kinds: Vec<WarpKind>,
    /// All kinds together, when kinds overlap in time.
    pub mixed: Option<WarpMixed>,
    /// Tells whether details were asked for.
    pub verbose: bool,
}

/// All kinds of a recording in which kinds overlap in time.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpMixed {
    /// The operations that all shares refer to.
    pub operations: usize,
    /// The throughput of all; `None` when there is no span for it.
    pub throughput: Option<WarpThroughput>,
    /// The throughput of each host; empty with one.
    pub by_host: Vec<(WarpSource, WarpThroughput)>,
}

/// Where operations are told apart by: the endpoint, or the client if there is one endpoint only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WarpSource {
    /// What went to one endpoint.
    Endpoint(EndpointId),
    /// What came from one client.
    Client(u16),
}

/// One kind of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpKind {
    /// The kind.
    pub kind: OpKind,
    /// How many there were, failed ones too.
    pub operations: usize,
    /// How many of them failed.
    pub errors: usize,
    /// The first of the failures, at most [`WarpKind::ERRORS_MAX`].
    pub first_errors: Vec<WarpError>,
    /// The figures; `None` where warp says that there are too few samples.
    pub figures: Option<WarpFigures>,
    /// The segments of all and, with details and several endpoints, of each; for the table that
    /// `--analyze.out` writes.
    pub tables: Vec<WarpTable>,
}

impl WarpKind {
    /// How many failures are kept.
    pub const ERRORS_MAX: usize = 10;
}

/// A failed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpError {
    /// Where it went to.
    pub endpoint: EndpointId,
    /// When it ended.
    pub at: Moment,
    /// What it said.
    pub text: String,
}

/// Segments in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpTable {
    /// The endpoint, if all of it went to one.
    pub endpoint: Option<EndpointId>,
    /// The objects per operation.
    pub objects_per_operation: u32,
    /// The segments.
    pub segments: Vec<WarpSegment>,
}

/// The figures of one kind that has enough samples.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpFigures {
    /// The first start.
    pub started: Moment,
    /// The last end.
    pub ended: Moment,
    /// The highest worker number, plus one.
    pub concurrency: u32,
    /// The objects of the first operation.
    pub objects_per_operation: u32,
    /// The number of endpoints.
    pub hosts: usize,
    /// The number of clients.
    pub clients: usize,
    /// The average and the segments.
    pub throughput: WarpThroughput,
    /// The same for each source, over its own span; empty with one source.
    pub by_host: Vec<(WarpSource, WarpThroughput)>,
    /// The request times; `None` unless details were asked for.
    pub requests: Option<WarpRequests>,
}

/// An average over a span and the segments of it.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpThroughput {
    /// The start of the span.
    pub started: Moment,
    /// The end of the span, less 1 ns.
    pub ended: Moment,
    /// The shares of the successes in the span.
    pub shares: WarpShares,
    /// The segments; `None` when there are fewer than two.
    pub segments: Option<WarpSegments>,
}

impl WarpThroughput {
    /// Returns the length of the span in milliseconds, rounded.
    pub fn millis(&self) -> u64 {
        (ns(self.ended.since(self.started)) + 500_000) / 1_000_000
    }

    /// Returns MiB per second; `None` for a span of less than half a millisecond.
    pub fn mib_per_second(&self) -> Option<f64> {
        let seconds = self.millis() as f64 / 1_000.0;
        (seconds > 0.0).then(|| self.shares.bytes as f64 / f64::from(1 << 20) / seconds)
    }

    /// Returns objects per second; `None` for a span of less than half a millisecond.
    pub fn objects_per_second(&self) -> Option<f64> {
        let seconds = self.millis() as f64 / 1_000.0;
        (seconds > 0.0).then(|| self.shares.objects / seconds)
    }
}

/// An operation together with what its worker's number stands for.
#[derive(Clone, Copy, Debug)]
pub struct WarpOp<'a> {
    /// The operation.
    pub record: &'a OpRecord,
    /// Its place in the recording.
    index: usize,
    /// Its worker.
    pub worker: WarpWorker,
}

impl WarpOp<'_> {
    /// Returns when it began, in nanoseconds.
    pub fn start(&self) -> u64 {
        self.record.start.as_ns()
    }

    /// Returns when it ended, in nanoseconds.
    pub fn end(&self) -> u64 {
        self.record.end.as_ns()
    }

    /// Returns whether it succeeded.
    pub fn ok(&self) -> bool {
        self.record.outcome.is_ok()
    }

    /// Returns how long it took, in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.end().saturating_sub(self.start())
    }
}

/// How one analysis goes about its kinds.
struct Method<'a> {
    recording: &'a Recording<'a>,
    question: &'a WarpQuestion,
    discard: Discard,
}

/// Returns what `warp analyze --full` concludes from a recording.
pub fn analyze(recording: &Recording<'_>, question: &WarpQuestion) -> WarpAnalysis {
    let mut ops = recording.ops(question);
    let mixed = kinds_overlap(&ops);
    ops.retain(|op| question.op.is_none_or(|kind| op.record.kind == kind));
    ops.retain(|op| question.host.is_none_or(|host| op.record.endpoint == host));
    skip(&mut ops, ns(question.skip));
    let errors = ops.iter().any(|op| !op.ok());
    let single = mixed || errors || question.host.is_some();
    let discard = if single { Discard::Single } else { Discard::AllThreads };
    let method = Method { recording, question, discard };
    let (kinds, mixed) = if mixed && question.op.is_none() {
        if !errors && let Some(span) = Span::of(&ops, Discard::AllThreads) {
            ops.retain(|op| span.holds(op));
        }
        let kinds = by_kind(&ops, |kind| kind.name());
        (kinds, Some(method.mixed(&ops)))
    } else {
        let first = |kind| ops.iter().position(|op| op.record.kind == kind);
        (by_kind(&ops, first), None)
    };
    let kinds = kinds.into_iter().map(|(kind, ops)| method.kind(kind, &ops, mixed.is_some()));
    WarpAnalysis { kinds: kinds.collect(), mixed, verbose: question.verbose }
}

/// Leaves out what starts less than `skip` after the first start of its kind.
fn skip(ops: &mut Vec<WarpOp<'_>>, skip: u64) {
    let mut first: BTreeMap<OpKind, u64> = BTreeMap::new();
    ops.retain(|op| {
        let first = *first.entry(op.record.kind).or_insert(op.start());
        op.start() >= first.saturating_add(skip)
    });
}

/// Tells whether the time from first start to last end of one kind overlaps that of another.
fn kinds_overlap(ops: &[WarpOp<'_>]) -> bool {
    let mut spans: BTreeMap<OpKind, (u64, u64)> = BTreeMap::new();
    for op in ops {
        let span = spans.entry(op.record.kind).or_insert((op.start(), op.end()));
        *span = (span.0.min(op.start()), span.1.max(op.end()));
    }
    let mut spans: Vec<(u64, u64)> = spans.into_values().collect();
    spans.sort_unstable();
    spans.windows(2).any(|pair| pair[1].0 < pair[0].1)
}

/// Returns the operations of each kind, the kinds in the order of `key`.
fn by_kind<'a, K: Ord>(
    ops: &[WarpOp<'a>],
    key: impl Fn(OpKind) -> K,
) -> Vec<(OpKind, Vec<WarpOp<'a>>)> {
    let mut kinds: BTreeMap<OpKind, Vec<WarpOp<'a>>> = BTreeMap::new();
    for op in ops {
        kinds.entry(op.record.kind).or_default().push(*op);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_cached_key(|(kind, _)| key(*kind));
    kinds
}

impl Method<'_> {
    fn mixed(&self, ops: &[WarpOp<'_>]) -> WarpMixed {
        let successes: Vec<WarpOp<'_>> = ops.iter().filter(|op| op.ok()).copied().collect();
        WarpMixed {
            operations: ops.len(),
            throughput: self.throughput(ops, &successes, Discard::Single),
            by_host: self.by_host(ops),
        }
    }

    fn kind(&self, kind: OpKind, ops: &[WarpOp<'_>], mixed: bool) -> WarpKind {
        let figures = self.figures(ops, mixed);
        WarpKind {
            kind,
            operations: ops.len(),
            errors: ops.iter().filter(|op| !op.ok()).count(),
            first_errors: self.first_errors(ops),
            tables: if figures.is_some() { self.tables(ops) } else { Vec::new() },
            figures,
        }
    }

    fn figures(&self, ops: &[WarpOp<'_>], mixed: bool) -> Option<WarpFigures> {
        let successes: Vec<WarpOp<'_>> = ops.iter().filter(|op| op.ok()).copied().collect();
        let throughput = self.throughput(ops, &successes, self.discard)?;
        if throughput.segments.is_none() && !mixed {
            return None;
        }
        let thread = |op: &WarpOp<'_>| op.worker.thread;
        let considered = || Span::of(&successes, self.discard);
        let requests = self
            .question
            .verbose
            .then(|| WarpRequests::of(&successes, considered(), &self.sources(ops)));
        Some(WarpFigures {
            started: ops.iter().map(|op| op.record.start).min()?,
            ended: ops.iter().map(|op| op.record.end).max()?,
            concurrency: ops.iter().map(thread).max()? + 1,
            objects_per_operation: successes.first()?.record.objects_count,
            hosts: endpoints(ops).len(),
            clients: ops.iter().map(|op| op.worker.client).collect::<HashSet<_>>().len(),
            throughput,
            by_host: self.by_host(ops),
            requests,
        })
    }

    /// Returns the average of the successes and the segments of all.
    fn throughput(
        &self,
        ops: &[WarpOp<'_>],
        successes: &[WarpOp<'_>],
        discard: Discard,
    ) -> Option<WarpThroughput> {
        let span = Span::of(successes, discard)?;
        let ended = span.end.saturating_sub(1).max(span.start);
        let segments = Span::of(ops, discard).map(|span| self.segments(ops, span));
        Some(WarpThroughput {
            started: Moment::from_ns(span.start),
            ended: Moment::from_ns(ended),
            shares: WarpShares::of(successes, span.start, ended),
            segments: segments.and_then(WarpSegments::ranked),
        })
    }

    fn segments(&self, ops: &[WarpOp<'_>], span: Span) -> Vec<WarpSegment> {
        segments::cut(ops, span, segments::length(span, self.question.segment))
    }

    fn by_host(&self, ops: &[WarpOp<'_>]) -> Vec<(WarpSource, WarpThroughput)> {
        let of = |(source, ops): (WarpSource, Vec<WarpOp<'_>>)| {
            let successes: Vec<WarpOp<'_>> = ops.iter().filter(|op| op.ok()).copied().collect();
            Some((source, self.throughput(&ops, &successes, Discard::Single)?))
        };
        self.sources(ops).into_iter().filter_map(of).collect()
    }

    /// Returns the operations of each source, by its name; nothing if there is one source only.
    fn sources<'a>(&self, ops: &[WarpOp<'a>]) -> Vec<(WarpSource, Vec<WarpOp<'a>>)> {
        let by_endpoint = endpoints(ops).len() > 1;
        let mut sources: BTreeMap<WarpSource, Vec<WarpOp<'a>>> = BTreeMap::new();
        for op in ops {
            let source = match by_endpoint {
                true => WarpSource::Endpoint(op.record.endpoint),
                false => WarpSource::Client(op.worker.client),
            };
            sources.entry(source).or_default().push(*op);
        }
        let mut sources: Vec<_> = sources.into_iter().collect();
        if sources.len() < 2 {
            sources.clear();
        }
        sources.sort_by_key(|(source, _)| match source {
            WarpSource::Endpoint(id) => self.recording.endpoint(*id),
            WarpSource::Client(number) => self.recording.client(*number),
        });
        sources
    }

    /// Returns the segments of all and, with details, of each endpoint, all over the span of all.
    fn tables(&self, ops: &[WarpOp<'_>]) -> Vec<WarpTable> {
        let Some(span) = Span::of(ops, self.discard) else { return Vec::new() };
        let table = |ops: &[WarpOp<'_>]| WarpTable {
            endpoint: match endpoints(ops) {
                of if of.len() == 1 => of.first().copied(),
                _ => None,
            },
            objects_per_operation: ops.first().map_or(0, |op| op.record.objects_count),
            segments: self.segments(ops, span),
        };
        let mut tables = vec![table(ops)];
        if self.question.verbose && endpoints(ops).len() > 1 {
            tables.extend(self.sources(ops).iter().map(|(_, ops)| table(ops)));
        }
        tables
    }

    fn first_errors(&self, ops: &[WarpOp<'_>]) -> Vec<WarpError> {
        let failed = ops.iter().filter(|op| !op.ok()).take(WarpKind::ERRORS_MAX);
        let error = |op: &WarpOp<'_>| WarpError {
            endpoint: op.record.endpoint,
            at: op.record.end,
            text: self.recording.error_text(op),
        };
        failed.map(error).collect()
    }
}

fn endpoints(ops: &[WarpOp<'_>]) -> BTreeSet<EndpointId> {
    ops.iter().map(|op| op.record.endpoint).collect()
}

/// Returns a duration in nanoseconds, at most what 64 bits hold.
fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
