//! Axes: what a value's place is, and where the labels stand.

use std::ops::Range;
use std::time::Duration;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::format;

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Linear,
    /// By the logarithm to base 10.
    Log,
}

/// An axis in places, which plotters takes as linear.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    scale: Scale,
    /// The place where it begins.
    pub(super) low: f64,
    /// The place where it ends; above `low`.
    pub(super) high: f64,
    /// Places with their labels, lowest first.
    pub(super) ticks: Vec<(f64, String)>,
    /// What it measures, with its unit; empty where labels say it.
    pub(super) title: String,
    /// How its values are read out.
    pub(super) reads: Reads,
}

/// How a value of an axis is read out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// As a number with this unit.
    Number(&'static str),
    /// As a time, from nanoseconds.
    Time,
    /// As an offset, from seconds.
    Offset,
    /// As the share below, from decades of the share above.
    Share,
    /// By the label of the nearest tick.
    Label,
}

impl Axis {
    /// Returns it with what it measures.
    pub(super) fn titled(self, title: impl Into<String>, reads: Reads) -> Self {
        Self { title: title.into(), reads, ..self }
    }

    /// Returns whether places are logarithms.
    pub(super) fn is_log(&self) -> bool {
        self.scale == Scale::Log
    }

    /// Returns the value at a place.
    pub(super) fn value(&self, place: f64) -> f64 {
        if self.is_log() { 10f64.powf(place) } else { place }
    }

    /// Returns an axis whose values are numbers.
    fn new(scale: Scale, (low, high): (f64, f64), ticks: Vec<(f64, String)>) -> Self {
        Self { scale, low, high, ticks, title: String::new(), reads: Reads::Number("") }
    }

    /// Returns the place of a value.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).log10(),
        };
        place.clamp(self.low, self.high)
    }

    /// Returns an axis from 0 to at least `max`, with up to five steps.
    pub(super) fn from_zero(max: f64) -> Self {
        let max = if max > 0.0 { max } else { 1.0 };
        let power = 10f64.powf((max / 5.0).log10().floor());
        let fits = |factor: &f64| max / (factor * power) <= 5.0 + 1e-9;
        let step = power * [1.0, 2.0, 2.5, 5.0].into_iter().find(fits).unwrap_or(10.0);
        let steps = (max / step - 1e-9).ceil() as u32;
        // Digits enough for the step: 0.25 needs two.
        let exact = |decimals: &i32| {
            let scaled = step * 10f64.powi(*decimals);
            (scaled - scaled.round()).abs() < 1e-6
        };
        let decimals = (0..9).find(exact).unwrap_or(9) as usize;
        let label = |value: f64| match value {
            1_000.0.. => format::count(value.round() as u64),
            _ => format!("{value:.decimals$}"),
        };
        let ticks = (0..=steps).map(|index| f64::from(index) * step);
        let ticks = ticks.map(|value| (value, label(value))).collect();
        Self::new(Scale::Linear, (0.0, f64::from(steps) * step), ticks)
    }

    /// Returns an axis of the seconds of a stretch, with round times as labels for up to so many
    /// steps.
    pub(super) fn seconds(length: Duration, steps_max: f64) -> Self {
        const STEPS: [f64; 21] = [
            1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
            600.0, 1_800.0, 3_600.0, 10_800.0, 43_200.0, 86_400.0,
        ];
        let high = length.as_secs_f64().max(1e-6);
        let step = STEPS.into_iter().find(|step| high / step <= steps_max).unwrap_or(high / 5.0);
        let count = (high / step + 1e-9).floor() as u32;
        let (unit, name) = match step {
            3_600.0.. => (3_600.0, "h"),
            60.0.. => (60.0, "min"),
            _ => (1.0, "s"),
        };
        // Steps are whole in their unit, or a power of ten below a second.
        let label = |value: f64| format!("{} {name}", trimmed(&format!("{:.6}", value / unit)));
        let ticks = (0..=count).map(|index| f64::from(index) * step);
        let ticks = ticks.map(|value| (value, label(value))).collect();
        Self { reads: Reads::Offset, ..Self::new(Scale::Linear, (0.0, high), ticks) }
    }

    /// Returns a logarithmic axis that holds `min` to `max` and ends at 1, 2 or 5 of a decade.
    pub(super) fn log(min: f64, max: f64, label: impl Fn(f64) -> String) -> Self {
        let (min, max) = (min.max(1e-9), max.max(min).max(1e-9));
        let exponents = min.log10().floor() as i32 - 1..=max.log10().ceil() as i32 + 1;
        let of_decade = |exponent: i32| [1.0, 2.0, 5.0].map(|of| (of, exponent));
        let ends: Vec<(f64, i32)> = exponents.flat_map(of_decade).collect();
        let value = |(factor, exponent): (f64, i32)| factor * 10f64.powi(exponent);
        // Two decades lie around the values, so there is always an end on either side.
        let first = ends.iter().rposition(|end| value(*end) <= min * (1.0 + 1e-9)).unwrap_or(0);
        let last = ends.iter().position(|end| value(*end) >= max * (1.0 - 1e-9));
        let last = last.unwrap_or(ends.len() - 1);
        // One value alone on an end would leave no room between them.
        let ends = if first < last { &ends[first..=last] } else { &ends[last - 1..=last] };
        // About six labels: at every end, or at whole decades, or at every so many.
        let decades = value(ends[ends.len() - 1]).log10() - value(ends[0]).log10();
        let every = (decades / 7.0).floor() as i32 + 1;
        let labelled = |(factor, exponent): &(f64, i32)| {
            decades < 2.4 || (*factor == 1.0 && exponent.rem_euclid(every) == 0)
        };
        let ticks = ends.iter().copied().filter(labelled).map(value);
        let ticks = ticks.map(|value| (value.log10(), label(value))).collect();
        let (low, high) = (value(ends[0]).log10(), value(ends[ends.len() - 1]).log10());
        Self::new(Scale::Log, (low, high), ticks)
    }

    /// Returns a logarithmic axis of nanoseconds.
    pub(super) fn log_time(min_ns: f64, max_ns: f64) -> Self {
        let axis = Self::log(min_ns.max(1.0), max_ns.max(1.0), |ns| {
            short(&format::duration(Duration::from_nanos(ns.round() as u64)))
        });
        Self { reads: Reads::Time, ..axis }
    }

    /// Returns an axis of the share that lies above, each decade of it as wide as the next: 0 %,
    /// 90 %, 99 %, up to where one of `samples` lies above. Places are given to it directly.
    pub(super) fn inverse_percentile(samples: u64) -> Self {
        let high = (samples.max(2) as f64).log10();
        let nines = |count: usize| match count {
            0 => "0 %".to_owned(),
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            _ => format!("99.{} %", "9".repeat(count - 2)),
        };
        let decades = 0..=high.floor() as usize;
        let ticks = decades.map(|count| (count as f64, nines(count))).collect();
        Self { reads: Reads::Share, ..Self::new(Scale::Linear, (0.0, high), ticks) }
    }

    /// Returns an axis with one label after the other, at the places 0, 1, 2, ….
    pub(super) fn steps(labels: impl IntoIterator<Item = String>) -> Self {
        let ticks: Vec<_> =
            labels.into_iter().enumerate().map(|(index, label)| (index as f64, label)).collect();
        let high = ticks.len() as f64 - 0.5;
        Self { reads: Reads::Label, ..Self::new(Scale::Linear, (-0.5, high), ticks) }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let part = (place - self.low) / (self.high - self.low);
        from + (f64::from(to - from) * part).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // There are no lines beside those of the labels.
        let shown = self.ticks.iter().filter(|_| !hint.weight().allow_light_points());
        shown.map(|(place, _)| *place).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, place: &f64) -> String {
        let tick = self.ticks.iter().find(|(at, _)| at == place);
        tick.map_or(String::new(), |(_, label)| label.clone())
    }
}

/// Returns a figure without zeros that say nothing: `2.50 ms` as `2.5 ms`, `1.00 MiB` as `1 MiB`.
pub(super) fn short(figure: &str) -> String {
    match figure.split_once(' ') {
        Some((number, unit)) => format!("{} {unit}", trimmed(number)),
        None => trimmed(figure).to_owned(),
    }
}

fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn axes_from_zero_take_round_steps_and_hold_the_largest_value() {
        for (max, want) in [
            (4.0, vec!["0", "1", "2", "3", "4"]),
            (0.9, vec!["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
            (11.0, vec!["0.0", "2.5", "5.0", "7.5", "10.0", "12.5"]),
            (4_100.0, vec!["0", "1,000", "2,000", "3,000", "4,000", "5,000"]),
            (0.0, vec!["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ] {
            let axis = Axis::from_zero(max);
            assert_eq!(labels(&axis), want, "{max}");
            assert!(axis.high >= max);
        }
    }

    #[test]
    fn axes_of_time_are_labelled_at_round_times() {
        let seconds = |length: f64| Axis::seconds(Duration::from_secs_f64(length), 10.0);
        assert_eq!(
            labels(&seconds(4.5)),
            ["0 s", "0.5 s", "1 s", "1.5 s", "2 s", "2.5 s", "3 s", "3.5 s", "4 s", "4.5 s"]
        );
        assert_eq!(
            labels(&seconds(45.0)),
            ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s", "35 s", "40 s", "45 s"]
        );
        assert_eq!(labels(&seconds(590.0))[..3], ["0 min", "1 min", "2 min"]);
        assert_eq!(labels(&seconds(3_000.0)).last(), Some(&"50 min"));
        let few = Axis::seconds(Duration::from_secs(590), 5.0);
        assert_eq!(labels(&few), ["0 min", "2 min", "4 min", "6 min", "8 min"]);
        assert_eq!(labels(&seconds(0.0)), ["0 s", "0.000001 s"]);
    }

    #[test]
    fn logarithmic_axes_end_at_round_values_around_the_values() {
        for (min, max, want, ends) in [
            (1.5e6, 40e6, "1 ms,2 ms,5 ms,10 ms,20 ms,50 ms", (1e6, 50e6)),
            (3e6, 3e6, "2 ms,5 ms", (2e6, 5e6)),
            (1e6, 1e6, "500 µs,1 ms", (500e3, 1e6)),
            (900e3, 773e6, "1 ms,10 ms,100 ms,1 s", (500e3, 1e9)),
            (1.0, 3_600e9, "10 ns,1 µs,100 µs,10 ms,1 s,100 s", (1.0, 5_000e9)),
        ] {
            let axis = Axis::log_time(min, max);
            if axis.ticks.len() <= 6 {
                assert_eq!(labels(&axis).join(","), want, "{min} to {max}");
            }
            assert!(axis.ticks.len() <= 8, "{:?}", axis.ticks);
            assert!((axis.low - f64::log10(ends.0)).abs() < 1e-9, "{min}: {}", axis.low);
            assert!((axis.high - f64::log10(ends.1)).abs() < 1e-9, "{max}: {}", axis.high);
        }
    }

    #[test]
    fn the_axis_of_percentiles_ends_where_one_sample_lies_above() {
        let axis = Axis::inverse_percentile(20_000);
        assert_eq!(labels(&axis), ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert!((axis.high - 20_000f64.log10()).abs() < 1e-12);
    }
}
