//! What the second pass counts: one accumulator per kind and endpoint of a row, in integers, so
//! that no order matters.

use std::ops::Range;
use std::time::Duration;

use plimsoll_model::{ByteRate, Moment, OpRate, OpRecord, per_sec};
use plimsoll_stats::Histogram;

use crate::detail::SegmentDetail;
use crate::figures::{
    Done, Figures, LATE_AFTER, Parts, Rates, SegmentRate, SegmentRates, SpanCounts, StageTotals,
};
use crate::ns;
use crate::span::{MeasuredSpan, SpanRule};
use crate::times::Times;

/// Operations and objects are shared between segments in millionths.
pub(crate) const MICRO: u64 = 1_000_000;

/// The span and its segments, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    start: u64,
    end: u64,
    /// Where the first segment begins, not after the start.
    origin: u64,
    segment: u64,
    pub(crate) segments_count: usize,
    /// Whether operations come on a schedule, so that their delays are kept.
    open: bool,
    /// When the stage began.
    stage_start: u64,
    /// When the first worker had ended its last operation.
    first_done: Option<u64>,
    pub(crate) with_histograms: bool,
}

impl Frame {
    /// Returns the frame of a span. Its segments begin where it does, and those that are not whole
    /// are left out; where it begins with ramps, they begin where the stage did.
    pub(crate) fn new(
        span: &MeasuredSpan,
        (stage_start, first_done): (Moment, Option<Moment>),
        segments: impl Fn(u64) -> u64,
    ) -> Self {
        let (start, end) = (span.start.as_ns(), span.end.as_ns());
        let stage_start = stage_start.as_ns();
        let is_from_stage = span.rule == SpanRule::FromRamps;
        let segment =
            segments(if is_from_stage { end - stage_start.min(end) } else { end - start });
        let (origin, segments_count) = match is_from_stage {
            true => {
                let before = start.saturating_sub(stage_start) / segment;
                let origin = stage_start + before * segment;
                (origin, (end.saturating_sub(origin)).div_ceil(segment).max(1))
            }
            false => (start, (end - start) / segment),
        };
        let first_done = first_done.map(Moment::as_ns);
        Self {
            start,
            end,
            origin,
            segment,
            segments_count: segments_count as usize,
            open: false,
            stage_start,
            first_done,
            with_histograms: false,
        }
    }

    /// Returns it for figures without whole histograms.
    pub(crate) fn opened_without_histograms(self) -> Self {
        Self { with_histograms: false, ..self }
    }

    pub(crate) fn opened(self, open: bool, with_histograms: bool) -> Self {
        Self { open, with_histograms, ..self }
    }

    fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Returns the segment or the remainder in which an operation began, if it did in the span.
    pub(crate) fn started_in(&self, start: Moment) -> Option<usize> {
        let inside = start.as_ns() >= self.start && start.as_ns() < self.end;
        inside.then(|| ((start.as_ns() - self.origin) / self.segment) as usize)
    }

    /// Returns the segment or the remainder in which an operation ended, if it did in the span.
    pub(crate) fn ended_in(&self, end: Moment) -> Option<usize> {
        self.ends_inside(end.as_ns()).then(|| self.segment_ending_at(end.as_ns()))
    }

    fn ends_inside(&self, end: u64) -> bool {
        end > self.start && end <= self.end
    }

    /// Returns the segment or the remainder in which an operation ended that lies in the span from
    /// start to end.
    pub(crate) fn wholly_inside(&self, op: &OpRecord) -> Option<usize> {
        self.ended_in(op.end.max(op.start)).filter(|_| op.start.as_ns() >= self.start)
    }

    /// Tells whether an operation was under way when the span began.
    pub(crate) fn reaches_in(&self, start: Moment, end: Moment) -> bool {
        start.as_ns() < self.start && end.as_ns() > self.start
    }

    pub(crate) fn segment_start(&self, index: usize) -> Moment {
        Moment::from_ns(self.origin + index as u64 * self.segment)
    }

    /// Returns how much of a segment lies in the span.
    pub(crate) fn length_of(&self, index: usize) -> Duration {
        let start = self.segment_start(index).as_ns();
        let inside = (start + self.segment).min(self.end).saturating_sub(start.max(self.start));
        Duration::from_nanos(inside)
    }

    /// Returns the segments that lie wholly in the span.
    pub(crate) fn whole_segments(&self) -> impl Iterator<Item = usize> {
        (0..self.segments_count).filter(|index| self.length_of(*index) == self.segment_length())
    }

    pub(crate) fn segment_length(&self) -> Duration {
        Duration::from_nanos(self.segment)
    }

    /// Returns the number of the segment that ends at or after `at`, which lies after the start.
    ///
    /// A segment holds its end and not its start, so that an operation ending on a border is
    /// inside.
    fn segment_ending_at(&self, at: u64) -> usize {
        ((at - self.origin - 1) / self.segment) as usize
    }
}

/// What successes got done in some stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) bytes: u64,
    pub(crate) ops_micro: u64,
    pub(crate) objects_micro: u64,
}

impl Share {
    fn whole(op: &OpRecord) -> Self {
        let objects_micro = u64::from(op.objects_count) * MICRO;
        Self { bytes: op.bytes, ops_micro: MICRO, objects_micro }
    }

    /// Returns what of `self`, spread evenly over `took` nanoseconds, was done after `passed` of
    /// them.
    ///
    /// Rounded down: differences of such values at successive borders add up to the whole exactly.
    fn until(&self, passed: u64, took: u64) -> Self {
        let part = |whole: u64| (u128::from(whole) * u128::from(passed) / u128::from(took)) as u64;
        Self {
            bytes: part(self.bytes),
            ops_micro: part(self.ops_micro),
            objects_micro: part(self.objects_micro),
        }
    }

    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.ops_micro += other.ops_micro;
        self.objects_micro += other.objects_micro;
    }

    fn less(&self, other: &Self) -> Self {
        Self {
            bytes: self.bytes - other.bytes,
            ops_micro: self.ops_micro - other.ops_micro,
            objects_micro: self.objects_micro - other.objects_micro,
        }
    }

    /// Returns the rates of the shares; `None` in a span without length.
    fn rates(&self, length_ns: u64) -> Option<Rates> {
        let rate = |amount| per_sec(amount, Duration::from_nanos(length_ns));
        Some(Rates {
            ops: OpRate(rate(self.ops_micro as f64 / MICRO as f64)?),
            objects: OpRate(rate(self.objects_micro as f64 / MICRO as f64)?),
            bytes: ByteRate(rate(self.bytes as f64)?),
        })
    }
}

/// How long the parts of operations took.
#[derive(Clone, Debug, Default)]
struct PartTimes {
    assign: Histogram,
    upload: Histogram,
}

/// Everything counted of the operations of one kind at one endpoint, of one row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accumulator {
    moves_bytes: bool,
    pub(crate) counts: SpanCounts,
    stage: StageTotals,
    share: Share,
    /// Successes that had ended when the first worker was done, and their bytes.
    by_first_done: (u64, u64),
    /// The same when the span ended, which may be before the last of them did.
    by_last_done: (u64, u64),
    pub(crate) segments: Vec<Share>,
    /// Kept only when details are asked for.
    pub(crate) detail: Option<SegmentDetail>,
    latency: Histogram,
    /// Kept only once a service time differed from its latency; until then they are the same.
    service_time: Option<Histogram>,
    /// Kept only in an open loop.
    schedule_delay: Option<Histogram>,
    ttfb: Histogram,
    /// Kept only once an operation had parts.
    parts: Option<Box<PartTimes>>,
    latency_beyond_end: u64,
}

impl Accumulator {
    pub(crate) fn new(frame: &Frame, moves_bytes: bool, details: bool) -> Self {
        // Bound: `Question::SEGMENTS_MAX`.
        let segments = vec![Share::default(); frame.segments_count];
        let detail = details.then(|| SegmentDetail::new(frame.segments_count));
        let schedule_delay = frame.open.then(Histogram::default);
        Self { moves_bytes, segments, detail, schedule_delay, ..Self::default() }
    }

    pub(crate) fn add(&mut self, frame: &Frame, op: &OpRecord) {
        let (start, end) = (op.start.as_ns(), op.end.as_ns().max(op.start.as_ns()));
        self.counts.started += u64::from(start >= frame.start && start < frame.end);
        let ended_inside = frame.ends_inside(end);
        self.stage.late += u64::from(op.start.since(op.intended) > LATE_AFTER);
        if !op.outcome.is_ok() {
            self.stage.failed.add(op.outcome);
            if ended_inside {
                self.counts.failed.add(op.outcome);
            }
            if let Some(detail) = &mut self.detail {
                detail.add_failed(frame, op);
            }
            return;
        }
        self.counts.ok += u64::from(ended_inside);
        self.stage.ops_ok += 1;
        self.stage.bytes += op.bytes;
        self.stage.objects += u64::from(op.objects_count);
        if frame.first_done.is_some_and(|done| end <= done) {
            self.by_first_done.0 += 1;
            self.by_first_done.1 += op.bytes;
        }
        if end <= frame.end {
            self.by_last_done.0 += 1;
            self.by_last_done.1 += op.bytes;
        }
        let latency = op.latency();
        self.stage.latency_max = self.stage.latency_max.max(Some(latency));
        let service = op.service_time();
        self.stage.service_min =
            Some(self.stage.service_min.map_or(service, |min| min.min(service)));
        let reaches_beyond = start < frame.end && end > frame.end;
        if frame.is_empty() || !(ended_inside || reaches_beyond) {
            return;
        }
        self.add_share(frame, op, start, end);
        if let Some(detail) = &mut self.detail {
            detail.add_ok(frame, op, latency);
        }
        if ended_inside && start >= frame.start {
            self.add_times(op, latency);
        } else if reaches_beyond {
            self.latency_beyond_end = self.latency_beyond_end.max(ns(latency));
        }
    }

    fn add_times(&mut self, op: &OpRecord, latency: Duration) {
        if op.start != op.intended && self.service_time.is_none() {
            self.service_time = Some(self.latency.clone());
        }
        if let Some(service_time) = &mut self.service_time {
            service_time.record(ns(op.service_time()));
        }
        if let Some(schedule_delay) = &mut self.schedule_delay {
            schedule_delay.record(ns(op.start.since(op.intended)));
        }
        self.latency.record(ns(latency));
        if let Some(ttfb) = op.ttfb() {
            self.ttfb.record(ns(ttfb));
        }
        if let Some((assign, upload)) = op.parts() {
            let parts = self.parts.get_or_insert_default();
            parts.assign.record(ns(assign));
            parts.upload.record(ns(upload));
        }
    }

    /// Gives the span and each segment that the operation touched its share.
    fn add_share(&mut self, frame: &Frame, op: &OpRecord, start: u64, end: u64) {
        let whole = Share::whole(op);
        let last = frame.segment_ending_at(end.min(frame.end));
        let from = start.max(frame.start);
        let first = ((from - frame.origin) / frame.segment) as usize;
        if first >= last && from == start && end <= frame.end {
            self.share.add(&whole);
            if let Some(segment) = self.segments.get_mut(last) {
                segment.add(&whole);
            }
            return;
        }
        let took = end - start;
        let done_by = |at: u64| whole.until(at - start, took);
        let mut before = done_by(from);
        self.share.add(&done_by(end.min(frame.end)).less(&before));
        let mut border = frame.origin + first as u64 * frame.segment;
        for segment in self.segments.iter_mut().take(last + 1).skip(first) {
            border += frame.segment;
            let done = done_by(border.min(end));
            segment.add(&done.less(&before));
            before = done;
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.moves_bytes |= other.moves_bytes;
        self.counts.started += other.counts.started;
        self.counts.ok += other.counts.ok;
        self.counts.failed.merge(&other.counts.failed);
        self.stage.ops_ok += other.stage.ops_ok;
        self.stage.failed.merge(&other.stage.failed);
        self.stage.bytes += other.stage.bytes;
        self.stage.objects += other.stage.objects;
        self.stage.latency_max = self.stage.latency_max.max(other.stage.latency_max);
        let mins = [self.stage.service_min, other.stage.service_min];
        self.stage.service_min = mins.into_iter().flatten().min();
        self.stage.late += other.stage.late;
        self.share.add(&other.share);
        self.by_first_done.0 += other.by_first_done.0;
        self.by_first_done.1 += other.by_first_done.1;
        self.by_last_done.0 += other.by_last_done.0;
        self.by_last_done.1 += other.by_last_done.1;
        for (mine, theirs) in self.segments.iter_mut().zip(&other.segments) {
            mine.add(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.detail, &other.detail) {
            mine.merge(theirs);
        }
        if self.service_time.is_some() || other.service_time.is_some() {
            let mut both = self.service_time.take().unwrap_or_else(|| self.latency.clone());
            both.merge(other.service_time.as_ref().unwrap_or(&other.latency));
            self.service_time = Some(both);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.schedule_delay, &other.schedule_delay) {
            merge_times(mine, theirs);
        }
        merge_times(&mut self.latency, &other.latency);
        merge_times(&mut self.ttfb, &other.ttfb);
        if let Some(theirs) = &other.parts {
            let mine = self.parts.get_or_insert_default();
            merge_times(&mut mine.assign, &theirs.assign);
            merge_times(&mut mine.upload, &theirs.upload);
        }
        self.latency_beyond_end = self.latency_beyond_end.max(other.latency_beyond_end);
    }

    /// Returns the longest row of whole segments to which no success belongs, not even a share of
    /// one.
    pub(crate) fn longest_without_success(&self) -> Range<usize> {
        let mut longest = 0..0;
        let mut since = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            if segment.ops_micro > 0 {
                since = index + 1;
            } else if index + 1 - since > longest.len() {
                longest = since..index + 1;
            }
        }
        longest
    }

    /// Returns the longest latency of a success that began before the end of the span and ended
    /// after it.
    pub(crate) fn latency_beyond_end(&self) -> Option<Duration> {
        let ns = self.latency_beyond_end;
        (ns > 0).then_some(Duration::from_nanos(ns))
    }

    pub(crate) fn figures(&self, frame: &Frame) -> Figures {
        let times = |times: &Histogram| Times::of(times, frame.with_histograms);
        let length = frame.end - frame.start;
        let done = |(ops, bytes): (u64, u64), at: u64| {
            let span = Duration::from_nanos(at.saturating_sub(frame.start));
            Done {
                after: Duration::from_nanos(at.saturating_sub(frame.stage_start)),
                ops,
                bytes,
                ops_per_sec: per_sec(ops as f64, span),
                bytes_per_sec: per_sec(bytes as f64, span).filter(|_| self.moves_bytes),
            }
        };
        Figures {
            moves_bytes: self.moves_bytes,
            counts: self.counts,
            stage: self.stage,
            rates: self.share.rates(length),
            segments: self.segment_rates(frame),
            service_time: self.service_time.as_ref().map(times),
            schedule_delay: self.schedule_delay.as_ref().map(times),
            latency: times(&self.latency),
            ttfb: times(&self.ttfb),
            parts: self
                .parts
                .as_ref()
                .map(|parts| Parts { assign: times(&parts.assign), upload: times(&parts.upload) }),
            first_done: frame.first_done.map(|at| done(self.by_first_done, at)),
            last_done: frame.first_done.map(|_| done(self.by_last_done, frame.end)),
        }
    }

    fn segment_rates(&self, frame: &Frame) -> Option<SegmentRates> {
        let mut slowest_first: Vec<usize> = frame.whole_segments().collect();
        slowest_first.sort_by_key(|&index| {
            let segment = &self.segments[index];
            (if self.moves_bytes { segment.bytes } else { 0 }, segment.objects_micro, index)
        });
        let rate = |index: usize| {
            let rates = self.segments[index].rates(frame.segment)?;
            Some(SegmentRate { start: frame.segment_start(index), rates })
        };
        let (&slowest, &fastest) = (slowest_first.first()?, slowest_first.last()?);
        let median = slowest_first[(slowest_first.len() - 1) / 2];
        Some(SegmentRates {
            fastest: rate(fastest)?,
            median: rate(median)?,
            slowest: rate(slowest)?,
        })
    }
}

/// Adds `theirs`; most of many are empty, and an empty one need not be gone through bin by
/// bin.
pub(crate) fn merge_times(mine: &mut Histogram, theirs: &Histogram) {
    if !theirs.is_empty() {
        mine.merge(theirs);
    }
}
