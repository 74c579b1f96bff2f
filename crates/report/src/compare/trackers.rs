//! The figures of one run for services that keep them from commit to commit: the customary JSON of
//! github-action-benchmark, and the Bencher Metric Format.

use plimsoll_analysis::compare::{Direction, KindFigures, Metric, RunFigures, Unit};
use serde_json::{Map, Value, json};

use super::place_name;
use crate::table::harmless;

/// What is handed on of each kind; the rest says little by itself, or follows from these.
const METRICS: [Metric; 12] = [
    Metric::LoadLine,
    Metric::Capacity,
    Metric::Rate,
    Metric::Throughput,
    Metric::Mean,
    Metric::P50,
    Metric::P90,
    Metric::P99,
    Metric::P99_9,
    Metric::TtfbP50,
    Metric::TtfbP99,
    Metric::Errors,
];

/// Returns the figures that are better in one direction, as the tools `customBiggerIsBetter` and
/// `customSmallerIsBetter` of github-action-benchmark take them: a list of objects with `name`,
/// `unit` and `value`, and with `range` (the 95 % interval within the run) and `extra` where known.
///
/// Times are in milliseconds, bytes in MiB/s, errors in percent.
pub fn github(run: &RunFigures, direction: Direction) -> Value {
    let figure = |of: &KindFigures, metric: Metric| {
        let (shown, unit) = shown_in(metric.unit());
        let value = of.value(metric)?;
        let mut figure = json!({
            "name": format!("{} {}", name_of(run, of), metric.name()),
            "unit": unit,
            "value": shown(value),
        });
        if let Some(noise) = of.noise(metric) {
            let (low, high) = (shown(noise.low), shown(noise.high));
            figure["range"] = json!(format!("{low:.3} to {high:.3}"));
        }
        if let Some(count) = of.operations {
            figure["extra"] = json!(format!("{count} operations"));
        }
        Some(figure)
    };
    let better = METRICS.into_iter().filter(|metric| metric.direction() == direction);
    let better: Vec<Metric> = better.collect();
    let each = run.kinds.iter().flat_map(|of| better.iter().filter_map(move |m| figure(of, *m)));
    Value::Array(each.collect())
}

/// Returns the figures in the Bencher Metric Format: by name of a benchmark and of a measure its
/// value, with the bounds of its 95 % interval within the run where that is known.
///
/// The mean latency and the rate are Bencher's own measures `latency` and `throughput`. Times are
/// in nanoseconds, rates in operations per second, errors from 0 to 1.
pub fn bencher(run: &RunFigures) -> Value {
    let mut benchmarks = Map::new();
    for of in &run.kinds {
        let mut measures = Map::new();
        for metric in METRICS {
            let Some(value) = of.value(metric) else { continue };
            let mut figure = json!({ "value": value });
            if let Some(noise) = of.noise(metric) {
                figure["lower_value"] = json!(noise.low);
                figure["upper_value"] = json!(noise.high);
            }
            measures.insert(measure(metric), figure);
        }
        if !measures.is_empty() {
            benchmarks.insert(name_of(run, of), Value::Object(measures));
        }
    }
    Value::Object(benchmarks)
}

fn name_of(run: &RunFigures, of: &KindFigures) -> String {
    format!("{}: {}", harmless(&run.name), place_name(of.of.as_deref(), of.kind))
}

/// Returns how a figure is converted, and what it is counted in then.
fn shown_in(unit: Unit) -> (fn(f64) -> f64, &'static str) {
    match unit {
        Unit::OpsPerSec => (|rate| rate, "ops/s"),
        Unit::ObjectsPerSec => (|rate| rate, "objects/s"),
        Unit::BytesPerSec => (|rate| rate / f64::from(1 << 20), "MiB/s"),
        Unit::Nanoseconds => (|ns| ns / 1e6, "ms"),
        Unit::Fraction => (|part| part * 100.0, "%"),
    }
}

/// Returns what a metric is called among measures: letters, digits and hyphens.
fn measure(metric: Metric) -> String {
    match metric {
        Metric::Mean => "latency".to_owned(),
        Metric::Rate => "throughput".to_owned(),
        Metric::Throughput => "bytes-per-second".to_owned(),
        Metric::P50 | Metric::P90 | Metric::P99 | Metric::P99_9 => {
            format!("latency-{}", metric.name().replace('.', "-"))
        }
        other => other.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::OpKind;
    use plimsoll_stats::Interval;

    use super::*;

    fn run() -> RunFigures {
        let mut get = KindFigures::new(Some(OpKind::Get), true);
        get.operations = Some(1_200);
        get.set(Metric::Rate, Some(400.0));
        get.set_noise(Metric::Rate, Some(Interval { low: 390.0, high: 412.5 }));
        get.set(Metric::Throughput, Some(3.0 * f64::from(1 << 20)));
        get.set(Metric::Mean, Some(2_000_000.0));
        get.set(Metric::P99_9, Some(12_500_000.0));
        get.set(Metric::Errors, Some(0.25));
        let put = KindFigures::new(Some(OpKind::Put), true);
        RunFigures { name: "s3 mixed".to_owned(), kinds: vec![get, put] }
    }

    #[test]
    fn github_has_a_list_for_each_direction_and_leaves_out_what_is_unknown() {
        let bigger = json!([
            {
                "name": "s3 mixed: GET rate", "unit": "ops/s", "value": 400.0,
                "range": "390.000 to 412.500", "extra": "1200 operations",
            },
            {
                "name": "s3 mixed: GET throughput", "unit": "MiB/s", "value": 3.0,
                "extra": "1200 operations",
            },
        ]);
        assert_eq!(github(&run(), Direction::HigherIsBetter), bigger);
        let smaller = github(&run(), Direction::LowerIsBetter);
        let figures: Vec<(&str, f64)> = smaller.as_array().unwrap().iter().map(of_figure).collect();
        let expected = [
            ("s3 mixed: GET mean", 2.0),
            ("s3 mixed: GET p99.9", 12.5),
            ("s3 mixed: GET errors", 25.0),
        ];
        assert_eq!(figures, expected);
    }

    /// Holds a figure to what the action's own reader requires, `name`, `unit` and `value`.
    fn of_figure(figure: &Value) -> (&str, f64) {
        assert!(figure["unit"].is_string());
        (figure["name"].as_str().unwrap(), figure["value"].as_f64().unwrap())
    }

    #[test]
    fn bencher_has_values_with_bounds_by_benchmark_and_measure() {
        let expected = json!({
            "s3 mixed: GET": {
                "throughput": { "value": 400.0, "lower_value": 390.0, "upper_value": 412.5 },
                "bytes-per-second": { "value": 3_145_728.0 },
                "latency": { "value": 2_000_000.0 },
                "latency-p99-9": { "value": 12_500_000.0 },
                "errors": { "value": 0.25 },
            },
        });
        assert_eq!(bencher(&run()), expected);
    }

    #[test]
    fn measures_are_slugs_and_no_two_are_the_same() {
        let mut names: Vec<String> = METRICS.into_iter().map(measure).collect();
        // A slug of Bencher's has at most 64 characters.
        let is_slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(names.iter().all(|name| name.len() <= 64 && name.chars().all(is_slug)));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }
}
