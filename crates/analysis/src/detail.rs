//! What is counted beyond the figures when details are asked for: every segment, the classes of
//! size, the accesses of each object.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, OpKind, OpRecord};
use plimsoll_stats::{CoarseHistogram, Histogram, Percentile};
use serde::Serialize;

use crate::access::{AccessSummary, AccessTable};
use crate::accumulator::{Accumulator, Frame, MICRO, merge_times};
use crate::ended::{Ended, EndedInterval};
use crate::figures::{Failures, Figures};
use crate::times::Times;
use crate::{ns, serial};

/// With more segments than this none of them has percentiles: they would take too much memory.
const SEGMENTS_WITH_TIMES_MAX: usize = 1_000;

/// How much is given beside the figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Nothing.
    #[default]
    Figures,
    /// The whole distributions of times, and every segment.
    Distributions,
    /// Also sizes, clients and accesses.
    Details,
}

/// Everything about a row beyond its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowDetails {
    /// Of each kind that occurred, in the order of [`OpKind::ALL`].
    pub kinds: Vec<KindDetails>,
    /// Every segment, all kinds together; without percentiles.
    pub series: Vec<SegmentRow>,
    /// Of each client that ended an operation; empty when there is only one.
    pub clients: Vec<ClientDetails>,
}

/// Everything about one kind beyond its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindDetails {
    /// The kind.
    #[serde(serialize_with = "serial::kind")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: OpKind,
    /// Every segment.
    pub series: Vec<SegmentRow>,
    /// Every segment, of each endpoint; without percentiles.
    pub endpoints: Vec<EndpointSeries>,
    /// The times of each segment; empty when there are more than a thousand.
    #[serde(skip)]
    pub segment_times: Vec<SegmentTimes>,
    /// What ended in each interval of the stage that is as long as a segment, where anything did:
    /// also outside of the span.
    #[serde(skip)]
    pub ended: Vec<EndedInterval>,
    /// The same by size, smallest first; empty for kinds that move no content.
    pub sizes: Vec<SizeClass>,
    /// First and last access of each object, over the whole stage; `None` when none was accessed
    /// twice.
    pub access: Option<AccessSummary>,
}

/// The segments of what went to one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndpointSeries {
    /// The endpoint.
    #[serde(rename = "endpoint_id", serialize_with = "serial::endpoint")]
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub endpoint: EndpointId,
    /// Every segment.
    pub series: Vec<SegmentRow>,
}

/// What one client did, over the same span as all.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientDetails {
    /// The client's number.
    #[serde(rename = "client_id")]
    pub client: u16,
    /// All kinds together.
    pub total: Figures,
    /// Each kind that it ended.
    pub kinds: Vec<ClientKind>,
}

/// What one client did of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientKind {
    /// The kind.
    #[serde(serialize_with = "serial::kind")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: OpKind,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// One segment. Counts are of successes, but for `failed`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentRow {
    /// Where it begins.
    #[serde(rename = "started_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start: Moment,
    /// How long it is.
    #[serde(rename = "duration_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub length: Duration,
    /// Bytes moved, by share of time.
    pub bytes: u64,
    /// Operations done, by share of time.
    pub ops: f64,
    /// Objects handled, by share of time.
    pub objects: f64,
    /// Operations started in it.
    #[serde(rename = "ops_started_count")]
    pub started: u64,
    /// Operations ended in it.
    #[serde(rename = "ops_ended_count")]
    pub ended: u64,
    /// Operations wholly inside.
    #[serde(rename = "ops_full_count")]
    pub full: u64,
    /// Operations that touch it and reach beyond.
    #[serde(rename = "ops_partial_count")]
    pub partial: u64,
    /// Operations that failed in it.
    #[serde(flatten)]
    pub failed: Failures,
    /// Mean latency of those ended in it and begun in the span.
    #[serde(rename = "latency_ns_mean", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub latency_mean: Option<Duration>,
    /// Median latency of the same, to 1 %.
    #[serde(rename = "latency_ns_p50", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub latency_p50: Option<Duration>,
    /// 99th percentile of the same, to 1 %; from 100 samples on.
    #[serde(rename = "latency_ns_p99", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub latency_p99: Option<Duration>,
}

/// The times of the successes that ended in one segment and began in the span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SegmentTimes {
    /// Latency.
    pub latency: CoarseHistogram,
    /// Time to first byte.
    pub ttfb: CoarseHistogram,
}

/// The successes of one class of size: from a power of two up to below the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeClass {
    /// The smallest size that belongs here.
    #[serde(rename = "size_bytes_min")]
    pub bytes_min: u64,
    /// The largest size that belongs here.
    #[serde(rename = "size_bytes_max")]
    pub bytes_max: u64,
    /// The smallest size that occurred.
    #[serde(rename = "size_bytes_smallest")]
    pub bytes_smallest: u64,
    /// The largest size that occurred.
    #[serde(rename = "size_bytes_largest")]
    pub bytes_largest: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Latency.
    #[serde(rename = "latency_ns")]
    pub latency: Times,
    /// Time to first byte.
    #[serde(rename = "ttfb_ns")]
    pub ttfb: Times,
    /// Bytes per second of single operations (bytes / latency).
    #[serde(rename = "bytes_per_sec")]
    pub rate: RateSummary,
}

/// The distribution of the throughput of single operations, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateSummary {
    /// All bytes / all latencies.
    pub average: Option<f64>,
    /// Half are not faster.
    pub p50: Option<u64>,
    /// 90 of 100 are faster.
    pub p90_slow: Option<u64>,
    /// 99 of 100 are faster.
    pub p99_slow: Option<u64>,
    /// The fastest.
    pub max: Option<u64>,
    /// The slowest.
    pub min: Option<u64>,
}

/// Counts of the segments of one accumulator.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentCounts {
    started: u64,
    ended: u64,
    full: u64,
    failed: Failures,
    samples: u64,
    latency_sum_ns: u64,
}

/// What is kept of segments when details are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentDetail {
    segments: Vec<SegmentCounts>,
    /// Operations under way when the span begins.
    under_way: u64,
}

impl SegmentDetail {
    pub(crate) fn new(segments_count: usize) -> Self {
        // Bound: `Question::SEGMENTS_MAX`.
        Self { segments: vec![SegmentCounts::default(); segments_count], under_way: 0 }
    }

    pub(crate) fn add_failed(&mut self, frame: &Frame, op: &OpRecord) {
        let ended = frame.ended_in(op.end.max(op.start));
        if let Some(segment) = ended.and_then(|at| self.segments.get_mut(at)) {
            segment.failed.add(op.outcome);
        }
    }

    pub(crate) fn add_ok(&mut self, frame: &Frame, op: &OpRecord, latency: Duration) {
        let (start, end) = (op.start, op.end.max(op.start));
        let ended = frame.ended_in(end);
        // Without a duration it cannot lie on both sides of a border.
        let began = if start < end { frame.started_in(start) } else { ended };
        self.under_way += u64::from(frame.reaches_in(start, end));
        if let Some(segment) = began.and_then(|at| self.segments.get_mut(at)) {
            segment.started += 1;
            segment.full += u64::from(began == ended);
        }
        if let Some(segment) = ended.and_then(|at| self.segments.get_mut(at)) {
            segment.ended += 1;
            if began.is_some() {
                segment.samples += 1;
                segment.latency_sum_ns = segment.latency_sum_ns.saturating_add(ns(latency));
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.under_way += other.under_way;
        for (mine, theirs) in self.segments.iter_mut().zip(&other.segments) {
            mine.started += theirs.started;
            mine.ended += theirs.ended;
            mine.full += theirs.full;
            mine.failed.merge(&theirs.failed);
            mine.samples += theirs.samples;
            mine.latency_sum_ns = mine.latency_sum_ns.saturating_add(theirs.latency_sum_ns);
        }
    }
}

/// Returns every segment; `times` are those of its kind, if they are known.
pub(crate) fn series(
    counted: &Accumulator,
    frame: &Frame,
    times: &[SegmentTimes],
) -> Vec<SegmentRow> {
    let Some(detail) = &counted.detail else { return Vec::new() };
    let mut under_way = detail.under_way;
    let segments = counted.segments.iter().zip(&detail.segments).enumerate();
    segments
        .map(|(index, (share, counts))| {
            let partial = under_way + counts.started - counts.full;
            under_way += counts.started;
            under_way -= counts.ended;
            let percentile = |percentile, samples_min| {
                let latency = &times.get(index)?.latency;
                let enough = latency.count() >= samples_min;
                let value = enough.then(|| latency.percentile(percentile)).flatten();
                value.map(Duration::from_nanos)
            };
            let mean = counts.latency_sum_ns.checked_div(counts.samples);
            SegmentRow {
                start: frame.segment_start(index),
                length: frame.length_of(index),
                bytes: share.bytes,
                ops: share.ops_micro as f64 / MICRO as f64,
                objects: share.objects_micro as f64 / MICRO as f64,
                started: counts.started,
                ended: counts.ended,
                full: counts.full,
                partial,
                failed: counts.failed,
                latency_mean: mean.map(Duration::from_nanos),
                latency_p50: percentile(Percentile::P50, 2),
                latency_p99: percentile(Percentile::P99, 100),
            }
        })
        .collect()
}

/// What is kept of all operations of one kind when details are asked for.
#[derive(Debug)]
pub(crate) struct KindDetail {
    pub(crate) segments: Vec<SegmentTimes>,
    pub(crate) ended: Ended,
    sizes: BTreeMap<u32, SizeAccumulator>,
    access: AccessTable,
}

#[derive(Debug, Default)]
struct SizeAccumulator {
    bytes: u64,
    /// The smallest and the largest size.
    limits: Option<(u64, u64)>,
    latency: Histogram,
    ttfb: Histogram,
    rate: Histogram,
}

impl KindDetail {
    pub(crate) fn new(segments_count: usize) -> Self {
        let with_times = if segments_count <= SEGMENTS_WITH_TIMES_MAX { segments_count } else { 0 };
        // Bound: `SEGMENTS_WITH_TIMES_MAX`.
        let segments = vec![SegmentTimes::default(); with_times];
        Self {
            segments,
            ended: Ended::default(),
            sizes: BTreeMap::new(),
            access: AccessTable::default(),
        }
    }

    /// Counts a success.
    pub(crate) fn add(&mut self, frame: &Frame, op: &OpRecord) {
        self.access.add(op);
        let Some(ended) = frame.wholly_inside(op) else { return };
        let (latency, ttfb) = (op.latency(), op.ttfb());
        if let Some(segment) = self.segments.get_mut(ended) {
            segment.latency.record(ns(latency));
            if let Some(ttfb) = ttfb {
                segment.ttfb.record(ns(ttfb));
            }
        }
        if op.kind.moves_bytes() {
            self.sizes.entry(size_class(op.bytes)).or_default().add(op.bytes, latency, ttfb);
        }
    }

    /// Adds what another one counted of the same kind.
    pub(crate) fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.segments.iter_mut().zip(&other.segments) {
            mine.latency.merge(&theirs.latency);
            mine.ttfb.merge(&theirs.ttfb);
        }
        self.ended.merge(other.ended);
        for (class, theirs) in other.sizes {
            self.sizes.entry(class).or_default().merge(&theirs);
        }
        self.access.merge(other.access);
    }

    pub(crate) fn sizes(&self) -> Vec<SizeClass> {
        self.sizes.iter().map(|(class, sizes)| sizes.summary(*class)).collect()
    }

    pub(crate) fn access(&self) -> Option<AccessSummary> {
        self.access.summary()
    }
}

/// Returns the class of a size: how many binary digits it has.
fn size_class(bytes: u64) -> u32 {
    u64::BITS - bytes.leading_zeros()
}

impl SizeAccumulator {
    fn add(&mut self, bytes: u64, latency: Duration, ttfb: Option<Duration>) {
        self.bytes += bytes;
        let (smallest, largest) = self.limits.unwrap_or((bytes, bytes));
        self.limits = Some((smallest.min(bytes), largest.max(bytes)));
        self.latency.record(ns(latency));
        if let Some(ttfb) = ttfb {
            self.ttfb.record(ns(ttfb));
        }
        let rate = u128::from(bytes) * 1_000_000_000 / u128::from(ns(latency).max(1));
        self.rate.record(u64::try_from(rate).unwrap_or(u64::MAX));
    }

    fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        let limits = self.limits.into_iter().chain(other.limits);
        self.limits = limits.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        merge_times(&mut self.latency, &other.latency);
        merge_times(&mut self.ttfb, &other.ttfb);
        merge_times(&mut self.rate, &other.rate);
    }

    fn summary(&self, class: u32) -> SizeClass {
        let bytes_min = if class == 0 { 0 } else { 1 << (class - 1) };
        let bytes_max = if class == 0 { 0 } else { bytes_min | (bytes_min - 1) };
        let seconds = self.latency.sum() as f64 / 1e9;
        // The slow side of 99 of 100 is the first percentile of the rates.
        let slow = |percent: f64, samples_min| {
            let enough = self.rate.count() >= samples_min;
            let percentile = Percentile::new(percent).filter(|_| enough)?;
            self.rate.percentile(percentile)
        };
        SizeClass {
            bytes_min,
            bytes_max,
            bytes_smallest: self.limits.map_or(bytes_min, |(smallest, _)| smallest),
            bytes_largest: self.limits.map_or(bytes_max, |(_, largest)| largest),
            bytes: self.bytes,
            latency: Times::of(&self.latency, false),
            ttfb: Times::of(&self.ttfb, false),
            rate: RateSummary {
                average: (seconds > 0.0).then(|| self.bytes as f64 / seconds),
                p50: slow(50.0, 2),
                p90_slow: slow(10.0, 10),
                p99_slow: slow(1.0, 100),
                max: self.rate.max(),
                min: self.rate.min(),
            },
        }
    }
}
