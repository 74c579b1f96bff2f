//! The document that warp saves and prints of a run without `--full`: sums over whole seconds of
//! the wall clock, and the times of requests in windows of ten seconds.
//!
//! Two things differ from what warp writes. Failed operations are counted and are in no other sum.
//! A run of less than five seconds, of which warp's throughput is 0, has that of the whole run, and
//! as in warp no segments.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_analysis::warp::{
    Recording, WarpAccess, WarpKind, WarpMultiSize, WarpOp, WarpQuestion, WarpSizeClass, WarpTimes,
    rank,
};
use plimsoll_foreign::warp::aggregated::{
    Aggregate, Aggregated, FirstByte, MultiSized, Segment, Segmented, SingleSized, SizeClass,
    Throughput, VERSION_MAX, Window,
};
use plimsoll_model::Moment;

use super::layout::words::{rfc3339, size};

#[cfg(test)]
mod tests;

const NS: u64 = 1_000_000_000;
/// How many seconds are left out at each end.
const SECONDS_CUT: usize = 2;
/// How many seconds all parts of a document may have together, 128 MB: enough for two days of a run
/// in 20 parts. A client whose clock was not set lies decades before the others.
const SECONDS_MAX: u64 = 4_000_000;
/// How many seconds one window of requests is long.
const WINDOW_SECONDS: u64 = 10;

/// Returns the document of a recording; `None` where there is no operation. Of the question only
/// offset and limit count, as in warp.
pub fn document(
    recording: &Recording<'_>,
    question: &WarpQuestion,
    command_line: String,
) -> Option<Aggregated> {
    let page = Page { recording, seconds_left: Cell::new(SECONDS_MAX) };
    let ops = recording.ops(question);
    if ops.is_empty() {
        return None;
    }
    let sized: Vec<WarpOp<'_>> = ops.iter().filter(|op| op.record.bytes > 0).copied().collect();
    let bits = |op: &WarpOp<'_>| u64::BITS - op.record.bytes.leading_zeros();
    let of_bits = |(bits, ops): (u32, Vec<WarpOp<'_>>)| {
        let least = 1_u64 << bits.saturating_sub(1);
        let title = format!("Size: {least}->{}", least - 1 + least);
        (bits.to_string(), page.aggregate(&title, &ops))
    };
    Some(Aggregated {
        v: Some(VERSION_MAX),
        commandline: Some(command_line),
        is_final: Some(true),
        total: Some(page.aggregate("Total", &ops)),
        by_op_type: page.each("Operation: ", by(&ops, |op| op.record.kind.name())),
        by_host: page.each("Host: ", page.by_host(&ops)),
        by_client: page.each("Client: ", page.by_client(&ops)),
        by_obj_log_2_size: by(&sized, bits).into_iter().map(of_bits).collect(),
        ..Aggregated::default()
    })
}

/// Operations by what tells them apart.
type Groups<'a, K> = BTreeMap<K, Vec<WarpOp<'a>>>;

fn by<'a, K: Ord>(ops: &[WarpOp<'a>], key: impl Fn(&WarpOp<'a>) -> K) -> Groups<'a, K> {
    let mut groups: Groups<'a, K> = BTreeMap::new();
    ops.iter().for_each(|op| groups.entry(key(op)).or_default().push(*op));
    groups
}

/// What was moved in a second; an operation gives each second that it touches a share by time.
#[derive(Clone, Copy, Default)]
struct Second {
    /// The operations that started in it and did not fail.
    started: u64,
    /// Those that started in it and failed.
    errors: u64,
    objects: f64,
    bytes: f64,
}

struct Page<'a> {
    recording: &'a Recording<'a>,
    /// How many seconds the parts that come next may have.
    seconds_left: Cell<u64>,
}

impl<'a> Page<'a> {
    fn by_host(&self, ops: &[WarpOp<'a>]) -> Groups<'a, &'a str> {
        by(ops, |op| self.recording.endpoint(op.record.endpoint))
    }

    fn by_client(&self, ops: &[WarpOp<'a>]) -> Groups<'a, &'a str> {
        by(ops, |op| self.recording.client(op.worker.client))
    }

    /// Returns an instant given in nanoseconds.
    fn at(&self, ns: u64) -> Option<String> {
        Some(rfc3339(Moment::from_ns(ns), self.recording.utc_offset_seconds))
    }

    fn each(&self, title: &str, groups: Groups<'a, &str>) -> BTreeMap<String, Aggregate> {
        let of = |(name, ops): (&str, Vec<WarpOp<'a>>)| {
            (name.to_owned(), self.aggregate(&format!("{title}{name}"), &ops))
        };
        groups.into_iter().map(of).collect()
    }

    /// Returns the sums of some operations, at least one.
    fn aggregate(&self, title: &str, ops: &[WarpOp<'a>]) -> Aggregate {
        let whole = self.moved(ops);
        let good = || ops.iter().filter(|op| op.ok());
        let failed = ops.iter().filter(|op| !op.ok()).take(WarpKind::ERRORS_MAX);
        let (hosts, clients) = (self.by_host(ops), self.by_client(ops));
        let names = |of: &Groups<'_, &str>| of.keys().map(|name| (*name).to_owned()).collect();
        let moved = |of: &Groups<'a, &str>| {
            of.iter().map(|(name, ops)| ((*name).to_owned(), self.moved(ops))).collect()
        };
        Aggregate {
            title: Some(format!("{title} (Final)")),
            total_requests: Some(ops.len() as u64),
            total_objects: Some(good().map(|op| u64::from(op.record.objects_count)).sum()),
            total_errors: whole.errors,
            total_bytes: Some(good().map(|op| op.record.bytes).sum()),
            concurrency: Some(by(ops, |op| op.worker.thread).len() as u64),
            start_time: whole.start_time.clone(),
            end_time: whole.end_time.clone(),
            first_errors: failed.map(|op| self.recording.error_text(op)).collect(),
            hosts: names(&hosts),
            clients: names(&clients),
            throughput: Some(self.throughput(ops).unwrap_or(whole)),
            throughput_by_host: moved(&hosts),
            throughput_by_client: moved(&clients),
            requests_by_client: clients
                .iter()
                .map(|(name, ops)| ((*name).to_owned(), self.windows(ops)))
                .collect(),
        }
    }

    /// Returns what was moved from the first start to the last end.
    fn moved(&self, ops: &[WarpOp<'_>]) -> Throughput {
        let good = || ops.iter().filter(|op| op.ok());
        let started = ops.iter().map(WarpOp::start).min().unwrap_or_default();
        let ended = ops.iter().map(WarpOp::end).max().unwrap_or_default();
        let objects: u64 = good().map(|op| u64::from(op.record.objects_count)).sum();
        let bytes: u64 = good().map(|op| op.record.bytes).sum();
        Throughput {
            start_time: self.at(started),
            end_time: self.at(ended),
            errors: Some((ops.len() - good().count()) as u64),
            measure_duration_millis: Some(ended.saturating_sub(started) / 1_000_000),
            bytes: Some(bytes as f64),
            objects: Some(objects as f64),
            ops: Some(good().count() as u64),
            ..Throughput::default()
        }
    }

    /// Returns what was moved in whole seconds but for those at the ends, of operations that are in
    /// the order of their starts; `None` where no second is left, and of what would be more
    /// than [`SECONDS_MAX`] together with the parts before it.
    fn throughput(&self, ops: &[WarpOp<'_>]) -> Option<Throughput> {
        let first = ops.first()?.start() / NS;
        let last = ops.iter().map(WarpOp::end).max()? / NS;
        let count = last - first + 1;
        self.seconds_left.set(self.seconds_left.get().checked_sub(count)?);
        // Bound: SECONDS_MAX, by what is left.
        let mut all = vec![Second::default(); usize::try_from(count).ok()?];
        ops.iter().for_each(|op| spread(op, first, &mut all));
        let kept = all.get(SECONDS_CUT..all.len().saturating_sub(SECONDS_CUT))?;
        let (count, start) = (kept.len() as u64, (first + SECONDS_CUT as u64) * NS);
        (count > 0).then(|| Throughput {
            start_time: self.at(start),
            end_time: self.at(start + count * NS),
            errors: Some(kept.iter().map(|second| second.errors).sum()),
            measure_duration_millis: Some(count * 1_000),
            bytes: Some(kept.iter().map(|second| second.bytes).sum()),
            objects: Some(kept.iter().map(|second| second.objects).sum()),
            ops: Some(kept.iter().map(|second| second.started).sum()),
            op_type: None,
            segmented: Some(self.segmented(start, kept)),
        })
    }

    fn segmented(&self, start: u64, seconds: &[Second]) -> Segmented {
        let segment = |(at, second): (u64, &Second)| Segment {
            start: self.at(start + at * NS),
            bytes_per_sec: Some(second.bytes.round()),
            obj_per_sec: Some((second.objects * 100.0).round() / 100.0),
            errors: (second.errors > 0).then_some(second.errors),
        };
        let segments: Vec<Segment> = (0..).zip(seconds).map(segment).collect();
        let mut sorted: Vec<&Segment> = segments.iter().collect();
        let objects = |segment: &Segment| segment.obj_per_sec.unwrap_or_default();
        sorted.sort_by(|a, b| objects(a).total_cmp(&objects(b)));
        let [fastest, median, slowest] =
            [100, 50, 0].map(|percent| Segment::clone(sorted[rank(sorted.len(), percent)]));
        Segmented {
            segment_duration_millis: Some(1_000),
            sorted_by: Some("ops".to_owned()),
            fastest_start: fastest.start,
            fastest_bps: fastest.bytes_per_sec,
            fastest_ops: fastest.obj_per_sec,
            median_start: median.start,
            median_bps: median.bytes_per_sec,
            median_ops: median.obj_per_sec,
            slowest_start: slowest.start,
            slowest_bps: slowest.bytes_per_sec,
            slowest_ops: slowest.obj_per_sec,
            segments,
        }
    }

    /// Returns the windows of operations that are in the order of their starts; those without a
    /// success are left out. The first begins at the second in which the first success ended; what
    /// ends before its window stays in it.
    fn windows(&self, ops: &[WarpOp<'_>]) -> Vec<Window> {
        let good: Vec<WarpOp<'_>> = ops.iter().filter(|op| op.ok()).copied().collect();
        let Some(first) = good.first() else { return Vec::new() };
        let (second, bytes) = (first.end() / NS, first.record.bytes);
        let is_single = good.iter().all(|op| op.record.bytes == bytes);
        let mut number = 0;
        let mut windows: Groups<'_, u64> = BTreeMap::new();
        for op in &good {
            number = number.max((op.end() / NS).saturating_sub(second) / WINDOW_SECONDS);
            windows.entry(number).or_default().push(*op);
        }
        let window = |(number, ops): (u64, Vec<WarpOp<'_>>)| {
            let start = (second + number * WINDOW_SECONDS) * NS;
            let times = WarpAccess::of(ops.iter()).filter(|_| is_single);
            Window {
                start_time: self.at(start),
                end_time: self.at(start + WINDOW_SECONDS * NS),
                single_sized_requests: times.map(|times| single(ops.len(), bytes, &times)),
                multi_sized_requests: (!is_single).then(|| multi(&ops)),
            }
        };
        windows.into_iter().map(window).collect()
    }
}

/// Gives each second that an operation touches its share.
fn spread(op: &WarpOp<'_>, first: u64, seconds: &mut [Second]) {
    let (from, to) = ((op.start() / NS - first) as usize, (op.end() / NS - first) as usize);
    if !op.ok() {
        seconds[from].errors += 1;
        return;
    }
    seconds[from].started += 1;
    for (at, second) in seconds.iter_mut().enumerate().take(to + 1).skip(from) {
        let start = (first + at as u64) * NS;
        let inside = op.end().min(start + NS).saturating_sub(op.start().max(start));
        let share = if from == to { 1.0 } else { inside as f64 / op.duration() as f64 };
        second.objects += f64::from(op.record.objects_count) * share;
        second.bytes += op.record.bytes as f64 * share;
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

fn single(requests: usize, bytes: u64, of: &WarpAccess) -> SingleSized {
    SingleSized {
        requests: Some(requests as u64),
        obj_size: Some(bytes),
        merged_entries: Some(1),
        first_byte: of.ttfb.as_ref().map(first_byte),
        ..SingleSized::default()
    }
    .with_figures(of.durations.figures().map(millis))
}

fn multi(ops: &[WarpOp<'_>]) -> MultiSized {
    let WarpMultiSize { bytes_mean, classes } = WarpMultiSize::of(ops);
    MultiSized {
        requests: Some(ops.len() as u64),
        avg_obj_size: Some(bytes_mean),
        merged_entries: Some(1),
        by_size: classes.iter().map(size_class).collect(),
    }
}

fn first_byte(of: &WarpTimes) -> FirstByte {
    FirstByte::default().with_figures(of.first_byte_figures().map(millis))
}

fn size_class(of: &WarpSizeClass) -> SizeClass {
    SizeClass {
        min_size: Some(of.bytes_from),
        max_size: Some(of.bytes_to),
        min_size_string: Some(size(of.bytes_from)),
        max_size_string: Some(size(of.bytes_to)),
        requests: Some(of.requests as u64),
        avg_obj_size: Some(of.bytes_mean),
        avg_duration_millis: Some(millis(of.duration_mean)),
        first_byte: of.ttfb.as_ref().map(first_byte),
        merged_entries: Some(1),
        ..SizeClass::default()
    }
    .with_figures(of.rates)
}
