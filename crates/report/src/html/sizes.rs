//! Charts of what depends on the size of an operation.

use plimsoll_analysis::SizeClass;

use super::axis::{Axis, Reads, short};
use super::charts::{Chart, Charts, Entry, MIB, ends};
use super::colour::SeriesColor;
use super::plot::{HALF, Mark, Plot, Stroke};
use crate::format;

/// A line by class of size: its name, its value.
type SizeLine<'a> = (&'a str, &'a dyn Fn(&SizeClass) -> Option<f64>);

/// What is special in a chart by class of size.
struct SizeChart<'a> {
    id: &'static str,
    title: &'static str,
    caption: String,
    lines: &'a [SizeLine<'a>],
}

impl Charts<'_> {
    /// Returns the charts by class of size; none where all are of one class.
    pub(super) fn sizes(&self) -> Vec<Chart> {
        let mut classes: Vec<(u64, u64)> = Vec::new();
        for class in self.details.kinds.iter().flat_map(|kind| &kind.sizes) {
            classes.push((class.bytes_min, class.bytes_max));
        }
        classes.sort_unstable();
        classes.dedup();
        if classes.len() < 2 {
            return Vec::new();
        }
        let p50 = |class: &SizeClass| class.latency.p50.map(|time| time.as_nanos() as f64);
        let p99 = |class: &SizeClass| class.latency.p99.map(|time| time.as_nanos() as f64);
        let rate = |class: &SizeClass| class.rate.average.map(|rate| rate / MIB);
        let latency = SizeChart {
            id: "chart-size-latency",
            title: "Latency by size",
            caption: format!("{} Log axis.", self.latency_meaning()),
            lines: &[("p50", &p50), ("p99", &p99)],
        };
        let throughput = SizeChart {
            id: "chart-size-throughput",
            title: "Throughput of an operation by size, MiB/s",
            caption:
                "While an operation runs: all bytes of a class over all its latencies. Log axis."
                    .to_owned(),
            lines: &[("", &rate)],
        };
        let time_axis: &dyn Fn(f64, f64) -> Axis =
            &|min, max| Axis::log_time(min, max).titled("latency", Reads::Time);
        let rate_axis: &dyn Fn(f64, f64) -> Axis = &|min, max| {
            let axis = Axis::log(min, max, |value| short(&format::number(value)));
            axis.titled("throughput, MiB/s", Reads::Number("MiB/s"))
        };
        [(latency, time_axis), (throughput, rate_axis)]
            .into_iter()
            .filter_map(|(chart, axis)| self.size_chart(&classes, chart, axis))
            .collect()
    }

    fn size_chart(
        &self,
        classes: &[(u64, u64)],
        chart: SizeChart<'_>,
        axis: impl Fn(f64, f64) -> Axis,
    ) -> Option<Chart> {
        let (mut marks, mut legend) = (Vec::new(), Vec::new());
        for kind in self.details.kinds.iter().filter(|kind| !kind.sizes.is_empty()) {
            for (name, of) in chart.lines {
                let stroke = Stroke::of_line(marks.len());
                let color = SeriesColor::of_kind(kind.kind);
                let value = |(min, _): &(u64, u64)| {
                    let class = kind.sizes.iter().find(|class| class.bytes_min == *min);
                    class.and_then(of)
                };
                let points = classes.iter().enumerate();
                let points = points.map(|(at, class)| (at as f64, value(class)));
                let name = format!("{} {name}", kind.kind.name()).trim_end().to_owned();
                let line = Mark::line(color, stroke, points).named(name.clone());
                marks.push(Mark { dots: true, ..line });
                legend.push(Entry::new(color, stroke, name));
            }
        }
        let (min, max) = ends(&marks)?;
        // About eight labels: with more classes every so many has one.
        let every = classes.len().div_ceil(8);
        let labels = classes.iter().enumerate().map(|(at, (min, _))| match at % every {
            0 => format!("≥ {}", size(*min)),
            _ => String::new(),
        });
        Some(Chart {
            id: chart.id.to_owned(),
            title: chart.title.to_owned(),
            caption: format!("{} Each class of size reaches to twice its smallest.", chart.caption),
            legend,
            plot: {
                let x = Axis::steps(labels).titled("size of the operation", Reads::Label);
                Plot::new(HALF, x, axis(min, max), marks)
            },
        })
    }
}

/// Returns a size as short as it can be.
pub(super) fn size(bytes: u64) -> String {
    short(&format::bytes(bytes))
}
