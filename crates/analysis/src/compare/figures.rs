//! The figures of one run that are compared.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_stats::{Histogram, Interval};

use super::metric::Metric;
use super::noise::{Noise, Windowed};
use crate::phases::{self, PhaseAnalysis};
use crate::{Figures, SegmentRate, StageAnalysis, TimeSummary};

/// The figures of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFigures {
    /// What the run is called.
    pub name: String,
    /// Each kind that occurred, and all kinds together where there are several.
    pub kinds: Vec<KindFigures>,
}

/// The figures of one kind in one run; what is not set is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct KindFigures {
    /// The kind; `None` for all kinds together.
    pub kind: Option<OpKind>,
    /// Whether bytes per second mean something here.
    pub moves_bytes: bool,
    /// How many operations ended, failed ones included.
    pub operations: Option<u64>,
    values: [Option<f64>; Metric::ALL.len()],
    noise: [Option<Interval>; Metric::ALL.len()],
}

impl RunFigures {
    /// Returns the figures of a measured stage, with the noise within it if its details are known.
    pub fn of(name: impl Into<String>, analysis: &StageAnalysis) -> Self {
        let details = analysis.details.as_ref();
        let mut kinds: Vec<KindFigures> = Vec::new();
        for kind in &analysis.kinds {
            let mut figures = KindFigures::of(Some(kind.kind), &kind.figures);
            let detail = details.and_then(|all| all.kinds.iter().find(|of| of.kind == kind.kind));
            if let Some(noise) = detail.and_then(|of| Noise::of(&of.series, &[of])) {
                noise.fill(&mut figures);
            }
            kinds.push(figures);
        }
        if kinds.len() > 1 {
            let mut total = KindFigures::of(None, &analysis.total);
            let of_all = |all: &crate::StageDetails| {
                Noise::of(&all.series, &all.kinds.iter().collect::<Vec<_>>())
            };
            if let Some(noise) = details.and_then(of_all) {
                noise.fill(&mut total);
            }
            kinds.push(total);
        }
        Self { name: name.into(), kinds }
    }

    /// Returns the figures of a stage of a run on files, each kind over all of its rows.
    pub fn of_phase(name: impl Into<String>, stage: &PhaseAnalysis) -> Self {
        let of = |kind: OpKind| {
            let rows = stage.rows.iter().flat_map(|row| row.kind(kind));
            let rows: Vec<&phases::KindFigures> = rows.collect();
            (!rows.is_empty()).then(|| KindFigures::of_rows(Some(kind), &rows, stage.window))
        };
        let mut kinds: Vec<KindFigures> = OpKind::ALL.into_iter().filter_map(of).collect();
        if kinds.len() > 1 {
            let all: Vec<&phases::KindFigures> =
                stage.rows.iter().flat_map(|row| &row.kinds).collect();
            kinds.push(KindFigures::of_rows(None, &all, stage.window));
        }
        Self { name: name.into(), kinds }
    }

    /// Returns the figures of one kind.
    pub fn kind(&self, kind: Option<OpKind>) -> Option<&KindFigures> {
        self.kinds.iter().find(|figures| figures.kind == kind)
    }
}

impl KindFigures {
    /// Returns figures that are all unknown yet; `None` is all kinds together.
    pub fn new(kind: Option<OpKind>, moves_bytes: bool) -> Self {
        let (values, noise) = ([None; Metric::ALL.len()], [None; Metric::ALL.len()]);
        Self { kind, moves_bytes, operations: None, values, noise }
    }

    /// Sets one figure, in the metric's unit; one that is no finite number stays unknown.
    pub fn set(&mut self, metric: Metric, value: Option<f64>) {
        self.values[metric as usize] = value.filter(|value| value.is_finite());
    }

    /// Returns one figure.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.values[metric as usize]
    }

    /// Sets how much one figure scatters within the run, as a 95 % interval.
    pub fn set_noise(&mut self, metric: Metric, noise: Option<Interval>) {
        self.noise[metric as usize] = noise;
    }

    /// Returns how much one figure scatters within the run.
    pub fn noise(&self, metric: Metric) -> Option<Interval> {
        self.noise[metric as usize]
    }

    fn of(kind: Option<OpKind>, figures: &Figures) -> Self {
        let mut of = Self::new(kind, figures.moves_bytes);
        let failed = figures.stage.failed.count();
        let ended = figures.stage.ops_ok + failed;
        of.operations = Some(ended);
        of.set(Metric::Errors, (ended > 0).then(|| failed as f64 / ended as f64));
        let bytes_matter = figures.moves_bytes;
        if let Some(rates) = figures.rates {
            of.set(Metric::Rate, Some(rates.ops.0));
            of.set(Metric::Objects, Some(rates.objects.0));
            of.set(Metric::Throughput, bytes_matter.then_some(rates.bytes.0));
        }
        if let Some(segments) = figures.segments {
            let mut segment = |bytes: Metric, objects: Metric, segment: SegmentRate| {
                of.set(bytes, bytes_matter.then_some(segment.rates.bytes.0));
                of.set(objects, Some(segment.rates.objects.0));
            };
            segment(Metric::Fastest, Metric::FastestObjects, segments.fastest);
            segment(Metric::Median, Metric::MedianObjects, segments.median);
            segment(Metric::Slowest, Metric::SlowestObjects, segments.slowest);
        }
        of.set_times(&figures.latency, &figures.ttfb);
        of
    }

    /// Returns the figures of kinds of a stage on files together: rates add up, each over the time
    /// of its own row, and times are put together.
    fn of_rows(kind: Option<OpKind>, rows: &[&phases::KindFigures], window: Duration) -> Self {
        let moves_bytes = rows.iter().any(|of| of.kind.moves_bytes());
        let mut of = Self::new(kind, moves_bytes);
        let failed: u64 = rows.iter().map(|of| of.failed.count()).sum();
        let ended = failed + rows.iter().map(|of| of.ops_ok).sum::<u64>();
        of.operations = Some(ended);
        of.set(Metric::Errors, (ended > 0).then(|| failed as f64 / ended as f64));
        let rate: Option<f64> = rows.iter().map(|of| of.ops_per_sec).sum();
        of.set(Metric::Rate, rate);
        of.set(Metric::Objects, rate);
        let bytes = rows.iter().filter(|of| of.kind.moves_bytes()).map(|of| of.bytes_per_sec);
        of.set(Metric::Throughput, bytes.sum::<Option<f64>>().filter(|_| moves_bytes));
        let mut latency = Histogram::default();
        rows.iter().for_each(|of| latency.merge(of.latency.histogram()));
        of.set_times(&TimeSummary::of(&latency), &TimeSummary::default());
        let windows = windows_of(rows, window);
        of.set_windows(&windows);
        if let Some(noise) = Noise::of_windows(&windows) {
            noise.fill(&mut of);
        }
        of
    }

    /// Sets the fastest, median and slowest window, in the order that segments have.
    fn set_windows(&mut self, windows: &[Windowed]) {
        let mut slowest_first: Vec<&Windowed> = windows.iter().collect();
        slowest_first.sort_by_key(|window| (window.bytes, window.ops));
        let (Some(slowest), Some(fastest)) = (slowest_first.first(), slowest_first.last()) else {
            return;
        };
        let median = slowest_first[(slowest_first.len() - 1) / 2];
        for (of_bytes, of_objects, window) in [
            (Metric::Fastest, Metric::FastestObjects, fastest),
            (Metric::Median, Metric::MedianObjects, &median),
            (Metric::Slowest, Metric::SlowestObjects, slowest),
        ] {
            let bytes = window.bytes as f64 / window.seconds;
            self.set(of_bytes, self.moves_bytes.then_some(bytes));
            self.set(of_objects, Some(window.ops as f64 / window.seconds));
        }
    }

    fn set_times(&mut self, latency: &TimeSummary, ttfb: &TimeSummary) {
        for (metric, time) in [
            (Metric::Mean, latency.mean),
            (Metric::P50, latency.p50),
            (Metric::P90, latency.p90),
            (Metric::P99, latency.p99),
            (Metric::P99_9, latency.p99_9),
            (Metric::Max, latency.max),
            (Metric::Min, latency.min),
            (Metric::StdDev, latency.std_dev),
            (Metric::TtfbMean, ttfb.mean),
            (Metric::TtfbP50, ttfb.p50),
            (Metric::TtfbP90, ttfb.p90),
            (Metric::TtfbP99, ttfb.p99),
            (Metric::TtfbMax, ttfb.max),
            (Metric::TtfbMin, ttfb.min),
            (Metric::TtfbStdDev, ttfb.std_dev),
        ] {
            self.set(metric, time.map(nanoseconds));
        }
    }
}

/// Returns what rows did together in each window that is whole in all of them that reach it, in the
/// order of time.
fn windows_of(rows: &[&phases::KindFigures], window: Duration) -> Vec<Windowed> {
    let mut windows: BTreeMap<Duration, Option<Windowed>> = BTreeMap::new();
    for each in rows.iter().flat_map(|of| &of.windows) {
        let empty = Windowed { seconds: window.as_secs_f64(), ..Windowed::default() };
        let sum = windows.entry(each.start).or_insert(Some(empty));
        if each.length < window {
            *sum = None;
        } else if let Some(sum) = sum {
            sum.ops += each.ops;
            sum.bytes += each.bytes;
            sum.latency_ns += each.latency_mean.map_or(0.0, nanoseconds) * each.ops as f64;
        }
    }
    windows.into_values().flatten().collect()
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}
