//! The figures of one run that are compared.

use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_stats::Interval;

use super::metric::Metric;
use super::noise::Noise;
use crate::{Figures, RowAnalysis, SegmentRate, Times};

/// The figures of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFigures {
    /// What the run is called.
    pub name: String,
    /// Each kind that occurred, and all kinds together where there are several, row by row.
    pub kinds: Vec<KindFigures>,
}

/// The figures of one kind in one run; what is not set is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct KindFigures {
    /// The stage and the job, where a run has several.
    pub of: Option<String>,
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
    /// Returns the figures of a row, with the noise within it if its details are known.
    pub fn of(name: impl Into<String>, analysis: &RowAnalysis) -> Self {
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
            let of_all = |all: &crate::RowDetails| {
                Noise::of(&all.series, &all.kinds.iter().collect::<Vec<_>>())
            };
            if let Some(noise) = details.and_then(of_all) {
                noise.fill(&mut total);
            }
            kinds.push(total);
        }
        Self { name: name.into(), kinds }
    }

    /// Returns the figures of one kind.
    pub fn kind(&self, kind: Option<OpKind>) -> Option<&KindFigures> {
        self.kinds.iter().find(|figures| figures.kind == kind)
    }

    /// Adds what a search for a load line found, under its name: the line with its 95 % interval,
    /// and the capacity, in operations per second.
    pub fn add_load_line(
        &mut self,
        of: &str,
        kind: Option<OpKind>,
        line: Option<(f64, Interval)>,
        capacity: Option<f64>,
    ) {
        let mut figures = KindFigures { of: Some(of.to_owned()), ..KindFigures::new(kind, false) };
        figures.set(Metric::LoadLine, line.map(|(rate, _)| rate));
        figures.set_noise(Metric::LoadLine, line.map(|(_, interval)| interval));
        figures.set(Metric::Capacity, capacity);
        self.kinds.push(figures);
    }

    /// Adds the figures of a row, under its name.
    pub fn add(&mut self, of: &str, analysis: &RowAnalysis) {
        let row = Self::of("", analysis).kinds.into_iter();
        self.kinds.extend(row.map(|kind| KindFigures { of: Some(of.to_owned()), ..kind }));
    }
}

impl KindFigures {
    /// Returns figures that are all unknown yet; `None` is all kinds together.
    pub fn new(kind: Option<OpKind>, moves_bytes: bool) -> Self {
        let (values, noise) = ([None; Metric::ALL.len()], [None; Metric::ALL.len()]);
        Self { of: None, kind, moves_bytes, operations: None, values, noise }
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

    /// Sets the figures of both times.
    fn set_times(&mut self, latency: &Times, ttfb: &Times) {
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

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}
