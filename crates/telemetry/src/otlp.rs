//! The counters as an OTLP `ExportMetricsServiceRequest` in JSON: 64-bit integers are strings,
//! enums are numbers, all sums and histograms are cumulative.

use plimsoll_engine::{LiveDetail, coarse_cell_end_ns, latency_cell_end_ns};
use plimsoll_model::{ErrorClass, OpKind, WallTime};
use serde_json::{Value, json};

use crate::snapshot::{Board, Snapshot, StageSnapshot, seconds};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;
/// Where receivers listen for metrics.
pub(super) const PATH: &str = "/v1/metrics";

/// Returns the request.
pub(super) fn request(board: &Board, snapshot: &Snapshot) -> Value {
    let resource = [
        ("service.name", "plimsoll"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", &board.run_id),
        ("plimsoll.what", &board.what),
    ];
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes(&resource)},
        "scopeMetrics": [{
            "scope": {"name": "plimsoll", "version": env!("CARGO_PKG_VERSION")},
            "metrics": metrics(snapshot),
        }],
    }]})
}

fn metrics(snapshot: &Snapshot) -> Vec<Value> {
    let began = snapshot.stages.first().map_or(snapshot.at, |stage| stage.began);
    let mut cpu = times(began, snapshot.at);
    cpu["asDouble"] = json!(snapshot.cpu.as_secs_f64());
    vec![
        sum("plimsoll.operations", "{operation}", "operations ended", operations(snapshot)),
        sum(
            "plimsoll.bytes",
            "By",
            "content bytes of successes",
            each(snapshot, |detail| ("asInt", text(detail.bytes))),
        ),
        sum(
            "plimsoll.objects",
            "{object}",
            "objects that successes handled",
            each(snapshot, |detail| ("asInt", text(detail.objects))),
        ),
        gauge("plimsoll.operations.in_flight", "operations under way", in_flight(snapshot)),
        histogram(
            "plimsoll.latency",
            "latency of successes, from the intended start to the end",
            distributions(snapshot, |detail| {
                Some(Distribution {
                    cells: &*detail.latency_cells,
                    sum_ns: detail.latency_ns,
                    end_ns: latency_cell_end_ns,
                })
            }),
        ),
        histogram(
            "plimsoll.ttfb",
            "time to first byte of successes; of an upload, from the last byte sent",
            distributions(snapshot, |detail| {
                let is_known = detail.ttfb_cells.iter().any(|count| *count > 0);
                is_known.then_some(Distribution {
                    cells: &detail.ttfb_cells,
                    sum_ns: detail.ttfb_ns,
                    end_ns: coarse_cell_end_ns,
                })
            }),
        ),
        histogram(
            "plimsoll.schedule_delay",
            "schedule delay of successes, from the intended start to the real one",
            distributions(snapshot, |detail| {
                (detail.delay_ns > 0).then_some(Distribution {
                    cells: &detail.delay_cells,
                    sum_ns: detail.delay_ns,
                    end_ns: coarse_cell_end_ns,
                })
            }),
        ),
        sum("process.cpu.time", "s", "processor time of the load generator", vec![cpu]),
    ]
}

fn sum(name: &str, unit: &str, description: &str, points: Vec<Value>) -> Value {
    json!({
        "name": name,
        "unit": unit,
        "description": description,
        "sum": {
            "aggregationTemporality": CUMULATIVE,
            "isMonotonic": true,
            "dataPoints": points,
        },
    })
}

/// Returns a point for every kind of every stage, with the one value that `value` names.
fn each(snapshot: &Snapshot, value: impl Fn(&LiveDetail) -> (&'static str, Value)) -> Vec<Value> {
    points(snapshot, |_, detail, mut point| {
        let (name, value) = value(detail);
        point[name] = value;
        vec![point]
    })
}

fn operations(snapshot: &Snapshot) -> Vec<Value> {
    points(snapshot, |labels, detail, point| {
        let counted = |class: &ErrorClass| class.is_ok() || detail.ended[*class as usize] > 0;
        let classes = ErrorClass::ALL.into_iter().filter(counted);
        classes
            .map(|class| {
                let [stage, kind] = labels;
                let mut point = point.clone();
                point["attributes"] = attributes(&[stage, kind, ("outcome", class.name())]);
                point["asInt"] = text(detail.ended[class as usize]);
                point
            })
            .collect()
    })
}

/// How times are distributed.
struct Distribution<'a> {
    /// By cell, how many there are.
    cells: &'a [u64],
    sum_ns: u64,
    /// The upper bound of a cell; `None` of the last.
    end_ns: fn(usize) -> Option<u64>,
}

fn histogram(name: &str, description: &str, points: Vec<Value>) -> Value {
    json!({
        "name": name,
        "unit": "s",
        "description": description,
        "histogram": {"aggregationTemporality": CUMULATIVE, "dataPoints": points},
    })
}

fn gauge(name: &str, description: &str, points: Vec<Value>) -> Value {
    json!({
        "name": name,
        "unit": "{operation}",
        "description": description,
        "gauge": {"dataPoints": points},
    })
}

/// Returns how many operations of each kind are under way in the current stage.
fn in_flight(snapshot: &Snapshot) -> Vec<Value> {
    let Some(stage) = snapshot.stages.last() else { return Vec::new() };
    let point = |(kind, count): &(OpKind, u64)| {
        let mut point = times(stage.began, snapshot.at);
        point["attributes"] = attributes(&[("stage", &stage.name), ("kind", kind.name())]);
        point["asInt"] = text(*count);
        point
    };
    stage.in_flight.iter().map(point).collect()
}

fn distributions(
    snapshot: &Snapshot,
    of: impl Fn(&LiveDetail) -> Option<Distribution<'_>>,
) -> Vec<Value> {
    points(snapshot, |_, detail, mut point| {
        let Some(Distribution { cells, sum_ns, end_ns }) = of(detail) else { return Vec::new() };
        let counts = cells.iter();
        let bounds: Vec<f64> = (0..).map_while(end_ns).map(seconds).collect();
        point["count"] = text(counts.clone().sum());
        point["sum"] = json!(seconds(sum_ns));
        point["bucketCounts"] = counts.map(|count| text(*count)).collect();
        point["explicitBounds"] = json!(bounds);
        vec![point]
    })
}

/// Returns what `make` makes of a point with times and attributes, for every kind of every stage.
fn points(
    snapshot: &Snapshot,
    make: impl Fn([(&'static str, &str); 2], &LiveDetail, Value) -> Vec<Value>,
) -> Vec<Value> {
    let of_stage = |stage: &StageSnapshot| -> Vec<Value> {
        let of_kind = stage.kinds.iter().flat_map(|(kind, detail)| {
            let labels = [("stage", stage.name.as_str()), ("kind", kind.name())];
            let mut point = times(stage.began, snapshot.at);
            point["attributes"] = attributes(&labels);
            make(labels, detail, point)
        });
        of_kind.collect()
    };
    snapshot.stages.iter().flat_map(of_stage).collect()
}

fn times(began: WallTime, at: WallTime) -> Value {
    json!({
        "startTimeUnixNano": text(began.as_unix_ns()),
        "timeUnixNano": text(at.as_unix_ns()),
    })
}

fn attributes(labels: &[(&str, &str)]) -> Value {
    let each = |(key, value): &(&str, &str)| json!({"key": key, "value": {"stringValue": value}});
    labels.iter().map(each).collect()
}

fn text(number: u64) -> Value {
    Value::String(number.to_string())
}
