//! What can be worked out of warp's seconds and windows without a guess.

use std::time::Duration;

use plimsoll_foreign::warp::aggregated::{
    Aggregate, Aggregated, FirstByte, Segment, SingleSized, Throughput, Window,
};

/// One type of operation.
pub(super) struct Kind<'a> {
    pub(super) name: &'a str,
    pub(super) all: &'a Aggregate,
    /// Whether failed operations are, or may be, within rates and times.
    pub(super) counts_failed: bool,
    /// Whether objects of several sizes were moved, for which warp keeps no times.
    pub(super) has_sizes: bool,
    pub(super) rates: Option<Rates>,
    pub(super) latency: Times,
    pub(super) ttfb: Times,
}

/// Content and objects per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    pub(super) bytes: f64,
    pub(super) objects: f64,
}

/// Rates over warp's seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rates {
    pub(super) segment: Duration,
    pub(super) segments: u32,
    pub(super) average: Rate,
    pub(super) fastest: Rate,
    pub(super) median: Rate,
    pub(super) slowest: Rate,
}

/// Between which values, both included, a percentile lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) low: Duration,
    pub(super) high: Duration,
}

impl Bounds {
    /// Returns the value if the bounds leave but one.
    pub(super) fn exact(self) -> Option<Duration> {
        (self.low == self.high).then_some(self.low)
    }
}

/// Times of the requests of the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Times {
    pub(super) mean: Option<Duration>,
    pub(super) min: Option<Duration>,
    pub(super) max: Option<Duration>,
    pub(super) p50: Option<Bounds>,
    pub(super) p90: Option<Bounds>,
    pub(super) p99: Option<Bounds>,
}

impl Times {
    /// Tells whether a percentile is known by its bounds only.
    pub(super) fn is_bounded(&self) -> bool {
        [self.p50, self.p90, self.p99].into_iter().flatten().any(|p| p.exact().is_none())
    }
}

impl Kind<'_> {
    /// Returns failed over all requests, 0 to 1.
    pub(super) fn error_rate(&self) -> Option<f64> {
        let (errors, all) = (self.all.total_errors?, self.all.total_requests?);
        (all > 0).then(|| errors as f64 / all as f64)
    }

    /// Tells whether bytes per second mean something here.
    pub(super) fn moves_bytes(&self) -> bool {
        self.all.total_bytes.is_some_and(|bytes| bytes > 0)
    }
}

/// Returns the types of operation in the order of their names.
pub(super) fn kinds(file: &Aggregated) -> Vec<Kind<'_>> {
    file.by_op_type.iter().map(|(name, all)| kind(name, all)).collect()
}

fn kind<'a>(name: &'a str, all: &'a Aggregate) -> Kind<'a> {
    let windows = || all.requests_by_client.values().flatten();
    let counts_failed = all.total_errors != Some(0);
    let requests = all.total_requests;
    Kind {
        name,
        all,
        counts_failed,
        has_sizes: windows().any(|window| window.multi_sized_requests.is_some()),
        rates: all.throughput.as_ref().and_then(|of| rates(of, counts_failed)),
        latency: times(requests, windows(), |of| Some(Part::of_requests(of))),
        ttfb: times(requests, windows(), |of| of.first_byte.as_ref().map(Part::of_first_bytes)),
    }
}

fn rates(throughput: &Throughput, counts_failed: bool) -> Option<Rates> {
    let segmented = throughput.segmented.as_ref()?;
    let of_segment = |segment: &Segment| {
        let rate = Rate { bytes: segment.bytes_per_sec?, objects: segment.obj_per_sec? };
        let is_valid = |value: f64| value.is_finite() && value >= 0.0;
        (is_valid(rate.bytes) && is_valid(rate.objects)).then_some(rate)
    };
    let all: Vec<Rate> = segmented.segments.iter().map(of_segment).collect::<Option<_>>()?;
    let segments = u32::try_from(all.len()).ok().filter(|count| *count > 0)?;
    let millis = segmented.segment_duration_millis.filter(|millis| *millis > 0)?;
    let mean = |of: fn(&Rate) -> f64| all.iter().map(of).sum::<f64>() / f64::from(segments);
    let average = Rate { bytes: mean(|rate| rate.bytes), objects: mean(|rate| rate.objects) };

    let sorted_by = |of: fn(&Rate) -> f64| {
        let mut sorted = all.clone();
        sorted.sort_by(|a, b| of(a).total_cmp(&of(b)));
        sorted
    };
    let by_objects = sorted_by(|rate| rate.objects);
    let has_bytes = all.iter().any(|rate| rate.bytes > 0.0);
    let by_main = if has_bytes { sorted_by(|rate| rate.bytes) } else { by_objects.clone() };
    // With failures these are upper bounds. The objects of the second that is picked by bytes bound
    // nothing, as without the failures another one could be picked; their own ranks do.
    let pick = |rank: usize| match counts_failed {
        true => Rate { bytes: by_main[rank].bytes, objects: by_objects[rank].objects },
        false => by_main[rank],
    };
    Some(Rates {
        segment: Duration::from_millis(millis),
        segments,
        average,
        fastest: pick(all.len() - 1),
        median: pick((all.len() - 1) / 2),
        slowest: pick(0),
    })
}

/// Figures of one window in milliseconds.
struct Part {
    mean: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
}

impl Part {
    fn of_requests(of: &SingleSized) -> Self {
        Self {
            mean: of.dur_avg_millis,
            min: of.fastest_millis,
            max: of.slowest_millis,
            p50: of.dur_median_millis,
            p90: of.dur_90_millis,
            p99: of.dur_99_millis,
        }
    }

    fn of_first_bytes(of: &FirstByte) -> Self {
        Self {
            mean: of.average_millis,
            min: of.fastest_millis,
            max: of.slowest_millis,
            p50: of.median_millis,
            p90: of.p90_millis,
            p99: of.p99_millis,
        }
    }
}

/// Returns the times of all windows together; nothing unless they hold every request.
fn times<'a>(
    requests: Option<u64>,
    windows: impl Iterator<Item = &'a Window>,
    part: impl Fn(&SingleSized) -> Option<Part>,
) -> Times {
    let windows = windows.filter_map(|window| window.single_sized_requests.as_ref());
    let windows: Vec<&SingleSized> = windows.filter(|of| of.requests != Some(0)).collect();
    let weights: Option<Vec<u64>> = windows.iter().map(|of| of.requests).collect();
    let parts: Option<Vec<Part>> = windows.iter().map(|of| part(of)).collect();
    let (Some(weights), Some(parts), Some(requests)) = (weights, parts, requests) else {
        return Times::default();
    };
    let held = weights.iter().try_fold(0_u64, |sum, weight| sum.checked_add(*weight));
    if parts.is_empty() || held != Some(requests) {
        return Times::default();
    }
    // Of merged windows warp stores means of their figures, and these neither are nor bound those
    // of the whole.
    let is_merged = windows.iter().any(|of| of.merged_entries.is_some_and(|count| count > 1));
    let every = |of: fn(&Part) -> Option<f64>| parts.iter().map(of).collect::<Option<Vec<f64>>>();
    // As few samples leave a percentile unknown as with our own records.
    let bounds = |of: fn(&Part) -> Option<f64>, samples_min: u64| {
        let values = every(of).filter(|_| !is_merged && requests >= samples_min)?;
        Some(Bounds { low: lowest(&values), high: highest(&values) })
    };
    let mean = |values: Vec<f64>| {
        let sum: f64 = values.iter().zip(&weights).map(|(mean, of)| mean * *of as f64).sum();
        millis(sum / requests as f64)
    };
    Times {
        mean: every(|part| part.mean).filter(|_| !is_merged).map(mean),
        min: every(|part| part.min).map(|values| lowest(&values)),
        max: every(|part| part.max).map(|values| highest(&values)),
        p50: bounds(|part| part.p50, 2),
        p90: bounds(|part| part.p90, 10),
        p99: bounds(|part| part.p99, 100),
    }
}

fn lowest(values: &[f64]) -> Duration {
    millis(values.iter().copied().fold(f64::INFINITY, f64::min))
}

fn highest(values: &[f64]) -> Duration {
    millis(values.iter().copied().fold(0.0, f64::max))
}

fn millis(millis: f64) -> Duration {
    Duration::from_nanos((millis * 1e6).round() as u64)
}
